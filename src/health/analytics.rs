//! What many results say together: availability, errors by reason, percentiles of the waterfall's moments.
//!
//! Results are added up in **slots** of three sizes. Each range of the page is answered from one size, so that a month
//! costs no more to look at than an hour, and stays exact after single results are gone.

use serde::{Deserialize, Serialize};

use super::{ProbeResult, Reason, StateChange};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// The sizes of slots, in milliseconds; every result is added to one slot of each.
pub const SLOTS_MS: [u64; 3] = [5 * MINUTE_MS, HOUR_MS, DAY_MS];

/// How far back somebody looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Range {
    /// One hour.
    #[serde(rename = "1h")]
    Hour,
    /// 24 hours.
    #[default]
    #[serde(rename = "24h")]
    Day,
    /// 7 days.
    #[serde(rename = "7d")]
    Week,
    /// 30 days.
    #[serde(rename = "30d")]
    Month,
}

impl Range {
    /// All of them, shortest first.
    pub const ALL: [Self; 4] = [Self::Hour, Self::Day, Self::Week, Self::Month];

    /// As it is written in an address.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
        }
    }

    /// As it is said.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hour => "1 hour",
            Self::Day => "24 hours",
            Self::Week => "7 days",
            Self::Month => "30 days",
        }
    }

    /// What is written in an address.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.name() == name)
    }

    fn ms(self) -> u64 {
        match self {
            Self::Hour => HOUR_MS,
            Self::Day => DAY_MS,
            Self::Week => 7 * DAY_MS,
            Self::Month => 30 * DAY_MS,
        }
    }

    /// The size of the slots that answer it, in milliseconds.
    pub fn slot_ms(self) -> u64 {
        let [minutes, hour, day] = SLOTS_MS;
        match self {
            Self::Hour => minutes,
            Self::Day | Self::Week => hour,
            Self::Month => day,
        }
    }

    /// When it begins: with a whole slot, so that it is up to one slot longer than its name says.
    pub fn start(self, now: u64) -> u64 {
        slot(now.saturating_sub(self.ms()), self.slot_ms())
    }
}

/// The beginning of the slot of a time.
pub fn slot(at: u64, size_ms: u64) -> u64 {
    at - at % size_ms.max(1)
}

/// How long slots of a size are kept, in milliseconds: as long as a range needs them, the largest for `days`, and none
/// for longer than that.
pub fn kept_ms(size_ms: u64, days: u64) -> u64 {
    let needed = Range::ALL.into_iter().filter(|range| range.slot_ms() == size_ms).map(Range::ms).max();
    let ([.., largest], all) = (SLOTS_MS, days * DAY_MS);
    size_ms + if size_ms == largest { all } else { needed.unwrap_or(0).min(all) }
}

/// How much of something was healthy: of results, or of milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// The healthy part.
    pub healthy: u64,
    /// All of it.
    pub total: u64,
}

impl Tally {
    /// The healthy part in percent, with at most two decimals; "no data" of nothing. Rounded down, so that 100 % means
    /// that nothing failed.
    pub fn percent(&self) -> String {
        let hundredths = self.healthy.saturating_mul(10_000) / self.total.max(1);
        let (whole, part) = (hundredths / 100, hundredths % 100);
        match (self.total, part) {
            (0, _) => "no data".to_owned(),
            (_, 0) => format!("{whole} %"),
            (_, part) => format!("{whole}.{part:02} %"),
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { healthy: self.healthy + other.healthy, total: self.total + other.total }
    }
}

/// How much of the time from `from` to `to` a check was healthy, of its changes in the order of their times. The time
/// before the first change is not known, and does not count.
pub fn healthy_time(changes: &[StateChange], from: u64, to: u64) -> Tally {
    let mut tally = Tally::default();
    let ends = changes.iter().skip(1).map(|change| change.at).chain([to]);
    for (change, end) in changes.iter().zip(ends) {
        let length = end.min(to).saturating_sub(change.at.max(from));
        let healthy = if change.healthy { length } else { 0 };
        tally = tally.and(Tally { healthy, total: length });
    }
    tally
}

/// More different reasons than this in one slot are counted as one, [`Reason::Other`].
const MAX_REASONS: usize = 16;

/// The results of one check, region and slot, or of several slots together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sum {
    /// How often each reason was found.
    reasons: Vec<(Reason, u64)>,
    /// When the waterfall's four moments came.
    moments: [Histogram; 4],
}

