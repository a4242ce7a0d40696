//! What a ticket says, its bytes, and where its visitor stands.

use crate::room::Room;
use crate::time::minute_of;

/// How far a ticket may be ahead of the reader's clock, in milliseconds: it was written by another colo, and clocks
/// differ by seconds.
pub const CLOCK_SKEW_MS: u64 = 10_000;

/// How long anybody may wait, in minutes: a day. An older bucket is no place in the queue any more.
pub const MAX_WAIT_MINUTES: u32 = 24 * 60;

/// Flag: the visitor was admitted.
const ACCEPTED: u8 = 1;
/// Flag: the visitor passed a test for people.
const HUMAN: u8 = 2;
/// Flag: the visitor failed one.
const NOT_HUMAN: u8 = 4;
/// Flag: the visitor waits, and is not counted; of somebody who was admitted: has yet to go in.
const UNCOUNTED: u8 = 8;
/// Flag: the visitor waits, and is told by a push message.
const SUBSCRIBED: u8 = 16;
/// The flags from this bit on are a number: how often the place has moved.
const MOVES_SHIFT: u32 = 5;
/// `ahead_at_first` of a visitor who was not told.
const NOT_TOLD: u32 = u32::MAX;
/// `progress` at the end.
const WHOLE: u8 = 100;

/// A ticket's id as it is shown: 16 hexadecimal digits.
pub fn draw_id(id: u64) -> String {
    format!("{id:016x}")
}

/// What the cookie holds (2021 article: `bucketId`, `acceptedAt`, `lastCheckInTime`; the rest is ours).
///
/// The bucket is never after the last check-in, nor is the admission: a ticket that says so is no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Drawn when the visitor first came, random but for the colo in which that was ([`ticket_id`](super::ticket_id)): parallel
    /// requests and retries with one cookie count once.
    pub id: u64,
    /// The minute in which the visitor first came, in whole minutes since the epoch: the place in the queue.
    pub bucket: u32,
    /// When the visitor was admitted, in milliseconds since the epoch; `None` while waiting.
    pub accepted_at: Option<u64>,
    /// The visitor's last counted request, in milliseconds since the epoch, by the clock of the worker that had it.
    pub last_check_in: u64,
    /// In how many seconds after the last check-in the visitor was told to come back; less for whoever has come earlier than
    /// told; 0: not told.
    pub refresh_seconds: u16,
    /// How many people were ahead when the visitor was first told; `None`: not told yet. One less than [`u32::MAX`] at
    /// most.
    pub ahead_at_first: Option<u32>,
    /// How much of the way was shown last, in percent: what is shown never goes back.
    pub progress: u8,
    /// What is known of whether the visitor is a person.
    pub human: Human,
    /// Waits, and was not counted at the last check-in: another newcomer of the same address was, or a test was not passed. Of
    /// somebody who was admitted: see [`Ticket::is_unconfirmed`].
    pub uncounted: bool,
    /// How often the place has moved to another device, at most [`Ticket::MOST_MOVES`]. Code of before there was this does not
    /// open a ticket of a place that has.
    pub moves: u8,
    /// Waits, and is told by a push message when the turn is near: the page may be closed meanwhile.
    pub subscribed: bool,
}

/// What is known of whether a visitor is a person, by a test that the room's owner asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Human {
    /// Nothing: not tested, or the test could not be judged.
    #[default]
    Unknown,
    /// The test was passed.
    Passed,
    /// The test was failed.
    Failed,
}

impl Ticket {
    /// The length of a ticket's bytes, the same for everybody: flags, id, bucket, last check-in, admission, the refresh
    /// that was promised, people ahead at first, progress.
    pub const LENGTH: usize = Self::OLD_LENGTH + 2 + 4 + 1;
    /// The length of the bytes of format 1, which ended with the admission.
    pub(super) const OLD_LENGTH: usize = 1 + 8 + 4 + 8 + 8;

    /// How often a place may move to another device.
    pub const MOST_MOVES: u8 = 7;

    /// The ticket of a visitor who comes for the first time at `time`, in milliseconds since the epoch. `id`: see
    /// [`Ticket::id`].
    pub fn new(id: u64, time: u64) -> Self {
        Self {
            id,
            bucket: minute_of(time),
            accepted_at: None,
            last_check_in: time,
            refresh_seconds: 0,
            ahead_at_first: None,
            progress: 0,
            human: Human::Unknown,
            uncounted: false,
            moves: 0,
            subscribed: false,
        }
    }

    /// The ticket after a request that is counted at `time`, in milliseconds since the epoch.
    #[must_use]
    pub fn checked_in(self, time: u64) -> Self {
        Self { last_check_in: time, ..self }
    }

    /// The ticket of a visitor who enters at `time`, in milliseconds since the epoch. What was told of the wait is over.
    #[must_use]
    pub fn admitted(self, time: u64) -> Self {
        let Self { id, bucket, human, moves, .. } = self;
        Self { bucket, accepted_at: Some(time), human, moves, ..Self::new(id, time) }
    }

