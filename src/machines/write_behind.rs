//! Keeps what an object has given in storage, behind the visitors' backs.

/// Time between writes while something is given, in milliseconds.
pub const WRITE_MS: u64 = 1_000;

/// A write that is due.
#[derive(Debug, Clone, Copy)]
pub struct DueWrite {
    /// It is the last one: nothing was given since the one before.
    pub settled: bool,
    /// Answers need not wait for it: until it is confirmed, a restart would forget nothing.
    pub background: bool,
}

/// When to write next. What was given is written while that changes, and once more when it has settled. A write also
/// shows an object that was replaced by another instance that it was: its storage then refuses.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteBehind {
    next: Option<u64>,
}

impl WriteBehind {
    /// Something was given: a write is due now, unless one is planned.
    pub fn changed(&mut self, now: u64) {
        self.next.get_or_insert(now);
    }

    /// The write that is due, if one is. `changed_at`: when something was given last. `is_covered`: a restart would count
    /// all of it by what is stored.
    pub fn due(&mut self, changed_at: u64, is_covered: bool, now: u64) -> Option<DueWrite> {
        if is_covered {
            self.next.filter(|next| *next <= now)?;
        }
        let settled = is_covered && now >= changed_at + WRITE_MS;
        self.next = (!settled).then_some(now + WRITE_MS);
        Some(DueWrite { settled, background: is_covered })
    }

    /// When the next write is due, in milliseconds since the epoch.
    pub fn next(&self) -> Option<u64> {
        self.next
    }
}
