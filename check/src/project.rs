//! A wrangler.toml as far as Anteroom depends on it: vars, bindings, migrations.

use std::fmt;
use std::path::{Path, PathBuf};

use anteroom::config::{
    ConfigError, DEFAULTS, FRONT_CONTROLLERS, FRONT_CONTROLLERS_FIX, Part, Rooms, Webhooks, is_origin,
    is_webhook_secret,
};
use anteroom::health::check::{Check, Checks, Target};
use anteroom::operator::MIN_TOKEN;
use anteroom::push::{Services, is_subject};
use anteroom::room::{Room, Secure, SlotStrategy, Webhook, WebhookFormat};
use serde_json::{Number, Value as Json};
use toml::{Table, Value as Toml};

use crate::{Host, deployment};

/// The platform's limit of a var, in bytes of its text or JSON.
const VAR_BYTES_MAX: usize = 5 * 1024;
/// The platform's limits of vars and secrets together, on the paid and on the free plan.
const VARS_MAX: usize = 128;
const VARS_MAX_FREE: usize = 64;
/// Bindings and classes that the Worker is built with.
const OBJECTS: [(&str, &str); 6] = [
    ("COUNTER", "Counter"),
    ("ANYWHERE", "Anywhere"),
    ("DATA_CENTER", "DataCenter"),
    ("GLOBAL", "Global"),
    ("HEALTH", "Health"),
    ("CONFIG", "Config"),
];

/// Everything found in one configuration.
#[derive(Debug, Default)]
pub struct Project {
    /// The file, and the environment if one was asked for.
    pub place: String,
    /// The folder that the file is in.
    folder: PathBuf,
    /// Where templates are, seen from there.
    pages: PathBuf,
    /// The rooms that work.
    pub rooms: Rooms,
    /// The checks that work.
    pub checks: Checks,
    /// The webhooks that work.
    pub webhooks: Webhooks,
    /// All vars.
    vars: Vec<(String, Json)>,
    /// `ORIGIN`, if it is valid.
    pub origin: Option<String>,
    /// The Worker behind the service binding `ORIGIN_SERVICE`.
    pub origin_service: Option<String>,
    /// `SEARCH_ENGINE_CRAWLER_BYPASS`.
    pub crawlers_bypass: bool,
    /// What is probably not meant, in sentences.
    pub warnings: Vec<String>,
    /// What must be mended before a deploy.
    pub problems: Vec<Problem>,
}

/// One error: of a room, a check, an event or a webhook, or of the configuration around them.
#[derive(Debug)]
pub enum Problem {
    /// A room's, a check's, an event's or a webhook's.
    Part(ConfigError),
    /// Anything else's.
    File {
        /// Where it is, such as `vars.ORIGIN`.
        field: String,
        /// What is there, such as `"ftp://x"`.
        value: String,
        /// What it must be.
        message: String,
        /// What to do, without a full stop.
        fix: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(error) => error.fmt(formatter),
            Self::File { field, value, message, fix } => {
                write!(formatter, "{field} = {value}: {message}. Fix: {fix}.")
            }
        }
    }
}

impl Problem {
    /// Where in its value it is, in lines; empty where the value says enough.
    pub fn excerpt(&self) -> &str {
        match self {
            Self::Part(error) => &error.excerpt,
            Self::File { .. } => "",
        }
    }

    /// The parts under their names; `room` is null for what is not a room's, `check` for what is not a check's.
    pub fn as_json(&self) -> Json {
        let (owner, field, value, message, fix) = match self {
            Self::Part(ConfigError { part, name, field, value, message, fix, .. }) => {
                (Some((*part, name)), field, value, message, fix)
            }
            Self::File { field, value, message, fix } => (None, field, value, message, fix),
        };
        let of = |part| owner.filter(|(of, _)| *of == part).map(|(_, name)| name);
        serde_json::json!({
            "room": of(Part::Room),
            "check": of(Part::Check),
            "event": of(Part::Event),
            "webhook": of(Part::Webhook),
            "field": field,
            "value": value,
            "message": message,
            "fix": fix,
        })
    }
}

