//! The state key: the room as one colo sees it, and what may be decided from it.
//!
//! It holds what a decision needs (limits of the minute, protection per bucket, the next seconds' expiries) and
//! nothing else, so that it stays small however many users the room has.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::{Level, MinuteShares, share_of_slots, start_of};
use crate::check_in::CheckIn;
use crate::room::{Limits, QueueingMethod, Room};
use crate::steering::{Overrides, travelling};
use crate::ticket::Ticket;

/// How far ahead expiries are foreseen, in milliseconds. A session that seems to end may have been renewed since:
/// who is to be let in for it must be judged by a newer state.
const FORESIGHT_MS: u64 = 500;
/// How far ahead a state key says which sessions end unless they are renewed, in milliseconds.
pub const FORESEEN_MS: u64 = 12_000;
/// So many tenths of the sessions that could end in a minute are taken to end. With all of them a room counts as bound by its
/// limit per minute for too long, and stands idle in the minute in which it becomes full; with three quarters not for long
/// enough, and crowds enter at the minute's beginning, past those who wait.
const ENDING_TENTHS: i64 = 9;
/// What is protected for those ahead: what they ask for in so many seconds; and for the last ones of a bucket a slot each, up
/// to so many in a thousand slots, since whoever is younger would pass them until they check in.
const PROTECTED: (i64, i64) = (1, 1);
/// The same where the limits follow the origin: they may fall before those ahead have come.
const PROTECTED_IF_FOLLOWING: (i64, i64) = (2, 4);

