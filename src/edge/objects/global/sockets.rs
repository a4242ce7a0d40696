//! The sockets of operators who watch. They may sleep, and outlive the object's memory.

use worker::worker_sys::WebSocketRequestResponsePair;
use worker::{Request, Response, Result, State, WebSocket, WebSocketPair};

use super::super::shell::Shell;
use crate::edge::configuration;
use crate::edge::settings::Settings;
use crate::machines::{GlobalInput, Input};
use crate::protocol::messages::{LISTENER, SESSION_ENDS};

/// Why a socket is closed whose session is over: "policy violation", RFC 6455.
const SESSION_OVER: u16 = 1_008;

/// Lets the platform answer pings without waking the object.
pub fn answer_pings(state: &State) {
    if let Ok(pair) = WebSocketRequestResponsePair::new("ping", "pong") {
        state.set_websocket_auto_response(&pair);
    }
}

/// Accepts a socket of somebody who wants to be told whenever the status changes.
///
/// # Errors
/// When the platform refuses the socket.
pub async fn join(shell: &Shell, request: &Request) -> Result<Response> {
    if request.headers().get("upgrade")?.as_deref() != Some("websocket") {
        return Response::error("this is for WebSockets", 426);
    }
    let tag = request.headers().get(SESSION_ENDS)?;
    let ends = tag.as_deref().and_then(|ends| ends.parse().ok());
    let text = match shell.ask(|from| Input::Global(GlobalInput::Joined { from, ends })).await? {
        Ok(text) => String::from_utf8(text).unwrap_or_default(),
        Err((status, reason)) => return Response::error(reason, status),
    };
    let pair = WebSocketPair::new()?;
    let listener = request.headers().get(LISTENER)?;
    let tags: Vec<&str> = [&tag, &listener].into_iter().flatten().map(String::as_str).collect();
    shell.state().accept_websocket_with_tags(&pair.server, &tags);
    pair.server.send_with_str(text)?;
    tell(shell);
    Response::from_websocket(pair.client)
}

/// When the sessions of the open sockets are over.
pub fn ends(state: &State) -> Vec<Option<u64>> {
    state.get_websockets().iter().map(|socket| end(state, socket)).collect()
}

/// When a socket's session is over: its tag says it.
fn end(state: &State, socket: &WebSocket) -> Option<u64> {
    state.get_tags(socket).iter().find_map(|end| end.parse().ok())
}

/// Gives Global the sockets that are open.
pub fn tell(shell: &Shell) {
    shell.tell(Input::Global(GlobalInput::Sockets(ends(shell.state()))));
}

/// Sends a text over all sockets, and closes those whose token was revoked. Who can be revoked is told nothing while this isolate
/// has heard of a change that it does not know yet.
pub fn broadcast(shell: &Shell, text: &str) {
    let (state, settings) = (shell.state(), Settings::of(shell.env()));
    let (is_ready, is_behind) = (configuration::is_ready(&settings), configuration::is_behind());
    let listeners: Vec<String> = settings.operators.listeners().collect();
    for socket in state.get_websockets() {
        // The other tag is a time.
        let listener = state.get_tags(&socket).into_iter().find(|tag| tag.parse::<u64>().is_err());
        match listener {
            Some(_) if is_behind => {}
            Some(listener) if is_ready && !listeners.contains(&listener) => {
                let _ = socket.close(Some(SESSION_OVER), Some("the session is over"));
            }
            // One that is closing is gone soon.
            _ => drop(socket.send_with_str(text)),
        }
    }
}

/// Closes the sockets whose session is over.
pub fn end_sessions(state: &State, until: u64) {
    for socket in state.get_websockets() {
        if end(state, &socket).is_some_and(|end| end <= until) {
            let _ = socket.close(Some(SESSION_OVER), Some("the session is over"));
        }
    }
}
