//! Places in the queue: who checks in when, and who may have one.

use std::rc::Rc;

use anteroom::admission::{
    Clocked, DrawKey, Level, Remembered, StateKey, awaited_ms, minute_of, next_check_in_seconds, start_of,
};
use anteroom::config::{Room, parse_room};
use anteroom::counts::{CheckIn, Counts, Global, Seen};
use anteroom::machines::worker::{Visit, Visitor, Worker, WorkerContext, WorkerEffect, WorkerInput};
use anteroom::origin::OriginMonitor;
use anteroom::protocol::messages::{ColoReport, StateAnswer, VERSION};
use anteroom::protocol::{Answer, Request};
use anteroom::room::QueueingMethod;
use anteroom::ticket::{Standing, Ticket, standing};
use proptest::prelude::*;
use serde_json::json;

use crate::articles::report;

const NOW: u64 = 28_000_000 * 60_000 + 30_000;

fn room(longest: u32) -> Room {
    let fields = json!({
        "total_active_users": 1_000, "new_users_per_minute": 600, "session_duration": 1,
        "refresh_interval_max_seconds": longest,
    });
    parse_room("ROOM_SHOP", &fields).unwrap()
}

/// A full room which 10 users leave per second, and so many who wait in the older bucket of two.
fn full(ahead: u32) -> StateKey {
    let bucket = minute_of(NOW) - 1;
    StateKey {
        taken_at: NOW,
        minute: minute_of(NOW),
        active: 1_000,
        leaving: 6_000,
        entering: 6_000,
        waiting: vec![(bucket - 1, ahead), (bucket, 100)],
        present: vec![ahead, 100],
        ..StateKey::default()
    }
}

fn told(room: &Room, ahead: u32, known: bool, random: f64) -> u32 {
    next_check_in_seconds(room, Some(&full(ahead)), minute_of(NOW) - 1, known, NOW, random)
}

#[test]
fn far_from_the_front_a_visitor_stays_away_for_an_eighth_of_the_way() {
    let room = room(60);
    // Ten enter in a second: 600 ahead are a minute.
    for (ahead, shortest, longest) in
        [(600, 18, 22), (1_800, 21, 25), (3_600, 41, 50), (5_000, 54, 66), (100_000, 54, 66)]
    {
        assert_eq!((told(&room, ahead, true, 0.0), told(&room, ahead, true, 0.999)), (shortest, longest));
    }
}

#[test]
fn all_of_a_bucket_come_in_the_first_half_of_its_turn_and_its_last_ones_often() {
    // Its turn is over in ten seconds, or begins in ten.
    assert_eq!((told(&room(60), 0, true, 0.0), told(&room(60), 0, true, 0.999)), (3, 5));
    assert_eq!((told(&room(60), 100, true, 0.0), told(&room(60), 100, true, 0.999)), (10, 15));
    let bucket = minute_of(NOW) - 1;
    let last_ones = StateKey { waiting: vec![(bucket, 80)], present: vec![80], ..full(0) };
    assert_eq!(next_check_in_seconds(&room(60), Some(&last_ones), bucket, true, NOW, 0.0), 2);
}

#[test]
fn while_nobody_is_let_in_the_last_ones_of_the_oldest_bucket_come_often() {
    let open = room(60);
    let bucket = minute_of(NOW) - 1;
    let waiting = vec![(bucket, 80), (bucket + 1, 500)];
    let held = StateKey { held: true, waiting, present: vec![80, 500], ..full(0) };
    let told = |room: &Room, key: &StateKey| next_check_in_seconds(room, Some(key), bucket, true, NOW, 0.5);
    let queue_all = Room { queue_all: true, ..open.clone() };
    let closed = StateKey { held: false, ..held.clone() };
    assert_eq!(
        [told(&open, &held), told(&queue_all, &closed)],
        [2, 2],
        "of an unhealthy origin, and by an operator"
    );
    assert_eq!(told(&queue_all, &full(100)), 20, "whose turn is not next comes as usual");
    let empty = StateKey { active: 0, ..closed.clone() };
    assert_eq!(told(&queue_all, &empty), 20, "after so long that everybody has left");
    let few = StateKey { waiting: vec![(bucket, 80)], present: vec![80], ..closed.clone() };
    assert_eq!(told(&queue_all, &few), 20, "all enter at once when it opens");
    let prequeue = Room { prequeue: true, ..open };
    assert_eq!(told(&prequeue, &closed), 20, "its event's time is known");
}