impl Project {
    /// Reads and judges a configuration file, for an environment if one is named.
    pub fn read(file: &Path, pages: &Path, environment: Option<&str>, host: &Host) -> Self {
        let name = file.display().to_string();
        let folder = file.parent().unwrap_or(file).to_owned();
        let mut project = Self { place: name.clone(), folder, pages: pages.to_owned(), ..Self::default() };
        if file.extension().is_some_and(|extension| extension == "json" || extension == "jsonc") {
            let fix = "keep the configuration in wrangler.toml";
            project.refuse("--config", &name, "must be a TOML file", fix);
            return project;
        }
        match (host.read)(file) {
            Ok(text) => project.judge(&name, &text, environment, host),
            Err(error) => {
                let fix = "name the file with --config, or run this where wrangler.toml is";
                project.refuse("--config", &name, &format!("cannot be read: {error}"), fix);
            }
        }
        project
    }

    fn judge(&mut self, name: &str, text: &str, environment: Option<&str>, host: &Host) {
        let top: Table = match toml::from_str(text) {
            Ok(table) => table,
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
                let written = text.lines().nth(line - 1).unwrap_or_default().trim();
                let message = format!("is not valid TOML: {}", error.message().trim().replace('\n', ", "));
                self.refuse(&format!("{name} line {line}"), written, &message, "correct this line");
                return;
            }
        };
        let environments = top.get("env").and_then(Toml::as_table);
        let (chosen, prefix) = match environment {
            None => (&top, String::new()),
            Some(wanted) => {
                self.place = format!("{name}, environment {wanted}");
                let Some(chosen) = environments.and_then(|all| all.get(wanted)).and_then(Toml::as_table)
                else {
                    let known: Vec<&str> =
                        environments.iter().flat_map(|all| all.keys()).map(String::as_str).collect();
                    let fix = if known.is_empty() {
                        format!("add [env.{wanted}.vars], or leave --env out")
                    } else {
                        format!("choose one of: {}", known.join(", "))
                    };
                    self.refuse("--env", wanted, "is not an environment of this file", &fix);
                    return;
                };
                (chosen, format!("env.{wanted}."))
            }
        };
        if environment.is_none()
            && let Some(all) = environments
        {
            let names: Vec<&str> = all.keys().map(String::as_str).collect();
            self.warn(format!(
                "Only the top level was validated. Validate each environment too, with --env: {}.",
                names.join(", ")
            ));
        }
        self.judge_vars(chosen, &prefix, host);
        self.judge_bindings(chosen, &prefix);
        self.judge_services(chosen, &prefix);
        // wrangler passes migrations on to environments, unlike vars and bindings.
        let migrations = chosen.get("migrations").or_else(|| top.get("migrations"));
        self.judge_migrations(migrations);
        for key in chosen.keys().filter(|key| looks_like(key)) {
            let fix = format!("write [{prefix}vars.{key}]");
            self.refuse(&format!("{prefix}{key}"), "{...}", "is not among the vars and does nothing", &fix);
        }
        self.warnings.extend(deployment::warnings_of_routes(chosen, &top, &self.rooms));
        self.warnings.extend(deployment::warnings_of_events(&self.rooms, host.now));
        self.warnings.extend(deployment::warnings_of_health_checks(&self.rooms, &self.checks));
        self.warnings.extend(deployment::warnings_of_crons(chosen, &top));
    }

    fn judge_vars(&mut self, chosen: &Table, prefix: &str, host: &Host) {
        let none = Table::new();
        let vars = match chosen.get("vars") {
            None => &none,
            Some(Toml::Table(vars)) => vars,
            Some(other) => {
                let fix = format!("write [{prefix}vars] with single brackets");
                self.refuse(&format!("{prefix}vars"), &to_json(other).to_string(), "must be a table", &fix);
                &none
            }
        };
        if vars.len() > VARS_MAX {
            let message = format!("is too many: a Worker has at most {VARS_MAX} vars and secrets");
            self.refuse(&format!("{prefix}vars"), &vars.len().to_string(), &message, "remove vars");
        } else if vars.len() > VARS_MAX_FREE {
            self.warn(format!("There are {} vars; the Free plan takes {VARS_MAX_FREE}.", vars.len()));
        }
        let values: Vec<(String, Json)> =
            vars.iter().map(|(name, value)| (name.clone(), to_json(value))).collect();
        for (name, value) in &values {
            self.judge_var(prefix, name, value);
        }
        if !vars.contains_key("ORIGIN") {
            self.origin = Some(String::new());
        }
        let (checks, errors) = Checks::from_vars(values.iter().cloned());
        self.problems.extend(errors.into_iter().map(Problem::Part));
        let (mut rooms, errors) = Rooms::from_vars(values.iter().cloned());
        self.problems.extend(errors.into_iter().map(Problem::Part));
        let fronts = values.iter().find(|(name, _)| name == FRONT_CONTROLLERS).map(|(_, value)| value);
        if let Some(wrong) = fronts.filter(|value| !rooms.read_front_controllers(value)) {
            let (message, fix) = FRONT_CONTROLLERS_FIX;
            self.refuse(&format!("{prefix}vars.{FRONT_CONTROLLERS}"), &wrong.to_string(), message, fix);
        }
        let (webhooks, errors) = Webhooks::from_vars(values.iter().cloned(), &rooms);
        self.vars = values;
        self.problems.extend(errors.into_iter().map(Problem::Part));
        for webhook in webhooks.iter() {
            self.warnings.extend(warnings_of_webhook(webhook));
        }
        self.webhooks = webhooks;
        if rooms.is_empty() && rooms.broken().is_empty() {
            self.warn(format!(
                "There are no rooms: every request goes to the origin. Write [{prefix}vars.ROOM_SHOP]."
            ));
        }
        for room in rooms.iter() {
            self.warnings.extend(warnings_of(room));
            self.judge_template(Part::Room, &room.name, room, host);
            for event in room.events.iter().filter(|event| event.active.page.template != room.page.template) {
                self.judge_template(Part::Event, &event.name, &event.active, host);
            }
        }
        for check in checks.iter() {
            self.warnings.extend(warnings_of_check(check, &rooms));
        }
        self.checks = checks;
        self.rooms = rooms;
    }

    /// A var of its own, or one that is probably not meant.
    fn judge_var(&mut self, prefix: &str, name: &str, value: &Json) {
        self.judge_size(&format!("{prefix}vars.{name}"), value);
        if name == "ORIGIN" {
            self.judge_origin(prefix, value);
        } else if name == "OBJECT_DEADLINE_MS" {
            self.judge_deadline(prefix, value);
        } else if name == "HEALTH_PAGE" {
            self.judge_health_page(prefix, value);
        } else if name == "HEALTH_DAYS" {
            self.judge_health_days(prefix, value);
        } else if name == "SEARCH_ENGINE_CRAWLER_BYPASS" {
            self.judge_crawlers(prefix, value);
        } else if name == "CONFIG_ON_ERROR" {
            if !matches!(value.as_str(), Some("origin" | "hold")) {
                let field = format!("{prefix}vars.{name}");
                let fix = "write CONFIG_ON_ERROR = \"origin\" or \"hold\", or leave it out";
                self.refuse(&field, &value.to_string(), "must be \"origin\" or \"hold\"", fix);
            }
        } else if name == "VAPID_SUBJECT" {
            self.judge_vapid_subject(prefix, value);
        } else if name == "PUSH_SERVICES" {
            self.judge_push_services(prefix, value);
        } else if ["COOKIE_KEYS", "ADMIN_TOKEN", "OPERATOR_TOKENS", "DRAW_KEY", "VAPID_PRIVATE_KEY"]
            .contains(&name)
            || value.is_string() && is_webhook_secret(name)
        {
            self.warn(format!(
                "{name} is a secret, and vars are not: anyone who reads this file has it. Remove it here and \
                 run `npx wrangler secret put {name}`."
            ));
            let is_short = |token: &str| token.trim().chars().count() < MIN_TOKEN;
            if name == "ADMIN_TOKEN" && value.as_str().is_some_and(is_short) {
                let message =
                    format!("needs at least {MIN_TOKEN} characters, or it may be guessed: it opens nothing");
                let fix = "run `openssl rand -base64 32 | npx wrangler secret put ADMIN_TOKEN`";
                self.refuse(&format!("{prefix}vars.{name}"), "(not shown)", &message, fix);
            }
        } else if let Some((part, right)) = deployment::meant(name, value) {
            let (word, start) = (part.word(), part.var_prefix());
            let message = format!("does nothing: the name of a {word}'s table starts with {start}");
            self.refuse(&format!("{prefix}vars.{name}"), "{...}", &message, &format!("rename it to {right}"));
        } else if name != DEFAULTS && (name.eq_ignore_ascii_case(DEFAULTS) || name == "DEFAULT") {
            let fix = format!("write [{prefix}vars.{DEFAULTS}]");
            self.refuse(&format!("{prefix}vars.{name}"), "{...}", "does nothing", &fix);
        } else if name.eq_ignore_ascii_case("rooms") {
            let message = "does nothing: each room is a table of its own";
            let fix = format!("write [{prefix}vars.ROOM_SHOP]");
            self.refuse(&format!("{prefix}vars.{name}"), "{...}", message, &fix);
        }
    }

    /// What is written for a field of a room, and in which var; `None`: nothing, and its default holds.
    pub fn written(&self, room: &Room, field: &str) -> Option<(&str, &Json)> {
        let is_own =
            |name: &str| name.strip_prefix("ROOM_").is_some_and(|name| name.eq_ignore_ascii_case(&room.name));
        let written = |is_var: &dyn Fn(&str) -> bool| {
            self.vars
                .iter()
                .filter(|(name, _)| is_var(name))
                .find_map(|(name, value)| Some((name.as_str(), value.get(field)?)))
        };
        written(&is_own).or_else(|| written(&|name| name == DEFAULTS))
    }

    fn judge_template(&mut self, part: Part, owner: &str, room: &Room, host: &Host) {
        let name = &room.page.template;
        let page = |kind: &str| self.pages.join(format!("{name}.{kind}"));
        let is_there = |kind: &str| (host.read)(&self.folder.join(page(kind))).is_ok();
        if !name.is_empty() && !is_there("html") && !is_there("toml") {
            self.problems.push(Problem::Part(ConfigError {
                part,
                name: owner.to_owned(),
                field: "custom_page_html".to_owned(),
                value: format!("\"{name}\""),
                message: format!("there is no file {} or {name}.toml", page("html").display()),
                fix: "put the template or the branding there, or leave the field out for Anteroom's own page"
                    .to_owned(),
                excerpt: String::new(),
            }));
        }
    }

    fn judge_size(&mut self, field: &str, value: &Json) {
        let bytes = value.as_str().map_or_else(|| value.to_string().len(), str::len);
        if bytes > VAR_BYTES_MAX {
            let message = format!("is too large: a var has at most {VAR_BYTES_MAX} bytes");
            self.refuse(field, &format!("{bytes} bytes"), &message, "shorten it");
        }
    }

    fn judge_origin(&mut self, prefix: &str, value: &Json) {
        let text = value.as_str();
        if let Some(origin) = text.filter(|origin| origin.is_empty() || is_origin(origin)) {
            self.origin = Some(origin.to_owned());
            return;
        }
        let message = "must be empty or an http:// or https:// URL of host and port, without path and user";
        let fix = match text {
            Some(text) if !text.contains("://") && is_origin(&format!("https://{text}")) => {
                format!("write ORIGIN = \"https://{text}\"")
            }
            _ => "leave it empty for the zone's own origin, or write ORIGIN = \"https://origin.example.com\""
                .to_owned(),
        };
        self.refuse(&format!("{prefix}vars.ORIGIN"), &value.to_string(), message, &fix);
    }

    fn judge_deadline(&mut self, prefix: &str, value: &Json) {
        let milliseconds = value.as_str().and_then(|text| text.parse::<u64>().ok());
        if !milliseconds.is_some_and(|milliseconds| (50..=10_000).contains(&milliseconds)) {
            let message = "must be a text with a whole number of milliseconds from 50 to 10000";
            let field = format!("{prefix}vars.OBJECT_DEADLINE_MS");
            self.refuse(&field, &value.to_string(), message, "write OBJECT_DEADLINE_MS = \"500\"");
        }
    }

    fn judge_health_page(&mut self, prefix: &str, value: &Json) {
        if !value.as_str().is_some_and(|page| ["public", "token", "off"].contains(&page)) {
            let message = "must be \"public\", \"token\" or \"off\"";
            let field = format!("{prefix}vars.HEALTH_PAGE");
            self.refuse(&field, &value.to_string(), message, "write HEALTH_PAGE = \"token\"");
        }
    }

    fn judge_health_days(&mut self, prefix: &str, value: &Json) {
        let days = value.as_str().and_then(|text| text.parse::<u32>().ok());
        if !days.is_some_and(|days| (1..=365).contains(&days)) {
            let message = "must be a text with a whole number of days from 1 to 365";
            let field = format!("{prefix}vars.HEALTH_DAYS");
            self.refuse(&field, &value.to_string(), message, "write HEALTH_DAYS = \"30\"");
        }
    }

    fn judge_vapid_subject(&mut self, prefix: &str, value: &Json) {
        if !value.as_str().is_some_and(is_subject) {
            let message = "must say how push services reach you: mailto: and an address, or a URL with https";
            let field = format!("{prefix}vars.VAPID_SUBJECT");
            let fix = "write VAPID_SUBJECT = \"mailto:you@example.com\"";
            self.refuse(&field, &value.to_string(), message, fix);
        }
    }

    fn judge_push_services(&mut self, prefix: &str, value: &Json) {
        if value.as_str().and_then(Services::parse).is_none() {
            let message = "must be a text of host names with spaces between, in lower case";
            let field = format!("{prefix}vars.PUSH_SERVICES");
            self.refuse(&field, &value.to_string(), message, "remove it: browsers' own services are known");
        }
    }

    fn judge_crawlers(&mut self, prefix: &str, value: &Json) {
        match value.as_str() {
            Some("true") => self.crawlers_bypass = true,
            Some("false") => {}
            _ => {
                let field = format!("{prefix}vars.SEARCH_ENGINE_CRAWLER_BYPASS");
                let fix = "write SEARCH_ENGINE_CRAWLER_BYPASS = \"true\" with quotes, or leave it out";
                self.refuse(&field, &value.to_string(), "must be \"true\" or \"false\"", fix);
            }
        }
    }

    fn judge_bindings(&mut self, chosen: &Table, prefix: &str) {
        let bindings = tables(chosen.get("durable_objects").and_then(|objects| objects.get("bindings")));
        let place = format!("{prefix}durable_objects.bindings");
        if bindings.is_empty() {
            let all =
                OBJECTS.map(|(name, class)| format!("{{ name = \"{name}\", class_name = \"{class}\" }}"));
            let below = match prefix.strip_suffix('.') {
                Some(environment) => format!("below [{environment}]"),
                None => "above the first [table]".to_owned(),
            };
            let fix = format!("paste `durable_objects.bindings = [{}]` {below}", all.join(", "));
            return self.refuse(&place, "(not set)", "is required: no room works without its objects", &fix);
        }
        for (name, class) in OBJECTS {
            let fix = format!("add [[{place}]] with name = \"{name}\" and class_name = \"{class}\"");
            let text = |table: &Table, key: &str| table.get(key).and_then(Toml::as_str).map(str::to_owned);
            match bindings.iter().find(|binding| text(binding, "name").as_deref() == Some(name)) {
                None => self.refuse(&format!("{place}.{name}"), "(not set)", "is required", &fix),
                Some(binding) => {
                    let found = text(binding, "class_name").unwrap_or_default();
                    if found != class {
                        let message = format!("must be the class {class}");
                        let fix = format!("set class_name = \"{class}\" where name = \"{name}\"");
                        self.refuse(&format!("{place}.{name}"), &format!("\"{found}\""), &message, &fix);
                    }
                }
            }
        }
    }

    /// Sites that are Workers: `ORIGIN_SERVICE`, and what rooms name.
    fn judge_services(&mut self, chosen: &Table, prefix: &str) {
        let services = tables(chosen.get("services"));
        let service = |name: &str| {
            let bound =
                services.iter().find(|table| table.get("binding").and_then(Toml::as_str) == Some(name))?;
            bound.get("service").and_then(Toml::as_str)
        };
        self.origin_service = service("ORIGIN_SERVICE").map(str::to_owned);
        if let (Some(_), Some(origin)) =
            (&self.origin_service, self.origin.clone().filter(|url| !url.is_empty()))
        {
            let message = "is not used: there is a service binding ORIGIN_SERVICE";
            self.refuse(
                &format!("{prefix}vars.ORIGIN"),
                &format!("\"{origin}\""),
                message,
                "remove one of the two",
            );
        }
        let missing: Vec<(String, String)> = self
            .rooms
            .iter()
            .filter(|room| !room.origin_service.is_empty() && service(&room.origin_service).is_none())
            .map(|room| (room.name.clone(), room.origin_service.clone()))
            .collect();
        for (room, name) in missing {
            self.problems.push(Problem::Part(ConfigError {
                part: Part::Room,
                name: room,
                field: "origin_service".to_owned(),
                value: format!("\"{name}\""),
                message: "is not a service binding of this Worker".to_owned(),
                fix: format!(
                    "add [[{prefix}services]] with binding = \"{name}\" and the name of the site's Worker as service"
                ),
                excerpt: String::new(),
            }));
        }
    }

    fn judge_migrations(&mut self, migrations: Option<&Toml>) {
        let migrations = tables(migrations);
        let lists = |key: &str, class: &str| {
            migrations
                .iter()
                .filter_map(|migration| migration.get(key).and_then(Toml::as_array))
                .any(|classes| classes.iter().any(|name| name.as_str() == Some(class)))
        };
        let missing: Vec<&str> = OBJECTS
            .iter()
            .map(|(_, class)| *class)
            .filter(|class| !lists("new_sqlite_classes", class))
            .collect();
        if missing.is_empty() {
            return;
        }
        let quoted: Vec<String> = missing.iter().map(|class| format!("\"{class}\"")).collect();
        let quoted = quoted.join(", ");
        let fix = if missing.iter().any(|class| lists("new_classes", class)) {
            "rename new_classes to new_sqlite_classes".to_owned()
        } else {
            format!("add [[migrations]] with a tag of its own and new_sqlite_classes = [{quoted}]")
        };
        self.refuse("migrations.new_sqlite_classes", "(not set)", &format!("must name {quoted}"), &fix);
    }

    fn refuse(&mut self, field: &str, value: &str, message: &str, fix: &str) {
        let mut value: String = value.chars().filter(|character| !character.is_control()).collect();
        if let Some((end, _)) = value.char_indices().nth(60) {
            value.truncate(end);
            value.push('…');
        }
        let (field, message, fix) = (field.to_owned(), message.to_owned(), fix.to_owned());
        self.problems.push(Problem::File { field, value, message, fix });
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }
}

