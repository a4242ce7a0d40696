//! What operators see in a browser.

use wasm_bindgen::JsValue;
use worker::{Env, Result};

use super::status::{self, DEADLINE_MS};
use crate::answer;
use crate::edge::calls::{GLOBAL, call};
use crate::edge::settings::Settings;
use crate::edge::{asked, dashboard, own};
use crate::operator::Operator;
use crate::pipeline::messages::{LOOK, OperatorAnswer};

/// The dashboard, with what all rooms do for browsers without JavaScript; or the sign-in page.
pub async fn show(
    request: &web_sys::Request,
    operator: Option<&Operator>,
    env: &Env,
    settings: &Settings,
) -> Result<JsValue> {
    let Some(operator) = operator else { return dashboard::sign_in("") };
    let status = status::status(request, Some(operator), env, settings).await?;
    dashboard::page(&operator.name, operator.role.name(), &status)
}

/// The page that somebody sees who comes to a room now and must wait.
pub async fn preview(request: &web_sys::Request, env: &Env, settings: &Settings) -> Result<JsValue> {
    let name = asked::query(request, "room").unwrap_or_default().to_ascii_lowercase();
    let Some(room) = settings.rooms.get(&name) else { return own::page(&answer::not_found(), None) };
    let look: OperatorAnswer = call(env, GLOBAL, &room.name, LOOK, &(), DEADLINE_MS).await?;
    dashboard::preview(request, room, &look.body)
}
