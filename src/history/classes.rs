//! Classes of times, from a second to a day: each is a fifth wider than the one before.

use crate::slots::SlotCounts;

/// Upper bounds of the classes, in milliseconds; the last class has none.
const BOUNDS_MS: [u32; CLASSES - 1] = bounds();

/// How many classes there are.
pub const CLASSES: usize = 64;

/// The shortest time that has a class of its own, in milliseconds.
const SHORTEST_MS: u32 = 1_000;

const fn bounds() -> [u32; CLASSES - 1] {
    let mut bounds = [SHORTEST_MS; CLASSES - 1];
    let mut class = 1;
    while class < CLASSES - 1 {
        // In 64 bits: six times the longest is more than 32 bits hold.
        #[allow(clippy::indexing_slicing)]
        {
            bounds[class] = (bounds[class - 1] as u64 * 6 / 5) as u32;
        }
        class += 1;
    }
    bounds
}

/// The class of a time in milliseconds.
pub fn class_of(ms: u64) -> u8 {
    BOUNDS_MS.partition_point(|bound| u64::from(*bound) <= ms) as u8
}

/// The upper bound of a class, in milliseconds; `None`: it has none.
pub fn bound_ms(class: u8) -> Option<u32> {
    BOUNDS_MS.get(usize::from(class)).copied()
}

/// The middle of a class, in milliseconds; of the last one its lower bound.
pub(super) fn middle_ms(class: u8) -> f64 {
    let low = class.checked_sub(1).and_then(bound_ms).map_or(0.0, f64::from);
    low + (bound_ms(class).map_or(low, f64::from) - low) / 2.0
}

/// The time that a part (0 to 1) of those counted stayed below, in milliseconds, between the bounds of its class; `None`
/// when nobody was counted. `counts` holds them by `base` plus their class.
pub fn quantile_ms(counts: &SlotCounts, base: u64, part: f64) -> Option<f64> {
    let classes = || (0..CLASSES as u64).map(|class| (class as u8, counts.get(base + class).max(0) as f64));
    let all: f64 = classes().map(|(_, count)| count).sum();
    let rank = all * part;
    let mut below = 0.0;
    for (class, count) in classes().filter(|(_, count)| *count > 0.0) {
        if below + count >= rank {
            let low = class.checked_sub(1).and_then(bound_ms).map_or(0.0, f64::from);
            let high = bound_ms(class).map_or(low, f64::from);
            return Some(low + (high - low) * ((rank - below) / count).clamp(0.0, 1.0));
        }
        below += count;
    }
    None
}
