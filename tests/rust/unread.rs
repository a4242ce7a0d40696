//! What operators have changed and this code cannot read: the room stays as it was last known, or is closed to new users.
//! It never opens.

use anteroom::admission::{StateKey, minute_of};
use anteroom::check_in::CheckIn;
use anteroom::config::Room;
use anteroom::counts::{ColoReport, DataCenter, Global, GlobalMeta};
use anteroom::protocol::messages::{StateAnswer, WorkerReport};
use anteroom::steering::{Order, Overrides, Steering, UnreadEffect, migrate};
use anteroom::wire::{decode, encode};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::articles::room;

const NOW: u64 = 28_000_000 * 60_000;

fn order(order: Value) -> Order {
    Order::read(&order.to_string()).unwrap()
}

/// What 0.1.0 has stored: the room is closed and smaller, has a message, and its sale was started.
fn stored_by_0_1_0() -> Value {
    let lines = include_str!("golden/records-0.1.0.txt").lines();
    let digits = lines.filter_map(|line| line.strip_prefix("steering ")).next().unwrap();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    serde_json::from_str(&decode::<String>(&bytes).unwrap()).unwrap()
}

fn stored(parts: &Value) -> Vec<u8> {
    encode(&parts.to_string()).unwrap()
}

fn parts(steering: &Steering) -> Value {
    serde_json::from_str(&decode::<String>(&steering.write().unwrap()).unwrap()).unwrap()
}

#[test]
fn what_0_1_0_has_stored_is_read_and_written_as_it_was() {
    let before = stored_by_0_1_0();
    let steering = Steering::read(&stored(&before));
    assert_eq!(steering.unread(), None);
    let overrides = steering.overrides();
    let said = ["queue_all", "total_active_users", "message"].map(|name| overrides.setting(name).unwrap());
    assert_eq!((overrides.version, said), (1, [json!(true), json!(500), json!("Back at noon")]));
    assert_eq!((overrides.events.len(), overrides.unreadable), (1, false));
    assert_eq!(parts(&steering), before);
    assert_eq!(Steering::read(&steering.write().unwrap()), steering);
}

#[test]
fn another_version_is_migrated_and_a_newer_one_is_not_read() {
    let Value::Object(first) = stored_by_0_1_0() else { panic!() };
    // As if a later version called the fields `set`, and the one after it counted versions from 100.
    let renames = |mut parts: Map<String, Value>| {
        let fields = parts.remove("fields")?;
        parts.insert("set".to_owned(), fields);
        Some(parts)
    };
    let counts = |mut parts: Map<String, Value>| {
        let version = parts.get("version")?.as_u64()? + 100;
        parts.insert("version".to_owned(), version.into());
        Some(parts)
    };
    let third = migrate(first.clone(), &[renames, counts]).unwrap();
    assert_eq!(
        (third["version"].as_u64(), third["set"]["queue_all"]["by"].as_str()),
        (Some(101), Some("anna"))
    );
    let mut second = renames(first.clone()).unwrap();
    second.insert("v".to_owned(), 2.into());
    assert_eq!(migrate(second, &[renames, counts]).unwrap(), third);
    for version in [json!(0), json!(4), json!("3"), json!(-1)] {
        let mut other = first.clone();
        other.insert("v".to_owned(), version);
        assert_eq!(migrate(other, &[renames, counts]), None);
    }
}

/// With the parts of `more` in place of those of the same names.
fn with(more: Value) -> Vec<u8> {
    let mut parts = stored_by_0_1_0();
    for (part, value) in more.as_object().unwrap() {
        match (value, &mut parts[part]) {
            (Value::Object(value), Value::Object(known)) => known.extend(value.clone()),
            (value, known) => *known = value.clone(),
        }
    }
    stored(&parts)
}

#[test]
fn after_a_rollback_past_a_newly_added_field_a_closed_room_stays_closed() {
    let change = json!({ "value": 5, "deployed_then": 7, "by": "ben", "at": 1, "until": 2 });
    let newer = with(json!({ "version": 4, "fields": { "places_per_address": change } }));
    let steering = Steering::read(&newer);
    let overrides = steering.overrides();
    let deployed = room(1_000, 200, 5);
    assert!(deployed.steered(&overrides).queue_all);
    assert_eq!(overrides.setting("total_active_users"), Some(json!(500)), "what can be read is in force");
    let unread = steering.unread().unwrap();
    assert_eq!((unread.names, unread.effect), (vec!["places_per_address".to_owned()], UnreadEffect::Closed));

    // An order of this code loses nothing of it, and opens nothing as long as it is there.
    let mut global = Global::restore(&deployed, None, Vec::new(), NOW);
    global.recall_steering(steering);
    global.obey(&deployed, &order(json!({ "set": { "queue_all": false } })), "anna", NOW).unwrap();
    assert!(deployed.steered(global.overrides()).queue_all);
    let after = parts(global.steering());
    assert_eq!(after["fields"]["places_per_address"], change);
    assert_eq!(after["fields"]["queue_all"]["value"], json!(false));
    assert_eq!(after["events"], stored_by_0_1_0()["events"]);

    let log =
        global.obey(&deployed, &order(json!({ "clear": ["places_per_address"] })), "anna", NOW).unwrap();
    assert_eq!((log[0].kind.as_str(), &log[0].before), ("clear", &change));
    assert!(!deployed.steered(global.overrides()).queue_all, "it was an operator who has opened it");
    assert_eq!(global.steering().unread(), None);
}

