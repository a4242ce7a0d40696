//! The fields of a room for people: in the help of this command, and as a table for the documents.

use std::fmt::Write as _;

use anteroom::config::{FIELDS, Field, InEvents, Kind};
use anteroom::operator::{ENDPOINTS, Endpoint, Needs};
use serde_json::{Map, Value, json};

use crate::shapes::shape;

/// Where the second column of the help begins, and where its lines end.
const COLUMN: usize = 36;
const WIDTH: usize = 118;

/// A field and the name under which it is written down: `cookie_attributes.secure` for one of a table within the room's.
struct Row {
    name: String,
    field: &'static Field,
}

fn rows() -> Vec<Row> {
    let of = |field: &'static Field| match field.kind {
        Kind::Table { of, prefix, .. } => {
            of.iter().map(|inner| Row { name: format!("{prefix}{}", inner.name), field: inner }).collect()
        }
        _ => vec![Row { name: field.name.to_owned(), field }],
    };
    FIELDS.iter().flat_map(of).collect()
}

/// The type, the default and the range of a field. Names and values stand between backticks.
fn facts(field: &Field) -> [String; 3] {
    match field.kind {
        Kind::Flag { default, .. } => ["true/false".to_owned(), format!("`{default}`"), String::new()],
        Kind::Whole { least, most, default, .. } => [
            "whole number".to_owned(),
            default.map_or_else(|| "required".to_owned(), |default| format!("`{default}`")),
            format!("{} to {}", grouped(least), grouped(most)),
        ],
        Kind::Limit { .. } => {
            let (least, most) = field.range().unwrap_or_default();
            let range = format!("{} to {}", grouped(least), grouped(most));
            ["whole number".to_owned(), "required".to_owned(), range]
        }
        Kind::Choice { names, any_case, .. } => {
            let kind = if any_case { "text, in any case" } else { "text" };
            let names: Vec<String> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
            [kind.to_owned(), names.first().cloned().unwrap_or_default(), names.join(", ")]
        }
        Kind::Line { longest, .. } => {
            ["text".to_owned(), "none".to_owned(), format!("one line of up to {longest} characters")]
        }
        Kind::Share { .. } | Kind::Table { .. } | Kind::Own { .. } => field.words.facts.map(str::to_owned),
    }
}

/// `1,000`.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The fields as a table in Markdown, for `docs/configuration.md`.
pub fn markdown() -> String {
    let mut table =
        "| field | meaning | type | default | range |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for Row { name, field } in rows() {
        let see = match field.words.see {
            "" => String::new(),
            see => format!(", [{}]({see})", see.split('#').next().unwrap_or(see)),
        };
        let [kind, default, range] = facts(field);
        let range = if range.is_empty() { range } else { format!("{range} ") };
        let _ = writeln!(table, "| `{name}` | {}{see} | {kind} | {default} | {range}|", field.words.help);
    }
    table
}

/// The fields as they are written in a room's table, each with what it is for.
pub fn help() -> String {
    let mut help = String::new();
    for field in FIELDS {
        if let Kind::Table { of, example, .. } = field.kind {
            entry(&mut help, &format!("{} = {example}", field.name), "");
            for inner in of {
                entry(&mut help, "", &format!("{}: {}", inner.name, text(inner)));
            }
        } else {
            entry(&mut help, &format!("{} = {}", field.name, example(field)), &text(field));
        }
    }
    help
}

/// The fields that an event may have other values for.
pub fn help_of_events() -> String {
    let mut help = String::new();
    for (from, when) in
        [(InEvents::FromStart, "from the start"), (InEvents::FromPrequeue, "from the prequeue on")]
    {
        let names: Vec<&str> =
            FIELDS.iter().filter(|field| field.in_events == Some(from)).map(|field| field.name).collect();
        entry(&mut help, &names.join(", "), &format!("as in a room, {when}"));
    }
    help
}

/// A value as it is written: an example, or the default.
fn example(field: &Field) -> String {
    match field.words.example {
        "" => match facts(field) {
            [_, default, _] if default == "none" => "\"\"".to_owned(),
            [_, default, _] => default.replace('`', ""),
        },
        example => example.to_owned(),
    }
}

/// What a field is for, what it may be, and what holds where it is left out.
fn text(field: &Field) -> String {
    let [_, default, range] = facts(field);
    let mut text = field.words.help.to_owned();
    if matches!(field.kind, Kind::Flag { default: false, .. }) {
        text.insert_str(0, "true: ");
    }
    let range = if default == "required" { format!("{range}, required") } else { range };
    if !range.is_empty() {
        let _ = write!(text, " ({range})");
    }
    match default.as_str() {
        "required" | "none" => {}
        default if default.replace('`', "") == example(field) => {}
        default => {
            let _ = write!(text, "; left out: {default}");
        }
    }
    if let Some(document) = field.words.see.split('#').next().filter(|document| !document.is_empty()) {
        let _ = write!(text, ", docs/{document}");
    }
    text.replace('`', "")
}

