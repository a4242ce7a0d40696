//! A request's way: match the room, open the ticket, look at the state key, decide, act, count.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use js_sys::futures::future_to_promise;
use wasm_bindgen::JsValue;
use worker::{Context, Env, Result};

use super::clock::{now, pause, random, random_id, within};
use super::configuration;
use super::forward::{Carrier, HeaderLine, Passport, Revocable, TICKET_HEADER, uncounted};
use super::in_flight::{self, Way};
use super::platform::{colo, likely_colo};
use super::room_worker::{Place, has_moved, is_ended, is_refresh_due, note_bypassed, steered, time_in};
use super::settings::{Settings, WhileUnknown};
use super::{another_device, bypass, health, operator, push, rehearsal, response, turnstile};
use crate::admission::queue_bucket;
use crate::answer::{self, DrawFacts, Estimate, EventView, Message, SHOWN_HEADER, WaitingView};
use crate::concern::Concern;
use crate::config::Coverage;
use crate::counts::{CheckIn, Seen};
use crate::machines::worker::{Outcome, Verification, Visitor, Waiting, best, passes_unasked};
use crate::origin::Turn;
use crate::room::{BindTicket, Mode, Room};
use crate::ticket::{
    Human, KeyRing, Scope, Standing, Ticket, address_key, binding, find_cookie, set_cookie, ticket_id,
};
use crate::turnstile::TOKEN_HEADER;
use crate::url::{bare_host, path};

/// The API that Cloudflare's clients drive is below, on every host.
const CLIENT: &str = "/__anteroom/client/v4/";
/// What describes all of it, likewise.
const DESCRIPTION: &str = "/__anteroom/openapi.json";
/// The id of no ticket: in the word that a room gives to everybody.
const NOBODY: u64 = 0;
/// Whom the origin is too busy for is asked to try again after this many seconds, and up to this many more.
const TRY_AGAIN_SECONDS: (u32, u32) = (2, 4);
/// The cookie of somebody who has not gone in is sent for so long after the session, in milliseconds.
const MISSED_MS: u64 = 60_000;
/// Where a room only observes, a visitor waits for its objects for so many timeouts of a call at most.
const OBSERVED_CALLS: u64 = 2;

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
    /// The waiting page brings a subscription to push messages.
    pub subscribes: bool,
}

/// Decides a request; `edge::decide` says how.
pub fn decide(request: Request, env: Env, context: Context) -> Result<JsValue> {
    let (_, host, path) = parts(&request.url);
    if path == DESCRIPTION {
        return Ok(client(&request.inner, &Settings::of(&env)).into());
    }
    if operator::is_own(path) && operator::may_know(&request) && configuration::is_old(&Settings::of(&env)) {
        let host = host.to_owned();
        return Ok(later(async move {
            configuration::catch_up(&env, &Settings::of(&env), &host).await;
            decide_known(request, env, context)
        }));
    }
    decide_known(request, env, context)
}

/// The same, once it is known whose tokens are good.
fn decide_known(request: Request, env: Env, context: Context) -> Result<JsValue> {
    let settings = Settings::of(&env);
    let (_, host, path) = parts(&request.url);
    if path.starts_with(CLIENT) {
        return Ok(client(&request.inner, &settings).into());
    }
    if !configuration::is_ready(&settings) {
        let host = host.to_owned();
        return Ok(later(async move {
            configuration::learn(env.clone(), host, false).await;
            decide_known(request, env, context)
        }));
    }
    configuration::keep_up(&env, &settings, host, |work| context.wait_until(work));
    decide_by(settings, request, env, context)
}

