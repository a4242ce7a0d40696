//! Rooms as their owner writes them: every field, every way around a room, and several rooms together.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // Helpers of tests may stop a test.

use std::borrow::Cow;

use anteroom::config::{ConfigError, Coverage, MAX_ROOMS, Part, Rooms, parse_room};
use anteroom::origin::GuardStrategy;
use anteroom::room::{
    AdaptiveRange, BindTicket, Location, OnError, OnUnhealthy, QueueingMethod, RateWindow, Room, SameSite,
    Secure, SlotStrategy, WhenFull,
};
use anteroom::url::path::{is_below, normalise, read};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A valid room's table with some fields replaced.
fn table(changes: &Value) -> Value {
    let mut table = json!({ "total_active_users": 1000, "new_users_per_minute": 200 });
    for (field, value) in changes.as_object().into_iter().flatten() {
        table[field] = value.clone();
    }
    table
}

fn room(changes: &Value) -> Room {
    parse_room("ROOM_SHOP", &table(changes)).unwrap()
}

fn refused(changes: &Value) -> Vec<ConfigError> {
    parse_room("ROOM_SHOP", &table(changes)).unwrap_err()
}

fn rooms(vars: &[(&str, Value)]) -> (Rooms, Vec<ConfigError>) {
    Rooms::from_vars(vars.iter().map(|(name, changes)| ((*name).to_owned(), table(changes))))
}

fn covering<'a>(rooms: &'a Rooms, host: &str, path: &str) -> Option<&'a str> {
    rooms.cover(host, path).map(|room| room.name.as_str())
}

#[test]
fn defaults() {
    let room = room(&json!({}));
    assert_eq!((room.name.as_str(), room.host.as_deref(), room.path.as_str()), ("shop", None, "/"));
    assert_eq!((room.total_active_users, room.new_users_per_minute, room.session_duration), (1000, 200, 5));
    assert_eq!((room.queueing_method, room.rate_window), (QueueingMethod::Fifo, RateWindow::Minute));
    assert_eq!((room.queue_all, room.suspended), (false, false));
    assert_eq!((room.adaptive, &room.origin_guard, room.on_unhealthy), (None, &None, OnUnhealthy::Ignore));
    assert!(room.health_checks.is_empty());
    assert_eq!((room.slot_strategy, room.on_error), (SlotStrategy::Leases, OnError::Admit));
    assert_eq!((room.location, room.location.hint()), (Location::Auto, None));
    assert!((room.curve_factor - 1.0).abs() < f64::EPSILON);
    assert_eq!((room.cookie_suffix.as_str(), room.cookie_name().as_str()), ("", "__anteroom"));
    assert_eq!(
        (room.cookie_attributes.samesite, room.cookie_attributes.secure),
        (SameSite::Auto, Secure::Auto)
    );
    assert_eq!((room.queueing_status_code, room.refresh_interval_seconds), (200, 20));
    assert_eq!((room.refresh_interval_max_seconds, room.place_kept_seconds), (60, 300));
    assert_eq!((room.disable_session_renewal, room.one_place_per_address), (false, false));
    assert_eq!(room.bind_ticket, BindTicket::None);
    let page = &room.page;
    assert_eq!((page.template.as_str(), page.language, page.message.as_str()), ("", "en-US", ""));
    assert_eq!((page.visitor_languages, page.exact_json, page.preferred_json), (true, false, true));
    assert_eq!((page.position, page.wait, page.progress), (true, true, true));
}

#[test]
fn every_field_is_read() {
    let room = room(&json!({
        "host": "Shop.Example.COM.",
        "path": "//sale/./caf%c3%a9%20x/",
        "total_active_users": 2_147_483_647,
        "new_users_per_minute": 1,
        "session_duration": 30,
        "queueing_method": "FIFO",
        "queue_all": true,
        "suspended": true,
        "slot_strategy": "adapted_worker_slots",
        "curve_factor": 2,
        "location": "oc",
        "on_error": "queue",
        "cookie_suffix": "a-B_9",
        "cookie_attributes": { "samesite": "none", "secure": "always" },
        "queueing_status_code": 429,
        "refresh_interval_seconds": 60,
        "refresh_interval_max_seconds": 300,
        "place_kept_seconds": 3_600,
        "disable_session_renewal": true,
        "max_session_duration": 120,
        "one_place_per_address": true,
        "bind_ticket": "both",
        "custom_page_html": "big-Sale_2",
        "default_template_language": "vi-VN",
        "visitor_languages": false,
        "json_response_enabled": true,
        "json_response": "off",
        "message": "\u{e9}".repeat(500),
        "show_position": false,
        "show_wait": false,
        "show_progress": false,
    }));
    assert_eq!((room.host.as_deref(), room.path.as_str()), (Some("shop.example.com"), "/sale/caf\u{e9} x"));
    assert_eq!(
        (room.total_active_users, room.new_users_per_minute, room.session_duration),
        (2_147_483_647, 1, 30)
    );
    assert_eq!(room.queueing_method, QueueingMethod::Fifo);
    assert_eq!((room.queue_all, room.suspended), (true, true));
    assert_eq!((room.slot_strategy, room.on_error), (SlotStrategy::AdaptedWorkerSlots, OnError::Queue));
    assert!((room.curve_factor - 2.0).abs() < f64::EPSILON);
    assert_eq!(room.location, Location::Oceania);
    assert_eq!(
        (room.cookie_name().as_str(), room.cookie_path().as_str()),
        ("__anteroom_a-B_9", "/sale/caf%C3%A9%20x")
    );
    assert_eq!(
        (room.cookie_attributes.samesite, room.cookie_attributes.secure),
        (SameSite::None, Secure::Always)
    );
    assert_eq!((room.queueing_status_code, room.refresh_interval_seconds), (429, 60));
    let page = &room.page;
    assert_eq!((page.template.as_str(), page.language), ("big-Sale_2", "vi-VN"));
    assert_eq!(page.message.chars().count(), 500);
    assert_eq!((page.visitor_languages, page.exact_json, page.preferred_json), (false, true, false));
    assert_eq!((page.position, page.wait, page.progress), (false, false, false));
    assert_eq!((room.refresh_interval_max_seconds, room.place_kept_seconds), (300, 3_600));
    assert_eq!((room.disable_session_renewal, room.one_place_per_address), (true, true));
    assert_eq!(room.max_session_duration, 120);
    assert_eq!(room.bind_ticket, BindTicket::Both);
}

