//! The `DataCenter` object: one colo's workers, added up.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::ColoReport;
use super::WorkerAnswer;
use super::WorkerReport;
use super::ended::Ended;
use super::histogram::Counts;
use super::{CALM_REPORT_MS, CheckIn, CheckInDedup, LATE_RENEWAL_MS, SlotCounts, UNHURRIED_PUSH_MS};
use crate::admission::Given;
use crate::admission::{Clocked, Level, Remembered, StateKey};
use crate::history::{Count, Tallies};
use crate::origin::{OriginCounts, OriginReport};
use crate::room::Room;
use crate::steering::Overrides;
use crate::ticket::is_made_in;
use crate::time::minute_of;
use crate::wire::VERSION;

/// Time between pushes to Global while there is traffic, in milliseconds.
const PUSH_MS: u64 = 2_000;
/// The same while people wait and a pool judges.
const JUDGED_PUSH_MS: u64 = 2_250;
/// So many pushes are a session at least where nobody waits and a pool judges.
const UNHURRIED_PUSHES: u64 = 30;
/// The shortest time between urgent pushes, in milliseconds.
const URGENT_MS: u64 = 250;
/// The shortest time between pushes that report free slots while people wait, in milliseconds per worker of all colos:
/// Global serves them all.
const LEFT_MS_PER_WORKER: u64 = 2;
/// Pushes in a session of a calm room.
const SLOW_PUSHES: u64 = 6;
/// The same at least when nothing happens but users are active, and how far apart they may be, in milliseconds, where those of a
/// calm room are not farther.
const SILENT_PUSHES: u64 = 3;
const SILENT_PUSH_MS: u64 = 100_000;
/// From a check-in to Global when the room is busy: a report every second, a push every two, and the way.
const LATE_MS: u64 = 3_500;
/// The part of [`LATE_MS`] that a check-in takes to get here, in milliseconds: its worker waits for the second's end, and calls. More
/// where the data center has too much to do and refuses reports, or calls are lost.
const REPORTED_MS: u64 = 1_500;
/// For how long others are expected to be as late as a report has been, and how late at most, in milliseconds.
const DELAYED_MS: u64 = 60_000;
/// TTL of the state of a data center that Global does not tell of operators' changes, in milliseconds.
const TRUSTED_MS: u64 = 2_000;
/// It counts on being told for this much less time than Global says, in milliseconds: that answer has been on its way, and a
/// Global that has lost its memory knows of a report that came a little earlier.
const TOLD_MARGIN_MS: u64 = 20_000;
/// How long it goes on pushing after the last report, in milliseconds. Then it slows down, and sleeps when nobody is
/// active.
const AWAKE_MS: u64 = 12_000;
/// A worker that has not reported for this time is not counted as active, in milliseconds.
const WORKER_MS: u64 = 10_000;
/// The most workers that are known; the one silent for longest is forgotten for a new one.
pub const MAX_WORKERS: usize = 512;
/// Tickets remembered against double counting, per generation: 100,000 active users in all, about 7 MB.
const REMEMBERED_TICKETS: usize = 50_000;
/// Who reports a check-in this long after it, in milliseconds, may not be there any more to ask whether it was stored, which
/// takes some seconds: what goes on after a response ends after 30.
const TOO_LATE_TO_ASK_MS: u64 = 20_000;
/// How many kinds of a worker's counts are taken in.
const MAX_COUNTS: u64 = 64;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Worker {
    applied: u64,
    durable: u64,
    reported_at: u64,
    /// What it has seen of the origin, and what of it limits are judged by; `None`: not known, after a restart of the data
    /// center.
    origin: Option<(OriginCounts, OriginCounts)>,
    /// What it has counted, as far as that is in the tallies.
    counts: SlotCounts,
}

