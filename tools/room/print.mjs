// What the user gets to read.
import Table from "cli-table3";

const STATUS = {
  not_queueing: "open",
  queueing: "queueing",
  event_prequeueing: "before an event",
  suspended: "suspended",
};

/** @param {any} room */
const statusOf = ({ status, observing }) =>
  `${STATUS[status] ?? status}${observing ? " (only observes)" : ""}`;

/** @param {string[]} head @param {unknown[][]} rows */
export function table(head, rows) {
  const all = new Table({ head, style: { head: [], border: [], compact: true } });
  all.push(...rows.map((row) => row.map((cell) => `${cell ?? "–"}`)));
  return all.toString();
}

/** @param {number | null | undefined} ms */
function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const seconds = Math.round(ms / 1000);
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

const time = (/** @type {number | null | undefined} */ at) =>
  at === null || at === undefined ? "–" : new Date(at).toISOString().slice(0, 19).replace("T", " ");

const of = (/** @type {number} */ part, /** @type {number} */ all) => `${part} of ${all}`;

/** @param {{ rooms: any[], problems: string[] }} status */
export function statusTable({ rooms, problems }) {
  const rows = rooms.map((room) =>
    room.error
      ? [room.label ?? room.name, "does not answer", "–", "–", "–", "–", "–", "–"]
      : [
          room.label ?? room.name,
          statusOf(room),
          of(room.estimated_total_active_users, room.limits.total_active_users),
          of(room.new_users_last_minute, room.limits.new_users_per_minute),
          room.estimated_queued_users,
          longestWait(room),
          room.steering.overrides.length + room.steering.events.length,
          duration(room.age_ms),
        ],
  );
  const head = [
    "room",
    "status",
    "active",
    "new in the last minute",
    "waiting",
    "longest wait",
    "overrides",
    "age",
  ];
  const errors = rooms.filter(({ error }) => error).map(({ name, error }) => `${name}: ${error}`);
  return [table(head, rows), ...errors, ...problems].join("\n");
}

const longestWait = ({ buckets }) => {
  const waits = buckets.map(({ wait_seconds }) => wait_seconds).filter((seconds) => seconds !== null);
  return buckets.length === 0 ? "none" : waits.length === 0 ? "unknown" : duration(1000 * Math.max(...waits));
};

/** All of one room. @param {any} room @param {number} now */
export function roomText(room, now) {
  if (room.error) return `${room.label ?? room.name} does not answer: ${room.error}`;
  const { origin, buckets, colos, events } = room;
  const where = `${room.host ?? "every host"}${room.path}`;
  const parts = [
    `${room.label ?? room.name} (${where}) at ${time(now)} UTC, counted up to ${duration(room.age_ms)} ago: ${statusOf(room)}`,
    table(
      ["active", "slots", "new in the last minute", "waiting", "longest wait", "workers"],
      [
        [
          of(room.estimated_total_active_users, room.limits.total_active_users),
          room.slots,
          of(room.new_users_last_minute, room.limits.new_users_per_minute),
          room.estimated_queued_users,
          longestWait(room),
          room.workers,
        ],
      ],
    ),
  ];
  if (buckets.length > 0) {
    const rows = buckets.map(({ since, drawn, users, wait_seconds }) => [
      // Whom a lottery has put there may have come at any time of the prequeue.
      drawn ? `${time(since)}, by lot` : time(since),
      users,
      wait_seconds === null ? "unknown" : duration(1000 * wait_seconds),
    ]);
    parts.push(table(["in line from (UTC)", "users", "wait"], rows));
  }
  if (colos.length > 0) {
    const rows = colos.map((colo) => [
      colo.colo,
      colo.active,
      colo.waiting,
      colo.new_users_last_minute,
      colo.workers,
      colo.cut_off ? `cut off, ${duration(colo.age_ms)} ago` : `${duration(colo.age_ms)} ago`,
    ]);
    parts.push(
      table(["data center", "active", "waiting", "new in the last minute", "workers", "reported"], rows),
    );
  }
  if (events.length > 0) {
    const rows = events.map((event) => [event.name, event.phase, time(event.start), time(event.end)]);
    parts.push(table(["event", "phase", "start (UTC)", "end (UTC)"], rows));
  }
  if (origin) {
    const health = origin.unhealthy_check
      ? `unhealthy by ${origin.unhealthy_check}`
      : "not known to be unhealthy";
    const first =
      origin.first_byte_p50_ms === null ? "" : `, first byte ${origin.first_byte_p50_ms} ms (half of them)`;
    parts.push(
      `Origin: ${health}; in the last minute ${origin.answered} answers, ${origin.failed} of them errors, ` +
        `${origin.timed_out} too late, ${origin.refused} not sent${first}.`,
    );
  }
  return parts.join("\n");
}

