//! Push messages: through which services, who is told when, nobody twice, and how long the place is kept.

use anteroom::check_in::{CheckIn, Seen};
use anteroom::machines::{Effect, GlobalEffect, GlobalInput, Input, Outcome, PushAttempt};
use anteroom::protocol::messages::{Subscribe, VERSION};
use anteroom::protocol::{Answer, Request};
use anteroom::push::{LONGEST_BODY, Services, Subscription, VapidKeys};
use anteroom::ticket::{Standing, Ticket, standing};
use anteroom::time::minute_of;
use proptest::prelude::*;
use serde_json::json;

use crate::articles::room;
use crate::global::{MINUTE, Platform, START};

/// 65 bytes that begin with 4, and 16 bytes, in base64url.
const POINT: &str = "BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const SECRET: &str = "AAAAAAAAAAAAAAAAAAAAAA";
/// 32 bytes in base64url.
const NUMBER: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn written(endpoint: &str, p256dh: &str, auth: &str) -> Vec<u8> {
    json!({ "endpoint": endpoint, "expirationTime": null, "keys": { "p256dh": p256dh, "auth": auth } })
        .to_string()
        .into_bytes()
}

fn is_taken(endpoint: &str) -> bool {
    let services = Services::parse("push.example.org *.push.example.net").unwrap();
    Subscription::parse(&written(endpoint, POINT, SECRET), &services).is_some()
}

#[test]
fn a_subscription_is_an_address_of_a_browsers_own_service_or_of_one_that_the_owner_adds() {
    for endpoint in [
        "https://fcm.googleapis.com/fcm/send/abc:APA91_x-y",
        "https://updates.push.services.mozilla.com/wpush/v2/gAAAA",
        "https://web.push.apple.com/QGuQyav",
        "https://wns2-by3p.notify.windows.com/w/?token=BQYAAA%3d",
        "https://push.example.org/",
        "https://eu.push.example.net/1",
    ] {
        assert!(is_taken(endpoint), "{endpoint}");
    }
}

#[test]
fn nothing_else_is_ever_called() {
    for endpoint in [
        "http://fcm.googleapis.com/fcm/send/abc",
        "https://fcm.googleapis.com",
        "https://fcm.googleapis.com:8443/x",
        "https://fcm.googleapis.com@evil.test/x",
        "https://evil.test\\@fcm.googleapis.com/x",
        "https://fcm.googleapis.com.evil.test/x",
        "https://evilfcm.googleapis.com/x",
        "https://FCM.googleapis.com/x",
        "https://push.apple.com/x",
        "https://.push.apple.com/x",
        "https://evil-push.apple.com/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://localhost/x",
        "https://fcm.googleapis.com/a b",
        "https://fcm.googleapis.com/\\evil.test",
        "https://fcm.googleapis.com/a\nhost: evil.test",
        &format!("https://fcm.googleapis.com/{}", "x".repeat(1_024)),
    ] {
        assert!(!is_taken(endpoint), "{endpoint}");
    }
    let endpoint = "https://web.push.apple.com/x";
    let services = Services::parse("").unwrap();
    for (p256dh, auth) in [(SECRET, SECRET), (POINT, POINT), (&POINT.replace('B', "C"), SECRET), ("?", "?")] {
        assert_eq!(Subscription::parse(&written(endpoint, p256dh, auth), &services), None);
    }
    let long = [written(endpoint, POINT, SECRET), vec![b' '; LONGEST_BODY]].concat();
    assert!(Subscription::parse(&long, &services).is_some(), "what follows is not read");
    for more in ["localhost", "https://push.example.org", "127.0.0.1", "push.example.org:443", "*", "*."] {
        assert_eq!(Services::parse(more), None, "{more}");
    }
}

proptest! {
    #[test]
    fn whatever_is_written_only_hosts_of_the_list_are_called(
        before in ".{0,12}", host in "(fcm\\.googleapis\\.com|evil\\.test)", after in ".{0,12}",
    ) {
        let endpoint = format!("https://{before}{host}{after}");
        if is_taken(&endpoint) {
            prop_assert!(endpoint.starts_with("https://fcm.googleapis.com/"), "{endpoint}");
        }
    }
}

