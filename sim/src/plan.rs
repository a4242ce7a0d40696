//! What a day will be like for an owner's room: an answer in some lines and a chart.
//!
//! The room is read from wrangler.toml by the parser of the Worker, the day is simulated, and so are larger limits until
//! nobody waits any more.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anteroom::config::{DEFAULTS, Part, Rooms};
use anteroom::room::{Room, SlotStrategy};
use anteroom::time::{MINUTE_MS, rfc3339};
use jiff::civil::DateTime;

use crate::history::History;
use crate::measure::Measured;
use crate::planet::Planet;
use crate::price::PLAN_DOLLARS;
use crate::report::{clock, per_minute, thousands};
use crate::scenario::{
    Arrivals, Behaviour, Planet as Setup, Read, Recorded, Scenario, ScenarioError, shipped,
};
use crate::table::{Run, strategy_name};

/// The most simulations that look for limits that avoid queueing.
const TRIALS: u32 = 6;
/// Limits are tried a little above the peaks of a room without limits, and higher by this factor each time.
const MARGIN: f64 = 0.02;
/// Queueing that begins again within this many seconds goes on.
const PAUSE_SECONDS: u64 = 300;
/// Characters of a chart in the terminal.
const WIDE: usize = 72;

/// A room and its day.
#[derive(Debug, Clone)]
pub struct Day {
    /// What is simulated: the owner's room, its visitors, a planet.
    pub scenario: Scenario,
    strategy: SlotStrategy,
    room: Room,
    start: Option<DateTime>,
    /// What was taken from a recorded history.
    notes: Vec<String>,
}

/// What the day will be like.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The answer.
    pub lines: Vec<String>,
    /// Active and waiting users over time, for a terminal.
    pub sketch: Vec<String>,
    /// The simulated day.
    pub run: Run,
    /// When minute 0 is, if the arrivals have times.
    pub start: Option<DateTime>,
}

/// A room as a wrangler.toml has it.
#[derive(Debug, Clone)]
pub struct Written {
    /// As the Worker reads it.
    pub room: Room,
    /// Its table.
    pub fields: toml::Table,
    /// The tables of its events, by their names.
    pub events: BTreeMap<String, toml::Table>,
}

impl Written {
    /// The room as it is when none of its events is on.
    #[must_use]
    pub fn without_events(mut self) -> Self {
        self.room.events = Arc::from([]);
        self
    }

    /// The events of a day that begins at a time, in milliseconds since the epoch, and lasts so many minutes: as a scenario has
    /// them, and each in a sentence.
    fn events_of(
        &self,
        begin: Option<u64>,
        minutes: u32,
        arrivals: &Path,
    ) -> Result<(Vec<toml::Table>, Vec<String>), ScenarioError> {
        let (mut tables, mut notes) = (Vec::new(), Vec::new());
        for event in self.room.events.iter().filter(|event| !event.suspended) {
            let begin = begin.ok_or_else(|| {
                ScenarioError(format!(
                    "{}: nobody knows how far the event {} of room {} is from this: no day is written there; write times \
                     such as 2026-11-27 19:55 (UTC), or plan without events: --without-events",
                    arrivals.display(),
                    event.name,
                    self.room.name
                ))
            })?;
            let times = format!("from {} to {}", rfc3339(event.start), rfc3339(event.end));
            if event.end <= begin || event.begin() >= begin + u64::from(minutes) * MINUTE_MS {
                notes.push(format!("The event {} is not in this day: it is {times}.", event.name));
                continue;
            }
            let since_begin = |time: u64| (time as f64 - begin as f64) / MINUTE_MS as f64;
            let mut table = self.events.get(&event.name).cloned().unwrap_or_default();
            table.insert("event_start_time".to_owned(), since_begin(event.start).into());
            table.insert("event_end_time".to_owned(), since_begin(event.end).into());
            if let Some(prequeue) = event.prequeue {
                table.insert("prequeue_start_time".to_owned(), since_begin(prequeue).into());
            }
            tables.push(table);
            let prequeue = event.prequeue.map_or_else(String::new, |time| {
                format!(", with a prequeue from {} on in which nobody new enters", rfc3339(time))
            });
            notes.push(format!(
                "The event {} is {times}{prequeue}: {} active users, {} new users per minute.",
                event.name,
                thousands(event.active.total_active_users.into()),
                thousands(event.active.new_users_per_minute.into())
            ));
        }
        Ok((tables, notes))
    }
}

