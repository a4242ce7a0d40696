//! A scenario: what a user writes down of a room, a planet and its people.

use std::fmt;
use std::path::Path;

use anteroom::config::Rooms;
use anteroom::room::{Room, SlotStrategy};
use anteroom::steering::{Order, Steering};
use anteroom::time::rfc3339;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, date};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::history::History;
use crate::origin;
use crate::planet::{LOCATIONS, START};
use crate::table::strategy_name;

/// The longest scenario: ten weeks.
const MINUTES_MAX: f64 = 100_000.0;
/// The most visitors in a minute.
const VISITORS_MAX: f64 = 1e8;

/// A scenario as it stands in its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, for tables.
    pub name: String,
    /// What it is about, in a sentence.
    #[serde(default)]
    pub about: String,
    /// How many minutes are simulated, from 1 to 100,000.
    pub minutes: u32,
    /// The room can take everybody at any time: whoever is queued is queued wrongly.
    #[serde(default)]
    pub below_limits: bool,
    /// The room's fields, as in wrangler.toml. `session_duration` in minutes.
    pub room: toml::Table,
    /// The room's events, with an event's fields as in wrangler.toml; their times are minutes since the beginning.
    #[serde(default)]
    pub events: Vec<toml::Table>,
    /// New visitors per minute over time. Where spans overlap they add up.
    pub arrivals: Vec<Arrivals>,
    /// The planet.
    #[serde(default)]
    pub planet: Planet,
    /// How visitors behave.
    #[serde(default)]
    pub visitors: Behaviour,
    /// What goes wrong, and when.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// What an operator does, and when.
    #[serde(default)]
    pub steering: Vec<Steer>,
    /// The origin. Left out: one that serves everybody at once.
    pub origin: Option<origin::Setup>,
}

/// New visitors in a span of time: a rate, a ramp or a recorded series.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// When it begins, in minutes.
    #[serde(default)]
    pub from: f64,
    /// When it ends, in minutes; left out: with the scenario.
    pub until: Option<f64>,
    /// It begins again this often, in minutes, to the end of the scenario; left out: once. A whole number of seconds.
    pub every: Option<f64>,
    /// New visitors per minute, from 0 to 100,000,000.
    pub per_minute: Option<f64>,
    /// New visitors per minute at the end, for a ramp.
    pub to_per_minute: Option<f64>,
    /// A recorded series instead of a rate: a CSV file, its path relative to the scenario's file.
    pub csv: Option<String>,
    /// The content of `csv`.
    #[serde(skip)]
    pub recorded: Recorded,
    /// Which colos they come to; left out: all.
    #[serde(default)]
    pub colos: Colos,
}

impl Arrivals {
    fn check(&self) -> Result<(), ScenarioError> {
        let wrong = |what: String| Err(ScenarioError(what));
        match (self.per_minute, &self.csv) {
            (None, None) => {
                return wrong("per_minute: missing; write per_minute = 100 or csv = \"day.csv\"".to_owned());
            }
            (Some(_), Some(_)) => return wrong("per_minute and csv: write only one of them".to_owned()),
            (None, Some(_)) if self.to_per_minute.is_some() => {
                return wrong("to_per_minute: only with per_minute; leave it out with csv".to_owned());
            }
            _ => {}
        }
        for (field, rate) in [("per_minute", self.per_minute), ("to_per_minute", self.to_per_minute)] {
            if let Some(rate) = rate.filter(|rate| !(0.0..=VISITORS_MAX).contains(rate)) {
                return wrong(format!("{field} = {rate}; it must be from 0 to 100,000,000"));
            }
        }
        if !(0.0..=MINUTES_MAX).contains(&self.from) {
            return wrong(format!("from = {}; it is in minutes, from 0", self.from));
        }
        if self.until.is_some_and(|until| until.is_nan() || until <= self.from) {
            return wrong(format!("until must be after from = {}", self.from));
        }
        if let Some(every) = self.every
            && !self.until.is_some_and(|until| until - self.from <= every && every <= MINUTES_MAX)
        {
            return wrong(format!(
                "every = {every}; it is in minutes, at least as long as from = {} to until, which must be written too",
                self.from
            ));
        }
        Ok(())
    }
}

