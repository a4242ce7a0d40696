//! A small planet for the tests: colos, workers, the four objects and visitors, all running the core that the Worker
//! runs. Time is virtual, randomness is seeded, links have latency, and messages get lost if a test wants it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use anteroom::admission::{
    Anywhere, Clocked, Counter, Decision, Fallback, Hint, Level, NumberAsk, Outcome, Renewal, StateKey,
    decide, minute_of,
};
use anteroom::config::Room;
use anteroom::counts::{CheckIn, DataCenter, Global, Outbox};
use anteroom::history::{Minute, Record};
use anteroom::protocol::messages::{ColoReport, Given};
use anteroom::ticket::{Standing, Ticket, standing};
use fastrand::Rng;

/// How long it takes at the most until everything is reported.
const SETTLING_MS: u64 = 10_000;
/// How long it takes until all minutes are recorded.
const RECORDING_MS: u64 = 240_000;

/// What a test's world is like.
#[derive(Debug, Clone)]
pub struct Setup {
    pub room: Room,
    pub colos: usize,
    pub workers: usize,
    pub seed: u64,
    /// Arrivals per minute in each minute.
    pub arrivals: Vec<u32>,
    /// Mean pages per visit after the first, and mean seconds between them (cut off well below the session).
    pub pages: f64,
    pub think_seconds: f64,
    /// Share of reports and pushes that are lost.
    pub loss: f64,
    /// Objects that break down: at which millisecond, which object.
    pub breakdowns: Vec<(u64, Breakdown)>,
    /// Share of requests that go to a random colo instead of the visitor's own.
    pub roaming: f64,
    /// Share of requests that are sent twice in parallel with one cookie.
    pub doubled: f64,
    /// Share of users whose session the origin ends with their last page.
    pub revoked: f64,
    /// Share of check-ins after which a waiting visitor closes the page. Every second one comes back.
    pub closing: f64,
}

#[derive(Debug, Clone, Copy)]
pub enum Breakdown {
    DataCenter(usize),
    Counter(usize),
    Anywhere,
    Global,
}

/// What a run showed.
#[derive(Debug, Default)]
pub struct Findings {
    pub most_active: usize,
    pub most_in_a_minute: u64,
    pub admitted: usize,
    pub queued: usize,
    pub passed_over: usize,
    pub still_waiting: usize,
    pub still_asking: usize,
    pub waiting_known: i64,
    pub gone: usize,
    pub left_unused: i64,
    pub mean_idle: f64,
    pub final_active_known: i64,
    pub final_active_true: usize,
    pub calls: u64,
    pub records: BTreeMap<u32, Record>,
    /// What is stored with the last minute that was recorded.
    pub last_minute: Option<Minute>,
    pub truth: BTreeMap<u32, Truth>,
    /// How long those who waited had waited, in milliseconds, and from entering until the last request.
    pub waits: Vec<u64>,
    pub stays: Vec<u64>,
}

/// What visitors did in a minute.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Truth {
    pub new_users: u64,
    pub joins: u64,
    pub waited: u64,
    pub revoked: u64,
    pub active: u64,
    pub waiting: u64,
}

struct Worker {
    outbox: Outbox,
    state: Option<Clocked>,
    counter_hint: Hint,
    anywhere_hint: Hint,
    fallback: Fallback,
}

struct Colo {
    name: String,
    workers: Vec<Worker>,
    counter: Counter,
    data_center: DataCenter,
    /// When the alarm rings: an object has one, the latest set counts.
    alarm: Option<u64>,
    latency: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Waiting,
    /// Closed the page, and may come back.
    Away,
    Active,
    /// The session was ended.
    Revoked,
}

struct Visitor {
    ticket: Option<Ticket>,
    home: usize,
    phase: Phase,
    last_request: u64,
    pages_left: u32,
    queued_at: Option<u64>,
    admitted_at: Option<u64>,
    bucket: u32,
}

