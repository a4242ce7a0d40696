//! `anteroom-sim`: lets scenarios happen, and tells how exactly the room kept its limits.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anteroom::origin::GuardStrategy;
use anteroom::room::SlotStrategy;
use anteroom_sim::campaign::{self, Tally};
use anteroom_sim::configured;
use anteroom_sim::guarded::{self, Guarded, Limiter, Line, Terms};
use anteroom_sim::guarded_report;
use anteroom_sim::origin::Setup;
use anteroom_sim::plan::find;
use anteroom_sim::plan_command::{self, PlanArguments};
use anteroom_sim::planet::Planet;
use anteroom_sim::price::{self, Bill, Priced, bills};
use anteroom_sim::report;
use anteroom_sim::scenario::{SHIPPED, SHIPPED_SERIES, Scenario, ScenarioError, shipped};
use anteroom_sim::table::{
    Case, Row, Run, judge, markdown, missed_lines, origins_text, reached_line, strategy_name, text,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

/// Takes minutes and gigabytes: `all` leaves it out, and says so.
const HUGE: &str = "ten_million";

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
    /// Tells what the platform charges: 1 M visits, an hour with 100,000 waiting, a quiet month
    Price(PriceArguments),
    /// Floods an origin with clients, with each strategy of `origin_guard` and with none, and tells what came of it
    Guard(GuardArguments),
    /// Tells how soon a change of rooms made at run time is in force, and what that costs: quietly, and with faults
    Rooms(RoomsArguments),
    /// Draws worlds at random and looks for one in which the room breaks a promise; exit status 1 when there is one
    Campaign(CampaignArguments),
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
    /// Names of shipped scenarios (see `list`), TOML files, `all` (but for `ten_million`, which takes minutes and
    /// gigabytes: `run all ten_million` runs everything), or `origins`: those with an origin that has limits
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

    /// Write the table in Markdown to FILE, with --goals how many were reached; in a file with the lines
    /// `<!-- table begins -->` and `<!-- table ends -->`, between them
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Let attackers come beside the visitors, one for every twenty, where the scenario has none
    #[arg(long)]
    attackers: bool,

    /// Judge leases by the goals in docs/accuracy.md: exit status 1 when one is missed
    #[arg(long)]
    goals: bool,

    /// Write every missed goal, by how much and in which seed, to FILE instead of printing it
    #[arg(long, value_name = "FILE", requires = "goals")]
    missed: Option<PathBuf>,

    /// How many runs at a time. Left out: as many as there are cores. Figures do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    threads: Option<u16>,
}

#[derive(Debug, Args)]
struct PriceArguments {
    /// How slots are handed out; give it several times to compare. Left out: all strategies
    #[arg(long, value_name = "STRATEGY")]
    strategy: Vec<Strategy>,

    /// How many data centers; give it several times to compare. Left out: 30 and 300
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    colos: Vec<u16>,

