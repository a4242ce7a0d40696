//! What was counted travels worker → data center → global, and comes back as the state key.
//!
//! - A worker notes a [`CheckIn`] for every counted request in its [`Outbox`] and sends it to its colo's
//!   [`DataCenter`] after the response. It keeps check-ins until they are in storage there; each is numbered, so a
//!   repeated or late report changes nothing.
//! - The data center applies them to its [`Counts`] and sends the whole of it to [`Global`] every two to six seconds.
//!   Reports are absolute: the last one counts, a lost or doubled one changes nothing.
//! - Global adds the colos' counts up and answers with the [`StateKey`](crate::admission::StateKey).
//!
//! Nothing here reads a clock, draws random numbers or does I/O.

mod data_center;
mod dedup;
mod ended;
mod flow;
mod global;
mod histogram;
mod moves;
mod outbox;
mod recording;
mod reports;
mod status;

pub use data_center::{DataCenter, SavedDataCenter};
pub use dedup::CheckInDedup;
pub use ended::{EndedEverywhere, REMEMBERED_MS};
pub use global::{Global, GlobalMeta, MAX_COLOS, OriginMemory};
pub use histogram::Counts;
pub use moves::{MoveOutcome, MovePlace, Moves, PlaceMoved};
pub use outbox::Outbox;
pub use recording::Recorded;
pub use reports::{ColoReport, WorkerAnswer, WorkerReport};
pub use status::{BucketView, ColoView, OriginView, RoomStatus, StateView, SteeringSummary};

pub use crate::check_in::{CheckIn, Seen};
use crate::room::Room;
pub use crate::slots::SlotCounts;
use crate::ticket::Ticket;

/// While a room is far below its limits, a worker reports this long after a check-in, in milliseconds. The platform lets
/// a Worker go on for 30 seconds after its response.
pub const CALM_REPORT_MS: u64 = 27_000;

/// A data center that has reported within this time is sent operators' changes, though it sleeps, in milliseconds. After it
/// its next visitor waits for Global. A change then calls more of those that sleep, but changes are rare.
const TOLD_MS: u64 = 3_600_000;

/// Time between a data center's pushes to Global, in milliseconds, while the room is neither calm nor queues and a pool judges.
const UNHURRIED_PUSH_MS: u64 = 6_000;

/// A session that is renewed less than this before its end is reported at once, in milliseconds: an ordinary report could
/// take longer than what was left of it, and somebody else would be let in for it.
pub const LATE_RENEWAL_MS: u64 = 5_000;

/// How often a ticket moves on in a session, at most: the parts of one page come within a second or two.
const MOVES_PER_SESSION: u64 = 240;

impl Room {
    /// Whether a request of an active user at a time, in milliseconds since the epoch, is counted and moves the ticket on.
    /// Within one part of the session nothing changes.
    pub fn moves_on(&self, ticket: &Ticket, time: u64) -> bool {
        let part_ms = self.session_ms() / MOVES_PER_SESSION;
        !self.disable_session_renewal && time / part_ms != ticket.last_check_in / part_ms
    }
}
