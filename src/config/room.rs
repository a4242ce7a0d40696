//! One waiting room, validated and ready to use.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::Event;
use super::page::PageSettings;
use super::path::push_encoded;
use super::routes::Route;
use crate::bypass::BypassRule;
use crate::origin::GuardSettings;

/// One waiting room. Built only by the parser, so every value is within its range.
#[allow(clippy::struct_excessive_bools, reason = "owners write each of them as true or false")]
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// What follows `ROOM_` in the var's name, in lower case: `shop` for `ROOM_SHOP`.
    pub name: String,
    /// The host it covers, in lower case; `None` covers every host.
    pub host: Option<String>,
    /// The path it covers with everything below it, normalised: starts with `/`, ends without one (but `/` itself).
    pub path: String,
    /// What else it covers, in one queue.
    pub additional_routes: Arc<[Route]>,
    /// Whether its paths are the same in capitals and small letters.
    pub path_case_insensitive: bool,
    /// How many users may be active at once, at least 1; at most so many where the limits adapt.
    pub total_active_users: u32,
    /// How many new users may enter in a minute, at least 1; at most so many where the limits adapt.
    pub new_users_per_minute: u32,
    /// How far the limits follow the origin's health; `None`: they are fixed.
    pub adaptive: Option<AdaptiveRange>,
    /// Which minutes that holds for.
    pub rate_window: RateWindow,
    /// Minutes that a user stays active after the last request, 1 to 30.
    pub session_duration: u32,
    /// A user stays active for the session duration after the admission, whatever requests come.
    pub disable_session_renewal: bool,
    /// The order in which waiting users are let in.
    pub queueing_method: QueueingMethod,
    /// Nobody new enters; active users go on.
    pub queue_all: bool,
    /// The room is switched off: every request goes to the origin and no cookie is set.
    pub suspended: bool,
    /// How slots are handed out.
    pub slot_strategy: SlotStrategy,
    /// The exponent of `adapted_worker_slots`, 0.1 to 10.
    pub curve_factor: f64,
    /// What happens to new users when neither the objects nor a cached state answer.
    pub on_error: OnError,
    /// How many requests a worker has at the origin at once; `None`: as many as come.
    pub origin_guard: Option<OriginGuard>,
    /// The health checks that speak for the room's origin; none: no check does.
    pub health_checks: Vec<String>,
    /// What happens to new users while the origin is unhealthy.
    pub on_unhealthy: OnUnhealthy,
    /// Requests that go past the room.
    pub bypass_rules: Arc<[BypassRule]>,
    /// Which requests start a visit.
    pub count: Count,
    /// Requests for paths with these extensions, in lower case and without dot, neither enter nor wait.
    pub exempt_extensions: Arc<[String]>,
    /// Appended to the cookie's name after an underscore; may be empty.
    pub cookie_suffix: String,
    /// Attributes of the ticket cookie.
    pub cookie_attributes: CookieAttributes,
    /// The domain whose hosts all get the ticket cookie; empty: the request's host alone does.
    pub cookie_domain: String,
    /// Status of the waiting page: 200, 202 or 429.
    pub queueing_status_code: u16,
    /// Whether waiting visitors have to show that they are people, and how; `None`: they need not.
    pub turnstile: Option<Turnstile>,
    /// Whether the origin may end a user's session (`enabled_origin_commands = ["revoke"]`).
    pub revoke: bool,
    /// Seconds between two check-ins of a waiting user, 5 to 60.
    pub refresh_interval_seconds: u32,
    /// Seconds between two check-ins of one who is far from the front, at least as many and at most 300.
    pub refresh_interval_max_seconds: u32,
    /// How long a waiting user's place is kept after the last check-in, in seconds, 10 to 3,600.
    pub place_kept_seconds: u32,
    /// Of those who come from one address without a ticket, only one may enter at once per minute and colo; the others
    /// wait for their first check-in.
    pub one_place_per_address: bool,
    /// What a ticket is bound to.
    pub bind_ticket: BindTicket,
    /// What a waiting visitor is shown.
    pub page: PageSettings,
    /// An event is about to start, and nobody new enters before. See [`Room::at`].
    pub prequeue: bool,
    /// The room's events, by their beginnings. What [`Room::at`] gives has none.
    pub events: Arc<[Event]>,
}

impl Room {
    /// The limits as they are configured: the most there can be, where they adapt.
    pub fn limits(&self) -> Limits {
        Limits {
            total_active_users: self.total_active_users,
            new_users_per_minute: self.new_users_per_minute,
        }
    }

    /// Nobody new enters, whatever else is set; whoever comes waits.
    pub fn is_closed(&self) -> bool {
        self.queue_all || self.prequeue
    }

    /// Whoever is not in is turned away: nobody new enters, and nobody waits.
    pub fn turns_away(&self) -> bool {
        self.queueing_method == QueueingMethod::Reject && !self.is_closed()
    }

