//! What there is below `/__anteroom/`, and whom it is for.

use super::{Operator, Operators, Role, Session};
use crate::ticket::KeyRing;

/// What an endpoint needs of whoever calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it is for everybody, or has rules of its own.
    Nothing,
    /// A token, or the session of one, with at least this role.
    Role(Role),
}

/// What an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The dashboard; the sign-in page for whoever has not signed in.
    Page,
    /// The dashboard's script or style.
    Asset,
    /// The page that visitors of a room see now.
    Preview,
    /// A token for a session.
    SignIn,
    /// The end of a session.
    SignOut,
    /// What all rooms do.
    Status,
    /// What is steered in a room.
    Steering,
    /// Changes what is steered.
    Steer,
    /// Who changed what.
    Audit,
    /// A room's past.
    History,
    /// What happened in a room.
    Notification,
    /// For Prometheus.
    Metrics,
    /// All events.
    Events,
    /// A WebSocket with what a room does.
    Live,
    /// What lots were drawn by.
    Draws,
    /// Whether a mark of a rehearsal is good.
    Rehearsal,
    /// A visitor's place goes on on another device; `edge/another_device.rs` has its rules.
    Continue,
    /// The service worker that shows push messages.
    Push,
    /// The origin's health; `edge/health.rs` has its rules.
    Health,
}

/// One line of the table of all endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// Below `/__anteroom/`.
    pub path: &'static str,
    /// `GET` stands for `HEAD` as well. Empty: whoever answers says which methods there are.
    pub method: &'static str,
    /// Whom it is for.
    pub needs: Needs,
    /// What it is.
    pub target: Target,
}

const fn to_view(path: &'static str, target: Target) -> Endpoint {
    Endpoint { path, method: "GET", needs: Needs::Role(Role::View), target }
}

const fn for_all(method: &'static str, path: &'static str, target: Target) -> Endpoint {
    Endpoint { path, method, needs: Needs::Nothing, target }
}

/// All there is below `/__anteroom/`; `docs/api.md` has the same table.
pub const ENDPOINTS: &[Endpoint] = &[
    for_all("GET", "", Target::Page),
    for_all("POST", "session", Target::SignIn),
    for_all("POST", "session/end", Target::SignOut),
    to_view("status", Target::Status),
    to_view("steering", Target::Steering),
    Endpoint { path: "steering", method: "POST", needs: Needs::Role(Role::Steer), target: Target::Steer },
    to_view("audit", Target::Audit),
    to_view("history", Target::History),
    to_view("news", Target::Notification),
    to_view("metrics", Target::Metrics),
    to_view("events", Target::Events),
    to_view("live", Target::Live),
    for_all("GET", "draws", Target::Draws),
    for_all("GET", "rehearsal", Target::Rehearsal),
    for_all("", "continue", Target::Continue),
    for_all("GET", "push.js", Target::Push),
    for_all("GET", "dashboard.js", Target::Asset),
    for_all("GET", "dashboard.css", Target::Asset),
    to_view("preview", Target::Preview),
    for_all("", "health", Target::Health),
    for_all("", "health.json", Target::Health),
    for_all("", "health.js", Target::Health),
    for_all("", "health/webhook", Target::Health),
];

/// What a request says that access depends on; a header that is not there is empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct Knock<'a> {
    /// Below `/__anteroom/`.
    pub path: &'a str,
    /// Its method.
    pub method: &'a str,
    /// `Authorization`.
    pub authorization: &'a str,
    /// `Cookie`.
    pub cookies: &'a str,
    /// `Sec-Fetch-Site`.
    pub fetch_site: &'a str,
    /// `Origin`.
    pub origin: &'a str,
    /// Scheme and host of its URL, as `Origin` would name them.
    pub own_origin: &'a str,
}

/// A request that may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted<'a> {
    /// To where.
    pub target: Target,
    /// Whose request it is; `None` where everybody may come and no token or session came along.
    pub operator: Option<&'a Operator>,
    /// When the session that it comes with is over, in milliseconds since the epoch; `None`: it comes with none.
    pub session_ends: Option<u64>,
}

/// A request that may not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status code.
    pub status: u16,
    /// Why, and what would help: one sentence.
    pub message: String,
    /// The methods that there are, where it was a wrong one.
    pub allow: Option<&'static str>,
}

impl Refusal {
    /// A refusal with a status and a sentence.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), allow: None }
    }
}

