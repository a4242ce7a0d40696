//! Limits that follow what the origin can do: they grow step by step while it answers well, and shrink by a part when it
//! does not (additive increase, multiplicative decrease), from what all colos together have seen.
//!
//! The article's rate limiter learns from a request's *position*: when the hundredth in line times out, a hundred are
//! too many. Here the position is the number of users who were active when the origin showed that it has too much to do.
//! Users who are in cannot be sent away, so a limit below that number takes effect as they leave; shrinking it further
//! every second until then would only empty the site. So a cut is made from the users who are active, not from the limit.
//!
//! How deep to cut: while the origin is well, it is learned how many requests an active user makes. When it has too much
//! to do, it answers as many as it can; divided by that it says how many users it can serve.

use serde::{Deserialize, Serialize};

use super::{Evidence, OriginCounts};
use crate::room::{AdaptiveRange, Limits, Room};

/// Time between two looks at the limits, in milliseconds.
const STEP_MS: u64 = 2_000;
/// Judged by the shortest of these times that has [`ENOUGH`] requests, in milliseconds.
const LOOKS_MS: [u64; 4] = [5_000, 10_000, 20_000, 40_000];
/// Nothing is judged by a shorter time, in milliseconds.
const SHORTEST_LOOK_MS: u64 = 4_000;
/// The fewest requests by which the origin is judged early.
const ENOUGH: u64 = 20;
/// Fewer tell nothing, however long it took.
const LEAST: u64 = 5;
/// A larger part of failed requests than this: the origin is overloaded.
const TROUBLES: f64 = 0.02;
/// Fewer failed requests than this may have any reason.
const LEAST_TROUBLES: u64 = 3;
/// The factor by which the median must exceed that of an origin with little to do before it counts as overloaded.
const SLOW_FACTOR: f64 = 3.0;
/// Added to that: networks vary by this much, in milliseconds.
const SLOW_MARGIN_MS: f64 = 30.0;
/// A cut leaves at most this part of the users who are active.
const CUT: f64 = 0.96;
/// And at least this one, where the origin is only slow: how many requests a user makes is not known exactly.
const DEEP_CUT: f64 = 0.85;
/// And this one, where it fails, or is [`FAR`] too slow.
const DEEPEST_CUT: f64 = 0.5;
/// The factor by which the median must exceed its bound to count as far too slow.
const FAR: f64 = 2.0;
/// Of what the origin can do, this much is used.
const HEADROOM: f64 = 0.97;
/// A cut that proves to be too deep is taken back by this part.
const CORRECTION: f64 = 1.0 / 3.0;
/// Before the first cut a limit grows by this part of itself each second: 25 % in ten seconds.
const SLOW_START: f64 = 0.022_6;
/// After a cut it grows by this part of what it was cut to each second: what [`CUT`] took off comes back in 20 s.
const GROWTH: f64 = 0.002;
/// Time without another cut after which a limit grows faster and faster, in milliseconds.
const PATIENCE_MS: f64 = 45_000.0;
/// Time after a cut in which requests from before it may still be in flight, in milliseconds.
const SETTLE_MS: u64 = 6_000;
/// The part of a limit that must be used for it to count as in use. Only then does it grow: else nothing is learned of it.
const IN_USE: f64 = 0.9;
/// What is known of the time that a well origin takes is given up slowly: by this part each second.
const FORGETTING: f64 = 0.000_5;

/// How the origin did in the shortest time that tells enough.
#[derive(Debug)]
struct Look {
    /// The median time to the first byte, in milliseconds, of what counts of each ticket.
    median_ms: f64,
    /// More than a few requests were not served, and not only of a few tickets.
    is_troubled: bool,
    /// It was judged by [`ENOUGH`] requests.
    is_sure: bool,
    /// Requests that were served each second, and requests that ended.
    served: f64,
    ended: f64,
}

/// The limits in force, and what they were learned from. Kept in Global's storage.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Adaptive {
    /// Format version.
    pub v: u8,
    active: f64,
    new: f64,
    /// What the last cut left; 0: there has been none.
    active_cut: f64,
    new_cut: f64,
    cut_at: u64,
    looked_at: u64,
    /// The median time to the first byte of an origin that is well, in milliseconds; 0: not known.
    usual_ms: f64,
    /// Requests that an active user makes in a second; 0: not known.
    per_user: f64,
}

/// What the limits are judged by, besides the origin.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// Active users.
    pub active: i64,
    /// Users who enter in a minute, at the current rate.
    pub entering: f64,
    /// Somebody waits.
    pub waiting: bool,
}

impl Adaptive {
    /// The limits in force now.
    pub fn limits(&self, room: &Room) -> Limits {
        let Some(range) = room.adaptive else { return room.limits() };
        let within = |limit: f64, least: u32, most: u32| (limit as u32).clamp(least, most);
        Limits {
            total_active_users: within(self.active, range.least_active_users, room.total_active_users),
            new_users_per_minute: within(self.new, range.least_new_users, room.new_users_per_minute),
        }
    }

