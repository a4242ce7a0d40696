//! One worker (an isolate) and the requests in it.
//!
//! [`Worker`] is what a worker remembers of one room in one colo; [`Visit`] and [`Task`] are what goes on in it: a request of
//! somebody who is not in, and what is done after a response. Each is a machine of its own, since in a Worker no request may
//! await another's promise: it calls for itself, and looks by timers of its own whether others have brought what it waits for.

mod task;
mod visit;

use std::rc::Rc;

pub use task::Task;
pub use visit::{Outcome, Verification, Visit, Visitor, Waiting, asked_again_at, best, passes_unasked};

use super::{COLD_START_FACTOR, Call, CurrentRoom};
use crate::admission::{
    Addresses, AdmissionController, Batcher, Chances, Clocked, DrawKey, Level, NumberAsk,
    Outcome as Judgement, Remembered, RoundTrip, StateKey, Step, Whom, minute_of,
};
use crate::check_in::CheckIn;
use crate::counts::{Outbox, REMEMBERED_MS};
use crate::history::Count;
use crate::origin::OriginMonitor;
use crate::protocol::messages::{StateRequest, Take, Taken, VERSION, colo_object};
use crate::protocol::{Answer, Request};
use crate::room::Room;
use crate::ticket::{Standing, Ticket};
use crate::turnstile::Verdict;

/// A cache that does not answer within this time is passed over, in milliseconds.
pub const CACHE_DEADLINE_MS: u64 = 50;
/// How long a state key may stay in the colo's cache, in milliseconds.
pub const CACHE_TTL_MS: u64 = 10_000;
/// Timeout of a report, in milliseconds; visitors do not wait for it. Two that are lost one after the other must be over before the
/// pool takes a permit whose user nobody has reported for one that was not used: some six seconds.
const REPORT_DEADLINE_MS: u64 = 2_000;

/// What is known of the outside when a worker's machine handles an input.
#[derive(Debug)]
pub struct WorkerContext<'a> {
    /// The key of lots.
    pub draw_key: &'a DrawKey,
    /// What this worker knows of the room's origin.
    pub origin: &'a mut OriginMonitor,
    /// The time by this worker's own clock, in milliseconds since the epoch.
    pub now: u64,
}

/// The inputs of a request or task.
#[derive(Debug, Clone)]
pub enum WorkerInput {
    /// It begins.
    Begin,
    /// A call has ended.
    Answered {
        /// The call's number.
        call: u64,
        /// The answer; `None`: the call failed, or took longer than its timeout.
        answer: Option<Answer>,
    },
    /// What the colo's cache holds, if it has answered within [`CACHE_DEADLINE_MS`].
    Cached(Option<Box<Clocked>>),
    /// What Turnstile's service says of the visitor's token.
    Verified(Verdict),
    /// Some time has passed.
    Time,
}

/// What a request or task does.
#[derive(Debug)]
pub enum WorkerEffect {
    /// Calls an object. What comes of it is the input [`WorkerInput::Answered`].
    Call(Call),
    /// Looks into the colo's cache for a state key.
    ReadCache,
    /// Puts a state key into the colo's cache, for [`CACHE_TTL_MS`].
    WriteCache(Box<StateKey>),
    /// Asks Turnstile's service about the token that came with the request.
    Verify,
    /// Waits for what another request of this worker may bring at any moment: [`WorkerInput::Time`] comes at this time
    /// at the latest, in milliseconds since the epoch, and every [`POLL_MS`] where nobody can tell sooner.
    Await {
        /// When at the latest.
        until: u64,
    },
    /// Waits for a time: [`WorkerInput::Time`] comes then, in milliseconds since the epoch.
    Sleep {
        /// When.
        until: u64,
    },
    /// Begins a task, which goes on after the response.
    Start(Task),
    /// A visit is judged, and over.
    Done(Box<Outcome>),
    /// A task is over.
    End,
}

/// Time between two looks of a request for the answer to another one's call, in milliseconds.
pub const POLL_MS: u64 = 4;

/// Tickets whose last step is remembered, per generation.
const REMEMBERED_TICKETS: usize = 10_000;
/// The most tickets of one call that reserves slots.
const MOST_RESERVATIONS: usize = 1_000;

/// What a visitor asks, together with others.
#[derive(Debug, Clone, Copy)]
struct Asking {
    ask: NumberAsk,
    /// From which address; 0: it does not matter.
    address: u64,
    /// How long it is until the next chance, if there is no slot, in milliseconds; 0: it does not matter.
    next_ms: u32,
}

