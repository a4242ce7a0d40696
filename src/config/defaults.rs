//! What rooms share, written once: `[vars.DEFAULTS]`.

use serde_json::{Map, Value};

use super::error::{ConfigError, Part};
use crate::text::shown;

/// The var's name.
pub const DEFAULTS: &str = "DEFAULTS";

/// What no two rooms can share.
const EACH_ITS_OWN: [&str; 2] = ["path", "additional_routes"];

/// Of these a room has one or the other.
const EITHER: [(&str, &str); 2] = [("origin", "origin_service"), ("origin_service", "origin")];

/// The fields that rooms have where they say nothing else.
#[derive(Debug, Clone, Default)]
pub(super) struct Defaults {
    fields: Map<String, Value>,
    /// What is wrong with the table itself: no room can be sure of what it was meant to have.
    error: Option<ConfigError>,
}

impl Defaults {
    /// Reads the var. What its values are worth each room says.
    pub(super) fn read(value: &Value) -> Self {
        let refused = |field: &str, value: &Value, message: &str, fix: &str| Self {
            error: Some(ConfigError {
                part: Part::Defaults,
                name: DEFAULTS.to_owned(),
                field: field.to_owned(),
                value: shown(value),
                message: message.to_owned(),
                fix: fix.to_owned(),
                excerpt: String::new(),
            }),
            ..Self::default()
        };
        let Value::Object(fields) = value else {
            let fix = "write [vars.DEFAULTS] with one line per field of a room";
            return refused(DEFAULTS, value, "must be a table with fields of rooms", fix);
        };
        let own = EACH_ITS_OWN.iter().find_map(|name| Some((*name, fields.get(*name)?)));
        match own {
            Some((name, value)) => {
                refused(name, value, "is each room's own", "move it to the room that it is for")
            }
            None => Self { fields: fields.clone(), error: None },
        }
    }

    /// A room's table with these fields where it has none of its own.
    pub(super) fn under(&self, own: &Value) -> Value {
        let Value::Object(own) = own else { return own.clone() };
        let mut all = self.fields.clone();
        for (_, other) in EITHER.iter().filter(|(name, _)| own.contains_key(*name)) {
            all.remove(*other);
        }
        all.extend(own.clone());
        Value::Object(all)
    }

    /// What is wrong with a room because of these.
    pub(super) fn error(&self) -> Option<&ConfigError> {
        self.error.as_ref()
    }

    /// The error of a room, told where it is: what came from here is wrong here. `own`: the room's own table.
    pub(super) fn place(&self, error: ConfigError, own: &Value) -> ConfigError {
        let field = error.field.split('.').next().unwrap_or_default();
        if error.part == Part::Room && self.fields.contains_key(field) && own.get(field).is_none() {
            return ConfigError { part: Part::Defaults, name: DEFAULTS.to_owned(), ..error };
        }
        error
    }
}
