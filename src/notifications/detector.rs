//! Which notifications there are since the observation before.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::debounce::{Debounce, Delays, Transition};
use super::observation::Observation;
use super::{Kind, Notification};
use crate::room::{Limits, Phase, QueueingMethod, Room};
use crate::steering::AuditEntry;
use crate::time::rfc3339;

/// In a room whose minutes are full people wait for the next one; longer than that nobody waits by chance.
const QUEUE: Delays = Delays { begins_ms: 0, ends_ms: 90_000 };
/// Estimates go to and fro.
const WAIT: Delays = Delays { begins_ms: 10_000, ends_ms: 30_000 };
/// A wait is below its threshold when it is shorter than this part of it.
const BELOW: f64 = 0.8;
/// A check has tried several times before it speaks. One that changes its mind at once is believed when it says
/// "unhealthy".
const CHECK: Delays = Delays { begins_ms: 0, ends_ms: 30_000 };
/// What passes through the room is looked at anew every 15 seconds while nothing does.
const DOWN: Delays = Delays { begins_ms: 0, ends_ms: 60_000 };
/// Without admissions of its own a fallback may be in use all the same.
const FALLBACK: Delays = Delays { begins_ms: 0, ends_ms: 120_000 };
/// Reports of sessions that have ended are under way for a moment.
const EXCEEDED: Delays = Delays { begins_ms: 5_000, ends_ms: 60_000 };
/// A limit that has moved by this part of what is configured is told.
const LARGE_CHANGE: f64 = 0.2;
/// Time after which a smaller limit is in force everywhere, and all who came before are counted, in milliseconds.
const SHRINKS_MS: u64 = 30_000;
/// The shortest time between notifications of limits that follow the origin or are exceeded, in milliseconds.
const RARELY_MS: u64 = 60_000;
/// The part of a limit by which it may be exceeded untold, by what the slot strategy promises.
const MARGIN: f64 = 0.01;
/// The same for strategies without an exact promise.
const WIDE_MARGIN: f64 = 0.1;

/// An event that has begun, and how it was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Running {
    name: String,
    started: bool,
}

/// Limits as they were told last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    in_force: Limits,
    configured: Limits,
    steering: u64,
    /// When they were told, in milliseconds since the epoch; 0: never.
    at: u64,
}

/// How far a limit may be exceeded untold, and what was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Excess {
    /// The active users that have been allowed: a limit that shrinks sends nobody away.
    active: i64,
    exceeded: Debounce,
    /// A minute, and the new users that have been allowed in it.
    minute: u32,
    new_users: i64,
    /// Whether it has been told of this minute.
    minute_told: bool,
    /// When it was told last, in milliseconds since the epoch.
    at: u64,
    /// The limit of active users, and until when a smaller one takes to be known and kept everywhere.
    limit: i64,
    shrinks_until: u64,
}

/// Remembers what is known already. Serialisable; it goes on after a restart as if there had been none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Detector {
    /// Format version.
    pub v: u8,
    looked_at: u64,
    queueing: Debounce,
    /// Of the queue: the most who waited at a time, and their longest wait in seconds.
    most_waiting: i64,
    longest_wait: u64,
    /// By minutes.
    waits: Vec<(u32, Debounce)>,
    event: Option<Running>,
    checks: Vec<(String, Debounce)>,
    down: Debounce,
    told: Option<Told>,
    fallback: Debounce,
    excess: Excess,
}

impl Detector {
    /// Compares with the observation before. Returns the notifications in the order in which they are to be told, and whether what
    /// must survive a restart has changed.
    pub fn observe(&mut self, seen: &Observation<'_>) -> (Vec<Notification>, bool) {
        let before = self.kept();
        // Time does not run backwards, whatever clocks do.
        let seen = Observation { now: seen.now.max(self.looked_at), ..seen.clone() };
        let mut found = Found { seen: &seen, notifications: Vec::new() };
        let same_event = self.events(&mut found);
        self.origin(&mut found);
        self.limits(&mut found, same_event);
        self.queue(&mut found);
        self.waits(&mut found);
        self.fallback(&mut found);
        self.excess(&mut found);
        let notifications = found.notifications;
        self.looked_at = seen.now;
        let changed = !notifications.is_empty() || self.kept() != before;
        (notifications, changed)
    }

