//! The coordinator of the health checks: stores all results, in `SQLite`, wakes observers and tells rooms. Routes:
//! `POST /notify`, `/record`, `/view`, `/tend`. Its alarm removes what is too old or too much, and wakes observers that do not report.
//!
//! All that one message changes is written without a wait between: the platform stores it as a whole, before the answer
//! leaves. What is told twice is found by its key, and changes nothing.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use worker::{Env, Request, Response, Result, SqlStorageValue as Sql, State};

use super::super::no_such_route;
use super::super::sql::{Database, Row, number};
use crate::edge::calls::{HEALTH, answer, ask, hear, message, unreadable, wake};
use crate::edge::clock::now;
use crate::edge::configuration;
use crate::edge::platform::log_error;
use crate::edge::settings::Settings;
use crate::health::agree::Agreement;
use crate::health::analytics::{Range, SLOTS_MS, Sum, Tally, kept_ms, slot};
use crate::health::check::Check;
use crate::health::history::Known;
use crate::health::messages::{self, Ask, NOTIFY, Notify, RECORD, Stored, Told, VERSION, VIEW};
use crate::health::observer::{Post, TEND, WAKE};
use crate::health::page;
use crate::health::view::{ChangeView, CheckRow, CheckView, ResultView, Status, SumRow, View};
use crate::health::{ProbeResult, Reason, Source, StateChange};
use crate::protocol::GlobalOriginHealth;
use crate::protocol::messages::OriginHealth;
use crate::protocol::records::{self, Found, Record};
use crate::protocol::schema::{Schema, SchemaStep};

/// Time between two wakings of observers that do not report, in milliseconds.
const TEND_MS: u64 = 30_000;
/// Timeout of waking an observer, in milliseconds; it begins though it takes longer.
const WAKE_DEADLINE_MS: u64 = 2_000;
/// Timeout of telling a room's Global how its origin is, in milliseconds.
const TELL_DEADLINE_MS: u64 = 2_000;
/// Retry interval of that, in milliseconds.
const TELL_AGAIN_MS: u64 = 5_000;
const DAY_MS: u64 = 86_400_000;
/// Time between two alarms, in milliseconds.
const PRUNE_MS: u64 = 3_600_000;
/// More checks than this are not kept: the one that was silent for longest makes room.
const MAX_CHECKS: u64 = 200;
/// How many changes of state are kept of each check.
const MAX_EVENTS: u64 = 2_000;
/// How many single results are kept of each check.
const MAX_RESULTS: u64 = 20_000;
/// How many changes, and how many results, are shown.
const SHOWN: u64 = 50;
/// TTL of what was shown, in milliseconds.
const SHOWN_MS: u64 = 2_000;
/// How many answers are kept for that.
const MAX_SHOWN: usize = 16;
/// Results further ahead than this are not believed, in milliseconds.
const AHEAD_MS: u64 = 600_000;

/// Checks, their changes of state, single results, sums of results, what observers agree on, and what rooms were told.
/// A `WITHOUT ROWID` table lies in the order of its key.
const TABLES: Schema =
    Schema { name: "health", steps: &[SchemaStep { statements: &TABLES_1, older_code_goes_on: false }] };
const TABLES_1: [&str; 6] = [
    "CREATE TABLE IF NOT EXISTS checks (id TEXT PRIMARY KEY, name TEXT NOT NULL, healthy INTEGER, reason TEXT NOT NULL, \
     since INTEGER NOT NULL, at INTEGER NOT NULL, expected TEXT NOT NULL, actual INTEGER, heard INTEGER NOT NULL, \
     floor INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS events (id TEXT NOT NULL, at INTEGER NOT NULL, healthy INTEGER NOT NULL, \
     reason TEXT NOT NULL, expected TEXT NOT NULL, actual INTEGER, PRIMARY KEY (id, at, healthy, reason)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS results (id TEXT NOT NULL, at INTEGER NOT NULL, region TEXT NOT NULL, \
     observer INTEGER NOT NULL, detail BLOB NOT NULL, PRIMARY KEY (id, at, region, observer)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS sums (id TEXT NOT NULL, size INTEGER NOT NULL, start INTEGER NOT NULL, \
     region TEXT NOT NULL, healthy INTEGER NOT NULL, total INTEGER NOT NULL, detail BLOB NOT NULL, \
     PRIMARY KEY (id, size, start, region)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS agreements (id TEXT PRIMARY KEY, detail BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS told (room TEXT NOT NULL, id TEXT NOT NULL, healthy INTEGER NOT NULL, \
     since INTEGER NOT NULL, PRIMARY KEY (room, id)) WITHOUT ROWID",
];

