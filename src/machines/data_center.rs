//! `DATA_CENTER`: one colo's workers. Its alarm pushes to Global.

use super::{COLD_START_FACTOR, Call, Context, CurrentRoom, Effect, Input, NO_ROUTE, ObjectMachine, Stored};
use crate::admission::{StateKey, minute_of};
use crate::counts::{self, SavedDataCenter};
use crate::protocol::messages::{Given, StateAnswer, StateRequest, Take, VERSION, WorkerReport, colo_object};
use crate::protocol::{Answer, Request, records};
use crate::room::Room;

/// The storage key.
const SAVED: &str = "data_center";
/// Timeout of a push to Global, in milliseconds.
const PUSH_DEADLINE_MS: u64 = 2_000;
/// Timeout of a question to Global, in tenths of the time for which a visitor's call waits: without an answer visitors are judged
/// by what operators had ordered long ago.
const ASK_TENTHS: u64 = 8;
/// A data center that would have to ask Global again so soon pushes, in milliseconds: then it is told.
const ASK_AGAIN_MS: u64 = 10_000;
/// Timeout of a call to the Counter next door, in milliseconds.
const COUNTER_DEADLINE_MS: u64 = 500;
/// Retry interval of what the Counter must be told, in milliseconds.
const COUNTER_AGAIN_MS: u64 = 500;
/// An alarm that is late by this time is set once more, in milliseconds.
const LATE_ALARM_MS: u64 = 5_000;
/// The shortest time between pushes by alarm, in milliseconds.
const LEAST_WAIT_MS: u64 = 10;

/// A push under way.
#[derive(Debug)]
enum Push {
    /// The Counter is asked how many numbers it gave.
    AsksCounter(u64, Box<SavedDataCenter>),
    /// A push to Global.
    Tells(u64),
}

/// Adds up a colo's workers and reports to Global.
#[derive(Debug)]
pub struct DataCenter {
    counts: counts::DataCenter,
    /// What is stored was not written by newer code. Else workers keep what they report: nothing of it is in storage.
    may_write: bool,
    rooms: CurrentRoom,
    /// When the alarm fires, as far as this instance knows.
    alarm_at: Option<u64>,
    push: Option<Push>,
    /// The platform's alarm waits for the push.
    alarm_waits: bool,
    /// The call that asks Global for the state, when it left, and who waits for it.
    asking: Option<(u64, u64)>,
    listeners: Vec<u64>,
    /// The version of operators' changes that the Counter has been told, and the call that tells it of a newer one.
    counter_told: u32,
    telling: Option<(u64, u32)>,
    tell_again_at: u64,
    calls: u64,
}

impl DataCenter {
    /// A data center at its start. `instance` is random: it distinguishes this start from others.
    pub fn restore(room: &Room, colo: &str, stored: &Stored, instance: u64, now: u64) -> Self {
        let found: records::Found<SavedDataCenter> = records::found(stored, SAVED);
        let may_write = found.may_be_replaced();
        let counts = counts::DataCenter::restore(room.at(now).0, colo, instance, found.record, now);
        Self {
            may_write,
            counter_told: counts.overrides().version,
            telling: None,
            tell_again_at: 0,
            counts,
            rooms: CurrentRoom::default(),
            alarm_at: None,
            push: None,
            alarm_waits: false,
            asking: None,
            listeners: Vec::new(),
            calls: 0,
        }
    }

    /// What it has counted.
    pub fn counts(&self) -> &counts::DataCenter {
        &self.counts
    }

    fn report(&mut self, context: &Context<'_>, from: u64, report: &WorkerReport, effects: &mut Vec<Effect>) {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let room = whole.at(now).0;
        let mut answer = self.counts.receive(room, report, now);
        answer.durable = self.counts.durable(report.worker);
        if self.push.is_none() && self.counts.is_due(room, now) {
            // The worker asks once more whether it is stored, and hears then what is new.
            self.push(context, effects);
        } else if self.counts.stores_at_once(room, report, now) {
            self.store(room, now, effects);
            answer.durable = self.counts.durable(report.worker);
        }
        self.plan_push(context, effects);
        effects.push(Effect::Reply { to: from, answer: Answer::DataCenterReport(Box::new(answer)) });
    }

