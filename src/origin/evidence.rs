//! The last minute of the origin, second by second, as the whole room saw it.

use std::collections::VecDeque;
use std::ops::Range;

use super::{OriginCounts, OriginReport};

/// How many seconds are kept.
const KEPT_SECONDS: u64 = 64;

/// What was counted in the last minute.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    seconds: VecDeque<(u64, OriginCounts)>,
}

impl Evidence {
    /// Adds what a report brought at `now`.
    pub fn add(&mut self, added: &OriginCounts, now: u64) {
        let second = now / 1_000;
        match self.seconds.back_mut() {
            Some((last, counts)) if *last >= second => counts.add(added),
            _ => {
                let mut counts = added.clone();
                counts.in_flight = 0;
                self.seconds.push_back((second, counts));
            }
        }
        while self.seconds.front().is_some_and(|(of, _)| of + KEPT_SECONDS < second) {
            self.seconds.pop_front();
        }
    }

    /// Adds what a sender's report brings that its report before did not.
    pub fn take_in(&mut self, report: Option<&OriginReport>, before: Option<&OriginReport>, now: u64) {
        if let Some(report) = report {
            self.add(&report.added_since(before), now);
        }
    }

    /// What came in from a moment on, by the second.
    pub fn since(&self, from: u64) -> OriginCounts {
        self.sum(from.div_ceil(1_000)..u64::MAX)
    }

    /// What came in between two moments, whole seconds only, and in how many milliseconds: a second that is not over yet
    /// would make the origin seem slower than it is.
    pub fn between(&self, from: u64, to: u64) -> (OriginCounts, u64) {
        let (from, to) = (from.div_ceil(1_000), to / 1_000);
        (self.sum(from..to), to.saturating_sub(from) * 1_000)
    }

    /// What came in in some seconds, with nothing in flight.
    fn sum(&self, within: Range<u64>) -> OriginCounts {
        let mut sum = OriginCounts::default();
        for (_, counts) in self.seconds.iter().filter(|(second, _)| within.contains(second)) {
            sum.add(counts);
        }
        sum.in_flight = 0;
        sum
    }
}
