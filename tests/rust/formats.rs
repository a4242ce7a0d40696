//! What the objects say to each other and keep in storage, pinned: during a deploy old and new code talk to each
//! other, and a deployed object must still read its storage. When one of these fails, the change needs a new version.

use anteroom::admission::{
    DueRecord, Group, LatestOrder, LeaseAnswer, LeaseAsk, LeaseCounter, Level, NumberAsk, Outcome,
    Remembered, Returned, SavedLedger, SavedPermits, Serves, Shares, StateKey,
};
use anteroom::counts::{
    CheckIn, Counts, DataCenter, Global, GlobalMeta, MoveOutcome, MovePlace, Moves, OriginMemory, PlaceMoved,
    SavedDataCenter, Seen, SlotCounts,
};
use anteroom::health::agree::Agreement;
use anteroom::health::analytics::{Range, Sum};
use anteroom::health::check::parse_check;
use anteroom::health::messages::{Ask, Notify, Record, Stored, Told};
use anteroom::health::{ProbeResult, Reason, StateChange, Waterfall};
use anteroom::history::{self, Change, Count, HistoryAsk, Minute, Part, Query, Tallies};
use anteroom::notifications::{Detector, Observation, Origin};
use anteroom::origin::{OriginCounts, OriginReport, Reply};
use anteroom::protocol::messages::{
    ColoReport, Given, Lease, Lent, LoanAsk, OriginHealth, OriginStatus, ReserveSessions, StateAnswer,
    StateRequest, Subscribe, Subscribed, Take, Taken, WorkerAnswer, WorkerReport,
};
use anteroom::protocol::wire::{decode, encode};
use anteroom::room::{OnUnhealthy, Phase, RateWindow, Room};
use anteroom::steering::Overrides;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::articles::room;

const NOW: u64 = 1_680_000_030_000;

/// Writes as pinned, and reads what is pinned.
fn pinned<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T, bytes: &str) {
    let written: String = encode(value).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, bytes, "{value:?}");
    assert_eq!(&decode::<T>(&encode(value).unwrap()).unwrap(), value);
}

#[test]
fn what_is_known_of_news() {
    let room = room(20, 10, 1);
    let mut watch = Detector::default();
    let look = Observation {
        now: NOW,
        room: &room,
        phase: Phase::None,
        active: 25,
        minute: 28_000_000,
        new_users: 3,
        slots: 0,
        waiting: 5,
        present: 5,
        wait_seconds: Some(700),
        origin: Origin { unhealthy: vec![("a".to_owned(), NOW)], down: true, ..Origin::default() },
        fallbacks: 2,
        steering: 7,
        thresholds: &[10],
    };
    watch.observe(&look);
    pinned(
        &watch,
        "00b0aab8bef23001b0aab8bef230000abc05010a0001b0aab8bef2300001016101b0aab8bef2300001b0aab8bef2300001140a140a070001b0aab8bef23000280001b0aab8bef23080feac0d1400002800",
    );
}

fn counts() -> Counts {
    let room = room(100, 50, 1);
    let mut counts = Counts::new(&room);
    let mut dedups = Remembered::new(60_000, 100);
    let minute = 28_000_000;
    counts.apply(
        &CheckIn::Enter { id: 1, bucket: minute, from: None, at: NOW, minute, numbered: true },
        &mut dedups,
    );
    counts.apply(
        &CheckIn::Enter { id: 2, bucket: minute, from: None, at: NOW + 500, minute, numbered: false },
        &mut dedups,
    );
    counts.apply(&CheckIn::Wait { id: 3, bucket: minute, from: None, at: NOW.into() }, &mut dedups);
    counts
}

fn slot_counts() -> SlotCounts {
    let mut counts = SlotCounts::default();
    counts.add(Count::Joins.code(), 3);
    counts.add(Count::Bypassed.code(), 300);
    counts
}

