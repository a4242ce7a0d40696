//! Webhooks: who is told what happens in which rooms.

use serde::Serialize;

use super::choices::choices;

/// The kind of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NewsKind {
    /// Somebody waits because there is no slot.
    QueueingStarted,
    /// Nobody has waited for a while.
    QueueingEnded,
    /// The estimated wait is longer than a webhook's owner wants.
    WaitAbove,
    /// It is shorter again.
    WaitBelow,
    /// The prequeue of an event has begun.
    EventPrequeueStarted,
    /// An event has started.
    EventStarted,
    /// An event is over.
    EventEnded,
    /// The origin is unhealthy.
    OriginUnhealthy,
    /// The origin is healthy again.
    OriginHealthy,
    /// Other limits are in force.
    LimitsChanged,
    /// Somebody has steered the room.
    Steered,
    /// Objects did not answer, and visitors were let in without them.
    FallbackInUse,
    /// Objects have answered for a while.
    FallbackEnded,
    /// There were more users than a limit says.
    LimitExceeded,
}

impl NewsKind {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 14] = [
        (Self::QueueingStarted, "queueing_started"),
        (Self::QueueingEnded, "queueing_ended"),
        (Self::WaitAbove, "wait_above"),
        (Self::WaitBelow, "wait_below"),
        (Self::EventPrequeueStarted, "event_prequeue_started"),
        (Self::EventStarted, "event_started"),
        (Self::EventEnded, "event_ended"),
        (Self::OriginUnhealthy, "origin_unhealthy"),
        (Self::OriginHealthy, "origin_healthy"),
        (Self::LimitsChanged, "limits_changed"),
        (Self::Steered, "steered"),
        (Self::FallbackInUse, "fallback_in_use"),
        (Self::FallbackEnded, "fallback_ended"),
        (Self::LimitExceeded, "limit_exceeded"),
    ];

    /// As it is written in configurations and messages.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

impl Serialize for NewsKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

choices! {
    /// How a receiver wants the body.
    WebhookFormat {
        /// `type`, `timestamp`, `text` and `data`, signed as Standard Webhooks.
        Standard = "standard",
        /// Slack, Mattermost, Rocket.Chat: `text`.
        Slack = "slack",
        /// Discord: `content`.
        Discord = "discord",
        /// Microsoft Teams' workflows: an Adaptive Card.
        Teams = "teams",
        /// Google Chat: `text` and nothing else.
        GoogleChat = "google_chat",
    }
}

/// Who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// What follows `WEBHOOK_` in the var's name, in lower case.
    pub name: String,
    /// Where messages are sent; `None`: the secret `WEBHOOK_URL_<NAME>` says it.
    pub url: Option<String>,
    /// Of which rooms; empty: of all.
    pub rooms: Vec<String>,
    /// What kinds of notifications.
    pub news: Vec<NewsKind>,
    /// A wait to be told of, in minutes.
    pub wait_minutes: Option<u32>,
    /// How the body is written.
    pub format: WebhookFormat,
    /// For its owner.
    pub description: String,
}

impl Webhook {
    /// Whether it is told of a room.
    pub fn hears_of(&self, room: &str) -> bool {
        self.rooms.is_empty() || self.rooms.iter().any(|name| name == room)
    }

    /// The name of the secret that signs its messages.
    pub fn secret_name(&self) -> String {
        format!("WEBHOOK_SECRET_{}", self.name.to_ascii_uppercase())
    }

    /// The name of the secret that says where they are sent, where the table does not.
    pub fn url_secret_name(&self) -> String {
        format!("WEBHOOK_URL_{}", self.name.to_ascii_uppercase())
    }
}
