//! One worker's requests to the origin of one room: counted, and held back where the owner wants that.

use std::collections::BTreeMap;

use super::{Arrival, Ending, Guard, GuardSettings, GuardStrategy, OriginCounts, Passage, Reply, Turn};
use crate::admission::Remembered;
use crate::room::{OriginGuard, Room, WhenFull};

/// Without a guard, a request that has not ended after this time is no longer counted, in milliseconds: the
/// platform itself gives an origin 100 seconds.
const LONGEST_MS: u64 = 100_000;

/// Without a guard, every request goes.
const OPEN: GuardSettings = GuardSettings {
    strategy: GuardStrategy::Static,
    min: 1,
    max: 1,
    at_once: None,
    timeout_ms: LONGEST_MS,
    hold_ms: 0,
};

/// A visitor who waited for this part of the guard's timeout has waited long: up to it windows grow.
const LONG_PART: u64 = 4;

/// One visitor's trouble counts [`MOST_TROUBLES`] times in this time, in milliseconds: whoever asks again and again for a
/// page that fails does not speak for the origin. For a hold it takes several.
const TROUBLES_MS: u64 = 10_000;
/// See [`TROUBLES_MS`].
const MOST_TROUBLES: u64 = 2;
/// Limits are judged by one trouble of a visitor in this time, in milliseconds.
const JUDGED_TROUBLE_MS: u64 = 60_000;
/// And by one answer in this time, in milliseconds, a few at once: whoever asks for slow pages is one of many.
const JUDGED_ANSWER_MS: u64 = 2_500;
/// Answers of a visitor that may come at once, beside the first one.
const MORE_ANSWERS: u64 = 3;
/// How long that is remembered of a visitor, in milliseconds.
const JUDGED_MS: u64 = 600_000;
/// The most requests of which it is known whose they are.
const KNOWN_REQUESTS: usize = 10_000;
/// The most visitors of whom it is remembered what has counted, per generation.
const REMEMBERED_TICKETS: usize = 10_000;

/// What limits are judged by: of each ticket a little, so that few tickets do not speak for the origin.
#[derive(Debug)]
struct Judged {
    /// From when on a ticket's next trouble counts, and its next answer if none may come at once.
    lately: Remembered<(u64, u64)>,
    /// Of so many workers each takes a part of what counts of a ticket: one who asks often comes to all of them.
    workers: u64,
    counts: OriginCounts,
}

impl Judged {
    fn count(&mut self, ticket: u64, reply: Reply, took_ms: u64, now: u64) {
        let (mut trouble_at, mut answer_at) = self.lately.get(ticket).unwrap_or_default();
        let (next_at, at_once, every_ms) = if reply.is_trouble() {
            (&mut trouble_at, 0, JUDGED_TROUBLE_MS)
        } else {
            (&mut answer_at, MORE_ANSWERS, JUDGED_ANSWER_MS)
        };
        let every_ms = every_ms * self.workers;
        if reply != Reply::Left && *next_at <= now + at_once * every_ms {
            *next_at = (*next_at).max(now) + every_ms;
            self.lately.put(ticket, (trouble_at, answer_at), now);
            self.counts.count(reply, took_ms);
        }
    }
}

/// What one worker has at the origin of one room.
#[derive(Debug)]
pub struct OriginMonitor {
    guard: Guard,
    /// `None`: no guard is set, and every request goes.
    settings: Option<OriginGuard>,
    /// The room's limits or its entrance depend on the origin.
    is_followed: bool,
    /// The tickets whose requests are on their way, where it matters.
    tickets: BTreeMap<u64, u64>,
    /// Since when a ticket's trouble has counted, and how often.
    troubles: Remembered<(u64, u64)>,
    counts: OriginCounts,
    /// `None`: limits do not depend on the origin.
    judged: Option<Judged>,
    reported: OriginCounts,
}

impl OriginMonitor {
    /// Nothing has been sent yet.
    pub fn new(room: &Room) -> Self {
        let mut monitor = Self {
            guard: Guard::new(OPEN),
            settings: None,
            is_followed: false,
            tickets: BTreeMap::new(),
            troubles: Remembered::new(TROUBLES_MS, REMEMBERED_TICKETS),
            counts: OriginCounts::default(),
            judged: None,
            reported: OriginCounts::default(),
        };
        monitor.follow(room);
        monitor
    }

    /// Goes by a room's settings from now on; what is under way and what was counted stay. A room that is made at run time may get
    /// others at any moment.
    pub fn follow(&mut self, room: &Room) {
        if self.settings != room.origin_guard {
            self.guard.change(room.origin_guard.as_ref().map_or(OPEN, |guard| guard.settings));
            self.settings.clone_from(&room.origin_guard);
        }
        self.is_followed = room.follows_origin();
        if room.adaptive.is_none() {
            self.judged = None;
        } else if self.judged.is_none() {
            self.judged = Some(Judged {
                lately: Remembered::new(JUDGED_MS, REMEMBERED_TICKETS),
                workers: 1,
                // Of what has been reported until now nothing is judged.
                counts: self.counts.clone(),
            });
        }
    }

