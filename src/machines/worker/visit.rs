//! A request of a visitor who is not in.
//!
//! What is in the cache is looked at; the data center is asked for updates, if that is due; the visitor is judged, by
//! asking the Counter or the pool where that is needed; and whoever has to wait is told by a state key that is not too
//! old. Questions and judgement wait side by side: a new visitor waits for the slower one, not for both; and for the
//! judgement only, where a worker knows nothing yet and the Counter says that there are no updates.

use std::rc::Rc;

use super::{Asking, Task, Worker, WorkerContext, WorkerEffect, WorkerInput};
use crate::admission::{
    Draw, Level, NumberAsk, Outcome as Judgement, Progress, Step, Whom, awaited_ms, estimated_wait_seconds,
    likely_ahead, next_check_in_seconds, next_draw_seconds, queue_bucket, random_wait_seconds,
};
use crate::answer::{self, Estimate};
use crate::check_in::{CheckIn, Seen};
use crate::machines::COLD_START_FACTOR;
use crate::protocol::Answer;
use crate::room::{Phase, QueueingMethod, Room};
use crate::ticket::{Human, Standing, Ticket, standing, ticket_id};
use crate::time::minute_of;
use crate::turnstile::Verdict;

/// What the question for updates is called among a visit's calls.
const REFRESH_CALL: u64 = 0;

/// How often a visitor asks again whose call failed.
const ASKS_AGAIN: u32 = 1;

/// So much earlier than told is not early, in milliseconds: clocks differ.
const EARLY_MS: u64 = 500;
/// A newer state key may say that the slot for which a request waits is free so much later, in milliseconds.
const SLOT_LATER_MS: u64 = 50;

/// Who comes, and what the request brings.
#[derive(Debug, Clone, Default)]
pub struct Visitor {
    /// The tickets that open: browsers may send several.
    pub tickets: Vec<Ticket>,
    /// Random: the id of a new ticket.
    pub id: u64,
    /// Random, from 0 to 1: spreads the next check-in.
    pub random: f64,
    /// The address, as a key, where the owner wants one place per address; else 0.
    pub address: u64,
    /// Whether the visitor has to be shown to be a person.
    pub verification: Verification,
    /// The visitor is one of a rehearsal.
    pub rehearsal: bool,
    /// The wait that the visitor's page shows, in seconds, where it says so.
    pub shown_seconds: Option<u64>,
}

/// Whether Turnstile has a say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verification {
    /// The room has none.
    #[default]
    None,
    /// Whoever is not known to be a person is not counted. `brought`: the request brings a token to verify.
    Required {
        /// Whether there is a token.
        brought: bool,
    },
    /// The service is away: nobody has to show anything. `brought` as above.
    Away {
        /// Whether there is a token.
        brought: bool,
    },
}

/// What comes of a visit.
#[derive(Debug)]
pub enum Outcome {
    /// The room is switched off: to the origin, and no room is concerned.
    Suspended,
    /// The visitor is in: to the origin. `changed`: the ticket was moved on.
    Admitted {
        /// The ticket.
        ticket: Ticket,
        /// Whether the visitor has to be given it.
        changed: bool,
        /// Has entered just now.
        enters: bool,
    },
    /// The visitor is turned away.
    Refused,
    /// The place has moved on to another device.
    Moved,
    /// The visitor waits.
    Waiting(Waiting),
}

/// What a waiting visitor sees.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is told to the visitor by itself")]
pub struct Waiting {
    /// The ticket to give, with this check-in.
    pub ticket: Ticket,
    /// Has brought a ticket.
    pub known: bool,
    /// How long it will take.
    pub estimate: Estimate,
    /// People ahead, where that may be shown.
    pub people_ahead: Option<u64>,
    /// The place in line was drawn by lot.
    pub drawn: bool,
    /// In how many seconds to come again.
    pub refresh_seconds: u32,
    /// The origin is unhealthy, and nobody enters.
    pub held: bool,
    /// The lot, where the order is random.
    pub draw: Option<Draw>,
    /// The token that came along could not be judged: it is to be brought again.
    pub bring_again: bool,
}

