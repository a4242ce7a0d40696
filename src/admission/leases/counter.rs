//! The Counter object under leases: a colo's small stock of permits, and one call at a time to the pool for all who ask.

use std::collections::VecDeque;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::super::{Hint, NumberAsk, Outcome, minute_of};
use super::holders::Holders;
use super::rate::Rate;
use super::{
    EXACT_UP_TO, FEW, Group, LatestOrder, LeaseAnswer, LeaseAsk, Level, RATE_MS, REACHES_MS,
    REACHES_WORKER_MS, Returned, RoundTrip, TOLD_MINUTES, minute_of_entry,
};
use crate::room::{RateWindow, Room};
use crate::wire::VERSION;

/// How many visitors are remembered per generation.
const REMEMBERED_TICKETS: usize = 50_000;
/// More is leased when the stock falls below the need of this time, in milliseconds.
const LOW_MS: u64 = 300;
/// Or below so many, where the pool would lay as many there: one for the next visitor, and one until the pool has answered.
const LOW_STOCK: u32 = 2;
/// The size of the stock follows the use of about this time, in milliseconds. By a shorter one, one visitor of a small
/// colo would seem to be the first of many.
const USES_OVER_MS: u64 = 60_000;
/// The same where visitors come fast, in milliseconds: a crowd must not be taken for the few of the last minute.
const FAST_USES_OVER_MS: u64 = 2_000;
/// How many standard deviations of what was used within that time may be chance.
const CHANCE: u64 = 2;
/// What a full stock lasts before the pool has said for how long one may be held, in milliseconds.
const FULL_MS: u64 = 20_000;
/// The most visitors of one call; the others wait for the next one.
const BATCH: usize = 5_000;
/// A call that has neither an answer nor a failure after this time is given up, in milliseconds.
const LOST_MS: u64 = 5_000;
/// The most times of use that are told where the window slides. What was used before them counts as of the call that tells it.
const TOLD_TIMES: usize = 100;
/// What is used within this time is told as one, as of the last, in milliseconds.
const TOLD_AS_ONE_MS: u64 = 100;
/// How long after the pool's last answer its spare permits may be used, in milliseconds.
const SPARE_MS: u64 = 60_000;
/// How long the pool must have been silent before they may be used, in milliseconds: slow is not dead.
const SILENT_MS: u64 = 2_000;
/// Backoff after a call that failed, in milliseconds.
const AGAIN_MS: u64 = 20;
/// How long a visitor's ask is kept for another call when one fails, in milliseconds. Then its worker does not wait any more.
const ASKS_LIVE_MS: u64 = 1_500;
/// A stock that is used slower than one permit in this time is recorded, in milliseconds.
const SLOW_MS: u64 = 1_000;
/// Where nobody comes for this time, in milliseconds, the object loses its memory, and the next start counts what may have been
/// used since the record.
const FORGETS_MS: u64 = 10_000;
/// So a stock is recorded before each use where fewer than so many are used in that time: less often would count too much.
const EXACT_BELOW: u64 = 3;
/// The same in a calm room, where counting too much does no harm.
const EXACT_BELOW_IF_CALM: u64 = 1;
/// With fewer, too, one permit more is recorded as used once so many visitors have come since the object's start, if one too many in
/// each colo is not missed: the next visitor may come before the memory is lost.
const COMES_AGAIN: u32 = 3;
/// It is not missed in a calm room of at least so many users.
const MANY_USERS: u32 = 5_000;
/// And in any room of at least so many it is rare if visitors have come no more than [`OFTEN_MS`] apart.
const MEDIUM_USERS: u32 = 2_000;
/// See [`MEDIUM_USERS`], in milliseconds.
const OFTEN_MS: u64 = 2_500;
/// So many visitors are enough where the room is calm and they come as often.
const COMES_AGAIN_OFTEN: u32 = 2;
/// A stock whose lease ends sooner is not recorded, in milliseconds.
const WORTH_MS: u64 = 10_000;

