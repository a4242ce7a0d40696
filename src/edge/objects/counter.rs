//! `COUNTER`: what a colo's workers are given. Routes: `POST /take`, `POST /given`.

use std::cell::RefCell;
use std::iter::repeat;
use std::rc::Rc;

use litemap::LiteMap;
use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use super::ledger_store::{LedgerStore, Record, WRITE_MS};
use super::{Home, load, no_such_route};
use crate::admission::{self, Addresses, HINT_MS, LeaseAnswer, LeaseAsk, LeaseCounter, NumberAsk, Outcome};
use crate::config::SlotStrategy;
use crate::edge::calls::{ANYWHERE, answer, call, message};
use crate::edge::clock::{now, pause, start_id};
use crate::edge::platform::log_error;
use crate::edge::settings::Settings;
use crate::protocol::messages::{GIVEN, Given, LEASE, Lease, TAKE, Take, Taken, VERSION};
use crate::protocol::wire;
use crate::steering::Overrides;

/// The storage key.
const LEDGER: &str = "ledger";
/// The pool must answer within so many tenths of the time for which visitors' calls wait for the Counter.
const POOL_TENTHS: u64 = 9;
/// A room that wakes up gets so many times that: its Anywhere and Global have to be made first.
const COLD_START_FACTOR: u64 = 3;
/// Visitors who wait for the pool's answer look for it so often, in milliseconds.
const POLL_MS: u64 = 3;

/// A colo's stock of tickets, and the answers that its workers' calls wait for.
struct Lessor {
    counter: LeaseCounter,
    next_place: u64,
    answers: LiteMap<u64, Outcome>,
}

/// Gives numbers of the colo's share (`counters`), or tickets that it leases from Anywhere (`leases`).
#[durable_object(fetch)]
pub struct Counter {
    state: State,
    env: Env,
    giver: Rc<RefCell<Option<admission::Counter>>>,
    store: LedgerStore<admission::Counter>,
    lessor: Rc<RefCell<Lessor>>,
    addresses: RefCell<Addresses>,
    /// What operators have changed, as far as workers have told.
    overrides: RefCell<Overrides>,
}

/// A panic in one event leaves at most one event's changes undone; what is counted is whole between its calls.
impl std::panic::RefUnwindSafe for Counter {}

fn record(counter: &mut admission::Counter, now: u64) -> Record {
    let ledger = counter.ledger(now);
    let settled = now >= ledger.changed_at() + WRITE_MS;
    (wire::encode(&ledger.save(settled)).unwrap_or_default(), settled)
}

impl DurableObject for Counter {
    fn new(state: State, env: Env) -> Self {
        let counter = Rc::new(RefCell::new(None));
        let (loaded, storage) = (Rc::clone(&counter), state.storage());
        let _init = state.block_concurrency_while(async move {
            let saved = load(&storage, LEDGER).await?;
            *loaded.borrow_mut() = Some(admission::Counter::restore(saved, now()));
            Ok(())
        });
        let store = LedgerStore::new(&counter, state.storage(), LEDGER, record);
        // Without randomness the clock must do: no two starts of one object fall into one millisecond.
        let epoch = start_id().unwrap_or_else(|_| now());
        let lessor = Lessor { counter: LeaseCounter::new(epoch), next_place: 0, answers: LiteMap::new() };
        let lessor = Rc::new(RefCell::new(lessor));
        let (addresses, overrides) = (RefCell::default(), RefCell::default());
        Self { state, env, giver: counter, store, lessor, addresses, overrides }
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        match request.path().as_str() {
            TAKE => {
                let mut asked: Take = message(&mut request).await?;
                let home = {
                    let mut known = self.overrides.borrow_mut();
                    let told = std::mem::take(&mut asked.steering);
                    if told.version > known.version {
                        *known = told;
                        self.lessor.borrow_mut().counter.give_back();
                    }
                    Home::steered(&self.state, &self.env, &known)?
                };
                if home.room.is_closed() {
                    // An operator has closed it and the asker has not heard yet; or an event has not started, and its
                    // clock is ahead.
                    return closed(&asked);
                }
                if home.room.slot_strategy == SlotStrategy::Leases {
                    return self.lease_out(&home, asked).await;
                }
                let time = now();
                let holders = self.claim(&home, &asked);
                let outcomes = {
                    let mut counter = self.giver.borrow_mut();
                    let Some(counter) = counter.as_mut() else { return Response::error("not ready", 503) };
                    let may_ask = holders.iter().map(|holder| *holder == 0).chain(repeat(true));
                    let asks = asked.asks.iter().zip(may_ask);
                    asks.map(|(ask, may)| if may { counter.take(ask, time) } else { not_now(ask) }).collect()
                };
                self.store.changed(&self.state);
                answer(&Taken { v: VERSION, outcomes, lent: None, holders })
            }
            GIVEN => {
                let mut counter = self.giver.borrow_mut();
                let Some(counter) = counter.as_mut() else { return Response::error("not ready", 503) };
                answer(&Given::of(counter.ledger(now())))
            }
            path => no_such_route(path),
        }
    }
}

