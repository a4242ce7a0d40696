//! Small rooms, checked in every state that they can come to.
mod actors;
mod world;
pub use actors::Actor;
pub use world::{Action, Broken, State, World};
