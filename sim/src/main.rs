//! Runs scenarios and tells how exactly the room kept its limits.

use std::path::PathBuf;

use anteroom::config::SlotStrategy;
use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::Scenario;

#[expect(clippy::disallowed_methods, reason = "the clock is for the simulator's own speed")]
fn main() {
    let mut args = std::env::args().skip(1);
    let strategy = match args.next().as_deref() {
        Some("counters") => SlotStrategy::Counters,
        Some("worker_slots") => SlotStrategy::WorkerSlots,
        Some("adapted_worker_slots") => SlotStrategy::AdaptedWorkerSlots,
        _ => SlotStrategy::Leases,
    };
    let colos: usize = args.next().and_then(|text| text.parse().ok()).unwrap_or(30);
    let seeds: u64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    for path in args {
        let scenario = Scenario::read(&PathBuf::from(&path)).unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(2);
        });
        for seed in 1..=seeds {
            let begin = std::time::Instant::now();
            let planet = Planet::new(&scenario, Some(strategy), Some(colos), seed).unwrap_or_else(|error| {
                eprintln!("{error}");
                std::process::exit(2);
            });
            let measured = planet.run(&mut |_| {});
            let took = begin.elapsed().as_secs_f64();
            let percent = |part: f64| format!("{:.2}", part * 100.0);
            println!(
                "{:12} over {}/{}/{} false {}/{} idle {}/{} ({}m) passed {} first {} est {}/{} lat {}/{} calm {:?}/{} calls {:.2}/{:.2} obj {:.0} {:.1}/s busiest {:?} ref {} bytes {:?} wait {:?} mis {} q {}/{} adm {} left {} | {:.1} M events, {:.1} M/s",
                scenario.name,
                percent(measured.active_overshoot),
                percent(measured.minute_overshoot),
                percent(measured.sliding_overshoot),
                percent(measured.false_raw),
                percent(measured.false_adjusted),
                percent(measured.idle),
                percent(measured.idle_worst),
                measured.waiting_minutes,
                percent(measured.passed_over),
                measured.first_queued_at.map_or("-".to_owned(), |part| format!("{:.1}", part * 100.0)),
                measured.estimate_error.map_or("-".to_owned(), percent),
                percent(measured.estimate_rose),
                measured.latency_p50,
                measured.latency_p95,
                measured.calm_latency_p50,
                measured.calm_calls.map_or("-".to_owned(), |calls| format!("{calls:.2}")),
                measured.counter_calls,
                measured.pool_calls,
                measured.object_requests,
                measured.object_requests_per_second,
                measured.busiest,
                measured.refused,
                measured.bytes,
                measured.wait_seconds,
                measured.miscounted,
                measured.queued,
                measured.arrived,
                measured.admitted,
                measured.gave_up,
                measured.events as f64 / 1e6,
                measured.events as f64 / 1e6 / took,
            );
        }
    }
}
