//! What operators ask of the history, and the answer as JSON or CSV.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::classes::quantile_ms;
use super::record::{ENDED, Part, Record, WAITS};
use super::tallies::Count;
use crate::time::milliseconds;
use crate::time::rfc3339;
use crate::time::{MINUTE_MS, minute_of, start_of};
use crate::wire::VERSION;

/// The most rows of one answer.
const MOST_ROWS: u64 = 3_000;
/// The range without `from`, in milliseconds until now.
const USUAL_MS: u64 = 3_600_000;
const HOUR_MS: u64 = 3_600_000;
const MINUTES_OF_HOUR: u32 = 60;
/// The longest code of a colo, in bytes.
const LONGEST_COLO: usize = 8;

/// The fields of a room, in their order.
const FIELDS: [&str; 23] = [
    "active_users",
    "active_users_max",
    "waiting_users",
    "waiting_users_max",
    "new_users",
    "total_active_users",
    "new_users_per_minute",
    "slots",
    "joins",
    "leavers",
    "wait_seconds_p50",
    "wait_seconds_p90",
    "origin_seconds_p50",
    "origin_seconds_p90",
    "revoked",
    "bypassed",
    "fallbacks",
    "object_calls",
    "rehearsal_new_users",
    "rehearsal_joins",
    "observed_joins",
    "newcomers",
    "let_past",
];
/// The fields of a colo, in their order.
const COLO_FIELDS: [&str; 8] =
    ["active_users", "waiting_users", "new_users", "joins", "leavers", "revoked", "bypassed", "workers"];

/// How much time a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resolution {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl Resolution {
    /// In milliseconds.
    pub fn ms(self) -> u64 {
        match self {
            Self::Minute => MINUTE_MS,
            Self::Hour => HOUR_MS,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
        }
    }
}

/// How the answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// JSON.
    Json,
    /// Comma-separated values.
    Csv,
}

/// A question that cannot be answered, for whoever asked it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadQuery(pub String);

/// A question for a part of a room's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// The first row, as minutes or hours since the epoch.
    pub from: u32,
    /// The row after the last one.
    pub to: u32,
    /// What a row stands for.
    pub resolution: Resolution,
    /// Which fields, by their place among all of them.
    pub fields: Vec<u8>,
    /// Of which colo alone; empty: of all together.
    pub colo: String,
    /// How to write it.
    pub format: Format,
}

/// Asks Global for a part of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryAsk {
    /// Format version.
    pub v: u8,
    /// Which part.
    pub query: Query,
}

