//! Rooms that were made at run time: read as vars would be, beside those of vars.

use anteroom::config::{Coverage, MAX_ROOMS_MADE, Made, Part, Rooms};
use serde_json::{Value, json};

const SALE: &str = "0123456789abcdef0123456789abcdef";
const NIGHT: &str = "fedcba9876543210fedcba9876543210";

fn table(host: &str, path: &str) -> Value {
    json!({ "host": host, "path": path, "total_active_users": 300, "new_users_per_minute": 200 })
}

fn vars() -> impl Iterator<Item = (String, Value)> {
    let shop = json!({ "path": "/shop", "total_active_users": 5, "new_users_per_minute": 5 });
    [("ROOM_SHOP".to_owned(), shop), ("DEFAULTS".to_owned(), json!({ "session_duration": 9 }))].into_iter()
}

fn made(rooms: &Value, events: &Value) -> Made {
    let text =
        json!({ "v": 1, "version": 7, "crawlers": true, "rooms": rooms, "events": events, "later": 1 });
    Made::read(&text.to_string()).unwrap()
}

fn found<'a>(rooms: &'a Rooms, host: &str, path: &str) -> Option<&'a str> {
    match rooms.find(host, path) {
        Coverage::Covered(room) => Some(room.label()),
        _ => None,
    }
}

#[test]
fn they_are_rooms_like_others_known_by_their_ids() {
    let event = json!({
        "room": SALE, "event_start_time": "2026-11-28T09:00:00Z", "event_end_time": "2026-11-28T19:00:00Z",
        "session_duration": 2,
    });
    let made =
        made(&json!([[SALE, "Sale", table("a.example.com", "/sale")]]), &json!([[NIGHT, "night", event]]));
    assert_eq!((made.version, made.crawlers_bypass), (7, Some(true)));
    let (rooms, errors) = made.with(vars());
    assert_eq!(errors, []);
    assert_eq!(found(&rooms, "a.example.com", "/sale/x"), Some("Sale"));
    assert_eq!(found(&rooms, "A.Example.com:443", "/sale"), Some("Sale"));
    assert_eq!(found(&rooms, "b.example.com", "/sale"), None);
    for host in ["a.example.com", "b.example.com"] {
        assert_eq!(found(&rooms, host, "/shop"), Some("shop"), "a room of every host");
    }
    let room = rooms.get(SALE).unwrap();
    assert_eq!((room.name.as_str(), room.session_duration), (SALE, 5), "what vars share is theirs alone");
    assert_eq!(room.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), [NIGHT]);
    for label in ["sale", "SALE", SALE] {
        assert_eq!(rooms.by_label(label).map(|room| room.name.as_str()), Some(SALE));
    }
    assert_eq!(rooms.by_label("night").map(|room| room.name.as_str()), None);
}

#[test]
fn what_is_deployed_comes_first() {
    // By its name alone it would stand before the deployed one.
    let mut like_shop = table("a.example.com", "/shop");
    like_shop.as_object_mut().unwrap().remove("host");
    let (rooms, errors) = made(&json!([[SALE, "Sale", like_shop]]), &json!([])).with(vars());
    assert_eq!(found(&rooms, "a.example.com", "/shop"), Some("shop"));
    assert_eq!(
        errors.iter().map(|error| (error.part, error.name.as_str())).collect::<Vec<_>>(),
        [(Part::Room, SALE)]
    );
}

#[test]
fn there_are_a_thousand_at_most_and_each_is_found() {
    let id = |number: usize| format!("{number:032x}");
    let all: Vec<Value> = (0..MAX_ROOMS_MADE)
        .map(|number| {
            json!([
                id(number),
                format!("room-{number}"),
                table(&format!("h{}.test", number % 500), &format!("/{number}"))
            ])
        })
        .collect();
    let (rooms, errors) = made(&all.into(), &json!([])).with(vars());
    assert_eq!(rooms.len(), MAX_ROOMS_MADE);
    assert_eq!(errors.len(), 1, "with the deployed one it is one too many: {errors:?}");
    for number in [0, 1, 499, 500, 998] {
        let host = format!("h{}.test", number % 500);
        assert_eq!(found(&rooms, &host, &format!("/{number}")), Some(format!("room-{number}").as_str()));
        assert_eq!(found(&rooms, "h.test", &format!("/{number}")), None);
    }
}

#[test]
fn what_is_no_such_text_is_none() {
    for text in [
        "",
        "7",
        "[]",
        "{}",
        r#"{"version":"1"}"#,
        r#"{"version":1,"rooms":[["a"]]}"#,
        r#"{"version":1,"rooms":[[1,"a",{}]]}"#,
    ] {
        assert_eq!(Made::read(text), None, "{text}");
    }
    assert_eq!(Made::read(r#"{"version":0}"#), Some(Made::default()));
}
