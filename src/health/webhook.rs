//! A notification of the platform's health checks, validated.
//!
//! Fields that the platform does not document are refused, like fields of another type and texts beyond their bounds:
//! whoever may write to a page that the public reads can say nothing there but what the page has a place for.

use serde_json::{Map, Value};

use super::{Reason, Source, StateChange};
use crate::time::milliseconds;

/// A longer body is refused, in bytes.
pub const LONGEST_BODY: usize = 16 * 1_024;
/// A longer value is refused, in characters.
pub const LONGEST_TEXT: usize = 200;
/// The same for the notification's own text, which is not kept.
const LONGEST_MESSAGE: usize = 4_000;
/// Clocks differ; a time further ahead than this is refused, in milliseconds. It would make every later notification a
/// late one.
const AHEAD_MS: u64 = 10 * 60_000;

/// What the text of a webhook's first message begins with, which the platform sends when the webhook is made.
const CREATION_TEST: &str = "Hello World!";
/// The one kind of notification that is meant for us.
const ALERT_TYPE: &str = "health_check_status_notification";

/// What a notification says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// It only tries whether the webhook answers: the test at its creation, or a preview.
    Test,
    /// A check is healthy or unhealthy.
    Change {
        /// The check's name.
        name: String,
        /// What is the matter.
        change: StateChange,
    },
}

/// Why a notification is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status code of the answer.
    pub status: u16,
    /// One sentence that names the field.
    pub message: String,
}

/// Reads the body of a notification that came at `now`.
///
/// # Errors
/// When anything in it is not as the platform documents it.
pub fn read(body: &[u8], now: u64) -> Result<Notice, Refusal> {
    if body.len() > LONGEST_BODY {
        return Err(too_long());
    }
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
        return refuse("The body must be a JSON object");
    };
    let mut text = "";
    let mut data = None;
    for (name, value) in &fields {
        match (name.as_str(), value) {
            ("text", Value::String(value)) if value.chars().count() <= LONGEST_MESSAGE => text = value,
            ("text", _) => {
                return refuse(&format!("\"text\" must be a text of at most {LONGEST_MESSAGE} characters"));
            }
            ("data", Value::Object(value)) => data = Some(value),
            ("data", _) => return refuse("\"data\" must be an object"),
            ("alert_type", value) => {
                if short_text(name, value)? != ALERT_TYPE {
                    return refuse(&format!("\"alert_type\" must be \"{ALERT_TYPE}\""));
                }
            }
            ("ts", value) => {
                if !value.is_number() {
                    return refuse("\"ts\" must be a number");
                }
            }
            (
                "name" | "account_id" | "policy_id" | "policy_name" | "alert_correlation_id" | "alert_event",
                value,
            ) => {
                short_text(name, value)?;
            }
            _ => return unknown(name),
        }
    }
    if text.contains(CREATION_TEST) {
        return Ok(Notice::Test);
    }
    data.map_or_else(|| refuse("\"data\" is missing"), |data| read_data(data, now))
}

/// The answer to a body beyond [`LONGEST_BODY`].
pub fn too_long() -> Refusal {
    Refusal { status: 413, message: format!("The body must be at most {LONGEST_BODY} bytes long") }
}

