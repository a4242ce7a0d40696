//! What is measured, from the visitors' side: who was active, who entered when, who waited and in which order.
//!
//! Definitions stand with each figure of [`Measured`]; `docs/accuracy.md` has them in words.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use anteroom::admission::{REACHES_MS, StateKey, minute_of};
use anteroom::history::{Minute, Record};
use anteroom::protocol::messages::{ColoReport, StateAnswer, VERSION, WorkerAnswer};
use anteroom::protocol::{Object, wire};
use anteroom::room::{Limits, QueueingMethod, RateWindow, Room};
use serde::Serialize;

use crate::bounds::{Bounds, Slow};
use crate::estimates::Estimates;
use crate::history::{History, Row};
use crate::pages::Passed;
use crate::price::{Billed, Usage};

/// A queued visitor's first estimate counts when the wait was longer than this, in milliseconds.
const WAITED_MS: u64 = 20_000;
/// Time after which what an operator orders is judged, in milliseconds: what was given before may be used for one second
/// more, and then it must be in force everywhere.
pub const IN_FORCE_MS: u64 = 2_000;
/// Where no limit is looked at.
const NO_LIMIT: i64 = 1 << 40;
/// Time within which what was given before the limits changed is used, in milliseconds.
const ON_THE_WAY_MS: u64 = 1_000;
/// Whoever has just come has no chance yet where the order is random, in milliseconds.
const FRESH_MS: u64 = 30_000;
/// Whoever has waited for longer has waited long, in milliseconds.
const OLD_MS: u64 = 120_000;
/// The bucket of whoever has no place that others may pass.
pub const NO_PLACE: u32 = u32::MAX;
/// How many younger ones must have entered for somebody to be passed over.
const PASSED_BY: u64 = 10;
/// In rooms of up to so many users, each slot counts: what is queued while one is free is counted exactly.
pub const EXACT: u32 = 100;
/// Requests that were under way when somebody was queued have ended after so long, in milliseconds.
const SETTLED_MS: u64 = 3_000;
/// Of each kind of message, every so manieth is weighed.
const WEIGHED: u64 = 16;
/// Kinds of messages that are weighed.
pub const KINDS: usize = 4;
/// Points of the time series, at most.
const POINTS: u64 = 1_440;

