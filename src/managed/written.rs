//! The book's rooms and events as vars would describe them, and the deployment's as the API shows them.

use litemap::LiteMap;
use serde_json::{Map, Value, json};

use super::entry::{Entry, OWN, Rule, Rules, derived};
use super::fields::{self, TURNSTILE, pointer_to};
use super::reply::{Code, Problem};
use crate::config::{ConfigError, DEFAULTS, Defaults, Part, Rooms};
use crate::room::LANGUAGES;

/// The names of pages that were made at run time begin so.
pub const MADE_PAGE: &str = "made-";
/// The longest page, in bytes.
const PAGE_MAX: usize = 1 << 20;

/// Their values are the same in capitals and small letters.
const ANY_CASE: [&str; 3] = ["queueing_method", "turnstile_mode", "turnstile_action"];
/// Of these a room may have another value among its own than Cloudflare's clients can send: a range, a built page.
const ALSO_OWN: [&str; 3] = ["total_active_users", "new_users_per_minute", "custom_page_html"];
const COOKIE: &str = "cookie_attributes";
const ROUTES: &str = "additional_routes";
const PAGE: &str = "custom_page_html";
const SITEKEY: &str = "turnstile_sitekey";
const LANGUAGE: &str = "default_template_language";
const RULES: &str = "bypass_rules";

/// The name of the page that an entry brings, if it does.
pub(super) fn page_name(entry: &Entry) -> Option<(String, &str)> {
    let html = entry.get(PAGE)?.as_str().filter(|html| !html.is_empty())?;
    Some((format!("{MADE_PAGE}{}-{}", entry.id, entry.revision), html))
}

/// A room's table. `rules`: those by which requests go past it.
pub(super) fn table_of_room(room: &Entry, rules: Option<&Rules>) -> Value {
    let has_sitekey = room.own().is_some_and(|own| own.contains_key(SITEKEY));
    let mut table = table_of(room, fields::ROOM, has_sitekey);
    if let Some(rules) = rules.filter(|rules| !rules.rules.is_empty()) {
        let rules = rules.rules.iter().map(|rule| {
            let part = |name: &&str| Some(((*name).to_owned(), rule.fields.get(*name).filter(|value| !value.is_null())?.clone()));
            Value::Object(["expression", "description", "enabled"].iter().filter_map(part).collect())
        });
        table.insert(RULES.to_owned(), Value::Array(rules.collect()));
    }
    if let Some(domain) = shared_domain(&table) {
        let cookie = table.entry(COOKIE).or_insert_with(|| json!({}));
        if let Some(cookie) = cookie.as_object_mut() {
            cookie.entry("domain").or_insert_with(|| Value::from(domain));
        }
    }
    Value::Object(table)
}

/// An event's table.
pub(super) fn table_of_event(event: &Entry, room: Option<&Entry>) -> Value {
    let has_sitekey = room.and_then(Entry::own).is_some_and(|own| own.contains_key(SITEKEY));
    let mut table = table_of(event, fields::EVENT, has_sitekey);
    table.insert("room".to_owned(), Value::from(event.room.as_str()));
    Value::Object(table)
}

fn table_of(entry: &Entry, known: &[fields::Field], has_sitekey: bool) -> Map<String, Value> {
    let mut table = Map::new();
    for field in known {
        let Some(value) = entry.get(field.name) else { continue };
        let is_empty = value.as_str().is_some_and(str::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        let value = match field.name {
            PAGE => match page_name(entry) {
                Some((name, _)) => Value::from(name),
                None => continue,
            },
            // Empty is what these are without a value.
            "cookie_suffix" | ROUTES if is_empty => continue,
            name if !has_sitekey && TURNSTILE.iter().any(|(turnstile, _)| *turnstile == name) => continue,
            name if ANY_CASE.contains(&name) => lowered(value),
            LANGUAGE => {
                let is_it = |known: &&&str| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(known));
                LANGUAGES.iter().find(is_it).map_or_else(|| value.clone(), |known| Value::from(*known))
            }
            COOKIE => match value.as_object() {
                Some(cookie) => Value::Object(
                    cookie.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), lowered(value))).collect(),
                ),
                None => value.clone(),
            },
            ROUTES => without_nulls(value),
            _ => whole(value),
        };
        table.insert(field.name.to_owned(), value);
    }
    for (name, value) in entry.own().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        match (table.get_mut(name), value) {
            (Some(Value::Object(cookie)), Value::Object(own)) if name == COOKIE => {
                cookie.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            _ => {
                table.insert(name.clone(), value.clone());
            }
        }
    }
    table
}

