//! A request's way: match the room, open the ticket, look at the state key, decide, act, count.

use worker::{Context, Env, Request, Result};

use super::clock::{now, random, random_id};
use super::platform::{colo, log_error};
use super::room_worker::Place;
use super::settings::Settings;
use super::{operator, origin};
use crate::answer::{self, Answer, Estimate, STATUS_REQUEST_HEADER, WaitingView};
use crate::config::Coverage;
use crate::pipeline::{CheckIn, PLACE_MS};
use crate::queue::{Step, estimated_wait_seconds, likely_ahead, minute_of, next_check_in_seconds};
use crate::ticket::{KeyRing, Standing, Ticket, find_cookie, set_cookie, standing};

/// Our own paths, on every host that a room covers.
const OWN_PATHS: &str = "/__anteroom/";

/// Handles one request.
pub async fn handle(request: Request, env: Env, context: Context) -> Result<web_sys::Response> {
    let settings = Settings::of(&env);
    let url = request.inner().url();
    let (https, host, path) = parts(&url);
    if path.starts_with(OWN_PATHS) && settings.rooms.covers_host(host) {
        return operator::handle(&request, path, &env, &settings).await;
    }
    let room = match settings.rooms.find(host, path) {
        Coverage::Uncovered => return to_origin(&request, &settings, None).await,
        Coverage::Covered(room) => room,
        // Which room it means depends on who reads it; no honest client writes such a path.
        Coverage::Contradictory(_) => return respond(&answer::bad_path(), None),
    };
    let Some(keys) = &settings.keys else {
        // Without keys no ticket can be given, so nobody could ever leave the queue: fail open. It is in the log.
        return to_origin(&request, &settings, None).await;
    };
    if room.suspended {
        return to_origin(&request, &settings, None).await;
    }
    let place = Place::new(room, colo(&request), host, &env, &settings);
    let visit = Visit { request, context, settings: &settings, keys, place, https };
    visit.handle().await
}

struct Visit<'a> {
    request: Request,
    context: Context,
    settings: &'a Settings,
    keys: &'a KeyRing,
    place: Place,
    https: bool,
}

