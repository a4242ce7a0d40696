//! A scenario: what a user writes down of a room, a planet and its people.

use std::fmt;
use std::path::Path;

use anteroom::config::{Room, Rooms, SlotStrategy};
use serde::{Deserialize, Serialize};

/// A scenario as it stands in its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, for tables.
    pub name: String,
    /// What it is about, in a sentence.
    #[serde(default)]
    pub about: String,
    /// How many minutes are simulated.
    pub minutes: u32,
    /// The room's fields, as in wrangler.toml. `session_duration` in minutes.
    pub room: toml::Table,
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
}

/// New visitors in a span of time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Begins after so many minutes.
    #[serde(default)]
    pub from: f64,
    /// Ends after so many minutes; left out: with the scenario.
    pub until: Option<f64>,
    /// New visitors per minute.
    pub per_minute: f64,
    /// New visitors per minute at the end, for a ramp.
    pub to_per_minute: Option<f64>,
    /// Which colos they come to; left out: all.
    #[serde(default)]
    pub colos: Colos,
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

/// The planet: colos, workers and links.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Planet {
    /// How many colos.
    pub colos: usize,
    /// Workers per colo.
    pub workers: usize,
    /// Traffic of the n-th colo: 1/n to this power.
    pub zipf: f64,
    /// One way between worker and its colo's objects, in milliseconds, from and to.
    pub local_ms: (u64, u64),
    /// One way between a Counter and Anywhere.
    pub pool_ms: (u64, u64),
    /// One way between a `DataCenter` and Global, fixed per colo.
    pub global_ms: (u64, u64),
    /// One way between Anywhere and Global.
    pub between_ms: (u64, u64),
    /// How long an object takes for a request, in microseconds: it serves one at a time.
    pub service_micros: u64,
    /// A request that would have to queue so long at an object is refused, in milliseconds.
    pub queue_ms: u64,
    /// The worker's deadline for a call, in milliseconds.
    pub deadline_ms: u64,
    /// Share of reports, pushes and their answers that are lost.
    pub loss: f64,
    /// Share of reports and pushes that arrive twice.
    pub twice: f64,
    /// Reports and pushes take up to so much longer, at random: they overtake each other.
    pub jitter_ms: u64,
    /// Clocks of colos are wrong by up to so much, either way, in milliseconds.
    pub skew_ms: u64,
}

impl Default for Planet {
    fn default() -> Self {
        Self {
            colos: 30,
            workers: 10,
            zipf: 1.0,
            local_ms: (2, 3),
            pool_ms: (15, 35),
            global_ms: (50, 150),
            between_ms: (2, 10),
            service_micros: 1_000,
            queue_ms: 1_000,
            deadline_ms: 500,
            loss: 0.0,
            twice: 0.0,
            jitter_ms: 0,
            skew_ms: 0,
        }
    }
}

/// How visitors behave.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
        }
    }
}

/// Something that goes wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// After so many seconds.
    pub at: f64,
    /// How long, in seconds; 0: the object restarts, and what it had not stored is gone.
    #[serde(default)]
    pub lasts: f64,
    /// What breaks.
    pub what: Broken,
    /// Which colo, from 0 (the busiest), for what is a colo's.
    #[serde(default)]
    pub colo: usize,
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

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// When the file cannot be read, or says something that cannot be: which field, and what it may be.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let file = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ScenarioError(format!("{file}: cannot be read: {error}")))?;
        Self::parse(&text).map_err(|error| ScenarioError(format!("{file}: {error}")))
    }

    /// Reads a scenario's text.
    ///
    /// # Errors
    /// See [`Scenario::read`].
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| ScenarioError(error.to_string()))?;
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), ScenarioError> {
        let wrong = |what: String| Err(ScenarioError(what));
        if self.minutes == 0 {
            return wrong("minutes: 0 is too short; simulate at least 1".to_owned());
        }
        if self.arrivals.is_empty() {
            return wrong(
                "arrivals: nobody comes; write at least one [[arrivals]] with per_minute".to_owned(),
            );
        }
        for (index, arrivals) in self.arrivals.iter().enumerate() {
            if !(0.0..=1e8).contains(&arrivals.per_minute) {
                return wrong(format!(
                    "arrivals {index}: per_minute = {}; it must be from 0 to 100,000,000",
                    arrivals.per_minute
                ));
            }
            if arrivals.until.is_some_and(|until| until <= arrivals.from) {
                return wrong(format!("arrivals {index}: until must be after from = {}", arrivals.from));
            }
        }
        if !(1..=1_000).contains(&self.planet.colos) {
            return wrong(format!("planet: colos = {}; it must be from 1 to 1,000", self.planet.colos));
        }
        if !(1..=1_000).contains(&self.planet.workers) {
            return wrong(format!("planet: workers = {}; it must be from 1 to 1,000", self.planet.workers));
        }
        let shares = [
            ("planet: loss", self.planet.loss),
            ("planet: twice", self.planet.twice),
            ("visitors: leave_at_once", self.visitors.leave_at_once),
            ("visitors: cookieless", self.visitors.cookieless),
            ("visitors: roaming", self.visitors.roaming),
            ("visitors: parallel", self.visitors.parallel),
            ("visitors: returning", self.visitors.returning),
        ];
        for (field, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return wrong(format!("{field} = {share}; it is a share, from 0 to 1"));
            }
        }
        self.room(None).map(|_| ())
    }

    /// The scenario's room, made by the very parser of the Worker.
    ///
    /// # Errors
    /// What the parser says of the room.
    pub fn room(&self, strategy: Option<SlotStrategy>) -> Result<Room, ScenarioError> {
        let mut table = self.room.clone();
        // Strategies that are not for the Worker yet are known here.
        let leases = table.get("slot_strategy").and_then(toml::Value::as_str) == Some("leases");
        if leases {
            table.remove("slot_strategy");
        }
        let table = serde_json::to_value(table).map_err(|error| ScenarioError(error.to_string()))?;
        let (rooms, errors) = Rooms::from_vars([("ROOM_SIM".to_owned(), table)].into_iter());
        if !errors.is_empty() {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Err(ScenarioError(format!("room: {}", errors.join("; "))));
        }
        let mut room = rooms.get("sim").cloned().ok_or_else(|| ScenarioError("room: missing".to_owned()))?;
        if let Some(strategy) = strategy {
            room.slot_strategy = strategy;
        } else if leases || !self.room.contains_key("slot_strategy") {
            room.slot_strategy = SlotStrategy::Leases;
        }
        Ok(room)
    }

    /// New visitors per minute at a time, to the colos of each kind.
    pub fn arrivals_at(&self, minutes: f64) -> [(Colos, f64); 3] {
        let mut rates = [(Colos::All, 0.0), (Colos::Even, 0.0), (Colos::Odd, 0.0)];
        for arrivals in &self.arrivals {
            let until = arrivals.until.unwrap_or(f64::from(self.minutes));
            if minutes < arrivals.from || minutes >= until {
                continue;
            }
            let part = (minutes - arrivals.from) / (until - arrivals.from);
            let to = arrivals.to_per_minute.unwrap_or(arrivals.per_minute);
            let rate = arrivals.per_minute + (to - arrivals.per_minute) * part;
            if let Some(of) = rates.iter_mut().find(|(colos, _)| *colos == arrivals.colos) {
                of.1 += rate;
            }
        }
        rates
    }
}
