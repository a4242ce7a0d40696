//! The promises of `leases`, on small planets drawn at random: limits, order, nobody waits in vain, also when messages
//! get lost and objects break down.

use anteroom::room::SlotStrategy;
use anteroom_sim::measure::Measured;
use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::{Scenario, shipped};
use fastrand::Rng;

fn run(scenario: &str, seed: u64) -> Measured {
    run_by(scenario, SlotStrategy::Leases, seed)
}

fn run_by(scenario: &str, strategy: SlotStrategy, seed: u64) -> Measured {
    let scenario = Scenario::parse(scenario).unwrap();
    Planet::new(&scenario, Some(strategy), None, seed).unwrap().run(&mut |_| {})
}

/// A small room, more visitors than it takes, and what a test adds.
fn small_world(rng: &mut Rng, more: &str) -> (u64, u64, String) {
    let (active, new) = (rng.u64(2..60), rng.u64(2..60));
    let text = format!(
        "name = \"small world\"\nminutes = 6\n\
         [room]\ntotal_active_users = {active}\nnew_users_per_minute = {new}\nsession_duration = 1\n\
         refresh_interval_seconds = 10\n\
         [planet]\ncolos = {}\nrequests_per_isolate = 0.{}\n{more}\n\
         [visitors]\nvisit_seconds = 60.0\ngap_seconds = 10.0\nroaming = 0.05\nparallel = 0.1\n\
         [[arrivals]]\nper_minute = {}\n",
        rng.usize(1..5),
        rng.usize(3..10),
        rng.u64(10..150),
    );
    (active, new, text)
}

#[test]
fn both_limits_hold_in_any_small_world() {
    let mut rng = Rng::with_seed(1);
    for seed in 0..90 {
        let strategy = if seed < 60 { SlotStrategy::Leases } else { SlotStrategy::Counters };
        let (_, new, world) = small_world(&mut rng, "");
        let measured = run_by(&world, strategy, seed);
        assert_eq!(measured.active_overshoot, 0.0, "{world}");
        // A ticket of the last moment may be used in the next minute.
        let over = (measured.minute_overshoot * new as f64).round();
        assert!(over <= 1.0, "{over} too many in a minute\n{world}");
        // Everybody is in exactly one place; a few are just asking.
        let placed = measured.admitted + measured.gave_up + measured.waiting_at_end;
        assert!(
            (placed..=placed + 3).contains(&measured.arrived),
            "{} came, {placed} are somewhere",
            measured.arrived
        );
    }
}

#[test]
fn no_sixty_seconds_hold_more_than_the_limit_where_the_window_slides() {
    let mut rng = Rng::with_seed(3);
    let mut queued = 0;
    for seed in 0..60 {
        // Slots enough, so that it is the rate that refuses; a crowd for half of each minute.
        let new = rng.u64(2..60);
        let mut world = format!(
            "name = \"sliding\"\nminutes = 6\n\
             [room]\nslot_strategy = \"leases\"\nrate_window = \"sliding\"\ntotal_active_users = {}\n\
             new_users_per_minute = {new}\nsession_duration = 1\nrefresh_interval_seconds = 10\n\
             [planet]\ncolos = {}\nrequests_per_isolate = 0.{}\nloss = 0.1\ntwice = 0.1\njitter_ms = 300\n\
             [visitors]\nvisit_seconds = 30.0\ngap_seconds = 10.0\nroaming = 0.05\nparallel = 0.1\n\
             patience_seconds = 20.0\n",
            new * 5,
            rng.usize(1..5),
            rng.usize(3..10),
        );
        for minute in 0..6 {
            let from = f64::from(minute) + rng.f64() * 0.5;
            let until = from + 0.5;
            let rate = rng.u64(0..new * 4);
            world += &format!("[[arrivals]]\nfrom = {from}\nuntil = {until}\nper_minute = {rate}\n");
        }
        for _ in 0..rng.usize(0..4) {
            let what = ["anywhere", "counter"][rng.usize(0..2)];
            world += &format!("[[faults]]\nat = {}.0\nwhat = \"{what}\"\n", rng.u64(20..300));
        }
        let measured = run(&world, seed);
        let over = (measured.sliding_overshoot * new as f64).round();
        // A ticket of a second's last moment may be used in the next one.
        assert!(over <= 1.0, "seed {seed}: {over} too many in 60 seconds\n{world}");
        queued += measured.queued;
    }
    assert!(queued > 1_000, "only {queued} had to wait: the limit was hardly tried");
}

