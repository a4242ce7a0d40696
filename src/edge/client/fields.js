// The fields that the API knows by name: those of Cloudflare's clients. All others of a room are in its `anteroom`.

/** It must be sent. */
export const REQUIRED = Symbol("required");

/** The object with the fields of Anteroom's own. */
export const OWN = "anteroom";
export const ACTION = "bypass_waiting_room";

/** Those of a room besides `name`, and what is shown where nothing was sent. */
export const ROOM = {
  host: REQUIRED,
  total_active_users: REQUIRED,
  new_users_per_minute: REQUIRED,
  path: "/",
  additional_routes: [],
  description: "",
  cookie_suffix: "",
  cookie_attributes: { samesite: "auto", secure: "auto" },
  custom_page_html: "",
  default_template_language: "en-US",
  session_duration: 5,
  queueing_method: "fifo",
  queueing_status_code: 200,
  turnstile_mode: "invisible",
  turnstile_action: "log",
  queue_all: false,
  suspended: false,
  disable_session_renewal: false,
  json_response_enabled: false,
  enabled_origin_commands: [],
};

/** Those of an event besides `name`; null: as in its room. */
export const EVENT = {
  event_start_time: REQUIRED,
  event_end_time: REQUIRED,
  prequeue_start_time: null,
  description: "",
  shuffle_at_event_start: false,
  suspended: false,
  total_active_users: null,
  new_users_per_minute: null,
  session_duration: null,
  disable_session_renewal: null,
  queueing_method: null,
  custom_page_html: null,
  turnstile_mode: null,
  turnstile_action: null,
};

/** Those of a rule. */
export const RULE = { action: REQUIRED, expression: REQUIRED, description: "", enabled: true };

/** What answers have besides, and who sends an answer back says too. */
const READ_ONLY = [
  "id",
  "created_on",
  "modified_on",
  "next_event_start_time",
  "next_event_prequeue_start_time",
  "deployed_as",
  "deleted_on",
  "version",
  "last_updated",
];

/** What is wrong, or what a change does, as a number: clients show it, and none goes by it. */
export const CODE = {
  body: 1001,
  value: 1002,
  taken: 1003,
  deployed: 1004,
  bound: 1005,
  unknown: 1006,
  long: 1007,
  away: 1008,
  method: 1009,
  effect: 2001,
  route: 7003,
  caller: 10000,
  rate: 10100,
};

/**
 * @param {number} code @param {string} message @param {string} [pointer] which field
 * @param {number} [column] where in its text: in characters, from 1
 */
export const problem = (code, message, pointer, column) => ({
  code,
  message,
  ...(pointer && { source: { pointer, ...(column && { column }) } }),
});

/** A JSON pointer to a field. */
export const pointerTo = (...names) =>
  names.map((name) => `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** What is wrong with a field. */
export const wrong = (field, message) => problem(CODE.value, `${field} ${message}`, pointerTo(field));

/** What is wrong with what was sent: fields that are none of these. */
export const noFields = (sent, fields) =>
  Object.keys(sent)
    .filter((field) => !fields.includes(field))
    .map((field) => wrong(field, `is not a field. Fix: leave it out; there are ${fields.join(", ")}`));

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i;
/** Whether it is a time with an offset, as RFC 3339 writes it. */
export const isTime = (value) => typeof value === "string" && TIME.test(value);

/** A field that was sent, and is not null. */
export const given = (fields, name) => fields[name] ?? undefined;

/** Takes what nobody sets out of a body. @returns what is wrong with it: fields that are none */
export function takeKnown(sent, fields, more) {
  for (const name of READ_ONLY) delete sent[name];
  return Object.keys(sent)
    .filter((name) => !Object.hasOwn(fields, name) && !more.includes(name))
    .map((name) =>
      problem(CODE.value, `${name} is not a field; what only Anteroom has stands in ${OWN}`, pointerTo(name)),
    );
}

/** What must be there and is not. */
export const missing = (sent, fields) =>
  Object.keys(fields)
    .filter((name) => fields[name] === REQUIRED && given(sent, name) === undefined)
    .map((name) => problem(CODE.value, `${name} is required`, pointerTo(name)));

const defaultOf = (fields, name) => (fields[name] === REQUIRED ? null : fields[name]);

const shownFields = (sent, fields) =>
  Object.fromEntries(Object.keys(fields).map((name) => [name, sent[name] ?? defaultOf(fields, name)]));

const time = (ms) => new Date(ms).toISOString();

function shownEntry(entry, fields) {
  const { id, name, created, modified, fields: sent } = entry;
  return {
    id,
    name,
    ...shownFields(sent, fields),
    ...(sent[OWN] && { [OWN]: sent[OWN] }),
    created_on: time(created),
    modified_on: time(modified),
  };
}

/** A room as it is answered. @param {object} [next] the next event's fields */
export function shownRoom(room, next = {}) {
  const shown = shownEntry(room, ROOM);
  const routes = shown.additional_routes;
  return {
    ...shown,
    ...(Array.isArray(routes) && {
      additional_routes: routes.map((route) => ({ ...route, path: route.path ?? ROOM.path })),
    }),
    cookie_attributes: { ...ROOM.cookie_attributes, ...withoutNulls(shown.cookie_attributes) },
    next_event_start_time: next.event_start_time ?? null,
    next_event_prequeue_start_time: next.prequeue_start_time ?? null,
    ...(room.variable && { deployed_as: room.variable }),
    ...(room.deleted && { deleted_on: time(room.deleted) }),
  };
}

export const withoutNulls = (fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

export const shownEvent = (event) => shownEntry(event, EVENT);

/** An event with what it inherits from its room. */
export function shownDetails(event, room) {
  const shown = shownEvent(event);
  for (const name of Object.keys(EVENT).filter((name) => EVENT[name] === null))
    shown[name] ??= room.fields[name] ?? defaultOf(ROOM, name) ?? null;
  return shown;
}

export const shownRules = ({ rules }) =>
  rules.map(({ id, version, fields, modified }) => ({
    id,
    ...shownFields(fields, RULE),
    version: `${version}`,
    last_updated: time(modified),
  }));
