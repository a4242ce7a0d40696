//! Operators who watch: by sockets that outlive the object's memory, and how the room reports while somebody does.

use super::jobs::Job;
use super::{Global, GlobalEffect};
use crate::machines::{Context, Effect};
use crate::notifications::Notification;

/// How long somebody who asked for the status counts as watching, in milliseconds: monitors ask once a minute.
const LOOKS_MS: u64 = 75_000;
/// The shortest time between two sendings of the status, in milliseconds.
const SEND_MS: u64 = 1_000;
/// More sockets are turned away.
const MAX_SOCKETS: usize = 200;

/// Who watches, and when something was sent to them. Times are in milliseconds since the epoch; 0: never.
#[derive(Debug, Default)]
pub(super) struct Watching {
    /// The sockets that are open, by the end of their operator's session; `None`: it has no end.
    sockets: Vec<Option<u64>>,
    /// When an operator last asked for the status.
    looked_at: u64,
    /// When the status was last sent.
    sent_at: u64,
}

impl Watching {
    pub(super) fn of(sockets: Vec<Option<u64>>) -> Self {
        Self { sockets, ..Self::default() }
    }

    pub(super) fn sockets_are(&mut self, sockets: Vec<Option<u64>>) {
        self.sockets = sockets;
    }

    /// Whether somebody has a WebSocket open. One that was opened by a session ends with it.
    fn has_sockets(&mut self, now: u64, effects: &mut Vec<Effect>) -> bool {
        let is_over = |ends: &Option<u64>| ends.is_some_and(|ends| now >= ends);
        if self.sockets.iter().any(is_over) {
            self.sockets.retain(|ends| !is_over(ends));
            effects.push(Effect::Global(GlobalEffect::EndSessions { until: now }));
        }
        !self.sockets.is_empty()
    }
}

impl Global {
    /// Somebody wants to be told whenever the status changes.
    pub(super) fn join(
        &mut self,
        context: &Context<'_>,
        from: u64,
        ends: Option<u64>,
        effects: &mut Vec<Effect>,
    ) {
        let was_watched = self.is_watched(context.now, effects);
        if self.watching.sockets.len() >= MAX_SOCKETS {
            let reason = "too many operators look already";
            effects.push(Effect::Refuse { to: from, status: 503, reason });
            return;
        }
        self.watching.sockets.push(ends);
        self.begin_to_look(context, was_watched, effects);
        let text = self.live_text(context);
        effects.push(Effect::Global(GlobalEffect::Accept { to: from, text }));
    }

    /// Somebody looks: from now on the colos report soon.
    pub(super) fn look_at(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        let was_watched = self.is_watched(context.now, effects);
        self.watching.looked_at = context.now;
        self.begin_to_look(context, was_watched, effects);
    }

    /// Tells the colos, unless they know.
    fn begin_to_look(&mut self, context: &Context<'_>, was_watched: bool, effects: &mut Vec<Effect>) {
        if !was_watched && self.is_watched(context.now, effects) {
            self.tell_colos(context, effects);
        }
    }

    /// Whether somebody watches; the counts know it.
    pub(super) fn is_watched(&mut self, now: u64, effects: &mut Vec<Effect>) -> bool {
        let looked_at = self.watching.looked_at;
        let asked = looked_at > 0 && now < looked_at + LOOKS_MS;
        let watched = self.watching.has_sockets(now, effects) || asked;
        self.counts.watch(watched);
        watched
    }

    /// Something has changed: it is sent soon to those who watch.
    pub(super) fn changed(&mut self, now: u64, effects: &mut Vec<Effect>) {
        if self.watching.has_sockets(now, effects) {
            self.plans.plan(Job::SendStatus, now.max(self.watching.sent_at + SEND_MS));
        }
    }

    /// Sends the status to all who watch.
    pub(super) fn send_status(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        if self.watching.has_sockets(context.now, effects) {
            self.watching.sent_at = context.now;
            let text = self.live_text(context);
            effects.push(Effect::Global(GlobalEffect::Broadcast { text }));
        }
    }

    /// Sends what has changed to those who watch.
    pub(super) fn broadcast(&mut self, notifications: &[Notification], now: u64, effects: &mut Vec<Effect>) {
        if !notifications.is_empty()
            && self.watching.has_sockets(now, effects)
            && let Ok(news) = serde_json::to_string(notifications)
        {
            let text = format!("{{\"type\":\"news\",\"news\":{news}}}");
            effects.push(Effect::Global(GlobalEffect::Broadcast { text }));
        }
    }

    fn live_text(&mut self, context: &Context<'_>) -> String {
        let (now, status) = (context.now, self.status_text(context));
        format!("{{\"type\":\"room\",\"now\":{now},\"room\":{status}}}")
    }

    /// The room as operators see it, as JSON.
    pub(super) fn status_text(&mut self, context: &Context<'_>) -> String {
        serde_json::to_string(&self.counts.status(context.room, context.now)).unwrap_or_default()
    }
}
