//! `ANYWHERE`: the pool of tickets (`leases`), or the numbers that no colo owns (`counters`). Routes: `POST /lease`,
//! `POST /take`, `POST /hold`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use super::ledger_store::{LedgerStore, Record, WRITE_MS};
use super::{Home, load, no_such_route};
use crate::admission::{self, NumberAsk, Outcome, Pool, Renewal, StateKey, minute_of};
use crate::config::{Room, SlotStrategy};
use crate::edge::calls::{GLOBAL, answer, call, message};
use crate::edge::clock::{now, pause};
use crate::edge::platform::log_error;
use crate::edge::settings::Settings;
use crate::protocol::messages::{
    Given, HOLD, HoldSessions, LEASE, Lease, STATE, StateAnswer, StateRequest, TAKE, Take, Taken, VERSION,
};
use crate::protocol::wire;
use crate::steering::Overrides;

/// Storage keys of what was given. A record of the other kind, from before a change of the strategy, is not read.
const POOL_KEY: &str = "pool";
/// See [`POOL_KEY`].
const LEDGER_KEY: &str = "ledger";
/// Global must answer within so many tenths of the time for which visitors' calls wait for Anywhere.
const GLOBAL_TENTHS: u64 = 8;
/// A room that wakes up gets so many times that: its Global has to be made first.
const COLD_START_FACTOR: u64 = 3;
/// Visitors who wait for a state that another one fetches look for it so often, in milliseconds.
const POLL_MS: u64 = 3;

/// What is given: tickets or numbers.
enum Giver {
    Tickets(Pool),
    Numbers(admission::Anywhere),
}

impl Giver {
    fn renewal(&self, room: &Room, now: u64) -> Renewal {
        match self {
            Self::Tickets(pool) => pool.renewal(now),
            Self::Numbers(anywhere) => anywhere.renewal(room, now),
        }
    }

    fn has_state(&self) -> bool {
        match self {
            Self::Tickets(pool) => pool.has_state(),
            Self::Numbers(anywhere) => anywhere.has_state(),
        }
    }

    /// What operators have changed, as far as Global has told.
    fn overrides(&self) -> &Overrides {
        match self {
            Self::Tickets(pool) => pool.overrides(),
            Self::Numbers(anywhere) => anywhere.overrides(),
        }
    }

    fn renew(&mut self, key: StateKey, now: u64) {
        match self {
            Self::Tickets(pool) => pool.renew(key, now),
            Self::Numbers(anywhere) => anywhere.renew(key, now),
        }
    }

    fn take(&mut self, room: &Room, asks: &[NumberAsk], now: u64) -> Option<Vec<Outcome>> {
        match self {
            Self::Tickets(pool) => pool.take(room, asks, now),
            Self::Numbers(anywhere) => anywhere.take(room, asks, now),
        }
    }

    /// What Global is told of the numbers given.
    fn given(&mut self, now: u64) -> Option<Given> {
        match self {
            Self::Tickets(_) => None,
            Self::Numbers(anywhere) => Some(Given::of(anywhere.ledger(now))),
        }
    }

    fn record(&mut self, now: u64) -> Record {
        match self {
            Self::Tickets(pool) => {
                let settled = now >= pool.changed_at() + WRITE_MS;
                (wire::encode(&pool.save(settled)).unwrap_or_default(), settled)
            }
            Self::Numbers(anywhere) => {
                let ledger = anywhere.ledger(now);
                let settled = now >= ledger.changed_at() + WRITE_MS;
                (wire::encode(&ledger.save(settled)).unwrap_or_default(), settled)
            }
        }
    }
}

/// Gives tickets or numbers, by its own clock and the freshest state.
#[durable_object(fetch)]
pub struct Anywhere {
    state: State,
    env: Env,
    giver: Rc<RefCell<Option<Giver>>>,
    store: LedgerStore<Giver>,
    renewing: Rc<Cell<bool>>,
    /// How often Counters have called, as far as Global does not know.
    leases: Rc<Cell<u64>>,
}

/// A panic in one event leaves at most one event's changes undone; what is counted is whole between its calls.
impl std::panic::RefUnwindSafe for Anywhere {}