#[derive(Debug, Clone, PartialEq)]
enum Event {
    Visit { visitor: usize },
    Close { visitor: usize, checked_in: u64 },
    Judged { visitor: usize, colo: usize, worker: usize, ticket: Ticket, waited: Option<u64> },
    Report { colo: usize, worker: usize },
    Push { colo: usize },
    Pushed { colo: usize, report: Box<ColoReport> },
    Answered { colo: usize, state: Box<StateKey> },
    Renewed { state: Box<StateKey> },
    Breakdown(usize),
    Look,
    Record,
}

pub struct World {
    setup: Setup,
    now: u64,
    start: u64,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    details: BTreeMap<u64, Event>,
    rng: Rng,
    colos: Vec<Colo>,
    anywhere: Anywhere,
    global: Global,
    visitors: Vec<Visitor>,
    minutes: BTreeMap<u32, u64>,
    stored_global: (Option<anteroom::counts::GlobalMeta>, BTreeMap<String, ColoReport>),
    stored_data_centers: BTreeMap<usize, anteroom::counts::SavedDataCenter>,
    findings: Findings,
    looks: Vec<(u64, i64)>,
}

impl World {
    pub fn new(setup: Setup) -> Self {
        let start = 28_000_000 * 60_000;
        let mut rng = Rng::with_seed(setup.seed);
        let colos = (0..setup.colos)
            .map(|index| Colo {
                name: format!("C{index:02}"),
                workers: (0..setup.workers)
                    .map(|_| Worker {
                        outbox: Outbox::new(rng.u64(1..)),
                        state: None,
                        counter_hint: Hint::default(),
                        anywhere_hint: Hint::default(),
                        fallback: Fallback::default(),
                    })
                    .collect(),
                counter: Counter::restore(None, start),
                data_center: DataCenter::restore(
                    &setup.room,
                    &format!("C{index:02}"),
                    rng.u64(1..),
                    None,
                    start,
                ),
                alarm: None,
                latency: rng.u64(50..150),
            })
            .collect();
        let mut world = Self {
            now: start,
            start,
            order: 0,
            events: BinaryHeap::new(),
            details: BTreeMap::new(),
            colos,
            anywhere: Anywhere::restore(None, start),
            global: Global::restore(&setup.room, None, Vec::new(), start),
            visitors: Vec::new(),
            minutes: BTreeMap::new(),
            stored_global: (None, BTreeMap::new()),
            stored_data_centers: BTreeMap::new(),
            findings: Findings::default(),
            looks: Vec::new(),
            rng,
            setup,
        };
        for minute in 0..world.setup.arrivals.len() {
            for _ in 0..world.setup.arrivals[minute] {
                let at = start + minute as u64 * 60_000 + world.rng.u64(0..60_000);
                let visitor = world.visitors.len();
                let home = world.rng.usize(0..world.setup.colos);
                let pages_left = (-world.rng.f64().max(1e-9).ln() * world.setup.pages).round() as u32;
                world.visitors.push(Visitor {
                    ticket: None,
                    home,
                    phase: Phase::New,
                    last_request: 0,
                    pages_left,
                    queued_at: None,
                    admitted_at: None,
                    bucket: minute_of(at),
                });
                world.at(at, Event::Visit { visitor });
            }
        }
        for index in 0..world.setup.breakdowns.len() {
            let at = start + world.setup.breakdowns[index].0;
            world.at(at, Event::Breakdown(index));
        }
        let end = world.setup.arrivals.len() as u64 * 60_000;
        for look in (0..=end).step_by(500) {
            world.at(start + look, Event::Look);
        }
        for record in (0..end + RECORDING_MS).step_by(5_000) {
            world.at(start + record + 2_500, Event::Record);
        }
        world
    }

    fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order)));
        self.details.insert(self.order, event);
    }

    /// Runs to the end of the last minute of arrivals.
    pub fn run(mut self) -> Findings {
        let end = self.start + self.setup.arrivals.len() as u64 * 60_000;
        while let Some(Reverse((time, order))) = self.events.pop() {
            // After the last minute nobody does anything any more, but what was noted is still reported.
            if time > end + SETTLING_MS {
                break;
            }
            self.now = time;
            let event = self.details.remove(&order).unwrap();
            if time <= end
                || !matches!(
                    event,
                    Event::Visit { .. } | Event::Close { .. } | Event::Judged { .. } | Event::Look
                )
            {
                self.step(event);
            }
        }
        let end = end + SETTLING_MS;
        self.now = end;
        let session = self.setup.room.session_ms();
        let room = &self.setup.room;
        // A session counts to the end of its slot and one second longer.
        let counted = |last: u64| (last / room.slot_ms() + 1) * room.slot_ms() + session + 1_000;
        self.findings.final_active_true = self
            .visitors
            .iter()
            .filter(|visitor| visitor.phase == Phase::Active && counted(visitor.last_request) > end)
            .count();
        let state = self.global.state(&self.setup.room, None, minute_of(end), end);
        self.findings.final_active_known = state.active;
        self.findings.waiting_known = state.waiting_users();
        for visitor in &self.visitors {
            match visitor.phase {
                Phase::Waiting => self.findings.still_waiting += 1,
                Phase::New => self.findings.still_asking += 1,
                Phase::Active if visitor.last_request + session <= end => self.findings.gone += 1,
                _ => {}
            }
        }
        self.findings.passed_over = self.passed_over();
        self.findings.left_unused = self.unused();
        let idle: i64 = self.looks.iter().map(|(_, unused)| unused).sum();
        self.findings.mean_idle =
            idle as f64 / self.looks.len() as f64 / f64::from(self.setup.room.total_active_users);
        self.findings.most_in_a_minute = self.minutes.values().copied().max().unwrap_or(0);
        // Nobody comes any more, and what is left becomes history.
        while let Some(Reverse((time, order))) = self.events.pop() {
            self.now = time;
            let event = self.details.remove(&order).unwrap();
            if time <= end + RECORDING_MS
                && !matches!(
                    event,
                    Event::Visit { .. } | Event::Close { .. } | Event::Judged { .. } | Event::Look
                )
            {
                self.step(event);
            }
        }
        let visitors = self.visitors.iter().filter_map(|visitor| Some((visitor.admitted_at?, visitor)));
        self.findings.stays = visitors.map(|(entered, visitor)| visitor.last_request - entered).collect();
        self.findings
    }

    fn truth(&mut self, minute: u32) -> &mut Truth {
        self.findings.truth.entry(minute).or_default()
    }

    /// What Global's alarm does.
    fn record(&mut self) {
        let stored = &mut self.stored_global.1;
        self.global.store_reports(|report| drop(stored.insert(report.colo.clone(), report.clone())));
        while let Some(made) = self.global.record(&self.setup.room, self.now) {
            let again = self.findings.records.insert(made.minute.minute, made.record);
            assert_eq!(again, None, "a minute is recorded once");
            self.findings.last_minute = Some(made.minute.clone());
            self.global.recorded(made.minute);
        }
    }

    fn truly_active(&self) -> usize {
        let session = self.setup.room.session_ms();
        self.visitors
            .iter()
            .filter(|visitor| visitor.phase == Phase::Active && visitor.last_request + session > self.now)
            .count()
    }

    /// Visitors who waited more than one refresh after at least one visitor of a younger bucket got in.
    fn passed_over(&self) -> usize {
        let refresh = self.setup.room.refresh_ms();
        let mut admissions: Vec<(u64, u32)> =
            self.visitors.iter().filter_map(|visitor| Some((visitor.admitted_at?, visitor.bucket))).collect();
        admissions.sort_unstable();
        self.visitors
            .iter()
            .filter(|visitor| {
                let Some(queued_at) = visitor.queued_at else { return false };
                let until = visitor.admitted_at.unwrap_or(self.now).saturating_sub(refresh * 11 / 10 + 2_500);
                // Ten, not one: the definition of the accuracy metric.
                admissions
                    .iter()
                    .filter(|(at, bucket)| *bucket > visitor.bucket && *at > queued_at && *at < until)
                    .count()
                    >= 10
            })
            .count()
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Visit { visitor } => self.visit(visitor),
            Event::Close { visitor, checked_in } => self.close(visitor, checked_in),
            Event::Judged { visitor, colo, worker, ticket, waited } => {
                self.ask_anywhere(visitor, colo, worker, ticket, waited);
            }
            Event::Report { colo, worker } => self.report(colo, worker),
            Event::Push { colo } => self.push(colo),
            Event::Pushed { colo, report } => {
                self.global.receive(&self.setup.room, *report, self.now);
                let name = self.colos[colo].name.clone();
                let state = self.global_state(Some(&name));
                let stored = &mut self.stored_global.1;
                self.global.store_reports(|report| drop(stored.insert(report.colo.clone(), report.clone())));
                let latency = self.colos[colo].latency;
                if self.rng.f64() >= self.setup.loss {
                    self.at(self.now + latency, Event::Answered { colo, state: Box::new(state) });
                }
            }
            Event::Answered { colo, state } => self.colos[colo].data_center.pushed(Some(*state), self.now),
            Event::Renewed { state } => self.anywhere.renew(*state, self.now),
            Event::Breakdown(index) => self.break_down(index),
            Event::Look => self.look(),
            Event::Record => self.record(),
        }
    }

    fn global_state(&mut self, colo: Option<&str>) -> StateKey {
        let state = self.global.state(&self.setup.room, colo, minute_of(self.now), self.now);
        if let Some(meta) = self.global.meta_to_store() {
            self.stored_global.0 = Some(meta);
            self.global.meta_stored();
        }
        state
    }

    fn look(&mut self) {
        let active = self.truly_active();
        self.findings.most_active = self.findings.most_active.max(active);
        if self.now > self.start && self.now.is_multiple_of(60_000) {
            let waiting = self.visitors.iter().filter(|visitor| visitor.phase == Phase::Waiting).count();
            let truth = self.truth(minute_of(self.now) - 1);
            (truth.active, truth.waiting) = (active as u64, waiting as u64);
        }
        let refresh = self.setup.room.refresh_ms();
        let waiting = self
            .visitors
            .iter()
            .filter(|v| {
                v.phase == Phase::Waiting && v.queued_at.is_some_and(|at| at + refresh * 11 / 10 < self.now)
            })
            .count();
        let free = self.setup.room.total_active_users as i64 - active as i64;
        self.looks.push((self.now, free.min(waiting as i64)));
    }

    /// The most slots that were free at some moment, with people waiting for them, and were not filled within one
    /// refresh and the few seconds that a report takes around the world.
    fn unused(&self) -> i64 {
        let patience = self.setup.room.refresh_ms() * 11 / 10 + 5_000;
        let admissions: Vec<u64> = self.visitors.iter().filter_map(|visitor| visitor.admitted_at).collect();
        self.looks
            .iter()
            .filter(|(at, _)| at + patience <= self.now)
            .map(|(at, unused)| {
                unused
                    - admissions.iter().filter(|admitted| (*at..at + patience).contains(admitted)).count()
                        as i64
            })
            .max()
            .unwrap_or(0)
            .max(0)
    }

    fn visit(&mut self, index: usize) {
        let roams = self.rng.f64() < self.setup.roaming;
        let colo = if roams { self.rng.usize(0..self.setup.colos) } else { self.visitors[index].home };
        // A second request in parallel carries the cookie that the first one carried.
        let ticket = self.visitors[index].ticket;
        self.request(index, colo);
        if self.rng.f64() < self.setup.doubled
            && let Standing::Active(active) = standing(ticket, self.now, &self.setup.room.terms())
        {
            let worker = self.rng.usize(0..self.setup.workers);
            self.note(
                colo,
                worker,
                CheckIn::Move {
                    id: active.id,
                    from: active.last_check_in,
                    at: self.now,
                    entered: active.accepted_at,
                },
            );
        }
    }

    fn request(&mut self, index: usize, colo: usize) {
        let room = self.setup.room.clone();
        let worker = self.rng.usize(0..self.setup.workers);
        let now = self.now;
        let standing = standing(self.visitors[index].ticket, now, &room.terms());
        let desk = &self.colos[colo].workers[worker];
        let decision = decide(&room, &standing, desk.state.as_ref(), now);
        let (ticket, waited) = match standing {
            Standing::Waiting(ticket) => (ticket, Some(ticket.last_check_in)),
            Standing::Active(ticket) => (ticket, None),
            Standing::New => (Ticket::new(self.rng.u64(1..), now), None),
        };
        match decision {
            Decision::Pass => {
                let moved = ticket.checked_in(now);
                self.note(
                    colo,
                    worker,
                    CheckIn::Move {
                        id: ticket.id,
                        from: ticket.last_check_in,
                        at: now,
                        entered: ticket.accepted_at,
                    },
                );
                self.visitors[index].ticket = Some(moved);
                self.visitors[index].last_request = now;
                self.next_page(index);
            }
            Decision::Wait | Decision::Refuse => self.wait(index, colo, worker, ticket, waited),
            Decision::Enter => self.enter(index, colo, worker, ticket, waited, minute_of(now)),
            Decision::WithinOwnSlots(slots) => {
                if self.colos[colo].workers[worker].fallback.take(slots, now) {
                    self.enter(index, colo, worker, ticket, waited, minute_of(now));
                } else {
                    self.wait(index, colo, worker, ticket, waited);
                }
            }
            Decision::Ask(ask) => {
                let desk = &self.colos[colo].workers[worker];
                if ask.colo_slots > 0 && !desk.counter_hint.refuses(ask.minute, ask.limit, now) {
                    self.findings.calls += 1;
                    let wanted = NumberAsk {
                        id: ticket.id,
                        bucket: ask.bucket,
                        waits: waited.is_some(),
                        minute: ask.minute,
                        limit: ask.limit,
                        owned: ask.colo_slots,
                    };
                    let outcome = self.colos[colo].counter.take(&wanted, now);
                    match outcome {
                        Outcome::Given { minute, .. } => {
                            return self.enter(index, colo, worker, ticket, waited, minute);
                        }
                        Outcome::Refused { minute, limit, wait_ms } => {
                            self.colos[colo].workers[worker]
                                .counter_hint
                                .remember(minute, limit, wait_ms, now);
                        }
                        Outcome::Unknown => {}
                    }
                }
                let desk = &self.colos[colo].workers[worker];
                if desk.anywhere_hint.refuses(ask.minute, ask.limit, now) {
                    return self.wait(index, colo, worker, ticket, waited);
                }
                let latency = self.rng.u64(15..35);
                self.at(now + latency, Event::Judged { visitor: index, colo, worker, ticket, waited });
            }
        }
    }

    fn ask_anywhere(
        &mut self,
        index: usize,
        colo: usize,
        worker: usize,
        ticket: Ticket,
        waited: Option<u64>,
    ) {
        let room = self.setup.room.clone();
        self.findings.calls += 1;
        let given = Given::of(self.anywhere.ledger(self.now));
        match self.anywhere.renewal(&room, self.now) {
            Renewal::Fresh => {}
            need => {
                self.global.anywhere_gave(given);
                let state = self.global_state(None);
                if need == Renewal::First {
                    self.anywhere.renew(state, self.now);
                } else {
                    self.at(self.now + 60, Event::Renewed { state: Box::new(state) });
                }
            }
        }
        let waits = waited.is_some();
        // Anywhere judges by its own clock and state: what the worker believed does not matter to it.
        let asks = [NumberAsk { id: ticket.id, bucket: ticket.bucket, waits, minute: 0, limit: 0, owned: 0 }];
        match self.anywhere.take(&room, &asks, self.now).and_then(|outcomes| outcomes.first().copied()) {
            Some(Outcome::Given { minute, .. }) => self.enter(index, colo, worker, ticket, waited, minute),
            Some(Outcome::Refused { minute, limit, wait_ms }) => {
                self.colos[colo].workers[worker].anywhere_hint.remember(minute, limit, wait_ms, self.now);
                self.wait(index, colo, worker, ticket, waited);
            }
            Some(Outcome::Unknown) | None => self.wait(index, colo, worker, ticket, waited),
        }
    }

    fn enter(
        &mut self,
        index: usize,
        colo: usize,
        worker: usize,
        ticket: Ticket,
        waited: Option<u64>,
        minute: u32,
    ) {
        let now = self.now;
        *self.minutes.entry(minute).or_insert(0) += 1;
        self.truth(minute).new_users += 1;
        if waited.is_some() {
            self.truth(minute).waited += 1;
            let since = self.visitors[index].queued_at.unwrap();
            self.findings.waits.push(now - since);
        }
        let check_in = CheckIn::Enter {
            id: ticket.id,
            bucket: ticket.bucket,
            from: waited.map(Into::into),
            at: now,
            minute,
            numbered: true,
        };
        self.note(colo, worker, check_in);
        let visitor = &mut self.visitors[index];
        assert!(
            !matches!(visitor.phase, Phase::Active | Phase::Revoked),
            "an admitted visitor is admitted again"
        );
        visitor.phase = Phase::Active;
        visitor.ticket = Some(ticket.admitted(now));
        visitor.last_request = now;
        visitor.admitted_at = Some(now);
        self.findings.admitted += 1;
        let active = self.truly_active();
        self.findings.most_active = self.findings.most_active.max(active);
        self.next_page(index);
    }

    fn wait(&mut self, index: usize, colo: usize, worker: usize, ticket: Ticket, waited: Option<u64>) {
        let now = self.now;
        self.note(
            colo,
            worker,
            CheckIn::Wait {
                id: ticket.id,
                bucket: ticket.bucket,
                from: waited.map(Into::into),
                at: now.into(),
            },
        );
        let refresh = self.setup.room.refresh_ms();
        if waited.is_none() {
            self.truth(minute_of(now)).joins += 1;
        }
        let visitor = &mut self.visitors[index];
        if visitor.phase == Phase::New {
            self.findings.queued += 1;
            visitor.queued_at = Some(now);
        }
        visitor.phase = Phase::Waiting;
        visitor.ticket = Some(ticket.checked_in(now));
        let next = now + refresh * self.rng.u64(90..=110) / 100;
        if self.rng.f64() >= self.setup.closing {
            return self.at(next, Event::Visit { visitor: index });
        }
        let (closed, back) = (self.rng.u64(now..next), next + self.rng.u64(0..60_000));
        self.at(closed, Event::Close { visitor: index, checked_in: now });
        if self.rng.bool() {
            self.at(back, Event::Visit { visitor: index });
        }
    }

    fn close(&mut self, index: usize, checked_in: u64) {
        let visitor = &mut self.visitors[index];
        let Some(ticket) = visitor.ticket.filter(|ticket| ticket.last_check_in == checked_in) else { return };
        visitor.phase = Phase::Away;
        let (colo, worker) = (visitor.home, self.rng.usize(0..self.setup.workers));
        let (id, bucket) = (ticket.id, ticket.bucket);
        self.note(colo, worker, CheckIn::GiveUp { id, bucket, from: checked_in.into(), at: self.now });
    }

    /// The origin ends the session with its answer to the last page.
    fn revoke(&mut self, index: usize) {
        let visitor = &mut self.visitors[index];
        let Some(ticket) = visitor.ticket.take() else { return };
        visitor.phase = Phase::Revoked;
        visitor.last_request = self.now;
        self.findings.truth.entry(minute_of(self.now)).or_default().revoked += 1;
        let (colo, worker) = (visitor.home, self.rng.usize(0..self.setup.workers));
        let leave = CheckIn::Leave {
            id: ticket.id,
            from: ticket.last_check_in,
            at: self.now,
            entered: ticket.accepted_at,
        };
        self.note(colo, worker, leave);
    }

    fn next_page(&mut self, index: usize) {
        let visitor = &mut self.visitors[index];
        if visitor.pages_left == 0 {
            if self.rng.f64() < self.setup.revoked {
                self.revoke(index);
            }
            return;
        }
        visitor.pages_left -= 1;
        let longest = self.setup.room.session_ms() as f64 * 0.85;
        let gap = (-self.rng.f64().max(1e-9).ln() * self.setup.think_seconds * 1000.0).min(longest) as u64;
        self.at(self.now + gap.max(1), Event::Visit { visitor: index });
    }

    fn note(&mut self, colo: usize, worker: usize, check_in: CheckIn) {
        let now = self.now;
        let desk = &mut self.colos[colo].workers[worker];
        let level = desk.state.as_ref().map_or(Level::Busy, |state| state.key.level);
        let outbox = &mut desk.outbox;
        outbox.note(&self.setup.room, check_in, level, now);
        if let Some(wait) = outbox.announce(now) {
            self.at(now + wait, Event::Report { colo, worker });
        }
    }

    fn report(&mut self, colo: usize, worker: usize) {
        let now = self.now;
        let room = self.setup.room.clone();
        if !self.colos[colo].workers[worker].outbox.is_due(now) {
            return;
        }
        let report = self.colos[colo].workers[worker].outbox.report(now);
        let lost = self.rng.f64() < self.setup.loss;
        let answer_lost = self.rng.f64() < self.setup.loss;
        if !lost {
            let twice = self.rng.f64() < self.setup.loss;
            let answer = self.colos[colo].data_center.receive(&room, &report, now);
            if twice {
                self.colos[colo].data_center.receive(&room, &report, now);
            }
            if let Some(wait) = self.colos[colo].data_center.next_push(&room, now) {
                self.set_alarm(colo, now + wait);
            }
            if !answer_lost {
                let desk = &mut self.colos[colo].workers[worker];
                desk.outbox.answered(&answer);
                if let Some(key) = answer.state {
                    desk.state = Some(Clocked { key, received_at: now });
                }
            }
        }
        if let Some(wait) = self.colos[colo].workers[worker].outbox.announce(now) {
            self.at(now + wait.max(1), Event::Report { colo, worker });
        }
    }

    fn push(&mut self, colo: usize) {
        let now = self.now;
        if self.colos[colo].alarm != Some(now) {
            return;
        }
        self.colos[colo].alarm = None;
        let room = self.setup.room.clone();
        let given = Given::of(self.colos[colo].counter.ledger(now));
        let here = &mut self.colos[colo];
        let saved = here.data_center.save(&room, now);
        self.stored_data_centers.insert(colo, saved.clone());
        here.data_center.saved(&saved);
        let report = here.data_center.push(&room, &saved, Some(given), now);
        let latency = here.latency;
        if self.rng.f64() < self.setup.loss {
            self.colos[colo].data_center.push_failed();
        } else {
            self.at(now + latency, Event::Pushed { colo, report: Box::new(report) });
        }
        if let Some(wait) = self.colos[colo].data_center.next_push(&room, now) {
            self.set_alarm(colo, now + wait.max(1));
        }
    }

    fn set_alarm(&mut self, colo: usize, at: u64) {
        if self.colos[colo].alarm.is_none_or(|alarm| at < alarm) {
            self.colos[colo].alarm = Some(at);
            self.at(at, Event::Push { colo });
        }
    }

    fn break_down(&mut self, index: usize) {
        let now = self.now;
        let room = self.setup.room.clone();
        match self.setup.breakdowns[index].1 {
            Breakdown::DataCenter(colo) => {
                let colo = colo % self.setup.colos;
                let saved = self.stored_data_centers.get(&colo).cloned();
                let name = self.colos[colo].name.clone();
                let instance = self.rng.u64(1..);
                self.colos[colo].data_center = DataCenter::restore(&room, &name, instance, saved, now);
            }
            Breakdown::Counter(colo) => {
                let colo = colo % self.setup.colos;
                // What was written last is from before the last number.
                let saved = self.colos[colo].counter.ledger(now).save(false);
                self.colos[colo].counter = Counter::restore(Some(saved), now);
            }
            Breakdown::Anywhere => {
                let saved = self.anywhere.ledger(now).save(false);
                self.anywhere = Anywhere::restore(Some(saved), now);
            }
            Breakdown::Global => {
                let meta = self.stored_global.0.clone();
                let reports = self.stored_global.1.values().cloned().collect();
                self.global = Global::restore(&room, meta, reports, now);
                self.global.recall_history(self.findings.last_minute.clone());
            }
        }
    }
}
