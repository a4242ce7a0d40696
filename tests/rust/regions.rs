//! A region's Counter: a few permits for all colos of a region, nearer than the pool.

use std::rc::Rc;

use anteroom::admission::{
    Group, LatestOrder, LeaseAnswer, LeaseAsk, LeaseCounter, Level, NumberAsk, Outcome, Pool, Serves,
    StateKey, minute_of, start_of,
};
use anteroom::machines::{Context, Counter, Effect, Input, ObjectMachine, Stored};
use anteroom::protocol::messages::{Take, colo_object};
use anteroom::protocol::{Answer, Request};
use anteroom::room::{AdaptiveRange, Location, OnUnhealthy, RateWindow, Room, SlotStrategy};
use anteroom::steering::Overrides;

use crate::articles::room;

const MINUTE: u32 = 28_000_000;
const NOW: u64 = MINUTE as u64 * 60_000 + 30_000;

fn newcomer(id: u64) -> NumberAsk {
    NumberAsk { id, bucket: MINUTE, waits: false, minute: MINUTE, limit: 0, owned: 1 }
}

/// A colo's Counter that knows its region and nothing else.
fn counter_of_region() -> LeaseCounter {
    let mut counter = LeaseCounter::new(1);
    counter.follow(RateWindow::Minute, Serves::ColoOfRegion);
    counter
}

/// For how many visitors it asks the pool now.
fn asks_the_pool_for(counter: &mut LeaseCounter, now: u64) -> u32 {
    counter.call(now).map_or(0, |ask| ask.groups.iter().map(|group| group.visitors).sum())
}

#[test]
fn who_finds_nothing_in_the_colo_gets_a_permit_of_the_region() {
    let mut counter = counter_of_region();
    counter.ask(1, newcomer(1), NOW);
    assert_eq!(counter.call_region(), [newcomer(1)]);
    counter.ask(2, newcomer(2), NOW + 1);
    assert!(counter.call_region().is_empty(), "one call at a time");
    assert_eq!(asks_the_pool_for(&mut counter, NOW + 1), 0);
    let given = Outcome::Given { minute: MINUTE, number: 0 };
    counter.region_answered(&[given], Some(Level::Busy), None, NOW + 30);
    assert_eq!(counter.answers(), [(1, given)]);
    assert!(counter.has_given(1, NOW + 30), "who asks once more has it already");
    assert_eq!(counter.call_region(), [newcomer(2)]);
    // The region tells the pool of the permit, the colo that somebody has come.
    assert_eq!(counter.call(NOW + 30).unwrap().used, [(MINUTE, 0)]);
    counter.answered(None, NOW + 500);
    assert_eq!(
        counter.call(NOW + 600).unwrap().used,
        [(MINUTE, 0)],
        "and again, until the pool has answered"
    );
}

#[test]
fn what_the_pool_has_just_heard_of_orders_a_counter_passes_on_for_a_second() {
    let ask = |counter: &mut LeaseCounter| {
        counter.ask(1, newcomer(1), NOW);
        counter.call(NOW).unwrap()
    };
    let answered = |is_latest| {
        let mut counter = LeaseCounter::new(1);
        let call = ask(&mut counter);
        let answer = Pool::restore(None, NOW).nothing(&call, NOW + 20);
        counter.answered(Some(&LeaseAnswer { is_latest, ..answer }), NOW + 40);
        counter
    };
    let order = |time| Some(LatestOrder { version: 0, time });
    let counter = answered(true);
    assert_eq!(counter.latest_order(NOW + 999), order(NOW + 979), "by the pool's clock");
    assert_eq!(counter.latest_order(NOW + 1_000), None);
    assert_eq!(answered(false).latest_order(NOW + 40), None, "what the pool has heard is old");
    let mut colo = counter_of_region();
    colo.ask(1, newcomer(1), NOW);
    colo.call_region();
    let given = Outcome::Given { minute: MINUTE, number: 0 };
    colo.region_answered(&[given], Some(Level::Busy), order(NOW + 20), NOW + 30);
    assert_eq!(colo.latest_order(NOW + 30), order(NOW + 20));
    assert_eq!(colo.latest_order(NOW + 130), None, "it may have been a second old");
}

#[test]
fn who_gets_nothing_of_the_region_waits_for_the_pool() {
    for outcomes in [
        &[Outcome::Unknown][..],
        &[],
        // On its way the minute has ended for which it counts.
        &[Outcome::Given { minute: MINUTE - 1, number: 0 }],
    ] {
        let mut counter = counter_of_region();
        counter.ask(1, newcomer(1), NOW);
        assert_eq!(counter.call_region().len(), 1);
        counter.ask(2, newcomer(2), NOW);
        counter.region_answered(outcomes, Some(Level::Busy), None, NOW + 30);
        assert!(counter.answers().is_empty());
        let is_silent = outcomes.is_empty();
        assert_eq!(asks_the_pool_for(&mut counter, NOW + 30), 1 + u32::from(is_silent), "{outcomes:?}");
        assert_eq!(counter.call_region().is_empty(), is_silent);
    }
}

