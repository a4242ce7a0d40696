//! The fields that the API knows by name: those of Cloudflare's clients. All others of a room are in its `anteroom`.

use serde_json::{Map, Value, json};

use super::entry::{Entry, OWN, Rule};
use super::reply::{Code, Problem};
use crate::text::{nearest, one_of};
use crate::time::rfc3339;

/// A field, and what is shown of it where nothing was sent.
pub(super) struct Field {
    pub name: &'static str,
    default: Default,
}

#[derive(Clone, Copy)]
enum Default {
    /// It must be sent.
    Required,
    Text(&'static str),
    Whole(u32),
    Flag(bool),
    List,
    Cookie,
    /// As in the event's room.
    Null,
}

use Default::{Cookie, Flag, List, Null, Required, Text, Whole};

const fn field(name: &'static str, default: Default) -> Field {
    Field { name, default }
}

/// Those of a room besides `name`.
pub(super) const ROOM: &[Field] = &[
    field("host", Required),
    field("total_active_users", Required),
    field("new_users_per_minute", Required),
    field("path", Text("/")),
    field("additional_routes", List),
    field("description", Text("")),
    field("cookie_suffix", Text("")),
    field("cookie_attributes", Cookie),
    field("custom_page_html", Text("")),
    field("default_template_language", Text("en-US")),
    field("session_duration", Whole(5)),
    field("queueing_method", Text("fifo")),
    field("queueing_status_code", Whole(200)),
    field("turnstile_mode", Text("invisible")),
    field("turnstile_action", Text("log")),
    field("queue_all", Flag(false)),
    field("suspended", Flag(false)),
    field("disable_session_renewal", Flag(false)),
    field("json_response_enabled", Flag(false)),
    field("enabled_origin_commands", List),
];

/// Those of an event besides `name`.
pub(super) const EVENT: &[Field] = &[
    field("event_start_time", Required),
    field("event_end_time", Required),
    field("prequeue_start_time", Null),
    field("description", Text("")),
    field("shuffle_at_event_start", Flag(false)),
    field("suspended", Flag(false)),
    field("total_active_users", Null),
    field("new_users_per_minute", Null),
    field("session_duration", Null),
    field("disable_session_renewal", Null),
    field("queueing_method", Null),
    field("custom_page_html", Null),
    field("turnstile_mode", Null),
    field("turnstile_action", Null),
];

/// Those of a rule.
pub(super) const RULE: &[Field] = &[
    field("action", Required),
    field("expression", Required),
    field("description", Text("")),
    field("enabled", Flag(true)),
];

/// What answers have besides, and who sends an answer back says too.
const READ_ONLY: [&str; 7] = [
    "id",
    "created_on",
    "modified_on",
    "next_event_start_time",
    "next_event_prequeue_start_time",
    "version",
    "last_updated",
];

/// The values of Turnstile's fields, which are taken though a room has no site key.
pub(super) const TURNSTILE: [(&str, &[&str]); 2] = [
    ("turnstile_mode", &["off", "invisible", "visible_non_interactive", "visible_managed"]),
    ("turnstile_action", &["log", "infinite_queue"]),
];

impl Default {
    fn value(self) -> Value {
        match self {
            Text(text) => Value::from(text),
            Whole(number) => Value::from(number),
            Flag(flag) => Value::from(flag),
            List => json!([]),
            Cookie => json!({ "samesite": "auto", "secure": "auto" }),
            Required | Null => Value::Null,
        }
    }
}

/// What a field is where nothing was sent.
fn default_of(fields: &[Field], name: &str) -> Value {
    fields.iter().find(|field| field.name == name).map_or(Value::Null, |field| field.default.value())
}

/// Takes what nobody sets out of a body, and says what is not a field.
pub(super) fn known(sent: &mut Map<String, Value>, fields: &[Field], more: &[&str]) -> Vec<Problem> {
    sent.retain(|name, _| !READ_ONLY.contains(&name.as_str()));
    let names: Vec<&str> = fields.iter().map(|field| field.name).chain(more.iter().copied()).collect();
    let unknown = sent.keys().filter(|name| !names.contains(&name.as_str()));
    unknown
        .map(|name| {
            let fix = match nearest(name, &names) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("what only Anteroom has stands in {OWN}"),
            };
            Problem::at(Code::Value, pointer_to(name), format!("{name} is not a field; {fix}"))
        })
        .collect()
}

