//! Whether new users wait because the origin is unhealthy, and how they enter when it is back.

use serde::{Deserialize, Serialize};

use super::Evidence;
use crate::room::{Limits, OnUnhealthy, Room};

/// Time for which nearly everything must fail for the origin to count as down, whatever its checks say, in milliseconds.
const DOWN_MS: u64 = 10_000;
/// The fewest requests in that time by which it is judged.
const DOWN_REQUESTS: u64 = 10;
/// Nearly everything: this part of all requests.
const DOWN_PART: f64 = 0.9;
/// Time without a failed request after which somebody new may try it again, in milliseconds.
const TRY_AGAIN_MS: u64 = 15_000;
/// From the first new user to all that the limits allow, in milliseconds.
const SLOW_START_MS: u64 = 60_000;
/// The part of the limits that enters at first.
const FIRST_PART: f64 = 0.1;

/// What is known of the origin's health. Kept in Global's storage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hold {
    /// Format version.
    pub v: u8,
    /// Per check: whether it is healthy, and since when.
    checks: Vec<(String, bool, u64)>,
    /// Passing requests say that the origin is down.
    is_down: bool,
    /// When they said so last.
    down_at: u64,
    /// When the last hold ended; 0: there was none.
    released_at: u64,
    held: bool,
}

impl Hold {
    /// Takes in a check's state. One that is older than the known one changes nothing. Returns whether it changed.
    pub fn told(&mut self, room: &Room, check: &str, healthy: bool, at: u64) -> bool {
        if !room.listens_to(check) {
            return false;
        }
        let name = check.to_ascii_lowercase();
        if let Some((_, was, since)) = self.checks.iter_mut().find(|(known, ..)| *known == name) {
            // Notifications bear whole seconds: of two with one time the later one counts.
            let changed = at >= *since && *was != healthy;
            if changed {
                (*was, *since) = (healthy, at);
            }
            return changed;
        }
        // The room's own checks always have a place: others were taken from it.
        self.checks.retain(|(known, ..)| room.listens_to(known));
        self.checks.push((name, healthy, at));
        true
    }

    /// Looks at the checks and at what passed through the room. Returns whether it changed that new users must wait.
    pub fn update(&mut self, room: &Room, evidence: &Evidence, now: u64) -> bool {
        if room.on_unhealthy != OnUnhealthy::Hold {
            return std::mem::take(&mut self.held);
        }
        let lately = evidence.since(now.saturating_sub(DOWN_MS));
        let troubles = lately.troubles();
        if troubles >= DOWN_REQUESTS && troubles as f64 >= DOWN_PART * lately.ended() as f64 {
            self.is_down = true;
            self.down_at = now;
        } else if lately.ended() > troubles || now >= self.down_at + TRY_AGAIN_MS {
            self.is_down = false;
        }
        let held = self.is_down || self.unhealthy_check(room).is_some();
        let changed = held != self.held;
        if self.held && !held {
            self.released_at = now;
        }
        self.held = held;
        changed
    }

    /// The check that has said for longest that the origin is unhealthy, and since when.
    pub fn unhealthy_check(&self, room: &Room) -> Option<(&str, u64)> {
        self.unhealthy_checks(room).min_by_key(|(_, since)| *since)
    }

    /// The checks that say that the origin is unhealthy, and since when.
    pub fn unhealthy_checks(&self, room: &Room) -> impl Iterator<Item = (&str, u64)> {
        // A check that the owner has taken from the room does not count any more.
        self.checks
            .iter()
            .filter(|(name, healthy, _)| !healthy && room.listens_to(name))
            .map(|(name, _, since)| (name.as_str(), *since))
    }

    /// Whether new users wait because what passes through the room says that the origin is down.
    pub fn is_down(&self) -> bool {
        self.held && self.is_down
    }

    /// Whether new users wait.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// What is left of the limits: nobody new while the origin is unhealthy, few at first when it is back, so that those
    /// who waited do not all come at once.
    #[must_use]
    pub fn limit(&self, limits: Limits, now: u64) -> Limits {
        let new = f64::from(limits.new_users_per_minute);
        let part = if self.held {
            0.0
        } else if self.released_at > 0 && now < self.released_at + SLOW_START_MS {
            let gone = now.saturating_sub(self.released_at) as f64 / SLOW_START_MS as f64;
            FIRST_PART + (1.0 - FIRST_PART) * gone
        } else {
            return limits;
        };
        Limits { new_users_per_minute: (new * part).ceil() as u32, ..limits }
    }
}