impl Query {
    /// Reads a URL's parameters: `from`, `to`, `resolution`, `fields`, `colo`, `format`.
    ///
    /// # Errors
    /// When one is wrong, or more is asked for than is told at once.
    pub fn read(asked: impl Fn(&str) -> Option<String>, now: u64) -> Result<Self, BadQuery> {
        let to = moment("to", asked("to"))?.unwrap_or(now).min(now.saturating_add(1));
        let from = moment("from", asked("from"))?.unwrap_or(to.saturating_sub(USUAL_MS));
        if from >= to {
            return Err(BadQuery(
                "`from` must be before `to`, and not in the future. Fix: leave both out for the last 60 minutes"
                    .to_owned(),
            ));
        }
        let colo = asked("colo").unwrap_or_default().to_ascii_uppercase();
        if colo.len() > LONGEST_COLO || !colo.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(BadQuery("`colo` must be a colo's code. Fix: colo=FRA".to_owned()));
        }
        let resolution = match asked("resolution").as_deref() {
            Some("minute") => Resolution::Minute,
            Some("hour") if colo.is_empty() => Resolution::Hour,
            Some("hour") => {
                return Err(BadQuery(
                    "of a colo only minutes are kept, for a day. Fix: resolution=minute".to_owned(),
                ));
            }
            None | Some("auto") => {
                let many = to.div_ceil(MINUTE_MS) - from / MINUTE_MS > MOST_ROWS;
                if many && colo.is_empty() { Resolution::Hour } else { Resolution::Minute }
            }
            Some(_) => {
                return Err(BadQuery(
                    "`resolution` must be minute, hour or auto. Fix: resolution=auto".to_owned(),
                ));
            }
        };
        let (from, to) = (from / resolution.ms(), to.div_ceil(resolution.ms()));
        if to - from > MOST_ROWS {
            return Err(BadQuery(format!(
                "from `from` to `to` are {} {}s, and at most {MOST_ROWS} are told at once. Fix: ask for them in parts",
                to - from,
                resolution.name()
            )));
        }
        let format = match asked("format").as_deref() {
            None | Some("json") => Format::Json,
            Some("csv") => Format::Csv,
            Some(_) => return Err(BadQuery("`format` must be json or csv. Fix: format=json".to_owned())),
        };
        let fields = fields(asked("fields").as_deref(), &colo)?;
        Ok(Self { from: from as u32, to: to as u32, resolution, fields, colo, format })
    }

    /// The message for Global.
    pub fn ask(self) -> HistoryAsk {
        HistoryAsk { v: VERSION, query: self }
    }

    /// The minutes that it is about: the first, and the one after the last.
    pub fn minutes(&self) -> (u32, u32) {
        match self.resolution {
            Resolution::Minute => (self.from, self.to),
            Resolution::Hour => {
                (self.from.saturating_mul(MINUTES_OF_HOUR), self.to.saturating_mul(MINUTES_OF_HOUR))
            }
        }
    }

    /// The same, with at most as many rows and fields as [`Query::read`] lets through: for one that came as a message.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.to = self.to.min(self.from.saturating_add(MOST_ROWS as u32));
        self.fields.truncate(FIELDS.len());
        self
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        let all = all_fields(&self.colo);
        self.fields.iter().filter_map(move |field| all.get(usize::from(*field)).copied())
    }

    /// The answer. `rows` are those that there are, by minute or hour, in their order; `known_since`: before that minute
    /// nothing is known; `settled_until`: what is later may still change.
    pub fn answer(
        &self,
        room: &str,
        rows: &[(u32, &dyn Cells)],
        known_since: Option<u32>,
        settled_until: u64,
        now: u64,
    ) -> String {
        let width = self.resolution.ms();
        let names: Vec<&str> = self.names().collect();
        let is_csv = self.format == Format::Csv;
        let mut text = if is_csv {
            let mut line = "time".to_owned();
            for name in &names {
                line.push(',');
                line.push_str(name);
            }
            line
        } else {
            let colo = (!self.colo.is_empty()).then_some(self.colo.as_str());
            let mut head = json!({
                "room": room,
                "resolution": self.resolution.name(),
                "from": u64::from(self.from) * width,
                "to": u64::from(self.to) * width,
                "colo": colo,
                "fields": names,
                "settled_until": settled_until,
            })
            .to_string();
            head.pop();
            head.push_str(",\"rows\":[");
            head
        };
        let silent: &dyn Cells = if self.colo.is_empty() { &Record::default() } else { &Part::default() };
        let mut rows = rows.iter().peekable();
        let last = (now / width) as u32;
        for at in self.from..self.to.min(last.saturating_add(1)) {
            while rows.next_if(|(other, _)| *other < at).is_some() {}
            let found = rows.next_if(|(other, _)| *other == at).map(|(_, row)| *row);
            let start = u64::from(at) * width;
            // The present hour is not over yet.
            let minutes =
                (minute_of(now) + 1).saturating_sub(minute_of(start)).min((width / MINUTE_MS) as u32);
            let is_known =
                found.is_some() || known_since.is_some_and(|since| start + width > start_of(since));
            if is_csv {
                let _ = write!(text, "\r\n{}", rfc3339(start));
            } else {
                let _ = write!(text, "{}[{start}", if at == self.from { "" } else { "," });
            }
            for field in &self.fields {
                let value = found.unwrap_or(silent).cell(*field, minutes.max(1));
                match value.filter(|_| is_known) {
                    Some(value) => {
                        let _ = write!(text, ",{}", (value * 10.0).round() / 10.0);
                    }
                    None => text.push_str(if is_csv { "," } else { ",null" }),
                }
            }
            if !is_csv {
                text.push(']');
            }
        }
        text.push_str(if is_csv { "\r\n" } else { "]}" });
        text
    }
}

