//! Push messages: a visitor's subscription on its way to Global, and a message on its way to the browser's service.
//! Words and encryption are JavaScript's (`push.js`), with what the platform has for them.

use std::cell::Cell;

use js_sys::futures::JsFuture;
use js_sys::{Array, Function, JsString, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use worker::{Env, Error, Result};

use super::calls::ask;
use super::clock::now;
use super::operator::is_from_elsewhere;
use super::request::{body, header};
use super::response::response;
use super::settings::Settings;
use crate::machines::PushAttempt;
use crate::protocol::GlobalSubscribe;
use crate::protocol::messages::{Subscribe, VERSION};
use crate::push::{LONGEST_BODY, Subscription};
use crate::room::Room;

/// The longest address of a page that a message may open, in bytes.
const LONGEST_URL: usize = 1_024;
/// The shortest time between two calls of Global by an isolate, in milliseconds: whoever sends thousands of subscriptions
/// must not keep the room from working.
const CALL_MS: u64 = 50;
/// Timeout of that call, in milliseconds.
const DEADLINE_MS: u64 = 5_000;

thread_local! {
    static CALLED_AT: Cell<u64> = const { Cell::new(0) };
}

/// Hands the subscription in a request's body to the room's Global, for a ticket's id and the bucket in which it stands.
/// Returns the status: 204 when it is kept, 503 when it may be tried again.
///
/// # Errors
/// When the platform breaks its word.
pub async fn subscribe(
    request: &web_sys::Request,
    env: &Env,
    settings: &Settings,
    room: &Room,
    (id, bucket): (u64, u32),
) -> Result<u16> {
    let Some(push) = &settings.push else { return Ok(404) };
    if is_from_elsewhere(request) {
        return Ok(403);
    }
    let url = request.url();
    let read = body(request, LONGEST_BODY).await.filter(|_| url.len() <= LONGEST_URL);
    let Some(to) = read.and_then(|body| Subscription::parse(&body, &push.services)) else { return Ok(400) };
    let time = now();
    if time < CALLED_AT.get() + CALL_MS {
        return Ok(503);
    }
    CALLED_AT.set(time);
    let accepted =
        if room.page.visitor_languages { header(request, "accept-language") } else { String::new() };
    let language = call("language", &[accepted.into(), room.page.language.into()])?;
    let Subscription { endpoint, p256dh, auth } = to;
    let language = language.as_string().unwrap_or_default();
    let asked = Subscribe { v: VERSION, id, bucket, endpoint, p256dh, auth, language, url };
    let kept = ask::<GlobalSubscribe>(env, &room.name, &asked, DEADLINE_MS).await;
    Ok(if kept.is_ok_and(|answer| answer.kept) { 204 } else { 503 })
}

/// Sends a message. Returns the status of the answer, and for how many seconds the service wants to be left alone.
///
/// # Errors
/// When there is no answer.
pub async fn send(settings: &Settings, attempt: &PushAttempt) -> std::result::Result<String, JsValue> {
    let keys = settings.push.as_ref().map(|push| &push.keys).ok_or("there are no keys")?;
    let PushAttempt { id, to, language, url, ttl_seconds, deadline_ms, .. } = attempt;
    let message = serde_json::json!({
        "subscription": { "endpoint": to.endpoint, "keys": { "p256dh": to.p256dh, "auth": to.auth } },
        "vapid": { "publicKey": keys.public, "privateKey": keys.private, "subject": keys.subject },
        "topic": crate::ticket::draw_id(*id),
        "ttl": ttl_seconds,
        "language": language,
        "url": url,
        "milliseconds": deadline_ms,
    });
    let sent: Promise = call("send", &[message.to_string().into()])?.dyn_into()?;
    Ok(JsFuture::from(sent).await?.as_string().unwrap_or_default())
}

/// The service worker that shows messages.
///
/// # Errors
/// When the platform refuses to build the response.
pub fn worker() -> Result<JsValue> {
    let script = call("worker", &[])?.as_string().unwrap_or_default();
    let headers = [
        ("content-type", "text/javascript; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
    ];
    response(200, &headers.map(|(name, value)| (name, value.to_owned())), Some(&script))
}

fn call(name: &str, arguments: &[JsValue]) -> Result<JsValue> {
    let push = Reflect::get(&js_sys::global(), &JsString::from("anteroomPush"))?;
    let function: Function = Reflect::get(&push, &JsString::from(name))?
        .dyn_into()
        .map_err(|_| Error::from("push.js is not there"))?;
    let list: Array = arguments.iter().collect();
    Ok(function.apply(&push, &list)?)
}