    /// When to look again though nothing is reported: something seems to be over, or to begin. In milliseconds since the
    /// epoch.
    pub fn look_again_at(&self) -> Option<u64> {
        let waits = self.waits.iter().map(|(_, debounce)| (*debounce, WAIT));
        let checks = self.checks.iter().map(|(_, debounce)| (*debounce, CHECK));
        let others = [
            (self.queueing, QUEUE),
            (self.down, DOWN),
            (self.fallback, FALLBACK),
            (self.excess.exceeded, EXCEEDED),
        ];
        let turns =
            waits.chain(checks).chain(others).filter_map(|(debounce, delays)| debounce.turns_at(delays));
        // A queue that nobody reports any more empties by itself.
        let lasts = [self.queueing, self.fallback, self.down].iter().any(|debounce| debounce.lasts());
        turns.chain(lasts.then_some(self.looked_at + RARELY_MS)).min()
    }

    /// What a restart must not lose; the rest of it is only said along with the next notification.
    fn kept(&self) -> Self {
        Self {
            looked_at: 0,
            most_waiting: 0,
            longest_wait: 0,
            excess: Excess { active: 0, minute: 0, new_users: 0, limit: 0, shrinks_until: 0, ..self.excess },
            ..self.clone()
        }
    }

    /// Returns whether the event is the one of before, at the same stage.
    fn events(&mut self, found: &mut Found<'_>) -> bool {
        let seen = found.seen;
        let stage = match seen.phase {
            Phase::None => None,
            Phase::Prequeue { event, .. } => Some((event, false)),
            Phase::Active { event, .. } => Some((event, true)),
        };
        let now = stage.map(|(event, started)| Running { name: event.name.clone(), started });
        if now == self.event {
            return true;
        }
        let before = std::mem::replace(&mut self.event, now);
        let earlier = |known: u64| known.min(seen.now);
        if let Some(before) =
            before.as_ref().filter(|before| stage.is_none_or(|(event, _)| event.name != before.name))
        {
            let name = &before.name;
            let known = seen.room.events.iter().find(|event| event.name == *name).map(|event| event.end);
            let at = earlier(known.unwrap_or(seen.now));
            let more = [("event", name.as_str().into()), ("called_off", (!before.started).into())];
            found.add(Kind::EventEnded, name, at, &more);
        }
        let Some((event, started)) = stage else { return false };
        let name = &event.name;
        let more = [
            ("event", name.as_str().into()),
            ("event_start_time", rfc3339(event.start).into()),
            ("event_end_time", rfc3339(event.end).into()),
        ];
        if started {
            found.add(Kind::EventStarted, name, earlier(event.start), &more);
        } else if before.is_none_or(|before| before.name != *name) {
            found.add(Kind::EventPrequeueStarted, name, earlier(event.begin()), &more);
        }
        false
    }

    fn origin(&mut self, found: &mut Found<'_>) {
        let seen = found.seen;
        for (name, since) in &seen.origin.unhealthy {
            if !self.checks.iter().any(|(known, _)| known == name) {
                self.checks.push((name.clone(), Debounce::default()));
            }
            let known = self.checks.iter_mut().find(|(known, _)| known == name);
            if let Some((_, debounce)) = known
                && debounce.update(true, CHECK, seen.now).is_some()
            {
                found.about_origin(Kind::OriginUnhealthy, name, (*since).min(seen.now), seen.now);
            }
        }
        for (name, debounce) in &mut self.checks {
            if seen.origin.unhealthy.iter().any(|(unhealthy, _)| unhealthy == name) {
                continue;
            }
            if let Some(Transition::Ended(since)) = debounce.update(false, CHECK, seen.now) {
                found.about_origin(Kind::OriginHealthy, name, seen.now, since);
            }
        }
        self.checks.retain(|(_, debounce)| debounce.lasts());
        match self.down.update(seen.origin.down, DOWN, seen.now) {
            Some(Transition::Begun) => found.about_origin(Kind::OriginUnhealthy, "", seen.now, seen.now),
            Some(Transition::Ended(since)) => found.about_origin(Kind::OriginHealthy, "", seen.now, since),
            None => {}
        }
    }

