//! The objects: machines, each behind a queue and over a storage of its own, with the platform's timers and alarm.

use anteroom::admission::{StateKey, minute_of};
use anteroom::config::Webhooks;
use anteroom::counts;
use anteroom::history::{Minute, Record};
use anteroom::machines::{
    Anywhere, Context, Counter, DataCenter, Effect, Global, Input, MemoryRows, ObjectMachine, Outside, Rows,
    Series, Stored,
};
use anteroom::protocol::messages::{StateRequest, VERSION, room_and_colo};
use anteroom::protocol::{Answer, Object, Request, wire};
use anteroom::time::Steady;

use super::network::{Caller, Ended, Message};
use super::storage::{Storage, Write};
use super::{Event, Planet};
use crate::literal::Attempts;
use crate::v0_1_0;

/// Retry interval of an alarm whose work broke off, in milliseconds.
const RING_AGAIN_MS: u64 = 2_000;

/// Time until an object that was made anew has read its storage and serves, in microseconds.
const START_MICROS: u64 = 5_000;

/// Where Anywhere and Global stand among the objects; a Counter and a `DataCenter` for each colo follow, then the Counters of the
/// regions.
pub(super) const ANYWHERE: u16 = 0;
pub(super) const GLOBAL: u16 = 1;

/// Where a colo's Counter stands.
pub(super) fn counter_of(colo: u16) -> u16 {
    2 + 2 * colo
}

/// Where a colo's `DataCenter` stands.
pub(super) fn data_center_of(colo: u16) -> u16 {
    3 + 2 * colo
}

pub(super) enum Machine {
    Counter(Box<Counter>),
    Anywhere(Box<Anywhere>),
    DataCenter(Box<DataCenter>),
    Global(Box<Global>),
    /// A Counter or Anywhere of the literal `counters`.
    Literal(Attempts),
}

impl Machine {
    fn handle(&mut self, context: &Context<'_>, input: Input, effects: &mut Vec<Effect>) {
        match self {
            Self::Counter(machine) => machine.handle(context, input, effects),
            Self::Anywhere(machine) => machine.handle(context, input, effects),
            Self::DataCenter(machine) => machine.handle(context, input, effects),
            Self::Global(machine) => machine.handle(context, input, effects),
            Self::Literal(machine) => machine.handle(context, input, effects),
        }
    }

    fn next_timer(&self) -> Option<u64> {
        match self {
            Self::Counter(machine) => machine.next_timer(),
            Self::Anywhere(machine) => machine.next_timer(),
            Self::DataCenter(machine) => machine.next_timer(),
            Self::Global(machine) => machine.next_timer(),
            Self::Literal(machine) => machine.next_timer(),
        }
    }
}

/// Where an object runs.
pub(super) struct Station {
    pub(super) object: Object,
    /// For a colo's objects: which; for a region's: behind all colos.
    pub(super) colo: u16,
    /// Its name; empty for Anywhere and Global.
    colo_name: String,
    pub(super) skew: i64,
    clock: Steady,
    /// It is 0.1.0.
    pub(super) old: bool,
    pub(super) machine: Machine,
    /// How often it was made anew.
    pub(super) life: u16,
    /// When something came last: without anything it loses its memory.
    woken_at: u64,
    /// Until when it serves what has come, in microseconds.
    busy_until: u64,
    /// It has not written anything.
    is_new: bool,
    /// Until then it hangs: what comes is lost, and nothing leaves.
    pub(super) out_until: u64,
    storage: Storage,
    /// When the last write is confirmed.
    confirmed_at: u64,
    /// What leaves waits until then for a write.
    gate_until: u64,
    alarm: Option<u64>,
    alarm_runs: bool,
    /// When the machine is told the time next.
    timer: Option<u64>,
    /// Calls that have not ended.
    calls: Vec<u32>,
    /// An older instance that goes on beside its successor: where that stands, and until when.
    replaced: Option<(u16, u64)>,
}

/// What 0.1.0 finds in storage.
fn as_read_by_0_1_0(stored: &Stored) -> Stored {
    let read = |(key, bytes): (&String, &Vec<u8>)| Some((key.clone(), v0_1_0::record(key, bytes)?));
    stored.iter().filter_map(read).collect()
}

/// What waits for a write to be confirmed; lost when the object ends before.
pub(super) struct Held {
    life: u16,
    effects: Vec<Effect>,
}

