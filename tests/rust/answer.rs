//! What a waiting visitor gets: headers, words, policy, size.
//!
//! `ANTEROOM_PAGES=<folder>` makes `pages_to_look_at` write every page there, to open in a browser.

use std::sync::LazyLock;

use anteroom::answer::{
    Answer, Estimate, EventFacts, WaitingView, admitted_status, is_status_request, not_found,
    origin_unreachable, waiting_page, waiting_status,
};
use anteroom::config::{Room, parse_room};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

static NO_EVENT: LazyLock<EventFacts> = LazyLock::new(EventFacts::default);

fn room() -> Room {
    let fields = json!({
        "host": "shop.example.com",
        "path": "/sale",
        "total_active_users": 1000,
        "new_users_per_minute": 200,
        "slot_strategy": "counters",
        "on_error": "queue",
        "queueing_status_code": 202,
    });
    parse_room("ROOM_SHOP", &fields).unwrap()
}

fn view(room: &Room) -> WaitingView<'_> {
    WaitingView {
        room,
        url: "https://shop.example.com/sale/shoes?size=42",
        estimate: Estimate::Known { seconds: 120 },
        people_ahead: Some(60),
        queue_all: false,
        held: false,
        refresh_seconds: 19,
        // 2026-07-01 14:03:22 UTC
        now_ms: 1_782_914_602_000,
        cookieless: false,
        facts: &NO_EVENT,
    }
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut values = answer.headers.iter().filter(|(given, _)| *given == name);
    let value = values.next().map(|(_, value)| value.as_str());
    assert!(values.next().is_none(), "{name} twice");
    value
}

fn parsed(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).expect("JSON")
}

/// What stands between the only `<name>` and its `</name>`.
fn content_of<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<{name}>")).expect("the element starts");
    let (content, rest) = rest.split_once(&format!("</{name}>")).expect("the element ends");
    assert!(!rest.contains(&format!("<{name}")), "{name} twice");
    content
}

fn hash(content: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content.as_bytes())))
}

fn wait_text(seconds: u64) -> String {
    let room = room();
    let status = waiting_status(&WaitingView { estimate: Estimate::Known { seconds }, ..view(&room) });
    parsed(&status)["waitText"].as_str().expect("text").to_owned()
}

#[test]
fn the_page_has_the_rooms_status_code_and_reloads_itself() {
    for code in [200, 202, 429] {
        let room = Room { queueing_status_code: code, ..room() };
        let page = waiting_page(&view(&room));
        assert_eq!(page.status, code);
        assert_eq!(header(&page, "refresh"), Some("19; url=./shoes?size=42"));
        assert_eq!(header(&page, "retry-after"), Some("19"));
    }
}

#[test]
fn the_page_reloads_its_own_address_and_no_other() {
    let room = room();
    let refresh = |url: &str| {
        let page = waiting_page(&WaitingView { url, ..view(&room) });
        header(&page, "refresh").unwrap().to_owned()
    };
    assert_eq!(refresh("https://shop.example.com/"), "19; url=./");
    assert_eq!(refresh("https://shop.example.com/?x=1#demo"), "19; url=./?x=1");
    assert_eq!(refresh("https://shop.example.com/product/2"), "19; url=./2");
    assert_eq!(refresh("https://shop.example.com//evil.example"), "19; url=./evil.example");
    assert_eq!(refresh("https://shop.example.com/a/javascript:alert(1)"), "19; url=./javascript:alert(1)");
    assert_eq!(refresh(&format!("https://shop.example.com/{}", "x".repeat(3_000))), "19");
    assert_eq!(refresh("nonsense"), "19");
}

#[test]
fn no_answer_is_stored_guessed_at_or_listed() {
    let room = room();
    for answer in [
        waiting_page(&view(&room)),
        waiting_status(&view(&room)),
        admitted_status(),
        not_found(),
        origin_unreachable("GET"),
    ] {
        assert_eq!(header(&answer, "cache-control"), Some("private, no-store"));
        assert_eq!(header(&answer, "x-content-type-options"), Some("nosniff"));
        assert_eq!(header(&answer, "x-robots-tag"), Some("noindex"));
        assert_eq!(header(&answer, "referrer-policy"), Some("same-origin"));
        assert_eq!(header(&answer, "vary"), Some("Cookie, Accept, Anteroom-Status"));
        for (name, value) in &answer.headers {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert!(value.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{name}: {value}");
        }
    }
}

#[test]
fn the_policy_allows_exactly_the_script_and_style_of_the_page() {
    let room = room();
    let page = waiting_page(&view(&room));
    let policy = header(&page, "content-security-policy").expect("a policy");
    let directives: Vec<&str> = policy.split("; ").collect();
    let style = format!("style-src {}", hash(content_of(&page.body, "style")));
    let script = format!("script-src {}", hash(content_of(&page.body, "script")));
    assert_eq!(
        directives,
        [
            "default-src 'none'",
            &style,
            &script,
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'self'",
        ]
    );
    assert!(!page.body.contains(" style="), "the policy forbids style attributes");
    assert!(
        !page.body.contains(" onclick=") && !page.body.contains(" onload="),
        "the policy forbids event attributes"
    );
}

#[test]
fn a_message_page_runs_no_script() {
    for answer in [not_found(), origin_unreachable("GET")] {
        let policy = header(&answer, "content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; "));
        assert!(policy.contains(&format!("style-src {};", hash(content_of(&answer.body, "style")))));
        assert!(!policy.contains("script-src"));
        assert!(!answer.body.contains("<script"));
        assert!(answer.body.contains("<html lang=\"en\">"));
    }
    assert_eq!((not_found().status, header(&not_found(), "refresh")), (404, None));
    assert_eq!(origin_unreachable("GET").status, 502);
}

