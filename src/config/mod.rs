//! Rooms as their owner writes them: parse, validate, ready to use; and which room covers a URL.
//!
//! What all rooms share is `[vars.DEFAULTS]`: each room is read as if it were written there.
//!
//! 1. [`parse_room`] turns one var (`ROOM_SHOP`, a table) into a [`Room`], or into every [`ConfigError`] it has.
//! 2. [`Rooms::from_vars`] does so for all vars. A broken room is left out and remembered; the others work.
//! 3. [`Rooms::find`] says which room covers a request, by host and by path ([`crate::url::path`]), whatever way the path is
//!    spelled.

mod address;
mod cookie;
mod covering;
mod defaults;
mod error;
mod event;
mod fields;
mod guard;
mod health;
mod limits;
mod made;
mod origin;
mod page;
mod parse;
mod rooms;
mod routes;
mod rules;
mod table;
mod turnstile;
mod visit;
mod webhook;

pub use defaults::DEFAULTS;
pub use error::{ConfigError, Part};
#[cfg(not(worker))]
pub use fields::Words;
pub use fields::{FIELDS, Field, InEvents, Kind, Place, steered_fields};
pub use made::{Made, MadeToken};
#[cfg(not(worker))]
pub use origin::is_origin;
pub use parse::{check_steered, parse_room};
pub use rooms::{
    BrokenRoom, Coverage, FRONT_CONTROLLERS, FRONT_CONTROLLERS_FIX, MAX_ROOMS, MAX_ROOMS_MADE, Rooms,
};
pub(crate) use table::Table;
pub use webhook::{WEBHOOK_FIELDS, Webhooks};
pub use webhook::{is_address as is_webhook_address, is_secret as is_webhook_secret};

pub use crate::room::Room;
#[cfg(not(worker))]
pub use crate::text::nearest;
