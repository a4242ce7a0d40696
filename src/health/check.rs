//! Checks of our own as their owner writes them: parse, validate, ready to use; and the request that a probe sends.

use std::ops::RangeInclusive;

use litemap::LiteMap;
use serde_json::Value;

use crate::config::{ConfigError, Part, Table, nearest, shown, shown_text};

/// The most checks a deployment may have. The page shows all of them, and the keeper hears all of their observers.
pub const MAX_CHECKS: usize = 32;
/// So many observers look at the origin from each region.
pub const OBSERVERS: u8 = 3;
/// A body is searched for the expected text in its first bytes only, as the platform's checks do.
pub const SEARCHED_BODY: usize = 10_240;

const URL_MAX: usize = 2_048;
const HOST_MAX: usize = 253;
const TEXT_MAX: usize = 1_024;
const HEADERS_MAX: usize = 16;
const CODES_MAX: usize = 16;
const INTERVAL: RangeInclusive<u32> = 5..=3_600;
const TIMEOUT: RangeInclusive<u32> = 1..=10;
const RETRIES: RangeInclusive<u32> = 0..=5;
const CONSECUTIVE: RangeInclusive<u32> = 1..=10;
/// The platform lets nobody connect to this port: it is for sending mail.
const MAIL_PORT: u16 = 25;

/// Every field of a check's table.
const FIELDS: [&str; 16] = [
    "url",
    "tcp",
    "method",
    "interval",
    "timeout",
    "retries",
    "consecutive_fails",
    "consecutive_successes",
    "expected_codes",
    "expected_body",
    "follow_redirects",
    "allow_insecure",
    "header",
    "regions",
    "suspended",
    "description",
];

/// Fields that are about HTTP alone.
const HTTP_FIELDS: [&str; 5] = ["method", "expected_codes", "expected_body", "follow_redirects", "header"];

/// Headers that a probe writes itself, in lower case.
const OWN_HEADERS: [&str; 9] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Where observers can be.
#[derive(Debug, PartialEq, Eq)]
pub struct Region {
    /// As the platform's health checks call it.
    pub name: &'static str,
    /// The platform's location hint for objects that is nearest to it. Some regions share one.
    pub hint: &'static str,
    /// In words.
    pub title: &'static str,
}

/// Every region.
pub static REGIONS: [Region; 13] = [
    Region { name: "WNAM", hint: "wnam", title: "Western North America" },
    Region { name: "ENAM", hint: "enam", title: "Eastern North America" },
    Region { name: "WEU", hint: "weur", title: "Western Europe" },
    Region { name: "EEU", hint: "eeur", title: "Eastern Europe" },
    Region { name: "NSAM", hint: "sam", title: "Northern South America" },
    Region { name: "SSAM", hint: "sam", title: "Southern South America" },
    Region { name: "OC", hint: "oc", title: "Oceania" },
    Region { name: "ME", hint: "me", title: "Middle East" },
    Region { name: "NAF", hint: "afr", title: "Northern Africa" },
    Region { name: "SAF", hint: "afr", title: "Southern Africa" },
    Region { name: "IN", hint: "apac", title: "India" },
    Region { name: "SEAS", hint: "apac", title: "South East Asia" },
    Region { name: "NEAS", hint: "apac", title: "North East Asia" },
];
/// Stands for every region in a list of regions.
const ALL_REGIONS: &str = "ALL_REGIONS";
const DEFAULT_REGION: &str = "WEU";

impl Region {
    /// The region of this name, whatever its case.
    pub fn named(name: &str) -> Option<&'static Self> {
        REGIONS.iter().find(|region| region.name.eq_ignore_ascii_case(name))
    }
}

/// A check that is valid, with every default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What follows `CHECK_` in its var's name, in lower case.
    pub name: String,
    /// What is looked at.
    pub target: Target,
    /// Seconds from one probe of an observer to its next, 5 to 3,600.
    pub interval: u32,
    /// Seconds that a probe may take, 1 to 10, less than the interval.
    pub timeout: u32,
    /// How often a probe is repeated at once when it took too long, 0 to 5.
    pub retries: u32,
    /// So many probes of an observer in a row must fail before it says that the origin is unhealthy.
    pub consecutive_fails: u32,
    /// So many must succeed before it says that the origin is healthy.
    pub consecutive_successes: u32,
    /// What an HTTP answer must be.
    pub http: HttpRules,
    /// Where the observers are; at least one, none twice.
    pub regions: Vec<&'static Region>,
    /// Nothing is probed.
    pub suspended: bool,
    /// What its owner says about it; may be empty.
    pub description: String,
}

