//! A worker's check-ins on their way to the data center.

use std::collections::VecDeque;

use super::WorkerAnswer;
use super::WorkerReport;
use super::{CALM_REPORT_MS, CheckIn, LATE_RENEWAL_MS, SlotCounts};
use crate::admission::Level;
use crate::history::Count;
use crate::room::Room;
use crate::wire::VERSION;

/// The shortest time between reports, but for urgent ones, in milliseconds.
const REPORT_MS: u64 = 1_000;
/// The same in a room that ends at once with all who count its users.
const SOON_MS: u64 = 20;
/// The same for urgent ones.
const URGENT_MS: u64 = 100;
/// The same for reports of users who have left while people wait, in milliseconds.
const LEFT_MS: u64 = 250;
/// A report that was announced and has not left after this time is taken over by another request, in milliseconds.
const OVERDUE_MS: u64 = 3_000;
/// A request that came this long after the one that sees to the reports takes them over, in milliseconds: the platform ends what
/// goes on after a response after 30 seconds, and nobody may come who would go on with it.
const TAKEN_OVER_MS: u64 = 10_000;
/// Retry interval of an urgent report, in milliseconds.
const URGENT_AGAIN_MS: u64 = 300;
/// How much too early a timer may ring, in milliseconds: a newer state key sets the clock back.
const EARLY_MS: u64 = 500;
/// What a busy data center has counted and not stored this long after the report, in milliseconds, is asked for once
/// more: it may have restarted since, and a worker without visitors would never notice.
const CONFIRM_MS: u64 = 3_000;
/// The most check-ins that a worker keeps until they are in storage; about 1 MB. Beyond it the oldest are dropped: by
/// then the data center has not answered for minutes, and what is lost heals within a session duration.
const CAPACITY: usize = 20_000;
/// The most check-ins of one report: with reports of 64 workers at once a data center is busy for less than a second, after which
/// an object refuses.
const REPORT_CAPACITY: usize = 1_200;
/// After a report of so many check-ins the next one waits for the answer: until then it would say the same once more.
const LARGE_REPORT: usize = 500;

/// What one worker has to report for one room.
#[derive(Debug)]
pub struct Outbox {
    worker: u64,
    first: u64,
    check_ins: VecDeque<CheckIn>,
    instance: u64,
    applied: u64,
    /// The last check-in that must be known everywhere at once.
    urgent: u64,
    reported_at: u64,
    /// When the next report must leave, for what has been noted.
    due: Option<u64>,
    /// Until when the next report waits for the answer to a large one, in milliseconds since the epoch; 0: for none.
    answer_by: u64,
    announced: Option<u64>,
    /// Since when the request is here that sees to it.
    announcer: u64,
    dropped: u64,
    /// The origin is in trouble, and that is not reported yet.
    trouble: bool,
    /// What was counted since the start, by [`Count`].
    counts: SlotCounts,
    /// Somebody went past the room, and that is not reported yet.
    bypassed: bool,
}

impl Outbox {
    /// An empty outbox of a worker; `worker` is random.
    pub fn new(worker: u64) -> Self {
        Self {
            worker,
            first: 1,
            check_ins: VecDeque::new(),
            instance: 0,
            applied: 0,
            urgent: 0,
            reported_at: 0,
            due: None,
            answer_by: 0,
            announced: None,
            announcer: 0,
            dropped: 0,
            trouble: false,
            counts: SlotCounts::default(),
            bypassed: false,
        }
    }

    /// Who reports.
    pub fn worker(&self) -> u64 {
        self.worker
    }

