//! Who was given a permit lately.

use super::super::{MINUTE_MS, Outcome, Remembered};
use super::REACHES_MS;

/// How long a permit is remembered, in milliseconds: until its own minute is over.
const REMEMBERED_MS: u64 = MINUTE_MS + REACHES_MS;

/// Permits by the ticket id of whom they were given to: a retry is not counted again. A permit is good in its own minute
/// only. In the next one it may count as lost, because nobody was seen with it, and its slot be somebody else's.
#[derive(Debug, Clone)]
pub struct Holders {
    minutes: Remembered<u32>,
}

impl Holders {
    /// Nobody. At least the last `capacity` visitors are remembered.
    pub fn new(capacity: usize) -> Self {
        Self { minutes: Remembered::new(REMEMBERED_MS, capacity) }
    }

    /// A visitor is given a permit of a minute.
    pub fn put(&mut self, id: u64, minute: u32, now: u64) {
        self.minutes.put(id, minute, now);
    }

    /// The permit that a visitor was given, if it is good in a minute.
    pub fn given_to(&self, id: u64, minute: u32) -> Option<Outcome> {
        let minute = self.minutes.get(id).filter(|given| *given >= minute)?;
        Some(Outcome::Given { minute, number: 0 })
    }
}
