//! The planet: colos, workers, objects and visitors, all deciding by the core that runs in production.
//!
//! Nothing here is a rule of the room. The planet only carries: messages with their delays and losses, visitors with
//! their habits, faults with their times. What is measured is taken from the visitors' side, event by event.

use std::collections::BTreeMap;
use std::rc::Rc;

use anteroom::admission::{
    Addresses, AdmissionController, Anywhere, Batcher, Clocked, Counter, DrawKey, HINT_MS, LeaseAnswer,
    LeaseAsk, LeaseCounter, Lent, LoanAsk, NumberAsk, Outcome, Pool, Renewal, SavedPool, StateKey, Step,
    Turn, Whom, estimated_wait_seconds, minute_of, next_check_in_seconds, next_draw_seconds, queue_bucket,
};
use anteroom::config::{QueueingMethod, Room, SlotStrategy};
use anteroom::counts::{CheckIn, DataCenter, Global, GlobalMeta, HOLD_TRIES, Outbox, SavedDataCenter, Seen};
use anteroom::origin::{Arrival, OriginMonitor, Reply, Turn as GuardTurn};
use anteroom::protocol::messages::{ColoReport, Given, WorkerAnswer, WorkerReport};
use anteroom::ticket::{Standing, Ticket, standing};
use fastrand::Rng;
use rustc_hash::FxHashMap;

use crate::clockwork::Clockwork;
use crate::literal::{self, Attempts};
use crate::measure::{Measure, Measured};
use crate::origin::OriginAnswer;
use crate::pages::{Page, Pages};
use crate::scenario::{Behaviour, Broken, Colos, Planet as Setup, Scenario, ScenarioError};

/// When the world begins: the first millisecond of a minute.
pub const START: u64 = 28_000_000 * 60_000;
/// Whoever presses reload all the time does so after so many milliseconds.
const RELOAD_MS: u64 = 2_000;
/// A worker's call waits for the desk's pace so long, in milliseconds.
const DESK_MS: u64 = 20;
/// The Counter gives up on the pool a little before its workers give up on it, in milliseconds.
const COUNTER_MARGIN_MS: u64 = 50;
/// What a worker says to the pool and is not heard it says again after so long, in milliseconds.
const HOLD_AGAIN_MS: u64 = 250;
/// A state key stays so long in the cache, in milliseconds.
const CACHED_MS: u64 = 10_000;
/// So many times its deadline where it knows nothing.
const COLD_START_FACTOR: u64 = 3;
/// Nobody waits for a report, so it may take so long, in milliseconds.
const REPORT_DEADLINE_MS: u64 = 5_000;
/// The same of a data center that asks Global.
const ASK_DEADLINE_MS: u64 = 400;
/// Global tells a colo that has not heard again after so long, in milliseconds.
const SPREAD_AGAIN_MS: u64 = 1_000;
/// What an operator forbids is looked at after so long, in milliseconds: what was given before may be used for one second
/// more, and then it must be in force everywhere.
const IN_FORCE_MS: u64 = 2_000;
/// What an object stored is so old at the most, in milliseconds.
const STORED_MS: u64 = 1_000;

/// A visitor on the way through the room. Hundreds of thousands of them are looked at in random order: each begins with
/// a line of the processor's cache.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct Visitor {
    ticket: Option<Ticket>,
    colo: u16,
    place: Place,
    cookieless: bool,
    /// Presses reload all the time.
    reloads: bool,
    /// Counts as active until this time, if no other request comes.
    active_until: u64,
    counted_active: bool,
    visit_until: u64,
    gives_up: u64,
    queued_at: u64,
    /// The wait that was shown last, in seconds.
    shown: Option<u32>,
    first_shown: Option<u32>,
    rose: bool,
    /// Events that will come for this visitor.
    pending: u8,
    /// Bucket as the measure keeps it: the minute of the first request.
    bucket: u32,
    asking: bool,
    /// Requests that are not answered yet, and hold on to the visitor.
    requests: u8,
    /// Pages in a row that the origin did not bring.
    failed: u8,
    /// As a key.
    address: u64,
    /// Refuses cookies, and comes from an address with others: not one of those whom a queue is for.
    is_bot: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Queue,
    Inside,
    Gone,
    /// Nothing refers to it any more: the next visitor takes its place.
    Forgotten,
}

/// A request that waits for an object's answer.
#[derive(Debug, Clone, Copy)]
struct Request {
    visitor: u32,
    /// Waits for what the data center says: which question that is, and what was known before.
    hears: Option<(u64, u32)>,
    standing: Standing,
    /// The ticket as it will be, but for its times.
    ticket: Ticket,
    asked: (Whom, NumberAsk),
    came_at: u64,
    twin: bool,
    /// Of a newcomer, where the room has one place per address; else 0.
    address: u64,
}

struct Worker {
    id: u64,
    controller: AdmissionController,
    outbox: Outbox,
    counter_desk: Batcher<(NumberAsk, u64), Outcome>,
    anywhere_desk: Batcher<(NumberAsk, u64), Outcome>,
    addresses: Addresses,
    /// Requests at the desks, by place.
    requests: FxHashMap<(bool, u64), Request>,
    /// Whom a call is for: places by call.
    calls: FxHashMap<(bool, u64), Vec<u64>>,
    watch: OriginMonitor,
    /// What it asks its data center at the moment.
    hearing: Vec<Hearing>,
    questions: u64,
}

/// A worker asks its data center what operators have changed.
struct Hearing {
    number: u64,
    /// Those who wait for the answer, and what would be done by what was known before.
    waiting: Vec<(Request, Step)>,
}

struct Colo {
    name: String,
    skew: i64,
    workers: Vec<Worker>,
    counter: Counter,
    attempts: Attempts,
    lessor: LeaseCounter,
    addresses: Addresses,
    /// Calls of workers that wait at the Counter: how many answers are missing, and which.
    takes: FxHashMap<u64, TakeUnderWay>,
    next_take: u64,
    lease_sequence: u64,
    lease_timer: u64,
    data_center: DataCenter,
    stored: Option<SavedDataCenter>,
    /// The state key that a worker has put into the colo's cache.
    cached: Option<Clocked>,
    alarm: Option<u64>,
    latency: u64,
    counter_busy: u64,
    data_center_busy: u64,
    counter_out_until: u64,
    data_center_out_until: u64,
    dead: bool,
    /// The version of what operators have changed, as far as the Counter was told.
    counter_steering: u32,
    /// The data center asks Global, for workers that have asked it: each with its question.
    asking: bool,
    listeners: Vec<(u16, u64)>,
}

struct TakeUnderWay {
    worker: u16,
    call: u64,
    loan: Option<LoanAsk>,
    asks: Vec<(NumberAsk, u64)>,
    holders: Vec<u64>,
    outcomes: Vec<Outcome>,
    missing: usize,
}

/// Answers of Counter and Anywhere to a worker.
type Answers = Option<Vec<Outcome>>;
type LoanAnswer = Option<Lent>;

/// A call of a worker for numbers or tickets.
struct Call {
    number: u64,
    asks: Vec<(NumberAsk, u64)>,
    loan: Option<LoanAsk>,
    /// The version of what operators have changed that the worker knows.
    steering: u32,
}

/// What came of one.
struct Answer {
    call: u64,
    answers: Answers,
    loan: LoanAnswer,
    /// Addresses whose turn somebody else has, and whose ticket that is.
    taken: Vec<(u64, u64)>,
}

/// Most are visits: the others keep what is larger elsewhere, so that all are 16 bytes and move fast.
enum Event {
    /// A second begins: who will come in it.
    Second,
    Visit(u32),
    /// A session may have ended.
    Expiry(u32),
    Batcher {
        colo: u16,
        worker: u16,
        counter: bool,
        place: u64,
    },
    TakeAtCounter {
        colo: u16,
        worker: u16,
        call: Box<Call>,
    },
    TakeAtAnywhere {
        colo: u16,
        worker: u16,
        call: Box<Call>,
    },
    Taken {
        colo: u16,
        worker: u16,
        counter: bool,
        answer: Box<Answer>,
    },
    /// A worker gives up on a call.
    TakeFailed {
        colo: u16,
        worker: u16,
        counter: bool,
        call: u64,
    },
    CallCounterPool {
        colo: u16,
    },
    Lease {
        colo: u16,
        ask: Box<LeaseAsk>,
    },
    Leased {
        colo: u16,
        answer: Box<LeaseAnswer>,
    },
    /// A Counter gives up on a call.
    LeaseFailed {
        colo: u16,
        sequence: u64,
    },
    Report {
        colo: u16,
        worker: u16,
    },
    Reported {
        colo: u16,
        worker: u16,
        report: Box<WorkerReport>,
    },
    ReportAnswer {
        colo: u16,
        worker: u16,
        answer: Box<WorkerAnswer>,
    },
    Push {
        colo: u16,
    },
    Pushed {
        colo: u16,
        report: Box<ColoReport>,
    },
    PushAnswer {
        colo: u16,
        state: Option<Box<StateKey>>,
    },
    HoldSession,
    Renew,
    Renewed {
        state: Box<StateKey>,
    },
    Fault(u16),
    /// An event makes another room of it.
    Change,
    /// An operator changes the room.
    Steer(u16),
    /// What was changed is to be in force.
    InForce,
    /// Global tells those that have not heard.
    Spread,
    /// A data center is told.
    Tell {
        colo: u16,
        state: Box<StateKey>,
    },
    Told {
        colo: u16,
        state: Box<StateKey>,
    },
    /// A worker asks its data center what is new.
    Hear {
        colo: u16,
        worker: u16,
        question: u64,
    },
    Heard {
        colo: u16,
        worker: u16,
        answer: Box<(u64, Option<StateKey>)>,
    },
    /// A worker does not wait any longer.
    Deaf {
        colo: u16,
        worker: u16,
        question: u64,
    },
    /// A data center that sleeps asks Global.
    AskGlobal {
        colo: u16,
    },
    /// The answer; nothing: it is not waited for any longer.
    AskedGlobal {
        colo: u16,
        state: Option<Box<StateKey>>,
    },
    /// The origin may have answers.
    Origin,
    /// A request in line for the origin asks for its turn.
    Line(u64),
    /// Nobody waits for the origin's answer any longer.
    PageLate(u64),
    Sample,
    Store,
}

