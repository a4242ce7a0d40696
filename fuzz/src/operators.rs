//! What operators send, and whoever claims to be one.

use std::sync::LazyLock;

use anteroom::config::Rooms;
use anteroom::room::Room;
use serde_json::json;

/// A room with an event that begins in a minute.
static ROOM: LazyLock<Room> = LazyLock::new(|| {
    let vars = json!({
        "ROOM_SHOP": {
            "total_active_users": { "min": 10, "max": 1_000 }, "new_users_per_minute": 200, "limits": "adaptive",
        },
        "EVENT_SALE": {
            "room": "shop", "event_start_time": "2023-03-28T10:41:00Z", "event_end_time": "2023-03-28T11:41:00Z",
            "prequeue_start_time": "2023-03-28T10:30:00Z", "shuffle_at_event_start": true, "total_active_users": 3_000, "new_users_per_minute": 600,
        },
    });
    let vars = vars.as_object().cloned().unwrap_or_default();
    let (rooms, errors) = Rooms::from_vars(vars.into_iter());
    assert_eq!(errors, []);
    rooms.get("shop").cloned().unwrap()
});

/// An order is done as a whole or not at all, within the bounds of a deploy, and what is in force is stored and travels as
/// it is. Each line of the input is an order, a second after the one before.
pub mod orders {
    use anteroom::room::{AdaptiveRange, Room};
    use anteroom::steering::{Order, Overrides, Steering};
    use anteroom::wire;

    use super::ROOM;

    pub fn run(input: &[u8]) {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let mut steering = Steering::default();
        for (line, now) in text.lines().take(8).zip((crate::NOW..).step_by(1_000)) {
            let Ok(order) = Order::read(line) else { continue };
            let before = steering.clone();
            match steering.obey(&ROOM, &order, "anna", now) {
                Err(refusal) => {
                    assert!(matches!(refusal.status, 400 | 409) && !refusal.error.is_empty());
                    assert_eq!(steering, before, "{line}");
                }
                Ok(log) => {
                    assert_eq!(steering.version, before.version + u32::from(!log.is_empty()), "{line}");
                    assert!(order.if_version.is_none_or(|version| version == before.version), "{line}");
                    assert!(!log.is_empty() || steering == before, "{line}");
                }
            }
            let stored = steering.write().unwrap();
            let (read, overrides) = (Steering::read(&stored), steering.overrides());
            assert_eq!((read.overrides(), read.write()), (overrides.clone(), Ok(stored)), "{line}");
            travels(&overrides);
            is_within_bounds(&ROOM.steered(&overrides));
        }
    }

    /// It is the same on the wire and as JSON.
    pub fn travels(overrides: &Overrides) {
        assert_eq!(wire::decode(&wire::encode(overrides).unwrap()).as_ref(), Ok(overrides));
        let json = serde_json::to_string(overrides).unwrap();
        assert_eq!(serde_json::from_str::<Overrides>(&json).unwrap(), *overrides);
    }

    fn is_within_bounds(room: &Room) {
        for room in room.events.iter().map(|event| &event.active).chain([room]) {
            assert!((1..=2_147_483_647).contains(&room.total_active_users), "{}", room.total_active_users);
            assert!(
                (1..=2_147_483_647).contains(&room.new_users_per_minute),
                "{}",
                room.new_users_per_minute
            );
            assert!((60_000..=1_800_000).contains(&room.session_ms()));
            assert!((5..=60).contains(&room.refresh_interval_seconds));
            assert!(room.refresh_interval_seconds <= room.refresh_interval_max_seconds);
            assert!(room.page.message.chars().count() <= 500 && !room.page.message.contains('\n'));
            let is_below = |range: AdaptiveRange| {
                range.least_active_users <= room.total_active_users
                    && range.least_new_users <= room.new_users_per_minute
            };
            assert!(room.adaptive.is_none_or(is_below), "{:?}", room.adaptive);
        }
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        crate::paragraphs(include_str!("../seeds/orders.txt"))
    }
}

