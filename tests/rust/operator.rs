//! Who gets in below `/__anteroom/`: the right token or session, and nobody else.

use anteroom::config::Made;
use anteroom::operator::{
    ENDPOINTS, Knock, MAX_OPERATORS, Needs, Operators, Role, SESSION_COOKIE, SESSION_MS, Session, Target,
    admit, is_from_elsewhere, session_cookie,
};
use anteroom::ticket::{KeyRing, Ticket};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};

const NOW: u64 = 1_700_000_045_678;
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=";
const ADMIN_TOKEN: &str = "the-token-of-the-admin";
const STEER: &str = "a-token-that-may-steer";
const VIEW: &str = "a-token-that-may-view";

fn operators() -> Operators {
    let (all, problems) =
        Operators::parse(Some(ADMIN_TOKEN), Some(&format!("anna:steer:{STEER}, wall:view:{VIEW}")));
    assert_eq!(problems, Vec::<String>::new());
    all
}

fn ring(keys: &str) -> KeyRing {
    KeyRing::parse(keys).unwrap()
}

fn cookie(value: &str) -> String {
    format!("seen=1; {SESSION_COOKIE}={value}")
}

fn sealed(operators: &Operators, token: &str) -> String {
    Session::seal(&ring(KEY), operators.by_token(token, NOW).unwrap(), NOW, [7; 12])
}

fn who(operators: &Operators, value: &str, at: u64) -> Option<String> {
    Session::of(&ring(KEY), operators, &cookie(value), at).map(|(operator, _)| operator.name.clone())
}

#[test]
fn every_token_has_its_name_and_role() {
    let all = operators();
    for (token, name, role) in
        [(ADMIN_TOKEN, "admin", Role::Configure), (STEER, "anna", Role::Steer), (VIEW, "wall", Role::View)]
    {
        let operator = all.by_token(token, NOW).unwrap();
        assert_eq!((operator.name.as_str(), operator.role), (name, role));
        assert!(!format!("{all:?}").contains(token), "a log shows no token");
    }
    for wrong in ["", "anna", &STEER[1..], &format!("{STEER}x"), &STEER.to_uppercase()] {
        assert_eq!(all.by_token(wrong, NOW), None, "{wrong}");
    }
}

#[test]
fn without_tokens_everything_is_closed() {
    for (admin, named) in [(None, None), (Some(""), Some("")), (Some("  "), Some(" , ,"))] {
        let (all, problems) = Operators::parse(admin, named);
        assert!(all.is_empty() && problems.is_empty(), "{problems:?}");
        assert_eq!(all.by_token("", NOW), None);
    }
}

#[test]
fn a_wrong_entry_is_left_out_and_its_problem_shows_no_secret() {
    let long = "n".repeat(33);
    for (entry, says) in [
        ("secret-token-of-anna".to_owned(), "colons"),
        ("secret-token-of-anna:view".to_owned(), "colons"),
        ("secret-token-of-anna:anna:view".to_owned(), "role"),
        (format!("anna:admin:{STEER}x"), "role"),
        (format!("an na:view:{STEER}x"), "name"),
        (format!(":view:{STEER}x"), "name"),
        (format!("{long}:view:{STEER}x"), "name"),
        ("bob:view:secret-of-15chr".to_owned()[..24].to_owned(), "16 characters"),
        (format!("bob:view:{STEER}:x"), "colon"),
        (format!("bob:view:{STEER} x"), "space"),
        (format!("admin:view:{STEER}x"), "ADMIN_TOKEN"),
        (format!("first:steer:{STEER}x"), "name of an earlier"),
        ("bob:steer:the-token-of-the-first".to_owned(), "token of another"),
        (format!("bob:steer:{ADMIN_TOKEN}"), "token of another"),
    ] {
        let list = format!("first:view:the-token-of-the-first,{entry},last:view:the-token-of-the-last");
        let (all, problems) = Operators::parse(Some(ADMIN_TOKEN), Some(&list));
        let [problem] = problems.as_slice() else { panic!("{entry}: {problems:?}") };
        assert!(problem.contains("entry 2") && problem.contains(says), "{entry}: {problem}");
        assert!(problem.contains("Fix: "), "{problem}");
        assert!(!problem.contains("secret") && !problem.contains(STEER), "{problem}");
        for token in [ADMIN_TOKEN, "the-token-of-the-first", "the-token-of-the-last"] {
            assert!(all.by_token(token, NOW).is_some(), "{entry}: the others work");
        }
    }
    let many: Vec<String> =
        (0..=MAX_OPERATORS).map(|number| format!("o{number}:view:token-of-operator-{number}")).collect();
    let (all, problems) = Operators::parse(None, Some(&many.join(",")));
    assert!(problems.len() == 1 && problems[0].contains("too many"), "{problems:?}");
    assert!(all.by_token("token-of-operator-0", NOW).is_some());
}