/// Messages are up to 0.3 seconds late there. If the slot of a session that has ended were given again after a tenth of a second,
/// one too many would be inside with each of these seeds.
#[test]
fn a_session_renewed_at_its_very_end_keeps_its_slot() {
    let world = "name = \"renewed late\"\nminutes = 10\n\
         [room]\ntotal_active_users = 300\nnew_users_per_minute = 2000\nsession_duration = 1\n\
         [planet]\ncolos = 5\njitter_ms = 300\n\
         [visitors]\nvisit_seconds = 600\ngap_seconds = 50\n\
         [[arrivals]]\nper_minute = 600\n";
    for seed in [14, 21, 28, 30, 38, 47, 66, 95] {
        let measured = run(world, seed);
        assert_eq!(measured.active_overshoot, 0.0, "seed {seed}");
        assert!(measured.idle < 0.02 && measured.waiting_minutes > 0, "the room was hardly full");
    }
}

/// Eight quiet colos are cut off there one after the other, for 25 seconds each, while somebody comes for each slot that becomes free.
#[test]
fn a_session_that_a_colo_cannot_tell_of_keeps_its_slot() {
    let mut world = "name = \"cannot tell\"\nminutes = 12\n\
         [room]\ntotal_active_users = 40\nnew_users_per_minute = 200\nsession_duration = 1\n\
         [planet]\nrestarts_per_hour = 0\n\
         [visitors]\nvisit_seconds = 600\ngap_seconds = 40\npatience_seconds = 400\n\
         [[arrivals]]\nper_minute = 60\n"
        .to_owned();
    for number in 0..8 {
        let (at, colo) = (240 + number * 50, 3 + number * 2);
        world += &format!("[[faults]]\nat = {at}\nlasts = 25\nwhat = \"data_center\"\ncolo = {colo}\n");
    }
    for seed in [9, 14, 15, 16, 22, 35, 36, 42, 87, 97, 100, 108] {
        let measured = run(&world, seed);
        assert_eq!(measured.active_overshoot, 0.0, "seed {seed}");
        assert!(measured.waiting_minutes > 5, "the room was hardly full");
    }
}

/// A session ends every ten seconds there. While who waits came every 20 seconds, 3.7 % of the slots stood idle.
#[test]
fn in_a_small_room_somebody_comes_for_each_slot() {
    let world = "name = \"twelve\"\nminutes = 30\n\
         [room]\ntotal_active_users = 12\nnew_users_per_minute = 24\nsession_duration = 1\n\
         [visitors]\nvisit_seconds = 60\ngap_seconds = 10\npatience_seconds = 240\n\
         [[arrivals]]\nper_minute = 4.2\n\
         [[arrivals]]\nfrom = 5\nuntil = 5.05\nevery = 10\nper_minute = 480\n";
    let measured: Vec<Measured> = (1..=6).map(|seed| run(world, seed)).collect();
    assert!(
        measured.iter().all(|measured| measured.active_overshoot == 0.0 && measured.waiting_minutes >= 3)
    );
    let idle = measured.iter().map(|measured| measured.idle).sum::<f64>() / 6.0;
    assert!(idle < 0.02, "{idle}");
}

