//! The history: what is recorded of a minute is what visitors did in it, whatever gets lost, comes twice or restarts.

use anteroom::admission::{Level, minute_of, start_of};
use anteroom::check_in::Seen;
use anteroom::counts::{CheckIn, DataCenter, Global, Outbox, Recorded, SlotCounts};
use anteroom::history::{
    BadQuery, CLASSES, Cells, Count, ENDED, Minute, Part, Query, Record, Resolution, WAITS, bound_ms,
    class_of, hours, quantile_ms,
};
use anteroom::protocol::messages::{ColoReport, VERSION, WorkerReport};
use anteroom::ticket::ticket_id;
use proptest::prelude::*;

use crate::articles::room;

const MINUTE: u32 = 28_000_000;
const START: u64 = MINUTE as u64 * 60_000;

#[test]
fn classes_reach_from_a_second_to_a_day() {
    assert_eq!(
        (class_of(0), class_of(999), class_of(1_000), class_of(1_199), class_of(1_200)),
        (0, 0, 1, 1, 2)
    );
    let bounds: Vec<u32> = (0..CLASSES as u8).filter_map(bound_ms).collect();
    assert_eq!(bounds.len(), CLASSES - 1);
    assert!(
        bounds.windows(2).all(|pair| pair[1] > pair[0] && f64::from(pair[1]) <= f64::from(pair[0]) * 1.2)
    );
    let longest = *bounds.last().unwrap();
    assert!((70_000_000..=90_000_000).contains(&longest), "{longest}");
    assert_eq!(usize::from(class_of(u64::MAX)), CLASSES - 1);
}

#[test]
fn quantiles_lie_between_the_bounds_of_their_class() {
    let mut counts = SlotCounts::default();
    assert_eq!(quantile_ms(&counts, WAITS, 0.5), None);
    // Ten users from 1.0 to 1.2 seconds, ten from 8.9 to 10.7.
    counts.add(WAITS + u64::from(class_of(1_100)), 10);
    counts.add(WAITS + u64::from(class_of(10_000)), 10);
    assert_eq!(quantile_ms(&counts, WAITS, 0.25), Some(1_100.0));
    assert_eq!(quantile_ms(&counts, WAITS, 0.5), Some(1_200.0));
    assert_eq!(quantile_ms(&counts, WAITS, 0.75), Some(9_797.5));
    assert_eq!(quantile_ms(&counts, ENDED, 0.5), None, "those are others");
}

