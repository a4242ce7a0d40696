//! What rooms do, as text for Prometheus: `OpenMetrics` 1.0, or the older format that it grew from.
//!
//! Numbers come from each room's status and from its totals, both JSON. What a room does not tell has no sample: a number
//! that is not known is not 0.

use std::fmt::Write as _;

use serde_json::Value;

/// The format of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/openmetrics-text`, version 1.0.0.
    OpenMetrics,
    /// `text/plain`, version 0.0.4.
    Classic,
}

impl Format {
    /// The format that a request's `Accept` header prefers: the older one only where the header names it and not the other.
    pub fn accepted(accept: &str) -> Self {
        let quality = |wanted: &str| {
            let of = accept.split(',').filter_map(|range| {
                let (media, parameters) = range.split_once(';').unwrap_or((range, ""));
                let quality = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
                let quality = quality.map_or(Some(1_000), thousandths)?;
                media.trim().eq_ignore_ascii_case(wanted).then_some(quality)
            });
            of.max().unwrap_or_default()
        };
        let (open, classic) = (quality("application/openmetrics-text"), quality("text/plain"));
        if classic > open { Self::Classic } else { Self::OpenMetrics }
    }

    /// The text's type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// A quality (RFC 9110, section 12.4.2) in thousandths. The parser of numbers with a point is large.
fn thousandths(quality: &str) -> Option<u32> {
    let (whole, part) = quality.trim().split_once('.').unwrap_or((quality.trim(), ""));
    let digits: String = part.chars().chain("000".chars()).take(3).collect();
    Some(whole.parse::<u32>().ok()?.min(1) * 1_000 + digits.parse::<u32>().ok()?)
}

/// A number as it is written. What JSON is written with is in the Worker already; the formatter of numbers with a point is
/// large.
fn written(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < MOST_WHOLE {
        (value as i64).to_string()
    } else {
        Value::from(value).to_string()
    }
}

/// What is known of a room.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Its name.
    pub room: String,
    /// Its status; `Null`: it did not answer.
    pub status: Value,
    /// What was counted since its first day; `Null`: not known.
    pub totals: Value,
}

/// A number of each room: its name, its unit, what it means, and where it stands. A unit is the name's last part.
struct Number(&'static str, &'static str, &'static str, &'static str);

/// What goes up and down, from a room's status.
const GAUGES: &[Number] = &[
    Number("active_users", "", "Users who are in.", "/estimated_total_active_users"),
    Number("waiting_users", "", "Users who wait.", "/estimated_queued_users"),
    Number("slots", "", "How many more users may be active.", "/slots"),
    Number("limit_active_users", "", "The limit of active users in force.", "/limits/total_active_users"),
    Number(
        "limit_new_users_per_minute",
        "",
        "The limit of new users per minute in force.",
        "/limits/new_users_per_minute",
    ),
    Number(
        "new_users_last_minute",
        "",
        "Users who entered in the last full minute.",
        "/new_users_last_minute",
    ),
    Number("queue_all", "", "1: nobody new enters, by the owner's word.", "/queue_all"),
    Number("suspended", "", "1: the room is off.", "/suspended"),
    Number("observing", "", "1: the room only observes, and whoever waits passes.", "/observing"),
    Number("held", "", "1: nobody new enters, as the origin is unhealthy.", "/held"),
    Number("workers", "", "Workers that reported lately.", "/workers"),
    Number("steering_version", "", "How often operators have changed the room.", "/steering/version"),
    Number("steering_colos", "", "Colos that are awake.", "/steering/colos"),
    Number(
        "steering_colos_in_force",
        "",
        "Colos in which the operators' last change is in force.",
        "/steering/colos_in_force",
    ),
    Number("origin_in_flight_requests", "", "Requests at the origin.", "/origin/in_flight"),
];

/// What only grows, from a room's totals; `_total` follows the name.
const COUNTERS: &[Number] = &[
    Number("admitted_users", "", "Users who entered.", "/new_users"),
    Number("queue_joins", "", "Users who began to wait.", "/joins"),
    Number("queue_leavers", "", "Users who left without having entered.", "/leavers"),
    Number("revoked_sessions", "", "Sessions that the origin ended.", "/revoked"),
    Number("bypassed_requests", "", "Requests that went past the room by a rule.", "/bypassed"),
    Number("fallback_admissions", "", "Users who entered as no object answered.", "/fallbacks"),
    Number("rehearsal_users", "", "Users of rehearsals who entered.", "/rehearsal_new_users"),
    Number("rehearsal_joins", "", "Users of rehearsals who began to wait.", "/rehearsal_joins"),
    Number(
        "observed_joins",
        "",
        "Users who began to wait and passed, as the room only observes.",
        "/observed_joins",
    ),
];

