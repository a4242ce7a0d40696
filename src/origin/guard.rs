//! `origin_guard`: how many requests one worker has at the origin at once, and who goes next.
//!
//! A request that takes longer than its visitor waits is work thrown away, and it keeps others waiting until they time
//! out too. So each request gets a **position**: how many are started and not finished when it arrives, itself
//! included. What failed at position p says that p is too many. Requests beyond the **window** are not sent at all.
//!
//! In a Worker no request may await another request's promise. So those in line ask for their turn by timers of their
//! own, and one that never asks again holds nobody up.

use crate::room::{GuardSettings, GuardStrategy};

/// Successes in a row that let the window grow by one.
const RUN: u32 = 10;
/// What `basic` takes off its window at each failure.
const BASIC_STEP: u32 = 10;
/// A window shrinks to a twentieth below the position that failed: 10 of 200, as in the article, and 1 of 20 or less.
const STEP: u32 = 20;
/// Each failure that a shrunk window has not prevented doubles the step, at most this many times.
const MOST_STRIKES: u32 = 4;
/// At most one in this many rounds of the window may be spent above what the origin can do in time.
const ROUNDS: u32 = 30;
/// Longest interval at which a request in line asks for its turn, in milliseconds.
pub const ASK_EVERY_MS: u64 = 25;
/// The interval of one that is nearly next, in milliseconds: until it asks, a place at the origin is free in vain.
const NEXT_ASKS_MS: u64 = 4;
/// Whoever has not asked for this time, in milliseconds, is passed over by those behind.
const PASSED_OVER_MS: u64 = 10 * ASK_EVERY_MS;
/// A request that has not ended this long after its timeout is forgotten, in milliseconds.
const MARGIN_MS: u64 = 1_000;
/// Time between two searches for requests to forget, in milliseconds.
const SWEEP_MS: u64 = 100;
/// The most requests beyond the window that are counted.
const BEYOND: usize = 10_000;

/// A request on its way through the guard. It can cross to JavaScript as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage(u64);

impl Passage {
    /// Of a request that is not counted: no end of it changes anything.
    pub const UNCOUNTED: Self = Self(0);

    /// As a plain number, a whole one below 2^53.
    pub fn number(self) -> f64 {
        self.0 as f64
    }

    /// Of a number that [`Passage::number`] gave. Any other number is a passage that is over.
    pub fn from_number(number: f64) -> Self {
        Self(number as u64)
    }
}

/// What becomes of a request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is sent now.
    Go(Passage),
    /// It stands in line: ask for its turn, see [`Guard::ask_after_ms`].
    InLine(Passage),
    /// It is beyond the window.
    Refused,
}

/// What a request in line does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is sent now.
    Go,
    /// Ask again in a few milliseconds.
    Later,
    /// It is not sent: its position is beyond the window by now, it stood too long, or newer ones took its place. The
    /// passage is over.
    Dropped,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The first byte of an answer came, in time.
    Success,
    /// The origin said that it has too much to do (429, 503, 504), or could not be reached.
    Overload,
    /// No first byte came in time.
    TimedOut,
    /// Neither tells of the origin's load: the visitor went away, or the answer was an error of another kind.
    Other,
}

/// A request that is started and not finished.
#[derive(Debug, Clone, Copy)]
struct Underway {
    number: u64,
    position: u32,
    arrived_at: u64,
    /// In line: when it asked last. At the origin: when it was sent.
    seen_at: u64,
}

/// The guard of one worker for one room.
#[derive(Debug, Clone)]
pub struct Guard {
    settings: GuardSettings,
    window: u32,
    /// The position that failed last; `u32::MAX`: none has.
    failed_at: u32,
    /// When the window shrank last.
    shrunk_at: Option<u64>,
    /// How often in a row shrinking did not help: who came after it failed too.
    strikes: u32,
    /// The last success took more than half of its time.
    slow: bool,
    /// Successes in a row with time to spare, and those nearly too late.
    run: u32,
    late_run: u32,
    next: u64,
    /// Both in the order of arrival.
    at_origin: Vec<Underway>,
    line: Vec<Underway>,
    swept_at: u64,
}

impl Guard {
    /// A guard that knows nothing of the origin yet.
    pub fn new(settings: GuardSettings) -> Self {
        let min = settings.min.max(1);
        let max = settings.max.max(min);
        let window = match settings.strategy {
            GuardStrategy::Static | GuardStrategy::NewestFirst => max,
            GuardStrategy::Basic | GuardStrategy::Position => min,
        };
        Self {
            settings: GuardSettings { min, max, ..settings },
            window,
            failed_at: u32::MAX,
            shrunk_at: None,
            strikes: 0,
            slow: false,
            run: 0,
            late_run: 0,
            next: 1,
            at_origin: Vec::new(),
            line: Vec::new(),
            swept_at: 0,
        }
    }

