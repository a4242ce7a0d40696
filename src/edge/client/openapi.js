// The description of the whole API as OpenAPI 3.1, `/__anteroom/openapi.json`. It is made of the tables by which the API works:
// of fields and operators' endpoints (`build/tables.json`, which `tools/tables.mjs` makes of `src/config/fields.rs` and
// `src/operator/access.rs`), of what is taken and shown (`fields.js`), and of this API's endpoints (`endpoints.js`).
import tables from "../../../build/tables.json" with { type: "json" };
import { ENDPOINTS } from "./endpoints.js";
import { EVENT, OWN, REQUIRED, ROOM, RULE } from "./fields.js";
import { OPERATORS_SCHEMAS, operatorsPaths } from "./operators.js";
import {
  answer,
  anyCase,
  anything,
  asked,
  date,
  flag,
  json,
  list,
  maybe,
  object,
  one,
  open,
  orNull,
  ref,
  text,
  whole,
} from "./schemas.js";
import { ROLES } from "./tokens.js";
import { ALSO_OWN, LONGEST_PAGE } from "./written.js";

/** Where it is. */
export const PATH = "/__anteroom/openapi.json";
const ROOT = "/__anteroom/client/v4/";
const ID = text("32 hexadecimal digits", { pattern: "^[0-9a-f]{32}$" });
const NAME = text("unique in any case", { pattern: "^[A-Za-z0-9_-]{1,64}$", examples: ["sale"] });

const TIME = "2026-11-27T09:00:00+01:00";

/**
 * A field of the table, as JSON Schema.
 * @param {string} name @param {boolean} [isAnyCase] capitals do not matter
 */
function fieldOf(name, isAnyCase = tables.fields[name]["x-any-case"]) {
  const { "x-any-case": _, enum: names, ...schema } = tables.fields[name];
  if (!names) return schema;
  return isAnyCase ? { ...schema, ...anyCase(names, schema.description) } : { ...schema, enum: names };
}

/** Without what holds where it is left out: a part leaves it as it is. */
const withoutDefault = ({ default: _, "x-default": __, ...schema }) => schema;
/** As an event has it from its room, unless it has its own. */
const inherited = ({ "x-steered": _, "x-in-events": __, ...schema }) => withoutDefault(schema);

const { host, path } = tables.fields.additional_routes.items.properties;
const ROUTE = object(
  { host: withoutDefault(host), path: maybe(orNull(path)) },
  { additionalProperties: false },
);
/** Whoever may steer may change it. */
const STEERED = { "x-steered": true };

/** What Cloudflare's clients mean by a field, where that is not what a var means by it, or no field of a room. */
const THEIRS = {
  custom_page_html: text("the page itself, a template; empty: Anteroom's own", { maxLength: LONGEST_PAGE }),
  additional_routes: { ...tables.fields.additional_routes, items: ROUTE },
  cookie_attributes: {
    ...{ type: "object", additionalProperties: false },
    properties: Object.fromEntries(
      ["samesite", "secure"].map((name) => {
        const { enum: names, description } = tables.fields.cookie_attributes.properties[name];
        return [name, orNull(anyCase(names, description))];
      }),
    ),
  },
  turnstile_mode: fieldOf("turnstile_mode", true),
  turnstile_action: fieldOf("turnstile_action", true),
  event_start_time: { ...date("with Z or an offset", { examples: [TIME] }), ...STEERED },
  event_end_time: { ...date("at least a minute later"), ...STEERED },
  prequeue_start_time: date("nobody new enters from then on; at least five minutes before the start"),
  shuffle_at_event_start: flag("who came in the prequeue is put in an order by lot"),
  action: anyCase(["bypass_waiting_room"]),
  expression: text("whom the rule is for", { examples: ["ip.src in {192.0.2.0/24}"] }),
  enabled: flag("false: the rule does nothing"),
};

/** What an event means by a field that a room has too. */
const OF_EVENT = { suspended: flag("the event is ignored") };

const typeOf = (name, theirs) => (theirs === EVENT && OF_EVENT[name]) || (THEIRS[name] ?? fieldOf(name));

