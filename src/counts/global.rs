//! The Global object: the last report of every colo, and what they say together.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::ColoReport;
use super::flow::Flow;
use super::status::ColoView;
use super::{Counts, MoveOutcome, MovePlace, Moves, TOLD_MS};
use crate::admission::Given;
use crate::admission::{EndedNews, FORESEEN_MS, Level, Share, Shares, StateKey};
use crate::check_in::POOL_EXPIRY_LAG_MS;
use crate::history::{Count, Recorder, Sample, Tallies};
use crate::notifications;
use crate::origin::OriginHealth;
use crate::origin::OriginStatus;
use crate::origin::{Adaptive, Evidence, Hold, OriginCounts, Use};
use crate::room::{Limits, QueueingMethod, Room};
use crate::steering::{AuditEntry, Order, Overrides, Refusal, Steering, travelling};
use crate::time::{minute_of, start_of};
use crate::wire::VERSION;

/// The most colos that are kept apart: a few times as many as the network has.
pub const MAX_COLOS: usize = 1_000;
/// A colo that has not reported for this time is not counted among those with active workers, in milliseconds.
const ACTIVE_MS: u64 = 10_000;
/// A report that another one follows soon is stored this long after it at the latest, in milliseconds: after a restart its colo is
/// taken for cut off until the next one comes.
const STORED_MS: u64 = 15_000;
/// The longest time for which a colo uses the shares of a state key, in milliseconds.
const SHARES_USED_MS: u64 = 7_000;
/// From this time into a minute the shares of the next one can be settled: the history minute is reported by then.
const HISTORY_SETTLED_MS: u64 = 5_000;
/// How long a session counts after its end, in milliseconds: a request of its last seconds may still be on its way here.
const EXPIRY_LAG_MS: u64 = 1_000;
/// A colo whose announced report is late by this time is cut off, in milliseconds.
const CUT_OFF_MS: u64 = 1_500;
/// A colo that comes back after it was cut off for this time, in milliseconds, is taken to have reported everything when
/// as much time has passed again.
const BACK_MS: u64 = 5_000;
/// How long a session that may have been renewed in a colo that is cut off counts after its end, in milliseconds.
const CUT_OFF_SESSION_MS: u64 = 30_000;
/// How long a check-in takes to get here when the room is busy, in milliseconds: report, push, and the way.
const USUALLY_LATE_MS: u64 = 3_500;
/// How long a report that was announced may be on its way, in milliseconds.
const ON_THE_WAY_MS: u64 = 500;
/// All workers have heard of an operator's order after this time, in milliseconds.
const OBEYED_MS: u64 = 3_000;
/// The fewest minutes of admissions that are sent to the pool. It waits for a session for what colos have not reported.
const LEAST_RECENT_MINUTES: u32 = 4;
/// The most, however long a session is: each minute is some eight bytes of every answer to the pool.
const MOST_RECENT_MINUTES: u32 = 60;
/// A report says everything up to this time before it came, in milliseconds.
const REPORTED_MS: u64 = 3_000;
/// While people wait, a minute is divided among colos only where each gets this many numbers on average.
const FEW_NUMBERS: u64 = 20;

/// What Global keeps in storage besides the colos' reports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GlobalMeta {
    /// Format version.
    pub v: u8,
    /// The shares that were settled, by minute. They must survive a restart: the minute's numbers are dealt by them.
    pub shares: Vec<(u32, Shares)>,
    /// Per ended minute: numbers that their owners say they gave.
    #[serde(default)]
    pub told: Vec<(u32, i64)>,
    /// What operators have changed, as it was last received: where the record of it cannot be read, this may be.
    #[serde(default, with = "travelling")]
    pub steering: Overrides,
}

#[derive(Debug, Clone)]
pub(super) struct Colo {
    pub(super) report: ColoReport,
    pub(super) received_at: u64,
    answered_at: u64,
    /// Since when there is something in the report that is not in storage.
    unstored_since: Option<u64>,
    /// When it came back after it had been cut off, or Global after it had lost its memory, and since when reports were missing.
    back: Option<(u64, u64)>,
    /// The version of what operators have changed that is in force there, as far as it has said.
    steering: u32,
    /// Whether it knows that an operator watches.
    watched: bool,
    /// It could not be told of a change, and has not reported since.
    unreachable: bool,
}

impl Colo {
    fn new(report: ColoReport, received_at: u64, answered_at: u64) -> Self {
        let steering = report.steering;
        Self {
            report,
            received_at,
            answered_at,
            unstored_since: Some(received_at),
            back: None,
            steering,
            watched: false,
            unreachable: false,
        }
    }

    /// Whether a report that was announced has not come.
    fn is_cut_off(&self, now: u64) -> bool {
        self.report.next_in > 0 && now >= self.received_at + self.report.next_in + CUT_OFF_MS
    }

    /// `back`, if that was within [`BACK_MS`] before `now`.
    fn back_lately(&self, now: u64) -> Option<(u64, u64)> {
        self.back.filter(|(back_at, _)| now < back_at + BACK_MS)
    }

    /// Whether Global has just lost its memory, and knows of this colo's users only what was in storage.
    fn is_stored_only(&self, now: u64) -> bool {
        !self.report.counts.is_empty() && self.back_lately(now).is_some_and(|(at, _)| self.received_at < at)
    }

    /// Whether what it said last may have been lost with Global's memory within [`BACK_MS`] before `now` (milliseconds since the
    /// epoch), and it has not reported since.
    fn is_forgotten(&self, now: u64) -> bool {
        self.is_cut_off(now) && self.back_lately(now).is_some()
    }