/// The figures of one run. Shares are parts of 1.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Visitors who came (a session that ran out and comes back is a new one).
    pub arrived: u64,
    /// Of them, queued at least once.
    pub queued: u64,
    /// Admitted.
    pub admitted: u64,
    /// Of them, those who refuse cookies.
    pub cookieless: u64,
    /// Requests of visitors.
    pub requests: u64,
    /// Left the queue.
    pub gave_up: u64,
    /// Turned away when they came: nobody new enters, and nobody waits.
    pub turned_away: u64,
    /// Had come or waited when an operator put the room off, and went past it.
    pub went_past: u64,
    /// Still in the queue at the end.
    pub waiting_at_end: u64,
    /// How long after an operator had closed the room somebody still entered, at most, in milliseconds; nothing: nobody
    /// closed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entered_after_closing_ms: Option<u64>,
    /// The most that were active at any event, over the limit, as a share of it.
    pub active_overshoot: f64,
    /// The most admissions in a calendar minute, over the limit, as a share of it.
    pub minute_overshoot: f64,
    /// The most admissions in any 60 seconds, over the limit, as a share of it.
    pub sliding_overshoot: f64,
    /// The same three as numbers of users.
    pub users_over: [u64; 3],
    /// Share of arrivals queued with active < 99 % and this minute's admissions < 99 % of their limits.
    pub false_raw: f64,
    /// The same, if there would have been room after everyone who waits had been let in.
    pub false_adjusted: f64,
    /// In rooms of up to [`EXACT`] users: share of arrivals queued while both limits had a slot for them, for all who
    /// waited and for those whose request was under way and let them in.
    pub false_exact: Option<f64>,
    /// Slots that were free while people waited, mean over the minutes with people waiting throughout: of both
    /// limits, the fuller one's min(free, waiting) / limit.
    pub idle: f64,
    /// The same, of the worst minute.
    pub idle_worst: f64,
    /// Minutes with people waiting throughout.
    pub waiting_minutes: u64,
    /// Share of queued visitors who keep cookies, passed by at least ten of younger buckets, more than 1.125 refreshes before
    /// they left the queue. Nobody passes while the object hangs that hears who waits.
    pub passed_over: f64,
    /// Share of admissions while a visitor of an older bucket was waiting, and there was no slot for each who waits.
    pub passed_any: f64,
    /// max(active, this minute's admissions) of their limits when the first visitor was queued, with those whose request was
    /// under way and let them in.
    pub first_queued_at: Option<f64>,
    /// Median of |estimate − wait| / wait, of those who waited more than 20 s and entered, in buckets of which nobody waits at
    /// the end: of others the lucky ones only have entered.
    pub estimate_error: Option<f64>,
    /// The least that it can be: see [`estimates`](crate::estimates).
    pub estimate_least_error: Option<f64>,
    /// Share of all queued visitors, entered or not, whose shown wait once rose by more than a refresh.
    pub estimate_rose: f64,
    /// Delay that the room added to new visitors who were not queued, in milliseconds.
    pub latency_p50: u64,
    /// See `latency_p50`.
    pub latency_p95: u64,
    /// The same, while the room was below half of both limits.
    pub calm_latency_p50: Option<u64>,
    /// Of these visitors, what the delay was beyond the least that any algorithm takes, median, in milliseconds: see
    /// [`bounds`](crate::bounds).
    pub calm_beyond_least_p50: Option<u64>,
    /// New visitors who were not queued and waited longer than each of [`SOON_MS`](crate::bounds::SOON_MS).
    pub slow: [Slow; 2],
    /// New visitors who were not queued.
    pub let_in_at_once: u64,
    /// Calls of workers to their Counter, per admitted visitor.
    pub counter_calls: f64,
    /// Calls for permits to Anywhere, and those that tell it of permits in workers' hands, per admitted visitor.
    pub pool_calls: f64,
    /// Requests to objects per 1,000 visitors' requests.
    pub object_requests: f64,
    /// Requests to objects per second, mean over the whole run.
    pub object_requests_per_second: f64,
    /// The same by kind: Counters, Anywhere, `DataCenter` objects, Global.
    pub object_requests_by: [f64; 4],
    /// Requests in the busiest second of the busiest Counter, Anywhere, `DataCenter` and Global.
    pub busiest: [u64; 4],
    /// Requests that an object refused because it was overloaded.
    pub refused: u64,
    /// What the platform bills of Counters, Anywhere, `DataCenter` objects and Global.
    pub billed: [Billed; 4],
    /// What the platform bills in all, in its own units.
    pub usage: Usage,
    /// The price of it, in US dollars, per million visitors who came.
    pub dollars_per_million: Option<f64>,
    /// The largest messages as they travel, in bytes, see [`Weighed`]: a data center's report, Global's answer to it,
    /// Global's answer to Anywhere, a data center's answer to a worker.
    pub bytes: [usize; KINDS],
    /// The most waiting buckets in one of them.
    pub buckets: usize,
    /// Waits of those who were queued and entered, in seconds: median, 95 %, longest.
    pub wait_seconds: [u64; 3],
    /// Users that Global still counts as active at the end, less those who are.
    pub miscounted: i64,
    /// Visitors that Global still counts as waiting at the end, less those who do.
    pub miscounted_waiting: i64,
    /// For how long nobody had been active or waiting at the end, in milliseconds; 0: somebody was.
    pub quiet_ms: u64,
    /// Attackers who came, and those of them who entered.
    pub attackers: (u64, u64),
    /// How long after a session was ended a copy of its ticket was let through, at the latest, in milliseconds.
    pub copy_passed_ms: u64,
    /// How often the room let a visitor in: twins, and those who had gone meanwhile, count too.
    pub let_in: u64,
    /// Requests of users whose session went on, and whom the room took for new.
    pub thrown_out: u64,
    /// The most that was left of such a session, in milliseconds.
    pub session_lost_ms: u64,
    /// Requests of visitors who waited, and whom the room took for new.
    pub lost_places: u64,
    /// The longest time that a request waited for the room's decision, in milliseconds.
    pub answer_ms: u64,
    /// The longest time in which nobody entered though at every look somebody waited and both limits had a free slot, in
    /// milliseconds.
    pub stuck_ms: u64,
    /// Simulated events.
    pub events: u64,
    /// What passed to the origin, where the scenario has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Passed>,
    /// How those who wait come in: of those who check in as told, from 30 seconds to two minutes and later, and of those who
    /// press reload all the time, the same.
    pub chances: [Chance; 4],
    /// Over time: second, active, waiting, admitted since the point before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<(u64, u64, u64, u64)>,
    /// The run as the room's history would have it, where it was wanted.
    #[serde(skip)]
    pub history: Option<History>,
    /// Beside it: the minutes since the epoch of those who entered in a minute's last 600 ms. Their permits may be of the next.
    #[serde(skip)]
    pub entered_at_edges: Vec<u32>,
    /// The same as Global has recorded it, by minutes since the epoch: of the last two hours.
    #[serde(skip)]
    pub recorded: Vec<(u32, Record)>,
    /// The last minute of it, with what was counted since the room's first day.
    #[serde(skip)]
    pub last_minute: Option<Minute>,
}

/// How many of those who wait enter, and for how long all of them together waited.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Chance {
    /// How many have entered.
    pub entered: u64,
    /// Seconds waited in all, by those too who gave up.
    pub seconds: f64,
}

/// What is weighed: the messages whose size could grow with the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighed {
    /// A data center's report to Global.
    Report,
    /// Global's answer to a data center.
    AnswerToColo,
    /// Global's answer to Anywhere.
    AnswerToAnywhere,
    /// The state key on its way to a worker, in the data center's answer to a report.
    StateKey,
}

/// Counts in steps of a millisecond or second.
#[derive(Debug, Default)]
pub(crate) struct Histogram(Vec<u64>);

impl Histogram {
    pub(crate) fn add(&mut self, value: u64) {
        let index = (value as usize).min(100_000);
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += 1;
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }

    pub(crate) fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn quantile(&self, part: f64) -> Option<u64> {
        let wanted = (self.all() as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.0.iter().enumerate().find_map(|(value, count)| {
            seen += count;
            (seen >= wanted).then_some(value as u64)
        })
    }
}

/// Somebody was queued, the first one or in a room where every slot counts: how full it was, with those whose request was under way.
#[derive(Debug)]
struct Doubt {
    at: u64,
    active: i64,
    counted: i64,
    waiting: i64,
    limits: (i64, i64),
}

impl Doubt {
    fn had_room(&self) -> bool {
        self.active + self.waiting < self.limits.0 && self.counted + self.waiting < self.limits.1
    }

