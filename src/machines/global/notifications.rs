//! The room's notifications: found, and kept for a month.
//!
//! A notification, the messages that must be sent because of it, and the detector that found it are written together: all
//! of it is in storage, or nothing.

use serde::Serialize;

use super::deliveries::ShownWebhook;
use super::jobs::Job;
use super::rows::{Kept, NotificationRow};
use super::{Global, operator_answer};
use crate::admission::{StateKey, minute_of};
use crate::machines::{Context, Effect};
use crate::notifications::{Detector, Kind, Notification, Observation};
use crate::protocol::messages::OperatorAnswer;
use crate::protocol::records;
use crate::time::milliseconds;

/// The shortest time between two looks for notifications, in milliseconds.
const LOOK_MS: u64 = 1_000;
/// Where reports come in, they are looked for with these: the alarm leaves it to them for this time, in milliseconds.
const REPORTED_MS: u64 = 5_000;
/// How long they are kept, in milliseconds, and how many of them.
const KEPT_MS: u64 = 30 * 86_400_000;
const MAX_KEPT: u64 = 5_000;
/// The most that are answered at once.
const MAX_SHOWN: u64 = 1_000;

/// Makes words of a notification: of its kind's name and its data, as JSON. The Worker's wasm has none, they would make
/// every cold start slower.
pub type Words = fn(&str, &str) -> String;

/// Looks for notifications.
#[derive(Debug)]
pub(super) struct Lookout {
    pub(super) detector: Detector,
    /// What is stored of it was not written by newer code.
    pub(super) stores_detector: bool,
    /// Waits that somebody wants a notification of, in minutes.
    pub(super) thresholds: Vec<u32>,
    /// When it looked last, in milliseconds since the epoch.
    pub(super) looked_at: u64,
    pub(super) words: Words,
}

#[derive(Serialize)]
struct Shown<'a> {
    room: &'a str,
    news: Vec<Notification>,
    webhooks: Vec<ShownWebhook>,
}

impl Global {
    /// Whether it is time to look for notifications.
    pub(super) fn looks_now(&self, now: u64) -> bool {
        now >= self.lookout.looked_at + LOOK_MS
    }

    /// Looks for notifications now.
    pub(super) fn look_for_notifications(
        &mut self,
        context: &Context<'_>,
        effects: &mut Vec<Effect>,
    ) -> Kept<()> {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let key = self.counts.state(whole.at(now).0, None, minute_of(now), now);
        self.find_notifications(context, &key, effects)
    }

    /// Looks for notifications in a state that has just been made.
    pub(super) fn find_notifications(
        &mut self,
        context: &Context<'_>,
        key: &StateKey,
        effects: &mut Vec<Effect>,
    ) -> Kept<()> {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.counts.overrides());
        if let Some(change) = whole.next_change(now) {
            // An event is a notification though nobody is there.
            self.plans.plan(Job::Notify, change);
        }
        let (room, phase) = whole.at(now);
        let mut seen = Observation::of(room, phase, key, self.counts.origin_observation(room), now);
        seen.steering = self.counts.overrides().version.into();
        seen.thresholds = &self.lookout.thresholds;
        self.lookout.looked_at = now;
        let (mut notifications, changed) = self.lookout.detector.observe(&seen);
        if let Some(again) = self.lookout.detector.look_again_at() {
            self.plans.plan(Job::Notify, again);
        }
        if changed {
            self.keep_notifications(&mut notifications, now)?;
        }
        self.broadcast(&notifications, now, effects);
        Ok(())
    }

    /// Looks for notifications though nothing is reported: a queue that is forgotten is over too. Returns when to look
    /// again.
    pub(super) fn look_without_reports(
        &mut self,
        context: &Context<'_>,
        effects: &mut Vec<Effect>,
    ) -> Kept<Option<u64>> {
        let due = self.lookout.looked_at + REPORTED_MS;
        if context.now < due {
            return Ok(Some(due));
        }
        self.look_for_notifications(context, effects)?;
        Ok(None)
    }

    /// Writes down notifications, whom they are to be sent to, and the detector.
    pub(super) fn keep_notifications(&mut self, notifications: &mut [Notification], now: u64) -> Kept<()> {
        if let Ok(detector) = records::write(&self.lookout.detector)
            && self.lookout.stores_detector
        {
            self.rows.put_detector(&detector)?;
        }
        if notifications.is_empty() {
            return Ok(());
        }
        for one in notifications {
            let data = serde_json::to_string(&one.data).unwrap_or_default();
            one.text = (self.lookout.words)(one.kind.name(), &data);
            let row = NotificationRow {
                at: one.at,
                id: one.id.clone(),
                kind: one.kind.name().to_owned(),
                text: one.text.clone(),
                data,
            };
            if self.rows.add_notification(&row)? {
                self.deliveries.queue(self.rows.as_mut(), one, now)?;
            }
        }
        self.plans.plan(Job::Deliver, now);
        self.rows.delete_notifications(now.saturating_sub(KEPT_MS), MAX_KEPT)
    }

    /// The notifications that a query asks for, oldest first, and how it stands with the webhooks.
    pub(super) fn show_notifications(&self, context: &Context<'_>, query: &str) -> Kept<OperatorAnswer> {
        let (from, to) = match (time_of(query, "from"), time_of(query, "to")) {
            (Ok(from), Ok(to)) => (from.unwrap_or(0), to.unwrap_or(LATEST_MS)),
            (Err(error), _) | (_, Err(error)) => {
                return Ok(operator_answer(400, serde_json::json!({ "error": error }).to_string()));
            }
        };
        // The newest of them, where there are too many.
        let rows = self.rows.notifications(from, to, MAX_SHOWN)?;
        let shown = Shown {
            room: &context.room.name,
            news: rows.into_iter().rev().filter_map(read).collect(),
            webhooks: self.deliveries.show(context.now),
        };
        Ok(operator_answer(200, serde_json::to_string(&shown).unwrap_or_default()))
    }
}

/// A time that is later than all, in milliseconds since the epoch.
const LATEST_MS: u64 = (1 << 53) - 1;

/// A time in a query, in milliseconds since the epoch.
fn time_of(query: &str, name: &str) -> Result<Option<u64>, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let Some((_, text)) = pairs.into_iter().find(|(key, _)| *key == name) else { return Ok(None) };
    let text = decoded(text);
    let time = text.parse().ok().or_else(|| milliseconds(&text)).filter(|time| *time <= LATEST_MS);
    time.map(Some).ok_or_else(|| {
        format!("{name} must be milliseconds since the epoch, or a time such as 2026-11-27T09:00:00Z")
    })
}

/// A value of a query, without its escapes: a time has only characters of ASCII.
fn decoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        let code = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        text.push(code.map_or('%', char::from));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    text.push_str(rest);
    text
}

/// A notification as it was stored.
fn read(row: NotificationRow) -> Option<Notification> {
    Some(Notification {
        at: row.at,
        kind: Kind::named(&row.kind)?,
        text: row.text,
        data: serde_json::from_str(&row.data).ok()?,
        id: row.id,
    })
}
