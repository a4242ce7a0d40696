//! What is new in the room: found, kept for a month, and sent to webhooks. Route: `POST /news`.
//!
//! Notification, what must be sent because of it, and the memory that found it are written without a wait between: the platform
//! stores all of it or nothing. Then the alarm sends. The next attempt is planned before a message leaves, so that an object
//! that vanishes meanwhile sends it again, with the same id; nothing waits for a receiver but its own next message.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::futures::JsFuture;
use js_sys::{Error as JsError, Promise};
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::UrlSearchParams;
use worker::{Env, Result, SqlStorageValue as Sql, State, Storage};

use super::super::sql::{Database, Row, number};
use super::alarm::{Alarm, Job};
use crate::config::Webhook;
use crate::edge::calls::unreadable;
use crate::edge::clock::{now, random};
use crate::edge::platform::log_error;
use crate::edge::settings::Settings;
use crate::notifications::delivery::{self, GIVE_UP_MS, GONE_MS, Verdict, verdict};
use crate::notifications::{Detector, Kind, Notification, Observation};
use crate::protocol::wire;
use crate::time::milliseconds;

/// Notification are looked for at most so often, in milliseconds.
const POLL_MS: u64 = 1_000;
/// Where reports come in, they are looked for with these: the alarm leaves it to them for so long, in milliseconds.
const REPORTED_MS: u64 = 5_000;
/// So long they are kept, in milliseconds, and so many of them.
const KEPT_MS: u64 = 30 * 86_400_000;
const MAX_KEPT: u64 = 5_000;
/// So many are answered at once.
const MAX_SHOWN: u64 = 1_000;
/// So many wait for one receiver; beyond it the oldest is given up.
const MAX_PENDING: u64 = 200;
/// An attempt may take so long, in milliseconds.
const ATTEMPT_MS: u32 = 10_000;

/// A webhook that has lost its secret is looked at so often, in milliseconds.
const WITHOUT_SECRET_MS: u64 = 3_600_000;

