//! Check-in deduplication: a ticket's last steps, against counting one visitor twice.
//!
//! Every check-in takes a visitor from one moment to a later one: from where the cookie says that it was counted
//! last. Taken literally, check-ins may come in any order and from any colo, and the sums are right. Only when two
//! of them start from the same moment (parallel requests, a retry, an old cookie) would the visitor count twice:
//! then the second goes on from where the first has led.

use super::Seen;

/// Stretches remembered per ticket. However many requests run in parallel, they make one; another begins when the
/// visitor comes back from another colo.
const STRETCHES: usize = 3;

/// Steps that led on from each other, from the first moment to the last. Times are the low bits of milliseconds
/// since the epoch: enough for 49 days, more than any ticket lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stretch {
    from: u32,
    to: u32,
    /// When the visitor entered, if that was on this stretch; 0: not.
    entered: u32,
    /// See [`Seen::later`], at its end.
    later: u8,
    /// At its end the visitor has left, and is not counted any more.
    left: bool,
}

/// What a step does besides leading on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Goes,
    /// The visitor enters.
    Enters,
    /// The visitor leaves: the room or the queue.
    Leaves,
}

/// The last stretches of one ticket: 48 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckInDedup {
    stretches: [Stretch; STRETCHES],
}

/// Where a check-in really starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The moment.
    pub seen: Seen,
    /// Whether the visitor has entered on the way there.
    pub entered: bool,
    /// Whether the visitor has left there: nothing is counted that a check-in could start from.
    pub left: bool,
}

impl Origin {
    /// The moment, in milliseconds since the epoch.
    pub fn at(&self) -> u64 {
        self.seen.at
    }

    /// What is counted there, and not any more when the check-in leads on.
    pub fn counted(&self) -> Option<Seen> {
        (!self.left).then_some(self.seen)
    }
}

impl Stretch {
    fn contains(&self, moment: u32) -> bool {
        self.to != self.from && moment.wrapping_sub(self.from) < self.to.wrapping_sub(self.from)
    }
}

impl CheckInDedup {
    /// Follows the stretches that lead on from a moment.
    pub fn follow(&self, from: impl Into<Seen>) -> Origin {
        let mut origin = Origin { seen: from.into(), entered: false, left: false };
        for _ in 0..STRETCHES {
            let moment = short(origin.at());
            let Some(stretch) = self.stretches.iter().find(|stretch| stretch.contains(moment)) else { break };
            let at = origin.at() + u64::from(stretch.to.wrapping_sub(moment));
            let entered = stretch.entered != 0 && stretch.entered.wrapping_sub(moment) as i32 > 0;
            origin = Origin {
                seen: Seen { at, later: stretch.later },
                entered: origin.entered || entered,
                left: stretch.left,
            };
        }
        origin
    }

    /// Since when the steps that end at a moment have led on from each other; `None`: none ends there.
    pub fn since(&self, at: u64) -> Option<u64> {
        let moment = short(at);
        let stretch =
            self.stretches.iter().find(|stretch| stretch.to != stretch.from && stretch.to == moment)?;
        Some(at.saturating_sub(stretch.to.wrapping_sub(stretch.from).into()))
    }

    /// The same with one step more, which starts where [`CheckInDedup::follow`] has led; the oldest stretch is forgotten
    /// when there is no room for another.
    #[must_use]
    pub fn with(mut self, from: u64, to: impl Into<Seen>, step: Step) -> Self {
        let to: Seen = to.into();
        let (from, later, to) = (short(from), to.later, short(to.at));
        let entered = if step == Step::Enters { to.max(1) } else { 0 };
        let left = step == Step::Leaves;
        let last = self.stretches.iter_mut().find(|stretch| stretch.to != stretch.from && stretch.to == from);
        if let Some(stretch) = last {
            let entered = stretch.entered.max(entered);
            *stretch = Stretch { to, entered, later, left, ..*stretch };
        } else {
            self.stretches.rotate_right(1);
            if let Some(first) = self.stretches.first_mut() {
                *first = Stretch { from, to, entered, later, left };
            }
        }
        self
    }
}

fn short(time: u64) -> u32 {
    time as u32
}
