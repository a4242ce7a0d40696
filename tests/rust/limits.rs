//! What limits rest on: shares that add up, numbers that are given once, reports that count once. Whole rooms are in
//! `sim/tests`.

use anteroom::admission::{
    LeaseCounter, Ledger, NumberAsk, Outcome, Pool, Remembered, SavedLedger, Shares, StateKey, minute_of,
};
use anteroom::counts::{CheckIn, Counts, Global};
use anteroom::protocol::messages::{ColoReport, Given};
use anteroom::room::{Room, SlotStrategy};
use proptest::prelude::*;

use crate::articles::room;

proptest! {
    #[test]
    fn the_owners_parts_add_up_to_the_budget_and_only_grow(
        users in prop::collection::vec(0u64..500, 0..40),
        limit in 1u64..5_000,
        budget in 0i64..3_000,
    ) {
        let names: Vec<String> = (0..users.len()).map(|index| format!("C{index:03}")).collect();
        let history = names.iter().map(String::as_str).zip(users.iter().copied());
        let shares = Shares::from_history(history, limit);
        let mut sum = [0i64; 2];
        for (step, sum) in sum.iter_mut().enumerate() {
            let budget = budget + step as i64;
            *sum = shares.for_colo(0, None).anywhere_slots(budget);
            for name in &names {
                *sum += shares.for_colo(0, Some(name)).colo_slots(budget);
            }
            prop_assert_eq!(*sum, budget);
        }
        for name in &names {
            let view = shares.for_colo(0, Some(name));
            prop_assert!(view.colo_slots(budget + 1) >= view.colo_slots(budget));
        }
    }

    #[test]
    fn a_ledger_gives_each_number_once_and_never_at_or_above_its_limit(
        asks in prop::collection::vec((0u64..50, 0i64..30, 0u64..30_000), 1..200),
    ) {
        let start = 28_000_000 * 60_000;
        let mut ledger = Ledger::restore(None, false, start);
        let mut now = start;
        let mut holders = std::collections::HashMap::new();
        for (id, limit, pause) in asks {
            now += pause / 20;
            if let Outcome::Given { minute, number } = ledger.take(id, limit, limit, now) {
                let holder = holders.entry((minute, number)).or_insert(id);
                prop_assert_eq!(*holder, id, "two tickets hold one number");
            }
        }
        prop_assert!(ledger.given().unwrap() <= 30);
    }

    #[test]
    fn a_ledger_that_restarts_again_and_again_never_counts_too_few(
        steps in prop::collection::vec((0u64..4_000, 0u64..6, any::<bool>()), 1..120),
    ) {
        let mut now = 28_000_000 * 60_000;
        let mut ledger = Ledger::restore(None, true, now);
        let mut stored: Option<SavedLedger> = None;
        let mut given = std::collections::HashMap::new();
        for (step, (pause, asks, restarts)) in steps.into_iter().enumerate() {
            now += pause;
            ledger.roll(now);
            // Nothing was given for a second: the last write says so.
            if pause > 1_000 && ledger.is_covered() {
                stored = Some(ledger.save(true));
            }
            for ask in 0..asks {
                if let Outcome::Given { minute, .. } = ledger.take(step as u64 * 10 + ask, 0, 1_000, now) {
                    *given.entry(minute).or_insert(0) += 1;
                }
                // The answer waits for this write; all other writes may be lost.
                if !ledger.is_covered() {
                    stored = Some(ledger.save(false));
                }
            }
            if restarts {
                ledger = Ledger::restore(stored, true, now);
                let known = ledger.given().unwrap();
                prop_assert!(known >= given.get(&ledger.minute()).copied().unwrap_or(0), "{stored:?}");
            }
        }
    }

    #[test]
    fn reports_count_once_in_any_order_and_however_often_they_come(
        order in Just((0..12usize).collect::<Vec<_>>()).prop_shuffle(),
        repeats in prop::collection::vec(0usize..12, 0..12),
    ) {
        let room = room(100, 100, 1);
        let now = 28_000_000 * 60_000 + 30_000;
        let mut seen = Remembered::new(60_000, 1_000);
        let mut census = Counts::new(&room);
        // Twelve reports of three colos, each holding all of the colo's admissions so far.
        let mut reports = Vec::new();
        for sequence in 0..4u64 {
            for colo in ["AMS", "SIN", "GRU"] {
                let id = reports.len() as u64 + 1;
                let minute = (now / 60_000) as u32;
                census.apply(
                    &CheckIn::Enter { id, bucket: minute, from: None, at: now, minute, numbered: true }, &mut seen,
                );
                let given = Some(Given { v: 1, minute, given: Some(sequence), previous: Some(0), assumed: 0 });
                reports.push(ColoReport {
                    v: 1, colo: colo.to_owned(), sequence: sequence + 1, counts: census.clone(), given, workers: 1, next_in: 0, late: 0, origin: None, steering: 0, tallies: Default::default(), overrides: Default::default(),
                });
            }
        }
        let mut straight = Global::restore(&room, None, Vec::new(), now);
        for report in &reports {
            straight.receive(&room, report.clone(), now);
        }
        let mut shuffled = Global::restore(&room, None, Vec::new(), now);
        for index in order.iter().chain(&repeats) {
            shuffled.receive(&room, reports[*index].clone(), now);
        }
        let minute = (now / 60_000) as u32;
        prop_assert_eq!(straight.state(&room, None, minute, now), shuffled.state(&room, None, minute, now));
    }
}

