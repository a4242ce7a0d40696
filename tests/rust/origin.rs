//! What the room learns of its origin by passing requests on, and what follows from it.

use anteroom::counts::{DataCenter, Global};
use anteroom::origin::{
    Adaptive, Arrival, Ending, Evidence, Hold, OriginCounts, OriginMonitor, OriginReport, Reply, Use,
};
use anteroom::protocol::messages::{VERSION, WorkerReport};
use anteroom::room::{
    AdaptiveRange, GuardSettings, GuardStrategy, Limits, OnUnhealthy, OriginGuard, Room, WhenFull,
};
use proptest::prelude::*;

use crate::articles::{NOW, counts as users};

const START: u64 = 1_680_000_000_000;

fn adaptive_room(least: u32, most: u32) -> Room {
    let range = AdaptiveRange { least_active_users: least, least_new_users: least, slow_ms: None };
    Room { adaptive: Some(range), ..crate::articles::room(most, most, 5) }
}

fn holding_room() -> Room {
    Room {
        health_checks: vec!["origin".to_owned()],
        on_unhealthy: OnUnhealthy::Hold,
        ..crate::articles::room(1_000, 600, 5)
    }
}

fn counts(replies: &[(Reply, u64)]) -> OriginCounts {
    let mut counts = OriginCounts::default();
    for (reply, took_ms) in replies {
        counts.count(*reply, *took_ms);
    }
    counts
}

#[test]
fn a_reply_tells_the_guard_of_load_and_the_room_of_trouble() {
    for (reply, ending, trouble) in [
        (Reply::Status(200), Ending::Success, false),
        (Reply::Status(304), Ending::Success, false),
        (Reply::Status(404), Ending::Success, false),
        (Reply::Status(429), Ending::Overload, true),
        (Reply::Status(500), Ending::Other, true),
        (Reply::Status(503), Ending::Overload, true),
        (Reply::Status(504), Ending::Overload, true),
        (Reply::Status(522), Ending::Overload, true),
        (Reply::TimedOut, Ending::TimedOut, true),
        (Reply::Unreachable, Ending::Overload, true),
    ] {
        assert_eq!((reply.ending(), reply.is_trouble()), (ending, trouble), "{reply:?}");
    }
}

#[test]
fn the_time_to_the_first_byte_is_known_to_a_quarter() {
    for took in [12, 80, 150, 300, 900, 2_500, 12_000] {
        let median = counts(&[(Reply::Status(200), took); 100]).quantile_ms(0.5).unwrap_or_default();
        let error = (median / took as f64 - 1.0).abs();
        assert!(error < 0.25, "{took} ms seem to be {median}");
    }
    assert_eq!(counts(&[]).quantile_ms(0.5), None);
    let late = counts(&[(Reply::Status(200), 50), (Reply::TimedOut, 0), (Reply::TimedOut, 0)]);
    assert!(late.quantile_ms(0.5) > Some(60_000.0), "what never came is the slowest");
}

/// What a data center tells Global of the origin, when workers' reports came so.
fn told_by_data_center(reports: &[(u64, u64, OriginCounts)]) -> OriginCounts {
    let room = crate::articles::room(1_000, 200, 5);
    let mut data_center = DataCenter::restore(&room, "AMS", 7, None, START);
    for (worker, first, counts) in reports {
        let report = WorkerReport {
            v: VERSION,
            worker: *worker,
            instance: 7,
            first: *first,
            origin: Some(counts.clone()),
            ..WorkerReport::default()
        };
        data_center.receive(&room, &report, START);
    }
    let saved = data_center.save(&room, START);
    data_center.push(&room, &saved, None, START).origin.map(|origin| origin.counts).unwrap_or_default()
}

