//! A history that was recorded in the real Workers runtime, checked a second time: every object's messages go through
//! the core again, with the clock readings and random numbers of then, and the answers must be the same bytes.
//!
//! `tests/edge/world.mjs` records: each object in an isolate of its own, one event at a time, so that every reading of the
//! clock belongs to one event. An object that is made anew begins with what it loaded from storage then.

use std::collections::BTreeMap;
use std::fmt;

use anteroom::admission::{Anywhere, Counter, LeaseAnswer, LeaseCounter, Outcome, Pool, minute_of};
use anteroom::config::{Room, Rooms, SlotStrategy};
use anteroom::counts::{DataCenter, Global};
use anteroom::protocol::messages::{
    ColoReport, GIVEN, Given, HOLD, HoldSessions, LEASE, Lease, PUSH, REPORT, STATE, StateAnswer,
    StateRequest, TAKE, Take, Taken, VERSION, WorkerReport, room_and_colo,
};
use anteroom::protocol::wire;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What was recorded of a room.
#[derive(Debug, Deserialize)]
pub struct History {
    /// The room's var, as its owner wrote it, by the var's name.
    rooms: BTreeMap<String, serde_json::Value>,
    /// What each object saw and said, in its order.
    objects: Vec<Vec<Entry>>,
}

/// One thing that an object saw or said. Bodies are in base64.
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
    /// A message came.
    Asked { asked: String, body: Bytes },
    /// Its answer left.
    Answered { answered: u16, body: Bytes },
    /// Another object answered a call of its own.
    Heard { heard: String, status: u16, body: Bytes },
    /// Its alarm rang.
    Alarm {
        #[serde(rename = "alarm")]
        _alarm: bool,
    },
    /// All that the alarm did is done.
    Slept {
        #[serde(rename = "slept")]
        _slept: bool,
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

/// Messages that nobody asked for.
const REPORTED: &str = "DataCenter's report";
const CALLED: &str = "Counter's call to Anywhere";

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
    fn compare(&mut self, kind: &str, name: &str, index: usize, was: &[u8], is: &[u8]) {
        let tally = self.tallies.entry(kind.to_owned()).or_default();
        tally.all += 1;
        if was == is {
            tally.same += 1;
        } else if self.differences.len() < 20 {
            self.differences.push(format!("{kind} of {name}, entry {index}: was {was:02x?}, is {is:02x?}"));
        }
    }

    /// Whether everything was the same.
    pub fn is_same(&self) -> bool {
        self.tallies.values().all(|tally| tally.same == tally.all)
    }
}

/// The part of an object's log that belongs to one event, or that lies between two.
#[derive(Debug, Default)]
struct Event<'a> {
    /// The route; nothing between two events; an alarm has an empty one.
    route: Option<&'a str>,
    body: &'a [u8],
    /// Readings of the clock and answers of others, in their order.
    ticks: Vec<Tick<'a>>,
    /// The answer and its status.
    answer: Option<(u16, &'a [u8])>,
    index: usize,
}

#[derive(Debug, Clone, Copy)]
enum Tick<'a> {
    Now(u64),
    Heard(&'a str, Option<&'a [u8]>),
}

impl Event<'_> {
    fn readings(&self) -> Vec<u64> {
        let now = |tick: &Tick<'_>| if let Tick::Now(now) = tick { Some(*now) } else { None };
        self.ticks.iter().filter_map(now).collect()
    }

    fn message<T: DeserializeOwned>(&self) -> Result<T, ReplayError> {
        wire::decode(self.body).map_err(|error| cannot(format!("entry {}: {error}", self.index)))
    }
}

/// The log of an object from one start on: who it is, what it loaded, its events.
struct Log<'a> {
    kind: &'a str,
    name: &'a str,
    random: u64,
    loaded: Vec<(&'a str, &'a [u8])>,
    events: Vec<Event<'a>>,
}