/// The answer while nobody new enters.
fn closed(asked: &Take) -> Result<Response> {
    let outcomes = asked.asks.iter().map(|ask| ask.refused(HINT_MS)).collect();
    answer(&Taken { v: VERSION, outcomes, lent: None, holders: Vec::new() })
}

impl Counter {
    /// Answers a worker's call from the stock, and what the stock cannot give with the next call to the pool.
    async fn lease_out(&self, home: &Home, asked: Take) -> Result<Response> {
        let holders = self.claim(home, &asked);
        let places: Vec<u64> = {
            let mut lessor = self.lessor.borrow_mut();
            let Lessor { counter, next_place, answers } = &mut *lessor;
            let ask = |(ask, may): (&NumberAsk, bool)| {
                *next_place += 1;
                if may {
                    counter.ask(*next_place, *ask, now());
                } else {
                    answers.insert(*next_place, not_now(ask));
                }
                *next_place
            };
            let may_ask = holders.iter().map(|holder| *holder == 0).chain(repeat(true));
            asked.asks.iter().zip(may_ask).map(ask).collect()
        };
        let deadline_ms = Settings::of(&self.env).object_deadline_ms;
        let give_up = now() + COLD_START_FACTOR * deadline_ms;
        loop {
            self.call_pool(home);
            let waits = {
                let mut lessor = self.lessor.borrow_mut();
                let ready = lessor.counter.answers();
                for (place, outcome) in ready {
                    lessor.answers.insert(place, outcome);
                }
                places.iter().any(|place| !lessor.answers.contains_key(place))
            };
            if !waits || now() >= give_up {
                break;
            }
            pause(POLL_MS).await;
        }
        let mut lessor = self.lessor.borrow_mut();
        let outcomes =
            places.iter().map(|place| lessor.answers.remove(place).unwrap_or(Outcome::Unknown)).collect();
        let lent = asked.loan.map(|loan| lessor.counter.lend(&loan, now()));
        answer(&Taken { v: VERSION, outcomes, lent, holders })
    }

    /// Whose turn it is at each address, where the owner wants one place per address.
    fn claim(&self, home: &Home, asked: &Take) -> Vec<u64> {
        if !home.room.one_place_per_address {
            return Vec::new();
        }
        self.addresses.borrow_mut().claim_all(&asked.asks, &asked.addresses, now())
    }

    /// Calls the pool if a call is due. It goes on though the visitor for whom it is made has gone.
    fn call_pool(&self, home: &Home) {
        let (due, knows) = {
            let counter = &mut self.lessor.borrow_mut().counter;
            (counter.call(now()), counter.has_heard())
        };
        let Some(ask) = due else { return };
        let deadline_ms = Settings::of(&self.env).object_deadline_ms * POOL_TENTHS / 10;
        let deadline_ms = if knows { deadline_ms } else { COLD_START_FACTOR * deadline_ms };
        let (env, room, colo) = (self.env.clone(), home.room.name.clone(), home.colo.clone());
        let lessor = Rc::clone(&self.lessor);
        self.state.wait_until(async move {
            let answer = call_pool(&env, &room, colo, ask, deadline_ms).await;
            lessor.borrow_mut().counter.answered(answer.as_ref(), now());
        });
    }
}

/// Somebody else has the address's turn. The worker that asked is told so; what is refused here is not a number.
fn not_now(ask: &NumberAsk) -> Outcome {
    ask.refused(0)
}

async fn call_pool(
    env: &Env,
    room: &str,
    colo: String,
    ask: LeaseAsk,
    deadline_ms: u64,
) -> Option<LeaseAnswer> {
    let lease = Lease { v: VERSION, colo, ask };
    let answer: Result<LeaseAnswer> = call(env, ANYWHERE, room, LEASE, &lease, deadline_ms).await;
    answer.map_err(|error| log_error(&error.to_string())).ok()
}
