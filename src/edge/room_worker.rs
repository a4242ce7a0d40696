//! The workers of this isolate, one for each room and colo that it serves, and what their machines do.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use futures_channel::oneshot;
use litemap::LiteMap;
use worker::{Cache, Context, Headers, Response, Result};

use super::calls::{Local, post, unreadable};
use super::clock::{now, own_time, pause, platform_time, random_id, within};
use super::platform::{likely_colo, log_error, region};
use super::settings::Settings;
use super::{in_flight, turnstile};
use crate::admission::{Clocked, StateKey};
use crate::check_in::CheckIn;
use crate::machines::Call;
use crate::machines::worker::{
    CACHE_DEADLINE_MS, CACHE_TTL_MS, Outcome, POLL_MS, Task, Visit, Visitor, Worker, WorkerContext,
    WorkerEffect, WorkerInput,
};
use crate::protocol::messages::{StateAnswer, VERSION};
use crate::protocol::{Answer, wire};
use crate::room::Room;
use crate::ticket::Ticket;
use crate::turnstile::Verdict;

/// Rooms times colos that one isolate keeps apart. An isolate serves one colo, so this is reached by tests alone; at
/// the bound the memory of another one is dropped, which costs it one fetch of the state key.
const MAX_WORKERS: usize = 256;
/// A cache of its own: nothing in it answers a visitor's request by its URL.
const CACHE: &str = "anteroom";
/// Header of a cached state key: when it was put there, in milliseconds since the epoch.
const KEPT_AT: &str = "anteroom-kept-at";

/// Where all ends at once, a visitor waits for the objects' storage no longer than this, in milliseconds.
const STORING_MS: u64 = 1_000;

thread_local! {
    static WORKERS: RefCell<LiteMap<(String, String), Worker>> = const { RefCell::new(LiteMap::new()) };
}

/// The settings have changed, as rooms are made at run time: all workers go by them from now on. One whose room is gone goes on
/// with it for those who are in it.
pub fn redeploy(settings: &Settings) {
    in_flight::redeploy(settings);
    WORKERS.with_borrow_mut(|workers| {
        for ((name, _), worker) in workers.iter_mut() {
            if let Some(room) = settings.rooms.get(name).filter(|room| **room != **worker.deployed()) {
                worker.redeploy(Rc::new(room.clone()));
            }
        }
    });
}

/// The room as operators have it, as far as is known in any colo; `None`: as deployed. It is made once per version.
pub fn steered(room: &Room) -> Option<Rc<Room>> {
    WORKERS.with_borrow_mut(|workers| {
        let known = workers.iter_mut().filter(|((name, _), _)| *name == room.name).map(|(_, worker)| worker);
        let worker = known.max_by_key(|worker| worker.controller().overrides().version)?;
        (!worker.controller().overrides().is_empty()).then(|| worker.room())
    })
}

/// Whether a worker is due to ask for updates of a room, in whichever colo it knows it.
pub fn is_refresh_due(room: &str) -> bool {
    let time = now();
    WORKERS.with_borrow(|workers| {
        let mut known = workers.iter().filter(|((name, _), _)| name == room).peekable();
        known.peek().is_none() || known.any(|(_, worker)| worker.is_refresh_due(time))
    })
}

/// A request has gone past a room. When a report must tell of it, `place` is asked where.
pub fn note_bypassed(
    room: &Room,
    request: &web_sys::Request,
    place: impl FnOnce(String) -> Place,
    context: &Context,
) {
    let (colo, time, mut effects) = (likely_colo(request), now(), Vec::new());
    let known = WORKERS.with_borrow_mut(|workers| {
        let known = workers.iter_mut().find(|((name, here), _)| *name == room.name && *here == colo);
        known.map(|(_, worker)| worker.note_bypassed(time, &mut effects)).is_some()
    });
    if known && effects.is_empty() {
        return;
    }
    let place = place(colo);
    if known {
        place.begin(effects, context);
    } else {
        place.tell(context, Worker::note_bypassed);
    }
}

/// The time to go by in a room, by what is known of the room in any colo: all of it comes from one Global. It is for
/// requests whose colo need not be known.
pub fn time_in(room: &str) -> u64 {
    let own = now();
    WORKERS.with_borrow(|workers| {
        let known = workers.iter().find(|((name, _), _)| name == room);
        known.map_or(own, |(_, worker)| worker.time(own))
    })
}