/** A field's value. @param {unknown} value */
export const shown = (value) => (value === "" ? '""' : `${value}`);

/** What is steered in a room. @param {any} steering */
export function steeringTable({ room, version, fields, events, colos, colos_in_force }) {
  const rows = Object.entries(fields).map(([field, { deployed, value, override }]) => [
    field,
    shown(value),
    shown(deployed),
    override ? `${override.by}, ${time(override.at)}` : "",
    override?.until ? time(override.until) : "",
    override?.reason ?? "",
    override?.deploy_changed ? `was ${shown(override.deployed_then)}: keep or clear it` : "",
  ]);
  const steered = events.filter((event) => event.steered);
  const lines = steered.map(
    (event) =>
      `Event ${event.name}: ${time(event.start)} to ${time(event.end)} (deployed: ${time(event.deployed_start)} to ` +
      `${time(event.deployed_end)}), by ${event.by}, ${time(event.at)}${event.reason ? `: ${event.reason}` : ""}`,
  );
  return [
    table(["field", "in force", "deployed", "by (UTC)", "until (UTC)", "why", "deployed since"], rows),
    ...lines,
    `${room}: version ${version}, in force in ${of(colos_in_force, colos)} awake data centers`,
  ].join("\n");
}

/** @param {{ entries: any[] }} audit */
export function auditTable({ entries }) {
  if (entries.length === 0) return "Nothing has been changed.";
  const rows = entries.map(({ id, at, by, kind, field, before, after, until, reason }) => [
    id,
    time(at),
    by,
    kind,
    field,
    JSON.stringify(before),
    JSON.stringify(after),
    until ? time(until) : "",
    reason ?? "",
  ]);
  return table(["id", "at (UTC)", "by", "what", "field", "before", "after", "until (UTC)", "why"], rows);
}

/** @param {{ fields: string[], rows: (number | null)[][] }} history */
export function historyTable({ fields, rows }) {
  const known = rows.filter(([, ...values]) => values.some((value) => value !== null));
  if (known.length === 0)
    return "Nothing is recorded of this time. A minute in which somebody was there is recorded a minute or two after its end.";
  const number = (/** @type {number | null} */ value) => (value === null ? "–" : Math.round(value * 10) / 10);
  const cells = known.map(([at, ...values]) => [time(at), ...values.map(number)]);
  return table(["time (UTC)", ...fields], cells);
}

/** A room in one line. @param {any} room @param {number} now */
export function line(room, now) {
  if (room.error) return `${time(now)}  ${room.label ?? room.name} does not answer: ${room.error}`;
  const { limits } = room;
  return (
    `${time(now)}  ${statusOf(room).padEnd(15)}  ` +
    `active ${of(room.estimated_total_active_users, limits.total_active_users)}   slots ${room.slots}   ` +
    `waiting ${room.estimated_queued_users} (${longestWait(room)})   ` +
    `new ${room.new_users_this_minute}, last minute ${of(room.new_users_last_minute, limits.new_users_per_minute)}`
  );
}

/** @param {{ at: number, text: string }} news */
export const newsLine = ({ at, text }) => `${time(at)}  ${text}`;
