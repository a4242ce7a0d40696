//! A room's history: `GET /__anteroom/history?room=shop&from=…&to=…&resolution=…&fields=…&colo=…&format=…`.

use wasm_bindgen::JsValue;
use worker::{Env, Result};

use super::reply;
use super::status::DEADLINE_MS;
use super::steering::room;
use crate::edge::calls::ask;
use crate::edge::clock::now;
use crate::edge::request;
use crate::edge::settings::Settings;
use crate::history::{BadQuery, Format, Query};
use crate::operator::Refusal;
use crate::protocol::GlobalHistory;

/// Answers a question for a part of a room's history. `head`: for its headers alone.
pub async fn history(
    request: &web_sys::Request,
    head: bool,
    env: &Env,
    settings: &Settings,
) -> Result<JsValue> {
    let room = match room(request, settings) {
        Ok(room) => room,
        Err(refusal) => return reply::refuse(&refusal),
    };
    let query = match Query::read(|name| request::query(request, name), now()) {
        Ok(query) => query,
        Err(BadQuery(message)) => return reply::refuse(&Refusal::new(400, message)),
    };
    let content_type = match query.format {
        Format::Json => "application/json",
        Format::Csv => "text/csv; charset=utf-8",
    };
    let told = ask::<GlobalHistory>(env, &room.name, &query.ask(), DEADLINE_MS).await;
    match told {
        Ok(told) => reply::answer(told.status, content_type, (!head).then_some(told.body.as_str())),
        Err(error) => reply::refuse(&Refusal::new(503, format!("The room does not answer: {error}"))),
    }
}
