//! How an isolate learns which rooms are made at run time: when it looks, whom it asks, and for how long a copy will do.
//!
//! Only versions are known here. What a version says is carried by whoever carries out the steps: text, from the object that
//! keeps it to the data center's cache and to the isolate.

/// Time between two looks of an isolate into its data center's cache, in milliseconds. With [`FRESH_MS`] and a call it is less
/// than three seconds until a change is in force.
pub const LOOK_MS: u64 = 500;
/// For so long a copy in the cache is as good as asking, in milliseconds.
pub const FRESH_MS: u64 = 1_200;
/// The same for a copy that says that nothing was ever made, where rooms are deployed: who has these need not pay for others.
pub const FRESH_IF_EMPTY_MS: u64 = 30_000;
/// For so long after one isolate has said that it asks, the others of its data center do not, in milliseconds.
pub const CLAIM_MS: u64 = 500;
/// Time until an isolate looks whether the other one has been answered, or asks once more, in milliseconds.
pub const AGAIN_MS: u64 = 200;
/// For operators, whose tokens are among what there is, nothing older will do, in milliseconds.
pub const OPERATORS_MS: u64 = 1_000;
/// Time between two calls for a version that others know, in milliseconds.
pub const LEAST_MS: u64 = 100;

/// A copy in the cache of a data center.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// What it says.
    pub version: u64,
    /// When it was put there, in milliseconds since the epoch.
    pub kept_at: u64,
}

impl Copy {
    /// Whether it is as good as asking. Where clocks differ by more than that, it is not. `may_be_first`: somebody waits for the
    /// first thing that is ever made.
    pub fn is_fresh(&self, may_be_first: bool, now: u64) -> bool {
        let lasts = if self.version == 0 && !may_be_first { FRESH_IF_EMPTY_MS } else { FRESH_MS };
        now.abs_diff(self.kept_at) < lasts
    }
}

/// What an isolate remembers. Versions count the changes; 0: nothing was ever made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Learner {
    has_tried: bool,
    looked_at: u64,
    known: Option<u64>,
    heard: u64,
    /// How often the object has not answered, one time after the other.
    failures: u32,
    another_asks: bool,
    /// When the last look began that is good enough for operators, and when the last one for operators did.
    learned_at: u64,
    looked_for_operators_at: u64,
}

impl Learner {
    /// Whether it has tried to learn what there is: no request is decided before.
    pub fn has_tried(&self) -> bool {
        self.has_tried
    }

    /// The version that it goes by; `None`: nothing is known.
    pub fn known(&self) -> Option<u64> {
        self.known
    }

    /// The newest version that it has heard of: what it tells whomever it talks to.
    pub fn tells(&self) -> u64 {
        self.heard.max(self.known.unwrap_or_default())
    }

    /// Somebody knows this version.
    pub fn hears(&mut self, version: u64) {
        self.heard = self.heard.max(version);
    }

    /// Whether somebody knows of a newer version.
    pub fn is_behind(&self) -> bool {
        self.tells() > self.known.unwrap_or_default()
    }

    /// A look that is due now, if one is. `may_be_made`: somebody could make the first room.
    pub fn due(&mut self, may_be_made: bool, now: u64) -> Option<Look> {
        let wait = match self.failures {
            0 if self.is_behind() => LEAST_MS,
            0 if self.another_asks => AGAIN_MS,
            1 => AGAIN_MS,
            _ => LOOK_MS,
        };
        let nothing_comes = self.known == Some(0) && !self.is_behind() && !may_be_made;
        (now >= self.looked_at.saturating_add(wait) && !nothing_comes)
            .then(|| self.look(self.is_behind(), now))
    }

    /// A look at this time. `anew`: the object is asked, whatever the cache says.
    pub fn look(&mut self, anew: bool, now: u64) -> Look {
        self.looked_at = now;
        Look { anew, heard: self.heard, at: now, ..Look::default() }
    }

