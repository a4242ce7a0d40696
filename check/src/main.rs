//! Validates the rooms, checks and webhooks of a wrangler.toml and says what each will do.

// All fields of a room stand in one `json!`.
#![recursion_limit = "256"]

mod project;
mod sentences;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::project::Project;

/// Validates the waiting rooms, health checks and webhooks of a wrangler.toml and says in plain words what each will do.
///
/// A room is one table of vars; its name is what follows ROOM_, in lower case. Run this before every deploy: a room
/// with an error is switched off at run time, and its visitors go to the origin without waiting.
#[derive(Debug, Parser)]
#[command(name = "anteroom-check", version, after_long_help = HELP)]
struct Arguments {
    /// The configuration to validate
    #[arg(long, value_name = "FILE", default_value = "wrangler.toml")]
    config: PathBuf,

    /// Validate the environment NAME, as `wrangler deploy --env NAME` would use it
    ///
    /// wrangler does not pass `[vars]` and `[durable_objects]` on to environments: each needs its own
    /// `[env.NAME.vars]` and `[[env.NAME.durable_objects.bindings]]`.
    #[arg(long, value_name = "NAME")]
    env: Option<String>,

    /// Print one JSON object instead of sentences, for programs
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"A room in wrangler.toml:

  [vars.ROOM_SHOP]
  description = "the summer tour"   a note, not used
  host = "shop.example.com"         left out: every host
  path = "/sale"                    and everything below it; "/" if left out
  additional_routes = [{ host = "outlet.example.com", path = "/sale" }]
                                    covered by the same queue; needs cookie_suffix
  path_case_insensitive = false     true: /SALE is /sale
  total_active_users = 1000         users at once, 1 to 2147483647; required
  new_users_per_minute = 200        1 to 2147483647; required
  limits = "fixed"                  or "adaptive": they follow the origin; a limit is then a range,
                                    total_active_users = { min = 200, max = 1000 }
  origin_slow_ms = 800              of adaptive: slower than this is too slow; left out: 3 times as long as usual
  rate_window = "minute"            or "sliding": in any 60 seconds, of leases
  session_duration = 5              minutes a user stays active, 1 to 30
  disable_session_renewal = false   true: after entering, not after the last request
  queueing_method = "fifo"          oldest first; "random": drawn among all who wait; "passthrough": everybody
                                    enters; "reject": nobody enters or waits
  queue_all = false                 true: nobody new enters
  suspended = false                 true: the room is off
  slot_strategy = "leases"          or "counters", "adapted_worker_slots", "worker_slots"
  curve_factor = 1.0                of adapted_worker_slots, 0.1 to 10
  on_error = "admit"                or "queue": new users when nothing answers
  origin_guard = { strategy = "position", min = 2, max = 1000, timeout = 10, admitted = "retry" }
                                    requests of a worker at the origin; strategy: position, newest_first, basic,
                                    static; admitted: retry, pass; also at_once and hold_ms
  health_checks = ["origin"]        checks that speak for the room's origin
  on_unhealthy = "ignore"           or "hold": new users wait while the origin is unhealthy
  bypass_rules = ["ip.src in {192.0.2.0/24}"]
                                    requests that go past the room, docs/bypass.md; also as tables,
                                    { expression = "...", description = "our office", enabled = true }
  count = "all"                     or "navigations": only requests for pages take a slot or wait
  exempt_extensions = ["css", "js"] paths that neither enter nor wait
  cookie_suffix = "shop"            the cookie is then __anteroom_shop
  cookie_attributes = { samesite = "auto", secure = "auto" }
                                    samesite: auto, lax, none, strict; secure: auto, always, never
                                    partitioned: true with samesite = "none", unless it is set to false
                                    domain = "example.com": for all of its hosts; needed by routes on several
  queueing_status_code = 200        of the waiting page: 200, 202 or 429
  enabled_origin_commands = ["revoke"]
                                    the origin's answer header Anteroom-Command: revoke ends a session
  turnstile_sitekey = "0x4AAAA..."  Cloudflare's Turnstile for those who wait; left out: none. Its secret is the
                                    secret TURNSTILE_SECRET_SHOP, or TURNSTILE_SECRET for all rooms
  turnstile_mode = "invisible"      or "off", "visible_non_interactive", "visible_managed"
  turnstile_action = "log"          or "infinite_queue": who does not pass never enters, and is not counted
  refresh_interval_seconds = 20     between two refreshes of the waiting page, 5 to 60
  refresh_interval_max_seconds = 60 far from the front, up to 300; left out: 3 times as long as usual
  place_kept_seconds = 50           after the last refresh, 10 to 3600
  one_place_per_address = false     true: of those who come from one address without a ticket, one may enter at once
                                    per minute and data center
  bind_ticket = "none"              or "address", "user_agent", "both": elsewhere it is no ticket
  custom_page_html = "sale"         the waiting page is static/pages/sale.html, a Mustache template
  default_template_language = "en-US"
                                    of the waiting page: one of 39, docs/pages.md
  visitor_languages = true          false: the visitor's own languages do not matter
  json_response_enabled = false     true: JSON for exactly Accept: application/json
  json_response = "auto"            JSON for whoever prefers it; "off": never
  message = ""                      to everybody who waits, at most 500 characters
  show_position = true              false: not told how many are ahead
  show_wait = true                  false: not told how long it takes
  show_progress = true              false: no progress bar

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

  total_active_users = 500          from the start; only with new_users_per_minute
  new_users_per_minute = 100
  session_duration = 2
  queueing_method = "random"        from the prequeue on, like the rest
  custom_page_html, disable_session_renewal, turnstile_mode, turnstile_action

A check of the origin's health:

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
  anteroom-check
  anteroom-check --config wrangler.toml --env production
  anteroom-check --json | jq '.errors[].fix'"#;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let project = Project::read(&arguments.config, arguments.env.as_deref());
    // A closed pipe ends the output; the exit status still says what was found.
    let _ = if arguments.json { print_json(&project) } else { print_sentences(&project) };
    if project.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What each room will do and the warnings go to the standard output, errors to the standard error.
fn print_sentences(project: &Project) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for room in project.rooms.iter() {
        let mut sentences = sentences::of_room(room).into_iter();
        writeln!(out, "{}", sentences.next().unwrap_or_default())?;
        for sentence in sentences {
            writeln!(out, "  {sentence}")?;
        }
        for event in room.events.iter() {
            writeln!(out, "  {}", sentences::of_event(room, event))?;
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
    if let Some(origin) = &project.origin {
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
    let mut err = std::io::stderr().lock();
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

fn print_json(project: &Project) -> std::io::Result<()> {
    let rooms: Vec<_> = project.rooms.iter().map(sentences::as_json).collect();
    let errors: Vec<_> = project.problems.iter().map(project::Problem::as_json).collect();
    let answer = serde_json::json!({
        "ok": errors.is_empty(),
        "config": project.place,
        "origin": project.origin,
        "search_engine_crawler_bypass": project.crawlers_bypass,
        "rooms": rooms,
        "checks": project.checks.iter().map(sentences::check_as_json).collect::<Vec<_>>(),
        "webhooks": project.webhooks.iter().map(sentences::webhook_as_json).collect::<Vec<_>>(),
        "warnings": project.warnings,
        "errors": errors,
    });
    writeln!(std::io::stdout().lock(), "{answer:#}")
}
