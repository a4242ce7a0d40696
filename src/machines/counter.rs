//! `COUNTER`: what a colo's workers are given.

use std::collections::BTreeMap;
use std::iter::repeat;

use super::pace::Pace;
use super::write_behind::WriteBehind;
use super::{COLD_START_FACTOR, Call, Context, CurrentRoom, Effect, Input, NO_ROUTE, ObjectMachine, Stored};
use crate::admission::{
    self, Addresses, Chances, DueRecord, HINT_MS, LeaseCounter, Level, NumberAsk, Outcome, RECALL_WAITS_MS,
    SavedLedger, Serves,
};
use crate::protocol::messages::{Given, Lease, Lent, Take, Taken, VERSION, colo_object};
use crate::protocol::{Answer, Request, records};
use crate::room::{Location, QueueingMethod, RateWindow, Room};
use crate::steering::Overrides;

/// The storage key of the numbers given.
const LEDGER: &str = "ledger";
/// The storage key of the permits in stock.
const PERMITS: &str = "permits";

/// A worker's call that waits for the pool's answer.
#[derive(Debug)]
struct Waiting {
    from: u64,
    outcomes: Vec<Option<Outcome>>,
    holders: Vec<u64>,
    give_up_at: u64,
}

/// Gives numbers of the colo's share (`counters`), or permits that it leases from Anywhere (`leases`).
#[derive(Debug)]
pub struct Counter {
    numbers: admission::Counter,
    permits: LeaseCounter,
    addresses: Addresses,
    /// Where the order is random.
    chances: Chances,
    pace: Pace,
    /// What operators have changed, as far as workers have said.
    overrides: Overrides,
    rooms: CurrentRoom,
    /// By the place of their first visitor.
    waiting: BTreeMap<u64, Waiting>,
    next_place: u64,
    calls: u64,
    pool_call: Option<u64>,
    pool_call_due: Option<u64>,
    /// The location hint of the colo's region, as workers have said; empty: not known.
    region: String,
    region_call: Option<u64>,
    writes: WriteBehind,
    /// What is stored was not written by newer code.
    may_write: bool,
}

impl Counter {
    /// A Counter at its start. `epoch` is random: it distinguishes this start from others.
    pub fn restore(stored: &Stored, epoch: u64, now: u64) -> Self {
        let found = records::found(stored, LEDGER);
        let permits = records::found(stored, PERMITS);
        Self {
            may_write: found.may_be_replaced() && permits.may_be_replaced(),
            numbers: admission::Counter::restore(found.record_or(|| SavedLedger::lost(now)), now),
            // A record that cannot be read is none: the pool takes what was held for used.
            permits: LeaseCounter::restore(permits.record, epoch, now),
            addresses: Addresses::default(),
            chances: Chances::default(),
            pace: Pace::default(),
            overrides: Overrides::default(),
            rooms: CurrentRoom::default(),
            waiting: BTreeMap::new(),
            next_place: 0,
            calls: 0,
            pool_call: None,
            pool_call_due: None,
            region: String::new(),
            region_call: None,
            writes: WriteBehind::default(),
        }
    }

