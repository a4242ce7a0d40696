//! Global's tables in memory, for the simulator and the tests: what is not confirmed can be lost.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::rows::{Kept, NotificationRow, PendingRow, ReceiverRow, Rows, RowsError, Series, SubscriptionRow};

/// The key of a row, table by table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Series(Series, u32),
    Audit(u64),
    Detector,
    Notification(u64, String),
    Receiver(String),
    Pending(u64),
    Subscription(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    Bytes(Vec<u8>),
    Text(String),
    Notification(NotificationRow),
    Receiver(ReceiverRow),
    Pending(PendingRow),
    Subscription(SubscriptionRow),
}

#[derive(Debug, Default)]
struct Tables {
    rows: BTreeMap<Key, Row>,
    /// What stood there before each write that is not confirmed.
    undo: VecDeque<(Key, Option<Row>)>,
    /// Writes that are confirmed.
    confirmed: u64,
    fails: bool,
}

impl Tables {
    fn set(&mut self, key: Key, row: Option<Row>) {
        let before = match row {
            Some(row) => self.rows.insert(key.clone(), row),
            None => self.rows.remove(&key),
        };
        self.undo.push_back((key, before));
    }

    /// Deletes the rows of a range that a condition is true for.
    fn delete(&mut self, from: Key, to: &Key, is_deleted: impl Fn(&Key, &Row) -> bool) {
        let range = self.rows.range(from..).take_while(|(key, _)| *key < to);
        let keys: Vec<Key> =
            range.filter(|(key, row)| is_deleted(key, row)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.set(key, None);
        }
    }
}

/// Tables that all clones share: one is Global's, another one stays with whoever simulates its storage.
#[derive(Debug, Clone, Default)]
pub struct MemoryRows(Rc<RefCell<Tables>>);

impl MemoryRows {
    /// How many writes there were so far.
    pub fn writes(&self) -> u64 {
        let tables = self.0.borrow();
        tables.confirmed + tables.undo.len() as u64
    }

    /// What is written so far outlives Global.
    pub fn confirm(&self) {
        self.confirm_first(self.writes());
    }

    /// How many writes outlive Global.
    pub fn confirm_first(&self, writes: u64) {
        let mut tables = self.0.borrow_mut();
        while tables.confirmed < writes && tables.undo.pop_front().is_some() {
            tables.confirmed += 1;
        }
    }

    /// Global is gone, and what was written since the last confirmation too.
    pub fn roll_back(&self) {
        let mut tables = self.0.borrow_mut();
        while let Some((key, before)) = tables.undo.pop_back() {
            match before {
                Some(row) => tables.rows.insert(key, row),
                None => tables.rows.remove(&key),
            };
        }
    }

    /// From now on writing fails, or does not any more.
    pub fn fail(&self, fails: bool) {
        self.0.borrow_mut().fails = fails;
    }

    fn writable(&self) -> Kept<RefMut<'_, Tables>> {
        let tables = self.0.borrow_mut();
        if tables.fails { Err(RowsError) } else { Ok(tables) }
    }

    fn set(&self, key: Key, row: Option<Row>) -> Kept<()> {
        self.writable()?.set(key, row);
        Ok(())
    }

    /// What a function makes of the rows of a range, in their order.
    fn range<T>(&self, from: Key, to: Key, read: impl Fn(&Key, &Row) -> Option<T>) -> Vec<T> {
        let tables = self.0.borrow();
        tables.rows.range(from..to).filter_map(|(key, row)| read(key, row)).collect()
    }
}

/// Before all notifications, and after them.
const NOTIFICATIONS: (Key, Key) = (Key::Notification(0, String::new()), Key::Receiver(String::new()));

fn notification(_: &Key, row: &Row) -> Option<NotificationRow> {
    if let Row::Notification(row) = row { Some(row.clone()) } else { None }
}

fn subscription(row: &Row) -> Option<SubscriptionRow> {
    if let Row::Subscription(row) = row { Some(row.clone()) } else { None }
}

impl Rows for MemoryRows {
    fn put(&mut self, series: Series, number: u32, detail: &[u8]) -> Kept<()> {
        self.set(Key::Series(series, number), Some(Row::Bytes(detail.to_vec())))
    }

    fn range(&self, series: Series, from: u32, to: u32) -> Kept<Vec<(u32, Vec<u8>)>> {
        let (from, to) = (Key::Series(series, from), Key::Series(series, to.max(from)));
        Ok(Self::range(self, from, to, |key, row| match (key, row) {
            (Key::Series(_, number), Row::Bytes(detail)) => Some((*number, detail.clone())),
            _ => None,
        }))
    }

    fn bounds(&self, series: Series) -> Kept<Option<(u32, u32)>> {
        let tables = self.0.borrow();
        let mut range = tables.rows.range(Key::Series(series, 0)..=Key::Series(series, u32::MAX));
        let number = |found: Option<(&Key, &Row)>| match found {
            Some((Key::Series(_, number), _)) => Some(*number),
            _ => None,
        };
        let first = number(range.next());
        let last = number(range.next_back()).or(first);
        Ok(first.zip(last))
    }

    fn delete_before(&mut self, series: Series, number: u32) -> Kept<()> {
        let (from, to) = (Key::Series(series, 0), Key::Series(series, number));
        self.writable()?.delete(from, &to, |_, _| true);
        Ok(())
    }

