//! What the status page and its JSON show.

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use super::analytics::{Percentiles, Range, Sum, Tally, healthy_time, slot};
use super::{Source, StateChange, Waterfall};

/// How a check, or all of them together, is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Status {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// It is healthy.
    Healthy,
    /// It is not.
    Unhealthy,
}

impl Status {
    /// Of what may be known.
    pub fn of(healthy: Option<bool>) -> Self {
        match healthy {
            None => Self::Unknown,
            Some(true) => Self::Healthy,
            Some(false) => Self::Unhealthy,
        }
    }

    /// As it is shown.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Healthy => "Healthy",
            Self::Unhealthy => "Unhealthy",
        }
    }

    /// For the page's style.
    pub fn class(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Healthy => "good",
            Self::Unhealthy => "bad",
        }
    }
}

/// All that is shown at once. Times are milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct View {
    /// When it was put together.
    pub at: u64,
    /// How far back it looks.
    pub range: Range,
    /// When the range begins.
    pub from: u64,
    /// All checks together: healthy when each is, unhealthy when one is.
    pub status: Status,
    /// The only check whose analytics and events are shown; empty: all are.
    pub selected: String,
    /// Every check by name, or the selected one.
    pub checks: Vec<CheckView>,
    /// Changes of state, newest first.
    pub changes: Vec<ChangeView>,
    /// Single results of our own checks, newest first.
    pub results: Vec<ResultView>,
}

impl View {
    /// How all of these checks are doing together.
    pub fn overall(checks: &[CheckView]) -> Status {
        let any = |status| checks.iter().any(|check| check.status == status);
        if any(Status::Unhealthy) {
            Status::Unhealthy
        } else if any(Status::Unknown) || checks.is_empty() {
            Status::Unknown
        } else {
            Status::Healthy
        }
    }
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckView {
    /// Its identity, see [`Source::check_id`].
    pub id: String,
    /// Its name.
    pub name: String,
    /// Who looks.
    pub source: Source,
    /// How it is doing.
    pub status: Status,
    /// "No failures", or why it is unhealthy; empty while nothing is known.
    pub reason: String,
    /// Since when the status has been so; 0 while nothing is known.
    pub since: u64,
    /// The status codes that it expects; empty where none are told.
    pub expected_codes: String,
    /// The status code that came with the last change of state.
    pub actual_code: Option<u16>,
    /// Availability by range, shortest first: of results, or, for a check of the platform, of the time.
    pub availability: Vec<Availability>,
    /// What failed in the range and how often, the most frequent first.
    pub errors: Vec<ErrorCount>,
    /// What each region saw in the range.
    pub regions: Vec<RegionView>,
    /// The range, slot by slot.
    pub slots: Vec<Slot>,
}

/// What is stored of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckRow {
    /// Its identity, see [`Source::check_id`].
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether it is healthy; `None`: nothing is known yet.
    pub healthy: Option<bool>,
    /// If not, why.
    pub reason: String,
    /// Since when it has been so.
    pub since: u64,
    /// The status codes that it expects.
    pub expected_codes: String,
    /// The status code that came with the last change.
    pub actual_code: Option<u16>,
}

/// What a region's observers saw in one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SumRow {
    /// When the slot begins.
    pub start: u64,
    /// Where.
    pub region: String,
    /// Results.
    pub tally: Tally,
    /// What they say.
    pub sum: Sum,
}

impl CheckView {
    /// A check of our own, of its results: how many there were in each range, and the sums of this one in the order of
    /// their regions.
    pub fn of_results(row: CheckRow, range: Range, now: u64, tallies: [Tally; 4], sums: &[SumRow]) -> Self {
        let mut all = Sum::default();
        let mut regions: Vec<(String, Tally, Sum)> = Vec::new();
        let mut slots: Vec<(u64, Tally, Sum)> =
            starts(range, now).map(|at| (at, Tally::default(), Sum::default())).collect();
        for row in sums {
            all.merge(&row.sum);
            let known = regions.iter_mut().find(|(region, ..)| *region == row.region);
            if let Some((_, tally, sum)) = known {
                *tally = tally.and(row.tally);
                sum.merge(&row.sum);
            } else {
                regions.push((row.region.clone(), row.tally, row.sum.clone()));
            }
            if let Some((_, tally, sum)) = slots.iter_mut().find(|(at, ..)| *at == row.start) {
                *tally = tally.and(row.tally);
                sum.merge(&row.sum);
            }
        }
        Self {
            errors: errors(&all),
            regions: regions
                .into_iter()
                .map(|(region, tally, sum)| RegionView { region, tally, moments: sum.percentiles() })
                .collect(),
            slots: slots
                .into_iter()
                .map(|(at, tally, sum)| {
                    let [.., total] = sum.percentiles();
                    Slot { at, tally, total }
                })
                .collect(),
            ..Self::of(row, tallies)
        }
    }

