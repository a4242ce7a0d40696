// Notifications in words, and the bodies of messages to webhooks. The Worker's wasm finds them; the words are here, where
// they do not make every cold start slower.

/** A chat tool refuses longer messages (Discord: 2,000 characters). */
const LONGEST_TEXT = 1_800;

/** `1 user`, `2 users`. */
const count = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;

/** A time in the two largest units that it has. */
function duration(seconds) {
  const units = [
    ["day", Math.floor(seconds / 86_400)],
    ["hour", Math.floor(seconds / 3_600) % 24],
    ["minute", Math.floor(seconds / 60) % 60],
    ["second", Math.floor(seconds) % 60],
  ];
  const first = units.findIndex(([, number]) => number > 0);
  if (first < 0) return "0 seconds";
  const largest = units.slice(first, first + 2).filter(([, number]) => number > 0);
  return largest.map(([unit, number]) => count(number, unit)).join(" ");
}

const limits = (active, entering) =>
  `${count(active, "active user")} and ${count(entering, "new user")} per minute`;
const inForce = (data) => limits(data.total_active_users, data.new_users_per_minute);
const value = (one) => JSON.stringify(one);
const newUsers = ({ held }) => (held ? "New users wait until it is healthy." : "New users enter as ever.");

const WHY = {
  event: () => "The event has not started yet.",
  queue_all: () => "Nobody new enters (queue_all).",
  origin: () => "Nobody new enters, because the origin is unhealthy.",
  limits: (data) =>
    `${data.active_users} of ${count(data.total_active_users, "user")} are active, ` +
    `${data.new_users_this_minute} of ${count(data.new_users_per_minute, "new user")} entered in this minute.`,
};

/** What each kind of notification says, from its data. */
const WORDS = {
  queueing_started: (data) => `visitors are waiting. ${WHY[data.why](data)}`,
  queueing_ended: (data) =>
    `nobody waits any more. Visitors waited for ${duration(data.lasted_seconds)}, ` +
    `up to ${data.most_waiting_users} at a time.`,
  wait_above: (data) =>
    `the estimated wait is ${duration(data.wait_seconds)}, at least ${count(data.threshold_minutes, "minute")} as you ` +
    `asked to be told. ${count(data.waiting_users, "visitor")} ${data.waiting_users === 1 ? "waits" : "wait"}.`,
  wait_below: (data) => `the estimated wait is well below ${count(data.threshold_minutes, "minute")} again.`,
  event_prequeue_started: (data) =>
    `the prequeue of event ${data.event} has begun. The event starts at ${data.event_start_time}.`,
  event_started: (data) =>
    `event ${data.event} has started. It ends at ${data.event_end_time}. The limits are ${inForce(data)}.`,
  event_ended: (data) =>
    data.called_off ? `event ${data.event} was called off before its start.` : `event ${data.event} is over.`,
  origin_unhealthy: (data) =>
    data.check
      ? `check ${data.check} says that the origin is unhealthy. ${newUsers(data)}`
      : `nearly all requests to the origin fail. ${newUsers(data)}`,
  origin_healthy: (data) =>
    data.check
      ? `check ${data.check} says that the origin is healthy again, after ${duration(data.lasted_seconds)}.`
      : `requests to the origin are answered again, after ${duration(data.lasted_seconds)}.`,
  limits_changed: (data) =>
    `the limits in force changed to ${inForce(data)} ` +
    `(${data.by === "deploy" ? "by a deploy" : "they follow the origin"}); before: ` +
    `${limits(data.total_active_users_before, data.new_users_per_minute_before)}.`,
  steered: ({ by, changes }) => {
    const [{ kind, reason }] = changes;
    const said = kind === "end" ? changes.map(ended).join(", ") : `${by} ${changes.map(changed).join(", ")}`;
    return `${said}.${reason ? ` Why: ${reason}` : ""}`;
  },
  fallback_in_use: () =>
    "objects do not answer in time. New users enter by what was known last, and the limits are kept approximately.",
  fallback_ended: (data) => `objects answer in time again, after ${duration(data.lasted_seconds)}.`,
  limit_exceeded: (data) =>
    (data.limit === "total_active_users"
      ? `${count(data.users, "user")} ${data.users === 1 ? "is" : "are"} active`
      : `${count(data.users, "new user")} entered in a minute`) +
    `, ${data.more_than_limit} more than the limit of ${data[data.limit]}.` +
    (data.passthrough ? ' The room lets everybody in (queueing_method = "passthrough").' : ""),
};

const ended = ({ by, field, before, after }) =>
  `${field} = ${value(before)}, set by ${by}, has ended: it is ${value(after)} again`;

function changed({ kind, field, before, after, until }) {
  const was = value(before) === value(after) ? "" : ` (before: ${value(before)})`;
  if (kind === "keep") return `kept ${field} at ${value(after)}${was}`;
  if (kind === "clear" && after === null) return `cleared ${field}, which could not be read`;
  if (kind === "clear") return `set ${field} back to what is deployed, ${value(after)}${was}`;
  const end = until ? ` until ${new Date(until).toISOString().replace(/\.\d+/, "")}` : "";
  return `set ${field} to ${value(after)}${end}${was}`;
}

/**
 * A notification in one or two plain sentences.
 * @param {string} kind
 * @param {string} data as JSON
 */
export function words(kind, data) {
  const read = JSON.parse(data);
  const passing = read.observing ? " (only observes, everybody passes)" : "";
  return `Room ${read.room}${passing}: ${WORDS[kind](read)}`;
}

/** What each receiver reads; `text` is short enough for all of them. */
const CHATS = {
  // `<!channel>` would call everybody.
  slack: (text) => ({ text: text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;") }),
  // `<users/all>` would do so too, and there is no way to write it as text.
  google_chat: (text) => ({ text: text.replaceAll("<", "‹") }),
  discord: (text) => ({ content: text, allowed_mentions: { parse: [] } }),
  teams: (text) => ({
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        contentUrl: null,
        content: {
          $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
          type: "AdaptiveCard",
          version: "1.2",
          body: [{ type: "TextBlock", text, wrap: true }],
        },
      },
    ],
  }),
};

/**
 * The body of a message.
 * @param {string} format
 * @param {string} kind
 * @param {number} at milliseconds since the epoch
 * @param {string} text
 * @param {string} data as JSON
 * @param {number} dropped how many messages for this receiver have been given up since the last that it got
 */
export function body(format, kind, at, text, data, dropped) {
  const read = JSON.parse(data);
  let said = text;
  if (dropped > 0) said += ` (${dropped} older news could not be delivered and were given up.)`;
  if (format === "standard") {
    const timestamp = new Date(at).toISOString();
    return JSON.stringify({ type: kind, timestamp, text: said, data: { ...read, dropped } });
  }
  const letters = [...said];
  if (letters.length > LONGEST_TEXT) said = `${letters.slice(0, LONGEST_TEXT).join("")}…`;
  if (read.url) said += `\n${read.url}`;
  return JSON.stringify(CHATS[format](said));
}
