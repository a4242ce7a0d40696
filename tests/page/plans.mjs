// What Terraform's provider sends and then reads: all that was sent comes back byte for byte, or its next plan is not empty. The
// same cases for the API as a machine (client.test.mjs) and for the Worker in workerd (edge/plans.test.mjs).
import assert from "node:assert/strict";
import { ROOM as FIELDS, REQUIRED } from "../../src/edge/client/fields.js";

export const ROOM = {
  name: "Sale",
  host: "shop.example.com",
  total_active_users: 300,
  new_users_per_minute: 200,
};
export const EVENT = {
  name: "night",
  event_start_time: "2030-11-28T09:00:00Z",
  event_end_time: "2030-11-28T19:00:00Z",
};
export const RULE = { action: "bypass_waiting_room", expression: "ip.src eq 192.0.2.1" };

// The provider sends them only where they are written.
const WRITTEN = ["additional_routes", "cookie_attributes", "enabled_origin_commands"];
const DEFAULTS = Object.fromEntries(
  Object.entries(FIELDS).filter(([name, value]) => value !== REQUIRED && !WRITTEN.includes(name)),
);

const ROOMS = {
  "with all defaults": {},
  "with every field": {
    name: "Shop_Room-1",
    path: "/Sale/",
    additional_routes: [
      { host: "Shop2.example.com", path: "/sale/" },
      { host: "shop.example.com", path: "/z" },
    ],
    cookie_attributes: { samesite: "none", secure: "always" },
    cookie_suffix: "sale",
    custom_page_html: "<p>\u00a0{{#waitTimeKnown}} {{waitTime}} mins\r\n{{/waitTimeKnown}}</p>",
    default_template_language: "de-DE",
    description: "Sale  \ud83d\udecd",
    enabled_origin_commands: ["revoke"],
    json_response_enabled: true,
    queueing_method: "FIFO",
    queueing_status_code: 202,
    session_duration: 30,
    disable_session_renewal: true,
    suspended: true,
    turnstile_mode: "Visible_Managed",
    turnstile_action: "INFINITE_QUEUE",
  },
  "with capitals": {
    host: "SHOP.Example.COM",
    path: "/SALE",
    cookie_attributes: { samesite: "Auto", secure: "AUTO" },
    queueing_method: "Random",
    turnstile_mode: "OFF",
  },
  "with empty lists": { additional_routes: [], enabled_origin_commands: [] },
  "with an escaped path": { path: "/caf%C3%A9/%7Euser/", description: ' "quoted"\t\\ ' },
};

const EVENTS = {
  "with what it must have": {},
  "with offsets and fractions": {
    event_start_time: "2030-11-28T09:00:00+01:00",
    event_end_time: "2030-11-28T19:00:00.000-00:30",
    prequeue_start_time: "2030-11-28T07:00:00.5Z",
  },
  "with other values": {
    description: "",
    shuffle_at_event_start: true,
    prequeue_start_time: "2030-11-28T08:30:00Z",
    suspended: false,
    total_active_users: 500,
    new_users_per_minute: 400,
    session_duration: 1,
    disable_session_renewal: false,
    queueing_method: "Random",
    custom_page_html: "",
    turnstile_mode: "OFF",
    turnstile_action: "log",
  },
};

const equals = (read, sent) => {
  for (const [field, value] of Object.entries(sent)) assert.deepEqual(read[field], value, field);
};

/** @typedef {(method: string, path: string, body?: unknown) => any} Did what the API makes of a request, which it must take */

/** @param {Did} did */
async function provesRoom(did, more) {
  const sent = { ...ROOM, ...DEFAULTS, ...more };
  const { id } = await did("POST", "", sent);
  const read = () => did("GET", `/${id}`);
  equals(await read(), sent);
  const changed = { ...sent, queue_all: true, description: "later" };
  await did("PUT", `/${id}`, changed);
  equals(await read(), changed);
  // An optional field that was taken out comes as null, and is what it is by default.
  await did("PUT", `/${id}`, {
    ...changed,
    ...{ additional_routes: null, cookie_attributes: null, enabled_origin_commands: null, path: null },
  });
  const { additional_routes, cookie_attributes, enabled_origin_commands, path } = await read();
  assert.deepEqual(
    [additional_routes, cookie_attributes, enabled_origin_commands, path],
    [[], { samesite: "auto", secure: "auto" }, [], "/"],
  );
  await did("DELETE", `/${id}`);
}

/** @param {Did} did */
async function provesEvent(did, more) {
  const room = await did("POST", "", ROOM);
  const sent = { ...EVENT, ...more };
  const { id } = await did("POST", `/${room.id}/events`, sent);
  const read = await did("GET", `/${room.id}/events/${id}`);
  equals(read, sent);
  for (const field of ["total_active_users", "session_duration", "queueing_method", "custom_page_html"])
    if (!(field in sent)) assert.equal(read[field], null, `${field} is inherited`);
  assert.equal((await did("GET", `/${room.id}`)).next_event_start_time, sent.event_start_time);
  const details = await did("GET", `/${room.id}/events/${id}/details`);
  const open = Object.keys(details).filter((field) => details[field] === null);
  assert.deepEqual(open, sent.prequeue_start_time ? [] : ["prequeue_start_time"]);
  const changed = { ...sent, description: "later", session_duration: null, prequeue_start_time: null };
  await did("PUT", `/${room.id}/events/${id}`, { ...changed, shuffle_at_event_start: false });
  equals(await did("GET", `/${room.id}/events/${id}`), { ...changed, shuffle_at_event_start: false });
  await did("DELETE", `/${room.id}`);
}

/** @param {Did} did */
async function provesRules(did) {
  const { id } = await did("POST", "", ROOM);
  const rules = [
    { ...RULE, description: "", enabled: true },
    { ...RULE, expression: ' http.host  eq\t"a" ', description: "ours", enabled: false },
  ];
  const first = await did("PUT", `/${id}/rules`, rules);
  const read = await did("GET", `/${id}/rules`);
  assert.deepEqual(read, first);
  rules.forEach((rule, place) => void equals(read[place], rule));
  assert.deepEqual(
    await did("PUT", `/${id}/rules`, rules.toReversed()),
    first.toReversed(),
    "their ids stay",
  );
  assert.deepEqual(await did("PUT", `/${id}/rules`, []), []);
  await did("DELETE", `/${id}`);
}

/** What, and its proof. @type {[string, (did: Did) => Promise<void>][]} */
export const PLANS = [
  ...Object.entries(ROOMS).map(([what, more]) => [`of a room ${what}`, (did) => provesRoom(did, more)]),
  ...Object.entries(EVENTS).map(([what, more]) => [`of an event ${what}`, (did) => provesEvent(did, more)]),
  ["of rules", provesRules],
];
