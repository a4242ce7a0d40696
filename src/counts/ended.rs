//! Sessions that were ended before their time: each is taken off the counts once, and every colo gets to know.
//!
//! A ticket is a cookie, and a cookie can be copied: the session may be ended in several colos at once, and go on in
//! others. So one colo alone takes its user off, the one in which the ticket was made. It hears of it from its own
//! workers, or by way of Global. The others count nothing, and all tell their workers to refuse the ticket.

use std::collections::VecDeque;

use crate::admission::{EndedNews, Remembered};
use crate::check_in::CheckIn;
use crate::room::Room;

/// Ended sessions that one message names: between data centers and Global, and to a worker.
const TOLD_AT_ONCE: usize = 200;
/// See [`TOLD_AT_ONCE`].
const WORKER_TOLD_AT_ONCE: usize = 100;
/// Ended sessions on their way that are kept. Beyond it the oldest are dropped: copies of their tickets may go on in
/// other colos.
const ON_THE_WAY: usize = 5_000;
/// A data center keeps for this time what it has told Global, in milliseconds: by then all others have heard of it.
const TOLD_FOR_MS: u64 = 15_000;
/// For how long an ended session is remembered, in milliseconds: a copy of its ticket may be good for as long as any session,
/// which operators and events may have made longer meanwhile.
pub const REMEMBERED_MS: u64 = Room::LONGEST_SESSION_MINUTES as u64 * 60_000;
/// Ended sessions that a data center remembers, per generation.
const REMEMBERED: usize = 50_000;
/// Of those: how many are in storage.
const STORED: usize = 2_000;
/// They are in the order of their times, but for this many milliseconds.
const ORDER_MS: u64 = 15_000;

/// The newest ended sessions, each with a number.
#[derive(Debug)]
struct Newest {
    /// The [`CheckIn::Leave`] of each.
    sessions: VecDeque<CheckIn>,
    capacity: usize,
    /// The number of the newest one.
    last: u64,
}

impl Newest {
    fn new(capacity: usize, start: u64) -> Self {
        Self { sessions: VecDeque::new(), capacity, last: start }
    }

    fn push(&mut self, leave: CheckIn) {
        push_within(&mut self.sessions, leave, self.capacity);
        self.last += 1;
    }

    /// Those after a number, at most so many, and the number of the last of them.
    fn after(&self, heard: u64, most: usize) -> (impl Iterator<Item = CheckIn>, u64) {
        let first = self.last - self.sessions.len() as u64;
        // A number of an earlier start says nothing.
        let heard = if (first..=self.last).contains(&heard) { heard } else { first };
        let sessions = self.sessions.iter().skip((heard - first) as usize).take(most).copied();
        (sessions, self.last.min(heard + most as u64))
    }
}

/// What a data center knows of ended sessions.
#[derive(Debug)]
pub struct Ended {
    /// What ended with an earlier check-in may be forgotten, and taken off already.
    known_since: u64,
    /// By ticket: the last check-in with which it was ended.
    tickets: Remembered<u64>,
    newest: Newest,
    /// What Global is to be told, and how much of it the last push told.
    untold: VecDeque<CheckIn>,
    telling: usize,
    /// What it was told lately, and when.
    told: VecDeque<(CheckIn, u64)>,
    /// Which start of Global has answered last, and up to which number it has told.
    start: u64,
    heard: u64,
}

impl Ended {
    /// What was stored before, if anything; `now` in milliseconds since the epoch.
    pub fn restore(stored: Vec<CheckIn>, untold: Vec<CheckIn>, now: u64) -> Self {
        let known_since = match stored.first() {
            Some(CheckIn::Leave { at, .. }) if stored.len() >= STORED => at + ORDER_MS,
            _ => 0,
        };
        let mut ended = Self {
            known_since: 0,
            tickets: Remembered::new(REMEMBERED_MS, REMEMBERED),
            newest: Newest::new(STORED, now),
            untold: untold.into(),
            telling: 0,
            told: VecDeque::new(),
            start: 0,
            heard: 0,
        };
        for leave in stored {
            ended.note(&leave, false, now);
        }
        ended.known_since = known_since;
        ended
    }

    /// Whether the session of a ticket was ended.
    pub fn knows(&self, id: u64) -> bool {
        self.tickets.get(id).is_some()
    }

