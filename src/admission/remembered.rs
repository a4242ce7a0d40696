//! What was done for which ticket, remembered for a while and within a bound.

use crate::hash::ByHash;

/// A ticket's id is random, and sealed: nobody can choose ids that collide. So it is its own hash.
type ById<T> = ByHash<T>;

/// A bounded memory by ticket id, in two generations: when the young one is full or old enough, it becomes the old
/// one, and what the old one held is forgotten. So an entry lives at least `lifetime_ms` unless more than `capacity`
/// newer ones push it out, and at most `2 × capacity` entries are held.
#[derive(Debug, Clone)]
pub struct Remembered<T> {
    young: ById<T>,
    old: ById<T>,
    turned_at: u64,
    lifetime_ms: u64,
    capacity: usize,
}

impl<T: Copy> Remembered<T> {
    /// An empty memory. `lifetime_ms` in milliseconds, `capacity` in entries per generation.
    pub fn new(lifetime_ms: u64, capacity: usize) -> Self {
        Self { young: ById::default(), old: ById::default(), turned_at: 0, lifetime_ms, capacity }
    }

    /// What is remembered of a ticket.
    pub fn get(&self, id: u64) -> Option<T> {
        self.young.get(&id).or_else(|| self.old.get(&id)).copied()
    }

    /// Remembers a value for a ticket, in place of an earlier one.
    pub fn put(&mut self, id: u64, value: T, now: u64) {
        if self.young.len() >= self.capacity || now >= self.turned_at.saturating_add(self.lifetime_ms) {
            self.old = std::mem::take(&mut self.young);
            self.turned_at = now;
        }
        self.young.insert(id, value);
    }

    /// How many entries are held, at most twice the capacity.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }
}
