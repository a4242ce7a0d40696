//! What happens at the bounds: every collection has one, and nothing breaks there.

use std::rc::Rc;

use anteroom::admission::{
    AdmissionController, Batcher, Clocked, DrawKey, Fallback, Group, LatestOrder, LeaseAsk, LeaseCounter,
    Level, NumberAsk, Outcome as Granted, Pool, Progress, Remembered, RoundTrip, StateKey, minute_of,
    start_of,
};
use anteroom::answer::Estimate;
use anteroom::counts::{CheckIn, Counts, DataCenter, Global, MAX_COLOS, Outbox, Seen};
use anteroom::machines::Call;
use anteroom::machines::worker::{Outcome, Task, Visitor, Worker, WorkerContext, WorkerEffect, WorkerInput};
use anteroom::origin::OriginMonitor;
use anteroom::protocol::messages::{ColoReport, StateAnswer, Taken, VERSION, WorkerAnswer, WorkerReport};
use anteroom::protocol::wire::encode;
use anteroom::protocol::{Answer, Request};
use anteroom::room::{AdaptiveRange, OnUnhealthy, Room, SlotStrategy};
use anteroom::steering::Overrides;
use anteroom::ticket::{Standing, Ticket, standing};
use anteroom::time::Steady;
use proptest::prelude::*;

use crate::articles::{self, room};
use crate::moves;

const NOW: u64 = 28_000_000 * 60_000 + 30_000;

fn enter(id: u64, at: u64) -> CheckIn {
    CheckIn::Enter { id, bucket: minute_of(at), from: None, at, minute: minute_of(at), numbered: true }
}

fn report(worker: u64, instance: u64, first: u64, check_ins: Vec<CheckIn>) -> WorkerReport {
    WorkerReport {
        v: VERSION,
        worker,
        instance,
        first,
        check_ins,
        urgent: false,
        origin: None,
        counts: Default::default(),
        heard: 0,
        judged: None,
    }
}

fn active(data_center: &mut DataCenter, room: &anteroom::config::Room, now: u64) -> i64 {
    data_center.save(room, now).counts.active_at(room, now)
}

#[test]
fn more_tickets_than_can_be_remembered_push_out_the_oldest() {
    let mut remembered = Remembered::new(60_000, 100);
    for id in 0..1_000u64 {
        remembered.put(id, id, NOW);
    }
    assert!(remembered.len() <= 200);
    assert_eq!(remembered.get(999), Some(999));
    assert_eq!(remembered.get(0), None);
}

/// What a worker has sent so far: the names of its calls.
fn calls(effects: &[WorkerEffect]) -> Vec<&'static str> {
    let call = |effect: &WorkerEffect| match effect {
        WorkerEffect::Call(Call { request: Request::DataCenterReport(_), .. }) => Some("report"),
        WorkerEffect::Call(Call { request: Request::AnywhereReserve(_), .. }) => Some("reserve"),
        WorkerEffect::Call(_) => Some("other"),
        _ => None,
    };
    effects.iter().filter_map(call).collect()
}

#[test]
fn an_old_cookie_however_often_it_comes_is_one_step_and_one_reserved_slot() {
    let room = Rc::new(Room { slot_strategy: SlotStrategy::Leases, ..room(100, 100, 1) });
    let mut worker = Worker::new(1, Rc::clone(&room), "AMS".to_owned(), 500);
    // Two tickets in the last seconds of their sessions, by old versions of their cookies.
    let old = |id| Ticket { accepted_at: Some(NOW), ..Ticket::new(id, NOW) };
    let (mut started, mut renewed) = (Vec::new(), Vec::new());
    for request in 0..1_200 {
        let now = NOW + 58_000 + request / 600;
        renewed.push(worker.pass(&room, old(1 + request % 2), now, &mut started));
    }
    assert!(renewed.iter().flatten().all(|ticket| ticket.last_check_in >= NOW + 58_000));
    assert_eq!(renewed.iter().flatten().count(), 1_200, "their sessions go on");
    let mut tasks: Vec<Task> = Vec::new();
    tasks.extend(started.iter().filter_map(|effect| match effect {
        WorkerEffect::Start(task) => Some(*task),
        _ => None,
    }));
    let mut effects = Vec::new();
    for task in &mut tasks {
        let (key, mut origin) = (DrawKey::new(None, "key"), OriginMonitor::new(&room));
        let mut context = WorkerContext { now: NOW + 58_010, draw_key: &key, origin: &mut origin };
        task.handle(&mut worker, &mut context, WorkerInput::Begin, &mut effects);
    }
    let reserved = effects.iter().find_map(|effect| match effect {
        WorkerEffect::Call(Call { request: Request::AnywhereReserve(asked), .. }) => Some(asked.ids.clone()),
        _ => None,
    });
    assert_eq!(reserved, Some(vec![1, 2]), "one call names both");
    let made = calls(&effects);
    assert_eq!(made.iter().filter(|call| **call == "reserve").count(), 1, "{made:?}");
    assert_eq!(made.iter().filter(|call| **call == "report").count(), 1, "{made:?}");
}

/// What the first visitor of a worker is told of the wait in a full room where others wait, when the data center's state is so old.
fn told_by_a_state_of(age: u64) -> Estimate {
    let room = Rc::new(room(100, 100, 1));
    let mut worker = Worker::new(1, Rc::clone(&room), "AMS".to_owned(), 500);
    let minute = minute_of(NOW);
    let answer = |asked: &Request| {
        if !matches!(asked, Request::DataCenterState(_)) {
            let outcomes = vec![Granted::Refused { minute, limit: 100, wait_ms: 1_000 }];
            return Some(Answer::CounterTake(Box::new(Taken { v: VERSION, outcomes, ..Taken::default() })));
        }
        let state = StateKey {
            taken_at: NOW - age,
            age,
            minute,
            active: 100,
            level: Level::Queueing,
            waiting: vec![(minute - 3, 20)],
            leaving: 600,
            ..StateKey::default()
        };
        Some(Answer::DataCenterState(Box::new(StateAnswer { v: VERSION, state: Some(state) })))
    };
    match moves::outcome(&mut worker, &room, Visitor { id: 9, ..Visitor::default() }, NOW, answer) {
        Outcome::Waiting(told) => told.estimate,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_is_told_a_wait_behind_people_who_do_not_count_any_more() {
    let refresh = room(100, 100, 1).refresh_ms();
    assert!(matches!(told_by_a_state_of(2 * refresh), Estimate::Known { .. }));
    assert_eq!(told_by_a_state_of(3 * refresh), Estimate::Unknown);
}

/// What the pool is told of an empty room.
fn state_of(room: &Room) -> StateKey {
    Global::restore(room, None, Vec::new(), NOW).state(room, None, minute_of(NOW), NOW)
}

/// The pool of an empty room.
fn pool_of(room: &Room) -> Pool {
    let mut pool = Pool::restore(None, NOW);
    pool.renew(state_of(room), NOW);
    pool
}

#[test]
fn a_state_foresees_each_expiry_for_the_millisecond_in_which_a_newer_one_would_tell_of_it() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(10_000, 3_000, 2) };
    let mut counts = Counts::new(&room);
    let mut seen = Remembered::new(60_000, 1_000);
    // One each 37 ms: some slots of time have several, others none.
    for id in 0..40 {
        counts.apply(&enter(id, NOW - room.session_ms() - 700 + id * 37), &mut seen);
    }
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    global.receive(&room, articles::report("AMS", counts), NOW);
    let foreseen = global.state(&room, None, minute_of(NOW), NOW);
    let mut changes = 0;
    let mut before = foreseen.active;
    for time in NOW..NOW + 500 {
        let active = global.state(&room, None, minute_of(time), time).active;
        assert_eq!(foreseen.active_foreseen(time), active, "{} ms later", time - NOW);
        changes += u32::from(active != before);
        before = active;
    }
    assert!(changes >= 3, "{changes}");
}

#[test]
fn what_is_beyond_a_slot_for_each_who_waits_may_lie_in_stocks() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(10_000, 3_000, 2) };
    let answer = |waiting: u32| {
        let mut pool = Pool::restore(None, NOW);
        let waits = vec![(minute_of(NOW) - 1, waiting)];
        // 1,000 slots are free, and the rate is not the limit.
        let state = StateKey { active: 9_000, waiting: waits, present: vec![waiting], ..state_of(&room) };
        pool.renew(state, NOW);
        let ask = LeaseAsk { epoch: 1, sequence: 1, want: 2_000, rate: 3_000, ..LeaseAsk::default() };
        let answer = pool.lease(&room, "AMS", &ask, NOW).unwrap();
        (answer.level, answer.extra > 0, i64::from(answer.extra) <= 1_000 - i64::from(waiting))
    };
    assert_eq!(answer(0), (Level::Busy, true, true));
    assert_eq!(answer(990), (Level::Busy, true, true), "ten are left, and a slot for each who waits");
    assert_eq!(answer(1_000), (Level::Queueing, false, true), "whoever found something would pass somebody");
}

