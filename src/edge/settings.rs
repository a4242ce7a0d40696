//! The deployment's vars and secrets, read once per isolate.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{JSON, Object, Reflect};
use wasm_bindgen::JsValue;
use worker::Env;

use super::platform::log_error;
use crate::config::Rooms;
use crate::health::check::Checks;
use crate::queue::DrawKey;
use crate::ticket::KeyRing;

/// Calls to objects on a visitor's path take no longer than this by default, in milliseconds.
const OBJECT_DEADLINE_MS: u64 = 500;

/// What is known of the origin's health is kept so many days by default.
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

/// What the owner deployed.
pub struct Settings {
    /// The rooms that are valid, and those that are not.
    pub rooms: Rooms,
    /// The checks that are valid.
    pub checks: Checks,
    /// The keys of the ticket cookies; `None`: missing or invalid, no room can work.
    pub keys: Option<Rc<KeyRing>>,
    /// What lots are drawn by (`DRAW_KEY`).
    pub draw_key: DrawKey,
    /// Where admitted visitors go; `None`: the zone's own origin.
    pub origin: Option<String>,
    /// The token of the operator endpoints; `None`: they are closed.
    pub admin_token: Option<String>,
    /// The secret of the health checks' webhook; `None`: it is closed.
    pub webhook_secret: Option<String>,
    /// Who may see the origin's health.
    pub health_page: HealthPage,
    /// How many days of it are kept (`HEALTH_DAYS`).
    pub health_days: u32,
    /// How long a call to an object on a visitor's path may take, in milliseconds (`OBJECT_DEADLINE_MS`).
    pub object_deadline_ms: u64,
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
        let settings = Rc::new(Self::read(env));
        for problem in &settings.problems {
            log_error(problem);
        }
        SETTINGS.with_borrow_mut(|cached| *cached = Some(Rc::clone(&settings)));
        settings
    }

    fn read(env: &Env) -> Self {
        let names: Vec<String> =
            Object::keys(env.unchecked_ref_object()).iter().filter_map(|name| name.as_string()).collect();
        let vars = |prefix: &'static str| {
            let names = names.iter().filter(move |name| name.starts_with(prefix));
            names.map(|name| (name.clone(), json_var(env, name).unwrap_or(serde_json::Value::Null)))
        };
        let (rooms, mut errors) = Rooms::from_vars(vars("ROOM_"));
        let (checks, errors_of_checks) = Checks::from_vars(vars("CHECK_"));
        errors.extend(errors_of_checks);
        let mut problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let cookie_keys = text_var(env, "COOKIE_KEYS").unwrap_or_default();
        let draw_key = text_var(env, "DRAW_KEY").filter(|key| !key.trim().is_empty());
        let keys = match KeyRing::parse(&cookie_keys) {
            Ok(keys) => Some(Rc::new(keys)),
            Err(error) => {
                problems.push(format!("{error}. Until then every request goes to the origin"));
                None
            }
        };
        let object_deadline_ms = match text_var(env, "OBJECT_DEADLINE_MS").map(|text| text.parse()) {
            None => OBJECT_DEADLINE_MS,
            Some(Ok(milliseconds @ 50..=10_000)) => milliseconds,
            Some(_) => {
                problems.push(
                    "OBJECT_DEADLINE_MS must be a text with a whole number of milliseconds from 50 to 10000. \
                     Fix: OBJECT_DEADLINE_MS = \"500\""
                        .to_owned(),
                );
                OBJECT_DEADLINE_MS
            }
        };
        let health_page = match text_var(env, "HEALTH_PAGE").as_deref() {
            None | Some("token") => HealthPage::Token,
            Some("public") => HealthPage::Public,
            Some("off") => HealthPage::Off,
            Some(_) => {
                problems.push(
                    "HEALTH_PAGE must be \"public\", \"token\" or \"off\"; the page is behind the token until then. \
                     Fix: HEALTH_PAGE = \"token\""
                        .to_owned(),
                );
                HealthPage::Token
            }
        };
        let health_days = match text_var(env, "HEALTH_DAYS").map(|text| text.parse()) {
            None => HEALTH_DAYS,
            Some(Ok(days @ 1..=365)) => days,
            Some(_) => {
                problems.push(
                    "HEALTH_DAYS must be a text with a whole number of days from 1 to 365. Fix: HEALTH_DAYS = \"30\""
                        .to_owned(),
                );
                HEALTH_DAYS
            }
        };
        Self {
            rooms,
            checks,
            keys,
            draw_key: DrawKey::new(draw_key.as_deref(), &cookie_keys),
            webhook_secret: text_var(env, "WEBHOOK_SECRET").filter(|secret| !secret.is_empty()),
            health_page,
            health_days,
            origin: text_var(env, "ORIGIN")
                .map(|origin| origin.trim().trim_end_matches('/').to_owned())
                .filter(|origin| !origin.is_empty()),
            admin_token: text_var(env, "ADMIN_TOKEN").filter(|token| !token.is_empty()),
            object_deadline_ms,
            problems,
        }
    }
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
