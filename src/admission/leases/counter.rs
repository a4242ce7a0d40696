//! The Counter object under leases: a colo's small stock of permits, and one call at a time to the pool for all who ask.

use std::collections::VecDeque;

use litemap::LiteMap;

use super::super::{Hint, NumberAsk, Outcome, minute_of};
use super::holders::Holders;
use super::rate::Rate;
use super::{Group, LeaseAnswer, LeaseAsk, Lent, Level, LoanAsk, RATE_MS, minute_of_entry};

/// How many visitors are remembered per generation.
const REMEMBERED_TICKETS: usize = 50_000;
/// More is leased when the stock falls below the need of this time, in milliseconds.
const LOW_MS: u64 = 300;
/// The size of the stock follows the use of about this time, in milliseconds. By a shorter one, one visitor of a small
/// colo would seem to be the first of many.
const USES_OVER_MS: u64 = 60_000;
/// The same where visitors come fast, in milliseconds: a crowd must not be taken for the few of the last minute.
const FAST_USES_OVER_MS: u64 = 2_000;
/// The fewest permits used within that time that count as fast.
const FAST: u64 = 60;
/// What a full stock lasts before the pool has said for how long one may be held, in milliseconds.
const FULL_MS: u64 = 20_000;
/// The most visitors of one call; the others wait for the next one.
const BATCH: usize = 5_000;
/// A call that has neither an answer nor a failure after this time is given up, in milliseconds.
const LOST_MS: u64 = 5_000;
/// Minutes of use that are told.
const TOLD_MINUTES: u32 = 3;
/// Time after a loan's end within which a worker tells what it has used of it, if anybody comes to it at all.
const TOLD_WITHIN_MS: u64 = 60_000;
/// How long after the pool's last answer its spare permits may be used, in milliseconds.
const SPARE_MS: u64 = 60_000;
/// A lease that ends is not used in its last moments: the pool's end of it comes earlier by the way there.
const END_MARGIN_MS: u64 = 250;

/// Permits on loan to a worker.
#[derive(Debug, Clone, Copy)]
struct Loan {
    number: u64,
    permits: u32,
    until: u64,
}

#[derive(Debug, Clone)]
struct Flight {
    sequence: u64,
    sent_at: u64,
    asks: Vec<(u64, NumberAsk)>,
    /// Further requests of visitors who are among them.
    twins: Vec<(u64, NumberAsk)>,
    groups: Vec<Group>,
}

/// A colo's permits. Visitors who ask get one from the stock, or wait at the Counter for its next call to the pool.
#[derive(Debug, Clone)]
pub struct LeaseCounter {
    epoch: u64,
    sequence: u64,
    last_answered: u64,
    stock: u32,
    until: u64,
    usable_ms: u64,
    loans: LiteMap<u64, Loan>,
    loan_number: u64,
    /// Loans up to this number are from before an operator's change.
    void_loans: u64,
    used: LiteMap<u32, u64>,
    waiting: VecDeque<(u64, NumberAsk)>,
    flight: Option<Flight>,
    next_call: u64,
    pace_ms: u64,
    /// The latest that it can be by the pool's clock, and our own time, at its last answer.
    clocks: Option<(u64, u64)>,
    uses: Rate,
    fast_uses: Rate,
    hint: Hint,
    level: Level,
    /// Permits that workers wanted and did not get.
    unmet: u32,
    /// Permits for the time that the pool does not answer, and until when.
    spare: u32,
    spare_until: u64,
    /// The last call was not answered.
    silent: bool,
    /// The pool had nothing for the stock when it was asked last, at this time.
    exhausted_at: Option<u64>,
    holders: Holders,
    done: Vec<(u64, Outcome)>,
}

