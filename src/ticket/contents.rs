//! What a ticket says, its bytes, and where its visitor stands.

use crate::queue::minute_of;

/// How far a ticket may be ahead of the reader's clock, in milliseconds: it was written by another colo, and clocks
/// differ by seconds.
pub const CLOCK_SKEW_MS: u64 = 10_000;

/// How long anybody may wait, in minutes: a day. An older bucket is no place in the queue any more.
pub const MAX_WAIT_MINUTES: u32 = 24 * 60;

/// The only flag: the visitor was admitted.
const ACCEPTED: u8 = 1;

/// What the cookie holds (2021 article: `bucketId`, `acceptedAt`, `lastCheckInTime`; the id is ours).
///
/// The bucket is never after the last check-in, nor is the admission: a ticket that says so is no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Random, drawn when the visitor first came: parallel requests and retries with one cookie count once.
    pub id: u64,
    /// The minute in which the visitor first came, in whole minutes since the epoch: the place in the queue.
    pub bucket: u32,
    /// When the visitor was admitted, in milliseconds since the epoch; `None` while waiting.
    pub accepted_at: Option<u64>,
    /// The visitor's last counted request, in milliseconds since the epoch, by the clock of the worker that had it.
    pub last_check_in: u64,
}

impl Ticket {
    /// The length of a ticket's bytes, the same for everybody: flags, id, bucket, last check-in, admission.
    pub const LENGTH: usize = 1 + 8 + 4 + 8 + 8;

    /// The ticket as bytes: flags, then the numbers, most significant byte first. A ticket that cannot be (admitted
    /// or first seen after its last check-in, by another object's clock) is written as the nearest that can, so
    /// that whatever is written can be read, and nobody loses a place over a few milliseconds.
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let ticket = self.not_after(self.last_check_in);
        let flags = if ticket.accepted_at.is_some() { ACCEPTED } else { 0 };
        let numbers = [flags]
            .into_iter()
            .chain(ticket.id.to_be_bytes())
            .chain(ticket.bucket.to_be_bytes())
            .chain(ticket.last_check_in.to_be_bytes())
            .chain(ticket.accepted_at.unwrap_or(0).to_be_bytes());
        let mut bytes = [0; Self::LENGTH];
        for (byte, number) in bytes.iter_mut().zip(numbers) {
            *byte = number;
        }
        bytes
    }

    /// Reads what [`Ticket::to_bytes`] wrote. `None` for any other length, unknown flags, an admission without its
    /// flag, and a bucket or an admission after the last check-in. Every ticket has exactly one spelling.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([flags], rest) = bytes.split_first_chunk::<1>()?;
        let (id, rest) = rest.split_first_chunk::<8>()?;
        let (bucket, rest) = rest.split_first_chunk::<4>()?;
        let (last_check_in, rest) = rest.split_first_chunk::<8>()?;
        let accepted_at = u64::from_be_bytes(rest.try_into().ok()?);
        let accepted_at = match (*flags, accepted_at) {
            (0, 0) => None,
            (ACCEPTED, time) => Some(time),
            _ => return None,
        };
        let ticket = Self {
            id: u64::from_be_bytes(*id),
            bucket: u32::from_be_bytes(*bucket),
            accepted_at,
            last_check_in: u64::from_be_bytes(*last_check_in),
        };
        ticket.is_possible().then_some(ticket)
    }

    fn is_possible(&self) -> bool {
        *self == self.not_after(self.last_check_in)
    }

    /// The ticket with every time at most `time`, in milliseconds since the epoch.
    fn not_after(&self, time: u64) -> Self {
        Self {
            id: self.id,
            bucket: self.bucket.min(minute_of(time)),
            accepted_at: self.accepted_at.map(|accepted_at| accepted_at.min(time)),
            last_check_in: self.last_check_in.min(time),
        }
    }

    /// The ticket as a reader at `now_ms` may take it: the near future is now, the far future is no ticket.
    fn at(&self, now_ms: u64) -> Option<Self> {
        (self.last_check_in <= now_ms.saturating_add(CLOCK_SKEW_MS)).then(|| self.not_after(now_ms))
    }
}

/// Where a visitor stands, before anything is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No valid ticket.
    New,
    /// In the queue, with a place in it.
    Waiting(Ticket),
    /// Admitted, and the last request is younger than the session duration.
    Active(Ticket),
}

/// Judges a ticket by the clock. `now_ms` is the worker's time in milliseconds since the epoch, `session_ms` how long
/// an admitted visitor stays active after the last request, `place_ms` how long a waiting one keeps the place after
/// the last check-in, both in milliseconds.
///
/// An admitted visitor's ticket that has run out is not a place in the queue: the visitor is new. So is one who has
/// waited for more than [`MAX_WAIT_MINUTES`], and one whose ticket is more than [`CLOCK_SKEW_MS`] ahead of the clock.
/// A ticket from the nearer future comes back with its times set to now, and its bucket to this minute at most.
pub fn standing(ticket: Option<Ticket>, now_ms: u64, session_ms: u64, place_ms: u64) -> Standing {
    let Some(ticket) = ticket.filter(Ticket::is_possible).and_then(|ticket| ticket.at(now_ms)) else {
        return Standing::New;
    };
    let is_younger_than = |age_ms: u64| now_ms < ticket.last_check_in.saturating_add(age_ms);
    let waited_minutes = minute_of(now_ms).saturating_sub(ticket.bucket);
    match ticket.accepted_at {
        Some(_) if is_younger_than(session_ms) => Standing::Active(ticket),
        None if is_younger_than(place_ms) && waited_minutes <= MAX_WAIT_MINUTES => Standing::Waiting(ticket),
        _ => Standing::New,
    }
}