type NumberBatcher = Batcher<Asking, Judgement>;

/// The first step of somebody who is not in, by what a worker knows; see [`AdmissionController::judge`].
pub type Judge = fn(&mut AdmissionController, &Room, &Standing, u64, u64) -> Step;

/// What one worker remembers of one room in one colo.
#[derive(Debug)]
pub struct Worker {
    deployed: Rc<Room>,
    colo: String,
    region: &'static str,
    deadline_ms: u64,
    controller: AdmissionController,
    judge: Judge,
    outbox: Outbox,
    counter_batch: NumberBatcher,
    anywhere_batch: NumberBatcher,
    /// Whether the one answers beside whom nobody can be asked: see [`Worker::is_last`].
    round_trip: RoundTrip,
    addresses: Addresses,
    chances: Chances,
    /// When this worker last moved a ticket on: a cookie may be older than that, and says nothing new then.
    moved: Remembered<u64>,
    /// Tickets whose sessions were ended, and up to which number the data center has told of them.
    ended: Remembered<()>,
    heard: u64,
    /// Tickets whose sessions were renewed in their last moment, and for which the pool is to reserve slots.
    reservations: Vec<u64>,
    /// Until when a task sees to them, if it is not gone before.
    reserving_until: u64,
    rooms: CurrentRoom,
}

impl Worker {
    /// A worker that knows nothing. `id` is random; `room` is the room as it is deployed, with its events; `deadline_ms`:
    /// timeout of calls on the visitor's path.
    pub fn new(id: u64, room: Rc<Room>, colo: String, deadline_ms: u64) -> Self {
        let replace_after = COLD_START_FACTOR * deadline_ms + 100;
        let moved = Remembered::new(room.session_ms(), REMEMBERED_TICKETS);
        Self {
            deployed: room,
            colo,
            region: "",
            deadline_ms,
            controller: AdmissionController::default(),
            judge: AdmissionController::judge,
            outbox: Outbox::new(id),
            counter_batch: Batcher::new(replace_after),
            anywhere_batch: Batcher::new(replace_after),
            round_trip: RoundTrip::default(),
            addresses: Addresses::default(),
            chances: Chances::default(),
            moved,
            ended: Remembered::new(REMEMBERED_MS, REMEMBERED_TICKETS),
            heard: 0,
            reservations: Vec::new(),
            reserving_until: 0,
            rooms: CurrentRoom::default(),
        }
    }

    /// The same worker, where it is known in which region its colo is, by its location hint.
    #[must_use]
    pub fn in_region(self, region: &'static str) -> Self {
        Self { region, ..self }
    }

    /// The same worker, with other rules of judgement: the simulator compares.
    #[must_use]
    pub fn judging_by(self, judge: Judge) -> Self {
        Self { judge, ..self }
    }

    /// What it knows of the room's state, and how it judges by it.
    pub fn controller(&self) -> &AdmissionController {
        &self.controller
    }

    /// What it has to report.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The room as it is deployed.
    pub fn deployed(&self) -> &Rc<Room> {
        &self.deployed
    }

    /// The room has become another one, at run time.
    pub fn redeploy(&mut self, room: Rc<Room>) {
        self.deployed = room;
    }

    /// The room with its events, as operators have it as far as this worker knows.
    pub fn room(&mut self) -> Rc<Room> {
        self.rooms.with(&self.deployed, self.controller.overrides())
    }

    /// The time to go by, in milliseconds since the epoch: this worker's clock, corrected where it is far off.
    pub fn time(&self, now: u64) -> u64 {
        self.controller.time(now)
    }

    /// Whether it is time to ask the data center for updates.
    pub fn is_refresh_due(&self, now: u64) -> bool {
        self.controller.is_refresh_due(now)
    }

    /// An active user's request. Returns the ticket moved on, where this request moves it.
    pub fn pass(
        &mut self,
        room: &Room,
        ticket: Ticket,
        now: u64,
        effects: &mut Vec<WorkerEffect>,
    ) -> Option<Ticket> {
        let at = self.controller.renewal_time(now);
        if !room.moves_on(&ticket, at) {
            return None;
        }
        let (id, entered) = (ticket.id, ticket.accepted_at);
        // Whoever comes with an old cookie, or with two requests at once, was counted before.
        let from = self.moved.get(id).unwrap_or(0).max(ticket.last_check_in);
        let latest = ticket.checked_in(from);
        // Nor does a session go back to what it is by a clock that is behind.
        if at <= from || !room.moves_on(&latest, at) {
            return (from > ticket.last_check_in).then_some(latest);
        }
        self.moved.put(id, at, at);
        self.note(room, CheckIn::Move { id, from, at, entered }, false, now, effects);
        self.refresh_in_background(true, now, effects);
        Some(ticket.checked_in(at))
    }

