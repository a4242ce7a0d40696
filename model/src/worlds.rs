//! The worlds that are checked.

use anteroom::config::parse_room;
use anteroom::protocol::Request;
use anteroom::room::Room;

use crate::{Actor, World};

/// A whole hour, in milliseconds since the epoch.
const START: u64 = 28_000_020 * 60_000;

fn room(total_active_users: u32, new_users_per_minute: u32) -> Room {
    let room = serde_json::json!({
        "path": "/",
        "total_active_users": total_active_users,
        "new_users_per_minute": new_users_per_minute,
        "session_duration": 1,
    });
    parse_room("ROOM_SMALL", &room).expect("an owner may write this")
}

fn moments(after: &[u64]) -> Vec<u64> {
    after.iter().map(|after| START + after).collect()
}

fn lease(request: &Request) -> bool {
    matches!(request, Request::AnywhereLease(_) | Request::CounterRecall(_))
}

fn push(request: &Request) -> bool {
    matches!(request, Request::GlobalPush(_))
}

fn report(request: &Request) -> bool {
    push(request) || matches!(request, Request::DataCenterReport(_))
}

/// Slots for so many users, one visitor more, and two Counters whose calls to the pool are late, lost, overtaken, and may
/// come twice. The pool and the Counters lose their memory.
pub fn giving(slots: u32, faults: u8) -> World {
    World {
        room: room(slots, 100),
        colos: 2,
        visitors: slots as u8 + 1,
        requests: 1,
        moments: moments(&[10_000, 10_800, 16_000]),
        is_held: lease,
        holds_ms: u64::MAX / 2,
        holds_from: 0,
        is_late: true,
        forgetful: vec![Actor::Anywhere, Actor::Counter(0), Actor::Counter(1)],
        doubles: true,
        faults,
        revokes: false,
        orders: Vec::new(),
        broken: None,
    }
}

/// Three slots: one of them lies in a stock, and is called back.
pub fn stock(faults: u8) -> World {
    World { moments: moments(&[10_000, 11_000]), ..giving(3, faults) }
}

/// One may enter in a minute, and three come at its edge.
pub fn edge_of_a_minute(faults: u8) -> World {
    World {
        room: room(10, 1),
        visitors: 3,
        moments: moments(&[58_700, 59_500, 60_100, 61_000]),
        ..giving(1, faults)
    }
}

/// A session is renewed shortly before its end, at any data center, while reports to Global are late or lost.
pub fn renewals(faults: u8) -> World {
    World {
        requests: 2,
        moments: moments(&[10_000, 66_500, 69_900, 70_500]),
        is_held: push,
        holds_ms: 800,
        is_late: false,
        forgetful: vec![Actor::Global, Actor::DataCenter(0), Actor::DataCenter(1)],
        ..giving(1, faults)
    }
}

/// Nobody but the pool knows of those who are in, and they come again: reports to Global do not arrive.
pub fn uncounted(faults: u8) -> World {
    World {
        colos: 1,
        requests: 2,
        moments: moments(&[10_000, 10_800, 12_500]),
        is_held: |request| lease(request) || push(request),
        forgetful: vec![Actor::Anywhere, Actor::Counter(0)],
        doubles: false,
        ..giving(1, faults)
    }
}

/// Reports of workers and data centers are late, lost, overtaken, and may come twice, while a minute ends and the pool
/// forgets what it has given in it. Data centers and Global lose their memory.
pub fn reports(faults: u8) -> World {
    World {
        moments: moments(&[58_000, 60_900, 63_500]),
        is_held: report,
        holds_ms: 500,
        forgetful: vec![Actor::Global, Actor::DataCenter(0), Actor::DataCenter(1)],
        ..giving(1, faults)
    }
}

/// The same in one data center, whose worker has told of nobody when the minute is over.
pub fn check_ins(faults: u8) -> World {
    World {
        colos: 1,
        moments: moments(&[58_000, 60_500, 63_500]),
        holds_ms: 800,
        forgetful: vec![Actor::Global, Actor::DataCenter(0)],
        ..reports(faults)
    }
}

/// Global knows a data center, and then hears of it so late that an older report may come after a newer one, when the minute
/// of the entry is over.
pub fn late_reports(faults: u8) -> World {
    World {
        room: room(2, 100),
        visitors: 3,
        moments: moments(&[10_000, 50_000, 55_500, 58_500, 68_000]),
        is_held: push,
        holds_ms: 4_000,
        holds_from: 2,
        ..check_ins(faults)
    }
}

/// Somebody enters at the end of a minute, in a data center of which Global has not heard yet, and hears nothing for some
/// seconds more.
pub fn first_reports() -> World {
    World {
        moments: moments(&[58_000, 66_600]),
        requests: 1,
        is_held: push,
        holds_ms: 10_000,
        ..uncounted(0)
    }
}

/// The origin ends sessions, by any data center, and who is out comes again. Data centers and Global lose their memory.
pub fn revocations(faults: u8) -> World {
    World {
        moments: moments(&[10_000, 12_500, 15_000]),
        is_held: |_| false,
        revokes: true,
        ..renewals(faults)
    }
}

/// An operator gives a second slot, and then lets nobody in any more.
pub fn orders(faults: u8) -> World {
    World {
        visitors: 3,
        moments: moments(&[10_000, 13_100]),
        is_held: |_| false,
        forgetful: vec![Actor::Anywhere, Actor::Global, Actor::Counter(0), Actor::Counter(1)],
        orders: vec![r#"{"set":{"total_active_users":2}}"#, r#"{"set":{"queue_all":true}}"#],
        ..giving(1, faults)
    }
}
