//! A deploy that rolls over the planet, forth and back: workers and objects of 0.1.0 and of today side by side, in any
//! order, while people come, wait and are in, an operator closes the room and opens it again, and an event begins.
//!
//! The machines are the Worker's own. A machine of the version before is told, says, reads and stores what 0.1.0 knew.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

use anteroom::admission::{DrawKey, minute_of};
use anteroom::config::{Room, Rooms, Webhooks};
use anteroom::history::{Count, Record};
use anteroom::machines::worker::{
    Outcome, Task, Visit, Visitor as Comer, Worker, WorkerContext, WorkerEffect, WorkerInput,
};
use anteroom::machines::{
    Anywhere, Call, Context, Counter, DataCenter, Effect, Global, Input, MemoryRows, ObjectMachine, Outside,
    Rows, Series, Stored,
};
use anteroom::origin::OriginMonitor;
use anteroom::protocol::messages::{OperatorAsk, VERSION, room_and_colo};
use anteroom::protocol::{Answer, Object, Request, records};
use anteroom::steering::Steering;
use anteroom::ticket::Ticket;
use anteroom::time::rfc3339;
use fastrand::Rng;
use serde_json::{Value, json};

#[path = "../../sim/src/v0_1_0.rs"]
mod v0_1_0;

const MINUTE: u64 = 60_000;
const START: u64 = 28_000_020 * MINUTE;
const COLOS: [&str; 2] = ["AMS", "SIN"];
/// On the way between two places, in milliseconds.
const WAY_MS: u64 = 20;
const DEADLINE_MS: u64 = 400;
/// Between two looks of a request for what another one may bring, in milliseconds.
const LOOK_MS: u64 = 20;

/// Who waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Caller {
    /// An object of this life.
    Object(usize, u64),
    /// A request or task.
    Run(usize),
    Operator,
}

#[derive(Debug)]
enum Event {
    Asked { object: usize, caller: Caller, call: u64, request: Request },
    Answered { caller: Caller, call: u64, answer: Option<Answer> },
    Timer { object: usize, life: u64 },
    Alarm { object: usize, at: u64 },
    Time { run: usize },
    Visit { visitor: usize },
    Deploy,
    Order(Value),
}

struct Site {
    class: Object,
    name: String,
    old: bool,
    life: u64,
    machine: Box<dyn ObjectMachine>,
    stored: Stored,
    rows: MemoryRows,
    alarm: Option<u64>,
    timer: Option<u64>,
    /// Who is to be answered.
    asked: BTreeMap<u64, (Caller, u64)>,
    numbers: u64,
}

struct Place {
    colo: &'static str,
    old: bool,
    worker: Worker,
    origin: OriginMonitor,
    /// No longer given visitors: it goes on with what it has begun.
    leaves: bool,
}

enum Work {
    Visit(Box<Visit>, usize),
    Task(Task),
}

#[derive(Default)]
struct Person {
    ticket: Option<Ticket>,
    came_at: u64,
    bucket: Option<u32>,
    entered_at: Option<u64>,
    last_page: u64,
    pages: u32,
}

struct World {
    room: Rc<Room>,
    webhooks: Webhooks,
    draw_key: DrawKey,
    now: u64,
    order: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    rng: Rng,
    sites: Vec<Site>,
    places: Vec<Place>,
    runs: BTreeMap<usize, (usize, Work)>,
    run_numbers: usize,
    /// Calls that are under way.
    calls: BTreeSet<(Caller, u64)>,
    people: Vec<Person>,
    /// Nobody may enter from the first time to the second.
    closed: Option<(u64, u64)>,
    most_active: usize,
    by_minute: BTreeMap<u32, u64>,
    /// Entered, each with the minute in which they came.
    entered: Vec<(u64, u64)>,
    mixed: bool,
}

fn room() -> (Rc<Room>, Webhooks) {
    let vars = json!({
        "ROOM_SHOP": { "total_active_users": 30, "new_users_per_minute": 30, "session_duration": 1 },
        "EVENT_SALE": {
            "room": "shop", "total_active_users": 40, "new_users_per_minute": 40,
            "event_start_time": rfc3339(START + 6 * MINUTE), "event_end_time": rfc3339(START + 9 * MINUTE),
        },
    });
    let vars: Vec<(String, Value)> = vars.as_object().unwrap().clone().into_iter().collect();
    let (rooms, errors) = Rooms::from_vars(vars.clone().into_iter());
    assert_eq!(errors, []);
    let (webhooks, _) = Webhooks::from_vars(vars.into_iter(), &rooms);
    (Rc::new(rooms.get("shop").unwrap().clone()), webhooks)
}

