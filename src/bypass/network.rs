//! Sets of IP addresses: one, a block, or a range.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// All that begin with the same bits; one address with all of its bits.
    Block { address: IpAddr, bits: u8 },
    /// From one to another, both included.
    Range { first: IpAddr, last: IpAddr },
}

/// Why a text is no network.
pub(super) enum BadNetwork {
    /// It has no address where one must be.
    Address,
    /// The number of bits is none, or too large for the address.
    Bits { most: u8 },
    /// The address has bits of its own behind the block's: probably a slip.
    Host { meant: Network },
    /// The range's addresses are of two kinds, or in the wrong order.
    Range,
}

impl Network {
    /// `192.0.2.1`, `192.0.2.0/24`, `2001:db8::/32`, `192.0.2.1..192.0.2.9`.
    pub(super) fn read(text: &str) -> Result<Self, BadNetwork> {
        let address = |text: &str| text.parse::<IpAddr>().map_err(|_| BadNetwork::Address);
        if let Some((first, last)) = text.split_once("..") {
            let (first, last) = (address(first)?, address(last)?);
            return if first.is_ipv4() == last.is_ipv4() && first <= last {
                Ok(Self::Range { first, last })
            } else {
                Err(BadNetwork::Range)
            };
        }
        let Some((start, bits)) = text.split_once('/') else {
            let address = address(text)?;
            return Ok(Self::Block { address, bits: width(address) });
        };
        let address = address(start)?;
        let most = width(address);
        let bits: u8 = bits.parse().ok().filter(|bits| *bits <= most).ok_or(BadNetwork::Bits { most })?;
        let first = first_of(address, bits);
        let block = Self::Block { address: first, bits };
        if first == address { Ok(block) } else { Err(BadNetwork::Host { meant: block }) }
    }

    /// The address, if it is one alone.
    pub(super) fn only(self) -> Option<IpAddr> {
        match self {
            Self::Block { address, bits } if bits == width(address) => Some(address),
            _ => None,
        }
    }

    /// Whether an address is in it.
    pub(super) fn contains(self, address: IpAddr) -> bool {
        match self {
            Self::Block { address: start, bits } => {
                start.is_ipv4() == address.is_ipv4() && first_of(address, bits) == start
            }
            Self::Range { first, last } => {
                first.is_ipv4() == address.is_ipv4() && first <= address && address <= last
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { address, bits } if *bits == width(*address) => write!(formatter, "{address}"),
            Self::Block { address, bits } => write!(formatter, "{address}/{bits}"),
            Self::Range { first, last } => write!(formatter, "{first}..{last}"),
        }
    }
}

/// How many bits an address of this kind has.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first address that begins with the same bits.
fn first_of(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let kept = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & kept))
        }
        IpAddr::V6(address) => {
            let kept = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & kept))
        }
    }
}
