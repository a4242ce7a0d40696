//! Worlds drawn at random: the room keeps its promises in them, and a campaign finds a room that does not.

use anteroom_sim::campaign::{Breach, Promise, Tally, broken, draw, run, shrink};
use anteroom_sim::scenario::Scenario;

/// A few of those that a campaign draws.
const WORLDS: u64 = 500;

#[test]
fn a_room_keeps_its_promises_in_every_world_that_is_drawn() {
    let mut tally = Tally::default();
    for seed in 1..=WORLDS {
        let failed = tally.world(seed, true).unwrap();
        assert!(failed.is_none(), "npm run campaign -- --planets 1 --seed {seed}: {failed:?}");
    }
    assert_eq!((tally.worlds, tally.failed), (WORLDS, 0));
    assert!(tally.queued > 100 * WORLDS, "hardly anybody had to wait: {tally}");
}

#[test]
fn a_world_is_the_same_each_time_it_is_drawn_and_after_it_was_written_to_a_file() {
    for seed in 1..=20 {
        let written = toml::to_string(&draw(seed).unwrap()).unwrap();
        assert_eq!(written, toml::to_string(&draw(seed).unwrap()).unwrap());
        let read = Scenario::parse(&written).unwrap();
        let figures = |world: &Scenario| serde_json::to_string(&run(world).unwrap()).unwrap();
        assert_eq!(figures(&read), figures(&draw(seed).unwrap()), "seed {seed}");
    }
}

/// A crowd before a room whose pool loses what it has stored, among other things.
const FORGETFUL: &str = r#"
name = "forgetful"
minutes = 8
arrivals = [{ until = 5, per_minute = 500 }, { until = 3, per_minute = 20 }]
[room]
total_active_users = 60
new_users_per_minute = 200
session_duration = 1
[visitors]
visit_seconds = 120
roaming = 0.1
[planet]
colos = 4
twice = 0.1
[[faults]]
at = 8
what = "anywhere"
forgets = true
[[faults]]
at = 60
what = "counter"
[[faults]]
at = 200
what = "deploy"
"#;

#[test]
fn a_room_that_forgets_whom_it_let_in_is_caught_and_its_world_made_small() {
    let world = Scenario::parse(FORGETFUL).unwrap();
    let promises: Vec<Promise> =
        broken(&world, &run(&world).unwrap()).unwrap().iter().map(|breach| breach.promise).collect();
    assert!(promises.contains(&Promise::ActiveUsers), "{promises:?}");

    let smallest = shrink(&world, Promise::ActiveUsers).unwrap();
    let read = Scenario::parse(&toml::to_string(&smallest).unwrap()).unwrap();
    let breaches = broken(&read, &run(&read).unwrap()).unwrap();
    assert!(
        breaches.iter().any(|breach| breach.promise == Promise::ActiveUsers),
        "it still fails: {breaches:?}"
    );
    assert!(read.faults.iter().all(|fault| fault.forgets), "what did not matter is gone: {:?}", read.faults);
    assert!(read.minutes < 8 && read.arrivals.len() == 1, "{read:?}");
    let arrived = |world: &Scenario| run(world).unwrap().arrived;
    assert!(read.planet.twice <= 0.0 && arrived(&read) * 5 < arrived(&world), "{read:?}");
}

