//! What limits rest on: shares that add up, numbers that are given once, reports that count once. Whole rooms are in
//! `sim/tests`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anteroom::admission::{
    DueRecord, Group, LeaseAnswer, LeaseAsk, LeaseCounter, Ledger, NumberAsk, Outcome, Pool, Remembered,
    Returned, SavedLedger, SavedPermits, SavedPool, Shares, StateKey, minute_of, start_of,
};
use anteroom::counts::{CheckIn, Counts, Global};
use anteroom::machines::{Anywhere, Call, Context, Effect, Input, ObjectMachine, Stored};
use anteroom::protocol::messages::{ColoReport, Given, Lease, StateAnswer};
use anteroom::protocol::{Answer, Request};
use anteroom::room::{Room, SlotStrategy};
use anteroom::wire::{decode, encode};
use proptest::prelude::*;

use crate::articles::{report, room};

#[test]
fn shares_that_nobody_has_dealt_are_not_read() {
    // Four billion numbers of Anywhere in a round: a Global with such a record could never start.
    let weights = |anywhere: u32| encode(&(anywhere, vec![("AMS", 24_u32)])).unwrap();
    assert!(decode::<Shares>(&weights(1_000)).is_ok());
    assert!(decode::<Shares>(&weights(1_001)).is_err());
    assert!(decode::<Shares>(&weights(u32::MAX)).is_err());
}

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
    fn what_owners_have_given_and_may_still_give_is_no_more_than_the_budget(
        users in prop::collection::vec((0u64..100, 0i64..50), 1..20),
        by_anywhere in 0i64..50,
        budget in 0i64..300,
    ) {
        let names: Vec<String> = (0..users.len()).map(|index| format!("C{index:03}")).collect();
        let history = names.iter().map(String::as_str).zip(users.iter().map(|(users, _)| *users));
        let shares = Shares::from_history(history, 200);
        let by_colos = names.iter().map(String::as_str).zip(users.iter().map(|(_, given)| *given));
        let by_colos: BTreeMap<&str, i64> = by_colos.collect();
        let view = shares.for_colo(0, None);
        let mut given: Vec<_> = shares.colos().map(|(name, share)| (share, by_colos[name])).collect();
        given.push((view.anywhere.clone(), by_anywhere));
        let dealt = view.fitting(budget, &given);
        let in_all = |dealt| given.iter().map(|(share, given)| view.owned(share, dealt).max(*given)).sum::<i64>();
        prop_assert!(in_all(dealt) <= budget || dealt == 0, "{} of {budget}", in_all(dealt));
        prop_assert!(dealt == budget || in_all(dealt + 1) > budget, "one more would fit");
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
                reports.push(ColoReport { sequence: sequence + 1, given, ..report(colo, census.clone()) });
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

#[test]
fn numbers_that_a_colo_has_given_of_a_larger_limit_are_kept_from_the_others() {
    let room = room(100, 100, 1);
    let minute = 28_000_000;
    let now = u64::from(minute) * 60_000 + 10_000;
    let mut seen = Remembered::new(60_000, 1_000);
    let mut counts = Counts::new(&room);
    let enter = |id, at| {
        let minute = minute_of(at);
        CheckIn::Enter { id, bucket: minute, from: None, at, minute, numbered: true }
    };
    // Half of a minute's numbers are the colo's: that was its traffic two minutes ago.
    for id in 0..50 {
        counts.apply(&enter(id, now - 120_000), &mut seen);
    }
    let told = |global: &mut Global, sequence, counts: &Counts, given, at| {
        let given = Some(Given { v: 1, minute, given: Some(given), previous: Some(0), assumed: 0 });
        global.receive(&room, ColoReport { sequence, given, ..report("AMS", counts.clone()) }, at);
        global.answered("AMS", at);
    };
    let mut global = Global::restore(&room, None, Vec::new(), now - 30_000);
    told(&mut global, 1, &counts, 0, now - 11_000);
    global.state(&room, None, minute - 1, now - 11_000);
    told(&mut global, 2, &counts, 0, now);
    global.anywhere_gave(Given { v: 1, minute, given: Some(0), previous: Some(0), assumed: 0 });
    let by_anywhere = |global: &mut Global, room: &Room, at| {
        let key = global.state(room, None, minute, at);
        key.shares_of(minute).unwrap().anywhere_slots(key.budget(room, minute, at).unwrap())
    };
    assert_eq!(by_anywhere(&mut global, &room, now), 50);
    for id in 100..120 {
        counts.apply(&enter(id, now + 500), &mut seen);
    }
    let lowered = Room { total_active_users: 24, ..room.clone() };
    assert_eq!(
        by_anywhere(&mut global, &lowered, now + 1_000),
        0,
        "all that the colo owned may have been given"
    );
    told(&mut global, 3, &counts, 20, now + 5_000);
    assert_eq!(by_anywhere(&mut global, &lowered, now + 5_000), 4, "20 and 4 are 24");
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
}

/// Some Counters and their pool, with a network that loses, delays and doubles, over a Global that hears of nobody.
struct Leases {
    room: Room,
    /// As Counters see the room: in a small one they record every permit before it leaves them.
    room_of_counters: Room,
    now: u64,
    state: StateKey,
    pool: Pool,
    saved: SavedPool,
    counters: Vec<LeaseCounter>,
    /// What each has stored, and a write that is not confirmed yet.
    stored: Vec<(Option<SavedPermits>, Option<SavedPermits>)>,
    /// Instances that were replaced and do not know it.
    ghosts: Vec<(u64, LeaseCounter)>,
    calls: Vec<(usize, LeaseAsk)>,
    /// Calls of instances that were replaced, by epoch and number: the platform brings an answer to the instance that called.
    unheard: BTreeSet<(u64, u64)>,
    answers: Vec<(usize, LeaseAnswer)>,
    returns: Vec<(usize, Returned)>,
    entered: BTreeSet<u64>,
    /// The same by the minute for which each counts.
    entered_in: BTreeMap<u32, u32>,
    ids: u64,
}

impl Leases {
    fn new(total_active_users: u32, new_users_per_minute: u32) -> Self {
        let room = Room { total_active_users, new_users_per_minute, ..leases_room() };
        let now = 28_000_000 * 60_000 + 5_000;
        let state = Global::restore(&room, None, Vec::new(), now).state(&room, None, minute_of(now), now);
        let mut pool = Pool::restore(None, now);
        Self {
            room_of_counters: Room {
                total_active_users: if total_active_users.is_multiple_of(2) { 100 } else { 10_000 },
                ..leases_room()
            },
            saved: pool.save(true),
            pool,
            counters: (1..=3).map(LeaseCounter::new).collect(),
            stored: vec![(None, None); 3],
            ghosts: Vec::new(),
            calls: Vec::new(),
            unheard: BTreeSet::new(),
            answers: Vec::new(),
            returns: Vec::new(),
            entered: BTreeSet::new(),
            entered_in: BTreeMap::new(),
            ids: 10,
            room,
            now,
            state,
        }
    }

    fn name(index: usize) -> String {
        format!("C{index}")
    }

    fn ask(&mut self) -> NumberAsk {
        self.ids += 1;
        let minute = minute_of(self.now);
        NumberAsk { id: self.ids, bucket: minute, waits: false, minute, limit: 0, owned: 1 }
    }

    fn enter(&mut self, answers: Vec<(u64, Outcome)>) {
        for (id, outcome) in answers {
            if let Outcome::Given { minute, .. } = outcome
                && self.entered.insert(id)
            {
                *self.entered_in.entry(minute).or_insert(0) += 1;
            }
        }
    }

    /// What a Counter has decided leaves it, and it calls the pool.
    fn leaves(&mut self, index: usize) {
        let answers = self.counters[index].answers();
        self.enter(answers);
        let counter = &mut self.counters[index];
        if let Some(call) = counter.call(self.now) {
            self.calls.push((index, call));
        }
        let stored = &mut self.stored[index];
        if let Some(unconfirmed) = stored.1.take() {
            stored.0 = Some(unconfirmed);
        }
        match counter.record(&self.room_of_counters, self.now) {
            Some(DueRecord::First(record)) => stored.0 = Some(record),
            Some(DueRecord::Last(record)) => stored.1 = Some(record),
            None => {}
        }
    }

    fn visitor(&mut self, index: usize) {
        let ask = self.ask();
        self.counters[index].ask(ask.id, ask, self.now);
        self.leaves(index);
    }

    fn pool_hears(&mut self, (index, call): (usize, LeaseAsk), recalls: u8) {
        self.pool.renew(StateKey { taken_at: self.now, ..self.state.clone() }, self.now);
        let name = Self::name(index);
        if !self.pool.hear(&self.room, &name, &call, self.now) {
            let nothing = self.pool.nothing(&call, self.now);
            return self.answers(index, &call, nothing);
        }
        let lacks = self.pool.lacks_only_stock(&self.room, &name, &call, self.now);
        let others = if lacks { self.pool.recall(&name, self.now) } else { Vec::new() };
        for other in others {
            let other: usize = other[1..].parse().unwrap();
            let returned = self.counters[other].recall(self.now);
            self.leaves(other);
            match recalls {
                0 => self.pool.returned(&Self::name(other), &returned, self.now),
                1 => self.returns.push((other, returned)),
                _ => {}
            }
        }
        if let Some(answer) = self.pool.give(&self.room, &name, &call, self.now) {
            self.answers(index, &call, answer);
        }
        self.saved = self.pool.save(true);
    }

    fn answers(&mut self, index: usize, call: &LeaseAsk, answer: LeaseAnswer) {
        if !self.unheard.contains(&(call.epoch, call.sequence)) {
            self.answers.push((index, answer));
        }
    }

    fn restart(&mut self, index: usize, confirmed: bool) {
        let (stored, unconfirmed) = std::mem::take(&mut self.stored[index]);
        let is_lost = !confirmed && unconfirmed.is_some();
        let stored = if confirmed { unconfirmed.or(stored) } else { stored };
        self.ids += 1;
        let calls = self.calls.iter().filter(|(of, _)| *of == index);
        self.unheard.extend(calls.map(|(_, call)| (call.epoch, call.sequence)));
        self.answers.retain(|(of, _)| *of != index);
        let new = LeaseCounter::restore(stored.clone(), self.ids, self.now);
        let old = std::mem::replace(&mut self.counters[index], new);
        // What leaves waits for the write before it: nothing more leaves an instance whose write is lost.
        if !is_lost {
            self.ghosts.push((self.now, old));
        }
        self.stored[index] = (stored, None);
    }

    /// A visitor comes to an instance that was replaced: it has a moment, until its next write is refused.
    fn haunt(&mut self) {
        let now = self.now;
        self.ghosts.retain(|(since, _)| now < since + 4_500);
        let ask = self.ask();
        let Some((since, mut ghost)) = self.ghosts.pop() else { return };
        ghost.ask(ask.id, ask, now);
        let record = ghost.record(&self.room_of_counters, now);
        if !matches!(record, Some(DueRecord::First(_))) {
            self.enter(ghost.answers());
        }
        if record.is_none() {
            self.ghosts.push((since, ghost));
        }
    }

    fn step(&mut self, (what, index, pause): (u8, usize, u64)) {
        self.now += pause;
        match what {
            0..8 => self.visitor(index),
            8..14 if !self.calls.is_empty() => {
                let call = self.calls.remove(0);
                self.pool_hears(call, what % 3);
            }
            14 if !self.calls.is_empty() => {
                // It comes twice.
                let call = self.calls[0].clone();
                self.pool_hears(call, 0);
            }
            15..21 if !self.answers.is_empty() => {
                let (index, answer) = self.answers.remove(0);
                self.counters[index].answered(Some(&answer), self.now);
                self.leaves(index);
            }
            21 => {
                // Whatever is on its way to or from it is lost.
                self.calls.retain(|(of, _)| *of != index);
                self.counters[index].answered(None, self.now);
                self.leaves(index);
            }
            22 if !self.returns.is_empty() => {
                let (index, returned) = self.returns.remove(0);
                self.pool.returned(&Self::name(index), &returned, self.now);
            }
            23 | 24 => self.restart(index, what == 23),
            25 => self.pool = Pool::restore(Some(self.saved.clone()), self.now),
            26..30 => self.haunt(),
            30 => self.now += 9_000,
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn permits_are_used_once_whatever_comes_late_or_twice_or_never_and_whoever_forgets(
        total in 5u32..60,
        a_minute in 5u32..60,
        steps in prop::collection::vec((0u8..31, 0usize..3, prop_oneof![Just(0u64), 0..60u64, 0..1_500u64]), 1..150),
    ) {
        let mut leases = Leases::new(total, a_minute);
        for step in steps {
            leases.step(step);
            prop_assert!(leases.entered.len() <= total as usize, "{} of {total}", leases.entered.len());
            let most = leases.entered_in.values().max();
            prop_assert!(most.is_none_or(|most| *most <= a_minute), "{most:?} of {a_minute} in a minute");
        }
    }
}

#[test]
fn nobody_is_refused_for_what_lies_in_the_stocks_of_others() {
    let mut leases = Leases::new(20, 10_000);
    let visit = |leases: &mut Leases, index: usize| {
        leases.visitor(index);
        leases.now += 30;
        while let Some(call) = leases.calls.pop() {
            leases.pool_hears(call, 0);
        }
        while let Some((index, answer)) = leases.answers.pop() {
            leases.counters[index].answered(Some(&answer), leases.now);
            leases.leaves(index);
        }
        leases.entered.len()
    };
    let entered: Vec<usize> = (0..21).map(|visitor| visit(&mut leases, visitor % 3)).collect();
    let all_but_the_last: Vec<usize> = (1..=20).chain([20]).collect();
    assert_eq!(entered, all_but_the_last, "twenty from three colos, and no more");
}

#[test]
fn nobody_is_refused_who_came_while_the_stock_was_on_its_way() {
    let mut leases = Leases::new(6, 10_000);
    leases.visitor(0);
    leases.visitor(0);
    let call = leases.calls.pop().unwrap();
    leases.pool_hears(call, 0);
    let (_, answer) = leases.answers.pop().unwrap();
    assert!(answer.extra > 0, "it has something in stock then");
    leases.counters[0].answered(Some(&answer), leases.now);
    leases.leaves(0);
    assert_eq!(leases.entered.len(), 2);
}

#[test]
fn a_permit_from_before_an_order_is_good_for_nobody_and_one_that_was_given_by_it_for_its_visitor() {
    let now = 28_000_000 * 60_000;
    let ask =
        NumberAsk { id: 7, bucket: minute_of(now), waits: false, minute: minute_of(now), limit: 1, owned: 1 };
    let given = |(_, outcome): &(u64, Outcome)| matches!(outcome, Outcome::Given { .. });
    // The Counter has just started. It hears of order 3 from a worker, which knew it no sooner itself; the pool may have.
    for (pool_knows, good) in [(2, false), (3, true)] {
        let mut counter = LeaseCounter::new(1);
        counter.ask(0, ask, now);
        let call = counter.call(now).unwrap();
        let mut pool = Pool::restore(None, now);
        let room = leases_room();
        let mut state = Global::restore(&room, None, Vec::new(), now).state(&room, None, minute_of(now), now);
        state.steering.version = pool_knows;
        pool.renew(state, now);
        counter.answered(pool.lease(&room, "AMS", &call, now).as_ref(), now);
        assert!(counter.answers().iter().all(given));
        counter.ask(1, ask, now);
        assert!(counter.answers().iter().all(given), "who asks once more has one");

        counter.void_before(3);
        counter.ask(2, ask, now);
        let answers = counter.answers();
        assert_eq!(
            answers.len() == 1 && answers.iter().all(given),
            good,
            "the pool knows order {pool_knows}"
        );
        assert!(good || counter.call(now + 1_000).is_some(), "the pool is asked once more");
    }
}

#[test]
fn a_quiet_colo_has_its_stock_when_it_wakes_up_and_a_lost_one_counts_as_held_for_a_moment() {
    let mut leases = Leases::new(100, 10_000);
    for _ in 0..4 {
        leases.visitor(0);
        if let Some(call) = leases.calls.pop() {
            leases.pool_hears(call, 0);
            let (_, answer) = leases.answers.pop().unwrap();
            leases.counters[0].answered(Some(&answer), leases.now);
            leases.leaves(0);
        }
        leases.now += 7_000;
    }
    leases.restart(0, true);
    leases.visitor(0);
    assert_eq!(leases.entered.len(), 5, "from the stock");
    assert!(leases.calls.drain(..).all(|(_, call)| call.groups.is_empty()), "nobody waits for the pool");

    // What it had is gone: of what was out, everything may have been used.
    let held = 100 - free(&leases);
    leases.stored[0] = (None, None);
    leases.restart(0, true);
    leases.visitor(0);
    let call = leases.calls.pop().unwrap();
    leases.pool_hears(call, 0);
    assert!(free(&leases) < 100 - held);
    let entered = leases.entered.len() + 1;
    leases.now += 30_000;
    assert!(free(&leases) <= 100 - entered as i64);
}

#[test]
fn what_was_used_is_not_forgotten_when_a_colo_that_was_quiet_for_long_gives_its_stock_back() {
    let mut leases = Leases::new(101, 10_000);
    for _ in 0..2 {
        leases.visitor(0);
        while let Some(call) = leases.calls.pop() {
            leases.pool_hears(call, 0);
            let (_, answer) = leases.answers.pop().unwrap();
            leases.counters[0].answered(Some(&answer), leases.now);
            leases.leaves(0);
        }
    }
    let recent = vec![(minute_of(leases.now), 2, 0)];
    leases.now += 5 * 60_000;
    leases.state = StateKey { recent, recent_colos: vec![1], covered: leases.now, ..leases.state };
    leases.visitor(0);
    leases.calls.clear();
    let returned = leases.counters[0].recall(leases.now);
    leases.pool.returned("C0", &returned, leases.now);
    // Of the two before it Global has long told.
    assert_eq!(free(&leases), 100);
}

#[test]
fn who_gave_its_stock_back_and_called_meanwhile_is_called_back_again_for_the_next_who_asks() {
    let room = leases_room();
    let mut pool = Pool::restore(None, 0);
    let first = 28_000_000 * 60_000 + 5_000;
    let most = room.total_active_users - 4;
    // AMS asks for its stock, LHR for visitors.
    let hear = |pool: &mut Pool, colo: &str, sequence: u64, visitors: u32, now: u64| {
        pool.renew(
            Global::restore(&room, None, Vec::new(), now).state(&room, None, minute_of(now), now),
            now,
        );
        let minute = minute_of(now);
        let groups = vec![Group { bucket: minute, waits: false, visitors }];
        let used = if sequence > 1 { vec![(minute, u64::from(most))] } else { Vec::new() };
        let ask =
            LeaseAsk { epoch: 1, sequence, last_answered: sequence - 1, rate: 60, ..LeaseAsk::default() };
        let ask = if colo == "AMS" { LeaseAsk { want: 8, ..ask } } else { LeaseAsk { groups, used, ..ask } };
        assert!(pool.hear(&room, colo, &ask, now));
        ask
    };
    let gives_back = |pool: &mut Pool, now: u64| {
        let (used, recent) = (Vec::new(), Vec::new());
        let returned = Returned { v: 1, epoch: 1, sequence: 1, last_answered: 1, used, recent };
        pool.returned("AMS", &returned, now);
    };
    let stock = hear(&mut pool, "AMS", 1, 0, first);
    assert!(pool.give(&room, "AMS", &stock, first).unwrap().extra > 0);
    let crowd = hear(&mut pool, "LHR", 1, most, first);
    assert!(pool.lacks_only_stock(&room, "LHR", &crowd, first));
    assert_eq!(pool.recall("LHR", first), ["AMS"]);
    // It calls as soon as it has given back, and the call is faster.
    let stock = hear(&mut pool, "AMS", 2, 0, first);
    pool.give(&room, "AMS", &stock, first);
    gives_back(&mut pool, first);
    assert_eq!(pool.give(&room, "LHR", &crowd, first).unwrap().given[0].0, most);

    let next = first + 200;
    let stock = hear(&mut pool, "AMS", 3, 0, next);
    assert!(pool.give(&room, "AMS", &stock, next).unwrap().extra > 0);
    let last = hear(&mut pool, "LHR", 2, 4, next);
    assert!(pool.lacks_only_stock(&room, "LHR", &last, next));
    assert_eq!(pool.recall("LHR", next), ["AMS"]);
    // The same once more is no news: it would be called again and again.
    gives_back(&mut pool, next);
    assert!(pool.recall("LHR", next).is_empty());
}

#[test]
fn global_tells_the_pool_of_the_minutes_of_a_session_and_of_an_hour_at_most() {
    let minute = 28_000_000;
    for (session_duration, before) in [(1, 4), (5, 6), (30, 31), (600, 60)] {
        let room = Room { session_duration, ..leases_room() };
        let mut global = Global::restore(&room, None, Vec::new(), start_of(minute));
        let state = global.state(&room, None, minute, start_of(minute));
        let told: Vec<u32> = state.recent.iter().map(|(of, ..)| *of).collect();
        assert_eq!(told, (minute - before..=minute + 1).collect::<Vec<u32>>());
        assert_eq!(state.recent_colos.len(), told.len());
    }
}

#[test]
fn whom_a_colo_has_not_reported_counts_for_a_session_even_if_its_counter_has_forgotten_too() {
    let room = Room { slot_strategy: SlotStrategy::Leases, ..room(200, 200, 5) };
    let minute = 28_000_000;
    let ended = start_of(minute + 1);
    let used = vec![(minute, 1)];
    let first = LeaseAsk { epoch: 1, sequence: 1, ..LeaseAsk::default() };
    let mut pool = Pool::restore(None, ended - 20_000);
    // All colos that Global knows have reported. Somebody of AMS was counted, and nobody of CDG, which has ended.
    let key = |at| StateKey {
        taken_at: at,
        covered: at,
        minute: minute_of(at),
        active: 1,
        recent: vec![(minute, 1, 0)],
        recent_colos: vec![1],
        ..StateKey::default()
    };
    pool.renew(key(ended - 20_000), ended - 20_000);
    for colo in ["AMS", "CDG"] {
        pool.lease(&room, colo, &LeaseAsk { used: used.clone(), ..first.clone() }, ended - 20_000).unwrap();
        pool.lease(&room, colo, &LeaseAsk { epoch: 2, ..first.clone() }, ended - 19_000).unwrap();
    }
    let mut sequence = 0;
    let mut free = |at: u64| {
        pool.renew(key(at), at);
        sequence += 1;
        // No answer arrives, so what it gave is void with the next call.
        let groups = vec![Group { bucket: minute, waits: false, visitors: 1_000 }];
        let ask = LeaseAsk { sequence, groups, ..first.clone() };
        pool.lease(&room, "LHR", &ask, at).unwrap().given[0].0
    };
    for seconds in [10, 70, 130, 190, 250, 299] {
        assert_eq!(free(ended + seconds * 1_000), 198, "{seconds} s after the minute");
    }
    assert_eq!(free(ended + 301_000), 199, "the session is over");
}

/// How many a crowd in another colo would be given.
fn free(leases: &Leases) -> i64 {
    let mut pool = leases.pool.clone();
    pool.renew(StateKey { taken_at: leases.now, ..leases.state.clone() }, leases.now);
    let groups = vec![Group { bucket: minute_of(leases.now), waits: false, visitors: 1_000 }];
    let ask = LeaseAsk { epoch: 9, sequence: 1, groups, ..LeaseAsk::default() };
    pool.lease(&leases.room, "C9", &ask, leases.now).unwrap().given[0].0.into()
}

#[test]
fn nobody_asks_the_pool_for_visitors_who_have_been_sent_away() {
    use std::rc::Rc;

    use anteroom::machines::{Context, Counter, Effect, Input, ObjectMachine, Stored};
    use anteroom::protocol::Request;
    use anteroom::protocol::messages::Take;
    use anteroom::steering::Overrides;

    let mut now = 28_000_000 * 60_000;
    let leases = Rc::new(Room { slot_strategy: SlotStrategy::Leases, ..room(100, 50, 1) });
    let mut counter = Counter::restore(&Stored::new(), 7, now);
    let tell = |counter: &mut Counter, input, now| {
        let mut effects = Vec::new();
        let context = Context { room: &leases, colo: "AMS", deadline_ms: 300, now };
        counter.handle(&context, input, &mut effects);
        effects
    };
    let (mut replies, mut calls) = (0, Vec::new());
    let mut carry_out = |effects: Vec<Effect>, calls: &mut Vec<u64>| {
        for effect in effects {
            match effect {
                Effect::Reply { .. } => replies += 1,
                Effect::Call(call) => calls.push(call.number),
                _ => {}
            }
        }
    };
    for id in 1..=1_000 {
        let ask =
            NumberAsk { id, bucket: 28_000_000, waits: false, minute: 28_000_000, limit: 50, owned: 50 };
        let take = Take::new(vec![ask], Overrides::default());
        let asked = Input::Asked { from: id, request: Request::CounterTake(Box::new(take)) };
        carry_out(tell(&mut counter, asked, now), &mut calls);
    }
    // The pool says nothing, and their workers wait no longer.
    while let Some(due) = counter.next_timer() {
        now = due;
        carry_out(tell(&mut counter, Input::Timer, now), &mut calls);
    }
    let [lost] = calls[..] else { panic!("{calls:?}") };
    carry_out(tell(&mut counter, Input::Answered { call: lost, answer: None }, now), &mut calls);
    while let Some(due) = counter.next_timer() {
        now = due;
        carry_out(tell(&mut counter, Input::Timer, now), &mut calls);
    }
    assert_eq!(replies, 1_000, "everybody was told something, once");
    assert_eq!(calls, [lost], "a permit for them would lie unused");
}

/// An old cookie does not say when its visitor was told to come back, and an isolate that has not seen the visitor cannot know.
/// The Counter of the data center does.
#[test]
fn an_old_cookie_in_many_isolates_has_one_chance_at_each_check_in_as_told() {
    use anteroom::admission::Level;
    use anteroom::machines::{Context, Counter, Effect, Input, ObjectMachine, Stored};
    use anteroom::protocol::messages::Take;
    use anteroom::protocol::{Answer, Request};
    use anteroom::steering::Overrides;

    const REFRESH_MS: u32 = 20_000;
    let start = 28_000_000 * 60_000;
    let leases = std::rc::Rc::new(Room { slot_strategy: SlotStrategy::Leases, ..room(100, 50, 1) });
    let mut counter = Counter::restore(&Stored::new(), 7, start);
    let pace_ms = std::cell::Cell::new(0);
    // What one visitor is told when the pool has so many permits, and for how many visitors it was asked.
    let mut ask = |id: u64, waits: bool, free: u32, mut now: u64| {
        let ask = NumberAsk { id, bucket: 27_999_990, waits, minute: minute_of(now), limit: 50, owned: 50 };
        let next_ms = if waits { vec![REFRESH_MS] } else { Vec::new() };
        let take = Take { next_ms, ..Take::new(vec![ask], Overrides::default()) };
        let mut inputs = vec![Input::Asked { from: now, request: Request::CounterTake(Box::new(take)) }];
        let (mut told, mut asked_for) = (None, 0);
        for _ in 0..10 {
            let input = inputs.pop().unwrap_or_else(|| {
                now = counter.next_timer().unwrap_or(now);
                Input::Timer
            });
            let mut effects = Vec::new();
            let context = Context { room: &leases, colo: "AMS", deadline_ms: 300, now };
            counter.handle(&context, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Reply { answer: Answer::CounterTake(taken), .. } => {
                        pace_ms.set(taken.pace_ms);
                        told = Some(taken.outcomes[0])
                    }
                    Effect::Call(call) => {
                        let Request::AnywhereLease(lease) = call.request else { panic!("asks for more") };
                        let visitors: u32 = lease.ask.groups.iter().map(|group| group.visitors).sum();
                        asked_for += visitors;
                        let answer = LeaseAnswer {
                            v: 1,
                            sequence: lease.ask.sequence,
                            now,
                            given: lease.ask.groups.iter().map(|_| (free.min(visitors), 0)).collect(),
                            extra: 0,
                            most: 0,
                            usable_ms: 0,
                            pace_ms: 0,
                            level: Level::Queueing,
                            wait_ms: 0,
                            spare: 0,
                            steering: 0,
                            is_latest: false,
                            in_rush: false,
                        };
                        let answer = Some(Answer::AnywhereLease(Box::new(answer)));
                        inputs.push(Input::Answered { call: call.number, answer });
                    }
                    _ => {}
                }
            }
            if told.is_some() && inputs.is_empty() {
                break;
            }
        }
        (matches!(told, Some(Outcome::Given { .. })), asked_for)
    };
    assert_eq!(ask(100, false, 0, start), (false, 1), "the pool says that people wait");
    let told_at = start + 1_000;
    assert_eq!(ask(1, true, 0, told_at), (false, 1), "this was its chance");
    // Slots become free, and the old cookie comes again and again.
    for second in 1..20 {
        assert_eq!(ask(1, true, 1, told_at + second * 1_000), (false, 0), "after {second} seconds");
    }
    assert_eq!(ask(2, true, 1, told_at + 19_500), (true, 1), "somebody else has a chance of its own");
    let next = told_at + u64::from(REFRESH_MS);
    assert_eq!(ask(1, true, 1, next), (true, 1), "it has one again when it was told to come");
    assert!(ask(1, true, 1, next + 1_000).0, "whoever did not hear that it may enter is told once more");
    assert_eq!(pace_ms.get(), 100, "while people wait, an isolate calls ten times a second at most");
}

#[test]
fn of_two_who_ask_at_once_for_the_last_permit_the_second_gets_one_that_lies_in_a_stock() {
    let room = Rc::new(Room { total_active_users: 1_000, new_users_per_minute: 3, ..leases_room() });
    let at = start_of(28_000_000) + 5_000;
    let mut anywhere = Anywhere::restore(&room, &Stored::new(), at);
    let mut counters: Vec<LeaseCounter> = (1..=3).map(LeaseCounter::new).collect();
    let mut replies = Vec::new();
    let mut recalled = None;
    let mut state_call = None;
    let mut tell = |anywhere: &mut Anywhere, input, now| {
        let mut effects = Vec::new();
        anywhere.handle(&Context { room: &room, colo: "", deadline_ms: 500, now }, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::Reply { to, answer: Answer::AnywhereLease(lease) } => replies.push((to, *lease)),
                Effect::Call(Call { number, request: Request::GlobalState(_), .. }) => {
                    state_call = Some(number)
                }
                Effect::Call(Call { number, name, .. }) => recalled = Some((number, name)),
                _ => {}
            }
        }
        (std::mem::take(&mut replies), recalled.take(), state_call.take())
    };
    let ask = |counter: &mut LeaseCounter, index: u64, now| {
        let minute = minute_of(now);
        let ask = NumberAsk { id: index, minute, bucket: minute, limit: 100, owned: 100, waits: false };
        counter.ask(index, ask, now);
        let lease = Lease { v: 1, colo: format!("C{index}"), ask: counter.call(now).unwrap() };
        Input::Asked { from: index, request: Request::AnywhereLease(Box::new(lease)) }
    };
    let state = |now| {
        let state = Global::restore(&room, None, Vec::new(), now).state(&room, None, minute_of(now), now);
        Some(Answer::GlobalState(Box::new(StateAnswer { v: 1, state: Some(state) })))
    };
    let (.., call) = tell(&mut anywhere, ask(&mut counters[0], 0, at), at);
    let (first, ..) = tell(&mut anywhere, Input::Answered { call: call.unwrap(), answer: state(at) }, at);
    assert_eq!((first[0].1.given[0].0, first[0].1.extra), (1, 1), "one permit is left");
    counters[0].answered(Some(&first[0].1), at);

    let now = at + 10_000;
    let (.., call) = tell(&mut anywhere, ask(&mut counters[1], 1, now), now);
    tell(&mut anywhere, ask(&mut counters[2], 2, now), now);
    let (second, recalled, _) =
        tell(&mut anywhere, Input::Answered { call: call.unwrap(), answer: state(now) }, now);
    assert_eq!((second.len(), second[0].0, second[0].1.given[0].0), (1, 1, 1), "the last one");
    let (number, name) = recalled.expect("what lies in the first colo's stock is called back");
    assert!(name.ends_with("C0"), "{name}");
    let returned = Some(Answer::CounterRecall(Box::new(counters[0].recall(now))));
    let (third, ..) = tell(&mut anywhere, Input::Answered { call: number, answer: returned }, now + 50);
    assert_eq!((third[0].0, third[0].1.given[0].0), (2, 1));
}
