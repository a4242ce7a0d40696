//! Checks larger worlds than the tests do, each in every state: `cargo run --release -p anteroom-model`, with the names of
//! some, or all of them.

use std::process::ExitCode;

use anteroom_model::{World, worlds};
use stateright::{Checker, DiscoveryClassification, Model};

fn main() -> ExitCode {
    let worlds: [(&str, World); 9] = [
        ("one slot", worlds::giving(1, 2)),
        ("two slots", worlds::giving(2, 1)),
        ("stock", worlds::stock(1)),
        ("edge", worlds::edge_of_a_minute(1)),
        ("renewals", worlds::renewals(1)),
        ("uncounted", worlds::uncounted(2)),
        ("late reports", worlds::late_reports(1)),
        ("revocations", worlds::revocations(1)),
        ("orders", worlds::orders(2)),
    ];
    let names: Vec<String> = std::env::args().skip(1).collect();
    let mut all_hold = true;
    for (name, world) in
        worlds.into_iter().filter(|(name, _)| names.is_empty() || names.iter().any(|of| of == name))
    {
        let checker = world.checker().threads(2).spawn_bfs().join();
        println!("{name}: {} states", checker.unique_state_count());
        for (property, path) in checker.discoveries() {
            if matches!(checker.discovery_classification(property), DiscoveryClassification::Counterexample) {
                println!("  not always: {property}\n  {:?}", path.into_actions());
                all_hold = false;
            }
        }
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
