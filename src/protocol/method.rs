//! Every message between the actors, in one table: whom it is for, its route, what it asks and what is answered.
//!
//! Callers and objects, the Worker and the simulator all go by it. [`Request`] and [`Answer`] hold any of them.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::messages::{
    ColoReport, Given, Lease, MovePlace, OperatorAnswer, OperatorAsk, OriginHealth, OriginStatus, PlaceMoved,
    ReserveSessions, StateAnswer, StateRequest, Subscribe, Subscribed, Take, Taken, WorkerAnswer,
    WorkerReport,
};
use super::wire::{self, WireError};
use crate::admission::{LeaseAnswer, Returned};
use crate::history::HistoryAsk;

/// A class of Durable Objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// Gives a colo's workers permits or numbers.
    Counter,
    /// The pool.
    Anywhere,
    /// Adds up a colo's workers.
    DataCenter,
    /// The room as all colos see it.
    Global,
}

impl Object {
    /// The name of its binding.
    pub fn binding(self) -> &'static str {
        match self {
            Self::Counter => "COUNTER",
            Self::Anywhere => "ANYWHERE",
            Self::DataCenter => "DATA_CENTER",
            Self::Global => "GLOBAL",
        }
    }
}

/// A call with its types.
pub trait Method {
    /// Who is called.
    const OBJECT: Object;
    /// Path of the call.
    const ROUTE: &'static str;
    /// What is asked.
    type Request: Serialize + DeserializeOwned;
    /// What is answered.
    type Response: Serialize + DeserializeOwned;
}

/// Makes the methods' types, and the two that hold any of them, from the table below.
macro_rules! methods {
    ($($(#[doc = $doc:literal])+ $name:ident = $object:ident $route:literal, $request:ty => $response:ty;)+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl Method for $name {
                const OBJECT: Object = Object::$object;
                const ROUTE: &'static str = $route;
                type Request = $request;
                type Response = $response;
            }
        )+

        /// A message that an object is sent.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Request {
            $($(#[doc = $doc])+ $name(Box<$request>),)+
        }

        /// What an object answers.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Answer {
            $($(#[doc = $doc])+ $name(Box<$response>),)+
        }

        impl Request {
            /// Reads a message of an object; `None`: it has no such route.
            ///
            /// # Errors
            /// When the bytes are no such message.
            pub fn decode(object: Object, route: &str, body: &[u8]) -> Option<Result<Self, WireError>> {
                $(
                    if object == Object::$object && route == $route {
                        return Some(wire::decode(body).map(|request| Self::$name(Box::new(request))));
                    }
                )+
                None
            }

            /// Its bytes.
            ///
            /// # Errors
            /// As [`wire::encode`].
            pub fn encode(&self) -> Result<Vec<u8>, WireError> {
                match self { $(Self::$name(request) => wire::encode(request.as_ref()),)+ }
            }

            /// Whom it is for.
            pub fn object(&self) -> Object {
                match self { $(Self::$name(_) => Object::$object,)+ }
            }

            /// Its path.
            pub fn route(&self) -> &'static str {
                match self { $(Self::$name(_) => $route,)+ }
            }
        }

        impl Answer {
            /// Reads the answer to a message.
            ///
            /// # Errors
            /// When the bytes are no such answer.
            pub fn decode(object: Object, route: &str, body: &[u8]) -> Result<Self, WireError> {
                $(
                    if object == Object::$object && route == $route {
                        return wire::decode(body).map(|answer| Self::$name(Box::new(answer)));
                    }
                )+
                Err(WireError)
            }

            /// Its bytes.
            ///
            /// # Errors
            /// As [`wire::encode`].
            pub fn encode(&self) -> Result<Vec<u8>, WireError> {
                match self { $(Self::$name(answer) => wire::encode(answer.as_ref()),)+ }
            }
        }
    };
}

methods! {
    /// A worker takes numbers or permits of its colo.
    CounterTake = Counter "/take", Take => Taken;
    /// The pool calls back what a Counter has in stock.
    CounterRecall = Counter "/recall", () => Returned;
    /// How many numbers a Counter gave.
    CounterGiven = Counter "/given", () => Given;
    /// A worker takes numbers or permits of the pool.
    AnywhereTake = Anywhere "/take", Take => Taken;
    /// A Counter leases permits of the pool.
    AnywhereLease = Anywhere "/lease", Lease => LeaseAnswer;
    /// Sessions were renewed in their last moment.
    AnywhereReserve = Anywhere "/hold", ReserveSessions => ();
    /// A worker's report.
    DataCenterReport = DataCenter "/report", WorkerReport => WorkerAnswer;
    /// A worker asks for the state key.
    DataCenterState = DataCenter "/state", StateRequest => StateAnswer;
    /// Something that cannot wait for the next push: an operator has changed the room, or watches it.
    DataCenterRefresh = DataCenter "/hear", StateAnswer => ();
    /// A data center's report.
    GlobalPush = Global "/push", ColoReport => StateAnswer;
    /// A data center or the pool asks for the state key.
    GlobalState = Global "/state", StateRequest => StateAnswer;
    /// A visitor who waits goes on with the place on another device.
    GlobalMove = Global "/move", MovePlace => PlaceMoved;
    /// A health check's state.
    GlobalOriginHealth = Global "/origin-health", OriginHealth => ();
    /// What the room knows of its origin.
    GlobalOrigin = Global "/origin", () => OriginStatus;
    /// The room's status. An operator watches, unless the query is [`UNWATCHED`](super::messages::UNWATCHED).
    GlobalStatus = Global "/look", OperatorAsk => OperatorAnswer;
    /// What operators have changed; or, with a body, to change it.
    GlobalSteer = Global "/steer", OperatorAsk => OperatorAnswer;
    /// The log of what operators have changed.
    GlobalAudit = Global "/audit", OperatorAsk => OperatorAnswer;
    /// The room's notifications, and the state of its webhooks.
    GlobalNotifications = Global "/news", OperatorAsk => OperatorAnswer;
    /// A part of the room's history.
    GlobalHistory = Global "/history", HistoryAsk => OperatorAnswer;
    /// What was counted since the room's first day.
    GlobalTotals = Global "/totals", () => OperatorAnswer;
    /// A visitor wants to be told by a push message.
    GlobalSubscribe = Global "/subscribe", Subscribe => Subscribed;
}