fn tallies() -> Tallies {
    let room = room(100, 50, 1);
    let mut tallies = Tallies::default();
    let waited = Some((NOW - 30_000, 28_000_000, Some(NOW.into())));
    for change in [
        Change::Joined { at: NOW },
        Change::Waits { from: None, at: NOW },
        Change::Entered { at: NOW, minute: 28_000_000, numbered: false, waited },
        Change::Moved { from: Some(NOW), at: NOW + 60_000, entered: Some(NOW) },
        Change::Left { from: NOW + 60_000, at: NOW + 61_000, entered: Some(NOW) },
        Change::GaveUp { at: NOW },
    ] {
        tallies.note(&room, change);
    }
    tallies
}

fn report() -> ColoReport {
    ColoReport {
        v: 1,
        colo: "AMS".to_owned(),
        sequence: 12,
        counts: counts(),
        given: None,
        workers: 2,
        next_in: 2_000,
        late: 3_500,
        origin: None,
        steering: 0,
        tallies: Tallies::default(),
        overrides: Overrides::default(),
        ended: Vec::new(),
        heard: 0,
        judged: None,
    }
}

#[test]
fn asking_for_numbers() {
    pinned(
        &Take {
            v: 1,
            asks: vec![NumberAsk {
                id: u64::MAX,
                bucket: 27_999_999,
                waits: true,
                minute: 28_000_000,
                limit: 20,
                owned: 5,
            }],
            loan: Some(LoanAsk { worker: 9, loan: 3, used: 2, want: 4 }),
            addresses: vec![5],
            steering: Overrides::default(),
            next_ms: vec![19_500],
            region: "weur".to_owned(),
        },
        "0101ffffffffffffffffff01fffdac0d0180feac0d280a010903020401050001ac98010477657572",
    );
    pinned(
        &Taken {
            v: 1,
            outcomes: vec![
                Outcome::Given { minute: 28_000_000, number: 4 },
                Outcome::Refused { minute: 28_000_000, limit: 20, wait_ms: 1_000 },
                Outcome::Unknown,
            ],
            lent: Some(Lent { loan: 4, permits: 5, usable_ms: 60_000, level: Level::Busy }),
            holders: vec![0, 7, 0],
            pace_ms: 40,
            latest: Some(LatestOrder { version: 3, time: 300 }),
        },
        "01030180feac0d08000080feac0d28e80702000000010405e0d4030103000700280103ac02",
    );
    pinned(
        &Given { v: 1, minute: 28_000_000, given: Some(4), previous: None, assumed: 0 },
        "0180feac0d01040000",
    );
}

#[test]
fn leasing_tickets() {
    pinned(
        &Lease {
            v: 1,
            colo: "AMS".to_owned(),
            ask: LeaseAsk {
                epoch: 7,
                sequence: 3,
                last_answered: 2,
                groups: vec![Group { bucket: 28_000_000, waits: true, visitors: 2 }],
                permits: 4,
                lent_ms: 1_000,
                used: vec![(28_000_000, 5)],
                want: 6,
                rate: 8,
                recent: vec![(3, 250)],
            },
        },
        "0103414d530703020180feac0d010204e8070180feac0d0506080103fa01",
    );
    pinned(
        &LeaseAnswer {
            v: 1,
            sequence: 3,
            now: NOW,
            given: vec![(1, 2)],
            extra: 3,
            most: 4,
            usable_ms: 1_000,
            pace_ms: 60,
            level: Level::Calm,
            wait_ms: 100,
            spare: 7,
            steering: 2,
            is_latest: true,
            in_rush: true,
        },
        "0103b0aab8bef2300101020304e8073c006407020101",
    );
    pinned(&ReserveSessions { v: 1, sessions: 1, ids: vec![7] }, "01010107");
    let older = decode::<ReserveSessions>(&[1, 1]).unwrap();
    assert_eq!(older, ReserveSessions { v: 1, sessions: 1, ids: Vec::new() });
}

