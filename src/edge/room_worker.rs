//! What one worker remembers of one room, and its calls to the room's objects.

use std::cell::RefCell;
use std::rc::Rc;

use litemap::LiteMap;
use worker::{Cache, Context, Env, Headers, Response, Result};

use super::calls::{ANYWHERE, COUNTER, DATA_CENTER, LocalBoxFuture, call, unreadable};
use super::clock::{now, pause, random_id, within};
use super::in_flight;
use super::platform::{likely_colo, log_error};
use super::settings::Settings;
use crate::admission::{
    Addresses, AdmissionController, Batcher, Clocked, Draw, DrawKey, Level, NumberAsk, Outcome, StateKey,
    Step, Turn, Whom, minute_of,
};
use crate::config::{Room, SlotStrategy};
use crate::counts::{CheckIn, HOLD_TRIES, Outbox};
use crate::history::Count;
use crate::protocol::messages::{
    HOLD, HoldSessions, REPORT, STATE, StateAnswer, StateRequest, TAKE, Take, Taken, VERSION, WorkerAnswer,
    WorkerReport, colo_object,
};
use crate::protocol::wire;
use crate::ticket::Standing;

/// Rooms times colos that one isolate keeps apart. An isolate serves one colo, so this is reached by tests alone; at
/// the bound the memory of another one is dropped, which costs it one fetch of the state key.
const MAX_ROOM_WORKERS: usize = 256;
/// A cache that does not answer within this time is passed over, in milliseconds.
const CACHE_DEADLINE_MS: u64 = 50;
/// A room that wakes up gets so many times the deadline: its objects have to be made first, and nothing is known by
/// which a visitor could be judged without them.
const COLD_START_FACTOR: u64 = 3;
/// A cache of its own: nothing in it answers a visitor's request by its URL.
const CACHE: &str = "anteroom";
/// Header of a cached state key: when it was put there, in milliseconds since the epoch.
const KEPT_AT: &str = "anteroom-kept-at";
/// How long a state key may stay in the cache, in seconds.
const CACHE_SECONDS: u32 = 10;
/// Visitors who wait for a colleague's call look for its answer so often, in milliseconds.
const POLL_MS: u64 = 4;
/// A report is tried so often by one request: every second, while the platform lets it go on.
const REPORT_TRIES: usize = 25;
/// A report may take so long; visitors do not wait for it, in milliseconds.
const REPORT_DEADLINE_MS: u64 = 5_000;

/// Who asks, and from which address; 0: it does not matter.
type NumberBatcher = Batcher<(NumberAsk, u64), Outcome>;

/// One worker's memory of one room in one colo.
pub struct RoomWorker {
    controller: AdmissionController,
    outbox: Outbox,
    counter_desk: NumberBatcher,
    anywhere_desk: NumberBatcher,
    addresses: Addresses,
    /// The room as operators have it, and by which version of what they have changed.
    steered: Option<(u32, Rc<Room>)>,
}

/// How a visitor hears what is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hears {
    /// The data center has told a moment ago.
    Knows,
    /// By asking it.
    Asks,
    /// Somebody else asks just now.
    Waits,
}

/// Which room in which colo, and how to call its objects.
#[derive(Clone)]
pub struct Place {
    /// The room.
    pub room: Room,
    /// The room with its events as operators have it; `None`: as deployed.
    pub steered: Option<Rc<Room>>,
    /// The colo of the request.
    pub colo: String,
    /// The host of the request: the cache is asked under a name that is the deployment's own.
    pub host: String,
    /// The bindings.
    pub env: Env,
    /// Deadline of calls on the visitor's path, in milliseconds.
    pub deadline_ms: u64,
}

thread_local! {
    static WORKERS: RefCell<LiteMap<(String, String), RoomWorker>> = const { RefCell::new(LiteMap::new()) };
}