impl LeaseCounter {
    /// A Counter at its start. Nothing survives a restart, and nothing has to: the pool takes what was held for used.
    /// `epoch` is random.
    pub fn new(epoch: u64) -> Self {
        Self {
            epoch,
            sequence: 0,
            last_answered: 0,
            stock: 0,
            until: 0,
            usable_ms: FULL_MS,
            loans: LiteMap::new(),
            loan_number: 0,
            void_loans: 0,
            used: LiteMap::new(),
            waiting: VecDeque::new(),
            flight: None,
            next_call: 0,
            pace_ms: 0,
            clocks: None,
            uses: Rate::over(USES_OVER_MS),
            fast_uses: Rate::over(FAST_USES_OVER_MS),
            hint: Hint::default(),
            level: Level::Busy,
            unmet: 0,
            spare: 0,
            spare_until: 0,
            silent: false,
            exhausted_at: None,
            holders: Holders::new(REMEMBERED_TICKETS),
            done: Vec::new(),
        }
    }

    /// The minute by the pool's clock, as far as it is known: it decides which minute a permit counts for.
    fn minute(&self, now: u64) -> u32 {
        let (pool, own) = self.clocks.unwrap_or((now, now));
        minute_of(pool + now.saturating_sub(own))
    }

    /// A visitor asks. `place` is where the answer goes: see [`LeaseCounter::answers`].
    pub fn ask(&mut self, place: u64, ask: NumberAsk, now: u64) {
        let minute = self.minute(now);
        if let Some(outcome) = self.holders.given_to(ask.id, minute) {
            self.done.push((place, outcome));
        } else if self.take_from_stock(now) || self.silent && self.take_spare(now) {
            self.give(place, ask.id, minute, now);
        } else if self.hint.refuses(minute, ask.limit, now) {
            self.done.push((place, ask.refused(self.hint.left(now))));
        } else {
            self.waiting.push_back((place, ask));
        }
    }

    fn take_from_stock(&mut self, now: u64) -> bool {
        // While people wait the pool judges each visitor: whoever is oldest goes first.
        let free = self.stock > 0 && now < self.until && self.level != Level::Queueing;
        if free {
            self.stock -= 1;
        }
        free
    }

    fn take_spare(&mut self, now: u64) -> bool {
        let free = self.spare > 0 && now < self.spare_until && self.level != Level::Queueing;
        if free {
            self.spare -= 1;
        }
        free
    }

    fn give(&mut self, place: u64, id: u64, minute: u32, now: u64) {
        self.use_permits(1, minute, now);
        self.holders.put(id, minute, now);
        self.done.push((place, Outcome::Given { minute, number: 0 }));
    }

    fn use_permits(&mut self, permits: u32, minute: u32, now: u64) {
        *self.used.entry(minute).or_insert(0) += u64::from(permits);
        self.used.retain(|of, _| of + TOLD_MINUTES > minute);
        self.uses.count(u64::from(permits), now);
        self.fast_uses.count(u64::from(permits), now);
    }

    /// How many permits are used in some milliseconds, at the current rate.
    fn used_in(&self, milliseconds: u64, now: u64) -> u64 {
        let is_fast = self.fast_uses.in_ms(FAST_USES_OVER_MS, now) >= FAST;
        let fast = if is_fast { self.fast_uses.in_ms(milliseconds, now) } else { 0 };
        self.uses.in_ms(milliseconds, now).max(fast)
    }

    /// A worker's loan: settles the one that it had and lends what it wants, if the room is calm.
    pub fn lend(&mut self, ask: &LoanAsk, now: u64) -> Lent {
        let level = self.level;
        if let Some(loan) = self.loans.get(&ask.worker).copied()
            && loan.number == ask.loan
        {
            self.loans.remove(&ask.worker);
            let used = ask.used.min(loan.permits);
            self.use_permits(used, self.minute(now), now);
            if loan.number > self.void_loans {
                self.stock += loan.permits - used;
            }
        }
        let end = self.until.saturating_sub(END_MARGIN_MS);
        let lends =
            self.level == Level::Calm && now < end && !self.loans.contains_key(&ask.worker) && ask.want > 0;
        let permits = if lends { ask.want.min(self.stock) } else { 0 };
        self.unmet += ask.want - permits;
        if permits == 0 {
            return Lent { level, usable_ms: self.usable_ms as u32, ..Lent::default() };
        }
        self.stock -= permits;
        self.loan_number += 1;
        self.loans.insert(ask.worker, Loan { number: self.loan_number, permits, until: end });
        Lent { loan: self.loan_number, permits, usable_ms: (end - now) as u32, level }
    }

