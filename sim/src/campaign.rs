//! Campaigns: worlds drawn at random, each from one number, and what a room promises in each of them.
//!
//! [`draw`] makes a world: planet, room, visitors, orders and faults. [`broken`] says which promises a run has broken.
//! [`shrink`] looks for the smallest world that still breaks one. docs/simulator.md says what is drawn and what is checked.

use std::fmt;
use std::ops::Add;

use anteroom::history::{Count, Totals};
use anteroom::room::{QueueingMethod, RateWindow};
use fastrand::Rng;
use serde::Serialize;
use toml::{Table, Value};

use crate::measure::Measured;
use crate::planet::{LOCATIONS, Planet};
use crate::scenario::{
    Arrivals, Behaviour, Broken, Colos, Fault, Planet as Setup, Scenario, ScenarioError, Steer,
};

/// The seed of every drawn planet: what makes worlds different is what is drawn of them. `anteroom-sim run` has the same.
const SEED: u64 = 1;
/// Minutes in which nobody new comes any more, so that all sessions end and everything is told.
const AFTERMATH: u32 = 8;
/// The most visitors who are drawn for one world, about.
const MOST_VISITORS: f64 = 12_000.0;
/// What the dice for what was drawn later than the rest begin with, besides the seed.
const MORE: u64 = 0x5a1e;
/// The most worlds that are tried to make one smaller.
const TRIES: u32 = 600;

/// What a room promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Promise {
    /// `total_active_users` holds.
    ActiveUsers,
    /// `new_users_per_minute` holds in a calendar minute.
    Minute,
    /// It holds in any 60 seconds.
    SixtySeconds,
    /// Nobody is stopped whose session goes on.
    Session,
    /// Whoever waits and checks in as told keeps the place.
    Place,
    /// Everybody who comes is in exactly one place.
    Conservation,
    /// What Global counts is what was there, once it is over.
    Counts,
    /// Nobody who entered is counted twice.
    Once,
    /// Nobody is closed out for ever while slots are free.
    Progress,
    /// Every request is answered in time.
    Answer,
    /// Nobody new enters after an operator has closed the room.
    Closed,
    /// A copy of a ticket is refused soon after its session was ended.
    Copy,
    /// Older buckets go first.
    Order,
    /// No object gets more requests than it can be asked.
    Messages,
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Breach {
    /// Which.
    pub promise: Promise,
    /// What was found, and what is promised.
    pub found: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.promise, self.found)
    }
}

/// Chance.
struct Dice(Rng);

impl Dice {
    /// Yes, with a probability.
    fn says(&mut self, probability: f64) -> bool {
        self.0.f64() < probability
    }

    /// A number whose order of magnitude is drawn evenly.
    fn about(&mut self, from: f64, to: f64) -> f64 {
        from * (to / from).powf(self.0.f64())
    }

    /// The same as a whole number.
    fn users(&mut self, from: u32, to: u32) -> u32 {
        self.about(from.into(), f64::from(to) + 0.99) as u32
    }

    /// A share up to `most`; mostly none.
    fn share(&mut self, most: f64) -> f64 {
        if self.says(0.3) { (self.0.f64() * most * 100.0).round() / 100.0 } else { 0.0 }
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.usize(..of.len())]
    }

    /// A second from 0 to the end of some minutes.
    fn second(&mut self, minutes: u32) -> f64 {
        f64::from(self.0.u32(0..minutes * 60))
    }
}

/// Draws a world.
///
/// # Errors
/// What [`Scenario::check`] says of it: then it is this that must be mended.
pub fn draw(seed: u64) -> Result<Scenario, ScenarioError> {
    let dice = &mut Dice(Rng::with_seed(seed));
    let busy = dice.0.u32(3..=10);
    let (active, new) = (dice.users(1, 300), dice.users(1, 300));
    let planet = draw_planet(dice);
    let visitors = draw_visitors(dice);
    let room = draw_room(dice, active, new);
    let events = if dice.says(0.15) { vec![draw_event(dice, busy, active, new)] } else { Vec::new() };
    let faults = draw_faults(dice, busy, planet.colos);
    let steering =
        if events.is_empty() && dice.says(0.3) { draw_steering(dice, busy, active, new) } else { Vec::new() };
    let mut scenario = Scenario {
        name: format!("campaign_{seed}"),
        about: format!("Drawn from seed {seed}."),
        minutes: busy + AFTERMATH,
        below_limits: false,
        arrivals: draw_arrivals(dice, busy, active, new),
        room,
        events,
        planet,
        visitors,
        faults,
        steering,
        origin: None,
    };
    // From dice of its own: what a seed drew before is drawn as it was.
    draw_more(&mut Dice(Rng::with_seed(seed ^ MORE)), busy, &mut scenario);
    scenario.check()?;
    Ok(scenario)
}

