//! Figures and charts as files: JSON for programs, one self-contained HTML page for people.

use std::fmt;
use std::ops::Range;

use anteroom::admission::{adapted_worker_slots, share_of_slots, worker_slots};
use askama::Template;
use jiff::civil::DateTime;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::RGBColor;
use serde::Serialize;

use crate::pages::Point;
use crate::table::{Row, Run, cells};

/// A chart's width and a panel's height, in pixels.
const WIDTH: u32 = 960;
const PANEL_HEIGHT: u32 = 220;
/// A bar's height with the space below it, in pixels.
const BAR_HEIGHT: u32 = 18;
/// Points of a line, and lines of the table beside a chart, at most.
const POINTS: usize = 480;
const LINES: usize = 48;
/// Marks on the axis of time, at most, and the minutes that they may be apart.
const MARKS: f64 = 14.0;
const APART: [u32; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440];

/// A colour on a light page, and its counterpart on a dark one.
#[derive(Debug, Clone, Copy)]
struct Colour(RGBColor, RGBColor);

const INK: Colour = Colour(RGBColor(0x1f, 0x23, 0x28), RGBColor(0xe6, 0xed, 0xf3));
const GRID: Colour = Colour(RGBColor(0xd0, 0xd7, 0xde), RGBColor(0x3d, 0x44, 0x4d));
const GREEN: Colour = Colour(RGBColor(0x1a, 0x7f, 0x37), RGBColor(0x3f, 0xb9, 0x50));
const YELLOW: Colour = Colour(RGBColor(0x8d, 0x6a, 0x01), RGBColor(0xe3, 0xb3, 0x41));
const ORANGE: Colour = Colour(RGBColor(0xbc, 0x4c, 0x02), RGBColor(0xf0, 0x88, 0x3e));
const BLUE: Colour = Colour(RGBColor(0x09, 0x69, 0xda), RGBColor(0x58, 0xa6, 0xff));
const PURPLE: Colour = Colour(RGBColor(0x82, 0x50, 0xdf), RGBColor(0xa3, 0x71, 0xf7));
const RED: Colour = Colour(RGBColor(0xcf, 0x22, 0x2e), RGBColor(0xff, 0x7b, 0x72));
const COLOURS: [Colour; 8] = [INK, GRID, GREEN, YELLOW, ORANGE, BLUE, PURPLE, RED];
/// Lines and bars that have no colour of their own take these in turn.
const IN_TURN: [Colour; 6] = [GREEN, BLUE, ORANGE, YELLOW, PURPLE, RED];

fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    // Written as the plotting library writes it, so that the page's style finds it.
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Why a file could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportError(String);

impl fmt::Display for ReportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ReportError {}

fn failed(error: impl fmt::Display) -> ReportError {
    ReportError(error.to_string())
}

/// All runs as JSON. The same runs give the same bytes.
///
/// # Errors
/// When a figure cannot be written.
pub fn json(runs: &[Run]) -> Result<String, ReportError> {
    any_json(runs)
}

pub(crate) fn any_json(value: &(impl Serialize + ?Sized)) -> Result<String, ReportError> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(failed)
}

/// A chart with all that stands beside it.
#[derive(Debug, Clone)]
pub struct Chart {
    title: String,
    /// What it shows, in a sentence, for those who cannot see it.
    desc: String,
    svg: String,
    /// Name, colour, and whether its line is dashed.
    legend: Vec<(String, String, bool)>,
    columns: Vec<String>,
    lines: Vec<Vec<String>>,
}

/// A table of a page.
#[derive(Debug, Clone)]
struct Cells {
    titles: Vec<String>,
    lines: Vec<Vec<String>>,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{ title }}</title>
