//! The adaptive-rate-limiter article's synthetic test, with `origin_guard` as it runs in production: a flood of clients
//! in front of an origin, for each strategy and for no limiter at all.
//!
//! Simulated are the clients, the workers' timers and the origin ([`crate::origin`]). What is decided is decided by
//! the core's [`Guard`].

use anteroom::origin::{Arrival, Ending, Guard, GuardSettings, GuardStrategy, Passage, Turn};
use fastrand::Rng;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::clockwork::Clockwork;
use crate::literal_guard::Literal;
use crate::origin::{Origin, OriginAnswer, OriginFault, Setup, Sharing, Trouble};

/// When figures begin, in seconds: by then windows have found their place.
const WARM_SECONDS: u64 = 10;
/// Time between two looks at the window, in milliseconds.
const SAMPLE_MS: u64 = 100;
/// What is under half of the origin's best is a collapse.
const COLLAPSE: f64 = 0.5;
/// The length of the worst stretch, in seconds.
const STRETCH_SECONDS: usize = 5;

/// What stands before the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// Nothing: every request is sent at once.
    None,
    /// `origin_guard` with a strategy.
    Guard(GuardStrategy),
    /// The article's limiter with positions, as it reads.
    Literal,
}

impl Limiter {
    /// All of them, in the order of the article.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Guard(GuardStrategy::Static),
        Self::Guard(GuardStrategy::Basic),
        Self::Literal,
        Self::Guard(GuardStrategy::Position),
        Self::Guard(GuardStrategy::NewestFirst),
    ];

    /// Its name: of a strategy, as in wrangler.toml.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Literal => "position_literal",
            Self::Guard(GuardStrategy::Static) => "static",
            Self::Guard(GuardStrategy::Basic) => "basic",
            Self::Guard(GuardStrategy::Position) => "position",
            Self::Guard(GuardStrategy::NewestFirst) => "newest_first",
        }
    }
}

/// Where requests wait that the origin cannot serve at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// In the workers, which send as many at once as the origin works on (`at_once`): as in the article.
    Worker,
    /// In the origin: all that the window lets is sent at once.
    Origin,
}

/// A test: who comes, to which origin, over how many workers.
#[derive(Debug, Clone)]
pub struct Test {
    /// Its name, for tables.
    pub name: &'static str,
    /// What it is about, in a sentence.
    pub about: &'static str,
    /// How long it takes, in seconds.
    pub seconds: u64,
    /// New clients in a span, from and until which second, in multiples of what the origin can do when all is well.
    pub load: Vec<(u64, u64, f64)>,
    /// How many workers share the origin.
    pub workers: usize,
    /// The origin.
    pub origin: Setup,
    /// `at_once` of all workers together, in multiples of what the origin works on at once: 1 is as it should be.
    pub at_once: f64,
    /// The guard's `timeout`, in multiples of how long a client waits.
    pub timeout: f64,
    /// Whether the platform tells of clients who leave while the origin has their request (`enable_request_signal`). Then
    /// whoever has waited a quarter of the time-out counts as a time-out.
    pub told: bool,
}

impl Test {
    /// Whether the guard learns of clients who waited in vain.
    fn sees_leaving(&self) -> bool {
        self.timeout <= 1.0 || (self.told && self.timeout <= 4.0)
    }
}

/// What all tests have in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Terms {
    /// Where requests wait.
    pub line: Line,
    /// The smallest window of a worker.
    pub min: u32,
    /// The largest window of a worker.
    pub max: u32,
    /// How long a client waits from the click on, in milliseconds. It is the guard's `hold_ms` too.
    pub patience_ms: u64,
    /// How often a client tries again that was refused, failed or waited in vain.
    pub retries: u32,
    /// Mean time until it does, in milliseconds.
    pub retry_ms: f64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { line: Line::Worker, min: 2, max: 1_000, patience_ms: 1_000, retries: 2, retry_ms: 1_000.0 }
    }
}