/// A pool whose answers take less than this is near enough to be asked itself, in milliseconds.
const NEAR_MS: u64 = 60;
/// How long after its call left the pool's word on operators' orders is passed on, in milliseconds.
pub const PASSED_ON_MS: u64 = 1_000;
/// How long a region's Counter that did not answer is not asked again, in milliseconds.
const REGION_AGAIN_MS: u64 = 30_000;

/// Whom a Counter serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Serves {
    /// A colo. Who finds nothing in stock waits for the pool.
    #[default]
    Colo,
    /// The same, where the region's Counter is asked before the pool while nobody waits.
    ColoOfRegion,
    /// The Counters of a region's colos.
    Region,
}

/// How visitors come to the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traffic {
    /// See [`Level::Calm`].
    Calm,
    Usual,
    /// See [`LeaseAnswer::in_rush`].
    Rush,
}

/// A visitor who asks.
#[derive(Debug, Clone, Copy)]
struct Asked {
    place: u64,
    ask: NumberAsk,
    at: u64,
}

/// What a colo's Counter has to do with its region's.
#[derive(Debug, Clone, Default)]
struct OfRegion {
    /// For whom it is to be asked.
    waiting: Vec<Asked>,
    /// For whom it is being asked.
    asked: Vec<Asked>,
    /// When it is to be asked again.
    from: u64,
    /// Somebody has come with a permit of it, and the pool does not know yet in which minute.
    must_tell: bool,
}

#[derive(Debug, Clone)]
struct Flight {
    sequence: u64,
    sent_at: u64,
    asks: Vec<Asked>,
    /// Further requests of visitors who are among them.
    twins: Vec<Asked>,
    groups: Vec<Group>,
    /// The pool has called permits back since: what comes for the stock is void.
    is_recalled: bool,
    /// See [`OfRegion::must_tell`].
    tells_of_region: bool,
}

/// What a Counter keeps in storage, so that a quiet colo has its stock when it wakes up. In a busy one it is not worth the
/// writes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SavedPermits {
    /// Format version.
    pub v: u8,
    epoch: u64,
    sequence: u64,
    last_answered: u64,
    /// What is there at least until the next record; 0 and no epoch: nothing is known.
    stock: u32,
    /// Where the window slides: what may be used before the next record. Elsewhere it is among `used`, in its minute.
    may_be_used: u32,
    until: u64,
    usable_ms: u64,
    used: Vec<(u32, u64)>,
    clocks: Option<(u64, u64)>,
    uses: Rate,
    steering: u32,
    calm: bool,
    /// Permits of the stock that were used of late: how many, and when.
    recent: Vec<(u32, u64)>,
}

/// When a record is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DueRecord {
    /// Answers and calls wait for it.
    First(SavedPermits),
    /// Only later ones do.
    Last(SavedPermits),
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
    used: LiteMap<u32, u64>,
    /// Permits of the stock whose use the pool may not know of: how many, and when.
    recent: Vec<(u32, u64)>,
    serves: Serves,
    waiting: VecDeque<Asked>,
    region: OfRegion,
    flight: Option<Flight>,
    next_call: u64,
    pace_ms: u64,
    /// The latest that it can be by the pool's clock, and our own time, at its last answer.
    clocks: Option<(u64, u64)>,
    uses: Rate,
    fast_uses: Rate,
    hint: Hint,
    /// As the pool has said in this life of the object.
    level: Option<Level>,
    /// As the pool has said last, also to an earlier life of the object.
    traffic: Traffic,
    /// Permits for the time that the pool does not answer, and until when.
    spare: u32,
    spare_until: u64,
    round_trip: RoundTrip,
    /// What the last record says is in stock; `None`: it says nothing.
    recorded: Option<u32>,
    /// What it says may be used besides, and in which minute.
    ahead: (u32, u32),
    /// Permits that were used in this life of the object, and when the first of them was, in milliseconds since the epoch.
    came: (u32, u64),
    /// The pool has answered since then.
    is_record_old: bool,
    /// The pool had nothing for the stock when it was asked last, at this time.
    exhausted_at: Option<u64>,
    /// The most permits that the pool would lay in stock, by its last answer to this instance.
    most: u32,
    /// What was in stock is given back, and the pool does not know yet.
    must_tell: bool,
    /// The version of what operators had changed when the pool judged what it gave.
    steering: u32,
    /// What the pool or the region said last of operators' orders; when that came, and until when it is passed on.
    latest: Option<(LatestOrder, u64, u64)>,
    holders: Holders,
    done: Vec<(u64, Outcome)>,
}

