//! The planet: colos, workers, objects and visitors, all deciding by the machines that run in production.
//!
//! Nothing here is a rule of the room. The planet only carries: messages with their delays and losses (`network`), what
//! objects are told and do (`objects`, `storage`), visitors with their habits (`visitors`, `pages`), faults and operators
//! with their times (`faults`). What is measured is taken from the visitors' side, event by event.

mod faults;
pub(crate) mod geography;
mod network;
mod objects;
mod pages;
mod storage;
mod visitors;
mod workers;

use std::collections::VecDeque;
use std::rc::Rc;

use anteroom::admission::DrawKey;
use anteroom::machines::Effect;
use anteroom::machines::worker::WorkerEffect;
use anteroom::protocol::Object;
use anteroom::room::{Room, SlotStrategy};
use anteroom::steering::Steering;
use fastrand::Rng;

pub use self::geography::LOCATIONS;
use self::geography::Ways;
use self::network::{Ended, Message, Timeouts};
use self::objects::{Held, Station};
use self::visitors::Visitor;
use self::workers::Colo;
use crate::bounds::Bounds;
use crate::clockwork::Clockwork;
use crate::measure::{Measure, Measured};
use crate::pages::Pages;
use crate::scenario::{Behaviour, Colos, Planet as Setup, Scenario, ScenarioError};

/// When the world begins: the first millisecond of a minute.
pub const START: u64 = 28_000_000 * 60_000;

/// Most are visits: the others keep what is larger elsewhere, so that all are 16 bytes and move fast.
enum Event {
    /// A second begins: who will come in it.
    Second,
    Visit(u32),
    /// A session may have ended.
    Expiry(u32),
    /// A message comes to an object.
    Arrives {
        station: u16,
        message: Box<Message>,
    },
    /// The object has time for it.
    Served {
        station: u16,
        message: Box<Message>,
    },
    /// A call ends.
    Ended(Box<Ended>),
    /// Calls may have taken too long.
    Timeout(u16),
    /// An object is told the time.
    Timer(u16),
    Alarm(u16),
    /// An object's write is confirmed, and what waited for it leaves.
    Confirmed {
        station: u16,
        held: Box<Held>,
    },
    /// A visit or task of a worker is told the time.
    Wake {
        colo: u16,
        worker: u16,
        id: u32,
    },
    Fault(u16),
    /// Some object restarts for no reason.
    Mishap,
    /// An object restarts.
    Restart(u16),
    /// New isolates take over in a colo.
    NewIsolates(u16),
    /// An event makes another room of it.
    Change,
    /// An operator changes the room.
    Steer(u16),
    /// The operator tries again.
    Order,
    /// What was changed is to be in force.
    InForce,
    /// The origin may have answers.
    Origin,
    /// A request in line for the origin asks for its turn.
    Line(u64),
    /// Nobody waits for the origin's answer any longer.
    PageLate(u64),
    Sample,
}

