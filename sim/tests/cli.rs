//! The command as its users meet it: what it prints, writes and refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A room that is too small for its visitors, over in a moment.
const CROWDED: &str = r#"
name = "crowded"
minutes = 3

[room]
total_active_users = 40
new_users_per_minute = 30
session_duration = 1

[[arrivals]]
per_minute = 60

[planet]
colos = 2
zipf = 2
"#;

const WRANGLER: &str = r#"
[vars.ROOM_SHOP]
path = "/sale"
total_active_users = 40
new_users_per_minute = 30
session_duration = 1

[vars.ROOM_OFF]
path = "/off"
total_active_users = 40
new_users_per_minute = 30
suspended = true

[vars.ROOM_WRONG]
path = "/wrong"
total_active_users = 0
new_users_per_minute = 30

[env.production.vars.ROOM_SALE]
total_active_users = 5
new_users_per_minute = 5
"#;

/// A directory of a test's own.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).unwrap();
        Self(place)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let command = env!("CARGO_BIN_EXE_anteroom-sim");
        Command::new(command).args(arguments).current_dir(&self.0).output().unwrap()
    }

    /// What it prints when all goes well.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What it says when it refuses.
    fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

#[track_caller]
fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let place = Place::new("same_bytes");
    place.write("crowded.toml", CROWDED);
    let run = |threads: &str, json: &str| {
        place.prints(&["run", "crowded.toml", "--seeds", "3", "--threads", threads, "--json", json])
    };
    assert_eq!(run("1", "one.json"), run("3", "three.json"));
    assert_eq!(place.read("one.json"), place.read("three.json"));
}

#[test]
fn another_seed_gives_other_figures() {
    let place = Place::new("other_seed");
    place.write("crowded.toml", CROWDED);
    place.prints(&["run", "crowded.toml", "--seeds", "2", "--json", "runs.json"]);
    let runs: Vec<serde_json::Value> = serde_json::from_str(&place.read("runs.json")).unwrap();
    let seeds: Vec<_> = runs.iter().map(|run| &run["seed"]).collect();
    assert_eq!(seeds, [1, 2]);
    assert_ne!(runs[0]["measured"], runs[1]["measured"]);
}

#[test]
fn there_is_a_line_per_scenario_strategy_and_colos_in_the_order_asked_for() {
    let place = Place::new("lines");
    place.write("crowded.toml", CROWDED);
    let table = place.prints(&[
        "run",
        "crowded.toml",
        "--strategy",
        "worker_slots",
        "--strategy",
        "leases",
        "--colos",
        "3",
        "--colos",
        "1",
    ]);
    let lines: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("crowded"))
        .map(|line| line.split_whitespace().skip(1).take(2).collect())
        .collect();
    assert_eq!(lines, [["worker_slots", "3"], ["worker_slots", "1"], ["leases", "3"], ["leases", "1"]]);
}

#[test]
fn reached_goals_are_exit_status_0() {
    let place = Place::new("goals");
    place.write(
        "empty.toml",
        &CROWDED.replace("per_minute = 60", "per_minute = 0").replace("crowded", "empty"),
    );
    assert_says(
        &place.prints(&["run", "empty.toml", "--goals"]),
        &["Goals: 1 of 1 reached. Not measured: 14."],
    );
}

#[test]
fn missed_goals_are_exit_status_1_and_say_by_how_much() {
    let place = Place::new("missed");
    // Nobody who queues here is queued rightly.
    place.write("crowded.toml", &CROWDED.replace("minutes = 3", "minutes = 3\nbelow_limits = true"));
    let output = place.run(&["run", "crowded.toml", "--goals"]);
    assert_eq!(output.status.code(), Some(1));
    assert_says(
        &String::from_utf8_lossy(&output.stdout),
        &["Missed: crowded, 2 colos, seed 1: ", ", missed by "],
    );
    let output =
        place.run(&["run", "crowded.toml", "--goals", "--missed", "missed.txt", "--markdown", "table.md"]);
    assert_eq!(output.status.code(), Some(1));
    let (printed, missed) = (String::from_utf8_lossy(&output.stdout), place.read("missed.txt"));
    assert!(
        missed.lines().count() > 0 && missed.lines().all(|line| line.starts_with("Missed: ")),
        "{missed}"
    );
    for short in [printed.as_ref(), &place.read("table.md")] {
        assert!(short.contains(" reached.") && !short.contains("Missed: "), "{short}");
    }
    assert_says(
        &place.refuses(&["run", "crowded.toml", "--goals", "--strategy", "counters"]),
        &["add --strategy leases"],
    );
}

