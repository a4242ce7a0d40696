//! What all rooms do, for Prometheus: `GET /__anteroom/metrics`.

use serde_json::Value;
use worker::{Env, Result};

use super::status::{DEADLINE_MS, room_status};
use crate::edge::calls::{Local, all, ask};
use crate::edge::platform::log_error;
use crate::edge::request::header;
use crate::edge::settings::Settings;
use crate::operator::metrics::{Format, Known, text};
use crate::protocol::GlobalTotals;
use crate::protocol::messages::UNWATCHED;
use crate::room::Room;

/// The text, and its type.
pub async fn metrics(request: &web_sys::Request, env: &Env, settings: &Settings) -> (&'static str, String) {
    let format = Format::accepted(&header(request, "accept"));
    let rooms =
        all(settings.rooms.iter().map(|room| Box::pin(of_room(room, env)) as Local<_>).collect()).await;
    let version = env!("CARGO_PKG_VERSION");
    (format.content_type(), text(&rooms, settings.problems.len(), version, format))
}

async fn of_room(room: &Room, env: &Env) -> Known {
    // Who scrapes all day is not looking: the room need not hurry.
    let status = json(room_status(room, env, UNWATCHED).await);
    let totals = ask::<GlobalTotals>(env, &room.name, &(), DEADLINE_MS).await;
    Known { room: room.name.clone(), status, totals: json(totals.map(|told| told.body)) }
}

fn json(told: Result<String>) -> Value {
    let value = told.map(|text| serde_json::from_str(&text).unwrap_or_default());
    value.unwrap_or_else(|error| {
        log_error(&error.to_string());
        Value::Null
    })
}
