//! What is counted of a room, in one colo or in all.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::dedup::{CheckInDedup, Origin, Step};
use super::{CheckIn, Seen, SlotCounts};
use crate::admission::Remembered;
use crate::check_in::WAITING_SLOT_MS;
use crate::history::Change;
use crate::room::Room;
use crate::time::{minute_of, start_of};

/// The most buckets that are kept apart; one more is counted with its younger neighbour, or with the youngest.
pub const MAX_BUCKETS: usize = 512;
/// How long expired slots are kept: the end of the last minute is still asked for in this one.
const KEPT_EXPIRED_MS: u64 = 70_000;
/// Of what expired longer ago than this, in milliseconds, only the end of a minute is asked for. Until then Global compares colos
/// slot by slot: who was in one that is cut off may have been seen in another one.
const COMPARED_EXPIRED_MS: u64 = 40_000;
/// Time after which what happened in a colo is known everywhere, in milliseconds, if it is reported at all.
const TOLD_AFTER_MS: u64 = 15_000;
/// Minutes of admissions and history that are kept, besides those of a session.
const KEPT_MINUTES: u32 = 3;

/// Counts of active users, waiting users and admissions. They can be added up and taken off each other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Width of a slot of `active`, in milliseconds.
    slot_ms: u64,
    /// Admitted users by the slot of their last request.
    #[serde(rename = "h")]
    active: SlotCounts,
    /// Users admitted with a number, by the minute of the number.
    #[serde(rename = "a")]
    admitted: SlotCounts,
    /// Users admitted without a number, by minute.
    #[serde(rename = "f")]
    unnumbered: SlotCounts,
    /// Waiting users by bucket and slot of their last check-in; of those who were told to stay away for longer than
    /// usual, by a slot as much later.
    #[serde(rename = "w", with = "pairs")]
    waiting: LiteMap<u32, SlotCounts>,
    /// Different users who tried to enter, by minute: the traffic history that shares come from.
    #[serde(rename = "n")]
    tried: SlotCounts,
}

impl Counts {
    /// Empty counts of a room.
    pub fn new(room: &Room) -> Self {
        Self { slot_ms: room.slot_ms(), ..Self::default() }
    }

    /// Counts a check-in. Where steps are remembered that lead on from the moment that its cookie names, the check-in
    /// starts from their end, so that parallel requests and retries with one cookie count once.
    pub fn apply(&mut self, check_in: &CheckIn, dedups: &mut Remembered<CheckInDedup>) -> Change {
        match *check_in {
            CheckIn::Wait { id, bucket, from, at } => {
                if let Some(from) = from {
                    let dedup = dedups.get(id).unwrap_or_default();
                    let origin = dedup.follow(from);
                    if origin.entered || at.at <= origin.at() {
                        return Change::Nothing;
                    }
                    self.move_waiting(bucket, origin.counted(), Some(at));
                    dedups.put(id, dedup.with(origin.at(), at, Step::Goes), at.at);
                    self.count_try(Some(from), at.at);
                    Change::Waits { from: origin.counted(), at: at.at }
                } else {
                    self.move_waiting(bucket, None, Some(at));
                    self.count_try(None, at.at);
                    Change::Joined { at: at.at }
                }
            }
            CheckIn::Enter { id, bucket, from, at, minute, numbered } => {
                let mut waited = None;
                if let Some(from) = from {
                    let dedup = dedups.get(id).unwrap_or_default();
                    let origin = dedup.follow(from);
                    if origin.entered {
                        // The visit began with the one that came first.
                        self.move_active(id, origin, at, dedup, dedups);
                        return Change::Nothing;
                    }
                    self.move_waiting(bucket, origin.counted(), None);
                    dedups.put(id, dedup.with(origin.at(), at, Step::Enters), at);
                    waited = Some((dedup.since(origin.at()).unwrap_or(from.at), bucket, origin.counted()));
                }
                self.count_try(from, at);
                let slot = self.slot_of(at);
                self.active.add(slot, 1);
                let admitted = if numbered { &mut self.admitted } else { &mut self.unnumbered };
                admitted.add(u64::from(minute), 1);
                Change::Entered { at, minute, numbered, waited }
            }
            CheckIn::Move { id, from, at, entered } => {
                let dedup = dedups.get(id).unwrap_or_default();
                let origin = dedup.follow(from);
                if !self.move_active(id, origin, at, dedup, dedups) {
                    return Change::Nothing;
                }
                Change::Moved { from: origin.counted().map(|seen| seen.at), at, entered }
            }
            CheckIn::Leave { id, from, at, entered } => {
                let dedup = dedups.get(id).unwrap_or_default();
                let origin = dedup.follow(from);
                let Some(at) = leaving(from, &origin, at) else { return Change::Nothing };
                let slot = self.slot_of(origin.at());
                self.active.add(slot, -1);
                dedups.put(id, dedup.with(origin.at(), at, Step::Leaves), at);
                Change::Left { from: origin.at(), at, entered }
            }
            CheckIn::GiveUp { id, bucket, from, at } => {
                let dedup = dedups.get(id).unwrap_or_default();
                let origin = dedup.follow(from);
                // Who has entered does not wait: there is nothing to give up.
                let Some(at) = leaving(from.at, &origin, at).filter(|_| !origin.entered) else {
                    return Change::Nothing;
                };
                self.move_waiting(bucket, origin.counted(), None);
                dedups.put(id, dedup.with(origin.at(), at, Step::Leaves), at);
                Change::GaveUp { at }
            }
        }
    }