#[test]
fn those_ahead_have_moved_on_since_the_state_was_made() {
    let at = |seconds: u64| {
        let key = full(200);
        let now = NOW + seconds * 1_000;
        next_check_in_seconds(&room(60), Some(&key), minute_of(NOW) - 1, true, now, 0.0)
    };
    assert_eq!([at(0), at(5), at(10), at(60)], [18, 15, 10, 2]);
}

#[test]
fn who_has_not_come_back_yet_comes_as_usual() {
    assert_eq!(told(&room(60), 100_000, false, 0.5), 20);
    assert_eq!(
        next_check_in_seconds(&room(60), None, minute_of(NOW), true, NOW, 0.5),
        20,
        "nothing is known"
    );
}

/// A room of five, of which sessions of a minute end one by one.
fn room_of_five() -> Room {
    let fields = json!({ "total_active_users": 5, "new_users_per_minute": 60, "session_duration": 1 });
    parse_room("ROOM_SHOP", &fields).unwrap()
}

/// It is full, two sessions end unless they are renewed, 7.3 and 9.3 seconds from now, and these wait.
fn full_of_five(waiting: Vec<(u32, u32)>) -> StateKey {
    let steps = |seconds: f64| (seconds * 10.0) as usize;
    StateKey {
        taken_at: NOW,
        minute: minute_of(NOW),
        active: 5,
        step: 100,
        expiring: [vec![0; steps(7.2)], vec![1; steps(2.0)], vec![2]].concat(),
        present: waiting.iter().map(|(_, users)| *users).collect(),
        waiting,
        level: Level::Queueing,
        ..StateKey::default()
    }
}

#[test]
fn where_slots_become_free_one_by_one_whose_turn_it_is_comes_when_a_session_may_end() {
    let bucket = minute_of(NOW) - 1;
    let told = |key: &StateKey, bucket: u32| {
        next_check_in_seconds(&room_of_five(), Some(key), bucket, true, NOW, 0.5)
    };
    let key = full_of_five(vec![(bucket, 3), (bucket + 1, 1)]);
    assert_eq!(told(&key, bucket), 7, "for the first slot, and a little early");
    let behind_one = full_of_five(vec![(bucket, 1), (bucket + 1, 1)]);
    assert_eq!(told(&behind_one, bucket + 1), 9, "for the second one");
    let has_left = StateKey { present: vec![0, 1], ..behind_one.clone() };
    assert_eq!(told(&has_left, bucket + 1), 7, "nothing is kept for whoever has left");
    let behind_two = full_of_five(vec![(bucket, 2), (bucket + 1, 1)]);
    assert_eq!(told(&behind_two, bucket + 1), 12, "as soon as more is known");
    let behind_three = full_of_five(vec![(bucket, 3), (bucket + 1, 1)]);
    assert_eq!(told(&behind_three, bucket + 1), 20, "as usual");
}

#[test]
fn a_colo_that_has_just_woken_up_knows_when_sessions_end_but_not_how_many_have_come_to_it() {
    let bucket = minute_of(NOW);
    let told =
        |room: &Room, key: Option<&StateKey>| next_check_in_seconds(room, key, bucket, false, NOW, 0.5);
    let woken = StateKey { uncounted: true, ..full_of_five(vec![]) };
    assert_eq!(told(&room_of_five(), Some(&woken)), 7);
    assert_eq!(told(&room_of_five(), None), 5, "more is known in a moment");
    let with_a_free_slot = StateKey { active: 4, ..woken };
    assert_eq!(told(&room_of_five(), Some(&with_a_free_slot)), 5, "somebody has just taken it");
    let closed = Room { queue_all: true, ..room_of_five() };
    assert_eq!(told(&closed, Some(&with_a_free_slot)), 20);
    let of_many = StateKey { active: 900, uncounted: true, ..full(0) };
    assert_eq!(told(&room(60), Some(&of_many)), 20, "a crowd may have come for them");
}

