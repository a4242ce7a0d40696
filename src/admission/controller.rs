//! What one worker remembers of one room, and how it judges a request step by step.

use super::draw::place;
use super::leases::PASSED_ON_MS;
use super::{
    Ask, Clocked, Decision, Draw, DrawKey, FORESEEN_MS, Fallback, Hint, LatestOrder, Level, NumberAsk,
    Outcome, decide, draw, minute_of, round_of,
};
use crate::check_in::POOL_EXPIRY_LAG_MS;
use crate::room::{OnError, QueueingMethod, Room};
use crate::steering::Overrides;
use crate::ticket::Standing;

/// How far a worker's clock may be ahead of the state keys' time, in milliseconds: they take as long to come. As far as a state key's
/// [round trip](StateKey::round_trip_ms), if that took longer.
const CLOCK_AHEAD_MS: u64 = 500;
/// By how much a clock may drift from one state key to the next, in milliseconds.
const DRIFT_MS: i64 = 10;
/// How much later a session is renewed by a worker to which nobody has told the time yet, in milliseconds.
const UNTOLD_MS: u64 = 250;

/// A state key younger than this is not looked for anywhere else, in milliseconds.
const FRESH_MS: u64 = 2_000;
/// Refresh interval of the state key, in the cache and at the data center, in milliseconds.
const LOOK_MS: u64 = 1_000;

/// How long a calm room's state may tell a wait, in milliseconds.
const TELLS_MS: u64 = 4_000;
/// TTL of what the data center said, in milliseconds: an operator may have changed the room since.
const REFRESH_MS: u64 = 2_000;
/// The same where only users come who are in, in milliseconds.
const BACKGROUND_REFRESH_MS: u64 = 10_000;
/// How long a Counter's word on operators' orders holds, in milliseconds.
const LATEST_MS: u64 = 500;
/// Backoff after the second refresh in a row that the data center did not answer, in milliseconds.
const BACKOFF_MS: u64 = 5_000;

/// Which object to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// The colo's Counter.
    Counter,
    /// Anywhere.
    Anywhere,
}

/// What to do next with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The visitor is active: to the origin.
    Pass,
    /// The visitor enters, with a number of this minute, or without one.
    Enter {
        /// The minute to book it to.
        minute: u32,
        /// Whether there is a number or permit for it; not so for fallback admissions.
        numbered: bool,
    },
    /// The visitor waits.
    Wait,
    /// The visitor is turned away: there is nothing to wait for.
    Refuse,
    /// Ask an object, then go on with [`AdmissionController::answered`].
    Ask(Whom, NumberAsk),
}

/// One worker's memory of a room.
#[derive(Debug, Clone, Default)]
pub struct AdmissionController {
    state: Option<Clocked>,
    /// By how much Global's clock is ahead of this worker's, in milliseconds, at least: by the state key that came fastest, or by
    /// what a Counter has said before the first one came; and how long it took to ask: by so many milliseconds more it may be.
    clock_ahead: Option<(i64, u64)>,
    /// Up to which version operators had changed the room, as a Counter has said, and when it said so.
    latest: Option<(u32, u64)>,
    cache_read_at: u64,
    refresh_begun_at: u64,
    backoff_until: u64,
    /// A refresh from the data center is in flight.
    refreshing: bool,
    counter_hint: Hint,
    anywhere_hint: Hint,
    fallback: Fallback,
    level: Level,
    /// The Counter may have permits in stock, by its last answer.
    has_stock: bool,
    /// The last question to the data center was not answered.
    unanswered: bool,
}

impl AdmissionController {
    /// The cached state key.
    pub fn state(&self) -> Option<&Clocked> {
        self.state.as_ref()
    }

    /// The state key by which somebody is told a wait. One that still says that the room is calm, though people wait, would
    /// tell too short a wait.
    pub fn state_to_tell(&self, now: u64) -> Option<&Clocked> {
        self.state_to_check_in_by(now).filter(|state| !state.key.uncounted)
    }

    /// The state key by which somebody is told when to check in. Of one that leaves the own colo's users out what is foreseen is true.
    pub fn state_to_check_in_by(&self, now: u64) -> Option<&Clocked> {
        let overtaken = |state: &Clocked| state.key.level == Level::Calm && state.age(now) > TELLS_MS;
        let unforeseen = |state: &Clocked| state.key.uncounted && state.age(now) > FORESEEN_MS;
        self.state.as_ref().filter(|state| !overtaken(state) && !unforeseen(state))
    }

    /// Keeps the newer of two state keys.
    pub fn learn(&mut self, state: Clocked) {
        if self.state.as_ref().is_none_or(|mine| mine.key.taken_at <= state.key.taken_at) {
            let received_at = state.received_at;
            let ahead = state.global_time(received_at).cast_signed() - received_at.cast_signed();
            // What a Counter has said before the first key was by another machine's clock.
            let before = self.state.as_ref().and(self.clock_ahead);
            let told = (ahead, state.key.round_trip_ms);
            self.clock_ahead = before.map(|(before, more)| (before - DRIFT_MS, more)).max(Some(told));
            self.level = state.key.level;
            self.state = Some(state);
        }
    }