    /// Write the tables in Markdown to FILE; in a file with the lines `<!-- table begins -->` and
    /// `<!-- table ends -->`, between them
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct RoomsArguments {
    /// How many rooms there are
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rooms: u16,

    /// How many data centers have visitors
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    colos: u16,

    /// Time between two changes, in seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    change_every: u64,

    /// The seed of all chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
#[command(after_long_help = CAMPAIGN_HELP)]
struct CampaignArguments {
    /// Judge these worlds instead, from TOML files
    #[arg(value_name = "FILE", conflicts_with_all = ["minutes", "planets"])]
    files: Vec<PathBuf>,

    /// Draw no more worlds after so many minutes
    #[arg(long, value_name = "N", required_unless_present_any = ["files", "planets"])]
    minutes: Option<f64>,

    /// Draw so many worlds at most
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    planets: u64,

    /// The first world's seed; the others follow
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Where the smallest world that breaks a promise is written to, by the name of its seed
    #[arg(long, value_name = "DIRECTORY", default_value = "target/campaign")]
    out: PathBuf,

    /// Do not look for smaller worlds
    #[arg(long)]
    as_drawn: bool,

    /// How many worlds at a time. Left out: as many as there are cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    threads: Option<u16>,
}

#[derive(Debug, Args)]
#[command(after_long_help = GUARD_HELP)]
struct GuardArguments {
    /// Run only this test; give it several times for more. Left out: all of them
    #[arg(long, value_name = "NAME")]
    test: Vec<String>,

    /// What stands before the origin; give it several times to compare. Left out: all of them
    #[arg(long, value_name = "LIMITER")]
    limiter: Vec<LimiterName>,

    /// Where requests wait that the origin cannot serve at once. Left out: in the workers, then in the origin
    #[arg(long, value_name = "PLACE")]
    line: Vec<LinePlace>,

    /// The smallest window of a worker, in requests
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    min: u32,

    /// The largest window of a worker; fixed with static, the stack of `newest_first`
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max: u32,

    /// How long a client waits for its answer, in milliseconds; timeout and hold of the guard too
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    patience: u64,

    /// How often a client comes again that was refused, failed or waited in vain
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=100))]
    retries: u32,

    /// An origin of your own, a TOML file with any of `concurrency`, `service_ms`, `spread`, `sharing`, `contention`, `queue`
    #[arg(long, value_name = "FILE")]
    origin: Option<PathBuf>,

    /// Run each with the seeds 1 to N. Goodput and waste are of the worst seed, other figures are means
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: u64,

    /// Write every run with all its figures, second by second, to FILE
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write one page with the table and a chart per test to FILE; it needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write goodput and waste side by side, and all figures of x10, in Markdown to FILE; in a file with the lines
    /// `<!-- table begins -->` and `<!-- table ends -->`, between them
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// [`Limiter`] as it is given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum LimiterName {
    /// Every request is sent at once
    None,
    /// The window is max, always
    Static,
    /// Ten off the window at each failure, one more after ten successes
    Basic,
    /// The article's limiter with positions, as it reads; in the simulator only
    PositionLiteral,
    /// A failure at position p shrinks the window to just below p
    Position,
    /// No window but a stack: who came last goes first
    NewestFirst,
}

/// [`Line`] as it is given on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum LinePlace {
    /// In the workers: together they send as many at once as the origin works on
    Worker,
    /// In the origin: all that the window lets is sent at once
    Origin,
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
  anteroom-sim price --strategy leases --colos 30

docs/simulator.md says how to write a scenario, docs/accuracy.md what each figure means.

Exit status: 0 when all went well, 1 when a goal was missed (run --goals), 2 for anything that cannot be run.";

const RUN_HELP: &str = "\
Examples:
  anteroom-sim run small                          one run, one line
  anteroom-sim run all --colos 30 --colos 300 --seeds 5 --goals
  anteroom-sim run lowspike --strategy leases --strategy counters --strategy adapted_worker_slots \\
    --strategy worker_slots --html lowspike.html
  anteroom-sim run mine.toml --json mine.json && jq '.[].measured.idle' mine.json
  anteroom-sim run all --colos 30 --colos 300 --seeds 5 --goals --markdown docs/accuracy.md \\
    --missed target/missed.txt";

const GUARD_HELP: &str = "\
Each test is a minute (x10_long: ten) of clients who come at random, wait a second for their answer and then leave; the origin does their
work all the same. An origin may queue requests or work on all of them at once, get slower with load, answer 503, hang,
die or lose half of its capacity.

  goodput     what was completed, of the most that could have been: what the origin can do, or the new clients if fewer
  worst 5 s   the same of the worst five seconds
  wasted      what the origin worked on to the end for clients who had left: share of all it worked on, and number
  timed out   clients who left, from the line or while the origin had their request
  failed      answers that were errors, 503, or no connection
  refused     requests beyond the window: the only ones that cost nothing
  in vain     how long the refused and those who left had waited for it, on the average
  window      of all workers together

Examples:
  anteroom-sim guard                                       every test, every limiter
  anteroom-sim guard --test x10 --test halves --html floods.html
  anteroom-sim guard --test x10 --limiter static --max 150  a fixed window that fits, by luck
  anteroom-sim guard --line origin --limiter basic --limiter position --seeds 5
  printf 'concurrency = 8\\nservice_ms = 250.0\\nsharing = \"cores\"\\n' > mine.toml && anteroom-sim guard --origin mine.toml

docs/guard.md says what the figures mean for a room.";