    /// Goes by other settings from now on, and knows nothing of the origin yet; what is under way stays.
    pub fn change(&mut self, settings: GuardSettings) {
        let Self { next, swept_at, .. } = *self;
        let (at_origin, line) = (std::mem::take(&mut self.at_origin), std::mem::take(&mut self.line));
        *self = Self { next, at_origin, line, swept_at, ..Self::new(settings) };
    }

    /// How many requests may be started and not finished. Of `newest_first`: the size of its stack.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// How many requests are started and not finished, at the origin or in line.
    pub fn in_flight(&self) -> u32 {
        (self.at_origin.len() + self.line.len()) as u32
    }

    /// Whether one more would be sent or stand in line, at nobody's expense. New visitors wait in the room when not.
    pub fn has_room(&mut self, now: u64) -> bool {
        self.sweep(now);
        match self.settings.strategy {
            GuardStrategy::NewestFirst => self.may_send() || self.line.len() < self.settings.max as usize,
            _ => self.in_flight() < self.window,
        }
    }

    /// A request arrives.
    pub fn arrive(&mut self, now: u64) -> Arrival {
        self.sweep(now);
        let newest_first = self.settings.strategy == GuardStrategy::NewestFirst;
        if !newest_first && self.in_flight() >= self.window {
            return Arrival::Refused;
        }
        if self.may_send() && (newest_first || self.line.is_empty()) {
            return Arrival::Go(self.send_new(now));
        }
        if newest_first && self.line.len() >= self.settings.max as usize {
            self.line.remove(0);
        }
        let underway = self.start(now);
        self.line.push(underway);
        Arrival::InLine(Passage(underway.number))
    }

    /// A request arrives that is sent in any case. It counts like any other, as long as there are not too many.
    pub fn pass_beyond(&mut self, now: u64) -> Passage {
        self.sweep(now);
        if self.at_origin.len() >= self.settings.max as usize + BEYOND {
            return Passage::UNCOUNTED;
        }
        self.send_new(now)
    }

    /// What a request in line does at `now`.
    pub fn turn(&mut self, passage: Passage, now: u64) -> Turn {
        let Ok(place) = self.line.binary_search_by_key(&passage.0, |one| one.number) else {
            return Turn::Dropped;
        };
        let Some(mine) = self.line.get_mut(place) else { return Turn::Dropped };
        mine.seen_at = now;
        let mine = *mine;
        if now.saturating_sub(mine.arrived_at) >= self.settings.hold_ms {
            self.line.remove(place);
            self.failed(mine, now);
            return Turn::Dropped;
        }
        // Somewhat beyond is sent still: the window shrinks a little at every failure.
        let newest_first = self.settings.strategy == GuardStrategy::NewestFirst;
        let follows = self.settings.strategy == GuardStrategy::Position;
        if follows && mine.position > self.window.saturating_add(step(self.window)) {
            self.line.remove(place);
            return Turn::Dropped;
        }
        let free = self.at_once().saturating_sub(self.at_origin.len());
        let asks = |one: &&Underway| now.saturating_sub(one.seen_at) < PASSED_OVER_MS;
        let (before, after) = self.line.split_at(place);
        let ahead = if newest_first {
            after.iter().skip(1).filter(asks).take(free).count()
        } else {
            before.iter().filter(asks).take(free).count()
        };
        if ahead >= free {
            return Turn::Later;
        }
        self.line.remove(place);
        self.send(mine, now);
        Turn::Go
    }

    /// In how many milliseconds a request in line asks for its turn again.
    pub fn ask_after_ms(&self, passage: Passage) -> u64 {
        let Ok(place) = self.line.binary_search_by_key(&passage.0, |one| one.number) else { return 0 };
        let ahead = match self.settings.strategy {
            GuardStrategy::NewestFirst => self.line.len() - 1 - place,
            _ => place,
        };
        // Answers take longer than asking seldom; so not even twice as many as are sent at once go before it asks again.
        if ahead < self.at_once().saturating_mul(2) { NEXT_ASKS_MS } else { ASK_EVERY_MS }
    }

    /// A request is over, wherever it was. The second end of a passage changes nothing.
    pub fn finished(&mut self, passage: Passage, ending: Ending, now: u64) {
        if let Ok(place) = self.line.binary_search_by_key(&passage.0, |one| one.number) {
            // It was never sent, so it tells nothing of the origin.
            self.line.remove(place);
            return;
        }
        let Ok(place) = self.at_origin.binary_search_by_key(&passage.0, |one| one.number) else { return };
        let one = self.at_origin.remove(place);
        let took = now.saturating_sub(one.seen_at);
        match ending {
            Ending::Success if took <= self.settings.timeout_ms => self.succeeded(one, took),
            Ending::Success | Ending::Overload | Ending::TimedOut => self.failed(one, now),
            Ending::Other => {}
        }
    }

