//! Web Push: through which services a visitor may be told, and when a turn is near that nobody waits for at a page.
//!
//! A subscription is a visitor's input: an address that the deployment will call. So it must be of one of the browsers' own
//! services, and nothing but a plain `https` address of it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use crate::admission::{StateKey, wait_seconds};
use crate::room::{QueueingMethod, Room};

/// The services of the browsers: Chromium and its kin, Firefox, Safari, Edge. `*.` stands for anything before.
const SERVICES: [&str; 4] =
    ["fcm.googleapis.com", "*.push.services.mozilla.com", "*.push.apple.com", "*.notify.windows.com"];
/// The longest address of a subscription, in bytes.
const LONGEST_ENDPOINT: usize = 1_024;
/// The longest body with a subscription, in bytes.
pub const LONGEST_BODY: usize = 4_096;
/// Somebody is told when the wait is no longer than this, in seconds: the way back to the page takes a while.
pub const NEAR_SECONDS: u32 = 60;

/// The owner's keys, by which push services know who sends (RFC 8292).
#[derive(Clone, PartialEq, Eq)]
pub struct VapidKeys {
    /// The public key, an uncompressed point in base64url: browsers subscribe with it.
    pub public: String,
    /// The private key, a number in base64url. Secret.
    pub private: String,
    /// How a push service reaches the owner: `mailto:` or `https:`.
    pub subject: String,
}

/// The parts of a private key as JSON (RFC 7517) that matter.
#[derive(Deserialize)]
struct Jwk {
    crv: String,
    x: String,
    y: String,
    d: String,
}

impl VapidKeys {
    /// Reads a private key for P-256 in the form of a JSON Web Key; `None` for anything else, and for a subject that is
    /// none ([`is_subject`]).
    pub fn parse(jwk: &str, subject: &str) -> Option<Self> {
        let Jwk { crv, x, y, d } = serde_json::from_str(jwk).ok().filter(|_| is_subject(subject))?;
        let number = |text: &str| URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == 32);
        let (left, right) = (number(&x)?, number(&y)?);
        number(&d).filter(|_| crv == "P-256")?;
        let public = URL_SAFE_NO_PAD.encode([&[4], left.as_slice(), right.as_slice()].concat());
        Some(Self { public, private: d, subject: subject.to_owned() })
    }
}

/// Whether a text says how to reach the owner: `mailto:` or `https:` with something behind.
pub fn is_subject(text: &str) -> bool {
    let rest = text.strip_prefix("mailto:").filter(|rest| rest.contains('@'));
    rest.or_else(|| text.strip_prefix("https://"))
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic()))
}

/// The push services that subscriptions may be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Services(Vec<String>);

impl Services {
    /// The browsers' own ones and those that the owner adds: host names with spaces between, each of which may begin
    /// with `*.`. `None` when one of them is no host name.
    pub fn parse(more: &str) -> Option<Self> {
        let more: Vec<&str> = more.split_ascii_whitespace().collect();
        let are_hosts = more.iter().all(|name| is_host(name.strip_prefix("*.").unwrap_or(name)));
        are_hosts.then(|| Self(SERVICES.iter().chain(&more).map(|name| (*name).to_owned()).collect()))
    }

    fn include(&self, host: &str) -> bool {
        self.0.iter().any(|name| match name.strip_prefix('*') {
            Some(end) => host.strip_suffix(end).is_some_and(|before| !before.is_empty()),
            None => host == name,
        })
    }
}

/// A host name in lower case, with a dot in it: no address, no port, nothing that can be read in two ways.
fn is_host(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let labels = || name.split('.');
    labels().count() > 1
        && labels().all(|label| !label.is_empty() && label.bytes().all(plain))
        && labels().next_back().is_some_and(|label| label.bytes().any(|byte| byte.is_ascii_lowercase()))
}

/// Through what a visitor's browser can be told (the Push API's `PushSubscription`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscription {
    /// The address at the browser's push service. Whoever knows it cannot write without the owner's key.
    pub endpoint: String,
    /// The browser's public key, an uncompressed point in base64url.
    pub p256dh: String,
    /// The browser's secret, 16 bytes in base64url.
    pub auth: String,
}

/// A subscription as browsers write it.
#[derive(Deserialize)]
struct Written {
    endpoint: String,
    keys: Keys,
}

#[derive(Deserialize)]
struct Keys {
    p256dh: String,
    auth: String,
}

impl Subscription {
    /// Reads what a browser makes of a subscription; `None` where it is none, or of no service that it may be of.
    pub fn parse(body: &[u8], services: &Services) -> Option<Self> {
        let Written { endpoint, keys: Keys { p256dh, auth } } =
            serde_json::from_slice(body.get(..body.len().min(LONGEST_BODY))?).ok()?;
        let (host, path) = endpoint.strip_prefix("https://")?.split_once('/')?;
        // Backslashes are slashes to some readers.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#';
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let is_ours = is_host(host) && services.include(host) && path.bytes().all(is_plain);
        let is_short = endpoint.len() <= LONGEST_ENDPOINT;
        let is_point = bytes(&p256dh).is_some_and(|point| point.len() == 65 && point.starts_with(&[4]));
        let is_secret = bytes(&auth).is_some_and(|secret| secret.len() == 16);
        (is_ours && is_short && is_point && is_secret).then_some(Self { endpoint, p256dh, auth })
    }
}

/// Whether the turn of a visitor of a bucket is near, at a time by Global's clock: those who are there and go before, and
/// `told` more who have been told and are on their way, will be in within [`NEAR_SECONDS`]. In random order nobody goes
/// before anybody: then half of those who are there will be.
///
/// Nothing is kept free for somebody whose page is closed, so this is no promise of a slot.
pub fn is_near(room: &Room, key: &StateKey, bucket: u32, told: usize, time: u64) -> bool {
    if room.suspended {
        return true;
    }
    let before = match room.queueing_method {
        QueueingMethod::Reject => return false,
        QueueingMethod::Passthrough => return !room.is_closed() && !key.held,
        QueueingMethod::Random => key.present_ahead(None) / 2,
        QueueingMethod::Fifo => key.present_ahead(Some(bucket)),
    };
    wait_seconds(room, key, before + told as i64, time)
        .is_some_and(|seconds| seconds <= f64::from(NEAR_SECONDS))
}