/// What is stored of orders is kept, whatever it is. What cannot be read closes the room to new users, unless its writer
/// has said that it may be ignored. The input is the JSON that is stored.
pub mod stored_orders {
    use anteroom::steering::{Steering, UnreadEffect};
    use anteroom::wire;
    use serde_json::Value;

    use super::ROOM;

    pub fn run(input: &[u8]) {
        let Ok(text) = std::str::from_utf8(input) else { return };
        // Numbers with a fraction may differ in their last digit when they are read again.
        let parts: Option<Value> = serde_json::from_str(text).ok();
        if parts.is_some_and(|parts| serde_json::from_str::<Value>(&parts.to_string()).ok() != Some(parts)) {
            return;
        }
        let stored = wire::encode(&text).unwrap();
        let steering = Steering::read(&stored);
        let written = steering.write().unwrap();
        let (again, overrides) = (Steering::read(&written), steering.overrides());
        assert_eq!((again.overrides(), again.write()), (overrides.clone(), Ok(written.clone())), "{text}");
        super::orders::travels(&overrides);
        let room = ROOM.steered(&overrides);
        let effect = steering.unread().map(|unread| unread.effect);
        match effect {
            None => assert!(!overrides.unreadable, "{text}"),
            Some(UnreadEffect::Closed) => assert!(room.queue_all && overrides.unreadable, "{text}"),
            Some(UnreadEffect::Ignored) => assert!(text.contains("optional"), "{text}"),
            Some(UnreadEffect::LastKnown) => panic!("nothing was learned: {text}"),
        }
        // Nothing of it is lost: all names are still there.
        if let (Ok(Value::Object(before)), Ok(after)) =
            (serde_json::from_str(text), wire::decode::<String>(&written))
        {
            let after: Value = serde_json::from_str(&after).unwrap();
            for name in before.keys().filter(|name| *name != "v") {
                assert!(after.get(name).is_some(), "{name} of {text}");
            }
        }
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        crate::paragraphs(include_str!("../seeds/stored_orders.txt"))
    }
}

/// A question for the history asks for no more than may be told, and is answered by as many rows; a time that is read is
/// written so that it reads the same. The first line of the input is the query, the second one a time.
pub mod queries {
    use anteroom::history::{Format, Query};
    use anteroom::time::{milliseconds, rfc3339};
    use serde_json::Value;
    use url::form_urlencoded::parse;

    use crate::NOW;

    const MOST_ROWS: u32 = 3_000;

    pub fn run(input: &[u8]) {
        let Some((query, time)) = crate::lines(input) else { return };
        if let Some(ms) = milliseconds(time).filter(|ms| *ms < 253_402_300_800_000) {
            assert_eq!(milliseconds(&rfc3339(ms)), Some(ms - ms % 1_000), "{time}");
        }
        let asked = |name: &str| {
            parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let query = match Query::read(asked, NOW) {
            Ok(query) => query,
            Err(bad) => return assert!(bad.0.contains("Fix: "), "{query}: {}", bad.0),
        };
        assert!(query.from < query.to && query.to - query.from <= MOST_ROWS, "{query:?}");
        assert!(!query.fields.is_empty() && query.fields.len() <= 23 && query.colo.len() <= 8, "{query:?}");
        let (first, last) = query.minutes();
        assert!(first < last && u64::from(last) * 60_000 <= NOW + 3_600_000, "{query:?}");
        if query.to - query.from > 20 {
            return;
        }
        let answer = query.answer("shop", &[], Some(first), NOW, NOW);
        if query.format == Format::Json {
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let rows = answer["rows"].as_array().unwrap();
            assert!(rows.len() as u32 <= query.to - query.from);
            assert!(rows.iter().all(|row| row.as_array().unwrap().len() == 1 + query.fields.len()));
        } else {
            let widths = answer.lines().map(|line| line.split(',').count());
            assert!(widths.into_iter().all(|width| width == 1 + query.fields.len()), "{answer}");
        }
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        crate::paragraphs(include_str!("../seeds/queries.txt"))
    }
}

/// Nobody gets in without a token, or the session of one, whose role is large enough; and nobody marks a rehearsal.
///
/// The lines of the input are path, method, `Authorization`, `Cookie`, `Sec-Fetch-Site`, `Origin`, and a mark.
pub mod access {
    use std::sync::LazyLock;

