//! The origin, as the room sees it by passing requests on.
//!
//! - [`Guard`]: the window of requests that one worker has at the origin or in line for it. It learns from how they
//!   end: a timeout or an overload answer shrinks it, answers in good time let it grow.
//! - [`OriginMonitor`]: what one worker does with a request to the origin, and what it counts.
//! - [`OriginCounts`]: what a worker, a colo, the room has seen. They travel with the reports.
//! - [`Evidence`], [`Adaptive`]: what Global makes of them: limits that follow the origin.
//! - [`Hold`]: whether new users wait because the origin is unhealthy, and how slowly they enter when it is back.
//!
//! Nothing here reads a clock, draws random numbers or does I/O.

mod adaptive;
mod counts;
mod evidence;
mod guard;
mod hold;
mod monitor;
mod status;

pub use crate::room::{GuardSettings, GuardStrategy};
pub use adaptive::{Adaptive, Use};
pub use counts::{OriginCounts, OriginReport, Reply};
pub use evidence::Evidence;
pub use guard::{ASK_EVERY_MS, Arrival, Ending, Guard, Passage, Turn};
pub use hold::Hold;
pub use monitor::OriginMonitor;
pub use status::{OriginHealth, OriginStatus};
