//! What a ticket of `leases` counts for: the minute in which it reaches its visitor, and with `rate_window = "sliding"`
//! 60 seconds, however the pool learns of it.

use anteroom::admission::{
    DueRecord, Group, LeaseAnswer, LeaseAsk, LeaseCounter, Level, NumberAsk, Outcome, Pool, Returned,
    SavedPool, Serves, minute_of, start_of,
};
use anteroom::counts::Global;
use anteroom::protocol::wire::{decode, encode};
use anteroom::room::{AdaptiveRange, RateWindow, Room, SlotStrategy};

/// Late in a minute.
const NOW: u64 = 28_000_000 * 60_000 + 50_000;

fn room(rate_window: RateWindow) -> Room {
    Room { slot_strategy: SlotStrategy::Leases, rate_window, ..crate::articles::room(1_000, 10, 1) }
}

/// A Counter's call: which it is and which was answered last, tickets used in NOW's minute, and who asks.
fn ask(sequence: u64, last_answered: u64, used: u64, visitors: u32) -> LeaseAsk {
    let groups = vec![Group { bucket: minute_of(NOW), waits: false, visitors }];
    let used = vec![(minute_of(NOW), used)];
    LeaseAsk { epoch: 1, sequence, last_answered, groups, used, ..LeaseAsk::default() }
}

/// How many visitors a pool lets in.
fn given(pool: &mut Pool, room: &Room, ask: &LeaseAsk, now: u64) -> u32 {
    let mut global = Global::restore(room, None, Vec::new(), now);
    pool.renew(global.state(room, None, minute_of(now), now), now);
    pool.lease(room, "AMS", ask, now).unwrap().given[0].0
}

#[test]
fn a_ticket_counts_for_sixty_seconds_across_the_minutes_edge() {
    for (window, after_20_s) in [(RateWindow::Minute, 10), (RateWindow::Sliding, 0)] {
        let room = room(window);
        let mut pool = Pool::restore(None, NOW);
        assert_eq!(given(&mut pool, &room, &ask(1, 0, 0, 12), NOW), 10);
        assert_eq!(given(&mut pool, &room, &ask(2, 1, 10, 12), NOW + 20_000), after_20_s);
    }
    let room = room(RateWindow::Sliding);
    // Sums are by the tenth of a second: the last moment of one is where something could be missing.
    let start = NOW + 99;
    let mut pool = Pool::restore(None, start);
    assert_eq!(given(&mut pool, &room, &ask(1, 0, 0, 10), start), 10);
    assert_eq!(given(&mut pool, &room, &ask(2, 1, 10, 1), start + 60_599), 0);
    assert_eq!(given(&mut pool, &room, &ask(3, 2, 10, 12), start + 60_800), 10);
}

#[test]
fn where_the_window_slides_a_permit_counts_for_sixty_seconds_from_when_it_has_reached_its_visitor() {
    let room = room(RateWindow::Sliding);
    let mut pool = Pool::restore(None, NOW);
    assert_eq!(given(&mut pool, &room, &ask(1, 0, 0, 10), NOW + 500), 10);
    // Used by now, up to 600 ms after it was given.
    assert_eq!(given(&mut pool, &room, &ask(2, 1, 10, 0), NOW + 1_100), 0);
    assert_eq!(given(&mut pool, &room, &ask(3, 2, 10, 1), NOW + 61_099), 0);
    assert_eq!(given(&mut pool, &room, &ask(4, 3, 10, 12), NOW + 61_300), 10);
}

#[test]
fn where_the_window_slides_a_permit_of_a_stock_counts_from_when_it_was_used_not_from_when_the_pool_hears_of_it()
 {
    let room = room(RateWindow::Sliding);
    for (recent, at_61_s, at_81_s) in [
        // Used 20 seconds before the Counter called, and what it did not say when, as of the call.
        (vec![(10, 20_000)], 10, 10),
        (vec![(7, 20_000)], 7, 10),
        (vec![(7, 20_000), (3, 1_000)], 7, 10),
        (Vec::new(), 0, 10),
        // More than it has used: of those before it, the pool has heard.
        (vec![(5, 50_000), (10, 20_000)], 10, 10),
    ] {
        let mut pool = Pool::restore(None, NOW);
        let stock = LeaseAsk { want: 10, rate: 10_000, ..ask(1, 0, 0, 0) };
        given(&mut pool, &room, &stock, NOW);
        let told = LeaseAsk { recent: recent.clone(), ..ask(2, 1, 10, 0) };
        given(&mut pool, &room, &told, NOW + 20_100);
        let later = |at: u64| given(&mut pool.clone(), &room, &ask(3, 2, 10, 12), NOW + at);
        assert_eq!([later(60_000), later(61_000), later(81_000)], [0, at_61_s, at_81_s], "{recent:?}");
    }
}