impl LeaseCounter {
    /// A Counter at its start that knows nothing. `epoch` is random.
    pub fn new(epoch: u64) -> Self {
        Self {
            epoch,
            sequence: 0,
            last_answered: 0,
            stock: 0,
            until: 0,
            usable_ms: FULL_MS,
            used: LiteMap::new(),
            recent: Vec::new(),
            serves: Serves::Colo,
            waiting: VecDeque::new(),
            region: OfRegion::default(),
            flight: None,
            next_call: 0,
            pace_ms: 0,
            clocks: None,
            uses: Rate::over(USES_OVER_MS),
            fast_uses: Rate::over(FAST_USES_OVER_MS),
            hint: Hint::default(),
            level: None,
            traffic: Traffic::Usual,
            spare: 0,
            spare_until: 0,
            round_trip: RoundTrip::default(),
            recorded: None,
            ahead: (0, 0),
            came: (0, 0),
            is_record_old: false,
            exhausted_at: None,
            most: 0,
            must_tell: false,
            steering: 0,
            latest: None,
            holders: Holders::new(REMEMBERED_TICKETS),
            done: Vec::new(),
        }
    }

    /// A Counter at its start, with what it saved before, if anything: then it goes on where it was. Else the pool takes what
    /// was held for used.
    pub fn restore(saved: Option<SavedPermits>, epoch: u64, now: u64) -> Self {
        let Some(saved) = saved.filter(|saved| saved.epoch != 0) else { return Self::new(epoch) };
        let mut counter = Self {
            // More than any call since the record, and than any instance that began with it too.
            sequence: saved.sequence.max(now),
            last_answered: saved.last_answered,
            stock: saved.stock,
            until: saved.until,
            usable_ms: saved.usable_ms,
            used: saved.used.into_iter().collect(),
            clocks: saved.clocks,
            uses: saved.uses,
            steering: saved.steering,
            traffic: if saved.calm { Traffic::Calm } else { Traffic::Usual },
            recent: saved.recent,
            recorded: Some(saved.stock),
            ..Self::new(saved.epoch)
        };
        // What may have been used since the record may have been used just now.
        if saved.may_be_used > 0 {
            let minute = counter.minute(now);
            *counter.used.entry(minute).or_insert(0) += u64::from(saved.may_be_used);
            counter.recent.push((saved.may_be_used, now));
        }
        counter
    }

