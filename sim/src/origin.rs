//! An origin in a box: requests arrive, wait, are worked on and answered; it gets slower with load and breaks down.
//!
//! It knows nothing of its clients. Whoever stops waiting is served all the same: that is the work thrown away.
//!
//! The caller keeps the time: it tells arrivals as they happen, asks [`Origin::due`] when the next answer may be there,
//! and fetches answers with [`Origin::answers`]. The same calls and seed give the same answers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use crate::scenario::ScenarioError;

/// How long an answer takes that needs no work, in milliseconds.
const REFUSAL_MS: f64 = 1.0;

/// What an origin is like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setup {
    /// How many requests it works on at full speed at once: threads, processes or cores.
    pub concurrency: u32,
    /// Mean time that a request takes alone, in milliseconds.
    pub service_ms: f64,
    /// How much these times differ: the standard deviation of their logarithm. 0: not at all.
    pub spread: f64,
    /// What happens to more requests than that.
    pub sharing: Sharing,
    /// How much slower everything gets when twice as many requests as `concurrency` are there: 0.1 is a tenth. It grows
    /// with their number.
    pub contention: f64,
    /// The most requests that wait; one more is answered 503. Left out: there is no limit.
    pub queue: Option<u32>,
    /// What goes wrong, and when.
    pub faults: Vec<OriginFault>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            concurrency: 20,
            service_ms: 100.0,
            spread: 0.3,
            sharing: Sharing::Queue,
            contention: 0.0,
            queue: None,
            faults: Vec::new(),
        }
    }
}

/// What happens to more requests than the origin can work on at full speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// They wait in the order of their arrival.
    Queue,
    /// All are worked on at once, and all get slower.
    Cores,
}

/// Something that goes wrong with the origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginFault {
    /// When it begins, in seconds.
    pub at: f64,
    /// How long, in seconds.
    pub lasts: f64,
    /// What goes wrong.
    pub what: Trouble,
}

/// What can go wrong with an origin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Everything takes this many times as long.
    Slow(f64),
    /// This share of requests ends with an error, after the same work.
    Errors(f64),
    /// This share of requests takes ten seconds longer: a slow query, a lock.
    Stuck(f64),
    /// Nothing moves. What is there goes on afterwards.
    Hang,
    /// It cannot be reached; what was there is lost.
    Dies,
    /// Dies and lives in turn, for this many seconds each, beginning with death.
    Flaps(f64),
    /// It works on this share of `concurrency` at once.
    Capacity(f64),
}

/// How much longer a stuck request takes, in milliseconds.
const STUCK_MS: f64 = 10_000.0;

impl Setup {
    /// Whether this origin can be simulated.
    ///
    /// # Errors
    /// The first field that cannot be as it is, and what it may be.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let wrong = |what: String| Err(ScenarioError(format!("origin: {what}")));
        if !(1..=1_000_000).contains(&self.concurrency) {
            return wrong(format!("concurrency = {}; it must be from 1 to 1,000,000", self.concurrency));
        }
        let ranges = [
            ("service_ms", self.service_ms, 0.01, 600_000.0),
            ("spread", self.spread, 0.0, 3.0),
            ("contention", self.contention, 0.0, 100.0),
        ];
        for (field, value, from, to) in ranges {
            if !(from..=to).contains(&value) {
                return wrong(format!("{field} = {value}; it must be from {from} to {to}"));
            }
        }
        for (index, fault) in self.faults.iter().enumerate() {
            let wrong = |what: String| wrong(format!("faults {index}: {what}"));
            for (field, seconds) in [("at", fault.at), ("lasts", fault.lasts)] {
                if !(0.0..=6e6).contains(&seconds) {
                    return wrong(format!("{field} = {seconds}; it is in seconds, from 0"));
                }
            }
            let (name, value, from, to) = match fault.what {
                Trouble::Slow(factor) => ("slow", factor, 0.01, 1_000.0),
                Trouble::Errors(share) => ("errors", share, 0.0, 1.0),
                Trouble::Stuck(share) => ("stuck", share, 0.0, 1.0),
                Trouble::Flaps(seconds) => ("flaps", seconds, 0.1, 100_000.0),
                Trouble::Capacity(share) => ("capacity", share, 0.01, 100.0),
                Trouble::Hang | Trouble::Dies => continue,
            };
            if !(from..=to).contains(&value) {
                return wrong(format!("what = {{ {name} = {value} }}; it must be from {from} to {to}"));
            }
        }
        Ok(())
    }

    /// How many requests a second it can answer as it should at a time, in milliseconds, if it always has enough and not
    /// too many.
    pub fn best_per_second(&self, at_ms: f64) -> f64 {
        let state = State::of(self, at_ms);
        if state.dead || state.hangs {
            return 0.0;
        }
        let work_ms = (self.service_ms + state.stuck * STUCK_MS) * state.slow;
        state.concurrency / work_ms * 1_000.0 * (1.0 - state.errors)
    }
}

