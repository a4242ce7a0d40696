//! Marks of rehearsals, as requests bring them: `GET /__anteroom/rehearsal` says whether a mark is good here.

use serde::Serialize;
use wasm_bindgen::JsValue;
use worker::Result;

use super::clock::now;
use super::response;
use super::settings::Settings;
use crate::rehearsal::{HEADER, Mark, Mistake};

/// Times are in milliseconds since the epoch.
#[derive(Serialize)]
struct Good<'a> {
    rehearsal: &'a str,
    until: u64,
    now: u64,
}

#[derive(Serialize)]
struct Bad {
    error: String,
    now: u64,
}

/// Says whether a mark is good, to whoever sends one: it tells nothing that its sender does not know.
pub fn handle(request: &web_sys::Request, settings: &Settings) -> Result<JsValue> {
    let value = value(request).unwrap_or_default();
    let time = now();
    let (status, body) = match read(&value, settings) {
        Ok(mark) => {
            let good = Good { rehearsal: mark.name, until: mark.until, now: time };
            (200, serde_json::to_string(&good)?)
        }
        Err(mistake) => {
            (403, serde_json::to_string(&Bad { error: format!("{HEADER}: {mistake}"), now: time })?)
        }
    };
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("cache-control", "private, no-store".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
    ];
    response::response(status, &headers, Some(&body))
}

/// Whether a request's visitor is one of a rehearsal.
pub fn is_marked(request: &web_sys::Request, settings: &Settings) -> bool {
    value(request).is_some_and(|value| read(&value, settings).is_ok())
}

fn value(request: &web_sys::Request) -> Option<String> {
    request.headers().get(HEADER).ok().flatten()
}

fn read<'a>(value: &'a str, settings: &Settings) -> std::result::Result<Mark<'a>, Mistake> {
    Mark::read(value, settings.operators.signers(now()), now())
}
