//! AES-256-GCM for short texts, as the crate `aes-gcm` makes it.
//!
//! A crate of its own, because how code is optimised is said per crate, and the Worker is compiled for size.

use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};

/// The length of a key in bytes.
pub const KEY_LENGTH: usize = 32;
/// The length of a nonce in bytes.
pub const NONCE_LENGTH: usize = 12;
/// The length of a tag in bytes.
pub const TAG_LENGTH: usize = 16;

/// One key, with its key schedule computed.
#[derive(Clone)]
pub struct Cipher(Aes256Gcm);

// Not inlined: the caller is compiled for size.
impl Cipher {
    /// The cipher of a key.
    #[inline(never)]
    pub fn new(key: &[u8; KEY_LENGTH]) -> Self {
        Self(Aes256Gcm::new(key.into()))
    }

    /// Encrypts `text` in place and returns its tag; `associated` is authenticated with it. `None` for a text that is
    /// longer than AES-GCM allows, 64 GiB. A nonce must not be used twice with one key.
    #[inline(never)]
    pub fn encrypt(
        &self,
        nonce: &[u8; NONCE_LENGTH],
        associated: &[u8],
        text: &mut [u8],
    ) -> Option<[u8; TAG_LENGTH]> {
        self.0.encrypt_inout_detached(nonce.into(), associated, text.into()).ok().map(Into::into)
    }

    /// Decrypts in place what [`Cipher::encrypt`] made with this key, nonce and associated data. Returns whether it is
    /// authentic; if not, `text` stays as it was.
    #[inline(never)]
    pub fn decrypt(
        &self,
        nonce: &[u8; NONCE_LENGTH],
        associated: &[u8],
        text: &mut [u8],
        tag: &[u8; TAG_LENGTH],
    ) -> bool {
        self.0.decrypt_inout_detached(nonce.into(), associated, text.into(), tag.into()).is_ok()
    }
}
