//! A room or an event of the book.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The version of the stored rows.
pub(super) const VERSION: u8 = 1;

/// A room, or an event of one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Entry {
    /// Format version.
    pub v: u8,
    /// 32 hex digits.
    pub id: String,
    /// Of an event: the id of its room. A room has none.
    #[serde(default)]
    pub room: String,
    /// What people call it, as they have written it.
    pub name: String,
    /// All other fields that were sent, as they were sent. What is Anteroom's own is in `anteroom`.
    pub fields: Map<String, Value>,
    /// The version of the book that made it: the order of all lists.
    pub order: u64,
    /// The version of the book that changed it last.
    pub revision: u64,
    /// When it was made, in milliseconds since the epoch.
    pub created: u64,
    /// When it was changed last, in milliseconds since the epoch.
    pub modified: u64,
    /// The name of the token that did so.
    #[serde(default)]
    pub by: String,
    /// When it was deleted, in milliseconds since the epoch.
    #[serde(default)]
    pub deleted: Option<u64>,
    /// The var that describes it, where a deploy does; such an entry is never stored.
    #[serde(skip)]
    pub var: String,
}

impl Entry {
    /// A field that was sent, and is not null.
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// The fields of Anteroom's own.
    pub(super) fn own(&self) -> Option<&Map<String, Value>> {
        self.get(OWN).and_then(Value::as_object)
    }
}

/// The object with the fields of Anteroom's own.
pub(super) const OWN: &str = "anteroom";

/// The rules of a room, in their order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Rules {
    /// Format version.
    pub v: u8,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The ids of the last ones that were deleted: who deletes one again is answered as before.
    #[serde(default)]
    pub gone: Vec<String>,
}

/// A rule by which requests go past a room.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Rule {
    /// 32 hex digits.
    pub id: String,
    /// Counts its changes, from 1.
    pub version: u64,
    /// What was sent, as it was sent.
    pub fields: Map<String, Value>,
    /// When it was changed last, in milliseconds since the epoch.
    pub modified: u64,
}

/// An id that follows from what it is for: always the same.
pub(super) fn derived(of: &str, name: &str) -> String {
    hex(&Sha256::new().chain_update(of).chain_update([0]).chain_update(name).finalize())
}

/// The first half of 32 bytes as hex digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| DIGITS.get(usize::from(half)).copied().map_or('0', char::from);
    bytes.iter().take(16).flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Whether a text is an id.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
