//! Global as a machine: what is stored before it is answered, who is told and how long anybody waits for that, what is
//! repeated, and what a restart may lose.

use std::collections::BTreeMap;
use std::rc::Rc;

use anteroom::admission::{minute_of, start_of};
use anteroom::config::{Room, Rooms, Webhooks};
use anteroom::counts::{CheckIn, DataCenter};
use anteroom::history::{Query, Record};
use anteroom::machines::{
    Attempt, Call, Context, Effect, Global, GlobalEffect, GlobalInput, Input, MemoryRows, ObjectMachine,
    Outcome, Outside, Rows, Series, Stored, problems,
};
use anteroom::protocol::messages::{
    ColoReport, OperatorAnswer, OperatorAsk, OriginHealth, StateRequest, UNWATCHED, VERSION, WorkerReport,
};
use anteroom::protocol::{Answer, Request, wire};
use serde_json::{Value, json};

pub const MINUTE: u64 = 60_000;
/// A whole hour.
pub const START: u64 = 28_000_020 * MINUTE;

/// A room's Global on a platform of a few lines: storage that may lose what is not confirmed, and an alarm.
pub struct Platform {
    room: Rc<Room>,
    webhooks: Webhooks,
    machine: Global,
    rows: MemoryRows,
    stored: Stored,
    alarm: Option<u64>,
    confirmed: (Stored, Option<u64>),
    colos: BTreeMap<String, DataCenter>,
    pub now: u64,
    asked: u64,
    /// The keys that were written to.
    pub written: Vec<String>,
    /// The owner has keys for push messages.
    pub pushes: bool,
}

impl Platform {
    fn new() -> Self {
        Self::of(json!({
            "ROOM_SHOP": {
                "total_active_users": 100, "new_users_per_minute": 100, "session_duration": 1,
                "health_checks": ["a", "b", "c"], "slot_strategy": "counters",
            },
        }))
    }

    pub fn of(vars: Value) -> Self {
        let vars: Vec<(String, Value)> = vars.as_object().unwrap().clone().into_iter().collect();
        let (rooms, errors) = Rooms::from_vars(vars.clone().into_iter());
        assert_eq!(errors, []);
        let (webhooks, errors) = Webhooks::from_vars(vars.into_iter(), &rooms);
        assert_eq!(errors, []);
        let room = Rc::new(rooms.get("shop").unwrap().clone());
        let (rows, stored) = (MemoryRows::default(), Stored::new());
        let machine = start(&room, &webhooks, &rows, &stored, Vec::new(), true, START);
        let confirmed = (Stored::new(), None);
        let colos = BTreeMap::new();
        Self {
            room,
            webhooks,
            machine,
            rows,
            stored,
            alarm: None,
            confirmed,
            colos,
            now: START,
            asked: 0,
            written: Vec::new(),
            pushes: true,
        }
    }

    /// Tells it something. Storage and the alarm are as it says; the rest of what it does is returned.
    pub fn tell(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        let context = Context { room: &self.room, colo: "", deadline_ms: 500, now: self.now };
        self.machine.handle(&context, input, &mut effects);
        effects.retain(|effect| {
            match effect {
                Effect::Store { key, bytes, background } => {
                    assert!(!background);
                    self.stored.insert(key.clone(), bytes.clone());
                    self.written.push(key.clone());
                }
                Effect::Delete { key } => drop(self.stored.remove(key)),
                Effect::SetAlarm { at } => self.alarm = Some(*at),
                _ => return true,
            }
            false
        });
        effects
    }

    pub fn ask(&mut self, request: Request) -> Vec<Effect> {
        self.asked += 1;
        self.tell(Input::Asked { from: self.asked, request })
    }

    /// What it answers at once.
    pub fn answer(&mut self, request: Request) -> Answer {
        let effects = self.ask(request);
        let from = self.asked;
        let answer = effects.into_iter().find_map(|effect| match effect {
            Effect::Reply { to, answer } if to == from => Some(answer),
            _ => None,
        });
        answer.expect("an answer at once")
    }

    pub fn confirm(&mut self) {
        self.rows.confirm();
        self.confirmed = (self.stored.clone(), self.alarm);
    }

    /// It ends, and is made anew. What is not confirmed is lost.
    pub fn restart(&mut self) {
        self.rows.roll_back();
        (self.stored, self.alarm) = self.confirmed.clone();
        let Self { room, webhooks, rows, stored, pushes, now, .. } = &*self;
        self.machine = start(room, webhooks, rows, stored, Vec::new(), *pushes, *now);
    }

