//! The only code that knows Workers: the fetch handler, six thin objects, cache, origin and operator endpoints.
//!
//! Each handler gathers what the pure core needs, lets it decide, and acts.
//!
//! `entry.js` stands before it: it reads a request, calls [`decide`], and goes to the origin.

mod another_device;
mod bypass;
mod calls;
mod clock;
mod configuration;
mod dashboard;
mod draws;
mod forward;
mod gate;
mod health;
mod in_flight;
mod objects;
mod operator;
mod platform;
mod push;
mod rehearsal;
mod request;
mod response;
mod room_worker;
mod settings;
mod turnstile;

use crate::answer::Message;
use crate::config::{ConfigError, Coverage};
use crate::origin::Reply;
use crate::protocol::messages::UNWATCHED;
use js_sys::Promise;
use js_sys::futures::JsFuture;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use worker::Env;
use worker::worker_sys::Context;

/// The version of the rooms made at run time after the first change.
const FIRST_CHANGE: u64 = 1;

/// Decides a request. `url`, `cookies` and `status` are its URL and its headers `Cookie` and `Anteroom-Status`,
/// empty where there are none. In place of `status` stands the type of the body with which the waiting page says that it
/// is being closed, or brings a subscription to push messages.
///
/// Returns `undefined`: to the origin, and no room is concerned; a number: to the origin, and tell [`returned`] what came
/// of it; a text: the same, and after the number, which may be missing, lines of what else to do (`t`: a header to add to
/// the answer, `a`: the value of the request's header `anteroom-admitted`, `o`: where to go as [`origin`] says it, `r`: what to
/// hand to [`revoked`] when the answer's header commands it); a text that begins with `{`: the facts of a visitor who waits, or of
/// a message; a
/// `Response`: the answer; or a `Promise` of one of these, when others have to be asked. A number below zero: [`patience`] says
/// how long the origin has.
///
/// # Errors
/// When the platform breaks its word: the visitor then gets the platform's own error page.
#[wasm_bindgen]
pub fn decide(
    request: web_sys::Request,
    env: Env,
    context: Context,
    url: String,
    cookies: String,
    status: &str,
) -> Result<JsValue, JsValue> {
    let request = gate::Request {
        inner: request,
        url,
        cookies,
        asks_for_status: crate::answer::is_status_request(Some(status)),
        closed: crate::answer::closed_page(status),
        subscribes: crate::answer::is_subscription(status),
    };
    let context = worker::Context::new(context);
    if !settings::Settings::of(&env).one_process {
        return Ok(gate::decide(request, env, context)?);
    }
    // What a visitor is told must outlive the process, and all that counts its users ends with it.
    let before = room_worker::noted();
    let decided = gate::decide(request, env, context)?;
    if !decided.is_instance_of::<Promise>() && room_worker::noted() == before {
        return Ok(decided);
    }
    Ok(gate::later(async move {
        let decided = JsFuture::from(Promise::resolve(&decided)).await?;
        room_worker::stored(room_worker::noted()).await;
        Ok(decided)
    }))
}

/// What is wrong with rooms and events, as JSON: those of a document of rooms made at run time (`client/written.js` makes it),
/// and those of the vars. Each with `part`, `name`, `field`, `message`, `fix`, `excerpt`.
#[wasm_bindgen]
pub fn checked(env: &Env, document: &str) -> String {
    let made = crate::config::Made::read(document).unwrap_or_default();
    let (_, errors) = made.with(settings::vars(env).into_iter());
    let texts = errors.iter().map(|error| {
        let ConfigError { part, name, field, message, fix, excerpt, .. } = error;
        let parts = [part.word(), name, field, message, fix, excerpt];
        let names = ["part", "name", "field", "message", "fix", "excerpt"];
        let pairs = names.into_iter().zip(parts).map(|(name, part)| (name.to_owned(), part.into()));
        serde_json::Value::Object(pairs.collect())
    });
    serde_json::Value::Array(texts.collect()).to_string()
}

