//! What operators change of the room: stored, sent to the colos, and logged.

use serde_json::{Map, Value, json};

use super::jobs::Job;
use super::rows::Kept;
use super::{Global, STEERING, STEERING_SET_ASIDE, operator_answer};
use crate::admission::minute_of;
use crate::machines::{Call, Context, Effect};
use crate::notifications;
use crate::protocol::messages::{OperatorAnswer, OperatorAsk, StateAnswer, VERSION, colo_object};
use crate::protocol::{Answer, Request};
use crate::steering::{AuditEntry, Order, Refusal, Steering};

/// How many entries the log keeps.
const LOGGED: u64 = 10_000;
/// How many entries are answered at once, at most, and by default.
const ANSWERED: (u64, u64) = (1_000, 100);
/// Timeout of telling a colo, in milliseconds.
const REFRESH_DEADLINE_MS: u64 = 2_000;
/// Retry interval of colos that have not confirmed, in milliseconds.
const AGAIN_MS: u64 = 1_000;
/// The longest time until an operator is answered, though not all colos have confirmed, in milliseconds.
const PATIENCE_MS: u64 = 800;

/// A colo that is being updated.
#[derive(Debug)]
pub(super) struct Telling {
    call: u64,
    colo: String,
    /// Of what operators have changed.
    version: u32,
    watched: bool,
}

/// An operator who is answered once all colos have confirmed, or at a time, in milliseconds since the epoch.
#[derive(Debug)]
pub(super) struct Waiting {
    from: u64,
    calls: Vec<u64>,
    pub(super) until: u64,
}

impl Global {
    /// Does what an operator orders, or answers what is in force where the body is empty. `None`: the answer follows when
    /// the colos have confirmed.
    pub(super) fn steer(
        &mut self,
        context: &Context<'_>,
        from: u64,
        asked: &OperatorAsk,
        effects: &mut Vec<Effect>,
    ) -> Kept<Option<Answer>> {
        if asked.body.is_empty() {
            return Ok(Some(self.steering_answer(context)));
        }
        let order = Order::read(&asked.body);
        if let Some(order) = order.as_ref().ok().filter(|order| order.dry_run) {
            return Ok(Some(self.dry_run(context, order, &asked.by)));
        }
        let done = order.and_then(|order| self.counts.obey(context.room, &order, &asked.by, context.now));
        let log = match done {
            Ok(log) if log.is_empty() => return Ok(Some(self.steering_answer(context))),
            Ok(log) => log,
            Err(refusal) => return Ok(Some(refused(&refusal))),
        };
        let calls = self.put_in_force(context, &log, effects)?;
        if calls.is_empty() {
            return Ok(Some(self.steering_answer(context)));
        }
        self.waiting.push(Waiting { from, calls, until: context.now + PATIENCE_MS });
        Ok(None)
    }

    /// Ends what is to end by itself.
    pub(super) fn end_overrides(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        if self.counts.steering().next_end().is_some_and(|end| end <= context.now) {
            let log = self.counts.end_overrides(context.room, context.now);
            // Whatever becomes of the log, it has ended.
            let _ = self.put_in_force(context, &log, effects);
        }
    }

    /// Stores what has changed, tells the colos, and writes the log. Returns the calls.
    fn put_in_force(
        &mut self,
        context: &Context<'_>,
        log: &[AuditEntry],
        effects: &mut Vec<Effect>,
    ) -> Kept<Vec<u64>> {
        let set_aside = self.counts.steering_set_aside().map(|bytes| (STEERING_SET_ASIDE, bytes));
        let stored = self.counts.steering().write().ok().map(|bytes| (STEERING, bytes));
        for (key, bytes) in set_aside.into_iter().chain(stored) {
            effects.push(Effect::Store { key: key.to_owned(), bytes, background: false });
        }
        self.store_meta(effects);
        // Whatever becomes of the log, the order is in force.
        let calls = self.tell_colos(context, effects);
        self.changed(context.now, effects);
        if let Some(end) = self.counts.steering().next_end() {
            self.plans.plan(Job::End, end);
        }
        for entry in log {
            self.rows.add_audit(entry.at, &serde_json::to_string(entry).unwrap_or_default(), LOGGED)?;
        }
        self.notify_steered(context, log, effects)?;
        Ok(calls)
    }

    fn notify_steered(
        &mut self,
        context: &Context<'_>,
        log: &[AuditEntry],
        effects: &mut Vec<Effect>,
    ) -> Kept<()> {
        let mut notifications = [notifications::steered(context.room, log, self.counts.steering().version)];
        self.keep_notifications(&mut notifications, context.now)?;
        self.broadcast(&notifications, context.now, effects);
        Ok(())
    }