    /// Notes a check-in and sees to its report after the response. `rehearsal`: the visitor is one of a rehearsal.
    pub fn note(
        &mut self,
        room: &Room,
        check_in: CheckIn,
        rehearsal: bool,
        now: u64,
        effects: &mut Vec<WorkerEffect>,
    ) {
        match check_in {
            CheckIn::Enter { .. } if rehearsal => self.outbox.count(Count::RehearsalNewUsers),
            CheckIn::Wait { from: None, .. } if rehearsal => self.outbox.count(Count::RehearsalJoins),
            _ => {}
        }
        if let CheckIn::Wait { id, from: None, .. } = check_in
            && room.observes(id)
        {
            self.outbox.count(Count::ObservedJoins);
        }
        let level = self.controller.level();
        // An operator looks: nothing is reported as slowly as in a calm room.
        let level = if level == Level::Calm && self.controller.watched() { Level::Busy } else { level };
        self.outbox.note(room, check_in, level, self.time(now));
        self.announce(now, effects);
        match check_in {
            CheckIn::Leave { .. } => self.refuse(&[check_in], now),
            CheckIn::Move { id, .. } if check_in.is_last_moment(room) => {
                if self.reservations.len() < MOST_RESERVATIONS {
                    self.reservations.push(id);
                }
                if now >= self.reserving_until {
                    self.reserving_until = now + self.deadline_ms;
                    effects.push(WorkerEffect::Start(Task::reserve()));
                }
            }
            _ => {}
        }
    }

    /// Remembers that the sessions of tickets were ended.
    fn refuse(&mut self, sessions: &[CheckIn], now: u64) {
        for session in sessions {
            self.ended.put(session.id(), (), now);
        }
    }

    /// Whether the session of a ticket was ended, as far as this worker knows: the ticket opens nothing any more.
    pub fn is_ended(&self, id: u64) -> bool {
        self.ended.get(id).is_some()
    }

    /// Whether a ticket's place has moved on to another device, as far as this worker knows: the ticket opens nothing any
    /// more.
    pub fn has_moved(&self, ticket: &Ticket) -> bool {
        self.controller.state().is_some_and(|state| state.key.has_moved(ticket))
    }

    /// The origin is in trouble: sees to a report soon, though nobody checks in.
    pub fn note_trouble(&mut self, now: u64, effects: &mut Vec<WorkerEffect>) {
        self.outbox.note_trouble(self.time(now));
        self.announce(now, effects);
    }

    /// A request has gone past the room.
    pub fn note_bypassed(&mut self, now: u64, effects: &mut Vec<WorkerEffect>) {
        self.outbox.note_bypassed(now);
        self.announce(now, effects);
    }

    /// Sees to the next report, if there is something to report and nobody else does.
    fn announce(&mut self, now: u64, effects: &mut Vec<WorkerEffect>) {
        let time = self.time(now);
        if let Some(wait) = self.outbox.announce(time, time) {
            effects.push(WorkerEffect::Start(Task::report(wait, time)));
        }
    }

    /// Asks the data center for updates after the response, if it is time to. `inside`: the visitor is in, so there is no
    /// haste.
    pub fn refresh_in_background(&mut self, inside: bool, now: u64, effects: &mut Vec<WorkerEffect>) {
        let begins = if inside && self.outbox.is_announced() {
            false
        } else if inside {
            self.controller.begin_background_refresh(now)
        } else {
            self.controller.begin_refresh(now)
        };
        if begins {
            effects.push(WorkerEffect::Start(Task::refresh(self.time(now))));
        }
    }

    /// Takes in a state key.
    fn learn(&mut self, state: Clocked, now: u64) {
        self.controller.learn(state);
        if self.controller.watched() {
            self.outbox.hurry(now);
        }
    }