#[test]
fn far_from_the_front_a_refresh_is_three_times_as_long_unless_the_owner_says_otherwise() {
    let longest = |fields| room(&fields).refresh_interval_max_seconds;
    assert_eq!(longest(json!({ "refresh_interval_seconds": 5 })), 15);
    assert_eq!(longest(json!({ "refresh_interval_seconds": 60 })), 180);
    assert_eq!(
        longest(json!({ "refresh_interval_max_seconds": 20 })),
        20,
        "as long as usual: always the same"
    );
    let errors = refused(&json!({ "refresh_interval_seconds": 30, "refresh_interval_max_seconds": 20 }));
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (errors[0].field.as_str(), errors[0].message.as_str(), errors[0].fix.as_str()),
        (
            "refresh_interval_max_seconds",
            "must be a whole number from 30 to 300",
            "set refresh_interval_max_seconds to at least 30"
        )
    );
}

#[test]
fn a_queueing_method_is_read_in_any_case() {
    for (given, method) in [
        ("fifo", QueueingMethod::Fifo),
        ("Random", QueueingMethod::Random),
        ("PASSTHROUGH", QueueingMethod::Passthrough),
        ("reject", QueueingMethod::Reject),
    ] {
        assert_eq!(room(&json!({ "queueing_method": given })).queueing_method, method);
    }
}

#[test]
fn a_location_is_one_of_the_platforms_hints_or_none() {
    for hint in ["wnam", "enam", "sam", "weur", "eeur", "apac", "oc", "afr", "me"] {
        assert_eq!(room(&json!({ "location": hint })).location.hint(), Some(hint));
    }
    assert_eq!(Location::ALL.len(), 10, "these, and auto");
    assert_eq!(room(&json!({ "location": "auto" })).location.hint(), None);
}

