//! How many instructions the core's hot functions take, counted by valgrind: the same on a busy machine as on an idle
//! one. `npm run bench` runs this and prints the table.
//!
//! An id `<what>_times_<n>` says that the function does its work n times; the table shows one of them. Whatever a
//! function is given it hands back, so that dropping it is not counted.

use std::hint::black_box;

use anteroom::config::{Made, Room, Rooms, parse_room};
use anteroom::protocol::messages::{VERSION, WorkerAnswer, WorkerReport};
use anteroom::counts::{CheckIn, DataCenter};
use anteroom::admission::{Clocked, Decision, Shares, StateKey, decide, minute_of};
use anteroom::ticket::{KeyRing, Standing, Ticket, find_cookie};
use gungraun::{library_benchmark, library_benchmark_group, main};
use serde_json::json;

const MINUTE_MS: u64 = 60_000;
const NOW: u64 = 28_000_000 * MINUTE_MS + 30_000;
/// Active users of the data center.
const USERS: u64 = 10_000;
/// Check-ins in the report that is counted; the ids of the benches tell it too.
const REPORTED: u64 = 1_000;

fn room() -> Room {
    let room = json!({
        "path": "/sale", "total_active_users": 100_000, "new_users_per_minute": 10_000, "session_duration": 5
    });
    parse_room("ROOM_SALE", &room).unwrap()
}

fn ticket() -> Ticket {
    Ticket::new(7, NOW - 60_000).admitted(NOW - 20_000).checked_in(NOW - 5_000)
}

/// The key that is in use and as many retired ones.
fn keys(retired: u8) -> KeyRing {
    let keys: Vec<_> =
        (0..=retired).rev().map(|key| format!("{}{}", char::from(b'A' + key), "A".repeat(42))).collect();
    KeyRing::parse(&keys.join(",")).unwrap()
}

/// A ticket of the oldest key.
fn value() -> String {
    keys(0).seal("sale", &ticket(), [7; 12])
}

/// What a shop's visitor sends: eight other cookies, then the ticket.
fn cookie_header() -> String {
    let others: Vec<_> = (0..8).map(|n| format!("cookie_{n}={}", "v".repeat(30))).collect();
    format!("{}; __anteroom={}", others.join("; "), value())
}

/// Ten rooms of one host. The one that is asked for has the shortest path, so all others are looked at before.
fn rooms() -> Rooms {
    let vars = (0..10).map(|n| {
        let path = if n == 0 { "/sale".to_owned() } else { format!("/sale/room-{n}") };
        let limits = json!({
            "host": "shop.example.com", "path": path, "total_active_users": 1000, "new_users_per_minute": 1000
        });
        (format!("ROOM_{n}"), limits)
    });
    let (rooms, errors) = Rooms::from_vars(vars);
    assert!(errors.is_empty(), "{errors:?}");
    rooms
}

/// A state in which people of an hour's minutes wait and five colos own numbers.
fn state() -> Clocked {
    let minute = minute_of(NOW);
    let history = ["AMS", "FRA", "GRU", "LHR", "SIN"].map(|colo| (colo, 200));
    let key = StateKey {
        v: VERSION,
        taken_at: NOW,
        minute,
        active: 90_000,
        step: 1_250,
        expiring: (1..=48).map(|step| step * 40).collect(),
        expiring_refresh: 640,
        expiring_minute: 1_920,
        admitted: 2_000,
        waiting: (minute - 60..minute).map(|bucket| (bucket, 20)).collect(),
        shares: vec![Shares::from_history(history.into_iter(), 1_024).for_colo(minute, Some("AMS"))],
        colo_workers: 20,
        all_workers: 100,
        ..StateKey::default()
    };
    Clocked { key, received_at: NOW }
}

fn waiting() -> Standing {
    Standing::Waiting(Ticket { bucket: minute_of(NOW) - 50, accepted_at: None, ..ticket() })
}

fn enter(id: u64, at: u64) -> CheckIn {
    CheckIn::Enter { id, bucket: minute_of(at), from: None, at, minute: minute_of(at), numbered: true }
}

fn active(id: u64, at: u64) -> CheckIn {
    CheckIn::Move { id, from: at - 2 * MINUTE_MS, at, entered: None }
}

fn wait(id: u64, at: u64) -> CheckIn {
    CheckIn::Wait {
        id,
        bucket: minute_of(at) - (id % 10) as u32,
        from: Some((at - 20_000).into()),
        at: at.into(),
    }
}

/// Check-ins of some visitors, spread over two minutes from a time on.
fn report(first: u64, check_in: fn(u64, u64) -> CheckIn, visitors: u64, from: u64) -> WorkerReport {
    let check_ins = (0..visitors).map(|id| check_in(id, from + id * 2 * MINUTE_MS / visitors)).collect();
    WorkerReport { v: VERSION, worker: 1, instance: 1, first, check_ins, urgent: false, origin: None, counts: Default::default(), heard: Default::default(), judged: None }
}

