//! One counted request.

use serde::{Deserialize, Serialize};

use crate::room::Room;
use crate::ticket::Ticket;

/// Width of a slot of the waiting users' last check-ins, in milliseconds.
pub const WAITING_SLOT_MS: u64 = 5_000;

/// The longest time that a report may take to reach the pool, in milliseconds: with the next push, and the state after it.
const LAST_MOMENT_MS: u64 = 4_000;

/// How long a session counts after its end where a pool judges, in milliseconds: a renewal of its last moment may be on its way to
/// the pool, and a clock may be behind.
pub const POOL_EXPIRY_LAG_MS: u64 = 250;

/// When a visitor who waits checked in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// When, in milliseconds since the epoch.
    pub at: u64,
    /// How many waiting slots longer than usual the visitor was told to stay away, at most [`Seen::LATEST`]. The
    /// visitor is counted for as much longer.
    pub later: u8,
}

impl Seen {
    /// The most that `later` can be: seven bits on the wire.
    pub const LATEST: u8 = 0x7f;

    /// The last check-in of a visitor who waits, as the ticket says.
    pub fn of(ticket: &Ticket, room: &Room) -> Self {
        let told_ms = u64::from(ticket.refresh_seconds) * 1_000;
        // Usual is a refresh, a tenth more or less.
        let later = told_ms.saturating_sub(room.refresh_ms() * 11 / 10).div_ceil(WAITING_SLOT_MS);
        Self { at: ticket.last_check_in, later: later.min(u64::from(Self::LATEST)) as u8 }
    }

    /// The waiting slot in which the visitor is counted.
    pub fn slot(&self) -> u64 {
        self.at / WAITING_SLOT_MS + u64::from(self.later)
    }
}

/// As long as usual.
impl From<u64> for Seen {
    fn from(at: u64) -> Self {
        Self { at, later: 0 }
    }
}

/// A visitor's request as it is counted. Times are milliseconds since the epoch, by the worker's clock.
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
        from: Option<Seen>,
        /// Now.
        at: Seen,
    },
    /// A visitor is admitted. The new active user and the number of the minute travel in one check-in, so that no
    /// snapshot can hold one without the other.
    Enter {
        /// The ticket's id.
        id: u64,
        /// The ticket's bucket.
        bucket: u32,
        /// The last check-in while waiting, if the visitor waited.
        from: Option<Seen>,
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
        /// When the user entered; `None`: not known, an older version does not say it.
        entered: Option<u64>,
    },
    /// An active user's session ends before its time: the slot is free. With a later request of the same ticket, which
    /// was under way, the user is active again.
    Leave {
        /// The ticket's id.
        id: u64,
        /// The last request, as the ticket says.
        from: u64,
        /// Now.
        at: u64,
        /// When the user entered; `None`: not known.
        entered: Option<u64>,
    },
    /// A visitor does not wait any longer, and is not counted. Whoever comes back with the same ticket is counted again.
    GiveUp {
        /// The ticket's id.
        id: u64,
        /// The ticket's bucket.
        bucket: u32,
        /// The last check-in.
        from: Seen,
        /// Now.
        at: u64,
    },
}

impl CheckIn {
    /// The ticket's id.
    pub fn id(&self) -> u64 {
        match self {
            Self::Wait { id, .. }
            | Self::Enter { id, .. }
            | Self::Move { id, .. }
            | Self::Leave { id, .. }
            | Self::GiveUp { id, .. } => *id,
        }
    }

    /// When the request was made, in milliseconds since the epoch.
    pub fn at(&self) -> u64 {
        match self {
            Self::Wait { at, .. } => at.at,
            Self::Enter { at, .. }
            | Self::Move { at, .. }
            | Self::Leave { at, .. }
            | Self::GiveUp { at, .. } => *at,
        }
    }

    /// Whether it renews a session so shortly before its end that the pool of `leases` must be told directly: it lets
    /// somebody else in as soon as a session has ended, and a report takes longer than that.
    pub fn is_last_moment(&self, room: &Room) -> bool {
        let Self::Move { from, at, .. } = self else { return false };
        room.slot_strategy.leases_permits() && at + LAST_MOMENT_MS >= from + room.session_ms()
    }
}

/// On the wire: kind, ticket id, bucket, from (0: none), at, minute, whether numbered. What a kind does not have is 0.
/// How much later than usual a waiting visitor is counted stands where it can be left aside: in the minute of those who
/// wait and give up (`at`'s in the lowest eight bits, then `from`'s), and above the lowest bit of who enters. When an
/// active user entered stands in the place of the bucket: one more than the milliseconds until `from`; 0: not known.
type Wire = (u8, u64, u32, u64, u64, u32, u8);

/// How long a user had been inside at `from`, plus one; 0: not known.
fn inside(from: u64, entered: Option<u64>) -> u32 {
    entered.map_or(0, |entered| {
        u32::try_from(from.saturating_sub(entered)).unwrap_or(u32::MAX).saturating_add(1)
    })
}

fn laters(from: Seen, at: Seen) -> u32 {
    u32::from(at.later) | u32::from(from.later) << 8
}

impl From<CheckIn> for Wire {
    fn from(check_in: CheckIn) -> Self {
        match check_in {
            CheckIn::Wait { id, bucket, from, at } => {
                let from = from.unwrap_or_default();
                (0, id, bucket, from.at, at.at, laters(from, at), 0)
            }
            CheckIn::Enter { id, bucket, from, at, minute, numbered } => {
                let from = from.unwrap_or_default();
                (1, id, bucket, from.at, at, minute, u8::from(numbered) | from.later << 1)
            }
            CheckIn::Move { id, from, at, entered } => (2, id, inside(from, entered), from, at, 0, 0),
            CheckIn::Leave { id, from, at, entered } => (3, id, inside(from, entered), from, at, 0, 0),
            CheckIn::GiveUp { id, bucket, from, at } => {
                (4, id, bucket, from.at, at, laters(from, Seen::default()), 0)
            }
        }
    }
}

impl TryFrom<Wire> for CheckIn {
    type Error = &'static str;

    fn try_from((kind, id, bucket, from, at, minute, numbered): Wire) -> Result<Self, Self::Error> {
        let seen = |at: u64, later: u32| Seen { at, later: later as u8 & Seen::LATEST };
        let entered = bucket.checked_sub(1).map(|inside| from.saturating_sub(inside.into()));
        let earlier = |later: u32| (from != 0).then(|| seen(from, later));
        match kind {
            0 => Ok(Self::Wait { id, bucket, from: earlier(minute >> 8), at: seen(at, minute) }),
            1 => Ok(Self::Enter {
                id,
                bucket,
                from: earlier(u32::from(numbered >> 1)),
                at,
                minute,
                numbered: numbered & 1 != 0,
            }),
            2 => Ok(Self::Move { id, from, at, entered }),
            3 => Ok(Self::Leave { id, from, at, entered }),
            4 => Ok(Self::GiveUp { id, bucket, from: seen(from, minute >> 8), at }),
            _ => Err("a check-in of a kind that this version does not know"),
        }
    }
}