#[test]
fn every_invalid_value_is_refused_with_room_field_value_and_fix() {
    let long_host = format!("{}.example", "a.".repeat(130));
    let long_label = format!("{}.example", "a".repeat(64));
    let long_path = format!("/{}", "a".repeat(1024));
    let long_suffix = "s".repeat(33);
    // field, refused value, a part of the message, a part of the fix
    let table = [
        ("total_active_users", json!(0), "from 1 to 2147483647", "at least 1"),
        ("total_active_users", json!(-5), "from 1 to 2147483647", "at least 1"),
        ("total_active_users", json!(2_147_483_648_u32), "from 1 to 2147483647", "at most 2147483647"),
        ("total_active_users", json!(u64::MAX), "from 1 to 2147483647", "at most 2147483647"),
        ("total_active_users", json!(1e300), "whole number", "at most 2147483647"),
        ("total_active_users", json!(5.0), "whole number", "total_active_users = 5"),
        ("total_active_users", json!("1000"), "whole number", "without quotes"),
        ("total_active_users", json!("many"), "whole number", "total_active_users = 200"),
        ("total_active_users", json!(true), "whole number", "set total_active_users to a whole number"),
        ("total_active_users", json!(null), "whole number", "set total_active_users to a whole number"),
        ("new_users_per_minute", json!(0), "from 1 to 2147483647", "at least 1"),
        ("new_users_per_minute", json!(2.5), "whole number", "new_users_per_minute = 3"),
        ("new_users_per_minute", json!([200]), "whole number", "set new_users_per_minute"),
        ("session_duration", json!(0), "from 1 to 30", "at least 1"),
        ("session_duration", json!(31), "from 1 to 30", "at most 30"),
        ("session_duration", json!("5"), "from 1 to 30", "session_duration = 5"),
        ("refresh_interval_seconds", json!(4), "from 5 to 60", "at least 5"),
        ("refresh_interval_seconds", json!(61), "from 5 to 60", "at most 60"),
        ("refresh_interval_seconds", json!({}), "from 5 to 60", "refresh_interval_seconds = 20"),
        ("refresh_interval_max_seconds", json!(301), "from 20 to 300", "at most 300"),
        ("place_kept_seconds", json!(9), "from 10 to 3600", "at least 10"),
        ("place_kept_seconds", json!(3_601), "from 10 to 3600", "at most 3600"),
        ("disable_session_renewal", json!("yes"), "true or false", "disable_session_renewal = true"),
        ("max_session_duration", json!(1_441), "from 0 to 1440", "at most 1440"),
        ("one_place_per_address", json!(1), "true or false", "one_place_per_address = true"),
        ("bind_ticket", json!("ip"), "\"address\"", "leave it out"),
        ("queueing_status_code", json!(503), "200, 202 or 429", "queueing_status_code = 200"),
        ("queueing_status_code", json!("429"), "200, 202 or 429", "queueing_status_code = 429"),
        ("queueing_status_code", json!(202.0), "200, 202 or 429", "queueing_status_code = 202"),
        ("custom_page_html", json!("../secret"), "must be a name", "static/pages/sale.html"),
        ("custom_page_html", json!("<h1>{{waitTime}}</h1>"), "must be a name", "static/pages/sale.html"),
        ("custom_page_html", json!(1), "must be text", "custom_page_html = \"sale\""),
        ("default_template_language", json!("de-AT"), "de-DE", "default_template_language = \"de-DE\""),
        ("default_template_language", json!("Klingon"), "vi-VN", "leave it out for \"en-US\""),
        ("visitor_languages", json!("yes"), "true or false", "visitor_languages = true"),
        ("json_response", json!("on"), "\"auto\" or \"off\"", "json_response"),
        ("message", json!("x".repeat(501)), "at most 500 characters", "shorten it"),
        ("message", json!("two\nlines"), "one line", "shorten it"),
        ("show_wait", json!(0), "true or false", "show_wait = false"),
        ("queueing_method", json!("lifo"), "\"passthrough\" or \"reject\"", "\"fifo\""),
        ("queueing_method", json!("rejects"), "must be \"fifo\"", "queueing_method = \"reject\""),
        ("queueing_method", json!(1), "must be \"fifo\"", "\"fifo\""),
        ("queue_all", json!("true"), "true or false", "queue_all = true"),
        ("queue_all", json!(0), "true or false", "queue_all = false"),
        ("suspended", json!("no"), "true or false", "suspended = false"),
        ("suspended", json!(1), "true or false", "suspended = true"),
        ("slot_strategy", json!("counter"), "\"counters\"", "slot_strategy = \"counters\""),
        ("slot_strategy", json!("Worker_Slots"), "\"worker_slots\"", "slot_strategy = \"worker_slots\""),
        ("slot_strategy", json!(7), "\"worker_slots\"", "leave it out"),
        ("location", json!("WEUR"), "\"weur\"", "location = \"weur\""),
        ("location", json!("eu"), "\"auto\"", "leave it out"),
        ("location", json!(["weur"]), "\"me\"", "leave it out"),
        ("rate_window", json!("slide"), "\"minute\" or \"sliding\"", "rate_window"),
        ("curve_factor", json!(0), "from 0.1 to 10", "at least 0.1"),
        ("curve_factor", json!(10.5), "from 0.1 to 10", "at most 10"),
        ("curve_factor", json!("2"), "from 0.1 to 10", "without quotes"),
        ("on_error", json!("deny"), "\"admit\" or \"queue\"", "\"admit\""),
        ("on_error", json!("que"), "\"admit\" or \"queue\"", "leave it out"),
        ("on_error", json!(false), "\"admit\" or \"queue\"", "leave it out"),
        ("cookie_suffix", json!(""), "1 to 32 letters", "leave it out"),
        ("cookie_suffix", json!("a b;c"), "1 to 32 letters", "cookie_suffix = \"abc\""),
        ("cookie_suffix", json!(long_suffix), "1 to 32 letters", "cookie_suffix = \"sss"),
        ("cookie_suffix", json!(5), "text in quotes", "cookie_suffix = \"shop\""),
        ("cookie_attributes", json!("lax"), "a table", "samesite = \"auto\""),
        ("enabled_origin_commands", json!("revoke"), "a list of commands", "[\"revoke\"]"),
        ("enabled_origin_commands", json!(["revoke", "admit"]), "only command is \"revoke\"", "[\"revoke\"]"),
        ("description", json!(5), "text in quotes", "description = "),
        ("turnstile_mode", json!("visible_managed"), "needs turnstile_sitekey", "add turnstile_sitekey"),
        ("turnstile_mode", json!("visible"), "\"visible_non_interactive\"", "turnstile_mode = "),
        ("turnstile_action", json!("infinite_queue"), "needs turnstile_sitekey", "add turnstile_sitekey"),
        ("turnstile_sitekey", json!("\"><script>"), "letters, digits", "copy the site key"),
        ("limits", json!("adapt"), "\"fixed\" or \"adaptive\"", "leave it out"),
        ("limits", json!("adaptive"), "a range for at least one limit", "{ min = 200, max = 1000 }"),
        ("total_active_users", json!({ "min": 1, "max": 5 }), "limits = \"adaptive\"", "or write one number"),
        ("origin_slow_ms", json!(500), "limits = \"adaptive\" only", "remove origin_slow_ms"),
        ("on_unhealthy", json!("wait"), "\"ignore\" or \"hold\"", "leave it out"),
        ("health_checks", json!("origin"), "a list of at most 10 names", "health_checks = [\"origin\"]"),
        ("health_checks", json!([""]), "1 to 100 bytes each", "[vars.CHECK_ORIGIN]"),
        ("health_checks", json!([5]), "names of checks", "[vars.CHECK_ORIGIN]"),
        ("origin_guard", json!("position"), "a table", "strategy = \"position\""),
        ("host", json!(""), "not be empty", "leave host out"),
        ("host", json!("https://shop.example/sale"), "without a scheme", "host = \"shop.example\""),
        ("host", json!("*.shop.example"), "wildcards", "one room per host"),
        ("host", json!("shop.example/sale"), "without a path", "host = \"shop.example\""),
        ("host", json!("shop.example:8787"), "without a port", "host = \"shop.example\""),
        ("host", json!("sh\u{f6}p.example"), "letters", "xn--"),
        ("host", json!("shop example"), "letters", "without spaces"),
        ("host", json!("shop..example"), "between two dots", "browser shows"),
        ("host", json!(long_label), "1 to 63 characters", "browser shows"),
        ("host", json!(long_host), "at most 253 bytes", "browser shows"),
        ("host", json!(["shop.example"]), "text in quotes", "host = "),
        ("path", json!(""), "must start with \"/\"", "path = \"/\""),
        ("path", json!("sale"), "must start with \"/\"", "path = \"/sale\""),
        ("path", json!("https://shop.example/sale"), "without scheme", "the host as host"),
        ("path", json!("/sale?x=1"), "query", "path = \"/sale\""),
        ("path", json!("/sale#top"), "fragment", "path = \"/sale\""),
        ("path", json!("/sale/*"), "wildcard", "path = \"/sale\""),
        ("path", json!("/*"), "wildcard", "path = \"/\""),
        ("path", json!("/sale;v=1"), "parameters", "path = \"/sale\""),
        ("path", json!("/a\\b"), "part its segments", "path = \"/a/b\""),
        ("path", json!("/a%2Fb"), "encoded", "the path above it"),
        ("path", json!("/100%25"), "encoded", "the path above it"),
        ("path", json!("/caf%e9"), "UTF-8", "address bar"),
        ("path", json!("/a\nb"), "control characters", "address bar"),
        ("path", json!("/a%0ab"), "control characters", "address bar"),
        ("path", json!("/x/../__anteroom/status"), "Anteroom's own", "of the origin"),
        ("path", json!(long_path), "at most 1024 bytes", "shorter path"),
        ("path", json!(5), "text in quotes", "path = \"/sale\""),
    ];
    for (field, value, message, fix) in table {
        let errors = refused(&json!({ field: value }));
        assert_eq!(errors.len(), 1, "{field} = {value}: {errors:?}");
        let error = &errors[0];
        let line = error.to_string();
        assert_eq!((error.name.as_str(), error.field.as_str()), ("shop", field), "{line}");
        assert!(line.starts_with(&format!("room shop: {field} = ")) && !line.contains('\n'), "{line}");
        let start: String = value.to_string().chars().take(60).collect();
        assert!(error.value.starts_with(&start) && error.value.chars().count() <= 61, "{line}");
        assert!(error.message.contains(message), "{line}");
        assert!(error.fix.contains(fix), "{line}");
        assert!(line.ends_with(&format!("Fix: {}.", error.fix)) && !line.ends_with(".."), "{line}");
    }
}

