//! One call for many visitors: the asks of a worker, gathered for 20 ms where they are many.
//!
//! In a Worker no request may await another request's promise. So one request leads, calls for all who wait and stores
//! their answers; the others poll by timers of their own. A leader that vanishes is replaced.

use std::collections::BTreeMap;

use litemap::LiteMap;

/// The shortest time between two calls, in milliseconds.
pub const PACE_MS: u64 = 20;
/// The longest, where the object has too much to do, in milliseconds: visitors wait for it.
pub const LONGEST_PACE_MS: u64 = 500;
/// How much sooner than that calls may come after a pause while nobody waits, in milliseconds: six of them. Visitors do not come
/// evenly, and fewer than fifty a second need not wait for each other.
const BURST_MS: u64 = 5 * PACE_MS;
/// The most calls without an answer. In a crowd's first moment all callers come at once, and each must hear of the object's pace
/// before it goes on.
const MOST_UNDER_WAY: usize = 3;
/// For how long a call without an answer counts as one of these, in milliseconds: its leader may have gone, and nobody else is
/// held up by that.
const UNDER_WAY_MS: u64 = 100;
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
    /// When the next call is due if all are a pace apart, in milliseconds since the epoch.
    due: u64,
    replace_after_ms: u64,
    pace_ms: u64,
    waiting: BTreeMap<u64, A>,
    calls: LiteMap<u64, (u64, BTreeMap<u64, A>)>,
    answers: LiteMap<u64, (u64, Option<R>)>,
}

impl<A: Clone, R: Clone> Batcher<A, R> {
    /// An empty batcher. A leader that has not come back after `replace_after_ms` is replaced.
    pub fn new(replace_after_ms: u64) -> Self {
        Self {
            next: 1,
            due: 0,
            replace_after_ms,
            pace_ms: PACE_MS,
            waiting: BTreeMap::new(),
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
        self.waiting.insert(place, ask);
        Some(place)
    }

    /// What the request with this place does at `now`. `evenly`: calls are a pace apart after a pause too, as where people wait, who
    /// are judged together, in their order.
    pub fn poll(&mut self, place: u64, evenly: bool, now: u64) -> Progress<A, R> {
        if let Some(answer) = self.answer(place) {
            return Progress::Done(answer);
        }
        self.replace_vanished(now);
        // Each call has one leader, and it is one of those whom the call is for.
        if now < self.may_call_at(evenly) {
            return Progress::Later;
        }
        let Some(mine) = self.waiting.remove(&place) else { return Progress::Later };
        self.due = self.due.max(now) + self.pace_ms;
        let mut batch = BTreeMap::from([(place, mine)]);
        while batch.len() < BATCH
            && let Some((place, ask)) = self.waiting.pop_first()
        {
            batch.insert(place, ask);
        }
        let call = self.next;
        self.next += 1;
        let asks = batch.iter().map(|(place, ask)| (*place, ask.clone())).collect();
        self.calls.insert(call, (now, batch));
        Progress::Lead(call, asks)
    }

    /// The answer for a place, if there is one; `None` in it: the call failed.
    pub fn answer(&mut self, place: u64) -> Option<Option<R>> {
        self.answers.remove(&place).map(|(_, answer)| answer)
    }

    /// When a place has something to do though no answer comes, in milliseconds since the epoch: to lead, or to replace a
    /// leader that has vanished. `evenly`: see [`Batcher::poll`].
    pub fn poll_at(&self, place: u64, evenly: bool) -> u64 {
        if self.waiting.contains_key(&place) {
            return self.may_call_at(evenly);
        }
        let call = self.calls.values().find(|(_, batch)| batch.contains_key(&place));
        call.map_or(u64::MAX, |(since, _)| since + self.replace_after_ms)
    }

    /// How far apart calls are to be, in milliseconds.
    pub fn pace(&mut self, pace_ms: u64) {
        self.pace_ms = pace_ms.clamp(PACE_MS, LONGEST_PACE_MS);
    }

    /// Stores what came of a call: the answers in the order of its asks, or `None` when it failed.
    pub fn finish(&mut self, call: u64, answers: Option<Vec<R>>, now: u64) {
        self.answers.retain(|_, (since, _)| now < *since + FORGOTTEN_MS);
        let Some((_, batch)) = self.calls.remove(&call) else { return };
        if answers.is_none() {
            // It may have too much to do.
            self.pace(2 * self.pace_ms);
        }
        let mut answers = answers.unwrap_or_default().into_iter();
        for place in batch.into_keys() {
            self.answers.insert(place, (now, answers.next()));
        }
    }

    /// When the next call may come, in milliseconds since the epoch.
    fn may_call_at(&self, evenly: bool) -> u64 {
        // An object with a longer pace has enough to do.
        let burst_ms = if evenly || self.pace_ms > PACE_MS { 0 } else { BURST_MS };
        let due = self.due.saturating_sub(burst_ms);
        // The oldest of as many calls as may be under way.
        let oldest = self.calls.values().rev().nth(MOST_UNDER_WAY - 1);
        oldest.map_or(due, |(since, _)| due.max(since + UNDER_WAY_MS))
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
