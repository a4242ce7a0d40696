//! How isolates of a data center learn of rooms that are made at run time.

use anteroom::machines::configuration::{AGAIN_MS, Copy, FRESH_MS, LOOK_MS, Learner, Step};

/// A cache, the object behind it, and how often that was asked.
#[derive(Default)]
struct DataCenter {
    copy: Option<Copy>,
    claimed_at: Option<u64>,
    /// What the object answers; `None`: nothing.
    object: Option<u64>,
    asked: u64,
}

impl DataCenter {
    /// Carries a look out, unless none is due.
    fn keep_up(&mut self, learner: &mut Learner, now: u64) -> Option<u64> {
        if let Some(mut look) = learner.due(true, now) {
            let (mut step, mut text) = (look.begin(), self.copy.map(|copy| copy.version));
            while step != Step::End {
                step = match step {
                    Step::Read => look.found(learner, self.copy, true, now),
                    Step::ReadClaim => look.claimed(learner, self.claimed_at, now),
                    Step::Claim => {
                        self.claimed_at = Some(now);
                        Step::Ask
                    }
                    Step::Ask => {
                        self.asked += 1;
                        text = self.object.or(text);
                        look.told(self.object)
                    }
                    Step::Keep => {
                        self.copy = text.map(|version| Copy { version, kept_at: now });
                        Step::End
                    }
                    Step::End => Step::End,
                };
            }
            if learner.looked(&look)
                && let Some(version) = text
            {
                learner.learned(version);
            }
        }
        learner.known()
    }
}

const BEGIN: u64 = 1_800_000_000_000;

#[test]
fn one_isolate_asks_and_the_others_read_the_copy() {
    let mut here = DataCenter { object: Some(1), ..DataCenter::default() };
    let mut isolates = [Learner::default(), Learner::default()];
    for learner in &mut isolates {
        assert_eq!(here.keep_up(learner, BEGIN), Some(1));
    }
    assert_eq!(here.asked, 1);
    here.object = Some(2);
    // Until the copy is too old.
    for learner in &mut isolates {
        assert_eq!(here.keep_up(learner, BEGIN + FRESH_MS - 1), Some(1));
    }
    let [first, second] = &mut isolates;
    assert_eq!(here.keep_up(first, BEGIN + FRESH_MS + LOOK_MS), Some(2));
    assert_eq!(here.keep_up(second, BEGIN + FRESH_MS + LOOK_MS), Some(2));
    assert_eq!(here.asked, 2);
}

#[test]
fn while_one_asks_nobody_else_does_who_knows_anything() {
    let mut here = DataCenter { object: Some(1), ..DataCenter::default() };
    let mut known = Learner::default();
    here.keep_up(&mut known, BEGIN);
    let later = BEGIN + FRESH_MS + LOOK_MS;
    here.claimed_at = Some(later);
    assert_eq!(here.keep_up(&mut known, later), Some(1));
    assert_eq!(here.asked, 1);
    // It looks again soon, and asks where nothing has come of it.
    here.claimed_at = Some(0);
    here.keep_up(&mut known, later + AGAIN_MS);
    assert_eq!(here.asked, 2);
    // Who knows nothing cannot wait for another.
    let mut empty = DataCenter { object: Some(1), claimed_at: Some(later), ..DataCenter::default() };
    assert_eq!(empty.keep_up(&mut Learner::default(), later), Some(1));
}

#[test]
fn while_nothing_was_ever_made_nobody_asks_for_30_seconds_unless_somebody_tells() {
    let mut here = DataCenter { object: Some(0), ..DataCenter::default() };
    let mut learner = Learner::default();
    for now in (BEGIN..BEGIN + 29_900).step_by(100) {
        assert_eq!(here.keep_up(&mut learner, now), Some(0));
    }
    assert_eq!(here.asked, 1);
    here.object = Some(1);
    learner.hears(1);
    assert_eq!(here.keep_up(&mut learner, BEGIN + 29_950), Some(1));
    assert_eq!((here.asked, learner.is_behind()), (2, false));
    let mut other = Learner::default();
    other.learned(0);
    assert_eq!(here.keep_up(&mut other, BEGIN + 29_960), Some(1), "all of the data center know it");
    // Where nobody can make any, nobody looks.
    let mut nobody = Learner::default();
    nobody.learned(0);
    assert_eq!(nobody.due(false, BEGIN + 90_000), None);
}

#[test]
fn what_is_known_counts_however_old_while_the_object_is_away() {
    let copy = Some(Copy { version: 7, kept_at: BEGIN });
    let mut here = DataCenter { copy, ..DataCenter::default() };
    let later = BEGIN + 20 * 86_400_000;
    let mut learner = Learner::default();
    assert_eq!(here.keep_up(&mut learner, later), Some(7));
    assert!(learner.has_tried());
    // It asks again and again, but not all the time.
    for now in (later..later + 10_000).step_by(50) {
        assert_eq!(here.keep_up(&mut learner, now), Some(7));
    }
    assert!((10..=10_000 / LOOK_MS + 2).contains(&here.asked), "{}", here.asked);
    let mut alone = DataCenter::default();
    let mut learner = Learner::default();
    assert_eq!((alone.keep_up(&mut learner, later), learner.has_tried()), (None, true));
    // An older copy takes nothing away.
    here.copy = Some(Copy { version: 6, kept_at: later + 20_000 });
    let mut newer = Learner::default();
    newer.learned(7);
    assert_eq!(here.keep_up(&mut newer, later + 20_000), Some(7));
}

#[test]
fn what_was_heard_and_is_not_so_is_forgotten() {
    let mut here = DataCenter { object: Some(3), ..DataCenter::default() };
    let mut learner = Learner::default();
    here.keep_up(&mut learner, BEGIN);
    learner.hears(9);
    assert_eq!(learner.tells(), 9);
    assert_eq!(here.keep_up(&mut learner, BEGIN + 200), Some(3));
    assert_eq!((learner.tells(), learner.is_behind()), (3, false));
}