/// What a data center keeps in storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedDataCenter {
    /// Format version.
    pub v: u8,
    /// The colo's counts.
    pub counts: Counts,
    /// The last report's sequence number.
    pub sequence: u64,
    /// Per worker: the last check-in that is in the counts.
    pub workers: Vec<(u64, u64)>,
    /// What happened in the colo in the last minutes.
    #[serde(default)]
    pub tallies: Tallies,
    /// Per worker: what it has counted, as far as that is in the tallies.
    #[serde(default)]
    pub tallied: Vec<(u64, SlotCounts)>,
    /// Sessions that were ended here or elsewhere, the newest of them.
    #[serde(default)]
    pub ended: Vec<CheckIn>,
    /// Those of which Global has yet to be told.
    #[serde(default)]
    pub untold: Vec<CheckIn>,
    /// When the last state key came, and the key: a data center that is asked seldom need not ask Global each time. It is the
    /// last field of all, because the key may grow at its end.
    #[serde(default)]
    pub state: Option<(u64, StateKey)>,
}

/// By how much reports of late were later than [`REPORTED_MS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Delayed {
    /// When the period of [`DELAYED_MS`] began that `most` is of, in milliseconds since the epoch.
    since: u64,
    /// The most since then, in milliseconds.
    most: u64,
    /// The most in the period before that, in milliseconds.
    before: u64,
}

impl Delayed {
    /// The latest report: of the last [`DELAYED_MS`] and perhaps of as long before.
    fn most(&self) -> u64 {
        self.most.max(self.before)
    }

    /// A report came so much later, at `now`.
    fn learn(&mut self, by: u64, now: u64) {
        let by = by.min(DELAYED_MS);
        if now < self.since + DELAYED_MS {
            self.most = self.most.max(by);
        } else if by.max(self.most()) > 0 {
            let before = if now < self.since + 2 * DELAYED_MS { self.most } else { 0 };
            *self = Self { since: now, most: by, before };
        }
    }
}

/// How soon the next push must leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Haste {
    /// In its time.
    #[default]
    None,
    /// Users have left, and others may wait for their slots.
    Slots,
    /// At once: sessions were renewed in their last seconds, or the calm is over.
    Urgent,
}

/// Whether a restart would forget something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Storage {
    /// No: all is stored.
    #[default]
    Current,
    /// It would.
    Behind,
}

/// What Global may not know yet of what this start has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum News {
    /// Nothing.
    #[default]
    None,
    /// Something that no push has told.
    Untold,
    /// What the last push told: a Global that restarts before it has stored it must be told once more.
    ToldOnce,
}

/// One colo's counts and its copy of the state key.
#[derive(Debug)]
pub struct DataCenter {
    colo: String,
    instance: u64,
    counts: Counts,
    dedups: Remembered<CheckInDedup>,
    tallies: Tallies,
    workers: LiteMap<u64, Worker>,
    sequence: u64,
    state: Option<Clocked>,
    /// The state is from before this start, and good for what operators have changed only.
    outdated: bool,
    reported_at: u64,
    pushed_at: u64,
    /// Global has answered a push of this start, and workers had reported before.
    counted: bool,
    /// Until when the state is trusted to say what operators have changed.
    trusted_until: u64,
    /// Until when the one in storage is.
    stored_until: u64,
    dirty: bool,
    haste: Haste,
    /// That of the last push.
    pushed: Haste,
    /// How many pushes in a row were not answered.
    failures: u32,
    /// The next push must leave by then: sessions that were renewed would seem to end.
    push_by: Option<u64>,
    /// When the last push said that the next one follows.
    announced_at: Option<u64>,
    /// Until when workers may still report slowly, because their state key says that the room is calm.
    calm_until: u64,
    delayed: Delayed,
    /// What the colo's workers have seen of the origin since this start.
    origin: OriginCounts,
    /// What of it limits are judged by.
    judged: OriginCounts,
    /// What operators have changed, as Global could read it last.
    last_known: Overrides,
    ended: Ended,
    storage: Storage,
    news: News,
}

