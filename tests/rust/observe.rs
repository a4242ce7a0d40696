//! A room that only observes: who passes, and when a visitor who would wait is asked about again.

use anteroom::config::{Room, parse_room};
use anteroom::machines::worker::passes_unasked;
use anteroom::steering::{Order, Steering};
use anteroom::ticket::{Ticket, ticket_id};
use anteroom::wire::encode;
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: u64 = 28_000_000 * 60_000;

fn room(more: &Value) -> Room {
    let mut fields = json!({ "total_active_users": 1, "new_users_per_minute": 1, "mode": "observe" });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    parse_room("ROOM_SHOP", &fields).unwrap()
}

fn sharing(share: f64) -> Room {
    room(&json!({ "enforce_share": share }))
}

proptest! {
    /// Wherever they come from, and nobody who is in the share leaves it when it grows.
    #[test]
    fn a_share_of_the_tickets_is_enforced_and_stays_so(
        randoms in prop::collection::vec(any::<u64>(), 2_000), share in 0.05..0.5_f64, more in 0.0..0.5_f64
    ) {
        let ids: Vec<u64> =
            randoms.iter().zip(["FRA", "NRT"].iter().cycle()).map(|(random, colo)| ticket_id(*random, colo)).collect();
        let (smaller, larger) = (sharing(share), sharing(share + more));
        let enforced = ids.iter().filter(|id| !smaller.observes(**id)).count() as f64 / ids.len() as f64;
        prop_assert!((enforced - share).abs() < 0.06, "{} of {}", enforced, share);
        prop_assert!(ids.iter().all(|id| smaller.observes(*id) || !larger.observes(*id)));
        prop_assert!(ids.iter().all(|id| sharing(0.0).observes(*id) && !sharing(1.0).observes(*id)));
    }
}

#[test]
fn a_share_is_of_a_room_that_observes() {
    let fields = json!({ "total_active_users": 1, "new_users_per_minute": 1, "enforce_share": 0.05 });
    let errors = parse_room("ROOM_SHOP", &fields).unwrap_err();
    assert_eq!((errors.len(), errors[0].field.as_str()), (1, "enforce_share"));
    assert!(errors[0].message.contains("mode = \"observe\""), "{}", errors[0]);
}

#[test]
fn who_would_wait_is_asked_about_when_the_waiting_page_would_have_come_again() {
    let (observing, shared) = (room(&json!({})), sharing(1.0));
    let told = Ticket { refresh_seconds: 20, ..Ticket::new(7, NOW) };
    assert!(passes_unasked(&observing, &told, NOW));
    assert!(passes_unasked(&observing, &told, NOW + 19_999));
    assert!(!passes_unasked(&observing, &told, NOW + 20_000));
    // The cookie ends with the session.
    let far = Ticket { refresh_seconds: 300, ..told };
    assert!(
        passes_unasked(&observing, &far, NOW + 149_999) && !passes_unasked(&observing, &far, NOW + 150_000)
    );
    assert!(!passes_unasked(&shared, &told, NOW), "for this one the room is on");
}

#[test]
fn operators_go_live_for_a_share_of_the_visitors() {
    let (deployed, mut steering) = (room(&json!({})), Steering::default());
    let enforced = |steering: &Steering| {
        let room = deployed.steered(&steering.overrides());
        (0..1_000_000)
            .step_by(1_000)
            .filter(|part: &u64| !room.observes((part << 40).div_ceil(1_000_000)))
            .count()
    };
    let mut set = |fields: Value| {
        let order = Order::read(&json!({ "set": fields }).to_string()).unwrap();
        steering.obey(&deployed, &order, "anna", NOW).map(|_| enforced(&steering))
    };
    assert_eq!(set(json!({ "enforce_share": 0.05 })).unwrap(), 50);
    assert_eq!(set(json!({ "enforce_share": 1 })).unwrap(), 1_000);
    for wrong in [json!(-0.1), json!(1.1), json!("5 %"), json!(null)] {
        assert_eq!(set(json!({ "enforce_share": wrong })).unwrap_err().errors[0].field, "enforce_share");
    }
    assert_eq!(set(json!({ "mode": "enforce" })).unwrap(), 1_000);
    let refusal = set(json!({ "enforce_share": 0.05 })).unwrap_err();
    assert!(refusal.errors[0].message.contains("observe"), "{refusal:?}");
    assert_eq!(set(json!({ "mode": "observe", "enforce_share": 0.05 })).unwrap(), 50);
}

#[test]
fn operators_switch_it_on_and_it_is_never_off_because_orders_cannot_be_read() {
    let (deployed, mut steering) = (room(&json!({})), Steering::default());
    let order = |mode: &str| Order::read(&json!({ "set": { "mode": mode } }).to_string()).unwrap();
    steering.obey(&deployed, &order("enforce"), "anna", NOW).unwrap();
    assert!(!deployed.steered(&steering.overrides()).observes(7));
    assert!(steering.obey(&deployed, &order("watch"), "anna", NOW).is_err());

    // Written by code that knows more modes.
    let stored = json!({ "version": 3, "fields": { "mode": { "value": "rehearse", "deployed_then": "observe",
        "by": "ben", "at": NOW } }, "events": {} });
    for stored in [encode(&stored.to_string()).unwrap(), vec![0xff; 9]] {
        let room = deployed.steered(&Steering::read(&stored).overrides());
        assert!(room.queue_all && !room.observes(7));
    }
    // Older code, which has every room enforced, is not stopped by the order.
    let stored: String = anteroom::wire::decode(&steering.write().unwrap()).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["fields"]["mode"]["optional"], json!(true));
}