    /// Counts somebody who tries to enter, once a minute.
    fn count_try(&mut self, from: Option<Seen>, at: u64) {
        if from.is_none_or(|from| minute_of(from.at) != minute_of(at)) {
            self.tried.add(u64::from(minute_of(at)), 1);
        }
    }

    /// Returns whether somebody moved.
    fn move_active(
        &mut self,
        id: u64,
        origin: Origin,
        at: u64,
        dedup: CheckInDedup,
        dedups: &mut Remembered<CheckInDedup>,
    ) -> bool {
        if at <= origin.at() {
            return false;
        }
        if let Some(from) = origin.counted() {
            let old = self.slot_of(from.at);
            self.active.add(old, -1);
        }
        let new = self.slot_of(at);
        self.active.add(new, 1);
        dedups.put(id, dedup.with(origin.at(), at, Step::Goes), at);
        true
    }

    fn move_waiting(&mut self, bucket: u32, from: Option<Seen>, to: Option<Seen>) {
        let bucket = self.bounded_bucket(bucket);
        let mut slots = self.waiting.remove(&bucket).unwrap_or_default();
        if let Some(from) = from {
            slots.add(from.slot(), -1);
        }
        if let Some(to) = to {
            slots.add(to.slot(), 1);
        }
        if !slots.is_empty() {
            self.waiting.insert(bucket, slots);
        }
    }

    /// The bucket itself, or the oldest kept one when there is no room for another.
    fn bounded_bucket(&self, bucket: u32) -> u32 {
        if self.waiting.contains_key(&bucket) || self.waiting.len() < MAX_BUCKETS {
            return bucket;
        }
        let at_or_after = self.waiting.keys().find(|kept| **kept >= bucket);
        at_or_after.copied().or_else(|| self.waiting.last().map(|(kept, _)| *kept)).unwrap_or(bucket)
    }

    fn slot_of(&self, time: u64) -> u64 {
        time / self.slot_ms.max(1)
    }

    /// Adds (`sign` 1) or takes off (`sign` -1) other counts.
    pub fn merge(&mut self, other: &Self, sign: i64) {
        let rescaled;
        let active = if other.slot_ms == self.slot_ms {
            &other.active
        } else {
            // A deploy changed the session duration: the reports of old code keep their slots for a while.
            rescaled = other.rescaled_active(self.slot_ms);
            &rescaled
        };
        self.active.merge(active, sign);
        self.admitted.merge(&other.admitted, sign);
        self.unnumbered.merge(&other.unnumbered, sign);
        self.tried.merge(&other.tried, sign);
        for (bucket, slots) in other.waiting.iter() {
            let mut mine = self.waiting.remove(bucket).unwrap_or_default();
            mine.merge(slots, sign);
            if !mine.is_empty() {
                self.waiting.insert(*bucket, mine);
            }
        }
    }

    /// Takes off the older counts of a colo and adds its newer ones.
    pub fn replace(&mut self, old: &Self, new: &Self) {
        if old.slot_ms != self.slot_ms || new.slot_ms != self.slot_ms {
            self.merge(old, -1);
            self.merge(new, 1);
            return;
        }
        self.active.replace(&old.active, &new.active);
        self.admitted.replace(&old.admitted, &new.admitted);
        self.unnumbered.replace(&old.unnumbered, &new.unnumbered);
        self.tried.replace(&old.tried, &new.tried);
        let nothing = SlotCounts::default();
        let buckets = old.waiting.keys().filter(|bucket| !new.waiting.contains_key(bucket));
        for bucket in new.waiting.keys().chain(buckets) {
            let mut mine = self.waiting.remove(bucket).unwrap_or_default();
            mine.replace(
                old.waiting.get(bucket).unwrap_or(&nothing),
                new.waiting.get(bucket).unwrap_or(&nothing),
            );
            if !mine.is_empty() {
                self.waiting.insert(*bucket, mine);
            }
        }
    }

