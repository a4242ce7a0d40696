//! A part of all visitors.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A part of all visitors, from none to all, in millionths. As text it is a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Share(u32);

impl Share {
    const ALL: u32 = 1_000_000;

    /// A part from 0 to 1; `None` for any other number.
    pub fn new(part: f64) -> Option<Self> {
        (0.0..=1.0).contains(&part).then(|| Self((part * f64::from(Self::ALL)).round() as u32))
    }

    /// From 0 to 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ALL)
    }

    /// Whether the visitor with this ticket belongs to it. A larger share has all those of a smaller one.
    pub fn has(self, id: u64) -> bool {
        // The bits of an id that are random in every colo.
        const LOT: u64 = 1 << 40;
        (id % LOT) * u64::from(Self::ALL) < u64::from(self.0) * LOT
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            self.part().serialize(serializer)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let part = f64::deserialize(deserializer)?;
            return Self::new(part).ok_or_else(|| serde::de::Error::custom("a share is from 0 to 1"));
        }
        u32::deserialize(deserializer).map(|millionths| Self(millionths.min(Self::ALL)))
    }
}
