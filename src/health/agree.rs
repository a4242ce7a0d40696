//! What observers agree on.
//!
//! One observer may see what nobody else does: its own location may be in trouble. So a region's state changes only
//! when at least two of its three observers say the same, and the third lets the region go on when one of them is gone.

use serde::{Deserialize, Serialize};

use super::check::{Check, OBSERVERS};
use super::{ProbeResult, Reason, Source, StateChange};

/// So many of a region's observers must say the same.
const QUORUM: usize = 2;
/// An observer that was not heard of for so many of its longest gaps has no vote.
const SILENT_GAPS: u64 = 3;

/// What all observers of one check say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Agreement {
    regions: Vec<RegionView>,
    healthy: Option<bool>,
    /// The time of the last change that was told.
    changed_at: u64,
}

/// What one region's observers say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RegionView {
    /// The region's name.
    pub region: String,
    /// What they agreed on last; `None`: nothing yet.
    pub healthy: Option<bool>,
    observers: [Observer; OBSERVERS as usize],
}

/// What one observer says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Observer {
    /// The last that it saw.
    last: Option<ProbeResult>,
    /// So many of its last probes had that result.
    streak: u32,
    /// What it says, once enough probes in a row had one result.
    vote: Option<bool>,
}

impl Observer {
    fn is_heard(&self, check: &Check, now: u64) -> bool {
        let at = self.last.as_ref().map(|last| last.at);
        at.is_some_and(|at| now < at.saturating_add(SILENT_GAPS * check.longest_gap_ms()))
    }

    fn vote(&self, check: &Check, now: u64) -> Option<bool> {
        self.vote.filter(|_| self.is_heard(check, now))
    }
}

impl RegionView {
    fn voters(&self, check: &Check, now: u64) -> impl Iterator<Item = (bool, &Observer)> {
        self.observers.iter().filter_map(move |observer| Some((observer.vote(check, now)?, observer)))
    }

    /// What it says now: what it agreed on, as long as enough observers have a vote to say otherwise.
    fn says(&self, check: &Check, now: u64) -> Option<bool> {
        self.healthy.filter(|_| self.voters(check, now).count() >= QUORUM)
    }

    fn agree(&mut self, check: &Check, now: u64) {
        for state in [true, false] {
            if self.voters(check, now).filter(|(vote, _)| *vote == state).count() >= QUORUM {
                self.healthy = Some(state);
            }
        }
    }
}

impl Agreement {
    /// The state of the check as a whole; `None`: no region has agreed on one yet.
    pub fn healthy(&self) -> Option<bool> {
        self.healthy
    }

    /// The regions that were heard of.
    pub fn regions(&self) -> &[RegionView] {
        &self.regions
    }

    /// The numbers of a region's observers that have a vote, or could have one soon, at `now`.
    pub fn heard(&self, check: &Check, region: &str, now: u64) -> impl Iterator<Item = u8> {
        let view = self.regions.iter().find(|view| view.region == region);
        let observers = view.into_iter().flat_map(|view| (1..=OBSERVERS).zip(&view.observers));
        observers.filter(move |(_, observer)| observer.is_heard(check, now)).map(|(number, _)| number)
    }

    /// Takes in what an observer saw, at `now` by the clock of whoever keeps this, and says so when the check's state
    /// is another from then on. What is not newer than the observer's last word changes nothing, nor does what is
    /// told of another check, region or observer than there are.
    pub fn hear(&mut self, check: &Check, result: &ProbeResult, now: u64) -> Option<StateChange> {
        let is_ours = result.check == check.name;
        if !is_ours || !check.regions.iter().any(|region| region.name == result.region) {
            return None;
        }
        // A clock that is ahead must not make its observer's next words look old.
        let result = ProbeResult { at: result.at.min(now), ..result.clone() };
        self.regions.retain(|view| check.regions.iter().any(|region| region.name == view.region));
        if !self.regions.iter().any(|view| view.region == result.region) {
            self.regions.push(RegionView { region: result.region.clone(), ..RegionView::default() });
        }
        let view = self.regions.iter_mut().find(|view| view.region == result.region)?;
        let observer = view.observers.get_mut(usize::from(result.observer).checked_sub(1)?)?;
        if observer.last.as_ref().is_some_and(|last| result.at <= last.at) {
            return None;
        }
        let goes_on = observer.last.as_ref().is_some_and(|last| last.healthy == result.healthy);
        observer.streak = if goes_on { observer.streak.saturating_add(1) } else { 1 };
        let needed = if result.healthy { check.consecutive_successes } else { check.consecutive_fails };
        if observer.streak >= needed {
            observer.vote = Some(result.healthy);
        }
        observer.last = Some(result.clone());
        view.agree(check, now);
        self.weigh(check, &result, now)
    }

    /// The state of all regions together: unhealthy when at least half of those that can tell say so.
    fn weigh(&mut self, check: &Check, result: &ProbeResult, now: u64) -> Option<StateChange> {
        let says: Vec<bool> = self.regions.iter().filter_map(|view| view.says(check, now)).collect();
        let unhealthy = says.iter().filter(|healthy| !**healthy).count();
        if says.is_empty() {
            return None;
        }
        let healthy = 2 * unhealthy < says.len();
        if self.healthy.replace(healthy) == Some(healthy) {
            return None;
        }
        let (reason, actual_code) =
            if healthy { (Reason::NoFailures, result.actual_code) } else { self.why(check, now) };
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

    /// What most observers that say "unhealthy" give as the reason; of several the one of the youngest probe.
    fn why(&self, check: &Check, now: u64) -> (Reason, Option<u16>) {
        let against: Vec<&ProbeResult> = self
            .regions
            .iter()
            .filter(|view| view.healthy == Some(false))
            .flat_map(|view| view.voters(check, now))
            .filter_map(|(vote, observer)| observer.last.as_ref().filter(|last| !vote && !last.healthy))
            .collect();
        let alike = |one: &ProbeResult| against.iter().filter(|other| other.reason == one.reason).count();
        let most = against.iter().max_by_key(|last| (alike(last), last.at));
        most.map_or((Reason::TcpConnectionFailed, None), |last| (last.reason.clone(), last.actual_code))
    }
}
