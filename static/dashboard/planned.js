// What is coming: events, and changes that operators have planned; on a time line of the days ahead, and as a calendar in two time
// zones. Here a change is planned, and dropped.
import { weekLater } from "../../src/edge/zones.js";
import { get, post, Refusal, ROOMS, remove } from "./api.js";
import { createAsking } from "./asking.js";
import { h, newId, place, s, show, write } from "./dom.js";
import { LONGEST_REASON } from "./lasting.js";
import { section } from "./tables.js";
import { DAY, FIELDS, title, value, zone } from "./words.js";

/** The days ahead that the time line has, and how many of what comes back each week are shown. */
const DAYS_AHEAD = 28;
const [WIDTH, ROW] = [560, 18];

/** @param {import("./control.js").Control} control */
export function createPlanned(control) {
  let plans = [];
  let id;
  const line = h("div", { class: "ahead" });
  const table = h("div", {
    class: "wide upcoming",
    tabindex: "0",
    role: "region",
    "aria-label": "Events and plans",
  });
  const empty = h("p", { class: "quiet" }, `Nothing is planned for the next ${DAYS_AHEAD} days.`);
  const outcome = h("p", { class: "outcome", role: "status" });
  const zoneId = newId("zone");
  const names = Intl.supportedValuesOf?.("timeZone") ?? [];
  const other = h(
    "select",
    { id: zoneId, onchange: () => render(true) },
    ...["UTC", ...names.filter((name) => name !== "UTC")].map((name) => h("option", { value: name }, name)),
  );
  const form = createForm(control, async (sent) => {
    const { result } = await post(`${ROOMS}/${id}/plans`, undefined, sent);
    write(outcome, `Planned: ${wordsOf(result.set)} from ${inZone().format(Date.parse(result.from))}.`);
    await load(true);
  });

  /** @param {boolean} isOwn what was changed here is shown at once */
  async function load(isOwn = false) {
    try {
      if (!id) {
        const { result } = await get(ROOMS, { per_page: 1_000 });
        id = result.find((room) => (room.deployed_as ? room.name : room.id) === control.name)?.id;
      }
      if (id) plans = (await get(`${ROOMS}/${id}/plans`, { per_page: 1_000 })).result;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // Events are known without it.
      write(
        outcome,
        error.status === 501
          ? "Changes cannot be planned: this deployment has no binding CONFIG."
          : `${error.message}.`,
      );
      show(form.element, error.status !== 501);
    }
    render(isOwn);
  }

  const drop = (plan) =>
    createAsking(control.maySteer, {
      label: "Drop",
      question: () => `Drop ${wordsOf(plan.set)}${plan.weekly ? ", each week" : ""}?`,
      yes: "Yes, drop it",
      act: async () => {
        try {
          await remove(`${ROOMS}/${id}/plans/${plan.id}`);
          write(outcome, `${wordsOf(plan.set)} is no longer planned.`);
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          write(outcome, `${error.message}.`);
        }
        await load(true);
      },
    }).element;

  let shown = "";
  let seen;
  function render(isOwn = false) {
    // One may have begun.
    const version = control.steering?.version;
    if (!isOwn && version !== undefined && version !== seen) {
      seen = version;
      load();
      return;
    }
    const coming = comingOf(plans, control);
    const key = JSON.stringify([
      coming.map(({ from, until, words }) => [from, until, words]),
      other.value,
      Math.floor(control.now / 60_000),
    ]);
    // Whoever is about to drop something must not lose it by a minute that has passed.
    if (!isOwn && (key === shown || table.contains(document.activeElement))) return;
    shown = key;
    show(empty, coming.length === 0);
    show(table, coming.length > 0);
    show(line, coming.length > 0);
    place(line, [drawn(coming, control.now)]);
    const span = ({ from, until }, timeZone) =>
      until === null
        ? `${inZone(timeZone).format(from)} until it is cleared`
        : inZone(timeZone).formatRange(from, until);
    const rows = coming.map((one) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, one.words),
        h("td", {}, one.plan && one.isNext && control.maySteer && drop(one.plan)),
        h("td", {}, span(one)),
        h("td", {}, span(one, other.value)),
        h("td", {}, one.plan?.weekly ? `each week (${one.plan.zone})` : "once"),
        h(
          "td",
          {},
          one.plan ? `${one.plan.created_by}${one.plan.reason ? `: ${one.plan.reason}` : ""}` : "event",
        ),
      ),
    );
    const heads = ["What", "", zone(), other.value, "How often", "By"];
    place(table, [
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h("tr", {}, ...heads.map((head) => h(head ? "th" : "td", head ? { scope: "col" } : {}, head))),
        ),
        h("tbody", {}, ...rows),
      ),
    ]);
  }

  return {
    element: section(
      "coming",
      "What is coming",
      line,
      table,
      empty,
      h("p", { class: "meta" }, h("label", { for: zoneId }, "Visitors' time zone"), " ", other),
      control.maySteer && form.element,
      outcome,
    ),
    render: () => render(),
  };
}

const wordsOf = (set) =>
  Object.entries(set)
    .map(([field, content]) => `${title(field)}: ${value(field, content)}`)
    .join(", ");

