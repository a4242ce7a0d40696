//! One room's var, read and validated. All errors of a room are found in one go.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::room::{
    AdaptiveRange, BindTicket, CookieAttributes, Field, GuardSettings, GuardStrategy, OnError, OnUnhealthy,
    OriginGuard, QueueingMethod, RateWindow, Room, SameSite, Secure, SlotStrategy, Turnstile,
    TurnstileAction, TurnstileMode, WhenFull,
};
use crate::text::{nearest, one_of, shown, shown_text};
use crate::url::path;

/// What the name of a room's var starts with.
pub(super) const VAR_PREFIX: &str = "ROOM_";

/// The largest limit, as in Cloudflare's own schema.
const LIMIT_MAX: u32 = 2_147_483_647;
const NAME_MAX: usize = 64;
const HOST_MAX: usize = 253;
const HOST_LABEL_MAX: usize = 63;
const PATH_MAX: usize = 1024;
const SUFFIX_MAX: usize = 32;
const CURVE_FACTOR: RangeInclusive<f64> = 0.1..=10.0;
/// Requests of one worker at the origin; a worker has no more connections, and more memory than these need.
const WINDOW: RangeInclusive<u32> = 1..=10_000;
const SLOW_MS: RangeInclusive<u32> = 10..=60_000;
const CHECKS_MAX: usize = 10;
const CHECK_NAME_MAX: usize = 100;
const SITEKEY_MAX: usize = 100;
/// The longest time between two check-ins, in seconds.
const REFRESH_MAX: u32 = 300;
/// How many times as long as usual a refresh is far from the front, by default.
const REFRESH_STRETCH: u32 = 3;
const SESSION_MINUTES: RangeInclusive<u32> = 1..=30;
const REFRESH_SECONDS: RangeInclusive<u32> = 5..=60;
const STATUS_CODES: [u16; 3] = [200, 202, 429];
/// Nothing else may be served below this path: it holds Anteroom's own pages on every covered host.
const OWN_PATH: &[u8] = b"/__anteroom";

/// Every field of a room's table, as owners write it.
pub const ROOM_FIELDS: &[&str] = &[
    "description",
    "host",
    "path",
    "additional_routes",
    "path_case_insensitive",
    "total_active_users",
    "new_users_per_minute",
    "limits",
    "origin_slow_ms",
    "rate_window",
    "session_duration",
    "disable_session_renewal",
    "queueing_method",
    "queue_all",
    "suspended",
    "slot_strategy",
    "curve_factor",
    "on_error",
    "origin_guard",
    "health_checks",
    "on_unhealthy",
    "bypass_rules",
    "count",
    "exempt_extensions",
    "cookie_suffix",
    "cookie_attributes",
    "queueing_status_code",
    "enabled_origin_commands",
    "turnstile_mode",
    "turnstile_action",
    "turnstile_sitekey",
    "refresh_interval_seconds",
    "refresh_interval_max_seconds",
    "place_kept_seconds",
    "one_place_per_address",
    "bind_ticket",
    "custom_page_html",
    "default_template_language",
    "visitor_languages",
    "json_response_enabled",
    "json_response",
    "message",
    "show_position",
    "show_wait",
    "show_progress",
];

/// Every field of a limit that is a range.
const RANGE_FIELDS: [&str; 2] = ["min", "max"];

/// Every field of `origin_guard`.
const GUARD_FIELDS: [&str; 7] = ["strategy", "min", "max", "at_once", "timeout", "hold_ms", "admitted"];

/// Every field of `cookie_attributes`.
const COOKIE_FIELDS: [&str; 4] = ["samesite", "secure", "partitioned", "domain"];

/// What an owner configures with a table of vars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A waiting room, `[vars.ROOM_<NAME>]`.
    Room,
    /// A check of the origin's health, `[vars.CHECK_<NAME>]`.
    Check,
    /// An event of a room, `[vars.EVENT_<NAME>]`.
    Event,
    /// Who is told what happens, `[vars.WEBHOOK_<NAME>]`.
    Webhook,
}

impl Part {
    /// What the names of its vars start with.
    pub fn var_prefix(self) -> &'static str {
        match self {
            Self::Room => VAR_PREFIX,
            Self::Check => "CHECK_",
            Self::Event => "EVENT_",
            Self::Webhook => "WEBHOOK_",
        }
    }

    /// As texts for the owner call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Check => "check",
            Self::Event => "event",
            Self::Webhook => "webhook",
        }
    }
}

