//! `GLOBAL`: the room as all colos see it, what operators change of it, its history, and its notifications.

mod deliveries;
mod history;
mod jobs;
#[cfg(not(worker))]
mod memory_rows;
mod notifications;
mod pushes;
mod rows;
mod steering;
mod watching;

use std::rc::Rc;

pub use deliveries::{Attempt, Outcome};
#[cfg(not(worker))]
pub use memory_rows::MemoryRows;
pub use notifications::Words;
pub use pushes::PushAttempt;
pub use rows::{Kept, NotificationRow, PendingRow, ReceiverRow, Rows, RowsError, Series, SubscriptionRow};

use super::{Context, CurrentRoom, Effect, Input, NO_ROUTE, ObjectMachine, Stored};
use crate::admission::minute_of;
use crate::config::Webhooks;
use crate::counts::{self, EndedEverywhere, GlobalMeta, MovePlace, Moves, OriginMemory, PlaceMoved};
use crate::notifications::Detector;
use crate::protocol::messages::{ColoReport, OperatorAnswer, OriginHealth, StateAnswer, UNWATCHED, VERSION};
use crate::protocol::records::{self, Found};
use crate::protocol::{Answer, Request};
use crate::room::Room;
use crate::steering::Steering;
use deliveries::Deliveries;
use jobs::{Job, Plans};
use notifications::Lookout;
use pushes::Pushes;
use steering::{Telling, Waiting};
use watching::Watching;

/// The storage key of what is not a colo's report.
const META: &str = "meta";
/// The storage key of what is known of the origin.
const ORIGIN: &str = "origin";
/// The storage key of the places that have moved to other devices.
const MOVES: &str = "moves";
/// The storage key of what operators have changed. It stands there as JSON: values of several kinds.
pub(super) const STEERING: &str = "steering";
/// The storage key of what of it could not be read and an operator has cleared.
const STEERING_SET_ASIDE: &str = "steering_set_aside";
/// Storage keys of the colos' reports begin so.
const COLO: &str = "colo/";
/// Retry interval of a job that has failed, in milliseconds.
const AGAIN_MS: u64 = 5_000;
/// Time until a report is stored, in milliseconds, unless a newer one comes before that is needed. For this time after
/// a start they are stored at once: an instance that restarts again and again would never store one, and would know too
/// few users. So is at any time a report that no other one follows soon.
const STORE_MS: u64 = 5_000;

/// Global's inputs besides messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GlobalInput {
    /// An operator wants to be told whenever the status changes, over a WebSocket. Answered with
    /// [`GlobalEffect::Accept`], or refused.
    Joined {
        /// The number for the answer.
        from: u64,
        /// When the operator's session is over, in milliseconds since the epoch; `None`: it has no end.
        ends: Option<u64>,
    },
    /// The sockets that are open now, each by the end of its session: told when one has closed or been accepted, and
    /// when the alarm has rung.
    Sockets(Vec<Option<u64>>),
    /// A message to a webhook has been answered, or not.
    Attempted {
        /// The attempt's number.
        number: u64,
        /// What came of it.
        outcome: Outcome,
    },
    /// A push service has answered, or not.
    Pushed {
        /// The attempt's number.
        number: u64,
        /// What came of it.
        outcome: Outcome,
    },
}

/// What Global does besides what all objects do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GlobalEffect {
    /// Accepts a WebSocket, and sends it a text.
    Accept {
        /// The number that came with it.
        to: u64,
        /// The text.
        text: String,
    },
    /// Sends a text over all open sockets.
    Broadcast {
        /// The text.
        text: String,
    },
    /// Closes the sockets whose session is over.
    EndSessions {
        /// At this time, in milliseconds since the epoch.
        until: u64,
    },
    /// Sends a message to a webhook. What comes of it is the input [`GlobalInput::Attempted`].
    Attempt(Box<Attempt>),
    /// Sends a visitor a push message. What comes of it is the input [`GlobalInput::Pushed`].
    Push(Box<PushAttempt>),
}

/// What Global is given at its start, besides what is stored under keys.
#[derive(Debug)]
pub struct Outside {
    /// Its tables.
    pub rows: Box<dyn Rows>,
    /// The webhooks of the deployment.
    pub webhooks: Webhooks,
    /// The names of those whose address and secret are known. The others are sent nothing.
    pub reachable: Vec<String>,
    /// The owner has keys for push messages.
    pub pushes: bool,
    /// Makes words of notifications.
    pub words: Words,
    /// The sockets that have outlived the object's memory, by the ends of their sessions.
    pub sockets: Vec<Option<u64>>,
    /// A random number: many rooms may have one receiver, and they should not all come back at once.
    pub random: u64,
}

