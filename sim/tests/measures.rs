//! What the measures count, and what the platform charges for it.

use anteroom::admission::StateKey;
use anteroom::protocol::Object;
use anteroom::room::Limits;
use anteroom_sim::measure::{Measure, Measured};
use anteroom_sim::planet::{Planet, START};
use anteroom_sim::price::{Billed, Usage};
use anteroom_sim::scenario::Scenario;
use anteroom_sim::table::{Case, Row, Run, goals, judge};

/// A room of so many users, of whom so many may come in a minute.
fn measure(users: u32) -> Measure {
    measure_of(&format!("total_active_users = {users}\nnew_users_per_minute = {users}"))
}

fn measure_of(room: &str) -> Measure {
    let scenario =
        format!("name = \"room\"\nminutes = 1\narrivals = [{{ per_minute = 0 }}]\n[room]\n{room}\n");
    Measure::new(&Scenario::parse(&scenario).unwrap().room(None).unwrap(), START)
}

fn finish(measure: Measure) -> Measured {
    measure.finish(START + 60_000, 0, &StateKey::default())
}

/// Somebody new enters whose request took so long.
fn enters(measure: &mut Measure, now: u64, latency: u64) {
    measure.arrived(now);
    measure.admitted(now, 0, 1, None, latency, None);
    measure.activated(now, false, 0);
}

fn is_queued(measure: &mut Measure, now: u64) {
    measure.arrived(now);
    measure.queued(now, 1);
}

#[test]
fn a_slot_that_nobody_takes_is_free_and_one_that_is_on_its_way_is_not() {
    for (latency, share, first) in
        [(Some(30), 0.0, 1.0), (Some(5), 0.25, 2.0 / 3.0), (None, 1.0 / 3.0, 2.0 / 3.0)]
    {
        let mut measure = measure(3);
        enters(&mut measure, START, 0);
        enters(&mut measure, START, 0);
        is_queued(&mut measure, START + 10);
        if let Some(latency) = latency {
            enters(&mut measure, START + 30, latency);
        }
        let measured = finish(measure);
        assert_eq!(
            (measured.false_exact, measured.first_queued_at),
            (Some(share), Some(first)),
            "{latency:?}"
        );
    }
}

#[test]
fn a_slot_for_some_of_those_who_wait_is_not_free() {
    let mut room = measure(3);
    enters(&mut room, START, 0);
    enters(&mut room, START, 0);
    enters(&mut room, START, 0);
    is_queued(&mut room, START + 1);
    room.expired(START + 2);
    is_queued(&mut room, START + 3);
    assert_eq!(finish(room).false_exact, Some(0.0));
    assert_eq!(finish(measure(101)).false_exact, None, "large rooms are judged by the adjusted figure");
}

#[test]
fn where_the_window_slides_no_slot_is_idle_in_a_minute_in_which_sixty_seconds_are_full() {
    for (window, share) in [("minute", 0.01), ("sliding", 0.005)] {
        let limits = "total_active_users = 100\nnew_users_per_minute = 10";
        let mut room = measure_of(&format!("{limits}\nrate_window = \"{window}\""));
        for _ in 0..10 {
            enters(&mut room, START + 40_000, 0);
        }
        is_queued(&mut room, START + 59_000);
        // In the second minute the ten count for 40 seconds more; in the third nobody does.
        for tick in 600..=1_800 {
            room.sample(START + tick * 100);
        }
        let idle = room.finish(START + 180_000, 0, &StateKey::default()).idle;
        assert!((idle - share).abs() < 0.0001, "{window}: {idle}");
    }
}

#[test]
fn whoever_is_queued_before_all_have_heard_of_an_operators_order_is_not_queued_beside_free_slots() {
    for (ordered_closed, queued_after_ms, share) in
        [(true, 1, 0.0), (true, 50_000, 0.0), (false, 1_999, 0.0), (false, 2_000, 1.0)]
    {
        let mut room = measure(1_000);
        room.steered(true, START);
        room.steered(ordered_closed, START + 10);
        is_queued(&mut room, START + 10 + queued_after_ms);
        assert_eq!(finish(room).false_adjusted, share, "{ordered_closed}, {queued_after_ms}");
    }
}

