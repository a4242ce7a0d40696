//! What a signed-in browser holds instead of a token: a sealed cookie.
//!
//! It is sealed with the keys of the visitors' tickets and for another purpose: its version is none of a ticket's, and its
//! associated data begin with it. So no ticket is ever a session, and no session a ticket.

use anteroom_cipher::{NONCE_LENGTH, TAG_LENGTH};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Operator, Operators};
use crate::ticket::{KeyRing, find_cookie};

/// The cookie's name.
pub const SESSION_COOKIE: &str = "__anteroom_operator";
/// How long a session lasts from the sign-in, in milliseconds.
pub const SESSION_MS: u64 = 12 * 3_600_000;

/// The first byte of what is sealed; tickets have 1 and 2, links 0x82.
const VERSION: u8 = 0x81;
/// What is authenticated with it. A ticket's begins with its version.
const PURPOSE: &[u8] = b"\x81 operator session";
/// When it ends, and the operator's mark.
const BODY_LENGTH: usize = 8 + 32;
const SEALED_LENGTH: usize = 1 + NONCE_LENGTH + BODY_LENGTH + TAG_LENGTH;

/// A browser that has signed in.
pub struct Session;

impl Session {
    /// The cookie's value for an operator who signs in now. The nonce must be drawn anew for every call.
    pub fn seal(keys: &KeyRing, operator: &Operator, now_ms: u64, nonce: [u8; NONCE_LENGTH]) -> String {
        let end = (now_ms + SESSION_MS).to_be_bytes();
        let mut body = [0; BODY_LENGTH];
        for (byte, part) in body.iter_mut().zip(end.into_iter().chain(operator.mark())) {
            *byte = part;
        }
        // The cipher's only error is a text that is too long. An empty value opens nothing.
        let Some(tag) = keys.first.encrypt(&nonce, PURPOSE, &mut body) else { return String::new() };
        let sealed: Vec<u8> = [VERSION].into_iter().chain(nonce).chain(body).chain(tag).collect();
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Who has signed in, by a request's `Cookie` header: whose token is still one of the deployment's, with the same
    /// name and role, and whose 12 hours are not over. And when they are, in milliseconds since the epoch.
    pub fn of<'a>(
        keys: &KeyRing,
        operators: &'a Operators,
        cookies: &str,
        now_ms: u64,
    ) -> Option<(&'a Operator, u64)> {
        find_cookie(cookies, SESSION_COOKIE).find_map(|value| {
            let (end, mark) = open(keys, value)?;
            let operator = operators.by_mark(&mark, now_ms)?;
            (now_ms < end).then_some((operator, end))
        })
    }
}

/// When a session ends, and its operator's mark; `None` for everything that is no session.
fn open(keys: &KeyRing, value: &str) -> Option<(u64, [u8; 32])> {
    if value.len() > SEALED_LENGTH.div_ceil(3) * 4 {
        return None;
    }
    let sealed = URL_SAFE_NO_PAD.decode(value).ok()?;
    let (&[VERSION], sealed) = sealed.split_first_chunk::<1>()? else { return None };
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LENGTH>()?;
    let (body, tag) = sealed.split_first_chunk::<BODY_LENGTH>()?;
    let tag: &[u8; TAG_LENGTH] = tag.try_into().ok()?;
    let mut body = *body;
    keys.ciphers().find(|cipher| cipher.decrypt(nonce, PURPOSE, &mut body, tag))?;
    let (end, mark) = body.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*end), mark.try_into().ok()?))
}

/// The value of the `Set-Cookie` header that brings a session; an empty one takes it away. `https`: the request came
/// over HTTPS.
pub fn session_cookie(value: &str, https: bool) -> String {
    let seconds = if value.is_empty() { 0 } else { SESSION_MS / 1_000 };
    let secure = if https { "; Secure" } else { "" };
    format!(
        "{SESSION_COOKIE}={value}; Path=/__anteroom/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    )
}