/// Copies of tickets, addresses that many share, clocks that jump, and two versions side by side.
fn draw_more(dice: &mut Dice, busy: u32, world: &mut Scenario) {
    let (visitors, colos) = (&mut world.visitors, world.planet.colos);
    if visitors.revoked > 0.0 {
        visitors.copying = dice.share(1.0);
    }
    visitors.attackers = dice.share(0.3);
    if dice.says(0.15) {
        visitors.shared_addresses = dice.users(1, 50).into();
    }
    let fault =
        |at, what, colo| Fault { at, lasts: 0.0, overlaps: 0.0, forgets: false, jumps_ms: 0, what, colo };
    if dice.says(0.1) {
        for _ in 0..dice.0.usize(1..=3) {
            let (at, colo) = (dice.second(busy + 2), dice.0.usize(..colos));
            let jumps_ms = dice.about(100.0, 10_000.0) as i64 * dice.one(&[1, -1]);
            world.faults.push(Fault { jumps_ms, ..fault(at, Broken::Clock, colo) });
        }
    }
    if dice.says(0.1) {
        world.planet.begins_old = true;
        for _ in 0..dice.0.usize(1..=3) {
            world.faults.push(fault(dice.second(busy + 2), Broken::Deploy, 0));
        }
    }
}

fn draw_room(dice: &mut Dice, active: u32, new: u32) -> Table {
    let mut room = Table::new();
    let mut set = |field: &str, value: Value| room.insert(field.to_owned(), value);
    let strategies =
        ["leases", "leases", "leases", "counters", "counters", "worker_slots", "adapted_worker_slots"];
    let strategy = dice.one(&strategies);
    set("slot_strategy", strategy.into());
    set("total_active_users", active.into());
    set("new_users_per_minute", new.into());
    set("session_duration", dice.0.i64(1..=2).into());
    set("refresh_interval_seconds", dice.0.i64(5..=20).into());
    if strategy == "leases" && dice.says(0.25) {
        set("rate_window", "sliding".into());
    }
    if dice.says(0.25) {
        set("queueing_method", dice.one(&["random", "random", "passthrough", "reject"]).into());
    }
    if dice.says(0.15) {
        set("disable_session_renewal", true.into());
    }
    if dice.says(0.1) {
        set("one_place_per_address", true.into());
    }
    set("on_error", dice.one(&["admit", "queue"]).into());
    room
}

/// Times are in minutes.
fn draw_event(dice: &mut Dice, busy: u32, active: u32, new: u32) -> Table {
    let start = i64::from(dice.0.u32(1..=busy));
    let mut event = Table::new();
    event.insert("event_start_time".to_owned(), start.into());
    event.insert("event_end_time".to_owned(), (start + dice.0.i64(1..=4)).into());
    if dice.says(0.6) {
        event.insert("prequeue_start_time".to_owned(), (start - dice.0.i64(5..=8)).into());
        event.insert("shuffle_at_event_start".to_owned(), dice.0.bool().into());
    }
    if dice.says(0.5) {
        event.insert("total_active_users".to_owned(), dice.users(1, active * 2).into());
        event.insert("new_users_per_minute".to_owned(), dice.users(1, new * 2).into());
    }
    event
}

