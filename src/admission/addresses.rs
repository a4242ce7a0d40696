//! One place per address, where the owner wants it: of those who come from one address without a ticket, one a minute may
//! enter at once or is counted among those who wait. The others are counted when they bring their ticket back.

use super::{NumberAsk, Remembered};

/// How long a turn lasts, in milliseconds.
const PAUSE_MS: u64 = 60_000;
/// The most addresses remembered per generation, of two. Beyond that the oldest are forgotten.
const REMEMBERED: usize = 50_000;

/// Addresses of newcomers, each with the ticket id of the one whose turn it is. 0 is no address: nobody is held to it.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// Ticket id (0: nobody) and time, by address.
    claims: Remembered<(u64, u64)>,
}

impl Default for Addresses {
    fn default() -> Self {
        Self { claims: Remembered::new(PAUSE_MS, REMEMBERED) }
    }
}

impl Addresses {
    /// Whose turn an address has at a time, if that is somebody else than this ticket's visitor; 0: nobody's.
    pub fn holder(&self, address: u64, id: u64, now: u64) -> u64 {
        let claim = self.claims.get(mixed(address)).filter(|(_, at)| address != 0 && now < at + PAUSE_MS);
        claim.map_or(0, |(holder, _)| if holder == id { 0 } else { holder })
    }

    /// A ticket's visitor takes the address's turn, if nobody has it. Returns who has: 0 where it was free.
    pub fn claim(&mut self, address: u64, id: u64, now: u64) -> u64 {
        let holder = self.holder(address, id, now);
        let is_mine = || self.claims.get(mixed(address)).is_some_and(|(holder, _)| holder == id);
        if holder == 0 && address != 0 && !is_mine() {
            self.learn(address, id, now);
        }
        holder
    }

    /// Somebody has the address's turn, as is known elsewhere.
    pub fn learn(&mut self, address: u64, holder: u64, now: u64) {
        self.claims.put(mixed(address), (holder, now), now);
    }

    /// Takes the turn for each of several visitors who ask, in their order; see [`Addresses::claim`]. Without
    /// `addresses`, or for those who wait already, everybody may go on.
    pub fn claim_all(&mut self, asks: &[NumberAsk], addresses: &[u64], now: u64) -> Vec<u64> {
        let asks = asks.iter().zip(addresses.iter().chain(std::iter::repeat(&0)));
        asks.map(|(ask, address)| if ask.waits { 0 } else { self.claim(*address, ask.id, now) }).collect()
    }
}

/// Addresses are chosen by others, and the memory takes its keys as they are. Different ones stay different
/// (the finalizer of `MurmurHash3`).
fn mixed(address: u64) -> u64 {
    let mut mixed = address;
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        mixed = (mixed ^ mixed >> 33).wrapping_mul(factor);
    }
    mixed ^ mixed >> 33
}
