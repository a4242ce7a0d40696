//! The decision: who may enter now, who waits, and for how long.
//!
//! The idea in four lines:
//! - The room may hand out `B` numbers in a minute: what was admitted in it plus the slots that are free
//!   ([`StateKey::budget`]). `B` only grows within a minute, so an old state key costs idle slots, never overshoot.
//! - Every number of the minute belongs to exactly one owner, a colo or Anywhere ([`Shares`]), so the owners'
//!   counts can never add up to more than `B`.
//! - A number counts an admission, not an attempt ([`Ledger`]).
//! - A visitor may take a number only below `B` minus what is protected for older buckets
//!   ([`StateKey::protected`]).
//!
//! Nothing here reads a clock, draws random numbers or does I/O.

mod addresses;
mod anywhere;
mod batcher;
mod controller;
mod counter;
mod decision;
mod draw;
mod estimate;
mod given;
mod leases;
mod ledger;
mod remembered;
mod shares;
mod state_key;
mod strategies;

pub use addresses::Addresses;
pub use anywhere::{Anywhere, Renewal};
pub use batcher::{Batcher, LONGEST_PACE_MS, PACE_MS, Progress};
pub use controller::{AdmissionController, Step, Whom};
pub use counter::Counter;
pub use decision::{Ask, Decision, Fallback, Hint, decide};
pub use draw::{Chances, Draw, DrawKey, Seed, draw, next_draw_seconds, queue_bucket, round_end, round_of};
pub use estimate::{
    awaited_ms, estimated_minutes, estimated_wait_seconds, likely_ahead, next_check_in_seconds,
    random_wait_seconds, wait_percentiles, wait_seconds,
};
pub use given::Given;
pub use leases::{
    DueRecord, Group, LatestOrder, LeaseAnswer, LeaseAsk, LeaseCounter, Level, Pool, REACHES_MS,
    RECALL_WAITS_MS, Returned, RoundTrip, SavedPermits, SavedPool, Serves, has_small_stocks,
};
pub use ledger::{Ledger, NumberAsk, Outcome, SavedLedger};
pub use remembered::Remembered;
pub use shares::{MinuteShares, Share, Shares};
pub use state_key::{Clocked, EndedNews, FORESEEN_MS, StateKey};
pub use strategies::{
    adapted_worker_count, adapted_worker_slots, eligible_slots, share_of_slots, split_slots, worker_slots,
};

pub use crate::ticket::draw_id;
pub use crate::time::{MINUTE_MS, minute_of, start_of};

/// How long a refusal is believed at the most, in milliseconds. Limits grow by the second, so not longer.
pub const HINT_MS: u32 = 1_000;
