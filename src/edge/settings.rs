//! The deployment's vars and secrets, read once per isolate.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{JSON, Object, Reflect};
use litemap::LiteMap;
use wasm_bindgen::JsValue;
use worker::Env;

use super::configuration;
use super::platform::log_error;
use crate::admission::DrawKey;
use crate::config::{
    DEFAULTS, FRONT_CONTROLLERS, FRONT_CONTROLLERS_FIX, Made, Rooms, Webhooks, is_webhook_address,
};
use crate::health::check::Checks;
use crate::notifications::delivery::SigningSecrets;
use crate::operator::Operators;
use crate::push::{Services, VapidKeys, is_subject};
use crate::room::{Room, WebhookFormat};
use crate::ticket::{AdmissionKey, KeyRing, MIN_ADMISSION_KEY};
use crate::turnstile::SERVICE_URL;

/// Calls to objects on a visitor's path take no longer than this by default, in milliseconds.
const OBJECT_DEADLINE_MS: u64 = 500;

/// The service binding of a site that is a Worker.
const ORIGIN_SERVICE: &str = "ORIGIN_SERVICE";

/// `true`: all isolates and objects are in one process, and end with it; `anteroom serve` says so.
const ONE_PROCESS: &str = "ONE_PROCESS";

/// How many days what is known of the origin's health is kept by default.
const HEALTH_DAYS: u32 = 30;

/// Who may see the origin's health (`HEALTH_PAGE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthPage {
    /// Everybody.
    Public,
    /// Whoever has the admin token.
    Token,
    /// Nobody.
    Off,
}

impl HealthPage {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "public" => Some(Self::Public),
            "token" => Some(Self::Token),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// Where a webhook's messages are sent.
pub struct Receiver {
    /// The address.
    pub url: String,
    /// What they are signed with; `None`: chat tools do not look at it.
    pub secrets: Option<SigningSecrets>,
}

/// How visitors are told whose page is closed.
pub struct Push {
    /// By which push services know who sends.
    pub keys: VapidKeys,
    /// The services that browsers may name.
    pub services: Services,
}

/// What happens to requests that may be a room's of which nobody knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WhileUnknown {
    /// They go to the origin.
    Pass,
    /// They are held up.
    Hold,
}

/// What the owner deployed.
pub struct Settings {
    /// The rooms that are valid, and those that are not.
    pub rooms: Rooms,
    /// The checks that are valid.
    pub checks: Checks,
    /// All isolates and objects end at once, with one process (`ONE_PROCESS`).
    pub one_process: bool,
    /// The keys of the ticket cookies; `None`: missing or invalid, no room can work.
    pub keys: Option<Rc<KeyRing>>,
    /// What lots are drawn by (`DRAW_KEY`).
    pub draw_key: DrawKey,
    /// Where admitted visitors go, a URL or the name of a service binding; `None`: the zone's own origin.
    pub origin: Option<String>,
    /// Signs what the origin is told of admitted requests (`ADMISSION_KEY`); `None`: it is told nothing.
    pub admission: Option<AdmissionKey>,
    /// Where Turnstile's service is, without a slash at the end (`TURNSTILE_URL`).
    pub turnstile_url: String,
    /// The secrets of Turnstile's widgets, by room (`TURNSTILE_SECRET_<ROOM>`).
    turnstile_secrets: LiteMap<String, String>,
    /// The secret for the others (`TURNSTILE_SECRET`).
    turnstile_secret: Option<String>,
    /// Who may see and steer the rooms (`ADMIN_TOKEN`, `OPERATOR_TOKENS`); nobody: all of it is closed.
    pub operators: Operators,
    /// The secret of the health checks' webhook; `None`: it is closed.
    pub webhook_secret: Option<String>,
    /// Who is told what happens.
    pub webhooks: Webhooks,
    /// Where their messages are sent, by name. A webhook that is not among them is sent nothing.
    pub receivers: LiteMap<String, Receiver>,
    /// How visitors are told whose page is closed (`VAPID_PRIVATE_KEY`); `None`: not at all.
    pub push: Option<Push>,
    /// Who may see the origin's health.
    pub health_page: HealthPage,
    /// How many days of it are kept (`HEALTH_DAYS`).
    pub health_days: u32,
    /// How long a call to an object on a visitor's path may take, in milliseconds (`OBJECT_DEADLINE_MS`).
    pub object_deadline_ms: u64,
    /// Whether verified crawlers of search engines go past all rooms (`SEARCH_ENGINE_CRAWLER_BYPASS`).
    pub crawlers_bypass: bool,
    /// Whether there is an object that keeps rooms which are made at run time (the binding `CONFIG`), and what happens where
    /// no room is known as long as nobody knows which there are (`CONFIG_ON_ERROR`); `None`: there is no such object.
    pub while_unknown: Option<WhileUnknown>,
    /// The version of the rooms that were made at run time; 0: there are none.
    pub version: u64,
    /// Where such rooms were before they moved or were deleted: see [`Made::gone`].
    pub gone: Rooms,
    /// What is wrong with the deployment, one sentence each.
    pub problems: Vec<String>,
}

