//! A room as operators see it.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Global;
use crate::admission::{Level, StateKey, estimated_wait_seconds};
use crate::config::steered_fields;
use crate::origin::OriginStatus;
use crate::room::{Limits, Mode, QueueingMethod, Room};
use crate::steering::{EventView, OverrideView, UnreadView};
use crate::time::rfc3339;
use crate::time::{minute_of, start_of};

/// What is known of a room at one moment. Times are in milliseconds since the epoch. The first five figures are those that
/// users of the known product know by these names.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, Serialize)]
pub struct RoomStatus {
    /// The room; one that was made at run time by its id.
    pub name: String,
    /// What people call it.
    pub label: String,
    /// The path it covers.
    pub path: String,
    /// The host it covers; `null`: every host.
    pub host: Option<String>,
    /// `not_queueing`, `queueing`, `event_prequeueing` or `suspended`.
    pub status: &'static str,
    /// The event that is on, from its prequeue until its end; empty: none.
    pub event_id: String,
    /// Users who wait.
    pub estimated_queued_users: i64,
    /// Users who are in.
    pub estimated_total_active_users: i64,
    /// How long somebody who comes now will wait, in minutes; 0 where nobody waits, or nobody can tell.
    pub max_estimated_time_minutes: u64,
    /// When this was made.
    pub taken_at: u64,
    /// How old the oldest report is of those that it was made from, in milliseconds.
    pub age_ms: u64,
    /// What happened longer ago than this is counted for certain, in milliseconds: in a calm room that nobody looks at,
    /// workers report seldom.
    pub late_ms: u64,
    /// Whether an operator watches, so that workers report soon.
    pub watched: bool,
    /// As deployed.
    pub total_active_users: u32,
    /// As deployed.
    pub new_users_per_minute: u32,
    /// The limits in force.
    pub limits: Limits,
    /// Every field that can be steered, as it is deployed.
    pub deployed: Map<String, Value>,
    /// Users who could enter by the limit of active users.
    pub slots: i64,
    /// New users of this minute.
    pub new_users_this_minute: i64,
    /// New users of the minute before.
    pub new_users_last_minute: i64,
    /// New users per minute, at the current rate.
    pub entering_per_minute: f64,
    /// Nobody new enters.
    pub queue_all: bool,
    /// The room is off.
    pub suspended: bool,
    /// Whoever waits passes: the room only observes.
    pub observing: bool,
    /// While it does: the part of the visitors for whom it is on all the same, 0 to 1.
    pub enforce_share: f64,
    /// Nobody new enters: the origin is unhealthy.
    pub held: bool,
    /// The order of those who wait.
    pub queueing_method: QueueingMethod,
    /// In minutes.
    pub session_duration: u32,
    /// In seconds.
    pub refresh_interval_seconds: u32,
    /// The message that all waiting visitors see; may be empty.
    pub message: String,
    /// `calm`, `busy` or `queueing`.
    pub level: &'static str,
    /// Workers that reported lately.
    pub workers: u32,
    /// `prequeueing`, `active`, or `null`.
    pub event_phase: Option<&'static str>,
    /// When the next event starts.
    pub next_event_start_time: Option<String>,
    /// When its prequeue begins.
    pub next_event_prequeue_start_time: Option<String>,
    /// The room's events.
    pub events: Vec<EventView>,
    /// What passed through the room to its origin in the last minute.
    pub origin: OriginView,
    /// Who waits, oldest first.
    pub buckets: Vec<BucketView>,
    /// Each colo that has reported.
    pub colos: Vec<ColoView>,
    /// What operators have changed.
    pub steering: SteeringSummary,
    /// Why something is not known.
    pub error: Option<String>,
    /// What workers decide by.
    pub state: StateView,
}

