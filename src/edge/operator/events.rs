//! All events and what they make of their rooms, for operators: `GET /__anteroom/events`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use worker::Env;

use super::status::room_status;
use crate::edge::calls::{Local, all};
use crate::edge::clock::now;
use crate::edge::settings::Settings;
use crate::protocol::messages::UNWATCHED;
use crate::room::{Event, Room};
use crate::time::rfc3339;

#[derive(Serialize)]
struct EventStatus<'a> {
    name: &'a str,
    room: &'a str,
    /// `upcoming`, `prequeueing`, `active`, `over` or `suspended`.
    phase: &'a str,
    event_start_time: String,
    event_end_time: String,
    prequeue_start_time: Option<String>,
    /// Whether an operator has started or ended it.
    steered: bool,
    deployed_event_start_time: String,
    deployed_event_end_time: String,
    shuffle_at_event_start: bool,
    suspended: bool,
    description: &'a str,
    /// What is not as in the room.
    overrides: &'a Map<String, Value>,
    /// The room's fields as they are while the event is active.
    effective: Map<String, Value>,
}

/// What a room's status says of its events.
#[derive(Deserialize)]
struct RoomStatus {
    events: Vec<InForce>,
}

/// An event as it is in force.
#[derive(Deserialize)]
struct InForce {
    name: String,
    phase: String,
    start: Option<u64>,
    end: Option<u64>,
    prequeue: Option<u64>,
    steered: bool,
}

/// The events of all rooms, as JSON. Those of a room that does not answer are told as they are deployed.
pub async fn list(env: &Env, settings: &Settings) -> String {
    let time = now();
    let rooms: Vec<&Room> = settings.rooms.iter().filter(|room| !room.events.is_empty()).collect();
    let asked = rooms.iter().map(|room| Box::pin(in_force(room, env)) as Local<worker::Result<_>>);
    let answers = all(asked.collect()).await;
    let (mut events, mut problems) = (Vec::new(), Vec::new());
    for (room, answer) in rooms.into_iter().zip(&answers) {
        let known = answer.as_ref().map_or(&[][..], Vec::as_slice);
        events.extend(room.events.iter().map(|event| status(room, event, known, time)));
        if let Err(error) = answer {
            problems.push(format!("room {}: its events are told as deployed: {error}", room.name));
        }
    }
    json!({ "now": rfc3339(time), "problems": problems, "events": events }).to_string()
}

async fn in_force(room: &Room, env: &Env) -> worker::Result<Vec<InForce>> {
    let status: RoomStatus = serde_json::from_str(&room_status(room, env, UNWATCHED).await?)?;
    Ok(status.events)
}

fn status<'a>(room: &'a Room, event: &'a Event, known: &'a [InForce], time: u64) -> EventStatus<'a> {
    let known = known.iter().find(|known| known.name == event.name);
    let start = known.and_then(|known| known.start).unwrap_or(event.start);
    let end = known.and_then(|known| known.end).unwrap_or(event.end);
    EventStatus {
        name: &event.name,
        room: &room.name,
        phase: known.map_or_else(|| event.phase_name(room, time), |known| &known.phase),
        event_start_time: rfc3339(start),
        event_end_time: rfc3339(end),
        prequeue_start_time: known.map_or(event.prequeue, |known| known.prequeue).map(rfc3339),
        steered: known.is_some_and(|known| known.steered),
        deployed_event_start_time: rfc3339(event.start),
        deployed_event_end_time: rfc3339(event.end),
        shuffle_at_event_start: event.shuffle,
        suspended: event.suspended,
        description: &event.description,
        overrides: &event.overrides,
        effective: event.effective(),
    }
}
