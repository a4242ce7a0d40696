//! Carries a machine's effects out on the platform: the part of every object of a room that knows Workers.
//!
//! The clock is read once per input, so that a recorded history can be put through the machine again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_channel::oneshot;
use js_sys::futures::JsFuture;
use js_sys::{Array, Function, Object as JsObject, Promise, Reflect, Uint8Array};
use litemap::LiteMap;
use wasm_bindgen::{JsCast, JsValue};
use worker::{Env, Request as HttpRequest, Response, Result, State, Storage};

use crate::edge::calls::{body_of, failure, hear, post, unreadable};
use crate::edge::clock::{now, pause, platform_time, start_id};
use crate::edge::configuration;
use crate::edge::platform::log_error;
use crate::edge::settings::Settings;
use crate::machines::{Call, Context, Effect, Input, ObjectMachine, Stored, problems};
use crate::protocol::messages::room_and_colo;
use crate::protocol::{Answer, Object, Request};
use crate::room::Room;

/// What a machine begins with.
pub struct Start<'a> {
    /// The platform's side of the object.
    pub state: &'a State,
    /// The deployment.
    pub env: &'a Env,
    /// The room as it is deployed.
    pub room: &'a Rc<Room>,
    /// The colo; empty for Anywhere and Global.
    pub colo: &'a str,
    /// What is stored.
    pub stored: &'a Stored,
    /// A random number.
    pub random: u64,
    /// The time, in milliseconds since the epoch.
    pub now: u64,
}

