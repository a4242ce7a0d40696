//! Checks of our own: what their owner may write, what a probe's outcome means, and what observers agree on.

use anteroom::config::ConfigError;
use anteroom::health::agree::Agreement;
use anteroom::health::check::{Check, Checks, MAX_CHECKS, REGIONS, Target, Url, parse_check};
use anteroom::health::judge::{Ended, Judgement, Raw, judge};
use anteroom::health::observer::{Post, remember};
use anteroom::health::probe::Probe;
use anteroom::health::{ProbeResult, Reason, Waterfall};
use proptest::prelude::*;
use serde_json::{Value, json};

const URL: &str = "https://origin.example.com/health?full=1";

/// A check of [`URL`] with other fields.
fn with(more: &Value) -> Value {
    let mut table = json!({ "url": URL });
    for (field, value) in more.as_object().unwrap() {
        match value {
            Value::Null => table.as_object_mut().unwrap().remove(field),
            value => table.as_object_mut().unwrap().insert(field.clone(), value.clone()),
        };
    }
    table
}

fn check(more: &Value) -> Check {
    parse_check("CHECK_ORIGIN", &with(more)).unwrap()
}

fn refused(more: &Value) -> Vec<ConfigError> {
    parse_check("CHECK_ORIGIN", &with(more)).expect_err("this check is valid")
}

#[test]
fn a_check_of_one_line_has_the_platforms_defaults() {
    let check = check(&json!({}));
    assert_eq!(check.name, "origin");
    let path = "/health?full=1".to_owned();
    let host = "origin.example.com".to_owned();
    assert_eq!(check.target, Target::Http(Url { secure: true, host, port: 443, path }));
    assert_eq!((check.interval, check.timeout, check.retries), (60, 5, 2));
    assert_eq!((check.consecutive_fails, check.consecutive_successes), (1, 1));
    assert_eq!((check.expected_codes().as_str(), check.http.expected_body.as_str()), ("200", ""));
    assert!(!check.http.head && !check.http.follow_redirects && !check.suspended);
    assert_eq!(check.regions.iter().map(|region| region.name).collect::<Vec<_>>(), ["WEU"]);
}

#[test]
fn a_check_may_have_every_field() {
    let check = check(&json!({
        "url": "http://[2001:db8::1]:8080",
        "method": "HEAD",
        "interval": 10,
        "timeout": 9,
        "retries": 0,
        "consecutive_fails": 2,
        "consecutive_successes": 3,
        "expected_codes": ["2XX", "302"],
        "follow_redirects": true,
        "allow_insecure": false,
        "header": { "Host": "shop.example.com", "X-Two": ["a", "b"] },
        "regions": ["wnam", "SEAS"],
        "suspended": true,
        "description": "the shop's own server",
    }));
    let Target::Http(url) = &check.target else { panic!("{check:?}") };
    assert_eq!(url.to_string(), "http://[2001:db8::1]:8080/");
    assert_eq!(check.expected_codes(), "2xx, 302");
    assert!([200, 299, 302].into_iter().all(|code| check.expects(code)));
    assert!([199, 300, 301, 303, 2000].into_iter().all(|code| !check.expects(code)));
    assert_eq!(check.regions.iter().map(|region| region.hint).collect::<Vec<_>>(), ["wnam", "apac"]);
    assert_eq!(
        check.request(url, "check origin; WNAM 1"),
        "HEAD / HTTP/1.1\r\nAccept: */*\r\nUser-Agent: Anteroom-Health-Check/1 (check origin; WNAM 1)\r\n\
         Accept-Encoding: identity\r\nConnection: close\r\nHost: shop.example.com\r\nX-Two: a\r\nX-Two: b\r\n\r\n"
    );
}

#[test]
fn headers_do_not_follow_to_another_server() {
    let check = check(&json!({ "header": { "Authorization": "secret", "Host": "shop.example.com" } }));
    let secret = |url: &str| check.request(&Url::read(url).unwrap(), "").contains("secret");
    assert!(secret("https://origin.example.com/elsewhere"));
    for url in ["http://origin.example.com/", "https://origin.example.com:444/", "https://evil.example/"] {
        assert!(!secret(url), "{url}");
    }
}

#[test]
fn all_regions_are_thirteen_and_have_thirty_nine_observers() {
    let check = check(&json!({ "regions": "ALL_REGIONS" }));
    assert_eq!(check.regions.len(), 13);
    assert_eq!(Post::all(&check).count(), 39, "as the article counts");
}

