// What the operators' endpoints take and answer, for `openapi.js`. Which there are, and whom each is for, is said by the table
// by which they are let in (`src/operator/access.rs`).
import {
  answer,
  anything,
  asked,
  date,
  flag,
  json,
  list,
  maybe,
  moment,
  number,
  object,
  one,
  open,
  orNull,
  ref,
  text,
  whole,
} from "./schemas.js";

const LIMITS = object({ total_active_users: whole(), new_users_per_minute: whole() });
const OVERRIDE = object({
  field: text(),
  value: anything("what is in force"),
  deployed: anything("what is deployed now"),
  deployed_then: anything("what was deployed when an operator last looked at it"),
  deploy_changed: flag("a deploy has changed that since"),
  by: text("the name of a token"),
  at: moment(),
  until: orNull(moment("when it ends by itself; null: it holds until it is cleared")),
  reason: text(),
});
const EVENT = object({
  name: text(),
  phase: one(["upcoming", "prequeueing", "active", "over", "suspended", "gone"]),
  start: orNull(moment()),
  end: orNull(moment()),
  prequeue: orNull(moment()),
  deployed_start: orNull(moment()),
  deployed_end: orNull(moment()),
  steered: flag("an operator has changed its times"),
  by: orNull(text()),
  at: orNull(moment()),
  reason: text(),
});
const UNREAD = orNull(
  object(
    { names: list(text()), effect: one(["closed", "last_known", "ignored"]) },
    { description: "what is stored and cannot be read" },
  ),
);
const COLOS = {
  colos_in_force: whole("data centers in which this version is in force"),
  colos: whole("data centers that are awake"),
};
const ROOM = {
  name: text("the room; one made at run time by its id"),
  label: text("what people call it"),
  path: text(),
  host: orNull(text("null: every host")),
};
const STATUS = object({
  ...ROOM,
  status: one(["not_queueing", "queueing", "event_prequeueing", "suspended"]),
  event_id: text("the event that is on; empty: none"),
  estimated_queued_users: whole(),
  estimated_total_active_users: whole(),
  max_estimated_time_minutes: whole("0 where nobody waits, or nobody can tell"),
  taken_at: moment(),
  age_ms: whole("of the oldest report in it"),
  late_ms: whole("what happened longer ago is counted for certain"),
  watched: flag("somebody looks, so that workers report soon"),
  total_active_users: whole("as deployed"),
  new_users_per_minute: whole("as deployed"),
  limits: LIMITS,
  deployed: open("every field that can be steered, as deployed"),
  slots: whole("how many more users may be active"),
  new_users_this_minute: whole(),
  new_users_last_minute: whole(),
  entering_per_minute: number(),
  queue_all: flag(),
  suspended: flag(),
  observing: flag("whoever waits passes"),
  enforce_share: number("", { minimum: 0, maximum: 1 }),
  held: flag("nobody new enters: the origin is unhealthy"),
  queueing_method: one(["fifo", "random", "passthrough", "reject"]),
  session_duration: whole("minutes"),
  refresh_interval_seconds: whole(),
  message: text(),
  level: one(["calm", "busy", "queueing"]),
  workers: whole("that reported lately"),
  event_phase: orNull(one(["prequeueing", "active"])),
  next_event_start_time: orNull(date()),
  next_event_prequeue_start_time: orNull(date()),
  events: list(EVENT),
  origin: object({
    limits: LIMITS,
    checks: whole("health checks that speak for it"),
    held: flag(),
    unhealthy_check: orNull(text()),
    unhealthy_since: orNull(moment()),
    answered: whole("requests of the last 60 seconds"),
    failed: whole(),
    timed_out: whole(),
    refused: whole(),
    first_byte_p50_ms: orNull(whole()),
    first_byte_p95_ms: orNull(whole()),
    in_flight: whole(),
  }),
  buckets: list(
    object({
      bucket: whole("the minute since the epoch"),
      since: moment(),
      drawn: flag("by lot"),
      users: whole(),
      present: whole("who will probably check in again"),
      wait_seconds: orNull(whole("null: nobody can tell")),
    }),
    "who waits, oldest first",
  ),
  colos: list(
    object({
      colo: text(),
      reported_at: moment(),
      age_ms: whole(),
      active: whole(),
      waiting: whole(),
      new_users_this_minute: whole(),
      new_users_last_minute: whole(),
      workers: whole(),
      cut_off: flag("a report that was announced has not come"),
      steering: whole("the version in force there"),
    }),
  ),
  steering: object({
    version: whole(),
    overrides: list(OVERRIDE),
    events: list(EVENT),
    ...COLOS,
    unread: UNREAD,
  }),
  error: orNull(text("why something is not known")),
  state: open("what workers decide by, for debugging; it may change with every version"),
});
const SILENT = object({ ...ROOM, error: text("why it is not known") }, { additionalProperties: false });

