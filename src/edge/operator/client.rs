//! The API that Cloudflare's own clients drive: `/__anteroom/client/v4/…`, on every host that leads to this Worker. What it
//! answers is made in [`managed`](crate::managed), by the object `CONFIG`.

use serde_json::Value;
use wasm_bindgen::JsValue;
use worker::{Env, Result};

use super::reply;
use super::status::DEADLINE_MS;
use crate::edge::calls::{call, failure};
use crate::edge::configuration::{self, BINDING, CLIENT, NAME};
use crate::edge::dashboard;
use crate::edge::gate::parts;
use crate::edge::platform::log_error;
use crate::edge::request::{body, header};
use crate::edge::response;
use crate::edge::settings::Settings;
use crate::managed::{Code, Problem, Reply, status_of};
use crate::operator::{Operator, bearer};
use crate::protocol::messages::{ClientAnswer, ClientAsk, OperatorAsk, UNWATCHED, VERSION};
use crate::protocol::{GlobalStatus, Method};

/// Its paths begin so.
pub const ROOT: &str = "/__anteroom/client/v4/";
/// The longest body, in bytes.
const LONGEST_BODY: usize = 1_258_291;
/// After how many seconds somebody asks again where the configuration cannot be reached.
const AGAIN_SECONDS: u32 = 2;
/// What carries a secret, in this order: some clients send a mail's key for a token, or both.
const SECRETS: [&str; 3] = ["authorization", "x-auth-key", "x-auth-user-service-key"];
const MAIL: &str = "x-auth-email";

/// Answers a request.
pub async fn handle(request: &web_sys::Request, path: &str, env: &Env, settings: &Settings) -> Result<JsValue> {
    let below = path.strip_prefix(ROOT).unwrap_or_default();
    if let Some(id) = below.strip_prefix("preview/") {
        return preview(request, id, env).await;
    }
    let method = request.method();
    let is_head = method == "HEAD";
    let answer = match answer(request, &method, below, env, settings).await {
        Ok(answer) => answer,
        Err(error) => {
            log_error(&error.to_string());
            let message = "The configuration cannot be reached at the moment; whether it has heard is not known";
            Reply { again_seconds: AGAIN_SECONDS, ..Reply::refusal(503, &[Problem::new(Code::Away, message)]) }
        }
    };
    let mut headers = reply::headers("application/json");
    if answer.again_seconds > 0 {
        headers.push(("retry-after", answer.again_seconds.to_string()));
    } else if answer.status >= 400 {
        // It will stay: clients would try again for minutes.
        headers.push(("x-should-retry", "false".to_owned()));
    }
    if answer.status == 401 {
        headers.push(("www-authenticate", "Bearer realm=\"anteroom\"".to_owned()));
    }
    response::response(answer.status, &headers, (!is_head).then_some(answer.body.as_str()))
}

async fn answer(
    request: &web_sys::Request,
    method: &str,
    path: &str,
    env: &Env,
    settings: &Settings,
) -> Result<Reply> {
    let refuse = |status, code, message: String| Ok(Reply::refusal(status, &[Problem::new(code, message)]));
    let Some(operator) = caller(request, settings) else {
        return refuse(401, Code::Caller, no_secret(request));
    };
    if !settings.has_configuration {
        let message = "This deployment has no binding CONFIG. Fix: add it to wrangler.toml, as npm run check says";
        return refuse(501, Code::Away, message.to_owned());
    }
    // Some clients say that a body comes where none does.
    let has_body = matches!(method, "POST" | "PUT" | "PATCH");
    let sent = if has_body { body(request, LONGEST_BODY).await } else { Some(Vec::new()) };
    let Some(sent) = sent else {
        return refuse(413, Code::Long, format!("A body may be {LONGEST_BODY} bytes long"));
    };
    let Ok(body) = String::from_utf8(sent) else {
        return refuse(400, Code::Body, "The body must be JSON, in UTF-8".to_owned());
    };
    let url = request.url();
    let (https, host, _) = parts(&url);
    let query = url.split('#').next().and_then(|url| url.split_once('?')).map_or("", |(_, query)| query);
    let ask = ClientAsk {
        v: VERSION,
        by: operator.name.clone(),
        role: operator.role.name().to_owned(),
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        body,
        base: format!("{}://{host}", if https { "https" } else { "http" }),
    };
    let told: ClientAnswer = call(env, BINDING, NAME, CLIENT, &ask, DEADLINE_MS).await?;
    if !told.look.is_empty() {
        return look(env, &told.look).await;
    }
    if has_body || method == "DELETE" {
        // Who has made a room sees it at once, where it was made.
        configuration::learn(env, host, true).await;
    }
    Ok(Reply { status: told.status, body: told.body, again_seconds: told.again_seconds })
}

/// What a room does.
async fn look(env: &Env, room: &str) -> Result<Reply> {
    let ask = OperatorAsk { v: VERSION, query: UNWATCHED.to_owned(), ..OperatorAsk::default() };
    let told = crate::edge::calls::ask::<GlobalStatus>(env, room, &ask, DEADLINE_MS).await?;
    let status: Value = serde_json::from_str(&told.body)
        .map_err(|_| failure(format!("{} says what is no status", GlobalStatus::ROUTE)))?;
    Ok(status_of(&status))
}

/// Whose request it is.
fn caller<'a>(request: &web_sys::Request, settings: &'a Settings) -> Option<&'a Operator> {
    let secret = SECRETS.iter().map(|name| header(request, name)).find(|secret| !secret.is_empty())?;
    settings.operators.by_token(bearer(&secret).unwrap_or(secret.trim()))
}

fn no_secret(request: &web_sys::Request) -> String {
    let came: Vec<&str> =
        SECRETS.into_iter().chain([MAIL]).filter(|name| !header(request, name).is_empty()).collect();
    let came = if came.is_empty() { "none of them".to_owned() } else { came.join(", ") };
    format!(
        "Send a token of this deployment in Authorization (Bearer), X-Auth-Key or X-Auth-User-Service-Key. The request \
         brings {came}"
    )
}

/// A page that somebody wants to look at. It is for everybody who knows its address.
async fn preview(request: &web_sys::Request, id: &str, env: &Env) -> Result<JsValue> {
    let known = id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let stub = env.durable_object(BINDING)?.get_by_name(NAME)?;
    if known {
        let mut told = stub.fetch_with_str(&format!("https://object/preview/{id}")).await?;
        if told.status_code() == 200 {
            return dashboard::preview_of(request, &told.text().await?);
        }
    }
    Ok(crate::answer::Message::NotFound.facts(None, "", &[]).into())
}