    fn limits(&mut self, found: &mut Found<'_>, same_event: bool) {
        let seen = found.seen;
        let (in_force, configured) = (seen.limits(), seen.room.limits());
        let now = Told { in_force, configured, steering: seen.steering, at: 0 };
        let Some(told) = self.told else {
            self.told = Some(now);
            return;
        };
        if told.steering != seen.steering || !same_event {
            // That is a notification of its own.
            self.told = Some(Told { at: told.at, ..now });
            return;
        }
        let by_owner = told.configured != configured;
        let moved = is_large(seen.room, told.in_force, in_force) && seen.now >= told.at + RARELY_MS;
        if !by_owner && !moved {
            return;
        }
        self.told = Some(Told { at: seen.now, ..now });
        if told.in_force == in_force {
            return;
        }
        let more = [
            ("total_active_users_before", told.in_force.total_active_users.into()),
            ("new_users_per_minute_before", told.in_force.new_users_per_minute.into()),
            ("by", (if by_owner { "deploy" } else { "origin" }).into()),
        ];
        found.add(Kind::LimitsChanged, "", seen.now, &more);
    }

    fn queue(&mut self, found: &mut Found<'_>) {
        let seen = found.seen;
        let turn = self.queueing.update(
            seen.is_queueing() || self.queueing.lasts() && seen.present > 0,
            QUEUE,
            seen.now,
        );
        if turn == Some(Transition::Begun) {
            (self.most_waiting, self.longest_wait) = (0, 0);
            found.add(Kind::QueueingStarted, "", seen.now, &[("why", why_they_wait(seen).into())]);
        }
        self.most_waiting = self.most_waiting.max(seen.waiting);
        self.longest_wait = self.longest_wait.max(seen.wait_seconds.unwrap_or(0));
        if let Some(Transition::Ended(since)) = turn {
            let more = [
                ("lasted_seconds", seconds(since, seen.now)),
                ("most_waiting_users", self.most_waiting.into()),
                ("longest_wait_seconds", self.longest_wait.into()),
            ];
            found.add(Kind::QueueingEnded, "", seen.now, &more);
        }
    }

    fn waits(&mut self, found: &mut Found<'_>) {
        let seen = found.seen;
        self.waits.retain(|(minutes, _)| seen.thresholds.contains(minutes));
        for minutes in seen.thresholds {
            if !self.waits.iter().any(|(known, _)| known == minutes) {
                self.waits.push((*minutes, Debounce::default()));
            }
        }
        let Some(wait) = seen.wait_seconds else {
            self.waits.iter_mut().for_each(|(_, debounce)| debounce.interrupt());
            return;
        };
        for (minutes, debounce) in &mut self.waits {
            let threshold = u64::from(*minutes) * 60;
            let part = if debounce.lasts() { BELOW } else { 1.0 };
            let kind = match debounce.update(wait as f64 >= threshold as f64 * part, WAIT, seen.now) {
                Some(Transition::Begun) => Kind::WaitAbove,
                Some(Transition::Ended(_)) => Kind::WaitBelow,
                None => continue,
            };
            found.add(kind, &minutes.to_string(), seen.now, &[("threshold_minutes", (*minutes).into())]);
        }
    }

    fn fallback(&mut self, found: &mut Found<'_>) {
        let seen = found.seen;
        let (kind, since) = match self.fallback.update(seen.fallbacks > 0, FALLBACK, seen.now) {
            Some(Transition::Begun) => (Kind::FallbackInUse, seen.now),
            Some(Transition::Ended(since)) => (Kind::FallbackEnded, since),
            None => return,
        };
        let more = [("fallbacks", seen.fallbacks.into()), ("lasted_seconds", seconds(since, seen.now))];
        found.add(kind, "", seen.now, &more);
    }