#[test]
fn a_room_whose_limits_adapt_has_stocks_as_others_and_one_that_an_unhealthy_origin_holds_has_less() {
    let plain = || room(10_000, 3_000, 2);
    let laid = |room: Room| {
        let room = Room { slot_strategy: SlotStrategy::Leases, ..room };
        let mut pool = Pool::restore(None, NOW);
        pool.renew(state_of(&plain()), NOW);
        let used = vec![(minute_of(NOW), 500)];
        let ask = LeaseAsk { epoch: 1, sequence: 1, want: 2_000, rate: 3_000, used, ..LeaseAsk::default() };
        pool.lease(&room, "AMS", &ask, NOW).unwrap().most
    };
    let adaptive = Some(AdaptiveRange::default());
    assert_eq!(laid(Room { adaptive, ..plain() }), laid(plain()));
    let held = laid(Room { on_unhealthy: OnUnhealthy::Hold, ..plain() });
    assert!(held < laid(plain()), "{held}");
}

#[test]
fn who_has_begun_to_wait_is_not_passed_by_newcomers_when_global_loses_its_memory() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(100, 100, 5) };
    let minute = minute_of(NOW);
    let report = |sequence: u64, waiting: u64| {
        let mut counts = Counts::new(&room);
        let mut seen = Remembered::new(60_000, 1_000);
        for id in 0..85 {
            counts.apply(&enter(id, NOW - 100_000), &mut seen);
        }
        for id in 100..100 + waiting {
            let at = Seen::from(sequence - 1_000);
            counts.apply(&CheckIn::Wait { id, bucket: minute - 1, from: None, at }, &mut seen);
        }
        ColoReport { sequence, next_in: 40_000, ..articles::report("AMS", counts) }
    };
    // What is in storage is ten seconds old: 20 more have begun to wait since.
    let stored = report(NOW - 10_000, 2);
    let mut global = Global::restore(&room, None, vec![stored.clone()], NOW - 10_000);
    global.receive(&room, report(NOW, 22), NOW);
    let mut pool = Pool::restore(None, NOW);
    pool.renew(global.state(&room, None, minute, NOW), NOW);
    let mut sequence = 0;
    let mut given = |global: &mut Global, now: u64| {
        pool.renew(global.state(&room, None, minute, now), now);
        sequence += 1;
        let groups = vec![Group { bucket: minute, waits: false, visitors: 10 }];
        let ask = LeaseAsk { epoch: 1, sequence, groups, ..LeaseAsk::default() };
        pool.lease(&room, "CDG", &ask, now).unwrap().given[0].0
    };
    assert_eq!(given(&mut global, NOW), 0, "15 slots are free, and 22 wait");

    global = Global::restore(&room, None, vec![stored], NOW + 500);
    assert_eq!(
        given(&mut global, NOW + 600),
        0,
        "those of whom Global has not heard since are there all the same"
    );
    global.receive(&room, report(NOW + 1_000, 2), NOW + 1_000);
    assert_eq!(given(&mut global, NOW + 1_000), 10, "all but two have gone");
}

#[test]
fn admissions_are_spread_over_a_minute_only_where_it_has_slots_for_all_of_them() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(10_000, 3_000, 2) };
    let minute = minute_of(NOW);
    let may_enter = |waiting: u32, active: i64, ending: u32, admitted: i64, second: u64| {
        let now = start_of(minute) + second * 1_000;
        let key = StateKey {
            taken_at: now,
            minute,
            active,
            expiring_minute: ending,
            admitted,
            waiting: vec![(minute - 1, waiting)],
            present: vec![waiting],
            ..StateKey::default()
        };
        key.may_enter(&room, minute, now)
    };
    assert_eq!(may_enter(500, 5_000, 1_000, 0, 10), 600, "in step with the seconds, two ahead");
    assert_eq!(may_enter(0, 5_000, 1_000, 0, 10), 3_000, "nobody waits");
    assert_eq!(may_enter(500, 9_000, 1_000, 0, 10), 3_000, "not 2,000 will be free");
    assert_eq!(may_enter(500, 9_000, 1_000, 1_500, 0), 100, "there are slots for the 1,500 that are left");
    assert_eq!(may_enter(500, 9_000, 4_000, 0, 0), 100, "as many as 5,000 may be free");
    assert_eq!(
        may_enter(500, 9_000, 2_200, 0, 0),
        3_000,
        "not all sessions that could end do: fewer than 3,000"
    );
    assert_eq!(may_enter(500, 9_000, 4_000, 0, 45), 3_000, "in the rest of the minute 2,000");
}

#[test]
fn a_pool_that_restarts_assumes_what_it_gives_in_a_second_and_a_half_and_records_before_it_gives_more() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(10_000, 10_000, 2) };
    let mut pool = pool_of(&room);
    let ask = |sequence: u64, visitors: u32| {
        let groups = vec![Group { bucket: minute_of(NOW), waits: false, visitors }];
        // 100 a second.
        LeaseAsk {
            epoch: 1,
            sequence,
            last_answered: sequence - 1,
            groups,
            rate: 60_000,
            ..LeaseAsk::default()
        }
    };
    pool.lease(&room, "AMS", &ask(1, 0), NOW);
    pool.lease(&room, "AMS", &ask(2, 0), NOW + 200);
    let saved = pool.save(false);
    pool.lease(&room, "AMS", &ask(3, 150), NOW + 300);
    assert!(pool.is_covered(), "a restart would assume as many");
    pool.lease(&room, "AMS", &ask(4, 1), NOW + 310);
    assert!(!pool.is_covered());

    let mut pool = Pool::restore(Some(saved), NOW + 320);
    pool.renew(state_of(&room), NOW + 320);
    let given = pool.lease(&room, "FRA", &ask(1, 10_000), NOW + 320).unwrap().given[0].0;
    assert_eq!(given, 10_000 - 150);
}

#[test]
fn a_ticket_has_one_slot_reserved_whoever_asks_for_it() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(10, 10, 1) };
    let given = |ids: &[u64]| {
        let mut pool = pool_of(&room);
        ids.iter().for_each(|id| pool.reserve_session(Some(*id), NOW));
        let groups = vec![Group { bucket: minute_of(NOW), waits: false, visitors: 12 }];
        let ask = LeaseAsk { epoch: 1, sequence: 1, groups, ..LeaseAsk::default() };
        pool.lease(&room, "AMS", &ask, NOW).unwrap().given[0].0
    };
    assert_eq!([given(&[1, 1, 1, 1]), given(&[1, 2])], [9, 8]);
}

#[test]
fn colos_take_turns_at_a_busy_pool_by_the_square_root_of_their_traffic() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(1_000_000, 1_000_000, 5) };
    let mut pool = pool_of(&room);
    // So many colos, of which one has 16 times and one four times the visitors of each of the others.
    let mut turns = |colos: u32, round: u32, apart_ms: u64| -> Vec<u32> {
        let ask = |index: u32| {
            let rate = [160_000, 40_000].get(index as usize).copied().unwrap_or(10_000);
            let ask = LeaseAsk { epoch: 1, sequence: u64::from(round), rate, ..LeaseAsk::default() };
            let now = NOW + u64::from(round) * 200 + u64::from(index) * apart_ms;
            pool.lease(&room, &format!("C{index}"), &ask, now).unwrap().pace_ms
        };
        (0..colos).map(ask).collect()
    };
    assert_eq!(turns(10, 1, 10), [0; 10], "a few calls need no turns");
    let busy = (2..8).map(|round| turns(100, round, 2)).last().unwrap();
    let [most, more, usual] = [busy[0], busy[1], busy[2]];
    assert!(usual > 100 && busy.iter().all(|turn| *turn <= 700), "{busy:?}");
    assert!((2 * more).abs_diff(usual) < usual / 8 && (4 * most).abs_diff(usual) < usual / 8, "{busy:?}");
}