/// What must be there and is not.
pub(super) fn missing(sent: &Map<String, Value>, fields: &[Field]) -> Vec<Problem> {
    let required = fields.iter().filter(|field| matches!(field.default, Required));
    let absent = required.filter(|field| sent.get(field.name).is_none_or(Value::is_null));
    absent
        .map(|field| {
            Problem::at(Code::Value, pointer_to(field.name), format!("{} is required", field.name))
        })
        .collect()
}

/// A JSON pointer to a field of the body.
pub(super) fn pointer_to(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// What is wrong with Turnstile's fields of a room or an event without a site key.
pub(super) fn judge_turnstile(entry: &Entry) -> Vec<Problem> {
    let wrong = TURNSTILE.iter().filter_map(|(name, values)| {
        let value = entry.get(name)?;
        let is_one = value.as_str().is_some_and(|text| values.iter().any(|known| known.eq_ignore_ascii_case(text)));
        (!is_one).then(|| {
            Problem::at(Code::Value, pointer_to(name), format!("{name} must be {}", one_of(values)))
        })
    });
    wrong.collect()
}

fn shown_fields(sent: &Map<String, Value>, fields: &[Field]) -> Map<String, Value> {
    let value = |field: &Field| {
        let value = sent.get(field.name).filter(|value| !value.is_null());
        value.cloned().unwrap_or_else(|| field.default.value())
    };
    fields.iter().map(|field| (field.name.to_owned(), value(field))).collect()
}

fn shown_entry(entry: &Entry, fields: &[Field]) -> Map<String, Value> {
    let mut shown = shown_fields(&entry.fields, fields);
    shown.insert("id".to_owned(), Value::from(entry.id.as_str()));
    shown.insert("name".to_owned(), Value::from(entry.name.as_str()));
    shown.insert("created_on".to_owned(), Value::from(rfc3339(entry.created)));
    shown.insert("modified_on".to_owned(), Value::from(rfc3339(entry.modified)));
    if let Some(own) = entry.own() {
        shown.insert(OWN.to_owned(), Value::Object(own.clone()));
    }
    shown
}

/// A room as it is answered. `next`: when the next event starts, and its prequeue begins.
pub(super) fn shown_room(entry: &Entry, next: (Value, Value)) -> Value {
    let mut shown = shown_entry(entry, ROOM);
    if let Some(Value::Array(routes)) = shown.get_mut("additional_routes") {
        for route in routes.iter_mut().filter_map(Value::as_object_mut) {
            fill(route, "path", Value::from("/"));
        }
    }
    if let Some(Value::Object(cookie)) = shown.get_mut("cookie_attributes") {
        for name in ["samesite", "secure"] {
            fill(cookie, name, Value::from("auto"));
        }
    }
    shown.insert("next_event_start_time".to_owned(), next.0);
    shown.insert("next_event_prequeue_start_time".to_owned(), next.1);
    if let Some(time) = entry.deleted {
        shown.insert("deleted_on".to_owned(), Value::from(rfc3339(time)));
    }
    Value::Object(shown)
}

fn fill(fields: &mut Map<String, Value>, name: &str, value: Value) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), value);
    }
}

/// An event as it is answered.
pub(super) fn shown_event(entry: &Entry) -> Value {
    Value::Object(shown_entry(entry, EVENT))
}

/// An event with what it inherits from its room.
pub(super) fn shown_details(entry: &Entry, room: &Entry) -> Value {
    let mut shown = shown_entry(entry, EVENT);
    for field in EVENT.iter().filter(|field| matches!(field.default, Null)) {
        let inherited = || {
            let own = room.own().and_then(|own| own.get(field.name)).filter(|value| !value.is_object());
            let value = room.get(field.name).or(own);
            value.cloned().unwrap_or_else(|| default_of(ROOM, field.name))
        };
        fill(&mut shown, field.name, inherited());
    }
    Value::Object(shown)
}

/// A rule as it is answered.
pub(super) fn shown_rule(rule: &Rule) -> Value {
    let mut shown = shown_fields(&rule.fields, RULE);
    shown.insert("id".to_owned(), Value::from(rule.id.as_str()));
    shown.insert("version".to_owned(), Value::from(rule.version.to_string()));
    shown.insert("last_updated".to_owned(), Value::from(rfc3339(rule.modified)));
    Value::Object(shown)
}
