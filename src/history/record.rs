//! What is kept of a minute or an hour.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::classes::{CLASSES, bound_ms, middle_ms};
use super::tallies::Count;
use crate::slots::SlotCounts;
use crate::time::start_of;
use crate::wire::VERSION;

/// In a record, users who entered after waiting stand here, by the class of the time that they waited.
pub const WAITS: u64 = 64;
/// In a record, users whose session ended stand here, by the class of the time from entering to the last request.
pub const ENDED: u64 = 128;

/// A minute of a room, or several minutes summed up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Record {
    /// Format version.
    pub v: u8,
    /// How many minutes it sums up; silent ones have no record.
    pub minutes: u32,
    /// Users who were active at the end of the minute, summed up.
    pub active: u64,
    /// The most who were seen active at once.
    pub active_max: u64,
    /// Visitors who waited at the end of the minute, summed up.
    pub waiting: u64,
    /// The most who were seen waiting at once.
    pub waiting_max: u64,
    /// How many more could have been active at the end of the minute, summed up.
    pub slots: u64,
    /// The limit of active users in force, summed up.
    pub total_active_users: u64,
    /// The limit of new users in force, summed up.
    pub new_users_per_minute: u64,
    /// What happened: by [`Count`], and the classes of times from `WAITS` and `ENDED` on.
    pub tallies: SlotCounts,
}

impl Record {
    /// How much of something was counted.
    pub fn count(&self, count: Count) -> u64 {
        self.tallies.get(count.code()).max(0) as u64
    }

    /// Visitors who came: those who entered at once, and those who began to wait.
    pub fn newcomers(&self) -> u64 {
        (self.count(Count::NewUsers) + self.count(Count::Joins)).saturating_sub(self.count(Count::Waited))
    }

    /// All calls to objects.
    pub fn object_calls(&self) -> u64 {
        use Count::{AnywhereCalls, CounterCalls, DataCenterCalls, GlobalCalls};
        [CounterCalls, AnywhereCalls, DataCenterCalls, GlobalCalls].iter().map(|kind| self.count(*kind)).sum()
    }

    /// Sums up another one with it.
    pub fn add(&mut self, other: &Self) {
        self.v = VERSION;
        self.minutes += other.minutes;
        self.active += other.active;
        self.active_max = self.active_max.max(other.active_max);
        self.waiting += other.waiting;
        self.waiting_max = self.waiting_max.max(other.waiting_max);
        self.slots += other.slots;
        self.total_active_users += other.total_active_users;
        self.new_users_per_minute += other.new_users_per_minute;
        self.tallies.merge(&other.tallies, 1);
    }
}

/// A colo's part of a minute.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Part {
    /// Which colo.
    pub colo: String,
    /// Users who were active at its end.
    pub active: u64,
    /// Visitors who waited at its end.
    pub waiting: u64,
    /// Users who entered.
    pub new_users: u64,
    /// Visitors who began to wait.
    pub joins: u64,
    /// Waiting visitors who left without having entered.
    pub leavers: u64,
    /// Sessions that the origin ended.
    pub revoked: u64,
    /// Requests that went past the room.
    pub bypassed: u64,
    /// Workers that reported at its end.
    pub workers: u64,
}

impl Part {
    /// Whether there is nothing to tell.
    pub fn is_silent(&self) -> bool {
        *self == Self { colo: self.colo.clone(), ..Self::default() }
    }
}

/// What is kept of a recorded minute besides its record: its colos' parts, and all that is needed to go on from there
/// after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Minute {
    /// Format version.
    pub v: u8,
    /// Which minute.
    pub minute: u32,
    /// The colos' parts.
    pub parts: Vec<Part>,
    /// Users who were active at its end.
    pub active: u64,
    /// Visitors who waited at its end.
    pub waiting: u64,
    /// Visits whose last request was in this minute or before are recorded.
    pub visits_until: u32,
    /// By minute and [`Count`]: what is recorded of the last minutes.
    pub recorded: SlotCounts,
    /// All that was ever counted, as in [`Record::tallies`].
    pub ever: SlotCounts,
    /// Users who have left lately, and the minutes that users stayed beyond a session: by both Global knows after a restart
    /// how fast users leave.
    #[serde(default)]
    pub left: (u64, u64),
}

/// What was counted since the room's first day, up to the last minute that is settled. Each number only grows, whatever
/// restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Up to when, in milliseconds since the epoch.
    pub until: u64,
    /// The counts.
    pub record: Record,
}

impl Totals {
    /// The totals with a recorded minute.
    pub fn of(last: &Minute) -> Self {
        let record = Record { v: VERSION, tallies: last.ever.clone(), ..Record::default() };
        Self { until: start_of(last.minute + 1), record }
    }

    /// As JSON. `waits`: users by the time that they waited, each with the upper bound of its class in seconds (`null`: none),
    /// not cumulative; `visits`: the same by the time from entering to the last request.
    pub fn json(&self) -> Value {
        let count = |count: Count| self.record.count(count);
        let users = |base: u64, class: u8| self.record.tallies.get(base + u64::from(class)).max(0);
        let classes = |base: u64| -> Vec<Value> {
            (0..CLASSES as u8)
                .map(|class| json!([bound_ms(class).map(|ms| f64::from(ms) / 1_000.0), users(base, class)]))
                .collect()
        };
        // Of a visit only the class is known: it is taken for its middle.
        let visited: f64 =
            (0..CLASSES as u8).map(|class| users(ENDED, class) as f64 * middle_ms(class)).sum::<f64>();
        let mut json = Map::new();
        for (name, number) in [
            ("until", self.until),
            ("new_users", count(Count::NewUsers)),
            ("joins", count(Count::Joins)),
            ("leavers", count(Count::Leavers)),
            ("revoked", count(Count::Revoked)),
            ("bypassed", count(Count::Bypassed)),
            ("fallbacks", count(Count::Fallbacks)),
            ("counter_calls", count(Count::CounterCalls)),
            ("anywhere_calls", count(Count::AnywhereCalls)),
            ("data_center_calls", count(Count::DataCenterCalls)),
            ("global_calls", count(Count::GlobalCalls)),
            ("rehearsal_new_users", count(Count::RehearsalNewUsers)),
            ("rehearsal_joins", count(Count::RehearsalJoins)),
            ("observed_joins", count(Count::ObservedJoins)),
            ("waited", count(Count::Waited)),
            ("waited_seconds", count(Count::WaitedSeconds)),
        ] {
            json.insert(name.to_owned(), number.into());
        }
        json.insert("visited_seconds".to_owned(), ((visited / 1_000.0) as u64).into());
        json.insert("waits".to_owned(), classes(WAITS).into());
        json.insert("visits".to_owned(), classes(ENDED).into());
        json.into()
    }
}