    /// Lets time pass. Returns what it does when its alarm rings.
    pub fn pass(&mut self, milliseconds: u64) -> Vec<Effect> {
        let until = self.now + milliseconds;
        let mut effects = Vec::new();
        for _ in 0..10_000 {
            let Some(at) = self.alarm.filter(|at| *at <= until) else {
                self.now = until;
                return effects;
            };
            (self.now, self.alarm) = (self.now.max(at), None);
            let mut rung = self.tell(Input::Alarm);
            assert_eq!(rung.pop(), Some(Effect::AlarmDone));
            effects.extend(rung);
        }
        panic!("the alarm rings without end");
    }

    /// A colo reports, with a user who has just entered.
    fn push(&mut self, colo: &str, user: u64) -> Answer {
        let report = self.report(colo, user);
        self.answer(Request::GlobalPush(Box::new(report)))
    }

    /// A colo's report, which announces no other one: the colo is not missed when none comes.
    pub fn report(&mut self, colo: &str, user: u64) -> ColoReport {
        let (now, minute) = (self.now, minute_of(self.now));
        let enters = CheckIn::Enter { id: user, bucket: minute, from: None, at: now, minute, numbered: true };
        self.report_of(colo, user + 1, vec![enters])
    }

    /// A colo's report, of what a worker of it has told.
    pub fn report_of(&mut self, colo: &str, worker: u64, check_ins: Vec<CheckIn>) -> ColoReport {
        let (room, now) = (&self.room, self.now);
        let new = || DataCenter::restore(room, colo, 7, None, now);
        let data_center = self.colos.entry(colo.to_owned()).or_insert_with(new);
        let told = WorkerReport { v: VERSION, worker, first: 1, check_ins, ..WorkerReport::default() };
        data_center.receive(room, &told, now);
        let saved = data_center.save(room, now);
        ColoReport { next_in: 0, ..data_center.push(room, &saved, None, now) }
    }

    fn order(&mut self, order: &Value) -> Vec<Effect> {
        self.ask(Request::GlobalSteer(Box::new(OperatorAsk {
            v: VERSION,
            by: "anna".to_owned(),
            body: order.to_string(),
            ..OperatorAsk::default()
        })))
    }

    /// How it stands with steering: the view that operators get.
    fn steering(&mut self) -> Value {
        let answer = self.answer(Request::GlobalSteer(Box::default()));
        json_of(&answer).1
    }

    /// A check says that the origin is unhealthy: a notification.
    fn unhealthy(&mut self, check: &str) {
        let told = OriginHealth { v: VERSION, check: check.to_owned(), healthy: false, at: self.now };
        self.answer(Request::GlobalOriginHealth(Box::new(told)));
    }

    fn attempted(&mut self, number: u64, status: u16) -> Vec<Attempt> {
        let outcome = Outcome::Answered { status, retry_after: 0 };
        attempts(&self.tell(Input::Global(GlobalInput::Attempted { number, outcome })))
    }

    fn webhook(&mut self) -> Value {
        let answer = self.answer(Request::GlobalNotifications(Box::default()));
        json_of(&answer).1["webhooks"][0].clone()
    }

    fn minutes(&self) -> Vec<(u32, Record)> {
        let rows = self.rows.range(Series::Minutes, 0, u32::MAX).unwrap();
        rows.into_iter().map(|(minute, detail)| (minute, wire::decode(&detail).unwrap())).collect()
    }
}

fn start(
    room: &Rc<Room>,
    webhooks: &Webhooks,
    rows: &MemoryRows,
    stored: &Stored,
    sockets: Vec<Option<u64>>,
    pushes: bool,
    now: u64,
) -> Global {
    let outside = Outside {
        rows: Box::new(rows.clone()),
        webhooks: webhooks.clone(),
        reachable: webhooks.iter().map(|webhook| webhook.name.clone()).collect(),
        pushes,
        words: |kind, _| format!("in words: {kind}"),
        sockets,
        random: 7,
    };
    Global::restore(room, stored, outside, now).unwrap()
}

fn calls(effects: &[Effect]) -> Vec<Call> {
    let call = |effect: &Effect| if let Effect::Call(call) = effect { Some(call.clone()) } else { None };
    effects.iter().filter_map(call).collect()
}

fn names(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.name.as_str()).collect()
}

