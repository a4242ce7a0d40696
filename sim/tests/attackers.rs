//! Attackers beside the visitors of shipped scenarios: limits hold, and whoever asks more often wins nothing.
#![allow(missing_docs, clippy::pedantic)]

use anteroom_sim::measure::Measured;
use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::shipped;

/// One for every ten visitors.
const ATTACKERS: f64 = 0.1;

fn run(name: &str, attackers: f64) -> Measured {
    let mut scenario = shipped(name).unwrap();
    scenario.visitors.attackers = attackers;
    scenario.minutes = scenario.minutes.min(15);
    Planet::new(&scenario, None, Some(6), 1).unwrap().run(&mut |_| {})
}

#[test]
fn limits_hold_and_attackers_get_no_more_than_their_part_of_the_places() {
    for name in ["small", "random_rush", "parallel_roaming", "revoke", "forgetful"] {
        let (quiet, run) = (run(name, 0.0), run(name, ATTACKERS));
        let [active, minute, _] = run.users_over;
        assert_eq!([active, minute], [0, 0], "{name}: too many");
        assert_eq!(run.lost_places, 0, "{name}");
        let (came, entered) = run.attackers;
        let (of_places, of_admissions) =
            (came as f64 / run.arrived as f64, entered as f64 / run.admitted as f64);
        // By chance it may be this much more.
        let chance = 3.0 * (of_places / run.admitted as f64).sqrt();
        assert!(of_admissions <= of_places + chance, "{name}: {of_admissions:.3} of {of_places:.3}");
        assert!(
            run.requests * quiet.arrived > quiet.requests * run.arrived,
            "{name}: they do ask more often"
        );
    }
}
