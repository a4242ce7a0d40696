//! What a waiting visitor may know of the room's order and of its event.

use serde::Serialize;

use crate::config::QueueingMethod;

/// Facts for the waiting page and its status. Whatever is not known or not so is left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventFacts {
    /// The order in which people enter.
    pub queueing_method: QueueingMethod,
    /// The room turns everybody away: there is nothing to wait for.
    pub turned_away: bool,
    /// Where the order is random: seconds within which a quarter, half and three quarters of those who wait will be in.
    pub percentiles: Option<[u64; 3]>,
    /// The visitor's lot.
    pub draw: Option<DrawFacts>,
}

/// A visitor's lot, as it can be checked when the seed of its round is published.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawFacts {
    /// The ticket's id.
    pub id: String,
    /// Which round.
    pub round: u64,
    /// The number drawn; `null`: whoever is new draws from the next round on.
    pub number: Option<f64>,
    /// A smaller number may enter.
    pub threshold: f64,
}
