//! What happens when: a timing wheel of milliseconds, in which things that happen at one time keep their order.

use std::collections::BTreeMap;

/// Milliseconds on the wheel; what is further away waits beside it.
const WHEEL: u64 = 1 << 17;

/// Events by time. The same calls give the same order.
#[derive(Debug)]
pub struct Clockwork<E> {
    now: u64,
    wheel: Vec<Vec<E>>,
    /// Events of the running millisecond, the next one last.
    running: Vec<E>,
    later: BTreeMap<u64, Vec<E>>,
    pending: u64,
}

impl<E> Clockwork<E> {
    /// An empty clockwork at a time.
    pub fn new(now: u64) -> Self {
        let wheel = std::iter::repeat_with(Vec::new).take(WHEEL as usize).collect();
        Self { now, wheel, running: Vec::new(), later: BTreeMap::new(), pending: 0 }
    }

    /// The time of the event that runs now.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Lets an event happen at a time; what should have happened before happens now.
    pub fn at(&mut self, time: u64, event: E) {
        let time = time.max(self.now);
        self.pending += 1;
        if time < self.now + WHEEL {
            self.wheel[(time % WHEEL) as usize].push(event);
        } else {
            self.later.entry(time).or_default().push(event);
        }
    }

    /// The next event before `end`, if there is one. Time goes on to it.
    pub fn next(&mut self, end: u64) -> Option<E> {
        loop {
            if let Some(event) = self.running.pop() {
                self.pending -= 1;
                return Some(event);
            }
            let slot = &mut self.wheel[(self.now % WHEEL) as usize];
            if !slot.is_empty() {
                // The emptied list goes back to the wheel: nothing is allocated anew.
                std::mem::swap(slot, &mut self.running);
                self.running.reverse();
                continue;
            }
            if self.now + 1 >= end || self.pending == 0 {
                return None;
            }
            self.now += 1;
            // Once around, what has come near goes onto the wheel.
            if self.now.is_multiple_of(WHEEL)
                || self.later.first_key_value().is_some_and(|(time, _)| *time <= self.now)
            {
                let far = self.later.split_off(&(self.now + WHEEL));
                for (time, events) in std::mem::replace(&mut self.later, far) {
                    self.wheel[(time % WHEEL) as usize].extend(events);
                }
            }
        }
    }
}