impl Station {
    fn new(object: Object, colo: Option<u16>, machine: Machine, storage: Storage) -> Self {
        Self {
            object,
            colo: colo.unwrap_or(u16::MAX),
            colo_name: String::new(),
            skew: 0,
            clock: Steady::new(),
            old: false,
            machine,
            life: 0,
            woken_at: 0,
            busy_until: 0,
            is_new: true,
            out_until: 0,
            storage,
            confirmed_at: 0,
            gate_until: 0,
            alarm: None,
            alarm_runs: false,
            timer: None,
            calls: Vec::new(),
            replaced: None,
        }
    }

    /// The time by its own clock.
    fn local(&mut self, now: u64) -> u64 {
        self.clock.read(now.saturating_add_signed(self.skew))
    }

    /// When its own clock says so.
    fn true_time(&self, local: u64) -> u64 {
        self.clock.platform_time(local).saturating_add_signed(-self.skew)
    }
}

impl Planet {
    /// Puts an object that has stored nothing where it stands: behind those that are there.
    pub(super) fn make_object(&mut self, object: Object, colo: Option<u16>) {
        let storage = Storage::default();
        let (colo_name, skew) = colo.map_or((String::new(), 0), |index| {
            let colo = self.colos.get(usize::from(index));
            let region = || self.regions[usize::from(index) - self.colos.len()].0.to_owned();
            colo.map_or_else(|| (region(), 0), |colo| (colo.name.clone(), colo.skew))
        });
        let now = self.now().saturating_add_signed(skew);
        let machine = self.machine(object, &colo_name, &Stored::new(), storage.rows(), now);
        let station = Station::new(object, colo, machine, storage);
        self.stations.push(Station { colo_name, skew, old: self.deploys_old, ..station });
        let index = self.stations.len() as u16 - 1;
        self.measure.object_made(index, object);
        self.plan_timer(index);
    }

    /// An object as it starts with what is stored.
    fn machine(
        &mut self,
        object: Object,
        colo: &str,
        stored: &Stored,
        rows: MemoryRows,
        now: u64,
    ) -> Machine {
        let (room, random) = (&self.room, self.chance.u64(1..));
        match object {
            Object::Counter | Object::Anywhere if self.literal => Machine::Literal(Attempts::default()),
            Object::Counter => Machine::Counter(Box::new(Counter::restore(stored, random, now))),
            Object::Anywhere => Machine::Anywhere(Box::new(Anywhere::restore(room, stored, now))),
            Object::DataCenter => {
                Machine::DataCenter(Box::new(DataCenter::restore(room, colo, stored, random, now)))
            }
            Object::Global => {
                let outside = Outside {
                    rows: Box::new(rows),
                    webhooks: Webhooks::default(),
                    reachable: Vec::new(),
                    pushes: false,
                    words: |kind, _| kind.to_owned(),
                    sockets: Vec::new(),
                    random,
                };
                let Ok(global) = Global::restore(room, stored, outside, now) else {
                    unreachable!("tables in memory can always be read")
                };
                Machine::Global(Box::new(global))
            }
        }
    }

    /// What Global has counted.
    pub(super) fn global(&self) -> Option<&counts::Global> {
        match &self.stations[usize::from(GLOBAL)].machine {
            Machine::Global(global) => Some(global.counts()),
            _ => None,
        }
    }

    /// What Global has recorded, and the last minute of it.
    pub(super) fn recorded(&self) -> (Vec<(u32, Record)>, Option<Minute>) {
        let rows = self.stations[usize::from(GLOBAL)].storage.rows();
        let all = |series| rows.range(series, 0, u32::MAX).unwrap_or_default();
        let records = all(Series::Minutes);
        let record = |(minute, row): &(u32, Vec<u8>)| Some((*minute, wire::decode(row).ok()?));
        let last = all(Series::Parts).pop().and_then(|(_, row)| wire::decode(&row).ok());
        (records.iter().filter_map(record).collect(), last)
    }