/// How a visitor was judged.
#[derive(Debug, Clone, Copy)]
struct Judged {
    ticket: Ticket,
    standing: Standing,
    /// The ticket was brought along.
    known: bool,
    /// Was counted among those who wait, at the last check-in.
    counted: bool,
    draw: Option<Draw>,
    step: Step,
}

/// What the judgement waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The cache, before anything else.
    Cache,
    /// Turnstile's word.
    Verification,
    /// Updates, before somebody asks who waits.
    Updates,
    /// The slot that will be free for somebody who waits.
    Slot { until: u64 },
    /// Numbers or permits.
    Batch { whom: Whom, ask: NumberAsk, place: u64, give_up_at: u64, call: Option<u64> },
    /// Nothing: it is done.
    Judged,
    /// The cache, and then the data center, for a state key to answer from.
    TellsByCache,
    /// See above.
    TellsByCall,
    /// Everything is said.
    Over,
}

/// How a visit comes to know of updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refresh {
    /// It knows, or does not have to.
    Done,
    /// It has asked the data center.
    Asks,
    /// Another request asks just now.
    Waits,
}

/// A request's way. See [`worker`](super).
#[derive(Debug)]
pub struct Visit {
    visitor: Visitor,
    /// The room with its events.
    room: Rc<Room>,
    /// The version of what operators have changed that is in it.
    version: u32,
    stage: Stage,
    refresh: Refresh,
    judged: Option<Judged>,
    /// Has been judged by updates too.
    again: bool,
    /// Has asked for a place, and for the turn of the address.
    claims: bool,
    calls: u64,
    /// When it asked for a slot: in how many seconds the visitor is to check in again, if there is none.
    told_seconds: Option<u32>,
    /// This visit calls for a batch: the batch's number, its addresses, and since when.
    lead: Option<(u64, Vec<u64>, u64)>,
    /// How often it has asked again, because a call failed.
    asked_again: u32,
    /// A token came along, and nobody has judged it.
    unjudged: bool,
}

impl Visit {
    /// A visit of a room, with its events as operators have it as far as is known.
    pub fn new(visitor: Visitor, room: Rc<Room>) -> Self {
        let unjudged = matches!(
            visitor.verification,
            Verification::Required { brought: true } | Verification::Away { brought: true }
        );
        Self {
            visitor,
            room,
            stage: Stage::Cache,
            refresh: Refresh::Done,
            judged: None,
            version: 0,
            again: false,
            claims: false,
            calls: REFRESH_CALL,
            told_seconds: None,
            lead: None,
            asked_again: 0,
            unjudged,
        }
    }

    /// The room with its events by which the visitor was judged.
    pub fn room(&self) -> &Rc<Room> {
        &self.room
    }

    /// Handles an input and adds effects. After [`WorkerEffect::Done`] it takes no more inputs.
    pub fn handle(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        input: WorkerInput,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let now = context.now;
        match (self.stage, input) {
            (Stage::Cache, WorkerInput::Begin) => {
                let closed = self.room.at(worker.time(now)).0.is_closed();
                if !closed && worker.controller.begin_cache_read(now) {
                    effects.push(WorkerEffect::ReadCache);
                } else {
                    self.start(worker, context, effects);
                }
            }
            (Stage::Cache, WorkerInput::Cached(found)) => {
                if let Some(found) = found {
                    worker.learn(*found, now);
                }
                self.start(worker, context, effects);
            }
            (Stage::TellsByCache, WorkerInput::Cached(found)) => {
                if let Some(found) = found {
                    worker.learn(*found, now);
                }
                self.tell_by_call(worker, context, effects);
            }
            (Stage::Verification, WorkerInput::Verified(verdict)) => {
                self.verified(worker, context, &verdict, effects);
            }
            (Stage::TellsByCall, WorkerInput::Answered { answer, .. }) => {
                worker.learn_answer(answer, now, effects);
                self.tell(worker, context, effects);
            }
            (_, WorkerInput::Answered { call: REFRESH_CALL, answer }) => {
                let answered = worker.learn_answer(answer, now, effects);
                worker.controller.end_refresh(answered, now);
                self.refresh = Refresh::Done;
                self.finish(worker, context, effects);
            }
            (Stage::Batch { whom, call: Some(own), .. }, WorkerInput::Answered { call, answer })
                if own == call =>
            {
                self.lay_down(worker, whom, answer, now);
                self.poll_batch(worker, context, effects);
            }
            (_, WorkerInput::Time) => {
                if self.refresh == Refresh::Waits && !worker.controller.is_refreshing(worker.deadline_ms, now)
                {
                    self.look_for_updates(worker, now, effects);
                    self.finish(worker, context, effects);
                }
                match self.stage {
                    Stage::Batch { call: None, .. } => self.poll_batch(worker, context, effects),
                    Stage::Slot { until } if now >= until => self.ask(worker, context, effects),
                    _ => {}
                }
            }
            _ => {}
        }
        self.wait(worker, now, effects);
    }

