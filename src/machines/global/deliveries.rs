//! Messages to webhooks: whom a notification is sent to, when it is tried again, and when it is given up.
//!
//! The next attempt is planned before a message leaves, so that an object that vanishes meanwhile sends it again, with the
//! same id; nothing waits for a receiver but its own next message.

use std::collections::VecDeque;

use serde::Serialize;

use super::jobs::Job;
use super::rows::{Kept, NotificationRow, PendingRow, ReceiverRow, Rows};
use super::{Global, GlobalEffect};
use crate::config::Webhooks;
use crate::machines::{Context, Effect};
use crate::notifications::delivery::{GIVE_UP_MS, GONE_MS, Verdict, verdict, wait_ms};
use crate::notifications::{Kind, Notification};
use crate::room::{Webhook, WebhookFormat};

/// The most messages that wait for one receiver; beyond it the oldest is given up.
const MAX_PENDING: usize = 200;
/// Timeout of an attempt, in milliseconds.
const ATTEMPT_MS: u64 = 10_000;
/// Retry interval of a webhook that has lost its secret, in milliseconds.
const WITHOUT_SECRET_MS: u64 = 3_600_000;

/// A message to a webhook's receiver, to be sent once. What comes of it is the input
/// [`GlobalInput::Attempted`](super::GlobalInput::Attempted).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The number for the answer: used once in an object's life.
    pub number: u64,
    /// The webhook's name.
    pub webhook: String,
    /// How its receiver wants the body.
    pub format: WebhookFormat,
    /// What it is told. Every attempt has the notification's id.
    pub notification: NotificationRow,
    /// How many older messages have been given up since the last one that it got.
    pub dropped: u64,
    /// How many attempts in a row these are with this one.
    pub tries: u32,
    /// When it is signed, in milliseconds since the epoch.
    pub at: u64,
    /// It fails when it takes longer, in milliseconds.
    pub deadline_ms: u64,
}

/// What comes of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver answered.
    Answered {
        /// The status code.
        status: u16,
        /// For how long it wants to be left alone, in seconds; 0: it did not say.
        retry_after: u64,
    },
    /// It did not.
    Failed {
        /// Why, for operators.
        reason: String,
    },
}

/// A webhook that was ever to be sent something.
#[derive(Debug)]
struct Receiver {
    row: ReceiverRow,
    pending: VecDeque<PendingRow>,
    /// The message that is on its way.
    sending: Option<Sending>,
}

#[derive(Debug, Clone, Copy)]
struct Sending {
    attempt: u64,
    seq: u64,
    dropped: u64,
}

/// How it stands with a webhook, for operators.
#[derive(Serialize)]
pub(super) struct ShownWebhook {
    name: String,
    /// What is missing for anything to be sent.
    problem: Option<&'static str>,
    pending: usize,
    tries: u32,
    next_attempt_at: Option<u64>,
    last_success_at: Option<u64>,
    last_failure_at: Option<u64>,
    last_failure: Option<String>,
    dropped: u64,
    stopped_until: Option<u64>,
}

/// What the room's webhooks have yet to get, as it stands in the tables.
#[derive(Debug)]
pub(super) struct Deliveries {
    room: String,
    webhooks: Webhooks,
    /// The names of those whose address and secret are known.
    reachable: Vec<String>,
    receivers: Vec<Receiver>,
    last_seq: u64,
    random: u64,
}

impl Deliveries {
    pub(super) fn restore(
        room: &str,
        webhooks: Webhooks,
        reachable: Vec<String>,
        random: u64,
        rows: &dyn Rows,
    ) -> Kept<Self> {
        let receivers = rows.receivers()?.into_iter();
        let mut receivers: Vec<Receiver> =
            receivers.map(|row| Receiver { row, pending: VecDeque::new(), sending: None }).collect();
        let mut last_seq = 0;
        for pending in rows.pending()? {
            last_seq = last_seq.max(pending.seq);
            if let Some(receiver) = receivers.iter_mut().find(|known| known.row.name == pending.webhook) {
                receiver.pending.push_back(pending);
            }
        }
        Ok(Self { room: room.to_owned(), webhooks, reachable, receivers, last_seq, random })
    }

