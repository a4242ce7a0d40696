//! Asking Turnstile's service.

use std::cell::{Cell, RefCell};

use js_sys::futures::JsFuture;
use js_sys::{Object, Promise};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Context;

use super::clock::now;
use super::gate::parts;
use super::platform::log_error;
use super::settings::Settings;
use crate::room::Room;
use crate::turnstile::{Budget, CALLS_PER_SECOND, MAX_TOKEN_LENGTH, TOKEN_HEADER, Verdict};

/// A visitor who waits for the service's word waits no longer than this, in milliseconds.
const DEADLINE_MS: u32 = 3_000;
/// Time between two looks whether visitors can get the widget at all, in milliseconds.
const LOOK_MS: u64 = 30_000;

#[wasm_bindgen(module = "/src/edge/turnstile.js")]
extern "C" {
    /// `turnstile.js` says what they take and give.
    #[wasm_bindgen(js_name = siteverify)]
    fn start_siteverify(
        service: &str,
        secret: &str,
        token: &str,
        address: Option<String>,
        milliseconds: u32,
    ) -> Promise;
    #[wasm_bindgen(js_name = hasWidget)]
    fn start_look(service: &str, milliseconds: u32) -> Promise;
}

thread_local! {
    /// When it was last looked at, and whether the service was there.
    static SERVICE: Cell<(u64, bool)> = const { Cell::new((0, true)) };
    static BUDGET: RefCell<Budget> = RefCell::default();
}

/// What the service says of the token that a request brings; `None`: there is none, or the room has no Turnstile.
pub async fn verdict(settings: &Settings, room: &Room, request: &web_sys::Request) -> Option<Verdict> {
    let secret = settings.turnstile_secret(room)?;
    let token = request.headers().get(TOKEN_HEADER).ok().flatten()?;
    let address = request.headers().get("cf-connecting-ip").ok().flatten();
    let verdict = if token.len() > MAX_TOKEN_LENGTH {
        Verdict::Failed("the token is too long".to_owned())
    } else {
        let number = BUDGET.with_borrow_mut(|budget| budget.number(now()));
        if number > CALLS_PER_SECOND {
            let why =
                format!("more than {CALLS_PER_SECOND} tokens in a second: the others are not looked at");
            // Once, and not for each of a flood.
            if number == CALLS_PER_SECOND + 1 {
                log_error(&format!("turnstile: {why}"));
            }
            // Not trusted: a flood is somebody's choice.
            return Some(Verdict::Again);
        }
        let asked = start_siteverify(&settings.turnstile_url, secret, &token, address, DEADLINE_MS);
        match JsFuture::from(asked).await.map(|body| body.as_string()) {
            Ok(Some(body)) => Verdict::read(&body, room, parts(&request.url()).1),
            Ok(None) => Verdict::Silent("no answer".to_owned()),
            Err(error) => {
                Verdict::Silent(format!("no answer: {}", String::from(&Object::from(error).to_string())))
            }
        }
    };
    match &verdict {
        Verdict::Failed(codes) => {
            worker::console_log!("anteroom: turnstile: room {}: failed: {codes}", room.name);
        }
        Verdict::Silent(why) => log_error(&format!("turnstile: room {}: {why}", room.name)),
        Verdict::Passed | Verdict::Again => {}
    }
    Some(verdict)
}

/// Whether visitors seem to get the widget. Looked at now and then, after the response: as long as the service is away,
/// nobody has to show anything.
pub fn is_there(settings: &Settings, context: &Context) -> bool {
    let (looked_at, there) = SERVICE.get();
    let time = now();
    if time >= looked_at + LOOK_MS {
        SERVICE.set((time, there));
        let look = JsFuture::from(start_look(&settings.turnstile_url, DEADLINE_MS));
        context.wait_until(async move {
            let there = look.await.is_ok_and(|there| there.is_truthy());
            if !there {
                log_error("turnstile: the service is away: nobody has to pass it");
            }
            SERVICE.set((now(), there));
        });
    }
    there
}