#[test]
fn a_short_admin_token_opens_nothing_and_the_others_work() {
    let (short, length) = ("fifteen-letters", &ADMIN_TOKEN[..16]);
    let (all, problems) = Operators::parse(Some(short), Some(&format!("anna:steer:{STEER}")));
    assert!(all.by_token(short, NOW).is_none() && all.by_token(STEER, NOW).is_some());
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("ADMIN_TOKEN needs at least 16 characters"), "{problems:?}");
    assert!(problems[0].contains("Fix: openssl rand") && !problems[0].contains(short), "{problems:?}");
    assert!(Operators::parse(Some(short), None).0.is_empty(), "everything is closed");
    assert!(Operators::parse(Some(length), None).0.by_token(length, NOW).is_some());
}

#[test]
fn a_session_holds_for_twelve_hours_or_until_its_token_changes() {
    let all = operators();
    let session = sealed(&all, STEER);
    assert_eq!(who(&all, &session, NOW).as_deref(), Some("anna"));
    assert_eq!(who(&all, &session, NOW + SESSION_MS - 1).as_deref(), Some("anna"));
    assert_eq!(who(&all, &session, NOW + SESSION_MS), None);
    for changed in [
        format!("anna:steer:{STEER}2"),
        format!("anna:view:{STEER}"),
        format!("bob:steer:{STEER}"),
        "wall:view:a-token-that-may-view".to_owned(),
    ] {
        let (changed, _) = Operators::parse(Some(ADMIN_TOKEN), Some(&changed));
        assert_eq!(who(&changed, &session, NOW), None, "{changed:?}");
    }
    let keys = |keys: &str| Session::of(&ring(keys), &all, &cookie(&session), NOW).is_some();
    assert!(keys(&format!("{OTHER_KEY},{KEY}")), "a rotated key");
    assert!(!keys(OTHER_KEY), "a key that is gone");
}

#[test]
fn a_ticket_is_no_session_and_a_session_no_ticket() {
    let (all, keys) = (operators(), ring(KEY));
    for room in ["shop", "operator session", "\u{81} operator session", " operator session"] {
        let ticket = keys.seal(room, &Ticket::new(7, NOW).admitted(NOW), [9; 12]);
        assert_eq!(who(&all, &ticket, NOW), None, "{room}");
        assert_eq!(keys.open(room, &sealed(&all, STEER)), None, "{room}");
    }
}

#[test]
fn the_cookie_is_for_our_own_pages_alone() {
    assert_eq!(
        session_cookie("abc", true),
        "__anteroom_operator=abc; Path=/__anteroom/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"
    );
    assert_eq!(
        session_cookie("", false),
        "__anteroom_operator=; Path=/__anteroom/; Max-Age=0; HttpOnly; SameSite=Strict"
    );
}

proptest! {
    #[test]
    fn whatever_is_changed_in_a_session_ends_it(at in 0..92_usize, with in any::<u8>()) {
        let all = operators();
        let mut bytes = sealed(&all, STEER).into_bytes();
        let at = at % bytes.len();
        let letter = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[usize::from(with) % 64];
        prop_assume!(bytes[at] != letter);
        bytes[at] = letter;
        prop_assert_eq!(who(&all, &String::from_utf8(bytes).unwrap(), NOW), None);
    }

    #[test]
    fn no_text_is_a_session_or_a_panic(value in "\\PC{0,200}", authorization in "\\PC{0,60}") {
        let all = operators();
        prop_assert_eq!(who(&all, &value, NOW), None);
        let knock = Knock { path: "status", method: "GET", authorization: &authorization, cookies: &value, ..Knock::default() };
        prop_assert_eq!(admit(&knock, &all, Some(&ring(KEY)), NOW).map_err(|refusal| refusal.status), Err(401));
    }
}