#[test]
fn what_its_writer_says_may_be_ignored_closes_nothing_and_is_kept() {
    let change = json!({ "value": "Bonjour", "deployed_then": "", "by": "ben", "at": 1, "optional": true });
    let mut open = stored_by_0_1_0();
    open["fields"] = json!({ "message_in_french": change });
    let mut steering = Steering::read(&stored(&open));
    let deployed = room(1_000, 200, 5);
    assert!(!deployed.steered(&steering.overrides()).queue_all);
    assert_eq!(steering.unread().unwrap().effect, UnreadEffect::Ignored);
    steering.obey(&deployed, &order(json!({ "set": { "message": "Hello" } })), "anna", NOW).unwrap();
    let after = parts(&steering);
    assert_eq!(after["fields"]["message_in_french"], change);
    assert_eq!(after["fields"]["message"]["optional"], json!(true), "later code may rename it");
}

/// A Global that has told a colo what operators have changed, and has stored what it stores.
struct Before {
    room: Room,
    data_center: DataCenter,
    reports: Vec<ColoReport>,
    meta: Option<GlobalMeta>,
    told: Overrides,
}

fn pushed(data_center: &mut DataCenter, global: &mut Global, room: &Room, now: u64) -> ColoReport {
    let saved = data_center.save(room, now);
    let report = data_center.push(room, &saved, None, now);
    assert!(global.receive(room, report.clone(), now));
    let key = global.state(room, Some("AMS"), minute_of(now), now);
    let answer: StateAnswer = decode(&encode(&StateAnswer { v: 1, state: Some(key) }).unwrap()).unwrap();
    data_center.pushed(room, answer.state, now);
    report
}

fn before(orders: &[Value]) -> Before {
    let room = room(1_000, 200, 5);
    let mut global = Global::restore(&room, None, Vec::new(), NOW);
    for given in orders {
        global.obey(&room, &order(given.clone()), "anna", NOW).unwrap();
    }
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, NOW);
    let enter = CheckIn::Enter {
        id: 1,
        bucket: minute_of(NOW),
        from: None,
        at: NOW,
        minute: minute_of(NOW),
        numbered: true,
    };
    let report =
        WorkerReport { v: 1, worker: 9, first: 1, check_ins: vec![enter], ..WorkerReport::default() };
    data_center.receive(&room, &report, NOW);
    pushed(&mut data_center, &mut global, &room, NOW);
    let report = pushed(&mut data_center, &mut global, &room, NOW + 2_000);
    let meta = global.meta_to_store();
    Before { room, data_center, reports: vec![report], meta, told: global.overrides().clone() }
}

/// What a Global of a code that cannot read what is stored finds besides.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Finds {
    Nothing,
    Meta,
    Reports,
}

/// That Global at its start.
fn restored(before: &Before, stored: &[u8], finds: Finds) -> Global {
    let reports = if finds == Finds::Reports { before.reports.clone() } else { Vec::new() };
    let meta = before.meta.clone().filter(|_| finds == Finds::Meta);
    let mut global = Global::restore(&before.room, meta, reports, NOW + 5_000);
    global.recall_steering(Steering::read(stored));
    global
}

fn of_version(version: u32, overrides: &Overrides) -> Overrides {
    let mut overrides = overrides.clone();
    overrides.version = version;
    overrides
}

fn in_force(global: &Global) -> (Overrides, Option<UnreadEffect>) {
    (of_version(0, global.overrides()), global.steering().unread().map(|unread| unread.effect))
}

