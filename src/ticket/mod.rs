//! The visitor's ticket: an encrypted cookie that says since when somebody waits, or since when somebody is in.
//!
//! It is the 2021 article's cookie (`bucketId`, `acceptedAt`, `lastCheckInTime`) plus an id against counting one
//! visitor twice. A request's cookie takes this way:
//!
//! 1. [`find_cookie`] picks what the `Cookie` header holds under the room's cookie name.
//! 2. [`KeyRing::open`] decrypts it: authentic and of this room, or nothing.
//! 3. [`standing`] judges it by the clock: new, waiting or active.
//! 4. [`KeyRing::seal`] and [`set_cookie`] write the answer's cookie when the ticket has changed.
//!
//! A cookie that fails anywhere on this way is no cookie: the visitor is new. It is never an error, because there is
//! nothing a visitor could do about it. Opening is done on every request of every active user, so it allocates
//! nothing, and its work has a bound.
//!
//! [`AdmissionKey`] signs the word to the origin that a request was admitted.
//!
//! [`same_secret`] compares the operator's token; it stands here because this is where secrets are.

mod admission;
mod binding;
mod contents;
mod cookie;
mod id;
mod keys;
mod link;
mod seal;
mod secret;

pub use admission::{AdmissionKey, MIN_ADMISSION_KEY};
pub use binding::{address_key, binding};
pub use contents::{CLOCK_SKEW_MS, Human, MAX_WAIT_MINUTES, Standing, Terms, Ticket, draw_id, standing};
pub use cookie::{find_cookie, set_cookie};
pub use id::{is_made_in, ticket_id};
pub use keys::{KeyError, KeyRing, MAX_KEYS};
pub use link::{LINK_MS, Link};
pub use seal::{MAX_VALUE_LENGTH, Scope};
pub use secret::same_secret;
