//! Small readings of the platform's JavaScript objects that the `worker` crate lacks or that panic there.

use js_sys::Reflect;
use wasm_bindgen::JsValue;
use worker::Request;

/// Where no colo is told: previews, tests, some internal requests. All of them share its objects.
const UNKNOWN_COLO: &str = "XXX";
/// Colo codes are three letters; nothing much longer may become part of an object's name.
const LONGEST_COLO: usize = 8;

/// The colo (data center) that handles the request. `worker::Cf::colo` panics where it is missing, so it is read here
/// and nowhere else.
pub fn colo(request: &Request) -> String {
    let cf = Reflect::get(request.inner(), &JsValue::from_str("cf")).unwrap_or(JsValue::UNDEFINED);
    if !cf.is_object() {
        return UNKNOWN_COLO.to_owned();
    }
    Reflect::get(&cf, &JsValue::from_str("colo"))
        .ok()
        .and_then(|colo| colo.as_string())
        .filter(|colo| {
            !colo.is_empty()
                && colo.len() <= LONGEST_COLO
                && colo.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
        .unwrap_or_else(|| UNKNOWN_COLO.to_owned())
}

/// Logs an error to the platform's log.
pub fn log_error(message: &str) {
    worker::console_error!("anteroom: {message}");
}
