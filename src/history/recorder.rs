//! Which minutes can be recorded, and what of them.

use litemap::LiteMap;

use super::record::{Minute, Record};
use super::tallies::{Count, Tallies};
use crate::room::{Limits, Room};
use crate::slots::SlotCounts;
use crate::time::minute_of;
use crate::wire::VERSION;

/// A minute that is this old and not recorded is given up, in minutes: nobody knows how it was.
pub const KEPT_MINUTES: u32 = 30;

/// When a minute is recorded, entries are known of this many minutes before it, and of those after it.
const NEAR_MINUTES: u32 = 5;

/// What was seen of a room in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The most active users.
    pub active: u64,
    /// The most visitors who waited.
    pub waiting: u64,
    /// The limits in force, last.
    pub limits: Limits,
    /// The room was off.
    pub suspended: bool,
}

/// What Global knows of minutes that are not recorded yet.
#[derive(Debug, Default)]
pub struct Recorder {
    /// All colos' tallies.
    pub tallies: Tallies,
    samples: LiteMap<u32, Sample>,
    /// Users who were active at a minute's end and had entered long before, by what was known soon after that end: later the
    /// counts that told it are forgotten.
    active: LiteMap<u32, i64>,
    /// The last minute that is recorded; `None`: none was.
    last: Option<Minute>,
}

/// How a room was at the end of a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Active users.
    pub active: u64,
    /// Visitors who wait.
    pub waiting: u64,
    /// The limits in force now, should nobody have looked in that minute.
    pub limits: Limits,
}

impl Recorder {
    /// Takes up what was recorded last before a restart.
    pub fn recall(&mut self, last: Option<Minute>) {
        self.last = last;
    }

    /// The last minute that is recorded.
    pub fn last(&self) -> Option<&Minute> {
        self.last.as_ref()
    }

    /// Notes how the room was seen.
    pub fn sample(&mut self, minute: u32, seen: Sample) {
        let known = self.samples.get(&minute).copied().unwrap_or(seen);
        let (active, waiting) = (known.active.max(seen.active), known.waiting.max(seen.waiting));
        let suspended = known.suspended || seen.suspended;
        self.samples.insert(minute, Sample { active, waiting, suspended, ..seen });
        while self.samples.len() > KEPT_MINUTES as usize
            && let Some((oldest, _)) = self.samples.first()
        {
            let oldest = *oldest;
            self.samples.remove(&oldest);
        }
    }

    /// Notes how many were active at the end of a minute, as far as is known by then.
    pub fn note_active(&mut self, minute: u32, active: i64, now: u64) {
        let entered = self.tallies.entered(minute.saturating_sub(NEAR_MINUTES), minute_of(now) + 1);
        self.active.insert(minute, active - entered);
        self.active.retain(|of, _| of + KEPT_MINUTES > minute);
    }

    /// Users who were active at the end of a minute: those who were noted, and who has become known of since. `active`: how
    /// many it were by what is known now.
    pub fn active_at_end(&self, minute: u32, active: i64) -> i64 {
        match self.active.get(&minute) {
            Some(noted) => noted + self.tallies.entered(minute.saturating_sub(NEAR_MINUTES), minute),
            None => active - self.tallies.entered_after(minute),
        }
    }

    /// The first minute, up to the present one, that is not recorded and in which there was somebody; `None`: there is none.
    /// `ending` tells how the room was at the end of a minute.
    pub fn open(&self, ending: impl Fn(u32) -> Ending, now: u64) -> Option<u32> {
        let this = minute_of(now);
        let oldest = this.saturating_sub(KEPT_MINUTES);
        let first = match &self.last {
            Some(last) => (last.minute + 1).max(oldest),
            None => self.tallies.first_since(oldest)?,
        };
        (first..=this).find(|minute| !self.is_silent(*minute, ending(*minute)))
    }

