//! The Anywhere object under leases: the pool of permits.

use std::collections::VecDeque;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::super::{Clocked, HINT_MS, Remembered, Renewal, StateKey, minute_of, start_of};
use super::rate::Rate;
use super::window::Window;
use super::{
    EXACT_UP_TO, Group, LeaseAnswer, LeaseAsk, Level, RATE_MS, REACHES_MS, REACHES_WORKER_MS, Returned,
    TOLD_MINUTES, has_small_stocks, minute_of_entry,
};
use crate::room::{Location, RateWindow, Room};
use crate::steering::Overrides;
use crate::wire::VERSION;

/// After a breakdown it assumes that permits were given for this time at the latest rate, in milliseconds: half as long again as
/// the time between two records. Where more is given than that, answers wait for a record.
const ASSUMED_MS: i64 = 1_500;
/// A state older than this is renewed in the background while permits are asked for.
const RENEW_MS: u64 = 100;
/// A state older than this is renewed before anyone is judged by it, if it can be had.
const TOO_OLD_MS: u64 = 500;
/// A state older than this says nothing any more: nobody is let in by it.
const UNUSABLE_MS: u64 = 5_000;
/// A minute whose visitors must all have been reported: what was given in it and is not counted by then is lost.
const ON_THE_WAY_MS: u64 = 3_000;
/// Minutes of use that are kept.
const KEPT_MINUTES: u32 = 4;
/// The most colos that are known; one more is served without a stock.
pub const MAX_LESSEES: usize = 1_000;
/// How long a colo counts as active after its last call, in milliseconds.
const ACTIVE_MS: u64 = 5_000;
/// The mean time between calls of all colos together where they come fast, in microseconds.
const PACE_MICROS: u64 = 3_500;
/// No colo waits longer than this for its turn, in milliseconds. Whoever asks just after a call waits for its answer, for the
/// turn and for the next answer, each of which may take a recall; and a worker waits for all that for three seconds.
const LONGEST_TURN_MS: u64 = 700;
/// From this many calls per second on, colos are asked to come slower; so much with twice as many, and slower with more.
const PACED_FROM: u64 = 230;
/// The same while people wait, and a call of each colo in so many seconds, if that is more: where there are many colos, slots
/// would stand idle while each waits for its turn.
const PACED_WHILE_QUEUEING_FROM: u64 = 110;
const PACED_PER_COLO_SECONDS: u64 = 2;
/// So many calls in a second, and half as many as colos have called of late, are those of one crowd that comes to all of them.
const RUSH_FROM: u64 = 10;
/// So many permits must be left for each of these colos: one in each may count as used that was not.
const RUSH_LEFT: i64 = 3;
/// The shortest lease, in milliseconds. What is needed sooner is called back.
const SHORTEST_MS: u64 = 10_000;
/// The longest lease of a stock larger than [`FEW`], in milliseconds.
const LONG_MS: u64 = 300_000;
/// The lease of few permits, in milliseconds: so long a colo with few visitors goes without a call.
const LONGEST_MS: u64 = 3_600_000;
/// So few permits are no loss if their Counter never comes back.
pub const FEW: i64 = 8;
/// A stock may be this part of a colo's share, so that a crowd finds something there.
const SHARE_PART: i64 = 4;
/// The same with `rate_window = "sliding"`: what is used of a stock counts later than it should, by the time until the next call.
const SLIDING_SHARE_PART: i64 = 5;
/// So many of its share a colo may hold in any case: one for the next visitor, and one for another who comes until the pool has
/// answered.
const NEXT_ONES: i64 = 2;
/// A colo may hold at most so many times what it has used: in a room's first moments those who are told of first would hold all.
const TIMES_USED: i64 = 2;
/// For so long after its start the pool takes colos of which it knows nothing for as busy as the others, in milliseconds.
const LEARNS_MS: u64 = 2_000;
/// The part of what may lie in stocks, in eighths, that lies at the regions' Counters, but at most [`FEW`] at each: with little,
/// a place for many colos is better than one for each.
const REGIONS_EIGHTHS: i64 = 3;
/// How many regions there are: a location may also be left to the platform.
const REGIONS: i64 = Location::ALL.len() as i64 - 1;
/// How long the pool counts a lease after its end, in milliseconds: the answer was on the way, and the use is told with
/// the next call.
const LEASE_GRACE_MS: u64 = 2_000;
/// How much lies in stocks.
#[derive(Debug)]
struct Stocks {
    /// A stock is for what is used in this time, in milliseconds.
    soon_ms: i64,
    /// The part of what is left, or lies in stocks already, that is shared out, in eighths.
    shared_eighths: i64,
    /// The most of it that may lie in stocks at a time, in eighths.
    most_eighths: i64,
    /// How long nothing is laid in stock after a recall, in milliseconds.
    after_recall_ms: u64,
}
/// See [`has_small_stocks`].
const FEW_IN_STOCK: Stocks =
    Stocks { soon_ms: 15_000, shared_eighths: 4, most_eighths: 4, after_recall_ms: 2_000 };
/// Elsewhere a crowd finds stocks. What is laid there soon after a recall can be called back at once.
const MANY_IN_STOCK: Stocks =
    Stocks { soon_ms: 5_000, shared_eighths: 6, most_eighths: 8, after_recall_ms: 100 };
