//! A table of vars, read field by field.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::error::{ConfigError, Part};
use super::fields::{Field, Kind};
use crate::room::Room;
use crate::text::{nearest, one_of, shown, shown_text};

/// The longest name of a room, a check, an event or a webhook, in bytes.
const NAME_MAX: usize = 64;

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
pub struct Table<'a> {
    part: Part,
    name: String,
    /// Goes before a field's name in errors: `cookie_attributes.` or nothing.
    prefix: &'static str,
    fields: Option<&'a Map<String, Value>>,
    pub(crate) errors: Vec<ConfigError>,
}

impl<'a> Table<'a> {
    /// The fields of a room that an operator wants to change.
    pub(super) fn of_order(room: &str, fields: &'a Map<String, Value>) -> Self {
        let (name, fields) = (shown_text(room), Some(fields));
        Self { part: Part::Room, name, prefix: "", fields, errors: Vec::new() }
    }

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
                Part::Room | Part::Defaults => "ROOM_SHOP",
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
        let shown_var = shown_text(var_name);
        let fix = match value {
            Value::Array(_) => format!("write [vars.{shown_var}] with single brackets, one table per {word}"),
            Value::String(_) => format!("write a table [vars.{shown_var}] instead of text"),
            _ => format!("write a table [vars.{shown_var}] with one line per field"),
        };
        table.refuse(&shown_var, value, format!("must be a table with the {word}'s fields"), &fix);
        Err(table.errors)
    }

    pub(crate) fn get(&self, field: &str) -> Option<&'a Value> {
        self.fields.and_then(|fields| fields.get(field))
    }

    pub(crate) fn refuse(&mut self, field: &str, value: &Value, message: impl Into<String>, fix: &str) {
        self.refuse_shown(field, shown(value), message.into(), fix);
    }

    /// Refuses a value in words that are put together.
    pub(crate) fn refuse_as(&mut self, field: &str, value: &Value, words: impl FnOnce() -> (String, String)) {
        let (message, fix) = words();
        self.refuse(field, value, message, &fix);
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
        self.flag_or(field, false)
    }

    fn flag_or(&mut self, field: &str, default: bool) -> bool {
        let Some(value) = self.get(field) else { return default };
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
        let names: Vec<&str> =
            std::iter::once(default.0).chain(others.iter().map(|(name, _)| *name)).collect();
        let place = self.choose(field, &names, false);
        place.checked_sub(1).and_then(|place| others.get(place)).map_or(default.1, |(_, choice)| *choice)
    }

    /// The same by the names of all, the default first.
    pub(super) fn pick<T: Copy + Default>(&mut self, field: &str, names: &[&str], all: &[T]) -> T {
        all.get(self.choose(field, names, false)).copied().unwrap_or_default()
    }

    /// The place of one of some names, the default first. `any_case`: capitals do not matter.
    fn choose(&mut self, field: &str, names: &[&str], any_case: bool) -> usize {
        let Some(value) = self.get(field) else { return 0 };
        let given = value.as_str().unwrap_or_default();
        let is_given = |name: &&str| if any_case { name.eq_ignore_ascii_case(given) } else { *name == given };
        if let Some(place) = names.iter().position(is_given) {
            return place;
        }
        let fix = match nearest(given, names) {
            Some(meant) => format!("write {field} = \"{meant}\" if you mean that"),
            None => format!(
                "set {field} to \"{}\", or leave it out for that",
                names.first().copied().unwrap_or_default()
            ),
        };
        self.refuse(field, value, format!("must be {}", one_of(names)), &fix);
        0
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

    /// One line of text; empty where there is none.
    fn line(&mut self, field: &str, example: &str, longest: usize) -> String {
        let Some(line) = self.text(field, example) else { return String::new() };
        if line.chars().count() <= longest && !line.chars().any(char::is_control) {
            return line.to_owned();
        }
        let rule = format!("must be one line of at most {longest} characters");
        let fix = "shorten it, or put what is longer into a custom page";
        self.refuse(field, &Value::from(line), rule, fix);
        String::new()
    }

    /// Reads a field into a room.
    pub(super) fn read(&mut self, field: &Field, room: &mut Room) {
        let name = field.name;
        match &field.kind {
            Kind::Flag { default, at } => *(at.of_mut)(room) = self.flag_or(name, *default),
            Kind::Whole { least, most, default, at } => {
                *(at.of_mut)(room) = self.whole(name, *least..=*most, *default);
            }
            Kind::Limit { prefix, at, least } => self.limit(name, prefix, *at, *least, room),
            Kind::Choice { names, any_case, set, .. } => set(room, self.choose(name, names, *any_case)),
            Kind::Line { longest, example, at } => *(at.of_mut)(room) = self.line(name, example, *longest),
            Kind::Share { at } => *(at.of_mut)(room) = self.share(name),
            Kind::Table { of, prefix, example, judge } => {
                let fields = match self.get(name) {
                    None => None,
                    Some(Value::Object(fields)) => Some(fields),
                    Some(other) => {
                        self.refuse(name, other, "must be a table", &format!("write {name} = {example}"));
                        None
                    }
                };
                self.within(prefix, fields, |inner| {
                    inner.unknown(&names_of(of));
                    for field in *of {
                        inner.read(field, room);
                    }
                    judge(inner, room);
                });
            }
            Kind::Own { read } => read(self, room),
        }
    }
}

/// The names of some fields.
pub(super) fn names_of(fields: &[Field]) -> Vec<&'static str> {
    fields.iter().map(|field| field.name).collect()
}

/// The whole number that a value of a wrong type or range stands for: `5.0`, `"5"`, `0`.
pub(super) fn whole_meant(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        // `as` stops at the limits of the type, and the limits are all that is asked for.
        Value::Number(number) => {
            number.as_i64().or_else(|| number.as_f64().map(|number| number.round() as i64))
        }
        _ => None,
    }
}
