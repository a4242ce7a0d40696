//! Workers: isolates as the traffic needs them, with the machines of visits and tasks; each colo with a clock and a cache.

use std::collections::VecDeque;
use std::rc::Rc;

use anteroom::admission::Clocked;
use anteroom::check_in::CheckIn;
use anteroom::machines::Call;
use anteroom::machines::worker::{
    self as machine, CACHE_TTL_MS, Outcome, POLL_MS, Task, Visit, WorkerContext, WorkerEffect, WorkerInput,
};
use anteroom::origin::OriginMonitor;
use anteroom::protocol::{Answer, Object};
use anteroom::room::Room;
use anteroom::time::Steady;
use fastrand::Rng;
use rustc_hash::FxHashMap;

use super::geography::Ways;
use super::network::Caller;
use super::objects::{ANYWHERE, GLOBAL, counter_of, data_center_of};
use super::visitors::Request;
use super::{Event, Planet, Setup};
use crate::literal;

/// How many calls of one visit or task are told apart.
const CALLS: u32 = 1 << 8;

/// The most isolates that one colo has.
const MOST_ISOLATES: usize = 64;
/// What goes on after a response may go on for so long, in milliseconds: then the platform ends it.
const TASK_MS: u64 = 30_000;
/// Time after which nothing goes on any more in an isolate that gets no requests, in milliseconds.
const RETIRED_MS: u64 = 60_000;

pub(super) struct Colo {
    pub(super) name: String,
    pub(super) skew: i64,
    pub(super) ways: Ways,
    pub(super) workers: Vec<Worker>,
    /// Those of them that get requests: as many of the first ones as are needed.
    serving: Vec<u16>,
    /// Those that ended their last requests, and when they were told to.
    retired: VecDeque<(u64, u16)>,
    traffic: Traffic,
    /// The state key that a worker has put into the colo's cache, and when that was by the platform's clock.
    cached: Option<Clocked>,
    pub(super) dead: bool,
}

/// How many requests come to a colo.
#[derive(Default)]
struct Traffic {
    /// The running second, and how many have come in it.
    second: u64,
    requests: u32,
    /// How many came in the seconds before, the last ones counting most.
    per_second: f64,
}

impl Traffic {
    /// A request comes. Returns how many are to be served in a second.
    fn comes(&mut self, now: u64) -> f64 {
        let second = now / 1_000;
        if second != self.second {
            let silent = (second - self.second - 1).min(100) as i32;
            self.per_second = (self.per_second * 0.9 + f64::from(self.requests) * 0.1) * 0.9_f64.powi(silent);
            (self.second, self.requests) = (second, 0);
        }
        self.requests += 1;
        self.per_second.max(self.requests.into())
    }
}

pub(super) struct Worker {
    pub(super) machine: machine::Worker,
    clock: Steady,
    /// It is 0.1.0.
    pub(super) old: bool,
    pub(super) origin: OriginMonitor,
    /// Visits and tasks that go on.
    going: FxHashMap<u32, Going>,
    last: u32,
    /// Those that wait for what others bring.
    awaiting: Vec<u32>,
    /// Calls that have not ended, by their visit or task.
    calls: Vec<u32>,
    /// After so long without a request it is evicted, in milliseconds; and when that will be.
    idle_ms: u64,
    evicted_at: u64,
}

/// A visit or task that goes on.
struct Going {
    work: Work,
    /// When the platform ends it.
    ends_at: u64,
    /// When it is told the time.
    wake_at: u64,
    /// Since when it looks whether others have brought what it waits for.
    awaits_since: Option<u64>,
}

enum Work {
    Visit(Box<(Visit, Request)>),
    Task(Task),
}

impl Colo {
    pub(super) fn new(index: usize, ways: Ways, setup: &Setup, rng: &mut Rng) -> Self {
        let skew =
            if setup.skew_ms == 0 { 0 } else { rng.i64(-(setup.skew_ms as i64)..=setup.skew_ms as i64) };
        Self {
            name: format!("C{index:03}"),
            skew,
            ways,
            workers: Vec::new(),
            serving: Vec::new(),
            retired: VecDeque::new(),
            traffic: Traffic::default(),
            cached: None,
            dead: false,
        }
    }
}

