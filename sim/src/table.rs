//! Figures of many runs as tables, the worst seed of each, and the goals that leases have to reach.

use anteroom::room::SlotStrategy;
use comfy_table::{CellAlignment, Table, TableStyle, presets};
use serde::Serialize;

use crate::measure::{EXACT, Measured, Weighed};
use crate::scenario::{Broken, Scenario};

/// Arrivals above this many times `new_users_per_minute` are a flash crowd.
const FLASH: f64 = 5.0;
/// A room with this many slots or fewer is a small one.
const SMALL: u32 = 200;
/// Goals for many colos begin here.
const MANY_COLOS: usize = 300;

/// One run of a scenario.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// The scenario's name.
    pub scenario: String,
    /// The strategy's name, as in wrangler.toml.
    pub strategy: &'static str,
    /// How many colos there were.
    pub colos: usize,
    /// What all chance was drawn from.
    pub seed: u64,
    /// The room's limit of active users.
    pub total_active_users: u32,
    /// The room's limit of new users in a minute.
    pub new_users_per_minute: u32,
    /// The figures.
    pub measured: Measured,
}

/// What a run's figures are judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    name: String,
    below_limits: bool,
    flash: bool,
    users: u32,
    sliding: bool,
    /// The order is random.
    by_chance: bool,
    /// It is, or a prequeue's order is drawn by lot.
    by_lot: bool,
    /// Some refuse cookies, or a colo dies.
    bots_or_dying: bool,
    /// The limits follow an origin, below those of the room.
    origin: bool,
    /// An operator changes the room.
    steered: bool,
    /// The clocks of data centers differ.
    skewed: bool,
    /// Attackers come beside the visitors.
    attacked: bool,
}

impl Case {
    /// Of a scenario, with the limits of its room.
    pub fn of(scenario: &Scenario, total_active_users: u32, new_users_per_minute: u32) -> Self {
        let seconds = u64::from(scenario.minutes) * 60;
        let rate =
            |second: u64| scenario.arrivals_at(second as f64 / 60.0).iter().map(|(_, rate)| rate).sum();
        let peak = (0..seconds).map(rate).fold(0.0, f64::max);
        let tables = || std::iter::once(&scenario.room).chain(&scenario.events);
        let by_chance = tables().any(|table| is(table, "queueing_method", "random"));
        let shuffles = |table: &toml::Table| {
            table.get("shuffle_at_event_start").and_then(toml::Value::as_bool).unwrap_or_default()
        };
        Self {
            name: scenario.name.clone(),
            below_limits: scenario.below_limits,
            flash: peak > FLASH * f64::from(new_users_per_minute),
            users: total_active_users,
            sliding: is(&scenario.room, "rate_window", "sliding"),
            by_chance,
            by_lot: by_chance || tables().any(shuffles),
            bots_or_dying: scenario.visitors.cookieless > 0.0
                || scenario.faults.iter().any(|fault| fault.what == Broken::Colo),
            origin: scenario.origin.is_some(),
            steered: !scenario.steering.is_empty(),
            skewed: scenario.planet.skew_ms > 0,
            attacked: scenario.visitors.attackers > 0.0,
        }
    }

    /// Whether a wait can be foreseen: not where chance decides, where the limits change meanwhile, and where a fault is the
    /// only reason to wait.
    fn foresees(&self) -> bool {
        !self.by_lot && !self.origin && !self.steered && !self.below_limits
    }
}

fn is(table: &toml::Table, field: &str, value: &str) -> bool {
    table.get(field).and_then(toml::Value::as_str) == Some(value)
}

/// All seeds of one scenario, strategy and number of colos.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// The runs, one per seed, at least one.
    pub runs: &'a [Run],
    /// What they are judged by.
    pub case: Case,
}

/// A strategy's name, as in wrangler.toml.
pub fn strategy_name(strategy: SlotStrategy) -> &'static str {
    match strategy {
        SlotStrategy::Leases => "leases",
        SlotStrategy::Counters => "counters",
        SlotStrategy::AdaptedWorkerSlots => "adapted_worker_slots",
        SlotStrategy::WorkerSlots => "worker_slots",
    }
}

