// Three charts on one time line, drawn by uPlot: active users against their limit with the slots, who waits, and new users
// per minute against their limit.
import uPlot from "uplot";
import { h, s, write } from "./dom.js";
import { number, short } from "./words.js";

const SYNC = "anteroom";
/** Of the marks' letters, in pixels. */
const LETTER = 15;

/** What is drawn: `column` of the data, colour by role, how. */
const CHARTS = [
  {
    id: "active",
    title: "Active users",
    data: "levels",
    height: [200, 168],
    marks: true,
    series: [
      { column: 1, label: "active", color: "--active", area: true },
      { column: 2, label: "limit", color: "--limit", dash: [7, 4], step: true },
      { column: 3, label: "slots", color: "--slots", dash: [2, 3] },
      { column: 5, label: "most in the hour", color: "--active", thin: true, onlyHours: true },
    ],
  },
  {
    id: "waiting",
    title: "Waiting",
    data: "levels",
    height: [120, 112],
    series: [{ column: 4, label: "waiting", color: "--waiting", area: true }],
  },
  {
    id: "entering",
    title: "New users per minute",
    data: "rates",
    height: [130, 120],
    series: [
      { column: 1, label: "new", color: "--active", bars: true },
      { column: 2, label: "limit", color: "--limit", dash: [7, 4], step: true },
    ],
  },
];

/** A chart's elements: its legend with the values, and where it is drawn. */
function createPart(chart) {
  const values = chart.series.map(() => h("b", {}, "–"));
  const keys = chart.series.map(({ label, color, dash, bars, area, onlyHours }, index) =>
    h(
      "span",
      { class: "key", "data-only-hours": onlyHours ?? false },
      s(
        "svg",
        { width: 18, height: 10, "aria-hidden": "true", class: `swatch ${color.slice(2)}` },
        bars || area
          ? s("rect", { width: 18, height: 10, class: bars ? "solid" : "area" })
          : s("line", { x1: 0, x2: 18, y1: 5, y2: 5, "stroke-dasharray": dash?.join(" ") ?? "none" }),
        area && !bars ? s("line", { x1: 0, x2: 18, y1: 1, y2: 1 }) : null,
      ),
      ` ${label} `,
      values[index],
    ),
  );
  const at = h("span", { class: "at" });
  const canvas = h("div", { class: "canvas", "aria-hidden": "true" });
  const legend = h("div", { class: "legend" }, h("h3", {}, chart.title), ...keys, at);
  const figure = h("div", { class: "chart", id: `chart-${chart.id}` }, legend, canvas);
  return { chart, figure, canvas, values, at };
}

/** Says the values under the cursor, or the last ones. */
function say(part, plot) {
  const { idx } = plot.cursor;
  const times = plot.data[0];
  part.chart.series.forEach((_, index) => {
    const column = plot.data[index + 1];
    const last = column.findLastIndex((value) => value !== null && value !== undefined);
    write(part.values[index], number(column[idx ?? last]));
  });
  write(part.at, typeof idx === "number" && times[idx] ? stamp(times[idx]) : "");
}

const dataOf = (state, { data, series }) => [
  state.data[data][0],
  ...series.map(({ column }) => state.data[data][column]),
];

/**
 * What uPlot wants to know of a chart.
 * @param {{ color: (name: string) => string, narrow: boolean, state: () => object, zoom: (plot: uPlot) => void }} drawn
 */
function optionsOf(part, { color, narrow, state, zoom }) {
  const { chart, canvas } = part;
  return {
    width: Math.max(200, canvas.clientWidth),
    height: chart.height[narrow ? 1 : 0],
    padding: [chart.marks ? LETTER + 6 : 6, 6, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: SYNC, setSeries: false },
      drag: { x: true, y: false, setScale: false },
      y: false,
      points: { size: 6 },
    },
    scales: {
      x: { time: true, range: () => [state().from / 1000, state().to / 1000] },
      y: { range: (_plot, _least, most) => [0, Math.max(4, (most ?? 0) * 1.08)] },
    },
    axes: [
      axis(color, { size: 26, space: 64, values: times }),
      axis(color, { size: 46, space: 32, values: (_plot, splits) => splits.map(short), incrs: WHOLE }),
    ],
    series: [{}, ...chart.series.map((one) => seriesOf(one, color))],
    hooks: {
      drawClear: [(plot) => shade(plot, color, state())],
      draw: [(plot) => drawMarks(plot, color, state(), chart.marks)],
      setCursor: [(plot) => say(part, plot)],
      setSelect: [zoom],
    },
  };
}