/// One thing that is wrong with a room, a check or an event, in words for its owner.
///
/// Displayed in one line: `room shop: queue_all = "yes": must be true or false. Fix: ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong: a room, a check or an event.
    pub part: Part,
    /// Its name, in lower case.
    pub name: String,
    /// The field as it is written in the table (`cookie_attributes.samesite`), `name`, or the var's name when the
    /// var is no table at all.
    pub field: String,
    /// The refused value as JSON, cut to 60 characters; `(not set)` when there is none.
    pub value: String,
    /// What the value must be, or is: goes on after the value.
    pub message: String,
    /// What to do about it: an instruction without a full stop.
    pub fix: String,
    /// The value around the mistake in one line and a mark below the mistake in another, where a value is long; else
    /// empty.
    pub excerpt: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, name, field, value, message, fix, .. } = self;
        write!(formatter, "{} {name}: {field} = {value}: {message}. Fix: {fix}.", part.word())
    }
}

impl std::error::Error for ConfigError {}

/// Reads one room: the var `ROOM_SHOP` with a table becomes the room `shop`.
///
/// `total_active_users` and `new_users_per_minute` are required, everything else has a default. Either limit may be
/// the larger one: more new users per minute than active users is no conflict, the smaller limit is simply reached
/// first.
///
/// # Errors
/// Every error of the room: unknown fields, wrong types, values out of range, conflicts, what is missing.
pub fn parse_room(var_name: &str, value: &Value) -> Result<Room, Vec<ConfigError>> {
    let (name, mut table) = Table::open(Part::Room, var_name, value)?;
    table.unknown(ROOM_FIELDS);

    let (total_active_users, new_users_per_minute, adaptive) = table.limits();
    let (refresh_interval_seconds, refresh_interval_max_seconds) = table.refresh_intervals();
    let host = table.host();
    // A note for whoever reads the configuration.
    table.text("description", "tickets for the summer tour");
    let room = Room {
        path: table.path(),
        additional_routes: table.additional_routes(host.as_deref()).into(),
        path_case_insensitive: table.flag("path_case_insensitive"),
        host,
        total_active_users,
        new_users_per_minute,
        adaptive,
        rate_window: table.choice(
            "rate_window",
            ("minute", RateWindow::Minute),
            &[("sliding", RateWindow::Sliding)],
        ),
        session_duration: table.whole("session_duration", SESSION_MINUTES, Some(5)),
        disable_session_renewal: table.flag("disable_session_renewal"),
        queueing_method: table.queueing_method().unwrap_or(QueueingMethod::Fifo),
        queue_all: table.flag("queue_all"),
        suspended: table.flag("suspended"),
        slot_strategy: table.choice(
            "slot_strategy",
            ("leases", SlotStrategy::Leases),
            &[
                ("counters", SlotStrategy::Counters),
                ("adapted_worker_slots", SlotStrategy::AdaptedWorkerSlots),
                ("worker_slots", SlotStrategy::WorkerSlots),
            ],
        ),
        curve_factor: table.curve_factor(),
        on_error: table.choice("on_error", ("admit", OnError::Admit), &[("queue", OnError::Queue)]),
        origin_guard: table.origin_guard(),
        health_checks: table.health_checks(),
        on_unhealthy: table.choice(
            "on_unhealthy",
            ("ignore", OnUnhealthy::Ignore),
            &[("hold", OnUnhealthy::Hold)],
        ),
        bypass_rules: table.bypass_rules().into(),
        count: table.count(),
        exempt_extensions: table.exempt_extensions().into(),
        cookie_suffix: table.cookie_suffix(),
        cookie_attributes: table.cookie_attributes(),
        cookie_domain: table.cookie_domain(),
        queueing_status_code: table.queueing_status_code(),
        turnstile: table.turnstile(),
        revoke: table.origin_commands(),
        refresh_interval_seconds,
        refresh_interval_max_seconds,
        place_kept_seconds: table.whole("place_kept_seconds", 10..=3_600, Some(50)),
        one_place_per_address: table.flag("one_place_per_address"),
        bind_ticket: table.choice(
            "bind_ticket",
            ("none", BindTicket::None),
            &[
                ("address", BindTicket::Address),
                ("user_agent", BindTicket::UserAgent),
                ("both", BindTicket::Both),
            ],
        ),
        page: table.page(),
        prequeue: false,
        events: Arc::default(),
        name,
    };
    if room.rate_window == RateWindow::Sliding && room.slot_strategy != SlotStrategy::Leases {
        table.refuse(
            "rate_window",
            &Value::from("sliding"),
            "needs slot_strategy = \"leases\"",
            "set slot_strategy to \"leases\", or leave rate_window out",
        );
    }
    table.judge_routes(&room);
    if table.errors.is_empty() { Ok(room) } else { Err(table.errors) }
}

