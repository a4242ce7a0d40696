//! `origin_guard`: the window stays where it should, every request ends once, nobody is forgotten for good.

use std::collections::BTreeMap;

use anteroom::origin::{ASK_EVERY_MS, Arrival, Ending, Guard, GuardSettings, GuardStrategy, Passage, Turn};
use proptest::collection::vec;
use proptest::prelude::*;

const TIMEOUT_MS: u64 = 1_000;
const HOLD_MS: u64 = 500;

fn settings(strategy: GuardStrategy, min: u32, max: u32, at_once: Option<u32>) -> GuardSettings {
    GuardSettings { strategy, min, max, at_once, timeout_ms: TIMEOUT_MS, hold_ms: HOLD_MS }
}

fn guard(strategy: GuardStrategy, min: u32, max: u32, at_once: Option<u32>) -> Guard {
    Guard::new(settings(strategy, min, max, at_once))
}

/// A request that must be sent at once.
#[track_caller]
fn sent(guard: &mut Guard, now: u64) -> Passage {
    match guard.arrive(now) {
        Arrival::Go(passage) => passage,
        other => panic!("{other:?}"),
    }
}

/// A request that must stand in line.
#[track_caller]
fn in_line(guard: &mut Guard, now: u64) -> Passage {
    match guard.arrive(now) {
        Arrival::InLine(passage) => passage,
        other => panic!("{other:?}"),
    }
}

/// As many requests as the window lets, all at the origin.
fn fill(guard: &mut Guard, now: u64) -> Vec<Passage> {
    let mut sent = Vec::new();
    while let Arrival::Go(passage) = guard.arrive(now) {
        sent.push(passage);
    }
    assert_eq!(sent.len(), guard.window() as usize);
    sent
}

/// A `position` guard with a window of its `max`, empty: nothing has failed yet.
fn grown(max: u32) -> Guard {
    let mut guard = guard(GuardStrategy::Position, 5, max, None);
    while guard.window() < max {
        for passage in fill(&mut guard, 0) {
            guard.finished(passage, Ending::Success, 1);
        }
    }
    guard
}

#[derive(Debug, Clone, Copy)]
enum Happens {
    Arrive,
    PassBeyond,
    Ask(usize),
    Finish(usize, Ending),
    /// The visitor goes away, and nobody tells.
    Vanish(usize),
    Time(u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    let ending = prop_oneof![
        6 => Just(Ending::Success),
        1 => Just(Ending::Overload),
        1 => Just(Ending::TimedOut),
        1 => Just(Ending::Other),
    ];
    prop_oneof![
        8 => Just(Happens::Arrive),
        1 => Just(Happens::PassBeyond),
        6 => any::<usize>().prop_map(Happens::Ask),
        6 => (any::<usize>(), ending).prop_map(|(which, ending)| Happens::Finish(which, ending)),
        1 => any::<usize>().prop_map(Happens::Vanish),
        3 => (0..700_u64).prop_map(Happens::Time),
    ]
}

fn any_settings() -> impl Strategy<Value = GuardSettings> {
    let strategy = prop_oneof![
        Just(GuardStrategy::Static),
        Just(GuardStrategy::Basic),
        Just(GuardStrategy::Position),
        Just(GuardStrategy::NewestFirst),
    ];
    (strategy, 1..10_u32, 0..40_u32, proptest::option::of(1..12_u32))
        .prop_map(|(strategy, min, more, at_once)| settings(strategy, min, min + more, at_once))
}

/// Where a request is, as its worker knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Line { since: u64 },
    Origin { position: u32 },
}

