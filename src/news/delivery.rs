//! The message of news to a webhook: its body, its signature, and when it is sent again.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::News;
use crate::config::{WebhookFormat, rfc3339};

/// What a signing secret begins with.
const SECRET_PREFIX: &str = "whsec_";
/// How long a secret may be, in bytes.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// So many secrets sign one message, for a change of secrets without a gap.
const MAX_SECRETS: usize = 3;
/// The wait after the first attempt that failed, and the longest, in milliseconds.
const FIRST_WAIT_MS: u64 = 5_000;
const LONGEST_WAIT_MS: u64 = 3_600_000;
/// What cannot be delivered for so long is given up, in milliseconds.
pub const GIVE_UP_MS: u64 = 86_400_000;
/// To a receiver that wants nothing any more (410) nothing is sent for so long, in milliseconds.
pub const GONE_MS: u64 = 86_400_000;
/// A chat tool refuses longer messages (Discord: 2,000 characters).
const LONGEST_TEXT: usize = 1_800;

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

/// The body of a message. `dropped`: so many news for this receiver have been given up since the last that it got.
pub fn body(format: WebhookFormat, news: &News, dropped: u64) -> String {
    let mut text = news.text.clone();
    if dropped > 0 {
        let _ = write!(text, " ({dropped} older news could not be delivered and were given up.)");
    }
    if format == WebhookFormat::Standard {
        let mut data = news.data.clone();
        data.insert("dropped".to_owned(), dropped.into());
        let message = json!({ "type": news.kind, "timestamp": rfc3339(news.at), "text": text, "data": data });
        return message.to_string();
    }
    if let Some((end, _)) = text.char_indices().nth(LONGEST_TEXT) {
        text.truncate(end);
        text.push('…');
    }
    if let Some(url) = news.data.get("url").and_then(Value::as_str) {
        text.push('\n');
        text.push_str(url);
    }
    let message = match format {
        // `<!channel>` would call everybody.
        WebhookFormat::Slack => {
            json!({ "text": text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;") })
        }
        // `<users/all>` would do so too, and there is no way to write it as text.
        WebhookFormat::GoogleChat => json!({ "text": text.replace('<', "‹") }),
        WebhookFormat::Discord => json!({ "content": text, "allowed_mentions": { "parse": [] } }),
        WebhookFormat::Standard | WebhookFormat::Teams => json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": null,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.2",
                    "body": [{ "type": "TextBlock", "text": text, "wrap": true }],
                },
            }],
        }),
    };
    message.to_string()
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

/// How long to wait after so many attempts in a row that failed, in milliseconds. `retry_after`: how long the receiver
/// wants to be left alone, in seconds. `random` is from 0 (inclusive) to 1: many rooms may have one receiver, and they
/// should not all come back at once.
pub fn wait_ms(tries: u32, retry_after: u64, random: f64) -> u64 {
    let doubled = FIRST_WAIT_MS << tries.saturating_sub(1).min(16);
    let wait = doubled.max(retry_after.saturating_mul(1_000)).min(LONGEST_WAIT_MS);
    (wait as f64 * (0.9 + 0.1 * random)) as u64
}
