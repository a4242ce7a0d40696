//! Our own paths: the operator's status, closed without a token, and what `health.rs` answers.

use serde::Serialize;
use wasm_bindgen::JsValue;
use worker::{Env, Result};

use super::calls::{GLOBAL, call};
use super::clock::now;
use super::settings::Settings;
use super::{draws, events, health, news, own};
use crate::answer;
use crate::config::Limits;
use crate::pipeline::messages::{ORIGIN, OriginStatus, STATE, StateAnswer, StateRequest, VERSION};
use crate::queue::{StateKey, minute_of};

/// An operator waits longer than a visitor, in milliseconds.
const DEADLINE_MS: u64 = 5_000;

#[derive(Serialize)]
struct Status {
    rooms: Vec<RoomStatus>,
    problems: Vec<String>,
}

#[derive(Serialize)]
struct RoomStatus {
    name: String,
    path: String,
    host: Option<String>,
    total_active_users: u32,
    new_users_per_minute: u32,
    suspended: bool,
    queue_all: bool,
    #[serde(flatten)]
    event: events::RoomPhase,
    state: Option<StateKey>,
    origin: Option<Origin>,
    error: Option<String>,
}

/// What passed through the room to its origin lately.
#[derive(Serialize)]
struct Origin {
    limits: Limits,
    held: bool,
    unhealthy_check: Option<String>,
    unhealthy_since: Option<u64>,
    /// Of the last 60 seconds.
    answered: u64,
    failed: u64,
    timed_out: u64,
    refused: u64,
    first_byte_p50_ms: Option<u64>,
    first_byte_p95_ms: Option<u64>,
    in_flight: u64,
}

impl From<OriginStatus> for Origin {
    fn from(status: OriginStatus) -> Self {
        let counts = &status.last_minute;
        let (unhealthy_check, unhealthy_since) = status.unhealthy.unzip();
        Self {
            limits: status.limits,
            held: status.held,
            unhealthy_check,
            unhealthy_since,
            answered: counts.answered(),
            failed: counts.failed,
            timed_out: counts.timed_out,
            refused: counts.refused,
            first_byte_p50_ms: counts.quantile_ms(0.5).map(|ms| ms as u64),
            first_byte_p95_ms: counts.quantile_ms(0.95).map(|ms| ms as u64),
            in_flight: counts.in_flight,
        }
    }
}

/// Answers a request below `/__anteroom/`.
pub async fn handle(
    request: &web_sys::Request,
    path: &str,
    env: &Env,
    settings: &Settings,
) -> Result<JsValue> {
    if let Some(answer) = health::handle(request, path, env, settings).await? {
        return Ok(answer);
    }
    if path == draws::PATH {
        return draws::handle(request, settings);
    }
    if !matches!(path, "/__anteroom/status" | events::PATH | news::PATH) {
        return own::page(&answer::not_found(), None);
    }
    if !health::has_token(request, settings) {
        let headers = [
            ("www-authenticate", "Bearer realm=\"anteroom\"".to_owned()),
            ("cache-control", "private, no-store".to_owned()),
        ];
        return own::response(
            401,
            &headers,
            Some("Send the ADMIN_TOKEN of this deployment as a bearer token.\n"),
        );
    }
    if path == news::PATH {
        return news::handle(request, env, settings).await;
    }
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("cache-control", "private, no-store".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
    ];
    if path == events::PATH {
        return own::response(200, &headers, Some(&events::list(settings)));
    }
    let mut rooms = Vec::new();
    for room in settings.rooms.iter() {
        let request = StateRequest { v: VERSION, minute: minute_of(now()), given: None };
        let answer: Result<StateAnswer> = call(env, GLOBAL, &room.name, STATE, &request, DEADLINE_MS).await;
        let (state, error) = match answer {
            Ok(answer) => (answer.state, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let origin: Result<OriginStatus> = call(env, GLOBAL, &room.name, ORIGIN, &(), DEADLINE_MS).await;
        rooms.push(RoomStatus {
            name: room.name.clone(),
            path: room.path.clone(),
            host: room.host.clone(),
            total_active_users: room.total_active_users,
            new_users_per_minute: room.new_users_per_minute,
            suspended: room.suspended,
            queue_all: room.queue_all,
            event: events::of_room(room),
            state,
            origin: origin.ok().map(Origin::from),
            error,
        });
    }
    let status = Status { rooms, problems: settings.problems.clone() };
    own::response(200, &headers, Some(&serde_json::to_string(&status)?))
}
