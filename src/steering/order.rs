//! What an operator orders, and why it may be refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

impl Order {
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
                 if_version and dry_run: {error}"
            ),
            errors: Vec::new(),
        })
    }
}