<style>{{ style|safe }}</style>
</head>
<body>
<main>
<h1>{{ title }}</h1>
{% for line in lead %}<p>{{ line }}</p>
{% endfor %}
{% if let Some(summary) = summary %}<h2 id="figures">Figures</h2>
<div class="wide" role="region" aria-labelledby="figures" tabindex="0">
<table>
<thead><tr>{% for title in summary.titles %}<th scope="col">{{ title }}</th>{% endfor %}</tr></thead>
<tbody>
{% for line in summary.lines %}<tr>{% for cell in line %}{% if loop.first %}<th scope="row">{{ cell }}</th>{% else %}<td>{{ cell }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}</tbody>
</table>
</div>
{% endif %}
{% for chart in charts %}<figure>
<figcaption><h2>{{ chart.title }}</h2><p>{{ chart.desc }}</p></figcaption>
<ul class="legend">{% for (name, colour, dashed) in chart.legend %}<li><svg width="28" height="10" aria-hidden="true"><line x1="0" y1="5" x2="28" y2="5" stroke="{{ colour }}" stroke-width="3"{% if *dashed %} stroke-dasharray="6 4"{% endif %}/></svg> {{ name }}</li>{% endfor %}</ul>
<div class="wide" role="region" aria-label="{{ chart.title }}: chart" tabindex="0">
{{ chart.svg|safe }}
</div>
<details><summary>The same as a table</summary>
<div class="wide" role="region" aria-label="{{ chart.title }}: table" tabindex="0">
<table>
<thead><tr>{% for title in chart.columns %}<th scope="col">{{ title }}</th>{% endfor %}</tr></thead>
<tbody>
{% for line in chart.lines %}<tr>{% for cell in line %}{% if loop.first %}<th scope="row">{{ cell }}</th>{% else %}<td>{{ cell }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}</tbody>
</table>
</div>
</details>
</figure>
{% endfor %}</main>
</body>
</html>
"#
)]
struct Page<'a> {
    title: &'a str,
    lead: &'a [String],
    style: String,
    summary: Option<Cells>,
    charts: &'a [Chart],
}