fn lowered(value: &Value) -> Value {
    value.as_str().map_or_else(|| value.clone(), |text| Value::from(text.to_ascii_lowercase()))
}

/// `5.0` as `5`: some clients send whole numbers so.
fn whole(value: &Value) -> Value {
    let number = value.as_f64().filter(|number| !value.is_u64() && number.fract() == 0.0 && *number >= 0.0);
    number.map_or_else(|| value.clone(), |number| Value::from(number as u64))
}

/// Routes without what was sent as null.
fn without_nulls(routes: &Value) -> Value {
    let Some(routes) = routes.as_array() else { return routes.clone() };
    let route = |route: &Value| match route.as_object() {
        Some(fields) => Value::Object(
            fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect(),
        ),
        None => route.clone(),
    };
    Value::Array(routes.iter().map(route).collect())
}

/// The longest domain that all hosts of a room belong to, where it has several: Cloudflare's clients cannot name it.
fn shared_domain(table: &Map<String, Value>) -> Option<String> {
    let of = |value: &Map<String, Value>| {
        Some(value.get("host")?.as_str()?.trim_end_matches('.').to_ascii_lowercase())
    };
    let routes = table.get(ROUTES)?.as_array()?;
    let first = of(table)?;
    let others = routes.iter().filter_map(|route| of(route.as_object()?)).filter(|host| *host != first);
    let others: Vec<String> = others.collect();
    if others.is_empty() {
        return None;
    }
    let mut shared: Vec<&str> = first.rsplit('.').collect();
    for other in &others {
        let same = shared.iter().zip(other.rsplit('.')).take_while(|(one, other)| **one == *other).count();
        shared.truncate(same);
    }
    shared.reverse();
    (shared.len() >= 2).then(|| shared.join("."))
}

/// What is wrong with an entry that no table of vars would show.
pub(super) fn judge(entry: &Entry, room: Option<&Entry>) -> Vec<Problem> {
    let own = match entry.fields.get(OWN) {
        None | Some(Value::Null) => None,
        Some(Value::Object(own)) => Some(own),
        Some(_) => return vec![Problem::at(Code::Value, pointer_to(OWN), "anteroom must be an object")],
    };
    let is_event = !entry.room.is_empty();
    let theirs = if is_event { fields::EVENT } else { fields::ROOM };
    let has_sitekey = room.unwrap_or(entry).own().is_some_and(|own| own.contains_key(SITEKEY));
    let mut problems = if has_sitekey { Vec::new() } else { fields::judge_turnstile(entry) };
    for (name, value) in own.into_iter().flatten() {
        let says = if name == RULES {
            "stands in the room's rules"
        } else if theirs.iter().any(|field| field.name == name)
            && name != COOKIE
            && !ALSO_OWN.contains(&name.as_str())
            && !value.is_null()
        {
            "stands outside of anteroom"
        } else if is_event && name == "room" {
            "is not for events of this kind: the address says it"
        } else {
            continue;
        };
        problems.push(Problem::at(Code::Value, format!("/{OWN}{}", pointer_to(name)), format!("{name} {says}")));
    }
    match entry.get(PAGE).map(Value::as_str) {
        Some(None) => problems.push(Problem::at(Code::Value, pointer_to(PAGE), "custom_page_html must be text")),
        Some(Some(html)) if html.len() > PAGE_MAX => {
            let message = format!("custom_page_html may be {PAGE_MAX} bytes long, this one has {}", html.len());
            problems.push(Problem::at(Code::Bound, pointer_to(PAGE), message));
        }
        _ => {}
    }
    problems
}

/// What the table of fields says, for whoever has sent them. `names`: puts names in the place of ids.
pub(super) fn problem(error: &ConfigError, names: &dyn Fn(&str) -> String) -> Problem {
    let ConfigError { part, field, message, fix, excerpt, .. } = error;
    let (first, rest) = field.split_once('.').unwrap_or((field, ""));
    let theirs = if *part == Part::Event { fields::EVENT } else { fields::ROOM };
    let is_theirs = theirs.iter().any(|known| known.name == first) || first == "name";
    let pointer = match (first, rest) {
        (RULES, "") => pointer_to("expression"),
        (RULES, rest) => pointer_to(rest),
        (ROUTES, _) => pointer_to(ROUTES),
        (COOKIE, "domain" | "partitioned") => format!("/{OWN}/{COOKIE}/{rest}"),
        (first, "") if is_theirs => pointer_to(first),
        (first, rest) if is_theirs => format!("/{first}/{rest}"),
        (first, "") => format!("/{OWN}{}", pointer_to(first)),
        (first, rest) => format!("/{OWN}/{first}/{rest}"),
    };
    let code = if message.contains("already") || message.contains("is before the end") { Code::Taken } else { Code::Value };
    let excerpt = if excerpt.is_empty() { String::new() } else { format!("\n{excerpt}") };
    Problem::at(code, pointer, names(&format!("{field} {message}. Fix: {fix}{excerpt}")))
}

