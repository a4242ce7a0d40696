//! Anteroom: a waiting room for websites, as a Worker with six Durable Objects.
//!
//! From the ground up; what stands lower knows nothing of what stands above it (`tests/rust/layers.rs` sees to it):
//!
//! 1. [`time`], `text`, [`url`], [`wire`], [`slots`]: times, words for owners, addresses, bytes, counts by slot.
//! 2. [`bypass`]: the rules by which a request goes past a room.
//! 3. [`room`]: what an owner has set, and its events; types only. [`config`] reads them, and says which room covers a
//!    URL. [`concern`] says whom a request concerns, the room or the origin alone.
//! 4. [`ticket`]: the visitor's encrypted cookie, opened.
//! 5. [`steering`]: what operators change of a room at run time.
//! 6. [`admission`]: the decision: let in, ask for a number, or wait.
//! 7. [`answer`]: what a visitor who waits gets to see.
//! 8. [`turnstile`]: whether a waiting visitor is a person, where the owner asks. [`rehearsal`]: whether a visitor was
//!    sent by the owner, to try the room.
//! 9. [`origin`]: what is learned of the origin by passing requests on, and what follows from it. [`health`]: beside all
//!    this, what is known of the origin's health.
//! 10. [`history`]: what is remembered of every minute, for operators. [`notifications`]: what happens in a room, for
//!     whoever runs it. [`operator`]: who may see and steer the rooms. [`push`]: when somebody is told whose
//!     page is closed.
//! 11. [`counts`]: what was counted travels in [`check_in`]s, worker → data center → global, and comes back as the state
//!     key. [`protocol`]: what the Worker and the objects say to each other.
//! 12. [`machines`]: each actor as a state machine without I/O.
//! 13. `edge`: the only code that knows Workers. It gathers what the others need, and does what they decide.
//!
//! Everything but `edge` is pure: time and random values come in as arguments, nothing in it reads a clock,
//! draws random numbers or does I/O. So the Worker, the objects and the tests all run the same code.

pub mod admission;
pub mod answer;
pub mod bypass;
pub mod check_in;
pub mod concern;
pub mod config;
pub mod counts;
#[cfg(worker)]
mod edge;
mod hash;
pub mod health;
pub mod history;
pub mod machines;
pub mod notifications;
pub mod operator;
pub mod origin;
pub mod protocol;
pub mod push;
pub mod rehearsal;
pub mod room;
pub mod slots;
pub mod steering;
mod text;
pub mod ticket;
pub mod time;
pub mod turnstile;
pub mod url;
pub mod wire;
