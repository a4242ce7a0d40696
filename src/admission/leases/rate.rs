//! How fast something happens now.

use serde::{Deserialize, Serialize};

/// The memory of it: with the time constant, what is older counts less and less.
const TIME_CONSTANT_MS: u64 = 5_000;
/// Counts are kept in thousandths.
const SCALE: u64 = 1_000;

/// An exponentially weighted rate, in whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rate {
    /// Events within the time constant, in thousandths.
    weight: u64,
    at: u64,
    time_constant_ms: u64,
}

impl Rate {
    /// A rate with a time constant of its own, in milliseconds.
    pub fn over(time_constant_ms: u64) -> Self {
        Self { weight: 0, at: 0, time_constant_ms }
    }

    fn constant(&self) -> u64 {
        if self.time_constant_ms == 0 { TIME_CONSTANT_MS } else { self.time_constant_ms }
    }

    fn decayed(&self, now: u64) -> u64 {
        let constant = self.constant();
        let mut past = now.saturating_sub(self.at);
        let mut weight = self.weight;
        // Steps of at most a constant: 1 − x + x²/2 is near enough to e^−x there.
        while past > 0 && weight > 0 {
            let step = past.min(constant);
            let x = step * SCALE / constant;
            weight = weight * (SCALE - x + x * x / (2 * SCALE)) / SCALE;
            past -= step;
        }
        weight
    }

    /// Counts some events.
    pub fn count(&mut self, events: u64, now: u64) {
        self.weight = self.decayed(now) + events * SCALE;
        self.at = self.at.max(now);
    }

    /// How many events some milliseconds bring, at the current rate.
    pub fn in_ms(&self, milliseconds: u64, now: u64) -> u64 {
        self.decayed(now) * milliseconds / self.constant() / SCALE
    }
}
