//! The room's machines, as they are told things one after another.
//!
//! Machines cannot be copied. So a state holds what each was told in its present life, and the machine is made of that anew.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use anteroom::admission::{Clocked, DrawKey};
use anteroom::config::Webhooks;
use anteroom::machines::worker::{
    Outcome, Task, Visit, Visitor, Worker, WorkerContext, WorkerEffect, WorkerInput,
};
use anteroom::machines::{
    Anywhere, Call, Context, Counter, DataCenter, Effect, Global, Input, MemoryRows, ObjectMachine, Outside,
    Stored,
};
use anteroom::origin::OriginMonitor;
use anteroom::room::Room;
use anteroom::ticket::Ticket;

/// Timeout of calls on the visitor's path, in milliseconds.
const DEADLINE_MS: u64 = 500;

/// Who takes part, with the data center.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are those of the machines")]
pub enum Actor {
    Anywhere,
    Global,
    Counter(u8),
    DataCenter(u8),
    Worker(u8),
}

impl Actor {
    /// The name of its data center; empty for those who serve all.
    pub fn colo(self) -> String {
        match self {
            Self::Anywhere | Self::Global => String::new(),
            Self::Counter(colo) | Self::DataCenter(colo) | Self::Worker(colo) => format!("C{colo}"),
        }
    }
}

/// What an actor is told.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// An object is told something.
    Object(Input),
    /// A worker gets a request.
    Visits(u64, Visitor),
    /// A worker gets a request of somebody who is in.
    Passes(Ticket),
    /// A request or task of a worker is told something.
    Work(u64, WorkerInput),
    /// The origin ends a session.
    Leaves(Ticket),
}

/// What an actor does, whatever it is.
#[derive(Debug)]
pub(crate) enum Deed {
    /// As an object does.
    Object(Effect),
    /// A request or task of a worker calls.
    Calls(u64, Call),
    /// A request looks into the cache.
    Looks(u64),
    /// The colo's other workers are to know.
    Caches(Box<Clocked>),
    /// A request or task waits for a time, and perhaps for others.
    Sleeps(u64, u64, bool),
    /// A task begins.
    Begins(u64),
    /// A visit is over.
    Done(u64, Outcome),
    /// A request of somebody who is in has moved the ticket on.
    Moved(Option<Ticket>),
    /// A task is over.
    Ends(u64),
}

/// How a life began, and all that was told since, with the times.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub began: u64,
    pub number: u64,
    pub stored: Stored,
    pub heard: Vec<Arc<(u64, Told)>>,
}

#[derive(Debug)]
enum Work {
    Visit(Box<Visit>),
    Task(Task),
}

#[derive(Debug)]
pub(crate) struct Isolate {
    worker: Worker,
    works: BTreeMap<u64, Work>,
}

#[derive(Debug)]
pub(crate) enum Machine {
    Object(Box<dyn Object>),
    Isolate(Box<Isolate>),
}

/// An object's machine, whichever it is.
pub(crate) trait Object: ObjectMachine + Debug {}
impl<T: ObjectMachine + Debug> Object for T {}

/// The first number of tasks: visits have lower ones.
const TASKS: u64 = 1_000;

impl Machine {
    /// The machine as it is at the end of what it was told.
    pub fn again(actor: Actor, life: &Life, room: &Rc<Room>) -> Self {
        let Life { began, number, stored, heard } = life;
        let (now, random) = (*began, number + 1);
        let mut machine = match actor {
            Actor::Anywhere => Self::Object(Box::new(Anywhere::restore(room, stored, now))),
            Actor::Counter(_) => Self::Object(Box::new(Counter::restore(stored, random, now))),
            Actor::DataCenter(_) => {
                Self::Object(Box::new(DataCenter::restore(room, &actor.colo(), stored, random, now)))
            }
            Actor::Global => {
                // The history is not stored: no limit goes by it.
                let outside = Outside {
                    rows: Box::new(MemoryRows::default()),
                    webhooks: Webhooks::default(),
                    reachable: Vec::new(),
                    pushes: false,
                    words: |kind, _| kind.to_owned(),
                    sockets: Vec::new(),
                    random,
                };
                Self::Object(Box::new(
                    Global::restore(room, stored, outside, now).expect("empty tables can be read"),
                ))
            }
            Actor::Worker(colo) => Self::Isolate(Box::new(Isolate {
                worker: Worker::new(100 + u64::from(colo), Rc::clone(room), actor.colo(), DEADLINE_MS),
                works: BTreeMap::new(),
            })),
        };
        for heard in heard {
            machine.hear(actor, room, heard.0, heard.1.clone());
        }
        machine
    }

