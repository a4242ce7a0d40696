//! The network: messages, how long they take, which get lost or come twice, and calls with their timeouts and answers.

use std::collections::VecDeque;

use anteroom::machines::Call;
use anteroom::protocol::{Answer, Object, Request};

use super::{Event, Planet};

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
    /// An operator, or a message that came twice.
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
            Self::Nobody => u64::MAX,
        }
    }

    pub(super) fn of(number: u64) -> Self {
        let (first, second, call) = ((number >> 48) as u16, (number >> 32) as u16, number as u32);
        match (number, second & 0x8000) {
            (u64::MAX, _) => Self::Nobody,
            (_, 0) => Self::Object { station: first, life: second, call },
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
    pub(super) request: Request,
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
    /// In a colo: a worker or Counter.
    Colo,
    DataCenter(u16),
    Anywhere,
    Global,
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
        if matches!(call.request, Request::AnywhereLease(_)) {
            self.measure.pool_calls += 1;
        }
        let to = self.station_of(call.object(), &call.name);
        self.send(from, to, call.request);
    }

    /// A call of a worker. It gets one end: an answer, or none in time.
    pub(super) fn call(&mut self, from: Caller, to: u16, request: Request, deadline_ms: u64) {
        match request {
            Request::CounterTake(_) => self.measure.counter_calls += 1,
            Request::AnywhereTake(_) => self.measure.pool_calls += 1,
            _ => {}
        }
        self.time_out(from, deadline_ms);
        self.send(from, to, request);
    }

    fn send(&mut self, from: Caller, to: u16, request: Request) {
        let behind_backs = is_behind_backs(&request);
        if let Request::GlobalPush(report) = &request {
            self.measure.report_bytes(report);
        }
        // Until it is served, if it is the only one.
        let way = self.way(self.end_of(from), self.end_at(to)) + self.service_ms();
        let late = way + if behind_backs { self.jitter() } else { 0 };
        let lost = behind_backs && self.is_lost();
        if !lost && behind_backs && self.setup.twice > 0.0 && self.network.f64() < self.setup.twice {
            let again = late + self.jitter();
            let message = Message { from: Caller::Nobody, life: None, request: request.clone() };
            let event = Event::Arrives { station: to, message: Box::new(message) };
            self.clockwork.at(self.now() + again, event);
        }
        if !lost {
            let message = Box::new(Message { from, life: None, request });
            self.clockwork.at(self.now() + late, Event::Arrives { station: to, message });
        }
    }

    /// An object's answer goes back.
    pub(super) fn send_answer(&mut self, station: u16, to: Caller, answer: Option<Answer>) {
        if to == Caller::Nobody {
            return;
        }
        self.weigh(to, answer.as_ref());
        let behind_backs = answer.as_ref().is_some_and(answers_behind_backs);
        let way = self.way(self.end_at(station), self.end_of(to));
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
        match to {
            Caller::Object { station, life, call } => self.object_hears(station, life, call, answer),
            Caller::Worker { colo, worker, call } => self.worker_hears(colo, worker, call, answer),
            Caller::Nobody => {}
        }
    }

    fn weigh(&mut self, to: Caller, answer: Option<&Answer>) {
        match answer {
            Some(Answer::GlobalPush(answer) | Answer::GlobalState(answer)) => {
                let Some(state) = &answer.state else { return };
                self.measure.state_bytes(state, self.end_of(to) == End::Anywhere);
            }
            Some(Answer::DataCenterReport(answer)) => self.measure.answer_bytes(answer),
            _ => {}
        }
    }

    fn end_of(&self, caller: Caller) -> End {
        match caller {
            Caller::Object { station, .. } => self.end_at(station),
            Caller::Worker { .. } | Caller::Nobody => End::Colo,
        }
    }

    fn end_at(&self, station: u16) -> End {
        let station = &self.stations[usize::from(station)];
        match station.object {
            Object::Counter => End::Colo,
            Object::DataCenter => End::DataCenter(station.colo),
            Object::Anywhere => End::Anywhere,
            Object::Global => End::Global,
        }
    }

    /// How long a message takes from one end to the other.
    fn way(&mut self, from: End, to: End) -> u64 {
        match (from, to) {
            (End::Global, End::DataCenter(colo)) | (End::DataCenter(colo), End::Global) => {
                self.colos[usize::from(colo)].latency
            }
            (End::Global, _) | (_, End::Global) => self.link(self.setup.between_ms),
            (End::Anywhere, _) | (_, End::Anywhere) => self.link(self.setup.pool_ms),
            _ => self.link(self.setup.local_ms),
        }
    }

    fn link(&mut self, (from, to): (u64, u64)) -> u64 {
        self.network.u64(from..=to)
    }

    fn is_lost(&mut self) -> bool {
        self.setup.loss > 0.0 && self.network.f64() < self.setup.loss
    }

    fn jitter(&mut self) -> u64 {
        if self.setup.jitter_ms == 0 { 0 } else { self.network.u64(0..=self.setup.jitter_ms) }
    }
}