/// What is valid in a room but probably not meant.
fn warnings_of(room: &Room) -> Vec<String> {
    let name = &room.name;
    let mut warnings = Vec::new();
    if room.path == "/" && room.host.is_none() {
        warnings.push(format!("Room {name} covers every path on every host that the Worker's routes reach."));
    }
    if room.new_users_per_minute > room.total_active_users {
        warnings.push(format!(
            "Room {name} never lets in {} new users in a minute: total_active_users = {} is reached first.",
            room.new_users_per_minute, room.total_active_users
        ));
    }
    if room.cookie_attributes.secure == Secure::Never {
        warnings
            .push(format!("Room {name} sends its cookie over unencrypted HTTP too (secure = \"never\")."));
    }
    if room.suspended {
        warnings.push(format!("Room {name} is suspended: nobody waits, whatever else is set."));
    } else if room.queue_all {
        warnings.push(format!("Room {name} queues all: nobody new enters until queue_all is false."));
    }
    // The default is exact, so is the comparison.
    #[expect(clippy::float_cmp)]
    if room.curve_factor != 1.0 && room.slot_strategy != SlotStrategy::AdaptedWorkerSlots {
        warnings.push(format!("Room {name} does not use its curve_factor: only adapted_worker_slots does."));
    }
    warnings
}

