//! How long a visitor will wait.

use super::{MINUTE_MS, StateKey, minute_of, start_of};
use crate::room::{QueueingMethod, Room};

/// What has come to a bucket in this time, in milliseconds, says how full it will be; a shorter one says too little.
const LEAST_OF_MINUTE_MS: u64 = 8_000;
/// A bucket counts as the one before it was, until this much time of it is known, in milliseconds.
const LIKE_THE_LAST_MS: u64 = 10_000;
/// If nobody has begun to wait for so many times as long as it took from one newcomer to the next, nobody is expected any more.
const PAUSES: i64 = 5;
/// A state holds what happened until this long before it was made, in milliseconds.
const REPORTED_MS: u64 = 2_500;
/// Until somebody has left, users are taken to stay for this many sessions on average.
const SESSIONS_STAYED: f64 = 1.5;
/// However slowly users seem to leave, it is not slower than this part of how they enter.
const LEAST_OF_ENTERING: f64 = 0.3;
/// Nobody checks in more often per refresh interval than this.
const SOONEST_PART: f64 = 7.0;
/// But the last ones of a bucket do, whose turn ends within this part of a refresh interval: there are too few of them to take
/// each slot that becomes free, and younger ones would.
const LAST_ONES_PART: f64 = 10.0;
/// See `LAST_ONES_PART`.
const LAST_ONES_WITHIN: f64 = 0.5;
/// Nobody is told to come sooner than after so many seconds.
const SOONEST_SECONDS: f64 = 2.0;
/// Everybody of a bucket is asked to come within this part of the time that its turn will take: who comes before a slot is
/// free comes again, but whoever comes late is passed by younger ones. By the simulator, the fewest are with a half or less.
const EARLY_PART: f64 = 0.5;
/// Where slots become free one by one, four of a bucket are asked to come for each.
const PART_PER_SLOT: f64 = 0.25;
/// Somebody new of whose turn nothing is known checks in there after this part of a refresh interval.
const UNKNOWN_PART: f64 = 0.25;
/// The longest that a request waits there for a slot that is foreseen to become free, in milliseconds.
const MOST_AWAITED_MS: u64 = 1_000;
/// Within a bucket the order is by chance, so each moment of its turn is as likely. By this part of the turn the wait is told where the
/// turn is short, and by the other one where it takes [`LONG_TURN`] refresh intervals. Errors are relative to the wait: of waits that
/// are spread evenly from 0, most are near two thirds of the longest.
const PART_OF_SHORT_TURN: f64 = 0.35;
/// See [`PART_OF_SHORT_TURN`].
const PART_OF_LONG_TURN: f64 = 0.6;
/// See [`PART_OF_SHORT_TURN`], in refresh intervals.
const LONG_TURN: f64 = 3.0;
/// Whoever's turn has come enters with the next check-in: after this part of a refresh interval, by what the simulator shows.
const CHECK_IN_PART: f64 = 0.4;
/// A check-in is told a tenth of a refresh interval sooner or later, in whole seconds: one after this part of it is as usual.
const USUAL_PART: f64 = 0.85;
/// Far from the front a visitor stays away for this part of the time until the middle of the bucket's turn: the queue may
/// turn out to be faster than that, and the visitor is back long before. In the turn itself many more of the bucket ask
/// than there are slots.
const AWAY_PART: f64 = 0.125;

/// The estimate as the 2021 article gives it: users ahead divided by users let in per minute. 60 ahead at 30 a minute
/// are 2 minutes. `None` when nobody is let in.
pub fn estimated_minutes(ahead: i64, entering_per_minute: f64) -> Option<f64> {
    (entering_per_minute > 0.0).then(|| ahead.max(0) as f64 / entering_per_minute)
}