    /// Sends a worker the state key; asks Global before, if nobody would have told of what operators have changed since.
    fn tell(&mut self, context: &Context<'_>, from: u64, effects: &mut Vec<Effect>) {
        let now = context.now;
        if !self.counts.must_ask(now) {
            self.reply_state(from, now, effects);
            return;
        }
        self.listeners.push(from);
        if self.asking.is_none() {
            let asked = StateRequest {
                v: VERSION,
                minute: minute_of(now),
                given: None,
                colo: context.colo.to_owned(),
                leases: 0,
            };
            let request = Request::GlobalState(Box::new(asked));
            let deadline_ms = COLD_START_FACTOR * context.deadline_ms * ASK_TENTHS / 10;
            let number = self.call(context.room.name.clone(), request, deadline_ms, effects);
            self.asking = Some((number, now));
        }
    }

    fn reply_state(&mut self, from: u64, now: u64, effects: &mut Vec<Effect>) {
        self.counts.asked(now);
        let state = StateAnswer { v: VERSION, state: self.counts.state(now) };
        effects.push(Effect::Reply { to: from, answer: Answer::DataCenterState(Box::new(state)) });
    }

    fn call(&mut self, name: String, request: Request, deadline_ms: u64, effects: &mut Vec<Effect>) -> u64 {
        self.calls += 1;
        effects.push(Effect::Call(Call { number: self.calls, name, request, deadline_ms }));
        self.calls
    }

    fn refresh(&mut self, context: &Context<'_>, key: StateKey, effects: &mut Vec<Effect>) {
        self.counts.told(key, context.now);
        self.store_as_it_is(context, effects);
        self.plan_push(context, effects);
    }

    fn store_as_it_is(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        let whole = self.rooms.with(context.room, self.counts.overrides());
        self.store(whole.at(context.now).0, context.now, effects);
    }

    /// Stores the counts, if they have changed.
    fn store(&mut self, room: &Room, now: u64, effects: &mut Vec<Effect>) -> SavedDataCenter {
        let saved = self.counts.save(room, now);
        if self.may_write
            && self.counts.is_unsaved(now)
            && let Ok(bytes) = records::write(&saved)
        {
            effects.push(Effect::Store { key: SAVED.to_owned(), bytes, background: false });
            self.counts.saved(&saved);
        }
        saved
    }

    /// Stores the counts and pushes them to Global, unless a push is in flight.
    fn push(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        if self.push.is_some() {
            return;
        }
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let room = whole.at(context.now).0;
        let saved = self.store(room, context.now, effects);
        if room.slot_strategy.owns_shares() {
            let name = colo_object(&room.name, context.colo);
            let request = Request::CounterGiven(Box::new(()));
            let number = self.call(name, request, COUNTER_DEADLINE_MS, effects);
            self.push = Some(Push::AsksCounter(number, Box::new(saved)));
        } else {
            self.tell_global(context, &saved, None, effects);
        }
    }

    fn tell_global(
        &mut self,
        context: &Context<'_>,
        saved: &SavedDataCenter,
        given: Option<Given>,
        effects: &mut Vec<Effect>,
    ) {
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let report = self.counts.push(whole.at(context.now).0, saved, given, context.now);
        let request = Request::GlobalPush(Box::new(report));
        let number = self.call(context.room.name.clone(), request, PUSH_DEADLINE_MS, effects);
        self.push = Some(Push::Tells(number));
    }

    fn pushed(&mut self, context: &Context<'_>, answer: Option<Answer>, effects: &mut Vec<Effect>) {
        self.push = None;
        match answer {
            Some(Answer::GlobalPush(answer)) => {
                let whole = self.rooms.with(context.room, self.counts.overrides());
                self.counts.pushed(whole.at(context.now).0, answer.state, context.now);
            }
            _ => self.counts.push_failed(),
        }
        self.plan_push(context, effects);
        if std::mem::take(&mut self.alarm_waits) {
            effects.push(Effect::AlarmDone);
        }
    }