/// A recorded series of new visitors, from a CSV file with the columns `minute` or `time`, and `visitors`.
///
/// A row says how many came from its minute until the next row's; the last row lasts as long as the one before it.
/// A room's own history serves too ([`crate::history`]).
/// `minute` counts from 0 at [`Arrivals::from`]; `time` is a time of day (`09:55`) or a date and time
/// (`2026-11-27 09:55`), and the first row is minute 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorded {
    /// Since which minute, and new visitors per minute from then on. The last rate is 0.
    steps: Vec<(f64, f64)>,
    /// When minute 0 was, if the file has times.
    pub start: Option<DateTime>,
}

impl Recorded {
    /// Reads the text of a CSV file.
    ///
    /// # Errors
    /// Which line and column cannot be, and what it may be.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        const HEADER: &str =
            "the first line must be minute,visitors or time,visitors, or that of a room's history";
        if History::is_one(text) {
            return Ok(History::parse(text)?.tell(false).arrivals);
        }
        let wrong = |what: String| ScenarioError(what);
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
        let column = |name: &str| header.iter().position(|of| of.eq_ignore_ascii_case(name));
        let visitors_at = column("visitors").ok_or_else(|| wrong(format!("visitors: missing; {HEADER}")))?;
        let (when_at, is_time) = match (column("minute"), column("time")) {
            (Some(minute), _) => (minute, false),
            (None, Some(time)) => (time, true),
            (None, None) => return Err(wrong(format!("minute: missing; {HEADER}"))),
        };
        let mut start = None;
        let mut rows: Vec<(f64, f64)> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| wrong(error.to_string()))?;
            let line = record.position().map_or(0, csv::Position::line);
            let (when, visitors) = (&record[when_at], &record[visitors_at]);
            let minute = if is_time {
                let time = time_of(when).ok_or_else(|| {
                    wrong(format!("line {line}: time = {when:?}; write 09:55 or 2026-11-27 09:55"))
                })?;
                time.duration_since(*start.get_or_insert(time)).as_secs_f64() / 60.0
            } else {
                when.parse().unwrap_or(f64::NAN)
            };
            let after = rows.last().map_or(0.0, |(minute, _)| *minute);
            let follows = minute > after || (rows.is_empty() && minute >= 0.0);
            if !follows || minute > MINUTES_MAX {
                return Err(wrong(format!(
                    "line {line}: {} = {when:?}; it must come after the line before, as a number from 0 to \
                     {MINUTES_MAX} or a time",
                    &header[when_at]
                )));
            }
            let count = visitors.parse().ok().filter(|count| (0.0..=VISITORS_MAX).contains(count));
            let count = count.ok_or_else(|| {
                wrong(format!(
                    "line {line}: visitors = {visitors:?}; it must be a number from 0 to {VISITORS_MAX}"
                ))
            })?;
            rows.push((minute, count));
        }
        let Some((last, _)) = rows.last().copied() else {
            return Err(wrong("nobody comes; write a line per minute below the header".to_owned()));
        };
        let span = rows.len().checked_sub(2).map_or(1.0, |before| last - rows[before].0);
        Ok(Self::of_counts(&rows, span, start))
    }

    /// A series of minutes and how many came from each until the next; the last lasts for `span` minutes.
    pub fn of_counts(rows: &[(f64, f64)], span: f64, start: Option<DateTime>) -> Self {
        let end = rows.last().map_or(0.0, |(last, _)| last + span);
        let ends = rows.iter().skip(1).map(|(minute, _)| *minute).chain([end]);
        let mut steps: Vec<(f64, f64)> =
            rows.iter().zip(ends).map(|((from, count), end)| (*from, count / (end - from))).collect();
        steps.push((end, 0.0));
        Self { steps, start }
    }

    /// When minute 0 was, in milliseconds since the epoch, if the file has dates.
    pub fn begin(&self) -> Option<u64> {
        let start = self.start.filter(|start| start.date() != SOME_DAY)?;
        u64::try_from(TimeZone::UTC.to_timestamp(start).ok()?.as_millisecond()).ok()
    }

    /// How many minutes the series lasts.
    pub fn minutes(&self) -> f64 {
        self.steps.last().map_or(0.0, |(end, _)| *end)
    }

    /// New visitors per minute, at a time in minutes after the beginning.
    pub fn per_minute(&self, minute: f64) -> f64 {
        let after = self.steps.partition_point(|(from, _)| *from <= minute);
        after.checked_sub(1).map_or(0.0, |index| self.steps[index].1)
    }
}