/// What is valid in a webhook but probably not meant.
fn warnings_of_webhook(webhook: &Webhook) -> Vec<String> {
    let (name, mut warnings) = (&webhook.name, Vec::new());
    let url = webhook.url.as_deref().unwrap_or_default();
    if webhook.format != WebhookFormat::Standard && !url.is_empty() {
        warnings.push(format!(
            "Webhook {name} has its url here: whoever has the address of a chat's webhook may write there. Remove it and \
             run `npx wrangler secret put {}`.",
            webhook.url_secret_name()
        ));
    }
    let chats = [
        ("https://hooks.slack.com/", WebhookFormat::Slack, "slack"),
        ("https://discord.com/", WebhookFormat::Discord, "discord"),
        ("https://chat.googleapis.com/", WebhookFormat::GoogleChat, "google_chat"),
    ];
    for (start, format, word) in chats {
        if url.starts_with(start) && webhook.format != format {
            warnings.push(format!("Webhook {name} is one of {start}, which needs format = \"{word}\"."));
        }
    }
    warnings
}

/// What is valid in a check but probably not meant.
fn warnings_of_check(check: &Check, rooms: &Rooms) -> Vec<String> {
    let name = &check.name;
    let mut warnings = Vec::new();
    if check.suspended {
        warnings.push(format!("Check {name} is suspended: nothing is looked at."));
    }
    let host = match &check.target {
        Target::Http(url) => &url.host,
        Target::Tcp { host, .. } => host,
    };
    if is_private(host) {
        warnings.push(format!(
            "Check {name} looks at {host}, which is on this machine or in a private network: the platform lets nobody \
             connect to that. It works in local trials alone."
        ));
    }
    if let Some(room) = rooms.iter().find(|room| room.host.as_ref() == Some(host)) {
        warnings.push(format!(
            "Check {name} looks at {host}, which room {} covers: it would see the platform instead of the origin. Name \
             the origin's own address, and the host as header = {{ Host = \"{host}\" }}.",
            room.name
        ));
    }
    let mut shared: Vec<&str> = Vec::new();
    for region in &check.regions {
        let alike = || check.regions.iter().filter(|other| other.hint == region.hint);
        if alike().count() > 1 && !shared.contains(&region.hint) {
            shared.push(region.hint);
            let names: Vec<&str> = alike().map(|region| region.name).collect();
            warnings.push(format!(
                "Check {name} looks from {} for which the platform knows one location ({}): their observers may be \
                 in one place.",
                names.join(" and "),
                region.hint
            ));
        }
    }
    warnings
}