    /// The record that is due in the room, if one is.
    pub fn record(&mut self, room: &Room, now: u64) -> Option<DueRecord> {
        let is_slow = self.uses.in_ms(SLOW_MS, now) < 1;
        let keeps = is_slow && self.stock > 0;
        let exact = self.is_recorded_before_use(room, now);
        let minute = self.minute(now + self.reaches_ms());
        if self.ahead.1 != minute && !self.holders.slides() {
            // They count in that minute, and may not be used in another one.
            self.recorded = self.recorded.map(|recorded| recorded + self.ahead.0);
            self.ahead = (0, minute);
        }
        let (is_due, is_first) = match self.recorded {
            None => (keeps && now + WORTH_MS < self.until, false),
            // Whoever is next would take what the record says is there.
            Some(recorded) => (
                !keeps || self.is_record_old || self.stock < recorded || self.stock == recorded && !exact,
                self.is_record_old || self.stock < recorded,
            ),
        };
        self.is_record_old = false;
        if !is_due {
            return None;
        }
        let record = if keeps {
            let soon = 1 + self.uses.in_ms(2 * SLOW_MS, now) as u32;
            let ahead = if exact { 0 } else { self.stock.min(soon) };
            self.recorded = Some(self.stock - ahead);
            self.ahead = (ahead, minute);
            let mut used = self.used.clone();
            if ahead > 0 && !self.holders.slides() {
                *used.entry(minute).or_insert(0) += u64::from(ahead);
            }
            SavedPermits {
                v: VERSION,
                epoch: self.epoch,
                sequence: self.sequence,
                last_answered: self.last_answered,
                stock: self.stock - ahead,
                may_be_used: if self.holders.slides() { ahead } else { 0 },
                until: self.until,
                usable_ms: self.usable_ms,
                used: used.into_iter().collect(),
                clocks: self.clocks,
                uses: self.uses,
                steering: self.steering,
                calm: self.traffic == Traffic::Calm,
                recent: self.recent.clone(),
            }
        } else {
            self.recorded = None;
            SavedPermits { v: VERSION, ..SavedPermits::default() }
        };
        Some(if is_first { DueRecord::First(record) } else { DueRecord::Last(record) })
    }

    /// Whether nothing may be used before it is recorded. Otherwise answers need not wait, and what may be used until the next
    /// record counts as used if the object ends.
    fn is_recorded_before_use(&self, room: &Room, now: u64) -> bool {
        let used = self.used_in(FORGETS_MS, now);
        let is_calm = self.traffic == Traffic::Calm && !self.holders.slides();
        let (users, first_at) = self.came;
        let is_often = !self.holders.slides()
            && now.saturating_sub(first_at) <= OFTEN_MS * u64::from(users.saturating_sub(1));
        let enough = if is_calm && is_often { COMES_AGAIN_OFTEN } else { COMES_AGAIN };
        // Limits that adapt may fall: it must not be missed then either.
        let least = room.adaptive.map_or(room.total_active_users, |range| range.least_active_users);
        let is_no_loss = is_calm && least >= MANY_USERS || is_often && least >= MEDIUM_USERS;
        // In a rush the pool has seen that enough is left.
        let comes_again = is_no_loss && users >= enough || self.traffic == Traffic::Rush;
        let below = if is_calm { EXACT_BELOW_IF_CALM } else { EXACT_BELOW };
        room.total_active_users <= EXACT_UP_TO || used < below && !comes_again
    }

    /// The minute by the pool's clock, as far as it is known: it decides which minute a permit counts for.
    fn minute(&self, now: u64) -> u32 {
        let (pool, own) = self.clocks.unwrap_or((now, now));
        minute_of(pool + now.saturating_sub(own))
    }

    /// The room's limit of new users is that of a window: it decides for how long a permit is good that was given. Whom the
    /// Counter `serves` decides whom it asks, and how long its permits are on their way.
    pub fn follow(&mut self, window: RateWindow, serves: Serves) {
        self.serves = serves;
        self.holders.follow(window);
        if !self.holders.slides() {
            self.recent.clear();
        }
    }

    /// Whether a ticket was given a permit that is good at `now`.
    pub fn has_given(&self, id: u64, now: u64) -> bool {
        self.holders.given_to(id, self.minute(now), now).is_some()
    }

    /// A visitor asks. `place` is where the answer goes: see [`LeaseCounter::answers`].
    pub fn ask(&mut self, place: u64, ask: NumberAsk, now: u64) {
        let minute = self.minute(now);
        if let Some(outcome) = self.holders.given_to(ask.id, minute, now) {
            self.done.push((place, outcome));
        } else if self.take_from_stock(now) || self.is_silent(now) && self.take_spare(now) {
            self.give(place, ask.id, self.minute(now + self.reaches_ms()), now);
        } else if self.hint.refuses(minute, ask.limit, now) {
            self.done.push((place, ask.refused(self.hint.left(now))));
        } else if self.asks_region(now) {
            self.region.waiting.push(Asked { place, ask, at: now });
        } else {
            self.waiting.push_back(Asked { place, ask, at: now });
        }
    }