#[test]
fn two_instances_of_an_object_are_two_until_the_older_one_writes() {
    // By the seeds of a quiet room in which the older one has nothing to write, and of a crowd before it.
    let world = |what: &str| {
        let text = format!(
            "name = \"two\"\nminutes = 6\narrivals = [{{ until = 4, per_minute = 100 }}]\n[room]\n\
             total_active_users = 20\nnew_users_per_minute = 60\nsession_duration = 1\n[planet]\ncolos = 2\n\
             [[faults]]\nat = 75\nwhat = \"{what}\"\noverlaps = 8\n"
        );
        Scenario::parse(&text)
    };
    let plain = |what| {
        let mut world: Scenario = world(what).unwrap();
        world.faults[0].overlaps = 0.0;
        run(&world).unwrap()
    };
    for what in ["anywhere", "counter", "data_center"] {
        let measured = run(&world(what).unwrap()).unwrap();
        assert_eq!(broken(&world(what).unwrap(), &measured).unwrap(), [], "{what}");
        assert_ne!(measured.events, plain(what).events, "{what}: the older one has gone on");
    }
    assert!(world("global").unwrap_err().to_string().contains("overlaps"));
}

#[test]
fn whoever_looks_at_the_queue_once_is_known_to_have_been_there() {
    let text = "name = \"once\"\nminutes = 4\narrivals = [{ from = 3.8, per_minute = 60 }]\n[room]\n\
                total_active_users = 1\nnew_users_per_minute = 1\nsession_duration = 1\nqueue_all = true\n\
                [visitors]\nleave_at_once = 1\n";
    let world = Scenario::parse(text).unwrap();
    let measured = run(&world).unwrap();
    assert!(measured.miscounted_waiting > 0, "the room counts them for some time: {measured:?}");
    assert_eq!(broken(&world, &measured).unwrap(), []);
}

#[test]
fn clocks_that_jump_and_two_versions_side_by_side_break_nothing() {
    let world = |planet: &str, fault: &str| {
        let text = format!(
            "name = \"mixed\"\nminutes = 8\narrivals = [{{ until = 5, per_minute = 100 }}]\n[room]\n\
             total_active_users = 20\nnew_users_per_minute = 60\nsession_duration = 1\n[planet]\ncolos = 3\n{planet}\n\
             [visitors]\nroaming = 0.2\nrevoked = 0.3\ncopying = 0.5\nparallel = 0.3\n\
             [[faults]]\nat = 90\n{fault}\n"
        );
        let world = Scenario::parse(&text).unwrap();
        let measured = run(&world).unwrap();
        assert_eq!(broken(&world, &measured).unwrap(), [], "{planet} {fault}");
        (measured.events, measured.bytes)
    };
    let deploy = "what = \"deploy\"";
    let today = world("", deploy);
    assert_ne!(world("begins_old = true", deploy).1, today.1, "0.1.0 says less");
    let jumps = |by: i32| world("", &format!("what = \"clock\"\njumps_ms = {by}")).0;
    assert_ne!(jumps(400), jumps(-400));
}

/// The promises that are broken in a world.
fn broken_in(text: &str) -> Vec<Breach> {
    let world = Scenario::parse(text).unwrap();
    broken(&world, &run(&world).unwrap()).unwrap()
}

#[test]
fn a_clock_that_goes_back_by_seconds_delays_no_report() {
    let world = r#"
        name = "back"
        minutes = 7
        arrivals = [{ from = 2.3, until = 5.4, per_minute = 180 }]
        room = { total_active_users = 59, new_users_per_minute = 87, session_duration = 1 }
        visitors = { visit_seconds = 17, roaming = 0.36 }
        planet = { colos = 1 }
        faults = [{ at = 233, what = "clock", jumps_ms = -8000 }]
    "#;
    assert_eq!(broken_in(world), []);
}

