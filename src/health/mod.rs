//! The origin's health: what its checks found, and what that means.
//!
//! A **check** is something about the origin that is looked at again and again. Two kinds of them are shown side by
//! side: the platform's own, whose notifications come to our webhook ([`Source::Webhook`]), and ours, which
//! **observers** run from several **regions** ([`Source::Check`]).
//!
//! Everything here is pure; `edge/objects/health.rs` stores what it says.

pub mod agree;
pub mod analytics;
pub mod check;
pub mod history;
pub mod judge;
pub mod observer;
pub mod page;
mod parse;
pub mod probe;
pub mod shown;
mod tables;
pub mod view;
pub mod webhook;

use serde::{Deserialize, Serialize};

/// Whether a probe or a check is healthy, and if not, why. [`Reason::text`] has the words in which the platform's own
/// health checks say it. It is stored by its place: new ones go to the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Reason {
    /// It is healthy.
    #[default]
    NoFailures,
    /// No TCP connection came about.
    TcpConnectionFailed,
    /// The TCP connection stood, TLS did not come about.
    TlsHandshakeFailed,
    /// No answer in time.
    Timeout,
    /// An answer with a status code that is not expected.
    ResponseCodeMismatch,
    /// An answer without the text that is expected.
    BodyMismatch,
    /// An answer that is not HTTP, or one that broke off.
    InvalidResponse,
    /// The host has no address.
    UnknownHost,
    /// What a notification said that is none of these; never longer than [`webhook::LONGEST_TEXT`] characters.
    Other(String),
}

/// Every reason that has words of its own.
const REASONS: [(Reason, &str); 8] = [
    (Reason::NoFailures, "No failures"),
    (Reason::TcpConnectionFailed, "TCP connection failed"),
    (Reason::TlsHandshakeFailed, "TLS handshake failed"),
    (Reason::Timeout, "HTTP timeout occurred"),
    (Reason::ResponseCodeMismatch, "Response code mismatch error"),
    (Reason::BodyMismatch, "Response body mismatch error"),
    (Reason::InvalidResponse, "HTTP Invalid Response"),
    (Reason::UnknownHost, "DNS Unknown Host"),
];

impl Reason {
    /// As it is shown.
    pub fn text(&self) -> &str {
        if let Self::Other(text) = self {
            return text;
        }
        REASONS.iter().find(|(reason, _)| reason == self).map_or("", |(_, text)| text)
    }

    /// What a text says, whatever its case.
    pub fn of(text: &str) -> Self {
        let text = text.trim();
        let known = REASONS.iter().find(|(_, known)| known.eq_ignore_ascii_case(text));
        known.map_or_else(|| Self::Other(text.to_owned()), |(reason, _)| reason.clone())
    }
}

/// When each stage of a probe was over, in milliseconds **from the start of the probe**, so that each is at least as
/// large as the one before it; the time of a stage alone is the difference. `None`: the stage was not reached, or
/// cannot be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Waterfall {
    /// The TCP connection stood.
    pub tcp_ms: Option<u32>,
    /// The TLS handshake was over; `None` too for a check without TLS.
    pub tls_ms: Option<u32>,
    /// The answer's first byte came.
    pub first_byte_ms: Option<u32>,
    /// The answer was read, as far as the check reads it.
    pub total_ms: Option<u32>,
}

impl Waterfall {
    /// The four moments in their order.
    pub fn moments(&self) -> [Option<u32>; 4] {
        [self.tcp_ms, self.tls_ms, self.first_byte_ms, self.total_ms]
    }
}

/// What one observer saw once. Check, region, observer and `at` together are its identity: what is told twice counts
/// once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// The check's name, as its var has it.
    pub check: String,
    /// Where the observer is.
    pub region: String,
    /// Which of the region's observers.
    pub observer: u8,
    /// When the probe began, in milliseconds since the epoch.
    pub at: u64,
    /// Whether all was as expected.
    pub healthy: bool,
    /// If not, why.
    pub reason: Reason,
    /// The status codes that the check expects, as its owner wrote them; empty where it expects none.
    pub expected_codes: String,
    /// The status code that came, if one did.
    pub actual_code: Option<u16>,
    /// How long it took.
    pub waterfall: Waterfall,
}

/// A check is healthy, or is not: from a notification, or as observers agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// The check's identity, see [`Source::check_id`].
    pub check: String,
    /// Whether it is healthy from then on.
    pub healthy: bool,
    /// If not, why.
    pub reason: Reason,
    /// When it came to be so, in milliseconds since the epoch.
    pub at: u64,
    /// The status codes that the check expects; empty where none are told.
    pub expected_codes: String,
    /// The status code that came, if one did.
    pub actual_code: Option<u16>,
}

/// Who looks at the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The platform's health checks, which tell us by webhook.
    #[default]
    Webhook,
    /// Checks of our own.
    Check,
}

impl Source {
    /// The identity of a check of this source: `webhook/…` with the platform's id of the check, or `check/…` with its name.
    pub fn check_id(self, id: &str) -> String {
        match self {
            Self::Webhook => format!("webhook/{id}"),
            Self::Check => format!("check/{id}"),
        }
    }

    /// Who looks, of a check's identity.
    pub fn of(check_id: &str) -> Self {
        if check_id.starts_with("check/") { Self::Check } else { Self::Webhook }
    }
}

/// Routes and messages of the coordinator, the [`messages::COORDINATOR`] instance of `HEALTH`.
pub mod messages {
    use serde::{Deserialize, Serialize};

    use super::analytics::Range;
    use super::{ProbeResult, StateChange};

    /// The version of all messages.
    pub const VERSION: u8 = 1;
    /// The name of the object that keeps everything. Names of observers begin with `observer/`.
    pub const COORDINATOR: &str = "health";
    /// A notification. [`Notify`] → [`Stored`].
    pub const NOTIFY: &str = "/notify";
    /// What there is to show. [`Ask`] → [`Told`].
    pub const VIEW: &str = "/view";
    /// An observer's results. [`Record`] → [`Stored`].
    pub const RECORD: &str = "/record";

    /// What an observer saw since its last report.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Record {
        /// Format version.
        pub v: u8,
        /// Its results, oldest first. Those that the coordinator has already change nothing.
        pub results: Vec<ProbeResult>,
    }

    /// A validated notification.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Notify {
        /// Format version.
        pub v: u8,
        /// The check's name.
        pub name: String,
        /// What is the matter.
        pub change: StateChange,
    }

    /// What was sent is in storage.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Stored {
        /// Format version.
        pub v: u8,
    }

    /// What somebody wants to see.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Ask {
        /// Format version.
        pub v: u8,
        /// How far back.
        pub range: Range,
        /// Of one check only; empty: of all.
        pub check: String,
        /// The address of the page's script; empty: as JSON instead of the page.
        pub script: String,
    }

    /// What there is to see.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Told {
        /// Format version.
        pub v: u8,
        /// The page, or the JSON; `None`: no such check is known.
        pub body: Option<String>,
        /// The identities of all checks that there are; `None`: older code does not say it.
        pub checks: Option<Vec<String>>,
    }
}