    /// Whether to look for a newer state key in the colo's cache now. Who asks must look.
    pub fn begin_cache_read(&mut self, now: u64) -> bool {
        let old = self.state.as_ref().is_none_or(|state| state.age(now) > FRESH_MS);
        let looks = old && now >= self.cache_read_at + LOOK_MS;
        if looks {
            self.cache_read_at = now;
        }
        looks
    }

    /// Whether to ask the data center for a state key now, to tell somebody who waits how long it takes: when neither
    /// memory nor cache has one that is younger than a refresh. Who asks must call.
    pub fn begin_state_call(&mut self, room: &Room, now: u64) -> bool {
        let old = self.state.as_ref().is_none_or(|state| state.age(now) > room.refresh_ms());
        let asks = old && now >= self.refresh_begun_at + LOOK_MS;
        if asks {
            self.refresh_begun_at = now;
        }
        asks
    }

    /// Whether to refresh the state from the data center, because it is too old: an operator may have changed the room. The
    /// caller must call, and say what came of it: [`AdmissionController::end_refresh`].
    pub fn begin_refresh(&mut self, now: u64) -> bool {
        let asks = self.is_refresh_due(now);
        if asks {
            self.refresh_begun_at = now;
            self.refreshing = true;
        }
        asks
    }

    /// Whether somebody else's refresh is in flight that is younger than `patience_ms`.
    pub fn is_refreshing(&self, patience_ms: u64, now: u64) -> bool {
        self.refreshing && now < self.refresh_begun_at + patience_ms
    }

    /// When a question that is under way is not waited for any longer, in milliseconds since the epoch.
    pub fn refresh_ends(&self, patience_ms: u64) -> u64 {
        self.refresh_begun_at + patience_ms
    }

    /// The same for active users: what may have changed concerns them little.
    pub fn begin_background_refresh(&mut self, now: u64) -> bool {
        let old = self.state.as_ref().is_none_or(|state| now >= state.received_at + BACKGROUND_REFRESH_MS);
        old && self.begin_refresh(now)
    }

    /// Whether the state is old enough to be refreshed.
    pub fn is_refresh_due(&self, now: u64) -> bool {
        let old = self.state.as_ref().is_none_or(|state| now >= state.received_at + REFRESH_MS);
        old && now >= (self.refresh_begun_at + LOOK_MS).max(self.backoff_until)
    }

    /// Ends a refresh at `now`: whether the data center has answered. One question may get lost, and an order be known in time
    /// all the same.
    pub fn end_refresh(&mut self, answered: bool, now: u64) {
        self.refreshing = false;
        let was_unanswered = std::mem::replace(&mut self.unanswered, !answered);
        self.backoff_until = if answered || !was_unanswered { 0 } else { now + BACKOFF_MS };
    }

    /// Nobody waits for the refresh any more whose caller has got word another way: whoever needs it asks anew.
    pub fn leave_refresh(&mut self) {
        (self.refreshing, self.refresh_begun_at) = (false, 0);
    }

    /// A Counter says up to which version operators had changed the room a moment ago.
    pub fn told_order(&mut self, order: LatestOrder, now: u64) {
        self.latest = Some((order.version, now));
        if self.state.is_none() {
            self.clock_ahead = Some((order.time.cast_signed() - now.cast_signed(), PASSED_ON_MS));
        }
    }

    /// Whether this worker, which has no state key yet, may go by a version of what operators have changed without one.
    pub fn is_latest(&self, version: u32, now: u64) -> bool {
        let told = |(latest, at)| latest == version && now < at + LATEST_MS;
        self.state.is_none() && self.latest.is_some_and(told)
    }

    /// What operators have changed, as far as this worker knows.
    pub fn overrides(&self) -> &Overrides {
        self.state.as_ref().map_or(Overrides::none(), |state| &state.key.steering)
    }

