//! A place that moves to another device: it is the same place, one device has it, and a link is good once.

use std::rc::Rc;

use anteroom::admission::{DrawKey, StateKey, minute_of};
use anteroom::config::parse_room;
use anteroom::counts::{MoveOutcome, MovePlace, Moves};
use anteroom::machines::worker::{Outcome, Visit, Visitor, Worker, WorkerContext, WorkerEffect, WorkerInput};
use anteroom::origin::OriginMonitor;
use anteroom::protocol::messages::StateAnswer;
use anteroom::protocol::{Answer, Request, records};
use anteroom::room::Room;
use anteroom::ticket::{KeyRing, LINK_MS, Link, Scope, Standing, Ticket, standing};
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: u64 = 28_000_000 * 60_000 + 30_000;
const NONCE: [u8; 12] = [7; 12];

fn room(more: &Value) -> Room {
    let mut fields = json!({
        "total_active_users": 1, "new_users_per_minute": 1, "continue_on_another_device": true,
    });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    parse_room("ROOM_SHOP", &fields).unwrap()
}

fn keys() -> KeyRing {
    KeyRing::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap()
}

fn waiting() -> Ticket {
    Ticket { bucket: minute_of(NOW) - 3, refresh_seconds: 20, ..Ticket::new(7, NOW) }
}

fn ask(link: &Link, by: u64) -> MovePlace {
    MovePlace { v: 1, id: link.ticket.id, moves: link.ticket.moves, by }
}

#[test]
fn a_link_gives_exactly_the_place_of_its_ticket_and_for_no_longer() {
    let terms = room(&json!({})).terms();
    let link = Link::to_keep(&waiting(), &terms).unwrap();
    assert_eq!(link.moved(), Ticket { moves: 1, ..waiting() });
    let end = terms.end(&waiting());
    assert!(link.is_to_keep(&terms) && link.holds(end - 1, &terms) && !link.holds(end, &terms));
    let at_hand = link.at_hand(NOW + 1_000);
    assert_eq!(at_hand.until, NOW + 1_000 + LINK_MS);
    assert!(!at_hand.is_to_keep(&terms));
    assert!(at_hand.holds(at_hand.until - 1, &terms) && !at_hand.holds(at_hand.until, &terms));
    assert_eq!(link.at_hand(end - 1_000).until, end, "nor does a new link make it longer");
    let stretched = Link { until: end + 60_000, ..link };
    assert!(!stretched.holds(end, &terms), "the ticket decides");
}

#[test]
fn only_who_waits_and_has_not_moved_too_often_gets_a_link() {
    let terms = room(&json!({})).terms();
    assert_eq!(Link::to_keep(&waiting().admitted(NOW), &terms), None);
    let kept_for_a_day = Ticket { subscribed: true, ..waiting() };
    assert_eq!(Link::to_keep(&kept_for_a_day, &terms), None, "it would hold when the move is forgotten");
    let (mut ticket, mut moves) = (waiting(), 0);
    while let Some(link) = Link::to_keep(&ticket, &terms) {
        ticket = link.moved();
        moves += 1;
    }
    assert_eq!((moves, ticket.moves), (7, 7));
    let made_up = Link { ticket, until: NOW + 1_000 };
    assert_eq!(Moves::default().redeem(&room(&json!({})), &ask(&made_up, 1), NOW), MoveOutcome::Over);
}

