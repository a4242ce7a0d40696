//! Comparing secrets.

use subtle::ConstantTimeEq;

/// Whether a given token is the expected one. For two texts of one length the time does not depend on what is in
/// them; that the lengths differ may be told from the time, so a token should be long rather than of secret length.
/// An empty expected token equals nothing: a secret that is not set closes the door.
pub fn same_secret(given: &str, expected: &str) -> bool {
    !expected.is_empty() && bool::from(given.as_bytes().ct_eq(expected.as_bytes()))
}
