//! An observer of `HEALTH`: it probes the origin at each alarm, and reports to the coordinator. Route: `POST /wake`.

use std::time::Duration;

use js_sys::futures::JsFuture;
use js_sys::{Array, Promise, Uint8Array};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use worker::{Env, Request, Response, Result, SqlStorageValue as Sql, State};

use super::super::no_such_route;
use crate::edge::calls::{HEALTH, answer, call, unreadable};
use crate::edge::clock::{now, random, random_id};
use crate::edge::platform::log_error;
use crate::edge::settings::Settings;
use crate::health::judge::{Ended, Raw};
use crate::health::messages::{COORDINATOR, RECORD, Record, Stored, VERSION};
use crate::health::observer::{Post, WAKE, remember};
use crate::health::probe::{Attempt, Probe};
use crate::health::{ProbeResult, Reason, Waterfall};
use crate::protocol::records::{self, Found};
use crate::ticket::Ticket;

/// Timeout of reports to the coordinator, in milliseconds: it may be on another continent.
const COORDINATOR_DEADLINE_MS: u64 = 5_000;
/// An alarm that is late by this time is set anew, in milliseconds.
const LATE_ALARM_MS: u64 = 60_000;

#[wasm_bindgen(module = "/src/edge/probe.js")]
extern "C" {
    /// `probe.js` says what it takes and gives.
    #[wasm_bindgen(js_name = probe)]
    fn start_attempt(
        host: &str,
        port: u16,
        secure: bool,
        request: &str,
        url: &str,
        cookie: &str,
        timeout_ms: u32,
    ) -> Promise;
}

/// One observer; its object's name says which.
pub struct Observer {
    state: State,
    env: Env,
    name: String,
}

impl Observer {
    pub fn new(state: State, env: Env, name: String) -> Self {
        Self { state, env, name }
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

    /// Sets the alarm, unless it fires in time anyway.
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

    /// Probes the origin once, and tells the coordinator.
    pub async fn alarm(&self) -> Result<Response> {
        let settings = Settings::of(&self.env);
        let storage = self.state.storage();
        let Some(post) = Post::of(&self.name, &settings.checks) else {
            // It is no longer configured, or suspended: whoever configures it again wakes it. This alarm was the last.
            storage.delete_all().await?;
            return Response::empty();
        };
        // Set again first: whatever happens to this probe, another one follows.
        storage.set_alarm(Duration::from_millis(post.next_in(now()))).await?;
        let result = probe(post, &settings).await;
        let untold = self.untold()?;
        let may_write = untold.may_be_replaced();
        let mut results = untold.record.unwrap_or_default();
        let had_untold = !results.is_empty();
        remember(&mut results, result);
        let record = Record { v: VERSION, results };
        match call::<_, Stored>(&self.env, HEALTH, COORDINATOR, RECORD, &record, COORDINATOR_DEADLINE_MS)
            .await
        {
            Ok(_) if had_untold => self.keep_untold(&Vec::new())?,
            Ok(_) => {}
            Err(error) => {
                log_error(&format!("{}: {error}", self.name));
                if may_write {
                    self.keep_untold(&record.results)?;
                }
            }
        }
        Response::empty()
    }

    /// What the coordinator could not be told. It is stored, since an object's memory does not last until the next alarm.
    fn untold(&self) -> Result<Found<Vec<ProbeResult>>> {
        let sql = self.state.storage().sql();
        sql.exec(
            "CREATE TABLE IF NOT EXISTS untold (one INTEGER PRIMARY KEY, results BLOB NOT NULL)",
            vec![],
        )?;
        let row = sql.exec("SELECT results FROM untold", vec![])?.raw().next().transpose()?;
        Ok(Found::new(match row.as_deref() {
            Some([Sql::Blob(bytes), ..]) => Some(bytes),
            _ => None,
        }))
    }

    fn keep_untold(&self, results: &Vec<ProbeResult>) -> Result<()> {
        let bytes = records::write(results).map_err(unreadable)?;
        let query = "INSERT OR REPLACE INTO untold (one, results) VALUES (1, ?)";
        self.state.storage().sql().exec(query, vec![bytes.into()]).map(|_| ())
    }
}

/// Probes the origin, with as many attempts as that takes.
async fn probe(post: Post<'_>, settings: &Settings) -> ProbeResult {
    let mut probe = Probe::new(post, now());
    loop {
        let attempt = probe.attempt(now());
        let Attempt { host, port, secure, request, url, timeout_ms, .. } = &attempt;
        let cookie = ticket(settings, &attempt).unwrap_or_default();
        let found = start_attempt(host, *port, *secure, request, url, &cookie, *timeout_ms);
        let found = JsFuture::from(found).await;
        let result = match found.ok().and_then(raw) {
            Some(raw) => probe.take(&raw, now(), lead),
            None => {
                Some(probe.result(Reason::Other("The probe failed".to_owned()), None, Waterfall::default()))
            }
        };
        if let Some(result) = result {
            return result;
        }
    }
}

/// Where an attempt has to go by `fetch()`, it may lead through a room of ours: then it goes as an active user, whom nobody
/// counts. Else a full room would be taken for a healthy origin, and each probe be a new visitor.
fn ticket(settings: &Settings, attempt: &Attempt) -> Option<String> {
    let path = attempt.path.split('?').next().unwrap_or_default();
    let room = settings.rooms.cover(&attempt.host, path).filter(|_| attempt.own)?;
    let time = now();
    let ticket = Ticket::new(random_id().ok()?, time).admitted(time);
    let sealed = settings.keys.as_ref()?.seal(room.name.as_str(), &ticket, random().ok()?);
    Some(format!("{}={sealed}", room.cookie_name()))
}

/// Where an answer leads, read by the platform as browsers do.
fn lead(from: &str, location: &str) -> Option<String> {
    let url = web_sys::Url::new_with_base(location, from).ok()?;
    url.set_hash("");
    Some(url.href())
}

/// What `probe.js` gives.
fn raw(found: JsValue) -> Option<Raw> {
    let parts: Array = found.dyn_into().ok()?;
    let number = |place| parts.get(place).as_f64();
    let milliseconds = |place| number(place).map(|time| time as u32);
    Some(Raw {
        ended: match number(0)? as u8 {
            0 => Ended::Complete,
            1 => Ended::TimedOut,
            2 => Ended::Failed,
            _ => Ended::Cut,
        },
        by_fetch: parts.get(1).is_truthy(),
        waterfall: Waterfall {
            tcp_ms: milliseconds(2),
            tls_ms: milliseconds(3),
            first_byte_ms: milliseconds(4),
            total_ms: milliseconds(5),
        },
        received: number(6)? as u64,
        answer: parts.get(7).dyn_into::<Uint8Array>().ok()?.to_vec(),
    })
}