/// Calls by object.
const OBJECTS: &[(&str, &str)] = &[
    ("counter", "/counter_calls"),
    ("anywhere", "/anywhere_calls"),
    ("data_center", "/data_center_calls"),
    ("global", "/global_calls"),
];

/// A number of each colo, from what it last reported.
const COLOS: &[Number] = &[
    Number(
        "colo_active_users",
        "",
        "Users who are in, by colo; the sum is right, a part may be below 0.",
        "/active",
    ),
    Number("colo_waiting_users", "", "Users who wait, by colo.", "/waiting"),
    Number("colo_workers", "", "Workers that reported lately, by colo.", "/workers"),
    Number("colo_cut_off", "", "1: a report that the colo had announced has not come.", "/cut_off"),
];

/// What a request to the origin came to, in the last minute.
const OUTCOMES: &[(&str, &str)] = &[
    ("answered", "/origin/answered"),
    ("failed", "/origin/failed"),
    ("timed_out", "/origin/timed_out"),
    ("refused", "/origin/refused"),
];

const STATUSES: &[&str] = &["not_queueing", "queueing", "event_prequeueing", "suspended"];
const PHASES: &[&str] = &["upcoming", "prequeueing", "active", "over", "suspended"];

/// Whole numbers are exact up to here.
const MOST_WHOLE: f64 = 9e15;

/// How many classes of times make one bucket: as fine as anybody looks, and not more series than needed.
const CLASSES_PER_BUCKET: usize = 4;

/// The text. `problems`: how many sentences the deployment has about what is wrong with it.
pub fn text(rooms: &[Known], problems: usize, version: &str, format: Format) -> String {
    let mut out = Out { text: String::new(), format };
    out.family("build", "info", "", "Which Anteroom it is.");
    out.sample("build_info", &[("version", version)], 1.0);
    out.family("deployment_problems", "gauge", "", "What is wrong with the deployment, in sentences.");
    out.sample("deployment_problems", &[], problems as f64);
    out.family("up", "gauge", "", "1: the room's objects answer.");
    for room in rooms {
        out.sample("up", &[("room", &room.room)], f64::from(u8::from(room.status.is_object())));
    }
    for gauge in GAUGES {
        out.each(gauge, "gauge", &mut rooms.iter().map(|room| (vec![("room", &*room.room)], &room.status)));
    }
    out.measured(
        ("state_age", "gauge", "seconds", "How old what is counted may be."),
        &mut rooms.iter().filter_map(|room| {
            let age = |field| number(&room.status, field);
            let age = age("/age_ms")?.max(age("/late_ms").unwrap_or_default());
            Some((vec![("room", &*room.room)], age / 1_000.0))
        }),
    );
    out.measured(
        (
            "estimated_wait",
            "gauge",
            "seconds",
            "The longest estimated wait of those who wait; 0: nobody waits.",
        ),
        &mut rooms.iter().filter_map(|room| {
            let buckets = room.status.pointer("/buckets")?.as_array()?;
            let waits = || buckets.iter().filter_map(|bucket| number(bucket, "/wait_seconds"));
            let is_known = buckets.is_empty() || waits().next().is_some();
            is_known.then(|| (vec![("room", &*room.room)], waits().fold(0.0, f64::max)))
        }),
    );
    let mut statuses =
        rooms.iter().map(|room| (vec![("room", &*room.room)], text_of(&room.status, "/status")));
    out.states("status", "What the room does.", STATUSES, &mut statuses);
    let mut phases = rooms.iter().flat_map(|room| {
        list(&room.status, "/events").iter().map(|event| {
            (vec![("room", &*room.room), ("event", text_of(event, "/name"))], text_of(event, "/phase"))
        })
    });
    out.states("event_phase", "Where an event is.", PHASES, &mut phases);
    steering(&mut out, rooms);
    origin(&mut out, rooms);
    for gauge in COLOS {
        out.each(gauge, "gauge", &mut colos(rooms));
    }
    out.measured(
        ("colo_report_age", "gauge", "seconds", "How old the colo's last report is."),
        &mut colos(rooms).filter_map(|(labels, colo)| Some((labels, number(colo, "/age_ms")? / 1_000.0))),
    );
    totals(&mut out, rooms);
    if format == Format::OpenMetrics {
        out.text.push_str("# EOF\n");
    }
    out.text
}