fn attempts(effects: &[Effect]) -> Vec<Attempt> {
    let attempt = |effect: &Effect| match effect {
        Effect::Global(GlobalEffect::Attempt(attempt)) => Some(attempt.as_ref().clone()),
        _ => None,
    };
    effects.iter().filter_map(attempt).collect()
}

fn texts(effects: &[Effect]) -> Vec<Value> {
    let text = |effect: &Effect| match effect {
        Effect::Global(GlobalEffect::Broadcast { text } | GlobalEffect::Accept { text, .. }) => {
            Some(serde_json::from_str(text).unwrap())
        }
        _ => None,
    };
    effects.iter().filter_map(text).collect()
}

fn replies(effects: &[Effect]) -> Vec<(u64, Answer)> {
    let reply = |effect: &Effect| match effect {
        Effect::Reply { to, answer } => Some((*to, answer.clone())),
        _ => None,
    };
    effects.iter().filter_map(reply).collect()
}

fn operator(answer: &Answer) -> &OperatorAnswer {
    match answer {
        Answer::GlobalStatus(answer)
        | Answer::GlobalSteer(answer)
        | Answer::GlobalAudit(answer)
        | Answer::GlobalNotifications(answer)
        | Answer::GlobalHistory(answer)
        | Answer::GlobalTotals(answer) => answer,
        other => panic!("{other:?} is for no operator"),
    }
}

fn json_of(answer: &Answer) -> (u16, Value) {
    let answer = operator(answer);
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}

fn heard(call: &Call) -> Input {
    Input::Answered { call: call.number, answer: Some(Answer::DataCenterRefresh(Box::new(()))) }
}

#[test]
fn an_order_is_told_to_all_colos_and_answered_when_they_have_heard() {
    let mut shop = Platform::new();
    shop.push("AMS", 1);
    shop.push("SIN", 2);
    let effects = shop.order(&json!({ "set": { "queue_all": true } }));
    assert!(shop.stored.contains_key("steering"), "stored before anybody hears of it");
    let told = calls(&effects);
    assert_eq!(names(&told), ["shop/AMS", "shop/SIN"]);
    for call in &told {
        let Request::DataCenterRefresh(state) = &call.request else { panic!("{call:?}") };
        assert!(shop.room.steered(&state.state.as_ref().unwrap().steering).queue_all);
    }
    assert_eq!(replies(&effects), [], "the operator waits");
    let asked = shop.asked;

    shop.now += 20;
    assert_eq!(replies(&shop.tell(heard(&told[0]))), []);
    let answered = replies(&shop.tell(heard(&told[1])));
    assert_eq!(answered[0].0, asked);
    assert_eq!(json_of(&answered[0].1).1["colos_in_force"], 2);
    assert_eq!(calls(&shop.pass(10_000)), [], "all know");
}

#[test]
fn a_colo_of_which_global_has_lost_a_report_is_told_of_an_order() {
    let mut shop = Platform::new();
    let announces = ColoReport { next_in: 10_000, ..shop.report("AMS", 1) };
    shop.answer(Request::GlobalPush(Box::new(announces)));
    shop.pass(10_000);
    shop.confirm();
    // It has no users any more, and sleeps.
    let last = ColoReport { sequence: shop.now, ..shop.report("AMS", 2) };
    shop.answer(Request::GlobalPush(Box::new(last)));
    shop.restart();
    shop.now += 60_000;

    let told = calls(&shop.order(&json!({ "set": { "queue_all": true } })));
    assert_eq!(names(&told), ["shop/AMS"]);
    shop.tell(Input::Answered { call: told[0].number, answer: None });
    assert_eq!(calls(&shop.pass(10_000)), [], "one that cannot be reached is not called again and again");
}