impl DataCenter {
    /// A data center at its start, with what it saved before, if anything. `instance` is random, so that workers
    /// notice the restart and send again what had not reached storage.
    pub fn restore(room: &Room, colo: &str, instance: u64, saved: Option<SavedDataCenter>, now: u64) -> Self {
        let mut data_center = Self {
            colo: colo.to_owned(),
            instance,
            counts: Counts::new(room),
            // Parallel requests come together within seconds; a session is long enough for every retry.
            dedups: Remembered::new(room.session_ms(), REMEMBERED_TICKETS),
            tallies: Tallies::default(),
            workers: LiteMap::new(),
            sequence: 0,
            state: None,
            outdated: false,
            reported_at: 0,
            pushed_at: 0,
            counted: false,
            trusted_until: 0,
            stored_until: 0,
            dirty: false,
            haste: Haste::None,
            pushed: Haste::None,
            failures: 0,
            push_by: None,
            announced_at: None,
            // What the instance that has gone told its workers is not known.
            calm_until: now + CALM_REPORT_MS,
            delayed: Delayed::default(),
            origin: OriginCounts::default(),
            judged: OriginCounts::default(),
            last_known: Overrides::default(),
            ended: Ended::restore(Vec::new(), Vec::new(), now),
            storage: Storage::Current,
            news: News::None,
        };
        if let Some(saved) = saved {
            data_center.counts = saved.counts;
            data_center.counts.adapt(room);
            data_center.counts.forget(room, now);
            data_center.sequence = saved.sequence;
            data_center.tallies = saved.tallies;
            data_center.ended = Ended::restore(saved.ended, saved.untold, now);
            // Global still waits for the next push of the instance that has gone.
            data_center.dirty = true;
            // Where the pool judges, an old state does no harm; numbers of a minute need a fresh one. What operators have
            // changed holds in any case, also when Global does not answer in time.
            data_center.outdated = !room.slot_strategy.leases_permits();
            if let Some((received_at, key)) = saved.state {
                if !key.steering.unreadable {
                    data_center.last_known.clone_from(&key.steering);
                }
                data_center.trusted_until = trusted_until(&key, received_at);
                data_center.stored_until = data_center.trusted_until;
                data_center.state = Some(Clocked { key, received_at });
            }
            for (worker, applied) in saved.workers {
                data_center.workers.insert(worker, Worker { applied, durable: applied, ..Worker::default() });
            }
            for (worker, counts) in saved.tallied {
                if let Some(worker) = data_center.workers.get_mut(&worker) {
                    worker.counts = counts;
                }
            }
        }
        data_center
    }

