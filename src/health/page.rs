//! The status page and its JSON, as answers ready to be sent.

use std::fmt::Write as _;

use askama::Template;

use super::Reason;
use super::analytics::{Percentiles, Range};
use super::view::{self, ResultView, Status, View};
use crate::answer::Answer;

/// The style as `build.rs` compacted it; its hash was taken from these bytes.
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/health.css"));

/// What the page may do: use the style that it carries, run the one script of ours, and ask its own site.
const POLICY: &str = concat!(
    "default-src 'none'; style-src '",
    env!("ANTEROOM_HEALTH_STYLE_HASH"),
    "'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
);

/// So many checks are drawn together; the others are drawn when they are chosen.
const DRAWN_CHECKS: usize = 12;

/// The four moments of a waterfall, as they are called.
const MOMENTS: [&str; 4] = ["TCP connect", "TLS handshake", "First byte", "Total"];

/// The page; `script` is the address of its script.
pub fn page(view: &View, script: &str) -> String {
    let (summary, as_of) = (summary(view), view::time(view.at));
    let page = Page { style: STYLE, script, view, summary, as_of, sections: sections(view) };
    // Only a template that fails in the midst could get here, and ours holds nothing that can.
    page.render().unwrap_or_else(|_| view.status.text().to_owned())
}

/// The same for programs.
pub fn json(view: &View) -> String {
    serde_json::to_string(view).unwrap_or_default()
}

/// The page, or the JSON, as an answer.
pub fn answer(body: String, json: bool) -> Answer {
    let mut headers = headers(if json { "application/json" } else { "text/html; charset=utf-8" });
    if !json {
        headers.push(("content-language", "en".to_owned()));
        headers.push(("content-security-policy", POLICY.to_owned()));
    }
    Answer { status: 200, headers, body }
}

/// One sentence, for whatever is refused.
pub fn sentence(status: u16, sentence: &str) -> Answer {
    Answer { status, headers: headers("text/plain; charset=utf-8"), body: format!("{sentence}.\n") }
}

fn headers(content_type: &str) -> Vec<(&'static str, String)> {
    vec![
        ("content-type", content_type.to_owned()),
        ("cache-control", "private, no-store".to_owned()),
        ("vary", "Accept, Authorization".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
        ("referrer-policy", "no-referrer".to_owned()),
        ("x-robots-tag", "noindex".to_owned()),
    ]
}

#[derive(Template)]
#[template(path = "health.html.j2")]
struct Page<'a> {
    style: &'static str,
    script: &'a str,
    view: &'a View,
    summary: String,
    as_of: String,
    sections: Vec<Section>,
}

impl Page<'_> {
    /// The ranges to choose from: address, title, and whether it is the one that is shown.
    fn ranges(&self) -> [(String, &'static str, bool); 4] {
        Range::ALL.map(|range| (address(range, &self.view.selected), range.title(), range == self.view.range))
    }

    /// The page of all checks.
    fn all_checks(&self) -> String {
        address(self.view.range, "")
    }
}

