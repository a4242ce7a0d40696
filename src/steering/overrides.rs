//! What is in force, as it travels.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::room::Field;
use crate::room::{AdaptiveRange, Room};

/// What operators have changed of a room: `None` is as deployed.
///
/// It grows at its end only: it travels inside the state key, in bytes of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Overrides {
    /// Grows with every change, also with one that clears something; 0: nothing was ever changed.
    pub version: u32,
    /// See [`Field`].
    pub queue_all: Option<bool>,
    /// See [`Field`].
    pub suspended: Option<bool>,
    /// See [`Field`].
    pub total_active_users: Option<u32>,
    /// See [`Field`].
    pub new_users_per_minute: Option<u32>,
    /// See [`Field`].
    pub session_duration: Option<u32>,
    /// See [`Field`].
    pub refresh_interval_seconds: Option<u32>,
    /// See [`Field`].
    pub message: Option<String>,
    /// Events that start or end at another time.
    pub events: Vec<EventTimes>,
}

/// When an event starts and ends, in milliseconds since the epoch; `None` is as deployed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EventTimes {
    /// The event's name.
    pub name: String,
    /// When it starts.
    pub start: Option<u64>,
    /// When it is over.
    pub end: Option<u64>,
}

static NONE: Overrides = Overrides {
    version: 0,
    queue_all: None,
    suspended: None,
    total_active_users: None,
    new_users_per_minute: None,
    session_duration: None,
    refresh_interval_seconds: None,
    message: None,
    events: Vec::new(),
};

impl Overrides {
    /// As deployed.
    pub fn none() -> &'static Self {
        &NONE
    }

    /// Puts a value in; one of another type is passed over.
    pub(super) fn set(&mut self, field: Field, value: &Value) {
        let flag = value.as_bool();
        let whole = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match field {
            Field::QueueAll => self.queue_all = flag,
            Field::Suspended => self.suspended = flag,
            Field::TotalActiveUsers => self.total_active_users = whole,
            Field::NewUsersPerMinute => self.new_users_per_minute = whole,
            Field::SessionDuration => self.session_duration = whole,
            Field::RefreshIntervalSeconds => self.refresh_interval_seconds = whole,
            Field::Message => self.message = value.as_str().map(str::to_owned),
        }
    }

    /// Whether a room is as deployed.
    pub fn is_empty(&self) -> bool {
        *self == Self { version: self.version, ..Self::default() }
    }

    /// The newer of two.
    #[must_use]
    pub fn newer<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.version > self.version { other } else { self }
    }

    /// Changes a room's own fields.
    fn change(&self, room: &mut Room) {
        room.queue_all = self.queue_all.unwrap_or(room.queue_all);
        room.suspended = self.suspended.unwrap_or(room.suspended);
        room.total_active_users = self.total_active_users.unwrap_or(room.total_active_users);
        room.new_users_per_minute = self.new_users_per_minute.unwrap_or(room.new_users_per_minute);
        // What adapts, adapts below what an operator allows.
        room.adaptive = room.adaptive.map(|range| AdaptiveRange {
            least_active_users: range.least_active_users.min(room.total_active_users),
            least_new_users: range.least_new_users.min(room.new_users_per_minute),
            ..range
        });
        room.session_duration = self.session_duration.unwrap_or(room.session_duration);
        if let Some(seconds) = self.refresh_interval_seconds {
            room.refresh_interval_seconds = seconds;
            room.refresh_interval_max_seconds = room.refresh_interval_max_seconds.max(seconds);
        }
        if let Some(message) = &self.message {
            room.page.message.clone_from(message);
        }
    }
}

impl Room {
    /// The room as operators have it, events and all. What an operator says holds in events too.
    #[must_use]
    pub fn steered(&self, overrides: &Overrides) -> Self {
        let mut room = self.clone();
        if overrides.is_empty() {
            return room;
        }
        overrides.change(&mut room);
        room.events = room
            .events
            .iter()
            .map(|event| {
                let times = overrides.events.iter().find(|times| times.name == event.name);
                event.steered(
                    times.and_then(|times| times.start),
                    times.and_then(|times| times.end),
                    |room| {
                        overrides.change(room);
                    },
                )
            })
            .collect();
        room
    }
}
