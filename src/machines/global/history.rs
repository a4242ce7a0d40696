//! The room's history: a row per minute, a row with what is needed to go on from there and the colos' parts, and a row
//! per hour. Silent minutes have none.

use super::rows::{Kept, Rows, RowsError, Series};
use super::{Global, operator_answer};
use crate::admission::minute_of;
use crate::counts::Recorded;
use crate::history::{Cells, HOURS_KEPT, MINUTES_KEPT, Minute, PARTS_KEPT, Query, Record, Resolution, hours};
use crate::machines::{Context, Effect};
use crate::protocol::messages::OperatorAnswer;
use crate::protocol::records::{self, Found};

const HOUR: u32 = 60;
const HOUR_MS: u64 = 3_600_000;
/// Retry interval of a minute that could not be recorded in time, in milliseconds.
const AGAIN_MS: u64 = 15_000;

/// Rows by their minute or hour.
type Numbered<T> = Vec<(u32, T)>;

/// The last minute that is recorded.
pub(super) fn last_minute(rows: &dyn Rows) -> Kept<Found<Minute>> {
    let last = rows.bounds(Series::Parts)?.map_or(0, |(_, last)| last);
    let last = rows.range(Series::Parts, last, last + 1)?.pop();
    Ok(Found::new(last.as_ref().map(|(_, detail)| detail.as_slice())))
}

/// Rows with what is stored in them. What cannot be read is as if it were not there.
fn read<T: records::Record>(rows: &dyn Rows, series: Series, from: u32, to: u32) -> Kept<Numbered<T>> {
    let rows = rows.range(series, from, to)?.into_iter();
    Ok(rows.filter_map(|(number, detail)| Some((number, records::read(&detail).ok()?))).collect())
}

/// Stores a minute.
fn add(rows: &mut dyn Rows, made: &Recorded) -> Kept<()> {
    let record = records::write(&made.record).map_err(|_| RowsError)?;
    let parts = records::write(&made.minute).map_err(|_| RowsError)?;
    rows.put(Series::Minutes, made.minute.minute, &record)?;
    rows.put(Series::Parts, made.minute.minute, &parts)
}

/// Sums up the hours before one that are not yet, and deletes what is too old.
fn sum_up(rows: &mut dyn Rows, hour: u32, now: u64) -> Kept<()> {
    let first = rows.bounds(Series::Hours)?.map_or(0, |(_, last)| last + 1);
    if first >= hour {
        return Ok(());
    }
    let minutes: Numbered<Record> = read(rows, Series::Minutes, first * HOUR, hour * HOUR)?;
    if minutes.len() < rows.range(Series::Minutes, first * HOUR, hour * HOUR)?.len() {
        // Newer code has recorded some of them, and will sum them up.
        return Ok(());
    }
    for (hour, sum) in hours(&minutes) {
        rows.put(Series::Hours, hour, &records::write(&sum).map_err(|_| RowsError)?)?;
    }
    let minute = minute_of(now);
    rows.delete_before(Series::Minutes, minute.saturating_sub(MINUTES_KEPT))?;
    // The last one is needed after a restart.
    let last = rows.bounds(Series::Parts)?.map_or(0, |(_, last)| last);
    rows.delete_before(Series::Parts, minute.saturating_sub(PARTS_KEPT).min(last))?;
    rows.delete_before(Series::Hours, (minute / HOUR).saturating_sub(HOURS_KEPT))
}

impl Global {
    /// When the next minute is to be recorded.
    pub(super) fn next_record(&mut self, context: &Context<'_>) -> Option<u64> {
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let due = self.counts.next_record(whole.at(context.now).0, context.now)?;
        Some(if due <= context.now { context.now + AGAIN_MS } else { due })
    }

    /// Records the minutes of which everything is known.
    pub(super) fn record(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) -> Kept<()> {
        if !self.records_history {
            return Ok(());
        }
        // What is recorded must be in storage: else it would be counted once more after a restart.
        let now = context.now;
        self.store_reports(true, now, effects);
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let room = whole.at(now).0;
        while let Some(made) = self.counts.record(room, now) {
            add(self.rows.as_mut(), &made)?;
            self.counts.recorded(made.minute);
        }
        let hour = (self.counts.settled_until(room, now) / HOUR_MS) as u32;
        if self.summed_up < hour {
            sum_up(self.rows.as_mut(), hour, now)?;
            self.summed_up = hour;
        }
        Ok(())
    }

    /// A part of the history.
    pub(super) fn show_history(&mut self, context: &Context<'_>, query: &Query) -> Kept<OperatorAnswer> {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let room = whole.at(now).0;
        let unsettled = self.counts.unsettled(room, now);
        let settled_until = self.counts.settled_until(room, now);
        let answer = |known_since: Option<u32>, rows: &[(u32, &dyn Cells)]| {
            operator_answer(200, query.answer(&room.name, rows, known_since, settled_until, now))
        };
        if query.colo.is_empty() {
            let (known, rows) = self.records(query, unsettled)?;
            let cells = rows.iter().map(|(at, row)| (*at, row as &dyn Cells));
            return Ok(answer(known, &cells.collect::<Vec<_>>()));
        }
        let (from, to) = query.minutes();
        let known = self.rows.bounds(Series::Parts)?.map(|(first, _)| first);
        let mut kept: Vec<(u32, Minute)> = read(self.rows.as_ref(), Series::Parts, from, to)?;
        kept.extend(unsettled.into_iter().map(|made| (made.minute.minute, made.minute)));
        let known = known.or(kept.first().map(|(first, _)| *first));
        let parts = kept.iter().filter_map(|(minute, kept)| {
            let part = kept.parts.iter().find(|part| part.colo == query.colo)?;
            Some((*minute, part as &dyn Cells))
        });
        Ok(answer(known, &parts.collect::<Vec<_>>()))
    }

    /// The rows of all colos together that a query asks for, and since which minute something is known.
    fn records(&self, query: &Query, unsettled: Vec<Recorded>) -> Kept<(Option<u32>, Numbered<Record>)> {
        let rows = self.rows.as_ref();
        let by_hour = query.resolution == Resolution::Hour;
        let (mut from, to) = query.minutes();
        let mut known = rows.bounds(Series::Minutes)?.map(|(first, _)| first);
        let mut found = Vec::new();
        if by_hour {
            if let Some((first, last)) = rows.bounds(Series::Hours)? {
                known = Some(first * HOUR);
                from = from.max((last + 1) * HOUR);
            }
            found = read(rows, Series::Hours, query.from, query.to)?;
        }
        let mut minutes: Vec<(u32, Record)> = read(rows, Series::Minutes, from, to)?;
        minutes.extend(unsettled.into_iter().map(|made| (made.minute.minute, made.record)));
        let known = known.or(minutes.first().map(|(first, _)| *first));
        found.extend(if by_hour { hours(&minutes) } else { minutes });
        Ok((known, found))
    }

    /// What was counted since the room's first day; `null`: nothing yet.
    pub(super) fn show_totals(&self) -> OperatorAnswer {
        let totals = self.counts.totals();
        operator_answer(200, totals.map_or_else(|| "null".to_owned(), |totals| totals.json().to_string()))
    }
}
