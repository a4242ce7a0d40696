// What a change changes, as a table: before it is saved, and where somebody else was faster.
import { h } from "../dom.js";
import { wide } from "../tables.js";
import { isSame, valueAt } from "./fields.js";

/** A longer text is shown by the lines that differ. */
const LONG = 120;

/**
 * What differs between two entries, field by field.
 * @param {import("./fields.js").Field[]} fields
 * @returns {{ field: import("./fields.js").Field, before: any, after: any }[]}
 */
export const differencesOf = (fields, before, after) =>
  fields
    .map((field) => ({ field, before: valueAt(before, field), after: valueAt(after, field) }))
    .filter((one) => !isSame(one.before, one.after));

/** @param {ReturnType<typeof differencesOf>} differences @param {[string, string]} heads what the two columns are */
export function differenceTable(differences, heads) {
  const rows = differences.map(({ field, before, after }) => {
    const [old, next] = [before, after].map((value) => wordsOf(value, field));
    const isLong = [old, next].some((text) => text.length > LONG || text.includes("\n"));
    const shown = isLong ? changedLines(old, next) : [old, next];
    const cell = (text, name) => h("td", { class: name }, h(isLong ? "pre" : "span", {}, text));
    return h("tr", {}, h("th", { scope: "row" }, field.label), cell(shown[0], "old"), cell(shown[1], "new"));
  });
  const head = h("tr", {}, ...["Field", ...heads].map((name) => h("th", { scope: "col" }, name)));
  const table = h("table", { class: "difference" }, h("thead", {}, head), h("tbody", {}, ...rows));
  return wide("What changes", table);
}

function wordsOf(value, { inherits, normal }) {
  if (value === undefined)
    return inherits
      ? "as in the room"
      : normal === undefined
        ? "not set"
        : `${wordsOf(normal, {})}, as usual`;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (value === "") return "empty";
  if (Array.isArray(value))
    return (
      value.map((one) => (one?.host ? `${one.host}${one.path ?? "/"}` : wordsOf(one, {}))).join(", ") ||
      "none"
    );
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The lines between those that are the same at the beginning and at the end. */
function changedLines(old, next) {
  const [one, other] = [old, next].map((text) => text.split("\n"));
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const lines = (all) => {
    const some = all.slice(start, all.length - end);
    return some.length > 0 ? `line ${start + 1}:\n${some.join("\n")}` : "–";
  };
  return [lines(one), lines(other)];
}