/// What of the faults holds at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct State {
    slow: f64,
    errors: f64,
    stuck: f64,
    hangs: bool,
    dead: bool,
    concurrency: f64,
}

impl State {
    fn of(setup: &Setup, at_ms: f64) -> Self {
        let concurrency = f64::from(setup.concurrency);
        let mut state = Self { slow: 1.0, errors: 0.0, stuck: 0.0, hangs: false, dead: false, concurrency };
        for fault in &setup.faults {
            let since = at_ms / 1_000.0 - fault.at;
            if since < 0.0 || since >= fault.lasts {
                continue;
            }
            match fault.what {
                Trouble::Slow(factor) => state.slow *= factor,
                Trouble::Errors(share) => state.errors = state.errors.max(share),
                Trouble::Stuck(share) => state.stuck = state.stuck.max(share),
                Trouble::Hang => state.hangs = true,
                Trouble::Dies => state.dead = true,
                Trouble::Flaps(seconds) => state.dead |= ((since / seconds) as u64).is_multiple_of(2),
                Trouble::Capacity(share) => {
                    state.concurrency = (state.concurrency * share).round().max(1.0);
                }
            }
        }
        state
    }
}

/// How the origin answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginAnswer {
    /// As it should.
    Served,
    /// With an error that is not about load, after the same work.
    Error,
    /// 503: too many wait already.
    Overloaded,
    /// No connection.
    Unreachable,
}

/// A request that it works on; the one to be ready first comes first.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Serving {
    /// The progress at which it is done.
    done_at: f64,
    order: u64,
    request: u64,
    error: bool,
}

impl Eq for Serving {}

impl PartialOrd for Serving {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Serving {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.done_at.total_cmp(&other.done_at).then(self.order.cmp(&other.order))
    }
}

/// An origin at work.
#[derive(Debug)]
pub struct Origin {
    setup: Setup,
    rng: Rng,
    /// In milliseconds, with their parts: work ends between the caller's milliseconds.
    now: f64,
    state: State,
    /// When faults begin and end, the next one last.
    edges: Vec<f64>,
    /// What each request that is worked on has got done since the beginning, in milliseconds of work.
    progress: f64,
    serving: BinaryHeap<Reverse<Serving>>,
    /// Requests with the work that they need, and whether they end with an error.
    queue: VecDeque<(u64, f64, bool)>,
    /// Answers with their times, not fetched yet.
    answers: Vec<(f64, u64, OriginAnswer)>,
    next: u64,
}

impl Origin {
    /// An idle origin at time 0. Its times are in milliseconds since then.
    pub fn new(setup: Setup, seed: u64) -> Self {
        let mut edges: Vec<f64> = Vec::new();
        for fault in &setup.faults {
            let (from, until) = (fault.at * 1_000.0, (fault.at + fault.lasts) * 1_000.0);
            edges.extend([from, until]);
            if let Trouble::Flaps(seconds) = fault.what {
                let times = (fault.lasts / seconds) as u64;
                edges.extend((1..=times).map(|time| from + time as f64 * seconds * 1_000.0));
            }
        }
        edges.sort_by(|one, other| other.total_cmp(one));
        Self {
            rng: Rng::with_seed(seed),
            now: 0.0,
            state: State::of(&setup, 0.0),
            edges,
            progress: 0.0,
            serving: BinaryHeap::new(),
            queue: VecDeque::new(),
            answers: Vec::new(),
            next: 0,
            setup,
        }
    }

    /// How many requests are there, worked on or waiting.
    pub fn in_flight(&self) -> usize {
        self.serving.len() + self.queue.len()
    }

    /// Whether it answers anybody well at a time.
    pub fn is_up(&self, now: u64) -> bool {
        self.setup.best_per_second(now as f64) > 0.0
    }

    /// A request arrives. `request` is the caller's name for it.
    pub fn arrive(&mut self, request: u64, now: u64) {
        self.advance(now as f64);
        let work = self.work();
        let error = self.state.errors > 0.0 && self.rng.f64() < self.state.errors;
        let refusal = if self.state.dead {
            Some(OriginAnswer::Unreachable)
        } else {
            let full = self
                .setup
                .queue
                .is_some_and(|queue| self.in_flight() >= self.state.concurrency as usize + queue as usize);
            full.then_some(OriginAnswer::Overloaded)
        };
        if let Some(answer) = refusal {
            self.answers.push((self.now + REFUSAL_MS, request, answer));
            return;
        }
        self.queue.push_back((request, work, error));
        self.take();
    }

