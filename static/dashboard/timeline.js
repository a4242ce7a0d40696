// The charts with their range, what happened in it, the same as a table, and as a file.
import { address, get } from "./api.js";
import { createCharts } from "./chart.js";
import { attribute, h, newId, place, show, write } from "./dom.js";
import { marksOf, rehearsals } from "./marks.js";
import { bounds, moved, RANGES } from "./place.js";
import { addMoment, columns, FIELDS, momentOf, observed, recorded, summary } from "./series.js";
import { section, wide } from "./tables.js";
import { DAY, exactTime, HOUR, MINUTE, moment, number, zone } from "./words.js";

/** Of ranges that end now: a minute is recorded some seconds after its end. */
const RELOAD_MS = 60_000;
/** After a minute's end, when it is recorded everywhere. */
const SETTLES_MS = 8_000;
const MOST_MARKS = 8;
const MOST_ROWS = 240;
const COLUMNS = [
  ["Active", "active_users"],
  ["Most active", "active_users_max"],
  ["Limit", "total_active_users"],
  ["Slots", "slots"],
  ["Waiting", "waiting_users"],
  ["New users", "new_users"],
  ["New, limit", "new_users_per_minute"],
  ["Waited, half, s", "wait_seconds_p50"],
  ["Waited, 90 %, s", "wait_seconds_p90"],
];

/** The range: up to now, moved and zoomed, or from one time to another. */
function createRangeBar({ go, moved }) {
  const presets = Object.entries(RANGES).map(([name, [, label]]) => [
    name,
    h("button", { onclick: () => go({ name }) }, label),
  ]);
  const move = (label, title, factor, shift) =>
    h("button", { title, "aria-label": title, onclick: () => go(moved(factor, shift)) }, label);
  const from = h("input", { type: "datetime-local", id: newId("from"), required: true });
  const to = h("input", { type: "datetime-local", id: newId("to"), required: true });
  const wrong = h("p", { class: "error", role: "status" });
  const onsubmit = (event) => {
    event.preventDefault();
    const chosen = { from: new Date(from.value).getTime(), to: new Date(to.value).getTime() };
    const isRight = chosen.to - chosen.from >= MINUTE;
    write(wrong, isRight ? "" : "The end must be at least a minute after the beginning.");
    if (isRight) go(chosen);
  };
  const pick = h(
    "form",
    { class: "pick", onsubmit },
    h("label", { for: from.id }, "From "),
    from,
    h("label", { for: to.id }, " to "),
    to,
    " ",
    h("button", {}, "Show"),
    wrong,
  );
  const element = h(
    "div",
    { class: "ranges" },
    h(
      "div",
      { class: "group", role: "group", "aria-label": "Up to now, the last" },
      ...presets.map(([, button]) => button),
    ),
    h(
      "div",
      { class: "group", role: "group", "aria-label": "Move and zoom" },
      move("←", "Earlier", 1, -0.5),
      move("→", "Later", 1, 0.5),
      move("+", "Zoom in", 0.5, 0),
      move("−", "Zoom out", 2, 0),
    ),
    h("details", { class: "dates" }, h("summary", { class: "opens" }, "From … to …"), pick),
  );
  return {
    element,
    /** @param {import("./place.js").Range} range @param {{ from: number, to: number }} span */
    show(range, span) {
      for (const [name, button] of presets)
        attribute(button, "aria-pressed", String("name" in range && range.name === name));
      from.value = localInput(span.from);
      to.value = localInput(span.to);
    },
  };
}

