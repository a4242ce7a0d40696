//! Global's tables, in `SQLite`.

use std::fmt;

use worker::{Result, SqlStorageValue as Sql, Storage};

use super::super::sql::{Database, Row, number};
use crate::edge::platform::log_error;
use crate::machines::{
    Kept, NotificationRow, PendingRow, ReceiverRow, Rows, RowsError, Series, SubscriptionRow,
};
use crate::protocol::schema::{Schema, SchemaStep};
use crate::push::Subscription;
use crate::ticket::draw_id;

/// Tables that are made together, when the first of them is written to: a room without has none.
#[derive(Debug, Clone, Copy)]
enum Group {
    History = 0,
    Audit = 1,
    Notifications = 2,
    Subscriptions = 3,
}

/// The groups, each with a table that shows that it is there.
const GROUPS: [(&str, Schema); 4] = [
    ("minutes", Schema { name: "history", steps: HISTORY }),
    ("audit", Schema { name: "audit", steps: AUDIT }),
    ("news", Schema { name: "notifications", steps: NOTIFICATIONS }),
    ("subscriptions", Schema { name: "subscriptions", steps: SUBSCRIPTIONS }),
];

const HISTORY: &[SchemaStep] = &[SchemaStep { statements: HISTORY_1, older_code_goes_on: false }];
const AUDIT: &[SchemaStep] = &[SchemaStep { statements: AUDIT_1, older_code_goes_on: false }];
const NOTIFICATIONS: &[SchemaStep] = &[SchemaStep { statements: NOTIFICATIONS_1, older_code_goes_on: false }];
const SUBSCRIPTIONS: &[SchemaStep] = &[SchemaStep { statements: SUBSCRIPTIONS_1, older_code_goes_on: false }];
/// A table whose key is a number lies in its order, and needs no index.
const HISTORY_1: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS minutes (minute INTEGER PRIMARY KEY, detail BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS parts (minute INTEGER PRIMARY KEY, detail BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS hours (hour INTEGER PRIMARY KEY, detail BLOB NOT NULL)",
];
const AUDIT_1: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, entry TEXT NOT NULL)",
];
const NOTIFICATIONS_1: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS news (at INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, \
     data TEXT NOT NULL, PRIMARY KEY (at, id)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS news_watch (one INTEGER PRIMARY KEY, detail BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS news_pending (seq INTEGER PRIMARY KEY, webhook TEXT NOT NULL, at INTEGER NOT NULL, \
     id TEXT NOT NULL, queued INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS news_webhooks (name TEXT PRIMARY KEY, tries INTEGER NOT NULL DEFAULT 0, \
     next INTEGER NOT NULL DEFAULT 0, succeeded INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, \
     reason TEXT NOT NULL DEFAULT '', dropped INTEGER NOT NULL DEFAULT 0, gone INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID",
];

const SUBSCRIPTIONS_1: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS subscriptions (id TEXT PRIMARY KEY, bucket INTEGER NOT NULL, since INTEGER NOT NULL, \
       tries INTEGER NOT NULL, next INTEGER NOT NULL, endpoint TEXT NOT NULL, p256dh TEXT NOT NULL, auth TEXT NOT NULL, \
       language TEXT NOT NULL, url TEXT NOT NULL) WITHOUT ROWID",
];

/// The tables, and which of them there are.
pub struct SqlRows {
    database: Database,
    made: [bool; 4],
}

impl fmt::Debug for SqlRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SqlRows")
    }
}

impl SqlRows {
    /// The tables of an object.
    ///
    /// # Errors
    /// When storage fails.
    pub fn of(storage: &Storage) -> Result<Self> {
        let database = Database::of(storage);
        let tables = database.rows("SELECT name FROM sqlite_master WHERE type = 'table'", vec![])?;
        let mut rows = Self { database, made: [false; 4] };
        for ((table, schema), made) in GROUPS.iter().zip(&mut rows.made) {
            if tables.iter().any(|row| row.text(0) == *table) {
                // Tables that newer code has changed are as if they were not there, and not written to.
                *made = rows.database.migrate(schema).map_err(|error| failed(&error)).is_ok();
            }
        }
        Ok(rows)
    }