#[test]
fn what_a_restart_assumes_is_told_with_its_own_minute_and_no_other() {
    let now = 28_000_000 * 60_000;
    let mut ledger = Ledger::restore(None, true, now);
    for id in 0..3 {
        ledger.take(id, 0, 10, now);
    }
    let unsettled = ledger.save(false);
    let mut restarted = Ledger::restore(Some(unsettled), true, now + 1_000);
    assert_eq!(restarted.given(), Some(6), "three were given, and three more may have been");
    let settled = restarted.save(true);
    let again = Ledger::restore(Some(settled), true, now + 2_000);
    assert_eq!(again.given(), Some(6), "the next restart forgets none of them");
    let next = Ledger::restore(Some(settled), true, now + 60_000);
    assert_eq!((next.previous(), next.assumed_previous()), (Some(6), 3));
    let later = Ledger::restore(Some(settled), true, now + 180_000);
    assert_eq!((later.previous(), later.assumed_previous()), (Some(0), 0), "nothing was given a minute ago");
}

fn leases_room() -> Room {
    Room { slot_strategy: SlotStrategy::Leases, ..room(150, 10_000, 5) }
}

#[test]
fn a_permit_that_its_visitor_did_not_get_is_given_again_in_its_own_minute_only() {
    let room = leases_room();
    let now = 28_000_000 * 60_000 + 40_000;
    let state = Global::restore(&room, None, Vec::new(), now).state(&room, None, minute_of(now), now);
    let mut pool = Pool::restore(None, now);
    pool.renew(state.clone(), now);
    let mut counter = LeaseCounter::new(1);
    let asks = |counter: &mut LeaseCounter, at: u64| {
        let minute = minute_of(at);
        counter.ask(at, NumberAsk { id: 7, bucket: minute, waits: true, minute, limit: 1, owned: 1 }, at);
        counter.answers()
    };
    assert_eq!(asks(&mut counter, now), []);
    let call = counter.call(now).unwrap();
    counter.answered(pool.lease(&room, "AMS", &call, now).as_ref(), now);
    let given = Outcome::Given { minute: minute_of(now), number: 0 };
    assert_eq!(counter.answers(), [(now, given)]);
    assert_eq!(asks(&mut counter, now + 10_000), [(now + 10_000, given)]);
    // By then nobody was seen with it, and the pool may have given its slot to somebody else.
    assert_ne!(asks(&mut counter, now + 30_000).first().map(|(_, outcome)| *outcome), Some(given));

    // The same where a worker asks the pool itself.
    let minute = minute_of(now);
    let ask = NumberAsk { id: 8, bucket: minute, waits: true, minute, limit: 1, owned: 1 };
    let mut takes = |at: u64| {
        pool.renew(StateKey { taken_at: at, ..state.clone() }, at);
        pool.take(&room, &[ask], at).unwrap()
    };
    assert_eq!(takes(now), [given]);
    assert_eq!(takes(now + 10_000), [given]);
    assert_eq!(takes(now + 30_000), [Outcome::Given { minute: minute + 1, number: 0 }]);
}