/** What happened, the latest first. */
function createMarks(render) {
  let isAll = false;
  let shown = "";
  const list = h("ol", { class: "marks" });
  const onclick = () => {
    isAll = !isAll;
    render();
  };
  const more = h("button", { class: "more", onclick });
  const none = h(
    "p",
    { class: "quiet" },
    "Nothing happened in this time: no steering, no event, no trouble.",
  );
  const item = ({ letter, name, text, at }, isLong) =>
    h(
      "li",
      {},
      h("abbr", { class: "letter", title: name }, letter),
      h("span", { class: "when" }, isLong ? moment(at) : exactTime(at)),
      h("span", {}, text),
    );
  return {
    elements: [none, list, more],
    /** @param {object[]} found @param {boolean} isLong more than a day is shown */
    update(found, isLong) {
      const chosen = isAll ? found : found.slice(0, MOST_MARKS);
      show(none, found.length === 0);
      show(more, found.length > MOST_MARKS);
      write(more, isAll ? `Show the last ${MOST_MARKS} only` : `Show all ${found.length}`);
      attribute(more, "aria-expanded", String(isAll));
      const key = JSON.stringify(chosen);
      if (key === shown) return;
      shown = key;
      place(
        list,
        chosen.map((mark) => item(mark, isLong)),
      );
    },
  };
}

/** The figures as a table, which is filled when it is opened. */
function createFigures(render) {
  const body = h("tbody");
  const cut = h("p", { class: "quiet" });
  const heads = COLUMNS.map(([title]) => h("th", { scope: "col", class: "number" }, title));
  const head = h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Time"), ...heads));
  const element = h(
    "details",
    { ontoggle: render },
    h("summary", { class: "opens" }, "The same as a table"),
    cut,
    wide("Recorded figures", h("table", {}, head, body)),
  );
  const line = (row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, moment(row.at)),
      ...COLUMNS.map(([, field]) => h("td", { class: "number" }, number(row[field] ?? Number.NaN))),
    );
  return {
    element,
    update(rows) {
      if (!element.open) return;
      show(cut, rows.length > MOST_ROWS);
      write(cut, `The last ${MOST_ROWS} of ${number(rows.length)} rows; the file has them all.`);
      place(body, rows.slice(-MOST_ROWS).reverse().map(line));
    },
  };
}

/**
 * @param {string} room its name
 * @param {{ go: (range: import("./place.js").Range) => void, audit: () => object[] }} told `go`: another range is wanted
 */
export function createTimeline(room, told) {
  return new Timeline(room, told);
}

class Timeline {
  #room;
  #audit;
  #range = { name: "1h" };
  #offset = 0;
  #latest;
  #history = { rows: [], settled: 0, hourly: false };
  #news = [];
  #moments = [];
  #asked = 0;
  #reload = 0;
  #charts;
  #bar;
  #marks = createMarks(() => this.#renderMarks());
  #figures = createFigures(() => this.#figures.update(this.#history.rows));
  #csv = h("a", { download: "" }, "Download as CSV");
  #caption = h("p", { class: "quiet caption" });
  #said = h("p", { class: "summary" });
  #problem = h("span");
  #trouble;