impl World {
    fn new(seed: u64) -> Self {
        let (room, webhooks) = room();
        let mut world = Self {
            room,
            webhooks,
            draw_key: DrawKey::new(None, "key"),
            now: START,
            order: 0,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            rng: Rng::with_seed(seed),
            sites: Vec::new(),
            places: Vec::new(),
            runs: BTreeMap::new(),
            run_numbers: 0,
            calls: BTreeSet::new(),
            people: Vec::new(),
            closed: None,
            most_active: 0,
            by_minute: BTreeMap::new(),
            entered: Vec::new(),
            mixed: false,
        };
        let names = [(Object::Global, "shop".to_owned()), (Object::Anywhere, "shop".to_owned())];
        let of_colos = COLOS.iter().flat_map(|colo| {
            [Object::DataCenter, Object::Counter].map(|class| (class, format!("shop/{colo}")))
        });
        for (class, name) in names.into_iter().chain(of_colos) {
            let rows = MemoryRows::default();
            let machine = world.made(class, &name, &Stored::new(), &rows, true);
            world.sites.push(Site {
                class,
                name,
                old: true,
                life: 0,
                machine,
                stored: Stored::new(),
                rows,
                alarm: None,
                timer: None,
                asked: BTreeMap::new(),
                numbers: 0,
            });
        }
        for colo in COLOS {
            world.open(colo, true);
            world.open(colo, true);
        }
        world
    }

    fn made(
        &mut self,
        class: Object,
        name: &str,
        stored: &Stored,
        rows: &MemoryRows,
        old: bool,
    ) -> Box<dyn ObjectMachine> {
        let read = |(key, bytes): (&String, &Vec<u8>)| {
            let bytes = if old { v0_1_0::record(key, bytes)? } else { bytes.clone() };
            Some((key.clone(), bytes))
        };
        let stored: Stored = stored.iter().filter_map(read).collect();
        let (colo, random) = (room_and_colo(name).1, self.rng.u64(1..));
        match class {
            Object::Counter => Box::new(Counter::restore(&stored, random, self.now)),
            Object::Anywhere => Box::new(Anywhere::restore(&self.room, &stored, self.now)),
            Object::DataCenter => Box::new(DataCenter::restore(&self.room, colo, &stored, random, self.now)),
            Object::Global => {
                let outside = Outside {
                    rows: Box::new(rows.clone()),
                    webhooks: self.webhooks.clone(),
                    reachable: Vec::new(),
                    pushes: false,
                    words: |kind, _| kind.to_owned(),
                    sockets: Vec::new(),
                    random,
                };
                Box::new(Global::restore(&self.room, &stored, outside, self.now).unwrap())
            }
        }
    }

    fn open(&mut self, colo: &'static str, old: bool) {
        let worker = Worker::new(self.rng.u64(1..), Rc::clone(&self.room), colo.to_owned(), DEADLINE_MS);
        self.places.push(Place { colo, old, worker, origin: OriginMonitor::new(&self.room), leaves: false });
    }

    fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.queue.push(Reverse((time, self.order)));
        self.events.insert(self.order, event);
    }

    fn is_old(&self, caller: Caller) -> bool {
        match caller {
            Caller::Object(object, _) => self.sites[object].old,
            Caller::Run(run) => self.runs.get(&run).is_some_and(|(place, _)| self.places[*place].old),
            Caller::Operator => false,
        }
    }

    /// Sends a call on its way. Both ends hear and say what their versions know.
    fn call(&mut self, caller: Caller, call: Call) {
        let object = self.sites.iter().position(|site| site.class == call.object() && site.name == call.name);
        let object = object.expect("all objects are there");
        self.at(self.now + call.deadline_ms, Event::Answered { caller, call: call.number, answer: None });
        self.calls.insert((caller, call.number));
        let request = if self.is_old(caller) { v0_1_0::request(&call.request) } else { Some(call.request) };
        let asked = Event::Asked { object, caller, call: call.number, request: request.unwrap() };
        let arrives = self.now + self.rng.u64(1..WAY_MS);
        self.at(arrives, asked);
    }

    fn tell(&mut self, object: usize, input: Input) {
        let site = &mut self.sites[object];
        let mut effects = Vec::new();
        let colo = room_and_colo(&site.name).1.to_owned();
        let context = Context { room: &self.room, colo: &colo, deadline_ms: DEADLINE_MS, now: self.now };
        site.machine.handle(&context, input, &mut effects);
        let (life, timer) = (site.life, site.machine.next_timer());
        for effect in effects {
            self.carry_out(object, effect);
        }
        if let Some(at) = timer.filter(|at| self.sites[object].timer.is_none_or(|set| *at < set)) {
            self.sites[object].timer = Some(at);
            self.at(at.max(self.now + 1), Event::Timer { object, life });
        }
    }

    fn carry_out(&mut self, object: usize, effect: Effect) {
        let (old, life) = (self.sites[object].old, self.sites[object].life);
        match effect {
            Effect::Reply { to, answer } => {
                let Some((caller, call)) = self.sites[object].asked.remove(&to) else { return };
                let answer = if old { v0_1_0::answer(&answer) } else { Some(answer) };
                let answer = if self.is_old(caller) {
                    answer.and_then(|answer| v0_1_0::answer(&answer))
                } else {
                    answer
                };
                let arrives = self.now + self.rng.u64(1..WAY_MS);
                self.at(arrives, Event::Answered { caller, call, answer });
            }
            Effect::Refuse { to, .. } => {
                if let Some((caller, call)) = self.sites[object].asked.remove(&to) {
                    self.at(self.now + 1, Event::Answered { caller, call, answer: None });
                }
            }
            Effect::Call(call) => self.call(Caller::Object(object, life), call),
            Effect::Store { key, bytes, .. } => {
                let bytes = if old { v0_1_0::record(&key, &bytes).unwrap() } else { bytes };
                self.sites[object].stored.insert(key, bytes);
            }
            Effect::Delete { key } => drop(self.sites[object].stored.remove(&key)),
            Effect::SetAlarm { at } => {
                self.sites[object].alarm = Some(at);
                self.at(at.max(self.now + 1), Event::Alarm { object, at });
            }
            Effect::ClearAlarm => self.sites[object].alarm = None,
            Effect::AlarmDone | Effect::Global(_) => {}
        }
    }

    fn begin(&mut self, place: usize, work: Work) {
        self.run_numbers += 1;
        self.runs.insert(self.run_numbers, (place, work));
        self.drive(self.run_numbers, WorkerInput::Begin);
    }

    fn drive(&mut self, run: usize, input: WorkerInput) {
        let Some((place, mut work)) = self.runs.remove(&run) else { return };
        let mut effects = Vec::new();
        let here = &mut self.places[place];
        let mut context = WorkerContext { draw_key: &self.draw_key, origin: &mut here.origin, now: self.now };
        match &mut work {
            Work::Visit(visit, _) => visit.handle(&mut here.worker, &mut context, input, &mut effects),
            Work::Task(task) => task.handle(&mut here.worker, &mut context, input, &mut effects),
        }
        let visitor = if let Work::Visit(_, visitor) = &work { Some(*visitor) } else { None };
        self.runs.insert(run, (place, work));
        self.work(place, run, visitor, effects);
    }

    fn work(&mut self, place: usize, run: usize, visitor: Option<usize>, effects: Vec<WorkerEffect>) {
        for effect in effects {
            match effect {
                WorkerEffect::Call(call) => self.call(Caller::Run(run), call),
                WorkerEffect::ReadCache => self.drive(run, WorkerInput::Cached(None)),
                WorkerEffect::WriteCache(_) | WorkerEffect::Verify => {}
                WorkerEffect::Await { until } => {
                    self.at(until.min(self.now + LOOK_MS), Event::Time { run });
                }
                WorkerEffect::Sleep { until } => self.at(until.max(self.now), Event::Time { run }),
                WorkerEffect::Start(task) => self.begin(place, Work::Task(task)),
                WorkerEffect::Done(outcome) => {
                    self.runs.remove(&run);
                    self.judged(visitor.unwrap(), *outcome);
                }
                WorkerEffect::End => drop(self.runs.remove(&run)),
            }
        }
    }

    fn judged(&mut self, visitor: usize, outcome: Outcome) {
        let now = self.now;
        let person = &mut self.people[visitor];
        let wait = match outcome {
            Outcome::Admitted { ticket, enters, .. } => {
                person.last_page = now;
                person.ticket = Some(ticket);
                if enters {
                    assert!(person.entered_at.is_none(), "whoever is in does not enter again");
                    person.entered_at = Some(now);
                    let is_closed = self.closed.is_some_and(|(from, to)| (from..to).contains(&now));
                    assert!(!is_closed, "visitor {visitor} enters a closed room at {}", now - START);
                    *self.by_minute.entry(minute_of(now)).or_default() += 1;
                    self.entered.push((now, person.came_at));
                }
                person.pages -= 1;
                (person.pages > 0).then(|| self.rng.u64(5_000..20_000))
            }
            Outcome::Waiting(waiting) => {
                let bucket = *person.bucket.get_or_insert(waiting.ticket.bucket);
                assert_eq!(waiting.ticket.bucket, bucket, "a place is never lost");
                assert!(person.entered_at.is_none(), "whoever is in does not wait");
                person.ticket = Some(waiting.ticket);
                Some(u64::from(waiting.refresh_seconds) * 1_000)
            }
            Outcome::Suspended | Outcome::Refused | Outcome::Moved => {
                panic!("the room is on, and turns nobody away")
            }
        };
        if let Some(wait) = wait {
            self.at(now + wait, Event::Visit { visitor });
        }
        let active = |person: &&Person| person.entered_at.is_some() && person.last_page + MINUTE > now;
        self.most_active = self.most_active.max(self.people.iter().filter(active).count());
    }

    fn visit(&mut self, visitor: usize) {
        let colo = COLOS[visitor % COLOS.len()];
        let here: Vec<usize> = (0..self.places.len())
            .filter(|place| self.places[*place].colo == colo && !self.places[*place].leaves)
            .collect();
        let place = here[self.rng.usize(..here.len())];
        let ticket = self.people[visitor].ticket;
        let comer = Comer {
            tickets: ticket.into_iter().collect(),
            id: self.rng.u64(1..),
            random: self.rng.f64(),
            ..Comer::default()
        };
        let worker = &mut self.places[place].worker;
        let whole = worker.room();
        if let Some(ticket) = ticket.filter(|_| self.people[visitor].entered_at.is_some()) {
            let room = whole.at(self.now).0;
            let mut effects = Vec::new();
            let moved = worker.pass(room, ticket, self.now, &mut effects).unwrap_or(ticket);
            self.work(place, 0, None, effects);
            self.judged(visitor, Outcome::Admitted { ticket: moved, changed: false, enters: false });
            return;
        }
        self.begin(place, Work::Visit(Box::new(Visit::new(comer, whole)), visitor));
    }

    /// One worker or object, whichever comes, is of the other version from now on. Objects lose their memory; a worker goes
    /// on with what it has begun.
    fn deploy(&mut self) {
        let object = self.rng.usize(..self.sites.len() + COLOS.len());
        if object >= self.sites.len() {
            let colo = COLOS[object - self.sites.len()];
            let live: Vec<usize> = (0..self.places.len())
                .filter(|place| self.places[*place].colo == colo && !self.places[*place].leaves)
                .collect();
            let place = live[self.rng.usize(..live.len())];
            self.places[place].leaves = true;
            self.open(colo, !self.places[place].old);
        } else {
            let site = &mut self.sites[object];
            site.old = !site.old;
            site.life += 1;
            site.timer = None;
            site.asked.clear();
            site.rows.confirm();
            let (class, name, old) = (site.class, site.name.clone(), site.old);
            let (stored, rows) = (site.stored.clone(), site.rows.clone());
            self.sites[object].machine = self.made(class, &name, &stored, &rows, old);
        }
        let old = self.sites.iter().filter(|site| site.old).count();
        self.mixed |= old > 0 && old < self.sites.len();
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Asked { object, caller, call, request } => {
                let site = &mut self.sites[object];
                site.numbers += 1;
                let from = site.numbers;
                site.asked.insert(from, (caller, call));
                let request = if site.old { v0_1_0::request(&request).unwrap() } else { request };
                self.tell(object, Input::Asked { from, request });
            }
            Event::Answered { caller, call, answer } => {
                if !self.calls.remove(&(caller, call)) {
                    return;
                }
                match caller {
                    Caller::Object(object, life) if self.sites[object].life == life => {
                        self.tell(object, Input::Answered { call, answer });
                    }
                    Caller::Run(run) => self.drive(run, WorkerInput::Answered { call, answer }),
                    Caller::Object(..) | Caller::Operator => {}
                }
            }
            Event::Timer { object, life } => {
                if self.sites[object].life == life {
                    self.sites[object].timer = None;
                    self.tell(object, Input::Timer);
                }
            }
            Event::Alarm { object, at } => {
                if self.sites[object].alarm == Some(at) {
                    self.sites[object].alarm = None;
                    self.tell(object, Input::Alarm);
                }
            }
            Event::Time { run } => self.drive(run, WorkerInput::Time),
            Event::Visit { visitor } => self.visit(visitor),
            Event::Deploy => self.deploy(),
            Event::Order(order) => {
                let ask = OperatorAsk {
                    v: VERSION,
                    by: "anna".to_owned(),
                    body: order.to_string(),
                    ..OperatorAsk::default()
                };
                let request = Request::GlobalSteer(Box::new(ask));
                self.order += 1;
                let call = Call { number: self.order, name: "shop".to_owned(), request, deadline_ms: 2_000 };
                self.call(Caller::Operator, call);
            }
        }
    }

    fn run(&mut self, until: u64) {
        while let Some(Reverse((time, order))) = self.queue.pop() {
            if time > until {
                self.queue.push(Reverse((time, order)));
                break;
            }
            self.now = self.now.max(time);
            let event = self.events.remove(&order).unwrap();
            self.step(event);
        }
        self.now = until;
    }
}