#[test]
fn a_request_waits_for_a_slot_for_a_second_at_most() {
    let bucket = minute_of(NOW) - 1;
    let key = full_of_five(vec![(bucket, 2)]);
    let awaited = |room: &Room, at: u64| awaited_ms(room, &key, bucket, at);
    let five = room_of_five();
    let before = |ms: u64| NOW + 7_300 - ms;
    assert_eq!([1_001, 1_000, 400, 0].map(|ms| awaited(&five, before(ms))), [0, 1_000, 400, 0]);
    assert_eq!(awaited_ms(&five, &key, bucket + 1, before(400)), 0, "it is not the turn of others");
    for room in [
        Room { queue_all: true, ..five.clone() },
        Room { queueing_method: QueueingMethod::Random, ..five.clone() },
        Room { total_active_users: 1_000, ..five },
    ] {
        assert_eq!(awaited(&room, before(400)), 0);
    }
}

/// What a visit of somebody with a waiting ticket does next.
fn visited(worker: &mut Worker, visit: &mut Visit, input: WorkerInput, now: u64) -> Vec<WorkerEffect> {
    let (key, mut origin) = (DrawKey::new(None, "a key"), OriginMonitor::new(visit.room()));
    let mut effects = Vec::new();
    visit.handle(
        worker,
        &mut WorkerContext { now, draw_key: &key, origin: &mut origin },
        input,
        &mut effects,
    );
    effects
}

/// Whether a permit is asked for.
fn asks(effects: &[WorkerEffect]) -> bool {
    let is_ask = |effect: &WorkerEffect| match effect {
        WorkerEffect::Call(call) => matches!(call.request, Request::CounterTake(_)),
        _ => false,
    };
    effects.iter().any(is_ask)
}

/// The visit of the only one who waits, and what it does when it is told a state key by which a session ends in 0.6 seconds.
fn told_of_a_slot(worker: &mut Worker, visitor: &Ticket) -> (Visit, Vec<WorkerEffect>) {
    let room = Rc::new(room_of_five());
    let mut visit = Visit::new(Visitor { tickets: vec![*visitor], ..Visitor::default() }, Rc::clone(&room));
    let begun = visited(worker, &mut visit, WorkerInput::Begin, NOW);
    assert!(matches!(begun[..], [WorkerEffect::ReadCache]));
    let old = StateKey { taken_at: NOW - 10_000, ..full_of_five(vec![]) };
    let cached = WorkerInput::Cached(Some(Box::new(Clocked { key: old, received_at: NOW - 10_000 })));
    let looked = visited(worker, &mut visit, cached, NOW);
    let [WorkerEffect::Call(call)] = &looked[..] else { panic!("{looked:?}") };
    assert!(matches!(call.request, Request::DataCenterState(_)), "nothing is asked by an old state key");
    let ends_soon = vec![0, 0, 0, 0, 0, 1];
    let state = StateKey { expiring: ends_soon, ..full_of_five(vec![(visitor.bucket, 1)]) };
    let answer = Answer::DataCenterState(Box::new(StateAnswer { v: VERSION, state: Some(state) }));
    let answered = WorkerInput::Answered { call: call.number, answer: Some(answer) };
    let told = visited(worker, &mut visit, answered, NOW);
    (visit, told)
}

fn checked_in_at(last_check_in: u64) -> Ticket {
    Ticket { last_check_in, refresh_seconds: 20, ..Ticket::new(7, NOW - 60_000) }
}

