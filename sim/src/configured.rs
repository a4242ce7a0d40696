//! How rooms that are made at run time reach the data centers, and what that costs: isolates decide by
//! [`anteroom::machines::configuration`] when they look and whom they ask, as in production.
//!
//! Requests come to each data center at random. One counts as late by how long after a change of the rooms it was decided without
//! it. An isolate learns while it serves: of those that have served nobody for half a second the first
//! request is not counted.

use anteroom::config::Made;
use anteroom::machines::configuration::{Copy, Learner, Look, Step};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::clockwork::Clockwork;
use crate::planet::geography::{Ways, delays, ways};

/// When it begins, in milliseconds since the epoch.
const BEGIN: u64 = 1_800_000_000_000;
/// Before that nothing is measured, in milliseconds: the isolates have to learn what there is.
const SETTLES_MS: u64 = 10_000;
/// How long a cache takes to answer, in milliseconds.
const CACHE_MS: u64 = 2;
/// Time between two looks of a test at whether a colo's isolates and its cache are still there, in milliseconds.
const MISHAP_MS: u64 = 1_000;
/// An isolate has visitors if the last one came no longer ago than this, in milliseconds.
const BUSY_MS: u64 = 500;
/// Headers and lines of a request to an object and of its answer, in bytes: an assumption.
const ENVELOPE_BYTES: u64 = 300;

/// What happens.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How many rooms there are; 0: none was ever made, and none is.
    pub rooms: usize,
    /// How many data centers have visitors.
    pub colos: usize,
    /// How long it takes, in seconds.
    pub seconds: u64,
    /// Time between two changes, in seconds; 0: nothing is changed.
    pub change_every: u64,
    /// Visitors' requests of a data center, per second.
    pub requests: f64,
    /// Isolates of a data center.
    pub isolates: usize,
    /// How often the platform ends an isolate, per hour.
    pub evictions: f64,
    /// How often a cache loses its copy, per hour.
    pub cache_losses: f64,
    /// The part of all messages that is lost.
    pub loss: f64,
    /// While the object that keeps the rooms does not answer, in seconds: from, until.
    pub down: Vec<(u64, u64)>,
    /// Timeout of a call, in milliseconds (`OBJECT_DEADLINE_MS`).
    pub patience_ms: u64,
    /// Of all chance.
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            rooms: 1_000,
            colos: 300,
            seconds: 3_600,
            change_every: 60,
            requests: 20.0,
            isolates: 3,
            evictions: 1.0,
            cache_losses: 0.1,
            loss: 0.0,
            down: Vec::new(),
            patience_ms: 500,
            seed: 1,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Visitors' requests that were decided.
    pub decided: u64,
    /// Calls to the object.
    pub calls: u64,
    /// Those that it answered with all rooms, as something had changed.
    pub documents: u64,
    /// How long such an answer is, in bytes.
    pub document_bytes: u64,
    /// Bytes of all calls and answers.
    pub bytes: u64,
    /// For each change and data center: how long after it the last request was decided without it, in milliseconds; 0: none
    /// was. In order.
    pub late_ms: Vec<u64>,
    /// Requests that were decided though nothing at all was known of the rooms.
    pub unknown: u64,
    /// Requests that were decided by older rooms than one before, in the same isolate: rooms had vanished.
    pub back: u64,
    /// The longest that a first request had to wait for its isolate to learn of the rooms, in milliseconds.
    pub longest_wait_ms: u64,
}

