//! A recorded day as the arrivals of a plan.

use anteroom::history::{Cells, Count, Query, Record};
use anteroom_sim::history::History;
use anteroom_sim::measure::Measured;
use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::{Arrivals, Recorded, Scenario};

/// A rush that the room cannot take, between two quiet times.
const DAY: &str = r#"
name = "day"
minutes = 40

[room]
total_active_users = 400
new_users_per_minute = 150
session_duration = 2

[[arrivals]]
per_minute = 60

[[arrivals]]
from = 10
until = 16
per_minute = 600

[visitors]
patience_seconds = 300
visit_seconds = 60

[planet]
colos = 3
requests_per_isolate = 0.4
"#;

fn run(scenario: &Scenario) -> Measured {
    Planet::new(scenario, None, None, 7).unwrap().with_history().run(&mut |_| {})
}

#[test]
fn a_day_that_is_written_and_read_again_has_the_same_arrivals() {
    let scenario = Scenario::parse(DAY).unwrap();
    let day = run(&scenario);
    let recorded = day.history.clone().unwrap();
    let read = History::parse(&recorded.csv()).unwrap();
    assert_eq!(read, recorded);
    let (came, uncertain) = read.arrivals(false);
    assert_eq!(came.len(), 40);
    // One may just be asking at the end.
    assert!((0.0..=1.0).contains(&(day.arrived as f64 - came.iter().sum::<f64>())));
    assert!(uncertain < 1e-9);
    assert!(day.queued > 1_000 && day.gave_up > 100, "{} {}", day.queued, day.gave_up);
    // Minute by minute: those who entered at once and those who were queued.
    let told = read.tell(false);
    for (minute, came) in came.iter().enumerate() {
        assert!((told.arrivals.per_minute(minute as f64 + 0.5) - came).abs() < 1e-9);
        let expected = if (10..16).contains(&minute) { 660.0 } else { 60.0 };
        assert!((came - expected).abs() < 5.0 * f64::sqrt(expected), "{minute}: {came}");
    }
    // Exponential patience is the time all waited, by those who left.
    assert!((250.0..350.0).contains(&told.visitors.patience_seconds), "{}", told.visitors.patience_seconds);

    // What happens to the same crowd again is nearly the same.
    let again = run(&Scenario {
        arrivals: vec![Arrivals {
            csv: Some("day.csv".to_owned()),
            recorded: told.arrivals,
            ..Arrivals::default()
        }],
        ..scenario
    });
    let close = |one: u64, other: u64| one.abs_diff(other) as f64 <= 0.1 * one as f64;
    assert!(close(day.queued, again.queued), "{} {}", day.queued, again.queued);
    assert!(
        close(day.wait_seconds[0], again.wait_seconds[0]),
        "{:?} {:?}",
        day.wait_seconds,
        again.wait_seconds
    );
}

#[test]
fn csv_json_and_a_scenarios_file_say_the_same() {
    let csv = "time,new_users,slots,joins,leavers,waiting_users\n2026-11-20T10:00:00Z,5,1,0,0,0\n\
               2026-11-20T10:01:00Z,10,1,30,0,20\n2026-11-20T10:02:00Z,10,,3,4,9\n2026-11-20T10:03:00Z,8,1,0,1,0\n";
    let json = r#"{"room":"shop","resolution":"minute","from":0,"to":1,"colo":null,
        "fields":["new_users","slots","joins","leavers","waiting_users"],
        "rows":[[1795168800000,5,1,0,0,0],[1795168860000,10,1,30,0,20],[1795168920000,10,null,3,4,9],
                [1795168980000,8,1,0,1,0],[1795169040000,99,1,0,0,0]],
        "settled_until":1795169040000}"#;
    let read = [csv, json].map(|text| History::parse(text).unwrap().arrivals(false));
    // In the second minute all 30 joined and ten of them entered; in the third, ten entered after waiting and three came.
    assert_eq!(read[0], (vec![5.0, 30.0, 3.0, 0.0], 0.0));
    assert_eq!(read[0], read[1]);
    assert!((Recorded::parse(csv).unwrap().per_minute(1.5) - 30.0).abs() < 1e-9);
    assert_eq!(History::parse(csv).unwrap().tell(false).arrivals.start, Recorded::parse(csv).unwrap().start);
}