    /// What a worker is told that has reported, and has heard up to a number: of its own tickets whose sessions were ended,
    /// and of others. It refuses their tickets, and has no use for the rest.
    pub fn news(&self, check_ins: &[CheckIn], heard: u64) -> EndedNews {
        let is_known = |check_in: &&CheckIn| self.knows(check_in.id());
        let own = || check_ins.iter().filter(is_known).take(WORKER_TOLD_AT_ONCE);
        let (others, heard) = self.newest.after(heard, WORKER_TOLD_AT_ONCE - own().count());
        let ticket = |ended: CheckIn| CheckIn::Leave { id: ended.id(), from: 0, at: 0, entered: None };
        EndedNews {
            sessions: own().copied().chain(others).map(ticket).collect(),
            heard,
            ..EndedNews::default()
        }
    }

    /// Whether a check-in comes from a session that was ended before it: nothing of it is counted. It is remembered for
    /// longer then: a copy of the ticket is in use.
    pub fn is_over(&mut self, check_in: &CheckIn, now: u64) -> bool {
        let CheckIn::Move { id, at, .. } = check_in else { return false };
        let over = self.tickets.get(*id).filter(|from| at > from);
        if let Some(from) = over {
            self.tickets.put(*id, from, now);
        }
        over.is_some()
    }

    /// Remembers that a session is ended, by a [`CheckIn::Leave`]. `of_own`: a worker of this colo says so, and Global is to
    /// be told. Returns whether that is new, and the user has yet to be taken off the counts.
    pub fn note(&mut self, leave: &CheckIn, of_own: bool, now: u64) -> bool {
        let CheckIn::Leave { id, from, at, .. } = leave else { return false };
        if self.knows(*id) {
            return false;
        }
        self.tickets.put(*id, *from, now);
        if of_own {
            push_within(&mut self.untold, *leave, ON_THE_WAY);
        }
        // Global tells a new instance of old ones too. They must not displace newer ones, by which the next instance knows since when
        // it knows all.
        if *at >= self.known_since {
            self.newest.push(*leave);
        }
        *from >= self.known_since
    }

    /// What is to be stored of it: ended sessions, oldest first, and what Global is to be told.
    pub fn to_store(&self) -> (Vec<CheckIn>, Vec<CheckIn>) {
        let untold = self.untold.iter().take(STORED).copied();
        (self.newest.sessions.iter().copied().collect(), untold.collect())
    }

    /// What Global is told with the next push, and up to which number this data center has heard.
    pub fn tell(&mut self) -> (Vec<CheckIn>, u64) {
        self.telling = self.untold.len().min(TOLD_AT_ONCE);
        (self.untold.iter().take(self.telling).copied().collect(), self.heard)
    }

    /// Whether there is more to tell.
    pub fn has_more(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Global has answered the push.
    pub fn told(&mut self, news: &EndedNews, now: u64) {
        let telling = std::mem::take(&mut self.telling).min(self.untold.len());
        self.told.retain(|(_, told_at)| now < told_at + TOLD_FOR_MS);
        self.told.extend(self.untold.drain(..telling).map(|leave| (leave, now)));
        if self.start != news.start {
            // One that has started anew may have forgotten them before it told the others.
            let again = std::mem::take(&mut self.told).into_iter().map(|(leave, _)| leave);
            self.untold = again.chain(self.untold.drain(..)).take(ON_THE_WAY).collect();
            self.start = news.start;
        }
        self.heard = news.heard;
    }
}

/// What Global passes on of ended sessions.
#[derive(Debug)]
pub struct EndedEverywhere {
    known: Remembered<()>,
    newest: Newest,
    start: u64,
}

impl EndedEverywhere {
    /// Nothing yet; `now` in milliseconds since the epoch.
    pub fn new(now: u64) -> Self {
        let known = Remembered::new(REMEMBERED_MS, REMEMBERED);
        Self { known, newest: Newest::new(ON_THE_WAY, now), start: now }
    }

    /// A data center tells of ended sessions.
    pub fn learn(&mut self, told: &[CheckIn], now: u64) {
        for leave in told {
            let CheckIn::Leave { id, .. } = leave else { continue };
            if self.known.get(*id).is_none() {
                self.known.put(*id, (), now);
                self.newest.push(*leave);
            }
        }
    }

    /// What a data center is told that has heard up to a number.
    pub fn after(&self, heard: u64) -> EndedNews {
        let (sessions, heard) = self.newest.after(heard, TOLD_AT_ONCE);
        EndedNews { sessions: sessions.collect(), start: self.start, heard }
    }
}

fn push_within<T>(queue: &mut VecDeque<T>, value: T, capacity: usize) {
    if queue.len() >= capacity {
        queue.pop_front();
    }
    queue.push_back(value);
}
