//! An origin that can do only so much, or falls ill: what the room makes of it. Goals of docs/adaptive.md.

use anteroom_sim::pages::{Passed, Point};
use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::{Scenario, shipped};

const SEEDS: [u64; 3] = [1, 2, 3];
/// When the shipped sales' origins fall ill and when they are well again, in seconds.
const ILL: u64 = 180;
const WELL: u64 = 480;

/// Nobody who is in or waits is ever taken for new.
fn run(scenario: &Scenario, seed: u64) -> Passed {
    let measured = Planet::new(scenario, None, None, seed).unwrap().run(&mut |_| {});
    assert_eq!((measured.thrown_out, measured.lost_places), (0, 0), "{}", scenario.name);
    measured.origin.unwrap()
}

/// Pages that did not come, of all that were asked for.
fn failed(point: &Point) -> f64 {
    (point.failed + point.late) as f64 / point.asked.max(1) as f64
}

/// How many active users the origin of `hidden_capacity` can serve: by the pages that it can do, and what an active user
/// asks for where nothing is in the way.
fn hidden_capacity() -> f64 {
    let mut free = shipped("hidden_capacity").unwrap();
    let origin = free.origin.as_mut().unwrap();
    let best = origin.best_per_second(0.0);
    origin.concurrency = 100_000;
    free.room.insert("total_active_users".to_owned(), toml::Value::Integer(3_000));
    free.room.insert("new_users_per_minute".to_owned(), toml::Value::Integer(6_000));
    free.room.remove("limits");
    let (mut asked, mut users) = (0.0, 0.0);
    // One run alone is up to two percent off.
    for seed in 1..=6 {
        let points = run(&free, seed).points;
        for point in points.iter().filter(|point| (360..600).contains(&point.second)) {
            asked += point.asked as f64 / 5.0;
            users += point.active as f64;
        }
    }
    best / (asked / users)
}

fn mean_limit(passed: &Passed, from: u64, until: u64) -> f64 {
    let points = passed.points.iter().filter(|point| (from..until).contains(&point.second));
    let limits: Vec<f64> = points.map(|point| f64::from(point.total_active_users)).collect();
    limits.iter().sum::<f64>() / limits.len() as f64
}

#[test]
fn adaptive_limits_find_a_hidden_capacity_in_five_minutes() {
    let capacity = hidden_capacity();
    for seed in SEEDS {
        let passed = run(&shipped("hidden_capacity").unwrap(), seed);
        let found = mean_limit(&passed, 300, 360) / capacity;
        let later = mean_limit(&passed, 360, 600) / capacity;
        let all = passed.between(0, 600);
        println!(
            "capacity {capacity:.0}: {found:.3} of it found, later {later:.3}, failed {:.4}",
            failed(&all)
        );
        assert!((found - 1.0).abs() <= 0.1 && (later - 1.0).abs() <= 0.1);
        assert!(failed(&all) <= 0.001, "the search itself costs nobody a page");
        let best = passed.between(360, 600).served as f64 / 240.0 / 200.0;
        println!("served {best:.3} of the origin's best");
        assert!(best >= 0.85);
    }
}

#[test]
fn adaptive_limits_follow_a_halving_within_a_minute() {
    let capacity = hidden_capacity() / 2.0;
    for seed in SEEDS {
        let passed = run(&shipped("halved_capacity").unwrap(), seed);
        let follows = mean_limit(&passed, 480, 540) / capacity;
        let after = passed.between(420, 720);
        println!("{follows:.3} of it, failed {:.4}, refused {}", failed(&after), after.refused);
        assert!((follows - 1.0).abs() <= 0.1);
        assert!(failed(&after) <= 0.05);
        assert_eq!(after.refused, 0);
    }
}

#[test]
fn an_ill_origin_costs_nobody_the_session_or_the_place_and_is_not_stormed_when_it_is_back() {
    for name in ["sale_slow", "sale_errors", "sale_hangs", "sale_flaps", "sale_dies"] {
        let scenario = shipped(name).unwrap();
        let most = scenario.room["total_active_users"].as_integer().unwrap() as u64;
        let passed = run(&scenario, 1);
        let usual = passed.between(ILL - 60, ILL);
        let back = passed.between(WELL, WELL + 10);
        let calm = passed.between(WELL + 60, WELL + 180);
        println!(
            "{name}: asked {} a second before, {} in the 10 s after; failed {:.3} while ill, {:.4} a minute after",
            usual.asked / 60,
            back.asked / 10,
            failed(&passed.between(ILL, WELL)),
            failed(&calm)
        );
        // What was under way while it was ill may still be late: its users wait for 15 seconds.
        let first_minute = passed.between(WELL + 15, WELL + 75);
        assert!(failed(&first_minute) <= 0.01, "{name}: {first_minute:?}");
        assert!(failed(&calm) <= 0.001, "{name}: {calm:?}");
        assert!(passed.points.iter().all(|point| point.active <= most), "{name}");
        let full = passed.points.iter().rev().take(12).all(|point| point.active * 10 >= most * 9);
        assert!(full, "{name}: in the end the room is full again");
    }
}
