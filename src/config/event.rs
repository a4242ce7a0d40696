//! Reads events: `EVENT_<NAME>`.

use std::sync::Arc;

use litemap::LiteMap;
use serde_json::{Map, Value};

use super::parse::{ConfigError, Part, Table, parse_room};
use crate::room::{Event, Room};
use crate::time::{MINUTE_MS, milliseconds, rfc3339};

/// The shortest event, in milliseconds.
const SHORTEST_MS: u64 = 60_000;
/// The shortest prequeue, in milliseconds.
const SHORTEST_PREQUEUE_MS: u64 = 300_000;

/// Fields of a room that an event may have other values for, from its prequeue on.
const OF_THE_WAIT: [&str; 5] =
    ["queueing_method", "custom_page_html", "disable_session_renewal", "turnstile_mode", "turnstile_action"];
/// The same, from its start on. Each of the first two only together with the other.
const OF_THE_START: [&str; 3] = ["total_active_users", "new_users_per_minute", "session_duration"];

/// Every field of an event besides those.
const FIELDS: [&str; 7] = [
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

/// One event and the name of its room.
fn parse_event(
    var_name: &str,
    value: &Value,
    rooms: &LiteMap<String, (String, Value)>,
) -> Result<(String, Event), Vec<ConfigError>> {
    let (name, mut table) = Table::open(Part::Event, var_name, value)?;
    let known: Vec<&str> = FIELDS.iter().chain(&OF_THE_WAIT).chain(&OF_THE_START).copied().collect();
    table.unknown(&known);
    let start = table.time("event_start_time", true);
    let end = table.time("event_end_time", true);
    let prequeue = table.time("prequeue_start_time", false);
    let shuffle = table.flag("shuffle_at_event_start");
    if let (Some(start), Some(end)) = (start, end)
        && end < start.saturating_add(SHORTEST_MS)
    {
        table.refuse_time(
            "event_end_time",
            "must be at least a minute after event_start_time",
            "end it later",
        );
    }
    if let (Some(start), Some(prequeue)) = (start, prequeue)
        && start < prequeue.saturating_add(SHORTEST_PREQUEUE_MS)
    {
        let message = "must be at least five minutes before event_start_time";
        table.refuse_time("prequeue_start_time", message, "begin it earlier, or leave it out");
    }
    for (field, time) in [("prequeue_start_time", prequeue), ("event_start_time", start)] {
        if shuffle && time.is_some_and(|time| time % MINUTE_MS != 0) {
            // Places in line are minutes.
            let message = "must be a whole minute with shuffle_at_event_start";
            table.refuse_time(field, message, "write :00 seconds");
        }
    }
    if shuffle && table.get("prequeue_start_time").is_none_or(Value::is_null) {
        let fix = "add prequeue_start_time, or leave shuffle_at_event_start out";
        let message = "needs prequeue_start_time: those who come before the start are shuffled";
        table.refuse("shuffle_at_event_start", &Value::from(true), message, fix);
    }
    let limits = ["total_active_users", "new_users_per_minute"];
    for (field, other) in [(limits[0], limits[1]), (limits[1], limits[0])] {
        if let (Some(given), None) = (table.get(field), table.get(other)) {
            table.refuse(field, given, format!("needs {other} too"), &format!("add {other}, or remove both"));
        }
    }
    let room = table.text("room", "shop").map(str::to_ascii_lowercase);
    if table.get("room").is_none() {
        let fix = "name the room: room = \"shop\" for [vars.ROOM_SHOP]";
        table.refuse_shown("room", "(not set)".to_owned(), "is required".to_owned(), fix);
    }
    let of_room = room.as_ref().and_then(|room| rooms.get(room));
    if let (Some(given), Some(_), None) = (table.get("room"), &room, of_room) {
        let fix = "write the name of a room, or correct that room first";
        table.refuse("room", given, "is not the name of a room that works", fix);
    }
    let description = table.text("description", "the winter sale").unwrap_or_default().to_owned();
    let suspended = table.flag("suspended");
    let mut overrides = Map::new();
    for field in OF_THE_WAIT.iter().chain(&OF_THE_START) {
        // As elsewhere, null is the same as left out.
        if let Some(value) = table.get(field).filter(|value| !value.is_null()) {
            overrides.insert((*field).to_owned(), value.clone());
        }
    }
    let mut errors = std::mem::take(&mut table.errors);
    let (Some(room), Some((room_var, written))) = (room, of_room) else { return Err(errors) };
    let wait: Map<String, Value> = overrides
        .iter()
        .filter(|(field, _)| OF_THE_WAIT.contains(&field.as_str()))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    let fields = with_overrides(written, &overrides);
    let active = read_again(&name, room_var, &fields);
    let prequeueing = read_again(&name, room_var, &with_overrides(written, &wait));
    let (Ok(active), Ok(prequeueing), Some(start), Some(end), true) =
        (&active, &prequeueing, start, end, errors.is_empty())
    else {
        errors.extend(active.err().unwrap_or_default());
        return Err(errors);
    };
    let prequeueing = Room { prequeue: true, ..prequeueing.clone() };
    let active = active.clone();
    let event = Event {
        name,
        start,
        end,
        prequeue,
        dealt: (prequeue, start),
        shuffle,
        suspended,
        description,
        overrides,
        written: fields,
        active,
        prequeueing,
    };
    Ok((room, event))
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
