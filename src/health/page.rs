//! The status page and its JSON, as answers ready to be sent.

use std::fmt::Write as _;

use askama::Template;

use super::analytics::{Percentiles, Range};
use super::tables::Tables;
use super::view::{self, ResultView, Status, View};
use super::{Reason, Waterfall};
use crate::answer::Answer;

/// The style as `build.rs` compacted it; its hash was taken from these bytes.
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/health.css"));

/// What the page may do: use the style that it carries, run the one script of ours, and ask its own site.
const POLICY: &str = concat!(
    "default-src 'none'; style-src '",
    env!("ANTEROOM_HEALTH_STYLE_HASH"),
    "'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
);

/// How many checks are drawn together; the others are drawn when they are chosen.
const DRAWN_CHECKS: usize = 12;

/// The four moments of a waterfall, as they are called.
const MOMENTS: [&str; 4] = ["TCP connect", "TLS handshake", "First byte", "Total"];

/// The page; `script` is the address of its script.
pub fn page(view: &View, script: &str) -> String {
    let status = view.status;
    let (summary, as_of) = (summary(view), view::time(view.at));
    let page = Page { style: STYLE, script, status, summary, as_of, content: content(view) };
    // Only a template that fails in the midst could get here, and ours holds nothing that can.
    page.render().unwrap_or_else(|_| status.text().to_owned())
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
    status: Status,
    summary: String,
    as_of: String,
    /// HTML.
    content: String,
}

