// What the user gets to read: the progress line, the table, the verdict.
import Table from "cli-table3";

/** @typedef {ReturnType<import("./measure.mjs").Measure["figures"]>} Figures */

/**
 * @param {ReturnType<import("./measure.mjs").Measure["live"]>} live
 * @param {{ seconds: number, visitors: number, limitActive: number }} run
 */
export function progressLine(live, { seconds, visitors, limitActive }) {
  const limit = limitActive === Infinity ? "" : ` (limit ${limitActive})`;
  return (
    `${seconds.toFixed(0).padStart(4)} s   arrived ${live.arrived}/${visitors}   waiting ${live.waiting}   ` +
    `inside ${live.inside}   done ${live.done}   most active ${live.largestActive}${limit}`
  );
}

/** What was broken, each in one sentence; empty when nothing was. @param {Figures} figures */
export function whatBroke({ active, newPerMinute, order, thrownOut, visitors }) {
  const broken = [];
  if (active.broken) {
    broken.push(
      `Limit of active users broken: ${active.largest} at ${active.at}, allowed are ${active.limit}.`,
    );
  }
  if (newPerMinute.broken) {
    const minute = newPerMinute.minutes.find(({ users }) => users === newPerMinute.largest)?.minute ?? "";
    broken.push(
      `Limit of new users per minute broken: ${newPerMinute.largest} in the minute of ${minute.slice(0, 16)}Z, ` +
        `allowed are ${newPerMinute.limit}.`,
    );
  }
  if (order.broken) {
    broken.push(
      `Order broken: ${order.passedOver} of ${visitors.queued} queued visitors (${percent(order.percent)}) were ` +
        `passed over by visitors of a younger bucket, allowed are ${percent(order.maxPercent)}.`,
    );
  }
  if (thrownOut > 0) {
    broken.push(
      `Active users thrown out: ${thrownOut} times a waiting page went to a visitor who was active.`,
    );
  }
  return broken;
}

/** What the reader should know before believing the figures. @param {Figures} figures */
export function hints({ active, newPerMinute, limits, visitors, withoutTicket, requests }) {
  const hints = [];
  if (limits.changed) {
    hints.push(
      "The room's limits changed meanwhile: each moment was judged by those that were in force then.",
    );
  }
  if (limits.others) hints.push("The room's limits are not those you gave: it was judged by its own.");
  if (!limits.saidByRoom && (active.limit !== null || newPerMinute.limit !== null)) {
    hints.push(
      "The limits are those you gave. Whether others were in force meanwhile is not known: the room was not asked, or did " +
        "not say. Set ANTEROOM_TOKEN to an operator's token.",
    );
  }
  if (active.limit === null)
    hints.push("Active users were not checked: give the room's limit with --limit-active.");
  if (newPerMinute.limit === null) {
    hints.push("New users per minute were not checked: give the room's limit with --limit-new.");
  }
  if (visitors.queued === 0) {
    hints.push("Nobody had to wait, so nothing is known about the order: send more visitors, or faster.");
  }
  if (withoutTicket > 0) {
    hints.push(
      `${withoutTicket} times a visitor came back without the room's cookie and lost its place. A cookie with Secure ` +
        "does not return over http:// to a host that is not local.",
    );
  }
  if (requests.failed > 0) {
    const reasons = Object.entries(requests.failures).slice(0, 5);
    hints.push(`Requests failed: ${reasons.map(([reason, times]) => `${times} x ${reason}`).join(", ")}.`);
  }
  return hints;
}

/** @param {Figures} figures */
export function table({ visitors, waitSeconds, active, newPerMinute, order, thrownOut, requests }) {
  const rows = new Table({
    head: ["", "seen", "allowed", ""],
    colAligns: ["left", "right", "right", "left"],
    style: { head: [], border: [], compact: true },
  });
  const { min, median, p90, max, count } = waitSeconds;
  const verdict = (/** @type {boolean} */ broken, /** @type {unknown} */ limit) =>
    limit === null ? "not checked" : broken ? "BROKEN" : "kept";
  rows.push(
    ["visitors", visitors.arrived, "", ""],
    ["  admitted at once", visitors.admittedAtOnce, "", ""],
    ["  queued", visitors.queued, "", ""],
    ["  still waiting", visitors.stillWaiting, "", ""],
    ["  abandoned the queue", visitors.abandoned, "", ""],
    ["  gave up after errors", visitors.gaveUp, "", ""],
    [`waits of the ${count} let in`, "", "", ""],
    ["  shortest", seconds(min), "", ""],
    ["  median", seconds(median), "", ""],
    ["  90 % up to", seconds(p90), "", ""],
    ["  longest", seconds(max), "", ""],
    ["most active users", active.largest, active.limit ?? "", verdict(active.broken, active.limit)],
    [
      "most new users per minute",
      newPerMinute.largest,
      newPerMinute.limit ?? "",
      verdict(newPerMinute.broken, newPerMinute.limit),
    ],
    [
      "passed over by a younger bucket",
      `${order.passedOver} (${percent(order.percent)})`,
      percent(order.maxPercent),
      verdict(order.broken, visitors.queued === 0 ? null : order.maxPercent),
    ],
    ["active users thrown out", thrownOut, 0, verdict(thrownOut > 0, 0)],
    ["requests sent", requests.sent, "", ""],
    ["  failed", requests.failed, "", ""],
    ["  median latency", milliseconds(requests.latencyMs.p50), "", ""],
    ["  95 % up to", milliseconds(requests.latencyMs.p95), "", ""],
  );
  return rows.toString();
}

/** @param {number} value */
function percent(value) {
  return `${Number(value.toFixed(2))} %`;
}

/** @param {number | null} value */
function seconds(value) {
  return value === null ? "-" : `${value.toFixed(1)} s`;
}

/** @param {number | null} value */
function milliseconds(value) {
  return value === null ? "-" : `${value.toFixed(1)} ms`;
}
