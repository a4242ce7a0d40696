//! The article's smarter adaptive limiter as it reads, to compare `origin_guard` with. In the simulator only.
//!
//! A queue in the order of arrival. Work that times out at position p sets the window to p − 10; ten successes add one;
//! work whose position is beyond the window by more than 10 is discarded when its turn comes. Whether somebody still
//! waits is known only when the answer is written.

use std::collections::VecDeque;

use anteroom::origin::{Arrival, Passage, Turn};

/// By how much a window shrinks, and may be exceeded.
const STEP: u32 = 10;
/// Successes in a row that add one.
const RUN: u32 = 10;

/// The article's limiter, of one worker.
#[derive(Debug, Clone)]
pub struct Literal {
    window: u32,
    min: u32,
    max: u32,
    at_once: u32,
    successes: u32,
    next: u64,
    at_origin: Vec<(u64, u32)>,
    line: VecDeque<(u64, u32)>,
}

impl Literal {
    /// A limiter with the smallest window. `at_once` requests are worked on at once; `u32::MAX`: nobody stands in line.
    pub fn new(min: u32, max: u32, at_once: u32) -> Self {
        let (at_origin, line) = (Vec::new(), VecDeque::new());
        Self { window: min, min, max, at_once, successes: 0, next: 1, at_origin, line }
    }

    /// How many requests may be in line or worked on.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// A request arrives.
    pub fn arrive(&mut self) -> Arrival {
        let in_flight = (self.at_origin.len() + self.line.len()) as u32;
        if in_flight >= self.window {
            return Arrival::Refused;
        }
        let one = (self.next, in_flight + 1);
        let passage = Passage::from_number(self.next as f64);
        self.next += 1;
        if self.line.is_empty() && self.at_origin.len() < self.at_once as usize {
            self.at_origin.push(one);
            return Arrival::Go(passage);
        }
        self.line.push_back(one);
        Arrival::InLine(passage)
    }

    /// What a request in line does next.
    pub fn turn(&mut self, passage: Passage) -> Turn {
        let number = passage.number() as u64;
        let Some(place) = self.line.iter().position(|one| one.0 == number) else { return Turn::Dropped };
        if place > 0 || self.at_origin.len() >= self.at_once as usize {
            return Turn::Later;
        }
        let Some(one) = self.line.pop_front() else { return Turn::Dropped };
        if one.1 > self.window + STEP {
            return Turn::Dropped;
        }
        self.at_origin.push(one);
        Turn::Go
    }

    /// The work of a request is done; `in_time`: and its answer could be written.
    pub fn finished(&mut self, passage: Passage, in_time: bool) {
        let number = passage.number() as u64;
        let Some(place) = self.at_origin.iter().position(|one| one.0 == number) else { return };
        let (_, position) = self.at_origin.swap_remove(place);
        if in_time {
            self.successes += 1;
            if self.successes.is_multiple_of(RUN) {
                self.window = (self.window + 1).min(self.max);
            }
            return;
        }
        let next = position.saturating_sub(STEP);
        if next < self.window {
            self.window = next.max(self.min);
        }
    }
}
