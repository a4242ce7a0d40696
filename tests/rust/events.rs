//! Events: what they may be, which room it is at a time, and the lottery at their start.

use std::collections::BTreeMap;

use anteroom::admission::{
    Decision, DrawKey, Group, LeaseAsk, Level, Pool, StateKey, decide, minute_of, queue_bucket,
};
use anteroom::answer::EventView;
use anteroom::config::{ConfigError, Part, Rooms};
use anteroom::counts::{CheckIn, Counts, DataCenter, Global};
use anteroom::room::{Event, Phase, QueueingMethod, Room};
use anteroom::ticket::{Standing, Ticket};
use anteroom::time::rfc3339;
use serde_json::{Value, json};

const MINUTE: u64 = 60_000;
/// 2026-11-27 08:00 UTC.
const START: u64 = 1_795_766_400_000;

fn parse(events: &[(&str, Value)]) -> (Rooms, Vec<ConfigError>) {
    parse_with(
        &json!({ "total_active_users": 100, "new_users_per_minute": 60, "session_duration": 2 }),
        events,
    )
}

fn parse_with(room: &Value, events: &[(&str, Value)]) -> (Rooms, Vec<ConfigError>) {
    let vars = events.iter().map(|(name, event)| ((*name).to_owned(), event.clone()));
    Rooms::from_vars(vars.chain([("ROOM_SHOP".to_owned(), room.clone())]))
}

/// An event from 8 to 9 o'clock with a prequeue of ten minutes, changed in some fields; null takes one away.
fn event(changes: &Value) -> Value {
    let mut event = json!({
        "room": "shop",
        "event_start_time": "2026-11-27T08:00:00Z",
        "event_end_time": "2026-11-27T09:00:00Z",
        "prequeue_start_time": "2026-11-27T07:50:00Z",
    });
    for (field, value) in changes.as_object().unwrap() {
        if value.is_null() {
            event.as_object_mut().unwrap().remove(field);
        } else {
            event[field] = value.clone();
        }
    }
    event
}

fn room(changes: &Value) -> Room {
    let (rooms, errors) = parse(&[("EVENT_SALE", event(changes))]);
    assert_eq!(errors, []);
    rooms.get("shop").unwrap().clone()
}

fn errors(changes: &Value) -> Vec<ConfigError> {
    let (rooms, errors) = parse(&[("EVENT_SALE", event(changes))]);
    assert!(rooms.get("shop").unwrap().events.is_empty(), "{changes} is wrong, and only the room works");
    errors
}

#[test]
fn a_room_is_another_one_while_an_event_lasts() {
    let room = room(&json!({
        "total_active_users": 7,
        "new_users_per_minute": 5,
        "session_duration": 1,
        "queueing_method": "Random",
        "description": "the winter sale",
    }));
    let at = |time: u64| {
        let (room, phase) = room.at(time);
        (
            room.limits().total_active_users,
            room.session_duration,
            room.queueing_method,
            room.is_closed(),
            phase,
        )
    };
    let ordinary = (100, 2, QueueingMethod::Fifo, false, Phase::None);
    assert_eq!(at(START - 10 * MINUTE - 1), ordinary);
    let event = &room.events[0];
    let starts_in_ms = 10 * MINUTE;
    // The method is for those who wait; limits and sessions change when it starts.
    let prequeue = Phase::Prequeue { event, starts_in_ms };
    assert_eq!(at(START - 10 * MINUTE), (100, 2, QueueingMethod::Random, true, prequeue));
    let active = Phase::Active { event, ends_in_ms: 60 * MINUTE };
    assert_eq!(at(START), (7, 1, QueueingMethod::Random, false, active));
    assert_eq!(at(START + 60 * MINUTE), ordinary);
    assert_eq!(room.next_change(START - 60 * MINUTE), Some(START - 10 * MINUTE));
    assert_eq!(room.next_change(START - 1), Some(START));
    assert_eq!(room.next_change(START), Some(START + 60 * MINUTE));
    assert_eq!(room.next_change(START + 60 * MINUTE), None);
    assert_eq!(event.effective()["total_active_users"], 7);
    assert_eq!(event.effective()["queue_all"], false);
}