/// Seconds that a visitor of a bucket will wait from `time` (Global's clock) on, who is to check in after `next_check_in` seconds. The
/// article's estimate, with six corrections: those of the visitor's own bucket who come until then may be ahead too; newcomers
/// who will not come back are not; slots that are free already need no user to leave; the rate is that at which users leave, not the
/// burst that filled the room; some of those ahead give up; and nobody enters between two check-ins. `None` when it cannot be known, or
/// not yet: of the first visitors of a queue, with nobody ahead of them, nobody can tell how many will come with them.
pub fn estimated_wait_seconds(
    room: &Room,
    key: &StateKey,
    bucket: u32,
    next_check_in: u32,
    time: u64,
) -> Option<u64> {
    if room.queueing_method == QueueingMethod::Random {
        return random_wait_seconds(room, key, time).map(|[_, median, _]| median);
    }
    let ahead = key.returning_ahead(bucket);
    let begin = wait_seconds(room, key, ahead, time)?;
    let with_those_within = |coming_ms| {
        let own = own_bucket(key, bucket, coming_ms)?;
        // The visitor is one of them.
        let takes = wait_seconds(room, key, ahead + (own - 1).max(0), time)? - begin;
        let long = (takes / (LONG_TURN * f64::from(room.refresh_interval_seconds))).min(1.0);
        let part = PART_OF_SHORT_TURN + (PART_OF_LONG_TURN - PART_OF_SHORT_TURN) * long;
        Some(seconds_to_entry(room, begin + takes * part, next_check_in))
    };
    let at_most = with_those_within(MINUTE_MS)?;
    with_those_within((at_most * 1_000.0) as u64).map(|seconds| seconds.ceil() as u64)
}

/// In how many seconds a visitor enters whose turn is foreseen in `turn` seconds: at a check-in, so not before the next one. That is it
/// if it comes as usual and not before the turn. One that was told sooner may be in vain, and then another follows.
fn seconds_to_entry(room: &Room, turn: f64, next_check_in: u32) -> f64 {
    let (refresh, next) = (f64::from(room.refresh_interval_seconds), f64::from(next_check_in));
    if turn <= next && next >= refresh * USUAL_PART {
        next
    } else {
        (turn + refresh * CHECK_IN_PART).max(refresh)
    }
}

/// Seconds within which a quarter, half and three quarters of those who wait now will be let in, where the order is
/// random. `None` when it cannot be known.
pub fn random_wait_seconds(room: &Room, key: &StateKey, time: u64) -> Option<[u64; 3]> {
    let waiting = key.waiting_users().max(1);
    let for_all = wait_seconds(room, key, waiting - 1, time)?;
    Some(wait_percentiles(waiting, waiting as f64 / for_all.max(1.0)).map(|seconds| seconds.ceil() as u64))
}

/// The 25th, 50th and 75th percentile of the wait in seconds, where `waiting` users wait and `rate` of them are drawn in
/// a second: `−waiting / rate × ln(1 − x)`.
pub fn wait_percentiles(waiting: i64, entering_per_second: f64) -> [f64; 3] {
    let mean = waiting.max(0) as f64 / entering_per_second;
    [0.25_f64, 0.5, 0.75].map(|part| -mean * (1.0 - part).ln())
}

/// How many users wait in a bucket, and will in `coming_ms` milliseconds, or when its minute is over: within a bucket the order is by
/// chance, so those who come later count too. `None` where too little is known.
fn own_bucket(key: &StateKey, bucket: u32, coming_ms: u64) -> Option<i64> {
    let own = key.returning_in(bucket);
    let known_ms = key.taken_at.saturating_sub(start_of(bucket) + REPORTED_MS);
    let to_come = MINUTE_MS.saturating_sub(known_ms).min(coming_ms) as i64;
    if to_come == 0 {
        return Some(own);
    }
    // Before anybody older waits, whoever was let in came in this minute too; who is to come will wait.
    let is_first = key.present_ahead(Some(bucket)) == 0;
    let let_in = if is_first { key.admitted_in(bucket) } else { 0 };
    let (like_last, last) = match bucket.checked_sub(1).map_or(0, |last| key.returning_in(last)) {
        // Behind a queue that nobody joined a minute ago, those ahead are known and few come now.
        0 if own == 0 || known_ms < LEAST_OF_MINUTE_MS => return (!is_first).then_some(own),
        0 => (0, 0),
        last => (LIKE_THE_LAST_MS as i64, last * LIKE_THE_LAST_MS as i64 / MINUTE_MS as i64),
    };
    let came = own + let_in + last;
    let known_ms = known_ms as i64 + like_last;
    // Whoever has come since the last report is not known yet.
    let quiet_ms = key.quiet_ms.saturating_sub(REPORTED_MS) as i64;
    if quiet_ms * came > PAUSES * known_ms {
        return Some(own);
    }
    Some(own + came * to_come / known_ms)
}

/// Seconds from `time` (Global's clock) on until `ahead` users have entered and there is a slot for one more. `None` when
/// nobody new enters.
pub fn wait_seconds(room: &Room, key: &StateKey, ahead: i64, time: u64) -> Option<f64> {
    if is_shut(room, Some(key)) { None } else { seconds_when_open(room, key, ahead, time) }
}

