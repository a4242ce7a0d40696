//! `COUNTER`: a colo's numbers. Routes: `POST /take`, `POST /given`.

use std::cell::RefCell;
use std::rc::Rc;

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use super::ledger_store::{LEDGER, LedgerStore};
use super::{load, no_such_route};
use crate::edge::calls::{answer, message};
use crate::edge::clock::now;
use crate::pipeline::messages::{GIVEN, Given, TAKE, Take, Taken, VERSION};
use crate::queue;

/// Counts the numbers that a colo's workers take from the colo's share.
#[durable_object(fetch)]
pub struct Counter {
    state: State,
    giver: Rc<RefCell<Option<queue::Counter>>>,
    store: LedgerStore<queue::Counter>,
}

/// A panic in one event leaves at most one event's changes undone; the ledger is whole between its calls.
impl std::panic::RefUnwindSafe for Counter {}

impl DurableObject for Counter {
    fn new(state: State, _env: Env) -> Self {
        let counter = Rc::new(RefCell::new(None));
        let (loaded, storage) = (Rc::clone(&counter), state.storage());
        let _init = state.block_concurrency_while(async move {
            let saved = load(&storage, LEDGER).await?;
            *loaded.borrow_mut() = Some(queue::Counter::restore(saved, now()));
            Ok(())
        });
        let store = LedgerStore::new(&counter, state.storage(), queue::Counter::ledger);
        Self { state, giver: counter, store }
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        match request.path().as_str() {
            TAKE => {
                let asked: Take = message(&mut request).await?;
                let time = now();
                let outcomes = {
                    let mut counter = self.giver.borrow_mut();
                    let Some(counter) = counter.as_mut() else { return Response::error("not ready", 503) };
                    asked.asks.iter().map(|ask| counter.take(ask, time)).collect()
                };
                self.store.changed(&self.state);
                answer(&Taken { v: VERSION, outcomes })
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
