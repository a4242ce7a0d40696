//! The state of a small world, and what may happen in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use anteroom::admission::{self, Clocked, minute_of};
use anteroom::machines::worker::{CACHE_TTL_MS, Outcome, Visitor as Brings, WorkerInput};
use anteroom::machines::{Call, Effect, Input, Stored};
use anteroom::protocol::messages::{OperatorAsk, StateRequest, VERSION, room_and_colo};
use anteroom::protocol::{Answer, Object, Request};
use anteroom::room::Room;
use anteroom::steering::Overrides;
use anteroom::ticket::{Standing, Ticket, standing};
use stateright::{Model, Property};

use crate::actors::{Actor, Deed, Life, Machine, Told, shape};

/// How far apart new numbers are.
const RENUMBERED: u64 = 1_000_000;

/// When an order is in force everywhere, in milliseconds after it is given.
const OBEYED_MS: u64 = 3_000;

/// How long the platform waits before it repeats an alarm that broke off, in milliseconds.
const RING_AGAIN_MS: u64 = 2_000;

/// A small world: a room, who comes, and what may go wrong.
#[derive(Debug, Clone)]
pub struct World {
    /// The room.
    pub room: Room,
    /// How many data centers there are, with a worker each.
    pub colos: u8,
    /// How many visitors come.
    pub visitors: u8,
    /// How many requests each of them makes.
    pub requests: u8,
    /// When something may happen, in milliseconds since the epoch. In between, only what was planned does.
    pub moments: Vec<u64>,
    /// Which messages the network holds for as long as it likes, with their answers. All others arrive at once.
    pub is_held: fn(&Request) -> bool,
    /// How long before a moment it begins to do so, in milliseconds.
    pub holds_ms: u64,
    /// From which of the moments on it does.
    pub holds_from: usize,
    /// Whether what it holds arrives even when nobody waits for an answer any more.
    pub is_late: bool,
    /// Who may lose the memory: at any moment, and while a write is not confirmed.
    pub forgetful: Vec<Actor>,
    /// Whether messages that are held may come twice.
    pub doubles: bool,
    /// How often memory is lost or a message comes twice, at most.
    pub faults: u8,
    /// The origin may end a session.
    pub revokes: bool,
    /// What an operator orders, as JSON, each once and in this order.
    pub orders: Vec<&'static str>,
    /// A rule of the room that this world breaks.
    pub broken: Option<Broken>,
}

/// A rule of the room that does not hold: the checks must find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Counters do not say what they have used.
    UsedIsUntold,
    /// The pool cannot tell one start of a Counter from another.
    EpochIsLost,
    /// What was written before an answer is not there any more after a restart.
    WritesAreLost,
    /// A call that comes twice has a number of its own.
    CallsAreRenumbered,
    /// A report that comes twice or late has the newest number.
    ReportsAreRenumbered,
    /// The same of a worker's report to its data center.
    CheckInsAreRenumbered,
    /// State keys say nothing of what operators have changed.
    OrdersAreLost,
}

/// Whose call it is: the life of the caller, and which of its calls.
type Caller = (Actor, u64, u64);