    /// Whether it pushes by itself.
    fn is_awake(&self, now: u64) -> bool {
        !self.is_cut_off(now) && (self.report.next_in > 0 || now < self.received_at + ACTIVE_MS)
    }

    /// Whether it may have a state key to take its share of a minute by: it was answered in time for that.
    fn knows_shares_of(&self, minute: u32) -> bool {
        self.answered_at + SHARES_USED_MS >= start_of(minute)
    }

    /// Until when it has told what its users do. One whose next report has not come, or was forgotten in a restart, has said
    /// nothing since.
    fn heard_until(&self, now: u64) -> u64 {
        match self.report.next_in {
            0 => now,
            next_in => now.min(self.received_at + next_in + ON_THE_WAY_MS),
        }
    }

    /// Since when nobody knows what its users do, if it is cut off at `now`, or was until a moment ago: its workers may
    /// have more to report than its first report holds.
    fn silent_since(&self, room: &Room, now: u64) -> Option<u64> {
        if self.is_cut_off(now) {
            return (now < self.received_at + 2 * room.session_ms()).then_some(self.received_at);
        }
        self.back_lately(now).map(|(_, before)| before)
    }
}

/// A room, as all colos together see it.
#[derive(Debug)]
pub struct Global {
    pub(super) colos: LiteMap<String, Colo>,
    pub(super) merged: Counts,
    shares: LiteMap<u32, Shares>,
    /// A minute, the most numbers of it that were to be given, and when it became fewer, in milliseconds since the epoch.
    most_dealt: (u32, i64, Option<u64>),
    /// Per ended minute: numbers that their owners say they gave.
    told: LiteMap<u32, i64>,
    anywhere: Option<Given>,
    /// Of a minute: users who tried to enter, added up over the colos once and kept so with each report.
    tried: Option<(u32, i64)>,
    /// The minute in which somebody began to wait last, how many have in it, and when the last one was reported.
    joined: Option<(u32, i64, u64)>,
    pub(super) flow: Flow,
    /// Colos whose stored reports are to be deleted.
    forgotten: Vec<String>,
    meta_stored: bool,
    /// What passed through the room in the last minute.
    evidence: Evidence,
    /// What of it limits are judged by.
    judged: Evidence,
    pub(super) origin: OriginMemory,
    origin_stored: bool,
    steering: Steering,
    /// What was reported of it before a restart.
    steering_before: Overrides,
    /// What of it travels.
    overrides: Overrides,
    watched: bool,
    moves: Moves,
    /// What becomes history.
    pub(super) recorder: Recorder,
    /// The minute of the last report.
    pub(super) minute: u32,
}

/// What Global knows of the origin and keeps in storage.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OriginMemory {
    /// Format version.
    pub v: u8,
    /// The limits that follow it.
    pub adaptive: Adaptive,
    /// Whether new users wait for it.
    pub hold: Hold,
}

impl Global {
    /// A Global at its start, with what it stored before.
    pub fn restore(room: &Room, meta: Option<GlobalMeta>, reports: Vec<ColoReport>, now: u64) -> Self {
        let mut global = Self {
            colos: LiteMap::new(),
            merged: Counts::new(room),
            shares: LiteMap::new(),
            most_dealt: (0, 0, None),
            told: LiteMap::new(),
            anywhere: None,
            tried: None,
            joined: None,
            flow: Flow::default(),
            forgotten: Vec::new(),
            meta_stored: true,
            evidence: Evidence::default(),
            judged: Evidence::default(),
            origin: OriginMemory::default(),
            origin_stored: true,
            steering: Steering::default(),
            steering_before: Overrides::default(),
            overrides: Overrides::default(),
            watched: false,
            moves: Moves::default(),
            recorder: Recorder::default(),
            minute: minute_of(now),
        };
        let meta = meta.unwrap_or_default();
        global.steering_before = meta.steering;
        for (minute, shares) in meta.shares {
            global.shares.insert(minute, shares);
        }
        for (minute, given) in meta.told {
            global.told.insert(minute, given);
        }
        // Since when a report is missing that was announced: never, if none is.
        let mut missing_since = u64::MAX;
        for mut report in reports {
            let colo = report.colo.clone();
            report.counts.forget(room, now);
            report.tallies.forget(room, false, now);
            // What was stored long ago, or is one too many, does not count any more. A colo that
            // sleeps counts for as long as it relies on being told of orders.
            let is_empty = report.counts.is_empty() && report.tallies.is_empty();
            let is_old = is_empty && report.sequence + told_ms(room) <= now;
            if is_old || global.colos.len() >= MAX_COLOS {
                global.forgotten.push(colo);
                continue;
            }
            global.merged.merge(&report.counts, 1);
            global.recorder.tallies.replace(&Tallies::default(), &report.tallies);
            // Whether a colo was answered just before the restart is not known: assume that it was.
            // A sequence number is the time of the report, by the data center's clock.
            let received_at = report.sequence.min(now);
            if !is_empty && report.next_in > 0 && received_at + report.next_in < now {
                missing_since = missing_since.min(received_at);
            }
            global.colos.insert(colo, Colo { unstored_since: None, ..Colo::new(report, received_at, now) });
        }
        global.merged.forget(room, now);
        // What a colo said last may be lost with the memory: there a session of any other colo may have been renewed.
        for (_, colo) in global.colos.iter_mut() {
            colo.back = Some((now, missing_since));
        }
        global
    }