#[test]
fn what_a_region_gives_while_an_operator_changes_the_room_is_not_used() {
    let mut counter = counter_of_region();
    counter.ask(1, newcomer(1), NOW);
    counter.call_region();
    counter.void_before(1);
    assert_eq!(asks_the_pool_for(&mut counter, NOW + 10), 1);
    counter.region_answered(
        &[Outcome::Given { minute: MINUTE, number: 0 }],
        Some(Level::Busy),
        None,
        NOW + 30,
    );
    assert!(counter.answers().is_empty());
}

#[test]
fn a_region_that_does_not_answer_is_left_alone_for_half_a_minute() {
    let mut counter = counter_of_region();
    counter.ask(1, newcomer(1), NOW);
    counter.call_region();
    counter.region_answered(&[], None, None, NOW);
    counter.ask(2, newcomer(2), NOW + 29_999);
    assert!(counter.call_region().is_empty());
    counter.ask(3, newcomer(3), NOW + 30_000);
    assert_eq!(counter.call_region(), [newcomer(3)]);
}

#[test]
fn nobody_asks_the_region_for_visitors_who_have_been_sent_away() {
    let mut counter = counter_of_region();
    counter.ask(1, newcomer(1), NOW);
    counter.call_region();
    counter.ask(2, newcomer(2), NOW);
    counter.ask(3, newcomer(3), NOW);
    counter.forget_before(3);
    counter.region_answered(&[Outcome::Unknown], Some(Level::Busy), None, NOW + 30);
    assert_eq!(counter.call_region(), [newcomer(3)]);
}

#[test]
fn while_people_wait_the_pool_judges_each() {
    let mut counter = counter_of_region();
    counter.ask(1, newcomer(1), NOW);
    counter.call_region();
    let refused = Outcome::Refused { minute: MINUTE, limit: 0, wait_ms: 1_000 };
    counter.region_answered(&[refused], Some(Level::Queueing), None, NOW);
    assert_eq!(counter.answers(), [(1, refused)]);
    counter.ask(2, newcomer(2), NOW);
    assert!(counter.call_region().is_empty());
    assert_eq!(asks_the_pool_for(&mut counter, NOW), 1);
}

#[test]
fn a_counter_asks_the_region_that_workers_tell_of_in_rooms_where_stocks_are_for_crowds() {
    let called = |room: Room, colo: &str, region: &str| {
        let room = Rc::new(Room { slot_strategy: SlotStrategy::Leases, ..room });
        let mut counter = Counter::restore(&Stored::new(), 7, NOW);
        let take = Take { region: region.to_owned(), ..Take::new(vec![newcomer(1)], Overrides::default()) };
        let input = Input::Asked { from: 1, request: Request::CounterTake(Box::new(take)) };
        let mut effects = Vec::new();
        counter.handle(&Context { room: &room, colo, deadline_ms: 500, now: NOW }, input, &mut effects);
        let calls = effects.into_iter().filter_map(|effect| match effect {
            Effect::Call(call) if call.name == room.name => Some("the pool"),
            Effect::Call(call) if call.name == colo_object(&room.name, "weur") => Some("the region"),
            _ => None,
        });
        calls.collect::<Vec<_>>()
    };
    let large = || room(200, 200, 5);
    let adaptive = Some(AdaptiveRange::default());
    assert_eq!(called(large(), "AMS", "weur"), ["the region"]);
    assert_eq!(called(Room { adaptive, ..large() }, "AMS", "weur"), ["the region"]);
    assert_eq!(called(large(), "AMS", ""), ["the pool"], "nobody knows where it is");
    assert_eq!(called(room(100, 100, 5), "AMS", "weur"), ["the pool"], "each slot counts");
    let held = Room { on_unhealthy: OnUnhealthy::Hold, ..large() };
    assert_eq!(called(held, "AMS", "weur"), ["the pool"], "an unhealthy origin holds it");
    let sliding = Room { rate_window: RateWindow::Sliding, ..large() };
    assert_eq!(called(sliding, "AMS", "weur"), ["the pool"], "the window slides");
    assert_eq!(called(large(), "weur", ""), ["the pool"], "the region itself");
}

