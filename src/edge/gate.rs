//! A request's way: match the room, open the ticket, look at the state key, decide, act, count.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use js_sys::futures::future_to_promise;
use wasm_bindgen::JsValue;
use worker::{Context, Env, Result};

use super::clock::{now, pause, random, random_id};
use super::passages::{self, Number, Way};
use super::platform::{colo, likely_colo};
use super::room_worker::{Place, time_in};
use super::settings::Settings;
use super::{health, operator, own};
use crate::answer::{self, DrawFacts, Estimate, EventFacts, WaitingView};
use crate::config::{Coverage, QueueingMethod, Room};
use crate::origin::Turn;
use crate::pipeline::{CheckIn, PLACE_MS};
use crate::queue::{
    Draw, DrawKey, Step, draw_id, estimated_wait_seconds, likely_ahead, minute_of, next_check_in_seconds,
    next_draw_seconds, random_wait_seconds,
};
use crate::ticket::{KeyRing, Standing, Ticket, find_cookie, set_cookie, standing};

/// Our own paths, on every host that a room covers.
const OWN_PATHS: &str = "/__anteroom/";
/// The decision for a request that no room has a say in.
const NOT_OURS: JsValue = JsValue::UNDEFINED;
/// Whom the origin is too busy for is asked to try again after so many seconds, and up to so many more.
const TRY_AGAIN_SECONDS: (u32, u32) = (2, 4);

/// A request, read once.
pub struct Request {
    /// For what is seldom needed.
    pub inner: web_sys::Request,
    /// Its URL.
    pub url: String,
    /// Its `Cookie` header; may be empty.
    pub cookies: String,
    /// Whether the waiting page's script asks.
    pub asks_for_status: bool,
}

/// Decides a request; `edge::decide` says how.
pub fn decide(request: Request, env: Env, context: Context) -> Result<JsValue> {
    let settings = Settings::of(&env);
    health::tend_once(&env, &settings, &context);
    let (https, host, path) = parts(&request.url);
    if path.starts_with(OWN_PATHS) && settings.rooms.covers_host(host) {
        let path = path.to_owned();
        return Ok(later(async move { operator::handle(&request.inner, &path, &env, &settings).await }));
    }
    let room = match settings.rooms.find(host, path) {
        Coverage::Uncovered => return Ok(NOT_OURS),
        Coverage::Covered(room) => room,
        // Which room it means depends on who reads it; no honest client writes such a path.
        Coverage::Contradictory(_) => return own::page(&answer::bad_path(), None),
    };
    // Without keys no ticket can be given, so nobody could ever leave the queue: fail open. It is in the log.
    let Some(keys) = settings.keys.as_ref().filter(|_| !room.suspended) else { return Ok(NOT_OURS) };
    let tickets = tickets(keys, room, &request.cookies);
    let time = time_in(&room.name);
    if let Standing::Active(ticket) = best(&tickets, room, time) {
        if !request.asks_for_status && !has_moved(&ticket, room, time) {
            return to_origin(&request.inner, room, None);
        }
        // Nobody has to be asked, and whichever colo counts a move, the sum is right.
        let place = Place::new(room, likely_colo(&request.inner), host, &env, &settings);
        let draw_key = settings.draw_key.clone();
        return Visit { request, context, keys: Rc::clone(keys), draw_key, place, https }.pass(ticket);
    }
    let place = Place::new(room, colo(&request.inner), host, &env, &settings);
    let draw_key = settings.draw_key.clone();
    let visit = Visit { request, context, keys: Rc::clone(keys), draw_key, place, https };
    let standing = best(&tickets, room, visit.place.time());
    Ok(later(visit.handle(standing)))
}

/// The origin is in trouble, and the room must hear of it.
pub fn tell_of_trouble(room: &str, request: &web_sys::Request, env: &Env, context: &Context) {
    let settings = Settings::of(env);
    let Some(room) = settings.rooms.get(room) else { return };
    let url = request.url();
    let (_, host, _) = parts(&url);
    Place::new(room, likely_colo(request), host, env, &settings).note_trouble(context);
}

/// A decision that takes its time.
pub fn later(decision: impl Future<Output = Result<JsValue>> + 'static) -> JsValue {
    let decision = async move { Ok(decision.await?) };
    future_to_promise(AssertUnwindSafe(decision)).into()
}

