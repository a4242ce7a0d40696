//! The status page and its JSON, as answers ready to be sent.

use askama::Template;

use super::analytics::{Percentiles, Range};
use super::view::{self, CheckView, ResultView, Status, View};
use crate::answer::Answer;

/// The style as `build.rs` compacted it; its hash was taken from these bytes.
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/health.css"));

/// What the page may do: use the style that it carries, run the one script of ours, and ask its own site.
const POLICY: &str = concat!(
    "default-src 'none'; style-src '",
    env!("ANTEROOM_HEALTH_STYLE_HASH"),
    "'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
);

/// The four moments of a waterfall, as they are called.
const MOMENTS: [&str; 4] = ["TCP connect", "TLS handshake", "First byte", "Total"];

/// The page; `script` is the address of its script.
pub fn page(view: &View, script: &str) -> Answer {
    let mut headers = headers("text/html; charset=utf-8");
    headers.push(("content-language", "en".to_owned()));
    headers.push(("content-security-policy", POLICY.to_owned()));
    let page = Page { style: STYLE, script, view, ranges: Range::ALL, moments: MOMENTS };
    // Only a template that fails in the midst could get here, and ours holds nothing that can.
    let body = page.render().unwrap_or_else(|_| view.status.text().to_owned());
    Answer { status: 200, headers, body }
}

/// The same for programs.
pub fn json(view: &View) -> Answer {
    let body = serde_json::to_string(view).unwrap_or_default();
    Answer { status: 200, headers: headers("application/json"), body }
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
    ranges: [Range; 4],
    moments: [&'static str; 4],
}

#[expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "templates pass references")]
impl Page<'_> {
    /// What a screen reader is told when it changes.
    fn summary(&self) -> String {
        let checks = &self.view.checks;
        let bad: Vec<&str> = checks
            .iter()
            .filter(|check| check.status == Status::Unhealthy)
            .map(|check| check.name.as_str())
            .collect();
        match (self.view.status, checks.len()) {
            (_, 0) => "Nothing has been reported yet".to_owned(),
            (Status::Unhealthy, 1) => format!("{} is unhealthy", bad.join(", ")),
            (Status::Unhealthy, all) => {
                format!("{} of {all} checks unhealthy: {}", bad.len(), bad.join(", "))
            }
            (Status::Healthy, 1) => "The check is healthy".to_owned(),
            (Status::Healthy, all) => format!("All {all} checks are healthy"),
            (Status::Unknown, _) => "Not every check has reported yet".to_owned(),
        }
    }

    /// A check's availability over a range.
    fn over(check: &CheckView, range: &Range) -> String {
        check.over(*range).percent()
    }

    /// The page's address for another range or check; empty: all checks.
    fn address(range: &Range, check: &str) -> String {
        let check: String = check
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'/' => char::from(byte).to_string(),
                byte => format!("%{byte:02X}"),
            })
            .collect();
        let filter = if check.is_empty() { String::new() } else { format!("&check={check}") };
        format!("?range={}{filter}", range.name())
    }

    fn time(at: &u64) -> String {
        view::time(*at)
    }

    fn machine_time(at: &u64) -> String {
        view::machine_time(*at)
    }

    /// The code that came, or a dash.
    fn code(code: &Option<u16>) -> String {
        code.map_or_else(|| "–".to_owned(), |code| code.to_string())
    }

    /// A text, or a dash for none.
    fn or_dash(text: &str) -> &str {
        if text.is_empty() { "–" } else { text }
    }

    /// A number of milliseconds, or a dash.
    fn ms(ms: &Option<u32>) -> String {
        ms.map_or_else(|| "–".to_owned(), |ms| ms.to_string())
    }

    /// Median, nine tenths and 99 of a hundred, or a dash.
    fn percentiles(percentiles: &Option<Percentiles>) -> String {
        percentiles
            .map_or_else(|| "–".to_owned(), |Percentiles { p50, p90, p99 }| format!("{p50} / {p90} / {p99}"))
    }

    /// The longest probe of those that are shown, in milliseconds: the width of the bars.
    fn longest(&self) -> u32 {
        let totals = self.view.results.iter().flat_map(|result| result.waterfall.moments());
        totals.flatten().max().unwrap_or(0).max(1)
    }

    /// A waterfall's stages as parts of a bar that is 1,000 wide: class, beginning, width.
    fn stages(&self, result: &ResultView) -> Vec<(&'static str, u32, u32)> {
        let longest = u64::from(self.longest());
        let mut begin = 0;
        let mut stages = Vec::new();
        for (class, moment) in ["tcp", "tls", "first", "total"].into_iter().zip(result.waterfall.moments()) {
            if let Some(ms) = moment {
                let end = (u64::from(ms) * 1_000 / longest) as u32;
                stages.push((class, begin, end.saturating_sub(begin)));
                begin = end.max(begin);
            }
        }
        stages
    }

    /// Whether there are results of our own checks in the range.
    fn has_results(&self) -> bool {
        self.view.checks.iter().any(|check| !check.regions.is_empty())
    }

    /// The slots of the range with what each check says of them: its beginning, then percent and median total per
    /// check, empty where nothing is known.
    fn slots(&self) -> Vec<(u64, Vec<(String, String)>)> {
        let Some(first) = self.view.checks.first() else { return Vec::new() };
        let cells = |at: usize| {
            let slots = self.view.checks.iter().map(move |check| check.slots.get(at));
            slots
                .map(|slot| match slot {
                    Some(slot) if slot.tally.total > 0 => (
                        slot.tally.percent().trim_end_matches(" %").to_owned(),
                        slot.total.map_or_else(String::new, |total| total.p50.to_string()),
                    ),
                    _ => (String::new(), String::new()),
                })
                .collect()
        };
        first.slots.iter().enumerate().map(|(index, slot)| (slot.at, cells(index))).collect()
    }
}
