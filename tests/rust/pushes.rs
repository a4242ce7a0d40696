//! What a data center tells Global, how soon, and what it writes down for it.

use std::rc::Rc;

use anteroom::admission::{Level, NumberAsk, Outcome, StateKey, minute_of};
use anteroom::counts::{CheckIn, ColoReport, WorkerReport};
use anteroom::machines::{Call, Context, Counter, DataCenter, Effect, Input, ObjectMachine, Stored};
use anteroom::protocol::messages::{StateAnswer, Take, VERSION};
use anteroom::protocol::{Answer, Request};
use anteroom::room::{Room, SlotStrategy};
use anteroom::steering::{Order, Overrides, Steering};
use serde_json::json;

use crate::articles::room;
use crate::global::{Platform, status};

const NOW: u64 = 28_000_000 * 60_000 + 30_000;
/// From a check-in to the worker's report.
const REPORT_MS: u64 = 1_000;
/// How long a message may be on its way.
const WAY_MS: u64 = 500;

/// A data center over a storage and an alarm; Global answers at once.
struct Colo {
    room: Rc<Room>,
    machine: DataCenter,
    stored: Stored,
    alarm: Option<u64>,
    now: u64,
    /// How full the room is, as Global says.
    level: Level,
    records: usize,
    alarms: usize,
    pushes: Vec<(u64, ColoReport)>,
    visitors: u64,
}

impl Colo {
    fn new(level: Level) -> Self {
        let room = Rc::new(Room {
            slot_strategy: SlotStrategy::Leases,
            session_duration: 5,
            ..room(1_000, 1_000, 5)
        });
        let machine = DataCenter::restore(&room, "AMS", &Stored::new(), 7, NOW);
        let (stored, pushes) = (Stored::new(), Vec::new());
        let mut colo = Self {
            room,
            machine,
            stored,
            alarm: None,
            now: NOW,
            level,
            records: 0,
            alarms: 0,
            pushes,
            visitors: 0,
        };
        // It knows how full the room is.
        colo.enters();
        colo.pass(REPORT_MS);
        (colo.records, colo.alarms) = (0, 0);
        colo.pushes.clear();
        colo
    }

    fn tell(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut effects = Vec::new();
            let context = Context { room: &self.room, colo: "AMS", deadline_ms: 500, now: self.now };
            self.machine.handle(&context, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Store { key, bytes, .. } => {
                        self.records += 1;
                        self.stored.insert(key, bytes);
                    }
                    Effect::SetAlarm { at } => {
                        self.alarms += 1;
                        self.alarm = Some(at);
                    }
                    Effect::Call(call) => {
                        let Request::GlobalPush(report) = call.request else { panic!("{:?}", call.request) };
                        self.pushes.push((self.now, *report));
                        let key = StateKey { level: self.level, taken_at: self.now, ..StateKey::default() };
                        let answer = StateAnswer { v: VERSION, state: Some(key) };
                        let answer = Some(Answer::GlobalPush(Box::new(answer)));
                        inputs.push(Input::Answered { call: call.number, answer });
                    }
                    _ => {}
                }
            }
        }
    }

    /// A worker that has just started reports what a visitor did. Returns the visitor's number.
    fn reports(&mut self, check_in: impl FnOnce(u64, u64) -> CheckIn) -> u64 {
        self.visitors += 1;
        let check_ins = vec![check_in(self.visitors, self.now)];
        let report = WorkerReport {
            v: VERSION,
            worker: self.visitors,
            first: 1,
            check_ins,
            ..WorkerReport::default()
        };
        self.tell(Input::Asked { from: self.visitors, request: Request::DataCenterReport(Box::new(report)) });
        self.visitors
    }

    fn enters(&mut self) -> u64 {
        self.reports(|id, at| {
            let minute = minute_of(at);
            CheckIn::Enter { id, bucket: minute, from: None, at, minute, numbered: true }
        })
    }

    fn pass(&mut self, milliseconds: u64) {
        let until = self.now + milliseconds;
        while let Some(at) = self.alarm.filter(|at| *at <= until) {
            (self.now, self.alarm) = (self.now.max(at), None);
            self.tell(Input::Alarm);
        }
        self.now = until;
    }

    /// It has lost its memory.
    fn restart(&mut self) {
        self.machine = DataCenter::restore(&self.room, "AMS", &self.stored, self.now, self.now);
    }

    fn active(&self) -> i64 {
        self.pushes.last().map_or(0, |(_, report)| report.counts.active_at(&self.room, self.now))
    }
}

