// What a change of a room or an event does to those who wait and to those who are in, in words: who tries it by `dry_run=true`
// reads them. What the room's object says of them is told by whoever calls this.
import { CODE, OWN, pointerTo, problem, ROOM, withoutNulls } from "./fields.js";

/**
 * A room or an event before and after it, as the API shows both; null: there is none. `room`: whose it is, as it is before;
 * `events`: all of that room, likewise; `now`: in milliseconds since the epoch.
 * @typedef {{ before: object | null, after: object | null, isEvent: boolean, room: object, events: object[], now: number }} Change
 */

/** What holds where nothing was sent, of the fields of Anteroom's own that count here. */
const OWN_DEFAULTS = {
  mode: "enforce",
  max_session_duration: 0,
  bind_ticket: "none",
  place_kept_seconds: 300,
};
const OUT = "is new with the next request";

/**
 * What another value of a field does. `waits`, `isIn`: how many; undefined: nobody knows.
 * @type {Record<string, (was: any, is: any, told: { of: (name: string) => any, waits?: number, isIn?: number }) =>
 *   string | false | undefined>}
 */
const SAYS = {
  suspended: (_, is) =>
    is
      ? "all of them get the origin, like everybody who comes"
      : "who came while the room was suspended is new to it, and waits where it is full",
  queue_all: (_, is) =>
    is
      ? "nobody new enters; those who are in stay in"
      : "those who wait enter as soon as the limits allow it",
  total_active_users: (was, is, { isIn = Number.POSITIVE_INFINITY }) =>
    is < was &&
    isIn > is &&
    `all who are in stay in, and nobody new enters until fewer than ${grouped(is)} are in`,
  new_users_per_minute: (was, is, { waits = 0 }) =>
    is < was &&
    waits > is &&
    `with ${grouped(is)} new users a minute the last of those who wait enters in ${grouped(Math.ceil(waits / is))} minutes at the soonest`,
  session_duration: (was, is, { of }) =>
    is < was &&
    `who ${of("disable_session_renewal") ? "entered" : "was last seen"} more than ${minutes(is)} ago ${OUT}`,
  disable_session_renewal: (_, is, { of }) =>
    is && `who entered more than ${minutes(of("session_duration"))} ago ${OUT}, however busy`,
  max_session_duration: (was, is) =>
    is !== 0 && (was === 0 || is < was) && `who entered more than ${minutes(is)} ago ${OUT}`,
  queueing_method: (was, is, { of }) =>
    ({
      reject: `nobody enters and nobody waits; a place that somebody has is kept for ${of("place_kept_seconds")} s`,
      passthrough: "all who wait enter, whatever the limits",
      random: was !== "passthrough" && "it counts no more who came first: those who wait are drawn by lot",
      fifo: was === "random" && "those who wait stand in the order in which they came",
    })[is],
  mode: (_, is) =>
    is === "observe" ? "all who wait pass" : "who was only observed may have to wait from now on",
  cookie_suffix: () => "all of them are new, as the cookie has another name",
  bind_ticket: () => "all of them are new, as their tickets are bound to something else",
};

const grouped = (number) => number.toLocaleString("en");
const minutes = (number) => (number === 1 ? "a minute" : `${grouped(number)} minutes`);
const lower = (value) => (typeof value === "string" ? value.toLowerCase() : value);

/** A field's value; of a range, its upper end. */
function valueIn(shown, name) {
  const own = shown[OWN]?.[name];
  if (typeof own?.max === "number") return own.max;
  return lower(shown[name] ?? own ?? ROOM[name] ?? OWN_DEFAULTS[name]);
}

/** An event with what it has from its room. */
function inRoom(event, room) {
  const values = withoutNulls(event);
  const inherited = Object.entries(room[OWN] ?? {}).filter(([name]) => !Object.hasOwn(values, name));
  return { ...room, ...values, [OWN]: { ...Object.fromEntries(inherited), ...event[OWN] } };
}

const routesOf = ({ host, path, additional_routes: more }) =>
  [{ host, path }, ...(more ?? [])].map(({ host, path }) => ({
    host: lower(host),
    path: path ?? ROOM.path,
    at: `${lower(host)}${path ?? ROOM.path}`,
  }));

/** What becomes of those at places that a room leaves. */
function placesLeft(before, after) {
  const [left, all] = [routesOf(before), routesOf(after)];
  const [main] = left;
  const [to] = all;
  return left
    .filter(({ at }) => !all.some((other) => other.at === at))
    .map(({ host, at }) => {
      const field = at !== main.at ? "additional_routes" : host === to.host ? "path" : "host";
      // Only the place that was the room's own leads on, and only on its host.
      const leads = at === main.at && all.some((other) => other.host === host && other.path === to.path);
      return [
        field,
        leads
          ? `who comes to ${at} is led to ${to.path} and keeps the place, until the room moves again`
          : `who comes to ${at} gets the origin, and is new at ${to.at}`,
      ];
    });
}

