//! The origin's health: notifications, the state they make, and what many results say together.

use anteroom::health::analytics::{Range, SLOTS_MS, Sum, Tally, healthy_time, kept_ms, slot};
use anteroom::health::check::Checks;
use anteroom::health::history::Known;
use anteroom::health::messages::{Ask, Told};
use anteroom::health::page;
use anteroom::health::shown::{ASKS_MS, Next, SHOWN_MS, STALE_MS, Shown};
use anteroom::health::view::{ChangeView, CheckRow, CheckView, ResultView, Status, SumRow, View, time};
use anteroom::health::webhook::{LONGEST_BODY, Notice, read};
use anteroom::health::{ProbeResult, Reason, Source, StateChange, Waterfall};
use anteroom::time::milliseconds;
use proptest::prelude::*;
use serde_json::{Value, json};

/// 2022-03-22 13:00:00 UTC, the day of the article.
const NOW: u64 = 1_647_954_000_000;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// As the platform sends it.
fn notification() -> Value {
    json!({
        "name": "Origin is down",
        "text": "Health Check: configuration-service, Status: Unhealthy",
        "data": {
            "time": "2022-03-22 12:59:30 +0000 UTC",
            "status": "Unhealthy",
            "reason": "TCP connection failed",
            "name": "configuration-service",
            "preview": false,
            "expected_codes": "200",
            "actual_code": 0,
            "health_check_id": "5334d6fbfc9f170315cc51e29e8a350a"
        },
        "ts": 1_647_953_970,
        "account_id": "023e105f4ecef8ad9ca31a8372d0c353",
        "policy_id": "0da2b59ef118439d8097bdfb215203c9",
        "policy_name": "Origin is down",
        "alert_type": "health_check_status_notification",
        "alert_correlation_id": "699d98642c564d2e855e9661899b7252",
        "alert_event": "ALERT_STATE_EVENT_START"
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut body = notification();
    *body.pointer_mut(field).unwrap() = value;
    body
}

fn added(place: &str, field: &str, value: Value) -> Value {
    let mut body = notification();
    body.pointer_mut(place).unwrap()[field] = value;
    body
}

fn without(place: &str, field: &str) -> Value {
    let mut body = notification();
    body.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(field).unwrap();
    body
}

fn reading(body: &Value) -> Result<Notice, (u16, String)> {
    read(body.to_string().as_bytes(), NOW).map_err(|refusal| (refusal.status, refusal.message))
}

fn change(body: &Value) -> StateChange {
    match reading(body) {
        Ok(Notice::Change { change, .. }) => change,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_notification_says_which_check_is_how_and_since_when() {
    let Ok(Notice::Change { name, change }) = reading(&notification()) else { panic!("refused") };
    assert_eq!(name, "configuration-service");
    assert_eq!(
        change,
        StateChange {
            check: "webhook/5334d6fbfc9f170315cc51e29e8a350a".to_owned(),
            healthy: false,
            reason: Reason::TcpConnectionFailed,
            at: NOW - 30_000,
            expected_codes: "200".to_owned(),
            actual_code: None,
        }
    );
}

#[test]
fn the_test_of_a_new_webhook_and_a_preview_are_no_news() {
    let test = json!({"text": "Hello World! This is a test message sent from https://cloudflare.com."});
    assert_eq!(reading(&test), Ok(Notice::Test));
    assert_eq!(reading(&with("/data/preview", json!(true))), Ok(Notice::Test));
}

#[test]
fn what_is_wrong_is_refused_with_the_fields_name() {
    let long = "x".repeat(201);
    for (body, says) in [
        (json!([]), "JSON object"),
        (json!({}), "\"data\" is missing"),
        (json!({"text": "down", "data": []}), "\"data\" must be an object"),
        (json!({"text": 1, "data": {}}), "\"text\""),
        (with("/text", json!("x".repeat(4_001))), "\"text\""),
        (with("/name", json!(long)), "\"name\""),
        (with("/ts", json!("now")), "\"ts\""),
        (with("/alert_type", json!("dos_attack_l7")), "\"alert_type\""),
        (with("/data/time", json!("yesterday")), "\"data.time\""),
        (with("/data/time", json!(1_647_953_970)), "\"data.time\""),
        (with("/data/time", json!("2022-03-22 13:11:00 +0000 UTC")), "must not lie in the future"),
        (with("/data/status", json!("Healthyish")), "\"data.status\""),
        (with("/data/status", json!(true)), "\"data.status\""),
        (with("/data/reason", json!(["TCP"])), "\"data.reason\""),
        (with("/data/name", json!(long)), "\"data.name\""),
        (with("/data/name", json!("one\nline more")), "control characters"),
        (with("/data/expected_codes", json!({"from": 200})), "\"data.expected_codes\""),
        (with("/data/expected_codes", json!(vec!["200"; 60])), "\"data.expected_codes\""),
        (with("/data/actual_code", json!(99)), "\"data.actual_code\""),
        (with("/data/actual_code", json!(70_000)), "\"data.actual_code\""),
        (with("/data/actual_code", json!("teapot")), "\"data.actual_code\""),
        (with("/data/preview", json!("no")), "\"data.preview\""),
        (added("", "colour", json!("red")), "\"colour\" is not a field"),
        (added("/data", "colour", json!("red")), "\"data.colour\" is not a field"),
        (without("/data", "time"), "\"data.time\" is missing"),
        (without("/data", "status"), "\"data.status\" is missing"),
    ] {
        let (status, message) = reading(&body).unwrap_err();
        assert_eq!(status, 400, "{body}");
        assert!(message.contains(says), "{body}: {message}");
    }
    assert_eq!(read(b"{\"data\":", NOW).unwrap_err().status, 400);
    assert_eq!(read(b"\xff\xfe", NOW).unwrap_err().status, 400);
    assert_eq!(read(&vec![b' '; LONGEST_BODY + 1], NOW).unwrap_err().status, 413);
}

#[test]
fn what_may_be_told_in_several_ways_is_understood_in_each() {
    for (codes, text) in [
        (json!("200"), "200"),
        (json!("200,302"), "200,302"),
        (json!(["200", "2xx"]), "200, 2xx"),
        (json!(204), "204"),
        (json!(null), ""),
    ] {
        assert_eq!(change(&with("/data/expected_codes", codes)).expected_codes, text);
    }
    for (code, number) in [
        (json!(503), Some(503)),
        (json!("503"), Some(503)),
        (json!(""), None),
        (json!(0), None),
        (json!(null), None),
    ] {
        assert_eq!(change(&with("/data/actual_code", code)).actual_code, number);
    }
    assert_eq!(change(&without("/data", "health_check_id")).check, "webhook/configuration-service");
    assert_eq!(change(&with("/data/status", json!("Healthy"))).reason, Reason::NoFailures);
    assert_eq!(
        change(&with("/data/reason", json!("TLS name mismatch error"))).reason.text(),
        "TLS name mismatch error"
    );
    assert_eq!(change(&with("/data/reason", json!("No failures"))).reason.text(), "Other Failure");
}

#[test]
fn times_are_read_as_the_platform_and_as_rfc_3339_write_them() {
    for (text, at) in [
        ("2022-03-22 13:00:00 +0000 UTC", NOW),
        ("2022-03-22 13:00:00 UTC", NOW),
        ("2022-03-22 13:00:00.250 UTC", NOW + 250),
        ("2022-03-22 13:00:00.123456789 +0000 UTC", NOW + 123),
        ("2022-03-22T13:00:00Z", NOW),
        ("2022-03-22T13:00:00.250Z", NOW + 250),
        ("2022-03-22T14:30:00+01:30", NOW),
        ("2022-03-22T05:00:00-08:00", NOW),
    ] {
        assert_eq!(milliseconds(text), Some(at), "{text}");
    }
    for wrong in
        ["", "2022-03-22", "13:00", "2022-13-22 13:00:00 UTC", "2022-03-22T13:00:00+25:00", "1647954000"]
    {
        assert_eq!(milliseconds(wrong), None, "{wrong}");
    }
    assert_eq!(time(NOW), "2022-03-22 13:00:00 UTC");
    assert_eq!(time(u64::MAX), "9999-12-31 23:59:59 UTC");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        "[0-9T:+Z. -]{0,30}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let field = prop_oneof![
            Just("text"),
            Just("data"),
            Just("time"),
            Just("status"),
            Just("name"),
            Just("reason"),
            Just("actual_code"),
            Just("expected_codes"),
            Just("health_check_id"),
            Just("other")
        ]
        .prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(field, inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_comes_is_taken_within_the_bounds_or_refused_with_a_sentence(
        bytes in prop::collection::vec(any::<u8>(), 0..200), body in any_json(), field in any_json(),
        place in prop::sample::select(vec!["/text", "/data", "/data/time", "/data/status", "/data/reason", "/data/name",
            "/data/expected_codes", "/data/actual_code", "/data/health_check_id", "/ts", "/alert_type"]),
    ) {
        for body in [bytes, body.to_string().into_bytes(), with(place, field).to_string().into_bytes()] {
            match read(&body, NOW) {
                Ok(Notice::Test) => {}
                Ok(Notice::Change { name, change }) => {
                    prop_assert!(!name.is_empty() && name.chars().count() <= 200);
                    prop_assert!(change.reason.text().chars().count() <= 200);
                    prop_assert!(change.expected_codes.chars().count() <= 200);
                    prop_assert!(change.at <= NOW + 10 * MINUTE);
                }
                Err(refusal) => {
                    prop_assert_eq!(refusal.status, 400);
                    prop_assert!(!refusal.message.is_empty() && refusal.message.len() < 400);
                }
            }
        }
    }

    #[test]
    fn any_text_is_a_time_or_none(text in "[0-9TZUC:+. é-]{0,40}") {
        let _ = milliseconds(&text);
    }

    #[test]
    fn a_waterfalls_percentiles_are_never_off_by_more_than_a_hundredth(ms in 0..600_000_u32) {
        let mut sum = Sum::default();
        sum.add(&result("eu", NOW, Reason::NoFailures, [ms; 4]));
        let [.., total] = sum.percentiles();
        let p50 = total.unwrap().p50;
        prop_assert!(p50.abs_diff(ms) * 100 <= ms, "{ms} is told as {p50}");
    }
}

fn state(at: u64, healthy: bool) -> StateChange {
    let reason = if healthy { Reason::NoFailures } else { Reason::TcpConnectionFailed };
    StateChange {
        check: "webhook/1".to_owned(),
        healthy,
        reason,
        at,
        expected_codes: String::new(),
        actual_code: None,
    }
}

#[test]
fn late_and_repeated_news_never_turn_a_state_back() {
    let down = Known::after(None, &state(NOW, false)).unwrap();
    assert_eq!((down.healthy, down.since), (false, NOW));
    let up = Known::after(Some(&down), &state(NOW + 60_000, true)).unwrap();
    assert_eq!((up.healthy, up.since, up.reason.clone()), (true, NOW + 60_000, Reason::NoFailures));
    for late in [state(NOW, false), state(NOW + 59_999, false), state(0, false)] {
        assert_eq!(Known::after(Some(&up), &late), None);
    }
    let again = Known::after(Some(&up), &state(NOW + 90_000, true)).unwrap();
    assert_eq!((again.since, again.at), (NOW + 60_000, NOW + 90_000), "still healthy since the same moment");
    // The platform's times are whole seconds: of two changes in one, the one that comes later counts.
    assert!(!Known::after(Some(&up), &state(NOW + 60_000, false)).unwrap().healthy);
}

fn result(region: &str, at: u64, reason: Reason, [tcp, tls, first, total]: [u32; 4]) -> ProbeResult {
    ProbeResult {
        check: "origin".to_owned(),
        region: region.to_owned(),
        observer: 0,
        at,
        healthy: reason == Reason::NoFailures,
        reason,
        expected_codes: "200".to_owned(),
        actual_code: Some(200),
        waterfall: Waterfall {
            tcp_ms: Some(tcp),
            tls_ms: Some(tls),
            first_byte_ms: Some(first),
            total_ms: Some(total),
        },
    }
}

/// The rows that storage would hold of these results, for slots of a size.
fn sums(results: &[ProbeResult], size: u64) -> Vec<SumRow> {
    let mut rows: Vec<SumRow> = Vec::new();
    for result in results {
        let start = slot(result.at, size);
        let known = rows.iter().position(|row| row.start == start && row.region == result.region);
        let index = known.unwrap_or_else(|| {
            let region = result.region.clone();
            rows.push(SumRow { start, region, tally: Tally::default(), sum: Sum::default() });
            rows.len() - 1
        });
        let row = &mut rows[index];
        row.tally = row.tally.and(Tally { healthy: u64::from(result.healthy), total: 1 });
        row.sum.add(result);
    }
    rows
}

fn tally(results: &[ProbeResult]) -> Tally {
    let healthy = results.iter().filter(|result| result.healthy).count() as u64;
    Tally { healthy, total: results.len() as u64 }
}

fn row(name: &str) -> CheckRow {
    CheckRow { id: format!("check/{name}"), name: name.to_owned(), ..CheckRow::default() }
}

#[test]
fn staging_is_up_76_percent_and_production_100_and_one_error_is_why() {
    let production: Vec<_> =
        (0..100).map(|n| result("weu", NOW - n * MINUTE, Reason::NoFailures, [41, 80, 222, 302])).collect();
    let staging: Vec<_> = (0..100)
        .map(|n| {
            let reason = if n % 25 < 6 { Reason::TcpConnectionFailed } else { Reason::NoFailures };
            result("weu", NOW - n * MINUTE, reason, [41, 80, 222, 302])
        })
        .collect();
    let view = |name: &str, results: &[ProbeResult]| {
        let sums = sums(results, Range::Day.slot_ms());
        CheckView::of_results(row(name), Range::Day, NOW, [tally(results); 4], &sums)
    };
    let (staging, production) = (view("staging", &staging), view("production", &production));
    assert_eq!(staging.availability[1].percent, "76 %");
    assert_eq!(production.availability[1].percent, "100 %");
    let errors: Vec<_> = staging.errors.iter().map(|error| (error.reason.as_str(), error.count)).collect();
    assert_eq!(errors, [("TCP connection failed", 24)]);
    assert_eq!(production.errors, []);
    // Slot by slot the same results, and none is lost at the edges.
    let slots: Tally = staging.slots.iter().fold(Tally::default(), |all, slot| all.and(slot.tally));
    assert_eq!(slots, staging.availability[1].tally);
    assert_eq!(staging.slots.len(), 25, "24 whole hours and the one that has begun");
}

#[test]
fn a_hundred_percent_is_told_only_when_nothing_failed() {
    let percent = |healthy, total| Tally { healthy, total }.percent();
    assert_eq!(percent(99_999, 100_000), "99.99 %");
    assert_eq!(percent(100_000, 100_000), "100 %");
    assert_eq!(percent(0, 5), "0 %");
    assert_eq!(percent(1, 3), "33.33 %");
    assert_eq!(percent(0, 0), "no data");
}

#[test]
fn percentiles_are_told_for_each_region_and_moment() {
    let mut results: Vec<_> =
        (1..=100).map(|ms| result("in", NOW - MINUTE, Reason::NoFailures, [ms, ms + 20, 120, 127])).collect();
    results.push(result("wnam", NOW - MINUTE, Reason::NoFailures, [41, 80, 222, 302]));
    let mut silent = result("wnam", NOW, Reason::TcpConnectionFailed, [0; 4]);
    silent.waterfall = Waterfall::default();
    results.push(silent);
    let sums = sums(&results, Range::Hour.slot_ms());
    let check = CheckView::of_results(row("origin"), Range::Hour, NOW, [tally(&results); 4], &sums);
    let [india, america] = check.regions.as_slice() else { panic!("{:?}", check.regions) };
    let numbers = |region: &anteroom::health::view::RegionView| {
        region.moments.map(|moment| moment.map(|p| (p.p50, p.p90, p.p99)))
    };
    assert_eq!(
        numbers(india),
        [Some((50, 90, 99)), Some((70, 110, 119)), Some((120, 120, 120)), Some((127, 127, 127))]
    );
    assert_eq!(
        numbers(america),
        [Some((41, 41, 41)), Some((80, 80, 80)), Some((223, 223, 223)), Some((302, 302, 302))]
    );
    assert_eq!(
        america.tally,
        Tally { healthy: 1, total: 2 },
        "what was never reached has no time, and still counts"
    );
}

#[test]
fn a_check_of_the_platform_is_available_by_the_time_that_is_known() {
    let changes =
        [state(NOW - 3 * HOUR, true), state(NOW - 30 * MINUTE, false), state(NOW - 15 * MINUTE, true)];
    assert_eq!(healthy_time(&changes, NOW - HOUR, NOW), Tally { healthy: 45 * MINUTE, total: 60 * MINUTE });
    assert_eq!(
        healthy_time(&changes, NOW - 24 * HOUR, NOW),
        Tally { healthy: 165 * MINUTE, total: 180 * MINUTE },
        "nobody knows what was before"
    );
    assert_eq!(healthy_time(&[], 0, NOW), Tally::default());
    let id = Source::Webhook.check_id("1");
    let row = CheckRow { id, name: "shop".to_owned(), healthy: Some(true), ..CheckRow::default() };
    let check = CheckView::of_changes(row, Range::Hour, NOW, &changes);
    assert_eq!((check.status, check.source), (Status::Healthy, Source::Webhook));
    assert_eq!(check.availability[0].percent, "75 %");
    assert_eq!(check.errors[0].count, 1);
    assert_eq!(check.slots.len(), 13);
}

#[test]
fn every_range_finds_its_slots_still_kept() {
    for range in Range::ALL {
        assert!(SLOTS_MS.contains(&range.slot_ms()));
        assert_eq!(Range::of(range.name()), Some(range));
        assert!(NOW - kept_ms(range.slot_ms(), 30) <= range.start(NOW), "{range:?}");
        assert!(
            kept_ms(range.slot_ms(), 2) <= 3 * 24 * HOUR,
            "{range:?}: not much longer than its owner wants"
        );
        assert!(range.start(NOW) % range.slot_ms() == 0);
    }
    assert_eq!(Range::of("1y"), None);
}

#[test]
fn nothing_that_a_check_says_becomes_part_of_the_page() {
    let evil = "<script>alert(1)</script><img src=x onerror=alert(1)>'\"&";
    let mut row = row(evil);
    row.reason = evil.to_owned();
    row.expected_codes = evil.to_owned();
    let results = [result(evil, NOW, Reason::Other(evil.to_owned()), [1, 2, 3, 4])];
    let sums = sums(&results, Range::Hour.slot_ms());
    let check = CheckView::of_results(row, Range::Hour, NOW, [tally(&results); 4], &sums);
    let view = View {
        at: NOW,
        range: Range::Hour,
        from: Range::Hour.start(NOW),
        status: Status::Unhealthy,
        selected: check.id.clone(),
        changes: vec![ChangeView {
            check: evil.to_owned(),
            at: NOW,
            status: Status::Unhealthy,
            reason: evil.to_owned(),
            expected_codes: evil.to_owned(),
            actual_code: None,
        }],
        results: vec![ResultView {
            check: evil.to_owned(),
            region: evil.to_owned(),
            observer: 0,
            at: NOW,
            status: Status::Unhealthy,
            reason: evil.to_owned(),
            expected_codes: evil.to_owned(),
            actual_code: None,
            waterfall: results[0].waterfall,
        }],
        checks: vec![check],
    };
    let page = page::page(&view, "/__anteroom/health.js?v=1");
    assert!(!page.contains("<script>"), "{page}");
    assert!(!page.contains("<img"), "{page}");
    assert!(!page.contains("\"&"), "{page}");
    assert_eq!(page.matches("<script").count(), 1);
    let answer = page::answer(page, false);
    let policy = &answer.headers.iter().find(|(name, _)| *name == "content-security-policy").unwrap().1;
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    let json: Value = serde_json::from_str(&page::json(&view)).unwrap();
    assert_eq!(json["checks"][0]["name"], evil);
    assert_eq!((&json["status"], &json["range"]), (&json!("Unhealthy"), &json!("1h")));
}

#[test]
fn however_many_look_and_whatever_they_ask_for_the_coordinator_is_asked_once_a_second() {
    let vars =
        [("CHECK_STAGING".to_owned(), json!({ "url": "https://origin.example.com/", "suspended": true }))];
    let configured = Checks::from_vars(vars.into_iter()).0;
    let ask = |check: &str| Ask { v: 1, range: Range::Day, check: check.to_owned(), script: String::new() };
    let told = |checks: Option<&[&str]>| Told {
        v: 1,
        body: Some("{}".to_owned()),
        checks: checks.map(|checks| checks.iter().map(|check| (*check).to_owned()).collect()),
    };
    let (begin, shows) = (1_000_000, Next::Show("{}".to_owned()));
    let mut shown = Shown::default();
    let next = |shown: &mut Shown, check: &str, at| shown.next(&ask(check), &configured, begin + at);
    for unknown in ["nobody", "check/", "check/gone", "check/STAGING"] {
        assert_eq!(next(&mut shown, unknown, 0), Next::Unknown, "{unknown}: nobody has to be asked");
    }
    assert_eq!(next(&mut shown, "", 0), Next::Ask);
    for other in ["", "check/staging", "webhook/1"] {
        assert_eq!(next(&mut shown, other, ASKS_MS - 1), Next::Later, "{other:?}");
    }
    shown.learn(&ask(""), &told(Some(&["webhook/1"])), begin);
    assert_eq!(next(&mut shown, "", SHOWN_MS - 1), shows);
    // The platform's checks are known by what was told.
    assert_eq!(next(&mut shown, "webhook/2", SHOWN_MS - 1), Next::Unknown);
    assert_eq!(next(&mut shown, "webhook/1", SHOWN_MS - 1), Next::Ask);
    // What is old is shown while another one asks, and for half a minute.
    assert_eq!(next(&mut shown, "", SHOWN_MS), shows);
    assert_eq!(next(&mut shown, "webhook/2", SHOWN_MS), Next::Unknown);
    assert_eq!(next(&mut shown, "", SHOWN_MS + ASKS_MS), Next::Ask);
    assert_eq!(next(&mut shown, "", SHOWN_MS + ASKS_MS), shows);
    assert_eq!(next(&mut shown, "check/staging", STALE_MS - 1), Next::Ask);
    assert_eq!(next(&mut shown, "", STALE_MS), Next::Later);
    // Older code does not say which checks there are: then each is asked for.
    let mut shown = Shown::default();
    shown.learn(&ask(""), &told(None), begin);
    assert_eq!(next(&mut shown, "webhook/2", 0), Next::Ask);
}
