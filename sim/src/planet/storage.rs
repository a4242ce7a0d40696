//! An object's storage, as the platform has it: a write is confirmed some milliseconds later, and what leaves the object
//! after it waits for that. An object that ends before may have written it or not.

use std::collections::VecDeque;

use anteroom::admission::minute_of;
use anteroom::machines::{MemoryRows, Rows, Series, Stored};
use fastrand::Rng;

/// How many minutes of the history, and of its parts, are read again.
const READ_AGAIN: [(Series, u32); 2] = [(Series::Minutes, 120), (Series::Parts, 10)];

/// What one input of an object writes: all of it is stored, or none.
#[derive(Debug, Default)]
pub struct Write {
    /// Records; `None`: it is deleted.
    pub records: Vec<(String, Option<Vec<u8>>)>,
    /// The alarm, if it was set or taken back: 0.
    pub alarm: Option<u64>,
    /// When it is confirmed.
    pub confirmed_at: u64,
    /// How many writes the tables have after it.
    rows: u64,
}

/// Records, tables and the alarm of one object, and writes that are under way.
#[derive(Debug, Default)]
pub struct Storage {
    stored: Stored,
    alarm: Option<u64>,
    rows: MemoryRows,
    rows_seen: u64,
    writes: VecDeque<Write>,
}

impl Storage {
    /// The tables.
    pub fn rows(&self) -> MemoryRows {
        self.rows.clone()
    }

    /// How many rows were written since the last write.
    pub fn rows_written(&self) -> u64 {
        self.rows.writes() - self.rows_seen
    }

    /// Takes a write in, which is confirmed after all those before it.
    pub fn write(&mut self, write: Write, now: u64) {
        if self.rows_written() > 0 {
            // Nobody looks at the history here, and a simulated month of it would fill the memory.
            for (series, minutes) in READ_AGAIN {
                let _ = self.rows.delete_before(series, minute_of(now).saturating_sub(minutes));
            }
        }
        self.rows_seen = self.rows.writes();
        self.settle(now);
        self.writes.push_back(Write { rows: self.rows_seen, ..write });
    }

    /// The alarm rings: it is not set any more.
    pub fn rings(&mut self) {
        self.alarm = None;
    }

    /// The object ends: of what is not confirmed, the first writes are there and the others are not. Returns what the next
    /// one finds, and its alarm.
    pub fn end(&mut self, now: u64, rng: &mut Rng) -> (&Stored, Option<u64>) {
        self.settle(now);
        self.writes.truncate(rng.u64(0..=self.writes.len() as u64) as usize);
        self.settle(u64::MAX);
        self.rows.roll_back();
        self.rows_seen = self.rows.writes();
        (&self.stored, self.alarm)
    }

    /// All writes that are under way are confirmed.
    pub fn confirm(&mut self) {
        self.settle(u64::MAX);
    }

    /// Takes in what is confirmed by now.
    fn settle(&mut self, now: u64) {
        while self.writes.front().is_some_and(|write| write.confirmed_at <= now) {
            let Some(write) = self.writes.pop_front() else { return };
            self.rows.confirm_first(write.rows);
            if let Some(alarm) = write.alarm {
                self.alarm = Some(alarm).filter(|at| *at > 0);
            }
            for (key, bytes) in write.records {
                match bytes {
                    Some(bytes) => self.stored.insert(key, bytes),
                    None => self.stored.remove(&key),
                };
            }
        }
    }
}
