//! What operators may change at run time, what they may not, and that a deploy never loses it.

use std::collections::VecDeque;
use std::rc::Rc;

use anteroom::admission::{DrawKey, LatestOrder, Outcome, StateKey, minute_of, queue_bucket, start_of};
use anteroom::config::{Field, Kind, Rooms, steered_fields};
use anteroom::counts::{DataCenter, Global, WorkerReport};
use anteroom::machines::worker::{
    self as machine, Visit, Visitor, Worker, WorkerContext, WorkerEffect, WorkerInput,
};
use anteroom::origin::OriginMonitor;
use anteroom::protocol::messages::{StateAnswer, Taken};
use anteroom::protocol::wire::{decode, encode};
use anteroom::protocol::{Answer, Request};
use anteroom::room::{Phase, Room};
use anteroom::steering::{Order, Overrides, Steering};
use anteroom::ticket::Ticket;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A whole minute.
const NOW: u64 = 28_000_000 * 60_000;

const MINUTE: u64 = 60_000;

fn rooms(vars: Value) -> Rooms {
    let vars: Vec<(String, Value)> = vars.as_object().unwrap().clone().into_iter().collect();
    let (rooms, errors) = Rooms::from_vars(vars.into_iter());
    assert_eq!(errors, []);
    rooms
}

fn shop(fields: &Value) -> Room {
    rooms(json!({ "ROOM_SHOP": fields })).get("shop").unwrap().clone()
}

fn usual() -> Room {
    shop(&json!({ "total_active_users": 1_000, "new_users_per_minute": 200, "message": "Welcome" }))
}

fn order(order: Value) -> Order {
    Order::read(&order.to_string()).unwrap()
}

/// NOW is a whole minute; the sale's prequeue begins five minutes later, the sale ten, and it lasts for an hour.
fn with_sale() -> Room {
    let time = |minutes: u64| anteroom::time::rfc3339(NOW + minutes * MINUTE);
    rooms(json!({
        "ROOM_SHOP": { "total_active_users": 1_000, "new_users_per_minute": 200 },
        "EVENT_SALE": {
            "room": "shop", "event_start_time": time(10), "event_end_time": time(70),
            "prequeue_start_time": time(5), "shuffle_at_event_start": true,
            "total_active_users": 3_000, "new_users_per_minute": 600,
        },
    }))
    .get("shop")
    .unwrap()
    .clone()
}

#[test]
fn an_order_is_in_force_beside_what_is_deployed_and_in_the_log() {
    let (room, mut steering) = (usual(), Steering::default());
    let log = steering
        .obey(&room, &order(json!({ "set": { "queue_all": true, "total_active_users": 500 } })), "anna", NOW)
        .unwrap();
    assert_eq!(steering.version, 1);
    let steered = room.steered(&steering.overrides());
    assert!(steered.queue_all);
    assert_eq!((steered.total_active_users, steered.new_users_per_minute), (500, 200));
    assert_eq!(steered.page.message, "Welcome");
    let entry = log.iter().find(|entry| entry.field == "total_active_users").unwrap();
    assert_eq!((entry.by.as_str(), entry.at, entry.kind.as_str()), ("anna", NOW, "set"));
    assert_eq!((&entry.before, &entry.after, &entry.deployed), (&json!(1_000), &json!(500), &json!(1_000)));

    let again = order(json!({ "set": { "queue_all": true } }));
    assert_eq!(steering.obey(&room, &again, "ben", NOW + 1).unwrap(), [], "nothing new is no change");
    assert_eq!(steering.version, 1);

    let clear = order(json!({ "clear": ["queue_all", "total_active_users", "message"] }));
    let log = steering.obey(&room, &clear, "ben", NOW + 2).unwrap();
    assert_eq!(log.len(), 2, "what was not overridden is not cleared");
    assert_eq!((&log[0].before, &log[0].after), (&json!(true), &json!(false)));
    assert_eq!(room.steered(&steering.overrides()), room);
    assert_eq!(steering.version, 2, "who has not heard of it must be told");
}

