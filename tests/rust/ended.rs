//! A session that ends before its time: once, whoever says so, wherever, and however often.

use std::collections::BTreeSet;

use anteroom::admission::{EndedNews, StateKey, minute_of};
use anteroom::counts::{CheckIn, Counts, DataCenter, EndedEverywhere, WorkerReport};
use anteroom::protocol::wire::encode;
use anteroom::room::Room;
use anteroom::ticket::{is_made_in, ticket_id};
use proptest::prelude::*;

use crate::articles::room;

const NOW: u64 = 28_000_000 * 60_000 + 30_000;

const COLOS: [&str; 6] = ["AMS", "LHR", "SIN", "GRU", "IAD", "SYD"];

fn enter(id: u64) -> CheckIn {
    enter_at(id, 0)
}

fn enter_at(id: u64, at: u64) -> CheckIn {
    let minute = minute_of(NOW + at);
    CheckIn::Enter { id, bucket: minute, from: None, at: NOW + at, minute, numbered: true }
}

fn end(id: u64, from: u64, at: u64) -> CheckIn {
    CheckIn::Leave { id, from: NOW + from, at: NOW + at, entered: None }
}

fn go(id: u64, from: u64, at: u64) -> CheckIn {
    CheckIn::Move { id, from: NOW + from, at: NOW + at, entered: None }
}

/// Data centers, and what Global passes on among them.
struct World {
    room: Room,
    data_centers: Vec<DataCenter>,
    everywhere: EndedEverywhere,
    reports: u64,
}

impl World {
    fn new(colos: &[&str]) -> Self {
        let room = room(100, 100, 1);
        let data_centers = colos.iter().map(|colo| DataCenter::restore(&room, colo, 7, None, NOW)).collect();
        let everywhere = EndedEverywhere::new(NOW);
        Self { room, data_centers, everywhere, reports: 0 }
    }

    /// A worker that has just started reports. Returns the tickets that it is told to refuse.
    fn report(&mut self, colo: usize, check_ins: &[CheckIn], now: u64) -> Vec<u64> {
        self.reports += 1;
        let report = WorkerReport {
            v: 1,
            worker: self.reports,
            first: 1,
            check_ins: check_ins.to_vec(),
            ..WorkerReport::default()
        };
        // Whoever has never heard from Global knows no state key, and tells nothing with it.
        self.data_centers[colo].learn(StateKey::default(), NOW);
        let answer = self.data_centers[colo].receive(&self.room, &report, NOW + now);
        let named: BTreeSet<u64> = answer.state.unwrap().ended.sessions.iter().map(CheckIn::id).collect();
        named.into_iter().collect()
    }

    fn push(&mut self, colo: usize, now: u64) {
        let data_center = &mut self.data_centers[colo];
        let saved = data_center.save(&self.room, NOW + now);
        let report = data_center.push(&self.room, &saved, None, NOW + now);
        self.everywhere.learn(&report.ended, NOW + now);
        let ended = self.everywhere.after(report.heard);
        data_center.pushed(&self.room, Some(StateKey { ended, ..StateKey::default() }), NOW + now);
    }

    fn push_all(&mut self, now: u64) {
        for colo in (0..self.data_centers.len()).chain(0..self.data_centers.len()) {
            self.push(colo, now);
        }
    }

    /// A data center loses its memory, and starts from what it has stored.
    fn restart(&mut self, colo: usize, now: u64) {
        let saved = self.data_centers[colo].save(&self.room, NOW + now);
        self.data_centers[colo] = DataCenter::restore(&self.room, COLOS[colo], 8, Some(saved), NOW + now);
    }

    fn counts(&mut self, now: u64) -> Counts {
        let mut all = Counts::new(&self.room);
        for data_center in &mut self.data_centers {
            all.merge(&data_center.save(&self.room, NOW + now).counts, 1);
        }
        all
    }

    fn active(&mut self, now: u64) -> i64 {
        let counts = self.counts(now);
        counts.active_at(&self.room, NOW + now)
    }
}

