//! One worker's requests to the origin of one room: counted, and held back where the owner wants that.

use std::collections::BTreeMap;

use super::{Arrival, Ending, Guard, GuardSettings, GuardStrategy, OriginCounts, Passage, Reply, Turn};
use crate::admission::Remembered;
use crate::room::{Room, WhenFull};

/// Without a guard, a request that has not ended after this time is no longer counted, in milliseconds: the
/// platform itself gives an origin 100 seconds.
const LONGEST_MS: u64 = 100_000;

/// A visitor who waited for this part of the guard's timeout has waited long: up to it windows grow.
const LONG_PART: u64 = 4;

/// One visitor's trouble counts [`MOST_TROUBLES`] times in this time, in milliseconds: whoever asks again and again for a
/// page that fails does not speak for the origin. For a hold it takes several.
const HEARD_MS: u64 = 10_000;
/// See [`HEARD_MS`].
const MOST_TROUBLES: u8 = 2;
/// Limits are judged by so many answers of one visitor in that time: whoever asks for slow pages is one of many.
const MOST_ANSWERS: u8 = 4;
/// And by one trouble of one visitor in this time, in milliseconds.
const JUDGED_MS: u64 = 60_000;
/// The most requests of which it is known whose they are.
const KNOWN_REQUESTS: usize = 10_000;
/// The most visitors of whom it is remembered what has counted, per generation.
const REMEMBERED_TICKETS: usize = 10_000;

/// What has counted of a ticket lately.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    since: u64,
    answers: u8,
    troubles: u8,
    /// When limits were judged by a trouble of it last.
    judged_at: u64,
}

/// What one worker has at the origin of one room.
#[derive(Debug)]
pub struct OriginMonitor {
    guard: Guard,
    /// `None`: no guard is set, and every request goes.
    when_full: Option<WhenFull>,
    timeout_ms: Option<u64>,
    /// The room's limits or its entrance depend on the origin.
    is_followed: bool,
    /// The tickets whose requests are on their way, where it matters.
    tickets: BTreeMap<u64, u64>,
    heard: Remembered<Heard>,
    counts: OriginCounts,
    /// What the limits are judged by: of each ticket a little. `None`: they do not depend on the origin.
    judged: Option<OriginCounts>,
    reported: OriginCounts,
}

impl OriginMonitor {
    /// Nothing has been sent yet.
    pub fn new(room: &Room) -> Self {
        let open = GuardSettings {
            strategy: GuardStrategy::Static,
            min: 1,
            max: 1,
            at_once: None,
            timeout_ms: LONGEST_MS,
            hold_ms: 0,
        };
        let guard = room.origin_guard.as_ref();
        Self {
            guard: Guard::new(guard.map_or(open, |guard| guard.settings)),
            when_full: guard.map(|guard| guard.admitted),
            timeout_ms: guard.map(|guard| guard.settings.timeout_ms),
            is_followed: room.follows_origin(),
            tickets: BTreeMap::new(),
            heard: Remembered::new(JUDGED_MS, REMEMBERED_TICKETS),
            counts: OriginCounts::default(),
            judged: room.adaptive.map(|_| OriginCounts::default()),
            reported: OriginCounts::default(),
        }
    }

    /// Whether somebody new may come: not while those who are in fill the window.
    pub fn has_room(&mut self, now: u64) -> bool {
        self.when_full.is_none() || self.guard.has_room(now)
    }

    /// What becomes of a request of a user who is in. `ticket`: the ticket's id; `beyond`: the request goes in any case, and is
    /// counted.
    pub fn arrive(&mut self, ticket: u64, beyond: bool, now: u64) -> Arrival {
        let arrival = if beyond { Arrival::Go(self.guard.pass_beyond(now)) } else { self.lets_pass(now) };
        if let Arrival::Go(passage) | Arrival::InLine(passage) = arrival
            && passage != Passage::UNCOUNTED
            && (self.is_followed || self.when_full.is_some())
        {
            self.tickets.insert(passage.number() as u64, ticket);
            if self.tickets.len() > KNOWN_REQUESTS {
                self.tickets.pop_first();
            }
        }
        arrival
    }

    fn lets_pass(&mut self, now: u64) -> Arrival {
        let arrival = match self.when_full {
            None => return Arrival::Go(self.guard.pass_beyond(now)),
            Some(_) => self.guard.arrive(now),
        };
        match arrival {
            Arrival::Refused if self.when_full == Some(WhenFull::Pass) => {
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
        if self.when_full == Some(WhenFull::Pass) {
            return Turn::Go;
        }
        self.counts.refused += 1;
        turn
    }

    /// After how many milliseconds without a first byte a request is given up; `None`: never.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }

    /// A request ended after `took_ms`, in milliseconds. Returns whether it must be reported soon.
    pub fn came_back(&mut self, passage: Passage, reply: Reply, took_ms: u64, now: u64) -> bool {
        // Whoever leaves soon has changed their mind; whoever waited long has not been served in time.
        let too_long = self.timeout_ms.is_some_and(|timeout| took_ms >= timeout / LONG_PART);
        let reply = if reply == Reply::Left && too_long { Reply::TimedOut } else { reply };
        // Of a request of which it is not known whose it is nobody can say how many more are that visitor's.
        let ticket = self.tickets.remove(&(passage.number() as u64));
        let (counts, is_judged) = ticket.map_or((true, false), |ticket| self.hear(ticket, reply, now));
        if !counts {
            self.guard.finished(passage, Ending::Other, now);
            return false;
        }
        self.guard.finished(passage, reply.ending(), now);
        self.counts.count(reply, took_ms);
        if is_judged && let Some(judged) = &mut self.judged {
            judged.count(reply, took_ms);
        }
        self.is_followed && reply.is_trouble()
    }

    /// Whether what came of a ticket's request counts, and whether limits are judged by it.
    fn hear(&mut self, ticket: u64, reply: Reply, now: u64) -> (bool, bool) {
        let mut heard = self.heard.get(ticket).unwrap_or_default();
        if now >= heard.since + HEARD_MS {
            heard = Heard { since: now, judged_at: heard.judged_at, ..Heard::default() };
        }
        let is_trouble = reply.is_trouble();
        let (count, most) = if is_trouble {
            (&mut heard.troubles, MOST_TROUBLES)
        } else {
            (&mut heard.answers, MOST_ANSWERS)
        };
        if *count >= most || reply == Reply::Left {
            return (!is_trouble, false);
        }
        *count += 1;
        let is_judged = !is_trouble || now >= heard.judged_at + JUDGED_MS;
        if is_trouble && is_judged {
            heard.judged_at = now;
        }
        self.heard.put(ticket, heard, now);
        (true, is_judged)
    }

    /// What to report; `None`: nothing has changed since it was asked for last.
    pub fn report(&mut self) -> Option<OriginCounts> {
        let counts = OriginCounts { in_flight: self.guard.in_flight().into(), ..self.counts.clone() };
        if counts == self.reported {
            return None;
        }
        self.reported = counts.clone();
        Some(counts)
    }

    /// What the limits are judged by, of what was reported last; `None`: they do not depend on the origin.
    pub fn judged(&self) -> Option<OriginCounts> {
        self.judged.clone()
    }
}