/// What is wrong with values that an operator wants to give to fields of a room at run time.
pub fn check_steered(room: &str, fields: &Map<String, Value>) -> Vec<ConfigError> {
    let name = shown_text(room);
    let mut table = Table { part: Part::Room, name, prefix: "", fields: Some(fields), errors: Vec::new() };
    let known: Vec<&str> = Field::ALL.into_iter().map(Field::name).collect();
    table.unknown(&known);
    for field in Field::ALL {
        match field {
            Field::QueueAll | Field::Suspended => {
                table.flag(field.name());
            }
            Field::TotalActiveUsers | Field::NewUsersPerMinute => {
                table.whole(field.name(), 1..=LIMIT_MAX, Some(200));
            }
            Field::SessionDuration => {
                table.whole(field.name(), SESSION_MINUTES, Some(5));
            }
            Field::RefreshIntervalSeconds => {
                table.whole(field.name(), REFRESH_SECONDS, Some(20));
            }
            Field::Message => {
                table.message();
            }
        }
    }
    table.errors
}

/// What follows `ROOM_`, `CHECK_` or `EVENT_`, in lower case.
pub(super) fn name_of(part: Part, var_name: &str) -> String {
    var_name.strip_prefix(part.var_prefix()).unwrap_or(var_name).to_ascii_lowercase()
}