#[test]
fn an_override_ends_by_itself_and_is_logged_and_told() {
    let mut shop = Platform::new();
    shop.push("AMS", 1);
    shop.order(&json!({ "set": { "total_active_users": 50 }, "until": "2m", "reason": "slow" }));
    shop.pass(5_000);
    shop.confirm();
    shop.restart();
    shop.pass(115_000 - 1);
    let limit = |shop: &mut Platform| shop.steering()["fields"]["total_active_users"].clone();
    assert_eq!(
        (&limit(&mut shop)["value"], &limit(&mut shop)["override"]["reason"]),
        (&json!(50), &json!("slow"))
    );
    let told = calls(&shop.pass(1));
    let Some(Request::DataCenterRefresh(state)) = told.first().map(|call| &call.request) else {
        panic!("{told:?}")
    };
    assert_eq!(state.state.as_ref().unwrap().steering.version, 2, "told as after an order");
    assert_eq!((&limit(&mut shop)["value"], &limit(&mut shop)["override"]), (&json!(100), &Value::Null));
    let log = json_of(&shop.answer(Request::GlobalAudit(Box::default()))).1;
    let entry = &log["entries"][0];
    assert_eq!((&entry["kind"], &entry["before"], &entry["after"]), (&json!("end"), &json!(50), &json!(100)));
    assert_eq!(
        (&entry["by"], &entry["reason"], &entry["at"]),
        (&json!("anna"), &json!("slow"), &json!(shop.now))
    );
    let news = json_of(&shop.answer(Request::GlobalNotifications(Box::default()))).1;
    let kinds: Vec<&Value> = news["news"].as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["steered", "steered"], "no limits_changed besides");
}

#[test]
fn a_dry_run_says_what_an_order_would_put_in_force_and_changes_nothing() {
    let mut shop = Platform::new();
    shop.push("AMS", 1);
    shop.order(&json!({ "set": { "total_active_users": 50 } }));
    let before = shop.stored.clone();
    let tried = shop.order(&json!({ "clear": ["total_active_users"], "dry_run": true, "if_version": 1 }));
    let (status, view) = json_of(&replies(&tried)[0].1);
    assert_eq!((status, &view["fields"]["total_active_users"]["value"]), (200, &json!(100)));
    assert_eq!((shop.stored.clone(), calls(&tried)), (before, Vec::new()), "nobody is told");
    assert_eq!(shop.steering()["fields"]["total_active_users"]["value"], 50);
    let refused = shop.order(&json!({ "set": { "total_active_users": 0 }, "dry_run": true }));
    assert_eq!(json_of(&replies(&refused)[0].1).0, 400);
}

#[test]
fn an_operator_waits_800_ms_for_a_colo_that_is_told_again_until_it_has_heard() {
    let mut shop = Platform::new();
    shop.push("AMS", 1);
    shop.push("SIN", 2);
    let told = calls(&shop.order(&json!({ "set": { "queue_all": true } })));
    shop.tell(heard(&told[0]));
    assert_eq!(shop.machine.next_timer(), Some(shop.now + 800));
    shop.now += 799;
    assert_eq!(shop.tell(Input::Timer), []);
    shop.now += 1;
    let answered = replies(&shop.tell(Input::Timer));
    assert_eq!(json_of(&answered[0].1).1["colos_in_force"], 1, "it is said how many know");
    assert_eq!(shop.machine.next_timer(), None);

    for _ in 0..3 {
        let again = calls(&shop.pass(1_000));
        assert_eq!(names(&again), ["shop/SIN"]);
        shop.tell(Input::Answered { call: again[0].number, answer: None });
    }
    let again = calls(&shop.pass(1_000));
    shop.tell(heard(&again[0]));
    assert_eq!(calls(&shop.pass(2_000)), []);
    assert_eq!(shop.steering()["colos_in_force"], 2);
}

#[test]
fn what_is_confirmed_outlives_a_restart_and_what_is_not_has_never_been() {
    let mut shop = Platform::new();
    shop.push("AMS", 1);
    shop.order(&json!({ "set": { "total_active_users": 50 } }));
    shop.pass(5_000);
    shop.confirm();
    shop.order(&json!({ "set": { "queue_all": true } }));
    shop.push("SIN", 2);
    shop.pass(5_000);
    shop.restart();

    let steering = shop.steering();
    assert_eq!(steering["version"], 1);
    let audit = |shop: &mut Platform| json_of(&shop.answer(Request::GlobalAudit(Box::default()))).1;
    let log = audit(&mut shop);
    assert_eq!(log["entries"].as_array().unwrap().len(), 1);
    assert_eq!(log["entries"][0]["field"], "total_active_users");
    let colos: Vec<&str> = shop.machine.counts().colos().map(|(name, ..)| name).collect();
    assert_eq!(colos, ["AMS"]);
    // Whether it had heard of the order is not known, so it is told.
    assert_eq!(
        names(&calls(&{
            let mut effects = shop.tell(Input::Timer);
            effects.extend(shop.pass(1));
            effects
        })),
        ["shop/AMS"]
    );
}

