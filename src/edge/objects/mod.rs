//! The six Durable Objects, as thin as they can be: read the message, let the core work, answer, store.
//!
//! Any of them can vanish at any moment, without a word. What it knew is in its storage as far as it was written
//! there, and each one's core says what to do about the rest.

mod anywhere;
mod counter;
mod data_center;
mod global;
mod health;
mod shell;
mod sql;

use worker::{Response, Result};

/// The answer to a route that an object does not have.
fn no_such_route(path: &str) -> Result<Response> {
    Response::error(format!("there is no route {path}"), 404)
}