    /// An operator has changed the room: what was leased before is not used any more, nor what workers bring back of it.
    /// The pool takes back what it is not told of.
    pub fn give_back(&mut self) {
        (self.stock, self.spare) = (0, 0);
        self.void_loans = self.loan_number;
    }

    /// Whether the pool has ever answered.
    pub fn pool_has_answered(&self) -> bool {
        self.clocks.is_some()
    }

    /// Loans of which nothing was told may have been used: they count as used.
    fn end_loans(&mut self, now: u64) {
        if self.loans.is_empty() {
            return;
        }
        let mut ended = 0;
        self.loans.retain(|_, loan| {
            let over = now >= loan.until + TOLD_WITHIN_MS;
            ended += if over { loan.permits } else { 0 };
            !over
        });
        if ended > 0 {
            self.use_permits(ended, self.minute(now), now);
        }
    }

    fn permits(&self) -> u32 {
        self.stock + self.loans.values().map(|loan| loan.permits).sum::<u32>()
    }

    fn needs_stock(&self, now: u64) -> bool {
        if self.level == Level::Queueing || self.exhausted_at.is_some_and(|at| now < at + 1_000) {
            return false;
        }
        // A lease that is about to end is renewed with the same call. In a calm room workers live on it: earlier then.
        let ahead = if self.level == Level::Calm { self.usable_ms / 2 } else { LOW_MS };
        let lasts = if now + ahead < self.until { self.stock } else { 0 };
        let unmet = self.level == Level::Calm && self.unmet > self.stock;
        // The call may have to wait for its turn.
        let low = u64::from(lasts) < self.used_in(LOW_MS + 2 * self.pace_ms, now).max(1);
        self.used_in(RATE_MS, now) > 0 && (low || unmet)
    }

    /// When the next call is due, in milliseconds since the epoch; `None`: there is nothing to ask for.
    pub fn call_due(&self, now: u64) -> Option<u64> {
        let wanted = self.flight.is_none() && (!self.waiting.is_empty() || self.needs_stock(now));
        wanted.then_some(self.next_call.max(now))
    }

    /// The call to make now, if one is due. Its answer, or its failure, goes to [`LeaseCounter::answered`].
    pub fn call(&mut self, now: u64) -> Option<LeaseAsk> {
        if self.flight.as_ref().is_some_and(|flight| now >= flight.sent_at + LOST_MS) {
            // Whoever made the call has vanished.
            self.answered(None, now);
        }
        if self.call_due(now)? > now {
            return None;
        }
        self.end_loans(now);
        if now >= self.until || self.level == Level::Queueing {
            // What is not told is given back. A lease that has ended is not ours any more.
            self.stock = 0;
        }
        let mut asks: Vec<(u64, NumberAsk)> = self.waiting.drain(..self.waiting.len().min(BATCH)).collect();
        asks.sort_by_key(|(_, ask)| (ask.bucket, !ask.waits, ask.id));
        // Several requests of one visitor ask for one permit.
        let mut twins = Vec::new();
        let mut last = None;
        asks.retain(|(place, ask)| {
            let twin = last.replace(ask.id) == Some(ask.id);
            if twin {
                twins.push((*place, *ask));
            }
            !twin
        });
        let mut groups: Vec<Group> = Vec::new();
        for (_, ask) in &asks {
            match groups.last_mut() {
                Some(group) if (group.bucket, group.waits) == (ask.bucket, ask.waits) => group.visitors += 1,
                _ => groups.push(Group { bucket: ask.bucket, waits: ask.waits, visitors: 1 }),
            }
        }
        self.sequence += 1;
        let unmet = u64::from(std::mem::take(&mut self.unmet));
        let wanted = match self.level {
            Level::Queueing => 0,
            _ => self.used_in(self.usable_ms, now).max(1) + unmet,
        };
        self.flight =
            Some(Flight { sequence: self.sequence, sent_at: now, asks, twins, groups: groups.clone() });
        Some(LeaseAsk {
            epoch: self.epoch,
            sequence: self.sequence,
            last_answered: self.last_answered,
            groups,
            permits: self.permits(),
            lent_ms: self
                .loans
                .values()
                .map(|loan| (loan.until + TOLD_WITHIN_MS).saturating_sub(now) as u32)
                .max()
                .unwrap_or(0),
            used: self.used.iter().map(|(minute, used)| (*minute, *used)).collect(),
            want: wanted as u32,
            rate: self.used_in(RATE_MS, now) as u32,
        })
    }

