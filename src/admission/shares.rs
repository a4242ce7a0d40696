//! Who owns which number of a minute.
//!
//! The 2023 article divides the slots by the traffic of the last minutes: a colo that brought 20 of 200 users owns a
//! tenth, and what no colo owns is Anywhere. Taken as percentages of a budget that grows, that division is unsafe:
//! rounded down, 300 colos lose 150 slots; rounded otherwise, the parts add up to more than the whole, or an owner's
//! part shrinks after it was handed out. So each *number* is dealt to one owner instead, in rounds that follow the
//! traffic as evenly as whole numbers can. The parts of any budget then add up to it exactly, and every part only
//! grows with it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use crate::wire::WireError;

/// The longest round: a minute's numbers are dealt in rounds of at most this many.
const LONGEST_ROUND: u64 = 1024;

/// How the numbers of one minute are dealt to all colos and Anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Weights", into = "Weights")]
pub struct Shares {
    weights: Weights,
    /// The owner of each number of a round: 0 is Anywhere, `n` the n-th colo.
    round: Vec<u16>,
}

/// Numbers per round: what of the shares is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Weights {
    anywhere: u32,
    colos: Vec<(String, u32)>,
}

/// The numbers of a round that one owner has, as a bit set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Share {
    bits: Vec<u8>,
    length: u32,
}

/// What one colo needs to know of a minute's shares: its own and Anywhere's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinuteShares {
    /// The minute that this deals.
    pub minute: u32,
    /// Numbers in a round.
    pub round: u32,
    /// The colo's share.
    pub colo: Share,
    /// Anywhere's share.
    pub anywhere: Share,
}

impl Shares {
    /// Divides by the users that each colo brought in an earlier minute: a colo's part is its users divided by
    /// `max(limit, all users)`, Anywhere has the rest (2023 article, "traffic history").
    pub fn from_history<'a>(users: impl Iterator<Item = (&'a str, u64)>, limit: u64) -> Self {
        let mut colos: LiteMap<&str, u64> = LiteMap::new();
        for (colo, users) in users.filter(|(_, users)| *users > 0) {
            colos.insert(colo, users);
        }
        let total: u64 = colos.values().sum();
        let whole = total.max(limit).max(1);
        // A small round keeps the history's exact ratios; a large one is scaled down, in Anywhere's favour.
        let round = whole.min(LONGEST_ROUND);
        let colos: Vec<(String, u32)> = colos
            .iter()
            .map(|(&colo, &users)| {
                let scaled = u128::from(users) * u128::from(round) / u128::from(whole);
                (colo.to_owned(), scaled as u32)
            })
            .filter(|(_, numbers)| *numbers > 0)
            .collect();
        let owned: u32 = colos.iter().map(|(_, numbers)| numbers).sum();
        Self::dealt(Weights { anywhere: (round as u32).saturating_sub(owned), colos })
    }

    /// Everything belongs to Anywhere.
    pub fn all_anywhere() -> Self {
        Self::dealt(Weights { anywhere: 1, colos: Vec::new() })
    }

    /// Deals a round: every owner earns its weight with each number, and the richest pays the whole round for it. So
    /// no owner is ever a full number away from its exact part.
    fn dealt(weights: Weights) -> Self {
        let earning: Vec<i64> = std::iter::once(&weights.anywhere)
            .chain(weights.colos.iter().map(|(_, numbers)| numbers))
            .map(|numbers| i64::from(*numbers))
            .collect();
        let whole: i64 = earning.iter().sum();
        let mut credit = vec![0i64; earning.len()];
        let mut round = Vec::with_capacity(whole as usize);
        for _ in 0..whole {
            let mut richest = 0;
            let mut most = i64::MIN;
            for (owner, (credit, earning)) in credit.iter_mut().zip(&earning).enumerate() {
                *credit += earning;
                if *credit > most {
                    (richest, most) = (owner, *credit);
                }
            }
            if let Some(credit) = credit.get_mut(richest) {
                *credit -= whole;
            }
            round.push(richest as u16);
        }
        Self { weights, round }
    }

    /// The colos that own something, with their shares.
    pub fn colos(&self) -> impl Iterator<Item = (&str, Share)> {
        self.weights.colos.iter().zip(1..).map(|((colo, _), owner)| (colo.as_str(), self.share_of(owner)))
    }

    /// What the minute looks like for one colo; without a colo, for Anywhere alone.
    pub fn for_colo(&self, minute: u32, colo: Option<&str>) -> MinuteShares {
        let owner = colo.and_then(|colo| self.weights.colos.iter().position(|(name, _)| name == colo));
        MinuteShares {
            minute,
            round: self.round.len() as u32,
            colo: owner.map(|owner| self.share_of(owner as u16 + 1)).unwrap_or_default(),
            anywhere: self.share_of(0),
        }
    }

    fn share_of(&self, owner: u16) -> Share {
        let mut share = Share { bits: vec![0; self.round.len().div_ceil(8)], length: 0 };
        for (position, holder) in self.round.iter().enumerate() {
            if *holder == owner
                && let Some(byte) = share.bits.get_mut(position / 8)
            {
                *byte |= 1 << (position % 8);
                share.length += 1;
            }
        }
        share
    }
}

