//! Who was given a permit lately.

use super::super::{MINUTE_MS, Outcome, Remembered};
use super::REACHES_MS;
use crate::room::RateWindow;

/// How long a permit is remembered, in milliseconds: until its own minute is over.
const REMEMBERED_MS: u64 = MINUTE_MS + REACHES_MS;

/// Permits by the ticket id of whom they were given to: a retry is not counted again. A permit is good in its own minute
/// only. In the next one it may count as lost, because nobody was seen with it, and its slot be somebody else's.
#[derive(Debug, Clone)]
pub struct Holders {
    /// The minute of the permit, and when it was given.
    given: Remembered<(u32, u64)>,
    good_ms: u64,
}

impl Holders {
    /// Nobody. At least the last `capacity` visitors are remembered.
    pub fn new(capacity: usize) -> Self {
        Self { given: Remembered::new(REMEMBERED_MS, capacity), good_ms: REMEMBERED_MS }
    }

    /// The same, where permits are good as long as those of another memory.
    pub fn like(&self, capacity: usize) -> Self {
        Self { good_ms: self.good_ms, ..Self::new(capacity) }
    }

    /// Permits are good for as long as the limit's window says: where it slides, 60 seconds count from when a permit was given,
    /// and it is good while it is on its way to its visitor.
    pub fn follow(&mut self, window: RateWindow) {
        self.good_ms = if window == RateWindow::Sliding { REACHES_MS } else { REMEMBERED_MS };
    }

    /// Whether the limit's window slides.
    pub fn slides(&self) -> bool {
        self.good_ms == REACHES_MS
    }

    /// A visitor is given a permit of a minute.
    pub fn put(&mut self, id: u64, minute: u32, now: u64) {
        self.given.put(id, (minute, now), now);
    }

    /// The permit that a visitor was given, if it is good in a minute, and now.
    pub fn given_to(&self, id: u64, minute: u32, now: u64) -> Option<Outcome> {
        let (minute, _) = self.given.get(id).filter(|(of, at)| *of >= minute && now < at + self.good_ms)?;
        Some(Outcome::Given { minute, number: 0 })
    }
}
