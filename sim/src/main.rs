//! `anteroom-sim`: lets scenarios happen, and tells how exactly the room kept its limits.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anteroom::config::SlotStrategy;
use anteroom_sim::plan::{Day, find, read_room};
use anteroom_sim::planet::Planet;
use anteroom_sim::report;
use anteroom_sim::scenario::{SHIPPED, SHIPPED_SERIES, Scenario, ScenarioError, shipped};
use anteroom_sim::table::{Case, Row, Run, judge, markdown, strategy_name, text, verdict_lines};
use clap::{Args, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

/// A table in Markdown goes between these lines, where a file has them.
const TABLE_BEGINS: &str = "<!-- table begins -->";
const TABLE_ENDS: &str = "<!-- table ends -->";

/// The planet in a box: lets visitors come to a waiting room in virtual time, and measures how exactly it keeps its
/// limits.
///
/// Workers and objects decide by the very code that runs in production; only time, links, visitors and faults are
/// simulated. The same scenario, strategy, colos and seed always give the same figures.
#[derive(Debug, Parser)]
#[command(name = "anteroom-sim", version, after_long_help = HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs scenarios and prints how exactly the room kept its limits
    Run(RunArguments),
    /// Lists the shipped scenarios
    List,
    /// Prints a shipped scenario's file, to start one's own
    Show {
        /// The scenario's name, or the file name of a recorded series in it
        name: String,
    },
    /// Tells what a day will be like for a room of yours, and what would make it better
    Plan(PlanArguments),
    /// Puts a history that the tests recorded in the real runtime through the core again; exit status 1 when any answer
    /// is not the same bytes
    Replay {
        /// What was recorded
        #[arg(value_name = "FILE")]
        history: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_long_help = RUN_HELP)]
struct RunArguments {
    /// Names of shipped scenarios (see `list`), TOML files, `all`, or `origins`: those with an origin that
    /// has limits
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<String>,

    /// How slots are handed out; give it several times to compare. Left out: as the scenario's room says, else leases
    #[arg(long, value_name = "STRATEGY")]
    strategy: Vec<Strategy>,

    /// Run each with the seeds 1 to N. The table shows the worst seed of each figure
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: u64,

    /// How many data centers; give it several times to compare. Left out: as the scenario says, else 30
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    colos: Vec<u16>,

    /// Write every run with all its figures, and those over time, to FILE
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write one page with the table and charts to FILE; it needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the table in Markdown to FILE, with --goals what was missed too; in a file with the lines
    /// `<!-- table begins -->` and `<!-- table ends -->`, between them
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Judge leases by the goals in docs/accuracy.md: exit status 1 when one is missed
    #[arg(long)]
    goals: bool,

    /// How many runs at a time. Left out: as many as there are cores. Figures do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    threads: Option<u16>,
}

#[derive(Debug, Args)]
#[command(after_long_help = PLAN_HELP)]
struct PlanArguments {
    /// The configuration with the room
    #[arg(long, value_name = "FILE", default_value = "wrangler.toml")]
    config: PathBuf,

    /// Take the room from the environment NAME
    #[arg(long, value_name = "NAME")]
    env: Option<String>,

    /// The room, by its name in lower case, such as shop
    #[arg(long, value_name = "NAME")]
    room: String,

    /// Who comes: a CSV file with the columns minute,visitors or time,visitors, or a scenario
    #[arg(long, value_name = "FILE")]
    arrivals: PathBuf,

    /// How many data centers they come to. Left out: as the scenario says, else 30
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    colos: Option<u16>,

    /// What all chance is drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Write one page with the answer and a chart to FILE; it needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// [`SlotStrategy`] as it is given on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Strategy {
    /// Tickets leased from one pool
    Leases,
    /// Numbers counted by each colo's Counter, then by Anywhere
    Counters,
    /// Slots divided among workers, more of them while the room is far from full
    AdaptedWorkerSlots,
    /// Slots divided among workers
    WorkerSlots,
    /// The 2023 article's counters as they read, without our two repairs; in the simulator only
    CountersLiteral,
}