#[test]
fn what_a_colo_says_before_it_falls_silent_outlives_a_restart_at_any_moment() {
    let mut shop = Platform::new();
    shop.pass(60_000);
    let colos = |shop: &Platform| shop.machine.counts().colos().count();
    for (next_in, known) in [(2_000, 0), (20_000, 1), (0, 1)] {
        let report = ColoReport { next_in, ..shop.report("AMS", next_in) };
        shop.answer(Request::GlobalPush(Box::new(report)));
        shop.confirm();
        shop.restart();
        assert_eq!(colos(&shop), known, "the next one comes in {next_in} ms");
        shop.pass(60_000);
    }
}

#[test]
fn shares_are_stored_before_anybody_is_told_of_them() {
    let mut shop = Platform::new();
    let asked =
        StateRequest { v: VERSION, minute: minute_of(START), given: None, colo: String::new(), leases: 0 };
    let context = Context { room: &shop.room, colo: "", deadline_ms: 500, now: START };
    let mut effects = Vec::new();
    let request = Request::GlobalState(Box::new(asked));
    shop.machine.handle(&context, Input::Asked { from: 1, request }, &mut effects);
    let stored =
        effects.iter().position(|effect| matches!(effect, Effect::Store { key, .. } if key == "meta"));
    let answered = effects.iter().position(|effect| matches!(effect, Effect::Reply { .. }));
    assert!(stored.unwrap() < answered.unwrap());
}

#[test]
fn a_minute_is_recorded_once_whatever_restarts() {
    let mut shop = Platform::new();
    for user in 0..5 {
        shop.push(["AMS", "SIN"][user as usize % 2], user);
        shop.pass(1_000);
    }
    shop.confirm();
    // It ends again and again, with what it had just written or without.
    for round in 0..60 {
        shop.pass(5_000);
        if round % 3 > 0 {
            shop.confirm();
        }
        shop.restart();
        shop.tell(Input::Timer);
    }
    let recorded = shop.minutes();
    let minutes: Vec<u32> = recorded.iter().map(|(minute, _)| *minute).collect();
    assert_eq!(minutes[0], minute_of(START));
    assert!(minutes.is_sorted_by(|one, next| one < next));
    let totals = json_of(&shop.answer(Request::GlobalTotals(Box::default()))).1;
    let sum: u64 = recorded.iter().map(|(_, record)| record.count(anteroom::history::Count::NewUsers)).sum();
    assert_eq!(totals["new_users"], sum);
    assert_eq!(sum, 5);
}

#[test]
fn a_minute_that_cannot_be_stored_is_recorded_later() {
    let mut shop = Platform::new();
    shop.push("AMS", 1);
    shop.rows.fail(true);
    shop.pass(3 * MINUTE);
    assert_eq!(shop.minutes(), []);
    shop.rows.fail(false);
    shop.pass(MINUTE);
    let recorded = shop.minutes();
    assert_eq!(recorded[0].0, minute_of(START));
    assert_eq!(recorded[0].1.count(anteroom::history::Count::NewUsers), 1);
}

#[test]
fn hours_are_summed_up_and_answered_with_the_minutes_that_follow() {
    let mut shop = Platform::new();
    let mut users = 0;
    while shop.now < START + 90 * MINUTE {
        users += 1;
        shop.push("AMS", users);
        shop.pass(MINUTE);
        if users % 10 == 0 {
            shop.confirm();
            shop.restart();
            shop.tell(Input::Timer);
        }
    }
    shop.pass(5 * MINUTE);
    let hours = shop.rows.range(Series::Hours, 0, u32::MAX).unwrap();
    assert_eq!(hours.len(), 1);
    let hour: Record = wire::decode(&hours[0].1).unwrap();
    assert_eq!((hours[0].0, hour.minutes), (minute_of(START) / 60, 60));
    let asked = |name: &str| match name {
        "from" => Some(START.to_string()),
        "resolution" => Some("hour".to_owned()),
        "fields" => Some("new_users".to_owned()),
        _ => None,
    };
    let query = Query::read(asked, shop.now).unwrap();
    let told = json_of(&shop.answer(Request::GlobalHistory(Box::new(query.ask())))).1;
    let rows = told["rows"].as_array().unwrap();
    let sum: f64 = rows.iter().map(|row| row[1].as_f64().unwrap()).sum();
    assert_eq!((rows.len(), sum), (2, users as f64));
}