/// A planet that can be let run.
pub struct Planet {
    room: Rc<Room>,
    /// The room by what operators have changed: the first one is as deployed, then one for each version.
    rooms: Vec<Rc<Room>>,
    draw_key: DrawKey,
    setup: Setup,
    behaviour: Behaviour,
    scenario: Scenario,
    clockwork: Clockwork<Event>,
    rng: Rng,
    colos: Vec<Colo>,
    /// Cumulative traffic of all, even and odd colos.
    weights: [Vec<f64>; 3],
    anywhere: Anywhere,
    /// `counters` as the article reads, without the repairs; see [`literal`].
    literal: bool,
    attempts: Attempts,
    pool: Pool,
    stored_pool: Option<SavedPool>,
    waiting_leases: Vec<Waiting>,
    renewing: bool,
    renew_failed_at: u64,
    global: Global,
    stored_global: (Option<GlobalMeta>, BTreeMap<String, ColoReport>),
    anywhere_busy: u64,
    global_busy: u64,
    anywhere_out_until: u64,
    global_out_until: u64,
    keeps_stored: bool,
    visitors: Vec<Visitor>,
    free: Vec<u32>,
    /// Parts of visitors that have not come yet, by kind of colo.
    fractions: [f64; 3],
    /// Visitors so far.
    arrived: u64,
    measure: Measure,
    pages: Option<Pages>,
    end: u64,
    events: u64,
}

/// Somebody else has the address's turn.
fn not_now(ask: &NumberAsk) -> Outcome {
    ask.refused(0)
}

/// A message that waits for Anywhere's state.
enum Waiting {
    Lease(u16, Box<LeaseAsk>),
    Take(u16, u16, Box<Call>),
}

const _: () = assert!(size_of::<Event>() == 16);

impl Planet {
    /// A planet for a scenario.
    ///
    /// # Errors
    /// When the scenario's room cannot be.
    pub fn new(
        scenario: &Scenario,
        strategy: Option<SlotStrategy>,
        colos: Option<usize>,
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        let room = scenario.room(strategy)?;
        let mut setup = scenario.planet.clone();
        if let Some(colos) = colos {
            setup.colos = colos;
        }
        let mut rng = Rng::with_seed(seed);
        let keeps_stored = scenario.faults.iter().any(|fault| fault.lasts == 0.0);
        let colo_list = (0..setup.colos).map(|index| Self::colo(index, &room, &setup, &mut rng)).collect();
        let pages = scenario.origin.as_ref().map(|origin| Pages::new(origin, seed));
        let kinds = [Colos::All, Colos::Even, Colos::Odd];
        let weights = kinds.map(|kind| {
            let mut sum = 0.0;
            (0..setup.colos)
                .map(|index| {
                    let part_of_it = match kind {
                        Colos::All => true,
                        Colos::Even => index % 2 == 0,
                        Colos::Odd => index % 2 == 1,
                    };
                    if part_of_it {
                        sum += 1.0 / ((index + 1) as f64).powf(setup.zipf);
                    }
                    sum
                })
                .collect()
        });
        let mut planet = Self {
            clockwork: Clockwork::new(START),
            colos: colo_list,
            weights,
            anywhere: Anywhere::restore(None, START),
            literal: false,
            attempts: Attempts::default(),
            pool: Pool::restore(None, START),
            stored_pool: None,
            waiting_leases: Vec::new(),
            renewing: false,
            renew_failed_at: 0,
            global: Global::restore(&room, None, Vec::new(), START),
            stored_global: (None, BTreeMap::new()),
            anywhere_busy: 0,
            global_busy: 0,
            anywhere_out_until: 0,
            global_out_until: 0,
            keeps_stored,
            visitors: Vec::new(),
            free: Vec::new(),
            fractions: [0.0; 3],
            arrived: 0,
            measure: Measure::new(&room, START),
            pages,
            end: START + u64::from(scenario.minutes) * 60_000,
            events: 0,
            behaviour: scenario.visitors.clone(),
            scenario: scenario.clone(),
            draw_key: DrawKey::new(None, &format!("{seed}")),
            rooms: vec![Rc::new(room.clone())],
            room: Rc::new(room),
            setup,
            rng,
        };
        for (index, order) in planet.scenario.steering.iter().enumerate() {
            planet.clockwork.at(START + (order.at * 1_000.0) as u64, Event::Steer(index as u16));
        }
        for (index, fault) in planet.scenario.faults.clone().iter().enumerate() {
            planet.clockwork.at(START + (fault.at * 1_000.0) as u64, Event::Fault(index as u16));
        }
        if let Some(change) = planet.room.next_change(START) {
            planet.clockwork.at(change, Event::Change);
        }
        planet.measure.room_is(planet.room.at(START).0, START);
        if keeps_stored {
            planet.clockwork.at(START + STORED_MS, Event::Store);
        }
        planet.clockwork.at(START, Event::Second);
        planet.clockwork.at(START, Event::Sample);
        Ok(planet)
    }

    /// The same planet with `counters` read literally; see [`literal`].
    #[must_use]
    pub fn with_literal_counters(mut self) -> Self {
        Rc::make_mut(&mut self.room).slot_strategy = SlotStrategy::Counters;
        self.rooms = vec![Rc::clone(&self.room)];
        self.literal = true;
        self
    }

    /// The same planet, which records the run as the room's history would.
    #[must_use]
    pub fn with_history(mut self) -> Self {
        self.measure.record();
        self
    }

    fn colo(index: usize, room: &Room, setup: &Setup, rng: &mut Rng) -> Colo {
        let name = format!("C{index:03}");
        let skew =
            if setup.skew_ms == 0 { 0 } else { rng.i64(-(setup.skew_ms as i64)..=setup.skew_ms as i64) };
        let start = START.saturating_add_signed(skew);
        Colo {
            workers: (0..setup.workers).map(|_| Self::worker(room, setup, rng)).collect(),
            counter: Counter::restore(None, start),
            attempts: Attempts::default(),
            lessor: LeaseCounter::new(rng.u64(1..)),
            addresses: Addresses::default(),
            takes: FxHashMap::default(),
            next_take: 0,
            lease_sequence: 0,
            lease_timer: 0,
            data_center: DataCenter::restore(room, &name, rng.u64(1..), None, start),
            stored: None,
            cached: None,
            alarm: None,
            latency: rng.u64(setup.global_ms.0..=setup.global_ms.1),
            counter_busy: 0,
            data_center_busy: 0,
            counter_out_until: 0,
            data_center_out_until: 0,
            dead: false,
            counter_steering: 0,
            asking: false,
            listeners: Vec::new(),
            skew,
            name,
        }
    }

    fn worker(room: &Room, setup: &Setup, rng: &mut Rng) -> Worker {
        let id = rng.u64(1..);
        Worker {
            id,
            controller: AdmissionController::default(),
            outbox: Outbox::new(id),
            counter_desk: Batcher::new(setup.deadline_ms * 3 + 100),
            anywhere_desk: Batcher::new(setup.deadline_ms * 3 + 100),
            addresses: Addresses::default(),
            requests: FxHashMap::default(),
            calls: FxHashMap::default(),
            watch: OriginMonitor::new(room),
            hearing: Vec::new(),
            questions: 0,
        }
    }

    /// Lets the planet run to its end. `tick` is called every simulated minute with the part that is done.
    pub fn run(mut self, tick: &mut dyn FnMut(f64)) -> Measured {
        let mut next_tick = START;
        while let Some(event) = self.clockwork.next(self.end) {
            self.events += 1;
            // Looked at together, they come from memory at the same time; else each event would wait for its own.
            let mut looked_at = 0;
            for event in self.clockwork.begun() {
                if let Event::Visit(visitor) | Event::Expiry(visitor) = event {
                    looked_at ^= self.visitors[*visitor as usize].pending;
                }
            }
            std::hint::black_box(looked_at);
            if self.clockwork.now() >= next_tick {
                tick((self.clockwork.now() - START) as f64 / (self.end - START) as f64);
                next_tick += 60_000;
            }
            self.step(event);
        }
        let room = self.rooms[self.global.overrides().version as usize].at(self.end).0;
        let known = self.global.state(room, None, minute_of(self.end), self.end);
        let mut measured = self.measure.finish(self.end, self.events, &known);
        measured.origin = self.pages.map(Pages::finish);
        measured
    }

    fn now(&self) -> u64 {
        self.clockwork.now()
    }

