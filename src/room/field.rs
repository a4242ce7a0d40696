//! What operators may change of a room at run time.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Room;

/// What operators may change of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// Nobody new enters.
    QueueAll,
    /// The room is off.
    Suspended,
    /// How many users may be active at once; where the limits adapt, at most.
    TotalActiveUsers,
    /// How many users may enter in a minute; where the limits adapt, at most.
    NewUsersPerMinute,
    /// Minutes that a user stays active after the last request.
    SessionDuration,
    /// Seconds between two check-ins of a waiting user.
    RefreshIntervalSeconds,
    /// A line for everybody who waits.
    Message,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::QueueAll,
        Self::Suspended,
        Self::TotalActiveUsers,
        Self::NewUsersPerMinute,
        Self::SessionDuration,
        Self::RefreshIntervalSeconds,
        Self::Message,
    ];

    /// The field's name, as owners write it in a room's table.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueAll => "queue_all",
            Self::Suspended => "suspended",
            Self::TotalActiveUsers => "total_active_users",
            Self::NewUsersPerMinute => "new_users_per_minute",
            Self::SessionDuration => "session_duration",
            Self::RefreshIntervalSeconds => "refresh_interval_seconds",
            Self::Message => "message",
        }
    }

    /// The field of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// What a room has there.
    pub fn value(self, room: &Room) -> Value {
        match self {
            Self::QueueAll => room.queue_all.into(),
            Self::Suspended => room.suspended.into(),
            Self::TotalActiveUsers => room.total_active_users.into(),
            Self::NewUsersPerMinute => room.new_users_per_minute.into(),
            Self::SessionDuration => room.session_duration.into(),
            Self::RefreshIntervalSeconds => room.refresh_interval_seconds.into(),
            Self::Message => room.page.message.clone().into(),
        }
    }
}