impl<'a> Log<'a> {
    fn read(entries: &'a [Entry]) -> Result<Vec<Self>, ReplayError> {
        let mut logs: Vec<Self> = Vec::new();
        let mut event = Event::default();
        for (index, entry) in entries.iter().enumerate() {
            if let Entry::Start { start, name } = entry {
                event = Event::default();
                logs.push(Log { kind: start, name, random: 0, loaded: Vec::new(), events: Vec::new() });
                continue;
            }
            let Some(log) = logs.last_mut() else { continue };
            match entry {
                Entry::Now { now } => event.ticks.push(Tick::Now(*now)),
                Entry::Heard { heard, status, body } => {
                    event.ticks.push(Tick::Heard(heard, (*status == 200).then_some(&body.0)));
                }
                Entry::Random { random } if log.random == 0 => {
                    let bytes = random.0.as_slice().try_into().map_err(cannot)?;
                    log.random = u64::from_le_bytes(bytes).max(1);
                }
                Entry::Random { .. } | Entry::Start { .. } => {}
                Entry::Loaded { loaded, body } => log.loaded.push((loaded, &body.0)),
                Entry::Asked { .. } | Entry::Alarm { .. } => {
                    let (route, body) = match entry {
                        Entry::Asked { asked, body } => (asked.as_str(), body.0.as_slice()),
                        _ => ("", [].as_slice()),
                    };
                    let begun = Event { route: Some(route), body, index, ..Event::default() };
                    log.events.push(std::mem::replace(&mut event, begun));
                }
                Entry::Answered { .. } | Entry::Slept { .. } => {
                    if let Entry::Answered { answered, body } = entry {
                        event.answer = Some((*answered, &body.0));
                    }
                    log.events.push(std::mem::take(&mut event));
                }
            }
        }
        Ok(logs)
    }

    /// What it loaded from under a key.
    fn loaded<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let (_, body) = self.loaded.iter().find(|(of, _)| *of == key)?;
        wire::decode(body).ok()
    }

    /// The reading of its start.
    fn started(&self) -> Result<u64, ReplayError> {
        let first = self.events.first().map(Event::readings).and_then(|readings| readings.first().copied());
        first.ok_or_else(|| {
            cannot(format!("{} {} did not look at the clock at its start", self.kind, self.name))
        })
    }
}

fn bytes<T: Serialize>(message: &T) -> Result<Vec<u8>, ReplayError> {
    wire::encode(message).map_err(cannot)
}

/// What objects told others by themselves: by kind and colo, the bodies in their order.
type Mail = BTreeMap<(&'static str, String), Vec<Vec<u8>>>;

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
    let mut said = Mail::new();
    let mut heard = Mail::new();
    for entries in &history.objects {
        for log in Log::read(entries)? {
            let (room, _) = room_and_colo(log.name);
            let room = rooms.get(room).ok_or_else(|| cannot(format!("there is no room {room}")))?;
            match log.kind {
                "Global" => global(room, &log, &mut replayed, &mut heard)?,
                "DataCenter" => data_center(room, &log, &mut replayed, &mut said)?,
                "Counter" if room.slot_strategy == SlotStrategy::Leases => {
                    lessor(&log, &mut replayed, &mut said)?;
                }
                "Counter" => counter(&log, &mut replayed)?,
                "Anywhere" => anywhere(room, &log, &mut replayed, &mut heard)?,
                other => return Err(cannot(format!("{other} is no object"))),
            }
        }
    }
    // What objects say by themselves must be what the others were told, in the same order. The last of it may have been
    // on its way when the recording ended.
    for ((what, colo), is) in &said {
        let was = heard.get(&(*what, colo.clone())).map_or(&[][..], Vec::as_slice);
        for (index, (was, is)) in was.iter().zip(is).enumerate() {
            replayed.compare(what, colo, index, was, is);
        }
    }
    Ok(replayed)
}

