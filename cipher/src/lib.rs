//! AES-256-GCM (NIST SP 800-38D) for short texts: its two parts, AES and GHASH, come from their crates; put together
//! here, so that all that AES has to do for a ticket it does at once.
//!
//! Software AES works on four blocks in the time of one. A ticket takes three: the mask of its tag and two of key stream.
//! The general crate asks for them one by one. What is made here is the same, byte for byte; the tests compare them.
//!
//! A crate of its own, because how code is optimised is said per crate, and the Worker is compiled for size.

use aes::Aes256;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use subtle::ConstantTimeEq;

/// The length of a key in bytes.
pub const KEY_LENGTH: usize = 32;
/// The length of a nonce in bytes.
pub const NONCE_LENGTH: usize = 12;
/// The length of a tag in bytes.
pub const TAG_LENGTH: usize = 16;
/// The longest text in bytes.
pub const MAX_TEXT_LENGTH: usize = BLOCK_LENGTH * (BATCH - 1);

const BLOCK_LENGTH: usize = 16;
/// Blocks that are encrypted at once: the mask of the tag, then the key stream.
const BATCH: usize = 4;

/// One key, with its key schedule computed.
#[derive(Clone)]
pub struct Cipher {
    aes: Aes256,
    ghash: GHash,
}

impl Cipher {
    /// The cipher of a key.
    #[inline(never)]
    pub fn new(key: &[u8; KEY_LENGTH]) -> Self {
        let aes = Aes256::new(key.into());
        let mut hash_key = Array::default();
        aes.encrypt_block(&mut hash_key);
        Self { aes, ghash: GHash::new(&hash_key) }
    }

    /// Encrypts `text` in place and returns its tag; `associated` is authenticated with it. `None` for a text that is
    /// longer than [`MAX_TEXT_LENGTH`]. A nonce must not be used twice with one key.
    #[inline(never)]
    pub fn encrypt(
        &self,
        nonce: &[u8; NONCE_LENGTH],
        associated: &[u8],
        text: &mut [u8],
    ) -> Option<[u8; TAG_LENGTH]> {
        if text.len() > MAX_TEXT_LENGTH {
            return None;
        }
        let [mask, stream @ ..] = self.stream(nonce);
        add(text, stream.as_flattened());
        Some(self.tag(mask, associated, text))
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
        let [mask, stream @ ..] = self.stream(nonce);
        let is_authentic = text.len() <= MAX_TEXT_LENGTH
            && bool::from(self.tag(mask, associated, text).as_slice().ct_eq(tag.as_slice()));
        if is_authentic {
            add(text, stream.as_flattened());
        }
        is_authentic
    }

    /// The encrypted counter blocks: nonce and counter, from 1 on.
    fn stream(&self, nonce: &[u8; NONCE_LENGTH]) -> [[u8; BLOCK_LENGTH]; BATCH] {
        let mut counter = 0;
        let mut blocks = [(); BATCH].map(|()| {
            counter += 1;
            let mut block = [0; BLOCK_LENGTH];
            let (start, end) = block.split_at_mut(NONCE_LENGTH);
            start.copy_from_slice(nonce);
            end.copy_from_slice(&u32::to_be_bytes(counter));
            Array(block)
        });
        self.aes.encrypt_blocks(&mut blocks);
        blocks.map(Into::into)
    }

    /// The tag: the hash of associated data, encrypted text and the lengths of both in bits, masked.
    fn tag(&self, mut mask: [u8; BLOCK_LENGTH], associated: &[u8], text: &[u8]) -> [u8; TAG_LENGTH] {
        let mut hash = self.ghash.clone();
        hash.update_padded(associated);
        hash.update_padded(text);
        let mut lengths = Array::default();
        for (part, bytes) in lengths.chunks_exact_mut(8).zip([associated, text]) {
            part.copy_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
        }
        hash.update(&[lengths]);
        add(&mut mask, &hash.finalize());
        mask
    }
}

/// Adds `other` to `bytes`, bit by bit.
fn add(bytes: &mut [u8], other: &[u8]) {
    for (byte, other) in bytes.iter_mut().zip(other) {
        *byte ^= other;
    }
}
