//! A recorded day of a room, as the room's own history gives it (`GET /__anteroom/history`, CSV or JSON): who came when,
//! how long people stayed, how patient they were.
//!
//! A history does not say who came, but who entered, who joined the queue and who left it. Whoever comes enters at once or
//! joins the queue; whoever leaves the queue enters or gives up. So in a minute
//!
//! - came = entered − entered after waiting + joined,
//! - entered after waiting = joined − left − (waiting at its end − waiting at the end of the minute before),
//!
//! and together: came = `new_users` + `leavers` + `let_past` + change of `waiting_users`. (Whoever left and comes back to the same place
//! has come again.) Where the counts do not fit together, as in
//! a minute that was lost, what is certain counts: at least `joins` came, at most `joins` + `new_users`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;

use crate::scenario::{Behaviour, Recorded, ScenarioError};

/// The fields that are read, in the order of [`Row`].
const FIELDS: [&str; 10] = [
    "new_users",
    "joins",
    "leavers",
    "waiting_users",
    "active_users",
    "origin_seconds_p50",
    "origin_seconds_p90",
    "rehearsal_new_users",
    "rehearsal_joins",
    "let_past",
];
/// How many of them, the first ones, have to be there.
const NEEDED: usize = 4;
/// No count of a minute or hour is larger.
const MOST: f64 = 1e8;
/// Patience and stays are not taken from fewer visitors than these.
const ENOUGH: f64 = 30.0;
/// The longest mean that a scenario may have, in seconds: nobody loses patience.
const FOREVER_SECONDS: f64 = 1e6;
/// The last minute of a file may be under way.
const LEFT_OUT: &str = "Rows after settled_until are left aside: they are not counted to the end yet.";

/// A minute or an hour. What is not known is nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Row {
    /// When it begins, in milliseconds since the epoch.
    pub at: u64,
    /// Who entered.
    pub new_users: Option<f64>,
    /// Who joined the queue.
    pub joins: Option<f64>,
    /// Who left the queue without entering.
    pub leavers: Option<f64>,
    /// How many wait at its end; of an hour, the mean of its minutes.
    pub waiting_users: Option<f64>,
    /// How many are active at its end; of an hour, the mean of its minutes.
    pub active_users: Option<f64>,
    /// Time on the origin of half of those whose visit ended, in seconds.
    pub origin_seconds_p50: Option<f64>,
    /// The same of 90 %.
    pub origin_seconds_p90: Option<f64>,
    /// Of `new_users`, those who were marked.
    pub rehearsal_new_users: Option<f64>,
    /// Of `joins`, those who were marked.
    pub rehearsal_joins: Option<f64>,
    /// Who left the queue because the room was off.
    pub let_past: Option<f64>,
}

impl Row {
    /// A row of the values of [`FIELDS`].
    fn new(at: u64, values: [Option<f64>; FIELDS.len()]) -> Self {
        let [
            new_users,
            joins,
            leavers,
            waiting_users,
            active_users,
            p50,
            p90,
            marked_new,
            marked_joins,
            let_past,
        ] = values;
        Self {
            at,
            new_users,
            joins,
            leavers,
            waiting_users,
            active_users,
            origin_seconds_p50: p50,
            origin_seconds_p90: p90,
            rehearsal_new_users: marked_new,
            rehearsal_joins: marked_joins,
            let_past,
        }
    }

    fn values(&self) -> [Option<f64>; FIELDS.len()] {
        [
            self.new_users,
            self.joins,
            self.leavers,
            self.waiting_users,
            self.active_users,
            self.origin_seconds_p50,
            self.origin_seconds_p90,
            self.rehearsal_new_users,
            self.rehearsal_joins,
            self.let_past,
        ]
    }
}

/// A room's recorded day.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    rows: Vec<Row>,
    /// How long a row is, in minutes.
    span: f64,
    /// Whether some were not settled, and are left aside.
    cut: bool,
}

/// What a recorded day tells a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Who came.
    pub arrivals: Recorded,
    /// How long they stay and how patient they are, as far as the day tells.
    pub visitors: Behaviour,
    /// In words what was taken from it, and how exact it is.
    pub notes: Vec<String>,
}

