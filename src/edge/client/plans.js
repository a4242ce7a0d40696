// Orders for later: what an operator wants set from a time to a time, once or each week. When its time comes, the room's
// object is told as if its operator did that then, and what has an end ends there by itself.
import { offset, weekLater } from "../zones.js";
import { isTime, noFields, wrong } from "./fields.js";

export const MOST_PLANS = 100;
const DAY = 86_400_000;
const WEEK = 7 * DAY;
const YEAR = 366 * DAY;
const FIELDS = ["set", "from", "until", "weekly", "zone", "reason"];
const isText = (value) => typeof value === "string";

/**
 * @typedef {{ v: 1, id: string, room: string, set: Record<string, any>, from: number, until: number | null, weekly: boolean,
 *   zone: string, reason: string, by: string, created: number }} Plan `from`, `until`: the next time, in milliseconds since the
 *   epoch; `until` null: it holds until somebody clears it; `zone`: in whose time of day it comes back each week
 */

/** What is wrong with what was sent for a plan, but for the values to set and the reason: the room's object judges those. */
export function judgePlan(sent, now) {
  const problems = noFields(sent, FIELDS);
  const { set, from, until = null, weekly = false, zone = "UTC", reason = "" } = sent;
  const time = (value) => (isTime(value) ? Date.parse(value) : Number.NaN);
  const [begin, end] = [time(from), until === null ? Number.POSITIVE_INFINITY : time(until)];
  if (typeof set !== "object" || set === null || Array.isArray(set) || Object.keys(set).length === 0)
    problems.push(wrong("set", 'must name fields and their values. Fix: {"queue_all":true}'));
  if (!(begin > now && begin <= now + YEAR))
    problems.push(wrong("from", "must be a time to come within a year. Fix: 2027-11-26T09:00:00+01:00"));
  else if (!(end > begin) || (until !== null && end > begin + YEAR))
    problems.push(
      wrong(
        "until",
        "must be a time after from, within a year of it. Fix: correct it, or null: it does not end",
      ),
    );
  if (typeof weekly !== "boolean") problems.push(wrong("weekly", "must be true or false"));
  else if (weekly && !(end - begin <= WEEK))
    problems.push(
      wrong("until", "must be within a week of from, as it comes back each week. Fix: say when it ends"),
    );
  if (!isText(zone) || offset(zone, now) === undefined)
    problems.push(wrong("zone", "must be a time zone. Fix: a name such as Europe/Berlin"));
  if (!isText(reason)) problems.push(wrong("reason", "must be text"));
  return problems;
}

/** @returns {Omit<Plan, "id" | "room" | "by" | "created">} of what was sent, when nothing is wrong with it */
export const planOf = ({ set, from, until = null, weekly = false, zone = "UTC", reason = "" }) => ({
  ...{ v: 1, set, from: Date.parse(from), until: until === null ? null : Date.parse(until) },
  ...{ weekly, zone, reason },
});

/** As it is answered. @param {Plan} plan */
export const shownPlan = ({ id, set, from, until, weekly, zone, reason, by, created }) => ({
  ...{
    id,
    set,
    from: new Date(from).toISOString(),
    until: until === null ? null : new Date(until).toISOString(),
  },
  ...{ weekly, zone, reason, created_on: new Date(created).toISOString(), created_by: by },
});

/** What the room's object is told when its time has come. @param {Plan} plan */
export const orderOf = ({ set, until, reason }) => ({ set, reason, ...(until !== null && { until }) });

/**
 * A plan's next time that is not over; undefined: there is none.
 * @param {Plan} plan
 * @param {number} now
 * @returns {Plan | undefined}
 */
export function nextOf(plan, now) {
  let { from, until } = plan;
  if (!plan.weekly) return undefined;
  while (from <= now) [from, until] = [weekLater(from, plan.zone), weekLater(until, plan.zone)];
  return { ...plan, from, until };
}
