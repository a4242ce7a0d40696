//! `DATA_CENTER`: one colo's workers. Routes: `POST /report`, `POST /state`, `POST /hear`. Its alarm pushes to Global.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use super::{Home, load, no_such_route, store};
use crate::admission::minute_of;
use crate::config::SlotStrategy;
use crate::counts::{self, SavedDataCenter};
use crate::edge::calls::{COUNTER, GLOBAL, answer, call, message};
use crate::edge::clock::{now, pause, start_id};
use crate::edge::platform::log_error;
use crate::protocol::messages::{
    GIVEN, Given, PUSH, REFRESH, REPORT, STATE, StateAnswer, StateRequest, VERSION, WorkerReport, colo_object,
};
use crate::steering::Overrides;

/// The storage key.
const SAVED: &str = "data_center";
/// Global may take so long to answer a push, in milliseconds.
const PUSH_DEADLINE_MS: u64 = 2_000;
/// The same when somebody waits for what it says.
const ASK_DEADLINE_MS: u64 = 400;
/// Whoever waits for a colleague's question looks for its answer so often, in milliseconds.
const POLL_MS: u64 = 3;
/// The Counter next door may take so long, in milliseconds.
const COUNTER_DEADLINE_MS: u64 = 500;
/// An alarm that has not rung so long after its time is not waited for, in milliseconds.
const LATE_ALARM_MS: u64 = 2_000;
/// The alarm is set again so far ahead before a push is tried: a failure does not end the pushes.
const SAFETY_ALARM_MS: u64 = 5_000;

/// Adds up a colo's workers and tells Global.
#[durable_object(alarm)]
pub struct DataCenter {
    state: State,
    env: Env,
    memory: Rc<RefCell<Option<counts::DataCenter>>>,
    /// When the alarm rings, as far as this instance knows.
    alarm_at: Cell<Option<u64>>,
    pushing: Cell<bool>,
    asking: Cell<bool>,
}

/// A panic in one event leaves at most one check-in half counted; it heals within a session.
impl std::panic::RefUnwindSafe for DataCenter {}

impl DurableObject for DataCenter {
    fn new(state: State, env: Env) -> Self {
        let memory = Rc::new(RefCell::new(None));
        let (loaded, storage) = (Rc::clone(&memory), state.storage());
        let home = Home::of(&state, &env);
        let _init = state.block_concurrency_while(async move {
            let saved: Option<SavedDataCenter> = load(&storage, SAVED).await?;
            if let Ok(home) = home {
                *loaded.borrow_mut() =
                    Some(counts::DataCenter::restore(&home.room, &home.colo, start_id()?, saved, now()));
            }
            Ok(())
        });
        Self {
            state,
            env,
            memory,
            alarm_at: Cell::new(None),
            pushing: Cell::new(false),
            asking: Cell::new(false),
        }
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        match request.path().as_str() {
            REPORT => {
                let report: WorkerReport = message(&mut request).await?;
                let home = self.home()?;
                let time = now();
                let (mut answered, at_once) = {
                    let mut memory = self.memory.borrow_mut();
                    let Some(memory) = memory.as_mut() else { return Response::error("not ready", 503) };
                    (memory.receive(&home.room, &report, time), memory.stores_at_once(&home.room, time))
                };
                if at_once {
                    self.store_counts(&home, time).await?;
                } else if self.alarm_at.get().is_some_and(|alarm| alarm + LATE_ALARM_MS < time) {
                    // Nothing is heard of this colo until the platform rings again.
                    self.push_once().await;
                }
                let next = {
                    let memory = self.memory.borrow();
                    let Some(memory) = memory.as_ref() else { return Response::error("not ready", 503) };
                    answered.durable = memory.durable(report.worker);
                    memory.next_push(&home.room, time)
                };
                if let Some(wait) = next {
                    self.wake_in(wait).await?;
                }
                answer(&answered)
            }
            STATE => {
                let home = self.home()?;
                let asks =
                    self.memory.borrow().as_ref().is_some_and(|memory| memory.must_ask(&home.room, now()));
                if asks {
                    self.ask_global(&home).await;
                }
                let time = now();
                let state = self.memory.borrow_mut().as_mut().and_then(|memory| {
                    memory.asked(time);
                    memory.state(time)
                });
                answer(&StateAnswer { v: VERSION, state })
            }
            REFRESH => {
                let told: StateAnswer = message(&mut request).await?;
                let next = {
                    let mut memory = self.memory.borrow_mut();
                    let (Some(memory), Some(key)) = (memory.as_mut(), told.state) else {
                        return Response::error("not ready", 503);
                    };
                    memory.hear(key, now());
                    let home = Home::steered(&self.state, &self.env, memory.overrides())?;
                    memory.next_push(&home.room, now())
                };
                if let Some(wait) = next {
                    self.wake_in(wait).await?;
                }
                answer(&())
            }
            path => no_such_route(path),
        }
    }