    fn is_silent(&self, minute: u32, ending: Ending) -> bool {
        let before = before(self.last.as_ref(), minute);
        let nobody = Sample { active: 0, waiting: 0, limits: ending.limits, suspended: false };
        let seen = self.samples.get(&minute).copied().unwrap_or(nobody);
        (ending.active, ending.waiting) == (0, 0)
            && before == (0, 0)
            && (seen.active, seen.waiting) == (0, 0)
            && self.added_since(self.last.as_ref(), minute).is_empty()
    }

    /// Whether those who do not wait any more in a minute have gone past the room, which was off in it, or in the one before:
    /// it takes some time until it shows that somebody does not wait.
    pub fn lets_past(&self, room: &Room, minute: u32) -> bool {
        let was = |minute: u32| self.samples.get(&minute).map(|seen| seen.suspended);
        was(minute).unwrap_or(room.suspended) || was(minute.saturating_sub(1)).unwrap_or_default()
    }

    fn added_since(&self, last: Option<&Minute>, until: u32) -> SlotCounts {
        let nothing = SlotCounts::default();
        self.tallies.added_since(last.map_or(&nothing, |last| &last.recorded), until)
    }

    /// The record of a minute that follows the last one, and what is to be kept with it, but for the colos' parts. What came
    /// too late for its own minute is counted in the next one that is recorded: nothing is lost, and nothing counted twice.
    pub fn record(
        &self,
        last: Option<&Minute>,
        room: &Room,
        minute: u32,
        ending: Ending,
    ) -> (Record, Minute) {
        let Ending { active, waiting, limits } = ending;
        let (active_before, waiting_before) = before(last, minute);
        let nobody = Sample { active: 0, waiting: 0, limits, suspended: room.suspended };
        let seen = self.samples.get(&minute).copied().unwrap_or(nobody);
        let mut tallies = self.added_since(last, minute);
        let count = |count: Count| tallies.get(count.code());
        let come = waiting_before as i64 + count(Count::Joins) + count(Count::Returns);
        let gone = (come - count(Count::Waited) - waiting as i64).max(0);
        let kind = if self.lets_past(room, minute) { Count::LetPast } else { Count::Leavers };
        tallies.add(kind.code(), gone);
        // Whoever was seen last a session before this minute's end will not come any more.
        let visits_until = minute.saturating_sub(room.session_duration);
        let visits_before = last.map_or(visits_until.saturating_sub(1), |last| last.visits_until);
        // Of those who are not seen again nobody knows how long they stayed.
        if !room.disable_session_renewal {
            let oldest = visits_until.saturating_sub(KEPT_MINUTES);
            self.tallies.add_visits(visits_before.max(oldest), visits_until, &mut tallies);
        }
        let limits = seen.limits;
        let record = Record {
            v: VERSION,
            minutes: 1,
            active,
            active_max: seen.active.max(active).max(active_before),
            waiting,
            waiting_max: seen.waiting.max(waiting).max(waiting_before),
            slots: u64::from(limits.total_active_users).saturating_sub(active),
            total_active_users: limits.total_active_users.into(),
            new_users_per_minute: limits.new_users_per_minute.into(),
            tallies,
        };
        let mut kept = last.cloned().unwrap_or_default();
        kept.ever.merge(&record.tallies, 1);
        self.tallies.recorded(&mut kept.recorded, minute);
        let visits_until = visits_until.max(visits_before);
        let kept = Minute { v: VERSION, minute, parts: Vec::new(), active, waiting, visits_until, ..kept };
        (record, kept)
    }

    /// A minute is recorded, and in storage.
    pub fn recorded(&mut self, minute: Minute) {
        self.samples.retain(|of, _| *of >= minute.minute);
        self.last = Some(minute);
    }
}

/// Who was active and who waited when a minute began, as recorded.
fn before(last: Option<&Minute>, minute: u32) -> (u64, u64) {
    let last = last.filter(|last| last.minute + 1 == minute);
    last.map_or((0, 0), |last| (last.active, last.waiting))
}