/** What only Anteroom has: the fields that stand in `anteroom`, each of which null takes away. */
function ownOf(theirs, names) {
  const own = names.filter((name) => !(name in theirs) || ALSO_OWN.includes(name));
  const shape = (name) => {
    const { minimum, maximum, ...field } = fieldOf(name);
    const bound = whole("", { minimum, maximum });
    const range = object({ min: bound, max: bound }, { additionalProperties: false });
    return ["total_active_users", "new_users_per_minute"].includes(name)
      ? { ...field, type: undefined, anyOf: [bound, range] }
      : fieldOf(name);
  };
  const schemaOf = (name) => (theirs === EVENT ? inherited(shape(name)) : shape(name));
  return {
    type: "object",
    description: "what only Anteroom has",
    additionalProperties: false,
    properties: Object.fromEntries(own.map((name) => [name, orNull(schemaOf(name))])),
  };
}

const FIELDS = Object.keys(tables.fields).filter((name) => name !== "bypass_rules");
const IN_EVENTS = FIELDS.filter((name) => tables.fields[name]["x-in-events"]);
const SEEN = { modified_on: text("as it was read: who sends it is told what others have changed since") };

/** A body. @param {Record<string, any>} theirs the table of what is taken @param {boolean} isPart nothing is required */
function taken(theirs, own, isPart, more = {}) {
  const properties = Object.keys(theirs).map((name) => {
    const [type, otherwise] = [withoutDefault(typeOf(name, theirs)), theirs[name]];
    if (otherwise === REQUIRED) return [name, isPart ? maybe(type) : type];
    if (otherwise === null) return [name, maybe(orNull(inherited(type)))];
    return [name, maybe(orNull(isPart ? type : { ...type, default: otherwise }))];
  });
  const all = { ...more, ...Object.fromEntries(properties), ...(own && { [OWN]: maybe(orNull(own)) }) };
  return object(all, { additionalProperties: false });
}

/** An answer: every field is there. */
function shown(theirs, own, more) {
  const properties = Object.keys(theirs).map((name) => {
    const type = typeOf(name, theirs);
    return [name, theirs[name] === null ? orNull(inherited(type)) : withoutDefault(type)];
  });
  return object({ ...more, ...Object.fromEntries(properties), ...(own && { [OWN]: maybe(own) }) });
}

const ENTRY = { id: ID, name: NAME };
const TIMES = { created_on: date(), modified_on: date() };
const POSITION = {
  index: maybe(whole("from 1", { minimum: 1 })),
  before: maybe(text("a rule's id; empty: the first place")),
  after: maybe(text("a rule's id; empty: the last place")),
};
const seenOf = (entry) => ({ name: entry, modified_on: maybe(SEEN.modified_on) });
const newRule = taken(RULE, undefined, false);
const newRoom = taken(ROOM, ref("ownOfRoom"), false, { name: NAME });
const newEvent = taken(EVENT, ref("ownOfEvent"), false, { name: NAME });
const withId = { ...newRule, properties: { id: text("a rule that stays"), ...newRule.properties } };

const TOKEN = {
  id: ID,
  name: text(),
  role: one(ROLES),
  status: one(["active", "expired"]),
  last_four: text("its last four characters"),
  expires_on: orNull(date("null: it does not end")),
  created_on: date(),
  created_by: text("the name of a token"),
};

const PLAN = {
  id: ID,
  set: open("fields and their values"),
  from: date("when it begins next"),
  until: orNull(date("when it ends then; null: it does not")),
  weekly: flag(),
  zone: text(),
  reason: text(),
  created_on: date(),
  created_by: text("the name of a token"),
};