#[test]
fn the_owners_key_is_a_private_key_as_json_with_a_way_to_reach_the_owner() {
    let key = json!({ "kty": "EC", "crv": "P-256", "x": NUMBER, "y": NUMBER, "d": NUMBER });
    let parsed = |key: &serde_json::Value, subject: &str| VapidKeys::parse(&key.to_string(), subject);
    let keys = parsed(&key, "mailto:owner@example.com").unwrap();
    assert_eq!((keys.public.as_str(), keys.private.as_str()), (POINT, NUMBER));
    assert!(parsed(&key, "https://example.com").is_some());
    for subject in ["", "owner@example.com", "mailto:", "https://", "mailto:a@b c"] {
        assert!(parsed(&key, subject).is_none(), "{subject}");
    }
    for (name, wrong) in [("crv", "P-384"), ("d", SECRET), ("x", "?"), ("y", "")] {
        let mut key = key.clone();
        key[name] = wrong.into();
        assert!(parsed(&key, "https://example.com").is_none(), "{name}");
    }
}

#[test]
fn whoever_is_told_by_a_push_message_keeps_the_place_for_a_day_and_is_counted_no_longer_than_others() {
    let (room, now) = (room(20, 10, 1), START);
    let ticket = Ticket::new(1, now);
    let subscribed = Ticket { subscribed: true, ..ticket };
    assert_eq!(Ticket::from_bytes(&subscribed.to_bytes()), Some(subscribed));
    let is_kept = |ticket, minutes| {
        let standing = standing(Some(ticket), now + minutes * MINUTE, &room.terms());
        matches!(standing, Standing::Waiting(kept) if kept == ticket)
    };
    assert!(is_kept(ticket, 4) && !is_kept(ticket, 6));
    assert!(is_kept(subscribed, 24 * 60 - 1) && !is_kept(subscribed, 24 * 60));
    assert!(is_kept(subscribed.checked_in(now), 6), "the next check-in says so too");
    assert_eq!(Seen::of(&subscribed, &room), Seen::of(&ticket, &room));
    assert!(!subscribed.admitted(now).subscribed, "whoever is in is not told");
}

/// A room for ten users, ten more a minute.
fn small_room() -> Platform {
    Platform::of(json!({
        "ROOM_SHOP": {
            "total_active_users": 10, "new_users_per_minute": 10, "session_duration": 1, "slot_strategy": "counters",
        },
    }))
}

fn subscribe(platform: &mut Platform, id: u64, bucket: u32) -> bool {
    let asked = Subscribe {
        v: VERSION,
        id,
        bucket,
        endpoint: format!("https://web.push.apple.com/{id}"),
        p256dh: POINT.to_owned(),
        auth: SECRET.to_owned(),
        language: "de-DE".to_owned(),
        url: "https://shop.example.com/".to_owned(),
    };
    match platform.answer(Request::GlobalSubscribe(Box::new(asked))) {
        Answer::GlobalSubscribe(answer) => answer.kept,
        other => panic!("{other:?}"),
    }
}

/// Users enter and wait, by their ids and buckets.
fn come(platform: &mut Platform, entering: u64, waiting: u64, bucket: u32) {
    let (at, minute) = (platform.now, minute_of(platform.now));
    let enters = (1..=entering).map(|id| CheckIn::Enter {
        id,
        bucket: minute,
        from: None,
        at,
        minute,
        numbered: true,
    });
    let waits = (1..=waiting).map(|id| CheckIn::Wait { id: 1_000 + id, bucket, from: None, at: at.into() });
    let report = platform.report_of("AMS", 1, enters.chain(waits).collect());
    platform.answer(Request::GlobalPush(Box::new(report)));
}

fn pushes(effects: &[Effect]) -> Vec<PushAttempt> {
    let push = |effect: &Effect| match effect {
        Effect::Global(GlobalEffect::Push(attempt)) => Some(attempt.as_ref().clone()),
        _ => None,
    };
    effects.iter().filter_map(push).collect()
}

fn ids(attempts: &[PushAttempt]) -> Vec<u64> {
    attempts.iter().map(|attempt| attempt.id).collect()
}

fn answered(platform: &mut Platform, attempt: &PushAttempt, status: u16) {
    let outcome = Outcome::Answered { status, retry_after: 0 };
    platform.tell(Input::Global(GlobalInput::Pushed { number: attempt.number, outcome }));
}

/// Lets time pass, a second at a time. Each message is answered at once.
fn told(platform: &mut Platform, seconds: u64, status: u16) -> Vec<PushAttempt> {
    let mut all = Vec::new();
    for _ in 0..seconds {
        let effects = platform.pass(1_000);
        let attempts = pushes(&effects);
        attempts.iter().for_each(|attempt| answered(platform, attempt, status));
        all.extend(attempts);
    }
    all
}