/// A room with a webhook for all that is new but steering.
fn with_webhook() -> Platform {
    Platform::of(json!({
        "ROOM_SHOP": {
            "total_active_users": 100, "new_users_per_minute": 100, "health_checks": ["a", "b", "c"],
        },
        "WEBHOOK_CHAT": { "url": "https://chat.example.com/", "news": ["origin_unhealthy"] },
    }))
}

#[test]
fn an_attempt_is_repeated_with_the_same_id_until_it_is_taken_and_order_is_kept() {
    let mut shop = with_webhook();
    shop.unhealthy("a");
    shop.unhealthy("b");
    let mut waits = Vec::new();
    for tries in 1..=4 {
        let before = shop.now;
        let made = (0..1_000).find_map(|_| attempts(&shop.pass(100)).pop()).unwrap();
        waits.push(shop.now - before);
        assert_eq!((made.webhook.as_str(), made.tries, made.dropped), ("chat", tries, 0));
        assert_eq!(made.notification.text, "in words: origin_unhealthy");
        assert!(made.notification.id.ends_with("-a"), "the second waits for the first: {made:?}");
        assert_eq!(shop.attempted(made.number, 503), []);
        assert_eq!(shop.webhook()["last_failure"], "status 503");
        assert_eq!(shop.webhook()["pending"], 2);
    }
    for (wait, most) in waits[1..].iter().zip([5_000, 10_000, 20_000]) {
        assert!((most * 9 / 10 - 100..=most + 100).contains(wait), "{waits:?}");
    }
    let made = attempts(&shop.pass(MINUTE)).pop().unwrap();
    let next = shop.attempted(made.number, 204);
    assert!(next[0].notification.id.ends_with("-b"), "at once");
    assert_eq!(next[0].tries, 1);
    assert_eq!(shop.attempted(next[0].number, 200), []);
    assert_eq!(shop.webhook()["pending"], 0);
    assert_eq!(attempts(&shop.pass(10 * MINUTE)), []);
}

#[test]
fn what_was_on_its_way_when_global_ended_is_sent_again() {
    let mut shop = with_webhook();
    shop.unhealthy("a");
    shop.confirm();
    // It ends before the attempt is confirmed, and after it.
    let first = attempts(&shop.pass(1_000)).pop().unwrap();
    shop.restart();
    shop.tell(Input::Timer);
    let second = attempts(&shop.pass(1_000)).pop().unwrap();
    assert_eq!(first.notification, second.notification);
    shop.confirm();
    shop.restart();
    shop.tell(Input::Timer);
    assert_eq!(attempts(&shop.pass(3_000)), [], "the next one was planned before the message left");
    let third = attempts(&shop.pass(2_000)).pop().unwrap();
    assert_eq!((third.notification, third.tries), (first.notification, 2));
    assert_eq!(shop.attempted(999, 200), [], "an attempt of another life");
    shop.attempted(third.number, 200);
    shop.confirm();
    shop.restart();
    assert_eq!(shop.webhook()["pending"], 0);
}

#[test]
fn a_receiver_that_wants_nothing_any_more_is_left_alone_for_a_day() {
    let mut shop = with_webhook();
    shop.unhealthy("a");
    let made = attempts(&shop.pass(1_000)).pop().unwrap();
    shop.attempted(made.number, 410);
    shop.unhealthy("b");
    assert_eq!(attempts(&shop.pass(60 * MINUTE)), []);
    let webhook = shop.webhook();
    assert_eq!((&webhook["pending"], &webhook["dropped"]), (&json!(0), &json!(1)));
    shop.pass(24 * 60 * MINUTE);
    shop.unhealthy("c");
    let made = attempts(&shop.pass(1_000)).pop().unwrap();
    assert_eq!(made.dropped, 1);
    shop.attempted(made.number, 200);
    assert_eq!(shop.webhook()["dropped"], 0, "it was told so");
}

#[test]
fn what_cannot_be_delivered_for_a_day_is_given_up() {
    let mut shop = with_webhook();
    shop.unhealthy("a");
    let mut tries = 0;
    for _ in 0..26 {
        for attempt in attempts(&shop.pass(60 * MINUTE)) {
            tries += 1;
            let reason = "no answer".to_owned();
            let outcome = Outcome::Failed { reason };
            shop.tell(Input::Global(GlobalInput::Attempted { number: attempt.number, outcome }));
        }
    }
    assert!((20..60).contains(&tries), "{tries}");
    let webhook = shop.webhook();
    assert_eq!((&webhook["pending"], &webhook["dropped"]), (&json!(0), &json!(1)));
    assert_eq!(webhook["last_failure"], "no answer");
}

