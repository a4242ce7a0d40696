//! What operators have changed, as it is stored: JSON, read field by field.
//!
//! What this code cannot read (newer code has written it, or it is broken) is kept as it is and written back with the
//! rest. An operator's order is not lost by that, and the room never opens because of it: what is in force of it is what
//! a data center was told last, and else the room is closed to new users. The only exception is what its writer has
//! marked as `optional`: ignoring it lets nobody in.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::in_force::steered;
use super::{Change, EventChange, Overrides, Steering};
use crate::room::Mode;
use crate::wire::{self, WireError};

/// The name of all that is stored, where nothing of it can be read.
pub(super) const EVERYTHING: &str = "everything";
/// The fields that decide whether anybody new enters.
const QUEUE_ALL: &str = "queue_all";
/// See [`QUEUE_ALL`].
const SUSPENDED: &str = "suspended";
/// See [`QUEUE_ALL`].
const MODE: &str = "mode";
/// The member that says the version; without it, it is 1.
const VERSION: &str = "v";

/// Turns one version of what is stored into the next; `None`: it is not of that version.
pub type Migration = fn(Map<String, Value>) -> Option<Map<String, Value>>;

/// The first one makes version 2 of version 1, the next one version 3, and so on.
const MIGRATIONS: &[Migration] = &[];

/// Reads the version, and does the migrations from there; `None`: newer code has written it, or it is broken.
pub fn migrate(mut stored: Map<String, Value>, migrations: &[Migration]) -> Option<Map<String, Value>> {
    let version = stored.remove(VERSION).map_or(Some(1), |version| version.as_u64())?;
    let done = usize::try_from(version.checked_sub(1)?).ok().filter(|done| *done <= migrations.len())?;
    migrations.iter().skip(done).try_fold(stored, |stored, migration| migration(stored))
}

/// What is stored and cannot be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Unread {
    /// The version of what is stored; where nothing could be read, the least that it can be.
    version: u32,
    /// All of it.
    everything: Option<Vec<u8>>,
    fields: Map<String, Value>,
    pub(super) events: Map<String, Value>,
    others: Map<String, Value>,
}

/// What operators are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadView {
    /// What cannot be read: fields, events (`events.sale`), other parts, or `everything`. An operator can clear it.
    pub names: Vec<String>,
    /// What is in force instead.
    pub effect: UnreadEffect,
}

impl fmt::Display for UnreadView {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.names.join(", "))
    }
}

/// What is in force where something cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnreadEffect {
    /// Nobody new enters.
    Closed,
    /// What data centers were told last.
    LastKnown,
    /// Nothing: it may be ignored.
    Ignored,
}

impl Unread {
    fn names(&self) -> Vec<String> {
        let everything = self.everything.iter().map(|_| EVERYTHING.to_owned());
        let events = self.events.keys().map(|name| format!("events.{name}"));
        everything
            .chain(self.fields.keys().cloned())
            .chain(events)
            .chain(self.others.keys().cloned())
            .collect()
    }

    /// Whether it may not be ignored.
    fn is_binding(&self) -> bool {
        let mut parts = self.fields.values().chain(self.events.values()).chain(self.others.values());
        self.everything.is_some()
            || parts.any(|part| part.get("optional").and_then(Value::as_bool) != Some(true))
    }

    /// Whether this code does not even know what it is about. Then no data center with this code can tell.
    fn is_unknown(&self) -> bool {
        !self.others.is_empty() || self.fields.keys().any(|name| steered(name).is_none())
    }

    /// Forgets a part, by its name.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        match name.strip_prefix("events.") {
            Some(event) => self.events.remove(event),
            None => self.fields.remove(name).or_else(|| self.others.remove(name)),
        }
    }

    pub(super) fn take_everything(&mut self) -> Option<Vec<u8>> {
        self.everything.take()
    }

    pub(super) fn is_everything(&self) -> bool {
        self.everything.is_some()
    }
}

impl Steering {
    /// From what is stored, whatever it is.
    pub fn read(stored: &[u8]) -> Self {
        let text = wire::decode::<String>(stored).ok();
        let parts = text.and_then(|text| serde_json::from_str(&text).ok());
        parts.and_then(|parts| Self::from_parts(migrate(parts, MIGRATIONS)?)).unwrap_or_else(|| Self {
            unread: Unread { everything: Some(stored.to_vec()), ..Unread::default() },
            ..Self::default()
        })
    }

