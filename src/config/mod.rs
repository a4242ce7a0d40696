//! Rooms as their owner writes them: parse, validate, ready to use; and which room covers a URL.
//!
//! 1. [`parse_room`] turns one var (`ROOM_SHOP`, a table) into a [`Room`], or into every [`ConfigError`] it has.
//! 2. [`Rooms::from_vars`] does so for all vars. A broken room is left out and remembered; the others work.
//! 3. [`Rooms::find`] says which room covers a request, by host and by [`path`], whatever way the path is spelled.

mod event;
mod page;
mod parse;
pub mod path;
mod room;
mod rooms;
mod routes;
mod rules;
mod visit;
mod webhook;

pub use event::{Event, Phase, rfc3339};
pub use page::{LANGUAGES, PageSettings};
pub use parse::{ConfigError, Part, ROOM_FIELDS, check_steered, parse_room};
pub(crate) use parse::{Table, nearest, shown_text};
pub use room::{
    AdaptiveRange, BindTicket, CookieAttributes, Count, Limits, OnError, OnUnhealthy, OriginGuard,
    QueueingMethod, RateWindow, Room, SameSite, Secure, SlotStrategy, Turnstile, TurnstileAction,
    TurnstileMode, WhenFull,
};
pub(crate) use rooms::bare_host;
pub use rooms::{BrokenRoom, Coverage, MAX_ROOMS, Rooms};
pub use routes::Route;
pub use webhook::{MAX_WEBHOOKS, WEBHOOK_FIELDS, Webhook, WebhookFormat, Webhooks};
pub use webhook::{is_address as is_webhook_address, is_secret as is_webhook_secret};
