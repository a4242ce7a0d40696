//! What holds in every state of a small world.
#![allow(missing_docs, clippy::pedantic)]

use anteroom::config::parse_room;
use anteroom::protocol::Request;
use anteroom::room::Room;
use anteroom_model::{Actor, World};
use stateright::{Checker, Model};

const START: u64 = 28_000_020 * 60_000;

fn room(total_active_users: u32, new_users_per_minute: u32) -> Room {
    let room = serde_json::json!({
        "path": "/", "total_active_users": total_active_users, "new_users_per_minute": new_users_per_minute,
        "session_duration": 1,
    });
    parse_room("ROOM_TEST", &room).unwrap()
}

fn giving(limit: u32) -> World {
    World {
        room: room(limit, 100),
        colos: 2,
        visitors: limit as u8 + 1,
        requests: 1,
        moments: [0, 800, 6_000].map(|after| START + 10_000 + after).into(),
        is_held: |request| matches!(request, Request::AnywhereLease(_) | Request::CounterRecall(_)),
        forgetful: vec![Actor::Anywhere, Actor::Counter(0), Actor::Counter(1)],
        doubles: true,
        faults: 1,
        revokes: false,
        orders: Vec::new(),
        broken: None,
    }
}

#[test]
fn giving_x() {
    let begun = std::time::Instant::now();
    let world = giving(std::env::var("LIMIT").map_or(1, |l| l.parse().unwrap()));
    let world = World { faults: std::env::var("FAULTS").map_or(0, |l| l.parse().unwrap()), ..world };
    let checker = world.checker().threads(1).spawn_dfs().report(&mut stateright::report::WriteReporter::new(&mut std::io::stdout())).join();
    println!("{} states, depth {}, {:?}", checker.unique_state_count(), checker.max_depth(), begun.elapsed());
    for (name, path) in checker.discoveries() {
        println!("{name}: {:?}", path.into_actions());
    }
    assert!(checker.is_done());
    checker.assert_properties();
}
