//! The mark of a rehearsal: visitors who are sent to try a room, so that their part of its history can be told apart.
//!
//! A mark is a request header that only who holds an operator's token can write:
//! `v1.<name>.<until>.<signature>`. `until` is in seconds since the epoch. The signature is the HMAC-SHA-256, keyed with
//! the SHA-256 of the token, of `anteroom-rehearsal:v1.<name>.<until>`, in base64url without padding. Whoever is marked is a
//! visitor like all others: limits and order hold for all together.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The request header of a mark.
pub const HEADER: &str = "anteroom-rehearsal";
/// The longest time for which a mark is good, in seconds: a day.
pub const LONGEST_SECONDS: u64 = 24 * 3_600;
/// The longest name of a rehearsal, in letters, digits, `_` and `-`.
pub const LONGEST_NAME: usize = 32;

/// Set before what is signed, so that nothing else that is signed with a token is a mark.
const CONTEXT: &str = "anteroom-rehearsal:";

/// What a good mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark<'a> {
    /// The rehearsal's name.
    pub name: &'a str,
    /// Until when it is good, in milliseconds since the epoch.
    pub until: u64,
}

/// Why a mark is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// It is not written as marks are.
    Unreadable,
    /// It was signed with no token that may steer here.
    Unknown,
    /// Its time is over.
    Over,
    /// It would be good for longer than a mark may be.
    TooLong,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unreadable => "this is no mark of a rehearsal",
            Self::Unknown => "the mark is signed with no token of this deployment whose role is steer",
            Self::Over => "the mark's time is over",
            Self::TooLong => "the mark would be good for more than 24 hours",
        })
    }
}

impl<'a> Mark<'a> {
    /// Reads a mark. `keys` are those of the tokens that may mark, each its SHA-256; `now` is the time in milliseconds since
    /// the epoch.
    ///
    /// # Errors
    /// Why it is none: then its visitor is one like all others.
    pub fn read<'k>(
        value: &'a str,
        mut keys: impl Iterator<Item = &'k [u8; 32]>,
        now: u64,
    ) -> Result<Self, Mistake> {
        let (signed, signature) = value.rsplit_once('.').ok_or(Mistake::Unreadable)?;
        let (name, until) =
            signed.strip_prefix("v1.").and_then(|rest| rest.split_once('.')).ok_or(Mistake::Unreadable)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_plain) {
            return Err(Mistake::Unreadable);
        }
        let is_number = until.len() <= 12 && until.bytes().all(|byte| byte.is_ascii_digit());
        let until = is_number.then_some(until).and_then(|until| until.parse::<u64>().ok());
        let until = until.ok_or(Mistake::Unreadable)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Mistake::Unreadable)?;
        // In constant time, key by key.
        if !keys.any(|key| signer(key, signed).is_some_and(|mac| mac.verify_slice(&signature).is_ok())) {
            return Err(Mistake::Unknown);
        }
        let until = until * 1_000;
        if until <= now {
            return Err(Mistake::Over);
        }
        if until > now + LONGEST_SECONDS * 1_000 {
            return Err(Mistake::TooLong);
        }
        Ok(Self { name, until })
    }
}

fn signer(key: &[u8; 32], signed: &str) -> Option<Hmac<Sha256>> {
    let mac: Hmac<Sha256> = Hmac::new_from_slice(key).ok()?;
    Some(mac.chain_update(CONTEXT).chain_update(signed))
}