    /// Says until when to wait, if this visit waits for what others bring.
    fn wait(&self, worker: &mut Worker, now: u64, effects: &mut Vec<WorkerEffect>) {
        if let Stage::Slot { until } = self.stage {
            return effects.push(WorkerEffect::Sleep { until });
        }
        let batch = match self.stage {
            Stage::Batch { whom, place, give_up_at, call: None, .. } => {
                let evenly = worker.calls_evenly(whom);
                Some(worker.batch(whom).poll_at(place, evenly).min(give_up_at))
            }
            _ => None,
        };
        let refresh =
            (self.refresh == Refresh::Waits).then(|| worker.controller.refresh_ends(worker.deadline_ms));
        if let Some(until) = batch.into_iter().chain(refresh).min() {
            effects.push(WorkerEffect::Await { until: until.max(now + 1) });
        }
    }

    /// What the cache has is known: asks for updates if that is due, and judges.
    fn start(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let now = context.now;
        self.visitor.id = ticket_id(self.visitor.id, &worker.colo);
        self.renew(worker);
        if self.room.at(worker.time(now)).0.suspended {
            return self.done(Outcome::Suspended, effects);
        }
        self.look_for_updates(worker, now, effects);
        self.judge(worker, context, effects);
    }

    /// Asks for updates if that is due, or waits for somebody who does.
    fn look_for_updates(&mut self, worker: &mut Worker, now: u64, effects: &mut Vec<WorkerEffect>) {
        self.refresh = if worker.controller.is_latest(self.version, now) {
            Refresh::Done
        } else if worker.controller.begin_refresh(now) {
            // Where nothing is known the data center may have to be made first.
            let factor = if worker.controller.state().is_some() { 1 } else { COLD_START_FACTOR };
            effects.push(worker.state_call(REFRESH_CALL, factor * worker.deadline_ms, now));
            Refresh::Asks
        } else if worker.controller.is_refreshing(worker.deadline_ms, now) {
            Refresh::Waits
        } else {
            Refresh::Done
        };
    }

    /// Takes up what operators have changed meanwhile. Returns whether there was something.
    fn renew(&mut self, worker: &mut Worker) -> bool {
        let (room, version) = (worker.room(), worker.controller.overrides().version);
        // Where all changes were taken back the room is the deployed one again, but a Counter may have permits of before.
        let changed = !Rc::ptr_eq(&room, &self.room) || version != self.version;
        (self.room, self.version) = (room, version);
        changed
    }

    fn done(&mut self, outcome: Outcome, effects: &mut Vec<WorkerEffect>) {
        self.stage = Stage::Over;
        self.refresh = Refresh::Done;
        effects.push(WorkerEffect::Done(Box::new(outcome)));
    }

    /// The bucket in which a ticket stands in the queue.
    fn bucket(&self, context: &WorkerContext<'_>, ticket: &Ticket) -> u32 {
        queue_bucket(&self.room, context.draw_key, ticket.bucket, ticket.id)
    }

