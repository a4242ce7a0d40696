//! What operators ask of one room: its Global object knows, and answers.

use wasm_bindgen::JsValue;
use web_sys::{Headers, RequestInit};
use worker::{Env, Result};

use super::access::Caller;
use super::reply::{self, LONGEST_BODY, refuse};
use super::status::DEADLINE_MS;
use crate::edge::calls::{GLOBAL, call, stub};
use crate::edge::platform::log_error;
use crate::edge::request::{body, header, query};
use crate::edge::settings::Settings;
use crate::operator::{Operator, Refusal};
use crate::protocol::messages::{LISTENER, LIVE, OperatorAnswer, OperatorAsk, SESSION_ENDS, VERSION};
use crate::room::Room;

/// Which room a request is about: the address says so, where there are several.
pub fn room<'a>(
    request: &web_sys::Request,
    settings: &'a Settings,
) -> std::result::Result<&'a Room, Refusal> {
    let Some(name) = query(request, "room") else {
        let mut rooms = settings.rooms.iter();
        let only = rooms.next().filter(|_| rooms.next().is_none());
        return only.ok_or_else(|| Refusal::new(400, "Say which room. Fix: add ?room=NAME to the address"));
    };
    let room = settings.rooms.by_label(&name);
    room.ok_or_else(|| {
        let names: Vec<&str> = settings.rooms.iter().map(Room::label).collect();
        Refusal::new(404, format!("There is no room of this name. Fix: use one of {}", names.join(", ")))
    })
}

/// Asks a room's Global, and hands on its answer.
pub async fn ask(
    request: &web_sys::Request,
    caller: &Caller,
    operator: Option<&Operator>,
    route: &'static str,
    env: &Env,
    room: &Room,
) -> Result<JsValue> {
    let url = request.url();
    let sent = if request.method() == "POST" { body(request, LONGEST_BODY).await } else { Some(Vec::new()) };
    let Some(sent) = sent else { return refuse(&reply::too_long()) };
    let Ok(body) = String::from_utf8(sent) else {
        return refuse(&Refusal::new(400, "The body must be JSON"));
    };
    if request.method() == "POST" && body.is_empty() {
        return refuse(&Refusal::new(400, "Say what to change. Fix: send {\"set\":{\"queue_all\":true}}"));
    }
    let ask = OperatorAsk {
        v: VERSION,
        by: operator.map(|operator| operator.name.clone()).unwrap_or_default(),
        query: url
            .split('#')
            .next()
            .and_then(|url| url.split_once('?'))
            .map_or("", |(_, query)| query)
            .to_owned(),
        body,
    };
    let answer: Result<OperatorAnswer> = call(env, GLOBAL, &room.name, route, &ask, DEADLINE_MS).await;
    match answer {
        Ok(OperatorAnswer { status, body, .. }) => reply::json(status, (!caller.is_head()).then_some(&body)),
        Err(error) => unreachable(&error),
    }
}

/// Opens a WebSocket to a room's Global. `ends`: when it is closed at the latest, in milliseconds since the epoch.
pub async fn live(
    request: &web_sys::Request,
    operator: Option<&Operator>,
    ends: Option<u64>,
    env: &Env,
    room: &Room,
) -> Result<JsValue> {
    if !header(request, "upgrade").eq_ignore_ascii_case("websocket") {
        return refuse(&Refusal::new(426, "This is for WebSockets"));
    }
    let headers = Headers::new()?;
    headers.set("upgrade", "websocket")?;
    if let Some(end) = ends {
        headers.set(SESSION_ENDS, &end.to_string())?;
    }
    if let Some(listener) = operator.and_then(Operator::listener) {
        headers.set(LISTENER, &listener)?;
    }
    let init = RequestInit::new();
    init.set_headers(&headers);
    let upgrade = web_sys::Request::new_with_str_and_init(&format!("https://object{LIVE}"), &init)?;
    match stub(env, GLOBAL, &room.name, "")?.fetch_with_request(upgrade.into()).await {
        Ok(mut answer) if answer.status_code() != 101 => {
            refuse(&Refusal::new(answer.status_code(), answer.text().await?))
        }
        Ok(answer) => Ok(web_sys::Response::from(answer).into()),
        Err(error) => unreachable(&error),
    }
}

pub fn unreachable(error: &worker::Error) -> Result<JsValue> {
    log_error(&error.to_string());
    refuse(&Refusal::new(
        503,
        "The room's object cannot be reached at the moment; whether it has heard is not known",
    ))
}
