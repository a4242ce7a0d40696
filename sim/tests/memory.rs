//! Memory does not grow with simulated time.
#![allow(missing_docs, clippy::pedantic)]

use std::alloc::System;

use anteroom::room::SlotStrategy;
use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::Scenario;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn memory_does_not_grow_with_simulated_time() {
    // A crowded room, whose visitors come, wait, leave and come back for hours.
    let scenario = Scenario::parse(
        "name = \"long\"\nminutes = 600\n[room]\ntotal_active_users = 90\nnew_users_per_minute = 90\n\
         session_duration = 1\n[[arrivals]]\nper_minute = 75\n[visitors]\nvisit_seconds = 60.0\npatience_seconds = 120.0\n\
         returning = 0.2\nparallel = 0.1\nroaming = 0.1\n[planet]\ncolos = 3\nrequests_per_isolate = 0.4\n",
    )
    .unwrap();
    for strategy in [SlotStrategy::Leases, SlotStrategy::Counters] {
        let mut held = Vec::with_capacity(4_000);
        let planet = Planet::new(&scenario, Some(strategy), None, 1).unwrap();
        let measured = planet.run(&mut |_| {
            let stats = MEMORY.stats();
            held.push(stats.bytes_allocated - stats.bytes_deallocated);
        });
        assert!(measured.queued > 5_000, "{measured:?}");
        let most = |part: &[usize]| part.iter().max().copied().unwrap_or(0);
        // The first part is what fills up: tables that grow once, the day's first isolates and objects.
        let third = held.len() / 3;
        let (before, after) = held[third..].split_at(third);
        assert!(
            most(after) <= most(before) * 115 / 100,
            "{strategy:?}: {} bytes at most in the second third, {} in the last",
            most(before),
            most(after)
        );
    }
}