#[test]
fn whoever_enters_before_somebody_older_on_the_page_passes_them_unless_there_is_a_slot_for_each() {
    // Limits that follow an origin may be less than those of the room.
    for (users, in_force, share) in [(3, 3, 0.5), (1_000, 3, 0.5), (1_000, 1_000, 0.0)] {
        let mut measure = measure(users);
        measure.follows(Limits { total_active_users: in_force, new_users_per_minute: in_force });
        measure.queued(START, 7);
        measure.queued(START, 8);
        // Whoever refuses cookies has no place.
        measure.queued(START, u32::MAX);
        let enter = |measure: &mut Measure, bucket, queued: bool| {
            measure.admitted(START + 1, 0, bucket, queued.then_some((START, bucket)), 0, None);
        };
        enter(&mut measure, 9, false);
        enter(&mut measure, 8, true);
        enter(&mut measure, 7, true);
        enter(&mut measure, 9, false);
        assert_eq!(finish(measure).passed_any, share, "{in_force} of {users}");
    }
}

#[test]
fn a_large_room_too_is_as_full_at_the_first_queued_visitor_as_with_those_whose_slots_are_on_their_way() {
    let mut measure = measure(1_000);
    enters(&mut measure, START, 0);
    for queued in 10..20 {
        is_queued(&mut measure, START + queued);
    }
    // One request was under way when the first one was queued, the other was not.
    enters(&mut measure, START + 40, 35);
    enters(&mut measure, START + 40, 25);
    assert_eq!(finish(measure).first_queued_at, Some(2.0 / 1_000.0));
}

#[test]
fn a_wait_that_rises_counts_though_its_visitor_leaves() {
    let mut measure = measure(1_000);
    measure.queued(START, 1);
    measure.queued(START, 1);
    measure.rose();
    measure.gave_up(START + 30_000, 1, START);
    assert_eq!(finish(measure).estimate_rose, 0.5);
}

#[test]
fn an_object_is_billed_while_it_works_or_waits_and_once_at_a_time() {
    let mut measure = measure(10);
    measure.object_made(0, Object::Global);
    let at = START + 1_000;
    // A request of one millisecond, which it has behind it, and a call of 150 that begins with it.
    measure.object_request(0, at, (at - 1) * 1_000..at * 1_000);
    measure.object_calls(0, at, 1);
    // Meanwhile another request and a write are served; a timer outlives the call by 50.
    measure.object_request(0, at + 10, (at + 9) * 1_000..(at + 10) * 1_000);
    measure.object_writes(0, 3);
    measure.object_awake(0, at + 20, at + 26);
    measure.object_awake(0, at + 100, at + 200);
    measure.object_calls(0, at + 150, -1);
    // Idle in memory: nothing. An alarm is a request.
    measure.object_serves(0, at + 5_000, (at + 5_000) * 1_000..(at + 5_001) * 1_000);
    let measured = finish(measure);
    let [.., global] = measured.billed;
    assert_eq!((global.requests, global.rows), (3.0, 3.0));
    assert!((global.seconds - 0.202).abs() < 1e-9, "{}", global.seconds);
    assert!((measured.usage.gb_seconds - 0.202 * 0.128).abs() < 1e-9);
    assert_eq!(measured.object_requests_per_second, 2.0 / 60.0, "an alarm is nobody's request");
}

#[test]
fn a_call_that_its_object_does_not_outlive_is_billed_until_then() {
    let mut measure = measure(10);
    measure.object_made(0, Object::Anywhere);
    measure.object_calls(0, START, 1);
    measure.object_ends(0, START + 500);
    assert_eq!(finish(measure).billed[1].seconds, 0.5);
}

