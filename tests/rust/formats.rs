//! What the objects say to each other and keep in storage, pinned: during a deploy old and new code talk to each
//! other, and a deployed object must still read its storage. When one of these fails, the change needs a new version.

use anteroom::pipeline::messages::{
    ColoReport, Given, StateAnswer, StateRequest, Take, Taken, WorkerAnswer, WorkerReport,
};
use anteroom::pipeline::{Census, CheckIn, DataCenter, Global, GlobalMeta, SavedDataCenter};
use anteroom::queue::{NumberAsk, Outcome, Remembered, SavedLedger, Shares, StateKey};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::articles::room;

const NOW: u64 = 1_680_000_030_000;

/// Writes as pinned, and reads what is pinned.
fn pinned<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T, text: &str) {
    assert_eq!(serde_json::to_string(value).unwrap(), text);
    assert_eq!(&serde_json::from_str::<T>(text).unwrap(), value);
}

fn census() -> Census {
    let room = room(100, 50, 1);
    let mut census = Census::new(&room);
    let mut trails = Remembered::new(60_000, 100);
    let minute = 28_000_000;
    census.apply(
        &CheckIn::Enter { id: 1, bucket: minute, from: None, at: NOW, minute, numbered: true },
        &mut trails,
    );
    census.apply(
        &CheckIn::Enter { id: 2, bucket: minute, from: None, at: NOW + 500, minute, numbered: false },
        &mut trails,
    );
    census.apply(&CheckIn::Wait { id: 3, bucket: minute, from: None, at: NOW }, &mut trails);
    census
}

const CENSUS: &str = r#"{"slot_ms":250,"h":[6720000120,[[0,1],[2,1]]],"a":[28000000,[[0,1]]],"f":[28000000,[[0,1]]],"w":[[28000000,[336000006,[[0,1]]]]],"n":[28000000,[[0,3]]]}"#;

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
        },
        r#"{"v":1,"asks":[{"id":18446744073709551615,"bucket":27999999,"waits":true,"minute":28000000,"limit":20,"owned":5}]}"#,
    );
    pinned(
        &Taken {
            v: 1,
            outcomes: vec![
                Outcome::Given { minute: 28_000_000, number: 4 },
                Outcome::Refused { minute: 28_000_000, limit: 20 },
            ],
        },
        r#"{"v":1,"outcomes":[[true,28000000,4],[false,28000000,20]]}"#,
    );
    pinned(
        &Given { v: 1, minute: 28_000_000, given: Some(4), previous: None, assumed: 0 },
        r#"{"v":1,"minute":28000000,"given":4,"previous":null,"assumed":0}"#,
    );
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
                CheckIn::Wait { id: 1, bucket: 28_000_000, from: None, at: NOW },
                CheckIn::Enter {
                    id: 1,
                    bucket: 28_000_000,
                    from: Some(NOW),
                    at: NOW + 1,
                    minute: 28_000_000,
                    numbered: true,
                },
                CheckIn::Move { id: 1, from: NOW + 1, at: NOW + 2 },
            ],
            urgent: true,
        },
        r#"{"v":1,"worker":9,"instance":8,"first":3,"check_ins":[[0,1,28000000,0,1680000030000,0,0],[1,1,28000000,1680000030000,1680000030001,28000000,1],[2,1,0,1680000030001,1680000030002,0,0]],"urgent":true}"#,
    );
    pinned(
        &WorkerAnswer { v: 1, instance: 8, applied: 5, durable: 3, state: None },
        r#"{"v":1,"instance":8,"applied":5,"durable":3,"state":null}"#,
    );
}

#[test]
fn reports_of_data_centers_and_what_they_store() {
    pinned(
        &ColoReport {
            v: 1,
            colo: "AMS".to_owned(),
            sequence: 12,
            census: census(),
            given: None,
            workers: 2,
            next_in: 0,
        },
        &format!(
            r#"{{"v":1,"colo":"AMS","sequence":12,"census":{CENSUS},"given":null,"workers":2,"next_in":0}}"#
        ),
    );
    pinned(
        &SavedDataCenter { v: 1, census: census(), sequence: 12, workers: vec![(9, 5)] },
        &format!(r#"{{"v":1,"census":{CENSUS},"sequence":12,"workers":[[9,5]]}}"#),
    );
}

#[test]
fn what_global_and_the_givers_of_numbers_store() {
    pinned(
        &GlobalMeta {
            v: 1,
            shares: vec![(28_000_000, Shares::from_history([("AMS", 3), ("SIN", 1)].into_iter(), 8))],
            told: vec![(27_999_999, 12)],
        },
        r#"{"v":1,"shares":[[28000000,{"anywhere":4,"colos":[["AMS",3],["SIN",1]]}]],"told":[[27999999,12]]}"#,
    );
    pinned(
        &SavedLedger { v: 1, minute: 28_000_000, given: Some(4), previous: Some(9), settled: true, peak: 2 },
        r#"{"v":1,"minute":28000000,"given":4,"previous":9,"settled":true,"peak":2}"#,
    );
}

#[test]
fn the_state_key() {
    let room = room(100, 50, 1);
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    global.receive(
        &room,
        ColoReport {
            v: 1,
            colo: "AMS".to_owned(),
            sequence: 12,
            census: census(),
            given: None,
            workers: 2,
            next_in: 0,
        },
        NOW,
    );
    let state: StateKey = global.state(&room, Some("AMS"), 28_000_000, NOW);
    pinned(
        &StateAnswer { v: 1, state: Some(state) },
        r#"{"v":1,"state":{"v":1,"taken_at":1680000030000,"minute":28000000,"age":0,"active":2,"step":250,"expiring":[0],"expiring_refresh":0,"expiring_minute":0,"admitted":1,"admitted_next":0,"unnumbered":1,"carry":50,"entering":13,"waiting":[[28000000,1]],"shares":[{"minute":28000000,"round":1,"colo":"","anywhere":"AQ"},{"minute":28000001,"round":2,"colo":"Ag","anywhere":"AQ"}],"colo_ratio":0,"anywhere_ratio":1000000,"colo_workers":1,"all_workers":2}}"#,
    );
    pinned(
        &StateRequest { v: 1, minute: 28_000_000, given: None },
        r#"{"v":1,"minute":28000000,"given":null}"#,
    );
}

#[test]
fn fields_of_newer_code_are_ignored() {
    let newer = r#"{"v":2,"minute":28000000,"given":null,"colour":"blue"}"#;
    assert_eq!(serde_json::from_str::<StateRequest>(newer).unwrap().minute, 28_000_000);
}

#[test]
fn a_data_center_starts_from_what_it_stored() {
    let room = room(100, 50, 1);
    let saved: SavedDataCenter = serde_json::from_str(&format!(
        r#"{{"v":1,"census":{CENSUS},"sequence":{},"workers":[[9,5]]}}"#,
        NOW + 5_000
    ))
    .unwrap();
    let mut data_center = DataCenter::restore(&room, "AMS", 7, Some(saved), NOW + 1_000);
    let next = data_center.save(&room, NOW + 1_000);
    assert_eq!(next.census.active_at(&room, NOW + 1_000), 2);
    assert!(next.sequence > NOW + 5_000, "a clock that went back does not make old reports win");
}