#[test]
fn whose_turn_is_near_is_told_once_and_who_stands_behind_others_is_not_yet() {
    let mut platform = small_room();
    let bucket = minute_of(START);
    come(&mut platform, 10, 30, bucket);
    assert!(subscribe(&mut platform, 7, bucket));
    assert!(subscribe(&mut platform, 8, bucket + 1));
    let first = told(&mut platform, 15, 201);
    assert_eq!(ids(&first), [7]);
    let PushAttempt { to, language, url, ttl_seconds, .. } = &first[0];
    assert_eq!(to.endpoint, "https://web.push.apple.com/7");
    assert_eq!((language.as_str(), url.as_str()), ("de-DE", "https://shop.example.com/"));
    assert_eq!(*ttl_seconds, 3_600);
    // Those ahead of the other one have left their pages: nobody is waited for.
    assert_eq!(ids(&told(&mut platform, 600, 201)), [8]);
    assert_eq!(platform.pass(24 * 60 * MINUTE), [], "nobody has anything to be told, and nothing wakes it");
}

#[test]
fn a_crowd_with_closed_pages_is_told_in_its_order_and_no_faster_than_it_may_enter() {
    let mut platform = small_room();
    let bucket = minute_of(START);
    come(&mut platform, 10, 0, bucket);
    for id in 100..300 {
        assert!(subscribe(&mut platform, id, bucket));
        platform.now += 1;
    }
    let mut all = Vec::new();
    for _ in 0..9 {
        let minute = told(&mut platform, 60, 201);
        // The way back takes up to a minute, so those of this minute and of the next may be on it.
        assert!(minute.len() <= 20, "{} in a minute", minute.len());
        all.extend(ids(&minute));
    }
    assert!(all.is_sorted() && all.len() > 90, "nobody comes, so more of them are told: {all:?}");
}

#[test]
fn nobody_is_told_while_nobody_new_may_enter() {
    let mut platform = small_room();
    let bucket = minute_of(START);
    subscribe(&mut platform, 7, bucket);
    let order = |platform: &mut Platform, closed: bool| {
        let body = json!({ "set": { "queue_all": closed } }).to_string();
        let order = anteroom::protocol::messages::OperatorAsk { v: VERSION, body, ..Default::default() };
        platform.ask(Request::GlobalSteer(Box::new(order)));
    };
    order(&mut platform, true);
    assert_eq!(told(&mut platform, 300, 201), []);
    order(&mut platform, false);
    assert_eq!(ids(&told(&mut platform, 10, 201)), [7]);
}

#[test]
fn a_busy_push_service_is_asked_again_and_a_browser_that_is_gone_is_not() {
    for (status, attempts) in [(201, 1), (404, 1), (410, 1), (403, 1), (429, 6), (503, 6)] {
        let mut platform = small_room();
        subscribe(&mut platform, 7, minute_of(START));
        assert_eq!(told(&mut platform, 3_600, status).len(), attempts, "status {status}");
    }
}

#[test]
fn a_message_on_its_way_is_sent_once_more_after_a_restart_and_a_subscription_is_not_lost() {
    let mut platform = small_room();
    let bucket = minute_of(START);
    subscribe(&mut platform, 7, bucket);
    platform.confirm();
    platform.restart();
    let first = pushes(&platform.pass(6_000));
    assert_eq!(ids(&first), [7]);
    platform.confirm();
    platform.restart();
    assert_eq!(ids(&told(&mut platform, 600, 201)), [7]);
    assert_eq!(told(&mut platform, 600, 201), []);
    platform.confirm();
    platform.restart();
    assert_eq!(told(&mut platform, 600, 201), []);
}

#[test]
fn there_is_one_subscription_of_a_ticket_and_a_bound_to_all_of_them() {
    let mut platform = small_room();
    let bucket = minute_of(START) + 60;
    come(&mut platform, 10, 500, bucket - 60);
    for id in 0..10_000 {
        assert!(subscribe(&mut platform, id, bucket));
    }
    assert!(!subscribe(&mut platform, 10_000, bucket));
    assert!(
        subscribe(&mut platform, 9_999, bucket),
        "the last one of a ticket takes the place of the one before"
    );
    // Who has asked again is told once, at the newest address.
    let mut platform = small_room();
    subscribe(&mut platform, 7, minute_of(START));
    subscribe(&mut platform, 7, minute_of(START));
    assert_eq!(ids(&told(&mut platform, 10, 201)), [7]);
    assert!(subscribe(&mut platform, 7, minute_of(START)));
    assert_eq!(told(&mut platform, 300, 201), [], "who was told a moment ago is not told again");
}

#[test]
fn an_owner_who_takes_the_key_away_has_nothing_stored_any_more() {
    let mut platform = small_room();
    subscribe(&mut platform, 7, minute_of(START));
    platform.confirm();
    platform.pushes = false;
    platform.restart();
    assert_eq!(told(&mut platform, 60, 201), []);
    platform.confirm();
    platform.pushes = true;
    platform.restart();
    assert_eq!(told(&mut platform, 60, 201), []);
}