impl Figures {
    /// Of [`Figures::late_ms`], the value that this part of them is not above, in milliseconds.
    pub fn late(&self, part: f64) -> u64 {
        let place = (self.late_ms.len() as f64 * part).ceil() as usize;
        self.late_ms.get(place.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// When a visitor's request came that waits until its isolate has tried to learn what there is.
type Waits = Option<u64>;

#[derive(Debug)]
enum Event {
    Request(usize),
    Mishap,
    Change,
    /// The cache has answered.
    Read {
        who: Who,
        look: Look,
        waits: Waits,
    },
    ReadClaim {
        who: Who,
        look: Look,
        waits: Waits,
    },
    Claimed {
        who: Who,
        look: Look,
        waits: Waits,
    },
    Arrives {
        who: Who,
        call: u64,
        look: Look,
        waits: Waits,
        known: Option<u64>,
    },
    Told {
        who: Who,
        call: u64,
        look: Look,
        waits: Waits,
        version: Option<u64>,
    },
}

/// An isolate, in this life of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Who {
    colo: usize,
    isolate: usize,
    life: u64,
}

#[derive(Debug, Default)]
struct Isolate {
    life: u64,
    learner: Learner,
    /// The version whose text it has.
    text: Option<u64>,
    /// The version by which it has decided its last request.
    decided_by: Option<u64>,
    /// When that was.
    decided_at: u64,
}

struct Colo {
    ways: Ways,
    copy: Option<Copy>,
    claimed_at: Option<u64>,
    isolates: Vec<Isolate>,
    /// For each change: how late the last request was.
    late: Vec<u64>,
}

struct World<'a> {
    setup: &'a Setup,
    random: Rng,
    delays: [u32; 256],
    clock: Clockwork<Event>,
    colos: Vec<Colo>,
    /// When each version came into being; version 1 stands first.
    changes: Vec<u64>,
    calls: u64,
    /// Calls that are not over, in their order.
    open: rustc_hash::FxHashSet<u64>,
    figures: Figures,
}

/// What isolates learn of so many rooms: a text as the object makes it.
///
/// # Panics
/// Where the core cannot read it, or finds anything wrong with it.
pub fn document(rooms: usize, version: u64) -> String {
    let all: Vec<Value> = (0..rooms)
        .map(|number| {
            let table = json!({
                "host": format!("shop-{}.example.com", number % 100), "total_active_users": 1_000 + number,
                "new_users_per_minute": 200, "path": format!("/sale/{number}"), "queueing_method": "fifo",
                "session_duration": 5, "default_template_language": "de-DE",
                "message": "Seats are left for all three evenings.",
            });
            json!([format!("{number:032x}"), format!("room-{number}"), table])
        })
        .collect();
    let text =
        json!({ "v": 1, "version": version, "crawlers": null, "rooms": all, "events": [], "gone": [] });
    let text = text.to_string();
    let (read, errors) = Made::read(&text).expect("it can be read").with(std::iter::empty());
    assert!(errors.is_empty() && read.len() == rooms, "{errors:?}");
    text
}

/// Lets it happen.
pub fn run(setup: &Setup) -> Figures {
    let colos = ways(setup.colos, None).into_iter().map(|ways| Colo {
        ways,
        copy: None,
        claimed_at: None,
        isolates: (0..setup.isolates).map(|_| Isolate::default()).collect(),
        late: Vec::new(),
    });
    let mut world = World {
        setup,
        random: Rng::with_seed(setup.seed),
        delays: delays(),
        clock: Clockwork::new(BEGIN),
        colos: colos.collect(),
        changes: Vec::new(),
        calls: 0,
        open: rustc_hash::FxHashSet::default(),
        figures: Figures { document_bytes: document(setup.rooms, 1).len() as u64, ..Figures::default() },
    };
    world.play();
    let mut figures = world.figures;
    figures.late_ms = world.colos.iter().flat_map(|colo| colo.late.iter().skip(1).copied()).collect();
    figures.late_ms.sort_unstable();
    figures
}

impl World<'_> {
    fn play(&mut self) {
        let end = BEGIN + SETTLES_MS + self.setup.seconds * 1_000;
        if self.setup.rooms > 0 {
            self.change();
        }
        for colo in 0..self.colos.len() {
            self.next_request(colo);
        }
        self.clock.at(BEGIN + MISHAP_MS, Event::Mishap);
        if self.setup.change_every > 0 {
            self.clock.at(BEGIN + SETTLES_MS, Event::Change);
        }
        while let Some(event) = self.clock.next(end) {
            match event {
                Event::Request(colo) => {
                    self.request(colo);
                    self.next_request(colo);
                }
                Event::Mishap => self.mishap(),
                Event::Change => {
                    // While nobody answers, nobody can change anything.
                    if !self.is_down() {
                        self.change();
                    }
                    self.clock.at(self.clock.now() + self.setup.change_every * 1_000, Event::Change);
                }
                Event::Read { who, look, waits } => self.read(who, look, waits),
                Event::ReadClaim { who, look, waits } => self.read_claim(who, look, waits),
                Event::Claimed { who, look, waits } => self.step(who, Step::Ask, look, waits),
                Event::Arrives { who, call, look, waits, known } => {
                    self.arrives(who, call, look, waits, known);
                }
                Event::Told { who, call, look, waits, version } => {
                    if self.open.remove(&call) {
                        self.told(who, look, waits, version);
                    }
                }
            }
        }
    }