/// The answer of `GET /__anteroom/history` as JSON.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    colo: Option<String>,
    fields: Vec<String>,
    rows: Vec<Vec<Value>>,
    #[serde(default)]
    settled_until: Option<f64>,
}

fn wrong(what: String) -> ScenarioError {
    ScenarioError(what)
}

impl History {
    /// Minute by minute, or hour by hour.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether a text is a history rather than a series of arrivals.
    pub fn is_one(text: &str) -> bool {
        let text = text.trim_start_matches(['\u{feff}', ' ', '\r', '\n', '\t']);
        let header = text.lines().next().unwrap_or_default();
        text.starts_with('{')
            || header.split(',').any(|field| FIELDS.contains(&field.trim().trim_matches('"')))
    }

    /// A history of rows, each some minutes long.
    pub fn of_rows(rows: Vec<Row>, span: f64) -> Self {
        Self { rows, span, cut: false }
    }

    /// Reads a history, CSV or JSON.
    ///
    /// # Errors
    /// Which line and field cannot be, and what to do about it.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let text = text.trim_start_matches('\u{feff}');
        let (rows, cut) = if text.trim_start().starts_with('{') { of_json(text)? } else { of_csv(text)? };
        let Some(first) = rows.first() else {
            return Err(wrong("no rows: nothing is recorded of that time; ask for another day".to_owned()));
        };
        let step = rows.get(1).map_or(60_000, |second| second.1.at.saturating_sub(first.1.at));
        if step != 60_000 && step != 3_600_000 {
            let (place, row) = rows.get(1).unwrap_or(first);
            return Err(wrong(format!(
                "{place}: time = {}: rows must be a minute or an hour apart, in order; ask with \
                 resolution=minute or resolution=hour",
                rfc3339(row.at)
            )));
        }
        for pair in rows.windows(2) {
            let [(_, before), (place, row)] = pair else { continue };
            if row.at != before.at + step {
                return Err(wrong(format!(
                    "{place}: time = {}: it must be {}, {} after the row before; take the file as it comes",
                    rfc3339(row.at),
                    rfc3339(before.at + step),
                    if step == 60_000 { "a minute" } else { "an hour" }
                )));
            }
        }
        let rows = rows.into_iter().map(|(_, row)| row).collect();
        Ok(Self { rows, span: step as f64 / 60_000.0, cut })
    }

    /// The same as CSV, with the fields that are read here.
    pub fn csv(&self) -> String {
        let mut text = format!("time,{}\n", FIELDS.join(","));
        for row in &self.rows {
            text.push_str(&rfc3339(row.at));
            for value in row.values() {
                text.push(',');
                if let Some(value) = value {
                    text.push_str(&value.to_string());
                }
            }
            text.push('\n');
        }
        text
    }

    /// How many came in each row, and how many of all that is not certain.
    pub fn arrivals(&self, without_rehearsals: bool) -> (Vec<f64>, f64) {
        let mut waited_before = self.rows.first().and_then(|row| row.waiting_users).unwrap_or(0.0);
        // What does not fit into a minute belongs to one beside it.
        let (mut carry, mut uncertain) = (0.0, 0.0);
        let mut marked_waiting: f64 = 0.0;
        let mut all = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let (new, joins) = (row.new_users.unwrap_or(0.0), row.joins.unwrap_or(0.0));
            let waiting = row.waiting_users.unwrap_or(waited_before);
            let changed = waiting - waited_before;
            waited_before = waiting;
            if waiting == 0.0 && changed == 0.0 && joins == 0.0 {
                // Nobody waited: who entered has come.
                uncertain += f64::abs(carry);
                carry = 0.0;
            }
            let gone = row.leavers.unwrap_or(0.0) + row.let_past.unwrap_or(0.0);
            let wanted = new + gone + changed + carry;
            let came = wanted.clamp(joins, joins + new);
            carry = wanted - came;
            let mut real = came;
            if without_rehearsals {
                let (marked_new, marked_joins) =
                    (row.rehearsal_new_users.unwrap_or(0.0), row.rehearsal_joins.unwrap_or(0.0));
                // Of those who were marked and entered, those who may have waited did.
                marked_waiting += marked_joins;
                let entered = marked_new.min(marked_waiting).min(joins + new - came);
                marked_waiting = if waiting == 0.0 { 0.0 } else { marked_waiting - entered };
                real -= marked_joins + marked_new - entered;
            }
            all.push(real);
        }
        settle(&mut all);
        (all, uncertain + carry.abs())
    }

    /// Who came, how long they stay and how patient they are.
    pub fn tell(&self, without_rehearsals: bool) -> Told {
        let (came, uncertain) = self.arrivals(without_rehearsals);
        let first = self.rows.first().copied().unwrap_or_default();
        let start = Timestamp::from_millisecond(first.at as i64).unwrap_or_default();
        let start = TimeZone::UTC.to_datetime(start);
        let total: f64 = came.iter().sum();
        let counts = came.iter().enumerate().map(|(index, count)| (index as f64 * self.span, *count));
        let arrivals = Recorded::of_counts(&counts.collect::<Vec<_>>(), self.span, Some(start));
        let mut notes = vec![format!(
            "Recorded: {} visitors in {} {} from {start} UTC on; {} of them may have come at another time.",
            total.round(),
            self.rows.len(),
            if self.span > 1.0 { "hours" } else { "minutes" },
            uncertain.round()
        )];
        if self.cut {
            notes.push(LEFT_OUT.to_owned());
        }
        let unknown =
            self.rows.iter().filter(|row| row.values()[..NEEDED].iter().any(Option::is_none)).count();
        if unknown > 0 {
            notes.push(format!("Of {unknown} rows not everything is known; nobody came in what is not."));
        }
        let marked: f64 =
            self.rows.iter().filter_map(|row| Some(row.rehearsal_new_users? + row.rehearsal_joins?)).sum();
        if marked > 0.0 {
            notes.push(if without_rehearsals {
                "Visitors of rehearsals are taken out.".to_owned()
            } else {
                "Visitors of rehearsals are among them; --without-rehearsals takes them out.".to_owned()
            });
        }
        let (active, waiting) = (first.active_users.unwrap_or(0.0), first.waiting_users.unwrap_or(0.0));
        if active + waiting >= ENOUGH {
            notes.push(format!(
                "It begins with {active} active and {waiting} waiting users, the simulation with none: begin it earlier."
            ));
        }
        let mut visitors = Behaviour::default();
        if let Some(seconds) = self.patience() {
            visitors.patience_seconds = seconds;
            notes.push(if seconds < FOREVER_SECONDS {
                format!("Patience as recorded: {} s on average.", seconds.round())
            } else {
                "Patience as recorded: nobody left the queue.".to_owned()
            });
        }
        if let Some(seconds) = self.visit(visitors.gap_seconds) {
            visitors.visit_seconds = seconds;
            notes.push(format!("Visits as recorded: {} s on average.", seconds.round()));
        }
        Told { arrivals, visitors, notes }
    }

    /// How patient people are, in seconds on average: all the time that all of them waited, by those who left.
    fn patience(&self) -> Option<f64> {
        let waited: f64 =
            self.rows.iter().filter_map(|row| row.waiting_users).sum::<f64>() * self.span * 60.0;
        let left: f64 = self.rows.iter().filter_map(|row| row.leavers).sum();
        let joined: f64 = self.rows.iter().filter_map(|row| row.joins).sum();
        // Whether one in thousands leaves cannot be told.
        let seconds = if left < 1.0 { FOREVER_SECONDS } else { waited / left };
        (joined >= ENOUGH).then_some(seconds.clamp(1.0, FOREVER_SECONDS))
    }

    /// How long visits last, in seconds on average: the longest and the usual ones say the same of a stay whose end
    /// comes by chance. Time on the origin ends with the last page, a visit a little later.
    fn visit(&self, gap_seconds: f64) -> Option<f64> {
        let (mut sum, mut of) = (0.0, 0.0);
        for row in &self.rows {
            if let (Some(p50), Some(p90), Some(new)) =
                (row.origin_seconds_p50, row.origin_seconds_p90, row.new_users)
            {
                sum += new * (p50 + p90) / (2.0_f64.ln() + 10.0_f64.ln());
                of += new;
            }
        }
        let mean = sum / of;
        (of >= ENOUGH).then(|| f64::midpoint(mean, (mean * mean + 4.0 * mean * gap_seconds).sqrt()))
    }
}

