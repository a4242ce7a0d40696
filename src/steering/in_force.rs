//! What is in force in a room, who said so, and what was deployed then.

use litemap::LiteMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::stored::{EVERYTHING, Unread};
use super::{EventTimes, FieldError, Order, Overrides, Refusal};
use crate::config::{ConfigError, Field, Kind, check_steered, steered_fields};
use crate::room::{Event, Mode, Room};
use crate::time::MINUTE_MS;

/// What operators have changed of a room, as its Global object stores it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Steering {
    /// Grows with every change; 0: nothing was ever changed.
    pub version: u32,
    /// By the field's name.
    #[serde(serialize_with = "as_object")]
    pub fields: LiteMap<String, Change>,
    /// By the event's name.
    #[serde(serialize_with = "as_object")]
    pub events: LiteMap<String, EventChange>,
    #[serde(skip)]
    pub(super) unread: Unread,
    /// What data centers were told before, where something could not be read.
    #[serde(skip)]
    pub(super) last_known: Option<Overrides>,
    /// What could not be read at all and an operator has cleared: to be stored elsewhere.
    #[serde(skip)]
    pub(super) set_aside: Option<Vec<u8>>,
}

/// As a JSON object, also where there is nothing in it: so it is stored since 0.1.0.
fn as_object<T: Serialize, S: Serializer>(
    map: &LiteMap<String, T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(map.iter())
}