#[test]
fn who_waits_is_judged_by_what_is_known_now_and_asks_when_the_slot_is_free() {
    let mut worker = Worker::new(1, Rc::new(room_of_five()), "AMS".to_owned(), 500);
    let (mut visit, told) = told_of_a_slot(&mut worker, &checked_in_at(NOW - 20_000));
    let Some(WorkerEffect::Sleep { until }) = told.last() else { panic!("{told:?}") };
    assert!(!asks(&told) && (NOW + 600..NOW + 700).contains(until), "{told:?}");
    let early = visited(&mut worker, &mut visit, WorkerInput::Time, until - 1);
    assert!(!asks(&early), "{early:?}");
    assert!(asks(&visited(&mut worker, &mut visit, WorkerInput::Time, *until)));
}

#[test]
fn who_comes_sooner_than_told_is_not_kept_until_a_slot_is_free() {
    let mut worker = Worker::new(1, Rc::new(room_of_five()), "AMS".to_owned(), 500);
    // The first visit teaches the worker that others wait.
    drop(told_of_a_slot(&mut worker, &checked_in_at(NOW - 20_000)));
    let ticket = Ticket { id: 8, ..checked_in_at(NOW - 1_000) };
    let room = Rc::new(room_of_five());
    let mut visit = Visit::new(Visitor { tickets: vec![ticket], ..Visitor::default() }, room);
    let told = visited(&mut worker, &mut visit, WorkerInput::Begin, NOW + 10);
    assert!(!told.iter().any(|effect| matches!(effect, WorkerEffect::Sleep { .. })), "{told:?}");
    assert!(told.iter().any(|effect| matches!(effect, WorkerEffect::Done(_))), "{told:?}");
}

#[test]
fn a_longest_interval_that_is_the_usual_one_switches_it_off() {
    assert_eq!(told(&room(20), 100_000, true, 0.5), 20);
}

proptest! {
    #[test]
    fn nobody_is_told_to_come_after_the_turn(ahead in 0..10_000_u32, random in 0.0..1.0_f64, longest in 20..300_u32) {
        let seconds = told(&room(longest), ahead, true, random);
        let turn = f64::from(ahead + 100 + 1) / 10.0;
        prop_assert!(f64::from(seconds) <= turn.max(4.0) + 0.5, "{seconds} of {turn}");
        prop_assert!(f64::from(seconds) <= f64::from(longest) * 1.1 + 0.5);
        prop_assert!(seconds >= 2);
    }
}

mod addresses {
    use anteroom::admission::{Addresses, NumberAsk};
    use anteroom::ticket::address_key;

    use super::NOW;

    fn ask(id: u64, waits: bool) -> NumberAsk {
        NumberAsk { id, bucket: 0, waits, minute: 0, limit: 0, owned: 0 }
    }

    #[test]
    fn one_newcomer_a_minute_enters_from_an_address() {
        let mut addresses = Addresses::default();
        let (here, there) = (address_key("192.0.2.1"), address_key("192.0.2.2"));
        assert_eq!(addresses.claim(here, 1, NOW), 0);
        assert_eq!(addresses.claim(here, 2, NOW + 59_999), 1, "the first one's");
        assert_eq!(addresses.claim(here, 1, NOW + 59_999), 0, "who asks again asks for the same place");
        assert_eq!(addresses.claim(there, 2, NOW + 59_999), 0);
        assert_eq!(addresses.claim(here, 3, NOW + 60_000), 0, "a minute later it is free");
        assert_eq!(addresses.holder(here, 1, NOW + 60_001), 3);
    }

    #[test]
    fn who_waits_already_and_who_has_no_address_is_not_held_to_it() {
        let mut addresses = Addresses::default();
        let asks = [ask(1, false), ask(2, false), ask(3, true), ask(4, false), ask(5, false)];
        assert_eq!(addresses.claim_all(&asks, &[7, 7, 7, 0, 0], NOW), [0, 1, 0, 0, 0]);
        assert_eq!(addresses.claim_all(&asks, &[], NOW), [0; 5]);
    }