  constructor(room, { go, audit }) {
    this.#room = room;
    this.#audit = audit;
    this.#charts = createCharts({
      zoom: (from, to) => go({ from: Math.round(from), to: Math.round(to) }),
    });
    this.#bar = createRangeBar({
      go,
      moved: (factor, shift) => moved(this.#range, this.#clock(), factor, shift),
    });
    const again = h("button", { onclick: () => this.#load() }, "Try again");
    this.#trouble = h("p", { class: "problem", hidden: true }, this.#problem, again);
    this.element = section(
      "timeline",
      "On the time line",
      this.#bar.element,
      this.#trouble,
      this.#charts.element,
      this.#caption,
      this.#said,
      h("h3", {}, "What happened"),
      ...this.#marks.elements,
      this.#figures.element,
      h("p", {}, this.#csv),
    );
  }

  #clock() {
    return Date.now() + this.#offset;
  }

  #span() {
    return bounds(this.#range, this.#clock());
  }

  #isLive() {
    return "name" in this.#range;
  }

  async #load() {
    clearTimeout(this.#reload);
    const turn = ++this.#asked;
    const span = this.#span();
    const known = new Set(this.#news);
    this.element.setAttribute("aria-busy", "true");
    await this.#loadHistory(span, turn);
    if (turn !== this.#asked) return;
    try {
      const answer = await get("news", { room: this.#room, ...span });
      if (turn === this.#asked) {
        // The answer may be older than what was told while it came.
        const told = this.#news.filter((one) => !known.has(one));
        this.#news = answer.news;
        this.#add(told);
      }
    } catch {
      // The charts are worth something without.
    }
    if (turn !== this.#asked) return;
    this.element.removeAttribute("aria-busy");
    const toReload = RELOAD_MS - ((this.#clock() - SETTLES_MS) % RELOAD_MS);
    if (this.#isLive()) this.#reload = setTimeout(() => this.#load(), toReload);
    this.render();
    this.#figures.update(this.#history.rows);
  }

  async #loadHistory(span, turn) {
    try {
      const asked = { room: this.#room, ...span, resolution: "auto", fields: FIELDS.join(",") };
      const answer = await get("history", asked);
      if (turn !== this.#asked) return;
      this.#history = {
        rows: recorded(answer),
        settled: answer.settled_until ?? span.to,
        hourly: answer.resolution === "hour",
      };
      show(this.#trouble, false);
    } catch ({ message }) {
      if (turn !== this.#asked) return;
      show(this.#trouble, true);
      write(this.#problem, `The record could not be loaded: ${message}. `);
    }
  }

  #happened() {
    const events = this.#latest?.events ?? [];
    const { rows } = this.#history;
    return marksOf({ news: this.#news, audit: this.#audit(), events, rows, ...this.#span() });
  }

  render() {
    const span = this.#span();
    const { rows, hourly, settled } = this.#history;
    const inRange = (point) => point.at >= span.from - HOUR && point.at <= span.to;
    const data = columns(rows, hourly ? [] : this.#moments.filter(inRange), settled);
    const marks = this.#happened();
    this.#charts.update({ ...span, data, marks, rehearsals: rehearsals(rows), hourly });
    write(this.#said, `${summary(data, number)} ${observed(rows.filter(inRange), number)}`.trim());
    const isLive = this.#isLive();
    const step = hourly
      ? "by the hour"
      : isLive
        ? "by the minute, the last moments by the second"
        : "by the minute";
    write(
      this.#caption,
      `${moment(span.from)} to ${isLive ? "now" : moment(span.to)}, ${step}. Times are those of ${zone()}. Drag over a chart to zoom in.`,
    );
    const file = {
      room: this.#room,
      from: Math.round(span.from),
      to: Math.round(span.to),
      fields: FIELDS.join(","),
      format: "csv",
    };
    attribute(this.#csv, "href", address("history", file));
    this.#renderMarks();
  }

  #renderMarks() {
    const { from, to } = this.#span();
    this.#marks.update(this.#happened().reverse(), to - from > DAY);
  }

  /** @param {import("./place.js").Range} chosen */
  show(chosen) {
    this.#range = chosen;
    this.#bar.show(chosen, this.#span());
    return this.#load();
  }

  /** What the room is now. */
  update(found, now) {
    this.#offset = now - Date.now();
    this.#latest = found;
    if (!found.error) addMoment(this.#moments, momentOf(found, Math.max(found.taken_at || 0, now - 3_000)));
    if (this.#isLive()) this.render();
  }

  addNews(more) {
    this.#add(more);
    this.render();
  }

  #add(more) {
    const known = new Set(this.#news.map(({ id }) => id));
    this.#news = [...this.#news, ...more.filter(({ id }) => !known.has(id))];
  }

  end() {
    clearTimeout(this.#reload);
    this.#asked += 1;
    this.#charts.end();
  }
}

/** A time as its input wants it, in local time. */
function localInput(ms) {
  const date = new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE);
  return date.toISOString().slice(0, 16);
}