    /// Whether an operator looks at the room, as far as this worker knows.
    pub fn watched(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.key.watched)
    }

    /// The time to go by: this worker's own clock, corrected by what the state key says when the two are far apart.
    /// Otherwise a session would end early for everyone in a colo whose clock is behind.
    pub fn time(&self, now: u64) -> u64 {
        self.clock_ahead.map_or(now, |(ahead, more)| {
            let known = now.saturating_add_signed(ahead);
            now.clamp(known, known + more.max(CLOCK_AHEAD_MS))
        })
    }

    /// The time by which a session is renewed, in milliseconds since the epoch, at `now` by this worker's clock: up to a quarter of a
    /// second later than [`AdmissionController::time`] where that may be behind. Else the slot would be given again before the session
    /// has ended.
    pub fn renewal_time(&self, now: u64) -> u64 {
        let time = self.time(now);
        let latest = self.clock_ahead.map(|(ahead, more)| now.saturating_add_signed(ahead) + more);
        // By as much as a session counts after its end in any case, a clock may be behind.
        time + latest
            .map_or(UNTOLD_MS, |latest| latest.saturating_sub(time + POOL_EXPIRY_LAG_MS).min(UNTOLD_MS))
    }

    /// How near the room is to its limits, as far as this worker knows.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Somebody has to wait without having asked. Whether to tell the Counter so, which may have permits in stock that nobody
    /// asks for any more. Who asks must tell.
    pub fn begin_giving_back(&mut self) -> bool {
        std::mem::take(&mut self.has_stock)
    }

    /// The lot of a request, where the order is random: see [`draw`](super::draw()).
    pub fn draw(&self, room: &Room, key: &DrawKey, standing: &Standing, now: u64) -> Option<Draw> {
        draw(room, key, standing, self.state.as_ref(), now)
    }

    /// The first step for a request. `id` is the ticket's id; a new visitor's is drawn already.
    pub fn judge(&mut self, room: &Room, standing: &Standing, id: u64, now: u64) -> Step {
        let ask = match decide(room, standing, self.state.as_ref(), now) {
            Decision::Pass => return Step::Pass,
            Decision::Wait => return Step::Wait,
            Decision::Refuse => return Step::Refuse,
            Decision::Enter => return Step::Enter { minute: minute_of(now), numbered: false },
            Decision::WithinOwnSlots(slots) => return self.own_slots(slots, true, now),
            Decision::Ask(ask) => ask,
        };
        let waits = matches!(standing, Standing::Waiting(_));
        // Who has the turn of an address is known at the Counter.
        let claims = room.one_place_per_address && !waits;
        let Ask { bucket, minute, limit, colo_slots: owned } = ask;
        // Where the order is random, of those who ask together it is not the oldest who goes first.
        let bucket = if room.queueing_method == QueueingMethod::Random {
            place(id, round_of(room, id, now))
        } else {
            bucket
        };
        let wanted = NumberAsk { id, bucket, waits, minute, limit, owned };
        if claims && room.slot_strategy.owns_shares() {
            Step::Ask(Whom::Counter, wanted)
        } else if owned <= 0 {
            self.ask_anywhere(wanted, now)
        } else if !self.counter_hint.refuses(minute, limit, now) {
            Step::Ask(Whom::Counter, wanted)
        } else if room.slot_strategy.leases_permits() {
            Step::Wait
        } else {
            self.ask_anywhere(wanted, now)
        }
    }

    /// The next step, when an object has answered an ask, or has not (`None`).
    pub fn answered(
        &mut self,
        room: &Room,
        standing: &Standing,
        (whom, ask): (Whom, NumberAsk),
        outcome: Option<Outcome>,
        now: u64,
    ) -> Step {
        let leases = room.slot_strategy.leases_permits();
        if matches!(outcome, Some(Outcome::Given { .. } | Outcome::Refused { .. })) {
            self.fallback.end();
        }
        match (whom, outcome) {
            (_, Some(Outcome::Given { minute, .. })) => Step::Enter { minute, numbered: true },
            (Whom::Counter, Some(Outcome::Refused { minute, limit, wait_ms })) => {
                self.has_stock = false;
                self.counter_hint.remember(minute, limit, wait_ms, now);
                if leases { Step::Wait } else { self.ask_anywhere(ask, now) }
            }
            (Whom::Anywhere, Some(Outcome::Refused { minute, limit, wait_ms })) => {
                self.anywhere_hint.remember(minute, limit, wait_ms, now);
                Step::Wait
            }
            // A Counter that does not answer leaves Anywhere to ask. A crowd of them would be too much for the pool of permits.
            (Whom::Counter, None) if !leases => self.ask_anywhere(ask, now),
            (_, None | Some(Outcome::Unknown)) => {
                match self.fallback.slots(room, standing, self.state.as_ref(), now) {
                    Some(slots) => self.own_slots(slots, false, now),
                    None if room.on_error == OnError::Admit => {
                        Step::Enter { minute: minute_of(now), numbered: false }
                    }
                    None => Step::Wait,
                }
            }
        }
    }

    fn ask_anywhere(&self, ask: NumberAsk, now: u64) -> Step {
        if self.anywhere_hint.refuses(ask.minute, ask.limit, now) {
            Step::Wait
        } else {
            Step::Ask(Whom::Anywhere, ask)
        }
    }

    fn own_slots(&mut self, slots: i64, numbered: bool, now: u64) -> Step {
        if self.fallback.take(slots, now) {
            Step::Enter { minute: minute_of(now), numbered }
        } else {
            Step::Wait
        }
    }

    /// A Counter says how full the room is. That may end the calm, but not begin it: how late reports of a calm room are is
    /// known only where the state key says that it is calm.
    pub fn told_level(&mut self, level: Level) {
        self.has_stock = level != Level::Queueing;
        self.level = level.max(self.state.as_ref().map_or(Level::Busy, |state| state.key.level));
    }
}