const TABLES: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS news (at INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, \
     data TEXT NOT NULL, PRIMARY KEY (at, id)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS news_watch (one INTEGER PRIMARY KEY, detail BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS news_pending (seq INTEGER PRIMARY KEY, webhook TEXT NOT NULL, at INTEGER NOT NULL, \
     id TEXT NOT NULL, queued INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS news_webhooks (name TEXT PRIMARY KEY, tries INTEGER NOT NULL DEFAULT 0, \
     next INTEGER NOT NULL DEFAULT 0, succeeded INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, \
     reason TEXT NOT NULL DEFAULT '', dropped INTEGER NOT NULL DEFAULT 0, gone INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID",
];

#[wasm_bindgen(module = "/src/edge/news.js")]
extern "C" {
    /// `news.js` says what they take and give.
    #[wasm_bindgen(catch)]
    fn words(kind: &str, data: &str) -> std::result::Result<String, JsValue>;
    #[wasm_bindgen(catch)]
    fn body(
        format: &str,
        kind: &str,
        at: f64,
        text: &str,
        data: &str,
        dropped: u32,
    ) -> std::result::Result<String, JsValue>;
}

#[wasm_bindgen(module = "/src/edge/webhooks.js")]
extern "C" {
    /// `webhooks.js` says what it takes and gives.
    #[wasm_bindgen(js_name = send)]
    fn start_send(
        url: &str,
        id: &str,
        seconds: &str,
        signature: Option<String>,
        body: &str,
        milliseconds: u32,
    ) -> Promise;
}

#[derive(Serialize)]
struct Shown<'a> {
    room: &'a str,
    news: Vec<Notification>,
    webhooks: Vec<ShownWebhook>,
}

/// How it stands with a webhook; 0 is never.
#[derive(Serialize)]
struct ShownWebhook {
    name: String,
    /// What is missing for anything to be sent.
    problem: Option<&'static str>,
    pending: u64,
    tries: u64,
    next_attempt_at: Option<u64>,
    last_success_at: Option<u64>,
    last_failure_at: Option<u64>,
    last_failure: Option<String>,
    dropped: u64,
    stopped_until: Option<u64>,
}

/// Finds, keeps and sends the news of one room.
pub struct Newsroom {
    room: String,
    env: Env,
    sql: Database,
    storage: Storage,
    alarm: Rc<Alarm>,
    watch: RefCell<Detector>,
    looked_at: Cell<u64>,
    /// Whether there has ever been news: a room without has no tables.
    has_tables: Cell<bool>,
    /// The webhooks to which something is on its way.
    sending: RefCell<Vec<String>>,
}

impl Newsroom {
    /// With what was stored before, and the alarm planned for what is left to do.
    pub fn restore(state: &State, env: &Env, alarm: &Rc<Alarm>) -> Rc<Self> {
        let storage = state.storage();
        let newsroom = Self {
            room: state.id().name().unwrap_or_default(),
            env: env.clone(),
            sql: Database::of(&storage),
            storage,
            alarm: Rc::clone(alarm),
            watch: RefCell::default(),
            looked_at: Cell::new(0),
            has_tables: Cell::new(false),
            sending: RefCell::default(),
        };
        // Without the table there has been no news.
        if let Ok(rows) = newsroom.rows("SELECT detail FROM news_watch", vec![]) {
            newsroom.has_tables.set(true);
            let watch: Option<Detector> = rows.first().and_then(|row| wire::decode(row.bytes(0)).ok());
            newsroom.watch.replace(watch.unwrap_or_default());
            if let Ok(Some(next)) = newsroom.next_attempt() {
                newsroom.alarm.plan(Job::Deliver, next);
            }
            if let Some(again) = newsroom.watch.borrow().look_again_at() {
                newsroom.alarm.plan(Job::Notify, again);
            }
        }
        Rc::new(newsroom)
    }

    /// Whether it is time to look for news.
    pub fn is_due(&self, time: u64) -> bool {
        time >= self.looked_at.get() + POLL_MS
    }

    /// When the alarm may look, which leaves it to the reports where some come in.
    pub fn due_without_reports(&self) -> u64 {
        self.looked_at.get() + REPORTED_MS
    }

    /// When to look again though nothing is reported.
    pub fn look_again_at(&self) -> Option<u64> {
        self.watch.borrow().look_again_at()
    }

    /// Looks, and keeps what is new. Returns it.
    ///
    /// # Errors
    /// When storage fails.
    pub async fn look(&self, mut look: Observation<'_>) -> Result<Vec<Notification>> {
        let settings = Settings::of(&self.env);
        let thresholds = settings.webhooks.thresholds(&self.room);
        look.thresholds = &thresholds;
        self.looked_at.set(look.now);
        let (mut news, changed) = self.watch.borrow_mut().look(&look);
        if changed {
            self.keep(&mut news, look.now)?;
        }
        if let Some(again) = self.look_again_at() {
            self.alarm.plan(Job::Notify, again);
        }
        if !news.is_empty() {
            self.alarm.plan(Job::Deliver, look.now);
        }
        self.alarm.set(look.now, &self.storage).await?;
        Ok(news)
    }

    /// Keeps news that were found elsewhere, and sends them.
    ///
    /// # Errors
    /// When storage fails.
    pub async fn add(&self, news: &mut [Notification], time: u64) -> Result<()> {
        self.keep(news, time)?;
        self.alarm.wake(Job::Deliver, time, time, &self.storage).await
    }

    /// Writes down news, whom they are to be sent to, and the memory, in one turn.
    fn keep(&self, news: &mut [Notification], time: u64) -> Result<()> {
        for one in news.iter_mut() {
            one.text = words(one.kind.name(), &serde_json::to_string(&one.data)?)?;
        }
        if !self.has_tables.replace(true) {
            for table in TABLES {
                self.run(table, vec![])?;
            }
        }
        let watch = wire::encode(&*self.watch.borrow()).map_err(unreadable)?;
        self.run("INSERT OR REPLACE INTO news_watch VALUES (1, ?)", vec![watch.into()])?;
        if news.is_empty() {
            return Ok(());
        }
        for one in news {
            let added = self.rows(
                "INSERT OR IGNORE INTO news VALUES (?, ?, ?, ?, ?) RETURNING at",
                vec![
                    number(one.at),
                    one.id.as_str().into(),
                    one.kind.name().into(),
                    one.text.as_str().into(),
                    serde_json::to_string(&one.data)?.into(),
                ],
            )?;
            if !added.is_empty() {
                self.queue(one, time)?;
            }
        }
        self.run("DELETE FROM news WHERE at < ?", vec![number(time.saturating_sub(KEPT_MS))])?;
        self.run(
            "DELETE FROM news WHERE (at, id) <= (SELECT at, id FROM news ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?)",
            vec![number(MAX_KEPT)],
        )
    }

    /// Puts news in line for the webhooks that want them.
    fn queue(&self, news: &Notification, time: u64) -> Result<()> {
        let settings = Settings::of(&self.env);
        for webhook in settings.webhooks.iter().filter(|webhook| wants(webhook, &self.room, news)) {
            let name = webhook.name.as_str();
            if settings.receivers.get(name).is_none() {
                continue;
            }
            self.run("INSERT OR IGNORE INTO news_webhooks (name) VALUES (?)", vec![name.into()])?;
            let gone = self.one("SELECT gone FROM news_webhooks WHERE name = ?", vec![name.into()])?;
            if gone > 0 && time < gone + GONE_MS {
                continue;
            }
            self.run(
                "INSERT INTO news_pending (webhook, at, id, queued) VALUES (?, ?, ?, ?)",
                vec![name.into(), number(news.at), news.id.as_str().into(), number(time)],
            )?;
            self.drop(
                name,
                "seq <= (SELECT seq FROM news_pending WHERE webhook = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
                MAX_PENDING,
            )?;
        }
        Ok(())
    }

    /// Gives up what a webhook has pending and a condition is true for, and counts it.
    fn drop(&self, webhook: &str, condition: &str, value: u64) -> Result<()> {
        let query = format!("DELETE FROM news_pending WHERE webhook = ?1 AND {condition} RETURNING seq");
        let dropped = self.rows(&query, vec![webhook.into(), number(value)])?.len() as u64;
        if dropped > 0 {
            self.run(
                "UPDATE news_webhooks SET dropped = dropped + ?2 WHERE name = ?1",
                vec![webhook.into(), number(dropped)],
            )?;
        }
        Ok(())
    }

    /// The webhooks to which something must be sent now. Each is to be [sent to](Newsroom::send_to) without waiting for it.
    ///
    /// # Errors
    /// When storage fails.
    pub fn due(&self, time: u64) -> Result<Vec<String>> {
        if !self.has_tables.get() {
            return Ok(Vec::new());
        }
        let rows = self.rows(
            "SELECT DISTINCT name FROM news_webhooks JOIN news_pending ON webhook = name WHERE next <= ?",
            vec![number(time)],
        )?;
        let mut sending = self.sending.borrow_mut();
        let idle = rows.iter().map(|row| row.text(0).to_owned()).filter(|name| !sending.contains(name));
        let due: Vec<String> = idle.collect();
        sending.extend(due.iter().cloned());
        Ok(due)
    }

    /// When the next attempt that is not under way is due.
    ///
    /// # Errors
    /// When storage fails.
    pub fn next_attempt(&self) -> Result<Option<u64>> {
        if !self.has_tables.get() {
            return Ok(None);
        }
        let rows = self.rows(
            "SELECT name, next FROM news_webhooks WHERE name IN (SELECT webhook FROM news_pending)",
            vec![],
        )?;
        let sending = self.sending.borrow();
        let idle = rows.iter().filter(|row| !sending.iter().any(|name| name == row.text(0)));
        Ok(idle.map(|row| row.number(1)).min())
    }

    /// Sends a webhook all that it has pending, one after the other, until an attempt fails.
    pub async fn send_to(self: Rc<Self>, webhook: String) {
        loop {
            match self.send_first(&webhook).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    log_error(&format!("webhook {webhook}: {error}"));
                    break;
                }
            }
        }
        self.sending.borrow_mut().retain(|name| *name != webhook);
        let time = now();
        let next = self.next_attempt().ok().flatten();
        if let Some(next) = next
            && let Err(error) = self.alarm.wake(Job::Deliver, next.max(time), time, &self.storage).await
        {
            log_error(&format!("webhook {webhook}: {error}"));
        }
    }

    /// Sends a webhook the oldest of what it has pending. Returns whether it has got it.
    async fn send_first(&self, name: &str) -> Result<bool> {
        let settings = Settings::of(&self.env);
        let time = now();
        let Some(webhook) = settings.webhooks.get(name) else {
            // It is no longer configured.
            self.run("DELETE FROM news_pending WHERE webhook = ?", vec![name.into()])?;
            self.run("DELETE FROM news_webhooks WHERE name = ?", vec![name.into()])?;
            return Ok(false);
        };
        self.drop(name, "queued <= ?2", time.saturating_sub(GIVE_UP_MS))?;
        let rows = self.rows(
            "SELECT seq, news.at, news.id, kind, text, data, tries, dropped FROM news_pending \
             JOIN news ON news.at = news_pending.at AND news.id = news_pending.id \
             JOIN news_webhooks ON name = webhook WHERE webhook = ? ORDER BY seq LIMIT 1",
            vec![name.into()],
        )?;
        let Some(row) = rows.first() else { return Ok(false) };
        let Some(receiver) = settings.receivers.get(name) else {
            self.plan_attempt(name, 0, time + WITHOUT_SECRET_MS, time).await?;
            return Ok(false);
        };
        let (at, id, kind, text, data) = (row.number(1), row.text(2), row.text(3), row.text(4), row.text(5));
        let (seq, tries, dropped) = (row.number(0), row.number(6) as u32 + 1, row.number(7));
        let chance = u32::from_le_bytes(random()?);
        let wait = |after: u64| delivery::wait_ms(tries, after, f64::from(chance) / f64::from(u32::MAX));
        self.plan_attempt(name, tries, time + wait(0), time).await?;

        let body = body(webhook.format.name(), kind, at as f64, text, data, dropped as u32)?;
        let seconds = time / 1_000;
        let signature = receiver.secrets.as_ref().map(|secrets| secrets.sign(id, seconds, &body));
        let sent = start_send(&receiver.url, id, &seconds.to_string(), signature, &body, ATTEMPT_MS);
        let answer = JsFuture::from(sent).await;
        let time = now();
        let (reason, retry_after) = match answer.map(|answer| answer.as_string().unwrap_or_default()) {
            Ok(answer) => {
                let (status, after) = answer.split_once(' ').unwrap_or_default();
                match verdict(status.parse().unwrap_or(0)) {
                    Verdict::Delivered => {
                        self.run("DELETE FROM news_pending WHERE seq = ?", vec![number(seq)])?;
                        self.run(
                            "UPDATE news_webhooks SET tries = 0, next = 0, succeeded = ?2, dropped = dropped - ?3, gone = 0 \
                             WHERE name = ?1",
                            vec![name.into(), number(time), number(dropped)],
                        )?;
                        return Ok(true);
                    }
                    Verdict::Gone => {
                        self.drop(name, "seq > ?2", 0)?;
                        self.run(
                            "UPDATE news_webhooks SET gone = ?2 WHERE name = ?1",
                            vec![name.into(), number(time)],
                        )?;
                    }
                    Verdict::Again => {}
                }
                (format!("status {status}"), after.parse().unwrap_or(0))
            }
            Err(error) => {
                (error.dyn_ref::<JsError>().map_or_else(String::new, |error| error.message().into()), 0)
            }
        };
        log_error(&format!("webhook {name}: attempt {tries}: {reason}"));
        self.run(
            "UPDATE news_webhooks SET failed = ?2, reason = ?3 WHERE name = ?1",
            vec![name.into(), number(time), reason.into()],
        )?;
        self.plan_attempt(name, tries, time + wait(retry_after), time).await?;
        Ok(false)
    }

    /// Writes down when a webhook is sent to next, and sees to it that the platform rings.
    async fn plan_attempt(&self, name: &str, tries: u32, next: u64, time: u64) -> Result<()> {
        self.run(
            "UPDATE news_webhooks SET tries = ?2, next = ?3 WHERE name = ?1",
            vec![name.into(), number(tries.into()), number(next)],
        )?;
        self.alarm.wake(Job::Deliver, next, time, &self.storage).await
    }

    /// The news that a query asks for, oldest first, and how it stands with the webhooks: a status code and JSON.
    ///
    /// # Errors
    /// When storage fails.
    pub fn show(&self, query: &str) -> Result<(u16, String)> {
        let (from, to) = match (time_of(query, "from"), time_of(query, "to")) {
            (Ok(from), Ok(to)) => (from.unwrap_or(0), to.unwrap_or(i64::MAX as u64)),
            (Err(error), _) | (_, Err(error)) => {
                return Ok((400, serde_json::json!({ "error": error }).to_string()));
            }
        };
        let settings = Settings::of(&self.env);
        let (mut news, mut known) = (Vec::new(), Vec::new());
        if self.has_tables.get() {
            // The newest of them, where there are too many.
            news = self.rows(
                "SELECT at, id, kind, text, data FROM news WHERE at >= ? AND at <= ? ORDER BY at DESC, id DESC LIMIT ?",
                vec![number(from), number(to), number(MAX_SHOWN)],
            )?;
            known = self.rows(
                "SELECT name, tries, next, succeeded, failed, reason, dropped, gone, \
                 (SELECT count(*) FROM news_pending WHERE webhook = name) FROM news_webhooks",
                vec![],
            )?;
        }
        let time = now();
        let webhooks =
            settings.webhooks.iter().filter(|webhook| webhook.hears_of(&self.room)).map(|webhook| {
                let none = Row::default();
                let row = known.iter().find(|row| row.text(0) == webhook.name).unwrap_or(&none);
                let maybe = |column: usize| row.maybe(column).filter(|time| *time > 0);
                let pending = row.number(8);
                let reason = row.text(5);
                ShownWebhook {
                    name: webhook.name.clone(),
                    problem: settings
                        .receivers
                        .get(&webhook.name)
                        .is_none()
                        .then_some("no valid secret or url"),
                    pending,
                    tries: row.number(1),
                    next_attempt_at: maybe(2).filter(|_| pending > 0),
                    last_success_at: maybe(3),
                    last_failure_at: maybe(4),
                    last_failure: (!reason.is_empty()).then(|| reason.to_owned()),
                    dropped: row.number(6),
                    stopped_until: maybe(7).map(|gone| gone + GONE_MS).filter(|until| time < *until),
                }
            });
        let shown = Shown {
            room: &self.room,
            news: news.iter().rev().filter_map(read).collect(),
            webhooks: webhooks.collect(),
        };
        Ok((200, serde_json::to_string(&shown)?))
    }

    fn run(&self, query: &str, values: Vec<Sql>) -> Result<()> {
        self.sql.run(query, values)
    }

    fn rows(&self, query: &str, values: Vec<Sql>) -> Result<Vec<Row>> {
        self.sql.rows(query, values)
    }

    /// The number that a query finds; 0: none.
    fn one(&self, query: &str, values: Vec<Sql>) -> Result<u64> {
        Ok(self.rows(query, values)?.first().map_or(0, |row| row.number(0)))
    }
}