/// The room as operators have it, as far as is known in any colo; `None`: as deployed. The isolate's settings never
/// change, so it is made once per version.
pub fn steered(room: &Room) -> Option<Rc<Room>> {
    WORKERS.with_borrow_mut(|workers| {
        let known = workers.iter_mut().filter(|((name, _), _)| *name == room.name).map(|(_, worker)| worker);
        let worker = known.max_by_key(|worker| worker.controller.overrides().version)?;
        let overrides = worker.controller.overrides();
        if overrides.is_empty() {
            return None;
        }
        let made = worker.steered.as_ref().filter(|(version, _)| *version == overrides.version);
        if let Some((_, room)) = made {
            return Some(Rc::clone(room));
        }
        let steered = Rc::new(room.steered(overrides));
        worker.steered = Some((overrides.version, Rc::clone(&steered)));
        Some(steered)
    })
}

/// Whether a worker is due to hear what is new of a room, in whichever colo it knows it.
pub fn is_refresh_due(room: &str) -> bool {
    let time = now();
    WORKERS.with_borrow(|workers| {
        let mut known = workers.iter().filter(|((name, _), _)| name == room).peekable();
        known.peek().is_none() || known.any(|(_, worker)| worker.controller.is_refresh_due(time))
    })
}

/// A request has gone past a room. When a report must tell of it, `place` is asked where.
pub fn note_bypassed(
    room: &Room,
    request: &web_sys::Request,
    place: impl FnOnce(String) -> Place,
    context: &Context,
) {
    let (colo, time) = (likely_colo(request), now());
    let known = WORKERS.with_borrow_mut(|workers| {
        let (_, worker) = workers.iter_mut().find(|((name, here), _)| *name == room.name && *here == colo)?;
        worker.outbox.note_bypassed(time);
        Some(worker.outbox.announce(time))
    });
    if known == Some(None) {
        return;
    }
    let place = place(colo);
    let wait = match known.flatten() {
        Some(wait) => Some(wait),
        None => place
            .with(|worker| {
                worker.outbox.note_bypassed(time);
                worker.outbox.announce(time)
            })
            .ok()
            .flatten(),
    };
    if let Some(wait) = wait {
        context.wait_until(async move { place.report(wait).await });
    }
}

/// The time to go by in a room, as [`Place::time`], by what is known of the room in any colo: all of it comes from one
/// Global. It is for requests whose colo need not be known.
pub fn time_in(room: &str) -> u64 {
    let own = now();
    WORKERS.with_borrow(|workers| {
        let known = workers.iter().find(|((name, _), _)| name == room);
        known.map_or(own, |(_, worker)| worker.controller.time(own))
    })
}

impl Place {
    /// The room in the colo of a request, as it is at this moment. `room` is the room with its events.
    pub fn new(room: &Room, colo: String, host: &str, env: &Env, settings: &Settings) -> Self {
        let deadline_ms = settings.object_deadline_ms;
        let steered = steered(room);
        let changing = steered.as_deref().unwrap_or(room);
        let room = changing.at(time_in(&room.name)).0.clone();
        Self { room, steered, colo, host: host.to_owned(), env: env.clone(), deadline_ms }
    }

    /// Looks again at what operators have changed. `deployed` is the room as it is deployed. Returns whether something
    /// has.
    pub fn renew(&mut self, deployed: &Room) -> bool {
        let steered = steered(deployed);
        // It is made once per version.
        let is_same = match (&steered, &self.steered) {
            (Some(now), Some(before)) => Rc::ptr_eq(now, before),
            (now, before) => now.is_none() && before.is_none(),
        };
        if is_same {
            return false;
        }
        self.steered = steered;
        let changing = self.steered.as_deref().unwrap_or(deployed);
        self.room = changing.at(time_in(&deployed.name)).0.clone();
        true
    }

