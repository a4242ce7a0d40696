//! Notification: what is told, that it is told once, and how it is sent.

use anteroom::config::{ConfigError, Rooms, Webhooks};
use anteroom::notifications::delivery::{SigningSecrets, Verdict, verdict, wait_ms};
use anteroom::notifications::{Detector, Kind, Notification, Observation, Origin, steered};
use anteroom::protocol::wire::{decode, encode};
use anteroom::room::{Limits, Room, WebhookFormat};
use anteroom::steering::AuditEntry;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

const MINUTE: u64 = 60_000;
/// 2026-11-27 08:00 UTC.
const START: u64 = 1_795_766_400_000;

/// A room for 20 users, with an event for an hour from [`START`] on and its prequeue before it.
fn room() -> Room {
    let vars = [
        (
            "ROOM_SHOP",
            json!({
                "host": "shop.example.com", "total_active_users": 20, "new_users_per_minute": 10,
                "session_duration": 1, "health_checks": ["a", "b"], "on_unhealthy": "hold",
            }),
        ),
        (
            "EVENT_SALE",
            json!({
                "room": "shop", "event_start_time": "2026-11-27T08:00:00Z", "event_end_time": "2026-11-27T09:00:00Z",
                "prequeue_start_time": "2026-11-27T07:50:00Z", "total_active_users": 40, "new_users_per_minute": 30,
            }),
        ),
    ];
    let (rooms, errors) = Rooms::from_vars(vars.into_iter().map(|(name, value)| (name.to_owned(), value)));
    assert_eq!(errors, []);
    rooms.get("shop").unwrap().clone()
}

/// A look at a calm room.
fn look(room: &Room, now: u64) -> Observation<'_> {
    let (at, phase) = room.at(now);
    Observation {
        now,
        room: at,
        phase,
        active: 5,
        minute: (now / MINUTE) as u32,
        new_users: 1,
        slots: 9,
        waiting: 0,
        present: 0,
        wait_seconds: Some(0),
        origin: Origin::default(),
        fallbacks: 0,
        steering: 0,
        thresholds: &[10],
    }
}

fn queue(look: Observation<'_>, waiting: i64) -> Observation<'_> {
    Observation {
        active: 20,
        slots: 0,
        waiting,
        present: waiting,
        wait_seconds: Some(waiting as u64 * 60),
        ..look
    }
}

fn kinds(news: &[Notification]) -> Vec<&'static str> {
    news.iter().map(|news| news.kind.name()).collect()
}

/// All that is told when it is looked so, every second look a second after the one before.
fn told<'a>(looks: impl IntoIterator<Item = Observation<'a>>) -> Vec<Notification> {
    let mut watch = Detector::default();
    looks.into_iter().flat_map(|look| watch.observe(&look).0).collect()
}

/// A day before the event, by seconds.
fn at(seconds: u64) -> u64 {
    START - 24 * 60 * MINUTE + seconds * 1_000
}

#[test]
fn a_queue_that_seems_to_be_over_every_minute_is_one_queue() {
    let room = room();
    // Full minutes: people wait in the last seconds of each, for ten minutes.
    let looks = (0..900).map(|second| {
        let calm = look(&room, at(second));
        if second < 600 && second % 60 > 55 { queue(calm, 3 + second as i64 / 60) } else { calm }
    });
    let news = told(looks);
    assert_eq!(kinds(&news), ["queueing_started", "queueing_ended"]);
    assert_eq!(news[0].at, at(56));
    assert_eq!(news[1].at, at(690));
    assert_eq!(news[1].data["most_waiting_users"], 12);
    assert_eq!(news[1].data["url"], "https://shop.example.com/__anteroom/#room=shop");
}

#[test]
fn whoever_waits_while_there_are_slots_is_no_queue() {
    let room = room();
    let looks = (0..60).map(|second| Observation { waiting: 2, present: 2, ..look(&room, at(second)) });
    assert_eq!(told(looks), []);
}

