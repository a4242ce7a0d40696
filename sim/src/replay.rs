//! A history that was recorded in the real Workers runtime, checked a second time: every object's inputs go through its
//! machine again, with the clock readings and random numbers of then, and what it answers and calls must be the same bytes.
//!
//! `tests/edge/world.mjs` records. The platform's side of an object reads the clock once per input, right after what the
//! input is about: a message, the end of a call, the alarm; nothing: the time that the machine has asked for. An object
//! that is made anew begins with what it loaded from storage then.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

use anteroom::config::{Room, Rooms, Webhooks};
use anteroom::machines::{
    Anywhere, Call, Context, Counter, DataCenter, Effect, Global, GlobalInput, Input, MemoryRows,
    ObjectMachine, Outside, Stored,
};
use anteroom::protocol::messages::room_and_colo;
use anteroom::protocol::{Answer, Object, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// What was recorded of a room.
#[derive(Debug, Deserialize)]
pub struct History {
    /// The room's var, as its owner wrote it, by the var's name.
    rooms: BTreeMap<String, serde_json::Value>,
    /// Timeout of calls on the visitor's path, in milliseconds.
    deadline_ms: u64,
    /// What each object saw and said, in its order.
    objects: Vec<Vec<Entry>>,
}

/// One thing that an object saw or said. Bodies are in base64; messages and calls are counted from 1 since the start.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Entry {
    /// It was made.
    Start { start: String, name: String },
    /// It looked at the clock: milliseconds since the epoch.
    Now { now: u64 },
    /// It drew random bytes.
    Random { random: Bytes },
    /// It loaded something from storage.
    Loaded { loaded: String, body: Bytes },
    /// It reads a message that came.
    Asked { asked: u64, route: String, body: Bytes },
    /// The answer left.
    Answered { answered: u64, route: String, status: u16, body: Bytes },
    /// It called another object.
    Called { called: u64, route: String, body: Bytes },
    /// It reads what another object answered; or the call failed.
    Heard { heard: u64, status: u16, body: Bytes },
    /// It waits no longer for what another object answers.
    GivenUp { given_up: u64 },
    /// Its alarm rang.
    Alarm {
        #[serde(rename = "alarm")]
        _alarm: bool,
    },
}

/// Bytes, in base64 on paper.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Bytes(Vec<u8>);

impl TryFrom<String> for Bytes {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        STANDARD.decode(text).map(Self)
    }
}

/// Why a history cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayError(String);

impl fmt::Display for ReplayError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ReplayError {}

fn cannot(what: impl fmt::Display) -> ReplayError {
    ReplayError(format!("this history cannot be replayed: {what}"))
}

/// How many messages of a kind were the same bytes again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The same.
    pub same: u64,
    /// All.
    pub all: u64,
}

/// What came of a replay, by object and route.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Per kind of message.
    pub tallies: BTreeMap<String, Tally>,
    /// The first differences, in words.
    pub differences: Vec<String>,
}

impl Replayed {
    fn compare(&mut self, kind: String, place: &str, was: &[u8], is: Option<&[u8]>) {
        let same = is == Some(was);
        if !same && self.differences.len() < 20 {
            self.differences.push(format!("{kind}, {place}: was {was:02x?}, is {is:02x?}"));
        }
        let tally = self.tallies.entry(kind).or_default();
        tally.all += 1;
        tally.same += u64::from(same);
    }

    /// Whether everything was the same.
    pub fn is_same(&self) -> bool {
        self.tallies.values().all(|tally| tally.same == tally.all)
    }
}

/// Replays a history.
///
/// # Errors
/// When it is no history, or one that cannot be replayed.
pub fn replay(text: &str) -> Result<Replayed, ReplayError> {
    let history: History = serde_json::from_str(text).map_err(cannot)?;
    let (rooms, errors) = Rooms::from_vars(history.rooms.into_iter());
    if let Some(error) = errors.first() {
        return Err(cannot(error));
    }
    let mut replayed = Replayed::default();
    for entries in &history.objects {
        let mut life: Option<Life> = None;
        // Tables are not recorded: they outlive the machine here too.
        let rows = MemoryRows::default();
        for (index, entry) in entries.iter().enumerate() {
            if let Entry::Start { start, name } = entry {
                let (room, _) = room_and_colo(name);
                let room = rooms.get(room).ok_or_else(|| cannot(format!("there is no room {room}")))?;
                if let Some(other) = life.filter(|life| life.name != *name) {
                    return Err(cannot(format!("{name} and {} are written down as one", other.name)));
                }
                life = Some(Life::new(start, name, room, history.deadline_ms, rows.clone())?);
            } else if let Some(life) = &mut life {
                life.take(entry, &mut replayed).map_err(|what| {
                    cannot(format!("{:?} {}, entry {index}: {what}", life.object, life.name))
                })?;
            }
        }
    }
    Ok(replayed)
}

/// An object from one start on.
struct Life {
    object: Object,
    name: String,
    room: Rc<Room>,
    deadline_ms: u64,
    rows: MemoryRows,
    stored: Stored,
    random: u64,
    machine: Option<Box<dyn ObjectMachine>>,
    /// What the next reading of the clock is for.
    inputs: VecDeque<Input>,
    /// When the machine is told the time.
    timer: Option<u64>,
    /// What it answers, by the message's number.
    answers: BTreeMap<u64, Option<Answer>>,
    /// What it has called.
    calls: Vec<Call>,
}

