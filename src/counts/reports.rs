//! What a worker reports to its data center, and a data center to Global.

use serde::{Deserialize, Serialize};

use super::{Counts, UNHURRIED_PUSH_MS};
use crate::admission::{Given, StateKey};
use crate::check_in::CheckIn;
use crate::history::Tallies;
use crate::origin::{OriginCounts, OriginReport};
use crate::slots::SlotCounts;
use crate::steering::{Overrides, travelling};

/// A worker's report: check-ins since the last one that is known to be in storage.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Format version.
    pub v: u8,
    /// Who reports: drawn at random when the worker started.
    pub worker: u64,
    /// Which start of the data center the worker knows; 0: none yet.
    pub instance: u64,
    /// The sequence number of the first check-in.
    pub first: u64,
    /// The check-ins, numbered on from `first`.
    pub check_ins: Vec<CheckIn>,
    /// Some check-ins must be known everywhere at once: sessions renewed in their last seconds.
    #[serde(default)]
    pub urgent: bool,
    /// What the worker has seen of the origin since it started; `None`: nothing new.
    #[serde(default)]
    pub origin: Option<OriginCounts>,
    /// What the worker has counted since it started, by [`Count`](crate::history::Count). Each number only grows.
    #[serde(default)]
    pub counts: SlotCounts,
    /// Up to which number the data center has told of ended sessions; see [`EndedNews`](crate::admission::EndedNews).
    #[serde(default)]
    pub heard: u64,
    /// What of `origin` limits are judged by: of each ticket a little. `None`: all of it.
    #[serde(default)]
    pub judged: Option<OriginCounts>,
}

/// A data center's answer to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerAnswer {
    /// Format version.
    pub v: u8,
    /// Which start of the object answers: when it changes, what is not durable must be sent again.
    pub instance: u64,
    /// Check-ins up to this sequence number are counted.
    pub applied: u64,
    /// Check-ins up to this sequence number are in storage.
    pub durable: u64,
    /// The state key, once there is one.
    pub state: Option<StateKey>,
}

/// A data center's report to Global: all that its colo knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColoReport {
    /// Format version.
    pub v: u8,
    /// Which colo.
    pub colo: String,
    /// Grows with every report, also over restarts: an older report never replaces a newer one.
    pub sequence: u64,
    /// The colo's counts.
    pub counts: Counts,
    /// What the colo's Counter has given, if it was asked.
    pub given: Option<Given>,
    /// Workers that reported in the last seconds.
    pub workers: u32,
    /// Another report follows within this time, in milliseconds: when it does not come, that is a fault, not silence. 0: the
    /// next one comes with the next change.
    #[serde(default)]
    pub next_in: u64,
    /// What happened longer ago than this, in milliseconds, is in some report.
    #[serde(default)]
    pub late: u64,
    /// What the colo's workers have seen of the origin.
    #[serde(default)]
    pub origin: Option<OriginReport>,
    /// The version of what operators have changed that is in force in the colo.
    #[serde(default)]
    pub steering: u32,
    /// What happened in the colo in the last minutes.
    #[serde(default)]
    pub tallies: Tallies,
    /// What operators have changed, as the colo last received it. Global goes by it where it cannot read what is stored.
    #[serde(default, with = "travelling")]
    pub overrides: Overrides,
    /// Sessions that were ended here, each as [`CheckIn::Leave`]: all colos are to know.
    #[serde(default)]
    pub ended: Vec<CheckIn>,
    /// Up to which number Global has told of those of others; see [`EndedNews`](crate::admission::EndedNews).
    #[serde(default)]
    pub heard: u64,
    /// What of `origin` limits are judged by; `None`: all of it.
    #[serde(default)]
    pub judged: Option<OriginCounts>,
}

impl ColoReport {
    /// Whether the next one comes so soon that this one need not be stored.
    pub fn is_followed(&self) -> bool {
        (1..=UNHURRIED_PUSH_MS).contains(&self.next_in)
    }

    /// What limits are judged by.
    pub fn judged(&self) -> Option<OriginReport> {
        let OriginReport { since, counts } = self.origin.as_ref()?;
        Some(OriginReport { since: *since, counts: self.judged.as_ref().unwrap_or(counts).clone() })
    }
}