impl Visit<'_> {
    async fn handle(self) -> Result<web_sys::Response> {
        let room = &self.place.room;
        let standing = self.standing();
        if let Standing::Active(ticket) = standing {
            return self.pass(ticket).await;
        }
        if !room.queue_all {
            self.place.refresh_state().await;
        }
        let (ticket, waits) = match standing {
            Standing::Active(ticket) | Standing::Waiting(ticket) => (ticket, true),
            Standing::New => {
                let time = self.place.time();
                let id = random_id()?;
                (Ticket { id, bucket: minute_of(time), accepted_at: None, last_check_in: time }, false)
            }
        };
        let step = self.place.judge(&standing, ticket.id).await?;
        self.place.refill(&self.context);
        match step {
            Step::Pass => self.pass(ticket).await,
            Step::Enter { minute, numbered } => self.enter(ticket, waits, minute, numbered).await,
            Step::Wait | Step::Ask(..) => self.wait(ticket, waits).await,
        }
    }

    /// What the request's cookies say. Browsers may send several of one name: the one that says most counts.
    fn standing(&self) -> Standing {
        let room = &self.place.room;
        let header = self.request.inner().headers().get("cookie").ok().flatten().unwrap_or_default();
        let time = self.place.time();
        let mut best = Standing::New;
        for value in find_cookie(&header, &room.cookie_name()) {
            let ticket = self.keys.open(&room.name, value);
            match standing(ticket, time, room.session_ms(), PLACE_MS) {
                active @ Standing::Active(_) => return active,
                waiting @ Standing::Waiting(_) if best == Standing::New => best = waiting,
                _ => {}
            }
        }
        best
    }

    /// An active user: to the origin, without a call.
    async fn pass(&self, ticket: Ticket) -> Result<web_sys::Response> {
        let time = self.place.time();
        // Within one slot nothing changes: no new cookie, nothing to count.
        let moved = time / self.place.room.slot_ms() != ticket.last_check_in / self.place.room.slot_ms();
        let cookie = if moved {
            let check_in = CheckIn::Move { id: ticket.id, from: ticket.last_check_in, at: time };
            self.place.note(check_in, &self.context);
            Some(self.cookie(&Ticket { last_check_in: time, ..ticket }, self.place.room.session_ms())?)
        } else {
            None
        };
        self.admit(cookie).await
    }

    /// A new user: one more active, from now on.
    async fn enter(
        &self,
        ticket: Ticket,
        waited: bool,
        minute: u32,
        numbered: bool,
    ) -> Result<web_sys::Response> {
        let time = self.place.time();
        let from = waited.then_some(ticket.last_check_in);
        let check_in =
            CheckIn::Enter { id: ticket.id, bucket: ticket.bucket, from, at: time, minute, numbered };
        self.place.note(check_in, &self.context);
        let admitted = Ticket { accepted_at: Some(time), last_check_in: time, ..ticket };
        let cookie = self.cookie(&admitted, self.place.room.session_ms())?;
        self.admit(Some(cookie)).await
    }

    async fn admit(&self, cookie: Option<String>) -> Result<web_sys::Response> {
        if self.is_status_request() {
            return respond(&answer::admitted_status(), cookie.as_deref());
        }
        to_origin(&self.request, self.settings, cookie.as_deref()).await
    }

    async fn wait(&self, ticket: Ticket, waited: bool) -> Result<web_sys::Response> {
        let room = &self.place.room;
        let mut state = self.place.refresh_state().await;
        if state.as_ref().is_none_or(|state| state.age(now()) > room.refresh_ms()) {
            state = self.place.state_from_data_center().await;
        }
        let time = self.place.time();
        let from = waited.then_some(ticket.last_check_in);
        let check_in = CheckIn::Wait { id: ticket.id, bucket: ticket.bucket, from, at: time };
        self.place.note(check_in, &self.context);
        let global_time = state.as_ref().map_or(time, |state| state.global_time(now()));
        let key = state.as_ref().map(|state| &state.key);
        let [random] = random::<1>()?;
        let refresh_seconds =
            next_check_in_seconds(room, key, ticket.bucket, global_time, f64::from(random) / 256.0);
        let url = self.request.inner().url();
        let view = WaitingView {
            room,
            url: &url,
            estimate: key
                .and_then(|key| estimated_wait_seconds(room, key, ticket.bucket, global_time))
                .map_or(Estimate::Unknown, |seconds| Estimate::Known { seconds }),
            people_ahead: key.map(|key| likely_ahead(key, ticket.bucket).max(0) as u64),
            queue_all: room.queue_all,
            refresh_seconds,
            now_ms: time,
            cookieless: !waited && self.comes_from_itself(),
        };
        let waiting = Ticket { last_check_in: time, ..ticket };
        let cookie = self.cookie(&waiting, PLACE_MS)?;
        let page = if self.is_status_request() {
            answer::waiting_status(&view)
        } else {
            answer::waiting_page(&view)
        };
        respond(&page, Some(&cookie))
    }

    fn cookie(&self, ticket: &Ticket, lifetime_ms: u64) -> Result<String> {
        let value = self.keys.seal(&self.place.room.name, ticket, random()?);
        Ok(set_cookie(&self.place.room, &value, lifetime_ms / 1_000, self.https))
    }

    /// Whether the page that refreshes itself sends this request. It has brought a ticket: if none comes with the
    /// request, the browser refuses cookies.
    fn comes_from_itself(&self) -> bool {
        let referrer = self.request.inner().headers().get("referer").ok().flatten();
        referrer.is_some_and(|referrer| referrer == self.request.inner().url())
    }

    fn is_status_request(&self) -> bool {
        let header = self.request.inner().headers().get(STATUS_REQUEST_HEADER).ok().flatten();
        answer::is_status_request(header.as_deref())
    }
}

async fn to_origin(
    request: &Request,
    settings: &Settings,
    cookie: Option<&str>,
) -> Result<web_sys::Response> {
    match (origin::fetch(request, settings).await, cookie) {
        (Ok(response), None) => Ok(response),
        (Ok(response), Some(cookie)) => origin::with_cookie(&response, cookie),
        (Err(error), cookie) => {
            log_error(&format!("the origin cannot be reached: {error}"));
            respond(&answer::origin_unreachable(), cookie)
        }
    }
}

/// Sends an answer of our own.
pub fn respond(answer: &Answer, cookie: Option<&str>) -> Result<web_sys::Response> {
    let mut headers = answer.headers.clone();
    headers.extend(cookie.map(|cookie| ("set-cookie", cookie.to_owned())));
    origin::own(answer.status, &headers, &answer.body)
}

/// Whether a URL is HTTPS, its host and its path. The platform has parsed it already; this only finds the parts.
fn parts(url: &str) -> (bool, &str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(end);
    let path = rest.split(['?', '#']).next().unwrap_or(rest);
    let host = host.rsplit('@').next().unwrap_or(host);
    (scheme.eq_ignore_ascii_case("https"), host, if path.is_empty() { "/" } else { path })
}
