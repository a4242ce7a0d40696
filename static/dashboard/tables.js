// The tables of a room: who waits, data centers, the origin, events.
import places from "./colos.txt";
import { attribute, h, keyed, s, show, write } from "./dom.js";
import { count, duration, HOUR, moment, number, relative, time } from "./words.js";
import outline from "./world.txt";

const MOST_ROWS = 12;

/** A section with a heading of its own. */
export function section(id, title, ...children) {
  const heading = h("h2", { id: `${id}-title` }, title);
  return h("section", { id, class: "panel", "aria-labelledby": `${id}-title` }, heading, ...children);
}

/** A table that scrolls sideways within itself, and by the keyboard, where it is too wide. */
export function wide(label, table) {
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label }, table);
}

/** Shows the first rows, and all when asked to. */
function more(render) {
  let isAll = false;
  const button = h("button", {
    class: "more",
    onclick: () => {
      isAll = !isAll;
      render();
    },
  });
  return {
    button,
    /** @template Item @param {Item[]} items @returns {Item[]} */
    cut(items) {
      show(button, items.length > MOST_ROWS);
      write(button, isAll ? `Show ${MOST_ROWS} only` : `Show all ${number(items.length)}`);
      attribute(button, "aria-expanded", String(isAll));
      return isAll ? items : items.slice(0, MOST_ROWS);
    },
  };
}

/** Who waits, by the minute in which they came or that they drew: oldest first. */
export function createBuckets() {
  let last = [];
  const body = h("tbody");
  const table = h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "In line from"),
        h("th", { scope: "col", class: "number" }, "Waiting"),
        h("th", { scope: "col", class: "number" }, "Seen lately"),
        h("th", { scope: "col", class: "number" }, "Wait left"),
        h("th", { scope: "col", class: "bars" }, h("span", { class: "unseen" }, "Share")),
      ),
    ),
    body,
  );
  const empty = h("p", { class: "quiet" }, "Nobody waits.");
  const scroller = wide(
    "Waiting users by their place in line: the minute in which they came, or their lot",
    table,
  );
  const list = more(() => render());
  const element = section("buckets", "In line", empty, scroller, list.button);
  let most = 1;
  const rows = keyed(
    body,
    ({ bucket }) => bucket,
    () => {
      const [users, present, wait] = [
        h("td", { class: "number" }),
        h("td", { class: "number" }),
        h("td", { class: "number" }),
      ];
      const name = h("th", { scope: "row" });
      const bar = h("i");
      const row = h(
        "tr",
        {},
        name,
        users,
        present,
        wait,
        h("td", { class: "bars", "aria-hidden": "true" }, bar),
      );
      return {
        element: row,
        update(bucket) {
          write(name, bucket.drawn ? `${time(bucket.since)}, by lot` : time(bucket.since));
          write(users, number(bucket.users));
          write(present, number(bucket.present));
          write(
            wait,
            bucket.wait_seconds === null
              ? "not known"
              : bucket.wait_seconds < 5
                ? "next"
                : duration(bucket.wait_seconds * 1000),
          );
          bar.style.width = `${((100 * bucket.users) / most).toFixed(1)}%`;
        },
      };
    },
  );
  function render() {
    most = Math.max(1, ...last.map(({ users }) => users));
    show(empty, last.length === 0);
    show(scroller, last.length > 0);
    rows(list.cut(last));
  }
  return {
    element,
    update({ buckets = [] }) {
      last = buckets;
      render();
    },
  };
}

const COLO_COLUMNS = [
  { id: "colo", title: "Colo", text: true },
  { id: "active", title: "Active" },
  { id: "waiting", title: "Waiting" },
  { id: "new_users_this_minute", title: "New now" },
  { id: "new_users_last_minute", title: "Last min" },
  { id: "workers", title: "Workers" },
  { id: "age_ms", title: "Heard" },
];

/** A data center that is awake reports every two seconds. */
const AWAKE_MS = 20_000;
const heard = (age) => (age < 1_000 ? "now" : `${duration(age)} ago`);