/// How a figure is written.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Percent(usize),
    Number(usize),
}

impl Unit {
    fn write(self, value: f64) -> String {
        match self {
            Self::Percent(digits) => format!("{:.digits$} %", value * 100.0),
            Self::Number(digits) => format!("{value:.digits$}"),
        }
    }
}

/// One column of the table.
struct Column {
    /// In two parts, for narrow columns.
    title: &'static str,
    unit: Unit,
    /// The figure; nothing where there is none, such as the first queued of a room where nobody was.
    value: fn(&Measured) -> Option<f64>,
    /// The worst seed is the one with the least.
    least: bool,
}

impl Column {
    const fn new(title: &'static str, unit: Unit, value: fn(&Measured) -> Option<f64>) -> Self {
        Self { title, unit, value, least: false }
    }
}

fn part(of: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { of as f64 / all as f64 }
}

const COLUMNS: [Column; 25] = [
    Column::new("active|over %", Unit::Number(2), |run| Some(run.active_overshoot * 100.0)),
    Column::new("minute|over %", Unit::Number(2), |run| Some(run.minute_overshoot * 100.0)),
    Column::new("60 s|over %", Unit::Number(1), |run| Some(run.sliding_overshoot * 100.0)),
    Column::new("queued|%", Unit::Number(1), |run| Some(part(run.queued, run.arrived) * 100.0)),
    Column::new("false|strict %", Unit::Number(2), |run| Some(run.false_raw * 100.0)),
    Column::new("false|adj. %", Unit::Number(2), |run| Some(run.false_adjusted * 100.0)),
    Column::new("false|exact %", Unit::Number(2), |run| run.false_exact.map(|share| share * 100.0)),
    Column::new("idle|%", Unit::Number(2), |run| Some(run.idle * 100.0)),
    Column::new("idle|max %", Unit::Number(2), |run| Some(run.idle_worst * 100.0)),
    Column::new("passed|over %", Unit::Number(2), |run| Some(run.passed_over * 100.0)),
    Column::new("passed|any %", Unit::Number(2), |run| Some(run.passed_any * 100.0)),
    Column {
        least: true,
        ..Column::new("1st queued|at %", Unit::Number(1), |run| run.first_queued_at.map(|at| at * 100.0))
    },
    Column::new("estimate|error %", Unit::Number(0), |run| run.estimate_error.map(|error| error * 100.0)),
    Column::new("estimate|rose %", Unit::Number(1), |run| Some(run.estimate_rose * 100.0)),
    Column::new("latency|p50 ms", Unit::Number(0), |run| Some(run.latency_p50 as f64)),
    Column::new("latency|p95 ms", Unit::Number(0), |run| Some(run.latency_p95 as f64)),
    Column::new("calls|each", Unit::Number(2), |run| Some(run.counter_calls + run.pool_calls)),
    Column::new("objects|/1,000", Unit::Number(0), |run| Some(run.object_requests)),
    Column::new("objects|/s", Unit::Number(1), |run| Some(run.object_requests_per_second)),
    Column::new("busiest|/s", Unit::Number(0), |run| run.busiest.iter().max().map(|most| *most as f64)),
    Column::new("refused", Unit::Number(0), |run| Some(run.refused as f64)),
    Column::new("price|$/1 M", Unit::Number(2), |run| run.dollars_per_million),
    Column::new("report|bytes", Unit::Number(0), |run| weight(run, &[Weighed::Report])),
    Column::new("answer|bytes", Unit::Number(0), |run| weight(run, &ANSWERS)),
    Column::new("key|bytes", Unit::Number(0), |run| weight(run, &[Weighed::StateKey])),
];

const ANSWERS: [Weighed; 2] = [Weighed::AnswerToColo, Weighed::AnswerToAnywhere];

