//! `npm run plan` but for its I/O, so that the npm package has it as WebAssembly.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;

use crate::plan::{Day, read_room};
use crate::report;
use crate::scenario::Read;

#[derive(Debug, Args)]
#[command(override_usage = "npm run plan -- --room <NAME> --arrivals <FILE> [OPTIONS]", after_long_help = PLAN_HELP)]
/// Which room, which day.
pub struct PlanArguments {
    /// The configuration with the room
    #[arg(long, value_name = "FILE", default_value = "wrangler.toml")]
    config: PathBuf,

    /// Take the room from the environment NAME
    #[arg(long, value_name = "NAME")]
    env: Option<String>,

    /// The room, by its name in lower case, such as shop
    #[arg(long, value_name = "NAME")]
    pub room: String,

    /// Who comes: a CSV file with the columns minute,visitors or time,visitors, a room's history (CSV or JSON), or a
    /// scenario
    #[arg(long, value_name = "FILE")]
    arrivals: PathBuf,

    /// Take those out of a history who were marked by a rehearsal
    #[arg(long)]
    without_rehearsals: bool,

    /// Leave the room's events out: the day is planned by the room's own limits
    #[arg(long)]
    without_events: bool,

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

const PLAN_HELP: &str = "\
A CSV file says how many new visitors came from each row's minute until the next row's:

  time,visitors          or    minute,visitors
  2026-11-27 19:55,120         0,120
  2026-11-27 19:56,2400        1,2400

Times are UTC, unless they say their zone: 2026-11-27T20:55+01:00. The room's events are simulated at their times, so with events
the file needs dates.

The answer of GET /__anteroom/history?room=shop&resolution=minute&from=...&to=... serves as it comes, as CSV or as JSON: who
came, how patient people were and how long they stayed are taken from it.

Examples:
  npm run plan -- --room shop --arrivals friday.csv
  npm run plan -- --config wrangler.toml --env production --room shop --arrivals friday.csv --html plan.html
  npm run plan -- --room shop --arrivals last-friday.json --without-rehearsals
  npm run plan -- --room shop --arrivals ticket_sale    what if that crowd came to my room?";

/// What a plan says.
pub struct Told {
    /// For the terminal.
    pub text: String,
    /// The page that was asked for, and where it goes.
    pub page: Option<(PathBuf, String)>,
}

/// Simulates the day that was asked for. `tick` is called with the part that is done, 0 to 1.
///
/// # Errors
/// See [`read_room`] and [`Day::new`].
pub fn plan(
    arguments: &PlanArguments,
    read: &Read,
    tick: &mut dyn FnMut(f64),
) -> Result<Told, Box<dyn Error>> {
    let mut room = read_room(&arguments.config, arguments.env.as_deref(), &arguments.room, read)?;
    if arguments.without_events {
        room = room.without_events();
    }
    let colos = arguments.colos.map(usize::from);
    let day = Day::new(&room, &arguments.arrivals, colos, arguments.without_rehearsals, read)?;
    let plan = day.plan(arguments.seed, tick)?;
    let mut text = String::new();
    for line in plan.lines.iter().chain(&plan.sketch) {
        writeln!(text, "{line}")?;
    }
    let page = match &arguments.html {
        Some(file) => {
            let chart = report::over_time(&format!("Room {}", plan.run.scenario), &plan.run, plan.start)?;
            let title = format!("Anteroom: a day of room {}", plan.run.scenario);
            Some((file.clone(), report::page(&title, &plan.lines, &[], &[chart])?))
        }
        None => None,
    };
    Ok(Told { text, page })
}