proptest! {
    #[test]
    fn whatever_happens_the_window_is_within_its_bounds_and_every_request_ends_once(
        settings in any_settings(),
        story in vec(happens(), 1..400),
    ) {
        let mut guard = Guard::new(settings);
        let newest_first = settings.strategy == GuardStrategy::NewestFirst;
        let at_once = settings.at_once.map_or(
            if newest_first { settings.min as usize } else { usize::MAX },
            |at_once| at_once as usize,
        );
        let mut now = 0;
        let mut known: BTreeMap<u64, At> = BTreeMap::new();
        let mut beyond = 0;
        let mut vanished = 0;
        let nth = |known: &BTreeMap<u64, At>, which: usize| {
            known.iter().nth(which % known.len().max(1)).map(|(number, at)| (*number, *at))
        };
        let passage = |number: u64| Passage::from_number(number as f64);
        for one in story {
            let before = guard.in_flight();
            match one {
                Happens::Arrive => {
                    let had_room = guard.has_room(now);
                    let before = guard.in_flight();
                    let arrival = guard.arrive(now);
                    prop_assert!(had_room || newest_first || arrival == Arrival::Refused);
                    let (number, at) = match arrival {
                        Arrival::Refused => {
                            prop_assert!(!had_room);
                            prop_assert_eq!(guard.in_flight(), before);
                            continue;
                        }
                        Arrival::Go(passage) => (passage.number() as u64, At::Origin { position: before + 1 }),
                        Arrival::InLine(passage) => (passage.number() as u64, At::Line { since: now }),
                    };
                    prop_assert_eq!(guard.in_flight(), before + u32::from(had_room));
                    prop_assert!(known.insert(number, at).is_none(), "numbers are not used twice");
                }
                Happens::PassBeyond => {
                    let number = guard.pass_beyond(now).number() as u64;
                    beyond += 1;
                    // The guard may just have forgotten others.
                    known.insert(number, At::Origin { position: guard.in_flight() });
                }
                Happens::Ask(which) => {
                    let Some((number, at)) = nth(&known, which) else { continue };
                    match guard.turn(passage(number), now) {
                        Turn::Go => {
                            let At::Line { since } = at else { panic!("sent twice") };
                            prop_assert!(now - since < HOLD_MS);
                            known.insert(number, At::Origin { position: u32::MAX });
                        }
                        Turn::Later => prop_assert!(matches!(at, At::Line { .. }), "it was sent already"),
                        Turn::Dropped => {
                            if matches!(at, At::Line { .. }) {
                                known.remove(&number);
                            }
                        }
                    }
                    prop_assert!(guard.in_flight() <= before);
                }
                Happens::Finish(which, ending) => {
                    let Some((number, at)) = nth(&known, which) else { continue };
                    known.remove(&number);
                    guard.finished(passage(number), ending, now);
                    prop_assert!(guard.in_flight() <= before);
                    let failed = matches!(ending, Ending::Overload | Ending::TimedOut);
                    if let (At::Origin { position }, true, GuardStrategy::Position) = (at, failed, settings.strategy)
                        && guard.in_flight() < before
                    {
                        prop_assert!(guard.window() < position.max(settings.min + 1));
                    }
                    let (window, left) = (guard.window(), guard.in_flight());
                    guard.finished(passage(number), Ending::TimedOut, now);
                    prop_assert_eq!((guard.window(), guard.in_flight()), (window, left), "it ended twice");
                }
                Happens::Vanish(which) => {
                    let Some((number, _)) = nth(&known, which) else { continue };
                    known.remove(&number);
                    vanished += 1;
                }
                Happens::Time(ms) => now += ms,
            }
            prop_assert!((settings.min..=settings.max).contains(&guard.window()));
            prop_assert!(guard.in_flight() as usize <= known.len() + vanished, "counts somebody who is not there");
            if beyond == 0 {
                let most = settings.max as usize + if newest_first { at_once } else { 0 };
                prop_assert!(guard.in_flight() as usize <= most);
            }
        }
        // Nobody tells anything any more.
        now += TIMEOUT_MS + HOLD_MS + 10_000;
        prop_assert!(guard.has_room(now));
        prop_assert_eq!(guard.in_flight(), 0);
        for number in known.keys() {
            let window = guard.window();
            guard.finished(passage(*number), Ending::TimedOut, now);
            prop_assert_eq!((guard.window(), guard.in_flight()), (window, 0));
        }
    }

    #[test]
    fn no_more_are_at_the_origin_than_it_takes_at_once_and_none_stands_in_line_while_it_takes_more(
        strategy in prop_oneof![
            Just(GuardStrategy::Static), Just(GuardStrategy::Position), Just(GuardStrategy::NewestFirst)
        ],
        at_once in 1..8_u32,
        ends in vec(0..8_usize, 1..60),
    ) {
        let mut guard = guard(strategy, 20, 20, Some(at_once));
        let mut at_origin = Vec::new();
        let mut line = Vec::new();
        for (now, end) in (0..).step_by(3).zip(ends) {
            match guard.arrive(now) {
                Arrival::Go(passage) => at_origin.push(passage),
                Arrival::InLine(passage) => line.push(passage),
                Arrival::Refused => prop_assert_eq!(at_origin.len() + line.len(), 20),
            }
            if end < at_origin.len() {
                guard.finished(at_origin.remove(end), Ending::Other, now);
            }
            line.retain(|passage| match guard.turn(*passage, now) {
                Turn::Go => {
                    at_origin.push(*passage);
                    false
                }
                Turn::Later => true,
                Turn::Dropped => false,
            });
            // The newest asks last here, so an older one sees its turn at the next look.
            line.retain(|passage| {
                let goes = guard.turn(*passage, now) == Turn::Go;
                if goes { at_origin.push(*passage); }
                !goes
            });
            prop_assert!(at_origin.len() <= at_once as usize);
            prop_assert!(line.is_empty() || at_origin.len() == at_once as usize);
        }
    }
}