/// What a check looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An HTTP server's answer.
    Http(Url),
    /// Whether a TCP connection comes about.
    Tcp {
        /// A name or an address, IPv6 in brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

/// Of a check that speaks HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpRules {
    /// Ask with `HEAD` instead of `GET`.
    pub head: bool,
    /// Status codes (`200`) and classes of them (`2xx`) that are healthy.
    pub expected_codes: Vec<String>,
    /// Text that must be in the body, whatever its case; empty: none.
    pub expected_body: String,
    /// Go where an answer leads, instead of judging it.
    pub follow_redirects: bool,
    /// Headers that the request carries.
    pub headers: Vec<(String, String)>,
}

/// A URL in its parts, as a probe needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// `https`.
    pub secure: bool,
    /// A name or an address, IPv6 in brackets; in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query, as they are sent.
    pub path: String,
}

impl Url {
    /// Reads a URL that is written as it is sent: ASCII, without user and fragment. `None` for anything else.
    pub fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let (address, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = match host_and_port(address) {
            Some((host, port)) => (host, port),
            None => (is_host(address).then_some(address)?, if secure { 443 } else { 80 }),
        };
        let fits = text.len() <= URL_MAX && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        fits.then(|| Self { secure, host: host.to_ascii_lowercase(), port, path })
    }

    /// As the `Host` header names it: with its port, unless that is the usual one.
    fn authority(&self) -> String {
        let usual = if self.secure { 443 } else { 80 };
        if self.port == usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// Whether both are on one server.
    fn is_beside(&self, other: &Self) -> bool {
        (self.secure, &self.host, self.port) == (other.secure, &other.host, other.port)
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(formatter, "{scheme}://{}{}", self.authority(), self.path)
    }
}

/// `host:port` with a port that can be.
fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    // The last colon of a bare IPv6 address is not a port's.
    let digits = !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| digits && *port > 0)?;
    is_host(host).then_some((host, port))
}

/// A name, an IPv4 address, or an IPv6 address in brackets.
fn is_host(host: &str) -> bool {
    let fits = (1..=HOST_MAX).contains(&host.len());
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return fits && address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    fits && host.strip_suffix('.').unwrap_or(host).split('.').all(label)
}

impl Check {
    /// The status codes that it expects, as they are shown; empty for a check that does not speak HTTP.
    pub fn expected_codes(&self) -> String {
        self.http.expected_codes.join(", ")
    }

    /// Whether a status code is one of the expected.
    pub fn expects(&self, code: u16) -> bool {
        let code = code.to_string();
        self.http.expected_codes.iter().any(|expected| {
            expected.len() == code.len()
                && expected.bytes().zip(code.bytes()).all(|(want, got)| want == b'x' || want == got)
        })
    }

    /// The interval in milliseconds.
    pub fn interval_ms(&self) -> u64 {
        u64::from(self.interval) * 1_000
    }

    /// What a probe may take, in milliseconds.
    pub fn timeout_ms(&self) -> u32 {
        self.timeout * 1_000
    }

    /// The longest time from one result of a live observer to its next, in milliseconds.
    pub fn longest_gap_ms(&self) -> u64 {
        self.interval_ms().max(u64::from((1 + self.retries) * self.timeout_ms()))
    }

    /// The headers that go to a URL: none of them go to another server that an answer leads to.
    fn headers(&self, url: &Url) -> impl Iterator<Item = &(String, String)> {
        let own = matches!(&self.target, Target::Http(own) if own.is_beside(url));
        self.http.headers.iter().filter(move |_| own)
    }

    /// The HTTP request that an observer sends. `who` tells the origin's owner which observer it was.
    pub fn request(&self, url: &Url, who: &str) -> String {
        let method = if self.http.head { "HEAD" } else { "GET" };
        let mut request = format!("{method} {} HTTP/1.1\r\n", url.path);
        let mut add = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                request.push_str(part);
            }
        };
        let has = |wanted: &str| self.headers(url).any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        if !has("host") {
            add("Host", &url.authority());
        }
        if !has("accept") {
            add("Accept", "*/*");
        }
        add("User-Agent", &format!("Anteroom-Health-Check/1 ({who})"));
        add("Accept-Encoding", "identity");
        add("Connection", "close");
        for (name, value) in self.headers(url) {
            add(name, value);
        }
        request.push_str("\r\n");
        request
    }
}