pub struct Coordinator {
    state: State,
    env: Env,
    sql: Database,
    tables_made: Cell<bool>,
    alarm_set: Cell<bool>,
    tended_at: Cell<u64>,
    /// What was shown, and when: many may look at the same. Forgotten with the next change.
    shown: RefCell<Vec<(Ask, u64, String)>>,
}

impl Coordinator {
    pub fn new(state: State, env: Env) -> Self {
        let sql = Database::of(&state.storage());
        Self {
            state,
            env,
            sql,
            tables_made: Cell::new(false),
            alarm_set: Cell::new(false),
            tended_at: Cell::new(0),
            shown: RefCell::default(),
        }
    }

    pub async fn fetch(&self, mut request: Request) -> Result<Response> {
        self.make_tables()?;
        hear(&request);
        configuration::follow(&self.env, |work| self.state.wait_until(work));
        match request.path().as_str() {
            NOTIFY => {
                let Notify { name, change, .. } = message(&mut request).await?;
                self.wake().await?;
                self.change(&name, &change)?;
                self.tell_rooms().await?;
                answer(&Stored { v: VERSION })
            }
            RECORD => {
                let messages::Record { results, .. } = message(&mut request).await?;
                self.wake().await?;
                self.record(&results)?;
                self.tell_rooms().await?;
                self.tend().await?;
                answer(&Stored { v: VERSION })
            }
            VIEW => {
                let ask: Ask = message(&mut request).await?;
                self.tend().await?;
                answer(&Told { v: VERSION, body: self.show(ask)?, checks: Some(self.identities()?) })
            }
            TEND => {
                self.tell_rooms().await?;
                self.tend().await?;
                answer(&())
            }
            path => no_such_route(path),
        }
    }

    pub async fn alarm(&self) -> Result<Response> {
        // Set again first: whatever happens to this one, another one follows.
        self.state.storage().set_alarm(Duration::from_millis(PRUNE_MS)).await?;
        self.make_tables()?;
        self.prune()?;
        for (name, hint) in self.silent()? {
            // The first call makes it, near its location hint.
            if let Err(error) = wake(&self.env, HEALTH, name, hint, WAKE, WAKE_DEADLINE_MS).await {
                log_error(&error.to_string());
            }
        }
        self.tell_rooms().await?;
        Response::empty()
    }

    /// Tells rooms whose origin a check speaks for how it is, if they have not confirmed it yet. A room that does not answer
    /// is told again by the alarm.
    async fn tell_rooms(&self) -> Result<()> {
        let settings = Settings::of(&self.env);
        let mut unconfirmed = false;
        for room in settings.rooms.iter() {
            for check in &room.health_checks {
                let changed = self.rows(
                    "SELECT checks.id, checks.healthy, checks.since FROM checks LEFT JOIN told \
                     ON told.id = checks.id AND told.room = ?1 WHERE lower(checks.name) = lower(?2) \
                     AND checks.healthy IS NOT NULL \
                     AND (checks.healthy, checks.since) IS NOT (told.healthy, told.since)",
                    vec![room.name.as_str().into(), check.as_str().into()],
                )?;
                for row in changed {
                    let (id, healthy, since) = (row.text(0), row.number(1), row.number(2));
                    let told =
                        OriginHealth { v: VERSION, check: check.clone(), healthy: healthy != 0, at: since };
                    match ask::<GlobalOriginHealth>(&self.env, &room.name, &told, TELL_DEADLINE_MS).await {
                        Ok(()) => self.run(
                            "INSERT OR REPLACE INTO told (room, id, healthy, since) VALUES (?, ?, ?, ?)",
                            vec![room.name.as_str().into(), id.into(), number(healthy), number(since)],
                        )?,
                        Err(error) => {
                            log_error(&error.to_string());
                            unconfirmed = true;
                        }
                    }
                }
            }
        }
        if unconfirmed {
            self.state.storage().set_alarm(Duration::from_millis(TELL_AGAIN_MS)).await?;
        }
        Ok(())
    }

    fn make_tables(&self) -> Result<()> {
        if !self.tables_made.get() {
            self.sql.migrate(&TABLES)?;
            self.tables_made.set(true);
        }
        Ok(())
    }

