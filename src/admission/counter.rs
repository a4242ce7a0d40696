//! The Counter object: a colo's numbers, counted in one place for all of its workers (2023 article).

use super::{HINT_MS, Ledger, NumberAsk, Outcome, SavedLedger};

/// The numbers that a colo's workers have taken from the colo's share.
#[derive(Debug, Clone)]
pub struct Counter {
    ledger: Ledger,
}

impl Counter {
    /// A Counter at its start, with what it saved before, if anything. After a breakdown that lost count, it gives
    /// nothing more in the current minute: Anywhere takes over, and the limits hold.
    pub fn restore(saved: Option<SavedLedger>, now: u64) -> Self {
        Self { ledger: Ledger::restore(saved, false, now) }
    }

    /// Gives a number below `owned`, the colo's part of `limit` numbers of the minute. A limit for another minute than
    /// the Counter's own is refused: the object that gives the number decides the minute.
    pub fn take(&mut self, ask: &NumberAsk, now: u64) -> Outcome {
        self.ledger.roll(now);
        if ask.minute != self.ledger.minute() {
            return Outcome::Refused { minute: self.ledger.minute(), limit: 0, wait_ms: HINT_MS };
        }
        self.ledger.take(ask.id, ask.limit, ask.owned, now)
    }

    /// The numbers given, moved on to the minute of `now`.
    pub fn ledger(&mut self, now: u64) -> &mut Ledger {
        self.ledger.roll(now);
        &mut self.ledger
    }
}