#[test]
fn a_data_center_counts_each_request_once() {
    let after = |requests: usize| counts(&vec![(Reply::Status(200), 40); requests]);
    let in_order = [(1, 1, after(5)), (2, 1, after(3)), (1, 6, after(9))];
    assert_eq!(told_by_data_center(&in_order).answered(), 12);
    let twice_and_late =
        [(1, 1, after(5)), (1, 6, after(9)), (1, 1, after(5)), (1, 6, after(9)), (1, 8, after(10))];
    assert_eq!(told_by_data_center(&twice_and_late).answered(), 10);
    // What a worker has told a data center that restarted since is not told again; what comes is.
    let known_before = [(1, 40, after(500)), (1, 41, after(502))];
    assert_eq!(told_by_data_center(&known_before).answered(), 2);
}

#[test]
fn what_limits_are_judged_by_travels_too() {
    let of = |requests: usize, judged: Option<usize>| {
        let answered = |requests: usize| counts(&vec![(Reply::Status(200), 40); requests]);
        (answered(requests), judged.map(answered))
    };
    let told = |room: &Room| {
        let mut data_center = DataCenter::restore(room, "AMS", 7, None, START);
        // The second worker is one of 0.1.0, which does not say it. One report comes late.
        let reports = [(1, of(10, Some(3))), (2, of(5, None)), (1, of(20, Some(4))), (1, of(15, Some(3)))];
        for (worker, (origin, judged)) in reports {
            let (origin, first) = (Some(origin), 1);
            let report =
                WorkerReport { v: VERSION, worker, first, origin, judged, ..WorkerReport::default() };
            data_center.receive(room, &report, START);
        }
        let saved = data_center.save(room, START);
        data_center.push(room, &saved, None, START)
    };
    let report = told(&adaptive_room(100, 1_000));
    assert_eq!(report.origin.as_ref().map(|origin| origin.counts.answered()), Some(25));
    assert_eq!(report.judged.as_ref().map(OriginCounts::answered), Some(9));
    assert_eq!(report.judged().map(|judged| (judged.since, judged.counts.answered())), Some((7, 9)));
    // Where nothing depends on it nothing is said, and it would be all.
    let fixed = told(&crate::articles::room(1_000, 200, 5));
    assert_eq!((&fixed.judged, fixed.judged()), (&None, fixed.origin.clone()));
}

#[test]
fn global_judges_limits_by_it_and_by_everything_where_a_data_center_does_not_say_it() {
    let room = adaptive_room(140, 1_000);
    let limit = |says_it: bool| {
        let mut global = Global::restore(&room, None, Vec::new(), NOW);
        let (mut all, mut judged) = (OriginCounts::default(), OriginCounts::default());
        let mut limit = 0;
        for second in 1..=60 {
            let now = NOW + second * 1_000;
            for _ in 0..10 {
                all.count(Reply::Status(200), 40);
                judged.count(Reply::Status(200), 40);
                // From half a minute on all that is slow is of one ticket.
                if second > 30 {
                    all.count(Reply::Status(200), 8_000);
                    all.count(Reply::Status(200), 8_000);
                }
            }
            let mut report = crate::articles::report("AMS", users(&room, 151, [0, 10, 0]));
            report.sequence = now;
            report.origin = Some(OriginReport { since: 7, counts: all.clone() });
            report.judged = says_it.then(|| judged.clone());
            global.receive(&room, report, now);
            limit = global.state(&room, None, (now / 60_000) as u32, now).limits.unwrap().total_active_users;
        }
        limit
    };
    let (capped, whole) = (limit(true), limit(false));
    assert!(capped > 151 && whole < 151, "{capped} and {whole}");
}