/// All checks of a deployment.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    checks: Vec<Check>,
}

impl Checks {
    /// Builds the checks from all vars of the Worker; vars whose names do not start with `CHECK_` are passed over.
    ///
    /// A check with errors is left out and leaves the others unharmed. Of two with the same name the later one is an
    /// error; so is every one after the first [`MAX_CHECKS`]. The errors of all checks are returned too.
    pub fn from_vars(vars: impl Iterator<Item = (String, Value)>) -> (Self, Vec<ConfigError>) {
        let mut by_name: LiteMap<String, Value> = LiteMap::new();
        for (name, value) in vars.filter(|(name, _)| name.starts_with(Part::Check.var_prefix())) {
            by_name.insert(name, value);
        }
        let (mut all, mut errors) = (Self::default(), Vec::new());
        for (var_name, value) in by_name.iter() {
            match parse_check(var_name, value).and_then(|check| all.fitting(check)) {
                Ok(check) => all.checks.push(check),
                Err(found) => errors.extend(found),
            }
        }
        (all, errors)
    }

    fn fitting(&self, check: Check) -> Result<Check, Vec<ConfigError>> {
        let (message, fix) = if self.get(&check.name).is_some() {
            (
                "is the name of another check too: names are compared in lower case".to_owned(),
                "rename one of the two vars".to_owned(),
            )
        } else if self.checks.len() >= MAX_CHECKS {
            (
                format!("is one check too many: a deployment has at most {MAX_CHECKS}"),
                "remove a check".to_owned(),
            )
        } else {
            return Ok(check);
        };
        let value = format!("\"{}\"", check.name);
        Err(vec![ConfigError {
            part: Part::Check,
            name: check.name,
            field: "name".to_owned(),
            value,
            message,
            fix,
        }])
    }

    /// The check of this name (in lower case).
    pub fn get(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }

    /// The checks that are valid, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter()
    }

    /// How many are valid.
    pub fn len(&self) -> usize {
        self.checks.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty()
    }
}

/// Reads one check: the var `CHECK_ORIGIN` with a table becomes the check `origin`.
///
/// # Errors
/// Every error of the check: unknown fields, wrong types, values out of range, conflicts, what is missing.
pub fn parse_check(var_name: &str, value: &Value) -> Result<Check, Vec<ConfigError>> {
    let (name, mut table) = Table::open(Part::Check, var_name, value)?;
    table.unknown(&FIELDS);
    if let Some(value) = table.get("allow_insecure").filter(|value| value.as_bool() != Some(false)) {
        let message = "is not available: the platform verifies every certificate";
        table.refuse(
            "allow_insecure",
            value,
            message,
            "remove it, and give the origin a certificate that is trusted",
        );
    }
    let target = target(&mut table);
    let is_tcp = table.get("tcp").is_some();
    let check = Check {
        name,
        target,
        interval: whole(&mut table, "interval", INTERVAL, 60),
        timeout: whole(&mut table, "timeout", TIMEOUT, 5),
        retries: whole(&mut table, "retries", RETRIES, 2),
        consecutive_fails: whole(&mut table, "consecutive_fails", CONSECUTIVE, 1),
        consecutive_successes: whole(&mut table, "consecutive_successes", CONSECUTIVE, 1),
        http: if is_tcp { HttpRules::default() } else { http_rules(&mut table) },
        regions: regions(&mut table),
        suspended: table.flag("suspended"),
        description: text(&mut table, "description", "the shop's own server"),
    };
    if is_tcp {
        for field in HTTP_FIELDS {
            if let Some(value) = table.get(field) {
                let fix = format!("remove {field}, or write url instead of tcp");
                table.refuse(
                    field,
                    value,
                    "is about HTTP, and a check of a tcp address does not speak it",
                    &fix,
                );
            }
        }
    }
    // A value that was refused stands for another one: one error for it is enough.
    let is_refused = table.errors.iter().any(|error| matches!(error.field.as_str(), "interval" | "timeout"));
    if check.timeout >= check.interval && !is_refused {
        let message = format!("must be less than interval = {}", check.interval);
        let fix = format!("set timeout to at most {}, or interval to more", check.interval - 1);
        table.refuse("timeout", &Value::from(check.timeout), message, &fix);
    }
    if check.http.head && !check.http.expected_body.is_empty() {
        let message = "conflicts with method = \"HEAD\": its answers have no body";
        let value = Value::from(check.http.expected_body.as_str());
        table.refuse("expected_body", &value, message, "set method to \"GET\", or remove expected_body");
    }
    if table.errors.is_empty() { Ok(check) } else { Err(table.errors) }
}

