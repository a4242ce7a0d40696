//! The only code that knows Workers: the fetch handler, five thin objects, cache, origin and operator endpoints.
//!
//! Each handler gathers what the pure core needs, lets it decide, and acts.
//!
//! `entry.js` stands before it: it reads a request, calls [`decide`], and goes to the origin.

mod calls;
mod clock;
mod gate;
mod health;
mod objects;
mod operator;
mod own;
mod platform;
mod room_worker;
mod settings;

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Env;
use worker::worker_sys::Context;

/// Decides a request. `url`, `cookies` and `status` are its URL and its headers `Cookie` and `Anteroom-Status`,
/// empty where there are none.
///
/// Returns `undefined`: to the origin; a text: to the origin, and add this `Set-Cookie` to its answer; a `Response`: the
/// answer; or a `Promise` of one of these, when others have to be asked.
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
    };
    Ok(gate::decide(request, env, worker::Context::new(context))?)
}

/// Where admitted visitors go; empty: the zone's own origin.
#[wasm_bindgen]
pub fn origin(env: &Env) -> String {
    settings::Settings::of(env).origin.clone().unwrap_or_default()
}

/// Asks the keeper to see to the observers of all checks: for sites without visitors, at the platform's cron.
/// Returns a `Promise`.
#[wasm_bindgen]
pub fn tend(env: Env) -> JsValue {
    gate::later(async move { health::tend(&env).await.map(|()| JsValue::UNDEFINED) })
}

/// What a visitor gets when the origin cannot be reached; `cookie` may be empty.
///
/// # Errors
/// When the platform refuses to build the response.
#[wasm_bindgen]
pub fn unreachable(error: &str, cookie: &str) -> Result<JsValue, JsValue> {
    platform::log_error(&format!("the origin cannot be reached: {error}"));
    Ok(own::page(&crate::answer::origin_unreachable(), Some(cookie).filter(|cookie| !cookie.is_empty()))?)
}