fn draw_planet(dice: &mut Dice) -> Setup {
    let usual = Setup::default();
    let is_slow = dice.says(0.1);
    let storage_ms = if dice.says(0.2) { (dice.0.u64(1..50), dice.0.u64(50..800)) } else { usual.storage_ms };
    Setup {
        colos: dice.0.usize(1..=12),
        zipf: dice.0.f64() * 2.0,
        location: dice.says(0.3).then(|| dice.one(&LOCATIONS).0.to_owned()),
        anywhere_delay_ms: if dice.says(0.15) { dice.0.u64(0..300) } else { 0 },
        service_micros: if is_slow { dice.0.u64(1_000..30_000) } else { usual.service_micros },
        queue_ms: if is_slow { dice.0.u64(50..1_000) } else { usual.queue_ms },
        memory_loss_seconds: dice.one(&[10, 10, 10, 3, 60]),
        restarts_per_hour: if dice.says(0.3) { dice.about(1.0, 120.0) } else { usual.restarts_per_hour },
        counter_restarts_per_hour: if dice.says(0.15) { dice.about(1.0, 240.0) } else { 0.0 },
        requests_per_isolate: dice.about(0.03, 50.0),
        isolate_idle_seconds: dice.one(&[30, 60, 120, 600]),
        deadline_ms: dice.one(&[500, 500, 1_000]),
        storage_ms,
        loss: dice.share(0.3),
        twice: dice.share(0.3),
        jitter_ms: if dice.says(0.3) { dice.0.u64(0..2_000) } else { 0 },
        skew_ms: if dice.says(0.3) { dice.0.u64(0..5_000) } else { 0 },
        ..usual
    }
}

fn draw_visitors(dice: &mut Dice) -> Behaviour {
    let cookieless = dice.share(0.3);
    Behaviour {
        visit_seconds: dice.about(2.0, 60.0),
        gap_seconds: dice.about(2.0, 30.0),
        patience_seconds: dice.about(15.0, 150.0),
        leave_at_once: dice.share(0.3),
        cookieless,
        roaming: dice.share(0.5),
        parallel: dice.share(0.5),
        returning: dice.share(0.3),
        revoked: dice.share(0.5),
        closing: dice.share(1.0),
        bot_addresses: if cookieless > 0.0 && dice.says(0.3) { dice.0.u64(1..20) } else { 0 },
        reloading: dice.share(0.3),
        replaying: dice.share(0.3),
        ..Behaviour::default()
    }
}

/// Between a fifth of what the room takes and many times that, for one to four spans.
fn draw_arrivals(dice: &mut Dice, busy: u32, active: u32, new: u32) -> Vec<Arrivals> {
    let takes = f64::from(new.min(active));
    let spans = dice.0.usize(1..=4);
    let most = MOST_VISITORS / spans as f64;
    let mut arrivals = vec![];
    for _ in 0..spans {
        let from = dice.0.f64() * f64::from(busy - 1);
        let until = (from + dice.about(0.2, busy.into())).min(busy.into());
        let rate = (takes * dice.about(0.2, 20.0)).max(2.0).min(most / (until - from));
        arrivals.push(Arrivals {
            from,
            until: Some(until),
            per_minute: Some(rate),
            to_per_minute: dice.says(0.3).then(|| rate * dice.0.f64()),
            colos: dice.one(&[Colos::All, Colos::All, Colos::Even]),
            ..Arrivals::default()
        });
    }
    arrivals
}

fn draw_faults(dice: &mut Dice, busy: u32, colos: usize) -> Vec<Fault> {
    let mut faults = Vec::new();
    if dice.says(0.5) {
        return faults;
    }
    let fault =
        |at, what, colo| Fault { at, lasts: 0.0, overlaps: 0.0, forgets: false, jumps_ms: 0, what, colo };
    let objects = [Broken::Global, Broken::Anywhere, Broken::Counter, Broken::DataCenter];
    for _ in 0..dice.0.usize(0..=6) {
        let what = dice.one(&objects);
        let (lasts, overlaps) = match dice.0.u32(0..4) {
            0 | 1 => (dice.about(0.5, 40.0), 0.0),
            2 if what != Broken::Global => (0.0, dice.about(0.05, 10.0)),
            _ => (0.0, 0.0),
        };
        let (at, colo) = (dice.second(busy + 1), dice.0.usize(..colos));
        faults.push(Fault { lasts, overlaps, ..fault(at, what, colo) });
    }
    if dice.says(0.3) {
        faults.push(fault(dice.second(busy), Broken::Deploy, 0));
    }
    if colos > 1 && dice.says(0.15) {
        let colo = dice.0.usize(..colos);
        faults.push(fault(dice.second(busy), Broken::Colo, colo));
    }
    faults
}

