//! `GET /__anteroom/news?room=shop&from=..&to=..`: what was new in a room, and how it stands with the webhooks.

use wasm_bindgen::JsValue;
use web_sys::UrlSearchParams;
use worker::{Env, Result};

use super::calls::{GLOBAL, call};
use super::own;
use super::settings::Settings;
use crate::health::webhook::milliseconds;
use crate::pipeline::messages::NEWS;

/// See above.
pub const PATH: &str = "/__anteroom/news";
/// An operator waits longer than a visitor, in milliseconds.
const DEADLINE_MS: u64 = 5_000;

/// Answers an operator who may see it.
///
/// # Errors
/// When the platform refuses the answer.
pub async fn handle(request: &web_sys::Request, env: &Env, settings: &Settings) -> Result<JsValue> {
    if !["GET", "HEAD"].contains(&request.method().as_str()) {
        return json(405, &refusal("Ask with GET"));
    }
    let query = web_sys::Url::new(&request.url())?.search_params();
    let wanted = match wanted(&query) {
        Ok(wanted) => wanted,
        Err(parameter) => {
            return json(
                400,
                &refusal(&format!(
                    "{parameter} must be milliseconds since the epoch, or a time such as 2026-11-27T09:00:00Z"
                )),
            );
        }
    };
    let mut rooms = settings.rooms.iter();
    let room = match query.get("room") {
        Some(name) => settings.rooms.get(&name.to_ascii_lowercase()),
        // Where there is one room, everybody knows which.
        None => rooms.next().filter(|_| rooms.next().is_none()),
    };
    let Some(room) = room else { return json(404, &refusal("Name a room that works: ?room=shop")) };
    match call::<_, String>(env, GLOBAL, &room.name, NEWS, &wanted, DEADLINE_MS).await {
        Ok(shown) => json(200, &shown),
        Err(error) => json(503, &refusal(&error.to_string())),
    }
}

/// From when to when, for Global; the name of the parameter that is no time otherwise.
fn wanted(query: &UrlSearchParams) -> std::result::Result<String, &'static str> {
    let mut wanted = serde_json::Map::new();
    for name in ["from", "to"] {
        if let Some(text) = query.get(name) {
            let time = text.parse().ok().or_else(|| milliseconds(&text)).ok_or(name)?;
            wanted.insert(name.to_owned(), u64::into(time));
        }
    }
    Ok(serde_json::Value::Object(wanted).to_string())
}

fn refusal(sentence: &str) -> String {
    serde_json::json!({ "error": sentence }).to_string()
}

fn json(status: u16, body: &str) -> Result<JsValue> {
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("cache-control", "private, no-store".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
    ];
    own::response(status, &headers, Some(body))
}
