//! The endpoints of the API: what each asks of the book, and changes in it.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::book::{Book, Change, Draft, Preview};
use super::document::Document;
use super::entry::{Entry, OWN, Rule, Rules, VERSION, derived, hex, is_id};
use super::fields::{self, known, missing, pointer_to, shown_details, shown_event, shown_room, shown_rule};
use super::reply::{Code, Problem, Refused, Reply};
use super::written::{Deployed, judge, page_name, problem};
use crate::config::{ConfigError, Part};
use crate::operator::Role;
use crate::time::milliseconds;

/// What a rule may do.
pub(super) const ACTION: &str = "bypass_waiting_room";
/// Who repeats a request that was lost within so many milliseconds is answered as before.
const REPEATED_MS: u64 = 600_000;
/// The most events of a room.
const MAX_EVENTS: usize = 100;
/// The longest name.
const NAME_MAX: usize = 64;
/// How many ids of deleted rules are remembered.
const MAX_GONE: usize = 20;
/// How long a page to look at is kept, in milliseconds, and how many are.
const PREVIEW_MS: u64 = 7 * 86_400_000;
const MAX_PREVIEWS: usize = 50;
/// The most bytes of all pages together: the book is as a whole in memory.
const MAX_PAGES: usize = 16 << 20;
const CRAWLERS: &str = "search_engine_crawler_bypass";
/// What cannot change while a room's objects live.
const FIXED: &str = "slot_strategy";

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The name of the caller's token.
    pub by: &'a str,
    /// What the token is good for.
    pub role: Role,
    /// The method.
    pub method: &'a str,
    /// The path below `/client/v4`, as it was sent.
    pub path: &'a str,
    /// The query, without `?`.
    pub query: &'a str,
    /// The body; may be empty.
    pub body: &'a str,
    /// Scheme and host by which the API was called.
    pub base: &'a str,
    /// The time, in milliseconds since the epoch.
    pub now: u64,
    /// Random: ids are made of it.
    pub seed: [u8; 32],
}

/// What comes of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The answer, once what is written is stored.
    pub reply: Reply,
    /// What is written, if anything is.
    pub written: Option<Written>,
    /// The room whose object must be asked for its status, by the name of its objects: [`status_of`] makes the answer.
    pub look: Option<String>,
}

/// What a request changes.
#[derive(Debug)]
pub struct Written {
    /// The book as it is then.
    pub book: Book,
    /// The rows that differ.
    pub changes: Vec<Change>,
    /// What it was before, and is then: for the log.
    pub before: Value,
    /// See `before`.
    pub after: Value,
    /// New pages, which must be templates that can be read.
    pub pages: Vec<String>,
}

type Done = Result<Outcome, Refused>;

/// Answers a request.
pub fn handle(book: &Book, deployed: &Deployed, ask: &Ask<'_>) -> Outcome {
    let api = Api { book, deployed, ask };
    api.route().unwrap_or_else(|Refused { status, problems }| Outcome {
        reply: Reply::refusal(status, &problems),
        written: None,
        look: None,
    })
}

/// The answer to a question for a room's status, by what its object says.
pub fn status_of(told: &Value) -> Reply {
    let event = told.get("event_id").and_then(Value::as_str).unwrap_or_default();
    let event = if event.is_empty() || is_id(event) { event.to_owned() } else { derived("event", event) };
    let number = |name: &str| told.get(name).and_then(Value::as_u64).unwrap_or(0);
    Reply::of(&json!({
        "status": told.get("status").cloned().unwrap_or_else(|| Value::from("not_queueing")),
        "event_id": event,
        "estimated_queued_users": number("estimated_queued_users"),
        "estimated_total_active_users": number("estimated_total_active_users"),
        "max_estimated_time_minutes": number("max_estimated_time_minutes"),
    }))
}

fn answered(result: &Value) -> Done {
    Ok(Outcome { reply: Reply::of(result), written: None, look: None })
}

fn no_route() -> Refused {
    Refused::new(404, Code::Route, "There is no such endpoint")
}

fn unknown(what: &str) -> Refused {
    Refused::new(404, Code::Unknown, format!("There is no {what} of this id"))
}

/// A value of the query.
fn query<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// A whole number of the query; some clients write `2.0`.
fn number(text: &str, name: &str) -> Option<u64> {
    let (whole, rest) = query(text, name).map(|value| value.split_once('.').unwrap_or((value, "")))?;
    if rest.bytes().all(|byte| byte == b'0') { whole.parse().ok() } else { None }
}

