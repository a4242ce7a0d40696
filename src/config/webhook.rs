//! Webhooks: who is told what happens in which rooms.

use litemap::LiteMap;
use serde_json::Value;

use super::error::{ConfigError, Part};
use super::rooms::Rooms;
use super::table::Table;
use crate::room::{NewsKind as Kind, Webhook, WebhookFormat};
use crate::text::nearest;
use crate::url::Url;

/// The most webhooks a deployment may have: each notification is stored for each of them.
const MAX_WEBHOOKS: usize = 16;
const ROOMS_MAX: usize = 64;
/// The longest wait to be told of, in minutes: a place in line is kept for a day.
const WAIT_MINUTES: std::ops::RangeInclusive<u32> = 1..=1_440;

/// Every field of a webhook's table, as owners write it.
pub const WEBHOOK_FIELDS: [&str; 6] = ["url", "rooms", "news", "wait_minutes", "format", "description"];

/// All webhooks of a deployment.
#[derive(Debug, Clone, Default)]
pub struct Webhooks {
    webhooks: Vec<Webhook>,
}

impl Webhooks {
    /// Builds the webhooks from all vars of the Worker; vars whose names do not start with `WEBHOOK_` and secrets are passed
    /// over.
    ///
    /// A webhook with errors is left out and leaves the others unharmed. One that names a room which does not work is told of
    /// its other rooms. The errors of all webhooks are returned.
    pub fn from_vars(vars: impl Iterator<Item = (String, Value)>, rooms: &Rooms) -> (Self, Vec<ConfigError>) {
        let mut by_name: LiteMap<String, Value> = LiteMap::new();
        for (name, value) in vars.filter(|(name, _)| name.starts_with(Part::Webhook.var_prefix())) {
            if !(value.is_string() && is_secret(&name)) {
                by_name.insert(name, value);
            }
        }
        let (mut all, mut errors) = (Self::default(), Vec::new());
        for (var_name, value) in by_name.iter() {
            match parse_webhook(var_name, value, rooms, all.webhooks.len()) {
                Ok((webhook, found)) => {
                    errors.extend(found);
                    all.webhooks.push(webhook);
                }
                Err(found) => errors.extend(found),
            }
        }
        (all, errors)
    }

    /// The webhook of this name (in lower case).
    pub fn get(&self, name: &str) -> Option<&Webhook> {
        self.webhooks.iter().find(|webhook| webhook.name == name)
    }

    /// The webhooks that are valid, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Webhook> {
        self.webhooks.iter()
    }

    /// The waits that somebody wants to be told of in a room, in minutes, each once.
    pub fn thresholds(&self, room: &str) -> Vec<u32> {
        let hears = self.webhooks.iter().filter(|webhook| webhook.hears_of(room));
        let mut minutes: Vec<u32> = hears.filter_map(|webhook| webhook.wait_minutes).collect();
        minutes.sort_unstable();
        minutes.dedup();
        minutes
    }
}

/// Whether a var's name is that of a webhook's secret.
pub fn is_secret(name: &str) -> bool {
    name == "WEBHOOK_SECRET" || name.starts_with("WEBHOOK_SECRET_") || name.starts_with("WEBHOOK_URL_")
}

/// One webhook, with what is wrong and does not keep it from working; `before`: how many there are already.
fn parse_webhook(
    var_name: &str,
    value: &Value,
    rooms: &Rooms,
    before: usize,
) -> Result<(Webhook, Vec<ConfigError>), Vec<ConfigError>> {
    let (name, mut table) = Table::open(Part::Webhook, var_name, value)?;
    table.unknown(&WEBHOOK_FIELDS);
    if is_secret(&var_name.to_ascii_uppercase()) {
        table.refuse_as("name", &Value::from(var_name), || {
            say(
                "is the name of a webhook's secret",
                "rename the webhook: its name must not begin with SECRET or URL_",
            )
        });
    }
    if before >= MAX_WEBHOOKS {
        table.refuse_as("name", &Value::from(var_name), || {
            let message = format!("is one webhook too many: a deployment has at most {MAX_WEBHOOKS}");
            say(&message, "remove a webhook")
        });
    }
    let wait_minutes =
        table.get("wait_minutes").is_some().then(|| table.whole("wait_minutes", WAIT_MINUTES, Some(10)));
    let webhook = Webhook {
        name,
        url: url(&mut table),
        rooms: names(&mut table, "rooms", ROOMS_MAX, "write rooms = [\"shop\"] for [vars.ROOM_SHOP]")
            .unwrap_or_default(),
        news: kinds(&mut table, wait_minutes),
        wait_minutes,
        format: table.pick("format", WebhookFormat::NAMES, WebhookFormat::ALL),
        description: table.text("description", "our chat").unwrap_or_default().to_owned(),
    };
    if !table.errors.is_empty() {
        return Err(table.errors);
    }
    for room in &webhook.rooms {
        if rooms.get(room).is_none() {
            table.refuse_as("rooms", &Value::from(room.as_str()), || {
                say(
                    "is not the name of a room that works",
                    "write the names of rooms, or correct that room first",
                )
            });
        }
    }
    Ok((webhook, table.errors))
}

