//! Small readings of the platform's JavaScript objects that the `worker` crate lacks or that panic there.

use std::cell::{Cell, RefCell};

use js_sys::Reflect;
use wasm_bindgen::JsValue;

use super::clock::now;
use crate::room::Location;

/// Where no colo is told: previews, tests, some internal requests. All of them share its objects.
const UNKNOWN_COLO: &str = "XXX";
/// Colo codes are three letters; nothing much longer may become part of an object's name.
const LONGEST_COLO: usize = 8;

/// TTL of the last request's colo for the next active users, in milliseconds.
const COLO_MS: u64 = 1_000;

thread_local! {
    static LAST_COLO: RefCell<(String, u64)> = const { RefCell::new((String::new(), 0)) };
    static REGION: Cell<&'static str> = const { Cell::new("") };
}

/// The colo (data center) that handles the request. `worker::Cf::colo` panics where it is missing, so it is read here
/// and nowhere else.
pub fn colo(request: &web_sys::Request) -> String {
    let cf = Reflect::get(request, &JsValue::from_str("cf")).unwrap_or(JsValue::UNDEFINED);
    let told = |name: &str| {
        let told = if cf.is_object() { Reflect::get(&cf, &JsValue::from_str(name)).ok() } else { None };
        told.and_then(|told| told.as_string())
    };
    let colo = told("colo")
        .filter(|colo| {
            !colo.is_empty()
                && colo.len() <= LONGEST_COLO
                && colo.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
        .unwrap_or_else(|| UNKNOWN_COLO.to_owned());
    let (before, _) = LAST_COLO.replace((colo.clone(), now()));
    if before != colo {
        let degrees = |name: &str| told(name).map(|told| js_sys::parse_float(&told));
        let region = degrees("latitude").zip(degrees("longitude"));
        REGION.set(region.map_or("", |(north, east)| Location::nearest(north, east)));
    }
    colo
}

/// The colo, for a request that any colo may count. An isolate serves one colo, and the platform makes `cf` anew for
/// every request whose `cf` is read, which takes as long as all that we do: so it is read once a second.
pub fn likely_colo(request: &web_sys::Request) -> String {
    let known = LAST_COLO.with_borrow(|(colo, at)| (now() < at + COLO_MS).then(|| colo.clone()));
    known.unwrap_or_else(|| colo(request))
}

/// The location hint of the region of the last colo that was read, by where its first visitor is: visitors come to a colo that is
/// near. Empty where the platform does not say.
pub fn region() -> &'static str {
    REGION.get()
}

/// Logs an error to the platform's log.
pub fn log_error(message: &str) {
    worker::console_error!("anteroom: {message}");
}
