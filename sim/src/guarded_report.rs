//! Figures of [`crate::guarded`]: a table, JSON, and a page with charts.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, TableStyle, presets};

use crate::guarded::{Figures, Guarded, Line};
use crate::report::{Chart, ReportError, SecondsLine, by_second, page_with, thousands};

/// All seeds of one test with one limiter.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a>(&'a [Guarded]);

/// The runs, which are in the order of test and limiter, by these.
pub fn rows(runs: &[Guarded]) -> Vec<Rows<'_>> {
    let same = |one: &Guarded, other: &Guarded| {
        (one.line, one.test, one.limiter) == (other.line, other.test, other.limiter)
    };
    runs.chunk_by(same).map(Rows).collect()
}

impl Rows<'_> {
    fn mean(&self, value: fn(&Figures) -> f64) -> f64 {
        self.0.iter().map(|run| value(&run.figures)).sum::<f64>() / self.0.len().max(1) as f64
    }

    fn least(&self, value: fn(&Figures) -> f64) -> f64 {
        self.0.iter().map(|run| value(&run.figures)).fold(f64::INFINITY, f64::min)
    }

    fn most(&self, value: fn(&Figures) -> f64) -> f64 {
        self.0.iter().map(|run| value(&run.figures)).fold(0.0, f64::max)
    }
}

const TITLES: [&str; 16] = [
    "test",
    "limiter",
    "line",
    "goodput|%",
    "worst 5 s|%",
    "wasted|%",
    "completed|",
    "wasted|",
    "timed|out",
    "failed|",
    "refused|",
    "latency|p50 ms",
    "latency|p95 ms",
    "in vain|ms",
    "window|min/mean/max",
    "verdict|",
];

fn cells(rows: &[Rows<'_>]) -> Vec<Vec<String>> {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    rows.iter()
        .filter_map(|row| {
            let first = row.0.first()?;
            let count = |value: fn(&Figures) -> f64| thousands(row.mean(value));
            let window = match first.limiter {
                "none" => "-".to_owned(),
                _ => format!(
                    "{}/{}/{}",
                    thousands(row.least(|run| run.window_min as f64)),
                    thousands(row.mean(|run| run.window_mean)),
                    thousands(row.most(|run| run.window_max as f64))
                ),
            };
            Some(vec![
                first.test.to_owned(),
                first.limiter.to_owned(),
                line_name(first.line).to_owned(),
                percent(row.least(|run| run.goodput)),
                percent(row.least(|run| run.goodput_worst)),
                percent(row.most(|run| run.wasted_share)),
                count(|run| run.completed as f64),
                count(|run| run.wasted as f64),
                count(|run| run.timed_out as f64),
                count(|run| run.failed as f64),
                count(|run| run.refused as f64),
                count(|run| run.latency_p50 as f64),
                count(|run| run.latency_p95 as f64),
                count(|run| run.in_vain_ms),
                window,
                if row.0.iter().any(|run| run.figures.collapsed) { "collapses" } else { "" }.to_owned(),
            ])
        })
        .collect()
}

fn line_name(line: Line) -> &'static str {
    match line {
        Line::Worker => "worker",
        Line::Origin => "origin",
    }
}