proptest! {
    #[test]
    fn an_hour_is_the_sum_of_its_minutes(
        minutes in prop::collection::btree_map(MINUTE..MINUTE + 180, (0..50u64, 0..50u64, 0..20i64), 1..60),
    ) {
        let records: Vec<(u32, Record)> = minutes
            .iter()
            .map(|(minute, (active, joins, waits))| {
                let mut tallies = SlotCounts::default();
                tallies.add(Count::Joins.code(), *joins as i64);
                tallies.add(WAITS + 7, *waits);
                (*minute, Record { minutes: 1, active: *active, active_max: *active, tallies, ..Record::default() })
            })
            .collect();
        let hours = hours(&records);
        prop_assert!(hours.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (hour, sum) in &hours {
            let inside: Vec<&Record> =
                records.iter().filter(|(minute, _)| minute / 60 == *hour).map(|(_, record)| record).collect();
            prop_assert_eq!(sum.minutes as usize, inside.len());
            prop_assert_eq!(sum.active, inside.iter().map(|record| record.active).sum::<u64>());
            prop_assert_eq!(sum.active_max, inside.iter().map(|record| record.active_max).max().unwrap());
            prop_assert_eq!(sum.count(Count::Joins), inside.iter().map(|record| record.count(Count::Joins)).sum::<u64>());
            prop_assert_eq!(sum.tallies.get(WAITS + 7), inside.iter().map(|record| record.tallies.get(WAITS + 7)).sum::<i64>());
        }
        prop_assert_eq!(hours.iter().map(|(_, sum)| sum.minutes as usize).sum::<usize>(), records.len());
    }
}

/// A colo and Global, without anything between them.
struct Small {
    data_center: DataCenter,
    global: Global,
    room: anteroom::config::Room,
    /// What Global has stored.
    stored: (Vec<ColoReport>, Option<Minute>),
}

impl Small {
    fn new(session: u32) -> Self {
        let room = room(100, 100, session);
        let data_center = DataCenter::restore(&room, "AMS", 7, None, START);
        let global = Global::restore(&room, None, Vec::new(), START);
        Self { data_center, global, room, stored: (Vec::new(), None) }
    }

    fn report(&mut self, report: &WorkerReport, now: u64) {
        let answer = self.data_center.receive(&self.room, report, now);
        assert!(answer.applied >= report.first + report.check_ins.len() as u64 - 1);
        self.push(now);
    }

    fn push(&mut self, now: u64) {
        let saved = self.data_center.save(&self.room, now);
        let pushed = self.data_center.push(&self.room, &saved, None, now);
        self.stored.0 = vec![pushed.clone()];
        self.global.receive(&self.room, pushed, now);
        let state = self.global.state(&self.room, Some("AMS"), minute_of(now), now);
        self.data_center.pushed(&self.room, Some(state), now);
    }

    fn record(&mut self, now: u64) -> Vec<Recorded> {
        let mut made = Vec::new();
        while let Some(next) = self.global.record(&self.room, now) {
            self.global.recorded(next.minute.clone());
            self.stored.1 = Some(next.minute.clone());
            made.push(next);
        }
        made
    }

    /// The platform ends an object that has nothing to do, and starts it again when its alarm rings.
    fn restart(&mut self, now: u64) {
        self.global = Global::restore(&self.room, None, self.stored.0.clone(), now);
        self.global.recall_history(self.stored.1.clone());
    }
}

fn enter(id: u64, at: u64) -> CheckIn {
    CheckIn::Enter { id, bucket: minute_of(at), from: None, at, minute: minute_of(at), numbered: true }
}

fn check_ins(first: u64, check_ins: Vec<CheckIn>) -> WorkerReport {
    WorkerReport { v: VERSION, worker: 1, first, check_ins, ..WorkerReport::default() }
}

#[test]
fn who_enters_and_leaves_with_a_number_of_the_next_minute_takes_nobody_off_this_one() {
    for restarts in [false, true] {
        let mut small = Small::new(5);
        let stay = (1..=5).map(|id| enter(ticket_id(id, "AMS"), START + 1_000)).collect();
        small.report(&check_ins(1, stay), START + 2_000);
        let (id, at) = (ticket_id(6, "AMS"), START + 59_900);
        let minute = minute_of(at) + 1;
        let enters = CheckIn::Enter { id, bucket: minute - 1, from: None, at, minute, numbered: true };
        let leaves = CheckIn::Leave { id, from: at, at: at + 50, entered: Some(at) };
        small.report(&check_ins(6, vec![enters, leaves]), START + 61_000);
        small.push(START + 63_000);
        if restarts {
            small.restart(START + 64_000);
        }
        let made = small.record(START + 170_000);
        assert_eq!(made[0].record.active, 5, "restarts: {restarts}");
    }
}

#[test]
fn minutes_are_recorded_until_the_room_is_empty_and_a_silent_room_wakes_nobody() {
    for restarts in [false, true] {
        let mut small = Small::new(5);
        assert_eq!(small.global.next_record(&small.room, START), None, "nobody has come yet");
        small.report(&check_ins(1, vec![enter(1, START + 1_000)]), START + 2_000);
        let mut now = START + 2_000;
        let mut minutes = Vec::new();
        let mut alarms = 0;
        while let Some(next) = small.global.next_record(&small.room, now) {
            // Meanwhile the colo says that it is there, for as long as somebody is.
            while let Some(wait) =
                small.data_center.next_push(&small.room, now).filter(|wait| now + wait.max(&1) < next)
            {
                now += wait.max(1);
                small.push(now);
            }
            now = now.max(next);
            if restarts {
                small.restart(now);
                assert!(small.global.next_record(&small.room, now).is_some_and(|due| due <= now));
            }
            alarms += 1;
            let made = small.record(now);
            assert!(!made.is_empty(), "nothing is late here: an alarm records a minute");
            minutes.extend(made.into_iter().map(|made| (made.minute.minute, made.record.active)));
        }
        let expected: Vec<(u32, u64)> =
            (0..6).map(|minute| (MINUTE + minute, u64::from(minute < 5))).collect();
        assert_eq!(minutes, expected, "the user is there for five minutes and a second");
        assert_eq!(alarms, 6, "one a minute");
        assert!(small.record(now + 600_000).is_empty());
        assert!(small.global.settled_until(&small.room, now) >= start_of(MINUTE + 6));
    }
}

#[test]
fn whoever_goes_past_a_room_that_is_off_is_no_leaver() {
    for is_off in [false, true] {
        let mut small = Small::new(5);
        let wait = |id| CheckIn::Wait { id, bucket: MINUTE, from: None, at: Seen::from(START + 1_000) };
        small.report(&check_ins(1, (1..=7).map(wait).collect()), START + 2_000);
        // All of them are let past with their next refresh, of which nobody hears; then it is on again.
        small.room.suspended = is_off;
        small.push(START + 5_000);
        small.room.suspended = false;
        small.push(START + 50_000);
        small.push(START + 110_000);
        let made = small.record(START + 600_000);
        let sum = |count| made.iter().map(|made| made.record.count(count)).sum::<u64>();
        let (past, left) = if is_off { (7, 0) } else { (0, 7) };
        assert_eq!((sum(Count::LetPast), sum(Count::Leavers)), (past, left));
        let parts = made.iter().flat_map(|made| &made.minute.parts);
        assert_eq!(parts.map(|part| part.leavers).sum::<u64>(), left);
    }
}

#[test]
fn what_comes_too_late_for_its_minute_is_counted_in_the_next_one() {
    let mut small = Small::new(5);
    small.report(&check_ins(1, vec![enter(1, START + 1_000)]), START + 2_000);
    let first = small.record(START + 600_000);
    assert_eq!(first[0].record.count(Count::NewUsers), 1);
    // Another colo was cut off all the time, and tells only now.
    let mut late = DataCenter::restore(&small.room, "SIN", 9, None, START);
    let before = minute_of(START + 600_000) - 8;
    late.receive(&small.room, &check_ins(1, vec![enter(2, start_of(before))]), START + 601_000);
    let saved = late.save(&small.room, START + 601_000);
    let pushed = late.push(&small.room, &saved, None, START + 601_000);
    for _ in 0..2 {
        small.global.receive(&small.room, pushed.clone(), START + 601_000);
    }
    let made = small.record(START + 900_000);
    let sum: u64 = made.iter().map(|made| made.record.count(Count::NewUsers)).sum();
    assert_eq!(sum, 1);
    assert!(made.iter().all(|made| made.minute.minute > first.last().unwrap().minute.minute));
}

#[test]
fn a_worker_tells_of_bypassed_requests_at_most_every_27_seconds() {
    let mut small = Small::new(5);
    let mut outbox = Outbox::new(1);
    let (mut reports, mut due) = (0u64, None);
    for second in 0..600u64 {
        let now = START + second * 1_000;
        if due.is_some_and(|due| due <= now) && outbox.is_due(now) {
            let report = outbox.report(now);
            assert!(report.check_ins.is_empty());
            small.report(&report, now);
            let answer = small.data_center.receive(&small.room, &report, now);
            outbox.answered(&answer);
            reports += 1;
        }
        outbox.note_bypassed(now);
        if let Some(wait) = outbox.announce(now, now) {
            due = Some(now + wait);
        }
    }
    assert!((20..=600 / 27).contains(&reports), "{reports} reports");
    let made = small.record(START + 1_200_000);
    let told: u64 = made.iter().map(|made| made.record.count(Count::Bypassed)).sum();
    assert!((600 - 27..=600).contains(&told), "{told}: each is told once, though each report came twice");
    let by_colo: u64 = made.iter().flat_map(|made| &made.minute.parts).map(|part| part.bypassed).sum();
    assert_eq!(by_colo, told);
}

#[test]
fn what_a_worker_counts_outlives_the_data_center_and_counts_once() {
    let room = room(100, 100, 5);
    let mut outbox = Outbox::new(1);
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, START);
    let counted =
        |data_center: &mut DataCenter, now| data_center.save(&room, now).tallies.of(MINUTE, Count::Bypassed);
    let exchange = |outbox: &mut Outbox, data_center: &mut DataCenter, now| {
        outbox.note(&room, enter(now, now), Level::Busy, now);
        let answer = data_center.receive(&room, &outbox.report(now), now);
        outbox.answered(&answer);
    };
    outbox.note_bypassed(START);
    exchange(&mut outbox, &mut data_center, START);
    let saved = data_center.save(&room, START);
    outbox.note_bypassed(START + 1);
    exchange(&mut outbox, &mut data_center, START + 1);
    assert_eq!(counted(&mut data_center, START + 1), 2);
    // The second was in memory only.
    let mut data_center = DataCenter::restore(&room, "AMS", 8, Some(saved), START + 2);
    assert_eq!(counted(&mut data_center, START + 2), 1);
    exchange(&mut outbox, &mut data_center, START + 3);
    assert_eq!(counted(&mut data_center, START + 4), 2);
}

