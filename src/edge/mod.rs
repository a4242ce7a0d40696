//! The only code that knows Workers: the fetch handler, four thin objects, cache, origin and operator endpoints.
//!
//! Each handler gathers what the pure core needs, lets it decide, and acts.

mod calls;
mod clock;
mod gate;
mod objects;
mod operator;
mod origin;
mod platform;
mod room_worker;
mod settings;

use worker::{Context, Env, Request, Result, event};

/// Every request that reaches the Worker.
#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> Result<web_sys::Response> {
    gate::handle(request, env, context).await
}
