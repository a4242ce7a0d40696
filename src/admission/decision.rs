//! What a worker decides for one request, from what it has at hand.

use super::{Clocked, HINT_MS, StateKey, adapted_worker_slots, minute_of, start_of, worker_slots};
use crate::room::{OnError, QueueingMethod, Room, SlotStrategy};
use crate::ticket::Standing;

/// A state key older than this does not say what may be asked of the colo's Counter: Anywhere judges alone.
const FRESH_MS: u64 = 6_000;
/// A state key older than this is no state at all.
const USABLE_MS: u64 = 30_000;
/// How long fallback goes by an old state, in milliseconds: three minutes of a quarter each never fill more than was free.
const FALLBACK_USABLE_MS: u64 = 180_000;
/// The part of the free slots that all workers together may fill on their own while the objects do not answer:
/// the objects may be giving numbers to others at the same time.
const FALLBACK_PART: i64 = 4;

/// While people wait and Global's states are fresh, a worker that gets no answer lets nobody in for this time, in
/// milliseconds: it may be the only one.
const GIVEN_TO_OTHERS_MS: u64 = 30_000;

/// The same where nobody waits, or an old state cannot tell: by then it is no crowd any more that makes the objects slow.
const SLOW_MS: u64 = 3_000;

/// A failure so long ago does not say that the objects are silent now, in milliseconds.
const FAILURE_COUNTS_MS: u64 = 60_000;

/// What to do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The visitor is active: to the origin, without a call.
    Pass,
    /// Ask for a number; enter when one is given, else wait.
    Ask(Ask),
    /// Enter if this worker has let in fewer users than this in the current minute, else wait.
    WithinOwnSlots(i64),
    /// Enter without a number: the limits are not looked at.
    Enter,
    /// Turned away: nobody new enters, and nobody waits for it.
    Refuse,
    /// Wait. The state says that asking is in vain.
    Wait,
}

/// A number to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The visitor's bucket.
    pub bucket: u32,
    /// The minute for which the limits hold, by the worker's clock.
    pub minute: u32,
    /// Numbers of the minute that this visitor may reach, before the division into shares; under `leases`, less than
    /// zero, by how many permits must be left to others. `i64::MAX` when the worker's state is too old to say.
    pub limit: i64,
    /// How many of `limit` numbers the colo owns; 0: ask Anywhere at once. Under `leases` always 1.
    pub colo_slots: i64,
}

/// A refusal, remembered for a moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hint {
    minute: u32,
    limit: i64,
    until: u64,
}

impl Hint {
    /// Remembers that `limit` was refused in a minute, for `wait_ms` milliseconds.
    pub fn remember(&mut self, minute: u32, limit: i64, wait_ms: u32, now: u64) {
        let stale = self.minute != minute || now >= self.until;
        // Limits are compared, not times: an older bucket has a larger one and must get past a younger one's refusal.
        if stale || limit >= self.limit {
            self.limit = limit;
            self.until = now + u64::from(wait_ms.min(HINT_MS));
        }
        self.minute = minute;
    }

    /// For how many more milliseconds it is believed.
    pub fn left(&self, now: u64) -> u32 {
        self.until.saturating_sub(now) as u32
    }

    /// Whether asking with this limit is in vain.
    pub fn refuses(&self, minute: u32, limit: i64, now: u64) -> bool {
        self.minute == minute && now < self.until && limit <= self.limit
    }
}

/// Decides for one request. `state` is the cached state key, if there is one; `now` is the worker's clock in
/// milliseconds since the epoch.
pub fn decide(room: &Room, standing: &Standing, state: Option<&Clocked>, now: u64) -> Decision {
    let minute = minute_of(now);
    let waiting_in = match standing {
        Standing::Active(_) => return Decision::Pass,
        Standing::Waiting(ticket) => Some(ticket.bucket),
        Standing::New => None,
    };
    if room.is_closed() {
        return Decision::Wait;
    }
    if room.turns_away() {
        return Decision::Refuse;
    }
    // However old the word is: whoever enters sees errors. Its successor comes with the next report.
    if state.is_some_and(|state| state.key.held && state.age(now) <= FALLBACK_USABLE_MS) {
        return Decision::Wait;
    }
    if room.queueing_method == QueueingMethod::Passthrough {
        return Decision::Enter;
    }
    if room.slot_strategy.counts_alone() {
        return own_slots(room, state, waiting_in, now).map_or(Decision::Wait, Decision::WithinOwnSlots);
    }
    let bucket = waiting_in.unwrap_or(minute);
    let Some((key, time, budget)) = state.filter(|state| state.says_what_to_ask(now)).and_then(|state| {
        let time = state.global_time(now);
        Some((&state.key, time, state.key.budget(room, minute, time)?))
    }) else {
        // What the colo owns is not known; permits are always asked for at its Counter.
        let colo_slots = i64::from(room.slot_strategy.leases_permits());
        return Decision::Ask(Ask { bucket, minute, limit: i64::MAX, colo_slots });
    };
    let protected = key.protected(room, ahead(key, waiting_in));
    let at_most = key.budget_at_most(room, minute, time).unwrap_or(budget);
    // Where the order is random, few enough come here, and each in vain only once in a round: the pool knows better.
    // Not a Counter: it may have numbers left of before an operator lowered the limit.
    let pools = room.slot_strategy.leases_permits();
    let drawn = pools && room.queueing_method == QueueingMethod::Random && waiting_in.is_some();
    if !drawn && at_most - protected <= key.admitted_in(minute) {
        return Decision::Wait;
    }
    if pools {
        // The pool knows what is left; a worker knows only how much of it this visitor must leave to others.
        return Decision::Ask(Ask { bucket, minute, limit: -protected, colo_slots: 1 });
    }
    let limit = budget - protected;
    let colo_slots = key.shares_of(minute).map_or(0, |shares| shares.colo_slots(limit));
    // Anywhere may know more than this state: what it is asked for is limited by what can be true, not by what is
    // known here.
    Decision::Ask(Ask { bucket, minute, limit: at_most - protected, colo_slots })
}

