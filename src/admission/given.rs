//! How many numbers an object has given.

use serde::{Deserialize, Serialize};

use super::Ledger;
use crate::wire::VERSION;

/// How many numbers an object has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Given {
    /// Format version.
    pub v: u8,
    /// The minute that is counted now, by the object's clock.
    pub minute: u32,
    /// Given in it; `None`: a restart has lost count.
    pub given: Option<u64>,
    /// Given in the minute before; `None`: a restart has lost count.
    pub previous: Option<u64>,
    /// How many of `previous` are only assumed to have been given, after a breakdown.
    #[serde(default)]
    pub assumed: u64,
}

impl Given {
    /// What a ledger says.
    pub fn of(ledger: &Ledger) -> Self {
        Self {
            v: VERSION,
            minute: ledger.minute(),
            given: ledger.given(),
            previous: ledger.previous(),
            assumed: ledger.assumed_previous(),
        }
    }
}
