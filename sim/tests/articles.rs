//! What the 2023 article tells of the ways to hand out slots comes out of the simulator.

use anteroom::room::SlotStrategy;
use anteroom_sim::measure::Measured;
use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::Scenario;

/// A room of 1,000 slots, 300 new users a minute, in 5 colos, with some ten isolates each.
/// No answer comes too late: a single slow one would queue somebody in an empty room.
fn room(arrivals: &str) -> Scenario {
    Scenario::parse(&format!(
        "name = \"article\"\nminutes = 30\n[room]\ntotal_active_users = 1000\nnew_users_per_minute = 300\n\
         session_duration = 2\n[planet]\ncolos = 5\nrequests_per_isolate = 0.1\ndeadline_ms = 5000\n{arrivals}"
    ))
    .unwrap()
}

fn run(scenario: &Scenario, strategy: SlotStrategy) -> Measured {
    Planet::new(scenario, Some(strategy), None, 1).unwrap().run(&mut |_| {})
}

fn first_queued_at(scenario: &Scenario, strategy: SlotStrategy) -> f64 {
    run(scenario, strategy).first_queued_at.unwrap()
}

#[test]
fn slots_divided_among_workers_queue_early_and_counters_do_not() {
    let slowly_more = room("[[arrivals]]\nper_minute = 10\nto_per_minute = 265\n");
    let at = |strategy| first_queued_at(&slowly_more, strategy);
    assert!(at(SlotStrategy::WorkerSlots) < 0.8);
    assert!(at(SlotStrategy::AdaptedWorkerSlots) > at(SlotStrategy::WorkerSlots));
    assert!(at(SlotStrategy::Counters) > 0.95);
    assert!(at(SlotStrategy::Leases) > 0.95);
}

#[test]
fn more_slots_at_low_load_let_in_too_many_and_counters_do_not() {
    let spike =
        room("[[arrivals]]\nper_minute = 10\n[[arrivals]]\nfrom = 10\nuntil = 13\nper_minute = 1000\n");
    let over = |strategy| run(&spike, strategy).minute_overshoot;
    assert!(over(SlotStrategy::AdaptedWorkerSlots) > 0.2);
    // Isolates that have just begun are not known to the others yet; an answer may come with the edge of the minute.
    assert!(over(SlotStrategy::WorkerSlots) < 0.1);
    assert_eq!(over(SlotStrategy::Counters), 0.0);
    assert_eq!(over(SlotStrategy::Leases), 0.0);
}

#[test]
fn counters_as_the_text_reads_leave_a_tenth_of_a_full_room_empty() {
    let full = room("[[arrivals]]\nper_minute = 260\n");
    let literal = Planet::new(&full, None, None, 1).unwrap().with_literal_counters().run(&mut |_| {});
    let repaired = run(&full, SlotStrategy::Counters);
    assert!(literal.idle > 0.1, "{}", literal.idle);
    assert!(repaired.idle < 0.05, "{}", repaired.idle);
}