    fn filled(&self) -> f64 {
        let part = |users: i64, limit: i64| users as f64 / limit as f64;
        part(self.active, self.limits.0).max(part(self.counted, self.limits.1))
    }
}

/// What one object does.
#[derive(Debug, Default, Clone, Copy)]
struct Meter {
    kind: usize,
    /// The second of its last request, and how many it had in it.
    second: (u64, u64),
    /// Calls of its own that have not ended.
    calls: u32,
    /// Until when it is billed at least, in microseconds.
    busy_until: u64,
    /// Until when its time has been billed, in microseconds.
    billed_to: u64,
}

impl Meter {
    /// Bills the time until now, as far as the object was at work or waited for something.
    fn bill(&mut self, now: u64, billed: &mut [Billed; 4]) {
        let until = if self.calls > 0 { now } else { self.busy_until.min(now) };
        billed[self.kind].seconds += until.saturating_sub(self.billed_to) as f64 / 1e6;
        self.billed_to = now.max(self.billed_to);
    }
}

/// Counts what happens.
#[derive(Debug)]
pub struct Measure {
    limit_active: i64,
    limit_new: i64,
    /// The same, or less where they follow an origin.
    in_force: (i64, i64),
    /// The limits that held until a moment ago, and until when they are looked at too: what was given by them is used.
    before: (i64, i64, u64),
    /// Nobody new enters, and that is meant so.
    closed: bool,
    /// Since when an operator wants that, and how long after it somebody still entered.
    closed_at: Option<u64>,
    /// Until when some may think so: until an operator has opened it again, and all have heard of that.
    closed_until: u64,
    entered_after_closing: Option<u64>,
    over_active: f64,
    over_minute: f64,
    over_sliding: f64,
    users_over: [i64; 3],
    /// Of those who entered above `total_active_users`, those since it was changed.
    entered_over: i64,
    /// Who goes on with a copy of a ticket whose slot is free.
    copies: i64,
    copy_passed_ms: u64,
    /// Attackers who came.
    pub attackers_arrived: u64,
    /// Those who entered.
    pub attackers_admitted: u64,
    chances: [Chance; 4],
    refresh_ms: u64,
    start: u64,
    step_ms: u64,
    active: i64,
    waiting: i64,
    minute: u32,
    in_minute: i64,
    last_minute: VecDeque<(u64, i64)>,
    in_sliding: i64,
    /// The limit of new users holds in any 60 seconds.
    sliding: bool,
    arrived: u64,
    queued: u64,
    admitted: u64,
    gave_up: u64,
    false_raw: u64,
    false_adjusted: u64,
    false_exact: u64,
    /// Every slot counts.
    exact: bool,
    doubts: VecDeque<Doubt>,
    first_queued_at: Option<f64>,
    /// Who waits, by bucket.
    waiting_by: BTreeMap<u32, u64>,
    passed_any: u64,
    /// Admissions by bucket, oldest first; the latest ones are in `recent` only.
    entered: VecDeque<(u32, u64)>,
    recent: VecDeque<(u64, u32)>,
    passed_over: u64,
    /// Queued visitors who have a place.
    placed: u64,
    /// Until when nobody hears who waits.
    unheard_until: u64,
    estimates: Estimates,
    rose: u64,
    latencies: Histogram,
    calm_latencies: Histogram,
    calm_beyond_least: Histogram,
    /// How soon visitors could be in.
    pub bounds: Bounds,
    let_in_at_once: u64,
    waits: Histogram,
    samples: u64,
    idle_active: f64,
    /// The most admissions of 60 seconds in this minute's samples.
    most_sliding: i64,
    all_waited: bool,
    waiting_sum: f64,
    idle_minutes: Vec<f64>,
    sampled_minute: u32,
    /// Requests of visitors.
    pub requests: u64,
    /// Admitted visitors who refuse cookies.
    pub cookieless: u64,
    /// Calls of workers to their Counter.
    pub counter_calls: u64,
    /// Calls for permits to Anywhere, and those that tell it of permits in workers' hands.
    pub pool_calls: u64,
    /// Requests that objects refused.
    pub refused: u64,
    /// See [`Measured`].
    pub let_in: u64,
    /// See [`Measured`].
    pub turned_away: u64,
    /// See [`Measured`].
    pub went_past: u64,
    thrown_out: u64,
    session_lost_ms: u64,
    lost_places: u64,
    answer_ms: u64,
    stuck_ms: u64,
    /// Since when nobody has entered though somebody waits and there is a slot.
    stuck_since: Option<u64>,
    /// When somebody was last active or waiting.
    last_seen: u64,
    object_requests: u64,
    object_requests_by: [u64; 4],
    objects: Vec<Meter>,
    billed: [Billed; 4],
    busiest: [u64; 4],
    bytes: [usize; KINDS],
    buckets: usize,
    weighed: [u64; KINDS],
    series: Vec<(u64, u64, u64, u64)>,
    next_point: u64,
    admitted_at_point: u64,
    calm: bool,
    /// Minute by minute, where it is wanted.
    history: Option<Vec<Row>>,
    entered_at_edges: Vec<u32>,
}

impl Measure {
    /// Counts for a room from a time on.
    pub fn new(room: &Room, start: u64) -> Self {
        Self {
            limit_active: i64::from(room.total_active_users),
            limit_new: i64::from(room.new_users_per_minute),
            in_force: (room.total_active_users.into(), room.new_users_per_minute.into()),
            before: (0, 0, 0),
            closed: false,
            closed_at: None,
            closed_until: 0,
            entered_after_closing: None,
            over_active: 0.0,
            over_minute: 0.0,
            over_sliding: 0.0,
            users_over: [0; 3],
            entered_over: 0,
            copies: 0,
            copy_passed_ms: 0,
            attackers_arrived: 0,
            attackers_admitted: 0,
            chances: [Chance::default(); 4],
            refresh_ms: room.refresh_ms(),
            start,
            step_ms: 1_000,
            active: 0,
            waiting: 0,
            minute: minute_of(start),
            in_minute: 0,
            last_minute: VecDeque::new(),
            in_sliding: 0,
            sliding: room.rate_window == RateWindow::Sliding,
            arrived: 0,
            queued: 0,
            admitted: 0,
            gave_up: 0,
            false_raw: 0,
            false_adjusted: 0,
            false_exact: 0,
            exact: room.total_active_users <= EXACT,
            doubts: VecDeque::new(),
            first_queued_at: None,
            waiting_by: BTreeMap::new(),
            passed_any: 0,
            entered: VecDeque::new(),
            recent: VecDeque::new(),
            passed_over: 0,
            placed: 0,
            unheard_until: 0,
            estimates: Estimates::default(),
            rose: 0,
            latencies: Histogram::default(),
            calm_latencies: Histogram::default(),
            calm_beyond_least: Histogram::default(),
            bounds: Bounds::default(),
            let_in_at_once: 0,
            waits: Histogram::default(),
            samples: 0,
            idle_active: 0.0,
            most_sliding: 0,
            all_waited: true,
            waiting_sum: 0.0,
            idle_minutes: Vec::new(),
            sampled_minute: minute_of(start),
            requests: 0,
            cookieless: 0,
            counter_calls: 0,
            pool_calls: 0,
            refused: 0,
            let_in: 0,
            turned_away: 0,
            went_past: 0,
            thrown_out: 0,
            session_lost_ms: 0,
            lost_places: 0,
            answer_ms: 0,
            stuck_ms: 0,
            stuck_since: None,
            last_seen: start,
            object_requests: 0,
            object_requests_by: [0; 4],
            objects: Vec::new(),
            billed: [Billed::default(); 4],
            busiest: [0; 4],
            bytes: [0; KINDS],
            buckets: 0,
            weighed: [0; KINDS],
            series: Vec::new(),
            next_point: start,
            admitted_at_point: 0,
            calm: true,
            history: None,
            entered_at_edges: Vec::new(),
        }
    }