/// Keeps every colo's last report and answers with what they say together.
#[derive(Debug)]
pub struct Global {
    counts: counts::Global,
    rooms: CurrentRoom,
    rows: Box<dyn Rows>,
    plans: Plans,
    calls: u64,
    started_at: u64,
    /// The colos that are being updated, and the operators who wait for that.
    telling: Vec<Telling>,
    waiting: Vec<Waiting>,
    watching: Watching,
    lookout: Lookout,
    deliveries: Deliveries,
    pushes: Pushes,
    /// The hours before this one are summed up, and what is too old is deleted.
    summed_up: u32,
    /// The last minute was not recorded by newer code.
    records_history: bool,
    /// Keys that are not written to, because newer code has.
    kept: Vec<String>,
    /// Sessions that were ended, for all colos to know.
    ended: EndedEverywhere,
}

/// Why a message is not answered.
struct Refused {
    status: u16,
    reason: &'static str,
}

impl From<RowsError> for Refused {
    fn from(_: RowsError) -> Self {
        Self { status: 500, reason: "storage has failed" }
    }
}

impl Global {
    /// A Global at its start, with what it stored before.
    ///
    /// # Errors
    /// When its tables cannot be read.
    pub fn restore(room: &Rc<Room>, stored: &Stored, outside: Outside, now: u64) -> Kept<Self> {
        let Outside { rows, webhooks, reachable, pushes, words, sockets, random } = outside;
        let steering = stored.get(STEERING).map(|stored| Steering::read(stored)).unwrap_or_default();
        let mut rooms = CurrentRoom::default();
        let whole = rooms.with(room, &steering.overrides());
        let at = whole.at(now).0;
        let reports = stored.range(COLO.to_owned()..).take_while(|(key, _)| key.starts_with(COLO));
        let mut kept = Vec::new();
        let reports: Vec<ColoReport> = reports.filter_map(|(key, _)| take(stored, key, &mut kept)).collect();
        let meta: Option<GlobalMeta> = take(stored, META, &mut kept);
        let mut counts = counts::Global::restore(at, meta, reports, now);
        let last_minute = history::last_minute(rows.as_ref())?;
        let records_history = last_minute.may_be_replaced();
        counts.recall_history(last_minute.record);
        counts.recall(take::<OriginMemory>(stored, ORIGIN, &mut kept).unwrap_or_default());
        counts.recall_moves(take::<Moves>(stored, MOVES, &mut kept).unwrap_or_default());
        counts.recall_steering(steering);
        let found: Found<Detector> = Found::new(rows.detector()?.as_deref());
        let stores_detector = found.may_be_replaced();
        let detector = found.record.unwrap_or_default();
        let thresholds = webhooks.thresholds(&room.name);
        let deliveries = Deliveries::restore(&room.name, webhooks, reachable, random, rows.as_ref())?;
        let pushes = Pushes::restore(pushes, rows.as_ref())?;
        let mut plans = Plans::default();
        for (job, at) in [
            (Job::End, counts.steering().next_end()),
            // Some may not know of the last order.
            (Job::Tell, (!counts.colos_to_tell(at, now).is_empty()).then_some(now)),
            (Job::Record, counts.next_record(at, now)),
            // What the alarm was set for is forgotten: it may have been an event.
            (Job::Notify, (!room.events.is_empty()).then_some(now)),
            (Job::Notify, detector.look_again_at()),
            (Job::Deliver, deliveries.next_attempt()),
            (Job::Push, pushes.next_look(now)),
        ] {
            if let Some(at) = at {
                plans.plan(job, at);
            }
        }
        Ok(Self {
            counts,
            rooms,
            rows,
            plans,
            calls: 0,
            started_at: now,
            telling: Vec::new(),
            waiting: Vec::new(),
            watching: Watching::of(sockets),
            lookout: Lookout { detector, stores_detector, thresholds, looked_at: 0, words },
            deliveries,
            pushes,
            summed_up: 0,
            records_history,
            kept,
            ended: EndedEverywhere::new(now),
        })
    }

    /// What it has counted.
    pub fn counts(&self) -> &counts::Global {
        &self.counts
    }

