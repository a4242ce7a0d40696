//! What the Worker and the objects say to each other: object names, requests and answers, for both sides. Who answers
//! what stands in the [table of methods](super::Method).
//!
//! [`wire`](super::wire) makes bytes of them. Every message carries the format version `v` and may grow at its end: what
//! an older side does not know is ignored, and what it does not send is zero, because during a deploy old and new code
//! talk to each other. The formats are pinned by tests.

use serde::{Deserialize, Serialize};

pub use crate::admission::Given;
use crate::admission::{LatestOrder, LeaseAsk, Level, NumberAsk, Outcome, StateKey};
pub use crate::counts::{ColoReport, MovePlace, PlaceMoved, WorkerAnswer, WorkerReport};
pub use crate::origin::{OriginHealth, OriginStatus};
use crate::steering::{Overrides, travelling};
pub use crate::wire::VERSION;

/// A body longer than this is refused, in bytes.
pub const MAX_BODY: usize = 1 << 20;

/// The query of a program that asks all day: it does not count as watching.
pub const UNWATCHED: &str = "unwatched";
/// Global: a WebSocket that gets the status whenever it changes. An HTTP request with an upgrade.
pub const LIVE: &str = "/live";
/// The header of a request for [`LIVE`] that says when the operator's session is over, in milliseconds since the epoch.
pub const SESSION_ENDS: &str = "anteroom-session-ends";

/// The header of a request for [`LIVE`] that says by which token made at run time it comes: it may be revoked meanwhile.
pub const LISTENER: &str = "anteroom-listener";

/// What an operator asks of a room.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OperatorAsk {
    /// Format version.
    pub v: u8,
    /// The name of the operator's token.
    pub by: String,
    /// The query of the address, without `?`.
    pub query: String,
    /// The body; may be empty.
    pub body: String,
}

/// The answer to an operator.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OperatorAnswer {
    /// Format version.
    pub v: u8,
    /// The status code.
    pub status: u16,
    /// The body; JSON where nothing else is agreed on.
    pub body: String,
}

/// The name of a colo's objects (Counter, `DataCenter`) of a room, or of a region's Counter, by its location hint.
pub fn colo_object(room: &str, colo: &str) -> String {
    format!("{room}/{colo}")
}

/// The room and colo (or region) of an object's name; it is empty for Global and Anywhere, whose name is the room.
pub fn room_and_colo(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((name, ""))
}

/// Asks a Counter or Anywhere for numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// Format version.
    pub v: u8,
    /// One entry per visitor.
    pub asks: Vec<NumberAsk>,
    /// What a worker of 0.1.0 says of permits that it was lent.
    pub loan: Option<LoanAsk>,
    /// Where the owner wants one place per address, of a Counter: the address of each who asks, as a key; 0: none.
    #[serde(default)]
    pub addresses: Vec<u64>,
    /// What operators have changed, as far as the asker knows.
    #[serde(default, with = "travelling")]
    pub steering: Overrides,
    /// In order of arrival, while others wait, of a Counter: how long each has no other chance if there is no slot now, in
    /// milliseconds; 0: it does not matter. Empty: for nobody.
    #[serde(default)]
    pub next_ms: Vec<u32>,
    /// Of a Counter: the location hint of its region, if the asker knows it; else empty.
    #[serde(default)]
    pub region: String,
}

impl Take {
    /// Asks of which nothing more is to be said.
    pub fn new(asks: Vec<NumberAsk>, steering: Overrides) -> Self {
        Self {
            v: VERSION,
            asks,
            loan: None,
            addresses: Vec::new(),
            steering,
            next_ms: Vec::new(),
            region: String::new(),
        }
    }
}

/// What a worker of 0.1.0 says of permits that it was lent. Nobody lends any more, and nobody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoanAsk {
    /// Who asks: drawn at random when the worker started.
    pub worker: u64,
    /// The loan that it had; 0: none.
    pub loan: u64,
    /// How many permits of that loan it has used.
    pub used: u32,
    /// How many it wants now.
    pub want: u32,
}

/// How full the room is, where Counters of 0.1.0 lent permits too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lent {
    /// The loan's number; 0: none.
    pub loan: u64,
    /// The size of the loan, in permits.
    pub permits: u32,
    /// For how many milliseconds they may be used.
    pub usable_ms: u32,
    /// How full the room is, as the pool has said.
    pub level: Level,
}

/// What came of each ask, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Format version.
    pub v: u8,
    /// One outcome per ask.
    pub outcomes: Vec<Outcome>,
    /// Under `leases`, of a Counter: how full the room is.
    pub lent: Option<Lent>,
    /// Per ask: the ticket id of somebody else who has the address's turn; 0: nobody has. Empty: addresses do not matter.
    #[serde(default)]
    pub holders: Vec<u64>,
    /// How far apart a worker's calls are to be from now on, in milliseconds; 0: as usual.
    #[serde(default)]
    pub pace_ms: u32,
    /// Up to which version operators had changed the room a moment ago, if the Counter has just heard so.
    #[serde(default)]
    pub latest: Option<LatestOrder>,
}

/// A Counter's call to the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Format version.
    pub v: u8,
    /// The Counter's colo.
    pub colo: String,
    /// What it says and wants.
    pub ask: LeaseAsk,
}

/// Sessions renewed so shortly before their end that the pool must know before the report comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveSessions {
    /// Format version.
    pub v: u8,
    /// How many.
    pub sessions: u32,
    /// Their tickets' ids: each has one slot reserved, however often it is named. An older worker does not say them.
    #[serde(default)]
    pub ids: Vec<u64>,
}

/// A visitor who waits wants to be told by a push message when the turn is near.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Subscribe {
    /// Format version.
    pub v: u8,
    /// The ticket's id: there is one subscription of a ticket, the last one.
    pub id: u64,
    /// The bucket in which the ticket stands in the queue.
    pub bucket: u32,
    /// See [`Subscription`](crate::push::Subscription), as the next two.
    pub endpoint: String,
    /// The browser's public key.
    pub p256dh: String,
    /// The browser's secret.
    pub auth: String,
    /// The tag of the language in which the visitor is told.
    pub language: String,
    /// The address of the waiting page.
    pub url: String,
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscribed {
    /// Format version.
    pub v: u8,
    /// False: there are too many.
    pub kept: bool,
}

/// Asks Global for the state key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateRequest {
    /// Format version.
    pub v: u8,
    /// For which minute the asker must know the shares.
    pub minute: u32,
    /// What Anywhere has given, when Anywhere asks.
    pub given: Option<Given>,
    /// The colo, when a data center asks; else empty.
    #[serde(default)]
    pub colo: String,
    /// How often Counters have called Anywhere since it asked last, when Anywhere asks.
    #[serde(default)]
    pub leases: u64,
}

/// The state key, if there is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateAnswer {
    /// Format version.
    pub v: u8,
    /// The state key.
    pub state: Option<StateKey>,
}
