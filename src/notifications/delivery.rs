//! The message of a notification to a webhook: its signature, and when it is sent again.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a signing secret begins with.
const SECRET_PREFIX: &str = "whsec_";
/// How long a secret may be, in bytes.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// The most secrets that sign one message, for a change of secrets without a gap.
const MAX_SECRETS: usize = 3;
/// The wait after the first attempt that failed, and the longest, in milliseconds.
const FIRST_WAIT_MS: u64 = 5_000;
const LONGEST_WAIT_MS: u64 = 3_600_000;
/// What cannot be delivered for this time is given up, in milliseconds.
pub const GIVE_UP_MS: u64 = 86_400_000;
/// How long nothing is sent to a receiver that wants nothing any more (410), in milliseconds.
pub const GONE_MS: u64 = 86_400_000;

/// The secrets that a webhook's messages are signed with.
#[derive(Clone)]
pub struct SigningSecrets(Vec<Hmac<Sha256>>);

impl SigningSecrets {
    /// Reads `whsec_` and 24 to 64 bytes in base64, or several of these with spaces or commas between. `None` for anything
    /// else.
    pub fn parse(text: &str) -> Option<Self> {
        let words = text.split([' ', ',', '\t', '\r', '\n']).filter(|word| !word.is_empty());
        let secrets: Option<Vec<_>> = words
            .map(|word| {
                let bytes = STANDARD.decode(word.strip_prefix(SECRET_PREFIX)?).ok()?;
                SECRET_BYTES.contains(&bytes.len()).then(|| Hmac::new_from_slice(&bytes).ok())?
            })
            .collect();
        secrets.filter(|secrets| (1..=MAX_SECRETS).contains(&secrets.len())).map(Self)
    }

    /// The header `webhook-signature` of a message sent at a time in seconds since the epoch.
    pub fn sign(&self, id: &str, seconds: u64, body: &str) -> String {
        let mut header = String::new();
        for secret in &self.0 {
            let signed = secret.clone().chain_update(id).chain_update(".").chain_update(seconds.to_string());
            let signed = signed.chain_update(".").chain_update(body).finalize().into_bytes();
            header.push_str(if header.is_empty() { "v1," } else { " v1," });
            STANDARD.encode_string(signed, &mut header);
        }
        header
    }
}

/// What comes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is delivered.
    Delivered,
    /// It is sent again, later.
    Again,
    /// The receiver wants nothing any more.
    Gone,
}

/// What a status code says.
pub fn verdict(status: u16) -> Verdict {
    match status {
        200..=299 => Verdict::Delivered,
        410 => Verdict::Gone,
        _ => Verdict::Again,
    }
}

/// The retry interval after `tries` attempts in a row that failed, in milliseconds. `retry_after`: how long the receiver
/// wants to be left alone, in seconds. `random` is from 0 (inclusive) to 1: many rooms may have one receiver, and they
/// should not all come back at once.
pub fn wait_ms(tries: u32, retry_after: u64, random: f64) -> u64 {
    let doubled = FIRST_WAIT_MS << tries.saturating_sub(1).min(16);
    let wait = doubled.max(retry_after.saturating_mul(1_000)).min(LONGEST_WAIT_MS);
    (wait as f64 * (0.9 + 0.1 * random)) as u64
}
