//! What objects are sent by other objects and workers, and what they find stored.

use anteroom::protocol::Object;

/// The golden vectors of the formats' own tests: all texts in quotes that are bytes in hex.
fn golden() -> impl Iterator<Item = Vec<u8>> {
    let quoted = include_str!("../../tests/rust/formats.rs").split('"');
    let stored = include_str!("../../tests/rust/golden/records-0.1.0.txt").split_ascii_whitespace();
    quoted.chain(stored).filter_map(from_hex)
}

/// The bytes that a text is in hex, if it is and they are three or more.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes = digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<Vec<u8>>>();
    bytes.filter(|_| text.len() >= 6 && text.len().is_multiple_of(2))
}

/// All that objects are asked.
const ROUTES: [(Object, &str); 19] = [
    (Object::Counter, "/take"),
    (Object::Counter, "/recall"),
    (Object::Counter, "/given"),
    (Object::Anywhere, "/take"),
    (Object::Anywhere, "/lease"),
    (Object::Anywhere, "/hold"),
    (Object::DataCenter, "/report"),
    (Object::DataCenter, "/state"),
    (Object::DataCenter, "/hear"),
    (Object::Global, "/push"),
    (Object::Global, "/state"),
    (Object::Global, "/origin-health"),
    (Object::Global, "/origin"),
    (Object::Global, "/look"),
    (Object::Global, "/steer"),
    (Object::Global, "/audit"),
    (Object::Global, "/news"),
    (Object::Global, "/history"),
    (Object::Global, "/totals"),
];

/// A message that is read is written so that it reads the same, and takes no more room than its bytes. What is compared is
/// bytes, since a number that is none is not itself.
///
/// The first byte of the input says which message, the others are its bytes.
pub mod messages {
    use anteroom::protocol::{Answer, Request};

    use super::{ROUTES, golden};

    pub fn run(input: &[u8]) {
        let Some((kind, body)) = input.split_first() else { return };
        let (object, route) = ROUTES[usize::from(kind / 2) % ROUTES.len()];
        let written = if kind % 2 == 0 {
            let Some(Ok(request)) = Request::decode(object, route, body) else { return };
            let written = request.encode().unwrap();
            let again = Request::decode(object, route, &written).expect("there is such a route").unwrap();
            assert_eq!(again.encode().unwrap(), written, "{request:?}");
            written
        } else {
            let Ok(answer) = Answer::decode(object, route, body) else { return };
            let written = answer.encode().unwrap();
            let again = Answer::decode(object, route, &written).unwrap();
            assert_eq!(again.encode().unwrap(), written, "{answer:?}");
            written
        };
        // What is missing reads as zeros, 64 at the most; written out, each takes a byte.
        assert!(written.len() <= body.len() + 64 + OVERRIDES, "{} bytes of {}", written.len(), body.len());
    }

    /// Overrides travel as bytes of their own: a few that are missing are all written out.
    const OVERRIDES: usize = 64;

    pub fn seeds() -> Vec<Vec<u8>> {
        let kinds = 0..2 * ROUTES.len() as u8;
        let with = |kind: u8| move |body: Vec<u8>| [vec![kind], body].concat();
        let is_read = |seed: &Vec<u8>| {
            let (object, route) = ROUTES[usize::from(seed[0] / 2)];
            match seed[0] % 2 {
                0 => matches!(Request::decode(object, route, &seed[1..]), Some(Ok(_))),
                _ => Answer::decode(object, route, &seed[1..]).is_ok(),
            }
        };
        kinds.flat_map(|kind| golden().map(with(kind)).filter(is_read).collect::<Vec<_>>()).collect()
    }
}

/// A stored record that is read is written so that it reads the same.
///
/// The first byte of the input says which record, the others are its bytes.
pub mod records {
    use std::fmt::Debug;

    use anteroom::admission::{SavedLedger, SavedPermits, SavedPool};
    use anteroom::counts::{ColoReport, GlobalMeta, OriginMemory, SavedDataCenter};
    use anteroom::health::ProbeResult;
    use anteroom::health::agree::Agreement;
    use anteroom::health::analytics::Sum;
    use anteroom::history::{Minute, Record as HistoryRecord};
    use anteroom::notifications::Detector;
    use anteroom::protocol::records::{Record, RecordError, read, write};

