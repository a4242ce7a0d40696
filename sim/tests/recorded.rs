//! What Global records of each minute is what visitors did in it, whatever gets lost, comes twice or restarts.

use anteroom::history::{CLASSES, Count, ENDED, Record, Totals, WAITS, quantile_ms};
use anteroom::room::SlotStrategy;
use anteroom_sim::measure::Measured;
use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::Scenario;

const STRATEGIES: [SlotStrategy; 2] = [SlotStrategy::Leases, SlotStrategy::Counters];
const PLANET: &str = "[planet]\ncolos = 3\nrequests_per_isolate = 0.4\n";
/// Whoever comes stays for two more pages, and hardly anybody loses patience. Nobody who waits sends two requests at once:
/// one may be let in and the other told to wait, and then it depends on the browser which of them counts.
const VISITORS: &str = "[visitors]\nvisit_seconds = 16\ngap_seconds = 8\nroaming = 0.05\n\
                        patience_seconds = 1000000\n";
/// A crowd that a room of 20 cannot take at once, and then nobody, until all of it is recorded: some wait for minutes, and
/// in a calm room reports may be five minutes late.
const CROWD: &str =
    "[[arrivals]]\nuntil = 1\nper_minute = 40\n[[arrivals]]\nfrom = 1\nuntil = 3\nper_minute = 30\n";

fn run(session: u32, parts: &[&str], strategy: SlotStrategy, seed: u64) -> Measured {
    let world = format!(
        "name = \"crowd\"\nminutes = 20\n[room]\ntotal_active_users = 20\nnew_users_per_minute = 20\n\
         session_duration = {session}\nrefresh_interval_seconds = 10\n{}",
        parts.concat()
    );
    let scenario = Scenario::parse(&world).unwrap();
    Planet::new(&scenario, Some(strategy), None, seed).unwrap().with_history().run(&mut |_| {})
}

fn all(measured: &Measured, count: Count) -> u64 {
    measured.recorded.iter().map(|(_, record)| record.count(count)).sum()
}

/// Nothing is lost and nothing counted twice.
fn assert_totals(measured: &Measured, what: &str) {
    assert_eq!(all(measured, Count::NewUsers), measured.admitted, "{what}: new users");
    assert_eq!(all(measured, Count::Joins), measured.queued, "{what}: joins");
    let waited = measured.queued - measured.gave_up - measured.waiting_at_end;
    assert_eq!(all(measured, Count::Waited), waited, "{what}: entered after waiting");
    let last = measured.last_minute.as_ref().unwrap();
    let totals = Totals::of(last).record;
    for count in [Count::NewUsers, Count::Joins, Count::Leavers, Count::Revoked, Count::WaitedSeconds] {
        assert_eq!(totals.count(count), all(measured, count), "{what}: since ever");
    }
}

/// How many entered so late in a minute that their permits may have been of the next one.
fn at_edge(measured: &Measured, of: u32) -> f64 {
    measured.entered_at_edges.iter().filter(|minute| **minute == of).count() as f64
}

/// Whoever came with the edge of the minute may be counted on either side of it: one, and all whose permits may have been of the
/// next minute.
fn assert_minutes(measured: &Measured, what: &str) {
    for truth in measured.history.as_ref().unwrap().rows() {
        let minute = (truth.at / 60_000) as u32;
        let record = measured.recorded.iter().find(|(of, _)| *of == minute);
        let record = record.map_or_else(Record::default, |(_, record)| record.clone());
        let what = format!("{what}, minute {minute}: {record:?} {truth:?}");
        let off = |count: Count, was: Option<f64>| record.count(count) as f64 - was.unwrap();
        let at_edge = |of| at_edge(measured, of);
        let new_users = off(Count::NewUsers, truth.new_users);
        assert!(new_users >= -1.0 - at_edge(minute) && new_users <= 1.0 + at_edge(minute - 1), "{what}");
        assert!(off(Count::Joins, truth.joins).abs() <= 1.0, "{what}");
    }
}

#[test]
fn a_minutes_record_tells_what_visitors_did_in_it() {
    for strategy in STRATEGIES {
        for seed in 0..40 {
            let what = format!("{strategy:?}, seed {seed}");
            let measured = run(1, &[PLANET, VISITORS, "revoked = 0.3\n", CROWD], strategy, seed);
            assert_totals(&measured, &what);
            assert_minutes(&measured, &what);
            assert!(measured.queued > 20 && all(&measured, Count::Revoked) > 5, "{what}");
            assert_eq!(all(&measured, Count::Leavers), measured.gave_up, "{what}: who gave up");
            for (minute, record) in &measured.recorded {
                let what = format!("{what}, minute {minute}: {record:?}");
                assert!(record.active_max >= record.active && record.active_max <= 20, "{what}");
                assert!(record.minutes == 0 || record.slots == 20 - record.active, "{what}");
            }
            for truth in measured.history.as_ref().unwrap().rows() {
                let minute = (truth.at / 60_000) as u32;
                let waiting = measured.recorded.iter().find(|(of, _)| *of == minute);
                let waiting = waiting.map_or(0, |(_, record)| record.waiting) as f64;
                let off = waiting - truth.waiting_users.unwrap();
                assert!(off >= -1.0 && off <= 1.0 + at_edge(&measured, minute), "{what}, minute {minute}");
            }
            // Every visit has ended: it is told once how long it was.
            let ended =
                |class| measured.recorded.iter().map(move |(_, record)| record.tallies.get(ENDED + class));
            let ended: i64 = (0..CLASSES as u64).flat_map(ended).sum();
            assert_eq!(ended, measured.admitted as i64, "{what}");
        }
    }
}

