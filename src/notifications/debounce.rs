//! A time for which something lasts, without the moments in which it seems to be over.

use serde::{Deserialize, Serialize};

/// Whether something lasts. It begins when it has been so for a while, and ends when it has not been so for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Debounce {
    /// Since when it lasts, in milliseconds since the epoch.
    since: Option<u64>,
    /// Since when the contrary has been so.
    turning: Option<u64>,
}

/// It has begun or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// It has begun.
    Begun,
    /// It is over. Since when it had lasted, in milliseconds since the epoch.
    Ended(u64),
}

/// How long something must be so before it begins, and how long not before it ends, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Delays {
    pub begins_ms: u64,
    pub ends_ms: u64,
}

impl Debounce {
    /// Whether it lasts.
    pub fn lasts(self) -> bool {
        self.since.is_some()
    }

    /// Takes in how it is at `now`.
    pub fn update(&mut self, is_so: bool, delays: Delays, now: u64) -> Option<Transition> {
        if is_so == self.lasts() {
            self.turning = None;
            return None;
        }
        let turning = *self.turning.get_or_insert(now);
        if now < turning + self.wait(delays) {
            return None;
        }
        self.turning = None;
        if is_so {
            self.since = Some(now);
            return Some(Transition::Begun);
        }
        self.since.take().map(Transition::Ended)
    }

    /// It is not known how it is now: what has not been so for long enough begins anew.
    pub fn interrupt(&mut self) {
        self.turning = None;
    }

    /// When it turns, if everything stays as it is now.
    pub fn turns_at(self, delays: Delays) -> Option<u64> {
        self.turning.map(|turning| turning + self.wait(delays))
    }

    fn wait(self, delays: Delays) -> u64 {
        if self.lasts() { delays.ends_ms } else { delays.begins_ms }
    }
}
