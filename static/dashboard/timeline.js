// The charts with their range, what happened in it, the same as a table, and as a file.
import { address, get } from "./api.js";
import { createCharts } from "./chart.js";
import { attribute, h, newId, place, show, write } from "./dom.js";
import { marksOf, rehearsals } from "./marks.js";
import { bounds, moved, RANGES } from "./place.js";
import { addMoment, columns, FIELDS, momentOf, recorded, summary } from "./series.js";
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

/**
 * @param {string} room its name
 * @param {{ go: (range: import("./place.js").Range) => void, audit: () => object[] }} told `go`: another range is wanted
 */
export function createTimeline(room, { go, audit }) {
  let range = { name: "1h" };
  let offset = 0;
  let latest;
  let history = { rows: [], settled: 0, hourly: false };
  let news = [];
  const moments = [];
  let isAllMarks = false;
  let asked = 0;
  let reload = 0;

  const charts = createCharts({ zoom: (from, to) => go({ from: Math.round(from), to: Math.round(to) }) });
  const clock = () => Date.now() + offset;

  const presets = Object.entries(RANGES).map(([name, [, label]]) => [
    name,
    h("button", { onclick: () => go({ name }) }, label),
  ]);
  const move = (label, title, factor, shift) =>
    h(
      "button",
      { title, "aria-label": title, onclick: () => go(moved(range, clock(), factor, shift)) },
      label,
    );
  const from = h("input", { type: "datetime-local", id: newId("from"), required: true });
  const to = h("input", { type: "datetime-local", id: newId("to"), required: true });
  const wrong = h("p", { class: "error", role: "status" });
  const pick = h(
    "form",
    {
      class: "pick",
      onsubmit: (event) => {
        event.preventDefault();
        const chosen = { from: new Date(from.value).getTime(), to: new Date(to.value).getTime() };
        const isRight = chosen.to - chosen.from >= MINUTE;
        write(wrong, isRight ? "" : "The end must be at least a minute after the beginning.");
        if (isRight) go(chosen);
      },
    },
    h("label", { for: from.id }, "From "),
    from,
    h("label", { for: to.id }, " to "),
    to,
    " ",
    h("button", {}, "Show"),
    wrong,
  );
  const csv = h("a", { download: "" }, "Download as CSV");
  const caption = h("p", { class: "quiet caption" });
  const said = h("p", { class: "summary" });
  const trouble = h("p", { class: "problem", hidden: true });
  const list = h("ol", { class: "marks" });
  const moreMarks = h("button", {
    class: "more",
    onclick: () => {
      isAllMarks = !isAllMarks;
      renderMarks();
    },
  });
  const noMarks = h(
    "p",
    { class: "quiet" },
    "Nothing happened in this time: no steering, no event, no trouble.",
  );
  const body = h("tbody");
  const cut = h("p", { class: "quiet" });
  const table = h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Time"),
        ...COLUMNS.map(([title]) => h("th", { scope: "col", class: "number" }, title)),
      ),
    ),
    body,
  );
  const details = h(
    "details",
    { ontoggle: () => renderTable() },
    h("summary", { class: "opens" }, "The same as a table"),
    cut,
    wide("Recorded figures", table),
  );
  const toolbar = h(
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
  const element = section(
    "timeline",
    "On the time line",
    toolbar,
    trouble,
    charts.element,
    caption,
    said,
    h("h3", {}, "What happened"),
    noMarks,
    list,
    moreMarks,
    details,
    h("p", {}, csv),
  );

  const isLive = () => "name" in range;

  async function load() {
    clearTimeout(reload);
    const turn = ++asked;
    const span = bounds(range, clock());
    element.setAttribute("aria-busy", "true");
    try {
      const answer = await get("history", { room, ...span, resolution: "auto", fields: FIELDS.join(",") });
      if (turn !== asked) return;
      history = {
        rows: recorded(answer),
        settled: answer.settled_until ?? span.to,
        hourly: answer.resolution === "hour",
      };
      show(trouble, false);
    } catch ({ message }) {
      if (turn !== asked) return;
      show(trouble, true);
      place(trouble, [
        `The record could not be loaded: ${message}. `,
        h("button", { onclick: load }, "Try again"),
      ]);
    }
    try {
      const answer = await get("news", { room, ...span });
      if (turn === asked) news = answer.news;
    } catch {
      // The charts are worth something without.
    }
    if (turn !== asked) return;
    element.removeAttribute("aria-busy");
    if (isLive()) reload = setTimeout(load, RELOAD_MS - ((clock() - SETTLES_MS) % RELOAD_MS));
    render();
    renderTable();
  }

  function marks() {
    const span = bounds(range, clock());
    return marksOf({ news, audit: audit(), events: latest?.events ?? [], rows: history.rows, ...span });
  }

  function render() {
    const span = bounds(range, clock());
    const inRange = (point) => point.at >= span.from - HOUR && point.at <= span.to;
    const live = history.hourly ? [] : moments.filter(inRange);
    const data = columns(history.rows, live, history.settled);
    charts.update({
      ...span,
      data,
      marks: marks(),
      rehearsals: rehearsals(history.rows),
      hourly: history.hourly,
    });
    write(said, summary(data, number));
    const step = history.hourly
      ? "by the hour"
      : isLive()
        ? "by the minute, the last moments by the second"
        : "by the minute";
    write(
      caption,
      `${moment(span.from)} to ${isLive() ? "now" : moment(span.to)}, ${step}. Times are those of ${zone()}. Drag over a chart to zoom in.`,
    );
    attribute(
      csv,
      "href",
      address("history", {
        room,
        from: Math.round(span.from),
        to: Math.round(span.to),
        fields: FIELDS.join(","),
        format: "csv",
      }),
    );
    renderMarks();
  }

  let shownMarks = "";
  function renderMarks() {
    const found = marks().reverse();
    const chosen = isAllMarks ? found : found.slice(0, MOST_MARKS);
    show(noMarks, found.length === 0);
    show(moreMarks, found.length > MOST_MARKS);
    write(moreMarks, isAllMarks ? `Show the last ${MOST_MARKS} only` : `Show all ${found.length}`);
    attribute(moreMarks, "aria-expanded", String(isAllMarks));
    const key = JSON.stringify(chosen);
    if (key === shownMarks) return;
    shownMarks = key;
    const isLong = bounds(range, clock()).to - bounds(range, clock()).from > DAY;
    place(
      list,
      chosen.map(({ letter, name, text, at }) =>
        h(
          "li",
          {},
          h("abbr", { class: "letter", title: name }, letter),
          h("span", { class: "when" }, isLong ? moment(at) : exactTime(at)),
          h("span", {}, text),
        ),
      ),
    );
  }

  function renderTable() {
    if (!details.open) return;
    const rows = history.rows.slice(-MOST_ROWS).reverse();
    show(cut, history.rows.length > MOST_ROWS);
    write(cut, `The last ${MOST_ROWS} of ${number(history.rows.length)} rows; the file has them all.`);
    place(
      body,
      rows.map((row) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, moment(row.at)),
          ...COLUMNS.map(([, field]) => h("td", { class: "number" }, number(row[field] ?? Number.NaN))),
        ),
      ),
    );
  }

  return {
    element,
    /** @param {import("./place.js").Range} chosen */
    show(chosen) {
      range = chosen;
      for (const [name, button] of presets)
        attribute(button, "aria-pressed", String("name" in range && range.name === name));
      const span = bounds(range, clock());
      for (const [input, at] of [
        [from, span.from],
        [to, span.to],
      ])
        input.value = localInput(at);
      return load();
    },
    /** What the room is now. */
    update(found, now) {
      offset = now - Date.now();
      latest = found;
      if (!found.error) addMoment(moments, momentOf(found, Math.max(found.taken_at || 0, now - 3_000)));
      if (isLive()) render();
    },
    addNews(more) {
      const known = new Set(news.map(({ id }) => id));
      news = [...news, ...more.filter(({ id }) => !known.has(id))];
      render();
    },
    render,
    end() {
      clearTimeout(reload);
      asked += 1;
      charts.end();
    },
  };
}

/** A time as its input wants it, in local time. */
function localInput(ms) {
  const date = new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE);
  return date.toISOString().slice(0, 16);
}