    use super::golden;

    fn is_kept<T: Record + Debug>(bytes: &[u8]) {
        match read::<T>(bytes) {
            Ok(record) => {
                let written = write(&record).unwrap();
                assert_eq!(write(&read::<T>(&written).unwrap()), Ok(written), "{record:?}");
            }
            Err(RecordError::Newer { version, .. }) => assert!(version > T::VERSION),
            Err(RecordError::Unreadable { .. }) => {}
        }
    }

    const KINDS: [fn(&[u8]); 14] = [
        is_kept::<SavedLedger>,
        is_kept::<SavedPool>,
        is_kept::<SavedPermits>,
        is_kept::<SavedDataCenter>,
        is_kept::<GlobalMeta>,
        is_kept::<ColoReport>,
        is_kept::<OriginMemory>,
        is_kept::<Detector>,
        is_kept::<HistoryRecord>,
        is_kept::<Minute>,
        is_kept::<Agreement>,
        is_kept::<Sum>,
        is_kept::<ProbeResult>,
        is_kept::<Vec<ProbeResult>>,
    ];

    pub fn run(input: &[u8]) {
        let Some((kind, bytes)) = input.split_first() else { return };
        KINDS[usize::from(*kind) % KINDS.len()](bytes);
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        let kinds = 0..KINDS.len() as u8;
        kinds.flat_map(|kind| golden().map(move |bytes| [vec![kind], bytes].concat())).collect()
    }
}

/// Whatever an object finds stored and is told, in whatever order: it answers each call once at most, stores no more than
/// fits and goes on.
pub mod machines {
    use std::cell::LazyCell;
    use std::rc::Rc;

    use anteroom::config::Rooms;
    use anteroom::config::Webhooks;
    use anteroom::machines::{
        Anywhere, Call, Context, Counter, DataCenter, Effect, Global, Input, MemoryRows, ObjectMachine,
        Outside, Stored, Words,
    };
    use anteroom::protocol::{Answer, Object, Request};
    use anteroom::room::Room;
    use arbitrary::{Result, Unstructured};
    use serde_json::json;

    use super::{ROUTES, from_hex, golden};
    use crate::NOW;

    thread_local! {
        static ROOMS: LazyCell<Vec<Rc<Room>>> = const { LazyCell::new(rooms) };
    }

    fn rooms() -> Vec<Rc<Room>> {
        let vars = json!({
            "ROOM_A": { "path": "/a", "total_active_users": 10, "new_users_per_minute": 10, "session_duration": 1 },
            "ROOM_B": { "path": "/b", "total_active_users": 1_000, "new_users_per_minute": 200, "slot_strategy": "counters",
                "one_place_per_address": true, "queueing_method": "random" },
            "ROOM_C": { "path": "/c", "total_active_users": { "min": 5, "max": 2_000_000_000 }, "limits": "adaptive",
                "new_users_per_minute": 2_000_000_000, "rate_window": "sliding", "health_checks": ["origin"],
                "on_unhealthy": "hold" },
            "ROOM_D": { "path": "/d", "total_active_users": 50, "new_users_per_minute": 50, "slot_strategy": "worker_slots" },
            "EVENT_SALE": { "room": "a", "event_start_time": "2023-03-28T10:41:00Z", "event_end_time": "2023-03-28T10:50:00Z",
                "prequeue_start_time": "2023-03-28T10:30:00Z", "shuffle_at_event_start": true },
        });
        let vars = vars.as_object().cloned().unwrap_or_default();
        let (rooms, errors) = Rooms::from_vars(vars.into_iter());
        assert_eq!(errors, []);
        rooms.iter().cloned().map(Rc::new).collect()
    }

    /// What may be kept under one key: the platform's limit, in bytes.
    const LARGEST_VALUE: usize = 2 << 20;
    const KEYS: [&str; 9] =
        ["ledger", "permits", "pool", "data_center", "meta", "colo/AMS", "origin", "steering", "colo/FRA"];

    pub fn run(input: &[u8]) {
        ROOMS.with(|rooms| {
            let _ = play(&mut Unstructured::new(input), rooms);
        });
    }