#[test]
fn what_the_rooms_own_history_answers_is_read_as_it_comes() {
    // A rush of a minute, as Global records and answers it.
    let minutes = [(5, 0, 0, 0), (10, 30, 0, 20), (10, 3, 4, 9), (8, 0, 1, 0)];
    let first = 29_900_000;
    let mut rows = Vec::new();
    for (minute, (new_users, joins, leavers, waiting)) in (first..).zip(minutes) {
        let mut record = Record { minutes: 1, waiting, ..Record::default() };
        for (count, number) in
            [(Count::NewUsers, new_users), (Count::Joins, joins), (Count::Leavers, leavers)]
        {
            record.tallies.add(count.code(), number);
        }
        rows.push((minute, record));
    }
    let start = u64::from(first) * 60_000;
    let now = start + 6 * 60_000;
    let rows: Vec<(u32, &dyn Cells)> =
        rows.iter().map(|(minute, record)| (*minute, record as &dyn Cells)).collect();
    for format in ["json", "csv"] {
        let asked = |name: &str| match name {
            "from" => Some(start.to_string()),
            "to" => Some((start + 4 * 60_000).to_string()),
            "format" => Some(format.to_owned()),
            _ => None,
        };
        let answer = Query::read(asked, now).unwrap().answer("shop", &rows, Some(first), now, now);
        let history = History::parse(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
        assert_eq!(history.arrivals(false), (vec![5.0, 30.0, 3.0, 0.0], 0.0), "{answer}");
    }
}

#[test]
fn hours_are_arrivals_of_an_hour() {
    let csv = "time,new_users,joins,leavers,waiting_users\n2026-11-20T10:00:00Z,600,0,0,0\n2026-11-20T11:00:00Z,1200,0,0,0\n";
    let recorded = Recorded::parse(csv).unwrap();
    assert_eq!(
        (recorded.minutes(), recorded.per_minute(30.0), recorded.per_minute(90.0)),
        (120.0, 10.0, 20.0)
    );
}

#[test]
fn counts_that_do_not_fit_are_bounded_by_what_is_certain() {
    // A lost minute: people wait, and nobody has joined. The rest of the day is as it was.
    let csv = "time,new_users,joins,leavers,waiting_users\n2026-11-20T10:00:00Z,5,0,0,0\n2026-11-20T10:01:00Z,,,,\n\
               2026-11-20T10:02:00Z,10,4,0,50\n2026-11-20T10:03:00Z,10,2,45,0\n2026-11-20T10:04:00Z,7,0,0,0\n";
    let (came, uncertain) = History::parse(csv).unwrap().arrivals(false);
    assert_eq!(came, [5.0, 0.0, 14.0, 12.0, 7.0]);
    assert!(uncertain > 0.0);
}

#[test]
fn marked_visitors_can_be_taken_out() {
    let header = "time,new_users,joins,leavers,waiting_users,rehearsal_new_users,rehearsal_joins\n";
    let csv = format!(
        "{header}2026-11-20T10:00:00Z,50,0,0,0,30,0\n2026-11-20T10:01:00Z,50,100,0,60,20,40\n\
         2026-11-20T10:02:00Z,60,0,0,0,40,0\n2026-11-20T10:03:00Z,9,0,0,0,0,0\n"
    );
    let history = History::parse(&csv).unwrap();
    assert_eq!(history.arrivals(false).0, [50.0, 110.0, 0.0, 9.0]);
    let (real, _) = history.arrivals(true);
    assert_eq!((real[0], real[2], real[3]), (20.0, 0.0, 9.0));
    // Of 110, 40 were queued and marked, and 20 marked ones entered: of these, at most ten at once.
    assert!((50.0..=70.0).contains(&real[1]), "{real:?}");
    // Marks are reported some seconds late: they belong to the minute before.
    let late = format!(
        "{header}2026-11-20T10:00:00Z,5,0,0,0,0,0\n2026-11-20T10:01:00Z,45,0,0,0,20,0\n\
         2026-11-20T10:02:00Z,5,0,0,0,20,0\n2026-11-20T10:03:00Z,5,0,0,0,0,0\n"
    );
    assert_eq!(History::parse(&late).unwrap().arrivals(true).0, [5.0, 10.0, 0.0, 5.0]);
    assert!(history.tell(true).notes.concat().contains("taken out"));
    assert!(history.tell(false).notes.concat().contains("--without-rehearsals"));
}

#[test]
fn what_is_no_history_is_refused_with_line_field_and_fix() {
    let refuses = |text: &str, parts: &[&str]| {
        assert!(History::is_one(text), "{text}");
        let said = History::parse(text).unwrap_err().to_string();
        for part in parts {
            assert!(said.contains(part), "{part:?} is not in: {said}");
        }
    };
    let header = "time,new_users,joins,leavers,waiting_users\n";
    refuses("time,new_users,joins\n", &["leavers: missing", "ask for the history without fields="]);
    refuses("new_users,joins,leavers,waiting_users\n", &["time: missing"]);
    refuses(header, &["no rows", "another day"]);
    let row = |rows: &str, parts: &[&str]| refuses(&format!("{header}{rows}"), parts);
    row("2026-11-20T10:00:00Z,5,many,0,0\n", &["line 2: joins = \"many\"", "a number from 0"]);
    row("2026-11-20T10:00:00Z,-5,0,0,0\n", &["line 2: new_users = \"-5\""]);
    row("2026-11-20T10:00:00Z,NaN,0,0,0\n", &["line 2: new_users = \"NaN\""]);
    row("10:00,5,0,0,0\n", &["line 2: time = \"10:00\"", "such as 2026-11-20T10:00:00Z"]);
    row("2026-11-20T10:00:00Z,5\n", &["line: 2", "fields"]);
    let two = |second: &str| format!("2026-11-20T10:00:00Z,5,0,0,0\n2026-11-20T{second}:00Z,5,0,0,0\n");
    row(&two("10:05"), &["line 3: time", "a minute or an hour apart", "resolution=minute"]);
    row(&two("09:59"), &["line 3: time", "in order"]);
    row(
        &(two("10:01") + "2026-11-20T10:03:00Z,5,0,0,0\n"),
        &["line 4: time", "it must be 2026-11-20T10:02:00Z"],
    );
    refuses("{\"error\":\"401\"}", &["fields", "as it comes"]);
    let json =
        |more: &str| format!("{{\"fields\":[\"new_users\",\"joins\",\"leavers\",\"waiting_users\"],{more}}}");
    refuses(&json("\"rows\":[]"), &["no rows"]);
    refuses(&json("\"colo\":\"FRA\",\"rows\":[]"), &["colo = \"FRA\"", "ask without colo="]);
    refuses(&json("\"rows\":[[1,2]]"), &["rows 0: it must hold a time", "4 values"]);
    refuses(&json("\"rows\":[[60000,0,0,0,\"x\"]]"), &["rows 0: waiting_users = \"x\""]);
    refuses(&json("\"rows\":[[60000,0,0,0,-1]]"), &["rows 0: waiting_users = -1"]);
}