    /// Sets the alarm if there is none.
    async fn wake(&self) -> Result<()> {
        if !self.alarm_set.get() && self.state.storage().get_alarm().await?.is_none() {
            self.state.storage().set_alarm(Duration::from_millis(PRUNE_MS)).await?;
        }
        self.alarm_set.set(true);
        Ok(())
    }

    /// Takes in a change of a check's state: a notification, or what observers agree on.
    fn change(&self, name: &str, change: &StateChange) -> Result<()> {
        let id = change.check.as_str();
        self.add_check(id, name, &change.expected_codes)?;
        let reason = change.reason.text();
        let event = self.rows(
            "INSERT OR IGNORE INTO events (id, at, healthy, reason, expected, actual) VALUES (?, ?, ?, ?, ?, ?) \
             RETURNING at",
            vec![
                id.into(),
                number(change.at),
                i32::from(change.healthy).into(),
                reason.into(),
                change.expected_codes.as_str().into(),
                change.actual_code.map(i32::from).into(),
            ],
        )?;
        if event.is_empty() {
            return Ok(());
        }
        self.shown.borrow_mut().clear();
        let Some(known) = Known::after(self.known(id)?.as_ref(), change) else { return Ok(()) };
        self.run(
            "UPDATE checks SET name = ?, healthy = ?, reason = ?, since = ?, at = ?, expected = ?, actual = ? WHERE id = ?",
            vec![
                name.into(),
                i32::from(known.healthy).into(),
                reason.into(),
                number(known.since),
                number(known.at),
                change.expected_codes.as_str().into(),
                change.actual_code.map(i32::from).into(),
                id.into(),
            ],
        )?;
        self.keep_newest("events", id, MAX_EVENTS)?;
        Ok(())
    }

    /// What is known of a check.
    fn known(&self, id: &str) -> Result<Option<Known>> {
        let rows = self.rows(
            "SELECT healthy, reason, since, at FROM checks WHERE id = ? AND healthy IS NOT NULL",
            vec![id.into()],
        )?;
        Ok(rows.first().map(|row| Known {
            healthy: row.number(0) != 0,
            reason: Reason::of(row.text(1)),
            since: row.number(2),
            at: row.number(3),
        }))
    }

    /// Sees to it that a check is there.
    fn add_check(&self, id: &str, name: &str, expected_codes: &str) -> Result<()> {
        let heard = number(now());
        let known =
            self.rows("UPDATE checks SET heard = ? WHERE id = ? RETURNING id", vec![heard, id.into()])?;
        if !known.is_empty() {
            return Ok(());
        }
        self.run(
            "INSERT INTO checks (id, name, reason, since, at, expected, heard) VALUES (?, ?, '', 0, 0, ?, ?)",
            vec![id.into(), name.into(), expected_codes.into(), number(now())],
        )?;
        let silent = self.rows(
            "SELECT id FROM checks WHERE id <> ? ORDER BY heard DESC LIMIT -1 OFFSET ?",
            vec![id.into(), number(MAX_CHECKS - 1)],
        )?;
        for row in silent {
            self.forget(row.text(0))?;
        }
        Ok(())
    }

    /// Removes all that is kept of a check.
    fn forget(&self, id: &str) -> Result<()> {
        for table in ["checks", "events", "results", "sums", "agreements", "told"] {
            self.run(&format!("DELETE FROM {table} WHERE id = ?"), vec![id.into()])?;
        }
        Ok(())
    }

    /// Counts what observers saw.
    fn record(&self, results: &[ProbeResult]) -> Result<()> {
        let settings = Settings::of(&self.env);
        for result in results {
            // An observer may not know yet that its check is gone.
            if let Some(check) = settings.checks.get(&result.check)
                && self.add_result(result)?
            {
                self.weigh(check, result)?;
            }
        }
        Ok(())
    }

    /// Adds an observer's result to what all of them agree on.
    fn weigh(&self, check: &Check, result: &ProbeResult) -> Result<()> {
        let found = self.agreement(check)?;
        let may_write = found.may_be_replaced();
        let mut agreement = found.record.unwrap_or_default();
        let change = agreement.record(check, result, now());
        if may_write {
            let detail = records::write(&agreement).map_err(unreadable)?;
            let id = Source::Check.check_id(&check.name);
            self.run(
                "INSERT OR REPLACE INTO agreements (id, detail) VALUES (?, ?)",
                vec![id.into(), detail.into()],
            )?;
        }
        change.map_or(Ok(()), |change| self.change(&check.name, &change))
    }