#[test]
fn isolates_whose_clocks_have_come_apart_share_a_cache() {
    // Isolates of before go on from their latest time; new ones begin with the clock that has gone back.
    let world = |room: &str, per_minute: u32, reloading: f64, jumps_ms: i32| {
        format!(
            "name = \"apart\"\nminutes = 9\narrivals = [{{ from = 0.5, until = 7, per_minute = {per_minute} }}]\n\
             room = {{ total_active_users = 4, new_users_per_minute = 5, session_duration = 1, {room} }}\n\
             visitors = {{ visit_seconds = 30, gap_seconds = 5, patience_seconds = 150, reloading = {reloading} }}\n\
             planet = {{ colos = 1, requests_per_isolate = 1, isolate_idle_seconds = 60 }}\n\
             faults = [{{ at = 120, what = \"clock\", jumps_ms = {jumps_ms} }}]\n"
        )
    };
    let sessions = world("queueing_method = \"passthrough\"", 180, 0.0, -8500);
    assert_eq!(broken_in(&sessions), []);
    for strategy in ["leases", "counters", "adapted_worker_slots"] {
        let places = world(&format!("slot_strategy = \"{strategy}\""), 20, 0.3, -8500);
        assert_eq!(broken_in(&places), [], "{strategy}");
    }
}

#[test]
fn whom_a_clock_that_was_set_right_takes_for_gone_is_not_one_too_many() {
    // Who comes first after a clock has gone back is timed early, until Global's next answer.
    for per_minute in 50..70 {
        let world = format!(
            "name = \"early\"\nminutes = 7\narrivals = [{{ from = 1, until = 1.3, per_minute = 12 }}, \
             {{ from = 3.9, until = 5, per_minute = {per_minute} }}]\n\
             room = {{ total_active_users = 3, new_users_per_minute = 16, session_duration = 2 }}\n\
             visitors = {{ visit_seconds = 7, gap_seconds = 20, leave_at_once = 0.26 }}\n\
             planet = {{ colos = 1, jitter_ms = 1187 }}\n\
             faults = [{{ at = 228, what = \"clock\", jumps_ms = -5812 }}]\n"
        );
        assert_eq!(broken_in(&world), [], "{per_minute}");
    }
}

#[test]
fn an_order_that_a_deploy_swallows_is_given_again() {
    for at in [228.0, 228.3, 229.0, 230.0, 231.0] {
        let world = format!(
            "name = \"swallowed\"\nminutes = 6\n\
             arrivals = [{{ from = 1.5, until = 6, per_minute = 40 }}]\n\
             room = {{ total_active_users = 6, new_users_per_minute = 28, session_duration = 2 }}\n\
             planet = {{ colos = 10, service_micros = 200000 }}\n\
             visitors = {{ visit_seconds = 5, gap_seconds = 5 }}\n\
             faults = [{{ at = 228, what = \"deploy\" }}]\n\
             [[steering]]\nat = {at}\nset = {{ queue_all = true }}\n"
        );
        assert_eq!(broken_in(&world), [], "{at}");
    }
}

#[test]
fn whoever_waits_for_slow_storage_gets_in_by_any_strategy() {
    for strategy in ["leases", "counters"] {
        let world = format!(
            "name = \"slow\"\nminutes = 16\narrivals = [{{ from = 1, until = 9, per_minute = 6 }}]\n\
             planet = {{ colos = 1, storage_ms = [600, 1100] }}\n[room]\nslot_strategy = \"{strategy}\"\n\
             total_active_users = 1\nnew_users_per_minute = 1\nsession_duration = 1\n"
        );
        assert_eq!(broken_in(&world), [], "{strategy}");
    }
}

#[test]
fn whoever_comes_to_an_isolate_that_has_yet_to_hear_of_an_order_gets_in_by_one_permit() {
    let world = r#"
        name = "unheard"
        minutes = 12
        room = { total_active_users = 4, new_users_per_minute = 1, session_duration = 1, refresh_interval_seconds = 14 }
        arrivals = [{ from = 2, until = 3, per_minute = 6 }]
        planet = { colos = 10, location = "eeur", requests_per_isolate = 0.08, isolate_idle_seconds = 30 }
        visitors = { visit_seconds = 6, gap_seconds = 6, patience_seconds = 900, roaming = 0.3 }
        steering = [{ at = 58, set = { new_users_per_minute = 5 } }, { at = 89, clear = ["new_users_per_minute"] }]
    "#;
    assert_eq!(broken_in(world), []);
}