    /// Whether its visitor is counted as active, and has to go in before the turn is the next one's ([`Terms::confirm_ms`]).
    /// Code of before there was this takes the visitor for one who is in.
    pub fn is_unconfirmed(&self) -> bool {
        self.accepted_at.is_some() && self.uncounted
    }

    /// The ticket of an admitted visitor who has yet to go in, or who has gone in.
    #[must_use]
    pub fn confirmed(self, confirmed: bool) -> Self {
        Self { uncounted: !confirmed, ..self }
    }

    /// The ticket as bytes: flags, then the numbers, most significant byte first. A ticket that cannot be (admitted
    /// or first seen after its last check-in, by another object's clock) is written as the nearest that can, so
    /// that whatever is written can be read, and nobody loses a place over a few milliseconds.
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let ticket = self.not_after(self.last_check_in);
        let accepted = if ticket.accepted_at.is_some() { ACCEPTED } else { 0 };
        let human = match ticket.human {
            Human::Unknown => 0,
            Human::Passed => HUMAN,
            Human::Failed => NOT_HUMAN,
        };
        let ahead_at_first = ticket.ahead_at_first.map_or(NOT_TOLD, |ahead| ahead.min(NOT_TOLD - 1));
        let uncounted = if ticket.uncounted { UNCOUNTED } else { 0 };
        let moves = ticket.moves.min(Self::MOST_MOVES) << MOVES_SHIFT;
        let subscribed = if ticket.subscribed { SUBSCRIBED } else { 0 };
        let numbers = [accepted | human | uncounted | subscribed | moves]
            .into_iter()
            .chain(ticket.id.to_be_bytes())
            .chain(ticket.bucket.to_be_bytes())
            .chain(ticket.last_check_in.to_be_bytes())
            .chain(ticket.accepted_at.unwrap_or(0).to_be_bytes())
            .chain(ticket.refresh_seconds.to_be_bytes())
            .chain(ahead_at_first.to_be_bytes())
            .chain([ticket.progress.min(WHOLE)]);
        let mut bytes = [0; Self::LENGTH];
        for (byte, number) in bytes.iter_mut().zip(numbers) {
            *byte = number;
        }
        bytes
    }

    /// Reads what [`Ticket::to_bytes`] wrote. `None` for any other length, flags that contradict each other, an admission
    /// without its flag, a progress of more than 100 percent, and a bucket or an admission after the last check-in. Every
    /// ticket has exactly one spelling.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (old, rest) = bytes.split_first_chunk::<{ Self::OLD_LENGTH }>()?;
        let (flags, old) = old.split_first()?;
        let human = match flags & (HUMAN | NOT_HUMAN) {
            0 => Human::Unknown,
            HUMAN => Human::Passed,
            NOT_HUMAN => Human::Failed,
            _ => return None,
        };
        let (refresh_seconds, rest) = rest.split_first_chunk::<2>()?;
        let (ahead_at_first, rest) = rest.split_first_chunk::<4>()?;
        let &[progress @ 0..=WHOLE] = rest else { return None };
        let ahead_at_first = u32::from_be_bytes(*ahead_at_first);
        Some(Self {
            refresh_seconds: u16::from_be_bytes(*refresh_seconds),
            ahead_at_first: (ahead_at_first != NOT_TOLD).then_some(ahead_at_first),
            progress,
            human,
            uncounted: flags & UNCOUNTED != 0,
            moves: flags >> MOVES_SHIFT,
            subscribed: flags & SUBSCRIBED != 0,
            ..Self::from_numbers(flags & ACCEPTED, old)?
        })
    }

    /// Reads a ticket of format 1: what it did not say yet is not known.
    pub(super) fn from_old_bytes(bytes: &[u8]) -> Option<Self> {
        let (flags, numbers) = bytes.split_first()?;
        Self::from_numbers(*flags, numbers)
    }

    /// Reads what both formats have: id, bucket, last check-in and admission.
    fn from_numbers(flags: u8, bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk::<8>()?;
        let (bucket, rest) = rest.split_first_chunk::<4>()?;
        let (last_check_in, rest) = rest.split_first_chunk::<8>()?;
        let accepted_at = u64::from_be_bytes(rest.try_into().ok()?);
        let accepted_at = match (flags, accepted_at) {
            (0, 0) => None,
            (ACCEPTED, time) => Some(time),
            _ => return None,
        };
        let ticket = Self {
            bucket: u32::from_be_bytes(*bucket),
            accepted_at,
            ..Self::new(u64::from_be_bytes(*id), u64::from_be_bytes(*last_check_in))
        };
        ticket.is_possible().then_some(ticket)
    }

    fn is_possible(&self) -> bool {
        *self == self.not_after(self.last_check_in)
    }

    /// The ticket with every time at most `time`, in milliseconds since the epoch.
    fn not_after(&self, time: u64) -> Self {
        Self {
            bucket: self.bucket.min(minute_of(time)),
            accepted_at: self.accepted_at.map(|accepted_at| accepted_at.min(time)),
            last_check_in: self.last_check_in.min(time),
            ..*self
        }
    }

    /// The ticket as a reader at `now_ms` may take it: the near future is now, the far future is no ticket.
    fn at(&self, now_ms: u64) -> Option<Self> {
        (self.last_check_in <= now_ms.saturating_add(CLOCK_SKEW_MS)).then(|| self.not_after(now_ms))
    }
}

