//! A request's way: match the room, open the ticket, look at the state key, decide, act, count.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use js_sys::futures::future_to_promise;
use wasm_bindgen::JsValue;
use worker::{Context, Env, Result};

use super::clock::{both, now, pause, random, random_id};
use super::forward::{Carrier, HeaderLine, Passport, Revocable, TICKET_HEADER, is_revoked, remember_revoked};
use super::in_flight::{self, Way};
use super::platform::{colo, likely_colo};
use super::room_worker::{Hears, Place, is_refresh_due, note_bypassed, steered, time_in};
use super::settings::Settings;
use super::{bypass, health, operator, rehearsal, response, turnstile};
use crate::admission::{
    Draw, Step, estimated_wait_seconds, likely_ahead, next_check_in_seconds, next_draw_seconds, queue_bucket,
    random_wait_seconds,
};
use crate::answer::{self, DrawFacts, Estimate, EventView, WaitingView};
use crate::concern::Concern;
use crate::config::{BindTicket, Coverage, QueueingMethod, Room};
use crate::counts::{CheckIn, Seen};
use crate::origin::Turn;
use crate::ticket::{
    Human, KeyRing, Scope, Standing, Ticket, address_key, binding, find_cookie, set_cookie, standing,
};

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
    /// The waiting page says that it is being closed: the time of its last check-in, in milliseconds since the epoch.
    pub closed: Option<u64>,
}

/// Decides a request; `edge::decide` says how.
pub fn decide(request: Request, env: Env, context: Context) -> Result<JsValue> {
    let settings = Settings::of(&env);
    health::tend_once(&env, &settings, &context);
    let (https, host, path) = parts(&request.url);
    if operator::is_own(path) && settings.rooms.covers_host(host) {
        let path = path.to_owned();
        return Ok(later(async move { operator::handle(&request.inner, &path, &env, &settings).await }));
    }
    let room = match settings.rooms.find(host, path) {
        Coverage::Uncovered => return not_ours(&request),
        Coverage::Covered(room) => room,
        // Which room it means depends on who reads it; no honest client writes such a path.
        Coverage::Contradictory(_) => return response::page(&answer::bad_path(), None),
    };
    // Without keys no ticket can be given, so nobody could ever leave the queue: fail open. It is in the log.
    let Some(keys) = settings.keys.as_ref() else { return not_ours(&request) };
    let (deployed, steered) = (room, steered(room));
    let room = steered.as_deref().unwrap_or(room);
    if room.suspended {
        // An operator may have switched it on.
        if is_refresh_due(&room.name) {
            let colo = likely_colo(&request.inner);
            Place::new(deployed, colo, host, &env, &settings).listen(false, &context);
        }
        return not_ours(&request);
    }
    let may_bypass = settings.crawlers_bypass || !room.bypass_rules.is_empty();
    if may_bypass && bypass::is_bypassed(&settings, room, &request) {
        let place = |colo| Place::new(deployed, colo, host, &env, &settings);
        note_bypassed(room, &request.inner, place, &context);
        return not_ours(&request);
    }
    let bound_to = bound_to(room, &request.inner);
    let (tickets, carrier) = tickets(keys, room, &bound_to, &request);
    let time = time_in(&room.name);
    // An event may have made it another room for a while.
    let room = room.at(time).0;
    if let Some(checked_in) = request.closed {
        let place = Place::new(deployed, likely_colo(&request.inner), host, &env, &settings);
        let standing = best(&tickets, room, time);
        return Visit { request, context, settings, place, https, carrier, bound_to }
            .close(&standing, checked_in);
    }
    if let Standing::Active(ticket) = best(&tickets, room, time) {
        if !request.asks_for_status && !room.moves_on(&ticket, time) {
            return to_origin(&request.inner, room, passport(&settings, room, &ticket, carrier, None));
        }
        // Nobody has to be asked, and whichever colo counts a move, the sum is right.
        let place = Place::new(deployed, likely_colo(&request.inner), host, &env, &settings);
        return Visit { request, context, settings, place, https, carrier, bound_to }.pass(ticket);
    }
    match bypass::concern(room, &request) {
        Concern::Room => {}
        Concern::Origin => return Ok(NOT_OURS),
        // Browsers forget what they could not load in advance.
        Concern::Nobody => return response::response(503, &[("cache-control", "no-store".to_owned())], None),
    }
    let place = Place::new(deployed, colo(&request.inner), host, &env, &settings);
    Ok(later(Visit { request, context, settings, place, https, carrier, bound_to }.handle(tickets)))
}