#[test]
fn a_session_that_is_ended_in_six_colos_gives_one_slot_back() {
    let mut world = World::new(&COLOS);
    let ids: Vec<u64> = (1..=10).map(|random| ticket_id(random, "AMS")).collect();
    world.report(0, &ids.iter().map(|id| enter(*id)).collect::<Vec<_>>(), 0);
    for colo in (0..COLOS.len()).rev() {
        world.report(colo, &[end(ids[0], 0, 1_000)], 1_000);
        world.push(colo, 1_100);
    }
    world.push_all(3_000);
    assert_eq!(world.active(3_000), 9);
    world.restart(0, 4_000);
    world.report(0, &[end(ids[0], 0, 5_000), end(ids[0], 1_000, 5_000)], 5_000);
    assert_eq!(world.active(5_000), 9, "nor does a restart make it two");
}

#[test]
fn a_place_that_is_given_up_in_six_colos_is_one_place() {
    let mut world = World::new(&COLOS);
    let bucket = minute_of(NOW);
    let ids: Vec<u64> = (1..=16).map(|random| ticket_id(random, "AMS")).collect();
    let wait = |id: &u64| CheckIn::Wait { id: *id, bucket, from: None, at: NOW.into() };
    world.report(0, &ids.iter().map(wait).collect::<Vec<_>>(), 0);
    let give_up = CheckIn::GiveUp { id: ids[0], bucket, from: NOW.into(), at: NOW + 1_000 };
    for colo in 0..COLOS.len() {
        world.report(colo, &[give_up], 1_000);
    }
    let counts = world.counts(2_000);
    assert_eq!(counts.waiting_at(&world.room, NOW + 2_000), [(bucket, 15)]);
}

#[test]
fn a_copy_of_an_ended_sessions_ticket_is_refused_in_every_colo_and_counts_in_none() {
    let mut world = World::new(&COLOS);
    let id = ticket_id(1, "AMS");
    world.report(0, &[enter(id)], 0);
    assert_eq!(world.report(1, &[go(id, 0, 1_000)], 1_000), Vec::<u64>::new(), "a user in another colo");
    world.report(0, &[end(id, 0, 2_000)], 2_000);
    assert_eq!(world.report(0, &[go(id, 0, 3_000)], 3_000), [id]);
    world.push_all(4_000);
    for (colo, name) in COLOS.iter().enumerate().skip(1) {
        assert_eq!(world.report(colo, &[go(id, 0, 5_000)], 5_000), [id], "{name}");
    }
    assert_eq!(world.active(6_000), 0);
    world.restart(2, 7_000);
    assert_eq!(world.report(2, &[go(id, 0, 8_000)], 8_000), [id], "after a restart too");
    // As long as somebody tries.
    for at in (30_000..600_000).step_by(30_000) {
        assert_eq!(world.report(3, &[go(id, at - 30_000, at)], at), [id]);
    }
}

#[test]
fn an_ended_session_is_remembered_for_as_long_as_any_may_last() {
    // An operator has made sessions longer meanwhile.
    let mut world = World::new(&COLOS[..1]);
    let id = |random| ticket_id(random, "AMS");
    world.report(0, &[enter(id(0)), end(id(0), 0, 1_000)], 1_000);
    for minute in 1..30 {
        let now = minute * 60_000;
        world.report(0, &[end(id(minute), now, now)], now);
    }
    let now = 29 * 60_000 + 30_000;
    world.report(0, &[go(id(30), 0, now), end(id(0), now, now)], now);
    assert_eq!(world.active(now), 1, "another user stays counted");
}

#[test]
fn a_global_that_restarts_before_it_has_told_all_is_told_again() {
    let mut world = World::new(&COLOS);
    let id = ticket_id(1, "AMS");
    world.report(0, &[enter(id), end(id, 0, 1_000)], 1_000);
    world.push(0, 1_500);
    world.everywhere = EndedEverywhere::new(NOW + 2_000);
    world.push_all(3_000);
    world.push_all(5_000);
    assert_eq!(world.report(5, &[go(id, 0, 6_000)], 6_000), [id]);
}

#[test]
fn of_more_sessions_than_are_stored_none_is_taken_off_twice_after_a_restart() {
    let mut world = World::new(&COLOS[..1]);
    let ids: Vec<u64> = (1..=2_500).map(|random| ticket_id(random, "AMS")).collect();
    world.report(0, &ids.iter().map(|id| enter(*id)).collect::<Vec<_>>(), 0);
    for (number, id) in ids.iter().skip(100).enumerate() {
        let now = 1_000 + 10 * number as u64;
        world.report(0, &[end(*id, 0, now)], now);
        if number % 100 == 0 {
            world.push(0, now);
        }
    }
    assert_eq!(world.active(26_000), 100);
    world.restart(0, 26_000);
    for pushed in 0..20 {
        world.push(0, 27_000 + 1_000 * pushed);
    }
    assert_eq!(world.active(47_000), 100);
}

