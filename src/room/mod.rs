//! One waiting room, validated and ready to use: the types that everything else reads. [`config`](crate::config) builds
//! them from what owners write.

mod choices;
mod cookie;
mod event;
mod guard;
mod page;
mod share;
mod webhook;

pub use choices::{
    AdaptiveRange, BindTicket, Count, Location, Mode, OnError, OnUnhealthy, QueueingMethod, RateWindow,
    SlotStrategy, Turnstile, TurnstileAction, TurnstileMode, WhenDeleted,
};
pub use cookie::{CookieAttributes, SameSite, Secure};
pub use event::{Event, Phase};
pub use guard::{GuardSettings, GuardStrategy, OriginGuard, WhenFull};
pub use page::{LANGUAGES, PageSettings};
pub use share::Share;
pub use webhook::{NewsKind, Webhook, WebhookFormat};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bypass::BypassRule;

/// Slots of the last-request histogram per session. A user counts until the end of the slot, so half a slot's departures
/// stand idle: with 240 slots that alone is 0.05 to 0.1 % of a room, with one a minute a seventh.
pub const SLOTS_PER_SESSION: u64 = 720;

/// A host and a path that a room covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The host, in lower case; `None` covers every host.
    pub host: Option<String>,
    /// The path, normalised: it is covered with everything below it.
    pub path: String,
}

/// One waiting room. Built only by the parser, so every value is within its range. The default is no room yet: the parser
/// begins with it and writes every field.
#[allow(clippy::struct_excessive_bools, reason = "owners write each of them as true or false")]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Room {
    /// What follows `ROOM_` in the var's name, in lower case: `shop` for `ROOM_SHOP`. Of a room that was made at run time: its
    /// id, which stays when people call it otherwise.
    pub name: String,
    /// What people call a room that was made at run time; empty: its name.
    pub called: String,
    /// The host it covers, in lower case; `None` covers every host.
    pub host: Option<String>,
    /// The path it covers with everything below it, normalised: starts with `/`, ends without one (but `/` itself).
    pub path: String,
    /// What else it covers, in one queue.
    pub additional_routes: Arc<[Route]>,
    /// Whether its paths are the same in capitals and small letters.
    pub path_case_insensitive: bool,
    /// How many users may be active at once, at least 1; where the limits adapt, the most.
    pub total_active_users: u32,
    /// How many new users may enter in a minute, at least 1; where the limits adapt, the most.
    pub new_users_per_minute: u32,
    /// How far the limits follow the origin's health; `None`: they are fixed.
    pub adaptive: Option<AdaptiveRange>,
    /// Which minutes that holds for.
    pub rate_window: RateWindow,
    /// Minutes that a user stays active after the last request, 1 to 30.
    pub session_duration: u32,
    /// Everything that counts its users ends in one moment, with the process that runs it (`ONE_PROCESS`): nothing may wait long
    /// to be reported and stored.
    pub ends_at_once: bool,
    /// A user stays active for the session duration after the admission, whatever requests come.
    pub disable_session_renewal: bool,
    /// Minutes after which a user who has been in all the time is new again, 1 to 1,440; 0: never.
    pub max_session_duration: u32,
    /// The order in which waiting users are let in.
    pub queueing_method: QueueingMethod,
    /// Nobody new enters; active users go on.
    pub queue_all: bool,
    /// The room is switched off: every request goes to the origin and no cookie is set.
    pub suspended: bool,
    /// Whether anybody has to wait.
    pub mode: Mode,
    /// While the room observes: the part of the visitors who have to wait all the same.
    pub enforce_share: Share,
    /// How slots are handed out.
    pub slot_strategy: SlotStrategy,
    /// The exponent of `adapted_worker_slots`, 0.1 to 10.
    pub curve_factor: f64,
    /// Where its Anywhere and Global are made.
    pub location: Location,
    /// What happens to new users when neither the objects nor a cached state answer.
    pub on_error: OnError,
    /// Where admitted visitors go, `https://host:port`; empty: where the deployment says, or `origin_service`.
    pub origin: String,
    /// The service binding that they go to; empty: none.
    pub origin_service: String,
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
    /// Minutes in which a visitor who has waited has to go in, at most a session; else the turn is the next one's. 0: whoever
    /// is let in is in.
    pub confirm_within_minutes: u32,
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
    /// Whether a visitor who waits may go on with the place on another device, by a link.
    pub continue_on_another_device: bool,
    /// What those who wait see once it is deleted.
    pub when_deleted: WhenDeleted,
    /// What a waiting visitor is shown.
    pub page: PageSettings,
    /// An event is about to start, and nobody new enters before. See [`Room::at`].
    pub prequeue: bool,
    /// The room's events, by their beginnings. What [`Room::at`] gives has none.
    pub events: Arc<[Event]>,
    /// Something that operators have changed ends by itself at this time, in milliseconds since the epoch; from then on it
    /// is this room. See [`Room::at`].
    pub later: Option<Arc<(u64, Room)>>,
}