const STYLE: &str = "
body { margin: 0 auto; max-width: 64rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; background: #fff; \
color: #1f2328; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-bottom: 0; }
figure { margin: 2.5rem 0; } figcaption p { margin: 0; }
.wide { overflow-x: auto; }
.wide > svg { display: block; width: 100%; min-width: 40rem; height: auto; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0 1.5rem; padding: 0; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #d0d7de; }
th { vertical-align: bottom; } th:first-child { text-align: left; }
summary { cursor: pointer; }
@media (prefers-color-scheme: dark) {
body { background: #0d1117; color: #e6edf3; } th, td { border-color: #3d444d; }
";

/// The page's style. Charts are drawn in the colours of a light page; on a dark one the style replaces them.
fn style() -> String {
    let replaced = COLOURS.map(|Colour(light, dark)| {
        let (light, dark) = (hex(light), hex(dark));
        format!("svg [fill='{light}'] {{ fill: {dark}; }} svg [stroke='{light}'] {{ stroke: {dark}; }}\n")
    });
    format!("{STYLE}{}}}\n", replaced.concat())
}

/// A page with charts, and with a table of figures if there are rows.
///
/// # Errors
/// When the page cannot be written.
pub fn page(title: &str, lead: &[String], rows: &[Row<'_>], charts: &[Chart]) -> Result<String, ReportError> {
    let (titles, lines) = cells(rows);
    page_with(title, lead, &titles, lines, charts)
}

/// A page with charts, and with a table of its own if it has lines. Titles are in two parts with `|` between.
///
/// # Errors
/// When the page cannot be written.
pub(crate) fn page_with(
    title: &str,
    lead: &[String],
    titles: &[&str],
    lines: Vec<Vec<String>>,
    charts: &[Chart],
) -> Result<String, ReportError> {
    let titles = titles.iter().map(|title| title.replace('|', " ")).collect();
    let summary = (!lines.is_empty()).then_some(Cells { titles, lines });
    Page { title, lead, style: style(), summary, charts }.render().map_err(failed)
}

/// Panels of lines by the second, the n-th line of each in the n-th colour. A line is its name, its values, and whether
/// it is dashed; the table beside them has the first panel.
///
/// # Errors
/// When it cannot be drawn.
pub(crate) fn by_second(
    title: &str,
    desc: &str,
    panels: Vec<(&'static str, Vec<SecondsLine>)>,
) -> Result<Chart, ReportError> {
    let table: Vec<SecondsLine> = panels.first().map(|(_, lines)| lines.clone()).unwrap_or_default();
    let seconds = table.iter().map(|(_, values, _)| values.len()).max().unwrap_or(1).max(1);
    let line = |(index, (name, values, dashed)): (usize, SecondsLine)| Line {
        name,
        colour: if dashed { INK } else { IN_TURN[index % IN_TURN.len()] },
        dashed,
        points: (0..).map(|second| f64::from(second) + 0.5).zip(values).collect(),
    };
    let panels: Vec<Panel> = panels
        .into_iter()
        .map(|(label, lines)| Panel { label, lines: lines.into_iter().enumerate().map(line).collect() })
        .collect();
    let end = seconds as f64;
    let apart = if seconds > 120 { 60 } else { 10 };
    let marks: Vec<f64> = (0..=seconds / apart).map(|mark| (mark * apart) as f64).collect();
    let step = seconds.div_ceil(LINES).max(1);
    let lines = (0..seconds).step_by(step).map(|second| {
        let value = |values: &[f64]| values.get(second).map_or_else(String::new, |value| thousands(*value));
        std::iter::once(second.to_string()).chain(table.iter().map(|(_, values, _)| value(values))).collect()
    });
    Ok(Chart {
        title: title.to_owned(),
        desc: desc.to_owned(),
        svg: draw_lines(title, desc, &panels, end, &marks, &|second| format!("{second:.0} s"))?,
        legend: legend(panels.iter().flat_map(|panel| &panel.lines)),
        columns: std::iter::once("second".to_owned())
            .chain(table.iter().map(|(name, ..)| (*name).to_owned()))
            .collect(),
        lines: lines.collect(),
    })
}

/// A line of [`by_second`]: its name, its value in each second, whether it is dashed.
pub(crate) type SecondsLine = (&'static str, Vec<f64>, bool);

/// The page of `run`: the figures, each row over time by its first seed, the strategies beside each other.
///
/// # Errors
/// When a chart or the page cannot be drawn.
pub fn run_page(rows: &[Row<'_>], lead: &[String]) -> Result<String, ReportError> {
    let mut charts = vec![overshoot_bars(rows)?, early_bars(rows)?];
    for run in rows.iter().filter_map(|row| row.runs.first()) {
        let title = format!("{}: {}, {} colos", run.scenario, run.strategy, run.colos);
        charts.push(over_time(&title, run, None)?);
        charts.extend(origin_over_time(run)?);
    }
    charts.push(curve_factors()?);
    page("Anteroom: how exactly the room kept its limits", lead, rows, &charts)
}

/// What passed to a run's origin: users against the limit in force, pages a second, requests at the origin.
///
/// # Errors
/// When it cannot be drawn.
fn origin_over_time(run: &Run) -> Result<Option<Chart>, ReportError> {
    let Some(passed) = &run.measured.origin else { return Ok(None) };
    let mut before = 0;
    let apart: Vec<u64> = passed
        .points
        .iter()
        .map(|point| point.second - std::mem::replace(&mut before, point.second))
        .collect();
    let line = |name, value: fn(&Point) -> u64, a_second: bool, dashed| -> SecondsLine {
        let values = passed.points.iter().zip(&apart).flat_map(|(point, apart)| {
            let value = value(point) as f64 / if a_second { (*apart).max(1) as f64 } else { 1.0 };
            std::iter::repeat_n(value, *apart as usize)
        });
        (name, values.collect(), dashed)
    };
    let panels = vec![
        (
            "users",
            vec![
                line("active users", |point| point.active, false, false),
                line("limit", |point| point.total_active_users.into(), false, true),
            ],
        ),
        (
            "pages a second",
            vec![
                line("served", |point| point.served, true, false),
                line("refused by the guard", |point| point.refused, true, false),
                line("failed or too late", |point| point.failed + point.late, true, false),
            ],
        ),
        ("at the origin", vec![line("requests at the origin", |point| point.at_origin, false, false)]),
    ];
    let title = format!("{}: the origin", run.scenario);
    let desc =
        "Active users against the limit in force, pages served, refused and failed, requests at the origin.";
    by_second(&title, desc, panels).map(Some)
}

/// A line of a chart.
struct Line {
    name: &'static str,
    colour: Colour,
    dashed: bool,
    points: Vec<(f64, f64)>,
}

/// One of a chart's panels, which are below each other and share what is to the right.
struct Panel {
    label: &'static str,
    lines: Vec<Line>,
}

/// A room over time, as its owner would see it: active users against the limit, slots left, who waits, who is let in.
/// `start` is the time of minute 0, if there was one.
///
/// # Errors
/// When it cannot be drawn.
pub fn over_time(title: &str, run: &Run, start: Option<DateTime>) -> Result<Chart, ReportError> {
    let series = &run.measured.series;
    let (limit, rate) = (f64::from(run.total_active_users), f64::from(run.new_users_per_minute));
    let end = series.last().map_or(1.0, |(second, ..)| (*second as f64 / 60.0).max(1.0));
    let of = |value: fn(&(u64, u64, u64, u64)) -> u64| -> Vec<(f64, f64)> {
        series.iter().map(|point| (point.0 as f64 / 60.0, value(point) as f64)).collect()
    };
    let active = of(|point| point.1);
    let left: Vec<(f64, f64)> = active.iter().map(|(at, active)| (*at, (limit - active).max(0.0))).collect();
    let waiting = of(|point| point.2);
    let admitted = per_minute(series);
    let flat = |value: f64| vec![(0.0, value), (end, value)];
    let line = |name, colour, points| Line { name, colour, dashed: false, points };
    let limit_line = |name, value| Line { name, colour: YELLOW, dashed: true, points: flat(value) };
    let panels = [
        Panel {
            label: "users",
            lines: vec![
                line("active users", GREEN, thinned(&active, f64::max)),
                line("slots left", ORANGE, thinned(&left, f64::min)),
                limit_line("limit", limit),
            ],
        },
        Panel { label: "waiting", lines: vec![line("waiting users", BLUE, thinned(&waiting, f64::max))] },
        Panel {
            label: "new per minute",
            lines: vec![
                line("new users in the minute", GREEN, thinned(&admitted, f64::max)),
                limit_line("limit", rate),
            ],
        },
    ];
    let shown = |minute: f64| clock(start, minute, end);
    let most = |points: &[(f64, f64)]| points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let desc = format!(
        "At most {} users were active of {}, {} waited, and {} entered in a minute of {}.",
        thousands(most(&active)),
        thousands(limit),
        thousands(most(&waiting)),
        thousands(most(&admitted)),
        thousands(rate)
    );
    let step = series.len().div_ceil(LINES).max(1);
    let lines = series.chunks(step).filter_map(|points| {
        let (first, last) = (points.first()?, points.last()?);
        let active = points.iter().map(|point| point.1).max()? as f64;
        let waiting = points.iter().map(|point| point.2).max()? as f64;
        let until = shown(last.0 as f64 / 60.0);
        let from = shown(first.0 as f64 / 60.0);
        let entered: u64 = points.iter().map(|point| point.3).sum();
        let when = if step == 1 { from } else { format!("{from} to {until}") };
        let left = (limit - active).max(0.0);
        Some(vec![when, thousands(active), thousands(left), thousands(waiting), thousands(entered as f64)])
    });
    let columns = [
        if start.is_some() { "time" } else { "minute" },
        "active users, at most",
        "slots left, at least",
        "waiting users, at most",
        "entered",
    ];
    let marks = marks(start, end);
    let unit = if start.is_some() { "" } else { " min" };
    Ok(Chart {
        title: title.to_owned(),
        svg: draw_lines(title, &desc, &panels, end, &marks, &|minute| format!("{}{unit}", shown(*minute)))?,
        desc,
        legend: legend(panels.iter().flat_map(|panel| &panel.lines)),
        columns: columns.map(str::to_owned).to_vec(),
        lines: lines.collect(),
    })
}

/// Who entered in each calendar minute, at its end; or, where points are further apart, the mean between them.
pub fn per_minute(series: &[(u64, u64, u64, u64)]) -> Vec<(f64, f64)> {
    let mut minutes: Vec<(f64, f64)> = Vec::new();
    let (mut since, mut sum) = (0, 0);
    for (second, .., admitted) in series {
        sum += admitted;
        if second / 60 > since / 60 {
            let apart = (second - since).max(60) as f64 / 60.0;
            minutes.push((*second as f64 / 60.0, sum as f64 / apart));
            (since, sum) = (*second, 0);
        }
    }
    if let Some((last, ..)) = series.last().filter(|_| sum > 0) {
        minutes.push((*last as f64 / 60.0, sum as f64));
    }
    minutes
}

/// Fewer points, each the most (or least) of those it stands for: no peak is lost.
fn thinned(points: &[(f64, f64)], of: fn(f64, f64) -> f64) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS).max(1);
    let one = |points: &[(f64, f64)]| {
        points.iter().copied().reduce(|(at, value), (_, other)| (at, of(value, other)))
    };
    points.chunks(step).filter_map(one).collect()
}

fn legend<'a>(lines: impl Iterator<Item = &'a Line>) -> Vec<(String, String, bool)> {
    let mut legend: Vec<(String, String, bool)> = Vec::new();
    for line in lines {
        if legend.iter().all(|(name, ..)| name != line.name) {
            legend.push((line.name.to_owned(), hex(line.colour.0), line.dashed));
        }
    }
    legend
}

/// A minute as it is written: `12.5`, or a time of day, with the date where more than a day is shown.
pub fn clock(start: Option<DateTime>, minute: f64, end: f64) -> String {
    let Some(start) = start else { return format!("{minute:.1}").trim_end_matches(".0").to_owned() };
    let time = start.saturating_add(jiff::SignedDuration::from_secs((minute * 60.0).round() as i64));
    time.strftime(if end > 1_440.0 { "%d %b %H:%M" } else { "%H:%M" }).to_string()
}

/// Round minutes or times for the axis.
fn marks(start: Option<DateTime>, end: f64) -> Vec<f64> {
    let apart =
        APART.into_iter().find(|apart| end / f64::from(*apart) <= MARKS).map_or(end / MARKS, f64::from);
    let begins = start.map_or(0.0, |time| {
        f64::from(time.hour()) * 60.0 + f64::from(time.minute()) + f64::from(time.second()) / 60.0
    });
    let first = (begins / apart).ceil() * apart - begins;
    let count = ((end - first) / apart).floor().max(0.0) as u64;
    (0..=count).map(|index| first + index as f64 * apart).collect()
}

/// A whole number with thousands apart: `12,345`.
pub fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = if number < 0.0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A round number at or above the largest of some.
fn top(values: impl Iterator<Item = f64>) -> f64 {
    let most = values.fold(0.0, f64::max) * 1.05;
    if most <= 0.0 { 1.0 } else { most }
}

/// An axis from 0 with marks where they are wanted; the library's own stand at round decimals, not round times.
struct Axis {
    end: f64,
    marks: Vec<f64>,
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * value / self.end).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.marks.clone() }
    }

    fn range(&self) -> Range<f64> {
        0.0..self.end
    }
}

fn draw_lines(
    title: &str,
    desc: &str,
    panels: &[Panel],
    end: f64,
    marks: &[f64],
    shown: &dyn Fn(&f64) -> String,
) -> Result<String, ReportError> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, PANEL_HEIGHT * panels.len() as u32))
            .into_drawing_area();
        for (area, panel) in root.split_evenly((panels.len(), 1)).iter().zip(panels) {
            let most = top(panel.lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value));
            let mut chart = ChartBuilder::on(area)
                .margin(8)
                // The last mark's text is wider than its mark.
                .margin_right(28)
                .x_label_area_size(24)
                .y_label_area_size(84)
                .build_cartesian_2d(Axis { end, marks: marks.to_vec() }, 0.0..most)
                .map_err(failed)?;
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(GRID.0)
                .axis_style(GRID.0)
                .label_style(("sans-serif", 13).into_font().color(&INK.0))
                .x_label_formatter(shown)
                .y_labels(5)
                .y_label_formatter(&|value| {
                    if most < 5.0 { format!("{value:.1}") } else { thousands(*value) }
                })
                .y_desc(panel.label)
                .draw()
                .map_err(failed)?;
            for line in &panel.lines {
                let style = line.colour.0.stroke_width(2);
                let points = line.points.iter().copied();
                if line.dashed {
                    chart.draw_series(DashedLineSeries::new(points, 8, 5, style)).map_err(failed)?;
                } else {
                    chart.draw_series(LineSeries::new(points, style)).map_err(failed)?;
                }
            }
        }
        root.present().map_err(failed)?;
    }
    Ok(named(&svg, title, desc))
}