#[test]
fn what_an_event_leaves_out_is_as_in_the_room() {
    let room = room(&json!({ "prequeue_start_time": null, "session_duration": null }));
    let (active, _) = room.at(START);
    assert_eq!(active, &Room { events: active.events.clone(), ..room.clone() });
    assert_eq!(room.at(START - 1).1, Phase::None);
}

#[test]
fn a_suspended_event_and_the_events_of_a_suspended_room_are_ignored() {
    let suspended = room(&json!({ "suspended": true }));
    assert_eq!((suspended.at(START).1, suspended.next_change(0)), (Phase::None, None));
    let written = json!({ "total_active_users": 1, "new_users_per_minute": 1, "suspended": true });
    let (rooms, errors) = parse_with(&written, &[("EVENT_SALE", event(&json!({})))]);
    assert_eq!(errors, []);
    assert_eq!(rooms.get("shop").unwrap().at(START).1, Phase::None);
}

#[test]
fn queue_all_goes_before_every_event() {
    let written = json!({ "total_active_users": 1, "new_users_per_minute": 1, "queue_all": true });
    let (rooms, _) =
        parse_with(&written, &[("EVENT_SALE", event(&json!({ "queueing_method": "passthrough" })))]);
    let (active, _) = rooms.get("shop").unwrap().at(START);
    assert_eq!(decide(active, &Standing::New, None, START), Decision::Wait);
}

#[test]
fn in_a_prequeue_whoever_comes_waits_whatever_the_method_and_who_is_in_goes_on() {
    for method in ["fifo", "random", "passthrough", "reject"] {
        let room = room(&json!({ "queueing_method": method }));
        let (prequeueing, _) = room.at(START - 1);
        let ticket = Ticket::new(1, START - MINUTE);
        assert_eq!(decide(prequeueing, &Standing::New, None, START - 1), Decision::Wait);
        assert_eq!(decide(prequeueing, &Standing::Waiting(ticket), None, START - 1), Decision::Wait);
        let active = Standing::Active(ticket.admitted(START - MINUTE));
        assert_eq!(decide(prequeueing, &active, None, START - 1), Decision::Pass);
    }
}

#[test]
fn times_are_read_with_any_offset() {
    for same in ["2026-11-27T08:00:00Z", "2026-11-27T09:00:00+01:00", "2026-11-27T00:00:00.000-08:00"] {
        assert_eq!(room(&json!({ "event_start_time": same })).events[0].start, START, "{same}");
    }
    assert_eq!(rfc3339(START), "2026-11-27T08:00:00Z");
}