    /// The state as Global would tell it now, to nobody.
    pub(super) fn known_state(&mut self) -> StateKey {
        let now = self.end;
        let context = Context { room: &self.room, colo: "", deadline_ms: 0, now };
        let asked =
            StateRequest { v: VERSION, minute: minute_of(now), given: None, colo: String::new(), leases: 0 };
        let request = Request::GlobalState(Box::new(asked));
        let mut effects = Vec::new();
        let input = Input::Asked { from: Caller::Nobody.number(), request };
        self.stations[usize::from(GLOBAL)].machine.handle(&context, input, &mut effects);
        let state = effects.into_iter().find_map(|effect| match effect {
            Effect::Reply { answer: Answer::GlobalState(answer), .. } => answer.state,
            _ => None,
        });
        state.unwrap_or_default()
    }

    /// Where the object of a name stands.
    pub(super) fn station_of(&self, object: Object, name: &str) -> u16 {
        match object {
            Object::Anywhere => ANYWHERE,
            Object::Global => GLOBAL,
            Object::Counter | Object::DataCenter => {
                let (_, colo) = room_and_colo(name);
                if let Some(region) = self.regions.iter().position(|(hint, _)| *hint == colo) {
                    return self.first_region() + region as u16;
                }
                let colo = self.colos.binary_search_by(|known| known.name.as_str().cmp(colo));
                let colo = colo.unwrap_or_default() as u16;
                if object == Object::Counter { counter_of(colo) } else { data_center_of(colo) }
            }
        }
    }

    fn is_dead(&self, station: u16) -> bool {
        let Station { colo, replaced, .. } = self.stations[usize::from(station)];
        self.colos.get(usize::from(colo)).is_some_and(|colo| colo.dead)
            || replaced.is_some_and(|(_, until)| until <= self.now())
    }

    /// How many objects there are; older instances of them stand behind.
    pub(super) fn objects(&self) -> u16 {
        self.first_region() + self.regions.len() as u16
    }

    /// Where the Counters of the regions begin.
    fn first_region(&self) -> u16 {
        counter_of(self.colos.len() as u16)
    }

    /// The older instance of an object that goes on beside it, if there is one; of a life, or any.
    fn older(&self, index: u16, life: Option<u16>) -> Option<u16> {
        let is_it = |of: &u16| {
            let station = &self.stations[usize::from(*of)];
            station.replaced.is_some_and(|(by, _)| by == index)
                && life.is_none_or(|life| station.life & 0x7fff == life)
                && !self.is_dead(*of)
        };
        (self.objects()..self.stations.len() as u16).find(is_it)
    }

    /// Where the instance of an object stands that has a life.
    fn instance(&self, index: u16, life: u16) -> u16 {
        let is_newest = self.stations[usize::from(index)].life & 0x7fff == life & 0x7fff;
        if is_newest { index } else { self.older(index, Some(life & 0x7fff)).unwrap_or(index) }
    }

    /// An object is made anew, and the instance before goes on beside it for so long.
    pub(super) fn overlap(&mut self, index: u16, milliseconds: u64) {
        let until = self.now() + milliseconds;
        // What the older one has written before it was replaced is there.
        self.stations[usize::from(index)].storage.confirm();
        let Some(before) = self.restart(index) else { return };
        let place = self.stations.len() as u16;
        self.measure.object_made(place, before.object);
        self.stations.push(Station {
            replaced: Some((index, until)),
            timer: None,
            alarm: None,
            alarm_runs: false,
            ..before
        });
        self.plan_timer(place);
    }

    /// What an object has stored is gone.
    pub(super) fn forget_stored(&mut self, index: u16) {
        self.stations[usize::from(index)].storage = Storage::default();
    }

    /// Until when an object hangs, if it does.
    pub(super) fn hangs(&self, station: u16) -> Option<u64> {
        Some(self.stations[usize::from(station)].out_until).filter(|until| self.now() < *until)
    }

    // ---- What an object is told ----

