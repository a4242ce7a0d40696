//! To the origin and back, untouched.

use js_sys::futures::JsFuture;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Headers, ResponseInit, WorkerGlobalScope};
use worker::{Request, Result};

use super::settings::Settings;

/// Sends the visitor's request to the origin: method, headers and body as they came, redirects not followed.
///
/// # Errors
/// When the origin cannot be reached.
pub async fn fetch(request: &Request, settings: &Settings) -> Result<web_sys::Response> {
    let scope: WorkerGlobalScope = js_sys::global().unchecked_into();
    let promise = match &settings.origin {
        None => scope.fetch_with_request(request.inner()),
        Some(origin) => {
            let url = request.inner().url();
            let rest = path_and_query(&url);
            // A request is a valid init of another one: everything but the URL is taken from it.
            let moved = web_sys::Request::new_with_str_and_init(
                &format!("{origin}{rest}"),
                request.inner().unchecked_ref::<web_sys::RequestInit>(),
            )?;
            scope.fetch_with_request(&moved)
        }
    };
    Ok(JsFuture::from(promise).await?.dyn_into::<web_sys::Response>()?)
}

/// Adds one cookie to a response that is otherwise passed on as it is: status text, headers, body and `WebSocket`.
///
/// # Errors
/// When the platform refuses to build the response.
pub fn with_cookie(response: &web_sys::Response, cookie: &str) -> Result<web_sys::Response> {
    // The headers of a fetched response cannot be changed; one made from it can, and streams the same body.
    let changed = web_sys::Response::new_with_opt_readable_stream_and_init(
        response.body().as_ref(),
        response.unchecked_ref::<ResponseInit>(),
    )?;
    changed.headers().append("set-cookie", cookie)?;
    Ok(changed)
}

/// A response of our own.
///
/// # Errors
/// When the platform refuses a header or the status.
pub fn own(status: u16, headers: &[(&str, String)], body: &str) -> Result<web_sys::Response> {
    let list = Headers::new()?;
    for (name, value) in headers {
        list.append(name, value)?;
    }
    let init = ResponseInit::new();
    init.set_status(status);
    init.set_headers(&JsValue::from(list));
    Ok(web_sys::Response::new_with_opt_str_and_init(Some(body), &init)?)
}

/// What follows the host in a URL.
fn path_and_query(url: &str) -> &str {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    url.get(after_scheme..)
        .and_then(|rest| rest.find('/').and_then(|at| rest.get(at..)))
        .map_or("/", |rest| rest.split('#').next().unwrap_or(rest))
}