    /// How long a permit of the stock takes to its visitor at most, in milliseconds.
    fn reaches_ms(&self) -> u64 {
        if self.serves == Serves::Region { REACHES_MS } else { REACHES_WORKER_MS }
    }

    /// Whether the region's Counter is asked before the pool. While people wait the pool judges each. A busy colo calls the pool for
    /// its stock all the time, and what it leases is for all who wait here.
    fn asks_region(&self, now: u64) -> bool {
        let pool_ms = self.round_trip.usual_ms();
        self.serves == Serves::ColoOfRegion
            && self.level != Some(Level::Queueing)
            && now >= self.region.from
            && self.used_in(SLOW_MS, now) < 1
            && (pool_ms == 0 || pool_ms >= NEAR_MS)
    }

    /// For whom the region's Counter is to be asked now; nobody, while it is being asked. Its answer, or its failure, goes to
    /// [`LeaseCounter::region_answered`].
    pub fn call_region(&mut self) -> Vec<NumberAsk> {
        if self.region.asked.is_empty() {
            self.region.asked = std::mem::take(&mut self.region.waiting);
            self.region.asked.iter().map(|asked| asked.ask).collect()
        } else {
            Vec::new()
        }
    }

    /// Takes in what the region's Counter has answered, with how full the room is and the latest of operators' orders; no
    /// outcomes: nothing came in time. Who has no permit of it and no refusal waits for the pool.
    pub fn region_answered(
        &mut self,
        outcomes: &[Outcome],
        level: Option<Level>,
        latest: Option<LatestOrder>,
        now: u64,
    ) {
        if let Some(order) = latest {
            // It may be as old already as it may get: it is for those who have asked.
            self.latest = Some((order, now, now + REACHES_WORKER_MS));
        }
        if outcomes.is_empty() {
            self.region.from = now + REGION_AGAIN_MS;
        }
        if level == Some(Level::Queueing) {
            self.level = level;
        }
        let minute = self.minute(now + REACHES_WORKER_MS);
        for (index, asked) in std::mem::take(&mut self.region.asked).into_iter().enumerate() {
            let Asked { place, ask, .. } = asked;
            let outcome = outcomes.get(index).copied().unwrap_or(Outcome::Unknown);
            match outcome {
                Outcome::Given { minute: of, .. } if of >= minute => {
                    // The region tells how many, this colo that somebody has come in that minute, and is to be counted here.
                    self.use_permits(0, of, now);
                    self.count_use(1, now);
                    self.region.must_tell = true;
                    self.holders.put(ask.id, of, now);
                    self.done.push((place, outcome));
                }
                Outcome::Refused { .. } => self.done.push((place, outcome)),
                // Or the minute has ended for which it counts.
                _ => self.waiting.push_back(asked),
            }
        }
        if !self.asks_region(now) {
            self.waiting.extend(std::mem::take(&mut self.region.waiting));
        }
    }

    fn take_from_stock(&mut self, now: u64) -> bool {
        // While people wait the pool judges each visitor: whoever is oldest goes first.
        let free = self.stock > 0 && now < self.until && self.level != Some(Level::Queueing);
        if free {
            self.stock -= 1;
            self.remember_use(now);
        }
        free
    }

    /// Whether the pool has answered nothing for seconds.
    fn is_silent(&self, now: u64) -> bool {
        self.round_trip.silent_ms(now) >= SILENT_MS
    }

    fn take_spare(&mut self, now: u64) -> bool {
        let free = self.spare > 0 && now < self.spare_until && self.level != Some(Level::Queueing);
        if free {
            self.spare -= 1;
            self.remember_use(now);
        }
        free
    }