/// What a screen reader is told when it changes.
fn summary(view: &View) -> String {
    let all = view.checks.len();
    let mut bad = 0;
    let mut names = String::new();
    for check in view.checks.iter().filter(|check| check.status == Status::Unhealthy) {
        if bad > 0 {
            names.push_str(", ");
        }
        names.push_str(&check.name);
        bad += 1;
    }
    match (view.status, all) {
        (_, 0) => "Nothing has been reported yet".to_owned(),
        (Status::Unhealthy, 1) => names + " is unhealthy",
        (Status::Unhealthy, all) => format!("{bad} of {all} checks unhealthy: {names}"),
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

/// All below the page's head: before the first check, little.
fn content(view: &View) -> String {
    let mut tables = Tables::default();
    if view.checks.is_empty() {
        tables.put("<p>This page shows the platform's health checks once their first notification has come, and checks of your own once they have run.</p>");
    } else {
        choice(&mut tables, view);
    }
    checks(&mut tables, view);
    if !view.checks.is_empty() {
        let has_results = view.checks.iter().any(|check| !check.regions.is_empty());
        availability(&mut tables, view);
        course(&mut tables, view);
        errors(&mut tables, view);
        if has_results {
            regions(&mut tables, view);
        }
        changes(&mut tables, view);
        if has_results {
            results(&mut tables, view);
        }
    }
    tables.into_html()
}

/// Links to other ranges, and to all checks.
fn choice(tables: &mut Tables, view: &View) {
    tables.put("<nav aria-label=\"Range\"><p>Look back: ");
    for range in Range::ALL {
        let current = if range == view.range { " aria-current=\"page\"" } else { "" };
        tables.link(range.title(), &address(range, &view.selected), current);
    }
    tables.put("</p>");
    if !view.selected.is_empty() {
        tables.put("<p>");
        tables.link("Show all checks", &address(view.range, ""), "");
        tables.put("</p>");
    }
    tables.put("</nav>");
}

fn checks(tables: &mut Tables, view: &View) {
    tables.open("checks", "Checks", "");
    tables.head(&["Check", "Status", "Failure reason", "Since"], &[]);
    for check in &view.checks {
        tables.row();
        tables.title_link(&check.name, &address(view.range, &check.id));
        tables.status(check.status);
        tables.cell(&check.reason);
        tables.time(check.since);
    }
    tables.close("");
}

fn availability(tables: &mut Tables, view: &View) {
    tables.open("availability", "Availability", "");
    tables.head(&["Check"], &Range::ALL.map(Range::title));
    for check in &view.checks {
        tables.row();
        tables.title(&check.name);
        for availability in &check.availability {
            tables.cell(&availability.percent);
        }
    }
    tables.close("");
}

/// The slots of the range, and what each check says of them. The script draws it.
fn course(tables: &mut Tables, view: &View) {
    let checks = view.checks.get(..DRAWN_CHECKS).unwrap_or(&view.checks);
    let title = format!("The last {}", view.range.title().trim_start_matches("1 "));
    tables.open(
        "course",
        &title,
        "<figure id=\"availability-chart\" class=\"chart\" hidden><figcaption>Availability, %</figcaption></figure>\
         <figure id=\"total-chart\" class=\"chart\" hidden><figcaption>Total time of a probe, median, ms</figcaption>\
         </figure><details><summary>As a table</summary>",
    );
    tables.column("From", false);
    for check in checks {
        tables.column(&format!("{}, %", check.name), true);
        tables.column(&format!("{}, ms", check.name), true);
    }
    for (index, slot) in checks.first().map_or(&[][..], |check| &check.slots).iter().enumerate() {
        tables.row();
        tables.time(slot.at);
        for check in checks {
            let slot = check.slots.get(index).filter(|slot| slot.tally.total > 0);
            let percent = slot.map_or_else(String::new, |slot| slot.tally.percent());
            tables.cell(percent.trim_end_matches(" %"));
            tables.number(slot.and_then(|slot| slot.total).map(|total| total.p50.into()));
        }
    }
    tables.close("</details>");
}

fn errors(tables: &mut Tables, view: &View) {
    tables.open("errors", "Errors by reason", "");
    tables.head(&["Check", "Failure reason"], &["Times"]);
    for check in &view.checks {
        for error in &check.errors {
            tables.row();
            tables.title(&check.name);
            tables.cell(&error.reason);
            tables.number(Some(error.count));
        }
        if check.errors.is_empty() {
            tables.row();
            tables.title(&check.name);
            tables.cell(Reason::NoFailures.text());
            tables.number(Some(0));
        }
    }
    tables.close("");
}

fn regions(tables: &mut Tables, view: &View) {
    tables.open(
        "regions",
        "Regions",
        "<p class=\"quiet\">Milliseconds from the start of a probe: half of the probes / 90 % / 99 % took no longer.</p>",
    );
    tables.head(&["Check", "Region"], &["Results", "Available"]);
    for title in MOMENTS {
        tables.column(title, true);
    }
    for check in &view.checks {
        for region in &check.regions {
            tables.row();
            tables.title(&check.name);
            tables.cell(&region.region);
            tables.number(Some(region.tally.total));
            tables.cell(&region.tally.percent());
            for moment in region.moments {
                let text = |Percentiles { p50, p90, p99 }: Percentiles| format!("{p50} / {p90} / {p99}");
                tables.cell(&moment.map_or_else(String::new, text));
            }
        }
    }
    tables.close("");
}

fn changes(tables: &mut Tables, view: &View) {
    tables.open("changes", "Changes", "");
    tables.head(&["Time", "Check", "Status", "Failure reason"], &["Expected", "Received"]);
    for change in &view.changes {
        tables.row();
        tables.time(change.at);
        tables.cell(&change.check);
        tables.status(change.status);
        tables.cell(&change.reason);
        tables.cell(&change.expected_codes);
        tables.number(change.actual_code.map(u64::from));
    }
    tables.close("");
}

fn results(tables: &mut Tables, view: &View) {
    tables.open(
        "results",
        "Event log",
        "<p class=\"quiet\">The newest results. Milliseconds from the start of a probe; in the bar \
         <span class=\"key tcp\"></span> TCP connect, <span class=\"key tls\"></span> TLS handshake, \
         <span class=\"key first\"></span> wait for the first byte, <span class=\"key total\"></span> download.</p>",
    );
    tables.head(&["Time", "Check", "Region", "Failure reason"], &["Expected", "Received"]);
    for title in MOMENTS {
        tables.column(title, true);
    }
    tables.column("Waterfall", true);
    let longest = view.results.iter().map(|result| end(&result.waterfall)).max().unwrap_or(0);
    for result in &view.results {
        tables.row();
        tables.time(result.at);
        tables.cell(&result.check);
        tables.cell(&format!("{} {}", result.region, result.observer));
        tables.cell(&result.reason);
        tables.cell(&result.expected_codes);
        tables.number(result.actual_code.map(u64::from));
        for moment in result.waterfall.moments() {
            tables.number(moment.map(u64::from));
        }
        bar(tables, result, longest);
    }
    tables.close("");
}

/// When the last of a probe's stages was over, in milliseconds.
fn end(waterfall: &Waterfall) -> u32 {
    waterfall.moments().into_iter().flatten().max().unwrap_or(0)
}

/// A waterfall as a bar, 1,000 wide for the longest probe of those that are shown.
fn bar(tables: &mut Tables, result: &ResultView, longest: u32) {
    tables.put(
        "<td><svg class=\"fall\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
    );
    let mut begin = 0;
    for (class, moment) in ["tcp", "tls", "first", "total"].into_iter().zip(result.waterfall.moments()) {
        if let Some(ms) = moment {
            let end = u64::from(ms) * 1_000 / u64::from(longest.max(1));
            let width = end.saturating_sub(begin);
            tables.put(&format!("<rect class=\"{class}\" x=\"{begin}\" width=\"{width}\" height=\"10\"/>"));
            begin = end.max(begin);
        }
    }
    tables.put("</svg></td>");
}