proptest! {
    /// Reports are absolute: whatever is lost or comes twice, the last one says it all.
    #[test]
    fn lost_and_repeated_reports_change_nothing(
        replies in prop::collection::vec((0_u16..600, 0_u64..100_000), 1..200),
        arrive in prop::collection::vec(0_usize..3, 1..200),
    ) {
        let mut sent = OriginCounts::default();
        let mut known: Option<OriginReport> = None;
        let mut sum = OriginCounts::default();
        for ((status, took), times) in replies.iter().zip(arrive.iter().cycle()) {
            let reply = match status { 0 => Reply::Unreachable, 1 => Reply::TimedOut, status => Reply::Status(*status) };
            sent.count(reply, *took);
            for _ in 0..*times {
                let report = OriginReport { since: 7, counts: sent.clone() };
                sum.add(&report.added_since(known.as_ref()));
                known = Some(report);
            }
        }
        let last = OriginReport { since: 7, counts: sent.clone() };
        sum.add(&last.added_since(known.as_ref()));
        prop_assert_eq!(sum.ended(), sent.ended());
        prop_assert_eq!(sum.troubles(), sent.troubles());
        prop_assert_eq!(sum.first_byte.iter().sum::<u64>(), sent.answered());
    }

    /// Whatever the origin does, the limits stay within what the owner allows.
    #[test]
    fn adaptive_limits_stay_within_their_range(
        steps in prop::collection::vec((0_u16..600, 1_u64..60_000, 0_u64..60, -5_i64..2_000, 0_u32..5_000, any::<bool>(), 0_u64..20_000), 1..150),
    ) {
        let room = adaptive_room(50, 1_000);
        let (mut adaptive, mut evidence, mut now) = (Adaptive::default(), Evidence::default(), START);
        for (status, took, requests, active, entering, waiting, ms) in steps {
            let reply = match status { 0 => Reply::Unreachable, 1 => Reply::TimedOut, status => Reply::Status(status) };
            evidence.add(&counts(&vec![(reply, took); requests as usize]), now);
            adaptive.step(&room, &evidence, &evidence, Use { active, entering: entering.into(), waiting }, now);
            let limits = adaptive.limits(&room);
            prop_assert!((50..=1_000).contains(&limits.total_active_users));
            prop_assert!((50..=1_000).contains(&limits.new_users_per_minute));
            now += ms;
        }
    }
}

#[test]
fn fixed_limits_never_move() {
    let room = crate::articles::room(1_000, 200, 5);
    let (mut adaptive, mut evidence) = (Adaptive::default(), Evidence::default());
    for second in 0..60 {
        let now = START + second * 1_000;
        evidence.add(&counts(&[(Reply::TimedOut, 0); 50]), now);
        adaptive.step(&room, &evidence, &evidence, Use { active: 900, entering: 200.0, waiting: true }, now);
        assert_eq!(adaptive.limits(&room), room.limits());
    }
}

/// A site whose users ask for a page every ten seconds; it serves so many pages a second, and takes 0.2 s while it can.
/// Nobody gives up; whoever has no answer after 10 s sees an error.
struct Site {
    pages_a_second: f64,
    active: f64,
    entering: f64,
    failed: f64,
    asked: f64,
}

const THINKS: f64 = 10.0;
const SERVED_IN: f64 = 0.2;
const PATIENCE: f64 = 10.0;
const VISIT: f64 = 120.0;

impl Site {
    fn users_served(&self) -> f64 {
        self.pages_a_second * (THINKS + SERVED_IN)
    }

    /// One second of it, with a crowd at the door.
    fn second(&mut self, limits: Limits, evidence: &mut Evidence, now: u64) {
        let free = (f64::from(limits.total_active_users) - self.active).max(0.0);
        self.entering = free.min(f64::from(limits.new_users_per_minute) / 60.0) * 60.0;
        self.active += self.entering / 60.0 - self.active / VISIT;
        let takes = (self.active / self.pages_a_second - THINKS).max(SERVED_IN);
        let asked = self.active / (THINKS + takes.min(PATIENCE));
        // Beyond its users' patience some of what it does is for nobody.
        let late = if takes > PATIENCE { 1.0 - (self.pages_a_second / asked).min(1.0) } else { 0.0 };
        let mut seen = OriginCounts::default();
        for index in 0..asked.round() as u64 {
            let is_late = ((index + 1) as f64 * late).floor() > (index as f64 * late).floor();
            // Half of all answers take less, half take more.
            let took = takes * 1_000.0 * (0.6 + 0.8 * (index as f64 + 0.5) / asked);
            seen.count(if is_late { Reply::TimedOut } else { Reply::Status(200) }, took as u64);
        }
        self.asked += asked;
        self.failed += asked * late;
        evidence.add(&seen, now);
    }
}

