//! What a request says of whoever sends it, sign-in and sign-out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use wasm_bindgen::JsValue;
use worker::Result;

use super::ROOT;
use super::reply::{LONGEST_BODY, refuse, to_page};
use crate::edge::clock::{now, random};
use crate::edge::dashboard;
use crate::edge::gate::{Request, parts};
use crate::edge::request::{body, field, header};
use crate::edge::settings::Settings;
use crate::operator::{
    self, Admitted, Knock, Operator, Refusal, SESSION_COOKIE, Session, admit, by_secret, known,
    session_cookie,
};

/// What a request says, read once.
pub struct Caller {
    path: String,
    method: String,
    authorization: String,
    cookies: String,
    fetch_site: String,
    origin: String,
    own_origin: String,
    https: bool,
}

impl Caller {
    pub fn of(request: &web_sys::Request, path: &str) -> Self {
        let url = request.url();
        let (https, host, _) = parts(&url);
        Self {
            path: path.strip_prefix(ROOT).unwrap_or_default().to_owned(),
            method: request.method(),
            authorization: header(request, "authorization"),
            cookies: header(request, "cookie"),
            fetch_site: header(request, "sec-fetch-site"),
            origin: header(request, "origin"),
            own_origin: format!("{}://{host}", if https { "https" } else { "http" }),
            https,
        }
    }

    fn knock(&self) -> Knock<'_> {
        Knock {
            path: &self.path,
            method: &self.method,
            authorization: &self.authorization,
            cookies: &self.cookies,
            fetch_site: &self.fetch_site,
            origin: &self.origin,
            own_origin: &self.own_origin,
        }
    }

    pub fn admit<'a>(&self, settings: &'a Settings) -> std::result::Result<Admitted<'a>, Refusal> {
        admit(&self.knock(), &settings.operators, settings.keys.as_deref(), now())
    }

    /// Whether it asks for the headers alone.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// What a foreign page makes a browser do to a session.
    pub fn is_foreign(&self) -> bool {
        operator::is_from_elsewhere(&self.knock())
    }
}

/// Whether a browser says that a page of somebody else sends the request.
pub fn is_from_elsewhere(request: &web_sys::Request) -> bool {
    Caller::of(request, "").is_foreign()
}

/// Whether the request comes from an operator: by a bearer token, by a session, or as browsers ask for it, by a token as
/// the password of any user. Only for pages that change nothing: browsers send passwords by themselves.
pub fn knows(request: &web_sys::Request, settings: &Settings) -> bool {
    let caller = Caller::of(request, "");
    by_password(&caller.authorization, settings)
        .or_else(|| known(&caller.knock(), &settings.operators, settings.keys.as_deref(), now()))
        .is_some()
}

/// What Cloudflare's clients send a secret in.
fn secrets(request: &web_sys::Request) -> [String; 3] {
    ["authorization", "x-auth-key", "x-auth-user-service-key"].map(|name| header(request, name))
}

/// Whose request to the API of rooms it is.
pub fn client<'a>(request: &web_sys::Request, settings: &'a Settings) -> Option<&'a Operator> {
    let known = (&settings.operators, settings.keys.as_deref());
    by_secret(&secrets(request), &Caller::of(request, "").knock(), known, now())
}

/// Whether a request to one of our own paths may come from an operator: with a secret, with a session, or to sign in. Visitors
/// bring none.
pub fn may_know(request: &Request) -> bool {
    let (_, _, path) = parts(&request.url);
    request.cookies.contains(SESSION_COOKIE)
        || path.strip_prefix(ROOT) == Some("session")
        || secrets(&request.inner).iter().any(|secret| !secret.is_empty())
}

fn by_password<'a>(authorization: &str, settings: &'a Settings) -> Option<&'a Operator> {
    let credentials = STANDARD.decode(authorization.strip_prefix("Basic ")?.trim()).ok()?;
    let (_, password) = str::from_utf8(&credentials).ok()?.split_once(':')?;
    settings.operators.by_token(password, now())
}

#[derive(Deserialize)]
struct Token {
    token: String,
}

/// Gives a session for a token. Forms get pages, programs JSON.
pub async fn sign_in(request: &web_sys::Request, caller: &Caller, settings: &Settings) -> Result<JsValue> {
    if caller.is_foreign() {
        return refuse(&Refusal::new(403, "Sign in from a page of this site"));
    }
    let Some(sent) = body(request, LONGEST_BODY).await else { return refuse(&super::reply::too_long()) };
    let sent = String::from_utf8_lossy(&sent);
    let is_json = header(request, "content-type").contains("json");
    let token = if is_json {
        serde_json::from_str(&sent).ok().map(|Token { token }| token)
    } else {
        field(&sent, "token")
    };
    let Some(operator) = settings.operators.by_token(token.unwrap_or_default().trim(), now()) else {
        return if is_json {
            refuse(&Refusal::new(401, "This is no token of this deployment"))
        } else {
            dashboard::sign_in(true, request)
        };
    };
    let Some(keys) = &settings.keys else {
        return refuse(&Refusal::new(
            503,
            "Without COOKIE_KEYS there are no sessions; send the token itself",
        ));
    };
    let session = Session::seal(keys, operator, now(), random()?);
    to_page(Some(session_cookie(&session, caller.https)))
}

/// Takes the session away.
pub fn sign_out(caller: &Caller) -> Result<JsValue> {
    if caller.is_foreign() {
        return refuse(&Refusal::new(403, "Sign out from a page of this site"));
    }
    to_page(Some(session_cookie("", caller.https)))
}