/** Shades rehearsals. */
function shade(plot, color, { rehearsals }) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = color("--rehearsal");
  for (const { at, until } of rehearsals) {
    const left = Math.max(bbox.left, plot.valToPos(at / 1000, "x", true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(until / 1000, "x", true));
    if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  ctx.restore();
}

/** Draws a line where something happened, with its letter on the first chart. */
function drawMarks(plot, color, { marks, from, to }, withLetters) {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  let free = Number.NEGATIVE_INFINITY;
  ctx.save();
  ctx.font = `600 ${10.5 * scale}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const { at, letter } of marks) {
    if (at < from || at > to) continue;
    const x = Math.round(plot.valToPos(at / 1000, "x", true));
    ctx.strokeStyle = color("--mark");
    ctx.lineWidth = scale;
    ctx.setLineDash([2 * scale, 3 * scale]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    // Letters that would lie upon each other say nothing; the list below has them all.
    if (!withLetters || x - free < (LETTER + 1) * scale) continue;
    free = x;
    const top = bbox.top - (LETTER + 2) * scale;
    ctx.setLineDash([]);
    ctx.fillStyle = color("--mark");
    ctx.beginPath();
    ctx.roundRect(x - (LETTER / 2) * scale, top, LETTER * scale, LETTER * scale, 3 * scale);
    ctx.fill();
    ctx.fillStyle = color("--card");
    ctx.fillText(letter, x, top + (LETTER / 2 + 0.5) * scale);
  }
  ctx.restore();
}

/**
 * @param {{ zoom: (from: number, to: number) => void }} told
 */
export function createCharts(told) {
  const element = h("div", { class: "charts" });
  let state = {
    from: Date.now() - 3_600_000,
    to: Date.now(),
    marks: [],
    rehearsals: [],
    data: { levels: [[], [], [], [], [], []], rates: [[], [], []] },
    hourly: false,
  };
  let plots = [];
  const parts = CHARTS.map(createPart);
  element.append(...parts.map(({ figure }) => figure));

  let isZooming = false;
  const zoom = (plot) => {
    const { left, width } = plot.select;
    if (width < 8 || isZooming) return;
    // The other charts select the same: once is enough.
    isZooming = true;
    queueMicrotask(() => {
      isZooming = false;
    });
    told.zoom(plot.posToVal(left, "x") * 1000, plot.posToVal(left + width, "x") * 1000);
  };

  function draw() {
    for (const plot of plots) plot.destroy();
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    const narrow = element.clientWidth < 500;
    plots = parts.map((part) => {
      const options = optionsOf(part, { color, narrow, state: () => state, zoom });
      const plot = new uPlot(options, dataOf(state, part.chart), part.canvas);
      say(part, plot);
      return plot;
    });
  }

  let width = 0;
  let frame = 0;
  const observer = new ResizeObserver(([{ contentRect }]) => {
    if (Math.round(contentRect.width) === width) return;
    width = Math.round(contentRect.width);
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(draw);
  });
  observer.observe(element);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", draw);

  return {
    element,
    /** @param {Partial<typeof state>} changes */
    update(changes) {
      state = { ...state, ...changes };
      element.classList.toggle("hourly", state.hourly);
      plots.forEach((plot, index) => {
        plot.setData(dataOf(state, CHARTS[index]));
        say(parts[index], plot);
      });
    },
    end() {
      observer.disconnect();
      dark.removeEventListener("change", draw);
      for (const plot of plots) plot.destroy();
    },
  };
}

/** People come in whole numbers. */
const WHOLE = [1, 2, 5]
  .flatMap((digit) => Array.from({ length: 9 }, (_, power) => digit * 10 ** power))
  .sort((one, other) => one - other);

const stamp = (seconds) =>
  new Date(seconds * 1000).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });

function axis(color, more) {
  return {
    stroke: color("--quiet"),
    grid: { stroke: color("--rule"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
    ...more,
  };
}

/** Times of day, or days where more than two of them are shown. */
function times(plot, splits) {
  const { min, max } = plot.scales.x;
  const isLong = max - min > 2 * 86_400;
  const isExact = max - min < 5 * 60;
  return splits.map((seconds) => {
    const date = new Date(seconds * 1000);
    const atMidnight = date.getHours() === 0 && date.getMinutes() === 0;
    if (isLong || (atMidnight && !isExact)) return DAYS.format(date);
    return (isExact ? SECONDS : MINUTES).format(date);
  });
}
const DAYS = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const MINUTES = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function seriesOf({ label, color: name, dash, area, bars, step, thin }, color) {
  return {
    label,
    stroke: color(name),
    width: bars ? 0 : thin ? 1 : 2,
    dash,
    fill: area ? `${color(name)}33` : bars ? color(name) : undefined,
    paths: bars
      ? uPlot.paths.bars({ size: [0.78, 46], align: 1 })
      : step
        ? uPlot.paths.stepped({ align: 1 })
        : undefined,
    points: { show: false },
    spanGaps: false,
  };
}
