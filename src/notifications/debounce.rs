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

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It has begun.
    Begun,
    /// It is over. Since when it had lasted, in milliseconds since the epoch.
    Ended(u64),
}

/// How long something must be so before it begins, and how long not before it ends, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub begins_ms: u64,
    pub ends_ms: u64,
}

impl Debounce {
    /// Whether it lasts.
    pub fn lasts(self) -> bool {
        self.since.is_some()
    }

    /// Takes in how it is at `now`.
    pub fn look(&mut self, is_so: bool, patience: Patience, now: u64) -> Option<Turn> {
        if is_so == self.lasts() {
            self.turning = None;
            return None;
        }
        let turning = *self.turning.get_or_insert(now);
        if now < turning + self.wait(patience) {
            return None;
        }
        self.turning = None;
        if is_so {
            self.since = Some(now);
            return Some(Turn::Begun);
        }
        self.since.take().map(Turn::Ended)
    }

    /// It is not known how it is now: what has not been so for long enough begins anew.
    pub fn look_away(&mut self) {
        self.turning = None;
    }

    /// When it turns, if everything stays as it is now.
    pub fn turns_at(self, patience: Patience) -> Option<u64> {
        self.turning.map(|turning| turning + self.wait(patience))
    }

    fn wait(self, patience: Patience) -> u64 {
        if self.lasts() { patience.ends_ms } else { patience.begins_ms }
    }
}