/// Decides a request by what is known of all rooms.
fn decide_by(settings: Rc<Settings>, request: Request, env: Env, context: Context) -> Result<JsValue> {
    health::tend_once(&env, &settings, &context);
    let (_, host, path) = parts(&request.url);
    if operator::is_own(path) {
        let path = path.to_owned();
        return Ok(later(async move { operator::handle(&request.inner, &path, &env, &settings).await }));
    }
    let covering = settings.rooms.find(host, path);
    if !settings.gone.is_empty()
        && let Some(answer) = left_behind(&request, &settings, covering, &env)
    {
        return answer;
    }
    let room = match covering {
        Coverage::Uncovered => return uncovered(&request, &settings),
        Coverage::Covered(room) => room,
        // Which room it means depends on who reads it; no honest client writes such a path.
        Coverage::Contradictory(_) => return Ok(Message::BadPath.facts(None, "", &[]).into()),
    };
    // Without keys no ticket can be given, so nobody could ever leave the queue: fail open. It is in the log.
    let Some(keys) = settings.keys.as_ref() else {
        return past(&request, Some(room), word(&settings, room, NOBODY));
    };
    let (deployed, steered) = (room, steered(room));
    let room = steered.as_deref().unwrap_or(room);
    let time = time_in(&room.name);
    // An event, or the end of what an operator has changed, may have made it another room.
    let room = room.at(time).0;
    if room.suspended {
        // An operator may have switched it on.
        if is_refresh_due(&room.name) {
            let colo = likely_colo(&request.inner);
            Place::new(deployed, colo, host, &env, &settings).refresh_in_background(&context);
        }
        // An origin that insists on the word would refuse the whole site else.
        return past(&request, Some(room), word(&settings, room, NOBODY));
    }
    let may_bypass = settings.crawlers_bypass || !room.bypass_rules.is_empty();
    if may_bypass && bypass::is_bypassed(&settings, room, &request) {
        let place = |colo| Place::new(deployed, colo, host, &env, &settings);
        note_bypassed(room, &request.inner, place, &context);
        return past(&request, Some(room), None);
    }
    comes(request, env, context, &settings, keys, (deployed, room), time)
}

/// A request that a room has a say in. `deployed` as its table says; `room` as it is at this `time`.
fn comes(
    request: Request,
    env: Env,
    context: Context,
    settings: &Rc<Settings>,
    keys: &KeyRing,
    (deployed, room): (&Room, &Room),
    time: u64,
) -> Result<JsValue> {
    let (_, host, _) = parts(&request.url);
    let bound_to = bound_to(room, &request.inner);
    let (mut tickets, carrier) = tickets(keys, room, &bound_to, &request);
    let context = Rc::new(context);
    let missed = tickets.iter().copied().find(|ticket| room.has_missed_turn(ticket, time));
    if room.ends_sessions() {
        tickets.retain(|ticket| !is_ended(&room.name, ticket.id));
    }
    let brought = !tickets.is_empty();
    if room.continue_on_another_device {
        tickets.retain(|ticket| !has_moved(&room.name, ticket));
    }
    if let Some(checked_in) = request.closed {
        let place = Place::new(deployed, colo(&request.inner), host, &env, settings);
        let standing = best(&tickets, room, time);
        let settings = Rc::clone(settings);
        return Gate { request, context, settings, place, carrier, bound_to }
            .close(room, &standing, checked_in);
    }
    if brought && tickets.is_empty() {
        return Ok(told_moved(&request, room, carrier));
    }
    let standing = best(&tickets, room, time);
    if request.subscribes {
        let place = Place::new(deployed, colo(&request.inner), host, &env, settings);
        let settings = Rc::clone(settings);
        let gate = Gate { request, context, settings, place, carrier, bound_to };
        return Ok(later(gate.subscribe(env, room.clone(), standing)));
    }
    if let Some(ticket) = missed.filter(|_| standing == Standing::New) {
        return Ok(told_missed(
            &request,
            room,
            &ticket,
            carrier,
            || Place::new(deployed, colo(&request.inner), host, &env, settings),
            &context,
        ));
    }
    if let Standing::Active(ticket) = standing
        && !room.awaits(&ticket)
    {
        if !request.asks_for_status && !room.moves_on(&ticket, time) {
            return to_origin(
                &request.inner,
                room,
                ticket.id,
                passport(settings, room, &ticket, carrier, None),
            );
        }
        // Nobody has to be asked, and whichever colo counts a move, the sum is right.
        let place = Place::new(deployed, likely_colo(&request.inner), host, &env, settings);
        let settings = Rc::clone(settings);
        return Gate { request, context, settings, place, carrier, bound_to }.pass(room, ticket, false);
    }
    let random = random_id()?;
    let is_observed = room.observes(match standing {
        Standing::Waiting(ticket) | Standing::Active(ticket) => ticket.id,
        Standing::New => random,
    });
    match bypass::concern(room, &request) {
        Concern::Room => {}
        Concern::Origin => return Ok(uncounted(Some(room), None)),
        Concern::Nobody if is_observed => {
            return Ok(uncounted(Some(room), word(settings, room, NOBODY)));
        }
        // Browsers forget what they could not load in advance.
        Concern::Nobody => return response::response(503, &[("cache-control", "no-store".to_owned())], None),
    }
    if let Standing::Active(ticket) = standing {
        // A page that is asked for once more: its visitor goes in.
        let goes_in = !request.asks_for_status && bypass::is_seen(&request);
        let place = Place::new(deployed, likely_colo(&request.inner), host, &env, settings);
        let settings = Rc::clone(settings);
        let gate = Gate { request, context, settings, place, carrier, bound_to };
        return if goes_in {
            gate.pass(room, ticket.confirmed(true), true)
        } else {
            gate.turn(room, &ticket, false)
        };
    }
    if let Standing::Waiting(ticket) = standing
        && passes_unasked(room, &ticket, time)
        && !request.asks_for_status
    {
        let passport = passport(settings, room, &ticket, carrier, None);
        return to_origin(&request.inner, room, ticket.id, passport);
    }
    let colo = colo(&request.inner);
    // Whoever brings no ticket gets one of this id.
    let id = ticket_id(random, &colo);
    let observed = is_observed.then_some(match standing {
        Standing::Waiting(ticket) => ticket,
        _ => Ticket::new(id, time),
    });
    let place = Place::new(deployed, colo, host, &env, settings);
    let settings = Rc::clone(settings);
    let gate = Gate { request, context, settings, place, carrier, bound_to };
    Ok(later(gate.handle(tickets, id, observed)))
}