impl Sum {
    /// Counts a result.
    pub fn add(&mut self, result: &ProbeResult) {
        self.count(&result.reason, 1);
        for (histogram, moment) in self.moments.iter_mut().zip(result.waterfall.moments()) {
            if let Some(ms) = moment {
                histogram.count(bucket(ms), 1);
            }
        }
    }

    /// Counts what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        for (reason, count) in &other.reasons {
            self.count(reason, *count);
        }
        for (histogram, more) in self.moments.iter_mut().zip(&other.moments) {
            for (bucket, count) in &more.0 {
                histogram.count(*bucket, *count);
            }
        }
    }

    /// Counts a reason `count` times.
    pub fn count(&mut self, reason: &Reason, count: u64) {
        if let Some((_, counted)) = self.reasons.iter_mut().find(|(known, _)| known == reason) {
            *counted += count;
        } else if self.reasons.len() < MAX_REASONS {
            self.reasons.push((reason.clone(), count));
        } else if let Some((last, counted)) = self.reasons.last_mut() {
            *last = Reason::Other("Other Failure".to_owned());
            *counted += count;
        }
    }

    /// What failed and how often, the most frequent first.
    pub fn errors(&self) -> Vec<(Reason, u64)> {
        let failed = self.reasons.iter().filter(|(reason, _)| *reason != Reason::NoFailures);
        let mut errors: Vec<_> = failed.cloned().collect();
        errors.sort_by(|(one, more), (other, less)| less.cmp(more).then_with(|| one.cmp(other)));
        errors
    }

    /// Percentiles of the waterfall's four moments.
    pub fn percentiles(&self) -> [Option<Percentiles>; 4] {
        [0, 1, 2, 3].map(|moment| self.moments.get(moment).and_then(Histogram::percentiles))
    }
}

/// Of the times of many probes: half, nine tenths, 99 of a hundred took no longer, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50: u32,
    /// Nine of ten.
    pub p90: u32,
    /// 99 of a hundred.
    pub p99: u32,
}

/// Times, counted in buckets that are exact up to 127 ms and hold 1.6 % of the time above; in the order of the buckets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Histogram(Vec<(u16, u64)>);

impl Histogram {
    fn count(&mut self, bucket: u16, count: u64) {
        match self.0.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => {
                if let Some((_, counted)) = self.0.get_mut(at) {
                    *counted += count;
                }
            }
            Err(at) => self.0.insert(at, (bucket, count)),
        }
    }

    fn percentiles(&self) -> Option<Percentiles> {
        let total: u64 = self.0.iter().map(|(_, count)| count).sum();
        let at = |hundredths: u64| {
            // The smallest time that the wanted number did not exceed.
            let rank = (total * hundredths).div_ceil(100).max(1);
            let mut counted = 0;
            self.0.iter().find_map(|(bucket, count)| {
                counted += count;
                (counted >= rank).then(|| middle(*bucket))
            })
        };
        Some(Percentiles { p50: at(50)?, p90: at(90)?, p99: at(99)? })
    }
}

/// How many buckets each power of two above has, as a power of two.
const PRECISION: u32 = 6;

/// The bucket of a time.
fn bucket(ms: u32) -> u16 {
    let exponent = (u32::BITS - (ms >> (PRECISION + 1)).leading_zeros()).min(u32::BITS);
    (((exponent) << PRECISION) + (ms >> exponent)) as u16
}

/// The time in the middle of a bucket.
fn middle(bucket: u16) -> u32 {
    let bucket = u32::from(bucket);
    let exponent = (bucket >> PRECISION).saturating_sub(1);
    let from = bucket.saturating_sub(exponent << PRECISION).checked_shl(exponent).unwrap_or(u32::MAX);
    from.saturating_add((1 << exponent.min(31)) / 2)
}