fn draw_steering(dice: &mut Dice, busy: u32, active: u32, new: u32) -> Vec<Steer> {
    let mut orders = Vec::new();
    for _ in 0..dice.0.usize(1..=4) {
        let at = dice.second(busy);
        let (field, value): (_, Value) = match dice.0.u32(0..5) {
            0 => ("queue_all", true.into()),
            1 => ("suspended", true.into()),
            2 => ("total_active_users", dice.users(1, active * 3).into()),
            _ => ("new_users_per_minute", dice.users(1, new * 3).into()),
        };
        let set = [(field.to_owned(), value)].into_iter().collect();
        orders.push(Steer { at, set, clear: Vec::new() });
        if dice.says(0.7) {
            let at = at + dice.about(1.0, 120.0);
            orders.push(Steer { at, set: Table::new(), clear: vec![field.to_owned()] });
        }
    }
    orders.sort_by(|one, other| one.at.total_cmp(&other.at));
    orders
}

/// Lets a world happen.
///
/// # Errors
/// When the world's room cannot be.
pub fn run(world: &Scenario) -> Result<Measured, ScenarioError> {
    Ok(Planet::new(world, None, None, SEED)?.run(&mut |_| {}))
}

/// How far a clock may ever be behind what another one has told before, or the same one, in milliseconds.
fn apart_ms(world: &Scenario) -> u64 {
    let mut jumps: Vec<&Fault> = world.faults.iter().filter(|fault| fault.jumps_ms != 0).collect();
    jumps.sort_by(|one, other| one.at.total_cmp(&other.at));
    let mut clocks = vec![0; world.planet.colos];
    let (mut earliest, mut latest) = (0, 0);
    for fault in jumps {
        let clock = &mut clocks[fault.colo % world.planet.colos];
        *clock += fault.jumps_ms;
        (earliest, latest) = (earliest.min(*clock), latest.max(*clock));
    }
    2 * world.planet.skew_ms + latest.abs_diff(earliest)
}