    /// Answers a message; `None`: the answer follows.
    fn asked(
        &mut self,
        context: &Context<'_>,
        from: u64,
        request: Request,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Answer>, Refused> {
        let now = context.now;
        Ok(Some(match request {
            Request::GlobalPush(report) => Answer::GlobalPush(self.push(context, *report, effects)?),
            Request::GlobalState(asked) => {
                let colo = Some(asked.colo.as_str()).filter(|colo| !colo.is_empty());
                if let Some(given) = asked.given {
                    self.counts.anywhere_gave(given);
                }
                if let Some(colo) = colo {
                    self.counts.answered(colo, now);
                }
                Answer::GlobalState(self.state(context, colo, asked.minute, asked.leases, effects)?)
            }
            Request::GlobalMove(ask) => {
                Answer::GlobalMove(Box::new(self.move_place(context, &ask, effects)?))
            }
            Request::GlobalOriginHealth(told) => {
                self.origin_health(context, &told, effects)?;
                Answer::GlobalOriginHealth(Box::new(()))
            }
            Request::GlobalOrigin(_) => {
                let whole = self.rooms.with(context.room, self.counts.overrides());
                Answer::GlobalOrigin(Box::new(self.counts.origin_status(whole.at(now).0, now)))
            }
            Request::GlobalStatus(asked) => {
                if asked.query != UNWATCHED {
                    self.look_at(context, effects);
                }
                Answer::GlobalStatus(Box::new(operator_answer(200, self.status_text(context))))
            }
            Request::GlobalSteer(asked) => return Ok(self.steer(context, from, &asked, effects)?),
            Request::GlobalAudit(asked) => {
                Answer::GlobalAudit(Box::new(self.audit(&context.room.name, &asked)?))
            }
            Request::GlobalNotifications(asked) => {
                Answer::GlobalNotifications(Box::new(self.show_notifications(context, &asked.query)?))
            }
            Request::GlobalHistory(asked) => {
                Answer::GlobalHistory(Box::new(self.show_history(context, &asked.query.bounded())?))
            }
            Request::GlobalSubscribe(asked) => {
                Answer::GlobalSubscribe(Box::new(self.subscribe(*asked, now)?))
            }
            Request::GlobalTotals(_) => Answer::GlobalTotals(Box::new(self.show_totals())),
            _ => return Err(Refused { status: 404, reason: NO_ROUTE }),
        }))
    }

    fn push(
        &mut self,
        context: &Context<'_>,
        mut report: ColoReport,
        effects: &mut Vec<Effect>,
    ) -> Result<Box<StateAnswer>, Refused> {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let (colo, version) = (report.colo.clone(), self.counts.overrides().version);
        let (is_new, is_followed) = (now < self.started_at + STORE_MS, report.is_followed());
        self.ended.learn(&std::mem::take(&mut report.ended), now);
        let news = self.ended.after(report.heard);
        if !self.counts.receive(whole.at(now).0, report, now) {
            return Err(Refused { status: 507, reason: "there is no room for another colo" });
        }
        if is_new || !is_followed {
            self.store_reports(is_new, now, effects);
        }
        self.plans.plan(Job::Store, now + STORE_MS);
        if self.counts.overrides().version != version {
            self.plans.plan(Job::Tell, now);
        }
        self.changed(now, effects);
        let mut answer = self.state(context, Some(&colo), minute_of(now), 0, effects)?;
        if let Some(key) = &mut answer.state {
            key.ended = news;
        }
        Ok(answer)
    }

    /// The state key for a colo, or for Anywhere. `leases`: how often Anywhere was called.
    fn state(
        &mut self,
        context: &Context<'_>,
        colo: Option<&str>,
        minute: u32,
        leases: u64,
        effects: &mut Vec<Effect>,
    ) -> Kept<Box<StateAnswer>> {
        let now = context.now;
        self.is_watched(now, effects);
        let whole = self.rooms.with(context.room, self.counts.overrides());
        self.counts.called(leases, now);
        let key = self.counts.state(whole.at(now).0, colo, minute, now);
        self.store_meta(effects);
        if self.looks_now(now) {
            self.find_notifications(context, &key, effects)?;
        }
        Ok(Box::new(StateAnswer { v: VERSION, state: Some(key) }))
    }

    /// Moves a place to another device, and stores that before the answer.
    fn move_place(
        &mut self,
        context: &Context<'_>,
        ask: &MovePlace,
        effects: &mut Vec<Effect>,
    ) -> Result<PlaceMoved, Refused> {
        if self.kept.iter().any(|kept| kept == MOVES) {
            // It could not be remembered.
            return Err(Refused { status: 503, reason: "newer code has moved places" });
        }
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let (outcome, moves) = self.counts.move_place(whole.at(context.now).0, ask, context.now);
        store(&self.kept, MOVES, moves, effects);
        Ok(PlaceMoved { v: VERSION, outcome })
    }

    /// Takes in what a health check says.
    fn origin_health(
        &mut self,
        context: &Context<'_>,
        told: &OriginHealth,
        effects: &mut Vec<Effect>,
    ) -> Kept<()> {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.counts.overrides());
        if self.counts.origin_health(whole.at(now).0, told, now) {
            self.store_origin(effects);
            self.changed(now, effects);
            self.look_for_notifications(context, effects)?;
        }
        Ok(())
    }

    /// Stores what the colos have reported since the last time.
    fn store_reports(&mut self, all: bool, now: u64, effects: &mut Vec<Effect>) {
        let kept = &self.kept;
        let put = |report: &ColoReport| store(kept, &format!("{COLO}{}", report.colo), report, effects);
        if self.counts.store_reports(all, now, put) {
            self.plans.plan(Job::Store, now + STORE_MS);
        }
        self.store_origin(effects);
        for colo in self.counts.reports_to_delete() {
            effects.push(Effect::Delete { key: format!("{COLO}{colo}") });
        }
    }

