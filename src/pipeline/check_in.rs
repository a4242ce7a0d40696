//! One counted request.

use serde::{Deserialize, Serialize};

use crate::config::{Room, SlotStrategy};

/// A report may take so long to reach the pool, in milliseconds: with the next push, and the state after it.
const LAST_MOMENT_MS: u64 = 4_000;

/// A visitor's request as the pipeline counts it. Times are milliseconds since the epoch, by the worker's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub enum CheckIn {
    /// A visitor waits.
    Wait {
        /// The ticket's id.
        id: u64,
        /// The ticket's bucket.
        bucket: u32,
        /// The last check-in before this one, if there was one.
        from: Option<u64>,
        /// Now.
        at: u64,
    },
    /// A visitor is admitted. The new active user and the number of the minute travel in one check-in, so that no
    /// snapshot can hold one without the other.
    Enter {
        /// The ticket's id.
        id: u64,
        /// The ticket's bucket.
        bucket: u32,
        /// The last check-in while waiting, if the visitor waited.
        from: Option<u64>,
        /// Now.
        at: u64,
        /// The minute of the number, by the clock of the object that gave it.
        minute: u32,
        /// Whether there was a number; not so for fallback admissions.
        numbered: bool,
    },
    /// An active user made a request.
    Move {
        /// The ticket's id.
        id: u64,
        /// The last request before this one, as the ticket says.
        from: u64,
        /// Now.
        at: u64,
    },
}

impl CheckIn {
    /// Whether it renews a session so late that the pool of `leases` must be told directly: it lets somebody else in
    /// as soon as a session has ended, and a report takes longer than that.
    pub fn is_last_moment(&self, room: &Room) -> bool {
        let Self::Move { from, at, .. } = self else { return false };
        room.slot_strategy == SlotStrategy::Leases && at + LAST_MOMENT_MS >= from + room.session_ms()
    }
}

/// On the wire: kind, ticket id, bucket, from (0: none), at, minute, whether numbered. What a kind does not have is 0.
type Wire = (u8, u64, u32, u64, u64, u32, u8);

impl From<CheckIn> for Wire {
    fn from(check_in: CheckIn) -> Self {
        match check_in {
            CheckIn::Wait { id, bucket, from, at } => (0, id, bucket, from.unwrap_or(0), at, 0, 0),
            CheckIn::Enter { id, bucket, from, at, minute, numbered } => {
                (1, id, bucket, from.unwrap_or(0), at, minute, u8::from(numbered))
            }
            CheckIn::Move { id, from, at } => (2, id, 0, from, at, 0, 0),
        }
    }
}

impl TryFrom<Wire> for CheckIn {
    type Error = &'static str;

    fn try_from((kind, id, bucket, from, at, minute, numbered): Wire) -> Result<Self, Self::Error> {
        let earlier = (from != 0).then_some(from);
        match kind {
            0 => Ok(Self::Wait { id, bucket, from: earlier, at }),
            1 => Ok(Self::Enter { id, bucket, from: earlier, at, minute, numbered: numbered != 0 }),
            2 => Ok(Self::Move { id, from, at }),
            _ => Err("a check-in of a kind that this version does not know"),
        }
    }
}