    /// Records a history, minute by minute.
    pub fn record(&mut self) {
        self.history = Some(Vec::new());
    }

    /// Counts in the history's minute.
    fn in_history(&mut self, now: u64, count: fn(&mut Row) -> &mut Option<f64>) {
        let (active, waiting) = (self.active.max(0) as f64, self.waiting.max(0) as f64);
        let Some(rows) = &mut self.history else { return };
        let minute = now / 60_000 * 60_000;
        let mut next = rows.last().map_or(self.start / 60_000 * 60_000, |row| row.at + 60_000);
        // What was counted last is as it was when a silent minute ends.
        let (was_active, was_waiting) =
            rows.last().map_or((Some(active), Some(waiting)), |row| (row.active_users, row.waiting_users));
        while next <= minute {
            rows.push(Row {
                at: next,
                new_users: Some(0.0),
                joins: Some(0.0),
                leavers: Some(0.0),
                waiting_users: was_waiting,
                active_users: was_active,
                ..Row::default()
            });
            next += 60_000;
        }
        let Some(row) = rows.last_mut() else { return };
        if let Some(count) = count(row) {
            *count += 1.0;
        }
        (row.active_users, row.waiting_users) = (Some(active), Some(waiting));
    }

    /// From now on other limits hold, or none.
    pub fn room_is(&mut self, room: &Room, now: u64) {
        let limits = room.limits();
        let free = matches!(room.queueing_method, QueueingMethod::Passthrough | QueueingMethod::Reject);
        let limit = |users: u32| if free { NO_LIMIT } else { i64::from(users) };
        // A minute's admissions count for the whole minute.
        self.before = (self.limit_active, self.limit_new, now);
        self.entered_over = 0;
        self.limit_active = limit(limits.total_active_users);
        self.limit_new = limit(limits.new_users_per_minute);
        self.in_force = (self.limit_active, self.limit_new);
        self.closed = room.is_closed();
        self.all_waited = false;
    }

    /// The limits follow an origin, and are these now.
    pub fn follows(&mut self, limits: Limits) {
        self.in_force = (limits.total_active_users.into(), limits.new_users_per_minute.into());
    }

    /// An operator changes the room: nobody new is to enter, or not so.
    pub fn steered(&mut self, closed: bool, now: u64) {
        self.closed_at = closed.then(|| self.closed_at.unwrap_or(now));
        if closed {
            self.closed_until = u64::MAX;
            self.entered_after_closing.get_or_insert(0);
        } else {
            self.closed_until = self.closed_until.min(now + IN_FORCE_MS);
        }
    }

    /// Somebody who waited goes past the room, which is off.
    pub fn went_past(&mut self, bucket: u32) {
        self.went_past += 1;
        self.waits_no_more(bucket);
    }

    fn waits_no_more(&mut self, bucket: u32) {
        self.waiting -= 1;
        if let Some(users) = self.waiting_by.get_mut(&bucket) {
            *users -= 1;
            if *users == 0 {
                self.waiting_by.remove(&bucket);
                self.estimates.closed(bucket);
            }
        }
    }

