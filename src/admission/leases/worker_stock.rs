//! Permits that a worker holds itself, so that a new visitor costs no call at all while the room is far below its
//! limits.

use serde::{Deserialize, Serialize};

use super::Level;
use super::rate::Rate;

/// The most permits on loan to one worker, unless [`LEAST_MS`] need more.
const MOST: u64 = 10;
/// A loan may be large enough for this time, in milliseconds, so that a busy worker need not ask all the time.
const LEAST_MS: u64 = 250;
/// The shortest time between calls for which no visitor waits, in milliseconds.
const REFILL_PACE_MS: u64 = 50;
/// The time over which visitors are counted, in milliseconds.
const ARRIVALS_MS: u64 = 180_000;

/// What a worker says of its permits with each call to its Counter. It gives up what is left of them: the answer
/// brings new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoanAsk {
    /// Who asks: drawn at random when the worker started.
    pub worker: u64,
    /// The loan that it had; 0: none.
    pub loan: u64,
    /// How many permits of that loan it has used.
    pub used: u32,
    /// How many it wants now.
    pub want: u32,
}

/// Permits lent to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lent {
    /// The loan's number; 0: none.
    pub loan: u64,
    /// The size of the loan, in permits.
    pub permits: u32,
    /// For how many milliseconds they may be used, or might be if some were wanted.
    pub usable_ms: u32,
    /// How full the room is.
    pub level: Level,
}

/// A worker's own permits.
#[derive(Debug, Clone)]
pub struct WorkerStock {
    loan: u64,
    left: u32,
    used: u32,
    until: u64,
    level: Level,
    arrivals: Rate,
    /// For how long permits are lent now.
    usable_ms: u32,
    refilling: bool,
    asked_at: u64,
}

impl Default for WorkerStock {
    fn default() -> Self {
        Self {
            loan: 0,
            left: 0,
            used: 0,
            until: 0,
            level: Level::Busy,
            arrivals: Rate::over(ARRIVALS_MS),
            usable_ms: 0,
            refilling: false,
            asked_at: 0,
        }
    }
}

impl WorkerStock {
    /// A new visitor came.
    pub fn count_arrival(&mut self, now: u64) {
        self.arrivals.count(1, now);
    }

    /// Uses one permit, if there is one that is still good.
    pub fn take(&mut self, now: u64) -> bool {
        let free = self.left > 0 && now < self.until && self.level == Level::Calm;
        if free {
            self.left -= 1;
            self.used += 1;
        }
        free
    }

    fn wanted(&self, now: u64) -> u32 {
        if self.level == Level::Calm {
            // Until it is known how many come, each loan may be twice as large as the last.
            let lately =
                self.arrivals.in_ms(u64::from(self.usable_ms), now).max(2 * u64::from(self.used.max(1)));
            lately.min(MOST.max(self.arrivals.in_ms(LEAST_MS, now))) as u32
        } else {
            0
        }
    }

    /// Whether a call for more is worth its while though nobody waits for it. Who asks must call; until the answer
    /// comes, nobody else does.
    pub fn refill(&mut self, now: u64) -> bool {
        // A visitor who had to ask has brought new ones along.
        let used_up = self.loan != 0 && self.left == 0;
        let paced = now >= self.asked_at + REFILL_PACE_MS;
        let refill = !self.refilling && used_up && paced && self.wanted(now) > 1;
        self.refilling |= refill;
        refill
    }

    /// What goes with a call. From now on the old permits are not used any more.
    pub fn ask(&mut self, worker: u64, now: u64) -> LoanAsk {
        let ask = LoanAsk { worker, loan: self.loan, used: self.used, want: self.wanted(now) };
        (self.loan, self.left, self.used) = (0, 0, 0);
        self.asked_at = now;
        ask
    }

    /// Takes in the answer to a call; `None`: none came.
    pub fn answered(&mut self, lent: Option<Lent>, now: u64) {
        self.refilling = false;
        let Some(Lent { loan, permits, usable_ms, level }) = lent else { return };
        self.level = level;
        self.usable_ms = usable_ms;
        // Several calls may be under way. The Counter lends once at a time, so only one of them brings permits.
        if loan != 0 && self.loan == 0 {
            (self.loan, self.left, self.until) = (loan, permits, now + u64::from(usable_ms));
        }
    }

    /// The permits are for a room that an operator has changed since: they are not used any more.
    pub fn give_back(&mut self) {
        self.left = 0;
    }

    /// Learns how full the room is from elsewhere.
    pub fn learn(&mut self, level: Level) {
        self.level = level;
    }

    /// How full the room is, as far as is known here.
    pub fn level(&self) -> Level {
        self.level
    }
}