/// How long the stock of a Counter that has started anew counts as held, in milliseconds: the instance before it may go on
/// for a moment. Then it counts as used.
const OVERTAKEN_MS: u64 = 5_000;
/// How long somebody waits at most for permits that are called back, in milliseconds.
pub const RECALL_WAITS_MS: u64 = 700;
/// The most Counters that are called back at a time: those with the most permits. The nearest answers first.
const MOST_RECALLED: usize = 300;
/// The part of what is left, in quarters, that colos may use together if the pool falls silent, less what is used in
/// [`SPARE_AFTER_MS`] at the current rate: by then the room's state tells of it.
const SPARE_QUARTERS: i64 = 3;
/// See [`SPARE_QUARTERS`], in milliseconds.
const SPARE_AFTER_MS: i64 = 10_000;
/// The shortest time for which a refusal holds, in milliseconds.
const SHORTEST_WAIT_MS: u32 = 100;
/// A slot is reserved for a session that was renewed in its last moment, until the state is newer than that by this time,
/// in milliseconds.
const RESERVED_MS: u64 = 6_000;
/// How long a ticket has no other slot reserved, in milliseconds: a renewed session lasts a minute at least.
const RESERVED_AGAIN_MS: u64 = 50_000;
/// The most slots that are reserved so.
const MAX_RESERVED: usize = 10_000;

/// How many permits are assumed to have been given since the last record, by the rate that it tells.
fn assumed_at(rate: i64) -> i64 {
    (rate * ASSUMED_MS / RATE_MS as i64).max(1)
}

/// The larger count of each minute: what was used is told in absolute counts.
fn most_of(one: &[(u32, u64)], other: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let mut most: LiteMap<u32, u64> = one.iter().copied().collect();
    for (minute, used) in other {
        let known = most.entry(*minute).or_insert(0);
        *known = (*known).max(*used);
    }
    most.into_iter().collect()
}

/// What the pool knows of one colo's Counter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Lessee {
    epoch: u64,
    sequence: u64,
    /// Permits held, as it said.
    permits: u32,
    /// Until when, by the pool's clock.
    until: u64,
    /// Permits used, by minute, as it said.
    used: Vec<(u32, u64)>,
    /// Given with the last answer, which may not have arrived: the minute, to visitors, for the stock.
    unconfirmed: (u32, u32, u32),
    rate: u32,
    /// When its last call came; once that is answered, when its answer left.
    called_at: u64,
    /// When its permits were called back; 0: they have come. Whoever answers what is not news is not called again at once.
    #[serde(skip)]
    recalled_at: u64,
    /// What it said in calls up to this one it said before they were called back.
    #[serde(skip)]
    returned: u64,
    /// The minutes in which Counters of the colo that have gone had used permits.
    #[serde(skip)]
    used_before: Vec<u32>,
}

impl Lessee {
    fn used_in(&self, minute: u32) -> i64 {
        let told = self.used.iter().find(|(of, _)| *of == minute).map_or(0, |(_, used)| *used as i64);
        told + if self.unconfirmed.0 == minute { i64::from(self.unconfirmed.1) } else { 0 }
    }

    /// Whether visitors of it have permits of a minute.
    fn has_used(&self, minute: u32) -> bool {
        let told = self.used.iter().any(|(of, _)| *of == minute);
        told || self.used_in(minute) > 0 || self.used_before.contains(&minute)
    }

    /// In the minute before `minute` or later: what was used earlier was used more than 60 seconds ago.
    fn used_lately(&self, minute: u32) -> i64 {
        (minute.saturating_sub(1)..=minute + 1).map(|of| self.used_in(of)).sum()
    }

    /// Given to visitors with the last answer, and when it has reached them at the latest.
    fn given(&self) -> (i64, u64) {
        (i64::from(self.unconfirmed.1), self.called_at + REACHES_MS)
    }

    /// Whether it has called of late.
    fn is_active(&self, now: u64) -> bool {
        now < self.called_at + ACTIVE_MS
    }

    /// Permits used per ten minutes. A colo that lives on its stock has no need to call.
    fn rate(&self, now: u64) -> u64 {
        if self.is_active(now) || now < self.until { u64::from(self.rate) } else { 0 }
    }

    fn out(&self) -> i64 {
        i64::from(self.permits) + i64::from(self.unconfirmed.2)
    }
}

/// What the pool keeps in storage. It is written in the background, so a restart may find an old one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SavedPool {
    /// Format version.
    pub v: u8,
    lessees: Vec<(String, Lessee)>,
    ended: Vec<(u32, i64)>,
    /// Permits used per ten minutes, at the current rate.
    rate: u32,
    /// Whether it was written after the last permit.
    settled: bool,
    /// See [`Pool::booked`].
    booked: Option<Vec<(u32, i64)>>,
}

