//! What the room learns of its origin, and what it knows.

use serde::{Deserialize, Serialize};

use super::OriginCounts;
use crate::room::Limits;

/// What a health check says of an origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginHealth {
    /// Format version.
    pub v: u8,
    /// The check's name, as the rooms' owners write it in `health_checks`.
    pub check: String,
    /// Whether it is healthy.
    pub healthy: bool,
    /// Since when, in milliseconds since the epoch. What arrives late does not undo what is newer.
    pub at: u64,
}

/// What the room knows of its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginStatus {
    /// Format version.
    pub v: u8,
    /// The limits in force.
    pub limits: Limits,
    /// Whether new users wait because it is unhealthy.
    pub held: bool,
    /// The check that says that it is unhealthy, and since when, in milliseconds since the epoch.
    pub unhealthy: Option<(String, u64)>,
    /// What passed through the room in the last 60 seconds.
    pub last_minute: OriginCounts,
}