impl Clocked {
    /// Whether it is young enough to say what may be asked of the colo's Counter.
    pub fn says_what_to_ask(&self, now: u64) -> bool {
        self.age(now) <= FRESH_MS
    }
}

/// Users who go first: all who wait, for somebody new; older buckets, for somebody who waits.
fn ahead(key: &StateKey, waiting_in: Option<u32>) -> i64 {
    key.present_ahead(waiting_in)
}

/// The slots of this worker in this minute for the strategies without objects; `None` without a state.
fn own_slots(room: &Room, state: Option<&Clocked>, waiting_in: Option<u32>, now: u64) -> Option<i64> {
    let Some(state) = state.filter(|state| state.age(now) <= USABLE_MS) else {
        // Nothing is known: the limits as configured, for one worker of one colo (2021 article: "based on that we
        // start letting users in"), unless the owner would rather have people wait.
        let admits = room.on_error == OnError::Admit;
        return admits.then(|| i64::from(room.total_active_users.min(room.new_users_per_minute)));
    };
    let key = &state.key;
    let time = state.global_time(now);
    let minute = minute_of(now);
    let budget = key.budget_at_most(room, minute, time)? - key.protected(room, ahead(key, waiting_in));
    let (colo, anywhere) = key.split_by_traffic(budget);
    Some(match room.slot_strategy {
        SlotStrategy::AdaptedWorkerSlots => {
            let utilisation = key.active_at(time) as f64 / key.most_active(room).max(1) as f64;
            adapted_worker_slots(
                colo,
                key.colo_workers,
                anywhere,
                key.all_workers,
                utilisation,
                room.curve_factor,
            )
        }
        _ => worker_slots(colo, f64::from(key.colo_workers), anywhere, f64::from(key.all_workers)),
    })
}

/// What one worker lets in on its own while Counter or Anywhere fail, counted in its memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fallback {
    minute: u32,
    used: i64,
    /// The first failure since an object has answered.
    silent_since: u64,
    /// The last failure, if nothing has answered since; else 0.
    failed_at: u64,
}

impl Fallback {
    /// Lets one user in if fewer than `slots` were let in by this worker in the minute of `now`.
    pub fn take(&mut self, slots: i64, now: u64) -> bool {
        let minute = minute_of(now);
        if minute != self.minute {
            (self.minute, self.used) = (minute, 0);
        }
        let free = self.used < slots;
        if free {
            self.used += 1;
        }
        free
    }

    /// An object has answered.
    pub fn end(&mut self) {
        self.failed_at = 0;
    }

    /// The slots of this worker for an outage: a quarter of what was free, divided as `worker_slots` does; 0 as long
    /// as the objects may be slow only. `None` without a usable state: then `on_error` decides. No object has answered at `now`.
    pub fn slots(
        &mut self,
        room: &Room,
        standing: &Standing,
        state: Option<&Clocked>,
        now: u64,
    ) -> Option<i64> {
        if now > self.failed_at + FAILURE_COUNTS_MS {
            self.silent_since = now;
        }
        self.failed_at = now;
        let state = state.filter(|state| state.age(now) <= FALLBACK_USABLE_MS)?;
        let key = &state.key;
        let told = state.says_what_to_ask(now);
        let given_to_others_ms = if told && !key.nobody_waits() { GIVEN_TO_OTHERS_MS } else { SLOW_MS };
        if now < self.silent_since + given_to_others_ms {
            // Whatever is free is given away, if not here then elsewhere.
            return Some(0);
        }
        let time = state.global_time(now);
        let waiting_in = match standing {
            Standing::Waiting(ticket) => Some(ticket.bucket),
            _ => None,
        };
        let minute = minute_of(now);
        let seconds = now.saturating_sub(start_of(minute)) / 1_000;
        let rate_left = key.most_new(room) - key.admitted_in(minute) - key.unnumbered;
        let paced = rate_left * (seconds as i64 + 1) / 60;
        let free = (key.most_active(room) - key.active_at(time) - key.carry).min(paced)
            - key.protected(room, ahead(key, waiting_in));
        let (colo, anywhere) = key.split_by_traffic(free / FALLBACK_PART);
        Some(worker_slots(colo, f64::from(key.colo_workers), anywhere, f64::from(key.all_workers)))
    }
}
