//! What is in force, as it travels.

use std::fmt;
use std::sync::Arc;

use litemap::LiteMap;
use serde::de::{DeserializeOwned, Error as _, SeqAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::config::{Field, Kind, steered_fields};
use crate::room::{AdaptiveRange, Room, Share};

/// How many steered fields stand before the events, `unreadable` and the ends on the wire. Those that were added later
/// follow: what travels grows at its end only.
const BEFORE_EVENTS: usize = 7;

/// What operators have changed of a room; a field that is not there is as deployed.
///
/// On the wire each field has its place, by its number in the table of fields, with nothing in it where it is as deployed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// Grows with every change, also with one that clears something; 0: nothing was ever changed.
    pub version: u32,
    /// By the field's name.
    settings: LiteMap<&'static str, Setting>,
    /// By the field's name: when its setting ends by itself, in milliseconds since the epoch. Not there: it does not.
    ends: LiteMap<&'static str, u64>,
    /// Events that start or end at another time.
    pub events: Vec<EventTimes>,
    /// Something of it cannot be read, so nobody new enters: neither by Global, which could not read what is stored, nor
    /// by code that does not know what newer code has added here.
    pub unreadable: bool,
}

/// The value of a steered field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Setting {
    Flag(bool),
    Whole(u32),
    Line(String),
    Share(Share),
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
    settings: LiteMap::new_vec(),
    ends: LiteMap::new_vec(),
    events: Vec::new(),
    unreadable: false,
};

/// Overrides inside a message: bytes of their own, so that they can grow at their end by themselves. What newer code has
/// added there makes them unreadable.
pub mod travelling {
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Overrides;
    use crate::wire::{decode_known, encode};

    /// No overrides are no bytes at all.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(overrides: &Overrides, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return overrides.serialize(serializer);
        }
        let is_none = overrides == Overrides::none();
        let bytes = if is_none { Vec::new() } else { encode(overrides).map_err(S::Error::custom)? };
        bytes.serialize(serializer)
    }

    /// The overrides; none where there are no bytes.
    ///
    /// # Errors
    /// Those of the deserializer; bytes that are no overrides.
    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Overrides, D::Error> {
        if deserializer.is_human_readable() {
            return Overrides::deserialize(deserializer);
        }
        let bytes: Vec<u8> = Vec::deserialize(deserializer)?;
        let (mut overrides, is_more) = decode_known::<Overrides>(&bytes).map_err(D::Error::custom)?;
        overrides.unreadable |= is_more;
        Ok(overrides)
    }
}

impl Setting {
    /// A value of a field; `None` for one of another type.
    fn of(field: &Field, value: &Value) -> Option<Self> {
        match field.kind {
            Kind::Flag { .. } => value.as_bool().map(Self::Flag),
            Kind::Whole { .. } | Kind::Limit { .. } => {
                value.as_u64().and_then(|number| u32::try_from(number).ok()).map(Self::Whole)
            }
            Kind::Choice { names, .. } => {
                let is_known = |name: &&str| names.contains(name);
                value.as_str().filter(is_known).map(|name| Self::Line(name.to_owned()))
            }
            Kind::Share { .. } => value.as_f64().and_then(Share::new).map(Self::Share),
            _ => value.as_str().map(|line| Self::Line(line.to_owned())),
        }
    }

    /// Gives it to a room.
    fn put(&self, field: &Field, room: &mut Room) {
        match (&field.kind, self) {
            (Kind::Flag { at, .. }, Self::Flag(flag)) => *(at.of_mut)(room) = *flag,
            (Kind::Whole { at, .. } | Kind::Limit { at, .. }, Self::Whole(whole)) => {
                *(at.of_mut)(room) = *whole;
            }
            (Kind::Line { at, .. }, Self::Line(line)) => (at.of_mut)(room).clone_from(line),
            (Kind::Share { at }, Self::Share(share)) => *(at.of_mut)(room) = *share,
            (Kind::Choice { names, set, .. }, Self::Line(name)) => {
                // What only newer code knows is the default here, which lets nobody in.
                set(room, names.iter().position(|known| known == name).unwrap_or(0));
            }
            _ => {}
        }
    }
}