/// The pool: every permit that is out, and what the room has left.
#[derive(Debug, Clone)]
pub struct Pool {
    state: Option<Clocked>,
    lessees: LiteMap<String, Lessee>,
    /// Used permits of no known colo, by minute: given here, of Counters that have gone, assumed after a breakdown.
    ended: LiteMap<u32, i64>,
    /// Permits of Counters that have started anew, and until when they count as held.
    overtaken: Vec<(u64, i64)>,
    /// Sums over the colos: held, and used by minute.
    out: i64,
    used: LiteMap<u32, i64>,
    /// For rooms with `rate_window = "sliding"`: permits used. Until then a permit counts as out, so each counts for at least 60
    /// seconds after its use.
    booked: Option<Window>,
    /// Sums over the colos: permits used per ten minutes at their current rates, and how many have called of late.
    rates: u64,
    active_colos: u64,
    /// When it started, in milliseconds since the epoch.
    begun_at: u64,
    calls: Rate,
    swept_at: u64,
    changed_at: u64,
    recalled_at: u64,
    /// Permits given since the last record, and how many of them a restart assumes by it.
    unsaved: i64,
    assumed: i64,
    /// See [`EXACT_UP_TO`].
    exact: bool,
    /// How much may lie in stocks in such a room.
    stocks: &'static Stocks,
    /// When sessions were renewed in their last moment.
    reserved: VecDeque<u64>,
    /// Since when, by ticket.
    reserved_for: Remembered<u64>,
    /// When the room's settings change: no lease lasts longer.
    changes_at: Option<u64>,
    /// Of minutes of which Counters do not tell any more, for a session: permits used, and by how many colos. It is not stored: after
    /// a restart what Counters tell is known, and no more.
    past: LiteMap<u32, (i64, u32)>,
}

/// Whether a Counter is a region's.
fn serves_region(colo: &str) -> bool {
    Location::hint_of(colo).is_some()
}

impl SavedPool {
    /// What to start from where a record is there and cannot be read: all that the room allows in this minute may have
    /// been given.
    pub fn lost(room: &Room, now: u64) -> Self {
        let given = i64::from(room.new_users_per_minute);
        Self { v: VERSION, ended: vec![(minute_of(now), given)], settled: true, ..Self::default() }
    }
}

impl Pool {
    /// The pool at its start, with what it saved before, if anything. After a breakdown it goes on with an
    /// over-estimate of what was given since.
    pub fn restore(saved: Option<SavedPool>, now: u64) -> Self {
        let mut pool = Self {
            state: None,
            lessees: LiteMap::new(),
            ended: LiteMap::new(),
            overtaken: Vec::new(),
            out: 0,
            used: LiteMap::new(),
            booked: Some(Window::of(&[], now)),
            rates: 0,
            active_colos: 0,
            begun_at: now,
            calls: Rate::over(1_000),
            swept_at: 0,
            changed_at: 0,
            recalled_at: 0,
            unsaved: 0,
            assumed: 0,
            exact: false,
            stocks: &MANY_IN_STOCK,
            reserved: VecDeque::new(),
            reserved_for: Remembered::new(RESERVED_AGAIN_MS, MAX_RESERVED),
            changes_at: None,
            past: LiteMap::new(),
        };
        let Some(saved) = saved else { return pool };
        for (minute, used) in saved.ended {
            pool.ended.insert(minute, used);
        }
        for (colo, lessee) in saved.lessees {
            pool.lessees.insert(colo, lessee);
        }
        let minute = minute_of(now);
        let mut assumed = 0;
        if !saved.settled {
            assumed = assumed_at(i64::from(saved.rate));
            *pool.ended.entry(minute).or_insert(0) += assumed;
        }
        pool.sum_up(now);
        if let Some(booked) = saved.booked {
            pool.booked = Some(Window::of(&booked, now));
            pool.book(assumed, now + REACHES_MS);
        } else {
            // Nobody knows any more when it was: now is the latest that it can have been.
            pool.book(pool.used_lately(minute), now);
        }
        pool
    }

    /// What to write to storage. `settled`: nothing is being given while it is written.
    pub fn save(&mut self, settled: bool) -> SavedPool {
        let (mut ended, mut booked) = (self.ended.clone(), self.booked.clone());
        for (until, permits) in &self.overtaken {
            *ended.entry(minute_of(*until)).or_insert(0) += permits;
            if let Some(booked) = &mut booked {
                booked.book(*permits, *until);
            }
        }
        (self.unsaved, self.assumed) = (0, assumed_at(self.rates as i64));
        SavedPool {
            v: 1,
            lessees: self.lessees.iter().map(|(colo, lessee)| (colo.clone(), lessee.clone())).collect(),
            ended: ended.into_iter().collect(),
            rate: self.rates as u32,
            settled: settled || self.exact,
            booked: booked.map(|booked| booked.seconds()),
        }
    }

    /// Whether a restart would count all that was given, by the last record and what it assumes.
    pub fn is_covered(&self) -> bool {
        self.unsaved <= if self.exact { 0 } else { self.assumed }
    }

    /// When the last permit was given, in milliseconds since the epoch.
    pub fn changed_at(&self) -> u64 {
        self.changed_at
    }

    /// Whether the room's state must be fetched from Global.
    pub fn renewal(&self, now: u64) -> Renewal {
        match &self.state {
            Some(state) if state.age(now) < TOO_OLD_MS => {
                if now.saturating_sub(state.received_at) < RENEW_MS {
                    Renewal::Fresh
                } else {
                    Renewal::Background
                }
            }
            _ => Renewal::First,
        }
    }

    /// What operators have changed, as far as Global has told.
    pub fn overrides(&self) -> &Overrides {
        self.state.as_ref().map_or(Overrides::none(), |state| &state.key.steering)
    }

