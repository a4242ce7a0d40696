//! The five Durable Objects, as thin as they can be: read the message, let the core work, answer, store.
//!
//! Any of them can vanish at any moment, without a word. What it knew is in its storage as far as it was written
//! there, and each one's core says what to do about the rest.

mod anywhere;
mod counter;
mod data_center;
mod global;
mod health;
mod shell;
mod sql;

use std::rc::Rc;

use js_sys::futures::JsFuture;
use js_sys::{Array, Function, Promise, Reflect, Uint8Array};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};
use worker::{Env, Error, Response, Result, State, Storage};

use super::calls::unreadable;
use super::clock::now;
use super::settings::Settings;
use crate::config::Room;
use crate::protocol::messages::room_and_colo;
use crate::protocol::wire;
use crate::steering::Overrides;

/// The room that an object belongs to, as it is now.
struct Home {
    room: Room,
    /// When an event changes it next.
    changes_at: Option<u64>,
    settings: Rc<Settings>,
}

impl Home {
    /// Read from the object's name: the room as it is deployed.
    ///
    /// # Errors
    /// When the object has no name, or its room is no longer configured.
    fn of(state: &State, env: &Env) -> Result<Self> {
        Self::steered(state, env, Overrides::none())
    }

    /// The same with what operators have changed.
    ///
    /// # Errors
    /// As [`Home::of`].
    fn steered(state: &State, env: &Env, overrides: &Overrides) -> Result<Self> {
        let name = state
            .id()
            .name()
            .ok_or_else(|| Error::RustError("this object was not called by name".to_owned()))?;
        let (room, _) = room_and_colo(&name);
        let settings = Settings::of(env);
        let room = settings
            .rooms
            .get(room)
            .ok_or_else(|| Error::RustError(format!("no valid room is called {room}")))?;
        let changed;
        let changing = if overrides.is_empty() {
            room
        } else {
            changed = room.steered(overrides);
            &changed
        };
        // Without events it is the same room at any time: a replayed history need not know when that was asked.
        let time = if changing.events.is_empty() { 0 } else { now() };
        let room = changing.at(time).0.clone();
        let changes_at = changing.next_change(time);
        Ok(Self { room, changes_at, settings: Rc::clone(&settings) })
    }
}

impl Home {
    /// The room as it is deployed, with its events.
    fn deployed(&self) -> Option<&Room> {
        self.settings.rooms.get(&self.room.name)
    }
}

/// What is stored under a key. What cannot be read (an older or newer format) is as if it were not there.
async fn load<T: DeserializeOwned>(storage: &Storage, key: &str) -> Result<Option<T>> {
    let stored = storage_call(storage, "get", &[JsValue::from_str(key)]).await?;
    Ok(stored_value(&stored))
}

/// Reads what is stored.
fn stored_value<T: DeserializeOwned>(stored: &JsValue) -> Option<T> {
    let bytes = stored.dyn_ref::<Uint8Array>()?.to_vec();
    wire::decode(&bytes).ok()
}

/// Stores under a key, before anything else leaves the object.
async fn store<T: Serialize>(storage: &Storage, key: &str, value: &T) -> Result<()> {
    put(storage, key, &wire::encode(value).map_err(unreadable)?).await
}

async fn put(storage: &Storage, key: &str, bytes: &[u8]) -> Result<()> {
    let arguments = [JsValue::from_str(key), Uint8Array::from(bytes).into()];
    storage_call(storage, "put", &arguments).await?;
    Ok(())
}

/// A call that the platform's crate offers for values of its own kind only.
async fn storage_call(storage: &Storage, name: &str, arguments: &[JsValue]) -> Result<JsValue> {
    let function: Function = Reflect::get(storage.as_raw(), &JsValue::from_str(name))?.dyn_into()?;
    let arguments: Array = arguments.iter().collect();
    let promise: Promise = function.apply(storage.as_raw(), &arguments)?.dyn_into()?;
    Ok(JsFuture::from(promise).await?)
}

/// The answer to a route that an object does not have.
fn no_such_route(path: &str) -> Result<Response> {
    Response::error(format!("there is no route {path}"), 404)
}