/// What a deploy describes.
#[derive(Debug, Default)]
pub struct Deployed {
    pub(super) vars: Vec<(String, Value)>,
    pub(super) rooms: Vec<Entry>,
    pub(super) events: Vec<Entry>,
    pub(super) rules: LiteMap<String, Rules>,
    /// Whether search engines' crawlers go past all rooms (`SEARCH_ENGINE_CRAWLER_BYPASS`).
    pub crawlers_bypass: bool,
}

impl Deployed {
    /// Reads the vars of a deployment: rooms, events, and what rooms share; others are passed over.
    pub fn new(vars: Vec<(String, Value)>) -> Self {
        let (rooms, _) = Rooms::from_vars(vars.iter().cloned());
        let mut all = Self::default();
        let shared = vars.iter().find(|(name, _)| name == DEFAULTS);
        let shared = shared.map_or_else(Defaults::default, |(_, value)| Defaults::read(value));
        for (var, value) in &vars {
            if let Some(name) = var.strip_prefix(Part::Room.var_prefix())
                && let Some(room) = rooms.get(&name.to_ascii_lowercase())
                && let Value::Object(table) = shared.under(value)
            {
                all.rooms.push(Entry { name: room.name.clone(), ..split(table, var, "room", &room.name, &mut all.rules) });
            } else if let Some(name) = var.strip_prefix(Part::Event.var_prefix())
                && let Value::Object(mut table) = value.clone()
            {
                let name = name.to_ascii_lowercase();
                let of = table.remove("room").and_then(|room| Some(room.as_str()?.to_ascii_lowercase()));
                let room = of.as_deref().and_then(|of| rooms.get(of));
                let Some(room) = room.filter(|room| room.events.iter().any(|event| event.name == name)) else { continue };
                let id = derived("room", &room.name);
                let entry = split(table, var, "event", &name, &mut all.rules);
                all.events.push(Entry { room: id, name, ..entry });
            }
        }
        all.vars = vars;
        all
    }
}

/// A table of vars as an entry.
fn split(table: Map<String, Value>, var: &str, kind: &str, name: &str, rules: &mut LiteMap<String, Rules>) -> Entry {
    let id = derived(kind, name);
    let theirs = if kind == "room" { fields::ROOM } else { fields::EVENT };
    let (mut own, mut fields) = (Map::new(), Map::new());
    if kind == "room" {
        fields.insert("host".to_owned(), Value::from(""));
    }
    for (field, value) in table {
        let is_theirs = theirs.iter().any(|known| known.name == field);
        match (field.as_str(), value) {
            (RULES, Value::Array(given)) => {
                let rule = |(place, rule): (usize, &Value)| Rule {
                    id: derived("rule", &format!("{name} {place}")),
                    version: 1,
                    fields: rule_fields(rule),
                    modified: 0,
                };
                let given = given.iter().enumerate().map(rule).collect();
                rules.insert(id.clone(), Rules { rules: given, ..Rules::default() });
            }
            (PAGE, value) => {
                own.insert(field, value);
            }
            (_, value @ Value::Object(_)) if is_theirs && field != COOKIE => {
                fields.insert(field.clone(), value.get("max").cloned().unwrap_or_default());
                own.insert(field, value);
            }
            (COOKIE, Value::Object(cookie)) => {
                let (theirs, ours): (Map<_, _>, Map<_, _>) =
                    cookie.into_iter().partition(|(name, _)| ["samesite", "secure"].contains(&name.as_str()));
                fields.insert(field.clone(), Value::Object(theirs));
                if !ours.is_empty() {
                    own.insert(field, Value::Object(ours));
                }
            }
            (_, value) if is_theirs => {
                fields.insert(field, value);
            }
            (_, value) => {
                own.insert(field, value);
            }
        }
    }
    if !own.is_empty() {
        fields.insert(OWN.to_owned(), Value::Object(own));
    }
    Entry { id, fields, var: var.to_owned(), ..Entry::default() }
}

fn rule_fields(rule: &Value) -> Map<String, Value> {
    let mut fields = match rule {
        Value::Object(fields) => fields.clone(),
        expression => Map::from_iter([("expression".to_owned(), expression.clone())]),
    };
    fields.insert("action".to_owned(), Value::from(super::endpoints::ACTION));
    fields
}
