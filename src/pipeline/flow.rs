//! How fast users leave the room, and the queue: what the estimate of a wait needs to know.

use crate::queue::{minute_of, start_of};

/// What is older counts less by this with every minute.
const KEPT: f64 = 0.9;
/// A minute's reports are all there so long after its end, in milliseconds.
const REPORTED_MS: u64 = 4_000;

/// In a steady minute the active users change by at most one in so many.
const STEADY_PART: i64 = 20;
/// In a steady minute the queue grows by at most one in so many.
const STEADY_QUEUE_PART: i64 = 4;
/// Until it is measured, waiting users are taken to give up after so many minutes on average: as if so many waiting
/// minutes had been seen in which one in so many gave up.
const PATIENCE_MINUTES: f64 = 10.0;
/// See [`PATIENCE_MINUTES`].
const ASSUMED_MINUTES: f64 = 50.0;

/// One look at the room, once a minute.
#[derive(Debug, Clone, Copy)]
struct Look {
    minute: u32,
    active: i64,
    waiting: i64,
}

/// Sums over the last minutes, the latest ones most.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    last: Option<Look>,
    left: f64,
    active_minutes: f64,
    gave_up: f64,
    waiting_minutes: f64,
}

/// What has changed in the minute before this one.
#[derive(Debug, Clone, Copy)]
pub struct Minute {
    /// Users active at its end.
    pub active: i64,
    /// Users waiting at its end.
    pub waiting: i64,
    /// Users admitted in the last minute.
    pub entered: i64,
    /// Users who began to wait in the last minute, less those who entered in it after they had waited.
    pub queue_grew: i64,
}

impl Flow {
    /// Whether a minute has ended that is not counted yet.
    pub fn is_due(&self, now: u64) -> bool {
        let minute = minute_of(now.saturating_sub(REPORTED_MS));
        self.last.is_none_or(|last| minute > last.minute)
    }

    /// Counts the minute that has ended.
    pub fn count(&mut self, minute: Minute, now: u64) {
        let of = minute_of(now.saturating_sub(REPORTED_MS));
        if let Some(last) = self.last
            && of == last.minute + 1
            && now < start_of(of + 1)
        {
            let mean = |before: i64, after: i64| (before + after).max(0) as f64 / 2.0;
            // Whoever has just come cannot have left yet: minutes in which the room fills or empties would mislead.
            let steady = (minute.active - last.active).abs() * STEADY_PART <= last.active;
            if steady {
                let left = (minute.entered - (minute.active - last.active)).max(0) as f64;
                self.left = self.left * KEPT + left;
                self.active_minutes = self.active_minutes * KEPT + mean(last.active, minute.active);
            }
            // Whoever gives up is seen to have done so most of a minute later: minutes in which the queue grows fast
            // would mislead.
            if (minute.waiting - last.waiting) * STEADY_QUEUE_PART <= last.waiting {
                let gave_up = (minute.queue_grew - (minute.waiting - last.waiting)).max(0) as f64;
                self.gave_up = self.gave_up * KEPT + gave_up;
                self.waiting_minutes = self.waiting_minutes * KEPT + last.waiting.max(0) as f64;
            }
        }
        self.last = Some(Look { minute: of, active: minute.active, waiting: minute.waiting });
    }

    /// Users who leave a room of so many active users in ten minutes, as far as is known.
    pub fn leaving(&self, active: i64) -> u32 {
        if self.active_minutes < 1.0 {
            return 0;
        }
        (self.left / self.active_minutes * 10.0 * active.max(0) as f64) as u32
    }

    /// How many of a million waiting users give up in a second, as far as is known.
    pub fn giving_up(&self) -> u32 {
        let gave_up = self.gave_up + ASSUMED_MINUTES / PATIENCE_MINUTES;
        (gave_up / (self.waiting_minutes + ASSUMED_MINUTES) / 60.0 * 1e6) as u32
    }
}
