//! Turnstile: what its service says, and what follows from it.

use anteroom::config::{Room, parse_room};
use anteroom::ticket::Human;
use anteroom::turnstile::{SERVICE_URL, Verdict};
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
        (r#"{"success":true,"hostname":"shop.example"}"#, Verdict::Passed, Human::Passed),
        (
            r#"{"success":false,"error-codes":["invalid-input-response"]}"#,
            failed("invalid-input-response"),
            Human::Failed,
        ),
        (r#"{"success":false,"error-codes":["timeout-or-duplicate"]}"#, Verdict::Again, Human::Unknown),
        (r#"{"success":false,"error-codes":["internal-error"]}"#, silent("internal-error"), Human::Passed),
        (
            r#"{"success":false,"error-codes":["invalid-input-secret"]}"#,
            silent("invalid-input-secret"),
            Human::Passed,
        ),
        (r#"{"success":false}"#, silent(""), Human::Passed),
    ] {
        let read = Verdict::read(body);
        assert_eq!(read, verdict, "{body}");
        assert_eq!(read.human(Human::Unknown), human, "{body}");
    }
    for body in ["", "<html>", "{}", "null", r#"{"success":"yes"}"#] {
        assert!(matches!(Verdict::read(body), Verdict::Silent(_)), "{body}");
    }
}

#[test]
fn a_token_that_was_used_before_unsays_nothing() {
    for known in [Human::Unknown, Human::Passed, Human::Failed] {
        assert_eq!(Verdict::Again.human(known), known);
    }
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