    /// Tells the Counter what operators have changed: a worker that could not be told would let people in with permits that lie
    /// there. It gives them back.
    fn tell_counter(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        if context.room.slot_strategy.counts_alone() {
            self.counter_told = self.counts.overrides().version;
        }
        if !self.must_tell_counter() || context.now < self.tell_again_at {
            return;
        }
        let steering = self.counts.overrides().clone();
        let version = steering.version;
        let take = Take::new(Vec::new(), steering);
        let name = colo_object(&context.room.name, context.colo);
        let number = self.call(name, Request::CounterTake(Box::new(take)), COUNTER_DEADLINE_MS, effects);
        self.telling = Some((number, version));
    }

    fn must_tell_counter(&self) -> bool {
        self.telling.is_none() && self.counts.overrides().version > self.counter_told
    }

    /// Sets the alarm for the next push, unless it fires earlier anyway: then it is set on. Each time costs as much as a record.
    /// While a push is under way, the next one is planned again at its end.
    fn plan_push(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.counts.overrides());
        let Some(wait) = self.counts.next_push(whole.at(now).0, now) else { return };
        let at = now + wait.max(if self.push.is_some() { PUSH_DEADLINE_MS } else { LEAST_WAIT_MS });
        if self.alarm_at.is_none_or(|alarm| alarm > at || alarm + LATE_ALARM_MS < now) {
            self.alarm_at = Some(at);
            effects.push(Effect::SetAlarm { at });
        }
    }
}

impl ObjectMachine for DataCenter {
    fn handle(&mut self, context: &Context<'_>, input: Input, effects: &mut Vec<Effect>) {
        let now = context.now;
        match input {
            Input::Asked { from, request: Request::DataCenterReport(report) } => {
                self.report(context, from, &report, effects);
            }
            Input::Asked { from, request: Request::DataCenterState(_) } => self.tell(context, from, effects),
            Input::Asked { from, request: Request::DataCenterRefresh(told) } => {
                if let Some(key) = told.state {
                    self.refresh(context, key, effects);
                }
                effects.push(Effect::Reply { to: from, answer: Answer::DataCenterRefresh(Box::new(())) });
            }
            Input::Asked { from, .. } => {
                effects.push(Effect::Refuse { to: from, status: 404, reason: NO_ROUTE });
            }
            Input::Answered { call, answer } => match self.push.take() {
                Some(Push::AsksCounter(number, saved)) if number == call => {
                    let given = match answer {
                        Some(Answer::CounterGiven(given)) => Some(*given),
                        _ => None,
                    };
                    self.tell_global(context, &saved, given, effects);
                }
                Some(Push::Tells(number)) if number == call => self.pushed(context, answer, effects),
                push => {
                    self.push = push;
                    if let Some((_, version)) = self.telling.take_if(|(number, _)| *number == call) {
                        if answer.is_some() {
                            self.counter_told = version;
                        }
                        self.tell_again_at = now + COUNTER_AGAIN_MS;
                    } else if let Some((_, asked_at)) = self.asking.take_if(|(number, _)| *number == call) {
                        if let Some(Answer::GlobalState(answer)) = answer
                            && let Some(key) = answer.state
                        {
                            self.counts.answered(key, asked_at, now);
                            if self.counts.must_ask(now + ASK_AGAIN_MS) {
                                // Global does not know this colo: it would not be told of operators' changes.
                                self.push(context, effects);
                            }
                        }
                        for from in std::mem::take(&mut self.listeners) {
                            self.reply_state(from, now, effects);
                        }
                    }
                }
            },
            Input::Timer | Input::Global(_) => {}
            Input::Alarm => {
                self.alarm_at = None;
                let whole = self.rooms.with(context.room, self.counts.overrides());
                let wait = self.counts.next_push(whole.at(now).0, now);
                if wait.is_some_and(|wait| wait <= LEAST_WAIT_MS) {
                    self.push(context, effects);
                }
                // Whatever happens to this push, another one follows: the platform rings again if this object ends before it
                // is done.
                self.plan_push(context, effects);
                self.alarm_waits = self.push.is_some();
                if !self.alarm_waits {
                    effects.push(Effect::AlarmDone);
                }
            }
        }
        if self.counts.must_store_trust(now) {
            // The next start need not ask Global what this one was told.
            self.store_as_it_is(context, effects);
        }
        self.tell_counter(context, effects);
    }

    /// All else that it waits for comes by itself: calls end, and the alarm fires.
    fn next_timer(&self) -> Option<u64> {
        self.must_tell_counter().then_some(self.tell_again_at)
    }
}
