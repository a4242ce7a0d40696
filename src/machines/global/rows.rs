//! What Global keeps in tables: the log of orders, the history, and the notifications with their webhooks.

use std::fmt::Debug;

use crate::push::Subscription;

/// The tables could not be read or written. The platform's side has said why in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsError;

/// What comes of reading or writing.
pub type Kept<T> = Result<T, RowsError>;

/// The tables of the history. Their keys are minutes or hours since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Series {
    /// A [`Record`](crate::history::Record) per minute.
    Minutes,
    /// A [`Minute`](crate::history::Minute) per minute.
    Parts,
    /// A [`Record`](crate::history::Record) per hour.
    Hours,
}

/// A notification as it stands in its table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotificationRow {
    /// When it happened, in milliseconds since the epoch.
    pub at: u64,
    /// Its id. Together with the time it is the key.
    pub id: String,
    /// Its kind's name.
    pub kind: String,
    /// In words.
    pub text: String,
    /// For programs, as JSON.
    pub data: String,
}

/// A message that a webhook has yet to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRow {
    /// The key: messages are sent in this order.
    pub seq: u64,
    /// The webhook's name.
    pub webhook: String,
    /// The notification's time.
    pub at: u64,
    /// The notification's id.
    pub id: String,
    /// Since when it waits, in milliseconds since the epoch.
    pub queued: u64,
}

/// How it stands with a webhook. Times are in milliseconds since the epoch; 0: never.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceiverRow {
    /// The key: the webhook's name.
    pub name: String,
    /// Attempts in a row that failed, or are under way.
    pub tries: u32,
    /// When it is sent to next.
    pub next: u64,
    /// The last success.
    pub succeeded: u64,
    /// The last failure.
    pub failed: u64,
    /// Why it failed.
    pub reason: String,
    /// Messages that were given up, and of which it has not been told.
    pub dropped: u64,
    /// When it said that it wants nothing any more.
    pub gone: u64,
}

/// A subscription to push messages as it stands in its table. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscriptionRow {
    /// The key: the ticket's id.
    pub id: u64,
    /// The bucket in which the ticket stands in the queue.
    pub bucket: u32,
    /// When it was made.
    pub since: u64,
    /// Attempts to send the message that failed, or are under way.
    pub tries: u32,
    /// When the next attempt is due; 0: when the turn is near.
    pub next: u64,
    /// Through what the visitor is told.
    pub to: Subscription,
    /// The tag of the language in which the visitor is told.
    pub language: String,
    /// The address of the waiting page.
    pub url: String,
}

/// Global's tables. Before something is written there are none, and reading finds nothing.
///
/// They are written at once. All that is written between two inputs of the machine, here and by its effects, is in storage
/// together or not at all.
pub trait Rows: Debug {
    /// Writes a row of the history, in place of one with the same key.
    ///
    /// # Errors
    /// When storage fails, as all of these.
    fn put(&mut self, series: Series, number: u32, detail: &[u8]) -> Kept<()>;

    /// The rows from a key until before another one, in their order.
    ///
    /// # Errors
    /// When storage fails.
    fn range(&self, series: Series, from: u32, to: u32) -> Kept<Vec<(u32, Vec<u8>)>>;

    /// The first key and the last one; `None`: there are no rows.
    ///
    /// # Errors
    /// When storage fails.
    fn bounds(&self, series: Series) -> Kept<Option<(u32, u32)>>;

    /// Deletes the rows before a key.
    ///
    /// # Errors
    /// When storage fails.
    fn delete_before(&mut self, series: Series, number: u32) -> Kept<()>;

    /// Adds an entry to the log of orders, as JSON, and deletes those before the newest `kept`.
    ///
    /// # Errors
    /// When storage fails.
    fn add_audit(&mut self, at: u64, entry: &str, kept: u64) -> Kept<()>;

    /// The newest entries of the log, newest first: ids, which grow, and JSON. `before`: only those with smaller ids.
    ///
    /// # Errors
    /// When storage fails.
    fn audit(&self, before: Option<u64>, most: u64) -> Kept<Vec<(u64, String)>>;

    /// What was kept of the detector; `None`: nothing yet.
    ///
    /// # Errors
    /// When storage fails.
    fn detector(&self) -> Kept<Option<Vec<u8>>>;

    /// Keeps the detector.
    ///
    /// # Errors
    /// When storage fails.
    fn put_detector(&mut self, detail: &[u8]) -> Kept<()>;

    /// Adds a notification. Returns whether it is new: one with the same key is left as it is.
    ///
    /// # Errors
    /// When storage fails.
    fn add_notification(&mut self, notification: &NotificationRow) -> Kept<bool>;

    /// A notification.
    ///
    /// # Errors
    /// When storage fails.
    fn notification(&self, at: u64, id: &str) -> Kept<Option<NotificationRow>>;

    /// The newest notifications from a time to another one, both included, newest first.
    ///
    /// # Errors
    /// When storage fails.
    fn notifications(&self, from: u64, to: u64, most: u64) -> Kept<Vec<NotificationRow>>;

    /// Deletes the notifications before a time, and those before the newest `kept`.
    ///
    /// # Errors
    /// When storage fails.
    fn delete_notifications(&mut self, before: u64, kept: u64) -> Kept<()>;

    /// How it stands with each webhook that was ever to be sent something.
    ///
    /// # Errors
    /// When storage fails.
    fn receivers(&self) -> Kept<Vec<ReceiverRow>>;

    /// Writes how it stands with a webhook.
    ///
    /// # Errors
    /// When storage fails.
    fn put_receiver(&mut self, receiver: &ReceiverRow) -> Kept<()>;

    /// Deletes a webhook and what it has pending.
    ///
    /// # Errors
    /// When storage fails.
    fn delete_receiver(&mut self, name: &str) -> Kept<()>;

    /// What all webhooks have pending, in the order in which it is sent.
    ///
    /// # Errors
    /// When storage fails.
    fn pending(&self) -> Kept<Vec<PendingRow>>;

    /// Adds something pending.
    ///
    /// # Errors
    /// When storage fails.
    fn add_pending(&mut self, pending: &PendingRow) -> Kept<()>;

    /// Deletes something pending.
    ///
    /// # Errors
    /// When storage fails.
    fn delete_pending(&mut self, seq: u64) -> Kept<()>;

    /// All subscriptions to push messages, without what is only needed to send one (`to`, `language`, `url`).
    ///
    /// # Errors
    /// When storage fails.
    fn subscribers(&self) -> Kept<Vec<SubscriptionRow>>;

    /// A subscription of a ticket.
    ///
    /// # Errors
    /// When storage fails.
    fn subscription(&self, id: u64) -> Kept<Option<SubscriptionRow>>;

    /// Writes a subscription, in place of one of the same ticket.
    ///
    /// # Errors
    /// When storage fails.
    fn put_subscription(&mut self, subscription: &SubscriptionRow) -> Kept<()>;

    /// Deletes a subscription.
    ///
    /// # Errors
    /// When storage fails.
    fn delete_subscription(&mut self, id: u64) -> Kept<()>;
}