    /// Takes up what was stored of the origin before a restart.
    pub fn recall(&mut self, origin: OriginMemory) {
        self.origin = origin;
    }

    /// Takes up what was stored of moved places before a restart.
    pub fn recall_moves(&mut self, moves: Moves) {
        self.moves = moves;
    }

    /// Moves a place to another device. Returns what came of it, and what is to be stored before that is answered.
    pub fn move_place(&mut self, room: &Room, ask: &MovePlace, now: u64) -> (MoveOutcome, &Moves) {
        (self.moves.redeem(room, ask, now), &self.moves)
    }

    /// Takes up what operators have changed before a restart. What of it could not be read is as a colo knew it last, or the
    /// room is closed to new users.
    pub fn recall_steering(&mut self, mut steering: Steering) {
        let reports = || self.colos.values().map(|colo| &colo.report);
        let before = &self.steering_before;
        steering.require(before.version);
        for report in reports() {
            let known = report.overrides.version;
            steering.require(if known > 0 { known } else { report.steering });
        }
        steering.learn(before);
        for report in reports() {
            steering.learn(&report.overrides);
        }
        steering
            .be_newer_than(reports().map(|report| report.steering).max().unwrap_or(0).max(before.version));
        self.overrides = steering.overrides();
        self.steering = steering;
    }

    /// What is in force, or was before it could not be read.
    fn readable_steering(&self) -> &Overrides {
        if self.overrides.unreadable { &self.steering_before } else { &self.overrides }
    }

    /// Learns of a report what operators have changed, if Global does not know that itself.
    fn learn_steering(&mut self, report: &ColoReport) {
        let has_learned = self.steering.learn(&report.overrides);
        if has_learned || report.steering > self.overrides.version {
            let in_force = self.overrides.version + u32::from(has_learned);
            self.steering.be_newer_than(report.steering.max(in_force));
            self.overrides = self.steering.overrides();
        }
    }

    /// Does what an operator orders; see [`Steering::obey`]. What has changed must be in storage before it is answered.
    ///
    /// # Errors
    /// Why nothing was done.
    pub fn obey(
        &mut self,
        deployed: &Room,
        order: &Order,
        by: &str,
        now: u64,
    ) -> Result<Vec<AuditEntry>, Refusal> {
        let log = self.steering.obey(deployed, order, by, now)?;
        self.meta_stored &= log.is_empty();
        self.overrides = self.steering.overrides();
        Ok(log)
    }

    /// Ends what is to end by itself; see [`Steering::end_overrides`]. What has changed must be in storage before anybody is
    /// told.
    pub fn end_overrides(&mut self, deployed: &Room, now: u64) -> Vec<AuditEntry> {
        let log = self.steering.end_overrides(deployed, now);
        if !log.is_empty() {
            self.meta_stored = false;
            self.overrides = self.steering.overrides();
        }
        log
    }

    /// What could not be read of what was stored and an operator has cleared: to be stored elsewhere.
    pub fn steering_set_aside(&mut self) -> Option<Vec<u8>> {
        self.steering.take_set_aside()
    }

    /// What operators have changed.
    pub fn steering(&self) -> &Steering {
        &self.steering
    }

    /// The same as it travels.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Whether an operator watches. Then all colos report soon, however calm the room is.
    pub fn watch(&mut self, watched: bool) {
        // Asked with every push: it costs nothing while nothing changes.
        if std::mem::replace(&mut self.watched, watched) && !watched {
            for (_, colo) in self.colos.iter_mut() {
                colo.watched = false;
            }
        }
    }

    /// Colos that have yet to be told of operators' changes, though they may sleep, or that one watches: those that are awake,
    /// and those that may wake up with users who are still active.
    pub fn colos_to_tell(&self, room: &Room, now: u64) -> Vec<String> {
        let must_be_told = |colo: &Colo| {
            let silent_ms = now.saturating_sub(colo.received_at);
            let must_obey = colo.steering < self.overrides.version && silent_ms < told_ms(room);
            let must_report = self.watched && !colo.watched && silent_ms < lives_ms(room);
            // A Global that has just started may have lost the report it misses: it tries once.
            !(colo.is_cut_off(now) && colo.unreachable) && (must_obey || must_report)
        };
        let colos = self.colos.iter().filter(|(_, colo)| must_be_told(colo));
        colos.map(|(name, _)| name.clone()).collect()
    }

    /// A colo was told so by a state key: of which version of what operators have changed, and whether one looks.
    pub fn told(&mut self, colo: &str, version: u32, watched: bool) {
        if let Some(colo) = self.colos.get_mut(colo) {
            colo.steering = colo.steering.max(version);
            colo.watched = watched;
        }
    }

    /// A colo has not answered when it was told of a change, or that an operator watches. If its report is missing too, it is not
    /// told again until it reports.
    pub fn not_told(&mut self, colo: &str) {
        if let Some(colo) = self.colos.get_mut(colo) {
            colo.unreachable = true;
        }
    }

    /// In how many of the colos that are awake the newest changes are in force, and how many are awake.
    pub fn in_force(&self, now: u64) -> (usize, usize) {
        let awake: Vec<&Colo> = self.colos.values().filter(|colo| colo.is_awake(now)).collect();
        let obey = awake.iter().filter(|colo| colo.steering >= self.overrides.version);
        (obey.count(), awake.len())
    }

    /// A colo's data center was answered, though it had nothing to report.
    pub fn answered(&mut self, colo: &str, now: u64) {
        if let Some(colo) = self.colos.get_mut(colo) {
            colo.answered_at = now;
        }
    }