#[test]
fn a_table_takes_its_place_in_a_markdown_file() {
    let place = Place::new("markdown");
    place.write("crowded.toml", CROWDED);
    place.write("page.md", "Before.\n<!-- table begins -->\nold\n<!-- table ends -->\nAfter.\n");
    let write = |file: &str| place.prints(&["run", "crowded.toml", "--markdown", file]);
    write("new.md");
    write("page.md");
    let table = place.read("new.md");
    assert!(table.starts_with("| scenario"), "{table}");
    let expected = format!("Before.\n<!-- table begins -->\n{table}<!-- table ends -->\nAfter.\n");
    assert_eq!(place.read("page.md"), expected);
    write("page.md");
    assert_eq!(place.read("page.md"), expected);
    place.write("other.md", "Mine.\n");
    assert_says(
        &place.refuses(&["run", "crowded.toml", "--markdown", "other.md"]),
        &["other.md: exists", "<!-- table begins -->"],
    );
    assert_eq!(place.read("other.md"), "Mine.\n");
}

#[test]
fn the_page_needs_nothing_else_and_can_be_read_without_seeing_it() {
    let place = Place::new("page");
    place.write("crowded.toml", CROWDED);
    place.prints(&["run", "crowded.toml", "--html", "page.html"]);
    let page = place.read("page.html");
    assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("url("));
    let count = |part: &str| page.matches(part).count();
    // Overshoot, early queueing, the room over time, the curve factors.
    assert_eq!(count("<figure>"), 4);
    assert_eq!(count("role=\"img\">\n<title>"), 4);
    assert_eq!(count("<desc>"), 4);
    assert_eq!(count("The same as a table"), 4);
    assert_says(
        &page,
        &["prefers-color-scheme: dark", "crowded: leases, 2 colos", "active users", "slots left"],
    );
}

#[test]
fn a_shown_scenario_can_be_run_from_its_file() {
    let place = Place::new("shown");
    let list = place.prints(&["list"]);
    assert_says(&list, &["flash50 ", "A flash crowd", "dying_colo", "shop_week"]);
    place.write("mine.toml", &place.prints(&["show", "small80"]).replace("minutes = 20", "minutes = 1"));
    assert_says(&place.prints(&["run", "mine.toml"]), &["small80"]);
    assert_says(&place.prints(&["show", "shop_week.csv"]), &["time,visitors\n"]);
    assert_says(&place.refuses(&["show", "nothing"]), &["nothing: ", "one of: ", "flash50"]);
}

