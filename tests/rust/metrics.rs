//! What Prometheus is told, letter by letter. `tests/edge/metrics.test.mjs` lets another's parser read the same files.

use anteroom::operator::metrics::{Format, Known, text};
use serde_json::{Value, json};

/// A room that does all that there is to tell of.
fn busy() -> Known {
    let waits: Vec<Value> = (0..64)
        .map(|class| {
            let bound = if class < 63 { json!(f64::from(class + 1) / 2.0) } else { Value::Null };
            json!([bound, if class % 10 == 0 { class + 1 } else { 0 }])
        })
        .collect();
    Known {
        room: "shop".to_owned(),
        status: json!({
            "status": "queueing",
            "estimated_queued_users": 31,
            "estimated_total_active_users": 1000,
            "age_ms": 1250,
            "late_ms": 900,
            "limits": { "total_active_users": 1000, "new_users_per_minute": 200 },
            "slots": 0,
            "new_users_last_minute": 199,
            "queue_all": false,
            "suspended": false,
            "observing": true,
            "held": true,
            "workers": 12,
            "events": [{ "name": "late \"night\"\\\n", "phase": "active" }, { "name": "next", "phase": "upcoming" }],
            "origin": {
                "unhealthy_check": "origin", "answered": 50, "failed": 2, "timed_out": 1, "refused": 0,
                "first_byte_p50_ms": 83, "first_byte_p95_ms": null, "in_flight": 4
            },
            "buckets": [{ "wait_seconds": 240 }, { "wait_seconds": 300 }, { "wait_seconds": null }],
            "colos": [
                { "colo": "FRA", "age_ms": 1250, "active": 1003, "waiting": 30, "workers": 10, "cut_off": false },
                { "colo": "SIN", "age_ms": 40, "active": -3, "waiting": 1, "workers": 2, "cut_off": true }
            ],
            "steering": {
                "version": 7, "colos": 2, "colos_in_force": 1,
                "overrides": [{ "deploy_changed": true }, { "deploy_changed": false }],
                "events": [{}]
            }
        }),
        totals: json!({
            "until": 1_700_000_000_000_u64, "new_users": 123_456_789_012_u64, "joins": 40, "leavers": 9, "revoked": 3,
            "bypassed": 77, "fallbacks": 0, "counter_calls": 500, "anywhere_calls": 60, "data_center_calls": 7,
            "global_calls": 8, "rehearsal_new_users": 0, "rehearsal_joins": 0, "observed_joins": 40, "waited": 214, "waited_seconds": 5_000,
            "waits": waits, "visited_seconds": 2_100, "visits": [[60.0, 1], [120.0, 0], [240.0, 2], [480.5, 3], [null, 4]]
        }),
    }
}

fn rooms() -> Vec<Known> {
    let quiet = Known {
        room: "quiet".to_owned(),
        status: json!({
            "status": "not_queueing", "estimated_queued_users": 0, "estimated_total_active_users": 0, "age_ms": 0,
            "limits": { "total_active_users": 5, "new_users_per_minute": 10 }, "slots": 5, "buckets": [], "colos": []
        }),
        totals: Value::Null,
    };
    let silent = Known { room: "silent".to_owned(), ..Known::default() };
    vec![busy(), quiet, silent]
}

#[test]
fn the_text_is_what_it_was() {
    for (format, golden) in [
        (Format::OpenMetrics, include_str!("golden/metrics.openmetrics.txt")),
        (Format::Classic, include_str!("golden/metrics.classic.txt")),
    ] {
        let told = text(&rooms(), 2, "1.2.3", format);
        for (line, (told, golden)) in told.lines().zip(golden.lines()).enumerate() {
            assert_eq!(told, golden, "{format:?}, line {}", line + 1);
        }
        assert_eq!(told, golden, "{format:?}");
    }
}

#[test]
fn a_room_that_does_not_answer_has_no_numbers_but_is_told_to_be_down() {
    let told = text(&rooms(), 0, "1.2.3", Format::OpenMetrics);
    let of_silent: Vec<&str> = told.lines().filter(|line| line.contains("\"silent\"")).collect();
    assert_eq!(of_silent, ["anteroom_up{room=\"silent\"} 0"]);
    let nothing = text(&[], 0, "1.2.3", Format::Classic);
    assert!(!nothing.contains("room=") && nothing.contains("anteroom_build_info{version=\"1.2.3\"} 1"));
}

#[test]
fn whoever_asks_for_the_older_format_alone_gets_it() {
    for (accept, format) in [
        ("", Format::OpenMetrics),
        ("*/*", Format::OpenMetrics),
        ("text/plain", Format::Classic),
        ("text/plain;version=0.0.4;q=0.3, */*;q=0.1", Format::Classic),
        ("application/openmetrics-text", Format::OpenMetrics),
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            Format::OpenMetrics,
        ),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.5", Format::Classic),
        ("text/plain;q=0, application/json", Format::OpenMetrics),
        ("text/plain;q=x;;,;", Format::OpenMetrics),
    ] {
        assert_eq!(Format::accepted(accept), format, "{accept}");
    }
}