export const OPERATORS_SCHEMAS = {
  error: object({
    error: text("one sentence: what is wrong, and what to do"),
    errors: maybe(list(object({ field: text(), value: text(), message: text(), fix: text() }))),
  }),
  roomStatus: STATUS,
  allStatus: object({
    now: moment(),
    operator: object({ name: text(), role: one(["view", "steer", "configure"]) }),
    problems: list(text(), "what is wrong with the deployment"),
    rooms: list({ anyOf: [ref("roomStatus"), SILENT] }),
  }),
  steering: object({
    room: text(),
    version: whole(),
    fields: open(
      "by field",
      object({
        deployed: anything(),
        value: anything("what is in force"),
        override: orNull(OVERRIDE),
        least: maybe(whole()),
        most: maybe(whole()),
        longest: maybe(whole("characters")),
      }),
    ),
    events: list(EVENT),
    ...COLOS,
    unread: UNREAD,
  }),
  order: object(
    {
      set: maybe(open("fields and their new values")),
      clear: maybe(list(text(), "fields that are to be as deployed again")),
      keep: maybe(list(text(), "fields whose override stays, though a deploy has changed what it overrides")),
      events: maybe(open("by event", one(["start", "end", "clear"]))),
      until: maybe({
        description: "when what is set ends by itself: a time, milliseconds since the epoch, or how long",
        anyOf: [text("", { examples: ["2h 30m"] }), moment(), { type: "null" }],
      }),
      reason: maybe(text("for the log, in one line", { maxLength: 200 })),
      if_version: maybe(
        orNull(
          whole("the version that was seen: else nothing is done", { minimum: 0, maximum: 2 ** 32 - 1 }),
        ),
      ),
      dry_run: maybe(flag("nothing is done: the answer is what would be in force")),
    },
    { additionalProperties: false },
  ),
  audit: object({
    room: text(),
    entries: list(
      object({
        id: whole(),
        at: moment(),
        by: text(),
        kind: one(["set", "clear", "keep", "event", "end"]),
        field: text(),
        before: anything(),
        after: anything(),
        deployed: anything(),
        until: maybe(moment()),
        reason: maybe(text()),
      }),
    ),
  }),
  history: object({
    room: text(),
    resolution: one(["minute", "hour"]),
    from: moment(),
    to: moment(),
    colo: orNull(text()),
    fields: list(text()),
    settled_until: orNull(moment("rows from there on may still change")),
    rows: list(list({ type: ["number", "null"] }), "each begins with its start"),
  }),
  news: object({
    room: text(),
    news: list(object({ id: text(), at: moment(), kind: text(), text: text(), data: open() })),
    webhooks: list(
      object({
        name: text(),
        problem: orNull(text("what is missing for anything to be sent")),
        pending: whole(),
        tries: whole(),
        next_attempt_at: orNull(moment()),
        last_success_at: orNull(moment()),
        last_failure_at: orNull(moment()),
        last_failure: orNull(text()),
        dropped: whole(),
        stopped_until: orNull(moment()),
      }),
    ),
  }),
  allEvents: object({
    now: date(),
    problems: list(text()),
    events: list(
      object({
        name: text(),
        room: text(),
        phase: one(["upcoming", "prequeueing", "active", "over", "suspended"]),
        event_start_time: date(),
        event_end_time: date(),
        prequeue_start_time: orNull(date()),
        steered: flag(),
        deployed_event_start_time: date(),
        deployed_event_end_time: date(),
        shuffle_at_event_start: flag(),
        suspended: flag(),
        description: text(),
        overrides: open("what is not as in the room"),
        effective: open("the room's fields while the event is active"),
      }),
    ),
  }),
  drawn: {
    anyOf: [
      object({
        room: text(),
        round: whole(),
        start: moment(),
        end: moment(),
        seed: orNull(text("null until the round is over")),
      }),
      object({
        room: text(),
        event: text(),
        start: moment(),
        prequeue: orNull(moment()),
        commitment: text("SHA-256 of the seed"),
        seed: orNull(text("null until the event has started")),
      }),
    ],
  },
  rehearsal: object({ rehearsal: text(), until: moment(), now: moment() }),
  notification: object(
    {
      text: maybe(text("for people; the test of a new webhook says that it is one")),
      data: maybe(open("which check, and what it is from when on")),
      ts: maybe(number()),
      alert_type: maybe(one(["health_check_status_notification"])),
      ...Object.fromEntries(
        ["name", "account_id", "policy_id", "policy_name", "alert_correlation_id", "alert_event"].map(
          (name) => [name, maybe(text())],
        ),
      ),
    },
    { additionalProperties: false },
  ),
  health: object({
    at: moment(),
    range: one(["1h", "24h", "7d", "30d"]),
    from: moment(),
    status: one(["Unknown", "Healthy", "Unhealthy"]),
    selected: text("the only check that is told of; empty: all are"),
    checks: list(open()),
    changes: list(open(), "newest first"),
    results: list(open(), "newest first"),
  }),
};

