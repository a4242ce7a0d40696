//! Visitors and their habits: when they come, what they do when they are let in, wait or are turned away.

use anteroom::admission::{minute_of, queue_bucket};
use anteroom::answer::Estimate;
use anteroom::check_in::{CheckIn, Seen};
use anteroom::machines::worker::{
    self as machine, Outcome, Visit, Waiting, Worker, asked_again_at, passes_unasked,
};
use anteroom::room::Room;
use anteroom::ticket::{Standing, Ticket, standing, ticket_id};

use super::{Event, Planet, START};
use crate::measure::NO_PLACE;

/// The interval of whoever presses reload all the time, in milliseconds.
const RELOAD_MS: u64 = 2_000;

/// So many places a bot with many cookies takes.
const MANY_COOKIES: usize = 10;
/// Whoever storms does it in this last time of what an old cookie is good for, in milliseconds, every [`STORM_EVERY_MS`], with
/// [`STORM_REQUESTS`] requests in as many data centers.
const STORM_MS: u64 = 3_500;
/// See [`STORM_MS`].
const STORM_EVERY_MS: u64 = 200;
/// See [`STORM_MS`].
const STORM_REQUESTS: usize = 3;
/// In so many data centers whoever leaves everywhere does so at once.
const LEAVES_IN: usize = 6;
/// After this time somebody hangs up who waits for the first answer, in milliseconds.
const HANGS_UP_MS: u64 = 45;
/// How often somebody asks for a page that fails whoever asks for it, in milliseconds.
const FAILS_EVERY_MS: u64 = 250;
/// How often somebody asks for a page that takes long, in milliseconds.
const DAWDLES_EVERY_MS: u64 = 50;
/// How long that page takes, in milliseconds. It comes as soon as it is asked for: it counts as asked for that long before.
pub(super) const DAWDLES_MS: u64 = 8_000;

/// For how many refreshes an old cookie serves whoever replays it: after two and a half it is no place any more.
const KEPT_REFRESHES: u64 = 2;

/// A visitor on the way through the room. Hundreds of thousands of them are looked at in random order: each begins with
/// a line of the processor's cache.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Visitor {
    pub(super) ticket: Option<Ticket>,
    pub(super) colo: u16,
    pub(super) place: Place,
    pub(super) cookieless: bool,
    /// Presses reload all the time.
    pub(super) reloads: bool,
    /// Does so with an old cookie.
    pub(super) replays: bool,
    /// Goes on with a copy of the ticket of a session that the origin has ended.
    pub(super) copies: bool,
    /// Has done so. Of two answers at once the one for the copy may take the place of a new ticket.
    pub(super) has_copied: bool,
    /// Counts as active until this time, if no other request comes.
    pub(super) active_until: u64,
    pub(super) counted_active: bool,
    pub(super) visit_until: u64,
    pub(super) gives_up: u64,
    /// Since when they wait; of a copy, when the session was ended.
    pub(super) queued_at: u64,
    /// The wait that was shown last, in seconds.
    pub(super) shown: Option<u32>,
    pub(super) first_shown: Option<u32>,
    pub(super) rose: bool,
    /// Events that will come for this visitor.
    pub(super) pending: u8,
    /// Bucket as the measure keeps it: the minute of the first request.
    pub(super) bucket: u32,
    pub(super) asking: bool,
    /// Requests that are not answered yet, and hold on to the visitor.
    pub(super) requests: u8,
    /// Pages in a row that the origin did not bring.
    pub(super) failed: u8,
    /// As a key.
    pub(super) address: u64,
    /// Wants more than a visitor's part, or less for others.
    pub(super) attack: Option<Attack>,
    /// Refuses cookies, and comes from an address with others: not one of those whom a queue is for.
    pub(super) is_bot: bool,
}

impl Visitor {
    /// The bucket whose place others may pass. Whoever refuses cookies has none, nor has whoever goes on with copies: one may
    /// leave the queue without having entered.
    fn waits_in(&self) -> u32 {
        if self.cookieless || self.has_copied { NO_PLACE } else { self.bucket }
    }