/// What came of telling a visit or task something.
#[derive(Default)]
struct Told {
    outcome: Option<Box<Outcome>>,
    is_over: bool,
    /// When to tell it the time.
    wake_at: u64,
    /// It waits for what others bring.
    awaits: bool,
}

/// A visit or task: in which colo and worker, and which.
type Place = (u16, u16, u32);

impl Planet {
    /// The isolate that a request in a colo comes to. There are as many as the colo's traffic needs; a new one knows
    /// nothing, and one that had no request for too long is gone with all that it knew.
    pub(super) fn isolate(&mut self, colo: u16) -> u16 {
        let now = self.now();
        let here = &mut self.colos[usize::from(colo)];
        let wanted = (here.traffic.comes(now) / self.setup.requests_per_isolate).ceil() as usize;
        // Not as a usize: where that has 32 bits, as in the npm package, the same seed would give other numbers.
        let pick = self.rng.u64(0..wanted.clamp(1, MOST_ISOLATES) as u64) as usize;
        let pick = pick.min(here.serving.len());
        let evicted = |worker: u16| here.workers[usize::from(worker)].evicted_at <= now;
        let worker = match here.serving.get(pick).copied() {
            Some(worker) if !evicted(worker) => worker,
            Some(worker) => {
                self.new_isolate(colo, worker);
                worker
            }
            None => {
                let free = here.retired.front().is_some_and(|(since, _)| *since + RETIRED_MS <= now);
                let free = if free { here.retired.pop_front() } else { None };
                let worker = free.map_or(here.workers.len() as u16, |(_, worker)| worker);
                here.serving.push(worker);
                self.new_isolate(colo, worker);
                worker
            }
        };
        let here = self.worker(colo, worker);
        // Not before what goes on after the response.
        here.evicted_at = now + here.idle_ms.max(TASK_MS);
        worker
    }

    /// An isolate begins, in the place of another one or behind all others.
    fn new_isolate(&mut self, colo: u16, worker: u16) {
        let idle_ms = self.setup.isolate_idle_seconds * 1_000;
        let (id, idle_ms) = (self.chance.u64(1..), self.chance.u64(idle_ms / 2..=idle_ms * 3 / 2));
        let here = &mut self.colos[usize::from(colo)];
        let machine =
            machine::Worker::new(id, Rc::clone(&self.room), here.name.clone(), self.setup.deadline_ms)
                .in_region(here.ways.region);
        let before = here.workers.get(usize::from(worker));
        let isolate = Worker {
            machine: if self.literal { machine.judging_by(literal::judge) } else { machine },
            clock: Steady::new(),
            old: self.deploys_old,
            origin: OriginMonitor::new(&self.room),
            going: FxHashMap::default(),
            // Answers to what another one has asked are not for this one.
            last: before.map_or(0, |before| before.last),
            awaiting: Vec::new(),
            calls: Vec::new(),
            idle_ms,
            evicted_at: 0,
        };
        match here.workers.get_mut(usize::from(worker)) {
            Some(before) => *before = isolate,
            None => here.workers.push(isolate),
        }
    }

    /// A colo's isolates get no more requests, and end those that they have: there is a new version.
    pub(super) fn retire(&mut self, colo: u16) {
        let now = self.now();
        let here = &mut self.colos[usize::from(colo)];
        here.retired.extend(here.serving.drain(..).map(|worker| (now, worker)));
    }

    /// The time by the clock of an isolate.
    pub(super) fn local(&mut self, (colo, worker): (u16, u16)) -> u64 {
        let now = self.now();
        let here = &mut self.colos[usize::from(colo)];
        here.workers[usize::from(worker)].clock.read(now.saturating_add_signed(here.skew))
    }

    /// When the clock of an isolate says so.
    fn true_time(&self, (colo, worker): (u16, u16), local: u64) -> u64 {
        let here = &self.colos[usize::from(colo)];
        let clock = &here.workers[usize::from(worker)].clock;
        clock.platform_time(local).saturating_add_signed(-here.skew)
    }

    pub(super) fn worker(&mut self, colo: u16, worker: u16) -> &mut Worker {
        &mut self.colos[usize::from(colo)].workers[usize::from(worker)]
    }

