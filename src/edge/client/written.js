// Rooms and events that were made at run time, as vars would describe them; and those that vars describe, as the API shows
// them. The table of fields by which all of them are checked is in WebAssembly (`src/config/`).

import { ACTION, CODE, EVENT, given, OWN, pointerTo, problem, ROOM, withoutNulls } from "./fields.js";
import { namesOfSecrets } from "./tokens.js";

/** The names of pages that were made at run time begin so. */
export const MADE = "made-";
export const LONGEST_PAGE = 1 << 20;
/** Of so many rooms Workers know where they were. */
const MOST_GONE = 100;

/** Capitals do not matter in them. */
const ANY_CASE = ["queueing_method", "turnstile_mode", "turnstile_action"];
/** The values of Turnstile's fields, which are taken though a room has no site key. */
const TURNSTILE = {
  turnstile_mode: ["off", "invisible", "visible_non_interactive", "visible_managed"],
  turnstile_action: ["log", "infinite_queue"],
};
/** Of these a room may have another value among its own than Cloudflare's clients can send: a range, a built page. */
export const ALSO_OWN = [
  "total_active_users",
  "new_users_per_minute",
  "custom_page_html",
  "cookie_attributes",
];
const COOKIES = ["samesite", "secure"];

const lower = (value) => (typeof value === "string" ? value.toLowerCase() : value);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const theirsOf = ({ room }) => (room ? EVENT : ROOM);

/** The page that an entry brings: its name and its text. */
export function pageOf({ id, revision, fields }) {
  const html = given(fields, "custom_page_html");
  return typeof html === "string" && html !== "" ? { name: `${MADE}${id}-${revision}`, html } : undefined;
}

/**
 * @param {object} entry a room or an event
 * @param {boolean} hasSitekey whether the room has a widget of Turnstile
 */
function tableOf(entry, hasSitekey) {
  const table = {};
  for (const name of Object.keys(theirsOf(entry))) {
    const value = given(entry.fields, name);
    if (value === undefined) continue;
    if (name === "custom_page_html") {
      const page = pageOf(entry);
      if (page) table[name] = page.name;
    } else if (name in TURNSTILE && !hasSitekey) {
      // Clients send them always; without a widget they say nothing.
    } else if (name === "cookie_attributes" && isObject(value)) {
      table[name] = Object.fromEntries(
        Object.entries(withoutNulls(value)).map(([key, one]) => [key, lower(one)]),
      );
    } else if (name === "additional_routes" && Array.isArray(value)) {
      if (value.length > 0)
        table[name] = value.map((route) => (isObject(route) ? withoutNulls(route) : route));
    } else if (ANY_CASE.includes(name)) {
      table[name] = lower(value);
    } else if (name !== "cookie_suffix" || value !== "") {
      table[name] = value;
    }
  }
  for (const [name, value] of Object.entries(withoutNulls(ownOf(entry))))
    table[name] = name === "cookie_attributes" && isObject(value) ? { ...table[name], ...value } : value;
  return table;
}

const ownOf = ({ fields }) => (isObject(fields[OWN]) ? fields[OWN] : {});
const hasSitekey = (room) => typeof ownOf(room).turnstile_sitekey === "string";

/** The longest domain that all hosts of a room belong to, where it has several: Cloudflare's clients cannot name it. */
function sharedDomain({ host, additional_routes: routes = [] }) {
  const labels = (name) => name.replace(/\.$/, "").toLowerCase().split(".").reverse();
  if (typeof host !== "string" || !Array.isArray(routes)) return undefined;
  const hosts = [host, ...routes.map((route) => route?.host).filter((name) => typeof name === "string")];
  const [first, ...others] = hosts.map(labels);
  if (others.every((other) => other.join() === first.join())) return undefined;
  const length = first.findIndex((label, place) => others.some((other) => other[place] !== label));
  const shared = length < 0 ? first : first.slice(0, length);
  return shared.length >= 2 ? shared.reverse().join(".") : undefined;
}