#[test]
fn a_stock_that_was_called_back_counts_from_when_it_was_used_and_what_was_on_its_way_from_when_it_arrives() {
    let room = room(RateWindow::Sliding);
    let minute = minute_of(NOW);
    let returned = |last_answered: u64, used: u64, recent: &[(u32, u64)]| Returned {
        v: 1,
        epoch: 1,
        sequence: 1,
        last_answered,
        used: vec![(minute, used)],
        recent: recent.to_vec(),
    };
    let later = |pool: &Pool, at: u64| {
        let mut pool = pool.clone();
        let others = LeaseAsk { epoch: 2, ..ask(1, 0, 0, 12) };
        let mut global = Global::restore(&room, None, Vec::new(), NOW + at);
        pool.renew(global.state(&room, None, minute_of(NOW + at), NOW + at), NOW + at);
        pool.lease(&room, "SIN", &others, NOW + at).unwrap().given[0].0
    };
    for (recent, at_61_s) in [(vec![(4, 20_000)], 10), (Vec::new(), 6)] {
        let mut pool = Pool::restore(None, NOW);
        given(&mut pool, &room, &LeaseAsk { want: 10, rate: 10_000, ..ask(1, 0, 0, 0) }, NOW);
        pool.returned("AMS", &returned(1, 4, &recent), NOW + 20_100);
        assert_eq!([later(&pool, 59_900), later(&pool, 61_000)], [6, at_61_s], "{recent:?}");
    }
    let mut pool = Pool::restore(None, NOW);
    assert_eq!(given(&mut pool, &room, &ask(1, 0, 0, 4), NOW), 4);
    pool.returned("AMS", &returned(0, 0, &[]), NOW + 300);
    assert_eq!([later(&pool, 60_800), later(&pool, 61_100)], [6, 10]);
}

fn for_users(total_active_users: u32) -> Room {
    crate::articles::room(total_active_users, 10, 1)
}

/// A Counter of a room with a sliding window that has a stock.
fn counter_with_stock() -> LeaseCounter {
    let mut counter = LeaseCounter::new(1);
    counter.follow(RateWindow::Sliding, Serves::Colo);
    answered(&mut counter, &visitor(1), NOW);
    counter
}

fn visitor(id: u64) -> NumberAsk {
    NumberAsk { id, bucket: minute_of(NOW), waits: false, minute: minute_of(NOW), limit: 10, owned: 10 }
}

/// A visitor comes, and the pool answers with more for the stock.
fn answered(counter: &mut LeaseCounter, visitor: &NumberAsk, now: u64) {
    counter.ask(0, *visitor, now);
    let call = counter.call(now).unwrap();
    counter.answered(Some(&answer(&call, now)), now);
}

/// The pool gives all what they ask for, and more for the stock.
fn answer(call: &LeaseAsk, now: u64) -> LeaseAnswer {
    LeaseAnswer {
        v: 1,
        sequence: call.sequence,
        now,
        given: vec![(1, 0); call.groups.len()],
        extra: 20,
        most: 20,
        usable_ms: 300_000,
        pace_ms: 0,
        level: Level::Calm,
        wait_ms: 100,
        spare: 0,
        steering: 0,
        is_latest: false,
        in_rush: false,
    }
}

#[test]
fn a_counter_says_when_it_used_its_stock_until_the_pool_has_answered() {
    let mut counter = counter_with_stock();
    for (id, at) in [(2, 1_000), (3, 1_020), (4, 5_000)] {
        counter.ask(id, visitor(id), NOW + at);
    }
    // Those of one tenth of a second are told as of the last one.
    assert_eq!(counter.recall(NOW + 9_000).recent, [(2, 7_980), (1, 4_000)]);
    counter.ask(5, visitor(5), NOW + 10_000);
    assert_eq!(counter.call(NOW + 10_000).unwrap().recent, [(2, 8_980), (1, 5_000)]);
    // That call is lost, and the next one is answered.
    counter.answered(None, NOW + 11_000);
    answered(&mut counter, &visitor(6), NOW + 12_000);
    counter.ask(7, visitor(7), NOW + 13_000);
    assert_eq!(counter.recall(NOW + 14_000).recent, [(1, 1_000)]);
}