    /// Where the window slides, the pool is told when a permit of the stock was used.
    fn remember_use(&mut self, now: u64) {
        if !self.holders.slides() {
            return;
        }
        match self.recent.last_mut() {
            Some((used, at)) if *at / TOLD_AS_ONE_MS == now / TOLD_AS_ONE_MS => {
                (*used, *at) = (*used + 1, now);
            }
            _ => self.recent.push((1, now)),
        }
        if self.recent.len() > TOLD_TIMES {
            self.recent.remove(0);
        }
    }

    /// See [`LeaseAsk::recent`].
    fn recent(&self, now: u64) -> Vec<(u32, u64)> {
        self.recent.iter().map(|(used, at)| (*used, now.saturating_sub(*at))).collect()
    }

    fn give(&mut self, place: u64, id: u64, minute: u32, now: u64) {
        self.use_permits(1, minute, now);
        self.holders.put(id, minute, now);
        self.done.push((place, Outcome::Given { minute, number: 0 }));
    }

    fn use_permits(&mut self, permits: u32, minute: u32, now: u64) {
        *self.used.entry(minute).or_insert(0) += u64::from(permits);
        self.used.retain(|of, _| of + TOLD_MINUTES > minute);
        self.count_use(permits, now);
    }

    /// How much is asked for decides what lies in stock.
    fn count_use(&mut self, permits: u32, now: u64) {
        self.uses.count(u64::from(permits), now);
        self.fast_uses.count(u64::from(permits), now);
        let (users, first_at) = self.came;
        self.came = (users.saturating_add(permits), if users == 0 { now } else { first_at });
    }

    /// How many permits are used in some milliseconds, at the current rate.
    fn used_in(&self, milliseconds: u64, now: u64) -> u64 {
        let fast = self.fast_uses.in_ms(FAST_USES_OVER_MS, now);
        let sure = fast.saturating_sub(CHANCE * fast.isqrt());
        self.uses.in_ms(milliseconds, now).max(sure * milliseconds / FAST_USES_OVER_MS)
    }

    /// What was leased before is not used any more, nor what is on its way here. The pool is told of it at once: if this object
    /// lost its memory first, nobody would know that it was not used.
    pub fn give_back(&mut self) {
        self.must_tell |= self.stock > 0 || self.flight.is_some();
        (self.stock, self.spare) = (0, 0);
        if let Some(flight) = &mut self.flight {
            flight.is_recalled = true;
        }
    }

    /// An operator has changed the room: nothing that was given or leased before that version is good any more. Who has a
    /// permit and has not entered yet is judged once more; not who got it by that version from a pool that knew of it sooner.
    pub fn void_before(&mut self, steering: u32) {
        if self.steering < steering {
            self.give_back();
            // What the region gives them may have been leased before.
            self.waiting.extend(std::mem::take(&mut self.region.asked));
            self.holders = self.holders.like(REMEMBERED_TICKETS);
        }
    }

    /// The pool calls back what is in stock.
    pub fn recall(&mut self, now: u64) -> Returned {
        self.give_back();
        self.must_tell = false;
        Returned {
            v: VERSION,
            epoch: self.epoch,
            sequence: self.sequence,
            last_answered: self.last_answered,
            used: self.told(),
            recent: self.recent(now),
        }
    }

    /// How full the room is, if the pool has said so.
    pub fn level(&self) -> Option<Level> {
        self.level
    }

    /// What operators had changed a moment ago, if the pool has just said so.
    pub fn latest_order(&self, now: u64) -> Option<LatestOrder> {
        let (order, came_at, until) = self.latest?;
        (now < until).then(|| LatestOrder { time: order.time + now.saturating_sub(came_at), ..order })
    }

    /// Timeout of a call to the pool, in milliseconds, where `usual` is the least.
    pub fn deadline_ms(&self, usual: u64, now: u64) -> u64 {
        self.round_trip.deadline_ms(usual, now)
    }

    fn told(&self) -> Vec<(u32, u64)> {
        self.used.iter().map(|(minute, used)| (*minute, *used)).collect()
    }