#[test]
fn errors_name_file_field_and_fix() {
    let place = Place::new("errors");
    let refuses = |from: &str, to: &str, parts: &[&str]| {
        assert!(CROWDED.contains(from));
        place.write("mine.toml", &CROWDED.replace(from, to));
        let said = place.refuses(&["run", "mine.toml"]);
        assert_says(&said, &["Error: mine.toml: "]);
        assert_says(&said, parts);
    };
    refuses("minutes = 3", "minutes = 0", &["minutes = 0; it must be from 1"]);
    refuses("minutes = 3", "minuets = 3", &["minuets", "expected one of", "`minutes`"]);
    refuses("per_minute = 60", "per_minute = -1", &["arrivals 0: per_minute = -1; it must be from 0"]);
    refuses("per_minute = 60", "from = 1", &["arrivals 0: per_minute: missing; write"]);
    refuses("per_minute = 60", "csv = \"no.csv\"", &["arrivals 0: csv = \"no.csv\": cannot be read"]);
    refuses("colos = 2", "colos = 0", &["planet: colos = 0; it must be from 1 to 1000"]);
    refuses("zipf = 2", "storage_ms = [9, 5]", &["planet: storage_ms = [9, 5]; it must be the shortest"]);
    refuses("zipf = 2", "loss = 2.0", &["planet: loss = 2; it is a share, from 0 to 1"]);
    // The room's errors are those of the Worker's own parser.
    refuses(
        "total_active_users = 40",
        "total_active_users = 0",
        &["room: ", "total_active_users = 0", "Fix: "],
    );
    refuses("session_duration = 1", "sesion_duration = 1", &["sesion_duration", "Fix: ", "session_duration"]);
    assert_says(&place.refuses(&["run", "no.toml"]), &["no.toml: cannot be read"]);
    assert_says(
        &place.refuses(&["run", "no_such"]),
        &["no_such: neither a file nor a shipped scenario", "flash50"],
    );
}

#[test]
fn a_recorded_series_is_read_from_beside_the_scenario() {
    let place = Place::new("recorded");
    fs::create_dir(place.0.join("below")).unwrap();
    place.write("below/mine.toml", &CROWDED.replace("per_minute = 60", "csv = \"day.csv\""));
    place.write("below/day.csv", "minute,visitors\n0,30\n1,90\n");
    assert_says(&place.prints(&["run", "below/mine.toml"]), &["crowded"]);
    place.write("below/day.csv", "minute,visitors\n0,30\n1,many\n");
    assert_says(
        &place.refuses(&["run", "below/mine.toml"]),
        &["below/mine.toml: arrivals 0: csv = \"day.csv\": line 3: visitors = \"many\"; it must be a number"],
    );
}

#[test]
fn a_plan_says_when_people_wait_for_how_long_and_what_would_help() {
    let place = Place::new("plan");
    place.write("wrangler.toml", WRANGLER);
    place.write(
        "day.csv",
        "time,visitors\n2026-11-27 09:59,5\n2026-11-27 10:00,120\n2026-11-27 10:01,5\n2026-11-27 10:02,5\n",
    );
    let plan = ["plan", "--room", "shop", "--arrivals", "day.csv", "--colos", "2", "--html", "plan.html"];
    let answer = place.prints(&plan);
    assert_says(
        &answer,
        &[
            "Room shop: 40 active users, 30 new users per minute, sessions of 1 min",
            "Queueing starts at 10:00",
            "visitors wait (",
            "The longest wait",
            "leave the queue",
            "Nobody would wait with total_active_users = ",
            "That is $0.0",
        ],
    );
    assert_eq!(answer, place.prints(&plan), "the same plan twice");
    assert_says(&place.read("plan.html"), &["a day of room shop", "Queueing starts at 10:00", "<svg"]);
    // A room that is large enough.
    place.write("wrangler.toml", &WRANGLER.replace("= 40", "= 4000").replace("= 30", "= 3000"));
    let answer = place.prints(&plan);
    assert_says(&answer, &["Nobody waits."]);
    assert!(!answer.contains("Nobody would wait"), "{answer}");
}

#[test]
fn a_plan_is_asked_for_by_the_command_that_its_help_shows() {
    let help = Place::new("plan_help").prints(&["plan", "--help"]);
    assert_says(&help, &["Usage: npm run plan -- --room", "Times are UTC"]);
    assert!(!help.contains("anteroom-sim"), "{help}");
}