impl TryFrom<Weights> for Shares {
    type Error = WireError;

    /// A longer round is none of ours, and nobody has the memory to deal it.
    fn try_from(weights: Weights) -> Result<Self, WireError> {
        let numbers = weights.colos.iter().map(|(_, numbers)| numbers).chain([&weights.anywhere]);
        let whole: u64 = numbers.map(|numbers| u64::from(*numbers)).sum();
        if whole <= LONGEST_ROUND { Ok(Self::dealt(weights)) } else { Err(WireError) }
    }
}

impl From<Shares> for Weights {
    fn from(shares: Shares) -> Self {
        shares.weights
    }
}

impl From<String> for Share {
    /// An unreadable share owns nothing: its numbers stay unused, the limits hold.
    fn from(text: String) -> Self {
        let bits = STANDARD_NO_PAD.decode(text).unwrap_or_default();
        let length = bits.iter().map(|byte| byte.count_ones()).sum();
        Self { bits, length }
    }
}

impl From<Share> for String {
    fn from(share: Share) -> Self {
        if share.length == 0 { Self::new() } else { STANDARD_NO_PAD.encode(share.bits) }
    }
}

impl Share {
    /// How many of the first `count` numbers of a round are in it.
    fn among_first(&self, count: u64) -> u64 {
        let full = (count / 8) as usize;
        let whole: u32 = self.bits.iter().take(full).map(|byte| byte.count_ones()).sum();
        let rest = self.bits.get(full).map_or(0, |byte| (byte & ((1u8 << (count % 8)) - 1)).count_ones());
        u64::from(whole + rest)
    }
}

impl MinuteShares {
    /// How many of the numbers `1..=budget` an owner has. Over all owners of a minute this adds up to `budget`
    /// exactly, and it never shrinks when `budget` grows.
    pub fn owned(&self, share: &Share, budget: i64) -> i64 {
        let (Ok(budget), round) = (u64::try_from(budget), u64::from(self.round.max(1))) else { return 0 };
        (budget / round * u64::from(share.length) + share.among_first(budget % round)) as i64
    }

    /// How many of `budget` numbers may be dealt, so that all that is given fits: `given` says for each owner how many it has given
    /// already. Fewer than `budget` where an owner has given more than its part, as after a limit became lower; never less than 0.
    pub fn fitting(&self, budget: i64, given: &[(Share, i64)]) -> i64 {
        let mut dealt = budget;
        loop {
            // The fewer are dealt, the more of what was given is beyond that.
            let beyond = given.iter().map(|(share, given)| (given - self.owned(share, dealt)).max(0));
            let fits = (budget - beyond.sum::<i64>()).max(0);
            if fits >= dealt {
                return dealt;
            }
            dealt = fits;
        }
    }

    /// How many of `budget` numbers this colo has.
    pub fn colo_slots(&self, budget: i64) -> i64 {
        self.owned(&self.colo, budget)
    }

    /// How many of `budget` numbers Anywhere has.
    pub fn anywhere_slots(&self, budget: i64) -> i64 {
        self.owned(&self.anywhere, budget)
    }
}
