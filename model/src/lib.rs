//! Small rooms, checked in every state that they can come to.
//!
//! A world has a few data centers and visitors, and a few moments at which something may happen. The actors are the machines
//! that run in production: workers with their visits and tasks, Counters, the pool, data centers and Global. What the world
//! decides is what the platform and people decide: when visitors come, where, and again; which message arrives when, late,
//! twice, or never; which object loses its memory, and whether that was before or after its write was confirmed; when an
//! operator gives an order. The checker ([`stateright`]) takes every decision in every state.

mod actors;
mod world;
pub mod worlds;

pub use actors::Actor;
pub use world::{Action, Broken, State, World};