/// Global stores a report that another one follows soon after 15 seconds only. Of what it has heard since, it knows nothing after a
/// restart: nor that a session goes on which has seemed to end.
#[test]
fn a_session_renewed_before_global_restarts_keeps_its_slot() {
    let mut world = "name = \"forgets renewals\"\nminutes = 6\n\
         [room]\ntotal_active_users = 500\nnew_users_per_minute = 3000\nsession_duration = 1\n\
         [planet]\ncolos = 30\n\
         [visitors]\nvisit_seconds = 600\ngap_seconds = 50\n\
         [[arrivals]]\nper_minute = 1000\n"
        .to_owned();
    for at in (95..=345).step_by(33) {
        world += &format!("[[faults]]\nat = {at}.0\nlasts = 0.0\nwhat = \"global\"\n");
    }
    for seed in 9..=16 {
        let measured = run(&world, seed);
        assert_eq!(measured.active_overshoot, 0.0, "seed {seed}");
        assert!(measured.idle < 0.02 && measured.waiting_minutes > 0, "the room was hardly full");
    }
}

/// Data centers refuse most reports there, so some come seven seconds late. If those who have entered with a permit were taken to be
/// counted by six seconds after their minute, three to six too many would be inside with each of the first eight seeds; if it were
/// forgotten after a minute how late reports are, one to four with the last three.
#[test]
fn whose_report_is_refused_again_and_again_keeps_their_slot() {
    let world = "name = \"refused reports\"\nminutes = 5\n\
         [room]\ntotal_active_users = 135\nnew_users_per_minute = 260\nsession_duration = 1\n\
         disable_session_renewal = true\nrefresh_interval_seconds = 8\nqueueing_method = \"random\"\n\
         [planet]\ncolos = 11\nanywhere_delay_ms = 220\nservice_micros = 25000\nqueue_ms = 600\n\
         requests_per_isolate = 0.24\n\
         [visitors]\nvisit_seconds = 22\ngap_seconds = 5\npatience_seconds = 145\n\
         [[arrivals]]\nfrom = 0.7\nuntil = 2.6\nper_minute = 2200\ncolos = \"even\"\n";
    for seed in [3, 7, 15, 17, 21, 23, 29, 38, 199, 338, 353] {
        let measured = run(world, seed);
        assert!(measured.refused > 1_000, "objects had too little to do");
        assert_eq!(measured.users_over[0], 0, "seed {seed}");
    }
}

#[test]
fn lost_and_late_messages_and_broken_objects_cost_waiting_not_the_limits() {
    let mut rng = Rng::with_seed(2);
    for seed in 0..60 {
        let strategy = if seed < 40 { SlotStrategy::Leases } else { SlotStrategy::Counters };
        let loss = rng.f64() * 0.3;
        let more = format!("loss = {loss}\ntwice = 0.1\njitter_ms = 300");
        let (_, _, mut world) = small_world(&mut rng, &more);
        for _ in 0..rng.usize(0..4) {
            let what = ["global", "anywhere", "counter", "data_center"][rng.usize(0..4)];
            let lasts = if rng.bool() { 0 } else { rng.u64(1..20) };
            world +=
                &format!("[[faults]]\nat = {}.0\nlasts = {lasts}.0\nwhat = \"{what}\"\n", rng.u64(20..300));
        }
        let measured = run_by(&world, strategy, seed);
        assert_eq!(measured.active_overshoot, 0.0, "seed {seed}\n{world}");
    }
}