#[test]
fn a_wait_is_told_when_it_stays_above_the_threshold_and_when_it_is_well_below() {
    let room = room();
    let minutes = |second| match second {
        0..60 => 9,
        // Above for a moment, then for good, then about the threshold.
        60..65 => 12,
        65..100 => 9,
        100..200 => 11,
        200..400 => 8 + second % 4,
        _ => 4,
    };
    let looks = (0..500).map(|second| queue(look(&room, at(second)), minutes(second) as i64));
    let news = told(looks);
    assert_eq!(kinds(&news), ["queueing_started", "wait_above", "wait_below"]);
    assert_eq!((news[1].at, news[2].at), (at(110), at(430)));
    assert_eq!(news[2].data["threshold_minutes"], 10);
}

#[test]
fn an_event_is_told_by_its_own_times_however_seldom_it_is_looked() {
    let room = room();
    let times = [START - 3_600_000, START - 599_000, START - 1, START + 7_000, START + 3_600_000 + 8_000];
    let news = told(times.map(|now| look(&room, now)));
    let is: Vec<_> = news.iter().map(|news| (news.kind.name(), news.at)).collect();
    assert_eq!(
        is,
        [
            ("event_prequeue_started", START - 600_000),
            ("event_started", START),
            ("event_ended", START + 3_600_000)
        ]
    );
    assert_eq!(news[1].id, format!("shop-event_started-{START}-sale"));
    assert_eq!(
        (&news[1].data["event_end_time"], &news[1].data["total_active_users"]),
        (&json!("2026-11-27T09:00:00Z"), &json!(40))
    );
    // Called off while people wait for it.
    let without = Room { events: [].into(), ..room.clone() };
    let news = told([look(&room, START - 5_000), look(&without, START - 4_000)]);
    let is: Vec<_> = news.iter().map(|news| (news.kind, news.data.get("called_off"))).collect();
    assert_eq!(is, [(Kind::EventPrequeueStarted, None), (Kind::EventEnded, Some(&json!(true)))]);
}

#[test]
fn the_origin_is_told_by_check_and_by_what_passes() {
    let room = room();
    let origin = |second: u64| Origin {
        held: (10..60).contains(&second),
        down: (20..40).contains(&second) && !second.is_multiple_of(3),
        unhealthy: [("a", 10..60), ("b", 30..35)]
            .into_iter()
            .filter(|(_, times)| times.contains(&second))
            .map(|(name, times)| (name.to_owned(), at(times.start)))
            .collect(),
        limits: None,
    };
    let looks = (0..200).map(|second| Observation { origin: origin(second), ..look(&room, at(second)) });
    let news = told(looks);
    let is: Vec<_> = news.iter().map(|news| (news.kind.name(), news.data["check"].clone())).collect();
    assert_eq!(
        is,
        [
            ("origin_unhealthy", json!("a")),
            ("origin_unhealthy", Value::Null),
            ("origin_unhealthy", json!("b")),
            ("origin_healthy", json!("b")),
            ("origin_healthy", json!("a")),
            ("origin_healthy", Value::Null),
        ]
    );
}

#[test]
fn limits_are_told_when_they_have_moved_far_and_at_their_ends() {
    let vars = json!({
        "limits": "adaptive", "total_active_users": { "min": 100, "max": 1000 }, "new_users_per_minute": 200,
    });
    let (rooms, errors) = Rooms::from_vars([("ROOM_SHOP".to_owned(), vars)].into_iter());
    assert_eq!(errors, []);
    let room = rooms.get("shop").unwrap();
    // From one end to the other in 500 seconds, a hundredth in each.
    let looks = (0..600).map(|second| {
        let total_active_users = 100 + (second as u32).min(500) * 9 / 5;
        let limits = Some(Limits { total_active_users, new_users_per_minute: 200 });
        Observation { origin: Origin { limits, ..Origin::default() }, ..look(room, at(second)) }
    });
    let news = told(looks);
    let is: Vec<_> = news.iter().map(|news| news.data["total_active_users"].as_u64().unwrap()).collect();
    assert_eq!(is, [301, 501, 701, 901, 1000]);
    assert_eq!(kinds(&news), ["limits_changed"; 5]);
    assert_eq!(
        (&news[0].data["by"], &news[0].data["total_active_users_before"]),
        (&json!("origin"), &json!(100))
    );

    // By a deploy they are told at once; by an operator that is news of its own.
    let other = Room { new_users_per_minute: 190, adaptive: None, ..room.clone() };
    let before = Room { adaptive: None, ..room.clone() };
    let news = told([look(&before, at(0)), look(&other, at(1)), look(&other, at(2))]);
    assert_eq!(news[0].data["by"], "deploy");
    assert_eq!(news.len(), 1);
    assert_eq!(told([look(&before, at(0)), Observation { steering: 1, ..look(&other, at(1)) }]), []);
}

