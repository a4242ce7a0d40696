//! A worker's check-ins on their way to the data center.

use std::collections::VecDeque;

use super::CheckIn;
use super::messages::{VERSION, WorkerAnswer, WorkerReport};

/// Reports leave at most so often.
const REPORT_MS: u64 = 1_000;
/// A report that was announced and has not left after so long is taken over by another request.
const OVERDUE_MS: u64 = 3_000;
/// A worker keeps at most so many check-ins that are not in storage; about 1 MB. Beyond it the oldest are dropped: by
/// then the data center has not answered for minutes, and what is lost heals within a session duration.
const CAPACITY: usize = 20_000;
/// A report carries at most so many check-ins.
const REPORT_CAPACITY: usize = 5_000;

/// What one worker has to report for one room.
#[derive(Debug)]
pub struct Outbox {
    worker: u64,
    first: u64,
    check_ins: VecDeque<CheckIn>,
    instance: u64,
    applied: u64,
    urgent: bool,
    reported_at: u64,
    announced: Option<(u64, bool)>,
    dropped: u64,
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
            urgent: false,
            reported_at: 0,
            announced: None,
            dropped: 0,
        }
    }

    /// Notes a check-in.
    pub fn note(&mut self, check_in: CheckIn, urgent: bool) {
        if self.check_ins.len() >= CAPACITY {
            self.check_ins.pop_front();
            self.first += 1;
            self.dropped += 1;
        }
        self.check_ins.push_back(check_in);
        self.urgent |= urgent;
    }

    /// Whether a request must see to the next report, and in how many milliseconds it must leave. One request at a
    /// time takes it upon itself; when it vanishes, another does.
    pub fn announce(&mut self, now: u64) -> Option<u64> {
        let pending = self.first + self.check_ins.len() as u64 > self.applied + 1;
        if !pending {
            return None;
        }
        if let Some((due, urgent)) = self.announced
            && (urgent || !self.urgent)
            && now < due + OVERDUE_MS
        {
            return None;
        }
        let wait =
            if self.urgent { 0 } else { (self.reported_at + REPORT_MS).saturating_sub(now).min(REPORT_MS) };
        self.announced = Some((now + wait, self.urgent));
        Some(wait)
    }

    /// The report to send now: all that the data center has not counted yet.
    pub fn report(&mut self, now: u64) -> WorkerReport {
        self.reported_at = now;
        self.announced = None;
        let skip = (self.applied + 1).saturating_sub(self.first) as usize;
        WorkerReport {
            v: VERSION,
            worker: self.worker,
            instance: self.instance,
            first: self.first + skip as u64,
            check_ins: self.check_ins.iter().skip(skip).take(REPORT_CAPACITY).copied().collect(),
            urgent: std::mem::take(&mut self.urgent),
        }
    }

    /// Takes in the data center's answer: forgets what is in storage there, and after a restart of the data center
    /// goes back to that.
    pub fn answered(&mut self, answer: &WorkerAnswer) {
        while self.first <= answer.durable && self.check_ins.pop_front().is_some() {
            self.first += 1;
        }
        if answer.instance == self.instance {
            self.applied = self.applied.max(answer.applied);
        } else {
            self.instance = answer.instance;
            self.applied = answer.applied;
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