#[test]
fn adaptive_limits_find_a_hidden_capacity_and_follow_its_halving() {
    let room = adaptive_room(100, 5_000);
    let mut site = Site { pages_a_second: 120.0, active: 0.0, entering: 0.0, failed: 0.0, asked: 0.0 };
    let (mut adaptive, mut evidence, mut now) = (Adaptive::default(), Evidence::default(), START);
    let mut run = |site: &mut Site, seconds: u64| {
        let mut sum = 0.0;
        for _ in 0..seconds {
            now += 1_000;
            site.second(adaptive.limits(&room), &mut evidence, now);
            let used = Use { active: site.active as i64, entering: site.entering, waiting: true };
            adaptive.step(&room, &evidence, &evidence, used, now);
            sum += f64::from(adaptive.limits(&room).total_active_users);
        }
        (f64::from(adaptive.limits(&room).total_active_users), sum / seconds as f64)
    };
    run(&mut site, 300);
    let (found, mean) = run(&mut site, 120);
    let served = site.users_served();
    println!("serves {served}, found {found}, mean {mean}, active {}", site.active);
    assert!((found / served - 1.0).abs() < 0.1 && (mean / served - 1.0).abs() < 0.1);
    site.pages_a_second /= 2.0;
    (site.failed, site.asked) = (0.0, 0.0);
    let (followed, _) = run(&mut site, 60);
    let served = site.users_served();
    println!("serves {served}, follows {followed}, failed {} of {}", site.failed, site.asked);
    assert!(followed < 1.1 * served && followed > 0.8 * served);
    assert!(site.failed / site.asked <= 0.05);
}

/// Users of a site by way of a data center's workers, and the limits that follow the origin as Global sees it. Each asks for a
/// page every ten seconds, in turn.
struct Crowd {
    room: Room,
    monitors: Vec<OriginMonitor>,
    reported: Vec<[OriginCounts; 2]>,
    evidence: [Evidence; 2],
    adaptive: Adaptive,
    now: u64,
}

/// Users for each worker.
const USERS: u64 = 100;
/// Tickets of attackers are above this.
const ATTACKER: u64 = 1_000;

impl Crowd {
    /// The limits have grown to all that the owner allows.
    fn new(workers: usize) -> Self {
        let room = adaptive_room(20, USERS as u32 * workers as u32);
        let mut crowd = Self {
            monitors: (0..workers).map(|_| OriginMonitor::new(&room)).collect(),
            room,
            reported: vec![Default::default(); workers],
            evidence: [Evidence::default(), Evidence::default()],
            adaptive: Adaptive::default(),
            now: START,
        };
        for _ in 0..300 {
            crowd.second(true, |_, _| (Reply::Status(200), 100), |_| {});
        }
        assert!(crowd.is_open());
        crowd
    }

    fn users(&self) -> u64 {
        self.room.total_active_users.into()
    }

    fn limit(&self) -> u64 {
        self.adaptive.limits(&self.room).total_active_users.into()
    }

    fn ask(&mut self, ticket: u64, (reply, took_ms): (Reply, u64), at: u64) {
        // Who asks once in a while stays with a worker, who asks all the time comes to all of them.
        let turn = if ticket > ATTACKER { at / 50 } else { 0 };
        let worker = (ticket + turn) % self.monitors.len() as u64;
        let monitor = &mut self.monitors[worker as usize];
        let Arrival::Go(passage) = monitor.arrive(ticket, false, at) else { panic!("not sent") };
        monitor.came_back(passage, reply, took_ms, at);
    }