fn global(room: &Room, log: &Log<'_>, replayed: &mut Replayed, heard: &mut Mail) -> Result<(), ReplayError> {
    let stored = log.loaded.iter().filter(|(key, _)| key.starts_with("colo/"));
    let reports = stored.filter_map(|(_, body)| wire::decode(body).ok()).collect();
    let mut global = Global::restore(room, log.loaded("meta"), reports, log.started()?);
    global.recall(log.loaded("origin").unwrap_or_default());
    for event in &log.events {
        let (Some((200, was)), readings) = (event.answer, event.readings()) else { continue };
        let (Some(first), Some(last)) = (readings.first().copied(), readings.last().copied()) else {
            continue;
        };
        let (kind, key) = match event.route {
            Some(PUSH) => {
                let report: ColoReport = event.message()?;
                let colo = report.colo.clone();
                heard.entry((REPORTED, colo.clone())).or_default().push(event.body.to_vec());
                global.receive(room, report, first);
                ("Global's answer to a report", global.state(room, Some(&colo), minute_of(first), last))
            }
            Some(STATE) => {
                let asked: StateRequest = event.message()?;
                if let Some(given) = asked.given {
                    global.anywhere_gave(given);
                }
                let colo = Some(asked.colo.as_str()).filter(|colo| !colo.is_empty());
                if let Some(colo) = colo {
                    global.answered(colo, first);
                }
                ("Global's answer to Anywhere", global.state(room, colo, asked.minute, last))
            }
            _ => continue,
        };
        global.meta_stored();
        let is = bytes(&StateAnswer { v: VERSION, state: Some(key) })?;
        replayed.compare(kind, log.name, event.index, was, &is);
    }
    Ok(())
}

