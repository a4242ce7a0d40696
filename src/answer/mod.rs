//! What a visitor who waits gets to see, and the pages for a path that is ours but does not exist and for an origin that
//! cannot be reached.
//!
//! Of a waiting visitor this makes [`facts`] only: words, pages and JSON are made of them by `edge/page/answer.js`, with
//! the platform's own knowledge of languages. The page works without JavaScript by its `Refresh` header. With JavaScript
//! it stops that reload, asks its own URL for a status and enters when it gets an [`admitted_status`].

mod event_facts;
mod facts;
mod page;

use serde::Serialize;

pub use event_facts::{DrawFacts, EventView};
pub use facts::{Estimate, WaitingView, facts, progress};
use page::Message;

/// The request header by which the page's script asks for a status instead of the page; its value is `1`.
pub const STATUS_REQUEST_HEADER: &str = "anteroom-status";

/// The request header by which a waiting page says which wait it shows, in seconds: [`Estimate::held`].
pub const SHOWN_HEADER: &str = "anteroom-shown";

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

/// The answer to a path of our own that does not exist.
pub fn not_found() -> Answer {
    message(404, "Page not found", "There is nothing at this address.", false, None)
}

/// The answer to a path that one reader takes for one page and another for a different one.
pub fn bad_path() -> Answer {
    message(
        400,
        "Address not understood",
        "This address can be read in more than one way. Please follow a link or type it anew.",
        false,
        None,
    )
}

/// The answer to an admitted visitor when the origin cannot be reached. A page asks again by itself, and that keeps the
/// visitor's session; what was sent with another method than `GET` is for the visitor to send again.
pub fn origin_unreachable(method: &str) -> Answer {
    message(
        502,
        "The site does not answer",
        "You are in, but the site behind this page could not be reached. Please try again in a moment.",
        true,
        Some(Again::after(UNREACHABLE_SECONDS, method)),
    )
}

/// The answer to an admitted visitor when the origin takes too long (`origin_guard`).
pub fn origin_late(method: &str) -> Answer {
    message(
        504,
        "The site takes too long",
        "You are in, but the site behind this page has not answered in time. Please try again in a moment.",
        true,
        Some(Again::after(UNREACHABLE_SECONDS, method)),
    )
}

/// The answer to an admitted visitor when the origin has too much to do to be asked (`origin_guard`).
pub fn origin_busy(seconds: u32, method: &str) -> Answer {
    message(
        503,
        "The site is busy",
        "You are in, and you stay in. The site behind this page has too much to do at this moment, so your request was \
         not sent to it. Please try again in a few seconds.",
        true,
        Some(Again::after(seconds, method)),
    )
}

/// In how many seconds to try again, and whether a page may do so by itself.
#[derive(Clone, Copy)]
struct Again {
    seconds: u32,
    by_itself: bool,
}

impl Again {
    fn after(seconds: u32, method: &str) -> Self {
        Self { seconds, by_itself: method == "GET" }
    }
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

fn message(
    status: u16,
    title: &'static str,
    text: &'static str,
    retry: bool,
    again: Option<Again>,
) -> Answer {
    let mut headers = common_headers("text/html; charset=utf-8");
    headers.push(("content-language", "en".to_owned()));
    headers.push(("content-security-policy", page::MESSAGE_POLICY.to_owned()));
    if let Some(Again { seconds, by_itself }) = again {
        headers.push(("retry-after", seconds.to_string()));
        if by_itself {
            headers.push(("refresh", seconds.to_string()));
        }
    }
    Answer { status, headers, body: Message::new(title, text, retry).to_html() }
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