/// How a request may come, and what it may do then: read, and change.
#[test]
fn each_way_to_come_may_do_exactly_what_it_must() {
    let (all, keys) = (operators(), ring(KEY));
    let bearer = |token: &str| format!("Bearer {token}");
    let with = |token: &str| cookie(&sealed(&all, token));
    let ticket = cookie(&keys.seal("shop", &Ticket::new(7, NOW), [9; 12]));
    let (here, own, foreign) = ("same-origin", "https://shop.test", "https://evil.test");
    let ways: &[(&str, String, String, &str, &str, u16, u16)] = &[
        ("nothing", String::new(), String::new(), "", "", 401, 401),
        ("a wrong token", bearer("wrong"), String::new(), "", "", 401, 401),
        ("the admin's", bearer(ADMIN_TOKEN), String::new(), "", "", 200, 200),
        ("to steer", bearer(STEER), String::new(), "", "", 200, 200),
        ("in another case", format!("bearer  {STEER} "), String::new(), "", "", 200, 200),
        ("without a scheme", STEER.to_owned(), String::new(), "", "", 401, 401),
        ("as a password", format!("Basic {STEER}"), String::new(), "", "", 401, 401),
        ("to view", bearer(VIEW), String::new(), "", "", 200, 403),
        ("a token from a foreign page", bearer(STEER), String::new(), "cross-site", foreign, 200, 200),
        ("a session", String::new(), with(STEER), here, own, 200, 200),
        ("an old browser", String::new(), with(STEER), "", own, 200, 200),
        ("a session to view", String::new(), with(VIEW), here, own, 200, 403),
        ("a session from nowhere", String::new(), with(STEER), "", "", 200, 403),
        ("a foreign page", String::new(), with(STEER), "cross-site", foreign, 200, 403),
        ("another host of the site", String::new(), with(STEER), "same-site", own, 200, 403),
        ("a typed address", String::new(), with(STEER), "none", "", 200, 403),
        ("an old browser on a foreign page", String::new(), with(STEER), "", foreign, 200, 403),
        ("an unknown page", String::new(), with(STEER), "", "null", 200, 403),
        ("a wrong token besides", bearer("wrong"), with(STEER), here, own, 401, 401),
        ("a ticket", String::new(), ticket, here, own, 401, 401),
    ];
    for (way, authorization, cookies, fetch_site, origin, reads, acts) in ways {
        for endpoint in ENDPOINTS {
            let method = if endpoint.method.is_empty() { "PUT" } else { endpoint.method };
            let knock = Knock {
                path: endpoint.path,
                method,
                authorization,
                cookies,
                fetch_site,
                origin,
                own_origin: own,
            };
            let status = match admit(&knock, &all, Some(&keys), NOW) {
                Ok(admitted) => {
                    assert_eq!(admitted.target, endpoint.target);
                    assert!(endpoint.needs == Needs::Nothing || admitted.operator.is_some());
                    200
                }
                Err(refusal) => refusal.status,
            };
            let expected = match (endpoint.needs, endpoint.target) {
                (Needs::Nothing, _) => 200,
                // Whoever may view may listen; a foreign page may not.
                (_, Target::Live) if *reads == 200 && cookies.is_empty() => 200,
                (_, Target::Live) if *reads == 200 => {
                    if is_from_elsewhere(&knock) || (fetch_site.is_empty() && origin.is_empty()) {
                        403
                    } else {
                        200
                    }
                }
                (Needs::Role(Role::Steer | Role::Configure), _) => *acts,
                (Needs::Role(Role::View), _) => *reads,
            };
            assert_eq!(status, expected, "{way}: {method} {}", endpoint.path);
            let is_open = admit(&knock, &Operators::default(), Some(&keys), NOW).is_ok();
            assert_eq!(is_open, endpoint.needs == Needs::Nothing, "without tokens: {}", endpoint.path);
        }
    }
    let no_keys = Knock { path: "status", method: "GET", cookies: &with(STEER), ..Knock::default() };
    assert_eq!(admit(&no_keys, &all, None, NOW).map_err(|refusal| refusal.status), Err(401));
}