#[test]
fn what_a_data_center_was_told_last_takes_the_place_of_what_cannot_be_read() {
    let orders =
        [json!({ "set": { "total_active_users": 50 } }), json!({ "set": { "new_users_per_minute": 7 } })];
    let mut before = before(&orders);
    let told = of_version(0, &before.told);
    for unreadable in [vec![], vec![0xff; 9], encode(&"{".to_owned()).unwrap(), stored(&json!({ "v": 2 }))] {
        // Of what is stored beside it.
        for finds in [Finds::Meta, Finds::Reports] {
            let global = restored(&before, &unreadable, finds);
            assert_eq!(in_force(&global), (told.clone(), Some(UnreadEffect::LastKnown)), "{finds:?}");
            assert_eq!(global.steering().write().unwrap(), unreadable, "it is not overwritten");
        }
        // Without them nobody new enters, and whoever has heard of that does not take it for what was in force before.
        let mut global = restored(&before, &unreadable, Finds::Nothing);
        assert!(global.overrides().unreadable && before.room.steered(global.overrides()).queue_all);
        let closed = global.overrides().version;
        let key = global.state(&before.room, Some("AMS"), minute_of(NOW), NOW + 5_000);
        before.data_center.learn(key, NOW + 5_000);
        assert!(before.room.steered(before.data_center.overrides()).queue_all);
        // The first push brings back what was in force, also to whoever has heard otherwise.
        pushed(&mut before.data_center, &mut global, &before.room, NOW + 6_000);
        assert_eq!(in_force(&global), (told.clone(), Some(UnreadEffect::LastKnown)));
        assert!(global.overrides().version > closed && global.overrides().version >= before.told.version);
        assert_eq!(before.data_center.overrides(), global.overrides());
        // Both worlds go on from here.
        before.data_center = DataCenter::restore(&before.room, "AMS", 8, None, NOW + 6_000);
        before.data_center.learn(
            StateKey { taken_at: NOW, steering: before.told.clone(), ..StateKey::default() },
            NOW + 6_000,
        );
    }
}

#[test]
fn a_data_center_that_has_not_heard_of_the_last_order_does_not_unsay_it() {
    let mut before = before(&[json!({ "set": { "total_active_users": 50 } })]);
    // Closed, stored, and told to nobody before Global was gone.
    let meta = before.meta.take().unwrap();
    let mut newer = of_version(2, &before.told);
    newer.unreadable = true;
    let meta = GlobalMeta { steering: newer, ..meta };
    let mut global = Global::restore(&before.room, Some(meta), before.reports.clone(), NOW + 5_000);
    global.recall_steering(Steering::read(b"?"));
    assert!(before.room.steered(global.overrides()).queue_all);
    pushed(&mut before.data_center, &mut global, &before.room, NOW + 6_000);
    assert!(before.room.steered(global.overrides()).queue_all);
    assert_eq!(global.steering().unread().unwrap().effect, UnreadEffect::Closed);
}

#[test]
fn a_field_of_another_type_is_as_data_centers_know_it() {
    let orders = [json!({ "set": { "queue_all": true, "message": "Back at noon" } })];
    let mut before = before(&orders);
    let changed = json!({ "value": { "until": 5 }, "deployed_then": false, "by": "ben", "at": 1 });
    let mut newer = parts(&Steering::read(&stored(&json!({ "version": 1, "fields": {} }))));
    newer["fields"] = json!({ "queue_all": changed, "message": {
        "value": "Back at noon", "deployed_then": "", "by": "anna", "at": 1,
    } });
    let bytes = stored(&newer);
    let mut global = restored(&before, &bytes, Finds::Reports);
    assert_eq!(in_force(&global).1, Some(UnreadEffect::LastKnown));
    assert!(before.room.steered(global.overrides()).queue_all);
    assert_eq!(parts(global.steering())["fields"]["queue_all"], changed);
    // An order about something else keeps it, and what is known of it.
    global.obey(&before.room, &order(json!({ "clear": ["message"] })), "anna", NOW).unwrap();
    let said = ["queue_all", "message"].map(|name| global.overrides().setting(name));
    assert_eq!(said, [Some(json!(true)), None]);
    assert_eq!(parts(global.steering())["fields"], json!({ "queue_all": changed }));
    // An order about it takes its place.
    let opens = order(json!({ "set": { "queue_all": false } }));
    global.obey(&before.room, &opens, "anna", NOW).unwrap();
    assert_eq!(
        (global.overrides().setting("queue_all"), global.steering().unread()),
        (Some(json!(false)), None)
    );
    // Where no data center can tell, it is closed.
    let mut global = restored(&before, &bytes, Finds::Nothing);
    assert!(before.room.steered(global.overrides()).queue_all);
    pushed(&mut before.data_center, &mut global, &before.room, NOW + 6_000);
    assert_eq!(in_force(&global).1, Some(UnreadEffect::LastKnown));
}