fn judge_name(name: &str) -> Option<Problem> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let fits = (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain);
    let message = format!("name must be 1 to {NAME_MAX} letters, digits, \"_\" or \"-\"");
    (!fits).then(|| Problem::at(Code::Value, "/name", message))
}

/// Takes the name out of a body; `None`: it has none.
fn take_name(sent: &mut Map<String, Value>) -> Result<Option<String>, Problem> {
    match sent.remove("name") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => judge_name(&name).map_or(Ok(Some(name)), Err),
        Some(_) => Err(Problem::at(Code::Value, "/name", "name must be text")),
    }
}

fn body(text: &str) -> Result<Value, Refused> {
    serde_json::from_str(text)
        .map_err(|error| Refused::new(400, Code::Body, format!("The body must be JSON: {error}")))
}

fn object(text: &str) -> Result<Map<String, Value>, Refused> {
    match body(text)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(Refused::new(400, Code::Body, "The body must be a JSON object")),
    }
}

/// Lays the fields of a PATCH over those that there are; null takes one away.
fn lay_over(fields: &mut Map<String, Value>, sent: Map<String, Value>) {
    for (name, value) in sent {
        match (fields.get_mut(&name), value) {
            (Some(Value::Object(own)), Value::Object(more)) if name == OWN => lay_over(own, more),
            (_, Value::Null) => {
                fields.remove(&name);
            }
            (_, value) => {
                fields.insert(name, value);
            }
        }
    }
}

/// What the token of a role that is not for all of it may change.
fn steers(sent: &Map<String, Value>, is_event: bool) -> bool {
    let may = |name: &str, value: &Value| match (name, value) {
        ("event_start_time" | "event_end_time", _) => is_event,
        ("total_active_users" | "new_users_per_minute" | "queue_all" | "suspended", _) => !is_event,
        (OWN, Value::Object(own)) => !is_event && own.keys().all(|name| name == "message"),
        _ => false,
    };
    !sent.is_empty() && sent.iter().all(|(name, value)| may(name, value))
}

/// A request, and what it is about.
struct Api<'a> {
    book: &'a Book,
    deployed: &'a Deployed,
    ask: &'a Ask<'a>,
}

impl<'a> Api<'a> {
    fn route(&self) -> Done {
        let mut parts = self.ask.path.trim_start_matches('/').split('/');
        let (kind, scope, rooms) = (parts.next(), parts.next().unwrap_or_default(), parts.next());
        let rest: Vec<&str> = parts.collect();
        if rooms != Some("waiting_rooms") || scope.is_empty() {
            return Err(no_route());
        }
        let method = if self.ask.method == "HEAD" { "GET" } else { self.ask.method };
        match (kind, rest.as_slice()) {
            (Some("accounts"), []) if method == "GET" => self.list_rooms(),
            (Some("zones"), rest) => self.in_zone(method, rest),
            _ => Err(no_route()),
        }
    }

    fn in_zone(&self, method: &str, rest: &[&str]) -> Done {
        match (method, rest) {
            ("GET", []) => self.list_rooms(),
            ("POST", []) => self.create_room(),
            ("POST", ["preview"]) => self.preview(),
            ("GET", ["settings"]) => self.settings(),
            ("PUT" | "PATCH", ["settings"]) => self.change_settings(method),
            (_, ["preview" | "settings"]) => Err(self.no_method()),
            ("GET", [room]) => answered(&self.shown(self.room(room)?)),
            ("PUT" | "PATCH", [room]) => self.change_room(method, room),
            ("DELETE", [room]) => self.delete_room(room),
            ("GET", [room, "status"]) => {
                let room = self.room(room)?;
                let name = if room.var.is_empty() { &room.id } else { &room.name };
                Ok(Outcome { look: Some(name.clone()), ..answered(&Value::Null)? })
            }
            ("POST", [room, "restore"]) => self.restore(room),
            ("GET", [room, "events"]) => self.list_events(self.room(room)?),
            ("POST", [room, "events"]) => self.create_event(self.own_room(room)?),
            ("GET", [room, "events", event]) => answered(&shown_event(self.event(self.room(room)?, event)?)),
            ("GET", [room, "events", event, "details"]) => {
                let room = self.room(room)?;
                answered(&shown_details(self.event(room, event)?, room))
            }
            ("PUT" | "PATCH", [room, "events", event]) => self.change_event(method, self.own_room(room)?, event),
            ("DELETE", [room, "events", event]) => self.delete_event(self.own_room(room)?, event),
            ("GET", [room, "rules"]) => answered(&shown_rules(&self.rules_of(self.room(room)?))),
            ("POST", [room, "rules"]) => self.create_rule(self.own_room(room)?),
            ("PUT", [room, "rules"]) => self.put_rules(self.own_room(room)?),
            ("PATCH", [room, "rules", rule]) => self.change_rule(self.own_room(room)?, rule),
            ("DELETE", [room, "rules", rule]) => self.delete_rule(self.own_room(room)?, rule),
            (_, [] | [_] | [_, "status" | "restore" | "events" | "rules"] | [_, "events" | "rules", _] | [_, "events", _, "details"]) => {
                Err(self.no_method())
            }
            _ => Err(no_route()),
        }
    }

