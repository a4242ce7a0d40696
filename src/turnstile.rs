//! Cloudflare's Turnstile: is a waiting visitor a person?
//!
//! The waiting page carries the widget; what it gives is verified with the service, and the ticket keeps what came of
//! it. The service may be down: then nobody is taken for a robot.

use serde::Deserialize;

use crate::room::{Room, TurnstileAction, TurnstileMode};
use crate::ticket::Human;

/// The request header in which the waiting page's script sends what the widget gave.
pub const TOKEN_HEADER: &str = "anteroom-turnstile";
/// Where the widget's script and the service are, unless `TURNSTILE_URL` says otherwise.
pub const SERVICE_URL: &str = "https://challenges.cloudflare.com/turnstile/v0";
/// A longer token is none (the service's own limit), in bytes.
pub const MAX_TOKEN_LENGTH: usize = 2_048;

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
}

/// Error codes that speak of the token, and not of the service or of its secret.
const OF_THE_TOKEN: [&str; 2] = ["invalid-input-response", "missing-input-response"];
const USED_UP: &str = "timeout-or-duplicate";

impl Verdict {
    /// Reads the body of the service's answer.
    pub fn read(body: &str) -> Self {
        match serde_json::from_str(body) {
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

    /// What is then known of a visitor of whom `before` was known. A service that cannot say is no reason to hold
    /// anybody up.
    pub fn human(&self, before: Human) -> Human {
        match self {
            Self::Passed | Self::Silent(_) => Human::Passed,
            Self::Failed(_) => Human::Failed,
            Self::Again => before,
        }
    }
}

impl Room {
    /// Whether a waiting visitor of whom this is known may enter and is counted: not so a robot, nor whoever has not
    /// shown yet to be none, where the owner wants that (`turnstile_action = "infinite_queue"`).
    pub fn trusts(&self, human: Human) -> bool {
        let strict = |action| action == TurnstileAction::InfiniteQueue;
        human == Human::Passed || !self.turnstile.as_ref().is_some_and(|turnstile| strict(turnstile.action))
    }

    /// The HTML of the widget for a visitor of whom this is known; nothing where there is nothing to find out. `service`
    /// is the URL of the service. The page's script, or a template's, defines `anteroomTurnstile`, which sends the token.
    pub fn turnstile_html(&self, human: Human, service: &str) -> String {
        let Some(turnstile) = self.turnstile.as_ref().filter(|_| human != Human::Passed) else {
            return String::new();
        };
        let appearance =
            if turnstile.mode == TurnstileMode::Invisible { "interaction-only" } else { "always" };
        let (sitekey, room) = (&turnstile.sitekey, &self.name);
        format!(
            "<div class=\"cf-turnstile\" data-sitekey=\"{sitekey}\" data-action=\"{room}\" \
             data-appearance=\"{appearance}\" data-callback=\"anteroomTurnstile\"></div>\
             <script src=\"{service}/api.js\" async defer></script>"
        )
    }
}
