//! Anteroom: a waiting room for websites, as a Worker with five Durable Objects.
//!
//! A request's way through the rooms of this crate:
//!
//! 1. [`config`]: which room covers the URL, and what its owner set.
//! 2. [`bypass`]: whether the request goes past the room, by a rule of its owner.
//! 3. [`ticket`]: the visitor's encrypted cookie, opened.
//! 4. [`admission`]: the decision: let in, ask for a number, or wait.
//! 5. [`answer`]: what a visitor who waits gets to see.
//! 6. [`counts`]: what was counted travels worker → data center → global, and comes back as the state key.
//! 7. [`origin`]: what is learned of the origin by passing requests on, and what follows from it.
//! 8. [`health`]: beside all this, what is known of the origin's health.
//! 9. [`turnstile`]: whether a waiting visitor is a person, where the owner asks.
//! 10. [`rehearsal`]: whether a visitor was sent by the owner, to try the room.
//! 11. [`steering`]: what operators change of a room at run time.
//! 12. [`operator`]: who may see and steer the rooms.
//! 13. [`history`]: what is remembered of every minute, for operators.
//! 14. [`notifications`]: what is new in a room, for whoever runs it.
//! 15. `edge`: the only code that knows Workers. It gathers what the others need, and does what they decide.
//!
//! Everything but `edge` is pure: time and random values come in as arguments, nothing in it reads a clock,
//! draws random numbers or does I/O. So the Worker, the objects and the tests all run the same code.

pub mod admission;
pub mod answer;
pub mod bypass;
pub mod config;
pub mod counts;
#[cfg(target_arch = "wasm32")]
mod edge;
pub mod health;
pub mod history;
pub mod machines;
pub mod notifications;
pub mod operator;
pub mod origin;
pub mod protocol;
pub mod rehearsal;
pub mod steering;
pub mod ticket;
pub mod turnstile;
