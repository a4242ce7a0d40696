//! Tables by keys that are hashes already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by numbers that nobody chooses so that they collide: they are their own hashes.
pub type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// See [`ByHash`].
#[derive(Debug, Clone, Default)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A hash of a text in any case, made byte by byte (FNV-1a): of each of its beginnings on the way.
#[derive(Debug, Clone, Copy)]
pub struct TextHash(u64);

impl TextHash {
    /// Of the empty text.
    pub const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    /// Of the text with one more byte.
    #[must_use]
    pub fn with(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3))
    }

    /// Of a whole text.
    pub fn of(text: &[u8]) -> Self {
        text.iter().fold(Self::EMPTY, |hash, byte| hash.with(*byte))
    }

    /// The key of two texts.
    pub fn and(self, other: Self) -> u64 {
        self.0.rotate_left(32) ^ other.0
    }
}
