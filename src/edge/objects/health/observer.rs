//! An observer of `HEALTH`: it looks at the origin at each alarm, and tells the keeper what it saw. Route:
//! `POST /wake`. And what the keeper does for its observers: it makes and wakes those that are configured.

use std::cell::RefCell;
use std::time::Duration;

use js_sys::futures::JsFuture;
use js_sys::{Array, Promise, Uint8Array};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::{Env, Request, Response, Result, State, Storage};

use super::super::{load, no_such_route, store};
use crate::edge::calls::{HEALTH, answer, call, failure, wake};
use crate::edge::clock::now;
use crate::edge::platform::log_error;
use crate::edge::settings::Settings;
use crate::health::check::{Target, Url};
use crate::health::judge::{Ended, Judgement, Raw, judge};
use crate::health::messages::{KEEPER, RECORD, Record, Stored, VERSION};
use crate::health::observer::{Post, WAKE, remember};
use crate::health::{ProbeResult, Reason, Waterfall};

/// The storage key of what the keeper could not be told.
const UNTOLD: &str = "untold";
/// The keeper may take so long, in milliseconds: it may be on another continent.
const KEEPER_DEADLINE_MS: u64 = 5_000;
/// An observer is waited for so long, in milliseconds; it begins though it takes longer.
const WAKE_DEADLINE_MS: u64 = 2_000;
/// A check goes on from one server to the next so often.
const REDIRECTS_MAX: usize = 5;
/// An alarm that has not rung so long after its time is set anew, in milliseconds.
const LATE_ALARM_MS: u64 = 60_000;

#[wasm_bindgen(module = "/src/edge/probe.js")]
extern "C" {
    /// `probe.js` says what it takes and gives.
    #[wasm_bindgen(js_name = probe)]
    fn start_probe(host: &str, port: u16, secure: bool, request: &str, url: &str, timeout_ms: u32)
    -> Promise;
}

/// One observer; its object's name says which.
pub struct Observer {
    state: State,
    env: Env,
    name: String,
    /// Results that the keeper does not have. `None`: not read from storage yet.
    untold: RefCell<Option<Vec<ProbeResult>>>,
}

impl Observer {
    pub fn new(state: State, env: Env, name: String) -> Self {
        Self { state, env, name, untold: RefCell::new(None) }
    }

    pub async fn fetch(&self, request: Request) -> Result<Response> {
        match request.path().as_str() {
            WAKE => {
                self.wake().await?;
                answer(&())
            }
            path => no_such_route(path),
        }
    }

    /// Sets the alarm, unless it rings in time anyway.
    async fn wake(&self) -> Result<()> {
        let settings = Settings::of(&self.env);
        let Some(post) = Post::of(&self.name, &settings.checks) else { return Ok(()) };
        let (storage, time) = (self.state.storage(), now());
        let in_time =
            |alarm: u64| alarm + LATE_ALARM_MS > time && alarm <= time + post.check.longest_gap_ms();
        if storage.get_alarm().await?.is_some_and(|alarm| in_time(alarm.max(0) as u64)) {
            return Ok(());
        }
        storage.set_alarm(Duration::from_millis(post.begins_in())).await
    }

    /// Looks at the origin once, and tells the keeper.
    pub async fn alarm(&self) -> Result<Response> {
        let settings = Settings::of(&self.env);
        let storage = self.state.storage();
        let Some(post) = Post::of(&self.name, &settings.checks) else {
            // It is no longer configured, or suspended: whoever configures it again wakes it.
            storage.delete_all().await?;
            storage.delete_alarm().await?;
            return Response::empty();
        };
        // Set again first: whatever happens to this probe, another one follows.
        storage.set_alarm(Duration::from_millis(post.next_in(now()))).await?;
        let result = look(&post).await;
        self.tell(&storage, result).await?;
        Response::empty()
    }

    /// Tells the keeper what it does not have yet. What it cannot be told waits for the next alarm.
    async fn tell(&self, storage: &Storage, result: ProbeResult) -> Result<()> {
        let known = self.untold.take();
        let mut untold = match known {
            Some(untold) => untold,
            None => load(storage, UNTOLD).await.ok().flatten().unwrap_or_default(),
        };
        let had_stored = !untold.is_empty();
        remember(&mut untold, result);
        let mut record = Record { v: VERSION, results: untold };
        let told: Result<Stored> = call(&self.env, HEALTH, KEEPER, RECORD, &record, KEEPER_DEADLINE_MS).await;
        match told {
            Ok(_) => {
                record.results.clear();
                if had_stored {
                    storage.delete(UNTOLD).await?;
                }
            }
            Err(error) => {
                log_error(&format!("{}: {error}", self.name));
                store(storage, UNTOLD, &record.results).await?;
            }
        }
        self.untold.replace(Some(record.results));
        Ok(())
    }
}

