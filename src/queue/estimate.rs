//! How long a visitor will wait.

use super::{MINUTE_MS, StateKey, start_of};
use crate::config::Room;

/// What comes in so many milliseconds says how full a bucket will be; less time says too little.
const LEAST_OF_MINUTE_MS: u64 = 5_000;
/// However slowly users seem to leave, it is not slower than this part of how they enter.
const LEAST_OF_ENTERING: f64 = 0.3;
/// Nobody checks in more often than so many times per refresh interval.
const SOONEST_PART: f64 = 5.0;

/// The estimate as the 2021 article gives it: users ahead divided by users let in per minute. 60 ahead at 30 a minute
/// are 2 minutes. `None` when nobody is let in.
pub fn estimated_minutes(ahead: i64, entering_per_minute: f64) -> Option<f64> {
    (entering_per_minute > 0.0).then(|| ahead.max(0) as f64 / entering_per_minute)
}

/// Seconds that a visitor of a bucket will wait from `time` (Global's clock) on. The article's estimate, with four
/// corrections: half of the visitor's own bucket is ahead too; slots that are free already need no user to leave; the
/// rate is that at which users leave, not the burst that filled the room; and some of those ahead give up. `None` when
/// it cannot be known.
pub fn estimated_wait_seconds(room: &Room, key: &StateKey, bucket: u32, time: u64) -> Option<u64> {
    // Within a bucket the order is by chance. One that still fills will be as full as it has begun to be.
    let own = key.waiting_in(bucket);
    let into = time.saturating_sub(start_of(bucket)).clamp(LEAST_OF_MINUTE_MS, MINUTE_MS);
    let own = own * MINUTE_MS as i64 / into as i64;
    let ahead = key.ahead_of(bucket) + own / 2;
    wait_seconds(room, key, ahead, time).map(|seconds| seconds.ceil() as u64)
}

/// Seconds until so many users have entered and there is a slot for one more.
fn wait_seconds(room: &Room, key: &StateKey, ahead: i64, time: u64) -> Option<f64> {
    if room.queue_all {
        return None;
    }
    let limit = f64::from(room.new_users_per_minute);
    let entering = f64::from(key.entering) / 10.0;
    // How fast users leave is known from the last minutes; before that, from how fast they enter and whose session
    // seems to end.
    let leaving = match key.leaving {
        0 => entering.max(f64::from(key.expiring_minute)),
        leaving => (f64::from(leaving) / 10.0).max(entering * LEAST_OF_ENTERING),
    };
    let free = i64::from(room.total_active_users) - key.active_at(time);
    // The visitor needs a slot too.
    let to_leave = ahead + 1 - free.max(0);
    let by_limit = estimated_minutes(ahead, limit)?;
    let minutes =
        if to_leave > 0 { estimated_minutes(to_leave, leaving.min(limit))?.max(by_limit) } else { by_limit };
    let seconds = minutes * 60.0;
    // Some of those ahead give up: the queue melts while it moves.
    let melting = f64::from(key.giving_up) / 1e6;
    Some(if melting > 0.0 { (seconds * melting).ln_1p() / melting } else { seconds })
}

/// In how many seconds a visitor who waits should check in again. Usually after the room's refresh interval, a tenth
/// more or less; sooner when it will be the turn of the visitor's bucket before that, at a moment drawn from the time
/// that the bucket will take. So slots are taken when they are free, and nobody asks long before. `random` is from 0
/// (inclusive) to 1.
pub fn next_check_in_seconds(
    room: &Room,
    key: Option<&StateKey>,
    bucket: u32,
    time: u64,
    random: f64,
) -> u32 {
    let refresh = f64::from(room.refresh_interval_seconds);
    let usual = refresh * (0.9 + 0.2 * random);
    let turn = key.and_then(|key| {
        let ahead = key.ahead_of(bucket);
        let begin = wait_seconds(room, key, ahead, time)?;
        let end = wait_seconds(room, key, ahead + key.waiting_in(bucket), time)?;
        Some(begin + (end - begin) * random)
    });
    let soonest = refresh / SOONEST_PART;
    turn.map_or(usual, |turn| turn.max(soonest).min(usual)).round().max(1.0) as u32
}

/// Users who will probably enter before a visitor of a bucket: all older buckets, and half of the visitor's own.
pub fn likely_ahead(key: &StateKey, bucket: u32) -> i64 {
    key.ahead_of(bucket) + key.waiting_in(bucket) / 2
}
