// What happened: events, the origin's health, steering, queueing, rehearsals. A letter and a line on the time line, a
// sentence in the list below it.
import { change, MINUTE } from "./words.js";

/** The first letter of a kind of notification, and what it stands for. */
const KINDS = {
  queueing: ["Q", "Queueing"],
  wait: ["W", "Wait"],
  event: ["E", "Event"],
  origin: ["O", "Origin"],
  limits: ["L", "Limits"],
  steered: ["S", "Steering"],
  fallback: ["F", "Fallback"],
  limit: ["!", "Limit exceeded"],
  rehearsal: ["R", "Rehearsal"],
};
/** What is told of a change is told so near to it. */
const SAME_MS = 5_000;
const LATER = { upcoming: "is to start", prequeueing: "is to start" };

const kindOf = (kind) => (kind === "limit_exceeded" ? "limit" : kind.split("_", 1)[0]);

/**
 * @typedef {{ key: string, at: number, kind: string, letter: string, name: string, text: string }} Mark
 * @param {object} found
 * @param {object[]} found.news @param {object[]} found.audit @param {object[]} found.events of the room
 * @param {object[]} found.rows recorded
 * @param {number} found.from @param {number} found.to
 * @returns {Mark[]} oldest first
 */
export function marksOf({ news, audit, events, rows, from, to }) {
  const marks = [];
  const add = (key, at, kind, text) => {
    const [letter, name] = KINDS[kind] ?? ["•", kind];
    if (at >= from && at <= to) marks.push({ key, at, kind, letter, name, text });
  };
  const logged = Math.min(...audit.map((entry) => entry.at)) - SAME_MS;
  for (const entry of audit) add(`audit-${entry.id}`, entry.at, "steered", change(entry));
  for (const { id, at, kind, text } of news) {
    // The audit log says it better, as far as it is loaded.
    if (kind === "steered" && at >= logged) continue;
    add(`news-${id}`, at, kindOf(kind), text);
  }
  const isTold = (kind) => news.some((one) => one.kind === kind);
  for (const event of events) {
    const starts = LATER[event.phase] ?? "started";
    if (!isTold("event_started"))
      add(`start-${event.name}`, event.start, "event", `Event ${event.name} ${starts}`);
    if (!isTold("event_ended"))
      add(
        `end-${event.name}`,
        event.end,
        "event",
        `Event ${event.name} ${event.phase === "over" ? "ended" : "is to end"}`,
      );
  }
  for (const { at, until } of rehearsals(rows)) {
    add(
      `rehearsal-${at}`,
      at,
      "rehearsal",
      `A rehearsal's visitors came for ${Math.round((until - at) / MINUTE)} min`,
    );
  }
  return marks.sort((one, other) => one.at - other.at);
}

/** From when to when visitors of a rehearsal came. @returns {{ at: number, until: number }[]} */
export function rehearsals(rows) {
  const found = [];
  for (const { at, step, rehearsal_new_users: rehearsed } of rows) {
    if (!rehearsed) continue;
    const last = found.at(-1);
    if (last && last.until === at) last.until = at + step;
    else found.push({ at, until: at + step });
  }
  return found;
}