#[test]
fn a_plan_has_the_rooms_events_where_they_are_in_the_day() {
    let place = Place::new("plan_events");
    let event = "[vars.EVENT_DROP]\nroom = \"shop\"\nprequeue_start_time = \"2026-11-27T11:05:00+01:00\"\n\
                 event_start_time = \"2026-11-27T11:10:00+01:00\"\nevent_end_time = \"2026-11-27T12:00:00+01:00\"\n\
                 shuffle_at_event_start = true\n";
    let roomy = WRANGLER.replace("= 40", "= 4000").replace("= 30", "= 3000");
    place.write("wrangler.toml", &format!("{roomy}{event}"));
    let row = |minute: u32| format!("2026-11-27 10:{minute:02}:30,20\n");
    let minutes: String = (0..20).map(row).collect();
    place.write("day.csv", &format!("time,visitors\n{minutes}"));
    let plan = ["plan", "--room", "shop", "--arrivals", "day.csv", "--colos", "2"];
    assert_says(
        &place.prints(&plan),
        &[
            "The event drop is from 2026-11-27T10:10:00Z to 2026-11-27T11:00:00Z, with a prequeue from 2026-11-27T10:05:00Z on",
            "Queueing starts at 10:05 and ends at 10:10",
            "--without-events tries them",
        ],
    );
    let without = [&plan[..], &["--without-events"]].concat();
    assert_says(&place.prints(&without), &["Nobody waits."]);
    // The same hours where they are 9 o'clock in UTC.
    place.write("day.csv", &format!("time,visitors\n{}", minutes.replace(":30,", ":30+01:00,")));
    assert_says(&place.prints(&plan), &["The event drop is not in this day", "Nobody waits."]);
    for no_day in ["time,visitors\n10:00,20\n", "minute,visitors\n0,20\n"] {
        place.write("day.csv", no_day);
        assert_says(&place.refuses(&plan), &["day.csv: ", "the event drop", "(UTC)", "--without-events"]);
        assert_says(&place.prints(&without), &["Nobody waits."]);
    }
    place.write("wrangler.toml", &format!("{roomy}{}", event.replace("12:00:00", "11:00:00")));
    assert_says(&place.refuses(&plan), &["wrangler.toml: event drop: event_end_time", "Fix: "]);
}

#[test]
fn a_recorded_day_of_the_room_is_planned_as_it_was() {
    let place = Place::new("plan_history");
    place.write("wrangler.toml", WRANGLER);
    let minute = |minute: u32| match minute {
        10 => "2026-11-20T10:10:00Z,40,80,0,70,30,60\n".to_owned(),
        11 => "2026-11-20T10:11:00Z,40,0,30,0,20,0\n".to_owned(),
        _ => format!("2026-11-20T10:{minute:02}:00Z,5,0,0,0,0,0\n"),
    };
    let header =
        "time,new_users,joins,leavers,waiting_users,rehearsal_new_users,rehearsal_joins\n".to_owned();
    let day = header + &(0..30).map(minute).collect::<String>();
    place.write("day.csv", &day);
    let plan = |more: &[&str]| {
        place.prints(&[&["plan", "--room", "shop", "--arrivals", "day.csv", "--colos", "2"], more].concat())
    };
    assert_says(
        &plan(&[]),
        &[
            "Recorded: 250 visitors in 30 minutes from 2026-11-20T10:00:00 UTC on; 0 of them",
            "--without-rehearsals takes them out",
            "Patience as recorded: 140 s on average.",
            "Queueing starts at 10:10",
        ],
    );
    assert_says(
        &plan(&["--without-rehearsals"]),
        &["Recorded: 170 visitors", "Visitors of rehearsals are taken out."],
    );
    place.write("day.json", "{\"error\":\"Sign in\"}");
    let refuses = |arrivals: &str, parts: &[&str]| {
        let plan = ["plan", "--room", "shop", "--arrivals", arrivals, "--without-rehearsals"];
        assert_says(&place.refuses(&plan), parts);
    };
    refuses("day.json", &["day.json: ", "`fields`", "as it comes"]);
    refuses("small80", &["small80: --without-rehearsals: only a room's history"]);
    place.write("day.csv", &day.replace("10:11:00Z,40,0", "10:11:00Z,40,none"));
    refuses("day.csv", &["day.csv: line 13: joins = \"none\"; it must be a number"]);
}

