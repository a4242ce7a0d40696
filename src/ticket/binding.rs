//! What is made of a visitor's address: whom a ticket belongs to, and who comes from one place.

use std::net::{IpAddr, Ipv6Addr};

use crate::room::BindTicket;

/// How many bits of an address a ticket is bound to: the provider's network, not the visitor's line. A phone gets
/// another address whenever it joins its network anew, and behind a carrier's translation the next connection may leave
/// by another one; both come from the blocks of the same provider, which has a /32 of IPv6 at the least. Whoever sells
/// tickets sells them to other networks.
const NETWORK_BITS: (u32, u32) = (16, 32);
/// How much of a user agent a ticket is bound to, in bytes.
const USER_AGENT_LENGTH: usize = 256;
/// IPv4 addresses as keys, apart from all IPv6 networks: no such block is given to anybody.
const IPV4: u64 = 1 << 32;

/// What a ticket is bound to, as text for [`Scope`](super::Scope); empty: nothing. `address` and `user_agent` are the
/// visitor's, empty if not known.
pub fn binding(bind: BindTicket, address: &str, user_agent: &str) -> String {
    let by_address = matches!(bind, BindTicket::Address | BindTicket::Both);
    let by_user_agent = matches!(bind, BindTicket::UserAgent | BindTicket::Both);
    let network = address.parse().ok().filter(|_| by_address).map_or(String::new(), network);
    if by_user_agent {
        let user_agent = user_agent.get(..user_agent.floor_char_boundary(USER_AGENT_LENGTH));
        format!("{network}\n{}", user_agent.unwrap_or_default())
    } else {
        network
    }
}

/// The network of an address: its first bits in hex.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("4:{:x}", u32::from(address) >> (32 - NETWORK_BITS.0)),
        IpAddr::V6(address) => format!("6:{:x}", u128::from(address) >> (128 - NETWORK_BITS.1)),
    }
}

/// The place that an address stands for: an IPv4 address, or the /64 of an IPv6 address, which is one line's or one
/// phone's. 0: no address.
pub fn address_key(address: &str) -> u64 {
    match address.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(address)) => IPV4 | u64::from(u32::from(address)),
        Ok(IpAddr::V6(address)) => upper_half(address),
        Err(_) => 0,
    }
}

fn upper_half(address: Ipv6Addr) -> u64 {
    (u128::from(address) >> 64) as u64
}