/// A room's state at one moment, as the Global object answers it and as it is cached for workers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct StateKey {
    /// Format version.
    pub v: u8,
    /// When Global made it, by its own clock, in milliseconds since the epoch.
    pub taken_at: u64,
    /// The minute that its counts are for: the asker's, whose clock may differ from Global's.
    pub minute: u32,
    /// How long it has been on its way, in milliseconds: each holder adds the time that it kept it.
    pub age: u64,
    /// Active users at `taken_at`, from the reports that had come in by then.
    pub active: i64,
    /// Width of one step of `expiring`, in milliseconds: `session_duration` / 720.
    pub step: u64,
    /// How many of `active` will have expired at the end of each step after `taken_at`, cumulative. The first one may be
    /// shorter: see `first_step_ms`.
    pub expiring: Vec<u32>,
    /// How many of `active` expire within one refresh, and within 60 seconds, of `taken_at`.
    pub expiring_refresh: u32,
    /// See `expiring_refresh`.
    pub expiring_minute: u32,
    /// Users admitted with a number of the minute.
    pub admitted: i64,
    /// Users admitted with a number of the minute after it, by objects whose clock is ahead.
    pub admitted_next: i64,
    /// Users admitted in the minute without a number (fallback, `on_error = "admit"`).
    pub unnumbered: i64,
    /// Numbers of the minute before that may have been given and are not among `active` yet.
    pub carry: i64,
    /// Users admitted per ten minutes, at the current rate.
    pub entering: u32,
    /// Waiting users by bucket, oldest first.
    pub waiting: Vec<(u32, u32)>,
    /// Who owns the numbers of this minute and of the next, where that is settled already.
    pub shares: Vec<MinuteShares>,
    /// Part of the new traffic that this colo brought, in millionths.
    pub colo_ratio: u32,
    /// The part that no colo brought, in millionths.
    pub anywhere_ratio: u32,
    /// Workers that reported in this colo lately.
    pub colo_workers: u32,
    /// Workers that reported anywhere lately.
    pub all_workers: u32,
    /// How near the room is to its limits.
    #[serde(default)]
    pub level: Level,
    /// Reports of all colos cover everything before this time (Global's clock).
    #[serde(default)]
    pub covered: u64,
    /// For the pool of `leases`: users admitted with and without a number, by minute, for the last minutes.
    #[serde(default)]
    pub recent: Vec<(u32, i64, i64)>,
    /// Users who would leave in ten minutes if the room were full; 0: not known.
    #[serde(default)]
    pub leaving: u32,
    /// Of a million waiting users, how many give up in a second; 0: none, or not known.
    #[serde(default)]
    pub giving_up: u32,
    /// Of `waiting`, bucket by bucket: how many will probably check in again. The others have left, and nothing is kept
    /// free for them.
    #[serde(default)]
    pub present: Vec<u32>,
    /// The limits in force, where they are not those that are configured.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// Nobody new enters: the origin is unhealthy.
    #[serde(default)]
    pub held: bool,
    /// What operators have changed of the room.
    #[serde(default, with = "travelling")]
    pub steering: Overrides,
    /// An operator looks: what is counted must be reported soon, however calm the room is.
    #[serde(default)]
    pub watched: bool,
    /// The holder's colo has just woken up, and its users are not counted yet: nobody is told a wait by it.
    #[serde(default)]
    pub uncounted: bool,
    /// For whoever is answered, and nobody else: a data center that has pushed, or a worker that has reported. (It stands
    /// here because an answer ends with its state key, which may grow at its end.)
    #[serde(default)]
    pub ended: EndedNews,
    /// For the pool of `leases`: how many colos have told of users admitted in each minute of `recent`.
    #[serde(default)]
    pub recent_colos: Vec<u32>,
    /// Places that have moved to another device lately: the ticket's id, and how often. Tickets that say less are refused.
    #[serde(default)]
    pub moved: Vec<(u64, u8)>,
    /// For a data center: for how long Global tells it of operators' changes though it sleeps, in milliseconds from `taken_at`
    /// on; 0: Global does not know it, or will not.
    #[serde(default)]
    pub told_ms: u64,
    /// How long the first step of `expiring` is, in milliseconds; 0: a Global of before this was told has counted whole ones.
    #[serde(default)]
    pub first_step_ms: u64,
    /// How long the data center's question took that this answers, there and back, in milliseconds. So much later than `taken_at` and
    /// `age` say it may be by Global's clock. 0: not told.
    #[serde(default)]
    pub round_trip_ms: u64,
    /// Of `present`, by bucket, where there are any: newcomers who will probably not come back, since as many before them did not.
    /// A wait is estimated without them; the order is kept for them all the same.
    #[serde(default)]
    pub strangers: Vec<(u32, u32)>,
    /// For how long nobody has begun to wait, as far as reports tell, in milliseconds at `taken_at`. 0: somebody just has, or it is not
    /// known.
    #[serde(default)]
    pub quiet_ms: u64,
    /// Global has lost its memory, and has not heard since from each colo that reports: some who wait may not be in `waiting`.
    #[serde(default)]
    pub forgotten: bool,
}

/// Sessions that were ended before their time: all colos refuse their tickets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndedNews {
    /// The [`CheckIn::Leave`] of each.
    pub sessions: Vec<CheckIn>,
    /// When Global has started, in milliseconds since the epoch; 0: a data center says it.
    pub start: u64,
    /// The number of the last one that the asker is told of: the next question says it.
    pub heard: u64,
}

/// A state key and when it was received, by the holder's own clock.
#[derive(Debug, Clone)]
pub struct Clocked {
    /// The state key as it came.
    pub key: StateKey,
    /// When it came, in milliseconds since the epoch.
    pub received_at: u64,
}

impl Clocked {
    /// How old the state is, in milliseconds.
    pub fn age(&self, now: u64) -> u64 {
        self.key.age + now.saturating_sub(self.received_at)
    }

    /// What time it is by Global's clock, as far as the holder can tell: never later than it is, so that a holder
    /// whose clock is ahead does not see users expire early.
    pub fn global_time(&self, now: u64) -> u64 {
        self.key.taken_at + self.age(now)
    }

    /// The state key to pass on, with the time it was held added to its age.
    pub fn passed_on(&self, now: u64) -> StateKey {
        StateKey { age: self.age(now), ..self.key.clone() }
    }
}