/// A value that is not part of what a state is: it says how the state came about.
#[derive(Debug, Clone)]
struct Aside<T>(T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Hash for Aside<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A value that is as its shape.
#[derive(Debug, Clone)]
struct Shaped<T>(u64, T);

impl<T: std::fmt::Debug> Shaped<T> {
    fn new(value: T) -> Self {
        Self(shape(&value), value)
    }
}

impl<T> PartialEq for Shaped<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Hash for Shaped<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Where an actor runs.
#[derive(Debug, Clone, PartialEq, Hash)]
struct Station {
    shape: u64,
    life: Aside<Life>,
    number: u64,
    stored: Stored,
    /// Writes in the background that may be lost.
    unconfirmed: Vec<(String, Vec<u8>)>,
    alarm: Option<u64>,
    alarm_runs: bool,
    timer: Option<u64>,
    /// Requests and tasks that wait for a time, and whether also for others.
    sleeps: BTreeMap<u64, (u64, bool)>,
    /// Who waits for its replies.
    asked: BTreeMap<u64, Caller>,
    messages: u64,
    /// Its calls that have not ended.
    open: BTreeMap<u64, Open>,
    calls: u64,
}

/// A call that has not ended.
#[derive(Debug, Clone, PartialEq, Hash)]
struct Open {
    work: u64,
    number: u64,
    until: u64,
    is_held: bool,
    /// For whom it asks.
    ids: Vec<u64>,
}

/// A visitor.
#[derive(Debug, Clone, PartialEq, Hash, Default)]
struct Visitor {
    ticket: Aside<Option<Ticket>>,
    shape: u64,
    requests: u8,
    asks: bool,
    /// Until when the session goes on.
    inside_until: u64,
    /// The session that was ended.
    revoked: bool,
}

impl Default for Aside<Option<Ticket>> {
    fn default() -> Self {
        Self(None)
    }
}

/// All that there is at one moment.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct State {
    moment: usize,
    now: u64,
    stations: BTreeMap<Actor, Arc<Station>>,
    /// Messages that the network holds, by whom they are for and from.
    requests: BTreeMap<(Actor, Caller), Shaped<Arc<Request>>>,
    answers: BTreeMap<(Caller, u8), Shaped<Option<Arc<Answer>>>>,
    caches: BTreeMap<u8, Shaped<Clocked>>,
    visitors: Vec<Visitor>,
    /// Who entered with a permit of which minute.
    entered: BTreeSet<(u32, u64)>,
    permits: BTreeMap<u64, u32>,
    /// How many active users Global counts.
    counted: i64,
    faults: u8,
    orders: usize,
    ordered_at: u64,
    /// Somebody was let in though an order had said for long that nobody is.
    is_disobeyed: bool,
}

/// Something that happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A visitor makes a request at a data center.
    Comes(u8, u8),
    /// The origin ends a visitor's session, at a data center.
    Revoked(u8, u8),
    /// A message arrives: for whom, and from whom.
    Arrives(Actor, Caller),
    /// The same, and will once more.
    ArrivesTwice(Actor, Caller),
    /// The same, and the object ends before its write is confirmed; whether it is written nevertheless.
    ArrivesAtTheEnd(Actor, Caller, bool),
    /// An answer arrives: whose call it answers, and which one.
    Answers(Caller, u8),
    /// An object loses its memory; whether what it has written in the background is written.
    Forgets(Actor, bool),
    /// An operator's next order.
    Orders,
    /// Time goes on to the next moment.
    Time,
}

/// What happens at once.
enum Prompt {
    Request(Actor, Caller, Arc<Request>),
    Answer(Caller, Option<Arc<Answer>>),
    Begin(Actor, u64),
}

/// From one state to the next.
struct Step<'a> {
    world: &'a World,
    room: Rc<Room>,
    state: State,
    live: BTreeMap<Actor, Machine>,
    prompt: VecDeque<Prompt>,
    /// The object that ends before its write is confirmed, and whether it is written.
    ends: Option<(Actor, bool)>,
    /// The next moment is far: the network holds nothing.
    is_quick: bool,
    /// Who makes a request and is in.
    passes: Option<u8>,
}

/// Something that is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Deadline(u64),
    Timer,
    Alarm,
    Sleep(u64),
}

impl World {
    fn actors(&self) -> Vec<Actor> {
        let local = |colo| [Actor::Counter(colo), Actor::DataCenter(colo), Actor::Worker(colo)];
        [Actor::Anywhere, Actor::Global].into_iter().chain((0..self.colos).flat_map(local)).collect()
    }