    /// What a visitor who is not in has to do to hear what is new. Who asks must call [`Place::hear`].
    pub fn hears(&self) -> Hears {
        let time = now();
        let hears = self.with(|worker| {
            if worker.controller.begin_refresh(time) {
                Hears::Asks
            } else if worker.controller.is_refreshing(self.deadline_ms, time) {
                Hears::Waits
            } else {
                Hears::Knows
            }
        });
        hears.unwrap_or(Hears::Knows)
    }

    /// Asks the data center what is new, or waits for the answer to somebody else's question.
    pub async fn hear(&self, hears: Hears) {
        match hears {
            Hears::Knows => {}
            Hears::Asks => {
                // Where nothing is known the data center may have to be made first.
                let patience = if self.known().is_some() { 1 } else { COLD_START_FACTOR };
                self.hear_within(patience * self.deadline_ms).await;
            }
            Hears::Waits => {
                let is_asking = || {
                    let time = now();
                    self.with(|worker| worker.controller.is_refreshing(self.deadline_ms, time))
                        .unwrap_or(false)
                };
                while is_asking() {
                    pause(POLL_MS).await;
                }
            }
        }
    }

    async fn hear_within(&self, deadline_ms: u64) {
        let heard = self.ask_data_center(deadline_ms).await;
        let _ = self.with(|worker| worker.controller.end_refresh(heard, now()));
    }

    /// Asks behind the visitor's back, if it is time to. `inside`: the visitor is in, so there is no haste.
    pub fn listen(&self, inside: bool, context: &Context) {
        let time = now();
        let listens = self.with(|worker| {
            if inside {
                worker.controller.begin_background_refresh(time)
            } else {
                worker.controller.begin_refresh(time)
            }
        });
        if listens.unwrap_or(false) {
            let here = self.clone();
            context.wait_until(async move {
                here.hear_within(REPORT_DEADLINE_MS).await;
                here.report_what_is_due().await;
            });
        }
    }

    /// What was noted for later is due now if an operator has begun to look.
    async fn report_what_is_due(&self) {
        let time = self.time();
        if let Ok(Some(wait)) = self.with(|worker| worker.outbox.announce(time)) {
            self.clone().report(wait).await;
        }
    }

    /// Works with this worker's memory of the room. Never held over an `await`.
    pub fn with<T>(&self, work: impl FnOnce(&mut RoomWorker) -> T) -> Result<T> {
        WORKERS.with_borrow_mut(|workers| {
            let known =
                workers.iter_mut().find(|((room, colo), _)| *room == self.room.name && *colo == self.colo);
            if let Some((_, worker)) = known {
                return Ok(work(worker));
            }
            if workers.len() >= MAX_ROOM_WORKERS
                && let Some(other) = workers.keys().next().cloned()
            {
                workers.remove(&other);
            }
            let mut worker = RoomWorker::new(random_id()?, self.deadline_ms);
            let done = work(&mut worker);
            workers.insert((self.room.name.clone(), self.colo.clone()), worker);
            Ok(done)
        })
    }

    fn known(&self) -> Option<Clocked> {
        self.with(|worker| worker.controller.state().cloned()).ok().flatten()
    }

    /// The time to go by, in milliseconds since the epoch: this worker's clock, corrected where it is far off.
    pub fn time(&self) -> u64 {
        let own = now();
        self.with(|worker| worker.controller.time(own)).unwrap_or(own)
    }

    /// The state key from this isolate's memory, else from the colo's cache. `None` when neither has one.
    pub async fn refresh_state(&self) -> Option<Clocked> {
        let time = now();
        let looks = self.with(|worker| worker.controller.begin_cache_read(time)).unwrap_or(false);
        if looks && let Some(Some(cached)) = within(CACHE_DEADLINE_MS, self.cached()).await {
            self.keep(cached);
        }
        self.known()
    }

