//! Operators who look: by sockets that may sleep, and how the room reports while somebody does.

use worker::worker_sys::WebSocketRequestResponsePair;
use worker::{Request, Response, Result, State, WebSocket, WebSocketPair};

use super::Global;
use super::alarm::Job;
use crate::edge::clock::now;
use crate::notifications::Notification;
use crate::protocol::messages::SESSION_ENDS;

/// Somebody who asked for the status so long ago may ask again, in milliseconds: monitors do so once a minute.
const LOOKS_MS: u64 = 75_000;
/// The status is sent so often at most, in milliseconds.
const SEND_MS: u64 = 1_000;
/// More of them are turned away.
const MAX_LOOKING: usize = 200;
/// Why a socket is closed whose session is over: "policy violation", RFC 6455.
const SESSION_OVER: u16 = 1_008;

/// Lets the platform answer pings without waking the object.
pub(super) fn answer_pings(state: &State) {
    if let Ok(pair) = WebSocketRequestResponsePair::new("ping", "pong") {
        state.set_websocket_auto_response(&pair);
    }
}

impl Global {
    /// Somebody wants to be told whenever the status changes.
    pub(super) async fn join(&self, request: &Request) -> Result<Response> {
        if request.headers().get("upgrade")?.as_deref() != Some("websocket") {
            return Response::error("this is for WebSockets", 426);
        }
        let time = now();
        if self.looking(time).len() >= MAX_LOOKING {
            return Response::error("too many operators look already", 503);
        }
        let pair = WebSocketPair::new()?;
        let ends = request.headers().get(SESSION_ENDS)?;
        let was_watched = self.is_watched(time);
        let tags: Vec<&str> = ends.as_deref().into_iter().collect();
        self.state.accept_websocket_with_tags(&pair.server, &tags);
        self.begin_to_look(was_watched, time).await?;
        pair.server.send_with_str(self.live_text(time))?;
        Response::from_websocket(pair.client)
    }

    /// The sockets of those who look. One that was opened by a session ends with it: its tag says when.
    fn looking(&self, time: u64) -> Vec<WebSocket> {
        let mut sockets = self.state.get_websockets();
        sockets.retain(|socket| {
            let tags = self.state.get_tags(socket);
            let is_over = tags.iter().filter_map(|end| end.parse::<u64>().ok()).any(|end| time >= end);
            if is_over {
                let _ = socket.close(Some(SESSION_OVER), Some("the session is over"));
            }
            !is_over
        });
        sockets
    }

    /// Somebody looks: from now on the colos report soon.
    pub(super) async fn look_at(&self, time: u64) -> Result<()> {
        let was_watched = self.is_watched(time);
        self.looked_at.set(time);
        self.begin_to_look(was_watched, time).await
    }

    /// Tells the colos, unless they know.
    async fn begin_to_look(&self, was_watched: bool, time: u64) -> Result<()> {
        if !was_watched && self.is_watched(time) {
            self.spread_again().await?;
        }
        Ok(())
    }

    /// Whether somebody looks; the core is told.
    pub(super) fn is_watched(&self, time: u64) -> bool {
        let asked = self.looked_at.get() > 0 && time < self.looked_at.get() + LOOKS_MS;
        let watched = asked || !self.looking(time).is_empty();
        if let Some(memory) = self.memory.borrow_mut().as_mut() {
            memory.watch(watched);
        }
        watched
    }

    /// Something has changed: those who look are told soon.
    pub(super) async fn changed(&self, time: u64) -> Result<()> {
        if self.looking(time).is_empty() {
            return Ok(());
        }
        let at = time.max(self.sent_at.get() + SEND_MS);
        self.alarm.wake(Job::Live, at, time, &self.state.storage()).await
    }

    /// Sends the status to all who look.
    pub(super) fn send_status(&self, time: u64) -> Option<u64> {
        let sockets = self.looking(time);
        if !sockets.is_empty() {
            self.sent_at.set(time);
            let text = self.live_text(time);
            for socket in sockets {
                // One that is closing is gone soon.
                let _ = socket.send_with_str(&text);
            }
        }
        None
    }

    /// Tells those who look what is new.
    pub(super) fn tell_news(&self, news: &[Notification], time: u64) -> Result<()> {
        if news.is_empty() {
            return Ok(());
        }
        let sockets = self.looking(time);
        if !sockets.is_empty() {
            let text = format!("{{\"type\":\"news\",\"news\":{}}}", serde_json::to_string(news)?);
            for socket in sockets {
                let _ = socket.send_with_str(&text);
            }
        }
        Ok(())
    }

    fn live_text(&self, time: u64) -> String {
        format!("{{\"type\":\"room\",\"now\":{time},\"room\":{}}}", self.status_text(time))
    }
}