    fn is_measured(&self) -> bool {
        self.clock.now() >= BEGIN + SETTLES_MS
    }

    fn is_down(&self) -> bool {
        let second = (self.clock.now() - BEGIN) / 1_000;
        self.setup.down.iter().any(|(from, until)| (*from..*until).contains(&second))
    }

    fn version(&self) -> u64 {
        self.changes.len() as u64
    }

    fn change(&mut self) {
        self.changes.push(self.clock.now());
        for colo in &mut self.colos {
            colo.late.push(0);
        }
    }

    fn next_request(&mut self, colo: usize) {
        let gap = -(1.0 - self.random.f64()).ln() * 1_000.0 / self.setup.requests;
        self.clock.at(self.clock.now() + gap as u64, Event::Request(colo));
    }

    /// Some isolates end, and some caches lose their copies.
    fn mishap(&mut self) {
        let chance = |per_hour: f64| per_hour * MISHAP_MS as f64 / 3_600_000.0;
        for colo in &mut self.colos {
            for isolate in &mut colo.isolates {
                if self.random.f64() < chance(self.setup.evictions) {
                    *isolate = Isolate { life: isolate.life + 1, ..Isolate::default() };
                }
            }
            // Where the object is away, the copy is all that a new isolate has.
            if self.random.f64() < chance(self.setup.cache_losses) {
                colo.copy = None;
            }
        }
        self.clock.at(self.clock.now() + MISHAP_MS, Event::Mishap);
    }

    fn request(&mut self, colo: usize) {
        let now = self.clock.now();
        let isolate = self.random.usize(0..self.setup.isolates);
        let known = &mut self.colos[colo].isolates[isolate];
        let who = Who { colo, isolate, life: known.life };
        if !known.learner.has_tried() {
            let look = known.learner.look(false, now);
            return self.step(who, look.begin(), look, Some(now));
        }
        if let Some(look) = known.learner.due(true, now) {
            self.step(who, look.begin(), look, None);
        }
        self.decide(who);
    }

    /// A request is decided by what its isolate knows.
    fn decide(&mut self, who: Who) {
        if !self.is_measured() {
            return;
        }
        let now = self.clock.now();
        let colo = &mut self.colos[who.colo];
        let isolate = &mut colo.isolates[who.isolate];
        let known = isolate.learner.known();
        self.figures.decided += 1;
        self.figures.unknown += u64::from(known.is_none() && self.setup.rooms > 0);
        self.figures.back += u64::from(isolate.decided_by > known);
        isolate.decided_by = known;
        let is_busy = now <= isolate.decided_at + BUSY_MS;
        isolate.decided_at = now;
        let Some(known) = known.filter(|_| is_busy) else { return };
        for (late, at) in colo.late.iter_mut().zip(&self.changes).skip(known as usize) {
            *late = (*late).max(now - at);
        }
    }

    fn isolate(&mut self, who: Who) -> Option<&mut Isolate> {
        Some(&mut self.colos[who.colo].isolates[who.isolate]).filter(|isolate| isolate.life == who.life)
    }