/// The state key as operators see it. It is no part of what workers and objects say to each other, so either may change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateView {
    /// When it was made, in milliseconds since the epoch.
    pub taken_at: u64,
    /// The minute that the counts are for.
    pub minute: u32,
    /// Active users, by the reports that have come in.
    pub active: i64,
    /// Width of a step of `expiring`, in milliseconds.
    pub step: u64,
    /// How many of `active` will have expired after each step, cumulative.
    pub expiring: Vec<u32>,
    /// How many expire within one refresh.
    pub expiring_refresh: u32,
    /// How many expire within 60 seconds.
    pub expiring_minute: u32,
    /// Users admitted with a number of the minute.
    pub admitted: i64,
    /// The same of the minute after it, by objects whose clock is ahead.
    pub admitted_next: i64,
    /// Users admitted without a number.
    pub unnumbered: i64,
    /// Numbers of earlier minutes that may have been given and are not reported yet.
    pub carry: i64,
    /// Users admitted per ten minutes, at the current rate.
    pub entering: u32,
    /// Waiting users by bucket, oldest first.
    pub waiting: Vec<(u32, u32)>,
    /// Of `waiting`, how many will probably check in again.
    pub present: Vec<u32>,
    /// Workers that reported lately.
    pub all_workers: u32,
    /// How near the room is to its limits.
    pub level: Level,
    /// Until when all reports are in, in milliseconds since the epoch.
    pub covered: u64,
    /// Under `leases`: minute, users who entered with a permit of it, and without one.
    pub recent: Vec<(u32, i64, i64)>,
    /// Users who would leave a full room in ten minutes; 0: not known.
    pub leaving: u32,
    /// Of a million waiting users, how many give up in a second.
    pub giving_up: u32,
    /// The limits in force, where they are not those that are configured.
    pub limits: Option<Limits>,
    /// Nobody new enters: the origin is unhealthy.
    pub held: bool,
}

impl From<StateKey> for StateView {
    fn from(state: StateKey) -> Self {
        Self {
            taken_at: state.taken_at,
            minute: state.minute,
            active: state.active,
            step: state.step,
            expiring: state.expiring,
            expiring_refresh: state.expiring_refresh,
            expiring_minute: state.expiring_minute,
            admitted: state.admitted,
            admitted_next: state.admitted_next,
            unnumbered: state.unnumbered,
            carry: state.carry,
            entering: state.entering,
            waiting: state.waiting,
            present: state.present,
            all_workers: state.all_workers,
            level: state.level,
            covered: state.covered,
            recent: state.recent,
            leaving: state.leaving,
            giving_up: state.giving_up,
            limits: state.limits,
            held: state.held,
        }
    }
}

/// Those who wait since one minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BucketView {
    /// The minute, since the epoch.
    pub bucket: u32,
    /// Its beginning.
    pub since: u64,
    /// A lottery has put them there: they came in any minute of its prequeue.
    pub drawn: bool,
    /// How many wait.
    pub users: u32,
    /// How many of them will probably check in again.
    pub present: u32,
    /// How long they will wait yet; `null`: nobody can tell.
    pub wait_seconds: Option<u64>,
}

/// What a colo last reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColoView {
    /// Its code.
    pub colo: String,
    /// When its last report came.
    pub reported_at: u64,
    /// How long ago that was, in milliseconds.
    pub age_ms: u64,
    /// Active users; below zero where they were seen elsewhere since: the sum is right.
    pub active: i64,
    /// Waiting users.
    pub waiting: i64,
    /// New users of this minute.
    pub new_users_this_minute: i64,
    /// New users of the minute before.
    pub new_users_last_minute: i64,
    /// Workers that reported lately.
    pub workers: u32,
    /// A report that was announced has not come.
    pub cut_off: bool,
    /// The version of what operators have changed that is in force there.
    pub steering: u32,
}

/// What operators have changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SteeringSummary {
    /// The version in force.
    pub version: u32,
    /// The overrides.
    pub overrides: Vec<OverrideView>,
    /// Events with other times than deployed.
    pub events: Vec<EventView>,
    /// In how many awake colos this version is in force.
    pub colos_in_force: usize,
    /// How many colos are awake.
    pub colos: usize,
    /// What is stored of it and cannot be read; `null`: all is read.
    pub unread: Option<UnreadView>,
}

/// What passed through the room to its origin in the last 60 seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OriginView {
    /// The limits in force.
    pub limits: Limits,
    /// How many health checks speak for it.
    pub checks: usize,
    /// Whether new users wait because it is unhealthy.
    pub held: bool,
    /// The check that says so.
    pub unhealthy_check: Option<String>,
    /// Since when.
    pub unhealthy_since: Option<u64>,
    /// Requests that were answered.
    pub answered: u64,
    /// Of these, with an error.
    pub failed: u64,
    /// Requests that were not answered in time.
    pub timed_out: u64,
    /// Requests that the guard did not send.
    pub refused: u64,
    /// Median time to the first byte, in milliseconds.
    pub first_byte_p50_ms: Option<u64>,
    /// The 95th percentile.
    pub first_byte_p95_ms: Option<u64>,
    /// Requests at the origin now.
    pub in_flight: u64,
}