    /// Puts a notification in line for the webhooks that want it.
    pub(super) fn queue(&mut self, rows: &mut dyn Rows, notification: &Notification, now: u64) -> Kept<()> {
        for webhook in self.webhooks.iter().filter(|webhook| wants(webhook, &self.room, notification)) {
            if !self.reachable.contains(&webhook.name) {
                continue;
            }
            let known = self.receivers.iter().position(|receiver| receiver.row.name == webhook.name);
            let index = known.unwrap_or(self.receivers.len());
            if known.is_none() {
                let row = ReceiverRow { name: webhook.name.clone(), ..ReceiverRow::default() };
                rows.put_receiver(&row)?;
                self.receivers.push(Receiver { row, pending: VecDeque::new(), sending: None });
            }
            let Some(receiver) = self.receivers.get_mut(index) else { continue };
            if receiver.row.gone > 0 && now < receiver.row.gone + GONE_MS {
                continue;
            }
            self.last_seq += 1;
            let pending = PendingRow {
                seq: self.last_seq,
                webhook: webhook.name.clone(),
                at: notification.at,
                id: notification.id.clone(),
                queued: now,
            };
            rows.add_pending(&pending)?;
            receiver.pending.push_back(pending);
            let too_many = receiver.pending.len().saturating_sub(MAX_PENDING);
            receiver.give_up(rows, too_many)?;
        }
        Ok(())
    }

    /// When the next attempt that is not under way is due.
    pub(super) fn next_attempt(&self) -> Option<u64> {
        let idle = self.receivers.iter().filter(|receiver| receiver.is_idle());
        idle.map(|receiver| receiver.row.next).min()
    }

    /// A number from 0 to 1, of a sequence that begins at random.
    pub(super) fn draw(&mut self) -> f64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    }

    /// How it stands with the webhooks that are told of this room.
    pub(super) fn show(&self, now: u64) -> Vec<ShownWebhook> {
        let of_room = self.webhooks.iter().filter(|webhook| webhook.hears_of(&self.room));
        let none = ReceiverRow::default();
        let shown = of_room.map(|webhook| {
            let known = self.receivers.iter().find(|receiver| receiver.row.name == webhook.name);
            let row = known.map_or(&none, |receiver| &receiver.row);
            let pending = known.map_or(0, |receiver| receiver.pending.len());
            let maybe = |time: u64| (time > 0).then_some(time);
            let is_reachable = self.reachable.contains(&webhook.name);
            ShownWebhook {
                name: webhook.name.clone(),
                problem: (!is_reachable).then_some("no valid secret or url"),
                pending,
                tries: row.tries,
                next_attempt_at: maybe(row.next).filter(|_| pending > 0),
                last_success_at: maybe(row.succeeded),
                last_failure_at: maybe(row.failed),
                last_failure: (!row.reason.is_empty()).then(|| row.reason.clone()),
                dropped: row.dropped,
                stopped_until: maybe(row.gone).map(|gone| gone + GONE_MS).filter(|until| now < *until),
            }
        });
        shown.collect()
    }
}

impl Receiver {
    /// Whether something waits and nothing is on its way.
    fn is_idle(&self) -> bool {
        self.sending.is_none() && !self.pending.is_empty()
    }

    /// Gives up the oldest messages, and counts them.
    fn give_up(&mut self, rows: &mut dyn Rows, messages: usize) -> Kept<()> {
        if messages == 0 {
            return Ok(());
        }
        for given_up in self.pending.drain(..messages.min(self.pending.len())) {
            rows.delete_pending(given_up.seq)?;
            self.row.dropped += 1;
        }
        rows.put_receiver(&self.row)
    }

    /// The oldest message whose notification is still kept.
    fn first(&mut self, rows: &mut dyn Rows) -> Kept<Option<(u64, NotificationRow)>> {
        while let Some(first) = self.pending.front() {
            if let Some(notification) = rows.notification(first.at, &first.id)? {
                return Ok(Some((first.seq, notification)));
            }
            rows.delete_pending(first.seq)?;
            self.pending.pop_front();
        }
        Ok(None)
    }

    /// Takes in what came of an attempt. Returns whether it was delivered; else after how many seconds the receiver wants
    /// to be sent to again.
    fn attempted(
        &mut self,
        rows: &mut dyn Rows,
        sending: Sending,
        outcome: Outcome,
        now: u64,
    ) -> Kept<Result<(), u64>> {
        let (verdict, reason, retry_after) = match outcome {
            Outcome::Answered { status, retry_after } => {
                (verdict(status), format!("status {status}"), retry_after)
            }
            Outcome::Failed { reason } => (Verdict::Again, reason, 0),
        };
        if verdict == Verdict::Delivered {
            rows.delete_pending(sending.seq)?;
            self.pending.retain(|pending| pending.seq != sending.seq);
            let row = &mut self.row;
            (row.tries, row.next, row.succeeded, row.gone) = (0, 0, now, 0);
            row.dropped = row.dropped.saturating_sub(sending.dropped);
            rows.put_receiver(&self.row)?;
            return Ok(Ok(()));
        }
        if verdict == Verdict::Gone {
            self.give_up(rows, self.pending.len())?;
            self.row.gone = now;
        }
        (self.row.failed, self.row.reason) = (now, reason);
        Ok(Err(retry_after))
    }
}