#[test]
fn the_busiest_colos_hold_a_permit_each_where_there_are_fewer_than_colos() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(160, 160, 5) };
    let mut pool = pool_of(&room);
    // Of 300 colos the first has the most traffic. Each part of 160 slots is less than half a permit.
    let mut laid = |want: u32, sequence: u64| -> Vec<u32> {
        let mut lay = |index: u32| {
            let ask = LeaseAsk { epoch: 1, sequence, rate: 1_000 - index, want, ..LeaseAsk::default() };
            pool.lease(&room, &format!("C{index}"), &ask, NOW + sequence * 1_000).unwrap().extra
        };
        (0..300).map(&mut lay).collect()
    };
    laid(0, 1);
    let held = laid(8, 2);
    let (busiest, others) = held.split_at(75);
    assert!(busiest.iter().all(|extra| *extra == 1), "{held:?}");
    assert_eq!(others.iter().sum::<u32>(), 0, "the others are for whoever asks, and for regions");
}

#[test]
fn in_a_rooms_first_moments_no_colo_holds_what_the_others_will_ask_for() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(1_000, 1_000, 5) };
    let mut pool = pool_of(&room);
    let mut lay = |colo: &str, ask: LeaseAsk, after_ms: u64| {
        pool.lease(&room, colo, &ask, NOW + after_ms).unwrap().extra
    };
    let visitor = Group { bucket: minute_of(NOW), waits: false, visitors: 1 };
    let first = || LeaseAsk {
        epoch: 1,
        sequence: 1,
        groups: vec![visitor],
        want: 8,
        rate: 10,
        ..LeaseAsk::default()
    };
    assert_eq!(lay("NEAR", first(), 0), 8);
    // It has used nine within a tenth of a second, and nothing is known of any other colo.
    let more = LeaseAsk {
        sequence: 2,
        last_answered: 1,
        groups: Vec::new(),
        used: vec![(minute_of(NOW), 9)],
        want: 5_000,
        rate: 20_000,
        ..first()
    };
    assert_eq!(lay("NEAR", more, 100), 18, "twice what it has used");
    let others: Vec<u32> = (0..30).map(|index| lay(&format!("C{index}"), first(), 200)).collect();
    assert!(others.iter().all(|extra| *extra >= 5), "as if as many came there as elsewhere: {others:?}");
    assert!(lay("LATER", first(), 2_000) <= 1, "as few have come there as it says");
}

#[test]
fn a_counter_asks_for_more_while_one_permit_is_left() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(1_000, 1_000, 5) };
    let (mut pool, mut counter) = (pool_of(&room), LeaseCounter::new(1));
    let minute = minute_of(NOW);
    let visit = |counter: &mut LeaseCounter, id: u64| {
        let ask = NumberAsk { id, bucket: minute, waits: false, minute, limit: i64::MAX, owned: 1 };
        counter.ask(id, ask, NOW + id);
    };
    visit(&mut counter, 1);
    let lease = counter.call(NOW + 1).unwrap();
    let answer = pool.lease(&room, "AMS", &lease, NOW + 1).unwrap();
    counter.answered(Some(&answer), NOW + 1);
    let stock = u64::from(answer.extra);
    assert!(stock > 2);
    for id in 2..=stock {
        assert_eq!(counter.call_due(NOW + id), None, "{id} of {stock}");
        visit(&mut counter, id);
    }
    assert!(counter.call_due(NOW + stock).is_some());
    visit(&mut counter, stock + 1);
    assert!(counter.answers().len() as u64 == stock + 1, "the next visitor need not wait for the pool");
}

#[test]
fn a_worker_without_answers_lets_nobody_in_for_three_seconds_however_old_its_state_is() {
    let room = room(1_000, 1_000, 5);
    let key = Global::restore(&room, None, Vec::new(), NOW).state(&room, None, minute_of(NOW), NOW);
    for age in [0, 20_000] {
        let mut fallback = Fallback::default();
        let mut slots = |now: u64| {
            let key = StateKey { anywhere_ratio: 1_000_000, carry: 0, ..key.clone() };
            let state = Clocked { key, received_at: now - age };
            fallback.slots(&room, &Standing::New, Some(&state), now).unwrap()
        };
        assert_eq!([slots(NOW), slots(NOW + 2_999)], [0; 2], "the objects may be slow");
        assert!(slots(NOW + 3_000) > 0);
        assert!(slots(NOW + 63_000) > 0, "nothing has answered since");
        assert_eq!(slots(NOW + 123_001), 0, "nobody knows whether anything would have answered meanwhile");
    }
}

#[test]
fn one_colo_more_than_fit_is_turned_away_until_another_has_long_been_silent() {
    let room = room(100, 100, 1);
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    let from =
        |colo: String, sequence: u64| ColoReport { sequence, ..articles::report(&colo, Counts::new(&room)) };
    for index in 0..MAX_COLOS {
        assert!(global.receive(&room, from(format!("C{index}"), 1), NOW));
    }
    assert!(!global.receive(&room, from("NEW".to_owned(), 1), NOW));
    assert!(global.receive(&room, from("C7".to_owned(), 2), NOW), "who is known still reports");
    let later = NOW + 3_600_000;
    assert!(global.receive(&room, from("NEW".to_owned(), 1), later));
    assert_eq!(global.colos().count(), MAX_COLOS);
}

#[test]
fn a_counter_may_end_the_calm_of_a_worker_and_not_begin_it() {
    let mut controller = AdmissionController::default();
    let told = |level: Level, taken_at: u64| Clocked {
        key: StateKey { level, taken_at, ..StateKey::default() },
        received_at: taken_at,
    };
    let mut levels = |key: Clocked| {
        controller.learn(key);
        [Level::Calm, Level::Busy, Level::Queueing, Level::Calm].map(|level| {
            controller.told_level(level);
            controller.level()
        })
    };
    // Global, which says how late reports are, does not know that the room is calm.
    assert_eq!(levels(told(Level::Busy, NOW)), [Level::Busy, Level::Busy, Level::Queueing, Level::Busy]);
    assert_eq!(levels(told(Level::Calm, NOW)), [Level::Calm, Level::Busy, Level::Queueing, Level::Calm]);
}

#[test]
fn a_data_center_says_that_reports_are_late_for_as_long_as_it_tells_workers_that_the_room_is_calm() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(1_000, 1_000, 30) };
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    data_center.learn(StateKey { level: Level::Calm, taken_at: NOW, ..StateKey::default() }, NOW);
    // In such a room pushes are five minutes apart, and so are the state keys that come back.
    let (told_at, pushed_at) = (NOW + 299_000, NOW + 300_000);
    let answer = data_center.receive(&room, &report(1, 7, 1, vec![enter(1, told_at)]), told_at);
    assert_eq!(answer.state.map(|key| key.level), Some(Level::Calm));
    let saved = data_center.save(&room, pushed_at);
    let late = data_center.push(&room, &saved, None, pushed_at).late;
    assert!(
        late > 300_000,
        "the worker's next report comes in 27 s, and the push after it in 300: {late} ms"
    );
}

#[test]
fn where_workers_have_to_try_again_a_data_center_says_that_reports_are_late() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(1_000, 1_000, 5) };
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    data_center.learn(StateKey { level: Level::Queueing, taken_at: NOW, ..StateKey::default() }, NOW);
    let mut late = |worker: u64, made_at: u64, now: u64| {
        data_center.receive(&room, &report(worker, 7, 1, vec![enter(worker, made_at)]), now);
        let saved = data_center.save(&room, now);
        data_center.push(&room, &saved, None, now).late
    };
    // By then no worker reports as in a calm room any more.
    let now = NOW + 60_000;
    let usual = late(1, now - 1_000, now);
    assert!(usual < 5_000, "{usual} ms");

    let overloaded = late(2, now - 6_000, now);
    assert!(overloaded >= usual + 5_000, "another worker may have tried for as long: {overloaded} ms");
    assert_eq!(late(3, now + 29_000, now + 30_000), overloaded, "one that is in time says nothing of others");
    assert_eq!(late(4, now + 50_000, now + 55_000), overloaded);
    assert_eq!(late(5, now + 59_500, now + 60_000), overloaded, "five seconds ago one was late too");
    assert_eq!(late(6, now + 180_000, now + 180_500), usual, "none has been for two minutes");
}

#[test]
fn an_order_that_was_on_its_way_for_long_sets_no_clock_back() {
    let room = room(1_000, 1_000, 5);
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    data_center.learn(StateKey { taken_at: NOW, ..StateKey::default() }, NOW + 20);
    // Global's storage was silent for 22 s, and what leaves it waits for that.
    let now = NOW + 82_000;
    data_center.told(StateKey { taken_at: NOW + 60_000, ..StateKey::default() }, now);
    let key = data_center.state(now).unwrap();
    assert_eq!(key.taken_at, NOW + 60_000, "it is newer");

    let mut worker = AdmissionController::default();
    worker.learn(Clocked { key, received_at: now });
    let (ticket, time) = (Ticket::new(1, now - 1_000).admitted(now - 1_000), worker.time(now));
    let standing = standing(Some(ticket), time, &room.terms());
    assert!(matches!(standing, Standing::Active(_)), "thrown out by a clock {} ms behind", now - time);
}