/// Whether the session of a room's ticket was ended, as far as is known in any colo.
pub fn is_ended(room: &str, id: u64) -> bool {
    WORKERS
        .with_borrow(|workers| workers.iter().any(|((name, _), worker)| name == room && worker.is_ended(id)))
}

/// Whether a ticket's place has moved on to another device, as far as is known in any colo.
pub fn has_moved(room: &str, ticket: &Ticket) -> bool {
    WORKERS.with_borrow(|workers| {
        workers.iter().any(|((name, _), worker)| name == room && worker.has_moved(ticket))
    })
}

/// The number of the last check-in of each of this isolate's workers.
pub fn noted() -> Vec<(u64, u64)> {
    WORKERS.with_borrow(|workers| {
        workers.values().map(|worker| (worker.outbox().worker(), worker.outbox().last())).collect()
    })
}

/// Waits until all of those are in storage, or for [`STORING_MS`].
pub async fn stored(noted: Vec<(u64, u64)>) {
    let is_stored = || {
        WORKERS.with_borrow(|workers| {
            workers.values().map(Worker::outbox).all(|outbox| {
                noted.iter().all(|(id, last)| outbox.worker() != *id || outbox.stored() >= *last)
            })
        })
    };
    let until = now() + STORING_MS;
    while !is_stored() && now() < until {
        pause(POLL_MS).await;
    }
}

/// Which room in which colo, and how to call its objects.
#[derive(Clone)]
pub struct Place {
    /// The name of the room.
    room: String,
    /// The colo of the request.
    colo: String,
    /// The host of the request: the cache is asked under a name that is the deployment's own.
    host: String,
    env: worker::Env,
    settings: Rc<Settings>,
}

/// What goes on in a worker.
enum Activity<'a> {
    Visit(&'a mut Visit, &'a web_sys::Request, &'a Context),
    Task(Task),
}

impl Place {
    /// A room in the colo of a request.
    pub fn new(room: &Room, colo: String, host: &str, env: &worker::Env, settings: &Rc<Settings>) -> Self {
        let settings = Rc::clone(settings);
        Self { room: room.name.clone(), colo, host: host.to_owned(), env: env.clone(), settings }
    }

    /// The name of the room.
    pub fn room(&self) -> &str {
        &self.room
    }

    /// Works with this worker's memory of the room. Never held over an `await`.
    fn with<T>(&self, work: impl FnOnce(&mut Worker) -> T) -> Result<T> {
        WORKERS.with_borrow_mut(|workers| {
            let known = workers.iter_mut().find(|((room, colo), _)| *room == self.room && *colo == self.colo);
            if let Some((_, worker)) = known {
                return Ok(work(worker));
            }
            if workers.len() >= MAX_WORKERS
                && let Some(other) = workers.keys().next().cloned()
            {
                workers.remove(&other);
            }
            let room = self.settings.rooms.get(&self.room).ok_or("there is no such room")?;
            let room = Rc::new(room.clone());
            let deadline_ms = self.settings.object_deadline_ms;
            let mut worker =
                Worker::new(random_id()?, room, self.colo.clone(), deadline_ms).in_region(region());
            let done = work(&mut worker);
            workers.insert((self.room.clone(), self.colo.clone()), worker);
            Ok(done)
        })
    }

    /// Gives the worker an input, and begins what is to be done after the response.
    fn tell<T>(
        &self,
        context: &Context,
        work: impl FnOnce(&mut Worker, u64, &mut Vec<WorkerEffect>) -> T,
    ) -> Option<T> {
        let (now, mut effects) = (now(), Vec::new());
        let done = self.with(|worker| work(worker, now, &mut effects)).ok();
        self.begin(effects, context);
        done
    }

    /// Begins what is to be done after the response.
    fn begin(&self, effects: Vec<WorkerEffect>, context: &Context) {
        for effect in effects {
            if let WorkerEffect::Start(task) = effect {
                self.start(task, context);
            }
        }
    }

