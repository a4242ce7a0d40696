//! What is new since the look before.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::look::Look;
use super::spell::{Patience, Spell, Turn};
use super::{Kind, News};
use crate::config::{Limits, Phase, QueueingMethod, Room, SlotStrategy, rfc3339};
use crate::steering::AuditEntry;

/// In a room whose minutes are full people wait for the next one; longer than that nobody waits by chance.
const QUEUE: Patience = Patience { begins_ms: 0, ends_ms: 90_000 };
/// Estimates go to and fro.
const WAIT: Patience = Patience { begins_ms: 10_000, ends_ms: 30_000 };
/// A wait is below its threshold when it is shorter than this part of it.
const BELOW: f64 = 0.8;
/// A check has tried several times before it speaks; one that changes its mind in no time is believed the bad news.
const CHECK: Patience = Patience { begins_ms: 0, ends_ms: 30_000 };
/// What passes through the room is looked at anew every 15 seconds while nothing does.
const DOWN: Patience = Patience { begins_ms: 0, ends_ms: 60_000 };
/// Without admissions of its own a fallback may be in use all the same.
const FALLBACK: Patience = Patience { begins_ms: 0, ends_ms: 120_000 };
/// Reports of sessions that have ended are under way for a moment.
const EXCEEDED: Patience = Patience { begins_ms: 5_000, ends_ms: 60_000 };
/// A change of a limit by so large a part of what is configured is news.
const LARGE_CHANGE: f64 = 0.2;
/// Limits that follow the origin, and limits that are exceeded, are news once in so long, in milliseconds.
const RARELY_MS: u64 = 60_000;
/// The part of a limit that is no news, by what the slot strategy promises.
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
    /// When they were news, in milliseconds since the epoch; 0: never.
    at: u64,
}

/// How many more than a limit are no news, and what was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Excess {
    /// The active users that have been allowed: a limit that shrinks sends nobody away.
    active: i64,
    exceeded: Spell,
    /// A minute, and the new users that have been allowed in it.
    minute: u32,
    new_users: i64,
    /// Whether it has been told of this minute.
    minute_told: bool,
    /// When it was told last, in milliseconds since the epoch.
    at: u64,
}

/// Remembers what is known already. Serialisable; it goes on after a restart as if there had been none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Watch {
    /// Format version.
    pub v: u8,
    looked_at: u64,
    queueing: Spell,
    /// Of the queue: the most who waited at a time, and their longest wait in seconds.
    most_waiting: i64,
    longest_wait: u64,
    /// By minutes.
    waits: Vec<(u32, Spell)>,
    event: Option<Running>,
    checks: Vec<(String, Spell)>,
    down: Spell,
    told: Option<Told>,
    fallback: Spell,
    excess: Excess,
}

impl Watch {
    /// Looks. What is new, in the order in which it is to be told, and whether what must survive a restart has changed.
    pub fn look(&mut self, look: &Look<'_>) -> (Vec<News>, bool) {
        let before = self.kept();
        // Time does not run backwards, whatever clocks do.
        let look = Look { now: look.now.max(self.looked_at), ..look.clone() };
        let mut found = Found { look: &look, figures: look.figures(), news: Vec::new() };
        let same_event = self.events(&mut found);
        self.origin(&mut found);
        self.limits(&mut found, same_event);
        self.queue(&mut found);
        self.waits(&mut found);
        self.fallback(&mut found);
        self.excess(&mut found);
        let news = found.news;
        self.looked_at = look.now;
        let changed = !news.is_empty() || self.kept() != before;
        (news, changed)
    }

    /// When to look again though nothing is reported: something seems to be over, or to begin. In milliseconds since the
    /// epoch.
    pub fn look_again_at(&self) -> Option<u64> {
        let waits = self.waits.iter().map(|(_, spell)| (*spell, WAIT));
        let checks = self.checks.iter().map(|(_, spell)| (*spell, CHECK));
        let others = [
            (self.queueing, QUEUE),
            (self.down, DOWN),
            (self.fallback, FALLBACK),
            (self.excess.exceeded, EXCEEDED),
        ];
        let turns =
            waits.chain(checks).chain(others).filter_map(|(spell, patience)| spell.turns_at(patience));
        // A queue that nobody reports of any more melts by itself.
        let lasts = [self.queueing, self.fallback, self.down].iter().any(|spell| spell.lasts());
        turns.chain(lasts.then_some(self.looked_at + RARELY_MS)).min()
    }

    /// What a restart must not lose; the rest of it is only said along with the next news.
    fn kept(&self) -> Self {
        Self {
            looked_at: 0,
            most_waiting: 0,
            longest_wait: 0,
            excess: Excess { active: 0, minute: 0, new_users: 0, ..self.excess },
            ..self.clone()
        }
    }

