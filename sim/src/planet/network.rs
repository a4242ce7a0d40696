//! The network: messages, how long they take, which get lost or come twice, and calls with their timeouts and answers.

use std::collections::VecDeque;

use anteroom::machines::Call;
use anteroom::protocol::{Answer, Object, Request};

use super::geography::NEAR_MICROS;
use super::objects::{ANYWHERE, Station};
use super::{Event, Planet};
use crate::v0_1_0;

/// Who waits for an answer. It travels as the number of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// An object, in this life of it.
    Object {
        station: u16,
        life: u16,
        call: u32,
    },
    Worker {
        colo: u16,
        worker: u16,
        call: u32,
    },
    /// The operator, who gives one order after the other.
    Operator,
    /// A message that came twice.
    Nobody,
}

impl Caller {
    pub(super) fn number(self) -> u64 {
        let pack = |first: u16, second: u16, call: u32| {
            u64::from(first) << 48 | u64::from(second) << 32 | u64::from(call)
        };
        // Neither colos nor workers nor lives are that many.
        match self {
            Self::Object { station, life, call } => pack(station, life & 0x7fff, call),
            Self::Worker { colo, worker, call } => pack(colo, worker | 0x8000, call),
            Self::Operator => u64::MAX - 1,
            Self::Nobody => u64::MAX,
        }
    }

    pub(super) fn of(number: u64) -> Self {
        let (first, second, call) = ((number >> 48) as u16, (number >> 32) as u16, number as u32);
        match second & 0x8000 {
            _ if number == Self::Nobody.number() => Self::Nobody,
            _ if number == Self::Operator.number() => Self::Operator,
            0 => Self::Object { station: first, life: second, call },
            _ => Self::Worker { colo: first, worker: second & 0x7fff, call },
        }
    }
}

/// A message on its way to an object.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) from: Caller,
    /// The life of the object in whose queue it stands.
    pub(super) life: Option<u16>,
    /// How long an object takes for it, in microseconds.
    pub(super) service_micros: u32,
    pub(super) request: Request,
}

impl Message {
    /// How long an object takes for it, in milliseconds.
    pub(super) fn service_ms(&self) -> u64 {
        u64::from(self.service_micros).div_ceil(1_000)
    }
}

/// The end of a call; no answer: the object refused.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) to: Caller,
    pub(super) answer: Option<Answer>,
}

/// Calls that may take equally long, in the order in which they were made, with the time when that is over.
#[derive(Debug)]
pub(super) struct Timeouts {
    after_ms: u64,
    line: VecDeque<(u64, Caller)>,
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Worker(u16),
    /// A colo's Counter or `DataCenter`.
    Object(u16),
    /// A region's Counter.
    Region(u16),
    /// Anywhere or Global.
    Room,
}

/// Messages that nobody waits for: they may get lost, come twice and overtake each other.
fn is_behind_backs(request: &Request) -> bool {
    matches!(
        request,
        Request::DataCenterReport(_)
            | Request::DataCenterRefresh(_)
            | Request::GlobalPush(_)
            | Request::AnywhereReserve(_)
    )
}

/// A report's counts take an object as long as so many visitors do.
const REPORT_ITEMS: usize = 50;

/// How many visitors, check-ins or counts a message holds.
fn items(request: &Request) -> u64 {
    let items = match request {
        Request::CounterTake(take) | Request::AnywhereTake(take) => take.asks.len(),
        Request::AnywhereLease(lease) => lease.ask.groups.len() + lease.ask.used.len(),
        Request::DataCenterReport(report) => report.check_ins.len(),
        Request::GlobalPush(_) => REPORT_ITEMS,
        _ => 0,
    };
    items as u64
}

fn answers_behind_backs(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::DataCenterReport(_)
            | Answer::DataCenterRefresh(_)
            | Answer::GlobalPush(_)
            | Answer::AnywhereReserve(_)
    )
}

