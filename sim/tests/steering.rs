//! An operator changes the room while visitors come.

use anteroom_sim::measure::Measured;
use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::{Scenario, shipped};

fn run(scenario: &Scenario, seed: u64) -> Measured {
    Planet::new(scenario, None, Some(scenario.planet.colos.min(COLOS)), seed).unwrap().run(&mut |_| {})
}

/// Fewer than there would be: it takes its time.
const COLOS: usize = 8;

/// The most who were active from one second until another, and how many entered.
fn between(run: &Measured, from: u64, until: u64) -> (u64, u64) {
    let points = run.series.iter().filter(|(second, ..)| (from..until).contains(second));
    points.fold((0, 0), |(most, entered), (_, active, _, new)| (most.max(*active), entered + new))
}

#[test]
fn nobody_enters_a_room_that_was_closed_three_seconds_ago() {
    let run = run(&shipped("steer_close").unwrap(), 1);
    assert!(run.entered_after_closing_ms.unwrap() <= 3_000, "{:?}", run.entered_after_closing_ms);
    // Closed at 285 s, open again at 405 s.
    assert_eq!(between(&run, 290, 405).1, 0);
    assert!(between(&run, 406, 420).1 > 500, "{}", between(&run, 406, 420).1);
    assert!(run.active_overshoot <= 0.0 && run.minute_overshoot <= 0.0);
}

#[test]
fn nobody_enters_a_closed_room_in_colos_of_which_global_has_not_heard_for_long() {
    // It is closed after two hours instead of forty minutes: to some of its colos nobody has come for an hour.
    let mut closed = shipped("close_quiet").unwrap();
    closed.minutes = 150;
    (closed.steering[0].at, closed.steering[1].at) = (7_200.0, 7_800.0);
    for seed in [1, 2] {
        let run = Planet::new(&closed, None, Some(300), seed).unwrap().run(&mut |_| {});
        assert!(run.entered_after_closing_ms.unwrap() <= 3_000, "{:?}", run.entered_after_closing_ms);
        assert!(run.queued > 250, "{}", run.queued);
    }
}

#[test]
fn colos_that_nobody_visits_are_told_before_somebody_enters_there() {
    // Each colo has a visitor every few minutes, and sleeps in between.
    let quiet = r#"
        name = "quiet"
        minutes = 40
        room = { total_active_users = 1000, new_users_per_minute = 1000, session_duration = 1 }
        arrivals = [{ per_minute = 4 }]
        visitors = { visit_seconds = 0 }
        planet = { colos = 8, requests_per_isolate = 0.4, zipf = 0.0, location = "oc" }
        steering = [{ at = 600, set = { queue_all = true } }, { at = 1800, clear = ["queue_all"] }]
    "#;
    for seed in [1, 2, 24] {
        let run = run(&Scenario::parse(quiet).unwrap(), seed);
        assert!(run.entered_after_closing_ms.unwrap() <= 3_000, "{:?}", run.entered_after_closing_ms);
        assert!(run.queued > 40, "{}", run.queued);
        assert!(between(&run, 1_800, 2_400).1 > 20);
    }
}

#[test]
fn a_room_is_closed_where_messages_get_lost_too() {
    // One in five. Whoever comes then is judged by a worker that could not be told, if nobody else had been told.
    let quiet = r#"
        name = "lossy"
        minutes = 15
        room = { total_active_users = 1000, new_users_per_minute = 1000, session_duration = 1 }
        arrivals = [{ per_minute = 40 }]
        visitors = { visit_seconds = 0 }
        planet = { colos = 8, requests_per_isolate = 0.4, zipf = 0.0, loss = 0.2 }
        steering = [{ at = 300, set = { queue_all = true } }]
    "#;
    for seed in 1..=8 {
        let run = run(&Scenario::parse(quiet).unwrap(), seed);
        let after = run.entered_after_closing_ms.unwrap();
        assert!(after <= 3_000, "seed {seed}: {after} ms after closing somebody entered");
        assert!(run.queued > 200, "{}", run.queued);
    }
}

