//! What happened in a colo, or in all, minute by minute.

use serde::{Deserialize, Serialize};

use super::classes::{CLASSES, class_of};
use super::record::{ENDED, WAITS};
use crate::check_in::Seen;
use crate::room::{QueueingMethod, Room};
use crate::slots::SlotCounts;
use crate::time::{MINUTE_MS, minute_of, start_of};

/// Times by the minutes of which something is counted, and what.
const CODES: u64 = 256;
/// How many minutes a data center tells of, besides those of a session where that matters: a report takes no longer.
const TOLD_MINUTES: u32 = 10;
/// The same while Global does not answer.
const KEPT_MINUTES: u32 = 30;
/// The longest time from the minute of a ticket to its visitor's first check-in, in milliseconds.
const LATE_ARRIVAL_MS: u64 = 10_000;

/// What is counted. The numbers are on the wire and in storage: they stay, and new ones follow, up to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// Visitors who began to wait.
    Joins = 0,
    /// Visitors who had not been counted any more, and wait again.
    Returns = 1,
    /// Users who entered, by the minute of their number.
    NewUsers = 2,
    /// Those of them who had waited.
    Waited = 3,
    /// The seconds that these had waited.
    WaitedSeconds = 4,
    /// Visitors who closed the waiting page.
    GaveUp = 5,
    /// Sessions that the origin ended.
    Revoked = 6,
    /// Requests that went past the room.
    Bypassed = 7,
    /// Users who entered without a number, because no object answered.
    Fallbacks = 8,
    /// Calls to the Counter.
    CounterCalls = 9,
    /// Calls to Anywhere.
    AnywhereCalls = 10,
    /// Calls to the data center.
    DataCenterCalls = 11,
    /// Calls to Global.
    GlobalCalls = 12,
    /// New users of a rehearsal.
    RehearsalNewUsers = 13,
    /// Visitors of a rehearsal who began to wait.
    RehearsalJoins = 14,
    /// Waiting visitors who left without having entered: found out when a minute is recorded.
    Leavers = 15,
    /// Users who entered in another minute than that of their number: one in the minute in which they entered, one less in
    /// the other.
    EnteredBeside = 16,
    /// Of those who began to wait, whom the room let pass because it only observes.
    ObservedJoins = 17,
    /// Waiting visitors who went past the room while it was off: found out as [`Count::Leavers`] are.
    LetPast = 18,
}

impl Count {
    /// The number on the wire.
    pub fn code(self) -> u64 {
        self as u64
    }
}

/// What a check-in has changed. Times are milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing that is counted here.
    Nothing,
    /// A visitor has begun to wait.
    Joined {
        /// When.
        at: u64,
    },
    /// A visitor waits on.
    Waits {
        /// The last check-in that was counted; `None`: had left.
        from: Option<Seen>,
        /// When.
        at: u64,
    },
    /// A user has entered.
    Entered {
        /// When.
        at: u64,
        /// The minute of the number.
        minute: u32,
        /// Whether there was a number.
        numbered: bool,
        /// Whoever had waited: since when at the latest, as far as deduplication remembers, in which bucket, and the last
        /// check-in that was counted.
        waited: Option<(u64, u32, Option<Seen>)>,
    },
    /// An active user was seen.
    Moved {
        /// When before; `None`: had left.
        from: Option<u64>,
        /// When.
        at: u64,
        /// When the user entered, if that is known.
        entered: Option<u64>,
    },
    /// A session was ended.
    Left {
        /// When the user was seen before.
        from: u64,
        /// When.
        at: u64,
        /// When the user entered, if that is known.
        entered: Option<u64>,
    },
    /// A visitor does not wait any longer.
    GaveUp {
        /// When.
        at: u64,
    },
}

/// Counts by minute. Those of a colo only grow, but for `visits`; they can be added up and taken off each other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tallies {
    /// By minute, then by [`Count`], or the class of a time: see [`WAITS`] and [`ENDED`].
    events: SlotCounts,
    /// Users by the minute of their last request, then by the class of the time from entering until then. A
    /// user moves on with each request, and may move from another colo's counts. Whoever has not moved on for a session has
    /// ended the visit there.
    visits: SlotCounts,
}

fn key(minute: u32, code: u64) -> u64 {
    u64::from(minute) * CODES + code
}

impl Tallies {
    /// Counts something in a minute.
    pub fn add(&mut self, minute: u32, count: Count, number: u64) {
        self.add_code(minute, count.code(), number);
    }

    /// The same by its number on the wire.
    pub fn add_code(&mut self, minute: u32, code: u64, number: u64) {
        self.events.add(key(minute, code), number as i64);
    }

