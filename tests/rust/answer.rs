//! What is said of a waiting visitor, and in the pages that say one thing. tests/page has the words.

use anteroom::answer::{
    Answer, Estimate, EventView, Message, WaitingView, admitted_status, facts, is_status_request, progress,
};
use anteroom::config::{Room, parse_room};
use serde_json::{Value, json};

fn room(more: &Value) -> Room {
    let mut fields = json!({
        "host": "shop.example.com",
        "path": "/sale",
        "total_active_users": 1000,
        "new_users_per_minute": 200,
        "queueing_status_code": 202,
    });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    parse_room("ROOM_SHOP", &fields).unwrap()
}

fn view(room: &Room) -> WaitingView<'_> {
    WaitingView {
        room,
        asks_for_status: false,
        estimate: Estimate::Known { seconds: 120 },
        people_ahead: Some(60),
        progress: Some(42),
        drawn: true,
        queue_all: false,
        held: false,
        event: None,
        kept_seconds: 50,
        refresh_seconds: 19,
        // 2026-07-01 14:03:22 UTC
        now_ms: 1_782_914_602_000,
        cookieless: false,
        infinite_queue: false,
        draw: None,
        turnstile: "",
        bring_again: false,
        continue_link: "/__anteroom/continue?to=%2Fsale&link=x",
        push: "",
    }
}

fn told(view: &WaitingView) -> Value {
    let text = facts(view, &[("set-cookie", "__anteroom=x".to_owned())]);
    assert!(text.starts_with('{'), "that is how entry.js knows it");
    serde_json::from_str(&text).unwrap()
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut values = answer.headers.iter().filter(|(given, _)| *given == name);
    let value = values.next().map(|(_, value)| value.as_str());
    assert!(values.next().is_none(), "{name} twice");
    value
}

#[test]
fn everything_known_of_a_waiting_visitor_is_told() {
    let room = room(&json!({}));
    assert_eq!(
        told(&view(&room)),
        json!({
            "status": 202,
            "headers": [["set-cookie", "__anteroom=x"]],
            "asksForStatus": false,
            "room": "shop",
            "host": "shop.example.com",
            "language": "en-US",
            "visitorLanguages": true,
            "customPage": "",
            "exactJson": false,
            "preferredJson": true,
            "embedded": false,
            "message": "",
            "showPosition": true,
            "showWait": true,
            "showProgress": true,
            "queueingMethod": "fifo",
            "queueAll": false,
            "held": false,
            "waitSeconds": 120,
            "waitSecondsLow": 84,
            "waitSecondsHigh": 168,
            "peopleAhead": 60,
            "progress": 42,
            "drawn": true,
            "event": null,
            "draw": null,
            "keptSeconds": 50,
            "confirmSeconds": 0,
            "refreshSeconds": 19,
            "now": 1_782_914_602_000_u64,
            "cookieless": false,
            "infiniteQueue": false,
            "turnstile": "",
            "bringAgain": false,
            "continueLink": "/__anteroom/continue?to=%2Fsale&link=x",
        })
    );
}

#[test]
fn the_owners_wishes_are_told() {
    let room = room(&json!({
        "custom_page_html": "sale",
        "default_template_language": "de-DE",
        "visitor_languages": false,
        "json_response_enabled": true,
        "json_response": "off",
        "message": "Bis gleich!",
        "show_position": false,
        "show_wait": false,
        "show_progress": false,
        "cookie_attributes": { "samesite": "none" },
    }));
    let told = told(&view(&room));
    for (name, value) in [
        ("customPage", json!("sale")),
        ("language", json!("de-DE")),
        ("visitorLanguages", json!(false)),
        ("exactJson", json!(true)),
        ("preferredJson", json!(false)),
        ("message", json!("Bis gleich!")),
        ("showPosition", json!(false)),
        ("showWait", json!(false)),
        ("showProgress", json!(false)),
        ("embedded", json!(true)),
    ] {
        assert_eq!(told[name], value, "{name}");
    }
}

#[test]
fn what_a_page_shows_stays_until_its_range_does_not_hold() {
    let known = |seconds| Estimate::Known { seconds };
    for (estimate, shown, told) in
        [(599, 600, 599), (601, 600, 600), (840, 600, 600), (841, 600, 841), (9, 0, 9)]
    {
        assert_eq!(known(estimate).held(Some(shown)), known(told), "{estimate} s, shown: {shown} s");
    }
    assert_eq!(known(700).held(None), known(700));
    let spread = Estimate::spread([300, 600, 900]);
    assert_eq!([spread.held(Some(1)), Estimate::Unknown.held(Some(1))], [spread, Estimate::Unknown]);
}

