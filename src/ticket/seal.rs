//! Sealing and opening: base64url without padding of version, nonce, encrypted ticket and tag.
//!
//! AES-256-GCM; the version and the room's name are authenticated with the ticket, so that a ticket of one room is
//! nothing in another. Every sealed ticket is as long as the next: its length says nothing about its visitor.

use anteroom_cipher::{NONCE_LENGTH, TAG_LENGTH};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{KeyRing, Ticket};

/// The first byte of what is sealed. A ticket of any other version does not open.
const VERSION: u8 = 1;
const SEALED_LENGTH: usize = 1 + NONCE_LENGTH + Ticket::LENGTH + TAG_LENGTH;

/// The longest cookie value that is looked at, in bytes. Sealed tickets have 78.
pub const MAX_VALUE_LENGTH: usize = 200;

/// Room names up to this length are authenticated without allocating.
const SHORT_NAME_LENGTH: usize = 127;

impl KeyRing {
    /// Seals a ticket for a room (its name) with the first key: 78 bytes of the base64url alphabet, ready to be a
    /// cookie's value. The nonce must be drawn anew for every call: a repeated one gives the key's secrets away.
    pub fn seal(&self, room: &str, ticket: &Ticket, nonce: [u8; NONCE_LENGTH]) -> String {
        let mut body = ticket.to_bytes();
        let tag = with_associated_data(room, |associated| self.first.encrypt(&nonce, associated, &mut body));
        // The cipher's only error is a text of more than 64 GiB. An empty value opens nothing and shows nothing.
        let Some(tag) = tag else { return String::new() };
        let parts = [VERSION].into_iter().chain(nonce).chain(body).chain(tag);
        let mut sealed = [0; SEALED_LENGTH];
        for (byte, part) in sealed.iter_mut().zip(parts) {
            *byte = part;
        }
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Opens a cookie's value for a room (its name) with any of the keys. `None` for everything that this ring did
    /// not seal for this room, whatever it is; the work is bounded by [`MAX_VALUE_LENGTH`] and the number of keys.
    /// Whether the ticket still holds is for [`standing`](super::standing) to say.
    pub fn open(&self, room: &str, value: &str) -> Option<Ticket> {
        if value.len() > MAX_VALUE_LENGTH {
            return None;
        }
        let mut sealed = [0; MAX_VALUE_LENGTH / 4 * 3];
        let length = URL_SAFE_NO_PAD.decode_slice(value, &mut sealed).ok()?;
        let (&[VERSION], rest) = sealed.get(..length)?.split_first_chunk::<1>()? else { return None };
        let (nonce, rest) = rest.split_first_chunk::<NONCE_LENGTH>()?;
        let (body, tag) = rest.split_first_chunk::<{ Ticket::LENGTH }>()?;
        let tag: &[u8; TAG_LENGTH] = tag.try_into().ok()?;
        with_associated_data(room, |associated| {
            self.ciphers().find_map(|cipher| {
                let mut body = *body;
                cipher.decrypt(nonce, associated, &mut body, tag).then_some(())?;
                Ticket::from_bytes(&body)
            })
        })
    }
}

/// Calls with the version and the room's name, which are authenticated but not encrypted.
fn with_associated_data<T>(room: &str, call: impl FnOnce(&[u8]) -> T) -> T {
    let mut short = [VERSION; 1 + SHORT_NAME_LENGTH];
    match short.get_mut(..=room.len()) {
        Some(associated) => {
            for (byte, name) in associated.iter_mut().skip(1).zip(room.bytes()) {
                *byte = name;
            }
            call(associated)
        }
        None => call(&[&[VERSION], room.as_bytes()].concat()),
    }
}