/// How long tickets hold in a room. Times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long an admitted visitor stays active.
    pub session_ms: u64,
    /// Whether that begins anew with each request; else it counts from the admission.
    pub renews: bool,
    /// How long after the admission it ends, whatever requests come.
    pub longest_ms: u64,
    /// How long after the admission a visitor may still go in who has to say so.
    pub confirm_ms: u64,
    /// How long a waiting visitor keeps the place after the last check-in, at the least.
    pub place_ms: u64,
    /// How long it usually is between two check-ins of one who waits.
    pub refresh_ms: u64,
}

impl Room {
    /// How long tickets hold.
    pub fn terms(&self) -> Terms {
        Terms {
            session_ms: self.session_ms(),
            renews: !self.disable_session_renewal,
            longest_ms: match self.max_session_duration {
                0 => u64::MAX,
                minutes => u64::from(minutes) * 60_000,
            },
            confirm_ms: match self.confirm_within_minutes {
                0 => u64::MAX,
                minutes => u64::from(minutes) * 60_000,
            },
            place_ms: u64::from(self.place_kept_seconds) * 1_000,
            refresh_ms: self.refresh_ms(),
        }
    }
}

impl Room {
    /// Whether a visitor who is counted as active has yet to go in.
    pub fn awaits(&self, ticket: &Ticket) -> bool {
        ticket.is_unconfirmed() && self.confirm_within_minutes > 0 && !self.observes(ticket.id)
    }

    /// Whether one has not gone in while it was their turn. `time` in milliseconds since the epoch.
    pub fn has_missed_turn(&self, ticket: &Ticket, time: u64) -> bool {
        self.awaits(ticket) && time >= self.terms().end(ticket)
    }
}

impl Terms {
    /// How long a waiting visitor keeps the place after the last check-in, in milliseconds: two and a half of the
    /// visitor's own refreshes at the least, so that nobody who does what the page says loses it; as long as anybody may
    /// wait, for a visitor who may close the page until a push message comes.
    pub fn kept_ms(&self, ticket: &Ticket) -> u64 {
        if ticket.subscribed {
            return u64::from(MAX_WAIT_MINUTES) * 60_000;
        }
        let refresh_ms = u64::from(ticket.refresh_seconds) * 1_000;
        self.place_ms.max(refresh_ms.max(self.refresh_ms) * 5 / 2)
    }

    /// When the ticket ceases to hold, in milliseconds since the epoch.
    pub fn end(&self, ticket: &Ticket) -> u64 {
        let (from, ms) = match ticket.accepted_at {
            Some(accepted_at) if !self.renews => (accepted_at, self.session_ms),
            Some(_) => (ticket.last_check_in, self.session_ms),
            None => (ticket.last_check_in, self.kept_ms(ticket)),
        };
        let longest_ms =
            if ticket.is_unconfirmed() { self.longest_ms.min(self.confirm_ms) } else { self.longest_ms };
        let longest = ticket.accepted_at.map_or(u64::MAX, |at| at.saturating_add(longest_ms));
        from.saturating_add(ms).min(longest)
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

/// Judges a ticket by the clock and the room's terms. `now_ms` is the worker's time in milliseconds since the epoch.
///
/// An admitted visitor's ticket that has run out is not a place in the queue: the visitor is new. So is one who has
/// waited for more than [`MAX_WAIT_MINUTES`], and one whose ticket is more than [`CLOCK_SKEW_MS`] ahead of the clock.
/// A ticket from the nearer future comes back with its times set to now, and its bucket to this minute at most.
pub fn standing(ticket: Option<Ticket>, now_ms: u64, terms: &Terms) -> Standing {
    let Some(ticket) = ticket.filter(Ticket::is_possible).and_then(|ticket| ticket.at(now_ms)) else {
        return Standing::New;
    };
    let holds = now_ms < terms.end(&ticket);
    let waited_minutes = minute_of(now_ms).saturating_sub(ticket.bucket);
    match ticket.accepted_at {
        Some(_) if holds => Standing::Active(ticket),
        None if holds && waited_minutes <= MAX_WAIT_MINUTES => Standing::Waiting(ticket),
        _ => Standing::New,
    }
}