/// A data center with its users, and a worker's next report.
fn data_center(check_in: fn(u64, u64) -> CheckIn) -> (DataCenter, Room, WorkerReport) {
    let room = room();
    let mut data_center = DataCenter::restore(&room, "AMS", 1, None, NOW);
    data_center.receive(&room, &report(1, enter, USERS, NOW), NOW + 2 * MINUTE_MS);
    data_center.pushed(&room, Some(state().key), NOW + 2 * MINUTE_MS);
    let next = report(USERS + 1, check_in, REPORTED, NOW + 2 * MINUTE_MS);
    (data_center, room, next)
}

#[library_benchmark]
#[bench::of_the_key_in_use(keys(0), value())]
#[bench::of_a_retired_key(keys(1), value())]
fn open_ticket(keys: KeyRing, value: String) -> (KeyRing, String) {
    assert!(keys.open(black_box("sale"), &value).is_some());
    (keys, value)
}

#[library_benchmark]
#[bench::of_an_active_user(keys(0), ticket())]
fn seal_ticket(keys: KeyRing, ticket: Ticket) -> (KeyRing, String) {
    let value = keys.seal(black_box("sale"), &ticket, [7; 12]);
    (keys, value)
}

#[library_benchmark]
#[bench::behind_eight_others(cookie_header())]
fn find_a_cookie(header: String) -> String {
    assert!(find_cookie(&header, black_box("__anteroom")).next().is_some());
    header
}

/// Rooms that were made at run time, in ten hosts, as many of them in each.
fn made(rooms: usize) -> Rooms {
    let all: Vec<_> = (0..rooms)
        .map(|n| {
            let limits = json!({
                "host": format!("shop-{}.example.com", n % 10), "path": format!("/sale/room-{n}"),
                "total_active_users": 1000, "new_users_per_minute": 1000
            });
            json!([format!("{n:032x}"), format!("room-{n}"), limits])
        })
        .collect();
    let made = Made::read(&json!({ "version": 1, "rooms": all }).to_string()).unwrap();
    let (rooms, errors) = made.with(std::iter::empty());
    assert!(errors.is_empty(), "{errors:?}");
    rooms
}

#[library_benchmark]
#[bench::of_ten(made(10), "/sale/room-7/shoes/42")]
#[bench::of_a_thousand(made(1_000), "/sale/room-7/shoes/42")]
fn find_made_room(rooms: Rooms, path: &str) -> Rooms {
    assert!(rooms.cover(black_box("shop-7.example.com"), path).is_some());
    rooms
}

#[library_benchmark]
#[bench::on_a_host_of_ten_rooms(made(10), "shop-7.example.com")]
#[bench::on_a_host_of_a_thousand_rooms(made(1_000), "shop-7.example.com")]
#[bench::on_a_host_with_none(made(1_000), "www.example.com")]
fn find_no_room(rooms: Rooms, host: &str) -> Rooms {
    assert!(rooms.cover(black_box(host), "/other/shoes/42").is_none());
    rooms
}

#[library_benchmark]
#[bench::of_ten_by_a_plain_path(rooms(), "/sale/shoes/42")]
#[bench::of_ten_by_an_encoded_path(rooms(), "/sale//sh%6fes/./42")]
fn find_room(rooms: Rooms, path: &str) -> Rooms {
    assert!(rooms.cover(black_box("shop.example.com"), path).is_some());
    rooms
}

#[library_benchmark]
#[bench::for_a_new_visitor(room(), Standing::New, state())]
#[bench::for_a_waiting_visitor(room(), waiting(), state())]
fn decide_for(room: Room, standing: Standing, state: Clocked) -> (Room, Clocked) {
    assert!(matches!(decide(&room, &standing, Some(&state), NOW + 100), Decision::Ask(_)));
    (room, state)
}

#[library_benchmark]
#[bench::of_an_active_user_times_1000(data_center(active))]
#[bench::of_a_new_user_times_1000(data_center(enter))]
#[bench::of_a_waiting_user_times_1000(data_center(wait))]
fn count_check_in(
    (mut data_center, room, report): (DataCenter, Room, WorkerReport),
) -> (DataCenter, Room, WorkerReport, WorkerAnswer) {
    let answer = data_center.receive(&room, &report, NOW + 4 * MINUTE_MS);
    assert_eq!(answer.applied, USERS + REPORTED);
    (data_center, room, report, answer)
}

library_benchmark_group!(
    name = core,
    benchmarks = [find_room, find_made_room, find_no_room, find_a_cookie, open_ticket, seal_ticket, decide_for, count_check_in]
);
main!(library_benchmark_groups = core);
