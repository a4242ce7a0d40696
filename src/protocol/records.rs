//! Stored records: how each one says its version, how older ones are read, and that newer ones are left alone.
//!
//! Old and new code read each other's records: during a deploy, and after a rollback. So a record may grow at its end
//! without a new version, as messages do ([`wire`]). Any other change is a new version with a [`Step`] from the one
//! before; `docs/stored-records.md` says how to make one.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::admission::{SavedLedger, SavedPermits, SavedPool};
use crate::counts::{ColoReport, GlobalMeta, Moves, OriginMemory, SavedDataCenter};
use crate::health::ProbeResult;
use crate::health::agree::Agreement;
use crate::health::analytics::Sum;
use crate::history::{Minute, Record as HistoryRecord};
use crate::notifications::Detector;
use crate::wire::{self, WireError};

/// Turns the bytes of one version into those of the next.
pub type Step = fn(&[u8]) -> Result<Vec<u8>, WireError>;

/// Where a record says its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// In its first byte, the field `v`. 0 is version 1: some code has not set it.
    FirstByte,
    /// Nowhere in version 1, which begins with a length; later versions follow [`MARK`].
    Marked,
}

/// Begins a record of version 2 or later that has no field `v`, before the byte of its version. No length is so large.
pub const MARK: [u8; 5] = [0xff; 5];

/// A type that is stored.
pub trait Record: Serialize + DeserializeOwned {
    /// The key under which it is stored, or what all its keys begin with; of rows, the table.
    const NAME: &'static str;
    /// Where it says its version.
    const FRAME: Frame;
    /// The first one makes version 2 of version 1, the next one version 3, and so on.
    const STEPS: &'static [Step] = &[];
    /// The version that is written.
    const VERSION: u8 = 1 + Self::STEPS.len() as u8;
}

/// Why a record is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// Newer code has written it. It must not be overwritten: that code may come back.
    Newer {
        /// The record's [`Record::NAME`].
        record: &'static str,
        /// Its version.
        version: u8,
        /// The last version that this code reads.
        known: u8,
    },
    /// The bytes are no such record.
    Unreadable {
        /// The record's [`Record::NAME`].
        record: &'static str,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { record, version, known } => write!(
                formatter,
                "the stored {record} is of version {version}, this code reads up to {known}: it is left as it is"
            ),
            Self::Unreadable { record } => write!(formatter, "the stored {record} cannot be read"),
        }
    }
}

impl std::error::Error for RecordError {}

/// A record from its bytes, whatever version they are of.
///
/// # Errors
/// When newer code has written it, or it is no such record.
pub fn read<T: Record>(bytes: &[u8]) -> Result<T, RecordError> {
    let body = migrated(bytes, T::NAME, T::FRAME, T::STEPS)?;
    wire::decode(&body).map_err(|_| RecordError::Unreadable { record: T::NAME })
}

/// A record's bytes in the version that this code writes. Not generic: else the Worker had it once for each type.
fn migrated(
    bytes: &[u8],
    record: &'static str,
    frame: Frame,
    steps: &[Step],
) -> Result<Vec<u8>, RecordError> {
    let (version, body) = split(frame, bytes);
    let known = 1 + steps.len() as u8;
    if version > known {
        return Err(RecordError::Newer { record, version, known });
    }
    let mut body = body.to_vec();
    for step in steps.iter().skip(usize::from(version) - 1) {
        body = step(&body).map_err(|_| RecordError::Unreadable { record })?;
    }
    Ok(body)
}

/// A record's bytes, of the version that this code writes.
///
/// # Errors
/// As [`wire::encode`].
pub fn write<T: Record>(record: &T) -> Result<Vec<u8>, WireError> {
    Ok(framed(wire::encode(record)?, T::FRAME, T::VERSION))
}

/// A record's bytes with its version.
fn framed(mut bytes: Vec<u8>, frame: Frame, version: u8) -> Vec<u8> {
    match (frame, bytes.first_mut()) {
        (Frame::FirstByte, Some(first)) => *first = version,
        (Frame::Marked, _) if version > 1 => {
            bytes.splice(..0, MARK.into_iter().chain([version]));
        }
        _ => {}
    }
    bytes
}

/// The version, from 1, and what the steps work on.
fn split(frame: Frame, bytes: &[u8]) -> (u8, &[u8]) {
    match frame {
        Frame::FirstByte => (bytes.first().copied().unwrap_or(1).max(1), bytes),
        Frame::Marked => match bytes.strip_prefix(&MARK).and_then(<[u8]>::split_first) {
            Some((version, body)) => ((*version).max(1), body),
            None => (1, bytes),
        },
    }
}

/// What is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<T> {
    /// The record; `None`: there is none, or it is not read.
    pub record: Option<T>,
    /// Why it is not read.
    pub error: Option<RecordError>,
}

impl<T: Record> Found<T> {
    /// Reads what is stored, if anything is.
    pub fn new(stored: Option<&[u8]>) -> Self {
        match stored.map(read).transpose() {
            Ok(record) => Self { record, error: None },
            Err(error) => Self { record: None, error: Some(error) },
        }
    }

    /// The record, or what must be assumed where there is one that is not read.
    pub fn record_or(self, assumed: impl FnOnce() -> T) -> Option<T> {
        self.record.or_else(|| self.error.map(|_| assumed()))
    }

    /// Whether the key may be written to: newer code has not.
    pub fn may_be_replaced(&self) -> bool {
        !matches!(self.error, Some(RecordError::Newer { .. }))
    }
}

/// Reads what an object finds under a key at its start.
pub fn found<T: Record>(stored: &BTreeMap<String, Vec<u8>>, key: &str) -> Found<T> {
    Found::new(stored.get(key).map(Vec::as_slice))
}

/// Gives the stored types their names and frames, and says what to make of a record by its key.
macro_rules! records {
    ($($name:literal = $record:ty, $frame:ident;)+) => {
        $(impl Record for $record {
            const NAME: &'static str = $name;
            const FRAME: Frame = Frame::$frame;
        })+

        /// Why what an object finds under a key is not read, for the log.
        pub fn problem(key: &str, bytes: &[u8]) -> Option<RecordError> {
            $(if key.starts_with($name) {
                return read::<$record>(bytes).err();
            })+
            None
        }
    };
}

// The names are keys, beginnings of keys, or tables. No key begins with another one.
records! {
    "ledger" = SavedLedger, FirstByte;
    "pool" = SavedPool, FirstByte;
    "permits" = SavedPermits, FirstByte;
    "data_center" = SavedDataCenter, FirstByte;
    "meta" = GlobalMeta, FirstByte;
    "colo/" = ColoReport, FirstByte;
    "origin" = OriginMemory, FirstByte;
    "moves" = Moves, FirstByte;
    "news_watch" = Detector, FirstByte;
    "minutes" = HistoryRecord, FirstByte;
    "parts" = Minute, FirstByte;
    "agreements" = Agreement, Marked;
    "sums" = Sum, Marked;
    "results" = ProbeResult, Marked;
    "untold" = Vec<ProbeResult>, Marked;
}