/// What operators have changed.
fn steering(out: &mut Out, rooms: &[Known]) {
    out.measured(
        (
            "steering_overrides",
            "gauge",
            "",
            "What operators have changed and not given back: fields and events.",
        ),
        &mut rooms.iter().filter_map(|room| {
            let fields = room.status.pointer("/steering/overrides")?.as_array()?.len();
            let events = list(&room.status, "/steering/events").len();
            Some((vec![("room", &*room.room)], (fields + events) as f64))
        }),
    );
    out.measured(
        ("steering_overrides_outdated", "gauge", "", "Those of them whose deployed value has changed since."),
        &mut rooms.iter().filter_map(|room| {
            let fields = room.status.pointer("/steering/overrides")?.as_array()?;
            let changed = fields.iter().filter(|field| number(field, "/deploy_changed") == Some(1.0)).count();
            Some((vec![("room", &*room.room)], changed as f64))
        }),
    );
}

/// What was counted since the rooms' first days.
fn totals(out: &mut Out, rooms: &[Known]) {
    for counter in COUNTERS {
        out.each(
            counter,
            "counter",
            &mut rooms.iter().map(|room| (vec![("room", &*room.room)], &room.totals)),
        );
    }
    out.measured(
        ("object_calls", "counter", "", "Calls to objects."),
        &mut rooms.iter().flat_map(|room| {
            OBJECTS.iter().filter_map(|(object, field)| {
                Some((vec![("room", &*room.room), ("object", *object)], number(&room.totals, field)?))
            })
        }),
    );
    out.histogram(
        ("wait", "How long users had waited when they entered."),
        ("/waits", "/waited_seconds"),
        rooms,
    );
    out.histogram(
        ("time_on_origin", "How long users were active, from their entry to their last request."),
        ("/visits", "/visited_seconds"),
        rooms,
    );
}

/// What is known of the rooms' origins.
fn origin(out: &mut Out, rooms: &[Known]) {
    out.measured(
        ("origin_unhealthy", "gauge", "", "1: a health check says that the origin is unhealthy."),
        &mut rooms.iter().filter_map(|room| {
            let check = room.status.pointer("/origin/unhealthy_check")?;
            Some((vec![("room", &*room.room)], f64::from(u8::from(!check.is_null()))))
        }),
    );
    out.measured(
        (
            "origin_requests_last_minute",
            "gauge",
            "",
            "Requests of the last 60 seconds by what they came to; failed ones were answered too.",
        ),
        &mut rooms.iter().flat_map(|room| {
            OUTCOMES.iter().filter_map(|(outcome, field)| {
                Some((vec![("room", &*room.room), ("outcome", *outcome)], number(&room.status, field)?))
            })
        }),
    );
    out.measured(
        (
            "origin_first_byte",
            "gauge",
            "seconds",
            "The time to the first byte that a part stayed below, in the last minute.",
        ),
        &mut rooms.iter().flat_map(|room| {
            [("0.5", "/origin/first_byte_p50_ms"), ("0.95", "/origin/first_byte_p95_ms")]
                .into_iter()
                .filter_map(|(part, field)| {
                    let milliseconds = number(&room.status, field)?;
                    Some((vec![("room", &*room.room), ("part", part)], milliseconds / 1_000.0))
                })
        }),
    );
}

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Each colo of each room.
fn colos(rooms: &[Known]) -> impl Iterator<Item = (Labels<'_>, &Value)> {
    rooms.iter().flat_map(|room| {
        list(&room.status, "/colos")
            .iter()
            .map(|colo| (vec![("room", &*room.room), ("colo", text_of(colo, "/colo"))], colo))
    })
}

/// A number; `true` is 1.
fn number(of: &Value, field: &str) -> Option<f64> {
    match of.pointer(field)? {
        Value::Bool(is) => Some(f64::from(u8::from(*is))),
        value => value.as_f64(),
    }
}

