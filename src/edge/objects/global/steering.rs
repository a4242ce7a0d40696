//! What operators change of the room: stored, told to the colos, and logged.

use std::rc::Rc;

use serde_json::{Map, Value, json};
use worker::{Response, Result, Storage};

use super::alarm::Job;
use super::{Global, load as load_value, operator_answer, store};
use crate::admission::{StateKey, minute_of};
use crate::edge::calls::{DATA_CENTER, call};
use crate::edge::clock::{now, pause};
use crate::edge::objects::sql::{Database, number};
use crate::edge::platform::log_error;
use crate::notifications;
use crate::protocol::messages::{OperatorAsk, REFRESH, StateAnswer, VERSION, colo_object};
use crate::protocol::wire;
use crate::steering::{AuditEntry, Order, Refusal, Steering};

/// The storage key of what is in force.
const STEERING: &str = "steering";
/// The log keeps so many entries.
const LOGGED: u64 = 10_000;
/// So many entries are answered at once, at most, and by default.
const ANSWERED: (u64, u64) = (1_000, 100);
/// A colo may take so long to hear, in milliseconds.
const REFRESH_DEADLINE_MS: u64 = 2_000;
/// Colos that did not hear are told again after so long, in milliseconds.
const AGAIN_MS: u64 = 1_000;
/// An operator is answered after so long at the latest, though not all colos have heard, in milliseconds.
const PATIENCE_MS: u64 = 800;
/// See [`PATIENCE_MS`]: it is looked so often, in milliseconds.
const POLL_MS: u64 = 10;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, entry TEXT NOT NULL)";

/// What was in force before a restart. It stands there as JSON: values of several kinds.
pub(super) async fn load(storage: &Storage) -> Result<Steering> {
    let text: Option<String> = load_value(storage, STEERING).await?;
    let stored = text.and_then(|text| wire::encode(&text).ok());
    Ok(stored.map(|stored| Steering::read(&stored)).unwrap_or_default())
}

impl Global {
    /// Does what an operator orders, or tells what is in force where the body is empty.
    pub(super) async fn steer(&self, asked: &OperatorAsk) -> Result<Response> {
        let Some(deployed) = self.home()?.deployed().cloned() else { return operator_answer(404, no_room()) };
        if asked.body.is_empty() {
            return self.steering_answer(&deployed);
        }
        let done = Order::read(&asked.body).and_then(|order| {
            let mut memory = self.memory.borrow_mut();
            let memory = memory.as_mut().ok_or_else(not_ready)?;
            memory.obey(&deployed, &order, &asked.by, now())
        });
        let log = match done {
            Ok(log) => log,
            Err(refusal) => return operator_answer(refusal.status, serde_json::to_string(&refusal)?),
        };
        if !log.is_empty() {
            let steering = self.memory.borrow().as_ref().map(|memory| memory.steering().clone());
            let text = serde_json::to_string(&steering.unwrap_or_default())?;
            store(&self.state.storage(), STEERING, &text).await?;
            self.log(&log)?;
            let mut news = [notifications::steered(&deployed, &log, self.version())];
            self.newsroom.add(&mut news, now()).await?;
            self.tell_news(&news, now())?;
            self.spread().await?;
            self.changed(now()).await?;
        }
        self.steering_answer(&deployed)
    }

    fn version(&self) -> u32 {
        self.memory.borrow().as_ref().map_or(0, |memory| memory.steering().version)
    }

    fn steering_answer(&self, deployed: &crate::config::Room) -> Result<Response> {
        let memory = self.memory.borrow();
        let Some(memory) = memory.as_ref() else { return Response::error("not ready", 503) };
        let time = now();
        let view = memory.steering().view(deployed, time, memory.in_force(time));
        operator_answer(200, serde_json::to_string(&view)?)
    }

    /// Tells all colos that live, and waits a moment for them. The others are told again.
    pub(super) async fn spread(&self) -> Result<()> {
        let told = self.tell_colos().await?;
        let give_up = now() + PATIENCE_MS;
        while Rc::strong_count(&told) > 1 && now() < give_up {
            pause(POLL_MS).await;
        }
        Ok(())
    }

    /// Tells those that have not heard.
    pub(super) async fn spread_again(&self) -> Result<Option<u64>> {
        self.tell_colos().await?;
        Ok(None)
    }

