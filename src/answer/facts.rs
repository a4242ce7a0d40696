//! What is known of a waiting visitor, as JSON for `edge/page/answer.js`, which makes words and answers of it.

use serde::Serialize;

use super::event_facts::{DrawFacts, EventView};
use crate::room::{QueueingMethod, Room, SameSite};

/// How long a visitor will wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// An estimate can be given.
    Known {
        /// Seconds until the visitor is let in.
        seconds: u64,
    },
    /// Where chance decides: the seconds after which a quarter, a half and three quarters of those who wait are in.
    Spread {
        /// Seconds after which a quarter is in.
        quarter: u64,
        /// Seconds after which half is in.
        half: u64,
        /// Seconds after which three quarters are in.
        three_quarters: u64,
    },
    /// Too little is known to say.
    Unknown,
}

impl Estimate {
    /// What to show to somebody who was shown a wait of so many seconds last. As long as the new estimate lies within the
    /// range that this wait stands for, it still holds: so what is shown does not rise with every breath of the estimate,
    /// and nobody is told less than is known.
    #[must_use]
    pub fn held(self, shown_seconds: Option<u64>) -> Self {
        match (self, shown_seconds) {
            (Self::Known { seconds }, Some(shown)) if shown < seconds && seconds <= latest(shown) => {
                Self::Known { seconds: shown }
            }
            _ => self,
        }
    }

    /// Where chance decides: the seconds after which a quarter, a half and three quarters are in.
    pub fn spread([quarter, half, three_quarters]: [u64; 3]) -> Self {
        Self::Spread { quarter, half, three_quarters }
    }
}

/// What is known about a waiting visitor at the moment of the request.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "facts, each of its own")]
pub struct WaitingView<'a> {
    /// The room they wait for.
    pub room: &'a Room,
    /// The page's script asks.
    pub asks_for_status: bool,
    /// How long they will wait.
    pub estimate: Estimate,
    /// How many users wait in front of them; `None` when not known.
    pub people_ahead: Option<u64>,
    /// How far they have come, 0 to 100 ([`progress`]); `None` when not known.
    pub progress: Option<u8>,
    /// Their place in line was drawn by lot.
    pub drawn: bool,
    /// Nobody new enters at present.
    pub queue_all: bool,
    /// Nobody new enters because the origin is unhealthy.
    pub held: bool,
    /// The event that is on, if any.
    pub event: Option<EventView<'a>>,
    /// Their lot, where the order is random.
    pub draw: Option<&'a DrawFacts>,
    /// How long the place is kept after this check-in, in seconds.
    pub kept_seconds: u64,
    /// Seconds to the next check-in, already spread out so that a crowd does not check in at once.
    pub refresh_seconds: u32,
    /// The time of this answer, in milliseconds since 1970.
    pub now_ms: u64,
    /// The visitor seems to refuse cookies; the page then says so. `false` when unknown.
    pub cookieless: bool,
    /// The visitor never enters, and is not told.
    pub infinite_queue: bool,
    /// HTML of a challenge to solve; may be empty.
    pub turnstile: &'a str,
    /// What the challenge gave could not be judged: it is to be brought again.
    pub bring_again: bool,
    /// Where the visitor goes on with the place on another device; may be empty.
    pub continue_link: &'a str,
    /// The owner's public key for push messages; empty: there are none.
    pub push: &'a str,
}

/// How far a waiting visitor has come, in percent: never less than `before`, and never all of the way.
pub fn progress(ahead_now: u64, ahead_at_first: u64, before: u8) -> u8 {
    let gone = ahead_at_first.saturating_sub(ahead_now);
    let percent = gone.saturating_mul(100).checked_div(ahead_at_first).unwrap_or(0);
    before.max(u8::try_from(percent).unwrap_or(u8::MAX)).min(99)
}

/// The wait is told as a range. It begins at this percentage of the estimate: most enter within it (docs/decisions.md).
const SOONEST_PERCENT: u64 = 70;
/// Where the range ends, see [`SOONEST_PERCENT`]. It is wider on this side: nobody minds being early.
const LATEST_PERCENT: u64 = 140;

/// The end of the range that an estimate stands for.
fn latest(seconds: u64) -> u64 {
    seconds.saturating_mul(LATEST_PERCENT) / 100
}

/// The facts as JSON, with the headers (names in lower case, and values) that bring the visitor's ticket.
pub fn facts(view: &WaitingView, headers: &[(&'static str, String)]) -> String {
    let room = view.room;
    let event = view.event;
    let opens_again = view.queue_all || event.is_some_and(|event| event.prequeueing);
    let checks_in = opens_again || room.queueing_method != QueueingMethod::Reject;
    let (low, seconds, high) = match view.estimate {
        Estimate::Unknown => (None, None, None),
        Estimate::Spread { quarter, half, three_quarters } => {
            (Some(quarter), Some(half), Some(three_quarters))
        }
        Estimate::Known { seconds } => {
            let soonest = seconds.saturating_mul(SOONEST_PERCENT) / 100;
            (Some(soonest), Some(seconds), Some(latest(seconds)))
        }
    };
    let facts = Facts {
        status: room.queueing_status_code,
        headers,
        asks_for_status: view.asks_for_status,
        room: room.label(),
        host: room.host.as_deref().unwrap_or_default(),
        language: room.page.language,
        visitor_languages: room.page.visitor_languages,
        custom_page: &room.page.template,
        exact_json: room.page.exact_json,
        preferred_json: room.page.preferred_json,
        embedded: room.cookie_attributes.samesite == SameSite::None,
        message: &room.page.message,
        show_position: room.page.position,
        show_wait: room.page.wait,
        show_progress: room.page.progress,
        queueing_method: room.queueing_method,
        queue_all: view.queue_all,
        held: view.held,
        wait_seconds: seconds,
        wait_seconds_low: low,
        wait_seconds_high: high,
        people_ahead: view.people_ahead,
        progress: view.progress,
        drawn: view.drawn,
        event,
        draw: view.draw,
        kept_seconds: view.kept_seconds,
        confirm_seconds: room.confirm_within_minutes * 60,
        refresh_seconds: if checks_in { view.refresh_seconds } else { 0 },
        now: view.now_ms,
        cookieless: view.cookieless,
        infinite_queue: view.infinite_queue,
        turnstile: view.turnstile,
        bring_again: view.bring_again,
        continue_link: view.continue_link,
        push: view.push,
    };
    // Numbers and texts always serialise.
    serde_json::to_string(&facts).unwrap_or_default()
}

/// `edge/page/answer.js` says what each is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "facts, each of its own")]
struct Facts<'a> {
    status: u16,
    headers: &'a [(&'static str, String)],
    asks_for_status: bool,
    room: &'a str,
    host: &'a str,
    language: &'a str,
    visitor_languages: bool,
    custom_page: &'a str,
    exact_json: bool,
    preferred_json: bool,
    embedded: bool,
    message: &'a str,
    show_position: bool,
    show_wait: bool,
    show_progress: bool,
    queueing_method: QueueingMethod,
    queue_all: bool,
    held: bool,
    wait_seconds: Option<u64>,
    wait_seconds_low: Option<u64>,
    wait_seconds_high: Option<u64>,
    people_ahead: Option<u64>,
    progress: Option<u8>,
    drawn: bool,
    event: Option<EventView<'a>>,
    draw: Option<&'a DrawFacts>,
    kept_seconds: u64,
    confirm_seconds: u32,
    refresh_seconds: u32,
    now: u64,
    cookieless: bool,
    infinite_queue: bool,
    turnstile: &'a str,
    bring_again: bool,
    continue_link: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    push: &'a str,
}