    /// Takes in what a health check says. Returns whether that changes anything. A change must be in storage before it is
    /// answered.
    pub fn origin_health(&mut self, room: &Room, told: &OriginHealth, now: u64) -> bool {
        let changed = self.origin.hold.told(room, &told.check, told.healthy, told.at);
        let held = self.origin.hold.update(room, &self.evidence, now);
        self.origin_stored &= !changed && !held;
        changed
    }

    /// What must be stored of the origin, if it has changed.
    pub fn origin_to_store(&mut self) -> Option<OriginMemory> {
        (!std::mem::replace(&mut self.origin_stored, true))
            .then(|| OriginMemory { v: VERSION, ..self.origin.clone() })
    }

    /// What is known of the origin, for operators.
    pub fn origin_status(&self, room: &Room, now: u64) -> OriginStatus {
        let lately = self.colos.values().filter(|colo| now < colo.received_at + ACTIVE_MS);
        let in_flight = lately.filter_map(|colo| Some(colo.report.origin.as_ref()?.counts.in_flight)).sum();
        let unhealthy = self.origin.hold.unhealthy_check(room);
        OriginStatus {
            v: VERSION,
            limits: self.origin.hold.limit(self.origin.adaptive.limits(room), now),
            held: self.origin.hold.is_held(),
            unhealthy: unhealthy.map(|(check, since)| (check.to_owned(), since)),
            last_minute: OriginCounts { in_flight, ..self.evidence.since(now.saturating_sub(60_000)) },
        }
    }

    /// What is known of the origin, for notifications.
    pub fn origin_observation(&self, room: &Room) -> notifications::Origin {
        let hold = &self.origin.hold;
        let unhealthy = hold.unhealthy_checks(room).map(|(check, since)| (check.to_owned(), since));
        notifications::Origin {
            limits: Some(self.origin.adaptive.limits(room)),
            held: hold.is_held(),
            down: hold.is_down(),
            unhealthy: unhealthy.collect(),
        }
    }

    /// An event may change the session duration, and with it the width of slots: everything is added up anew.
    fn adapt(&mut self, room: &Room, now: u64) {
        if self.merged.is_as_wide(room) {
            return;
        }
        self.merged = Counts::new(room);
        for colo in self.colos.values() {
            self.merged.merge(&colo.report.counts, 1);
        }
        self.merged.forget(room, now);
    }

    /// Takes in a colo's report: the newest counts, an older or repeated one changes nothing. Returns false when the
    /// report was not taken because there is no room for another colo.
    pub fn receive(&mut self, room: &Room, report: ColoReport, now: u64) -> bool {
        self.adapt(room, now);
        self.note_endings(room, now);
        self.learn_steering(&report);
        if let Some(colo) = self.colos.get_mut(&report.colo) {
            colo.answered_at = now;
            if report.sequence <= colo.report.sequence {
                return true;
            }
            let before = &colo.report;
            self.evidence.take_in(report.origin.as_ref(), before.origin.as_ref(), now);
            self.judged.take_in(report.judged().as_ref(), before.judged().as_ref(), now);
            if colo.is_cut_off(now.saturating_sub(BACK_MS)) {
                colo.back = Some((now, colo.received_at));
            }
            // Costs the size of one report, however many colos there are.
            self.merged.replace(&colo.report.counts, &report.counts);
            self.recorder.tallies.replace(&colo.report.tallies, &report.tallies);
            if let Some((minute, tried)) = &mut self.tried {
                let (was, is) = (colo.report.counts.tried_in(*minute), report.counts.tried_in(*minute));
                *tried += is.max(0) - was.max(0);
            }
            colo.steering = report.steering;
            colo.report = report;
            colo.received_at = now;
            colo.unstored_since.get_or_insert(now);
            colo.unreachable = false;
        } else {
            if self.colos.len() >= MAX_COLOS && !self.forget_a_silent_colo(room, now) {
                return false;
            }
            self.merged.merge(&report.counts, 1);
            self.recorder.tallies.replace(&Tallies::default(), &report.tallies);
            self.evidence.take_in(report.origin.as_ref(), None, now);
            self.judged.take_in(report.judged().as_ref(), None, now);
            self.tried = None;
            let name = report.colo.clone();
            self.colos.insert(name, Colo::new(report, now, now));
        }
        self.merged.forget(room, now);
        self.recorder.tallies.forget(room, false, now);
        self.note_joins(now);
        true
    }

    /// Notes when the last visitor who has begun to wait was reported.
    fn note_joins(&mut self, now: u64) {
        let minute = minute_of(now);
        let joins = self.recorder.tallies.of(minute, Count::Joins);
        if joins > 0 && self.joined.is_none_or(|(of, known, _)| (of, known) != (minute, joins)) {
            self.joined = Some((minute, joins, now));
        }
    }

    fn forget_a_silent_colo(&mut self, room: &Room, now: u64) -> bool {
        let kept = told_ms(room);
        let silent = self
            .colos
            .iter()
            .filter(|(_, colo)| now >= colo.received_at + kept)
            .min_by_key(|(_, colo)| colo.received_at)
            .map(|(name, _)| name.clone());
        let Some(colo) = silent.and_then(|name| self.colos.remove(&name)) else { return false };
        self.forgotten.push(colo.report.colo.clone());
        self.tried = None;
        self.merged.merge(&colo.report.counts, -1);
        self.recorder.tallies.replace(&colo.report.tallies, &Tallies::default());
        self.merged.forget(room, now);
        true
    }

