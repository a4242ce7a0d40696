//! Somebody who waits goes on with the place on another device: the page that a link leads to, and the move.
//!
//! Nothing moves when the address is opened, only when the form in the page is sent: programs that look at links in advance
//! would use it up.

use qrcodegen::{QrCode, QrCodeEcc};
use serde::Serialize;
use wasm_bindgen::JsValue;
use worker::{Env, Result};

use super::calls::ask;
use super::clock::{now, random, random_id};
use super::gate::{bound_to, parts};
use super::operator::Caller;
use super::platform::log_error;
use super::request::{body, field, query};
use super::response::response;
use super::room_worker::{is_ended, steered, time_in};
use super::settings::Settings;
use crate::answer::Message;
use crate::config::Coverage;
use crate::counts::{MoveOutcome, MovePlace};
use crate::protocol::GlobalMove;
use crate::protocol::messages::VERSION;
use crate::room::Room;
use crate::ticket::{Link, Scope, Ticket, set_cookie};

/// Where links lead to.
const PATH: &str = "/__anteroom/continue";
/// A visitor waits so long for Global, in milliseconds.
const DEADLINE_MS: u64 = 3_000;
/// A form is no longer, in bytes.
const LONGEST_FORM: usize = 4 * 1_024;
/// A longer query of the waiting page's address is left out of links: their codes would be hard to read.
const LONGEST_ADDRESS: usize = 300;

/// The address, without the host, at which the visitor of the waiting page at `url` goes on elsewhere; empty: the room has no
/// such thing, or the place has moved too often.
///
/// # Errors
/// When the platform has no random numbers.
pub fn link_from(
    settings: &Settings,
    room: &Room,
    bound_to: &str,
    ticket: &Ticket,
    url: &str,
) -> Result<String> {
    let link = Link::to_keep(ticket, &room.terms()).filter(|_| room.continue_on_another_device);
    let (Some(keys), Some(link)) = (&settings.keys, link) else { return Ok(String::new()) };
    let (_, _, path) = parts(url);
    let after_host = url.split_once("://").and_then(|(_, rest)| rest.get(rest.find('/')?..));
    let address = after_host.and_then(|rest| rest.split('#').next()).unwrap_or(path);
    let to = if address.len() <= LONGEST_ADDRESS { address } else { path };
    Ok(address_of(to, &keys.seal_link(Scope { room: &room.name, binding: bound_to }, &link, random()?)))
}

fn address_of(to: &str, link: &str) -> String {
    format!("{PATH}?to={}&link={link}", String::from(js_sys::encode_uri_component(to)))
}

/// What a form or an address says.
struct Asked {
    to: String,
    link: String,
    by: Option<u64>,
}

impl Asked {
    fn read(text: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let (to, link) = (text("to")?, text("link")?);
        // A path on this host, and nothing that a header may not hold.
        let is_path = to.starts_with('/') && !to.starts_with("//") && !to.contains('\\');
        let by = text("by").and_then(|by| u64::from_str_radix(&by, 16).ok());
        (is_path && to.bytes().all(|byte| byte.is_ascii_graphic())).then_some(Self { to, link, by })
    }
}

/// Shows the page of a link, or moves the place.
///
/// # Errors
/// When the platform breaks its word.
pub async fn handle(
    request: &web_sys::Request,
    caller: &Caller,
    env: &Env,
    settings: &Settings,
) -> Result<JsValue> {
    let method = request.method();
    let moves = method == "POST";
    let asked = if moves && !caller.is_foreign() {
        let form = body(request, LONGEST_FORM).await.unwrap_or_default();
        let form = String::from_utf8_lossy(&form).into_owned();
        Asked::read(|name| field(&form, name))
    } else if ["GET", "HEAD"].contains(&method.as_str()) {
        Asked::read(|name| query(request, name))
    } else {
        None
    };
    let url = request.url();
    let (https, host, _) = parts(&url);
    let found = asked.and_then(|asked| {
        let path = asked.to.split('?').next()?;
        let Coverage::Covered(room) = settings.rooms.find(host, path) else { return None };
        let (scheme, room) = (if https { "https" } else { "http" }, room.clone());
        Some((Page { asked, scheme, host, https }, room))
    });
    let over = |room: Option<&Room>| Ok(Message::LinkOver.facts(room, &method, &[]).into());
    let Some((page, deployed)) = found else { return over(None) };
    let time = time_in(&deployed.name);
    let steered = steered(&deployed);
    let room = steered.as_deref().unwrap_or(&deployed).at(time).0;
    let bound_to = bound_to(room, request);
    let scope = Scope { room: &room.name, binding: &bound_to };
    let link = settings.keys.as_ref().and_then(|keys| keys.open_link(scope, &page.asked.link));
    let is_over = |link: &Link| room.ends_sessions() && is_ended(&room.name, link.ticket.id);
    let link = link.filter(|link| link.holds(time, &room.terms()) && !is_over(link));
    let (Some(link), true, false) = (link, room.continue_on_another_device, room.suspended) else {
        return over(Some(room));
    };
    let Some(by) = page.asked.by.filter(|_| moves) else {
        return page.show(room, settings, scope, &link, random_id()?, 200);
    };
    let ask_for = MovePlace { v: VERSION, id: link.ticket.id, moves: link.ticket.moves, by };
    match ask::<GlobalMove>(env, &room.name, &ask_for, DEADLINE_MS).await.map(|moved| moved.outcome) {
        Ok(MoveOutcome::Moved) => page.take_along(room, settings, scope, &link),
        Ok(MoveOutcome::Over) => over(Some(room)),
        other => {
            if let Err(error) = other {
                log_error(&error.to_string());
            }
            // Once more, as the same one.
            page.show(room, settings, scope, &link, by, 503)
        }
    }
}