#[test]
fn nor_is_one_taken_off_twice_after_two_restarts_between_which_global_tells_of_all() {
    let mut world = World::new(&COLOS[..1]);
    let id = |random| ticket_id(random, "AMS");
    world.report(0, &(1..=100).map(|random| enter(id(random))).collect::<Vec<_>>(), 0);
    for number in 0..4_400 {
        let (id, now) = (id(1_000 + number), 1_000 + 10 * number);
        world.report(0, &[enter_at(id, now), end(id, now, now + 5)], now + 5);
        if number % 100 == 0 {
            world.push(0, now + 5);
        }
    }
    for restarted_at in [46_000, 52_000] {
        world.restart(0, restarted_at);
        for pushed in 0..25 {
            world.push(0, restarted_at + 200 * pushed);
        }
        assert_eq!(world.active(restarted_at + 5_000), 100, "{restarted_at}");
    }
}

#[test]
fn global_tells_of_many_in_turn_and_of_each_once() {
    let mut everywhere = EndedEverywhere::new(NOW);
    let ended: Vec<CheckIn> = (1..=1_200).map(|id| end(id, 0, 1)).collect();
    everywhere.learn(&ended, NOW);
    everywhere.learn(&ended, NOW + 1);
    let mut told = Vec::new();
    let mut news = EndedNews::default();
    for _ in 0..7 {
        news = everywhere.after(news.heard);
        told.extend(news.sessions);
        news.sessions = Vec::new();
    }
    assert_eq!(told, ended);
}

#[test]
fn a_worker_is_told_of_many_in_turn_and_in_short_answers() {
    let mut world = World::new(&COLOS[..1]);
    let ids: BTreeSet<u64> = (1..=450).map(|random| ticket_id(u64::MAX / random, "AMS")).collect();
    let ended: Vec<CheckIn> = ids.iter().map(|id| end(*id, 0, 1_000)).collect();
    world.report(0, &ended, 1_000);
    let (mut told, mut heard) = (BTreeSet::new(), 0);
    for _ in 0..5 {
        let report = WorkerReport { v: 1, worker: 9_000, first: 1, heard, ..WorkerReport::default() };
        let answer = world.data_centers[0].receive(&world.room, &report, NOW + 2_000);
        let bytes = encode(&answer).unwrap().len();
        assert!(bytes <= 2_048, "{bytes} bytes");
        let news = answer.state.unwrap().ended;
        told.extend(news.sessions.iter().map(CheckIn::id));
        heard = news.heard;
    }
    assert_eq!(told, ids);
}

proptest! {
    /// Whatever copies of one ticket do, in whichever colos, and however often it is ended: five others stay counted.
    #[test]
    fn no_ticket_takes_others_off_the_counts(
        steps in prop::collection::vec((0..6_usize, 0..8_usize, 0..4_u8), 1..40),
        letters in "[A-Z]{3}",
    ) {
        let mut world = World::new(&COLOS);
        let id = ticket_id(0x0123_4567_89ab_cdef, "AMS");
        prop_assert!(is_made_in(id, "AMS") && (letters == "AMS" || !is_made_in(id, &letters)));
        let others: Vec<u64> = (1..=5).map(|random| ticket_id(random, "SIN")).collect();
        let all: Vec<CheckIn> = others.iter().chain([&id]).map(|id| enter(*id)).collect();
        world.report(0, &all, 0);
        // The cookies that there are, by the moment of their last check-in.
        let mut cookies = vec![0];
        for (number, (colo, cookie, what)) in steps.into_iter().enumerate() {
            let now = 3_000 * (number as u64 + 1);
            let from = cookies[cookie % cookies.len()];
            match what {
                0 => { world.report(colo, &[end(id, from, now)], now); }
                1 => world.push(colo, now),
                2 => world.restart(colo, now),
                _ => {
                    if world.report(colo, &[go(id, from, now)], now).is_empty() {
                        cookies.push(now);
                    }
                }
            }
            let moves: Vec<CheckIn> = others.iter().map(|id| go(*id, now - 3_000, now)).collect();
            world.report(0, &moves, now);
            for later in [0, 20_000, 59_000] {
                prop_assert!(world.active(now + later) >= 5, "{later} ms later");
            }
        }
    }
}