    fn store_origin(&mut self, effects: &mut Vec<Effect>) {
        if let Some(origin) = self.counts.origin_to_store() {
            store(&self.kept, ORIGIN, &origin, effects);
        }
    }

    /// Once a minute: who owns which number must be stored before any answer says so.
    fn store_meta(&mut self, effects: &mut Vec<Effect>) {
        if let Some(meta) = self.counts.meta_to_store() {
            store(&self.kept, META, &meta, effects);
            self.counts.meta_stored();
        }
    }

    /// Does the jobs that are due.
    fn ring(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        self.plans.rang();
        for job in Job::ALL {
            if !self.plans.take_due(job, context.now) {
                continue;
            }
            // One job's failure must not hold up the others.
            let next = self.do_job(job, context, effects);
            if let Some(next) = next.unwrap_or(Some(context.now + AGAIN_MS)) {
                self.plans.plan(job, next);
            }
        }
        if let Some(next) = self.next_record(context) {
            self.plans.plan(Job::Record, next);
        }
    }

    /// Does a job. Returns when it has more to do, if nothing else plans that.
    fn do_job(&mut self, job: Job, context: &Context<'_>, effects: &mut Vec<Effect>) -> Kept<Option<u64>> {
        match job {
            // It was done before anything else.
            Job::End => return Ok(self.counts.steering().next_end()),
            Job::Tell => {
                self.tell_colos(context, effects);
            }
            Job::SendStatus => self.send_status(context, effects),
            Job::Store => self.store_reports(false, context.now, effects),
            Job::Record => self.record(context, effects)?,
            Job::Notify => return self.look_without_reports(context, effects),
            Job::Deliver => return self.deliver(context, effects),
            Job::Push => return self.push_to_visitors(context, effects),
        }
        Ok(None)
    }

    fn handle_own(&mut self, context: &Context<'_>, input: GlobalInput, effects: &mut Vec<Effect>) {
        match input {
            GlobalInput::Joined { from, ends } => self.join(context, from, ends, effects),
            GlobalInput::Sockets(sockets) => {
                self.watching.sockets_are(sockets);
                self.is_watched(context.now, effects);
            }
            GlobalInput::Attempted { number, outcome } => {
                if self.attempted(context, number, outcome, effects).is_err() {
                    self.plans.plan(Job::Deliver, context.now + AGAIN_MS);
                }
            }
            GlobalInput::Pushed { number, outcome } => {
                if self.pushed(number, &outcome, context.now).is_err() {
                    self.plans.plan(Job::Push, context.now + AGAIN_MS);
                }
            }
        }
    }
}

impl ObjectMachine for Global {
    fn handle(&mut self, context: &Context<'_>, input: Input, effects: &mut Vec<Effect>) {
        let first = effects.len();
        self.end_overrides(context, effects);
        match input {
            Input::Asked { from, request } => match self.asked(context, from, request, effects) {
                Ok(Some(answer)) => effects.push(Effect::Reply { to: from, answer }),
                Ok(None) => {}
                Err(Refused { status, reason }) => effects.push(Effect::Refuse { to: from, status, reason }),
            },
            Input::Answered { call, answer } => self.told(context, call, answer.is_some(), effects),
            Input::Timer => self.answer_operators(context, effects),
            Input::Alarm => {
                self.ring(context, effects);
                effects.push(Effect::AlarmDone);
            }
            Input::Global(input) => self.handle_own(context, input, effects),
        }
        if let Some(at) = self.plans.next_alarm(context.now) {
            // What leaves the object leaves it when the alarm is set.
            effects.insert(first, Effect::SetAlarm { at });
        }
    }

    fn next_timer(&self) -> Option<u64> {
        self.waiting.iter().map(|waiting| waiting.until).min()
    }
}

/// What is stored under a key. What newer code has written there is kept.
fn take<T: records::Record>(stored: &Stored, key: &str, kept: &mut Vec<String>) -> Option<T> {
    let found = records::found(stored, key);
    if !found.may_be_replaced() {
        kept.push(key.to_owned());
    }
    found.record
}

/// Stores under a key, unless what is there is kept.
fn store<T: records::Record>(kept: &[String], key: &str, record: &T, effects: &mut Vec<Effect>) {
    if let Ok(bytes) = records::write(record)
        && !kept.iter().any(|kept| kept == key)
    {
        effects.push(Effect::Store { key: key.to_owned(), bytes, background: false });
    }
}

/// An operator's answer.
fn operator_answer(status: u16, body: String) -> OperatorAnswer {
    OperatorAnswer { v: VERSION, status, body }
}