#[test]
fn limits_are_exceeded_by_those_who_came_and_not_by_those_who_may_stay() {
    let room = room();
    let with = |active: i64, new_users: i64| {
        move |second: u64, room| Observation { active, new_users, ..look(room, at(second)) }
    };
    // 22 of 20 for a while, and once 14 of 10 in a minute.
    let news = told((0..200).map(|second| match second {
        10..100 => with(22, 1)(second, &room),
        150..170 => with(5, 14)(second, &room),
        _ => with(20, 10)(second, &room),
    }));
    let of = |news: &Notification, name: &str| news.data[name].clone();
    let is: Vec<_> =
        news.iter().map(|news| (of(news, "limit"), of(news, "users"), of(news, "more_than_limit"))).collect();
    assert_eq!(
        is,
        [
            (json!("total_active_users"), json!(22), json!(2)),
            (json!("new_users_per_minute"), json!(14), json!(4))
        ]
    );
    // Half of the room is taken away: whoever is in may stay.
    let small = Room { total_active_users: 10, new_users_per_minute: 5, ..room.clone() };
    let news = told((0..200).map(|second| match second {
        0..10 => with(20, 1)(second, &room),
        10..150 => Observation { steering: 1, ..with(20 - (second as i64 - 10) / 14, 1)(second, &small) },
        _ => Observation { steering: 1, ..with(12, 1)(second, &small) },
    }));
    assert_eq!(kinds(&news), ["limit_exceeded"]);
    assert_eq!((news[0].at, &news[0].data["more_than_limit"]), (at(155), &json!(2)));
}

#[test]
fn who_steered_what_is_told() {
    let entry = |kind: &str, field: &str, before, after| AuditEntry {
        at: at(0),
        by: "anna".to_owned(),
        kind: kind.to_owned(),
        field: field.to_owned(),
        before,
        after,
        deployed: json!(null),
        until: None,
        reason: String::new(),
    };
    let log = [
        entry("set", "queue_all", json!(false), json!(true)),
        entry("clear", "message", json!("Soon"), json!("")),
    ];
    let news = steered(&room(), &log, 7);
    assert_eq!((news.kind, &news.data["by"], news.at), (Kind::Steered, &json!("anna"), at(0)));
    assert_eq!(news.data["changes"][0]["after"], true);
}

/// What a look may find, by chance.
fn chance() -> impl Strategy<Value = (u64, [i64; 5], Option<u64>, [bool; 5])> {
    let figures = (0..50i64, 0..40i64, 0..8i64, 0..8i64, 0..3i64);
    let figures = figures.prop_map(|(active, new_users, slots, waiting, fallbacks)| {
        [active, new_users, slots, waiting, fallbacks]
    });
    (
        prop_oneof![0..3_000u64, 20_000..100_000u64],
        figures,
        proptest::option::of(0..1_500u64),
        any::<[bool; 5]>(),
    )
}

fn by_chance<'a>(
    room: &'a Room,
    now: u64,
    (_, figures, wait_seconds, flags): &(u64, [i64; 5], Option<u64>, [bool; 5]),
) -> Observation<'a> {
    let [active, new_users, slots, waiting, fallbacks] = *figures;
    let [waits, a, b, down, held] = *flags;
    let waiting = if waits { waiting } else { 0 };
    let unhealthy = [("a", a), ("b", b)].into_iter().filter(|(_, unhealthy)| *unhealthy);
    Observation {
        active,
        new_users,
        slots,
        waiting,
        present: waiting,
        wait_seconds: if waiting == 0 { Some(0) } else { *wait_seconds },
        fallbacks: fallbacks as u64,
        origin: Origin {
            limits: None,
            held,
            down,
            unhealthy: unhealthy.map(|(name, _)| (name.to_owned(), now - now % 30_000)).collect(),
        },
        ..look(room, now)
    }
}

