//! `COUNTER` on the platform; see [`machines::Counter`].

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use super::shell::Shell;
use crate::machines;
use crate::protocol::Object;

/// Gives a colo's workers permits or numbers.
#[durable_object(fetch)]
pub struct Counter(Shell);

/// A panic in one event leaves at most one event's changes undone; what is counted is whole between its calls.
impl std::panic::RefUnwindSafe for Counter {}

impl DurableObject for Counter {
    fn new(state: State, env: Env) -> Self {
        Self(Shell::new(state, env, Object::Counter, |start| {
            Ok(Box::new(machines::Counter::restore(start.stored, start.random, start.now)))
        }))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        self.0.fetch(request).await
    }
}