    /// Returns whether the event is the one of before, at the same stage.
    fn events(&mut self, found: &mut Found<'_>) -> bool {
        let look = found.look;
        let stage = match look.phase {
            Phase::None => None,
            Phase::Prequeue { event, .. } => Some((event, false)),
            Phase::Active { event, .. } => Some((event, true)),
        };
        let now = stage.map(|(event, started)| Running { name: event.name.clone(), started });
        if now == self.event {
            return true;
        }
        let before = std::mem::replace(&mut self.event, now);
        let earlier = |known: u64| known.min(look.now);
        if let Some(before) =
            before.as_ref().filter(|before| stage.is_none_or(|(event, _)| event.name != before.name))
        {
            let name = &before.name;
            let known = look.room.events.iter().find(|event| event.name == *name).map(|event| event.end);
            let says = if before.started {
                format!("event {name} is over.")
            } else {
                format!("event {name} was called off before its start.")
            };
            let at = earlier(known.unwrap_or(look.now));
            found.about_event(Kind::EventEnded, name, at, &says, &[]);
        }
        let Some((event, started)) = stage else { return false };
        let name = &event.name;
        let (starts, ends) = (rfc3339(event.start), rfc3339(event.end));
        let times = [("event_start_time", starts.as_str()), ("event_end_time", ends.as_str())];
        if started {
            let limits = look.limits();
            let says =
                format!("event {name} has started. It ends at {ends}. The limits are {}.", in_words(limits));
            found.about_event(Kind::EventStarted, name, earlier(event.start), &says, &times);
        } else if before.is_none_or(|before| before.name != *name) {
            let says = format!("the prequeue of event {name} has begun. The event starts at {starts}.");
            found.about_event(Kind::EventPrequeueStarted, name, earlier(event.begin()), &says, &times);
        }
        false
    }

    fn origin(&mut self, found: &mut Found<'_>) {
        let look = found.look;
        let wait =
            if look.origin.held { "New users wait until it is healthy." } else { "New users enter as ever." };
        for (name, since) in &look.origin.unhealthy {
            if !self.checks.iter().any(|(known, _)| known == name) {
                self.checks.push((name.clone(), Spell::default()));
            }
            let known = self.checks.iter_mut().find(|(known, _)| known == name);
            if let Some((_, spell)) = known
                && spell.look(true, CHECK, look.now).is_some()
            {
                let says = format!("check {name} says that the origin is unhealthy. {wait}");
                found.about_origin(Kind::OriginUnhealthy, name, (*since).min(look.now), &says);
            }
        }
        for (name, spell) in &mut self.checks {
            if look.origin.unhealthy.iter().any(|(unhealthy, _)| unhealthy == name) {
                continue;
            }
            if let Some(Turn::Ended(since)) = spell.look(false, CHECK, look.now) {
                let lasted = duration(look.now - since);
                let says = format!("check {name} says that the origin is healthy again, after {lasted}.");
                found.about_origin(Kind::OriginHealthy, name, look.now, &says);
            }
        }
        self.checks.retain(|(_, spell)| spell.lasts());
        match self.down.look(look.origin.down, DOWN, look.now) {
            Some(Turn::Begun) => {
                let says = format!("nearly all requests to the origin fail. {wait}");
                found.about_origin(Kind::OriginUnhealthy, "", look.now, &says);
            }
            Some(Turn::Ended(since)) => {
                let lasted = duration(look.now - since);
                let says = format!("requests to the origin are answered again, after {lasted}.");
                found.about_origin(Kind::OriginHealthy, "", look.now, &says);
            }
            None => {}
        }
    }

    fn limits(&mut self, found: &mut Found<'_>, same_event: bool) {
        let look = found.look;
        let (in_force, configured) = (look.limits(), look.room.limits());
        let now = Told { in_force, configured, steering: look.steering, at: 0 };
        let Some(told) = self.told else {
            self.told = Some(now);
            return;
        };
        if told.steering != look.steering || !same_event {
            // That is news of its own.
            self.told = Some(Told { at: told.at, ..now });
            return;
        }
        let by_owner = told.configured != configured;
        let moved = is_large(look.room, told.in_force, in_force) && look.now >= told.at + RARELY_MS;
        if !by_owner && !moved {
            return;
        }
        self.told = Some(Told { at: look.now, ..now });
        if told.in_force == in_force {
            return;
        }
        let why = if by_owner { "by a deploy" } else { "they follow the origin" };
        let says = format!(
            "the limits in force changed to {} ({why}); before: {}.",
            in_words(in_force),
            in_words(told.in_force)
        );
        let more = [
            ("total_active_users_before", told.in_force.total_active_users.into()),
            ("new_users_per_minute_before", told.in_force.new_users_per_minute.into()),
            ("by", (if by_owner { "deploy" } else { "origin" }).into()),
        ];
        found.add(Kind::LimitsChanged, "", look.now, &says, more);
    }