/// The promises that a run has broken.
///
/// # Errors
/// When the world's room cannot be.
pub fn broken(world: &Scenario, run: &Measured) -> Result<Vec<Breach>, ScenarioError> {
    let room = world.room(None)?;
    let (planet, strategy) = (&world.planet, room.slot_strategy);
    let session = room.session_ms();
    let ever = run.last_minute.as_ref().map(|last| Totals::of(last).record);
    let count = |count: Count| ever.as_ref().map_or(0, |record| record.count(count));
    let mut breaches = Vec::new();
    let mut at_most = |promise: Promise, of: &str, is: u64, most: u64| {
        if is > most {
            breaches.push(Breach { promise, found: format!("{is} {of}; at most {most} are promised") });
        }
    };

    let hangs = world.faults.iter().any(|fault| fault.lasts > 0.0);
    let jumps_ms = world.faults.iter().map(|fault| fault.jumps_ms.unsigned_abs()).sum::<u64>();
    let [active, minute, sixty] = run.users_over;
    if !strategy.counts_alone() {
        // Where objects cannot be reached the limits are kept approximately: too many are those at most who entered without
        // asking, and where objects hang those whom Counters let in from what they may spare.
        let most = room.total_active_users.max(room.new_users_per_minute);
        let unasked = count(Count::Fallbacks) + if hangs { most.into() } else { 0 };
        // A session that is renewed in its last moment must be told of within a second. Where messages are lost or late or
        // clocks are off, or one hears of whoever goes on in another data center only later, somebody may have been let in.
        let is_told = planet.skew_ms + jumps_ms <= 500
            && planet.jitter_ms <= 500
            && planet.loss <= 0.0
            && !(hangs && world.visitors.roaming > 0.0);
        let untold_renewals = if is_told { 0 } else { 2 + u64::from(room.total_active_users) / 20 };
        at_most(Promise::ActiveUsers, "too many active users", active, unasked + untold_renewals);
        // A permit of the last moment may be used in the next minute.
        // By `counters` so may all that are on their way then: a number is one of its Counter's minute.
        let late = if strategy.leases_permits() { 1 } else { room.new_users_per_minute.into() };
        at_most(Promise::Minute, "too many in a minute", minute, unasked + late);
        if room.rate_window == RateWindow::Sliding {
            at_most(Promise::SixtySeconds, "too many in 60 seconds", sixty, unasked + 1);
        }
    }
    // Clocks of two data centers, one ahead and one behind, set right by states that have been on their way for long.
    let off = 2 * (planet.skew_ms + jumps_ms) + planet.jitter_ms + planet.storage_ms.1 + 1_000;
    // A ticket that is 10 seconds ahead of a clock is none there.
    if apart_ms(world) <= 9_000 {
        at_most(Promise::Session, "ms left of a session that was ended", run.session_lost_ms, off);
        at_most(Promise::Place, "places lost", run.lost_places, 0);
    }
    if world.visitors.bot_addresses == 0 && run.quiet_ms > 0 {
        let placed = run.admitted + run.gave_up + run.turned_away + run.went_past + run.waiting_at_end;
        // A few may be asking just then.
        at_most(Promise::Conservation, "visitors nowhere or twice", run.arrived.abs_diff(placed), 3);
    }
    if run.quiet_ms > session + 60_000 {
        at_most(Promise::Counts, "users miscounted as active", run.miscounted.unsigned_abs(), 0);
        let waiting = run.miscounted_waiting.unsigned_abs();
        at_most(Promise::Counts, "visitors miscounted as waiting", waiting, 0);
    }
    at_most(
        Promise::Once,
        "counted as new users of those who were let in",
        count(Count::NewUsers),
        run.let_in,
    );
    if !strategy.counts_alone() {
        // Whoever is far from the front checks in less often.
        let longest_refresh = u64::from(room.refresh_interval_max_seconds) * 1_000;
        let patience = 2 * session + 120_000 + 5 * longest_refresh;
        at_most(Promise::Progress, "ms in which nobody entered beside free slots", run.stuck_ms, patience);
    }
    let is_steady = world.events.is_empty() && world.steering.is_empty();
    if room.queueing_method == QueueingMethod::Fifo && is_steady && !strategy.counts_alone() {
        at_most(Promise::Order, "in 1,000 passed over", (run.passed_over * 1_000.0) as u64, 20);
    }
    let is_quick = !hangs && planet.loss <= 0.0 && planet.jitter_ms == 0 && world.faults.is_empty();
    if is_quick && !planet.begins_old {
        // An isolate or a data center in which nobody was hears of it after the copy has come, up to a session later. Then two
        // reports, and two pushes of a calm room.
        let most = session + 2 * 28_000 + 2 * session / 6 + 4_000;
        at_most(
            Promise::Copy,
            "ms after its session was ended a copy was let through",
            run.copy_passed_ms,
            most,
        );
    }
    at_most(Promise::Answer, "ms until an answer", run.answer_ms, 20 * planet.deadline_ms);
    let after_closing = run.entered_after_closing_ms.unwrap_or(0);
    // Where nobody is asked for a permit, or can be, a data center that was never told anything lets people in when Global is
    // slow.
    if !hangs && !strategy.counts_alone() && room.queueing_method != QueueingMethod::Passthrough {
        let most = 3_000 + 2 * planet.jitter_ms;
        at_most(Promise::Closed, "ms after closing somebody entered", after_closing, most);
    }
    let colos = planet.colos as u64;
    let [_, _, data_center, global] = run.busiest;
    at_most(Promise::Messages, "requests a second at a DataCenter", data_center, 200);
    at_most(Promise::Messages, "requests a second at Global", global, 20 + 8 * colos);
    Ok(breaches)
}

/// Fields whose value may be made smaller, by their place; the others are left out, so that they have their usual value.
const HALVED: [(&str, &str); 6] = [
    ("room", "total_active_users"),
    ("room", "new_users_per_minute"),
    ("planet", "colos"),
    ("arrivals", "per_minute"),
    ("faults", "lasts"),
    ("", "minutes"),
];
/// Fields that nothing can be left out of.
const NEEDED: [&str; 6] = ["from", "until", "at", "what", "set", "clear"];