const content = (type) => ({ [type]: { schema: { type: "string" } } });
const HTML = content("text/html");
const PLAIN = content("text/plain");
const SCRIPT = content("text/javascript");
const FORM = (schema) => ({ "application/x-www-form-urlencoded": { schema } });

const room = asked("room", text(), "its name or id; may be left out where there is one");
const time = (name, description) => asked(name, { anyOf: [moment(), date()] }, description);
const from = time("from", "milliseconds since the epoch, or RFC 3339");
const to = time("to", "the same; it is not included itself");
const version = asked("v", text(), "with its version the answer may be kept for ever");
const mark = { name: "anteroom-rehearsal", in: "header", schema: text() };
const range = asked("range", one(["1h", "24h", "7d", "30d"]));
const check = asked("check", text(), "one check alone, by its id");
const TOKEN = object({ token: text() });
const LINK = { to: text("a path"), link: text("as the waiting page tells it") };

const refused = answer(
  "something in the address or the body is wrong: nothing was changed",
  json(ref("error")),
);
const ROOM_REFUSED = { 400: refused, 404: answer("there is no such room", json(ref("error"))) };
const CLOSED = {
  401: answer("no valid token, and no session that holds", json(ref("error"))),
  403: answer("the role is too small, or the page of another site asks", json(ref("error"))),
};
const AWAY = { 503: answer("the room's object does not answer", json(ref("error"))) };
const LONG = { 413: answer("a body of more than 16 KB", json(ref("error"))) };
const NOWHERE = { 404: answer("there is none", HTML) };
const HEALTH = {
  400: answer("no such range", PLAIN),
  401: answer("the page is behind a token", PLAIN),
  404: answer("there is no such check, or the page is off", { ...PLAIN, ...HTML }),
  503: answer("what is known cannot be reached", PLAIN),
};
const shown = (schema) => ({ 200: answer("as it is now", json(ref(schema))) });