    async fn alarm(&self) -> Result<Response> {
        let Ok(home) = self.home() else {
            // The room is no longer configured: there is nobody to tell.
            return Response::empty();
        };
        // Set again first: whatever happens to this push, another one follows.
        self.state.storage().set_alarm(Duration::from_millis(SAFETY_ALARM_MS)).await?;
        self.alarm_at.set(Some(now() + SAFETY_ALARM_MS));
        self.push_once().await;
        let next = self.memory.borrow().as_ref().and_then(|memory| memory.next_push(&home.room, now()));
        if let Some(wait) = next {
            self.alarm_at.set(None);
            self.wake_in(wait.max(10)).await?;
        } else {
            // Nothing to tell: sleep, and cost nothing, until the next report.
            self.state.storage().delete_alarm().await?;
            self.alarm_at.set(None);
        }
        Response::empty()
    }
}

impl DataCenter {
    /// The room as operators have it, as far as is known here.
    fn home(&self) -> Result<Home> {
        let memory = self.memory.borrow();
        let overrides = memory.as_ref().map_or(Overrides::none(), counts::DataCenter::overrides);
        Home::steered(&self.state, &self.env, overrides)
    }

    /// Asks Global for the state, though there is nothing to report: this data center sleeps, and is not told.
    async fn ask_global(&self, home: &Home) {
        if self.asking.replace(true) {
            let give_up = now() + ASK_DEADLINE_MS;
            while self.asking.get() && now() < give_up {
                pause(POLL_MS).await;
            }
            return;
        }
        let colo = home.colo.clone();
        let request = StateRequest { v: VERSION, minute: minute_of(now()), given: None, colo, leases: 0 };
        let answer: Result<StateAnswer> =
            call(&self.env, GLOBAL, &home.room.name, STATE, &request, ASK_DEADLINE_MS).await;
        self.asking.set(false);
        match answer {
            Ok(StateAnswer { state: Some(key), .. }) => {
                if let Some(memory) = self.memory.borrow_mut().as_mut() {
                    memory.hear(key, now());
                }
            }
            Ok(_) => {}
            Err(error) => log_error(&error.to_string()),
        }
    }

    /// Sets the alarm, unless it rings earlier anyway.
    async fn wake_in(&self, wait_ms: u64) -> Result<()> {
        let at = now() + wait_ms;
        if self.alarm_at.get().is_none_or(|alarm| alarm > at || alarm + SAFETY_ALARM_MS < now()) {
            self.alarm_at.set(Some(at));
            self.state.storage().set_alarm(Duration::from_millis(wait_ms)).await?;
        }
        Ok(())
    }

    /// Pushes, unless a push is under way.
    async fn push_once(&self) {
        if self.pushing.replace(true) {
            return;
        }
        let pushed = self.push().await;
        self.pushing.set(false);
        if let Err(error) = pushed {
            log_error(&error.to_string());
            if let Some(memory) = self.memory.borrow_mut().as_mut() {
                memory.push_failed();
            }
        }
    }

    /// Stores the counts of `time`.
    async fn store_counts(&self, home: &Home, time: u64) -> Result<Option<SavedDataCenter>> {
        let saved = self.memory.borrow_mut().as_mut().map(|memory| memory.save(&home.room, time));
        if let Some(saved) = &saved {
            store(&self.state.storage(), SAVED, saved).await?;
            if let Some(memory) = self.memory.borrow_mut().as_mut() {
                memory.saved(saved);
            }
        }
        Ok(saved)
    }

    /// Stores the counts, tells them to Global and takes in its answer.
    async fn push(&self) -> Result<()> {
        let home = self.home()?;
        let Some(saved) = self.store_counts(&home, now()).await? else { return Ok(()) };
        let given: Option<Given> = match home.room.slot_strategy {
            SlotStrategy::Counters => {
                let name = colo_object(&home.room.name, &home.colo);
                let empty: [u8; 0] = [];
                let given = call(&self.env, COUNTER, &name, GIVEN, &empty, COUNTER_DEADLINE_MS).await;
                given.map_err(|error| log_error(&error.to_string())).ok()
            }
            _ => None,
        };
        let report =
            self.memory.borrow_mut().as_mut().map(|memory| memory.push(&home.room, &saved, given, now()));
        let Some(report) = report else { return Ok(()) };
        let answer: StateAnswer =
            call(&self.env, GLOBAL, &home.room.name, PUSH, &report, PUSH_DEADLINE_MS).await?;
        if let Some(memory) = self.memory.borrow_mut().as_mut() {
            memory.pushed(answer.state, now());
        }
        Ok(())
    }
}