/** City and place on the map of each known colo: latitude and longitude in degrees. */
const KNOWN = new Map(
  places
    .trim()
    .split("\n")
    .map((line) => {
      const [colo, latitude, longitude, ...city] = line.split(" ");
      return [colo, { latitude: Number(latitude), longitude: Number(longitude), city: city.join(" ") }];
    }),
);
/** The outline's own measures: half a degree a unit, from 84 degrees north. */
const MAP = {
  width: 720,
  height: 282,
  x: (longitude) => (longitude + 180) * 2,
  y: (latitude) => (84 - latitude) * 2,
};

/** A data center's row. @param {string} colo @param {() => number} version of the steering that is in force */
function createColo(colo, version) {
  const cells = COLO_COLUMNS.slice(1).map(() => h("td", { class: "number" }));
  const note = h("span", { class: "note" });
  const city = h("span", { class: "city" }, KNOWN.get(colo)?.city ?? "");
  const row = h("tr", {}, h("th", { scope: "row" }, h("b", {}, colo), " ", city, note), ...cells);
  return {
    element: row,
    update(one) {
      COLO_COLUMNS.slice(1).forEach(({ id }, index) => {
        write(cells[index], id === "age_ms" ? heard(one.age_ms) : number(one[id]));
      });
      // Where nobody is, nothing was reported and nothing has to be.
      const isBehind = version() > 0 && one.age_ms < AWAKE_MS && one.steering < version();
      write(note, one.cut_off ? " cut off" : isBehind ? ` steering ${one.steering} of ${version()}` : "");
    },
  };
}

/** Data centers: on a map, and as a table. */
export function createColos() {
  let last = [];
  let version = 0;
  let order = { id: "waiting", down: true };
  const heads = COLO_COLUMNS.map((column) => {
    const button = h(
      "button",
      {
        class: "sort",
        onclick: () => {
          order = { id: column.id, down: order.id === column.id ? !order.down : !column.text };
          render();
        },
      },
      column.title,
    );
    return h("th", { scope: "col", class: column.text ? "" : "number" }, button);
  });
  const body = h("tbody");
  const table = h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body);
  const empty = h("p", { class: "quiet" }, "No data center has reported users of this room.");
  const scroller = wide("Table of data centers", table);
  const list = more(() => render());
  const map = createMap();
  const sum = h("p", { class: "quiet" });
  const element = section("colos", "Data centers", sum, map.element, empty, scroller, list.button);

  const rows = keyed(
    body,
    ({ colo }) => colo,
    ({ colo }) => createColo(colo, () => version),
  );

  function render() {
    COLO_COLUMNS.forEach(({ id }, index) => {
      attribute(
        heads[index],
        "aria-sort",
        order.id === id ? (order.down ? "descending" : "ascending") : "none",
      );
    });
    const sign = order.down ? -1 : 1;
    const sorted = last.toSorted((one, other) => {
      const [left, right] = [one[order.id], other[order.id]];
      const first = typeof left === "string" ? left.localeCompare(right) : left - right;
      return sign * first || other.active - one.active || one.colo.localeCompare(other.colo);
    });
    show(empty, last.length === 0);
    show(scroller, last.length > 0);
    rows(list.cut(sorted));
  }

  return {
    element,
    update({ colos = [], steering }) {
      last = colos;
      version = steering?.version ?? 0;
      const cutOff = colos.filter((one) => one.cut_off).length;
      const workers = colos.reduce((total, one) => total + one.workers, 0);
      show(sum, colos.length > 0);
      write(
        sum,
        `${count(colos.length, "data center")}, ${count(workers, "worker")}.${cutOff > 0 ? ` ${count(cutOff, "is", "are")} cut off: nothing was heard of ${cutOff === 1 ? "it" : "them"} in time.` : ""}`,
      );
      map.update(colos);
      render();
    },
  };
}

