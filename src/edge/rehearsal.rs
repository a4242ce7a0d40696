//! Marks of rehearsals, as requests bring them.

use serde::Serialize;
use worker::Result;

use super::clock::now;
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

/// Says whether a mark is good here: a status and JSON. It tells nothing that whoever sends the mark does not know.
pub fn check(request: &web_sys::Request, settings: &Settings) -> Result<(u16, String)> {
    let value = value(request).unwrap_or_default();
    let now = now();
    Ok(match read(&value, settings) {
        Ok(mark) => (200, serde_json::to_string(&Good { rehearsal: mark.name, until: mark.until, now })?),
        Err(mistake) => (403, serde_json::to_string(&Bad { error: format!("{HEADER}: {mistake}"), now })?),
    })
}

fn value(request: &web_sys::Request) -> Option<String> {
    request.headers().get(HEADER).ok().flatten()
}

fn read<'a>(value: &'a str, settings: &Settings) -> std::result::Result<Mark<'a>, Mistake> {
    Mark::read(value, settings.operators.marking_keys(), now())
}