/// The largest message of some kinds, in bytes; nothing where there was none.
fn weight(run: &Measured, kinds: &[Weighed]) -> Option<f64> {
    kinds
        .iter()
        .map(|kind| run.bytes[*kind as usize])
        .max()
        .filter(|bytes| *bytes > 0)
        .map(|bytes| bytes as f64)
}

/// Titles (in two parts with `|` between) and cells: what was run, then each figure of its worst seed.
pub fn cells(rows: &[Row<'_>]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let titles = ["scenario", "strategy", "colos", "seeds"];
    let titles = titles.into_iter().chain(COLUMNS.iter().map(|column| column.title)).collect();
    let lines = rows.iter().filter_map(|row| {
        let first = row.runs.first()?;
        let figures = COLUMNS.iter().map(|column| {
            let worst = worst(row.runs, column.value, column.least);
            worst.map_or_else(|| "-".to_owned(), |(value, _)| column.unit.write(value))
        });
        let name = [
            first.scenario.clone(),
            first.strategy.to_owned(),
            first.colos.to_string(),
            row.runs.len().to_string(),
        ];
        Some(name.into_iter().chain(figures).collect())
    });
    (titles, lines.collect())
}

/// The worst figure of some runs, and its seed: of equal ones the first.
fn worst(runs: &[Run], value: fn(&Measured) -> Option<f64>, least: bool) -> Option<(f64, u64)> {
    let mut found: Option<(f64, u64)> = None;
    for run in runs {
        if let Some(value) = value(&run.measured)
            && found.is_none_or(|(so_far, _)| if least { value < so_far } else { value > so_far })
        {
            found = Some((value, run.seed));
        }
    }
    found
}

/// The table for a terminal.
pub fn text(rows: &[Row<'_>]) -> String {
    draw(rows, "\n", presets::NOTHING)
}

/// The table in Markdown.
pub fn markdown(rows: &[Row<'_>]) -> String {
    draw(rows, " ", presets::ASCII_MARKDOWN)
}

/// What passed to the origins, for a terminal; empty where no scenario has one.
pub fn origins_text(rows: &[Row<'_>]) -> String {
    let titles = [
        "scenario",
        "seed",
        "pages|asked for",
        "served",
        "failed",
        "too late",
        "wasted|work",
        "refused",
        "most at|origin",
        "thrown|out",
        "lost|places",
    ];
    let runs = rows.iter().flat_map(|row| row.runs);
    let lines: Vec<Vec<String>> = runs
        .filter_map(|run| {
            let origin = run.measured.origin.as_ref()?;
            let all = origin.between(0, u64::MAX);
            let figures = [
                run.seed,
                all.asked,
                all.served,
                all.failed,
                all.late,
                all.wasted,
                all.refused,
                origin.most_at_origin,
                run.measured.thrown_out,
                run.measured.lost_places,
            ];
            Some(
                std::iter::once(run.scenario.clone())
                    .chain(figures.map(|figure| figure.to_string()))
                    .collect(),
            )
        })
        .collect();
    if lines.is_empty() { String::new() } else { draw_cells(&titles, lines, 1, "\n", presets::NOTHING) }
}

fn draw(rows: &[Row<'_>], between: &str, style: TableStyle) -> String {
    let (titles, lines) = cells(rows);
    draw_cells(&titles, lines, 2, between, style)
}

/// A table whose first columns, `names` of them, are texts.
fn draw_cells(
    titles: &[&'static str],
    lines: Vec<Vec<String>>,
    names: usize,
    between: &str,
    style: TableStyle,
) -> String {
    let mut table = Table::new();
    let titles = titles.iter().map(|title| title.replace('|', between));
    table.load_style(style).set_header(titles).add_rows(lines);
    for (index, column) in table.column_iter_mut().enumerate() {
        if index >= names {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if between == "\n" {
            column.set_padding((0, 1));
        }
    }
    table.trim_fmt()
}

/// What leases have to reach in every shipped scenario, by the worst seed.
struct Goal {
    name: &'static str,
    /// What is wanted, and of whom it is not, in words.
    wanted: &'static str,
    except: &'static str,
    unit: Unit,
    /// The figure; nothing where nothing was measured.
    value: fn(&Measured) -> Option<f64>,
    /// The figure must be at least this instead of at most.
    at_least: bool,
    /// The goal of a case with a number of colos; nothing where the goal does not apply.
    bound: fn(&Case, usize) -> Option<f64>,
}

impl Goal {
    const fn new(
        (name, wanted, except): (&'static str, &'static str, &'static str),
        unit: Unit,
        value: fn(&Measured) -> Option<f64>,
        bound: fn(&Case, usize) -> Option<f64>,
    ) -> Self {
        Self { name, wanted, except, unit, value, at_least: false, bound }
    }
}

/// A figure, if there was anything to measure it by.
fn of(any: u64, figure: impl Into<f64>) -> Option<f64> {
    (any > 0).then(|| figure.into())
}

/// A figure of shown waits, if at the end most of those who were queued had entered or given up.
fn of_served(run: &Measured, figure: f64) -> Option<f64> {
    of(run.queued, figure).filter(|_| run.waiting_at_end * 2 < run.queued)
}

/// By how much of their part more attackers entered than it was, less what chance does.
fn beyond_their_part(run: &Measured) -> Option<f64> {
    let (came, entered) = run.attackers;
    let expected = part(came, run.arrived) * run.admitted as f64;
    let beyond = entered as f64 - expected - 3.0 * expected.sqrt();
    (expected > 0.0).then(|| beyond.max(0.0) / expected)
}

/// The part of new visitors who may wait longer than [`SOON_MS`](crate::bounds::SOON_MS).
const LATE: f64 = 0.05;

fn is_crowd(case: &Case, colos: usize) -> bool {
    case.flash && colos >= MANY_COLOS
}

/// Whether so many have to wait longer than one of the times that no algorithm could keep it.
fn must_be_late(run: &Measured, time: usize) -> bool {
    run.slow[time].bound > LATE * run.let_in_at_once as f64
}

fn soon_enough(run: &Measured, time: usize) -> Option<f64> {
    of(run.let_in_at_once, run.latency_p95 as f64).filter(|_| !must_be_late(run, time))
}

fn needlessly_late(run: &Measured, time: usize) -> Option<f64> {
    must_be_late(run, time).then(|| run.slow[time].avoidable() / run.let_in_at_once as f64)
}

/// The most that a wait may be wrong in a flash crowd, as a part of it, median.
const FLASH_ERROR: f64 = 0.35;

/// Whether no estimate could be so right.
fn must_be_wrong(run: &Measured) -> bool {
    run.estimate_least_error.is_some_and(|least| least > FLASH_ERROR)
}

/// Of whom it is not wanted that shown waits are right.
const NOT_FORESEEN: &str = "flash crowds; a random order, a prequeue in an order by lot; limits that follow an origin or an operator; \
                            scenarios below the limits; who came in a minute of which somebody waits at the end";

/// Scenarios whose objects' requests have a goal, and it with 30 and with 300 colos.
const OBJECTS: [(&str, [f64; 2]); 3] =
    [("quiet", [677.0, 1_129.0]), ("steady85", [399.0, 987.5]), ("flash50", [293.5, 648.0])];

const GOALS: [Goal; 29] = [
    Goal::new(
        ("overshoot of total_active_users", "0", ""),
        Unit::Percent(2),
        |run| of(run.admitted, run.active_overshoot),
        |_, _| Some(0.0),
    ),
    Goal::new(
        ("overshoot of new_users_per_minute, calendar minute", "0", ""),
        Unit::Percent(2),
        |run| of(run.admitted, run.minute_overshoot),
        |_, _| Some(0.0),
    ),
    Goal::new(
        (
            "overshoot of new_users_per_minute, any 60 seconds",
            "0",
            "rooms that do not promise it (`rate_window`)",
        ),
        Unit::Percent(2),
        |run| of(run.admitted, run.sliding_overshoot),
        |case, _| case.sliding.then_some(0.0),
    ),
    Goal::new(
        ("entered after an operator had closed the room, in ms", "at most 3,000", ""),
        Unit::Number(0),
        |run| run.entered_after_closing_ms.map(|late| late as f64),
        |_, _| Some(3_000.0),
    ),
    Goal::new(
        (
            "attackers who enter, beyond their part of those who came and three standard deviations of it",
            "at most 2 %",
            "scenarios without attackers",
        ),
        Unit::Percent(2),
        beyond_their_part,
        |case, _| case.attacked.then_some(0.02),
    ),
    Goal::new(
        ("places that visitors lose", "0", "scenarios without attackers"),
        Unit::Number(0),
        |run| of(run.queued, run.lost_places as f64),
        |case, _| case.attacked.then_some(0.0),
    ),
    Goal::new(
        ("queued below the limits", "0", "scenarios that exceed them (no `below_limits`)"),
        Unit::Percent(3),
        |run| of(run.arrived, run.false_raw),
        |case, _| case.below_limits.then_some(0.0),
    ),
    Goal::new(
        (
            "queued while a slot is free, exactly",
            "0",
            "rooms of more than 100 users; limits that follow an origin",
        ),
        Unit::Percent(3),
        |run| of(run.arrived, run.false_exact?),
        |case, _| (case.users <= EXACT && !case.origin).then_some(0.0),
    ),
    Goal::new(
        (
            "queued while a slot is free, adjusted",
            "at most 0.1 %",
            "rooms of up to 100 users: exactly; limits that follow an origin",
        ),
        Unit::Percent(3),
        |run| of(run.arrived, run.false_adjusted),
        |case, _| (case.users > EXACT && !case.origin).then_some(0.001),
    ),
    Goal {
        at_least: true,
        ..Goal::new(
            (
                "utilisation when the first visitor is queued",
                "at least 98 %; rooms of up to 100 users 100 %",
                "limits that follow an origin",
            ),
            Unit::Percent(1),
            |run| run.first_queued_at,
            |case, _| (!case.origin).then_some(if case.users <= EXACT { 1.0 } else { 0.98 }),
        )
    },
    Goal::new(
        (
            "slots idle while people wait, mean",
            "at most 0.3 %; rooms of up to 200 users 0.8 %; where visitors refuse cookies or a data center dies 1 %",
            "limits that follow an origin",
        ),
        Unit::Percent(2),
        |run| of(run.waiting_minutes, run.idle),
        |case, _| {
            (!case.origin).then_some(match case {
                Case { bots_or_dying: true, .. } => 0.01,
                Case { users: ..=SMALL, .. } => 0.008,
                _ => 0.003,
            })
        },
    ),
    Goal::new(
        ("waiters passed over by more than one refresh", "at most 0.2 %", "a random order"),
        Unit::Percent(2),
        |run| of(run.queued, run.passed_over),
        |case, _| (!case.by_chance).then_some(0.002),
    ),
    Goal::new(
        (
            "admissions that pass any older waiter",
            "at most 5 %",
            "a random order; where the clocks of data centers differ",
        ),
        Unit::Percent(2),
        |run| of(run.queued, run.passed_any),
        |case, _| (!case.by_chance && !case.skewed).then_some(0.05),
    ),
    Goal::new(
        (
            "added latency of a new visitor below half of the limits, p50, beyond the least that any algorithm takes, in ms",
            "0",
            "",
        ),
        Unit::Number(0),
        |run| Some(run.calm_beyond_least_p50? as f64),
        |_, _| Some(0.0),
    ),
    Goal::new(
        (
            "added latency of a new visitor, p95, in ms",
            "at most 80",
            "flash crowds with 300 data centers; where more than 5 % have to wait longer",
        ),
        Unit::Number(0),
        |run| soon_enough(run, 0),
        |case, colos| (!is_crowd(case, colos)).then_some(80.0),
    ),
    Goal::new(
        (
            "new visitors who wait longer than 80 ms and need not",
            "at most 5 %",
            "the same; where at most 5 % have to: p95 judges those",
        ),
        Unit::Percent(1),
        |run| needlessly_late(run, 0),
        |case, colos| (!is_crowd(case, colos)).then_some(LATE),
    ),
    Goal::new(
        (
            "added latency of a new visitor, p95, in ms, in flash crowds with 300 data centers",
            "at most 150",
            "other scenarios; where more than 5 % have to wait longer",
        ),
        Unit::Number(0),
        |run| soon_enough(run, 1),
        |case, colos| is_crowd(case, colos).then_some(150.0),
    ),
    Goal::new(
        (
            "new visitors who wait longer than 150 ms and need not, in flash crowds with 300 data centers",
            "at most 5 %",
            "the same; where at most 5 % have to: p95 judges those",
        ),
        Unit::Percent(1),
        |run| needlessly_late(run, 1),
        |case, colos| is_crowd(case, colos).then_some(LATE),
    ),
    Goal::new(
        ("wait estimate, median error", "at most 25 %", NOT_FORESEEN),
        Unit::Percent(1),
        |run| run.estimate_error,
        |case, _| (case.foresees() && !case.flash).then_some(0.25),
    ),
    Goal::new(
        (
            "wait estimate, median error, in flash crowds",
            "at most 35 %",
            "other scenarios; where none could have less",
        ),
        Unit::Percent(1),
        |run| run.estimate_error.filter(|_| !must_be_wrong(run)),
        |case, _| (case.foresees() && case.flash).then_some(FLASH_ERROR),
    ),
    Goal::new(
        (
            "wait estimate, median error, in flash crowds, beyond the least that any could have",
            "at most 5 points",
            "the same; where that is at most 35 %: the error itself is judged",
        ),
        Unit::Percent(1),
        |run| Some(run.estimate_error.filter(|_| must_be_wrong(run))? - run.estimate_least_error?),
        |case, _| (case.foresees() && case.flash).then_some(0.05),
    ),
    Goal::new(
        (
            "queued visitors whose shown wait rises by more than one refresh",
            "at most 5 %",
            "as the median error, but for flash crowds; runs that end while most of the queue waits",
        ),
        Unit::Percent(2),
        |run| of_served(run, run.estimate_rose),
        |case, _| case.foresees().then_some(0.05),
    ),
    Goal::new(
        (
            "requests per second at the busiest object",
            "rooms of 100,000 users and more: at most 300; of 1 million 500; of 10 million 800",
            "smaller rooms",
        ),
        Unit::Number(0),
        |run| run.busiest.iter().max().filter(|most| **most > 0).map(|most| *most as f64),
        |case, _| match case.users {
            100_000..1_000_000 => Some(300.0),
            1_000_000..10_000_000 => Some(500.0),
            10_000_000.. => Some(800.0),
            _ => None,
        },
    ),
    Goal::new(
        ("requests that overloaded objects refuse", "0", ""),
        Unit::Number(0),
        |run| of(run.requests, run.refused as f64),
        |_, _| Some(0.0),
    ),
    Goal::new(
        (
            "objects' requests per 1,000 of visitors",
            "with 30 and 300 data centers: `quiet` 677 and 1,129, `steady85` 399 and 987, `flash50` 293 and 648",
            "other scenarios",
        ),
        Unit::Number(1),
        |run| of(run.requests, run.object_requests),
        |case, colos| {
            let (_, goals) = OBJECTS.iter().find(|(name, _)| *name == case.name)?;
            match colos {
                30 => Some(goals[0]),
                MANY_COLOS => Some(goals[1]),
                _ => None,
            }
        },
    ),
    Goal::new(
        ("objects' requests per second where nobody comes", "0", ""),
        Unit::Number(2),
        |run| (run.requests == 0).then_some(run.object_requests_per_second),
        |case, _| (case.name == "empty").then_some(0.0),
    ),
    Goal::new(
        ("largest report, in bytes", "at most 4,096", "fewer than 300 data centers"),
        Unit::Number(0),
        |run| weight(run, &[Weighed::Report]),
        |_, colos| (colos >= MANY_COLOS).then_some(4_096.0),
    ),
    Goal::new(
        ("largest answer of Global, in bytes", "at most 8,192", "fewer than 300 data centers"),
        Unit::Number(0),
        |run| weight(run, &ANSWERS),
        |_, colos| (colos >= MANY_COLOS).then_some(8_192.0),
    ),
    Goal::new(
        ("largest answer with a state key, in bytes", "at most 2,048", "fewer than 300 data centers"),
        Unit::Number(0),
        |run| weight(run, &[Weighed::StateKey]),
        |_, colos| (colos >= MANY_COLOS).then_some(2_048.0),
    ),
];

/// The goals as a table in Markdown, with every exemption. `docs/accuracy.md` has it.
pub fn goals() -> String {
    let line = |goal: &Goal| format!("| {} | {} | {} |\n", goal.name, goal.wanted, goal.except);
    let head = "| figure | goal | not judged |\n| --- | --- | --- |\n".to_owned();
    head + &GOALS.iter().map(line).collect::<String>()
}

/// One goal in one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Which goal.
    pub goal: &'static str,
    /// Scenario, colos and the worst seed.
    pub place: String,
    /// The worst figure, the goal, and by how much it was missed, in words.
    pub figures: String,
    /// Whether it was reached; nothing: there was nothing to measure.
    pub reached: Option<bool>,
}

/// Judges the rows of leases by every goal that applies to them.
pub fn judge(rows: &[Row<'_>]) -> Vec<Verdict> {
    let leases = strategy_name(SlotStrategy::Leases);
    let mut verdicts = Vec::new();
    for row in rows {
        let Some(first) = row.runs.first().filter(|run| run.strategy == leases) else { continue };
        for goal in &GOALS {
            let Some(bound) = (goal.bound)(&row.case, first.colos) else { continue };
            let place = format!("{}, {} colos", first.scenario, first.colos);
            let Some((value, seed)) = worst(row.runs, goal.value, goal.at_least) else {
                let figures = "not measured".to_owned();
                verdicts.push(Verdict { goal: goal.name, place, figures, reached: None });
                continue;
            };
            let missed_by = if goal.at_least { bound - value } else { value - bound };
            let reached = missed_by <= 0.0;
            let sign = if goal.at_least { ">=" } else { "<=" };
            let difference = if reached {
                String::new()
            } else {
                // One more digit, where the rounded difference would look like none.
                let unit = match goal.unit {
                    Unit::Percent(digits) => Unit::Percent(digits + 1),
                    Unit::Number(digits) => Unit::Number(digits),
                };
                format!(", missed by {}", unit.write(missed_by).replace(" %", " points"))
            };
            let (figure, wanted) = (goal.unit.write(value), goal.unit.write(bound));
            let figures = format!("{figure}, goal {sign} {wanted}{difference}");
            let place = format!("{place}, seed {seed}");
            verdicts.push(Verdict { goal: goal.name, place, figures, reached: Some(reached) });
        }
    }
    verdicts
}

/// A line for every goal that was missed.
pub fn missed_lines(verdicts: &[Verdict]) -> Vec<String> {
    let missed = verdicts.iter().filter(|verdict| verdict.reached == Some(false));
    missed
        .map(|verdict| format!("Missed: {}: {}: {}.", verdict.place, verdict.goal, verdict.figures))
        .collect()
}

/// How many goals were reached, as a sentence. One that nothing was measured for is neither reached nor missed.
pub fn reached_line(verdicts: &[Verdict]) -> String {
    let reached = verdicts.iter().filter(|verdict| verdict.reached == Some(true)).count();
    let judged = verdicts.iter().filter(|verdict| verdict.reached.is_some()).count();
    format!("Goals: {reached} of {judged} reached. Not measured: {}.", verdicts.len() - judged)
}
