//! Our own paths, for operators: each request is let in or refused by one table, then answered.

mod access;
mod events;
mod history;
mod metrics;
mod reply;
mod status;
mod steering;

use wasm_bindgen::JsValue;
use worker::{Env, Result};

pub use access::{Caller, client, is_from_elsewhere, knows, may_know};
pub use status::{announce, order, status_of};

use super::clock::now;
use super::request::query;
use super::settings::Settings;
use super::{another_device, dashboard, draws, health, push, rehearsal};
use crate::answer::Message;
use crate::operator::{Admitted, Refusal, Target};
use crate::protocol::messages::UNWATCHED;
use crate::protocol::{GlobalAudit, GlobalNotifications, GlobalSteer, Method};

/// Our own paths begin so, on every host that leads to the Worker: also where no room is yet.
pub const ROOT: &str = "/__anteroom/";

/// Whether a path is one of our own.
pub fn is_own(path: &str) -> bool {
    path.strip_prefix("/__anteroom").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request to one of our own paths.
pub async fn handle(
    request: &web_sys::Request,
    path: &str,
    env: &Env,
    settings: &Settings,
) -> Result<JsValue> {
    if !path.starts_with(ROOT) {
        // A session's cookie goes to what is below.
        return reply::to_page(None);
    }
    let caller = Caller::of(request, path);
    let Admitted { target, operator, session_ends } = match caller.admit(settings) {
        Ok(admitted) => admitted,
        // Visitors see a page.
        Err(Refusal { status: 404, .. }) => return Ok(Message::NotFound.facts(None, "", &[]).into()),
        Err(refusal) => return reply::refuse(&refusal),
    };
    let wanted = |text: String| (!caller.is_head()).then_some(text);
    match target {
        Target::Page => match operator {
            Some(operator) => {
                // The dashboard asks for it itself, and nobody has to wait for a room that does not answer.
                let status = match query(request, "figures") {
                    Some(_) => status::status(None, UNWATCHED, Some(operator), env, settings).await?,
                    None => String::new(),
                };
                dashboard::page(operator, &status)
            }
            None => dashboard::sign_in(false, request),
        },
        Target::Asset => dashboard::asset(request, path),
        Target::Preview => match steering::room(request, settings) {
            Ok(room) => match status::room_status(room, env, "").await {
                Ok(status) => dashboard::preview(request, room, &status),
                Err(error) => steering::unreachable(&error),
            },
            Err(refusal) => reply::refuse(&refusal),
        },
        Target::SignIn => access::sign_in(request, &caller, settings).await,
        Target::SignOut => access::sign_out(&caller),
        Target::Status => {
            let only = match query(request, "room").map(|_| steering::room(request, settings)).transpose() {
                Ok(only) => only,
                Err(refusal) => return reply::refuse(&refusal),
            };
            let watches = query(request, "watch").is_none_or(|watch| watch != "false");
            let how = if watches { "" } else { UNWATCHED };
            let text = status::status(only, how, operator, env, settings).await?;
            reply::json(200, wanted(text).as_deref())
        }
        Target::History => history::history(request, caller.is_head(), env, settings).await,
        Target::Events => reply::json(200, wanted(events::list(env, settings).await).as_deref()),
        Target::Draws => draws::handle(request, settings),
        Target::Rehearsal => rehearsal::handle(request, settings),
        Target::Continue => another_device::handle(request, &caller, env, settings).await,
        Target::Push => match &settings.push {
            Some(_) => push::worker(),
            None => Ok(Message::NotFound.facts(None, "", &[]).into()),
        },
        Target::Health => match health::handle(request, path, env, settings).await? {
            Some(answer) => Ok(answer),
            None => Ok(Message::NotFound.facts(None, "", &[]).into()),
        },
        Target::Metrics => {
            let (content_type, text) = metrics::metrics(request, env, settings).await;
            reply::answer(200, content_type, wanted(text).as_deref())
        }
        Target::Steering | Target::Steer | Target::Audit | Target::Notification | Target::Live => {
            let room = match steering::room(request, settings) {
                Ok(room) => room,
                Err(refusal) => return reply::refuse(&refusal),
            };
            let route = match target {
                Target::Live => {
                    let listens = operator.and_then(|operator| operator.listens_until(now()));
                    let ends = session_ends.into_iter().chain(listens).min();
                    return steering::live(request, operator, ends, env, room).await;
                }
                Target::Audit => GlobalAudit::ROUTE,
                Target::Notification => GlobalNotifications::ROUTE,
                _ => GlobalSteer::ROUTE,
            };
            steering::ask(request, &caller, operator, route, env, room).await
        }
    }
}