#[test]
fn a_fixed_window_stays_whatever_fails() {
    let mut guard = guard(GuardStrategy::Static, 1, 3, None);
    for passage in fill(&mut guard, 0) {
        guard.finished(passage, Ending::TimedOut, TIMEOUT_MS);
    }
    assert_eq!((guard.window(), guard.in_flight()), (3, 0));
}

#[test]
fn basic_takes_ten_off_at_a_failure_and_adds_one_after_ten_successes_in_a_row() {
    let mut guard = guard(GuardStrategy::Basic, 20, 40, None);
    let mut end = |ending: Ending, times: usize| {
        for _ in 0..times {
            let passage = sent(&mut guard, 0);
            guard.finished(passage, ending, 1);
        }
        guard.window()
    };
    assert_eq!(end(Ending::Success, 9), 20);
    assert_eq!(end(Ending::Success, 1), 21);
    assert_eq!(end(Ending::Success, 140), 35);
    assert_eq!(end(Ending::Success, 9), 35);
    assert_eq!(end(Ending::TimedOut, 1), 25);
    assert_eq!(end(Ending::Success, 9), 25, "the run began anew");
    assert_eq!(end(Ending::Overload, 1), 20, "never under min");
    assert_eq!(end(Ending::Success, 1_000), 40, "never above max");
}

#[test]
fn a_failure_at_a_position_shrinks_the_window_to_just_below_it() {
    let mut guard = grown(200);
    let sent = fill(&mut guard, 10);
    // The article's example, position 100 of 200, with a step of a twentieth.
    guard.finished(sent[99], Ending::TimedOut, 1_010);
    assert_eq!(guard.window(), 95);
    // These were sent before that, and are beyond the window.
    guard.finished(sent[149], Ending::TimedOut, 1_010);
    guard.finished(sent[95], Ending::TimedOut, 1_010);
    assert_eq!(guard.window(), 95);
    guard.finished(sent[9], Ending::Overload, 1_010);
    assert_eq!(guard.window(), 9);
    guard.finished(sent[0], Ending::TimedOut, 1_010);
    assert_eq!(guard.window(), 5, "never under min");
}

#[test]
fn failures_that_go_on_in_the_smaller_window_shrink_it_faster() {
    let mut guard = grown(200);
    let mut windows = Vec::new();
    for second in 1..=5 {
        for passage in fill(&mut guard, second * 10_000) {
            // The last position fails first.
            if guard.in_flight() == guard.window() {
                windows.push(guard.window());
            }
            guard.finished(passage, Ending::Other, second * 10_000 + TIMEOUT_MS);
        }
        let sent = fill(&mut guard, second * 10_000 + 2_000);
        guard.finished(*sent.last().unwrap(), Ending::TimedOut, second * 10_000 + 3_000);
        for passage in sent {
            guard.finished(passage, Ending::Other, second * 10_000 + 3_000);
        }
    }
    assert_eq!(windows, [200, 190, 172, 140, 84]);
}

#[test]
fn a_failure_among_answers_that_are_nearly_late_shrinks_the_window_by_a_quarter() {
    let window_after = |took: u64| {
        let mut guard = grown(200);
        let sent = fill(&mut guard, 0);
        guard.finished(sent[199], Ending::Success, took);
        guard.finished(sent[99], Ending::TimedOut, TIMEOUT_MS);
        guard.window()
    };
    // One slow request among quick ones, and one of many slow ones.
    assert_eq!((window_after(TIMEOUT_MS / 2), window_after(TIMEOUT_MS / 2 + 1)), (95, 75));
}

