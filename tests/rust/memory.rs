//! What an object may hold fits in 16 MB, at 300 colos and 100,000 active users.
#![allow(missing_docs, clippy::pedantic, clippy::unwrap_used)]

use std::alloc::System;

use anteroom::admission::{Anywhere, Counter, LeaseCounter, NumberAsk, Pool, minute_of};
use anteroom::config::parse_room;
use anteroom::counts::{CheckIn, DataCenter, Global};
use anteroom::protocol::messages::{ColoReport, Given, VERSION, WorkerReport};
use anteroom::room::{Room, SlotStrategy};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LIMIT: isize = 16 << 20;
const NOW: u64 = 28_000_000 * 60_000 + 30_000;

fn room() -> Room {
    let room = serde_json::json!({
        "path": "/", "total_active_users": 100_000, "new_users_per_minute": 100_000, "session_duration": 5,
        "slot_strategy": "counters"
    });
    parse_room("ROOM_LARGE", &room).unwrap()
}

/// Bytes that are still held of what `build` has made.
fn held<T>(build: impl FnOnce() -> T) -> (isize, T) {
    let region = Region::new(ALLOCATOR);
    let built = build();
    let change = region.change();
    (change.bytes_allocated as isize - change.bytes_deallocated as isize + change.bytes_reallocated, built)
}

fn report(room: &Room, worker: u64, users: std::ops::Range<u64>) -> WorkerReport {
    let minute = minute_of(NOW);
    let check_ins = users
        .flat_map(|id| {
            let at = NOW + id % 60_000;
            let moves = (1..4).map(move |step| CheckIn::Move {
                id,
                from: at + step - 1,
                at: at + step,
                entered: None,
            });
            std::iter::once(CheckIn::Enter { id, bucket: minute, from: None, at, minute, numbered: true })
                .chain(moves)
        })
        .collect();
    assert_eq!(room.session_duration, 5);
    WorkerReport {
        v: VERSION,
        worker,
        instance: 0,
        first: 1,
        check_ins,
        urgent: false,
        origin: None,
        counts: Default::default(),
        heard: 0,
        judged: None,
    }
}

// One test: the allocator counts for the whole process.
#[test]
fn every_object_fits_in_16_mb() {
    let room = room();

    // All 100,000 active users in one colo, by way of 100 workers.
    let mut data_center = DataCenter::restore(&room, "AMS", 1, None, NOW);
    let reports: Vec<_> =
        (0..100).map(|worker| report(&room, worker + 1, worker * 1_000..(worker + 1) * 1_000)).collect();
    let (bytes, ()) = held(|| {
        for report in &reports {
            data_center.receive(&room, report, NOW + 60_000);
        }
    });
    assert_eq!(data_center.save(&room, NOW + 60_000).counts.active_at(&room, NOW + 60_000), 100_000);
    println!("DataCenter: {} KB", bytes / 1024);
    assert!(bytes < LIMIT, "DataCenter holds {bytes} bytes");

    // 300 colos, each with a full histogram and 30 buckets of waiting users.
    let reports: Vec<ColoReport> = (0..300u64)
        .map(|index| {
            let colo = format!("C{index:02}");
            let mut data_center = DataCenter::restore(&room, &colo, 1, None, NOW);
            let mut busy = report(&room, 1, index * 333..(index + 1) * 333);
            for bucket in 0..30 {
                let check_in = CheckIn::Wait {
                    id: bucket,
                    bucket: minute_of(NOW) - bucket as u32,
                    from: None,
                    at: (NOW + 50_000).into(),
                };
                busy.check_ins.push(check_in);
            }
            data_center.receive(&room, &busy, NOW + 60_000);
            let saved = data_center.save(&room, NOW + 60_000);
            data_center.push(&room, &saved, None, NOW + 60_000)
        })
        .collect();
    let (bytes, mut global) = held(|| {
        let mut global = Global::restore(&room, None, Vec::new(), NOW);
        for report in &reports {
            global.receive(&room, report.clone(), NOW + 60_000);
        }
        global
    });
    println!("Global: {} KB", bytes / 1024);
    assert!(bytes < LIMIT, "Global holds {bytes} bytes");
    let later = NOW + 60_000;
    assert!(global.state(&room, None, minute_of(later), later).waiting.len() == 30);

    // 100,000 numbers given in one minute.
    let ask = |id: u64| NumberAsk {
        id,
        bucket: minute_of(NOW),
        waits: false,
        minute: minute_of(NOW),
        limit: 100_000,
        owned: 100_000,
    };
    let (bytes, _) = held(|| {
        let mut counter = Counter::restore(None, NOW);
        for id in 0..100_000 {
            counter.take(&ask(id), NOW);
        }
        counter
    });
    println!("Counter: {} KB", bytes / 1024);
    assert!(bytes < LIMIT, "Counter holds {bytes} bytes");
    let mut empty = Global::restore(&room, None, Vec::new(), NOW);
    empty.anywhere_gave(Given {
        v: VERSION,
        minute: minute_of(NOW),
        given: Some(0),
        previous: Some(0),
        assumed: 0,
    });
    let state = empty.state(&room, None, minute_of(NOW), NOW);
    let (bytes, mut anywhere) = held(|| {
        let mut anywhere = Anywhere::restore(None, NOW);
        anywhere.renew(state.clone(), NOW);
        for id in 0..100_000 {
            anywhere.take(&room, &[ask(id)], NOW);
        }
        anywhere
    });
    println!("Anywhere: {} KB", bytes / 1024);
    assert!(bytes < LIMIT, "Anywhere holds {bytes} bytes");
    assert_eq!(anywhere.ledger(NOW).given(), Some(100_000));

    // Under leases: a Counter through which all 100,000 have come, and a pool of 300 colos.
    let leases = Room { slot_strategy: SlotStrategy::Leases, ..room.clone() };
    let mut pool = Pool::restore(None, NOW);
    pool.renew(state, NOW);
    let (bytes, _) = held(|| {
        let mut counter = LeaseCounter::new(1);
        for id in 0..100_000 {
            counter.ask(id, ask(id), NOW);
            if id % 1_000 == 999 {
                let now = NOW + id;
                if let Some(lease) = counter.call(now) {
                    counter.answered(pool.lease(&leases, "AMS", &lease, NOW).as_ref(), now);
                }
                assert_eq!(counter.answers().len(), 1_000);
            }
        }
        counter
    });
    println!("Counter, leases: {} KB", bytes / 1024);
    assert!(bytes < LIMIT, "Counter holds {bytes} bytes");
    let (bytes, _) = held(|| {
        let mut pool = Pool::restore(None, NOW);
        pool.renew(empty.state(&room, None, minute_of(NOW), NOW), NOW);
        for colo in 0..300 {
            let mut counter = LeaseCounter::new(colo);
            counter.ask(1, ask(colo), NOW);
            pool.lease(&leases, &format!("C{colo:03}"), &counter.call(NOW).unwrap(), NOW).unwrap();
        }
        pool
    });
    println!("Anywhere, leases: {} KB", bytes / 1024);
    assert!(bytes < LIMIT, "Anywhere holds {bytes} bytes");
}