    fn bytes<'a>(u: &mut Unstructured<'a>) -> Result<&'a [u8]> {
        let length: u8 = u.arbitrary()?;
        u.bytes(usize::from(length).min(u.len()))
    }

    fn play(u: &mut Unstructured, rooms: &[Rc<Room>]) -> Result<()> {
        let objects = [Object::Counter, Object::Anywhere, Object::DataCenter, Object::Global];
        let object = objects[usize::from(u.arbitrary::<u8>()? % 4)];
        let room = &rooms[usize::from(u.arbitrary::<u8>()?) % rooms.len()];
        let mut stored = Stored::new();
        for _ in 0..u.arbitrary::<u8>()? % 3 {
            let key = KEYS[usize::from(u.arbitrary::<u8>()?) % KEYS.len()];
            stored.insert(key.to_owned(), bytes(u)?.to_vec());
        }
        let mut now = NOW;
        let mut machine: Box<dyn ObjectMachine> = match object {
            Object::Counter => Box::new(Counter::restore(&stored, 7, now)),
            Object::Anywhere => Box::new(Anywhere::restore(room, &stored, now)),
            Object::DataCenter => Box::new(DataCenter::restore(room, "AMS", &stored, 7, now)),
            Object::Global => {
                let outside = Outside {
                    rows: Box::new(MemoryRows::default()),
                    webhooks: Webhooks::default(),
                    reachable: Vec::new(),
                    pushes: false,
                    words: WORDS,
                    sockets: Vec::new(),
                    random: 7,
                };
                Box::new(Global::restore(room, &stored, outside, now).expect("memory does not fail"))
            }
        };
        let (mut calls, mut waiting): (Vec<Call>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut effects = Vec::new();
        for from in 0..40 {
            if u.is_empty() {
                break;
            }
            let input = match u.arbitrary::<u8>()? % 6 {
                0 | 1 => {
                    let own: Vec<_> = ROUTES.iter().filter(|(of, _)| *of == object).collect();
                    let (_, route) = own[usize::from(u.arbitrary::<u8>()?) % own.len()];
                    let Some(Ok(request)) = Request::decode(object, route, bytes(u)?) else { continue };
                    waiting.push(from);
                    Input::Asked { from, request }
                }
                2 if !calls.is_empty() => {
                    let call = calls.swap_remove(usize::from(u.arbitrary::<u8>()?) % calls.len());
                    let answer = bytes(u)?;
                    let answer = Answer::decode(call.object(), call.request.route(), answer).ok();
                    Input::Answered { call: call.number, answer }
                }
                3 => {
                    now += u64::from(u.arbitrary::<u16>()?);
                    continue;
                }
                4 => {
                    now = machine.next_timer().unwrap_or(now).clamp(now, now + 600_000);
                    Input::Timer
                }
                _ => Input::Alarm,
            };
            let context = Context { room, colo: "AMS", deadline_ms: 500, now };
            machine.handle(&context, input, &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    Effect::Reply { to, .. } | Effect::Refuse { to, .. } => {
                        let found = waiting.iter().position(|from| *from == to);
                        waiting.swap_remove(found.expect("a call is answered once"));
                    }
                    Effect::Call(call) => calls.push(call),
                    Effect::Store { key, bytes, .. } => {
                        assert!(bytes.len() <= LARGEST_VALUE, "{key}: {} bytes", bytes.len());
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    const WORDS: Words = |_, _| String::new();

    pub fn seeds() -> Vec<Vec<u8>> {
        let ask = |object: u8, room: u8, routes: u8| {
            golden().filter(|bytes| bytes.len() < 256).map(move |bytes| {
                let told =
                    (0..routes).flat_map(|route| [&[0, route, bytes.len() as u8][..], &bytes].concat());
                [object, room, 0].into_iter().chain(told).collect()
            })
        };
        let all = [(0, 3), (1, 3), (2, 3), (3, 10)];
        let made = all.into_iter().flat_map(|(object, routes)| ask(object, object, routes));
        let found = include_str!("../seeds/machines.txt").lines().filter_map(from_hex);
        made.chain(found).collect()
    }
}