#[test]
fn those_who_look_are_told_once_a_second_and_until_their_session_is_over() {
    let mut shop = Platform::new();
    shop.push("AMS", 1);
    let join = |shop: &mut Platform, from: u64, ends: Option<u64>| {
        shop.tell(Input::Global(GlobalInput::Joined { from, ends }))
    };
    let effects = join(&mut shop, 100, Some(START + 10_000));
    assert_eq!(names(&calls(&effects)), ["shop/AMS"], "from now on it reports soon");
    let Some(Effect::Global(GlobalEffect::Accept { to: 100, .. })) = effects.last() else {
        panic!("{effects:?}")
    };
    shop.tell(heard(&calls(&effects)[0]));
    assert_eq!(texts(&effects)[0]["room"]["estimated_total_active_users"], 1);

    let mut sent = Vec::new();
    for user in 2..7 {
        shop.push("AMS", user);
        sent.extend(texts(&shop.pass(400)));
    }
    assert_eq!(sent.len(), 3, "at once, and in the two seconds that follow");
    shop.pass(10_000);
    let request = OperatorAsk { query: UNWATCHED.to_owned(), ..OperatorAsk::default() };
    let effects = shop.ask(Request::GlobalStatus(Box::new(request)));
    assert_eq!(texts(&effects), Vec::<Value>::new());
    let report = shop.report("AMS", 9);
    let effects = shop.ask(Request::GlobalPush(Box::new(report)));
    assert!(
        effects.contains(&Effect::Global(GlobalEffect::EndSessions { until: shop.now })),
        "the session is over: {effects:?}"
    );
    for from in 0..200 {
        join(&mut shop, from, None);
    }
    assert!(matches!(join(&mut shop, 200, None)[..], [Effect::Refuse { to: 200, status: 503, .. }]));
    shop.tell(Input::Global(GlobalInput::Sockets(Vec::new())));
    assert!(matches!(join(&mut shop, 201, None).last(), Some(Effect::Global(GlobalEffect::Accept { .. }))));
}

#[test]
fn sockets_that_outlive_the_object_are_told_on() {
    let mut shop = Platform::new();
    shop.machine = start(&shop.room, &shop.webhooks, &shop.rows, &shop.stored, vec![None], true, START);
    shop.push("AMS", 1);
    assert_eq!(texts(&shop.pass(1_000)).len(), 1);
    assert_eq!(texts(&shop.order(&json!({ "set": { "queue_all": true } })))[0]["type"], "news");
}

#[test]
fn the_log_is_told_newest_first_and_in_parts() {
    let mut shop = Platform::new();
    for users in 1..=5 {
        shop.order(&json!({ "set": { "total_active_users": users } }));
    }
    let mut ask = |query: &str| {
        let query = query.to_owned();
        let asked = OperatorAsk { query, ..OperatorAsk::default() };
        let (status, body) = json_of(&shop.answer(Request::GlobalAudit(Box::new(asked))));
        let entries = body["entries"].as_array().cloned().unwrap_or_default();
        (status, entries.iter().map(|entry| entry["id"].as_u64().unwrap()).collect::<Vec<_>>())
    };
    assert_eq!(ask(""), (200, vec![5, 4, 3, 2, 1]));
    assert_eq!(ask("limit=2"), (200, vec![5, 4]));
    assert_eq!(ask("room=shop&limit=2&before=4"), (200, vec![3, 2]));
    assert_eq!(ask(&format!("before={}", u64::MAX)), (200, vec![5, 4, 3, 2, 1]));
    for wrong in ["limit=0", "limit=-1", "before=x", "limit=99999999999999999999"] {
        assert_eq!(ask(wrong).0, 400, "{wrong}");
    }
}

#[test]
fn notifications_are_told_by_their_time_as_it_may_be_written() {
    let mut shop = with_webhook();
    shop.unhealthy("a");
    shop.pass(MINUTE);
    shop.unhealthy("b");
    let mut ask = |query: String| {
        let asked = OperatorAsk { query, ..OperatorAsk::default() };
        let (status, body) = json_of(&shop.answer(Request::GlobalNotifications(Box::new(asked))));
        (status, body["news"].as_array().map_or(0, Vec::len))
    };
    let time = anteroom::time::rfc3339(START + 1_000);
    assert_eq!(ask("room=shop".to_owned()), (200, 2));
    assert_eq!(ask(format!("from={}", START + 1)), (200, 1));
    assert_eq!(ask(format!("to={time}")), (200, 1));
    assert_eq!(ask(format!("from={}&x=1", time.replace(':', "%3A"))), (200, 1));
    assert_eq!(ask("from=soon".to_owned()).0, 400);
    assert_eq!(ask("from=%zz%".to_owned()).0, 400);
}