    fn start(&self, task: Task, context: &Context) {
        let here = self.clone();
        context.wait_until(async move {
            if let Err(error) = here.run(&mut Activity::Task(task)).await {
                log_error(&error.to_string());
            }
        });
    }

    /// The time to go by, in milliseconds since the epoch: this worker's clock, corrected where it is far off.
    pub fn time(&self) -> u64 {
        let own = now();
        self.with(|worker| worker.time(own)).unwrap_or(own)
    }

    /// An active user's request. Returns the ticket, where this request moves it.
    pub fn pass(&self, room: &Room, ticket: Ticket, context: &Context) -> Option<Ticket> {
        self.tell(context, |worker, now, effects| worker.pass(room, ticket, now, effects)).flatten()
    }

    /// Notes a check-in and sees to its report after the response.
    pub fn note(&self, room: &Room, check_in: CheckIn, context: &Context) {
        self.tell(context, |worker, now, effects| worker.note(room, check_in, false, now, effects));
    }

    /// The origin is in trouble: sees to a report soon, though nobody checks in.
    pub fn note_trouble(&self, context: &Context) {
        self.tell(context, Worker::note_trouble);
    }

    /// Asks for updates after the response, if it is time to.
    pub fn refresh_in_background(&self, context: &Context) {
        self.tell(context, |worker, now, effects| worker.refresh_in_background(false, now, effects));
    }

    /// A visit of somebody who is not in: what comes of it, and the room, with its events, by which that was judged.
    ///
    /// It goes on though the visitor hangs up: others may wait for what it has asked for all of them.
    pub async fn visit(
        &self,
        visitor: Visitor,
        request: &web_sys::Request,
        context: &Rc<Context>,
    ) -> Result<(Outcome, Rc<Room>)> {
        let mut visit = Visit::new(visitor, self.with(Worker::room)?);
        let (here, request, inner) = (self.clone(), Clone::clone(request), Rc::clone(context));
        let (tell, told) = oneshot::channel();
        context.wait_until(async move {
            let outcome = here.run(&mut Activity::Visit(&mut visit, &request, &inner)).await;
            // Whoever has hung up does not want to know.
            let _ = tell.send(outcome.map(|outcome| (outcome, Rc::clone(visit.room()))));
        });
        let (outcome, room) = told.await.map_err(|_| "a visit broke off")??;
        Ok((*outcome.ok_or("a visit ended without an outcome")?, room))
    }

    /// Gives a visit or a task an input.
    fn step(&self, activity: &mut Activity<'_>, input: WorkerInput) -> Result<Vec<WorkerEffect>> {
        let mut effects = Vec::new();
        let settings = Rc::clone(&self.settings);
        self.with(|worker| {
            let room = Rc::clone(worker.deployed());
            in_flight::with_monitor(&room, |origin| {
                let mut context = WorkerContext { draw_key: &settings.draw_key, origin, now: now() };
                match activity {
                    Activity::Visit(visit, ..) => visit.handle(worker, &mut context, input, &mut effects),
                    Activity::Task(task) => task.handle(worker, &mut context, input, &mut effects),
                }
            });
        })?;
        Ok(effects)
    }

