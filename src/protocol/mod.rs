//! What the Worker and the objects say to each other, and how it becomes bytes.

pub mod messages;
pub mod wire;