    /// Lets a worker do something on the way.
    pub(super) fn with_worker<T>(
        &mut self,
        (colo, worker): (u16, u16),
        work: impl FnOnce(&mut machine::Worker, u64, &mut Vec<WorkerEffect>) -> T,
    ) -> T {
        let own = self.local((colo, worker));
        let mut effects = self.worker_effects.pop().unwrap_or_default();
        let done = work(&mut self.worker(colo, worker).machine, own, &mut effects);
        for effect in effects.drain(..) {
            if let WorkerEffect::Start(task) = effect {
                self.begin_task(colo, worker, task);
            }
        }
        self.worker_effects.push(effects);
        done
    }

    /// A check-in is noted, by the room and the time as the worker knows them.
    pub(super) fn note(&mut self, at: (u16, u16), check_in: impl FnOnce(&Room, u64) -> CheckIn) {
        self.with_worker(at, |worker, now, effects| {
            let (whole, time) = (worker.room(), worker.time(now));
            let room = whole.at(time).0;
            worker.note(room, check_in(room, time), false, now, effects);
        });
    }

    /// Somebody comes who is not in.
    pub(super) fn begin_visit(&mut self, request: Request, mut visit: Visit) {
        let place = self.new_place(request.colo, request.worker);
        let told = self.tell_worker(place, WorkerInput::Begin, |worker, context, input, effects| {
            visit.handle(worker, context, input, effects);
        });
        if let Some(outcome) = told.outcome {
            self.visited(&request, *outcome);
        } else {
            self.visit_goes_on(&request);
            let ends_at = self.hangs_up_at(&request);
            self.goes_on(place, Work::Visit(Box::new((visit, request))), ends_at, None, &told);
        }
    }

    fn begin_task(&mut self, colo: u16, worker: u16, mut task: Task) {
        let place = self.new_place(colo, worker);
        let told = self.tell_worker(place, WorkerInput::Begin, |worker, context, input, effects| {
            task.handle(worker, context, input, effects);
        });
        if !told.is_over {
            self.goes_on(place, Work::Task(task), self.now() + TASK_MS, None, &told);
        }
    }

    fn new_place(&mut self, colo: u16, worker: u16) -> Place {
        let here = self.worker(colo, worker);
        here.last = (here.last + 1) % (u32::MAX / CALLS);
        (colo, worker, here.last)
    }

    /// A visit or task goes on as it was told.
    fn goes_on(&mut self, place: Place, work: Work, ends_at: u64, awaits_since: Option<u64>, told: &Told) {
        let (colo, worker, id) = place;
        let now = self.now();
        let awaits_since = told.awaits.then(|| awaits_since.unwrap_or(now));
        let here = self.worker(colo, worker);
        if told.awaits {
            here.awaiting.push(id);
        }
        here.going.insert(id, Going { work, ends_at, wake_at: told.wake_at, awaits_since });
        if told.wake_at > 0 {
            self.clockwork.at(told.wake_at, Event::Wake { colo, worker, id });
        }
    }

    /// Whether a call has not ended.
    pub(super) fn worker_waits(&self, colo: u16, worker: u16, call: u32) -> bool {
        self.colos[usize::from(colo)].workers[usize::from(worker)].calls.contains(&call)
    }

    /// A call of a worker has ended. Each ends once.
    pub(super) fn worker_hears(&mut self, colo: u16, worker: u16, call: u32, answer: Option<Answer>) {
        let here = self.worker(colo, worker);
        let Some(open) = here.calls.iter().position(|open| *open == call) else { return };
        here.calls.swap_remove(open);
        let is_for_others = !matches!(answer, Some(Answer::DataCenterReport(_) | Answer::AnywhereReserve(_)));
        let input = WorkerInput::Answered { call: (call % CALLS).into(), answer };
        self.tell_going((colo, worker, call / CALLS), input);
        if is_for_others {
            self.poll(colo, worker);
        }
    }

    /// Those of a worker who wait for others look whether it is their turn.
    fn poll(&mut self, colo: u16, worker: u16) {
        let now = self.now();
        let here = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        for id in &here.awaiting {
            let Some(Going { wake_at, awaits_since: Some(since), .. }) = here.going.get_mut(id) else {
                continue;
            };
            let looks_at = now + POLL_MS - (now - *since) % POLL_MS;
            if looks_at < *wake_at {
                *wake_at = looks_at;
                self.clockwork.at(looks_at, Event::Wake { colo, worker, id: *id });
            }
        }
    }

