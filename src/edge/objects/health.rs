//! `HEALTH`: the origin's health. Observers, one instance each, probe the origin. The instance [`COORDINATOR`] wakes them,
//! stores and sums up their results, tells rooms and answers.

mod coordinator;
mod observer;

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use crate::health::messages::COORDINATOR;
use crate::health::observer::Post;
use coordinator::Coordinator;
use observer::Observer;

/// One class, by the object's name what it does.
#[durable_object(alarm)]
pub struct Health {
    role: Role,
}

enum Role {
    Coordinator(Coordinator),
    Observer(Observer),
    Nobody,
}

/// A panic in one event leaves at most one result half counted.
impl std::panic::RefUnwindSafe for Health {}

impl DurableObject for Health {
    fn new(state: State, env: Env) -> Self {
        let role = match state.id().name() {
            Some(name) if name == COORDINATOR => Role::Coordinator(Coordinator::new(state, env)),
            Some(name) if Post::is_named(&name) => Role::Observer(Observer::new(state, env, name)),
            _ => Role::Nobody,
        };
        Self { role }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match &self.role {
            Role::Coordinator(coordinator) => coordinator.fetch(request).await,
            Role::Observer(observer) => observer.fetch(request).await,
            Role::Nobody => Response::error("no object of this class has such a name", 404),
        }
    }

    async fn alarm(&self) -> Result<Response> {
        match &self.role {
            Role::Coordinator(coordinator) => coordinator.alarm().await,
            Role::Observer(observer) => observer.alarm().await,
            Role::Nobody => Response::empty(),
        }
    }
}