fn ask<'a>(parameters: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    move |name| parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn a_question_is_read_or_refused_by_name() {
    let now = start_of(MINUTE) + 30_000;
    let usual = Query::read(ask(&[]), now).unwrap();
    assert_eq!((usual.from, usual.to, usual.resolution), (MINUTE - 60, MINUTE + 1, Resolution::Minute));
    let from = format!("{}", now - 40 * 86_400_000);
    let long = Query::read(ask(&[("from", &from)]), now).unwrap();
    assert_eq!((long.to - long.from, long.resolution), (40 * 24 + 1, Resolution::Hour));
    let day =
        ask(&[("from", "2023-03-28T00:00:00Z"), ("to", "2023-03-28T02:00:00+01:00"), ("fields", "joins")]);
    let day = Query::read(day, now).unwrap();
    assert_eq!((day.to - day.from, day.fields.len()), (60, 1));
    for (parameters, named) in [
        (vec![("from", "yesterday")], "`from`"),
        (vec![("to", "1e9")], "`to`"),
        (vec![("from", "20"), ("to", "10")], "`from`"),
        (vec![("resolution", "second")], "`resolution`"),
        (vec![("fields", "joins,nonsense")], "`fields`"),
        (vec![("fields", "workers")], "`fields`"),
        (vec![("format", "xml")], "`format`"),
        (vec![("colo", "../AMS")], "`colo`"),
        (vec![("colo", "AMS"), ("resolution", "hour")], "resolution=minute"),
        (vec![("from", from.as_str()), ("resolution", "minute")], "at most 3000"),
        (vec![("from", "0")], "at most 3000"),
    ] {
        let BadQuery(message) = Query::read(ask(&parameters), now).unwrap_err();
        assert!(message.contains(named) && message.contains("Fix: "), "{parameters:?}: {message}");
    }
}