    /// A message has come to an object, which serves one at a time: by now it is served, if it was the only one.
    pub(super) fn arrives(&mut self, index: u16, mut message: Box<Message>) {
        let older = self.older(index, None).filter(|_| self.network.bool());
        let index = older.unwrap_or(index);
        if self.is_dead(index) || self.hangs(index).is_some() {
            return;
        }
        let forgot = self.forget(index);
        let now = self.now();
        let came = (now - message.service_ms()) * 1_000;
        let station = &mut self.stations[usize::from(index)];
        station.woken_at = now;
        if forgot {
            // It starts when the message comes, not when that has been served.
            station.busy_until = came + START_MICROS;
        }
        let start = station.busy_until.max(came);
        if station.object == Object::Counter && station.is_new {
            self.measure.bounds.own_start(station.colo, (start - came).min(START_MICROS) / 1_000);
        }
        if start - came > self.setup.queue_ms * 1_000 {
            self.measure.refused += 1;
            self.send_answer(index, message.from, None);
            return;
        }
        station.busy_until = start + u64::from(message.service_micros);
        self.measure.object_request(index, now, start..station.busy_until);
        let done = station.busy_until.div_ceil(1_000);
        if done <= now {
            self.served(index, *message);
        } else {
            message.life = Some(station.life);
            self.clockwork.at(done, Event::Served { station: index, message });
        }
    }

    /// Where nothing has come for a while the platform has taken the memory of an object, unless it waits for an answer or a
    /// timer, or is about its alarm. Whatever comes next finds a new one, so that is soon enough to look. Returns whether
    /// it has.
    fn forget(&mut self, index: u16) -> bool {
        let (now, idle_ms) = (self.now(), self.setup.memory_loss_seconds * 1_000);
        let station = &self.stations[usize::from(index)];
        let forgets = idle_ms > 0
            && now >= station.woken_at + idle_ms
            && station.timer.is_none()
            && station.calls.is_empty()
            && !station.alarm_runs;
        if forgets {
            self.restart(index);
        }
        forgets
    }

    pub(super) fn served(&mut self, index: u16, message: Message) {
        let index = message.life.map_or(index, |life| self.instance(index, life));
        let station = &self.stations[usize::from(index)];
        let is_there = message.life.is_none_or(|life| life == station.life) && !self.is_dead(index);
        if is_there && self.hangs(index).is_none() {
            let asked = message.request;
            let request = if station.old { v0_1_0::request(&asked) } else { Some(asked) };
            let Some(request) = request else { return };
            self.tell(index, Input::Asked { from: message.from.number(), request });
        }
    }

    /// A call of an object has ended. Each ends once.
    pub(super) fn object_hears(&mut self, index: u16, life: u16, call: u32, answer: Option<Answer>) {
        let index = self.instance(index, life);
        if let Some(until) = self.hangs(index) {
            if answer.is_none() {
                let to = Caller::Object { station: index, life, call };
                self.clockwork.at(until, Event::Ended(Box::new(Ended { to, answer })));
            }
            return;
        }
        let station = &mut self.stations[usize::from(index)];
        let open = station.calls.iter().position(|open| *open == call);
        let Some(open) = open.filter(|_| station.life & 0x7fff == life) else { return };
        station.calls.swap_remove(open);
        self.measure.object_calls(index, self.clockwork.now(), -1);
        if !self.is_dead(index) {
            self.tell(index, Input::Answered { call: call.into(), answer });
        }
    }

    /// Whether a call has not ended.
    pub(super) fn waits(&self, index: u16, life: u16, call: u32) -> bool {
        let station = &self.stations[usize::from(self.instance(index, life))];
        station.life & 0x7fff == life && station.calls.contains(&call)
    }

    pub(super) fn timer(&mut self, index: u16) {
        let now = self.now();
        if self.stations[usize::from(index)].timer != Some(now) || self.is_dead(index) {
            // A sooner one has taken its place.
            return;
        }
        let hangs = self.hangs(index);
        let station = &mut self.stations[usize::from(index)];
        let now_there = station.local(now);
        (station.timer, station.woken_at) = (hangs, now);
        if let Some(until) = hangs {
            self.clockwork.at(until, Event::Timer(index));
        } else if station.machine.next_timer().is_some_and(|due| due <= now_there) {
            self.tell(index, Input::Timer);
        } else {
            self.plan_timer(index);
        }
    }

    pub(super) fn alarm(&mut self, index: u16) {
        let now = self.now();
        let hangs = self.hangs(index);
        let is_dead = self.is_dead(index);
        let station = &self.stations[usize::from(index)];
        // The new one has the alarm that was stored.
        if station.alarm != Some(now) || station.alarm_runs || is_dead || self.forget(index) {
            return;
        }
        let station = &mut self.stations[usize::from(index)];
        station.alarm = hangs;
        if let Some(until) = hangs {
            self.clockwork.at(until, Event::Alarm(index));
        } else {
            station.alarm_runs = true;
            station.storage.rings();
            self.measure.object_serves(index, now, now * 1_000..now * 1_000 + self.setup.service_micros);
            self.tell(index, Input::Alarm);
        }
    }