    #[test]
    fn what_is_known_elsewhere_counts() {
        let mut addresses = Addresses::default();
        addresses.claim(7, 1, NOW);
        addresses.learn(7, 2, NOW);
        assert_eq!((addresses.holder(7, 1, NOW), addresses.holder(7, 2, NOW)), (2, 0));
    }

    #[test]
    fn an_address_is_one_of_ipv4_or_a_network_of_ipv6() {
        let same = [("192.0.2.1", "::ffff:192.0.2.1"), ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9")];
        for (one, other) in same {
            assert_eq!(address_key(one), address_key(other), "{one}");
        }
        let different = ["192.0.2.1", "192.0.2.2", "2001:db8:1:2::1", "2001:db8:1:3::1", "::1"];
        for (index, one) in different.iter().enumerate() {
            assert!(different.iter().skip(index + 1).all(|other| address_key(one) != address_key(other)));
        }
        for nothing in ["", "192.0.2", "192.0.2.1:80", "shop.example.com", "::"] {
            assert_eq!(address_key(nothing), 0, "{nothing}");
        }
    }
}

mod bound {
    use anteroom::room::BindTicket;
    use anteroom::ticket::binding;

    const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64)";

    #[test]
    fn a_ticket_is_bound_to_a_provider_not_to_a_line() {
        let bound = |address| binding(BindTicket::Address, address, BROWSER);
        assert_eq!(bound("192.0.2.1"), bound("192.0.255.254"));
        assert_eq!(bound("2001:db8:1:2::1"), bound("2001:db8:ffff::1"));
        let networks = ["192.0.2.1", "192.1.2.1", "2001:db8::1", "2001:db9::1", ""];
        for (index, one) in networks.iter().enumerate() {
            assert!(networks.iter().skip(index + 1).all(|other| bound(one) != bound(other)));
        }
    }

    #[test]
    fn it_is_bound_to_what_the_owner_says_and_to_nothing_else() {
        assert_eq!(binding(BindTicket::None, "192.0.2.1", BROWSER), "");
        assert_eq!(binding(BindTicket::Address, "not known", BROWSER), "");
        let agent = |address, agent| binding(BindTicket::UserAgent, address, agent);
        assert_eq!(agent("192.0.2.1", BROWSER), agent("198.51.100.1", BROWSER));
        assert_ne!(agent("192.0.2.1", BROWSER), agent("192.0.2.1", "curl/8"));
        assert_ne!(agent("192.0.2.1", ""), "", "no user agent is one too");
        let both = |address, agent| binding(BindTicket::Both, address, agent);
        assert_ne!(both("192.0.2.1", BROWSER), both("198.51.100.1", BROWSER));
        assert_ne!(both("192.0.2.1", BROWSER), both("192.0.2.1", "curl/8"));
        assert_eq!(
            agent("", &"\u{1f39f}".repeat(100)),
            agent("", &"\u{1f39f}".repeat(1_000)),
            "the first bytes"
        );
    }
}

#[test]
fn a_phone_that_slept_for_minutes_keeps_its_place_and_nobody_waits_for_it_meanwhile() {
    let room = room(60);
    let ticket = Ticket::new(1, NOW);
    let mut counts = Counts::new(&room);
    let bucket = ticket.bucket;
    let at = Seen::of(&ticket, &room);
    counts.apply(&CheckIn::Wait { id: 1, bucket, from: None, at }, &mut Remembered::new(60_000, 100));
    let slept = |seconds: u64| {
        let now = NOW + seconds * 1_000;
        let keeps = standing(Some(ticket), now, &room.terms()) == Standing::Waiting(ticket);
        (keeps, counts.present_at(&room, &[(bucket, 1)], now).0[0], counts.waiting_at(&room, now).len())
    };
    assert_eq!(slept(20), (true, 1, 1));
    assert_eq!(slept(40), (true, 0, 1), "no slot is kept free for it");
    assert_eq!(slept(78), (true, 0, 0), "nor is it ahead of anybody");
    assert_eq!(slept(299), (true, 0, 0));
    assert_eq!(slept(300), (false, 0, 0));
}