    /// Carries a visit or a task to its end. A request waits for its own calls and timers only: in a Worker it may not
    /// await another's.
    async fn run(&self, activity: &mut Activity<'_>) -> Result<Option<Box<Outcome>>> {
        let mut pending: Vec<Local<'_, WorkerInput>> = Vec::new();
        let mut input = WorkerInput::Begin;
        loop {
            let mut timer: Option<Local<'_, WorkerInput>> = None;
            let wait = |milliseconds: u64| -> Option<Local<'_, WorkerInput>> {
                Some(Box::pin(async move {
                    pause(milliseconds).await;
                    WorkerInput::Time
                }))
            };
            let effects = self.step(activity, input)?;
            for effect in effects {
                match effect {
                    WorkerEffect::Call(call) => pending.push(Box::pin(self.call(call))),
                    WorkerEffect::ReadCache => pending.push(Box::pin(async move {
                        let cached = within(CACHE_DEADLINE_MS, self.cached()).await;
                        WorkerInput::Cached(cached.flatten().map(Box::new))
                    })),
                    WorkerEffect::WriteCache(key) => self.write_cache(*key, activity).await,
                    WorkerEffect::Verify => {
                        if let Activity::Visit(visit, request, _) = activity {
                            let room = Rc::clone(visit.room());
                            let request = Clone::clone(*request);
                            pending.push(Box::pin(self.verify(room, request)));
                        }
                    }
                    WorkerEffect::Await { until } => {
                        timer = wait(until.saturating_sub(now()).clamp(1, POLL_MS));
                    }
                    WorkerEffect::Sleep { until } => timer = wait(until.saturating_sub(now())),
                    WorkerEffect::Start(task) => {
                        if let Activity::Visit(_, _, context) = activity {
                            self.start(task, context);
                        }
                    }
                    WorkerEffect::Done(outcome) => return Ok(Some(outcome)),
                    WorkerEffect::End => return Ok(None),
                }
            }
            if pending.is_empty() && timer.is_none() {
                return Ok(None);
            }
            input = first_of(&mut pending, &mut timer).await;
        }
    }

    async fn call(&self, call: Call) -> WorkerInput {
        let (object, route) = (call.object(), call.request.route());
        let answer = match call.request.encode() {
            Ok(body) => {
                let name = (call.name, "");
                post(self.env.clone(), object.binding(), name, route, body, call.deadline_ms).await
            }
            Err(error) => Err(unreadable(error)),
        };
        let answer = answer.and_then(|body| Answer::decode(object, route, &body).map_err(unreadable));
        let answer = answer.map_err(|error| log_error(&error.to_string())).ok();
        WorkerInput::Answered { call: call.number, answer }
    }

    async fn verify(&self, room: Rc<Room>, request: web_sys::Request) -> WorkerInput {
        let verdict = turnstile::verdict(&self.settings, &room, &request).await;
        WorkerInput::Verified(verdict.unwrap_or(Verdict::Again))
    }

    /// The cache is shared by a colo's isolates. Where it does nothing, all of this still works.
    fn cache_key(&self) -> String {
        format!("https://{}/__anteroom/state/{}/{}", self.host, self.room, self.colo)
    }

    async fn cached(&self) -> Option<Clocked> {
        let mut response = Cache::open(CACHE.to_owned()).await.get(self.cache_key(), false).await.ok()??;
        let bytes = response.bytes().await.ok()?;
        let kept_at = response.headers().get(KEPT_AT).ok()??.parse().ok()?;
        let answer: StateAnswer = wire::decode(&bytes).ok()?;
        answer.state.map(|key| Clocked { key, received_at: own_time(kept_at) })
    }

    /// No visitor waits for the cache to take something.
    async fn write_cache(&self, key: StateKey, activity: &Activity<'_>) {
        match activity {
            Activity::Visit(_, _, context) => {
                let here = self.clone();
                context.wait_until(async move { here.put_into_cache(key).await });
            }
            Activity::Task(_) => self.put_into_cache(key).await,
        }
    }

    async fn put_into_cache(&self, key: StateKey) {
        let put = async {
            let headers = Headers::new();
            headers.set("cache-control", &format!("max-age={}", CACHE_TTL_MS / 1_000))?;
            headers.set(KEPT_AT, &platform_time(now()).to_string())?;
            let answer = StateAnswer { v: VERSION, state: Some(key) };
            let response =
                Response::from_bytes(wire::encode(&answer).map_err(unreadable)?)?.with_headers(headers);
            Cache::open(CACHE.to_owned()).await.put(self.cache_key(), response).await
        };
        // A cache that refuses is no harm: each isolate then gets its state key with its own reports.
        let _ = put.await;
    }
}

/// What comes first: the end of something that is under way, or the timer's time.
async fn first_of(
    pending: &mut Vec<Local<'_, WorkerInput>>,
    timer: &mut Option<Local<'_, WorkerInput>>,
) -> WorkerInput {
    poll_fn(|context| {
        for index in 0..pending.len() {
            let Some(future) = pending.get_mut(index) else { break };
            if let Poll::Ready(input) = future.as_mut().poll(context) {
                drop(pending.swap_remove(index));
                return Poll::Ready(input);
            }
        }
        match timer {
            Some(timer) => timer.as_mut().poll(context),
            None => Poll::Pending,
        }
    })
    .await
}
