//! The promises: limits hold, nobody waits in vain, older buckets first, everyone counts once.

use anteroom::admission::{Ledger, Outcome, Remembered, Shares};
use anteroom::counts::{CheckIn, Counts, Global};
use anteroom::protocol::messages::{ColoReport, Given};
use proptest::prelude::*;

use crate::articles::room;
use crate::world::{Breakdown, Findings, Setup, World};

fn setup(seed: u64) -> Setup {
    Setup {
        room: room(20, 20, 1),
        colos: 3,
        workers: 2,
        seed,
        arrivals: vec![60, 60, 60, 40, 0, 0],
        pages: 2.0,
        think_seconds: 8.0,
        loss: 0.0,
        breakdowns: Vec::new(),
        roaming: 0.05,
        doubled: 0.1,
        revoked: 0.0,
        closing: 0.0,
    }
}

fn run(setup: Setup) -> Findings {
    World::new(setup).run()
}

#[test]
fn a_small_room_under_a_crowd_holds_both_limits_and_is_used_in_full() {
    for seed in 0..10 {
        let findings = run(setup(seed));
        assert!(findings.most_active <= 20, "seed {seed}: {findings:?}");
        assert!(findings.most_in_a_minute <= 20, "seed {seed}: {findings:?}");
        assert_eq!(findings.left_unused, 0, "seed {seed}: {findings:?}");
        assert!(findings.mean_idle < 0.1, "seed {seed}: {findings:?}");
        assert!(findings.passed_over * 50 <= findings.queued, "seed {seed}: {findings:?}");
    }
}

#[test]
fn nobody_is_queued_below_the_limits() {
    for seed in 0..10 {
        let findings = run(Setup {
            room: room(200, 200, 1),
            arrivals: vec![60, 80, 100, 80, 60, 90],
            colos: 5,
            ..setup(seed)
        });
        assert_eq!(findings.queued, 0, "seed {seed}: {findings:?}");
        assert!(findings.admitted > 300);
    }
}

#[test]
fn a_sale_lets_in_as_many_as_the_rate_allows_and_no_more() {
    for seed in 0..5 {
        let findings =
            run(Setup { room: room(1_000, 50, 1), arrivals: vec![300, 0, 0, 0, 0, 0], ..setup(seed) });
        assert!(findings.most_in_a_minute <= 50, "seed {seed}: {findings:?}");
        assert!(findings.admitted >= 6 * 50 * 95 / 100, "seed {seed}: {findings:?}");
        assert_eq!(findings.passed_over, 0);
    }
}

#[test]
fn when_everything_is_reported_the_room_knows_exactly_who_is_active_and_who_waits() {
    for seed in 0..10 {
        let findings =
            run(Setup { room: room(20, 20, 2), arrivals: vec![30, 10, 0], pages: 0.0, ..setup(seed) });
        assert_eq!(findings.waiting_known, findings.still_waiting as i64, "seed {seed}: {findings:?}");
        assert_eq!(
            findings.final_active_known, findings.final_active_true as i64,
            "seed {seed}: {findings:?}"
        );
    }
}

#[test]
fn whoever_is_told_to_leave_or_closes_the_page_is_counted_no_more_and_whoever_comes_back_once() {
    for seed in 0..10 {
        let findings = run(Setup {
            room: room(20, 20, 2),
            arrivals: vec![60, 30, 0, 0],
            pages: 0.0,
            revoked: 0.5,
            closing: 0.3,
            ..setup(seed)
        });
        assert!(findings.admitted > 20, "seed {seed}: slots are used again before a session is over");
        assert_eq!(findings.waiting_known, findings.still_waiting as i64, "seed {seed}: {findings:?}");
        assert_eq!(
            findings.final_active_known, findings.final_active_true as i64,
            "seed {seed}: {findings:?}"
        );
    }
}