impl DurableObject for Anywhere {
    fn new(state: State, env: Env) -> Self {
        let giver = Rc::new(RefCell::new(None));
        let (loaded, storage) = (Rc::clone(&giver), state.storage());
        let leases = Home::of(&state, &env).is_ok_and(|home| home.room.slot_strategy == SlotStrategy::Leases);
        let key = if leases { POOL_KEY } else { LEDGER_KEY };
        let _init = state.block_concurrency_while(async move {
            *loaded.borrow_mut() = Some(if leases {
                Giver::Tickets(Pool::restore(load(&storage, key).await?, now()))
            } else {
                Giver::Numbers(admission::Anywhere::restore(load(&storage, key).await?, now()))
            });
            Ok(())
        });
        let store = LedgerStore::new(&giver, state.storage(), key, Giver::record);
        Self { state, env, giver, store, renewing: Rc::new(Cell::new(false)), leases: Rc::default() }
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        match request.path().as_str() {
            LEASE => {
                let asked: Lease = message(&mut request).await?;
                self.leases.set(self.leases.get() + 1);
                let home = self.home_with_fresh_state().await?;
                let leased = match self.giver.borrow_mut().as_mut() {
                    Some(Giver::Tickets(pool)) => {
                        pool.changes_at(home.changes_at);
                        pool.lease(&home.room, &asked.colo, &asked.ask, now())
                    }
                    _ => None,
                };
                let Some(leased) = leased else { return unknown() };
                self.store.changed(&self.state);
                answer(&leased)
            }
            TAKE => {
                let asked: Take = message(&mut request).await?;
                let home = self.home_with_fresh_state().await?;
                let outcomes = self
                    .giver
                    .borrow_mut()
                    .as_mut()
                    .and_then(|giver| giver.take(&home.room, &asked.asks, now()));
                let Some(outcomes) = outcomes else { return unknown() };
                self.store.changed(&self.state);
                answer(&Taken { v: VERSION, outcomes, lent: None, holders: Vec::new() })
            }
            HOLD => {
                let asked: HoldSessions = message(&mut request).await?;
                if let Some(Giver::Tickets(pool)) = self.giver.borrow_mut().as_mut() {
                    for _ in 0..asked.sessions.min(100) {
                        pool.hold_session(now());
                    }
                }
                answer(&())
            }
            path => no_such_route(path),
        }
    }
}

fn unknown() -> Result<Response> {
    Response::error("Global has not told the room's state", 503)
}

impl Anywhere {
    /// The room as operators have it by a fresh state.
    async fn home_with_fresh_state(&self) -> Result<Home> {
        let known =
            || self.giver.borrow().as_ref().map(|giver| giver.overrides().clone()).unwrap_or_default();
        let before = known();
        let home = Home::steered(&self.state, &self.env, &before)?;
        self.renew(&home.room).await;
        let after = known();
        if before == after { Ok(home) } else { Home::steered(&self.state, &self.env, &after) }
    }

    fn global_deadline_ms(&self) -> u64 {
        let deadline = Settings::of(&self.env).object_deadline_ms * GLOBAL_TENTHS / 10;
        let knows = self.giver.borrow().as_ref().is_some_and(Giver::has_state);
        if knows { deadline } else { COLD_START_FACTOR * deadline }
    }

    /// Sees to a fresh state: behind the visitors' backs where the one at hand will do.
    async fn renew(&self, room: &Room) {
        let need = self.giver.borrow().as_ref().map_or(Renewal::First, |giver| giver.renewal(room, now()));
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
                    pause(POLL_MS).await;
                }
            }
        }
    }
}

/// One fetch of the state from Global.
struct Fetch {
    env: Env,
    room: Room,
    giver: Rc<RefCell<Option<Giver>>>,
    renewing: Rc<Cell<bool>>,
    leases: Rc<Cell<u64>>,
    deadline_ms: u64,
}

impl Fetch {
    fn new(anywhere: &Anywhere, room: &Room) -> Self {
        Self {
            env: anywhere.env.clone(),
            room: room.clone(),
            giver: Rc::clone(&anywhere.giver),
            renewing: Rc::clone(&anywhere.renewing),
            leases: Rc::clone(&anywhere.leases),
            deadline_ms: anywhere.global_deadline_ms(),
        }
    }

    async fn run(self) {
        let given = self.giver.borrow_mut().as_mut().and_then(|giver| giver.given(now()));
        let leases = self.leases.take();
        let minute = minute_of(now());
        let request = StateRequest { v: VERSION, minute, given, colo: String::new(), leases };
        let answer: Result<StateAnswer> =
            call(&self.env, GLOBAL, &self.room.name, STATE, &request, self.deadline_ms).await;
        match answer {
            Ok(StateAnswer { state: Some(key), .. }) => {
                if let Some(giver) = self.giver.borrow_mut().as_mut() {
                    giver.renew(key, now());
                }
            }
            Ok(_) => {}
            Err(error) => {
                self.leases.set(self.leases.get() + leases);
                log_error(&error.to_string());
            }
        }
        self.renewing.set(false);
    }
}