    fn tell(&mut self, index: u16, input: Input) {
        let now = self.now();
        let mut effects = std::mem::take(&mut self.effects);
        let station = &mut self.stations[usize::from(index)];
        station.woken_at = now;
        let now = station.local(now);
        let (colo, deadline_ms) = (&station.colo_name, self.setup.deadline_ms);
        let context = Context { room: &self.room, colo, deadline_ms, now };
        station.machine.handle(&context, input, &mut effects);
        self.carry_out(index, &mut effects);
        self.effects = effects;
        self.plan_timer(index);
    }

    pub(super) fn plan_timer(&mut self, index: u16) {
        let soonest = self.now() + 1;
        let station = &mut self.stations[usize::from(index)];
        let Some(due) = station.machine.next_timer() else { return };
        let due = station.true_time(due).max(soonest);
        if station.timer.is_none_or(|planned| due < planned) {
            station.timer = Some(due);
            self.measure.object_awake(index, self.clockwork.now(), due);
            self.clockwork.at(due, Event::Timer(index));
        }
    }

    // ---- What an object does ----

    fn carry_out(&mut self, index: u16, effects: &mut Vec<Effect>) {
        let is_write = |effect: &Effect| {
            matches!(
                effect,
                Effect::Store { .. } | Effect::Delete { .. } | Effect::SetAlarm { .. } | Effect::ClearAlarm
            )
        };
        if let Some((by, _)) = self.stations[usize::from(index)].replaced
            && let Some(refused) = effects.iter().position(is_write)
        {
            // That ends it.
            effects.truncate(refused);
            self.stations[usize::from(index)].replaced = Some((by, self.now()));
        }
        let mut write = Write::default();
        let mut held = Vec::new();
        let rows = self.stations[usize::from(index)].storage.rows_written();
        if rows > 0 {
            self.begin_write(index, &mut write, false);
        }
        for effect in effects.drain(..) {
            match effect {
                Effect::Store { key, bytes, background } => {
                    self.begin_write(index, &mut write, background);
                    let old = self.stations[usize::from(index)].old;
                    let bytes = if old { v0_1_0::record(&key, &bytes) } else { Some(bytes) };
                    write.records.push((key, bytes));
                }
                Effect::Delete { key } => {
                    self.begin_write(index, &mut write, false);
                    write.records.push((key, None));
                }
                Effect::SetAlarm { at } => {
                    self.begin_write(index, &mut write, false);
                    write.alarm = self.set_alarm(index, at);
                }
                Effect::ClearAlarm => {
                    self.begin_write(index, &mut write, false);
                    self.stations[usize::from(index)].alarm = None;
                    write.alarm = Some(0);
                }
                Effect::AlarmDone => self.alarm_done(index),
                Effect::Reply { .. } | Effect::Refuse { .. } => self.leaves(index, effect, &mut held),
                Effect::Call(call) => {
                    let station = &mut self.stations[usize::from(index)];
                    let number = call.number as u32;
                    station.calls.push(number);
                    self.measure.object_calls(index, self.clockwork.now(), 1);
                    let caller = Caller::Object { station: index, life: station.life, call: number };
                    self.time_out(caller, call.deadline_ms);
                    self.leaves(index, Effect::Call(call), &mut held);
                }
                // No scenario has webhooks, or operators who look.
                Effect::Global(_) => {}
            }
        }
        let now = self.now();
        let station = &mut self.stations[usize::from(index)];
        if write.confirmed_at > 0 {
            let records = (write.records.len() + usize::from(write.alarm.is_some())) as u64;
            self.measure.object_writes(index, rows + records);
            self.measure.object_awake(index, now, write.confirmed_at);
            station.storage.write(write, now);
        }
        if !held.is_empty() {
            let held = Box::new(Held { life: station.life, effects: held });
            self.clockwork.at(station.gate_until, Event::Confirmed { station: index, held });
        }
    }