/// What `tests/edge/faults.test.mjs` does to a few objects of the real runtime, done to each of them.
#[test]
fn objects_that_are_silent_or_restart_again_and_again_forget_nobody_and_recover() {
    let room = "name = \"ordeal\"\nminutes = 5\n[room]\ntotal_active_users = 6\nnew_users_per_minute = 60\n\
                session_duration = 1\nrefresh_interval_seconds = 10\n[planet]\ncolos = 3\nrequests_per_isolate = 0.4\n[visitors]\n\
                visit_seconds = 12.0\ngap_seconds = 3.0\nroaming = 0.1\nparallel = 0.25\n\
                [[arrivals]]\nuntil = 0.34\nper_minute = 90\n[[arrivals]]\nfrom = 1\nper_minute = 10\n";
    let fault = |at, lasts, what, colo| {
        format!("[[faults]]\nat = {at}.0\nlasts = {lasts}.0\nwhat = \"{what}\"\ncolo = {colo}\n")
    };
    let everywhere = |at, lasts, what| (0..3).map(move |colo| fault(at, lasts, what, colo));
    for what in ["counter", "anywhere", "data_center", "global"] {
        let silent = [60, 118].into_iter().flat_map(|at| everywhere(at, 20, what)).collect::<String>();
        let restarts = (60..80).chain(118..138).step_by(5).flat_map(|at| everywhere(at, 0, what)).collect();
        for (how, faults) in [("silent", silent), ("restarting", restarts)] {
            for strategy in [SlotStrategy::Leases, SlotStrategy::Counters] {
                for seed in 0..50 {
                    let name = format!("{what} {how}, {strategy:?}, seed {seed}");
                    let measured = run_by(&format!("{room}{faults}"), strategy, seed);
                    assert!(measured.queued > 0 && measured.admitted > 12, "{name}");
                    assert_eq!(measured.active_overshoot, 0.0, "{name}");
                    assert_eq!(measured.minute_overshoot, 0.0, "{name}");
                    let later = measured.series.iter().filter(|(second, ..)| *second >= 200);
                    // By `counters`, a number whose answer comes too late counts for a session.
                    let full = if strategy == SlotStrategy::Leases { 6..=6 } else { 5..=6 };
                    let most = later.map(|(_, active, ..)| *active).max().unwrap();
                    assert!(full.contains(&most), "{name}: full again, {most}");
                }
            }
        }
    }
}

/// A room of 1,000, in 5 colos, with a crowd of so many a minute and what a test adds. It can take about 200 a minute.
fn room_of_1000(per_minute: u32, more: &str) -> Measured {
    let world = format!(
        "name = \"room\"\nminutes = 14\n[room]\ntotal_active_users = 1000\nnew_users_per_minute = 400\n\
         session_duration = 2\n[planet]\ncolos = 5\nrequests_per_isolate = 0.4\n[[arrivals]]\nper_minute = {per_minute}\n{more}"
    );
    run(&world, 1)
}

#[test]
fn a_silent_pool_queues_nobody_whom_its_colos_can_let_in() {
    let measured = room_of_1000(120, "[[faults]]\nat = 495\nlasts = 20\nwhat = \"anywhere\"\n");
    assert!(measured.admitted > 1_000);
    assert_eq!((measured.active_overshoot, measured.minute_overshoot), (0.0, 0.0));
    let most = measured.arrived / 500;
    assert!(measured.queued <= most, "{} of {} were queued", measured.queued, measured.arrived);
}

#[test]
fn a_colo_that_dies_neither_breaks_the_limits_nor_empties_the_room() {
    let dies = "[[faults]]\nat = 615\nlasts = 86400\nwhat = \"colo\"\ncolo = 0\n";
    let measured = room_of_1000(280, dies);
    assert!(measured.waiting_minutes >= 5);
    assert_eq!(measured.active_overshoot, 0.0);
    assert!(measured.idle <= 0.03, "{} of the room stood idle", measured.idle);
}

#[test]
fn whom_a_colo_had_not_reported_when_it_died_counts_for_a_session() {
    // Few of them come again, so no other colo tells of them.
    let world = "name = \"filling room\"\nminutes = 6\n[room]\ntotal_active_users = 300\nnew_users_per_minute = 150\n\
                 [planet]\ncolos = 30\n[visitors]\nvisit_seconds = 10.0\ngap_seconds = 6.0\n\
                 [[arrivals]]\nfrom = 1.0\nuntil = 5.0\nper_minute = 300\n\
                 [[faults]]\nat = 110\nwhat = \"colo\"\ncolo = 3\n";
    for seed in 1..=16 {
        let measured = run(world, seed);
        assert!(measured.queued > 100);
        assert_eq!(measured.active_overshoot, 0.0, "seed {seed}");
    }
}

