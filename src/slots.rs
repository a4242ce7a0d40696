//! Signed counts by slot of time.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

/// How many users were last seen in which slot. One colo's entry may be negative, when a user moved here from
/// another colo's slot; sums over all colos are right.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct SlotCounts {
    counts: LiteMap<u64, i64>,
}

/// The largest count that is read, either way: far more than there are users. Sums over all slots and colos fit then, whatever a
/// report says.
const MOST: i64 = 1 << 40;

/// On the wire: the first slot, then pairs of (slots skipped, count).
#[derive(Serialize, Deserialize)]
struct Wire(u64, Vec<(u32, i64)>);

impl From<Wire> for SlotCounts {
    fn from(Wire(first, pairs): Wire) -> Self {
        let mut slot = first;
        let mut counts = LiteMap::new();
        for (skip, count) in pairs {
            slot = slot.saturating_add(u64::from(skip));
            counts.insert(slot, count.clamp(-MOST, MOST));
        }
        Self { counts }
    }
}

impl From<SlotCounts> for Wire {
    fn from(slots: SlotCounts) -> Self {
        let first = slots.counts.first().map_or(0, |(slot, _)| *slot);
        let mut last = first;
        let pairs = slots
            .counts
            .iter()
            .map(|(&slot, &count)| {
                let skip = (slot - last) as u32;
                last = slot;
                (skip, count)
            })
            .collect();
        Self(first, pairs)
    }
}

impl SlotCounts {
    /// Adds to a slot.
    pub fn add(&mut self, slot: u64, count: i64) {
        let now = self.get(slot) + count;
        if now == 0 {
            self.counts.remove(&slot);
        } else {
            self.counts.insert(slot, now);
        }
    }

    /// Adds (`sign` 1) or takes off (`sign` -1) another's counts.
    pub fn merge(&mut self, other: &Self, sign: i64) {
        for (slot, count) in &other.counts {
            self.add(*slot, count * sign);
        }
    }

    /// Takes off the one and adds the other: what is the same in both costs nothing.
    pub fn replace(&mut self, old: &Self, new: &Self) {
        let mut old = old.counts.iter().peekable();
        for (&slot, &count) in &new.counts {
            while let Some((&gone, &count)) = old.next_if(|(other, _)| **other < slot) {
                self.add(gone, -count);
            }
            let before = old.next_if(|(other, _)| **other == slot).map_or(0, |(_, before)| *before);
            if count != before {
                self.add(slot, count - before);
            }
        }
        for (&gone, &count) in old {
            self.add(gone, -count);
        }
    }

    /// The count of a slot.
    pub fn get(&self, slot: u64) -> i64 {
        self.counts.get(&slot).copied().unwrap_or(0)
    }

    /// The sum of all counts from a slot on.
    pub fn since(&self, slot: u64) -> i64 {
        self.range_from(slot).map(|(_, count)| count).sum()
    }

    /// The counts from a slot on, newest first.
    pub fn range_from(&self, slot: u64) -> impl Iterator<Item = (u64, i64)> {
        self.counts
            .iter()
            .rev()
            .take_while(move |(other, _)| **other >= slot)
            .map(|(slot, count)| (*slot, *count))
    }

    /// Forgets what is before a slot.
    pub fn forget_before(&mut self, slot: u64) {
        // Asked for with every report, and there is seldom anything to forget.
        if self.counts.first().is_none_or(|(first, _)| *first >= slot) {
            return;
        }
        self.counts.retain(|other, _| *other >= slot);
    }

    /// Counts groups of slots, if all of a group are before a slot, in the last one of the group; `last_of` says which one that is.
    pub fn group_before(&mut self, slot: u64, last_of: impl Fn(u64) -> u64) {
        let before = self.counts.iter().take_while(|(other, _)| **other < slot);
        let moves = before.map(|(other, count)| (*other, last_of(*other), *count));
        let moves: Vec<_> = moves.filter(|(from, to, _)| from != to && *to < slot).collect();
        for (from, to, count) in moves {
            self.add(from, -count);
            self.add(to, count);
        }
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}