/// One field's override.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What is in force.
    pub value: Value,
    /// What was deployed when an operator last looked at it: at the change, or when it was kept.
    pub deployed_then: Value,
    /// Whose token ordered it.
    pub by: String,
    /// When, in milliseconds since the epoch.
    pub at: u64,
    /// Whether code that does not know the field may ignore it, as that lets nobody in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// When it ends by itself, in milliseconds since the epoch; `None`: it holds until it is cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Why, as the operator says; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// One event's other times, in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EventChange {
    /// When it starts; `None`: as deployed.
    pub start: Option<u64>,
    /// When it is over; `None`: as deployed.
    pub end: Option<u64>,
    /// Whose token ordered it.
    pub by: String,
    /// When.
    pub at: u64,
    /// Why, as the operator says; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When, in milliseconds since the epoch.
    pub at: u64,
    /// Whose token ordered it.
    pub by: String,
    /// `set`, `clear`, `keep` or `event`; `end`: it has ended by itself.
    pub kind: String,
    /// The field, or `events.sale`.
    pub field: String,
    /// What was in force before; of an event its times.
    pub before: Value,
    /// What is in force now.
    pub after: Value,
    /// What is deployed.
    pub deployed: Value,
    /// When what was set ends by itself, in milliseconds since the epoch; `None`: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Why, as the operator says; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Steering {
    /// What travels.
    pub fn overrides(&self) -> Overrides {
        let mut overrides = Overrides::default();
        overrides.version = self.version;
        for field in steered_fields() {
            if let Some(change) = self.fields.get(field.name) {
                overrides.set(field, &change.value, change.until);
            }
        }
        overrides.events = self
            .events
            .iter()
            .map(|(name, change)| EventTimes { name: name.clone(), start: change.start, end: change.end })
            .collect();
        self.mend(&mut overrides);
        overrides
    }

    /// What could not be read and an operator has cleared: to be stored elsewhere, in case somebody misses it.
    pub fn take_set_aside(&mut self) -> Option<Vec<u8>> {
        self.set_aside.take()
    }

    /// Does what an operator orders, at `now` in milliseconds since the epoch. `deployed` is the room as it is deployed,
    /// `by` the name of the operator's token. Returns what has changed; nothing, when all of it was in force already.
    ///
    /// # Errors
    /// Every value that a deploy would refuse; an event that cannot start or end; another version than the operator has
    /// seen. Nothing is changed then.
    pub fn obey(
        &mut self,
        deployed: &Room,
        order: &Order,
        by: &str,
        now: u64,
    ) -> Result<Vec<AuditEntry>, Refusal> {
        if let Some(seen) = order.if_version.filter(|seen| *seen != self.version) {
            return Err(Refusal {
                status: 409,
                error: format!(
                    "Somebody has changed the room since: version {} is in force, and the order was made for version \
                     {seen}. Look at it again",
                    self.version
                ),
                errors: Vec::new(),
            });
        }
        if self.unread.is_everything() && !order.clear.iter().any(|name| name == EVERYTHING) {
            return Err(Refusal {
                status: 409,
                error: "What operators have changed before cannot be read. Deploy the version that stored it, or begin \
                        anew with {\"clear\":[\"everything\"]}"
                    .to_owned(),
                errors: Vec::new(),
            });
        }
        let (before, mut errors) = (deployed.steered(&self.overrides()), Vec::new());
        let until = order.ends(now).unwrap_or_else(|error| {
            errors.push(error);
            None
        });
        errors.extend(order.wrong_reason());
        let (reason, next) = (order.reason.clone(), self.clone());
        let mut draft = Draft { next, before, deployed, by, now, until, reason, log: Vec::new(), errors };
        draft.errors.extend(check_steered(&deployed.name, &order.set).into_iter().map(FieldError::from));
        draft.set(&order.set);
        draft.clear(order);
        draft.keep(order);
        draft.events(order);
        draft.judge_share(order);
        let Draft { mut next, log, errors, .. } = draft;
        if !errors.is_empty() {
            let error = "Nothing was changed: see errors".to_owned();
            return Err(Refusal { status: 400, error, errors });
        }
        if !log.is_empty() {
            next.version = self.version + 1;
            *self = next;
        }
        Ok(log)
    }

    /// When the next override ends by itself, in milliseconds since the epoch.
    pub fn next_end(&self) -> Option<u64> {
        self.fields.values().filter_map(|change| change.until).min()
    }

    /// Forgets the overrides that have ended by themselves, at `now` in milliseconds since the epoch. Returns what has
    /// changed.
    pub fn end_overrides(&mut self, deployed: &Room, now: u64) -> Vec<AuditEntry> {
        let has_ended = |(_, change): &(&String, &Change)| change.until.is_some_and(|until| until <= now);
        let names: Vec<String> = self.fields.iter().filter(has_ended).map(|(name, _)| name.clone()).collect();
        let ended: Vec<(Change, String)> =
            names.into_iter().filter_map(|name| Some((self.fields.remove(&name)?, name))).collect();
        self.version += u32::from(!ended.is_empty());
        let after = deployed.steered(&self.overrides());
        let entry = |(change, name): (Change, String)| AuditEntry {
            at: now,
            by: change.by,
            kind: "end".to_owned(),
            before: change.value,
            after: in_force(&name, &after, now),
            deployed: steered(&name).and_then(|field| field.value(deployed)).unwrap_or_default(),
            field: name,
            until: change.until,
            reason: change.reason,
        };
        ended.into_iter().map(entry).collect()
    }

    /// Forgets a part that could not be read. Returns it, if there is one of this name.
    fn forget(&mut self, name: &str) -> Option<Value> {
        if name != EVERYTHING {
            return self.unread.take(name);
        }
        self.set_aside = Some(self.unread.take_everything()?);
        self.last_known = None;
        Some(Value::Null)
    }

    /// Starts or ends an event now, or lets it be as deployed. `ordered` says by whom, when and why. Returns its times
    /// before, after, and as deployed.
    fn order_event(
        &mut self,
        deployed: &Room,
        name: &str,
        what: &Value,
        ordered: EventChange,
    ) -> Result<Option<[Value; 3]>, (String, String)> {
        let room = deployed.steered(&self.overrides());
        let find = |room: &Room| room.events.iter().find(|event| event.name == name).cloned();
        let (Some(original), Some(event)) = (find(deployed), find(&room)) else {
            // What was ordered of an event that is gone can still be forgotten.
            if what.as_str() == Some("clear") && self.events.remove(name).is_some() {
                return Ok(Some([Value::Null, Value::Null, Value::Null]));
            }
            return refuse("is no event of this room", "name one of [vars.EVENT_<NAME>] that is deployed");
        };
        let change = self.events.get(name).cloned().unwrap_or_default();
        let change = EventChange { start: change.start, end: change.end, ..ordered };
        let change = match what.as_str() {
            Some("start") => start_now(&room, &event, change)?,
            Some("end") => end_now(&event, change)?,
            Some("clear") => {
                return Ok(self.events.remove(name).map(|_| {
                    let of_room = times(&original);
                    [times(&event), of_room.clone(), of_room]
                }));
            }
            _ => return refuse("must be start, end or clear", "write {\"events\":{\"sale\":\"start\"}}"),
        };
        let Some(change) = change else { return Ok(None) };
        let after = EventTimes { name: name.to_owned(), start: change.start, end: change.end };
        self.events.insert(name.to_owned(), change);
        self.unread.events.remove(name);
        let after = serde_json::json!({
            "start": after.start.unwrap_or(original.start),
            "end": after.end.unwrap_or(original.end),
        });
        Ok(Some([times(&event), after, times(&original)]))
    }
}