    fn add_audit(&mut self, _at: u64, entry: &str, kept: u64) -> Kept<()> {
        let mut tables = self.writable()?;
        let last = tables.rows.range(Key::Audit(0)..Key::Detector).next_back();
        let id = if let Some((Key::Audit(last), _)) = last { last + 1 } else { 1 };
        tables.set(Key::Audit(id), Some(Row::Text(entry.to_owned())));
        tables.delete(Key::Audit(0), &Key::Audit((id + 1).saturating_sub(kept)), |_, _| true);
        Ok(())
    }

    fn audit(&self, before: Option<u64>, most: u64) -> Kept<Vec<(u64, String)>> {
        let mut entries =
            Self::range(self, Key::Audit(0), before.map_or(Key::Detector, Key::Audit), |key, row| {
                match (key, row) {
                    (Key::Audit(id), Row::Text(entry)) => Some((*id, entry.clone())),
                    _ => None,
                }
            });
        entries.reverse();
        entries.truncate(most as usize);
        Ok(entries)
    }

    fn detector(&self) -> Kept<Option<Vec<u8>>> {
        let tables = self.0.borrow();
        Ok(if let Some(Row::Bytes(detail)) = tables.rows.get(&Key::Detector) {
            Some(detail.clone())
        } else {
            None
        })
    }

    fn put_detector(&mut self, detail: &[u8]) -> Kept<()> {
        self.set(Key::Detector, Some(Row::Bytes(detail.to_vec())))
    }

    fn add_notification(&mut self, notification: &NotificationRow) -> Kept<bool> {
        let key = Key::Notification(notification.at, notification.id.clone());
        let is_new = !self.0.borrow().rows.contains_key(&key);
        if is_new {
            self.set(key, Some(Row::Notification(notification.clone())))?;
        }
        Ok(is_new)
    }

    fn notification(&self, at: u64, id: &str) -> Kept<Option<NotificationRow>> {
        let key = Key::Notification(at, id.to_owned());
        Ok(self.0.borrow().rows.get(&key).and_then(|row| notification(&key, row)))
    }

    fn notifications(&self, from: u64, to: u64, most: u64) -> Kept<Vec<NotificationRow>> {
        let (from, to) =
            (Key::Notification(from, String::new()), Key::Notification(to.max(from) + 1, String::new()));
        let mut found = Self::range(self, from, to, notification);
        found.reverse();
        found.truncate(most as usize);
        Ok(found)
    }

    fn delete_notifications(&mut self, before: u64, kept: u64) -> Kept<()> {
        let oldest = self.notifications(0, u64::MAX - 1, kept)?.pop().map(|oldest| (oldest.at, oldest.id));
        self.writable()?.delete(NOTIFICATIONS.0, &NOTIFICATIONS.1, |key, _| {
            let Key::Notification(at, id) = key else { return false };
            *at < before || oldest.as_ref().is_some_and(|oldest| (*at, id) < (oldest.0, &oldest.1))
        });
        Ok(())
    }

    fn receivers(&self) -> Kept<Vec<ReceiverRow>> {
        Ok(Self::range(self, Key::Receiver(String::new()), Key::Pending(0), |_, row| {
            if let Row::Receiver(row) = row { Some(row.clone()) } else { None }
        }))
    }

    fn put_receiver(&mut self, receiver: &ReceiverRow) -> Kept<()> {
        self.set(Key::Receiver(receiver.name.clone()), Some(Row::Receiver(receiver.clone())))
    }

    fn delete_receiver(&mut self, name: &str) -> Kept<()> {
        let mut tables = self.writable()?;
        tables.set(Key::Receiver(name.to_owned()), None);
        tables.delete(
            Key::Pending(0),
            &Key::Pending(u64::MAX),
            |_, row| matches!(row, Row::Pending(row) if row.webhook == name),
        );
        Ok(())
    }

    fn pending(&self) -> Kept<Vec<PendingRow>> {
        Ok(Self::range(self, Key::Pending(0), Key::Pending(u64::MAX), |_, row| {
            if let Row::Pending(row) = row { Some(row.clone()) } else { None }
        }))
    }

    fn add_pending(&mut self, pending: &PendingRow) -> Kept<()> {
        self.set(Key::Pending(pending.seq), Some(Row::Pending(pending.clone())))
    }

    fn delete_pending(&mut self, seq: u64) -> Kept<()> {
        self.set(Key::Pending(seq), None)
    }

    fn subscribers(&self) -> Kept<Vec<SubscriptionRow>> {
        let all = Key::Subscription(0)..=Key::Subscription(u64::MAX);
        let rows = self.0.borrow();
        let rows = rows.rows.range(all).filter_map(|(_, row)| subscription(row));
        Ok(rows
            .map(|SubscriptionRow { id, bucket, since, tries, next, .. }| SubscriptionRow {
                id,
                bucket,
                since,
                tries,
                next,
                ..SubscriptionRow::default()
            })
            .collect())
    }

    fn subscription(&self, id: u64) -> Kept<Option<SubscriptionRow>> {
        Ok(self.0.borrow().rows.get(&Key::Subscription(id)).and_then(subscription))
    }

    fn put_subscription(&mut self, row: &SubscriptionRow) -> Kept<()> {
        self.set(Key::Subscription(row.id), Some(Row::Subscription(row.clone())))
    }

    fn delete_subscription(&mut self, id: u64) -> Kept<()> {
        self.set(Key::Subscription(id), None)
    }
}
