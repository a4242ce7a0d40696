// The audit log: who changed what, and when.
import { get } from "./api.js";
import { h, place, show } from "./dom.js";
import { section, wide } from "./tables.js";
import { moment, title, value } from "./words.js";

const PAGE = 25;
const KINDS = { set: "set", clear: "back to deployed", keep: "kept", event: "event", end: "ended by itself" };

const isText = (field) => (field === "message" || field.startsWith("events.") ? "text" : "");

/** @param {string} room its name */
export function createLog(room) {
  let entries = [];
  let isMore = false;
  const body = h("tbody");
  const table = h(
    "table",
    { class: "log" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["When", "Who", "What", "Before", "After", "Deployed then", "Why"].map((title) =>
          h("th", { scope: "col" }, title),
        ),
      ),
    ),
    body,
  );
  const empty = h("p", { class: "quiet" }, "Nothing has been steered in this room.");
  const trouble = h("p", { class: "problem", hidden: true });
  const scroller = wide("Entries of the audit log", table);
  const older = h("button", { class: "more", onclick: () => load(true) }, "Older entries");
  const element = section("log", "Audit log", trouble, empty, scroller, older);

  async function load(isOlder = false) {
    try {
      const before = isOlder ? entries.at(-1)?.id : undefined;
      const answer = await get("audit", { room, limit: PAGE, before });
      isMore = answer.entries.length === PAGE;
      const known = new Set(answer.entries.map(({ id }) => id));
      entries = isOlder
        ? [...entries, ...answer.entries]
        : [...answer.entries, ...entries.filter(({ id }) => !known.has(id))];
      show(trouble, false);
    } catch ({ message }) {
      show(trouble, true);
      place(trouble, [
        `The audit log could not be loaded: ${message}. `,
        h("button", { onclick: () => load() }, "Try again"),
      ]);
    }
    render();
    return entries;
  }

  function render() {
    show(empty, entries.length === 0 && trouble.hidden);
    show(scroller, entries.length > 0);
    show(older, isMore);
    place(
      body,
      entries.map(({ at, by, kind, field, before, after, deployed, until, reason }) =>
        h(
          "tr",
          {},
          h("td", { class: "when" }, moment(at)),
          h("td", {}, by),
          h(
            "th",
            { scope: "row", class: "what" },
            title(field),
            h("span", { class: "note" }, ` ${KINDS[kind] ?? kind}`),
          ),
          h("td", { class: isText(field) }, value(field, before)),
          h(
            "td",
            { class: isText(field) },
            `${value(field, after)}${kind === "set" && until ? ` until ${moment(until)}` : ""}`,
          ),
          h("td", {}, value(field, deployed)),
          h("td", { class: "text" }, reason ?? ""),
        ),
      ),
    );
  }
  render();
  return { element, load };
}