    /// Where the visitor stands, and, unless that is inside, what else is known before anybody is asked.
    fn judge(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let whole = Rc::clone(&self.room);
        let time = worker.time(context.now);
        let room = whole.at(time).0;
        let has_moved = |ticket: &Ticket| worker.has_moved(ticket);
        if let Some(ticket) = self.visitor.tickets.first().copied()
            && self.visitor.tickets.iter().all(has_moved)
        {
            let (standing, draw, step) = (Standing::New, None, Step::Wait);
            self.judged = Some(Judged { ticket, standing, known: true, counted: false, draw, step });
            self.stage = Stage::Judged;
            return self.finish(worker, context, effects);
        }
        self.visitor.tickets.retain(|ticket| !has_moved(ticket));
        let standing = best(&self.visitor.tickets, room, time);
        let before = self.judged.map(|judged| judged.ticket);
        let (ticket, known) = match standing {
            // By the colo's own clock the visitor is in after all.
            Standing::Active(ticket) => {
                let (draw, step) = (None, Step::Pass);
                self.judged = Some(Judged { ticket, standing, known: true, counted: false, draw, step });
                self.stage = Stage::Judged;
                return self.finish(worker, context, effects);
            }
            Standing::Waiting(ticket) => (ticket, true),
            Standing::New => (Ticket::new(self.visitor.id, time), false),
        };
        let mut draw = worker.controller.draw(room, context.draw_key, &standing, time);
        if let Some(draw) = draw.as_mut().filter(|_| known && before.is_none()) {
            draw.wins &= worker.chances.take(room, ticket.id, time);
        }
        let counted = known && !ticket.uncounted;
        let mut judged = Judged { ticket, standing, known, counted, draw, step: Step::Wait };
        if let Some(before) = before {
            // Nobody is tested twice.
            judged.ticket.human = before.human;
        } else if self.unjudged && known && ticket.human != Human::Passed {
            // Whoever has no ticket has not got the token from our page either, and may find room without it.
            self.judged = Some(judged);
            self.stage = Stage::Verification;
            effects.push(WorkerEffect::Verify);
            return;
        }
        self.judged = Some(judged);
        self.ask(worker, context, effects);
    }

    fn verified(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        verdict: &Verdict,
        effects: &mut Vec<WorkerEffect>,
    ) {
        self.unjudged = matches!(verdict, Verdict::Silent(_));
        if self.unjudged {
            // As where the service is away: for this request, and nothing of it is in the ticket.
            self.visitor.verification = Verification::Away { brought: true };
        }
        if let Some(judged) = &mut self.judged {
            judged.ticket.human = verdict.human(judged.ticket.human);
        }
        self.ask(worker, context, effects);
    }

    /// The first step of somebody who is not in.
    fn ask(&mut self, worker: &mut Worker, context: &mut WorkerContext<'_>, effects: &mut Vec<WorkerEffect>) {
        let Some(judged) = self.judged else { return };
        let whole = Rc::clone(&self.room);
        let time = worker.time(context.now);
        let room = whole.at(time).0;
        let mut has_room = || room.origin_guard.is_none() || context.origin.has_room(context.now);
        let step = if room.turns_away() {
            Step::Refuse
        } else if judged.known && !is_counted(room, self.visitor.verification, &judged.ticket)
            || judged.draw.is_some_and(|draw| !draw.wins)
            || self.comes_early(worker, time) > 0
            || !has_room()
        {
            // Not for robots; or it was no winning number; or the visitor was told to ask later; or the origin has enough
            // to do with those who are in.
            Step::Wait
        } else if let Some(stage) = self.awaits(worker, context) {
            self.stage = stage;
            return;
        } else {
            self.claims = true;
            if worker.addresses.claim(self.address(room), judged.ticket.id, time) == 0 {
                let standing = self.standing(context);
                let step = (worker.judge)(&mut worker.controller, room, &standing, judged.ticket.id, time);
                if step == Step::Wait && worker.controller.begin_giving_back() {
                    effects.push(WorkerEffect::Start(Task::give_back()));
                }
                step
            } else {
                Step::Wait
            }
        };
        self.step(worker, context, step, effects);
    }