#[test]
fn every_mistake_names_check_field_value_and_fix() {
    let table = [
        ("url", json!(null), "required", "tcp = \"origin.example.com:5432\""),
        ("url", json!("origin.example.com"), "http:// or https://", "url = \"https://origin.example.com\""),
        ("url", json!("ftp://origin.example.com"), "http:// or https://", "address bar"),
        ("url", json!("https://"), "http:// or https://", "address bar"),
        ("url", json!("https://a b"), "without spaces", "address bar"),
        ("url", json!("https://a/\r\nX: y"), "without spaces", "address bar"),
        ("url", json!("https://a:0/"), "http:// or https://", "address bar"),
        ("url", json!("https://a:99999/"), "http:// or https://", "address bar"),
        ("url", json!("https://user:secret@a/"), "must not have a user", "before the @"),
        ("url", json!("https://a/x#y"), "fragment", "url = \"https://a/x\""),
        ("url", json!("http://a:25/"), "port 25", "another port"),
        ("url", json!(format!("https://a/{}", "x".repeat(2_048))), "at most 2048 bytes", "shorter"),
        ("url", json!(5), "text in quotes", "url = \"https://origin.example.com/\""),
        ("tcp", json!("a:1"), "conflicts with url", "two checks"),
        ("method", json!("POST"), "\"GET\" or \"HEAD\"", "\"GET\""),
        ("interval", json!(3_601), "5 to 3600", "at most 3600"),
        ("interval", json!("60"), "5 to 3600", "interval = 60"),
        ("timeout", json!(0), "1 to 10", "at least 1"),
        ("timeout", json!(11), "1 to 10", "at most 10"),
        ("retries", json!(6), "0 to 5", "at most 5"),
        ("consecutive_fails", json!(0), "1 to 10", "at least 1"),
        ("consecutive_successes", json!(11), "1 to 10", "at most 10"),
        ("expected_codes", json!([]), "a list of 1 to 16", "[\"200\"]"),
        ("expected_codes", json!([200]), "a list of 1 to 16 texts", "[\"200\"]"),
        ("expected_body", json!(1), "text in quotes", "expected_body = "),
        ("expected_body", json!("x".repeat(1_025)), "at most 1024 bytes", "shorten"),
        ("follow_redirects", json!("yes"), "true or false", "follow_redirects = true"),
        ("allow_insecure", json!(true), "verifies every certificate", "trusted"),
        ("header", json!("Host: a"), "a table", "header = {"),
        ("regions", json!([]), "a list of 1 to 13", "\"WEU\""),
        ("suspended", json!(1), "true or false", "suspended = true"),
        ("description", json!(["x"]), "text in quotes", "description = "),
        ("intervall", json!(60), "not a field", "did you mean interval?"),
        ("name", json!("x"), "what follows CHECK_", "rename the check"),
    ];
    for (field, value, message, fix) in table {
        let errors = refused(&json!({ field: value }));
        assert_eq!(errors.len(), 1, "{field} = {value}: {errors:?}");
        let line = errors[0].to_string();
        assert!(line.starts_with(&format!("check origin: {field} = ")) && !line.contains('\n'), "{line}");
        assert!(errors[0].message.contains(message), "{line}");
        assert!(errors[0].fix.contains(fix), "{line}");
    }
}