function createMap() {
  const dots = s("g");
  const picture = s(
    "svg",
    {
      viewBox: `0 0 ${MAP.width} ${MAP.height}`,
      class: "map",
      role: "img",
      "aria-label": "Data centers on a map of the world; the table below says the same",
    },
    s("path", { d: outline.trim(), class: "land" }),
    dots,
  );
  const beside = h("p", { class: "quiet" });
  const entry = (kind, text) => h("span", { class: "item" }, h("span", { class: `dot ${kind}` }), ` ${text}`);
  const key = h(
    "p",
    { class: "map-key quiet", "aria-hidden": "true" },
    entry("calm", "active users"),
    entry("waits", "and people who wait"),
    entry("cut", "cut off"),
  );
  const element = h("div", { class: "map-part" }, picture, key, beside);
  const render = keyed(
    dots,
    ({ colo }) => colo,
    ({ colo }) => {
      const { latitude, longitude, city } = KNOWN.get(colo);
      const [x, y] = [MAP.x(longitude), MAP.y(latitude)];
      const title = s("title");
      const circle = s("circle", { cx: x, cy: y });
      const cross = s("path", { d: `M${x - 4} ${y - 4}l8 8m0-8l-8 8`, class: "cross" });
      const group = s("g", {}, title, circle, cross);
      return {
        element: group,
        update(one) {
          attribute(circle, "r", radius(one).toFixed(1));
          attribute(group, "class", one.cut_off ? "cut" : one.waiting > 0 ? "waits" : "calm");
          write(
            title,
            `${colo} ${city}: ${number(one.active)} active, ${number(one.waiting)} waiting${one.cut_off ? ", cut off" : ""}`,
          );
        },
      };
    },
  );
  let most = 1;
  // By area; the smallest is still to be seen.
  const radius = ({ active, waiting }) => 2.5 + 8 * Math.sqrt(Math.max(0, active + waiting) / most);
  return {
    element,
    update(colos) {
      show(element, colos.length > 0);
      most = Math.max(20, ...colos.map(({ active, waiting }) => Math.max(0, active) + waiting));
      render(colos.filter(({ colo }) => KNOWN.has(colo)));
      const unknown = colos.filter(({ colo }) => !KNOWN.has(colo));
      show(beside, unknown.length > 0);
      write(
        beside,
        `Not on the map: ${unknown.map(({ colo, active, waiting }) => `${colo} (${number(active)} active, ${number(waiting)} waiting)`).join(", ")}.`,
      );
    },
  };
}

/** What passed through to the origin in the last minute, and whether it is well. */
export function createOrigin() {
  const health = h("p", { class: "health" });
  const list = h("dl", { class: "facts" });
  const element = section("origin", "Origin, last minute", health, list);
  const names = {
    answered: "Answered",
    failed: "Failed",
    timed_out: "Timed out",
    refused: "Refused by the guard",
    p50: "First byte, half within",
    p95: "First byte, 95 % within",
    in_flight: "Under way now",
    limits: "Limits in force",
  };
  const values = Object.fromEntries(Object.keys(names).map((name) => [name, h("dd")]));
  for (const [name, title] of Object.entries(names))
    list.append(h("div", {}, h("dt", {}, title), values[name]));
  return {
    element,
    update({ origin }, now) {
      show(list, Boolean(origin));
      if (!origin) {
        attribute(health, "data-tone", "silent");
        write(health, "Nothing has passed to the origin lately.");
        return;
      }
      const isBad = Boolean(origin.unhealthy_check);
      attribute(health, "data-tone", isBad ? "bad" : origin.checks > 0 ? "open" : "silent");
      write(
        health,
        isBad
          ? `▲ Unhealthy: check ${origin.unhealthy_check}${origin.unhealthy_since ? `, since ${moment(origin.unhealthy_since, now)} (${duration(now - origin.unhealthy_since)})` : ""}.${origin.held ? " New users are held back." : ""}`
          : origin.checks > 0
            ? "○ No health check reports trouble."
            : "– No health check speaks for it.",
      );
      for (const name of ["answered", "failed", "timed_out", "refused", "in_flight"])
        write(values[name], number(origin[name]));
      const ms = (value) =>
        value === null ? "–" : value < 1000 ? `${number(value)} ms` : `${(value / 1000).toFixed(1)} s`;
      write(values.p50, ms(origin.first_byte_p50_ms));
      write(values.p95, ms(origin.first_byte_p95_ms));
      const { total_active_users: active, new_users_per_minute: rate } = origin.limits;
      write(values.limits, `${number(active)} active, ${number(rate)} a minute`);
      for (const name of ["failed", "timed_out", "refused"])
        values[name].classList.toggle("bad", origin[name] > 0);
    },
  };
}

/** When an event begins or ends, as a distance where that is near. */
export const eventTime = (ms, now) =>
  ms === null || ms === undefined
    ? "–"
    : Math.abs(ms - now) < 12 * HOUR
      ? `${moment(ms, now)} (${relative(ms, now)})`
      : moment(ms, now);