/// Gives a drawing its name and description, for those who cannot see it.
fn named(svg: &str, title: &str, desc: &str) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let Some((head, body)) = svg.split_once('>') else { return svg.to_owned() };
    format!("{head} role=\"img\">\n<title>{}</title>\n<desc>{}</desc>{body}", escaped(title), escaped(desc))
}

/// The worst seed's overshoot of either limit, by strategy.
fn overshoot_bars(rows: &[Row<'_>]) -> Result<Chart, ReportError> {
    bars(
        "Overshoot by strategy",
        "How far the room was over total_active_users or new_users_per_minute at its worst moment, in % of the limit.",
        rows,
        |run| run.measured.active_overshoot.max(run.measured.minute_overshoot),
    )
}

/// How far below the limits somebody was queued, by strategy.
fn early_bars(rows: &[Row<'_>]) -> Result<Chart, ReportError> {
    bars(
        "Early queueing by strategy",
        "How far below both limits the room was when the first visitor was queued, in % of the limits; 0 if nobody was.",
        rows,
        |run| run.measured.first_queued_at.map_or(0.0, |at| (1.0 - at).max(0.0)),
    )
}

fn bars(title: &str, desc: &str, rows: &[Row<'_>], value: fn(&Run) -> f64) -> Result<Chart, ReportError> {
    let mut strategies: Vec<&'static str> = Vec::new();
    let mut values: Vec<(String, usize, f64)> = Vec::new();
    for row in rows {
        let Some(first) = row.runs.first() else { continue };
        let strategy = strategies.iter().position(|known| *known == first.strategy).unwrap_or_else(|| {
            strategies.push(first.strategy);
            strategies.len() - 1
        });
        let worst = row.runs.iter().map(value).fold(0.0, f64::max) * 100.0;
        values.push((format!("{}, {} colos", first.scenario, first.colos), strategy, worst));
    }
    let colour = |strategy: usize| IN_TURN[strategy % IN_TURN.len()];
    let name = |strategy: usize| strategies.get(strategy).copied().unwrap_or_default();
    let lines = values.iter().map(|(place, strategy, worst)| {
        vec![place.clone(), name(*strategy).to_owned(), format!("{worst:.2}")]
    });
    Ok(Chart {
        title: title.to_owned(),
        desc: desc.to_owned(),
        svg: draw_bars(title, desc, &values, &colour)?,
        legend: strategies
            .iter()
            .enumerate()
            .map(|(index, name)| ((*name).to_owned(), hex(colour(index).0), false))
            .collect(),
        columns: ["scenario", "strategy", "%"].map(str::to_owned).to_vec(),
        lines: lines.collect(),
    })
}

fn draw_bars(
    title: &str,
    desc: &str,
    values: &[(String, usize, f64)],
    colour: &dyn Fn(usize) -> Colour,
) -> Result<String, ReportError> {
    const LABELS: u32 = 220;
    let most = top(values.iter().map(|(.., value)| *value)).max(0.1);
    let count = values.len().max(1);
    let mut svg = String::new();
    {
        let root =
            SVGBackend::with_string(&mut svg, (WIDTH, BAR_HEIGHT * count as u32 + 48)).into_drawing_area();
        // Room at the right for the figure beside the longest bar.
        let mut chart = ChartBuilder::on(&root)
            .margin(8)
            .margin_right(64)
            .x_label_area_size(24)
            .y_label_area_size(LABELS)
            .build_cartesian_2d(0.0..most, Axis { end: count as f64, marks: Vec::new() })
            .map_err(failed)?;
        let font = || ("sans-serif", 13).into_font().color(&INK.0);
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.0)
            .axis_style(GRID.0)
            .disable_y_mesh()
            .label_style(font())
            .x_labels(8)
            .x_label_formatter(&|value| format!("{value:.1} %").replace(".0 %", " %"))
            .draw()
            .map_err(failed)?;
        let mut before = "";
        for (index, (place, strategy, value)) in values.iter().enumerate() {
            let y = (count - index) as f64;
            let bar = Rectangle::new([(0.0, y - 0.15), (*value, y - 0.85)], colour(*strategy).0.filled());
            chart.draw_series(std::iter::once(bar)).map_err(failed)?;
            let (right, middle) = chart.backend_coord(&(*value, y - 0.5));
            let text = |text: String, x: i32, y: i32| Text::new(text, (x, y - 7), font());
            root.draw(&text(format!("{value:.1} %"), right + 6, middle)).map_err(failed)?;
            if place != before {
                root.draw(&text(place.clone(), 4, middle)).map_err(failed)?;
                before = place;
            }
        }
        root.present().map_err(failed)?;
    }
    Ok(named(&svg, title, desc))
}

/// The colo, its share and workers, of the 2023 article's example: a room of 200 slots.
const EXAMPLE_SLOTS: f64 = 200.0;
const EXAMPLE_COLO: (f64, u32) = (0.10, 3);
const EXAMPLE_ANYWHERE: (f64, u32) = (0.75, 10);

/// How many slots one worker has when the room is so full, by the worker strategies, in the 2023 article's example.
///
/// # Errors
/// When it cannot be drawn.
pub fn curve_factors() -> Result<Chart, ReportError> {
    let slots_at = |percent: u32, factor: Option<f64>| {
        let utilisation = f64::from(percent) / 100.0;
        let free = (EXAMPLE_SLOTS * (1.0 - utilisation)).round() as i64;
        let colo = share_of_slots(free, EXAMPLE_COLO.0);
        let anywhere = share_of_slots(free, EXAMPLE_ANYWHERE.0);
        let slots = match factor {
            None => worker_slots(colo, f64::from(EXAMPLE_COLO.1), anywhere, f64::from(EXAMPLE_ANYWHERE.1)),
            Some(factor) => {
                adapted_worker_slots(colo, EXAMPLE_COLO.1, anywhere, EXAMPLE_ANYWHERE.1, utilisation, factor)
            }
        };
        slots as f64
    };
    let kinds = [
        ("worker_slots", None, YELLOW),
        ("adapted_worker_slots, curve_factor 1", Some(1.0), GREEN),
        ("curve_factor 2", Some(2.0), BLUE),
        ("curve_factor 0.5", Some(0.5), ORANGE),
    ];
    let lines = kinds.map(|(name, factor, colour)| Line {
        name,
        colour,
        dashed: factor.is_none(),
        points: (0..=100).map(|percent| (f64::from(percent), slots_at(percent, factor))).collect(),
    });
    let panels = [Panel { label: "slots per worker", lines: lines.into() }];
    let title = "Slots per worker against utilisation";
    let desc = "How many users one worker may let in when the room is so full: a room of 200 slots, a colo with \
                10 % of the traffic and 3 workers, 75 % left to Anywhere and its 10 workers. A larger curve factor \
                hands out more of the slots several times over.";
    let marks: Vec<f64> = (0..=10).map(|tenth| f64::from(tenth) * 10.0).collect();
    Ok(Chart {
        title: title.to_owned(),
        desc: desc.to_owned(),
        svg: draw_lines(title, desc, &panels, 100.0, &marks, &|percent| format!("{percent:.0} %"))?,
        legend: legend(panels.iter().flat_map(|panel| &panel.lines)),
        columns: std::iter::once("utilisation, %".to_owned())
            .chain(kinds.iter().map(|(name, ..)| (*name).to_owned()))
            .collect(),
        lines: (0..=10)
            .map(|tenth| {
                let percent = tenth * 10;
                let slots = kinds.iter().map(|(_, factor, _)| thousands(slots_at(percent, *factor)));
                std::iter::once(percent.to_string()).chain(slots).collect()
            })
            .collect(),
    })
}
