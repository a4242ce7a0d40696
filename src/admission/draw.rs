//! Lots: who may ask for a slot where the order is random, and the order of an event's lottery.
//!
//! Nobody can choose or foresee a lot, and everybody can check one afterwards. A lot is the HMAC-SHA-256 of a ticket's
//! id under a seed; the seed comes from a key that only the deployment has, and is published when it is of no more use.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::{Clocked, Remembered, StateKey, minute_of};
use crate::room::{QueueingMethod, Room};
use crate::ticket::Standing;

/// How many may ask for each slot that is expected in a round: some have left, and two may want the same slot.
const TIMES: f64 = 4.0;
/// Slots that are free already should be taken within this time, in milliseconds, not within a whole round.
const FREE_WITHIN_MS: f64 = 1_000.0;
/// How many may ask besides: of few, chance could leave nobody.
const A_FEW: f64 = 2.0;
/// A state that is older says nothing of what is free, in milliseconds.
const FRESH_MS: u64 = 30_000;
/// A check-in is up to half of this part of a round before or after the middle of the ticket's round.
const MOVES: f64 = 0.1;

/// For how long a chance is remembered, in milliseconds: longer than the longest round.
const REMEMBERED_MS: u64 = 120_000;
/// Tickets whose last chance is remembered, per generation: 100,000 in all, about 3 MB.
const REMEMBERED_TICKETS: usize = 50_000;

/// What the seeds come from. Secret.
#[derive(Clone)]
pub struct DrawKey([u8; 32]);

/// What the lots of a round, or of an event, come from. Secret until the round is over, or the event has begun.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed([u8; 32]);

/// When a ticket may ask for a slot again, as far as one worker or object knows: a cookie may be older than the last
/// check-in. Times are in milliseconds since the epoch.
#[derive(Debug)]
pub struct Chances {
    next: Remembered<u64>,
}

impl Default for Chances {
    fn default() -> Self {
        Self { next: Remembered::new(REMEMBERED_MS, REMEMBERED_TICKETS) }
    }
}

impl Chances {
    /// When a ticket has its next chance; 0: at once.
    pub fn next(&self, id: u64) -> u64 {
        self.next.get(id).unwrap_or_default()
    }

    /// A ticket has its next chance at `next`.
    pub fn put_off(&mut self, id: u64, next: u64, now: u64) {
        self.next.put(id, next, now);
    }

    /// Takes a ticket's chance, and the next one is at `next`; false: it has been taken.
    pub fn take_until(&mut self, id: u64, next: u64, now: u64) -> bool {
        let is_due = self.next(id) <= now;
        if is_due {
            self.put_off(id, next, now);
        }
        is_due
    }

    /// Takes a ticket's chance of its round; false: it has been taken.
    pub fn take(&mut self, room: &Room, id: u64, now: u64) -> bool {
        let into = (now + offset(room, id)) % room.refresh_ms().max(1);
        self.take_until(id, (now + room.refresh_ms()).saturating_sub(into), now)
    }
}

/// A visitor's lot in a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// The round: refresh intervals since the epoch.
    pub round: u64,
    /// From 0 to 1; `None`: whoever is new draws from the next round on.
    pub number: Option<f64>,
    /// Whoever has a smaller number may ask for a slot.
    pub threshold: f64,
    /// Whether this visitor may ask for a slot now.
    pub wins: bool,
}

impl DrawKey {
    /// The key of a deployment: of its secret `DRAW_KEY`, if it has one, else of the first of its `COOKIE_KEYS`.
    pub fn new(draw_key: Option<&str>, cookie_keys: &str) -> Self {
        let secret = draw_key.unwrap_or_else(|| cookie_keys.split(',').next().unwrap_or_default());
        // Hashed first: whatever its length, it is a key; and what is derived tells nothing of a cookie's key.
        let secret: [u8; 32] = Sha256::digest(secret.trim()).into();
        Self(mac(&secret, b"anteroom draws"))
    }

    /// The seed of a round of a room.
    pub fn of_round(&self, room: &str, round: u64) -> Seed {
        Seed(mac(&self.0, format!("{room}/draw/{round}").as_bytes()))
    }

    /// The seed of an event of a room that starts at a time, in milliseconds since the epoch.
    pub fn of_event(&self, room: &str, event: &str, start_ms: u64) -> Seed {
        Seed(mac(&self.0, format!("{room}/event/{event}/{start_ms}").as_bytes()))
    }
}

impl Seed {
    /// A ticket's number, from 0 to 1: the first 64 bits of the HMAC-SHA-256 of its id (8 bytes, the most significant
    /// first), as a fraction.
    pub fn number(&self, id: u64) -> f64 {
        let drawn = mac(&self.0, &id.to_be_bytes());
        let number = drawn.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        number as f64 / 2f64.powi(64)
    }

    /// What can be published before the seed: its SHA-256. Whoever sees the seed later knows that it was not changed.
    pub fn commitment(&self) -> String {
        hex(&Sha256::digest(self.0))
    }
}

impl fmt::Display for Seed {
    /// The seed itself, in hexadecimal.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for DrawKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DrawKey(not shown)")
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Seed(not shown)")
    }
}

