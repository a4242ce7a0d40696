//! What is wrong with a configuration, in words for its owner.

use std::fmt;

/// What an owner configures with a table of vars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A waiting room, `[vars.ROOM_<NAME>]`.
    Room,
    /// What rooms share, `[vars.DEFAULTS]`.
    Defaults,
    /// A check of the origin's health, `[vars.CHECK_<NAME>]`.
    Check,
    /// An event of a room, `[vars.EVENT_<NAME>]`.
    Event,
    /// Who is told what happens, `[vars.WEBHOOK_<NAME>]`.
    Webhook,
}

impl Part {
    /// What the names of its vars start with.
    pub fn var_prefix(self) -> &'static str {
        match self {
            Self::Room => "ROOM_",
            Self::Defaults => super::DEFAULTS,
            Self::Check => "CHECK_",
            Self::Event => "EVENT_",
            Self::Webhook => "WEBHOOK_",
        }
    }

    /// As texts for the owner call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Defaults => "vars",
            Self::Check => "check",
            Self::Event => "event",
            Self::Webhook => "webhook",
        }
    }
}

/// One thing that is wrong with a room, a check or an event, in words for its owner.
///
/// Displayed in one line: `room shop: queue_all = "yes": must be true or false. Fix: ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong: a room, a check or an event.
    pub part: Part,
    /// Its name, in lower case.
    pub name: String,
    /// The field as it is written in the table (`cookie_attributes.samesite`), `name`, or the var's name when the
    /// var is no table at all.
    pub field: String,
    /// The refused value as JSON, cut to 60 characters; `(not set)` when there is none.
    pub value: String,
    /// What the value must be, or is: goes on after the value.
    pub message: String,
    /// What to do about it: an instruction without a full stop.
    pub fix: String,
    /// The value around the mistake in one line and a mark below the mistake in another, where a value is long; else
    /// empty.
    pub excerpt: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, name, field, value, message, fix, .. } = self;
        write!(formatter, "{} {name}: {field} = {value}: {message}. Fix: {fix}.", part.word())
    }
}

impl std::error::Error for ConfigError {}