fn url(table: &mut Table<'_>) -> Option<String> {
    let value = table.get("url")?;
    let text = table.text("url", "https://hooks.example.com/anteroom")?;
    if is_address(text) {
        return Some(text.to_owned());
    }
    table.refuse_as("url", value, || match Url::read(text) {
        Some(_) => say(
            "must begin with https://",
            "write the receiver's https address; http is for this machine only",
        ),
        None => say(
            "must be an https URL without user and fragment",
            "write url = \"https://hooks.example.com/anteroom\"",
        ),
    });
    None
}

/// Whether messages can be sent there: by https, or to this machine.
pub fn is_address(url: &str) -> bool {
    Url::read(url).is_some_and(|url| url.secure || is_loopback(&url.host))
}

/// Whether a host is this machine.
fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host == "[::1]"
        || host.strip_prefix("127.").is_some_and(|rest| !rest.ends_with(char::is_alphabetic))
}

/// A list of names, in lower case.
fn names(table: &mut Table<'_>, field: &str, most: usize, fix: &str) -> Option<Vec<String>> {
    let value = table.get(field)?;
    let names: Option<Vec<String>> = value
        .as_array()
        .and_then(|names| names.iter().map(|name| name.as_str().map(str::to_ascii_lowercase)).collect());
    let names = names.filter(|names| (1..=most).contains(&names.len()));
    if names.is_none() {
        table.refuse_as(field, value, || say(&format!("must be a list of 1 to {most} names"), fix));
    }
    names
}

/// The kinds of notifications that are asked for; where they are not named all, those about waits only with `wait_minutes`.
fn kinds(table: &mut Table<'_>, wait_minutes: Option<u32>) -> Vec<Kind> {
    const OF_WAITS: [Kind; 2] = [Kind::WaitAbove, Kind::WaitBelow];
    let field = "news";
    let all = || Kind::ALL.iter().map(|(kind, _)| *kind);
    let fix = "write news = [\"queueing_started\", \"queueing_ended\"], or leave it out for all";
    let Some(names) = names(table, field, Kind::ALL.len(), fix) else {
        return all().filter(|kind| wait_minutes.is_some() || !OF_WAITS.contains(kind)).collect();
    };
    let mut kinds = Vec::new();
    for name in names {
        match Kind::named(&name) {
            Some(kind) => kinds.push(kind),
            None => table.refuse_as(field, &Value::from(name.as_str()), || {
                let known: Vec<&str> = Kind::ALL.iter().map(|(_, name)| *name).collect();
                let fix = match nearest(&name, &known) {
                    Some(meant) => format!("write \"{meant}\" if you mean that"),
                    None => format!("the kinds are {}", known.join(", ")),
                };
                say("is not a kind of news", &fix)
            }),
        }
    }
    let of_waits = kinds.iter().any(|kind| OF_WAITS.contains(kind));
    if of_waits && wait_minutes.is_none() && table.get("wait_minutes").is_none() {
        table.refuse_as(field, &Value::from("wait_above"), || {
            say("needs wait_minutes: which wait is news", "add it, for example wait_minutes = 10")
        });
    }
    if !of_waits && let (Some(minutes), Some(_)) = (wait_minutes, table.get(field)) {
        table.refuse_as("wait_minutes", &Value::from(minutes), || {
            say(
                "is for wait_above and wait_below, which are not in news",
                "add one of them to news, or remove wait_minutes",
            )
        });
    }
    kinds
}

/// What a value must be, and what to do about it.
fn say(message: &str, fix: &str) -> (String, String) {
    (message.to_owned(), fix.to_owned())
}
