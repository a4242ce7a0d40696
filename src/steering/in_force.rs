//! What is in force in a room, who said so, and what was deployed then.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EventTimes, Field, FieldError, Order, Overrides, Refusal};
use crate::config::{ConfigError, check_steered};
use crate::room::{Event, Room};
use crate::time::MINUTE_MS;

/// What operators have changed of a room, as its Global object stores it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Steering {
    /// Grows with every change; 0: nothing was ever changed.
    pub version: u32,
    /// By field.
    pub fields: BTreeMap<Field, Change>,
    /// By the event's name.
    #[serde(default)]
    pub events: BTreeMap<String, EventChange>,
}

/// One field's override.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What is in force.
    pub value: Value,
    /// What was deployed when an operator last looked at it: at the change, or when it was kept.
    pub deployed_then: Value,
    /// Whose token ordered it.
    pub by: String,
    /// When, in milliseconds since the epoch.
    pub at: u64,
}

/// One event's other times, in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EventChange {
    /// When it starts; `None`: as deployed.
    pub start: Option<u64>,
    /// When it is over; `None`: as deployed.
    pub end: Option<u64>,
    /// Whose token ordered it.
    pub by: String,
    /// When.
    pub at: u64,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When, in milliseconds since the epoch.
    pub at: u64,
    /// Whose token ordered it.
    pub by: String,
    /// `set`, `clear`, `keep` or `event`.
    pub kind: String,
    /// The field, or `events.sale`.
    pub field: String,
    /// What was in force before; of an event its times.
    pub before: Value,
    /// What is in force now.
    pub after: Value,
    /// What is deployed.
    pub deployed: Value,
}

impl Steering {
    /// What travels.
    pub fn overrides(&self) -> Overrides {
        let mut overrides = Overrides { version: self.version, ..Overrides::default() };
        for (field, change) in &self.fields {
            overrides.set(*field, &change.value);
        }
        overrides.events = self
            .events
            .iter()
            .map(|(name, change)| EventTimes { name: name.clone(), start: change.start, end: change.end })
            .collect();
        overrides
    }

    /// Does what an operator orders, at `now` in milliseconds since the epoch. `deployed` is the room as it is deployed,
    /// `by` the name of the operator's token. Returns what has changed; nothing, when all of it was in force already.
    ///
    /// # Errors
    /// Every value that a deploy would refuse; an event that cannot start or end; another version than the operator has
    /// seen. Nothing is changed then.
    pub fn obey(
        &mut self,
        deployed: &Room,
        order: &Order,
        by: &str,
        now: u64,
    ) -> Result<Vec<AuditEntry>, Refusal> {
        if let Some(seen) = order.if_version.filter(|seen| *seen != self.version) {
            return Err(Refusal {
                status: 409,
                error: format!(
                    "Somebody has changed the room since: version {} is in force, and the order was made for version \
                     {seen}. Look at it again",
                    self.version
                ),
                errors: Vec::new(),
            });
        }
        let mut next = self.clone();
        let mut errors: Vec<FieldError> =
            check_steered(&deployed.name, &order.set).into_iter().map(FieldError::from).collect();
        let mut log = Vec::new();
        let mut note = |kind: &str, field: String, [before, after, deployed]: [Value; 3]| {
            log.push(AuditEntry {
                at: now,
                by: by.to_owned(),
                kind: kind.to_owned(),
                field,
                before,
                after,
                deployed,
            });
        };
        for (name, value) in &order.set {
            let Some(field) = Field::of_name(name) else { continue };
            let of_room = field.value(deployed);
            let before = next.fields.get(&field).map(|change| change.value.clone());
            if before.as_ref() == Some(value) {
                continue;
            }
            let change =
                Change { value: value.clone(), deployed_then: of_room.clone(), by: by.to_owned(), at: now };
            next.fields.insert(field, change);
            note("set", name.clone(), [before.unwrap_or_else(|| of_room.clone()), value.clone(), of_room]);
        }
        for (names, clears) in [(&order.clear, true), (&order.keep, false)] {
            for name in names {
                let Some(field) = Field::of_name(name) else {
                    errors.push(unknown(name));
                    continue;
                };
                let of_room = field.value(deployed);
                if order.set.contains_key(name) || !clears && order.clear.contains(name) {
                    errors.push(FieldError {
                        field: name.clone(),
                        value: Value::from(name.as_str()).to_string(),
                        message: "can be in one of set, clear and keep only".to_owned(),
                        fix: "leave it out of the others".to_owned(),
                    });
                } else if clears && let Some(change) = next.fields.remove(&field) {
                    note("clear", name.clone(), [change.value, of_room.clone(), of_room]);
                } else if !clears
                    && let Some(change) =
                        next.fields.get_mut(&field).filter(|change| change.deployed_then != of_room)
                {
                    change.deployed_then = of_room.clone();
                    note("keep", name.clone(), [change.value.clone(), change.value.clone(), of_room]);
                }
            }
        }
        for (name, what) in &order.events {
            match next.order_event(deployed, name, what, by, now) {
                Ok(Some(values)) => note("event", format!("events.{name}"), values),
                Ok(None) => {}
                Err((message, fix)) => errors.push(FieldError {
                    field: format!("events.{name}"),
                    value: what.to_string(),
                    message,
                    fix,
                }),
            }
        }
        if !errors.is_empty() {
            let error = "Nothing was changed: see errors".to_owned();
            return Err(Refusal { status: 400, error, errors });
        }
        if !log.is_empty() {
            next.version = self.version + 1;
            *self = next;
        }
        Ok(log)
    }

