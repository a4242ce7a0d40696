//! What operators see in a browser. The pages are made in JavaScript (`dashboard.js`, of what static/dashboard/ holds);
//! whoever calls this has decided who may see them.

use js_sys::{Array, Function, JsString, Reflect};
use serde::Serialize;
use wasm_bindgen::{JsCast, JsValue};
use worker::{Error, Result};

use super::request::query;
use crate::operator::Operator;
use crate::room::{PageSettings, Room, SameSite};

/// The page on which operators sign in, with status 401. `failed`: somebody has just tried a token that nobody has.
pub fn sign_in(failed: bool, request: &web_sys::Request) -> Result<JsValue> {
    call("signIn", &[failed.into(), request.into()])
}

/// The dashboard, for an operator who has signed in. `status` is the answer of `GET /__anteroom/status`, for browsers
/// without JavaScript; empty: these are sent to `?figures`, where it is asked for.
pub fn page(operator: &Operator, status: &str) -> Result<JsValue> {
    call("page", &[operator.name.as_str().into(), operator.role.name().into(), status.into()])
}

/// The dashboard's script or style. They are the same for everybody and need no token.
pub fn asset(request: &web_sys::Request, path: &str) -> Result<JsValue> {
    call("asset", &[path.into(), query(request, "v").unwrap_or_default().into()])
}

/// The page that somebody sees who comes to the room now and must wait, in the language that the address asks for
/// (`language`). `status` is the room's part of `GET /__anteroom/status`.
pub fn preview(request: &web_sys::Request, room: &Room, status: &str) -> Result<JsValue> {
    let page = serde_json::to_string(&Page::from(room))?;
    let language = query(request, "language").unwrap_or_default();
    call("preview", &[page.into(), status.into(), language.into(), request.into()])
}

/// What the room's owner chose for the page; the names are those of the facts in `page/answer.js`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "the owner's switches, each of its own")]
#[allow(clippy::struct_field_names, reason = "the names of the facts")]
struct Page<'a> {
    language: &'a str,
    visitor_languages: bool,
    custom_page: &'a str,
    embedded: bool,
    message: &'a str,
    show_position: bool,
    show_wait: bool,
    show_progress: bool,
    kept_seconds: u32,
}

impl<'a> From<&'a Room> for Page<'a> {
    fn from(room: &'a Room) -> Self {
        let page: &PageSettings = &room.page;
        Self {
            language: page.language,
            visitor_languages: page.visitor_languages,
            custom_page: &page.template,
            embedded: room.cookie_attributes.samesite == SameSite::None,
            message: &page.message,
            show_position: page.position,
            show_wait: page.wait,
            show_progress: page.progress,
            kept_seconds: room.place_kept_seconds,
        }
    }
}

/// Calls a function of `dashboard.js`, which `entry.js` puts where this finds it.
fn call(name: &str, arguments: &[JsValue]) -> Result<JsValue> {
    let dashboard = Reflect::get(&js_sys::global(), &JsString::from("anteroomDashboard"))?;
    let function: Function = Reflect::get(&dashboard, &JsString::from(name))?
        .dyn_into()
        .map_err(|_| Error::from("the dashboard is not there"))?;
    let list: Array = arguments.iter().collect();
    Ok(function.apply(&dashboard, &list)?)
}