    /// One second of it: how the origin answers a user's so-manieth request, and who else asks. Judged by what counts of
    /// each ticket, or by everything.
    fn second(
        &mut self,
        capped: bool,
        answers: impl Fn(u64, u64) -> (Reply, u64),
        attack: impl Fn(&mut Self),
    ) {
        let second = (self.now - START) / 1_000;
        for user in (0..self.users()).filter(|user| user % 10 == second % 10) {
            self.ask(1 + user, answers(user, second), self.now);
        }
        attack(self);
        let workers = self.monitors.len() as u32;
        for (monitor, reported) in self.monitors.iter_mut().zip(&mut self.reported) {
            let Some(all) = monitor.report(workers) else { continue };
            let judged = if capped { monitor.judged().unwrap() } else { all.clone() };
            for (index, counts) in [all, judged].into_iter().enumerate() {
                self.evidence[index].add(&counts.since(&reported[index]), self.now);
                reported[index] = counts;
            }
        }
        self.now += 1_000;
        let users = self.users();
        let used = Use { active: users as i64, entering: users as f64, waiting: true };
        let [all, judged] = &self.evidence;
        self.adaptive.step(&self.room, all, judged, used, self.now);
    }

    fn is_open(&self) -> bool {
        self.adaptive.limits(&self.room) == self.room.limits()
    }
}

#[test]
fn one_visitor_who_asks_for_slow_pages_does_not_lower_limits() {
    for workers in [1, 4] {
        let mut crowd = Crowd::new(workers);
        for second in 0..300 {
            crowd.second(
                true,
                |_, _| (Reply::Status(200), 100),
                |crowd| {
                    for request in 0..20 * workers as u64 {
                        crowd.ask(ATTACKER + 1, (Reply::Status(200), 8_000), crowd.now + request % 20 * 50);
                    }
                },
            );
            assert!(crowd.is_open(), "{workers} workers, after {second} s");
        }
    }
}

#[test]
fn a_few_visitors_who_ask_for_bad_pages_do_not_lower_limits() {
    // Of a hundred tickets so many, what they get, and by way of how many workers.
    let attacks = [
        (5, Reply::Status(503), 10, 1),
        (5, Reply::TimedOut, 10_000, 1),
        (5, Reply::Status(500), 8_000, 1),
        (12, Reply::Status(200), 8_000, 1),
        // A ticket's first ones count in each worker.
        (2, Reply::Status(503), 10, 4),
        (12, Reply::Status(200), 8_000, 4),
    ];
    for (of_hundred, reply, took_ms, workers) in attacks {
        let mut crowd = Crowd::new(workers);
        let attackers = crowd.users() * of_hundred / 100;
        for second in 0..600 {
            crowd.second(
                true,
                |_, _| (Reply::Status(200), 100),
                |crowd| {
                    // Each begins at a time of its own.
                    for attacker in 0..attackers {
                        let begins = second * attackers >= attacker * 60;
                        for request in 0..if begins { 20 } else { 0 } {
                            crowd.ask(ATTACKER + 1 + attacker, (reply, took_ms), crowd.now + request * 50);
                        }
                    }
                },
            );
            assert!(crowd.is_open(), "{of_hundred} % with {reply:?}, {workers} workers, after {second} s");
        }
    }
}

#[test]
fn visitors_who_ask_for_bad_pages_all_at_once_cost_little() {
    let mut crowd = Crowd::new(1);
    for second in 0..300 {
        crowd.second(
            true,
            |_, _| (Reply::Status(200), 100),
            |crowd| {
                // One in twenty, once a minute: for some seconds nobody can tell that from an origin that fails.
                for attacker in 0..if second % 60 == 0 { USERS / 20 } else { 0 } {
                    crowd.ask(ATTACKER + 1 + attacker, (Reply::Status(503), 10), crowd.now);
                }
            },
        );
        assert!(crowd.limit() * 100 >= USERS * 95, "{} after {second} s", crowd.limit());
    }
}