    /// Whether it has ever been told the room's state.
    pub fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// The room's settings will change at a time, if at any. Whoever leases permits gives back by then what is left of
    /// them: in a prequeue nobody enters, and an event may have other limits.
    pub fn changes_at(&mut self, time: Option<u64>) {
        self.changes_at = time;
    }

    /// Takes in a newer state, at `now` in milliseconds since the epoch. While Global has forgotten who has just begun to wait, those of
    /// the state before count too: newcomers would pass them.
    pub fn renew(&mut self, mut key: StateKey, now: u64) {
        if self.state.as_ref().is_some_and(|state| state.key.taken_at > key.taken_at) {
            return;
        }
        let before = self.state.take().filter(|state| key.forgotten && state.age(now) < UNUSABLE_MS);
        if let Some(Clocked { key: before, .. }) = before {
            key.add_waiting(&before);
        }
        self.state = Some(Clocked { key, received_at: now });
    }

    /// Ends leases, forgets old minutes, and adds everything up anew.
    fn sweep(&mut self, room: &Room, now: u64) {
        if room.rate_window != RateWindow::Sliding {
            self.booked = None;
        }
        if now < self.swept_at + RENEW_MS && minute_of(now) == minute_of(self.swept_at) {
            return;
        }
        self.keep_past(room, now);
        self.swept_at = now;
        let minute = minute_of(now);
        let mut gone = Vec::new();
        let mut lost = Vec::new();
        for (colo, lessee) in self.lessees.iter_mut() {
            if lessee.out() > 0 && now >= lessee.until + LEASE_GRACE_MS {
                // Some of it may have been used without our knowing: it counts as used, at the latest when the lease
                // ended, until that is settled.
                *self.ended.entry(minute_of(lessee.until).min(minute)).or_insert(0) += lessee.out();
                lost.push((lessee.out(), lessee.until + REACHES_WORKER_MS));
                lessee.permits = 0;
                lessee.unconfirmed.2 = 0;
            }
            if lessee.out() == 0 && now >= lessee.called_at + u64::from(KEPT_MINUTES) * 60_000 {
                gone.push(colo.clone());
            }
        }
        for colo in gone {
            self.lessees.remove(&colo);
        }
        for (permits, at) in lost {
            self.book(permits, at);
        }
        if let Some(booked) = &mut self.booked {
            booked.pass(now);
        }
        let over: Vec<(u64, i64)> = self.overtaken.extract_if(.., |(until, _)| now >= *until).collect();
        for (until, permits) in over {
            *self.ended.entry(minute_of(until)).or_insert(0) += permits;
            self.book(permits, until);
        }
        self.ended.retain(|of, _| of + KEPT_MINUTES > minute);
        self.exact = room.total_active_users <= EXACT_UP_TO;
        self.stocks = if has_small_stocks(room) { &FEW_IN_STOCK } else { &MANY_IN_STOCK };
        while self.reserved.front().is_some_and(|at| at + 2 * RESERVED_MS < now) {
            self.reserved.pop_front();
        }
        self.sum_up(now);
    }

    /// Keeps what was used in minutes of which Counters do not tell any more, for a session: what a colo had not reported when it
    /// ended nobody will count.
    fn keep_past(&mut self, room: &Room, now: u64) {
        for (of, used) in self.used.iter().filter(|(of, _)| **of + TOLD_MINUTES <= minute_of(now)) {
            let colos = self.colos_used(*of);
            let past = self.past.entry(*of).or_insert((0, 0));
            *past = (past.0.max(*used), past.1.max(colos));
        }
        self.past.retain(|of, _| now < start_of(*of + 1) + room.session_ms());
    }

    /// Adds (`sign` 1) what a colo has and uses, or takes it off.
    fn count(&mut self, lessee: &Lessee, sign: i64, now: u64) {
        let minute = minute_of(now);
        self.active_colos = self.active_colos.saturating_add_signed(sign * i64::from(lessee.is_active(now)));
        self.rates = self.rates.saturating_add_signed(sign * lessee.rate(now) as i64);
        self.out += sign * lessee.out();
        for of in minute.saturating_sub(KEPT_MINUTES)..=minute + 1 {
            let used = lessee.used_in(of);
            if used != 0 {
                *self.used.entry(of).or_insert(0) += sign * used;
            }
        }
    }

    fn used_lately(&self, minute: u32) -> i64 {
        (minute.saturating_sub(1)..=minute + 1).filter_map(|of| self.used.get(&of)).sum()
    }

    /// Books (or takes back, if negative) permits that were used at the latest at a time.
    fn book(&mut self, used: i64, at: u64) {
        if let Some(booked) = &mut self.booked {
            booked.book(used, at);
        }
    }

    /// What a colo's last answer gave to visitors has reached them by `now`: returns when it counts as used.
    fn reached(&mut self, known: &Lessee, now: u64) -> u64 {
        let (given, at) = known.given();
        let used_at = at.min(now + REACHES_WORKER_MS);
        self.book(-given, at);
        self.book(given, used_at);
        used_at
    }

    /// Permits of a stock that were used last, as far as the Counter tells when: how long ago it was when it called.
    fn book_used(&mut self, mut used: i64, recent: &[(u32, u64)], now: u64) {
        for (permits, ago_ms) in recent.iter().rev() {
            let permits = used.min(i64::from(*permits));
            self.book(permits, now.saturating_sub(*ago_ms) + REACHES_WORKER_MS);
            used -= permits;
        }
        self.book(used, now + REACHES_WORKER_MS);
    }

