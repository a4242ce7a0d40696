//! What is valid in a wrangler.toml, and yet leaves rooms without visitors: routes, events that are over, checks that are
//! none, crons that are none, and tables that look like a room.

use anteroom::config::{FIELDS, Part, Rooms, nearest};
use anteroom::health::check::Checks;
use anteroom::time::rfc3339;
use anteroom::url::path::as_browsers_write;
use serde_json::Value as Json;
use toml::{Table, Value as Toml};

/// Fields that only other parts than rooms have.
const OTHER_FIELDS: [&str; 5] = ["room", "event_start_time", "event_end_time", "url", "tcp"];

/// What a table with this name and these fields was most likely meant to be, and the name that it needs: `ROMM_SHOP` is a
/// room, and so is `room_shop`.
pub fn meant(name: &str, value: &Json) -> Option<(Part, String)> {
    let parts = [Part::Room, Part::Event, Part::Check, Part::Webhook];
    if parts.iter().any(|part| name.starts_with(part.var_prefix())) {
        return None;
    }
    let (word, rest) = name.split_once(['_', '-'])?;
    let words = parts.map(Part::word);
    let meant = nearest(word, &words)?;
    let part = parts.into_iter().find(|part| part.word() == meant)?;
    let has = |field: &str| FIELDS.iter().any(|known| known.name == field) || OTHER_FIELDS.contains(&field);
    let fits = word.eq_ignore_ascii_case(meant) || value.as_object()?.keys().any(|field| has(field));
    let rest = rest.to_ascii_uppercase().replace('-', "_");
    fits.then(|| (part, format!("{}{rest}", part.var_prefix())))
}

/// A pattern of a route, as the platform reads it.
struct Pattern<'a> {
    host: &'a str,
    path: &'a str,
}

impl<'a> Pattern<'a> {
    /// Reads an entry of `routes`.
    fn of(route: &'a Toml) -> Option<Self> {
        let text = route.as_str().or_else(|| route.get("pattern")?.as_str())?;
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        let is_whole_host = route.get("custom_domain").and_then(Toml::as_bool) == Some(true);
        let (host, path) = text.find('/').map_or((text, "/"), |at| text.split_at(at));
        Some(Self { host, path: if is_whole_host { "/*" } else { path } })
    }

    fn reaches_host(&self, host: Option<&str>) -> bool {
        host.is_none_or(|host| match self.host.strip_prefix('*') {
            Some(end) => host.ends_with(&end.to_ascii_lowercase()),
            None => host.eq_ignore_ascii_case(self.host),
        })
    }

    fn reaches(&self, path: &str) -> bool {
        match self.path.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == self.path,
        }
    }

    /// Whether it reaches everything below a path.
    fn reaches_below(&self, path: &str) -> bool {
        self.path.ends_with('*') && self.reaches(path)
    }
}

/// What the routes of a configuration leave out of its rooms. `top`: what an environment does not set, it has from there.
pub fn warnings_of_routes(chosen: &Table, top: &Table, rooms: &Rooms) -> Vec<String> {
    let set = |table: &Table| ["routes", "route"].into_iter().find_map(|key| table.get(key).cloned());
    let routes = match set(chosen).or_else(|| set(top)) {
        Some(Toml::Array(routes)) => routes,
        Some(route) => vec![route],
        None => Vec::new(),
    };
    let patterns: Vec<Pattern> = routes.iter().filter_map(Pattern::of).collect();
    let mut warnings = Vec::new();
    for room in rooms.iter() {
        for (host, path) in room.routes() {
            let path = as_browsers_write(path.as_bytes());
            let inside = format!("{}/", path.trim_end_matches('/'));
            let here = || patterns.iter().filter(|pattern| pattern.reaches_host(host));
            if here().any(|pattern| pattern.reaches(&path))
                && here().any(|pattern| pattern.reaches_below(&inside))
            {
                continue;
            }
            let of_routes = patterns.first().map(|pattern| pattern.host);
            let on = host.or(of_routes).unwrap_or("shop.example.com");
            let (name, covered) = (&room.name, host.unwrap_or("every host"));
            warnings.push(if patterns.is_empty() {
                format!(
                    "Room {name} protects nothing yet: without routes no request of your site reaches the Worker. Write \
                     routes = [\"{on}{path}*\"] above the first [table]."
                )
            } else {
                format!(
                    "Room {name} covers {path} and everything below it on {covered}, and no route brings all of that to \
                     the Worker. Add \"{on}{path}*\" to routes."
                )
            });
        }
    }
    warnings
}