#[test]
fn an_origin_that_is_slow_or_fails_lowers_limits_as_soon_as_ever() {
    // Of a hundred requests so many, and what they get.
    let troubles = [
        (100, Reply::Status(200), 900),
        (100, Reply::TimedOut, 10_000),
        (100, Reply::Unreachable, 0),
        (60, Reply::Status(200), 900),
        (20, Reply::Status(500), 100),
        (5, Reply::Status(503), 100),
    ];
    for ((of_hundred, reply, took_ms), workers) in troubles.into_iter().flat_map(|one| [(one, 1), (one, 4)]) {
        let seconds = |capped| {
            let mut crowd = Crowd::new(workers);
            let answers = |user: u64, second: u64| {
                let is_bad = (user / 10 * 37 + second * 13) % 100 < of_hundred;
                if is_bad { (reply, took_ms) } else { (Reply::Status(200), 100) }
            };
            let mut least = u64::MAX;
            let lowered = (0..120).filter(|_| {
                crowd.second(capped, answers, |_| {});
                least = least.min(crowd.limit());
                !crowd.is_open()
            });
            let first = lowered.fold(None, |first: Option<u64>, second| first.or(Some(second)));
            (first.expect("they are lowered"), least)
        };
        let ((soon, low), (soon_before, low_before)) = (seconds(true), seconds(false));
        println!("{of_hundred} % {reply:?}: {low} after {soon} s; {low_before} after {soon_before} s");
        assert!(soon <= soon_before, "{of_hundred} % {reply:?}");
        assert!(low <= low_before + USERS * workers as u64 / 50, "{of_hundred} % {reply:?}");
    }
}

#[test]
fn a_check_holds_the_room_and_lets_go_of_it() {
    let room = holding_room();
    let (mut hold, evidence) = (Hold::default(), Evidence::default());
    let limits = room.limits();
    assert!(!hold.told(&room, "elsewhere", false, START), "a check of another room is not listened to");
    assert!(hold.told(&room, "Origin", false, START));
    assert!(hold.update(&room, &evidence, START) && hold.is_held());
    assert_eq!(hold.limit(limits, START).new_users_per_minute, 0);
    assert!(!hold.told(&room, "origin", true, START - 1_000), "an older word changes nothing");
    assert!(!hold.told(&room, "origin", false, START + 1_000), "nor does the same one");
    assert!(hold.told(&room, "origin", true, START + 60_000));
    assert!(hold.update(&room, &evidence, START + 60_000) && !hold.is_held());
}

#[test]
fn when_the_origin_is_back_users_enter_slowly_at_first() {
    let room = holding_room();
    let (mut hold, evidence) = (Hold::default(), Evidence::default());
    hold.told(&room, "origin", false, START);
    hold.update(&room, &evidence, START);
    hold.told(&room, "origin", true, START + 60_000);
    hold.update(&room, &evidence, START + 60_000);
    let entering =
        |seconds: u64| hold.limit(room.limits(), START + 60_000 + seconds * 1_000).new_users_per_minute;
    assert_eq!((entering(0), entering(30), entering(60)), (60, 330, 600));
    assert_eq!(hold.limit(room.limits(), START + 60_000).total_active_users, room.total_active_users);
}

#[test]
fn an_origin_that_answers_nobody_holds_the_room_without_a_check() {
    let room = Room { health_checks: Vec::new(), ..holding_room() };
    let (mut hold, mut evidence) = (Hold::default(), Evidence::default());
    evidence.add(&counts(&[(Reply::Unreachable, 0); 9]), START);
    assert!(!hold.update(&room, &evidence, START), "nine failures may have any reason");
    evidence.add(&counts(&[(Reply::Unreachable, 0); 5]), START + 1_000);
    assert!(hold.update(&room, &evidence, START + 1_000) && hold.is_held());
    // Those who are in go on trying; one good answer is enough.
    evidence.add(&counts(&[(Reply::Unreachable, 0); 20]), START + 20_000);
    assert!(!hold.update(&room, &evidence, START + 20_000) && hold.is_held());
    evidence.add(&counts(&[(Reply::Status(200), 40); 4]), START + 21_000);
    assert!(hold.update(&room, &evidence, START + 21_000) && !hold.is_held());
    // Where nobody is in to try, somebody new must.
    evidence.add(&counts(&[(Reply::TimedOut, 0); 20]), START + 60_000);
    assert!(hold.update(&room, &evidence, START + 60_000) && hold.is_held());
    assert!(hold.update(&room, &evidence, START + 80_000) && !hold.is_held());
}