#[test]
fn the_price_is_that_of_the_price_list() {
    let month = Billed { requests: 3e6, seconds: 30.0 * 86_400.0, rows: 60e6 };
    let usage = Usage::of(20_000_000, &[month, Billed::default()]);
    assert!((usage.gb_seconds - 331_776.0).abs() < 1e-6);
    let cents = |dollars: f64| (dollars * 100.0).round() as u64;
    assert_eq!(usage.parts(1.0).map(cents), [600, 40, 45, 415, 6_000]);
    assert_eq!(cents(usage.dollars()), 7_100);
    // 10 M requests, 2 M requests to objects and 10 M rows are not included; twice as much includes as much as once.
    assert_eq!(cents(usage.beyond_included(1.0)), 300 + 30 + 1_000);
    assert_eq!(cents(usage.beyond_included(2.0)), 900 + 20 + 75 + 329 + 7_000);
}

fn run(scenario: &str) -> Measured {
    Planet::new(&Scenario::parse(scenario).unwrap(), None, None, 1).unwrap().run(&mut |_| {})
}

#[test]
fn a_room_that_nobody_visits_any_more_costs_nothing() {
    let visits = "name = \"visits\"\nminutes = 61\narrivals = [{ until = 1, per_minute = 20 }]\n\
                  [room]\ntotal_active_users = 1000\nnew_users_per_minute = 1000\nsession_duration = 1\n\
                  [planet]\ncolos = 2\n[visitors]\nvisit_seconds = 20.0\n";
    let (long, short) = (run(visits), run(&visits.replace("= 61", "= 11")));
    assert!(
        long.usage.object_requests > 20.0 && long.usage.rows_written > 1.0 && long.usage.gb_seconds > 0.0
    );
    assert_eq!(long.usage, short.usage);
}

#[test]
fn every_call_for_a_permit_counts_also_those_that_hold_one() {
    let measured = run("name = \"holds\"\nminutes = 10\narrivals = [{ per_minute = 600 }]\n\
                        [room]\ntotal_active_users = 100000\nnew_users_per_minute = 100000\nsession_duration = 1\n\
                        [planet]\ncolos = 3\n");
    let served = measured.object_requests_by[1] * 600.0;
    let called = measured.pool_calls * measured.admitted as f64;
    // A few are under way at the end.
    assert!(served > 100.0 && (called - served).abs() < 5.0, "{called} calls, {served} served");
}

#[test]
fn the_document_has_every_goal_with_its_exemptions() {
    let document = include_str!("../../docs/accuracy.md");
    assert!(document.contains(&goals()), "docs/accuracy.md should have:\n{}", goals());
}

#[test]
fn where_no_estimate_could_be_right_it_is_judged_by_what_it_is_beyond_the_least() {
    let flash = "name = \"flash\"\nminutes = 1\narrivals = [{ per_minute = 600 }]\n\
                 [room]\ntotal_active_users = 20\nnew_users_per_minute = 20\n[planet]\ncolos = 2\n";
    let (scenario, mut measured) = (Scenario::parse(flash).unwrap(), run(flash));
    let mut verdicts = |error, least| {
        (measured.estimate_error, measured.estimate_least_error) = (Some(error), Some(least));
        let runs = [Run {
            scenario: "flash".to_owned(),
            strategy: "leases",
            colos: 2,
            seed: 1,
            total_active_users: 20,
            new_users_per_minute: 20,
            measured: measured.clone(),
        }];
        let verdicts = judge(&[Row { runs: &runs, case: Case::of(&scenario, 20, 20) }]);
        let estimates = verdicts.iter().filter(|verdict| verdict.goal.starts_with("wait estimate"));
        estimates.map(|verdict| verdict.reached).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(0.36, 0.34), [Some(false), None], "it could be right");
    assert_eq!(verdicts(0.39, 0.36), [None, Some(true)]);
    assert_eq!(verdicts(0.42, 0.36), [None, Some(false)]);
}
