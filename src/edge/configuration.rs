//! Rooms made at run time, as an isolate knows them.
//!
//! The object `CONFIG` keeps them (`client/config.js`); a copy lies in the cache of each data center. An isolate looks for it
//! before it serves its first request, and once a second while it serves any. `machines/configuration.rs` says when, and whom
//! it asks; `client/document.js` does the asking. No request waits for that but an isolate's first ones. Objects do not look.
//! Every call tells the newest version that its caller has heard of, and every answer that of the object; who hears of a newer
//! one than it knows asks.

use std::cell::RefCell;
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
use crate::machines::configuration::{Copy, Learner, Look, Step};

/// The object's binding.
pub const BINDING: &str = "CONFIG";

/// Who waits for what another request of an operator is learning looks so often, in milliseconds, and so many times.
const WAIT_MS: u64 = 20;
const WAITS: u32 = 50;

thread_local! {
    static LEARNER: RefCell<Learner> = RefCell::new(Learner::default());
    static KNOWN: RefCell<Option<Rc<Made>>> = const { RefCell::new(None) };
}

/// What is known of the rooms that were made at run time; `None`: nothing.
pub fn known() -> Option<Rc<Made>> {
    KNOWN.with_borrow(Clone::clone)
}

/// Whether nothing has to be learned before a request is decided.
pub fn is_ready(settings: &Settings) -> bool {
    LEARNER.with_borrow(Learner::has_tried) || settings.while_unknown.is_none()
}

/// Whether nobody knows which rooms were made at run time, though there may be some.
pub fn is_missing(settings: &Settings) -> bool {
    settings.while_unknown.is_some() && KNOWN.with_borrow(Option::is_none)
}

/// The version to tell whomever this isolate talks to; 0: nothing was ever made, as far as it has heard.
pub fn version() -> u64 {
    LEARNER.with_borrow(Learner::tells)
}

/// Somebody knows this version, who has called this isolate or answered it.
pub fn hear(version: &str) {
    if let Ok(version) = version.parse() {
        LEARNER.with_borrow_mut(|learner| learner.hears(version));
    }
}

/// Whether somebody knows of a newer version.
pub fn is_behind() -> bool {
    LEARNER.with_borrow(Learner::is_behind)
}

/// Learns in the background what others have told an object of, if that is newer than what it knows.
pub fn follow(env: &Env, wait_until: impl FnOnce(LocalBoxFuture<()>)) {
    let look =
        LEARNER.with_borrow_mut(|learner| if learner.is_behind() { learner.due(true, now()) } else { None });
    if let Some(look) = look {
        wait_until(carry_out(env.clone(), String::new(), look));
    }
}

/// Looks for a newer version in the background, if it is time to. `host`: under which the cache is asked; `wait_until`: lets a
/// work go on after the answer.
pub fn keep_up(env: &Env, settings: &Settings, host: &str, wait_until: impl FnOnce(LocalBoxFuture<()>)) {
    if settings.while_unknown.is_none() {
        return;
    }
    let look = LEARNER.with_borrow_mut(|learner| learner.due(settings.operators.configures(), now()));
    if let Some(look) = look {
        wait_until(carry_out(env.clone(), host.to_owned(), look));
    }
}

/// Whether what is known is too old to say whose token comes along: one may have been made, or revoked, since.
pub fn is_old(settings: &Settings) -> bool {
    settings.while_unknown.is_some() && LEARNER.with_borrow(|learner| learner.is_old(now()))
}

/// Learns what an operator's request has to know. Of many at once one looks, and the others wait for what it learns; where it
/// was given up in the middle, another one looks after a while.
pub async fn catch_up(env: &Env, settings: &Settings, host: &str) {
    for _ in 0..WAITS {
        if !is_old(settings) {
            return;
        }
        if let Some(look) = LEARNER.with_borrow_mut(|learner| learner.look_for_operators(now())) {
            return carry_out(env.clone(), host.to_owned(), look).await;
        }
        pause(WAIT_MS).await;
    }
}

/// Learns what there is. `host`: under which the cache is asked, empty: not at all; `anew`: the object itself is asked. What
/// cannot be reached leaves what is known as it is.
pub fn learn(env: Env, host: String, anew: bool) -> LocalBoxFuture<()> {
    let look = LEARNER.with_borrow_mut(|learner| learner.look(anew, now()));
    carry_out(env, host, look)
}

fn carry_out(env: Env, host: String, mut look: Look) -> LocalBoxFuture<()> {
    Box::pin(async move {
        let settings = Settings::of(&env);
        let (patience, has_rooms) = (settings.object_deadline_ms, !settings.rooms.is_empty());
        let mut step = look.begin();
        while step != Step::End {
            let name = match step {
                Step::Read => "read",
                Step::ReadClaim => "readClaim",
                Step::Claim => "claim",
                Step::Ask => "ask",
                Step::Keep => "keep",
                Step::End => break,
            };
            let answer = document(name, &env, &host, patience).await;
            step = match step {
                Step::Read => {
                    let copy = answer.ok().and_then(|answer| copy_of(&answer));
                    LEARNER.with_borrow(|learner| look.found(learner, copy, has_rooms, now()))
                }
                Step::ReadClaim => {
                    let at = answer.ok().as_ref().and_then(whole);
                    LEARNER.with_borrow(|learner| look.claimed(learner, at, now()))
                }
                Step::Claim => Step::Ask,
                Step::Ask => {
                    if let Err(error) = &answer {
                        log_error(&format!("the object CONFIG does not answer: {error:?}"));
                    }
                    look.told(answer.ok().as_ref().and_then(whole))
                }
                Step::Keep | Step::End => Step::End,
            };
        }
        if LEARNER.with_borrow_mut(|learner| learner.looked(&look)) {
            let text = document("text", &env, &host, patience).await.ok().and_then(|text| text.as_string());
            match text.as_deref().and_then(Made::read) {
                Some(made) => {
                    LEARNER.with_borrow_mut(|learner| learner.learned(made.version));
                    KNOWN.set(Some(Rc::new(made)));
                    room_worker::redeploy(&Settings::renew(&env));
                }
                None => log_error("the configuration of rooms made at run time cannot be read"),
            }
        }
    })
}

fn whole(value: &JsValue) -> Option<u64> {
    value.as_f64().map(|number| number as u64)
}

/// Of a copy that was read: its version, and when it was put there.
fn copy_of(read: &JsValue) -> Option<Copy> {
    let read: &Array = read.dyn_ref()?;
    Some(Copy { version: whole(&read.get(0))?, kept_at: whole(&read.get(1))? })
}

/// What a step brings. `entry.js` puts the function where this finds it.
async fn document(step: &str, env: &Env, host: &str, patience: u64) -> Result<JsValue, JsValue> {
    let document = Reflect::get(&js_sys::global(), &JsString::from("anteroomDocument"))?;
    let document: Function = document.dyn_into()?;
    let arguments: Array = [
        JsValue::from_str(step),
        AsRef::<JsValue>::as_ref(env).clone(),
        JsValue::from_str(host),
        JsValue::from_f64(patience as f64),
    ]
    .into_iter()
    .collect();
    let promise: Promise = document.apply(&JsValue::UNDEFINED, &arguments)?.dyn_into()?;
    JsFuture::from(promise).await
}
