//! One alarm for several jobs: an object has no more than one.

use litemap::LiteMap;

/// An alarm that is late by this time is not waited for, in milliseconds.
const LATE_MS: u64 = 2_000;

/// What the alarm is set for. A job that has something to do after a restart is planned by
/// [`Global::restore`](super::Global::restore).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Job {
    /// End overrides whose time has come.
    End,
    /// Update the colos that have not confirmed what an operator has changed.
    Tell,
    /// Send the status to operators who watch.
    SendStatus,
    /// Store the colos' reports.
    Store,
    /// Record the minutes of which everything is known.
    Record,
    /// Look for notifications though nothing is reported.
    Notify,
    /// Send messages to webhooks.
    Deliver,
    /// Send push messages to visitors whose turn is near.
    Push,
}

impl Job {
    /// All of them, in the order in which they are done.
    pub(super) const ALL: [Self; 8] = [
        Self::End,
        Self::Tell,
        Self::SendStatus,
        Self::Store,
        Self::Record,
        Self::Notify,
        Self::Deliver,
        Self::Push,
    ];
}

/// When each job is to be done, and when the platform's alarm fires.
#[derive(Debug, Default)]
pub(super) struct Plans {
    plans: LiteMap<Job, u64>,
    /// For when this instance has set the platform's alarm.
    set_for: Option<u64>,
}

impl Plans {
    /// Plans a job for a time, or sooner if it is planned already; both in milliseconds since the epoch.
    pub(super) fn plan(&mut self, job: Job, at: u64) {
        let sooner = self.plans.get(&job).map_or(at, |planned| at.min(*planned));
        self.plans.insert(job, sooner);
    }

    /// The platform has rung: nothing is set any more.
    pub(super) fn rang(&mut self) {
        self.set_for = None;
    }

    /// Whether a job is to be done now. Its plan is forgotten with that.
    pub(super) fn take_due(&mut self, job: Job, now: u64) -> bool {
        let is_due = self.plans.get(&job).is_some_and(|at| *at <= now);
        if is_due {
            self.plans.remove(&job);
        }
        is_due
    }

    /// For when the platform's alarm must be set now; `None`: it fires early enough, or there is nothing to do.
    pub(super) fn next_alarm(&mut self, now: u64) -> Option<u64> {
        let first = self.plans.values().min().copied()?;
        if self.set_for.is_some_and(|set_for| first >= set_for && set_for + LATE_MS >= now) {
            return None;
        }
        self.set_for = Some(first);
        Some(first.max(now))
    }
}