/// Marks are counted when they are reported, up to half a minute after their visitors: what is too much in a row belongs to
/// one shortly before it, else to the next.
fn settle(counts: &mut [f64]) {
    let mut debt = 0.0;
    for row in 0..counts.len() {
        debt += (-counts[row]).max(0.0);
        counts[row] = counts[row].max(0.0);
        for earlier in (row.saturating_sub(2)..=row).rev() {
            let taken = counts[earlier].min(debt);
            counts[earlier] -= taken;
            debt -= taken;
        }
    }
}

/// A row and where it stands.
type Placed = (String, Row);

/// Where each of [`FIELDS`] stands among some.
fn places<'a>(
    fields: &(impl Iterator<Item = &'a str> + Clone),
) -> Result<[Option<usize>; FIELDS.len()], ScenarioError> {
    let places = FIELDS.map(|field| fields.clone().position(|of| of == field));
    if let Some(missing) = (0..NEEDED).find(|index| places[*index].is_none()) {
        return Err(wrong(format!(
            "{}: missing; ask for the history without fields=, or with fields={}",
            FIELDS[missing],
            FIELDS.join(",")
        )));
    }
    Ok(places)
}

fn number(place: &str, field: &str, text: &str, value: Option<f64>) -> Result<f64, ScenarioError> {
    value.filter(|value| (0.0..=MOST).contains(value)).ok_or_else(|| {
        wrong(format!(
            "{place}: {field} = {text}; it must be a number from 0 to {MOST}, or nothing where it is not known"
        ))
    })
}