/// Makes a machine.
pub type Restore = fn(&Start<'_>) -> Result<Box<dyn ObjectMachine>>;

/// What is sent back to whoever asked: bytes, or a status and a reason.
pub type Reply = std::result::Result<Vec<u8>, (u16, &'static str)>;

/// An object of a room on the platform. It is one for all classes, by a pointer to the machine: four copies of it would be
/// a large part of the Worker.
#[derive(Clone)]
pub struct Shell(Rc<Inner>);

struct Inner {
    state: State,
    env: Env,
    object: Object,
    restore: Restore,
    home: RefCell<std::result::Result<Home, String>>,
    machine: RefCell<Option<Box<dyn ObjectMachine>>>,
    asked: Cell<u64>,
    replies: RefCell<LiteMap<u64, oneshot::Sender<Reply>>>,
    alarm: RefCell<Option<oneshot::Sender<()>>>,
    /// When the machine's timer is due.
    timer: Cell<Option<u64>>,
}

/// Which room and colo an object is for.
#[derive(Clone)]
struct Home {
    room: Rc<Room>,
    colo: String,
    deadline_ms: u64,
    /// The version of the rooms that are made at run time by which it knows its room.
    version: u64,
}

impl Home {
    fn of(state: &State, env: &Env) -> std::result::Result<Self, String> {
        let name: String = state.id().name().ok_or("this object was not called by name")?;
        let (room, colo) = room_and_colo(&name);
        let settings = Settings::of(env);
        let room = settings.rooms.get(room).ok_or_else(|| format!("no valid room is called {room}"))?;
        let deadline_ms = settings.object_deadline_ms;
        let version = settings.version;
        Ok(Self { room: Rc::new(room.clone()), colo: colo.to_owned(), deadline_ms, version })
    }

    /// The same by what is known now. A room that is gone stays as it was for those who are in it.
    fn follow(&mut self, env: &Env) {
        let settings = Settings::of(env);
        if settings.version == self.version {
            return;
        }
        self.version = settings.version;
        if let Some(room) = settings.rooms.get(&self.room.name).filter(|room| **room != *self.room) {
            self.room = Rc::new(room.clone());
        }
    }
}

impl Shell {
    /// An object at its start: its machine begins with what is stored.
    pub fn new(state: State, env: Env, object: Object, restore: Restore) -> Self {
        let home = RefCell::new(Err("not ready".to_owned()));
        let inner = Rc::new(Inner {
            state,
            env,
            object,
            restore,
            home,
            machine: RefCell::new(None),
            asked: Cell::new(0),
            replies: RefCell::new(LiteMap::new()),
            alarm: RefCell::new(None),
            timer: Cell::new(None),
        });
        let starting = Rc::clone(&inner);
        let _init = inner.state.block_concurrency_while(async move { starting.start().await });
        Self(inner)
    }

    /// Answers a message.
    ///
    /// # Errors
    /// When the message cannot be read, or the object belongs to no room.
    pub async fn fetch(&self, mut request: HttpRequest) -> Result<Response> {
        let route = request.path();
        hear(&request, &self.0.env, |work| self.0.state.wait_until(work));
        let body = body_of(&mut request).await?;
        let Some(request) = Request::decode(self.0.object, &route, &body) else {
            return Response::error(format!("there is no route {route}"), 404);
        };
        let request = request.map_err(unreadable)?;
        match self.ask(|from| Input::Asked { from, request }).await? {
            Ok(bytes) => Response::from_bytes(bytes),
            Err((status, reason)) => Response::error(reason, status),
        }
    }

    /// Gives the machine an input that it answers, under the number that it is given.
    ///
    /// # Errors
    /// When the object belongs to no room.
    pub async fn ask(&self, input: impl FnOnce(u64) -> Input) -> Result<Reply> {
        if self.0.machine.borrow().is_none() {
            // The room may have been made since.
            configuration::learn(self.0.env.clone(), String::new(), configuration::Look::Anew).await;
            self.0.start().await?;
        }
        if let Err(error) = &*self.0.home.borrow() {
            return Err(failure(error.clone()));
        }
        let from = self.0.asked.get() + 1;
        self.0.asked.set(from);
        let (sender, reply) = oneshot::channel();
        self.0.replies.borrow_mut().insert(from, sender);
        self.0.tell(input(from));
        Ok(reply.await.unwrap_or(Err((503, "not ready"))))
    }

    /// Gives the machine an input.
    pub fn tell(&self, input: Input) {
        self.0.tell(input);
    }

    /// Answers whoever has asked under a number.
    pub fn reply(&self, to: u64, reply: Reply) {
        self.0.reply(to, reply);
    }

    /// The platform's side of the object.
    pub fn state(&self) -> &State {
        &self.0.state
    }

    /// The deployment.
    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// The alarm fires. Returns when all that it began is done.
    ///
    /// # Errors
    /// When the platform refuses to build the response.
    pub async fn alarm(&self) -> Result<Response> {
        // A room that is no longer configured has no state to send.
        if self.0.home.borrow().is_ok() {
            let (sender, done) = oneshot::channel();
            self.0.alarm.replace(Some(sender));
            self.0.tell(Input::Alarm);
            let _ = done.await;
        }
        Response::empty()
    }
}

impl Inner {
    /// Makes the machine, unless its room is not known.
    async fn start(&self) -> Result<()> {
        let settings = Settings::of(&self.env);
        let mut home = Home::of(&self.state, &self.env);
        if home.is_err() && !configuration::is_ready(&settings) {
            configuration::learn(self.env.clone(), String::new(), configuration::Look::Visitors).await;
            home = Home::of(&self.state, &self.env);
        }
        if let Ok(home) = &home {
            let stored = load(&self.state.storage()).await?;
            for problem in problems(&stored) {
                log_error(&format!("{}: {problem}", self.state.id().name().unwrap_or_default()));
            }
            let machine = (self.restore)(&Start {
                state: &self.state,
                env: &self.env,
                room: &home.room,
                colo: &home.colo,
                stored: &stored,
                random: start_id()?,
                now: now(),
            })?;
            // Two messages may have come at once.
            let mut known = self.machine.borrow_mut();
            if known.is_some() {
                return Ok(());
            }
            *known = Some(machine);
        }
        *self.home.borrow_mut() = home;
        Ok(())
    }

    /// Gives the machine an input and carries out its effects.
    fn tell(self: &Rc<Self>, input: Input) {
        let home = {
            let mut home = self.home.borrow_mut();
            let Ok(home) = &mut *home else { return };
            home.follow(&self.env);
            home.clone()
        };
        let mut effects = Vec::new();
        let now = now();
        let timer = {
            let mut machine = self.machine.borrow_mut();
            let Some(machine) = machine.as_mut() else { return };
            let context = Context { room: &home.room, colo: &home.colo, deadline_ms: home.deadline_ms, now };
            machine.handle(&context, input, &mut effects);
            machine.next_timer()
        };
        for effect in effects {
            self.carry_out(effect);
        }
        if let Some(at) = timer {
            self.wake_at(at, now);
        }
    }

    fn carry_out(self: &Rc<Self>, effect: Effect) {
        match effect {
            Effect::Reply { to, answer } => self.reply(to, answer.encode().map_err(|_| (500, "unwritable"))),
            Effect::Refuse { to, status, reason } => self.reply(to, Err((status, reason))),
            Effect::Call(call) => self.call(call),
            Effect::Store { key, bytes, background } => {
                let options = JsObject::new();
                if background {
                    let _ = Reflect::set(&options, &JsValue::from_str("allowUnconfirmed"), &JsValue::TRUE);
                }
                let bytes = Uint8Array::from(bytes.as_slice());
                self.storage("put", &[JsValue::from_str(&key), bytes.into(), options.into()]);
            }
            Effect::Delete { key } => self.storage("delete", &[JsValue::from_str(&key)]),
            Effect::SetAlarm { at } => {
                self.storage("setAlarm", &[JsValue::from_f64(platform_time(at) as f64)]);
            }
            Effect::ClearAlarm => self.storage("deleteAlarm", &[]),
            Effect::Global(effect) => super::global::carry_out(&Shell(Rc::clone(self)), effect),
            Effect::AlarmDone => {
                if let Some(sender) = self.alarm.take() {
                    let _ = sender.send(());
                }
            }
        }
    }

    fn reply(&self, to: u64, reply: Reply) {
        // Whoever asked may be gone.
        if let Some(sender) = self.replies.borrow_mut().remove(&to) {
            let _ = sender.send(reply);
        }
    }

    /// Calls another object. It goes on though the visitor for whom it is made has gone.
    fn call(self: &Rc<Self>, call: Call) {
        let here = Rc::clone(self);
        let (object, route) = (call.object(), call.request.route());
        self.state.wait_until(async move {
            let answer = match call.request.encode() {
                Ok(body) => {
                    let name = (call.name, "");
                    post(here.env.clone(), object.binding(), name, route, body, call.deadline_ms).await
                }
                Err(error) => Err(unreadable(error)),
            };
            let answer = answer.and_then(|body| Answer::decode(object, route, &body).map_err(unreadable));
            let answer = answer.map_err(|error| log_error(&error.to_string())).ok();
            here.tell(Input::Answered { call: call.number, answer });
        });
    }

    /// Starts a storage operation now, in its place among the others. What leaves the object afterwards waits for it by
    /// itself: the platform's output gate.
    fn storage(&self, name: &'static str, arguments: &[JsValue]) {
        match start_storage(&self.state.storage(), name, arguments) {
            Ok(promise) => self.state.wait_until(async move {
                if let Err(error) = JsFuture::from(promise).await {
                    log_error(&format!("storage {name}: {error:?}"));
                }
            }),
            Err(error) => log_error(&format!("storage {name}: {error}")),
        }
    }

    fn wake_at(self: &Rc<Self>, at: u64, now: u64) {
        if self.timer.get().is_some_and(|timer| timer <= at) {
            return;
        }
        self.timer.set(Some(at));
        let here = Rc::clone(self);
        let wait = at.saturating_sub(now);
        self.state.wait_until(async move {
            pause(wait).await;
            // An earlier one may have taken its place.
            if here.timer.get() == Some(at) {
                here.timer.set(None);
                here.tell(Input::Timer);
            }
        });
    }
}

/// All records of an object.
async fn load(storage: &Storage) -> Result<Stored> {
    let mut stored = Stored::new();
    let promise = start_storage(storage, "list", &[])?;
    let map: js_sys::Map = JsFuture::from(promise).await?.dyn_into()?;
    map.for_each(&mut |value, key| {
        if let (Some(key), Some(bytes)) = (key.as_string(), value.dyn_ref::<Uint8Array>()) {
            stored.insert(key, bytes.to_vec());
        }
    });
    Ok(stored)
}

/// A call that the platform's crate offers for values of its own kind only.
fn start_storage(storage: &Storage, name: &str, arguments: &[JsValue]) -> Result<Promise> {
    let function: Function = Reflect::get(storage.as_raw(), &JsValue::from_str(name))?.dyn_into()?;
    let arguments: Array = arguments.iter().collect();
    Ok(function.apply(storage.as_raw(), &arguments)?.dyn_into()?)
}