thread_local! {
    static SETTINGS: RefCell<Option<Rc<Settings>>> = const { RefCell::new(None) };
}

impl Settings {
    /// The deployment's settings. What is wrong with them is logged when they are first read.
    pub fn of(env: &Env) -> Rc<Self> {
        if let Some(settings) = SETTINGS.with_borrow(Clone::clone) {
            return settings;
        }
        Self::renew(env)
    }

    /// The settings with what is known now of the rooms that were made at run time.
    pub fn renew(env: &Env) -> Rc<Self> {
        let before = SETTINGS.take();
        let settings = Rc::new(Self::read(env));
        let is_new =
            |problem: &&String| before.as_ref().is_none_or(|before| !before.problems.contains(problem));
        for problem in settings.problems.iter().filter(is_new) {
            log_error(problem);
        }
        SETTINGS.set(Some(Rc::clone(&settings)));
        settings
    }

    /// The secret of the Turnstile widget of a room; `None`: the room has no Turnstile, or no secret, and then nobody has
    /// to pass it.
    pub fn turnstile_secret(&self, room: &Room) -> Option<&str> {
        room.turnstile.as_ref()?;
        self.turnstile_secrets.get(&room.name).or(self.turnstile_secret.as_ref()).map(String::as_str)
    }

    fn read(env: &Env) -> Self {
        let made = configuration::known();
        let (rooms, checks, webhooks, mut problems) = described(env, made.as_deref());
        let cookie_keys = text_var(env, "COOKIE_KEYS").unwrap_or_default();
        let draw_key = secret(env, "DRAW_KEY");
        let keys = match KeyRing::parse(&cookie_keys) {
            Ok(keys) => Some(Rc::new(keys)),
            Err(error) => {
                problems.push(format!("{error}. Until then every request goes to the origin"));
                None
            }
        };
        let admission = admission_key(env, &mut problems);
        let receivers = receivers(env, &webhooks, &mut problems);
        let push = push(env, &mut problems);
        let (mut operators, wrong) = Operators::parse(
            secret(env, "ADMIN_TOKEN").as_deref(),
            secret(env, "OPERATOR_TOKENS").as_deref(),
        );
        problems.extend(wrong);
        if let Some(made) = &made {
            operators.add_made(&made.tokens);
        }
        let turnstile_secrets = turnstile_secrets(env, &rooms, &mut problems);
        let turnstile_url = turnstile_url(env, &mut problems);
        let origin = origin(env, &rooms, &mut problems);
        let object_deadline_ms = setting(
            env,
            "OBJECT_DEADLINE_MS",
            OBJECT_DEADLINE_MS,
            |text| text.parse().ok().filter(|milliseconds| (50..=10_000).contains(milliseconds)),
            "must be a text with a whole number of milliseconds from 50 to 10000. Fix: OBJECT_DEADLINE_MS = \"500\"",
            &mut problems,
        );
        let health_page = setting(
            env,
            "HEALTH_PAGE",
            HealthPage::Token,
            HealthPage::parse,
            "must be \"public\", \"token\" or \"off\"; the page is behind the token until then. \
             Fix: HEALTH_PAGE = \"token\"",
            &mut problems,
        );
        let while_unknown = setting(
            env,
            "CONFIG_ON_ERROR",
            WhileUnknown::Pass,
            |text| match text {
                "origin" => Some(WhileUnknown::Pass),
                "hold" => Some(WhileUnknown::Hold),
                _ => None,
            },
            "must be \"origin\" or \"hold\"; it is \"origin\" until then. Fix: remove it",
            &mut problems,
        );
        let crawlers_bypass = setting(
            env,
            "SEARCH_ENGINE_CRAWLER_BYPASS",
            false,
            |text| text.parse().ok(),
            "must be \"true\" or \"false\"; crawlers wait until then. Fix: SEARCH_ENGINE_CRAWLER_BYPASS = \"true\"",
            &mut problems,
        );
        let health_days = setting(
            env,
            "HEALTH_DAYS",
            HEALTH_DAYS,
            |text| text.parse().ok().filter(|days| (1..=365).contains(days)),
            "must be a text with a whole number of days from 1 to 365. Fix: HEALTH_DAYS = \"30\"",
            &mut problems,
        );
        Self {
            rooms,
            checks,
            one_process: is_one_process(env),
            keys,
            draw_key: DrawKey::new(draw_key.as_deref(), &cookie_keys),
            webhook_secret: secret(env, "WEBHOOK_SECRET"),
            webhooks,
            receivers,
            push,
            health_page,
            health_days,
            origin,
            admission,
            turnstile_url,
            turnstile_secrets,
            turnstile_secret: secret(env, "TURNSTILE_SECRET"),
            operators,
            object_deadline_ms,
            crawlers_bypass: made.as_ref().and_then(|made| made.crawlers_bypass).unwrap_or(crawlers_bypass),
            while_unknown: is_bound(env, configuration::BINDING).then_some(while_unknown),
            gone: made.as_ref().map(|made| made.gone()).unwrap_or_default(),
            version: made.map_or(0, |made| made.version),
            problems,
        }
    }
}