/// What it calls in answer to an input at a time.
fn calls_of(machine: &mut impl ObjectMachine, room: &Rc<Room>, now: u64, input: Input) -> Vec<Call> {
    let mut effects = Vec::new();
    machine.handle(&Context { room, colo: "AMS", deadline_ms: 500, now }, input, &mut effects);
    let calls = effects.into_iter().filter_map(|effect| match effect {
        Effect::Call(call) => Some(call),
        _ => None,
    });
    calls.collect()
}

#[test]
fn an_order_reaches_the_counter_though_no_worker_knows_of_it() {
    let mut steering = Steering::default();
    let closed_by = Order::read(&json!({ "set": { "queue_all": true } }).to_string()).unwrap();
    for (strategy, is_told) in
        [(SlotStrategy::Leases, true), (SlotStrategy::Counters, true), (SlotStrategy::WorkerSlots, false)]
    {
        let room = Rc::new(Room { slot_strategy: strategy, ..room(1_000, 1_000, 5) });
        steering.obey(&room, &closed_by, "anna", NOW).unwrap();
        let mut data_center = DataCenter::restore(&room, "AMS", &Stored::new(), 7, NOW);
        let key = StateKey { steering: steering.overrides(), taken_at: NOW, ..StateKey::default() };
        let order = Request::DataCenterRefresh(Box::new(StateAnswer { v: VERSION, state: Some(key) }));
        let ordered = Input::Asked { from: 1, request: order };
        let told = calls_of(&mut data_center, &room, NOW, ordered.clone());
        assert_eq!(told.len(), usize::from(is_told), "{strategy:?}: {told:?}");
        let Some(lost) = told.first() else { continue };
        assert_eq!(calls_of(&mut data_center, &room, NOW, ordered.clone()), [], "one call at a time");

        let failed = Input::Answered { call: lost.number, answer: None };
        assert_eq!(calls_of(&mut data_center, &room, NOW + 500, failed), []);
        let again = data_center.next_timer().expect("it tries again");
        assert!(again <= NOW + 1_000, "within the three seconds that are promised");
        let told = calls_of(&mut data_center, &room, again, Input::Timer);
        let [Call { number, request: Request::CounterTake(take), .. }] = told.as_slice() else {
            panic!("{told:?}")
        };

        let mut counter = Counter::restore(&Stored::new(), 8, again);
        let mut answers = |from: u64, take: &Take| {
            let mut effects = Vec::new();
            let context = Context { room: &room, colo: "AMS", deadline_ms: 500, now: again };
            let request = Request::CounterTake(Box::new(take.clone()));
            counter.handle(&context, Input::Asked { from, request }, &mut effects);
            effects.into_iter().find_map(|effect| match effect {
                Effect::Reply { answer: Answer::CounterTake(taken), .. } => Some(*taken),
                _ => None,
            })
        };
        let heard = answers(1, take).expect("an answer");
        let (limit, owned) = (1_000, 1_000);
        let ask = NumberAsk { id: 9, bucket: 1, waits: false, minute: minute_of(again), limit, owned };
        let knows_nothing = Take { asks: vec![ask], steering: Overrides::default(), ..(**take).clone() };
        let refused = answers(2, &knows_nothing).expect("an answer without a call to the pool");
        assert!(matches!(refused.outcomes.as_slice(), [Outcome::Refused { .. }]), "{refused:?}");

        let answer = Some(Answer::CounterTake(Box::new(heard)));
        let heard = Input::Answered { call: *number, answer };
        assert_eq!(calls_of(&mut data_center, &room, again + 5, heard), []);
        assert_eq!(data_center.next_timer(), None);
        assert_eq!(calls_of(&mut data_center, &room, again + 5, ordered), [], "it knows");
    }
}

#[test]
fn what_is_reported_is_told_in_the_time_that_is_promised_and_written_down_once_a_push() {
    for (level, at_most) in [(Level::Queueing, 31), (Level::Busy, 11)] {
        let mut colo = Colo::new(level);
        let mut reported = Vec::new();
        for _ in 0..60 {
            colo.enters();
            reported.push(colo.now);
            colo.pass(REPORT_MS);
        }
        let pushes = colo.pushes.len();
        assert!((9..=at_most).contains(&pushes), "{level:?}: {pushes} pushes in a minute");
        assert!(colo.records <= pushes, "{level:?}: {} records for {pushes} pushes", colo.records);
        assert!(colo.alarms <= pushes + 1, "{level:?}: {} alarms for {pushes} pushes", colo.alarms);
        colo.pass(10_000);
        for at in reported {
            let (told_at, report) = colo.pushes.iter().find(|(told_at, _)| *told_at >= at).expect("a push");
            let late = told_at - at + REPORT_MS + WAY_MS;
            assert!(late <= report.late, "{level:?}: {late} ms after the check-in, {} promised", report.late);
        }
    }
}