#[test]
fn every_mistake_is_named_with_event_field_value_and_fix() {
    // changes, field, a part of the message, a part of the fix
    let table = [
        (json!({ "event_start_time": null }), "event_start_time", "is required", "event_start_time = \""),
        (json!({ "event_end_time": "soon" }), "event_end_time", "RFC 3339", "2026-"),
        (json!({ "event_end_time": "2026-11-27T09:00:00" }), "event_end_time", "offset", "+01:00"),
        (json!({ "event_end_time": "2026-11-27 09:00:00Z" }), "event_end_time", "RFC 3339", "T09"),
        (json!({ "event_end_time": "2026-02-30T09:00:00Z" }), "event_end_time", "RFC 3339", "2026-"),
        (json!({ "event_end_time": "2026-11-27T09:00:00+0100" }), "event_end_time", "offset", "+01:00"),
        (json!({ "event_end_time": 1_795_770_000 }), "event_end_time", "RFC 3339", "2026-"),
        (json!({ "event_end_time": "2026-11-27T08:00:59Z" }), "event_end_time", "at least a minute", "later"),
        (
            json!({ "prequeue_start_time": "2026-11-27T07:55:01Z" }),
            "prequeue_start_time",
            "at least five minutes",
            "leave it out",
        ),
        (
            json!({ "prequeue_start_time": null, "shuffle_at_event_start": true }),
            "shuffle_at_event_start",
            "needs prequeue_start_time",
            "add prequeue_start_time",
        ),
        (
            json!({ "prequeue_start_time": "2026-11-27T07:50:01Z", "shuffle_at_event_start": true }),
            "prequeue_start_time",
            "whole minute",
            ":00",
        ),
        (json!({ "shuffle_at_event_start": "yes" }), "shuffle_at_event_start", "true or false", "true"),
        (json!({ "total_active_users": 5 }), "total_active_users", "needs new_users_per_minute", "add"),
        (json!({ "new_users_per_minute": 5 }), "new_users_per_minute", "needs total_active_users", "add"),
        (
            json!({ "total_active_users": 0, "new_users_per_minute": 1 }),
            "total_active_users",
            "from 1",
            "at least 1",
        ),
        (json!({ "session_duration": 31 }), "session_duration", "from 1 to 30", "at most 30"),
        (json!({ "queueing_method": "lifo" }), "queueing_method", "must be \"fifo\"", "\"fifo\""),
        (json!({ "room": null }), "room", "is required", "room = \"shop\""),
        (json!({ "room": "shoe" }), "room", "is not the name of a room", "name of a room"),
        (json!({ "path": "/sale" }), "path", "is not a field", "remove it"),
        (json!({ "name": "sale" }), "name", "follows EVENT_", "rename the var"),
    ];
    for (changes, field, message, fix) in table {
        let errors = errors(&changes);
        assert_eq!(errors.len(), 1, "{changes}: {errors:?}");
        let error = &errors[0];
        assert_eq!((error.part, error.name.as_str(), error.field.as_str()), (Part::Event, "sale", field));
        assert!(error.message.contains(message), "{changes}: {error}");
        assert!(error.fix.contains(fix), "{changes}: {error}");
        assert!(error.to_string().starts_with("event sale: "), "{error}");
    }
}

#[test]
fn events_of_a_room_do_not_overlap_their_prequeues_included() {
    let next = |prequeue: &str| {
        event(&json!({
            "prequeue_start_time": prequeue,
            "event_start_time": "2026-11-27T10:00:00Z",
            "event_end_time": "2026-11-27T11:00:00Z",
        }))
    };
    let (rooms, found) = parse(&[("EVENT_A", next("2026-11-27T09:00:00Z")), ("EVENT_B", event(&json!({})))]);
    assert_eq!(found, []);
    let names: Vec<&str> =
        rooms.get("shop").unwrap().events.iter().map(|event: &Event| event.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);

    let (rooms, found) = parse(&[("EVENT_A", next("2026-11-27T08:59:59Z")), ("EVENT_B", event(&json!({})))]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), found[0].field.as_str()), ("a", "prequeue_start_time"));
    assert!(found[0].message.contains("event b"), "{}", found[0]);
    assert_eq!(rooms.get("shop").unwrap().events.len(), 1);

    // One that is ignored is in nobody's way.
    let (_, found) = parse(&[
        ("EVENT_A", next("2026-11-27T08:59:59Z")),
        ("EVENT_B", event(&json!({ "suspended": true }))),
    ]);
    assert_eq!(found, []);
    let (_, found) = parse(&[("EVENT_A", event(&json!({}))), ("EVENT_a", event(&json!({})))]);
    assert!(found[0].message.contains("name of another event"), "{}", found[0]);
}

#[test]
fn an_event_has_fixed_limits_in_a_room_whose_limits_adapt() {
    let adaptive = json!({
        "limits": "adaptive",
        "total_active_users": { "min": 10, "max": 100 },
        "new_users_per_minute": 60,
        "origin_slow_ms": 500,
    });
    let limits = json!({ "total_active_users": 7, "new_users_per_minute": 5 });
    let (rooms, found) = parse_with(&adaptive, &[("EVENT_SALE", event(&limits))]);
    assert_eq!(found, []);
    let (active, _) = rooms.get("shop").unwrap().at(START);
    assert_eq!((active.adaptive, active.total_active_users), (None, 7));
    let (rooms, _) = parse_with(&adaptive, &[("EVENT_SALE", event(&json!({})))]);
    assert!(rooms.get("shop").unwrap().at(START).0.adaptive.is_some());
}