    /// Whether what is known is too old for operators, whose token may have been made, or revoked, since.
    pub fn is_old(&self, now: u64) -> bool {
        now >= self.learned_at.saturating_add(OPERATORS_MS)
    }

    /// A look for operators at this time; `None`: another one goes on.
    pub fn look_for_operators(&mut self, now: u64) -> Option<Look> {
        let last = self.looked_for_operators_at;
        if last > self.learned_at && now < last.saturating_add(OPERATORS_MS) {
            return None;
        }
        self.looked_for_operators_at = now;
        Some(Look { for_operators: true, ..self.look(false, now) })
    }

    /// A look is over. Returns whether there is another version to go by.
    pub fn looked(&mut self, look: &Look) -> bool {
        self.has_tried = true;
        self.failures = if look.answered == Some(false) { self.failures.saturating_add(1) } else { 0 };
        self.another_asks = look.another_asks;
        // A copy that says that there is nothing may be older than operators' tokens.
        let counts = look.answered.is_some() || look.for_operators;
        if counts || !look.another_asks && look.newest.or(self.known) > Some(0) {
            self.learned_at = self.learned_at.max(look.at);
        }
        // The object knows best: what was heard before it was asked is true no more.
        if look.answered == Some(true) && self.heard <= look.heard {
            self.heard = 0;
        }
        look.newest.is_some_and(|newest| self.known != Some(newest))
    }

    /// From now on it goes by this version.
    pub fn learned(&mut self, version: u64) {
        self.known = Some(version);
    }
}

/// One look: into the cache, and where its copy will not do, at the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    at: u64,
    anew: bool,
    for_operators: bool,
    heard: u64,
    newest: Option<u64>,
    /// Whether the object has answered; `None`: it was not asked.
    answered: Option<bool>,
    another_asks: bool,
}

/// What a look wants to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Read the copy in the cache: [`Look::found`].
    Read,
    /// Read in the cache when an isolate has last said that it asks: [`Look::claimed`].
    ReadClaim,
    /// Say there that this one asks; then [`Step::Ask`].
    Claim,
    /// Ask the object for what is newer than what the isolate has: [`Look::told`].
    Ask,
    /// Put what the object has told, or has confirmed, into the cache.
    Keep,
    /// Nothing: [`Learner::looked`].
    End,
}

impl Look {
    /// What is done first.
    pub fn begin(&self) -> Step {
        if self.anew { Step::Ask } else { Step::Read }
    }

    /// What the cache has. `learner`: whose look it is; `has_rooms`: some are deployed. Where there are none, the first one
    /// that is made is all there is.
    pub fn found(&mut self, learner: &Learner, copy: Option<Copy>, has_rooms: bool, now: u64) -> Step {
        // An older one is of no use: caches keep what they like.
        let newest = copy
            .map(|copy| copy.version)
            .filter(|version| learner.known.is_none_or(|known| *version > known));
        self.newest = newest;
        if copy.is_some_and(|copy| copy.is_fresh(self.for_operators || !has_rooms, now)) {
            Step::End
        } else {
            Step::ReadClaim
        }
    }

    /// When an isolate of this data center has said that it asks. Who knows anything leaves it to that one, but operators wait for
    /// an answer.
    pub fn claimed(&mut self, learner: &Learner, at: Option<u64>, now: u64) -> Step {
        let knows = learner.known.or(self.newest).is_some();
        self.another_asks = knows && !self.for_operators && at.is_some_and(|at| now.abs_diff(at) < CLAIM_MS);
        if self.another_asks { Step::End } else { Step::Claim }
    }

    /// The version that the object has; `None`: it has not answered.
    pub fn told(&mut self, version: Option<u64>) -> Step {
        self.answered = Some(version.is_some());
        match version {
            Some(version) => {
                self.newest = Some(version);
                Step::Keep
            }
            None => Step::End,
        }
    }
}