    fn way(&mut self, colo: usize) -> u64 {
        let delay = self.delays[usize::from(self.random.u8(..))];
        (self.colos[colo].ways.to_room * u64::from(delay) / 256 + 500) / 1_000
    }

    fn is_lost(&mut self) -> bool {
        self.setup.loss > 0.0 && self.random.f64() < self.setup.loss
    }

    fn step(&mut self, who: Who, step: Step, look: Look, waits: Waits) {
        let now = self.clock.now();
        match step {
            Step::Read => self.clock.at(now + CACHE_MS, Event::Read { who, look, waits }),
            Step::ReadClaim => self.clock.at(now + CACHE_MS, Event::ReadClaim { who, look, waits }),
            Step::Claim => {
                self.colos[who.colo].claimed_at = Some(now);
                self.clock.at(now + CACHE_MS, Event::Claimed { who, look, waits });
            }
            Step::Ask => {
                let known = self.isolate(who).and_then(|isolate| isolate.text);
                self.calls += 1;
                let call = self.calls;
                self.open.insert(call);
                if self.is_measured() {
                    self.figures.calls += 1;
                    self.figures.bytes += ENVELOPE_BYTES;
                }
                let late = Event::Told { who, call, look: look.clone(), waits, version: None };
                self.clock.at(now + self.setup.patience_ms, late);
                let at = now + self.way(who.colo);
                if !self.is_lost() {
                    self.clock.at(at, Event::Arrives { who, call, look, waits, known });
                }
            }
            Step::Keep => {
                let kept = self.isolate(who).and_then(|isolate| isolate.text);
                if let Some(version) = kept {
                    self.colos[who.colo].copy = Some(Copy { version, kept_at: now });
                }
                self.step(who, Step::End, look, waits);
            }
            Step::End => self.end(who, &look, waits),
        }
    }

    fn read(&mut self, who: Who, mut look: Look, waits: Waits) {
        let (now, copy) = (self.clock.now(), self.colos[who.colo].copy);
        let Some(isolate) = self.isolate(who) else { return };
        isolate.text = isolate.text.max(copy.map(|copy| copy.version));
        let step = look.found(&isolate.learner, copy, true, now);
        self.step(who, step, look, waits);
    }

    fn read_claim(&mut self, who: Who, mut look: Look, waits: Waits) {
        let (now, at) = (self.clock.now(), self.colos[who.colo].claimed_at);
        let Some(isolate) = self.isolate(who) else { return };
        let step = look.claimed(&isolate.learner, at, now);
        self.step(who, step, look, waits);
    }

    /// The object answers, if it can.
    fn arrives(&mut self, who: Who, call: u64, look: Look, waits: Waits, known: Option<u64>) {
        if self.is_down() {
            return;
        }
        let version = self.version();
        if self.is_measured() {
            self.figures.bytes += ENVELOPE_BYTES;
            if known != Some(version) {
                self.figures.documents += 1;
                self.figures.bytes += self.figures.document_bytes;
            }
        }
        let at = self.clock.now() + self.way(who.colo);
        if !self.is_lost() {
            self.clock.at(at, Event::Told { who, call, look, waits, version: Some(version) });
        }
    }

    fn told(&mut self, who: Who, mut look: Look, waits: Waits, version: Option<u64>) {
        let Some(isolate) = self.isolate(who) else { return };
        isolate.text = version.or(isolate.text);
        let step = look.told(version);
        self.step(who, step, look, waits);
    }

    fn end(&mut self, who: Who, look: &Look, waits: Waits) {
        let Some(isolate) = self.isolate(who) else { return };
        if isolate.learner.looked(look)
            && let Some(version) = isolate.text
        {
            isolate.learner.learned(version);
        }
        if let Some(since) = waits {
            if self.is_measured() {
                self.figures.longest_wait_ms = self.figures.longest_wait_ms.max(self.clock.now() - since);
            }
            self.decide(who);
        }
    }
}
