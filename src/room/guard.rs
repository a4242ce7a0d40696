//! `origin_guard`: what its owner sets of how many requests a worker has at the origin.

use super::choices::choices;

choices! {
    /// How the window follows the origin.
    GuardStrategy {
        /// A failure at position p shrinks the window to just below p.
        Position = "position",
        /// No window but a stack of `max`: who came last goes first.
        NewestFirst = "newest_first",
        /// Each failure takes 10 off the window, ten successes add one.
        Basic = "basic",
        /// The window is `max`, always.
        Static = "static",
    }
}

/// What an owner sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardSettings {
    /// How the window follows the origin.
    pub strategy: GuardStrategy,
    /// The window never gets smaller, in requests of one worker; at least 1. Adaptive windows start with it.
    pub min: u32,
    /// The window never gets larger; at least `min`. Of `newest_first` it is the size of the stack.
    pub max: u32,
    /// How many requests one worker has at the origin at once; the others in the window stand in line. `None`: as many
    /// as the window lets, and nobody stands in line; `newest_first`, which has no window, then takes `min`.
    pub at_once: Option<u32>,
    /// An answer whose first byte comes later is a timeout, in milliseconds from when the request was sent.
    pub timeout_ms: u64,
    /// How long a request may stand in line, in milliseconds.
    pub hold_ms: u64,
}

/// How a worker keeps the origin from having more to do than it can (`origin_guard`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginGuard {
    /// The window, and how it follows the origin.
    pub settings: GuardSettings,
    /// What happens to users who are in when the window is full.
    pub admitted: WhenFull,
}

choices! {
    /// What happens to a request of a user who is in when the guard's window is full.
    WhenFull {
        /// It is answered at once: try again in a moment.
        Retry = "retry",
        /// It goes to the origin all the same.
        Pass = "pass",
    }
}