/// A room of a wrangler.toml.
///
/// # Errors
/// When the file cannot be read, there is no such room, or the Worker's parser refuses it or one of its events: file, field
/// and fix.
pub fn read_room(
    config: &Path,
    environment: Option<&str>,
    name: &str,
    read: &Read,
) -> Result<Written, ScenarioError> {
    let file = config.display();
    let wrong = |what: String| ScenarioError(format!("{file}: {what}"));
    let text = read(config)
        .map_err(|error| wrong(format!("cannot be read: {error}; name your wrangler.toml with --config")))?;
    let top: toml::Table = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let part = match environment {
        None => Some(&top),
        Some(environment) => {
            top.get("env").and_then(|all| all.get(environment)).and_then(toml::Value::as_table)
        }
    };
    let part = part.ok_or_else(|| {
        wrong(format!("--env {} is not an environment of this file", environment.unwrap_or_default()))
    })?;
    let none = toml::Table::new();
    let vars = part.get("vars").and_then(toml::Value::as_table).unwrap_or(&none);
    let mut values = Vec::new();
    for (var, value) in vars {
        let value = serde_json::to_value(value).map_err(|error| wrong(format!("vars.{var}: {error}")))?;
        values.push((var.clone(), value));
    }
    let (rooms, errors) = Rooms::from_vars(values.into_iter());
    let name = name.to_ascii_lowercase();
    let table_of = |prefix: &str, value: &str| {
        let found = vars
            .iter()
            .find(|(var, _)| var.strip_prefix(prefix).is_some_and(|of| of.eq_ignore_ascii_case(value)));
        found.and_then(|(_, value)| value.as_table()).cloned()
    };
    let is_of_room = |table: &toml::Table| {
        table.get("room").and_then(toml::Value::as_str).is_some_and(|room| room.eq_ignore_ascii_case(&name))
    };
    let event = |event: &str| table_of("EVENT_", event).filter(is_of_room);
    let of_room: Vec<String> = errors
        .iter()
        .filter(|error| match error.part {
            Part::Event => event(&error.name).is_some(),
            Part::Defaults => true,
            _ => error.name == name,
        })
        .map(ToString::to_string)
        .collect();
    if !of_room.is_empty() {
        return Err(wrong(of_room.join("\n")));
    }
    let room = rooms.get(&name).ok_or_else(|| {
        let mut known: Vec<&str> = rooms.iter().map(|room| room.name.as_str()).collect();
        known.sort_unstable();
        let fix = match (known.is_empty(), environment) {
            (false, _) => format!("--room is one of: {}", known.join(", ")),
            (true, None) => "write [vars.ROOM_SHOP] for --room shop".to_owned(),
            (true, Some(environment)) => format!("write [env.{environment}.vars.ROOM_SHOP] for --room shop"),
        };
        wrong(format!("has no room {name}; {fix}"))
    })?;
    let events = room.events.iter().filter_map(|of| Some((of.name.clone(), event(&of.name)?)));
    let mut fields = vars.get(DEFAULTS).and_then(toml::Value::as_table).cloned().unwrap_or_default();
    fields.extend(table_of("ROOM_", &name).unwrap_or_default());
    Ok(Written { room: room.clone(), fields, events: events.collect() })
}