fn is_one_process(env: &Env) -> bool {
    json_var(env, ONE_PROCESS) == Some(true.into())
}

/// All vars whose names begin so.
fn vars_of(env: &Env, prefix: &str) -> Vec<(String, serde_json::Value)> {
    let names = Object::keys(env.unchecked_ref_object()).into_iter().filter_map(|name| name.as_string());
    let names = names.filter(|name| name.starts_with(prefix));
    let value = |name: &str| json_var(env, name).unwrap_or(serde_json::Value::Null);
    names.map(|name| (name.clone(), value(&name))).collect()
}

/// The vars that describe rooms, events and what rooms share.
pub fn vars(env: &Env) -> Vec<(String, serde_json::Value)> {
    ["ROOM_", "EVENT_", DEFAULTS].iter().flat_map(|prefix| vars_of(env, prefix)).collect()
}

/// Whether an object, or a service, is bound under a name.
fn is_bound(env: &Env, name: &str) -> bool {
    Reflect::get(env, &JsValue::from_str(name)).is_ok_and(|bound| bound.is_object())
}

/// The rooms, checks and webhooks that vars describe, with the rooms that were made at run time, and what is wrong with them.
fn described(env: &Env, made: Option<&Made>) -> (Rooms, Checks, Webhooks, Vec<String>) {
    let vars = |prefix: &str| vars_of(env, prefix).into_iter();
    let described = self::vars(env).into_iter();
    let (mut rooms, mut errors) = match made {
        Some(made) => made.with(described),
        None => Rooms::from_vars(described),
    };
    let (checks, errors_of_checks) = Checks::from_vars(vars("CHECK_"));
    errors.extend(errors_of_checks);
    let (webhooks, errors_of_webhooks) = Webhooks::from_vars(vars("WEBHOOK_"), &rooms);
    errors.extend(errors_of_webhooks);
    let mut problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
    if json_var(env, FRONT_CONTROLLERS).is_some_and(|value| !rooms.read_front_controllers(&value)) {
        let (must_be, fix) = FRONT_CONTROLLERS_FIX;
        problems.push(format!("{FRONT_CONTROLLERS} {must_be}; the default is used until then. Fix: {fix}"));
    }
    if is_one_process(env) {
        rooms.end_at_once();
    }
    (rooms, checks, webhooks, problems)
}

