//! What observers agree on.
//!
//! One observer may see what nobody else does: its own location may be in trouble. So a region's state changes only
//! when at least two of its three observers say the same, and the third lets the region go on when one of them is gone.

use serde::{Deserialize, Serialize};

use super::check::{Check, OBSERVERS};
use super::observer::Post;
use super::{ProbeResult, Reason, Source, StateChange};

/// How many of a region's observers must say the same.
const QUORUM: usize = 2;
/// An observer that has not reported for this many of its longest gaps has no vote.
const SILENT_GAPS: u64 = 3;

/// What all observers of one check say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Agreement {
    observers: Vec<Observer>,
    /// What each region's observers agreed on last.
    regions: Vec<(String, bool)>,
    healthy: Option<bool>,
    /// The time of the last change that was told.
    changed_at: u64,
    /// The reason that was told with it.
    reason: Reason,
}

/// What one observer says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Observer {
    /// The result of its last probe.
    last: ProbeResult,
    /// How many probes in a row had that result.
    streak: u32,
    /// What it says, once enough probes in a row had one result.
    vote: Option<bool>,
}

impl Observer {
    fn is_fresh(&self, check: &Check, now: u64) -> bool {
        now < self.last.at.saturating_add(SILENT_GAPS * check.longest_gap_ms())
    }
}

impl Agreement {
    /// The state of the check as a whole; `None`: no region has agreed on one yet.
    pub fn healthy(&self) -> Option<bool> {
        self.healthy
    }

    /// Whether an observer has reported lately, at `now`.
    pub fn is_reporting(&self, post: &Post, now: u64) -> bool {
        self.observers.iter().any(|observer| {
            let last = &observer.last;
            last.observer == post.number
                && last.region == post.region.name
                && observer.is_fresh(post.check, now)
        })
    }

    /// The observers of a region that have a vote.
    fn voters(&self, check: &Check, region: &str, now: u64) -> impl Iterator<Item = (bool, &ProbeResult)> {
        let here = self.observers.iter().filter(move |observer| observer.last.region == region);
        here.filter(move |observer| observer.is_fresh(check, now))
            .filter_map(|observer| Some((observer.vote?, &observer.last)))
    }

    /// Takes in an observer's result, at `now` by the coordinator's clock. Returns the change when the check's state, or the
    /// reason of an unhealthy one, is another from then on. A result that is not newer than the observer's last one changes
    /// nothing, nor does one of another check, region or observer than there are.
    pub fn record(&mut self, check: &Check, result: &ProbeResult, now: u64) -> Option<StateChange> {
        let is_ours = result.check == check.name && (1..=OBSERVERS).contains(&result.observer);
        if !is_ours || !check.regions.iter().any(|region| region.name == result.region) {
            return None;
        }
        // A clock that is ahead must not make its observer's next words look old.
        let result = ProbeResult { at: result.at.min(now), ..result.clone() };
        let is_there = |name: &str| check.regions.iter().any(|region| region.name == name);
        self.regions.retain(|(region, _)| is_there(region));
        self.observers.retain(|observer| is_there(&observer.last.region));
        let is_of = |last: &ProbeResult| (last.observer, &last.region) == (result.observer, &result.region);
        let known = self.observers.iter_mut().find(|observer| is_of(&observer.last));
        let (streak, vote) = match &known {
            Some(known) if result.at <= known.last.at => return None,
            Some(known) if known.last.healthy == result.healthy => {
                (known.streak.saturating_add(1), known.vote)
            }
            Some(known) => (1, known.vote),
            None => (1, None),
        };
        let needed = if result.healthy { check.consecutive_successes } else { check.consecutive_fails };
        let vote = if streak >= needed { Some(result.healthy) } else { vote };
        let observer = Observer { last: result.clone(), streak, vote };
        match known {
            Some(known) => *known = observer,
            None => self.observers.push(observer),
        }
        self.agree(check, &result.region, now);
        self.weigh(check, &result, now)
    }

    /// Notes what a region's observers agree on.
    fn agree(&mut self, check: &Check, region: &str, now: u64) {
        for state in [true, false] {
            if self.voters(check, region, now).filter(|(vote, _)| *vote == state).count() >= QUORUM {
                match self.regions.iter_mut().find(|(known, _)| known == region) {
                    Some((_, healthy)) => *healthy = state,
                    None => self.regions.push((region.to_owned(), state)),
                }
            }
        }
    }

    /// The state of all regions together: unhealthy when at least half of those that can tell say so.
    fn weigh(&mut self, check: &Check, result: &ProbeResult, now: u64) -> Option<StateChange> {
        // A region says what its observers agreed on, as long as enough of them have a vote to say otherwise.
        let can_tell = |region: &str| self.voters(check, region, now).count() >= QUORUM;
        let says: Vec<bool> =
            self.regions.iter().filter(|(region, _)| can_tell(region)).map(|(_, healthy)| *healthy).collect();
        let unhealthy = says.iter().filter(|healthy| !**healthy).count();
        if says.is_empty() {
            return None;
        }
        let healthy = 2 * unhealthy < says.len();
        let (reason, actual_code, agreeing) =
            if healthy { (Reason::NoFailures, result.actual_code, 0) } else { self.why(check, now) };
        // While it is unhealthy the reason may change. That is told when two agree on it too.
        let changes = self.healthy != Some(healthy) || (agreeing >= QUORUM && reason != self.reason);
        if !changes {
            return None;
        }
        self.healthy = Some(healthy);
        self.reason = reason.clone();
        // The result may be older than the last change: another observer's connection may be slower. What is told
        // later happened later.
        self.changed_at = result.at.max(self.changed_at + 1);
        Some(StateChange {
            check: Source::Check.check_id(&check.name),
            healthy,
            reason,
            at: self.changed_at,
            expected_codes: check.expected_codes(),
            actual_code,
        })
    }

    /// What most observers that say "unhealthy" give as the reason, of several the one of the youngest probe, with its
    /// status code, and how many they are.
    fn why(&self, check: &Check, now: u64) -> (Reason, Option<u16>, usize) {
        let unhealthy = self.regions.iter().filter(|(_, healthy)| !healthy);
        let against: Vec<&ProbeResult> = unhealthy
            .flat_map(|(region, _)| self.voters(check, region, now))
            .filter_map(|(vote, last)| (!vote && !last.healthy).then_some(last))
            .collect();
        let alike = |one: &ProbeResult| against.iter().filter(|other| other.reason == one.reason).count();
        let most = against.iter().max_by_key(|last| (alike(last), last.at));
        most.map_or((Reason::TcpConnectionFailed, None, 0), |last| {
            (last.reason.clone(), last.actual_code, alike(last))
        })
    }
}