    fn no_method(&self) -> Refused {
        Refused::new(405, Code::Method, format!("{} is not answered here", self.ask.method))
    }

    /// Lets nobody change anything whose token is not for it.
    fn may_configure(&self) -> Result<(), Refused> {
        if self.ask.role >= Role::Configure {
            return Ok(());
        }
        let (by, role, needed) = (self.ask.by, self.ask.role.name(), Role::Configure.name());
        let message = format!("The token of {by} has the role {role}; this takes {needed}");
        Err(Refused::new(403, Code::Caller, message))
    }

    fn room(&self, id: &str) -> Result<&'a Entry, Refused> {
        let all = self.book.live_rooms().chain(&self.deployed.rooms);
        all.into_iter().find(|room| room.id == id).ok_or_else(|| unknown("waiting room"))
    }

    /// A room that was made at run time.
    fn own_room(&self, id: &str) -> Result<&'a Entry, Refused> {
        let room = self.room(id)?;
        if room.var.is_empty() {
            return Ok(room);
        }
        let message = format!("The room is deployed as {}: change it there, and deploy", room.var);
        Err(Problem::new(Code::Deployed, message).into())
    }

    fn events_of(&self, room: &'a Entry) -> impl Iterator<Item = &'a Entry> {
        let all = self.book.events.iter().filter(|event| event.deleted.is_none()).chain(&self.deployed.events);
        all.filter(|event| event.room == room.id)
    }

    fn event(&self, room: &'a Entry, id: &str) -> Result<&'a Entry, Refused> {
        self.events_of(room).find(|event| event.id == id).ok_or_else(|| unknown("event"))
    }

    fn rules_of(&self, room: &Entry) -> Rules {
        let rules = self.book.rules.get(&room.id).or_else(|| self.deployed.rules.get(&room.id));
        rules.cloned().unwrap_or_default()
    }

    /// A room as it is answered.
    fn shown(&self, room: &'a Entry) -> Value {
        let time = |event: &Entry, field: &str| event.get(field).and_then(Value::as_str).and_then(milliseconds);
        let begin = |event: &Entry| {
            time(event, "prequeue_start_time").or_else(|| time(event, "event_start_time"))
        };
        let ahead = self.events_of(room).filter(|event| event.get("suspended") != Some(&Value::Bool(true)));
        let ahead = ahead.filter_map(|event| Some((begin(event).filter(|time| *time > self.ask.now)?, event)));
        let next = ahead.min_by_key(|(begin, _)| *begin).map(|(_, event)| event);
        let text = |field: &str| next.and_then(|event| event.get(field)).cloned().unwrap_or_default();
        shown_room(room, (text("event_start_time"), text("prequeue_start_time")))
    }

    fn page(&self, all: Vec<Value>) -> Done {
        let page = number(self.ask.query, "page").unwrap_or(1).max(1);
        let per_page = number(self.ask.query, "per_page").unwrap_or(25).clamp(1, 1_000);
        Ok(Outcome { reply: Reply::page(all, page, per_page), written: None, look: None })
    }

    fn list_rooms(&self) -> Done {
        if query(self.ask.query, "deleted") == Some("true") {
            let gone = self.book.rooms.iter().filter(|room| room.deleted.is_some());
            return self.page(gone.map(|room| self.shown(room)).collect());
        }
        let all = self.deployed.rooms.iter().chain(self.book.live_rooms());
        self.page(all.map(|room| self.shown(room)).collect())
    }

    fn list_events(&self, room: &'a Entry) -> Done {
        self.page(self.events_of(room).map(shown_event).collect())
    }

    /// A new id; `place`: the number of ids drawn for this request before.
    fn id(&self, place: usize) -> String {
        let drawn = Sha256::new().chain_update(self.ask.seed).chain_update(place.to_string());
        hex(&drawn.finalize())
    }

    fn draft(&self) -> Draft {
        Draft::of(self.book, self.ask.now)
    }

    /// Ends a change: checks all there is then, by the table of fields by which vars are checked.
    fn write(&self, draft: Draft, result: impl FnOnce(&Api<'_>) -> Value, before: Value) -> Done {
        let Draft { book, changes } = draft;
        let errors = |book: &Book| Document::of(book).with(self.deployed.vars.iter().cloned()).1;
        let known: Vec<ConfigError> = errors(self.book);
        let name_of = |text: &str| {
            let named = book.rooms.iter().chain(&book.events).filter(|entry| text.contains(&entry.id));
            named.fold(text.to_owned(), |text, entry| text.replace(&entry.id, &entry.name))
        };
        let new = errors(&book).into_iter().filter(|error| {
            matches!(error.part, Part::Room | Part::Event) && !known.contains(error)
        });
        let problems: Vec<Problem> = new.map(|error| problem(&error, &name_of)).collect();
        if !problems.is_empty() {
            return Err(problems.into());
        }
        let pages: Vec<(String, &str)> = book.rooms.iter().chain(&book.events).filter_map(page_name).collect();
        if pages.iter().map(|(_, html)| html.len()).sum::<usize>() > MAX_PAGES {
            let message = format!("All pages together may be {MAX_PAGES} bytes long");
            return Err(Problem::at(Code::Bound, pointer_to("custom_page_html"), message).into());
        }
        let new = pages.iter().filter(|(name, _)| self.book.page(name).is_none());
        let pages = new.map(|(_, html)| (*html).to_owned()).collect();
        let after = result(&Api { book: &book, deployed: self.deployed, ask: self.ask });
        let reply = Reply::of(&after);
        if query(self.ask.query, "dry_run") == Some("true") {
            return Ok(Outcome { reply, written: None, look: None });
        }
        Ok(Outcome { reply, written: Some(Written { book, changes, before, after, pages }), look: None })
    }

    /// Whether a name is free among some entries, in any case.
    fn judge_taken<'e>(entry: &Entry, others: impl Iterator<Item = &'e Entry>) -> Option<Problem> {
        let is_taken = |other: &Entry| other.id != entry.id && other.name.eq_ignore_ascii_case(&entry.name);
        others.into_iter().any(is_taken).then(|| {
            let kind = if entry.room.is_empty() { "room" } else { "event of this room" };
            Problem::at(Code::Taken, "/name", format!("name \"{}\" is that of another {kind}", entry.name))
        })
    }

    /// Puts a room or an event into the book, and answers with it. `before`: as it was.
    fn put(&self, mut entry: Entry, room: Option<&Entry>, before: Value) -> Done {
        let mut problems = judge(&entry, room);
        let taken = match room {
            Some(room) => Self::judge_taken(&entry, self.events_of(room_of(self, room)?)),
            None => Self::judge_taken(&entry, self.book.live_rooms().chain(&self.deployed.rooms)),
        };
        problems.extend(taken);
        if !problems.is_empty() {
            return Err(problems.into());
        }
        let mut draft = self.draft();
        entry.revision = draft.book.version;
        entry.modified = self.ask.now;
        self.ask.by.clone_into(&mut entry.by);
        let (id, of, is_event) = (entry.id.clone(), entry.room.clone(), room.is_some());
        draft.put(entry);
        let result = |api: &Api<'_>| {
            let shown = if is_event {
                api.room(&of).and_then(|room| api.event(room, &id)).map(shown_event)
            } else {
                api.room(&id).map(|room| api.shown(room))
            };
            shown.unwrap_or_default()
        };
        self.write(draft, result, before)
    }

    /// A room or an event of a body.
    fn new_entry(&self, room: &str, theirs: &[fields::Field]) -> Result<Entry, Refused> {
        let mut sent = object(self.ask.body)?;
        let mut problems = known(&mut sent, theirs, &["name", OWN]);
        let name = take_name(&mut sent);
        if let Ok(None) = name {
            problems.push(Problem::at(Code::Value, "/name", "name is required"));
        }
        problems.extend(missing(&sent, theirs));
        match name {
            Ok(Some(name)) if problems.is_empty() => Ok(Entry {
                v: VERSION,
                id: self.id(0),
                room: room.to_owned(),
                name,
                fields: sent,
                order: self.book.version + 1,
                created: self.ask.now,
                ..Entry::default()
            }),
            name => {
                problems.extend(name.err());
                Err(problems.into())
            }
        }
    }

    /// The entry that was made of the same body a moment ago: its maker has not heard of it.
    fn made_lately<'e>(&self, new: &Entry, mut all: impl Iterator<Item = &'e Entry>) -> Option<&'e Entry> {
        all.find(|entry| {
            entry.name == new.name
                && entry.fields == new.fields
                && entry.created == entry.modified
                && self.ask.now < entry.created.saturating_add(REPEATED_MS)
        })
    }

    /// What an entry is after a PUT or a PATCH.
    fn changed(&self, method: &str, entry: &Entry, theirs: &[fields::Field]) -> Result<Entry, Refused> {
        let mut sent = object(self.ask.body)?;
        let mut problems = known(&mut sent, theirs, &["name", OWN]);
        if self.ask.role < Role::Configure && !(method == "PATCH" && steers(&sent, !entry.room.is_empty())) {
            self.may_configure()?;
        }
        let name = match take_name(&mut sent) {
            Ok(name) => name,
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let mut changed = entry.clone();
        if method == "PUT" {
            if name.is_none() && problems.is_empty() {
                problems.push(Problem::at(Code::Value, "/name", "name is required"));
            }
            // Cloudflare's clients cannot send it, and do not mean to take it away.
            if !sent.contains_key(OWN)
                && let Some(own) = changed.fields.remove(OWN)
            {
                sent.insert(OWN.to_owned(), own);
            }
            changed.fields = sent;
        } else {
            lay_over(&mut changed.fields, sent);
        }
        problems.extend(missing(&changed.fields, theirs));
        if let Some(name) = name {
            changed.name = name;
        }
        if problems.is_empty() { Ok(changed) } else { Err(problems.into()) }
    }

    fn create_room(&self) -> Done {
        self.may_configure()?;
        let room = self.new_entry("", fields::ROOM)?;
        if let Some(made) = self.made_lately(&room, self.book.live_rooms()) {
            return answered(&self.shown(made));
        }
        self.put(room, None, Value::Null)
    }

    fn change_room(&self, method: &str, id: &str) -> Done {
        let room = self.own_room(id)?;
        let changed = self.changed(method, room, fields::ROOM)?;
        let fixed = |room: &Entry| room.own().and_then(|own| own.get(FIXED)).cloned().unwrap_or_else(|| Value::from("leases"));
        if fixed(room) != fixed(&changed) {
            let message = "slot_strategy stays as it is: make another room, or delete this one before";
            return Err(Problem::at(Code::Value, format!("/{OWN}/{FIXED}"), message).into());
        }
        self.put(changed, None, self.shown(room))
    }

    fn delete_room(&self, id: &str) -> Done {
        self.may_configure()?;
        let told = json!({ "id": id });
        if self.book.rooms.iter().any(|room| room.id == id && room.deleted.is_some()) {
            return answered(&told);
        }
        let room = self.own_room(id)?;
        let mut draft = self.draft();
        let revision = draft.book.version;
        let deleted = Some(self.ask.now);
        draft.put(Entry { deleted, revision, by: self.ask.by.to_owned(), ..room.clone() });
        self.write(draft, |_| told, self.shown(room))
    }

    /// Brings a deleted room back.
    fn restore(&self, id: &str) -> Done {
        self.may_configure()?;
        let gone = self.book.rooms.iter().find(|room| room.id == id && room.deleted.is_some());
        let room = gone.ok_or_else(|| unknown("deleted waiting room"))?;
        self.put(Entry { deleted: None, ..room.clone() }, None, Value::Null)
    }

    fn create_event(&self, room: &'a Entry) -> Done {
        self.may_configure()?;
        let event = self.new_entry(&room.id, fields::EVENT)?;
        if let Some(made) = self.made_lately(&event, self.events_of(room)) {
            return answered(&shown_event(made));
        }
        if self.events_of(room).count() >= MAX_EVENTS {
            return Err(Problem::new(Code::Bound, format!("A room has at most {MAX_EVENTS} events")).into());
        }
        self.put(event, Some(room), Value::Null)
    }

    fn change_event(&self, method: &str, room: &'a Entry, id: &str) -> Done {
        let event = self.event(room, id)?;
        let changed = self.changed(method, event, fields::EVENT)?;
        self.put(changed, Some(room), shown_event(event))
    }

    fn delete_event(&self, room: &'a Entry, id: &str) -> Done {
        self.may_configure()?;
        let told = json!({ "id": id });
        let is_gone = |event: &&Entry| event.id == id && event.room == room.id && event.deleted.is_some();
        if self.book.events.iter().any(|event| is_gone(&event)) {
            return answered(&told);
        }
        let event = self.event(room, id)?;
        let mut draft = self.draft();
        let revision = draft.book.version;
        draft.put(Entry { deleted: Some(self.ask.now), revision, by: self.ask.by.to_owned(), ..event.clone() });
        self.write(draft, |_| told, shown_event(event))
    }

    /// A rule of a body; what is sent besides goes.
    fn rule_fields(mut sent: Map<String, Value>, at: &str) -> Result<Map<String, Value>, Vec<Problem>> {
        sent.remove("position");
        let mut problems = known(&mut sent, fields::RULE, &[]);
        problems.extend(missing(&sent, fields::RULE));
        let action = sent.get("action").filter(|action| !action.is_null());
        if action.is_some_and(|action| action.as_str().is_none_or(|text| !text.eq_ignore_ascii_case(ACTION))) {
            problems.push(Problem::at(Code::Value, "/action", format!("action must be \"{ACTION}\"")));
        }
        for problem in &mut problems {
            problem.pointer = format!("{at}{}", problem.pointer);
        }
        if problems.is_empty() { Ok(sent) } else { Err(problems) }
    }

    fn write_rules(&self, room: &Entry, rules: Vec<Rule>, gone: Vec<String>) -> Done {
        let before = shown_rules(&self.rules_of(room));
        let mut draft = self.draft();
        draft.put_rules(&room.id, Rules { v: VERSION, rules, gone });
        self.write(draft, |api| shown_rules(&api.rules_of(room)), before)
    }

    fn create_rule(&self, room: &Entry) -> Done {
        self.may_configure()?;
        let fields = Self::rule_fields(object(self.ask.body)?, "")?;
        let Rules { mut rules, gone, .. } = self.rules_of(room);
        let is_repeated = |rule: &Rule| {
            rule.fields == fields && rule.version == 1 && self.ask.now < rule.modified.saturating_add(REPEATED_MS)
        };
        if rules.iter().any(is_repeated) {
            return answered(&shown_rules(&self.rules_of(room)));
        }
        rules.push(Rule { id: self.id(0), version: 1, fields, modified: self.ask.now });
        self.write_rules(room, rules, gone)
    }

    fn put_rules(&self, room: &Entry) -> Done {
        self.may_configure()?;
        let Value::Array(sent) = body(self.ask.body)? else {
            return Err(Refused::new(400, Code::Body, "The body must be a JSON array of rules"));
        };
        let Rules { rules: mut old, gone, .. } = self.rules_of(room);
        let (mut rules, mut problems) = (Vec::new(), Vec::new());
        for (place, rule) in sent.into_iter().enumerate() {
            let at = format!("/{place}");
            let Value::Object(sent) = rule else {
                problems.push(Problem::at(Code::Value, at, "A rule must be an object"));
                continue;
            };
            let id = sent.get("id").and_then(Value::as_str).map(str::to_owned);
            match Self::rule_fields(sent, &at) {
                Ok(fields) => {
                    // A rule that stays keeps its id.
                    let same = |rule: &Rule| id.as_ref().map_or(rule.fields == fields, |id| *id == rule.id);
                    let kept = old.iter().position(same).map(|place| old.remove(place));
                    let kept = kept.unwrap_or_else(|| Rule { id: self.id(place), ..Rule::default() });
                    rules.push(self.next(kept, fields));
                }
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(problems.into());
        }
        self.write_rules(room, rules, gone)
    }

    /// A rule with other fields.
    fn next(&self, rule: Rule, fields: Map<String, Value>) -> Rule {
        if rule.fields == fields && rule.version > 0 {
            return rule;
        }
        Rule { version: rule.version + 1, fields, modified: self.ask.now, ..rule }
    }

    fn change_rule(&self, room: &Entry, id: &str) -> Done {
        self.may_configure()?;
        let Rules { mut rules, gone, .. } = self.rules_of(room);
        let from = rules.iter().position(|rule| rule.id == id).ok_or_else(|| unknown("rule"))?;
        let mut sent = object(self.ask.body)?;
        let position = sent.remove("position").filter(|position| !position.is_null());
        let rule = rules.remove(from);
        let mut fields = rule.fields.clone();
        lay_over(&mut fields, sent);
        let rule = self.next(rule, Self::rule_fields(fields, "")?);
        let to = match &position {
            None => from,
            Some(position) => place(position, &rules)
                .ok_or_else(|| Problem::at(Code::Value, "/position", "position must be index, before or after"))?,
        };
        rules.insert(to.min(rules.len()), rule);
        self.write_rules(room, rules, gone)
    }

    fn delete_rule(&self, room: &Entry, id: &str) -> Done {
        self.may_configure()?;
        let Rules { mut rules, mut gone, .. } = self.rules_of(room);
        if gone.iter().any(|known| known == id) {
            return answered(&shown_rules(&self.rules_of(room)));
        }
        let at = rules.iter().position(|rule| rule.id == id).ok_or_else(|| unknown("rule"))?;
        rules.remove(at);
        gone.push(id.to_owned());
        let too_many = gone.len().saturating_sub(MAX_GONE);
        gone.drain(..too_many);
        self.write_rules(room, rules, gone)
    }

    fn settings(&self) -> Done {
        answered(&json!({ CRAWLERS: self.book.crawlers.unwrap_or(self.deployed.crawlers_bypass) }))
    }

    fn change_settings(&self, method: &str) -> Done {
        self.may_configure()?;
        let mut sent = object(self.ask.body)?;
        let bypass = match sent.remove(CRAWLERS) {
            None | Some(Value::Null) if method == "PATCH" => return self.settings(),
            None | Some(Value::Null) => false,
            Some(Value::Bool(bypass)) => bypass,
            Some(_) => {
                let message = format!("{CRAWLERS} must be true or false");
                return Err(Problem::at(Code::Value, pointer_to(CRAWLERS), message).into());
            }
        };
        let before = json!({ CRAWLERS: self.book.crawlers });
        let mut draft = self.draft();
        draft.put_crawlers(bypass);
        self.write(draft, |_| json!({ CRAWLERS: bypass }), before)
    }

    /// Keeps a page for whoever wants to look at it.
    fn preview(&self) -> Done {
        self.may_configure()?;
        let sent = object(self.ask.body)?;
        let Some(html) = sent.get("custom_html").and_then(Value::as_str).filter(|html| !html.is_empty()) else {
            return Err(Problem::at(Code::Value, "/custom_html", "custom_html must be the text of a page").into());
        };
        let id = self.id(0);
        let mut draft = self.draft();
        let preview = Preview { v: VERSION, until: self.ask.now + PREVIEW_MS, html: html.to_owned() };
        draft.put_preview(&id, &preview, MAX_PREVIEWS);
        let told = json!({ "preview_url": format!("{}/__anteroom/client/v4/preview/{id}", self.ask.base) });
        let mut outcome = self.write(draft, |_| told, Value::Null)?;
        if let Some(written) = &mut outcome.written {
            written.pages.push(html.to_owned());
        }
        Ok(outcome)
    }
}

/// The same room with the life of the book.
fn room_of<'a>(api: &Api<'a>, room: &Entry) -> Result<&'a Entry, Refused> {
    api.room(&room.id)
}

fn shown_rules(rules: &Rules) -> Value {
    Value::Array(rules.rules.iter().map(shown_rule).collect())
}

/// Where a rule is put among the others.
fn place(position: &Value, others: &[Rule]) -> Option<usize> {
    let of = |id: &str| others.iter().position(|rule| rule.id == id);
    if let Some(index) = position.get("index") {
        let index = index.as_f64().filter(|index| *index >= 1.0)?;
        return Some(index as usize - 1);
    }
    match (position.get("before").and_then(Value::as_str), position.get("after").and_then(Value::as_str)) {
        (Some(""), None) => Some(0),
        (Some(id), None) => of(id),
        (None, Some("")) => Some(others.len()),
        (None, Some(id)) => of(id).map(|place| place + 1),
        _ => None,
    }
}