    /// What somebody who waits awaits before asking: updates, if what is known is too old to say whether the turn has come, or when it
    /// will; and the slot, if it will be free in a moment.
    fn awaits(&self, worker: &Worker, context: &WorkerContext<'_>) -> Option<Stage> {
        let Standing::Waiting(ticket) = self.judged?.standing else { return None };
        let now = context.now;
        match worker.controller.state().filter(|state| state.says_what_to_ask(now)) {
            None => (self.refresh != Refresh::Done).then_some(Stage::Updates),
            Some(_) if matches!(self.stage, Stage::Slot { .. }) => None,
            Some(state) => {
                let room = self.room.at(worker.time(now)).0;
                let bucket = self.bucket(context, &ticket);
                let ms = awaited_ms(room, &state.key, bucket, state.global_time(now));
                (ms > 0).then_some(Stage::Slot { until: now + ms + SLOT_LATER_MS })
            }
        }
    }

    /// The ticket of a visitor who has a chance at each check-in only, because others wait as well: whoever asks more often
    /// would be there more often when a slot is free. Where the order is random, a draw says so.
    fn has_chances(&self, worker: &Worker) -> Option<Ticket> {
        let Judged { ticket, known, draw, .. } = self.judged?;
        let others_wait = worker.controller.level() == Level::Queueing;
        (known && draw.is_none() && others_wait).then_some(ticket)
    }

    /// How much sooner than told such a visitor checks in, in milliseconds.
    fn comes_early(&self, worker: &Worker, time: u64) -> u64 {
        let Some(ticket) = self.has_chances(worker) else { return 0 };
        let told = ticket.last_check_in + chance_ms(ticket.refresh_seconds.into());
        told.max(worker.chances.next(ticket.id)).saturating_sub(time)
    }

    /// How long such a visitor, who asks now, has no other chance if there is no slot, in milliseconds; else 0.
    fn next_chance_ms(&mut self, worker: &Worker, context: &WorkerContext<'_>) -> u32 {
        let Some(ticket) = self.has_chances(worker) else { return 0 };
        let seconds = self.next_check_in(worker, context, &ticket, true);
        self.told_seconds = Some(seconds);
        chance_ms(seconds) as u32
    }

    /// In how many seconds a visitor who waits in order of arrival is to check in again. `known`: has come back once.
    fn next_check_in(
        &self,
        worker: &Worker,
        context: &WorkerContext<'_>,
        ticket: &Ticket,
        known: bool,
    ) -> u32 {
        let time = worker.time(context.now);
        let state = worker.controller.state_to_check_in_by(context.now);
        let global_time = state.map_or(time, |state| state.global_time(context.now));
        let key = state.map(|state| &state.key);
        let bucket = self.bucket(context, ticket);
        next_check_in_seconds(self.room.at(time).0, key, bucket, known, global_time, self.visitor.random)
    }

    /// The standing, with the bucket in which the visitor stands in the queue.
    fn standing(&self, context: &WorkerContext<'_>) -> Standing {
        match self.judged.map(|judged| judged.standing) {
            Some(Standing::Waiting(ticket)) => {
                Standing::Waiting(Ticket { bucket: self.bucket(context, &ticket), ..ticket })
            }
            Some(standing) => standing,
            None => Standing::New,
        }
    }

    /// The address that a newcomer claims; 0: none.
    fn address(&self, room: &Room) -> u64 {
        let known = self.judged.is_some_and(|judged| judged.known);
        if room.one_place_per_address && !known { self.visitor.address } else { 0 }
    }

    /// Does a step: asks whom it says, or goes on with what it decides.
    fn step(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        step: Step,
        effects: &mut Vec<WorkerEffect>,
    ) {
        if let Step::Ask(whom, ask) = step {
            let now = context.now;
            let room = Rc::clone(&self.room);
            let address = self.address(room.at(worker.time(now)).0);
            let next_ms = self.next_chance_ms(worker, context);
            let asking = Asking { ask, address, next_ms };
            let Some(place) = worker.batch(whom).join(asking) else {
                return self.answered(worker, context, (whom, ask), None, effects);
            };
            let give_up_at = now + 2 * worker.take_deadline_ms(whom, now);
            self.stage = Stage::Batch { whom, ask, place, give_up_at, call: None };
            return self.poll_batch(worker, context, effects);
        }
        let whole = Rc::clone(&self.room);
        let time = worker.time(context.now);
        let address = self.address(whole.at(time).0);
        let claims = self.claims;
        if let Some(judged) = &mut self.judged {
            judged.step = step;
            if claims {
                judged.ticket.uncounted = worker.addresses.holder(address, judged.ticket.id, time) != 0;
            }
        }
        self.stage = Stage::Judged;
        self.finish(worker, context, effects);
    }