/// The day of a series that has times of day alone: nobody knows which it is.
const SOME_DAY: Date = date(2000, 1, 1);

/// A time of day, or a date and time; in UTC, unless it says its zone.
fn time_of(text: &str) -> Option<DateTime> {
    let zoned = text.parse::<Timestamp>().map(|time| TimeZone::UTC.to_datetime(time));
    zoned
        .or_else(|_| text.parse::<DateTime>())
        .ok()
        .or_else(|| Some(SOME_DAY.to_datetime(text.parse::<jiff::civil::Time>().ok()?)))
}

/// An event as wrangler.toml has it: minutes since the beginning become times.
fn event_table(event: &toml::Table) -> Result<serde_json::Value, ScenarioError> {
    let mut event = event.clone();
    event.insert("room".to_owned(), "sim".into());
    for field in ["prequeue_start_time", "event_start_time", "event_end_time"] {
        let Some(value) = event.get(field) else { continue };
        let minutes = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let minutes = minutes.filter(|minutes| minutes.abs() <= MINUTES_MAX).ok_or_else(|| {
            ScenarioError(format!(
                "events: {field} = {value}; it is in minutes since the beginning, up to {MINUTES_MAX} before or after it"
            ))
        })?;
        event.insert(field.to_owned(), rfc3339((START as f64 + minutes * 60_000.0).round() as u64).into());
    }
    serde_json::to_value(&event).map_err(|error| ScenarioError(error.to_string()))
}

/// Which colos traffic comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Colos {
    /// All of them.
    #[default]
    All,
    /// Every second one, the busiest among them.
    Even,
    /// The others.
    Odd,
}

/// The planet: where colos and objects are, and what they do to messages and memories.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Planet {
    /// How many colos: so many of the busiest real cities.
    pub colos: usize,
    /// Traffic of the n-th colo: 1/n to this power.
    pub zipf: f64,
    /// The location hint of Anywhere and Global; left out: near the busiest colo.
    pub location: Option<String>,
    /// What stands before every call to Anywhere, in milliseconds, besides its way.
    pub anywhere_delay_ms: u64,
    /// How long an object takes for a request, in microseconds: it serves one at a time.
    pub service_micros: u64,
    /// The same for each visitor, check-in or count that the message holds.
    pub item_micros: u64,
    /// A request that would have to queue for longer at an object is refused, in milliseconds.
    pub queue_ms: u64,
    /// An object that nothing has come to for so long, and that waits for nothing, loses its memory, in seconds; 0: never.
    pub memory_loss_seconds: u64,
    /// How often an object restarts for no reason, on the average.
    pub restarts_per_hour: f64,
    /// How much more often a Counter does.
    pub counter_restarts_per_hour: f64,
    /// A colo has an isolate for so many requests a second; with less than 1, one request has several to come to.
    pub requests_per_isolate: f64,
    /// An isolate without requests is evicted after so long, in seconds, give or take a half.
    pub isolate_idle_seconds: u64,
    /// The worker's deadline for a call, in milliseconds.
    pub deadline_ms: u64,
    /// How long it takes until an object's write is confirmed, in milliseconds: what leaves the object waits for it.
    pub storage_ms: (u64, u64),
    /// Share of reports, pushes and their answers that are lost.
    pub loss: f64,
    /// Share of reports and pushes that arrive twice.
    pub twice: f64,
    /// Reports and pushes take up to this much longer, in milliseconds, at random: they overtake each other.
    pub jitter_ms: u64,
    /// How far clocks of colos may be wrong, either way, in milliseconds.
    pub skew_ms: u64,
    /// It begins with 0.1.0. Each deploy goes to today's version, or back.
    pub begins_old: bool,
}

impl Default for Planet {
    fn default() -> Self {
        Self {
            colos: 30,
            zipf: 1.0,
            location: None,
            anywhere_delay_ms: 0,
            service_micros: 1_000,
            item_micros: 10,
            queue_ms: 1_000,
            memory_loss_seconds: 10,
            restarts_per_hour: 0.2,
            counter_restarts_per_hour: 0.0,
            requests_per_isolate: 50.0,
            isolate_idle_seconds: 120,
            deadline_ms: 500,
            storage_ms: (2, 8),
            loss: 0.0,
            twice: 0.0,
            jitter_ms: 0,
            skew_ms: 0,
            begins_old: false,
        }
    }
}