    /// Takes in the data center's answer to a question for the state key, and keeps it for the colo's other workers too.
    /// Returns whether it has answered.
    fn learn_answer(&mut self, answer: Option<Answer>, now: u64, effects: &mut Vec<WorkerEffect>) -> bool {
        let Some(Answer::DataCenterState(answer)) = answer else { return false };
        if let Some(key) = answer.state {
            self.learn(Clocked { key: key.clone(), received_at: now }, now);
            effects.push(WorkerEffect::WriteCache(Box::new(key)));
        }
        true
    }

    /// Whether it is somebody else's turn at a newcomer's address, as far as this worker knows.
    fn is_taken(&self, address: u64, id: u64, now: u64) -> bool {
        self.addresses.holder(address, id, self.time(now)) != 0
    }

    fn batch(&mut self, whom: Whom) -> &mut NumberBatcher {
        match whom {
            Whom::Counter => &mut self.counter_batch,
            Whom::Anywhere => &mut self.anywhere_batch,
        }
    }

    /// Whether calls are to come evenly, see [`Batcher::poll`]. All colos' workers ask Anywhere.
    fn calls_evenly(&self, whom: Whom) -> bool {
        let people_wait = self.controller.state().is_some_and(|state| !state.key.waiting.is_empty());
        people_wait || whom == Whom::Anywhere
    }

    /// The question for the state key.
    fn state_call(&self, number: u64, deadline_ms: u64, now: u64) -> WorkerEffect {
        let asked =
            StateRequest { v: VERSION, minute: minute_of(now), given: None, colo: String::new(), leases: 0 };
        WorkerEffect::Call(Call {
            number,
            name: colo_object(&self.deployed.name, &self.colo),
            request: Request::DataCenterState(Box::new(asked)),
            deadline_ms,
        })
    }

    /// Whether nobody else can be asked, if this one does not answer.
    fn is_last(&self, whom: Whom) -> bool {
        (whom == Whom::Counter) == self.deployed.slot_strategy.leases_permits()
    }

    /// Timeout of a call to Counter or Anywhere for visitors, in milliseconds.
    fn take_deadline_ms(&self, whom: Whom, now: u64) -> u64 {
        if self.is_last(whom) {
            // It may have to ask others, and to wait for its storage.
            self.round_trip.longest_ms(self.deadline_ms, now)
        } else if self.controller.state().is_none() {
            COLD_START_FACTOR * self.deadline_ms
        } else {
            self.deadline_ms
        }
    }

    /// A call to Counter or Anywhere for visitors.
    fn take_call(&mut self, number: u64, whom: Whom, asked: &[Asking], now: u64) -> WorkerEffect {
        let asks = asked.iter().map(|asking| asking.ask).collect();
        let mut take = Take::new(asks, self.controller.overrides().clone());
        if self.deployed.one_place_per_address {
            take.addresses.extend(asked.iter().map(|asking| asking.address));
        }
        if asked.iter().any(|asking| asking.next_ms > 0) {
            take.next_ms.extend(asked.iter().map(|asking| asking.next_ms));
        }
        take.region.push_str(self.region);
        let take = Box::new(take);
        let (count, name, request) = match whom {
            Whom::Counter => (
                Count::CounterCalls,
                colo_object(&self.deployed.name, &self.colo),
                Request::CounterTake(take),
            ),
            Whom::Anywhere => (Count::AnywhereCalls, self.deployed.name.clone(), Request::AnywhereTake(take)),
        };
        self.outbox.count(count);
        let deadline_ms = self.take_deadline_ms(whom, now);
        WorkerEffect::Call(Call { number, name, request, deadline_ms })
    }

    /// Takes in what came of such a call. `addresses`: those that it named. Returns the judgements in the order of its asks.
    fn taken(
        &mut self,
        whom: Whom,
        addresses: &[u64],
        answer: Option<Answer>,
        now: u64,
    ) -> Option<Vec<Judgement>> {
        let taken: Option<Taken> = match answer {
            Some(Answer::CounterTake(taken) | Answer::AnywhereTake(taken)) => Some(*taken),
            _ => None,
        };
        let time = self.time(now);
        let taken = taken?;
        if let Some(order) = taken.latest {
            self.controller.told_order(order, now);
        }
        if let Some(lent) = taken.lent {
            self.controller.told_level(lent.level);
        }
        self.batch(whom).pace(taken.pace_ms.into());
        for (address, holder) in addresses.iter().zip(taken.holders).filter(|(_, holder)| *holder != 0) {
            self.addresses.learn(*address, holder, time);
        }
        Some(taken.outcomes)
    }
}