/// A part of the page: a table under a title.
struct Section {
    /// Unique on the page.
    id: &'static str,
    title: String,
    note: &'static str,
    /// Titles of the columns.
    head: Vec<String>,
    /// So many columns hold texts; numbers follow.
    texts: usize,
    rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
enum Cell {
    /// A text or a number.
    Plain(String),
    /// The row's title.
    Title(String),
    /// The row's title, and a link to an address.
    Link(String, String),
    Status(Status),
    /// The stages of a waterfall as parts of a bar that is 1,000 wide: class, beginning, width.
    Bar(Vec<(&'static str, u32, u32)>),
}

impl Cell {
    /// A text; of an empty one, a dash.
    fn text(text: &str) -> Self {
        Self::Plain(if text.is_empty() { "–" } else { text }.to_owned())
    }

    /// A number, or a dash.
    fn number(number: Option<u64>) -> Self {
        Self::text(&number.map_or_else(String::new, |number| number.to_string()))
    }

    /// A time, or a dash for 0.
    fn time(at: u64) -> Self {
        Self::text(&if at == 0 { String::new() } else { view::time(at) })
    }
}

/// What a screen reader is told when it changes.
fn summary(view: &View) -> String {
    let bad: Vec<&str> = view
        .checks
        .iter()
        .filter(|check| check.status == Status::Unhealthy)
        .map(|check| check.name.as_str())
        .collect();
    match (view.status, view.checks.len()) {
        (_, 0) => "Nothing has been reported yet".to_owned(),
        (Status::Unhealthy, 1) => format!("{} is unhealthy", bad.join(", ")),
        (Status::Unhealthy, all) => format!("{} of {all} checks unhealthy: {}", bad.len(), bad.join(", ")),
        (Status::Healthy, 1) => "The check is healthy".to_owned(),
        (Status::Healthy, all) => format!("All {all} checks are healthy"),
        (Status::Unknown, _) => "Not every check has reported yet".to_owned(),
    }
}

/// The page's address for another range or check; empty: all checks.
fn address(range: Range, check: &str) -> String {
    let mut address = format!("?range={}", range.name());
    if !check.is_empty() {
        address.push_str("&check=");
        for byte in check.bytes() {
            if byte.is_ascii_alphanumeric() || b"-_/".contains(&byte) {
                address.push(byte.into());
            } else {
                // Writing to a text does not fail.
                let _ = write!(address, "%{byte:02X}");
            }
        }
    }
    address
}

/// All tables, in their order; before the first check, none but the first.
fn sections(view: &View) -> Vec<Section> {
    let has_results = view.checks.iter().any(|check| !check.regions.is_empty());
    let mut sections = vec![checks(view)];
    if !view.checks.is_empty() {
        sections.extend([availability(view), course(view), errors(view)]);
        if has_results {
            sections.push(regions(view));
        }
        sections.push(changes(view));
        if has_results {
            sections.push(results(view));
        }
    }
    sections
}

/// A section whose first columns hold texts, the others numbers.
fn section(
    id: &'static str,
    title: &str,
    texts: &[&str],
    numbers: &[&str],
    rows: impl Iterator<Item = Vec<Cell>>,
) -> Section {
    let head = texts.iter().chain(numbers).map(|&title| title.to_owned()).collect();
    Section { id, title: title.to_owned(), note: "", head, texts: texts.len(), rows: rows.collect() }
}

fn checks(view: &View) -> Section {
    let rows = view.checks.iter().map(|check| {
        vec![
            Cell::Link(check.name.clone(), address(view.range, &check.id)),
            Cell::Status(check.status),
            Cell::text(&check.reason),
            Cell::time(check.since),
        ]
    });
    section("checks", "Checks", &["Check", "Status", "Failure reason", "Since"], &[], rows)
}

fn availability(view: &View) -> Section {
    let rows = view.checks.iter().map(|check| {
        let mut row = vec![Cell::Title(check.name.clone())];
        row.extend(check.availability.iter().map(|availability| Cell::text(&availability.percent)));
        row
    });
    section("availability", "Availability", &["Check"], &Range::ALL.map(Range::title), rows)
}

/// The slots of the range, and what each check says of them. The script draws it.
fn course(view: &View) -> Section {
    let checks = view.checks.get(..DRAWN_CHECKS).unwrap_or(&view.checks);
    let mut head = vec!["From".to_owned()];
    for check in checks {
        head.extend([format!("{}, %", check.name), format!("{}, ms", check.name)]);
    }
    let mut rows = Vec::new();
    for (index, slot) in checks.first().map_or(&[][..], |check| &check.slots).iter().enumerate() {
        let mut row = vec![Cell::time(slot.at)];
        for check in checks {
            let slot = check.slots.get(index).filter(|slot| slot.tally.total > 0);
            let percent = slot.map_or_else(String::new, |slot| slot.tally.percent());
            row.push(Cell::text(percent.trim_end_matches(" %")));
            row.push(Cell::number(slot.and_then(|slot| slot.total).map(|total| total.p50.into())));
        }
        rows.push(row);
    }
    let title = format!("The last {}", view.range.title().trim_start_matches("1 "));
    Section { id: "course", title, note: "", head, texts: 1, rows }
}

fn errors(view: &View) -> Section {
    let mut rows = Vec::new();
    for check in &view.checks {
        let mut row = |reason: &str, count| {
            rows.push(vec![Cell::Title(check.name.clone()), Cell::text(reason), Cell::number(Some(count))]);
        };
        if check.errors.is_empty() {
            row(Reason::NoFailures.text(), 0);
        }
        for error in &check.errors {
            row(&error.reason, error.count);
        }
    }
    section("errors", "Errors by reason", &["Check", "Failure reason"], &["Times"], rows.into_iter())
}

fn regions(view: &View) -> Section {
    let mut rows = Vec::new();
    for check in &view.checks {
        for region in &check.regions {
            let mut row = vec![
                Cell::Title(check.name.clone()),
                Cell::text(&region.region),
                Cell::number(Some(region.tally.total)),
                Cell::text(&region.tally.percent()),
            ];
            row.extend(region.moments.iter().map(|moment| {
                let text = |Percentiles { p50, p90, p99 }: Percentiles| format!("{p50} / {p90} / {p99}");
                Cell::text(&moment.map_or_else(String::new, text))
            }));
            rows.push(row);
        }
    }
    let [tcp, tls, first, total] = MOMENTS;
    let numbers = ["Results", "Available", tcp, tls, first, total];
    let note = "Milliseconds from the start of a probe: half of the probes / 90 % / 99 % took no longer.";
    Section { note, ..section("regions", "Regions", &["Check", "Region"], &numbers, rows.into_iter()) }
}

fn changes(view: &View) -> Section {
    let rows = view.changes.iter().map(|change| {
        vec![
            Cell::time(change.at),
            Cell::text(&change.check),
            Cell::Status(change.status),
            Cell::text(&change.reason),
            Cell::text(&change.expected_codes),
            Cell::number(change.actual_code.map(u64::from)),
        ]
    });
    let texts = ["Time", "Check", "Status", "Failure reason"];
    section("changes", "Changes", &texts, &["Expected", "Received"], rows)
}

fn results(view: &View) -> Section {
    let moments = view.results.iter().flat_map(|result| result.waterfall.moments());
    let longest = moments.flatten().max().unwrap_or(0).max(1);
    let rows = view.results.iter().map(|result| {
        let mut row = vec![
            Cell::time(result.at),
            Cell::text(&result.check),
            Cell::text(&format!("{} {}", result.region, result.observer)),
            Cell::text(&result.reason),
            Cell::text(&result.expected_codes),
            Cell::number(result.actual_code.map(u64::from)),
        ];
        row.extend(result.waterfall.moments().map(|moment| Cell::number(moment.map(u64::from))));
        row.push(Cell::Bar(stages(result, longest)));
        row
    });
    let texts = ["Time", "Check", "Region", "Failure reason"];
    let [tcp, tls, first, total] = MOMENTS;
    let numbers = ["Expected", "Received", tcp, tls, first, total, "Waterfall"];
    let note = "The newest results. Milliseconds from the start of a probe.";
    Section { note, ..section("results", "Event log", &texts, &numbers, rows) }
}

/// A waterfall's stages as parts of a bar that is 1,000 wide for the longest probe.
fn stages(result: &ResultView, longest: u32) -> Vec<(&'static str, u32, u32)> {
    let mut begin = 0;
    let mut stages = Vec::new();
    for (class, moment) in ["tcp", "tls", "first", "total"].into_iter().zip(result.waterfall.moments()) {
        if let Some(ms) = moment {
            let end = (u64::from(ms) * 1_000 / u64::from(longest)) as u32;
            stages.push((class, begin, end.saturating_sub(begin)));
            begin = end.max(begin);
        }
    }
    stages
}