/// Whether nobody is let in until an operator or the origin's health says so.
fn is_shut(room: &Room, key: Option<&StateKey>) -> bool {
    room.is_closed() || key.is_some_and(|key| key.held)
}

/// Whether others would pass whoever is first in line when a room that is shut opens, at a time that nobody knows. Of a
/// prequeue it is known; of what has been shut until everybody had left it is taken to be far; and where all who wait enter
/// within a refresh interval, nobody is passed.
fn opens_to_a_crowd(room: &Room, key: &StateKey) -> bool {
    let for_all = seconds_when_open(room, key, key.waiting_users(), key.taken_at);
    let refresh = f64::from(room.refresh_interval_seconds);
    !room.prequeue && key.active > 0 && for_all.is_some_and(|seconds| seconds > refresh)
}

/// [`wait_seconds`], as if a room that is shut were opened at once: until `new_users_per_minute` lets `ahead` users and one more enter,
/// and so many have left that there are slots for them.
fn seconds_when_open(room: &Room, key: &StateKey, ahead: i64, time: u64) -> Option<f64> {
    if key.most_new(room) == 0 {
        return None;
    }
    let limit = key.most_new(room) as f64;
    let entering = f64::from(key.entering) / 10.0;
    // How fast users leave is known from the last minutes; before that, by how long they stay at the least.
    let leaving = match key.leaving {
        0 => {
            let sessions = if room.disable_session_renewal { 1.0 } else { SESSIONS_STAYED };
            key.most_active(room) as f64 / (sessions * f64::from(room.session_duration))
        }
        leaving => (f64::from(leaving) / 10.0).max(entering * LEAST_OF_ENTERING),
    };
    let free = key.most_active(room) - key.active_at(time);
    // The visitor needs a slot too.
    let to_leave = ahead + 1 - free.max(0);
    let by_leaving = if to_leave > 0 { estimated_minutes(to_leave, leaving.min(limit))? * 60.0 } else { 0.0 };
    let seconds = seconds_by_limit(room, key, ahead + 1, time).max(by_leaving);
    // Some of those ahead give up: the queue shrinks while it moves.
    let melting = f64::from(key.giving_up) / 1e6;
    Some(if melting > 0.0 { (seconds * melting).ln_1p() / melting } else { seconds })
}

/// Seconds until `users` more may have entered by `new_users_per_minute`: what is left of this minute first.
fn seconds_by_limit(room: &Room, key: &StateKey, users: i64, time: u64) -> f64 {
    let limit = key.most_new(room);
    let minute = minute_of(time);
    let left =
        (limit - key.admitted_in(minute) - if minute == key.minute { key.unnumbered } else { 0 }).max(0);
    let (waits, users) =
        if users <= left { (0, users) } else { (start_of(minute + 1).saturating_sub(time), users - left) };
    waits as f64 / 1_000.0 + users as f64 / limit as f64 * 60.0
}