    /// Whether a check of this name, in any case, speaks for the room's origin.
    pub fn listens_to(&self, check: &str) -> bool {
        self.health_checks.iter().any(|name| name.eq_ignore_ascii_case(check))
    }

    /// Whether the limits or the entrance depend on the origin's health.
    pub fn follows_origin(&self) -> bool {
        self.adaptive.is_some() || self.on_unhealthy == OnUnhealthy::Hold
    }

    /// The session duration in milliseconds.
    pub fn session_ms(&self) -> u64 {
        u64::from(self.session_duration) * 60_000
    }

    /// Milliseconds between two check-ins of a waiting user.
    pub fn refresh_ms(&self) -> u64 {
        u64::from(self.refresh_interval_seconds) * 1_000
    }

    /// The name of the ticket cookie.
    pub fn cookie_name(&self) -> String {
        if self.cookie_suffix.is_empty() {
            "__anteroom".to_owned()
        } else {
            format!("__anteroom_{}", self.cookie_suffix)
        }
    }

    /// All hosts and paths that it covers; no host: every host.
    pub fn routes(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let more = self.additional_routes.iter().map(|route| (route.host.as_deref(), route.path.as_str()));
        std::iter::once((self.host.as_deref(), self.path.as_str())).chain(more)
    }

    /// The room's path as browsers write it, for the `Path` attribute of the ticket cookie: `/caf%C3%A9`. Where it has
    /// several: what all of them are below.
    pub fn cookie_path(&self) -> String {
        if self.additional_routes.iter().all(|route| route.path == self.path) {
            cookie_path(&self.path, self.path_case_insensitive)
        } else {
            "/".to_owned()
        }
    }
}

/// The limits of a room that are in force at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How many users may be active at once.
    pub total_active_users: u32,
    /// How many new users may enter in a minute; 0: nobody.
    pub new_users_per_minute: u32,
}

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
    /// Tickets leased by the colo's Counter from one pool, Anywhere.
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

/// How a worker keeps the origin from having more to do than it can (`origin_guard`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginGuard {
    /// The window, and how it follows the origin.
    pub settings: GuardSettings,
    /// What happens to users who are in when the window is full.
    pub admitted: WhenFull,
}

/// What happens to a request of a user who is in when the guard's window is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// It is answered at once: try again in a moment.
    Retry,
    /// It goes to the origin all the same.
    Pass,
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
/// [`Room::total_active_users`] and [`Room::new_users_per_minute`].
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

/// Attributes of the ticket cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CookieAttributes {
    /// The `SameSite` attribute.
    pub samesite: SameSite,
    /// The `Secure` attribute.
    pub secure: Secure,
    /// The `Partitioned` attribute (CHIPS): inside pages of other sites each of them has a ticket of its own. With
    /// `SameSite=None` only, and then unless it is switched off.
    pub partitioned: bool,
}

/// `SameSite` of the ticket cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameSite {
    /// `Lax`.
    Auto,
    /// `Lax`.
    Lax,
    /// `None`; the cookie is then always `Secure`.
    None,
    /// `Strict`.
    Strict,
}

/// `Secure` of the ticket cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secure {
    /// On requests that came over HTTPS.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Browsers ignore a cookie's attribute that is longer (RFC 6265bis, section 5.6), in bytes.
const MAX_PATH_LENGTH: usize = 1024;
/// The cookie's `Path` for a room's path.
///
/// Browsers compare it byte for byte with the path of a request as they encode it, so it has to be spelled as
/// they spell it (URL standard, path percent-encode set). Where the spelling is not certain, or cannot stand in an
/// attribute (`;` is never encoded in a URL, but ends an attribute), the path ends above that segment: a cookie that
/// is sent too often does no harm, since it opens for its own room only; one that is not sent loses the place.
/// `any_case`: requests may spell it in capitals and small letters, so it ends above the first segment with letters.
fn cookie_path(path: &str, any_case: bool) -> String {
    let mut written = String::with_capacity(path.len());
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let whole_segments = written.len();
        written.push('/');
        let has_case = |byte: u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
        let is_certain = !(any_case && segment.bytes().any(has_case))
            && segment.bytes().all(|byte| push_as_browsers_do(&mut written, byte));
        if !is_certain || written.len() > MAX_PATH_LENGTH {
            written.truncate(whole_segments);
            break;
        }
    }
    if written.is_empty() {
        written.push('/');
    }
    written
}

/// Appends a byte of a decoded path as browsers write it into a URL; `false` when they do not agree on it.
fn push_as_browsers_do(written: &mut String, byte: u8) -> bool {
    match byte {
        // `^` is new in the encode set, the others are left alone by some and encoded by some; a `%` that encodes
        // nothing is sent as it is or as `%25`, depending on who wrote the link.
        b';' | b'%' | b'^' | b'|' | b'\'' | b'[' | b']' | b'\\' => return false,
        _ => push_encoded(written, byte),
    }
    true
}
