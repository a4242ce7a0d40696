//! Sealing and opening: base64url without padding of version, nonce, encrypted ticket and tag.
//!
//! AES-256-GCM; the version, the room's name and what the ticket is bound to are authenticated with the ticket, so that
//! a ticket of one room is nothing in another. Every sealed ticket is as long as the next: its length says nothing about
//! its visitor.

use anteroom_cipher::{NONCE_LENGTH, TAG_LENGTH};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{KeyRing, Link, Ticket};

/// The first byte of what is sealed.
const VERSION: u8 = 2;
/// Tickets of this version are shorter and still open: a deploy must not cost anybody the place. No other version does.
const OLD_VERSION: u8 = 1;
/// A link is sealed for another purpose: no ticket is ever a link, and no link a ticket.
const LINK: u8 = 0x82;
/// A ticket, and until when the link is good.
const LINK_LENGTH: usize = Ticket::LENGTH + 8;

/// The longest cookie value or link that is looked at, in bytes. Sealed tickets have 87, older ones 78, links 98.
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
        self.encrypt(VERSION, scope.into(), ticket.to_bytes(), nonce)
    }

    /// Seals a link for the scope of its ticket, as [`KeyRing::seal`] does a ticket: 98 bytes, which need no escaping in an
    /// address.
    pub fn seal_link<'a>(
        &self,
        scope: impl Into<Scope<'a>>,
        link: &Link,
        nonce: [u8; NONCE_LENGTH],
    ) -> String {
        let mut body = [0; LINK_LENGTH];
        let parts = link.ticket.to_bytes().into_iter().chain(link.until.to_be_bytes());
        for (byte, part) in body.iter_mut().zip(parts) {
            *byte = part;
        }
        self.encrypt(LINK, scope.into(), body, nonce)
    }

    /// Opens what [`KeyRing::seal_link`] made with any of these keys; `None`: everything else.
    pub fn open_link<'a>(&self, scope: impl Into<Scope<'a>>, value: &str) -> Option<Link> {
        if value.len() > MAX_VALUE_LENGTH {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(value).ok()?;
        let sealed = sealed.strip_prefix(&[LINK])?;
        self.decrypt::<LINK_LENGTH, _>(LINK, scope.into(), sealed, |body| {
            let (ticket, until) = body.split_first_chunk::<{ Ticket::LENGTH }>()?;
            let until = u64::from_be_bytes(until.try_into().ok()?);
            Some(Link { ticket: Ticket::from_bytes(ticket)?, until })
        })
    }

    /// Version, nonce, encrypted body and tag, as text.
    fn encrypt<const LENGTH: usize>(
        &self,
        version: u8,
        scope: Scope,
        mut body: [u8; LENGTH],
        nonce: [u8; NONCE_LENGTH],
    ) -> String {
        let tag = with_associated_data(version, scope, |associated| {
            self.first.encrypt(&nonce, associated, &mut body)
        });
        // The cipher's only error is a text that is too long. An empty value opens nothing and shows nothing.
        let Some(tag) = tag else { return String::new() };
        let sealed: Vec<u8> = [version].into_iter().chain(nonce).chain(body).chain(tag).collect();
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
            VERSION => {
                self.decrypt::<{ Ticket::LENGTH }, _>(version, scope.into(), sealed, Ticket::from_bytes)
            }
            OLD_VERSION => self.decrypt::<{ Ticket::OLD_LENGTH }, _>(
                version,
                scope.into(),
                sealed,
                Ticket::from_old_bytes,
            ),
            _ => None,
        }
    }

    /// Opens nonce, encrypted body of a length, and tag.
    fn decrypt<const LENGTH: usize, T>(
        &self,
        version: u8,
        scope: Scope,
        sealed: &[u8],
        read: fn(&[u8]) -> Option<T>,
    ) -> Option<T> {
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
