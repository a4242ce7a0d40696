//! How far apart the calls of each caller are to be, so that all of them are not too many.

use crate::admission::{LONGEST_PACE_MS, PACE_MS};

/// The calls of all together in a second that an object asks for. It serves about a thousand.
const CALLS_PER_SECOND: u64 = 200;
/// The same while people wait.
const CALLS_WHILE_QUEUEING: u64 = 120;
/// The least pace while people wait, in milliseconds: nobody is let in at once whom that would delay.
const LEAST_WHILE_QUEUEING_MS: u64 = 100;
/// How often the pace is set anew, in milliseconds.
const SET_MS: u64 = 250;

/// A pace that grows and falls until as many calls come as the object can serve, whoever sends them.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    milliseconds: u64,
    calls: u64,
    since: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { milliseconds: PACE_MS, calls: 0, since: 0 }
    }
}

impl Pace {
    /// A call has come. `queueing`: people wait.
    pub fn called(&mut self, queueing: bool, now: u64) {
        let (most, least) = if queueing {
            (CALLS_WHILE_QUEUEING, LEAST_WHILE_QUEUEING_MS)
        } else {
            (CALLS_PER_SECOND, PACE_MS)
        };
        self.calls += 1;
        let passed = now.saturating_sub(self.since);
        // Whoever comes in a crowd's first moments must hear of it too.
        if passed < SET_MS && self.calls * 1_000 < most * SET_MS {
            return;
        }
        let wanted = self.milliseconds * self.calls * 1_000 / (most * passed.max(1));
        // Some callers have not heard of the pace yet: it must not swing.
        let paced = wanted.clamp(self.milliseconds * 3 / 4, self.milliseconds * 4);
        self.milliseconds = paced.clamp(least, LONGEST_PACE_MS);
        (self.calls, self.since) = (0, now);
    }

    /// The pace to tell, in milliseconds.
    pub fn milliseconds(&self) -> u32 {
        self.milliseconds as u32
    }
}
