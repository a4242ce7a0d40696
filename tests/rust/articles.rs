//! The worked examples of the 2021 and 2023 articles, as golden vectors.

use anteroom::admission::{
    MinuteShares, Remembered, Shares, StateKey, adapted_worker_count, adapted_worker_slots, eligible_slots,
    estimated_minutes, estimated_wait_seconds, minute_of, share_of_slots, split_slots, start_of,
    worker_slots,
};
use anteroom::config::{Room, parse_room};
use anteroom::counts::{CheckIn, Counts, Global};
use anteroom::protocol::messages::ColoReport;

/// A room as an owner writes it.
pub fn room(total_active_users: u32, new_users_per_minute: u32, session_duration: u32) -> Room {
    parse_room(
        "ROOM_TEST",
        &serde_json::json!({
            "path": "/",
            "total_active_users": total_active_users,
            "new_users_per_minute": new_users_per_minute,
            "session_duration": session_duration,
            "slot_strategy": "counters",
        }),
    )
    .unwrap()
}

/// 2023: 20 users came to San Jose and 30 to London in the minute before; the limit is 200, 150 slots are free.
fn san_jose_london() -> Shares {
    Shares::from_history([("SJC", 20), ("LHR", 30)].into_iter(), 200)
}

#[test]
fn san_jose_may_send_15_users_and_each_of_its_3_workers_5() {
    assert_eq!(share_of_slots(150, 0.10), 15);
    assert_eq!(worker_slots(15, 3.0, 0, 10.0), 5);
}

#[test]
fn a_worker_in_delhi_may_send_11_of_the_113_anywhere_slots() {
    assert_eq!(share_of_slots(150, 0.75), 113);
    assert_eq!(worker_slots(0, 1.0, 113, 10.0), 11);
}

#[test]
fn a_worker_in_san_jose_may_send_16_users_in_all() {
    assert_eq!(worker_slots(15, 3.0, 113, 10.0), 16);
}

#[test]
fn at_a_quarter_of_the_limit_10_workers_count_as_two_and_a_half_and_each_may_send_45() {
    assert!((adapted_worker_count(10, 50.0 / 200.0, 1.0) - 2.5).abs() < 1e-9);
    assert_eq!(adapted_worker_slots(0, 1, 113, 10, 50.0 / 200.0, 1.0), 45);
}

#[test]
fn with_counters_one_worker_of_san_jose_may_send_all_128() {
    let shares = san_jose_london().for_colo(0, Some("SJC"));
    assert_eq!(shares.colo_slots(150), 15);
    assert_eq!(shares.anywhere_slots(150), 113);
    assert_eq!(shares.colo_slots(150) + shares.anywhere_slots(150), 128);
}

#[test]
fn a_colo_without_history_owns_nothing_and_uses_anywhere() {
    let shares = san_jose_london().for_colo(0, Some("DEL"));
    assert_eq!((shares.colo_slots(150), shares.anywhere_slots(150)), (0, 113));
}

#[test]
fn nairobi_and_dublin_share_1000_slots_by_the_traffic_of_two_minutes_before() {
    assert_eq!(split_slots(1000, &[50, 50]), [500, 500]);
    assert_eq!(split_slots(1000, &[45, 55]), [450, 550]);
    let counters = Shares::from_history([("NBO", 45), ("DUB", 55)].into_iter(), 100);
    assert_eq!(counters.for_colo(0, Some("NBO")).colo_slots(1000), 450);
    assert_eq!(counters.for_colo(0, Some("DUB")).colo_slots(1000), 550);
}

/// 15:54, 15:55 and 15:56 on 27 May 2021.
const BUCKETS: [u32; 3] = [27_035_994, 27_035_995, 27_035_996];

/// The two data centers of the 2021 article report to Global; `NOW` is in the minute after the last bucket.
pub const NOW: u64 = (BUCKETS[2] as u64 + 1) * 60_000 + 5_000;

pub fn counts(room: &Room, active: u64, waiting: [u64; 3]) -> Counts {
    let mut counts = Counts::new(room);
    let mut seen = Remembered::new(60_000, 1_000);
    let mut id = 0;
    for _ in 0..active {
        id += 1;
        let minute = BUCKETS[0] - 2;
        counts.apply(
            &CheckIn::Enter { id, bucket: minute, from: None, at: NOW - 180_000, minute, numbered: true },
            &mut seen,
        );
    }
    for (bucket, users) in BUCKETS.into_iter().zip(waiting) {
        for _ in 0..users {
            id += 1;
            counts.apply(&CheckIn::Wait { id, bucket, from: None, at: (NOW - 1_000).into() }, &mut seen);
        }
    }
    counts
}

