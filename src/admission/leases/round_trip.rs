//! How long an object takes to answer, and how long it is waited for: slow is not dead.

/// The longest that is waited, in usual timeouts.
const LONGEST: u64 = 3;
/// Whoever has answered nothing for this time is taken for dead, in milliseconds: nobody waits long for it.
const DEAD_MS: u64 = 3_000;
/// An object whose last call failed so long ago may have come back meanwhile, in milliseconds.
const BACK_MS: u64 = 30_000;
/// Timeouts go in steps of this, in milliseconds.
const STEP_MS: u64 = 50;
/// The part of a new measurement in the mean: one of this many.
const PART: u64 = 8;

/// Round trips of calls to one object, as TCP measures them (RFC 6298).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoundTrip {
    /// Mean and mean deviation in milliseconds, times [`PART`].
    measured: Option<(u64, u64)>,
    /// When the first and the last of those calls were made that were not answered since the last answer.
    failing: Option<(u64, u64)>,
}

impl RoundTrip {
    /// A call that began at `since` was answered.
    pub fn answered(&mut self, since: u64, now: u64) {
        let took = now.saturating_sub(since);
        let (mean, deviation) = self.measured.unwrap_or((took * PART, took * PART / 2));
        let off = took.abs_diff(mean / PART);
        self.measured = Some((mean + took - mean / PART, deviation + off - deviation / PART));
        self.failing = None;
    }

    /// A call that began at `since` was not answered in time.
    pub fn failed(&mut self, since: u64) {
        let (first, _) = self.failing_at(since).unwrap_or((since, since));
        self.failing = Some((first, since));
    }

    /// [`RoundTrip::failing`], unless the object may have come back.
    fn failing_at(&self, now: u64) -> Option<(u64, u64)> {
        self.failing.filter(|(_, last)| now <= last + BACK_MS)
    }

    /// For how long no call was answered, in milliseconds.
    pub fn silent_ms(&self, now: u64) -> u64 {
        self.failing_at(now).map_or(0, |(first, _)| now.saturating_sub(first))
    }

    /// Whether nobody answers any more.
    pub fn is_dead(&self, now: u64) -> bool {
        self.silent_ms(now) >= DEAD_MS
    }

    /// What a call takes usually, in milliseconds; 0: not known.
    pub fn usual_ms(&self) -> u64 {
        self.measured.map_or(0, |(mean, _)| mean / PART)
    }

    /// Timeout of the next call, in milliseconds: at least `usual`, at most [`RoundTrip::longest_ms`].
    pub fn deadline_ms(&self, usual: u64, now: u64) -> u64 {
        let Some((mean, deviation)) = self.measured.filter(|_| self.failing.is_none()) else {
            return self.longest_ms(usual, now);
        };
        ((mean + 4 * deviation) / PART).next_multiple_of(STEP_MS).clamp(usual, LONGEST * usual)
    }

    /// Timeout where an answer may take several round trips, or the object has to be made first, in milliseconds.
    pub fn longest_ms(&self, usual: u64, now: u64) -> u64 {
        if self.is_dead(now) { usual } else { LONGEST * usual }
    }
}