    /// Looks at the origin and moves the limits, at most every two seconds: by all that passed through the room, and by what
    /// of it counts of each ticket.
    pub fn step(&mut self, room: &Room, all: &Evidence, judged: &Evidence, used: Use, now: u64) {
        let Some(range) = room.adaptive else { return };
        if self.looked_at == 0 {
            let least = (f64::from(range.least_active_users), f64::from(range.least_new_users));
            (self.active, self.new, self.looked_at) = (self.active.max(least.0), self.new.max(least.1), now);
        }
        let elapsed = now.saturating_sub(self.looked_at);
        if elapsed < STEP_MS {
            return;
        }
        self.looked_at = now;
        // What happened while nobody looked is not made up for.
        let seconds = (elapsed.min(2 * STEP_MS)) as f64 / 1_000.0;
        let Some(look) = self.look(all, judged, now) else { return };
        let slow_ms = self.slow_ms(&range);
        if look.is_troubled || look.median_ms > slow_ms {
            self.cut(&range, &look, slow_ms, used, now);
        } else {
            self.learn(&look, used, seconds);
            self.grow(room, used, seconds, now);
        }
    }

    /// `None`: too little is known.
    fn look(&self, all: &Evidence, judged: &Evidence, now: u64) -> Option<Look> {
        let (mut from, mut counts, mut over_ms) = (0, OriginCounts::default(), 0);
        for look in LOOKS_MS {
            // What was counted before the last cut had settled says nothing of what came of it.
            from = now.saturating_sub(look).max(if self.cut_at == 0 { 0 } else { self.cut_at + SETTLE_MS });
            (counts, over_ms) = judged.between(from, now);
            if counts.ended() >= ENOUGH || from + look > now {
                break;
            }
        }
        // Reports come every two seconds: a shorter time has too few of them, or too many.
        if counts.ended() < LEAST || over_ms < SHORTEST_LOOK_MS {
            return None;
        }
        let (all, _) = all.between(from, now);
        let a_second = |requests: u64| requests as f64 * 1_000.0 / over_ms as f64;
        Some(Look {
            median_ms: counts.quantile_ms(0.5)?,
            is_troubled: is_troubled(&counts) && is_troubled(&all),
            is_sure: counts.ended() >= ENOUGH,
            served: a_second(all.ended().saturating_sub(all.troubles())),
            ended: a_second(all.ended()),
        })
    }

    /// From which median on the origin is slow, in milliseconds.
    fn slow_ms(&self, range: &AdaptiveRange) -> f64 {
        match range.slow_ms {
            Some(slow_ms) => slow_ms.into(),
            None if self.usual_ms > 0.0 => SLOW_FACTOR * self.usual_ms + SLOW_MARGIN_MS,
            None => f64::INFINITY,
        }
    }

    fn learn(&mut self, look: &Look, used: Use, seconds: f64) {
        if !look.is_sure {
            return;
        }
        let known = if self.usual_ms > 0.0 { self.usual_ms } else { look.median_ms };
        self.usual_ms = look.median_ms.min(known * (1.0 + FORGETTING * seconds));
        if used.active > 0 {
            let per_user = look.ended / used.active as f64;
            let known = if self.per_user > 0.0 { self.per_user } else { per_user };
            self.per_user = known + (per_user - known) * (seconds / 20.0).min(1.0);
        }
    }

    fn cut(&mut self, range: &AdaptiveRange, look: &Look, slow_ms: f64, used: Use, now: u64) {
        // From who is in, not from the limit: an earlier cut takes effect only as users leave.
        let active = used.active.max(0) as f64;
        // As many users as the origin answers now, by what one asks for; half of them at the worst.
        let can_serve =
            if self.per_user > 0.0 { HEADROOM * look.served / self.per_user } else { CUT * active };
        let deepest = if look.is_troubled || look.median_ms > FAR * slow_ms { DEEPEST_CUT } else { DEEP_CUT };
        let left = can_serve.clamp(deepest * active, CUT * active);
        let known_better = can_serve.min(CUT * active);
        self.active = if self.active < known_better {
            // While an earlier cut takes effect, what the origin can do is known better with each look.
            self.active + (known_better - self.active) * CORRECTION
        } else {
            self.active.min(left)
        };
        self.active = self.active.max(range.least_active_users.into());
        // The same part of the users who came, unless they were few because the room is full.
        if used.entering >= IN_USE * self.new {
            let part = if active > 0.0 { left / active } else { CUT };
            self.new = (self.new * part).max(range.least_new_users.into());
        }
        (self.active_cut, self.new_cut, self.cut_at) = (self.active, self.new, now);
    }

    fn grow(&mut self, room: &Room, used: Use, seconds: f64, now: u64) {
        let patience = now.saturating_sub(self.cut_at) as f64 / PATIENCE_MS;
        let grown = |limit: f64, cut: f64| {
            if self.cut_at == 0 {
                limit * (1.0 + SLOW_START * seconds) + 0.05 * seconds
            } else {
                limit + (GROWTH * cut.max(10.0) * (1.0 + patience.powi(2))).min(SLOW_START * limit) * seconds
            }
        };
        let (active, new) = (grown(self.active, self.active_cut), grown(self.new, self.new_cut));
        // The limits in force are whole numbers.
        let active_in_use = used.active as f64 >= IN_USE * self.active.floor();
        if active_in_use {
            self.active = active.min(room.total_active_users.into());
        }
        if used.entering >= IN_USE * self.new.floor() || (used.waiting && !active_in_use) {
            self.new = new.min(room.new_users_per_minute.into());
        }
    }
}

/// More than a few requests were not served.
fn is_troubled(counts: &OriginCounts) -> bool {
    let troubles = counts.troubles();
    troubles >= LEAST_TROUBLES && troubles as f64 > TROUBLES * counts.ended() as f64
}
