//! An observer's place, times and memory: what it goes by between two alarms.

use super::ProbeResult;
use super::check::{Check, Checks, OBSERVERS, Region};

/// Wakes an observer: the message is empty, and so is the answer.
pub const WAKE: &str = "/wake";
/// Asks the coordinator to see to its observers: the message is empty, and so is the answer.
pub const TEND: &str = "/tend";
/// The beginning of observers' names.
const PREFIX: &str = "observer/";
/// How many results are kept while the coordinator cannot be reached; the oldest go first.
const UNTOLD_MAX: usize = 100;
/// Time between the first looks of a region's observers, in milliseconds.
const BEGIN_STEP_MS: u64 = 1_000;

/// One observer of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post<'a> {
    /// The check.
    pub check: &'a Check,
    /// Where it looks from.
    pub region: &'static Region,
    /// Which of the region's observers it is, from 1.
    pub number: u8,
}

impl<'a> Post<'a> {
    /// Every observer that a check has; none while it is suspended.
    pub fn all(check: &'a Check) -> impl Iterator<Item = Self> {
        let regions = check.regions.iter().filter(|_| !check.suspended);
        regions.flat_map(move |region| (1..=OBSERVERS).map(move |number| Self { check, region, number }))
    }

    /// The observer of this name; `None` when none of the checks has it, or has it any longer.
    pub fn of(name: &str, checks: &'a Checks) -> Option<Self> {
        let (check, _) = name.strip_prefix(PREFIX)?.split_once('/')?;
        Self::all(checks.get(check)?).find(|post| post.name() == name)
    }

    /// Whether an object of this name is an observer, configured or not.
    pub fn is_named(name: &str) -> bool {
        name.starts_with(PREFIX)
    }

    /// The name of its object.
    pub fn name(&self) -> String {
        format!("{PREFIX}{}/{}/{}", self.check.name, self.region.name, self.number)
    }

    /// How it presents itself to the origin.
    pub fn who(&self) -> String {
        format!("check {}; {} {}", self.check.name, self.region.name, self.number)
    }

    /// How long after it was woken for the first time it looks, in milliseconds.
    pub fn begins_in(&self) -> u64 {
        u64::from(self.number.saturating_sub(1)) * BEGIN_STEP_MS
    }

    /// How long after `now` it looks again, in milliseconds: once in each interval, at a moment of its own. A region's
    /// three moments are a third of the interval apart, so that a change is seen by two of them within two thirds.
    pub fn next_in(&self, now: u64) -> u64 {
        let interval = self.check.interval_ms();
        let third = u64::from(self.number.saturating_sub(1)) * interval / u64::from(OBSERVERS);
        let phase = (spread(&self.check.name, self.region.name) + third) % interval;
        interval - (now + interval - phase) % interval
    }
}

/// A number that is another one for each region of each check (FNV-1a, halved so that sums stay in range).
fn spread(check: &str, region: &str) -> u64 {
    let bytes = check.bytes().chain(region.bytes());
    bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        >> 1
}

/// Adds a result to those that the coordinator does not have yet.
pub fn remember(untold: &mut Vec<ProbeResult>, result: ProbeResult) {
    untold.push(result);
    let surplus = untold.len().saturating_sub(UNTOLD_MAX);
    untold.drain(..surplus);
}
