//! Keeps what an object has given in storage, behind the visitors' backs.

/// Time between writes while something is given, in milliseconds.
pub const WRITE_MS: u64 = 1_000;

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

    /// Whether a write is due. `changed_at`: when something was given last. Returns whether this write is the last one:
    /// nothing was given since the one before.
    pub fn due(&mut self, changed_at: u64, now: u64) -> Option<bool> {
        self.next.filter(|next| *next <= now)?;
        let settled = now >= changed_at + WRITE_MS;
        self.next = (!settled).then_some(now + WRITE_MS);
        Some(settled)
    }

    /// When the next write is due, in milliseconds since the epoch.
    pub fn next(&self) -> Option<u64> {
        self.next
    }
}
