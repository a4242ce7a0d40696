//! What lots were drawn by, for everybody: `GET /__anteroom/draws?room=shop&round=89131234` for a round of a random
//! order, `GET /__anteroom/draws?event=sale` for an event's lottery.

use serde::Serialize;
use wasm_bindgen::JsValue;
use worker::Result;

use super::clock::now;
use super::settings::Settings;
use super::{request, response};
use crate::admission::round_end;
use crate::answer::Message;

/// Time from its last use until a seed is published, in milliseconds: clocks differ by seconds.
const PUBLISHED_AFTER_MS: u64 = 15_000;

/// Times are in milliseconds since the epoch.
#[derive(Serialize)]
struct Drawn<'a> {
    room: &'a str,
    round: u64,
    start: u64,
    end: u64,
    /// `null` until the round is over.
    seed: Option<String>,
}

/// Times are in milliseconds since the epoch.
#[derive(Serialize)]
struct Lottery<'a> {
    room: &'a str,
    event: &'a str,
    start: u64,
    prequeue: Option<u64>,
    /// SHA-256 of the seed.
    commitment: String,
    /// `null` until the event has started.
    seed: Option<String>,
}

/// Answers a question for seeds.
pub fn handle(request: &web_sys::Request, settings: &Settings) -> Result<JsValue> {
    let asked = |name: &str| request::query(request, name);
    if let Some(name) = asked("event") {
        return of_event(&name.to_ascii_lowercase(), settings);
    }
    let room = asked("room").and_then(|name| settings.rooms.get(&name.to_ascii_lowercase()));
    let round = asked("round").and_then(|round| round.parse::<u64>().ok());
    let (Some(room), Some(round)) = (room, round) else {
        return Ok(Message::NotFound.facts(None, "", &[]).into());
    };
    let end = round_end(room, round);
    let start = end.saturating_sub(2 * room.refresh_ms());
    let is_over = now().saturating_sub(PUBLISHED_AFTER_MS) >= end;
    let seed = is_over.then(|| settings.draw_key.of_round(&room.name, round).to_string());
    json(&Drawn { room: &room.name, round, start, end, seed })
}

fn of_event(name: &str, settings: &Settings) -> Result<JsValue> {
    let mut events =
        settings.rooms.iter().flat_map(|room| room.events.iter().map(move |event| (room, event)));
    let Some((room, event)) = events.find(|(_, event)| event.name == name && event.shuffle) else {
        return Ok(Message::NotFound.facts(None, "", &[]).into());
    };
    let seed = settings.draw_key.of_event(&room.name, &event.name, event.start);
    let has_started = now() >= event.start;
    json(&Lottery {
        room: &room.name,
        event: &event.name,
        start: event.start,
        prequeue: event.prequeue,
        commitment: seed.commitment(),
        seed: has_started.then(|| seed.to_string()),
    })
}

/// What may be looked at from any page, and is not kept.
fn json(content: &impl Serialize) -> Result<JsValue> {
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("cache-control", "no-store".to_owned()),
        ("access-control-allow-origin", "*".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
    ];
    response::response(200, &headers, Some(&serde_json::to_string(content)?))
}
