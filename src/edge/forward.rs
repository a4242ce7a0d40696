//! What goes with a request of a visitor who may go to the origin, and with the answer.
//!
//! `entry.js` reads it as lines: the request's number, then one line for each thing to do, a letter and its value.

use wasm_bindgen::JsValue;

use super::in_flight::Number;
use crate::room::Room;
use crate::ticket::Ticket;

/// An answer's header.
pub type HeaderLine = (&'static str, String);

/// How a visitor's ticket travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// In a cookie.
    Cookie,
    /// In the header [`TICKET_HEADER`], of clients that keep no cookies.
    Header,
}

/// The header of a ticket, in requests and answers, for clients that keep no cookies.
pub const TICKET_HEADER: &str = "anteroom-ticket";

/// What goes along.
#[derive(Debug, Default)]
pub struct Passport {
    /// The ticket, where it has changed.
    pub ticket: Option<HeaderLine>,
    /// The signed word to the origin.
    pub admitted: Option<String>,
    /// What to hand back when the origin ends the session; `None`: it cannot.
    pub revocable: Option<String>,
    /// The room's own origin; `None`: the deployment's.
    pub origin: Option<String>,
}

impl Passport {
    /// What `entry.js` gets.
    pub fn with(&self, number: Number) -> JsValue {
        let Self { ticket, admitted, revocable, origin } = self;
        if ticket.is_none() && admitted.is_none() && revocable.is_none() && origin.is_none() {
            return JsValue::from(number.value());
        }
        let mut lines = number.value().to_string();
        if let Some((name, value)) = ticket {
            lines.push_str("\nt");
            lines.push_str(name);
            lines.push_str(": ");
            lines.push_str(value);
        }
        for (letter, value) in [("\na", admitted), ("\nr", revocable), ("\no", origin)] {
            if let Some(value) = value {
                lines.push_str(letter);
                lines.push_str(value);
            }
        }
        JsValue::from(lines)
    }
}

/// What `entry.js` gets for a request that a room has no say in: nothing, or the signed word and the room's own origin.
/// `room`: the room that covers it.
pub fn uncounted(room: Option<&Room>, admitted: Option<String>) -> JsValue {
    let mut lines = admitted.map_or_else(String::new, |word| ["\na", &word].concat());
    if let Some(origin) = room.and_then(Room::own_origin) {
        lines.push_str("\no");
        lines.push_str(origin);
    }
    if lines.is_empty() { JsValue::UNDEFINED } else { JsValue::from(lines) }
}

/// A session that the origin may end.
pub struct Revocable<'a> {
    /// The room's name.
    pub room: &'a str,
    /// The ticket's id.
    pub id: u64,
    /// The ticket's last check-in.
    pub last_check_in: u64,
    /// When the user entered.
    pub entered: Option<u64>,
    /// How the ticket travels.
    pub carrier: Carrier,
    /// The user waits, in a room that only observes: there is no session yet, and the ticket alone is taken away.
    pub waits: bool,
}

impl<'a> Revocable<'a> {
    /// The text that [`Revocable::read`] reads.
    pub fn text(room: &Room, ticket: &Ticket, carrier: Carrier) -> String {
        let by = match (carrier, ticket.accepted_at.is_none()) {
            (Carrier::Cookie, false) => 'c',
            (Carrier::Cookie, true) => 'C',
            (Carrier::Header, false) => 'h',
            (Carrier::Header, true) => 'H',
        };
        let inside = ticket.last_check_in.saturating_sub(ticket.accepted_at.unwrap_or(ticket.last_check_in));
        format!("{} {} {inside} {by} {}", ticket.id, ticket.last_check_in, room.name)
    }

    /// What was handed out with the passport.
    pub fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(5, ' ');
        let id = parts.next()?.parse().ok()?;
        let last_check_in: u64 = parts.next()?.parse().ok()?;
        let inside: u64 = parts.next()?.parse().ok()?;
        let entered = last_check_in.checked_sub(inside);
        let by = parts.next()?;
        let carrier = if by.eq_ignore_ascii_case("c") { Carrier::Cookie } else { Carrier::Header };
        let waits = by.starts_with(char::is_uppercase);
        Some(Self { room: parts.next()?, id, last_check_in, entered, carrier, waits })
    }
}
