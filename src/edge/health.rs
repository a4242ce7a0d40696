//! The origin's health on our own paths: the webhook of the platform's health checks, the status page, the same as
//! JSON, and the page's script.

use std::cell::{Cell, RefCell};

use js_sys::{JsString, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use worker::{Context, Env, Result};

use super::calls::{HEALTH, call};
use super::clock::{now, pause};
use super::platform::log_error;
use super::request::{body, header, query};
use super::settings::{HealthPage, Settings};
use super::{operator, response};
use crate::answer::Answer;
use crate::health::analytics::Range;
use crate::health::messages::{Ask, COORDINATOR, NOTIFY, Notify, Stored, Told, VERSION, VIEW};
use crate::health::observer::TEND;
use crate::health::page;
use crate::health::shown::{Next, Shown};
use crate::health::webhook::{self, LONGEST_BODY, Notice};
use crate::ticket::same_secret;

const PAGE: &str = "/__anteroom/health";
const JSON: &str = "/__anteroom/health.json";
const SCRIPT: &str = "/__anteroom/health.js";
const WEBHOOK: &str = "/__anteroom/health/webhook";

/// Neither the platform nor whoever looks at the page is in such a hurry as a visitor, in milliseconds.
const DEADLINE_MS: u64 = 5_000;
/// Whoever waits for what another one asks for looks so often, in milliseconds, and so many times.
const LOOK_MS: u64 = 100;
const LOOKS: u32 = 30;
/// The length of the version after the first two characters of the script's text, as tools/build.mjs puts it there.
const VERSION_LENGTH: u32 = 16;

/// Answers a request to one of the paths above; `None`: it is for another one.
pub async fn handle(
    request: &web_sys::Request,
    path: &str,
    env: &Env,
    settings: &Settings,
) -> Result<Option<JsValue>> {
    let answer = match path {
        WEBHOOK => receive(request, env, settings).await,
        PAGE | JSON if settings.health_page != HealthPage::Off => {
            show(request, path == JSON, env, settings).await
        }
        SCRIPT if settings.health_page != HealthPage::Off => script(request),
        _ => return Ok(None),
    };
    Ok(Some(response::page(&answer, None)?))
}

thread_local! {
    static TENDED: Cell<bool> = const { Cell::new(false) };
    static SHOWN: RefCell<Shown> = RefCell::default();
}

/// Asks the coordinator to see to the observers of all checks, once in the life of an isolate: a deploy
/// makes new isolates, and may bring new checks. Nobody waits for it.
pub fn tend_once(env: &Env, settings: &Settings, context: &Context) {
    if !settings.checks.is_empty() && !TENDED.replace(true) {
        let env = env.clone();
        context.wait_until(async move {
            if let Err(error) = tend(&env).await {
                log_error(&error.to_string());
            }
        });
    }
}

/// Asks the coordinator to see to the observers of all checks.
pub async fn tend(env: &Env) -> Result<()> {
    call(env, HEALTH, COORDINATOR, TEND, &(), DEADLINE_MS).await
}

/// Takes a notification in. Whatever is refused leaves no trace.
async fn receive(request: &web_sys::Request, env: &Env, settings: &Settings) -> Answer {
    if request.method() != "POST" {
        return wrong_method("POST");
    }
    let given = header(request, "cf-webhook-auth");
    // Without a configured secret nothing is equal to it: closed.
    if !same_secret(&given, settings.webhook_secret.as_deref().unwrap_or_default()) {
        return page::sentence(
            401,
            "Send the WEBHOOK_SECRET of this deployment in the header cf-webhook-auth",
        );
    }
    let notice = match body(request, LONGEST_BODY).await {
        Some(body) => webhook::read(&body, now()),
        None => Err(webhook::too_long()),
    };
    let (name, change) = match notice {
        Err(refusal) => return page::sentence(refusal.status, &refusal.message),
        Ok(Notice::Test) => return page::sentence(200, "The webhook works"),
        Ok(Notice::Change { name, change }) => (name, change),
    };
    let message = Notify { v: VERSION, name, change };
    match call::<_, Stored>(env, HEALTH, COORDINATOR, NOTIFY, &message, DEADLINE_MS).await {
        Ok(_) => page::sentence(200, "The notification is stored"),
        Err(error) => unavailable(&error),
    }
}

/// The page, or the same as JSON.
async fn show(request: &web_sys::Request, json: bool, env: &Env, settings: &Settings) -> Answer {
    let is_operator = operator::knows(request, settings);
    match settings.health_page {
        HealthPage::Token if !is_operator => {
            let mut answer = page::sentence(
                401,
                "Send the ADMIN_TOKEN, or one of the OPERATOR_TOKENS, as a bearer token, or as the password of \
                 any user",
            );
            let challenge = "Basic realm=\"anteroom\", charset=\"UTF-8\", Bearer realm=\"anteroom\"";
            answer.headers.push(("www-authenticate", challenge.to_owned()));
            return answer;
        }
        _ => {}
    }
    if !["GET", "HEAD"].contains(&request.method().as_str()) {
        return wrong_method("GET, HEAD");
    }
    let range = query(request, "range").map_or(Some(Range::default()), |range| Range::of(&range));
    let Some(range) = range else {
        return page::sentence(400, "range must be 1h, 24h, 7d or 30d");
    };
    let check = query(request, "check").unwrap_or_default();
    if check.chars().count() > 2 * webhook::LONGEST_TEXT {
        return page::sentence(404, "There is no such check");
    }
    let accept = header(request, "accept");
    let wants_json = json || (accept.contains("application/json") && !accept.contains("text/html"));
    let script = if wants_json { String::new() } else { format!("{SCRIPT}?v={}", script_version()) };
    let ask = Ask { v: VERSION, range, check, script };
    let body = if is_operator {
        told(env, &ask).await.map(|told| told.body)
    } else {
        told_anybody(env, settings, &ask).await
    };
    match body {
        Ok(Some(body)) => page::answer(body, wants_json),
        Ok(None) => page::sentence(404, "There is no such check"),
        Err(error) => unavailable(&error),
    }
}

async fn told(env: &Env, ask: &Ask) -> Result<Told> {
    call(env, HEALTH, COORDINATOR, VIEW, ask, DEADLINE_MS).await
}

/// What anybody is told. Requests may be many, so most are answered from what the isolate keeps.
async fn told_anybody(env: &Env, settings: &Settings, ask: &Ask) -> Result<Option<String>> {
    for _ in 0..LOOKS {
        match SHOWN.with_borrow_mut(|shown| shown.next(ask, &settings.checks, now())) {
            Next::Show(body) => return Ok(Some(body)),
            Next::Unknown => return Ok(None),
            Next::Ask => {
                let told = told(env, ask).await?;
                SHOWN.with_borrow_mut(|shown| shown.learn(ask, &told, now()));
                return Ok(told.body);
            }
            // No request may await another's call.
            Next::Later => pause(LOOK_MS).await,
        }
    }
    Err("too many ask for parts of the health page at once".into())
}

/// The page's script. It is the same for everybody, so it needs no token; an address with its version never changes.
fn script(request: &web_sys::Request) -> Answer {
    let current = query(request, "v").is_some_and(|version| version == script_version());
    let cache = if current { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = vec![
        ("content-type", "text/javascript; charset=utf-8".to_owned()),
        ("cache-control", cache.to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
    ];
    Answer { status: 200, headers, body: script_text().into() }
}

/// The script's text, which `entry.js` carries so that WebAssembly need not.
fn script_text() -> JsString {
    let text = Reflect::get(&js_sys::global(), &JsValue::from_str("anteroomHealthScript"));
    text.ok().and_then(|text| text.dyn_into().ok()).unwrap_or_default()
}

fn script_version() -> String {
    script_text().slice(2, 2 + VERSION_LENGTH).into()
}

fn wrong_method(allowed: &str) -> Answer {
    let mut answer = page::sentence(405, &format!("Only {allowed} is answered here"));
    answer.headers.push(("allow", allowed.to_owned()));
    answer
}

fn unavailable(error: &worker::Error) -> Answer {
    log_error(&error.to_string());
    page::sentence(503, "What is known of the origin's health cannot be reached at the moment")
}
