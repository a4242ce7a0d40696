//! What operators are answered: JSON that nobody stores.

use serde::Serialize;
use wasm_bindgen::JsValue;
use worker::Result;

use super::ROOT;
use crate::edge::response;
use crate::operator::Refusal;

/// The longest body that is read, in bytes.
pub const LONGEST_BODY: usize = 16 * 1_024;

/// The headers of all answers.
pub fn headers(content_type: &str) -> Vec<(&'static str, String)> {
    vec![
        ("content-type", content_type.to_owned()),
        ("cache-control", "private, no-store".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'".to_owned()),
        ("cross-origin-resource-policy", "same-origin".to_owned()),
        ("referrer-policy", "same-origin".to_owned()),
        ("x-robots-tag", "noindex".to_owned()),
    ]
}

/// An answer of a type; `None`: whoever asked wants the headers alone.
pub fn answer(status: u16, content_type: &str, body: Option<&str>) -> Result<JsValue> {
    response::response(status, &headers(content_type), body)
}

/// JSON that is ready.
pub fn json(status: u16, body: Option<&str>) -> Result<JsValue> {
    answer(status, "application/json", body)
}

#[derive(Serialize)]
struct Wrong<'a> {
    error: &'a str,
}

/// A refusal.
pub fn refuse(refusal: &Refusal) -> Result<JsValue> {
    let mut headers = headers("application/json");
    if refusal.status == 401 {
        headers.push(("www-authenticate", "Bearer realm=\"anteroom\"".to_owned()));
    }
    headers.extend(refusal.allow.map(|allow| ("allow", allow.to_owned())));
    response::response(
        refusal.status,
        &headers,
        Some(&serde_json::to_string(&Wrong { error: &refusal.message })?),
    )
}

/// What is said of a body that is too long.
pub fn too_long() -> Refusal {
    Refusal::new(413, format!("A body may be {LONGEST_BODY} bytes long"))
}

/// On to the dashboard, with a session that has changed.
pub fn to_page(cookie: Option<String>) -> Result<JsValue> {
    let mut headers = headers("text/plain");
    headers.push(("location", ROOT.to_owned()));
    headers.extend(cookie.map(|cookie| ("set-cookie", cookie)));
    response::response(303, &headers, None)
}
