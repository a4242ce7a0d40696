//! How Global makes history of what the colos report.

use super::global::Global;
use super::{CALM_REPORT_MS, Counts};
use crate::history::{Count, Ending, KEPT_MINUTES, Minute, Part, Record, Recorder, Tallies, Totals};
use crate::room::Room;
use crate::time::{minute_of, start_of};

/// The shortest time from a minute's end until it is recorded, in milliseconds: a calm worker takes as long to report.
const SOONEST_MS: u64 = CALM_REPORT_MS + 4_000;
/// A colo that is later than it said is waited for no longer than this, in milliseconds.
const LATEST_MS: u64 = 60_000;

/// A minute to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// What is kept of the minute for long.
    pub record: Record,
    /// What is kept for a day, and is needed after a restart.
    pub minute: Minute,
}

impl Global {
    /// Takes up what was recorded last before a restart.
    pub fn recall_history(&mut self, last: Option<Minute>) {
        self.flow.recall(last.as_ref().map_or((0, 0), |last| last.left));
        self.recorder.recall(last);
    }

    /// Somebody has called, with a report or for the state key; or Anywhere, which Counters have called `leases` times since.
    pub fn called(&mut self, leases: u64, now: u64) {
        self.recorder.tallies.add(minute_of(now), Count::GlobalCalls, 1);
        self.recorder.tallies.add(minute_of(now), Count::AnywhereCalls, leases);
    }

    /// From when on the next minute may be recorded, in milliseconds since the epoch: a colo that is late may delay it.
    /// `None`: there is nobody, and nothing to record until somebody comes.
    pub fn next_record(&self, room: &Room, now: u64) -> Option<u64> {
        Some(start_of(self.open(room, now)? + 1) + self.latest_report().max(SOONEST_MS))
    }

    /// The next minute to store, if all that happened in it is known; [`Global::recorded`] once it is stored.
    pub fn record(&self, room: &Room, now: u64) -> Option<Recorded> {
        let minute = self.open(room, now)?;
        let end = start_of(minute + 1);
        let latest = end + self.latest_report() + LATEST_MS;
        (now >= end + SOONEST_MS && (self.covered(now) >= end || now >= latest))
            .then(|| self.make_record(room, minute, now))
    }

    /// A minute is in storage.
    pub fn recorded(&mut self, minute: Minute) {
        self.recorder.recorded(minute);
    }

    /// What is not recorded yet, as it looks now, minute by minute up to the present one.
    pub fn unsettled(&self, room: &Room, now: u64) -> Vec<Recorded> {
        let mut recorder = Recorder::default();
        let Some(first) = self.open(room, now) else { return Vec::new() };
        (first..=minute_of(now))
            .map(|minute| {
                let made =
                    self.make_record_after(recorder.last().or(self.recorder.last()), room, minute, now);
                recorder.recall(Some(made.minute.clone()));
                made
            })
            .collect()
    }

    /// Until when the history does not change any more, in milliseconds since the epoch.
    pub fn settled_until(&self, room: &Room, now: u64) -> u64 {
        start_of(self.open(room, now).unwrap_or_else(|| minute_of(now)))
    }

    /// What was counted since the room's first day; `None`: nothing is recorded yet.
    pub fn totals(&self) -> Option<Totals> {
        self.recorder.last().map(Totals::of)
    }

    fn open(&self, room: &Room, now: u64) -> Option<u32> {
        self.recorder.open(|minute| self.ending(room, minute, now), now)
    }

    /// How late reports may be, as the colos say that have something to report.
    fn latest_report(&self) -> u64 {
        let late = self.colos.values().filter(|colo| !colo.report.counts.is_empty());
        late.map(|colo| colo.report.late).max().unwrap_or(0)
    }

    fn make_record(&self, room: &Room, minute: u32, now: u64) -> Recorded {
        self.make_record_after(self.recorder.last(), room, minute, now)
    }

    /// The record of a minute that follows another one.
    fn make_record_after(&self, last: Option<&Minute>, room: &Room, minute: u32, now: u64) -> Recorded {
        let ending = self.ending(room, minute, now);
        let (record, mut kept) = self.recorder.record(last, room, minute, ending);
        kept.left = self.flow.kept();
        let before = last.filter(|last| last.minute + 1 == minute);
        let lets_past = self.recorder.lets_past(room, minute);
        for (name, colo) in self.colos.iter() {
            let report = &colo.report;
            let (active, waiting) = ending_of(&report.counts, &report.tallies, room, minute, now);
            let count = |count: Count| report.tallies.of(minute, count);
            let since = report.tallies.entered(minute + 1, minute_of(now) + 1);
            let waited_before = before
                .and_then(|before| before.parts.iter().find(|part| part.colo == *name))
                .map_or(0, |part| part.waiting as i64);
            let come = waited_before + count(Count::Joins) + count(Count::Returns);
            let gone = (come - count(Count::Waited) - waiting as i64).max(0) as u64;
            let part = Part {
                colo: name.clone(),
                active: (active - since).max(0) as u64,
                waiting,
                new_users: count(Count::NewUsers).max(0) as u64,
                joins: count(Count::Joins).max(0) as u64,
                leavers: if lets_past { 0 } else { gone },
                revoked: count(Count::Revoked).max(0) as u64,
                bypassed: count(Count::Bypassed).max(0) as u64,
                workers: if colo.received_at >= start_of(minute) { report.workers.into() } else { 0 },
            };
            if !(Part { workers: 0, ..part.clone() }).is_silent() {
                kept.parts.push(part);
            }
        }
        Recorded { record, minute: kept }
    }

    /// Notes how many were active at the ends of minutes since the last report: with the next one, colos leave out what is
    /// over.
    pub(super) fn note_endings(&mut self, room: &Room, now: u64) {
        let this = minute_of(now);
        for minute in self.minute.max(this.saturating_sub(KEPT_MINUTES))..this {
            let active = self.merged.active_at(room, start_of(minute + 1));
            self.recorder.note_active(minute, active, now);
        }
        self.minute = self.minute.max(this);
    }

    fn ending(&self, room: &Room, minute: u32, now: u64) -> Ending {
        let (active, waiting) = ending_of(&self.merged, &self.recorder.tallies, room, minute, now);
        let active = self.recorder.active_at_end(minute, active);
        let limits = self.origin.hold.limit(self.origin.adaptive.limits(room), now);
        Ending { active: active.max(0) as u64, waiting, limits }
    }
}

/// Active users at the end of a minute, or now if it is not over, with those who have come since; and visitors who waited
/// then: whoever has begun or ended to wait since does not belong to it.
fn ending_of(counts: &Counts, tallies: &Tallies, room: &Room, minute: u32, now: u64) -> (i64, u64) {
    let end = start_of(minute + 1).min(now);
    let waiting: i64 = counts.waiting_at(room, end).iter().map(|(_, users)| i64::from(*users)).sum();
    let after = |count: Count| tallies.after(minute, count);
    let come = after(Count::Joins) + after(Count::Returns) - after(Count::Waited) - after(Count::GaveUp);
    (counts.active_at(room, end), (waiting - come).max(0) as u64)
}
