//! `DATA_CENTER` on the platform; see [`machines::DataCenter`].

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use super::shell::{Shell, Start};
use crate::machines;
use crate::protocol::Object;

/// Adds up a colo's workers and reports to Global.
#[durable_object(alarm)]
pub struct DataCenter(Shell);

/// A panic in one event leaves at most one check-in half counted; it heals within a session.
impl std::panic::RefUnwindSafe for DataCenter {}

impl DurableObject for DataCenter {
    fn new(state: State, env: Env) -> Self {
        Self(Shell::new(state, env, Object::DataCenter, |start| {
            let Start { room, colo, stored, random, now, .. } = *start;
            Ok(Box::new(machines::DataCenter::restore(room, colo, stored, random, now)))
        }))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        self.0.fetch(request).await
    }

    async fn alarm(&self) -> Result<Response> {
        self.0.alarm().await
    }
}