#[test]
fn where_the_window_slides_a_quiet_counter_counts_nothing_as_used_that_was_not() {
    // One more than the ten may have been used since the record.
    for (window, counted) in [(RateWindow::Sliding, 10), (RateWindow::Minute, 11)] {
        let mut counter = counter_with_stock();
        counter.follow(window, Serves::Colo);
        for id in 2..=10 {
            counter.ask(id, visitor(id), NOW + id);
        }
        let Some(DueRecord::First(record) | DueRecord::Last(record)) =
            counter.record(&for_users(1_000), NOW + 5_000)
        else {
            panic!("it keeps its stock")
        };
        let used = LeaseCounter::restore(Some(record), 2, NOW + 5_000).recall(NOW + 5_000).used;
        assert_eq!(used.iter().map(|(_, used)| used).sum::<u64>(), counted, "{window:?}");
    }
}

#[test]
fn who_comes_again_need_not_wait_for_a_record_in_a_large_room_and_what_may_be_used_counts_in_its_minute() {
    let (minute, edge) = (minute_of(NOW), start_of(minute_of(NOW) + 1));
    let mut counter = counter_with_stock();
    counter.follow(RateWindow::Minute, Serves::Colo);
    let mut comes = |id: u64, now: u64, users: u32| {
        counter.ask(id, visitor(id), now);
        counter.record(&for_users(users), now)
    };
    assert!(
        matches!(comes(2, NOW + 3_000, 10_000), Some(DueRecord::Last(_))),
        "no record could give it again"
    );
    assert!(matches!(comes(3, NOW + 6_000, 10_000), Some(DueRecord::First(_))));
    let Some(DueRecord::Last(record)) = comes(4, NOW + 9_000, 10_000) else {
        panic!("one more was recorded")
    };
    let Some(DueRecord::First(next)) = comes(5, edge, 10_000) else { panic!("not in another minute") };
    assert_eq!(comes(6, edge + 5_000, 1_000), None, "recorded before");
    assert!(matches!(comes(7, edge + 10_000, 1_000), Some(DueRecord::First(_))), "a small room counts each");
    let used = |record| LeaseCounter::restore(Some(record), 2, edge + 30_000).recall(edge + 30_000).used;
    // Visitors 1 to 4, and one who may have come: of 20 permits 16 are left.
    assert_eq!(used(record), [(minute, 5)]);
    assert_eq!(used(next), [(minute, 4), (minute + 1, 2)]);
}

#[test]
fn where_visitors_come_often_the_next_one_need_not_wait_for_a_record_in_a_medium_room() {
    let least = |least_active_users| {
        let range = AdaptiveRange { least_active_users, least_new_users: 1, slow_ms: None };
        Room { adaptive: Some(range), ..for_users(4_000) }
    };
    for (window, apart_ms, room, must_wait) in [
        (RateWindow::Minute, 2_000, for_users(2_000), false),
        (RateWindow::Minute, 6_000, for_users(2_000), true),
        (RateWindow::Minute, 2_000, for_users(1_000), true),
        (RateWindow::Sliding, 2_000, for_users(2_000), true),
        (RateWindow::Minute, 2_000, least(2_000), false),
        (RateWindow::Minute, 2_000, least(500), true),
    ] {
        let mut counter = counter_with_stock();
        counter.follow(window, Serves::Colo);
        let mut comes = |id: u64| {
            let now = NOW + (id - 1) * apart_ms;
            counter.ask(id, visitor(id), now);
            counter.record(&room, now)
        };
        // Nobody's record could give the second visitor's permit again.
        assert!(matches!(comes(2), Some(DueRecord::Last(_))));
        let waits = matches!(comes(3), Some(DueRecord::First(_)));
        let limits = (room.total_active_users, room.adaptive);
        assert_eq!(waits, must_wait, "{window:?}, {apart_ms} ms apart, a room of {limits:?}");
    }
}

#[test]
fn in_a_rush_a_colos_second_visitor_need_not_wait_for_a_record() {
    for (in_rush, users, must_wait) in [(false, 1_000, true), (true, 1_000, false), (true, 100, true)] {
        let mut counter = LeaseCounter::new(1);
        counter.ask(1, visitor(1), NOW);
        let call = counter.call(NOW).unwrap();
        counter.answered(Some(&LeaseAnswer { in_rush, ..answer(&call, NOW) }), NOW);
        let Some(DueRecord::Last(record)) = counter.record(&for_users(users), NOW) else {
            panic!("it keeps its stock")
        };
        counter.ask(2, visitor(2), NOW + 500);
        let waits = matches!(counter.record(&for_users(users), NOW + 500), Some(DueRecord::First(_)));
        assert_eq!(waits, must_wait, "in a rush: {in_rush}, a room of {users}");
        // By that record the next instance would not give the second visitor's permit again.
        let next = LeaseCounter::restore(Some(record), 2, NOW + 20_000).recall(NOW + 20_000);
        assert_eq!(next.used, [(minute_of(NOW), 1 + u64::from(!must_wait))]);
    }
}