    /// Permits that were used, or may have been, and that no colo will speak of any more.
    fn end(&mut self, minute: u32, used: i64) {
        if used != 0 {
            *self.ended.entry(minute).or_insert(0) += used;
            *self.used.entry(minute).or_insert(0) += used;
        }
    }

    fn sum_up(&mut self, now: u64) {
        self.used = self.ended.clone();
        self.out = self.overtaken.iter().map(|(_, permits)| permits).sum();
        self.rates = 0;
        self.active_colos = 0;
        let lessees = std::mem::take(&mut self.lessees);
        for lessee in lessees.values() {
            self.count(lessee, 1, now);
        }
        self.lessees = lessees;
    }

    /// Reserves a slot for a session that was renewed in its last moment: the report takes longer to get here than what was
    /// left of it. A ticket has one slot at a time, however many of its requests come, by however old cookies. `id`: the
    /// ticket's, where it is known.
    pub fn reserve_session(&mut self, id: Option<u64>, now: u64) {
        if let Some(id) = id {
            if self.reserved_for.get(id).is_some_and(|at| now < at + RESERVED_AGAIN_MS) {
                return;
            }
            self.reserved_for.put(id, now, now);
        }
        if self.reserved.len() >= MAX_RESERVED {
            self.reserved.pop_front();
        }
        self.reserved.push_back(now);
    }

    /// How many colos have used permits in a minute, of their own or of their region.
    fn colos_used(&self, minute: u32) -> u32 {
        let has_used = |(colo, lessee): &(&String, &Lessee)| lessee.has_used(minute) && !serves_region(colo);
        self.lessees.iter().filter(has_used).count() as u32
    }

    /// Of those who have used permits in a minute, how many wait to be counted, as far as a state can tell. `colos`: how many colos
    /// have used some.
    fn unreported(
        room: &Room,
        state: &Clocked,
        minute: u32,
        used: i64,
        colos: impl FnOnce() -> u32,
        now: u64,
    ) -> i64 {
        let key = &state.key;
        // More than we know of are inside where a colo has used its spare permits while it could not reach us.
        let untold = (used - key.admitted_of(minute)).max(0);
        // By our own clock: how late reports are is a length of time, which needs no common clock.
        let covered = state.received_at.saturating_sub(key.age + key.taken_at.saturating_sub(key.covered));
        let ended = start_of(minute + 1);
        let is_covered = ended + ON_THE_WAY_MS <= covered;
        // Of a colo that is new, or has slept, nobody knows that a report is missing.
        let is_missing = || key.colos_of(minute).is_some_and(|told| told < colos());
        let waits = untold > 0 && (!is_covered || now < ended + room.session_ms() && is_missing());
        if waits { untold } else { 0 }
    }

    /// How many more may enter now: by the active users, and by the rate. `None` when no state can tell.
    fn left(&self, room: &Room, now: u64) -> Option<(i64, i64)> {
        let state = self.state.as_ref().filter(|state| state.age(now) < UNUSABLE_MS)?;
        let key = &state.key;
        let minute = minute_of(now);
        let lately = self.used.iter().filter(|(of, _)| **of + TOLD_MINUTES > minute);
        let lately =
            lately.map(|(of, used)| Self::unreported(room, state, *of, *used, || self.colos_used(*of), now));
        let past = self.past.iter().filter(|(of, _)| key.colos_of(**of).is_some());
        let past = past.map(|(of, (used, colos))| Self::unreported(room, state, *of, *used, || *colos, now));
        let unreported: i64 = lately.chain(past).sum();
        let told_until = state.received_at.saturating_sub(key.age);
        let reserved = self.reserved.iter().filter(|at| **at + RESERVED_MS > told_until).count() as i64;
        let out = (unreported + self.out).max(0) + reserved;
        let free = key.most_active(room) - key.active_foreseen(state.global_time(now)) - out;
        // What counts for the next minute may have entered in this one.
        let used: i64 = (minute..=minute + 1).filter_map(|of| self.used.get(&of)).sum();
        let used = used.max(key.admitted_of(minute));
        let mut rate = key.may_enter(room, minute, now) - used;
        if let Some(booked) = &self.booked {
            let lately = || minute.saturating_sub(1)..=minute;
            // What the pool has not been told of stays in this for two minutes.
            let untold = lately().map(|of| key.admitted_of(of)).sum::<i64>() - self.used_lately(minute);
            let unnumbered = lately().map(|of| key.unnumbered_of(of)).sum::<i64>();
            let entered = booked.sum() + untold.max(0) + unnumbered;
            rate = rate.min(key.most_new(room) - entered);
        }
        Some((free, rate - self.out))
    }

    /// How near the room is to its limits. `all_have_room`: nobody waits for whom there is no slot.
    fn level(&self, room: &Room, key: &StateKey, free: i64, all_have_room: bool) -> Level {
        // What lies in stocks does not fill the room.
        let filled = key.most_active(room) - free - self.out;
        // Reports of a calm room are old; what Counters say of their traffic is new.
        let entering = self.rates.max(u64::from(key.entering));
        Level::of(room, key.limits(room), filled, entering, all_have_room)
    }

