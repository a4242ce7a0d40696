//! What is promised of rooms that are made at run time, on the way from the object that keeps them to 300 data centers.

use anteroom::machines::configuration::FRESH_MS;
use anteroom_sim::configured::{Figures, Setup, run};

/// In force everywhere after so long, in milliseconds.
const IN_FORCE_MS: u64 = 3_000;

fn ten_minutes(setup: Setup) -> Figures {
    run(&Setup { seconds: 600, ..setup })
}

#[test]
fn a_change_is_in_force_within_three_seconds_in_300_data_centers() {
    for seed in 1..=3 {
        let figures = ten_minutes(Setup { seed, ..Setup::default() });
        assert_eq!(figures.late_ms.len(), 300 * 10, "a change a minute");
        let last = figures.late(1.0);
        assert!((1_000..IN_FORCE_MS).contains(&last), "seed {seed}: {last} ms");
        assert_eq!((figures.unknown, figures.back), (0, 0));
    }
}

#[test]
fn requests_do_not_grow_with_rooms_visitors_or_changes() {
    let few = ten_minutes(Setup { rooms: 10, colos: 30, ..Setup::default() });
    let many = ten_minutes(Setup { colos: 30, ..Setup::default() });
    assert_eq!(few.calls, many.calls);
    let visited = ten_minutes(Setup { requests: 50.0, colos: 30, ..Setup::default() });
    let crowded = ten_minutes(Setup { requests: 200.0, isolates: 50, colos: 30, ..Setup::default() });
    for figures in [&few, &visited, &crowded] {
        // However many isolates a data center has, and whatever comes.
        let most = 30 * 600_000 / FRESH_MS;
        assert!(figures.calls < most, "{} of {most}", figures.calls);
    }
    // Each of the changes is fetched by each data center, and not much more often.
    let changed = 30 * 10;
    assert!((changed..changed * 3).contains(&many.documents), "{}", many.documents);
}

#[test]
fn who_makes_no_rooms_pays_for_two_calls_a_minute() {
    let none =
        ten_minutes(Setup { rooms: 0, change_every: 0, colos: 30, evictions: 0.0, ..Setup::default() });
    let most = 30 * 600 / 30;
    assert!((most / 2..most * 3 / 2).contains(&none.calls), "{} of {most}", none.calls);
    assert_eq!(none.documents, 0, "what is known already is not sent again");
}

#[test]
fn no_room_opens_or_vanishes_while_the_object_is_away() {
    let away = Setup { down: vec![(100, 220), (400, 403)], colos: 60, loss: 0.01, ..Setup::default() };
    let figures = ten_minutes(Setup { evictions: 0.0, ..away.clone() });
    assert_eq!((figures.unknown, figures.back), (0, 0));
    // Isolates that begin meanwhile go by the copy of their data center, and no visitor waits longer than for a call.
    let evicted = ten_minutes(Setup { evictions: 60.0, cache_losses: 0.0, ..away });
    assert_eq!((evicted.unknown, evicted.back), (0, 0));
    assert!(evicted.longest_wait_ms <= 520, "{} ms", evicted.longest_wait_ms);
}
