//! `ANYWHERE` on the platform; see [`machines::Anywhere`].

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use super::shell::Shell;
use crate::machines;
use crate::protocol::Object;

/// The pool of permits or numbers.
#[durable_object(fetch)]
pub struct Anywhere(Shell);

/// A panic in one event leaves at most one event's changes undone; what is counted is whole between its calls.
impl std::panic::RefUnwindSafe for Anywhere {}

impl DurableObject for Anywhere {
    fn new(state: State, env: Env) -> Self {
        Self(Shell::new(state, env, Object::Anywhere, |start| {
            Ok(Box::new(machines::Anywhere::restore(start.room, start.stored, start.now)))
        }))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        self.0.fetch(request).await
    }
}