    fn at_once(&self) -> usize {
        let none = match self.settings.strategy {
            GuardStrategy::NewestFirst => self.settings.min,
            _ => u32::MAX,
        };
        self.settings.at_once.unwrap_or(none).max(1) as usize
    }

    fn may_send(&self) -> bool {
        self.at_origin.len() < self.at_once()
    }

    fn start(&mut self, now: u64) -> Underway {
        let number = self.next;
        self.next += 1;
        Underway { number, position: self.in_flight().saturating_add(1), arrived_at: now, seen_at: now }
    }

    fn send_new(&mut self, now: u64) -> Passage {
        let underway = self.start(now);
        self.at_origin.push(underway);
        Passage(underway.number)
    }

    fn send(&mut self, one: Underway, now: u64) {
        let place = self.at_origin.partition_point(|other| other.number < one.number);
        self.at_origin.insert(place, Underway { seen_at: now, ..one });
    }

    /// Forgets requests whose end was never reported: their visitors went away, and the platform dropped them.
    fn sweep(&mut self, now: u64) {
        if now.saturating_sub(self.swept_at) < SWEEP_MS {
            return;
        }
        self.swept_at = now;
        let lives = |since: u64, ms: u64| now.saturating_sub(since) < ms.saturating_add(MARGIN_MS);
        self.at_origin.retain(|one| lives(one.seen_at, self.settings.timeout_ms));
        self.line.retain(|one| lives(one.seen_at, 0));
    }

    fn succeeded(&mut self, one: Underway, took: u64) {
        match self.settings.strategy {
            GuardStrategy::Static | GuardStrategy::NewestFirst => {}
            GuardStrategy::Basic => {
                self.run += 1;
                if self.run >= RUN {
                    self.grow();
                }
            }
            GuardStrategy::Position => self.succeeded_at(one, took),
        }
    }

    /// The article adds one after ten successes. Here it depends on how much time they left, and on what failed last.
    fn succeeded_at(&mut self, one: Underway, took: u64) {
        if self.came_after_shrinking(one) {
            self.strikes = 0;
        }
        // A success far inside the window does not say that a larger one would do.
        if one.position < self.window / 2 {
            return;
        }
        let waited = one.seen_at.saturating_sub(one.arrived_at);
        // Whether this multiple of the time would have been too long.
        let times_fits = |times: u64| {
            took.saturating_mul(times) <= self.settings.timeout_ms
                && waited.saturating_mul(times) <= self.settings.hold_ms
        };
        self.slow = !times_fits(2);
        let (window, failed_at) = (u64::from(self.window), u64::from(self.failed_at));
        if !times_fits(4) {
            // Not much larger, and answers come too late, even more so where an origin loses half of its capacity. That
            // will be known only when all in the window are late. So more is tried seldom, or not at all; never trying
            // would keep the window at `min` where an origin is slow but not busy.
            self.run = 0;
            self.late_run += 1;
            let try_more = !self.slow || window < failed_at / 2;
            if try_more && self.late_run >= self.window.saturating_mul(ROUNDS) / step(self.window) {
                self.grow();
            }
            return;
        }
        self.late_run = 0;
        self.run += 1;
        let near_failure = (failed_at * 3 / 4..=failed_at * 5 / 4).contains(&window);
        if self.run >= RUN || (times_fits(8) && !near_failure) {
            self.grow();
        }
    }

    fn grow(&mut self) {
        self.run = 0;
        self.late_run = 0;
        self.window = self.window.saturating_add(1).min(self.settings.max);
    }

    fn failed(&mut self, one: Underway, now: u64) {
        self.run = 0;
        self.late_run = 0;
        let min = self.settings.min;
        match self.settings.strategy {
            GuardStrategy::Static => {}
            GuardStrategy::Basic => self.window = self.window.saturating_sub(BASIC_STEP).max(min),
            // Whoever came before has waited longer, and will hardly be in time.
            GuardStrategy::NewestFirst => self.line.retain(|other| other.number > one.number),
            GuardStrategy::Position => self.failed_at(one, now),
        }
    }

    fn failed_at(&mut self, one: Underway, now: u64) {
        // Beyond the window as it is now: nothing new.
        if one.position > self.window {
            return;
        }
        if self.came_after_shrinking(one) {
            self.strikes = (self.strikes + 1).min(MOST_STRIKES);
        }
        let mut down = step(one.position) << self.strikes;
        if self.slow {
            // Others are nearly late too: it is the origin, not this one request.
            down = down.max(one.position / 4);
        }
        self.window = one.position.saturating_sub(down).max(self.settings.min);
        self.failed_at = one.position;
        self.shrunk_at = Some(now);
    }

    fn came_after_shrinking(&self, one: Underway) -> bool {
        self.shrunk_at.is_some_and(|shrunk_at| one.arrived_at >= shrunk_at)
    }
}

/// What a window shrinks by, or may be exceeded by in line.
fn step(window: u32) -> u32 {
    (window / STEP).max(1)
}