#[test]
fn what_is_said_and_kept_of_a_place_that_moves() {
    let ask = MovePlace { v: 1, id: 300, moves: 2, by: 7 };
    pinned(&ask, "01ac020207");
    pinned(&PlaceMoved { v: 1, outcome: MoveOutcome::Moved }, "0101");
    pinned(&PlaceMoved { v: 1, outcome: MoveOutcome::Full }, "0102");
    let mut moves = Moves::default();
    assert_eq!(moves.redeem(&room(100, 50, 1), &ask, NOW), MoveOutcome::Moved);
    pinned(&moves, "0001ac020307f0a6cebef230");
    pinned(&moves.told(NOW), "01ac0203");
}

#[test]
fn what_a_quiet_counter_keeps_and_gives_back() {
    let mut counter = LeaseCounter::new(7);
    counter.follow(RateWindow::Sliding, Serves::Colo);
    let ask = NumberAsk { id: 1, bucket: 28_000_000, waits: false, minute: 28_000_000, limit: 0, owned: 1 };
    counter.ask(1, ask, NOW);
    let call = counter.call(NOW).unwrap();
    let answer = LeaseAnswer {
        v: 1,
        sequence: call.sequence,
        now: NOW,
        given: vec![(1, 0)],
        extra: 3,
        most: 3,
        usable_ms: 60_000,
        pace_ms: 0,
        level: Level::Busy,
        wait_ms: 100,
        spare: 0,
        steering: 2,
        is_latest: false,
        in_rush: false,
    };
    counter.answered(Some(&answer), NOW + 40);
    counter.ask(2, NumberAsk { id: 2, ..ask }, NOW + 50);
    let Some(DueRecord::Last(record)) = counter.record(&room(1_000, 50, 1), NOW + 50) else {
        panic!("it keeps its stock")
    };
    pinned::<SavedPermits>(
        &record,
        "01070101020090ffbbbef230e0d4030180feac0d0201d8aab8bef230d8aab8bef230d00fe2aab8bef230e0d40302000101e2aab8bef230",
    );
    pinned::<Returned>(&counter.recall(NOW + 60), "010701010180feac0d0201010a");
}

#[test]
fn what_is_told_and_stored_of_the_origin() {
    let mut counts = OriginCounts::default();
    counts.count(Reply::Status(200), 12);
    counts.count(Reply::Status(503), 40);
    counts.count(Reply::TimedOut, 0);
    counts.refused = 5;
    pinned(&OriginReport { since: 7, counts: counts.clone() }, "0705000100000101010500");
    let (origin, judged) = (Some(counts.clone()), Some(counts.clone()));
    pinned(
        &WorkerReport { v: 1, origin, judged, ..WorkerReport::default() },
        "01000000000001050001000001010105000000000105000100000101010500",
    );
    let origin = Some(OriginReport { since: 7, counts: counts.clone() });
    pinned(
        &ColoReport { origin, judged: Some(counts.clone()), ..report() },
        "0103414d530c53f8b4d2b34b020002060280feac0d01000280feac0d0100020180feac0d86e89ba00101000280feac0d0100060002d00fac1b01070500010000010101050000000000000000000105000100000101010500",
    );
    pinned(
        &OriginHealth { v: 1, check: "origin".to_owned(), healthy: true, at: NOW },
        "01066f726967696e01b0aab8bef230",
    );
    let limits = room(100, 50, 1).limits();
    let unhealthy = Some(("origin".to_owned(), NOW));
    pinned(
        &OriginStatus { v: 1, limits, held: true, unhealthy, last_minute: counts },
        "0164320101066f726967696eb0aab8bef23005000100000101010500",
    );
    let holding = Room {
        health_checks: vec!["origin".to_owned()],
        on_unhealthy: OnUnhealthy::Hold,
        ..room(100, 50, 1)
    };
    let mut global = Global::restore(&holding, None, Vec::new(), NOW);
    let told = OriginHealth { v: 1, check: "origin".to_owned(), healthy: false, at: NOW };
    assert!(global.origin_health(&holding, &told, NOW));
    let memory = global.origin_to_store().unwrap();
    pinned::<OriginMemory>(
        &memory,
        "010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001066f726967696e00b0aab8bef23000000001",
    );
    // After a restart it is still held.
    let mut restarted = Global::restore(&holding, None, Vec::new(), NOW + 1);
    restarted.recall(memory);
    assert!(restarted.state(&holding, None, 28_000_000, NOW + 1).held);
}