#[test]
fn what_a_deploy_would_refuse_is_refused_and_nothing_is_done() {
    let room = usual();
    let refused = |given: Value| {
        let mut steering = Steering::default();
        let refusal = steering.obey(&room, &order(given), "anna", NOW).unwrap_err();
        assert_eq!(steering, Steering::default(), "all or nothing");
        assert_eq!(refusal.status, 400);
        let names = refusal.errors.into_iter().map(|error| {
            assert!(!error.message.is_empty() && !error.fix.is_empty());
            error.field
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        refused(json!({ "set": { "total_active_users": 0, "queue_all": true } })),
        ["total_active_users"]
    );
    assert_eq!(
        refused(json!({ "set": {
            "new_users_per_minute": 2_147_483_648_u64, "session_duration": 31, "refresh_interval_seconds": 4,
            "suspended": "yes", "message": "two\nlines",
        } })),
        ["suspended", "new_users_per_minute", "session_duration", "refresh_interval_seconds", "message"],
    );
    assert_eq!(refused(json!({ "set": { "total_active_users": 2.5, "queue_all": null } })).len(), 2);
    assert_eq!(refused(json!({ "set": { "path": "/" } })), ["path"], "what cannot be steered");
    assert_eq!(refused(json!({ "clear": ["host"], "keep": ["nothing"] })), ["host", "nothing"]);
    assert_eq!(refused(json!({ "set": { "queue_all": true }, "clear": ["queue_all"] })), ["queue_all"]);
    assert_eq!(refused(json!({ "events": { "sale": "start" } })), ["events.sale"]);
    for body in ["", "null", "[]", "{\"set\":[]}", "{\"sets\":{}}", "{\"if_version\":-1}", "{"] {
        assert_eq!(Order::read(body).unwrap_err().status, 400, "{body}");
    }
}

#[test]
fn of_two_operators_at_once_the_second_is_told_of_the_first() {
    let (room, mut steering) = (usual(), Steering::default());
    let first = order(json!({ "set": { "queue_all": true }, "if_version": 0 }));
    steering.obey(&room, &first, "anna", NOW).unwrap();
    let second = order(json!({ "set": { "queue_all": false }, "if_version": 0 }));
    assert_eq!(steering.obey(&room, &second, "ben", NOW).unwrap_err().status, 409);
    assert!(room.steered(&steering.overrides()).queue_all);
}

#[test]
fn a_deploy_never_drops_an_override_and_shows_what_it_changed() {
    let (room, mut steering) = (usual(), Steering::default());
    steering.obey(&room, &order(json!({ "set": { "total_active_users": 500 } })), "anna", NOW).unwrap();
    let deployed = shop(&json!({ "total_active_users": 2_000, "new_users_per_minute": 300 }));
    assert_eq!(deployed.steered(&steering.overrides()).total_active_users, 500);
    assert_eq!(deployed.steered(&steering.overrides()).new_users_per_minute, 300);
    let view = &steering.override_views(&deployed, NOW)[0];
    assert!(view.deploy_changed);
    assert_eq!(
        (&view.value, &view.deployed, &view.deployed_then),
        (&json!(500), &json!(2_000), &json!(1_000))
    );
    // As it is stored, and read by the code of the next deploy.
    let mut steering = Steering::read(&steering.write().unwrap());

    let log =
        steering.obey(&deployed, &order(json!({ "keep": ["total_active_users"] })), "ben", NOW + 1).unwrap();
    assert_eq!(log[0].kind, "keep");
    assert!(!steering.override_views(&deployed, NOW)[0].deploy_changed);
    assert_eq!(deployed.steered(&steering.overrides()).total_active_users, 500);
}

#[test]
fn an_override_holds_in_events_and_limits_that_adapt_stay_below_it() {
    let (room, mut steering) = (with_sale(), Steering::default());
    steering
        .obey(&room, &order(json!({ "set": { "total_active_users": 50, "queue_all": true } })), "anna", NOW)
        .unwrap();
    let steered = room.steered(&steering.overrides());
    for minutes in [0, 7, 20, 80] {
        let now = steered.at(NOW + minutes * MINUTE).0;
        assert_eq!((now.total_active_users, now.queue_all), (50, true), "after {minutes} minutes");
    }
    let adaptive = shop(&json!({
        "limits": "adaptive", "total_active_users": { "min": 200, "max": 1_000 }, "new_users_per_minute": 60,
    }));
    let steered = adaptive.steered(&steering.overrides());
    assert_eq!((steered.total_active_users, steered.adaptive.unwrap().least_active_users), (50, 50));
}

#[test]
fn the_log_of_a_sale_says_what_was_in_force_before_not_what_was_deployed() {
    let (room, mut steering) = (with_sale(), Steering::default());
    let in_sale = NOW + 20 * MINUTE;
    let mut log = |given: Value| steering.obey(&room, &order(given), "anna", in_sale).unwrap().remove(0);
    let set = log(json!({ "set": { "total_active_users": 50 }, "reason": "the origin is slow" }));
    assert_eq!((&set.before, &set.after, &set.deployed), (&json!(3_000), &json!(50), &json!(1_000)));
    assert_eq!(set.reason, "the origin is slow");
    let clear = log(json!({ "clear": ["total_active_users"] }));
    assert_eq!((&clear.before, &clear.after, &clear.deployed), (&json!(50), &json!(3_000), &json!(1_000)));
}

#[test]
fn what_is_set_until_a_time_ends_then_by_itself_wherever_it_is_known() {
    let (room, mut steering) = (with_sale(), Steering::default());
    let set =
        json!({ "set": { "total_active_users": 50, "queue_all": true }, "until": "30m", "reason": "slow" });
    let log = steering.obey(&room, &order(set), "anna", NOW).unwrap();
    let end = NOW + 30 * MINUTE;
    assert!(log.iter().all(|entry| (entry.until, entry.reason.as_str()) == (Some(end), "slow")));
    let shorter = json!({ "set": { "queue_all": true }, "until": end - 5 * MINUTE });
    assert_eq!(steering.obey(&room, &order(shorter), "anna", NOW + 1).unwrap().len(), 1, "another end");
    let message = json!({ "set": { "message": "Soon" } });
    steering.obey(&room, &order(message), "anna", NOW + 1).unwrap();

    // As a worker knows it that hears nothing any more, in the sale and after it.
    let told: Overrides = decode(&encode(&steering.overrides()).unwrap()).unwrap();
    let steered = room.steered(&told);
    let at = |time: u64| {
        let room = steered.at(time).0;
        (room.total_active_users, room.queue_all, room.page.message.as_str())
    };
    assert_eq!(at(end - 5 * MINUTE - 1), (50, true, "Soon"));
    assert_eq!(at(end - 5 * MINUTE), (50, false, "Soon"));
    assert_eq!(at(end), (3_000, false, "Soon"), "the sale's own limit");
    assert_eq!(at(NOW + 80 * MINUTE), (1_000, false, "Soon"));
    let changes = [end - 6 * MINUTE, end - 5 * MINUTE, end].map(|time| steered.next_change(time));
    assert_eq!(
        changes,
        [Some(end - 5 * MINUTE), Some(end), Some(NOW + 70 * MINUTE)],
        "no permit outlives it"
    );

    // Stored, and read after a restart.
    let mut steering = Steering::read(&steering.write().unwrap());
    assert_eq!(steering.end_overrides(&room, end - 5 * MINUTE - 1), []);
    let ended = steering.end_overrides(&room, end);
    let told: Vec<_> =
        ended.iter().map(|entry| (entry.field.as_str(), &entry.before, &entry.after)).collect();
    let expected =
        [("queue_all", &json!(true), &json!(false)), ("total_active_users", &json!(50), &json!(3_000))];
    assert_eq!(told, expected);
    assert!(ended.iter().all(|entry| entry.kind == "end" && entry.by == "anna"));
    assert_eq!((steering.version, steering.next_end()), (4, None));
    assert_eq!(steering.override_views(&room, end).len(), 1, "the message stays");
}

#[test]
fn an_end_is_a_time_to_come_and_a_reason_a_short_line() {
    let room = usual();
    let refused = |mut given: Value| {
        given["set"] = json!({ "queue_all": true });
        let errors = Steering::default().obey(&room, &order(given), "anna", NOW).unwrap_err().errors;
        errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
    };
    for until in
        [json!(NOW), json!("2021-11-27T09:00:00Z"), json!("soon"), json!("400d"), json!(-1), json!([])]
    {
        assert_eq!(refused(json!({ "until": until })), ["until"], "{until}");
    }
    assert_eq!(refused(json!({ "reason": "a".repeat(201) })), ["reason"]);
    assert_eq!(refused(json!({ "reason": "two\nlines", "until": 1 })), ["until", "reason"]);
    let alone = order(json!({ "clear": ["queue_all"], "until": "1h" }));
    assert_eq!(Steering::default().obey(&room, &alone, "anna", NOW).unwrap_err().errors[0].field, "until");
    for until in [json!(NOW + 1), json!(anteroom::time::rfc3339(NOW + MINUTE)), json!("90 min")] {
        let set = order(json!({ "set": { "queue_all": true }, "until": until }));
        assert!(Steering::default().obey(&room, &set, "anna", NOW).is_ok(), "{until}");
    }
}

#[test]
fn a_sale_starts_and_ends_when_the_operator_says_so() {
    let (room, mut steering) = (with_sale(), Steering::default());
    let now = NOW + 7 * MINUTE + 20_000;
    assert!(matches!(room.at(now).1, Phase::Prequeue { .. }));
    steering.obey(&room, &order(json!({ "events": { "sale": "start" } })), "anna", now).unwrap();
    let steered = room.steered(&steering.overrides());
    let (at_start, phase) = steered.at(now);
    assert!(matches!(phase, Phase::Active { .. }) && !at_start.prequeue);
    assert_eq!(at_start.total_active_users, 3_000);
    assert_eq!(steering.event_views(&room, now)[0].phase, "active");

    // Those who were dealt a place keep it, and whoever comes now stands behind them.
    let (key, minute) = (DrawKey::new(Some("seed"), ""), (NOW / MINUTE) as u32);
    for id in 1..200 {
        let dealt = queue_bucket(&room, &key, minute + 6, id);
        assert_eq!(queue_bucket(&steered, &key, minute + 6, id), dealt);
        assert!(queue_bucket(&steered, &key, minute + 7, id) > dealt);
        assert!(queue_bucket(&steered, &key, minute + 8, id) > dealt);
    }

    let later = now + 5 * MINUTE;
    steering.obey(&room, &order(json!({ "events": { "sale": "end" } })), "anna", later).unwrap();
    let steered = room.steered(&steering.overrides());
    assert_eq!(steered.at(later).0.total_active_users, 1_000);
    assert_eq!(steering.event_views(&room, later)[0].phase, "over");
    let over =
        steering.obey(&room, &order(json!({ "events": { "sale": "start" } })), "anna", later).unwrap_err();
    assert!(over.errors[0].message.contains("over"), "{over:?}");

    steering.obey(&room, &order(json!({ "events": { "sale": "clear" } })), "anna", later).unwrap();
    assert_eq!(room.steered(&steering.overrides()), room);
}

#[test]
fn an_event_that_has_not_begun_cannot_end_and_a_prequeue_can_be_called_off() {
    let (room, mut steering) = (with_sale(), Steering::default());
    let end = order(json!({ "events": { "sale": "end" } }));
    assert!(steering.obey(&room, &end, "anna", NOW).is_err());
    steering.obey(&room, &end, "anna", NOW + 6 * MINUTE).unwrap();
    assert!(!room.steered(&steering.overrides()).at(NOW + 6 * MINUTE).0.prequeue);
}

/// A colo that has reported once, at NOW, and sleeps since. Whether it must ask before its workers are told at a time, with its
/// memory and without, and whether it is told of an order that is given then, also by a Global that has just started anew.
fn asleep(at: u64) -> ([bool; 2], bool) {
    let room =
        shop(&json!({ "total_active_users": 1_000, "new_users_per_minute": 200, "session_duration": 1 }));
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    assert!(data_center.must_ask(NOW), "it knows nothing");
    let saved = data_center.save(&room, NOW);
    let report = data_center.push(&room, &saved, None, NOW);
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    global.receive(&room, report.clone(), NOW + 100);
    let key = global.state(&room, Some("AMS"), minute_of(NOW), NOW + 100);
    data_center.pushed(&room, Some(key), NOW + 200);
    assert!(data_center.must_store_trust(NOW + 200), "its next start must know that it need not ask");
    let saved = data_center.save(&room, NOW + 200);
    let restarted = DataCenter::restore(&room, "AMS", 8, Some(saved), at);
    let close = order(json!({ "set": { "queue_all": true } }));
    let started_anew = Global::restore(&room, None, vec![report], at);
    let is_told = |mut global: Global| {
        global.obey(&room, &close, "anna", at).unwrap();
        global.colos_to_tell(&room.steered(global.overrides()), at) == ["AMS"]
    };
    ([data_center.must_ask(at), restarted.must_ask(at)], [global, started_anew].map(is_told) == [true; 2])
}

#[test]
fn a_data_center_that_sleeps_asks_only_when_nobody_would_tell_it_also_after_it_has_lost_its_memory() {
    assert_eq!(asleep(NOW + 55 * MINUTE), ([false, false], true));
    assert_eq!(asleep(NOW + 61 * MINUTE), ([true, true], false));
    for second in (1..4_000).step_by(7) {
        let (asks, told) = asleep(NOW + second * 1_000);
        assert!(told || asks == [true, true], "after {second} seconds");
    }
}

#[test]
fn a_data_center_that_global_does_not_know_asks_until_it_is_known() {
    let room = usual();
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    data_center.learn(global.state(&room, Some("AMS"), minute_of(NOW), NOW), NOW);
    // Its workers have reported, but it has not: nobody would tell it of an order.
    let report = WorkerReport { v: 1, worker: 1, first: 1, ..WorkerReport::default() };
    data_center.receive(&room, &report, NOW + 1_000);
    assert!(data_center.must_ask(NOW + 3_000));
    let saved = data_center.save(&room, NOW + 3_000);
    let report = data_center.push(&room, &saved, None, NOW + 3_000);
    global.receive(&room, report, NOW + 3_000);
    data_center.pushed(
        &room,
        Some(global.state(&room, Some("AMS"), minute_of(NOW), NOW + 3_000)),
        NOW + 3_100,
    );
    assert!(!data_center.must_ask(NOW + 60_000));
}

#[test]
fn a_colo_that_is_known_before_its_users_are_counted_tells_nobody_a_wait() {
    let room = usual();
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    let mut push = |data_center: &mut DataCenter, now| {
        let saved = data_center.save(&room, now);
        global.receive(&room, data_center.push(&room, &saved, None, now), now);
        data_center.pushed(&room, Some(global.state(&room, Some("AMS"), minute_of(now), now)), now);
        data_center.state(now).unwrap().uncounted
    };
    assert!(push(&mut data_center, NOW));
    let report = WorkerReport { v: 1, worker: 1, first: 1, ..WorkerReport::default() };
    data_center.receive(&room, &report, NOW + 1_000);
    assert!(!push(&mut data_center, NOW + 2_000));
}

/// Of which version of the operators' changes the Counter is told with each ask of a new worker's first visitor, who comes at a
/// time. The Counter's answer, a permit of the minute in which it was asked, is on its way for so long.
fn asks(steering: &Steering, comes_at: u64, way_ms: u64) -> Vec<u32> {
    first_visit(steering, comes_at, [way_ms, 0], None).0
}

/// The same, and when the visitor is in. The answers of the Counter and of the data center are on their way for so long; the
/// Counter says what was the latest version of the changes.
fn first_visit(
    steering: &Steering,
    comes_at: u64,
    [way_ms, state_way_ms]: [u64; 2],
    latest: Option<LatestOrder>,
) -> (Vec<u32>, Option<(u64, Ticket)>) {
    let room = Rc::new(usual());
    let (key, mut origin) = (DrawKey::new(None, "a key"), OriginMonitor::new(&room));
    let mut worker = Worker::new(7, Rc::clone(&room), "AMS".to_owned(), 500);
    let mut visit = Visit::new(Visitor { id: 9, ..Visitor::default() }, Rc::clone(&room));
    let (mut told, mut is_in) = (Vec::new(), None);
    let mut inputs = VecDeque::from([(comes_at, WorkerInput::Begin)]);
    while let Some((now, input)) = inputs.pop_front() {
        let mut effects = Vec::new();
        let mut context = WorkerContext { draw_key: &key, origin: &mut origin, now };
        visit.handle(&mut worker, &mut context, input, &mut effects);
        for effect in effects {
            match effect {
                WorkerEffect::ReadCache => inputs.push_back((now, WorkerInput::Cached(None))),
                WorkerEffect::Await { until } => inputs.push_back((until, WorkerInput::Time)),
                WorkerEffect::Call(call) => {
                    let (at, answer) = if let Request::CounterTake(take) = call.request {
                        told.push(take.steering.version);
                        let outcomes = vec![Outcome::Given { minute: minute_of(now), number: 0 }];
                        let taken = Taken { v: 1, outcomes, latest, ..Taken::default() };
                        (now + way_ms, Answer::CounterTake(Box::new(taken)))
                    } else {
                        let (minute, steering) = (minute_of(now), steering.overrides());
                        let state = StateKey { taken_at: now, minute, steering, ..StateKey::default() };
                        let answer = StateAnswer { v: 1, state: Some(state) };
                        (now + state_way_ms, Answer::DataCenterState(Box::new(answer)))
                    };
                    inputs.push_back((at, WorkerInput::Answered { call: call.number, answer: Some(answer) }));
                }
                WorkerEffect::Done(outcome) => {
                    let machine::Outcome::Admitted { ticket, .. } = *outcome else { return (told, None) };
                    is_in = Some((now, ticket));
                }
                _ => {}
            }
        }
        inputs.make_contiguous().sort_by_key(|(at, _)| *at);
    }
    (told, is_in)
}

#[test]
fn a_new_worker_lets_a_visitor_in_without_a_state_key_if_the_counter_has_just_heard_that_nothing_was_changed()
{
    let mut steering = Steering::default();
    let latest = |version| Some(LatestOrder { version, time: NOW + 3_000 });
    let enters = |steering: &Steering, latest| {
        let (asks, is_in) = first_visit(steering, NOW, [40, 300], latest);
        let (at, ticket) = is_in.unwrap();
        (asks.len(), at - NOW, ticket.accepted_at.unwrap() - NOW)
    };
    assert_eq!(enters(&steering, None), (1, 300, 300), "nobody knows whether it is open");
    assert_eq!(enters(&steering, latest(0)), (1, 40, 3_000), "at the time by the pool's clock");
    let set = json!({ "set": { "session_duration": 3 } });
    steering.obey(&usual(), &order(set), "anna", NOW).unwrap();
    assert_eq!(enters(&steering, latest(1)).1, 340, "what was changed the state key says");
}

#[test]
fn a_new_worker_asks_for_a_permit_once_more_when_all_changes_were_taken_back() {
    let mut steering = Steering::default();
    for change in [json!({ "set": { "queue_all": true } }), json!({ "clear": ["queue_all"] })] {
        steering.obey(&usual(), &order(change), "anna", NOW).unwrap();
    }
    assert_eq!(
        asks(&steering, NOW, 0),
        [0, 2],
        "the Counter may have a stock of before, and hears of the changes by the second ask"
    );
}

#[test]
fn a_permit_whose_minute_has_ended_on_its_way_is_asked_for_once_more() {
    let before_the_end = start_of(minute_of(NOW) + 1) - 50;
    let steering = Steering::default();
    assert_eq!(asks(&steering, before_the_end, 40).len(), 1);
    assert_eq!(asks(&steering, before_the_end, 60).len(), 2, "else one too many enters in the next minute");
    assert_eq!(asks(&steering, NOW, 400).len(), 1);
}

#[test]
fn what_is_steered_travels_inside_the_state_key_and_may_grow() {
    let mut steering = Steering::default();
    let set = json!({ "set": { "message": "Back at noon", "session_duration": 2 } });
    steering.obey(&usual(), &order(set), "anna", NOW).unwrap();
    let key = StateKey {
        v: 1,
        taken_at: NOW,
        steering: steering.overrides(),
        watched: true,
        ..StateKey::default()
    };
    let told = StateAnswer { v: 1, state: Some(key) };
    assert_eq!(decode::<StateAnswer>(&encode(&told).unwrap()).unwrap(), told);
    // From a Global of before there was such a thing: nothing is overridden.
    let quiet = StateAnswer { v: 1, state: Some(StateKey { v: 1, taken_at: NOW, ..StateKey::default() }) };
    let bytes = encode(&quiet).unwrap();
    assert_eq!(decode::<StateAnswer>(&bytes[..bytes.len() - 2]).unwrap(), quiet);
}

fn steered() -> Vec<&'static Field> {
    steered_fields().collect()
}

fn any_value(field: &Field) -> BoxedStrategy<Value> {
    match field.kind {
        Kind::Flag { .. } => any::<bool>().prop_map(Value::from).boxed(),
        Kind::Whole { least, most, .. } => (least..=most).prop_map(Value::from).boxed(),
        Kind::Limit { .. } => (1_u32..5_000).prop_map(Value::from).boxed(),
        Kind::Choice { names, .. } => prop::sample::select(names).prop_map(Value::from).boxed(),
        Kind::Share { .. } => (0..=20).prop_map(|part| Value::from(f64::from(part) / 20.0)).boxed(),
        _ => "[a-z ]{0,20}".prop_map(Value::from).boxed(),
    }
}

fn any_order() -> impl Strategy<Value = (usize, Option<Value>)> {
    (0..steered().len()).prop_flat_map(|index| (Just(index), prop::option::of(any_value(steered()[index]))))
}

proptest! {
    /// Whatever is ordered in whatever order: a field is as it was set last, or as deployed once it was cleared; every
    /// change is in the log with what was in force before; and every version that differs has another number.
    #[test]
    fn a_field_is_as_it_was_set_last(orders in prop::collection::vec(any_order(), 1..30)) {
        let (room, mut steering) = (usual(), Steering::default());
        let mut expected: Vec<Value> = steered().iter().map(|field| field.value(&room).unwrap()).collect();
        for (index, value) in orders {
            let (field, version) = (steered()[index], steering.version);
            let given = match &value {
                Some(value) => json!({ "set": { field.name: value } }),
                None => json!({ "clear": [field.name] }),
            };
            let enforces = steered().iter().position(|field| field.name == "mode").map(|mode| &expected[mode])
                == Some(&json!("enforce"));
            let done = steering.obey(&room, &order(given), "anna", NOW);
            if field.name == "enforce_share" && value.is_some() && enforces {
                prop_assert_eq!(&done.unwrap_err().errors[0].field, "enforce_share");
                continue;
            }
            let log = done.unwrap();
            for entry in &log {
                prop_assert_eq!(&entry.before, &expected[index]);
            }
            expected[index] = value.unwrap_or_else(|| field.value(&room).unwrap());
            prop_assert_eq!(steering.version, version + u32::from(!log.is_empty()));
            let steered = room.steered(&steering.overrides());
            let found: Vec<Value> = steered_fields().map(|field| field.value(&steered).unwrap()).collect();
            prop_assert_eq!(&found, &expected);
            let travelled: Overrides = decode(&encode(&steering.overrides()).unwrap()).unwrap();
            prop_assert_eq!(travelled, steering.overrides());
        }
    }
}

#[test]
fn overrides_have_the_bytes_and_the_json_that_older_versions_know() {
    let written = json!({
        "version": 7, "queue_all": true, "suspended": null, "total_active_users": 500,
        "new_users_per_minute": null, "session_duration": 2, "refresh_interval_seconds": null, "message": "hi",
        "events": [{ "name": "sale", "start": 1_000, "end": null }], "unreadable": false,
    });
    let overrides: Overrides = serde_json::from_value(written.clone()).unwrap();
    let told = serde_json::to_value(&overrides).unwrap();
    for (field, value) in written.as_object().unwrap() {
        assert_eq!(&told[field], value, "{field}");
    }
    let bytes: String = encode(&overrides).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    // What is new follows.
    assert!(bytes.starts_with("0701010001f4030001020001026869010473616c6501e8070000"), "{bytes}");
    assert!(
        bytes.trim_end_matches('0').len() <= "0701010001f4030001020001026869010473616c6501e8070000".len()
    );
    assert_eq!(decode::<Overrides>(&encode(&overrides).unwrap()).unwrap(), overrides);
    let mut ending = serde_json::to_value(&overrides).unwrap();
    ending["ends"] = json!([["queue_all", NOW]]);
    let ending: Overrides = serde_json::from_value(ending).unwrap();
    assert_eq!(ending.end("queue_all"), Some(NOW));
    let ending_bytes = encode(&ending).unwrap();
    assert_eq!(ending_bytes[..25], encode(&overrides).unwrap()[..25], "ends follow");
    assert_eq!(decode::<Overrides>(&ending_bytes).unwrap(), ending);
    assert!(encode(&Overrides::default()).unwrap().iter().all(|byte| *byte == 0));
    // The mode follows the ends, and the share the mode.
    let mode: Overrides = serde_json::from_value(json!({ "version": 7, "mode": "observe" })).unwrap();
    let bytes = encode(&mode).unwrap();
    assert_eq!(bytes, [&[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7][..], b"observe", &[0]].concat());
    assert_eq!(decode::<Overrides>(&bytes).unwrap(), mode);
    let share: Overrides =
        serde_json::from_value(json!({ "version": 7, "enforce_share": 0.000_127 })).unwrap();
    let bytes = encode(&share).unwrap();
    assert_eq!(bytes, [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 127]);
    assert_eq!(decode::<Overrides>(&bytes).unwrap(), share);
    assert_eq!(serde_json::to_value(&share).unwrap()["enforce_share"], json!(0.000_127));
}