    /// The state key for somebody who waits: from the data center, if this worker's is too old. Keeps what comes.
    pub async fn state_to_tell(&self) -> Option<Clocked> {
        let time = now();
        if self.with(|worker| worker.controller.begin_state_call(&self.room, time)).unwrap_or(false) {
            self.ask_data_center(self.deadline_ms).await;
        }
        let time = now();
        self.with(|worker| worker.controller.state_to_tell(time).cloned()).ok().flatten()
    }

    /// Asks the data center for the state key, and keeps it, for the colo's other isolates too. Returns whether it has
    /// answered.
    async fn ask_data_center(&self, deadline_ms: u64) -> bool {
        let name = colo_object(&self.room.name, &self.colo);
        let request = StateRequest {
            v: VERSION,
            minute: minute_of(now()),
            given: None,
            colo: String::new(),
            leases: 0,
        };
        let answer: Result<StateAnswer> =
            call(&self.env, DATA_CENTER, &name, STATE, &request, deadline_ms).await;
        match answer {
            Ok(StateAnswer { state: Some(key), .. }) => {
                self.keep(Clocked { key: key.clone(), received_at: now() });
                self.put_into_cache(key).await;
                true
            }
            Ok(_) => true,
            Err(error) => {
                log_error(&format!("state key: {error}"));
                false
            }
        }
    }

    fn keep(&self, state: Clocked) {
        let time = now();
        let _ = self.with(|worker| {
            worker.controller.learn(state);
            if worker.controller.watched() {
                worker.outbox.hurry(time);
            }
        });
    }

    /// The cache is shared by a colo's isolates. Where it does nothing, all of this still works.
    fn cache_key(&self) -> String {
        format!("https://{}/__anteroom/state/{}/{}", self.host, self.room.name, self.colo)
    }

    async fn cached(&self) -> Option<Clocked> {
        let mut response = Cache::open(CACHE.to_owned()).await.get(self.cache_key(), false).await.ok()??;
        let bytes = response.bytes().await.ok()?;
        let kept_at = response.headers().get(KEPT_AT).ok()??.parse().ok()?;
        let answer: StateAnswer = wire::decode(&bytes).ok()?;
        answer.state.map(|key| Clocked { key, received_at: kept_at })
    }

    async fn put_into_cache(&self, key: StateKey) {
        let put = async {
            let headers = Headers::new();
            headers.set("cache-control", &format!("max-age={CACHE_SECONDS}"))?;
            headers.set(KEPT_AT, &now().to_string())?;
            let answer = StateAnswer { v: VERSION, state: Some(key) };
            let response =
                Response::from_bytes(wire::encode(&answer).map_err(unreadable)?)?.with_headers(headers);
            Cache::open(CACHE.to_owned()).await.put(self.cache_key(), response).await
        };
        // A cache that refuses is no harm: each isolate then gets its state key with its own reports.
        let _ = put.await;
    }

    /// The lot of a request, where the order is random.
    pub fn draw(&self, key: &DrawKey, standing: &Standing) -> Option<Draw> {
        let time = self.time();
        self.with(|worker| worker.controller.draw(&self.room, key, standing, time)).ok().flatten()
    }

    /// Judges a request, asking objects where that is needed. What comes is the last step: pass, enter or wait.
    /// `address` is that of a newcomer, as a key, where the owner wants one place per address; else 0.
    pub async fn judge(&self, standing: &Standing, id: u64, address: u64) -> Result<Step> {
        let time = self.time();
        if self.with(|worker| worker.addresses.claim(address, id, time))? != 0 {
            return Ok(Step::Wait);
        }
        let mut step = self.with(|worker| worker.controller.judge(&self.room, standing, id, time))?;
        while let Step::Ask(whom, wanted) = step {
            let outcome = self.ask(whom, (wanted, address)).await;
            let time = self.time();
            if self.is_taken(address, id) {
                return Ok(Step::Wait);
            }
            step = self.with(|worker| {
                worker.controller.answered(&self.room, standing, (whom, wanted), outcome, time)
            })?;
        }
        Ok(step)
    }

