//! What all rooms do: `GET /__anteroom/status`.

use serde::Serialize;
use worker::{Env, Result};

use crate::config::{Limits, Room};
use crate::edge::calls::{GLOBAL, Local, all, call};
use crate::edge::clock::now;
use crate::edge::settings::Settings;
use crate::edge::{asked, events};
use crate::operator::Operator;
use crate::pipeline::messages::{ORIGIN, OriginStatus, STATE, StateAnswer, StateRequest, VERSION};
use crate::queue::{StateKey, minute_of};

/// An operator waits longer than a visitor, in milliseconds.
pub const DEADLINE_MS: u64 = 5_000;

#[derive(Serialize)]
struct Status<'a> {
    now: u64,
    operator: Option<&'a Operator>,
    problems: &'a [String],
    rooms: Vec<RoomStatus>,
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

/// What all rooms do, or the one that is asked for, as JSON. All are asked at the same time.
pub async fn status(
    request: &web_sys::Request,
    operator: Option<&Operator>,
    env: &Env,
    settings: &Settings,
) -> Result<String> {
    let only = asked::query(request, "room").map(|name| name.to_ascii_lowercase());
    let wanted = settings.rooms.iter().filter(|room| only.as_ref().is_none_or(|only| *only == room.name));
    let rooms = all(wanted.map(|room| Box::pin(of_room(room, env)) as Local<_>).collect()).await;
    Ok(serde_json::to_string(&Status { now: now(), operator, problems: &settings.problems, rooms })?)
}

/// One room's status; what fails is its `error`.
async fn of_room(room: &Room, env: &Env) -> RoomStatus {
    let request = StateRequest { v: VERSION, minute: minute_of(now()), given: None, colo: String::new() };
    let answer: Result<StateAnswer> = call(env, GLOBAL, &room.name, STATE, &request, DEADLINE_MS).await;
    let (state, error) = match answer {
        Ok(answer) => (answer.state, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let origin: Result<OriginStatus> = call(env, GLOBAL, &room.name, ORIGIN, &(), DEADLINE_MS).await;
    RoomStatus {
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
    }
}