    fn take(&mut self, context: &Context<'_>, from: u64, asked: Take, effects: &mut Vec<Effect>) {
        let now = context.now;
        // Where limits follow the origin's answers nobody comes to it in bunches.
        let queueing = self.permits.level() == Some(Level::Queueing) && !context.room.follows_origin();
        self.pace.called(queueing, now);
        if asked.steering.version > self.overrides.version {
            self.overrides = asked.steering;
            self.permits.void_before(self.overrides.version);
        }
        let whole = self.rooms.with(context.room, &self.overrides);
        let room = whole.at(now).0;
        if asked.asks.is_empty() || room.is_closed() {
            // Visitors have to wait, and need not ask for that.
            self.permits.give_back();
        }
        if room.is_closed() {
            // An operator has closed it and the asker does not know yet; or an event has not started, and its clock is
            // ahead.
            let outcomes = asked.asks.iter().map(|ask| ask.refused(HINT_MS)).collect();
            self.reply(from, outcomes, Vec::new(), now, effects);
            return;
        }
        let holders = if room.one_place_per_address {
            self.addresses.claim_all(&asked.asks, &asked.addresses, now)
        } else {
            Vec::new()
        };
        let may_ask = holders.iter().map(|holder| *holder == 0).chain(repeat(true));
        let asks = asked.asks.iter().zip(may_ask);
        if !room.slot_strategy.leases_permits() {
            let outcomes =
                asks.map(|(ask, may)| if may { self.numbers.take(ask, now) } else { not_now(ask) }).collect();
            self.writes.changed(now);
            self.reply(from, outcomes, holders, now, effects);
            return;
        }
        if !asked.region.is_empty() {
            self.region = asked.region;
        }
        self.permits.follow(room.rate_window, self.serves(context, room));
        let first = self.next_place;
        let mut outcomes = Vec::with_capacity(asked.asks.len());
        let others_wait = self.permits.level() == Some(Level::Queueing);
        for ((ask, may), next_ms) in asks.zip(asked.next_ms.iter().chain(repeat(&0))) {
            // Whoever asks once more because the answer was lost may have a permit already.
            let may = may
                && (!(others_wait && ask.waits)
                    || self.permits.has_given(ask.id, now)
                    || match room.queueing_method {
                        QueueingMethod::Random => self.chances.take(room, ask.id, now),
                        _ => self.chances.take_until(ask.id, now + u64::from(*next_ms), now),
                    });
            if may {
                self.permits.ask(self.next_place, *ask, now);
            }
            outcomes.push((!may).then(|| not_now(ask)));
            self.next_place += 1;
        }
        // A call without visitors has a place of its own too.
        self.next_place += 1;
        let give_up_at = now + COLD_START_FACTOR * context.deadline_ms;
        self.waiting.insert(first, Waiting { from, outcomes, holders, give_up_at });
        self.finish(first, now, effects);
    }

    /// Lays down what was decided, and replies to whoever has all answers.
    fn hand_out(&mut self, now: u64, effects: &mut Vec<Effect>) {
        for (place, outcome) in self.permits.answers() {
            let Some((first, waiting)) = self.waiting.range_mut(..=place).next_back() else { continue };
            let first = *first;
            if let Some(missing) = waiting.outcomes.get_mut((place - first) as usize) {
                *missing = Some(outcome);
            }
            self.finish(first, now, effects);
        }
    }

    /// Replies to a call that has all its answers, or has waited long enough.
    fn finish(&mut self, first: u64, now: u64, effects: &mut Vec<Effect>) {
        let is_done =
            |waiting: &Waiting| now >= waiting.give_up_at || waiting.outcomes.iter().all(Option::is_some);
        if !self.waiting.get(&first).is_some_and(is_done) {
            return;
        }
        let Some(waiting) = self.waiting.remove(&first) else { return };
        let outcomes = waiting.outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Unknown));
        self.reply(waiting.from, outcomes.collect(), waiting.holders, now, effects);
    }

    fn reply(&self, to: u64, outcomes: Vec<Outcome>, holders: Vec<u64>, now: u64, effects: &mut Vec<Effect>) {
        let lent = self.permits.level().map(|level| Lent { level, ..Lent::default() });
        let pace_ms = self.pace.milliseconds();
        // Workers may know of a later one than the pool.
        let latest = self.permits.latest_order(now).filter(|order| order.version >= self.overrides.version);
        let taken = Taken { v: VERSION, outcomes, lent, holders, pace_ms, latest };
        effects.push(Effect::Reply { to, answer: Answer::CounterTake(Box::new(taken)) });
    }

    fn give_up(&mut self, now: u64, effects: &mut Vec<Effect>) {
        // They came in this order, and all wait equally long.
        while let Some((first, waiting)) = self.waiting.first_key_value()
            && now >= waiting.give_up_at
        {
            let first = *first;
            self.finish(first, now, effects);
        }
    }

    /// Where the window slides a permit must not be on its way for long.
    fn serves(&self, context: &Context<'_>, room: &Room) -> Serves {
        if Location::hint_of(context.colo).is_some() {
            Serves::Region
        } else if self.region.is_empty()
            || admission::has_small_stocks(room)
            || room.rate_window == RateWindow::Sliding
        {
            Serves::Colo
        } else {
            Serves::ColoOfRegion
        }
    }

    /// Asks the region's Counter for those who found nothing here.
    fn call_region(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        let asks = self.permits.call_region();
        if asks.is_empty() {
            return;
        }
        self.calls += 1;
        self.region_call = Some(self.calls);
        let take = Take::new(asks, self.overrides.clone());
        effects.push(Effect::Call(Call {
            number: self.calls,
            name: colo_object(&context.room.name, &self.region),
            request: Request::CounterTake(Box::new(take)),
            deadline_ms: context.deadline_ms + RECALL_WAITS_MS,
        }));
    }

    /// Calls the pool if a call is due.
    fn call_pool(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        let now = context.now;
        if let Some(ask) = self.permits.call(now) {
            self.calls += 1;
            self.pool_call = Some(self.calls);
            let deadline_ms = self.permits.deadline_ms(context.deadline_ms + RECALL_WAITS_MS, now);
            effects.push(Effect::Call(Call {
                number: self.calls,
                name: context.room.name.clone(),
                request: Request::AnywhereLease(Box::new(Lease {
                    v: VERSION,
                    colo: context.colo.to_owned(),
                    ask,
                })),
                deadline_ms,
            }));
        }
        self.pool_call_due = self.permits.call_due(now);
    }

    /// Writes what was given before the answers from `begin` on, which may have to wait for it.
    fn write(&mut self, context: &Context<'_>, begin: usize, effects: &mut Vec<Effect>) {
        let now = context.now;
        if self.may_write
            && let Some(due) = self.permits.record(context.room, now)
        {
            let (at, record) = match due {
                DueRecord::First(record) => (begin, record),
                DueRecord::Last(record) => (effects.len(), record),
            };
            if let Ok(bytes) = records::write(&record) {
                effects.insert(at, Effect::Store { key: PERMITS.to_owned(), bytes, background: false });
            }
        }
        let ledger = self.numbers.ledger(now);
        if let Some(due) = self.writes.due(ledger.changed_at(), ledger.is_covered(), now)
            && self.may_write
            && let Ok(bytes) = records::write(&ledger.save(due.settled))
        {
            effects
                .insert(begin, Effect::Store { key: LEDGER.to_owned(), bytes, background: due.background });
        }
    }
}