/// The tests that ship, in the order of the table, with an origin.
pub fn tests(base: &Setup) -> Vec<Test> {
    let mut tests = floods(base);
    tests.extend(troubles(base));
    tests
}

/// A minute, one worker, an origin that is known.
fn test(name: &'static str, about: &'static str, load: &[(u64, u64, f64)], origin: &Setup) -> Test {
    let (load, origin) = (load.to_vec(), origin.clone());
    Test { name, about, seconds: 60, load, workers: 1, origin, at_once: 1.0, timeout: 1.0, told: true }
}

/// More clients than the origin can serve, all the time.
fn floods(base: &Setup) -> Vec<Test> {
    let of = |name, about, times| test(name, about, &[(0, 60, times)], base);
    let x10 = |name, about| of(name, about, 10.0);
    let cores = Setup { sharing: Sharing::Cores, contention: 0.02, ..base.clone() };
    let sheds = Setup { queue: Some(base.concurrency), ..base.clone() };
    let unknown = "Ten times as much; at_once is ten times what the origin works on, since nobody knew.";
    let long_timeout = "Ten times as much; the guard's time-out is four times as long as clients wait.";
    let blind = "The same, and nobody tells the guard that clients leave.";
    let long = test("x10_long", "Ten times as much, for ten minutes.", &[(0, 600, 10.0)], base);
    let shed = "Ten times as much, to an origin that answers 503 when as many wait as it works on.";
    vec![
        of("calm", "Six tenths of what the origin can do.", 0.6),
        of("x2", "Twice what it can do, all the time.", 2.0),
        of("x5", "Five times as much.", 5.0),
        x10("x10", "Ten times as much."),
        Test { seconds: 600, ..long },
        Test { at_once: 10.0, ..x10("x10_unknown", unknown) },
        Test { timeout: 4.0, ..x10("x10_timeout", long_timeout) },
        Test { timeout: 4.0, told: false, ..x10("x10_blind", blind) },
        Test { workers: 4, ..x10("x10_4", "Ten times as much, over 4 workers that share it.") },
        Test { workers: 30, ..x10("x10_30", "Ten times as much, over 30 workers.") },
        Test { origin: cores, ..x10("cores", "Ten times as much, to an origin that works on all at once.") },
        Test { origin: sheds, ..x10("sheds", shed) },
    ]
}