fn breakdown() -> impl Strategy<Value = Breakdown> {
    prop_oneof![
        (0usize..5).prop_map(Breakdown::DataCenter),
        (0usize..5).prop_map(Breakdown::Counter),
        Just(Breakdown::Anywhere),
        Just(Breakdown::Global),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_limits_hold_in_any_small_world(
        seed in any::<u64>(),
        colos in 1usize..5,
        workers in 1usize..4,
        total in 1u32..60,
        rate in 1u32..80,
        session in 1u32..3,
        arrivals in prop::collection::vec(0u32..120, 3..6),
        roaming in 0.0f64..0.3,
        (revoked, closing) in (0.0f64..1.0, 0.0f64..0.5),
    ) {
        let findings = run(Setup {
            room: room(total, rate, session), colos, workers, seed, arrivals, roaming, revoked, closing, ..setup(0)
        });
        prop_assert!(findings.most_active <= total as usize, "{findings:?}");
        prop_assert!(findings.most_in_a_minute <= u64::from(rate), "{findings:?}");
    }

    #[test]
    fn lost_reports_and_broken_objects_cost_waiting_not_the_limits(
        seed in any::<u64>(),
        total in 10u32..60,
        loss in 0.0f64..0.3,
        breakdowns in prop::collection::vec((0u64..300_000, breakdown()), 0..6),
        revoked in 0.0f64..1.0,
    ) {
        let findings = run(Setup {
            room: room(total, 60, 1), seed, loss, breakdowns, revoked, closing: revoked / 2.0, arrivals: vec![60, 60, 60, 60, 60], ..setup(0)
        });
        prop_assert!(findings.most_in_a_minute <= 60, "{findings:?}");
        prop_assert!(findings.most_active <= total as usize, "{findings:?}");
    }

    #[test]
    fn every_visitor_is_in_exactly_one_place(seed in any::<u64>(), arrivals in prop::collection::vec(0u32..60, 3..5)) {
        let all: u32 = arrivals.iter().sum();
        let findings = run(Setup { seed, arrivals, ..setup(0) });
        prop_assert_eq!(findings.admitted + findings.still_waiting + findings.still_asking, all as usize);
    }

    #[test]
    fn the_owners_parts_add_up_to_the_budget_and_only_grow(
        users in prop::collection::vec(0u64..500, 0..40),
        limit in 1u64..5_000,
        budget in 0i64..3_000,
    ) {
        let names: Vec<String> = (0..users.len()).map(|index| format!("C{index:03}")).collect();
        let history = names.iter().map(String::as_str).zip(users.iter().copied());
        let shares = Shares::from_history(history, limit);
        let mut sum = [0i64; 2];
        for (step, sum) in sum.iter_mut().enumerate() {
            let budget = budget + step as i64;
            *sum = shares.for_colo(0, None).anywhere_slots(budget);
            for name in &names {
                *sum += shares.for_colo(0, Some(name)).colo_slots(budget);
            }
            prop_assert_eq!(*sum, budget);
        }
        for name in &names {
            let view = shares.for_colo(0, Some(name));
            prop_assert!(view.colo_slots(budget + 1) >= view.colo_slots(budget));
        }
    }

    #[test]
    fn a_ledger_gives_each_number_once_and_never_at_or_above_its_limit(
        asks in prop::collection::vec((0u64..50, 0i64..30, 0u64..30_000), 1..200),
    ) {
        let start = 28_000_000 * 60_000;
        let mut ledger = Ledger::restore(None, false, start);
        let mut now = start;
        let mut holders = std::collections::HashMap::new();
        for (id, limit, pause) in asks {
            now += pause / 20;
            if let Outcome::Given { minute, number } = ledger.take(id, limit, limit, now) {
                let holder = holders.entry((minute, number)).or_insert(id);
                prop_assert_eq!(*holder, id, "two tickets hold one number");
            }
        }
        prop_assert!(ledger.given().unwrap() <= 30);
    }

    #[test]
    fn reports_count_once_in_any_order_and_however_often_they_come(
        order in Just((0..12usize).collect::<Vec<_>>()).prop_shuffle(),
        repeats in prop::collection::vec(0usize..12, 0..12),
    ) {
        let room = room(100, 100, 1);
        let now = 28_000_000 * 60_000 + 30_000;
        let mut seen = Remembered::new(60_000, 1_000);
        let mut census = Counts::new(&room);
        // Twelve reports of three colos, each holding all of the colo's admissions so far.
        let mut reports = Vec::new();
        for sequence in 0..4u64 {
            for colo in ["AMS", "SIN", "GRU"] {
                let id = reports.len() as u64 + 1;
                let minute = (now / 60_000) as u32;
                census.apply(
                    &CheckIn::Enter { id, bucket: minute, from: None, at: now, minute, numbered: true }, &mut seen,
                );
                let given = Some(Given { v: 1, minute, given: Some(sequence), previous: Some(0), assumed: 0 });
                reports.push(ColoReport {
                    v: 1, colo: colo.to_owned(), sequence: sequence + 1, census: census.clone(), given, workers: 1, next_in: 0, late: 0, origin: None, steering: 0, tallies: Default::default(), overrides: Default::default(),
                });
            }
        }
        let mut straight = Global::restore(&room, None, Vec::new(), now);
        for report in &reports {
            straight.receive(&room, report.clone(), now);
        }
        let mut shuffled = Global::restore(&room, None, Vec::new(), now);
        for index in order.iter().chain(&repeats) {
            shuffled.receive(&room, reports[*index].clone(), now);
        }
        let minute = (now / 60_000) as u32;
        prop_assert_eq!(straight.state(&room, None, minute, now), shuffled.state(&room, None, minute, now));
    }
}