/// What begins and what ends it, of one thing.
fn thing(news: &Notification) -> Option<(String, bool)> {
    let of = |word: &str, begins| {
        Some((
            format!(
                "{word} {} {}",
                news.data.get("check").unwrap_or(&Value::Null),
                news.data.get("event").unwrap_or(&Value::Null)
            ),
            begins,
        ))
    };
    match news.kind {
        Kind::QueueingStarted => of("queue", true),
        Kind::QueueingEnded => of("queue", false),
        Kind::WaitAbove => of("wait", true),
        Kind::WaitBelow => of("wait", false),
        Kind::OriginUnhealthy => of("origin", true),
        Kind::OriginHealthy => of("origin", false),
        Kind::FallbackInUse => of("fallback", true),
        Kind::FallbackEnded => of("fallback", false),
        Kind::EventStarted => of("event", true),
        Kind::EventEnded => of("event", false),
        Kind::EventPrequeueStarted | Kind::LimitsChanged | Kind::Steered | Kind::LimitExceeded => None,
    }
}

proptest! {
    #[test]
    fn whatever_happens_news_begin_and_end_in_turn_and_a_restart_changes_nothing(
        chances in vec(chance(), 1..80),
        begin in 0..4_000_000u64,
    ) {
        let room = room();
        // Around the event.
        let mut now = START - 2_000_000 + begin;
        let (mut watch, mut restarted, mut stored) = (Detector::default(), Detector::default(), Detector::default());
        let mut last: std::collections::BTreeMap<String, bool> = std::collections::BTreeMap::new();
        let mut ids = std::collections::BTreeSet::new();
        for chance in &chances {
            now += chance.0;
            let look = by_chance(&room, now, chance);
            let (news, changed) = watch.observe(&look);
            for one in &news {
                prop_assert!(ids.insert(one.id.clone()), "{} is told twice", one.id);
                prop_assert!(one.at <= now && !one.id.contains('.'), "{}", one.id);
                if let Some((thing, begins)) = thing(one) {
                    let before = last.insert(thing.clone(), begins).unwrap_or(false);
                    prop_assert_ne!(before, begins, "{} {}", thing, one.id);
                }
            }
            // Looked at twice, nothing is new.
            prop_assert_eq!(watch.clone().observe(&look).0, vec![]);
            // With a restart after every look.
            restarted = decode(&encode(&restarted).unwrap()).unwrap();
            prop_assert_eq!(&restarted.observe(&look).0, &news);
            // With a restart after every look, where only what must be stored is stored.
            let mut from_storage: Detector = decode(&encode(&stored).unwrap()).unwrap();
            let (again, also_changed) = from_storage.observe(&look);
            let but_excess = |news: &[Notification]| -> Vec<String> {
                news.iter().filter(|news| news.kind != Kind::LimitExceeded).map(|news| news.id.clone()).collect()
            };
            prop_assert_eq!(but_excess(&again), but_excess(&news));
            if changed || also_changed {
                stored = from_storage;
            }
            if let Some(again) = watch.look_again_at() {
                prop_assert!(again > now);
            }
        }
    }

    #[test]
    fn what_has_begun_ends_without_reports_when_it_is_looked_as_asked(chances in vec(chance(), 1..40)) {
        let room = room();
        let mut now = at(0);
        let mut watch = Detector::default();
        let mut open = std::collections::BTreeSet::new();
        let mut note = |news: Vec<Notification>| {
            for (thing, begins) in news.iter().filter_map(thing) {
                if begins { open.insert(thing); } else { open.remove(&thing); }
            }
            open.len()
        };
        for chance in &chances {
            now += chance.0;
            note(watch.observe(&by_chance(&room, now, chance)).0);
        }
        let mut left = 0;
        for _ in 0..20 {
            left = note(watch.observe(&look(&room, now)).0);
            let Some(again) = watch.look_again_at() else { break };
            now = again;
        }
        prop_assert_eq!((left, watch.look_again_at()), (0, None));
    }
}