/// What goes wrong for a while, or for good.
fn troubles(base: &Setup) -> Vec<Test> {
    let of = |name, about, times, (at, lasts, what)| {
        let origin = Setup { faults: vec![OriginFault { at, lasts, what }], ..base.clone() };
        test(name, about, &[(0, 60, times)], &origin)
    };
    let always = 1e6;
    vec![
        test(
            "burst",
            "Eight tenths, and ten times as much for 5 seconds.",
            &[(0, 60, 0.8), (15, 20, 10.0)],
            base,
        ),
        of(
            "halves",
            "Three times as much; the origin's capacity halves after 30 seconds.",
            3.0,
            (30.0, always, Trouble::Capacity(0.5)),
        ),
        of(
            "slow",
            "Eight tenths; from second 20 to 35 everything takes three times as long.",
            0.8,
            (20.0, 15.0, Trouble::Slow(3.0)),
        ),
        of("hangs", "Eight tenths; from second 20 to 30 nothing moves.", 0.8, (20.0, 10.0, Trouble::Hang)),
        of(
            "dies",
            "Eight tenths; from second 20 to 35 it cannot be reached.",
            0.8,
            (20.0, 15.0, Trouble::Dies),
        ),
        of(
            "flaps",
            "Eight tenths; from second 15 to 45 it dies and lives in turn, 3 seconds each.",
            0.8,
            (15.0, 30.0, Trouble::Flaps(3.0)),
        ),
        of(
            "errors",
            "Twice as much; a fifth of all answers are errors of another kind.",
            2.0,
            (0.0, always, Trouble::Errors(0.2)),
        ),
        of(
            "stuck",
            "Four tenths; one request in 200 takes ten seconds.",
            0.4,
            (0.0, always, Trouble::Stuck(0.005)),
        ),
    ]
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Requests that arrived, with those that came again.
    pub arrived: u64,
    /// Requests that were answered in time.
    pub completed: u64,
    /// Requests that the origin worked on to the end after their clients had stopped waiting.
    pub wasted: u64,
    /// Requests whose clients stopped waiting, in line or at the origin.
    pub timed_out: u64,
    /// Requests that were not sent: beyond the window, or dropped from the line.
    pub refused: u64,
    /// Requests that the origin answered with an error, a 503 or not at all.
    pub failed: u64,
    /// Share of what the origin worked on to the end that nobody waited for any more.
    pub wasted_share: f64,
    /// What was completed after the first 10 seconds, as a share of the most that could have been: of what the origin can
    /// do or of new clients, whichever is less.
    pub goodput: f64,
    /// The same of the worst 5 seconds, of those in which something could have been completed in each second.
    pub goodput_worst: f64,
    /// The time within which half of the completed were answered, in milliseconds.
    pub latency_p50: u64,
    /// The same for 95 %.
    pub latency_p95: u64,
    /// How long those had waited who were refused or left, in milliseconds, on the average.
    pub in_vain_ms: f64,
    /// The windows of all workers together after the first 10 seconds, looked at ten times a second.
    pub window_min: u64,
    /// Their mean.
    pub window_mean: f64,
    /// The most.
    pub window_max: u64,
    /// Less than half of what could have been completed was.
    pub collapsed: bool,
    /// Second by second: completed, wasted, the most that could have been completed, windows, in flight at the origin.
    pub series: Vec<Second>,
}

/// One second of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Second {
    /// Requests answered in time.
    pub completed: u64,
    /// Requests worked on in vain.
    pub wasted: u64,
    /// The most that could have been completed.
    pub best: f64,
    /// All windows together, at the second's end.
    pub window: u64,
    /// Requests at the origin, with those that nobody waits for, at the second's end.
    pub at_origin: u64,
}

/// A test with one limiter and seed.
#[derive(Debug, Clone, Serialize)]
pub struct Guarded {
    /// The test's name.
    pub test: &'static str,
    /// What the test is about.
    pub about: &'static str,
    /// Where requests wait.
    pub line: Line,
    /// The limiter's name.
    pub limiter: &'static str,
    /// What all chance was drawn from.
    pub seed: u64,
    /// What came of it.
    pub figures: Figures,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// The next new client comes.
    Client,
    /// A client comes again, for the so-manieth time.
    Again(u32),
    /// A request in line asks for its turn.
    Ask(u64),
    /// A client stops waiting.
    GivesUp(u64),
    /// The origin may have something ready.
    Origin,
    Sample,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    worker: usize,
    passage: Passage,
    tried: u32,
    came_at: u64,
    sent: bool,
    /// Nobody waits for it any more.
    left: bool,
}

/// What a worker has before the origin.
#[derive(Debug, Clone)]
enum Gate {
    Open,
    Guard(Guard),
    Literal(Literal),
}

impl Gate {
    fn new(limiter: Limiter, test: &Test, terms: &Terms) -> Self {
        let Terms { min, max, patience_ms, .. } = *terms;
        let share = f64::from(test.origin.concurrency) * test.at_once / test.workers as f64;
        let at_once = (terms.line == Line::Worker).then_some(share.ceil() as u32);
        let strategy = match limiter {
            Limiter::None => return Self::Open,
            Limiter::Literal => return Self::Literal(Literal::new(min, max, at_once.unwrap_or(u32::MAX))),
            Limiter::Guard(strategy) => strategy,
        };
        let (timeout_ms, hold_ms) = ((patience_ms as f64 * test.timeout) as u64, patience_ms);
        Self::Guard(Guard::new(GuardSettings { strategy, min, max, at_once, timeout_ms, hold_ms }))
    }