    /// Looks whether its answer is there, or whether it has to call for all who wait.
    fn poll_batch(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let now = context.now;
        let Stage::Batch { whom, ask, place, give_up_at, .. } = self.stage else { return };
        let evenly = worker.calls_evenly(whom);
        match worker.batch(whom).poll(place, evenly, now) {
            Progress::Done(outcome) => self.answered(worker, context, (whom, ask), outcome, effects),
            Progress::Lead(batch, asks) => {
                let asks: Vec<Asking> = asks.into_iter().map(|(_, asking)| asking).collect();
                self.lead = Some((batch, asks.iter().map(|asking| asking.address).collect(), now));
                self.calls += 1;
                effects.push(worker.take_call(self.calls, whom, &asks, now));
                self.stage = Stage::Batch { whom, ask, place, give_up_at, call: Some(self.calls) };
            }
            Progress::Later if now >= give_up_at => {
                self.answered(worker, context, (whom, ask), None, effects);
            }
            Progress::Later => {
                self.stage = Stage::Batch { whom, ask, place, give_up_at, call: None };
            }
        }
    }

    /// The call of a batch has ended: lays the answers down for all.
    fn lay_down(&mut self, worker: &mut Worker, whom: Whom, answer: Option<Answer>, now: u64) {
        let Some((batch, addresses, since)) = self.lead.take() else { return };
        if worker.is_last(whom) {
            if answer.is_some() {
                worker.round_trip.answered(since, now);
            } else {
                worker.round_trip.failed(since);
            }
        }
        let outcomes = worker.taken(whom, &addresses, answer, now);
        worker.batch(whom).finish(batch, outcomes, now);
    }

    /// Goes on with the answer to an ask.
    fn answered(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        asked: (Whom, NumberAsk),
        outcome: Option<Judgement>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let whole = Rc::clone(&self.room);
        let time = worker.time(context.now);
        let room = whole.at(time).0;
        let is_last = worker.is_last(asked.0);
        let most = match outcome {
            // It may have been replaced just now, or wait for its storage. It remembers whom it has given a permit.
            None if is_last && !worker.round_trip.is_dead(context.now) => ASKS_AGAIN,
            // On its way the minute has ended for which it counts: in this one it would be one too many. Calls may have failed before.
            Some(Judgement::Given { minute, .. }) if minute < minute_of(time) => ASKS_AGAIN + 1,
            _ => 0,
        };
        if self.asked_again < most {
            self.asked_again += 1;
            return self.step(worker, context, Step::Ask(asked.0, asked.1), effects);
        }
        let step = if worker.is_taken(self.address(room), self.visitor.id, context.now) {
            Step::Wait
        } else {
            let standing = self.standing(context);
            worker.controller.answered(room, &standing, asked, outcome, time)
        };
        self.step(worker, context, step, effects);
    }