#[test]
fn a_plan_refuses_with_file_field_and_fix() {
    let place = Place::new("plan_errors");
    place.write("wrangler.toml", WRANGLER);
    place.write("day.csv", "minute,visitors\n0,10\n");
    let refuses = |room: &str, more: &[&str], parts: &[&str]| {
        let arguments = [&["plan", "--arrivals", "day.csv", "--room", room], more].concat();
        assert_says(&place.refuses(&arguments), parts);
    };
    refuses("none", &[], &["wrangler.toml: has no room none; --room is one of: off, shop"]);
    refuses("wrong", &[], &["wrangler.toml: room wrong: total_active_users = 0", "Fix: "]);
    refuses("off", &[], &["room off: suspended = true", "set it to false"]);
    refuses("shop", &["--env", "staging"], &["wrangler.toml: --env staging is not an environment"]);
    refuses("shop", &["--env", "production"], &["has no room shop; --room is one of: sale"]);
    refuses("shop", &["--config", "no.toml"], &["no.toml: cannot be read", "--config"]);
    assert_says(
        &place.refuses(&["plan", "--room", "shop", "--arrivals", "no.csv"]),
        &["no.csv: cannot be read"],
    );
}

#[test]
fn floods_are_told_per_limiter_as_a_table_json_and_a_page() {
    let place = Place::new("guard");
    place.write("mine.toml", "concurrency = 2\nservice_ms = 50.0\nsharing = \"cores\"\n");
    let guard = |json: &str| {
        place.prints(&[
            "guard",
            "--origin",
            "mine.toml",
            "--test",
            "x2",
            "--test",
            "x10_unknown",
            "--max",
            "50",
            "--json",
            json,
            "--html",
            "page.html",
        ])
    };
    let table = guard("one.json");
    let lines: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with('x'))
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    let limiters = ["none", "static", "basic", "position_literal", "position", "newest_first"];
    let expected: Vec<Vec<&str>> = [("x2", "worker", 6), ("x10_unknown", "worker", 6), ("x2", "origin", 5)]
        .iter()
        .flat_map(|(test, line, count)| {
            limiters[..*count].iter().map(move |limiter| vec![*test, *limiter, *line])
        })
        .collect();
    assert_eq!(lines, expected);
    assert_eq!(table, guard("two.json"));
    assert_eq!(place.read("one.json"), place.read("two.json"));
    let runs: Vec<serde_json::Value> = serde_json::from_str(&place.read("one.json")).unwrap();
    assert_eq!(runs.len(), 17);
    let page = place.read("page.html");
    assert_eq!(page.matches("<figure>").count(), 3);
    assert_says(&page, &["x2, line in the workers", "completed per second", "The same as a table"]);
}

#[test]
fn floods_that_cannot_be_are_refused_with_what_to_change() {
    let place = Place::new("guard_errors");
    let refuses = |arguments: &[&str], parts: &[&str]| {
        assert_says(&place.refuses(&[&["guard"], arguments].concat()), parts);
    };
    refuses(&["--test", "x3"], &["--test x3: there is none", "x2", "halves"]);
    refuses(&["--min", "20", "--max", "10"], &["--min 20 is above --max 10"]);
    refuses(&["--limiter", "newest"], &["--limiter", "newest_first"]);
    refuses(&["--origin", "no.toml"], &["no.toml: cannot be read"]);
    let origin = |text: &str, parts: &[&str]| {
        place.write("mine.toml", text);
        assert_says(&place.refuses(&["guard", "--origin", "mine.toml"]), parts);
    };
    origin("concurency = 1\n", &["mine.toml: ", "concurency", "`concurrency`"]);
    origin("concurrency = 0\n", &["mine.toml: origin: concurrency = 0; it must be from 1"]);
    origin(
        "[[faults]]\nat = 1.0\nlasts = 1.0\nwhat = \"hang\"\n",
        &["mine.toml: faults: leave them out, the tests bring their own"],
    );
}
