//! The Anywhere object: the numbers that no colo owns, judged with its own clock and the freshest state.

use super::{Clocked, HINT_MS, Ledger, NumberAsk, Outcome, SavedLedger, StateKey, minute_of};
use crate::room::Room;
use crate::steering::Overrides;

/// A state older than this is renewed in the background while numbers are asked for.
const RENEW_MS: u64 = 100;
/// A state older than this is renewed before anyone is judged by it.
const TOO_OLD_MS: u64 = 500;

/// Whether the pool needs a newer state before it judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The state is fresh.
    Fresh,
    /// Renew it behind the visitors' backs.
    Background,
    /// Renew it first; without it, what is there must do.
    First,
}

/// The pool of numbers that no colo owns.
#[derive(Debug, Clone)]
pub struct Anywhere {
    ledger: Ledger,
    state: Option<Clocked>,
}

impl Anywhere {
    /// The pool at its start, with what it saved before, if anything. After a breakdown it goes on with an
    /// over-estimate of what it gave.
    pub fn restore(saved: Option<SavedLedger>, now: u64) -> Self {
        Self { ledger: Ledger::restore(saved, true, now), state: None }
    }

    /// Whether the room's state must be fetched from Global.
    pub fn renewal(&self, room: &Room, now: u64) -> Renewal {
        match &self.state {
            Some(state)
                if state.key.minute == minute_of(now)
                    && state.age(now) < TOO_OLD_MS
                    && Self::judge(room, state, now).is_some() =>
            {
                if now.saturating_sub(state.received_at) < RENEW_MS {
                    Renewal::Fresh
                } else {
                    Renewal::Background
                }
            }
            _ => Renewal::First,
        }
    }

    /// What operators have changed, as far as Global has told.
    pub fn overrides(&self) -> &Overrides {
        self.state.as_ref().map_or(Overrides::none(), |state| &state.key.steering)
    }

    /// Whether it has ever been told the room's state.
    pub fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Takes in a newer state.
    pub fn renew(&mut self, key: StateKey, now: u64) {
        let older = self.state.as_ref().is_some_and(|state| state.key.taken_at > key.taken_at);
        if !older {
            self.state = Some(Clocked { key, received_at: now });
        }
    }

    /// The budget of the current minute, where the state can tell it.
    fn judge(room: &Room, state: &Clocked, now: u64) -> Option<i64> {
        let minute = minute_of(now);
        state.key.shares_of(minute)?;
        state.key.budget(room, minute, state.global_time(now))
    }

    /// Answers a batch in the order given; numbers go to the oldest buckets first. `None` when no state can tell how many may be given: the workers fall back.
    pub fn take(&mut self, room: &Room, asks: &[NumberAsk], now: u64) -> Option<Vec<Outcome>> {
        self.ledger.roll(now);
        let state = self.state.as_ref()?;
        let budget = Self::judge(room, state, now)?;
        let shares = state.key.shares_of(minute_of(now))?;
        let mut oldest_first: Vec<(u32, bool, usize)> =
            asks.iter().enumerate().map(|(index, ask)| (ask.bucket, !ask.waits, index)).collect();
        oldest_first.sort_unstable();
        let mut outcomes =
            vec![Outcome::Refused { minute: self.ledger.minute(), limit: 0, wait_ms: HINT_MS }; asks.len()];
        for (_, _, index) in oldest_first {
            let Some(ask) = asks.get(index) else { continue };
            let ahead = state.key.present_ahead(ask.waits.then_some(ask.bucket));
            let limit = budget - state.key.protected(room, ahead);
            let outcome = self.ledger.take(ask.id, limit, shares.anywhere_slots(limit), now);
            if let Some(place) = outcomes.get_mut(index) {
                *place = outcome;
            }
        }
        Some(outcomes)
    }

    /// The numbers given, moved on to the minute of `now`.
    pub fn ledger(&mut self, now: u64) -> &mut Ledger {
        self.ledger.roll(now);
        &mut self.ledger
    }
}