/// All worlds with a little less of something: what fails in a smaller one is easier to understand.
fn smaller(world: &Table) -> Vec<Table> {
    let mut found = Vec::new();
    for (name, part) in world {
        let mut with = |part: Value| {
            let mut other = world.clone();
            other.insert(name.clone(), part);
            found.push(other);
        };
        match part {
            Value::Array(parts) => {
                for index in 0..parts.len() {
                    let mut fewer = parts.clone();
                    fewer.remove(index);
                    with(fewer.into());
                }
                for (index, part) in parts.iter().enumerate() {
                    for less in part.as_table().map_or_else(Vec::new, |part| less_of(name, part)) {
                        let mut parts = parts.clone();
                        parts[index] = less.into();
                        with(parts.into());
                    }
                }
            }
            Value::Table(part) => {
                let kept = part.iter().filter(|(field, _)| HALVED.contains(&(name, field)));
                with(kept.map(|(field, value)| (field.clone(), value.clone())).collect::<Table>().into());
                for less in less_of(name, part) {
                    with(less.into());
                }
            }
            _ => halved(part).filter(|_| HALVED.contains(&("", name))).map_or((), with),
        }
    }
    found
}

/// A part of a world with one field less, or a smaller number in it.
fn less_of(name: &str, part: &Table) -> Vec<Table> {
    let less = |(field, value): (&String, &Value)| {
        let mut part = part.clone();
        if !HALVED.contains(&(name, field)) {
            return (!NEEDED.contains(&field.as_str())).then(|| {
                part.remove(field);
                part
            });
        }
        part.insert(field.clone(), halved(value)?);
        Some(part)
    };
    part.iter().filter_map(less).collect()
}

fn halved(value: &Value) -> Option<Value> {
    match value {
        Value::Integer(number) if *number > 1 => Some((number / 2).into()),
        Value::Float(number) if *number > 1.0 => Some((number / 2.0).floor().into()),
        _ => None,
    }
}

/// The smallest world that can be found by leaving things out of this one, and that still breaks the promise.
///
/// # Errors
/// When the world's room cannot be.
pub fn shrink(world: &Scenario, promise: Promise) -> Result<Scenario, ScenarioError> {
    let told = |error: toml::ser::Error| ScenarioError(error.to_string());
    let mut table = Table::try_from(world).map_err(told)?;
    let mut smallest = world.clone();
    let (mut tries, mut next) = (0, 0);
    while tries < TRIES {
        let Some(candidate) = smaller(&table).into_iter().nth(next) else { break };
        let Ok(world) = candidate.clone().try_into::<Scenario>() else {
            next += 1;
            continue;
        };
        tries += 1;
        let breaks = world.check().is_ok()
            && candidate != table
            && broken(&world, &run(&world)?)?.iter().any(|breach| breach.promise == promise);
        if breaks {
            (table, smallest, next) = (candidate, world, 0);
        } else {
            next += 1;
        }
    }
    Ok(smallest)
}

/// A world that broke promises, and the smallest that breaks the first of them.
#[derive(Debug)]
pub struct Failed {
    /// What was broken.
    pub breaches: Vec<Breach>,
    /// The smallest world.
    pub smallest: Scenario,
}

/// What came of some worlds.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// How many worlds.
    pub worlds: u64,
    /// Of them, those that broke promises.
    pub failed: u64,
    /// Visitors who came.
    pub visitors: u64,
    /// Of them, those who had to wait.
    pub queued: u64,
    /// Simulated events.
    pub events: u64,
}

impl Tally {
    /// Draws a world from a seed, lets it happen and judges it. Returns what failed, if anything has; as the smallest world
    /// that can be found, if that is wanted.
    ///
    /// # Errors
    /// When the world's room cannot be.
    pub fn world(&mut self, seed: u64, shrinks: bool) -> Result<Option<Failed>, ScenarioError> {
        let world = draw(seed)?;
        let run = run(&world)?;
        self.worlds += 1;
        self.visitors += run.arrived;
        self.queued += run.queued;
        self.events += run.events;
        let breaches = broken(&world, &run)?;
        let Some(first) = breaches.first() else { return Ok(None) };
        self.failed += 1;
        let smallest = if shrinks { shrink(&world, first.promise)? } else { world };
        Ok(Some(Failed { breaches, smallest }))
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            worlds: self.worlds + other.worlds,
            failed: self.failed + other.failed,
            visitors: self.visitors + other.visitors,
            queued: self.queued + other.queued,
            events: self.events + other.events,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worlds, failed, visitors, queued, events } = self;
        write!(
            formatter,
            "Planets: {worlds}, with {visitors} visitors, of whom {queued} had to wait, and {events} events. \
             Planets in which a promise was broken: {failed}"
        )
    }
}