/// No room has a say in it: to the origin, but for what a page of ours says, from a room that is gone.
fn not_ours(request: &Request) -> Result<JsValue> {
    if request.closed.is_some() { response::response(204, &[], None) } else { Ok(NOT_OURS) }
}

/// The origin ends the session of a user. What comes takes the ticket away.
pub fn end_session(
    session: &str,
    request: &web_sys::Request,
    env: &Env,
    context: &Context,
) -> Option<HeaderLine> {
    let session = Revocable::read(session)?;
    let settings = Settings::of(env);
    let room = settings.rooms.get(session.room)?;
    let url = request.url();
    let (https, host, _) = parts(&url);
    let place = Place::new(room, likely_colo(request), host, env, &settings);
    let left = CheckIn::Leave {
        id: session.id,
        from: session.last_check_in,
        at: place.time(),
        entered: session.entered,
    };
    place.note(left, false, context);
    remember_revoked(session.id, now());
    Some(match session.carrier {
        Carrier::Cookie => ("set-cookie", set_cookie(room, "", 0, https)),
        Carrier::Header => (TICKET_HEADER, String::new()),
    })
}

/// What goes with a request of an active user of a room.
fn passport(
    settings: &Settings,
    room: &Room,
    ticket: &Ticket,
    carrier: Carrier,
    changed: Option<HeaderLine>,
) -> Passport {
    Passport {
        ticket: changed,
        admitted: settings.admission.as_ref().map(|key| key.sign(&room.name, ticket.id, now())),
        revocable: room.revoke.then(|| Revocable::text(room, ticket, carrier)),
    }
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

/// The tickets that a request holds for a room, and how they came. Browsers may send several cookies of one name; who
/// sends none may send the ticket's own header.
fn tickets(keys: &KeyRing, room: &Room, bound_to: &str, request: &Request) -> (Vec<Ticket>, Carrier) {
    let scope = Scope { room: &room.name, binding: bound_to };
    let unbound = Scope { binding: "", ..scope };
    let open = |value: &str| {
        // Tickets from before the owner wanted them bound, and our own probes', hold until they are sealed anew.
        let ticket =
            keys.open(scope, value).or_else(|| keys.open(unbound, value).filter(|_| scope != unbound));
        ticket.filter(|ticket| !(room.revoke && is_revoked(ticket.id)))
    };
    let name = room.cookie_name();
    let mut values = find_cookie(&request.cookies, &name).peekable();
    if values.peek().is_none()
        && let Ok(Some(value)) = request.inner.headers().get(TICKET_HEADER)
    {
        return (open(value.trim()).into_iter().collect(), Carrier::Header);
    }
    (values.filter_map(open).collect(), Carrier::Cookie)
}

/// What tickets are bound to in a room, for the visitor of a request; mostly nothing.
fn bound_to(room: &Room, request: &web_sys::Request) -> String {
    if room.bind_ticket == BindTicket::None {
        return String::new();
    }
    binding(room.bind_ticket, &address(request), &header(request, "user-agent"))
}

/// The visitor's address, by the platform; no visitor can write it. Empty where there is none.
fn address(request: &web_sys::Request) -> String {
    header(request, "cf-connecting-ip")
}

fn header(request: &web_sys::Request, name: &str) -> String {
    request.headers().get(name).ok().flatten().unwrap_or_default()
}

/// Where the visitor stands: of several tickets the one that says most counts.
fn best(tickets: &[Ticket], room: &Room, time: u64) -> Standing {
    let mut best = Standing::New;
    for ticket in tickets {
        match standing(Some(*ticket), time, &room.terms()) {
            active @ Standing::Active(_) => return active,
            waiting @ Standing::Waiting(_) if best == Standing::New => best = waiting,
            _ => {}
        }
    }
    best
}

/// How a visitor who is not in was judged.
struct Judged {
    ticket: Ticket,
    /// The ticket was brought along.
    waited: bool,
    /// Is counted among those who wait.
    waits: bool,
    draw: Option<Draw>,
    step: Step,
}

/// A visitor's request to a room.
struct Visit {
    request: Request,
    context: Context,
    settings: Rc<Settings>,
    place: Place,
    https: bool,
    carrier: Carrier,
    /// What the ticket is bound to; empty: nothing.
    bound_to: String,
}

impl Visit {
    /// Whoever is not an active user.
    async fn handle(mut self, tickets: Vec<Ticket>) -> Result<JsValue> {
        if !self.place.room.is_closed() {
            self.place.refresh_state().await;
            self.renew();
        }
        let hears = self.place.hears();
        let standing = |visit: &Self| best(&tickets, &visit.place.room, visit.place.time());
        let judged = if self.is_suspended() {
            return Ok(NOT_OURS);
        } else if hears != Hears::Knows {
            let (judged, ()) = both(self.judge(standing(&self), None), self.place.hear(hears)).await;
            if !self.renew() {
                judged?
            } else if self.is_suspended() {
                return Ok(NOT_OURS);
            } else {
                // Once more, by what an operator has changed just now.
                self.judge(standing(&self), Some(judged?.ticket)).await?
            }
        } else {
            self.judge(standing(&self), None).await?
        };
        let Judged { ticket, waited, waits, draw, step } = judged;
        self.place.refill(&self.context);
        match step {
            Step::Pass => self.pass(ticket),
            Step::Enter { minute, numbered } => self.enter(ticket, waits, minute, numbered),
            Step::Wait | Step::Ask(..) => self.wait(ticket, waits, waited, draw).await,
            Step::Refuse => Ok(self.refuse()),
        }
    }

    /// Takes up what operators have changed since the request was first looked at. Returns whether there was something.
    fn renew(&mut self) -> bool {
        let Some(deployed) = self.settings.rooms.get(&self.place.room.name) else { return false };
        self.place.renew(deployed)
    }

    /// Whether an operator has switched the room off.
    fn is_suspended(&self) -> bool {
        self.place.steered.as_ref().is_some_and(|room| room.suspended)
    }

    /// Judges a visitor by what is known of the room. `before` is the ticket of an earlier judgement of the same request:
    /// nobody is tested twice.
    async fn judge(&self, standing: Standing, before: Option<Ticket>) -> Result<Judged> {
        let room = &self.place.room;
        let (mut ticket, waited) = match standing {
            // By the colo's own clock the visitor is in after all.
            Standing::Active(ticket) => {
                return Ok(Judged { ticket, waited: true, waits: false, draw: None, step: Step::Pass });
            }
            Standing::Waiting(ticket) => (ticket, true),
            Standing::New => {
                let time = self.place.time();
                let id = before.map_or_else(random_id, |before| Ok(before.id))?;
                (Ticket::new(id, time), false)
            }
        };
        let draw = self.place.draw(&self.settings.draw_key, &standing);
        let waits = waited && self.is_counted(&ticket) && !ticket.uncounted;
        if let Some(before) = before {
            ticket.human = before.human;
        } else if let Some(verdict) = turnstile::verdict(&self.settings, room, &self.request.inner).await {
            ticket.human = verdict.human(ticket.human);
        }
        let step = if room.turns_away() {
            Step::Refuse
        } else if waited && !self.is_counted(&ticket)
            || draw.is_some_and(|draw| !draw.wins)
            || !in_flight::has_room(room)
        {
            // Not for robots; or it was no winning number; or the origin has enough to do with those who are in.
            Step::Wait
        } else {
            let standing = match standing {
                Standing::Waiting(ticket) => {
                    Standing::Waiting(Ticket { bucket: self.bucket(&ticket), ..ticket })
                }
                standing => standing,
            };
            let one_place = room.one_place_per_address && !waited;
            let address = if one_place { address_key(&address(&self.request.inner)) } else { 0 };
            let step = self.place.judge(&standing, ticket.id, address).await?;
            ticket.uncounted = self.place.is_taken(address, ticket.id);
            step
        };
        Ok(Judged { ticket, waited, waits, draw, step })
    }

    /// Whether a visitor who waits is counted, and may enter in turn: Turnstile may have to say so first.
    fn is_counted(&self, ticket: &Ticket) -> bool {
        let room = &self.place.room;
        room.trusts(ticket.human)
            || self.settings.turnstile_secret(room).is_none()
            || ticket.human == Human::Unknown && !turnstile::is_there(&self.settings, &self.context)
    }

    /// A visitor has closed the waiting page, whose last check-in was at a time, and gives up the place until coming back.
    fn close(&self, standing: &Standing, checked_in: u64) -> Result<JsValue> {
        let room = &self.place.room;
        if let Standing::Waiting(ticket) = standing
            // Of an older page of the same ticket nothing is given up: a newer one waits on.
            && ticket.last_check_in == checked_in
            && self.is_counted(ticket)
            && !ticket.uncounted
        {
            let (id, bucket, at) = (ticket.id, self.bucket(ticket), self.place.time());
            let from = Seen::of(ticket, room);
            self.place.note(CheckIn::GiveUp { id, bucket, from, at }, false, &self.context);
        }
        response::response(204, &[], None)
    }

    /// An active user: to the origin, without a call.
    fn pass(&self, ticket: Ticket) -> Result<JsValue> {
        let time = self.place.time();
        if !self.place.room.moves_on(&ticket, time) {
            return self.admit(&ticket, None);
        }
        let check_in = CheckIn::Move {
            id: ticket.id,
            from: ticket.last_check_in,
            at: time,
            entered: ticket.accepted_at,
        };
        self.place.note(check_in, false, &self.context);
        self.place.listen(true, &self.context);
        let moved = ticket.checked_in(time);
        let line = self.ticket_line(&moved)?;
        self.admit(&moved, Some(line))
    }

    /// A new user: one more active, from now on.
    fn enter(&self, ticket: Ticket, waited: bool, minute: u32, numbered: bool) -> Result<JsValue> {
        let time = self.place.time();
        let from = waited.then(|| Seen::of(&ticket, &self.place.room));
        let check_in =
            CheckIn::Enter { id: ticket.id, bucket: self.bucket(&ticket), from, at: time, minute, numbered };
        let rehearsal = rehearsal::is_marked(&self.request.inner, &self.settings);
        self.place.note(check_in, rehearsal, &self.context);
        let admitted = ticket.admitted(time);
        let line = self.ticket_line(&admitted)?;
        self.admit(&admitted, Some(line))
    }

    fn admit(&self, ticket: &Ticket, changed: Option<HeaderLine>) -> Result<JsValue> {
        if self.request.asks_for_status {
            return response::page(&answer::admitted_status(), changed.as_ref());
        }
        let room = &self.place.room;
        let passport = passport(&self.settings, room, ticket, self.carrier, changed);
        to_origin(&self.request.inner, room, passport)
    }

    /// Whoever is turned away keeps the ticket that there is, and is not counted.
    fn refuse(&self) -> JsValue {
        let time = self.place.time();
        let view = WaitingView {
            room: &self.place.room,
            asks_for_status: self.request.asks_for_status,
            estimate: Estimate::Unknown,
            people_ahead: None,
            progress: None,
            queue_all: false,
            held: false,
            event: self.event(time),
            draw: None,
            kept_seconds: 0,
            refresh_seconds: 0,
            now_ms: time,
            cookieless: false,
            infinite_queue: false,
            turnstile: "",
        };
        answer::facts(&view, &[]).into()
    }

    /// Whoever waits. `counted`: is counted among those who wait already; `known`: has brought a ticket.
    async fn wait(&self, ticket: Ticket, counted: bool, known: bool, draw: Option<Draw>) -> Result<JsValue> {
        let room = &self.place.room;
        self.place.refresh_state().await;
        let state = self.place.state_to_tell().await;
        let time = self.place.time();
        let bucket = self.bucket(&ticket);
        let global_time = state.as_ref().map_or(time, |state| state.global_time(now()));
        let key = state.as_ref().map(|state| &state.key);
        let random_order = room.queueing_method == QueueingMethod::Random;
        let [random] = random::<1>()?;
        let random = f64::from(random) / 256.0;
        let refresh_seconds = if random_order {
            next_draw_seconds(room, ticket.id, time, random)
        } else {
            next_check_in_seconds(room, key, bucket, known, global_time, random)
        };
        let event = self.event(time);
        // Nobody is ahead of anybody where the order is random, and nobody is told a lot before the lottery is over.
        let is_secret = random_order || event.is_some_and(|event| event.prequeueing && event.shuffle);
        let people_ahead = key.filter(|_| !is_secret).map(|key| likely_ahead(key, bucket).max(0) as u64);
        let told = Ticket { refresh_seconds: refresh_seconds as u16, ..ticket };
        let waiting = moved_on(told.checked_in(time), people_ahead);
        if self.is_counted(&ticket) && !ticket.uncounted {
            let from = counted.then(|| Seen::of(&ticket, room));
            let at = Seen::of(&waiting, room);
            self.place.note(
                CheckIn::Wait { id: ticket.id, bucket, from, at },
                from.is_none() && rehearsal::is_marked(&self.request.inner, &self.settings),
                &self.context,
            );
        }
        let turnstile = self
            .settings
            .turnstile_secret(room)
            .map_or_else(String::new, |_| room.turnstile_html(ticket.human, &self.settings.turnstile_url));
        let draw = draw.map(|draw| DrawFacts::of(&draw, ticket.id));
        let estimate = match key {
            Some(key) if random_order => random_wait_seconds(room, key, global_time).map(Estimate::spread),
            Some(key) => estimated_wait_seconds(room, key, bucket, global_time)
                .map(|seconds| Estimate::Known { seconds }),
            None => None,
        };
        let view = WaitingView {
            room,
            asks_for_status: self.request.asks_for_status,
            estimate: estimate.unwrap_or(Estimate::Unknown),
            people_ahead,
            progress: people_ahead.map(|_| waiting.progress),
            queue_all: room.queue_all,
            held: key.is_some_and(|key| key.held),
            event,
            kept_seconds: room.terms().kept_ms(&waiting) / 1_000,
            refresh_seconds,
            now_ms: time,
            cookieless: !known && self.comes_from_itself(),
            infinite_queue: ticket.human == Human::Failed && !room.trusts(ticket.human),
            turnstile: &turnstile,
            draw: draw.as_ref(),
        };
        let line = self.ticket_line(&waiting)?;
        Ok(answer::facts(&view, &[line]).into())
    }

    /// The event that is on at a time.
    fn event(&self, time: u64) -> Option<EventView<'_>> {
        EventView::of(self.with_events()?.at(time).1)
    }

    /// The bucket in which a ticket stands in the queue.
    fn bucket(&self, ticket: &Ticket) -> u32 {
        let of = |room: &Room| queue_bucket(room, &self.settings.draw_key, ticket.bucket, ticket.id);
        self.with_events().map_or(ticket.bucket, of)
    }

    /// The room with its events.
    fn with_events(&self) -> Option<&Room> {
        self.place.steered.as_deref().or_else(|| self.settings.rooms.get(&self.place.room.name))
    }

    /// The header that brings a ticket to its visitor.
    fn ticket_line(&self, ticket: &Ticket) -> Result<HeaderLine> {
        let room = &self.place.room;
        // Nobody gets here without keys; an empty ticket opens nothing.
        let Some(keys) = &self.settings.keys else { return Ok((TICKET_HEADER, String::new())) };
        let scope = Scope { room: &room.name, binding: &self.bound_to };
        let value = keys.seal(scope, ticket, random()?);
        Ok(match self.carrier {
            Carrier::Cookie => {
                let left_ms = room.terms().end(ticket).saturating_sub(self.place.time());
                ("set-cookie", set_cookie(room, &value, left_ms.div_ceil(1_000), self.https))
            }
            Carrier::Header => (TICKET_HEADER, value),
        })
    }

    /// Whether the page that refreshes itself sends this request. It has brought a ticket: if none comes with the
    /// request, the browser refuses cookies.
    fn comes_from_itself(&self) -> bool {
        header(&self.request.inner, "referer") == self.request.url
    }
}