    /// The limits for somebody who enters.
    fn limits(&self, now: u64) -> (i64, i64) {
        let (active, new, changed_at) = self.before;
        let minute_end = (changed_at.div_ceil(60_000) * 60_000).max(changed_at + ON_THE_WAY_MS);
        let most = |of: i64, before: i64, until: u64| if now < until { of.max(before) } else { of };
        (
            most(self.limit_active, active, changed_at + ON_THE_WAY_MS),
            // Whatever was let in before counts for that minute, or for sixty seconds.
            most(self.limit_new, new, if self.sliding { changed_at + 60_000 } else { minute_end }),
        )
    }

    /// Somebody has left the queue after `waited_ms`.
    pub fn chance(&mut self, waited_ms: u64, reloads: bool, entered: bool) {
        if waited_ms <= FRESH_MS {
            return;
        }
        let young = waited_ms.min(OLD_MS) - FRESH_MS;
        let first = if reloads { 2 } else { 0 };
        self.chances[first].seconds += young as f64 / 1_000.0;
        self.chances[first + 1].seconds += waited_ms.saturating_sub(OLD_MS) as f64 / 1_000.0;
        let of = first + usize::from(waited_ms > OLD_MS);
        self.chances[of].entered += u64::from(entered);
    }

    fn roll(&mut self, now: u64) {
        let minute = minute_of(now);
        if minute != self.minute {
            self.minute = minute;
            self.in_minute = 0;
        }
        while let Some((at, users)) = self.last_minute.front().copied() {
            if at + 60_000 > now {
                break;
            }
            self.in_sliding -= users;
            self.last_minute.pop_front();
        }
    }

    /// Admissions that the limit of new users counts at this moment.
    fn counted(&self) -> i64 {
        if self.sliding { self.in_sliding } else { self.in_minute }
    }

    /// Somebody new comes.
    pub fn arrived(&mut self, _now: u64) {
        self.arrived += 1;
    }

    /// Who has come is in already.
    pub fn not_new(&mut self) {
        self.arrived -= 1;
    }

    /// The room takes a user for new, whose session would have gone on for so long.
    pub fn threw_out(&mut self, left_ms: u64) {
        self.thrown_out += 1;
        self.session_lost_ms = self.session_lost_ms.max(left_ms);
    }

    /// The room takes a visitor who waits for new.
    pub fn lost_place(&mut self) {
        self.lost_places += 1;
    }

    /// The room has decided on a request that waited for it for so long.
    pub fn answered(&mut self, after_ms: u64) {
        self.answer_ms = self.answer_ms.max(after_ms);
    }

    /// Nobody hears who waits until a time. Who still waits then is known when they all have checked in once more.
    pub fn unheard(&mut self, until: u64) {
        self.unheard_until = self.unheard_until.max(until + self.refresh_ms * 9 / 8);
    }

    /// Somebody of a bucket is queued for the first time.
    pub fn queued(&mut self, now: u64, bucket: u32) {
        self.roll(now);
        // Who looks once has left before the next sample, and is counted for a while.
        self.last_seen = now;
        self.queued += 1;
        self.placed += u64::from(bucket != NO_PLACE);
        *self.waiting_by.entry(bucket).or_default() += 1;
        if self.closed || now < self.closed_until {
            self.waiting += 1;
            self.in_history(now, |row| &mut row.joins);
            return;
        }
        let below = |users: i64, limit: i64| users * 100 < limit * 99;
        if below(self.active, self.limit_active) && below(self.counted(), self.limit_new) {
            self.false_raw += 1;
        }
        let fits = below(self.active + self.waiting, self.limit_active)
            && below(self.in_minute + self.waiting, self.limit_new)
            && below(self.in_sliding + self.waiting, self.limit_new);
        if fits {
            self.false_adjusted += 1;
        }
        let doubt = Doubt {
            at: now,
            active: self.active,
            counted: self.counted(),
            waiting: self.waiting,
            limits: (self.limit_active, self.limit_new),
        };
        self.settle(now);
        // Where people wait already, as after a prequeue, whoever comes waits behind them.
        let may_be_first = self.first_queued_at.is_none() && self.waiting == 0 && self.doubts.is_empty();
        if self.exact || may_be_first {
            self.doubts.push_back(doubt);
        }
        self.waiting += 1;
        self.in_history(now, |row| &mut row.joins);
    }

    /// Judges those who were queued, when nobody can enter any more whose request was under way then.
    fn settle(&mut self, now: u64) {
        while self.doubts.front().is_some_and(|doubt| doubt.at + SETTLED_MS <= now)
            && let Some(doubt) = self.doubts.pop_front()
        {
            self.false_exact += u64::from(doubt.had_room());
            if self.first_queued_at.is_none() && doubt.waiting == 0 {
                self.first_queued_at = Some(doubt.filled());
            }
        }
    }

    /// A queued visitor's shown wait rises by more than a refresh, for the first time.
    pub fn rose(&mut self) {
        self.rose += 1;
    }