/** What other values do. @returns {[field: string, text: string][]} */
function valuesChanged(before, after, told) {
  const of = (name) => valueIn(after, name);
  return Object.entries(SAYS)
    .map(([field, says]) => [field, valueIn(before, field), of(field), says])
    .filter(([, was, is]) => was !== is)
    .map(([field, was, is, says]) => [field, told.heldBy(field) ?? says(was, is, { ...told, of })])
    .filter(([, text]) => text);
}

/** Where an event is by its times: `prequeueing`, `active`; undefined: it is not on. */
function phaseOf(event, now) {
  const { prequeue_start_time: gathers, event_start_time: start, event_end_time: end } = event ?? {};
  if (!event || event.suspended || now >= Date.parse(end) || now < Date.parse(gathers ?? start))
    return undefined;
  return now < Date.parse(start) ? "prequeueing" : "active";
}

/** @param {Change} change @param {object} [status] */
function ofEvent({ before, after, room, now }, status, told) {
  const known = status?.events?.find(({ name }) => name === before?.id);
  const pointer = (event) => (event?.suspended ? "suspended" : "event_end_time");
  if (known?.steered)
    return [["", "an operator has said when the event is on: that holds until it is cleared"]];
  const was = status ? status.event_id === before?.id && status.event_phase : phaseOf(before, now);
  const is = phaseOf(after, now);
  const limits = (values) =>
    `${grouped(valueIn(values, "total_active_users"))} users and ` +
    `${grouped(valueIn(values, "new_users_per_minute"))} new ones a minute`;
  if (was && !is)
    return [
      [after ? pointer(after) : "", `the event is on and ends: the room's own limits hold, ${limits(room)}`],
    ];
  if (!is) return [];
  if (is === "prequeueing" && was !== is)
    return [
      [
        "prequeue_start_time",
        `nobody new enters from now on until the event's start, ${after.event_start_time}`,
      ],
    ];
  const then = inRoom(after, room);
  if (was !== is) return [["event_start_time", `the event is on at once: its limits hold, ${limits(then)}`]];
  return valuesChanged(inRoom(before, room), then, told);
}

/** @param {Change} change */
function ofRoom({ before, after }, told) {
  if (!after) {
    const isTold = before[OWN]?.when_deleted === "page";
    return [
      [
        "",
        isTold
          ? "those who wait are told once that the line has ended, with a link that goes in"
          : "those who wait get the origin, like everybody else",
      ],
    ];
  }
  return [...placesLeft(before, after), ...valuesChanged(before, after, told)];
}

/** Who waits and who is in. */
function counted(status) {
  if (!status) return "How many wait and are in is not known, as the room's object does not answer";
  const some = (number, one, more) =>
    number > 0 ? `${grouped(number)} ${number === 1 ? one : more}` : `nobody ${one}`;
  const said = `${some(status.estimated_queued_users, "waits", "wait")} and ${some(status.estimated_total_active_users, "is", "are")} in`;
  return said[0].toUpperCase() + said.slice(1);
}

/**
 * Whether anything is to be said of a change, once it is known how many wait and are in.
 * @param {Change} change
 */
export const matters = (change) =>
  effectsOf(change, undefined).length > 0 ||
  ["total_active_users", "new_users_per_minute"].some(
    (field) =>
      change.after && change.before && valueIn(change.before, field) !== valueIn(change.after, field),
  );

/**
 * What a change does, as messages for the envelope; none where it does nothing to anybody.
 * @param {Change} change
 * @param {object} [status] the room's part of `GET /__anteroom/status`; undefined: its object does not answer
 * @returns {{ code: number, message: string, source?: { pointer: string } }[]}
 */
export function effectsOf(change, status) {
  const on = status?.event_phase === "active" && change.events.find(({ id }) => id === status.event_id);
  const heldBy = (field) => {
    if (status?.steering?.overrides?.some((one) => one.field === field))
      return "an operator has set this: the change holds once that is cleared";
    if (!change.isEvent && on && on[field] !== null && on[field] !== undefined)
      return `the event ${on.name} has its own value: the change holds once it is over`;
  };
  const told = {
    heldBy,
    waits: status?.estimated_queued_users,
    isIn: status?.estimated_total_active_users,
  };
  const texts = change.isEvent ? ofEvent(change, status, told) : ofRoom(change, told);
  const field = (name) => {
    if (!name) return undefined;
    const theirs = change.isEvent ? change.after : ROOM;
    return Object.hasOwn(theirs, name) ? pointerTo(name) : pointerTo(OWN, name);
  };
  return texts.map(([name, text]) => problem(CODE.effect, `${counted(status)}: ${text}`, field(name)));
}
