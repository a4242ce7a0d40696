//! Readings of a request that is for us.

use js_sys::futures::JsFuture;
use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

/// A header; empty where there is none.
pub fn header(request: &web_sys::Request, name: &str) -> String {
    request.headers().get(name).ok().flatten().unwrap_or_default()
}

/// A value of the address's query.
pub fn query(request: &web_sys::Request, name: &str) -> Option<String> {
    let url = request.url();
    let (_, query) = url.split('#').next()?.split_once('?')?;
    field(query, name)
}

/// A value of a form's text, or of a query.
pub fn field(form: &str, name: &str) -> Option<String> {
    web_sys::UrlSearchParams::new_with_str(form).ok()?.get(name)
}

/// The request's body, read piece by piece: of a body beyond the bound no more than the bound is ever in memory, and it
/// is `None`.
pub async fn body(request: &web_sys::Request, longest: usize) -> Option<Vec<u8>> {
    let told: Option<usize> = header(request, "content-length").parse().ok();
    if told.is_some_and(|length| length > longest) {
        return None;
    }
    let mut bytes = Vec::new();
    let Some(stream) = request.body() else { return Some(bytes) };
    let reader: web_sys::ReadableStreamDefaultReader = stream.get_reader().dyn_into().ok()?;
    while let Ok(read) = JsFuture::from(reader.read()).await {
        let Some(piece) = Reflect::get(&read, &JsValue::from_str("value"))
            .ok()
            .and_then(|piece| piece.dyn_into::<Uint8Array>().ok())
        else {
            break;
        };
        if bytes.len() + piece.length() as usize > longest {
            return None;
        }
        bytes.extend(piece.to_vec());
    }
    Some(bytes)
}