#[test]
fn a_counter_does_not_pass_on_the_pools_word_of_orders_where_a_worker_has_told_of_a_later_one() {
    let passed_on = |known: u32| {
        let room = Rc::new(Room { slot_strategy: SlotStrategy::Leases, ..room(100, 100, 5) });
        let mut counter = Counter::restore(&Stored::new(), 7, NOW);
        let mut overrides = Overrides::default();
        overrides.version = known;
        let take = Request::CounterTake(Box::new(Take::new(vec![newcomer(1)], overrides)));
        let mut inputs = vec![Input::Asked { from: 1, request: take }];
        let mut told = None;
        while let Some(input) = inputs.pop() {
            let mut effects = Vec::new();
            let context = Context { room: &room, colo: "AMS", deadline_ms: 500, now: NOW };
            counter.handle(&context, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Call(call) => {
                        let Request::AnywhereLease(lease) = call.request else { panic!("asks the pool") };
                        let answer = Pool::restore(None, NOW).nothing(&lease.ask, NOW);
                        let answer = Box::new(LeaseAnswer { steering: 1, is_latest: true, ..answer });
                        let answer = Some(Answer::AnywhereLease(answer));
                        inputs.push(Input::Answered { call: call.number, answer });
                    }
                    Effect::Reply { answer: Answer::CounterTake(taken), .. } => told = taken.latest,
                    _ => {}
                }
            }
        }
        told.map(|order: LatestOrder| order.version)
    };
    assert_eq!([0, 1, 2].map(passed_on), [Some(1), Some(1), None]);
}

#[test]
fn regions_hold_a_few_permits_each_whatever_they_ask_for() {
    let laid = |users: u32| {
        let room = Room { slot_strategy: SlotStrategy::Leases, ..room(users, users, 5) };
        let mut pool = Pool::restore(None, NOW);
        pool.renew(StateKey { taken_at: NOW, minute: MINUTE, ..StateKey::default() }, NOW);
        let ask = LeaseAsk { epoch: 1, sequence: 1, rate: 60_000, want: 1_000, ..LeaseAsk::default() };
        let answer = pool.lease(&room, "apac", &ask, NOW).unwrap();
        (answer.extra, answer.usable_ms)
    };
    // Three eighths of 48 that may lie in stocks, for nine regions; for an hour, since nobody may come for so long.
    assert_eq!(laid(64 + 100), (5, 3_600_000));
    assert_eq!(laid(10_000), (8, 3_600_000));
}

#[test]
fn a_slot_is_kept_for_who_came_with_a_regions_permit_until_that_colo_has_told_of_them() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(200, 200, 5) };
    let told = LeaseAsk { epoch: 1, sequence: 1, ..LeaseAsk::default() };
    let free_later = |of_ams: Vec<(u32, u64)>, colos_told: u32| {
        let mut pool = Pool::restore(None, NOW);
        let key = |now: u64| StateKey {
            taken_at: now,
            covered: now,
            minute: minute_of(now),
            ..StateKey::default()
        };
        pool.renew(key(NOW), NOW);
        pool.lease(&room, "weur", &LeaseAsk { used: vec![(MINUTE, 1)], ..told.clone() }, NOW).unwrap();
        pool.lease(&room, "AMS", &LeaseAsk { used: of_ams, ..told.clone() }, NOW).unwrap();
        // All colos of which Global knows have reported since the end of that minute.
        let later = start_of(MINUTE + 1) + 10_000;
        let recent = vec![(MINUTE, 0, 0)];
        pool.renew(StateKey { recent, recent_colos: vec![colos_told], ..key(later) }, later);
        let groups = vec![Group { bucket: MINUTE + 1, waits: false, visitors: 1_000 }];
        let ask = LeaseAsk { epoch: 2, sequence: 1, groups, ..LeaseAsk::default() };
        pool.lease(&room, "CDG", &ask, later).unwrap().given[0].0
    };
    assert_eq!(free_later(vec![(MINUTE, 0)], 0), 199, "AMS has not told Global of anybody");
    assert_eq!(free_later(vec![(MINUTE, 0)], 1), 200, "it has, and nobody came");
    assert_eq!(free_later(Vec::new(), 0), 200, "the region itself tells Global nothing");
}

#[test]
fn a_place_is_in_the_nearest_region_and_no_colo_is_called_like_one() {
    let places = [
        ("weur", (52.4, 4.9)),
        ("enam", (43.7, -79.6)),
        ("wnam", (21.3, -157.9)),
        ("sam", (-34.6, -58.4)),
        ("eeur", (55.8, 37.6)),
        ("apac", (35.7, 139.7)),
        ("oc", (-36.8, 174.8)),
        ("afr", (-1.3, 36.9)),
        ("me", (31.9, 36.0)),
        // The date line is no end of the world.
        ("oc", (-14.3, -170.7)),
    ];
    for (hint, (north, east)) in places {
        assert_eq!(Location::nearest(north, east), hint, "{north} {east}");
        assert_eq!(Location::hint_of(hint), Some(hint));
    }
    assert_eq!(["AMS", "auto", ""].map(Location::hint_of), [None; 3]);
}