    fn queue(&mut self, found: &mut Found<'_>) {
        let look = found.look;
        let turn = self.queueing.look(
            look.is_queueing() || self.queueing.lasts() && look.present > 0,
            QUEUE,
            look.now,
        );
        if turn == Some(Turn::Begun) {
            (self.most_waiting, self.longest_wait) = (0, 0);
            let says = format!("visitors are waiting. {}", why_they_wait(look));
            found.add(Kind::QueueingStarted, "", look.now, &says, []);
        }
        self.most_waiting = self.most_waiting.max(look.waiting);
        self.longest_wait = self.longest_wait.max(look.wait_seconds.unwrap_or(0));
        if let Some(Turn::Ended(since)) = turn {
            let (most, lasted) = (self.most_waiting, duration(look.now - since));
            let says =
                format!("nobody waits any more. Visitors waited for {lasted}, up to {most} at a time.");
            let more = [
                ("lasted_seconds", ((look.now - since) / 1_000).into()),
                ("most_waiting_users", most.into()),
                ("longest_wait_seconds", self.longest_wait.into()),
            ];
            found.add(Kind::QueueingEnded, "", look.now, &says, more);
        }
    }

    fn waits(&mut self, found: &mut Found<'_>) {
        let look = found.look;
        self.waits.retain(|(minutes, _)| look.thresholds.contains(minutes));
        for minutes in look.thresholds {
            if !self.waits.iter().any(|(known, _)| known == minutes) {
                self.waits.push((*minutes, Spell::default()));
            }
        }
        let Some(wait) = look.wait_seconds else {
            self.waits.iter_mut().for_each(|(_, spell)| spell.look_away());
            return;
        };
        for (minutes, spell) in &mut self.waits {
            let threshold = u64::from(*minutes) * 60;
            let part = if spell.lasts() { BELOW } else { 1.0 };
            let more = [("threshold_minutes", (*minutes).into())];
            let about = minutes.to_string();
            match spell.look(wait as f64 >= threshold as f64 * part, WAIT, look.now) {
                Some(Turn::Begun) => {
                    let says = format!(
                        "the estimated wait is {}, more than {}. {} are waiting.",
                        duration(wait * 1_000),
                        duration(threshold * 1_000),
                        count(look.waiting, "visitor", "visitors"),
                    );
                    found.add(Kind::WaitAbove, &about, look.now, &says, more);
                }
                Some(Turn::Ended(_)) => {
                    let says =
                        format!("the estimated wait is less than {} again.", duration(threshold * 1_000));
                    found.add(Kind::WaitBelow, &about, look.now, &says, more);
                }
                None => {}
            }
        }
    }

    fn fallback(&mut self, found: &mut Found<'_>) {
        let look = found.look;
        let more = [("fallbacks", look.fallbacks.into())];
        match self.fallback.look(look.fallbacks > 0, FALLBACK, look.now) {
            Some(Turn::Begun) => {
                let says = "objects do not answer in time. New users enter by what was known last, and the limits are \
                            kept approximately.";
                found.add(Kind::FallbackInUse, "", look.now, says, more);
            }
            Some(Turn::Ended(since)) => {
                let says = format!("objects answer in time again, after {}.", duration(look.now - since));
                found.add(Kind::FallbackEnded, "", look.now, &says, more);
            }
            None => {}
        }
    }

    fn excess(&mut self, found: &mut Found<'_>) {
        let look = found.look;
        let limits = look.limits();
        let (active, new_users) =
            (i64::from(limits.total_active_users), i64::from(limits.new_users_per_minute));
        let excess = &mut self.excess;
        if excess.minute != look.minute {
            (excess.minute, excess.new_users, excess.minute_told) = (look.minute, new_users, false);
        }
        excess.new_users = excess.new_users.max(new_users);
        // Whoever was inside when a limit shrank may stay.
        if active >= excess.active {
            excess.active = active;
        }
        let over = |users: i64, allowed: i64| users > allowed + margin(look.room, allowed);
        let too_many = over(look.active, excess.active);
        if !too_many {
            excess.active = excess.active.min(look.active).max(active);
        }
        let began = excess.exceeded.look(too_many, EXCEEDED, look.now) == Some(Turn::Begun);
        let fast = over(look.new_users, excess.new_users) && !excess.minute_told;
        if !began && !fast || excess.at > 0 && look.now < excess.at + RARELY_MS {
            return;
        }
        excess.at = look.now;
        excess.minute_told |= fast;
        let (about, users, limit, are) = if began {
            ("total_active_users", look.active, active, "users are active")
        } else {
            ("new_users_per_minute", look.new_users, new_users, "new users entered in a minute")
        };
        let more_than = users - limit;
        let why = match look.room.queueing_method {
            QueueingMethod::Passthrough => " The room lets everybody in (queueing_method = \"passthrough\").",
            _ => "",
        };
        let says = format!("{users} {are}, {more_than} more than the limit of {limit}.{why}");
        let more = [("limit", about.into()), ("users", users.into()), ("more_than_limit", more_than.into())];
        found.add(Kind::LimitExceeded, about, look.now, &says, more);
    }
}

