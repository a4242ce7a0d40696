//! Sealing and opening: base64url without padding of version, nonce, encrypted ticket and tag.
//!
//! AES-256-GCM; the version, the room's name and what the ticket is bound to are authenticated with the ticket, so that
//! a ticket of one room is nothing in another. Every sealed ticket is as long as the next: its length says nothing about
//! its visitor.

use anteroom_cipher::{NONCE_LENGTH, TAG_LENGTH};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{KeyRing, Ticket};

/// The first byte of what is sealed.
const VERSION: u8 = 2;
/// Tickets of this version are shorter and still open: a deploy must not cost anybody the place. No other version does.
const OLD_VERSION: u8 = 1;
const SEALED_LENGTH: usize = 1 + NONCE_LENGTH + Ticket::LENGTH + TAG_LENGTH;

/// The longest cookie value that is looked at, in bytes. Sealed tickets have 87, older ones 78.
pub const MAX_VALUE_LENGTH: usize = 200;

/// Room names and bindings up to this length together are authenticated without allocating.
const SHORT_LENGTH: usize = 127;
/// Parts a room's name from a binding: no text has this byte.
const BOUND_TO: u8 = 0xff;

/// Where a ticket is good: sealed for one, it does not open for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope<'a> {
    /// The room's name.
    pub room: &'a str,
    /// What the ticket is bound to, as text; empty: whoever has it may use it.
    pub binding: &'a str,
}

/// A room, and no binding.
impl<'a> From<&'a str> for Scope<'a> {
    fn from(room: &'a str) -> Self {
        Self { room, binding: "" }
    }
}

impl KeyRing {
    /// Seals a ticket for a room (its name, or a [`Scope`]) with the first key: 87 bytes of the base64url alphabet, ready
    /// to be a cookie's value. The nonce must be drawn anew for every call: a repeated one gives the key's secrets away.
    pub fn seal<'a>(
        &self,
        scope: impl Into<Scope<'a>>,
        ticket: &Ticket,
        nonce: [u8; NONCE_LENGTH],
    ) -> String {
        let mut body = ticket.to_bytes();
        let tag = with_associated_data(VERSION, scope.into(), |associated| {
            self.first.encrypt(&nonce, associated, &mut body)
        });
        // The cipher's only error is a text that is too long. An empty value opens nothing and shows nothing.
        let Some(tag) = tag else { return String::new() };
        let parts = [VERSION].into_iter().chain(nonce).chain(body).chain(tag);
        let mut sealed = [0; SEALED_LENGTH];
        for (byte, part) in sealed.iter_mut().zip(parts) {
            *byte = part;
        }
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Opens a cookie's value for a room (its name, or a [`Scope`]) with any of the keys. `None` for everything that this
    /// ring did not seal for it, whatever it is; the work is bounded by [`MAX_VALUE_LENGTH`] and the number of keys.
    /// Whether the ticket still holds is for [`standing`](super::standing) to say.
    pub fn open<'a>(&self, scope: impl Into<Scope<'a>>, value: &str) -> Option<Ticket> {
        if value.len() > MAX_VALUE_LENGTH {
            return None;
        }
        let mut sealed = [0; MAX_VALUE_LENGTH / 4 * 3];
        let length = URL_SAFE_NO_PAD.decode_slice(value, &mut sealed).ok()?;
        let (&[version], sealed) = sealed.get(..length)?.split_first_chunk::<1>()?;
        match version {
            VERSION => self.decrypt::<{ Ticket::LENGTH }>(version, scope.into(), sealed, Ticket::from_bytes),
            OLD_VERSION => {
                self.decrypt::<{ Ticket::OLD_LENGTH }>(version, scope.into(), sealed, Ticket::from_old_bytes)
            }
            _ => None,
        }
    }

    /// Opens nonce, encrypted body of a length, and tag.
    fn decrypt<const LENGTH: usize>(
        &self,
        version: u8,
        scope: Scope,
        sealed: &[u8],
        read: fn(&[u8]) -> Option<Ticket>,
    ) -> Option<Ticket> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_LENGTH>()?;
        let (body, tag) = rest.split_first_chunk::<LENGTH>()?;
        let tag: &[u8; TAG_LENGTH] = tag.try_into().ok()?;
        with_associated_data(version, scope, |associated| {
            self.ciphers().find_map(|cipher| {
                let mut body = *body;
                cipher.decrypt(nonce, associated, &mut body, tag).then_some(())?;
                read(&body)
            })
        })
    }
}

/// Calls with the version, the room's name and the binding, which are authenticated but not encrypted.
fn with_associated_data<T>(version: u8, scope: Scope, call: impl FnOnce(&[u8]) -> T) -> T {
    let Scope { room, binding } = scope;
    let length = 1 + room.len() + if binding.is_empty() { 0 } else { 1 + binding.len() };
    let parts = [version].into_iter().chain(room.bytes()).chain([BOUND_TO]).chain(binding.bytes());
    let mut short = [0; 1 + SHORT_LENGTH];
    match short.get_mut(..length) {
        Some(associated) => {
            for (byte, part) in associated.iter_mut().zip(parts) {
                *byte = part;
            }
            call(associated)
        }
        None => call(&parts.take(length).collect::<Vec<_>>()),
    }
}