    /// Starts or ends an event now, or lets it be as deployed. Returns its times before, after, and as deployed.
    fn order_event(
        &mut self,
        deployed: &Room,
        name: &str,
        what: &Value,
        by: &str,
        now: u64,
    ) -> Result<Option<[Value; 3]>, (String, String)> {
        let refuse = |message: &str, fix: &str| Err((message.to_owned(), fix.to_owned()));
        let room = deployed.steered(&self.overrides());
        let find = |room: &Room| room.events.iter().find(|event| event.name == name).cloned();
        let (Some(original), Some(event)) = (find(deployed), find(&room)) else {
            // What was ordered of an event that is gone can still be forgotten.
            if what.as_str() == Some("clear") && self.events.remove(name).is_some() {
                return Ok(Some([Value::Null, Value::Null, Value::Null]));
            }
            return refuse("is no event of this room", "name one of [vars.EVENT_<NAME>] that is deployed");
        };
        let mut change = self.events.get(name).cloned().unwrap_or_default();
        change = EventChange { by: by.to_owned(), at: now, ..change };
        match what.as_str() {
            Some("start") => {
                if event.suspended {
                    return refuse("is suspended", "deploy it with suspended = false first");
                }
                if now >= event.end {
                    return refuse(
                        "is over",
                        "clear it if an operator has ended it, or deploy it with another end",
                    );
                }
                if now >= event.start {
                    return Ok(None);
                }
                let on = room.events.iter().find(|other| {
                    other.name != name && !other.suspended && (other.begin()..other.end).contains(&now)
                });
                if let Some(other) = on {
                    let fix = format!("end {} first", other.name);
                    return Err((format!("cannot start while event {} is on", other.name), fix));
                }
                // Places in line are minutes: whoever comes in this one stands behind those who were dealt.
                change.start = Some(if event.shuffle { now - now % MINUTE_MS } else { now });
            }
            Some("end") => {
                if now >= event.end {
                    return Ok(None);
                }
                if now < event.begin() {
                    return refuse(
                        "has not begun",
                        "deploy it with suspended = true, or wait until it begins",
                    );
                }
                change.end = Some(now);
            }
            Some("clear") => {
                return Ok(self.events.remove(name).map(|_| {
                    let of_room = times(&original);
                    [times(&event), of_room.clone(), of_room]
                }));
            }
            _ => return refuse("must be start, end or clear", "write {\"events\":{\"sale\":\"start\"}}"),
        }
        let after = EventTimes { name: name.to_owned(), start: change.start, end: change.end };
        self.events.insert(name.to_owned(), change);
        let after = serde_json::json!({
            "start": after.start.unwrap_or(original.start),
            "end": after.end.unwrap_or(original.end),
        });
        Ok(Some([times(&event), after, times(&original)]))
    }
}

fn times(event: &Event) -> Value {
    serde_json::json!({ "start": event.start, "end": event.end })
}

fn unknown(name: &str) -> FieldError {
    let fields: Vec<&str> = Field::ALL.into_iter().map(Field::name).collect();
    FieldError {
        field: name.to_owned(),
        value: Value::from(name).to_string(),
        message: "is not a field that can be steered".to_owned(),
        fix: format!("the fields are {}", fields.join(", ")),
    }
}

impl From<ConfigError> for FieldError {
    fn from(error: ConfigError) -> Self {
        let ConfigError { field, value, message, fix, .. } = error;
        Self { field, value, message, fix }
    }
}