#[test]
fn an_error_reads_as_a_line() {
    assert_eq!(
        refused(&json!({ "new_users_per_minute": 0 }))[0].to_string(),
        "room shop: new_users_per_minute = 0: must be a whole number from 1 to 2147483647. \
         Fix: set new_users_per_minute to at least 1."
    );
    let errors = parse_room("ROOM_SHOP", &json!({})).unwrap_err();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "room shop: total_active_users = (not set): is required. Fix: add it, for example total_active_users = 200.",
            "room shop: new_users_per_minute = (not set): is required. \
             Fix: add it, for example new_users_per_minute = 200.",
        ]
    );
}

#[test]
fn cookie_attributes_are_refused_by_their_full_names() {
    for (attributes, field, fix) in [
        (json!({ "samesite": "lacks" }), "samesite", "leave it out"),
        (json!({ "samesite": "Strict" }), "samesite", "samesite = \"strict\""),
        (json!({ "secure": true }), "secure", "\"auto\""),
        (json!({ "samesite": "none", "secure": "never" }), "secure", "\"auto\" or \"always\""),
        (json!({ "samesite": "lax", "partitioned": true }), "partitioned", "samesite to \"none\""),
        (json!({ "samesite": "none", "partitioned": 1 }), "partitioned", "partitioned = true"),
        (json!({ "same_site": "lax" }), "same_site", "did you mean samesite"),
        (json!({ "http_only": true }), "http_only", "samesite, secure, partitioned"),
    ] {
        let errors = refused(&json!({ "cookie_attributes": attributes }));
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].field, format!("cookie_attributes.{field}"));
        assert!(errors[0].fix.contains(fix), "{}", errors[0]);
    }
}

#[test]
fn limits_that_adapt_are_ranges() {
    let adaptive = |changes: Value| {
        let mut fields = json!({ "limits": "adaptive" });
        fields.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        parse_room("ROOM_SHOP", &table(&fields))
    };
    let room = adaptive(json!({ "total_active_users": { "min": 100, "max": 1_000 }, "origin_slow_ms": 800 }))
        .unwrap();
    let range = AdaptiveRange { least_active_users: 100, least_new_users: 200, slow_ms: Some(800) };
    assert_eq!(
        (room.total_active_users, room.new_users_per_minute, room.adaptive),
        (1_000, 200, Some(range))
    );
    for (changes, field, message) in [
        (json!({ "total_active_users": { "max": 10 } }), "total_active_users.min", "required"),
        (json!({ "total_active_users": { "min": 0, "max": 10 } }), "total_active_users.min", "from 1 to"),
        (
            json!({ "total_active_users": { "min": 20, "max": 10 } }),
            "total_active_users.min",
            "more than max, 10",
        ),
        (
            json!({ "new_users_per_minute": { "min": 1, "most": 9, "max": 9 } }),
            "new_users_per_minute.most",
            "knows",
        ),
        (
            json!({ "new_users_per_minute": { "min": 1, "max": 9 }, "origin_slow_ms": 5 }),
            "origin_slow_ms",
            "10 to 60000",
        ),
    ] {
        let errors = adaptive(changes.clone()).unwrap_err();
        assert_eq!(errors.len(), 1, "{changes}: {errors:?}");
        assert_eq!(errors[0].field, field);
        assert!(errors[0].message.contains(message), "{}", errors[0]);
    }
}

#[test]
fn a_guard_has_a_strategy_and_a_window() {
    let guard = |fields: Value| room(&json!({ "origin_guard": fields })).origin_guard.unwrap();
    let usual = guard(json!({}));
    assert_eq!((usual.settings.strategy, usual.admitted), (GuardStrategy::Position, WhenFull::Retry));
    assert_eq!((usual.settings.min, usual.settings.max, usual.settings.at_once), (2, 1_000, None));
    assert_eq!((usual.settings.timeout_ms, usual.settings.hold_ms), (10_000, 1_000));
    let set = guard(json!({
        "strategy": "newest_first", "min": 5, "max": 50, "at_once": 4, "timeout": 10, "hold_ms": 0, "admitted": "pass"
    }));
    assert_eq!((set.settings.strategy, set.admitted), (GuardStrategy::NewestFirst, WhenFull::Pass));
    assert_eq!((set.settings.min, set.settings.max, set.settings.at_once), (5, 50, Some(4)));
    assert_eq!((set.settings.timeout_ms, set.settings.hold_ms), (10_000, 0));
    for (fields, field, message) in [
        (json!({ "strategy": "positions" }), "strategy", "\"position\""),
        (json!({ "min": 9, "max": 5 }), "min", "more than max, 5"),
        (json!({ "max": 0 }), "max", "from 1 to 10000"),
        (json!({ "at_once": 0 }), "at_once", "from 1 to 10000"),
        (json!({ "timeout": 0.5 }), "timeout", "from 1 to 100"),
        (json!({ "strategy": "newest_first" }), "at_once", "required"),
        (json!({ "hold_ms": 60_000 }), "hold_ms", "from 0 to 10000"),
        (json!({ "admitted": true }), "admitted", "\"retry\" or \"pass\""),
        (json!({ "window": 5 }), "window", "knows"),
    ] {
        let errors = refused(&json!({ "origin_guard": fields }));
        // The least window of 2 is more than a window of nothing.
        let error = errors.iter().find(|error| error.field == format!("origin_guard.{field}"));
        assert!(error.is_some_and(|error| error.message.contains(message)), "{fields}: {errors:?}");
    }
}

#[test]
fn only_leases_keep_a_sliding_window() {
    let sliding = |strategy| json!({ "rate_window": "sliding", "slot_strategy": strategy });
    assert_eq!(room(&sliding("leases")).rate_window, RateWindow::Sliding);
    for strategy in ["counters", "adapted_worker_slots", "worker_slots"] {
        let errors: Vec<String> = refused(&sliding(strategy)).iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            ["room shop: rate_window = \"sliding\": needs slot_strategy = \"leases\". \
              Fix: set slot_strategy to \"leases\", or leave rate_window out."]
        );
    }
}