    /// Whether it is somebody else's turn at a newcomer's address, as far as this worker knows.
    pub fn is_taken(&self, address: u64, id: u64) -> bool {
        let time = self.time();
        self.with(|worker| worker.addresses.holder(address, id, time) != 0).unwrap_or(false)
    }

    /// Asks an object by way of this worker's desk. `None` when the object does not answer.
    fn ask(&self, whom: Whom, wanted: (NumberAsk, u64)) -> LocalBoxFuture<Option<Outcome>> {
        let here = self.clone();
        let (binding, name, desk): (_, _, fn(&mut RoomWorker) -> &mut NumberBatcher) = match whom {
            Whom::Counter => {
                (COUNTER, colo_object(&here.room.name, &here.colo), |worker| &mut worker.counter_desk)
            }
            Whom::Anywhere => (ANYWHERE, here.room.name.clone(), |worker| &mut worker.anywhere_desk),
        };
        Box::pin(async move {
            let (place, knows) =
                here.with(|worker| (desk(worker).join(wanted), worker.controller.state().is_some())).ok()?;
            let place = place?;
            let deadline_ms = if knows { here.deadline_ms } else { COLD_START_FACTOR * here.deadline_ms };
            let give_up = now() + 2 * deadline_ms;
            loop {
                match here.with(|worker| desk(worker).turn(place, now())).ok()? {
                    Turn::Done(outcome) => return outcome,
                    Turn::Lead(lead, batch) => {
                        let asks = batch.into_iter().map(|(_, ask)| ask).collect();
                        let outcomes = here.take(binding, &name, asks, deadline_ms).await;
                        here.with(|worker| desk(worker).finish(lead, outcomes, now())).ok()?;
                    }
                    Turn::Later if now() >= give_up => return None,
                    Turn::Later => pause(POLL_MS).await,
                }
            }
        })
    }

    /// Calls Counter or Anywhere for visitors. With a call to the Counter go this worker's own tickets.
    async fn take(
        &self,
        binding: &'static str,
        name: &str,
        asks: Vec<(NumberAsk, u64)>,
        deadline_ms: u64,
    ) -> Option<Vec<Outcome>> {
        let time = self.time();
        let lends = binding == COUNTER && self.room.slot_strategy == SlotStrategy::Leases;
        let loan = if lends {
            self.with(|worker| worker.controller.loan_ask(worker.outbox.worker(), time)).ok()
        } else {
            None
        };
        let (asks, addresses) = asks.into_iter().unzip();
        let addresses = if self.room.one_place_per_address { addresses } else { Vec::new() };
        let steering = self.with(|worker| worker.controller.overrides().clone()).unwrap_or_default();
        let message = Take { v: VERSION, asks, loan, addresses, steering };
        self.count(if binding == COUNTER { Count::CounterCalls } else { Count::AnywhereCalls });
        let taken: Result<Taken> = call(&self.env, binding, name, TAKE, &message, deadline_ms).await;
        let taken = taken.map_err(|error| log_error(&error.to_string())).ok();
        if lends {
            let time = self.time();
            let lent = taken.as_ref().and_then(|taken| taken.lent);
            let _ = self.with(|worker| worker.controller.lent(lent, time));
        }
        let taken = taken?;
        let time = self.time();
        let _ = self.with(|worker| {
            for (address, holder) in
                message.addresses.iter().zip(taken.holders).filter(|(_, holder)| *holder != 0)
            {
                worker.addresses.learn(*address, holder, time);
            }
        });
        Some(taken.outcomes)
    }

    /// Sees to tickets of this worker's own, after the response, if it needs some.
    pub fn refill(&self, context: &Context) {
        let time = self.time();
        if self.with(|worker| worker.controller.refill(&self.room, time)).unwrap_or(false) {
            let here = self.clone();
            let name = colo_object(&self.room.name, &self.colo);
            context.wait_until(async move {
                here.take(COUNTER, &name, Vec::new(), here.deadline_ms).await;
            });
        }
    }

