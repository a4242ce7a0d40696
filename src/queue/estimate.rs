//! How long a visitor will wait.

use super::StateKey;
use crate::config::Room;

/// The estimate as the 2021 article gives it: users ahead divided by users let in per minute. 60 ahead at 30 a minute
/// are 2 minutes. `None` when nobody is let in.
pub fn estimated_minutes(ahead: i64, entering_per_minute: f64) -> Option<f64> {
    (entering_per_minute > 0.0).then(|| ahead.max(0) as f64 / entering_per_minute)
}

/// Seconds that a visitor of a bucket will wait from `time` (Global's clock) on. The article's estimate, with three
/// corrections: half of the visitor's own bucket is ahead too; slots that are free already need no user to leave;
/// and where nobody entered lately, the rate is what the coming expiries allow. `None` when it cannot be known.
pub fn estimated_wait_seconds(room: &Room, key: &StateKey, bucket: u32, time: u64) -> Option<u64> {
    if room.queue_all {
        return None;
    }
    let ahead = likely_ahead(key, bucket);
    let limit = f64::from(room.new_users_per_minute);
    let entering = f64::from(key.entering) / 10.0;
    let rate = entering.max(f64::from(key.expiring_minute)).min(limit);
    let free = i64::from(room.total_active_users) - key.active_at(time);
    // The visitor needs a slot too.
    let to_leave = ahead + 1 - free.max(0);
    let by_limit = estimated_minutes(ahead, limit)?;
    let minutes = if to_leave > 0 { estimated_minutes(to_leave, rate)?.max(by_limit) } else { by_limit };
    Some((minutes * 60.0).ceil() as u64)
}

/// Users who will probably enter before a visitor of a bucket: all older buckets, and half of the visitor's own.
pub fn likely_ahead(key: &StateKey, bucket: u32) -> i64 {
    let own: i64 =
        key.waiting.iter().find(|(other, _)| *other == bucket).map_or(0, |(_, users)| i64::from(*users));
    key.ahead_of(bucket) + own / 2
}
