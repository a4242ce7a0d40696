//! Messages and stored records as bytes.
//!
//! The format is postcard's: fields in their order, small numbers in few bytes, no names. So a type may only grow at
//! its end: a longer message's end is ignored by an older reader, and what a shorter one leaves out reads as zeros
//! (0, none, empty, the first of an enum). A type inside another one never grows; whoever must change it changes
//! `VERSION` and reads both.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of all messages and stored records.
pub const VERSION: u8 = 1;

/// How many bytes may be missing at the end.
const MISSING: usize = 64;

/// Bytes that are not such a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireError;

impl fmt::Display for WireError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("these bytes are no such message")
    }
}

impl std::error::Error for WireError {}

/// A value as bytes.
///
/// # Errors
/// When it is of a type that has no such form; none of ours is.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, WireError> {
    postcard::to_allocvec(value).map_err(|_| WireError)
}

/// A value from bytes.
///
/// # Errors
/// When the bytes are not such a value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    decode_known(bytes).map(|(value, _)| value)
}

/// The same, and whether newer code says something at its end that this code does not know.
///
/// # Errors
/// As [`decode`].
pub fn decode_known<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, bool), WireError> {
    let padded = padded(bytes);
    let (value, rest) = postcard::take_from_bytes(&padded).map_err(|_| WireError)?;
    Ok((value, rest.iter().any(|byte| *byte != 0)))
}

/// What an older writer has left out reads as zeros.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = Vec::with_capacity(bytes.len() + MISSING);
    padded.extend_from_slice(bytes);
    padded.resize(bytes.len() + MISSING, 0);
    padded
}
