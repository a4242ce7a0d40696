//! What a visitor who waits gets to see, and the pages that say one thing: for a path that is ours but does not exist, for an
//! origin that cannot be reached.
//!
//! This makes [`facts`] only: words, pages and JSON are made of them by `edge/page/answer.js`, with
//! the platform's own knowledge of languages. The page works without JavaScript by its `Refresh` header. With JavaScript
//! it stops that reload, asks its own URL for a status and enters when it gets an [`admitted_status`].

mod event_facts;
mod facts;

use serde::Serialize;

use crate::room::{LANGUAGES, Room};
pub use event_facts::{DrawFacts, EventView};
pub use facts::{Estimate, WaitingView, facts, progress};

/// The request header by which the page's script asks for a status instead of the page; its value is `1`.
pub const STATUS_REQUEST_HEADER: &str = "anteroom-status";

/// The request header by which a waiting page says which wait it shows, in seconds: [`Estimate::held`].
pub const SHOWN_HEADER: &str = "anteroom-shown";

/// A visitor who has not gone in is told so this many seconds after the turn is over.
const TURN_OVER_SECONDS: u32 = 1;
/// Retry interval of a visitor whose origin did not answer, in seconds.
const UNREACHABLE_SECONDS: u32 = 10;

/// An answer of our own, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Header names, in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

/// Whether the request asks for a status: `header` is the value of [`STATUS_REQUEST_HEADER`].
pub fn is_status_request(header: Option<&str>) -> bool {
    header.is_some_and(|value| value.trim() == "1")
}

/// What the waiting page sends when it is closed: a body of this type, with the time of the page's last check-in behind
/// it. `sendBeacon` can set no other header, and a type of our own is nothing that an origin waits for.
const CLOSED_PAGE: &str = "application/x-anteroom-leave;at=";

/// The time of the last check-in of a waiting page that is being closed, in milliseconds since 1970, by the type of the
/// body that it sends; 0 where it tells none. `None`: nothing is being closed.
pub fn closed_page(content_type: &str) -> Option<u64> {
    let checked_in = content_type.trim().strip_prefix(CLOSED_PAGE)?;
    Some(checked_in.parse().unwrap_or(0))
}

/// Whether a waiting page sends a subscription to push messages, by the type of the body.
pub fn is_subscription(content_type: &str) -> bool {
    content_type == "application/x-anteroom-push"
}

/// The status of a visitor who may enter.
pub fn admitted_status() -> Answer {
    status(&AdmittedStatus { admitted: true })
}

/// What a page of our own says that says one thing, in the visitor's language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// There is nothing at a path of our own.
    NotFound,
    /// One reader takes the path for one page, and another for a different one.
    BadPath,
    /// To an admitted visitor: the origin cannot be reached.
    Unreachable,
    /// To an admitted visitor: the origin takes too long (`origin_guard`).
    Late,
    /// To an admitted visitor: the origin has too much to do to be asked (`origin_guard`).
    Busy {
        /// Seconds until the visitor is to try again.
        seconds: u32,
    },
    /// The place has moved on to another device.
    Moved,
    /// The link to a place was used, or its time is over.
    LinkOver,
    /// It is the visitor's turn, who has to go in within a time (`confirm_within_minutes`).
    Turn {
        /// Seconds until the turn is the next one's.
        seconds: u32,
        /// The waiting page's script asks.
        asks_for_status: bool,
    },
    /// The visitor has not gone in within that time.
    TurnOver,
    /// The room in which the visitor waited is deleted (`when_deleted`): nobody has to wait any more.
    LineOver,
}

impl Message {
    /// The name of its text, and the status code.
    fn name(self) -> (&'static str, u16) {
        match self {
            Self::NotFound => ("notFound", 404),
            Self::BadPath => ("badPath", 400),
            Self::Unreachable => ("unreachable", 502),
            Self::Late => ("late", 504),
            Self::Busy { .. } => ("busy", 503),
            Self::Moved => ("moved", 410),
            Self::LinkOver => ("linkOver", 410),
            Self::Turn { .. } => ("turn", 200),
            Self::TurnOver => ("turnOver", 410),
            Self::LineOver => ("lineOver", 410),
        }
    }

    /// Seconds until the visitor is to try again; `None`: that does not help.
    fn retry_after(self) -> Option<u32> {
        match self {
            Self::NotFound
            | Self::BadPath
            | Self::Moved
            | Self::LinkOver
            | Self::TurnOver
            | Self::LineOver => None,
            Self::Unreachable | Self::Late => Some(UNREACHABLE_SECONDS),
            Self::Busy { seconds } => Some(seconds),
            // Asking is going in, until it is too late.
            Self::Turn { seconds, .. } => Some(seconds.saturating_add(TURN_OVER_SECONDS)),
        }
    }

    /// Its facts as JSON, as [`facts`] are. `room`: the one that is concerned, if any; `method` of the request; `headers`
    /// bring the visitor's ticket. A page asks again by itself, and that keeps the visitor's session; what was sent with
    /// another method than `GET` is for the visitor to send again.
    pub fn facts(self, room: Option<&Room>, method: &str, headers: &[(&'static str, String)]) -> String {
        let (say, status) = self.name();
        let retry_after = self.retry_after();
        let facts = MessageFacts {
            say,
            status,
            headers,
            language: room.map_or(LANGUAGES[0], |room| room.page.language),
            visitor_languages: room.is_none_or(|room| room.page.visitor_languages),
            again: match self {
                Self::Moved | Self::TurnOver => "joinLine",
                Self::Turn { .. } | Self::LineOver => "enter",
                _ if retry_after.is_some() => "tryAgain",
                _ => "",
            },
            retry_after,
            refreshes: retry_after.is_some() && method == "GET",
            turn_seconds: match self {
                Self::Turn { seconds, .. } => Some(seconds),
                _ => None,
            },
            asks_for_status: matches!(self, Self::Turn { asks_for_status: true, .. }),
        };
        // Numbers and texts always serialise.
        serde_json::to_string(&facts).unwrap_or_default()
    }
}

/// `edge/page/message.js` says what each is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageFacts<'a> {
    say: &'static str,
    status: u16,
    headers: &'a [(&'static str, String)],
    language: &'a str,
    visitor_languages: bool,
    again: &'static str,
    retry_after: Option<u32>,
    refreshes: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_seconds: Option<u32>,
    asks_for_status: bool,
}

/// Headers that all answers share: none of them is to be stored, guessed at or listed by a search engine.
fn common_headers(content_type: &str) -> Vec<(&'static str, String)> {
    vec![
        ("content-type", content_type.to_owned()),
        ("cache-control", "private, no-store".to_owned()),
        ("vary", "Cookie, Accept, Anteroom-Status".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
        ("referrer-policy", "same-origin".to_owned()),
        ("x-robots-tag", "noindex".to_owned()),
    ]
}

fn status(content: &impl Serialize) -> Answer {
    // A struct of numbers and texts always serialises; were it ever not to, the page takes an empty answer for a
    // failed check and comes back.
    let body = serde_json::to_string(content).unwrap_or_default();
    Answer { status: 200, headers: common_headers("application/json"), body }
}

/// What the page's script reads when the visitor may enter.
#[derive(Serialize)]
struct AdmittedStatus {
    admitted: bool,
}