#[test]
fn the_page_is_small_and_needs_nothing_else() {
    let room = room();
    let page = waiting_page(&WaitingView {
        people_ahead: Some(u64::MAX),
        estimate: Estimate::Unknown,
        queue_all: true,
        cookieless: true,
        refresh_seconds: u32::MAX,
        ..view(&room)
    });
    assert!(page.body.len() < 15_000, "{} bytes", page.body.len());
    assert!(!page.body.contains("src="), "an external resource");
    assert!(!page.body.contains("@import") && !page.body.contains("url("), "an external resource");
    assert!(!page.body.contains("{{") && !page.body.contains("{%"), "an unfilled template");
}

#[test]
fn the_page_says_what_a_waiting_visitor_wants_to_know() {
    let room = room();
    let page = waiting_page(&view(&room)).body;
    for words in [
        "<html lang=\"en\">",
        "<title>About 2 minutes – waiting room</title>",
        "<b>shop.example.com</b>",
        "about 2 minutes",
        "About 60 people are ahead of you.",
        "14:03:22 UTC",
        "aria-live=\"polite\"",
        "data-refresh=\"19\"",
        "data-wait-seconds=\"120\"",
        "data-state=\"ajar\"",
        "come back within 5 minutes",
        "reloads itself every 19 seconds",
        "allow cookies",
    ] {
        assert!(page.contains(words), "{words} is missing");
    }
}

#[test]
fn an_unknown_wait_is_called_unknown() {
    let room = room();
    let view = WaitingView { estimate: Estimate::Unknown, ..view(&room) };
    let page = waiting_page(&view).body;
    assert!(page.contains("not known yet"));
    assert!(page.contains("data-wait-seconds=\"\""));
    assert!(!content_of(&page, "title").contains("minute"));
    let status = parsed(&waiting_status(&view));
    assert_eq!(status["waitKnown"], false);
    assert_eq!(status["waitSeconds"], Value::Null);
    assert_eq!(status["waitText"], "not known yet");
}

#[test]
fn a_closed_room_promises_no_time_but_the_place() {
    let room = room();
    let view = WaitingView { queue_all: true, ..view(&room) };
    let page = waiting_page(&view).body;
    assert!(page.contains("nobody is let in right now"));
    assert!(page.contains("Your place is kept."));
    assert!(page.contains("data-state=\"closed\""));
    let status = parsed(&waiting_status(&view));
    assert_eq!(status["queueAll"], true);
    assert_eq!(status["waitKnown"], false);
}

#[test]
fn every_value_from_outside_is_escaped() {
    let host = "<script>alert('1')</script>&\"x\"";
    let room = Room { host: Some(host.to_owned()), ..room() };
    let page = waiting_page(&view(&room)).body;
    assert!(!page.contains("alert('1')"));
    assert!(!page.contains("&\"x\""));
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("&#60;script&#62;"));
}

#[test]
fn a_room_of_every_host_names_none() {
    let room = Room { host: None, ..room() };
    assert_eq!(content_of(&waiting_page(&view(&room)).body, "h1"), "You are in line");
}

#[test]
fn refused_cookies_are_told() {
    let room = room();
    let hidden = "id=\"cookies\" class=\"trouble\" hidden>";
    assert!(waiting_page(&view(&room)).body.contains(hidden));
    assert!(!waiting_page(&WaitingView { cookieless: true, ..view(&room) }).body.contains(hidden));
}

#[test]
fn whoever_is_turned_away_is_not_told_to_come_back() {
    let room = room();
    let facts = EventFacts { turned_away: true, ..EventFacts::default() };
    let turned_away = WaitingView { refresh_seconds: 0, facts: &facts, ..view(&room) };
    let answer = waiting_page(&turned_away);
    assert_eq!((header(&answer, "refresh"), header(&answer, "retry-after")), (None, None));
}