impl Global {
    /// Sends what is due.
    pub(super) fn deliver(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) -> Kept<Option<u64>> {
        let due = |receiver: &&Receiver| receiver.is_idle() && receiver.row.next <= context.now;
        let receivers = self.deliveries.receivers.iter().filter(due);
        let names: Vec<String> = receivers.map(|receiver| receiver.row.name.clone()).collect();
        for name in names {
            self.send_first(context, &name, effects)?;
        }
        Ok(self.deliveries.next_attempt())
    }

    /// Sends a webhook the oldest of what it has pending.
    fn send_first(&mut self, context: &Context<'_>, name: &str, effects: &mut Vec<Effect>) -> Kept<()> {
        let (now, rows) = (context.now, self.rows.as_mut());
        let chance = self.deliveries.draw();
        let Deliveries { webhooks, reachable, receivers, .. } = &mut self.deliveries;
        let Some(format) = webhooks.get(name).map(|webhook| webhook.format) else {
            // It is no longer configured.
            rows.delete_receiver(name)?;
            receivers.retain(|receiver| receiver.row.name != name);
            return Ok(());
        };
        let Some(receiver) = receivers.iter_mut().find(|receiver| receiver.row.name == name) else {
            return Ok(());
        };
        let is_old = |pending: &&PendingRow| pending.queued + GIVE_UP_MS <= now;
        receiver.give_up(rows, receiver.pending.iter().take_while(is_old).count())?;
        let Some((seq, notification)) = receiver.first(rows)? else { return Ok(()) };
        if !reachable.iter().any(|known| known == name) {
            (receiver.row.tries, receiver.row.next) = (0, now + WITHOUT_SECRET_MS);
            return rows.put_receiver(&receiver.row);
        }
        let tries = receiver.row.tries + 1;
        (receiver.row.tries, receiver.row.next) = (tries, now + wait_ms(tries, 0, chance));
        rows.put_receiver(&receiver.row)?;
        self.plans.plan(Job::Deliver, receiver.row.next);
        self.calls += 1;
        let (number, dropped) = (self.calls, receiver.row.dropped);
        receiver.sending = Some(Sending { attempt: number, seq, dropped });
        effects.push(Effect::Global(GlobalEffect::Attempt(Box::new(Attempt {
            number,
            webhook: name.to_owned(),
            format,
            notification,
            dropped,
            tries,
            at: now,
            deadline_ms: ATTEMPT_MS,
        }))));
        Ok(())
    }

    /// An attempt has ended: what is pending follows at once after a success, and later after a failure.
    pub(super) fn attempted(
        &mut self,
        context: &Context<'_>,
        number: u64,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) -> Kept<()> {
        let (now, rows) = (context.now, self.rows.as_mut());
        let chance = self.deliveries.draw();
        let is_on_its_way =
            |receiver: &&mut Receiver| receiver.sending.is_some_and(|sending| sending.attempt == number);
        let Some(receiver) = self.deliveries.receivers.iter_mut().find(is_on_its_way) else { return Ok(()) };
        let Some(sending) = receiver.sending.take() else { return Ok(()) };
        match receiver.attempted(rows, sending, outcome, now)? {
            Ok(()) => {
                let name = receiver.row.name.clone();
                self.send_first(context, &name, effects)?;
            }
            Err(retry_after) => {
                receiver.row.next = now + wait_ms(receiver.row.tries, retry_after, chance);
                rows.put_receiver(&receiver.row)?;
            }
        }
        if let Some(next) = self.deliveries.next_attempt() {
            self.plans.plan(Job::Deliver, next.max(now));
        }
        Ok(())
    }
}

/// Whether a webhook is to be sent a notification of a room.
fn wants(webhook: &Webhook, room: &str, notification: &Notification) -> bool {
    let of_wait = matches!(notification.kind, Kind::WaitAbove | Kind::WaitBelow);
    let threshold = notification.data.get("threshold_minutes").and_then(serde_json::Value::as_u64);
    webhook.hears_of(room)
        && webhook.news.contains(&notification.kind)
        && (!of_wait || webhook.wait_minutes.map(u64::from) == threshold)
}
