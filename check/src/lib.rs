//! Validates the rooms, checks and webhooks of a wrangler.toml and says what each will do.
//!
//! It does no I/O of its own, so that the npm package has it as WebAssembly: see [`Host`].

mod deployment;
mod fields;
mod project;
mod sentences;
mod shapes;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::project::Project;

/// Validates the waiting rooms, health checks and webhooks of a wrangler.toml and says in plain words what each will do.
///
/// A room is one table of vars; its name is what follows ROOM_, in lower case. Run this before every deploy: a room
/// with an error is switched off at run time, and its visitors go to the origin without waiting.
#[derive(Debug, Parser)]
#[command(name = "anteroom-check", version, override_usage = "npm run check -- [OPTIONS]", after_long_help = help())]
pub struct Arguments {
    /// The configuration to validate
    #[arg(long, value_name = "FILE", default_value = "wrangler.toml")]
    config: PathBuf,

    /// Validate the environment NAME, as `wrangler deploy --env NAME` would use it
    ///
    /// wrangler does not pass `[vars]` and `[durable_objects]` on to environments: each needs its own
    /// `[env.NAME.vars]` and `[[env.NAME.durable_objects.bindings]]`.
    #[arg(long, value_name = "NAME")]
    env: Option<String>,

    /// Where templates of the waiting page are, seen from the configuration
    #[arg(long, value_name = "FOLDER", default_value = "static/pages")]
    pages: PathBuf,

    /// Print one JSON object instead of sentences, for programs
    #[arg(long)]
    json: bool,

    /// Print the table of a room's fields, as docs/configuration.md has it, and validate nothing; with --json also the table
    /// of the operators' endpoints, of which the description of the API is made
    #[arg(long)]
    fields: bool,

    /// Say of every field of each room whether its value is the room's own, is shared by all rooms ([vars.DEFAULTS]), or
    /// is the field's default
    #[arg(long)]
    sources: bool,
}

/// The second part of `--help`.
fn help() -> String {
    let (fields, of_events) = (fields::help(), fields::help_of_events());
    format!("A room in wrangler.toml:\n\n  [vars.ROOM_SHOP]\n{fields}\n{EVENTS}{of_events}\n{OTHERS}")
}

const EVENTS: &str = r#"What rooms share is written once; a room's own fields win, each as a whole:

  [vars.DEFAULTS]                   any field of a room but path and additional_routes

An event, for which a room is another one for a while; what is left out of the second part is as in the room:

  [vars.EVENT_SALE]
  room = "shop"                     for [vars.ROOM_SHOP]; required
  event_start_time = "2026-11-27T09:00:00+01:00"
  event_end_time = "2026-11-27T12:00:00+01:00"
                                    required, at least a minute later
  prequeue_start_time = "2026-11-27T08:30:00+01:00"
                                    nobody new enters from then on; at least five minutes before the start
  shuffle_at_event_start = false    true: who came in the prequeue is put in an order by lot
  suspended = false                 true: the event is ignored
  description = ""

"#;

const OTHERS: &str = r#"A check of the origin's health:

  [vars.CHECK_ORIGIN]
  url = "https://origin.example.com/health"
                                    or tcp = "origin.example.com:5432"; one is required
  method = "GET"                    or "HEAD"
  interval = 60                     seconds, 5 to 3600
  timeout = 5                       seconds, 1 to 10, less than the interval
  retries = 2                       of what takes too long, at once, 0 to 5
  consecutive_fails = 1             in a row until it is unhealthy, 1 to 10
  consecutive_successes = 1         in a row until it is healthy, 1 to 10
  expected_codes = ["200"]          or classes: ["2xx", "302"]
  expected_body = "Welcome"         in the first 10 KB; left out: any body
  follow_redirects = false          true: to where the answer leads
  header = { Host = "shop.example.com" }
                                    texts or lists of texts
  regions = ["WEU"]                 WNAM, ENAM, WEU, EEU, NSAM, SSAM, OC, ME, NAF, SAF, IN, SEAS, NEAS
                                    or ALL_REGIONS; three observers in each
  suspended = false                 true: nothing is asked
  description = ""

Who is told what is new, docs/webhooks.md:

  [vars.WEBHOOK_CHAT]
  url = "https://hooks.example.com/anteroom"
                                    https; left out: the secret WEBHOOK_URL_CHAT says it
  rooms = ["shop"]                  left out: all
  news = ["queueing_started", "queueing_ended"]
                                    left out: all. queueing_started, queueing_ended, wait_above, wait_below,
                                    event_prequeue_started, event_started, event_ended, origin_unhealthy,
                                    origin_healthy, limits_changed, steered, fallback_in_use, fallback_ended,
                                    limit_exceeded
  wait_minutes = 10                 of wait_above and wait_below, 1 to 1440
  format = "standard"               or "slack", "discord", "teams", "google_chat"
  description = ""
                                    its messages are signed with the secret WEBHOOK_SECRET_CHAT, whsec_ and base64