    /// The answer to a call that gets nothing: it came twice, or was overtaken, or there are too many colos.
    pub fn nothing(&self, ask: &LeaseAsk, now: u64) -> LeaseAnswer {
        LeaseAnswer {
            v: 1,
            sequence: ask.sequence,
            now,
            given: vec![(0, 0); ask.groups.len()],
            extra: 0,
            most: ask.permits,
            usable_ms: SHORTEST_MS as u32,
            // Nothing will have changed sooner for it.
            pace_ms: LONGEST_TURN_MS as u32,
            level: Level::Busy,
            wait_ms: HINT_MS,
            spare: 0,
            steering: self.overrides().version,
            is_latest: false,
            in_rush: false,
        }
    }

    /// Answers a colo's call. `None` when no state can tell how many may enter: its visitors fall back.
    pub fn lease(&mut self, room: &Room, colo: &str, ask: &LeaseAsk, now: u64) -> Option<LeaseAnswer> {
        if self.hear(room, colo, ask, now) {
            self.give(room, colo, ask, now)
        } else {
            Some(self.nothing(ask, now))
        }
    }

    /// Takes in what a colo's call says of its permits. Returns whether it is news: then what it asks for is given once, by
    /// [`Pool::give`].
    pub fn hear(&mut self, room: &Room, colo: &str, ask: &LeaseAsk, now: u64) -> bool {
        self.sweep(room, now);
        self.calls.count(1, now);
        let minute = minute_of(now);
        let mut known = match self.lessees.remove(colo) {
            Some(known) if known.epoch == ask.epoch && ask.sequence <= known.sequence => {
                // An older call that was overtaken: whoever sent it does not wait for it any more.
                self.lessees.insert(colo.to_owned(), known);
                return false;
            }
            Some(known) => known,
            None if self.lessees.len() >= MAX_LESSEES => return false,
            None => Lessee { epoch: ask.epoch, ..Lessee::default() },
        };
        self.count(&known, -1, now);
        if known.epoch != ask.epoch {
            known = self.overtake(&known, ask.epoch, now);
        }
        // Given with the last answer and booked then. What of it is not used is void, or lies in stock.
        let given = if known.unconfirmed.0 + 1 >= minute { i64::from(known.unconfirmed.1) } else { 0 };
        let void = if ask.last_answered < known.sequence { given } else { 0 };
        let told = known.used_lately(minute) - void;
        // An answer that did not arrive gave nothing; what arrived is in what the Counter says, and was used once it had.
        let used_at = self.reached(&known, now);
        self.book(-void, used_at);
        known.unconfirmed = (minute, 0, 0);
        known.sequence = ask.sequence;
        known.rate = ask.rate;
        known.called_at = now;
        if ask.sequence <= known.returned {
            // It was on its way when the permits were called back.
            known.used = most_of(&known.used, &ask.used);
        } else {
            known.permits = ask.permits;
            known.used.clone_from(&ask.used);
            // Workers of 0.1.0 may have some on loan.
            known.until = known.until.max(now + u64::from(ask.lent_ms));
        }
        self.count(&known, 1, now);
        let more = known.used_lately(minute) - told;
        if more < 0 {
            self.book(more.max(void - given), used_at);
        } else {
            self.book_used(more, &ask.recent, now);
        }
        self.lessees.insert(colo.to_owned(), known);
        true
    }

    /// A Counter has started anew: what it held and used it does not know any more. The stock may still be used by the
    /// instance before it.
    fn overtake(&mut self, known: &Lessee, epoch: u64, now: u64) -> Lessee {
        let minutes = minute_of(now).saturating_sub(KEPT_MINUTES)..=minute_of(now) + 1;
        for of in minutes.clone() {
            self.end(of, known.used_in(of));
        }
        if known.out() > 0 {
            self.overtaken.push((now + OVERTAKEN_MS, known.out()));
            self.out += known.out();
        }
        let used_before = minutes.filter(|of| known.has_used(*of)).collect();
        Lessee { epoch, used_before, ..Lessee::default() }
    }

    /// Gives what the last call of a colo asks for, as far as it can be given now. `None` when no state can tell.
    pub fn give(&mut self, room: &Room, colo: &str, ask: &LeaseAsk, now: u64) -> Option<LeaseAnswer> {
        let is_last = |known: &Lessee| (known.epoch, known.sequence) == (ask.epoch, ask.sequence);
        if !self.lessees.get(colo).is_some_and(is_last) {
            return Some(self.nothing(ask, now));
        }
        self.sweep(room, now);
        let answer = self.judge(room, colo, ask, now)?;
        let known = self.lessees.get_mut(colo)?;
        let given: u32 = answer.given.iter().map(|(given, _)| given).sum();
        let of = minute_of_entry(now);
        known.unconfirmed = (of, given, answer.extra);
        known.called_at = now;
        let (used, used_at) = known.given();
        // Never sooner than what an earlier answer said: this one may get lost.
        known.until = known.until.max(now + u64::from(answer.usable_ms));
        self.out += i64::from(answer.extra);
        *self.used.entry(of).or_insert(0) += i64::from(given);
        self.book(used, used_at);
        self.unsaved += i64::from(given) + i64::from(answer.extra);
        self.changed_at = now;
        Some(answer)
    }

