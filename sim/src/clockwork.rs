//! What happens when: timing wheels of milliseconds, in which things that happen at one time keep their order.

use std::collections::BTreeMap;

/// Milliseconds on the near wheel, one slot each.
const NEAR: u64 = 128;
/// Slots of the far wheel, each as long as the near wheel; what is further away waits beside it.
const FAR: u64 = 1_024;

/// Events by time. The same calls give the same order.
#[derive(Debug)]
pub struct Clockwork<E> {
    now: u64,
    /// The milliseconds of this stretch: few enough to stay in the processor's cache.
    near: Vec<Vec<E>>,
    /// The stretches after it, each in the order in which events were set.
    far: Vec<Vec<(u64, E)>>,
    later: BTreeMap<u64, Vec<(u64, E)>>,
    /// Events of the running millisecond, the next one last.
    running: Vec<E>,
    /// Whether the running millisecond has just begun.
    begun: bool,
    pending: u64,
}

impl<E> Clockwork<E> {
    /// An empty clockwork at a time.
    pub fn new(now: u64) -> Self {
        Self {
            now,
            near: std::iter::repeat_with(Vec::new).take(NEAR as usize).collect(),
            far: std::iter::repeat_with(Vec::new).take(FAR as usize).collect(),
            later: BTreeMap::new(),
            running: Vec::new(),
            begun: false,
            pending: 0,
        }
    }

    /// The time of the event that runs now.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Lets an event happen at a time; what should have happened before happens now.
    pub fn at(&mut self, time: u64, event: E) {
        let time = time.max(self.now);
        let stretch = time / NEAR;
        let here = self.now / NEAR;
        self.pending += 1;
        if stretch == here {
            self.near[(time % NEAR) as usize].push(event);
        } else if stretch < here + FAR {
            self.far[(stretch % FAR) as usize].push((time, event));
        } else {
            self.later.entry(stretch).or_default().push((time, event));
        }
    }

    /// The next event before `end`, if there is one. Time goes on to it.
    pub fn next(&mut self, end: u64) -> Option<E> {
        loop {
            if let Some(event) = self.running.pop() {
                self.pending -= 1;
                return Some(event);
            }
            let slot = &mut self.near[(self.now % NEAR) as usize];
            if !slot.is_empty() {
                // The emptied list goes back to the wheel: nothing is allocated anew.
                std::mem::swap(slot, &mut self.running);
                self.running.reverse();
                self.begun = true;
                continue;
            }
            if self.now + 1 >= end || self.pending == 0 {
                return None;
            }
            self.now += 1;
            if self.now.is_multiple_of(NEAR) {
                self.begin_stretch();
            }
        }
    }

    /// When a millisecond has just begun, its events but for the one that came with [`Clockwork::next`]; else nothing.
    pub fn begun(&mut self) -> &[E] {
        if std::mem::take(&mut self.begun) { &self.running } else { &[] }
    }

    /// Sorts the events of the stretch that begins into its milliseconds.
    fn begin_stretch(&mut self) {
        let stretch = self.now / NEAR;
        // What waits beside the wheel was set before anything that is on it: it had further to go.
        if let Some(events) = self.later.remove(&stretch) {
            for (time, event) in events {
                self.near[(time % NEAR) as usize].push(event);
            }
        }
        let slot = (stretch % FAR) as usize;
        let mut events = std::mem::take(&mut self.far[slot]);
        for (time, event) in events.drain(..) {
            self.near[(time % NEAR) as usize].push(event);
        }
        self.far[slot] = events;
    }
}