impl From<Strategy> for SlotStrategy {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Leases => Self::Leases,
            Strategy::Counters | Strategy::CountersLiteral => Self::Counters,
            Strategy::AdaptedWorkerSlots => Self::AdaptedWorkerSlots,
            Strategy::WorkerSlots => Self::WorkerSlots,
        }
    }
}

const HELP: &str = "\
Examples:
  anteroom-sim list
  anteroom-sim run flash50
  anteroom-sim run flash50 over20 --strategy leases --strategy counters --seeds 5 --html compared.html
  anteroom-sim show flash50 > mine.toml && anteroom-sim run mine.toml
  anteroom-sim plan --config wrangler.toml --room shop --arrivals friday.csv

docs/simulator.md says how to write a scenario, docs/accuracy.md what each figure means.

Exit status: 0 when all went well, 1 when a goal was missed (run --goals), 2 for anything that cannot be run.";

const RUN_HELP: &str = "\
Examples:
  anteroom-sim run small                          one run, one line
  anteroom-sim run all --colos 30 --colos 300 --seeds 5 --goals
  anteroom-sim run lowspike --strategy leases --strategy counters --strategy adapted_worker_slots \\
    --strategy worker_slots --html lowspike.html
  anteroom-sim run mine.toml --json mine.json && jq '.[].measured.idle' mine.json
  anteroom-sim run all --colos 30 --colos 300 --seeds 5 --markdown docs/accuracy.md";

const PLAN_HELP: &str = "\
A CSV file says how many new visitors came from each row's minute until the next row's:

  time,visitors          or    minute,visitors
  2026-11-27 19:55,120         0,120
  2026-11-27 19:56,2400        1,2400

Examples:
  anteroom-sim plan --room shop --arrivals friday.csv
  anteroom-sim plan --config wrangler.toml --env production --room shop --arrivals friday.csv --html plan.html
  anteroom-sim plan --room shop --arrivals ticket_sale    what if that crowd came to my room?";

/// Why nothing came of it, in words for whoever called.
#[derive(Debug)]
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::List => list(),
        Command::Show { name } => show(&name),
        Command::Plan(arguments) => plan(&arguments),
        Command::Replay { history } => replay(&history),
    };
    done.unwrap_or_else(|Failure(error)| {
        eprintln!("Error: {error}");
        ExitCode::from(2)
    })
}

/// Prints to the standard output; a closed pipe ends it quietly.
fn print(what: impl fmt::Display) {
    let _ = write!(std::io::stdout().lock(), "{what}");
}