#[test]
fn an_answer_that_took_long_sets_no_workers_clock_back_and_one_that_came_fast_sets_one_right() {
    for (asked_ms_ago, made_ms_ago, ahead_ms, expected) in
        [(1_200, 1_100, 0, NOW), (1_200, 1_100, 5_000, NOW + 100), (200, 100, 5_000, NOW + 400)]
    {
        let mut data_center = DataCenter::restore(&room(1_000, 1_000, 5), "AMS", 7, None, NOW);
        let made = StateKey { taken_at: NOW - made_ms_ago, ..StateKey::default() };
        data_center.answered(made, NOW - asked_ms_ago, NOW);
        let mut worker = AdmissionController::default();
        let received_at = NOW + ahead_ms;
        worker.learn(Clocked { key: data_center.state(NOW).unwrap(), received_at });
        assert_eq!(worker.time(received_at), expected, "asked {asked_ms_ago} ms ago, {ahead_ms} ms ahead");
    }
}

/// What a state key has said that came to a worker, as (by how much the worker's clock was ahead of it, how long it took to ask), in
/// milliseconds; and by how much later a session is renewed then than by the worker's clock.
const RENEWED_LATER_MS: [(Option<(i64, u64)>, u64); 5] = [
    (None, 250),
    (Some((90, 180)), 0),
    (Some((100, 400)), 50),
    (Some((235, 769)), 250),
    (Some((-300, 400)), 450),
];

#[test]
fn a_session_is_renewed_a_little_later_where_a_workers_clock_may_be_behind() {
    for (told, later) in RENEWED_LATER_MS {
        let mut worker = AdmissionController::default();
        if let Some((ahead, round_trip_ms)) = told {
            let key =
                StateKey { taken_at: NOW.strict_add_signed(-ahead), round_trip_ms, ..StateKey::default() };
            worker.learn(Clocked { key, received_at: NOW });
        }
        assert_eq!(worker.renewal_time(NOW), NOW + later, "{told:?}");
    }
}

#[test]
fn a_session_never_goes_back_to_the_time_of_a_clock_that_is_behind() {
    let room = Rc::new(room(100, 100, 5));
    let mut worker = Worker::new(1, Rc::clone(&room), "AMS".to_owned(), 500);
    // Its last request was in a colo whose clock is two seconds ahead.
    let mut ticket = Ticket::new(1, NOW).admitted(NOW + 2_000);
    for request in 0..100 {
        let renewed = worker.pass(&room, ticket, NOW + request * 50, &mut Vec::new());
        let latest = renewed.unwrap_or(ticket);
        assert!(latest.last_check_in >= ticket.last_check_in, "{renewed:?} after {ticket:?}");
        ticket = latest;
    }
    assert!(ticket.last_check_in > NOW + 4_000, "it goes on all the same");
    assert!(worker.outbox().len() < 5, "what leads nowhere is not reported");
}

#[test]
fn a_worker_goes_by_the_pools_time_until_its_first_state_key_says_globals() {
    let mut worker = AdmissionController::default();
    assert_eq!(worker.time(NOW), NOW);
    worker.told_order(LatestOrder { version: 0, time: NOW + 5_000 }, NOW);
    assert_eq!(worker.time(NOW), NOW + 5_000);
    // What the Counter tells may be a second old.
    for (told, expected) in [(NOW - 1_000, NOW), (NOW - 1_500, NOW - 500)] {
        worker.told_order(LatestOrder { version: 0, time: told }, NOW);
        assert_eq!(worker.time(NOW), expected);
    }
    let now = NOW + 1_000;
    worker.learn(Clocked { key: StateKey { taken_at: now, ..StateKey::default() }, received_at: now });
    worker.told_order(LatestOrder { version: 0, time: now + 5_000 }, now);
    assert_eq!(worker.time(now), now, "two machines' clocks are not compared");
}

#[test]
fn an_object_that_did_not_answer_long_ago_is_waited_for_like_others() {
    let mut calls = RoundTrip::default();
    calls.failed(NOW);
    calls.failed(NOW + 20_000);
    assert!(calls.is_dead(NOW + 49_000));
    assert_eq!(calls.longest_ms(500, NOW + 49_000), 500, "nobody waits long for it");
    assert_eq!(calls.longest_ms(500, NOW + 51_000), 1_500, "it may have come back meanwhile");
    calls.failed(NOW + 51_000);
    assert!(!calls.is_dead(NOW + 52_000), "one failure does not say that it is gone");
}

#[test]
fn more_workers_than_fit_replace_the_one_silent_for_longest() {
    let room = room(10_000, 10_000, 1);
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    for worker in 0..600u64 {
        let at = NOW + worker;
        data_center.receive(&room, &report(worker + 1, 0, 1, vec![enter(worker + 1, at)]), at);
    }
    let saved = data_center.save(&room, NOW + 600);
    assert_eq!(saved.workers.len(), 512);
    assert!(saved.workers.iter().all(|(worker, _)| *worker > 88), "the first ones were forgotten");
    assert_eq!(saved.counts.active_at(&room, NOW + 600), 600, "their users are not");
}

#[test]
fn buckets_beyond_the_bound_are_counted_with_their_neighbours() {
    let room = room(100, 100, 1);
    let mut counts = Counts::new(&room);
    let mut dedups = Remembered::new(60_000, 10_000);
    let newest = minute_of(NOW);
    for id in 0..1_000u32 {
        let bucket = newest - id;
        counts.apply(&CheckIn::Wait { id: u64::from(id), bucket, from: None, at: NOW.into() }, &mut dedups);
    }
    let waiting = counts.waiting_at(&room, NOW);
    assert_eq!(waiting.len(), 512);
    assert_eq!(waiting.iter().map(|(_, users)| users).sum::<u32>(), 1_000, "nobody is lost");
    assert!(waiting.is_sorted());
}

#[test]
fn the_last_request_of_a_worker_sees_to_its_reports_for_long_enough() {
    let (room, mut outbox) = (room(100, 100, 1), Outbox::new(1));
    let mut sees_to_it = |at: u64| {
        outbox.note(&room, enter(1, at), Level::Busy, at);
        (outbox.announce(at, at).is_some(), outbox.is_taken_over(NOW))
    };
    assert_eq!(sees_to_it(NOW), (true, false));
    assert_eq!(sees_to_it(NOW + 900), (false, false), "one at a time");
    assert_eq!(sees_to_it(NOW + 10_000), (true, true), "the first one may soon be ended");
    assert_eq!(sees_to_it(NOW + 10_900), (false, true));
}

#[test]
fn where_all_ends_at_once_nothing_waits_long_to_be_reported_and_stored() {
    let room = Room { ends_at_once: true, ..room(10_000, 10_000, 10) };
    let mut outbox = Outbox::new(1);
    let mut due_in = |id: u64, at: u64| {
        outbox.note(&room, enter(id, at), Level::of(&room, room.limits(), 100, 10_000, true), at);
        let due_in = outbox.announce(at, at);
        outbox.report(at);
        due_in
    };
    assert_eq!(due_in(1, NOW), Some(0));
    assert_eq!(due_in(2, NOW + 1), Some(19));
    let data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    assert!(data_center.stores_at_once(&room, &WorkerReport::default(), NOW), "also what is pushed soon");
}

#[test]
fn a_worker_whose_data_center_never_answers_drops_the_oldest_check_ins() {
    let mut outbox = Outbox::new(1);
    let room = room(100, 100, 1);
    for id in 0..25_000 {
        outbox.note(&room, enter(id, NOW), Level::Busy, NOW);
    }
    assert_eq!(outbox.len(), 20_000);
    assert_eq!(outbox.dropped(), 5_000);
    let report = outbox.report(NOW);
    assert_eq!(report.first, 5_001);
    assert_eq!(report.check_ins.len(), 1_200, "one report carries a part of them");
}