#[test]
fn one_visitor_does_not_speak_for_the_origin_and_several_do() {
    let room = Room { health_checks: Vec::new(), ..holding_room() };
    for (tickets, is_held) in [(1, false), (3, false), (10, true)] {
        let mut monitor = OriginMonitor::new(&room);
        // Thirty requests within eight seconds: answered with an error, given up, or left after long.
        for request in 0..30 {
            let now = START + request * 250;
            let Arrival::Go(passage) = monitor.arrive(1 + request % tickets, false, now) else {
                panic!("not sent")
            };
            let reply = [Reply::Status(503), Reply::TimedOut, Reply::Unreachable][request as usize % 3];
            monitor.came_back(passage, reply, 10, now);
        }
        let mut evidence = Evidence::default();
        let counts = monitor.report(1).unwrap();
        assert_eq!(counts.troubles(), 2 * tickets, "{tickets} tickets");
        evidence.add(&counts, START + 8_000);
        let mut hold = Hold::default();
        hold.update(&room, &evidence, START + 8_000);
        assert_eq!(hold.is_held(), is_held, "{tickets} tickets");
    }
}

/// A room that is made at run time may get other settings at any moment.
#[test]
fn what_a_worker_knows_of_the_origin_goes_by_settings_that_change() {
    let (ignoring, adaptive) = (crate::articles::room(1_000, 600, 5), adaptive_room(20, 1_000));
    let guard = GuardSettings {
        strategy: GuardStrategy::Static,
        min: 2,
        max: 2,
        at_once: None,
        timeout_ms: 5_000,
        hold_ms: 0,
    };
    let guard = Some(OriginGuard { settings: guard, admitted: WhenFull::Retry });
    let guarded = Room { origin_guard: guard, ..adaptive.clone() };
    let mut monitor = OriginMonitor::new(&ignoring);
    let go = |monitor: &mut OriginMonitor, ticket| match monitor.arrive(ticket, false, START) {
        Arrival::Go(passage) => Some(passage),
        _ => None,
    };
    let fails = |monitor: &mut OriginMonitor, ticket| {
        let passage = go(monitor, ticket).unwrap();
        monitor.came_back(passage, Reply::Status(503), 10, START)
    };
    assert!(!fails(&mut monitor, 1) && monitor.judged().is_none());
    let under_way = go(&mut monitor, 2).unwrap();
    monitor.follow(&adaptive);
    assert!(fails(&mut monitor, 3), "trouble is reported at once");
    let (seen, judged) = (monitor.report(1).unwrap(), monitor.judged().unwrap());
    assert_eq!((seen.troubles(), judged.troubles(), seen.in_flight), (2, 2, 1), "what was counted stays");
    monitor.follow(&guarded);
    assert!(go(&mut monitor, 4).is_some() && go(&mut monitor, 5).is_none(), "two at once");
    monitor.came_back(under_way, Reply::Status(200), 10, START);
    assert!(go(&mut monitor, 6).is_some(), "one that was under way before is back");
    monitor.follow(&ignoring);
    assert!(go(&mut monitor, 7).is_some() && monitor.judged().is_none() && monitor.timeout_ms().is_none());
}

#[test]
fn a_room_that_ignores_its_origin_is_never_held() {
    let room = Room { on_unhealthy: OnUnhealthy::Ignore, ..holding_room() };
    let (mut hold, mut evidence) = (Hold::default(), Evidence::default());
    hold.told(&room, "origin", false, START);
    evidence.add(&counts(&[(Reply::Unreachable, 0); 50]), START);
    assert!(!hold.update(&room, &evidence, START) && !hold.is_held());
}
