//! What Workers and objects learn of the book.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::book::Book;
use super::entry::VERSION;
use super::written::{table_of_event, table_of_room};
use crate::config::{ConfigError, Part, Rooms};

/// The rooms and events that were made at run time, as vars would describe them, and the names that people call them by.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Document {
    /// Format version.
    pub v: u8,
    /// The book's version.
    pub version: u64,
    /// Each room: its id, its name, its table.
    pub rooms: Vec<(String, String, Value)>,
    /// Each event: its id, its name, its table.
    #[serde(default)]
    pub events: Vec<(String, String, Value)>,
    /// Whether search engines' crawlers go past all rooms; `None`: as the deployment says.
    #[serde(default)]
    pub crawlers: Option<bool>,
}

impl Document {
    /// What a book says.
    pub fn of(book: &Book) -> Self {
        let rooms = book.live_rooms().map(|room| {
            (room.id.clone(), room.name.clone(), table_of_room(room, book.rules.get(&room.id)))
        });
        let events = book.live_events().map(|event| {
            let room = book.rooms.iter().find(|room| room.id == event.room);
            (event.id.clone(), event.name.clone(), table_of_event(event, room))
        });
        Self {
            v: VERSION,
            version: book.version,
            rooms: rooms.collect(),
            events: events.collect(),
            crawlers: book.crawlers,
        }
    }

    /// The rooms of a deployment's vars and of this; and what is wrong with any of them.
    pub fn with(&self, vars: impl Iterator<Item = (String, Value)>) -> (Rooms, Vec<ConfigError>) {
        let named = |part: Part, entries: &[(String, String, Value)]| -> Vec<(String, Value)> {
            entries.iter().map(|(id, _, table)| (format!("{}{id}", part.var_prefix()), table.clone())).collect()
        };
        let (made, events) = (named(Part::Room, &self.rooms), named(Part::Event, &self.events));
        let (mut rooms, errors) = Rooms::with_made(vars, made.into_iter().chain(events));
        let name_of = |id: &str| self.rooms.iter().find(|(known, ..)| known == id).map(|(_, name, _)| name.clone());
        rooms.call(name_of);
        (rooms, errors)
    }
}