fn of_csv(text: &str) -> Result<(Vec<Placed>, bool), ScenarioError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
    let places = places(&header.iter())?;
    let time_at = header.iter().position(|field| field == "time").ok_or_else(|| {
        wrong("time: missing; the first line must be that of a history as it comes: time,...".to_owned())
    })?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| wrong(error.to_string()))?;
        let place = format!("line {}", record.position().map_or(0, csv::Position::line));
        let text = &record[time_at];
        let at = text.parse::<Timestamp>().ok().and_then(|time| u64::try_from(time.as_millisecond()).ok());
        let at = at.ok_or_else(|| {
            wrong(format!(
                "{place}: time = {text:?}; write a time with its zone, such as 2026-11-20T10:00:00Z"
            ))
        })?;
        let mut values = [None; FIELDS.len()];
        for (index, field) in FIELDS.iter().enumerate() {
            let Some(text) = places[index].map(|at| &record[at]).filter(|text| !text.is_empty()) else {
                continue;
            };
            values[index] = Some(number(&place, field, &format!("{text:?}"), text.parse().ok())?);
        }
        rows.push((place, Row::new(at, values)));
    }
    Ok((rows, false))
}

fn of_json(text: &str) -> Result<(Vec<Placed>, bool), ScenarioError> {
    let answer: Answer = serde_json::from_str(text).map_err(|error| {
        wrong(format!("{error}; give the answer of GET /__anteroom/history as it comes, as JSON or CSV"))
    })?;
    if let Some(colo) = answer.colo {
        return Err(wrong(format!("colo = {colo:?}: that is a part of the room; ask without colo=")));
    }
    let places = places(&answer.fields.iter().map(String::as_str))?;
    let settled = answer.settled_until.unwrap_or(f64::INFINITY);
    let (mut rows, mut cut) = (Vec::new(), false);
    for (index, row) in answer.rows.iter().enumerate() {
        let place = format!("rows {index}");
        let at = row.first().and_then(Value::as_u64);
        let (Some(at), true) = (at, row.len() == answer.fields.len() + 1) else {
            return Err(wrong(format!(
                "{place}: it must hold a time in milliseconds since the epoch and {} values",
                answer.fields.len()
            )));
        };
        if at as f64 >= settled {
            cut = true;
            continue;
        }
        let mut values = [None; FIELDS.len()];
        for (index, field) in FIELDS.iter().enumerate() {
            let value = places[index].and_then(|at| row.get(at + 1)).filter(|value| !value.is_null());
            if let Some(value) = value {
                values[index] = Some(number(&place, field, &value.to_string(), value.as_f64())?);
            }
        }
        rows.push((place, Row::new(at, values)));
    }
    Ok((rows, cut))
}

fn rfc3339(at: u64) -> String {
    Timestamp::from_millisecond(at as i64).map_or_else(|_| at.to_string(), |time| time.to_string())
}