    /// Writes, into tables that are made when they are not there.
    fn write(&mut self, group: Group, query: &str, values: Vec<Sql>) -> Kept<Vec<Row>> {
        let index = group as usize;
        if let (Some(made), Some((_, schema))) = (self.made.get_mut(index), GROUPS.get(index))
            && !*made
        {
            self.database.migrate(schema).map_err(|error| failed(&error))?;
            *made = true;
        }
        self.database.rows(query, values).map_err(|error| failed(&error))
    }

    /// Deletes, where there is something.
    fn delete(&mut self, group: Group, query: &str, values: Vec<Sql>) -> Kept<()> {
        self.read(group, query, values).map(|_| ())
    }

    fn read(&self, group: Group, query: &str, values: Vec<Sql>) -> Kept<Vec<Row>> {
        if !self.made.get(group as usize).is_some_and(|made| *made) {
            return Ok(Vec::new());
        }
        self.database.rows(query, values).map_err(|error| failed(&error))
    }
}

fn failed(error: &worker::Error) -> RowsError {
    log_error(&format!("storage: {error}"));
    RowsError
}

/// The table of a series, and its key.
fn table(series: Series) -> (&'static str, &'static str) {
    match series {
        Series::Minutes => ("minutes", "minute"),
        Series::Parts => ("parts", "minute"),
        Series::Hours => ("hours", "hour"),
    }
}

fn notification(row: &Row) -> NotificationRow {
    NotificationRow {
        at: row.number(0),
        id: row.text(1).to_owned(),
        kind: row.text(2).to_owned(),
        text: row.text(3).to_owned(),
        data: row.text(4).to_owned(),
    }
}

impl Rows for SqlRows {
    fn put(&mut self, series: Series, at: u32, detail: &[u8]) -> Kept<()> {
        let (table, key) = table(series);
        let query = format!("INSERT OR REPLACE INTO {table} ({key}, detail) VALUES (?, ?)");
        let values = vec![number(at.into()), detail.to_vec().into()];
        self.write(Group::History, &query, values).map(|_| ())
    }

    fn range(&self, series: Series, from: u32, to: u32) -> Kept<Vec<(u32, Vec<u8>)>> {
        let (table, key) = table(series);
        let query =
            format!("SELECT {key}, detail FROM {table} WHERE {key} >= ? AND {key} < ? ORDER BY {key}");
        let rows = self.read(Group::History, &query, vec![number(from.into()), number(to.into())])?;
        Ok(rows.iter().map(|row| (row.number(0) as u32, row.bytes(1).to_vec())).collect())
    }

    fn bounds(&self, series: Series) -> Kept<Option<(u32, u32)>> {
        let (table, key) = table(series);
        // Each of them is one look at the table's order; together they would read all of it.
        let query = format!("SELECT (SELECT min({key}) FROM {table}), (SELECT max({key}) FROM {table})");
        let rows = self.read(Group::History, &query, vec![])?;
        Ok(rows.first().and_then(|row| Some((row.maybe(0)? as u32, row.maybe(1)? as u32))))
    }

    fn delete_before(&mut self, series: Series, at: u32) -> Kept<()> {
        let (table, key) = table(series);
        let query = format!("DELETE FROM {table} WHERE {key} < ?");
        self.delete(Group::History, &query, vec![number(at.into())])
    }

    fn add_audit(&mut self, at: u64, entry: &str, kept: u64) -> Kept<()> {
        let values = vec![number(at), entry.into()];
        self.write(Group::Audit, "INSERT INTO audit (at, entry) VALUES (?, ?)", values)?;
        let query = "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?";
        self.delete(Group::Audit, query, vec![number(kept)])
    }