#[test]
fn facts_of_an_event_for_the_page() {
    let room = room(&json!({ "shuffle_at_event_start": true }));
    let view = |time: u64| EventView::of(room.at(time).1);
    let hour = 3_600;
    let sale = EventView {
        name: "sale",
        prequeueing: false,
        seconds_to_start: 0,
        seconds_to_end: hour,
        shuffle: true,
    };
    // Who comes back after so many seconds is not too early.
    let before = EventView { prequeueing: true, seconds_to_start: 91, seconds_to_end: hour + 91, ..sale };
    assert_eq!(view(START - 90_001), Some(before));
    assert_eq!(view(START), Some(sale));
    assert_eq!(view(START + 60 * MINUTE), None);
}

// ---- The lottery ----

fn key() -> DrawKey {
    DrawKey::new(None, "a key")
}

#[test]
fn who_comes_in_the_prequeue_stands_where_the_lot_says_and_nobody_else_moves() {
    let room = room(&json!({ "shuffle_at_event_start": true }));
    let (first, start) = (minute_of(START - 10 * MINUTE), minute_of(START));
    let place = |bucket: u32, id: u64| queue_bucket(&room, &key(), bucket, id);
    let mut stands: BTreeMap<u32, u32> = BTreeMap::new();
    for id in 0..10_000 {
        let bucket = first + (id % 10) as u32;
        let dealt = place(bucket, id);
        // Whenever it was that somebody came.
        assert_eq!(dealt, place(first, id));
        assert!(room.lottery(dealt).is_some(), "the page says that it was drawn");
        *stands.entry(dealt).or_default() += 1;
    }
    // All minutes of the prequeue alike: 1,000 each, give or take five deviations.
    assert_eq!(stands.keys().copied().collect::<Vec<_>>(), (first..start).collect::<Vec<_>>());
    assert!(stands.values().all(|count| (850..=1_150).contains(count)), "{stands:?}");
    for bucket in [first - 1, start, start + 1] {
        assert_eq!(place(bucket, 7), bucket);
        assert_eq!(room.lottery(bucket), None, "first come, first in");
    }
    let in_order = self::room(&json!({}));
    assert_eq!(queue_bucket(&in_order, &key(), first + 3, 7), first + 3);
}

#[test]
fn a_place_follows_from_the_published_seed() {
    let room = room(&json!({ "shuffle_at_event_start": true }));
    let seed = key().of_event("shop", "sale", START);
    let first = minute_of(START - 10 * MINUTE);
    for id in [1, 77, u64::MAX] {
        let place = first + (seed.number(id) * 10.0).floor() as u32;
        assert_eq!(queue_bucket(&room, &key(), first + 2, id), place);
    }
}

// ---- The objects ----

fn lease(permits: u32, sequence: u64) -> LeaseAsk {
    LeaseAsk {
        epoch: 1,
        sequence,
        last_answered: sequence - 1,
        groups: vec![Group { bucket: minute_of(START), waits: false, visitors: 1 }],
        permits,
        want: 20,
        rate: 600,
        ..LeaseAsk::default()
    }
}

/// Tells a pool of an empty room, and when it changes.
fn renew(pool: &mut Pool, room: &Room, now: u64) {
    let key = StateKey {
        v: 1,
        taken_at: now,
        minute: minute_of(now),
        step: 500,
        covered: now,
        ..StateKey::default()
    };
    pool.renew(key, now);
    pool.changes_at(room.next_change(now));
}