impl StateKey {
    /// Adds those who wait by another state key, and not by this one: of each bucket the larger count is taken. Both must say who is
    /// `present`.
    pub fn add_waiting(&mut self, other: &Self) {
        let users = |key: &Self| -> LiteMap<u32, (u32, u32)> {
            let waiting = key.waiting.iter().zip(key.present.iter());
            waiting.map(|((bucket, waiting), present)| (*bucket, (*waiting, *present))).collect()
        };
        let mut all = users(self);
        for (bucket, (waiting, present)) in users(other) {
            let known = all.entry(bucket).or_insert((0, 0));
            *known = (known.0.max(waiting), known.1.max(present));
        }
        self.waiting = all.iter().map(|(bucket, (waiting, _))| (*bucket, *waiting)).collect();
        self.present = all.values().map(|(_, present)| *present).collect();
    }

    /// The limits in force: never more than the room's, which an event may have changed since this state was made.
    pub fn limits(&self, room: &Room) -> Limits {
        let most = room.limits();
        self.limits.map_or(most, |limits| Limits {
            total_active_users: limits.total_active_users.min(most.total_active_users),
            new_users_per_minute: limits.new_users_per_minute.min(most.new_users_per_minute),
        })
    }

    /// Whether a ticket's place has moved on to another device.
    pub fn has_moved(&self, ticket: &Ticket) -> bool {
        self.moved.iter().any(|(id, moves)| *id == ticket.id && ticket.moves < *moves)
    }

    /// The most active users.
    pub fn most_active(&self, room: &Room) -> i64 {
        self.limits(room).total_active_users.into()
    }

    /// The most new users in a minute.
    pub fn most_new(&self, room: &Room) -> i64 {
        self.limits(room).new_users_per_minute.into()
    }

    /// How long the first step of `expiring` is, and each after it, in milliseconds.
    fn steps_ms(&self) -> (u64, u64) {
        let step = self.step.max(1);
        (if self.first_step_ms == 0 { step } else { self.first_step_ms }, step)
    }

    /// Active users at a time, from what was known: expiries are foreseen, arrivals are not.
    pub fn active_at(&self, time: u64) -> i64 {
        let (first, step) = self.steps_ms();
        let steps = ((time.saturating_sub(self.taken_at) + step).saturating_sub(first) / step) as usize;
        let gone = match steps {
            0 => 0,
            steps => self.expiring.get(steps - 1).or(self.expiring.last()).copied().unwrap_or(0),
        };
        (self.active - i64::from(gone)).max(0)
    }

    /// When so many of the active users will have gone whose sessions end unless they are renewed, in milliseconds since the epoch
    /// (Global's clock). As an error, until when that is foreseen, and how many will have gone by then.
    ///
    /// # Errors
    /// Where fewer are foreseen to go.
    pub fn gone_at(&self, users: i64) -> Result<u64, (u64, i64)> {
        let (first, step) = self.steps_ms();
        let all = i64::from(self.expiring.last().copied().unwrap_or(0));
        match self.expiring.iter().position(|gone| i64::from(*gone) >= users) {
            _ if users <= 0 => Ok(self.taken_at),
            Some(steps) => Ok(self.taken_at + first + steps as u64 * step),
            None => Err((self.taken_at + FORESEEN_MS, all)),
        }
    }

    /// How many numbers of a minute may be given in all by `time` (Global's clock), to the knowledge of this state:
    /// `B = min(new users per minute, A + total active users − active)`, from one snapshot, with what may not have
    /// been reported of the minute before taken off. `None` when the state is too old to say.
    pub fn budget(&self, room: &Room, minute: u32, time: u64) -> Option<i64> {
        self.bounded(room, minute, time, true)
    }

    /// The most that [`StateKey::budget`] can turn out to be for a holder who knows everything that this state does
    /// not: a limit above it is certain to be refused.
    pub fn budget_at_most(&self, room: &Room, minute: u32, time: u64) -> Option<i64> {
        self.bounded(room, minute, time, false)
    }

