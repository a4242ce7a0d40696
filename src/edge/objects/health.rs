//! `HEALTH`: the origin's health. The instance [`KEEPER`] keeps what is known; it stores, sums up and answers. Observers,
//! one instance each, look at the origin.

mod keeper;
mod observer;

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use crate::health::messages::KEEPER;
use crate::health::observer::Post;
use keeper::Keeper;
use observer::Observer;

/// One class, by the object's name what it does.
#[durable_object(alarm)]
pub struct Health {
    role: Role,
}

enum Role {
    Keeper(Keeper),
    Observer(Observer),
    Nobody,
}

/// A panic in one event leaves at most one result half counted.
impl std::panic::RefUnwindSafe for Health {}

impl DurableObject for Health {
    fn new(state: State, env: Env) -> Self {
        let role = match state.id().name() {
            Some(name) if name == KEEPER => Role::Keeper(Keeper::new(state, env)),
            Some(name) if Post::is_named(&name) => Role::Observer(Observer::new(state, env, name)),
            _ => Role::Nobody,
        };
        Self { role }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match &self.role {
            Role::Keeper(keeper) => keeper.fetch(request).await,
            Role::Observer(observer) => observer.fetch(request).await,
            Role::Nobody => Response::error("no object of this class has such a name", 404),
        }
    }

    async fn alarm(&self) -> Result<Response> {
        match &self.role {
            Role::Keeper(keeper) => keeper.alarm().await,
            Role::Observer(observer) => observer.alarm().await,
            Role::Nobody => Response::empty(),
        }
    }
}