    /// Takes in the pool's answer to a call, or that none came. An answer that comes too late is void.
    pub fn answered(&mut self, answer: Option<&LeaseAnswer>, now: u64) {
        let sequence = answer.map_or(self.sequence, |answer| answer.sequence);
        let Some(flight) = self.flight.take_if(|flight| flight.sequence == sequence) else { return };
        let Some(answer) = answer else {
            self.next_call = now + 1;
            self.silent = true;
            let minute = self.minute(now);
            for (place, ask) in flight.asks.into_iter().chain(flight.twins) {
                if let Some(outcome) = self.holders.given_to(ask.id, minute) {
                    self.done.push((place, outcome));
                } else if self.take_spare(now) {
                    self.give(place, ask.id, minute, now);
                } else {
                    self.done.push((place, Outcome::Unknown));
                }
            }
            return;
        };
        self.silent = false;
        (self.spare, self.spare_until) = (answer.spare, now + SPARE_MS);
        self.last_answered = answer.sequence;
        // The pool's clock is not ahead of this. A permit of the stock that is used at the edge of a minute counts for
        // the later one: in both it was kept free.
        self.clocks = Some((answer.now + now.saturating_sub(flight.sent_at), now));
        self.level = answer.level;
        self.pace_ms = u64::from(answer.pace_ms);
        self.next_call = now + self.pace_ms;
        self.usable_ms = u64::from(answer.usable_ms);
        self.until = now + self.usable_ms;
        let lent = self.permits() - self.stock;
        self.stock = (self.stock + answer.extra).min(answer.most.saturating_sub(lent));
        self.exhausted_at = (answer.extra == 0).then_some(now);
        let minute = minute_of_entry(answer.now);
        let mut asks = flight.asks.into_iter();
        for (group, (given, protected)) in flight.groups.iter().zip(&answer.given) {
            for index in 0..group.visitors {
                let Some((place, ask)) = asks.next() else { break };
                if index < *given {
                    if let Some(outcome) = self.holders.given_to(ask.id, minute) {
                        // An earlier request of the same visitor was answered meanwhile: this permit is to spare.
                        self.done.push((place, outcome));
                        self.stock += 1;
                    } else {
                        self.give(place, ask.id, minute, now);
                    }
                } else {
                    let limit = -i64::from(*protected);
                    let wait_ms = answer.wait_ms;
                    self.hint.remember(minute, limit, wait_ms, now);
                    let refused = Outcome::Refused { minute: ask.minute, limit, wait_ms };
                    self.done.push((place, self.holders.given_to(ask.id, minute).unwrap_or(refused)));
                }
            }
        }
        self.done.extend(asks.map(|(place, _)| (place, Outcome::Unknown)));
        for (place, ask) in flight.twins {
            let refused = ask.refused(0);
            self.done.push((place, self.holders.given_to(ask.id, minute).unwrap_or(refused)));
        }
    }

    /// The answers that are ready, with their places.
    pub fn answers(&mut self) -> Vec<(u64, Outcome)> {
        std::mem::take(&mut self.done)
    }
}