/// A colo's first report.
pub fn report(colo: &str, counts: Counts) -> ColoReport {
    ColoReport {
        v: 1,
        colo: colo.to_owned(),
        sequence: 1,
        counts,
        given: None,
        workers: 1,
        next_in: 0,
        late: 0,
        origin: None,
        steering: 0,
        tallies: Default::default(),
        overrides: Default::default(),
        ended: Vec::new(),
        heard: 0,
        judged: None,
    }
}

#[test]
fn the_data_centers_states_merge_to_201_active_and_buckets_of_2_50_and_60() {
    let room = room(200, 200, 5);
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    global.receive(&room, report("NBO", counts(&room, 151, [2, 30, 20])), NOW);
    global.receive(&room, report("DUB", counts(&room, 50, [0, 20, 40])), NOW);
    let state = global.state(&room, None, (NOW / 60_000) as u32, NOW);
    assert_eq!(state.active, 201);
    assert_eq!(state.waiting, [(BUCKETS[0], 2), (BUCKETS[1], 50), (BUCKETS[2], 60)]);
    assert_eq!(state.budget(&room, state.minute, NOW), Some(0), "-1 slots let nobody in");
}

#[test]
fn fifty_two_slots_go_to_the_oldest_buckets() {
    assert_eq!(eligible_slots(200 - 148, &[2, 50, 60]), [2, 50, 0]);
}

#[test]
fn twenty_slots_for_a_bucket_of_60_are_split_5_and_15_between_nairobi_and_dublin() {
    assert_eq!(split_slots(20, &[25, 75]), [5, 15]);
    let shares: MinuteShares =
        Shares::from_history([("NBO", 25), ("DUB", 75)].into_iter(), 100).for_colo(0, Some("NBO"));
    assert_eq!(shares.colo_slots(20), 5);
}

#[test]
fn sixty_users_ahead_at_30_a_minute_wait_two_minutes() {
    assert_eq!(estimated_minutes(60, 30.0), Some(2.0));
    assert_eq!(estimated_minutes(60, 0.0), None);
}

#[test]
fn who_joins_a_queue_is_told_how_long_it_is_from_the_first_second_of_the_minute() {
    let (room, bucket) = (room(200, 200, 5), minute_of(NOW));
    let key = |waiting: &[(u32, u32)], second: u64| StateKey {
        taken_at: start_of(bucket) + second * 1_000,
        minute: bucket,
        active: 200,
        leaving: 100,
        waiting: waiting.to_vec(),
        ..StateKey::default()
    };
    for second in 0..60 {
        let key = key(&[(bucket - 3, 99)], second);
        let wait = |bucket| estimated_wait_seconds(&room, &key, bucket, 20, key.taken_at);
        let turn = 600;
        assert_eq!(
            wait(bucket),
            Some(turn + 8),
            "99 ahead, ten leave a minute, then a check-in, second {second}"
        );
        assert!(wait(bucket - 3) < wait(bucket), "the dashboard shows those of all who wait");
    }
    // Nobody is ahead of the first: a crowd may come with them.
    for (second, known) in [(3, false), (9, false), (11, true)] {
        let key = key(&[(bucket, 5)], second);
        assert_eq!(
            estimated_wait_seconds(&room, &key, bucket, 20, key.taken_at).is_some(),
            known,
            "second {second}"
        );
    }
}

#[test]
fn whose_turn_comes_before_the_next_check_in_enters_then() {
    let (room, bucket) = (room(200, 200, 5), minute_of(NOW));
    let told = |ahead, next_check_in| {
        let key = StateKey {
            taken_at: start_of(bucket),
            minute: bucket,
            active: 200,
            leaving: 1_200,
            waiting: vec![(bucket - 3, ahead)],
            ..StateKey::default()
        };
        estimated_wait_seconds(&room, &key, bucket, next_check_in, key.taken_at)
    };
    // Two users leave in a second, and the visitor needs a slot too.
    assert_eq!((told(39, 19), told(39, 21)), (Some(28), Some(21)), "after twenty seconds");
    assert_eq!(told(9, 5), Some(20), "a check-in before the usual one may come too soon");
}