fn read_data(data: &Map<String, Value>, now: u64) -> Result<Notice, Refusal> {
    let (mut at, mut healthy, mut reason) = (None, None, "");
    let (mut name, mut id) = ("", "");
    let (mut expected_codes, mut actual_code) = (String::new(), None);
    let mut preview = false;
    for (field, value) in data {
        let place = format!("data.{field}");
        match field.as_str() {
            "time" => {
                at = milliseconds(short_text(&place, value)?);
                if at.is_none() {
                    return refuse(
                        "\"data.time\" must be a time such as \"2022-03-03 17:05:00 +0000 UTC\" or \"2022-03-03T17:05:00Z\"",
                    );
                }
            }
            "status" => {
                let status = short_text(&place, value)?;
                healthy = Some(status.eq_ignore_ascii_case("healthy"));
                if healthy == Some(false) && !status.eq_ignore_ascii_case("unhealthy") {
                    return refuse("\"data.status\" must be \"Healthy\" or \"Unhealthy\"");
                }
            }
            "reason" => reason = short_text(&place, value)?,
            "name" => name = short_text(&place, value)?,
            "health_check_id" => id = short_text(&place, value)?,
            "expected_codes" => expected_codes = codes(&place, value)?,
            "actual_code" => actual_code = code(&place, value)?,
            "preview" => match value {
                Value::Bool(value) => preview = *value,
                _ => return refuse("\"data.preview\" must be true or false"),
            },
            _ => return unknown(&place),
        }
    }
    if preview {
        return Ok(Notice::Test);
    }
    let Some(at) = at else { return refuse("\"data.time\" is missing") };
    let Some(healthy) = healthy else { return refuse("\"data.status\" is missing") };
    if at > now.saturating_add(AHEAD_MS) {
        return refuse("\"data.time\" must not lie in the future");
    }
    if name.is_empty() && id.is_empty() {
        return refuse("\"data.name\" is missing");
    }
    let reason = match Reason::of(reason) {
        _ if healthy => Reason::NoFailures,
        Reason::NoFailures => Reason::Other("Other Failure".to_owned()),
        Reason::Other(text) if text.is_empty() => Reason::Other("Other Failure".to_owned()),
        reason => reason,
    };
    let check = Source::Webhook.check_id(if id.is_empty() { name } else { id });
    let name = if name.is_empty() { id } else { name }.to_owned();
    Ok(Notice::Change {
        name,
        change: StateChange { check, healthy, reason, at, expected_codes, actual_code },
    })
}

/// A text within the bounds, without spaces around it.
fn short_text<'a>(field: &str, value: &'a Value) -> Result<&'a str, Refusal> {
    let text = match value {
        Value::String(text) => text.trim(),
        Value::Null => "",
        _ => return refuse(&format!("\"{field}\" must be a text")),
    };
    if text.chars().count() > LONGEST_TEXT || text.chars().any(char::is_control) {
        return refuse(&format!(
            "\"{field}\" must be a text of at most {LONGEST_TEXT} characters, without control characters"
        ));
    }
    Ok(text)
}

/// Expected status codes: a text, a number or a list of these.
fn codes(field: &str, value: &Value) -> Result<String, Refusal> {
    let items = match value {
        Value::Array(items) => items.iter().collect(),
        value => vec![value],
    };
    let mut all = String::new();
    for item in items {
        let number = item.as_u64().map(|number| number.to_string());
        let text = number.as_deref().map_or_else(|| short_text(field, item), Ok)?;
        if !all.is_empty() {
            all.push_str(", ");
        }
        all.push_str(text);
        if all.chars().count() > LONGEST_TEXT {
            return refuse(&format!("\"{field}\" must be at most {LONGEST_TEXT} characters long"));
        }
    }
    Ok(all)
}

/// The status code that came: a number, or a text of one; none is 0, an empty text or null.
fn code(field: &str, value: &Value) -> Result<Option<u16>, Refusal> {
    let number = match value {
        Value::Null => Some(0),
        Value::String(text) if text.trim().is_empty() => Some(0),
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64(),
    };
    match number.and_then(|number| u16::try_from(number).ok()) {
        Some(0) => Ok(None),
        Some(number @ 100..=999) => Ok(Some(number)),
        _ => refuse(&format!("\"{field}\" must be a status code from 100 to 999, or 0 for none")),
    }
}

fn unknown<T>(field: &str) -> Result<T, Refusal> {
    // A name out of a body may be anything.
    let field: String = field.chars().filter(|letter| !letter.is_control()).take(60).collect();
    refuse(&format!("\"{field}\" is not a field of a health check notification"))
}

fn refuse<T>(message: &str) -> Result<T, Refusal> {
    Err(Refusal { status: 400, message: message.to_owned() })
}