    /// Counts a worker's report and answers it.
    pub fn receive(&mut self, room: &Room, report: &WorkerReport, now: u64) -> WorkerAnswer {
        self.reported_at = now;
        self.tells_calm(now);
        self.counts.adapt(room);
        if !self.workers.contains_key(&report.worker) && self.workers.len() >= MAX_WORKERS {
            let longest = self.workers.iter().min_by_key(|(_, worker)| worker.reported_at).map(|(id, _)| *id);
            if let Some(longest) = longest {
                self.workers.remove(&longest);
            }
        }
        // Of a worker that has just started nothing is missing; of another one, what it told before a restart.
        let known = (report.first == 1).then(Default::default);
        // One that this start has answered before, and had to forget since, has told what it counted.
        let is_known = report.instance == self.instance;
        let counts = if is_known { report.counts.clone() } else { SlotCounts::default() };
        let new = || Worker { origin: known, counts, ..Worker::default() };
        let level = self.level();
        let worker = self.workers.entry(report.worker).or_insert_with(new);
        worker.reported_at = now;
        self.tallies.add(minute_of(now), Count::DataCenterCalls, 1);
        for (code, count) in report.counts.range_from(0).filter(|(code, _)| *code < MAX_COUNTS) {
            let more = count - worker.counts.get(code);
            if more > 0 {
                worker.counts.add(code, more);
                self.tallies.add_code(minute_of(now), code, more as u64);
                self.storage = Storage::Behind;
                // All else comes with check-ins.
                self.dirty |= code == Count::Bypassed.code();
            }
        }
        if let Some(seen) = &report.origin {
            let judged = report.judged.as_ref().unwrap_or(seen);
            let told = (seen.clone(), judged.clone());
            let known = worker.origin.as_ref().unwrap_or(&told);
            // A report that was overtaken changes nothing.
            if seen.is_sound() && judged.is_sound() && !seen.is_before(&known.0) {
                self.origin.add(&OriginCounts { in_flight: 0, ..seen.since(&known.0) });
                self.judged.add(&judged.since(&known.1));
                worker.origin = Some(told);
                self.dirty = true;
            }
        }
        // After a restart, a report that goes on where the lost memory ended is not counted: the answer tells the
        // worker from where to send again.
        let gap = report.instance != self.instance && report.first > worker.applied.saturating_add(1);
        // The first who wait: from now on everybody must know soon.
        let queues = room.slot_strategy.leases_permits() && level == Level::Busy;
        let check_ins = if gap { &[] } else { report.check_ins.as_slice() };
        let mut first = now;
        for (sequence, check_in) in (report.first..=u64::MAX).zip(check_ins) {
            if sequence > worker.applied {
                worker.applied = sequence;
                first = first.min(check_in.at());
                self.dirty = true;
                self.storage = Storage::Behind;
                self.news = News::Untold;
                let is_own = is_made_in(check_in.id(), &self.colo);
                // What does not count has counted already, or counts elsewhere.
                let counts = match check_in {
                    CheckIn::Leave { .. } => {
                        self.haste = self.haste.max(Haste::Slots);
                        self.ended.note(check_in, true, now) && is_own
                    }
                    CheckIn::GiveUp { .. } => is_own,
                    CheckIn::Move { .. } => !self.ended.is_over(check_in, now),
                    CheckIn::Wait { .. } => {
                        if queues {
                            self.haste = Haste::Urgent;
                        }
                        true
                    }
                    CheckIn::Enter { .. } => true,
                };
                if counts {
                    let change = self.counts.apply(check_in, &mut self.dedups);
                    self.tallies.note(room, change);
                }
                if let CheckIn::Move { from, .. } = check_in {
                    let by = from + room.session_ms() - LATE_RENEWAL_MS / 2;
                    self.push_by = Some(self.push_by.map_or(by, |earlier| earlier.min(by)));
                }
            }
        }
        if report.urgent {
            self.haste = Haste::Urgent;
        }
        let answer = WorkerAnswer {
            v: VERSION,
            instance: self.instance,
            applied: worker.applied,
            durable: worker.durable,
            state: self
                .state(now)
                .map(|state| StateKey { ended: self.ended.news(&report.check_ins, report.heard), ..state }),
        };
        self.expect_as_late(first, now);
        self.counts.forget(room, now);
        answer
    }

    /// Takes note of when the first check-in of a report was made: where one report had to be sent several times, others may
    /// still be tried. What was made in calm is late by intention.
    fn expect_as_late(&mut self, first: u64, now: u64) {
        if now >= self.calm_until {
            self.delayed.learn(now.saturating_sub(first + REPORTED_MS), now);
        }
    }

    /// The state key to hand to a worker, once there is one.
    pub fn state(&self, now: u64) -> Option<StateKey> {
        self.state.as_ref().map(|state| StateKey {
            colo_workers: self.active_workers(now),
            uncounted: !self.counted,
            told_ms: 0,
            ..state.passed_on(now)
        })
    }

    fn active_workers(&self, now: u64) -> u32 {
        let active = self.workers.values().filter(|worker| now < worker.reported_at + WORKER_MS).count();
        (active as u32).max(1)
    }