/// Where the deployment's admitted visitors go. Rooms may name service bindings of their own.
fn origin(env: &Env, rooms: &Rooms, problems: &mut Vec<String>) -> Option<String> {
    for room in
        rooms.iter().filter(|room| !room.origin_service.is_empty() && !is_bound(env, &room.origin_service))
    {
        problems.push(format!(
            "room {}: origin_service: there is no service binding {name}; until then its visitors go to the zone's own \
             origin. Fix: add [[services]] with binding = \"{name}\" and the name of the site's Worker as service",
            room.name,
            name = room.origin_service
        ));
    }
    let origin = text_var(env, "ORIGIN").map(|origin| origin.trim().trim_end_matches('/').to_owned());
    let origin = origin.filter(|origin| !origin.is_empty());
    if !is_bound(env, ORIGIN_SERVICE) {
        return origin;
    }
    if origin.is_some() {
        problems.push(
            "ORIGIN is not used: there is a service binding ORIGIN_SERVICE. Fix: remove one of them"
                .to_owned(),
        );
    }
    Some(ORIGIN_SERVICE.to_owned())
}

/// What a var says; the default where it is not set, or wrong.
fn setting<T>(
    env: &Env,
    name: &str,
    default: T,
    parse: impl FnOnce(&str) -> Option<T>,
    mistake: &str,
    problems: &mut Vec<String>,
) -> T {
    let Some(text) = text_var(env, name) else { return default };
    parse(&text).unwrap_or_else(|| {
        problems.push(format!("{name} {mistake}"));
        default
    })
}

/// Where the webhooks' messages are sent, for those that can be sent any.
fn receivers(env: &Env, webhooks: &Webhooks, problems: &mut Vec<String>) -> LiteMap<String, Receiver> {
    let mut receivers = LiteMap::new();
    for webhook in webhooks.iter() {
        let secret_name = webhook.secret_name();
        let text = secret(env, &secret_name);
        let secrets = text.as_deref().and_then(SigningSecrets::parse);
        // A secret that is there but wrong is a mistake, whatever the format.
        if secrets.is_none() && (text.is_some() || webhook.format == WebhookFormat::Standard) {
            problems.push(format!(
                "webhook {}: the secret {secret_name} must be whsec_ and 24 to 64 random bytes in base64; until then \
                 nothing is sent. Fix: echo \"whsec_$(openssl rand -base64 32)\" | npx wrangler secret put {secret_name}",
                webhook.name
            ));
            continue;
        }
        let url_name = webhook.url_secret_name();
        let url = webhook.url.clone().or_else(|| secret(env, &url_name).map(|url| url.trim().to_owned()));
        match url.filter(|url| is_webhook_address(url)) {
            Some(url) => {
                receivers.insert(webhook.name.clone(), Receiver { url, secrets });
            }
            None => problems.push(format!(
                "webhook {}: there is no url, and the secret {url_name} is no https URL; until then nothing is sent. \
                 Fix: npx wrangler secret put {url_name}",
                webhook.name
            )),
        }
    }
    receivers
}

