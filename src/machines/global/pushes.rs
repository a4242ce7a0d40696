//! Push messages to visitors whose page is closed: who has asked for one, whose turn is near, and what comes of it.
//!
//! A visitor is told once. The next attempt is planned before a message leaves, so an object that vanishes meanwhile
//! sends it once more; the ticket's id goes along, by which a push service replaces what it has not delivered yet.

use std::collections::VecDeque;

use super::deliveries::Outcome;
use super::jobs::Job;
use super::rows::{Kept, Rows, SubscriptionRow};
use super::{Global, Refused};
use crate::machines::{Context, Effect, GlobalEffect};
use crate::notifications::delivery::wait_ms;
use crate::protocol::messages::{Subscribe, Subscribed, VERSION};
use crate::push::{NEAR_SECONDS, Subscription, is_near};
use crate::ticket::MAX_WAIT_MINUTES;
use crate::time::minute_of;

/// The most subscriptions of a room.
const MAX_SUBSCRIPTIONS: usize = 10_000;
/// Time between two looks at whose turn is near, in milliseconds.
const LOOK_MS: u64 = 5_000;
/// The most messages that leave at one look.
const MAX_AT_ONCE: usize = 100;
/// Nobody keeps a place for longer, and no subscription is either, in milliseconds.
const KEPT_MS: u64 = MAX_WAIT_MINUTES as u64 * 60_000;
/// Who has been told is taken to be on the way for this time, in milliseconds.
const ON_THE_WAY_MS: u64 = NEAR_SECONDS as u64 * 1_000;
/// After so many attempts a message is given up.
const MAX_TRIES: u32 = 6;
/// How long a push service keeps a message for a browser that is not running, in seconds.
const TTL_SECONDS: u32 = 3_600;
/// Timeout of an attempt, in milliseconds.
const ATTEMPT_MS: u64 = 10_000;

/// A push message, to be sent once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushAttempt {
    /// The number for the answer: used once in an object's life.
    pub number: u64,
    /// The ticket's id: the service keeps one message of it.
    pub id: u64,
    /// Through what the visitor is told.
    pub to: Subscription,
    /// The tag of the visitor's language.
    pub language: String,
    /// The address of the waiting page.
    pub url: String,
    /// How long the service keeps it, in seconds.
    pub ttl_seconds: u32,
    /// It fails when it takes longer, in milliseconds.
    pub deadline_ms: u64,
}

/// Who has asked, in the order in which turns come.
#[derive(Debug)]
pub(super) struct Pushes {
    /// The owner has keys. Without any, what is stored is deleted.
    is_on: bool,
    waiting: Vec<Subscriber>,
    /// Who was told lately, and when.
    told: VecDeque<(u64, u64)>,
}

/// What is known of a subscription without its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Subscriber {
    bucket: u32,
    since: u64,
    id: u64,
    tries: u32,
    /// When the next attempt is due; 0: when the turn is near.
    next: u64,
    /// The attempt that is under way.
    attempt: Option<u64>,
}

impl Pushes {
    pub(super) fn restore(is_on: bool, rows: &dyn Rows) -> Kept<Self> {
        let waiting = rows.subscribers()?.into_iter().map(
            |SubscriptionRow { id, bucket, since, tries, next, .. }| Subscriber {
                bucket,
                since,
                id,
                tries,
                next,
                attempt: None,
            },
        );
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable();
        Ok(Self { is_on, waiting, told: VecDeque::new() })
    }

    /// When to look next whose turn is near; `None`: nobody has asked. Not at once: after a start the colos report first.
    pub(super) fn next_look(&self, now: u64) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(now + LOOK_MS)
    }

    fn forget(&mut self, rows: &mut dyn Rows, id: u64) -> Kept<()> {
        rows.delete_subscription(id)?;
        self.waiting.retain(|subscriber| subscriber.id != id);
        Ok(())
    }
}

impl Global {
    /// A visitor wants to be told.
    pub(super) fn subscribe(&mut self, asked: Subscribe, now: u64) -> Result<Subscribed, Refused> {
        if !self.pushes.is_on {
            return Err(Refused { status: 404, reason: "there are no keys for push messages" });
        }
        let Subscribe { id, bucket, endpoint, p256dh, auth, language, url, .. } = asked;
        if self.pushes.told.iter().any(|(_, told)| *told == id) {
            // Has been told a moment ago: there is nothing more to say.
            return Ok(Subscribed { v: VERSION, kept: true });
        }
        let known = self.pushes.waiting.iter().position(|subscriber| subscriber.id == id);
        if known.is_none() && self.pushes.waiting.len() >= MAX_SUBSCRIPTIONS {
            return Ok(Subscribed { v: VERSION, kept: false });
        }
        let to = Subscription { endpoint, p256dh, auth };
        let row = SubscriptionRow { id, bucket, since: now, tries: 0, next: 0, to, language, url };
        self.rows.put_subscription(&row)?;
        if let Some(known) = known {
            self.pushes.waiting.remove(known);
        }
        let subscriber = Subscriber { bucket, since: now, id, tries: 0, next: 0, attempt: None };
        let place = self.pushes.waiting.partition_point(|other| *other < subscriber);
        self.pushes.waiting.insert(place, subscriber);
        self.plans.plan(Job::Push, now + LOOK_MS);
        Ok(Subscribed { v: VERSION, kept: true })
    }

