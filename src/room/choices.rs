//! What an owner chooses by name or as a small group of fields.

use serde::Serialize;

/// Which requests of visitors who are not in take a slot or wait (`count`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// All.
    All,
    /// Those for pages; the others go to the origin uncounted.
    Navigations,
}

/// Which minutes `new_users_per_minute` holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateWindow {
    /// Each calendar minute.
    Minute,
    /// Any 60 seconds; of `leases` only.
    Sliding,
}

/// What a ticket is bound to: for somebody else it is no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindTicket {
    /// Nothing: whoever has it may use it.
    None,
    /// The network of the visitor's address.
    Address,
    /// The header `User-Agent`.
    UserAgent,
    /// Both.
    Both,
}

/// Who of those who are not active is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueingMethod {
    /// Oldest minute-bucket first.
    #[default]
    Fifo,
    /// Drawn among all who wait.
    Random,
    /// Everybody enters and is counted; the limits are not looked at.
    Passthrough,
    /// Nobody new enters, and nobody waits.
    Reject,
}

/// How slots are handed out (articles of 2021 and 2023).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotStrategy {
    /// 2021: the colo's slots divided by its workers, plus the Anywhere slots divided by all workers.
    WorkerSlots,
    /// 2023: `worker_slots` with the worker count multiplied by utilisation to the power of the curve factor.
    AdaptedWorkerSlots,
    /// 2023: numbers from the colo's Counter, then from Anywhere.
    Counters,
    /// Permits leased by the colo's Counter from one pool, Anywhere.
    Leases,
}

/// What happens to new users when neither the objects nor a cached state answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Let them in.
    Admit,
    /// Queue them.
    Queue,
}

/// What happens to new users while the origin is unhealthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnhealthy {
    /// They enter as ever.
    Ignore,
    /// They wait. When the origin is back they enter slowly at first.
    Hold,
}

/// How far the limits of a room follow its origin's health (`limits = "adaptive"`). The most is in
/// [`Room::total_active_users`](super::Room::total_active_users) and
/// [`Room::new_users_per_minute`](super::Room::new_users_per_minute).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptiveRange {
    /// The least that `total_active_users` shrinks to, at least 1.
    pub least_active_users: u32,
    /// The least that `new_users_per_minute` shrinks to, at least 1.
    pub least_new_users: u32,
    /// An origin that takes longer to its first byte than this is overloaded, in milliseconds; `None`: three times as
    /// long as when it has little to do.
    pub slow_ms: Option<u32>,
}

/// How Cloudflare's Turnstile tests waiting visitors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turnstile {
    /// Whether there is something to see.
    pub mode: TurnstileMode,
    /// What becomes of those who fail.
    pub action: TurnstileAction,
    /// The widget's site key: letters, digits, `_`, `-` and `.`.
    pub sitekey: String,
}

/// Whether there is something to see of Turnstile (`turnstile_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnstileMode {
    /// Nothing.
    Invisible,
    /// A widget that needs nothing done.
    VisibleNonInteractive,
    /// A widget that may ask for a click.
    VisibleManaged,
}

/// What becomes of visitors who fail Turnstile (`turnstile_action`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnstileAction {
    /// It is logged.
    Log,
    /// They wait for ever, and are not counted.
    InfiniteQueue,
}
