//! Rooms made at run time, as an isolate knows them.
//!
//! The object `CONFIG` keeps them (`client/config.js`); a copy lies in the cache of each data center. An isolate looks for it
//! before it serves its first request, and once a second while it serves any; `client/document.js` does the looking. No
//! request waits for that but an isolate's first ones. Objects do not look: every call tells them the caller's version, and
//! who hears of a newer one asks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::futures::JsFuture;
use js_sys::{Array, Function, JsString, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use worker::Env;

use super::calls::LocalBoxFuture;
use super::clock::{now, pause};
use super::platform::log_error;
use super::room_worker;
use super::settings::Settings;
use crate::config::Made;

/// The object's binding.
pub const BINDING: &str = "CONFIG";
/// Time between two looks of an isolate, in milliseconds. With the time for which a copy is as good as asking and a call it is
/// less than three seconds until a change is in force.
const LOOK_MS: u64 = 1_000;
/// Time between two calls for a version that others know, in milliseconds.
const LEAST_MS: u64 = 100;
/// The same as [`LOOK_MS`] where nothing was ever made.
const LOOK_IF_EMPTY_MS: u64 = 30_000;

/// Who waits for what another request of an operator is learning looks so often, in milliseconds, and so many times.
const WAIT_MS: u64 = 20;
const WAITS: u32 = 50;

/// For whom it is looked what there is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// For visitors: what a data center knows is good enough.
    Visitors,
    /// For operators, whose tokens may be the first that was ever made: a copy is not older, whatever is in it.
    Operators,
    /// For somebody who knows that there is something newer: the object itself is asked.
    Anew,
}

thread_local! {
    /// Whether this isolate has tried to learn what there is.
    static TRIED: Cell<bool> = const { Cell::new(false) };
    static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
    /// When a look has last come to its end.
    static LEARNED_AT: Cell<u64> = const { Cell::new(0) };
    static KNOWN: RefCell<Option<Rc<Made>>> = const { RefCell::new(None) };
}

/// What is known of the rooms that were made at run time; `None`: nothing.
pub fn known() -> Option<Rc<Made>> {
    KNOWN.with_borrow(Clone::clone)
}

/// Whether nothing has to be learned before a request is decided.
pub fn is_ready(settings: &Settings) -> bool {
    TRIED.get() || settings.while_unknown.is_none()
}

/// Whether nobody knows which rooms were made at run time, though there may be some.
pub fn is_missing(settings: &Settings) -> bool {
    settings.while_unknown.is_some() && KNOWN.with_borrow(Option::is_none)
}

/// The version that is known; 0: nothing is, or nothing was ever made.
pub fn version() -> u64 {
    KNOWN.with_borrow(|known| known.as_ref().map_or(0, |known| known.version))
}

/// A caller knows this version: learns in the background what it is, if it is newer. `query`: of the call's address, as
/// `calls.rs` writes it.
pub fn heard(env: &Env, query: &str, wait_until: impl FnOnce(LocalBoxFuture<()>)) {
    if query.parse().is_ok_and(|heard: u64| heard > version()) && now() >= LOOKED_AT.get() + LEAST_MS {
        LOOKED_AT.set(now());
        wait_until(learn(env.clone(), String::new(), Look::Anew));
    }
}

/// Looks for a newer version in the background, if it is time to. `host`: under which the cache is asked, empty: not at all;
/// `wait_until`: lets a work go on after the answer.
pub fn keep_up(env: &Env, settings: &Settings, host: &str, wait_until: impl FnOnce(LocalBoxFuture<()>)) {
    if settings.while_unknown.is_none() {
        return;
    }
    let is_empty = KNOWN.with_borrow(|known| known.as_ref().is_some_and(|known| known.version == 0));
    let (time, wait) = (now(), if is_empty { LOOK_IF_EMPTY_MS } else { LOOK_MS });
    // Where nothing was made, and nobody can, there is nothing to learn.
    if time < LOOKED_AT.get() + wait || is_empty && !settings.operators.configures() {
        return;
    }
    LOOKED_AT.set(time);
    wait_until(learn(env.clone(), host.to_owned(), Look::Visitors));
}

/// Whether what is known is too old to say whose token comes along: one may have been made, or revoked, since.
pub fn is_old(settings: &Settings) -> bool {
    settings.while_unknown.is_some() && now() >= LEARNED_AT.get() + LOOK_MS
}

/// Learns what an operator's request has to know. Of many at once one looks, and the others wait for what it learns; where it
/// was given up in the middle, another one looks after a while.
pub async fn catch_up(env: &Env, settings: &Settings, host: &str) {
    for _ in 0..WAITS {
        if !is_old(settings) {
            return;
        }
        let is_looking = LOOKED_AT.get() > LEARNED_AT.get() && now() < LOOKED_AT.get() + LOOK_MS;
        if !is_looking {
            return learn(env.clone(), host.to_owned(), Look::Operators).await;
        }
        pause(WAIT_MS).await;
    }
}

/// Learns what there is. What cannot be reached leaves what is known as it is.
pub fn learn(env: Env, host: String, look: Look) -> LocalBoxFuture<()> {
    Box::pin(async move {
        LOOKED_AT.set(now());
        let patience = Settings::of(&env).object_deadline_ms;
        match read(&env, &host, look, patience).await {
            Ok(text) if text.is_empty() => {}
            Ok(text) => match Made::read(&text) {
                Some(made) => {
                    KNOWN.set(Some(Rc::new(made)));
                    room_worker::redeploy(&Settings::renew(&env));
                }
                None => log_error("the configuration of rooms made at run time cannot be read"),
            },
            Err(error) => log_error(&format!("the object CONFIG does not answer: {error:?}")),
        }
        TRIED.set(true);
        // A copy that says that there is nothing may be older than operators' tokens.
        if look != Look::Visitors || version() > 0 {
            LEARNED_AT.set(now());
        }
    })
}

/// What is newer than what is known; empty: nothing is. `entry.js` puts the function where this finds it.
async fn read(env: &Env, host: &str, look: Look, patience: u64) -> Result<String, JsValue> {
    let read = Reflect::get(&js_sys::global(), &JsString::from("anteroomDocument"))?;
    let read: Function = read.dyn_into()?;
    let arguments: Array = [
        AsRef::<JsValue>::as_ref(env).clone(),
        JsValue::from_str(host),
        JsValue::from_f64(f64::from(look as u8)),
        JsValue::from_f64(patience as f64),
        JsValue::from_f64(known().map_or(-1.0, |known| known.version as f64)),
    ]
    .into_iter()
    .collect();
    let promise: Promise = read.apply(&JsValue::UNDEFINED, &arguments)?.dyn_into()?;
    let text: JsValue = JsFuture::from(promise).await?;
    Ok(text.as_string().unwrap_or_default())
}