    use anteroom::operator::{ENDPOINTS, Knock, Needs, Operators, Role, Session, admit};
    use anteroom::rehearsal::Mark;
    use anteroom::ticket::KeyRing;

    use crate::NOW;

    const TOKENS: [(&str, Role); 3] = [
        ("0123456789abcdef", Role::Configure),
        ("annas-own-token-1", Role::Steer),
        ("walls-own-token-2", Role::View),
    ];
    const OWN: &str = "https://shop.example.com";

    static OPERATORS: LazyLock<Operators> = LazyLock::new(|| {
        let [(admin, _), (anna, _), (wall, _)] = TOKENS;
        let (operators, problems) =
            Operators::parse(Some(admin), Some(&format!("anna:steer:{anna},wall:view:{wall}")));
        assert!(problems.is_empty());
        operators
    });
    static KEYS: LazyLock<KeyRing> =
        LazyLock::new(|| KeyRing::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8").unwrap());
    /// The sessions of all three.
    static SESSIONS: LazyLock<[String; 3]> = LazyLock::new(|| {
        TOKENS.map(|(token, _)| Session::seal(&KEYS, OPERATORS.by_token(token, NOW).unwrap(), NOW, [7; 12]))
    });

    pub fn run(input: &[u8]) {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let mut lines = text.split('\n');
        let mut next = || lines.next().unwrap_or_default();
        let knock = Knock {
            path: next(),
            method: next(),
            authorization: next(),
            cookies: next(),
            fetch_site: next(),
            origin: next(),
            own_origin: OWN,
        };
        // Nothing here signs a mark.
        assert!(Mark::read(next(), OPERATORS.signers(NOW), NOW).is_err(), "{text}");
        let admitted = match admit(&knock, &OPERATORS, Some(&KEYS), NOW + 1) {
            Ok(admitted) => admitted,
            Err(refusal) => return assert!(matches!(refusal.status, 401 | 403 | 404 | 405)),
        };
        let endpoint = ENDPOINTS.iter().find(|endpoint| {
            let method = if knock.method == "HEAD" { "GET" } else { knock.method };
            endpoint.path == knock.path && (endpoint.method.is_empty() || endpoint.method == method)
        });
        let Needs::Role(role) = endpoint.expect("it is there").needs else { return };
        let has_token = |(token, _): &(&str, Role)| {
            let (scheme, rest) = knock.authorization.split_at_checked(7).unwrap_or_default();
            scheme.eq_ignore_ascii_case("bearer ") && rest.trim() == *token
        };
        let is_own_page = match knock.fetch_site {
            "" => knock.origin.eq_ignore_ascii_case(OWN),
            site => site == "same-origin",
        };
        let acts = knock.method == "POST" || knock.path == "live";
        let by_session = TOKENS.iter().zip(SESSIONS.iter()).any(|((_, own), session)| {
            *own >= role && knock.cookies.contains(session) && (!acts || is_own_page)
        });
        let by_token = TOKENS.iter().any(|token| token.1 >= role && has_token(token));
        assert!(by_token || by_session, "{text} is admitted as {:?}", admitted.operator);
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        let paths = ENDPOINTS.iter().map(|endpoint| (endpoint.path, endpoint.method));
        let with = |(path, method): (&str, &str)| {
            let [admin, anna, wall] = &*SESSIONS;
            [
                format!("{path}\n{method}\nBearer {}\n\n\n\nv1.a.1680000060.AAAA", TOKENS[0].0),
                format!("{path}\n{method}\nbearer  {} \n", TOKENS[2].0),
                format!("{path}\n{method}\n\na=b; __anteroom_operator={anna}\nsame-origin\n"),
                format!("{path}\n{method}\n\n__anteroom_operator={wall}; x=y\n\n{OWN}"),
                format!("{path}\n{method}\n\n__anteroom_operator={admin}\ncross-site\n{OWN}"),
            ]
        };
        paths.flat_map(with).map(String::into_bytes).collect()
    }
}