#[test]
fn unknown_fields_get_a_suggestion() {
    for (field, fix) in [
        ("total_active_user", "did you mean total_active_users?"),
        ("totalActiveUsers", "did you mean total_active_users?"),
        ("new-users-per-minute", "did you mean new_users_per_minute?"),
        ("sesion_duraton", "did you mean session_duration?"),
        ("Host", "did you mean host?"),
        ("paht", "did you mean path?"),
        ("colour", "the fields are description, host, path, "),
        ("name", "rename the var"),
    ] {
        let errors = refused(&json!({ field: "x" }));
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!((errors[0].field.as_str(), errors[0].value.as_str()), (field, "\"x\""));
        assert!(errors[0].fix.contains(fix), "{}", errors[0]);
    }
}

#[test]
fn all_errors_of_a_room_are_collected() {
    let errors = parse_room(
        "ROOM_SHOP",
        &json!({ "path": "sale", "total_active_users": "x", "queue_all": 1, "on_eror": "admit",
                 "cookie_attributes": { "samesite": 1, "secure": 2 } }),
    )
    .unwrap_err();
    let mut fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    fields.sort_unstable();
    let expected = [
        "cookie_attributes.samesite",
        "cookie_attributes.secure",
        "new_users_per_minute",
        "on_eror",
        "path",
        "queue_all",
        "total_active_users",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_room_is_a_table_with_a_good_name() {
    for (name, value, field, fix) in [
        ("ROOM_SHOP", json!([{}]), "ROOM_SHOP", "single brackets"),
        ("ROOM_SHOP", json!("{}"), "ROOM_SHOP", "instead of text"),
        ("ROOM_SHOP", json!(null), "ROOM_SHOP", "[vars.ROOM_SHOP]"),
        ("ROOM_", table(&json!({})), "name", "ROOM_SHOP"),
        ("ROOM_SH OP", table(&json!({})), "name", "ROOM_SHOP"),
        ("ROOM_SH\u{d6}P", table(&json!({})), "name", "ROOM_SHOP"),
        ("room_shop", table(&json!({})), "name", "ROOM_SHOP"),
        (&format!("ROOM_{}", "X".repeat(65)), table(&json!({})), "name", "ROOM_SHOP"),
    ] {
        let errors = parse_room(name, &value).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].field, field);
        assert!(errors[0].fix.contains(fix), "{}", errors[0]);
    }
    assert_eq!(parse_room("ROOM_Shop-2_x", &table(&json!({}))).unwrap().name, "shop-2_x");
}

#[test]
fn an_error_is_one_short_line_whatever_is_in_it() {
    let long = "\u{1b}[31m\u{202e}\n".repeat(1000);
    let mut table = table(&json!({ "host": long }));
    table[&long] = json!(long);
    for error in parse_room(&format!("ROOM_{long}"), &table).unwrap_err() {
        let line = error.to_string();
        assert!(
            !line.contains(|character: char| character.is_control() || character == '\u{202e}'),
            "{line:?}"
        );
        assert!(line.len() < 2_000, "{}", line.len());
    }
}

/// Spellings that lead to `/sale` or below it on some origin.
const WALK_AROUNDS: [&str; 73] = [
    "/sale",
    "/sale/",
    "/sale//",
    "//sale",
    "///sale/x",
    "/./sale",
    "/x/../sale",
    "/../sale",
    "/../../sale/x",
    "/x//../../sale",
    "/%2e/sale",
    "/x/%2e%2e/sale",
    "/x/%2E./sale",
    "/x/.%2e/sale",
    "/%73ale",
    "/%53%41LE/../sale",
    "/s%61l%65/x",
    "/%2573ale",
    "/%25%37%33ale",
    "/%252573ale",
    "/sale%2f",
    "/sale%2Fx",
    "/%2fsale",
    "/%2F%2Fsale",
    "/%252fsale",
    "\\sale",
    "/\\sale\\x",
    "/x\\..\\sale",
    "/sale%5cx",
    "/%5Csale",
    "/x/..%2fsale",
    "/x%2f..%2fsale",
    "/x%2f%2e%2e%2fsale",
    "/x/%252e%252e/sale",
    "/x%5c..%5csale",
    "/x/..%5c/sale",
    "/sale;v=1",
    "/sale;v=1/x",
    "/sale%3bv=1",
    "/;/sale",
    "/;x=1/sale;y/z",
    "/x/..;/sale",
    "/x/..;a=b/sale",
    "/.;/sale",
    "/sale?x=1",
    "/sale%3fx=1",
    "/sale%23x",
    "/sale%00.jpg",
    "/%u0073ale",
    "/%U0073%u0061le/x",
    "/%u0025u0073ale",
    "/x/%u002e%u002e%u002fsale",
    "/sale.",
    "/sale%20",
    "/sale.%20./x",
    "/x/..%20/sale",
    "/sale%0a",
    "/sale%0d%0ax",
    "/x%0a/sale",
    "/sale%09/x",
    "/sale::$DATA",
    "/sale::$data/x",
    "/sale:$i30:$INDEX_ALLOCATION/x",
    "/sale.json",
    "/sale.tar.gz/",
    "/sal%65.html?x=1",
    "/x/..%2fsale.json",
    "/index.php/sale",
    "/INDEX.php//s%61le.json",
    "/app.php/sale/x",
    "/sale.x%2fy",
    "/%73ale.x%5cy.z/",
    "/index.php/sale.x%252fy?z",
];

#[test]
fn nobody_walks_around_a_room() {
    let (rooms, errors) = rooms(&[("ROOM_SHOP", json!({ "path": "/sale" }))]);
    assert!(errors.is_empty());
    for path in WALK_AROUNDS {
        assert_eq!(covering(&rooms, "shop.example", path), Some("shop"), "{path}");
    }
    let mixed = [
        // Keeps %2f, drops parameters; the widest reading alone would leave the room.
        "/sale;x/a%2f..%2f..",
        // Decodes once, and drops parameters.
        "/x/..;/sale%2fy%252f..%252f..",
        "/sale%2f..%2f..%2fx",
        "/x%3f/..;/..;/sale",
        "/%E0%A4%A/..%2fsale",
    ];
    for path in mixed {
        assert_eq!(covering(&rooms, "shop.example", path), Some("shop"), "{path}");
    }
}