    fn steering_answer(&self, context: &Context<'_>) -> Answer {
        self.shown(context, self.counts.steering())
    }

    fn shown(&self, context: &Context<'_>, steering: &Steering) -> Answer {
        let view = steering.view(context.room, context.now, self.counts.in_force(context.now));
        let text = serde_json::to_string(&view).unwrap_or_default();
        Answer::GlobalSteer(Box::new(operator_answer(200, text)))
    }

    /// What would be in force after an order.
    fn dry_run(&self, context: &Context<'_>, order: &Order, by: &str) -> Answer {
        let mut steering = self.counts.steering().clone();
        match steering.obey(context.room, order, by, context.now) {
            Ok(_) => self.shown(context, &steering),
            Err(refusal) => refused(&refusal),
        }
    }

    /// Updates the colos that have not confirmed, each on its own. Returns the calls.
    pub(super) fn tell_colos(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) -> Vec<u64> {
        let now = context.now;
        self.is_watched(now, effects);
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let room = whole.at(now).0;
        let mut calls = Vec::new();
        for colo in self.counts.colos_to_tell(room, now) {
            let key = self.counts.state(room, Some(&colo), minute_of(now), now);
            if calls.is_empty() {
                self.store_meta(effects);
            }
            self.calls += 1;
            calls.push(self.calls);
            let (version, watched) = (key.steering.version, key.watched);
            let told = StateAnswer { v: VERSION, state: Some(key) };
            effects.push(Effect::Call(Call {
                number: self.calls,
                name: colo_object(&context.room.name, &colo),
                request: Request::DataCenterRefresh(Box::new(told)),
                deadline_ms: REFRESH_DEADLINE_MS,
            }));
            self.telling.push(Telling { call: self.calls, colo, version, watched });
        }
        if !calls.is_empty() {
            // Colos that have not confirmed by then are updated again.
            self.plans.plan(Job::Tell, now + AGAIN_MS);
        }
        calls
    }

    /// A colo has confirmed, or has not.
    pub(super) fn told(
        &mut self,
        context: &Context<'_>,
        call: u64,
        has_answered: bool,
        effects: &mut Vec<Effect>,
    ) {
        let Some(index) = self.telling.iter().position(|telling| telling.call == call) else { return };
        let telling = self.telling.swap_remove(index);
        if has_answered {
            self.counts.told(&telling.colo, telling.version, telling.watched);
        } else {
            self.counts.not_told(&telling.colo);
        }
        for waiting in &mut self.waiting {
            waiting.calls.retain(|waits_for| *waits_for != call);
        }
        self.answer_operators(context, effects);
    }

    /// Answers the operators for whom all colos have confirmed, or who have waited long enough.
    pub(super) fn answer_operators(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        let is_over = |waiting: &Waiting| waiting.calls.is_empty() || context.now >= waiting.until;
        if !self.waiting.iter().any(is_over) {
            return;
        }
        let (over, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(is_over);
        self.waiting = waiting;
        for Waiting { from, .. } in over {
            effects.push(Effect::Reply { to: from, answer: self.steering_answer(context) });
        }
    }

    /// The log, newest first.
    pub(super) fn audit(&self, room: &str, asked: &OperatorAsk) -> Kept<OperatorAnswer> {
        let (limit, before) = match (whole(&asked.query, "limit"), whole(&asked.query, "before")) {
            (Ok(limit), Ok(before)) => (limit, before),
            (Err(error), _) | (_, Err(error)) => {
                return Ok(operator_answer(400, json!({ "error": error }).to_string()));
            }
        };
        let rows = self.rows.audit(before, limit.unwrap_or(ANSWERED.1).min(ANSWERED.0))?;
        let entries = rows.into_iter().filter_map(|(id, entry)| {
            let mut entry: Map<String, Value> = serde_json::from_str(&entry).ok()?;
            entry.insert("id".to_owned(), id.into());
            Some(entry)
        });
        let entries: Vec<Map<String, Value>> = entries.collect();
        Ok(operator_answer(200, json!({ "room": room, "entries": entries }).to_string()))
    }
}

fn refused(refusal: &Refusal) -> Answer {
    let text = serde_json::to_string(refusal).unwrap_or_default();
    Answer::GlobalSteer(Box::new(operator_answer(refusal.status, text)))
}

/// A whole number from 1 in a query, if it is there.
fn whole(query: &str, name: &str) -> Result<Option<u64>, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let Some((_, text)) = pairs.into_iter().find(|(key, _)| *key == name) else { return Ok(None) };
    match text.parse::<u64>() {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(format!("{name} must be a whole number from 1, for example {name}=100")),
    }
}