    fn excess(&mut self, found: &mut Found<'_>) {
        let seen = found.seen;
        let limits = seen.limits();
        let (active, new_users) =
            (i64::from(limits.total_active_users), i64::from(limits.new_users_per_minute));
        let excess = &mut self.excess;
        if excess.minute != seen.minute {
            (excess.minute, excess.new_users, excess.minute_told) = (seen.minute, new_users, false);
        }
        excess.new_users = excess.new_users.max(new_users);
        if active < excess.limit {
            excess.shrinks_until = seen.now + SHRINKS_MS;
        }
        excess.limit = active;
        // Whoever was inside when a limit shrank may stay, and who came until it was known everywhere.
        if active >= excess.active {
            excess.active = active;
        }
        let over = |users: i64, allowed: i64| users > allowed + margin(seen.room, allowed);
        let too_many = over(seen.active, excess.active);
        if !too_many && seen.now >= excess.shrinks_until {
            excess.active = excess.active.min(seen.active).max(active);
        }
        let began = excess.exceeded.update(too_many, EXCEEDED, seen.now) == Some(Transition::Begun);
        let fast = over(seen.new_users, excess.new_users) && !excess.minute_told;
        if !began && !fast || excess.at > 0 && seen.now < excess.at + RARELY_MS {
            return;
        }
        excess.at = seen.now;
        excess.minute_told |= fast;
        let (about, users, limit) = if began {
            ("total_active_users", seen.active, active)
        } else {
            ("new_users_per_minute", seen.new_users, new_users)
        };
        let passthrough = seen.room.queueing_method == QueueingMethod::Passthrough;
        let more = [
            ("limit", about.into()),
            ("users", users.into()),
            ("more_than_limit", (users - limit).into()),
            ("passthrough", passthrough.into()),
        ];
        found.add(Kind::LimitExceeded, about, seen.now, &more);
    }
}

/// What one observation finds.
struct Found<'a> {
    seen: &'a Observation<'a>,
    notifications: Vec<Notification>,
}

impl Found<'_> {
    fn add(&mut self, kind: Kind, about: &str, at: u64, more: &[(&str, Value)]) {
        let mut data = self.seen.figures();
        data.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.notifications.push(Notification::new(self.seen.room, kind, about, at, data));
    }

    /// `check` is empty when no check has said it.
    fn about_origin(&mut self, kind: Kind, check: &str, at: u64, since: u64) {
        let name = if check.is_empty() { Value::Null } else { check.into() };
        let lasted = seconds(since, self.seen.now);
        let held = self.seen.origin.held.into();
        self.add(kind, check, at, &[("check", name), ("held", held), ("lasted_seconds", lasted)]);
    }
}

/// The notification that somebody has steered the room: what the audit log says of it, at least one entry. `version` is
/// that of the steering with these changes.
pub fn steered(room: &Room, log: &[AuditEntry], version: u32) -> Notification {
    let (by, at) = log.first().map_or(("", 0), |entry| (entry.by.as_str(), entry.at));
    let mut data = Map::new();
    data.insert("by".to_owned(), by.into());
    data.insert("version".to_owned(), version.into());
    data.insert("changes".to_owned(), serde_json::to_value(log).unwrap_or_default());
    Notification::new(room, Kind::Steered, &version.to_string(), at, data)
}

/// Whether a limit has moved far, or to one of its ends.
fn is_large(room: &Room, before: Limits, now: Limits) -> bool {
    let range = room.adaptive;
    let of = |before: u32, now: u32, most: u32, least: Option<u32>| {
        let far = f64::from(before.abs_diff(now)) >= LARGE_CHANGE * f64::from(most);
        far || before != now && (now == most || Some(now) == least)
    };
    of(
        before.total_active_users,
        now.total_active_users,
        room.total_active_users,
        range.map(|range| range.least_active_users),
    ) || of(
        before.new_users_per_minute,
        now.new_users_per_minute,
        room.new_users_per_minute,
        range.map(|range| range.least_new_users),
    )
}

/// How many users more than a limit are not told.
fn margin(room: &Room, limit: i64) -> i64 {
    let part = if room.slot_strategy.counts_alone() { WIDE_MARGIN } else { MARGIN };
    (limit as f64 * part) as i64
}

fn why_they_wait(seen: &Observation<'_>) -> &'static str {
    if seen.room.prequeue {
        "event"
    } else if seen.room.queue_all {
        "queue_all"
    } else if seen.origin.held {
        "origin"
    } else {
        "limits"
    }
}

/// How many seconds have gone by.
fn seconds(since: u64, now: u64) -> Value {
    (now.saturating_sub(since) / 1_000).into()
}