/// Whether a host is out of the platform's reach.
fn is_private(host: &str) -> bool {
    use std::net::{Ipv4Addr, Ipv6Addr};
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<Ipv4Addr>() {
        return address.is_loopback()
            || address.is_private()
            || address.is_link_local()
            || address.is_unspecified();
    }
    if let Ok(address) = bare.parse::<Ipv6Addr>() {
        return address.is_loopback() || address.is_unique_local() || address.is_unspecified();
    }
    let last = bare.rsplit('.').next().unwrap_or_default();
    ["localhost", "local", "internal"].contains(&last)
}

/// Whether a name looks like that of a part: `ROOM_SHOP`, `room_shop`, `Room-Shop`, `check_origin`.
fn looks_like(name: &str) -> bool {
    [Part::Room, Part::Check, Part::Event, Part::Webhook].into_iter().any(|part| {
        let prefix = part.var_prefix();
        name.get(..prefix.len()).is_some_and(|start| start.replace('-', "_").eq_ignore_ascii_case(prefix))
    })
}

/// The tables of an array of tables; nothing for anything else.
fn tables(value: Option<&Toml>) -> Vec<&Table> {
    value.and_then(Toml::as_array).into_iter().flatten().filter_map(Toml::as_table).collect()
}

/// A TOML value as the Worker gets it.
fn to_json(value: &Toml) -> Json {
    match value {
        Toml::String(text) => Json::from(text.as_str()),
        Toml::Integer(number) => Json::from(*number),
        Toml::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Toml::Boolean(flag) => Json::from(*flag),
        Toml::Datetime(time) => Json::from(time.to_string()),
        Toml::Array(values) => values.iter().map(to_json).collect(),
        Toml::Table(table) => table.iter().map(|(name, value)| (name.clone(), to_json(value))).collect(),
    }
}
