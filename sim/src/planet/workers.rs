//! Workers: the machines of visits and tasks, each worker with a clock, and each colo with a cache.

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
use fastrand::Rng;
use rustc_hash::FxHashMap;

use super::network::Caller;
use super::objects::{ANYWHERE, GLOBAL, counter_of, data_center_of};
use super::visitors::Request;
use super::{Event, Planet, Setup};
use crate::literal;

/// How many calls of one visit or task are told apart.
const CALLS: u32 = 1 << 8;

pub(super) struct Colo {
    pub(super) name: String,
    pub(super) skew: i64,
    pub(super) workers: Vec<Worker>,
    /// The state key that a worker has put into the colo's cache.
    cached: Option<Clocked>,
    /// One way between its `DataCenter` and Global, in milliseconds.
    pub(super) latency: u64,
    pub(super) dead: bool,
}

pub(super) struct Worker {
    pub(super) machine: machine::Worker,
    pub(super) origin: OriginMonitor,
    /// Visits and tasks that go on.
    going: FxHashMap<u32, Going>,
    last: u32,
    /// Those that wait for what others bring.
    awaiting: Vec<u32>,
    /// Calls that have not ended, by their visit or task.
    calls: Vec<u32>,
}

/// A visit or task that goes on.
struct Going {
    work: Work,
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
    pub(super) fn new(index: usize, room: &Rc<Room>, setup: &Setup, rng: &mut Rng) -> Self {
        let skew =
            if setup.skew_ms == 0 { 0 } else { rng.i64(-(setup.skew_ms as i64)..=setup.skew_ms as i64) };
        let name = format!("C{index:03}");
        Self {
            skew,
            workers: (0..setup.workers).map(|_| Worker::new(room, &name, setup, rng)).collect(),
            cached: None,
            latency: rng.u64(setup.global_ms.0..=setup.global_ms.1),
            dead: false,
            name,
        }
    }
}

impl Colo {
    /// The same colo, whose workers judge by `counters` as it reads.
    pub(super) fn literal(mut self) -> Self {
        let literal =
            |worker: Worker| Worker { machine: worker.machine.judging_by(literal::judge), ..worker };
        self.workers = self.workers.into_iter().map(literal).collect();
        self
    }
}

impl Worker {
    fn new(room: &Rc<Room>, colo: &str, setup: &Setup, rng: &mut Rng) -> Self {
        Self {
            machine: machine::Worker::new(rng.u64(1..), Rc::clone(room), colo.to_owned(), setup.deadline_ms),
            origin: OriginMonitor::new(room),
            going: FxHashMap::default(),
            last: 0,
            awaiting: Vec::new(),
            calls: Vec::new(),
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
    pub(super) fn worker(&mut self, colo: u16, worker: u16) -> &mut Worker {
        &mut self.colos[usize::from(colo)].workers[usize::from(worker)]
    }

    /// Lets a worker do something on the way.
    pub(super) fn with_worker<T>(
        &mut self,
        (colo, worker): (u16, u16),
        work: impl FnOnce(&mut machine::Worker, u64, &mut Vec<WorkerEffect>) -> T,
    ) -> T {
        let own = self.local(colo);
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
            self.goes_on(place, Work::Visit(Box::new((visit, request))), None, &told);
        }
    }

    fn begin_task(&mut self, colo: u16, worker: u16, mut task: Task) {
        let place = self.new_place(colo, worker);
        let told = self.tell_worker(place, WorkerInput::Begin, |worker, context, input, effects| {
            task.handle(worker, context, input, effects);
        });
        if !told.is_over {
            self.goes_on(place, Work::Task(task), None, &told);
        }
    }

    fn new_place(&mut self, colo: u16, worker: u16) -> Place {
        let here = self.worker(colo, worker);
        here.last = (here.last + 1) % (u32::MAX / CALLS);
        (colo, worker, here.last)
    }

    /// A visit or task goes on as it was told.
    fn goes_on(&mut self, place: Place, work: Work, awaits_since: Option<u64>, told: &Told) {
        let (colo, worker, id) = place;
        let now = self.now();
        let awaits_since = told.awaits.then(|| awaits_since.unwrap_or(now));
        let here = self.worker(colo, worker);
        if told.awaits {
            here.awaiting.push(id);
        }
        here.going.insert(id, Going { work, wake_at: told.wake_at, awaits_since });
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
        let shared = !matches!(answer, Some(Answer::DataCenterReport(_) | Answer::AnywhereReserve(_)));
        let input = WorkerInput::Answered { call: (call % CALLS).into(), answer };
        self.tell_going((colo, worker, call / CALLS), input);
        if shared {
            self.poll(colo, worker);
        }
    }

    /// Those of a worker who wait for others look the next time whether it is there.
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
        let dead = self.colos[usize::from(colo)].dead;
        let here = self.worker(colo, worker);
        let Some(Going { mut work, awaits_since, .. }) = here.going.remove(&id) else { return };
        if awaits_since.is_some() {
            here.awaiting.retain(|other| *other != id);
        }
        // What goes on after a response ends with its colo.
        if dead && matches!(work, Work::Task(_)) {
            return;
        }
        let told = self.tell_worker(place, input, |worker, context, input, effects| match &mut work {
            Work::Visit(visit) => visit.0.handle(worker, context, input, effects),
            Work::Task(task) => task.handle(worker, context, input, effects),
        });
        match (told.outcome, work) {
            (Some(outcome), Work::Visit(visit)) => self.late_visited(&visit.1, *outcome),
            (None, work) if !told.is_over => {
                self.goes_on(place, work, awaits_since, &Told { outcome: None, ..told });
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
        let now = self.local(colo);
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
                    WorkerEffect::ReadCache => input = Some(WorkerInput::Cached(self.cached(colo, now))),
                    WorkerEffect::WriteCache(key) => {
                        let state = Clocked { key: *key, received_at: now };
                        self.colos[usize::from(colo)].cached = Some(state);
                    }
                    WorkerEffect::Await { until } => {
                        (told.awaits, told.wake_at) = (true, self.true_time(colo, until));
                    }
                    WorkerEffect::Sleep { until } => told.wake_at = self.true_time(colo, until),
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
    fn cached(&self, colo: u16, now: u64) -> Option<Box<Clocked>> {
        let cached = self.colos[usize::from(colo)].cached.as_ref()?;
        (now < cached.received_at + CACHE_TTL_MS).then(|| Box::new(cached.clone()))
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