/// The ticket with how far its visitor has come. Those who came in the same minute are not all known at first, so the
/// most that were ever ahead count as the whole way.
fn moved_on(ticket: Ticket, people_ahead: Option<u64>) -> Ticket {
    let Some(ahead) = people_ahead else { return ticket };
    let ahead = u32::try_from(ahead).unwrap_or(u32::MAX - 1);
    let most = ticket.ahead_at_first.unwrap_or_default().max(ahead);
    let progress = answer::progress(ahead.into(), most.into(), ticket.progress);
    Ticket { ahead_at_first: Some(most), progress, ..ticket }
}

/// A request of a user who is in: to the origin, unless that has too much to do.
fn to_origin(request: &web_sys::Request, room: &Room, passport: Passport) -> Result<JsValue> {
    match in_flight::arrive(room) {
        Way::Open(number) => Ok(passport.with(number)),
        Way::InLine(number) => {
            let method = request.method();
            Ok(later(async move {
                loop {
                    pause(in_flight::ask_after_ms(number)).await;
                    match in_flight::turn(number) {
                        Turn::Go => return Ok(passport.with(number)),
                        Turn::Later => {}
                        Turn::Dropped => return busy(&method, passport.ticket.as_ref()),
                    }
                }
            }))
        }
        Way::Closed => busy(&request.method(), passport.ticket.as_ref()),
    }
}

/// The origin has too much to do: try again in a moment.
fn busy(method: &str, ticket: Option<&HeaderLine>) -> Result<JsValue> {
    let (least, more) = TRY_AGAIN_SECONDS;
    let [random] = random::<1>()?;
    let seconds = least + u32::from(random) * more / 256;
    response::page(&answer::origin_busy(seconds, method), ticket)
}

/// Whether a URL is HTTPS, its host and its path. The platform has parsed it already; this only finds the parts.
pub(super) fn parts(url: &str) -> (bool, &str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(end);
    let path = rest.split(['?', '#']).next().unwrap_or(rest);
    let host = host.rsplit('@').next().unwrap_or(host);
    (scheme.eq_ignore_ascii_case("https"), host, if path.is_empty() { "/" } else { path })
}