/** By method and path: summary, parameters, body and answers. @type {Record<string, object>} */
export const OPERATIONS = {
  "GET ": {
    summary: "The dashboard; without a session the sign-in page",
    parameters: [asked("figures", text(), "the page has the figures: for browsers without JavaScript")],
    responses: { 200: answer("the dashboard", HTML), 401: answer("the sign-in page", HTML) },
  },
  "GET dashboard.js": {
    summary: "The dashboard's script",
    parameters: [version],
    responses: { 200: answer("the script", SCRIPT) },
  },
  "GET dashboard.css": {
    summary: "The dashboard's style",
    parameters: [version],
    responses: { 200: answer("the style", content("text/css")) },
  },
  "GET preview": {
    summary: "The page that somebody sees who comes now and must wait",
    parameters: [room, asked("language", text())],
    responses: { 200: answer("the page", HTML), ...ROOM_REFUSED, ...AWAY },
  },
  "POST session": {
    summary: "A token for a session of 12 hours",
    requestBody: { required: true, content: { ...FORM(TOKEN), ...json(TOKEN) } },
    responses: {
      303: answer("signed in, with the session's cookie"),
      401: answer("no token of this deployment", { ...HTML, ...json(ref("error")) }),
      403: CLOSED[403],
      ...LONG,
      503: answer("without COOKIE_KEYS there are no sessions", json(ref("error"))),
    },
  },
  "POST session/end": {
    summary: "Ends the session",
    responses: { 303: answer("signed out"), 403: CLOSED[403] },
  },
  "GET status": {
    summary: "What all rooms do, or one",
    parameters: [room, asked("watch", flag("", { default: true }), "false: workers need not hurry for it")],
    responses: { ...shown("allStatus"), ...ROOM_REFUSED },
  },
  "GET steering": {
    summary: "What is steered in a room",
    parameters: [room],
    responses: { ...shown("steering"), ...ROOM_REFUSED, ...AWAY },
  },
  "POST steering": {
    summary: "Changes what is steered: all of it, or nothing",
    parameters: [room],
    requestBody: { required: true, content: json(ref("order")) },
    responses: {
      ...shown("steering"),
      ...ROOM_REFUSED,
      409: answer("another version is in force than was seen", json(ref("error"))),
      ...LONG,
      ...AWAY,
    },
  },
  "GET audit": {
    summary: "Who changed what, newest first",
    parameters: [
      room,
      asked("limit", whole("", { minimum: 1, maximum: 1_000, default: 100 })),
      asked("before", whole("", { minimum: 1 }), "the id of an entry: older ones"),
    ],
    responses: { ...shown("audit"), ...ROOM_REFUSED, ...AWAY },
  },
  "GET history": {
    summary: "A room's past, by the minute or the hour",
    parameters: [
      ...[room, from, to],
      asked("resolution", one(["minute", "hour", "auto"])),
      asked("fields", text(), "some, separated by commas; all without it"),
      asked("colo", text(), "one data center's part"),
      asked("format", one(["json", "csv"])),
    ],
    responses: {
      200: answer("rows", { ...json(ref("history")), ...content("text/csv") }),
      ...ROOM_REFUSED,
      ...AWAY,
    },
  },
  "GET news": {
    summary: "What happened in the last 30 days, oldest first, and how far the webhooks are",
    parameters: [room, from, to],
    responses: { ...shown("news"), ...ROOM_REFUSED, ...AWAY },
  },
  "GET metrics": {
    summary: "For Prometheus",
    responses: { 200: answer("all metrics", { ...PLAIN, ...content("application/openmetrics-text") }) },
  },
  "GET events": { summary: "All events", responses: shown("allEvents") },
  "GET live": {
    summary: "A WebSocket with what a room does, and what happens in it",
    parameters: [room],
    responses: {
      101: answer("messages of the types `room` and `news`"),
      ...ROOM_REFUSED,
      426: answer("this is for WebSockets", json(ref("error"))),
      ...AWAY,
    },
  },
  "GET draws": {
    summary: "What lots were drawn by: of a round of a room, or of an event",
    parameters: [room, asked("round", whole("", { minimum: 0 })), asked("event", text())],
    responses: { ...shown("drawn"), ...NOWHERE },
  },
  "GET rehearsal": {
    summary: "Whether the mark of a rehearsal is good",
    parameters: [mark],
    responses: {
      ...shown("rehearsal"),
      403: answer("it is not", json(object({ error: text(), now: moment() }))),
    },
  },
  "GET continue": {
    summary: "The page that takes a visitor's place to another device",
    parameters: Object.entries(LINK).map(([name, schema]) => asked(name, schema)),
    responses: { 200: answer("the page", HTML), 410: answer("the link is over", HTML) },
  },
  "POST continue": {
    summary: "Takes the place along",
    requestBody: { required: true, content: FORM(object({ ...LINK, by: text("as the page sends it") })) },
    responses: {
      303: answer("on to the waiting page, with the place"),
      410: answer("the link is over", HTML),
      503: answer("once more, please", HTML),
    },
  },
  "GET push.js": {
    summary: "The service worker that shows push messages",
    responses: { 200: answer("the script", SCRIPT), ...NOWHERE },
  },
  "GET health": {
    summary: "The origin's health",
    parameters: [range, check],
    responses: { 200: answer("the page", { ...HTML, ...json(ref("health")) }), ...HEALTH },
  },
  "GET health.json": {
    summary: "The origin's health, for programs",
    parameters: [range, check],
    responses: { ...shown("health"), ...HEALTH },
  },
  "GET health.js": {
    summary: "The status page's script",
    parameters: [version],
    responses: { 200: answer("the script", SCRIPT), ...NOWHERE },
  },
  "POST health/webhook": {
    summary: "Takes notifications of the platform's health checks",
    requestBody: { required: true, content: json(ref("notification")) },
    responses: {
      200: answer("it is stored", PLAIN),
      400: answer("it is no notification", PLAIN),
      401: answer("not the WEBHOOK_SECRET", PLAIN),
      413: answer("it is too long", PLAIN),
      503: HEALTH[503],
    },
  },
};

/** The operations by path. @param {{ path: string, method: string, role: string | null }[]} endpoints */
export function operatorsPaths(endpoints) {
  const paths = {};
  for (const { path, method, role } of endpoints) {
    // Of those that say themselves which methods there are, all that are described.
    const here = Object.keys(OPERATIONS).filter((key) => key === `${method || key.split(" ")[0]} ${path}`);
    for (const key of here) {
      const [verb] = key.split(" ");
      const { responses, ...more } = OPERATIONS[key];
      const isHealth = path.startsWith("health");
      const full = `/__anteroom/${path}`;
      paths[full] ??= {};
      paths[full][verb.toLowerCase()] = {
        operationId: `${verb.toLowerCase()}_${path.replace(/\W/g, "_") || "dashboard"}`,
        tags: [role ? "operators" : isHealth ? "health" : "everybody"],
        ...(role && { description: `Needs the role \`${role}\`.` }),
        ...more,
        responses: { ...responses, ...(role && CLOSED) },
        security: role ? [{ bearer: [] }, { session: [] }] : securityOf(path),
      };
    }
  }
  return paths;
}

function securityOf(path) {
  if (path === "health/webhook") return [{ webhook: [] }];
  if (path === "health" || path === "health.json")
    return [{}, { bearer: [] }, { session: [] }, { password: [] }];
  return [];
}