fn whole(table: &mut Table, field: &str, range: RangeInclusive<u32>, default: u32) -> u32 {
    table.whole(field, range, Some(default))
}

/// Short text; empty when it is not set.
fn text(table: &mut Table, field: &str, example: &str) -> String {
    let Some(text) = table.text(field, example) else { return String::new() };
    if text.len() > TEXT_MAX {
        let message = format!("must be at most {TEXT_MAX} bytes long, it has {}", text.len());
        table.refuse(field, &Value::from(text), message, "shorten it");
        return String::new();
    }
    text.to_owned()
}

fn target(table: &mut Table) -> Target {
    let nothing = Target::Tcp { host: String::new(), port: 0 };
    match (table.get("url"), table.get("tcp")) {
        (None, None) => {
            let fix = "add it, for example url = \"https://origin.example.com/\", or tcp = \"origin.example.com:5432\"";
            table.refuse_shown("url", "(not set)".to_owned(), "or tcp is required".to_owned(), fix);
            nothing
        }
        (Some(_), Some(tcp)) => {
            let message = "conflicts with url: a check looks at one of them";
            table.refuse("tcp", tcp, message, "remove one of the two, or write two checks");
            nothing
        }
        (Some(_), None) => url(table).map_or(nothing, Target::Http),
        (None, Some(_)) => tcp(table).unwrap_or(nothing),
    }
}

fn url(table: &mut Table) -> Option<Url> {
    let given = table.text("url", "https://origin.example.com/")?;
    let start = given.split('#').next().unwrap_or_default();
    let write = |url: &str| format!("write url = \"{}\"", shown_text(url));
    let (message, fix) = if let Some(url) = Url::read(given) {
        if url.port != MAIL_PORT {
            return Some(url);
        }
        mail_port()
    } else if given.len() > URL_MAX {
        (
            format!("must be at most {URL_MAX} bytes long, it has {}", given.len()),
            "name a shorter address of the origin".to_owned(),
        )
    } else if start.len() < given.len() && Url::read(start).is_some() {
        ("must not have a fragment: it is not sent".to_owned(), write(start))
    } else if !given.contains("://") && Url::read(&format!("https://{given}")).is_some() {
        ("must be an http:// or https:// URL".to_owned(), write(&format!("https://{given}")))
    } else if given.split('/').nth(2).is_some_and(|address| address.contains('@')) {
        (
            "must not have a user: anyone who can read this file would have the password".to_owned(),
            "remove what stands before the @".to_owned(),
        )
    } else {
        (
            "must be an http:// or https:// URL in ASCII, without spaces".to_owned(),
            "write it as the browser's address bar copies it, for example url = \"https://origin.example.com/\""
                .to_owned(),
        )
    };
    table.refuse("url", &Value::from(given), message, &fix);
    None
}

fn tcp(table: &mut Table) -> Option<Target> {
    let given = table.text("tcp", "origin.example.com:5432")?;
    let (message, fix) = match host_and_port(given) {
        Some((_, MAIL_PORT)) => mail_port(),
        Some((host, port)) => return Some(Target::Tcp { host: host.to_ascii_lowercase(), port }),
        None => (
            "must be a host and a port".to_owned(),
            "write tcp = \"origin.example.com:5432\", an IPv6 address in brackets".to_owned(),
        ),
    };
    table.refuse("tcp", &Value::from(given), message, &fix);
    None
}

fn mail_port() -> (String, String) {
    let message = format!("must not be port {MAIL_PORT}: the platform lets nobody connect to it");
    (message, "name another port".to_owned())
}

fn http_rules(table: &mut Table) -> HttpRules {
    HttpRules {
        head: table.choice("method", ("GET", false), &[("HEAD", true)], &[]),
        expected_codes: expected_codes(table),
        expected_body: text(table, "expected_body", "Welcome"),
        follow_redirects: table.flag("follow_redirects"),
        headers: headers(table),
    }
}

/// The texts of a list; a single text is a list too. `None` when it is not set, or wrong and refused.
fn list<'a>(table: &mut Table<'a>, field: &str, most: usize, example: &str) -> Option<Vec<&'a str>> {
    let value = table.get(field)?;
    let texts: Option<Vec<&str>> = match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(values) => values.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let texts = texts.filter(|texts| (1..=most).contains(&texts.len()));
    if texts.is_none() {
        let message = format!("must be a list of 1 to {most} texts");
        table.refuse(field, value, message, &format!("write {field} = {example}"));
    }
    texts
}