impl Room {
    /// The limits as they are configured: the most there can be, where they adapt.
    pub fn limits(&self) -> Limits {
        Limits {
            total_active_users: self.total_active_users,
            new_users_per_minute: self.new_users_per_minute,
        }
    }

    /// What people call it.
    pub fn label(&self) -> &str {
        if self.called.is_empty() { &self.name } else { &self.called }
    }

    /// Nobody new enters, whatever else is set; whoever comes waits.
    pub fn is_closed(&self) -> bool {
        self.queue_all || self.prequeue
    }

    /// Whoever is not in is turned away: nobody new enters, and nobody waits.
    pub fn turns_away(&self) -> bool {
        self.queueing_method == QueueingMethod::Reject && !self.is_closed()
    }

    /// Whether sessions may end before their time, so that their tickets are refused.
    pub fn ends_sessions(&self) -> bool {
        self.revoke || self.confirm_within_minutes > 0
    }

    /// Where its admitted visitors go, if not where the deployment says: a URL, or the name of a service binding.
    pub fn own_origin(&self) -> Option<&str> {
        [&self.origin, &self.origin_service].into_iter().find(|goal| !goal.is_empty()).map(String::as_str)
    }

    /// Whether a visitor passes whom the room would have wait or turn away: it only observes. `id`: the ticket's. As the
    /// share that is enforced grows, those who are in it stay in it.
    pub fn observes(&self, id: u64) -> bool {
        self.mode == Mode::Observe && !self.enforce_share.has(id)
    }

    /// Whether a check of this name, in any case, speaks for the room's origin.
    pub fn listens_to(&self, check: &str) -> bool {
        self.health_checks.iter().any(|name| name.eq_ignore_ascii_case(check))
    }

    /// Whether the limits or the entrance depend on the origin's health.
    pub fn follows_origin(&self) -> bool {
        self.adaptive.is_some() || self.on_unhealthy == OnUnhealthy::Hold
    }

    /// The longest session duration that a room may have, in minutes.
    pub const LONGEST_SESSION_MINUTES: u32 = 30;

    /// The session duration in milliseconds.
    pub fn session_ms(&self) -> u64 {
        u64::from(self.session_duration) * 60_000
    }

    /// Width of a slot of the last-request histogram, in milliseconds.
    pub fn slot_ms(&self) -> u64 {
        self.session_ms() / SLOTS_PER_SESSION
    }

    /// Milliseconds between two check-ins of a waiting user.
    pub fn refresh_ms(&self) -> u64 {
        u64::from(self.refresh_interval_seconds) * 1_000
    }

    /// The time within which whoever waits checks in again, in milliseconds, unless the browser has put the page to sleep: a
    /// refresh, a tenth more, and the way of the report.
    pub fn present_ms(&self) -> u64 {
        self.refresh_ms() * 5 / 4
    }

    /// How long a waiting user is counted after the last check-in, in milliseconds: two and a half refreshes.
    pub fn waiting_ms(&self) -> u64 {
        self.refresh_ms() * 5 / 2
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
            cookie::cookie_path(&self.path, self.path_case_insensitive)
        } else {
            "/".to_owned()
        }
    }

    /// [`Room::cookie_path`] for a ticket that is given in answer to a request for this path.
    pub fn cookie_path_at(&self, asked: &str) -> String {
        let path = self.cookie_path();
        cookie::spelled(&path, asked).map(str::to_owned).unwrap_or(path)
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