    /// It is time for a visit or task.
    pub(super) fn wake(&mut self, place: Place) {
        let now = self.now();
        let (colo, worker, id) = place;
        if self.worker(colo, worker).going.get(&id).is_some_and(|going| going.wake_at == now) {
            self.tell_going(place, WorkerInput::Time);
        }
    }

    fn tell_going(&mut self, place: Place, input: WorkerInput) {
        let (colo, worker, id) = place;
        let (now, dead) = (self.now(), self.colos[usize::from(colo)].dead);
        let here = self.worker(colo, worker);
        let Some(Going { mut work, ends_at, awaits_since, .. }) = here.going.remove(&id) else { return };
        if awaits_since.is_some() {
            here.awaiting.retain(|other| *other != id);
        }
        // What goes on after a response ends with its colo, too.
        if now >= ends_at || dead && matches!(work, Work::Task(_)) {
            if let Work::Visit(visit) = work {
                self.hung_up(&visit.1);
            }
            return;
        }
        let told = self.tell_worker(place, input, |worker, context, input, effects| match &mut work {
            Work::Visit(visit) => visit.0.handle(worker, context, input, effects),
            Work::Task(task) => task.handle(worker, context, input, effects),
        });
        match (told.outcome, work) {
            (Some(outcome), Work::Visit(visit)) => self.late_visited(&visit.1, *outcome),
            (None, work) if !told.is_over => {
                self.goes_on(place, work, ends_at, awaits_since, &Told { outcome: None, ..told });
            }
            _ => {}
        }
    }

    /// Tells a visit or task something, and does what it says.
    fn tell_worker(
        &mut self,
        place: Place,
        input: WorkerInput,
        mut handle: impl FnMut(&mut machine::Worker, &mut WorkerContext<'_>, WorkerInput, &mut Vec<WorkerEffect>),
    ) -> Told {
        let (colo, worker, _) = place;
        let now = self.local((colo, worker));
        let mut effects = self.worker_effects.pop().unwrap_or_default();
        let mut told = Told::default();
        let mut input = Some(input);
        while let Some(next) = input.take() {
            let here = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
            let mut context = WorkerContext { draw_key: &self.draw_key, origin: &mut here.origin, now };
            handle(&mut here.machine, &mut context, next, &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    WorkerEffect::Call(call) => self.worker_calls(place, call),
                    WorkerEffect::ReadCache => {
                        input = Some(WorkerInput::Cached(self.cached((colo, worker), now)));
                    }
                    WorkerEffect::WriteCache(key) => {
                        let received_at = self.worker(colo, worker).clock.platform_time(now);
                        self.colos[usize::from(colo)].cached = Some(Clocked { key: *key, received_at });
                    }
                    WorkerEffect::Await { until } => {
                        (told.awaits, told.wake_at) = (true, self.true_time((colo, worker), until));
                    }
                    WorkerEffect::Sleep { until } => told.wake_at = self.true_time((colo, worker), until),
                    WorkerEffect::Start(task) => self.begin_task(colo, worker, task),
                    WorkerEffect::Done(outcome) => told.outcome = Some(outcome),
                    WorkerEffect::End => told.is_over = true,
                    // No scenario has Turnstile.
                    WorkerEffect::Verify => {}
                }
            }
        }
        self.worker_effects.push(effects);
        told
    }

    /// What the colo's cache holds. It answers at once.
    fn cached(&self, (colo, worker): (u16, u16), now: u64) -> Option<Box<Clocked>> {
        let here = &self.colos[usize::from(colo)];
        let clock = &here.workers[usize::from(worker)].clock;
        let cached = here.cached.as_ref()?;
        let received_at = clock.own_time(cached.received_at);
        (now < received_at + CACHE_TTL_MS).then(|| Box::new(Clocked { received_at, ..cached.clone() }))
    }

    fn worker_calls(&mut self, (colo, worker, id): Place, call: Call) {
        let to = match call.object() {
            Object::Counter => counter_of(colo),
            Object::DataCenter => data_center_of(colo),
            Object::Anywhere => ANYWHERE,
            Object::Global => GLOBAL,
        };
        let number = id * CALLS + call.number as u32;
        self.worker(colo, worker).calls.push(number);
        self.call(Caller::Worker { colo, worker, call: number }, to, call.request, call.deadline_ms);
    }
}