    /// Counts what a check-in has changed.
    pub fn note(&mut self, room: &Room, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Joined { at } => self.add(minute_of(at), Count::Joins, 1),
            Change::Waits { from, at } => {
                if !is_waiting(room, from, at) {
                    self.add(minute_of(at), Count::Returns, 1);
                }
            }
            Change::Entered { at, minute, numbered, waited } => {
                self.add(minute, Count::NewUsers, 1);
                if minute != minute_of(at) {
                    self.add(minute_of(at), Count::EnteredBeside, 1);
                    self.events.add(key(minute, Count::EnteredBeside.code()), -1);
                }
                // Where everybody passes nobody needs a number.
                if !numbered && room.queueing_method != QueueingMethod::Passthrough {
                    self.add(minute, Count::Fallbacks, 1);
                }
                if let Some((since, bucket, from)) = waited {
                    let ms = at.saturating_sub(arrival(room, since, bucket));
                    self.add(minute, Count::Waited, 1);
                    self.add(minute, Count::WaitedSeconds, (ms + 500) / 1_000);
                    self.add_code(minute, WAITS + u64::from(class_of(ms)), 1);
                    if !is_waiting(room, from, at) {
                        self.add(minute, Count::Returns, 1);
                    }
                }
                self.visit(at, at, 1);
            }
            Change::Moved { from, at, entered } => {
                let Some(entered) = entered else { return };
                if let Some(from) = from {
                    self.visit(entered, from, -1);
                }
                self.visit(entered, at, 1);
            }
            Change::Left { from, at, entered } => {
                self.add(minute_of(at), Count::Revoked, 1);
                if let Some(entered) = entered {
                    self.visit(entered, from, -1);
                    let ms = at.saturating_sub(entered);
                    self.add_code(minute_of(at), ENDED + u64::from(class_of(ms)), 1);
                }
            }
            Change::GaveUp { at } => self.add(minute_of(at), Count::GaveUp, 1),
        }
    }

    fn visit(&mut self, entered: u64, seen: u64, users: i64) {
        let class = u64::from(class_of(seen.saturating_sub(entered)));
        self.visits.add(key(minute_of(seen), class), users);
    }

    /// How much of something was counted in a minute.
    pub fn of(&self, minute: u32, count: Count) -> i64 {
        self.events.get(key(minute, count.code()))
    }

    /// How much of something was counted after a minute.
    pub fn after(&self, minute: u32, count: Count) -> i64 {
        let counted = self.events.range_from(key(minute + 1, 0));
        counted.filter(|(key, _)| key % CODES == count.code()).map(|(_, number)| number).sum()
    }

    /// How many more users came than were sent away from one minute on until another one.
    pub fn entered(&self, from: u32, until: u32) -> i64 {
        (from..=until).map(|minute| more(|count| self.of(minute, count))).sum()
    }

    /// The same after a minute.
    pub fn entered_after(&self, minute: u32) -> i64 {
        more(|count| self.after(minute, count))
    }

    /// What is counted in the minutes up to one, and was not recorded yet, all together.
    pub fn added_since(&self, recorded: &SlotCounts, until: u32) -> SlotCounts {
        let mut added = SlotCounts::default();
        for (key, number) in self.events.range_from(0).filter(|(key, _)| key / CODES <= u64::from(until)) {
            let more = number - recorded.get(key);
            if more > 0 {
                added.add(key % CODES, more);
            }
        }
        added
    }

    /// Notes that what is counted in the minutes up to one is recorded.
    pub fn recorded(&self, recorded: &mut SlotCounts, until: u32) {
        for (key, number) in self.events.range_from(0).filter(|(key, _)| key / CODES <= u64::from(until)) {
            let more = number - recorded.get(key);
            if more > 0 {
                recorded.add(key, more);
            }
        }
        recorded.forget_before(key(until.saturating_sub(KEPT_MINUTES), 0));
    }

    /// The first minute from one on in which something happened.
    pub fn first_since(&self, minute: u32) -> Option<u32> {
        self.events.range_from(key(minute, 0)).last().map(|(key, _)| (key / CODES) as u32)
    }

    /// Users by the class of their time inside whose last request was in some minutes, added to `counts`.
    pub fn add_visits(&self, after: u32, until: u32, counts: &mut SlotCounts) {
        for class in 0..CLASSES as u64 {
            let of = |minute: u32| self.visits.get(key(minute, class)).max(0);
            let users: i64 = (after + 1..=until).map(of).sum();
            counts.add(ENDED + class, users);
        }
    }

    /// Forgets what nobody asks for any more. `answered`: Global answers.
    pub fn forget(&mut self, room: &Room, answered: bool, now: u64) {
        let kept = if answered { TOLD_MINUTES } else { KEPT_MINUTES };
        let oldest = minute_of(now).saturating_sub(kept);
        self.events.forget_before(key(oldest, 0));
        self.visits.forget_before(key(oldest.saturating_sub(room.session_duration), 0));
    }

    /// Takes off an older state of a colo's tallies and adds the newer one.
    pub fn replace(&mut self, old: &Self, new: &Self) {
        self.events.replace(&old.events, &new.events);
        self.visits.replace(&old.visits, &new.visits);
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.visits.is_empty()
    }
}

/// How many more users came than were sent away, by the minute in which they came.
fn more(of: impl Fn(Count) -> i64) -> i64 {
    of(Count::NewUsers) + of(Count::EnteredBeside) - of(Count::Revoked)
}

/// Whether somebody who was seen last at `from` still counts as waiting.
fn is_waiting(room: &Room, from: Option<Seen>, at: u64) -> bool {
    from.is_some_and(|from| from.slot() >= Seen::from(at.saturating_sub(room.waiting_ms())).slot())
}

/// When somebody came who was first seen at `since`, as far as deduplication remembers. It does not always: after a restart
/// of the data center or in another colo the bucket's minute must do, or rather its middle.
fn arrival(room: &Room, since: u64, bucket: u32) -> u64 {
    let start = start_of(bucket);
    // A bucket that was drawn by lot says nothing.
    let drawn = room.lottery(bucket).is_some();
    if drawn || since < start + MINUTE_MS + LATE_ARRIVAL_MS { since } else { start + MINUTE_MS / 2 }
}