fn expected_codes(table: &mut Table) -> Vec<String> {
    let field = "expected_codes";
    let Some(codes) = list(table, field, CODES_MAX, "[\"200\"]") else { return vec!["200".to_owned()] };
    let mut known: Vec<String> = Vec::new();
    for code in codes {
        let lower = code.to_ascii_lowercase();
        let fits = match lower.as_bytes() {
            [b'1'..=b'5', rest @ ..] => {
                rest == b"xx" || (rest.len() == 2 && rest.iter().all(u8::is_ascii_digit))
            }
            _ => false,
        };
        if !fits {
            let message = "must be status codes from \"100\" to \"599\", or classes such as \"2xx\"";
            table.refuse(field, &Value::from(code), message, "write expected_codes = [\"2xx\", \"302\"]");
        } else if !known.contains(&lower) {
            known.push(lower);
        }
    }
    known
}

fn headers(table: &mut Table) -> Vec<(String, String)> {
    let example = "write header = { Host = \"shop.example.com\" }";
    let fields = match table.get("header") {
        None => return Vec::new(),
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            table.refuse("header", other, "must be a table of names and texts", example);
            return Vec::new();
        }
    };
    let mut headers = Vec::new();
    for (name, value) in fields {
        let field = format!("header.{}", shown_text(name));
        let is_token = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        if !is_token {
            table.refuse(&field, value, "is not the name of a header", example);
            continue;
        }
        let lower = name.to_ascii_lowercase();
        if OWN_HEADERS.contains(&lower.as_str()) {
            table.refuse(&field, value, "is a header that the check writes itself", "remove it");
            continue;
        }
        let values: Option<Vec<&str>> = match value {
            Value::String(text) => Some(vec![text]),
            Value::Array(values) => values.iter().map(Value::as_str).collect(),
            _ => None,
        };
        let sendable = |text: &&str| {
            text.len() <= TEXT_MAX && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        };
        let Some(values) = values.filter(|values| !values.is_empty() && values.iter().all(sendable)) else {
            let message =
                format!("must be text in ASCII of at most {TEXT_MAX} bytes, or a list of such texts");
            table.refuse(&field, value, message, example);
            continue;
        };
        if lower == "host" && (values.len() != 1 || !values.iter().all(|host| is_authority(host))) {
            table.refuse(&field, value, "must be one host, with a port if it has one", example);
            continue;
        }
        headers.extend(values.into_iter().map(|text| (name.clone(), text.to_owned())));
    }
    if headers.len() > HEADERS_MAX {
        let message = format!("must be at most {HEADERS_MAX} headers, these are {}", headers.len());
        table.refuse_shown("header", shown(&Value::Object(fields.clone())), message, "remove some");
    }
    headers
}

fn is_authority(text: &str) -> bool {
    is_host(text) || host_and_port(text).is_some()
}

fn regions(table: &mut Table) -> Vec<&'static Region> {
    let field = "regions";
    let given =
        list(table, field, REGIONS.len(), "[\"WEU\", \"ENAM\"]").unwrap_or_else(|| vec![DEFAULT_REGION]);
    let mut known: Vec<&'static Region> = Vec::new();
    for name in given {
        if name.eq_ignore_ascii_case(ALL_REGIONS) {
            known = REGIONS.iter().collect();
            continue;
        }
        match Region::named(name) {
            Some(region) if known.contains(&region) => {}
            Some(region) => known.push(region),
            None => {
                let names: Vec<&str> = REGIONS.iter().map(|region| region.name).collect();
                let meant = meant(name, &names);
                let fix = match meant {
                    Some(meant) => format!("did you mean \"{meant}\"? The names are {}", names.join(", ")),
                    None => format!("write one of {}, or {ALL_REGIONS}", names.join(", ")),
                };
                table.refuse(field, &Value::from(name), "is not a region that Anteroom knows", &fix);
            }
        }
    }
    known
}

/// The region that somebody most likely meant: near in spelling, or by its location hint.
fn meant<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    let lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let by_hint = REGIONS.iter().find(|region| region.hint.eq_ignore_ascii_case(given));
    let near = by_hint.map(|region| region.name).or_else(|| nearest(given, &lower));
    names.iter().find(|name| near.is_some_and(|near| name.eq_ignore_ascii_case(near))).copied()
}
