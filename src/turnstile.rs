//! Cloudflare's Turnstile: is a waiting visitor a person?
//!
//! The waiting page carries the widget; what it gives is verified with the service, and the ticket keeps what came of
//! it. The service may not be able to say: then nobody is taken for a robot, and nobody for a person for longer than the
//! request.

use serde::Deserialize;

use crate::room::{Room, TurnstileAction, TurnstileMode};
use crate::ticket::Human;

/// The request header in which the waiting page's script sends what the widget gave.
pub const TOKEN_HEADER: &str = "anteroom-turnstile";
/// Where the widget's script and the service are, unless `TURNSTILE_URL` says otherwise.
pub const SERVICE_URL: &str = "https://challenges.cloudflare.com/turnstile/v0";
/// A longer token is none (the service's own limit), in bytes.
pub const MAX_TOKEN_LENGTH: usize = 2_048;
/// The most calls to the service that an isolate makes in a second: whoever sends tokens of no worth must not make us flood
/// it, and lose its word for everybody.
pub const CALLS_PER_SECOND: u32 = 20;
/// The service takes no longer name of an action.
const MAX_ACTION_LENGTH: usize = 32;

/// What the service said of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A person.
    Passed,
    /// A robot, for these reasons.
    Failed(String),
    /// The token is too old or was used before: another one is needed.
    Again,
    /// The service could not say, for this reason.
    Silent(String),
}

/// The service's answer, as far as it matters.
#[derive(Deserialize)]
struct Answer {
    success: bool,
    #[serde(default, rename = "error-codes")]
    error_codes: Vec<String>,
    #[serde(default)]
    hostname: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    /// The secret is one of those with which everybody passes. Such answers name the host `example.com`.
    #[serde(default)]
    result_with_testing_key: bool,
}

/// Error codes that speak of the token, and not of the service or of its secret.
const OF_THE_TOKEN: [&str; 2] = ["invalid-input-response", "missing-input-response"];
const USED_UP: &str = "timeout-or-duplicate";

impl Verdict {
    /// Reads the body of the service's answer to a token that came to a room on this host. A token from the widget of
    /// another page is no word for this one.
    pub fn read(body: &str, room: &Room, host: &str) -> Self {
        let host = host.rsplit_once(':').map_or(host, |(name, port)| {
            if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
        });
        match serde_json::from_str(body) {
            Ok(Answer { success: true, metadata: Metadata { result_with_testing_key: true }, .. }) => {
                Self::Passed
            }
            Ok(Answer { success: true, hostname, .. }) if !hostname.eq_ignore_ascii_case(host) => {
                Self::Failed(format!("the token is for the host {hostname:?}, and not for {host}"))
            }
            Ok(Answer { success: true, action, .. }) if action != room.turnstile_action_name() => {
                Self::Failed(format!("the token is for the action {action:?}, and not for the room's"))
            }
            Ok(Answer { success: true, .. }) => Self::Passed,
            Ok(Answer { error_codes, .. }) => {
                let codes = error_codes.join(", ");
                if error_codes.iter().any(|code| code == USED_UP) {
                    Self::Again
                } else if error_codes.iter().any(|code| OF_THE_TOKEN.contains(&code.as_str())) {
                    Self::Failed(codes)
                } else {
                    Self::Silent(codes)
                }
            }
            Err(error) => Self::Silent(format!("its answer cannot be read: {error}")),
        }
    }

    /// What is then known of a visitor of whom `before` was known.
    pub fn human(&self, before: Human) -> Human {
        match self {
            Self::Passed => Human::Passed,
            Self::Failed(_) => Human::Failed,
            Self::Again | Self::Silent(_) => before,
        }
    }
}

/// Counts an isolate's questions to the service, second by second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Budget {
    second: u64,
    asked: u32,
}

impl Budget {
    /// The number of a question among those of its second, from 1. Beyond [`CALLS_PER_SECOND`] it is not to be asked.
    pub fn number(&mut self, now_ms: u64) -> u32 {
        let second = now_ms / 1_000;
        let before = if second == self.second { self.asked } else { 0 };
        *self = Self { second, asked: before.saturating_add(1) };
        self.asked
    }
}

impl Room {
    /// Whether a waiting visitor of whom this is known may enter and is counted: not so a robot, nor whoever has not
    /// shown yet to be none, where the owner wants that (`turnstile_action = "infinite_queue"`).
    pub fn trusts(&self, human: Human) -> bool {
        let strict = |action| action == TurnstileAction::InfiniteQueue;
        human == Human::Passed || !self.turnstile.as_ref().is_some_and(|turnstile| strict(turnstile.action))
    }

    /// What the widget says that its tokens are for.
    fn turnstile_action_name(&self) -> &str {
        self.name.get(..MAX_ACTION_LENGTH).unwrap_or(&self.name)
    }

    /// The HTML of the widget for a visitor of whom this is known; nothing where there is nothing to find out. `service`
    /// is the URL of the service. The page's script, or a template's, defines `anteroomTurnstile`, which sends the token.
    pub fn turnstile_html(&self, human: Human, service: &str) -> String {
        let Some(turnstile) = self.turnstile.as_ref().filter(|_| human != Human::Passed) else {
            return String::new();
        };
        let appearance =
            if turnstile.mode == TurnstileMode::Invisible { "interaction-only" } else { "always" };
        let (sitekey, action) = (&turnstile.sitekey, self.turnstile_action_name());
        format!(
            "<div class=\"cf-turnstile\" data-sitekey=\"{sitekey}\" data-action=\"{action}\" \
             data-appearance=\"{appearance}\" data-callback=\"anteroomTurnstile\"></div>\
             <script src=\"{service}/api.js\" async defer></script>"
        )
    }
}