    fn needs_stock(&self, now: u64) -> bool {
        if self.level == Some(Level::Queueing) || self.exhausted_at.is_some_and(|at| now < at + 1_000) {
            return false;
        }
        // A lease that is about to end is renewed with the same call.
        let lasts = if now + LOW_MS < self.until { self.stock } else { 0 };
        // The call may have to wait for its turn, and the pool may be far away.
        let low_ms = LOW_MS + 2 * self.pace_ms + self.round_trip.usual_ms();
        let least = u64::from(self.most.clamp(1, LOW_STOCK));
        self.used_in(RATE_MS, now) > 0 && u64::from(lasts) < self.used_in(low_ms, now).max(least)
    }

    /// When the next call is due, in milliseconds since the epoch; `None`: there is nothing to ask for.
    pub fn call_due(&self, now: u64) -> Option<u64> {
        let must_tell = self.must_tell || self.region.must_tell;
        let wanted =
            self.flight.is_none() && (!self.waiting.is_empty() || must_tell || self.needs_stock(now));
        wanted.then_some(self.next_call.max(now))
    }

    /// Whoever asked from a place before this one has been sent away: a permit for them would lie unused.
    pub fn forget_before(&mut self, place: u64) {
        self.region.waiting.retain(|asked| asked.place >= place);
        if self.flight.is_none() {
            self.waiting.retain(|asked| asked.place >= place);
        }
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
        if now >= self.until || self.level == Some(Level::Queueing) {
            // What is not told is given back. A lease that has ended is not ours any more.
            self.stock = 0;
        }
        let mut asks: Vec<Asked> = self.waiting.drain(..self.waiting.len().min(BATCH)).collect();
        asks.sort_by_key(|Asked { ask, .. }| (ask.bucket, !ask.waits, ask.id));
        // Several requests of one visitor ask for one permit.
        let mut twins = Vec::new();
        let mut last = None;
        asks.retain(|asked| {
            let twin = last.replace(asked.ask.id) == Some(asked.ask.id);
            if twin {
                twins.push(*asked);
            }
            !twin
        });
        let mut groups: Vec<Group> = Vec::new();
        for Asked { ask, .. } in &asks {
            match groups.last_mut() {
                Some(group) if (group.bucket, group.waits) == (ask.bucket, ask.waits) => group.visitors += 1,
                _ => groups.push(Group { bucket: ask.bucket, waits: ask.waits, visitors: 1 }),
            }
        }
        self.sequence += 1;
        // Those who ask will be among them.
        let mut uses = self.uses;
        uses.count(asks.len() as u64, now);
        let rate = self.used_in(RATE_MS, now).max(uses.in_ms(RATE_MS, now));
        let gives_back = std::mem::take(&mut self.must_tell) && asks.is_empty();
        let wanted = match self.level {
            _ if gives_back => 0,
            Some(Level::Queueing) => 0,
            _ => (rate * self.usable_ms / RATE_MS).max(FEW as u64),
        };
        let (sequence, is_recalled) = (self.sequence, false);
        let tells_of_region = std::mem::take(&mut self.region.must_tell);
        self.flight = Some(Flight {
            sequence,
            sent_at: now,
            asks,
            twins,
            groups: groups.clone(),
            is_recalled,
            tells_of_region,
        });
        Some(LeaseAsk {
            epoch: self.epoch,
            sequence: self.sequence,
            last_answered: self.last_answered,
            groups,
            permits: self.stock,
            lent_ms: 0,
            used: self.told(),
            want: wanted as u32,
            rate: rate as u32,
            recent: self.recent(now),
        })
    }