    /// Acts, once the judgement is there and updates are known.
    fn finish(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        if self.stage == Stage::Updates && self.refresh == Refresh::Done {
            return self.ask(worker, context, effects);
        }
        if self.stage != Stage::Judged {
            return;
        }
        if self.refresh != Refresh::Done {
            // Who has a permit needs only to know that the room is as it was judged by.
            let has_permit = |judged: Judged| matches!(judged.step, Step::Enter { numbered: true, .. });
            if !self.judged.is_some_and(has_permit) || !worker.controller.is_latest(self.version, context.now)
            {
                return;
            }
            if self.refresh == Refresh::Asks {
                worker.controller.leave_refresh();
            }
            self.refresh = Refresh::Done;
        }
        if !self.again && self.renew(worker) {
            self.again = true;
            if self.room.at(worker.time(context.now)).0.suspended {
                return self.done(Outcome::Suspended, effects);
            }
            // Once more, by what an operator has changed just now.
            return self.judge(worker, context, effects);
        }
        let Some(judged) = self.judged else { return };
        let whole = Rc::clone(&self.room);
        let now = context.now;
        let time = worker.time(now);
        let room = whole.at(time).0;
        let ticket = judged.ticket;
        if worker.has_moved(&ticket) {
            return self.done(Outcome::Moved, effects);
        }
        match judged.step {
            Step::Pass => {
                let moved = worker.pass(room, ticket, now, effects);
                let changed = moved.is_some();
                let ticket = moved.unwrap_or(ticket);
                self.done(Outcome::Admitted { ticket, changed, enters: false }, effects);
            }
            Step::Enter { minute, numbered } => {
                let from = judged.counted.then(|| Seen::of(&ticket, room));
                let bucket = self.bucket(context, &ticket);
                let enter = CheckIn::Enter { id: ticket.id, bucket, from, at: time, minute, numbered };
                worker.note(room, enter, self.visitor.rehearsal, now, effects);
                let ticket = ticket.admitted(time);
                self.done(Outcome::Admitted { ticket, changed: true, enters: true }, effects);
            }
            Step::Refuse => self.done(Outcome::Refused, effects),
            Step::Wait | Step::Ask(..) => {
                self.stage = Stage::TellsByCache;
                if worker.controller.begin_cache_read(now) {
                    effects.push(WorkerEffect::ReadCache);
                } else {
                    self.tell_by_call(worker, context, effects);
                }
            }
        }
    }

    /// Asks the data center for a state key to answer from, if this worker's is too old.
    fn tell_by_call(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let whole = Rc::clone(&self.room);
        if worker.controller.begin_state_call(whole.at(worker.time(context.now)).0, context.now) {
            self.stage = Stage::TellsByCall;
            self.calls += 1;
            effects.push(worker.state_call(self.calls, worker.deadline_ms, context.now));
        } else {
            self.tell(worker, context, effects);
        }
    }

    /// Answers a waiting visitor with what is known, and counts the check-in.
    fn tell(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Some(judged) = self.judged else { return };
        let (ticket, now) = (judged.ticket, context.now);
        if worker.has_moved(&ticket) {
            return self.done(Outcome::Moved, effects);
        }
        let whole = Rc::clone(&self.room);
        let time = worker.time(now);
        let (room, phase) = whole.at(time);
        let bucket = self.bucket(context, &ticket);
        let state = worker.controller.state_to_tell(now);
        let global_time = state.map_or(time, |state| state.global_time(now));
        // Who waited long ago has entered, or does not count any more.
        let key = state.filter(|state| state.age(now) <= room.waiting_ms()).map(|state| &state.key);
        let random_order = room.queueing_method == QueueingMethod::Random;
        let random = self.visitor.random;
        let usual_seconds = if random_order {
            next_draw_seconds(room, ticket.id, time, random)
        } else {
            self.told_seconds.unwrap_or_else(|| self.next_check_in(worker, context, &ticket, judged.known))
        };
        let early_ms = self.comes_early(worker, time);
        // Whoever comes early is told the rest, and has no chance before that: in whole seconds, and not later than it was.
        let (refresh_seconds, chance_seconds) = if early_ms > 0 {
            (usual_seconds.min(early_ms.div_ceil(1_000) as u32), ((early_ms + EARLY_MS) / 1_000) as u32)
        } else {
            (usual_seconds, usual_seconds)
        };
        if judged.known && early_ms == 0 && !random_order {
            worker.chances.put_off(ticket.id, time + chance_ms(chance_seconds), time);
        }
        // Nobody is ahead of anybody where the order is random, and nobody is told a lot before the lottery is over.
        let is_secret = random_order || matches!(phase, Phase::Prequeue { event, .. } if event.shuffle);
        let people_ahead = key.filter(|_| !is_secret).map(|key| likely_ahead(key, bucket).max(0) as u64);
        let estimate = match key {
            Some(key) if random_order => random_wait_seconds(room, key, global_time).map(Estimate::spread),
            Some(key) => estimated_wait_seconds(room, key, bucket, refresh_seconds, global_time)
                .map(|seconds| Estimate::Known { seconds }),
            None => None,
        };
        let held = state.is_some_and(|state| state.key.held);
        // Whoever brings the ticket back is counted, whatever the address.
        let counts =
            is_counted(room, self.visitor.verification, &ticket) && (judged.known || !ticket.uncounted);
        let told = Ticket { refresh_seconds: chance_seconds as u16, uncounted: !counts, ..ticket };
        let waiting = moved_on(told.checked_in(time), people_ahead);
        if counts {
            let from = judged.counted.then(|| Seen::of(&ticket, room));
            let check_in = CheckIn::Wait { id: ticket.id, bucket, from, at: Seen::of(&waiting, room) };
            worker.note(room, check_in, self.visitor.rehearsal, now, effects);
        }
        let told = Waiting {
            ticket: waiting,
            known: judged.known,
            estimate: estimate.unwrap_or(Estimate::Unknown).held(self.visitor.shown_seconds),
            people_ahead,
            drawn: whole.lottery(bucket).is_some(),
            refresh_seconds,
            held,
            draw: judged.draw,
            bring_again: self.unjudged && ticket.human != Human::Passed,
        };
        self.done(Outcome::Waiting(told), effects);
    }
}

