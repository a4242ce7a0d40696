//! What operators change of a room at run time: closed, suspended, limits, session, refresh, message, events.
//!
//! 1. An operator's [`Order`] is read and checked as a deploy would be: [`Steering::obey`]. The room's Global object
//!    stores what is in force, with who said it and what was deployed then, and an entry for the audit log per change.
//! 2. [`Overrides`], the same without the who and when, travel with the state key to every data center and worker.
//! 3. [`Room::steered`](crate::room::Room::steered) is the room with them, there and in every object.
//!
//! A deploy changes what is underneath, and never an override: what is deployed now, and what was when the override was
//! made, are shown side by side, and an operator keeps or clears it.

mod in_force;
mod order;
mod overrides;
mod stored;
mod view;

pub use in_force::{AuditEntry, Change, EventChange, Steering};
pub use order::{FieldError, Order, Refusal};
pub use overrides::{EventTimes, Overrides, travelling};
pub use stored::{Migration, UnreadEffect, UnreadView, migrate};
pub use view::{EventView, FieldView, OverrideView, SteeringView};
