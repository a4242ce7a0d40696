//! One call for many visitors: the asks of a worker, gathered for 20 ms.
//!
//! In a Worker no request may await another request's promise. So one request leads, calls for all who wait and stores
//! their answers; the others poll by timers of their own. A leader that vanishes is replaced.

use litemap::LiteMap;

/// The shortest time between two calls, in milliseconds.
const PACE_MS: u64 = 20;
/// The most asks of one call.
const BATCH: usize = 500;
/// TTL of answers that nobody fetches, in milliseconds: their visitors have gone.
const FORGOTTEN_MS: u64 = 5_000;
/// The most asks that may wait; one more is turned away and its visitor falls back.
const CAPACITY: usize = 10_000;

/// What a visitor's request does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress<A, R> {
    /// The answer is there; `None`: the call failed.
    Done(Option<R>),
    /// Lead: call with these asks, and store the answers under this call number.
    Lead(u64, Vec<(u64, A)>),
    /// Poll again in a few milliseconds.
    Later,
}

/// What one worker asks of one object.
#[derive(Debug)]
pub struct Batcher<A, R> {
    next: u64,
    last_call: u64,
    replace_after_ms: u64,
    waiting: Vec<(u64, A)>,
    calls: LiteMap<u64, (u64, Vec<(u64, A)>)>,
    answers: LiteMap<u64, (u64, Option<R>)>,
}

impl<A: Clone, R: Clone> Batcher<A, R> {
    /// An empty batcher. A leader that has not come back after `replace_after_ms` is replaced.
    pub fn new(replace_after_ms: u64) -> Self {
        Self {
            next: 1,
            last_call: 0,
            replace_after_ms,
            waiting: Vec::new(),
            calls: LiteMap::new(),
            answers: LiteMap::new(),
        }
    }

    /// Adds an ask and returns its place; `None` when the batcher is full.
    pub fn join(&mut self, ask: A) -> Option<u64> {
        if self.waiting.len() >= CAPACITY {
            return None;
        }
        let place = self.next;
        self.next += 1;
        self.waiting.push((place, ask));
        Some(place)
    }

    /// What the request with this place does at `now`.
    pub fn poll(&mut self, place: u64, now: u64) -> Progress<A, R> {
        if let Some(answer) = self.answer(place) {
            return Progress::Done(answer);
        }
        self.replace_vanished(now);
        // Each call has one leader, and it is one of those whom the call is for.
        let mine = self.waiting.iter().position(|(waiting, _)| *waiting == place);
        let Some(mine) = mine.filter(|_| now >= self.last_call + PACE_MS) else { return Progress::Later };
        self.last_call = now;
        let mut batch = vec![self.waiting.remove(mine)];
        batch.extend(self.waiting.drain(..self.waiting.len().min(BATCH - 1)));
        let call = self.next;
        self.next += 1;
        self.calls.insert(call, (now, batch.clone()));
        Progress::Lead(call, batch)
    }

    /// The answer for a place, if there is one; `None` in it: the call failed.
    pub fn answer(&mut self, place: u64) -> Option<Option<R>> {
        self.answers.remove(&place).map(|(_, answer)| answer)
    }

    /// When a place has something to do though no answer comes, in milliseconds since the epoch: to lead, or to replace a
    /// leader that has vanished.
    pub fn poll_at(&self, place: u64) -> u64 {
        if self.waiting.iter().any(|(waiting, _)| *waiting == place) {
            return self.last_call + PACE_MS;
        }
        let call = self.calls.values().find(|(_, batch)| batch.iter().any(|(other, _)| *other == place));
        call.map_or(u64::MAX, |(since, _)| since + self.replace_after_ms)
    }

    /// Stores what came of a call: the answers in the order of its asks, or `None` when it failed.
    pub fn finish(&mut self, call: u64, answers: Option<Vec<R>>, now: u64) {
        self.answers.retain(|_, (since, _)| now < *since + FORGOTTEN_MS);
        let Some((_, batch)) = self.calls.remove(&call) else { return };
        let mut answers = answers.unwrap_or_default().into_iter();
        for (place, _) in batch {
            self.answers.insert(place, (now, answers.next()));
        }
    }

    fn replace_vanished(&mut self, now: u64) {
        let vanished: Vec<u64> = self
            .calls
            .iter()
            .filter(|(_, (since, _))| now >= *since + self.replace_after_ms)
            .map(|(call, _)| *call)
            .collect();
        for call in vanished {
            if let Some((_, batch)) = self.calls.remove(&call) {
                self.waiting.extend(batch);
            }
        }
    }
}
