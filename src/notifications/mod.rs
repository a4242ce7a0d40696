//! What happens in a room that its operators want to know, and how they are told.
//!
//! 1. A [`Observation`] is what Global knows at one moment.
//! 2. The [`Detector`] makes a [`Notification`] of each change since the observation before: a queue begins, an event starts, the
//!    origin is down. What goes to and fro is told once.
//! 3. [`delivery`] makes the message of it, signed as the [Standard Webhooks](https://www.standardwebhooks.com)
//!    specification says, and tells when it is to be sent again.
//!
//! Nothing here reads a clock, draws random numbers or does I/O.

mod debounce;
pub mod delivery;
mod detector;
mod observation;

pub use detector::{Detector, steered};
pub use observation::{Observation, Origin};

use serde::Serialize;
use serde_json::{Map, Value};

pub use crate::room::NewsKind as Kind;
use crate::room::Room;

/// Something that happened in a room.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Notification {
    /// The same for one notification, whoever finds it: room, kind, what it is about, and the moment.
    pub id: String,
    /// When it happened, in milliseconds since the epoch.
    pub at: u64,
    /// Its kind.
    pub kind: Kind,
    /// For people, in one or two plain sentences. `edge/news.js` has the words; without it this is empty.
    pub text: String,
    /// For programs.
    pub data: Map<String, Value>,
}

impl Notification {
    /// `about`: which of several it is about that may have the same notification in the same moment; may be empty.
    fn new(room: &Room, kind: Kind, about: &str, at: u64, mut data: Map<String, Value>) -> Self {
        data.insert("room".to_owned(), room.label().into());
        data.insert("url".to_owned(), dashboard(room).into());
        let (name, kind_name) = (&room.name, kind.name());
        let mut id = format!("{name}-{kind_name}-{at}");
        if !about.is_empty() {
            id.push('-');
            // A dot would blur what is signed, and an id is a header's value: names of checks may have anything in them.
            let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
            id.extend(about.chars().map(plain));
        }
        Self { id, at, kind, text: String::new(), data }
    }
}

/// Where operators see the room, if it is known on which host.
fn dashboard(room: &Room) -> Option<String> {
    let host = room.routes().find_map(|(host, _)| host)?;
    Some(format!("https://{host}/__anteroom/#room={}", room.name))
}