#[test]
fn lost_and_repeated_messages_and_restarts_change_no_minute() {
    for seed in 0..48 {
        let (objects, seconds) = match seed % 3 {
            0 => (vec![("global", 0)], 5),
            1 => (vec![("data_center", 0), ("data_center", 1)], 7),
            _ => (vec![("global", 0), ("data_center", 2)], 11),
        };
        let faults: String = (0..40)
            .flat_map(|time| objects.iter().map(move |(what, colo)| (time * seconds, what, colo)))
            .map(|(at, what, colo)| format!("[[faults]]\nat = {at}.001\nwhat = \"{what}\"\ncolo = {colo}\n"))
            .collect();
        let rough = "loss = 0.1\ntwice = 0.1\njitter_ms = 300\n";
        for strategy in STRATEGIES {
            let what = format!("{strategy:?}, seed {seed}");
            let parts = [PLANET, rough, VISITORS, "revoked = 0.3\n", CROWD, &faults];
            let measured = run(1, &parts, strategy, seed);
            assert_eq!(measured.active_overshoot, 0.0, "{what}");
            assert_totals(&measured, &what);
            assert_minutes(&measured, &what);
        }
    }
}

#[test]
fn those_who_close_the_page_or_stay_away_are_leavers_unless_they_come_back() {
    for strategy in STRATEGIES {
        for seed in 0..6 {
            let impatient = "patience_seconds = 40\nclosing = 0.3\n";
            let visitors = VISITORS.replace("patience_seconds = 1000000\n", impatient);
            let measured = run(1, &[PLANET, &visitors, CROWD], strategy, seed);
            let came = all(&measured, Count::Joins) + all(&measured, Count::Returns);
            let gone = all(&measured, Count::Waited) + all(&measured, Count::Leavers);
            assert_eq!(came, gone, "seed {seed}: whoever came has gone on or left");
            assert_eq!(all(&measured, Count::Joins), measured.queued, "seed {seed}");
            assert!(
                measured.gave_up > 5 && all(&measured, Count::Leavers) >= measured.gave_up,
                "seed {seed}"
            );
        }
    }
}

#[test]
fn times_are_told_within_their_class() {
    let measured = run(1, &[PLANET, VISITORS, CROWD], SlotStrategy::Leases, 3);
    let mut sum = Record::default();
    measured.recorded.iter().for_each(|(_, record)| sum.add(record));
    for (part, exact) in [(0.5, measured.wait_seconds[0]), (0.95, measured.wait_seconds[1])] {
        let (told, exact) = (quantile_ms(&sum.tallies, WAITS, part).unwrap(), exact as f64 * 1_000.0);
        // A class is a fifth wide.
        assert!(told <= exact * 1.25 + 1_500.0 && told >= exact * 0.78 - 1_500.0, "{part}: {told} {exact}");
    }
}

#[test]
fn when_everything_is_reported_the_room_knows_exactly_who_is_active_and_who_waits() {
    // One page each, and a session that outlives the test.
    let visitors = VISITORS.replace("visit_seconds = 16", "visit_seconds = 0");
    for strategy in STRATEGIES {
        for seed in 0..10 {
            for more in ["", "revoked = 0.5\npatience_seconds = 60\nclosing = 1.0\n"] {
                // Where nobody leaves, each number is waited for: one whose answer is given up counts for a session.
                let (deadline, visitors) = if more.is_empty() {
                    ("deadline_ms = 5000\n", visitors.clone())
                } else {
                    ("", visitors.replace("patience_seconds = 1000000\n", more))
                };
                let what = format!("{strategy:?}, seed {seed}, {more:?}");
                let measured = run(30, &[PLANET, deadline, &visitors, CROWD], strategy, seed);
                let (_, known) = measured.recorded.last().unwrap();
                let truth = measured.history.as_ref().unwrap().rows().last().unwrap();
                assert_eq!(known.active as f64, truth.active_users.unwrap(), "{what}");
                assert_eq!(known.waiting, measured.waiting_at_end, "{what}");
                if more.is_empty() {
                    assert_eq!(known.active, 20, "{what}: the others wait");
                    assert!(known.waiting > 20, "{what}");
                } else {
                    assert!(measured.admitted > 20, "{what}: slots are used again before a session is over");
                }
            }
        }
    }
}