fn text_of<'a>(of: &'a Value, field: &str) -> &'a str {
    of.pointer(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(of: &'a Value, field: &str) -> &'a [Value] {
    of.pointer(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The text so far.
struct Out {
    text: String,
    format: Format,
}

impl Out {
    /// The head of a metric family. In the older format a counter's name ends with `_total` there too, and there are fewer
    /// types.
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let open = self.format == Format::OpenMetrics;
        let (mut name, mut kind) = (format!("anteroom_{name}"), kind);
        if !unit.is_empty() {
            name = format!("{name}_{unit}");
        }
        if !open {
            match kind {
                "counter" => name.push_str("_total"),
                "info" => (name, kind) = (format!("{name}_info"), "gauge"),
                "stateset" => kind = "gauge",
                _ => {}
            }
        }
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        if open && !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let _ = write!(self.text, "anteroom_{name}");
        for (index, (label, text)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"");
            for letter in text.chars() {
                match letter {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    letter => self.text.push(letter),
                }
            }
            self.text.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {}", written(value));
    }

    /// A family of numbers that stand in JSON.
    fn each<'a>(
        &mut self,
        Number(name, unit, help, field): &Number,
        kind: &str,
        of: &mut dyn Iterator<Item = (Labels<'a>, &'a Value)>,
    ) {
        let mut numbers = of.filter_map(|(labels, value)| Some((labels, number(value, field)?)));
        self.measured((name, kind, unit, help), &mut numbers);
    }

    /// A family of numbers; nothing where there are none.
    fn measured(
        &mut self,
        (name, kind, unit, help): (&str, &str, &str, &str),
        numbers: &mut dyn Iterator<Item = (Labels<'_>, f64)>,
    ) {
        let Some(first) = numbers.next() else { return };
        self.family(name, kind, unit, help);
        let sample = match (unit, kind) {
            ("", "counter") => format!("{name}_total"),
            ("", _) => name.to_owned(),
            (unit, _) => format!("{name}_{unit}"),
        };
        for (labels, number) in std::iter::once(first).chain(numbers) {
            self.sample(&sample, &labels, number);
        }
    }

    /// A family of states, of which one is on.
    fn states<'a>(
        &mut self,
        name: &str,
        help: &str,
        all: &[&str],
        of: &mut dyn Iterator<Item = (Labels<'a>, &'a str)>,
    ) {
        let label = format!("anteroom_{name}");
        let mut of = of.filter(|(_, state)| all.contains(state)).peekable();
        if of.peek().is_none() {
            return;
        }
        self.family(name, "stateset", "", help);
        for (labels, state) in of {
            for one in all {
                let mut labels: Vec<(&str, &str)> = labels.clone();
                labels.push((&label, one));
                self.sample(name, &labels, f64::from(u8::from(*one == state)));
            }
        }
    }

    /// A family of times. A room's totals list how many fall between the bounds, each with its upper one; the last has none.
    /// Where the sum is not known, there is no count either: `OpenMetrics` has both or none.
    fn histogram(&mut self, (name, help): (&str, &str), (field, sum): (&str, &str), rooms: &[Known]) {
        let mut is_first = true;
        for room in rooms {
            let classes = list(&room.totals, field);
            if classes.is_empty() {
                continue;
            }
            if std::mem::take(&mut is_first) {
                self.family(name, "histogram", "seconds", help);
            }
            let mut users = 0.0;
            for (index, class) in classes.iter().enumerate() {
                users += number(class, "/1").unwrap_or_default();
                if let Some(bound) = number(class, "/0").filter(|_| (index + 1) % CLASSES_PER_BUCKET == 0) {
                    // With a point, as `OpenMetrics` wants it.
                    let bound = Value::from(bound).to_string();
                    let labels = [("room", &*room.room), ("le", &*bound)];
                    self.sample(&format!("{name}_seconds_bucket"), &labels, users);
                }
            }
            let labels = [("room", &*room.room), ("le", "+Inf")];
            self.sample(&format!("{name}_seconds_bucket"), &labels, users);
            if let Some(sum) = number(&room.totals, sum) {
                self.sample(&format!("{name}_seconds_count"), &labels[..1], users);
                self.sample(&format!("{name}_seconds_sum"), &labels[..1], sum);
            }
        }
    }
}
