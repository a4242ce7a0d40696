//! What operators see in a browser. `entry.js` has the pages, so that WebAssembly need not: the global function
//! `anteroomOperatorPage` gets the request and what is known of whoever sends it, and returns a `Response`.

use js_sys::{Function, Reflect};
use serde::Serialize;
use wasm_bindgen::{JsCast, JsValue};
use worker::Result;

use super::access::Caller;
use super::reply;
use crate::operator::Operator;

/// The function's second argument, as JSON.
#[derive(Serialize)]
struct Visit<'a> {
    /// Who has signed in; `null`: nobody, so it is the sign-in page.
    operator: Option<&'a Operator>,
    /// Somebody has just tried to sign in with a wrong token.
    failed: bool,
}

/// The dashboard, or the sign-in page with status 401.
pub fn show(
    request: &web_sys::Request,
    caller: &Caller,
    operator: Option<&Operator>,
    failed: bool,
) -> Result<JsValue> {
    let visit = serde_json::to_string(&Visit { operator, failed })?;
    let function = Reflect::get(&js_sys::global(), &JsValue::from_str("anteroomOperatorPage"))?;
    if let Some(function) = function.dyn_ref::<Function>() {
        return Ok(function.call2(&JsValue::UNDEFINED, request, &JsValue::from_str(&visit))?);
    }
    let (status, body) = match operator {
        Some(_) => (200, "Signed in.\n"),
        None => (401, "Sign in: send the token as a form's field \"token\" to session.\n"),
    };
    reply::answer(status, "text/plain; charset=utf-8", (!caller.is_head()).then_some(body))
}
