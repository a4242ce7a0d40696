//! The queueing methods: who enters, who waits, who is turned away, and that a lot can be checked.

use anteroom::admission::{
    AdmissionController, Clocked, Decision, DrawKey, StateKey, Step, decide, draw, draw_id,
    next_draw_seconds, random_wait_seconds, round_end, round_of, wait_percentiles,
};
use anteroom::room::{QueueingMethod, Room, SlotStrategy};
use anteroom::ticket::{Standing, Ticket};
use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use sha2::Sha256;

use crate::articles;

const NOW: u64 = 28_000_000 * 60_000 + 30_000;

fn room(queueing_method: QueueingMethod) -> Room {
    Room { queueing_method, ..articles::room(100, 600, 5) }
}

/// A room that is full, with so many who wait and so many whose sessions end within a refresh.
fn full(waiting: u32, expiring_refresh: u32) -> Clocked {
    let key = StateKey {
        v: 1,
        taken_at: NOW,
        minute: (NOW / 60_000) as u32,
        active: 100,
        step: 1_250,
        expiring_refresh,
        expiring_minute: expiring_refresh * 3,
        admitted: 590,
        waiting: vec![((NOW / 60_000) as u32 - 1, waiting)],
        present: vec![waiting],
        ..StateKey::default()
    };
    Clocked { key, received_at: NOW }
}

fn ticket(id: u64, last_check_in: u64) -> Ticket {
    Ticket { bucket: (NOW / 60_000) as u32 - 1, ..Ticket::new(id, last_check_in) }
}

fn waiting(id: u64) -> Standing {
    Standing::Waiting(ticket(id, NOW - 20_000))
}

fn active() -> Standing {
    Standing::Active(Ticket { accepted_at: Some(NOW - 1_000), ..ticket(7, NOW - 1_000) })
}

fn key() -> DrawKey {
    DrawKey::new(None, "the first key, the second")
}

#[test]
fn passthrough_lets_everybody_in_without_a_number_though_the_room_is_full() {
    let room = room(QueueingMethod::Passthrough);
    let mut controller = AdmissionController::default();
    controller.learn(full(50, 0));
    for standing in [Standing::New, waiting(1)] {
        let step = controller.judge(&room, &standing, 1, NOW);
        assert_eq!(step, Step::Enter { minute: (NOW / 60_000) as u32, numbered: false });
    }
    assert_eq!(controller.judge(&room, &active(), 7, NOW), Step::Pass);
}

#[test]
fn reject_turns_away_whoever_is_not_in() {
    let room = room(QueueingMethod::Reject);
    for standing in [Standing::New, waiting(1)] {
        assert_eq!(decide(&room, &standing, None, NOW), Decision::Refuse);
    }
    assert_eq!(decide(&room, &active(), None, NOW), Decision::Pass);
}

#[test]
fn queue_all_makes_people_wait_whatever_the_method() {
    for method in
        [QueueingMethod::Fifo, QueueingMethod::Random, QueueingMethod::Passthrough, QueueingMethod::Reject]
    {
        let room = Room { queue_all: true, ..room(method) };
        assert_eq!(decide(&room, &Standing::New, None, NOW), Decision::Wait);
        assert_eq!(decide(&room, &waiting(1), None, NOW), Decision::Wait);
        assert_eq!(draw(&room, &key(), &waiting(1), Some(&full(50, 0)), NOW), None);
    }
}

#[test]
fn an_unhealthy_origin_is_spared_by_passthrough_too() {
    let mut state = full(0, 0);
    state.key.held = true;
    let room = room(QueueingMethod::Passthrough);
    assert_eq!(decide(&room, &Standing::New, Some(&state), NOW), Decision::Wait);
}

#[test]
fn nothing_is_drawn_where_there_is_room_for_all_who_wait() {
    let room = room(QueueingMethod::Random);
    let free = Clocked { key: StateKey { active: 50, admitted: 0, ..full(3, 20).key }, received_at: NOW };
    for state in [full(0, 0), free] {
        assert_eq!(draw(&room, &key(), &Standing::New, Some(&state), NOW), None);
        assert_eq!(draw(&room, &key(), &waiting(1), Some(&state), NOW), None);
    }
}

#[test]
fn a_counter_is_not_asked_for_numbers_of_a_minute_that_is_spent_though_it_may_have_some_left() {
    let waits = waiting(1);
    for (slot_strategy, asks) in [(SlotStrategy::Leases, true), (SlotStrategy::Counters, false)] {
        let room = Room { slot_strategy, ..room(QueueingMethod::Random) };
        let decision = decide(&room, &waits, Some(&full(100, 0)), NOW);
        assert_eq!(matches!(decision, Decision::Ask(_)), asks, "{slot_strategy:?}: {decision:?}");
    }
}