/// How visitors behave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// Mean length of a visit after admission, in seconds.
    pub visit_seconds: f64,
    /// Mean time between two pages, in seconds.
    pub gap_seconds: f64,
    /// Mean time until somebody who waits gives up, in seconds.
    pub patience_seconds: f64,
    /// Share of visitors who leave the queue at their first look at it.
    pub leave_at_once: f64,
    /// Share of visitors who refuse cookies: each of their requests is a new visitor's.
    pub cookieless: f64,
    /// Share of requests that come to another colo than the visitor's own.
    pub roaming: f64,
    /// Share of page views that send two requests at once with one cookie.
    pub parallel: f64,
    /// Share of visitors who come back for another visit some minutes after their last one.
    pub returning: f64,
    /// Share of visits that the origin ends (`revoke`): after a purchase, say.
    pub revoked: f64,
    /// Share of the users whose session the origin ends who go on with a copy of the ticket, in another colo.
    pub copying: f64,
    /// Share of those who give up waiting whose page says so when it is closed.
    pub closing: f64,
    /// Those who refuse cookies are bots that come from this many addresses, each to one colo, and do not count among those
    /// who are queued; 0: each comes from an address of its own, as everybody
    /// else.
    pub bot_addresses: u64,
    /// All others come from this many addresses; 0: each from an address of its own.
    pub shared_addresses: u64,
    /// Share of visitors who press reload all the time while they wait.
    pub reloading: f64,
    /// Share of visitors who do so with an old cookie: they take a newer one only when it would not be good any more.
    pub replaying: f64,
    /// So many attackers come for each visitor, beside them: they reload, replay old cookies, have many, or storm the room with
    /// copies of an old one in their sessions' last seconds.
    pub attackers: f64,
    /// With an origin: how long a visitor waits for a page before asking again, in seconds.
    pub page_patience_seconds: f64,
    /// With an origin: after this many pages in a row that failed, a visitor leaves.
    pub page_tries: u32,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            visit_seconds: 180.0,
            gap_seconds: 20.0,
            patience_seconds: 480.0,
            leave_at_once: 0.0,
            cookieless: 0.0,
            roaming: 0.0,
            parallel: 0.0,
            returning: 0.0,
            revoked: 0.0,
            copying: 0.0,
            closing: 0.0,
            bot_addresses: 0,
            shared_addresses: 0,
            reloading: 0.0,
            replaying: 0.0,
            attackers: 0.0,
            page_patience_seconds: 30.0,
            page_tries: 10,
        }
    }
}

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When, in seconds.
    pub at: f64,
    /// How long, in seconds; 0: the object restarts, and what it had not stored is gone.
    #[serde(default)]
    pub lasts: f64,
    /// Where it restarts: for so long the instance before goes on beside the new one, in seconds. What comes comes to either of
    /// them, and the older one's next write is refused, which ends it. Not for Global.
    #[serde(default)]
    pub overlaps: f64,
    /// Where it restarts: what it had stored is gone too. The platform promises that this does not happen.
    #[serde(default)]
    pub forgets: bool,
    /// Of a clock: by how much it jumps, in milliseconds; forwards, or backwards below 0.
    #[serde(default)]
    pub jumps_ms: i64,
    /// What breaks.
    pub what: Broken,
    /// Which colo, from 0 (the busiest), for what is a colo's.
    #[serde(default)]
    pub colo: usize,
}

/// An operator changes the room at run time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steer {
    /// When, in seconds.
    pub at: f64,
    /// Fields and their new values: `queue_all`, `suspended`, `total_active_users`, `new_users_per_minute`.
    #[serde(default)]
    pub set: toml::Table,
    /// Fields that are to be as deployed again.
    #[serde(default)]
    pub clear: Vec<String>,
}

impl Steer {
    /// The order as it comes to Global.
    pub fn body(&self) -> String {
        serde_json::json!({ "set": &self.set, "clear": &self.clear }).to_string()
    }

    /// What is read there.
    pub fn order(&self) -> Order {
        let set = serde_json::to_value(&self.set).ok();
        let set = set.and_then(|set| set.as_object().cloned()).unwrap_or_default();
        Order { set, clear: self.clear.clone(), ..Order::default() }
    }
}