/** What the endpoints take and give, by the names in `endpoints.js`. */
const SCHEMAS = {
  ownOfRoom: ownOf(ROOM, FIELDS),
  ownOfEvent: ownOf(EVENT, IN_EVENTS),
  newRoom: { ...newRoom, properties: { ...seenOf(NAME), ...newRoom.properties } },
  partOfRoom: taken(ROOM, ref("ownOfRoom"), true, {
    name: maybe(NAME),
    modified_on: maybe(SEEN.modified_on),
  }),
  room: shown(ROOM, ref("ownOfRoom"), {
    ...ENTRY,
    ...TIMES,
    next_event_start_time: orNull(date()),
    next_event_prequeue_start_time: orNull(date()),
    deployed_as: maybe(text("the var that describes it: it cannot be changed here")),
    deleted_on: maybe(date()),
  }),
  rooms: list(ref("room")),
  newEvent: { ...newEvent, properties: { ...seenOf(NAME), ...newEvent.properties } },
  partOfEvent: taken(EVENT, ref("ownOfEvent"), true, {
    name: maybe(NAME),
    modified_on: maybe(SEEN.modified_on),
  }),
  event: shown(EVENT, ref("ownOfEvent"), { ...ENTRY, ...TIMES }),
  events: list(ref("event")),
  newRule,
  newRules: { ...list(withId), maxItems: 50 },
  partOfRule: taken(RULE, undefined, true, {
    position: maybe(orNull(object(POSITION, { additionalProperties: false }))),
  }),
  rules: list(shown(RULE, undefined, { id: ID, version: text(), last_updated: date() })),
  settings: object(
    { search_engine_crawler_bypass: maybe(orNull(flag("search engines' crawlers go past all rooms"))) },
    { additionalProperties: false },
  ),
  batch: {
    ...list(
      object(
        {
          method: one(["POST", "PUT", "PATCH", "DELETE"]),
          path: text(
            "below the rooms: empty for a new room, `/<room>/events`; `$0` is the id of what the first change has made",
          ),
          body: maybe(anything("as the endpoint takes it")),
        },
        { additionalProperties: false },
      ),
    ),
    maxItems: 1_000,
  },
  batched: list(anything("what the endpoint gives")),
  page: object({ custom_html: text("a template", { minLength: 1 }) }, { additionalProperties: false }),
  preview: object({ preview_url: text("for everybody who knows it", { format: "uri" }) }),
  status: object({
    status: one(["not_queueing", "queueing", "event_prequeueing", "suspended"]),
    event_id: text("the event that is on; empty: none"),
    estimated_queued_users: whole(),
    estimated_total_active_users: whole(),
    max_estimated_time_minutes: whole("0 where nobody waits, or nobody can tell"),
  }),
  newToken: object(
    {
      name: text("whose changes they are", { pattern: "^[A-Za-z0-9_-]{1,32}$" }),
      role: one(ROLES),
      expires_on: maybe(orNull(date("when it ends; without it never"))),
    },
    { additionalProperties: false },
  ),
  token: object(TOKEN),
  tokens: list(ref("token")),
  madeToken: object({ ...TOKEN, token: maybe(text("the token itself: it is not shown again")) }),
  newPlan: object(
    {
      set: open("fields that can be steered, and their values"),
      from: date("when it begins: within a year"),
      until: maybe(orNull(date("when it ends by itself; without it, it holds until it is cleared"))),
      weekly: maybe(flag("it comes back each week; it must end within a week then")),
      zone: maybe(text("in whose time of day it comes back, such as Europe/Berlin; UTC without it")),
      reason: maybe(text("why, for the log: one line", { maxLength: 200 })),
    },
    { additionalProperties: false },
  ),
  plan: object(PLAN),
  plans: list(ref("plan")),
  id: object({ id: ID }),
  log: list(
    object({
      id: whole(),
      at: date(),
      by: text("the name of a token"),
      method: text(),
      path: text("below `/__anteroom/client/v4/`"),
      before: anything(),
      after: anything(),
    }),
  ),
};

const problem = object({
  code: whole(),
  message: text(),
  source: maybe(
    object({
      pointer: text("a JSON pointer to the field"),
      column: maybe(whole("where in an expression: in characters, of Unicode, from 1", { minimum: 1 })),
    }),
  ),
});
const message = object({
  code: whole(),
  message: text("one sentence"),
  source: maybe(object({ pointer: text("a JSON pointer to the field that does it") })),
});
const envelope = (success, errors, result, more) =>
  object({
    success: { type: "boolean", const: success },
    errors,
    messages: list(ref("message"), "with `dry_run=true`: what the change does to those who wait and are in"),
    result,
    ...more,
  });
const PAGE = object({
  page: whole(),
  per_page: whole(),
  count: whole(),
  total_count: whole(),
  total_pages: whole(),
});

const REFUSED = {
  400: "a value is wrong or taken, or a deploy describes the room",
  401: "no token of this deployment",
  403: "the token's role is too small",
  404: "no such room, event or rule",
  413: "a body of more than 1.2 MiB",
  429: "too many requests: `retry-after` says when to go on",
  501: "the deployment has no binding CONFIG",
  503: "the object CONFIG does not answer",
};

