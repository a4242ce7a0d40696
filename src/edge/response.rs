//! Responses of our own.

use wasm_bindgen::JsValue;
use web_sys::{Headers, ResponseInit};
use worker::Result;

use super::forward::HeaderLine;
use crate::answer::Answer;

/// Sends an answer of our own, with the visitor's ticket where it has changed.
///
/// # Errors
/// When the platform refuses a header or the status.
pub fn page(answer: &Answer, ticket: Option<&HeaderLine>) -> Result<JsValue> {
    let mut headers = answer.headers.clone();
    headers.extend(ticket.cloned());
    response(answer.status, &headers, Some(&answer.body))
}

/// A response.
///
/// # Errors
/// When the platform refuses a header or the status.
pub fn response(status: u16, headers: &[(&str, String)], body: Option<&str>) -> Result<JsValue> {
    let list = Headers::new()?;
    for (name, value) in headers {
        list.append(name, value)?;
    }
    let init = ResponseInit::new();
    init.set_status(status);
    init.set_headers(&JsValue::from(list));
    Ok(web_sys::Response::new_with_opt_str_and_init(body, &init)?.into())
}