/// The change that starts an event at its time; `None`: it has started.
fn start_now(
    room: &Room,
    event: &Event,
    change: EventChange,
) -> Result<Option<EventChange>, (String, String)> {
    let now = change.at;
    if event.suspended {
        return refuse("is suspended", "deploy it with suspended = false first");
    }
    if now >= event.end {
        return refuse("is over", "clear it if an operator has ended it, or deploy it with another end");
    }
    if now >= event.start {
        return Ok(None);
    }
    let is_on = |other: &&Event| {
        other.name != event.name && !other.suspended && (other.begin()..other.end).contains(&now)
    };
    if let Some(other) = room.events.iter().find(is_on) {
        let message = format!("cannot start while event {} is on", other.name);
        return refuse(&message, &format!("end {} first", other.name));
    }
    // Places in line are minutes: whoever comes in this one stands behind those who were dealt.
    let start = if event.shuffle { now - now % MINUTE_MS } else { now };
    Ok(Some(EventChange { start: Some(start), ..change }))
}

/// The change that ends an event at its time; `None`: it is over.
fn end_now(event: &Event, change: EventChange) -> Result<Option<EventChange>, (String, String)> {
    if change.at >= event.end {
        return Ok(None);
    }
    if change.at < event.begin() {
        return refuse("has not begun", "deploy it with suspended = true, or wait until it begins");
    }
    Ok(Some(EventChange { end: Some(change.at), ..change }))
}

fn refuse<T>(message: &str, fix: &str) -> Result<T, (String, String)> {
    Err((message.to_owned(), fix.to_owned()))
}

/// What an order would make of the steering.
struct Draft<'a> {
    next: Steering,
    /// The room with what was in force before.
    before: Room,
    deployed: &'a Room,
    by: &'a str,
    now: u64,
    until: Option<u64>,
    reason: String,
    log: Vec<AuditEntry>,
    errors: Vec<FieldError>,
}

