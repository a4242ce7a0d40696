//! Rooms that were made at run time: read as vars would be, beside those of vars.

use anteroom::config::{Coverage, MAX_ROOMS_MADE, Made, Part, Rooms};
use anteroom::machines::configuration::{Copy, Learner, Look, Step};
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
fn the_longest_path_of_a_thousand_covers_a_request() {
    let words = ["a", "b", "c.d", "e"];
    let spelled = |number: usize, length: usize| -> String {
        (0..length).map(|place| format!("/{}", words[number / 4_usize.pow(place as u32) % 4])).collect()
    };
    // Every path of up to three segments, on two hosts and on all.
    let places: Vec<(String, String)> = ["x.test", "y.test", ""]
        .iter()
        .flat_map(|host| (1..=3).map(move |length| (host, length)))
        .flat_map(|(host, length)| (0..4_usize.pow(length)).map(move |number| (host, length, number)))
        // Some are left out, so that others cover what is below.
        .filter(|(host, length, number)| !(number + *length as usize + host.len()).is_multiple_of(3))
        .map(|(host, length, number)| ((*host).to_owned(), spelled(number, length as usize)))
        .collect();
    let all: Vec<Value> = places
        .iter()
        .enumerate()
        .map(|(number, (host, path))| {
            let mut table = table(host, path);
            if host.is_empty() {
                table.as_object_mut().unwrap().remove("host");
            }
            json!([format!("{number:032x}"), format!("{host}{path}"), table])
        })
        .collect();
    let (rooms, errors) = made(&all.into(), &json!([])).with(std::iter::empty());
    assert_eq!(errors, []);
    for host in ["x.test", "Y.test", "z.test"] {
        for number in 0..256 {
            for end in ["", "/", ".json", "/deep/er", "x"] {
                let whole = spelled(number, 4);
                let path = format!("{whole}{end}");
                let expected = places
                    .iter()
                    .filter(|(own, room)| {
                        (own.is_empty() || own.eq_ignore_ascii_case(host))
                            && (path == *room
                                || path.starts_with(&format!("{room}/"))
                                || path
                                    .strip_prefix(room.as_str())
                                    .is_some_and(|rest| rest.starts_with('.') && !rest.contains('/')))
                    })
                    .max_by_key(|(own, room)| (room.len(), !own.is_empty()));
                let expected = expected.map(|(own, room)| format!("{own}{room}"));
                assert_eq!(found(&rooms, host, &path), expected.as_deref(), "{host}{path}");
            }
        }
    }
}

#[test]
fn where_rooms_were_is_known_beside_where_they_are() {
    let text = json!({
        "version": 7, "rooms": [[SALE, "Sale", table("a.example.com", "/new")]],
        "gone": [[SALE, "Sale", table("a.example.com", "/old")], [NIGHT, "night", { "path": 7 }]],
    });
    let made = Made::read(&text.to_string()).unwrap();
    let (rooms, errors) = made.with(vars());
    assert_eq!(errors, [], "what is wrong with what is gone is nobody's mistake");
    assert_eq!(
        (found(&rooms, "a.example.com", "/new"), found(&rooms, "a.example.com", "/old")),
        (Some("Sale"), None)
    );
    let gone = made.gone();
    assert_eq!(gone.cover("a.example.com", "/old/x").map(|room| room.name.as_str()), Some(SALE));
    assert_eq!(gone.cover("a.example.com", "/new"), None);
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

/// Carries out a look of an isolate: what the cache has, when another isolate has said that it asks, and what the object has.
/// Returns whether the object was asked.
fn look(learner: &mut Learner, look: Look, copy: Copy, object: u64, now: u64) -> bool {
    look_where(true, learner, look, copy, object, now)
}

/// The same where rooms are deployed, or none.
fn look_where(
    has_rooms: bool,
    learner: &mut Learner,
    mut look: Look,
    copy: Copy,
    object: u64,
    now: u64,
) -> bool {
    let mut step = look.begin();
    let mut asks = false;
    while step != Step::End {
        step = match step {
            Step::Read => look.found(learner, Some(copy), has_rooms, now),
            Step::ReadClaim => look.claimed(learner, None, now),
            Step::Claim => Step::Ask,
            Step::Ask => {
                asks = true;
                look.told(Some(object))
            }
            Step::Keep | Step::End => Step::End,
        };
    }
    if learner.looked(&look) {
        learner.learned(if asks { object } else { copy.version });
    }
    asks
}

#[test]
fn where_no_room_is_deployed_the_first_one_is_waited_for_like_every_other() {
    let copy = Copy { version: 0, kept_at: 100_000 };
    for (has_rooms, at, asks) in [(true, 129_999, false), (false, 101_199, false), (false, 101_200, true)] {
        let mut learner = Learner::default();
        let visitors = learner.look(false, at);
        assert_eq!(look_where(has_rooms, &mut learner, visitors, copy, 1, at), asks);
    }
}

#[test]
fn operators_trust_no_old_copy_that_says_that_nothing_was_ever_made() {
    let copy = Copy { version: 0, kept_at: 100_000 };
    let now = 105_000;
    let mut learner = Learner::default();
    let visitors = learner.look(false, now);
    assert!(!look(&mut learner, visitors, copy, 1, now), "good enough for visitors");
    assert_eq!(learner.known(), Some(0));
    // A token is the first that was ever made.
    assert!(learner.is_old(now));
    let operators = learner.look_for_operators(now).unwrap();
    assert!(learner.look_for_operators(now + 1).is_none(), "of many at once one looks");
    assert!(look(&mut learner, operators, copy, 1, now));
    assert_eq!(learner.known(), Some(1));
    assert!(!learner.is_old(now + 900));
    assert!(learner.is_old(now + 1_000), "it may have been revoked since");
    // Where one was given up in the middle, another one looks.
    assert!(learner.look_for_operators(now + 1_000).is_some());
    assert!(learner.look_for_operators(now + 2_000).is_some());
}
