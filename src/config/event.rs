//! Reads events: `EVENT_<NAME>`.

use std::sync::Arc;

use litemap::LiteMap;
use serde_json::{Map, Value};

use super::error::{ConfigError, Part};
use super::fields::{FIELDS, InEvents};
use super::parse::parse_room;
use super::table::Table;
use crate::room::{Event, Room};
use crate::time::{MINUTE_MS, milliseconds, rfc3339};

/// The shortest event, in milliseconds.
const SHORTEST_MS: u64 = 60_000;
/// The shortest prequeue, in milliseconds.
const SHORTEST_PREQUEUE_MS: u64 = 300_000;

/// Every field of an event besides those of its room.
const EVENT_FIELDS: [&str; 7] = [
    "room",
    "event_start_time",
    "event_end_time",
    "prequeue_start_time",
    "shuffle_at_event_start",
    "suspended",
    "description",
];

/// Reads all events and gives them to their rooms. `vars` are the rooms' tables by name. An event with errors is left
/// out; what is wrong is returned.
pub(super) fn give_events(
    events: &LiteMap<String, Value>,
    vars: &LiteMap<String, (String, Value)>,
    rooms: &mut [Room],
) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    let mut given: Vec<(String, Event)> = Vec::new();
    for (var_name, value) in events.iter() {
        match parse_event(var_name, value, vars) {
            Ok((room, event)) => {
                if given.iter().any(|(_, other)| other.name == event.name) {
                    let message = "is the name of another event too: names are compared in lower case";
                    errors.push(error(
                        &event.name,
                        "name",
                        &event.name,
                        message,
                        "rename one of the two vars",
                    ));
                } else {
                    given.push((room, event));
                }
            }
            Err(found) => errors.extend(found),
        }
    }
    given.sort_by_key(|(_, event)| event.begin());
    for room in rooms {
        let mut of_room: Vec<Event> = Vec::new();
        for (_, event) in given.iter().filter(|(of, _)| *of == room.name) {
            let earlier = of_room.iter().rfind(|other| !other.suspended && other.end > event.begin());
            if let Some(earlier) = earlier.filter(|_| !event.suspended) {
                let field = if event.prequeue.is_some() { "prequeue_start_time" } else { "event_start_time" };
                let message = format!("is before the end of event {}", earlier.name);
                let fix = "let one event end before the next one or its prequeue begins";
                let value = rfc3339(event.begin());
                errors.push(error(&event.name, field, &value, &message, fix));
            } else {
                of_room.push(event.clone());
            }
        }
        room.events = Arc::from(of_room);
    }
    errors
}

fn error(event: &str, field: &str, value: &str, message: &str, fix: &str) -> ConfigError {
    ConfigError {
        part: Part::Event,
        name: event.to_owned(),
        field: field.to_owned(),
        value: format!("\"{value}\""),
        message: message.to_owned(),
        fix: fix.to_owned(),
        excerpt: String::new(),
    }
}

/// When an event is, as it is written: what is wrong or missing is `None`.
struct Times {
    start: Option<u64>,
    end: Option<u64>,
    prequeue: Option<u64>,
    shuffle: bool,
}

/// One event and the name of its room.
fn parse_event(
    var_name: &str,
    value: &Value,
    rooms: &LiteMap<String, (String, Value)>,
) -> Result<(String, Event), Vec<ConfigError>> {
    let (name, mut table) = Table::open(Part::Event, var_name, value)?;
    let of_room = FIELDS.iter().filter(|field| field.in_events.is_some()).map(|field| field.name);
    let known: Vec<&str> = EVENT_FIELDS.into_iter().chain(of_room).collect();
    table.unknown(&known);
    let times = table.times();
    table.judge_times(&times);
    table.judge_limits();
    let room = table.room_of_event(rooms);
    let description = table.text("description", "the winter sale").unwrap_or_default().to_owned();
    let suspended = table.flag("suspended");
    let overrides = table.overrides(None);
    let wait = table.overrides(Some(InEvents::FromPrequeue));
    let mut errors = table.errors;
    let Some((room, (room_var, written))) = room else { return Err(errors) };
    let fields = with_overrides(written, &overrides);
    let active = read_again(&name, room_var, &fields);
    let prequeueing = read_again(&name, room_var, &with_overrides(written, &wait));
    let (Ok(active), Ok(prequeueing), Some(start), Some(end), true) =
        (&active, &prequeueing, times.start, times.end, errors.is_empty())
    else {
        errors.extend(active.err().unwrap_or_default());
        return Err(errors);
    };
    let event = Event {
        name,
        start,
        end,
        prequeue: times.prequeue,
        dealt: (times.prequeue, start),
        shuffle: times.shuffle,
        suspended,
        description,
        overrides,
        written: fields,
        active: active.clone(),
        prequeueing: Room { prequeue: true, ..prequeueing.clone() },
    };
    Ok((room, event))
}

impl Event {
    /// The room's fields as they are while the event is active: what is written, and what follows from it.
    pub fn effective(&self) -> Map<String, Value> {
        let mut fields = self.written.clone();
        for field in FIELDS.iter().filter(|field| field.in_events.is_some() || field.steered.is_some()) {
            if let Some(value) = field.value(&self.active) {
                fields.insert(field.name.to_owned(), value);
            }
        }
        fields
    }
}

/// The fields of a room with other values for some of them.
fn with_overrides(written: &Value, overrides: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = written.as_object().cloned().unwrap_or_default();
    let is_range = |field: &str| overrides.get(field).is_some_and(Value::is_object);
    let limits = overrides.contains_key("total_active_users");
    if limits && !is_range("total_active_users") && !is_range("new_users_per_minute") {
        // Plain numbers stay as they are, whatever the origin's health.
        fields.remove("limits");
        fields.remove("origin_slow_ms");
    }
    for (field, value) in overrides {
        fields.insert(field.clone(), value.clone());
    }
    fields
}