/// Lets a request in, or says why not. `keys` open sessions; without any there are none.
///
/// A browser sends its cookies also with what a foreign page makes it send. So whoever comes with a session and wants to
/// change something, or to open a WebSocket, must come from a page of our own. A token is in no browser's hands.
///
/// # Errors
/// 404 for what is not there, 405 for a wrong method, 401 without a token or session, 403 for a role that is too small and
/// for a foreign page.
pub fn admit<'a>(
    knock: &Knock,
    operators: &'a Operators,
    keys: Option<&KeyRing>,
    now_ms: u64,
) -> Result<Admitted<'a>, Refusal> {
    let endpoint = find(knock)?;
    let target = endpoint.target;
    let found = find_operator(knock, operators, keys, now_ms);
    let session_ends = found.and_then(|(_, session_ends)| session_ends);
    let Needs::Role(role) = endpoint.needs else {
        return Ok(Admitted { target, operator: found.map(|(operator, _)| operator), session_ends });
    };
    let Some((operator, _)) = found else { return Err(Refusal::new(401, no_token(operators))) };
    let acts = endpoint.method != "GET" || target == Target::Live;
    if session_ends.is_some() && acts && !is_from_here(knock) {
        return Err(Refusal::new(
            403,
            "With a session this must come from a page of this site; programs send a token instead",
        ));
    }
    if operator.role < role {
        let (name, own, role) = (&operator.name, operator.role.name(), role.name());
        return Err(Refusal::new(403, format!("The token of {name} has the role {own}; this takes {role}")));
    }
    Ok(Admitted { target, operator: Some(operator), session_ends })
}

/// Whose request it is by the headers in which Cloudflare's clients send secrets: `Authorization`, `X-Auth-Key` and
/// `X-Auth-User-Service-Key`. The first that is not empty counts; where all are, the session does, for a change only from a page
/// of our own. `now_ms`: in milliseconds since the epoch.
pub fn by_secret<'a>(
    secrets: &[String],
    knock: &Knock,
    (operators, keys): (&'a Operators, Option<&KeyRing>),
    now_ms: u64,
) -> Option<&'a Operator> {
    if let Some(secret) = secrets.iter().find(|secret| !secret.is_empty()) {
        return operators.by_token(bearer(secret).unwrap_or(secret.trim()), now_ms);
    }
    let (operator, _) = Session::of(keys?, operators, knock.cookies, now_ms)?;
    (matches!(knock.method, "GET" | "HEAD") || is_from_here(knock)).then_some(operator)
}

/// Whose request it is: by its bearer token, or where it has none, by its session.
pub fn known<'a>(
    knock: &Knock,
    operators: &'a Operators,
    keys: Option<&KeyRing>,
    now_ms: u64,
) -> Option<&'a Operator> {
    find_operator(knock, operators, keys, now_ms).map(|(operator, _)| operator)
}

/// The same, and when the session is over, if it is by one.
fn find_operator<'a>(
    knock: &Knock,
    operators: &'a Operators,
    keys: Option<&KeyRing>,
    now_ms: u64,
) -> Option<(&'a Operator, Option<u64>)> {
    if let Some(token) = bearer(knock.authorization) {
        return Some((operators.by_token(token, now_ms)?, None));
    }
    let (operator, end) = Session::of(keys?, operators, knock.cookies, now_ms)?;
    Some((operator, Some(end)))
}

fn no_token(operators: &Operators) -> &'static str {
    if operators.is_empty() {
        "This is closed, as no valid token is set. Fix: openssl rand -base64 32 | npx wrangler secret put ADMIN_TOKEN"
    } else {
        "Sign in, or send the ADMIN_TOKEN of this deployment, or one of its OPERATOR_TOKENS, as a bearer token"
    }
}

fn find(knock: &Knock) -> Result<&'static Endpoint, Refusal> {
    let here = || ENDPOINTS.iter().filter(|endpoint| endpoint.path == knock.path);
    let method = if knock.method == "HEAD" { "GET" } else { knock.method };
    let found = here().find(|endpoint| endpoint.method.is_empty() || endpoint.method == method);
    found.ok_or_else(|| {
        let has = |method| here().any(|endpoint| endpoint.method == method);
        let allow = match (has("GET"), has("POST")) {
            (true, true) => "GET, HEAD, POST",
            (true, false) => "GET, HEAD",
            (false, true) => "POST",
            (false, false) => return Refusal::new(404, "There is nothing at this address"),
        };
        Refusal { allow: Some(allow), ..Refusal::new(405, format!("Only {allow} is answered here")) }
    })
}

/// The token of an `Authorization` header.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ').unwrap_or((authorization, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether a browser says that a page of our own sends the request. Where it says so by `Sec-Fetch-Site`, no page can make
/// it say otherwise; older ones tell the page's origin.
fn is_from_here(knock: &Knock) -> bool {
    if knock.fetch_site.is_empty() {
        !knock.origin.is_empty() && knock.origin.eq_ignore_ascii_case(knock.own_origin)
    } else {
        knock.fetch_site == "same-origin"
    }
}

/// Whether a browser says that a page of somebody else sends the request.
pub fn is_from_elsewhere(knock: &Knock) -> bool {
    let says_nothing = knock.fetch_site.is_empty() && knock.origin.is_empty();
    !says_nothing && !is_from_here(knock)
}