#[test]
fn other_paths_are_left_alone() {
    let (rooms, _) = rooms(&[("ROOM_SHOP", json!({ "path": "/sale" }))]);
    let paths = [
        "",
        "/",
        "*",
        "/sales",
        "/sal",
        "/SALE",
        "/x/sale",
        "/sale/../x",
        "/sale/%2e%2e",
        "/sale.d/x",
        "/sale.d/x%2fy",
        "/sale.d%2fx/y",
        "/index.php/sale.d/%2fx",
        "/sale-x",
        "/sale:x",
        "/sale%20x",
        "/sale%u00e9",
        "/%",
        "/%u007",
        "/%ud83d",
        "/x%0ay",
        "/index.php",
        "/index.php/sales",
        "/index.php5/sale",
        "/x/index.php/sale",
        "/?/sale",
        "/#/sale",
        "/sale%",
        "/x;/sale",
        "/a%2fb",
        "/x/..%2fy",
        "/s/a/l/e",
        "/x%2fsale",
    ];
    for path in paths {
        assert_eq!(covering(&rooms, "shop.example", path), None, "{path}");
    }
}

#[test]
fn the_most_specific_room_wins() {
    let (rooms, errors) = rooms(&[
        ("ROOM_ALL", json!({})),
        ("ROOM_HOST", json!({ "host": "shop.example" })),
        ("ROOM_SALE", json!({ "path": "/sale" })),
        ("ROOM_SHOES", json!({ "path": "/sale/shoes", "suspended": true })),
        ("ROOM_SALE_HOST", json!({ "path": "/sale", "host": "shop.example" })),
    ]);
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((rooms.len(), rooms.is_empty()), (5, false));
    for (host, path, name) in [
        ("other.example", "/", "all"),
        ("shop.example", "/", "host"),
        ("SHOP.example:8787", "/x", "host"),
        ("shop.example.", "/x", "host"),
        ("other.example", "/sale", "sale"),
        ("other.example", "/sales", "all"),
        ("shop.example", "/sale/x", "sale_host"),
        ("shop.example", "/sale/shoes/1", "shoes"),
        ("other.example", "/sale%2Fshoes", "shoes"),
        ("", "/x", "all"),
    ] {
        assert_eq!(covering(&rooms, host, path), Some(name), "{host} {path}");
    }
    assert_eq!(rooms.get("sale").map(|room| room.path.as_str()), Some("/sale"));
    assert_eq!(rooms.iter().next().map(|room| room.name.as_str()), Some("shoes"));
}

#[test]
fn a_path_that_leads_to_two_rooms_is_contradictory() {
    let (rooms, _) = rooms(&[
        ("ROOM_OPEN", json!({ "path": "/open", "total_active_users": 100_000 })),
        ("ROOM_SALE", json!({ "path": "/sale", "total_active_users": 10 })),
        ("ROOM_SALE_HOST", json!({ "path": "/sale", "host": "shop.example" })),
    ]);
    for path in ["/open/..%2fsale", "/open/..;/sale", "/sale/%252e%252e/open"] {
        assert!(matches!(rooms.find("shop.example", path), Coverage::Contradictory(_)), "{path}");
        assert!(rooms.cover("shop.example", path).is_some());
    }
    // One room only: it is covered, whichever way the origin reads it. Parameters alone do not contradict.
    for path in ["/x/..%2fsale", "/sale/x%2f..", "/sale;jsessionid=1"] {
        let Coverage::Covered(room) = rooms.find("shop.example", path) else { panic!("{path}") };
        assert_eq!(room.name, "sale_host");
    }
    assert_eq!(rooms.find("shop.example", "/x/..%2fy"), Coverage::Uncovered);
}

#[test]
fn front_controllers_are_the_owners() {
    let (mut rooms, _) = rooms(&[
        ("ROOM_SHOP", json!({ "path": "/sale" })),
        ("ROOM_OLD", json!({ "path": "/old.php/sale/shoes" })),
    ]);
    let is_read = |rooms: &mut Rooms, value: Value| rooms.read_front_controllers(&value);
    for wrong in [json!("/old.php"), json!(["old.php"]), json!(["/"]), json!(["/a/"]), json!(vec!["/a"; 11])]
    {
        assert!(!is_read(&mut rooms, wrong.clone()), "{wrong}");
    }
    assert_eq!(covering(&rooms, "x", "/index.php/sale"), Some("shop"), "the default stays");
    assert!(is_read(&mut rooms, json!(["/old.php", "/sale/app.cgi"])));
    for (path, name) in [
        ("/old.php/sale", Some("shop")),
        ("/old.php/sale/shoes", Some("old")),
        ("/Sale/App.cgi/shoes", Some("shop")),
        ("/old.php", None),
        ("/index.php/sale", None),
    ] {
        assert_eq!(covering(&rooms, "x", path), name, "{path}");
    }
    assert!(is_read(&mut rooms, json!([])));
    assert_eq!(covering(&rooms, "x", "/old.php/sale"), None);
}

#[test]
fn a_broken_room_leaves_the_others_alone() {
    let (rooms, errors) = rooms(&[
        ("ROOM_ALL", json!({ "host": "shop.example" })),
        ("ROOM_SALE", json!({ "path": "/sale", "session_duration": 0, "queue_all": "x" })),
        ("ROOM_SHOES", json!({ "path": "/sale/shoes" })),
        ("ORIGIN", json!({})),
    ]);
    assert_eq!(rooms.len(), 2);
    assert_eq!(rooms.broken().len(), 1);
    assert_eq!((rooms.broken()[0].name.as_str(), rooms.broken()[0].errors.len()), ("sale", 2));
    assert_eq!(rooms.broken()[0].errors, errors);
    // Its requests go to the next covering room, or to the origin.
    assert_eq!(covering(&rooms, "shop.example", "/sale"), Some("all"));
    assert_eq!(covering(&rooms, "other.example", "/sale"), None);
    assert_eq!(covering(&rooms, "other.example", "/sale/shoes"), Some("shoes"));
}