    /// Somebody of a bucket enters in a colo: queued since when and in which bucket, delayed by how much, and what was shown in the queue.
    pub fn admitted(
        &mut self,
        now: u64,
        colo: u16,
        bucket: u32,
        queued: Option<(u64, u32)>,
        latency: u64,
        shown: Option<u64>,
    ) {
        self.roll(now);
        if let Some(closed_at) = self.closed_at {
            self.entered_after_closing = self.entered_after_closing.max(Some(now - closed_at));
        }
        self.admitted += 1;
        self.stuck_since = None;
        self.in_minute += 1;
        let (_, limit_new) = self.limits(now);
        let over = |users: i64| (users - limit_new).max(0) as f64 / limit_new as f64;
        self.over_minute = self.over_minute.max(over(self.in_minute));
        self.in_sliding += 1;
        self.over_sliding = self.over_sliding.max(over(self.in_sliding));
        self.users_over[1] = self.users_over[1].max(self.in_minute - limit_new);
        self.users_over[2] = self.users_over[2].max(self.in_sliding - limit_new);
        match self.last_minute.back_mut() {
            Some((at, users)) if *at == now => *users += 1,
            _ => self.last_minute.push_back((now, 1)),
        }
        if let Some((queued_at, waited_in)) = queued {
            let waited = now - queued_at;
            self.waits.add(waited / 1_000);
            if let Some(shown) = shown.filter(|_| waited > WAITED_MS) {
                self.estimates.entered(waited_in, queued_at, waited, shown * 1_000);
            }
            self.waits_no_more(waited_in);
        }
        let is_passed = self.waiting_by.first_key_value().is_some_and(|(oldest, _)| *oldest < bucket);
        // Where there is a slot for each who waits nobody's turn is taken.
        let (most_active, most_new) = self.in_force;
        let left = (most_active - self.active - 1).min(most_new - self.in_minute);
        let passes = is_passed && left < self.waiting;
        if let Some((_, waited_in)) = queued {
            self.left_queue(now, waited_in);
        } else {
            self.let_in_at_once += 1;
            self.latencies.add(latency);
            let came_at = now - latency;
            let since = self.last_minute.iter().rev().take_while(|(at, _)| *at >= came_at);
            let free = if left >= self.bounds.colos() {
                left + 1
            } else {
                // Who enters now is one of them.
                left + since.map(|(_, users)| users).sum::<i64>()
            };
            // Those who came before are to find a slot too.
            let older: u64 = self.waiting_by.range(..bucket).map(|(_, users)| users).sum();
            let least = self.bounds.entered(now, colo, latency, passes, free - older as i64);
            if let Some(least) = least.filter(|_| self.calm) {
                self.calm_latencies.add(latency);
                self.calm_beyond_least.add(latency.saturating_sub(least));
            }
            for doubt in self.doubts.iter_mut().filter(|doubt| now - latency <= doubt.at) {
                doubt.active += 1;
                doubt.counted += 1;
            }
        }
        self.passed_any += u64::from(passes);
        if now >= self.unheard_until {
            self.recent.push_back((now, bucket));
        }
        self.in_history(now, |row| &mut row.new_users);
        if self.history.is_some() && now % 60_000 >= 60_000 - REACHES_MS {
            self.entered_at_edges.push(minute_of(now));
        }
    }

    /// Somebody leaves the queue without having entered.
    pub fn gave_up(&mut self, now: u64, bucket: u32, _queued_at: u64) {
        self.waits_no_more(bucket);
        self.gave_up += 1;
        self.in_history(now, |row| &mut row.leavers);
        self.left_queue(now, bucket);
    }

    fn left_queue(&mut self, now: u64, bucket: u32) {
        let before = now.saturating_sub(self.refresh_ms * 9 / 8);
        while let Some((at, bucket)) = self.recent.front().copied() {
            if at > before {
                break;
            }
            self.recent.pop_front();
            let index = self.entered.partition_point(|(of, _)| *of < bucket);
            match self.entered.get_mut(index) {
                Some((of, users)) if *of == bucket => *users += 1,
                _ => self.entered.insert(index, (bucket, 1)),
            }
            // Nobody waits so long that more would matter.
            if self.entered.len() > 512 {
                self.entered.pop_front();
            }
        }
        let younger: u64 =
            self.entered.iter().rev().take_while(|(of, _)| *of > bucket).map(|(_, users)| users).sum();
        self.passed_over += u64::from(younger >= PASSED_BY);
    }

    /// Somebody is there who is not counted here.
    pub fn seen(&mut self, now: u64) {
        self.last_seen = now;
    }

    /// How many are active.
    pub fn active(&self) -> u64 {
        self.active.max(0) as u64
    }

    /// One more is active; `copies`: with a copy of a ticket whose slot is free, so nobody has entered. `ending`: how many the
    /// room may have taken for gone already, as a clock has jumped.
    pub fn activated(&mut self, now: u64, copies: bool, ending: i64) {
        self.active += 1;
        // A session may be ended before the next sample.
        self.last_seen = now;
        let (limit, _) = self.limits(now);
        self.over_active = self.over_active.max((self.active - limit).max(0) as f64 / limit as f64);
        // Whoever was in before an operator lowered the limit stays: too many are only those who have come in since.
        let over = self.active - self.copies - ending - limit;
        self.entered_over += i64::from(over > 0 && !copies);
        self.users_over[0] = self.users_over[0].max(over.min(self.entered_over));
    }

    /// A session has ended.
    pub fn expired(&mut self, _now: u64) {
        self.active -= 1;
    }

    /// Somebody goes on with a copy of the ticket of a session that was ended, or does not any more.
    pub fn copied(&mut self, users: i64) {
        self.copies += users;
    }

    /// A copy has been let through, so long after its session was ended.
    pub fn copy_passed(&mut self, after_ms: u64) {
        self.copy_passed_ms = self.copy_passed_ms.max(after_ms);
    }

