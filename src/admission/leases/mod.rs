//! `leases`: no number belongs to a colo beforehand. One pool (the Anywhere object) knows every permit that is out,
//! and colos lease small stocks from it, ahead of need.
//!
//! Three rules carry it:
//! - A permit is *held* by a colo until it is used, then *used* in a minute until Global counts its visitor, and each
//!   stands for one slot in both states. So what is free is the room less its active users less those permits, however
//!   old the reports are: staleness costs idle slots, never overshoot.
//! - What a colo holds and has used it tells in absolute counts with every call, and each call says which answer came
//!   last. So lost, late and doubled messages change nothing: an answer that did not arrive gave nothing.
//! - A lease ends by itself. A colo that falls silent keeps nothing, a stock that nobody uses comes back. Before anybody is
//!   refused for what lies in stocks, it is called back.

mod counter;
mod holders;
mod pool;
mod rate;
mod round_trip;
mod window;

pub use counter::{DueRecord, LeaseCounter, PASSED_ON_MS, SavedPermits, Serves};
use pool::FEW;
pub use pool::{Pool, RECALL_WAITS_MS, SavedPool};
pub use round_trip::RoundTrip;

use serde::{Deserialize, Serialize};

use super::minute_of;
use crate::room::{Limits, OnUnhealthy, Room};

/// Time from giving a permit until it has reached its visitor, in milliseconds. It counts for the minute of that moment:
/// at the edge of a minute its visitor could else enter in one whose permits are all given.
pub const REACHES_MS: u64 = 600;
/// The same for a permit of a Counter's stock.
const REACHES_WORKER_MS: u64 = 100;

/// A Counter tells what it has used in this minute, and in those before it: so many in all.
const TOLD_MINUTES: u32 = 3;

/// In rooms of up to this size a restart forgets nothing and assumes nothing: answers wait for the record.
const EXACT_UP_TO: u32 = 100;

/// Whether little lies in a room's stocks, and nothing in regions. Where each slot counts (up to 100 users), a permit in one more
/// place is one more that must be found, and a crowd that fills the room at once is over before what lies there can be called
/// back twice. Where an unhealthy origin holds the room, visitors are not to come to it in bunches.
pub fn has_small_stocks(room: &Room) -> bool {
    room.total_active_users <= EXACT_UP_TO || room.on_unhealthy == OnUnhealthy::Hold
}

/// The time that rates are told for, in milliseconds: ten minutes, for colos with few visitors.
const RATE_MS: u64 = 600_000;

/// The minute that a permit counts for which the pool gives to a visitor at a time by its clock.
fn minute_of_entry(given_at: u64) -> u32 {
    minute_of(given_at + REACHES_MS)
}

/// Visitors of one bucket who ask for permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Their bucket.
    pub bucket: u32,
    /// Whether they wait already.
    pub waits: bool,
    /// How many they are.
    pub visitors: u32,
}

/// A Counter's call to the pool: who asks, and where its permits are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeaseAsk {
    /// Drawn at random when the Counter started. Another one: the stock of the earlier start is lost.
    pub epoch: u64,
    /// Grows with every call of this start.
    pub sequence: u64,
    /// The last call whose answer came. What later ones gave is void.
    pub last_answered: u64,
    /// Who asks, oldest bucket first.
    pub groups: Vec<Group>,
    /// Permits held in stock.
    pub permits: u32,
    /// Counters of 0.1.0 lent to workers: for how many milliseconds yet. Nothing is lent now: 0.
    pub lent_ms: u32,
    /// Permits used so far of this start, by minute (of the pool's clock), the last minutes only.
    pub used: Vec<(u32, u64)>,
    /// Permits wanted for the stock.
    pub want: u32,
    /// Permits used per ten minutes, at the current rate.
    pub rate: u32,
    /// Where the window slides, permits of the stock that were used since the call that was answered last, the last ones at the
    /// end: how many, and how many milliseconds ago.
    pub recent: Vec<(u32, u64)>,
}

/// The pool's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseAnswer {
    /// Format version.
    pub v: u8,
    /// The call that this answers.
    pub sequence: u64,
    /// The pool's clock, in milliseconds since the epoch.
    pub now: u64,
    /// Per group: permits given, and what a visitor of it must leave untouched for those ahead.
    pub given: Vec<(u32, u32)>,
    /// Permits for the stock.
    pub extra: u32,
    /// The most that the colo may hold from now on: what is beyond goes back.
    pub most: u32,
    /// How long the stock (all of it) may be used from now on, in milliseconds.
    pub usable_ms: u32,
    /// How long to wait before the next call, in milliseconds: the pool serves many colos.
    pub pace_ms: u32,
    /// How full the room is.
    pub level: Level,
    /// How long it takes until those who were refused may be given something, in milliseconds.
    pub wait_ms: u32,
    /// Permits that the colo may use besides if the pool does not answer its next calls.
    pub spare: u32,
    /// The version of what operators had changed when this was judged.
    pub steering: u32,
    /// That version was the latest one a moment ago: the pool has just heard of the room.
    #[serde(default)]
    pub is_latest: bool,
    /// A crowd has just come, and there is room for many more: the next visitor of each colo will probably come soon.
    #[serde(default)]
    pub in_rush: bool,
}

/// Up to which version operators had changed a room a moment ago, and what time it is by the pool's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestOrder {
    /// The version.
    pub version: u32,
    /// The time, in milliseconds since the epoch.
    pub time: u64,
}

/// A Counter's answer when its permits are called back: it holds none now, and takes none from answers on their way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// Format version.
    pub v: u8,
    /// As in [`LeaseAsk`].
    pub epoch: u64,
    /// The last call that it has sent.
    pub sequence: u64,
    /// As in [`LeaseAsk`].
    pub last_answered: u64,
    /// As in [`LeaseAsk`].
    pub used: Vec<(u32, u64)>,
    /// As in [`LeaseAsk`].
    pub recent: Vec<(u32, u64)>,
}

/// How near the room is to its limits. It decides how much may be given ahead of need, and how soon things are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Level {
    /// Below half of both limits, and there are visitors enough for it to matter.
    Calm,
    /// Otherwise.
    #[default]
    Busy,
    /// People wait. The pool says so only while there is no slot beside those that are kept for them.
    Queueing,
}

/// In a room with fewer new visitors per ten minutes there is nothing to save by being slow.
const CALM_FROM: u64 = 200;

impl Level {
    /// The level of a room of `leases` by the limits in force, its active users, and `entering` per ten minutes. A room
    /// that follows its origin, or that ends at once with all who count its users, is never calm: reports cannot wait for
    /// half a minute there.
    pub fn of(room: &Room, limits: Limits, active: i64, entering: u64, nobody_waits: bool) -> Self {
        let half_full = active * 2 > i64::from(limits.total_active_users)
            || entering * 2 > u64::from(limits.new_users_per_minute) * 10;
        if !nobody_waits {
            Self::Queueing
        } else if half_full || entering < CALM_FROM || room.follows_origin() || room.ends_at_once {
            Self::Busy
        } else {
            Self::Calm
        }
    }
}