    /// The Counters to call back before a colo's call is answered, because somebody would be refused only for what lies in their
    /// stocks ([`Pool::lacks_only_stock`]). They count as called.
    pub fn recall(&mut self, colo: &str, now: u64) -> Vec<String> {
        self.recalled_at = now;
        let others = self.lessees.iter_mut().filter(|(name, lessee)| {
            name.as_str() != colo && lessee.out() > 0 && now >= lessee.recalled_at + RECALL_WAITS_MS
        });
        let mut others: Vec<(&String, &mut Lessee)> = others.collect();
        others.sort_by_key(|(_, lessee)| -lessee.out());
        let called = others.into_iter().take(MOST_RECALLED).map(|(name, lessee)| {
            lessee.recalled_at = now;
            name.clone()
        });
        called.collect()
    }

    /// Whether more could be given to a colo's visitors if other colos had nothing in stock.
    pub fn lacks_only_stock(&self, room: &Room, colo: &str, ask: &LeaseAsk, now: u64) -> bool {
        let Some((free, rate)) = self.left(room, now).filter(|_| !room.is_closed()) else { return false };
        let Some(key) = self.state.as_ref().map(|state| &state.key) else { return false };
        let others = self.lessees.iter().filter(|(name, _)| name.as_str() != colo);
        let others: i64 = others.map(|(_, lessee)| lessee.out()).sum();
        let given = |mut left: i64| -> i64 {
            let groups = ask.groups.iter().map(|group| {
                let given = (left - Self::protected(room, key, group)).clamp(0, i64::from(group.visitors));
                left -= given;
                given
            });
            groups.sum()
        };
        others > 0 && given(free.min(rate)) < given(free.min(rate) + others)
    }

    /// A Counter has given back what it had in stock.
    pub fn returned(&mut self, colo: &str, returned: &Returned, now: u64) {
        let Some(mut known) = self.lessees.remove(colo) else { return };
        let minute = minute_of(now);
        self.count(&known, -1, now);
        let told = known.used_lately(minute);
        let booked_at = known.given().1;
        if known.epoch != returned.epoch {
            known = self.overtake(&known, returned.epoch, now);
        } else if returned.sequence >= known.sequence {
            // It will not take what is on its way for the stock.
            (known.permits, known.unconfirmed.2) = (0, 0);
            if returned.last_answered >= known.sequence {
                known.unconfirmed.1 = 0;
            }
            known.used = most_of(&known.used, &returned.used);
            self.book_used((known.used_lately(minute) - told).max(0), &returned.recent, now);
            (known.returned, known.recalled_at) = (returned.sequence, 0);
        } else if returned.sequence > known.returned {
            // A later call of it came first, and told what it has held since.
            (known.returned, known.recalled_at) = (returned.sequence, 0);
        }
        // What it has used must not be forgotten before it calls again.
        known.called_at = now;
        let (on_its_way, reaches_at) = known.given();
        self.book(-on_its_way, booked_at);
        self.book(on_its_way, reaches_at);
        self.count(&known, 1, now);
        self.lessees.insert(colo.to_owned(), known);
    }

    fn judge(&self, room: &Room, colo: &str, ask: &LeaseAsk, now: u64) -> Option<LeaseAnswer> {
        if room.is_closed() {
            return Some(LeaseAnswer { most: 0, level: Level::Queueing, ..self.nothing(ask, now) });
        }
        let (free, rate) = self.left(room, now)?;
        let key = &self.state.as_ref()?.key;
        let mut left = free.min(rate);
        // Whoever waits has a slot each: what is beyond may lie in stocks.
        let kept = key.present_ahead(None);
        let level = self.level(room, key, free, kept == 0 || left > kept);
        let mut refused = 0;
        let mut missing = i64::MAX;
        let given = ask
            .groups
            .iter()
            .map(|group| {
                let protected = Self::protected(room, key, group);
                let given = (left - protected).clamp(0, i64::from(group.visitors));
                left -= given;
                if given < i64::from(group.visitors) {
                    refused += i64::from(group.visitors) - given;
                    missing = missing.min(protected + 1 - left);
                }
                (given as u32, protected as u32)
            })
            .collect();
        let (mut extra, mut most, mut usable_ms, mut spare) = (0, 0, SHORTEST_MS, 0);
        if refused == 0 && level != Level::Queueing {
            (extra, most, usable_ms) = self.stock(colo, ask, left - kept, now);
            spare = self.spare(ask, left - kept);
        }
        Some(LeaseAnswer {
            v: 1,
            sequence: ask.sequence,
            now,
            given,
            extra,
            most,
            usable_ms: usable_ms as u32,
            pace_ms: self.pace_ms(level, ask.rate, now),
            level,
            wait_ms: Self::wait_ms(room, key, missing),
            spare,
            steering: self.overrides().version,
            is_latest: self.knows_orders(now),
            in_rush: self.is_in_rush(left - kept, now),
        })
    }

    /// See [`LeaseAnswer::in_rush`]. `left`: permits that may lie in stocks.
    fn is_in_rush(&self, left: i64, now: u64) -> bool {
        let calls = self.calls.in_ms(1_000, now);
        calls >= RUSH_FROM.max(self.active_colos / 2) && left >= RUSH_LEFT * self.active_colos as i64
    }

    /// Whether it has heard a moment ago what operators have changed.
    fn knows_orders(&self, now: u64) -> bool {
        let is_new = |state: &Clocked| state.age(now) < TOO_OLD_MS && !state.key.steering.unreadable;
        self.state.as_ref().is_some_and(is_new)
    }

