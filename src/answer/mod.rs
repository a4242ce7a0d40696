//! What a visitor who waits gets to see: the page, the small status answers for its script, and the pages for a path
//! that is ours but does not exist and for an origin that cannot be reached.
//!
//! The page works without JavaScript by its `Refresh` header. With JavaScript it stops that reload, asks its own URL
//! for a [`waiting_status`] and enters when it gets an [`admitted_status`]. `wait.rs` holds the words for a wait, one
//! source for both ways.

mod event_facts;
mod page;
mod wait;

use serde::Serialize;

use crate::config::Room;
pub use event_facts::{DrawFacts, EventFacts};
use page::{Message, WaitingPage};
pub use wait::{Estimate, Wait, people_text};

/// The request header by which the page's script asks for a status instead of the page; its value is `1`.
pub const STATUS_REQUEST_HEADER: &str = "anteroom-status";

/// The response header by which clients and load tools tell a waiting page from the origin's pages; its value is
/// `waiting`.
pub const WAITING_HEADER: &str = "anteroom";

/// A longer address is left out of the `Refresh` header, in bytes.
const LONGEST_REFRESH_URL: usize = 2_000;

/// After so many seconds a visitor whose origin did not answer tries again.
const UNREACHABLE_SECONDS: u32 = 10;

/// What is known about a waiting visitor at the moment of the request.
#[derive(Debug, Clone, Copy)]
pub struct WaitingView<'a> {
    /// The room they wait for.
    pub room: &'a Room,
    /// The URL of their request, as the platform gives it.
    pub url: &'a str,
    /// How long they will wait.
    pub estimate: Estimate,
    /// How many users wait in front of them; `None` when not known.
    pub people_ahead: Option<u64>,
    /// Nobody new enters at present.
    pub queue_all: bool,
    /// Nobody new enters because the origin is unhealthy.
    pub held: bool,
    /// Seconds to the next check-in, already spread out so that a crowd does not check in at once; 0: there is none.
    pub refresh_seconds: u32,
    /// The time of this answer, in milliseconds since 1970.
    pub now_ms: u64,
    /// The visitor seems to refuse cookies; the page then says so. `false` when unknown.
    pub cookieless: bool,
    /// What may be known of the order and of an event.
    pub facts: &'a EventFacts,
}

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

/// The page for a visitor who waits.
pub fn waiting_page(view: &WaitingView) -> Answer {
    let mut headers = common_headers("text/html; charset=utf-8");
    headers.push(("content-language", "en".to_owned()));
    headers.push(("content-security-policy", page::WAITING_POLICY.to_owned()));
    headers.push((WAITING_HEADER, "waiting".to_owned()));
    if view.refresh_seconds > 0 {
        headers.push(("refresh", refresh(view)));
        headers.push(("retry-after", view.refresh_seconds.to_string()));
    }
    Answer { status: view.room.queueing_status_code, headers, body: WaitingPage::new(view).to_html() }
}

/// The `Refresh` header. It names the address, because without one browsers only scroll where the address has a
/// fragment. Relative to the page, so that no path (`//elsewhere.example`) can lead to another host.
fn refresh(view: &WaitingView) -> String {
    let seconds = view.refresh_seconds;
    let address = view.url.split('#').next().unwrap_or_default();
    let (path, query) = address.split_once('?').map_or((address, ""), |(path, query)| (path, query));
    let file = path.rsplit('/').next().unwrap_or_default();
    let separator = if query.is_empty() { "" } else { "?" };
    let is_sound = path.matches('/').count() >= 3 && file.len() + query.len() <= LONGEST_REFRESH_URL;
    if is_sound { format!("{seconds}; url=./{file}{separator}{query}") } else { seconds.to_string() }
}

/// The status of a visitor who waits, for the page's script. Its status code is 200 whatever the room's own is: the
/// question was answered.
pub fn waiting_status(view: &WaitingView) -> Answer {
    let wait = Wait::new(view.estimate, view.queue_all, view.held);
    let mut answer = status(&WaitingStatus {
        admitted: false,
        wait_known: wait.seconds.is_some(),
        wait_seconds: wait.seconds,
        wait_text: &wait.text,
        wait_label: wait.label,
        wait_note: wait.note,
        title: &wait.title,
        people_ahead: view.people_ahead,
        people_text: &people_text(view.people_ahead),
        queue_all: view.queue_all,
        refresh_seconds: view.refresh_seconds,
        facts: view.facts,
    });
    answer.headers.push((WAITING_HEADER, "waiting".to_owned()));
    answer.headers.push(("retry-after", view.refresh_seconds.to_string()));
    answer
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

/// What the page's script reads while the visitor waits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingStatus<'a> {
    admitted: bool,
    wait_known: bool,
    /// `null` when not known.
    wait_seconds: Option<u64>,
    wait_text: &'a str,
    wait_label: &'a str,
    wait_note: &'a str,
    title: &'a str,
    people_ahead: Option<u64>,
    people_text: &'a str,
    queue_all: bool,
    refresh_seconds: u32,
    facts: &'a EventFacts,
}

/// What the page's script reads when the visitor may enter.
#[derive(Serialize)]
struct AdmittedStatus {
    admitted: bool,
}