    /// The time by a colo's clock.
    fn local(&self, colo: u16) -> u64 {
        self.now().saturating_add_signed(self.colos[usize::from(colo)].skew)
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Second => self.second(),
            Event::Visit(visitor) => self.visit(visitor),
            Event::Expiry(visitor) => self.expiry(visitor),
            Event::Batcher { colo, worker, counter, place } => self.turn(colo, worker, counter, place),
            Event::TakeAtCounter { colo, worker, call } => self.take_at_counter(colo, worker, *call),
            Event::TakeAtAnywhere { colo, worker, call } => self.take_at_anywhere(colo, worker, call),
            Event::Taken { colo, worker, counter, answer } => self.taken(colo, worker, counter, *answer),
            Event::TakeFailed { colo, worker, counter, call } => {
                let answer = Answer { call, answers: None, loan: None, taken: Vec::new() };
                self.taken(colo, worker, counter, answer);
            }
            Event::CallCounterPool { colo } => self.call_pool(colo),
            Event::Lease { colo, ask } => self.lease(colo, ask),
            Event::Leased { colo, answer } => self.leased(colo, answer.sequence, Some(&answer)),
            Event::LeaseFailed { colo, sequence } => self.leased(colo, sequence, None),
            Event::Report { colo, worker } => self.report(colo, worker),
            Event::Reported { colo, worker, report } => self.reported(colo, worker, &report),
            Event::ReportAnswer { colo, worker, answer } => self.report_answer(colo, worker, *answer),
            Event::Push { colo } => self.push(colo),
            Event::Pushed { colo, report } => self.pushed(colo, *report),
            Event::PushAnswer { colo, state } => {
                let now = self.local(colo);
                let data_center = &mut self.colos[usize::from(colo)].data_center;
                match state {
                    Some(state) => data_center.pushed(Some(*state), now),
                    None => data_center.push_failed(),
                }
                self.schedule_push(colo);
            }
            Event::HoldSession => {
                if self.now() >= self.anywhere_out_until {
                    self.pool.hold_session(self.clockwork.now());
                }
            }
            Event::Renew => self.renew(),
            Event::Renewed { state } => self.renewed(*state),
            Event::Fault(index) => self.fault(usize::from(index)),
            Event::Change => self.change(),
            Event::Steer(index) => self.steer(usize::from(index)),
            Event::InForce => self.in_force(),
            Event::Spread => self.spread(),
            Event::Tell { colo, state } => self.tell(colo, state),
            Event::Told { colo, state } => {
                if self.now() >= self.global_out_until {
                    let name = &self.colos[usize::from(colo)].name;
                    self.global.told(name, state.steering.version, state.watched);
                }
            }
            Event::Hear { colo, worker, question } => self.hear(colo, worker, question),
            Event::Heard { colo, worker, answer } => {
                let (question, key) = *answer;
                self.heard(colo, worker, question, key, true);
            }
            Event::Deaf { colo, worker, question } => self.heard(colo, worker, question, None, false),
            Event::AskGlobal { colo } => self.ask_global(colo),
            Event::AskedGlobal { colo, state } => self.asked_global(colo, state),
            Event::Origin => self.origin_answers(),
            Event::Line(number) => self.line(number),
            Event::PageLate(number) => self.page_late(number),
            Event::Sample => {
                self.sample_origin();
                self.measure.sample(self.clockwork.now());
                self.clockwork.at(self.clockwork.now() + 100, Event::Sample);
            }
            Event::Store => {
                if self.now() >= self.anywhere_out_until {
                    self.stored_pool = Some(self.pool.save(false));
                }
                self.clockwork.at(self.clockwork.now() + STORED_MS, Event::Store);
            }
        }
    }

    // ---- Visitors ----

    fn second(&mut self) {
        let now = self.now();
        let minutes = (now - START) as f64 / 60_000.0;
        for (index, (_, per_minute)) in self.scenario.arrivals_at(minutes).into_iter().enumerate() {
            self.fractions[index] += per_minute / 60.0;
            // Poisson: the sum of many small chances, drawn as gaps within the second.
            let expected = self.fractions[index];
            self.fractions[index] = 0.0;
            if expected <= 0.0 {
                continue;
            }
            let mut at = 0.0;
            loop {
                at += self.exponential(1.0 / expected);
                if at >= 1.0 {
                    break;
                }
                let colo = self.pick_colo(index);
                let visitor = self.new_visitor(colo);
                self.visit_at(visitor, now + (at * 1_000.0) as u64);
            }
        }
        self.clockwork.at(now + 1_000, Event::Second);
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.rng.f64()).ln() * mean
    }

    fn pick_colo(&mut self, kind: usize) -> u16 {
        let weights = &self.weights[kind];
        let sum = weights.last().copied().unwrap_or(1.0);
        let drawn = self.rng.f64() * sum;
        let mut colo = weights.partition_point(|weight| *weight <= drawn).min(weights.len() - 1);
        while self.colos[colo].dead {
            colo = (colo + 1) % self.colos.len();
        }
        colo as u16
    }

    fn new_visitor(&mut self, colo: u16) -> u32 {
        let cookieless = self.behaviour.cookieless > 0.0 && self.rng.f64() < self.behaviour.cookieless;
        let is_bot = cookieless && self.behaviour.bot_addresses > 0;
        let (address, colo) = match self.behaviour.bot_addresses {
            addresses if is_bot => {
                let address = self.rng.u64(1..=addresses);
                (address, (address % self.colos.len() as u64) as u16)
            }
            addresses => (addresses + 1 + self.arrived, colo),
        };
        self.arrived += 1;
        let reloads = self.behaviour.reloading > 0.0 && self.rng.f64() < self.behaviour.reloading;
        let visitor = Visitor {
            ticket: None,
            reloads,
            colo,
            place: Place::Outside,
            cookieless,
            active_until: 0,
            counted_active: false,
            visit_until: 0,
            gives_up: u64::MAX,
            queued_at: 0,
            shown: None,
            first_shown: None,
            rose: false,
            pending: 0,
            bucket: 0,
            asking: false,
            requests: 0,
            failed: 0,
            address,
            is_bot,
        };
        if let Some(index) = self.free.pop() {
            self.visitors[index as usize] = visitor;
            index
        } else {
            self.visitors.push(visitor);
            (self.visitors.len() - 1) as u32
        }
    }

    fn visit_at(&mut self, visitor: u32, time: u64) {
        self.visitors[visitor as usize].pending += 1;
        self.clockwork.at(time, Event::Visit(visitor));
    }

    fn release(&mut self, visitor: u32) {
        let here = &mut self.visitors[visitor as usize];
        if here.pending == 0 && here.place == Place::Gone && !here.counted_active && here.requests == 0 {
            here.place = Place::Forgotten;
            self.free.push(visitor);
        }
    }

    fn visit(&mut self, visitor: u32) {
        let now = self.now();
        let here = &mut self.visitors[visitor as usize];
        here.pending -= 1;
        if here.place == Place::Queue && now >= here.gives_up {
            here.place = Place::Gone;
            let (bucket, queued_at) = (here.bucket, here.queued_at);
            if !self.visitors[visitor as usize].is_bot {
                self.measure.gave_up(now, bucket, queued_at);
            }
            self.close(visitor);
            self.measure.chance(now - queued_at, self.visitors[visitor as usize].reloads, false);
            self.release(visitor);
            return;
        }
        if here.asking {
            // The last request has not been answered yet: the next one comes a moment later.
            self.visit_at(visitor, now + 500);
            return;
        }
        if self.colos[usize::from(self.visitors[visitor as usize].colo)].dead {
            self.visitors[visitor as usize].colo = self.pick_colo(0);
        }
        let home = self.visitors[visitor as usize].colo;
        let roams = self.behaviour.roaming > 0.0 && self.rng.f64() < self.behaviour.roaming;
        let colo = if roams { self.pick_colo(0) } else { home };
        let twin = self.behaviour.parallel > 0.0 && self.rng.f64() < self.behaviour.parallel;
        let here = &mut self.visitors[visitor as usize];
        let ticket = here.ticket;
        here.requests += 1;
        self.request(visitor, colo, ticket, false);
        if twin && ticket.is_some() {
            self.request(visitor, colo, ticket, true);
        }
        self.visitors[visitor as usize].requests -= 1;
        self.release(visitor);
    }

    /// Whoever gives up closes the page, and some pages say so.
    fn close(&mut self, visitor: u32) {
        if self.behaviour.closing <= 0.0 || self.rng.f64() >= self.behaviour.closing {
            return;
        }
        let here = &self.visitors[visitor as usize];
        let Some(ticket) = here.ticket else { return };
        let colo = here.colo;
        let worker = self.rng.usize(0..self.setup.workers) as u16;
        let at = self.worker_time(colo, worker);
        let from = Seen::of(&ticket, self.rooms[self.version(colo, worker)].at(at).0);
        let bucket = queue_bucket(&self.room, &self.draw_key, ticket.bucket, ticket.id);
        self.note(colo, worker, CheckIn::GiveUp { id: ticket.id, bucket, from, at });
    }

    /// The origin ends a session with its answer to the last page.
    fn revoke(&mut self, visitor: u32) {
        let here = &mut self.visitors[visitor as usize];
        let Some(ticket) = here.ticket.take().filter(|_| here.counted_active) else { return };
        here.counted_active = false;
        let colo = here.colo;
        self.measure.expired(self.clockwork.now());
        let worker = self.rng.usize(0..self.setup.workers) as u16;
        let at = self.worker_time(colo, worker);
        self.note(
            colo,
            worker,
            CheckIn::Leave { id: ticket.id, from: ticket.last_check_in, at, entered: ticket.accepted_at },
        );
    }

    /// One request, to any worker of a colo. A twin is the second of two at once with one cookie.
    fn request(&mut self, visitor: u32, colo: u16, ticket: Option<Ticket>, twin: bool) {
        let own = self.local(colo);
        let true_now = self.now();
        let worker = self.rng.usize(0..self.setup.workers) as u16;
        let id = self.rng.u64(1..);
        self.measure.requests += 1;
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let now = desk.controller.time(own);
        let room = self.rooms[desk.controller.overrides().version as usize].at(now).0;
        if room.suspended {
            self.past(colo, worker, visitor, twin);
            return;
        }
        let standing = standing(ticket, now, &room.terms());
        let here = &mut self.visitors[visitor as usize];
        let ticket = match standing {
            Standing::Waiting(ticket) | Standing::Active(ticket) => ticket,
            Standing::New => {
                if here.place == Place::Inside {
                    // The session was over: a new visit, and a new visitor for the room.
                    here.place = Place::Outside;
                }
                if here.place == Place::Outside {
                    here.bucket = queue_bucket(&self.room, &self.draw_key, minute_of(true_now), id);
                    self.measure.arrived(true_now);
                }
                Ticket::new(id, now)
            }
        };
        if !matches!(standing, Standing::Active(_)) {
            self.look_into_cache(colo, worker);
            if self.rooms[self.version(colo, worker)].suspended {
                self.past(colo, worker, visitor, twin);
                return;
            }
        }
        if let Some(pages) = &mut self.pages {
            let here = &self.visitors[visitor as usize];
            let is_new = standing == Standing::New;
            pages.lost_places += u64::from(is_new && here.place == Place::Queue && !here.cookieless);
            pages.thrown_out += u64::from(is_new && true_now < here.active_until && !here.cookieless);
        }
        let newcomer = self.room.one_place_per_address && standing == Standing::New;
        let address = if newcomer { self.visitors[visitor as usize].address } else { 0 };
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let known = desk.controller.overrides().version;
        // Active users are not held up.
        let is_in = matches!(standing, Standing::Active(_));
        let question = if is_in { None } else { self.question_to_wait_for(colo, worker) };
        let hears = question.map(|question| (question, known));
        let request = Request {
            visitor,
            hears,
            standing,
            ticket,
            asked: (
                Whom::Counter,
                NumberAsk { id: 0, bucket: 0, waits: false, minute: 0, limit: 0, owned: 0 },
            ),
            came_at: true_now,
            twin,
            address,
        };
        let step = self.judge(colo, worker, &request);
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let room = self.rooms[desk.controller.overrides().version as usize].at(now).0;
        let refill = desk.controller.refill(room, now);
        self.act(colo, worker, request, step);
        if refill {
            self.send_take(colo, worker, 0, Vec::new());
        }
    }

    /// Judges a request by what its worker knows.
    fn judge(&mut self, colo: u16, worker: u16, request: &Request) -> Step {
        let (own, true_now) = (self.local(colo), self.now());
        let Request { standing, ticket, address, .. } = request;
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let now = desk.controller.time(own);
        let full = self.pages.is_some()
            && !matches!(standing, Standing::Active(_))
            && !desk.watch.has_room(true_now);
        let taken = desk.addresses.claim(*address, ticket.id, now) != 0;
        let room = self.rooms[desk.controller.overrides().version as usize].at(now).0;
        let draw = desk.controller.draw(room, &self.draw_key, standing, now);
        if full || taken || draw.is_some_and(|draw| !draw.wins) {
            // The origin has enough to do with those who are in; or somebody else has the address's turn; or it was no
            // winning number.
            Step::Wait
        } else if self.literal {
            let state = desk.controller.state().map(|state| (&state.key, state.global_time(now)));
            literal::judge(room, standing, ticket.id, state, now)
        } else {
            let bucket = queue_bucket(&self.room, &self.draw_key, ticket.bucket, ticket.id);
            let standing = match *standing {
                Standing::Waiting(ticket) => Standing::Waiting(Ticket { bucket, ..ticket }),
                standing => standing,
            };
            desk.controller.judge(room, &standing, ticket.id, now)
        }
    }

    /// The room is off: the request goes past it, and nobody is counted.
    fn past(&mut self, colo: u16, worker: u16, visitor: u32, twin: bool) {
        self.listen(colo, worker, false);
        let now = self.now();
        let length = self.exponential(self.behaviour.visit_seconds * 1_000.0) as u64;
        let here = &mut self.visitors[visitor as usize];
        if twin || here.place == Place::Gone {
            return;
        }
        if here.place == Place::Queue && !here.is_bot {
            self.measure.went_past();
        }
        if here.place != Place::Inside {
            here.place = Place::Inside;
            here.visit_until = now + length;
        }
        self.page(colo, worker, visitor);
    }

    // ---- Operators ----

    /// Which room a worker knows.
    fn version(&self, colo: u16, worker: u16) -> usize {
        let desk = &self.colos[usize::from(colo)].workers[usize::from(worker)];
        desk.controller.overrides().version as usize
    }

    /// Which room Anywhere knows.
    fn version_of_anywhere(&self) -> usize {
        let leases = self.room.slot_strategy == SlotStrategy::Leases;
        let overrides = if leases { self.pool.overrides() } else { self.anywhere.overrides() };
        overrides.version as usize
    }

    /// An operator changes the room.
    fn steer(&mut self, index: usize) {
        let now = self.now();
        if now < self.global_out_until {
            self.clockwork.at(now + 1_000, Event::Steer(index as u16));
            return;
        }
        let order = self.scenario.steering[index].order();
        // The scenario was checked.
        let changed = self.global.obey(&self.room, &order, "operator", now).is_ok_and(|log| !log.is_empty());
        if !changed {
            return;
        }
        let is = Rc::new(self.room.steered(self.global.overrides()));
        let was = self.rooms.last().unwrap_or(&self.room);
        let (before, limits) = (was.limits(), is.limits());
        let narrower = is.queue_all && !was.queue_all
            || was.suspended && !is.suspended
            || limits.total_active_users < before.total_active_users
            || limits.new_users_per_minute < before.new_users_per_minute;
        self.measure.steered(is.queue_all && !is.suspended, now);
        self.rooms.push(is);
        if narrower {
            self.clockwork.at(now + IN_FORCE_MS, Event::InForce);
        } else {
            self.in_force();
        }
        self.spread();
    }

    /// By now the newest order counts.
    fn in_force(&mut self) {
        let now = self.now();
        if let Some(room) = self.rooms.last() {
            self.measure.room_is(room.at(now).0, now);
        }
    }

    /// Global tells the colos that have not heard, until they have.
    fn spread(&mut self) {
        let now = self.now();
        if now < self.global_out_until {
            self.clockwork.at(now + SPREAD_AGAIN_MS, Event::Spread);
            return;
        }
        let room = Rc::clone(&self.rooms[self.global.overrides().version as usize]);
        let names = self.global.colos_to_tell(room.at(now).0, now);
        if names.is_empty() {
            return;
        }
        for name in names {
            let Some(colo) = self.colos.iter().position(|colo| colo.name == name) else { continue };
            let state = Box::new(self.global_state(Some(&name), now));
            self.measure.state_bytes(&state, false);
            let late = self.colos[colo].latency + self.jitter();
            self.clockwork.at(now + late, Event::Tell { colo: colo as u16, state });
        }
        self.clockwork.at(now + SPREAD_AGAIN_MS, Event::Spread);
    }

    /// A data center is told what operators have changed.
    fn tell(&mut self, colo: u16, state: Box<StateKey>) {
        let Some(done) = self.serve_colo(colo, false) else { return };
        let now = self.local(colo);
        let here = &mut self.colos[usize::from(colo)];
        here.data_center.hear((*state).clone(), now);
        let late = here.latency;
        self.schedule_push(colo);
        self.clockwork.at(done + late, Event::Told { colo, state });
    }

    /// A worker asks its data center what is new; returns the question's number.
    fn ask_what_is_new(&mut self, colo: u16, worker: u16, deadline: u64) -> u64 {
        let late = self.link(self.setup.local_ms);
        let now = self.clockwork.now();
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        desk.questions += 1;
        let question = desk.questions;
        desk.hearing.push(Hearing { number: question, waiting: Vec::new() });
        self.clockwork.at(now + late, Event::Hear { colo, worker, question });
        self.clockwork.at(now + deadline, Event::Deaf { colo, worker, question });
        question
    }

    /// The question whose answer a visitor who is not in waits for: the worker's own, or a new one if it is time to.
    fn question_to_wait_for(&mut self, colo: u16, worker: u16) -> Option<u64> {
        let own = self.local(colo);
        let deadline = self.setup.deadline_ms;
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        if desk.controller.begin_refresh(own) {
            // Where nothing is known the data center may have to be made first.
            let deadline =
                if desk.controller.state().is_some() { deadline } else { COLD_START_FACTOR * deadline };
            return Some(self.ask_what_is_new(colo, worker, deadline));
        }
        let question = desk.hearing.last().filter(|_| desk.controller.is_refreshing(deadline, own))?.number;
        self.clockwork.at(self.clockwork.now() + deadline, Event::Deaf { colo, worker, question });
        Some(question)
    }

    /// A worker asks what is new though nobody waits for the answer, if it is time to.
    fn listen(&mut self, colo: u16, worker: u16, inside: bool) {
        let own = self.local(colo);
        let controller = &mut self.colos[usize::from(colo)].workers[usize::from(worker)].controller;
        let listens =
            if inside { controller.begin_background_refresh(own) } else { controller.begin_refresh(own) };
        if listens {
            self.ask_what_is_new(colo, worker, REPORT_DEADLINE_MS);
        }
    }

    fn hear(&mut self, colo: u16, worker: u16, question: u64) {
        let Some(done) = self.serve_colo(colo, false) else { return };
        let now = self.local(colo);
        let here = &mut self.colos[usize::from(colo)];
        let room = self.rooms[here.data_center.overrides().version as usize].at(now).0;
        if !here.data_center.must_ask(room, now) {
            self.tell_worker(colo, worker, question, done);
            return;
        }
        here.listeners.push((worker, question));
        if !here.asking {
            here.asking = true;
            let late = here.latency;
            self.clockwork.at(done + late, Event::AskGlobal { colo });
            self.clockwork.at(done + ASK_DEADLINE_MS, Event::AskedGlobal { colo, state: None });
        }
    }

    fn ask_global(&mut self, colo: u16) {
        if self.now() < self.global_out_until {
            return;
        }
        let Some(done) = self.serve(|planet| &mut planet.global_busy, Busiest::Global) else { return };
        let name = self.colos[usize::from(colo)].name.clone();
        self.global.answered(&name, done);
        let state = self.global_state(Some(&name), done);
        self.measure.state_bytes(&state, false);
        let late = self.colos[usize::from(colo)].latency;
        self.clockwork.at(done + late, Event::AskedGlobal { colo, state: Some(Box::new(state)) });
    }

    fn asked_global(&mut self, colo: u16, state: Option<Box<StateKey>>) {
        let now = self.local(colo);
        let here = &mut self.colos[usize::from(colo)];
        if let Some(state) = state {
            here.data_center.hear(*state, now);
        }
        here.asking = false;
        for (worker, question) in std::mem::take(&mut here.listeners) {
            self.tell_worker(colo, worker, question, self.clockwork.now());
        }
    }

    fn tell_worker(&mut self, colo: u16, worker: u16, question: u64, at: u64) {
        let now = self.local(colo);
        let state = self.colos[usize::from(colo)].data_center.state(now);
        let late = self.link(self.setup.local_ms);
        let answer = Box::new((question, state));
        self.clockwork.at(at.max(self.clockwork.now()) + late, Event::Heard { colo, worker, answer });
    }

    /// A worker has its data center's answer, which may not know any state yet, or waits no longer.
    fn heard(&mut self, colo: u16, worker: u16, question: u64, key: Option<StateKey>, answered: bool) {
        let own = self.local(colo);
        let here = &mut self.colos[usize::from(colo)];
        let desk = &mut here.workers[usize::from(worker)];
        let place = desk.hearing.iter().position(|hearing| hearing.number == question);
        let Some(hearing) = place.map(|place| desk.hearing.swap_remove(place)) else { return };
        if let Some(key) = key {
            let state = Clocked { key, received_at: own };
            desk.controller.learn(state.clone());
            here.cached = Some(state);
        }
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        desk.controller.end_refresh(answered, own);
        for (request, step) in hearing.waiting {
            self.visitors[request.visitor as usize].asking = false;
            self.act(colo, worker, request, step);
            self.visitors[request.visitor as usize].requests -= 1;
            self.release(request.visitor);
        }
    }

    /// Whether a request goes on as it was judged: it may have to wait for what its worker hears, and what is new may
    /// change everything.
    fn goes_on(&mut self, colo: u16, worker: u16, request: &mut Request, step: Step) -> bool {
        let Some((question, known)) = request.hears else { return true };
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        if let Some(hearing) = desk.hearing.iter_mut().find(|hearing| hearing.number == question) {
            hearing.waiting.push((*request, step));
            let here = &mut self.visitors[request.visitor as usize];
            here.asking = true;
            here.requests += 1;
            return false;
        }
        request.hears = None;
        let version = desk.controller.overrides().version;
        if version == known {
            return true;
        }
        if self.rooms[version as usize].suspended {
            self.past(colo, worker, request.visitor, request.twin);
        } else {
            let step = self.judge(colo, worker, request);
            self.act(colo, worker, *request, step);
        }
        false
    }

    /// A worker whose state key is not fresh looks into its colo's cache.
    fn look_into_cache(&mut self, colo: u16, worker: u16) {
        let own = self.local(colo);
        let here = &mut self.colos[usize::from(colo)];
        let desk = &mut here.workers[usize::from(worker)];
        if desk.controller.begin_cache_read(own) {
            let newer = |state: &&Clocked| {
                let taken_at = desk.controller.state().map_or(0, |mine| mine.key.taken_at);
                own < state.received_at + CACHED_MS && state.key.taken_at > taken_at
            };
            if let Some(state) = here.cached.as_ref().filter(newer).cloned() {
                desk.controller.learn(state);
            }
        }
    }

    /// Whoever waits is shown a wait by a state key that is not older than a refresh, if the data center has one. The
    /// way there and back is left out: only the page comes later.
    fn ask_data_center(&mut self, colo: u16, worker: u16) {
        let own = self.local(colo);
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let room = self.rooms[desk.controller.overrides().version as usize].at(own).0;
        if desk.controller.begin_state_call(room, own) && self.serve_colo(colo, false).is_some() {
            let here = &mut self.colos[usize::from(colo)];
            if let Some(key) = here.data_center.state(own) {
                let state = Clocked { key, received_at: own };
                here.workers[usize::from(worker)].controller.learn(state.clone());
                here.cached = Some(state);
            }
        }
    }

    fn act(&mut self, colo: u16, worker: u16, mut request: Request, step: Step) {
        if !matches!(step, Step::Ask(..)) && !self.goes_on(colo, worker, &mut request, step) {
            return;
        }
        match step {
            Step::Pass => self.pass(colo, worker, &request),
            Step::Wait => self.wait(colo, worker, &request),
            Step::Refuse => self.refuse(&request),
            Step::Enter { minute, numbered } => self.enter(colo, worker, &request, minute, numbered),
            Step::Ask(whom, ask) => {
                request.asked = (whom, ask);
                let here = &mut self.visitors[request.visitor as usize];
                here.asking = true;
                here.requests += 1;
                let counter = whom == Whom::Counter;
                let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
                let asks = if counter { &mut desk.counter_desk } else { &mut desk.anywhere_desk };
                let place = asks.join((ask, request.address));
                if let Some(place) = place {
                    desk.requests.insert((counter, place), request);
                    self.turn(colo, worker, counter, place);
                } else {
                    self.answer(colo, worker, request, None);
                }
            }
        }
    }

    /// A request at a desk looks whether its answer is there, or whether it has to call for all.
    fn turn(&mut self, colo: u16, worker: u16, counter: bool, place: u64) {
        let now = self.local(colo);
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        if !desk.requests.contains_key(&(counter, place)) {
            return;
        }
        let turns = if counter { &mut desk.counter_desk } else { &mut desk.anywhere_desk };
        match turns.turn(place, now) {
            Turn::Done(outcome) => {
                if let Some(request) = desk.requests.remove(&(counter, place)) {
                    self.answer(colo, worker, request, outcome);
                }
            }
            Turn::Lead(call, batch) => {
                let asks = batch.iter().map(|(_, ask)| *ask).collect();
                desk.calls.insert((counter, call), batch.iter().map(|(place, _)| *place).collect());
                if counter {
                    self.send_take(colo, worker, call, asks);
                } else {
                    let steering = desk.controller.overrides().version;
                    let late = self.link(self.setup.pool_ms);
                    let sent = Box::new(Call { number: call, asks, loan: None, steering });
                    self.clockwork
                        .at(self.clockwork.now() + late, Event::TakeAtAnywhere { colo, worker, call: sent });
                    self.deadline(colo, worker, false, call);
                }
            }
            Turn::Later if !turns.waits(place) => {}
            Turn::Later => {
                self.clockwork
                    .at(self.clockwork.now() + DESK_MS, Event::Batcher { colo, worker, counter, place });
            }
        }
    }

    fn deadline(&mut self, colo: u16, worker: u16, counter: bool, call: u64) {
        self.clockwork.at(
            self.clockwork.now() + self.setup.deadline_ms,
            Event::TakeFailed { colo, worker, counter, call },
        );
    }

    fn answer(&mut self, colo: u16, worker: u16, request: Request, outcome: Option<Outcome>) {
        let own = self.local(colo);
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let now = desk.controller.time(own);
        let taken = desk.addresses.holder(request.address, request.ticket.id, now) != 0;
        let step = if taken {
            Step::Wait
        } else {
            let room = self.rooms[desk.controller.overrides().version as usize].at(now).0;
            desk.controller.answered(room, &request.standing, request.asked, outcome, now)
        };
        self.visitors[request.visitor as usize].asking = false;
        self.act(colo, worker, request, step);
        self.visitors[request.visitor as usize].requests -= 1;
        self.release(request.visitor);
    }

    fn link(&mut self, (from, to): (u64, u64)) -> u64 {
        self.rng.u64(from..=to)
    }

    fn worker_time(&self, colo: u16, worker: u16) -> u64 {
        let own = self.local(colo);
        self.colos[usize::from(colo)].workers[usize::from(worker)].controller.time(own)
    }

    fn note(&mut self, colo: u16, worker: u16, check_in: CheckIn) {
        let own = self.local(colo);
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let now = desk.controller.time(own);
        let room = self.rooms[desk.controller.overrides().version as usize].at(now).0;
        desk.outbox.note(room, check_in, desk.controller.level(), now);
        if check_in.is_last_moment(room) {
            for attempt in 0..HOLD_TRIES {
                let late = self.link(self.setup.pool_ms) + self.jitter();
                if !self.is_lost() {
                    let late = late + u64::from(attempt) * HOLD_AGAIN_MS;
                    self.clockwork.at(self.clockwork.now() + late, Event::HoldSession);
                    break;
                }
            }
        }
        self.announce(colo, worker);
    }

    fn announce(&mut self, colo: u16, worker: u16) {
        let own = self.local(colo);
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let now = desk.controller.time(own);
        if let Some(wait) = desk.outbox.announce(now) {
            let due = self.clockwork.now() + wait;
            self.clockwork.at(due, Event::Report { colo, worker });
        }
    }

    fn pass(&mut self, colo: u16, worker: u16, request: &Request) {
        let now = self.worker_time(colo, worker);
        let ticket = request.ticket;
        let moved = self.rooms[self.version(colo, worker)].at(now).0.moves_on(&ticket, now);
        if moved {
            let (from, entered) = (ticket.last_check_in, ticket.accepted_at);
            self.note(colo, worker, CheckIn::Move { id: ticket.id, from, at: now, entered });
            self.listen(colo, worker, true);
        }
        let true_now = self.now();
        let session = self.room.at(true_now).0.session_ms();
        let here = &mut self.visitors[request.visitor as usize];
        if moved {
            here.ticket = Some(ticket.checked_in(now));
        }
        // Within a slot the cookie stays as it is: its session counts from the request that wrote it.
        let begins = moved || !here.counted_active && !self.room.at(now).0.disable_session_renewal;
        let from = if begins { true_now } else { here.active_until.saturating_sub(session) };
        here.active_until = here.active_until.max(from + session);
        if here.place != Place::Inside {
            // Let in by a twin's answer that came later than this one's cookie.
            here.place = Place::Inside;
        }
        if !request.twin {
            self.page(colo, worker, request.visitor);
        }
    }

    fn enter(&mut self, colo: u16, worker: u16, request: &Request, minute: u32, numbered: bool) {
        let now = self.worker_time(colo, worker);
        let waits = matches!(request.standing, Standing::Waiting(_)) && !request.ticket.uncounted;
        let ticket = request.ticket;
        let from = waits.then(|| Seen::of(&ticket, self.rooms[self.version(colo, worker)].at(now).0));
        let check_in = CheckIn::Enter {
            id: ticket.id,
            bucket: queue_bucket(&self.room, &self.draw_key, ticket.bucket, ticket.id),
            from,
            at: now,
            minute,
            numbered,
        };
        self.note(colo, worker, check_in);
        let true_now = self.now();
        let session = self.room.at(true_now).0.session_ms();
        let mean = self.behaviour.visit_seconds * 1_000.0;
        let length = self.exponential(mean) as u64;
        let here = &mut self.visitors[request.visitor as usize];
        if here.place == Place::Gone {
            return;
        }
        let first = here.place != Place::Inside;
        here.ticket = (!here.cookieless).then_some(ticket.admitted(now));
        if first {
            let queued = here.place == Place::Queue && !here.is_bot;
            here.place = Place::Inside;
            here.visit_until = true_now + length;
            self.measure.cookieless += u64::from(here.cookieless);
            self.measure.admitted(
                true_now,
                here.bucket,
                queued.then_some(here.queued_at),
                true_now - request.came_at,
                here.first_shown.map(u64::from),
                here.rose,
            );
            if queued {
                self.measure.chance(true_now - here.queued_at, here.reloads, true);
            }
        }
        here.active_until = true_now + session;
        if !here.counted_active {
            here.counted_active = true;
            here.pending += 1;
            self.clockwork.at(true_now + session, Event::Expiry(request.visitor));
            self.measure.activated(true_now);
        }
        // Whoever refuses cookies is a new visitor with the next request.
        if (here.cookieless && first) || !request.twin {
            self.page(colo, worker, request.visitor);
        }
    }

    fn wait(&mut self, colo: u16, worker: u16, request: &Request) {
        self.look_into_cache(colo, worker);
        self.ask_data_center(colo, worker);
        let now = self.worker_time(colo, worker);
        let known = matches!(request.standing, Standing::Waiting(_));
        let waits = known && !request.ticket.uncounted;
        let desk = &self.colos[usize::from(colo)].workers[usize::from(worker)];
        let uncounted = !known && desk.addresses.holder(request.address, request.ticket.id, now) != 0;
        let ticket = Ticket { uncounted, ..request.ticket };
        let whole = Rc::clone(&self.rooms[self.version(colo, worker)]);
        let room = whole.at(now).0;
        let bucket = queue_bucket(&self.room, &self.draw_key, ticket.bucket, ticket.id);
        let true_now = self.now();
        let random = self.rng.f64();
        let state = self.colos[usize::from(colo)].workers[usize::from(worker)].controller.state_to_tell(now);
        let time = state.map_or(now, |state| state.global_time(now));
        let key = state.map(|state| &state.key);
        let estimate = key
            .and_then(|key| estimated_wait_seconds(room, key, bucket, time))
            .map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
        let next = if room.queueing_method == QueueingMethod::Random {
            next_draw_seconds(room, ticket.id, now, random)
        } else {
            next_check_in_seconds(room, key, bucket, known, time, random)
        };
        let waiting = Ticket { refresh_seconds: next as u16, ..ticket.checked_in(now) };
        let from = waits.then(|| Seen::of(&ticket, room));
        let at = Seen::of(&waiting, room);
        if !uncounted {
            self.note(colo, worker, CheckIn::Wait { id: ticket.id, bucket, from, at });
        }
        let patience = self.exponential(self.behaviour.patience_seconds * 1_000.0) as u64;
        let leaves = self.behaviour.leave_at_once > 0.0 && self.rng.f64() < self.behaviour.leave_at_once;
        let refresh = room.refresh_ms();
        // The page's timer and the way here add a little.
        let next = u64::from(next) * 1_000 + self.rng.u64(0..500);
        let here = &mut self.visitors[request.visitor as usize];
        if request.twin || here.place == Place::Inside || here.place == Place::Gone {
            return;
        }
        if here.place == Place::Outside {
            here.place = Place::Queue;
            (here.shown, here.first_shown, here.rose) = (None, None, false);
            here.queued_at = true_now;
            here.gives_up = if leaves { true_now } else { true_now + patience };
            if !self.visitors[request.visitor as usize].is_bot {
                self.measure.queued(true_now);
            }
        }
        let here = &mut self.visitors[request.visitor as usize];
        if let (Some(shown), Some(estimate)) = (here.shown, estimate) {
            here.rose |= u64::from(estimate) * 1_000 > u64::from(shown) * 1_000 + refresh;
        }
        if here.first_shown.is_none() {
            here.first_shown = estimate;
        }
        here.shown = estimate.or(here.shown);
        here.ticket = (!here.cookieless).then_some(waiting);
        let next = if here.reloads { next.min(RELOAD_MS) } else { next };
        let next = (true_now + next).min(here.gives_up.max(true_now + 1));
        if leaves {
            here.place = Place::Gone;
            let (bucket, queued_at) = (here.bucket, here.queued_at);
            if !self.visitors[request.visitor as usize].is_bot {
                self.measure.gave_up(true_now, bucket, queued_at);
            }
            self.release(request.visitor);
        } else {
            self.visit_at(request.visitor, next);
        }
    }

    /// Whoever is turned away goes; who waited keeps the place while the ticket is good, but this one does not come back.
    fn refuse(&mut self, request: &Request) {
        let now = self.now();
        let here = &mut self.visitors[request.visitor as usize];
        if request.twin || here.place == Place::Inside || here.place == Place::Gone {
            return;
        }
        let queued = here.place == Place::Queue;
        here.place = Place::Gone;
        let (bucket, queued_at) = (here.bucket, here.queued_at);
        if queued && !self.visitors[request.visitor as usize].is_bot {
            self.measure.gave_up(now, bucket, queued_at);
        }
    }

    fn next_page(&mut self, visitor: u32) {
        let now = self.now();
        let gap = self.exponential(self.behaviour.gap_seconds * 1_000.0) as u64;
        let returns = self.behaviour.returning > 0.0 && self.rng.f64() < self.behaviour.returning;
        let pause = 60_000 + self.exponential(300_000.0) as u64;
        let length = self.exponential(self.behaviour.visit_seconds * 1_000.0) as u64;
        let here = &mut self.visitors[visitor as usize];
        if now + gap < here.visit_until {
            self.visit_at(visitor, now + gap.max(1));
        } else if returns {
            here.visit_until = here.visit_until.max(now) + pause + length;
            self.visit_at(visitor, now + pause);
        } else {
            here.place = Place::Gone;
            if self.behaviour.revoked > 0.0 && self.rng.f64() < self.behaviour.revoked {
                self.revoke(visitor);
            }
            self.release(visitor);
        }
    }

    // ---- The origin ----

    /// A page is asked for at the origin; the next one follows when it has come.
    fn page(&mut self, colo: u16, worker: u16, visitor: u32) {
        let now = self.now();
        let Some(pages) = &mut self.pages else { return self.next_page(visitor) };
        self.visitors[visitor as usize].requests += 1;
        let watch = &mut self.colos[usize::from(colo)].workers[usize::from(worker)].watch;
        let page = |passage| Page { visitor, colo, worker, passage, at: now };
        match watch.arrive(now) {
            Arrival::Go(passage) => self.send_page(page(passage)),
            Arrival::InLine(passage) => {
                let asks = now + watch.ask_after_ms(passage);
                let number = pages.take(page(passage));
                self.clockwork.at(asks, Event::Line(number));
            }
            Arrival::Refused => self.page_refused(visitor),
        }
    }

    fn send_page(&mut self, page: Page) {
        let now = self.now();
        let patience = (self.behaviour.page_patience_seconds * 1_000.0) as u64;
        let timeout = self.colos[usize::from(page.colo)].workers[usize::from(page.worker)].watch.timeout_ms();
        let Some(pages) = &mut self.pages else { return };
        let number = pages.send(Page { at: now, ..page }, now - START);
        let waits = timeout.map_or(patience, |timeout| timeout.min(patience));
        self.clockwork.at(now + waits, Event::PageLate(number));
        self.schedule_origin();
    }

    fn schedule_origin(&mut self) {
        let now = self.now();
        if let Some(due) = self.pages.as_mut().and_then(|pages| pages.due(now - START)) {
            self.clockwork.at(START + due, Event::Origin);
        }
    }

    fn origin_answers(&mut self) {
        let now = self.now();
        let Some(pages) = &mut self.pages else { return };
        for (page, answer) in pages.answers(now - START) {
            let reply = match answer {
                OriginAnswer::Served => Reply::Status(200),
                OriginAnswer::Error => Reply::Status(500),
                OriginAnswer::Overloaded => Reply::Status(503),
                OriginAnswer::Unreachable => Reply::Unreachable,
            };
            self.page_came(page, reply);
        }
        self.schedule_origin();
    }

    fn page_came(&mut self, page: Page, reply: Reply) {
        let now = self.now();
        let desk = &mut self.colos[usize::from(page.colo)].workers[usize::from(page.worker)];
        if desk.watch.came_back(page.passage, reply, now - page.at, now) {
            let time = self.worker_time(page.colo, page.worker);
            let desk = &mut self.colos[usize::from(page.colo)].workers[usize::from(page.worker)];
            desk.outbox.note_trouble(time);
            self.announce(page.colo, page.worker);
        }
        self.visitors[page.visitor as usize].requests -= 1;
        if reply.is_trouble() {
            self.page_failed(page.visitor);
        } else {
            self.visitors[page.visitor as usize].failed = 0;
            self.next_page(page.visitor);
        }
    }

    /// The visitor, or the worker's guard, does not wait any longer.
    fn page_late(&mut self, number: u64) {
        let now = self.now();
        let Some(page) = self.pages.as_mut().and_then(|pages| pages.give_up(number)) else { return };
        let watch = &self.colos[usize::from(page.colo)].workers[usize::from(page.worker)].watch;
        if watch.timeout_ms().is_some_and(|timeout| now >= page.at + timeout) {
            self.page_came(page, Reply::TimedOut);
            return;
        }
        // Nobody tells the worker: the platform drops the request together with its visitor.
        self.visitors[page.visitor as usize].requests -= 1;
        self.page_failed(page.visitor);
    }

    fn page_refused(&mut self, visitor: u32) {
        let now = self.now();
        if let Some(pages) = &mut self.pages {
            pages.point.refused += 1;
        }
        self.visitors[visitor as usize].requests -= 1;
        // The page tries again by itself.
        let again = self.rng.u64(2_000..6_000);
        self.visit_at(visitor, now + again);
    }

    fn page_failed(&mut self, visitor: u32) {
        let now = self.now();
        let again = self.rng.u64(3_000..10_000);
        let here = &mut self.visitors[visitor as usize];
        here.failed = here.failed.saturating_add(1);
        if u32::from(here.failed) < self.behaviour.page_tries {
            self.visit_at(visitor, now + again);
        } else {
            here.place = Place::Gone;
            self.release(visitor);
        }
    }

    fn line(&mut self, number: u64) {
        let now = self.now();
        let Some(page) = self.pages.as_mut().and_then(|pages| pages.in_line(number)) else { return };
        let watch = &mut self.colos[usize::from(page.colo)].workers[usize::from(page.worker)].watch;
        match watch.turn(page.passage, now) {
            GuardTurn::Later => {
                let asks = now + watch.ask_after_ms(page.passage).max(1);
                self.clockwork.at(asks, Event::Line(number));
            }
            turn => {
                if let Some(pages) = &mut self.pages {
                    pages.leave(number);
                }
                if turn == GuardTurn::Go { self.send_page(page) } else { self.page_refused(page.visitor) }
            }
        }
    }

    fn sample_origin(&mut self) {
        let now = self.now();
        let Some(pages) = &mut self.pages else { return };
        if pages.is_due(now - START) {
            let room = self.rooms[self.global.overrides().version as usize].at(now).0;
            let status = self.global.origin_status(room, now);
            pages.sample(now - START, &status, self.measure.active());
        }
    }

    /// From now on it is another room: sessions last longer, or end sooner.
    fn change(&mut self) {
        let now = self.now();
        let (before, room) = (self.room.at(now - 1).0, self.room.at(now).0);
        self.measure.room_is(room, now);
        let (was, is) = (before.session_ms(), room.session_ms());
        if was != is {
            for (index, visitor) in self.visitors.iter_mut().enumerate() {
                if visitor.counted_active {
                    visitor.active_until = visitor.active_until - was + is;
                    visitor.pending += 1;
                    self.clockwork.at(visitor.active_until, Event::Expiry(index as u32));
                }
            }
        }
        if let Some(change) = self.room.next_change(now) {
            self.clockwork.at(change, Event::Change);
        }
    }

    fn expiry(&mut self, visitor: u32) {
        let now = self.now();
        let here = &mut self.visitors[visitor as usize];
        if !here.counted_active {
            // The origin has ended it before its time.
            here.pending -= 1;
            self.release(visitor);
            return;
        }
        if here.active_until > now {
            self.clockwork.at(here.active_until, Event::Expiry(visitor));
            return;
        }
        here.pending -= 1;
        here.counted_active = false;
        if here.pending == 0 && here.requests == 0 && here.place == Place::Inside {
            // Let in by a twin's answer while the page itself was the queue's: nothing more will come.
            here.place = Place::Gone;
        }
        self.measure.expired(now);
        self.release(visitor);
    }

    // ---- Tickets ----

    fn send_take(&mut self, colo: u16, worker: u16, call: u64, asks: Vec<(NumberAsk, u64)>) {
        let own = self.local(colo);
        self.measure.counter_calls += 1;
        let leases = self.room.slot_strategy == SlotStrategy::Leases;
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let now = desk.controller.time(own);
        let loan = leases.then(|| desk.controller.loan_ask(desk.id, now));
        let steering = desk.controller.overrides().version;
        let late = self.link(self.setup.local_ms);
        let sent = Box::new(Call { number: call, asks, loan, steering });
        self.clockwork.at(self.clockwork.now() + late, Event::TakeAtCounter { colo, worker, call: sent });
        self.deadline(colo, worker, true, call);
    }

    /// When an object that serves one request at a time is done with one that comes now; `None`: it is overloaded.
    fn serve(&mut self, busy: fn(&mut Self) -> &mut u64, what: Busiest) -> Option<u64> {
        let now = self.now();
        let (service, queue) = (self.setup.service_micros, self.setup.queue_ms * 1_000);
        let busy = busy(self);
        let start = (*busy).max(now * 1_000);
        if start - now * 1_000 > queue {
            self.measure.refused += 1;
            return None;
        }
        *busy = start + service;
        let done = (*busy).div_ceil(1_000);
        self.measure.object_request(what, now);
        Some(done)
    }

    fn serve_colo(&mut self, colo: u16, counter: bool) -> Option<u64> {
        let now = self.now();
        let (service, queue) = (self.setup.service_micros, self.setup.queue_ms * 1_000);
        let here = &mut self.colos[usize::from(colo)];
        if here.dead || now < if counter { here.counter_out_until } else { here.data_center_out_until } {
            return None;
        }
        let busy = if counter { &mut here.counter_busy } else { &mut here.data_center_busy };
        let start = (*busy).max(now * 1_000);
        if start - now * 1_000 > queue {
            self.measure.refused += 1;
            return None;
        }
        *busy = start + service;
        let done = (*busy).div_ceil(1_000);
        self.measure
            .object_request(if counter { Busiest::Counter(colo) } else { Busiest::DataCenter(colo) }, now);
        Some(done)
    }

    fn take_at_counter(&mut self, colo: u16, worker: u16, call: Call) {
        let Call { number: call, asks, loan, steering } = call;
        let Some(done) = self.serve_colo(colo, true) else { return };
        let now = self.local(colo) + (done - self.now());
        let known = &mut self.colos[usize::from(colo)].counter_steering;
        *known = (*known).max(steering);
        if self.rooms[*known as usize].at(now).0.is_closed() {
            let answers = Some(asks.iter().map(|(ask, _)| ask.refused(HINT_MS)).collect());
            self.send_taken(
                colo,
                worker,
                true,
                done,
                Answer { call, answers, loan: None, taken: Vec::new() },
            );
            return;
        }
        if self.room.slot_strategy != SlotStrategy::Leases {
            let here = &mut self.colos[usize::from(colo)];
            let (asks, addresses): (Vec<_>, Vec<_>) = asks.into_iter().unzip();
            let holders = here.addresses.claim_all(&asks, &addresses, now);
            let take = |(ask, holder): (&NumberAsk, &u64)| match holder {
                0 if self.literal => here.attempts.take(ask.owned, now),
                0 => here.counter.take(ask, now),
                _ => not_now(ask),
            };
            let outcomes = Some(asks.iter().zip(&holders).map(take).collect());
            let taken = addresses.into_iter().zip(holders).filter(|(_, holder)| *holder != 0).collect();
            self.send_taken(colo, worker, true, done, Answer { call, answers: outcomes, loan: None, taken });
            return;
        }
        let here = &mut self.colos[usize::from(colo)];
        let (numbers, addresses): (Vec<_>, Vec<_>) = asks.iter().copied().unzip();
        let holders = here.addresses.claim_all(&numbers, &addresses, now);
        here.next_take += 1;
        let take = here.next_take;
        let under_way = TakeUnderWay {
            worker,
            call,
            loan,
            outcomes: vec![Outcome::Unknown; asks.len()],
            missing: holders.iter().filter(|holder| **holder == 0).count(),
            holders: holders.clone(),
            asks,
        };
        let nothing_to_ask = under_way.missing == 0;
        here.takes.insert(take, under_way);
        for (index, (ask, holder)) in numbers.iter().zip(holders).enumerate() {
            if holder == 0 {
                here.lessor.ask(take << 16 | index as u64, *ask, now);
            } else if let Some(under_way) = here.takes.get_mut(&take) {
                under_way.outcomes[index] = not_now(ask);
            }
        }
        if nothing_to_ask {
            self.finish_take(colo, take, done);
        }
        self.hand_out(colo, done);
        self.call_pool(colo);
    }

    /// Hands out what the Counter has decided.
    fn hand_out(&mut self, colo: u16, at: u64) {
        let mut finished = Vec::new();
        let here = &mut self.colos[usize::from(colo)];
        for (place, outcome) in here.lessor.answers() {
            let (take, index) = (place >> 16, (place & 0xffff) as usize);
            let Some(under_way) = here.takes.get_mut(&take) else { continue };
            under_way.outcomes[index] = outcome;
            under_way.missing -= 1;
            if under_way.missing == 0 {
                finished.push(take);
            }
        }
        for take in finished {
            self.finish_take(colo, take, at);
        }
    }

    fn finish_take(&mut self, colo: u16, take: u64, at: u64) {
        let now = self.local(colo);
        let here = &mut self.colos[usize::from(colo)];
        let Some(under_way) = here.takes.remove(&take) else { return };
        let loan = under_way.loan.map(|loan| here.lessor.lend(&loan, now));
        let addresses = under_way.asks.into_iter().map(|(_, address)| address);
        let taken = addresses.zip(under_way.holders).filter(|(_, holder)| *holder != 0).collect();
        let answer = Answer { call: under_way.call, answers: Some(under_way.outcomes), loan, taken };
        self.send_taken(colo, under_way.worker, true, at, answer);
    }

    fn send_taken(&mut self, colo: u16, worker: u16, counter: bool, at: u64, answer: Answer) {
        let late = self.link(if counter { self.setup.local_ms } else { self.setup.pool_ms });
        let answer = Box::new(answer);
        self.clockwork
            .at(at.max(self.clockwork.now()) + late, Event::Taken { colo, worker, counter, answer });
    }

    fn taken(&mut self, colo: u16, worker: u16, counter: bool, answer: Answer) {
        let Answer { call, answers, loan, taken } = answer;
        let own = self.local(colo);
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let now = desk.controller.time(own);
        for (address, holder) in taken {
            desk.addresses.learn(address, holder, now);
        }
        if counter && (loan.is_some() || call == 0) {
            desk.controller.lent(loan, now);
        }
        if call == 0 {
            return;
        }
        let turns = if counter { &mut desk.counter_desk } else { &mut desk.anywhere_desk };
        turns.finish(call, answers, own);
        let places = desk.calls.remove(&(counter, call)).unwrap_or_default();
        for place in places {
            self.look(colo, worker, counter, place);
        }
    }

    /// A request looks for its answer, without calling itself.
    fn look(&mut self, colo: u16, worker: u16, counter: bool, place: u64) {
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let turns = if counter { &mut desk.counter_desk } else { &mut desk.anywhere_desk };
        if let Some(outcome) = turns.answer(place)
            && let Some(request) = desk.requests.remove(&(counter, place))
        {
            self.answer(colo, worker, request, outcome);
        }
    }

    fn call_pool(&mut self, colo: u16) {
        let now = self.local(colo);
        let true_now = self.now();
        let here = &mut self.colos[usize::from(colo)];
        if here.dead || true_now < here.counter_out_until {
            return;
        }
        if let Some(ask) = here.lessor.call(now) {
            here.lease_sequence = ask.sequence;
            let sequence = ask.sequence;
            self.measure.pool_calls += 1;
            let late = self.link(self.setup.pool_ms);
            self.clockwork.at(true_now + late, Event::Lease { colo, ask: Box::new(ask) });
            let deadline = self.setup.deadline_ms - COUNTER_MARGIN_MS;
            self.clockwork.at(true_now + deadline, Event::LeaseFailed { colo, sequence });
        } else if let Some(due) = here.lessor.call_due(now)
            && here.lease_timer <= true_now
        {
            let wait = due.saturating_sub(now).max(1);
            here.lease_timer = true_now + wait;
            self.clockwork.at(true_now + wait, Event::CallCounterPool { colo });
        }
    }

    fn lease(&mut self, colo: u16, ask: Box<LeaseAsk>) {
        if self.now() < self.anywhere_out_until {
            return;
        }
        match self.pool.renewal(self.now()) {
            Renewal::Fresh => {}
            Renewal::Background => self.start_renewal(),
            Renewal::First => {
                self.start_renewal();
                if self.renewing {
                    self.waiting_leases.push(Waiting::Lease(colo, ask));
                    return;
                }
            }
        }
        self.serve_lease(colo, &ask);
    }

    fn serve_lease(&mut self, colo: u16, ask: &LeaseAsk) {
        let Some(done) = self.serve(|planet| &mut planet.anywhere_busy, Busiest::Anywhere) else { return };
        let name = &self.colos[usize::from(colo)].name;
        let room = &self.rooms[self.version_of_anywhere()];
        self.pool.changes_at(room.next_change(done));
        let answer = self.pool.lease(room.at(done).0, name, ask, done);
        if let Some(answer) = answer {
            let late = self.link(self.setup.pool_ms);
            self.clockwork.at(done + late, Event::Leased { colo, answer: Box::new(answer) });
        }
    }

    fn leased(&mut self, colo: u16, sequence: u64, answer: Option<&LeaseAnswer>) {
        let now = self.local(colo);
        let here = &mut self.colos[usize::from(colo)];
        if answer.is_none() && here.lease_sequence != sequence {
            return;
        }
        here.lessor.answered(answer, now);
        self.hand_out(colo, self.clockwork.now());
        self.call_pool(colo);
    }

    fn take_at_anywhere(&mut self, colo: u16, worker: u16, call: Box<Call>) {
        if self.now() < self.anywhere_out_until {
            return;
        }
        let now = self.now();
        let renewal = if self.room.slot_strategy == SlotStrategy::Leases {
            self.pool.renewal(now)
        } else {
            self.anywhere.renewal(self.rooms[self.version_of_anywhere()].at(now).0, now)
        };
        match renewal {
            Renewal::Fresh => {}
            Renewal::Background => self.start_renewal(),
            Renewal::First => {
                self.start_renewal();
                if self.renewing {
                    self.waiting_leases.push(Waiting::Take(colo, worker, call));
                    return;
                }
            }
        }
        self.serve_take(colo, worker, &call);
    }

    fn serve_take(&mut self, colo: u16, worker: u16, call: &Call) {
        let asks: Vec<NumberAsk> = call.asks.iter().map(|(ask, _)| *ask).collect();
        let asks = &asks;
        let Some(done) = self.serve(|planet| &mut planet.anywhere_busy, Busiest::Anywhere) else { return };
        self.measure.pool_calls += 1;
        let room = self.rooms[self.version_of_anywhere()].at(done).0;
        let outcomes = if self.room.slot_strategy == SlotStrategy::Leases {
            self.pool.take(room, asks, done)
        } else if self.literal {
            Some(asks.iter().map(|ask| self.attempts.take(ask.limit, done)).collect())
        } else {
            self.anywhere.take(room, asks, done)
        };
        if outcomes.is_some() {
            let answer = Answer { call: call.number, answers: outcomes, loan: None, taken: Vec::new() };
            self.send_taken(colo, worker, false, done, answer);
        }
    }

    fn start_renewal(&mut self) {
        let now = self.now();
        if self.renewing || now < self.renew_failed_at + 200 {
            return;
        }
        self.renewing = true;
        let late = self.link(self.setup.between_ms);
        self.clockwork.at(now + late, Event::Renew);
    }

    fn renew(&mut self) {
        let now = self.now();
        let served = if now < self.global_out_until {
            None
        } else {
            self.serve(|planet| &mut planet.global_busy, Busiest::Global)
        };
        let Some(done) = served else {
            self.renewing = false;
            self.renew_failed_at = now;
            self.serve_waiting();
            return;
        };
        if self.room.slot_strategy != SlotStrategy::Leases {
            self.global.anywhere_gave(Given::of(self.anywhere.ledger(now)));
        }
        let state = self.global_state(None, done);
        let late = self.link(self.setup.between_ms);
        self.clockwork.at(done + late, Event::Renewed { state: Box::new(state) });
    }

    fn renewed(&mut self, state: StateKey) {
        let now = self.now();
        self.renewing = false;
        if now >= self.anywhere_out_until {
            self.measure.state_bytes(&state, true);
            if self.room.slot_strategy == SlotStrategy::Leases {
                self.pool.renew(state, now);
            } else {
                self.anywhere.renew(state, now);
            }
        }
        self.serve_waiting();
    }

    fn serve_waiting(&mut self) {
        for waiting in std::mem::take(&mut self.waiting_leases) {
            match waiting {
                Waiting::Lease(colo, ask) => self.serve_lease(colo, &ask),
                Waiting::Take(colo, worker, call) => self.serve_take(colo, worker, &call),
            }
        }
    }

    // ---- Reports ----

    fn is_lost(&mut self) -> bool {
        self.setup.loss > 0.0 && self.rng.f64() < self.setup.loss
    }

    fn jitter(&mut self) -> u64 {
        if self.setup.jitter_ms == 0 { 0 } else { self.rng.u64(0..=self.setup.jitter_ms) }
    }

    fn report(&mut self, colo: u16, worker: u16) {
        let own = self.local(colo);
        if self.colos[usize::from(colo)].dead {
            return;
        }
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        let now = desk.controller.time(own);
        if !desk.outbox.is_due(now) {
            // An earlier report has taken it along.
            return;
        }
        let mut report = desk.outbox.report(now);
        if self.pages.is_some() {
            report.origin = desk.watch.report();
        }
        let late = self.link(self.setup.local_ms) + self.jitter();
        if !self.is_lost() {
            if self.setup.twice > 0.0 && self.rng.f64() < self.setup.twice {
                let again = Box::new(report.clone());
                let later = late + self.jitter();
                self.clockwork
                    .at(self.clockwork.now() + later, Event::Reported { colo, worker, report: again });
            }
            self.clockwork
                .at(self.clockwork.now() + late, Event::Reported { colo, worker, report: Box::new(report) });
        }
        // A report that is not answered goes again with the next announcement.
        self.announce(colo, worker);
    }

    fn reported(&mut self, colo: u16, worker: u16, report: &WorkerReport) {
        let Some(done) = self.serve_colo(colo, false) else { return };
        let now = self.local(colo);
        let here = &mut self.colos[usize::from(colo)];
        let room = self.rooms[here.data_center.overrides().version as usize].at(now).0;
        let mut answer = here.data_center.receive(room, report, now);
        if here.data_center.stores_at_once(room, now) {
            let saved = here.data_center.save(room, now);
            here.data_center.saved(&saved);
            answer.durable = here.data_center.durable(report.worker);
            if self.keeps_stored {
                here.stored = Some(saved);
            }
        }
        self.measure.answer_bytes(&answer);
        self.schedule_push(colo);
        if !self.is_lost() {
            let late = self.link(self.setup.local_ms) + self.jitter();
            self.clockwork.at(done + late, Event::ReportAnswer { colo, worker, answer: Box::new(answer) });
        }
    }

    fn report_answer(&mut self, colo: u16, worker: u16, answer: WorkerAnswer) {
        let own = self.local(colo);
        let desk = &mut self.colos[usize::from(colo)].workers[usize::from(worker)];
        desk.outbox.answered(&answer);
        if let Some(key) = answer.state {
            let state = Clocked { key, received_at: own };
            desk.controller.learn(state.clone());
            self.colos[usize::from(colo)].cached = Some(state);
        }
        self.announce(colo, worker);
    }

    fn schedule_push(&mut self, colo: u16) {
        let now = self.local(colo);
        let here = &mut self.colos[usize::from(colo)];
        let room = self.rooms[here.data_center.overrides().version as usize].at(now).0;
        if let Some(wait) = here.data_center.next_push(room, now) {
            let at = self.clockwork.now() + wait.max(10);
            if here.alarm.is_none_or(|alarm| at < alarm) {
                here.alarm = Some(at);
                self.clockwork.at(at, Event::Push { colo });
            }
        }
    }

    fn push(&mut self, colo: u16) {
        let now = self.local(colo);
        let true_now = self.now();
        let here = &mut self.colos[usize::from(colo)];
        if here.alarm != Some(true_now) || here.dead || true_now < here.data_center_out_until {
            if here.alarm == Some(true_now) {
                here.alarm = None;
                if !here.dead {
                    let later = here.data_center_out_until;
                    here.alarm = Some(later);
                    self.clockwork.at(later, Event::Push { colo });
                }
            }
            return;
        }
        here.alarm = None;
        let given =
            (self.room.slot_strategy == SlotStrategy::Counters).then(|| Given::of(here.counter.ledger(now)));
        let room = self.rooms[here.data_center.overrides().version as usize].at(now).0;
        let saved = here.data_center.save(room, now);
        here.data_center.saved(&saved);
        let report = here.data_center.push(room, &saved, given, now);
        let latency = here.latency;
        if self.keeps_stored {
            here.stored = Some(saved);
        }
        self.measure.report_bytes(&report);
        let late = latency + self.jitter();
        if self.is_lost() {
            self.clockwork.at(true_now + 2 * latency, Event::PushAnswer { colo, state: None });
        } else {
            if self.setup.twice > 0.0 && self.rng.f64() < self.setup.twice {
                let again = Box::new(report.clone());
                let later = late + self.jitter();
                self.clockwork.at(true_now + later, Event::Pushed { colo, report: again });
            }
            self.clockwork.at(true_now + late, Event::Pushed { colo, report: Box::new(report) });
        }
        self.schedule_push(colo);
    }

    fn pushed(&mut self, colo: u16, report: ColoReport) {
        let now = self.now();
        let latency = self.colos[usize::from(colo)].latency;
        let served = if now < self.global_out_until {
            None
        } else {
            self.serve(|planet| &mut planet.global_busy, Busiest::Global)
        };
        let Some(done) = served else {
            self.clockwork.at(now + latency, Event::PushAnswer { colo, state: None });
            return;
        };
        self.global.receive(self.rooms[self.global.overrides().version as usize].at(done).0, report, done);
        if self.keeps_stored {
            for report in self.global.reports_to_store() {
                self.global.report_stored(&report.colo, report.sequence);
                self.stored_global.1.insert(report.colo.clone(), report);
            }
        }
        let name = self.colos[usize::from(colo)].name.clone();
        let state = self.global_state(Some(&name), done);
        self.measure.state_bytes(&state, false);
        let late = latency + self.jitter();
        let state = if self.is_lost() { None } else { Some(Box::new(state)) };
        self.clockwork.at(done + late, Event::PushAnswer { colo, state });
    }

    fn global_state(&mut self, colo: Option<&str>, now: u64) -> StateKey {
        let room = self.rooms[self.global.overrides().version as usize].at(now).0;
        let state = self.global.state(room, colo, minute_of(now), now);
        if let Some(meta) = self.global.meta_to_store() {
            self.stored_global.0 = Some(meta);
            self.global.meta_stored();
        }
        state
    }

    // ---- Faults ----

    fn fault(&mut self, index: usize) {
        let fault = self.scenario.faults[index].clone();
        let now = self.now();
        let until = now + (fault.lasts * 1_000.0) as u64;
        let colo = fault.colo % self.colos.len();
        if fault.lasts > 0.0 {
            match fault.what {
                Broken::Global => self.global_out_until = until,
                Broken::Anywhere => self.anywhere_out_until = until,
                Broken::Counter => self.colos[colo].counter_out_until = until,
                Broken::DataCenter => self.colos[colo].data_center_out_until = until,
                Broken::Colo => self.colos[colo].dead = true,
            }
            return;
        }
        let local = self.local(colo as u16);
        let room = self.rooms.last().unwrap_or(&self.room).at(self.now()).0.clone();
        match fault.what {
            Broken::Global => {
                let reports = self.stored_global.1.values().cloned().collect();
                // What operators have changed is stored before they are answered.
                let steering = self.global.steering().clone();
                self.global = Global::restore(&room, self.stored_global.0.clone(), reports, now);
                self.global.recall_steering(steering);
                self.spread();
            }
            Broken::Anywhere => {
                self.pool = Pool::restore(self.stored_pool.clone(), now);
                let saved = self.anywhere.ledger(now).save(false);
                self.anywhere = Anywhere::restore(Some(saved), now);
            }
            Broken::Counter => {
                let epoch = self.rng.u64(1..);
                let here = &mut self.colos[colo];
                here.lessor = LeaseCounter::new(epoch);
                here.takes.clear();
                let saved = here.counter.ledger(local).save(false);
                here.counter = Counter::restore(Some(saved), local);
            }
            Broken::DataCenter => {
                let instance = self.rng.u64(1..);
                let here = &mut self.colos[colo];
                here.data_center =
                    DataCenter::restore(&room, &here.name, instance, here.stored.clone(), local);
            }
            Broken::Colo => self.colos[colo].dead = true,
        }
    }
}

/// Which object is busy, for the count of requests per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busiest {
    /// A colo's Counter.
    Counter(u16),
    /// A colo's `DataCenter`.
    DataCenter(u16),
    /// Anywhere.
    Anywhere,
    /// Global.
    Global,
}