#[test]
fn an_answer_after_its_time_is_a_failure() {
    let mut guard = grown(40);
    let sent = fill(&mut guard, 0);
    guard.finished(sent[39], Ending::Success, TIMEOUT_MS);
    assert_eq!(guard.window(), 40);
    guard.finished(sent[38], Ending::Success, TIMEOUT_MS + 1);
    assert_eq!(guard.window(), 30);
}

#[test]
fn work_in_line_beyond_a_window_that_shrank_is_not_sent() {
    let mut guard = guard(GuardStrategy::Position, 40, 40, Some(2));
    let first = [sent(&mut guard, 0), sent(&mut guard, 0)];
    let line: Vec<Passage> = (3..=40).map(|_| in_line(&mut guard, 0)).collect();
    assert_eq!(guard.arrive(0), Arrival::Refused);
    assert!(!guard.has_room(0));
    // The window is at its min: nothing is dropped.
    guard.finished(first[0], Ending::Overload, 10);
    assert_eq!((guard.turn(line[0], 10), guard.turn(line[37], 10)), (Turn::Go, Turn::Later));

    let mut guard = Guard::new(settings(GuardStrategy::Position, 5, 40, Some(2)));
    while guard.window() < 40 {
        let passage = sent(&mut guard, 0);
        let others: Vec<Passage> = (1..guard.window())
            .map(|_| match guard.arrive(0) {
                Arrival::Go(passage) | Arrival::InLine(passage) => passage,
                Arrival::Refused => panic!("refused"),
            })
            .collect();
        guard.finished(passage, Ending::Other, 0);
        for one in others {
            guard.turn(one, 0);
            guard.finished(one, Ending::Success, 0);
        }
    }
    let first = [sent(&mut guard, 0), sent(&mut guard, 0)];
    let line: Vec<Passage> = (3..=40).map(|_| in_line(&mut guard, 0)).collect();
    // Positions 3 to 12 are sent in turn, and the last of them fails.
    guard.finished(first[0], Ending::Success, 1);
    guard.finished(first[1], Ending::Success, 1);
    for passage in &line[..9] {
        assert_eq!(guard.turn(*passage, 1), Turn::Go);
        guard.finished(*passage, Ending::Success, 1);
    }
    assert_eq!(guard.turn(line[9], 1), Turn::Go);
    guard.finished(line[9], Ending::TimedOut, 2);
    assert_eq!(guard.window(), 11);
    // Somewhat beyond it is sent still: 12, not 13.
    assert_eq!(guard.turn(line[10], 2), Turn::Dropped);
    assert_eq!(guard.turn(line[10], 2), Turn::Dropped);
    assert_eq!(guard.in_flight(), 27);
}

#[test]
fn the_oldest_in_line_goes_first_and_one_that_no_longer_asks_is_passed_over() {
    let mut guard = guard(GuardStrategy::Static, 1, 10, Some(1));
    let first = sent(&mut guard, 0);
    let line: Vec<Passage> = (0..3).map(|_| in_line(&mut guard, 0)).collect();
    guard.finished(first, Ending::Success, 10);
    assert_eq!(guard.turn(line[1], 10), Turn::Later);
    assert_eq!(guard.turn(line[0], 10), Turn::Go);
    guard.finished(line[0], Ending::Success, 20);
    // Nobody hears of the second any more.
    let mut now = 20;
    while guard.turn(line[2], now) == Turn::Later {
        now += ASK_EVERY_MS;
        assert!(now < HOLD_MS);
    }
    assert_eq!(guard.in_flight(), 2, "the second may come back");
    guard.finished(line[2], Ending::Success, now);
    assert_eq!(guard.turn(line[1], now), Turn::Go);
}

#[test]
fn who_stands_in_line_too_long_is_dropped_and_the_window_shrinks_below() {
    let mut guard = guard(GuardStrategy::Position, 1, 10, Some(1));
    let first = sent(&mut guard, 0);
    guard.finished(first, Ending::Success, 0);
    assert_eq!(guard.window(), 2);
    sent(&mut guard, 0);
    let second = in_line(&mut guard, 0);
    assert_eq!(guard.turn(second, HOLD_MS - 1), Turn::Later);
    assert_eq!(guard.turn(second, HOLD_MS), Turn::Dropped);
    assert_eq!((guard.window(), guard.in_flight()), (1, 1));
}