    /// Sends messages to those whose turn is near. Returns when to look again.
    pub(super) fn push_to_visitors(
        &mut self,
        context: &Context<'_>,
        effects: &mut Vec<Effect>,
    ) -> Kept<Option<u64>> {
        let now = context.now;
        self.pushes.told.retain(|(at, _)| now < at + ON_THE_WAY_MS);
        let is_on = self.pushes.is_on;
        let is_old = |subscriber: &&Subscriber| !is_on || subscriber.since + KEPT_MS <= now;
        let old: Vec<u64> = self.pushes.waiting.iter().filter(is_old).map(|old| old.id).collect();
        for id in old {
            self.pushes.forget(self.rows.as_mut(), id)?;
        }
        for id in self.due(context) {
            self.send_push(id, now, effects)?;
        }
        Ok(self.pushes.next_look(now))
    }

    /// Whom to send a message now: whose attempt is to be repeated, and whose turn is near.
    fn due(&mut self, context: &Context<'_>) -> Vec<u64> {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let room = whole.at(now).0;
        let key = self.counts.state(room, None, minute_of(now), now);
        let (mut ids, mut is_turn) = (Vec::new(), true);
        let idle = self.pushes.waiting.iter().filter(|subscriber| subscriber.attempt.is_none());
        for Subscriber { bucket, id, next, .. } in idle {
            if ids.len() >= MAX_AT_ONCE {
                break;
            }
            if *next > 0 {
                if *next <= now {
                    ids.push(*id);
                }
            } else if is_turn {
                // Whoever stands behind somebody whose turn is not near is not near either.
                is_turn = is_near(room, &key, *bucket, self.pushes.told.len(), now);
                if is_turn {
                    ids.push(*id);
                    self.pushes.told.push_back((now, *id));
                }
            }
        }
        ids
    }

    fn send_push(&mut self, id: u64, now: u64, effects: &mut Vec<Effect>) -> Kept<()> {
        let chance = self.deliveries.draw();
        let Some(mut row) = self.rows.subscription(id)? else {
            return self.pushes.forget(self.rows.as_mut(), id);
        };
        row.tries += 1;
        // At least until this attempt has ended.
        row.next = now + ATTEMPT_MS + wait_ms(row.tries, 0, chance);
        self.rows.put_subscription(&row)?;
        self.calls += 1;
        let Some(subscriber) = self.pushes.waiting.iter_mut().find(|known| known.id == id) else {
            return Ok(());
        };
        (subscriber.tries, subscriber.next, subscriber.attempt) = (row.tries, row.next, Some(self.calls));
        let SubscriptionRow { to, language, url, .. } = row;
        effects.push(Effect::Global(GlobalEffect::Push(Box::new(PushAttempt {
            number: self.calls,
            id,
            to,
            language,
            url,
            ttl_seconds: TTL_SECONDS,
            deadline_ms: ATTEMPT_MS,
        }))));
        Ok(())
    }

    /// An attempt has ended: its subscription is deleted, unless the service may take the message later.
    pub(super) fn pushed(&mut self, number: u64, outcome: &Outcome, now: u64) -> Kept<()> {
        let chance = self.deliveries.draw();
        let mut waiting = self.pushes.waiting.iter_mut();
        let Some(subscriber) = waiting.find(|known| known.attempt == Some(number)) else { return Ok(()) };
        subscriber.attempt = None;
        let (may_be_repeated, retry_after) = match *outcome {
            Outcome::Answered { status, retry_after } => (status == 429 || status >= 500, retry_after),
            Outcome::Failed { .. } => (true, 0),
        };
        let Subscriber { id, tries, .. } = *subscriber;
        let row = self.rows.subscription(id)?.filter(|_| may_be_repeated && tries < MAX_TRIES);
        let Some(mut row) = row else { return self.pushes.forget(self.rows.as_mut(), id) };
        row.next = now + wait_ms(tries, retry_after, chance);
        subscriber.next = row.next;
        self.rows.put_subscription(&row)?;
        self.plans.plan(Job::Push, row.next);
        Ok(())
    }
}