/// Whose token comes with a request to the API that Cloudflare's clients drive: `client/reach.js` goes on with it.
fn client(request: &web_sys::Request, settings: &Settings) -> String {
    let (by, role) = operator::client(request, settings)
        .map_or(("", ""), |operator| (&operator.name, operator.role.name()));
    // None has a character that JSON would write otherwise.
    let version = env!("CARGO_PKG_VERSION");
    format!("{{\"client\":{{\"by\":\"{by}\",\"role\":\"{role}\",\"version\":\"{version}\"}}}}")
}

/// No room is known that has a say in it: to the origin, unless there may be one and the owner rather waits until that is known.
fn uncovered(request: &Request, settings: &Settings) -> Result<JsValue> {
    if settings.while_unknown == Some(WhileUnknown::Hold) && configuration::is_missing(settings) {
        let (seconds, _) = TRY_AGAIN_SECONDS;
        return Ok(Message::Busy { seconds }.facts(None, &request.inner.method(), &[]).into());
    }
    past(request, None, None)
}

/// Somebody brings a ticket to where its room is no more. Where the room has moved, the visitor follows with the place; where it is
/// deleted, whoever waits is told so, if its owner wants that. `None`: the request is none of these.
fn left_behind(
    request: &Request,
    settings: &Rc<Settings>,
    covering: Coverage<'_>,
    env: &Env,
) -> Option<Result<JsValue>> {
    let (https, host, path) = parts(&request.url);
    let Coverage::Covered(gone) = settings.gone.find(host, path) else { return None };
    if request.subscribes
        || request.closed.is_some()
        || matches!(covering, Coverage::Covered(room) if room.name == gone.name)
    {
        return None;
    }
    let keys = settings.keys.as_ref()?;
    let live = settings.rooms.get(&gone.name);
    let room = live.unwrap_or(gone);
    let bound_to = bound_to(room, &request.inner);
    let (tickets, carrier) = tickets(keys, gone, &bound_to, request);
    let standing = best(&tickets, room, time_in(&room.name));
    let Some(room) = live else {
        let is_told = matches!(standing, Standing::Waiting(ticket) if !gone.observes(ticket.id));
        return is_told.then(|| Ok(told_over(Message::LineOver, request, gone, carrier)));
    };
    let is_page = request.inner.method() == "GET" && bypass::is_seen(request);
    let (Standing::Waiting(ticket) | Standing::Active(ticket)) = standing else { return None };
    let keeps_cookie = room.cookie_path() == gone.cookie_path();
    let follows = match standing {
        Standing::Active(_) => is_page && !keeps_cookie,
        // Whoever passes has no need to go elsewhere.
        _ => (is_page || request.asks_for_status) && !room.observes(ticket.id),
    };
    // Only where the same host has the room now can it be given the ticket.
    if !follows || !room.routes().any(|(at, to)| to == room.path && at.is_none_or(|at| at == bare_host(host)))
    {
        return None;
    }
    let below = path.strip_prefix(gone.path.as_str()).filter(|below| below.starts_with('/')).unwrap_or("");
    let query = request.url.split_once('?').map_or("", |(_, query)| query).split('#').next().unwrap_or("");
    let mark = if query.is_empty() { "" } else { "?" };
    let to = format!(
        "{}{}{mark}{query}",
        path::as_browsers_write(room.path.as_bytes()).trim_end_matches('/'),
        below
    );
    let to = if to.starts_with('/') { to } else { format!("/{to}") };
    let mut headers = vec![("location", to), ("cache-control", "private, no-store".to_owned())];
    // The page's script only asks, and then loads the page.
    if !request.asks_for_status && !keeps_cookie {
        let place = Place::new(room, likely_colo(&request.inner), host, env, settings);
        let scope = Scope { room: &room.name, binding: &bound_to };
        let value = match random() {
            Ok(random) => keys.seal(scope, &ticket, random),
            Err(error) => return Some(Err(error)),
        };
        let left_ms = room.terms().end(&ticket).saturating_sub(place.time());
        headers.push(taken_away(gone, path, https, carrier));
        headers.push(match carrier {
            Carrier::Cookie => {
                ("set-cookie", set_cookie(room, &room.path, &value, left_ms.div_ceil(1_000), https))
            }
            Carrier::Header => (TICKET_HEADER, value),
        });
    }
    Some(response::response(302, &headers, None))
}