impl Planet {
    /// A call of an object. Its timeout runs already.
    pub(super) fn send_call(&mut self, station: u16, call: Call) {
        let object = &self.stations[usize::from(station)];
        let from = Caller::Object { station, life: object.life, call: call.number as u32 };
        if matches!(call.request, Request::AnywhereLease(_) | Request::AnywhereReserve(_)) {
            self.measure.pool_calls += 1;
        }
        // Not that of a data center, which asks for nobody.
        if matches!(&call.request, Request::CounterTake(take) if !take.asks.is_empty()) {
            self.measure.counter_calls += 1;
        }
        let to = self.station_of(call.object(), &call.name);
        self.send(from, to, call.request);
    }

    /// A call of a worker. It gets one end: an answer, or none in time.
    pub(super) fn call(&mut self, from: Caller, to: u16, request: Request, deadline_ms: u64) {
        match request {
            Request::CounterTake(_) => self.measure.counter_calls += 1,
            Request::AnywhereTake(_) | Request::AnywhereReserve(_) => self.measure.pool_calls += 1,
            _ => {}
        }
        self.time_out(from, deadline_ms);
        self.send(from, to, request);
    }

    /// Whether somebody is 0.1.0.
    fn is_old(&self, caller: Caller) -> bool {
        match caller {
            Caller::Object { station, .. } => self.stations[usize::from(station)].old,
            Caller::Worker { colo, worker, .. } => {
                self.colos[usize::from(colo)].workers[usize::from(worker)].old
            }
            Caller::Operator | Caller::Nobody => false,
        }
    }

    fn send(&mut self, from: Caller, to: u16, request: Request) {
        let request = if self.is_old(from) { v0_1_0::request(&request) } else { Some(request) };
        let Some(request) = request else { return };
        let behind_backs = is_behind_backs(&request);
        if let Request::GlobalPush(report) = &request {
            self.measure.report_bytes(report);
        }
        let way = self.way(self.end_of(from), self.end_at(to));
        let way = way + if to == ANYWHERE { self.setup.anywhere_delay_ms } else { 0 };
        let message = self.message(from, request);
        self.own_way(from, to, way + message.service_ms(), false);
        let late = way + if behind_backs { self.jitter() } else { 0 };
        let lost = behind_backs && self.is_lost();
        if !lost && behind_backs && self.setup.twice > 0.0 && self.network.f64() < self.setup.twice {
            let again = late + self.jitter();
            self.arrives_after(again, to, self.message(Caller::Nobody, message.request.clone()));
        }
        if !lost {
            self.arrives_after(late, to, message);
        }
    }

    pub(super) fn message(&self, from: Caller, request: Request) -> Message {
        let micros = self.setup.service_micros + self.setup.item_micros * items(&request);
        Message { from, life: None, service_micros: micros as u32, request }
    }

    /// A message comes to an object after some milliseconds. It is looked at when it is served, if it is the only one.
    pub(super) fn arrives_after(&mut self, milliseconds: u64, station: u16, message: Message) {
        let at = self.now() + milliseconds + message.service_ms();
        self.clockwork.at(at, Event::Arrives { station, message: Box::new(message) });
    }

    /// An object's answer goes back.
    pub(super) fn send_answer(&mut self, station: u16, to: Caller, answer: Option<Answer>) {
        if to == Caller::Nobody {
            return;
        }
        let old = self.stations[usize::from(station)].old;
        let answer = if old { answer.as_ref().and_then(v0_1_0::answer) } else { answer };
        self.weigh(to, answer.as_ref());
        let behind_backs = answer.as_ref().is_some_and(answers_behind_backs);
        let way = self.way(self.end_at(station), self.end_of(to));
        self.own_way(to, station, way, true);
        let late = way + if behind_backs { self.jitter() } else { 0 };
        if !(behind_backs && self.is_lost()) {
            self.clockwork.at(self.now() + late, Event::Ended(Box::new(Ended { to, answer })));
        }
    }

    /// A call will have taken too long after so many milliseconds. Most have ended by then, so they wait in lines, of which
    /// only the first ones are looked at.
    pub(super) fn time_out(&mut self, caller: Caller, after_ms: u64) {
        let at = self.now() + after_ms;
        let line = self.timeouts.iter().position(|line| line.after_ms == after_ms).unwrap_or_else(|| {
            self.timeouts.push(Timeouts { after_ms, line: VecDeque::new() });
            self.timeouts.len() - 1
        });
        let calls = &mut self.timeouts[line].line;
        calls.push_back((at, caller));
        if calls.len() == 1 {
            self.clockwork.at(at, Event::Timeout(line as u16));
        }
    }