    /// Takes in how many numbers Anywhere has given.
    pub fn anywhere_gave(&mut self, given: Given) {
        let newer = self.anywhere.is_none_or(|known| {
            (given.minute, given.given.unwrap_or(u64::MAX)) >= (known.minute, known.given.unwrap_or(0))
        });
        if newer {
            self.anywhere = Some(given);
        }
    }

    /// Settles the shares that are due. Once settled they never change, so that no number has two owners. They must
    /// be in storage ([`Global::meta_to_store`]) before any answer leaves that holds them.
    fn settle_shares(&mut self, room: &Room, asked_for: u32, now: u64) {
        let minute = minute_of(now);
        self.shares.retain(|of, _| *of + 2 >= minute);
        let next_is_due = now >= start_of(minute) + HISTORY_SETTLED_MS;
        // A minute that nobody prepared, or that begins before its history is known, belongs to Anywhere.
        for due in [minute, asked_for] {
            if !self.shares.contains_key(&due) && (due <= minute || !next_is_due) {
                self.shares.insert(due, Shares::all_anywhere());
                self.meta_stored = false;
            }
        }
        if next_is_due && !self.shares.contains_key(&(minute + 1)) {
            let shares =
                self.share_by_queue(room, now).unwrap_or_else(|| self.share_by_history(room, minute));
            self.shares.insert(minute + 1, shares);
            self.meta_stored = false;
        }
    }

    /// Shares by the traffic of the last full minute (2023 article).
    fn share_by_history(&self, room: &Room, minute: u32) -> Shares {
        let history = minute.saturating_sub(1);
        let users = self.colos.iter().map(|(name, colo)| {
            let tried = colo.report.counts.tried_in(history);
            (name.as_str(), tried.max(0) as u64)
        });
        Shares::from_history(users, u64::from(room.new_users_per_minute))
    }

    /// Shares by whose turn is next, while people wait: traffic says where the crowd is, but a number dealt to a colo
    /// whose visitors are all too young stands idle. A quarter stays with Anywhere, for those whose colo ran out.
    fn share_by_queue(&self, room: &Room, now: u64) -> Option<Shares> {
        let waiting = self.merged.waiting_at(room, now);
        let numbers = u64::from(room.new_users_per_minute).min(u64::from(room.total_active_users));
        let mut users: Vec<u64> = vec![0; self.colos.len()];
        let mut total = 0;
        for (bucket, _) in waiting {
            // Where the order is random, it is the turn of all of them.
            if total >= numbers && room.queueing_method != QueueingMethod::Random {
                break;
            }
            for (users, colo) in users.iter_mut().zip(self.colos.values()) {
                let here = colo.report.counts.waiting_in(room, bucket, now);
                *users += here;
                total += here;
            }
        }
        // Too few for each colo to have one at hand whenever its oldest asks: whoever is oldest finds them at Anywhere.
        let colos = users.iter().filter(|users| **users > 0).count() as u64;
        if total > 0 && numbers < FEW_NUMBERS * colos {
            return Some(Shares::all_anywhere());
        }
        let users = self.colos.keys().map(String::as_str).zip(users);
        (total > 0).then(|| Shares::from_history(users, total * 4 / 3 + 1))
    }

    /// The state key for a colo, or for Anywhere (`colo` is `None`), at `now`. `minute` is the asker's minute: its
    /// clock may be ahead or behind, by a minute at the most.
    pub fn state(&mut self, room: &Room, colo: Option<&str>, minute: u32, now: u64) -> StateKey {
        self.adapt(room, now);
        let here = minute_of(now);
        let this = minute.clamp(here.saturating_sub(1), here + 1);
        if room.slot_strategy.owns_shares() {
            self.settle_shares(room, this, now);
        }
        let carry = self.carry(room, this);
        let covered = self.covered(now);
        self.flow.update(room, &self.merged, covered, now);
        let (colo_ratio, anywhere_ratio) = self.ratios(room, colo, this);
        let merged = &self.merged;
        // Renewals of the last seconds of a session are reported at once, but not in no time.
        let counted_at = now.saturating_sub(expiry_lag_ms(room));
        let silent = self.silent(room, now);
        let expiring = self.expiring(room, counted_at, &silent);
        let counted = merged.active_at(room, counted_at);
        // The limit has been kept: no more can be inside, whichever colo is silent.
        let cut_off =
            self.cut_off(room, &silent, now).min((i64::from(room.total_active_users) - counted).max(0));
        let active = counted + cut_off;
        let foreseen = |ms: u64| (counted - merged.active_at(room, counted_at + ms)).max(0) as u32;
        let (expiring_refresh, expiring_minute) = (foreseen(room.refresh_ms()), foreseen(60_000));
        let waiting = merged.waiting_at(room, now);
        let entering = self.entering(now);
        let (present, strangers) = merged.present_at(room, &waiting, now - self.unheard_ms(room, now));
        let nobody_waits = present.iter().all(|users| *users == 0);
        let used = Use { active, entering: f64::from(entering) / 10.0, waiting: !nobody_waits };
        let limits = self.limits(room, used, now);
        self.recorder.sample(
            here,
            Sample {
                active: active.max(0) as u64,
                waiting: waiting.iter().map(|(_, users)| u64::from(*users)).sum(),
                limits,
                suspended: room.suspended,
            },
        );
        let merged = &self.merged;
        let pools = room.slot_strategy.leases_permits() && colo.is_none();
        let recent = if pools { self.recent_admissions(room, here) } else { Vec::new() };
        let mut key = StateKey {
            v: VERSION,
            taken_at: now,
            minute: this,
            age: 0,
            active,
            step: room.slot_ms().max(1),
            expiring,
            expiring_refresh,
            expiring_minute,
            admitted: merged.admitted_in(this),
            admitted_next: merged.admitted_in(this + 1),
            unnumbered: merged.unnumbered_in(this),
            carry,
            entering,
            waiting,
            shares: [this, this + 1]
                .iter()
                .filter_map(|minute| Some(self.shares.get(minute)?.for_colo(*minute, colo)))
                .collect(),
            colo_ratio,
            anywhere_ratio,
            colo_workers: 1,
            all_workers: self.active_workers(now).max(1),
            level: level(room, limits, active, entering, nobody_waits),
            covered,
            recent_colos: recent.iter().map(|(minute, ..)| self.colos_of(*minute)).collect(),
            recent,
            leaving: self.flow.leaving(room, i64::from(limits.total_active_users)),
            giving_up: self.flow.giving_up(),
            present,
            limits: (limits != room.limits()).then_some(limits),
            held: self.origin.hold.is_held(),
            steering: self.overrides.clone(),
            watched: self.watched,
            uncounted: false,
            told_ms: colo
                .and_then(|colo| self.colos.get(colo))
                .map_or(0, |colo| (colo.received_at + told_ms(room)).saturating_sub(now)),
            ended: EndedNews::default(),
            first_step_ms: merged.first_step_ms(room, counted_at),
            round_trip_ms: 0,
            strangers,
            quiet_ms: self.joined.map_or(0, |(.., at)| now.saturating_sub(at)),
            forgotten: colo.is_none() && self.colos.values().any(|colo| colo.is_stored_only(now)),
            // The pool sees no tickets.
            moved: if colo.is_some() { self.moves.told(now) } else { Vec::new() },
        };
        if room.slot_strategy.owns_shares() {
            self.hold_back(room, &mut key);
        }
        key
    }