#[test]
fn the_status_has_all_that_the_script_reads() {
    let room = room();
    let answer = waiting_status(&view(&room));
    assert_eq!(answer.status, 200);
    assert_eq!(header(&answer, "content-type"), Some("application/json"));
    assert_eq!(header(&answer, "retry-after"), Some("19"));
    assert_eq!(header(&answer, "refresh"), None);
    assert_eq!(
        parsed(&answer),
        json!({
            "admitted": false,
            "waitKnown": true,
            "waitSeconds": 120,
            "waitText": "about 2 minutes",
            "waitLabel": "Estimated wait",
            "waitNote": "Whoever came first goes in first. You are let in by this page as soon as it is your turn.",
            "title": "About 2 minutes – waiting room",
            "peopleAhead": 60,
            "peopleText": "About 60 people are ahead of you.",
            "queueAll": false,
            "refreshSeconds": 19,
            "facts": EventFacts::default(),
        })
    );
    assert_eq!(admitted_status().status, 200);
    assert_eq!(admitted_status().body, "{\"admitted\":true}");
}

#[test]
fn page_and_status_use_the_same_words() {
    let room = room();
    for (estimate, queue_all) in
        [(Estimate::Known { seconds: 400 }, false), (Estimate::Unknown, false), (Estimate::Unknown, true)]
    {
        let view = WaitingView { estimate, queue_all, ..view(&room) };
        let page = waiting_page(&view).body;
        let status = parsed(&waiting_status(&view));
        for field in ["waitText", "waitLabel", "waitNote", "title", "peopleText"] {
            let words = status[field].as_str().expect("text");
            assert!(page.contains(&format!(">{words}<")), "{field}: {words}");
        }
    }
}

#[test]
fn long_waits_are_told_coarsely_and_rounded_up() {
    for (seconds, text) in [
        (0, "less than a minute"),
        (59, "less than a minute"),
        (60, "about 1 minute"),
        (61, "about 2 minutes"),
        (120, "about 2 minutes"),
        (600, "about 10 minutes"),
        (601, "about 15 minutes"),
        (3_300, "about 55 minutes"),
        (3_301, "about 1 hour"),
        (3_600, "about 1 hour"),
        (3_601, "about 1.5 hours"),
        (7_200, "about 2 hours"),
        (43_200, "about 12 hours"),
        (43_201, "more than 12 hours"),
        (u64::MAX, "more than 12 hours"),
    ] {
        assert_eq!(wait_text(seconds), text, "{seconds}");
    }
}

#[test]
fn people_are_counted_in_words_fit_to_read() {
    let room = room();
    for (people_ahead, text) in [
        (0, "You are among the next to go in."),
        (1, "One person is ahead of you."),
        (2, "About 2 people are ahead of you."),
        (999, "About 999 people are ahead of you."),
        (1_000, "About 1,000 people are ahead of you."),
        (1_234_567, "About 1,234,567 people are ahead of you."),
    ] {
        let status = waiting_status(&WaitingView { people_ahead: Some(people_ahead), ..view(&room) });
        assert_eq!(parsed(&status)["peopleText"], text);
    }
}

#[test]
fn only_the_value_one_asks_for_a_status() {
    assert!(is_status_request(Some("1")));
    assert!(is_status_request(Some(" 1 ")));
    for other in [None, Some(""), Some("0"), Some("11"), Some("true")] {
        assert!(!is_status_request(other), "{other:?}");
    }
}

#[test]
fn pages_to_look_at() {
    let Some(folder) = std::env::var_os("ANTEROOM_PAGES") else { return };
    let folder = std::path::Path::new(&folder);
    let room = room();
    let known = view(&room);
    for (name, answer) in [
        ("known", waiting_page(&known)),
        ("unknown", waiting_page(&WaitingView { estimate: Estimate::Unknown, people_ahead: None, ..known })),
        ("closed", waiting_page(&WaitingView { queue_all: true, people_ahead: Some(1_204), ..known })),
        ("cookieless", waiting_page(&WaitingView { cookieless: true, ..known })),
        ("not-found", not_found()),
        ("origin-unreachable", origin_unreachable("GET")),
        ("status", waiting_status(&known)),
    ] {
        let headers: serde_json::Map<String, Value> =
            answer.headers.iter().map(|(header, value)| ((*header).to_owned(), json!(value))).collect();
        std::fs::write(folder.join(format!("{name}.html")), &answer.body).expect("written");
        std::fs::write(
            folder.join(format!("{name}.json")),
            json!({ "status": answer.status, "headers": headers }).to_string(),
        )
        .expect("written");
    }
}