#[test]
fn mistakes_inside_lists_and_tables_and_between_fields_are_found() {
    let one = |more: &Value, parts: &[&str]| {
        let errors = refused(more);
        assert_eq!(errors.len(), 1, "{errors:?}");
        let line = errors[0].to_string();
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    };
    one(&json!({ "regions": ["WEU", "WEUR"] }), &["regions = \"WEUR\"", "did you mean \"WEU\"?"]);
    one(&json!({ "regions": ["apac"] }), &["regions = \"apac\"", "did you mean \"IN\"?"]);
    one(&json!({ "regions": ["moon"] }), &["regions = \"moon\"", "ALL_REGIONS"]);
    for code in ["99", "600", "2x0", "20x", "abc", "", "2000"] {
        one(&json!({ "expected_codes": ["200", code] }), &["expected_codes = ", "\"2xx\""]);
    }
    one(&json!({ "header": { "User-Agent": "x" } }), &["header.User-Agent", "writes itself"]);
    one(&json!({ "header": { "X Y": "x" } }), &["header.X Y", "not the name of a header"]);
    one(&json!({ "header": { "X": "a\r\nY: b" } }), &["header.X", "text in ASCII"]);
    one(&json!({ "header": { "X": [] } }), &["header.X", "list"]);
    one(&json!({ "header": { "Host": ["a", "b"] } }), &["header.Host", "one host"]);
    one(&json!({ "header": { "Host": "https://a/" } }), &["header.Host", "one host"]);
    let many: Vec<String> = (0..17).map(|number| number.to_string()).collect();
    one(&json!({ "header": { "X": many } }), &["header = 17", "at most 16"]);
    one(&json!({ "interval": 4 }), &["interval = 4", "5 to 3600", "at least 5"]);
    one(&json!({ "interval": 5, "timeout": 5 }), &["timeout = 5", "less than interval = 5", "at most 4"]);
    one(&json!({ "method": "HEAD", "expected_body": "ok" }), &["expected_body = \"ok\"", "no body"]);
    let tcp = |more: &Value| {
        let mut more = more.clone();
        more["url"] = Value::Null;
        more
    };
    for wrong in ["origin.example.com", "a:0", "a:65536", "::1:80", "a b:1", ":80", "https://a:1"] {
        one(&tcp(&json!({ "tcp": wrong })), &["tcp = ", "a host and a port"]);
    }
    one(&tcp(&json!({ "tcp": "a:25" })), &["port 25"]);
    one(
        &tcp(&json!({ "tcp": "a:80", "expected_body": "x" })),
        &["expected_body", "write url instead of tcp"],
    );
    let valid = parse_check("CHECK_DATABASE", &json!({ "tcp": "[::1]:5432" })).unwrap();
    assert_eq!(valid.target, Target::Tcp { host: "[::1]".to_owned(), port: 5_432 });
    let list = parse_check("CHECK_A", &json!([{}])).unwrap_err();
    assert!(list[0].to_string().contains("single brackets, one table per check"), "{list:?}");
    assert!(parse_check("CHECK_A.B", &json!({ "url": URL })).unwrap_err()[0].fix.contains("CHECK_ORIGIN"));
}

#[test]
fn a_broken_check_leaves_the_others_alone() {
    let vars = |names: &[&str]| {
        let vars: Vec<_> = names.iter().map(|name| ((*name).to_owned(), json!({ "url": URL }))).collect();
        Checks::from_vars(vars.into_iter().chain([("CHECK_BAD".to_owned(), json!("x"))]))
    };
    let (checks, errors) = vars(&["CHECK_ORIGIN", "CHECK_origin", "ROOM_SHOP", "ORIGIN"]);
    assert_eq!((checks.len(), errors.len()), (1, 2), "{errors:?}");
    assert!(checks.get("origin").is_some());
    let names: Vec<String> = (0..MAX_CHECKS + 1).map(|number| format!("CHECK_{number:02}")).collect();
    let (checks, errors) = vars(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(checks.len(), MAX_CHECKS);
    assert!(errors.iter().any(|error| error.to_string().contains("at most 32")), "{errors:?}");
}

/// What a probe brings back when all goes well.
fn raw(answer: &str) -> Raw {
    let (tcp_ms, tls_ms, first_byte_ms, total_ms) = (Some(10), Some(20), Some(30), Some(40));
    Raw {
        waterfall: Waterfall { tcp_ms, tls_ms, first_byte_ms, total_ms },
        ended: Ended::Complete,
        by_fetch: false,
        received: answer.len() as u64,
        answer: answer.as_bytes().to_vec(),
    }
}

fn reason(check: &Check, raw: &Raw) -> (Reason, Option<u16>) {
    match judge(check, &check.target, raw) {
        Judgement::Done { reason, actual_code } => (reason, actual_code),
        follow @ Judgement::Follow { .. } => panic!("{follow:?}"),
    }
}

#[test]
fn an_answer_is_judged_by_code_and_body() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nWelcome";
    let plain = check(&json!({}));
    assert_eq!(reason(&plain, &raw(ok)), (Reason::NoFailures, Some(200)));
    assert_eq!(
        reason(&plain, &raw("HTTP/1.1 503 Out\r\nContent-Length: 0\r\n\r\n")),
        (Reason::ResponseCodeMismatch, Some(503))
    );
    let body = check(&json!({ "expected_body": "wELCOME" }));
    assert_eq!(reason(&body, &raw(ok)), (Reason::NoFailures, Some(200)));
    let other = ok.replace("Welcome", "Goodbye");
    assert_eq!(reason(&body, &raw(&other)), (Reason::BodyMismatch, Some(200)));
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nWel\r\n4;x=y\r\ncome\r\n0\r\n\r\n";
    assert_eq!(reason(&body, &raw(chunked)), (Reason::NoFailures, Some(200)));
    let closed = "HTTP/1.0 200 OK\r\n\r\nWelcome";
    assert_eq!(reason(&body, &raw(closed)), (Reason::NoFailures, Some(200)));
    let hinted = format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{ok}");
    assert_eq!(reason(&body, &raw(&hinted)), (Reason::NoFailures, Some(200)));
    // As the platform's checks: what comes after the first 10 KB is not looked at.
    let late = |before: usize| {
        let length = before + 7;
        raw(&format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}Welcome", "x".repeat(before)))
    };
    assert_eq!(reason(&body, &late(10_233)).0, Reason::NoFailures);
    assert_eq!(reason(&body, &late(10_234)).0, Reason::BodyMismatch);
    let head = check(&json!({ "method": "HEAD" }));
    assert_eq!(reason(&head, &raw("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")).0, Reason::NoFailures);
}

