//! The numbers that one object has given out in a minute.

use serde::{Deserialize, Serialize};

use super::{HINT_MS, MINUTE_MS, Remembered, minute_of};
use crate::wire::VERSION;

/// How long a given number is remembered for its ticket, in milliseconds, so that a retry is not counted again: until its
/// minute is over.
const REMEMBERED_MS: u64 = MINUTE_MS;
/// The window in which numbers are counted, in milliseconds: two together hold every burst that storage may have missed.
const WINDOW_MS: u64 = 2_000;
/// How many tickets are remembered per generation: 100,000 admissions in the worst minute, about 5 MB.
const REMEMBERED_TICKETS: usize = 50_000;

/// One visitor's ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberAsk {
    /// The ticket's id: asking again with it changes nothing.
    pub id: u64,
    /// The ticket's bucket.
    pub bucket: u32,
    /// Whether the visitor waits already.
    pub waits: bool,
    /// The minute that the limits are for, by the worker's clock. Anywhere judges by its own.
    pub minute: u32,
    /// Numbers of the minute that this visitor may reach, over all owners.
    pub limit: i64,
    /// How many of them the colo owns.
    pub owned: i64,
}

impl NumberAsk {
    /// The answer without a number, whatever is left. `wait_ms` is its TTL in milliseconds; 0: none, for it says nothing of
    /// numbers.
    pub fn refused(&self, wait_ms: u32) -> Outcome {
        Outcome::Refused { minute: self.minute, limit: self.limit, wait_ms }
    }
}

/// What came of asking for a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub enum Outcome {
    /// The ticket has a number of this minute: the visitor enters.
    Given {
        /// The minute that the number belongs to, by the giver's clock; the admission is booked to it.
        minute: u32,
        /// The number, from 0.
        number: u64,
    },
    /// No number was left below the limit. Numbers count admissions, so refusing changes nothing.
    Refused {
        /// The minute by the giver's clock.
        minute: u32,
        /// The limit that was refused, before the division into shares.
        limit: i64,
        /// How long asking again with it is in vain, in milliseconds.
        wait_ms: u32,
    },
    /// Nobody could tell: the pool did not answer.
    Unknown,
}

/// On the wire: refused (0), given (1) or unknown (2), the minute, the number or the limit, the wait.
type Wire = (u8, u32, i64, u32);

impl From<Outcome> for Wire {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Given { minute, number } => (1, minute, number as i64, 0),
            Outcome::Refused { minute, limit, wait_ms } => (0, minute, limit, wait_ms),
            Outcome::Unknown => (2, 0, 0, 0),
        }
    }
}

impl From<Wire> for Outcome {
    fn from((kind, minute, value, wait_ms): Wire) -> Self {
        match kind {
            0 => Self::Refused { minute, limit: value, wait_ms },
            1 => Self::Given { minute, number: value.max(0) as u64 },
            _ => Self::Unknown,
        }
    }
}

/// Numbers given out in the current minute and in the one before.
#[derive(Debug, Clone)]
pub struct Ledger {
    minute: u32,
    given: u64,
    previous: Option<u64>,
    /// How many of `given` and of `previous` are an assumption made after a breakdown.
    assumed: u64,
    assumed_previous: u64,
    void: bool,
    /// How many of this minute's numbers a restart would count by what is stored.
    covered: u64,
    changed_at: u64,
    window: u64,
    in_window: u64,
    in_window_before: u64,
    peak: u64,
    holders: Remembered<(u32, u64)>,
}

/// What a ledger keeps in storage. It is written in the background, so a restart may find an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLedger {
    /// Format version.
    pub v: u8,
    /// The minute that `given` counts.
    pub minute: u32,
    /// Numbers given in that minute, where known.
    pub given: Option<u64>,
    /// Numbers given in the minute before, where known.
    pub previous: Option<u64>,
    /// Whether it was written after the last number: nothing was given since, unless the object broke down later.
    pub settled: bool,
    /// The most numbers given within four seconds, in recent windows.
    pub peak: u64,
    /// How many of `given` are an assumption.
    #[serde(default)]
    pub assumed: u64,
    /// The same of `previous`.
    #[serde(default)]
    pub assumed_previous: u64,
}

impl SavedLedger {
    /// What to start from where a record is there and cannot be read: nothing more is given in this minute.
    pub fn lost(now: u64) -> Self {
        Self {
            v: VERSION,
            minute: minute_of(now),
            given: None,
            previous: None,
            settled: false,
            peak: 0,
            assumed: 0,
            assumed_previous: 0,
        }
    }
}