    fn window(&self) -> u32 {
        match self {
            Self::Open => 0,
            Self::Guard(guard) => guard.window(),
            Self::Literal(literal) => literal.window(),
        }
    }

    fn arrive(&mut self, now: u64) -> Arrival {
        match self {
            Self::Open => Arrival::Go(Passage::UNCOUNTED),
            Self::Guard(guard) => guard.arrive(now),
            Self::Literal(literal) => literal.arrive(),
        }
    }

    fn turn(&mut self, passage: Passage, now: u64) -> Turn {
        match self {
            Self::Open => Turn::Go,
            Self::Guard(guard) => guard.turn(passage, now),
            Self::Literal(literal) => literal.turn(passage),
        }
    }

    fn ask_after_ms(&self, passage: Passage) -> u64 {
        match self {
            Self::Guard(guard) => guard.ask_after_ms(passage).max(1),
            // In the article's program, work is handed over at once.
            Self::Open | Self::Literal(_) => 1,
        }
    }

    /// The client stops waiting. What is in line is dropped, unless nobody looks there.
    fn left(&mut self, passage: Passage, sent: bool, is_told: bool, now: u64) -> bool {
        match self {
            Self::Open | Self::Literal(_) => false,
            Self::Guard(guard) => {
                if !sent {
                    // It asks once more: standing in line too long tells something.
                    guard.turn(passage, now);
                }
                if is_told || !sent {
                    guard.finished(passage, Ending::TimedOut, now);
                }
                !sent
            }
        }
    }

    fn finished(&mut self, passage: Passage, ending: Ending, now: u64) {
        match self {
            Self::Open => {}
            Self::Guard(guard) => guard.finished(passage, ending, now),
            // An error is an answer too: it is written, and the client is there.
            Self::Literal(literal) => {
                literal.finished(passage, matches!(ending, Ending::Success | Ending::Other));
            }
        }
    }
}

struct Run<'a> {
    test: &'a Test,
    terms: &'a Terms,
    gates: Vec<Gate>,
    origin: Origin,
    origin_due: Option<u64>,
    clockwork: Clockwork<Event>,
    requests: FxHashMap<u64, Request>,
    next: u64,
    rng: Rng,
    latencies: Vec<u64>,
    windows: Vec<u64>,
    in_vain_ms: u64,
    figures: Figures,
}

/// Lets a test happen. The same seed gives the same figures.
pub fn run(test: &Test, terms: &Terms, limiter: Limiter, seed: u64) -> Guarded {
    let mut run = Run {
        test,
        terms,
        gates: vec![Gate::new(limiter, test, terms); test.workers],
        origin: Origin::new(test.origin.clone(), seed),
        origin_due: None,
        clockwork: Clockwork::new(0),
        requests: FxHashMap::default(),
        next: 0,
        rng: Rng::with_seed(seed ^ 0x5EED),
        latencies: Vec::new(),
        windows: Vec::new(),
        in_vain_ms: 0,
        figures: Figures {
            arrived: 0,
            completed: 0,
            wasted: 0,
            timed_out: 0,
            refused: 0,
            failed: 0,
            wasted_share: 0.0,
            goodput: 0.0,
            goodput_worst: 0.0,
            latency_p50: 0,
            latency_p95: 0,
            in_vain_ms: 0.0,
            window_min: 0,
            window_mean: 0.0,
            window_max: 0,
            collapsed: false,
            series: vec![Second::default(); test.seconds as usize],
        },
    };
    run.happen();
    Guarded {
        test: test.name,
        about: test.about,
        line: terms.line,
        limiter: limiter.name(),
        seed,
        figures: run.measured(),
    }
}