#[test]
fn halved_limits_hold_and_come_back() {
    let run = run(&shipped("steer_halve").unwrap(), 1);
    assert!(run.active_overshoot <= 0.0 && run.minute_overshoot <= 0.0);
    // Nobody is thrown out: it takes as long as sessions last.
    assert!(between(&run, 460, 580).0 <= 1_500);
    assert!(between(&run, 460, 580).1 > 500, "it is used");
    assert!(between(&run, 640, 1_000).0 > 2_900);
}

#[test]
fn a_room_that_is_off_counts_nobody_and_is_on_again_in_a_moment() {
    let run = run(&shipped("suspend_resume").unwrap(), 1);
    // Whoever waits goes past it with the next refresh.
    let waiting = |at: u64| run.series.iter().find(|(second, ..)| *second == at).unwrap().2;
    assert!(waiting(284) > 1_000);
    assert!(waiting(320) < 20, "{}", waiting(320));
    // A visitor or two enter in the moment in which their worker hears of it.
    assert!(between(&run, 290, 405).1 < 20);
    assert!(waiting(420) > 100);
    assert!(run.active_overshoot <= 0.0 && run.minute_overshoot <= 0.0);
}

#[test]
fn orders_that_no_operator_could_give_are_refused() {
    let refuses = |steering: &str, parts: &[&str]| {
        let text = format!(
            "name = \"wrong\"\nminutes = 1\nsteering = [{steering}]\narrivals = [{{ per_minute = 1 }}]\n\
             room = {{ total_active_users = 10, new_users_per_minute = 10 }}\n"
        );
        let said = Scenario::parse(&text).unwrap_err().to_string();
        for part in parts {
            assert!(said.contains(part), "{part:?} is not in: {said}");
        }
    };
    refuses("{ at = -1 }", &["steering 0: at = -1; it is in seconds"]);
    refuses("{ at = 1, set = { total_active_users = 0 } }", &["steering 0: total_active_users = 0", "Fix: "]);
    refuses("{ at = 1, set = { queue_all = 1 } }", &["steering 0: queue_all = 1"]);
    refuses(
        "{ at = 1, set = { session_duration = 5 } }",
        &["session_duration is not simulated", "queue_all"],
    );
    refuses("{ at = 1, clear = [\"message\"] }", &["message is not simulated"]);
    refuses("{ set = { queue_all = true } }", &["at"]);
}

/// A room of 500 with 255 in it, whose limit is halved at a second and given back 20 seconds later. Somebody comes three times a
/// second until another one, and goes away where there is no room. How many of them were queued.
fn queued_around_a_halved_limit(halved: u64, until: u64, seed: u64) -> u64 {
    let world = format!(
        "name = \"halved\"\nminutes = 3\n[room]\ntotal_active_users = 500\nnew_users_per_minute = 5000\n\
         session_duration = 10\n[planet]\ncolos = 3\nzipf = 0.0\nrequests_per_isolate = 3\nrestarts_per_hour = 0\n\
         [visitors]\nvisit_seconds = 600\ngap_seconds = 30\nleave_at_once = 1.0\n\
         [[arrivals]]\nuntil = 0.1\nper_minute = 2550\n\
         [[arrivals]]\nfrom = 0.1\nuntil = {}\nper_minute = 200\n\
         [[steering]]\nat = {halved}\nset = {{ total_active_users = 250 }}\n\
         [[steering]]\nat = {}\nclear = [\"total_active_users\"]\n",
        until as f64 / 60.0,
        halved + 20,
    );
    run(&Scenario::parse(&world).unwrap(), seed).queued
}

#[test]
fn all_of_a_halved_limit_is_back_three_seconds_after_it_is_cleared() {
    // Nobody asks Counters for permits while it is halved: they lose their memory.
    for (halved, seed) in (30..42).flat_map(|halved| [(halved, 1), (halved, 2), (halved, 3)]) {
        let in_force = halved + 20 + 3;
        let before = queued_around_a_halved_limit(halved, in_force, seed);
        assert!(before > 40, "seed {seed}: {before} were queued while it was halved");
        let later = queued_around_a_halved_limit(halved, in_force + 12, seed) - before;
        assert_eq!(later, 0, "seed {seed}, halved at {halved} s: queued though there was room");
    }
}
