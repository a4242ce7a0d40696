//! How fast users leave the room, and the queue: what the estimate of a wait needs to know.

use std::collections::VecDeque;

use super::Counts;
use crate::room::Room;
use crate::time::{minute_of, start_of};

/// What is older counts less by this with every minute.
const KEPT: f64 = 0.9;
/// A minute is looked at this long after its end at the latest, in milliseconds, though a colo has not reported it.
const LATEST_MS: u64 = 60_000;
/// How long users stay is told by so many who have left at the least.
const LEAST_LEFT: f64 = 10.0;
/// Nobody stays for less than this part of a session on average.
const SHORTEST_STAY: f64 = 0.1;
/// Time between two looks at the queue, in milliseconds.
const LOOK_MS: u64 = 5_000;
/// What is older counts less by this with every update.
const KEPT_PART: f64 = 0.99;
/// Whoever is this late with a check-in, in milliseconds, has given up; reports are not slower.
const LATE_MS: u64 = 5_000;
/// Until it is measured, waiting users are taken to give up after this many seconds on average.
const PATIENCE_SECONDS: f64 = 600.0;
/// How much [`PATIENCE_SECONDS`] weighs: as if this many seconds of waiting had been measured at that rate.
const ASSUMED_SECONDS: f64 = 3_000.0;

/// Sums over the last minutes, the latest ones most.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// The last minute that was counted, the users active at its end, and those of them who came more than a session
    /// before that: nobody else can have left, unless the origin has ended the session.
    last: Option<(u32, i64, i64)>,
    left: f64,
    /// User minutes of those who came more than a session before.
    long_minutes: f64,
    /// When the queue was looked at, and how many waited.
    looks: VecDeque<(u64, i64)>,
    gave_up: f64,
    waiting_seconds: f64,
}

impl Flow {
    /// Looks at all colos' counts, if it is time to. They hold all that happened before `covered`.
    pub fn update(&mut self, room: &Room, all: &Counts, covered: u64, now: u64) {
        let covered = covered.max(now.saturating_sub(LATEST_MS));
        let ended = minute_of(covered).saturating_sub(1);
        if self.last.is_none_or(|(minute, ..)| ended > minute) {
            self.count_minute(room, all, ended, now);
        }
        if self.looks.back().is_none_or(|(at, _)| now >= at + LOOK_MS) {
            self.count_queue(room, all, covered, now);
        }
    }

    fn count_minute(&mut self, room: &Room, all: &Counts, ended: u32, now: u64) {
        let admitted = |minute: u32| all.admitted_in(minute) + all.unnumbered_in(minute);
        // Who has come since the minute ended does not belong to it.
        let since: i64 = (ended + 1..=minute_of(now) + 1).map(admitted).sum();
        let active = all.active_at(room, start_of(ended + 1)) - since;
        let lately: i64 = (0..room.session_duration).map(|ago| admitted(ended.saturating_sub(ago))).sum();
        let long = active - lately;
        if let Some((minute, before, long_before)) = self.last
            && ended == minute + 1
        {
            let left = (admitted(ended) - (active - before)).max(0) as f64;
            self.left = self.left * KEPT + left;
            self.long_minutes = self.long_minutes * KEPT + (long_before + long) as f64 / 2.0;
        }
        self.last = Some((ended, active, long));
    }

    fn count_queue(&mut self, room: &Room, all: &Counts, covered: u64, now: u64) {
        let since = self.looks.back().map_or(0, |(at, _)| now - at);
        // Who has checked in later than a colo has reported is not missed.
        let known_until = covered.min(now.saturating_sub(LATE_MS));
        let due = now - known_until + room.present_ms();
        let counted = room.waiting_ms();
        let waiting = all.waiting_since(now.saturating_sub(due));
        self.looks.push_back((now, waiting));
        // Those who are missed are some of those who were known by then.
        let away = room.refresh_interval_max_seconds.saturating_sub(room.refresh_interval_seconds);
        let known = due + u64::from(away) * 1_000;
        while self.looks.get(1).is_some_and(|(at, _)| at + known <= now) {
            self.looks.pop_front();
        }
        let Some((at, waited)) = self.looks.front().copied() else { return };
        let missing_ms = counted.saturating_sub(due);
        if since > 2 * LOOK_MS || at + known > now || missing_ms < LOOK_MS {
            return;
        }
        if waited * 2 < waiting {
            // A queue that has grown since: most of them were told to stay away for so long that they cannot be missed yet.
            return;
        }
        let missed = (all.waiting_since(now.saturating_sub(counted)) - waiting).max(0) as f64;
        self.gave_up = self.gave_up * KEPT_PART + missed * since as f64 / missing_ms as f64;
        self.waiting_seconds =
            self.waiting_seconds * KEPT_PART + waited.max(0) as f64 * since as f64 / 1_000.0;
    }

    /// Takes up what was kept of it before a restart: see [`Flow::kept`].
    pub fn recall(&mut self, (left, long_minutes): (u64, u64)) {
        (self.left, self.long_minutes) = (left as f64, long_minutes as f64);
    }

    /// What is kept of it over a restart: users who have left lately, and the minutes that users stayed beyond a session.
    pub fn kept(&self) -> (u64, u64) {
        (self.left.round() as u64, self.long_minutes.round() as u64)
    }

    /// Users who would leave a room with `active` active users in ten minutes, as far as is known. Everybody stays for a
    /// session, and whoever has done so leaves by chance; so it is known while the room fills, too.
    pub fn leaving(&self, room: &Room, active: i64) -> u32 {
        if self.left < LEAST_LEFT {
            return 0;
        }
        let session_minutes = f64::from(room.session_duration);
        let stay = (session_minutes + self.long_minutes / self.left).max(session_minutes * SHORTEST_STAY);
        (10.0 * active.max(0) as f64 / stay) as u32
    }

    /// How many of a million waiting users give up in a second, as far as is known.
    pub fn giving_up(&self) -> u32 {
        let gave_up = self.gave_up + ASSUMED_SECONDS / PATIENCE_SECONDS;
        (gave_up / (self.waiting_seconds + ASSUMED_SECONDS) * 1e6) as u32
    }
}