#[test]
fn an_answer_that_is_none_is_invalid() {
    let check = check(&json!({}));
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nWel",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nWelc",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "\0\0\0",
        "HTTP/1.1 abc OK\r\n\r\n",
    ] {
        assert_eq!(reason(&check, &raw(answer)).0, Reason::InvalidResponse, "{answer:?}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(65_536));
    assert_eq!(reason(&check, &Raw { ended: Ended::Cut, ..raw(&endless) }).0, Reason::InvalidResponse);
    let closed_at_once = Raw { ended: Ended::Complete, received: 0, answer: Vec::new(), ..raw("") };
    assert_eq!(reason(&check, &closed_at_once).0, Reason::InvalidResponse);
}

#[test]
fn where_a_probe_failed_says_why() {
    let check = check(&json!({}));
    let silent = |reached: usize, ended| {
        let moment = |stage: usize| (reached > stage).then_some(10);
        let waterfall =
            Waterfall { tcp_ms: moment(0), tls_ms: moment(1), first_byte_ms: None, total_ms: None };
        reason(&check, &Raw { waterfall, ended, received: 0, answer: Vec::new(), ..raw("") }).0
    };
    assert_eq!(silent(0, Ended::Failed), Reason::TcpConnectionFailed);
    assert_eq!(silent(0, Ended::TimedOut), Reason::TcpConnectionFailed, "as where a firewall is silent");
    assert_eq!(silent(1, Ended::Failed), Reason::TlsHandshakeFailed);
    assert_eq!(silent(1, Ended::TimedOut), Reason::Timeout);
    assert_eq!(silent(2, Ended::TimedOut), Reason::Timeout);
    assert_eq!(silent(2, Ended::Failed), Reason::InvalidResponse);
    let hangs_midway =
        Raw { ended: Ended::TimedOut, ..raw("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nWel") };
    assert_eq!(reason(&check, &hangs_midway), (Reason::Timeout, Some(200)));
}

#[test]
fn where_sockets_are_closed_the_platforms_own_codes_are_told_apart() {
    let by_fetch = |code: u16| {
        let answer = format!("HTTP/1.1 {code} \r\n\r\nbody");
        let waterfall = Waterfall { first_byte_ms: Some(30), total_ms: Some(40), ..Waterfall::default() };
        Raw { waterfall, by_fetch: true, ..raw(&answer) }
    };
    let plain = check(&json!({}));
    assert_eq!(reason(&plain, &by_fetch(200)), (Reason::NoFailures, Some(200)));
    assert_eq!(reason(&plain, &by_fetch(521)), (Reason::TcpConnectionFailed, Some(521)));
    assert_eq!(reason(&plain, &by_fetch(524)), (Reason::Timeout, Some(524)));
    assert_eq!(reason(&plain, &by_fetch(525)), (Reason::TlsHandshakeFailed, Some(525)));
    assert_eq!(reason(&plain, &by_fetch(530)), (Reason::UnknownHost, Some(530)));
    assert_eq!(reason(&plain, &by_fetch(503)), (Reason::ResponseCodeMismatch, Some(503)));
    // A socket has no such codes: the origin itself says it.
    assert_eq!(reason(&plain, &Raw { by_fetch: false, ..by_fetch(521) }).0, Reason::ResponseCodeMismatch);
    assert_eq!(reason(&check(&json!({ "expected_codes": "521" })), &by_fetch(521)).0, Reason::NoFailures);
}

#[test]
fn redirects_are_followed_only_where_the_owner_says_so() {
    let moved = raw("HTTP/1.1 301 Moved\r\nLocation: /new\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(reason(&check(&json!({})), &moved), (Reason::ResponseCodeMismatch, Some(301)));
    let follows = check(&json!({ "follow_redirects": true }));
    let leads = Judgement::Follow { location: "/new".to_owned(), code: 301 };
    assert_eq!(judge(&follows, &follows.target, &moved), leads);
    let nowhere = raw("HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(reason(&follows, &nowhere), (Reason::ResponseCodeMismatch, Some(301)));
}

/// A probe of the first observer; each attempt takes a second, and `Location` leads where it says.
fn probe(check: &Check, answers: &[Raw]) -> (Vec<(String, u32)>, ProbeResult) {
    let post = Post::all(check).next().unwrap();
    let (mut now, mut attempts) = (START, Vec::new());
    let mut probe = Probe::new(post, now);
    for raw in answers {
        let attempt = probe.attempt(now);
        attempts.push((attempt.url, attempt.timeout_ms));
        now += 1_000;
        if let Some(result) = probe.take(raw, now, |_, location| Some(location.to_owned())) {
            assert_eq!(attempts.len(), answers.len(), "nothing is asked after the result");
            return (attempts, result);
        }
    }
    panic!("no result after {attempts:?}");
}

#[test]
fn what_takes_too_long_is_tried_again_and_nothing_else_is() {
    let check = check(&json!({ "retries": 2 }));
    let late = Raw { ended: Ended::TimedOut, received: 0, answer: Vec::new(), ..raw("") };
    let ok = raw("HTTP/1.1 200 OK\r\n\r\n");
    let (attempts, result) = probe(&check, &[late.clone(), late.clone(), ok]);
    assert_eq!(attempts, vec![(URL.to_owned(), 5_000); 3]);
    assert_eq!(
        (result.healthy, result.at, result.observer),
        (true, START + 2_000, 1),
        "it is the last try's"
    );
    let (_, result) = probe(&check, &[late.clone(), late.clone(), late]);
    assert_eq!((result.healthy, result.reason), (false, Reason::Timeout));
    let refused =
        Raw { waterfall: Waterfall::default(), ended: Ended::Failed, answer: Vec::new(), ..raw("") };
    assert_eq!(probe(&check, &[refused]).1.reason, Reason::TcpConnectionFailed);
}

#[test]
fn redirects_share_the_time_of_one_try_and_end() {
    let check = check(&json!({ "follow_redirects": true, "retries": 0 }));
    let moved = |to: &str| raw(&format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\n\r\n"));
    let there = "http://elsewhere.example/";
    let (attempts, result) = probe(&check, &[moved(there), raw("HTTP/1.1 200 OK\r\n\r\n")]);
    assert_eq!(attempts, [(URL.to_owned(), 5_000), (there.to_owned(), 4_000)]);
    assert_eq!((result.healthy, result.at), (true, START));
    let (_, result) = probe(&check, &vec![moved(there); 6]);
    assert_eq!((result.reason.text(), result.actual_code), ("Too many redirects", Some(302)));
    let (_, result) = probe(&check, &[moved("ftp://elsewhere.example/")]);
    assert_eq!((result.reason, result.actual_code), (Reason::ResponseCodeMismatch, Some(302)));
}

#[test]
fn a_tcp_check_asks_for_a_connection_alone() {
    let check = parse_check("CHECK_DATABASE", &json!({ "tcp": "db.example.com:5432" })).unwrap();
    let connected = Raw { waterfall: Waterfall { tcp_ms: Some(3), ..Waterfall::default() }, ..raw("") };
    assert_eq!(reason(&check, &connected), (Reason::NoFailures, None));
    let refused = Raw { waterfall: Waterfall::default(), ended: Ended::Failed, ..raw("") };
    assert_eq!(reason(&check, &refused), (Reason::TcpConnectionFailed, None));
}

proptest! {
    #[test]
    fn whatever_comes_is_judged(
        answer in prop::collection::vec(any::<u8>(), 0..200),
        start in prop::sample::select(vec!["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"]),
        surplus in 0..3_u64,
        ended in prop::sample::select(vec![Ended::Complete, Ended::TimedOut, Ended::Failed, Ended::Cut]),
    ) {
        let answer = [start.as_bytes(), &answer].concat();
        let check = check(&json!({ "expected_body": "ok", "follow_redirects": true }));
        let received = answer.len() as u64 + surplus;
        let _ = judge(&check, &check.target, &Raw { ended, received, answer, ..raw("") });
    }

    #[test]
    fn a_url_reads_as_it_is_written(text in "[a-zA-Z:/?#@.\\[\\]0-9 \r\n]{0,30}", scheme in "(http|https)://") {
        let written = scheme + &text;
        if let Some(url) = Url::read(&written) {
            prop_assert_eq!(Url::read(&url.to_string()), Some(url.clone()));
            prop_assert!(!url.to_string().contains(['\r', '\n', ' ', '#', '@']) || url.path.contains('@'));
        }
    }

    #[test]
    fn an_observer_looks_once_in_each_interval(now in 0..1_u64 << 42, interval in 5..=3_600_u32, number in 1..=3_u8) {
        let check = check(&json!({ "interval": interval, "timeout": 1 }));
        let post = Post { check: &check, region: &REGIONS[2], number };
        let wait = post.next_in(now);
        prop_assert!((1..=check.interval_ms()).contains(&wait));
        prop_assert_eq!(post.next_in(now + wait), check.interval_ms(), "an alarm on time is followed by the next");
    }
}

#[test]
fn observers_of_a_region_look_a_third_of_the_interval_apart() {
    let check = check(&json!({ "interval": 60 }));
    let mut waits: Vec<u64> = Post::all(&check).map(|post| post.next_in(1_000_000)).collect();
    waits.sort_unstable();
    assert_eq!((waits[1] - waits[0], waits[2] - waits[1]), (20_000, 20_000));
}

#[test]
fn an_observer_is_found_by_its_name_while_it_is_configured() {
    let checks = |more: &Value| Checks::from_vars([("CHECK_ORIGIN".to_owned(), with(more))].into_iter()).0;
    let name = "observer/origin/ENAM/2";
    let found = checks(&json!({ "regions": ["WEU", "ENAM"] }));
    let post = Post::of(name, &found).unwrap();
    assert_eq!((post.name().as_str(), post.region.hint, post.number), (name, "enam", 2));
    assert_eq!(post.who(), "check origin; ENAM 2");
    for gone in [
        "observer/origin/ENAM/4",
        "observer/origin/ENAM/0",
        "observer/other/ENAM/2",
        "observer/origin",
        "health",
    ] {
        assert_eq!(Post::of(gone, &found), None, "{gone}");
    }
    assert_eq!(Post::of(name, &checks(&json!({}))), None, "the region is no longer there");
    assert_eq!(Post::of(name, &checks(&json!({ "regions": "ENAM", "suspended": true }))), None);
}

/// What the observer `number` in a region saw at a second.
fn seen(region: &str, number: u8, second: u64, healthy: bool) -> ProbeResult {
    ProbeResult {
        check: "origin".to_owned(),
        region: region.to_owned(),
        observer: number,
        at: START + second * 1_000,
        healthy,
        reason: if healthy { Reason::NoFailures } else { Reason::ResponseCodeMismatch },
        expected_codes: "200".to_owned(),
        actual_code: Some(if healthy { 200 } else { 503 }),
        waterfall: Waterfall::default(),
    }
}

const START: u64 = 1_800_000_000_000;
/// No change is told.
const NOTHING: [bool; 0] = [];

/// Observers whose results come when they are made; the states that were told, in their order.
fn told(check: &Check, agreement: &mut Agreement, results: &[ProbeResult]) -> Vec<bool> {
    results
        .iter()
        .filter_map(|result| agreement.record(check, result, result.at))
        .map(|change| change.healthy)
        .collect()
}

#[test]
fn a_state_changes_when_two_of_three_agree() {
    let check = check(&json!({}));
    let mut agreement = Agreement::default();
    let mut hear = |number, second, healthy| {
        let result = seen("WEU", number, second, healthy);
        agreement.record(&check, &result, result.at)
    };
    assert_eq!(hear(1, 0, true), None, "one alone says nothing");
    let up = hear(2, 20, true).unwrap();
    assert_eq!((up.check.as_str(), up.healthy, up.reason), ("check/origin", true, Reason::NoFailures));
    assert_eq!(hear(3, 40, true), None);
    assert_eq!(hear(1, 60, false), None, "one alone changes nothing");
    let down = hear(2, 80, false).unwrap();
    assert_eq!((down.healthy, down.at, down.actual_code), (false, START + 80_000, Some(503)));
    assert_eq!((down.reason, down.expected_codes.as_str()), (Reason::ResponseCodeMismatch, "200"));
    assert_eq!(hear(3, 100, false), None, "it is known already");
    assert_eq!(hear(1, 120, true), None);
    assert!(hear(3, 160, true).unwrap().healthy);
}

#[test]
fn another_reason_is_news_when_two_agree_on_it() {
    let check = check(&json!({}));
    let mut agreement = Agreement::default();
    let mut hear = |number, second, reason: Reason| {
        let result = ProbeResult { reason, ..seen("WEU", number, second, false) };
        agreement.record(&check, &result, result.at).map(|change| (change.healthy, change.reason))
    };
    let (refused, late) = (Reason::TcpConnectionFailed, Reason::Timeout);
    assert_eq!(hear(1, 0, refused.clone()), None);
    assert_eq!(hear(2, 20, refused.clone()), Some((false, refused.clone())));
    assert_eq!(hear(3, 40, late.clone()), None);
    assert_eq!(hear(1, 60, late.clone()), Some((false, late.clone())));
    assert_eq!(hear(2, 80, late), None);
    assert_eq!(hear(3, 100, refused), None);
}

#[test]
fn the_third_lets_a_region_go_on_and_two_silent_ones_do_not() {
    let check = check(&json!({}));
    let mut agreement = Agreement::default();
    let both = [seen("WEU", 1, 0, true), seen("WEU", 2, 1, true), seen("WEU", 3, 2, true)];
    assert_eq!(told(&check, &mut agreement, &both), [true]);
    // Number 1 is gone; the others still find out.
    let others: Vec<_> =
        [62, 122, 182].into_iter().flat_map(|at| [2, 3].map(|n| seen("WEU", n, at, true))).collect();
    assert_eq!(told(&check, &mut agreement, &others), NOTHING);
    let others = [seen("WEU", 2, 242, false), seen("WEU", 3, 242, false)];
    assert_eq!(told(&check, &mut agreement, &others), [false]);
    // Number 2 is gone too: the last one's word counts for nothing, even while 2 is remembered.
    let last: Vec<_> = (1..9).map(|round| seen("WEU", 3, 242 + 60 * round, true)).collect();
    assert_eq!(told(&check, &mut agreement, &last), NOTHING);
    assert_eq!(agreement.healthy(), Some(false));
    let heard = |second: u64| {
        let posts = Post::all(&check).filter(|post| agreement.is_reporting(post, START + second * 1_000));
        posts.map(|post| post.number).collect::<Vec<u8>>()
    };
    assert_eq!(heard(242 + 60 * 8), [3]);
    assert_eq!(heard(242 + 60 * 8 + 180), Vec::<u8>::new(), "not heard of for three intervals");
}

#[test]
fn an_observer_says_it_only_after_so_many_in_a_row() {
    let check = check(&json!({ "consecutive_fails": 3, "consecutive_successes": 2 }));
    let mut agreement = Agreement::default();
    let rounds = |states: &[bool], from: u64| -> Vec<ProbeResult> {
        let round = |(round, healthy): (usize, &bool)| {
            [1, 2, 3]
                .map(|number| seen("WEU", number, from + 60 * round as u64 + u64::from(number), *healthy))
        };
        states.iter().enumerate().flat_map(round).collect()
    };
    assert_eq!(told(&check, &mut agreement, &rounds(&[true], 0)), NOTHING);
    assert_eq!(told(&check, &mut agreement, &rounds(&[true], 60)), [true]);
    assert_eq!(told(&check, &mut agreement, &rounds(&[false, false, true, false, false], 120)), NOTHING);
    assert_eq!(told(&check, &mut agreement, &rounds(&[false], 420)), [false]);
    assert_eq!(told(&check, &mut agreement, &rounds(&[true, false, true], 480)), NOTHING);
    assert_eq!(told(&check, &mut agreement, &rounds(&[true], 660)), [true]);
}

#[test]
fn of_several_regions_half_must_say_so() {
    let check = check(&json!({ "regions": ["WEU", "ENAM", "OC", "ME"] }));
    let mut agreement = Agreement::default();
    let mut say = |region: &str, second: u64, healthy: bool| {
        let results = [1, 2, 3].map(|number| seen(region, number, second, healthy));
        told(&check, &mut agreement, &results)
    };
    assert_eq!(say("WEU", 0, true), [true], "the others cannot tell yet");
    assert_eq!((say("ENAM", 1, true), say("OC", 2, true), say("ME", 3, true)), (vec![], vec![], vec![]));
    assert_eq!(say("OC", 62, false), NOTHING, "one of four");
    assert_eq!(say("ME", 63, false), [false], "two of four");
    assert_eq!(say("OC", 122, true), [true]);
    assert_eq!(say("XX", 123, false), NOTHING, "there is no such region");
    // The others fall silent: one region of one that can tell.
    assert_eq!(say("ME", 500, false), [false]);
}

/// Whether the truth at each second, what each observer of one region says instead of it if it lies, and when each is
/// silent.
fn lives() -> impl Strategy<Value = Vec<[(bool, bool); 3]>> {
    prop::collection::vec(any::<[(bool, bool); 3]>(), 1..40)
}

proptest! {
    #[test]
    fn one_lying_observer_never_changes_a_state(
        life in lives(), liar in 0..3_usize, truth: bool, fails in 1..4_u32,
    ) {
        let check = check(&json!({ "consecutive_fails": fails, "consecutive_successes": fails }));
        let mut agreement = Agreement::default();
        for (round, observers) in (0_u64..).zip(&life) {
            for (number, (lie, silent)) in observers.iter().enumerate() {
                let says = if number == liar { *lie } else { truth };
                let result = seen("WEU", number as u8 + 1, 60 * round + 20 * number as u64, says);
                if !silent {
                    let change = agreement.record(&check, &result, result.at);
                    prop_assert!(change.is_none_or(|change| change.healthy == truth));
                }
            }
        }
        prop_assert_ne!(agreement.healthy(), Some(!truth));
    }

    #[test]
    fn two_that_agree_always_do(life in lives(), other in 0..3_usize, truth: bool, fails in 1..4_u32) {
        let check = check(&json!({ "consecutive_fails": fails, "consecutive_successes": fails }));
        let mut agreement = Agreement::default();
        let mut second = 0;
        let mut hear = |number: usize, healthy| {
            second += 20;
            let result = seen("WEU", number as u8 + 1, second, healthy);
            agreement.record(&check, &result, result.at);
            agreement.healthy()
        };
        for (number, (healthy, _)) in life.iter().flat_map(|round| round.iter().enumerate()) {
            hear(number, *healthy);
        }
        let mut state = None;
        for (round, (lie, _)) in (0..fails).zip(life.iter().flatten().cycle()) {
            for number in 0..3 {
                state = hear(number, if number == other { *lie } else { truth });
            }
            prop_assert!(round + 1 < fails || state == Some(truth));
        }
        prop_assert_eq!(state, Some(truth));
    }

    #[test]
    fn late_and_repeated_results_change_nothing(
        life in lives(), repeats in prop::collection::vec((any::<prop::sample::Index>(), 0..60_usize), 0..40),
    ) {
        let check = check(&json!({ "consecutive_fails": 2 }));
        let results: Vec<ProbeResult> = (0_u64..)
            .zip(&life)
            .flat_map(|(round, observers)| {
                let at = move |number: usize| 60 * round + 20 * number as u64;
                observers.iter().enumerate().map(move |(number, (healthy, _))| seen("WEU", number as u8 + 1, at(number), *healthy))
            })
            .collect();
        let mut straight = Agreement::default();
        let changes = told(&check, &mut straight, &results);
        // Each is told again, some time after it was first told, at the clock of then.
        let mut order: Vec<(usize, &ProbeResult)> = results.iter().enumerate().collect();
        for (index, later) in repeats {
            let first = index.index(results.len());
            order.push((first + later, &results[first]));
        }
        order.sort_by_key(|(turn, _)| *turn);
        let mut again = Agreement::default();
        let mut clock = 0;
        let mut heard = Vec::new();
        for (_, result) in order {
            clock = clock.max(result.at);
            heard.extend(again.record(&check, result, clock).map(|change| change.healthy));
        }
        prop_assert_eq!(heard, changes);
        prop_assert_eq!(again, straight);
    }

    #[test]
    fn the_order_in_which_observers_are_heard_does_not_matter(life in lives(), seed: u64) {
        let check = check(&json!({}));
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut straight, mut mixed) = (Agreement::default(), Agreement::default());
        for (round, observers) in (0_u64..).zip(&life) {
            let mut results: Vec<ProbeResult> = observers
                .iter()
                .enumerate()
                .map(|(number, (healthy, _))| seen("WEU", number as u8 + 1, 60 * round + number as u64, *healthy))
                .collect();
            let now = results[2].at;
            for result in &results {
                straight.record(&check, result, now);
            }
            random.shuffle(&mut results);
            for result in &results {
                mixed.record(&check, result, now);
            }
            prop_assert_eq!(straight.healthy(), mixed.healthy());
        }
    }
}

#[test]
fn a_clock_that_is_ahead_does_not_silence_its_observer() {
    let check = check(&json!({}));
    let mut agreement = Agreement::default();
    let hour = 3_600;
    agreement.record(&check, &seen("WEU", 1, hour, true), START);
    agreement.record(&check, &seen("WEU", 1, 60, false), START + 60_000);
    let down = agreement.record(&check, &seen("WEU", 2, 61, false), START + 61_000);
    assert!(down.is_some_and(|change| !change.healthy));
}

#[test]
fn what_the_coordinator_cannot_be_told_is_bounded() {
    let mut untold = Vec::new();
    for second in 0..1_000 {
        remember(&mut untold, seen("WEU", 1, second, true));
    }
    assert_eq!(untold.len(), 100);
    assert_eq!(untold.last(), Some(&seen("WEU", 1, 999, true)), "the newest stay");
}