impl OriginView {
    fn new(room: &Room, status: OriginStatus) -> Self {
        let counts = &status.last_minute;
        let (unhealthy_check, unhealthy_since) = status.unhealthy.unzip();
        Self {
            limits: status.limits,
            checks: room.health_checks.len(),
            held: status.held,
            unhealthy_check,
            unhealthy_since,
            answered: counts.answered(),
            failed: counts.failed,
            timed_out: counts.timed_out,
            refused: counts.refused,
            first_byte_p50_ms: counts.quantile_ms(0.5).map(|ms| ms as u64),
            first_byte_p95_ms: counts.quantile_ms(0.95).map(|ms| ms as u64),
            in_flight: counts.in_flight,
        }
    }
}

impl Global {
    /// The room as operators see it at `now`. `deployed` is the room as it is deployed, with its events.
    pub fn status(&mut self, deployed: &Room, now: u64) -> RoomStatus {
        let steered = deployed.steered(self.overrides());
        let (room, phase) = steered.at(now);
        let minute = minute_of(now);
        let state = self.state(room, None, minute, now);
        let (in_force, colos) = self.in_force(now);
        let event_phase = phase.event().map(|_| if room.prequeue { "prequeueing" } else { "active" });
        let waiting = state.waiting_users();
        let status = if room.suspended {
            "suspended"
        } else if room.prequeue {
            "event_prequeueing"
        } else if waiting > 0 || room.queue_all {
            "queueing"
        } else {
            "not_queueing"
        };
        let refresh = room.refresh_interval_seconds;
        let longest =
            (waiting > 0).then(|| estimated_wait_seconds(room, &state, minute, refresh, now)).flatten();
        let events = self.steering().event_views(deployed, now);
        let next = steered.next_event(now);
        let new_users = |minute: u32| self.new_users(minute);
        let reported = self.oldest_report(now).unwrap_or(now);
        RoomStatus {
            name: deployed.name.clone(),
            label: deployed.label().to_owned(),
            path: deployed.path.clone(),
            host: deployed.host.clone(),
            status,
            event_id: phase.event().map(|event| event.name.clone()).unwrap_or_default(),
            estimated_queued_users: waiting,
            estimated_total_active_users: state.active,
            max_estimated_time_minutes: longest.unwrap_or(0).div_ceil(60),
            taken_at: now,
            age_ms: now.saturating_sub(reported),
            late_ms: now.saturating_sub(state.covered),
            watched: state.watched,
            total_active_users: deployed.total_active_users,
            new_users_per_minute: deployed.new_users_per_minute,
            limits: state.limits(room),
            deployed: steered_fields()
                .filter_map(|field| Some((field.name.to_owned(), field.value(deployed)?)))
                .collect(),
            slots: (state.most_active(room) - state.active).max(0),
            new_users_this_minute: new_users(minute),
            new_users_last_minute: new_users(minute.saturating_sub(1)),
            entering_per_minute: f64::from(state.entering) / 10.0,
            queue_all: room.queue_all,
            suspended: room.suspended,
            observing: room.mode == Mode::Observe,
            enforce_share: room.enforce_share.part(),
            held: state.held,
            queueing_method: room.queueing_method,
            session_duration: room.session_duration,
            refresh_interval_seconds: room.refresh_interval_seconds,
            message: room.page.message.clone(),
            level: match state.level {
                Level::Calm => "calm",
                Level::Busy => "busy",
                Level::Queueing => "queueing",
            },
            workers: self.active_workers(now),
            event_phase,
            next_event_start_time: next.map(|event| rfc3339(event.start)),
            next_event_prequeue_start_time: next.and_then(|event| event.prequeue).map(rfc3339),
            origin: OriginView::new(room, self.origin_status(room, now)),
            buckets: buckets(&steered, room, &state, now),
            colos: self.colo_views(room, now),
            steering: SteeringSummary {
                version: self.steering().version,
                overrides: self.steering().override_views(deployed, now),
                events: events.iter().filter(|event| event.steered).cloned().collect(),
                colos_in_force: in_force,
                colos,
                unread: self.steering().unread(),
            },
            events,
            error: None,
            state: state.into(),
        }
    }
}

/// `whole` is the room with its events, `room` what it is now.
fn buckets(whole: &Room, room: &Room, state: &StateKey, now: u64) -> Vec<BucketView> {
    let present = |index: usize, users: u32| state.present.get(index).copied().unwrap_or(users);
    let waiting = state.waiting.iter().enumerate();
    waiting
        .map(|(index, (bucket, users))| BucketView {
            bucket: *bucket,
            since: start_of(*bucket),
            drawn: whole.lottery(*bucket).is_some(),
            users: *users,
            present: present(index, *users),
            wait_seconds: estimated_wait_seconds(room, state, *bucket, room.refresh_interval_seconds, now),
        })
        .collect()
}