impl Overrides {
    /// As deployed.
    pub fn none() -> &'static Self {
        &NONE
    }

    /// Puts a value in; one of another type is passed over. `until`: when it ends by itself. Returns whether it was put in.
    pub(super) fn set(&mut self, field: &Field, value: &Value, until: Option<u64>) -> bool {
        let Some(setting) = Setting::of(field, value) else { return false };
        self.settings.insert(field.name, setting);
        match until {
            Some(until) => self.ends.insert(field.name, until),
            None => self.ends.remove(field.name),
        };
        true
    }

    /// When what is said of a field ends by itself, in milliseconds since the epoch; `None`: it does not.
    pub fn end(&self, name: &str) -> Option<u64> {
        self.ends.get(name).copied()
    }

    /// What is left at a time.
    fn after(&self, time: u64) -> Self {
        let mut left = self.clone();
        left.settings.retain(|name, _| self.end(name).is_none_or(|end| end > time));
        left.ends.retain(|_, end| *end > time);
        left
    }

    /// What is said of a field.
    pub fn setting(&self, name: &str) -> Option<Value> {
        self.settings.get(name).and_then(|setting| serde_json::to_value(setting).ok())
    }

    /// Whether a room is as deployed.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.events.is_empty() && !self.unreadable
    }

    /// The newer of two.
    #[must_use]
    pub fn newer<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.version > self.version { other } else { self }
    }

    /// Changes a room's own fields.
    fn change(&self, room: &mut Room) {
        for field in steered_fields() {
            if let Some(setting) = self.settings.get(field.name) {
                setting.put(field, room);
            }
        }
        room.queue_all |= self.unreadable;
        // What adapts, adapts below what an operator allows.
        room.adaptive = room.adaptive.map(|range| AdaptiveRange {
            least_active_users: range.least_active_users.min(room.total_active_users),
            least_new_users: range.least_new_users.min(room.new_users_per_minute),
            ..range
        });
        room.refresh_interval_max_seconds =
            room.refresh_interval_max_seconds.max(room.refresh_interval_seconds);
    }
}

impl Room {
    /// The room as operators have it, events and all. What an operator says holds in events too. What ends by itself ends
    /// in [`Room::at`].
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
        let end = overrides.ends.values().min();
        room.later = end.map(|end| Arc::new((*end, self.steered(&overrides.after(*end)))));
        room
    }
}

impl Serialize for Overrides {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = serializer.serialize_struct("Overrides", steered_fields().count() + 4)?;
        written.serialize_field("version", &self.version)?;
        for field in steered_fields().take(BEFORE_EVENTS) {
            written.serialize_field(field.name, &self.settings.get(field.name))?;
        }
        written.serialize_field("events", &self.events)?;
        written.serialize_field("unreadable", &self.unreadable)?;
        written.serialize_field("ends", &self.ends.iter().collect::<Vec<_>>())?;
        for field in steered_fields().skip(BEFORE_EVENTS) {
            written.serialize_field(field.name, &self.settings.get(field.name))?;
        }
        written.end()
    }
}

impl<'de> Deserialize<'de> for Overrides {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_tuple(steered_fields().count() + 4, InPlaces);
        }
        let fields: Map<String, Value> = Map::deserialize(deserializer)?;
        let mut overrides = Self { version: part(&fields, "version")?, ..Self::default() };
        overrides.events = part(&fields, "events")?;
        overrides.unreadable = part(&fields, "unreadable")?;
        let ends: Vec<(String, u64)> = part(&fields, "ends")?;
        for field in steered_fields() {
            let end = ends.iter().find(|(name, _)| name == field.name).map(|(_, end)| *end);
            overrides.set(field, fields.get(field.name).unwrap_or(&Value::Null), end);
        }
        Ok(overrides)
    }
}

fn part<T: DeserializeOwned + Default, E: serde::de::Error>(
    fields: &Map<String, Value>,
    name: &str,
) -> Result<T, E> {
    let value = fields.get(name).cloned();
    value.map_or_else(|| Ok(T::default()), serde_json::from_value).map_err(E::custom)
}

/// Reads overrides from the wire, where every value has its place.
struct InPlaces;

impl<'de> Visitor<'de> for InPlaces {
    type Value = Overrides;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("what operators have changed")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut places: A) -> Result<Overrides, A::Error> {
        let mut overrides = Overrides { version: next(&mut places)?, ..Overrides::default() };
        for field in steered_fields().take(BEFORE_EVENTS) {
            overrides.settings.extend(next_setting(field, &mut places)?);
        }
        overrides.events = next(&mut places)?;
        overrides.unreadable = next(&mut places)?;
        let ends: Vec<(String, u64)> = next(&mut places)?;
        for field in steered_fields().skip(BEFORE_EVENTS) {
            overrides.settings.extend(next_setting(field, &mut places)?);
        }
        for field in steered_fields() {
            let end = ends.iter().find(|(name, _)| name == field.name);
            overrides.ends.extend(end.map(|(_, end)| (field.name, *end)));
        }
        Ok(overrides)
    }
}

fn next_setting<'de, A: SeqAccess<'de>>(
    field: &Field,
    places: &mut A,
) -> Result<Option<(&'static str, Setting)>, A::Error> {
    let setting = match field.kind {
        Kind::Flag { .. } => next::<Option<bool>, A>(places)?.map(Setting::Flag),
        Kind::Whole { .. } | Kind::Limit { .. } => next::<Option<u32>, A>(places)?.map(Setting::Whole),
        Kind::Share { .. } => next::<Option<Share>, A>(places)?.map(Setting::Share),
        _ => next::<Option<String>, A>(places)?.map(Setting::Line),
    };
    Ok(setting.map(|setting| (field.name, setting)))
}

fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(places: &mut A) -> Result<T, A::Error> {
    places.next_element()?.ok_or_else(|| A::Error::custom("overrides end too early"))
}