#[test]
fn a_ticket_has_one_chance_in_a_round_and_a_newcomer_none() {
    let room = room(QueueingMethod::Random);
    let state = full(100, 20);
    let chance = |standing: Standing, now: u64| draw(&room, &key(), &standing, Some(&state), now).unwrap();
    let before = |id| Standing::Waiting(ticket(id, NOW - 20_000));
    let winner = (1..).find(|id| chance(before(*id), NOW).wins).unwrap();
    let begin =
        (NOW - 20_000..=NOW).find(|at| round_of(&room, winner, *at) == round_of(&room, winner, NOW)).unwrap();
    assert!(!chance(Standing::Waiting(ticket(winner, begin)), NOW).wins, "it has asked in this round");
    let first = Standing::Waiting(ticket(winner, begin - 1));
    assert!(chance(first, NOW).wins);
    assert_eq!(chance(first, NOW).number, chance(first, begin).number);
    let newcomer = chance(Standing::New, NOW);
    assert_eq!((newcomer.number, newcomer.wins), (None, false));
}

#[test]
fn pressing_reload_wins_nothing_though_there_are_nearly_enough_slots() {
    let room = room(QueueingMethod::Random);
    let state = full(30, 20);
    let asked = Standing::Waiting(ticket(1, NOW));
    let drawn = draw(&room, &key(), &asked, Some(&state), NOW + 1).unwrap();
    assert_eq!((drawn.threshold, drawn.wins), (1.0, false));
    assert!(draw(&room, &key(), &waiting(1), Some(&state), NOW).unwrap().wins);
}

#[test]
fn about_four_times_as_many_may_ask_as_slots_are_expected() {
    let room = room(QueueingMethod::Random);
    let state = full(10_000, 100);
    let wins = (1..=10_000).filter(|id| draw(&room, &key(), &waiting(*id), Some(&state), NOW).unwrap().wins);
    // 402 of 10,000, give or take five deviations.
    let wins = wins.count();
    assert!((302..=502).contains(&wins), "{wins} of 10,000 may ask for 100 slots");
}

#[test]
fn whoever_knows_the_seed_can_recompute_a_lot() {
    let room = room(QueueingMethod::Random);
    let id = 0x0123_4567_89ab_cdef;
    let drawn = draw(&room, &key(), &waiting(id), Some(&full(1_000, 10)), NOW).unwrap();
    let seed = key().of_round(&room.name, drawn.round);
    assert_eq!(draw_id(id), "0123456789abcdef");
    // By the published texts alone.
    let from_hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(&from_hex(&seed.to_string())).unwrap();
    mac.update(&from_hex(&draw_id(id)));
    let bytes = mac.finalize().into_bytes();
    let number = u64::from_be_bytes(bytes[..8].try_into().unwrap()) as f64 / 2f64.powi(64);
    assert_eq!(drawn.number, Some(number));
}

#[test]
fn seeds_depend_on_the_key_the_room_and_the_round() {
    let seed = key().of_round("shop", 7);
    assert_eq!(seed, DrawKey::new(None, " the first key ,another second").of_round("shop", 7));
    assert_ne!(seed, DrawKey::new(Some("its own key"), "the first key").of_round("shop", 7));
    assert_ne!(seed, key().of_round("shop", 8));
    assert_ne!(seed, key().of_round("shop2", 7));
    assert_ne!(seed, key().of_event("shop", "draw", 7));
    assert_ne!(seed.commitment(), seed.to_string());
}

#[test]
fn a_wait_by_chance_is_told_in_quarters() {
    let [quarter, half, three_quarters] = wait_percentiles(600, 2.0);
    assert!(
        (quarter - 86.3).abs() < 0.1 && (half - 207.9).abs() < 0.1 && (three_quarters - 415.9).abs() < 0.1
    );
    let room = room(QueueingMethod::Random);
    let [quarter, half, three_quarters] =
        random_wait_seconds(&room, &full(200, 20).key, NOW).expect("users leave, so it is known");
    assert!(0 < quarter && quarter < half && half < three_quarters);
    let closed = Room { queue_all: true, ..room };
    assert_eq!(random_wait_seconds(&closed, &full(200, 20).key, NOW), None);
}

proptest! {
    #[test]
    fn everybody_checks_in_once_in_each_round(refresh in 5u32..=60, id: u64, into in 0.0..1.0, random in 0.0..1.0) {
        let room = Room { refresh_interval_seconds: refresh, ..room(QueueingMethod::Random) };
        let now = NOW + (into * room.refresh_ms() as f64) as u64;
        let round = round_of(&room, id, now);
        let next = now + 1_000 * u64::from(next_draw_seconds(&room, id, now, random));
        prop_assert_eq!(round_of(&room, id, next), round + 1);
        // Pages come up to half a second late, and the way takes a little.
        prop_assert_eq!(round_of(&room, id, next + 1_500), round + 1);
        prop_assert!(next < round_end(&room, round + 1));
    }
}
