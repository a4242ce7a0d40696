//! A room that only observes judges as one that is enforced.

use anteroom_sim::planet::Planet;
use anteroom_sim::scenario::{Scenario, shipped};

/// All that is measured, but for the size of reports: they count those who passed.
fn measured(mode: &str, share: Option<f64>) -> serde_json::Value {
    let mut scenario: Scenario = shipped("spike3").unwrap();
    scenario.minutes = 12;
    scenario.room.insert("mode".to_owned(), mode.into());
    if let Some(share) = share {
        scenario.room.insert("enforce_share".to_owned(), share.into());
    }
    let measured = Planet::new(&scenario, None, Some(6), 3).unwrap().with_history().run(&mut |_| {});
    assert!(measured.queued > 500 && measured.admitted > 500, "{} {}", measured.queued, measured.admitted);
    let mut measured = serde_json::to_value(&measured).unwrap();
    measured.as_object_mut().unwrap().remove("bytes").unwrap();
    measured
}

#[test]
fn the_same_visitors_are_judged_the_same_whether_the_room_observes_or_enforces() {
    let enforced = measured("enforce", None);
    assert_eq!(measured("observe", None), enforced);
    assert_eq!(measured("observe", Some(0.3)), enforced);
}