#[test]
fn when_newer_code_comes_back_all_is_as_it_was_though_data_centers_were_told_otherwise() {
    let before = before(&[json!({ "set": { "queue_all": true } })]);
    let stored = {
        let mut steering = Steering::default();
        steering.obey(&before.room, &order(json!({ "set": { "queue_all": true } })), "anna", NOW).unwrap();
        steering.write().unwrap()
    };
    // As code reports that does not say what it was told.
    let mut reports = before.reports.clone();
    reports[0].overrides = Overrides::default();
    let mut global = Global::restore(&before.room, None, reports, NOW + 5_000);
    global.recall_steering(Steering::read(b"?"));
    let closed = global.overrides().clone();
    assert!(closed.unreadable && closed.version > before.told.version);
    let told = ColoReport { steering: closed.version, ..before.reports[0].clone() };
    assert!(global.receive(&before.room, told.clone(), NOW + 6_000));
    let mut back = Global::restore(&before.room, before.meta.clone(), vec![told], NOW + 7_000);
    back.recall_steering(Steering::read(&stored));
    assert!(back.overrides().version > closed.version, "whoever goes by the other one hears of this one");
    assert_eq!(back.overrides().setting("queue_all"), Some(json!(true)));
    assert_eq!((back.overrides().unreadable, back.steering().unread()), (false, None));
}

#[test]
fn an_operator_can_begin_anew_and_what_was_there_is_set_aside() {
    let before = before(&[json!({ "set": { "queue_all": true } })]);
    let mut global = restored(&before, b"?", Finds::Nothing);
    let opens = order(json!({ "set": { "queue_all": false } }));
    let refusal = global.obey(&before.room, &opens, "anna", NOW).unwrap_err();
    assert_eq!(refusal.status, 409);
    assert!(refusal.error.contains("everything"), "{refusal:?}");
    let anew = order(json!({ "clear": ["everything"], "set": { "total_active_users": 50 } }));
    let closed = global.overrides().version;
    let log = global.obey(&before.room, &anew, "anna", NOW).unwrap();
    assert_eq!((log.len(), log.iter().any(|entry| entry.field == "everything")), (2, true));
    assert_eq!(global.steering_set_aside(), Some(b"?".to_vec()));
    assert_eq!((global.steering_set_aside(), global.steering().unread()), (None, None));
    assert!(global.overrides().version > closed);
    assert_eq!(global.overrides().setting("total_active_users"), Some(json!(50)));
    assert!(!before.room.steered(global.overrides()).queue_all);
}

#[test]
fn code_that_does_not_know_what_newer_code_has_added_lets_nobody_in_by_it() {
    let told = before(&[json!({ "set": { "total_active_users": 50 } })]).told;
    let key = StateKey { v: 1, taken_at: NOW, steering: told.clone(), ..StateKey::default() };
    let bytes = encode(&key).unwrap();
    // The overrides stand there as bytes of their own: their length, and they themselves.
    let inner = encode(&told).unwrap();
    let at = bytes.windows(inner.len()).position(|window| window == inner).unwrap();
    let added = |more: &[u8]| {
        let longer = [&inner[..], more].concat();
        let bytes = [&bytes[..at - 1], &[longer.len() as u8], &longer, &bytes[at + inner.len()..]].concat();
        decode::<StateKey>(&bytes).unwrap().steering
    };
    assert_eq!(added(&[]), told);
    assert_eq!(added(&[0, 0]), told, "nothing is said by what is added");
    let newer = added(&[0, 1, 5]);
    assert!(newer.unreadable);
    assert_eq!((newer.version, newer.setting("total_active_users")), (1, Some(json!(50))));
    assert!(room(1_000, 200, 5).steered(&newer).queue_all);
}

proptest! {
    /// However what is stored is broken: a room that an operator has closed does not open, and what is stored is not lost.
    #[test]
    fn a_closed_room_never_opens(at in 0_usize..400, byte: u8, cut in 0_usize..400, cuts: bool, knows: bool) {
        let steered = json!({ "set": { "queue_all": true } });
        let before = before(std::slice::from_ref(&steered));
        let mut steering = Steering::default();
        steering.obey(&before.room, &order(steered), "anna", NOW).unwrap();
        let mut bytes = steering.write().unwrap();
        if cuts {
            bytes.truncate(cut % bytes.len());
        } else {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let global = restored(&before, &bytes, if knows { Finds::Meta } else { Finds::Nothing });
        let steered = before.room.steered(global.overrides());
        // Broken bytes may say something else that is valid: the value itself may have become false.
        let says = Steering::read(&bytes);
        let says_otherwise = says.unread().is_none() && !(says.overrides().setting("queue_all") == Some(json!(true)));
        prop_assert!(steered.queue_all || says_otherwise);
        prop_assert!(!steered.suspended);
    }
}