#[test]
fn a_permit_that_took_longer_than_its_minute_lets_nobody_in_also_after_a_call_that_failed() {
    let world = "name = \"slow storage\"\nminutes = 6\n\
        [room]\ntotal_active_users = 211\nnew_users_per_minute = 71\nsession_duration = 1\nrefresh_interval_seconds = 15\n\
        [planet]\ncolos = 2\nstorage_ms = [26, 750]\nrequests_per_isolate = 7.0\n\
        [visitors]\nvisit_seconds = 4.5\ngap_seconds = 5.3\npatience_seconds = 40.0\n\
        [[arrivals]]\nfrom = 1.95\nuntil = 3.0\nper_minute = 1126.0\ncolos = \"even\"\n";
    // With these seeds 4 to 8 too many entered: their first calls had failed, and they were not asked for once more.
    for seed in [11, 15, 16, 46] {
        let over = run(world, seed).users_over;
        // A permit of the last moment may be used in the next minute.
        assert!(over[0] == 0 && over[1] <= 1, "seed {seed}: {over:?}");
    }
}

#[test]
fn a_number_of_a_counter_that_took_longer_than_its_minute_lets_nobody_in() {
    // With these seeds one too many entered in a minute.
    for seed in [10, 11] {
        let world = shipped("sd60").unwrap();
        let planet = Planet::new(&world, Some(SlotStrategy::Counters), Some(30), seed).unwrap();
        let measured = planet.run(&mut |_| {});
        assert!(measured.queued > 10_000);
        assert_eq!(measured.users_over[..2], [0, 0], "seed {seed}");
    }
}

#[test]
fn a_deploy_in_a_full_room_costs_waiting_not_the_limits() {
    let measured = room_of_1000(280, "[[faults]]\nat = 615\nwhat = \"deploy\"\n");
    assert!(measured.waiting_minutes >= 5);
    assert_eq!((measured.active_overshoot, measured.minute_overshoot), (0.0, 0.0));
    assert!(measured.idle <= 0.03, "{} of the room stood idle", measured.idle);
}

#[test]
fn shown_waits_seldom_rise_and_are_near_the_truth_in_a_crowd() {
    let measured = room_of_1000(60, "[[arrivals]]\nfrom = 5\nuntil = 7\nper_minute = 900\n");
    assert!(measured.queued > 1_000);
    assert!(measured.estimate_rose <= 0.1, "{} rose", measured.estimate_rose);
    let error = measured.estimate_error.unwrap();
    assert!(error <= 0.4, "the median error was {error}");
}

#[test]
fn who_refuses_cookies_does_not_keep_the_room_idle() {
    let measured = room_of_1000(280, "[visitors]\ncookieless = 0.2\n");
    assert!(measured.waiting_minutes >= 5);
    assert_eq!(measured.active_overshoot, 0.0);
    assert!(measured.idle <= 0.08, "{} of the room stood idle", measured.idle);
}

#[test]
fn nobody_is_queued_while_there_is_room_for_all() {
    for seed in 0..10 {
        let measured = run(
            "name = \"half full\"\nminutes = 6\n[room]\ntotal_active_users = 60\nnew_users_per_minute = 60\n\
             session_duration = 1\n[planet]\ncolos = 5\nrequests_per_isolate = 0.4\n[visitors]\nvisit_seconds = 30.0\n\
             gap_seconds = 10.0\n[[arrivals]]\nper_minute = 20\n",
            seed,
        );
        assert_eq!(measured.queued, 0, "seed {seed}");
        assert!(measured.admitted > 80);
    }
}