    fn begin(&self, state: &State) -> Step<'_> {
        Step {
            world: self,
            room: Rc::new(self.room.clone()),
            state: state.clone(),
            live: BTreeMap::new(),
            prompt: VecDeque::new(),
            ends: None,
            is_quick: false,
            passes: None,
        }
    }

    /// Users who are in.
    fn active(state: &State) -> usize {
        state.visitors.iter().filter(|visitor| visitor.inside_until > state.now).count()
    }

    /// How many have entered in a minute, at the most.
    fn most_of_a_minute(state: &State) -> usize {
        let entered = |minute| state.entered.iter().filter(|(of, _)| *of == minute).count();
        state.entered.iter().map(|(minute, _)| entered(*minute)).max().unwrap_or(0)
    }

    fn most_new(&self) -> usize {
        self.room.new_users_per_minute as usize
    }

    fn most_active(&self) -> usize {
        let ordered = self.orders.iter().filter_map(|order| {
            let order: serde_json::Value = serde_json::from_str(order).ok()?;
            order["set"]["total_active_users"].as_u64()
        });
        ordered.chain([self.room.total_active_users.into()]).max().unwrap_or(0) as usize
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let now = self.moments[0];
        let room = Rc::new(self.room.clone());
        let station = |actor: Actor| {
            let life = Life { began: now, number: 0, stored: Stored::new(), heard: Vec::new() };
            let machine = Machine::again(actor, &life, &room);
            let station = Station {
                shape: machine.shape(),
                timer: machine.next_timer(),
                life: Aside(life),
                number: 0,
                stored: Stored::new(),
                unconfirmed: Vec::new(),
                alarm: None,
                alarm_runs: false,
                sleeps: BTreeMap::new(),
                asked: BTreeMap::new(),
                messages: 0,
                open: BTreeMap::new(),
                calls: 0,
            };
            (actor, Arc::new(station))
        };
        vec![State {
            moment: 0,
            now,
            stations: self.actors().into_iter().map(station).collect(),
            requests: BTreeMap::new(),
            answers: BTreeMap::new(),
            caches: BTreeMap::new(),
            visitors: vec![Visitor::default(); usize::from(self.visitors)],
            entered: BTreeSet::new(),
            permits: BTreeMap::new(),
            counted: 0,
            faults: 0,
            orders: 0,
            ordered_at: 0,
            is_disobeyed: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let may_fail = state.faults < self.faults;
        for (visitor, here) in (0..).zip(&state.visitors) {
            // Who has not come yet is as anybody else.
            let is_next =
                here.requests > 0 || visitor == 0 || state.visitors[usize::from(visitor) - 1].requests > 0;
            // So is each data center to the first who comes.
            let colos = if visitor == 0 && here.requests == 0 { 1 } else { self.colos };
            if !here.asks && here.requests < self.requests && is_next {
                actions.extend((0..colos).map(|colo| Action::Comes(visitor, colo)));
            }
            if self.revokes && !here.revoked && here.inside_until > state.now {
                actions.extend((0..self.colos).map(|colo| Action::Revoked(visitor, colo)));
            }
        }
        for (to, from) in state.requests.keys() {
            actions.push(Action::Arrives(*to, *from));
            if may_fail && self.doubles {
                actions.push(Action::ArrivesTwice(*to, *from));
            }
            if may_fail && self.forgetful.contains(to) {
                actions.extend([true, false].map(|kept| Action::ArrivesAtTheEnd(*to, *from, kept)));
            }
        }
        actions.extend(state.answers.keys().map(|(caller, number)| Action::Answers(*caller, *number)));
        for actor in self.forgetful.iter().filter(|_| may_fail) {
            let unconfirmed = !state.stations[actor].unconfirmed.is_empty();
            actions.push(Action::Forgets(*actor, true));
            if unconfirmed {
                actions.push(Action::Forgets(*actor, false));
            }
        }
        if state.orders < self.orders.len() {
            actions.push(Action::Orders);
        }
        if state.moment + 1 < self.moments.len() {
            actions.push(Action::Time);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut step = self.begin(last);
        match action {
            Action::Comes(visitor, colo) => step.comes(visitor, colo),
            Action::Revoked(visitor, colo) => {
                let here = &mut step.state.visitors[usize::from(visitor)];
                (here.revoked, here.inside_until) = (true, 0);
                let ticket = here.ticket.0.take()?;
                here.shape = 0;
                step.tell(Actor::Worker(colo), Told::Leaves(ticket));
            }
            Action::Arrives(to, from) => {
                let request = step.state.requests.remove(&(to, from))?;
                step.arrives(to, from, &request.1);
            }
            Action::ArrivesTwice(to, from) => {
                let request = step.state.requests.get(&(to, from))?.1.clone();
                step.state.faults += 1;
                step.arrives(to, from, &request);
            }
            Action::ArrivesAtTheEnd(to, from, kept) => {
                let request = step.state.requests.remove(&(to, from))?;
                step.state.faults += 1;
                step.ends = Some((to, kept));
                step.arrives(to, from, &request.1);
                step.ends = None;
                step.forgets(to, kept);
            }
            Action::Answers(caller, number) => {
                let answer = step.state.answers.remove(&(caller, number))?;
                step.prompt.push_back(Prompt::Answer(caller, answer.1));
            }
            Action::Forgets(actor, kept) => {
                step.state.faults += 1;
                step.forgets(actor, kept);
            }
            Action::Orders => step.orders(),
            Action::Time => {
                step.state.moment += 1;
                step.goes_on(self.moments[step.state.moment]);
            }
        }
        step.settle();
        Some(step.end())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::sometimes("a limit is reached", |world: &Self, state: &State| {
                Self::active(state) == world.most_active()
                    || Self::most_of_a_minute(state) == world.most_new()
            }),
            Property::always("no more users are active than the limit", |world: &Self, state: &State| {
                Self::active(state) <= world.most_active()
            }),
            Property::always(
                "no more enter with permits of a minute than its limit",
                |world: &Self, state: &State| Self::most_of_a_minute(state) <= world.most_new(),
            ),
            Property::always("nobody enters against an order", |_, state: &State| !state.is_disobeyed),
            Property::always("nobody is counted twice", |_, state: &State| {
                (0..=state.entered.len() as i64).contains(&state.counted)
            }),
        ]
    }
}

impl Step<'_> {
    fn station(&mut self, actor: Actor) -> &mut Station {
        let station = self.state.stations.get_mut(&actor).expect("every actor has a station");
        Arc::make_mut(station)
    }

    /// An actor is told something, and does what it says.
    fn tell(&mut self, actor: Actor, told: Told) {
        let now = self.state.now;
        let mut machine = match self.live.remove(&actor) {
            Some(machine) => machine,
            None => Machine::again(actor, &self.state.stations[&actor].life.0, &self.room),
        };
        self.station(actor).life.0.heard.push(Arc::new((now, told.clone())));
        let deeds = machine.hear(actor, &self.room, now, told);
        let timer = machine.next_timer().map(|due| due.max(now + 1));
        self.live.insert(actor, machine);
        self.station(actor).timer = timer;
        let mut waits_for_write = false;
        for deed in deeds {
            if waits_for_write && self.ends.is_some_and(|(ends, _)| ends == actor) {
                // Nothing leaves an object whose write is not confirmed, and what it writes later is not written.
                return;
            }
            waits_for_write |= matches!(
                deed,
                Deed::Object(
                    Effect::Store { background: false, .. } | Effect::Delete { .. } | Effect::SetAlarm { .. }
                )
            );
            self.does(actor, deed);
        }
    }

    fn does(&mut self, actor: Actor, deed: Deed) {
        match deed {
            Deed::Object(effect) => self.object_does(actor, effect),
            Deed::Calls(work, call) => self.calls(actor, work, &call),
            Deed::Looks(work) => {
                let (Actor::Worker(colo), now) = (actor, self.state.now) else { return };
                let cached = self.state.caches.get(&colo).map(|cached| cached.1.clone());
                let cached = cached.filter(|cached| now < cached.received_at + CACHE_TTL_MS).map(Box::new);
                self.tell(actor, Told::Work(work, WorkerInput::Cached(cached)));
            }
            Deed::Caches(clocked) => {
                let Actor::Worker(colo) = actor else { return };
                self.state.caches.insert(colo, Shaped::new(*clocked));
            }
            Deed::Sleeps(work, until, awaits) => {
                self.station(actor).sleeps.insert(work, (until, awaits));
            }
            Deed::Begins(work) => self.prompt.push_back(Prompt::Begin(actor, work)),
            Deed::Done(visitor, outcome) => {
                self.is_over(actor, visitor);
                self.visited(visitor, outcome);
            }
            Deed::Moved(ticket) => {
                if let (Some(ticket), Some(visitor)) = (ticket, self.passes) {
                    self.state.visitors[usize::from(visitor)].is_in(ticket, &self.room);
                }
            }
            Deed::Ends(work) => self.is_over(actor, work),
        }
    }

    /// What a visit or task waits for does not matter any more.
    fn is_over(&mut self, actor: Actor, work: u64) {
        let station = self.station(actor);
        station.sleeps.remove(&work);
        station.open.retain(|_, open| open.work != work);
    }

    fn object_does(&mut self, actor: Actor, effect: Effect) {
        let is_lost = self.ends.is_some_and(|(ends, _)| ends == actor)
            || self.world.broken == Some(Broken::WritesAreLost);
        let station = self.station(actor);
        match effect {
            Effect::Reply { to, answer } => self.replies(actor, to, Some(answer)),
            Effect::Refuse { to, .. } => self.replies(actor, to, None),
            Effect::Call(call) => self.calls(actor, 0, &call),
            Effect::Store { key, bytes, background } => {
                station.unconfirmed.push((key, bytes));
                if !background && !is_lost {
                    station.confirm();
                }
            }
            Effect::Delete { key } => drop(station.stored.remove(&key)),
            Effect::SetAlarm { at } => station.alarm = Some(at),
            Effect::ClearAlarm => station.alarm = None,
            Effect::AlarmDone => station.alarm_runs = false,
            Effect::Global(_) => {}
        }
    }

    fn calls(&mut self, actor: Actor, work: u64, call: &Call) {
        let request = Arc::new(self.world.sent(call.request.clone()));
        let (now, is_held) = (self.state.now, self.holds() && (self.world.is_held)(&request));
        let ids = match &call.request {
            Request::CounterTake(take) => take.asks.iter().map(|ask| ask.id).collect(),
            _ => Vec::new(),
        };
        let station = self.station(actor);
        station.calls += 1;
        let caller = (actor, station.number, station.calls);
        let open = Open { work, number: call.number, until: now + call.deadline_ms, is_held, ids };
        station.open.insert(station.calls, open);
        let colo = room_and_colo(&call.name).1.trim_start_matches('C').parse().unwrap_or(0);
        let to = match call.object() {
            Object::Anywhere => Actor::Anywhere,
            Object::Global => Actor::Global,
            Object::Counter => Actor::Counter(colo),
            Object::DataCenter => Actor::DataCenter(colo),
        };
        if is_held {
            self.state.requests.insert((to, caller), Shaped::new(request));
        } else {
            self.prompt.push_back(Prompt::Request(to, caller, request));
        }
    }

    fn arrives(&mut self, to: Actor, from: Caller, request: &Request) {
        let station = self.station(to);
        station.messages += 1;
        let number = station.messages;
        station.asked.insert(number, from);
        let request = self.world.received(request.clone(), number);
        self.tell(to, Told::Object(Input::Asked { from: number, request }));
    }

    fn replies(&mut self, actor: Actor, to: u64, answer: Option<Answer>) {
        let Some(caller) = self.station(actor).asked.remove(&to) else { return };
        let Some(open) = self.open(caller) else { return };
        let is_held = open.is_held;
        let answer = answer.map(|answer| Arc::new(self.world.answered(answer)));
        if is_held {
            let number = (0..=u8::MAX).find(|number| !self.state.answers.contains_key(&(caller, *number)));
            self.state.answers.insert((caller, number.unwrap_or(0)), Shaped::new(answer));
        } else {
            self.prompt.push_back(Prompt::Answer(caller, answer));
        }
    }

    /// Whether the network holds messages now.
    fn holds(&self) -> bool {
        !self.is_quick && self.state.moment >= self.world.holds_from
    }

    /// A call that has not ended.
    fn open(&self, (actor, life, call): Caller) -> Option<&Open> {
        let station = self.state.stations.get(&actor)?;
        station.open.get(&call).filter(|_| station.number == life)
    }

    /// A call ends, once.
    fn ends_call(&mut self, caller: Caller, answer: Option<&Answer>) {
        if self.open(caller).is_none() {
            return;
        }
        let (actor, _, call) = caller;
        let Some(Open { work, number, ids, .. }) = self.station(actor).open.remove(&call) else { return };
        self.state.answers.retain(|(of, _), _| *of != caller);
        if !self.world.is_late {
            self.state.requests.retain(|(_, of), _| *of != caller);
        }
        if let Some(Answer::CounterTake(taken)) = answer {
            for (id, outcome) in ids.into_iter().zip(&taken.outcomes) {
                if let admission::Outcome::Given { minute, .. } = outcome {
                    self.state.permits.insert(id, *minute);
                }
            }
        }
        let answer = answer.cloned();
        if !matches!(actor, Actor::Worker(_)) {
            return self.tell(actor, Told::Object(Input::Answered { call: number, answer }));
        }
        self.tell(actor, Told::Work(work, WorkerInput::Answered { call: number, answer }));
        // Others may have waited for this.
        let sleeps = self.state.stations[&actor].sleeps.clone();
        for (work, _) in sleeps.into_iter().filter(|(_, (_, awaits))| *awaits) {
            self.wakes(actor, work);
        }
    }

    fn wakes(&mut self, actor: Actor, work: u64) {
        if self.station(actor).sleeps.remove(&work).is_some() {
            self.tell(actor, Told::Work(work, WorkerInput::Time));
        }
    }

    /// All that happens at once.
    fn settle(&mut self) {
        while let Some(prompt) = self.prompt.pop_front() {
            match prompt {
                Prompt::Request(to, from, request) => self.arrives(to, from, &request),
                Prompt::Answer(caller, answer) => self.ends_call(caller, answer.as_deref()),
                Prompt::Begin(actor, work) => self.tell(actor, Told::Work(work, WorkerInput::Begin)),
            }
        }
    }

    /// Time goes on, and what was planned happens, each at its time.
    fn goes_on(&mut self, until: u64) {
        while let Some((due, actor, what)) = self.next_due().filter(|(due, ..)| *due <= until) {
            self.state.now = due.max(self.state.now);
            self.is_quick = self.state.now + self.world.holds_ms < until;
            let station = self.station(actor);
            match what {
                Due::Timer => {
                    station.timer = None;
                    self.tell(actor, Told::Object(Input::Timer));
                }
                Due::Alarm => {
                    (station.alarm, station.alarm_runs) = (None, true);
                    self.tell(actor, Told::Object(Input::Alarm));
                }
                Due::Sleep(work) => self.wakes(actor, work),
                Due::Deadline(call) => {
                    let caller = (actor, station.number, call);
                    self.ends_call(caller, None);
                }
            }
            self.settle();
        }
        (self.state.now, self.is_quick) = (until, false);
    }

    /// What is planned next.
    fn next_due(&self) -> Option<(u64, Actor, Due)> {
        let due = |(actor, station): (&Actor, &Arc<Station>)| {
            let alarm = station.alarm.filter(|_| !station.alarm_runs);
            let sleeps = station.sleeps.iter().map(|(work, (until, _))| (*until, Due::Sleep(*work)));
            let calls = station.open.iter().map(|(call, open)| (open.until, Due::Deadline(*call)));
            let own = [alarm.map(|at| (at, Due::Alarm)), station.timer.map(|at| (at, Due::Timer))];
            let first = own.into_iter().flatten().chain(sleeps).chain(calls).min();
            first.map(|(at, what)| (at, *actor, what))
        };
        self.state.stations.iter().filter_map(due).min()
    }

    /// An object loses its memory. `kept`: its last writes are written.
    fn forgets(&mut self, actor: Actor, kept: bool) {
        let now = self.state.now;
        let kept = kept && self.world.broken != Some(Broken::WritesAreLost);
        let station = self.station(actor);
        if kept {
            station.confirm();
        }
        station.unconfirmed.clear();
        station.number += 1;
        station.asked.clear();
        station.open.clear();
        if std::mem::take(&mut station.alarm_runs) {
            let again = now + RING_AGAIN_MS;
            station.alarm = Some(station.alarm.map_or(again, |at| at.min(again)));
        }
        station.life = Aside(Life {
            began: now,
            number: station.number,
            stored: station.stored.clone(),
            heard: Vec::new(),
        });
        let machine = Machine::again(actor, &self.state.stations[&actor].life.0, &self.room);
        self.station(actor).timer = machine.next_timer();
        self.live.insert(actor, machine);
        self.state.answers.retain(|((of, ..), _), _| *of != actor);
    }

    /// A visitor makes a request.
    fn comes(&mut self, visitor: u8, colo: u8) {
        let (now, room) = (self.state.now, Rc::clone(&self.room));
        let here = &mut self.state.visitors[usize::from(visitor)];
        here.requests += 1;
        let ticket = here.ticket.0;
        let id = u64::from(visitor + 1) * 10 + u64::from(here.requests);
        let worker = Actor::Worker(colo);
        if let Standing::Active(ticket) = standing(ticket, now, &room.terms()) {
            self.passes = Some(visitor);
            return self.tell(worker, Told::Passes(ticket));
        }
        here.asks = true;
        let brings = Brings { tickets: ticket.into_iter().collect(), id, random: 0.5, ..Brings::default() };
        self.tell(worker, Told::Visits(visitor.into(), brings));
    }

    /// What came of a visit.
    fn visited(&mut self, visitor: u64, outcome: Outcome) {
        let here = &mut self.state.visitors[visitor as usize];
        here.asks = false;
        match outcome {
            Outcome::Admitted { ticket, enters, .. } => {
                here.is_in(ticket, &self.room);
                if enters {
                    let minute = self.state.permits.get(&ticket.id).copied();
                    let minute = minute.unwrap_or(minute_of(self.state.now));
                    self.state.entered.insert((minute, ticket.id));
                    let closes = |order: &&str| order.contains("queue_all");
                    let is_closed = self.world.orders[..self.state.orders].last().is_some_and(closes);
                    self.state.is_disobeyed |=
                        is_closed && self.state.now >= self.state.ordered_at + OBEYED_MS;
                }
            }
            Outcome::Waiting(waiting) => here.has(waiting.ticket),
            Outcome::Suspended | Outcome::Refused | Outcome::Moved => {}
        }
    }

    /// An operator's next order.
    fn orders(&mut self) {
        let body = self.world.orders[self.state.orders].to_owned();
        (self.state.orders, self.state.ordered_at) = (self.state.orders + 1, self.state.now);
        let order = OperatorAsk { v: VERSION, by: "anna".to_owned(), body, ..OperatorAsk::default() };
        let station = self.station(Actor::Global);
        station.messages += 1;
        let from = station.messages;
        let request = Request::GlobalSteer(Box::new(order));
        self.tell(Actor::Global, Told::Object(Input::Asked { from, request }));
    }

    fn end(mut self) -> State {
        let (now, minute) = (self.state.now, minute_of(self.state.now));
        for (actor, mut machine) in std::mem::take(&mut self.live) {
            self.station(actor).shape = machine.shape();
            if actor == Actor::Global {
                // It is asked beside all that happens, and then made anew.
                let asked = StateRequest { v: VERSION, minute, given: None, colo: String::new(), leases: 0 };
                let request = Request::GlobalState(Box::new(asked));
                let told = Told::Object(Input::Asked { from: 0, request });
                let state =
                    machine.hear(actor, &self.room, now, told).into_iter().find_map(|deed| match deed {
                        Deed::Object(Effect::Reply { answer: Answer::GlobalState(answer), .. }) => {
                            answer.state
                        }
                        _ => None,
                    });
                self.state.counted = state.map_or(0, |state| state.active_at(now));
            }
        }
        self.state
    }
}

