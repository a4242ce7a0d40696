//! The articles' ways of dividing slots, as they give them. `worker_slots` and `adapted_worker_slots` admit by them;
//! every strategy falls back on them when its counters do not answer.

/// An owner's part of the slots by a ratio, to the nearest whole slot: 10 % of 150 is 15, 75 % of 150 is 113
/// (2023 article, San Jose and Delhi).
pub fn share_of_slots(slots: i64, ratio: f64) -> i64 {
    (slots.max(0) as f64 * ratio.clamp(0.0, 1.0)).round() as i64
}

/// Splits slots by the users that each data center brought in the minute that is taken as history; what is left by
/// rounding goes to the largest remainders, so the parts add up (2021 article: 500/500, 450/550, and 20 eligible
/// slots as 5 and 15).
pub fn split_slots(slots: i64, users: &[u64]) -> Vec<i64> {
    let total: u64 = users.iter().sum();
    if total == 0 || slots <= 0 {
        return vec![0; users.len()];
    }
    let exact = |users: u64| i128::from(slots) * i128::from(users);
    let mut parts: Vec<i64> = users.iter().map(|users| (exact(*users) / i128::from(total)) as i64).collect();
    let mut left = slots - parts.iter().sum::<i64>();
    let mut by_remainder: Vec<usize> = (0..users.len()).collect();
    by_remainder.sort_by_key(|index| {
        std::cmp::Reverse(users.get(*index).map_or(0, |users| exact(*users) % i128::from(total)))
    });
    for index in by_remainder {
        if left == 0 {
            break;
        }
        if let Some(part) = parts.get_mut(index) {
            *part += 1;
            left -= 1;
        }
    }
    parts
}

/// How many users one worker may let in: its part of the colo's slots plus its part of the Anywhere slots
/// (2023 article: 15 slots / 3 workers + 113 / 10 = 5 + 11 = 16). Worker counts below 1 count as 1.
pub fn worker_slots(colo_slots: i64, colo_workers: f64, anywhere_slots: i64, all_workers: f64) -> i64 {
    let part = |slots: i64, workers: f64| (slots.max(0) as f64 / workers.max(1.0)).floor() as i64;
    part(colo_slots, colo_workers) + part(anywhere_slots, all_workers)
}

/// The worker count times `utilisation ^ curve_factor` (2023 article: 10 workers at 25 % and factor 1 are 2.5).
/// Utilisation is clamped to 0..=1.
pub fn adapted_worker_count(workers: u32, utilisation: f64, curve_factor: f64) -> f64 {
    f64::from(workers) * utilisation.clamp(0.0, 1.0).powf(curve_factor)
}

/// [`worker_slots`] with adapted worker counts (2023 article: 113 / 2.5 is about 45).
pub fn adapted_worker_slots(
    colo_slots: i64,
    colo_workers: u32,
    anywhere_slots: i64,
    all_workers: u32,
    utilisation: f64,
    curve_factor: f64,
) -> i64 {
    worker_slots(
        colo_slots,
        adapted_worker_count(colo_workers, utilisation, curve_factor),
        anywhere_slots,
        adapted_worker_count(all_workers, utilisation, curve_factor),
    )
}

/// Gives the slots to the oldest buckets first: for each bucket's waiting users (oldest first) how many may enter
/// (2021 article: 52 slots for 2, 50 and 60 waiting users are 2, 50 and 0).
pub fn eligible_slots(slots: i64, waiting: &[u64]) -> Vec<u64> {
    let mut left = slots.max(0) as u64;
    waiting
        .iter()
        .map(|users| {
            let eligible = left.min(*users);
            left -= eligible;
            eligible
        })
        .collect()
}