/// No room has a say in it: to the origin, but for what a page of ours says, from a room that is gone.
fn past(request: &Request, room: Option<&Room>, admitted: Option<String>) -> Result<JsValue> {
    if request.subscribes {
        response::response(409, &[], None)
    } else if request.closed.is_some() {
        response::response(204, &[], None)
    } else {
        Ok(uncounted(room, admitted))
    }
}

/// The signed word to the origin, for a ticket of a room.
fn word(settings: &Settings, room: &Room, id: u64) -> Option<String> {
    settings.admission.as_ref().map(|key| key.sign(&room.name, id, now()))
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
    let (https, host, path) = parts(&url);
    // Only where the ticket was made does it count.
    let place = Place::new(room, colo(request), host, env, &settings);
    let left = CheckIn::Leave {
        id: session.id,
        from: session.last_check_in,
        at: place.time(),
        entered: session.entered,
    };
    if !session.waits {
        place.note(room, left, context);
    }
    Some(taken_away(room, path, https, session.carrier))
}

/// The header that takes a ticket away.
fn taken_away(room: &Room, path: &str, https: bool, carrier: Carrier) -> HeaderLine {
    match carrier {
        Carrier::Cookie => ("set-cookie", set_cookie(room, path, "", 0, https)),
        Carrier::Header => (TICKET_HEADER, String::new()),
    }
}

/// Whose place has moved on to another device is told so, and may join the line anew. The page's script, which only asks, loads
/// the page.
fn told_moved(request: &Request, room: &Room, carrier: Carrier) -> JsValue {
    told_over(Message::Moved, request, room, carrier)
}

/// The ticket is none any more.
fn told_over(why: Message, request: &Request, room: &Room, carrier: Carrier) -> JsValue {
    let (https, _, path) = parts(&request.url);
    let line = taken_away(room, path, https, carrier);
    let lines = if request.asks_for_status { &[][..] } else { &[line][..] };
    why.facts(Some(room), "", lines).into()
}

/// Whoever has not gone in while it was their turn is told so, and may join the line anew. The slot is free.
fn told_missed(
    request: &Request,
    room: &Room,
    ticket: &Ticket,
    carrier: Carrier,
    place: impl FnOnce() -> Place,
    context: &Context,
) -> JsValue {
    if !is_ended(&room.name, ticket.id) {
        let place = place();
        let (at, counted_until) = (place.time(), room.terms().end(&ticket.confirmed(true)));
        let (id, from, entered) = (ticket.id, ticket.last_check_in, ticket.accepted_at);
        if at < counted_until {
            place.note(room, CheckIn::Leave { id, from, at, entered }, context);
        }
    }
    told_over(Message::TurnOver, request, room, carrier)
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
        admitted: word(settings, room, ticket.id),
        revocable: room.revoke.then(|| Revocable::text(room, ticket, carrier)),
        origin: room.own_origin().map(str::to_owned),
    }
}

