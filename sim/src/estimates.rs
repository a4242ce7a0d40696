//! How wrong the waits were that visitors saw, and how wrong any would have been, whatever the algorithm.
//!
//! Whoever comes within the same second to the same bucket is told the same: the order in a bucket is by chance, and nothing else is
//! known of them. An error counts relative to the wait, so a number that is wrong by a part `e` at most is right for waits from
//! `number / (1 + e)` to `number / (1 - e)`. The most waits of a second that lie so near to each other are the most for which any number
//! can be right. If those of all seconds together are less than half, the median error is more than `e`. They are found afterwards,
//! when all waits are known: so it is a bound, not a plan.

use std::collections::BTreeMap;

use crate::measure::Histogram;

/// Waits whose ratio is less count as equal in the bound.
const STEP: f64 = 1.01;
/// The bound is not looked for beyond this many steps: an error of a half.
const STEPS: usize = 110;

/// Waits of those who came within a second: how many of them, by their logarithm in steps.
type Second = BTreeMap<usize, u64>;

/// Waits of a bucket.
#[derive(Debug, Default)]
struct Bucket {
    /// In thousandths of the wait.
    errors: Histogram,
    by_second: BTreeMap<u64, Second>,
}

/// The waits that have come to an end.
#[derive(Debug)]
pub struct Estimates {
    /// Of buckets in which somebody waits still: the lucky ones only have entered.
    open: BTreeMap<u32, Bucket>,
    /// In thousandths of the wait.
    errors: Histogram,
    /// For how many of these waits a number could be right if waits within so many steps of each other can have the same.
    most_right: [u64; STEPS + 1],
}

impl Default for Estimates {
    fn default() -> Self {
        Self { open: BTreeMap::new(), errors: Histogram::default(), most_right: [0; STEPS + 1] }
    }
}

impl Estimates {
    /// Somebody of a bucket enters who came at a time, has waited for so long and was first told another wait, all in milliseconds.
    /// The wait must not be 0.
    pub fn entered(&mut self, bucket: u32, came_at: u64, waited: u64, told: u64) {
        let bucket = self.open.entry(bucket).or_default();
        bucket.errors.add(told.abs_diff(waited) * 1_000 / waited);
        let step = ((waited as f64).ln() / STEP.ln()) as usize;
        *bucket.by_second.entry(came_at / 1_000).or_default().entry(step).or_default() += 1;
    }

    /// Nobody of a bucket waits any more.
    pub fn closed(&mut self, bucket: u32) {
        let Some(bucket) = self.open.remove(&bucket) else { return };
        self.errors.append(&bucket.errors);
        for second in bucket.by_second.values() {
            let mut most = 0;
            let within = most_within(second);
            for (right, of_second) in self.most_right.iter_mut().zip(within) {
                most = of_second.max(most);
                *right += most;
            }
        }
    }

    /// The median error, as a part of the wait. `None`: nobody has waited.
    pub fn error(&self) -> Option<f64> {
        self.errors.quantile(0.5).map(|error| error as f64 / 1_000.0)
    }

    /// The least that it can be, at most a half. `None`: nobody has waited.
    pub fn least_error(&self) -> Option<f64> {
        let waits = self.errors.all();
        let enough = self.most_right.iter().position(|right| right * 2 >= waits).unwrap_or(STEPS);
        // Waits within so many steps of each other may lie in one step more, and one less was not enough.
        let ratio = STEP.powi(enough.saturating_sub(2) as i32);
        (waits > 0).then(|| (ratio - 1.0) / (ratio + 1.0))
    }
}

/// The most waits of a second in as many neighbouring steps as the index says.
fn most_within(second: &Second) -> [u64; STEPS + 1] {
    let mut most = [0; STEPS + 1];
    for first in second.keys() {
        let mut waits = 0;
        for (step, more) in second.range(first..=&(first + STEPS - 1)) {
            waits += more;
            let within = &mut most[step - first + 1];
            *within = waits.max(*within);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(waits: impl Iterator<Item = (u64, u64)>, told: u64) -> Estimates {
        let mut estimates = Estimates::default();
        for (came_at, waited) in waits {
            estimates.entered(7, came_at, waited, told);
        }
        estimates
    }

    #[test]
    fn waits_spread_evenly_cannot_be_told_with_a_median_error_of_less_than_a_third() {
        // Two thirds of the longest are right for those between a half of it and the whole.
        let mut estimates = of((1..=2_000).map(|wait| (0, wait * 1_000)), 1_333_000);
        assert_eq!((estimates.error(), estimates.least_error()), (None, None), "some wait still");
        estimates.closed(7);
        let (error, least) = (estimates.error().unwrap(), estimates.least_error().unwrap());
        assert!((0.33..0.34).contains(&error), "{error}");
        assert!((0.32..=error).contains(&least), "{least}");
    }

    #[test]
    fn whoever_comes_in_another_second_or_bucket_can_be_told_another_wait() {
        let mut estimates = of((1..=2_000).map(|wait| (1_000 * wait, wait * 1_000)), 1_333_000);
        estimates.entered(8, 1_000, 77_000, 77_000);
        estimates.closed(7);
        estimates.closed(8);
        assert!(estimates.error().unwrap() > 0.3);
        assert!(estimates.least_error().unwrap() < f64::EPSILON);
    }

    #[test]
    fn one_number_is_not_right_for_waits_that_are_far_apart() {
        let mut estimates = of([(0, 10_000), (0, 40_000), (0, 160_000)].into_iter(), 20_000);
        estimates.closed(7);
        assert_eq!(estimates.error(), Some(0.875));
        assert!((0.49..=0.5).contains(&estimates.least_error().unwrap()));
    }
}
