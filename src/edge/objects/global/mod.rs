//! `GLOBAL` on the platform; see [`machines::Global`]. Besides its messages it has the WebSocket `/live`.

mod rows;
mod sockets;
mod webhooks;

use worker::{
    DurableObject, Env, Request, Response, Result, State, WebSocket, WebSocketIncomingMessage, durable_object,
};

use super::shell::{Shell, Start};
use crate::edge::calls::failure;
use crate::edge::settings::Settings;
use crate::machines::{self, GlobalEffect, GlobalInput, Input, ObjectMachine, Outside};
use crate::protocol::Object;
use crate::protocol::messages::LIVE;
use rows::SqlRows;

/// The room as all colos see it.
#[durable_object]
pub struct Global(Shell);

/// A panic in one event leaves at most one report half merged; the colo's next one takes its place.
impl std::panic::RefUnwindSafe for Global {}

impl DurableObject for Global {
    fn new(state: State, env: Env) -> Self {
        sockets::answer_pings(&state);
        Self(Shell::new(state, env, Object::Global, restore))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.path() == LIVE {
            sockets::join(&self.0, &request).await
        } else {
            self.0.fetch(request).await
        }
    }

    async fn alarm(&self) -> Result<Response> {
        let response = self.0.alarm().await;
        sockets::tell(&self.0);
        response
    }

    async fn websocket_message(&self, socket: WebSocket, _message: WebSocketIncomingMessage) -> Result<()> {
        // There is nothing to say here; pings are answered by the platform.
        socket.close(Some(1003), Some("only pings are understood"))
    }

    async fn websocket_close(
        &self,
        socket: WebSocket,
        _code: usize,
        _reason: String,
        _was_clean: bool,
    ) -> Result<()> {
        sockets::tell(&self.0);
        // Else the other end waits for the answer. Where the platform has sent it, that is done.
        let _ = socket.close::<String>(None, None);
        Ok(())
    }

    async fn websocket_error(&self, _socket: WebSocket, _error: worker::Error) -> Result<()> {
        sockets::tell(&self.0);
        Ok(())
    }
}

fn restore(start: &Start<'_>) -> Result<Box<dyn ObjectMachine>> {
    let settings = Settings::of(start.env);
    let outside = Outside {
        rows: Box::new(SqlRows::of(&start.state.storage())?),
        webhooks: settings.webhooks.clone(),
        reachable: settings.receivers.keys().cloned().collect(),
        pushes: settings.push.is_some(),
        words: webhooks::in_words,
        sockets: sockets::ends(start.state),
        random: start.random,
    };
    let machine = machines::Global::restore(start.room, start.stored, outside, start.now);
    Ok(Box::new(machine.map_err(|_| failure("the tables cannot be read".to_owned()))?))
}

/// Does what only Global does.
pub(super) fn carry_out(shell: &Shell, effect: GlobalEffect) {
    match effect {
        GlobalEffect::Accept { to, text } => shell.reply(to, Ok(text.into_bytes())),
        GlobalEffect::Broadcast { text } => sockets::broadcast(shell, &text),
        GlobalEffect::EndSessions { until } => sockets::end_sessions(shell.state(), until),
        GlobalEffect::Push(attempt) => {
            let here = shell.clone();
            shell.state().wait_until(async move {
                let outcome = webhooks::push(&Settings::of(here.env()), &attempt).await;
                here.tell(Input::Global(GlobalInput::Pushed { number: attempt.number, outcome }));
            });
        }
        GlobalEffect::Attempt(attempt) => {
            let here = shell.clone();
            shell.state().wait_until(async move {
                let outcome = webhooks::send(&Settings::of(here.env()), &attempt).await;
                here.tell(Input::Global(GlobalInput::Attempted { number: attempt.number, outcome }));
            });
        }
    }
}