#[test]
fn a_link_is_no_ticket_and_a_ticket_no_link_and_neither_is_good_elsewhere() {
    let keys = keys();
    let link = Link::to_keep(&waiting(), &room(&json!({})).terms()).unwrap();
    let sealed = keys.seal_link("shop", &link, NONCE);
    assert_eq!(sealed.len(), 98);
    assert_eq!(keys.open_link("shop", &sealed), Some(link));
    assert_eq!(keys.open("shop", &sealed), None);
    assert_eq!(keys.open_link("shop", &keys.seal("shop", &waiting(), NONCE)), None);
    assert_eq!(keys.open_link("other", &sealed), None);
    let bound = Scope { room: "shop", binding: "4:c000" };
    assert_eq!(keys.open_link(bound, &sealed), None);
    assert_eq!(keys.open_link(bound, &keys.seal_link(bound, &link, NONCE)), Some(link));
    for place in 0..sealed.len() {
        let other = if sealed.as_bytes()[place] == b'A' { "B" } else { "A" };
        let changed = [&sealed[..place], other, &sealed[place + 1..]].concat();
        assert_eq!(keys.open_link("shop", &changed), None, "{place}");
    }
    let renewed = KeyRing::parse(
        "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=, AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    );
    assert_eq!(renewed.unwrap().open_link("shop", &sealed), Some(link), "with a retired key too");
}

#[test]
fn where_tickets_are_bound_to_the_browser_no_place_moves() {
    let fields = |bind: &str| {
        json!({
            "total_active_users": 1, "new_users_per_minute": 1, "continue_on_another_device": true,
            "bind_ticket": bind,
        })
    };
    for bind in ["user_agent", "both"] {
        let errors = parse_room("ROOM_SHOP", &fields(bind)).unwrap_err();
        assert_eq!(errors[0].field, "continue_on_another_device", "{errors:?}");
    }
    assert!(parse_room("ROOM_SHOP", &fields("address")).is_ok());
}

#[test]
fn of_two_who_use_a_link_the_first_gets_the_place_also_when_the_answer_was_lost() {
    let room = room(&json!({}));
    let link = Link::to_keep(&waiting(), &room.terms()).unwrap();
    let mut moves = Moves::default();
    assert_eq!(moves.redeem(&room, &ask(&link, 1), NOW), MoveOutcome::Moved);
    assert_eq!(moves.redeem(&room, &ask(&link, 2), NOW + 1), MoveOutcome::Over);
    let mut moves: Moves = records::read(&records::write(&moves).unwrap()).unwrap();
    assert_eq!(moves.redeem(&room, &ask(&link, 2), NOW + 2), MoveOutcome::Over, "after a restart too");
    assert_eq!(moves.redeem(&room, &ask(&link, 1), NOW + 3), MoveOutcome::Moved);
    assert_eq!(moves.told(NOW + 3), [(7, 1)]);
}

#[test]
fn whoever_comes_when_too_many_places_have_moved_keeps_the_place() {
    let room = room(&json!({ "place_kept_seconds": 60 }));
    let mut moves = Moves::default();
    let of = |id| MovePlace { v: 1, id, moves: 0, by: id };
    for id in 0..1_000 {
        assert_eq!(moves.redeem(&room, &of(id), NOW), MoveOutcome::Moved);
    }
    assert_eq!(moves.redeem(&room, &of(1_000), NOW), MoveOutcome::Full);
    assert_eq!(
        moves.redeem(&room, &MovePlace { by: 0, ..of(1) }, NOW),
        MoveOutcome::Over,
        "none is forgotten"
    );
    let later = NOW + room.terms().session_ms + 60_000;
    assert_eq!(moves.redeem(&room, &of(1_000), later), MoveOutcome::Moved, "when their tickets are over");
    assert_eq!(moves.told(later), [(1_000, 1)]);
}

/// What comes of a visit at a time, if objects give these answers; `None`: none comes.
pub fn outcome(
    worker: &mut Worker,
    room: &Rc<Room>,
    visitor: Visitor,
    now: u64,
    answer: impl Fn(&Request) -> Option<Answer>,
) -> Outcome {
    let (key, mut origin) = (DrawKey::new(None, "a key"), OriginMonitor::new(room));
    let mut visit = Visit::new(visitor, Rc::clone(room));
    let mut inputs = vec![WorkerInput::Begin];
    while let Some(input) = inputs.pop() {
        let mut effects = Vec::new();
        let mut context = WorkerContext { draw_key: &key, origin: &mut origin, now };
        visit.handle(worker, &mut context, input, &mut effects);
        for effect in effects {
            match effect {
                WorkerEffect::Done(outcome) => return *outcome,
                WorkerEffect::ReadCache => inputs.push(WorkerInput::Cached(None)),
                WorkerEffect::Call(call) => {
                    if let Some(answer) = answer(&call.request) {
                        inputs.push(WorkerInput::Answered { call: call.number, answer: Some(answer) });
                    }
                }
                _ => {}
            }
        }
    }
    panic!("nothing came of it");
}

/// What comes of the visit of somebody with tickets to a full room, whose data center tells of a moved place.
fn visit(worker: &mut Worker, room: &Rc<Room>, tickets: &[Ticket], moved: Vec<(u64, u8)>) -> Outcome {
    let visitor = Visitor { tickets: tickets.to_vec(), id: 9, ..Visitor::default() };
    let now = NOW + 1_000;
    outcome(worker, room, visitor, now, |_| {
        let key = StateKey {
            taken_at: now,
            minute: minute_of(now),
            active: 1,
            moved: moved.clone(),
            ..StateKey::default()
        };
        Some(Answer::DataCenterState(Box::new(StateAnswer { v: 1, state: Some(key) })))
    })
}

#[test]
fn a_worker_that_has_heard_of_a_move_refuses_the_old_ticket_and_keeps_the_place_for_the_new_one() {
    let room = Rc::new(room(&json!({ "queue_all": true })));
    let worker = || Worker::new(1, Rc::clone(&room), "AMS".to_owned(), 500);
    let (old, new) = (waiting(), Ticket { moves: 1, ..waiting() });
    let moved = || vec![(7, 1)];
    // The first visitor of a worker that knows nothing yet.
    assert!(matches!(visit(&mut worker(), &room, &[old], moved()), Outcome::Moved));
    let inside = old.admitted(NOW);
    assert!(
        matches!(visit(&mut worker(), &room, &[inside], moved()), Outcome::Moved),
        "nor does one who is in go on"
    );
    for tickets in [vec![new], vec![old, new], vec![new, old]] {
        match visit(&mut worker(), &room, &tickets, moved()) {
            Outcome::Waiting(told) => {
                let Ticket { id, bucket, moves, .. } = told.ticket;
                assert_eq!((id, bucket, moves), (7, old.bucket, 1));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(visit(&mut worker(), &room, &[old], Vec::new()), Outcome::Waiting(_)));
}

#[derive(Debug, Clone)]
enum Act {
    /// A device checks in, by a worker that has heard of all moves, or has not yet.
    CheckIn {
        device: usize,
        has_heard: bool,
    },
    /// A device shows its link, for a device at hand or to keep.
    Link {
        device: usize,
        at_hand: bool,
    },
    /// A new device uses a link, by a page of its own or one that others have copied.
    Use {
        link: usize,
        by: u64,
    },
    /// Global starts anew.
    Restart,
    Pass {
        seconds: u64,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (any::<usize>(), any::<bool>()).prop_map(|(device, has_heard)| Act::CheckIn { device, has_heard }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(device, at_hand)| Act::Link { device, at_hand }),
        3 => (any::<usize>(), 0..3_u64).prop_map(|(link, by)| Act::Use { link, by }),
        1 => Just(Act::Restart),
        3 => (1..200_u64).prop_map(|seconds| Act::Pass { seconds }),
    ];
    prop::collection::vec(act, 1..80)
}

proptest! {
    /// Whatever is copied, kept and used again: of one place one device at most goes on where all is known, each link gives
    /// the place to one page, and no place gets better.
    #[test]
    fn one_device_at_most_goes_on(acts in acts(), kept in 10..600_u32) {
        let room = room(&json!({ "place_kept_seconds": kept, "refresh_interval_max_seconds": 20 }));
        let terms = room.terms();
        let mut moves = Moves::default();
        let mut now = NOW;
        let mut moved_at = NOW;
        // Every ticket that there is, with the page that got it, and every link.
        let mut tickets = vec![(waiting(), 0)];
        let mut links: Vec<Link> = Vec::new();
        for act in acts {
            let waits = |ticket: Ticket, now| matches!(standing(Some(ticket), now, &terms), Standing::Waiting(_));
            let state = StateKey { moved: moves.told(now), ..StateKey::default() };
            match act {
                Act::CheckIn { device, has_heard } => {
                    let (ticket, by) = tickets[device % tickets.len()];
                    // Within a minute of a move all workers have heard of it.
                    let knows = has_heard || now >= moved_at + 60_000;
                    if waits(ticket, now) && !(knows && state.has_moved(&ticket)) {
                        tickets.push((ticket.checked_in(now), by));
                    }
                }
                Act::Link { device, at_hand } => {
                    let (ticket, _) = tickets[device % tickets.len()];
                    let link = Link::to_keep(&ticket, &terms).filter(|link| link.holds(now, &terms));
                    links.extend(link.map(|link| if at_hand { link.at_hand(now) } else { link }));
                }
                Act::Use { link, by } if !links.is_empty() => {
                    let link = links[link % links.len()];
                    if link.holds(now, &terms) && moves.redeem(&room, &ask(&link, by), now) == MoveOutcome::Moved {
                        if moves.told(now) != state.moved {
                            moved_at = now;
                        }
                        tickets.push((link.moved(), by));
                    }
                }
                Act::Use { .. } => {}
                Act::Restart => moves = records::read(&records::write(&moves).unwrap()).unwrap(),
                Act::Pass { seconds } => now += 1_000 * seconds,
            }
            let state = StateKey { moved: moves.told(now), ..StateKey::default() };
            let going_on = || tickets.iter().filter(|(ticket, _)| waits(*ticket, now) && !state.has_moved(ticket));
            if let Some((first, page)) = going_on().next() {
                for (ticket, by) in going_on() {
                    prop_assert_eq!((ticket.moves, by), (first.moves, page), "one page has the place");
                }
            }
            for (ticket, _) in &tickets {
                prop_assert_eq!((ticket.id, ticket.bucket), (7, waiting().bucket));
            }
        }
    }
}