#[test]
fn the_next_report_waits_for_the_answer_to_a_large_one() {
    let room = room(100_000, 100_000, 1);
    // How many check-ins, and when the next report leaves without an answer, when the report has failed, and with an answer.
    for (many, waits) in
        [(499, [1_000, 1_000, 1_000]), (500, [3_000, 1_000, 1_000]), (1_300, [3_000, 1_000, 200])]
    {
        let wait = |heard: Option<bool>| {
            let mut outbox = Outbox::new(1);
            let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
            for id in 0..many {
                outbox.note(&room, enter(id, NOW), Level::Busy, NOW);
            }
            let report = outbox.report(NOW);
            let now = NOW + 200;
            match heard {
                Some(true) => outbox.answered(&data_center.receive(&room, &report, now)),
                Some(false) => outbox.failed(),
                None => {}
            }
            outbox.note(&room, enter(many, now), Level::Busy, now);
            outbox.announce(now, now).unwrap() + 200
        };
        assert_eq!([None, Some(false), Some(true)].map(wait), waits, "{many} check-ins");
    }
}

#[test]
fn a_full_desk_turns_the_next_visitor_away() {
    let mut batcher: Batcher<u64, u64> = Batcher::new(600);
    for ask in 0..10_000 {
        assert!(batcher.join(ask).is_some());
    }
    assert_eq!(batcher.join(1), None);
}

/// How many calls are made in a second in which somebody comes each millisecond, and how many of them in its first ten.
fn calls_in_a_second(batcher: &mut Batcher<u64, u64>, evenly: bool) -> (usize, usize) {
    let mut calls = Vec::new();
    for after in 0..1_000 {
        let place = batcher.join(after).unwrap();
        if let Progress::Lead(call, batch) = batcher.poll(place, evenly, NOW + after) {
            batcher.finish(call, Some(vec![0; batch.len()]), NOW + after);
            calls.push(after);
        }
    }
    (calls.len(), calls.iter().filter(|after| **after < 10).count())
}

#[test]
fn six_calls_may_come_at_once_and_then_fifty_in_a_second_but_where_calls_are_even_each_comes_a_pace_later() {
    let mut batcher = Batcher::new(600);
    assert_eq!(calls_in_a_second(&mut batcher, false), (55, 6));
    for (pace_ms, evenly, calls) in [(100, false, 10), (20, true, 50)] {
        let mut batcher = Batcher::new(600);
        batcher.pace(pace_ms);
        assert_eq!(calls_in_a_second(&mut batcher, evenly), (calls, 1));
    }
}

#[test]
fn three_calls_may_be_under_way_and_the_next_one_leaves_when_one_is_answered_or_seems_to_have_lost_its_leader()
 {
    let mut batcher: Batcher<u64, u64> = Batcher::new(600);
    let mut place = 0;
    let mut calls = Vec::new();
    for ask in 0..4 {
        place = batcher.join(ask).unwrap();
        if let Progress::Lead(call, _) = batcher.poll(place, false, NOW + ask) {
            calls.push(call);
        }
    }
    assert_eq!(calls.len(), 3);
    assert_eq!(batcher.poll(place, false, NOW + 50), Progress::Later);
    assert_eq!(batcher.poll_at(place, false), NOW + 100, "a vanished leader holds nobody up for long");
    batcher.finish(calls[1], Some(vec![0]), NOW + 50);
    assert!(matches!(batcher.poll(place, false, NOW + 50), Progress::Lead(..)));
}

#[test]
fn one_call_serves_all_who_came_within_a_pace_and_a_vanished_leader_is_replaced() {
    let mut batcher: Batcher<&str, u32> = Batcher::new(600);
    let first = batcher.join("first").unwrap();
    let Progress::Lead(call, batch) = batcher.poll(first, true, NOW) else {
        panic!("the first one calls at once")
    };
    assert_eq!(batch, [(first, "first")]);
    let second = batcher.join("second").unwrap();
    let third = batcher.join("third").unwrap();
    assert_eq!(batcher.poll(second, true, NOW + 5), Progress::Later, "the next call is a pace later");
    batcher.finish(call, Some(vec![11]), NOW + 10);
    assert_eq!(batcher.poll(first, true, NOW + 10), Progress::Done(Some(11)));
    let Progress::Lead(_, batch) = batcher.poll(third, true, NOW + 20) else {
        panic!("one of those who wait leads")
    };
    assert_eq!(batch, [(second, "second"), (third, "third")]);
    // The third visitor has gone in the middle of the call: nobody lays its answers down.
    assert_eq!(batcher.poll(second, true, NOW + 100), Progress::Later);
    let Progress::Lead(call, batch) = batcher.poll(second, true, NOW + 700) else {
        panic!("another one takes over")
    };
    assert_eq!(batch.len(), 2);
    batcher.finish(call, None, NOW + 710);
    assert_eq!(batcher.poll(second, true, NOW + 710), Progress::Done(None), "a failed call is an answer too");
}

#[test]
fn a_report_that_comes_twice_or_late_counts_once() {
    let room = room(100, 100, 1);
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    let first = report(1, 7, 1, vec![enter(1, NOW), enter(2, NOW)]);
    let second = report(1, 7, 1, vec![enter(1, NOW), enter(2, NOW), enter(3, NOW)]);
    data_center.receive(&room, &second, NOW);
    data_center.receive(&room, &first, NOW);
    data_center.receive(&room, &second, NOW);
    assert_eq!(active(&mut data_center, &room, NOW), 3);
}

#[test]
fn what_a_data_center_lost_with_its_memory_is_sent_again_and_counts_once() {
    let room = room(100, 100, 1);
    let mut outbox = Outbox::new(1);
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    let exchange = |outbox: &mut Outbox, data_center: &mut DataCenter, now: u64| -> WorkerAnswer {
        let answer = data_center.receive(&room, &outbox.report(now), now);
        outbox.answered(&answer);
        answer
    };
    outbox.note(&room, enter(1, NOW), Level::Busy, NOW);
    exchange(&mut outbox, &mut data_center, NOW);
    let saved = data_center.save(&room, NOW);
    data_center.saved(&saved);
    outbox.note(&room, enter(2, NOW), Level::Busy, NOW);
    exchange(&mut outbox, &mut data_center, NOW + 1_000);
    // It breaks down: the second admission was in memory only.
    let mut data_center = DataCenter::restore(&room, "AMS", 8, Some(saved), NOW + 1_500);
    outbox.note(&room, enter(3, NOW), Level::Busy, NOW);
    exchange(&mut outbox, &mut data_center, NOW + 2_000);
    assert_eq!(active(&mut data_center, &room, NOW + 2_000), 1, "a report with a gap is not counted");
    exchange(&mut outbox, &mut data_center, NOW + 2_050);
    assert_eq!(active(&mut data_center, &room, NOW + 2_050), 3);
}

#[test]
fn parallel_requests_with_one_cookie_count_once_whatever_their_order() {
    let room = room(100, 100, 1);
    let session = room.session_ms();
    let moves = [
        CheckIn::Move { id: 1, from: NOW, at: NOW + 10_000, entered: None },
        CheckIn::Move { id: 1, from: NOW, at: NOW + 10_400, entered: None },
        CheckIn::Move { id: 1, from: NOW + 10_400, at: NOW + 40_000, entered: None },
    ];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut counts = Counts::new(&room);
        let mut dedups = Remembered::new(60_000, 100);
        counts.apply(&enter(1, NOW), &mut dedups);
        for index in order {
            counts.apply(&moves[index], &mut dedups);
        }
        let last = NOW + 40_000;
        assert_eq!(counts.active_at(&room, last), 1, "{order:?}");
        assert_eq!(counts.active_at(&room, last + session - 1), 1, "{order:?}");
        assert_eq!(counts.active_at(&room, last + session + 1_000), 0, "{order:?}");
    }
}

#[test]
fn a_hundred_requests_at_once_with_one_ticket_are_one_user() {
    let room = room(100, 100, 1);
    let mut counts = Counts::new(&room);
    let mut dedups = Remembered::new(60_000, 100);
    let minute = minute_of(NOW);
    counts.apply(&CheckIn::Wait { id: 1, bucket: minute, from: None, at: NOW.into() }, &mut dedups);
    for late in 0..100 {
        let at = NOW + 10_000 + late;
        let entering =
            CheckIn::Enter { id: 1, bucket: minute, from: Some(NOW.into()), at, minute, numbered: true };
        counts.apply(&entering, &mut dedups);
    }
    for late in 0..100 {
        let from = NOW + 10_000 + (late * 37) % 100;
        counts
            .apply(&CheckIn::Move { id: 1, from, at: NOW + 30_000 + late * 11, entered: None }, &mut dedups);
    }
    assert_eq!(counts.admitted_in(minute), 1);
    assert!(counts.waiting_at(&room, NOW + 31_200).is_empty());
    for later in [0, 40_000, 59_000, 88_000] {
        assert_eq!(counts.active_at(&room, NOW + 31_200 + later).min(1), i64::from(later < 60_000));
        assert!(counts.active_at(&room, NOW + 31_200 + later) <= 1);
    }
}

