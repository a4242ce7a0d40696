// What the charts show: recorded minutes or hours, and after them the moments since the page was opened.
import { HOUR, MINUTE } from "./words.js";

/** The fields of the history that the charts and their table show. */
export const FIELDS = [
  "active_users",
  "active_users_max",
  "waiting_users",
  "waiting_users_max",
  "new_users",
  "total_active_users",
  "new_users_per_minute",
  "slots",
  "wait_seconds_p50",
  "wait_seconds_p90",
  "rehearsal_new_users",
  "observed_joins",
  "newcomers",
];
/** Two hours of them. */
const MOST_MOMENTS = 3_600;
/** A line is broken where nothing was reported for this time. */
const GAP_MS = 12_000;

/** A moment of a room, as far as the charts show it. @param {object} room @param {number} at */
export function momentOf(room, at) {
  return {
    at,
    active: room.estimated_total_active_users,
    waiting: room.estimated_queued_users,
    slots: room.slots,
    limit: room.limits.total_active_users,
    rate: room.limits.new_users_per_minute,
    newNow: room.new_users_this_minute,
    newBefore: room.new_users_last_minute,
  };
}

/** Adds a moment at the end; the oldest are forgotten. */
export function addMoment(moments, moment) {
  // Told twice, or by a clock that was set back.
  if (moments.length > 0 && moment.at <= moments.at(-1).at) return;
  moments.push(moment);
  if (moments.length > MOST_MOMENTS) moments.splice(0, moments.length - MOST_MOMENTS);
}

/**
 * Recorded rows by their fields' names.
 * @param {{ fields: string[], rows: (number | null)[][], resolution: string }} history
 */
export function recorded(history) {
  const step = history.resolution === "hour" ? HOUR : MINUTE;
  return history.rows.map(([at, ...values]) => ({
    at,
    step,
    ...Object.fromEntries(history.fields.map((field, index) => [field, values[index]])),
  }));
}

const line = (at, point) => [
  at / 1000,
  point.active,
  point.limit,
  point.slots,
  point.waiting,
  point.peak ?? null,
];

/**
 * Two sets of columns for uPlot: `levels` (time, active users, their limit, slots, waiting users, most active users) and
 * `rates` (start of the minute, new users in it, their limit). Times are in seconds.
 * @param {ReturnType<typeof recorded>} rows
 * @param {ReturnType<typeof momentOf>[]} moments
 * @param {number} settledUntil what is recorded of later minutes is not complete
 */
export function columns(rows, moments, settledUntil) {
  return { levels: levels(rows, moments), rates: rates(rows, moments, settledUntil) };
}

function levels(rows, moments) {
  const points = [];
  let next = 0;
  const takeMoments = (until) => {
    for (; next < moments.length && moments[next].at < until; next += 1) {
      const one = moments[next];
      if (next > 0 && one.at - moments[next - 1].at > GAP_MS && points.length > 0) {
        const last = points.at(-1);
        // Nothing is recorded of the time between, as far as is known here: no line goes through it.
        if (last[0] === moments[next - 1].at / 1000) points.push(line(one.at - 1, NOTHING));
      }
      points.push(line(one.at, one));
    }
  };
  for (const row of rows) {
    const middle = row.at + row.step / 2;
    takeMoments(row.at);
    // Moments say more of a minute than its sum does.
    const isWatched = next < moments.length && moments[next].at < row.at + row.step;
    if (isWatched && row.step === MINUTE) continue;
    const hourly = row.step === HOUR;
    takeMoments(middle);
    points.push(
      line(middle, {
        active: row.active_users,
        limit: row.total_active_users,
        slots: row.slots,
        waiting: row.waiting_users,
        peak: hourly ? row.active_users_max : null,
      }),
    );
  }
  takeMoments(Number.POSITIVE_INFINITY);
  points.sort(([one], [other]) => one - other);
  return transposed(points, 6);
}

const NOTHING = { active: null, limit: null, slots: null, waiting: null };

function rates(rows, moments, settledUntil) {
  const byTime = new Map();
  for (const row of rows) {
    // Per minute, whatever the step: the limit is too.
    const entered = row.new_users === null ? null : row.new_users / (row.step / MINUTE);
    byTime.set(row.at, [row.at / 1000, entered, row.new_users_per_minute]);
  }
  const isByMinute = rows.every(({ step }) => step === MINUTE);
  const latest = moments.at(-1);
  if (latest && isByMinute) {
    const minute = Math.floor(latest.at / MINUTE) * MINUTE;
    byTime.set(minute, [minute / 1000, latest.newNow, latest.rate]);
    const before = minute - MINUTE;
    if (before >= settledUntil || !byTime.has(before))
      byTime.set(before, [before / 1000, latest.newBefore, latest.rate]);
  }
  return transposed(
    [...byTime.values()].sort(([one], [other]) => one - other),
    3,
  );
}

function transposed(points, width) {
  return Array.from({ length: width }, (_, column) => points.map((point) => point[column] ?? null));
}

/** What the charts say, in a sentence or two. @param {ReturnType<typeof columns>} data @param {(n: number) => string} number */
export function summary({ levels, rates }, number) {
  const known = (column) => column.filter((value) => value !== null);
  const active = known(levels[1]);
  if (active.length === 0) return "Nothing is recorded of this time.";
  const waiting = known(levels[4]);
  const limit = known(levels[2]);
  const entered = known(rates[1]);
  const rate = known(rates[2]);
  const range = (values) => {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return least === most ? number(most) : `${number(least)} to ${number(most)}`;
  };
  const sentences = [
    // By the hour, the line is a mean: the most were more.
    `Active users: ${range([...active, ...known(levels[5])])}, limit ${range(limit)}.`,
    Math.max(...waiting, 0) > 0
      ? `Up to ${number(Math.max(...waiting))} waited, at the end ${number(waiting.at(-1))}.`
      : "Nobody waited.",
    entered.length > 0
      ? `New users per minute: up to ${number(Math.max(...entered))}, limit ${range(rate)}.`
      : "",
  ];
  return sentences.filter(Boolean).join(" ");
}

/**
 * Of a room that has only observed: how many would have waited, and the limits with which nobody would have. Nothing where it
 * did not observe, or only hours are known.
 * @param {ReturnType<typeof recorded>} rows @param {(count: number) => string} number
 */
export function observed(rows, number) {
  const minutes = rows.filter(({ step, newcomers }) => step === MINUTE && newcomers !== null);
  const waited = minutes.reduce((sum, row) => sum + row.observed_joins, 0);
  if (waited === 0) return "";
  const most = (count) => number(Math.max(...minutes.map(count)));
  const there = most((row) => row.active_users_max + row.waiting_users_max);
  const came = most((row) => row.newcomers);
  return `The room only observed: ${number(waited)} would have waited. With about ${there} active users and ${came} new users per minute nobody would have.`;
}
