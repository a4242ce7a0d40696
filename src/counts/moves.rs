//! Places that have moved to other devices: each move is made once, and every colo gets to know.
//!
//! A ticket says how often its place has moved. A link takes the place along from one such number to the next one, and Global
//! does that for whoever comes first. Workers refuse tickets with a lower number than the latest. So of all devices that
//! have had the place one goes on, and whoever copies a link or a cookie gains nothing.

use serde::{Deserialize, Serialize};

use crate::room::Room;
use crate::ticket::Ticket;

/// Places that are remembered: the state key names them all. Beyond it no other place moves for a while: to forget one would
/// bring its old ticket back.
const MOST: usize = 1_000;
/// From a move until the last worker knows of it, in milliseconds.
const TOLD_MS: u64 = 60_000;

/// Asks Global to move a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovePlace {
    /// Format version.
    pub v: u8,
    /// The ticket's id.
    pub id: u64,
    /// How often the place had moved when the link was made.
    pub moves: u8,
    /// Random, of the page that asks: asked once more, because the answer was lost, it gets the same.
    pub by: u64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum MoveOutcome {
    /// The link was used before.
    #[default]
    Over,
    /// The place is the asker's.
    Moved,
    /// Too many places have moved lately; this one has not.
    Full,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceMoved {
    /// Format version.
    pub v: u8,
    /// What came of it.
    pub outcome: MoveOutcome,
}

/// One place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Move {
    id: u64,
    /// How often it has moved: tickets that say less are refused.
    moves: u8,
    by: u64,
    /// Until when such tickets may be about, in milliseconds since the epoch.
    until: u64,
}

/// The places that have moved lately. Stored before a move is answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moves {
    v: u8,
    moves: Vec<Move>,
}

impl Moves {
    /// Moves a place, if nobody has done so with the same link. `now` in milliseconds since the epoch.
    pub fn redeem(&mut self, room: &Room, ask: &MovePlace, now: u64) -> MoveOutcome {
        self.moves.retain(|moved| now < moved.until);
        let next = ask.moves.saturating_add(1);
        if next > Ticket::MOST_MOVES {
            return MoveOutcome::Over;
        }
        let made = Move { id: ask.id, moves: next, by: ask.by, until: now + remembered_ms(room) };
        let is_full = self.moves.len() >= MOST;
        match self.moves.iter_mut().find(|moved| moved.id == ask.id) {
            Some(moved) if moved.moves == next && moved.by == ask.by => MoveOutcome::Moved,
            Some(moved) if moved.moves >= next => MoveOutcome::Over,
            Some(moved) => {
                *moved = made;
                MoveOutcome::Moved
            }
            None if is_full => MoveOutcome::Full,
            None => {
                self.moves.push(made);
                MoveOutcome::Moved
            }
        }
    }

    /// What workers are told: ids of tickets, and how often their places have moved.
    pub fn told(&self, now: u64) -> Vec<(u64, u8)> {
        let lately = self.moves.iter().filter(|moved| now < moved.until);
        lately.map(|moved| (moved.id, moved.moves)).collect()
    }
}

/// By then no ticket of before a move holds any more, in milliseconds: none is renewed once all workers know of the move.
fn remembered_ms(room: &Room) -> u64 {
    let terms = room.terms();
    // A tenth more or less.
    let longest_refresh_ms = u64::from(room.refresh_interval_max_seconds) * 1_100;
    TOLD_MS + terms.place_ms.max(longest_refresh_ms * 5 / 2).max(terms.session_ms)
}