#[test]
fn a_restart_of_global_queues_nobody_while_there_is_room_for_all() {
    // At 97 % of what it can take. Sessions that have ended since the last stored report may have been renewed.
    for seed in 1..=3 {
        let measured = run(
            "name = \"steady\"\nminutes = 12\nbelow_limits = true\n[room]\ntotal_active_users = 6000\n\
             new_users_per_minute = 3000\nsession_duration = 2\n[planet]\ncolos = 200\nrestarts_per_hour = 0.0\n\
             [[arrivals]]\nper_minute = 1221\n\
             [[faults]]\nat = 545\nwhat = \"global\"\n[[faults]]\nat = 630\nwhat = \"global\"\n",
            seed,
        );
        assert_eq!(measured.queued, 0, "seed {seed}");
        assert_eq!(measured.active_overshoot, 0.0, "seed {seed}");
        assert!(measured.admitted > 10_000);
    }
}

#[test]
fn a_sale_lets_in_as_many_as_the_rate_allows_and_no_more() {
    for strategy in [SlotStrategy::Leases, SlotStrategy::Counters] {
        for seed in 0..5 {
            let world = "name = \"sale\"\nminutes = 6\n[room]\ntotal_active_users = 1000\nnew_users_per_minute = 50\n\
                         session_duration = 1\n[planet]\ncolos = 3\nrequests_per_isolate = 0.4\n[visitors]\npatience_seconds = 100000\n\
                         [[arrivals]]\nuntil = 1\nper_minute = 330\n";
            let measured = run_by(world, strategy, seed);
            assert_eq!(measured.minute_overshoot, 0.0, "{strategy:?}, seed {seed}");
            assert!(
                measured.admitted >= 6 * 50 * 95 / 100,
                "{strategy:?}, seed {seed}: {}",
                measured.admitted
            );
            assert_eq!(measured.passed_over, 0.0, "{strategy:?}, seed {seed}");
        }
    }
}

#[test]
fn a_few_new_users_a_minute_enter_in_each_minute_while_people_wait() {
    for strategy in [SlotStrategy::Leases, SlotStrategy::Counters] {
        for new in 1..=4 {
            let world = format!(
                "name = \"few\"\nminutes = 12\n[room]\ntotal_active_users = 100\nnew_users_per_minute = {new}\n\
                 session_duration = 1\n[planet]\ncolos = 3\n[visitors]\npatience_seconds = 100000\n\
                 [[arrivals]]\nuntil = 1\nper_minute = 80\n"
            );
            let measured = run_by(&world, strategy, 1);
            assert_eq!(measured.minute_overshoot, 0.0, "{strategy:?}, {new}");
            assert!(
                measured.admitted >= 11 * new,
                "{strategy:?}: {} in 12 minutes, of {new} each",
                measured.admitted
            );
        }
    }
}

#[test]
fn older_buckets_go_first_and_free_slots_are_taken() {
    for seed in 0..10 {
        let measured = run(
            "name = \"crowd\"\nminutes = 10\n[room]\ntotal_active_users = 50\nnew_users_per_minute = 100\n\
             session_duration = 1\nrefresh_interval_seconds = 10\n[planet]\ncolos = 5\nrequests_per_isolate = 0.4\n[visitors]\n\
             visit_seconds = 60.0\ngap_seconds = 10.0\n[[arrivals]]\nper_minute = 80\n",
            seed,
        );
        assert!(measured.queued > 200, "seed {seed}: {measured:?}");
        assert!(measured.passed_over <= 0.02, "seed {seed}: {} were passed over", measured.passed_over);
        assert!(measured.idle <= 0.05, "seed {seed}: {} of the room stood idle", measured.idle);
    }
}

#[test]
fn copies_of_the_tickets_of_ended_sessions_let_nobody_in_for_long() {
    // Who was told to leave goes on elsewhere with a copy, every time: a slot is taken off the counts that is still used,
    // until all data centers know.
    let copying = "[visitors]\nvisit_seconds = 60\nrevoked = 1.0\ncopying = 1.0\n";
    let measured = room_of_1000(600, copying);
    assert!(measured.active_overshoot < 0.03, "{} too many", measured.active_overshoot);
    assert_eq!(measured.minute_overshoot, 0.0);
}