#[test]
fn how_fast_users_leave_is_known_while_a_room_still_fills() {
    // Everybody stays for two minutes, a session more than the page that was last looked at.
    let (room, first) = (room(60), minute_of(NOW) + 1);
    let (mut counts, mut seen) = (Counts::new(&room), Remembered::new(60_000, 10_000));
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    let mut id = 0;
    let mut leaving = Vec::new();
    for (minute, users) in (first..).zip([100, 120, 140, 160, 180, 200]) {
        let at = start_of(minute) + 30_000;
        for _ in 0..users {
            id += 1;
            let bucket = minute;
            counts.apply(&CheckIn::Enter { id, bucket, from: None, at, minute, numbered: true }, &mut seen);
            let again = CheckIn::Move { id, from: at, at: at + 60_000, entered: Some(at) };
            counts.apply(&again, &mut seen);
        }
        let now = start_of(minute + 1) + 10_000;
        global.receive(&room, ColoReport { sequence: now, ..report("AMS", counts.clone()) }, now);
        leaving.push(global.state(&room, None, minute_of(now), now).leaving);
    }
    assert_eq!(leaving[..2], [0, 0], "nobody has left");
    assert!((4_500..5_500).contains(&leaving[5]), "of 1,000 users half in a minute, for ten: {leaving:?}");
}

#[test]
fn the_last_ones_of_a_bucket_have_a_slot_each() {
    let fields =
        json!({ "total_active_users": 10_000, "new_users_per_minute": 3_000, "session_duration": 2 });
    let room = parse_room("ROOM_SHOP", &fields).unwrap();
    let key = StateKey { expiring_refresh: 700, ..full(0) };
    let protected = |ahead| key.protected(&room, ahead);
    assert_eq!([protected(0), protected(1), protected(9)], [0, 1, 9]);
    assert_eq!(
        [protected(100), protected(600)],
        [10, 30],
        "not more than 0.1 % of the room, or one second of check-ins"
    );
    assert_eq!(protected(1_000), 125, "as many as the next refresh will not serve");
    let following = parse_room(
        "ROOM_SHOP",
        &json!({
            "limits": "adaptive", "total_active_users": { "min": 1_000, "max": 10_000 },
            "new_users_per_minute": 3_000, "session_duration": 2
        }),
    );
    let protected = |ahead| key.protected(following.as_ref().unwrap(), ahead);
    assert_eq!(
        [protected(100), protected(600)],
        [40, 60],
        "0.4 %, or two seconds, where limits may fall meanwhile"
    );
}

/// How many of a million are taken to give up in a second, 48 seconds after 100 visitors have checked in for the last
/// time, where their colo reports so often, in milliseconds.
fn giving_up(every_ms: u64) -> u32 {
    let room = room(20);
    let mut counts = Counts::new(&room);
    let mut seen = Remembered::new(60_000, 1_000);
    for id in 1..=100 {
        counts.apply(&CheckIn::Wait { id, bucket: minute_of(NOW), from: None, at: NOW.into() }, &mut seen);
    }
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    for now in (NOW..NOW + 48_000).step_by(2_000) {
        if (now - NOW).is_multiple_of(every_ms) {
            let report = report("AMS", counts.clone());
            let report = ColoReport { sequence: now, next_in: every_ms, late: every_ms, ..report };
            global.receive(&room, report, now);
        }
        global.state(&room, None, minute_of(now), now);
    }
    let now = NOW + 48_000;
    global.state(&room, None, minute_of(now), now).giving_up
}

#[test]
fn who_does_not_come_back_has_given_up_unless_the_data_center_has_not_told_yet() {
    let unknown = giving_up(60_000);
    assert!(giving_up(2_000) > 4 * unknown, "{unknown}, then {}", giving_up(2_000));
    let mut fresh = Global::restore(&room(20), None, Vec::new(), NOW);
    assert_eq!(unknown, fresh.state(&room(20), None, minute_of(NOW), NOW).giving_up);
}