    /// The origin is in trouble: sees to a report soon, though nobody checks in.
    pub fn note_trouble(&self, context: &Context) {
        let time = self.time();
        let noted = self.with(|worker| {
            worker.outbox.note_trouble(time);
            worker.outbox.announce(time)
        });
        if let Ok(Some(wait)) = noted {
            let place = self.clone();
            context.wait_until(async move { place.report(wait).await });
        }
    }

    /// Counts what goes along with the next report.
    fn count(&self, count: Count) {
        let _ = self.with(|worker| worker.outbox.count(count));
    }

    /// Notes a check-in and sees to its report after the response. `rehearsal`: the visitor is one of a rehearsal.
    pub fn note(&self, check_in: CheckIn, rehearsal: bool, context: &Context) {
        let time = self.time();
        let noted = self.with(|worker| {
            match check_in {
                CheckIn::Enter { .. } if rehearsal => worker.outbox.count(Count::RehearsalNewUsers),
                CheckIn::Wait { from: None, .. } if rehearsal => worker.outbox.count(Count::RehearsalJoins),
                _ => {}
            }
            let calm = worker.controller.level() == Level::Calm && worker.controller.watched();
            let level = if calm { Level::Busy } else { worker.controller.level() };
            worker.outbox.note(&self.room, check_in, level, time);
            worker.outbox.announce(time)
        });
        if let Ok(Some(wait)) = noted {
            let place = self.clone();
            context.wait_until(async move { place.report(wait).await });
        }
        if check_in.is_last_moment(&self.room) {
            let place = self.clone();
            context.wait_until(async move {
                let hold = HoldSessions { v: VERSION, sessions: 1 };
                for _ in 0..HOLD_TRIES {
                    place.count(Count::AnywhereCalls);
                    let answer: Result<()> =
                        call(&place.env, ANYWHERE, &place.room.name, HOLD, &hold, place.deadline_ms).await;
                    match answer {
                        Ok(()) => break,
                        Err(error) => log_error(&error.to_string()),
                    }
                }
            });
        }
    }

    /// Reports after a while, and again until everything noted meanwhile has been reported.
    async fn report(self, mut wait: u64) {
        // A failed report is repeated by this request for as long as it may live, then by the next visitor's.
        for _ in 0..REPORT_TRIES {
            if wait > 0 {
                pause(wait).await;
            }
            let time = self.time();
            let report = self.with(|worker| worker.outbox.is_due(time).then(|| worker.outbox.report(time)));
            let Some(report) = report.ok().flatten() else {
                // An earlier report has taken it all along.
                return;
            };
            let report = WorkerReport { origin: in_flight::report(&self.room), ..report };
            let name = colo_object(&self.room.name, &self.colo);
            let answer: Result<WorkerAnswer> =
                call(&self.env, DATA_CENTER, &name, REPORT, &report, REPORT_DEADLINE_MS).await;
            match answer {
                Ok(answer) => {
                    let _ = self.with(|worker| worker.outbox.answered(&answer));
                    if let Some(key) = answer.state {
                        self.put_into_cache(key.clone()).await;
                        self.keep(Clocked { key, received_at: now() });
                    }
                }
                Err(error) => log_error(&format!("report: {error}")),
            }
            let time = self.time();
            match self.with(|worker| worker.outbox.announce(time)) {
                Ok(Some(next)) => wait = next.max(50),
                _ => return,
            }
        }
    }
}

impl RoomWorker {
    fn new(worker: u64, deadline_ms: u64) -> Self {
        let replace_after = COLD_START_FACTOR * deadline_ms + 100;
        Self {
            controller: AdmissionController::default(),
            outbox: Outbox::new(worker),
            counter_desk: Batcher::new(replace_after),
            anywhere_desk: Batcher::new(replace_after),
            addresses: Addresses::default(),
            steered: None,
        }
    }
}
