//! What a room remembers: a record of every minute, and of every hour.
//!
//! - Each data center counts what happens in its colo, minute by minute: [`Tallies`]. They are absolute and travel with
//!   each of its reports, for the last minutes: a lost or repeated report changes nothing.
//! - When all reports of a minute are in, Global makes a [`Record`] of it, with a [`Part`] for each colo. Hours are
//!   summed up from minutes.
//! - Operators ask for a [`Series`](Query).
//!
//! Nothing here reads a clock or does I/O.

mod classes;
mod query;
mod record;
mod recorder;
mod tallies;

pub use classes::{CLASSES, bound_ms, class_of, quantile_ms};
pub use query::{BadQuery, Cells, Format, HistoryAsk, Query, Resolution, hours};
pub use record::{ENDED, Minute, Part, Record, Totals, WAITS};
pub use recorder::{Ending, KEPT_MINUTES, Recorder, Sample};
pub use tallies::{Change, Count, Tallies};

/// How long records of minutes are kept, in minutes: 30 days.
pub const MINUTES_KEPT: u32 = 30 * 24 * 60;
/// What is kept by colo, in minutes: a day.
pub const PARTS_KEPT: u32 = 24 * 60;
/// How long records of hours are kept, in hours: a year.
pub const HOURS_KEPT: u32 = 366 * 24;