/// A planet that can be let run.
pub struct Planet {
    room: Rc<Room>,
    /// The room as operators want it.
    steered: Rc<Room>,
    /// What operators have changed.
    steering: Steering,
    /// Orders that are not carried out yet, by their place in the scenario; the first is being given.
    orders: VecDeque<usize>,
    /// Until when the operator waits for an answer to it, and what operators had changed before.
    ordered: Option<(u64, Steering)>,
    draw_key: DrawKey,
    setup: Setup,
    behaviour: Behaviour,
    scenario: Scenario,
    clockwork: Clockwork<Event>,
    /// What chance is drawn from: who comes, what visitors do, what the network does, and all else. So that what one of
    /// them draws does not change the others.
    arrivals: Rng,
    rng: Rng,
    network: Rng,
    chance: Rng,
    colos: Vec<Colo>,
    /// The location hints of the regions, each with the way between its Counter and the room's objects, in microseconds.
    regions: Vec<(&'static str, u64)>,
    /// Anywhere, Global, each colo's Counter and `DataCenter`, and the Counters of the regions.
    stations: Vec<Station>,
    timeouts: Vec<Timeouts>,
    /// The same of visits and tasks, which may begin others.
    worker_effects: Vec<Vec<WorkerEffect>>,
    /// What an object does, for use again and again.
    effects: Vec<Effect>,
    /// Cumulative traffic of all, even and odd colos.
    weights: [Vec<f64>; 3],
    /// What starts now is 0.1.0.
    deploys_old: bool,
    /// `counters` as the article reads, without the repairs; see [`literal`](crate::literal).
    literal: bool,
    /// How much longer messages take than their way says, in 256ths.
    delays: [u32; 256],
    visitors: Vec<Visitor>,
    free: Vec<u32>,
    /// Parts of visitors that have not come yet, by kind of colo.
    fractions: [f64; 3],
    /// The same of attackers.
    attackers_due: f64,
    /// Visitors so far.
    arrived: u64,
    measure: Measure,
    pages: Option<Pages>,
    end: u64,
    events: u64,
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
        let room = Rc::new(scenario.room(strategy)?);
        let mut setup = scenario.planet.clone();
        if let Some(colos) = colos {
            setup.colos = colos;
        }
        let mut rng = Rng::with_seed(seed);
        let mut chance = rng.fork();
        let ways = geography::ways(setup.colos, setup.location.as_deref()).into_iter().enumerate();
        let colos = ways.map(|(index, ways)| Colo::new(index, ways, &setup, &mut chance)).collect();
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
            colos,
            regions: geography::region_ways(setup.location.as_deref()),
            stations: Vec::new(),
            timeouts: Vec::new(),
            worker_effects: Vec::new(),
            effects: Vec::new(),
            weights,
            deploys_old: setup.begins_old,
            literal: false,
            delays: geography::delays(),
            visitors: Vec::new(),
            free: Vec::new(),
            fractions: [0.0; 3],
            attackers_due: 0.0,
            arrived: 0,
            measure: Measure::new(&room, START),
            pages,
            end: START + u64::from(scenario.minutes) * 60_000,
            events: 0,
            behaviour: scenario.visitors.clone(),
            scenario: scenario.clone(),
            draw_key: DrawKey::new(None, &format!("{seed}")),
            steered: Rc::clone(&room),
            room,
            steering: Steering::default(),
            orders: VecDeque::new(),
            ordered: None,
            setup,
            arrivals: rng.fork(),
            network: rng.fork(),
            chance,
            rng,
        };
        let ways: Vec<Ways> = planet.colos.iter().map(|colo| colo.ways).collect();
        let every_second = planet.scenario.arrivals.iter().any(|arrivals| arrivals.colos != Colos::All);
        planet.measure.bounds = Bounds::of(&ways, every_second);
        planet.make_objects();
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
        planet.plan_mishap();
        planet.clockwork.at(START, Event::Second);
        planet.clockwork.at(START, Event::Sample);
        Ok(planet)
    }

    /// The same planet with `counters` read literally; see [`crate::literal`].
    #[must_use]
    pub fn with_literal_counters(mut self) -> Self {
        Rc::make_mut(&mut self.room).slot_strategy = SlotStrategy::Counters;
        self.steered = Rc::clone(&self.room);
        self.literal = true;
        self.make_objects();
        self
    }

    fn make_objects(&mut self) {
        self.stations.clear();
        self.make_object(Object::Anywhere, None);
        self.make_object(Object::Global, None);
        let colos = self.colos.len() as u16;
        for colo in 0..colos {
            self.make_object(Object::Counter, Some(colo));
            self.make_object(Object::DataCenter, Some(colo));
        }
        for region in 0..self.regions.len() as u16 {
            self.make_object(Object::Counter, Some(colos + region));
        }
    }

    /// The same planet, which records the run as the room's history would.
    #[must_use]
    pub fn with_history(mut self) -> Self {
        self.measure.record();
        self
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
        let known = self.known_state();
        let (recorded, last_minute) = self.recorded();
        let mut measured = self.measure.finish(self.end, self.events, &known);
        measured.origin = self.pages.map(Pages::finish);
        (measured.recorded, measured.last_minute) = (recorded, last_minute);
        measured
    }

    fn now(&self) -> u64 {
        self.clockwork.now()
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Second => self.second(),
            Event::Visit(visitor) => self.visit(visitor),
            Event::Expiry(visitor) => self.expiry(visitor),
            Event::Arrives { station, message } => self.arrives(station, message),
            Event::Served { station, message } => self.served(station, *message),
            Event::Ended(ended) => self.ended(ended.to, ended.answer),
            Event::Timeout(line) => self.timed_out(line),
            Event::Timer(station) => self.timer(station),
            Event::Alarm(station) => self.alarm(station),
            Event::Confirmed { station, held } => self.confirmed(station, held),
            Event::Wake { colo, worker, id } => self.wake((colo, worker, id)),
            Event::Fault(index) => self.fault(usize::from(index)),
            Event::Mishap => self.mishap(),
            Event::Restart(station) => drop(self.restart(station)),
            Event::NewIsolates(colo) => self.retire(colo),
            Event::Change => self.change(),
            Event::Steer(index) => self.steer(usize::from(index)),
            Event::Order => self.order(),
            Event::InForce => self.in_force(),
            Event::Origin => self.origin_answers(),
            Event::Line(number) => self.line(number),
            Event::PageLate(number) => self.page_late(number),
            Event::Sample => {
                self.sample_origin();
                self.measure.sample(self.clockwork.now());
                self.clockwork.at(self.clockwork.now() + 100, Event::Sample);
            }
        }
    }
}