impl Day {
    /// An owner's room on a day whose arrivals are in a CSV file, in the room's history (CSV or JSON), in a scenario's file
    /// or in a shipped scenario. What the scenario says of visitors, planet and faults counts; its room and events do not.
    /// `colos` replaces the number of colos; `without_rehearsals` takes marked visitors out of a history.
    ///
    /// # Errors
    /// See [`read_room`] and [`Scenario::read`]; when the room lets in everybody or nobody whatever comes; and when it has an
    /// event, and the arrivals do not say on which day they are.
    pub fn new(
        written: &Written,
        arrivals: &Path,
        colos: Option<usize>,
        without_rehearsals: bool,
        read: &Read,
    ) -> Result<Self, ScenarioError> {
        let room = &written.room;
        let off = |field: &str, why: &str| {
            ScenarioError(format!("room {}: {field} = true: {why}; set it to false to plan", room.name))
        };
        if room.suspended {
            return Err(off("suspended", "nobody ever waits"));
        }
        if room.queue_all {
            return Err(off("queue_all", "nobody new enters"));
        }
        let is_series = arrivals.extension().is_some_and(|extension| {
            extension.eq_ignore_ascii_case("csv") || extension.eq_ignore_ascii_case("json")
        });
        let (mut scenario, notes) = if is_series {
            of_series(arrivals, &written.fields, without_rehearsals, read)?
        } else {
            (find(&arrivals.to_string_lossy(), read)?, None)
        };
        if without_rehearsals && notes.is_none() {
            return Err(ScenarioError(format!(
                "{}: --without-rehearsals: only a room's history tells who was marked; leave it out",
                arrivals.display()
            )));
        }
        scenario.room = written.fields.clone();
        if let Some(colos) = colos {
            scenario.planet.colos = colos;
        }
        let before = |arrivals: &Arrivals| (arrivals.from * 60.0).round() as u64;
        let start = scenario.arrivals.iter().find_map(|arrivals| {
            let before = jiff::SignedDuration::from_secs(before(arrivals) as i64);
            Some(arrivals.recorded.start?.saturating_sub(before))
        });
        let begin = scenario
            .arrivals
            .iter()
            .find_map(|arrivals| arrivals.recorded.begin()?.checked_sub(before(arrivals) * 1_000));
        let (events, of_events) = written.events_of(begin, scenario.minutes, arrivals)?;
        scenario.events = events;
        scenario.check()?;
        let notes = of_events.into_iter().chain(notes.unwrap_or_default()).collect();
        Ok(Self { scenario, strategy: room.slot_strategy, room: room.clone(), start, notes })
    }

    /// Simulates the day, and larger limits. `tick` is called with the part of all that is done, 0 to 1; `seed` is
    /// what all chance is drawn from.
    ///
    /// # Errors
    /// When the room cannot be simulated.
    pub fn plan(&self, seed: u64, tick: &mut dyn FnMut(f64)) -> Result<Plan, ScenarioError> {
        // The day, the day without limits, and the trials.
        let runs = f64::from(TRIALS) + 2.0;
        let measured = self.simulate(None, seed, &mut |part| tick(part / runs))?;
        // Whoever comes in a prequeue waits, whatever the limits.
        let avoiding = if measured.queued == 0 || !self.scenario.events.is_empty() {
            None
        } else {
            Some(self.avoid(&measured, seed, &mut |part| tick((1.0 + part) / runs))?)
        };
        tick(1.0);
        let lines = self.lines(&measured, avoiding);
        let run = Run {
            scenario: self.room.name.clone(),
            strategy: strategy_name(self.strategy),
            colos: self.scenario.planet.colos,
            seed,
            total_active_users: self.room.total_active_users,
            new_users_per_minute: self.room.new_users_per_minute,
            measured,
        };
        Ok(Plan { lines, sketch: sketch(&run.measured.series), run, start: self.start })
    }

    fn simulate(
        &self,
        limits: Option<(u32, u32)>,
        seed: u64,
        tick: &mut dyn FnMut(f64),
    ) -> Result<Measured, ScenarioError> {
        let mut scenario = self.scenario.clone();
        if let Some((active, new)) = limits {
            scenario.room.insert("total_active_users".to_owned(), i64::from(active).into());
            scenario.room.insert("new_users_per_minute".to_owned(), i64::from(new).into());
        }
        Ok(Planet::new(&scenario, Some(self.strategy), None, seed)?.run(tick))
    }

    /// Limits with which nobody would have waited, found or not.
    fn avoid(
        &self,
        measured: &Measured,
        seed: u64,
        tick: &mut dyn FnMut(f64),
    ) -> Result<((u32, u32), bool), ScenarioError> {
        let plenty = measured.arrived.saturating_mul(2).clamp(1_000, 2_000_000_000) as u32;
        let open = self.simulate(Some((plenty, plenty)), seed, &mut |part| tick(part))?;
        let (active, new) = peaks(&open.series);
        let mut limits = (self.room.total_active_users, self.room.new_users_per_minute);
        for trial in 0..TRIALS {
            let above = 1.0 + MARGIN * f64::from(1_u32 << trial);
            limits = (
                self.room.total_active_users.max(rounded_up(active * above)),
                self.room.new_users_per_minute.max(rounded_up(new * above)),
            );
            let done = f64::from(trial) + 1.0;
            if self.simulate(Some(limits), seed, &mut |part| tick(done + part))?.queued == 0 {
                return Ok((limits, true));
            }
        }
        Ok((limits, false))
    }