    /// A check of the platform, of its changes in the order of their times: those of the longest range, and the one
    /// before them.
    pub fn of_changes(row: CheckRow, range: Range, now: u64, changes: &[StateChange]) -> Self {
        let tallies = Range::ALL.map(|range| healthy_time(changes, range.start(now), now));
        let mut all = Sum::default();
        for change in changes.iter().filter(|change| change.at >= range.start(now)) {
            all.count(&change.reason, 1);
        }
        let slots = starts(range, now).map(|at| {
            let end = now.min(at + range.slot_ms());
            Slot { at, tally: healthy_time(changes, at, end), total: None }
        });
        Self { errors: errors(&all), slots: slots.collect(), ..Self::of(row, tallies) }
    }

    fn of(row: CheckRow, tallies: [Tally; 4]) -> Self {
        let availability = Range::ALL.into_iter().zip(tallies);
        Self {
            source: Source::of(&row.id),
            id: row.id,
            name: row.name,
            status: Status::of(row.healthy),
            reason: row.reason,
            since: row.since,
            expected_codes: row.expected_codes,
            actual_code: row.actual_code,
            availability: availability
                .map(|(range, tally)| Availability { range, tally, percent: tally.percent() })
                .collect(),
            errors: Vec::new(),
            regions: Vec::new(),
            slots: Vec::new(),
        }
    }
}

fn errors(sum: &Sum) -> Vec<ErrorCount> {
    let errors = sum.errors().into_iter();
    errors.map(|(reason, count)| ErrorCount { reason: reason.text().to_owned(), count }).collect()
}

/// The beginnings of a range's slots.
fn starts(range: Range, now: u64) -> impl Iterator<Item = u64> {
    let (first, size) = (range.start(now), range.slot_ms());
    (0..=(slot(now, size) - first) / size).map(move |index| first + index * size)
}

/// Availability over a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Availability {
    /// How far back.
    pub range: Range,
    /// Results, or milliseconds.
    pub tally: Tally,
    /// The same in percent, as it is shown.
    pub percent: String,
}

/// How often something failed in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// Why.
    pub reason: String,
    /// How often: in results, or in notifications.
    pub count: u64,
}

/// What a region's observers saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegionView {
    /// Where.
    pub region: String,
    /// Results.
    pub tally: Tally,
    /// Percentiles of the waterfall's moments: TCP, TLS, first byte, total.
    pub moments: [Option<Percentiles>; 4],
}

/// A part of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// When it begins.
    pub at: u64,
    /// Results, or milliseconds.
    pub tally: Tally,
    /// How long probes took in all.
    pub total: Option<Percentiles>,
}

/// A change of state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeView {
    /// The check's name.
    pub check: String,
    /// When.
    pub at: u64,
    /// What it is from then on.
    pub status: Status,
    /// Why.
    pub reason: String,
    /// The status codes that are expected; empty where none are told.
    pub expected_codes: String,
    /// The status code that came.
    pub actual_code: Option<u16>,
}

/// What one observer saw once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultView {
    /// The check's name.
    pub check: String,
    /// Where the observer is.
    pub region: String,
    /// Which one of the region's.
    pub observer: u8,
    /// When the probe began.
    pub at: u64,
    /// What it found.
    pub status: Status,
    /// Why.
    pub reason: String,
    /// The status codes that are expected; empty where none are.
    pub expected_codes: String,
    /// The status code that came.
    pub actual_code: Option<u16>,
    /// How long it took.
    pub waterfall: Waterfall,
}

/// The last moment of the year 9999, in milliseconds: what is later cannot be written.
const LATEST: u64 = 253_402_300_799_000;

/// A time as `2022-03-03 17:05:00 UTC`.
pub fn time(at: u64) -> String {
    let time =
        humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(at.min(LATEST))).to_string();
    time.replace('T', " ").replace('Z', " UTC")
}