/// Appends what is written and what it means, in two columns.
fn entry(help: &mut String, written: &str, text: &str) {
    let mut line = format!("  {written}");
    if text.is_empty() {
        help.push_str(&line);
        help.push('\n');
        return;
    }
    for word in text.split(' ') {
        if line.len() < COLUMN {
            line = format!("{line:COLUMN$}{word}");
        } else if line.len() + 1 + word.len() > WIDTH || line.len() == written.len() + 2 {
            help.push_str(line.trim_end());
            help.push('\n');
            line = format!("{:COLUMN$}{word}", "");
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    help.push_str(line.trim_end());
    help.push('\n');
}

/// The tables of fields and of operators' endpoints as JSON, one entry a line. The build writes it to `build/tables.json`, of
/// which the Worker's description of its API is made. A field is told by a JSON Schema.
pub fn json() -> String {
    let lines = |entries: Vec<String>| entries.join(",\n");
    let fields = FIELDS.iter().map(|field| format!("{:?}: {}", field.name, schema(field))).collect();
    let endpoints = ENDPOINTS.iter().map(|endpoint| endpoint_of(endpoint).to_string()).collect();
    format!("{{ \"fields\": {{\n{}\n}}, \"endpoints\": [\n{}\n] }}\n", lines(fields), lines(endpoints))
}

/// A field as a JSON Schema. `x-any-case`: capitals do not matter; `x-steered`: operators may change it while a room runs;
/// `x-in-events`: an event may have another value; `x-default`: what holds where it is left out, in words, where that is no value.
fn schema(field: &Field) -> Value {
    let mut said = Map::new();
    let mut put = |name: &str, value: Value| said.insert(name.to_owned(), value);
    let [kind, default, range] = facts(field);
    let mut help = field.words.help.replace('`', "");
    match field.kind {
        Kind::Whole { least, most, .. } => {
            put("minimum", least.into());
            put("maximum", most.into());
        }
        Kind::Limit { .. } => {
            let (least, most) = field.range().unwrap_or_default();
            put("minimum", least.into());
            put("maximum", most.into());
        }
        Kind::Choice { names, any_case, .. } => {
            put("enum", names.into());
            if any_case {
                put("x-any-case", true.into());
            }
        }
        Kind::Line { longest, .. } => {
            put("maxLength", longest.into());
        }
        Kind::Table { of, .. } => {
            let fields = of.iter().map(|inner| (inner.name.to_owned(), schema(inner)));
            put("properties", Value::Object(fields.collect()));
            put("additionalProperties", false.into());
        }
        Kind::Share { .. } => {
            put("minimum", 0.into());
            put("maximum", 1.into());
        }
        Kind::Own { .. } => {
            let shape = shape(field.name);
            let says = ["/enum", "/properties", "/items/enum"].iter().any(|at| shape.pointer(at).is_some())
                || shape.get("maximum").is_some() && range.starts_with(|first: char| first.is_ascii_digit());
            if let Value::Object(keywords) = shape {
                for (keyword, value) in keywords {
                    put(&keyword, value);
                }
            }
            if !says && !range.is_empty() {
                help = format!("{help}; {}", range.replace('`', ""));
            }
        }
        Kind::Flag { .. } => {}
    }
    let kind = match kind.as_str() {
        "true/false" => "boolean",
        "whole number" => "integer",
        "number" => "number",
        kind if kind.starts_with("text") => "string",
        kind if kind.starts_with("list") => "array",
        _ => "object",
    };
    put("type", kind.into());
    let default = default.replace('`', "");
    let value = serde_json::from_str::<Value>(&default).ok();
    let is_told = |example: &Value| value.as_ref() != Some(example) && !example.is_boolean();
    if let Some(example) = example_of(field).filter(is_told) {
        put("examples", json!([example]));
    }
    match value {
        Some(value) => put("default", value),
        None if matches!(default.as_str(), "" | "none" | "required") => None,
        None => put("x-default", default.into()),
    };
    if field.steered.is_some() {
        put("x-steered", true.into());
    }
    if field.in_events.is_some() {
        put("x-in-events", true.into());
    }
    if !help.is_empty() {
        put("description", help.into());
    }
    Value::Object(said)
}

/// A value as somebody could write it.
fn example_of(field: &Field) -> Option<Value> {
    if let Kind::Line { example, .. } = field.kind {
        return Some(example.into());
    }
    let table: toml::Table = toml::from_str(&format!("example = {}", field.words.example)).ok()?;
    serde_json::to_value(table.get("example")?).ok()
}

/// What an endpoint is; without `method` whoever answers says which there are, without `role` it is for everybody or has rules
/// of its own.
fn endpoint_of(endpoint: &Endpoint) -> Value {
    let role = match endpoint.needs {
        Needs::Nothing => None,
        Needs::Role(role) => Some(role.name()),
    };
    json!({ "path": endpoint.path, "method": endpoint.method, "role": role })
}