#[test]
fn reports_of_workers() {
    pinned(
        &WorkerReport {
            v: 1,
            worker: 9,
            instance: 8,
            first: 3,
            check_ins: vec![
                CheckIn::Wait { id: 1, bucket: 28_000_000, from: None, at: NOW.into() },
                CheckIn::Enter {
                    id: 1,
                    bucket: 28_000_000,
                    from: Some(NOW.into()),
                    at: NOW + 1,
                    minute: 28_000_000,
                    numbered: true,
                },
                CheckIn::Move { id: 1, from: NOW + 1, at: NOW + 2, entered: None },
            ],
            urgent: true,
            origin: None,
            counts: SlotCounts::default(),
            heard: 0,
            judged: None,
        },
        "0109080303000180feac0d00b0aab8bef2300000010180feac0db0aab8bef230b1aab8bef23080feac0d01020100b1aab8bef230b2aab8bef2300000010000000000",
    );
    let (before, later) = (Seen { at: NOW, later: 3 }, Seen { at: NOW + 1, later: 8 });
    pinned(
        &WorkerReport {
            v: 1,
            check_ins: vec![
                CheckIn::Wait { id: 1, bucket: 28_000_000, from: Some(before), at: later },
                CheckIn::Enter {
                    id: 1,
                    bucket: 28_000_000,
                    from: Some(later),
                    at: NOW + 2,
                    minute: 28_000_000,
                    numbered: true,
                },
                CheckIn::Leave { id: 1, from: NOW + 2, at: NOW + 3, entered: None },
                CheckIn::GiveUp { id: 2, bucket: 28_000_000, from: before, at: NOW + 3 },
            ],
            ..WorkerReport::default()
        },
        "0100000004000180feac0db0aab8bef230b1aab8bef230880600010180feac0db1aab8bef230b2aab8bef23080feac0d11030100b2aab8bef230b3aab8bef2300000040280feac0db0aab8bef230b3aab8bef230800600000000000000",
    );
    pinned(&WorkerAnswer { v: 1, instance: 8, applied: 5, durable: 3, state: None }, "0108050300");
}

#[test]
fn reports_of_data_centers_and_what_they_store() {
    pinned(
        &report(),
        "0103414d530c53f8b4d2b34b020002060280feac0d01000280feac0d0100020180feac0d86e89ba00101000280feac0d0100060002d00fac1b00000000000000000000",
    );
    pinned(
        &SavedDataCenter {
            v: 1,
            counts: counts(),
            sequence: 12,
            workers: vec![(9, 5)],
            tallies: tallies(),
            tallied: vec![(9, slot_counts())],
            state: None,
            ended: vec![CheckIn::Leave { id: 1, from: NOW, at: NOW + 1, entered: None }],
            untold: vec![CheckIn::Leave { id: 1, from: NOW, at: NOW + 1, entered: None }],
        },
        "0153f8b4d2b34b020002060280feac0d01000280feac0d0100020180feac0d86e89ba00101000280feac0d0100060c0109058080fcd91a0a0002010201020102013c010203024b02b30102910102000001090002000607d80401030100b0aab8bef230b1aab8bef230000001030100b0aab8bef230b1aab8bef230000000",
    );
}