    /// What one input writes is confirmed together. What leaves the object from now on waits for it.
    fn begin_write(&mut self, index: u16, write: &mut Write, background: bool) {
        let now = self.now();
        let (least, most) = self.setup.storage_ms;
        let station = &mut self.stations[usize::from(index)];
        if write.confirmed_at == 0 {
            write.confirmed_at = (now + self.chance.u64(least..=most)).max(station.confirmed_at + 1);
            station.confirmed_at = write.confirmed_at;
            if std::mem::take(&mut station.is_new) && station.object == Object::Counter {
                self.measure.bounds.own_start(station.colo, write.confirmed_at - now);
            }
        }
        if !background {
            station.gate_until = write.confirmed_at;
        }
    }

    /// What leaves an object waits at the gate for writes before it.
    fn leaves(&mut self, index: u16, effect: Effect, held: &mut Vec<Effect>) {
        if self.now() < self.stations[usize::from(index)].gate_until {
            held.push(effect);
        } else {
            self.send_effect(index, effect);
        }
    }

    fn send_effect(&mut self, index: u16, effect: Effect) {
        match effect {
            Effect::Reply { to, answer } => self.send_answer(index, Caller::of(to), Some(answer)),
            Effect::Refuse { to, .. } => self.send_answer(index, Caller::of(to), None),
            Effect::Call(call) => self.send_call(index, call),
            _ => {}
        }
    }

    /// A write is confirmed: what waited for it leaves.
    pub(super) fn confirmed(&mut self, index: u16, held: Box<Held>) {
        let index = self.instance(index, held.life);
        if self.stations[usize::from(index)].life != held.life || self.is_dead(index) {
            return;
        }
        if let Some(until) = self.hangs(index) {
            self.clockwork.at(until, Event::Confirmed { station: index, held });
            return;
        }
        for effect in held.effects {
            self.send_effect(index, effect);
        }
    }

    fn set_alarm(&mut self, index: u16, at: u64) -> Option<u64> {
        let soonest = self.now() + 1;
        let station = &mut self.stations[usize::from(index)];
        let at = station.true_time(at).max(soonest);
        if station.alarm.replace(at) != Some(at) {
            self.clockwork.at(at, Event::Alarm(index));
        }
        station.alarm
    }

    fn alarm_done(&mut self, index: u16) {
        let now = self.now();
        let station = &mut self.stations[usize::from(index)];
        station.alarm_runs = false;
        if station.alarm.is_some_and(|at| at <= now) {
            // It was to ring while the one before was at work.
            station.alarm = Some(now + 1);
            self.clockwork.at(now + 1, Event::Alarm(index));
        }
    }

    /// An object ends and is made anew. What it had not stored is gone, and what waits for its answers gets none. Returns the
    /// instance before, if there is a new one.
    pub(super) fn restart(&mut self, index: u16) -> Option<Station> {
        let now = self.now();
        let station = &mut self.stations[usize::from(index)];
        if let Some((_, until)) = &mut station.replaced {
            *until = now;
            return None;
        }
        if matches!(station.machine, Machine::Literal(_)) {
            // The article counts in storage.
            return None;
        }
        self.measure.object_ends(index, now);
        let mut storage = std::mem::take(&mut self.stations[usize::from(index)].storage);
        let rows = storage.rows();
        let (stored, mut alarm) = storage.end(now, &mut self.chance);
        let stored = if self.deploys_old { &as_read_by_0_1_0(stored) } else { stored };
        let station = &self.stations[usize::from(index)];
        if station.alarm_runs && alarm.is_none() {
            alarm = Some(now + RING_AGAIN_MS);
        }
        // The new one has not read the clock before.
        let mut clock = Steady::new();
        let local = clock.read(now.saturating_add_signed(station.skew));
        let (object, colo) = (station.object, station.colo_name.clone());
        let machine = self.machine(object, &colo, stored, rows, local);
        let station = &mut self.stations[usize::from(index)];
        let next = Station {
            old: self.deploys_old,
            clock,
            machine,
            storage,
            life: station.life.wrapping_add(1),
            woken_at: now,
            busy_until: now * 1_000 + START_MICROS,
            is_new: true,
            colo_name: colo,
            calls: Vec::new(),
            timer: None,
            gate_until: 0,
            alarm_runs: false,
            alarm: alarm.map(|at| at.max(now + 1)),
            ..*station
        };
        let before = std::mem::replace(station, next);
        if let Some(at) = station.alarm {
            self.clockwork.at(at, Event::Alarm(index));
        }
        self.plan_timer(index);
        Some(before)
    }
}