    /// A colo's part, by its traffic, of what may be used if the pool falls silent. Nothing where each slot counts: it may be slow
    /// only.
    fn spare(&self, ask: &LeaseAsk, left: i64) -> u32 {
        if self.exact {
            return 0;
        }
        let rates = self.rates.max(1) as i64;
        let soon_used = rates * SPARE_AFTER_MS / RATE_MS as i64;
        let all = (left - soon_used).max(0) * SPARE_QUARTERS / 4;
        (all * i64::from(ask.rate) / rates) as u32
    }

    fn protected(room: &Room, key: &StateKey, group: &Group) -> i64 {
        let ahead = key.present_ahead(group.waits.then_some(group.bucket));
        key.protected(room, ahead)
    }

    /// How much a colo may lay in stock, the most that it may hold, and for how long.
    fn stock(&self, colo: &str, ask: &LeaseAsk, left: i64, now: u64) -> (u32, u32, u64) {
        let held = self.lessees.get(colo).map_or(0, |known| i64::from(known.permits));
        // What is held already is part of what may lie in stocks.
        let all = (left + self.out).max(0);
        let stocks = self.stocks;
        let wanted = held + i64::from(ask.want);
        let shared = all * stocks.shared_eighths / 8;
        let of_regions = (shared * REGIONS_EIGHTHS / 8).min(REGIONS * FEW);
        let (most, usable_ms) = if serves_region(colo) {
            ((of_regions / REGIONS).clamp(1, FEW), LONGEST_MS)
        } else {
            self.fair_stock(ask, shared, of_regions, wanted, now)
        };
        let until_change = self.changes_at.map_or(u64::MAX, |time| time.saturating_sub(now).max(1));
        // Shares go by recent traffic, and others may have been given more: all together hold no more.
        let extra = (most - held).min(all * stocks.most_eighths / 8 - self.out).clamp(0, i64::from(ask.want));
        let is_recalled = now < self.recalled_at + stocks.after_recall_ms;
        (if is_recalled { 0 } else { extra as u32 }, most as u32, usable_ms.min(until_change))
    }

    /// What a colo may hold that wants so many, and for how long: its part of what may lie in `stocks`, by its traffic. Of what is
    /// left it uses its share before it is gone, and what nobody uses can be called back.
    fn fair_stock(&self, ask: &LeaseAsk, stocks: i64, of_regions: i64, wanted: i64, now: u64) -> (i64, u64) {
        let (rate, rates) = (i64::from(ask.rate), self.rates.max(1) as i64);
        let soon_ms = self.stocks.soon_ms;
        // The busiest colos have one each, as many as there are for that.
        let busier = self.lessees.values().filter(|lessee| i64::from(lessee.rate) > rate).count() as i64;
        let one = i64::from(!self.exact && busier < stocks - of_regions);
        let share = ((stocks * rate + rates / 2) / rates).max(one);
        let part = if self.booked.is_some() { SLIDING_SHARE_PART } else { SHARE_PART };
        let fair = (share / part).max(rate * soon_ms / RATE_MS as i64).max(NEXT_ONES).min(share);
        let is_new = !self.exact && ask.last_answered == 0 && now < self.begun_at + LEARNS_MS;
        let mean = if is_new { stocks / self.active_colos.max(1) as i64 / part } else { 0 };
        let asks: i64 = ask.groups.iter().map(|group| i64::from(group.visitors)).sum();
        let used: i64 = ask.used.iter().map(|(_, used)| *used as i64).sum();
        let most = fair.max(mean).min((TIMES_USED * (used + asks)).max(FEW));
        let usable_ms = if most.min(wanted) <= FEW {
            LONGEST_MS
        } else {
            // What is left may be gone within that time at the current rate: then it must have come back.
            ((stocks * RATE_MS as i64 / rates) as u64).clamp(SHORTEST_MS, LONG_MS)
        };
        (most, usable_ms)
    }

    /// How long it takes until `missing` more permits are free, by the expiries of the next refresh and the rate.
    fn wait_ms(room: &Room, key: &StateKey, missing: i64) -> u32 {
        let refresh = i64::from(room.refresh_interval_seconds);
        let freeing = i64::from(key.expiring_refresh).min(key.most_new(room) * refresh / 60);
        let wait = missing.clamp(1, 1_000) * refresh * 1_000 / freeing.max(1);
        wait.clamp(i64::from(SHORTEST_WAIT_MS), i64::from(HINT_MS)) as u32
    }

    /// How long a colo with a rate waits for its turn: by the square root of its traffic, all visitors together wait least for
    /// as many calls.
    fn pace_ms(&self, level: Level, rate: u32, now: u64) -> u32 {
        let from = match level {
            Level::Queueing => (self.active_colos / PACED_PER_COLO_SECONDS).max(PACED_WHILE_QUEUEING_FROM),
            _ => PACED_FROM,
        };
        let too_many = self.calls.in_ms(1_000, now).saturating_sub(from);
        let turn_ms = self.active_colos * PACE_MICROS * too_many / from / 1_000;
        // The mean traffic of a colo by this one's, in 64ths: the root is in eighths.
        let ratio = 64 * self.rates / (self.active_colos * u64::from(rate)).max(1);
        (turn_ms * ratio.isqrt() / 8).min(LONGEST_TURN_MS) as u32
    }
}