proptest! {
    /// Sessions of a minute, and of seven, whose slots end at no whole second.
    #[test]
    fn expired_slots_are_grouped_and_no_minute_ends_with_other_users(
        last_seen in prop::collection::vec(0..90_000_u64, 1..500),
        minutes in prop::sample::select(vec![1, 7]),
        asked in 0..60_000_u64,
    ) {
        let room = room(1_000, 1_000, minutes);
        let mut counts = Counts::new(&room);
        let mut dedups = Remembered::new(60_000, 1_000);
        for (id, at) in (0..).zip(last_seen) {
            counts.apply(&enter(id, NOW + at), &mut dedups);
        }
        // The end of the last session is 30 to 90 seconds ago.
        let now = NOW + 90_000 + room.session_ms() + 30_000 + asked;
        let mut grouped = counts.clone();
        grouped.group_expired(&room, now);
        let minute_end = start_of(minute_of(now));
        prop_assert_eq!(grouped.active_at(&room, minute_end), counts.active_at(&room, minute_end));
        let compared = now - 40_000;
        prop_assert_eq!(grouped.active_at(&room, compared), counts.active_at(&room, compared));
    }
}

#[test]
fn a_minute_of_expired_slots_takes_few_bytes_of_a_report() {
    let room = room(1_000, 1_000, 1);
    let width = room.slot_ms();
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    let seen = (0..60_000 / width).map(|slot| enter(slot, NOW + slot * width)).collect();
    data_center.receive(&room, &report(1, 7, 1, seen), NOW + 60_000);
    let mut bytes = |now| encode(&data_center.save(&room, now).counts).unwrap().len();
    let (unexpired, expired) = (bytes(NOW + 60_000), bytes(NOW + 120_000 + 40_000));
    assert!(expired * 10 < unexpired, "{unexpired} bytes, {expired} when it has expired");
}

/// What is counted of one visitor after some check-ins: waiting and active users for two minutes, second by second.
fn counted(check_ins: &[CheckIn]) -> Vec<(i64, i64)> {
    let room = room(100, 100, 1);
    let mut counts = Counts::new(&room);
    let mut dedups = Remembered::new(600_000, 100);
    for check_in in check_ins {
        counts.apply(check_in, &mut dedups);
    }
    let waiting = |time| counts.waiting_at(&room, time).iter().map(|(_, users)| i64::from(*users)).sum();
    (50..170)
        .map(|second| NOW + second * 1_000)
        .map(|time| (waiting(time), counts.active_at(&room, time)))
        .collect()
}

fn wait(from: Option<u64>, at: u64) -> CheckIn {
    let from = from.map(|second| (NOW + second * 1_000).into());
    CheckIn::Wait { id: 1, bucket: minute_of(NOW), from, at: (NOW + at * 1_000).into() }
}

fn give_up(from: u64, at: u64) -> CheckIn {
    let from = (NOW + from * 1_000).into();
    CheckIn::GiveUp { id: 1, bucket: minute_of(NOW), from, at: NOW + at * 1_000 }
}

fn enter_after(from: u64, at: u64) -> CheckIn {
    let (from, at) = (Some((NOW + from * 1_000).into()), NOW + at * 1_000);
    CheckIn::Enter { id: 1, bucket: minute_of(NOW), from, at, minute: minute_of(at), numbered: true }
}

fn go(from: u64, at: u64) -> CheckIn {
    CheckIn::Move { id: 1, from: NOW + from * 1_000, at: NOW + at * 1_000, entered: None }
}

fn leave(from: u64, at: u64) -> CheckIn {
    CheckIn::Leave { id: 1, from: NOW + from * 1_000, at: NOW + at * 1_000, entered: None }
}

#[test]
fn whoever_gives_up_is_not_counted_and_whoever_comes_back_is_counted_once() {
    let start = [wait(None, 0), wait(Some(0), 20)];
    assert_eq!(counted(&start)[5], (1, 0));
    let gone = [&start[..], &[give_up(20, 30), give_up(20, 31)]].concat();
    assert!(counted(&gone).iter().all(|counted| *counted == (0, 0)));
    let back = [&gone[..], &[wait(Some(20), 40)]].concat();
    assert_eq!(counted(&back), counted(&[wait(None, 40)]));
    let inside = [&gone[..], &[enter_after(20, 40), give_up(20, 41)]].concat();
    assert_eq!(
        counted(&inside),
        counted(&[enter(1, NOW + 40_000)]),
        "who has entered has nothing to give up"
    );
}

#[test]
fn a_session_that_is_ended_is_free_at_once_and_a_request_under_way_counts_again() {
    let start = [enter(1, NOW), go(0, 30)];
    assert_eq!(counted(&start)[0], (0, 1));
    let gone = [&start[..], &[leave(30, 31), leave(30, 32), leave(0, 33)]].concat();
    assert!(counted(&gone).iter().all(|counted| *counted == (0, 0)), "once, whatever is repeated");
    let same_moment = [&start[..], &[leave(30, 30)]].concat();
    assert_eq!(counted(&same_moment), counted(&gone), "clocks stand still within a request");
    let under_way = [&gone[..], &[go(30, 40), go(40, 45)]].concat();
    assert_eq!(counted(&under_way), counted(&[enter(1, NOW + 45_000)]));
    let before = [&gone[..], &[go(0, 20), go(30, 31)]].concat();
    assert_eq!(counted(&before), counted(&gone), "what was before it changes nothing");
}

#[test]
fn whoever_was_told_to_stay_away_for_longer_is_counted_for_longer() {
    let room = room(100, 100, 1);
    let told = |seconds| {
        let ticket = Ticket { refresh_seconds: seconds, ..Ticket::new(1, NOW) };
        Seen::of(&ticket, &room)
    };
    for (seconds, later) in [(0, 0), (22, 0), (23, 1), (60, 8), (330, 62), (u16::MAX, Seen::LATEST)] {
        assert_eq!(told(seconds), Seen { at: NOW, later });
    }
    let mut counts = Counts::new(&room);
    let mut dedups = Remembered::new(600_000, 100);
    let bucket = minute_of(NOW);
    counts.apply(&CheckIn::Wait { id: 1, bucket, from: None, at: told(60) }, &mut dedups);
    let waiting = |counts: &Counts, at| counts.waiting_at(&room, NOW + at).len();
    let present = |counts: &Counts, at| counts.present_at(&room, &[(bucket, 1)], NOW + at).0[0];
    assert_eq!(
        (waiting(&counts, 62_000), present(&counts, 62_000)),
        (1, 1),
        "until a little after it was due"
    );
    assert_eq!(
        (waiting(&counts, 85_000), waiting(&counts, 96_000)),
        (1, 0),
        "and as long as ever after that"
    );
    // Two requests of the same cookie: the second goes on from where the first has led.
    for at in [40_000, 41_000] {
        let at = (NOW + at).into();
        counts.apply(&CheckIn::Wait { id: 1, bucket, from: Some(told(60)), at }, &mut dedups);
    }
    assert_eq!((waiting(&counts, 85_000), waiting(&counts, 96_000)), (1, 0));
    assert_eq!(counts.waiting_at(&room, NOW + 50_000), [(bucket, 1)]);
}

#[test]
fn whoever_comes_back_is_not_taken_for_one_who_looked_once_when_their_minute_is_over() {
    let (room, bucket) = (room(100, 100, 1), minute_of(NOW));
    let (mut counts, mut dedups) = (Counts::new(&room), Remembered::new(600_000, 100));
    let came = Seen::from(start_of(bucket) + 55_000);
    let mut wait = |id, from, at| counts.apply(&CheckIn::Wait { id, bucket, from, at }, &mut dedups);
    for id in 0..60 {
        wait(id, None, came);
    }
    // Half of them.
    for id in 0..30 {
        wait(id, Some(came), Seen::from(start_of(bucket) + 75_000));
    }
    let now = start_of(bucket) + 90_000;
    let waiting = counts.waiting_at(&room, now);
    assert_eq!(
        (waiting.as_slice(), counts.present_at(&room, &waiting, now).0),
        (&[(bucket, 60)][..], vec![30])
    );
}