#[test]
fn of_the_first_who_wait_global_hears_at_once() {
    let mut colo = Colo::new(Level::Busy);
    colo.pass(1_000);
    let at = colo.now;
    colo.reports(|id, at| CheckIn::Wait { id, bucket: minute_of(at), from: None, at: at.into() });
    colo.pass(250);
    let told =
        colo.pushes.iter().find(|(_, report)| report.counts.waiting_at(&colo.room, colo.now).len() == 1);
    assert!(told.is_some_and(|(told_at, _)| *told_at <= at + 250));
}

#[test]
fn what_a_global_that_restarts_may_have_lost_is_told_once_more() {
    let mut colo = Colo::new(Level::Busy);
    colo.pass(60_000);
    colo.pushes.clear();
    colo.enters();
    colo.pass(7_000);
    let times: Vec<u64> = colo.pushes.iter().map(|(at, _)| *at).collect();
    assert_eq!(times.len(), 2, "{times:?}");
    assert!(
        times[1] - times[0] >= 5_000,
        "Global has stored what it heard in the last five seconds at the latest"
    );
    assert_eq!(colo.active(), 2);
}

#[test]
fn what_is_reported_so_late_that_nobody_will_ask_again_outlives_a_restart() {
    let mut colo = Colo::new(Level::Queueing);
    colo.enters();
    // The room was calm when the visitor came: the worker reported as late as that allows.
    colo.reports(|id, at| {
        let at = at - 27_000;
        CheckIn::Enter { id, bucket: minute_of(at), from: None, at, minute: minute_of(at), numbered: true }
    });
    colo.restart();
    colo.pass(10_000);
    assert_eq!(colo.active(), 3, "the one who was there before, and both");
}

#[test]
fn where_nothing_happens_a_colo_says_that_it_is_there_and_writes_nothing_down() {
    let mut colo = Colo::new(Level::Busy);
    colo.pass(40_000);
    (colo.records, colo.alarms) = (0, 0);
    colo.pushes.clear();
    colo.pass(240_000);
    assert_eq!(colo.records, 0);
    assert_eq!(colo.active(), 1, "its user is active for five minutes");
    let (pushes, alarms) = (colo.pushes.len(), colo.alarms);
    assert!((2..=3).contains(&pushes), "{pushes} pushes in four minutes");
    assert_eq!(alarms, pushes);
    // One that has lost its memory does not know whom it has told that the room is calm: it says sooner how late reports are.
    colo.restart();
    colo.pass(600_000);
    assert_eq!(colo.records, 0);
    assert_eq!(colo.pushes.last().map(|(_, report)| report.next_in), Some(0), "nobody is active: it sleeps");
}

#[test]
fn a_push_that_is_due_leaves_with_the_report_and_needs_no_alarm() {
    let mut colo = Colo::new(Level::Busy);
    colo.pass(20_000);
    (colo.records, colo.alarms) = (0, 0);
    colo.pushes.clear();
    colo.enters();
    assert_eq!((colo.pushes.len(), colo.records), (1, 1));
    assert_eq!(colo.active(), 2);
}

#[test]
fn global_stores_what_no_newer_report_will_replace_soon_and_waits_for_what_it_has_lost() {
    let mut shop =
        Platform::of(json!({ "ROOM_SHOP": { "total_active_users": 100, "new_users_per_minute": 100 } }));
    let mut last = 0;
    let mut push = |shop: &mut Platform, colo: &str, next_in: u64| {
        last += 1;
        let report = ColoReport { next_in, ..shop.report(colo, last) };
        shop.answer(Request::GlobalPush(Box::new(report)));
    };
    // Those of its first seconds are stored at once.
    shop.pass(10_000);
    push(&mut shop, "SIN", 100_000);
    for _ in 0..3 {
        push(&mut shop, "AMS", 6_000);
        shop.pass(6_000);
    }
    let stores = |shop: &Platform, colo: &str| {
        let key = format!("colo/{colo}");
        shop.written.iter().filter(|written| **written == key).count()
    };
    assert_eq!(stores(&shop, "SIN"), 1, "the next one may take long");
    assert_eq!(stores(&shop, "AMS"), 1, "one of three reports");
    push(&mut shop, "AMS", 6_000);
    shop.confirm();
    shop.restart();
    shop.pass(6_000);
    let missed = status(&mut shop);
    let colo =
        missed["colos"].as_array().unwrap().iter().find(|colo| colo["colo"] == "AMS").cloned().unwrap();
    assert_eq!(colo["cut_off"], true, "its last report is lost, and the next one has yet to come: {colo}");
    push(&mut shop, "AMS", 6_000);
    let active: i64 = status(&mut shop)["colos"]
        .as_array()
        .unwrap()
        .iter()
        .map(|colo| colo["active"].as_i64().unwrap())
        .sum();
    assert_eq!(active, 6, "all that was counted");
}
