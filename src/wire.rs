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
    let mut padded = Vec::with_capacity(bytes.len() + MISSING);
    padded.extend_from_slice(bytes);
    padded.resize(bytes.len() + MISSING, 0);
    postcard::take_from_bytes(&padded).map(|(value, _)| value).map_err(|_| WireError)
}

/// A value inside a message that may grow at its end by itself: it stands there as bytes of its own.
pub mod nested {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{decode, encode};

    /// A value that is the default in all is no bytes at all.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T: Serialize + Default + PartialEq, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return value.serialize(serializer);
        }
        let bytes =
            if *value == T::default() { Vec::new() } else { encode(value).map_err(S::Error::custom)? };
        bytes.serialize(serializer)
    }

    /// The value, or the default where there are no bytes.
    ///
    /// # Errors
    /// Those of the deserializer; bytes that are no such value.
    pub fn deserialize<'a, T: DeserializeOwned + Default, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        if deserializer.is_human_readable() {
            return T::deserialize(deserializer);
        }
        let bytes: Vec<u8> = Vec::deserialize(deserializer)?;
        if bytes.is_empty() { Ok(T::default()) } else { decode(&bytes).map_err(D::Error::custom) }
    }
}
