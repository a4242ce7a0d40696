//! Rooms and events that were made at run time, as vars would describe them.

use litemap::LiteMap;
use serde_json::Value;

use super::error::{ConfigError, Part};
use super::rooms::Rooms;

/// A token that was made at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeToken {
    /// As it stands in the log.
    pub name: String,
    /// The name of what it is good for.
    pub role: String,
    /// SHA-256 of the token, in base64url.
    pub hash: String,
    /// When it ends, in milliseconds since the epoch; `None`: it does not.
    pub ends: Option<u64>,
}

/// What the keeper of the configuration says: rooms and events by their ids, each with a table like that of a var.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Made {
    /// Counts its changes; 0: nothing was ever made.
    pub version: u64,
    /// Whether search engines' crawlers go past all rooms; `None`: as the deployment says.
    pub crawlers_bypass: Option<bool>,
    /// The tokens that are good.
    pub tokens: Vec<MadeToken>,
    /// The var that each would be, and its table.
    tables: Vec<(String, Value)>,
    /// The id of each room, and the name that people call it by.
    names: LiteMap<String, String>,
    /// Where rooms were that have moved or are deleted, in the same way.
    gone: Vec<(String, Value)>,
}

impl Made {
    /// Reads it: a JSON object with `version`, `crawlers`, lists `rooms`, `events` and `gone` of `[id, name, table]`, and a list
    /// `tokens` of `[name, role, hash, ends]`. What is not there is nothing, and what else is there is passed over: newer code may
    /// have written it.
    ///
    /// `None`: it is no such text.
    pub fn read(text: &str) -> Option<Self> {
        let mut value: Value = serde_json::from_str(text).ok()?;
        let mut made = Self {
            version: value.get("version")?.as_u64()?,
            crawlers_bypass: value.get("crawlers").and_then(Value::as_bool),
            ..Self::default()
        };
        for (list, part) in [("rooms", Part::Room), ("events", Part::Event), ("gone", Part::Room)] {
            let Some(Value::Array(entries)) = value.get_mut(list).map(Value::take) else { continue };
            for entry in entries {
                let [Value::String(id), Value::String(name), table] =
                    <[Value; 3]>::try_from(list_of(entry)?).ok()?
                else {
                    return None;
                };
                let tables = if list == "gone" { &mut made.gone } else { &mut made.tables };
                tables.push((format!("{}{id}", part.var_prefix()), table));
                if list == "rooms" {
                    made.names.insert(id, name);
                }
            }
        }
        if let Some(Value::Array(tokens)) = value.get("tokens") {
            made.tokens = tokens.iter().filter_map(token_of).collect();
        }
        Some(made)
    }

    /// The rooms of a deployment's vars and these; and what is wrong with any of them.
    pub fn with(&self, vars: impl Iterator<Item = (String, Value)>) -> (Rooms, Vec<ConfigError>) {
        let (mut rooms, errors) = Rooms::with_made(vars, self.tables.iter().cloned());
        rooms.call(&self.names);
        (rooms, errors)
    }

    /// Rooms as they were before they moved to another path, by the ids that they still have; and deleted ones whose owner wants
    /// those who wait to be told. One that cannot be read is left out.
    pub fn gone(&self) -> Rooms {
        Rooms::with_made(std::iter::empty(), self.gone.iter().cloned()).0
    }
}

fn token_of(entry: &Value) -> Option<MadeToken> {
    let text = |place: usize| Some(entry.get(place)?.as_str()?.to_owned());
    let ends = entry.get(3).and_then(Value::as_u64);
    Some(MadeToken { name: text(0)?, role: text(1)?, hash: text(2)?, ends })
}

fn list_of(value: Value) -> Option<Vec<Value>> {
    if let Value::Array(list) = value { Some(list) } else { None }
}
