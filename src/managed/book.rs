//! The whole configuration, and the rows in which it is stored.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::entry::{Entry, Rules, VERSION};

/// How long a deleted room can be brought back, in milliseconds.
pub(super) const KEPT_MS: u64 = 30 * 86_400_000;

/// Keys of the rows.
const META: &str = "meta";
const SETTINGS: &str = "settings";
const ROOM: &str = "room/";
const EVENT: &str = "event/";
const RULES: &str = "rules/";
const PREVIEW: &str = "preview/";

/// All that operators have made at run time. It is as a whole in the memory of the object that keeps it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Book {
    /// Counts its changes.
    pub version: u64,
    /// In the order in which they were made; those that were deleted too, for a while.
    pub(super) rooms: Vec<Entry>,
    pub(super) events: Vec<Entry>,
    /// By the ids of their rooms.
    pub(super) rules: LiteMap<String, Rules>,
    /// Whether search engines' crawlers go past all rooms; `None`: as the deployment says.
    pub(super) crawlers: Option<bool>,
    /// The pages that somebody wants to look at: until when each is kept, in milliseconds since the epoch.
    pub(super) previews: LiteMap<String, u64>,
}

/// A row that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The row.
    pub key: String,
    /// What is in it; `None`: it is removed.
    pub value: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Meta {
    v: u8,
    version: u64,
}

#[derive(Serialize, Deserialize)]
struct Settings {
    v: u8,
    search_engine_crawler_bypass: Option<bool>,
}

/// A page that somebody wants to look at.
#[derive(Serialize, Deserialize)]
pub(super) struct Preview {
    pub v: u8,
    /// When it is removed, in milliseconds since the epoch.
    pub until: u64,
    #[serde(default)]
    pub html: String,
}

/// The row of a page that somebody wants to look at, by its id.
pub(super) fn preview_key(id: &str) -> String {
    format!("{PREVIEW}{id}")
}

impl Book {
    /// Reads the rows. What cannot be read is left out, and returned by its key.
    pub fn read<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> (Self, Vec<String>) {
        let (mut book, mut unread) = (Self::default(), Vec::new());
        for (key, value) in rows {
            if book.read_row(key, value).is_none() {
                unread.push(key.to_owned());
            }
        }
        book.rooms.sort_by_key(|entry| entry.order);
        book.events.sort_by_key(|entry| entry.order);
        (book, unread)
    }

    fn read_row(&mut self, key: &str, value: &str) -> Option<()> {
        if key == META {
            self.version = serde_json::from_str::<Meta>(value).ok()?.version;
        } else if key == SETTINGS {
            self.crawlers = serde_json::from_str::<Settings>(value).ok()?.search_engine_crawler_bypass;
        } else if key.starts_with(ROOM) {
            self.rooms.push(serde_json::from_str(value).ok()?);
        } else if key.starts_with(EVENT) {
            self.events.push(serde_json::from_str(value).ok()?);
        } else if let Some(room) = key.strip_prefix(RULES) {
            self.rules.insert(room.to_owned(), serde_json::from_str(value).ok()?);
        } else if let Some(id) = key.strip_prefix(PREVIEW) {
            let Preview { until, .. } = serde_json::from_str(value).ok()?;
            self.previews.insert(id.to_owned(), until);
        } else {
            return None;
        }
        Some(())
    }

    /// The rooms that are there.
    pub(super) fn live_rooms(&self) -> impl Iterator<Item = &Entry> {
        self.rooms.iter().filter(|room| room.deleted.is_none())
    }

    /// The events that are there, of rooms that are there.
    pub(super) fn live_events(&self) -> impl Iterator<Item = &Entry> {
        let is_there = |event: &&Entry| self.live_rooms().any(|room| room.id == event.room);
        self.events.iter().filter(|event| event.deleted.is_none()).filter(is_there)
    }

    /// The page that was made under a name.
    pub fn page(&self, name: &str) -> Option<&str> {
        let pages = self.rooms.iter().chain(&self.events).filter_map(super::written::page_name);
        pages.into_iter().find_map(|(known, html)| (known == name).then_some(html))
    }
}

/// A book that is being changed.
#[derive(Debug)]
pub(super) struct Draft {
    pub book: Book,
    pub changes: Vec<Change>,
}

impl Draft {
    /// Begins the next version of a book. What was deleted long ago goes.
    pub fn of(book: &Book, now: u64) -> Self {
        let mut draft = Self { book: book.clone(), changes: Vec::new() };
        draft.book.version += 1;
        draft.set(META, &Meta { v: VERSION, version: draft.book.version });
        let is_over = |entry: &Entry| entry.deleted.is_some_and(|deleted| deleted + KEPT_MS < now);
        let rooms: Vec<String> = book.rooms.iter().filter(|room| is_over(room)).map(|room| room.id.clone()).collect();
        let is_over_event = |event: &Entry| is_over(event) || rooms.contains(&event.room);
        let events = book.events.iter().filter(|event| is_over_event(event)).map(|event| event.id.clone());
        for id in events {
            draft.remove(format!("{EVENT}{id}"));
        }
        for id in &rooms {
            draft.remove(format!("{ROOM}{id}"));
            draft.remove(format!("{RULES}{id}"));
            draft.book.rules.remove(id);
        }
        draft.book.events.retain(|event| !is_over_event(event));
        draft.book.rooms.retain(|room| !is_over(room));
        let previews = book.previews.iter().filter(|(_, until)| **until < now).map(|(id, _)| id.clone());
        for id in previews {
            draft.book.previews.remove(&id);
            draft.remove(preview_key(&id));
        }
        draft
    }

    fn set(&mut self, key: impl Into<String>, row: &impl Serialize) {
        let value = serde_json::to_string(row).ok();
        self.changes.push(Change { key: key.into(), value });
    }

    fn remove(&mut self, key: String) {
        self.changes.push(Change { key, value: None });
    }

    /// Puts a room or an event into the book, in the place of what has its id.
    pub fn put(&mut self, entry: Entry) {
        let kind = if entry.room.is_empty() { ROOM } else { EVENT };
        self.set(format!("{kind}{}", entry.id), &entry);
        let entries = if entry.room.is_empty() { &mut self.book.rooms } else { &mut self.book.events };
        match entries.iter_mut().find(|known| known.id == entry.id) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
    }

    /// Puts the rules of a room into the book.
    pub fn put_rules(&mut self, room: &str, rules: Rules) {
        self.set(format!("{RULES}{room}"), &rules);
        self.book.rules.insert(room.to_owned(), rules);
    }

    /// Whether crawlers go past all rooms.
    pub fn put_crawlers(&mut self, bypass: bool) {
        self.book.crawlers = Some(bypass);
        self.set(SETTINGS, &Settings { v: VERSION, search_engine_crawler_bypass: Some(bypass) });
    }

    /// Keeps a page for a while, and no more than so many.
    pub fn put_preview(&mut self, id: &str, preview: &Preview, most: usize) {
        let mut known: Vec<(u64, String)> = self.book.previews.iter().map(|(id, until)| (*until, id.clone())).collect();
        known.sort();
        let too_many = (known.len() + 1).saturating_sub(most);
        for (_, id) in known.into_iter().take(too_many) {
            self.book.previews.remove(&id);
            self.remove(preview_key(&id));
        }
        self.book.previews.insert(id.to_owned(), preview.until);
        self.set(preview_key(id), preview);
    }
}