    fn storms(&self) -> bool {
        self.attack == Some(Attack::Storms)
    }

    /// In how many data centers their leaving is told.
    fn leaves_in(&self) -> usize {
        if self.attack == Some(Attack::LeavesEverywhere) { LEAVES_IN } else { 1 }
    }
}

/// What an attacker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attack {
    /// Takes many places, and reloads.
    Crowds,
    /// Reloads with an old cookie.
    Replays,
    /// Reloads.
    Reloads,
    /// Once in, sends copies of an old cookie to many data centers when its session seems to end.
    Storms,
    /// Gives up the place, and ends the session, in many data centers at once.
    LeavesEverywhere,
    /// Asks together with others, and is gone before there is an answer.
    HangsUp,
    /// Once in, asks again and again for a page that the origin fails.
    Fails,
    /// Once in, asks again and again for a page that takes long, however little the origin has to do.
    Dawdles,
}

impl Attack {
    /// All of them, equally often.
    const ALL: [Self; 8] = [
        Self::Crowds,
        Self::Replays,
        Self::Reloads,
        Self::Storms,
        Self::LeavesEverywhere,
        Self::HangsUp,
        Self::Fails,
        Self::Dawdles,
    ];

    /// How soon an attacker asks the origin for the next bad page, in milliseconds.
    pub(super) fn asks_again_ms(self) -> Option<u64> {
        match self {
            Self::Fails => Some(FAILS_EVERY_MS),
            Self::Dawdles => Some(DAWDLES_EVERY_MS),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Outside,
    Queue,
    Inside,
    Gone,
    /// Nothing refers to it any more: the next visitor takes its place.
    Forgotten,
}

/// A request of somebody who is not in, and where it came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) visitor: u32,
    pub(super) colo: u16,
    pub(super) worker: u16,
    came_at: u64,
    /// The second of two at once with one cookie.
    twin: bool,
}

/// A ticket as a cookie brings it back.
fn kept(ticket: Option<Ticket>) -> Option<Ticket> {
    Ticket::from_bytes(&ticket?.to_bytes())
}

impl Planet {
    pub(super) fn second(&mut self) {
        let now = self.now();
        std::mem::swap(&mut self.rng, &mut self.arrivals);
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
        std::mem::swap(&mut self.rng, &mut self.arrivals);
        self.attackers_come();
        self.clockwork.at(now + 1_000, Event::Second);
    }