/// The example of the specification's own libraries.
#[test]
fn signatures_are_those_of_standard_webhooks() {
    let secrets = SigningSecrets::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signed = secrets.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
    assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    let secret = |bytes: usize| format!("whsec_{}", "QUFB".repeat(bytes / 3));
    for (text, is) in [
        (secret(24), Some(1)),
        (secret(63), Some(1)),
        (format!("{} {}\n", secret(24), secret(30)), Some(2)),
        (format!("{0},{0},{0}", secret(24)), Some(3)),
        (format!("{0},{0},{0},{0}", secret(24)), None),
        (secret(21), None),
        (secret(66), None),
        (secret(24).replace("whsec_", ""), None),
        (format!("{} x", secret(24)), None),
        ("whsec_!!!".to_owned(), None),
        (String::new(), None),
    ] {
        let signatures =
            SigningSecrets::parse(&text).map(|secrets| secrets.sign("id", 1, "").split(' ').count());
        assert_eq!(signatures, is, "{text}");
    }
}

#[test]
fn attempts_are_further_and_further_apart_up_to_an_hour() {
    let waits: Vec<u64> = (1..=13).map(|tries| wait_ms(tries, 0, 1.0) / 1_000).collect();
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600, 3_600]);
    assert_eq!(wait_ms(1, 0, 0.0), 4_500);
    assert_eq!(wait_ms(u32::MAX, u64::MAX, 1.0), 3_600_000);
    // As the receiver asks.
    assert_eq!(wait_ms(1, 120, 1.0), 120_000);
    let verdicts = [200, 204, 301, 400, 404, 410, 429, 500, 0].map(verdict);
    use Verdict::{Again, Delivered, Gone};
    assert_eq!(verdicts, [Delivered, Delivered, Again, Again, Again, Gone, Again, Again, Again]);
}

fn webhooks(vars: &[(&str, Value)]) -> (Webhooks, Vec<ConfigError>) {
    let shop = ("ROOM_SHOP".to_owned(), json!({ "total_active_users": 5, "new_users_per_minute": 5 }));
    let (rooms, _) = Rooms::from_vars([shop].into_iter());
    Webhooks::from_vars(vars.iter().map(|(name, value)| ((*name).to_owned(), value.clone())), &rooms)
}

#[test]
fn a_webhook_is_told_all_but_waits_unless_its_owner_says_otherwise() {
    let url = "https://hooks.example.com/x?y=1";
    let (all, errors) = webhooks(&[
        ("WEBHOOK_CHAT", json!({ "url": url })),
        ("WEBHOOK_LOCAL", json!({ "url": "http://127.0.0.1:80/", "rooms": ["SHOP"], "wait_minutes": 10 })),
        ("WEBHOOK_PAGER", json!({ "news": ["wait_above"], "wait_minutes": 30, "format": "google_chat" })),
        // Secrets.
        ("WEBHOOK_SECRET", json!("x")),
        ("WEBHOOK_SECRET_CHAT", json!("whsec_x")),
        ("WEBHOOK_URL_PAGER", json!("https://x")),
    ]);
    assert_eq!(errors, []);
    let chat = all.get("chat").unwrap();
    assert_eq!((chat.url.as_deref(), chat.news.len(), chat.hears_of("shop")), (Some(url), 12, true));
    let local = all.get("local").unwrap();
    assert_eq!((local.news.len(), local.hears_of("shop"), local.hears_of("other")), (14, true, false));
    let pager = all.get("pager").unwrap();
    assert_eq!((&pager.url, pager.news.as_slice()), (&None, [Kind::WaitAbove].as_slice()));
    assert_eq!(
        (pager.format, pager.url_secret_name()),
        (WebhookFormat::GoogleChat, "WEBHOOK_URL_PAGER".to_owned())
    );
    assert_eq!((all.thresholds("shop"), all.thresholds("other")), (vec![10, 30], vec![30]));
}

