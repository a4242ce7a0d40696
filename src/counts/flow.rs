//! How fast users leave the room, and the queue: what the estimate of a wait needs to know.

use std::collections::VecDeque;

use super::Counts;
use crate::room::Room;
use crate::time::{minute_of, start_of};

/// What is older counts less by this with every minute.
const KEPT: f64 = 0.9;
/// A minute is looked at this long after its end at the latest, in milliseconds, though a colo has not reported it.
const LATEST_MS: u64 = 60_000;
/// In a steady minute the active users change by at most one in this many.
const STEADY_PART: i64 = 20;
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
    /// The last minute that was counted, and the users active at its end.
    last: Option<(u32, i64)>,
    left: f64,
    active_minutes: f64,
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
        if self.last.is_none_or(|(minute, _)| ended > minute) {
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
        if let Some((minute, before)) = self.last
            && ended == minute + 1
            // Whoever has just come cannot have left yet: minutes in which the room fills or empties would mislead.
            && (active - before).abs() * STEADY_PART <= before
        {
            let left = (admitted(ended) - (active - before)).max(0) as f64;
            self.left = self.left * KEPT + left;
            self.active_minutes = self.active_minutes * KEPT + (before + active).max(0) as f64 / 2.0;
        }
        self.last = Some((ended, active));
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
        while self.looks.get(1).is_some_and(|(at, _)| at + due <= now) {
            self.looks.pop_front();
        }
        let Some((at, waited)) = self.looks.front().copied() else { return };
        let missing_ms = counted.saturating_sub(due);
        if since > 2 * LOOK_MS || at + due > now || missing_ms < LOOK_MS {
            return;
        }
        let missed = (all.waiting_since(now.saturating_sub(counted)) - waiting).max(0) as f64;
        self.gave_up = self.gave_up * KEPT_PART + missed * since as f64 / missing_ms as f64;
        self.waiting_seconds =
            self.waiting_seconds * KEPT_PART + waited.max(0) as f64 * since as f64 / 1_000.0;
    }

    /// Users who would leave a room with `active` active users in ten minutes, as far as is known.
    pub fn leaving(&self, active: i64) -> u32 {
        if self.active_minutes < 1.0 {
            return 0;
        }
        (self.left / self.active_minutes * 10.0 * active.max(0) as f64) as u32
    }

    /// How many of a million waiting users give up in a second, as far as is known.
    pub fn giving_up(&self) -> u32 {
        let gave_up = self.gave_up + ASSUMED_SECONDS / PATIENCE_SECONDS;
        (gave_up / (self.waiting_seconds + ASSUMED_SECONDS) * 1e6) as u32
    }
}
