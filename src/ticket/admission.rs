//! The signed word to the origin that a request has been admitted.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;

use super::draw_id;

/// The shortest key, in bytes: as long as the hash (RFC 7518, section 3.2).
pub const MIN_ADMISSION_KEY: usize = 32;
/// How long it is good, in seconds: the way to the origin, and clocks that differ.
const GOOD_FOR_SECONDS: u64 = 120;
/// `{"alg":"HS256","typ":"JWT"}`, the same for all.
const PROTECTED: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";

/// The key of the request header `Anteroom-Admitted`, which `entry.js` sets: a JSON Web Signature (RFC 7515) in its compact form, HMAC-SHA-256, by which
/// an origin refuses requests that came around the room.
#[derive(Clone)]
pub struct AdmissionKey(Hmac<Sha256>);

/// What is signed (RFC 7519, section 4.1).
#[derive(Serialize)]
struct Claims<'a> {
    iss: &'static str,
    /// The room.
    aud: &'a str,
    /// The ticket's id, as visitors are told it: the same for all requests of a session. Zeros: no ticket.
    sub: String,
    iat: u64,
    exp: u64,
}

impl AdmissionKey {
    /// The key of a secret; `None` when it is shorter than [`MIN_ADMISSION_KEY`].
    pub fn new(secret: &str) -> Option<Self> {
        let long_enough = secret.len() >= MIN_ADMISSION_KEY;
        long_enough.then(|| Hmac::new_from_slice(secret.as_bytes()).ok().map(Self))?
    }

    /// The header's value for a request of an active user of a room. `now_ms` is the time in milliseconds since the
    /// epoch.
    pub fn sign(&self, room: &str, id: u64, now_ms: u64) -> String {
        let iat = now_ms / 1_000;
        let claims =
            Claims { iss: "anteroom", aud: room, sub: draw_id(id), iat, exp: iat + GOOD_FOR_SECONDS };
        // Texts and numbers always serialise; an empty text verifies nowhere.
        let claims = serde_json::to_string(&claims).unwrap_or_default();
        let mut signed = format!("{PROTECTED}.{}", URL_SAFE_NO_PAD.encode(claims));
        let signature = self.0.clone().chain_update(signed.as_bytes()).finalize().into_bytes();
        signed.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut signed);
        signed
    }
}