function tableOfRoom(room, rules) {
  const table = tableOf(room, hasSitekey(room));
  if (rules?.rules.length > 0)
    table.bypass_rules = rules.rules.map(({ fields }) => {
      const { expression, description, enabled } = withoutNulls(fields);
      return {
        expression,
        ...(description !== undefined && { description }),
        ...(enabled !== undefined && { enabled }),
      };
    });
  const domain = sharedDomain(table);
  if (domain) table.cookie_attributes = { domain, ...table.cookie_attributes };
  return table;
}

export const isThere = ({ deleted }) => deleted === undefined;
export const liveRooms = (book) => book.rooms.filter(isThere);
export const liveEvents = (book) =>
  book.events.filter(
    (event) => isThere(event) && book.rooms.some((room) => room.id === event.room && isThere(room)),
  );

/**
 * Where rooms were that have moved; and deleted ones whose owner wants those who wait to be told. The latest come first: of two
 * in one place it counts alone.
 */
const goneRooms = (book) =>
  book.rooms
    .filter((room) => (isThere(room) ? room.former : ownOf(room).when_deleted === "page"))
    .sort((one, other) => other.modified - one.modified)
    .slice(0, MOST_GONE)
    .map((room) => ({ ...room, fields: { ...room.fields, ...(isThere(room) && room.former) } }));

/**
 * What Workers and objects learn of the book: rooms and events as vars would describe them, by their ids, with the names that
 * people call the rooms by; and by what to know the tokens. `src/config/made.rs` reads it.
 */
export function documentOf(book) {
  return {
    v: 1,
    version: book.version,
    crawlers: book.crawlers,
    rooms: liveRooms(book).map((room) => [room.id, room.name, tableOfRoom(room, book.rules[room.id])]),
    events: liveEvents(book).map((event) => {
      const room = book.rooms.find(({ id }) => id === event.room);
      return [event.id, event.name, { ...tableOf(event, hasSitekey(room)), room: event.room }];
    }),
    gone: goneRooms(book).map((room) => [room.id, room.name, tableOfRoom(room)]),
    tokens: book.tokens
      .filter(({ revoked }) => revoked === undefined)
      .map(({ name, role, hash, ends }) => [name, role, hash, ends]),
  };
}

/** What is wrong with a room or an event that no table of vars would show. @param {object} [room] the event's */
export function judge(entry, room) {
  const { fields } = entry;
  if ((fields[OWN] ?? undefined) !== undefined && !isObject(fields[OWN]))
    return [problem(CODE.value, `${OWN} must be an object`, pointerTo(OWN))];
  const problems = [];
  const wrong = (name, message) => problems.push(problem(CODE.value, `${name} ${message}`, pointerTo(name)));
  for (const [name, values] of Object.entries(TURNSTILE)) {
    const value = given(fields, name);
    if (value !== undefined && !hasSitekey(room ?? entry) && !values.includes(lower(value)))
      wrong(name, `must be one of ${values.join(", ")}`);
  }
  for (const name of Object.keys(withoutNulls(ownOf(entry)))) {
    const says =
      name === "bypass_rules"
        ? "stands in the room's rules"
        : name === "room"
          ? "is said by the address"
          : Object.hasOwn(theirsOf(entry), name) && !ALSO_OWN.includes(name) && `stands outside of ${OWN}`;
    if (says) problems.push(problem(CODE.value, `${name} ${says}`, pointerTo(OWN, name)));
  }
  for (const name of ["cookie_attributes", "custom_page_html"]) {
    const value = given(fields, name);
    const type = name === "custom_page_html" ? typeof value === "string" : isObject(value);
    if (value !== undefined && !type)
      wrong(name, name === "custom_page_html" ? "must be text" : "must be an object");
  }
  const { length } = pageOf(entry)?.html ?? "";
  if (length > LONGEST_PAGE)
    wrong("custom_page_html", `may have ${LONGEST_PAGE} characters, this one has ${length}`);
  return problems;
}

/**
 * What the table of fields says, for whoever has sent them.
 * @param {{ part: "room" | "event", field: string, message: string, fix: string, excerpt: string }} error
 * @param {boolean} inList the body is a list of rules
 */
