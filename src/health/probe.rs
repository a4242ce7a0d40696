//! One probe of an observer: what to send, whether to try again or to follow a redirect, and what came of it.

use super::check::{Target, Url};
use super::judge::{Ended, Judgement, Raw, judge};
use super::observer::Post;
use super::{ProbeResult, Reason, Waterfall};

/// How many redirects a probe follows.
const REDIRECTS_MAX: u32 = 5;

/// A probe that is under way: one attempt or several.
#[derive(Debug, Clone)]
pub struct Probe<'a> {
    post: Post<'a>,
    target: Target,
    /// When the current try began, in milliseconds since the epoch.
    began: u64,
    retries_left: u32,
    redirects_left: u32,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Over TLS.
    pub secure: bool,
    /// What to send; empty: nothing, the connection is all that is looked at.
    pub request: String,
    /// The same as a URL; empty too.
    pub url: String,
    /// Its path with query; empty too.
    pub path: String,
    /// Whether it is the check's own server, and not one that a redirect leads to.
    pub own: bool,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u32,
}

impl<'a> Probe<'a> {
    /// A probe that begins `now`, in milliseconds since the epoch.
    pub fn new(post: Post<'a>, now: u64) -> Self {
        let mut probe = Self {
            post,
            target: post.check.target.clone(),
            began: now,
            retries_left: post.check.retries,
            redirects_left: 0,
        };
        probe.begin(now);
        probe
    }

    fn begin(&mut self, now: u64) {
        self.began = now;
        self.target = self.post.check.target.clone();
        self.redirects_left = REDIRECTS_MAX;
    }

    /// What to try now. Servers that redirects lead to share the time of one try.
    pub fn attempt(&self, now: u64) -> Attempt {
        let spent = now.saturating_sub(self.began).min(u64::from(u32::MAX)) as u32;
        let timeout_ms = self.post.check.timeout_ms().saturating_sub(spent).max(1);
        match &self.target {
            Target::Tcp { host, port } => Attempt {
                host: host.clone(),
                port: *port,
                secure: false,
                request: String::new(),
                url: String::new(),
                path: String::new(),
                own: true,
                timeout_ms,
            },
            Target::Http(url) => Attempt {
                host: url.host.clone(),
                port: url.port,
                secure: url.secure,
                request: self.post.check.request(url, &self.post.who()),
                url: url.to_string(),
                path: url.path.clone(),
                own: self.post.check.is_own(url),
                timeout_ms,
            },
        }
    }

    /// Takes in what an attempt found; `None`: there is another one to make. `lead` says to which URL a `Location` leads
    /// from another URL.
    pub fn take(
        &mut self,
        raw: &Raw,
        now: u64,
        lead: impl FnOnce(&str, &str) -> Option<String>,
    ) -> Option<ProbeResult> {
        // What takes too long is tried again, at once, as the platform's checks do. Nothing else is.
        if raw.ended == Ended::TimedOut && self.retries_left > 0 {
            self.retries_left -= 1;
            self.begin(now);
            return None;
        }
        let check = self.post.check;
        let (reason, actual_code) = match judge(check, &self.target, raw) {
            Judgement::Done { reason, actual_code } => (reason, actual_code),
            Judgement::Follow { code, .. } if self.redirects_left == 0 => {
                (Reason::Other("Too many redirects".to_owned()), Some(code))
            }
            Judgement::Follow { location, code } => {
                let url = match &self.target {
                    Target::Http(url) => lead(&url.to_string(), &location),
                    Target::Tcp { .. } => None,
                };
                if let Some(url) = url.as_deref().and_then(Url::read) {
                    self.redirects_left -= 1;
                    self.target = Target::Http(url);
                    return None;
                }
                (Reason::ResponseCodeMismatch, Some(code))
            }
        };
        Some(self.result(reason, actual_code, raw.waterfall))
    }

    /// What came of it.
    pub fn result(&self, reason: Reason, actual_code: Option<u16>, waterfall: Waterfall) -> ProbeResult {
        ProbeResult {
            check: self.post.check.name.clone(),
            region: self.post.region.name.to_owned(),
            observer: self.post.number,
            at: self.began,
            healthy: reason == Reason::NoFailures,
            reason,
            expected_codes: self.post.check.expected_codes(),
            actual_code,
            waterfall,
        }
    }
}