impl Ledger {
    /// A ledger at its first start ever, or with what was saved. When that was written before the last number
    /// (`settled` is false), some numbers are missing: with `over_estimates` the count becomes an over-estimate by four seconds
    /// at the peak rate; without, the current minute is void and nothing more is given in it.
    pub fn restore(saved: Option<SavedLedger>, over_estimates: bool, now: u64) -> Self {
        let minute = minute_of(now);
        let mut ledger = Self {
            minute,
            given: 0,
            previous: Some(0),
            assumed: 0,
            assumed_previous: 0,
            void: false,
            covered: 0,
            changed_at: 0,
            window: 0,
            in_window: 0,
            in_window_before: 0,
            peak: 0,
            holders: Remembered::new(REMEMBERED_MS, REMEMBERED_TICKETS),
        };
        let Some(saved) = saved else { return ledger };
        let assumed =
            if saved.settled { Some(0) } else { over_estimates.then_some(Self::margin(saved.peak)) };
        let given = saved.given.zip(assumed).map(|(given, assumed)| given + assumed);
        let assumed = saved.assumed + assumed.unwrap_or(0);
        if saved.minute >= minute {
            ledger.minute = saved.minute;
            ledger.given = given.unwrap_or(0);
            ledger.covered = ledger.given;
            ledger.previous = saved.previous;
            ledger.void = given.is_none();
            ledger.assumed = assumed;
            ledger.assumed_previous = saved.assumed_previous;
        } else {
            // An unsettled record of an earlier minute says nothing of this one: numbers may have been given in it.
            if saved.minute + 1 == minute || !saved.settled {
                (ledger.previous, ledger.assumed_previous) = (given, assumed);
            }
            ledger.void = !saved.settled && !over_estimates;
        }
        ledger
    }

    /// Moves on to the minute of `now`. A clock that goes back does not take the ledger back.
    pub fn roll(&mut self, now: u64) {
        let minute = minute_of(now);
        if minute > self.minute {
            self.previous = if minute != self.minute + 1 {
                Some(0)
            } else if self.void {
                None
            } else {
                Some(self.given)
            };
            self.assumed_previous = if minute == self.minute + 1 { self.assumed } else { 0 };
            self.assumed = 0;
            self.minute = minute;
            self.given = 0;
            self.covered = 0;
            self.void = false;
        }
    }

    /// Gives the next number when it is below `owned`, the owner's part of `limit` numbers. A ticket that holds a
    /// number of this minute gets that one again and is not counted twice. One of the minute before would be one too many.
    pub fn take(&mut self, id: u64, limit: i64, owned: i64, now: u64) -> Outcome {
        self.roll(now);
        if let Some((minute, number)) = self.holders.get(id)
            && minute >= self.minute
        {
            return Outcome::Given { minute, number };
        }
        if self.void || (self.given as i64) >= owned {
            return Outcome::Refused { minute: self.minute, limit, wait_ms: HINT_MS };
        }
        let number = self.given;
        self.given += 1;
        self.changed_at = now;
        self.count_rate(now / WINDOW_MS);
        self.holders.put(id, (self.minute, number), now);
        Outcome::Given { minute: self.minute, number }
    }

    /// The minute that is counted now.
    pub fn minute(&self) -> u32 {
        self.minute
    }

    /// Numbers given in the current minute; `None` when a restart has lost count.
    pub fn given(&self) -> Option<u64> {
        (!self.void).then_some(self.given)
    }

    /// Numbers given in the minute before; `None` when a restart has lost count.
    pub fn previous(&self) -> Option<u64> {
        self.previous
    }

    /// How many of the numbers of the minute before are only assumed to have been given.
    pub fn assumed_previous(&self) -> u64 {
        self.assumed_previous
    }

    /// Whether a restart would count all numbers of the minute by what is stored. If not, the answers must wait until more
    /// is stored.
    pub fn is_covered(&self) -> bool {
        self.given <= self.covered
    }

    /// How many more may have been given than an unsettled record says.
    fn margin(peak: u64) -> u64 {
        peak.max(1)
    }

    /// What to write to storage. `settled` when nothing is being given while it is written.
    pub fn save(&mut self, settled: bool) -> SavedLedger {
        self.covered = self.given + if settled { 0 } else { Self::margin(self.peak) };
        SavedLedger {
            v: 1,
            minute: self.minute,
            // With what was assumed: it may have been given, and the next breakdown must not forget it.
            given: self.given(),
            previous: self.previous,
            settled,
            peak: self.peak,
            assumed: self.assumed,
            assumed_previous: self.assumed_previous,
        }
    }

    fn count_rate(&mut self, window: u64) {
        if window != self.window {
            let passed = window.saturating_sub(self.window);
            // Halves with every window that passes, so that one burst is not held against the next hours.
            self.peak >>= passed.min(63);
            self.in_window_before = if passed == 1 { self.in_window } else { 0 };
            self.window = window;
            self.in_window = 0;
        }
        self.in_window += 1;
        self.peak = self.peak.max(self.in_window_before + self.in_window);
    }

    /// When the last number was given, in milliseconds since the epoch.
    pub fn changed_at(&self) -> u64 {
        self.changed_at
    }
}