    fn rescaled_active(&self, slot_ms: u64) -> SlotCounts {
        let mut rescaled = SlotCounts::default();
        for (slot, count) in self.active.range_from(0) {
            // Whoever was seen at any time of a slot counts as long as its end: in narrower ones that is the last of them.
            let end = slot.saturating_add(1).saturating_mul(self.slot_ms);
            rescaled.add(end.saturating_sub(1) / slot_ms.max(1), count);
        }
        rescaled
    }

    /// Whether the slots are as wide as the room's.
    pub fn is_as_wide(&self, room: &Room) -> bool {
        self.slot_ms == room.slot_ms()
    }

    /// Takes over the room's slot width after a change of the session duration.
    pub fn adapt(&mut self, room: &Room) {
        if self.slot_ms != room.slot_ms() {
            self.active = self.rescaled_active(room.slot_ms());
            self.slot_ms = room.slot_ms();
        }
    }

    /// Active users at a time: those whose last request is younger than the session duration. A slot counts until
    /// its end has expired. In the counts of all colos a slot below zero is one whose users were seen again elsewhere,
    /// and of whom the first colo has not told. If it has not done so for long it never will: it counts as empty.
    pub fn active_at(&self, room: &Room, time: u64) -> i64 {
        let told = time.saturating_sub(TOLD_AFTER_MS) / self.slot_ms.max(1);
        self.active
            .range_from(self.first_alive(room, time))
            .map(|(slot, users)| if slot < told { users.max(0) } else { users })
            .sum()
    }

    /// Of this colo's users whose sessions have ended between two times, as it seems: those who are not known to have
    /// been seen since. `all` are the counts of all colos.
    pub fn ended_unseen(&self, room: &Room, from: u64, to: u64, all: &Self) -> i64 {
        let alive = self.first_alive(room, to);
        self.active
            .range_from(self.first_alive(room, from))
            .filter(|(slot, _)| *slot < alive)
            .map(|(slot, users)| users.min(all.active.get(slot)).max(0))
            .sum()
    }

    /// The first slot that is still active at a time: `(slot + 1) × width + session > time`.
    fn first_alive(&self, room: &Room, time: u64) -> u64 {
        let width = self.slot_ms.max(1);
        time.saturating_sub(room.session_ms()) / width
    }

    /// How many of the active users of `time` have expired after each slot width from `time` on, cumulative.
    pub fn expiring(&self, room: &Room, time: u64, steps: usize) -> Vec<u32> {
        let first = self.first_alive(room, time);
        let mut gone = 0;
        (0..steps as u64)
            .map(|step| {
                gone += self.active.get(first + step).max(0);
                gone as u32
            })
            .collect()
    }

    /// In how many milliseconds from `time` on the first slot that [`Counts::expiring`] tells of has expired: at most the
    /// width of a slot, since slots begin and end by the clock.
    pub fn first_step_ms(&self, room: &Room, time: u64) -> u64 {
        let width = self.slot_ms.max(1);
        width - time.saturating_sub(room.session_ms()) % width
    }

    /// Waiting users by bucket at a time, oldest bucket first.
    pub fn waiting_at(&self, room: &Room, time: u64) -> Vec<(u32, u32)> {
        let first = time.saturating_sub(room.waiting_ms()) / WAITING_SLOT_MS;
        self.waiting
            .iter()
            .map(|(bucket, slots)| (*bucket, slots.since(first).max(0) as u32))
            .filter(|(_, users)| *users > 0)
            .collect()
    }

    /// Of those waiting users, bucket by bucket: how many will probably check in again. Whoever has not done so for more
    /// than a refresh has left. Where many of a bucket have, as many of its newcomers will never come back either: they
    /// looked once, or refuse cookies and are somebody new each time. Some time after its minute a bucket has no newcomers.
    /// And of those, by bucket, where there are any, how many newcomers will not come back by what all buckets miss: a wait is
    /// estimated by that, and nobody's slot is given away for it (docs/decisions.md).
    pub fn present_at(&self, room: &Room, waiting: &[(u32, u32)], time: u64) -> (Vec<u32>, Vec<(u32, u32)>) {
        let within_ms = room.present_ms() as i64;
        let since = time.saturating_sub(room.present_ms());
        let seen = waiting.iter().map(|(bucket, users)| {
            let seen = self.waiting.get(bucket).map_or(0, |slots| slots.since(since / WAITING_SLOT_MS));
            seen.clamp(0, i64::from(*users))
        });
        let seen: Vec<i64> = seen.collect();
        let all: i64 = waiting.iter().map(|(_, users)| i64::from(*users)).sum();
        let missed = all - seen.iter().sum::<i64>();
        let mut present = Vec::with_capacity(waiting.len());
        let mut strangers = Vec::new();
        for ((bucket, users), seen) in waiting.iter().zip(seen) {
            let left = i64::from(*users) - seen;
            let will_leave = left / 2 + (left * left / seen.max(1)).min(left / 2);
            let newcomers_ms = start_of(bucket + 1).saturating_sub(since).min(room.present_ms()) as i64;
            let here = (seen - will_leave * newcomers_ms / within_ms).max(0);
            let (from, until) = (start_of(*bucket).max(since), start_of(bucket + 1).min(time));
            let returning = (seen - missed * until.saturating_sub(from) as i64 / within_ms).max(0);
            present.push(here as u32);
            if here > returning {
                strangers.push((*bucket, (here - returning) as u32));
            }
        }
        (present, strangers)
    }

