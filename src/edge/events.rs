//! All events and what they make of their rooms, for operators: `GET /__anteroom/events`.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::clock::now;
use super::settings::Settings;
use crate::config::{Event, Room, rfc3339};
use crate::steering::phase_name;

#[derive(Serialize)]
struct EventStatus<'a> {
    name: &'a str,
    room: &'a str,
    /// `upcoming`, `prequeueing`, `active`, `over` or `suspended`.
    phase: &'static str,
    event_start_time: String,
    event_end_time: String,
    prequeue_start_time: Option<String>,
    shuffle_at_event_start: bool,
    suspended: bool,
    description: &'a str,
    /// What is not as in the room.
    overrides: &'a Map<String, Value>,
    /// The room's fields as they are while the event is active.
    effective: Map<String, Value>,
}

/// The events of all rooms, as JSON.
pub fn list(settings: &Settings) -> String {
    let time = now();
    let events: Vec<EventStatus> = settings
        .rooms
        .iter()
        .flat_map(|room| room.events.iter().map(move |event| status(room, event, time)))
        .collect();
    json!({ "now": rfc3339(time), "events": events }).to_string()
}

fn status<'a>(room: &'a Room, event: &'a Event, time: u64) -> EventStatus<'a> {
    EventStatus {
        name: &event.name,
        room: &room.name,
        phase: phase_name(room, event, time),
        event_start_time: rfc3339(event.start),
        event_end_time: rfc3339(event.end),
        prequeue_start_time: event.prequeue.map(rfc3339),
        shuffle_at_event_start: event.shuffle,
        suspended: event.suspended,
        description: &event.description,
        overrides: &event.overrides,
        effective: event.effective(),
    }
}