#[test]
fn newest_first_sends_the_newest_and_discards_the_oldest() {
    let mut guard = guard(GuardStrategy::NewestFirst, 1, 3, Some(1));
    let first = sent(&mut guard, 0);
    let stack: Vec<Passage> = (1..=4).map(|now| in_line(&mut guard, now)).collect();
    assert_eq!(guard.in_flight(), 4, "one at the origin, three on the stack");
    assert!(!guard.has_room(4));
    assert_eq!(guard.turn(stack[0], 4), Turn::Dropped, "the fourth took the place of the oldest");
    guard.finished(first, Ending::Success, 10);
    assert_eq!((guard.turn(stack[1], 10), guard.turn(stack[2], 10)), (Turn::Later, Turn::Later));
    assert_eq!(guard.turn(stack[3], 10), Turn::Go);
    // What is older than one that timed out has waited even longer.
    let newer = in_line(&mut guard, 11);
    guard.finished(stack[3], Ending::TimedOut, 12);
    assert_eq!((guard.turn(stack[1], 12), guard.turn(stack[2], 12)), (Turn::Dropped, Turn::Dropped));
    assert_eq!(guard.turn(newer, 12), Turn::Go);
    assert_eq!((guard.in_flight(), guard.window()), (1, 3));
}

#[test]
fn the_window_grows_when_it_was_used_and_slowly_near_what_failed_last() {
    let mut guard = grown(1_000);
    let fails = fill(&mut guard, 0);
    guard.finished(fails[39], Ending::Overload, 1);
    for passage in fails {
        guard.finished(passage, Ending::Other, 1);
    }
    assert_eq!(guard.window(), 38);
    // One request at a time says nothing about 38.
    for now in 2..200 {
        let passage = sent(&mut guard, now);
        guard.finished(passage, Ending::Success, now);
    }
    assert_eq!(guard.window(), 38);
    let mut run = |successes: usize, took: u64| {
        let used = fill(&mut guard, 1_000);
        for passage in used.iter().rev().take(successes) {
            guard.finished(*passage, Ending::Success, 1_000 + took);
        }
        for passage in used {
            guard.finished(passage, Ending::Other, 1_000 + took);
        }
        guard.window()
    };
    // Position 40 failed: ten successes for one more.
    assert_eq!(run(9, 1), 38);
    assert_eq!(run(1, 1), 39);
    // Answers that are nearly too late say that there is no room for more.
    assert_eq!((run(19, 800), run(19, 800)), (39, 39));
    // Far beyond what failed: it does not hold any more, and each success adds one.
    for _ in 0..20 {
        run(10, 1);
        run(10, 1);
    }
    assert!(run(1, 1) > 51);
    let window = run(0, 1);
    assert_eq!(run(5, 1), window + 5);
    assert_eq!(run(5, 500), window + 5, "but not when they take half of their time");
}

#[test]
fn a_window_at_its_min_grows_again_even_where_answers_are_always_slow() {
    let mut guard = guard(GuardStrategy::Position, 2, 10, None);
    for round in 0..200 {
        for passage in fill(&mut guard, round * 2_000) {
            guard.finished(passage, Ending::Success, round * 2_000 + 900);
        }
    }
    assert!(guard.window() > 3, "{}", guard.window());
}

#[test]
fn whoever_passes_beyond_the_window_counts_up_to_a_bound() {
    let mut guard = guard(GuardStrategy::Position, 2, 2, None);
    let passages: Vec<Passage> = (0..20_000).map(|_| guard.pass_beyond(0)).collect();
    assert_eq!(guard.in_flight(), 10_002);
    assert_eq!(passages.last(), Some(&Passage::UNCOUNTED));
    assert_eq!(guard.arrive(0), Arrival::Refused);
    for passage in passages {
        guard.finished(passage, Ending::Success, 1);
    }
    assert_eq!(guard.in_flight(), 0);
}

#[test]
fn a_number_that_is_no_passage_changes_nothing() {
    let mut guard = guard(GuardStrategy::Position, 1, 5, None);
    let passage = sent(&mut guard, 0);
    assert_eq!(Passage::from_number(passage.number()), passage);
    for number in [0.0, -1.0, 2.0, 1e300, f64::NAN, f64::INFINITY] {
        guard.finished(Passage::from_number(number), Ending::TimedOut, 5);
        assert_eq!(guard.turn(Passage::from_number(number), 5), Turn::Dropped);
    }
    assert_eq!((guard.window(), guard.in_flight()), (1, 1));
}