impl ObjectMachine for Counter {
    fn handle(&mut self, context: &Context<'_>, input: Input, effects: &mut Vec<Effect>) {
        let (now, begin) = (context.now, effects.len());
        match input {
            Input::Asked { from, request: Request::CounterTake(asked) } => {
                self.take(context, from, *asked, effects);
            }
            Input::Asked { from, request: Request::CounterRecall(_) } => {
                let answer = Answer::CounterRecall(Box::new(self.permits.recall(now)));
                effects.push(Effect::Reply { to: from, answer });
            }
            Input::Asked { from, request: Request::CounterGiven(_) } => {
                let given = Given::of(self.numbers.ledger(now));
                effects.push(Effect::Reply { to: from, answer: Answer::CounterGiven(Box::new(given)) });
            }
            Input::Asked { from, .. } => {
                effects.push(Effect::Refuse { to: from, status: 404, reason: NO_ROUTE });
            }
            Input::Answered { call, answer } if self.region_call == Some(call) => {
                self.region_call = None;
                let taken = match answer {
                    Some(Answer::CounterTake(taken)) => Some(taken),
                    _ => None,
                };
                let level = taken.as_ref().and_then(|taken| taken.lent).map(|lent| lent.level);
                let latest = taken.as_ref().and_then(|taken| taken.latest);
                let outcomes = taken.map(|taken| taken.outcomes).unwrap_or_default();
                self.permits.region_answered(&outcomes, level, latest, now);
            }
            Input::Answered { call, answer } => {
                let leased = match &answer {
                    Some(Answer::AnywhereLease(leased)) => Some(leased.as_ref()),
                    _ => None,
                };
                // A call that was given up before does not end the one after it; an answer says which it is for.
                if leased.is_some() || self.pool_call == Some(call) {
                    self.permits.answered(leased, now);
                }
            }
            Input::Timer | Input::Global(_) => {}
            Input::Alarm => effects.push(Effect::AlarmDone),
        }
        self.hand_out(now, effects);
        self.give_up(now, effects);
        let oldest = self.waiting.first_key_value().map_or(self.next_place, |(first, _)| *first);
        self.permits.forget_before(oldest);
        self.call_region(context, effects);
        self.call_pool(context, effects);
        self.write(context, begin, effects);
    }

    fn next_timer(&self) -> Option<u64> {
        let give_up_at = self.waiting.first_key_value().map(|(_, waiting)| waiting.give_up_at);
        [give_up_at, self.pool_call_due, self.writes.next()].into_iter().flatten().min()
    }
}

/// Somebody else has the address's turn. The answer says so; what is refused here is not a number.
fn not_now(ask: &NumberAsk) -> Outcome {
    ask.refused(0)
}