/// Users who entered, by the rows of history.
fn recorded(rows: &MemoryRows) -> u64 {
    let rows = rows.range(Series::Minutes, 0, u32::MAX).unwrap();
    rows.iter().map(|(_, row)| records::read::<Record>(row).unwrap().count(Count::NewUsers)).sum()
}

fn rolls(seed: u64) {
    let mut world = World::new(seed);
    // A rush, then a trickle.
    for visitor in 0..160 {
        let came_at =
            START + if visitor < 80 { world.rng.u64(..20_000) } else { world.rng.u64(20_000..8 * MINUTE) };
        let pages = world.rng.u32(1..6);
        world.people.push(Person { came_at, pages, ..Person::default() });
        world.at(came_at, Event::Visit { visitor });
    }
    // Nothing is deployed in the moment of an order: then it may not be heard, and the operator sees that.
    let (smaller, closes, opens) = (START + MINUTE, START + 2 * MINUTE, START + 4 * MINUTE);
    world.at(smaller, Event::Order(json!({ "set": { "total_active_users": 20, "message": "Soon" } })));
    world.at(closes, Event::Order(json!({ "set": { "queue_all": true } })));
    world.at(opens, Event::Order(json!({ "clear": ["queue_all"] })));
    let orders = [smaller, closes, opens];
    let mut at = START + 5_000;
    while at < START + 10 * MINUTE {
        if orders.iter().all(|order| !(*order..order + 3_000).contains(&at)) {
            world.at(at, Event::Deploy);
        }
        at += world.rng.u64(1_000..6_000);
    }
    // Whoever was being judged in that moment may enter yet.
    world.closed = Some((closes + 3_000, opens));
    world.run(START + 14 * MINUTE);
    assert!(world.mixed, "versions stood side by side");

    for (number, person) in world.people.iter().enumerate() {
        assert!(person.entered_at.is_some(), "seed {seed}: visitor {number} is not in");
    }
    assert!(world.most_active <= 30, "seed {seed}: {} were in at once", world.most_active);
    for (minute, users) in &world.by_minute {
        assert!(*users <= 40, "seed {seed}: {users} entered in minute {minute}");
    }
    let global = &world.sites[0];
    let steering = Steering::read(&global.stored["steering"]);
    assert_eq!((steering.version, steering.unread()), (3, None));
    let said = ["queue_all", "total_active_users", "message"].map(|name| steering.overrides().setting(name));
    assert_eq!(said, [None, Some(json!(20)), Some(json!("Soon"))], "seed {seed}: orders are kept");
    assert_eq!(recorded(&global.rows), 160, "seed {seed}: who has entered is recorded");
}

#[test]
fn nobody_loses_a_place_and_nothing_is_forgotten_while_two_versions_stand_side_by_side() {
    for seed in 0..4 {
        rolls(seed);
    }
}