    /// Where a limit has become lower, owners may have given more numbers of the minute than they own of what is left of
    /// it. So many are kept from the others. A colo that has not told since may have given all that it owned.
    fn hold_back(&mut self, room: &Room, key: &mut StateKey) {
        let (minute, now) = (key.minute, key.taken_at);
        let Some(budget) = key.budget(room, minute, now) else { return };
        let (_, most, since) =
            Some(self.most_dealt).filter(|(of, ..)| *of == minute).unwrap_or((minute, budget, None));
        let most = most.max(budget);
        let since = since.or((budget < most).then_some(now));
        self.most_dealt = (minute, most, since);
        let (Some(since), Some(shares)) = (since, self.shares.get(&minute)) else { return };
        let view = shares.for_colo(minute, None);
        let told = |given: Option<Given>| given.filter(|given| given.minute == minute)?.given;
        let colos = shares.colos().map(|(name, share)| {
            let colo = self.colos.get(name);
            let given = match colo.filter(|colo| colo.knows_shares_of(minute)) {
                Some(colo) if colo.received_at < since + OBEYED_MS => view.owned(&share, most),
                _ => colo.and_then(|colo| told(colo.report.given)).unwrap_or(0) as i64,
            };
            (share, given)
        });
        let by_anywhere = told(self.anywhere).unwrap_or(0) as i64;
        let given: Vec<(Share, i64)> = colos.chain([(view.anywhere.clone(), by_anywhere)]).collect();
        let fitting = view.fitting(budget, &given);
        if fitting < budget {
            key.lower_budget(room, fitting);
        }
    }

    /// How many colos have told of users admitted with a number of the minute.
    fn colos_of(&self, minute: u32) -> u32 {
        self.colos.values().filter(|colo| colo.report.counts.admitted_in(minute) > 0).count() as u32
    }

    /// The parts of the new traffic that a colo brought and that no colo brought, in millionths.
    fn ratios(&mut self, room: &Room, colo: Option<&str>, minute: u32) -> (u32, u32) {
        let history = minute.saturating_sub(2);
        let tried = |colo: &Colo| colo.report.counts.tried_in(history).max(0);
        let all_tried = match self.tried {
            Some((minute, users)) if minute == history => users,
            _ => self.colos.values().map(tried).sum(),
        };
        self.tried = Some((history, all_tried));
        let whole = all_tried.max(i64::from(room.new_users_per_minute)).max(1);
        let millionths = |part: i64| (part * 1_000_000 / whole) as u32;
        let here = colo.and_then(|name| self.colos.get(name)).map_or(0, tried);
        (millionths(here), millionths(whole - all_tried))
    }

    /// How many active users will have expired at the end of each step, without those of colos that are cut off: they count for longer
    /// ([`Global::cut_off`]). Steps at the end that change nothing are left out.
    fn expiring(&self, room: &Room, counted_at: u64, silent: &[(&Colo, u64)]) -> Vec<u32> {
        let slots = FORESEEN_MS.div_ceil(room.slot_ms().max(1)) as usize;
        let mut expiring = self.merged.expiring(room, counted_at, slots);
        for (colo, _) in silent {
            for (all, here) in expiring.iter_mut().zip(colo.report.counts.expiring(room, counted_at, slots)) {
                *all = all.saturating_sub(here);
            }
        }
        while expiring.len() > 1 && expiring.last() == expiring.get(expiring.len() - 2) {
            expiring.pop();
        }
        expiring
    }