/// How visitors are told whose page is closed, if the owner wants that.
fn push(env: &Env, problems: &mut Vec<String>) -> Option<Push> {
    let key = secret(env, "VAPID_PRIVATE_KEY")?;
    let subject = text_var(env, "VAPID_SUBJECT").unwrap_or_default();
    let more = text_var(env, "PUSH_SERVICES").unwrap_or_default();
    let (keys, services) = (VapidKeys::parse(&key, subject.trim()), Services::parse(&more));
    if !is_subject(subject.trim()) {
        problems.push(
            "VAPID_SUBJECT must say how push services reach you; until then there are no push messages. Fix: \
             VAPID_SUBJECT = \"mailto:you@example.com\""
                .to_owned(),
        );
    } else if keys.is_none() {
        problems.push(
            "VAPID_PRIVATE_KEY must be a private key for P-256 as a JSON Web Key; until then there are no push messages. \
             Fix: docs/push.md makes one"
                .to_owned(),
        );
    }
    if services.is_none() {
        problems.push(
            "PUSH_SERVICES must be host names with spaces between; until then there are no push messages. Fix: remove it"
                .to_owned(),
        );
    }
    Some(Push { keys: keys?, services: services? })
}

/// Signs what the origin is told, if the owner wants that.
fn admission_key(env: &Env, problems: &mut Vec<String>) -> Option<AdmissionKey> {
    let key = AdmissionKey::new(&secret(env, "ADMISSION_KEY")?);
    if key.is_none() {
        problems.push(format!(
            "ADMISSION_KEY must have at least {MIN_ADMISSION_KEY} characters: requests are not signed. \
             Fix: make one with `openssl rand -base64 32`"
        ));
    }
    key
}

/// Where Turnstile's service is. It stands in the waiting page, so it must be a plain URL.
fn turnstile_url(env: &Env, problems: &mut Vec<String>) -> String {
    let url = text_var(env, "TURNSTILE_URL").unwrap_or_default();
    let url = url.trim().trim_end_matches('/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/.-_~[]".contains(&byte);
    if url.is_empty() {
        SERVICE_URL.to_owned()
    } else if (url.starts_with("https://") || url.starts_with("http://")) && url.bytes().all(is_plain) {
        url.to_owned()
    } else {
        problems.push(format!(
            "TURNSTILE_URL must be an http or https URL without query; now it is {SERVICE_URL}. Fix: remove it"
        ));
        SERVICE_URL.to_owned()
    }
}

/// The secrets of the rooms' own Turnstile widgets.
fn turnstile_secrets(env: &Env, rooms: &Rooms, problems: &mut Vec<String>) -> LiteMap<String, String> {
    let mut secrets = LiteMap::new();
    for room in rooms.iter().filter(|room| room.turnstile.is_some()) {
        let name = format!("TURNSTILE_SECRET_{}", room.name.to_ascii_uppercase());
        if let Some(secret) = secret(env, &name) {
            secrets.insert(room.name.clone(), secret);
        } else if secret(env, "TURNSTILE_SECRET").is_none() {
            problems.push(format!(
                "room {}: Turnstile needs the secret of its widget; until then nobody has to pass it. Fix: wrangler \
                 secret put {name}",
                room.name
            ));
        }
    }
    secrets
}

/// A secret; `None` when it is not set, or empty.
fn secret(env: &Env, name: &str) -> Option<String> {
    text_var(env, name).filter(|secret| !secret.is_empty())
}

fn text_var(env: &Env, name: &str) -> Option<String> {
    Reflect::get(env, &JsValue::from_str(name)).ok()?.as_string()
}

fn json_var(env: &Env, name: &str) -> Option<serde_json::Value> {
    let value = Reflect::get(env, &JsValue::from_str(name)).ok()?;
    let text = JSON::stringify(&value).ok()?.as_string()?;
    serde_json::from_str(&text).ok()
}

/// `Env` is a plain JavaScript object to `Object::keys`.
trait AsObject {
    fn unchecked_ref_object(&self) -> &Object;
}

impl AsObject for Env {
    fn unchecked_ref_object(&self) -> &Object {
        wasm_bindgen::JsCast::unchecked_ref(self)
    }
}