#[test]
fn a_crowd_that_has_just_come_is_a_rush_while_the_room_has_far_more_slots_than_colos() {
    // One call of each of 30 colos: within so many milliseconds, in a room for so many.
    let is_rush = |within_ms: u64, users: u32| {
        let room = Room { slot_strategy: SlotStrategy::Leases, ..crate::articles::room(users, users, 5) };
        let mut pool = Pool::restore(None, NOW);
        let mut told = false;
        for colo in 0..30 {
            let now = NOW - within_ms + colo * within_ms / 30;
            let mut global = Global::restore(&room, None, Vec::new(), now);
            pool.renew(global.state(&room, None, minute_of(now), now), now);
            told = pool.lease(&room, &format!("C{colo}"), &ask(1, 0, 0, 1), now).unwrap().in_rush;
        }
        told
    };
    assert!(is_rush(500, 1_000));
    assert!(!is_rush(10_000, 1_000), "three calls a second");
    assert!(!is_rush(500, 110), "fewer than three permits are left for each");
}

#[test]
fn a_quiet_counter_that_starts_anew_still_says_when_it_used_its_stock() {
    let mut counter = counter_with_stock();
    counter.ask(2, visitor(2), NOW + 30_000);
    let Some(DueRecord::First(record) | DueRecord::Last(record)) =
        counter.record(&for_users(1_000), NOW + 30_000)
    else {
        panic!("it keeps its stock")
    };
    let mut counter = LeaseCounter::restore(decode(&encode(&record).unwrap()).ok(), 2, NOW + 50_000);
    counter.follow(RateWindow::Sliding, Serves::Colo);
    let recent = counter.recall(NOW + 50_000).recent;
    assert_eq!(recent[0], (1, 20_000));
    // What may have been used since the record may have been used just now.
    assert!(recent[1..].iter().all(|(_, ago_ms)| *ago_ms == 0), "{recent:?}");
}

#[test]
fn where_the_window_slides_a_permit_is_good_only_as_long_as_it_takes_to_reach_its_visitor() {
    for (window, after_20_s) in [(RateWindow::Minute, 1), (RateWindow::Sliding, 0)] {
        let room = Room { new_users_per_minute: 1, ..room(window) };
        let now = start_of(minute_of(NOW));
        let ask = NumberAsk {
            id: 7,
            bucket: minute_of(now),
            waits: false,
            minute: minute_of(now),
            limit: 1,
            owned: 1,
        };
        let mut global = Global::restore(&room, None, Vec::new(), now);
        let mut pool = Pool::restore(None, now);
        pool.renew(global.state(&room, None, minute_of(now), now), now);
        let mut counter = LeaseCounter::new(1);
        counter.follow(window, Serves::Colo);
        counter.ask(0, ask, now);
        let call = counter.call(now).unwrap();
        counter.answered(pool.lease(&room, "AMS", &call, now).as_ref(), now);
        // The answer comes too late for the visitor, who asks again.
        for (later_ms, found) in [(0, 1), (500, 1), (20_000, after_20_s)] {
            counter.ask(1, ask, now + later_ms);
            let given = counter
                .answers()
                .iter()
                .any(|(place, outcome)| *place == 1 && matches!(outcome, Outcome::Given { .. }));
            assert_eq!(u32::from(given), found, "{window:?}, {later_ms} ms later");
        }
    }
}

#[test]
fn where_the_window_slides_a_permit_that_was_on_its_way_for_long_is_asked_for_once_more() {
    for (window, took_ms, entered) in
        [(RateWindow::Minute, 1_000, 1), (RateWindow::Sliding, 1_000, 0), (RateWindow::Sliding, 500, 1)]
    {
        let room = Room { new_users_per_minute: 1, ..room(window) };
        let now = start_of(minute_of(NOW));
        let minute = minute_of(now);
        let mut global = Global::restore(&room, None, Vec::new(), now);
        let mut pool = Pool::restore(None, now);
        pool.renew(global.state(&room, None, minute, now), now);
        let mut counter = LeaseCounter::new(1);
        counter.follow(window, Serves::Colo);
        let ask = NumberAsk { id: 7, bucket: minute, waits: false, minute, limit: 1, owned: 1 };
        counter.ask(0, ask, now);
        let given = |counter: &mut LeaseCounter| {
            let answers = counter.answers();
            answers.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Given { .. })).count()
        };
        let call = counter.call(now).unwrap();
        let answer = pool.lease(&room, "AMS", &call, now);
        let now = now + took_ms;
        counter.answered(answer.as_ref(), now);
        assert_eq!(given(&mut counter), entered, "{window:?}, {took_ms} ms");
        if entered == 0 {
            // The one number of the minute is free again.
            pool.renew(global.state(&room, None, minute, now), now);
            let call = counter.call(now + 100).unwrap();
            counter.answered(pool.lease(&room, "AMS", &call, now + 100).as_ref(), now + 130);
            assert_eq!(given(&mut counter), 1);
        }
    }
}

