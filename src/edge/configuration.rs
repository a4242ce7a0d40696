//! Rooms made at run time, as an isolate knows them.
//!
//! The object `CONFIG` keeps them; a copy lies in the cache of each data center. An isolate reads the cache before it serves
//! its first request, and once a second while it serves any; who finds a copy that is too old asks `CONFIG` whether there
//! is a newer one. No request waits for that but an isolate's first ones.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use worker::{Cache, Env, Headers, Response, Result};

use super::calls::{call, unreadable};
use super::clock::{now, within};
use super::platform::log_error;
use super::room_worker;
use super::settings::Settings;
use crate::machines::worker::CACHE_DEADLINE_MS;
use crate::managed::Document;
use crate::protocol::messages::{ConfigAnswer, ConfigAsk, VERSION};

/// The binding of the object, and its only name.
pub const BINDING: &str = "CONFIG";
/// See [`BINDING`].
pub const NAME: &str = "config";
/// The object's routes: what isolates ask, and what the API asks.
pub const DOCUMENT: &str = "/document";
/// See [`DOCUMENT`].
pub const CLIENT: &str = "/client";

/// Time between two looks of an isolate, in milliseconds. With [`FRESH_MS`] and a call it is less than three seconds until a
/// change is in force.
const LOOK_MS: u64 = 1_000;
/// For so long a data center's copy is as good as asking, in milliseconds.
const FRESH_MS: u64 = 1_000;
/// How long a copy stays in the cache, in seconds: it is what is known when `CONFIG` cannot be reached.
const KEPT_SECONDS: u32 = 30 * 86_400;
/// The cache: see `room_worker.rs`.
const CACHE: &str = "anteroom";
const KEPT_AT: &str = "anteroom-kept-at";

thread_local! {
    /// Whether this isolate has tried to learn what there is.
    static TRIED: Cell<bool> = const { Cell::new(false) };
    static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
    static KNOWN: RefCell<Option<Rc<Document>>> = const { RefCell::new(None) };
}

/// What is known of the rooms that were made at run time; `None`: nothing.
pub fn known() -> Option<Rc<Document>> {
    KNOWN.with_borrow(Clone::clone)
}

/// Whether nothing has to be learned before a request is decided.
pub fn is_ready(settings: &Settings) -> bool {
    TRIED.get() || !settings.has_configuration
}

/// Whether nobody knows which rooms were made at run time, though there may be some.
pub fn is_missing(settings: &Settings) -> bool {
    settings.has_configuration && KNOWN.with_borrow(Option::is_none)
}

/// Looks for a newer version in the background, if it is time to. `host`: under which the cache is asked, empty: not at all;
/// `wait_until`: lets a work go on after the answer.
pub fn keep_up(
    env: &Env,
    settings: &Settings,
    host: &str,
    wait_until: impl FnOnce(std::pin::Pin<Box<dyn Future<Output = ()>>>),
) {
    if !settings.has_configuration {
        return;
    }
    let time = now();
    // Where nobody can make a room, there is nothing to learn.
    let is_idle = !settings.operators.configures() && KNOWN.with_borrow(|known| known.as_ref().is_some_and(|known| known.version == 0));
    if is_idle || time < LOOKED_AT.get() + LOOK_MS {
        return;
    }
    LOOKED_AT.set(time);
    let (env, host) = (env.clone(), host.to_owned());
    wait_until(Box::pin(async move { learn(&env, &host, false).await }));
}

/// Learns what there is: of the data center's copy, or of `CONFIG` where that is too old or is to be asked in any case. What
/// cannot be reached leaves what is known as it is, and an old copy is better than none.
pub async fn learn(env: &Env, host: &str, anew: bool) {
    let settings = Settings::of(env);
    LOOKED_AT.set(now());
    let copy = if anew || host.is_empty() { None } else { within(CACHE_DEADLINE_MS, cached(host)).await.flatten() };
    let version = || KNOWN.with_borrow(|known| known.as_ref().map(|known| known.version));
    let mut is_fresh = false;
    if let Some((document, kept_at)) = copy {
        is_fresh = now() < kept_at + FRESH_MS;
        if version().is_none_or(|known| known < document.version) {
            take(env, document);
        }
    }
    if !is_fresh {
        let ask = ConfigAsk { v: VERSION, known: version(), ..ConfigAsk::default() };
        let told: Result<ConfigAnswer> =
            call(env, BINDING, NAME, DOCUMENT, &ask, settings.object_deadline_ms).await;
        match told.map(|told| (!told.body.is_empty()).then(|| serde_json::from_str(&told.body))) {
            Ok(Some(Ok(document))) => take(env, document),
            Ok(None) => {}
            Ok(Some(Err(error))) => log_error(&format!("the configuration cannot be read: {error}")),
            Err(error) => {
                log_error(&error.to_string());
                TRIED.set(true);
                return;
            }
        }
        if let Some(known) = known().filter(|_| !host.is_empty()) {
            // A cache that refuses is no harm: each isolate then asks by itself.
            let _ = put_into_cache(host, &known).await;
        }
    }
    TRIED.set(true);
}

fn take(env: &Env, document: Document) {
    KNOWN.set(Some(Rc::new(document)));
    let settings = Settings::renew(env);
    room_worker::redeploy(&settings);
}

fn cache_key(host: &str) -> String {
    format!("https://{host}/__anteroom/configuration")
}

async fn cached(host: &str) -> Option<(Document, u64)> {
    let mut response = Cache::open(CACHE.to_owned()).await.get(cache_key(host), false).await.ok()??;
    let kept_at = response.headers().get(KEPT_AT).ok()??.parse().ok()?;
    let text = response.text().await.ok()?;
    Some((serde_json::from_str(&text).ok()?, kept_at))
}

async fn put_into_cache(host: &str, document: &Document) -> Result<()> {
    let headers = Headers::new();
    headers.set("cache-control", &format!("max-age={KEPT_SECONDS}"))?;
    headers.set(KEPT_AT, &now().to_string())?;
    let text = serde_json::to_string(document).map_err(|_| unreadable(crate::protocol::wire::WireError))?;
    let response = Response::ok(text)?.with_headers(headers);
    Cache::open(CACHE.to_owned()).await.put(cache_key(host), response).await
}