    /// The admissions of the minutes of a session, as the pool is told: minute, all, and those without a number.
    fn recent_admissions(&self, room: &Room, here: u32) -> Vec<(u32, i64, i64)> {
        let minutes =
            room.session_duration.saturating_add(1).clamp(LEAST_RECENT_MINUTES, MOST_RECENT_MINUTES);
        (here.saturating_sub(minutes)..=here + 1)
            .map(|minute| (minute, self.merged.admitted_in(minute), self.merged.unnumbered_in(minute)))
            .collect()
    }

    /// The limits in force: moved by what passed through the room, where the owner gave a range.
    fn limits(&mut self, room: &Room, used: Use, now: u64) -> Limits {
        let before = self.origin.adaptive.limits(room);
        self.origin.adaptive.step(room, &self.evidence, &self.judged, used, now);
        let limits = self.origin.adaptive.limits(room);
        let held = self.origin.hold.update(room, &self.evidence, now);
        self.origin_stored &= limits == before && !held;
        self.origin.hold.limit(limits, now)
    }

    /// Everything before this time is in the counts, unless a colo lies about how late its reports are.
    pub(super) fn covered(&self, now: u64) -> u64 {
        let covered = self
            .colos
            .values()
            .filter(|colo| !colo.report.counts.is_empty())
            .map(|colo| colo.heard_until(now).saturating_sub(colo.report.late));
        covered.min().unwrap_or(now).min(now.saturating_sub(USUALLY_LATE_MS))
    }

    /// For how long it has not been known who still waits, in milliseconds: where a report is missing, nobody has left since.
    /// Less after a refresh, and nothing after two: by then they have moved on to other colos.
    fn unheard_ms(&self, room: &Room, now: u64) -> u64 {
        let unheard = self.colos.values().map(|colo| {
            let ms = now - colo.heard_until(now);
            ms.min((2 * room.refresh_ms()).saturating_sub(ms))
        });
        unheard.max().unwrap_or(0)
    }

    /// The colos of whose users nobody knows what they do, and since when ([`Colo::silent_since`]).
    fn silent(&self, room: &Room, now: u64) -> Vec<(&Colo, u64)> {
        self.colos.values().filter_map(|colo| Some((colo, colo.silent_since(room, now)?))).collect()
    }

    /// Users of colos that are cut off, whose sessions have seemed to end lately: they may have been renewed, and nobody
    /// could tell. Not those who were seen in another colo since, nor as many as leave anyway: that is an estimate, by which
    /// nobody is taken off in the seconds after a restart, when it is not known of any colo.
    fn cut_off(&self, room: &Room, silent: &[(&Colo, u64)], now: u64) -> i64 {
        let counted_at = now.saturating_sub(expiry_lag_ms(room));
        let (ended, left) = silent.iter().fold((0, 0), |(ended, left), (colo, since)| {
            let counts = &colo.report.counts;
            let told_until = since.saturating_sub(REPORTED_MS);
            let from = told_until.max(counted_at.saturating_sub(CUT_OFF_SESSION_MS));
            let leaving = if colo.is_forgotten(now) {
                0
            } else {
                self.flow.leaving(room, counts.active_at(room, told_until))
            };
            let left = left + u64::from(leaving) * counted_at.saturating_sub(from);
            (ended + counts.ended_unseen(room, from, counted_at, &self.merged), left)
        });
        let left = left / 600_000;
        // By chance it may be this many fewer.
        let left = left.saturating_sub(3 * left.isqrt());
        (ended - left as i64).max(0)
    }

    /// Users admitted per ten minutes, at the rate of the last full minute and the part of this one.
    fn entering(&self, now: u64) -> u32 {
        let minute = minute_of(now);
        let entered = |minute: u32| self.merged.admitted_in(minute) + self.merged.unnumbered_in(minute);
        let users = (entered(minute) + entered(minute.saturating_sub(1))).max(0) as u64;
        (users * 600_000 / (60_000 + now - start_of(minute))) as u32
    }

    pub(super) fn active_workers(&self, now: u64) -> u32 {
        self.colos
            .values()
            .filter(|colo| now < colo.received_at + ACTIVE_MS)
            .map(|colo| colo.report.workers)
            .sum()
    }

    /// How many numbers of the minutes before `minute` may have been given and are not among the admitted yet. Where
    /// an owner has not said how many it gave in the last one, it may have given all that it owned; of earlier
    /// minutes, back to a session ago, what owners have said must be accounted for.
    fn carry(&mut self, room: &Room, minute: u32) -> i64 {
        if !room.slot_strategy.owns_shares() {
            return 0;
        }
        let previous = minute.saturating_sub(1);
        let most = self.merged.most_admitted(room, previous);
        let whole = Shares::all_anywhere();
        let shares = self.shares.get(&previous).unwrap_or(&whole);
        let mut told_in_all = 0;
        let anywhere = self.anywhere.filter(|given| given.minute == minute);
        let told = anywhere.and_then(|given| final_count(given, minute));
        // What is only assumed after a breakdown is held for this one minute, not for a session.
        told_in_all += told.unwrap_or(0) - anywhere.map_or(0, |given| given.assumed as i64);
        let by_anywhere = told.unwrap_or_else(|| shares.for_colo(previous, None).anywhere_slots(most));
        let by_colos: i64 = shares
            .colos()
            .map(|(name, share)| {
                let known = self.colos.get(name);
                let told = known.and_then(|colo| final_count(colo.report.given?, minute));
                let asleep = known.is_none_or(|colo| !colo.knows_shares_of(previous));
                told_in_all += told.unwrap_or(0);
                match told {
                    Some(given) => given,
                    None if asleep => 0,
                    None => {
                        let view = shares.for_colo(previous, None);
                        view.owned(&share, most)
                    }
                }
            })
            .sum();
        let unbooked = by_anywhere + by_colos - self.merged.admitted_in(previous);
        // Whatever was given, the limits held: more cannot be missing than was free.
        let unbooked = unbooked.clamp(0, (most - self.merged.admitted_in(previous)).max(0));
        // An asker whose clock is behind, or a Global that has just started, must not unsay it.
        let said = self.told.get(&previous).copied().unwrap_or(0);
        self.told.insert(previous, told_in_all.max(said));
        let oldest = minute.saturating_sub(room.session_duration + 1);
        self.told.retain(|of, _| *of >= oldest);
        let earlier: i64 = self
            .told
            .iter()
            .filter(|(of, _)| **of < previous)
            .map(|(of, told)| (told - self.merged.admitted_in(*of)).max(0))
            .sum();
        unbooked + earlier
    }