    fn from_parts(mut parts: Map<String, Value>) -> Option<Self> {
        let mut steering =
            Self { version: u32::try_from(parts.remove("version")?.as_u64()?).ok()?, ..Self::default() };
        steering.unread.version = steering.version;
        let Value::Object(fields) = parts.remove("fields")? else { return None };
        for (name, stored) in fields {
            let change = Change::deserialize(&stored).ok();
            match (steered(&name), change) {
                (Some(field), Some(change)) if Overrides::default().set(field, &change.value, None) => {
                    steering.fields.insert(name, change);
                }
                _ => {
                    steering.unread.fields.insert(name, stored);
                }
            }
        }
        let Value::Object(events) = parts.remove("events").unwrap_or_else(|| Map::new().into()) else {
            return None;
        };
        for (name, stored) in events {
            if let Ok(change) = EventChange::deserialize(&stored) {
                steering.events.insert(name, change);
            } else {
                steering.unread.events.insert(name, stored);
            }
        }
        steering.unread.others = parts;
        Some(steering)
    }

    /// What to store: also what could not be read, as it was.
    ///
    /// # Errors
    /// None of its values makes one.
    pub fn write(&self) -> Result<Vec<u8>, WireError> {
        if let Some(everything) = &self.unread.everything {
            return Ok(everything.clone());
        }
        let Ok(Value::Object(mut parts)) = serde_json::to_value(self) else { return Err(WireError) };
        for (name, unread) in [("fields", &self.unread.fields), ("events", &self.unread.events)] {
            if let Some(Value::Object(known)) = parts.get_mut(name) {
                known.extend(unread.clone());
            }
        }
        parts.extend(self.unread.others.clone());
        if !MIGRATIONS.is_empty() {
            parts.insert(VERSION.to_owned(), (1 + MIGRATIONS.len()).into());
        }
        wire::encode(&Value::Object(parts).to_string())
    }

    /// Where nothing could be read: some data center was told this version, or it was noted elsewhere. What is older does not
    /// take its place.
    pub fn require(&mut self, version: u32) {
        if self.unread.is_everything() {
            self.unread.version = self.unread.version.max(version);
        }
    }

    /// Learns of a data center what it was told last. Returns whether that is in force now in the place of what could not
    /// be read.
    pub fn learn(&mut self, told: &Overrides) -> bool {
        let known = self.last_known.as_ref().map_or(0, |known| known.version);
        let is_new = told.version > known && told.version >= self.unread.version;
        if told.unreadable || !is_new || !self.unread.is_binding() {
            return false;
        }
        self.last_known = Some(told.clone());
        true
    }

    /// Gives what is in force a version of its own, where data centers were `told` a newer one than what is stored: newer
    /// code was here, or could not read what is stored. Else some would take the one for the other.
    pub fn be_newer_than(&mut self, told: u32) {
        let last_known = self.last_known.as_ref().map_or(0, |known| known.version);
        self.version = self.version.max(self.unread.version).max(last_known);
        if told > self.version || self.overrides().unreadable {
            self.version = self.version.max(told) + 1;
        }
    }

    /// Puts in the place of what could not be read what is known instead, or closes the room to new users.
    pub(super) fn mend(&self, overrides: &mut Overrides) {
        if !self.unread.is_binding() {
            return;
        }
        if let Some(known) = &self.last_known {
            if self.unread.is_everything() {
                overrides.clone_from(known);
                overrides.version = self.version;
                return;
            }
            for name in self.unread.fields.keys() {
                if let (Some(field), Some(value)) = (steered(name), known.setting(name)) {
                    overrides.set(field, &value, known.end(name));
                }
            }
            let events = known.events.iter().filter(|event| self.unread.events.contains_key(&event.name));
            overrides.events.extend(events.cloned());
        }
        if self.last_known.is_none() || self.unread.is_unknown() {
            overrides.unreadable = true;
            // Older code goes by these.
            for (name, value) in [
                (QUEUE_ALL, Value::from(true)),
                (SUSPENDED, Value::from(false)),
                (MODE, Value::from(Mode::Enforce.name())),
            ] {
                // Whether an operator has switched the room on may not be known.
                let is_unknown = self.unread.is_everything() || self.unread.fields.contains_key(name);
                if let Some(field) = steered(name).filter(|_| is_unknown || name == QUEUE_ALL) {
                    overrides.set(field, &value, None);
                }
            }
        }
    }

    /// What cannot be read, for operators; `None`: all is read.
    pub fn unread(&self) -> Option<UnreadView> {
        let names = self.unread.names();
        let effect = if self.overrides().unreadable {
            UnreadEffect::Closed
        } else if self.unread.is_binding() {
            UnreadEffect::LastKnown
        } else {
            UnreadEffect::Ignored
        };
        (!names.is_empty()).then_some(UnreadView { names, effect })
    }
}
