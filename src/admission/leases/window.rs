//! For rooms with `rate_window = "sliding"`: how many permits were used in the last 60 seconds.

use std::collections::VecDeque;

use litemap::LiteMap;

/// A use counts for so many tenths of a second, and until the end of that one.
const COUNTS: u64 = 600;
/// The most tenths that are kept: those, and some that are still to come. What is later counts with the last of them.
const KEPT: usize = 1_000;

/// Permits used, by the tenth of a second. All times are in milliseconds since the epoch, by the pool's clock.
#[derive(Debug, Clone)]
pub struct Window {
    used: VecDeque<i64>,
    /// The first tenth that counts.
    first: u64,
}

fn first_at(now: u64) -> u64 {
    (now / 100).saturating_sub(COUNTS)
}

impl Window {
    /// With what was used by the second (since the epoch), each at its end: a record knows no more.
    pub fn of(seconds: &[(u32, i64)], now: u64) -> Self {
        let mut window = Self { used: VecDeque::new(), first: first_at(now) };
        for (second, used) in seconds {
            window.book(*used, u64::from(*second) * 1_000 + 999);
        }
        window
    }

    /// The same by the second, for a record.
    pub fn seconds(&self) -> Vec<(u32, i64)> {
        let mut seconds: LiteMap<u32, i64> = LiteMap::new();
        for (tenth, used) in (self.first..).zip(&self.used) {
            *seconds.entry((tenth / 10) as u32).or_insert(0) += used;
        }
        seconds.into_iter().filter(|(_, used)| *used > 0).collect()
    }

    /// Adds permits that were used at a time, at the latest, or takes them off again, if negative.
    pub fn book(&mut self, used: i64, at: u64) {
        let Some(index) = (at / 100).checked_sub(self.first) else { return };
        let index = (index as usize).min(KEPT - 1);
        if self.used.len() <= index {
            self.used.resize(index + 1, 0);
        }
        if let Some(of) = self.used.get_mut(index) {
            *of = (*of + used).max(0);
        }
    }

    /// Forgets what was used earlier.
    pub fn pass(&mut self, now: u64) {
        let first = first_at(now).max(self.first);
        let gone = ((first - self.first) as usize).min(self.used.len());
        self.used.drain(..gone);
        self.first = first;
    }

    /// How many count, as of the last [`Window::pass`].
    pub fn sum(&self) -> i64 {
        self.used.iter().sum()
    }
}