#[test]
fn what_becomes_history() {
    pinned(
        &WorkerReport {
            v: 1,
            check_ins: vec![
                CheckIn::Move { id: 1, from: NOW, at: NOW + 1, entered: Some(NOW - 1_000) },
                CheckIn::Leave { id: 1, from: NOW, at: NOW + 1, entered: Some(NOW) },
            ],
            counts: slot_counts(),
            ..WorkerReport::default()
        },
        "01000000020201e907b0aab8bef230b1aab8bef2300000030101b0aab8bef230b1aab8bef230000000000002000607d8040000",
    );
    pinned(
        &ColoReport { tallies: tallies(), ..report() },
        "0103414d530c53f8b4d2b34b020002060280feac0d01000280feac0d0100020180feac0d86e89ba00101000280feac0d0100060002d00fac1b00008080fcd91a0a0002010201020102013c010203024b02b30102910102000000000000",
    );
    let record = history::Record {
        v: 1,
        minutes: 1,
        active: 2,
        active_max: 3,
        waiting: 4,
        waiting_max: 5,
        slots: 6,
        total_active_users: 100,
        new_users_per_minute: 50,
        tallies: slot_counts(),
    };
    pinned(&record, "0101020304050664320002000607d804");
    let part = Part {
        colo: "AMS".to_owned(),
        active: 1,
        waiting: 2,
        new_users: 3,
        joins: 4,
        leavers: 5,
        revoked: 6,
        bypassed: 7,
        workers: 8,
    };
    pinned(
        &Minute {
            v: 1,
            minute: 28_000_000,
            parts: vec![part],
            active: 2,
            waiting: 4,
            visits_until: 27_999_999,
            recorded: slot_counts(),
            ever: slot_counts(),
            left: (7, 300),
        },
        "0180feac0d0103414d5301020304050607080204fffdac0d0002000607d8040002000607d80407ac02",
    );
    let ask: HistoryAsk = Query::read(|_| None, NOW).unwrap().ask();
    pinned(&ask, "01c4fdac0d81feac0d0017000102030405060708090a0b0c0d0e0f101112131415160000");
}

#[test]
fn what_global_and_the_givers_of_numbers_store() {
    pinned(
        &GlobalMeta {
            v: 1,
            shares: vec![(28_000_000, Shares::from_history([("AMS", 3), ("SIN", 1)].into_iter(), 8))],
            told: vec![(27_999_999, 12)],
            steering: Overrides::default(),
        },
        "010180feac0d040203414d53030353494e0101fffdac0d1800",
    );
    pinned(
        &SavedLedger {
            v: 1,
            minute: 28_000_000,
            given: Some(4),
            previous: Some(9),
            settled: true,
            peak: 2,
            assumed: 1,
            assumed_previous: 3,
        },
        "0180feac0d0104010901020103",
    );
}

#[test]
fn the_state_key() {
    let room = room(100, 50, 1);
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    global.receive(&room, report(), NOW);
    let state: StateKey = global.state(&room, Some("AMS"), 28_000_000, NOW);
    pinned(
        &StateAnswer { v: 1, state: Some(state) },
        "010101b0aab8bef23080feac0d00045301000000020002640d0180feac0d010280feac0d010002415181feac0d0202416702415100c0843d010202848fb8bef2300000820d01010000000000000000000080dddb010600000000",
    );
    pinned(
        &StateRequest { v: 1, minute: 28_000_000, given: None, colo: String::new(), leases: 300 },
        "0180feac0d0000ac02",
    );
}

#[test]
fn what_newer_code_adds_is_ignored_and_what_older_code_leaves_out_is_zero() {
    let mut newer =
        encode(&StateRequest { v: 2, minute: 28_000_000, given: None, colo: String::new(), leases: 0 })
            .unwrap();
    newer.extend([7, 8, 9]);
    assert_eq!(decode::<StateRequest>(&newer).unwrap().minute, 28_000_000);
    let report = ColoReport { next_in: 0, late: 0, origin: None, ..report() };
    let older = encode(&report).unwrap();
    assert_eq!(decode::<ColoReport>(&older[..older.len() - 2]).unwrap(), report);
}

#[test]
fn bytes_that_are_no_message_are_an_error() {
    assert!(decode::<StateRequest>(&[0xff; 100]).is_err());
    assert!(decode::<ColoReport>(&[0xff; 100]).is_err());
}

