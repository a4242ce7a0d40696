//! The pages that say one thing: their template, and what a browser may do with them.

use askama::Template;

/// The style as `build.rs` compacted it; its hash was taken from these bytes.
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/waiting.css"));

/// What a page that only says something may do.
pub(super) const MESSAGE_POLICY: &str = concat!(
    "default-src 'none'; style-src '",
    env!("ANTEROOM_STYLE_HASH"),
    "'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
);

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