    /// Beside the others, whose arrivals are as they would be without them.
    fn attackers_come(&mut self) {
        if self.behaviour.attackers <= 0.0 {
            return;
        }
        let minutes = (self.now() - START) as f64 / 60_000.0;
        let rates = self.scenario.arrivals_at(minutes);
        self.attackers_due +=
            rates.iter().map(|(_, rate)| rate).sum::<f64>() * self.behaviour.attackers / 60.0;
        while self.attackers_due >= 1.0 {
            let attack = Attack::ALL[self.rng.u64(0..Attack::ALL.len() as u64) as usize];
            let places = if attack == Attack::Crowds { MANY_COOKIES } else { 1 };
            let colo = self.pick_colo(0);
            for _ in 0..places {
                self.attackers_due -= 1.0;
                let visitor = self.new_visitor(colo);
                let here = &mut self.visitors[visitor as usize];
                (here.attack, here.cookieless, here.is_bot) = (Some(attack), false, false);
                here.reloads = matches!(attack, Attack::Crowds | Attack::Replays | Attack::Reloads);
                here.replays = attack == Attack::Replays;
                let at = self.now() + self.rng.u64(0..1_000);
                self.visit_at(visitor, at);
            }
        }
    }

    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
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
            bots => {
                let shared = self.behaviour.shared_addresses;
                let own = if shared > 0 { self.rng.u64(0..shared) } else { self.arrived };
                (bots + 1 + own, colo)
            }
        };
        self.arrived += 1;
        let replays = self.behaviour.replaying > 0.0 && self.rng.f64() < self.behaviour.replaying;
        let reloads = replays || self.behaviour.reloading > 0.0 && self.rng.f64() < self.behaviour.reloading;
        let visitor = Visitor {
            ticket: None,
            reloads,
            replays,
            copies: false,
            has_copied: false,
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
            attack: None,
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

    pub(super) fn visit_at(&mut self, visitor: u32, time: u64) {
        self.visitors[visitor as usize].pending += 1;
        self.clockwork.at(time, Event::Visit(visitor));
    }

    pub(super) fn release(&mut self, visitor: u32) {
        let here = &mut self.visitors[visitor as usize];
        if here.pending == 0 && here.place == Place::Gone && !here.counted_active && here.requests == 0 {
            here.place = Place::Forgotten;
            self.free.push(visitor);
        }
    }

    pub(super) fn visit(&mut self, visitor: u32) {
        let now = self.now();
        let here = &mut self.visitors[visitor as usize];
        here.pending -= 1;
        if here.place == Place::Queue && now >= here.gives_up {
            here.place = Place::Gone;
            let (bucket, queued_at) = (here.waits_in(), here.queued_at);
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
        let storms = here.storms() && here.place == Place::Inside;
        here.requests += 1;
        self.request(visitor, colo, ticket, false);
        if twin && ticket.is_some() {
            self.request(visitor, colo, ticket, true);
        }
        for _ in 0..if storms { STORM_REQUESTS } else { 0 } {
            let colo = self.pick_colo(0);
            self.request(visitor, colo, ticket, true);
        }
        self.visitors[visitor as usize].requests -= 1;
        self.release(visitor);
    }

    /// Whoever gives up closes the page, and some pages say so.
    fn close(&mut self, visitor: u32) {
        let leaves_in = self.visitors[visitor as usize].leaves_in();
        if leaves_in == 1 && (self.behaviour.closing <= 0.0 || self.rng.f64() >= self.behaviour.closing) {
            return;
        }
        let here = &self.visitors[visitor as usize];
        let Some(ticket) = here.ticket.filter(|ticket| !ticket.uncounted) else { return };
        let bucket = queue_bucket(&self.room, &self.draw_key, ticket.bucket, ticket.id);
        self.note_in(here.colo, leaves_in, |room, at| CheckIn::GiveUp {
            id: ticket.id,
            bucket,
            from: Seen::of(&ticket, room),
            at,
        });
    }

    /// A check-in is noted in so many data centers: that of the visitor, and others.
    fn note_in(&mut self, colo: u16, colos: usize, check_in: impl Fn(&Room, u64) -> CheckIn) {
        for others in 0..colos {
            let colo = if others == 0 { colo } else { self.pick_colo(0) };
            let at = (colo, self.isolate(colo));
            self.note(at, &check_in);
        }
    }

    /// The origin ends a session with its answer to the last page.
    fn revoke(&mut self, visitor: u32) {
        let here = &mut self.visitors[visitor as usize];
        let Some(ticket) = here.ticket.take().filter(|_| here.counted_active) else { return };
        here.counted_active = false;
        self.measure.copied(-i64::from(here.copies));
        self.measure.expired(self.clockwork.now());
        let (colo, leaves_in) = (here.colo, here.leaves_in());
        let (id, from, entered) = (ticket.id, ticket.last_check_in, ticket.accepted_at);
        self.note_in(colo, leaves_in, |_, at| CheckIn::Leave { id, from, at, entered });
        if self.behaviour.copying > 0.0 && self.rng.f64() < self.behaviour.copying {
            let (now, colo) = (self.now(), self.pick_colo(0));
            let gap = self.exponential(self.behaviour.gap_seconds * 1_000.0) as u64;
            let length = self.exponential(self.behaviour.visit_seconds * 1_000.0) as u64;
            let here = &mut self.visitors[visitor as usize];
            (here.ticket, here.place, here.copies, here.queued_at) = (Some(ticket), Place::Inside, true, now);
            (here.colo, here.visit_until, here.active_until) = (colo, now + length, 0);
            here.has_copied = true;
            self.visit_at(visitor, now + gap.max(1));
        }
    }

    /// One request, to any worker of a colo. A twin is the second of two at once with one cookie.
    fn request(&mut self, visitor: u32, colo: u16, ticket: Option<Ticket>, twin: bool) {
        let came_at = self.now();
        let worker = self.isolate(colo);
        let own = self.local((colo, worker));
        let (random_id, random) = (self.rng.u64(1..), self.rng.f64());
        let id = ticket_id(random_id, &self.colos[usize::from(colo)].name);
        self.measure.requests += 1;
        self.measure.bounds.came(came_at, colo);
        let request = Request { visitor, colo, worker, came_at, twin };
        let machine = &mut self.worker(colo, worker).machine;
        let whole = machine.room();
        if whole.suspended {
            self.past(&request);
            return;
        }
        let time = machine.time(own);
        let room = whole.at(time).0;
        let ticket = ticket.filter(|ticket| !machine.is_ended(ticket.id));
        let standing = standing(ticket, time, &room.terms());
        match standing {
            Standing::Active(ticket) => {
                let pass = |machine: &mut Worker, now, effects: &mut Vec<_>| {
                    machine.pass(room, ticket, now, effects)
                };
                let moved = self.with_worker((colo, worker), pass);
                self.passed(&request, moved);
                return;
            }
            Standing::Waiting(ticket) if passes_unasked(room, &ticket, time) => {
                // A page of the origin, and nothing that is counted.
                self.visit_at(visitor, came_at + asked_again_at(room, &ticket) - time);
                return;
            }
            // With a ticket that has run out both of a pair are new, and one visitor.
            Standing::New if !twin => self.is_new(visitor, id),
            Standing::New | Standing::Waiting(_) => {}
        }
        let newcomer = self.room.one_place_per_address && standing == Standing::New;
        let address = if newcomer { self.visitors[visitor as usize].address } else { 0 };
        let tickets = ticket.into_iter().collect();
        let here = &self.visitors[visitor as usize];
        // A page that is loaded anew shows nothing yet.
        let shows = here.place == Place::Queue && !here.reloads;
        let shown_seconds = here.shown.filter(|_| shows).map(u64::from);
        let brings =
            machine::Visitor { tickets, id, random, address, shown_seconds, ..machine::Visitor::default() };
        self.begin_visit(request, Visit::new(brings, whole));
    }

    /// Somebody comes without a ticket, or with one that has run out.
    fn is_new(&mut self, visitor: u32, id: u64) {
        let now = self.now();
        let session = self.room.at(now).0.session_ms();
        let here = &mut self.visitors[visitor as usize];
        if here.place == Place::Queue && !here.cookieless && !here.has_copied {
            self.measure.lost_place();
        }
        // Whoever storms holds on to an old cookie, and is in only for as long as that one says.
        let held = here.ticket.filter(|_| here.storms()).map(|held| held.last_check_in + session);
        let active_until = held.map_or(here.active_until, |held| held.min(here.active_until));
        if now < active_until && !here.cookieless && !here.has_copied {
            self.measure.threw_out(active_until - now);
        }
        if here.copies {
            // The copy is refused here; another worker may not know yet.
            here.ticket = None;
            if std::mem::take(&mut here.counted_active) {
                self.measure.expired(now);
                self.measure.copied(-1);
            }
        }
        if here.place == Place::Inside {
            // The session was over: a new visit, and a new visitor for the room.
            here.place = Place::Outside;
        }
        if here.place == Place::Outside {
            here.bucket = queue_bucket(&self.room, &self.draw_key, minute_of(now), id);
            self.measure.attackers_arrived += u64::from(here.attack.is_some());
            self.measure.arrived(now);
        }
    }

    /// A visit waits for answers.
    pub(super) fn visit_goes_on(&mut self, request: &Request) {
        let here = &mut self.visitors[request.visitor as usize];
        here.asking = true;
        here.requests += 1;
    }

    /// A visit that has waited for answers is over.
    pub(super) fn late_visited(&mut self, request: &Request, outcome: Outcome) {
        self.visitors[request.visitor as usize].asking = false;
        self.measure.answered(self.clockwork.now() - request.came_at);
        self.visited(request, outcome);
        self.visitors[request.visitor as usize].requests -= 1;
        self.release(request.visitor);
    }

    /// Until when somebody waits for the answer to a visit.
    pub(super) fn hangs_up_at(&self, request: &Request) -> u64 {
        let here = &self.visitors[request.visitor as usize];
        let hangs_up = here.attack == Some(Attack::HangsUp) && here.place == Place::Outside;
        if hangs_up { request.came_at + HANGS_UP_MS } else { u64::MAX }
    }

    /// Somebody has hung up before there was an answer: nobody was there.
    pub(super) fn hung_up(&mut self, request: &Request) {
        let here = &mut self.visitors[request.visitor as usize];
        (here.asking, here.place) = (false, Place::Gone);
        here.requests -= 1;
        self.measure.not_new();
        self.measure.attackers_arrived -= 1;
        self.release(request.visitor);
    }

    /// What came of a visit.
    pub(super) fn visited(&mut self, request: &Request, outcome: Outcome) {
        match outcome {
            Outcome::Suspended => {
                let place = self.visitors[request.visitor as usize].place;
                self.measure.went_past += u64::from(place == Place::Outside && !request.twin);
                self.past(request);
            }
            Outcome::Admitted { ticket, enters: true, .. } => self.enters(request, ticket),
            Outcome::Admitted { ticket, changed, .. } => self.passed(request, changed.then_some(ticket)),
            Outcome::Refused | Outcome::Moved => self.refuse(request),
            Outcome::Waiting(told) => self.waits_on(request, &told),
        }
    }

    /// The room is off: the request goes past it, and nobody is counted.
    fn past(&mut self, request: &Request) {
        let Request { visitor, colo, worker, twin, .. } = *request;
        self.with_worker((colo, worker), |machine, now, effects| {
            machine.refresh_in_background(false, now, effects);
        });
        let now = self.now();
        let length = self.exponential(self.behaviour.visit_seconds * 1_000.0) as u64;
        let here = &mut self.visitors[visitor as usize];
        if twin || here.place == Place::Gone {
            return;
        }
        if here.place == Place::Queue && !here.is_bot {
            self.measure.went_past(here.waits_in());
        }
        if here.place != Place::Inside {
            here.place = Place::Inside;
            here.visit_until = now + length;
        }
        self.page(colo, worker, visitor);
    }

    /// An active user's request has passed. `moved`: the ticket, where this request moved it on.
    fn passed(&mut self, request: &Request, moved: Option<Ticket>) {
        let now = self.now();
        let room = self.room.at(now).0;
        let session = room.session_ms();
        let here = &mut self.visitors[request.visitor as usize];
        // Who has entered anew does not live on a copy any more that was on its way.
        let is_own = |moved: &Ticket| {
            here.copies || !here.has_copied || here.ticket.is_none_or(|own| own.id == moved.id)
        };
        let moved = moved.filter(is_own);
        // Within a slot the cookie stays as it is: its session counts from the request that wrote it.
        let begins = moved.is_some() || !here.counted_active && !room.disable_session_renewal;
        let is_good = |old: &Ticket| now + 1_000 < old.last_check_in + session;
        if moved.is_some() && !(here.storms() && here.ticket.as_ref().is_some_and(is_good)) {
            here.ticket = kept(moved);
        }
        let from = if begins { now } else { here.active_until.saturating_sub(session) };
        here.active_until = here.active_until.max(from + session);
        if here.copies {
            self.measure.copy_passed(now - here.queued_at);
            if !here.counted_active {
                here.counted_active = true;
                here.pending += 1;
                self.clockwork.at(here.active_until, Event::Expiry(request.visitor));
                self.measure.copied(1);
                self.measure.activated(now, true, 0);
            }
        }
        if here.place != Place::Inside {
            // By this colo's clock, or to a worker that does not know that it was ended, the session goes on that another has
            // taken for over: this is no new visitor after all.
            let (was, bucket, queued_at) = (here.place, here.waits_in(), here.queued_at);
            let is_bot = here.is_bot;
            here.place = Place::Inside;
            match was {
                Place::Queue if !is_bot => self.measure.gave_up(now, bucket, queued_at),
                Place::Outside => self.measure.not_new(),
                _ => {}
            }
        }
        if !request.twin {
            self.page(request.colo, request.worker, request.visitor);
        }
    }

    fn enters(&mut self, request: &Request, ticket: Ticket) {
        let now = self.now();
        self.measure.let_in += 1;
        let session = self.room.at(now).0.session_ms();
        let mean = self.behaviour.visit_seconds * 1_000.0;
        let length = self.exponential(mean) as u64;
        let ending = self.ending();
        let here = &mut self.visitors[request.visitor as usize];
        if here.place == Place::Gone {
            return;
        }
        let first = here.place != Place::Inside;
        if here.copies && !first && here.ticket.is_some_and(|copy| copy.id == ticket.id) {
            // The answer to the second of two requests, of which the first has entered and left already.
            return;
        }
        if std::mem::take(&mut here.copies) && here.counted_active {
            self.measure.copied(-1);
        }
        here.ticket = kept((!here.cookieless).then_some(ticket));
        if first {
            let queued = here.place == Place::Queue && !here.is_bot;
            here.place = Place::Inside;
            here.visit_until = now + length;
            self.measure.cookieless += u64::from(here.cookieless);
            self.measure.attackers_admitted += u64::from(here.attack.is_some());
            self.measure.admitted(
                now,
                request.colo,
                here.bucket,
                queued.then_some((here.queued_at, here.waits_in())),
                now - request.came_at,
                here.first_shown.filter(|_| !here.cookieless).map(u64::from),
            );
            if queued {
                self.measure.chance(now - here.queued_at, here.reloads, true);
            }
        }
        here.active_until = now + session;
        if !here.counted_active {
            here.counted_active = true;
            here.pending += 1;
            self.clockwork.at(now + session, Event::Expiry(request.visitor));
            self.measure.activated(now, false, ending);
        }
        // Whoever refuses cookies is a new visitor with the next request.
        if (here.cookieless && first) || !request.twin {
            self.page(request.colo, request.worker, request.visitor);
        }
    }

    /// How many sessions the room may have taken for over: those that began by a clock that was put back are shorter by as
    /// much, when it has been set right since.
    fn ending(&self) -> i64 {
        let jumps_ms: u64 = self.scenario.faults.iter().map(|fault| fault.jumps_ms.unsigned_abs()).sum();
        if jumps_ms == 0 {
            return 0;
        }
        let by = self.now() + jumps_ms;
        self.visitors.iter().filter(|visitor| visitor.counted_active && visitor.active_until <= by).count()
            as i64
    }

    /// Somebody waits, and is told when to come again.
    fn waits_on(&mut self, request: &Request, told: &Waiting) {
        let now = self.now();
        let estimate = match told.estimate {
            Estimate::Known { seconds } => Some(seconds),
            Estimate::Spread { half, .. } => Some(half),
            Estimate::Unknown => None,
        };
        let estimate = estimate.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
        let patience = self.exponential(self.behaviour.patience_seconds * 1_000.0) as u64;
        let leaves = self.behaviour.leave_at_once > 0.0 && self.rng.f64() < self.behaviour.leave_at_once;
        let refresh = self.room.at(now).0.refresh_ms();
        // The page's timer and the way here add a little.
        let next = u64::from(told.refresh_seconds) * 1_000 + self.rng.u64(0..500);
        let here = &mut self.visitors[request.visitor as usize];
        if request.twin || here.place == Place::Inside || here.place == Place::Gone {
            return;
        }
        if here.is_bot {
            self.measure.seen(now);
        }
        if here.place == Place::Outside {
            here.place = Place::Queue;
            (here.shown, here.first_shown, here.rose) = (None, None, false);
            here.queued_at = now;
            here.gives_up = if leaves { now } else { now + patience };
            if !here.is_bot {
                self.measure.queued(now, here.waits_in());
            }
        }
        let here = &mut self.visitors[request.visitor as usize];
        if let (Some(shown), Some(estimate)) = (here.shown, estimate) {
            let rises = u64::from(estimate) * 1_000 > u64::from(shown) * 1_000 + refresh;
            // Whoever refuses cookies is told the wait of somebody new each time.
            if rises && !here.rose && !here.cookieless {
                self.measure.rose();
            }
            here.rose |= rises;
        }
        if here.first_shown.is_none() {
            here.first_shown = estimate;
        }
        here.shown = estimate.or(here.shown);
        let is_good = |old: &Ticket| now < old.last_check_in + KEPT_REFRESHES * refresh;
        if !here.replays || !here.ticket.as_ref().is_some_and(is_good) {
            here.ticket = kept((!here.cookieless).then_some(told.ticket));
        }
        let next = if here.reloads { next.min(RELOAD_MS) } else { next };
        let next = (now + next).min(here.gives_up.max(now + 1));
        if leaves {
            here.place = Place::Gone;
            let (bucket, queued_at) = (here.waits_in(), here.queued_at);
            if !self.visitors[request.visitor as usize].is_bot {
                self.measure.gave_up(now, bucket, queued_at);
            }
            self.release(request.visitor);
        } else {
            self.visit_at(request.visitor, next);
        }
    }

    /// Whoever is turned away goes; who waited keeps the place while the ticket is good, but this one does not come back.
    pub(super) fn refuse(&mut self, request: &Request) {
        let now = self.now();
        let here = &mut self.visitors[request.visitor as usize];
        if request.twin || here.place == Place::Inside || here.place == Place::Gone {
            return;
        }
        let queued = here.place == Place::Queue;
        here.place = Place::Gone;
        let (bucket, queued_at) = (here.waits_in(), here.queued_at);
        if !queued {
            self.measure.turned_away += 1;
        } else if !self.visitors[request.visitor as usize].is_bot {
            self.measure.gave_up(now, bucket, queued_at);
        }
    }

    pub(super) fn next_page(&mut self, visitor: u32) {
        let now = self.now();
        let gap = self.exponential(self.behaviour.gap_seconds * 1_000.0) as u64;
        let returns = self.behaviour.returning > 0.0 && self.rng.f64() < self.behaviour.returning;
        let pause = 60_000 + self.exponential(300_000.0) as u64;
        let length = self.exponential(self.behaviour.visit_seconds * 1_000.0) as u64;
        let session = self.room.at(now).0.session_ms();
        let here = &mut self.visitors[visitor as usize];
        let storm = |ticket: &Ticket| (ticket.last_check_in + session).saturating_sub(now + STORM_MS);
        let storms = here.ticket.as_ref().filter(|_| here.storms());
        let gap = storms.map_or(gap, |ticket| storm(ticket).max(STORM_EVERY_MS));
        if now + gap < here.visit_until {
            self.visit_at(visitor, now + gap.max(1));
        } else if returns {
            here.visit_until = here.visit_until.max(now) + pause + length;
            self.visit_at(visitor, now + pause);
        } else {
            here.place = Place::Gone;
            let leaves = here.leaves_in() > 1;
            if leaves || self.behaviour.revoked > 0.0 && self.rng.f64() < self.behaviour.revoked {
                self.revoke(visitor);
            }
            self.release(visitor);
        }
    }

    pub(super) fn expiry(&mut self, visitor: u32) {
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
        let copies = i64::from(here.copies);
        if here.pending == 0 && here.requests == 0 && here.place == Place::Inside {
            // Let in by a twin's answer while the page itself was the queue's: nothing more will come.
            here.place = Place::Gone;
        }
        self.measure.expired(now);
        self.measure.copied(-copies);
        self.release(visitor);
    }

    /// From now on it is another room: sessions last longer, or end sooner.
    pub(super) fn change(&mut self) {
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
}