#[test]
fn a_ticket_given_at_the_edge_of_a_minute_counts_for_the_minute_in_which_its_visitor_enters() {
    let room = room(RateWindow::Minute);
    let next = minute_of(NOW) + 1;
    let given_at = start_of(next) - 60;
    let mut global = Global::restore(&room, None, Vec::new(), given_at);
    let mut pool = Pool::restore(None, given_at);
    pool.renew(global.state(&room, None, minute_of(NOW), given_at), given_at);
    let mut counter = LeaseCounter::new(1);
    let asks = |id: u64| NumberAsk {
        id,
        bucket: minute_of(NOW),
        waits: false,
        minute: minute_of(NOW),
        limit: 10,
        owned: 10,
    };
    for id in 1..=6 {
        counter.ask(id, asks(id), given_at - 30);
    }
    let call = LeaseAsk { want: 0, ..counter.call(given_at - 30).unwrap() };
    let answer = pool.lease(&room, "AMS", &call, given_at).unwrap();
    counter.answered(Some(&answer), given_at + 30);
    let minutes: Vec<Outcome> = counter.answers().into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(minutes, [Outcome::Given { minute: next, number: 0 }; 6]);

    // Nobody knows on which side of the edge they enter: neither minute gets more than ten.
    let others = |pool: &Pool, at: u64| {
        let mut pool = pool.clone();
        pool.lease(&room, "SIN", &ask(1, 0, 0, 12), at).unwrap().given[0].0
    };
    assert_eq!(others(&pool, given_at + 40), 4);
    assert_eq!(others(&pool, start_of(next) + 40), 4);
    // The same when the colo has told of them; the minute after that is whole.
    counter.ask(7, asks(7), start_of(next) + 50);
    let call = LeaseAsk { want: 0, ..counter.call(start_of(next) + 50).unwrap() };
    assert_eq!(call.used, [(next, 6)]);
    pool.lease(&room, "AMS", &call, start_of(next) + 80).unwrap();
    assert_eq!(others(&pool, start_of(next) + 90), 3);
    let later = start_of(next + 1) + 1_000;
    pool.renew(global.state(&room, None, minute_of(later), later), later);
    assert_eq!(others(&pool, later), 10);
}

#[test]
fn what_was_given_with_a_lost_answer_is_given_again_and_counts_once() {
    let room = room(RateWindow::Sliding);
    let mut pool = Pool::restore(None, NOW);
    assert_eq!(given(&mut pool, &room, &ask(1, 0, 0, 6), NOW), 6);
    // Nobody heard that, but meanwhile 2 of a stock were used.
    assert_eq!(given(&mut pool, &room, &ask(2, 0, 2, 6), NOW + 5_000), 6);
    assert_eq!(given(&mut pool, &room, &ask(3, 2, 8, 6), NOW + 6_000), 2);
    // All of them entered after the first answer.
    assert_eq!(given(&mut pool, &room, &ask(4, 3, 10, 6), NOW + 62_000), 0);
}

#[test]
fn a_restart_forgets_no_ticket_of_the_window() {
    let sliding = room(RateWindow::Sliding);
    // Also a record of before the setting, which says nothing of seconds.
    for (before, cut) in [(RateWindow::Sliding, 0), (RateWindow::Minute, 1)] {
        let mut pool = Pool::restore(None, NOW);
        assert_eq!(given(&mut pool, &room(before), &ask(1, 0, 0, 10), NOW), 10);
        let mut record = encode(&pool.save(true)).unwrap();
        record.truncate(record.len() - cut);
        let saved: SavedPool = decode(&record).unwrap();
        let mut pool = Pool::restore(Some(saved), NOW + 5_000);
        assert_eq!(given(&mut pool, &sliding, &ask(2, 1, 10, 1), NOW + 20_000), 0);
        assert_eq!(given(&mut pool, &sliding, &ask(3, 2, 10, 1), NOW + 59_000), 0);
        assert_eq!(given(&mut pool, &sliding, &ask(4, 3, 10, 1), NOW + 66_000), 1);
    }
}