#[test]
fn a_data_center_starts_from_what_it_stored() {
    let room = room(100, 50, 1);
    let saved = SavedDataCenter {
        v: 1,
        counts: counts(),
        sequence: NOW + 5_000,
        workers: vec![(9, 5)],
        tallies: Tallies::default(),
        tallied: Vec::new(),
        state: None,
        ended: Vec::new(),
        untold: Vec::new(),
    };
    let saved: SavedDataCenter = decode(&encode(&saved).unwrap()).unwrap();
    let mut data_center = DataCenter::restore(&room, "AMS", 7, Some(saved), NOW + 1_000);
    let next = data_center.save(&room, NOW + 1_000);
    assert_eq!(next.counts.active_at(&room, NOW + 1_000), 2);
    assert!(next.sequence > NOW + 5_000, "a clock that went back does not make old reports win");
}

#[test]
fn telling_of_the_origins_health() {
    let result = ProbeResult {
        check: "origin".to_owned(),
        region: "weu".to_owned(),
        observer: 2,
        at: NOW,
        healthy: false,
        reason: Reason::ResponseCodeMismatch,
        expected_codes: "2xx".to_owned(),
        actual_code: Some(503),
        waterfall: Waterfall {
            tcp_ms: Some(41),
            tls_ms: None,
            first_byte_ms: Some(222),
            total_ms: Some(302),
        },
    };
    let told = result.clone();
    let mut sum = Sum::default();
    sum.add(&result);
    sum.add(&ProbeResult { reason: Reason::Other("odd".to_owned()), ..result.clone() });
    pinned(
        &Record { v: 1, results: vec![result] },
        "0101066f726967696e0377657502b0aab8bef23000040332787801f70301290001de0101ae02",
    );
    let change = StateChange {
        check: "webhook/1".to_owned(),
        healthy: false,
        reason: Reason::TcpConnectionFailed,
        at: NOW,
        expected_codes: "200".to_owned(),
        actual_code: None,
    };
    pinned(
        &Notify { v: 1, name: "shop".to_owned(), change },
        "010473686f7009776562686f6f6b2f310001b0aab8bef2300332303000",
    );
    pinned(&Stored { v: 1 }, "01");
    pinned(
        &Ask { v: 1, range: Range::Week, check: "webhook/1".to_owned(), script: "/s.js".to_owned() },
        "010209776562686f6f6b2f31052f732e6a73",
    );
    let shown = Told { v: 1, body: Some("{}".to_owned()), checks: Some(vec!["check/a".to_owned()]) };
    pinned(&shown, "0101027b7d010107636865636b2f61");
    assert_eq!(
        anteroom::wire::decode(&[1, 1, 2, b'{', b'}']),
        Ok(Told { checks: None, ..shown }),
        "of older code"
    );
    // Kept in storage.
    let vars = serde_json::json!({ "url": "https://origin.example.com/", "regions": "WEU" });
    let check = parse_check("CHECK_ORIGIN", &vars).unwrap();
    let mut agreement = Agreement::default();
    for observer in [1, 2] {
        agreement.record(&check, &ProbeResult { region: "WEU".to_owned(), observer, ..told.clone() }, NOW);
    }
    pinned(
        &agreement,
        "02066f726967696e0357455501b0aab8bef23000040332787801f70301290001de0101ae02010100066f726967696e035745550\
         2b0aab8bef23000040332787801f70301290001de0101ae020101000103574555000100b0aab8bef23004",
    );
    pinned(&sum, "02040108036f6464010129020001af010201cb0102");
}

#[test]
fn what_global_is_told_of_a_subscription() {
    let asked = Subscribe {
        v: 1,
        id: 7,
        bucket: 28_000_000,
        endpoint: "https://a.b/c".to_owned(),
        p256dh: "BA".to_owned(),
        auth: "AA".to_owned(),
        language: "en-US".to_owned(),
        url: "https://d.e/".to_owned(),
    };
    let bytes = "010780feac0d0d68747470733a2f2f612e622f6302424102414105656e2d55530c68747470733a2f2f642e652f";
    pinned(&asked, bytes);
    pinned(&Subscribed { v: 1, kept: true }, "0101");
}