const CAMPAIGN_HELP: &str = "\
Examples:
  anteroom-sim campaign --minutes 10 --seed 1000     as many worlds as ten minutes are enough for
  anteroom-sim campaign --planets 1 --seed 1234      the world that a campaign has named
  anteroom-sim campaign target/campaign/campaign_1234.toml

docs/simulator.md says what is drawn and what is promised.";

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
        Command::Price(arguments) => price(&arguments),
        Command::Guard(arguments) => guard(&arguments),
        Command::Rooms(arguments) => Ok(rooms(&arguments)),
        Command::Campaign(arguments) => campaign(&arguments),
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

/// An hour each.
fn rooms(arguments: &RoomsArguments) -> ExitCode {
    let calm = configured::Setup {
        rooms: arguments.rooms.into(),
        colos: arguments.colos.into(),
        change_every: arguments.change_every,
        seed: arguments.seed,
        ..configured::Setup::default()
    };
    let away: Vec<(u64, u64)> = (0..6).map(|turn| (300 + turn * 600, 420 + turn * 600)).collect();
    let cases = [
        ("calm", calm.clone()),
        ("nothing changes", configured::Setup { change_every: 0, ..calm.clone() }),
        ("1 % of messages lost", configured::Setup { loss: 0.01, ..calm.clone() }),
        ("isolates end each minute", configured::Setup { evictions: 60.0, ..calm.clone() }),
        ("`Config` away for 2 of 10 minutes", configured::Setup { down: away.clone(), ..calm.clone() }),
        ("all of these", configured::Setup { loss: 0.01, evictions: 60.0, down: away, ..calm.clone() }),
        ("nothing was ever made", configured::Setup { rooms: 0, change_every: 0, ..calm }),
    ];
    print(
        "| an hour | calls of `Config` | answered with all rooms | MB | late: half | 99 % | all | nothing known | went back |\n",
    );
    print("| --- | --: | --: | --: | --: | --: | --: | --: | --: |\n");
    let rows: Vec<String> = cases
        .par_iter()
        .map(|(name, setup)| {
            let figures = configured::run(setup);
            let late = [0.5, 0.99, 1.0].map(|part| format!("{:.1} s", figures.late(part) as f64 / 1e3));
            let [half, most, all] =
                if figures.late_ms.is_empty() { ["", "", ""].map(str::to_owned) } else { late };
            let share = |count: u64| {
                let part = 100.0 * count as f64 / figures.decided as f64;
                if count == 0 { "0".to_owned() } else { format!("{part:.3} %") }
            };
            format!(
                "| {name} | {} | {} | {:.0} | {half} | {most} | {all} | {} | {} |\n",
                figures.calls,
                figures.documents,
                figures.bytes as f64 / 1e6,
                share(figures.unknown),
                share(figures.back),
            )
        })
        .collect();
    print(rows.concat());
    ExitCode::SUCCESS
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

/// So many attackers come for each visitor, where they are asked for.
const ATTACKERS: f64 = 0.05;

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
            let wanted = |scenario: &Scenario| name == "all" || scenario.origin.is_some();
            for (name, _) in SHIPPED.iter().filter(|(name, _)| *name != HUGE) {
                scenarios.extend(Some(shipped(name)?).filter(wanted));
            }
        } else {
            scenarios.push(find(name, &|path| fs::read_to_string(path))?);
        }
    }
    let mut settings = Vec::new();
    for mut scenario in scenarios {
        if arguments.attackers && scenario.visitors.attackers <= 0.0 {
            scenario.visitors.attackers = ATTACKERS;
        }
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
    let pool = in_threads(arguments.threads)?;
    let (runs, seconds) = pool.install(|| run_all(&settings, arguments.seeds))?;
    let rows: Vec<Row<'_>> = runs
        .chunks(arguments.seeds as usize)
        .zip(&settings)
        .map(|(runs, setting)| Row { runs, case: setting.case.clone() })
        .collect();
    print(format_args!("{}\n", text(&rows)));
    let origins = origins_text(&rows);
    if !origins.is_empty() {
        print(format_args!("\n{origins}\n"));
    }
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
    let missed = missed_lines(&verdicts);
    if let Some(file) = &arguments.markdown {
        let mut table = markdown(&rows);
        if arguments.goals {
            table.push_str("\n\n");
            table.push_str(&reached_line(&verdicts));
        }
        write(file, &with_table(file, &table)?)?;
    }
    if let Some(file) = &arguments.missed {
        write(file, &(missed.join("\n") + "\n"))?;
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
        if arguments.missed.is_none() {
            for line in &missed {
                print(format_args!("{line}\n"));
            }
        }
        print(format_args!("{}\n", reached_line(&verdicts)));
        if verdicts.iter().any(|verdict| verdict.reached == Some(false)) {
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

fn price(arguments: &PriceArguments) -> Result<ExitCode, Failure> {
    let PriceArguments { strategy, colos, markdown } = arguments;
    if let Some(file) = markdown {
        with_table(file, "")?;
    }
    let all = [Strategy::Leases, Strategy::Counters, Strategy::AdaptedWorkerSlots, Strategy::WorkerSlots];
    let strategies = if strategy.is_empty() { &all[..] } else { strategy };
    let colos = if colos.is_empty() { &[30, 300][..] } else { colos };
    let bills = bills()?;
    let mut jobs: Vec<(&Bill, SlotStrategy, usize)> = Vec::new();
    for bill in &bills {
        for colos in colos {
            jobs.extend(strategies.iter().map(|one| (bill, (*one).into(), usize::from(*colos))));
        }
    }
    let bar = progress();
    bar.set_length(jobs.len() as u64);
    let priced: Result<Vec<Priced<'_>>, ScenarioError> = jobs
        .par_iter()
        .with_max_len(1)
        .map(|&(bill, strategy, colos)| {
            let measured = Planet::new(&bill.scenario, Some(strategy), Some(colos), 1)?.run(&mut |_| {});
            bar.inc(1);
            Ok(Priced { bill, strategy, colos, measured })
        })
        .collect();
    bar.finish_and_clear();
    let table = price::markdown(&priced?);
    if let Some(file) = markdown {
        write(file, &with_table(file, &table)?)?;
    } else {
        print(format_args!("{table}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

fn guard(arguments: &GuardArguments) -> Result<ExitCode, Failure> {
    let GuardArguments { min, max, patience, retries, seeds, .. } = *arguments;
    if min > max {
        return Err(Failure(format!("--min {min} is above --max {max}; a window is from --min to --max")));
    }
    if let Some(file) = &arguments.markdown {
        with_table(file, "")?;
    }
    let mut tests = guarded::tests(&read_origin(arguments.origin.as_deref())?);
    if let Some(name) = arguments.test.iter().find(|name| tests.iter().all(|test| test.name != **name)) {
        let names: Vec<&str> = tests.iter().map(|test| test.name).collect();
        return Err(Failure(format!(
            "--test {name}: there is none of this name; one of: {}",
            names.join(", ")
        )));
    }
    tests.retain(|test| arguments.test.is_empty() || arguments.test.iter().any(|name| name == test.name));
    let wanted = |limiter: &Limiter| {
        let named =
            |name: &LimiterName| name.to_possible_value().is_some_and(|it| it.get_name() == limiter.name());
        arguments.limiter.is_empty() || arguments.limiter.iter().any(named)
    };
    let limiters: Vec<Limiter> = Limiter::ALL.into_iter().filter(wanted).collect();
    let mut lines = vec![Line::Worker, Line::Origin];
    if !arguments.line.is_empty() {
        let place = |place: &LinePlace| match place {
            LinePlace::Worker => Line::Worker,
            LinePlace::Origin => Line::Origin,
        };
        lines = arguments.line.iter().map(place).collect();
    }
    let mut jobs = Vec::new();
    for line in lines {
        let terms = Terms { line, min, max, patience_ms: patience, retries, ..Terms::default() };
        for test in &tests {
            for limiter in &limiters {
                // Without a line in the worker nothing can be newest first, and at_once says nothing.
                let needs_line = *limiter == Limiter::Guard(GuardStrategy::NewestFirst) || test.at_once > 1.0;
                if line == Line::Worker || !needs_line {
                    jobs.extend((1..=seeds).map(|seed| (test, terms.clone(), *limiter, seed)));
                }
            }
        }
    }
    let bar = progress();
    bar.set_length(jobs.len() as u64);
    let runs: Vec<Guarded> = jobs
        .par_iter()
        .with_max_len(1)
        .map(|(test, terms, limiter, seed)| {
            let run = guarded::run(test, terms, *limiter, *seed);
            bar.inc(1);
            run
        })
        .collect();
    bar.finish_and_clear();
    let rows = guarded_report::rows(&runs);
    print(format_args!("{}\n", guarded_report::text(&rows)));
    if let Some(file) = &arguments.json {
        write(file, &guarded_report::json(&runs)?)?;
    }
    if let Some(file) = &arguments.html {
        let lead = [
            format!("Seeds: {seeds}. Goodput and waste are of the worst one, other figures are means; charts are of seed 1."),
            "All of it is simulated, with the guard that runs in production. docs/guard.md says what it means.".to_owned(),
        ];
        write(file, &guarded_report::page(&rows, &lead)?)?;
    }
    if let Some(file) = &arguments.markdown {
        write(file, &with_table(file, &guarded_report::markdown(&rows))?)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::disallowed_methods, reason = "the clock says when to stop drawing")]
fn campaign(arguments: &CampaignArguments) -> Result<ExitCode, Failure> {
    let mut failed = false;
    for file in &arguments.files {
        let world = Scenario::read(file, &|path| fs::read_to_string(path))?;
        let breaches = campaign::broken(&world, &campaign::run(&world)?)?;
        failed |= !breaches.is_empty();
        let said: Vec<String> = breaches.iter().map(ToString::to_string).collect();
        let said = if said.is_empty() { "keeps all promises".to_owned() } else { said.join("; ") };
        print(format_args!("{}: {said}\n", file.display()));
    }
    if !arguments.files.is_empty() {
        return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let begin = std::time::Instant::now();
    let until = arguments.minutes.map(|minutes| begin + std::time::Duration::from_secs_f64(minutes * 60.0));
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.planets);
    let seeds = seeds.take_while(|_| until.is_none_or(|until| std::time::Instant::now() < until));
    let tally = in_threads(arguments.threads)?.install(|| {
        let worlds = seeds.par_bridge().map(|seed| {
            let mut tally = Tally::default();
            if let Some(failed) = tally.world(seed, !arguments.as_drawn)? {
                fs::create_dir_all(&arguments.out)?;
                let file = arguments.out.join(format!("{}.toml", failed.smallest.name));
                write(&file, &toml::to_string(&failed.smallest)?)?;
                for breach in &failed.breaches {
                    print(format_args!("Seed {seed}: {breach}\n"));
                }
                print(format_args!("Seed {seed}: the smallest world is {}\n", file.display()));
            }
            Ok(tally)
        });
        worlds.try_reduce(Tally::default, |one, other| Ok::<_, Failure>(one + other))
    })?;
    print(format_args!("{tally}\n"));
    eprintln!(
        "{:.0} s, {:.2} million events a second",
        begin.elapsed().as_secs_f64(),
        tally.events as f64 / 1e6 / begin.elapsed().as_secs_f64()
    );
    Ok(if tally.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// So many threads, or as many as there are cores.
fn in_threads(threads: Option<u16>) -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or_default().into()).build()
}

fn read_origin(file: Option<&Path>) -> Result<Setup, Failure> {
    let Some(file) = file else { return Ok(Setup::default()) };
    let wrong = |error: &dyn fmt::Display| Failure(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    let origin: Setup = toml::from_str(&text).map_err(|error| wrong(&error))?;
    if !origin.faults.is_empty() {
        return Err(wrong(&"faults: leave them out, the tests bring their own"));
    }
    origin.check().map_err(|error| wrong(&error))?;
    Ok(origin)
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
    let bar = progress();
    bar.set_length(1_000);
    bar.set_message(arguments.room.clone());
    let told = plan_command::plan(arguments, &|path| fs::read_to_string(path), &mut |part| {
        bar.set_position((part * 1_000.0) as u64);
    })
    .map_err(|error| Failure(error.to_string()))?;
    bar.finish_and_clear();
    print(told.text);
    if let Some((file, page)) = &told.page {
        write(file, page)?;
    }
    Ok(ExitCode::SUCCESS)
}