impl Life {
    fn new(
        start: &str,
        name: &str,
        room: &Room,
        deadline_ms: u64,
        rows: MemoryRows,
    ) -> Result<Self, ReplayError> {
        let objects = [Object::Counter, Object::Anywhere, Object::DataCenter, Object::Global];
        let object = objects.into_iter().find(|object| format!("{object:?}") == start);
        Ok(Self {
            object: object.ok_or_else(|| cannot(format!("{start} is no object")))?,
            name: name.to_owned(),
            room: Rc::new(room.clone()),
            deadline_ms,
            rows,
            stored: Stored::new(),
            random: 0,
            machine: None,
            inputs: VecDeque::new(),
            timer: None,
            answers: BTreeMap::new(),
            calls: Vec::new(),
        })
    }

    /// A call by its number, which counts from 1.
    fn call(&self, number: u64) -> Option<&Call> {
        self.calls.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    fn colo(&self) -> &str {
        room_and_colo(&self.name).1
    }

    /// Its machine, as it starts.
    fn machine(&self, now: u64) -> Result<Box<dyn ObjectMachine>, String> {
        let (room, stored, colo) = (&self.room, &self.stored, self.colo());
        Ok(match self.object {
            Object::Counter => Box::new(Counter::restore(stored, self.random, now)),
            Object::Anywhere => Box::new(Anywhere::restore(room, stored, now)),
            Object::DataCenter => Box::new(DataCenter::restore(room, colo, stored, self.random, now)),
            Object::Global => {
                let outside = Outside {
                    rows: Box::new(self.rows.clone()),
                    webhooks: Webhooks::default(),
                    reachable: Vec::new(),
                    pushes: false,
                    words: |kind, _| kind.to_owned(),
                    sockets: Vec::new(),
                    random: self.random,
                };
                let global = Global::restore(room, stored, outside, now);
                Box::new(global.map_err(|_| "its tables cannot be read")?)
            }
        })
    }

    fn take(&mut self, entry: &Entry, replayed: &mut Replayed) -> Result<(), String> {
        match entry {
            Entry::Random { random } if self.random == 0 => {
                let bytes = random.0.as_slice().try_into().map_err(|_| "random bytes are eight")?;
                self.random = u64::from_le_bytes(bytes).max(1);
            }
            Entry::Start { .. } | Entry::Random { .. } => {}
            Entry::Loaded { loaded, body } => {
                self.stored.insert(loaded.clone(), body.0.clone());
            }
            Entry::Now { now } => self.tell(*now)?,
            Entry::Asked { asked, route, body } => {
                let request = Request::decode(self.object, route, &body.0);
                let request = request.ok_or("there is no such route")?.map_err(|error| error.to_string())?;
                self.inputs.push_back(Input::Asked { from: *asked, request });
            }
            Entry::Answered { answered, route, status, body } => {
                let is = self.answers.remove(answered).ok_or("an answer without a message")?;
                let is = is.and_then(|answer| answer.encode().ok());
                let kind = format!("{:?} answers {route}", self.object);
                if *status == 200 || is.is_some() {
                    let was = if *status == 200 { body.0.as_slice() } else { &[] };
                    replayed.compare(kind, &self.name, was, is.as_deref());
                }
            }
            Entry::Called { called, route, body } => {
                let call = self.call(*called).map(|call| &call.request);
                let is =
                    call.filter(|request| request.route() == route).and_then(|request| request.encode().ok());
                let kind = format!("{:?} calls {route}", self.object);
                replayed.compare(kind, &self.name, &body.0, is.as_deref());
            }
            Entry::Heard { heard, status, body } => {
                let call = self.call(*heard).ok_or("an answer to a call that was not made")?;
                let answer = (*status == 200)
                    .then(|| Answer::decode(call.object(), call.request.route(), &body.0))
                    .transpose()
                    .map_err(|error| error.to_string())?;
                self.inputs.push_back(Input::Answered { call: call.number, answer });
            }
            Entry::GivenUp { given_up } => {
                let call = self.call(*given_up).ok_or("a call is given up that was not made")?;
                self.inputs.push_back(Input::Answered { call: call.number, answer: None });
            }
            Entry::Alarm { .. } => self.inputs.push_back(Input::Alarm),
        }
        Ok(())
    }

    /// The clock was read: the machine starts, or is told something.
    fn tell(&mut self, now: u64) -> Result<(), String> {
        if self.machine.is_none() {
            self.machine = Some(self.machine(now)?);
            return Ok(());
        }
        let input = match self.inputs.pop_front() {
            Some(input) => input,
            None => self.by_itself(now)?,
        };
        let mut effects = Vec::new();
        let Some(machine) = &mut self.machine else { return Ok(()) };
        let (room, colo) = (&self.room, room_and_colo(&self.name).1);
        let context = Context { room, colo, deadline_ms: self.deadline_ms, now };
        machine.handle(&context, input, &mut effects);
        if let Some(at) = machine.next_timer() {
            self.timer = Some(self.timer.map_or(at, |timer| timer.min(at)));
        }
        for effect in effects {
            match effect {
                Effect::Reply { to, answer } => _ = self.answers.insert(to, Some(answer)),
                Effect::Refuse { to, .. } => _ = self.answers.insert(to, None),
                Effect::Call(call) => self.calls.push(call),
                _ => {}
            }
        }
        Ok(())
    }

    /// What happens though nothing has come.
    fn by_itself(&mut self, now: u64) -> Result<Input, String> {
        if self.timer.is_some_and(|timer| timer <= now) {
            self.timer = None;
            return Ok(Input::Timer);
        }
        if self.object == Object::Global {
            // After an alarm it is told which sockets are open.
            return Ok(Input::Global(GlobalInput::Sockets(Vec::new())));
        }
        Err(format!("nothing is known that happened at {now}"))
    }
}