fn data_center(
    room: &Room,
    log: &Log<'_>,
    replayed: &mut Replayed,
    said: &mut Mail,
) -> Result<(), ReplayError> {
    let (_, colo) = room_and_colo(log.name);
    let mut data_center =
        DataCenter::restore(room, colo, log.random, log.loaded("data_center"), log.started()?);
    for event in &log.events {
        let readings = event.readings();
        let Some(first) = readings.first().copied() else { continue };
        match (event.route, event.answer) {
            (Some(REPORT), Some((200, was))) => {
                let report: WorkerReport = event.message()?;
                let mut answer = data_center.receive(room, &report, first);
                if data_center.stores_at_once(room, first) {
                    let saved = data_center.save(room, first);
                    data_center.saved(&saved);
                    answer.durable = data_center.durable(report.worker);
                }
                let is = bytes(&answer)?;
                replayed.compare("DataCenter's answer to a report", log.name, event.index, was, &is);
            }
            (Some(STATE), Some((200, was))) => {
                let last = readings.last().copied().unwrap_or(first);
                for (index, tick) in event.ticks.iter().enumerate() {
                    if let (Tick::Heard(STATE, Some(body)), Some(Tick::Now(now))) =
                        (tick, event.ticks.get(index + 1))
                        && let Some(key) = wire::decode::<StateAnswer>(body).map_err(cannot)?.state
                    {
                        data_center.hear(key, *now);
                    }
                }
                data_center.asked(last);
                let is = bytes(&StateAnswer { v: VERSION, state: data_center.state(last) })?;
                replayed.compare("DataCenter's state key", log.name, event.index, was, &is);
            }
            (Some(""), _) => {
                // The last two readings before Global's answer are for what is stored and for the report, the one
                // after it is for taking it in.
                let (mut given, mut answer) = (None, None);
                let mut before = Vec::new();
                for (index, tick) in event.ticks.iter().enumerate() {
                    match (tick, event.ticks.get(index + 1)) {
                        (Tick::Heard(GIVEN, Some(body)), _) => {
                            given = Some(wire::decode::<Given>(body).map_err(cannot)?);
                        }
                        (Tick::Heard(PUSH, Some(body)), Some(Tick::Now(now))) => {
                            answer = Some((wire::decode::<StateAnswer>(body).map_err(cannot)?, *now));
                        }
                        (Tick::Now(now), _) if answer.is_none() => before.push(*now),
                        _ => {}
                    }
                }
                let [.., storing, pushing] = before[..] else { continue };
                let saved = data_center.save(room, storing);
                data_center.saved(&saved);
                let report = data_center.push(room, &saved, given, pushing);
                said.entry((REPORTED, colo.to_owned())).or_default().push(bytes(&report)?);
                match answer {
                    Some((answer, now)) => data_center.pushed(answer.state, now),
                    None => data_center.push_failed(),
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Finds the reading of an event by which the answer comes out as it was; else the first one's answer. Others than its
/// own may lie among an event's readings, of what the object does in the background.
fn by_any<S: Clone>(
    state: &mut S,
    readings: &[u64],
    was: &[u8],
    answer: impl Fn(&mut S, u64) -> Result<Vec<u8>, ReplayError>,
) -> Result<Vec<u8>, ReplayError> {
    let mut tried = readings.to_vec();
    tried.dedup();
    let mut first = None;
    for reading in tried {
        let mut copy = state.clone();
        let is = answer(&mut copy, reading)?;
        if is == was {
            *state = copy;
            return Ok(is);
        }
        first.get_or_insert((copy, is));
    }
    let (copy, is) = first.ok_or_else(|| cannot("an event without a reading of the clock"))?;
    *state = copy;
    Ok(is)
}

fn counter(log: &Log<'_>, replayed: &mut Replayed) -> Result<(), ReplayError> {
    let mut counter = Counter::restore(log.loaded("ledger"), log.started()?);
    for event in &log.events {
        let Some((200, was)) = event.answer else { continue };
        let (kind, is) = match event.route {
            Some(TAKE) => {
                let asked: Take = event.message()?;
                let is = by_any(&mut counter, &event.readings(), was, |counter, now| {
                    let outcomes = asked.asks.iter().map(|ask| counter.take(ask, now)).collect();
                    bytes(&Taken { v: VERSION, outcomes, lent: None, holders: Vec::new() })
                })?;
                ("Counter's answer", is)
            }
            Some(GIVEN) => {
                let is = by_any(&mut counter, &event.readings(), was, |counter, now| {
                    bytes(&Given::of(counter.ledger(now)))
                })?;
                ("Counter's count", is)
            }
            _ => continue,
        };
        replayed.compare(kind, log.name, event.index, was, &is);
    }
    Ok(())
}

/// Anywhere, of either kind.
#[derive(Clone)]
enum Giver {
    Tickets(Box<Pool>),
    Numbers(Box<Anywhere>),
}

impl Giver {
    fn renew(&mut self, body: &[u8], now: u64) -> Result<(), ReplayError> {
        let answer: StateAnswer = wire::decode(body).map_err(cannot)?;
        let Some(key) = answer.state else { return Ok(()) };
        match self {
            Self::Tickets(pool) => pool.renew(key, now),
            Self::Numbers(anywhere) => anywhere.renew(key, now),
        }
        Ok(())
    }

    fn answer(&mut self, room: &Room, event: &Event<'_>, now: u64) -> Result<Vec<u8>, ReplayError> {
        match (event.route, self) {
            (Some(LEASE), Self::Tickets(pool)) => {
                let asked: Lease = event.message()?;
                pool.lease(room, &asked.colo, &asked.ask, now)
                    .map_or_else(|| Ok(Vec::new()), |answer| bytes(&answer))
            }
            (Some(HOLD), Self::Tickets(pool)) => {
                let asked: HoldSessions = event.message()?;
                for _ in 0..asked.sessions.min(100) {
                    pool.hold_session(now);
                }
                bytes(&())
            }
            (_, giver) => {
                let asked: Take = event.message()?;
                let outcomes = match giver {
                    Self::Tickets(pool) => pool.take(room, &asked.asks, now),
                    Self::Numbers(anywhere) => anywhere.take(room, &asked.asks, now),
                };
                bytes(&Taken {
                    v: VERSION,
                    outcomes: outcomes.unwrap_or_default(),
                    lent: None,
                    holders: Vec::new(),
                })
            }
        }
    }
}

fn anywhere(
    room: &Room,
    log: &Log<'_>,
    replayed: &mut Replayed,
    heard: &mut Mail,
) -> Result<(), ReplayError> {
    let started = log.started()?;
    let mut giver = if room.slot_strategy == SlotStrategy::Leases {
        Giver::Tickets(Box::new(Pool::restore(log.loaded("pool"), started)))
    } else {
        Giver::Numbers(Box::new(Anywhere::restore(log.loaded("ledger"), started)))
    };
    let mut news = None;
    for event in &log.events {
        // The state is taken in with the next reading after Global's answer; the event's own work comes before or after.
        let mut worlds = vec![giver.clone()];
        for tick in &event.ticks {
            match (tick, news) {
                (Tick::Heard(STATE, Some(body)), _) => news = Some(*body),
                (Tick::Now(now), Some(body)) => {
                    news = None;
                    let mut renewed = worlds.last().unwrap_or(&giver).clone();
                    renewed.renew(body, *now)?;
                    worlds.push(renewed);
                }
                _ => {}
            }
        }
        let newest = worlds.last().cloned();
        let (Some(route), Some((200, was))) = (event.route, event.answer) else {
            giver = newest.unwrap_or(giver);
            continue;
        };
        if route == LEASE {
            let asked: Lease = event.message()?;
            heard.entry((CALLED, asked.colo)).or_default().push(event.body.to_vec());
        }
        let mut found = None;
        for (index, world) in worlds.iter().enumerate() {
            let mut world = world.clone();
            let is = by_any(&mut world, &event.readings(), was, |giver, now| giver.answer(room, event, now))?;
            let same = is == was;
            if same || index == 0 {
                found = Some((index, world, is));
            }
            if same {
                break;
            }
        }
        if let Some((index, world, is)) = found {
            giver = world;
            let kind = match route {
                LEASE => "Anywhere's answer to a Counter",
                HOLD => "Anywhere's answer to a renewal",
                _ => "Anywhere's answer to a worker",
            };
            replayed.compare(kind, log.name, event.index, was, &is);
            // What it heard after its work.
            let mut passed = 0;
            let mut told = None;
            for tick in &event.ticks {
                match (tick, told) {
                    (Tick::Heard(STATE, Some(body)), _) => told = Some(*body),
                    (Tick::Now(now), Some(body)) => {
                        told = None;
                        passed += 1;
                        if passed > index {
                            giver.renew(body, *now)?;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// What the Counter of `leases` does next in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Ask(usize),
    Deadline,
    Call,
    Wait,
    Lend,
    Done,
}

fn lessor(log: &Log<'_>, replayed: &mut Replayed, said: &mut Mail) -> Result<(), ReplayError> {
    let (_, colo) = room_and_colo(log.name);
    let mut counter = LeaseCounter::new(log.random);
    let mut next_place = 0;
    let mut answers: BTreeMap<u64, Outcome> = BTreeMap::new();
    let mut told: Option<Option<LeaseAnswer>> = None;
    for event in log.events.iter().skip(1) {
        let asked: Option<Take> = (event.route == Some(TAKE)).then(|| event.message()).transpose()?;
        let asks = asked.as_ref().map_or(&[][..], |asked| &asked.asks);
        let loan = asked.as_ref().and_then(|asked| asked.loan);
        let places: Vec<u64> = (1..=asks.len() as u64).map(|place| next_place + place).collect();
        next_place += asks.len() as u64;
        let mut lent = None;
        let mut turn = match (&asked, asks.len()) {
            (None, _) => Turn::Done,
            (Some(_), 0) => Turn::Deadline,
            _ => Turn::Ask(0),
        };
        for tick in &event.ticks {
            let now = match tick {
                Tick::Heard(LEASE, body) => {
                    told = Some(body.map(wire::decode).transpose().map_err(cannot)?);
                    continue;
                }
                Tick::Heard(..) => continue,
                Tick::Now(now) => *now,
            };
            if let Some(answer) = told.take() {
                counter.answered(answer.as_ref(), now);
                continue;
            }
            turn = match turn {
                Turn::Ask(index) => {
                    counter.ask(places[index], asks[index], now);
                    if index + 1 < asks.len() { Turn::Ask(index + 1) } else { Turn::Deadline }
                }
                Turn::Deadline | Turn::Wait => Turn::Call,
                Turn::Call => {
                    if let Some(ask) = counter.call(now) {
                        let lease = Lease { v: VERSION, colo: colo.to_owned(), ask };
                        said.entry((CALLED, colo.to_owned())).or_default().push(bytes(&lease)?);
                    }
                    answers.extend(counter.answers());
                    if places.iter().any(|place| !answers.contains_key(place)) {
                        Turn::Wait
                    } else if loan.is_some() {
                        Turn::Lend
                    } else {
                        Turn::Done
                    }
                }
                Turn::Lend => {
                    lent = loan.map(|loan| counter.lend(&loan, now));
                    Turn::Done
                }
                Turn::Done => Turn::Done,
            };
        }
        if let (Some(_), Some((200, was))) = (&asked, event.answer) {
            let outcomes =
                places.iter().map(|place| answers.remove(place).unwrap_or(Outcome::Unknown)).collect();
            let is = bytes(&Taken { v: VERSION, outcomes, lent, holders: Vec::new() })?;
            replayed.compare("Counter's answer", log.name, event.index, was, &is);
        }
    }
    Ok(())
}