    /// Looks at the room, ten times a second.
    pub fn sample(&mut self, now: u64) {
        let minute = minute_of(now);
        self.roll(now);
        if minute != self.sampled_minute {
            if self.all_waited && self.samples > 0 {
                let count = self.samples as f64;
                let by_active = self.idle_active / count / self.limit_active as f64;
                let by_rate = {
                    let mean_waiting = self.waiting_sum / count;
                    let used = if self.sliding { self.most_sliding } else { self.last_full_minute(minute) };
                    let left = (self.limit_new - used).max(0) as f64;
                    left.min(mean_waiting) / self.limit_new as f64
                };
                self.idle_minutes.push(by_active.min(by_rate));
            }
            self.sampled_minute = minute;
            self.samples = 0;
            self.idle_active = 0.0;
            self.most_sliding = 0;
            self.waiting_sum = 0.0;
            self.all_waited = true;
        }
        let has_slot = self.active < self.limit_active
            && self.in_minute < self.limit_new
            && self.in_sliding < self.limit_new;
        if self.waiting > 0 && !self.closed && has_slot {
            self.stuck_ms = self.stuck_ms.max(now - *self.stuck_since.get_or_insert(now));
        } else {
            self.stuck_since = None;
        }
        if self.waiting > 0 || self.active > 0 {
            self.last_seen = now;
        }
        self.samples += 1;
        self.all_waited &= self.waiting > 0 && !self.closed;
        self.waiting_sum += self.waiting as f64;
        self.idle_active += (self.limit_active - self.active).max(0).min(self.waiting) as f64;
        self.most_sliding = self.most_sliding.max(self.in_sliding);
        self.calm = self.active * 2 < self.in_force.0 && self.in_sliding * 2 < self.in_force.1;
        self.settle(now);
        if now >= self.next_point {
            let second = (now - self.start) / 1_000;
            let admitted = self.admitted - self.admitted_at_point;
            self.series.push((second, self.active.max(0) as u64, self.waiting.max(0) as u64, admitted));
            self.admitted_at_point = self.admitted;
            if self.series.len() as u64 >= 2 * POINTS {
                // Half as many points, twice as far apart: memory does not grow with simulated time.
                let mut kept = Vec::with_capacity(POINTS as usize);
                for pair in self.series.chunks(2) {
                    let admitted = pair.iter().map(|(.., admitted)| admitted).sum();
                    if let Some((second, active, waiting, _)) = pair.last().copied() {
                        kept.push((second, active, waiting, admitted));
                    }
                }
                self.series = kept;
                self.step_ms *= 2;
            }
            self.next_point = now + self.step_ms;
        }
    }

