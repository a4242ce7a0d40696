//! Who calls whom, who waits, retries, stores and wakes: the actors as state machines without I/O.
//!
//! A machine gets one [`Input`] and the time. What is to be done comes out as [`Effect`]s, in their order, in a buffer
//! of the caller. It never waits: what it waits for comes as a later input. When nothing comes, it gets
//! [`Input::Timer`] at the time that [`ObjectMachine::next_timer`] says.
//!
//! The Worker and the objects carry the effects out on the platform, the simulator over its network, storage and clocks;
//! tests put inputs in and look at what comes out. No rule, constant or retry stands anywhere else.
//!
//! What leaves an object after a write leaves it only when the write is confirmed: the platform's output gate. So a
//! machine stores, then replies, and needs no acknowledgement. A write that fails ends the object.

mod anywhere;
pub mod configuration;
mod counter;
mod current_room;
mod data_center;
mod global;
mod pace;
pub mod worker;
mod write_behind;

use std::collections::BTreeMap;
use std::rc::Rc;

pub use anywhere::Anywhere;
pub use counter::Counter;
pub use current_room::CurrentRoom;
pub use data_center::DataCenter;
#[cfg(not(worker))]
pub use global::MemoryRows;
pub use global::{
    Attempt, Global, GlobalEffect, GlobalInput, Kept, NotificationRow, Outcome, Outside, PendingRow,
    PushAttempt, ReceiverRow, Rows, RowsError, Series, SubscriptionRow, Words,
};

use crate::protocol::records::problem;
use crate::protocol::{Answer, Object, Request};
use crate::room::Room;
use crate::steering::Steering;

/// How many times the usual timeout a cold start gets: the room's objects have to be made first, and nothing is known by
/// which a visitor could be judged without them.
pub const COLD_START_FACTOR: u64 = 3;

/// What a machine may know of the outside when it handles an input.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The room as it is deployed, with its events.
    pub room: &'a Rc<Room>,
    /// The colo; empty for Anywhere and Global, which serve all.
    pub colo: &'a str,
    /// Timeout of calls on the visitor's path, in milliseconds (`OBJECT_DEADLINE_MS`).
    pub deadline_ms: u64,
    /// The time by this machine's own clock, in milliseconds since the epoch.
    pub now: u64,
}

/// The inputs of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A message came. Its sender waits for a reply under this number, which is used once in an object's life.
    Asked {
        /// The number for the reply.
        from: u64,
        /// The message.
        request: Request,
    },
    /// A call of its own has ended.
    Answered {
        /// The call's number.
        call: u64,
        /// The answer; `None`: the call failed, or took longer than its timeout.
        answer: Option<Answer>,
    },
    /// The time that it asked for has come, or is past.
    Timer,
    /// The platform's alarm fires, and waits for [`Effect::AlarmDone`].
    Alarm,
    /// An input that only Global gets.
    Global(GlobalInput),
}

/// What an object does.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Answers a message.
    Reply {
        /// The number that came with it.
        to: u64,
        /// The answer.
        answer: Answer,
    },
    /// Refuses a message, with an HTTP status and a reason.
    Refuse {
        /// The number that came with it.
        to: u64,
        /// The status code.
        status: u16,
        /// Why.
        reason: &'static str,
    },
    /// Calls another object. What comes of it is the input [`Input::Answered`].
    Call(Call),
    /// Writes a record. What leaves the object later waits for the write, unless it is in the background.
    Store {
        /// The key.
        key: String,
        /// What is written.
        bytes: Vec<u8>,
        /// Later effects do not wait for it, and it may be lost with the object.
        background: bool,
    },
    /// Deletes a record.
    Delete {
        /// The key.
        key: String,
    },
    /// Sets the platform's one alarm, in milliseconds since the epoch. It takes the place of one that was set before.
    SetAlarm {
        /// When it fires.
        at: u64,
    },
    /// Takes the alarm back.
    ClearAlarm,
    /// What [`Input::Alarm`] began is done.
    AlarmDone,
    /// Something that only Global does.
    Global(GlobalEffect),
}

/// A call of one object to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Under which number it is answered: used once in an object's life.
    pub number: u64,
    /// The object's name.
    pub name: String,
    /// The message. It says which class the object is of.
    pub request: Request,
    /// It fails when it takes longer, in milliseconds.
    pub deadline_ms: u64,
}

impl Call {
    /// The class of the object that is called.
    pub fn object(&self) -> Object {
        self.request.object()
    }
}

/// An object's orchestration. See [the module](self).
pub trait ObjectMachine {
    /// Handles an input and adds effects.
    fn handle(&mut self, context: &Context<'_>, input: Input, effects: &mut Vec<Effect>);

    /// When [`Input::Timer`] is due, in milliseconds since the epoch, if nothing else comes before; `None`: never.
    /// It is asked after each input. As long as there is one, the object stays in memory and is billed.
    fn next_timer(&self) -> Option<u64>;
}

/// What an object finds in its storage at its start: records by their keys, as bytes.
pub type Stored = BTreeMap<String, Vec<u8>>;

/// What of it this code does not read, for the log.
pub fn problems(stored: &Stored) -> impl Iterator<Item = String> {
    let unread = |stored: &Vec<u8>| Steering::read(stored).unread();
    let steering = stored.get(global::STEERING).and_then(unread);
    let steering = steering.map(|unread| format!("cannot read of what operators have changed: {unread}"));
    let records = stored.iter().filter_map(|(key, bytes)| Some(problem(key, bytes)?.to_string()));
    records.chain(steering)
}

/// The reason of a refusal: no such route.
const NO_ROUTE: &str = "there is no such route";