/// In how many seconds a visitor who waits should check in again. Usually after the room's refresh interval, a tenth
/// more or less; sooner when it will be the turn of the visitor's bucket before that, at a moment drawn from the time
/// that the bucket will take. So slots are taken when they are free, and nobody asks long before. While nobody is let in,
/// the last ones of the oldest bucket come as soon where others would pass them, and all others as usual. Later, up to the
/// room's longest interval, while that turn is far and the limits are the usual ones; but only who is `known`, having come
/// back once: of others nobody knows whether they will. Where slots become free one by one, at the time when the one that is the
/// visitor's is foreseen, or when more of them are. `time` is Global's, in milliseconds since the epoch; `random` from 0 (inclusive) to 1.
pub fn next_check_in_seconds(
    room: &Room,
    key: Option<&StateKey>,
    bucket: u32,
    known: bool,
    time: u64,
    random: f64,
) -> u32 {
    let refresh = f64::from(room.refresh_interval_seconds);
    let jitter = 0.9 + 0.2 * random;
    let usual = refresh * jitter;
    let is_slow = frees_one_by_one(room);
    // Who has come meanwhile to a colo that has just woken up may be a crowd: its users are not counted. And somebody new who is not
    // let in knows better than a state key by which a slot is free.
    let says_when = |key: &&StateKey| {
        let is_full = || to_leave(room, key, key.present_ahead(Some(bucket))) > 0;
        if is_slow { known || is_full() } else { !key.uncounted }
    };
    let turn = key.filter(says_when).and_then(|key| {
        let ahead = key.ahead_of(bucket);
        // Those ahead have moved on since the state was made.
        let made_at = key.taken_at.min(time);
        let since = (time - made_at) as f64 / 1_000.0;
        let turn_in =
            |ahead| seconds_when_open(room, key, ahead, made_at).map(|wait| (wait - since).max(0.0));
        let begin = turn_in(ahead)?;
        let end = turn_in(ahead + key.waiting_in(bucket))?;
        let turn = if is_slow {
            let drawn = key.present_in(bucket) as f64 * PART_PER_SLOT * random;
            let ahead = key.present_ahead(Some(bucket)) + drawn as i64;
            let by_slots = foreseen_seconds(room, key, ahead, time).or_else(|| turn_in(ahead))?;
            // Who comes late leaves a slot idle; who comes a little early waits for it.
            by_slots.max(seconds_by_limit(room, key, ahead + 1, time)).floor()
        } else {
            begin + (end - begin) * EARLY_PART * random
        };
        Some((turn, f64::midpoint(begin, end), end))
    });
    let is_last = turn.is_some_and(|(.., end)| end < refresh * LAST_ONES_WITHIN);
    let soonest = refresh / if is_last || is_slow { LAST_ONES_PART } else { SOONEST_PART };
    let longest = f64::from(room.refresh_interval_max_seconds);
    // Limits that follow the origin may rise meanwhile: then a turn that seems far is not.
    let is_foreseen = known && key.is_some_and(|key| key.limits.is_none());
    let next = match turn {
        Some((turn, middle, _)) if !is_shut(room, key) => {
            let away = if is_foreseen { (middle * AWAY_PART).min(longest) } else { 0.0 };
            turn.max(soonest).max(SOONEST_SECONDS).min(usual.max(away * jitter))
        }
        Some(_) if is_last && key.is_some_and(|key| opens_to_a_crowd(room, key)) => {
            soonest.max(SOONEST_SECONDS)
        }
        // Somebody new is told more in a moment.
        None if is_slow && !known && !is_shut(room, key) => (usual * UNKNOWN_PART).max(SOONEST_SECONDS),
        _ => usual,
    };
    next.round().max(1.0) as u32
}

/// Whether slots become free more than a second apart, by the limits, if users stay for two sessions. Then each of them is one that
/// somebody must come for.
fn frees_one_by_one(room: &Room) -> bool {
    2 * room.session_ms() > u64::from(room.total_active_users) * 1_000
}

/// How many users must leave before there are slots for `ahead` users and one more.
fn to_leave(room: &Room, key: &StateKey, ahead: i64) -> i64 {
    ahead + 1 - (key.most_active(room) - key.active)
}

/// Seconds until a slot is foreseen for whoever has `ahead` users ahead, or until one may become free that is not foreseen. `None` where
/// more than one more would have to.
fn foreseen_seconds(room: &Room, key: &StateKey, ahead: i64, time: u64) -> Option<f64> {
    let to_leave = to_leave(room, key, ahead);
    let at = match key.gone_at(to_leave) {
        Ok(at) => at,
        Err((until, gone)) if to_leave == gone + 1 => until,
        Err(_) => return None,
    };
    Some(at.saturating_sub(time) as f64 / 1_000.0)
}

/// In how many milliseconds from `time` on (Global's, in milliseconds since the epoch) a slot becomes free for whoever waits in a bucket, if
/// that is within a second and slots become free one by one: then a request waits for it, and takes it at once. Else 0.
pub fn awaited_ms(room: &Room, key: &StateKey, bucket: u32, time: u64) -> u64 {
    if !frees_one_by_one(room) || room.queueing_method == QueueingMethod::Random || is_shut(room, Some(key)) {
        return 0;
    }
    let free_at = key.gone_at(to_leave(room, key, key.present_ahead(Some(bucket)))).unwrap_or(0);
    Some(free_at.saturating_sub(time)).filter(|ms| *ms <= MOST_AWAITED_MS).unwrap_or(0)
}

/// Users who will probably enter before a visitor of a bucket: all older buckets, and half of the visitor's own.
pub fn likely_ahead(key: &StateKey, bucket: u32) -> i64 {
    key.ahead_of(bucket) + key.waiting_in(bucket) / 2
}
