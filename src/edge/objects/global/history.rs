//! The room's history, in `SQLite`: a row per minute, a row with what is needed to go on from there and the colos' parts,
//! and a row per hour. Silent minutes have none.

use std::cell::Cell;

use serde::de::DeserializeOwned;
use worker::{Response, Result, SqlStorageValue as Sql, State};

use super::{Global, operator_answer};
use crate::admission::minute_of;
use crate::counts::{self, Recorded};
use crate::edge::calls::unreadable;
use crate::edge::clock::now;
use crate::edge::objects::sql::{self, Database};
use crate::history::{
    Cells, HOURS_KEPT, HistoryAsk, MINUTES_KEPT, Minute, PARTS_KEPT, Record, Resolution, hours,
};
use crate::protocol::wire;

/// A table whose key is a number lies in its order, and needs no index.
const TABLES: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS minutes (minute INTEGER PRIMARY KEY, detail BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS parts (minute INTEGER PRIMARY KEY, detail BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS hours (hour INTEGER PRIMARY KEY, detail BLOB NOT NULL)",
];
const HOUR: u32 = 60;
/// A minute that could not be recorded in time is tried again so often, in milliseconds.
const AGAIN_MS: u64 = 15_000;
const HOUR_MS: u64 = 3_600_000;

pub(super) struct History {
    database: Database,
    tables_made: Cell<bool>,
    /// The hours before this one are summed up, and what is too old is deleted.
    summed_up: Cell<u32>,
}

impl History {
    pub(super) fn new(state: &State) -> Self {
        Self {
            database: Database::of(&state.storage()),
            tables_made: Cell::new(false),
            summed_up: Cell::new(0),
        }
    }

    /// The last minute that is recorded. Before there is one, there is no table either.
    pub(super) fn last(&self) -> Option<Minute> {
        let found = self.rows("SELECT minute, detail FROM parts ORDER BY minute DESC LIMIT 1", vec![]);
        let last = found.ok()?.pop().map(|(_, minute)| minute);
        self.tables_made.set(self.tables_made.get() || last.is_some());
        last
    }

    /// Stores a minute. The platform stores both rows together, or none.
    fn add(&self, made: &Recorded) -> Result<()> {
        if !self.tables_made.replace(true) {
            for table in TABLES {
                self.database.run(table, vec![])?;
            }
        }
        let record = wire::encode(&made.record).map_err(unreadable)?;
        let parts = wire::encode(&made.minute).map_err(unreadable)?;
        for (query, detail) in [
            ("INSERT OR REPLACE INTO minutes VALUES (?, ?)", record),
            ("INSERT OR REPLACE INTO parts VALUES (?, ?)", parts),
        ] {
            self.database.run(query, vec![number(made.minute.minute), detail.into()])?;
        }
        Ok(())
    }

    /// Sums up the hours before one, and deletes what is too old.
    fn sum_up(&self, hour: u32, now: u64) -> Result<()> {
        if self.summed_up.replace(hour) >= hour {
            return Ok(());
        }
        let first = self.bound("SELECT max(hour) FROM hours")?.map_or(0, |last| last + 1);
        if first >= hour {
            return Ok(());
        }
        for (hour, sum) in hours(&self.minutes(first * HOUR, hour * HOUR)?) {
            let detail = wire::encode(&sum).map_err(unreadable)?;
            self.database
                .run("INSERT OR REPLACE INTO hours VALUES (?, ?)", vec![number(hour), detail.into()])?;
        }
        let minute = minute_of(now);
        for (query, oldest) in [
            ("DELETE FROM minutes WHERE minute < ?", minute.saturating_sub(MINUTES_KEPT)),
            // The last one is needed after a restart.
            (
                "DELETE FROM parts WHERE minute < ? AND minute < (SELECT max(minute) FROM parts)",
                minute.saturating_sub(PARTS_KEPT),
            ),
            ("DELETE FROM hours WHERE hour < ?", (minute / HOUR).saturating_sub(HOURS_KEPT)),
        ] {
            self.database.run(query, vec![number(oldest)])?;
        }
        Ok(())
    }

    fn minutes(&self, from: u32, to: u32) -> Result<Vec<(u32, Record)>> {
        self.rows(
            "SELECT minute, detail FROM minutes WHERE minute >= ? AND minute < ? ORDER BY minute",
            vec![number(from), number(to)],
        )
    }

    /// Rows of a number and what is stored with it. What cannot be read is as if it were not there.
    fn rows<T: DeserializeOwned>(&self, query: &str, values: Vec<Sql>) -> Result<Vec<(u32, T)>> {
        let rows = self.database.rows(query, values)?;
        let read =
            rows.iter().filter_map(|row| Some((row.number(0) as u32, wire::decode(row.bytes(1)).ok()?)));
        Ok(read.collect())
    }

    /// The only number that a query finds.
    fn bound(&self, query: &str) -> Result<Option<u32>> {
        let rows = self.database.rows(query, vec![])?;
        Ok(rows.first().and_then(|row| row.maybe(0)).map(|number| number as u32))
    }
}

impl Global {
    /// When the next minute is to be recorded.
    pub(super) fn next_record(&self) -> Option<u64> {
        let (home, time) = (self.home().ok()?, now());
        let due = self.memory.borrow().as_ref()?.next_record(&home.room, time)?;
        Some(if due <= time { time + AGAIN_MS } else { due })
    }

    /// Records the minutes of which everything is known.
    pub(super) async fn record(&self) -> Result<Option<u64>> {
        // What is recorded must be in storage: else it would be counted once more after a restart.
        self.store_reports().await?;
        // A room that is no longer configured has no history.
        let (Ok(home), time) = (self.home(), now()) else { return Ok(None) };
        let next = || self.memory.borrow().as_ref().and_then(|memory| memory.record(&home.room, time));
        while let Some(made) = next() {
            self.history.add(&made)?;
            if let Some(memory) = self.memory.borrow_mut().as_mut() {
                memory.recorded(made.minute);
            }
        }
        let settled = self.memory.borrow().as_ref().map(|memory| memory.settled_until(&home.room, time));
        if let Some(settled) = settled.filter(|_| self.history.tables_made.get()) {
            self.history.sum_up((settled / HOUR_MS) as u32, time)?;
        }
        Ok(None)
    }

    /// A part of the history.
    pub(super) fn show_history(&self, asked: &HistoryAsk) -> Result<Response> {
        let (home, time, query) = (self.home()?, now(), &asked.query);
        let (unsettled, settled_until) = {
            let memory = self.memory.borrow();
            let Some(memory) = memory.as_ref() else { return Response::error("not ready", 503) };
            (memory.unsettled(&home.room, time), memory.settled_until(&home.room, time))
        };
        let history = &self.history;
        let answer = |known_since: Option<u32>, rows: &[(u32, &dyn Cells)]| {
            operator_answer(200, query.answer(&home.room.name, rows, known_since, settled_until, time))
        };
        // Before the first minute is recorded, there is no table.
        let is_stored = history.last().is_some();
        let (from, to) = query.minutes();
        if !query.colo.is_empty() {
            let (mut kept, mut known) = (Vec::<(u32, Minute)>::new(), None);
            if is_stored {
                known = history.bound("SELECT min(minute) FROM parts")?;
                kept = history.rows(
                    "SELECT minute, detail FROM parts WHERE minute >= ? AND minute < ? ORDER BY minute",
                    vec![number(from), number(to)],
                )?;
            }
            kept.extend(unsettled.into_iter().map(|made| (made.minute.minute, made.minute)));
            let known = known.or(kept.first().map(|(first, _)| *first));
            let parts = kept.iter().filter_map(|(minute, kept)| {
                let part = kept.parts.iter().find(|part| part.colo == query.colo)?;
                Some((*minute, part as &dyn Cells))
            });
            return answer(known, &parts.collect::<Vec<_>>());
        }
        let (mut rows, mut known) = (Vec::<(u32, Record)>::new(), None);
        let mut unsettled: Vec<(u32, Record)> =
            unsettled.into_iter().map(|made| (made.minute.minute, made.record)).collect();
        if is_stored {
            known = history.bound("SELECT min(minute) FROM minutes")?;
            let mut from = from;
            if query.resolution == Resolution::Hour {
                known = history.bound("SELECT min(hour) FROM hours")?.map(|hour| hour * HOUR).or(known);
                let summed_up = history.bound("SELECT max(hour) FROM hours")?;
                from = from.max(summed_up.map_or(0, |last| (last + 1) * HOUR));
                rows = history.rows(
                    "SELECT hour, detail FROM hours WHERE hour >= ? AND hour < ? ORDER BY hour",
                    vec![number(query.from), number(query.to)],
                )?;
            }
            let mut minutes = history.minutes(from, to)?;
            minutes.append(&mut unsettled);
            unsettled = minutes;
        }
        let known = known.or(unsettled.first().map(|(first, _)| *first));
        rows.extend(if query.resolution == Resolution::Hour { hours(&unsettled) } else { unsettled });
        answer(known, &rows.iter().map(|(at, row)| (*at, row as &dyn Cells)).collect::<Vec<_>>())
    }

    /// What was counted since the room's first day; `null`: nothing yet.
    pub(super) fn show_totals(&self) -> Result<Response> {
        let totals = self.memory.borrow().as_ref().and_then(counts::Global::totals);
        operator_answer(200, totals.map_or_else(|| "null".to_owned(), |totals| totals.json().to_string()))
    }
}

fn number(number: u32) -> Sql {
    sql::number(number.into())
}
