// The status page's script: keeps what the page shows up to date, and draws charts of its tables. The page says it all
// without; nothing here knows what a check is. tools/build.mjs puts it and the chart library into one file.
import uPlot from "uplot";
import chartStyle from "uplot/dist/uPlot.min.css";

const PAUSE_MS = 5_000;
const LONGEST_FETCH_MS = 10_000;
const CHART_HEIGHT = 180;
const DAY_SECONDS = 86_400;
const COLORS = ["--accent", "--first", "--good", "--bad", "--quiet", "--ink"];

const element = (id) => document.getElementById(id);
const live = (root) => [...root.querySelectorAll("[data-live]")];
// Writing the same text again would make a screen reader say it again.
const write = (id, text) => {
  if (element(id).textContent !== text) element(id).textContent = text;
};

// The page's policy allows its own style only; a style sheet made by a script that it allows is another matter.
const sheet = new CSSStyleSheet();
sheet.replaceSync(chartStyle);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

/** The table below the charts: times in its first column, then two numbers for each check. */
function readCourse() {
  const table = document.querySelector("#course table");
  const rows = [...(table?.tBodies[0]?.rows ?? [])];
  const names = [...(table?.tHead.rows[0].cells ?? [])].slice(1).map((cell) => cell.textContent);
  const number = (text) => (text === "–" ? null : Number(text));
  // As browsers agree on: 2022-03-03T17:05:00Z.
  const time = (text) => Date.parse(text.replace(" ", "T").replace(" UTC", "Z")) / 1000;
  const times = rows.map((row) => time(row.cells[0].textContent));
  const columns = names.map((_, index) => rows.map((row) => number(row.cells[index + 1].textContent)));
  return { names, times, columns };
}

let charts = [];
let drawn = "";

/** Draws what the table says, unless it is drawn already. */
function draw(again = false) {
  const course = readCourse();
  const key = JSON.stringify(course);
  if (key === drawn && !again) return;
  drawn = key;
  for (const chart of charts) chart.destroy();
  charts = [
    ["availability-chart", 0],
    ["total-chart", 1],
  ].flatMap(([id, part]) => drawChart(element(id), course, part));
}

/** Times of day, or days when days lie between them; in UTC, as all of the page. */
function labels(times) {
  const days = times.length > 1 && times[1] - times[0] >= DAY_SECONDS / 2;
  const [from, to] = days ? [5, 10] : [11, 16];
  return times.map((time) => new Date(time * 1000).toISOString().slice(from, to));
}

function drawChart(figure, { names, times, columns }, part) {
  if (!figure || times.length < 2) return [];
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name);
  const axis = {
    stroke: color("--quiet"),
    grid: { stroke: color("--rule"), width: 1 },
    ticks: { show: false },
  };
  const chosen = columns.map((_, index) => index).filter((index) => index % 2 === part);
  const shown = chosen.filter((index) => columns[index].some((value) => value !== null));
  figure.hidden = shown.length === 0;
  if (figure.hidden) return [];
  const series = shown.map((index) => ({
    label: names[index].replace(/, \S+$/, ""),
    // By the check, so that it is the same in both charts.
    stroke: color(COLORS[(index >> 1) % COLORS.length]),
    dash: index >> 1 < COLORS.length ? undefined : [6, 4],
    width: 2,
    spanGaps: false,
    points: { show: true, size: 5 },
  }));
  const options = {
    width: figure.clientWidth,
    height: CHART_HEIGHT,
    // The page's times are UTC.
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: part === 0 ? [0, 100] : (_chart, _least, most) => [0, Math.max(most * 1.1, 10)] } },
    axes: [
      { ...axis, values: (_chart, splits) => labels(splits) },
      { ...axis, size: 56 },
    ],
    legend: { live: false },
    series: [{}, ...series],
  };
  return [new uPlot(options, [times, ...shown.map((index) => columns[index])], figure)];
}

/** Puts what has changed on a page that was asked for just now into this one. */
function show(page) {
  if (document.title !== page.title) document.title = page.title;
  const [old, now] = [live(document), live(page)];
  if (old.map(({ id }) => id).join() !== now.map(({ id }) => id).join()) {
    // Other sections than before: the first check has come.
    document.querySelector("main").replaceWith(document.adoptNode(page.querySelector("main")));
  }
  for (const part of now) {
    const mine = element(part.id);
    if (!mine || mine === part) continue;
    mine.className = part.className;
    if (mine.innerHTML !== part.innerHTML)
      mine.replaceChildren(...[...part.childNodes].map((node) => document.adoptNode(node)));
  }
  draw();
}

let asking = false;
let timer = 0;

async function update() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  let trouble = "";
  try {
    const answer = await fetch(location.href, {
      headers: { accept: "text/html" },
      cache: "no-store",
      signal: AbortSignal.timeout(LONGEST_FETCH_MS),
    });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    trouble = "The page could not be brought up to date. It goes on trying.";
  }
  write("trouble", trouble);
  asking = false;
  // Spread out, so that not all pages ask at once; and nobody asks for a page that nobody sees.
  if (!document.hidden) timer = setTimeout(update, PAUSE_MS * (0.9 + 0.2 * Math.random()));
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else update();
});
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  draw(true);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));

write("live", "This page keeps itself up to date.");
draw();
timer = setTimeout(update, PAUSE_MS);
