//! What is known at one moment.

use serde_json::{Map, Value};

use crate::admission::{StateKey, estimated_wait_seconds};
use crate::room::{Limits, Mode, Phase, QueueingMethod, Room};

/// What Global knows of the origin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The limits that its load leaves, in the range that the owner gave; without such a range the room's own.
    pub limits: Option<Limits>,
    /// Whether new users wait for it.
    pub held: bool,
    /// Whether what passes through the room says that it is down.
    pub down: bool,
    /// The checks that say that it is unhealthy, and since when, in milliseconds since the epoch.
    pub unhealthy: Vec<(String, u64)>,
}

/// What Global knows when it looks for notifications.
#[derive(Debug, Clone)]
pub struct Observation<'a> {
    /// When, in milliseconds since the epoch.
    pub now: u64,
    /// The room as it is now.
    pub room: &'a Room,
    /// Where it is in its events.
    pub phase: Phase<'a>,
    /// Active users.
    pub active: i64,
    /// The minute of `new_users`, since the epoch.
    pub minute: u32,
    /// Users who entered in it.
    pub new_users: i64,
    /// How many more may enter now.
    pub slots: i64,
    /// Users who wait.
    pub waiting: i64,
    /// Those of them who will probably check in again.
    pub present: i64,
    /// How long the youngest of them will wait, in seconds; 0: nobody waits; `None`: not known.
    pub wait_seconds: Option<u64>,
    /// What is known of the origin.
    pub origin: Origin,
    /// Visitors who were let in without an object's answer, in the last minutes.
    pub fallbacks: u64,
    /// The version of what operators have changed at run time.
    pub steering: u64,
    /// Waits that somebody wants a notification of, in minutes.
    pub thresholds: &'a [u32],
}

impl<'a> Observation<'a> {
    /// What a state key of Global tells, made a moment ago, and what Global knows besides it.
    pub fn of(room: &'a Room, phase: Phase<'a>, key: &StateKey, origin: Origin, now: u64) -> Self {
        let limits = key.limits(room);
        let new_users = key.admitted + key.unnumbered;
        let free = i64::from(limits.total_active_users) - key.active;
        let left = i64::from(limits.new_users_per_minute) - new_users;
        let closed = room.is_closed() || key.held;
        let present = key.present_ahead(None);
        let youngest = key.waiting.last().filter(|_| present > 0);
        // Where everybody enters, whoever does so has no number.
        let lets_in = room.queueing_method == QueueingMethod::Passthrough;
        Self {
            now,
            room,
            phase,
            active: key.active,
            minute: key.minute,
            new_users,
            slots: if closed { 0 } else { free.min(left).max(0) },
            waiting: key.waiting_users(),
            present,
            wait_seconds: youngest.map_or(Some(0), |(bucket, _)| {
                estimated_wait_seconds(room, key, *bucket, room.refresh_interval_seconds, now)
            }),
            origin,
            fallbacks: if lets_in { 0 } else { key.unnumbered.max(0) as u64 },
            steering: 0,
            thresholds: &[],
        }
    }

    /// Whether somebody waits because there is no slot.
    pub(super) fn is_queueing(&self) -> bool {
        self.present > 0 && self.slots < self.present
    }

    /// The limits, without what is held back while the origin is unhealthy.
    pub(super) fn limits(&self) -> Limits {
        self.origin.limits.unwrap_or_else(|| self.room.limits())
    }

    /// The figures that go with all notifications.
    pub(super) fn figures(&self) -> Map<String, Value> {
        let limits = self.limits();
        let mut figures = Map::new();
        for (name, figure) in [
            ("active_users", self.active),
            ("total_active_users", limits.total_active_users.into()),
            ("new_users_this_minute", self.new_users),
            ("new_users_per_minute", limits.new_users_per_minute.into()),
            ("slots", self.slots),
            ("waiting_users", self.waiting),
        ] {
            figures.insert(name.to_owned(), figure.into());
        }
        figures.insert("wait_seconds".to_owned(), self.wait_seconds.into());
        if self.room.mode == Mode::Observe {
            figures.insert("observing".to_owned(), true.into());
        }
        figures
    }
}