Exit status: 0 when everything is valid (there may be warnings), 1 when there are errors, 2 for wrong arguments.

Examples:
  npm run check
  npm run check -- --config wrangler.toml --env production
  npm run -s check -- --json | jq '.errors[].fix'"#;

/// What the check asks of the machine it runs on.
pub struct Host<'a> {
    /// Reads a text file.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The time, in milliseconds since the epoch.
    pub now: u64,
}

/// Prints what it was asked for. Returns whether everything is valid.
pub fn check(arguments: &Arguments, host: &Host, out: &mut dyn Write, err: &mut dyn Write) -> bool {
    if arguments.fields {
        let tables = if arguments.json { fields::json() } else { fields::markdown() };
        let _ = write!(out, "{tables}");
        return true;
    }
    let project = Project::read(&arguments.config, &arguments.pages, arguments.env.as_deref(), host);
    // A closed pipe ends the output; the exit status still says what was found.
    let _ = if arguments.json {
        print_json(&project, out)
    } else {
        print_sentences(&project, arguments.sources, out, err)
    };
    project.problems.is_empty()
}

/// What each room will do and the warnings go to the standard output, errors to the standard error.
fn print_sentences(
    project: &Project,
    sources: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    for room in project.rooms.iter() {
        let mut sentences = sentences::of_room(room).into_iter();
        writeln!(out, "{}", sentences.next().unwrap_or_default())?;
        for sentence in sentences {
            writeln!(out, "  {sentence}")?;
        }
        for event in room.events.iter() {
            writeln!(out, "  {}", sentences::of_event(room, event))?;
        }
        if sources {
            writeln!(out, "  Where its values come from:")?;
            for source in sentences::of_sources(room, project) {
                writeln!(out, "    {source}")?;
            }
        }
        writeln!(out)?;
    }
    for check in project.checks.iter() {
        let mut sentences = sentences::of_check(check).into_iter();
        writeln!(out, "{}", sentences.next().unwrap_or_default())?;
        for sentence in sentences {
            writeln!(out, "  {sentence}")?;
        }
        writeln!(out)?;
    }
    for webhook in project.webhooks.iter() {
        let mut sentences = sentences::of_webhook(webhook).into_iter();
        writeln!(out, "{}", sentences.next().unwrap_or_default())?;
        for sentence in sentences {
            writeln!(out, "  {sentence}")?;
        }
        writeln!(out)?;
    }
    if let Some(sentences) = sentences::of_paths(&project.rooms) {
        writeln!(out, "{sentences}\n")?;
    }
    if let Some(worker) = &project.origin_service {
        writeln!(out, "Admitted visitors go to the Worker {worker} (ORIGIN_SERVICE).\n")?;
    } else if let Some(origin) = &project.origin {
        writeln!(out, "{}\n", sentences::of_origin(origin))?;
    }
    if project.crawlers_bypass {
        writeln!(
            out,
            "Verified crawlers of search engines go past all rooms (SEARCH_ENGINE_CRAWLER_BYPASS).\n"
        )?;
    }
    for warning in &project.warnings {
        writeln!(out, "Warning: {warning}")?;
    }
    out.flush()?;
    for problem in &project.problems {
        writeln!(err, "Error: {problem}")?;
        for line in problem.excerpt().lines() {
            writeln!(err, "    {line}")?;
        }
    }
    let rooms = sentences::count(project.rooms.len() as u64, "room is", "rooms are");
    let place = &project.place;
    match project.problems.len() as u64 {
        0 => writeln!(out, "{place}: {rooms} valid."),
        errors => writeln!(err, "{place}: {}; {rooms} valid.", sentences::count(errors, "error", "errors")),
    }
}

fn print_json(project: &Project, out: &mut dyn Write) -> io::Result<()> {
    let rooms: Vec<_> = project.rooms.iter().map(|room| sentences::as_json(room, project)).collect();
    let errors: Vec<_> = project.problems.iter().map(project::Problem::as_json).collect();
    let answer = serde_json::json!({
        "ok": errors.is_empty(),
        "config": project.place,
        "origin": project.origin,
        "origin_service": project.origin_service,
        "search_engine_crawler_bypass": project.crawlers_bypass,
        "front_controllers": project.rooms.front_controllers(),
        "rooms": rooms,
        "checks": project.checks.iter().map(sentences::check_as_json).collect::<Vec<_>>(),
        "webhooks": project.webhooks.iter().map(sentences::webhook_as_json).collect::<Vec<_>>(),
        "warnings": project.warnings,
        "errors": errors,
    });
    writeln!(out, "{answer:#}")
}