    /// Tells the colos that have not heard, each on its own. What comes is shared by as many as have not answered yet.
    async fn tell_colos(&self) -> Result<Rc<()>> {
        let home = self.home()?;
        let time = now();
        let told = Rc::new(());
        self.is_watched(time);
        let keys: Vec<(String, StateKey)> = {
            let mut memory = self.memory.borrow_mut();
            let Some(memory) = memory.as_mut() else { return Ok(told) };
            let colos = memory.colos_to_tell(&home.room, time);
            colos
                .into_iter()
                .map(|colo| {
                    let key = memory.state(&home.room, Some(&colo), minute_of(time), time);
                    (colo, key)
                })
                .collect()
        };
        if keys.is_empty() {
            return Ok(told);
        }
        self.store_meta().await?;
        for (colo, key) in keys {
            let (env, memory, told) = (self.env.clone(), Rc::clone(&self.memory), Rc::clone(&told));
            let name = colo_object(&home.room.name, &colo);
            self.state.wait_until(async move {
                let message = StateAnswer { v: VERSION, state: Some(key) };
                let heard: Result<()> =
                    call(&env, DATA_CENTER, &name, REFRESH, &message, REFRESH_DEADLINE_MS).await;
                match (heard, memory.borrow_mut().as_mut(), &message.state) {
                    (Ok(()), Some(memory), Some(key)) => {
                        memory.told(&colo, key.steering.version, key.watched)
                    }
                    (Err(error), ..) => log_error(&error.to_string()),
                    _ => {}
                }
                drop(told);
            });
        }
        // Whoever has not heard by then is told again.
        self.alarm.wake(Job::Spread, time + AGAIN_MS, time, &self.state.storage()).await?;
        Ok(told)
    }

    fn log(&self, entries: &[AuditEntry]) -> Result<()> {
        let database = Database::of(&self.state.storage());
        database.run(TABLE, vec![])?;
        for entry in entries {
            let values = vec![number(entry.at), serde_json::to_string(entry)?.into()];
            database.run("INSERT INTO audit (at, entry) VALUES (?, ?)", values)?;
        }
        let deleted = "DELETE FROM audit WHERE id <= (SELECT MAX(id) FROM audit) - ?";
        database.run(deleted, vec![number(LOGGED)])
    }

    /// The log, newest first.
    pub(super) fn audit(&self, asked: &OperatorAsk) -> Result<Response> {
        let asked_for = |name: &str| -> std::result::Result<Option<u64>, String> {
            let pairs = asked.query.split('&').filter_map(|pair| pair.split_once('='));
            let Some((_, text)) = pairs.into_iter().find(|(key, _)| *key == name) else { return Ok(None) };
            match text.parse::<u64>() {
                Ok(number) if number > 0 => Ok(Some(number)),
                _ => Err(format!("{name} must be a whole number from 1, for example {name}=100")),
            }
        };
        let (limit, before) = match (asked_for("limit"), asked_for("before")) {
            (Ok(limit), Ok(before)) => (limit, before),
            (Err(error), _) | (_, Err(error)) => {
                return operator_answer(400, json!({ "error": error }).to_string());
            }
        };
        let database = Database::of(&self.state.storage());
        database.run(TABLE, vec![])?;
        let before = before.unwrap_or(u64::MAX).min(i64::MAX as u64);
        let values = vec![number(before), number(limit.unwrap_or(ANSWERED.1).min(ANSWERED.0))];
        let rows =
            database.rows("SELECT id, entry FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?", values)?;
        let entries = rows.iter().filter_map(|row| {
            let mut entry: Map<String, Value> = serde_json::from_str(row.text(1)).ok()?;
            entry.insert("id".to_owned(), row.number(0).into());
            Some(entry)
        });
        let entries: Vec<Map<String, Value>> = entries.collect();
        let room = self.state.id().name().unwrap_or_default();
        operator_answer(200, json!({ "room": room, "entries": entries }).to_string())
    }
}

fn not_ready() -> Refusal {
    Refusal { status: 503, error: "The room is just starting: try again".to_owned(), errors: Vec::new() }
}

fn no_room() -> String {
    json!({ "error": "There is no room of this name" }).to_string()
}
