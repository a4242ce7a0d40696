//! What a waiting visitor may know of the room's event, and of a lot.

use serde::Serialize;

use crate::admission::{Draw, draw_id};
use crate::room::Phase;

/// An event of the room, from the beginning of its prequeue to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventView<'a> {
    /// Its name.
    pub name: &'a str,
    /// It has not begun: nobody enters yet.
    pub prequeueing: bool,
    /// Seconds until it begins; 0 when it has. Never too few: who comes back then is not too early.
    pub seconds_to_start: u64,
    /// Seconds until it ends.
    pub seconds_to_end: u64,
    /// The order of those who come in the prequeue is drawn by lot.
    pub shuffle: bool,
}

impl<'a> EventView<'a> {
    /// Where a room is in its events; `None`: in none.
    pub fn of(phase: Phase<'a>) -> Option<Self> {
        let event = phase.event()?;
        let starts_in_ms = if let Phase::Prequeue { starts_in_ms, .. } = phase { starts_in_ms } else { 0 };
        let ends_in_ms = match phase {
            Phase::Active { ends_in_ms, .. } => ends_in_ms,
            _ => starts_in_ms + event.end.saturating_sub(event.start),
        };
        Some(Self {
            name: &event.name,
            prequeueing: matches!(phase, Phase::Prequeue { .. }),
            seconds_to_start: starts_in_ms.div_ceil(1_000),
            seconds_to_end: ends_in_ms.div_ceil(1_000),
            shuffle: event.shuffle,
        })
    }
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

impl DrawFacts {
    /// Of the lot of a ticket.
    pub fn of(draw: &Draw, ticket: u64) -> Self {
        let Draw { round, number, threshold, .. } = *draw;
        Self { id: draw_id(ticket), round, number, threshold }
    }
}