/// Events that are over at a time, in milliseconds since the epoch.
pub fn warnings_of_events(rooms: &Rooms, now: u64) -> Vec<String> {
    let events = rooms.iter().flat_map(|room| room.events.iter().map(move |event| (room, event)));
    let over = events.filter(|(_, event)| event.end <= now);
    over.map(|(room, event)| {
        format!(
            "Event {} of room {} is over since {} and changes nothing. Give it other times, or remove it.",
            event.name,
            room.name,
            rfc3339(event.end)
        )
    })
    .collect()
}

/// Checks that rooms wait for and that nobody has configured here.
pub fn warnings_of_health_checks(rooms: &Rooms, checks: &Checks) -> Vec<String> {
    let named = rooms.iter().flat_map(|room| room.health_checks.iter().map(move |check| (room, check)));
    let unknown = named.filter(|(_, check)| checks.get(&check.to_ascii_lowercase()).is_none());
    unknown
        .map(|(room, check)| {
            let var = check.to_ascii_uppercase().replace([' ', '-'], "_");
            format!(
                "Room {} listens to the health check {check}, which is none of this file. If the platform's health checks \
                 have none of this name either, it never hears of its origin. Add [vars.CHECK_{var}], or correct the name.",
                room.name
            )
        })
        .collect()
}

/// Entries of `triggers.crons` that are no crons.
pub fn warnings_of_crons(chosen: &Table, top: &Table) -> Vec<String> {
    let triggers = chosen.get("triggers").or_else(|| top.get("triggers"));
    let Some(crons) = triggers.and_then(|triggers| triggers.get("crons")) else { return Vec::new() };
    let crons = crons.as_array().cloned().unwrap_or_else(|| vec![crons.clone()]);
    let wrong = crons.iter().filter(|cron| !cron.as_str().is_some_and(is_cron));
    wrong
        .map(|cron| {
            format!(
                "triggers.crons has {cron}, which is no cron: it has five parts, minute, hour, day, month and day of the \
                 week. Write crons = [\"*/5 * * * *\"]."
            )
        })
        .collect()
}

/// Whether a text is a cron as the platform reads it.
fn is_cron(text: &str) -> bool {
    const BOUNDS: [(u32, u32, &[&str]); 5] = [
        (0, 59, &[]),
        (0, 23, &[]),
        (1, 31, &[]),
        (1, 12, &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]),
        (0, 7, &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]),
    ];
    let parts: Vec<&str> = text.split_whitespace().collect();
    parts.len() == BOUNDS.len()
        && parts.iter().zip(BOUNDS).all(|(part, (least, most, names))| {
            part.split(',').all(|item| {
                let (range, step) = item.split_once('/').unwrap_or((item, "1"));
                // The last day, the nearest weekday, and the second Friday.
                let day = |day: &str| day.trim_end_matches(['L', 'W']).split('#').next().map(str::to_owned);
                let is_one = |given: &str| {
                    let bare = if most == 31 || most == 7 { day(given) } else { Some(given.to_owned()) };
                    bare.is_some_and(|bare| {
                        bare.is_empty() && given.contains('L')
                            || names.contains(&bare.to_ascii_uppercase().as_str())
                            || bare.parse().is_ok_and(|number: u32| (least..=most).contains(&number))
                    })
                };
                step.parse().is_ok_and(|step: u32| step > 0)
                    && (range == "*" || range.split('-').count() <= 2 && range.split('-').all(is_one))
            })
        })
}