#[test]
fn newcomers_who_will_not_come_back_are_not_waited_for() {
    let (room, bucket) = (room(200, 200, 5), minute_of(NOW));
    let key = |strangers: &[(u32, u32)]| StateKey {
        taken_at: start_of(bucket + 1) + 10_000,
        minute: bucket + 1,
        active: 200,
        leaving: 600,
        waiting: vec![(bucket - 1, 19), (bucket, 101)],
        present: vec![19, 101],
        strangers: strangers.to_vec(),
        ..StateKey::default()
    };
    let told = |key: StateKey, of| estimated_wait_seconds(&room, &key, of, 20, key.taken_at);
    // One user leaves in a second.
    assert_eq!(told(key(&[]), bucket), Some(20 + 60 + 8));
    assert_eq!(told(key(&[(bucket, 40)]), bucket), Some(20 + 36 + 8));
    assert_eq!(told(key(&[(bucket, 40)]), bucket - 1), told(key(&[]), bucket - 1));
}

#[test]
fn people_who_came_together_are_not_taken_for_a_stream() {
    let (room, bucket) = (room(6, 60, 1), minute_of(NOW));
    let told = |quiet_ms| {
        let key = StateKey {
            taken_at: start_of(bucket) + 20_000,
            minute: bucket,
            active: 6,
            admitted: 6,
            leaving: 120,
            waiting: vec![(bucket, 6)],
            quiet_ms,
            ..StateKey::default()
        };
        estimated_wait_seconds(&room, &key, bucket, 20, key.taken_at)
    };
    // A user leaves in five seconds. Twelve have come in 17.5 seconds: by the minute's end 29 more of them would, and three fifths
    // of the 34 others enter first.
    assert_eq!((told(0), told(9_500)), (Some(5 + 102 + 8), Some(5 + 102 + 8)));
    // One has come in a second and a half, and nobody since for more than five times as long, besides the 2.5 seconds of which reports
    // are on their way: the six who wait are all.
    assert_eq!(told(10_000), Some(20), "the next check-in is soon enough");
}

#[test]
fn a_long_turn_is_told_by_three_fifths_of_it_and_a_short_one_by_less() {
    let (room, bucket) = (room(200, 200, 5), minute_of(NOW));
    let told = |own| {
        let key = StateKey {
            taken_at: start_of(bucket + 1) + 10_000,
            minute: bucket + 1,
            active: 200,
            leaving: 600,
            waiting: vec![(bucket - 1, 19), (bucket, own)],
            ..StateKey::default()
        };
        estimated_wait_seconds(&room, &key, bucket, 20, key.taken_at)
    };
    // One user leaves in a second: the turn begins after 20, and then a check-in takes 8 more.
    assert_eq!([21, 61, 101].map(told), [28 + 9, 28 + 36, 28 + 60].map(Some));
    assert_eq!(told(1), Some(20), "nobody waits for themselves: the next check-in is soon enough");
}

#[test]
fn only_those_who_come_before_a_visitors_turn_can_go_first() {
    let (room, bucket) = (room(200, 2_000, 5), minute_of(NOW));
    // Ten a second have come since the minute began, as far as it is known, and ten leave. The last report came two seconds ago.
    let told = |ahead| {
        let key = StateKey {
            taken_at: start_of(bucket) + 12_500,
            minute: bucket,
            active: 200,
            leaving: 6_000,
            waiting: vec![(bucket - 3, ahead), (bucket, 100)],
            quiet_ms: 2_000,
            ..StateKey::default()
        };
        estimated_wait_seconds(&room, &key, bucket, 20, key.taken_at)
    };
    assert_eq!(told(300), Some(30 + 36 + 1 + 8), "three fifths of the whole minute's");
    // By all of those it would be at most 1 + 36 + 8 seconds. In so many only 451 of the other 500 come.
    assert_eq!(told(10), Some(1 + 32 + 8));
}

#[test]
fn the_estimate_is_unknown_while_everybody_is_queued() {
    let mut room = room(200, 200, 5);
    room.queue_all = true;
    assert_eq!(estimated_wait_seconds(&room, &Default::default(), BUCKETS[0], 20, NOW), None);
}