struct Page<'a> {
    asked: Asked,
    scheme: &'static str,
    host: &'a str,
    https: bool,
}

impl Page<'_> {
    /// On to the waiting page, with the place.
    fn take_along(&self, room: &Room, settings: &Settings, scope: Scope<'_>, link: &Link) -> Result<JsValue> {
        let Some(keys) = &settings.keys else { return Err("there are no keys".into()) };
        let ticket = link.moved();
        let left_ms = room.terms().end(&ticket).saturating_sub(now());
        let value = keys.seal(scope, &ticket, random()?);
        let path = self.asked.to.split('?').next().unwrap_or_default();
        let headers = [
            ("location", self.asked.to.clone()),
            ("set-cookie", set_cookie(room, path, &value, left_ms.div_ceil(1_000), self.https)),
            ("cache-control", "private, no-store".to_owned()),
            ("referrer-policy", "no-referrer".to_owned()),
        ];
        response(303, &headers, None)
    }

    /// The page of a link: who may keep it sees a code for a device at hand. `by`: see [`MovePlace::by`].
    fn show(
        &self,
        room: &Room,
        settings: &Settings,
        scope: Scope<'_>,
        link: &Link,
        by: u64,
        status: u16,
    ) -> Result<JsValue> {
        let time = time_in(&room.name);
        let shown = link.is_to_keep(&room.terms()).then(|| link.at_hand(time));
        let address = match (&settings.keys, shown) {
            (Some(keys), Some(shown)) => {
                let sealed = keys.seal_link(scope, &shown, random()?);
                format!("{}://{}{}", self.scheme, self.host, address_of(&self.asked.to, &sealed))
            }
            _ => String::new(),
        };
        let code = QrCode::encode_text(&address, QrCodeEcc::Low).ok().filter(|_| !address.is_empty());
        let facts = Facts {
            continues: true,
            status,
            language: room.page.language,
            visitor_languages: room.page.visitor_languages,
            to: &self.asked.to,
            link: &self.asked.link,
            by: &format!("{by:016x}"),
            address: &address,
            size: code.as_ref().map_or(0, QrCode::size),
            code: &code.as_ref().map_or_else(String::new, drawn),
            shown_seconds: shown.map_or(0, |shown| shown.until.saturating_sub(time) / 1_000),
            kept_seconds: link.until.saturating_sub(time) / 1_000,
        };
        Ok(serde_json::to_string(&facts)?.into())
    }
}

/// `edge/page/another-device.js` says what each is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Facts<'a> {
    continues: bool,
    status: u16,
    language: &'a str,
    visitor_languages: bool,
    to: &'a str,
    link: &'a str,
    by: &'a str,
    address: &'a str,
    size: i32,
    code: &'a str,
    shown_seconds: u64,
    kept_seconds: u64,
}

/// A code as the path of an SVG: its dark modules, one unit each.
fn drawn(code: &QrCode) -> String {
    let size = code.size();
    let dark =
        (0..size).flat_map(|y| (0..size).map(move |x| (x, y))).filter(|(x, y)| code.get_module(*x, *y));
    dark.fold(String::new(), |path, (x, y)| path + &format!("M{x} {y}h1v1h-1z"))
}
