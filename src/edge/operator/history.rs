//! A room's history: `GET /__anteroom/history?room=shop&from=…&to=…&resolution=…&fields=…&colo=…&format=…`.

use wasm_bindgen::JsValue;
use worker::{Env, Result};

use super::reply;
use crate::edge::asked;
use crate::edge::calls::{GLOBAL, call};
use crate::edge::clock::now;
use crate::edge::settings::Settings;
use crate::history::{BadQuery, Format, HISTORY, Query};
use crate::operator::Refusal;
use crate::pipeline::messages::OperatorAnswer;

/// An operator waits longer than a visitor, in milliseconds.
const DEADLINE_MS: u64 = 5_000;

/// Answers a question for a part of a room's history. `head`: for its headers alone.
pub async fn history(
    request: &web_sys::Request,
    head: bool,
    env: &Env,
    settings: &Settings,
) -> Result<JsValue> {
    let asked = |name: &str| asked::query(request, name);
    let wanted = asked("room").unwrap_or_default().to_ascii_lowercase();
    let mut rooms = settings.rooms.iter();
    let only = rooms.next().filter(|_| rooms.next().is_none() && wanted.is_empty());
    let Some(room) = only.or_else(|| settings.rooms.get(&wanted)) else {
        let names: Vec<&str> = settings.rooms.iter().map(|room| room.name.as_str()).collect();
        let message = format!("`room` must name a room. Fix: use one of {}", names.join(", "));
        return reply::refuse(&Refusal::new(if wanted.is_empty() { 400 } else { 404 }, message));
    };
    let query = match Query::read(asked, now()) {
        Ok(query) => query,
        Err(BadQuery(message)) => return reply::refuse(&Refusal::new(400, message)),
    };
    let content_type = match query.format {
        Format::Json => "application/json",
        Format::Csv => "text/csv; charset=utf-8",
    };
    let told: Result<OperatorAnswer> =
        call(env, GLOBAL, &room.name, HISTORY, &query.ask(), DEADLINE_MS).await;
    match told {
        Ok(told) => reply::answer(told.status, content_type, (!head).then_some(told.body.as_str())),
        Err(error) => reply::refuse(&Refusal::new(503, format!("The room does not answer: {error}"))),
    }
}