    fn audit(&self, before: Option<u64>, most: u64) -> Kept<Vec<(u64, String)>> {
        let (query, values) = match before {
            Some(before) => (
                "SELECT id, entry FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?",
                vec![number(before), number(most)],
            ),
            None => ("SELECT id, entry FROM audit ORDER BY id DESC LIMIT ?", vec![number(most)]),
        };
        let rows = self.read(Group::Audit, query, values)?;
        Ok(rows.iter().map(|row| (row.number(0), row.text(1).to_owned())).collect())
    }

    fn detector(&self) -> Kept<Option<Vec<u8>>> {
        let rows = self.read(Group::Notifications, "SELECT detail FROM news_watch", vec![])?;
        Ok(rows.first().map(|row| row.bytes(0).to_vec()))
    }

    fn put_detector(&mut self, detail: &[u8]) -> Kept<()> {
        let query = "INSERT OR REPLACE INTO news_watch (one, detail) VALUES (1, ?)";
        self.write(Group::Notifications, query, vec![detail.to_vec().into()]).map(|_| ())
    }

    fn add_notification(&mut self, notification: &NotificationRow) -> Kept<bool> {
        let NotificationRow { at, id, kind, text, data } = notification;
        let query =
            "INSERT OR IGNORE INTO news (at, id, kind, text, data) VALUES (?, ?, ?, ?, ?) RETURNING at";
        let values = [id, kind, text, data].map(|text| text.as_str().into());
        let values = std::iter::once(number(*at)).chain(values).collect();
        Ok(!self.write(Group::Notifications, query, values)?.is_empty())
    }

    fn notification(&self, at: u64, id: &str) -> Kept<Option<NotificationRow>> {
        let query = "SELECT at, id, kind, text, data FROM news WHERE at = ? AND id = ?";
        let rows = self.read(Group::Notifications, query, vec![number(at), id.into()])?;
        Ok(rows.first().map(notification))
    }

    fn notifications(&self, from: u64, to: u64, most: u64) -> Kept<Vec<NotificationRow>> {
        let query = "SELECT at, id, kind, text, data FROM news WHERE at >= ? AND at <= ? ORDER BY at DESC, id DESC LIMIT ?";
        let values = vec![number(from), number(to), number(most)];
        Ok(self.read(Group::Notifications, query, values)?.iter().map(notification).collect())
    }

    fn delete_notifications(&mut self, before: u64, kept: u64) -> Kept<()> {
        self.delete(Group::Notifications, "DELETE FROM news WHERE at < ?", vec![number(before)])?;
        let query = "DELETE FROM news WHERE (at, id) <= \
                     (SELECT at, id FROM news ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?)";
        self.delete(Group::Notifications, query, vec![number(kept)])
    }

    fn receivers(&self) -> Kept<Vec<ReceiverRow>> {
        let query = "SELECT name, tries, next, succeeded, failed, reason, dropped, gone FROM news_webhooks";
        let rows = self.read(Group::Notifications, query, vec![])?;
        let receiver = |row: &Row| ReceiverRow {
            name: row.text(0).to_owned(),
            tries: row.number(1) as u32,
            next: row.number(2),
            succeeded: row.number(3),
            failed: row.number(4),
            reason: row.text(5).to_owned(),
            dropped: row.number(6),
            gone: row.number(7),
        };
        Ok(rows.iter().map(receiver).collect())
    }