/// Learns what has been changed of the rooms made at run time. The first change of all is told to the deployed rooms, and by them
/// to every data center that has visitors in one: nobody looks often while nothing was ever made. Returns a `Promise`.
#[wasm_bindgen]
pub fn learned(env: Env, host: String) -> JsValue {
    gate::later(async move {
        configuration::learn(env.clone(), host, true).await;
        if configuration::version() == FIRST_CHANGE {
            operator::announce(&env).await;
        }
        Ok(JsValue::UNDEFINED)
    })
}

/// A room's status, as JSON, by the name of its objects. Returns a `Promise`.
#[wasm_bindgen]
pub fn looked(room: String, env: Env) -> JsValue {
    gate::later(async move { Ok(operator::status_of(&room, &env, UNWATCHED).await?.into()) })
}

/// Has a room's object do what an operator orders, by the name of the room's objects. Returns a `Promise` of its answer, as JSON:
/// `status` and `body`.
#[wasm_bindgen]
pub fn ordered(room: String, by: String, body: String, env: Env) -> JsValue {
    gate::later(async move { Ok(operator::order(&room, by, body, &env).await?.into()) })
}

/// Where admitted visitors go: a URL, the name of a service binding, or, empty, the zone's own origin.
#[wasm_bindgen]
pub fn origin(env: &Env) -> String {
    settings::Settings::of(env).origin.clone().unwrap_or_default()
}

/// How long the origin has for the first byte of a request's answer, in milliseconds.
#[wasm_bindgen]
pub fn patience(number: f64) -> f64 {
    in_flight::patience_ms(number.into())
}

/// What came of a request to the origin, and after how many milliseconds: a status code, 0: it could not be reached, 1: it
/// was given up, or 2: its visitor has gone.
#[wasm_bindgen]
pub fn returned(
    number: f64,
    came: u16,
    took_ms: f64,
    request: &web_sys::Request,
    env: &Env,
    context: &Context,
) {
    let reply = match came {
        0 => Reply::Unreachable,
        1 => Reply::TimedOut,
        2 => Reply::Left,
        status => Reply::Status(status),
    };
    if let Some(room) = in_flight::came_back(number.into(), reply, took_ms as u64) {
        gate::tell_of_trouble(
            &room,
            request,
            env,
            &worker::Context::new(AsRef::<JsValue>::as_ref(context).clone().unchecked_into()),
        );
    }
}

/// Asks the coordinator to see to the observers of all checks: for sites without visitors, at the platform's cron.
/// Returns a `Promise`.
#[wasm_bindgen]
pub fn tend(env: Env) -> JsValue {
    gate::later(async move { health::tend(&env).await.map(|()| JsValue::UNDEFINED) })
}

/// The origin ends the session of a user: `session` is what [`decide`] has said of it. Returns the header (`name: value`)
/// that takes the ticket away, to add to the answer.
#[wasm_bindgen]
pub fn revoked(session: &str, request: &web_sys::Request, env: &Env, context: &Context) -> String {
    let context = worker::Context::new(AsRef::<JsValue>::as_ref(context).clone().unchecked_into());
    gate::end_session(session, request, env, &context)
        .map_or_else(String::new, |(name, value)| format!("{name}: {value}"))
}

/// What a visitor gets when the origin cannot be reached, or takes too long, as JSON: the facts of a message. `ticket` is the
/// header (`name: value`) to add to the answer, and may be empty.
#[wasm_bindgen]
pub fn unreachable(error: &str, ticket: &str, late: bool, request: &web_sys::Request, env: &Env) -> String {
    let message = if late {
        Message::Late
    } else {
        platform::log_error(&format!("the origin cannot be reached: {error}"));
        Message::Unreachable
    };
    let names = ["set-cookie", forward::TICKET_HEADER];
    let line = ticket
        .split_once(": ")
        .and_then(|(name, value)| Some((*names.iter().find(|known| **known == name)?, value.to_owned())));
    let (settings, url) = (settings::Settings::of(env), request.url());
    let (_, host, path) = gate::parts(&url);
    let room = match settings.rooms.find(host, path) {
        Coverage::Covered(room) => Some(room),
        _ => None,
    };
    message.facts(room, &request.method(), line.as_slice())
}