/// The origin is in trouble, and that must be reported.
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
        keys.open(scope, value).or_else(|| keys.open(unbound, value).filter(|_| scope != unbound))
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
pub fn bound_to(room: &Room, request: &web_sys::Request) -> String {
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

/// A visitor's request to a room.
struct Gate {
    request: Request,
    context: Rc<Context>,
    settings: Rc<Settings>,
    place: Place,
    carrier: Carrier,
    /// What the ticket is bound to; empty: nothing.
    bound_to: String,
}

impl Gate {
    /// Whoever is not an active user. `id`: of a new ticket; `observed`: the ticket of somebody who passes, whatever the room
    /// says.
    async fn handle(self, tickets: Vec<Ticket>, id: u64, observed: Option<Ticket>) -> Result<JsValue> {
        let [random] = random::<1>()?;
        let request = &self.request.inner;
        let room = self.settings.rooms.get(self.place.room());
        let visitor = Visitor {
            tickets,
            id,
            random: f64::from(random) / 256.0,
            address: room
                .filter(|room| room.one_place_per_address)
                .map_or(0, |_| address_key(&address(request))),
            verification: room.map_or(Verification::None, |room| self.verification(room)),
            rehearsal: rehearsal::is_marked(request, &self.settings),
            shown_seconds: header(request, SHOWN_HEADER).parse().ok(),
        };
        let waited: Vec<u64> = visitor.tickets.iter().map(|ticket| ticket.id).collect();
        let visit = self.place.visit(visitor, request, &self.context);
        let (outcome, whole) = if let Some(ticket) = observed {
            // Nobody is held up by a room that only looks, or that fails. What was asked for goes on without the visitor.
            let deadline_ms = OBSERVED_CALLS * self.settings.object_deadline_ms;
            match within(deadline_ms, visit).await {
                Some(Ok(visited)) => visited,
                _ => return self.unjudged(ticket),
            }
        } else {
            visit.await?
        };
        let time = self.place.time();
        let (room, phase) = whole.at(time);
        match outcome {
            Outcome::Suspended => Ok(uncounted(Some(room), word(&self.settings, room, NOBODY))),
            Outcome::Admitted { ticket, enters: true, .. }
                if room.confirm_within_minutes > 0
                    && observed.is_none()
                    && waited.contains(&ticket.id)
                    && bypass::is_seen(&self.request) =>
            {
                self.turn(room, &ticket.confirmed(false), true)
            }
            Outcome::Admitted { ticket, changed, .. } => self.admit(room, &ticket, changed),
            Outcome::Refused if observed.is_some() && room.mode == Mode::Observe => self.past(room),
            Outcome::Refused => Ok(self.refuse(room, EventView::of(phase), time)),
            Outcome::Moved => Ok(told_moved(&self.request, room, self.carrier)),
            Outcome::Waiting(waiting) if room.observes(waiting.ticket.id) => {
                self.admit(room, &waiting.ticket, true)
            }
            Outcome::Waiting(waiting) => self.wait(room, &waiting, EventView::of(phase)),
        }
    }

    /// Whether Turnstile has a say for this request.
    fn verification(&self, room: &Room) -> Verification {
        if self.settings.turnstile_secret(room).is_none() {
            return Verification::None;
        }
        let brought = !header(&self.request.inner, TOKEN_HEADER).is_empty();
        // Where nobody has to show anything it does not matter whether they can.
        if room.trusts(Human::Unknown) || turnstile::is_there(&self.settings, &self.context) {
            Verification::Required { brought }
        } else {
            Verification::Away { brought }
        }
    }

    /// A visitor has closed the waiting page, whose last check-in was at a time, and gives up the place until coming back.
    fn close(&self, room: &Room, standing: &Standing, checked_in: u64) -> Result<JsValue> {
        if let Standing::Waiting(ticket) = standing
            // Of an older page of the same ticket nothing is given up: a newer one waits on.
            && ticket.last_check_in == checked_in
            && !ticket.uncounted
        {
            let (id, bucket, at) = (ticket.id, self.bucket(ticket), self.place.time());
            let from = Seen::of(ticket, room);
            self.place.note(room, CheckIn::GiveUp { id, bucket, from, at }, &self.context);
        }
        response::response(204, &[], None)
    }

    /// A visitor who waits wants to be told by a push message, and keeps the place meanwhile.
    async fn subscribe(self, env: Env, room: Room, standing: Standing) -> Result<JsValue> {
        let ticket = match standing {
            Standing::Waiting(ticket) if !room.observes(ticket.id) && !room.continue_on_another_device => {
                ticket
            }
            _ => return response::response(409, &[], None),
        };
        if ticket.uncounted {
            // Subscriptions are few, and not for bots: later, when the visitor is known to be somebody.
            return response::response(503, &[], None);
        }
        let (id, bucket) = (ticket.id, self.bucket(&ticket));
        let status = push::subscribe(&self.request.inner, &env, &self.settings, &room, (id, bucket)).await?;
        if status != 204 {
            return response::response(status, &[], None);
        }
        let line = self.ticket_line(&room, &Ticket { subscribed: true, ..ticket })?;
        response::response(status, &[line], None)
    }

    /// An active user: to the origin, without a call. `changed` as for [`Gate::admit`].
    fn pass(&self, room: &Room, ticket: Ticket, changed: bool) -> Result<JsValue> {
        let moved = self.place.pass(room, ticket, &self.context);
        self.admit(room, &moved.unwrap_or(ticket), changed || moved.is_some())
    }

    /// Somebody who has waited may go in. `begins`: from now on.
    fn turn(&self, room: &Room, ticket: &Ticket, begins: bool) -> Result<JsValue> {
        let line = if begins { Some(self.ticket_line(room, ticket)?) } else { None };
        let left_ms = room.terms().end(ticket).saturating_sub(self.place.time());
        let asks_for_status = self.request.asks_for_status;
        let turn = Message::Turn { seconds: (left_ms / 1_000) as u32, asks_for_status };
        Ok(turn.facts(Some(room), &self.request.inner.method(), line.as_slice()).into())
    }

    /// To the origin. `changed`: the visitor is given the ticket.
    fn admit(&self, room: &Room, ticket: &Ticket, changed: bool) -> Result<JsValue> {
        let line = if changed { Some(self.ticket_line(room, ticket)?) } else { None };
        if self.request.asks_for_status {
            return response::page(&answer::admitted_status(), line.as_ref());
        }
        let passport = passport(&self.settings, room, ticket, self.carrier, line);
        to_origin(&self.request.inner, room, ticket.id, passport)
    }

    /// Whoever is turned away by a room that only observes.
    fn past(&self, room: &Room) -> Result<JsValue> {
        if self.request.asks_for_status {
            return response::page(&answer::admitted_status(), None);
        }
        Ok(uncounted(Some(room), word(&self.settings, room, NOBODY)))
    }

    /// To the origin, as the room only observes and has not answered in time: it is asked again when a waiting page would be.
    fn unjudged(&self, ticket: Ticket) -> Result<JsValue> {
        let deployed = self.settings.rooms.get(self.place.room()).ok_or("there is no such room")?;
        let (steered, time) = (steered(deployed), self.place.time());
        let room = steered.as_deref().unwrap_or(deployed).at(time).0;
        let refresh_seconds = room.refresh_interval_seconds as u16;
        self.admit(room, &Ticket { refresh_seconds, uncounted: true, ..ticket.checked_in(time) }, true)
    }

    /// Whoever is turned away keeps the ticket that there is, and is not counted.
    fn refuse(&self, room: &Room, event: Option<EventView<'_>>, time: u64) -> JsValue {
        let view = WaitingView {
            room,
            asks_for_status: self.request.asks_for_status,
            estimate: Estimate::Unknown,
            people_ahead: None,
            progress: None,
            drawn: false,
            queue_all: false,
            held: false,
            event,
            draw: None,
            kept_seconds: 0,
            refresh_seconds: 0,
            now_ms: time,
            cookieless: false,
            infinite_queue: false,
            turnstile: "",
            bring_again: false,
            continue_link: "",
            push: "",
        };
        answer::facts(&view, &[]).into()
    }

    /// Whoever waits.
    fn wait(&self, room: &Room, waiting: &Waiting, event: Option<EventView<'_>>) -> Result<JsValue> {
        let ticket = &waiting.ticket;
        let turnstile = self
            .settings
            .turnstile_secret(room)
            .map_or_else(String::new, |_| room.turnstile_html(ticket.human, &self.settings.turnstile_url));
        let draw = waiting.draw.as_ref().map(|draw| DrawFacts::of(draw, ticket.id));
        let continue_link =
            another_device::link_from(&self.settings, room, &self.bound_to, ticket, &self.request.url)?;
        let push = self.settings.push.as_ref().filter(|_| !room.continue_on_another_device);
        let view = WaitingView {
            room,
            asks_for_status: self.request.asks_for_status,
            estimate: waiting.estimate,
            people_ahead: waiting.people_ahead,
            progress: waiting.people_ahead.map(|_| ticket.progress),
            drawn: waiting.drawn,
            queue_all: room.queue_all,
            held: waiting.held,
            event,
            kept_seconds: room.terms().kept_ms(ticket) / 1_000,
            refresh_seconds: waiting.refresh_seconds,
            // By it a page that is closed says which check-in was its last one: to the millisecond the ticket's.
            now_ms: ticket.last_check_in,
            cookieless: !waiting.known && self.comes_from_itself(),
            infinite_queue: ticket.human == Human::Failed && !room.trusts(ticket.human),
            turnstile: &turnstile,
            bring_again: waiting.bring_again,
            push: push.map_or("", |push| &push.keys.public),
            draw: draw.as_ref(),
            continue_link: &continue_link,
        };
        let line = self.ticket_line(room, ticket)?;
        Ok(answer::facts(&view, &[line]).into())
    }

    /// The bucket in which a ticket stands in the queue.
    fn bucket(&self, ticket: &Ticket) -> u32 {
        let deployed = self.settings.rooms.get(self.place.room());
        let steered = deployed.and_then(steered);
        let of = |room: &Room| queue_bucket(room, &self.settings.draw_key, ticket.bucket, ticket.id);
        steered.as_deref().or(deployed).map_or(ticket.bucket, of)
    }

    /// The header that brings a ticket to its visitor.
    fn ticket_line(&self, room: &Room, ticket: &Ticket) -> Result<HeaderLine> {
        // Nobody gets here without keys; an empty ticket opens nothing.
        let Some(keys) = &self.settings.keys else { return Ok((TICKET_HEADER, String::new())) };
        let scope = Scope { room: &room.name, binding: &self.bound_to };
        let value = keys.seal(scope, ticket, random()?);
        Ok(match self.carrier {
            Carrier::Cookie => {
                // Nobody sees by the cookie of a room that only observes who would wait.
                let is_hidden = ticket.accepted_at.is_none() && room.observes(ticket.id);
                let lasts = if is_hidden { ticket.admitted(ticket.last_check_in) } else { *ticket };
                // By the ticket of somebody who has not gone in the slot comes free: it must still be sent then.
                let more_ms = if ticket.is_unconfirmed() { MISSED_MS } else { 0 };
                let end = room.terms().end(&lasts.confirmed(true)).saturating_add(more_ms);
                let left_ms = end.saturating_sub(self.place.time());
                let (https, _, path) = parts(&self.request.url);
                ("set-cookie", set_cookie(room, path, &value, left_ms.div_ceil(1_000), https))
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

/// A request of a user who is in: to the origin, unless that has too much to do.
fn to_origin(request: &web_sys::Request, room: &Room, ticket: u64, passport: Passport) -> Result<JsValue> {
    match in_flight::arrive(room, ticket) {
        Way::Open(number) => Ok(passport.with(number)),
        Way::InLine(number) => {
            let (method, room) = (request.method(), room.clone());
            Ok(later(async move {
                loop {
                    pause(in_flight::ask_after_ms(number)).await;
                    match in_flight::turn(number) {
                        Turn::Go => return Ok(passport.with(number)),
                        Turn::Later => {}
                        Turn::Dropped => return busy(&room, &method, &passport),
                    }
                }
            }))
        }
        Way::Closed => busy(room, &request.method(), &passport),
    }
}

/// The origin has too much to do: try again in a moment.
fn busy(room: &Room, method: &str, passport: &Passport) -> Result<JsValue> {
    let (least, more) = TRY_AGAIN_SECONDS;
    let [random] = random::<1>()?;
    let seconds = least + u32::from(random) * more / 256;
    Ok(Message::Busy { seconds }.facts(Some(room), method, passport.ticket.as_slice()).into())
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