/// For how long a visitor who was told to check in again after `seconds` has no other chance, in milliseconds.
fn chance_ms(seconds: u32) -> u64 {
    (u64::from(seconds) * 1_000).saturating_sub(EARLY_MS)
}

/// Whether somebody who waits is counted, and may enter in turn: Turnstile may have to say so first.
fn is_counted(room: &Room, verification: Verification, ticket: &Ticket) -> bool {
    // Who sees no waiting page is asked nothing.
    room.observes(ticket.id)
        || room.trusts(ticket.human)
        || match verification {
            Verification::None => true,
            Verification::Required { .. } => false,
            Verification::Away { .. } => ticket.human == Human::Unknown,
        }
}

/// Whether a visitor who waits has nothing to say yet: the room only observes, and it is not time for the next check-in.
pub fn passes_unasked(room: &Room, ticket: &Ticket, time: u64) -> bool {
    room.observes(ticket.id) && time < asked_again_at(room, ticket)
}

/// When a visitor whom a room observes is to check in again, in milliseconds since the epoch: as the waiting page would, and
/// before the cookie ends, which lasts as long as that of somebody who is in.
pub fn asked_again_at(room: &Room, ticket: &Ticket) -> u64 {
    ticket.last_check_in + (u64::from(ticket.refresh_seconds) * 1_000).min(room.session_ms() / 2)
}

/// Where the visitor stands: of several tickets the one that says most counts.
pub fn best(tickets: &[Ticket], room: &Room, time: u64) -> Standing {
    let mut best = Standing::New;
    // A ticket that has moved on shows that the one before has ceased to hold.
    let holds =
        |ticket: &&Ticket| tickets.iter().all(|other| other.id != ticket.id || other.moves <= ticket.moves);
    for ticket in tickets.iter().filter(holds) {
        match standing(Some(*ticket), time, &room.terms()) {
            active @ Standing::Active(_) => return active,
            waiting @ Standing::Waiting(_) if best == Standing::New => best = waiting,
            _ => {}
        }
    }
    best
}

/// The ticket with how far its visitor has come. Those who came in the same minute are not all known at first, so the
/// most that were ever ahead count as the whole way.
fn moved_on(ticket: Ticket, people_ahead: Option<u64>) -> Ticket {
    let Some(ahead) = people_ahead else { return ticket };
    let ahead = u32::try_from(ahead).unwrap_or(u32::MAX - 1);
    let most = ticket.ahead_at_first.unwrap_or_default().max(ahead);
    let progress = answer::progress(ahead.into(), most.into(), ticket.progress);
    Ticket { ahead_at_first: Some(most), progress, ..ticket }
}