fn mac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    // A shorter key is filled up with zeros, as the standard has it.
    let mut block = [0; 64];
    for (byte, of_key) in block.iter_mut().zip(key) {
        *byte = *of_key;
    }
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(message);
    mac.finalize().into_bytes().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// The bucket in which a ticket stands in the queue: its own, the minute in which its visitor came, unless that was in
/// the prequeue of an event with a lottery. Then it is one of the prequeue's minutes, by the ticket's number under the
/// event's seed. It is dealt with the first visit and never changes; whoever waited before the prequeue stays ahead, and
/// who comes after the start stands behind. `room` is the room with its events.
pub fn queue_bucket(room: &Room, key: &DrawKey, bucket: u32, id: u64) -> u32 {
    let Some((event, minutes)) = room.lottery(bucket) else { return bucket };
    if event.started_before(bucket) {
        // An operator has started it early: whoever comes now stands behind those who were dealt.
        return minutes.end;
    }
    let number = key.of_event(&room.name, &event.name, event.dealt_start()).number(id);
    let place = (number * f64::from(minutes.end - minutes.start)) as u32;
    (minutes.start + place).min(minutes.end - 1)
}

/// The round that a ticket is in at a time: each lasts one refresh interval, in which everybody who waits checks in once.
/// Rounds begin at another moment for each ticket: so all of them together check in evenly, whatever happens at the
/// edge of a round.
pub fn round_of(room: &Room, id: u64, time: u64) -> u64 {
    (time + offset(room, id)) / room.refresh_ms().max(1)
}

/// When the last ticket leaves a round, in milliseconds since the epoch; the first one enters it two refresh intervals
/// earlier.
pub fn round_end(room: &Room, round: u64) -> u64 {
    round.saturating_add(1).saturating_mul(room.refresh_ms())
}

/// How much sooner a ticket's rounds begin than those of others, in milliseconds.
fn offset(room: &Room, id: u64) -> u64 {
    scramble(id) % room.refresh_ms().max(1)
}

/// In how many seconds a ticket that waits by chance should check in again: once in its next round, near the middle, so
/// that everybody has one chance in each, though pages come a little late. `random` is from 0 (inclusive) to 1.
pub fn next_draw_seconds(room: &Room, id: u64, time: u64, random: f64) -> u32 {
    let round = f64::from(room.refresh_interval_seconds);
    let into = ((time + offset(room, id)) % room.refresh_ms().max(1)) as f64 / 1_000.0;
    (round * (1.5 + MOVES * (random - 0.5)) - into).round().max(1.0) as u32
}

/// One of a few places in the order of those who ask together, another one for a ticket in each round.
pub(super) fn place(id: u64, round: u64) -> u32 {
    (scramble(id ^ scramble(round)) >> 58) as u32
}

/// Spreads numbers that are near to each other.
fn scramble(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl StateKey {
    /// Where there are more who wait than free slots: the part of them who may ask for a slot when they check in, so that
    /// what is free now, and what will be within a round, finds somebody.
    pub fn draw_threshold(&self, room: &Room, time: u64) -> Option<f64> {
        let waiting = self.present_ahead(None) as f64;
        let minute = minute_of(time);
        let rate = self.most_new(room) as f64;
        let round_ms = room.refresh_ms().max(1) as f64;
        let free_by_rate = (self.may_enter(room, minute, time) - self.admitted_in(minute)) as f64;
        let free_by_active = (self.most_active(room) - self.active_at(time)) as f64;
        let free = free_by_active.min(free_by_rate).max(0.0);
        if waiting <= free {
            return None;
        }
        let freeing_by_rate = rate * round_ms / 60_000.0;
        let freeing = (free_by_active + f64::from(self.expiring_refresh)).min(freeing_by_rate).max(0.0);
        let asking = TIMES * freeing + free * (round_ms / FREE_WITHIN_MS) + A_FEW;
        Some((asking / waiting).min(1.0))
    }
}

/// A visitor's lot, where the order is random and lots are needed: there are more who wait than slots. `None`: nothing
/// is drawn, and the room decides as ever.
///
/// Each ticket has one chance in a round, at its first check-in in it; so asking more often wins nothing. Whoever is new
/// has none before the next round; so throwing the cookie away wins nothing either.
pub fn draw(
    room: &Room,
    key: &DrawKey,
    standing: &Standing,
    state: Option<&Clocked>,
    now: u64,
) -> Option<Draw> {
    let waiting = match standing {
        Standing::Active(_) => return None,
        Standing::Waiting(ticket) => Some(ticket),
        Standing::New => None,
    };
    if room.queueing_method != QueueingMethod::Random || room.is_closed() {
        return None;
    }
    let state = state.filter(|state| state.age(now) <= FRESH_MS)?;
    let threshold = state.key.draw_threshold(room, state.global_time(now))?;
    let round =
        waiting.map_or_else(|| now / room.refresh_ms().max(1), |ticket| round_of(room, ticket.id, now));
    let number = waiting.map(|ticket| key.of_round(&room.name, round).number(ticket.id));
    let is_first = waiting.is_some_and(|ticket| round_of(room, ticket.id, ticket.last_check_in) < round);
    let wins = is_first && number.is_some_and(|number| number < threshold);
    Some(Draw { round, number, threshold, wins })
}
