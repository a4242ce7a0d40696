// Numbers, times and states in words.

const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 1,240; a dash where it is not known. */
export const number = (value) => (Number.isFinite(value) ? whole.format(Math.round(value)) : "–");
/** 48.2K, for axes. */
export const short = (value) => (Math.abs(value) < 10_000 ? whole.format(value) : compact.format(value));
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** 12 s, 4 min, 1 h 20 min, 3 days. */
export function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / SECOND));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.round(hours / 24)} days`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockWithSeconds = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const dated = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** 14:03 */
export const time = (ms) => clock.format(ms);
/** 14:03:22 */
export const exactTime = (ms) => clockWithSeconds.format(ms);
/** 14:03, or 3 Nov, 14:03 where it is not today. */
export const moment = (ms, now = Date.now()) =>
  new Date(ms).toDateString() === new Date(now).toDateString() ? time(ms) : dated.format(ms);
/** 4 min ago, in 12 min */
export function relative(ms, now) {
  const distance = ms - now;
  if (Math.abs(distance) < 2 * SECOND) return "now";
  return distance < 0 ? `${duration(-distance)} ago` : `in ${duration(distance)}`;
}

export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone ?? "local time";

/** The fields that can be steered, in the order in which they are shown. */
export const FIELDS = {
  queue_all: "Queue everybody",
  suspended: "Suspended",
  mode: "Mode",
  enforce_share: "On for so many of the visitors",
  total_active_users: "Active users at once",
  new_users_per_minute: "New users per minute",
  session_duration: "Session, minutes",
  refresh_interval_seconds: "Refresh, seconds",
  message: "Message to those who wait",
};

/** A field's value as it is said. */
export function value(field, content) {
  if (content === null || content === undefined) return "–";
  if (field === "message") return content === "" ? "none" : `“${content}”`;
  if (field === "enforce_share") return `${Math.round(content * 1_000_000) / 10_000} %`;
  if (typeof content === "object") return `${moment(content.start)} to ${moment(content.end)}`;
  if (typeof content === "boolean") return content ? "on" : "off";
  return typeof content === "number" ? number(content) : String(content);
}

/**
 * What is going on in a room, and why.
 * @param {object} room its part of the status @param {number} now by the server's clock
 * @returns {{ tone: "open" | "queueing" | "event" | "shut" | "off" | "bad" | "silent", word: string, sentence: string, why: string }}
 */
export function situation(room, now) {
  if (room.error)
    return {
      tone: "bad",
      word: "No answer",
      sentence: "What goes on in this room is not known",
      why: `${room.error.charAt(0).toUpperCase()}${room.error.slice(1)}. Visitors are still served: without its objects a room follows what its workers remember. Look at the log (wrangler tail).`,
    };
  const waiting = room.estimated_queued_users;
  const active = room.estimated_total_active_users;
  const people = count(waiting, "person waits", "people wait");
  const inside = `${count(active, "active user stays", "active users stay")} in.`;
  const event = room.events?.find(({ phase }) => phase === "prequeueing" || phase === "active");
  if (room.suspended)
    return {
      tone: "off",
      word: "Suspended",
      sentence: "The room is off",
      why: "Everybody goes straight to the origin. Nobody is counted, nobody waits.",
    };
  if (room.observing) {
    const share = Math.round(1000 * (room.enforce_share ?? 0)) / 10;
    const except = share > 0 ? `, but for ${share} % of the visitors, for whom it is on` : "";
    return {
      tone: "off",
      word: "Observes",
      sentence: waiting > 0 ? count(waiting, "person would wait", "people would wait") : "Nobody would wait",
      why: `Everybody passes${except}. All is judged and counted as if the room were on. ${count(active, "user", "users")} would be in.`,
    };
  }
  if (room.status === "event_prequeueing")
    return {
      tone: "event",
      word: "Before an event",
      sentence: `${people} for ${event?.name ?? room.event_id}`,
      why: event?.start
        ? `It starts at ${moment(event.start, now)}, ${relative(event.start, now)}. ${inside}`
        : `Nobody new enters before it starts. ${inside}`,
    };
  if (room.queue_all)
    return {
      tone: "shut",
      word: "Shut",
      sentence: `Nobody new enters, ${people}`,
      why: `Everybody is queued (queue_all). ${inside}`,
    };
  if (room.held)
    return {
      tone: "shut",
      word: "Held",
      sentence: `Nobody new enters, ${people}`,
      why: `The origin is unhealthy${room.origin?.unhealthy_check ? ` (check ${room.origin.unhealthy_check})` : ""}. ${inside}`,
    };
  if (room.status === "queueing")
    return {
      tone: "queueing",
      word: "Queueing",
      sentence: `${people}${room.max_estimated_time_minutes > 0 ? `, up to ${duration(room.max_estimated_time_minutes * MINUTE)}` : ""}`,
      why: whyQueueing(room),
    };
  if (active === 0 && room.new_users_this_minute === 0 && room.new_users_last_minute === 0)
    return {
      tone: "silent",
      word: "Silent",
      sentence: "Nobody is here",
      why: "Nobody has come lately. A silent room costs nothing.",
    };
  return {
    tone: "open",
    word: "Open",
    sentence: "Everybody enters at once",
    why: `${Math.round((100 * active) / Math.max(1, room.limits.total_active_users))} % of the places are taken.`,
  };
}

function whyQueueing(room) {
  const { total_active_users: most, new_users_per_minute: rate } = room.limits;
  if (room.estimated_total_active_users >= 0.98 * most)
    return `All ${number(most)} places are taken: who leaves makes room.`;
  if (Math.max(room.new_users_this_minute, room.new_users_last_minute) >= 0.9 * rate)
    return `${number(rate)} new users a minute may enter: the rate is the limit now.`;
  return `${count(room.slots, "slot is", "slots are")} free.`;
}

/** The event's name in the audit log's field `events.sale`. */
const eventOf = (field) => field.replace(/^events\./, "");
/** What a field is called. */
export const title = (field) =>
  FIELDS[field] ?? (field.startsWith("events.") ? `Event ${eventOf(field)}` : field);

/** An entry of the audit log as a sentence. */
export function change(entry) {
  return `${changed(entry)}${entry.reason ? ` (${entry.reason})` : ""}`;
}

function changed({ by, kind, field, before, after, deployed, until }) {
  const name = title(field);
  if (kind === "end")
    return `${name} at ${value(field, before)}, set by ${by}, has ended: it is ${value(field, after)} again`;
  if (kind === "event") {
    const event = `event ${eventOf(field)}`;
    const isPlanned = after?.start === deployed?.start && after?.end === deployed?.end;
    if (!after || isPlanned) return `${by} put ${event} back on its schedule`;
    if (after.end !== before?.end) return `${by} ended ${event}`;
    return `${by} started ${event}`;
  }
  if (kind === "clear" && (deployed ?? after ?? null) === null)
    return `${by} cleared ${name}, which could not be read`;
  if (kind === "clear") return `${by} put ${name} back to the deployed ${value(field, after)}`;
  if (kind === "keep") return `${by} kept ${name} at ${value(field, after)}`;
  const end = until ? ` until ${moment(until)}` : "";
  return `${by} set ${name} to ${value(field, after)}${end}, it was ${value(field, before)}`;
}