/// A time in a query, in milliseconds since the epoch.
fn time_of(query: &str, name: &str) -> std::result::Result<Option<u64>, String> {
    let query = UrlSearchParams::new_with_str(query).map_err(|_| "The query cannot be read".to_owned())?;
    let Some(text) = query.get(name) else { return Ok(None) };
    let time = text.parse().ok().or_else(|| milliseconds(&text)).filter(|time| i64::try_from(*time).is_ok());
    time.map(Some).ok_or_else(|| {
        format!("{name} must be milliseconds since the epoch, or a time such as 2026-11-27T09:00:00Z")
    })
}

/// Whether a webhook is to be sent news of a room.
fn wants(webhook: &Webhook, room: &str, news: &Notification) -> bool {
    let of_wait = matches!(news.kind, Kind::WaitAbove | Kind::WaitBelow);
    let threshold = news.data.get("threshold_minutes").and_then(serde_json::Value::as_u64);
    webhook.hears_of(room)
        && webhook.news.contains(&news.kind)
        && (!of_wait || webhook.wait_minutes.map(u64::from) == threshold)
}

/// Notification as they were stored.
fn read(row: &Row) -> Option<Notification> {
    Some(Notification {
        at: row.number(0),
        id: row.text(1).to_owned(),
        kind: Kind::named(row.text(2))?,
        text: row.text(3).to_owned(),
        data: serde_json::from_str(row.text(4)).ok()?,
    })
}