#[test]
fn no_question_is_answered_beyond_its_bounds() {
    let usual = Query::read(ask(&[("format", "csv")]), start_of(MINUTE)).unwrap();
    let query = Query { from: 0, to: u32::MAX, fields: vec![0; 1_000], ..usual };
    let answer = query.bounded().answer("shop", &[], None, 0, start_of(MINUTE));
    let widths = answer.lines().skip(1).map(|line| line.split(',').count());
    assert!(widths.eq([24; 3_000]));
}

fn row(rows: &[(u32, Record)]) -> Vec<(u32, &dyn Cells)> {
    rows.iter().map(|(minute, record)| (*minute, record as &dyn Cells)).collect()
}

#[test]
fn silent_minutes_are_zeros_and_what_is_not_known_is_null() {
    let now = start_of(MINUTE + 3);
    let mut record = Record { minutes: 1, active: 7, total_active_users: 20, slots: 13, ..Record::default() };
    record.tallies.add(Count::Joins.code(), 4);
    record.tallies.add(WAITS + u64::from(class_of(1_100)), 10);
    let rows = [(MINUTE, record)];
    let from = start_of(MINUTE - 1).to_string();
    let fields = "active_users,total_active_users,joins,wait_seconds_p50,slots";
    let to = now.to_string();
    let parameters = [("from", from.as_str()), ("to", to.as_str()), ("fields", fields)];
    let query = Query::read(ask(&parameters), now).unwrap();
    let json: serde_json::Value =
        serde_json::from_str(&query.answer("shop", &row(&rows), Some(MINUTE), start_of(MINUTE + 2), now))
            .unwrap();
    let start = start_of(MINUTE);
    assert_eq!(
        json,
        serde_json::json!({
            "room": "shop", "resolution": "minute", "from": start - 60_000, "to": start + 180_000, "colo": null,
            "fields": ["active_users", "total_active_users", "joins", "wait_seconds_p50", "slots"],
            "rows": [
                [start - 60_000, null, null, null, null, null],
                [start, 7, 20, 4, 1.1, 13],
                [start + 60_000, 0, null, 0, null, null],
                [start + 120_000, 0, null, 0, null, null],
            ],
            "settled_until": start + 120_000,
        })
    );
    let csv = Query::read(ask(&[("from", &from), ("to", &to), ("fields", fields), ("format", "csv")]), now)
        .unwrap();
    assert_eq!(
        csv.answer("shop", &row(&rows), Some(MINUTE), start, now),
        "time,active_users,total_active_users,joins,wait_seconds_p50,slots\r\n\
         2023-03-28T10:39:00Z,,,,,\r\n2023-03-28T10:40:00Z,7,20,4,1.1,13\r\n\
         2023-03-28T10:41:00Z,0,,0,,\r\n2023-03-28T10:42:00Z,0,,0,,\r\n"
    );
    let colo =
        Query::read(ask(&[("from", &from), ("to", &to), ("colo", "ams"), ("format", "csv")]), now).unwrap();
    let part = Part { colo: "AMS".to_owned(), active: 3, workers: 2, ..Part::default() };
    let told = colo.answer("shop", &[(MINUTE + 1, &part)], Some(MINUTE + 1), start, now);
    assert_eq!(told.lines().nth(3), Some("2023-03-28T10:41:00Z,3,0,0,0,0,0,0,2"));
    assert_eq!(Minute::default().parts, []);
}
