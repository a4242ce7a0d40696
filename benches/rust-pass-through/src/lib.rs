//! A Worker that sends every request to the origin, and nothing else: the way of an admitted visitor without a room.

use js_sys::futures::JsFuture;
use wasm_bindgen::JsCast;
use web_sys::WorkerGlobalScope;
use worker::{Context, Env, Request, Result, event};

#[event(fetch)]
async fn fetch(request: Request, _env: Env, _context: Context) -> Result<web_sys::Response> {
    let scope: WorkerGlobalScope = js_sys::global().unchecked_into();
    let response = JsFuture::from(scope.fetch_with_request(request.inner())).await?;
    Ok(response.dyn_into::<web_sys::Response>()?)
}
