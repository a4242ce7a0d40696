//! Turnstile: what its service says, and what follows from it.

use anteroom::config::{Room, parse_room};
use anteroom::ticket::Human;
use anteroom::turnstile::{Budget, CALLS_PER_SECOND, SERVICE_URL, Verdict};
use serde_json::json;

fn room(action: &str) -> Room {
    let fields = json!({
        "total_active_users": 1,
        "new_users_per_minute": 1,
        "turnstile_sitekey": "1x00000000000000000000AA",
        "turnstile_action": action,
    });
    parse_room("ROOM_SHOP", &fields).unwrap()
}

#[test]
fn only_a_word_against_the_token_makes_a_robot() {
    let failed = |codes: &str| Verdict::Failed(codes.to_owned());
    let silent = |codes: &str| Verdict::Silent(codes.to_owned());
    for (body, verdict, human) in [
        (r#"{"success":true,"hostname":"shop.example","action":"shop"}"#, Verdict::Passed, Human::Passed),
        (
            r#"{"success":false,"error-codes":["invalid-input-response"]}"#,
            failed("invalid-input-response"),
            Human::Failed,
        ),
        (r#"{"success":false,"error-codes":["timeout-or-duplicate"]}"#, Verdict::Again, Human::Unknown),
        (r#"{"success":false,"error-codes":["internal-error"]}"#, silent("internal-error"), Human::Unknown),
        (
            r#"{"success":false,"error-codes":["invalid-input-secret"]}"#,
            silent("invalid-input-secret"),
            Human::Unknown,
        ),
        (r#"{"success":false}"#, silent(""), Human::Unknown),
    ] {
        let read = Verdict::read(body, &room("log"), "shop.example");
        assert_eq!(read, verdict, "{body}");
        assert_eq!(read.human(Human::Unknown), human, "{body}");
    }
    for body in ["", "<html>", "{}", "null", r#"{"success":"yes"}"#] {
        let read = Verdict::read(body, &room("log"), "shop.example");
        assert!(matches!(read, Verdict::Silent(_)), "{body}");
    }
}

#[test]
fn a_token_of_another_page_is_a_failed_test() {
    let read = |hostname: &str, action: &str, host: &str| {
        let body = json!({ "success": true, "hostname": hostname, "action": action });
        Verdict::read(&body.to_string(), &room("log"), host)
    };
    for host in ["shop.example", "Shop.Example", "shop.example:8787"] {
        assert_eq!(read("shop.example", "shop", host), Verdict::Passed, "{host}");
    }
    assert_eq!(read("[::1]", "shop", "[::1]"), Verdict::Passed);
    for (hostname, action) in
        [("evil.example", "shop"), ("shop.example", "login"), ("shop.example", ""), ("", "shop")]
    {
        let verdict = read(hostname, action, "shop.example");
        assert_eq!(verdict.human(Human::Unknown), Human::Failed, "{hostname} {action}: {verdict:?}");
    }
    // With the service's secrets for trials everybody passes, and the answer names a host of its own.
    let trial = r#"{"success":true,"hostname":"example.com","metadata":{"result_with_testing_key":true}}"#;
    assert_eq!(Verdict::read(trial, &room("log"), "localhost:8787"), Verdict::Passed);
}

#[test]
fn whoever_is_not_judged_stays_who_they_were() {
    for known in [Human::Unknown, Human::Passed, Human::Failed] {
        assert_eq!(Verdict::Again.human(known), known);
        assert_eq!(Verdict::Silent("429".to_owned()).human(known), known);
    }
}

#[test]
fn a_flood_of_tokens_is_no_flood_of_questions() {
    let mut budget = Budget::default();
    let mut asked = |at: u64| (0..100).filter(|_| budget.number(at) <= CALLS_PER_SECOND).count();
    assert_eq!(asked(7_000), CALLS_PER_SECOND as usize);
    assert_eq!(asked(7_999), 0);
    assert_eq!(asked(8_000), CALLS_PER_SECOND as usize, "a new second");
}

#[test]
fn only_an_infinite_queue_keeps_anybody_out() {
    for human in [Human::Unknown, Human::Passed, Human::Failed] {
        assert!(room("log").trusts(human));
        assert_eq!(room("infinite_queue").trusts(human), human == Human::Passed);
    }
}

#[test]
fn the_widget_is_there_until_it_was_passed() {
    let html = room("log").turnstile_html(Human::Unknown, SERVICE_URL);
    assert!(html.contains("data-sitekey=\"1x00000000000000000000AA\" data-action=\"shop\""), "{html}");
    assert!(html.contains("src=\"https://challenges.cloudflare.com/turnstile/v0/api.js\""), "{html}");
    assert!(!room("log").turnstile_html(Human::Failed, SERVICE_URL).is_empty(), "who failed may try again");
    assert_eq!(room("log").turnstile_html(Human::Passed, SERVICE_URL), "");
    let without = json!({ "total_active_users": 1, "new_users_per_minute": 1 });
    assert_eq!(parse_room("ROOM_SHOP", &without).unwrap().turnstile_html(Human::Unknown, SERVICE_URL), "");
    let off = json!({ "total_active_users": 1, "new_users_per_minute": 1,
                      "turnstile_sitekey": "key", "turnstile_mode": "off" });
    assert_eq!(parse_room("ROOM_SHOP", &off).unwrap().turnstile, None);
}