    /// Takes in the pool's answer to a call, or that none came. An answer that comes too late is void.
    pub fn answered(&mut self, answer: Option<&LeaseAnswer>, now: u64) {
        let sequence = answer.map_or(self.sequence, |answer| answer.sequence);
        let Some(flight) = self.flight.take_if(|flight| flight.sequence == sequence) else { return };
        let Some(answer) = answer else {
            self.next_call = now + AGAIN_MS;
            self.region.must_tell |= flight.tells_of_region;
            self.round_trip.failed(flight.sent_at);
            let minute = self.minute(now);
            for asked in flight.asks.into_iter().chain(flight.twins) {
                let Asked { place, ask, at } = asked;
                if let Some(outcome) = self.holders.given_to(ask.id, minute, now) {
                    self.done.push((place, outcome));
                } else if self.is_silent(now) && self.take_spare(now) {
                    self.give(place, ask.id, minute, now);
                } else if !self.is_silent(now) && now < at + ASKS_LIVE_MS {
                    self.waiting.push_back(asked);
                } else {
                    self.done.push((place, Outcome::Unknown));
                }
            }
            return;
        };
        self.is_record_old = true;
        self.recent.retain(|(_, at)| *at >= flight.sent_at);
        self.void_before(answer.steering);
        self.steering = answer.steering;
        let latest = LatestOrder { version: answer.steering, time: answer.now };
        self.latest = answer.is_latest.then_some((latest, now, flight.sent_at + PASSED_ON_MS));
        // Where the window slides 60 seconds count from when the pool gave a permit: one that was on its way for longer than
        // others may be used when it does not count any more. It is given back.
        let took = now.saturating_sub(flight.sent_at);
        let is_late = self.holders.slides() && took > self.round_trip.usual_ms() + REACHES_MS;
        self.round_trip.answered(flight.sent_at, now);
        (self.spare, self.spare_until) = (answer.spare, now + SPARE_MS);
        self.last_answered = answer.sequence;
        // The pool's clock is not ahead of this. A permit of the stock that is used at the edge of a minute counts for
        // the later one: in both it was kept free.
        self.clocks = Some((answer.now + now.saturating_sub(flight.sent_at), now));
        self.level = Some(answer.level);
        self.traffic = match answer.level {
            _ if answer.in_rush => Traffic::Rush,
            Level::Calm => Traffic::Calm,
            _ => Traffic::Usual,
        };
        self.pace_ms = u64::from(answer.pace_ms);
        self.next_call = now + self.pace_ms;
        self.usable_ms = u64::from(answer.usable_ms);
        // By the pool's clock it is not longer.
        self.until = flight.sent_at + self.usable_ms;
        self.stock = if flight.is_recalled { 0 } else { (self.stock + answer.extra).min(answer.most) };
        self.most = answer.most;
        self.exhausted_at = (answer.extra == 0).then_some(now);
        let minute = minute_of_entry(answer.now);
        let mut asks = flight.asks.into_iter();
        for (group, (given, protected)) in flight.groups.iter().zip(&answer.given) {
            for index in 0..group.visitors {
                let Some(asked) = asks.next() else { break };
                let Asked { place, ask, .. } = asked;
                if index < *given && is_late {
                    self.waiting.push_back(asked);
                } else if index < *given {
                    if let Some(outcome) = self.holders.given_to(ask.id, minute, now) {
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
                    self.done.push((place, self.holders.given_to(ask.id, minute, now).unwrap_or(refused)));
                }
            }
        }
        self.done.extend(asks.map(|asked| (asked.place, Outcome::Unknown)));
        for Asked { place, ask, .. } in flight.twins {
            let refused = ask.refused(0);
            self.done.push((place, self.holders.given_to(ask.id, minute, now).unwrap_or(refused)));
        }
        // Whoever came meanwhile need not ask for what is here.
        for asked in std::mem::take(&mut self.waiting) {
            let Asked { place, ask, .. } = asked;
            let minute = self.minute(now);
            if let Some(outcome) = self.holders.given_to(ask.id, minute, now) {
                self.done.push((place, outcome));
            } else if self.take_from_stock(now) {
                self.give(place, ask.id, self.minute(now + self.reaches_ms()), now);
            } else {
                self.waiting.push_back(asked);
            }
        }
    }

    /// The answers that are ready, with their places.
    pub fn answers(&mut self) -> Vec<(u64, Outcome)> {
        std::mem::take(&mut self.done)
    }
}
