//! Times: milliseconds since the epoch, minutes, and RFC 3339.

use std::time::{Duration, UNIX_EPOCH};

/// Milliseconds in a minute.
pub const MINUTE_MS: u64 = 60_000;

/// The last second of the year 9999, in milliseconds: what is later cannot be written.
const LATEST: u64 = 253_402_300_799_000;

/// How far behind its latest time a clock may go before that is believed, in milliseconds: tickets from later than that are
/// none.
const BRIDGED_MS: u64 = 10_000;

/// A clock that does not go back. Where the platform's does, a little, this one goes on from the latest time that it has said,
/// as a clock that is ahead: else nothing would be due until the other has caught up, reports among them, and what is
/// young would seem to stay so.
#[derive(Debug, Clone, Copy, Default)]
pub struct Steady {
    latest: u64,
    ahead: u64,
}

impl Steady {
    /// A clock that nobody has read yet.
    pub const fn new() -> Self {
        Self { latest: 0, ahead: 0 }
    }

    /// The time, when the platform's clock says `clock`; both in milliseconds since the epoch.
    pub fn read(&mut self, clock: u64) -> u64 {
        let ahead = self.latest.saturating_sub(clock).max(self.ahead);
        self.ahead = if ahead <= BRIDGED_MS { ahead } else { 0 };
        self.latest = clock + self.ahead;
        self.latest
    }

    /// What the platform's clock says at a time by this one. What others read who share the platform's clock is said by that:
    /// each one's own may be ahead of it by something else.
    pub fn platform_time(&self, time: u64) -> u64 {
        time.saturating_sub(self.ahead)
    }

    /// What this clock says at a time by the platform's.
    pub fn own_time(&self, platform_time: u64) -> u64 {
        platform_time.saturating_add(self.ahead)
    }
}

/// The minute that a time belongs to: whole minutes since the epoch. It is also the bucket of whoever comes in it
/// (2021 article, "Clustering").
pub fn minute_of(now_ms: u64) -> u32 {
    (now_ms / MINUTE_MS) as u32
}

/// The first millisecond of a minute.
pub fn start_of(minute: u32) -> u64 {
    u64::from(minute) * MINUTE_MS
}

/// A time in milliseconds since the epoch as RFC 3339 has it, in UTC and whole seconds.
pub fn rfc3339(time: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(time.min(LATEST));
    humantime::format_rfc3339_seconds(time).to_string()
}

/// A time in milliseconds since the epoch: RFC 3339, or as the platform writes it, `2022-03-03 17:05:00 +0000 UTC`.
pub fn milliseconds(text: &str) -> Option<u64> {
    let text = text.strip_suffix("UTC").unwrap_or(text).trim_end();
    let text = text.strip_suffix('Z').unwrap_or(text);
    // Behind the date, whose parts are joined by hyphens too.
    let sign = text.get(19..)?.find(['+', '-']);
    let (clock, east_of_utc_ms) = match sign {
        None => (text, 0),
        Some(at) => (text.get(..19 + at)?, offset_ms(text.get(19 + at..)?)?),
    };
    let time = humantime::parse_rfc3339_weak(clock.trim_end()).ok()?;
    let milliseconds = i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?;
    u64::try_from(milliseconds - east_of_utc_ms).ok()
}

/// How far `+0100` or `-01:00` is ahead of UTC, in milliseconds.
fn offset_ms(text: &str) -> Option<i64> {
    let digits: String = text.get(1..)?.split(':').collect();
    let (hours, minutes) = digits.split_at_checked(2)?;
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let ms = (hours * 60 + minutes) * 60_000;
    (hours < 24 && minutes < 60).then_some(if text.starts_with('-') { -ms } else { ms })
}
