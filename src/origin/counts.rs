//! What was seen of the origin, counted: by a worker, by a colo, by the whole room.

use serde::{Deserialize, Serialize};

use super::Ending;

/// Upper bounds of the classes of the time to the first byte, in milliseconds; the last class has none. Each is half as
/// wide again as the one before: fine enough to see an origin slow down by half, and small enough for every report.
const BOUNDS_MS: [u32; 22] = [
    10, 15, 22, 34, 51, 76, 114, 171, 256, 384, 577, 865, 1_297, 1_946, 2_919, 4_379, 6_568, 9_853, 14_779,
    22_168, 33_253, 49_879,
];

/// What came of a request to the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// An answer with this status code.
    Status(u16),
    /// No first byte in time.
    TimedOut,
    /// No connection, or one that broke.
    Unreachable,
    /// The visitor went away before the first byte came.
    Left,
}

impl Reply {
    /// What it tells the guard. Other server errors may be of the site's own making; they say nothing of its load.
    pub fn ending(self) -> Ending {
        match self {
            // 52x: what the platform says of an origin that is down, slow or breaks connections.
            Self::Status(429 | 502..=504 | 520..=524) | Self::Unreachable => Ending::Overload,
            Self::Status(500..) | Self::Left => Ending::Other,
            Self::Status(_) => Ending::Success,
            Self::TimedOut => Ending::TimedOut,
        }
    }

    /// Whether the visitor was not served.
    pub fn is_trouble(self) -> bool {
        !matches!(self, Self::Status(..=428 | 430..=499) | Self::Left)
    }
}

/// Requests that went to the origin and came back, from a start on. Each number only grows, so that a report which is
/// sent again, lost or overtaken changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OriginCounts {
    /// Requests that were answered in time, by the time to the first byte. Trailing zeros are left out.
    pub first_byte: Vec<u64>,
    /// Of these, answers that say that the origin is broken or has too much to do (5xx, 429).
    pub failed: u64,
    /// Requests that were not answered in time, or for which no connection could be made.
    pub timed_out: u64,
    /// Requests that the guard did not send.
    pub refused: u64,
    /// Requests that are at the origin now. This one also shrinks.
    pub in_flight: u64,
}

impl OriginCounts {
    /// Counts a request that ended after `took_ms`, in milliseconds.
    pub fn count(&mut self, reply: Reply, took_ms: u64) {
        match reply {
            Reply::Status(_) => {}
            Reply::TimedOut | Reply::Unreachable => {
                self.timed_out += 1;
                return;
            }
            Reply::Left => return,
        }
        let class = BOUNDS_MS.iter().position(|bound| took_ms < u64::from(*bound)).unwrap_or(BOUNDS_MS.len());
        if self.first_byte.len() <= class {
            self.first_byte.resize(class + 1, 0);
        }
        if let Some(count) = self.first_byte.get_mut(class) {
            *count += 1;
        }
        if reply.is_trouble() {
            self.failed += 1;
        }
    }

    /// Requests that were answered in time, well or not.
    pub fn answered(&self) -> u64 {
        self.first_byte.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Requests that came back, or did not come back in time.
    pub fn ended(&self) -> u64 {
        self.answered().saturating_add(self.timed_out)
    }

    /// Requests that were not answered well.
    pub fn troubles(&self) -> u64 {
        self.failed.saturating_add(self.timed_out)
    }

    /// The time to the first byte that a part (0 to 1) of the answered requests stayed below, in milliseconds; requests
    /// that were not answered in time are the slowest. `None` when nothing ended.
    pub fn quantile_ms(&self, part: f64) -> Option<f64> {
        let rank = self.ended() as f64 * part;
        let mut below = 0.0;
        for (class, count) in self.first_byte.iter().enumerate() {
            let within = *count as f64;
            if within > 0.0 && below + within >= rank {
                let low = class
                    .checked_sub(1)
                    .and_then(|class| BOUNDS_MS.get(class))
                    .map_or(5.0, |low| f64::from(*low));
                let high = BOUNDS_MS.get(class).map_or(low * 1.5, |high| f64::from(*high));
                return Some(low + (high - low) * ((rank - below) / within).clamp(0.0, 1.0));
            }
            below += within;
        }
        let slowest = BOUNDS_MS.last().copied().unwrap_or_default();
        (self.timed_out > 0).then(|| f64::from(slowest) * 1.5)
    }

    /// Adds what others have counted.
    pub fn add(&mut self, other: &Self) {
        self.change(other, u64::saturating_add);
        self.in_flight = self.in_flight.saturating_add(other.in_flight);
    }

    /// What was counted since an earlier state of the same counts, with as many in flight as now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        since.change(earlier, u64::saturating_sub);
        since
    }

    /// Changes each count by that of others.
    fn change(&mut self, by: &Self, changed: fn(u64, u64) -> u64) {
        if self.first_byte.len() < by.first_byte.len() {
            self.first_byte.resize(by.first_byte.len(), 0);
        }
        for (count, by) in self.first_byte.iter_mut().zip(&by.first_byte) {
            *count = changed(*count, *by);
        }
        self.failed = changed(self.failed, by.failed);
        self.timed_out = changed(self.timed_out, by.timed_out);
        self.refused = changed(self.refused, by.refused);
    }

    /// Whether these are counts of an earlier moment than others of the same sender.
    pub fn is_before(&self, other: &Self) -> bool {
        self.ended().saturating_add(self.refused) < other.ended().saturating_add(other.refused)
    }

    /// Nothing has been counted, and nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.ended() == 0 && self.refused == 0 && self.in_flight == 0
    }

    /// Bounds what a message may carry.
    pub(crate) fn is_sound(&self) -> bool {
        self.first_byte.len() <= BOUNDS_MS.len() + 1
    }
}

/// Counts of one sender and where they began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OriginReport {
    /// Drawn anew with every start of the sender: its counts begin at zero then.
    pub since: u64,
    /// The counts.
    pub counts: OriginCounts,
}

impl OriginReport {
    /// What this report says that an earlier one of the same sender did not.
    pub fn added_since(&self, earlier: Option<&Self>) -> OriginCounts {
        match earlier.filter(|earlier| earlier.since == self.since) {
            Some(earlier) => self.counts.since(&earlier.counts),
            None => self.counts.clone(),
        }
    }
}