    /// What must be in storage before the next answer leaves, if it is not yet.
    pub fn meta_to_store(&self) -> Option<GlobalMeta> {
        (!self.meta_stored).then(|| GlobalMeta {
            v: VERSION,
            shares: self.shares.iter().map(|(minute, shares)| (*minute, shares.clone())).collect(),
            told: self.told.iter().map(|(minute, told)| (*minute, *told)).collect(),
            steering: self.readable_steering().clone(),
        })
    }

    /// The meta is in storage.
    pub fn meta_stored(&mut self) {
        self.meta_stored = true;
    }

    /// Stores the reports that are not in storage: all of them, or those that cannot wait for the next one. Returns whether any
    /// is left.
    pub fn store_reports(&mut self, all: bool, now: u64, mut store: impl FnMut(&ColoReport)) -> bool {
        let mut is_left = false;
        for (_, colo) in self.colos.iter_mut() {
            let Some(since) = colo.unstored_since else { continue };
            if all || !colo.report.is_followed() || now >= since + STORED_MS {
                store(&colo.report);
                colo.unstored_since = None;
            } else {
                is_left = true;
            }
        }
        is_left
    }

    /// Colos whose stored reports are to be deleted; each is named once.
    pub fn reports_to_delete(&mut self) -> Vec<String> {
        std::mem::take(&mut self.forgotten)
    }

    /// Users admitted in a minute, with a number and without.
    pub fn new_users(&self, minute: u32) -> i64 {
        self.merged.admitted_in(minute) + self.merged.unnumbered_in(minute)
    }

    /// When the oldest of the last reports came, of colos that are awake.
    pub(super) fn oldest_report(&self, now: u64) -> Option<u64> {
        self.colos.values().filter(|colo| colo.is_awake(now)).map(|colo| colo.received_at).min()
    }

    /// What each colo last reported.
    pub(super) fn colo_views(&self, room: &Room, now: u64) -> Vec<ColoView> {
        let minute = minute_of(now);
        let view = |(name, colo): (&String, &Colo)| {
            let counts = &colo.report.counts;
            let new_users = |minute: u32| counts.admitted_in(minute) + counts.unnumbered_in(minute);
            let waiting = counts.waiting_at(room, now).iter().map(|(_, users)| i64::from(*users)).sum();
            ColoView {
                colo: name.clone(),
                reported_at: colo.received_at,
                age_ms: now.saturating_sub(colo.received_at),
                active: counts.active_at(room, now),
                waiting,
                new_users_this_minute: new_users(minute),
                new_users_last_minute: new_users(minute.saturating_sub(1)),
                workers: colo.report.workers,
                cut_off: colo.is_cut_off(now),
                steering: colo.steering,
            }
        };
        self.colos.iter().filter(|(_, colo)| !colo.report.counts.is_empty()).map(view).collect()
    }

    /// Per colo: its name, when its last report came (milliseconds since the epoch) and how many workers it has.
    pub fn colos(&self) -> impl Iterator<Item = (&str, u64, u32)> {
        self.colos.iter().map(|(name, colo)| (name.as_str(), colo.received_at, colo.report.workers))
    }
}

/// What an owner gave in the minute before `minute`, when it has said so after that minute had ended. An owner whose
/// clock has gone on to a later minute no longer says it.
fn final_count(given: Given, minute: u32) -> Option<i64> {
    if given.minute == minute { given.previous.map(|count| count as i64) } else { None }
}

/// For how long users of a colo that is silent may go on, in milliseconds.
fn lives_ms(room: &Room) -> u64 {
    2 * room.session_ms()
}

/// For how long after its last report a colo is told of operators' changes, in milliseconds.
fn told_ms(room: &Room) -> u64 {
    TOLD_MS.max(lives_ms(room))
}

fn expiry_lag_ms(room: &Room) -> u64 {
    if room.slot_strategy.leases_permits() { POOL_EXPIRY_LAG_MS } else { EXPIRY_LAG_MS }
}

/// How near a room is to its limits. `entering`: users admitted per ten minutes.
fn level(room: &Room, limits: Limits, active: i64, entering: u32, nobody_waits: bool) -> Level {
    let level = Level::of(room, limits, active, entering.into(), nobody_waits);
    // Only a pool is exact whatever has been reported; the others need to know soon.
    if room.slot_strategy.leases_permits() { level } else { level.max(Level::Busy) }
}