#[test]
fn an_event_is_told_though_nobody_is_there() {
    let mut shop = Platform::of(json!({
        "ROOM_SHOP": { "total_active_users": 100, "new_users_per_minute": 100 },
        "EVENT_SALE": {
            "room": "shop",
            "event_start_time": anteroom::time::rfc3339(START + 10 * MINUTE),
            "event_end_time": anteroom::time::rfc3339(START + 20 * MINUTE),
            "total_active_users": 200, "new_users_per_minute": 200,
        },
        "WEBHOOK_CHAT": { "url": "https://chat.example.com/" },
    }));
    shop.tell(Input::Timer);
    let mut told = Vec::new();
    for _ in 0..30 {
        let made = attempts(&shop.pass(MINUTE));
        for attempt in made {
            told.push((attempt.notification.kind, attempt.notification.at));
            shop.attempted(attempt.number, 200);
        }
        shop.confirm();
        shop.restart();
        shop.tell(Input::Timer);
    }
    let expected = [("event_started", 10), ("event_ended", 20)];
    assert_eq!(told, expected.map(|(kind, minutes)| (kind.to_owned(), START + minutes * MINUTE)));
    assert_eq!(start_of(minute_of(START)), START);
}

pub fn status(platform: &mut Platform) -> Value {
    let ask = OperatorAsk { query: UNWATCHED.to_owned(), ..OperatorAsk::default() };
    let answer = platform.answer(Request::GlobalStatus(Box::new(ask)));
    json_of(&answer).1
}

#[test]
fn operators_see_how_many_checks_speak_for_the_origin() {
    let plain = json!({ "ROOM_SHOP": { "total_active_users": 100, "new_users_per_minute": 100 } });
    let checks = |mut platform: Platform| status(&mut platform)["origin"]["checks"].clone();
    assert_eq!([checks(Platform::new()), checks(Platform::of(plain))], [json!(3), json!(0)]);
}

#[test]
fn what_newer_code_has_stored_is_left_alone_and_a_closed_room_stays_closed_and_says_so() {
    let mut platform = Platform::new();
    platform.order(&json!({ "set": { "queue_all": true } }));
    platform.confirm();
    // A later version: everything in another format.
    let newer: Stored =
        platform.stored.iter().map(|(key, bytes)| (key.clone(), [&[9], &bytes[1..]].concat())).collect();
    platform.rows.put(Series::Parts, (START / MINUTE) as u32 - 1, &[9, 1]).unwrap();
    platform.rows.put_detector(&[9, 1]).unwrap();
    platform.stored = newer.clone();
    platform.confirm();
    let problems: Vec<String> = problems(&newer).collect();
    assert_eq!(problems.len(), newer.len(), "all of it is in the log: {problems:?}");
    platform.restart();
    let said = status(&mut platform);
    assert_eq!((said["queue_all"].clone(), said["status"].clone()), (json!(true), json!("queueing")));
    assert_eq!(said["steering"]["unread"], json!({ "names": ["everything"], "effect": "closed" }));
    for minute in 1..4 {
        platform.push("AMS", minute);
        platform.pass(MINUTE);
    }
    for (key, bytes) in &newer {
        assert_eq!(&platform.stored[key], bytes, "{key} is as it was");
    }
    assert_eq!(platform.rows.detector().unwrap(), Some(vec![9, 1]));
    let last = platform.rows.bounds(Series::Parts).unwrap().unwrap();
    assert_eq!(
        last,
        ((START / MINUTE) as u32 - 1, (START / MINUTE) as u32 - 1),
        "nothing is recorded after it"
    );
    // An operator begins anew.
    let refused = replies(&platform.order(&json!({ "set": { "queue_all": false } })));
    assert_eq!(json_of(&refused[0].1).0, 409);
    platform.order(&json!({ "clear": ["everything"], "set": { "total_active_users": 50 } }));
    assert_eq!(platform.stored["steering_set_aside"], newer["steering"]);
    let said = status(&mut platform);
    assert_eq!((said["queue_all"].clone(), said["steering"]["unread"].clone()), (json!(false), Value::Null));
}
