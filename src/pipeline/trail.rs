//! A ticket's last steps, against counting one visitor twice.
//!
//! Every check-in takes a visitor from one moment to a later one: from where the cookie says that it was counted
//! last. Taken literally, check-ins may come in any order and from any colo, and the sums are right. Only when two
//! of them start from the same moment (parallel requests, a retry, an old cookie) would the visitor count twice:
//! then the second goes on from where the first has led.

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
}

/// The last stretches of one ticket: 36 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trail {
    stretches: [Stretch; STRETCHES],
}

/// Where a check-in really starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The moment, in milliseconds since the epoch.
    pub at: u64,
    /// Whether the visitor has entered on the way there.
    pub entered: bool,
}

impl Stretch {
    fn holds(&self, moment: u32) -> bool {
        self.to != self.from && moment.wrapping_sub(self.from) < self.to.wrapping_sub(self.from)
    }
}

impl Trail {
    /// Follows the stretches that lead on from a moment.
    pub fn follow(&self, from: u64) -> Origin {
        let mut at = from;
        let mut entered = false;
        for _ in 0..STRETCHES {
            let moment = short(at);
            let Some(stretch) = self.stretches.iter().find(|stretch| stretch.holds(moment)) else { break };
            entered |= stretch.entered != 0 && stretch.entered.wrapping_sub(moment) as i32 > 0;
            at += u64::from(stretch.to.wrapping_sub(moment));
        }
        Origin { at, entered }
    }

    /// The trail with one step more, which starts where [`Trail::follow`] has led; the oldest stretch is forgotten
    /// when there is no room for another.
    #[must_use]
    pub fn with(mut self, from: u64, to: u64, enters: bool) -> Self {
        let (from, to) = (short(from), short(to));
        let entered = if enters { to.max(1) } else { 0 };
        let last = self.stretches.iter_mut().find(|stretch| stretch.to != stretch.from && stretch.to == from);
        if let Some(stretch) = last {
            stretch.to = to;
            stretch.entered = stretch.entered.max(entered);
        } else {
            self.stretches.rotate_right(1);
            if let Some(first) = self.stretches.first_mut() {
                *first = Stretch { from, to, entered };
            }
        }
        self
    }
}

fn short(time: u64) -> u32 {
    time as u32
}