fn list() -> Result<ExitCode, Failure> {
    for (name, _) in SHIPPED {
        print(format_args!("{name:17} {}\n", shipped(name)?.about));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(name: &str) -> Result<ExitCode, Failure> {
    let series = SHIPPED_SERIES.iter().find(|(known, _)| *known == name);
    if let Some((_, text)) = series.or_else(|| SHIPPED.iter().find(|(known, _)| *known == name)) {
        print(text);
        return Ok(ExitCode::SUCCESS);
    }
    Err(shipped(name).err().map_or_else(|| Failure(name.to_owned()), Failure::from))
}

fn replay(history: &Path) -> Result<ExitCode, Failure> {
    let text = fs::read_to_string(history)
        .map_err(|error| Failure(format!("{}: cannot be read: {error}", history.display())))?;
    let replayed = anteroom_sim::replay::replay(&text)?;
    for difference in &replayed.differences {
        print(format_args!("Not the same: {difference}\n"));
    }
    for (kind, tally) in &replayed.tallies {
        print(format_args!("{kind}: {} of {} the same\n", tally.same, tally.all));
    }
    Ok(if replayed.is_same() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A scenario with one strategy and number of colos, for all seeds.
struct Setting {
    scenario: Scenario,
    strategy: SlotStrategy,
    /// Counters as the article reads.
    literal: bool,
    colos: usize,
    case: Case,
    limits: (u32, u32),
}

/// All settings, in the order in which they were asked for.
fn settings(arguments: &RunArguments) -> Result<Vec<Setting>, ScenarioError> {
    let mut scenarios = Vec::new();
    for name in &arguments.scenarios {
        if name == "all" || name == "origins" {
            for (name, _) in SHIPPED {
                scenarios.push(shipped(name)?);
            }
            scenarios.retain(|scenario| scenario.origin.is_some() == (name == "origins"));
        } else {
            scenarios.push(find(name)?);
        }
    }
    let mut settings = Vec::new();
    for scenario in scenarios {
        let own = scenario.room(None)?;
        let (active, new) = (own.total_active_users, own.new_users_per_minute);
        let case = Case::of(&scenario, active, new);
        let mut strategies: Vec<(SlotStrategy, bool)> = arguments
            .strategy
            .iter()
            .map(|one| ((*one).into(), matches!(one, Strategy::CountersLiteral)))
            .collect();
        if strategies.is_empty() {
            strategies.push((own.slot_strategy, false));
        }
        let mut colos: Vec<usize> = arguments.colos.iter().map(|colos| usize::from(*colos)).collect();
        if colos.is_empty() {
            colos.push(scenario.planet.colos);
        }
        for (strategy, literal) in strategies {
            for colos in &colos {
                let (scenario, case) = (scenario.clone(), case.clone());
                let limits = (active, new);
                settings.push(Setting { scenario, strategy, literal, colos: *colos, case, limits });
            }
        }
    }
    Ok(settings)
}

fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let settings = settings(arguments)?;
    if arguments.goals && settings.iter().all(|setting| setting.strategy != SlotStrategy::Leases) {
        return Err(Failure("--goals judges leases only; add --strategy leases".to_owned()));
    }
    if let Some(file) = &arguments.markdown {
        // Said before hours of simulation, not after.
        with_table(file, "")?;
    }
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = arguments.threads {
        pool = pool.num_threads(threads.into());
    }
    let (runs, seconds) = pool.build()?.install(|| run_all(&settings, arguments.seeds))?;
    let rows: Vec<Row<'_>> = runs
        .chunks(arguments.seeds as usize)
        .zip(&settings)
        .map(|(runs, setting)| Row { runs, case: setting.case.clone() })
        .collect();
    print(format_args!("{}\n", text(&rows)));
    let seeds = arguments.seeds;
    let lead = [
        format!(
            "Runs: {}, {}. Each figure is that of its worst seed; charts over time are of seed 1.",
            runs.len(),
            if seeds == 1 { "seed 1".to_owned() } else { format!("seeds 1 to {seeds}") }
        ),
        "All of it is simulated, with the code that runs in production. docs/accuracy.md says what each figure means."
            .to_owned(),
    ];
    if let Some(file) = &arguments.json {
        write(file, &report::json(&runs)?)?;
    }
    if let Some(file) = &arguments.html {
        write(file, &report::run_page(&rows, &lead)?)?;
    }
    let verdicts = if arguments.goals { judge(&rows) } else { Vec::new() };
    let verdict = verdict_lines(&verdicts);
    if let Some(file) = &arguments.markdown {
        let mut table = markdown(&rows);
        if arguments.goals {
            table.push_str("\n\n- ");
            table.push_str(&verdict.join("\n- "));
        }
        write(file, &with_table(file, &table)?)?;
    }
    let events: u64 = runs.iter().map(|run| run.measured.events).sum();
    // Not a figure of the room, and never the same: it does not belong to the standard output.
    eprintln!(
        "Runs: {}. Simulated events: {:.1} million, {:.2} million per second of one core.",
        runs.len(),
        events as f64 / 1e6,
        events as f64 / 1e6 / seconds.max(1e-9)
    );
    if arguments.goals {
        for line in verdict {
            print(format_args!("{line}\n"));
        }
        if verdicts.iter().any(|verdict| !verdict.reached) {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs all settings with all seeds, in their order, and tells how many seconds of one core it took.
#[expect(clippy::disallowed_methods, reason = "the clock is for the simulator's own speed")]
fn run_all(settings: &[Setting], seeds: u64) -> Result<(Vec<Run>, f64), ScenarioError> {
    let jobs: Vec<(&Setting, u64)> =
        settings.iter().flat_map(|setting| (1..=seeds).map(move |seed| (setting, seed))).collect();
    let bar = progress();
    let minutes = |setting: &Setting| u64::from(setting.scenario.minutes);
    bar.set_length(jobs.iter().map(|(setting, _)| minutes(setting)).sum());
    let done: Result<Vec<(Run, f64)>, ScenarioError> = jobs
        .par_iter()
        .with_max_len(1)
        .map(|(setting, seed)| {
            let begin = std::time::Instant::now();
            let Setting { scenario, strategy, literal, colos, .. } = setting;
            bar.set_message(format!("{}, {colos} colos, seed {seed}", scenario.name));
            let mut planet = Planet::new(scenario, Some(*strategy), Some(*colos), *seed)?;
            if *literal {
                planet = planet.with_literal_counters();
            }
            let mut told = 0;
            let measured = planet.run(&mut |part| {
                let minute = (part * minutes(setting) as f64) as u64;
                bar.inc(minute.saturating_sub(told));
                told = told.max(minute);
            });
            bar.inc(minutes(setting).saturating_sub(told));
            let run = Run {
                scenario: scenario.name.clone(),
                strategy: if *literal { "counters_literal" } else { strategy_name(*strategy) },
                colos: *colos,
                seed: *seed,
                total_active_users: setting.limits.0,
                new_users_per_minute: setting.limits.1,
                measured,
            };
            Ok((run, begin.elapsed().as_secs_f64()))
        })
        .collect();
    bar.finish_and_clear();
    let (runs, seconds): (Vec<Run>, Vec<f64>) = done?.into_iter().unzip();
    Ok((runs, seconds.iter().sum()))
}

/// A bar on the standard error; it shows on a terminal only.
fn progress() -> ProgressBar {
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3} % {eta:>4} left  {msg}") {
        bar.set_style(style);
    }
    bar
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| Failure(format!("{}: cannot be written: {error}", file.display())))
}

/// What a Markdown file will be with a new table: nothing but the table, or the table in its place.
fn with_table(file: &Path, table: &str) -> Result<String, Failure> {
    let Ok(old) = fs::read_to_string(file) else { return Ok(format!("{table}\n")) };
    let place = old.split_once(TABLE_BEGINS).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(TABLE_ENDS)?;
        Some(format!("{before}{TABLE_BEGINS}\n{table}\n{TABLE_ENDS}{after}"))
    });
    place.ok_or_else(|| {
        Failure(format!(
            "{}: exists without a place for the table; add the lines {TABLE_BEGINS} and {TABLE_ENDS}, or name another file",
            file.display()
        ))
    })
}

fn plan(arguments: &PlanArguments) -> Result<ExitCode, Failure> {
    let room = read_room(&arguments.config, arguments.env.as_deref(), &arguments.room)?;
    let day = Day::new(room, &arguments.arrivals, arguments.colos.map(usize::from))?;
    let bar = progress();
    bar.set_length(1_000);
    bar.set_message(day.scenario.name.clone());
    let plan = day.plan(arguments.seed, &mut |part| bar.set_position((part * 1_000.0) as u64))?;
    bar.finish_and_clear();
    for line in plan.lines.iter().chain(&plan.sketch) {
        print(format_args!("{line}\n"));
    }
    if let Some(file) = &arguments.html {
        let chart = report::over_time(&format!("Room {}", plan.run.scenario), &plan.run, plan.start)?;
        let title = format!("Anteroom: a day of room {}", plan.run.scenario);
        write(file, &report::page(&title, &plan.lines, &[], &[chart])?)?;
    }
    Ok(ExitCode::SUCCESS)
}