/// What one look finds.
struct Found<'a> {
    look: &'a Look<'a>,
    figures: Map<String, Value>,
    news: Vec<News>,
}

impl Found<'_> {
    fn add<const MORE: usize>(
        &mut self,
        kind: Kind,
        about: &str,
        at: u64,
        says: &str,
        more: [(&str, Value); MORE],
    ) {
        let mut data = self.figures.clone();
        data.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self.news.push(News::new(self.look.room, kind, about, at, says, data));
    }

    fn about_event(&mut self, kind: Kind, event: &str, at: u64, says: &str, times: &[(&str, &str)]) {
        self.add(kind, event, at, says, [("event", event.into())]);
        if let Some(news) = self.news.last_mut() {
            news.data.extend(times.iter().map(|(name, time)| ((*name).to_owned(), Value::from(*time))));
        }
    }

    /// `check` is empty when no check has said it.
    fn about_origin(&mut self, kind: Kind, check: &str, at: u64, says: &str) {
        let name = if check.is_empty() { Value::Null } else { check.into() };
        self.add(kind, check, at, says, [("check", name), ("held", self.look.origin.held.into())]);
    }
}

/// The news that somebody has steered the room: what the audit log says of it, at least one entry. `version` is that of
/// the steering with these changes.
pub fn steered(room: &Room, log: &[AuditEntry], version: u32) -> News {
    let (by, at) = log.first().map_or(("", 0), |entry| (entry.by.as_str(), entry.at));
    let mut says = by.to_owned();
    for (place, entry) in log.iter().enumerate() {
        let AuditEntry { kind, field, before, after, .. } = entry;
        says.push_str(if place == 0 { " " } else { ", " });
        let _ = match kind.as_str() {
            "keep" => write!(says, "kept {field} at {after}"),
            "clear" => write!(says, "set {field} back to what is deployed, {after}"),
            _ => write!(says, "set {field} to {after}"),
        };
        if before != after {
            let _ = write!(says, " (before: {before})");
        }
    }
    says.push('.');
    let mut data = Map::new();
    data.insert("by".to_owned(), by.into());
    data.insert("version".to_owned(), version.into());
    data.insert("changes".to_owned(), serde_json::to_value(log).unwrap_or_default());
    News::new(room, Kind::Steered, &version.to_string(), at, &says, data)
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

/// So many users more than a limit are no news.
fn margin(room: &Room, limit: i64) -> i64 {
    let part = match room.slot_strategy {
        SlotStrategy::Leases | SlotStrategy::Counters => MARGIN,
        SlotStrategy::WorkerSlots | SlotStrategy::AdaptedWorkerSlots => WIDE_MARGIN,
    };
    (limit as f64 * part) as i64
}

fn why_they_wait(look: &Look<'_>) -> String {
    let room = look.room;
    if room.prequeue {
        "The event has not started yet.".to_owned()
    } else if room.queue_all {
        "Nobody new enters (queue_all).".to_owned()
    } else if look.origin.held {
        "Nobody new enters, because the origin is unhealthy.".to_owned()
    } else {
        let limits = look.limits();
        format!(
            "{} of {} users are active, {} of {} new users entered in this minute.",
            look.active, limits.total_active_users, look.new_users, limits.new_users_per_minute
        )
    }
}

fn in_words(limits: Limits) -> String {
    let Limits { total_active_users, new_users_per_minute } = limits;
    format!("{total_active_users} active users and {new_users_per_minute} new users per minute")
}

/// `1 visitor`, `2 visitors`.
fn count(number: i64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// A time in the two largest units that it has.
fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    let units = [
        (86_400, "day", "days"),
        (3_600, "hour", "hours"),
        (60, "minute", "minutes"),
        (1, "second", "seconds"),
    ];
    let mut rest = seconds;
    let mut words: Vec<String> = Vec::new();
    for (unit, one, many) in units {
        let number = (rest / unit) as i64;
        rest %= unit;
        if number > 0 {
            words.push(count(number, one, many));
        } else if !words.is_empty() {
            break;
        }
    }
    words.truncate(2);
    if words.is_empty() { "0 seconds".to_owned() } else { words.join(" ") }
}