    /// Notes a check-in. How full the room is decides how soon it is reported.
    pub fn note(&mut self, room: &Room, check_in: CheckIn, level: Level, now: u64) {
        if self.check_ins.len() >= CAPACITY {
            self.check_ins.pop_front();
            self.first += 1;
            self.dropped += 1;
        }
        let (due, urgent) = match check_in {
            // A session must not seem to end before its renewal is known.
            CheckIn::Move { from, .. } if now + LATE_RENEWAL_MS >= from + room.session_ms() => {
                ((self.reported_at + URGENT_MS).max(now), true)
            }
            CheckIn::Move { from, .. } if level == Level::Calm => {
                ((now + CALM_REPORT_MS).min(from + room.session_ms() - LATE_RENEWAL_MS), false)
            }
            CheckIn::Enter { .. } | CheckIn::Leave { .. } if level == Level::Calm => {
                (now + CALM_REPORT_MS, false)
            }
            // Somebody waits for the slot.
            CheckIn::Leave { .. } if level == Level::Queueing => {
                ((self.reported_at + LEFT_MS).max(now), false)
            }
            // The first who wait end the calm, everywhere.
            CheckIn::Wait { .. } if level == Level::Calm => ((self.reported_at + URGENT_MS).max(now), true),
            _ => ((self.reported_at + REPORT_MS).max(now), false),
        };
        let due = if room.ends_at_once { (self.reported_at + SOON_MS).max(now) } else { due };
        self.check_ins.push_back(check_in);
        if urgent {
            self.urgent = self.last();
        }
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// The origin is in trouble: the room must know within a second, though no visitor checks in.
    pub fn note_trouble(&mut self, now: u64) {
        self.trouble = true;
        let due = (self.reported_at + REPORT_MS).max(now);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// An operator watches: what has been noted is reported as soon as in a busy room.
    pub fn hurry(&mut self, now: u64) {
        let due = (self.reported_at + REPORT_MS).max(now);
        self.due = self.due.map(|later| later.min(due));
    }

    /// Counts what goes along with the next report, whenever it leaves.
    pub fn count(&mut self, count: Count) {
        self.counts.add(count.code(), 1);
    }

    /// Counts somebody who went past the room. However many there are, one report tells of those of a while.
    pub fn note_bypassed(&mut self, now: u64) {
        self.count(Count::Bypassed);
        self.bypassed = true;
        let due = now + CALM_REPORT_MS;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// The number of the last check-in.
    pub fn last(&self) -> u64 {
        self.first + self.check_ins.len() as u64 - 1
    }

    /// The number of the last check-in that is in storage, as far as is known.
    pub fn stored(&self) -> u64 {
        self.first - 1
    }

    /// Whether a request that is here since `began` must see to the next report, and in how many milliseconds it must leave. One
    /// request at a time takes it upon itself; when it vanishes or gets old, another does.
    pub fn announce(&mut self, began: u64, now: u64) -> Option<u64> {
        let due = if self.last() > self.applied || self.trouble || self.bypassed {
            // What was reported before and is not counted yet goes again.
            let again = if self.urgent > self.applied { URGENT_AGAIN_MS } else { REPORT_MS };
            self.due.unwrap_or(self.reported_at + again).max(self.answer_by).max(now)
        } else if self.is_empty() {
            return None;
        } else {
            (self.reported_at + CONFIRM_MS).max(now)
        };
        let is_seen_to =
            self.announced.is_some_and(|announced| announced <= due && now < announced + OVERDUE_MS);
        if is_seen_to && began < self.announcer + TAKEN_OVER_MS {
            return None;
        }
        (self.announced, self.announcer) = (Some(due), began);
        Some(due - now)
    }

    /// Whether a request sees to a report, whose answer says what a question would.
    pub fn is_announced(&self) -> bool {
        self.announced.is_some()
    }

    /// Whether a later request than one that is here since `began` sees to the next report.
    pub fn is_taken_over(&self, began: u64) -> bool {
        self.announced.is_some() && began < self.announcer
    }

    /// Whether the announced report is due. An earlier one may have taken its check-ins along.
    pub fn is_due(&self, now: u64) -> bool {
        (self.trouble || self.bypassed || !self.is_empty())
            && self.announced.is_some_and(|announced| announced <= now + EARLY_MS)
    }

    /// The report to send now: all that the data center has not counted yet; nothing, where it is only asked whether
    /// it still has what it had. What the worker has seen of the origin, and heard of ended
    /// sessions, is for the caller to add.
    pub fn report(&mut self, now: u64) -> WorkerReport {
        self.reported_at = now;
        self.announced = None;
        self.bypassed = false;
        let skip = (self.applied + 1).saturating_sub(self.first) as usize;
        let left = self.check_ins.len().saturating_sub(skip);
        self.due = (left > REPORT_CAPACITY).then_some(now);
        self.answer_by = if left < LARGE_REPORT { 0 } else { now + OVERDUE_MS };
        WorkerReport {
            v: VERSION,
            worker: self.worker,
            instance: self.instance,
            first: self.first + skip as u64,
            check_ins: self.check_ins.iter().skip(skip).take(REPORT_CAPACITY).copied().collect(),
            urgent: std::mem::take(&mut self.trouble) || self.urgent > self.applied,
            origin: None,
            counts: self.counts.clone(),
            heard: 0,
            judged: None,
        }
    }

    /// Takes in the data center's answer: forgets what is in storage there, and after a restart of the data center
    /// goes back to that.
    pub fn answered(&mut self, answer: &WorkerAnswer) {
        self.answer_by = 0;
        while self.first <= answer.durable && self.check_ins.pop_front().is_some() {
            self.first += 1;
        }
        if answer.instance == self.instance {
            self.applied = self.applied.max(answer.applied);
        } else {
            self.instance = answer.instance;
            self.applied = answer.applied;
        }
        if self.last() <= self.applied {
            // What was announced for the case that no answer comes is not needed any more.
            self.announced = None;
        }
    }

    /// No answer has come to a report. After a large one all waits for the retry interval, since the data center may have too much
    /// to do.
    pub fn failed(&mut self) {
        if std::mem::take(&mut self.answer_by) > 0 {
            self.due = None;
        }
    }

    /// Check-ins that are not known to be in storage.
    pub fn len(&self) -> usize {
        self.check_ins.len()
    }

    /// Whether everything is in storage.
    pub fn is_empty(&self) -> bool {
        self.check_ins.is_empty()
    }

    /// Check-ins that were dropped because there was no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