fn is_name(part: Part, var_name: &str, name: &str) -> bool {
    var_name.starts_with(part.var_prefix())
        && (1..=NAME_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A table being read. Each method reads one field, notes what is wrong with it, and returns a value in range in any
/// case, so that reading goes on to the next error.
pub(crate) struct Table<'a> {
    part: Part,
    name: String,
    /// Goes before a field's name in errors: `cookie_attributes.` or nothing.
    prefix: &'static str,
    fields: Option<&'a Map<String, Value>>,
    pub(crate) errors: Vec<ConfigError>,
}

impl<'a> Table<'a> {
    /// The name that a var gives, and its table.
    ///
    /// # Errors
    /// When the var is no table. A wrong name is among the table's errors.
    pub(crate) fn open(
        part: Part,
        var_name: &str,
        value: &'a Value,
    ) -> Result<(String, Self), Vec<ConfigError>> {
        let name = name_of(part, var_name);
        let (prefix, word) = (part.var_prefix(), part.word());
        let mut table =
            Self { part, name: shown_text(&name), prefix: "", fields: value.as_object(), errors: Vec::new() };
        if !is_name(part, var_name, &name) {
            let example = match part {
                Part::Room => "ROOM_SHOP",
                Part::Check => "CHECK_ORIGIN",
                Part::Event => "EVENT_SALE",
                Part::Webhook => "WEBHOOK_CHAT",
            };
            table.refuse(
                "name",
                &Value::from(var_name),
                format!("must be {prefix} and 1 to {NAME_MAX} letters, digits, \"_\" or \"-\""),
                &format!("rename the var, for example to {example}"),
            );
        }
        if table.fields.is_some() {
            return Ok((name, table));
        }
        let fix = match value {
            Value::Array(_) => format!("write [vars.{var_name}] with single brackets, one table per {word}"),
            Value::String(_) => format!("write a table [vars.{var_name}] instead of text"),
            _ => format!("write a table [vars.{var_name}] with one line per field"),
        };
        table.refuse(&shown_text(var_name), value, format!("must be a table with the {word}'s fields"), &fix);
        Err(table.errors)
    }

    pub(crate) fn get(&self, field: &str) -> Option<&'a Value> {
        self.fields.and_then(|fields| fields.get(field))
    }

    pub(crate) fn refuse(&mut self, field: &str, value: &Value, message: impl Into<String>, fix: &str) {
        self.refuse_shown(field, shown(value), message.into(), fix);
    }

    /// Refuses a value in words that are put together only where an owner reads them, in the check before a deploy. The
    /// Worker says where they are to be had: carrying all of them would make every cold start slower.
    pub(crate) fn refuse_as(&mut self, field: &str, value: &Value, words: impl FnOnce() -> (String, String)) {
        #[cfg(target_arch = "wasm32")]
        {
            let _ = words;
            self.refuse(field, value, "is not valid", "run npm run check: it says why");
        }
        #[cfg(not(target_arch = "wasm32"))]
        {
            let (message, fix) = words();
            self.refuse(field, value, message, &fix);
        }
    }

    pub(crate) fn refuse_shown(&mut self, field: &str, value: String, message: String, fix: &str) {
        self.errors.push(ConfigError {
            part: self.part,
            name: self.name.clone(),
            field: format!("{}{field}", self.prefix),
            value,
            message,
            fix: fix.to_owned(),
            excerpt: String::new(),
        });
    }

    /// Shows where in its value the last error is.
    pub(super) fn show_excerpt(&mut self, excerpt: String) {
        if let Some(last) = self.errors.last_mut() {
            last.excerpt = excerpt;
        }
    }

    pub(crate) fn unknown(&mut self, known: &[&str]) {
        let Some(fields) = self.fields else { return };
        for (field, value) in fields {
            let shown_field = shown_text(field);
            if known.contains(&field.as_str()) {
                continue;
            }
            if field == "name" && self.prefix.is_empty() {
                let (word, prefix) = (self.part.word(), self.part.var_prefix());
                let message =
                    format!("is not a field: a {word}'s name is what follows {prefix} in its var's name");
                self.refuse(
                    field,
                    value,
                    message,
                    &format!("remove it, and rename the var to rename the {word}"),
                );
            } else {
                let fix = match nearest(field, known) {
                    Some(meant) => format!("did you mean {meant}? Rename it, or remove it"),
                    None => format!("remove it; the fields are {}", known.join(", ")),
                };
                self.refuse(&shown_field, value, "is not a field that Anteroom knows", &fix);
            }
        }
    }

    /// A whole number. Without a default it is required.
    pub(crate) fn whole(&mut self, field: &str, range: RangeInclusive<u32>, default: Option<u32>) -> u32 {
        let (low, high) = (*range.start(), *range.end());
        let Some(value) = self.get(field) else {
            if default.is_none() {
                let fix = format!("add it, for example {field} = 200");
                self.refuse_shown(field, "(not set)".to_owned(), "is required".to_owned(), &fix);
            }
            return default.unwrap_or(low);
        };
        if let Some(number) = value.as_u64().and_then(|number| u32::try_from(number).ok())
            && range.contains(&number)
        {
            return number;
        }
        let fix = match whole_meant(value) {
            Some(meant) if meant < i64::from(low) => format!("set {field} to at least {low}"),
            Some(meant) if meant > i64::from(high) => format!("set {field} to at most {high}"),
            Some(meant) => format!("write it without quotes and decimal point: {field} = {meant}"),
            None => {
                format!("set {field} to a whole number, for example {field} = {}", default.unwrap_or(200))
            }
        };
        self.refuse(field, value, format!("must be a whole number from {low} to {high}"), &fix);
        low
    }

    /// Both limits: numbers, or with `limits = "adaptive"` ranges.
    fn limits(&mut self) -> (u32, u32, Option<AdaptiveRange>) {
        let adapts = self.choice("limits", ("fixed", false), &[("adaptive", true)]);
        let (least_active_users, most_active_users) = self.limit("total_active_users", adapts);
        let (least_new_users, most_new_users) = self.limit("new_users_per_minute", adapts);
        let slow_ms = self.get("origin_slow_ms").map(|value| {
            if !adapts {
                let fix = "set limits to \"adaptive\", or remove origin_slow_ms";
                self.refuse("origin_slow_ms", value, "is for limits = \"adaptive\" only", fix);
            }
            self.whole("origin_slow_ms", SLOW_MS, Some(1_000))
        });
        let is_range = |field: &str| self.get(field).is_some_and(Value::is_object);
        if adapts && !is_range("total_active_users") && !is_range("new_users_per_minute") {
            let fix = "write a range, for example total_active_users = { min = 200, max = 1000 }";
            self.refuse("limits", &Value::from("adaptive"), "needs a range for at least one limit", fix);
        }
        let range = AdaptiveRange { least_active_users, least_new_users, slow_ms };
        (most_active_users, most_new_users, adapts.then_some(range))
    }

    /// The least and the most of a limit: the same number, unless it is a range.
    fn limit(&mut self, field: &'static str, adapts: bool) -> (u32, u32) {
        let fields = match self.get(field) {
            Some(Value::Object(fields)) if adapts => fields,
            Some(value @ Value::Object(_)) => {
                let fix = format!("set limits to \"adaptive\", or write one number: {field} = 200");
                self.refuse(field, value, "is a range, which is for limits = \"adaptive\"", &fix);
                return (1, 1);
            }
            _ => {
                let limit = self.whole(field, 1..=LIMIT_MAX, None);
                return (limit, limit);
            }
        };
        let prefix =
            if field == "total_active_users" { "total_active_users." } else { "new_users_per_minute." };
        self.within(prefix, Some(fields), |range| {
            range.unknown(&RANGE_FIELDS);
            let least = range.whole("min", 1..=LIMIT_MAX, None);
            let most = range.whole("max", 1..=LIMIT_MAX, None);
            if least > most {
                let fix = "set min to at most max";
                range.refuse("min", &Value::from(least), format!("is more than max, {most}"), fix);
            }
            (least.min(most), most)
        })
    }

    /// Seconds between two check-ins: usually, and far from the front.
    fn refresh_intervals(&mut self) -> (u32, u32) {
        let usual = self.whole("refresh_interval_seconds", REFRESH_SECONDS, Some(20));
        let longest = (usual * REFRESH_STRETCH).min(REFRESH_MAX);
        (usual, self.whole("refresh_interval_max_seconds", usual..=REFRESH_MAX, Some(longest)))
    }

    fn origin_guard(&mut self) -> Option<OriginGuard> {
        let field = "origin_guard";
        match self.get(field)? {
            Value::Object(fields) => Some(self.within("origin_guard.", Some(fields), Self::guard_fields)),
            other => {
                let fix = "write origin_guard = { strategy = \"position\", max = 200 }, or remove it";
                self.refuse(field, other, "must be a table", fix);
                None
            }
        }
    }

    fn guard_fields(&mut self) -> OriginGuard {
        self.unknown(&GUARD_FIELDS);
        let strategies = [
            ("newest_first", GuardStrategy::NewestFirst),
            ("basic", GuardStrategy::Basic),
            ("static", GuardStrategy::Static),
        ];
        let settings = GuardSettings {
            strategy: self.choice("strategy", ("position", GuardStrategy::Position), &strategies),
            min: self.whole("min", WINDOW, Some(2)),
            max: self.whole("max", WINDOW, Some(1_000)),
            at_once: self.get("at_once").is_some().then(|| self.whole("at_once", WINDOW, Some(1))),
            timeout_ms: u64::from(self.whole("timeout", 1..=100, Some(10))) * 1_000,
            hold_ms: u64::from(self.whole("hold_ms", 0..=10_000, Some(1_000))),
        };
        if settings.min > settings.max {
            let message = format!("is more than max, {}", settings.max);
            self.refuse("min", &Value::from(settings.min), message, "set min to at most max");
        }
        if settings.strategy == GuardStrategy::NewestFirst && settings.at_once.is_none() {
            let message = "is required with strategy = \"newest_first\", which has no window";
            let fix =
                "add it: how many requests of one worker the origin serves at once, for example at_once = 4";
            self.refuse_shown("at_once", "(not set)".to_owned(), message.to_owned(), fix);
        }
        let admitted = self.choice("admitted", ("retry", WhenFull::Retry), &[("pass", WhenFull::Pass)]);
        OriginGuard { settings, admitted }
    }

    /// The names of the checks that speak for the room.
    fn health_checks(&mut self) -> Vec<String> {
        let field = "health_checks";
        let Some(value) = self.get(field) else { return Vec::new() };
        let names: Option<Vec<String>> = value
            .as_array()
            .map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        match names {
            Some(names)
                if names.len() <= CHECKS_MAX
                    && names.iter().all(|name| (1..=CHECK_NAME_MAX).contains(&name.len())) =>
            {
                names
            }
            _ => {
                let message = format!(
                    "must be a list of at most {CHECKS_MAX} names of checks, 1 to {CHECK_NAME_MAX} bytes each"
                );
                self.refuse(
                    field,
                    value,
                    message,
                    "write health_checks = [\"origin\"] for [vars.CHECK_ORIGIN]",
                );
                Vec::new()
            }
        }
    }

    /// Reads a table within this one.
    pub(super) fn within<T>(
        &mut self,
        prefix: &'static str,
        fields: Option<&'a Map<String, Value>>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let errors = std::mem::take(&mut self.errors);
        let mut inner = Table { part: self.part, name: self.name.clone(), prefix, fields, errors };
        let done = read(&mut inner);
        self.errors = inner.errors;
        done
    }

    /// `true` or `false`, by default `false`.
    pub(crate) fn flag(&mut self, field: &str) -> bool {
        let Some(value) = self.get(field) else { return false };
        if let Some(flag) = value.as_bool() {
            return flag;
        }
        let meant = match value.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("true" | "yes" | "on") => true,
            Some(_) => false,
            None => value.as_f64().is_some_and(|number| number != 0.0),
        };
        self.refuse(
            field,
            value,
            "must be true or false",
            &format!("write it without quotes: {field} = {meant}"),
        );
        false
    }

    /// One of some names.
    pub(crate) fn choice<T: Copy>(&mut self, field: &str, default: (&str, T), others: &[(&str, T)]) -> T {
        let (default_name, default) = default;
        let Some(value) = self.get(field) else { return default };
        let name = value.as_str().unwrap_or_default();
        if name == default_name {
            return default;
        }
        if let Some((_, choice)) = others.iter().find(|(known, _)| *known == name) {
            return *choice;
        }
        let mut names = vec![default_name];
        names.extend(others.iter().map(|(name, _)| *name));
        let fix = match nearest(name, &names) {
            Some(meant) => format!("write {field} = \"{meant}\" if you mean that"),
            None => format!("set {field} to \"{default_name}\", or leave it out for that"),
        };
        self.refuse(field, value, format!("must be {}", one_of(&names)), &fix);
        default
    }

    /// Text; `None` when the field is not set, or not text (which is an error).
    pub(crate) fn text(&mut self, field: &str, example: &str) -> Option<&'a str> {
        let value = self.get(field)?;
        let text = value.as_str();
        if text.is_none() {
            self.refuse(field, value, "must be text in quotes", &format!("write {field} = \"{example}\""));
        }
        text
    }

    pub(super) fn host(&mut self) -> Option<String> {
        let given = self.text("host", "shop.example.com")?;
        let host = given.strip_suffix('.').unwrap_or(given).to_ascii_lowercase();
        let bare = host.split_once("://").map_or(host.as_str(), |(_, rest)| rest);
        let bare = bare.split(['/', '?', '#', ':']).next().unwrap_or(bare).to_owned();
        let set_to = |host: &str| format!("write host = \"{}\"", shown_text(host));
        let label = |part: &str| (1..=HOST_LABEL_MAX).contains(&part.len());
        let (message, fix) = if host.is_empty() {
            ("must not be empty".to_owned(), "leave host out to cover every host".to_owned())
        } else if host.contains("://") {
            ("must be a host name without a scheme".to_owned(), set_to(&bare))
        } else if host.contains('*') {
            let fix = "write one room per host, or leave host out to cover every host";
            ("must be one host, wildcards are not available".to_owned(), fix.to_owned())
        } else if host.contains(['/', '?', '#']) {
            (
                "must be a host name without a path".to_owned(),
                format!("{}, and what follows as path", set_to(&bare)),
            )
        } else if host.contains(':') {
            ("must be a host name without a port: a room covers every port".to_owned(), set_to(&bare))
        } else if host.len() > HOST_MAX {
            let message = format!("must be at most {HOST_MAX} bytes long, it has {}", host.len());
            (message, "write the host as the visitor's browser shows it".to_owned())
        } else if !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        {
            let message = "must be letters, digits, \"-\" and \".\"".to_owned();
            (message, "write an international name in its xn-- form, without spaces".to_owned())
        } else if !host.split('.').all(label) {
            let message = format!("must have 1 to {HOST_LABEL_MAX} characters between two dots");
            (message, "write the host as the visitor's browser shows it".to_owned())
        } else {
            return Some(host);
        };
        self.refuse("host", &Value::from(given), message, &fix);
        None
    }

    pub(super) fn path(&mut self) -> String {
        const ROOT: &str = "/";
        let Some(given) = self.text("path", "/sale") else { return ROOT.to_owned() };
        let before = |ends: &[char]| {
            let kept = given.split(ends).next().unwrap_or_default().trim_end_matches('/');
            format!("write path = \"{}\"", shown_text(if kept.is_empty() { ROOT } else { kept }))
        };
        let encoded = ["%2f", "%5c", "%3b", "%3f", "%23", "%25", "%00"];
        let lower = given.to_ascii_lowercase();
        let (message, fix) = if given.contains("://") {
            let fix = "write what follows the host, and the host as host";
            ("must be a path without scheme and host".to_owned(), fix.to_owned())
        } else if !given.starts_with('/') {
            let fix = format!("write path = \"/{}\"", shown_text(given));
            ("must start with \"/\"".to_owned(), fix)
        } else if given.len() > PATH_MAX {
            let message = format!("must be at most {PATH_MAX} bytes long, it has {}", given.len());
            (message, "cover a shorter path: a room covers everything below its path".to_owned())
        } else if given.contains('*') {
            ("must not have a wildcard: a room covers everything below its path".to_owned(), before(&['*']))
        } else if given.contains('?') {
            ("must not have a query: a room covers its path with every query".to_owned(), before(&['?']))
        } else if given.contains('#') {
            ("must not have a fragment: browsers do not send it".to_owned(), before(&['#']))
        } else if given.contains(';') {
            ("must not have parameters: a room covers its path with all of them".to_owned(), before(&[';']))
        } else if given.contains('\\') {
            let fix = format!("write path = \"{}\"", shown_text(&given.replace('\\', ROOT)));
            ("must part its segments by \"/\"".to_owned(), fix)
        } else if encoded.iter().any(|escape| lower.contains(escape)) {
            let message =
                "must not have an encoded / \\ ; ? # % or NUL: origins disagree about them".to_owned();
            (message, "cover the path above it".to_owned())
        } else {
            match String::from_utf8(path::normalise(given.as_bytes()).into_owned()) {
                Ok(path) if path::is_below(path.as_bytes(), OWN_PATH) => {
                    let message = "must not be below /__anteroom: these pages are Anteroom's own".to_owned();
                    (message, "cover a path of the origin".to_owned())
                }
                Ok(path) if !path.contains(char::is_control) => return path,
                _ => {
                    let message = "must be UTF-8 text without control characters".to_owned();
                    (message, "write the path as the browser's address bar shows it".to_owned())
                }
            }
        };
        self.refuse("path", &Value::from(given), message, &fix);
        ROOT.to_owned()
    }

    fn queueing_method(&mut self) -> Option<QueueingMethod> {
        let field = "queueing_method";
        let value = self.get(field)?;
        let method = match value.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("fifo") => QueueingMethod::Fifo,
            Some("random") => QueueingMethod::Random,
            Some("passthrough") => QueueingMethod::Passthrough,
            Some("reject") => QueueingMethod::Reject,
            given => {
                let methods = ["fifo", "random", "passthrough", "reject"];
                let fix = match nearest(given.unwrap_or_default(), &methods) {
                    Some(meant) => format!("write {field} = \"{meant}\" if you mean that"),
                    None => format!("set {field} to \"fifo\", or leave it out"),
                };
                self.refuse(field, value, format!("must be {}", one_of(&methods)), &fix);
                return None;
            }
        };
        Some(method)
    }

    fn curve_factor(&mut self) -> f64 {
        let default = 1.0;
        let Some(value) = self.get("curve_factor") else { return default };
        if let Some(number) = value.as_f64()
            && CURVE_FACTOR.contains(&number)
        {
            return number;
        }
        // Written out: putting fractions into words is a large piece of code, and the Worker needs it nowhere else.
        let fix = match value.as_f64() {
            Some(number) if number < *CURVE_FACTOR.start() => "set curve_factor to at least 0.1",
            Some(_) => "set curve_factor to at most 10",
            None => "write a number without quotes, for example curve_factor = 1.0",
        };
        self.refuse("curve_factor", value, "must be a number from 0.1 to 10", fix);
        default
    }

    fn cookie_suffix(&mut self) -> String {
        let Some(suffix) = self.text("cookie_suffix", "shop") else { return String::new() };
        let fits = suffix.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if (1..=SUFFIX_MAX).contains(&suffix.len()) && fits {
            return suffix.to_owned();
        }
        let kept: String = suffix
            .chars()
            .filter(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-'))
            .take(SUFFIX_MAX)
            .collect();
        let fix = if kept.is_empty() {
            "leave it out for the cookie __anteroom, or write cookie_suffix = \"shop\"".to_owned()
        } else {
            format!("write cookie_suffix = \"{kept}\"")
        };
        let message = format!("must be 1 to {SUFFIX_MAX} letters, digits, \"_\" or \"-\"");
        self.refuse("cookie_suffix", &Value::from(suffix), message, &fix);
        String::new()
    }

    fn turnstile(&mut self) -> Option<Turnstile> {
        let mode = self.choice(
            "turnstile_mode",
            ("invisible", Some(TurnstileMode::Invisible)),
            &[
                ("off", None),
                ("visible_non_interactive", Some(TurnstileMode::VisibleNonInteractive)),
                ("visible_managed", Some(TurnstileMode::VisibleManaged)),
            ],
        );
        let infinite = [("infinite_queue", TurnstileAction::InfiniteQueue)];
        let action = self.choice("turnstile_action", ("log", TurnstileAction::Log), &infinite);
        let field = "turnstile_sitekey";
        let Some(sitekey) = self.text(field, "0x4AAAAAAA...") else {
            let is_wrong = self.errors.iter().any(|error| error.field.starts_with("turnstile_"));
            let mut fields = ["turnstile_mode", "turnstile_action"].into_iter().filter(|_| !is_wrong);
            let named = fields.find(|of| self.get(of).is_some());
            if let Some(named) = named.filter(|_| mode.is_some() && self.get(field).is_none()) {
                let value = self.get(named).cloned().unwrap_or_default();
                let fix = "add turnstile_sitekey, the site key of your Turnstile widget, or remove this";
                self.refuse(named, &value, "needs turnstile_sitekey", fix);
            }
            return None;
        };
        let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if !(1..=SITEKEY_MAX).contains(&sitekey.len()) || !sitekey.bytes().all(is_key) {
            let message = format!("must be 1 to {SITEKEY_MAX} letters, digits, \"_\", \"-\" or \".\"");
            self.refuse(field, &Value::from(sitekey), message, "copy the site key of your Turnstile widget");
        }
        Some(Turnstile { mode: mode?, action, sitekey: sitekey.to_owned() })
    }

    /// Whether `revoke` is among `enabled_origin_commands`.
    fn origin_commands(&mut self) -> bool {
        let field = "enabled_origin_commands";
        let Some(value) = self.get(field) else { return false };
        let commands = value.as_array().filter(|commands| commands.iter().all(|name| name == "revoke"));
        if commands.is_none() {
            let fix = "write enabled_origin_commands = [\"revoke\"]";
            self.refuse(field, value, "must be a list of commands, and the only command is \"revoke\"", fix);
        }
        commands.is_some_and(|commands| !commands.is_empty())
    }

    fn cookie_attributes(&mut self) -> CookieAttributes {
        let field = "cookie_attributes";
        let fields = match self.get(field) {
            None => None,
            Some(Value::Object(fields)) => Some(fields),
            Some(other) => {
                let fix = "write cookie_attributes = { samesite = \"auto\", secure = \"auto\" }";
                self.refuse(field, other, "must be a table", fix);
                None
            }
        };
        self.within("cookie_attributes.", fields, Self::cookie_fields)
    }

    fn cookie_fields(&mut self) -> CookieAttributes {
        self.unknown(&COOKIE_FIELDS);
        let samesites = [("lax", SameSite::Lax), ("none", SameSite::None), ("strict", SameSite::Strict)];
        let secures = [("always", Secure::Always), ("never", Secure::Never)];
        let samesite = self.choice("samesite", ("auto", SameSite::Auto), &samesites);
        let secure = self.choice("secure", ("auto", Secure::Auto), &secures);
        if samesite == SameSite::None && secure == Secure::Never {
            let message =
                "conflicts with samesite = \"none\": browsers drop such a cookie unless it is Secure";
            let fix = "set secure to \"auto\" or \"always\", or samesite to \"lax\"";
            self.refuse("secure", &Value::from("never"), message, fix);
        }
        let partitioned = match self.get("partitioned") {
            None => samesite == SameSite::None,
            Some(_) => self.flag("partitioned"),
        };
        if partitioned && samesite != SameSite::None {
            let message = "needs samesite = \"none\": it is for rooms inside pages of other sites";
            let fix = "set samesite to \"none\", or remove partitioned";
            self.refuse("partitioned", &Value::from(true), message, fix);
        }
        CookieAttributes { samesite, secure, partitioned }
    }

    fn queueing_status_code(&mut self) -> u16 {
        let field = "queueing_status_code";
        let default = 200;
        let Some(value) = self.get(field) else { return default };
        if let Some(code) = value.as_u64().and_then(|code| u16::try_from(code).ok())
            && STATUS_CODES.contains(&code)
        {
            return code;
        }
        let meant = whole_meant(value).and_then(|code| u16::try_from(code).ok());
        let code = meant.filter(|code| STATUS_CODES.contains(code)).unwrap_or(default);
        let fix = format!("write a whole number without quotes, for example {field} = {code}");
        self.refuse(field, value, "must be 200, 202 or 429", &fix);
        default
    }
}

/// The whole number that a value of a wrong type or range stands for: `5.0`, `"5"`, `0`.
fn whole_meant(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        // `as` stops at the limits of the type, and the limits are all that is asked for.
        Value::Number(number) => {
            number.as_i64().or_else(|| number.as_f64().map(|number| number.round() as i64))
        }
        _ => None,
    }
}
