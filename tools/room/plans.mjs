// Changes that are planned for later: plans, lists and drops them.
import { Refused } from "./api.mjs";
import { table } from "./print.mjs";

const ROOMS = "client/v4/zones/main/waiting_rooms";
/** As many as one answer has. */
const ALL = { per_page: 1_000 };
const time = (text) => (text ? new Date(Number(text)).toISOString() : null);

/**
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {import("./options.mjs").Call} call
 * @param {(answer: unknown, words: (answer: any) => string) => void} show
 */
export async function actOnPlans(api, call, show) {
  const { result: rooms } = await api.json(ROOMS, ALL);
  const wanted = call.room.toLowerCase();
  const room = rooms.find(({ id, name }) => id === wanted || name.toLowerCase() === wanted);
  if (!room) throw new Refused(`There is no room ${call.room}.`);
  const plans = `${ROOMS}/${room.id}/plans`;
  if (call.name === "plan") {
    const { from, until, weekly, zone, reason = "" } = call;
    const body = { set: call["field=value"], from: time(from), until: time(until), weekly, zone, reason };
    return show(await api.json(plans, {}, body), ({ result }) => plansTable([result]));
  }
  if (call.name === "plans") return show(await api.json(plans, ALL), ({ result }) => plansTable(result));
  show(await api.json(`${plans}/${call.plan}`, {}, undefined, "DELETE"), () => "It is no longer planned.");
}

const plansTable = (plans) =>
  table(
    ["id", "what", "from (UTC)", "until (UTC)", "how often", "by", "why"],
    plans.map(({ id, set, from, until, weekly, zone, created_by, reason }) => [
      ...[
        id,
        Object.entries(set)
          .map(([field, value]) => `${field}=${value}`)
          .join(" "),
      ],
      ...[from, until ?? "it is cleared", weekly ? `each week (${zone})` : "once", created_by, reason],
    ]),
  );
