//! What a waiting visitor may know of the room's order and of its event.

use serde::Serialize;

use crate::config::{Phase, QueueingMethod, Room};

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
    /// The event, from its prequeue until its end.
    pub event: Option<String>,
    /// Nobody new enters until the event starts.
    pub is_event_prequeueing: bool,
    /// While it is in its prequeue.
    pub seconds_until_event_start: Option<u64>,
    /// Once it has started.
    pub seconds_until_event_end: Option<u64>,
    /// Who came in the prequeue is put in an order by lot.
    pub shuffle_at_event_start: bool,
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

impl EventFacts {
    /// Of a room as it is, and where it is in its events.
    pub fn of(room: &Room, phase: Phase) -> Self {
        // Whole seconds, and never too few: who comes back then is not too early.
        let seconds = |ms: u64| Some(ms.div_ceil(1_000));
        let facts = Self {
            queueing_method: room.queueing_method,
            event: phase.event().map(|event| event.name.clone()),
            shuffle_at_event_start: phase.event().is_some_and(|event| event.shuffle),
            ..Self::default()
        };
        match phase {
            Phase::None => facts,
            Phase::Prequeue { starts_in_ms, .. } => {
                Self { is_event_prequeueing: true, seconds_until_event_start: seconds(starts_in_ms), ..facts }
            }
            Phase::Active { ends_in_ms, .. } => {
                Self { seconds_until_event_end: seconds(ends_in_ms), ..facts }
            }
        }
    }

    /// Whole minutes until the event starts; 0 when it is not in its prequeue.
    pub fn minutes_until_event_start(&self) -> u64 {
        self.seconds_until_event_start.map_or(0, |seconds| seconds.div_ceil(60))
    }

    /// Whole minutes until the event is over; 0 when it has not started.
    pub fn minutes_until_event_end(&self) -> u64 {
        self.seconds_until_event_end.map_or(0, |seconds| seconds.div_ceil(60))
    }

    /// Whether there is an event, from its prequeue until its end.
    pub fn is_event_active(&self) -> bool {
        self.event.is_some()
    }
}