/// The tickets that a `Cookie` header holds for a room. Browsers may send several of one name.
fn tickets(keys: &KeyRing, room: &Room, cookies: &str) -> Vec<Ticket> {
    find_cookie(cookies, &room.cookie_name()).filter_map(|value| keys.open(&room.name, value)).collect()
}

/// Where the visitor stands: of several tickets the one that says most counts.
fn best(tickets: &[Ticket], room: &Room, time: u64) -> Standing {
    let mut best = Standing::New;
    for ticket in tickets {
        match standing(Some(*ticket), time, room.session_ms(), PLACE_MS) {
            active @ Standing::Active(_) => return active,
            waiting @ Standing::Waiting(_) if best == Standing::New => best = waiting,
            _ => {}
        }
    }
    best
}

/// Whether an active user's ticket has to move on. Within one slot nothing changes: no new cookie, nothing to count.
fn has_moved(ticket: &Ticket, room: &Room, time: u64) -> bool {
    time / room.slot_ms() != ticket.last_check_in / room.slot_ms()
}

/// A visitor's request to a room.
struct Visit {
    request: Request,
    context: Context,
    keys: Rc<KeyRing>,
    draw_key: DrawKey,
    place: Place,
    https: bool,
}

impl Visit {
    /// Whoever is not an active user.
    async fn handle(self, standing: Standing) -> Result<JsValue> {
        let room = &self.place.room;
        if !room.is_closed() {
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
        let draw = self.place.draw(&self.draw_key, &standing);
        let step = if draw.is_some_and(|draw| !draw.wins) {
            Step::Wait
        } else if passages::has_room(&self.place.room) {
            self.place.judge(&standing, ticket.id).await?
        } else {
            // The origin has enough to do with those who are in.
            Step::Wait
        };
        self.place.refill(&self.context);
        match step {
            Step::Pass => self.pass(ticket),
            Step::Enter { minute, numbered } => self.enter(ticket, waits, minute, numbered),
            Step::Wait | Step::Ask(..) => self.wait(ticket, waits, draw).await,
            Step::Refuse => self.refuse(),
        }
    }

    /// An active user: to the origin, without a call.
    fn pass(&self, ticket: Ticket) -> Result<JsValue> {
        let time = self.place.time();
        let cookie = if has_moved(&ticket, &self.place.room, time) {
            let check_in = CheckIn::Move { id: ticket.id, from: ticket.last_check_in, at: time };
            self.place.note(check_in, &self.context);
            Some(self.cookie(&Ticket { last_check_in: time, ..ticket }, self.place.room.session_ms())?)
        } else {
            None
        };
        self.admit(cookie)
    }

    /// A new user: one more active, from now on.
    fn enter(&self, ticket: Ticket, waited: bool, minute: u32, numbered: bool) -> Result<JsValue> {
        let time = self.place.time();
        let from = waited.then_some(ticket.last_check_in);
        let check_in =
            CheckIn::Enter { id: ticket.id, bucket: ticket.bucket, from, at: time, minute, numbered };
        self.place.note(check_in, &self.context);
        let admitted = Ticket { accepted_at: Some(time), last_check_in: time, ..ticket };
        let cookie = self.cookie(&admitted, self.place.room.session_ms())?;
        self.admit(Some(cookie))
    }

    fn admit(&self, cookie: Option<String>) -> Result<JsValue> {
        if self.request.asks_for_status {
            return own::page(&answer::admitted_status(), cookie.as_deref());
        }
        to_origin(&self.request.inner, &self.place.room, cookie)
    }

    /// Whoever is turned away keeps the ticket that there is, and is not counted.
    fn refuse(&self) -> Result<JsValue> {
        let facts = EventFacts {
            queueing_method: self.place.room.queueing_method,
            turned_away: true,
            ..EventFacts::default()
        };
        let view = WaitingView {
            room: &self.place.room,
            url: &self.request.url,
            estimate: Estimate::Unknown,
            people_ahead: None,
            queue_all: false,
            held: false,
            refresh_seconds: 0,
            now_ms: self.place.time(),
            cookieless: false,
            facts: &facts,
        };
        self.show(&view, None)
    }

    async fn wait(&self, ticket: Ticket, waited: bool, draw: Option<Draw>) -> Result<JsValue> {
        let room = &self.place.room;
        self.place.refresh_state().await;
        let state = self.place.state_to_tell().await;
        let time = self.place.time();
        let from = waited.then_some(ticket.last_check_in);
        let check_in = CheckIn::Wait { id: ticket.id, bucket: ticket.bucket, from, at: time };
        self.place.note(check_in, &self.context);
        let global_time = state.as_ref().map_or(time, |state| state.global_time(now()));
        let key = state.as_ref().map(|state| &state.key);
        let random_order = room.queueing_method == QueueingMethod::Random;
        let [random] = random::<1>()?;
        let random = f64::from(random) / 256.0;
        let refresh_seconds = if random_order {
            next_draw_seconds(room, ticket.id, time, random)
        } else {
            next_check_in_seconds(room, key, ticket.bucket, global_time, random)
        };
        let facts = EventFacts {
            queueing_method: room.queueing_method,
            turned_away: false,
            percentiles: key
                .filter(|_| random_order)
                .and_then(|key| random_wait_seconds(room, key, global_time)),
            draw: draw.map(|draw| DrawFacts {
                id: draw_id(ticket.id),
                round: draw.round,
                number: draw.number,
                threshold: draw.threshold,
            }),
        };
        let view = WaitingView {
            room,
            url: &self.request.url,
            estimate: key
                .and_then(|key| estimated_wait_seconds(room, key, ticket.bucket, global_time))
                .map_or(Estimate::Unknown, |seconds| Estimate::Known { seconds }),
            // Where the order is random nobody is ahead of anybody.
            people_ahead: key
                .filter(|_| !random_order)
                .map(|key| likely_ahead(key, ticket.bucket).max(0) as u64),
            queue_all: room.queue_all,
            held: key.is_some_and(|key| key.held),
            refresh_seconds,
            now_ms: time,
            cookieless: !waited && self.comes_from_itself(),
            facts: &facts,
        };
        let waiting = Ticket { last_check_in: time, ..ticket };
        let cookie = self.cookie(&waiting, PLACE_MS)?;
        self.show(&view, Some(&cookie))
    }

    fn show(&self, view: &WaitingView, cookie: Option<&str>) -> Result<JsValue> {
        let page = if self.request.asks_for_status {
            answer::waiting_status(view)
        } else {
            answer::waiting_page(view)
        };
        own::page(&page, cookie)
    }

    fn cookie(&self, ticket: &Ticket, lifetime_ms: u64) -> Result<String> {
        let value = self.keys.seal(&self.place.room.name, ticket, random()?);
        Ok(set_cookie(&self.place.room, &value, lifetime_ms / 1_000, self.https))
    }

    /// Whether the page that refreshes itself sends this request. It has brought a ticket: if none comes with the
    /// request, the browser refuses cookies.
    fn comes_from_itself(&self) -> bool {
        let referrer = self.request.inner.headers().get("referer").ok().flatten();
        referrer.is_some_and(|referrer| referrer == self.request.url)
    }
}

/// A request of a user who is in: to the origin, unless that has too much to do.
fn to_origin(request: &web_sys::Request, room: &Room, cookie: Option<String>) -> Result<JsValue> {
    match passages::arrive(room) {
        Way::Open(number) => Ok(go(number, cookie)),
        Way::InLine(number) => {
            let method = request.method();
            Ok(later(async move {
                loop {
                    pause(passages::ask_after_ms(number)).await;
                    match passages::turn(number) {
                        Turn::Go => return Ok(go(number, cookie)),
                        Turn::Later => {}
                        Turn::Dropped => return busy(&method, cookie.as_deref()),
                    }
                }
            }))
        }
        Way::Closed => busy(&request.method(), cookie.as_deref()),
    }
}

/// To the origin: the request's number and the cookie to add to the answer.
fn go(number: Number, cookie: Option<String>) -> JsValue {
    match cookie {
        None => JsValue::from(number.value()),
        Some(cookie) => JsValue::from(format!("{} {cookie}", number.value())),
    }
}

/// The origin has too much to do: try again in a moment.
fn busy(method: &str, cookie: Option<&str>) -> Result<JsValue> {
    let (least, more) = TRY_AGAIN_SECONDS;
    let [random] = random::<1>()?;
    let seconds = least + u32::from(random) * more / 256;
    own::page(&answer::origin_busy(seconds, method), cookie)
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