impl Draft<'_> {
    /// Writes the log: the values before and after, and what is deployed.
    fn note(&mut self, kind: &str, field: String, [before, after, deployed]: [Value; 3]) {
        let until = self.until.filter(|_| kind == "set");
        let (kind, by, reason) = (kind.to_owned(), self.by.to_owned(), self.reason.clone());
        self.log.push(AuditEntry { at: self.now, by, kind, field, before, after, deployed, until, reason });
    }

    fn set(&mut self, set: &Map<String, Value>) {
        for (name, value) in set {
            let Some(field) = steered(name) else { continue };
            let Some(of_room) = field.value(self.deployed) else { continue };
            let is_known = |change: &Change| change.value == *value && change.until == self.until;
            if self.next.fields.get(name).is_some_and(is_known) {
                continue;
            }
            let change = Change {
                value: value.clone(),
                deployed_then: of_room.clone(),
                by: self.by.to_owned(),
                at: self.now,
                // Older code has every room enforced, and so lets nobody in whom this would keep out.
                optional: matches!(field.kind, Kind::Line { .. } | Kind::Choice { .. } | Kind::Share { .. }),
                until: self.until,
                reason: self.reason.clone(),
            };
            self.next.fields.insert(name.clone(), change);
            self.next.unread.take(name);
            let before = in_force(name, &self.before, self.now);
            self.note("set", name.clone(), [before, value.clone(), of_room]);
        }
    }

    /// A share is of a room that observes the others.
    fn judge_share(&mut self, order: &Order) {
        const FIELD: &str = "enforce_share";
        let Some(share) = order.set.get(FIELD) else { return };
        if self.deployed.steered(&self.next.overrides()).mode == Mode::Enforce {
            let (message, fix) = ("needs mode observe".to_owned(), "set mode to observe with it".to_owned());
            self.errors.push(FieldError { field: FIELD.to_owned(), value: share.to_string(), message, fix });
        }
    }

    fn clear(&mut self, order: &Order) {
        for name in &order.clear {
            if let Some(unread) = self.next.forget(name) {
                self.note("clear", name.clone(), [unread, Value::Null, Value::Null]);
                continue;
            }
            let Some(of_room) = self.of_room(name, order.set.contains_key(name)) else { continue };
            if self.next.fields.remove(name).is_some() {
                let before = in_force(name, &self.before, self.now);
                let room = self.deployed.steered(&self.next.overrides());
                self.note("clear", name.clone(), [before, in_force(name, &room, self.now), of_room]);
            }
        }
    }

    fn keep(&mut self, order: &Order) {
        for name in &order.keep {
            let is_elsewhere = order.set.contains_key(name) || order.clear.contains(name);
            let Some(of_room) = self.of_room(name, is_elsewhere) else { continue };
            let changed = self.next.fields.get_mut(name).filter(|change| change.deployed_then != of_room);
            if let Some(change) = changed {
                change.deployed_then = of_room.clone();
                let value = change.value.clone();
                self.note("keep", name.clone(), [value.clone(), value, of_room]);
            }
        }
    }

    /// What a field to clear or to keep is deployed as; an error where there is none, or where it stands elsewhere in the
    /// order too.
    fn of_room(&mut self, name: &str, is_elsewhere: bool) -> Option<Value> {
        let Some(of_room) = steered(name).and_then(|field| field.value(self.deployed)) else {
            self.errors.push(unknown(name));
            return None;
        };
        if is_elsewhere {
            self.errors.push(FieldError {
                field: name.to_owned(),
                value: Value::from(name).to_string(),
                message: "can be in one of set, clear and keep only".to_owned(),
                fix: "leave it out of the others".to_owned(),
            });
            return None;
        }
        Some(of_room)
    }

    fn events(&mut self, order: &Order) {
        for (name, what) in &order.events {
            let field = format!("events.{name}");
            let (by, reason) = (self.by.to_owned(), self.reason.clone());
            let ordered = EventChange { by, at: self.now, reason, ..EventChange::default() };
            match self.next.order_event(self.deployed, name, what, ordered) {
                Ok(Some(values)) => self.note("event", field, values),
                Ok(None) => {}
                Err((message, fix)) => {
                    self.errors.push(FieldError { field, value: what.to_string(), message, fix });
                }
            }
        }
    }
}

/// The steered field of a name.
pub(super) fn steered(name: &str) -> Option<&'static Field> {
    steered_fields().find(|field| field.name == name)
}

/// What is in force of a field at a time, in an event too. `room` is the room as operators have it.
fn in_force(name: &str, room: &Room, now: u64) -> Value {
    steered(name).and_then(|field| field.value(room.at(now).0)).unwrap_or_default()
}

fn times(event: &Event) -> Value {
    serde_json::json!({ "start": event.start, "end": event.end })
}

fn unknown(name: &str) -> FieldError {
    let fields: Vec<&str> = steered_fields().map(|field| field.name).collect();
    FieldError {
        field: name.to_owned(),
        value: Value::from(name).to_string(),
        message: "is not a field that can be steered".to_owned(),
        fix: format!("the fields are {}", fields.join(", ")),
    }
}

impl From<ConfigError> for FieldError {
    fn from(error: ConfigError) -> Self {
        let ConfigError { field, value, message, fix, .. } = error;
        Self { field, value, message, fix }
    }
}
