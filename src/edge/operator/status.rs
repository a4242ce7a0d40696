//! What rooms do, from their Global objects: `GET /__anteroom/status`, and what else asks them for it.

use serde::Serialize;
use worker::{Env, Result};

use crate::edge::calls::{Local, all, ask, failure};
use crate::edge::clock::{now, within};
use crate::edge::settings::Settings;
use crate::operator::Operator;
use crate::protocol::messages::{OperatorAsk, VERSION};
use crate::protocol::{GlobalStatus, GlobalSteer};
use crate::room::Room;

/// An operator waits longer than a visitor, in milliseconds.
pub const DEADLINE_MS: u64 = 5_000;
/// The query of somebody who looks now: the data centers hear of it.
const WATCHED: &str = "";

/// What all rooms do, as JSON; or `only` one of them. `query`: as [`GlobalStatus`] says.
pub async fn status(
    only: Option<&Room>,
    query: &'static str,
    operator: Option<&Operator>,
    env: &Env,
    settings: &Settings,
) -> Result<String> {
    let wanted = settings.rooms.iter().filter(|room| only.is_none_or(|only| only.name == room.name));
    let rooms =
        all(wanted.map(|room| Box::pin(status_or_error(room, env, query)) as Local<_>).collect()).await;
    Ok(format!(
        "{{\"now\":{},\"operator\":{},\"problems\":{},\"rooms\":[{}]}}",
        now(),
        serde_json::to_string(&operator)?,
        serde_json::to_string(&settings.problems)?,
        rooms.join(",")
    ))
}

/// A room that does not answer.
#[derive(Serialize)]
struct Silent<'a> {
    name: &'a str,
    label: &'a str,
    path: &'a str,
    host: Option<&'a str>,
    error: String,
}

/// One room's status, as JSON; what fails is its `error`.
async fn status_or_error(room: &Room, env: &Env, query: &str) -> String {
    match room_status(room, env, query).await {
        Ok(status) => status,
        Err(error) => {
            let (name, label, path, host) = (&room.name, room.label(), &room.path, room.host.as_deref());
            serde_json::to_string(&Silent { name, label, path, host, error: error.to_string() })
                .unwrap_or_default()
        }
    }
}

/// A room's status, as JSON. `query`: as [`GlobalStatus`] says.
pub async fn room_status(room: &Room, env: &Env, query: &str) -> Result<String> {
    status_of(&room.name, env, query).await
}

/// Has a room's object do what an operator orders, `body` as [`Order`](crate::steering::Order) reads it. Returns `status` and `body` of
/// its answer, as JSON.
///
/// # Errors
/// When the object does not answer in time.
pub async fn order(room: &str, by: String, body: String, env: &Env) -> Result<String> {
    let sent = OperatorAsk { v: VERSION, by, query: String::new(), body };
    let answer = ask::<GlobalSteer>(env, room, &sent, DEADLINE_MS).await?;
    Ok(format!("{{\"status\":{},\"body\":{}}}", answer.status, answer.body))
}

/// Looks at every deployed room, so that its objects, and by them its data centers, hear of what this isolate knows.
pub async fn announce(env: &Env) {
    let settings = Settings::of(env);
    let deployed = settings.rooms.iter().filter(|room| room.called.is_empty());
    let looks = deployed.map(|room| Box::pin(room_status(room, env, WATCHED)) as Local<_>).collect();
    // Whoever does not answer hears of it later.
    let _ = within(settings.object_deadline_ms, all::<Result<String>>(looks)).await;
}

/// The same by the name of the room's objects.
pub async fn status_of(room: &str, env: &Env, query: &str) -> Result<String> {
    let sent = OperatorAsk { v: VERSION, query: query.to_owned(), ..OperatorAsk::default() };
    let answer = ask::<GlobalStatus>(env, room, &sent, DEADLINE_MS).await?;
    if answer.status == 200 && answer.body.starts_with('{') {
        Ok(answer.body)
    } else {
        Err(failure(format!("the room cannot be looked at: status {}", answer.status)))
    }
}