export function problemOf({ part, field, message, fix, excerpt }, inList) {
  const [first, ...rest] = field.split(".");
  const theirs = part === "event" ? EVENT : ROOM;
  const [, place, column] = /^is rule (\d+)(?:; column (\d+):)?/.exec(message) ?? [];
  const pointer =
    first === "bypass_rules"
      ? (inList && place ? pointerTo(place - 1) : "") + pointerTo(rest[0] ?? "expression")
      : first === "additional_routes"
        ? pointerTo(first)
        : first === "name" ||
            (Object.hasOwn(theirs, first) && (rest.length === 0 || COOKIES.includes(rest[0])))
          ? pointerTo(first, ...rest)
          : pointerTo(OWN, first, ...rest);
  const isTaken = / already$|^is before the end|^is the name of another/.test(message);
  const code = isTaken ? CODE.taken : message.startsWith("is one room too many") ? CODE.bound : CODE.value;
  const text = `${field} ${message}. Fix: ${fix}${excerpt && `\n${excerpt}`}`;
  return problem(code, text, pointer, column && Number(column));
}

/** An id that follows from what it is for: always the same. */
export async function derivedId(of, name) {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`${of}\0${name}`));
  return [...new Uint8Array(bytes, 0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * What a deploy describes, as the API shows it.
 * @param {Record<string, any>} env its vars
 * @param {string[]} broken the names of rooms and events that do not work
 */
export async function readDeployed(env, broken) {
  const deployed = {
    rooms: [],
    events: [],
    rules: {},
    crawlers: env.SEARCH_ENGINE_CRAWLER_BYPASS === "true",
    secrets: namesOfSecrets(env),
  };
  const vars = (prefix) =>
    Object.entries(env).filter(
      ([name, value]) =>
        name.startsWith(prefix) &&
        isObject(value) &&
        !broken.includes(name.slice(prefix.length).toLowerCase()),
    );
  for (const [name, own] of vars("ROOM_")) {
    const label = name.slice(5).toLowerCase();
    const shared = { ...(isObject(env.DEFAULTS) ? env.DEFAULTS : {}) };
    for (const [one, other] of [
      ["origin", "origin_service"],
      ["origin_service", "origin"],
    ])
      if (one in own) delete shared[other];
    const id = await derivedId("room", label);
    const { bypass_rules: rules = [], ...table } = { host: "", ...shared, ...own };
    deployed.rooms.push(entryOf(id, label, name, table, ROOM));
    deployed.rules[id] = {
      rules: await Promise.all(rules.map((rule, place) => ruleOf(label, rule, place))),
      gone: [],
    };
  }
  for (const [name, { room, ...table }] of vars("EVENT_")) {
    const label = name.slice(6).toLowerCase();
    const of = deployed.rooms.find((one) => one.name === `${room}`.toLowerCase());
    if (of)
      deployed.events.push({
        ...entryOf(await derivedId("event", label), label, name, table, EVENT),
        room: of.id,
      });
  }
  return deployed;
}

async function ruleOf(room, rule, place) {
  const fields = { action: ACTION, ...(isObject(rule) ? rule : { expression: rule }) };
  return { id: await derivedId("rule", `${room} ${place}`), version: 1, fields, modified: 0 };
}

/** A table of vars as an entry. */
function entryOf(id, name, variable, table, theirs) {
  const [fields, own] = [{}, {}];
  for (const [field, value] of Object.entries(table)) {
    if (!Object.hasOwn(theirs, field) || field === "custom_page_html") own[field] = value;
    else if (field === "cookie_attributes") {
      const { samesite, secure, ...more } = value;
      fields[field] = withoutNulls({ samesite: samesite ?? null, secure: secure ?? null });
      if (Object.keys(more).length > 0) own[field] = more;
    } else if (isObject(value)) {
      // A range: its upper end is the most there can be.
      fields[field] = value.max;
      own[field] = value;
    } else fields[field] = value;
  }
  if (Object.keys(own).length > 0) fields[OWN] = own;
  return { id, name, fields, created: 0, modified: 0, variable };
}