/// The room of such fields: it is read once more, so they are what a room's fields may be.
fn read_again(event: &str, room_var: &str, fields: &Map<String, Value>) -> Result<Room, Vec<ConfigError>> {
    parse_room(room_var, &Value::Object(fields.clone())).map_err(|errors| {
        let of_event = |error| ConfigError { part: Part::Event, name: event.to_owned(), ..error };
        errors.into_iter().map(of_event).collect()
    })
}

impl Table<'_> {
    fn times(&mut self) -> Times {
        Times {
            start: self.time("event_start_time", true),
            end: self.time("event_end_time", true),
            prequeue: self.time("prequeue_start_time", false),
            shuffle: self.flag("shuffle_at_event_start"),
        }
    }

    fn judge_times(&mut self, times: &Times) {
        let Times { start, end, prequeue, shuffle } = *times;
        if let (Some(start), Some(end)) = (start, end)
            && end < start.saturating_add(SHORTEST_MS)
        {
            let message = "must be at least a minute after event_start_time";
            self.refuse_time("event_end_time", message, "end it later");
        }
        if let (Some(start), Some(prequeue)) = (start, prequeue)
            && start < prequeue.saturating_add(SHORTEST_PREQUEUE_MS)
        {
            let message = "must be at least five minutes before event_start_time";
            self.refuse_time("prequeue_start_time", message, "begin it earlier, or leave it out");
        }
        for (field, time) in [("prequeue_start_time", prequeue), ("event_start_time", start)] {
            if shuffle && time.is_some_and(|time| time % MINUTE_MS != 0) {
                // Places in line are minutes.
                let message = "must be a whole minute with shuffle_at_event_start";
                self.refuse_time(field, message, "write :00 seconds");
            }
        }
        if shuffle && self.get("prequeue_start_time").is_none_or(Value::is_null) {
            let fix = "add prequeue_start_time, or leave shuffle_at_event_start out";
            let message = "needs prequeue_start_time: those who come before the start are shuffled";
            self.refuse("shuffle_at_event_start", &Value::from(true), message, fix);
        }
    }

    /// An event has both limits or none.
    fn judge_limits(&mut self) {
        let limits = ["total_active_users", "new_users_per_minute"];
        for (field, other) in [(limits[0], limits[1]), (limits[1], limits[0])] {
            if let (Some(given), None) = (self.get(field), self.get(other)) {
                let fix = format!("add {other}, or remove both");
                self.refuse(field, given, format!("needs {other} too"), &fix);
            }
        }
    }

    /// The name of the event's room, and that room's var and fields.
    fn room_of_event<'r>(
        &mut self,
        rooms: &'r LiteMap<String, (String, Value)>,
    ) -> Option<(String, &'r (String, Value))> {
        let room = self.text("room", "shop").map(str::to_ascii_lowercase);
        if self.get("room").is_none() {
            let fix = "name the room: room = \"shop\" for [vars.ROOM_SHOP]";
            self.refuse_shown("room", "(not set)".to_owned(), "is required".to_owned(), fix);
        }
        let room = room?;
        let found = rooms.get(&room);
        if let (Some(given), None) = (self.get("room"), found) {
            let fix = "write the name of a room, or correct that room first";
            self.refuse("room", given, "is not the name of a room that works", fix);
        }
        Some((room, found?))
    }

    /// The room's fields that are written here, all of them or those that hold from some moment on.
    fn overrides(&self, from: Option<InEvents>) -> Map<String, Value> {
        let is_one = |of: InEvents| from.is_none_or(|from| from == of);
        let fields = FIELDS.iter().filter(|field| field.in_events.is_some_and(is_one));
        fields
            // As elsewhere, null is the same as left out.
            .filter_map(|field| Some((field.name, self.get(field.name).filter(|value| !value.is_null())?)))
            .map(|(field, value)| (field.to_owned(), value.clone()))
            .collect()
    }

    /// A time with its offset from UTC, in milliseconds since the epoch.
    fn time(&mut self, field: &str, required: bool) -> Option<u64> {
        let example = format!("{field} = \"2026-11-27T09:00:00+01:00\"");
        let Some(value) = self.get(field).filter(|value| !value.is_null()) else {
            if required {
                let (shown, message) = ("(not set)".to_owned(), "is required".to_owned());
                self.refuse_shown(field, shown, message, &format!("add it, for example {example}"));
            }
            return None;
        };
        let time = value.as_str().filter(|text| has_offset(text)).and_then(milliseconds);
        if time.is_none() {
            let message = "must be a date and time with its offset from UTC, as in RFC 3339";
            self.refuse(field, value, message, &format!("write it like {example}"));
        }
        time
    }

    fn refuse_time(&mut self, field: &str, message: &str, fix: &str) {
        let value = self.get(field).cloned().unwrap_or_default();
        self.refuse(field, &value, message, fix);
    }
}

/// Whether a time ends with `Z` or an offset such as `+01:00`. Without one nobody could tell which time it is.
fn has_offset(text: &str) -> bool {
    let is_offset = |end: &str| {
        let mut bytes = end.bytes();
        matches!(bytes.next(), Some(b'+' | b'-')) && bytes.nth(2) == Some(b':')
    };
    text.get(10..11) == Some("T")
        && (text.ends_with('Z')
            || text.len().checked_sub(6).and_then(|at| text.get(at..)).is_some_and(is_offset))
}