    /// Admissions of the minute before `minute`, at its very beginning.
    fn last_full_minute(&self, minute: u32) -> i64 {
        let (from, to) = (u64::from(minute - 1) * 60_000, u64::from(minute) * 60_000);
        self.last_minute.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, users)| users).sum()
    }

    /// What kind of object a station has. It is a number of its own.
    pub fn object_made(&mut self, station: u16, object: Object) {
        self.meter(station).kind = match object {
            Object::Counter => 0,
            Object::Anywhere => 1,
            Object::DataCenter => 2,
            Object::Global => 3,
        };
    }

    /// An object serves a request, from when to when in microseconds.
    pub fn object_request(&mut self, station: u16, now: u64, served: Range<u64>) {
        self.object_requests += 1;
        let meter = self.meter(station);
        let (second, count) = meter.second;
        meter.second = (now / 1_000, if second == now / 1_000 { count + 1 } else { 1 });
        let (kind, count) = (meter.kind, meter.second.1);
        self.object_requests_by[kind] += 1;
        self.busiest[kind] = self.busiest[kind].max(count);
        self.object_serves(station, now, served);
    }

    /// An object serves a request or its alarm, for which the platform bills a request too.
    pub fn object_serves(&mut self, station: u16, now: u64, served: Range<u64>) {
        let meter = *self.meter(station);
        self.object_awake(station, now, served.end.div_ceil(1_000));
        let billed = &mut self.billed[meter.kind];
        billed.requests += 1.0;
        if meter.calls == 0 {
            // What lies behind it, as far as it was idle but for this.
            let from = served.start.max(meter.busy_until).max(meter.billed_to);
            billed.seconds += served.end.min(now * 1_000).saturating_sub(from) as f64 / 1e6;
        }
    }

    /// An object waits until then: for a timer, which nothing takes back, or a write.
    pub fn object_awake(&mut self, station: u16, now: u64, until: u64) {
        let index = usize::from(station);
        self.meter(station);
        self.objects[index].bill(now * 1_000, &mut self.billed);
        let meter = &mut self.objects[index];
        meter.busy_until = meter.busy_until.max(until * 1_000);
    }

    /// So many calls of an object have begun, or ended.
    pub fn object_calls(&mut self, station: u16, now: u64, calls: i32) {
        self.object_awake(station, now, 0);
        let meter = self.meter(station);
        meter.calls = meter.calls.saturating_add_signed(calls);
    }

    /// An object writes rows: records, alarms and lines of its tables.
    pub fn object_writes(&mut self, station: u16, rows: u64) {
        let kind = self.meter(station).kind;
        self.billed[kind].rows += rows as f64;
    }

    /// An object ends: whatever it waited for is gone.
    pub fn object_ends(&mut self, station: u16, now: u64) {
        self.object_awake(station, now, 0);
        let meter = self.meter(station);
        (meter.calls, meter.busy_until) = (0, 0);
    }

    fn meter(&mut self, station: u16) -> &mut Meter {
        let index = usize::from(station);
        if self.objects.len() <= index {
            self.objects.resize(index + 1, Meter::default());
        }
        &mut self.objects[index]
    }

    /// A report is on its way.
    pub fn report_bytes(&mut self, report: &ColoReport) {
        self.weigh(Weighed::Report, || report);
    }

    /// Global's answer is on its way, to Anywhere or to a colo.
    pub fn state_bytes(&mut self, state: &StateKey, to_anywhere: bool) {
        let kind = if to_anywhere { Weighed::AnswerToAnywhere } else { Weighed::AnswerToColo };
        if self.weigh(kind, || StateAnswer { v: VERSION, state: Some(state.clone()) }) {
            self.buckets = self.buckets.max(state.waiting.len());
        }
    }

    /// A data center's answer to a worker is on its way.
    pub fn answer_bytes(&mut self, answer: &WorkerAnswer) {
        if answer.state.is_some() {
            self.weigh(Weighed::StateKey, || answer);
        }
    }

    /// Weighs a message as the objects send it, if it is its turn.
    fn weigh<T: Serialize>(&mut self, kind: Weighed, message: impl FnOnce() -> T) -> bool {
        let kind = kind as usize;
        self.weighed[kind] += 1;
        let turn = self.weighed[kind].is_multiple_of(WEIGHED);
        if turn {
            let bytes = wire::encode(&message()).map_or(0, |bytes| bytes.len());
            self.bytes[kind] = self.bytes[kind].max(bytes);
        }
        turn
    }

    /// The figures.
    pub fn finish(mut self, end: u64, events: u64, known: &StateKey) -> Measured {
        self.settle(u64::MAX);
        for meter in &mut self.objects {
            meter.bill(end * 1_000, &mut self.billed);
        }
        let usage = Usage::of(self.requests, &self.billed);
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        let minutes = self.idle_minutes.len() as u64;
        let quantile = |histogram: &Histogram, part| histogram.quantile(part).unwrap_or(0);
        Measured {
            arrived: self.arrived,
            queued: self.queued,
            admitted: self.admitted,
            gave_up: self.gave_up,
            turned_away: self.turned_away,
            went_past: self.went_past,
            waiting_at_end: self.waiting.max(0) as u64,
            entered_after_closing_ms: self.entered_after_closing,
            active_overshoot: self.over_active,
            minute_overshoot: self.over_minute,
            sliding_overshoot: self.over_sliding,
            users_over: self.users_over.map(|users| users.max(0) as u64),
            false_raw: share(self.false_raw, self.arrived),
            false_adjusted: share(self.false_adjusted, self.arrived),
            false_exact: self.exact.then(|| share(self.false_exact, self.arrived)),
            idle: if minutes == 0 { 0.0 } else { self.idle_minutes.iter().sum::<f64>() / minutes as f64 },
            idle_worst: self.idle_minutes.iter().copied().fold(0.0, f64::max),
            waiting_minutes: minutes,
            passed_over: share(self.passed_over, self.placed),
            passed_any: share(self.passed_any, self.admitted),
            first_queued_at: self.first_queued_at,
            estimate_error: self.estimates.error(),
            estimate_least_error: self.estimates.least_error(),
            estimate_rose: share(self.rose, self.queued),
            latency_p50: quantile(&self.latencies, 0.5),
            latency_p95: quantile(&self.latencies, 0.95),
            calm_latency_p50: self.calm_latencies.quantile(0.5),
            calm_beyond_least_p50: self.calm_beyond_least.quantile(0.5),
            slow: self.bounds.slow,
            let_in_at_once: self.let_in_at_once,
            counter_calls: share(self.counter_calls, self.admitted),
            pool_calls: share(self.pool_calls, self.admitted),
            requests: self.requests,
            cookieless: self.cookieless,
            object_requests: share(self.object_requests * 1_000, self.requests),
            object_requests_per_second: self.object_requests as f64 * 1_000.0 / (end - self.start) as f64,
            object_requests_by: self
                .object_requests_by
                .map(|requests| requests as f64 * 1_000.0 / (end - self.start) as f64),
            busiest: self.busiest,
            refused: self.refused,
            billed: self.billed,
            usage,
            dollars_per_million: (self.arrived > 0).then(|| usage.dollars() * 1e6 / self.arrived as f64),
            bytes: self.bytes,
            buckets: self.buckets,
            wait_seconds: [0.5, 0.95, 1.0].map(|part| quantile(&self.waits, part)),
            miscounted: known.active - self.active,
            miscounted_waiting: known.waiting.iter().map(|(_, users)| i64::from(*users)).sum::<i64>()
                - self.waiting,
            quiet_ms: end - self.last_seen,
            copy_passed_ms: self.copy_passed_ms,
            attackers: (self.attackers_arrived, self.attackers_admitted),
            let_in: self.let_in,
            thrown_out: self.thrown_out,
            session_lost_ms: self.session_lost_ms,
            lost_places: self.lost_places,
            answer_ms: self.answer_ms,
            stuck_ms: self.stuck_ms,
            events,
            origin: None,
            chances: self.chances,
            series: self.series,
            history: self.history.map(|rows| History::of_rows(rows, 1.0)),
            entered_at_edges: self.entered_at_edges,
            recorded: Vec::new(),
            last_minute: None,
        }
    }
}