    /// What happens to users who are in when the guard's window is full; `None`: no guard is set.
    fn when_full(&self) -> Option<WhenFull> {
        self.settings.as_ref().map(|guard| guard.admitted)
    }

    /// Whether somebody new may come: not while those who are in fill the window.
    pub fn has_room(&mut self, now: u64) -> bool {
        self.settings.is_none() || self.guard.has_room(now)
    }

    /// What becomes of a request of a user who is in. `ticket`: the ticket's id; `beyond`: the request goes in any case, and is
    /// counted.
    pub fn arrive(&mut self, ticket: u64, beyond: bool, now: u64) -> Arrival {
        let arrival = if beyond { Arrival::Go(self.guard.pass_beyond(now)) } else { self.lets_pass(now) };
        if let Arrival::Go(passage) | Arrival::InLine(passage) = arrival
            && passage != Passage::UNCOUNTED
            && (self.is_followed || self.settings.is_some())
        {
            self.tickets.insert(passage.number() as u64, ticket);
            if self.tickets.len() > KNOWN_REQUESTS {
                self.tickets.pop_first();
            }
        }
        arrival
    }

    fn lets_pass(&mut self, now: u64) -> Arrival {
        let arrival = match self.when_full() {
            None => return Arrival::Go(self.guard.pass_beyond(now)),
            Some(_) => self.guard.arrive(now),
        };
        match arrival {
            Arrival::Refused if self.when_full() == Some(WhenFull::Pass) => {
                Arrival::Go(self.guard.pass_beyond(now))
            }
            Arrival::Refused => {
                self.counts.refused += 1;
                Arrival::Refused
            }
            arrival => arrival,
        }
    }

    /// In how many milliseconds a request in line asks for its turn again.
    pub fn ask_after_ms(&self, passage: Passage) -> u64 {
        self.guard.ask_after_ms(passage)
    }

    /// What a request in line does now.
    pub fn turn(&mut self, passage: Passage, now: u64) -> Turn {
        let turn = self.guard.turn(passage, now);
        if turn != Turn::Dropped {
            return turn;
        }
        self.tickets.remove(&(passage.number() as u64));
        if self.when_full() == Some(WhenFull::Pass) {
            return Turn::Go;
        }
        self.counts.refused += 1;
        turn
    }

    /// After how many milliseconds without a first byte a request is given up; `None`: never.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.settings.as_ref().map(|guard| guard.settings.timeout_ms)
    }

    /// A request ended after `took_ms`, in milliseconds. Returns whether it must be reported soon.
    pub fn came_back(&mut self, passage: Passage, reply: Reply, took_ms: u64, now: u64) -> bool {
        // Whoever leaves soon has changed their mind; whoever waited long has not been served in time.
        let too_long = self.timeout_ms().is_some_and(|timeout| took_ms >= timeout / LONG_PART);
        let reply = if reply == Reply::Left && too_long { Reply::TimedOut } else { reply };
        let ticket = self.tickets.remove(&(passage.number() as u64));
        if reply.is_trouble() && ticket.is_some_and(|ticket| !self.counts_trouble(ticket, now)) {
            self.guard.finished(passage, Ending::Other, now);
            return false;
        }
        self.guard.finished(passage, reply.ending(), now);
        self.counts.count(reply, took_ms);
        if let (Some(judged), Some(ticket)) = (&mut self.judged, ticket) {
            judged.count(ticket, reply, took_ms, now);
        }
        self.is_followed && reply.is_trouble()
    }

    /// Whether a ticket's trouble counts, and counts it.
    fn counts_trouble(&mut self, ticket: u64, now: u64) -> bool {
        let known = self.troubles.get(ticket).filter(|(since, _)| now < since + TROUBLES_MS);
        let (since, count) = known.unwrap_or((now, 0));
        if count < MOST_TROUBLES {
            self.troubles.put(ticket, (since, count + 1), now);
        }
        count < MOST_TROUBLES
    }

    /// What to report; `None`: nothing has changed since it was asked for last. `workers`: how many the data center has, as far
    /// as is known.
    pub fn report(&mut self, workers: u32) -> Option<OriginCounts> {
        if let Some(judged) = &mut self.judged {
            judged.workers = u64::from(workers).max(1);
        }
        let counts = OriginCounts { in_flight: self.guard.in_flight().into(), ..self.counts.clone() };
        if counts == self.reported {
            return None;
        }
        self.reported = counts.clone();
        Some(counts)
    }

    /// What the limits are judged by, of what was reported last; `None`: they do not depend on the origin.
    pub fn judged(&self) -> Option<OriginCounts> {
        Some(self.judged.as_ref()?.counts.clone())
    }
}