    /// In how many milliseconds the next push is due; `None`: nothing to push, sleep until the next report.
    pub fn next_push(&self, room: &Room, now: u64) -> Option<u64> {
        if self.haste == Haste::Urgent {
            return Some((self.pushed_at + URGENT_MS).saturating_sub(now).min(URGENT_MS));
        }
        let recent = self.dirty || now < self.reported_at + AWAKE_MS;
        let interval = if self.failures > 0 {
            // What was lost is reported sooner than new counts, unless Global does not answer.
            Some((URGENT_MS << self.failures.min(8)).min(PUSH_MS))
        } else if self.haste == Haste::Slots && self.level() == Level::Queueing {
            Some((u64::from(self.all_workers()) * LEFT_MS_PER_WORKER).clamp(URGENT_MS, PUSH_MS))
        } else if self.watched() && (recent || self.has_users(room, now))
            || self.hurries(room) && recent
            || self.level() != Level::Calm && (self.dirty || self.news != News::None)
        {
            Some(self.push_ms(room))
        } else {
            // While users are active it says slowly that it is there: else nobody could tell silence from a fault, and
            // their sessions would be taken for ended though they go on.
            let slow_ms = room.session_ms() / SLOW_PUSHES;
            let silent_ms = slow_ms.max(SILENT_PUSH_MS.min(room.session_ms() / SILENT_PUSHES));
            // When the calm is over, Global is to know as soon as no worker reports late any more, as in a calm room.
            let told_ms = Some(self.calm_until.saturating_sub(self.pushed_at))
                .filter(|told| *told > 0 && self.level() != Level::Calm);
            let interval = if self.dirty { slow_ms } else { told_ms.unwrap_or(silent_ms).min(silent_ms) };
            (recent || self.has_users(room, now)).then_some(interval)
        };
        let by = self.push_by.filter(|_| interval.is_some()).map(|by| by.max(self.pushed_at + URGENT_MS));
        // Global takes a colo whose next report does not come as announced for cut off, whatever has changed here since.
        let due = [by, self.announced_at, interval.map(|interval| self.pushed_at + interval)];
        let due = due.into_iter().flatten().min()?;
        Some(due.saturating_sub(now).min(interval.unwrap_or(u64::MAX)))
    }

    /// Whether all colos must know soon what happens here: somebody waits for it, or no pool judges.
    fn hurries(&self, room: &Room) -> bool {
        self.level() == Level::Queueing || self.level() == Level::Busy && !is_judged(room)
    }

    /// Time between pushes while there is traffic, unless the room is calm, in milliseconds.
    fn push_ms(&self, room: &Room) -> u64 {
        if self.watched() || self.hurries(room) && !is_judged(room) {
            PUSH_MS
        } else if self.hurries(room) {
            JUDGED_PUSH_MS
        } else {
            (room.session_ms() / UNHURRIED_PUSHES).clamp(PUSH_MS, UNHURRIED_PUSH_MS)
        }
    }

    /// Whether a push is due.
    pub fn is_due(&self, room: &Room, now: u64) -> bool {
        self.next_push(room, now) == Some(0)
    }

    fn has_users(&self, room: &Room, now: u64) -> bool {
        self.counts.active_at(room, now) > 0
    }