#[test]
fn as_many_newcomers_are_strangers_as_were_missed_of_those_before_them() {
    let (room, bucket) = (room(100, 100, 1), minute_of(NOW));
    let (mut counts, mut dedups) = (Counts::new(&room), Remembered::new(600_000, 1_000));
    // Two come each second, one of whom comes back every 20 seconds.
    for id in 0..200 {
        let came = start_of(bucket) + 500 * id;
        let mut from = None;
        for at in (came..start_of(bucket) + 100_000).step_by(if id % 2 == 0 { 20_000 } else { 200_000 }) {
            let check_in = CheckIn::Wait { id, bucket: minute_of(came), from, at: at.into() };
            counts.apply(&check_in, &mut dedups);
            from = Some(at.into());
        }
    }
    let now = start_of(bucket) + 100_000;
    let waiting = counts.waiting_at(&room, now);
    let (present, strangers) = counts.present_at(&room, &waiting, now);
    assert_eq!(strangers.iter().map(|(of, _)| *of).collect::<Vec<_>>(), [bucket + 1], "the last newcomers");
    let returning = present[1] - strangers[0].1;
    assert!((35..=45).contains(&returning), "{returning} of the 40 who come back");
    assert_eq!(counts.present_at(&room, &[], now), (Vec::new(), Vec::new()));
}

proptest! {
    /// A visitor waits, closes the page, comes back, enters, goes on and is told to leave; requests are repeated in
    /// parallel with old cookies. Whatever the order in which a colo hears of it, and however often: the same is counted.
    #[test]
    fn what_is_counted_of_a_visitor_does_not_depend_on_the_order(
        order in Just((0..4_usize).collect::<Vec<_>>()).prop_shuffle(),
        repeated in prop::collection::vec(0..4_usize, 0..4),
    ) {
        for check_ins in [
            [wait(Some(0), 10), give_up(10, 15), wait(Some(10), 20), give_up(20, 25)],
            [wait(Some(0), 10), give_up(10, 15), wait(Some(10), 14), wait(Some(10), 20)],
            [wait(Some(0), 10), give_up(10, 15), enter_after(10, 20), go(20, 30)],
            [enter_after(0, 20), go(20, 30), leave(30, 40), leave(30, 42)],
            [enter_after(0, 20), go(20, 30), leave(20, 28), go(30, 42)],
            [enter_after(0, 20), go(20, 25), leave(20, 28), leave(25, 29)],
        ] {
            let first = [wait(None, 0)];
            let straight = [&first[..], &check_ins[..]].concat();
            let shuffled = order.iter().chain(&repeated).map(|index| check_ins[*index]);
            let shuffled: Vec<_> = first.into_iter().chain(shuffled).collect();
            prop_assert_eq!(counted(&straight), counted(&shuffled), "{:?}", shuffled);
        }
    }
}

#[test]
fn a_visitor_who_moves_to_another_colo_counts_once() {
    let room = room(100, 100, 1);
    let mut here = Counts::new(&room);
    let mut there = Counts::new(&room);
    let mut trails_here = Remembered::new(60_000, 100);
    let mut trails_there = Remembered::new(60_000, 100);
    here.apply(&enter(1, NOW), &mut trails_here);
    there.apply(&CheckIn::Move { id: 1, from: NOW, at: NOW + 5_000, entered: None }, &mut trails_there);
    here.apply(&CheckIn::Move { id: 1, from: NOW + 5_000, at: NOW + 9_000, entered: None }, &mut trails_here);
    let mut all = Counts::new(&room);
    all.merge(&here, 1);
    all.merge(&there, 1);
    assert_eq!(all.active_at(&room, NOW + 9_000), 1);
    assert_eq!(all.active_at(&room, NOW + 9_000 + room.session_ms() - 1), 1);
    assert_eq!(all.active_at(&room, NOW + 9_000 + room.session_ms() + 1_000), 0);
}

#[test]
fn the_users_of_a_colo_that_is_cut_off_are_held_for_one_session() {
    let room = room(100, 100, 1);
    let session = room.session_ms();
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    data_center.receive(&room, &report(1, 0, 1, (1..=10).map(|id| enter(id, NOW)).collect()), NOW + 1_000);
    let saved = data_center.save(&room, NOW + 1_000);
    let last = data_center.push(&room, &saved, None, NOW + 1_000);
    assert_eq!(last.next_in, 2_000, "more will follow");
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    global.receive(&room, last, NOW + 1_000);
    let mut active = |at: u64| global.state(&room, None, minute_of(at), at).active;
    assert_eq!(active(NOW + 30_000), 10);
    assert_eq!(active(NOW + session + 20_000), 10, "nobody could tell whether they went on");
    assert_eq!(active(NOW + 2 * session + 2_000), 0, "but not for ever");

    // A Global that starts in the middle of it goes by when the colo last spoke, not by its own start.
    let mut stored = Vec::new();
    global.store_reports(true, NOW, |report: &ColoReport| stored.push(report.clone()));
    let late = NOW + session + 1_000;
    let mut restarted = Global::restore(&room, None, stored, late);
    assert_eq!(restarted.state(&room, None, minute_of(late), late + 1_000).active, 10);
}

#[test]
fn no_session_of_a_colo_that_is_cut_off_is_foreseen_to_end() {
    let room = room(100, 100, 1);
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    data_center.receive(&room, &report(1, 0, 1, (1..=10).map(|id| enter(id, NOW)).collect()), NOW + 1_000);
    let saved = data_center.save(&room, NOW + 1_000);
    let last = data_center.push(&room, &saved, None, NOW + 1_000);
    let foreseen = |last: ColoReport| {
        let mut global = Global::restore(&room, None, Vec::new(), NOW);
        global.receive(&room, last, NOW + 1_000);
        let at = NOW + 58_000;
        let state = global.state(&room, None, minute_of(at), at);
        (state.active, state.active_at(at + 5_000))
    };
    assert_eq!(foreseen(ColoReport { next_in: 0, ..last.clone() }), (10, 0));
    assert_eq!(foreseen(last), (10, 10), "nobody could tell whether they go on");
}

#[test]
fn a_session_that_was_renewed_in_another_colo_outlives_a_global_that_lost_the_report_of_it() {
    let room = room(100, 100, 1);
    let push = |data_center: &mut DataCenter, at: u64| {
        let saved = data_center.save(&room, at);
        data_center.push(&room, &saved, None, at)
    };
    let mut ams = DataCenter::restore(&room, "AMS", 7, None, NOW);
    ams.receive(&room, &report(1, 0, 1, (1..=10).map(|id| enter(id, NOW)).collect()), NOW);
    let mut sin = DataCenter::restore(&room, "SIN", 7, None, NOW);
    sin.receive(&room, &report(2, 0, 1, vec![enter(11, NOW + 44_000)]), NOW + 45_000);
    let stored = push(&mut sin, NOW + 45_000);
    let at = NOW + 52_000;
    let renewals = (1..=10).map(|id| CheckIn::Move { id, from: NOW, at, entered: Some(NOW) }).collect();
    sin.receive(&room, &report(2, 7, 2, renewals), at + 1_000);
    let of_ams = push(&mut ams, NOW + 61_000);

    // The renewals were told, and are not among what the next start finds.
    let started_at = NOW + 62_000;
    let mut global = Global::restore(&room, None, vec![of_ams, stored], started_at);
    let active = |global: &mut Global, at: u64| global.state(&room, None, minute_of(at), at).active;
    assert_eq!(active(&mut global, started_at + 500), 11, "SIN has not spoken yet");
    global.receive(&room, push(&mut sin, started_at + 1_000), started_at + 1_000);
    assert_eq!(active(&mut global, started_at + 1_000), 11);
}

#[test]
fn nobody_who_waits_is_taken_for_gone_because_a_report_is_missing() {
    let room = room(100, 100, 1);
    let bucket = minute_of(NOW);
    let waits = |id| CheckIn::Wait { id, bucket, from: None, at: Seen::from(NOW) };
    let mut ams = DataCenter::restore(&room, "AMS", 7, None, NOW);
    ams.receive(&room, &report(1, 0, 1, (1..=10).map(waits).collect()), NOW);
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    let mut push = |global: &mut Global, at: u64| {
        let saved = ams.save(&room, at);
        global.receive(&room, ams.push(&room, &saved, None, at), at);
    };
    let present = |global: &mut Global, at: u64| global.state(&room, None, bucket, at).present_ahead(None);
    push(&mut global, NOW + 1_000);
    assert_eq!(present(&mut global, NOW + 30_000), 10, "nobody can know whether they have looked again");
    let mut told = Global::restore(&room, None, Vec::new(), NOW);
    push(&mut told, NOW + 29_000);
    assert_eq!(present(&mut told, NOW + 30_000), 0, "they have not");
    assert_eq!(present(&mut global, NOW + 44_000), 0, "they have gone elsewhere by now");
}