    /// What the observers of a check say.
    fn agreement(&self, check: &Check) -> Result<Found<Agreement>> {
        let id = Source::Check.check_id(&check.name);
        let rows = self.rows("SELECT detail FROM agreements WHERE id = ?", vec![id.into()])?;
        Ok(found(rows.first(), 0))
    }

    /// Rings the alarm now if there is an observer to be woken. Nobody waits for that.
    async fn tend(&self) -> Result<()> {
        let time = now();
        if time < self.tended_at.get() + TEND_MS {
            return Ok(());
        }
        self.tended_at.set(time);
        if !self.silent()?.is_empty() {
            self.state.storage().set_alarm(Duration::ZERO).await?;
        }
        Ok(())
    }

    /// The observers that do not report: their names and location hints.
    fn silent(&self) -> Result<Vec<(String, &'static str)>> {
        let (settings, time) = (Settings::of(&self.env), now());
        let mut silent = Vec::new();
        for check in settings.checks.iter() {
            let agreement = self.agreement(check)?.record.unwrap_or_default();
            for post in Post::all(check) {
                if !agreement.is_reporting(&post, time) {
                    silent.push((post.name(), post.region.hint));
                }
            }
        }
        Ok(silent)
    }

    /// Counts a result; `false`: it has been counted before, or is too old to tell.
    fn add_result(&self, result: &ProbeResult) -> Result<bool> {
        let (id, time) = (Source::Check.check_id(&result.check), now());
        if result.at > time + AHEAD_MS || result.at + self.days() * DAY_MS < time {
            return Ok(false);
        }
        self.add_check(&id, &result.check, &result.expected_codes)?;
        let detail = records::write(result).map_err(unreadable)?;
        let added = self.rows(
            "INSERT OR IGNORE INTO results (id, region, observer, at, detail) SELECT ?1, ?2, ?3, ?4, ?5 \
             FROM checks WHERE id = ?1 AND floor <= ?4 RETURNING at",
            vec![
                id.as_str().into(),
                result.region.as_str().into(),
                i32::from(result.observer).into(),
                number(result.at),
                detail.into(),
            ],
        )?;
        if added.is_empty() {
            return Ok(false);
        }
        self.shown.borrow_mut().clear();
        for size in SLOTS_MS {
            let key = || {
                let start = slot(result.at, size);
                vec![Sql::from(id.as_str()), number(size), number(start), result.region.as_str().into()]
            };
            let stored = self.rows(
                "SELECT healthy, total, detail FROM sums WHERE id = ? AND size = ? AND start = ? AND region = ?",
                key(),
            )?;
            let row = stored.first();
            let (healthy, total) = row.map_or((0, 0), |row| (row.number(0), row.number(1)));
            let found = found::<Sum>(row, 2);
            if !found.may_be_replaced() {
                continue;
            }
            let mut sum = found.record.unwrap_or_default();
            sum.add(result);
            let detail = records::write(&sum).map_err(unreadable)?;
            let counts = vec![number(healthy + u64::from(result.healthy)), number(total + 1), detail.into()];
            self.run(
                "INSERT OR REPLACE INTO sums (id, size, start, region, healthy, total, detail) \
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
                [key(), counts].concat(),
            )?;
        }
        Ok(true)
    }

    /// The page or the JSON, at most a moment old; `None`: no such check.
    fn show(&self, ask: Ask) -> Result<Option<String>> {
        let time = now();
        let mut shown = self.shown.borrow_mut();
        shown.retain(|(_, at, _)| time < at + SHOWN_MS);
        if let Some((.., body)) = shown.iter().find(|(asked, ..)| *asked == ask) {
            return Ok(Some(body.clone()));
        }
        let Some(view) = self.view(&ask)? else { return Ok(None) };
        let body = if ask.script.is_empty() { page::json(&view) } else { page::page(&view, &ask.script) };
        if shown.len() < MAX_SHOWN {
            shown.push((ask, time, body.clone()));
        }
        Ok(Some(body))
    }

