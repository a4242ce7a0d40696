//! Events: for a while a room has other settings. Before that there may be a prequeue, in which nobody new enters.

use std::ops::Range;

use serde_json::{Map, Value};

use super::Room;
use crate::time::minute_of;

/// An event of a room. All times in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What follows `EVENT_` in the var's name, in lower case.
    pub name: String,
    /// When it starts.
    pub start: u64,
    /// When it is over, at least a minute later.
    pub end: u64,
    /// From when on nobody new enters, at least five minutes before the start.
    pub prequeue: Option<u64>,
    /// The prequeue and the start as deployed, by which lots are dealt, whatever operators make of them.
    pub(crate) dealt: (Option<u64>, u64),
    /// Whether those who came in the prequeue are put in an order by lot.
    pub shuffle: bool,
    /// Whether it is ignored.
    pub suspended: bool,
    /// For its owner.
    pub description: String,
    /// The fields that are not as in the room, as they are written.
    pub overrides: Map<String, Value>,
    /// The fields of the room as they are written, with those.
    pub(crate) written: Map<String, Value>,
    /// The room while the event lasts.
    pub active: Room,
    /// The room in the prequeue.
    pub(crate) prequeueing: Room,
}

/// Where a room is in its events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Phase<'a> {
    /// In none.
    None,
    /// In the prequeue of one.
    Prequeue {
        /// Which.
        event: &'a Event,
        /// In how many milliseconds it starts.
        starts_in_ms: u64,
    },
    /// In one.
    Active {
        /// Which.
        event: &'a Event,
        /// In how many milliseconds it is over.
        ends_in_ms: u64,
    },
}

impl<'a> Phase<'a> {
    /// The event, from its prequeue on.
    pub fn event(self) -> Option<&'a Event> {
        match self {
            Self::None => None,
            Self::Prequeue { event, .. } | Self::Active { event, .. } => Some(event),
        }
    }
}

impl Event {
    /// When it changes something for the first time: its prequeue, or its start.
    pub fn begin(&self) -> u64 {
        self.prequeue.unwrap_or(self.start)
    }

    /// Where it is at a time, in its room as that is then: `upcoming`, `prequeueing`, `active`, `over` or `suspended`.
    pub fn phase_name(&self, room: &Room, time: u64) -> &'static str {
        if self.suspended || room.suspended {
            "suspended"
        } else if time >= self.end {
            "over"
        } else if time < self.begin() {
            "upcoming"
        } else if time < self.start {
            "prequeueing"
        } else {
            "active"
        }
    }

    /// The minutes of the prequeue, if it has a lottery and somebody who came in this minute takes part.
    fn lottery_minutes(&self, minute: u32) -> Option<Range<u32>> {
        let minutes = minute_of(self.dealt.0?)..minute_of(self.dealt.1);
        (self.shuffle && !self.suspended && minutes.contains(&minute)).then_some(minutes)
    }

    /// Whether an operator has started it before this minute, though by its deployed times it is in the prequeue.
    pub fn started_before(&self, minute: u32) -> bool {
        self.start < self.dealt.1 && minute >= minute_of(self.start)
    }

    /// When it starts as deployed: its lots belong to that.
    pub fn dealt_start(&self) -> u64 {
        self.dealt.1
    }

    /// The event as operators have it: with other times, and with another room.
    pub(crate) fn steered(&self, start: Option<u64>, end: Option<u64>, change: impl Fn(&mut Room)) -> Self {
        let mut event = self.clone();
        event.start = start.unwrap_or(event.start);
        event.end = end.unwrap_or(event.end);
        event.prequeue = event.prequeue.filter(|prequeue| *prequeue < event.start);
        change(&mut event.active);
        change(&mut event.prequeueing);
        event
    }

    /// Where it is at a time, unless it is ignored.
    fn phase(&self, time: u64) -> Phase<'_> {
        if self.suspended || time < self.begin() || time >= self.end {
            Phase::None
        } else if time < self.start {
            Phase::Prequeue { event: self, starts_in_ms: self.start - time }
        } else {
            Phase::Active { event: self, ends_in_ms: self.end - time }
        }
    }
}

impl Room {
    /// The event with a lottery in whose prequeue a minute is, and the minutes of that. Whoever stands there in line was
    /// put there by lot.
    pub fn lottery(&self, minute: u32) -> Option<(&Event, Range<u32>)> {
        self.events.iter().find_map(|event| Some((event, event.lottery_minutes(minute)?)))
    }

    /// The room as it is at a time, in milliseconds since the epoch, and where it is in its events. A suspended room
    /// ignores them.
    pub fn at(&self, time: u64) -> (&Self, Phase<'_>) {
        if let Some((_, later)) = self.later.as_deref().filter(|(end, _)| time >= *end) {
            return later.at(time);
        }
        if self.suspended {
            return (self, Phase::None);
        }
        for event in self.events.iter() {
            match event.phase(time) {
                Phase::None => {}
                phase @ Phase::Prequeue { .. } => return (&event.prequeueing, phase),
                phase @ Phase::Active { .. } => return (&event.active, phase),
            }
        }
        (self, Phase::None)
    }

    /// When the room will be another one than at a time: a prequeue or an event begins, an event is over, or something that
    /// operators have changed ends.
    pub fn next_change(&self, time: u64) -> Option<u64> {
        let end = match self.later.as_deref() {
            Some((end, later)) if time >= *end => return later.next_change(time),
            later => later.map(|(end, _)| *end),
        };
        let events = self.events.iter().filter(|event| !event.suspended && !self.suspended);
        let changes = events.flat_map(|event| [event.begin(), event.start, event.end]);
        changes.chain(end).filter(|change| *change > time).min()
    }

    /// The next event that has not begun yet.
    pub fn next_event(&self, time: u64) -> Option<&Event> {
        if let Some((_, later)) = self.later.as_deref().filter(|(end, _)| time >= *end) {
            return later.next_event(time);
        }
        self.events.iter().find(|event| !event.suspended && !self.suspended && event.begin() > time)
    }
}