#[test]
fn what_is_wrong_with_a_webhook_is_said_with_its_fix() {
    for (name, table, error) in [
        (
            "WEBHOOK_X",
            json!({ "url": "http://example.com" }),
            "webhook x: url = \"http://example.com\": must begin with https://. Fix: write the receiver's https address; http is for this machine only.",
        ),
        (
            "WEBHOOK_X",
            json!({ "url": "http://127.evil.com" }),
            "webhook x: url = \"http://127.evil.com\": must begin with https://. Fix: write the receiver's https address; http is for this machine only.",
        ),
        (
            "WEBHOOK_X",
            json!({ "url": "https://me:secret@example.com" }),
            "webhook x: url = \"https://me:secret@example.com\": must be an https URL without user and fragment. Fix: write url = \"https://hooks.example.com/anteroom\".",
        ),
        (
            "WEBHOOK_X",
            json!({ "news": ["queuing_started"] }),
            "webhook x: news = \"queuing_started\": is not a kind of news. Fix: write \"queueing_started\" if you mean that.",
        ),
        (
            "WEBHOOK_X",
            json!({ "news": [] }),
            "webhook x: news = []: must be a list of 1 to 14 names. Fix: write news = [\"queueing_started\", \"queueing_ended\"], or leave it out for all.",
        ),
        (
            "WEBHOOK_X",
            json!({ "news": ["wait_above"] }),
            "webhook x: news = \"wait_above\": needs wait_minutes: which wait is news. Fix: add it, for example wait_minutes = 10.",
        ),
        (
            "WEBHOOK_X",
            json!({ "news": ["steered"], "wait_minutes": 5 }),
            "webhook x: wait_minutes = 5: is for wait_above and wait_below, which are not in news. Fix: add one of them to news, or remove wait_minutes.",
        ),
        (
            "WEBHOOK_X",
            json!({ "wait_minutes": 1441 }),
            "webhook x: wait_minutes = 1441: must be a whole number from 1 to 1440. Fix: set wait_minutes to at most 1440.",
        ),
        (
            "WEBHOOK_X",
            json!({ "rooms": ["shop", "sjop"] }),
            "webhook x: rooms = \"sjop\": is not the name of a room that works. Fix: write the names of rooms, or correct that room first.",
        ),
        (
            "WEBHOOK_X",
            json!({ "format": "Slack" }),
            "webhook x: format = \"Slack\": must be \"standard\", \"slack\", \"discord\", \"teams\" or \"google_chat\". Fix: write format = \"slack\" if you mean that.",
        ),
        (
            "WEBHOOK_X",
            json!({ "secret": "whsec_x" }),
            "webhook x: secret = \"whsec_x\": is not a field that Anteroom knows. Fix: remove it; the fields are url, rooms, news, wait_minutes, format, description.",
        ),
        (
            "WEBHOOK_SECRET_X",
            json!({}),
            "webhook secret_x: name = \"WEBHOOK_SECRET_X\": is the name of a webhook's secret. Fix: rename the webhook: its name must not begin with SECRET or URL_.",
        ),
        (
            "WEBHOOK_X",
            json!("https://example.com"),
            "webhook x: WEBHOOK_X = \"https://example.com\": must be a table with the webhook's fields. Fix: write a table [vars.WEBHOOK_X] instead of text.",
        ),
    ] {
        let (all, errors) = webhooks(&[(name, table.clone()), ("WEBHOOK_GOOD", json!({}))]);
        let is: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(is, [error], "{table}");
        assert!(all.get("good").is_some());
    }
    let many: Vec<(String, Value)> =
        (10..30).map(|number| (format!("WEBHOOK_{number}"), json!({}))).collect();
    let many: Vec<(&str, Value)> = many.iter().map(|(name, table)| (name.as_str(), table.clone())).collect();
    let (all, errors) = webhooks(&many);
    assert_eq!((all.iter().count(), errors.len()), (16, 4));
}