    /// When answers may be ready, or anything changes, if nothing else arrives. In milliseconds.
    pub fn due(&self) -> Option<u64> {
        let answer = self.answers.iter().map(|(at, ..)| *at).fold(f64::INFINITY, f64::min);
        let mut due = answer.min(self.next_done());
        if self.in_flight() > 0 {
            due = due.min(self.edges.last().copied().unwrap_or(f64::INFINITY));
        }
        due.is_finite().then(|| (due.ceil() as u64).max(self.now as u64))
    }

    /// The answers that are ready at `now`, in the order in which they were.
    pub fn answers(&mut self, now: u64) -> Vec<(u64, OriginAnswer)> {
        let now = now as f64;
        self.advance(now);
        let mut ready = Vec::new();
        self.answers.retain(|one| {
            let is_ready = one.0 <= now;
            if is_ready {
                ready.push(*one);
            }
            !is_ready
        });
        ready.sort_by(|one, other| one.0.total_cmp(&other.0));
        ready.into_iter().map(|(_, request, answer)| (request, answer)).collect()
    }

    /// The work of one request, in milliseconds.
    fn work(&mut self) -> f64 {
        let Setup { service_ms, spread, .. } = self.setup;
        let mut work = service_ms;
        if spread > 0.0 {
            // A logarithm with a normal distribution, around what keeps the mean.
            let (one, other) = (1.0 - self.rng.f64(), self.rng.f64());
            let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
            work = service_ms * (spread * normal - spread * spread / 2.0).exp();
        }
        if self.state.stuck > 0.0 && self.rng.f64() < self.state.stuck {
            work += STUCK_MS;
        }
        work
    }

    /// Milliseconds of work that each request gets done in a millisecond.
    fn rate(&self) -> f64 {
        if self.state.hangs || self.serving.is_empty() {
            return 0.0;
        }
        let concurrency = self.state.concurrency;
        let surplus = (self.in_flight() as f64 / concurrency - 1.0).max(0.0);
        let share = (concurrency / self.serving.len() as f64).min(1.0);
        share / self.state.slow / (1.0 + self.setup.contention * surplus)
    }

    fn next_done(&self) -> f64 {
        let (rate, Some(Reverse(first))) = (self.rate(), self.serving.peek()) else { return f64::INFINITY };
        if rate <= 0.0 { f64::INFINITY } else { self.now + (first.done_at - self.progress).max(0.0) / rate }
    }

    /// Lets everything happen until a time.
    fn advance(&mut self, until: f64) {
        loop {
            let done = self.next_done();
            let edge = self.edges.last().copied().unwrap_or(f64::INFINITY);
            let next = done.min(edge).min(until);
            if next > self.now {
                self.progress += (next - self.now) * self.rate();
                self.now = next;
            }
            if edge <= self.now {
                self.edges.pop();
                self.turn();
            } else if done <= self.now {
                self.complete();
            } else {
                return;
            }
        }
    }

    /// A fault begins or ends.
    fn turn(&mut self) {
        // A moment later: rounding must not put it before the edge.
        self.state = State::of(&self.setup, self.now + 1e-6);
        if self.state.dead {
            let lost = self.serving.drain().map(|Reverse(one)| one.request);
            let mut lost: Vec<u64> = lost.chain(self.queue.drain(..).map(|(request, ..)| request)).collect();
            lost.sort_unstable();
            self.answers
                .extend(lost.into_iter().map(|request| (self.now, request, OriginAnswer::Unreachable)));
        }
        self.take();
    }

    /// Everything that is ready now leaves, and others take its place.
    fn complete(&mut self) {
        // The first is ready whatever rounding says; else time would stand still.
        if let Some(Reverse(first)) = self.serving.peek() {
            self.progress = self.progress.max(first.done_at);
        }
        while let Some(Reverse(first)) = self.serving.peek().copied() {
            if first.done_at > self.progress {
                break;
            }
            self.serving.pop();
            let answer = if first.error { OriginAnswer::Error } else { OriginAnswer::Served };
            self.answers.push((self.now, first.request, answer));
        }
        self.take();
    }

    /// Begins to work on those who wait, as many as it can.
    fn take(&mut self) {
        let most = match self.setup.sharing {
            Sharing::Queue => self.state.concurrency as usize,
            Sharing::Cores => usize::MAX,
        };
        while self.serving.len() < most
            && let Some((request, work, error)) = self.queue.pop_front()
        {
            let done_at = self.progress + work;
            self.serving.push(Reverse(Serving { done_at, order: self.next, request, error }));
            self.next += 1;
        }
    }
}