#[test]
fn the_later_of_two_equal_rooms_is_an_error() {
    let vars = [
        ("ROOM_B", json!({ "path": "//sale/", "host": "Shop.Example" })),
        ("ROOM_A", json!({ "path": "/sale", "host": "shop.example" })),
        ("ROOM_C", json!({ "path": "/sale" })),
        ("ROOM_c", json!({ "path": "/other" })),
    ];
    let (forward, errors) = rooms(&vars);
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!((errors[0].name.as_str(), errors[0].field.as_str()), ("b", "path"));
    assert!(errors[0].message.contains("room a"), "{}", errors[0]);
    assert_eq!((errors[1].name.as_str(), errors[1].field.as_str()), ("c", "name"));
    assert_eq!(covering(&forward, "shop.example", "/sale"), Some("a"));
    assert_eq!(covering(&forward, "x.example", "/sale"), Some("c"));
    // The order in which the platform lists vars changes nothing.
    let mut backward_vars = vars;
    backward_vars.reverse();
    let (backward, backward_errors) = rooms(&backward_vars);
    assert_eq!(backward_errors, errors);
    assert!(forward.iter().eq(backward.iter()));
}

#[test]
fn rooms_are_bounded() {
    let vars = |count: usize| {
        (0..count).map(|index| (format!("ROOM_{index:03}"), table(&json!({ "path": format!("/{index}") }))))
    };
    let (full, errors) = Rooms::from_vars(vars(MAX_ROOMS));
    assert_eq!((full.len(), errors.len()), (MAX_ROOMS, 0));
    let (bounded, errors) = Rooms::from_vars(vars(MAX_ROOMS + 2));
    assert_eq!((bounded.len(), errors.len()), (MAX_ROOMS, 2));
    assert_eq!((errors[0].name.as_str(), errors[0].field.as_str()), ("064", "name"));
    assert!(
        errors[0].message.contains("at most 64") && errors[0].fix.contains("remove a room"),
        "{}",
        errors[0]
    );
    assert_eq!(covering(&bounded, "x", "/63"), Some("063"));
    assert_eq!(covering(&bounded, "x", "/64"), None);
}

#[test]
fn no_rooms_cover_nothing() {
    let (rooms, errors) = Rooms::from_vars(std::iter::empty());
    assert!(rooms.is_empty() && errors.is_empty() && rooms.broken().is_empty());
    assert_eq!(rooms.cover("shop.example", "/"), None);
}

#[test]
fn a_hostile_path_of_the_longest_url_is_read() {
    let (rooms, _) = rooms(&[("ROOM_SHOP", json!({ "path": "/sale" }))]);
    for piece in [
        "%25", "/..;", "%2f..", "/a%2f", "\\", ";", "%", "%252", "/.", "?", "%u0025", "%u", ".%20", "::$",
        "%0a",
    ] {
        let path = format!("/{}", piece.repeat(16 * 1024 / piece.len()));
        assert_eq!(covering(&rooms, "shop.example", &path), None, "{piece}");
        assert_eq!(covering(&rooms, "shop.example", &format!("/sale{path}")), Some("shop"), "{piece}");
    }
}

/// A path of plain segments, some of which are a room's.
fn plain_path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        Just("sale".to_owned()),
        Just("sales".to_owned()),
        "[a-z0-9._~é-]{1,6}"
            .prop_filter("nothing but dots is not plain", |segment| segment.contains(|letter| letter != '.'))
    ];
    prop::collection::vec(segment, 0..5).prop_map(|segments| format!("/{}", segments.join("/")))
}

/// The same path in another spelling; every number chooses one trick.
fn obfuscate(path: &str, tricks: &[u8]) -> String {
    let mut tricks = tricks.iter().copied().cycle();
    let mut choose = move || tricks.next().unwrap_or_default();
    let mut spelled = String::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        spelled.push_str(match choose() % 12 {
            0 => "//",
            1 => "\\",
            2 => "/./",
            3 => "/%2e/",
            4 => "/%2F",
            5 => "/%5c",
            6 => "/decoy/../",
            7 => "/decoy/%2E./",
            8 => "/;p=1/",
            9 => "/.;p/",
            10 => "/%252f",
            _ => "/",
        });
        for byte in segment.bytes() {
            let piece = match choose() % 6 {
                3 if byte.is_ascii() => format!("%u00{byte:02x}"),
                0 => format!("%{byte:02x}"),
                1 => format!("%{byte:02X}"),
                2 => format!("%25{byte:02x}"),
                _ if byte.is_ascii() => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            };
            spelled.push_str(&piece);
        }
        spelled.push_str(match choose() % 8 {
            0 => ";v=1",
            1 => "%3b",
            2 => ";a;b=c",
            3 => ".",
            4 => "%20",
            5 => "::$DATA",
            _ => "",
        });
    }
    spelled.push_str(match choose() % 5 {
        0 => "/",
        1 => "?q=/x",
        2 => "%3fq",
        3 => "/.",
        _ => "",
    });
    if spelled.starts_with(['/', '\\']) { spelled } else { format!("/{spelled}") }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn normalising_is_idempotent_and_bounded(path in prop::collection::vec(
        prop_oneof![any::<u8>(), prop::sample::select(b"/\\.%;?#2eEfF53cC0\0 u:$\nsale".to_vec())], 0..80
    )) {
        let once = normalise(&path).into_owned();
        prop_assert!(once.starts_with(b"/") && once.len() <= path.len() + 1);
        prop_assert!(!once.windows(2).any(|pair| pair == b"//") && (once == b"/" || !once.ends_with(b"/")));
        let again = normalise(&once);
        let is_odd = once.contains(&b'%') || once.split(|byte| *byte == b'/').any(|name| name.ends_with(b"."));
        prop_assert!(matches!(again, Cow::Borrowed(_)) || is_odd, "not plain: {:?}", again);
        prop_assert_eq!(&*again, &*once);
        let _ = read(&path);
    }

    #[test]
    fn any_text_has_an_answer(host in any::<String>(), path in any::<String>(), name in any::<String>()) {
        let (rooms, _) = rooms(&[("ROOM_ALL", json!({})), ("ROOM_SALE", json!({ "path": "/sale" }))]);
        prop_assert!(rooms.cover(&host, &path).is_some());
        let _ = parse_room(&name, &json!({ "path": path, "host": host, &name: name }));
    }

    #[test]
    fn what_is_proposed_for_a_path_is_valid(path in "(shop)?/?[ -~é]{0,20}([*?#;]|%2f|%2a)?[/a-z%;?*]{0,6}") {
        if let Err(errors) = parse_room("ROOM_SHOP", &table(&json!({ "path": path })))
            && let Some(right) = errors[0].fix.strip_prefix("write path = \"").and_then(|fix| fix.strip_suffix('"'))
        {
            prop_assert_eq!(parse_room("ROOM_SHOP", &table(&json!({ "path": right }))).map(|room| room.path), Ok(right.to_owned()));
        }
    }

    #[test]
    fn a_room_path_is_a_fixed_point(path in "/[ -~é]{0,30}") {
        if let Ok(room) = parse_room("ROOM_SHOP", &table(&json!({ "path": path }))) {
            prop_assert_eq!(&*normalise(room.path.as_bytes()), room.path.as_bytes());
            let cookie_path = room.cookie_path();
            prop_assert!(cookie_path.is_ascii() && !cookie_path.contains([';', ' ', ',']) || room.path.contains(','));
            prop_assert!(room.path.as_bytes().starts_with(&normalise(cookie_path.as_bytes())));
        }
    }

    #[test]
    fn every_spelling_is_covered_like_the_plain_path(path in plain_path(), tricks in prop::collection::vec(any::<u8>(), 1..40)) {
        let (rooms, _) = rooms(&[("ROOM_SALE", json!({ "path": "/sale" })), ("ROOM_DEEP", json!({ "path": "/sale/sale" }))]);
        let spelled = obfuscate(&path, &tricks);
        prop_assert_eq!(rooms.find("x", &spelled), rooms.find("x", &path), "{} as {}", path, spelled);
    }

    #[test]
    fn hidden_climbing_never_leaves_a_room(path in plain_path(), tricks in prop::collection::vec(any::<u8>(), 1..40), climb in
        prop::sample::select(vec!["/decoy/..%2f", "/decoy/..;/", "/decoy/%252e%252e/", "/decoy%5c..%5c", "/decoy%2f%2e%2e/"])) {
        let (rooms, _) = rooms(&[("ROOM_SALE", json!({ "path": "/sale" }))]);
        // Literal dots would be resolved first, by the URL standard, and take a segment of the climb away.
        let rest = obfuscate(&path, &tricks).replace("decoy/../", "").replace("decoy/%2E./", "");
        let spelled = format!("{climb}{}", rest.trim_start_matches('/'));
        if is_below(path.as_bytes(), b"/sale") {
            prop_assert_eq!(covering(&rooms, "x", &spelled), Some("sale"), "{} as {}", path, spelled);
        }
    }
}