    /// Raises `carry` until [`StateKey::budget`] of the state's own minute is `most`, which is less than it was at the moment when the
    /// state was taken.
    pub fn lower_budget(&mut self, room: &Room, most: i64) {
        self.carry = self.admitted + self.most_active(room) - self.active - most;
    }

    fn bounded(&self, room: &Room, minute: u32, time: u64, careful: bool) -> Option<i64> {
        if room.is_closed() {
            return Some(0);
        }
        let total = self.most_active(room);
        let foreseen = if careful { time.min(self.taken_at + FORESIGHT_MS) } else { time };
        let free = total - self.active_at(foreseen);
        let by_active = if minute == self.minute {
            self.admitted + free - if careful { self.carry } else { 0 }
        } else if minute == self.minute + 1 {
            // What the last minute's owners may have given since: as much as the limits let them, no more.
            let end = start_of(minute);
            let unused = (self.most_new(room) - self.admitted).max(0);
            let unknown = (total - self.active_at(end.min(time))).max(0).min(self.carry + unused);
            self.admitted_next + free - if careful { unknown } else { 0 }
        } else {
            return None;
        };
        Some(by_active.min(self.may_enter(room, minute, time)).max(0))
    }

    /// Users of a minute who may have entered by now: all that the limit allows while nobody waits, and where so few slots
    /// are free, or will be in the rest of the minute, that they are the limit. Else in step with the minute's seconds: two
    /// seconds ahead, so that the first refreshes find something, and where there are only a few more, or the last of them
    /// would have the minute's last moment only.
    fn paced(&self, room: &Room, minute: u32, time: u64) -> i64 {
        let limit = self.most_new(room);
        let rest = start_of(minute + 1).saturating_sub(time).min(60_000) as i64;
        // Some of those that could end are renewed.
        let ending = i64::from(self.expiring_minute) * ENDING_TENTHS / 10 * rest / 60_000;
        let slots = self.most_active(room) - self.active_at(time) + ending;
        let left = limit - self.admitted_in(minute) - self.unnumbered_of(minute);
        // Visitors are not to come in bunches to an origin that the limits follow.
        if self.nobody_waits() || slots <= left && !room.follows_origin() {
            limit
        } else {
            let into = time.saturating_sub(start_of(minute)).min(60_000) as i64;
            let ahead = (20_000 / limit.max(1)).max(2_000);
            (limit * (into + ahead) / 60_000).min(limit)
        }
    }

    /// How many permits or numbers of a minute may be used in all by a time, in milliseconds since the epoch.
    pub fn may_enter(&self, room: &Room, minute: u32, time: u64) -> i64 {
        self.paced(room, minute, time) - self.unnumbered_of(minute)
    }

    /// Users admitted without a permit in one of the last minutes, as far as this state tells.
    pub fn unnumbered_of(&self, minute: u32) -> i64 {
        let of_this = if minute == self.minute { self.unnumbered } else { 0 };
        self.recent.iter().find(|(of, ..)| *of == minute).map_or(of_this, |(_, _, users)| *users)
    }

    /// Users admitted with a permit of one of the last minutes.
    pub fn admitted_of(&self, minute: u32) -> i64 {
        self.recent.iter().find(|(of, ..)| *of == minute).map_or(0, |(_, users, _)| *users)
    }

    /// How many colos have told of users admitted with a number of the minute; `None`: it does not say.
    pub fn colos_of(&self, minute: u32) -> Option<u32> {
        let place = self.recent.iter().position(|(of, ..)| *of == minute)?;
        self.recent_colos.get(place).copied()
    }

    /// Active users at a time, with expiries foreseen for a moment only.
    pub fn active_foreseen(&self, time: u64) -> i64 {
        self.active_at(time.min(self.taken_at + FORESIGHT_MS))
    }

    /// Numbers of the minute that are admitted already, as far as this state knows.
    pub fn admitted_in(&self, minute: u32) -> i64 {
        if minute == self.minute { self.admitted } else { self.admitted_next }
    }