#[test]
fn what_is_not_there_is_404_and_another_method_405() {
    let all = operators();
    let ask = |method, path| {
        admit(&Knock { path, method, ..Knock::default() }, &all, None, NOW)
            .map(|admitted| admitted.target)
            .map_err(|refusal| (refusal.status, refusal.allow))
    };
    for path in ["x", "status/", "Status", "status/x", "/", "session/", "health/x", "draws/1"] {
        assert_eq!(ask("GET", path), Err((404, None)), "{path}");
    }
    assert_eq!(ask("PUT", "steering"), Err((405, Some("GET, HEAD, POST"))));
    assert_eq!(ask("POST", "status"), Err((405, Some("GET, HEAD"))));
    assert_eq!(ask("GET", "session"), Err((405, Some("POST"))));
    assert_eq!(ask("get", "draws"), Err((405, Some("GET, HEAD"))));
    assert_eq!(ask("HEAD", ""), Ok(Target::Page));
    assert_eq!(ask("HEAD", "session"), Err((405, Some("POST"))));
}

/// The edge's tests call whatever the documentation names.
#[test]
fn the_documentation_has_the_same_table() {
    let mut documented: Vec<(String, String, String)> = include_str!("../../docs/api.md")
        .lines()
        .filter_map(|line| {
            let [path, method, needs, ..] =
                line.strip_prefix("| `/__anteroom/")?.split(" | ").collect::<Vec<_>>()[..]
            else {
                return None;
            };
            let path = path.trim_end_matches('`').to_owned();
            Some((path, method.to_owned(), needs.to_owned()))
        })
        .collect();
    let mut there: Vec<_> = ENDPOINTS
        .iter()
        .map(|endpoint| {
            let needs = match endpoint.needs {
                Needs::Nothing if endpoint.method.is_empty() => "rules of its own",
                Needs::Nothing => "nothing",
                Needs::Role(role) => role.name(),
            };
            let method = if endpoint.method.is_empty() { "as there" } else { endpoint.method };
            (endpoint.path.to_owned(), method.to_owned(), needs.to_owned())
        })
        .collect();
    documented.sort();
    there.sort();
    assert_eq!(documented, there);
}

const MADE: &str = "anteroom_a-token-that-was-made-at-run-time";

fn with_made(role: &str, ends: Option<u64>) -> Operators {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(MADE));
    let token = |name: &str, hash: &str| json!([name, role, hash, ends]);
    let entries =
        [token("made", &hash), token("short", "AAAA"), token("wrong", "?"), json!(["nothing"]), json!(7)];
    let text = json!({ "version": 3, "tokens": entries }).to_string();
    let mut all = operators();
    all.add_made(&Made::read(&text).unwrap().tokens);
    all
}

#[test]
fn a_token_that_was_made_at_run_time_is_one_until_it_ends_or_is_revoked() {
    let all = with_made("steer", Some(NOW + 1_000));
    let operator = all.by_token(MADE, NOW).unwrap();
    assert_eq!((operator.name.as_str(), operator.role), ("made", Role::Steer));
    assert_eq!(all.by_token(MADE, NOW + 1_000), None, "it has ended");
    assert_eq!(all.by_token("", NOW), None, "what cannot be read is nobody's");
    assert!(all.by_token(STEER, NOW + 1_000).is_some(), "others go on");
    assert_eq!(all.signers(NOW).count(), all.signers(NOW + 1_000).count() + 1);
    let session = Session::seal(&ring(KEY), operator, NOW, [7; 12]);
    assert_eq!(who(&all, &session, NOW + 999), Some("made".to_owned()));
    assert_eq!(who(&all, &session, NOW + 1_000), None, "its sessions end with it");
    assert_eq!(who(&operators(), &session, NOW), None, "and when it is revoked");
    assert_eq!(operator.listens_until(NOW), Some(NOW + 1_000));
    let lasting = with_made("view", None);
    let operator = lasting.by_token(MADE, u64::MAX - 1).unwrap();
    assert_eq!(operator.listens_until(NOW), Some(NOW + 60_000), "who may be revoked is looked at again");
    assert_eq!(lasting.by_token(STEER, NOW).unwrap().listens_until(NOW), None);
    assert_eq!(with_made("owner", None).by_token(MADE, NOW), None, "a role that this code does not know");
}