    fn put_receiver(&mut self, receiver: &ReceiverRow) -> Kept<()> {
        let query = "INSERT OR REPLACE INTO news_webhooks (name, tries, next, succeeded, failed, reason, dropped, gone) \
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        let values = vec![
            receiver.name.as_str().into(),
            number(receiver.tries.into()),
            number(receiver.next),
            number(receiver.succeeded),
            number(receiver.failed),
            receiver.reason.as_str().into(),
            number(receiver.dropped),
            number(receiver.gone),
        ];
        self.write(Group::Notifications, query, values).map(|_| ())
    }

    fn delete_receiver(&mut self, name: &str) -> Kept<()> {
        for query in
            ["DELETE FROM news_pending WHERE webhook = ?", "DELETE FROM news_webhooks WHERE name = ?"]
        {
            self.delete(Group::Notifications, query, vec![name.into()])?;
        }
        Ok(())
    }

    fn pending(&self) -> Kept<Vec<PendingRow>> {
        let query = "SELECT seq, webhook, at, id, queued FROM news_pending ORDER BY seq";
        let rows = self.read(Group::Notifications, query, vec![])?;
        let pending = |row: &Row| PendingRow {
            seq: row.number(0),
            webhook: row.text(1).to_owned(),
            at: row.number(2),
            id: row.text(3).to_owned(),
            queued: row.number(4),
        };
        Ok(rows.iter().map(pending).collect())
    }

    fn add_pending(&mut self, pending: &PendingRow) -> Kept<()> {
        let query = "INSERT INTO news_pending (seq, webhook, at, id, queued) VALUES (?, ?, ?, ?, ?)";
        let values = vec![
            number(pending.seq),
            pending.webhook.as_str().into(),
            number(pending.at),
            pending.id.as_str().into(),
            number(pending.queued),
        ];
        self.write(Group::Notifications, query, values).map(|_| ())
    }

    fn delete_pending(&mut self, seq: u64) -> Kept<()> {
        self.delete(Group::Notifications, "DELETE FROM news_pending WHERE seq = ?", vec![number(seq)])
    }

    fn subscribers(&self) -> Kept<Vec<SubscriptionRow>> {
        let query = "SELECT id, bucket, since, tries, next FROM subscriptions";
        let rows = self.read(Group::Subscriptions, query, vec![])?;
        Ok(rows.iter().filter_map(subscriber).collect())
    }

    fn subscription(&self, id: u64) -> Kept<Option<SubscriptionRow>> {
        let query = "SELECT id, bucket, since, tries, next, endpoint, p256dh, auth, language, url FROM subscriptions \
                     WHERE id = ?";
        let rows = self.read(Group::Subscriptions, query, vec![draw_id(id).into()])?;
        let text = |row: &Row, place| row.text(place).to_owned();
        Ok(rows.first().and_then(|row| {
            let to = Subscription { endpoint: text(row, 5), p256dh: text(row, 6), auth: text(row, 7) };
            Some(SubscriptionRow { to, language: text(row, 8), url: text(row, 9), ..subscriber(row)? })
        }))
    }

    fn put_subscription(&mut self, row: &SubscriptionRow) -> Kept<()> {
        let query = "INSERT OR REPLACE INTO subscriptions \
                     (id, bucket, since, tries, next, endpoint, p256dh, auth, language, url) \
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let numbers = [row.bucket.into(), row.since, row.tries.into(), row.next].map(number);
        let Subscription { endpoint, p256dh, auth } = &row.to;
        let texts = [endpoint, p256dh, auth, &row.language, &row.url].map(|text| text.as_str().into());
        let values = std::iter::once(draw_id(row.id).into()).chain(numbers).chain(texts).collect();
        self.write(Group::Subscriptions, query, values).map(|_| ())
    }

    fn delete_subscription(&mut self, id: u64) -> Kept<()> {
        let values = vec![draw_id(id).into()];
        self.delete(Group::Subscriptions, "DELETE FROM subscriptions WHERE id = ?", values)
    }
}

/// What is known of a subscription by the first columns.
fn subscriber(row: &Row) -> Option<SubscriptionRow> {
    Some(SubscriptionRow {
        id: u64::from_str_radix(row.text(0), 16).ok()?,
        bucket: row.number(1) as u32,
        since: row.number(2),
        tries: row.number(3) as u32,
        next: row.number(4),
        ..SubscriptionRow::default()
    })
}