/// What breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broken {
    /// The Global object.
    Global,
    /// The Anywhere object.
    Anywhere,
    /// A colo's Counter.
    Counter,
    /// A colo's `DataCenter` object.
    DataCenter,
    /// A whole colo: its objects and workers are gone, its visitors go to other colos.
    Colo,
    /// The clock of a colo's workers and objects.
    Clock,
    /// A new version: within some seconds all objects restart, and new isolates take over.
    Deploy,
}

/// Why a scenario cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError(pub String);

impl fmt::Display for ScenarioError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ScenarioError {}

/// Reads a text file: of the disk, or what the npm package's command reads for it.
pub type Read<'a> = dyn Fn(&Path) -> std::io::Result<String> + 'a;

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// When the file cannot be read, or says something that cannot be: which field, and what it may be.
    pub fn read(path: &Path, read: &Read) -> Result<Self, ScenarioError> {
        let file = path.display();
        let wrong = |error: &dyn fmt::Display| ScenarioError(format!("{file}: {error}"));
        let text = read(path).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
        let beside =
            |name: &str| read(&path.with_file_name(name)).map_err(|error| format!("cannot be read: {error}"));
        Self::parse_with(&text, &beside).map_err(|error| wrong(&error))
    }

    /// Reads a scenario's text, whose arrivals are not in files of their own.
    ///
    /// # Errors
    /// See [`Scenario::read`].
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, &|_| Err("cannot be read: the scenario is not in a file".to_owned()))
    }

    /// Reads a scenario's text; `file` gives the text of a file that it names.
    ///
    /// # Errors
    /// See [`Scenario::read`].
    pub fn parse_with(
        text: &str,
        file: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, ScenarioError> {
        let mut scenario: Self = toml::from_str(text).map_err(|error| ScenarioError(error.to_string()))?;
        for (index, arrivals) in scenario.arrivals.iter_mut().enumerate() {
            if let Some(name) = &arrivals.csv {
                let wrong = |error: &dyn fmt::Display| {
                    ScenarioError(format!("arrivals {index}: csv = {name:?}: {error}"))
                };
                let text = file(name).map_err(|error| wrong(&error))?;
                arrivals.recorded = Recorded::parse(&text).map_err(|error| wrong(&error))?;
            }
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// Whether what is written can be simulated.
    ///
    /// # Errors
    /// The first field that cannot be as it is, and what it may be.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let wrong = |what: String| Err(ScenarioError(what));
        if !(1.0..=MINUTES_MAX).contains(&f64::from(self.minutes)) {
            return wrong(format!("minutes = {}; it must be from 1 to {MINUTES_MAX}", self.minutes));
        }
        if self.arrivals.is_empty() {
            return wrong(
                "arrivals: nobody comes; write at least one [[arrivals]] with per_minute".to_owned(),
            );
        }
        for (index, arrivals) in self.arrivals.iter().enumerate() {
            arrivals.check().map_err(|error| ScenarioError(format!("arrivals {index}: {error}")))?;
        }
        self.check_ranges()?;
        if let Some(origin) = &self.origin {
            origin.check()?;
        }
        self.check_steering(&self.room(None)?)
    }

    /// By what says it at run time.
    fn check_steering(&self, room: &Room) -> Result<(), ScenarioError> {
        const STEERED: [&str; 4] = ["queue_all", "suspended", "total_active_users", "new_users_per_minute"];
        let wrong = |index: usize, what: String| Err(ScenarioError(format!("steering {index}: {what}")));
        let mut steering = Steering::default();
        for (index, steer) in self.steering.iter().enumerate() {
            if !(0.0..=MINUTES_MAX * 60.0).contains(&steer.at) {
                return wrong(index, format!("at = {}; it is in seconds, from 0", steer.at));
            }
            let fields = steer.set.keys().chain(&steer.clear);
            if let Some(field) = fields.into_iter().find(|field| !STEERED.contains(&field.as_str())) {
                return wrong(
                    index,
                    format!("{field} is not simulated; write one of: {}", STEERED.join(", ")),
                );
            }
            if let Err(refusal) = steering.obey(room, &steer.order(), "operator", START) {
                let errors: Vec<String> = refusal
                    .errors
                    .iter()
                    .map(|error| {
                        format!("{} = {}: {}. Fix: {}", error.field, error.value, error.message, error.fix)
                    })
                    .collect();
                return wrong(index, errors.join("; "));
            }
        }
        if !self.steering.is_empty() && !self.events.is_empty() {
            return Err(ScenarioError(
                "steering and events: both at once are not simulated; leave one of them out".to_owned(),
            ));
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), ScenarioError> {
        let wrong = |what: String| Err(ScenarioError(what));
        let (planet, visitors) = (&self.planet, &self.visitors);
        let wholes = [
            ("planet: colos", planet.colos as u64, 1..=1_000),
            ("planet: anywhere_delay_ms", planet.anywhere_delay_ms, 0..=60_000),
            ("planet: service_micros", planet.service_micros, 0..=1_000_000),
            ("planet: item_micros", planet.item_micros, 0..=10_000),
            ("planet: memory_loss_seconds", planet.memory_loss_seconds, 0..=86_400),
            ("planet: isolate_idle_seconds", planet.isolate_idle_seconds, 30..=86_400),
            ("planet: queue_ms", planet.queue_ms, 0..=60_000),
            ("planet: deadline_ms", planet.deadline_ms, 100..=60_000),
            ("planet: jitter_ms", planet.jitter_ms, 0..=60_000),
            ("planet: skew_ms", planet.skew_ms, 0..=60_000),
        ];
        for (field, value, range) in wholes {
            if !range.contains(&value) {
                return wrong(format!(
                    "{field} = {value}; it must be from {} to {}",
                    range.start(),
                    range.end()
                ));
            }
        }
        let (from, to) = planet.storage_ms;
        if from > to || to > 60_000 {
            return wrong(format!(
                "planet: storage_ms = [{from}, {to}]; it must be the shortest and the longest time, up to 60,000"
            ));
        }
        if let Some(location) = &planet.location {
            let known = LOCATIONS.map(|(name, _)| name);
            if !known.contains(&location.as_str()) {
                return wrong(format!("planet: location = {location:?}; write one of: {}", known.join(", ")));
            }
        }
        if !(0.01..=1e6).contains(&planet.requests_per_isolate) {
            let per = planet.requests_per_isolate;
            return wrong(format!("planet: requests_per_isolate = {per}; it must be from 0.01 to 1,000,000"));
        }
        let shares = [
            ("planet: loss", planet.loss),
            ("planet: twice", planet.twice),
            ("visitors: leave_at_once", visitors.leave_at_once),
            ("visitors: cookieless", visitors.cookieless),
            ("visitors: roaming", visitors.roaming),
            ("visitors: parallel", visitors.parallel),
            ("visitors: returning", visitors.returning),
            ("visitors: revoked", visitors.revoked),
            ("visitors: copying", visitors.copying),
            ("visitors: closing", visitors.closing),
            ("visitors: reloading", visitors.reloading),
            ("visitors: replaying", visitors.replaying),
            ("visitors: attackers", visitors.attackers),
        ];
        for (field, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return wrong(format!("{field} = {share}; it is a share, from 0 to 1"));
            }
        }
        let means = [
            ("visitors: visit_seconds", visitors.visit_seconds),
            ("visitors: gap_seconds", visitors.gap_seconds),
            ("visitors: patience_seconds", visitors.patience_seconds),
            ("visitors: page_patience_seconds", visitors.page_patience_seconds),
            ("planet: zipf", planet.zipf),
            ("planet: restarts_per_hour", planet.restarts_per_hour),
            ("planet: counter_restarts_per_hour", planet.counter_restarts_per_hour),
        ];
        for (field, mean) in means {
            if !(0.0..=1e6).contains(&mean) {
                return wrong(format!("{field} = {mean}; it must be from 0 to 1,000,000"));
            }
        }
        for (index, fault) in self.faults.iter().enumerate() {
            for (field, seconds) in [("at", fault.at), ("lasts", fault.lasts), ("overlaps", fault.overlaps)] {
                if !(0.0..=MINUTES_MAX * 60.0).contains(&seconds) {
                    return wrong(format!("faults {index}: {field} = {seconds}; it is in seconds, from 0"));
                }
            }
            if fault.jumps_ms.unsigned_abs() > 60_000
                || (fault.jumps_ms != 0) != (fault.what == Broken::Clock)
            {
                let jumps = fault.jumps_ms;
                return wrong(format!(
                    "faults {index}: jumps_ms = {jumps}; for a clock, up to 60,000 either way"
                ));
            }
            if fault.overlaps > 0.0 && fault.what == Broken::Global {
                return wrong(format!("faults {index}: overlaps is for anywhere, counter and data_center"));
            }
        }
        Ok(())
    }

    /// The scenario's room, made by the very parser of the Worker.
    ///
    /// # Errors
    /// What the parser says of the room.
    pub fn room(&self, strategy: Option<SlotStrategy>) -> Result<Room, ScenarioError> {
        let mut room = self.room.clone();
        if let Some(strategy) = strategy {
            room.insert("slot_strategy".to_owned(), strategy_name(strategy).into());
        }
        let table = serde_json::to_value(&room).map_err(|error| ScenarioError(error.to_string()))?;
        let mut vars = vec![("ROOM_SIM".to_owned(), table)];
        for (index, event) in self.events.iter().enumerate() {
            vars.push((format!("EVENT_{index}"), event_table(event)?));
        }
        let (rooms, errors) = Rooms::from_vars(vars.into_iter());
        if !errors.is_empty() {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Err(ScenarioError(format!("room: {}", errors.join("; "))));
        }
        rooms.get("sim").cloned().ok_or_else(|| ScenarioError("room: missing".to_owned()))
    }

    /// New visitors per minute at a time, to the colos of each kind.
    pub fn arrivals_at(&self, minutes: f64) -> [(Colos, f64); 3] {
        let mut rates = [(Colos::All, 0.0), (Colos::Even, 0.0), (Colos::Odd, 0.0)];
        for arrivals in &self.arrivals {
            let until = arrivals.until.unwrap_or(f64::from(self.minutes));
            // The simulator asks for each second: what is left of a period must not miss its first one by rounding.
            let minutes = match arrivals.every.filter(|_| minutes >= arrivals.from) {
                Some(every) => {
                    arrivals.from + ((minutes - arrivals.from) * 60.0).round() % (every * 60.0) / 60.0
                }
                None => minutes,
            };
            if minutes < arrivals.from || minutes >= until {
                continue;
            }
            let rate = match arrivals.per_minute {
                None => arrivals.recorded.per_minute(minutes - arrivals.from),
                Some(from) => {
                    let part = (minutes - arrivals.from) / (until - arrivals.from);
                    from + (arrivals.to_per_minute.unwrap_or(from) - from) * part
                }
            };
            if let Some(of) = rates.iter_mut().find(|(colos, _)| *colos == arrivals.colos) {
                of.1 += rate;
            }
        }
        rates
    }
}

/// Names and texts, in the order in which they are listed and run.
macro_rules! shipped {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../scenarios/", $name, ".toml")))),*] };
}

/// The scenarios that ship with the simulator: first those below the limits, then overload, then faults.
pub const SHIPPED: &[(&str, &str)] = shipped!(
    "empty" "quiet" "steady85" "steady97" "nupm95" "shift" "small80"
    "small" "ramp" "over20" "spike3" "spike3_sliding" "lowspike" "flash50" "flash50_sliding" "overshift" "nupmramp" "sd60" "sd300" "big" "million" "ten_million" "six" "forty"
    "ticket_sale" "event_sale" "random_rush" "change_method" "shop_week" "abandon30" "bots20" "bots20_places"
    "parallel_roaming" "revoke" "one_session"
    "steer_close" "steer_halve" "suspend_resume" "close_quiet"
    "clocks5" "loss30" "pool_outage" "restarts" "dying_colo" "forgetful" "forgetful_counters" "slow_pool" "deploys"
    "hidden_capacity" "halved_capacity" "sale_slow" "sale_errors" "sale_hangs" "sale_flaps" "sale_dies"
);

/// The recorded series that shipped scenarios name.
pub const SHIPPED_SERIES: &[(&str, &str)] = &[("shop_week.csv", include_str!("../scenarios/shop_week.csv"))];

/// A shipped scenario by its name.
///
/// # Errors
/// When there is none of this name.
pub fn shipped(name: &str) -> Result<Scenario, ScenarioError> {
    let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let known: Vec<&str> = SHIPPED.iter().map(|(known, _)| *known).collect();
        ScenarioError(format!(
            "{name}: neither a file nor a shipped scenario; write a path that ends in .toml, or one of: {}",
            known.join(", ")
        ))
    })?;
    Scenario::parse_with(text, &|file| {
        let series = SHIPPED_SERIES.iter().find(|(known, _)| *known == file);
        series.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "is not shipped".to_owned())
    })
    .map_err(|error| ScenarioError(format!("{name}: {error}")))
}