#[test]
fn a_wait_by_chance_is_told_by_its_quarters() {
    let room = room(&json!({}));
    let estimate = Estimate::Spread { quarter: 300, half: 600, three_quarters: 900 };
    let by_chance = told(&WaitingView { estimate, ..view(&room) });
    let waits = ["waitSecondsLow", "waitSeconds", "waitSecondsHigh"].map(|name| by_chance[name].clone());
    assert_eq!(waits, [json!(300), json!(600), json!(900)]);
    let unknown = told(&WaitingView { estimate: Estimate::Unknown, ..view(&room) });
    assert_eq!(unknown["waitSeconds"], Value::Null);
    assert_eq!(unknown["waitSecondsHigh"], Value::Null);
    let endless = told(&WaitingView { estimate: Estimate::Known { seconds: u64::MAX }, ..view(&room) });
    assert!(endless["waitSecondsHigh"].is_u64());
}

#[test]
fn an_event_is_told() {
    let room = room(&json!({}));
    let event = EventView {
        name: "drop",
        prequeueing: true,
        seconds_to_start: 60,
        seconds_to_end: 3_660,
        shuffle: true,
    };
    assert_eq!(
        told(&WaitingView { event: Some(event), ..view(&room) })["event"],
        json!({ "name": "drop", "prequeueing": true, "secondsToStart": 60, "secondsToEnd": 3_660, "shuffle": true })
    );
}

#[test]
fn progress_never_goes_back_and_never_arrives_before_the_visitor() {
    assert_eq!(progress(100, 100, 0), 0);
    assert_eq!(progress(50, 100, 0), 50);
    assert_eq!(progress(80, 100, 50), 50, "somebody older came back");
    assert_eq!(progress(200, 100, 7), 7);
    assert_eq!(progress(0, 100, 0), 99);
    assert_eq!(progress(0, 0, 0), 0, "nobody was ahead: nothing to go");
    assert_eq!(progress(0, u64::MAX, 255), 99);
}

#[test]
fn no_answer_is_stored_guessed_at_or_listed() {
    let answer = admitted_status();
    assert_eq!(header(&answer, "cache-control"), Some("private, no-store"));
    assert_eq!(header(&answer, "x-content-type-options"), Some("nosniff"));
    assert_eq!(header(&answer, "x-robots-tag"), Some("noindex"));
    assert_eq!(header(&answer, "referrer-policy"), Some("same-origin"));
    assert_eq!(header(&answer, "vary"), Some("Cookie, Accept, Anteroom-Status"));
    assert_eq!((answer.status, answer.body.as_str()), (200, "{\"admitted\":true}"));
}

#[test]
fn a_message_says_when_to_try_again_and_a_page_does_so_by_itself() {
    let room = room(&json!({ "default_template_language": "de-DE", "visitor_languages": false }));
    let headers = [("set-cookie", "__anteroom=x".to_owned())];
    let told = |message: Message, room, method| {
        serde_json::from_str::<Value>(&message.facts(room, method, &headers)).unwrap()
    };
    assert_eq!(
        told(Message::Busy { seconds: 3 }, Some(&room), "GET"),
        json!({
            "say": "busy",
            "status": 503,
            "headers": [["set-cookie", "__anteroom=x"]],
            "language": "de-DE",
            "visitorLanguages": false,
            "again": "tryAgain",
            "retryAfter": 3,
            "refreshes": true,
            "asksForStatus": false,
        })
    );
    let turn = told(Message::Turn { seconds: 60, asks_for_status: true }, Some(&room), "GET");
    let says = ["say", "again", "turnSeconds", "retryAfter", "asksForStatus"].map(|name| &turn[name]);
    assert_eq!(json!(says), json!(["turn", "enter", 60, 61, true]), "asking sooner is going in");
    assert_eq!(told(Message::TurnOver, Some(&room), "GET")["again"], "joinLine");
    let over = told(Message::LineOver, Some(&room), "GET");
    assert_eq!((&over["again"], &over["refreshes"]), (&json!("enter"), &json!(false)), "nobody loops");
    assert_eq!(told(Message::Late, None, "POST")["refreshes"], false, "the visitor sends it again");
    let languages = [told(Message::NotFound, None, "GET"), told(Message::BadPath, None, "GET")];
    for (message, (say, status)) in languages.iter().zip([("notFound", 404), ("badPath", 400)]) {
        assert_eq!((&message["say"], &message["status"]), (&json!(say), &json!(status)));
        assert_eq!((&message["language"], &message["visitorLanguages"]), (&json!("en-US"), &json!(true)));
        assert_eq!(
            (&message["again"], &message["retryAfter"]),
            (&json!(""), &json!(null)),
            "it does not help"
        );
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