const inZone = (timeZone) =>
  new Intl.DateTimeFormat("en-GB", {
    ...{ weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
    timeZone,
  });

/** All that begins or goes on in the days ahead, the next first. */
function comingOf(plans, { now, steering }) {
  const end = now + DAYS_AHEAD * DAY;
  const events = (steering?.events ?? [])
    .filter(({ phase }) => ["upcoming", "prequeueing", "active"].includes(phase))
    .map(({ name, prequeue, start, end: until }) => ({
      words: `Event ${name}`,
      from: prequeue ?? start,
      start,
      until,
    }));
  const planned = plans.flatMap((plan) => {
    let [from, until] = [plan.from, plan.until].map((time) => (time === null ? null : Date.parse(time)));
    // The next one is shown however far away it is: else nobody could drop it.
    const found = [{ words: wordsOf(plan.set), from, start: from, until, plan, isNext: true }];
    while (plan.weekly && weekLater(from, plan.zone) < end) {
      [from, until] = [from, until].map((time) => weekLater(time, plan.zone));
      found.push({ ...found[0], from, start: from, until, isNext: false });
    }
    return found;
  });
  return [...events.filter(({ from }) => from < end), ...planned].sort((one, two) => one.from - two.from);
}

/** A row for each, from now to the end of the days that are shown. The table says the same in words. */
function drawn(coming, now) {
  const end = now + DAYS_AHEAD * DAY;
  const x = (time) => Math.max(0, Math.min(WIDTH, ((time - now) / (end - now)) * WIDTH));
  const inside = coming.filter(({ from }) => from < end);
  const labels = [...new Set(inside.map(({ words }) => words))];
  const height = labels.length * ROW + ROW;
  const weeks = [1, 2, 3].map((week) => {
    const at = x(now + week * 7 * DAY);
    return [
      s("line", { class: "grid", x1: at, x2: at, y1: 0, y2: height - ROW }),
      s("text", { x: at, y: height - 4, "text-anchor": "middle" }, `in ${week} week${week > 1 ? "s" : ""}`),
    ];
  });
  const bars = inside.map(({ words, from, start, until, plan }) => {
    const y = labels.indexOf(words) * ROW + 2;
    const bar = (begin, over, name) =>
      s("rect", {
        class: name,
        x: x(begin),
        y,
        width: Math.max(3, x(over) - x(begin)),
        height: ROW - 4,
        rx: 2,
      });
    const whole = bar(start, until ?? end, plan ? "plan" : "event");
    return from < start ? [bar(from, start, "prequeue"), whole] : [whole];
  });
  return s(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${height}`, "aria-hidden": "true" },
    ...weeks.flat(),
    ...bars.flat(),
  );
}

/** Where a change is planned. @param {(sent: object) => Promise<void>} plan */
function createForm(control, plan) {
  const problem = h("p", { class: "problem", role: "alert", id: newId("problem") });
  const field = h(
    "select",
    { onchange: () => fit() },
    ...Object.entries(FIELDS).map(([name, words]) => h("option", { value: name }, words)),
  );
  const content = h("span");
  const [from, until] = [0, 1].map(() => h("input", { type: "datetime-local" }));
  const weekly = h("input", { type: "checkbox" });
  const reason = h("input", { type: "text", maxlength: LONGEST_REASON, autocomplete: "off" });
  let input;
  function fit() {
    const known = control.field(field.value)?.value;
    const choices =
      { mode: ["enforce", "observe"] }[field.value] ??
      (typeof known === "boolean" ? ["true", "false"] : undefined);
    input = choices
      ? h(
          "select",
          {},
          ...choices.map((name) => h("option", { value: name }, { true: "on", false: "off" }[name] ?? name)),
        )
      : h("input", { type: typeof known === "number" ? "number" : "text", step: "any" });
    place(content, [labelled("to", input)]);
  }
  const read = () => {
    const known = control.field(field.value)?.value;
    if (typeof known === "boolean") return input.value === "true";
    return typeof known === "number" ? Number(input.value) : input.value;
  };
  const time = ({ value: text }) => (text ? new Date(text).toISOString() : null);
  const form = h(
    "form",
    {
      class: "lasting",
      novalidate: true,
      onsubmit: async (event) => {
        event.preventDefault();
        write(problem, "");
        try {
          await plan({
            ...{ set: { [field.value]: read() }, from: time(from) ?? "", until: time(until) },
            ...{
              weekly: weekly.checked,
              zone: zone() === "local time" ? "UTC" : zone(),
              reason: reason.value.trim(),
            },
          });
          for (const each of [from, until, reason]) each.value = "";
          weekly.checked = false;
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          const where = { from, until, reason }[error.errors[0]?.source?.pointer.split("/")[1]] ?? input;
          write(problem, error.errors.map(({ message }) => `${message}.`).join(" ") || `${error.message}.`);
          where.setAttribute("aria-describedby", problem.id);
          where.focus();
        }
      },
    },
    labelled("Set", field),
    content,
    labelled("from", from),
    labelled("until (empty: until it is cleared)", until),
    h("label", {}, weekly, " each week at this time"),
    labelled("Why", reason),
    h("button", {}, "Plan it"),
    problem,
  );
  const element = h(
    "details",
    { class: "planning" },
    h("summary", {}, `Plan a change (times in ${zone()})`),
    form,
  );
  element.addEventListener("toggle", () => input || fit());
  return { element };
}

function labelled(text, input) {
  input.id = newId("plan");
  return h("span", {}, h("label", { for: input.id }, text), " ", input);
}
