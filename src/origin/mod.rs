//! The origin as one worker sees it: how many requests it may have there at once.
//!
//! - [`Guard`]: the window of requests that one worker has at the origin or in line for it. It learns from how they
//!   end: a time-out or an overload answer shrinks it, answers in good time let it grow.
//!
//! Nothing here reads a clock, draws random numbers or does I/O.

mod guard;

pub use guard::{ASK_EVERY_MS, Arrival, Ending, Guard, GuardSettings, GuardStrategy, Passage, Turn};