    fn lines(&self, measured: &Measured, avoiding: Option<((u32, u32), bool)>) -> Vec<String> {
        let (room, run) = (&self.room, measured);
        let whole = |number: u64| thousands(number as f64);
        let share = |part: u64| part as f64 * 100.0 / run.arrived.max(1) as f64;
        let end = f64::from(self.scenario.minutes);
        let when = |second: u64| {
            let time = clock(self.start, second as f64 / 60.0, end);
            if self.start.is_some() { time } else { format!("minute {time}") }
        };
        let (active, new) = peaks(&run.series);
        let mut lines = vec![
            format!(
                "Room {}: {} active users, {} new users per minute, sessions of {} min, {}.",
                room.name,
                whole(room.total_active_users.into()),
                whole(room.new_users_per_minute.into()),
                room.session_duration,
                strategy_name(self.strategy)
            ),
            format!(
                "The day: {} visitors in {} over {} colos; up to {} are active at once, {} enter in a minute.",
                whole(run.arrived),
                minutes(u64::from(self.scenario.minutes) * 60),
                self.scenario.planet.colos,
                thousands(active),
                thousands(new)
            ),
        ];
        lines.extend(self.notes.iter().cloned());
        if run.queued == 0 {
            lines.push("Nobody waits.".to_owned());
        } else {
            lines.push(spells_line(&run.series, &when));
            let crowd =
                run.series.iter().max_by_key(|point| point.2).map_or((0, 0), |point| (point.0, point.2));
            lines.push(format!(
                "{} visitors wait ({:.1} %), up to {} at once, at {}.",
                whole(run.queued),
                share(run.queued),
                whole(crowd.1),
                when(crowd.0)
            ));
            let [median, most, longest] = run.wait_seconds;
            lines.push(format!(
                "The longest wait of those who enter is {}; half of them wait up to {}, 95 % up to {}.",
                minutes(longest),
                minutes(median),
                minutes(most)
            ));
            lines.push(format!(
                "{} leave the queue ({:.1} % of all), if patience lasts {} on average.",
                whole(run.gave_up),
                share(run.gave_up),
                minutes(self.scenario.visitors.patience_seconds as u64)
            ));
        }
        if let Some(((active, new), found)) = avoiding {
            let limits = format!(
                "total_active_users = {active} (now {}) and new_users_per_minute = {new} (now {})",
                room.total_active_users, room.new_users_per_minute
            );
            lines.push(if found {
                format!("Nobody would wait with {limits}, if the origin can bear it.")
            } else {
                format!("Even {limits} would let some wait; no larger limits were tried.")
            });
        } else if run.queued > 0 {
            lines.push(
                "Larger limits are not tried on a day with an event; --without-events tries them.".to_owned(),
            );
        }
        lines.extend(cost_lines(run));
        lines
    }
}

fn cost_lines(run: &Measured) -> [String; 2] {
    let used = &run.usage;
    [
        format!(
            "On the platform: {} requests of the Worker, {} of its objects, {} GB-s of their duration, {} rows written.",
            thousands(used.worker_requests),
            thousands(used.object_requests),
            thousands(used.gb_seconds),
            thousands(used.rows_written)
        ),
        format!(
            "That is ${:.2} at list prices, with 1 ms of CPU time for each request of the Worker; ${:.2} beyond what a \
             month of Workers Paid (${PLAN_DOLLARS:.0}) includes.",
            used.dollars(),
            used.beyond_included(1.0)
        ),
    ]
}

/// A scenario by its file, or by its name if it is shipped.
///
/// # Errors
/// See [`Scenario::read`] and [`shipped`].
pub fn find(name: &str, read: &Read) -> Result<Scenario, ScenarioError> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    if is_file || read(path).is_ok() { Scenario::read(path, read) } else { shipped(name) }
}