#[test]
fn a_colo_that_has_become_quiet_reports_once_more_as_announced() {
    let room = room(100, 100, 1);
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    data_center.receive(&room, &report(1, 0, 1, vec![enter(1, NOW)]), NOW);
    let (pushed, answered) = (NOW + 11_900, NOW + 12_100);
    let saved = data_center.save(&room, pushed);
    assert_eq!(data_center.push(&room, &saved, None, pushed).next_in, 2_000);
    data_center.pushed(&room, None, answered);
    assert_eq!(data_center.next_push(&room, answered), Some(1_800), "else it would be taken for cut off");
    let saved = data_center.save(&room, NOW + 13_900);
    let next_in = data_center.push(&room, &saved, None, NOW + 13_900).next_in;
    assert_eq!(next_in, 13_100, "when what was told before its start is not in force any more");
    let saved = data_center.save(&room, NOW + 27_000);
    assert_eq!(data_center.push(&room, &saved, None, NOW + 27_000).next_in, 20_000, "slowly from then on");
}

#[test]
fn an_operators_order_outlives_a_data_center_whatever_the_strategy() {
    for &slot_strategy in SlotStrategy::ALL {
        let mut room = room(100, 100, 1);
        room.slot_strategy = slot_strategy;
        let mut before = DataCenter::restore(&room, "AMS", 7, None, NOW);
        let mut steering = Overrides::none().clone();
        steering.version = 3;
        before.learn(StateKey { taken_at: NOW, steering, ..StateKey::default() }, NOW);
        let saved = before.save(&room, NOW);
        let later = NOW + 60_000;
        let mut after = DataCenter::restore(&room, "AMS", 8, Some(saved), later);
        let told = after.state(later).map(|key| key.steering.version);
        assert_eq!(told, Some(3), "{slot_strategy:?}: if Global does not answer");
        if !slot_strategy.leases_permits() {
            after.receive(&room, &report(1, 0, 1, vec![enter(1, later)]), later);
            assert!(after.must_ask(later), "{slot_strategy:?}: for what may have changed");
            after.learn(StateKey { taken_at: later, ..StateKey::default() }, later);
            assert!(!after.must_ask(later), "{slot_strategy:?}");
        }
    }
}

#[test]
fn a_quiet_colo_says_slowly_that_it_is_there_and_sleeps_when_nobody_is_active() {
    let room = room(100, 100, 1);
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    data_center.receive(&room, &report(1, 0, 1, vec![enter(1, NOW)]), NOW);
    let quiet = NOW + 27_000;
    let saved = data_center.save(&room, quiet);
    let told = data_center.push(&room, &saved, None, quiet).next_in;
    assert_eq!(told, 2_000, "once more: Global may restart before it has stored this");
    let quiet = quiet + told;
    let saved = data_center.save(&room, quiet);
    let last = data_center.push(&room, &saved, None, quiet);
    assert_eq!(last.next_in, 20_000, "a third of a session");
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    global.receive(&room, last, quiet);
    let ended = NOW + room.session_ms() + 2_000;
    let saved = data_center.save(&room, ended);
    let last = data_center.push(&room, &saved, None, ended);
    assert_eq!(last.next_in, 0, "nobody is active: it sleeps");
    assert_eq!(data_center.next_push(&room, ended), None);
    global.receive(&room, last, ended);
    let later = ended + 60_000;
    assert_eq!(global.state(&room, None, minute_of(later), later).active, 0, "its silence is believed");
}

#[test]
fn users_of_wide_slots_count_for_a_whole_session_in_narrower_ones() {
    let (before, after) = (room(100, 100, 30), room(100, 100, 1));
    for at in (NOW..NOW + 5_000).step_by(37) {
        let mut counts = Counts::new(&before);
        counts.apply(&enter(1, at), &mut Remembered::new(60_000, 100));
        counts.adapt(&after);
        assert_eq!(counts.active_at(&after, at + 60_000), 1, "{} ms after", at - NOW);
        assert_eq!(counts.active_at(&after, at + 62_600), 0);
    }
}

#[test]
fn a_changed_session_duration_keeps_the_users_that_are_in() {
    let before = room(100, 100, 1);
    let after = room(100, 100, 5);
    let mut data_center = DataCenter::restore(&before, "AMS", 7, None, NOW);
    data_center.receive(&before, &report(1, 0, 1, (1..=20).map(|id| enter(id, NOW)).collect()), NOW);
    let saved = data_center.save(&before, NOW);
    let mut data_center = DataCenter::restore(&after, "AMS", 8, Some(saved.clone()), NOW + 1_000);
    assert_eq!(active(&mut data_center, &after, NOW + 200_000), 20);
    let mut global = Global::restore(&after, None, Vec::new(), NOW);
    let old = data_center.push(&before, &saved, None, NOW);
    global.receive(&after, old, NOW);
    assert_eq!(
        global.state(&after, Some("AMS"), minute_of(NOW), NOW).active,
        20,
        "reports of old code still count"
    );
}

#[test]
fn a_data_center_that_misses_one_question_is_asked_again_before_an_order_must_be_known() {
    let mut controller = AdmissionController::default();
    let mut asks = |now: u64, answered: bool| {
        let asks = controller.begin_refresh(now);
        if asks {
            controller.end_refresh(answered, now + 500);
        }
        asks
    };
    assert!(asks(NOW, false));
    assert!(!asks(NOW + 999, false));
    assert!(asks(NOW + 1_000, false), "an order must be obeyed after three seconds");
    assert!(!asks(NOW + 6_499, true), "one that is silent is not asked all the time");
    assert!(asks(NOW + 6_500, true));
    assert!(asks(NOW + 7_500, false));
    assert!(asks(NOW + 8_500, true), "one that has answered is not silent");
}

#[test]
fn a_clock_that_goes_back_a_little_goes_on_and_one_that_goes_back_far_is_believed() {
    let mut clock = Steady::new();
    let told = [1_000, 2_000, 1_500, 1_600, 2_500, 2_400, 60_000, 45_000].map(|time| clock.read(time));
    assert_eq!(told, [1_000, 2_000, 2_000, 2_100, 3_000, 3_000, 60_600, 45_000]);
    clock.read(40_000);
    assert_eq!(clock.platform_time(46_000), 41_000, "an alarm for then rings then");
    assert_eq!(
        clock.own_time(41_000),
        46_000,
        "what another one has said by the platform's clock is of then"
    );
}

#[test]
fn a_counter_asks_its_callers_to_come_slower_in_the_first_moments_of_a_crowd_and_faster_when_it_is_over() {
    use std::rc::Rc;

    use anteroom::machines::{Context, Counter, Effect, Input, ObjectMachine, Stored};
    use anteroom::protocol::messages::Take;
    use anteroom::protocol::{Answer, Request};
    use anteroom::room::SlotStrategy;
    use anteroom::steering::Overrides;

    let room = Rc::new(Room { slot_strategy: SlotStrategy::Counters, ..room(10_000, 10_000, 5) });
    let mut counter = Counter::restore(&Stored::new(), 7, NOW);
    let mut called = |now: u64| {
        let context = Context { room: &room, colo: "AMS", deadline_ms: 500, now };
        let take = Take::new(Vec::new(), Overrides::default());
        let input = Input::Asked { from: now, request: Request::CounterTake(Box::new(take)) };
        let mut effects = Vec::new();
        counter.handle(&context, input, &mut effects);
        let told = effects.into_iter().find_map(|effect| match effect {
            Effect::Reply { answer: Answer::CounterTake(taken), .. } => Some(taken.pace_ms),
            _ => None,
        });
        told.expect("an answer")
    };
    // Ten calls a second, each 20 ms after the one before at the soonest: the object serves that.
    let everyday = (0..20).map(|call| called(NOW + call * 100)).last();
    assert_eq!(everyday, Some(20));
    // Then one in each millisecond.
    let crowd: Vec<u32> = (0..200).map(|call| called(NOW + 2_000 + call)).collect();
    assert!(crowd.iter().position(|pace| *pace > 20).is_some_and(|call| call <= 100), "{crowd:?}");
    assert!(crowd.last().is_some_and(|pace| *pace >= 80), "{crowd:?}");
    let calm = (0..40).map(|call| called(NOW + 3_000 + call * 250)).last();
    assert_eq!(calm, Some(20));
}
