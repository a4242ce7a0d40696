//! What was counted travels worker → data center → global, and comes back as the state key.
//!
//! - A worker notes a [`CheckIn`] for every counted request in its [`Outbox`] and sends it to its colo's
//!   [`DataCenter`] after the response. It keeps check-ins until they are in storage there; each is numbered, so a
//!   repeated or late report changes nothing.
//! - The data center applies them to its [`Counts`] and sends the whole of it to [`Global`] about every two seconds.
//!   Reports are absolute: the last one counts, a lost or doubled one changes nothing.
//! - Global adds the colos' censuses up and answers with the [`StateKey`](crate::admission::StateKey).
//!
//! Nothing here reads a clock, draws random numbers or does I/O.

mod check_in;
mod data_center;
mod dedup;
mod flow;
mod global;
mod histogram;
mod outbox;
mod recording;
mod slots;
mod status;

pub use check_in::{CheckIn, Seen};
pub use data_center::{DataCenter, SavedDataCenter};
pub use dedup::CheckInDedup;
pub use global::{Global, GlobalMeta, MAX_COLOS, OriginMemory};
pub use histogram::Counts;
pub use outbox::Outbox;
pub use recording::Recorded;
pub use slots::SlotCounts;
pub use status::{BucketView, ColoView, OriginView, RoomStatus, SteeringSummary};

use crate::config::Room;
use crate::ticket::Ticket;

/// Slots of the last-request histogram per session: with fewer, up to a seventh of the room stands idle because a
/// whole slot expires at its end.
pub const SLOTS_PER_SESSION: u64 = 240;
/// Width of a slot of the waiting users' last check-ins, in milliseconds.
pub const WAITING_SLOT_MS: u64 = 5_000;

/// While a room is far below its limits, a worker reports so long after a check-in, in milliseconds. The platform lets
/// a Worker go on for 30 seconds after its response.
pub const CALM_REPORT_MS: u64 = 27_000;

/// A data center that has reported so lately is told what operators change, though it sleeps, in milliseconds.
const TOLD_MS: u64 = 600_000;

/// That a session is renewed in its last moment is said to the pool so often, until it was heard.
pub const HOLD_TRIES: u32 = 3;

/// A session that is renewed so shortly before its end is reported at once: the ordinary way of a report could take
/// longer than what was left of it, and somebody else would be let in for it.
pub const LATE_RENEWAL_MS: u64 = 5_000;

impl Room {
    /// Width of a slot of the last-request histogram, in milliseconds.
    pub fn slot_ms(&self) -> u64 {
        self.session_ms() / SLOTS_PER_SESSION
    }

    /// Whether a request of an active user at a time, in milliseconds since the epoch, is counted and moves the ticket on.
    /// Within one slot nothing changes.
    pub fn moves_on(&self, ticket: &Ticket, time: u64) -> bool {
        !self.disable_session_renewal && time / self.slot_ms() != ticket.last_check_in / self.slot_ms()
    }

    /// Whoever waits checks in again within so long after the last check-in, in milliseconds, unless the browser has put
    /// the page to sleep: a refresh, a tenth more, and the way of the report.
    pub fn present_ms(&self) -> u64 {
        self.refresh_ms() * 5 / 4
    }

    /// A waiting user is counted so long after the last check-in, in milliseconds: two and a half refreshes.
    pub fn waiting_ms(&self) -> u64 {
        self.refresh_ms() * 5 / 2
    }
}