    /// Waiting users in buckets older than this one.
    pub fn ahead_of(&self, bucket: u32) -> i64 {
        self.waiting.iter().take_while(|(other, _)| *other < bucket).map(|(_, users)| i64::from(*users)).sum()
    }

    /// Whether nobody waits who would check in again.
    pub fn nobody_waits(&self) -> bool {
        self.present_ahead(None) == 0
    }

    /// Users who go before somebody in a bucket, or before somebody new (`None`), and who are still there.
    pub fn present_ahead(&self, bucket: Option<u32>) -> i64 {
        let ahead = |of: u32| bucket.is_none_or(|bucket| of < bucket);
        if self.present.len() != self.waiting.len() {
            // Made by a Global of before it was told.
            return bucket.map_or_else(|| self.waiting_users(), |bucket| self.ahead_of(bucket));
        }
        let buckets = self.waiting.iter().zip(&self.present);
        buckets.take_while(|((of, _), _)| ahead(*of)).map(|(_, present)| i64::from(*present)).sum()
    }

    /// Waiting users of one bucket who are still there.
    pub fn present_in(&self, bucket: u32) -> i64 {
        self.present_ahead(bucket.checked_add(1)) - self.present_ahead(Some(bucket))
    }

    /// Waiting users of one bucket who are still there, without newcomers who will probably not come back.
    pub fn returning_in(&self, bucket: u32) -> i64 {
        self.present_in(bucket) - self.strangers(|of| of == bucket)
    }

    /// Users of older buckets who are still there, without newcomers who will probably not come back.
    pub fn returning_ahead(&self, bucket: u32) -> i64 {
        self.present_ahead(Some(bucket)) - self.strangers(|of| of < bucket)
    }

    fn strangers(&self, of: impl Fn(u32) -> bool) -> i64 {
        self.strangers.iter().filter(|(bucket, _)| of(*bucket)).map(|(_, users)| i64::from(*users)).sum()
    }

    /// Waiting users of one bucket.
    pub fn waiting_in(&self, bucket: u32) -> i64 {
        self.waiting.iter().find(|(other, _)| *other == bucket).map_or(0, |(_, users)| i64::from(*users))
    }

    /// All waiting users.
    pub fn waiting_users(&self) -> i64 {
        self.waiting.iter().map(|(_, users)| i64::from(*users)).sum()
    }

    /// Numbers that a visitor with `ahead` users ahead must leave untouched: enough for a second of their check-ins (for two
    /// users at least: in a small room one number comes at a time), or two where the limits follow the origin, and for all
    /// whom the slots of the next refresh will not serve. Without it the oldest bucket wins only by luck.
    pub fn protected(&self, room: &Room, ahead: i64) -> i64 {
        if room.queueing_method == QueueingMethod::Random {
            // Nobody is ahead of anybody.
            return 0;
        }
        let refresh = i64::from(room.refresh_interval_seconds);
        let by_rate = self.most_new(room) * refresh / 60;
        // A quarter more than foreseen: users also leave, and a slot kept for nobody is worse than a close call.
        let freeing = by_rate.min(i64::from(self.expiring_refresh)) * 5 / 4;
        let (seconds, per_mille) = if room.follows_origin() { PROTECTED_IF_FOLLOWING } else { PROTECTED };
        let next_check_ins = (ahead * seconds + refresh - 1) / refresh;
        let last_ones = ahead.min((self.most_active(room) * per_mille / 1_000).max(2));
        next_check_ins.max(ahead - freeing).max(last_ones)
    }

    /// The part of `slots` that is this colo's by its recent traffic, and the part that is Anywhere's.
    pub fn split_by_traffic(&self, slots: i64) -> (i64, i64) {
        let part = |millionths: u32| share_of_slots(slots, f64::from(millionths) / 1e6);
        (part(self.colo_ratio), part(self.anywhere_ratio))
    }

    /// The shares of a minute, where they are settled.
    pub fn shares_of(&self, minute: u32) -> Option<&MinuteShares> {
        self.shares.iter().find(|shares| shares.minute == minute)
    }
}