/// Makes and wakes observers, each near its location hint: the first call decides where an object lives.
pub async fn wake_all(env: Env, observers: Vec<(String, &'static str)>) {
    for (name, hint) in observers {
        if let Err(error) = wake(&env, HEALTH, name, hint, WAKE, WAKE_DEADLINE_MS).await {
            log_error(&error.to_string());
        }
    }
}

/// A probe, repeated at once when it takes too long.
async fn look(post: &Post<'_>) -> ProbeResult {
    let check = post.check;
    let mut tries = 0;
    loop {
        let at = now();
        let (raw, reason, actual_code) = attempt(post).await.unwrap_or_else(|error| {
            log_error(&format!("{}: {error}", post.name()));
            (None, Reason::Other("The probe failed".to_owned()), None)
        });
        if raw.as_ref().is_some_and(|raw| raw.ended == Ended::TimedOut) && tries < check.retries {
            tries += 1;
            continue;
        }
        return ProbeResult {
            check: check.name.clone(),
            region: post.region.name.to_owned(),
            observer: post.number,
            at,
            healthy: reason == Reason::NoFailures,
            reason,
            expected_codes: check.expected_codes(),
            actual_code,
            waterfall: raw.map_or_else(Waterfall::default, |raw| raw.waterfall),
        };
    }
}

/// One probe, with the servers that the answers lead to. Its waterfall is the last one's.
async fn attempt(post: &Post<'_>) -> Result<(Option<Raw>, Reason, Option<u16>)> {
    let (check, began) = (post.check, now());
    let mut target = check.target.clone();
    for _ in 0..=REDIRECTS_MAX {
        let left = u64::from(check.timeout_ms()).saturating_sub(now() - began);
        let raw = probe(post, &target, left.max(1) as u32).await?;
        match judge(check, &target, &raw) {
            Judgement::Done { reason, actual_code } => return Ok((Some(raw), reason, actual_code)),
            Judgement::Follow { location, code } => match beside(&target, &location) {
                Some(url) => target = Target::Http(url),
                None => return Ok((Some(raw), Reason::ResponseCodeMismatch, Some(code))),
            },
        }
    }
    Ok((None, Reason::Other("Too many redirects".to_owned()), None))
}

/// Where an answer leads, read by the platform as browsers do.
fn beside(target: &Target, location: &str) -> Option<Url> {
    let Target::Http(url) = target else { return None };
    let found = web_sys::Url::new_with_base(location, &url.to_string()).ok()?;
    found.set_hash("");
    Url::read(&found.href())
}

async fn probe(post: &Post<'_>, target: &Target, timeout_ms: u32) -> Result<Raw> {
    let promise = match target {
        Target::Tcp { host, port } => start_probe(host, *port, false, "", "", timeout_ms),
        Target::Http(url) => {
            let request = post.check.request(url, &post.who());
            start_probe(&url.host, url.port, url.secure, &request, &url.to_string(), timeout_ms)
        }
    };
    let parts: Array = JsFuture::from(promise).await?.into();
    let number = |place| parts.get(place).as_f64();
    let milliseconds = |place| number(place).map(|time| time as u32);
    Ok(Raw {
        ended: match number(0).map(|ended| ended as u8) {
            Some(0) => Ended::Complete,
            Some(1) => Ended::TimedOut,
            Some(2) => Ended::Failed,
            Some(3) => Ended::Cut,
            _ => return Err(failure("a probe has ended in an unknown way".to_owned())),
        },
        by_fetch: parts.get(1).is_truthy(),
        waterfall: Waterfall {
            tcp_ms: milliseconds(2),
            tls_ms: milliseconds(3),
            first_byte_ms: milliseconds(4),
            total_ms: milliseconds(5),
        },
        received: number(6).unwrap_or_default() as u64,
        answer: Uint8Array::from(parts.get(7)).to_vec(),
    })
}