    /// All that there is to show; `None`: no such check.
    fn view(&self, ask: &Ask) -> Result<Option<View>> {
        let (time, range) = (now(), ask.range);
        let rows = self.rows(
            "SELECT id, name, healthy, reason, since, expected, actual FROM checks WHERE ?1 = '' OR id = ?1 \
             ORDER BY name, id",
            vec![ask.check.as_str().into()],
        )?;
        if rows.is_empty() && !ask.check.is_empty() {
            return Ok(None);
        }
        let settings = Settings::of(&self.env);
        let checks = rows
            .iter()
            .filter(|row| is_shown(&settings, row))
            .map(|row| {
                let row = CheckRow {
                    id: row.text(0).to_owned(),
                    name: row.text(1).to_owned(),
                    healthy: row.maybe(2).map(|healthy| healthy != 0),
                    reason: row.text(3).to_owned(),
                    since: row.number(4),
                    expected_codes: row.text(5).to_owned(),
                    actual_code: code(row, 6),
                };
                Ok(match Source::of(&row.id) {
                    Source::Webhook => {
                        let [.., longest] = Range::ALL;
                        let changes = self.changes_since(&row.id, longest.start(time))?;
                        CheckView::of_changes(row, range, time, &changes)
                    }
                    Source::Check => {
                        let mut tallies = [Tally::default(); 4];
                        for (tally, range) in tallies.iter_mut().zip(Range::ALL) {
                            *tally = self.tally(&row.id, range, time)?;
                        }
                        let sums = self.sums(&row.id, range, time)?;
                        CheckView::of_results(row, range, time, tallies, &sums)
                    }
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let from = range.start(time);
        Ok(Some(View {
            at: time,
            range,
            from,
            status: View::overall(&checks),
            selected: ask.check.clone(),
            checks,
            changes: self.changes_shown(&ask.check, from)?,
            results: self.results_shown(&ask.check, from)?,
        }))
    }

    /// The identities of all checks that are shown.
    fn identities(&self) -> Result<Vec<String>> {
        let settings = Settings::of(&self.env);
        let rows = self.rows("SELECT id, name FROM checks", vec![])?;
        Ok(rows.iter().filter(|row| is_shown(&settings, row)).map(|row| row.text(0).to_owned()).collect())
    }

    /// A check's changes from a time on, oldest first, and the one before them.
    fn changes_since(&self, id: &str, from: u64) -> Result<Vec<StateChange>> {
        let rows = self.rows(
            "SELECT at, healthy, reason, expected, actual FROM events WHERE id = ?1 AND at >= \
             (SELECT coalesce(max(at), 0) FROM events WHERE id = ?1 AND at <= ?2) ORDER BY at",
            vec![id.into(), number(from)],
        )?;
        let change = |row: &Row| StateChange {
            check: id.to_owned(),
            at: row.number(0),
            healthy: row.number(1) != 0,
            reason: Reason::of(row.text(2)),
            expected_codes: row.text(3).to_owned(),
            actual_code: code(row, 4),
        };
        Ok(rows.iter().map(change).collect())
    }

    /// How many of a check's results were healthy.
    fn tally(&self, id: &str, range: Range, time: u64) -> Result<Tally> {
        let rows = self.rows(
            "SELECT sum(healthy), sum(total) FROM sums WHERE id = ? AND size = ? AND start >= ?",
            vec![id.into(), number(range.slot_ms()), number(range.start(time))],
        )?;
        Ok(rows
            .first()
            .map_or_else(Tally::default, |row| Tally { healthy: row.number(0), total: row.number(1) }))
    }

    /// A check's results by slot and region.
    fn sums(&self, id: &str, range: Range, time: u64) -> Result<Vec<SumRow>> {
        let rows = self.rows(
            "SELECT start, region, healthy, total, detail FROM sums WHERE id = ? AND size = ? AND start >= ? \
             ORDER BY region",
            vec![id.into(), number(range.slot_ms()), number(range.start(time))],
        )?;
        let sum = |row: &Row| SumRow {
            start: row.number(0),
            region: row.text(1).to_owned(),
            tally: Tally { healthy: row.number(2), total: row.number(3) },
            sum: found(Some(row), 4).record.unwrap_or_default(),
        };
        Ok(rows.iter().map(sum).collect())
    }

    /// The newest changes of state, of one check or of all.
    fn changes_shown(&self, id: &str, from: u64) -> Result<Vec<ChangeView>> {
        let rows = self.rows(
            "SELECT checks.name, events.at, events.healthy, events.reason, events.expected, events.actual \
             FROM events JOIN checks USING (id) WHERE (?1 = '' OR id = ?1) AND events.at >= ?2 \
             ORDER BY events.at DESC LIMIT ?3",
            vec![id.into(), number(from), number(SHOWN)],
        )?;
        let change = |row: &Row| ChangeView {
            check: row.text(0).to_owned(),
            at: row.number(1),
            status: Status::of(Some(row.number(2) != 0)),
            reason: row.text(3).to_owned(),
            expected_codes: row.text(4).to_owned(),
            actual_code: code(row, 5),
        };
        Ok(rows.iter().map(change).collect())
    }

    /// The newest results, of one check or of all.
    fn results_shown(&self, id: &str, from: u64) -> Result<Vec<ResultView>> {
        let mut shown = Vec::new();
        let checks = self.rows(
            "SELECT id FROM checks WHERE (?1 = '' OR id = ?1) AND id >= 'check/' AND id < 'check0'",
            vec![id.into()],
        )?;
        // Check by check, because results lie in the order of their checks.
        for check in checks {
            let rows = self.rows(
                "SELECT detail FROM results WHERE id = ? AND at >= ? ORDER BY at DESC LIMIT ?",
                vec![check.text(0).into(), number(from), number(SHOWN)],
            )?;
            shown.extend(rows.iter().filter_map(|row| found::<ProbeResult>(Some(row), 0).record));
        }
        shown.sort_by_key(|result| std::cmp::Reverse(result.at));
        shown.truncate(SHOWN as usize);
        let result = |result: ProbeResult| ResultView {
            check: result.check,
            region: result.region,
            observer: result.observer,
            at: result.at,
            status: Status::of(Some(result.healthy)),
            reason: result.reason.text().to_owned(),
            expected_codes: result.expected_codes,
            actual_code: result.actual_code,
            waterfall: result.waterfall,
        };
        Ok(shown.into_iter().map(result).collect())
    }

    /// Removes what is too old, and what is more than may be kept.
    fn prune(&self) -> Result<()> {
        self.shown.borrow_mut().clear();
        let (time, days) = (now(), self.days());
        let oldest = time.saturating_sub(days * DAY_MS);
        for size in SLOTS_MS {
            let start = time.saturating_sub(kept_ms(size, days));
            self.run("DELETE FROM sums WHERE size = ? AND start < ?", vec![number(size), number(start)])?;
        }
        self.run("DELETE FROM results WHERE at < ?", vec![number(oldest)])?;
        for check in self.rows("SELECT id, heard FROM checks", vec![])? {
            let id = check.text(0);
            // A check of ours that has had no observer for this time is no longer configured; the platform, though, is
            // silent about a check as long as nothing happens.
            if Source::of(id) == Source::Check && check.number(1) < oldest {
                self.forget(id)?;
                continue;
            }
            // The newest of the old ones tells how the time that is kept began.
            self.run(
                "DELETE FROM events WHERE id = ?1 AND at < (SELECT max(at) FROM events WHERE id = ?1 AND at <= ?2)",
                vec![id.into(), number(oldest)],
            )?;
            self.keep_newest("events", id, MAX_EVENTS)?;
            if let Some(removed) = self.keep_newest("results", id, MAX_RESULTS)? {
                // What is told once more after it has been removed would be counted twice.
                self.run("UPDATE checks SET floor = ? WHERE id = ?", vec![number(removed + 1), id.into()])?;
            }
        }
        Ok(())
    }

    /// Removes all but the newest `count` rows of a check. Returns the time of the newest removed.
    fn keep_newest(&self, table: &str, id: &str, count: u64) -> Result<Option<u64>> {
        let rows = self.rows(
            &format!("SELECT at FROM {table} WHERE id = ? ORDER BY at DESC LIMIT 1 OFFSET ?"),
            vec![id.into(), number(count)],
        )?;
        let Some(newest) = rows.first().map(|row| row.number(0)) else { return Ok(None) };
        self.run(&format!("DELETE FROM {table} WHERE id = ? AND at <= ?"), vec![id.into(), number(newest)])?;
        Ok(Some(newest))
    }

    fn days(&self) -> u64 {
        u64::from(Settings::of(&self.env).health_days)
    }

    fn run(&self, query: &str, values: Vec<Sql>) -> Result<()> {
        self.sql.run(query, values)
    }

    fn rows(&self, query: &str, values: Vec<Sql>) -> Result<Vec<Row>> {
        self.sql.rows(query, values)
    }
}

/// What is stored in a column.
fn found<T: Record>(row: Option<&Row>, column: usize) -> Found<T> {
    Found::new(row.map(|row| row.bytes(column)))
}

/// A status code.
fn code(row: &Row, column: usize) -> Option<u16> {
    row.maybe(column).and_then(|code| u16::try_from(code).ok())
}

/// Whether a check, by its identity and name, is shown. One of ours that is no longer configured is kept for a while, in case
/// it comes back, but is not shown.
fn is_shown(settings: &Settings, row: &Row) -> bool {
    Source::of(row.text(0)) == Source::Webhook || settings.checks.get(row.text(1)).is_some()
}