impl Run<'_> {
    fn happen(&mut self) {
        self.clockwork.at(0, Event::Client);
        self.clockwork.at(SAMPLE_MS - 1, Event::Sample);
        while let Some(event) = self.clockwork.next(self.test.seconds * 1_000) {
            let now = self.clockwork.now();
            // Whatever the origin has ready by now is there before anything else happens.
            self.answers(now);
            match event {
                Event::Client => self.client(now),
                Event::Again(tried) => self.arrive(tried, now),
                Event::Ask(request) => self.ask(request, now),
                Event::GivesUp(request) => self.gives_up(request, now),
                Event::Origin => self.origin_due = None,
                Event::Sample => self.sample(now),
            }
            if let Some(due) = self.origin.due()
                && self.origin_due.is_none_or(|set| due < set)
            {
                self.origin_due = Some(due);
                self.clockwork.at(due, Event::Origin);
            }
        }
    }

    /// New clients per second at a time.
    fn rate(&self, now: u64) -> f64 {
        let second = now / 1_000;
        let spans = self.test.load.iter().filter(|(from, until, _)| (*from..*until).contains(&second));
        let well = Setup { faults: Vec::new(), ..self.test.origin.clone() };
        spans.map(|(.., times)| times).sum::<f64>() * well.best_per_second(0.0)
    }

    fn client(&mut self, now: u64) {
        // How many come in a millisecond, by chance.
        let mean = self.rate(now) / 1_000.0;
        let mut left = (-mean).exp();
        let mut chance = self.rng.f64();
        let mut clients = 0;
        while chance > left && clients < 1_000 {
            chance -= left;
            clients += 1;
            left *= mean / f64::from(clients);
        }
        for _ in 0..clients {
            self.arrive(0, now);
        }
        self.clockwork.at(now + 1, Event::Client);
    }

    fn arrive(&mut self, tried: u32, now: u64) {
        self.figures.arrived += 1;
        let worker = self.rng.usize(..self.gates.len());
        let arrival = self.gates[worker].arrive(now);
        let (passage, sent) = match arrival {
            Arrival::Refused => {
                self.figures.refused += 1;
                return self.again(tried, now);
            }
            Arrival::Go(passage) => (passage, true),
            Arrival::InLine(passage) => (passage, false),
        };
        let request = self.next;
        self.next += 1;
        self.requests.insert(request, Request { worker, passage, tried, came_at: now, sent, left: false });
        self.clockwork.at(now + self.terms.patience_ms, Event::GivesUp(request));
        if sent {
            self.origin.arrive(request, now);
        } else {
            self.ask_later(request, worker, passage, now);
        }
    }

    fn ask_later(&mut self, request: u64, worker: usize, passage: Passage, now: u64) {
        let after = self.gates[worker].ask_after_ms(passage);
        self.clockwork.at(now + after, Event::Ask(request));
    }

    fn again(&mut self, tried: u32, now: u64) {
        if tried < self.terms.retries {
            let wait = -(1.0 - self.rng.f64()).ln() * self.terms.retry_ms;
            self.clockwork.at(now + 1 + wait as u64, Event::Again(tried + 1));
        }
    }

    fn ask(&mut self, request: u64, now: u64) {
        let Some(one) = self.requests.get_mut(&request) else { return };
        match self.gates[one.worker].turn(one.passage, now) {
            Turn::Go => {
                one.sent = true;
                self.origin.arrive(request, now);
            }
            Turn::Later => {
                let (worker, passage) = (one.worker, one.passage);
                self.ask_later(request, worker, passage, now);
            }
            Turn::Dropped => {
                let (tried, came_at, left) = (one.tried, one.came_at, one.left);
                self.requests.remove(&request);
                if left {
                    return;
                }
                self.figures.refused += 1;
                self.in_vain_ms += now - came_at;
                self.again(tried, now);
            }
        }
    }

    fn gives_up(&mut self, request: u64, now: u64) {
        let Some(one) = self.requests.get_mut(&request) else { return };
        one.left = true;
        let tried = one.tried;
        if self.gates[one.worker].left(one.passage, one.sent, self.test.sees_leaving(), now) {
            self.requests.remove(&request);
        }
        self.figures.timed_out += 1;
        self.in_vain_ms += self.terms.patience_ms;
        self.again(tried, now);
    }

    fn answers(&mut self, now: u64) {
        for (request, answer) in self.origin.answers(now) {
            let Some(one) = self.requests.remove(&request) else { continue };
            let second = self.figures.series.get_mut((now / 1_000) as usize);
            let gate = &mut self.gates[one.worker];
            if one.left {
                // For a limiter that does not know it yet. To one that does not see clients leave it is an answer.
                let seen = if self.test.sees_leaving() { Ending::TimedOut } else { Ending::Success };
                gate.finished(one.passage, seen, now);
                if matches!(answer, OriginAnswer::Served | OriginAnswer::Error) {
                    self.figures.wasted += 1;
                    if let Some(second) = second {
                        second.wasted += 1;
                    }
                }
                continue;
            }
            let ending = match answer {
                OriginAnswer::Served => Ending::Success,
                OriginAnswer::Error => Ending::Other,
                OriginAnswer::Overloaded | OriginAnswer::Unreachable => Ending::Overload,
            };
            gate.finished(one.passage, ending, now);
            if ending == Ending::Success {
                self.figures.completed += 1;
                self.latencies.push(now - one.came_at);
                if let Some(second) = second {
                    second.completed += 1;
                }
            } else {
                self.figures.failed += 1;
                self.again(one.tried, now);
            }
        }
    }

    fn sample(&mut self, now: u64) {
        let windows = self.gates.iter().map(|gate| u64::from(gate.window())).sum();
        if now >= WARM_SECONDS * 1_000 {
            self.windows.push(windows);
        }
        // The most that could have been completed in this tenth of a second.
        let best = self.test.origin.best_per_second(now as f64).min(self.rate(now));
        let at_origin = self.origin.in_flight() as u64;
        if let Some(second) = self.figures.series.get_mut((now / 1_000) as usize) {
            second.best += best * SAMPLE_MS as f64 / 1_000.0;
            second.window = windows;
            second.at_origin = at_origin;
        }
        self.clockwork.at(now + SAMPLE_MS, Event::Sample);
    }

    fn measured(mut self) -> Figures {
        let mut figures = self.figures;
        figures.wasted_share = share(figures.wasted as f64, (figures.wasted + figures.completed) as f64);
        let steady = figures.series.get(WARM_SECONDS as usize..).unwrap_or_default();
        let goodput = |seconds: &[Second]| {
            let best: f64 = seconds.iter().map(|second| second.best).sum();
            let completed: u64 = seconds.iter().map(|second| second.completed).sum();
            // A few more than new clients: those who came again.
            (best > 0.0).then(|| (completed as f64 / best).min(1.0))
        };
        figures.goodput = goodput(steady).unwrap_or(0.0);
        figures.goodput_worst = steady
            .windows(STRETCH_SECONDS)
            .filter(|stretch| stretch.iter().all(|second| second.best > 0.0))
            .filter_map(goodput)
            .fold(figures.goodput, f64::min);
        figures.in_vain_ms = share(self.in_vain_ms as f64, (figures.refused + figures.timed_out) as f64);
        figures.collapsed = figures.goodput < COLLAPSE;
        self.latencies.sort_unstable();
        let percentile = |part: f64| {
            let place = (self.latencies.len() as f64 * part) as usize;
            self.latencies.get(place).or(self.latencies.last()).copied().unwrap_or(0)
        };
        (figures.latency_p50, figures.latency_p95) = (percentile(0.5), percentile(0.95));
        figures.window_min = self.windows.iter().min().copied().unwrap_or(0);
        figures.window_max = self.windows.iter().max().copied().unwrap_or(0);
        figures.window_mean = share(self.windows.iter().sum::<u64>() as f64, self.windows.len() as f64);
        figures
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
