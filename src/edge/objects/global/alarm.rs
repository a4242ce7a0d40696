//! One alarm for several jobs: an object has no more than one.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use litemap::LiteMap;
use worker::{Result, Storage};

/// An alarm that has not rung so long after its time is not waited for, in milliseconds.
const LATE_MS: u64 = 2_000;

/// What the alarm is set for. A job that has something to do after a restart says so when the object is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// Tell the colos that have not heard what an operator has changed.
    Spread,
    /// Send the status to operators who look.
    Live,
    /// Store the colos' reports.
    Store,
    /// Record the minutes of which everything is known.
    Record,
    /// Look for news though nothing is reported.
    Notify,
    /// Send news to webhooks.
    Deliver,
}

impl Job {
    /// All of them, in the order in which they are done.
    pub const ALL: [Self; 6] =
        [Self::Spread, Self::Live, Self::Store, Self::Record, Self::Notify, Self::Deliver];
}

/// When each job is to be done, and when the platform rings.
#[derive(Debug, Default)]
pub struct Alarm {
    plans: RefCell<LiteMap<Job, u64>>,
    /// For when the platform's alarm is set, as far as is known.
    set_for: Cell<Option<u64>>,
}

impl Alarm {
    /// Learns, at the object's start, what was set before.
    ///
    /// # Errors
    /// When storage fails.
    pub async fn recall(&self, storage: &Storage) -> Result<()> {
        self.set_for.set(storage.get_alarm().await?.and_then(|at| u64::try_from(at).ok()));
        Ok(())
    }

    /// Whether there is a plan.
    pub fn has_plans(&self) -> bool {
        !self.plans.borrow().is_empty()
    }

    /// Plans a job for a time, or sooner if it is planned already; both in milliseconds since the epoch. Takes effect with
    /// [`Alarm::set`].
    pub fn plan(&self, job: Job, at: u64) {
        let mut plans = self.plans.borrow_mut();
        let sooner = plans.get(&job).map_or(at, |planned| at.min(*planned));
        plans.insert(job, sooner);
    }

    /// Plans a job and sees to it that the platform rings.
    ///
    /// # Errors
    /// When storage fails.
    pub async fn wake(&self, job: Job, at: u64, now: u64, storage: &Storage) -> Result<()> {
        self.plan(job, at);
        self.set(now, storage).await
    }

    /// The platform has rung: nothing is set any more.
    pub fn rang(&self) {
        self.set_for.set(None);
    }

    /// Whether a job is to be done now. Its plan is forgotten with that.
    pub fn is_due(&self, job: Job, now: u64) -> bool {
        let mut plans = self.plans.borrow_mut();
        let is_due = plans.get(&job).is_some_and(|at| *at <= now);
        if is_due {
            plans.remove(&job);
        }
        is_due
    }

    /// Sets the platform's alarm for the first job, unless it rings early enough.
    ///
    /// # Errors
    /// When storage fails.
    pub async fn set(&self, now: u64, storage: &Storage) -> Result<()> {
        let Some(first) = self.plans.borrow().values().min().copied() else { return Ok(()) };
        if self.set_for.get().is_none_or(|set_for| first < set_for || set_for + LATE_MS < now) {
            self.set_for.set(Some(first));
            storage.set_alarm(Duration::from_millis(first.saturating_sub(now))).await?;
        }
        Ok(())
    }
}