fn draw(rows: &[Rows<'_>], between: &str, style: TableStyle) -> String {
    let mut table = Table::new();
    let titles = TITLES.map(|title| title.replace('|', between).trim().to_owned());
    table.load_style(style).set_header(titles).add_rows(cells(rows));
    for (index, column) in table.column_iter_mut().enumerate() {
        if (3..TITLES.len() - 1).contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if between == "\n" {
            column.set_padding((0, 1));
        }
    }
    table.trim_fmt()
}

/// The table for a terminal.
pub fn text(rows: &[Rows<'_>]) -> String {
    draw(rows, "\n", presets::NOTHING)
}

/// Two tables in Markdown: goodput and waste of each limiter side by side, a line per test; and all figures of the
/// test `x10`, if it was run.
pub fn markdown(rows: &[Rows<'_>]) -> String {
    let mut limiters: Vec<&str> = Vec::new();
    let mut tests: Vec<(Line, &str)> = Vec::new();
    for run in rows.iter().filter_map(|row| row.0.first()) {
        if !limiters.contains(&run.limiter) {
            limiters.push(run.limiter);
        }
        if !tests.contains(&(run.line, run.test)) {
            tests.push((run.line, run.test));
        }
    }
    let cell = |line: Line, test: &str, limiter: &str| {
        let row = rows.iter().find(|row| {
            row.0.first().is_some_and(|run| (run.line, run.test, run.limiter) == (line, test, limiter))
        });
        row.map_or_else(String::new, |row| {
            let (goodput, wasted) = (row.least(|run| run.goodput), row.most(|run| run.wasted_share));
            let figures = format!("{:.0} / {:.1}", goodput * 100.0, wasted * 100.0);
            if row.0.iter().any(|run| run.figures.collapsed) { format!("**{figures}**") } else { figures }
        })
    };
    let mut matrix = Table::new();
    let titles = ["line", "test"].into_iter().chain(limiters.iter().copied());
    matrix.load_style(presets::ASCII_MARKDOWN).set_header(titles);
    for (line, test) in &tests {
        let names = [line_name(*line).to_owned(), (*test).to_owned()];
        let cells = limiters.iter().map(|limiter| cell(*line, test, limiter));
        matrix.add_row(names.into_iter().chain(cells));
    }
    for column in matrix.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let detailed: Vec<Rows<'_>> =
        rows.iter().copied().filter(|row| row.0.first().is_some_and(|run| run.test == "x10")).collect();
    let matrix = matrix.trim_fmt();
    if detailed.is_empty() {
        matrix
    } else {
        format!("{matrix}\n\n{}", draw(&detailed, " ", presets::ASCII_MARKDOWN))
    }
}

/// All runs as JSON. The same runs give the same bytes.
///
/// # Errors
/// When a figure cannot be written.
pub fn json(runs: &[Guarded]) -> Result<String, ReportError> {
    crate::report::any_json(runs)
}

/// The page: the table, then each test second by second, of its first seed.
///
/// # Errors
/// When a chart or the page cannot be drawn.
pub fn page(rows: &[Rows<'_>], lead: &[String]) -> Result<String, ReportError> {
    let mut tests: BTreeMap<usize, Vec<&Guarded>> = BTreeMap::new();
    let mut names: Vec<(Line, &str)> = Vec::new();
    for run in rows.iter().filter_map(|row| row.0.first()) {
        let name = (run.line, run.test);
        let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        tests.entry(place).or_default().push(run);
    }
    let charts: Result<Vec<Chart>, ReportError> = tests.values().map(|runs| chart(runs)).collect();
    page_with("Anteroom: origin_guard under floods", lead, &TITLES, cells(rows), &charts?)
}

/// What may have any number of requests at the origin.
fn is_wild(limiter: &str) -> bool {
    matches!(limiter, "none" | "static")
}

/// One test: a line per limiter.
fn chart(runs: &[&Guarded]) -> Result<Chart, ReportError> {
    let Some(first) = runs.first() else { return by_second("", "", Vec::new()) };
    let lines = |value: fn(&crate::guarded::Second) -> f64| -> Vec<SecondsLine> {
        runs.iter().map(|run| (run.limiter, run.figures.series.iter().map(value).collect(), false)).collect()
    };
    let mut completed = lines(|second| second.completed as f64);
    completed.push((
        "the most possible",
        first.figures.series.iter().map(|second| second.best).collect(),
        true,
    ));
    // What has no limit would hide the others.
    let mut at_origin = lines(|second| second.at_origin as f64);
    let most = runs
        .iter()
        .filter(|run| !is_wild(run.limiter))
        .flat_map(|run| &run.figures.series)
        .map(|second| second.at_origin as f64)
        .fold(10.0, f64::max);
    for (name, values, _) in &mut at_origin {
        if is_wild(name) {
            for value in values.iter_mut() {
                *value = value.min(most * 1.5);
            }
        }
    }
    let mut windows = lines(|second| second.window as f64);
    for (name, values, _) in &mut windows {
        // Fixed ones neither.
        if matches!(*name, "none" | "static" | "newest_first") {
            values.clear();
        }
    }
    let told: Vec<String> = runs
        .iter()
        .map(|run| {
            format!(
                "{}: goodput {:.0} %, {:.1} % wasted",
                run.limiter,
                run.figures.goodput * 100.0,
                run.figures.wasted_share * 100.0
            )
        })
        .collect();
    let place = match first.line {
        Line::Worker => "line in the workers",
        Line::Origin => "line in the origin",
    };
    let desc = format!("{} {}.", first.about, told.join("; "));
    by_second(
        &format!("{}, {place}", first.test),
        &desc,
        vec![
            ("completed per second", completed),
            ("wasted per second", lines(|second| second.wasted as f64)),
            ("window", windows),
            ("at the origin", at_origin),
        ],
    )
}
