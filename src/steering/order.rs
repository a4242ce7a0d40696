//! What an operator orders, and why it may be refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::time::milliseconds;

/// An operator's order. Every part may be left out; all of it is done, or nothing.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Order {
    /// Fields and their new values.
    pub set: Map<String, Value>,
    /// Fields that are to be as deployed again.
    pub clear: Vec<String>,
    /// Fields whose override stays, though what is deployed has changed since.
    pub keep: Vec<String>,
    /// By event: `start` or `end` it now, or `clear`: its times are as deployed again.
    pub events: Map<String, Value>,
    /// When what is set ends by itself: milliseconds since the epoch, RFC 3339, or a duration such as `30m`; at most a year
    /// ahead. Left out: it holds until it is cleared.
    pub until: Option<Value>,
    /// Why, for the log: up to 200 characters in one line.
    pub reason: String,
    /// The version that the operator has seen: when another one is in force, nothing is done.
    pub if_version: Option<u32>,
    /// Nothing is done: the answer is what would be in force.
    pub dry_run: bool,
}

/// What is wrong with one value, as the check before a deploy says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// The field, or `events.sale` for an event.
    pub field: String,
    /// The refused value as JSON.
    pub value: String,
    /// What the value must be: goes on after the value.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The status code of the answer: 400 or 409.
    #[serde(skip)]
    pub status: u16,
    /// One sentence.
    pub error: String,
    /// Per field, where fields are wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// The longest that an override may hold by its `until`, in milliseconds: a year.
const LONGEST_MS: u64 = 366 * 86_400_000;
/// The most characters that a reason may have.
const LONGEST_REASON: usize = 200;

impl Order {
    /// When what is set ends by itself, in milliseconds since the epoch; `None`: it does not. `now` is the same.
    ///
    /// # Errors
    /// When it is no such time, or nothing is set.
    pub(super) fn ends(&self, now: u64) -> Result<Option<u64>, FieldError> {
        let Some(until) = &self.until else { return Ok(None) };
        let from_text = |text: &str| {
            let ahead = || humantime::parse_duration(text).ok();
            milliseconds(text).or_else(|| now.checked_add(u64::try_from(ahead()?.as_millis()).ok()?))
        };
        let time = until.as_u64().or_else(|| from_text(until.as_str()?));
        match time.filter(|time| (now + 1..=now + LONGEST_MS).contains(time)) {
            Some(time) if !self.set.is_empty() => Ok(Some(time)),
            Some(_) => Err(wrong("until", until, "goes only with set", "set a field, or leave it out")),
            None => Err(wrong(
                "until",
                until,
                "must be a time to come, at most a year ahead",
                "write a time such as 2026-11-27T18:00:00Z, or a duration such as 30m",
            )),
        }
    }

    /// What is wrong with the reason, if something is.
    pub(super) fn wrong_reason(&self) -> Option<FieldError> {
        let is_line = !self.reason.chars().any(char::is_control);
        (!is_line || self.reason.chars().count() > LONGEST_REASON).then(|| {
            let message = format!("must be one line of at most {LONGEST_REASON} characters");
            wrong("reason", &self.reason.as_str().into(), &message, "shorten it")
        })
    }

    /// Reads an order from JSON.
    ///
    /// # Errors
    /// When it is no such order.
    pub fn read(body: &str) -> Result<Self, Refusal> {
        // A list would be read as the fields in their order.
        let fields: serde_json::Result<Map<String, Value>> = serde_json::from_str(body);
        let order = fields.and_then(|fields| serde_json::from_value(Value::Object(fields)));
        order.map_err(|error| Refusal {
            status: 400,
            error: format!(
                "The body must be JSON such as {{\"set\":{{\"queue_all\":true}}}}, with set, clear, keep, events, \
                 until, reason, if_version and dry_run: {error}"
            ),
            errors: Vec::new(),
        })
    }
}

fn wrong(field: &str, value: &Value, message: &str, fix: &str) -> FieldError {
    let (value, message) = (value.to_string(), message.to_owned());
    FieldError { field: field.to_owned(), value, message, fix: fix.to_owned() }
}