    /// Users who wait and have checked in since a time.
    pub fn waiting_since(&self, time: u64) -> i64 {
        self.waiting.values().map(|slots| slots.since(time / WAITING_SLOT_MS).max(0)).sum()
    }

    /// Waiting users of one bucket at a time.
    pub fn waiting_in(&self, room: &Room, bucket: u32, time: u64) -> u64 {
        let first = time.saturating_sub(room.waiting_ms()) / WAITING_SLOT_MS;
        self.waiting.get(&bucket).map_or(0, |slots| slots.since(first).max(0) as u64)
    }

    /// Users admitted with a number of the minute.
    pub fn admitted_in(&self, minute: u32) -> i64 {
        self.admitted.get(u64::from(minute))
    }

    /// Users admitted in the minute without a number.
    pub fn unnumbered_in(&self, minute: u32) -> i64 {
        self.unnumbered.get(u64::from(minute))
    }

    /// Different users who tried to enter in the minute.
    pub fn tried_in(&self, minute: u32) -> i64 {
        self.tried.get(u64::from(minute))
    }

    /// Forgets what can no longer matter at `now`.
    pub fn forget(&mut self, room: &Room, now: u64) {
        let active_from = self.first_alive(room, now.saturating_sub(KEPT_EXPIRED_MS));
        self.active.forget_before(active_from);
        let oldest = minute_of(now).saturating_sub(room.session_duration + KEPT_MINUTES);
        for minutes in [&mut self.admitted, &mut self.unnumbered, &mut self.tried] {
            minutes.forget_before(u64::from(oldest));
        }
        let waiting_from = now.saturating_sub(room.waiting_ms()) / WAITING_SLOT_MS;
        for (_, slots) in self.waiting.iter_mut() {
            slots.forget_before(waiting_from);
        }
        self.waiting.retain(|_, slots| !slots.is_empty());
    }

    /// Counts expired slots by the second of their end, so that a report is shorter: how many were active at the end of a minute stays
    /// the same.
    pub fn group_expired(&mut self, room: &Room, now: u64) {
        let width = self.slot_ms.max(1);
        let before = self.first_alive(room, now.saturating_sub(COMPARED_EXPIRED_MS));
        self.active.group_before(before, |slot| {
            // Slots that end in (n, n + 1] seconds.
            let seconds = (slot.saturating_add(1).saturating_mul(width) - 1) / 1_000 + 1;
            (seconds.saturating_mul(1_000) / width).saturating_sub(1).max(slot)
        });
    }

    /// Whether nothing is counted that could still matter.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty() && self.admitted.is_empty() && self.tried.is_empty()
    }

    /// The most that may have been admitted with numbers of `minute`, by this snapshot: what was free at its end and
    /// what was admitted in it.
    pub fn most_admitted(&self, room: &Room, minute: u32) -> i64 {
        let end = start_of(minute + 1);
        let active_at_end =
            self.active_at(room, end) - self.admitted_in(minute + 1) - self.unnumbered_in(minute + 1);
        let by_active = self.admitted_in(minute) + i64::from(room.total_active_users) - active_at_end;
        by_active.min(i64::from(room.new_users_per_minute)).max(self.admitted_in(minute))
    }
}

/// When a visitor leaves who was last seen at `from`; `None` where that is not so: the visitor has left before, or has
/// been seen since. Clocks may say that it was before `from`.
fn leaving(from: u64, origin: &Origin, at: u64) -> Option<u64> {
    let at = at.max(from.saturating_add(1));
    (!origin.left && at > origin.at()).then_some(at)
}

/// Maps as lists of pairs: smaller than JSON objects, and number keys stay numbers.
mod pairs {
    use litemap::LiteMap;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::SlotCounts;

    pub fn serialize<S: Serializer>(map: &LiteMap<u32, SlotCounts>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(map.iter())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<LiteMap<u32, SlotCounts>, D::Error> {
        let mut map = LiteMap::new();
        for (bucket, slots) in Vec::<(u32, SlotCounts)>::deserialize(from)? {
            map.insert(bucket, slots);
        }
        Ok(map)
    }
}
