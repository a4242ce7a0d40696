//! The keys that tickets are sealed with, and how they are replaced without losing anybody's place.

use std::fmt;

use anteroom_cipher::{Cipher, KEY_LENGTH};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;

/// How many keys a ring may hold. Every key is one more try for a cookie that none of them opens.
pub const MAX_KEYS: usize = 8;

/// The keys of `COOKIE_KEYS`, ready to use. The first one seals, all of them open.
///
/// To replace a key without losing anybody's place: put the new key first, keep the old one behind it, and remove the
/// old one after the longest session duration, and not before the longest time for which a place is kept. By then every
/// ticket that still holds has been sealed anew, because check-ins and requests do so.
///
/// Nonces are random, so a key should be replaced before it has sealed 2^32 tickets (NIST SP 800-38D, section 8.3).
#[derive(Clone)]
pub struct KeyRing {
    pub(crate) first: Cipher,
    pub(super) retired: Vec<Cipher>,
}

/// What is wrong with `COOKIE_KEYS`. Says which key (the first is 1) and what to do, never what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyError {
    /// There is no key at all.
    Missing,
    /// There are more than [`MAX_KEYS`].
    TooMany {
        /// How many there are.
        keys: usize,
    },
    /// Nothing but spaces between two commas, before the first or after the last.
    Empty {
        /// Which key.
        key: usize,
    },
    /// Neither base64 nor base64url.
    NotBase64 {
        /// Which key.
        key: usize,
    },
    /// Base64 of something else than 256 bits.
    WrongLength {
        /// Which key.
        key: usize,
        /// How many bits it has.
        bits: usize,
    },
}

impl KeyRing {
    /// Reads the secret: 1 to [`MAX_KEYS`] comma-separated keys of 256 bits in base64 or base64url, padded or not,
    /// with spaces and line ends around them ignored.
    ///
    /// # Errors
    /// The first key that is not one, as a [`KeyError`].
    pub fn parse(secret: &str) -> Result<Self, KeyError> {
        if secret.trim().is_empty() {
            return Err(KeyError::Missing);
        }
        let keys = secret.split(',').count();
        if keys > MAX_KEYS {
            return Err(KeyError::TooMany { keys });
        }
        let mut ciphers = secret.split(',').zip(1..).map(|(text, key)| cipher(text.trim(), key));
        let first = ciphers.next().ok_or(KeyError::Missing)??;
        Ok(Self { first, retired: ciphers.collect::<Result<_, _>>()? })
    }

    /// The ciphers in the order in which a cookie is tried.
    pub(crate) fn ciphers(&self) -> impl Iterator<Item = &Cipher> {
        std::iter::once(&self.first).chain(&self.retired)
    }
}

/// The cipher of one key, with its key schedule computed.
fn cipher(text: &str, key: usize) -> Result<Cipher, KeyError> {
    if text.is_empty() {
        return Err(KeyError::Empty { key });
    }
    let text = text.replace('-', "+").replace('_', "/");
    let bytes = STANDARD_PAD_INDIFFERENT.decode(text).map_err(|_| KeyError::NotBase64 { key })?;
    let bytes: &[u8; KEY_LENGTH] =
        bytes.as_slice().try_into().map_err(|_| KeyError::WrongLength { key, bits: bytes.len() * 8 })?;
    Ok(Cipher::new(bytes))
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyRing({} keys, not shown)", 1 + self.retired.len())
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let make_one = "make one with `openssl rand -base64 32`";
        match self {
            Self::Missing => write!(formatter, "COOKIE_KEYS has no key: {make_one}"),
            Self::TooMany { keys } => {
                write!(
                    formatter,
                    "COOKIE_KEYS has {keys} keys, at most {MAX_KEYS} are allowed: remove the last ones"
                )
            }
            Self::Empty { key } => {
                write!(formatter, "COOKIE_KEYS: key {key} is empty: remove the comma, or {make_one}")
            }
            Self::NotBase64 { key } => {
                write!(
                    formatter,
                    "COOKIE_KEYS: key {key} is not base64: copy it again as a whole, or {make_one}"
                )
            }
            Self::WrongLength { key, bits } => {
                write!(formatter, "COOKIE_KEYS: key {key} has {bits} bits instead of 256: {make_one}")
            }
        }
    }
}

impl std::error::Error for KeyError {}
