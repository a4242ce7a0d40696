//! What an isolate shows of the origin's health to anybody who asks: however many they are and whatever they ask for,
//! the coordinator is asked once a second at most.

use super::Source;
use super::check::Checks;
use super::messages::{Ask, Told};

/// How long what was told is shown, in milliseconds.
pub const SHOWN_MS: u64 = 3_000;
/// The shortest time between two questions, in milliseconds.
pub const ASKS_MS: u64 = 1_000;
/// How long what was told is shown while others have asked just now, in milliseconds.
pub const STALE_MS: u64 = 30_000;
/// The most answers that are kept; the oldest makes room.
const MOST: usize = 24;

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// It is shown this page, or JSON.
    Show(String),
    /// There is no such check.
    Unknown,
    /// It asks the coordinator.
    Ask,
    /// Another one asks just now.
    Later,
}

/// What the coordinator has told.
#[derive(Debug, Default)]
pub struct Shown {
    answers: Vec<(Ask, u64, String)>,
    /// The checks that there are, and when that was told; 0: never.
    checks: (u64, Vec<String>),
    asked_at: u64,
}

impl Shown {
    /// What becomes of a request at a time, in milliseconds since the epoch. `configured`: our own checks.
    pub fn next(&mut self, ask: &Ask, configured: &Checks, now: u64) -> Next {
        if !may_be(&ask.check, configured) {
            return Next::Unknown;
        }
        let answer = self.answers.iter().find(|(of, ..)| of == ask);
        let is_unknown = !ask.check.is_empty() && !self.checks.1.contains(&ask.check);
        // At first for as long as it is fresh; then, if nobody may ask now, for as long as it is any good.
        for (kept_ms, may_ask) in [(SHOWN_MS, now >= self.asked_at + ASKS_MS), (STALE_MS, false)] {
            if let Some((.., body)) = answer.filter(|(_, at, _)| now < at + kept_ms) {
                return Next::Show(body.clone());
            }
            if is_unknown && now < self.checks.0 + kept_ms {
                return Next::Unknown;
            }
            if may_ask {
                self.asked_at = now;
                return Next::Ask;
            }
        }
        Next::Later
    }

    /// Keeps what the coordinator has told at a time, in milliseconds since the epoch.
    pub fn learn(&mut self, ask: &Ask, told: &Told, now: u64) {
        if let Some(checks) = &told.checks {
            self.checks = (now, checks.clone());
        }
        self.answers.retain(|(of, ..)| of != ask);
        if let Some(body) = &told.body {
            if self.answers.len() >= MOST {
                self.answers.remove(0);
            }
            self.answers.push((ask.clone(), now, body.clone()));
        }
    }
}

/// Whether there may be a check of an identity; the empty one stands for all.
fn may_be(check: &str, configured: &Checks) -> bool {
    let name_of = |source: Source| check.strip_prefix(&source.check_id(""));
    check.is_empty()
        || name_of(Source::Webhook).is_some()
        || name_of(Source::Check).is_some_and(|name| configured.get(name).is_some())
}
