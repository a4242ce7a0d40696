//! The pages: their templates, and what a browser may do with them.

use askama::Template;

use super::WaitingView;
use super::wait::{Wait, people_text};

/// The style and the script as `build.rs` compacted them; their hashes were taken from these bytes.
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/waiting.css"));
const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/waiting.js"));

/// What the waiting page may do: run the script and the style that it carries, show the icon that it carries, and ask
/// its own site.
pub(super) const WAITING_POLICY: &str = concat!(
    "default-src 'none'; style-src '",
    env!("ANTEROOM_STYLE_HASH"),
    "'; script-src '",
    env!("ANTEROOM_SCRIPT_HASH"),
    "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
);

/// What a page that only says something may do.
pub(super) const MESSAGE_POLICY: &str = concat!(
    "default-src 'none'; style-src '",
    env!("ANTEROOM_STYLE_HASH"),
    "'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
);

/// The waiting page.
#[derive(Template)]
#[template(path = "waiting.html.j2")]
pub(super) struct WaitingPage<'a> {
    style: &'static str,
    script: &'static str,
    host: Option<&'a str>,
    wait: Wait,
    /// The door of the picture: `closed`, `ajar` or, by the script, `open`.
    state: &'static str,
    people: String,
    refresh_seconds: u32,
    checked_at: String,
    kept_minutes: u64,
    cookieless: bool,
}

impl<'a> WaitingPage<'a> {
    pub(super) fn new(view: &WaitingView<'a>) -> Self {
        Self {
            style: STYLE,
            script: SCRIPT,
            host: view.room.host.as_deref(),
            wait: Wait::new(view.estimate, view.queue_all, view.held),
            state: if view.queue_all || view.held { "closed" } else { "ajar" },
            people: people_text(view.people_ahead),
            refresh_seconds: view.refresh_seconds,
            checked_at: time_of_day(view.now_ms),
            kept_minutes: u64::from(view.room.place_kept_seconds.div_ceil(60)),
            cookieless: view.cookieless,
        }
    }

    /// The page; a plain sentence should the template ever fail, since the headers alone keep the visitor's place.
    pub(super) fn to_html(&self) -> String {
        self.render().unwrap_or_else(|_| format!("{} {}", self.wait.note, self.people))
    }
}

/// A page that says one thing.
#[derive(Template)]
#[template(path = "message.html.j2")]
pub(super) struct Message {
    style: &'static str,
    title: &'static str,
    text: &'static str,
    retry: bool,
}

impl Message {
    pub(super) fn new(title: &'static str, text: &'static str, retry: bool) -> Self {
        Self { style: STYLE, title, text, retry }
    }

    pub(super) fn to_html(&self) -> String {
        self.render().unwrap_or_else(|_| format!("{}. {}", self.title, self.text))
    }
}

/// The time of day in UTC, as `14:03:22`. The page's script puts the visitor's own time in its place.
fn time_of_day(now_ms: u64) -> String {
    let seconds = now_ms / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}