const QUERY = {
  page: asked("page", whole("", { minimum: 1, default: 1 })),
  per_page: asked("per_page", whole("", { minimum: 1, maximum: 1_000, default: 25 })),
  deleted: asked("deleted", flag(), "true: the rooms that can be brought back"),
  dry_run: asked("dry_run", flag(), "true: all is checked and answered, and nothing changes"),
  before: asked("before", whole("", { minimum: 1, maximum: 2 ** 53 - 1 }), "the id of an entry: older ones"),
};

/** An endpoint as an operation. @param {import("./endpoints.js").Endpoint} endpoint */
function operation({ path, method, does, summary, takes, gives, query = [], role }) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const reads = method === "GET";
  const needs = role ?? (reads ? "view" : "configure");
  const statuses = [
    401,
    ...(reads ? [] : [400]),
    ...(needs === "view" ? [] : [403]),
    ...(takes ? [413] : []),
    429,
    501,
    503,
  ];
  if (names.some((name) => !["zone_id", "account_id"].includes(name))) statuses.push(404);
  if (query.includes("before")) statuses.push(400);
  const isPaged = query.includes("page");
  const result = envelope(true, { ...list(ref("problem")), maxItems: 0 }, ref(gives), {
    ...(isPaged && { result_info: PAGE }),
  });
  return {
    operationId: does,
    tags: [path.startsWith("tokens") ? "tokens" : "rooms"],
    summary,
    description: `Needs the role \`${needs}\`.`,
    parameters: [
      ...names.map((name) => ({ name, in: "path", required: true, schema: text() })),
      ...query.map((name) => QUERY[name]),
    ],
    ...(takes && { requestBody: { required: true, content: json(ref(takes)) } }),
    responses: {
      200: answer(summary, json(result)),
      ...Object.fromEntries(
        statuses.sort().map((status) => [status, { $ref: `#/components/responses/${status}` }]),
      ),
    },
    security: [{ bearer: [] }, { key: [] }, { serviceKey: [] }],
  };
}

function roomsPaths() {
  const paths = {};
  for (const endpoint of ENDPOINTS) {
    const path = `${ROOT}${endpoint.path}`;
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint) };
  }
  return paths;
}

/** What is for everybody, without a token. */
const EVERYBODY = {
  [`${ROOT}preview/{preview_id}`]: {
    get: {
      operationId: "showPreview",
      tags: ["everybody"],
      summary: "A page that is kept to be looked at",
      parameters: [
        { name: "preview_id", in: "path", required: true, schema: text() },
        asked("force_queue", flag()),
        asked("waitTime", whole("minutes")),
      ],
      responses: {
        200: answer("the page", { "text/html": { schema: text() } }),
        404: answer("there is none", { "text/plain": { schema: text() } }),
      },
      security: [],
    },
  },
  [PATH]: {
    get: {
      operationId: "describe",
      tags: ["everybody"],
      summary: "This document",
      responses: { 200: answer("this document", json({ type: "object" })) },
      security: [],
    },
  },
};

const header = (name) => ({ type: "apiKey", in: "header", name });

/** The document. @param {string} version of Anteroom */
export const openapi = (version) => ({
  openapi: "3.1.0",
  info: {
    title: "Anteroom",
    version,
    summary: "Waiting rooms: made, watched and steered",
    description:
      "Rooms, events and rules stand below `/__anteroom/client/v4`, as Cloudflare's clients call them; all else is for " +
      "operators. It is answered on every host that leads to the Worker.",
    license: { name: "Apache-2.0", identifier: "Apache-2.0" },
  },
  servers: [{ url: "/" }],
  tags: [
    { name: "rooms" },
    { name: "tokens" },
    { name: "operators" },
    { name: "health" },
    { name: "everybody" },
  ],
  paths: { ...roomsPaths(), ...operatorsPaths(tables.endpoints), ...EVERYBODY },
  components: {
    schemas: {
      problem,
      message,
      refusal: envelope(false, { ...list(ref("problem")), minItems: 1 }, { type: "null" }),
      ...SCHEMAS,
      ...OPERATORS_SCHEMAS,
    },
    responses: Object.fromEntries(
      Object.entries(REFUSED).map(([status, why]) => [status, answer(why, json(ref("refusal")))]),
    ),
    securitySchemes: {
      bearer: { type: "http", scheme: "bearer" },
      key: header("X-Auth-Key"),
      serviceKey: header("X-Auth-User-Service-Key"),
      session: { type: "apiKey", in: "cookie", name: "__anteroom_operator" },
      password: { type: "http", scheme: "basic" },
      webhook: header("cf-webhook-auth"),
    },
  },
});