    /// The first calls of a line have taken too long, unless they have ended.
    pub(super) fn timed_out(&mut self, line: u16) {
        let now = self.now();
        while let Some((at, caller)) = self.timeouts[usize::from(line)].line.front().copied() {
            let waits = match caller {
                Caller::Object { station, life, call } => self.waits(station, life, call),
                Caller::Worker { colo, worker, call } => self.worker_waits(colo, worker, call),
                Caller::Operator => self.operator_waits(at),
                Caller::Nobody => false,
            };
            if waits && now < at {
                self.clockwork.at(at, Event::Timeout(line));
                return;
            }
            self.timeouts[usize::from(line)].line.pop_front();
            if waits {
                self.ended(caller, None);
            }
        }
    }

    /// A call has ended, or takes too long.
    pub(super) fn ended(&mut self, to: Caller, answer: Option<Answer>) {
        let answer = if self.is_old(to) { answer.as_ref().and_then(v0_1_0::answer) } else { answer };
        match to {
            Caller::Object { station, life, call } => self.object_hears(station, life, call, answer),
            Caller::Worker { colo, worker, call } => self.worker_hears(colo, worker, call, answer),
            Caller::Operator => self.operator_hears(answer.is_some()),
            Caller::Nobody => {}
        }
    }

    fn own_way(&mut self, worker: Caller, station: u16, way: u64, back: bool) {
        let Station { object, colo: own, .. } = self.stations[usize::from(station)];
        if object == Object::Counter && matches!(worker, Caller::Worker { .. }) {
            let bounds = &mut self.measure.bounds;
            if back { bounds.own_way_back(own, way) } else { bounds.own_way(own, way) }
        }
    }

    fn weigh(&mut self, to: Caller, answer: Option<&Answer>) {
        match answer {
            Some(Answer::GlobalPush(answer) | Answer::GlobalState(answer)) => {
                let Some(state) = &answer.state else { return };
                let to_anywhere = matches!(to, Caller::Object { station: ANYWHERE, .. });
                self.measure.state_bytes(state, to_anywhere);
            }
            Some(Answer::DataCenterReport(answer)) => self.measure.answer_bytes(answer),
            _ => {}
        }
    }

    fn end_of(&self, caller: Caller) -> End {
        match caller {
            Caller::Object { station, .. } => self.end_at(station),
            Caller::Worker { colo, .. } => End::Worker(colo),
            Caller::Operator | Caller::Nobody => End::Room,
        }
    }

    fn end_at(&self, station: u16) -> End {
        let Station { colo, object, .. } = self.stations[usize::from(station)];
        match object {
            Object::Anywhere | Object::Global => End::Room,
            _ => colo.checked_sub(self.colos.len() as u16).map_or(End::Object(colo), End::Region),
        }
    }

    /// How long a message takes from one end to the other, in milliseconds.
    fn way(&mut self, from: End, to: End) -> u64 {
        let ways = |colo: u16| self.colos[usize::from(colo)].ways;
        let micros = match (from, to) {
            (End::Worker(colo), End::Object(_)) | (End::Object(_), End::Worker(colo)) => {
                ways(colo).to_objects
            }
            (End::Worker(colo), End::Room) | (End::Room, End::Worker(colo)) => ways(colo).to_room,
            (End::Object(colo), End::Room) | (End::Room, End::Object(colo)) => ways(colo).from_objects,
            (End::Object(colo), End::Region(_)) | (End::Region(_), End::Object(colo)) => {
                ways(colo).objects_to_region
            }
            (End::Region(region), End::Room) | (End::Room, End::Region(region)) => {
                self.regions[usize::from(region)].1
            }
            _ => NEAR_MICROS,
        };
        let delay = self.delays[usize::from(self.network.u8(..))];
        (micros * u64::from(delay) / 256 + 500) / 1_000
    }

    fn is_lost(&mut self) -> bool {
        self.setup.loss > 0.0 && self.network.f64() < self.setup.loss
    }

    fn jitter(&mut self) -> u64 {
        if self.setup.jitter_ms == 0 { 0 } else { self.network.u64(0..=self.setup.jitter_ms) }
    }
}
