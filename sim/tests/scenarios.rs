//! Scenario files: what ships, and recorded series.

use std::fs;
use std::path::Path;

use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::{Recorded, SHIPPED, SHIPPED_SERIES, Scenario, shipped};

/// New visitors per minute at some minutes, in hundredths.
fn rates<const N: usize>(recorded: &Recorded, minutes: [f64; N]) -> [u64; N] {
    minutes.map(|minute| (recorded.per_minute(minute) * 100.0).round() as u64)
}

#[test]
fn every_shipped_scenario_can_be_read_by_its_name() {
    for (name, _) in SHIPPED {
        let scenario = shipped(name).unwrap();
        assert_eq!(scenario.name, *name);
        assert!(scenario.about.ends_with('.'), "{name} says what it is about");
    }
}

#[test]
fn every_file_is_shipped() {
    let mut files: Vec<String> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut listed: Vec<String> = SHIPPED.iter().map(|(name, _)| format!("{name}.toml")).collect();
    listed.extend(SHIPPED_SERIES.iter().map(|(name, _)| (*name).to_owned()));
    files.sort();
    listed.sort();
    assert_eq!(files, listed);
}

#[test]
fn a_row_counts_until_the_next_one() {
    let recorded = Recorded::parse("minute,visitors\n0,10\n1,30\n5,40\n10,5\n").unwrap();
    let found = rates(&recorded, [0.0, 0.9, 1.0, 4.9, 5.0, 10.0, 14.9, 15.0]);
    assert_eq!(found, [1_000, 1_000, 750, 750, 800, 100, 100, 0]);
    assert!((recorded.minutes() - 15.0).abs() < 1e-9);
    assert_eq!(recorded.start, None);
}

#[test]
fn times_are_counted_from_the_first_one() {
    for text in [
        "time,visitors\n09:59,1\n10:01,2\n",
        "Visitors, Time\n1,2026-11-27 09:59\n2,2026-11-27 10:01\n",
        "time,visitors\n2026-11-27T09:59:00Z,1\n2026-11-27T10:01:00Z,2\n",
        "colo,time,visitors\nAMS,2026-11-27T09:59:00,1\nAMS,2026-11-27T10:01:00,2\n",
    ] {
        let recorded = Recorded::parse(text).unwrap();
        assert_eq!(rates(&recorded, [0.0, 2.0, 4.0]), [50, 100, 0], "{text}");
        let start = recorded.start.unwrap();
        assert_eq!((start.hour(), start.minute()), (9, 59));
    }
}

#[test]
fn a_series_that_cannot_be_names_line_and_column() {
    for (text, said) in [
        ("", "visitors: missing; the first line must be minute,visitors or time,visitors"),
        ("minute,users\n", "visitors: missing"),
        ("when,visitors\n", "minute: missing"),
        ("minute,visitors\n", "nobody comes"),
        ("minute,visitors\n0,1\n0,1\n", "line 3: minute = \"0\"; it must come after the line before"),
        ("minute,visitors\n-1,1\n", "line 2: minute = \"-1\""),
        ("minute,visitors\n0,-1\n", "line 2: visitors = \"-1\"; it must be a number from 0"),
        ("minute,visitors\n0,NaN\n", "line 2: visitors = \"NaN\""),
        ("time,visitors\nnoon,1\n", "line 2: time = \"noon\"; write 09:55 or 2026-11-27 09:55"),
        ("minute,visitors\n0,1,2\n", "line: 2"),
    ] {
        let error = Recorded::parse(text).unwrap_err().to_string();
        assert!(error.contains(said), "{said:?} is not in {error:?}");
    }
}

#[test]
fn as_many_come_as_were_recorded() {
    let text = r#"
        name = "recorded"
        minutes = 10
        room = { total_active_users = 100000, new_users_per_minute = 100000, session_duration = 30 }
        arrivals = [{ from = 1, csv = "day.csv" }]
        planet = { colos = 1 }
    "#;
    let file = |_: &str| Ok("minute,visitors\n0,500\n1,0\n2,1500\n4,0\n".to_owned());
    let scenario = Scenario::parse_with(text, &file).unwrap();
    let measured = Planet::new(&scenario, None, None, 1).unwrap().run(&mut |_| {});
    // 2,000, give or take five times the deviation of a Poisson process.
    assert!((1_775..=2_225).contains(&measured.arrived), "{}", measured.arrived);
}

#[test]
fn arrivals_come_again_each_period() {
    let text = |until: &str| {
        format!(
            "name = \"again\"\nminutes = 10\n\
             room = {{ total_active_users = 100, new_users_per_minute = 100, session_duration = 1 }}\n\
             arrivals = [{{ from = 1.5, every = 2, per_minute = 60{until} }}]\n"
        )
    };
    let scenario = Scenario::parse(&text(", until = 1.6")).unwrap();
    let comes = |second: &u32| scenario.arrivals_at(f64::from(*second) / 60.0)[0].1 > 0.0;
    let seconds: Vec<u32> = (0..600).filter(comes).collect();
    let expected: Vec<u32> = [90, 210, 330, 450, 570].iter().flat_map(|from| *from..*from + 6).collect();
    assert_eq!(seconds, expected);
    let error = Scenario::parse(&text("")).unwrap_err().to_string();
    assert!(error.contains("every = 2; it is in minutes"), "{error}");
}