/// A scenario of nothing but a recorded series; for a history, with what else it tells, and that in words.
fn of_series(
    file: &Path,
    room: &toml::Table,
    without_rehearsals: bool,
    read: &Read,
) -> Result<(Scenario, Option<Vec<String>>), ScenarioError> {
    let wrong = |what: String| ScenarioError(format!("{}: {what}", file.display()));
    let text = read(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let (recorded, visitors, notes) = if History::is_one(&text) {
        let history = History::parse(&text).map_err(|error| wrong(error.to_string()))?;
        let told = history.tell(without_rehearsals);
        (told.arrivals, told.visitors, Some(told.notes))
    } else {
        let recorded = Recorded::parse(&text).map_err(|error| wrong(error.to_string()))?;
        (recorded, Behaviour::default(), None)
    };
    // The day begins with a whole minute: so the places that lots give, which are minutes, are those of the calendar.
    let from = recorded.start.map_or(0.0, |start| f64::from(start.second()) / 60.0);
    let minutes = (recorded.minutes() + from).ceil().max(1.0) as u32;
    let csv = Some(file.display().to_string());
    let scenario = Scenario {
        events: Vec::new(),
        name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        about: String::new(),
        minutes,
        below_limits: false,
        room: room.clone(),
        arrivals: vec![Arrivals { from, csv, recorded, ..Arrivals::default() }],
        planet: Setup::default(),
        visitors,
        faults: Vec::new(),
        steering: Vec::new(),
        origin: None,
    };
    Ok((scenario, notes))
}

/// The most active users, and the most who entered in a calendar minute, as far as the series tells.
fn peaks(series: &[(u64, u64, u64, u64)]) -> (f64, f64) {
    let active = series.iter().map(|point| point.1).max().unwrap_or(0) as f64;
    let new = per_minute(series).into_iter().map(|(_, users)| users).fold(0.0, f64::max);
    (active, new)
}

/// The next number with three figures.
fn rounded_up(number: f64) -> u32 {
    let unit = 10_f64.powi((number.max(1.0).log10().floor() as i32 - 2).max(0));
    ((number / unit).ceil() * unit).clamp(1.0, 2_147_483_647.0) as u32
}

/// When people wait, in spells from one second to another; the last one may go on.
fn spells(series: &[(u64, u64, u64, u64)]) -> Vec<(u64, u64)> {
    let mut spells: Vec<(u64, u64)> = Vec::new();
    for (second, _, waiting, _) in series {
        match spells.last_mut() {
            _ if *waiting == 0 => {}
            Some((_, until)) if *second <= *until + PAUSE_SECONDS => *until = *second,
            _ => spells.push((*second, *second)),
        }
    }
    spells
}

fn spells_line(series: &[(u64, u64, u64, u64)], when: &dyn Fn(u64) -> String) -> String {
    let spells = spells(series);
    let Some((from, until)) = spells.iter().copied().max_by_key(|(from, until)| until - from) else {
        return "Queueing is over within moments each time.".to_owned();
    };
    let goes_on = series.last().is_some_and(|(second, _, waiting, _)| *second == until && *waiting > 0);
    let end = if goes_on { "goes on at the end".to_owned() } else { format!("ends at {}", when(until)) };
    let lasted = minutes(until - from);
    let mut line = format!("Queueing starts at {} and {end}, after {lasted}.", when(from));
    if spells.len() > 1 {
        let all: u64 = spells.iter().map(|(from, until)| until - from).sum();
        line = format!(
            "Queueing starts {} times; the longest starts at {} and {end}, after {lasted}; {} in all.",
            spells.len(),
            when(from),
            minutes(all)
        );
    }
    line
}

/// `40 s`, `12 min` or `3 h 20 min`.
fn minutes(seconds: u64) -> String {
    match seconds {
        0..100 => format!("{seconds} s"),
        100..7_200 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Active and waiting users over time in characters, each scaled to its peak.
fn sketch(series: &[(u64, u64, u64, u64)]) -> Vec<String> {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let step = series.len().div_ceil(WIDE).max(1);
    let row = |name: &str, value: fn(&(u64, u64, u64, u64)) -> u64| {
        let peaks: Vec<u64> =
            series.chunks(step).map(|points| points.iter().map(value).max().unwrap_or(0)).collect();
        let most = peaks.iter().copied().max().unwrap_or(0);
        let bar = |peak: &u64| BARS[(peak * 8).div_ceil(most.max(1)) as usize];
        format!("{name:<8}{} up to {}", peaks.iter().map(bar).collect::<String>(), thousands(most as f64))
    };
    vec![row("active", |point| point.1), row("waiting", |point| point.2)]
}