    /// It is told something.
    pub fn hear(&mut self, actor: Actor, room: &Rc<Room>, now: u64, told: Told) -> Vec<Deed> {
        match (self, told) {
            (Self::Object(machine), Told::Object(input)) => {
                let mut effects = Vec::new();
                let context = Context { room, colo: &actor.colo(), deadline_ms: DEADLINE_MS, now };
                machine.handle(&context, input, &mut effects);
                effects.into_iter().map(Deed::Object).collect()
            }
            (Self::Isolate(isolate), told) => isolate.hear(room, now, told),
            (Self::Object(_), _) => Vec::new(),
        }
    }

    /// When an object wants to be told the time.
    pub fn next_timer(&self) -> Option<u64> {
        match self {
            Self::Object(machine) => machine.next_timer(),
            Self::Isolate(_) => None,
        }
    }

    /// A number for all that it knows.
    pub fn shape(&self) -> u64 {
        shape(self)
    }
}

impl Isolate {
    fn hear(&mut self, room: &Rc<Room>, now: u64, told: Told) -> Vec<Deed> {
        let mut effects = Vec::new();
        let mut deeds = Vec::new();
        let id = match told {
            Told::Visits(id, visitor) => {
                let visit = Visit::new(visitor, self.worker.room());
                self.works.insert(id, Work::Visit(Box::new(visit)));
                self.work(id, now, room, WorkerInput::Begin, &mut effects);
                id
            }
            Told::Passes(ticket) => {
                let whole = self.worker.room();
                let at = self.worker.time(now);
                deeds.push(Deed::Moved(self.worker.pass(whole.at(at).0, ticket, now, &mut effects)));
                0
            }
            Told::Leaves(Ticket { id, last_check_in: from, accepted_at: entered, .. }) => {
                let whole = self.worker.room();
                let at = self.worker.time(now);
                let leave = anteroom::check_in::CheckIn::Leave { id, from, at, entered };
                self.worker.note(whole.at(at).0, leave, false, now, &mut effects);
                0
            }
            Told::Work(id, input) => {
                self.work(id, now, room, input, &mut effects);
                id
            }
            Told::Object(_) => 0,
        };
        for effect in effects {
            deeds.push(match effect {
                WorkerEffect::Call(call) => Deed::Calls(id, call),
                WorkerEffect::ReadCache => Deed::Looks(id),
                WorkerEffect::WriteCache(key) => {
                    Deed::Caches(Box::new(Clocked { key: *key, received_at: now }))
                }
                WorkerEffect::Await { until } => Deed::Sleeps(id, until, true),
                WorkerEffect::Sleep { until } => Deed::Sleeps(id, until, false),
                WorkerEffect::Start(task) => {
                    // The lowest free number: what is over leaves no trace.
                    let free = (TASKS..2 * TASKS).find(|number| !self.works.contains_key(number));
                    let free = free.expect("a worker has few tasks");
                    self.works.insert(free, Work::Task(task));
                    Deed::Begins(free)
                }
                WorkerEffect::Done(outcome) => {
                    self.works.remove(&id);
                    Deed::Done(id, *outcome)
                }
                WorkerEffect::End => {
                    self.works.remove(&id);
                    Deed::Ends(id)
                }
                WorkerEffect::Verify => continue,
            });
        }
        deeds
    }

    fn work(&mut self, id: u64, now: u64, room: &Room, input: WorkerInput, effects: &mut Vec<WorkerEffect>) {
        let draw_key = DrawKey::new(None, "");
        let mut origin = OriginMonitor::new(room);
        let mut context = WorkerContext { draw_key: &draw_key, origin: &mut origin, now };
        match self.works.get_mut(&id) {
            Some(Work::Visit(visit)) => visit.handle(&mut self.worker, &mut context, input, effects),
            Some(Work::Task(task)) => task.handle(&mut self.worker, &mut context, input, effects),
            None => {}
        }
    }
}

struct Shape(DefaultHasher);

impl Write for Shape {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// A number for all that something shows of itself.
pub(crate) fn shape(of: &impl Debug) -> u64 {
    let mut shape = Shape(DefaultHasher::new());
    write!(shape, "{of:?}").expect("hashing does not fail");
    shape.0.finish()
}
