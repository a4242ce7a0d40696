//! A check's var, read and validated. All errors of a check are found in one go.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::check::{Check, HttpRules, REGIONS, Region, Target};
use crate::config::{ConfigError, Part, Table};
use crate::text::{nearest, shown_text};
use crate::url::{URL_MAX, Url, host_and_port, is_host};

const TEXT_MAX: usize = 1_024;
const HEADERS_MAX: usize = 16;
const CODES_MAX: usize = 16;
const INTERVAL: RangeInclusive<u32> = 5..=3_600;
const TIMEOUT: RangeInclusive<u32> = 1..=10;
const RETRIES: RangeInclusive<u32> = 0..=5;
const CONSECUTIVE: RangeInclusive<u32> = 1..=10;
/// The platform lets nobody connect to this port: it is for sending mail.
const MAIL_PORT: u16 = 25;

/// Stands for every region in a list of regions.
const ALL_REGIONS: &str = "ALL_REGIONS";
const DEFAULT_REGION: &str = "WEU";

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

/// Reads one check: the var `CHECK_ORIGIN` with a table becomes the check `origin`.
///
/// # Errors
/// Every error of the check: unknown fields, wrong types, values out of range, conflicts, what is missing.
pub fn parse_check(var_name: &str, value: &Value) -> Result<Check, Vec<ConfigError>> {
    let (name, mut table) = Table::open(Part::Check, var_name, value)?;
    table.unknown(&FIELDS);
    if let Some(value) = table.get("allow_insecure").filter(|value| value.as_bool() != Some(false)) {
        table.refuse_as("allow_insecure", value, || {
            say(
                "is not available: the platform verifies every certificate",
                "remove it, and give the origin a certificate that is trusted",
            )
        });
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
                table.refuse_as(field, value, || {
                    let fix = format!("remove {field}, or write url instead of tcp");
                    say("is about HTTP, and a check of a tcp address does not speak it", &fix)
                });
            }
        }
    }
    // A value that was refused stands for another one: one error for it is enough.
    let is_refused = table.errors.iter().any(|error| matches!(error.field.as_str(), "interval" | "timeout"));
    if check.timeout >= check.interval && !is_refused {
        table.refuse_as("timeout", &Value::from(check.timeout), || {
            say(
                &format!("must be less than interval = {}", check.interval),
                &format!("set timeout to at most {}, or interval to more", check.interval - 1),
            )
        });
    }
    if check.http.head && !check.http.expected_body.is_empty() {
        table.refuse_as("expected_body", &Value::from(check.http.expected_body.as_str()), || {
            say(
                "conflicts with method = \"HEAD\": its answers have no body",
                "set method to \"GET\", or remove expected_body",
            )
        });
    }
    if table.errors.is_empty() { Ok(check) } else { Err(table.errors) }
}

/// What a value must be, and what to do about it.
fn say(message: &str, fix: &str) -> (String, String) {
    (message.to_owned(), fix.to_owned())
}

fn whole(table: &mut Table, field: &str, range: RangeInclusive<u32>, default: u32) -> u32 {
    table.whole(field, range, Some(default))
}

/// Short text; empty when it is not set.
fn text(table: &mut Table, field: &str, example: &str) -> String {
    let Some(text) = table.text(field, example) else { return String::new() };
    if text.len() > TEXT_MAX {
        table.refuse_as(field, &Value::from(text), || {
            say(&format!("must be at most {TEXT_MAX} bytes long, it has {}", text.len()), "shorten it")
        });
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
            table.refuse_as("tcp", tcp, || {
                say(
                    "conflicts with url: a check looks at one of them",
                    "remove one of the two, or write two checks",
                )
            });
            nothing
        }
        (Some(_), None) => url(table).map_or(nothing, Target::Http),
        (None, Some(_)) => tcp(table).unwrap_or(nothing),
    }
}

fn url(table: &mut Table) -> Option<Url> {
    let given = table.text("url", "https://origin.example.com/")?;
    let url = Url::read(given).filter(|url| url.port != MAIL_PORT);
    if url.is_none() {
        table.refuse_as("url", &Value::from(given), || what_is_wrong_with(given));
    }
    url
}

