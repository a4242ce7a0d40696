//! `ANYWHERE`: the numbers that no colo owns. Route: `POST /take`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use super::ledger_store::{LEDGER, LedgerStore};
use super::{Home, load, no_such_route};
use crate::config::Room;
use crate::edge::calls::{GLOBAL, answer, call, message};
use crate::edge::clock::{now, pause};
use crate::edge::platform::log_error;
use crate::edge::settings::Settings;
use crate::pipeline::messages::{Given, STATE, StateAnswer, StateRequest, TAKE, Take, Taken, VERSION};
use crate::queue::{self, Renewal, minute_of};

/// Global must answer within so many tenths of the time for which visitors' calls wait for Anywhere.
const GLOBAL_TENTHS: u64 = 8;
/// A room that wakes up gets so many times that: its Global has to be made first.
const WAKING: u64 = 3;
/// Visitors who wait for a state that another one fetches look for it so often, in milliseconds.
const LOOK_MS: u64 = 3;

/// Gives the numbers that no colo owns, by its own clock and the freshest state.
#[durable_object(fetch)]
pub struct Anywhere {
    state: State,
    env: Env,
    pool: Rc<RefCell<Option<queue::Anywhere>>>,
    store: LedgerStore<queue::Anywhere>,
    renewing: Rc<Cell<bool>>,
}

/// A panic in one event leaves at most one event's changes undone; the ledger is whole between its calls.
impl std::panic::RefUnwindSafe for Anywhere {}

impl DurableObject for Anywhere {
    fn new(state: State, env: Env) -> Self {
        let pool = Rc::new(RefCell::new(None));
        let (loaded, storage) = (Rc::clone(&pool), state.storage());
        let _init = state.block_concurrency_while(async move {
            let saved = load(&storage, LEDGER).await?;
            *loaded.borrow_mut() = Some(queue::Anywhere::restore(saved, now()));
            Ok(())
        });
        let store = LedgerStore::new(&pool, state.storage(), queue::Anywhere::ledger);
        Self { state, env, pool, store, renewing: Rc::new(Cell::new(false)) }
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        match request.path().as_str() {
            TAKE => {
                let asked: Take = message(&mut request).await?;
                let home = Home::of(&self.state, &self.env)?;
                self.renew(&home.room).await;
                let outcomes = self
                    .pool
                    .borrow_mut()
                    .as_mut()
                    .and_then(|pool| pool.take(&home.room, &asked.asks, now()));
                let Some(outcomes) = outcomes else {
                    return Response::error("Global has not told the room's state", 503);
                };
                self.store.changed(&self.state);
                answer(&Taken { v: VERSION, outcomes })
            }
            path => no_such_route(path),
        }
    }
}

impl Anywhere {
    fn global_deadline_ms(&self) -> u64 {
        let deadline = Settings::of(&self.env).object_deadline_ms * GLOBAL_TENTHS / 10;
        let knows = self.pool.borrow().as_ref().is_some_and(queue::Anywhere::has_state);
        if knows { deadline } else { WAKING * deadline }
    }

    /// Sees to a fresh state: behind the visitors' backs where the one at hand will do.
    async fn renew(&self, room: &Room) {
        let need = self.pool.borrow().as_ref().map_or(Renewal::First, |pool| pool.renewal(room, now()));
        match need {
            Renewal::Fresh => {}
            Renewal::Background => {
                if !self.renewing.replace(true) {
                    let fetch = Fetch::new(self, room);
                    self.state.wait_until(fetch.run());
                }
            }
            Renewal::First => {
                if !self.renewing.replace(true) {
                    Fetch::new(self, room).run().await;
                    return;
                }
                let give_up = now() + self.global_deadline_ms();
                while self.renewing.get() && now() < give_up {
                    pause(LOOK_MS).await;
                }
            }
        }
    }
}

/// One fetch of the state from Global.
struct Fetch {
    env: Env,
    room: Room,
    pool: Rc<RefCell<Option<queue::Anywhere>>>,
    renewing: Rc<Cell<bool>>,
    deadline_ms: u64,
}

impl Fetch {
    fn new(anywhere: &Anywhere, room: &Room) -> Self {
        Self {
            env: anywhere.env.clone(),
            room: room.clone(),
            pool: Rc::clone(&anywhere.pool),
            renewing: Rc::clone(&anywhere.renewing),
            deadline_ms: anywhere.global_deadline_ms(),
        }
    }

    async fn run(self) {
        let given = self.pool.borrow_mut().as_mut().map(|pool| Given::of(pool.ledger(now())));
        let request = StateRequest { v: VERSION, minute: minute_of(now()), given };
        let answer: Result<StateAnswer> =
            call(&self.env, GLOBAL, &self.room.name, STATE, &request, self.deadline_ms).await;
        match answer {
            Ok(StateAnswer { state: Some(key), .. }) => {
                if let Some(pool) = self.pool.borrow_mut().as_mut() {
                    pool.renew(key, now());
                }
            }
            Ok(_) => {}
            Err(error) => log_error(&error.to_string()),
        }
        self.renewing.set(false);
    }
}
