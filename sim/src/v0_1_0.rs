//! What 0.1.0 says and stores, where later versions say and store more: to let a machine be one "of the version before".
//!
//! Whatever such a machine is told, says, reads or stores goes through these types: what it does not know is lost. All
//! other messages and records are as they were.

use std::collections::BTreeMap;

use anteroom::admission::Given;
use anteroom::admission::{Level, MinuteShares, NumberAsk, Outcome, Shares};
use anteroom::counts::Counts;
use anteroom::history::Tallies;
use anteroom::origin::OriginReport;
use anteroom::protocol::messages::{Lent, LoanAsk};
use anteroom::protocol::{Answer, Object, Request};
use anteroom::room::Limits;
use anteroom::wire::{decode, encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
struct Overrides {
    version: u32,
    queue_all: Option<bool>,
    suspended: Option<bool>,
    total_active_users: Option<u32>,
    new_users_per_minute: Option<u32>,
    session_duration: Option<u32>,
    refresh_interval_seconds: Option<u32>,
    message: Option<String>,
    events: Vec<EventTimes>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct EventTimes {
    name: String,
    start: Option<u64>,
    end: Option<u64>,
}

/// A value in bytes of its own; the default is no bytes.
mod nested {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{decode, encode};

    pub fn serialize<T: Serialize + Default + PartialEq, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes =
            if *value == T::default() { Vec::new() } else { encode(value).map_err(S::Error::custom)? };
        bytes.serialize(serializer)
    }

    pub fn deserialize<'a, T: DeserializeOwned + Default, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let bytes: Vec<u8> = Vec::deserialize(deserializer)?;
        if bytes.is_empty() { Ok(T::default()) } else { decode(&bytes).map_err(D::Error::custom) }
    }
}

#[derive(Serialize, Deserialize)]
struct StateKey {
    v: u8,
    taken_at: u64,
    minute: u32,
    age: u64,
    active: i64,
    step: u64,
    expiring: Vec<u32>,
    expiring_refresh: u32,
    expiring_minute: u32,
    admitted: i64,
    admitted_next: i64,
    unnumbered: i64,
    carry: i64,
    entering: u32,
    waiting: Vec<(u32, u32)>,
    shares: Vec<MinuteShares>,
    colo_ratio: u32,
    anywhere_ratio: u32,
    colo_workers: u32,
    all_workers: u32,
    level: Level,
    covered: u64,
    recent: Vec<(u32, i64, i64)>,
    leaving: u32,
    giving_up: u32,
    present: Vec<u32>,
    limits: Option<Limits>,
    held: bool,
    #[serde(with = "nested")]
    steering: Overrides,
    watched: bool,
    uncounted: bool,
}

#[derive(Serialize, Deserialize)]
struct StateAnswer {
    v: u8,
    state: Option<StateKey>,
}

#[derive(Serialize, Deserialize)]
struct WorkerAnswer {
    v: u8,
    instance: u64,
    applied: u64,
    durable: u64,
    state: Option<StateKey>,
}

#[derive(Serialize, Deserialize)]
struct Take {
    v: u8,
    asks: Vec<NumberAsk>,
    loan: Option<LoanAsk>,
    addresses: Vec<u64>,
    #[serde(with = "nested")]
    steering: Overrides,
}

#[derive(Serialize, Deserialize)]
struct Taken {
    v: u8,
    outcomes: Vec<Outcome>,
    lent: Option<Lent>,
    holders: Vec<u64>,
    pace_ms: u32,
}

#[derive(Serialize, Deserialize)]
struct LeaseAnswer {
    v: u8,
    sequence: u64,
    now: u64,
    given: Vec<(u32, u32)>,
    extra: u32,
    most: u32,
    usable_ms: u32,
    pace_ms: u32,
    level: Level,
    wait_ms: u32,
    spare: u32,
    steering: u32,
}

#[derive(Serialize, Deserialize)]
struct ColoReport {
    v: u8,
    colo: String,
    sequence: u64,
    census: Counts,
    given: Option<Given>,
    workers: u32,
    next_in: u64,
    late: u64,
    origin: Option<OriginReport>,
    steering: u32,
    tallies: Tallies,
}

#[derive(Serialize, Deserialize)]
struct GlobalMeta {
    v: u8,
    shares: Vec<(u32, Shares)>,
    told: Vec<(u32, i64)>,
}

#[derive(Default, Serialize, Deserialize)]
struct Steering {
    version: u32,
    fields: BTreeMap<String, Change>,
    #[serde(default)]
    events: BTreeMap<String, EventChange>,
}

#[derive(Serialize, Deserialize)]
struct Change {
    value: Value,
    deployed_then: Value,
    by: String,
    at: u64,
}

#[derive(Serialize, Deserialize)]
struct EventChange {
    start: Option<u64>,
    end: Option<u64>,
    by: String,
    at: u64,
}

/// What 0.1.0 makes of bytes. It decoded what it could; else they are no message, and no record.
fn through<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<Vec<u8>> {
    encode(&decode::<T>(bytes).ok()?).ok()
}

/// A message as 0.1.0 reads or writes it.
pub fn request(request: &Request) -> Option<Request> {
    let bytes = request.encode().ok()?;
    let bytes = match request {
        Request::CounterTake(_) | Request::AnywhereTake(_) => through::<Take>(&bytes)?,
        Request::GlobalPush(_) => through::<ColoReport>(&bytes)?,
        Request::DataCenterRefresh(_) => through::<StateAnswer>(&bytes)?,
        _ => bytes,
    };
    Request::decode(request.object(), request.route(), &bytes)?.ok()
}

/// An answer as 0.1.0 reads or writes it.
pub fn answer(answer: &Answer) -> Option<Answer> {
    let bytes = answer.encode().ok()?;
    let told = |bytes: Option<Vec<u8>>, object, route| Answer::decode(object, route, &bytes?).ok();
    match answer {
        Answer::DataCenterReport(_) => told(through::<WorkerAnswer>(&bytes), Object::DataCenter, "/report"),
        Answer::DataCenterState(_) => told(through::<StateAnswer>(&bytes), Object::DataCenter, "/state"),
        Answer::CounterTake(_) => told(through::<Taken>(&bytes), Object::Counter, "/take"),
        Answer::AnywhereLease(_) => told(through::<LeaseAnswer>(&bytes), Object::Anywhere, "/lease"),
        Answer::GlobalPush(_) => told(through::<StateAnswer>(&bytes), Object::Global, "/push"),
        Answer::GlobalState(_) => told(through::<StateAnswer>(&bytes), Object::Global, "/state"),
        other => Some(other.clone()),
    }
}

/// A record as 0.1.0 reads or stores it; `None`: to it, there is none.
pub fn record(key: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    match key {
        "meta" => through::<GlobalMeta>(bytes),
        "steering" => {
            let text: String = decode(bytes).ok()?;
            let steering: Steering = serde_json::from_str(&text).ok()?;
            encode(&serde_json::to_string(&steering).ok()?).ok()
        }
        key if key.starts_with("colo/") => through::<ColoReport>(bytes),
        _ => Some(bytes.to_vec()),
    }
}