fn what_is_wrong_with(url: &str) -> (String, String) {
    let start = url.split('#').next().unwrap_or_default();
    let write = |url: &str| format!("write url = \"{}\"", shown_text(url));
    let secure = format!("https://{url}");
    if Url::read(url).is_some() {
        mail_port()
    } else if url.len() > URL_MAX {
        say(
            &format!("must be at most {URL_MAX} bytes long, it has {}", url.len()),
            "name a shorter address of the origin",
        )
    } else if start.len() < url.len() && Url::read(start).is_some() {
        say("must not have a fragment: it is not sent", &write(start))
    } else if !url.contains("://") && Url::read(&secure).is_some() {
        say("must be an http:// or https:// URL", &write(&secure))
    } else if url.split('/').nth(2).is_some_and(|address| address.contains('@')) {
        say(
            "must not have a user: anyone who can read this file would have the password",
            "remove what stands before the @",
        )
    } else {
        say(
            "must be an http:// or https:// URL in ASCII, without spaces",
            "write it as the browser's address bar copies it, for example url = \"https://origin.example.com/\"",
        )
    }
}

fn tcp(table: &mut Table) -> Option<Target> {
    let given = table.text("tcp", "origin.example.com:5432")?;
    let found = host_and_port(given);
    if let Some((host, port)) = found
        && port != MAIL_PORT
    {
        return Some(Target::Tcp { host: host.to_ascii_lowercase(), port });
    }
    table.refuse_as("tcp", &Value::from(given), || match found {
        Some(_) => mail_port(),
        None => say(
            "must be a host and a port",
            "write tcp = \"origin.example.com:5432\", an IPv6 address in brackets",
        ),
    });
    None
}

fn mail_port() -> (String, String) {
    say(&format!("must not be port {MAIL_PORT}: the platform lets nobody connect to it"), "name another port")
}

fn http_rules(table: &mut Table) -> HttpRules {
    HttpRules {
        head: is_head(table),
        expected_codes: expected_codes(table),
        expected_body: text(table, "expected_body", "Welcome"),
        follow_redirects: table.flag("follow_redirects"),
        headers: headers(table),
    }
}

fn is_head(table: &mut Table) -> bool {
    let field = "method";
    let Some(value) = table.get(field) else { return false };
    let head = value.as_str() == Some("HEAD");
    if !head && value.as_str() != Some("GET") {
        table.refuse_as(field, value, || say("must be \"GET\" or \"HEAD\"", "write method = \"GET\""));
    }
    head
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
        table.refuse_as(field, value, || {
            say(&format!("must be a list of 1 to {most} texts"), &format!("write {field} = {example}"))
        });
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
            table.refuse_as(field, &Value::from(code), || {
                say(
                    "must be status codes from \"100\" to \"599\", or classes such as \"2xx\"",
                    "write expected_codes = [\"2xx\", \"302\"]",
                )
            });
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
            table.refuse_as("header", other, || say("must be a table of names and texts", example));
            return Vec::new();
        }
    };
    let mut headers = Vec::new();
    for (name, value) in fields {
        let field = format!("header.{}", shown_text(name));
        let is_token = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        let lower = name.to_ascii_lowercase();
        let values: Option<Vec<&str>> = match value {
            Value::String(text) => Some(vec![text]),
            Value::Array(values) => values.iter().map(Value::as_str).collect(),
            _ => None,
        };
        let sendable = |text: &&str| {
            text.len() <= TEXT_MAX && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        };
        let values = values.filter(|values| !values.is_empty() && values.iter().all(sendable));
        let is_own = OWN_HEADERS.contains(&lower.as_str());
        let is_odd_host = |values: &[&str]| {
            lower == "host" && (values.len() != 1 || !values.iter().all(|host| is_authority(host)))
        };
        let Some(values) = values.filter(|values| is_token && !is_own && !is_odd_host(values)) else {
            table.refuse_as(&field, value, || {
                if !is_token {
                    say("is not the name of a header", example)
                } else if is_own {
                    say("is a header that the check writes itself", "remove it")
                } else if lower == "host" {
                    say("must be one host, with a port if it has one", example)
                } else {
                    say(
                        &format!(
                            "must be text in ASCII of at most {TEXT_MAX} bytes, or a list of such texts"
                        ),
                        example,
                    )
                }
            });
            continue;
        };
        headers.extend(values.into_iter().map(|text| (name.clone(), text.to_owned())));
    }
    if headers.len() > HEADERS_MAX {
        table.refuse_as("header", &Value::from(headers.len()), || {
            say(&format!("is too many headers: a check has at most {HEADERS_MAX}"), "remove some")
        });
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
                table.refuse_as(field, &Value::from(name), || {
                    let names: Vec<&str> = REGIONS.iter().map(|region| region.name).collect();
                    let fix = match meant(name, &names) {
                        Some(meant) => {
                            format!("did you mean \"{meant}\"? The names are {}", names.join(", "))
                        }
                        None => format!("write one of {}, or {ALL_REGIONS}", names.join(", ")),
                    };
                    say("is not a region that Anteroom knows", &fix)
                });
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