#[test]
fn what_rooms_share_is_written_once_and_a_rooms_own_wins() {
    let limits = json!({ "total_active_users": 1, "new_users_per_minute": 1 });
    let with = |path: &str, more: Value| {
        let mut fields = limits.clone();
        fields["path"] = path.into();
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let deploy = |defaults: Value| {
        let vars = [
            (
                "EVENT_NIGHT",
                json!({ "room": "a", "event_start_time": "2026-11-27T08:00:00Z",
                "event_end_time": "2026-11-27T09:00:00Z" }),
            ),
            ("ROOM_A", with("/a", json!({}))),
            (
                "ROOM_B",
                with("/b", json!({ "session_duration": 9, "cookie_attributes": { "secure": "never" } })),
            ),
            ("DEFAULTS", defaults),
        ];
        Rooms::from_vars(vars.into_iter().map(|(name, value)| (name.to_owned(), value)))
    };
    let shared = json!({ "host": "shop.example.com", "session_duration": 7,
        "cookie_attributes": { "samesite": "strict" } });
    let (rooms, errors) = deploy(shared);
    assert_eq!(errors, []);
    let [a, b] = ["a", "b"].map(|name| rooms.get(name).unwrap());
    assert_eq!((a.session_duration, b.session_duration), (7, 9));
    assert_eq!((a.host.as_deref(), b.host.as_deref()), (Some("shop.example.com"), Some("shop.example.com")));
    assert_eq!(a.events[0].active.session_duration, 7, "in events too");
    assert_eq!(a.cookie_attributes.samesite, SameSite::Strict);
    assert_eq!(b.cookie_attributes.samesite, SameSite::Auto, "each field as a whole");

    // A mistake is told once, where it is, and a room with a value of its own does not have it.
    let (rooms, errors) = deploy(json!({ "session_duration": 99 }));
    let shared = |errors: &[ConfigError]| errors.iter().filter(|error| error.part == Part::Defaults).count();
    assert_eq!(shared(&errors), 1);
    assert!(errors[0].to_string().starts_with("vars DEFAULTS: session_duration = 99: "), "{}", errors[0]);
    assert_eq!((rooms.get("a"), rooms.get("b").map(|room| room.session_duration)), (None, Some(9)));
    for wrong in [json!("all"), json!({ "path": "/c" })] {
        let (rooms, errors) = deploy(wrong);
        assert_eq!((rooms.len(), shared(&errors)), (0, 1));
    }
}

#[test]
fn a_room_has_an_origin_of_its_own_or_goes_where_all_go() {
    for (fields, goal) in [
        (json!({}), None),
        (json!({ "origin": "https://one.example.com:8443/" }), Some("https://one.example.com:8443")),
        (json!({ "origin_service": "SHOP_SITE" }), Some("SHOP_SITE")),
    ] {
        assert_eq!(room(&fields).own_origin(), goal);
    }
    for (field, value) in [
        ("origin", "one.example.com"),
        ("origin", "https://one.example.com/shop"),
        ("origin", "https://user@one.example.com"),
        ("origin_service", "shop-site"),
    ] {
        assert_eq!(refused(&json!({ field: value }))[0].field, field, "{value}");
    }
    let both = json!({ "origin": "https://one.example.com", "origin_service": "SHOP_SITE" });
    assert_eq!(refused(&both)[0].field, "origin_service");
    // A room's own wins over what all share, whichever of the two it is.
    let vars = [
        ("DEFAULTS", json!({ "origin": "https://all.example.com" })),
        ("ROOM_SHOP", table(&json!({ "origin_service": "SITE" }))),
    ];
    let (rooms, errors) = Rooms::from_vars(vars.into_iter().map(|(name, value)| (name.to_owned(), value)));
    assert_eq!((errors.len(), rooms.get("shop").and_then(Room::own_origin)), (0, Some("SITE")));
}