    /// Whether an operator watches the room.
    fn watched(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.key.watched)
    }

    fn level(&self) -> Level {
        self.state.as_ref().map_or(Level::Busy, |state| state.key.level)
    }

    fn all_workers(&self) -> u32 {
        self.state.as_ref().map_or(0, |state| state.key.all_workers)
    }

    /// How long a check-in of this colo may take to get to Global, in milliseconds.
    fn late(&self, room: &Room, now: u64) -> u64 {
        if now < self.calm_until {
            CALM_REPORT_MS + room.session_ms() / SLOW_PUSHES + LATE_MS
        } else {
            // Twice: the next one may be refused as often again.
            LATE_MS - PUSH_MS + self.push_ms(room) + 2 * self.delayed.most()
        }
    }

    /// Somebody has asked for the state key.
    pub fn asked(&mut self, now: u64) {
        self.tallies.add(minute_of(now), Count::DataCenterCalls, 1);
        self.tells_calm(now);
    }

    /// A worker is told the state. If that says that the room is calm, it reports slowly from now on: it goes by what it was
    /// told until it reports.
    fn tells_calm(&mut self, now: u64) {
        if self.level() == Level::Calm && self.state.is_some() && !self.watched() {
            self.calm_until = now + 2 * CALM_REPORT_MS;
        }
    }

    /// What to write to storage before a push.
    pub fn save(&mut self, room: &Room, now: u64) -> SavedDataCenter {
        self.counts.adapt(room);
        self.counts.forget(room, now);
        self.counts.group_expired(room, now);
        self.tallies.forget(room, self.failures == 0, now);
        self.sequence = (self.sequence + 1).max(now);
        let (ended, untold) = self.ended.to_store();
        let tallied = self.workers.iter().filter(|(_, worker)| !worker.counts.is_empty());
        SavedDataCenter {
            v: VERSION,
            counts: self.counts.clone(),
            sequence: self.sequence,
            workers: self.workers.iter().map(|(id, worker)| (*id, worker.applied)).collect(),
            tallies: self.tallies.clone(),
            tallied: tallied.map(|(id, worker)| (*id, worker.counts.clone())).collect(),
            ended,
            untold,
            state: self.state.as_ref().map(|state| (state.received_at, state.key.clone())),
        }
    }

    /// Whether storage lacks something.
    pub fn is_unsaved(&self, now: u64) -> bool {
        self.storage == Storage::Behind || self.must_store_trust(now)
    }

    /// Whether a report is stored before it is answered. Else it is stored with the next push, and whoever reported
    /// asks for it once more; not where that is far away, and reports are few, nor where nobody would be left to ask.
    pub fn stores_at_once(&self, room: &Room, report: &WorkerReport, now: u64) -> bool {
        let is_late = |check_in: &CheckIn| now >= check_in.at() + TOO_LATE_TO_ASK_MS;
        room.ends_at_once
            || report.check_ins.first().is_some_and(is_late)
            || self.next_push(room, now).is_some_and(|wait| wait > self.push_ms(room))
    }

    /// What was saved is in storage: workers need not keep it any longer.
    pub fn saved(&mut self, saved: &SavedDataCenter) {
        self.storage = Storage::Current;
        self.stored_until = self.trusted_until;
        for (id, applied) in &saved.workers {
            if let Some(worker) = self.workers.get_mut(id) {
                worker.durable = worker.durable.max(*applied);
            }
        }
    }

    /// The last check-in of a worker that is in storage.
    pub fn durable(&self, worker: u64) -> u64 {
        self.workers.get(&worker).map_or(0, |worker| worker.durable)
    }

    /// The report that goes with what was saved.
    pub fn push(
        &mut self,
        room: &Room,
        saved: &SavedDataCenter,
        given: Option<Given>,
        now: u64,
    ) -> ColoReport {
        self.pushed_at = now;
        self.dirty = false;
        self.news = if self.news == News::Untold { News::ToldOnce } else { News::None };
        self.pushed = std::mem::take(&mut self.haste);
        (self.push_by, self.announced_at) = (None, None);
        let (ended, heard) = self.ended.tell();
        let next_in = self.next_push(room, now);
        self.announced_at = next_in.map(|wait| now + wait);
        ColoReport {
            v: VERSION,
            colo: self.colo.clone(),
            sequence: saved.sequence,
            counts: saved.counts.clone(),
            given,
            workers: self.active_workers(now),
            next_in: next_in.unwrap_or(0),
            late: self.late(room, now),
            origin: self.origin_report(now),
            steering: self.overrides().version,
            tallies: saved.tallies.clone(),
            overrides: self.last_known.clone(),
            ended,
            heard,
            judged: room.adaptive.map(|_| self.judged.clone()),
        }
    }

    fn origin_report(&self, now: u64) -> Option<OriginReport> {
        let active = self.workers.values().filter(|worker| now < worker.reported_at + WORKER_MS);
        let in_flight = active.filter_map(|worker| Some(worker.origin.as_ref()?.0.in_flight)).sum();
        let counts = OriginCounts { in_flight, ..self.origin.clone() };
        (!counts.is_empty()).then_some(OriginReport { since: self.instance, counts })
    }

    /// Global did not answer the push: what it carried must go again.
    pub fn push_failed(&mut self) {
        self.dirty = true;
        if self.news == News::ToldOnce {
            self.news = News::Untold;
        }
        self.haste = self.haste.max(self.pushed);
        self.announced_at = None;
        self.failures = self.failures.saturating_add(1);
    }

    /// Takes in Global's answer to a push.
    pub fn pushed(&mut self, room: &Room, mut state: Option<StateKey>, now: u64) {
        let news = state.as_mut().map(|key| std::mem::take(&mut key.ended)).unwrap_or_default();
        for leave in &news.sessions {
            self.storage = Storage::Behind;
            if self.ended.note(leave, false, now) && is_made_in(leave.id(), &self.colo) {
                let change = self.counts.apply(leave, &mut self.dedups);
                self.tallies.note(room, change);
                self.dirty = true;
                self.news = News::Untold;
                self.haste = self.haste.max(Haste::Slots);
            }
        }
        self.ended.told(&news, now);
        self.dirty |= self.ended.has_more();
        self.failures = 0;
        self.counted |= self.reported_at > 0;
        if let Some(key) = state {
            self.answered(key, self.pushed_at, now);
        }
    }

    /// What operators have changed, as far as is known here.
    pub fn overrides(&self) -> &Overrides {
        self.state.as_ref().map_or(Overrides::none(), |state| &state.key.steering)
    }

    /// Whether to ask Global before a worker is answered: operators may have changed something of which nobody has told this
    /// data center.
    pub fn must_ask(&self, now: u64) -> bool {
        self.outdated || now >= self.trusted_until
    }

    /// Whether the next start would have to ask Global, though this one need not for long.
    pub fn must_store_trust(&self, now: u64) -> bool {
        now >= self.stored_until && self.trusted_until > now + TRUSTED_MS
    }

    /// Takes in a state key that Global has sent by itself. It may have waited there for long, unlike an answer, which has a timeout:
    /// by what the one before said of Global's clock, it is older than it says.
    pub fn told(&mut self, mut key: StateKey, now: u64) {
        if let Some(before) = &self.state {
            key.age = key.age.max(before.global_time(now).saturating_sub(key.taken_at));
            key.round_trip_ms = before.key.round_trip_ms;
        }
        self.learn(key, now);
    }

    /// Takes in the state key that answers what was asked at `asked_at`, in milliseconds since the epoch: it was made since.
    pub fn answered(&mut self, key: StateKey, asked_at: u64, now: u64) {
        self.learn(StateKey { round_trip_ms: now.saturating_sub(asked_at), ..key }, now);
    }

    /// Takes in a state key.
    pub fn learn(&mut self, key: StateKey, now: u64) {
        let older = self.state.as_ref().is_some_and(|state| state.key.taken_at > key.taken_at);
        if !older {
            self.outdated = false;
            if key.watched {
                // Whoever was told before reports within that time.
                self.calm_until = self.calm_until.min(now + CALM_REPORT_MS);
            }
            if !key.steering.unreadable {
                self.last_known.clone_from(&key.steering);
            }
            // An operator's order must outlive this start: whoever asks the next one is told what it knows.
            if key.steering != *self.overrides() {
                self.storage = Storage::Behind;
            }
            self.trusted_until = trusted_until(&key, now);
            self.state = Some(Clocked { key, received_at: now });
        }
    }
}

/// Whether a pool judges by what it has given: reports tell it only who is still there.
fn is_judged(room: &Room) -> bool {
    room.slot_strategy.leases_permits() && !room.follows_origin() && !room.ends_at_once
}

/// Until when a state key that came at a time is trusted.
fn trusted_until(key: &StateKey, received_at: u64) -> u64 {
    received_at + key.told_ms.saturating_sub(key.age + TOLD_MARGIN_MS).max(TRUSTED_MS)
}