/// A moment, as milliseconds since the epoch or RFC 3339.
fn moment(name: &str, text: Option<String>) -> Result<Option<u64>, BadQuery> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let moment = text.parse().ok().or_else(|| milliseconds(&text)).filter(|ms| *ms < LATEST_MS);
    moment.map(Some).ok_or_else(|| {
        BadQuery(format!(
            "`{name}` must be milliseconds since the epoch, or a time as in RFC 3339. Fix: {name}=2026-11-27T08:00:00Z"
        ))
    })
}

/// What is later is no time that anybody means: the year 9999.
const LATEST_MS: u64 = 253_402_300_799_000;

fn all_fields(colo: &str) -> &'static [&'static str] {
    if colo.is_empty() { &FIELDS } else { &COLO_FIELDS }
}

fn fields(asked: Option<&str>, colo: &str) -> Result<Vec<u8>, BadQuery> {
    let all = all_fields(colo);
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        return Ok((0..all.len() as u8).collect());
    };
    let mut fields = Vec::new();
    for name in asked.split(',') {
        let place = all.iter().position(|known| *known == name.trim()).ok_or_else(|| {
            BadQuery(format!("`fields`: there is no field {name}. Fix: use some of {}", all.join(",")))
        })? as u8;
        if !fields.contains(&place) {
            fields.push(place);
        }
    }
    Ok(fields)
}

/// A row, as far as the answer knows it.
pub trait Cells {
    /// The value of a field, by its place; `None`: not known. `minutes`: how many minutes the row stands for.
    fn cell(&self, field: u8, minutes: u32) -> Option<f64>;
}

impl Cells for Record {
    fn cell(&self, field: u8, minutes: u32) -> Option<f64> {
        let mean = |sum: u64| sum as f64 / f64::from(minutes);
        // A silent minute has no record, and nobody knows what was in force.
        let in_force = |sum: u64| (self.minutes > 0).then(|| sum as f64 / f64::from(self.minutes));
        let seconds = |base: u64, part: f64| Some(quantile_ms(&self.tallies, base, part)? / 1_000.0);
        let count = |count: Count| Some(self.count(count) as f64);
        match FIELDS.get(usize::from(field)).copied()? {
            "active_users" => Some(mean(self.active)),
            "active_users_max" => Some(self.active_max as f64),
            "waiting_users" => Some(mean(self.waiting)),
            "waiting_users_max" => Some(self.waiting_max as f64),
            "new_users" => count(Count::NewUsers),
            "total_active_users" => in_force(self.total_active_users),
            "new_users_per_minute" => in_force(self.new_users_per_minute),
            "slots" => in_force(self.slots),
            "joins" => count(Count::Joins),
            "leavers" => count(Count::Leavers),
            "wait_seconds_p50" => seconds(WAITS, 0.5),
            "wait_seconds_p90" => seconds(WAITS, 0.9),
            "origin_seconds_p50" => seconds(ENDED, 0.5),
            "origin_seconds_p90" => seconds(ENDED, 0.9),
            "revoked" => count(Count::Revoked),
            "bypassed" => count(Count::Bypassed),
            "fallbacks" => count(Count::Fallbacks),
            "object_calls" => Some(self.object_calls() as f64),
            "rehearsal_new_users" => count(Count::RehearsalNewUsers),
            "rehearsal_joins" => count(Count::RehearsalJoins),
            "observed_joins" => count(Count::ObservedJoins),
            "newcomers" => Some(self.newcomers() as f64),
            "let_past" => count(Count::LetPast),
            _ => None,
        }
    }
}

impl Cells for Part {
    fn cell(&self, field: u8, _minutes: u32) -> Option<f64> {
        let value = match COLO_FIELDS.get(usize::from(field)).copied()? {
            "active_users" => self.active,
            "waiting_users" => self.waiting,
            "new_users" => self.new_users,
            "joins" => self.joins,
            "leavers" => self.leavers,
            "revoked" => self.revoked,
            "bypassed" => self.bypassed,
            _ => self.workers,
        };
        Some(value as f64)
    }
}

/// Minutes summed up to hours.
pub fn hours(minutes: &[(u32, Record)]) -> Vec<(u32, Record)> {
    let mut hours: Vec<(u32, Record)> = Vec::new();
    for (minute, record) in minutes {
        let hour = minute / MINUTES_OF_HOUR;
        match hours.last_mut() {
            Some((last, sum)) if *last == hour => sum.add(record),
            _ => hours.push((hour, record.clone())),
        }
    }
    hours
}
