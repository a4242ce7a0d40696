//! What the platform bills for a run, and the three prices of `docs/price.md`.
//!
//! Prices are list prices of Workers Paid; `docs/price.md` says where they come from and what is billed when.

use anteroom::room::SlotStrategy;
use serde::Serialize;

use crate::measure::Measured;
use crate::scenario::{Scenario, ScenarioError, shipped};
use crate::table::strategy_name;

/// What a month of Workers Paid costs before anything is used, in US dollars.
pub const PLAN_DOLLARS: f64 = 5.0;
/// An object is billed as this much memory while it is awake, in GB.
const OBJECT_GB: f64 = 0.128;
/// CPU time of a Worker's request, in milliseconds: an assumption.
const CPU_MS: f64 = 1.0;
/// What one unit costs, and how many a month of Workers Paid includes, in the order of [`PARTS`].
const PRICES: [(f64, f64); 5] =
    [(0.30e-6, 10e6), (0.02e-6, 30e6), (0.15e-6, 1e6), (12.50e-6, 400e3), (1e-6, 50e6)];
/// What is billed.
pub const PARTS: [&str; 5] =
    ["Worker requests", "CPU time", "requests to objects", "duration of objects", "rows written"];

/// Kinds of objects, in the order of [`Measured::billed`].
const OBJECTS: [&str; 4] = ["Counter", "Anywhere", "DataCenter", "Global"];

/// What is billed of objects of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Billed {
    /// Requests and alarms.
    pub requests: f64,
    /// Seconds in which an object worked, waited for an answer or a write, or had a timer.
    pub seconds: f64,
    /// Records and lines of tables written, and alarms set.
    pub rows: f64,
}

/// What is billed, in the platform's units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Visitors' requests.
    pub worker_requests: f64,
    /// CPU time of the Worker, in milliseconds.
    pub cpu_ms: f64,
    /// Requests to objects, with alarms.
    pub object_requests: f64,
    /// Duration of objects.
    pub gb_seconds: f64,
    /// Rows written by objects.
    pub rows_written: f64,
}

impl Usage {
    /// What visitors' requests and objects use.
    pub fn of(requests: u64, objects: &[Billed]) -> Self {
        let sum = |of: fn(&Billed) -> f64| objects.iter().map(of).sum::<f64>();
        Self {
            worker_requests: requests as f64,
            cpu_ms: requests as f64 * CPU_MS,
            object_requests: sum(|objects| objects.requests),
            gb_seconds: sum(|objects| objects.seconds) * OBJECT_GB,
            rows_written: sum(|objects| objects.rows),
        }
    }

    fn units(&self) -> [f64; 5] {
        [self.worker_requests, self.cpu_ms, self.object_requests, self.gb_seconds, self.rows_written]
    }

    /// What each part costs at list prices, `times` as often, in the order of [`PARTS`].
    pub fn parts(&self, times: f64) -> [f64; 5] {
        let units = self.units();
        std::array::from_fn(|part| units[part] * times * PRICES[part].0)
    }

    /// What it costs at list prices, in US dollars.
    pub fn dollars(&self) -> f64 {
        self.parts(1.0).iter().sum()
    }

    /// What it costs, `times` as often, beyond what a month of Workers Paid includes.
    pub fn beyond_included(&self, times: f64) -> f64 {
        let beyond =
            |(units, (price, included)): (f64, (f64, f64))| (units * times - included).max(0.0) * price;
        self.units().into_iter().zip(PRICES).map(beyond).sum()
    }
}

/// 100,000 come within a minute and wait, and from then on as many come as enter.
const WAITING: &str = "\
name = \"waiting\"
minutes = 20
room = { total_active_users = 10000, new_users_per_minute = 3000, session_duration = 2 }
visitors = { patience_seconds = 1000000 }
arrivals = [{ until = 1, per_minute = 110000 }, { from = 1, per_minute = 2000 }]
";

/// One of the three prices.
#[derive(Debug, Clone)]
pub struct Bill {
    /// What it is the price of.
    pub title: &'static str,
    /// What is simulated.
    pub scenario: Scenario,
    /// How often what was simulated makes what the price is of.
    times: fn(&Measured) -> f64,
}

/// The three prices.
///
/// # Errors
/// When a scenario cannot be read.
pub fn bills() -> Result<[Bill; 3], ScenarioError> {
    let bill = |title, scenario, times| Bill { title, scenario, times };
    Ok([
        bill("1 M visits of `steady85`", shipped("steady85")?, |run| 1e6 / run.arrived.max(1) as f64),
        // Twenty minutes, three times.
        bill("an hour with 100,000 waiting", Scenario::parse(WAITING)?, |_| 3.0),
        // Half an hour, all month.
        bill("a month of `quiet`", shipped("quiet")?, |_| 30.0 * 48.0),
    ])
}

/// A bill, by one strategy, with so many colos.
#[derive(Debug, Clone)]
pub struct Priced<'a> {
    /// Which.
    pub bill: &'a Bill,
    /// By which strategy.
    pub strategy: SlotStrategy,
    /// How many data centers.
    pub colos: usize,
    /// What happened.
    pub measured: Measured,
}

impl Priced<'_> {
    /// What each part costs, in the order of [`PARTS`], in US dollars.
    pub fn parts(&self) -> [f64; 5] {
        self.measured.usage.parts((self.bill.times)(&self.measured))
    }
}

/// All of them as two tables in Markdown: what it costs, and which objects of `leases` cost it.
pub fn markdown(priced: &[Priced<'_>]) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = format!(
        "| dollars | strategy | data centers | {} | total | without Worker requests and CPU time |\n|{}\n",
        PARTS.join(" | "),
        " --- |".repeat(3 + PARTS.len() + 2)
    );
    for priced in priced {
        let parts = priced.parts();
        let name = [priced.bill.title, strategy_name(priced.strategy), &priced.colos.to_string()];
        let sums = [parts.iter().sum(), parts[2..].iter().sum()];
        let figures = parts.iter().chain(&sums).map(|dollars: &f64| format!("{dollars:.2}"));
        text += &row(name.into_iter().map(str::to_owned).chain(figures).collect());
    }
    text += "\n| dollars, `leases` | data centers | objects | requests | duration | rows written |\n\
             | --- | --- | --- | --- | --- | --- |\n";
    for priced in priced.iter().filter(|priced| priced.strategy == SlotStrategy::Leases) {
        let times = (priced.bill.times)(&priced.measured);
        for (objects, billed) in OBJECTS.iter().zip(priced.measured.billed) {
            let parts = Usage::of(0, &[billed]).parts(times);
            let name = [priced.bill.title.to_owned(), priced.colos.to_string(), (*objects).to_owned()];
            let figures = parts[2..].iter().map(|dollars| format!("{dollars:.2}"));
            text += &row(name.into_iter().chain(figures).collect());
        }
    }
    text.trim_end().to_owned()
}