impl Station {
    /// What was written outlives the object.
    fn confirm(&mut self) {
        self.stored.extend(self.unconfirmed.drain(..));
    }
}

impl Visitor {
    fn has(&mut self, ticket: Ticket) {
        (self.shape, self.ticket) = (shape(&ticket), Aside(Some(ticket)));
    }

    fn is_in(&mut self, ticket: Ticket, room: &Room) {
        self.has(ticket);
        self.inside_until = room.terms().end(&ticket);
    }
}

impl World {
    /// A message as it leaves.
    fn sent(&self, mut request: Request) -> Request {
        if let Request::AnywhereLease(lease) = &mut request {
            match self.broken {
                Some(Broken::UsedIsUntold) => lease.ask.used.clear(),
                Some(Broken::EpochIsLost) => lease.ask.epoch = 1,
                _ => {}
            }
        }
        request
    }

    /// A message as it arrives, as the object's so manieth.
    fn received(&self, mut request: Request, number: u64) -> Request {
        match (&mut request, self.broken) {
            (Request::AnywhereLease(lease), Some(Broken::CallsAreRenumbered)) => {
                lease.ask.sequence += RENUMBERED * number;
            }
            (Request::GlobalPush(report), Some(Broken::ReportsAreRenumbered)) => {
                report.sequence = self.moments[0] * 2 + number;
            }
            (Request::DataCenterReport(report), Some(Broken::CheckInsAreRenumbered)) => {
                report.first += RENUMBERED * number;
            }
            _ => {}
        }
        request
    }

    /// An answer as it leaves.
    fn answered(&self, mut answer: Answer) -> Answer {
        match &mut answer {
            Answer::AnywhereLease(leased) if self.broken == Some(Broken::CallsAreRenumbered) => {
                leased.sequence %= RENUMBERED;
            }
            Answer::DataCenterState(told) | Answer::GlobalState(told)
                if self.broken == Some(Broken::OrdersAreLost) =>
            {
                told.state.iter_mut().for_each(|key| key.steering = Overrides::default());
            }
            Answer::CounterRecall(returned) if self.broken == Some(Broken::EpochIsLost) => returned.epoch = 1,
            _ => {}
        }
        answer
    }
}