#[test]
fn the_pool_gives_nothing_in_a_prequeue_and_no_lease_lasts_into_it() {
    let room = room(&json!({}));
    let mut pool = Pool::restore(None, START);
    let before = START - 10 * MINUTE - 3_000;
    renew(&mut pool, &room, before);
    let answer = pool.lease(room.at(before).0, "AMS", &lease(0, 1), before).unwrap();
    assert_eq!(answer.given, [(1, 0)]);
    assert!(answer.extra > 0);
    assert!(answer.usable_ms <= 3_000, "{} ms", answer.usable_ms);

    let within = START - 1;
    renew(&mut pool, &room, within);
    let (prequeueing, _) = room.at(within);
    let answer = pool.lease(prequeueing, "AMS", &lease(answer.extra, 2), within).unwrap();
    assert_eq!((answer.given[0].0, answer.extra, answer.most, answer.level), (0, 0, 0, Level::Queueing));

    renew(&mut pool, &room, START);
    let answer = pool.lease(room.at(START).0, "AMS", &lease(0, 3), START).unwrap();
    assert_eq!(answer.given[0].0, 1);
}

#[test]
fn a_state_of_before_the_start_does_not_hold_against_lower_limits() {
    let room = room(&json!({ "total_active_users": 7, "new_users_per_minute": 5 }));
    let adapted = anteroom::room::Limits { total_active_users: 80, new_users_per_minute: 3 };
    let key = StateKey { limits: Some(adapted), ..StateKey::default() };
    let limits = key.limits(room.at(START).0);
    assert_eq!((limits.total_active_users, limits.new_users_per_minute), (7, 3));
}

#[test]
fn what_lay_in_stocks_before_a_prequeue_is_not_missing_at_the_start() {
    let room = room(&json!({}));
    let mut pool = Pool::restore(None, START);
    let ask = |pool: &mut Pool, colo: &str, ask: &LeaseAsk, now: u64| {
        renew(pool, &room, now);
        pool.lease(room.at(now).0, colo, ask, now).unwrap()
    };
    let before = START - 10 * MINUTE - 3_000;
    assert!(ask(&mut pool, "AMS", &lease(0, 1), before).extra > 0);
    // Nothing is heard of that colo any more.
    let crowd = Group { bucket: minute_of(START) - 1, waits: true, visitors: 60 };
    let answer = ask(&mut pool, "SIN", &LeaseAsk { groups: vec![crowd], ..lease(0, 1) }, START);
    assert_eq!(answer.given[0].0, 60, "all of the first minute");
}

#[test]
fn everybody_is_counted_on_when_an_event_changes_the_session_duration() {
    let room = room(&json!({ "session_duration": 1 }));
    let before = START - 1_000;
    let mut data_center = DataCenter::restore(room.at(before).0, "AMS", 1, None, before);
    let mut global = Global::restore(room.at(before).0, None, Vec::new(), before);
    let push = |data_center: &mut DataCenter, global: &mut Global, now: u64| {
        let (room, _) = room.at(now);
        let saved = data_center.save(room, now);
        let report = data_center.push(room, &saved, None, now);
        global.receive(room, report, now);
        global.state(room, None, minute_of(now), now)
    };
    let check_ins: Vec<CheckIn> = (1..=10)
        .map(|id| CheckIn::Enter {
            id,
            bucket: minute_of(before),
            from: None,
            at: before - id * 7_000,
            minute: minute_of(before),
            numbered: true,
        })
        .collect();
    let report = anteroom::protocol::messages::WorkerReport {
        v: 1,
        worker: 1,
        instance: 1,
        first: 1,
        check_ins,
        urgent: false,
        origin: None,
        counts: anteroom::counts::SlotCounts::default(),
        heard: 0,
        judged: None,
    };
    data_center.receive(room.at(before).0, &report, before);
    assert_eq!(push(&mut data_center, &mut global, before).active, 10);
    // Sessions of one minute: whoever was last seen 7 to 56 seconds ago is still in.
    let key = push(&mut data_center, &mut global, START);
    assert_eq!((key.active, key.step), (8, 83));
    // Global adapts too where no report has come since.
    let mut late = Global::restore(room.at(before).0, None, Vec::new(), before);
    let saved = data_center.save(room.at(START).0, START);
    let report = data_center.push(room.at(START).0, &saved, None, START);
    late.receive(room.at(before).0, report, before);
    assert_eq!(late.state(room.at(START).0, None, minute_of(START), START).active, 8);
    assert!(!Counts::new(&room).is_as_wide(room.at(START).0));
}
