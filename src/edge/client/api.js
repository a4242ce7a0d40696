// The endpoints of the API that Cloudflare's own clients drive: what each asks of the book, and changes in it. Nothing here
// reads a clock, draws a random number or stores anything: `config.js` does.
import { matters } from "./effects.js";
import { endpointsAt } from "./endpoints.js";
import {
  ACTION,
  CODE,
  EVENT,
  given,
  missing,
  OWN,
  pointerTo,
  problem,
  ROOM,
  RULE,
  shownDetails,
  shownEvent,
  shownRoom,
  shownRules,
  takeKnown,
} from "./fields.js";
import { judgePlan, MOST_PLANS, orderOf, planOf, shownPlan } from "./plans.js";
import { judgeToken, MOST_TOKENS, ROLES, shownToken } from "./tokens.js";
import { documentOf, isThere, judge, liveRooms, pageOf, problemOf } from "./written.js";

/**
 * A room, or an event of one. `fields`: all that was sent but the name, as it was sent.
 * @typedef {{ v: 1, id: string, room?: string, name: string, fields: Record<string, any>, order: number, revision: number,
 *   created: number, modified: number, by: string, deleted?: number, variable?: string,
 *   former?: { host: string, path: string } }} Entry `former`: where a room was before it moved
 * @typedef {{ id: string, version: number, fields: Record<string, any>, modified: number }} Rule
 * @typedef {{ v: 1, rules: Rule[], gone: string[] }} Rules in their order, and the ids of the last that were deleted
 */

/**
 * All that was made at run time. `version` counts its changes; rooms and events are in the order in which they were made, and
 * for a while those that were deleted are among them; `rules` by room; `crawlers`: whether search engines' crawlers go past
 * all rooms, null: as deployed; `previews`: until when each page is kept that somebody wants to look at.
 * @typedef {{ version: number, rooms: Entry[], events: Entry[], rules: Record<string, Rules>, crawlers: boolean | null,
 *   previews: Record<string, number>, tokens: import("./tokens.js").Token[], plans: import("./plans.js").Plan[] }} Book
 */

/**
 * What is asked.
 * @typedef {object} Ask
 * @property {string} by the name of the caller's token
 * @property {"view" | "steer" | "configure"} role
 * @property {string} method
 * @property {string} path below `/client/v4/`, as it was sent
 * @property {string} query without `?`
 * @property {string} body may be empty
 * @property {string} base scheme and host by which the API was called
 * @property {number} now milliseconds since the epoch
 * @property {() => string} newId 32 hex digits at random
 * @property {{ text: string, hash: string }} newToken drawn at random
 * @property {{ status: number, body: any }} [judged] what the room's object says of the order that an outcome has named
 */

/**
 * What comes of it. `look`: the room whose object says its status; `order`: what is asked is to be asked
 * again with what a room's object says of this order, which it must not carry out; `entries`: the log is asked for its entries before one;
 * `allow`: the methods that there are; `pages`: new ones, which must be good; `weighs`: a change that is only tried, of which
 * `effects.js` says what it does to those whom the room's object counts; `written`: what is to be stored before the answer
 * leaves: rows by their keys (undefined: removed), what was before and is then.
 * @typedef {{ status: number, body: object, look?: string, order?: { room: string, by: string, order: object },
 *   entries?: { before: number }, allow?: string, pages?: { key?: string, html: string, pointer: string }[],
 *   weighs?: Weighed | Weighed[],
 *   written?: { book: Book, rows: Record<string, object | undefined>, before: any, after: any } }} Outcome
 */

/**
 * `at`: in front of the pointers to its fields, where it is one of several.
 * @typedef {{ room: string, change: import("./effects.js").Change, at?: string }} Weighed
 */

/** Who repeats a request that was lost within so many milliseconds is answered as before. */
const REPEATED = 600_000;
/** How long a deleted room can be brought back, in milliseconds. */
const DAY = 86_400_000;
const KEPT = 30 * DAY;
const PREVIEW_KEPT = 7 * DAY;
const MOST_PREVIEWS = 50;
const MOST_EVENTS = 100;
/** How many changes may be made as one. */
const MOST_CHANGES = 1_000;
/** How many ids of deleted rules are remembered. */
const MOST_GONE = 20;
/** Of all pages together, in characters: the book is as a whole in memory. */
const MOST_PAGES = 16 << 20;
/** What the storage takes as one value, in characters: each may be four bytes. */
const LONGEST_ROW = 1_900_000;
const CRAWLERS = "search_engine_crawler_bypass";
/** What cannot change while a room's objects live. */
const FIXED = "slot_strategy";
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const STEERED_ROOM = ["total_active_users", "new_users_per_minute", "queue_all", "suspended"];
const STEERED_EVENT = ["event_start_time", "event_end_time"];

/** @returns {Book} */
export const newBook = () => ({
  version: 0,
  rooms: [],
  events: [],
  rules: {},
  crawlers: null,
  previews: {},
  tokens: [],
  plans: [],
});

/** Reads the rows of a book. @param {[key: string, value: any][]} rows @returns {Book} */
export function readBook(rows) {
  const book = newBook();
  for (const [key, value] of rows) {
    const [kind, id] = key.split("/", 2);
    if (kind === "meta") book.version = value.version;
    else if (kind === "settings") book.crawlers = value[CRAWLERS] ?? null;
    else if (kind === "room") book.rooms.push(value);
    else if (kind === "event") book.events.push(value);
    else if (kind === "rules") book.rules[id] = value;
    else if (kind === "token") book.tokens.push(value);
    else if (kind === "plan") book.plans.push(value);
    else if (kind === "preview") book.previews[id] = value.until;
  }
  for (const entries of [book.rooms, book.events]) entries.sort((one, other) => one.order - other.order);
  book.tokens.sort((one, other) => one.created - other.created);
  return book;
}

/** What each endpoint does, by its name in the table. @type {Record<string, (api: Api, names: Record<string, string>) => Outcome>} */
const DOES = {
  listRooms: (api) => api.listRooms(),
  listRoomsOfAccount: (api) => api.listRooms(),
  createRoom: (api) => api.createRoom(),
  listTokens: (api) => api.listTokens(),
  createToken: (api) => api.createToken(),
  revokeToken: (api, { token_id: id }) => api.revokeToken(id),
  getSettings: (api) => api.settings(),
  putSettings: (api) => api.changeSettings(false),
  patchSettings: (api) => api.changeSettings(true),
  preview: (api) => api.preview(),
  batch: (api) => api.batch(),
  getLog: (api) => api.log(),
  getRoom: (api, { waiting_room_id: id }) => answered(api.shown(api.room(id))),
  putRoom: (api, { waiting_room_id: id }) => api.changeRoom(id, false),
  patchRoom: (api, { waiting_room_id: id }) => api.changeRoom(id, true),
  deleteRoom: (api, { waiting_room_id: id }) => api.deleteRoom(id),
  getStatus: (api, { waiting_room_id }) => {
    return { ...answered(null), look: objectsOf(api.room(waiting_room_id)) };
  },
  restoreRoom: (api, { waiting_room_id: id }) => api.restore(id),
  listEvents: (api, { waiting_room_id: id }) => api.page(api.eventsOf(api.room(id)).map(shownEvent)),
  createEvent: (api, { waiting_room_id: id }) => api.createEvent(api.ownRoom(id)),
  getEvent: (api, { waiting_room_id: id, event_id }) =>
    answered(shownEvent(api.event(api.room(id), event_id))),
  putEvent: (api, { waiting_room_id: id, event_id }) => api.changeEvent(api.ownRoom(id), event_id, false),
  patchEvent: (api, { waiting_room_id: id, event_id }) => api.changeEvent(api.ownRoom(id), event_id, true),
  deleteEvent: (api, { waiting_room_id: id, event_id }) => api.deleteEvent(api.ownRoom(id), event_id),
  getEventDetails: (api, { waiting_room_id, event_id }) => {
    const room = api.room(waiting_room_id);
    return answered(shownDetails(api.event(room, event_id), room));
  },
  listPlans: (api, { waiting_room_id: id }) => api.page(api.plansOf(api.room(id)).map(shownPlan)),
  createPlan: (api, { waiting_room_id: id }) => api.createPlan(api.room(id)),
  deletePlan: (api, { waiting_room_id: id, plan_id }) => api.deletePlan(api.room(id), plan_id),
  listRules: (api, { waiting_room_id: id }) => answered(shownRules(api.rulesOf(api.room(id)))),
  createRule: (api, { waiting_room_id: id }) => api.createRule(api.ownRoom(id)),
  putRules: (api, { waiting_room_id: id }) => api.putRules(api.ownRoom(id)),
  patchRule: (api, { waiting_room_id: id, rule_id }) => api.changeRule(api.ownRoom(id), rule_id),
  deleteRule: (api, { waiting_room_id: id, rule_id }) => api.deleteRule(api.ownRoom(id), rule_id),
};

/** What may be one of several changes: those of rooms, events and rules. */
const ONE_OF_SEVERAL = Object.keys(DOES).filter((name) =>
  /^(create|put|patch|delete)(Room|Event|Rules?)$/.test(name),
);

/** By which name a room's objects go. @param {Entry} room */
export const objectsOf = ({ variable, id, name }) => (variable ? name : id);

class Refused extends Error {
  constructor(status, problems) {
    super();
    this.status = status;
    this.problems = problems;
  }
}

const refuse = (status, code, message, pointer) => {
  throw new Refused(status, [problem(code, message, pointer)]);
};
const refuseAll = (problems) => {
  if (problems.length > 0) throw new Refused(400, problems);
};

export const envelope = (result, info) => ({
  success: true,
  errors: [],
  messages: [],
  result,
  ...(info && { result_info: info }),
});
/** @returns {Outcome} */
export const refusal = (status, problems) => ({
  status,
  body: { success: false, errors: problems, messages: [], result: null },
});
const answered = (result) => ({ status: 200, body: envelope(result) });

/** The same values, in whatever order. */
function isSame(one, other) {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null)
    return one === other;
  const keys = Object.keys(one);
  return (
    Array.isArray(one) === Array.isArray(other) &&
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]))
  );
}

/**
 * Answers a request.
 * @param {Book} book
 * @param {Awaited<ReturnType<typeof import("./written.js").readDeployed>>} deployed
 * @param {(document: object) => object[]} check what the table of fields says of a document with what is deployed
 * @param {Ask} ask
 * @returns {Outcome}
 */
export function handle(book, deployed, check, ask) {
  try {
    return new Api(book, deployed, check, ask).route();
  } catch (error) {
    if (error instanceof Refused) return refusal(error.status, error.problems);
    throw error;
  }
}

class Api {
  /** @param {object} [draft] what it goes on with, as one of several changes; it is checked and stored by whoever began it */
  constructor(book, deployed, check, ask, draft) {
    Object.assign(this, { book, deployed, check, ask, draft });
    this.query = new URLSearchParams(ask.query);
  }

  route() {
    const { here, names } = endpointsAt(this.ask.path);
    if (here.length === 0) return refuse(404, CODE.route, "There is no such endpoint");
    const method = this.ask.method === "HEAD" ? "GET" : this.ask.method;
    const endpoint = here.find((one) => one.method === method);
    if (endpoint) return DOES[endpoint.does](this, names);
    const methods = here.flatMap((one) => (one.method === "GET" ? ["GET", "HEAD"] : [one.method])).join(", ");
    const refused = [problem(CODE.method, `${this.ask.method} is not answered here, only ${methods}`)];
    return { ...refusal(405, refused), allow: methods };
  }

  /** Lets nobody change anything whose token is not for it. */
  may(least) {
    const { by, role } = this.ask;
    if (ROLES.indexOf(role) < ROLES.indexOf(least))
      refuse(403, CODE.caller, `The token of ${by} has the role ${role}; this takes ${least}`);
  }

  /** @returns {Entry} */
  room(id) {
    const all = [...liveRooms(this.book), ...this.deployed.rooms];
    return (
      all.find((room) => room.id === id) ?? refuse(404, CODE.unknown, "There is no waiting room of this id")
    );
  }

  /** A room that was made at run time. */
  ownRoom(id) {
    const room = this.room(id);
    if (room.variable)
      refuse(400, CODE.deployed, `The room is deployed as ${room.variable}: change it there, and deploy`);
    return room;
  }

  eventsOf({ id }) {
    return [...this.book.events.filter(isThere), ...this.deployed.events].filter(({ room }) => room === id);
  }

  event(room, id) {
    const event = this.eventsOf(room).find((event) => event.id === id);
    return event ?? refuse(404, CODE.unknown, "There is no event of this id");
  }

  /** @returns {Rules} */
  rulesOf({ id }) {
    return this.book.rules[id] ?? this.deployed.rules[id] ?? { v: 1, rules: [], gone: [] };
  }

  shown(room) {
    const begin = ({ fields }) => Date.parse(fields.prequeue_start_time ?? fields.event_start_time);
    const ahead = this.eventsOf(room)
      .filter((event) => event.fields.suspended !== true && begin(event) > this.ask.now)
      .sort((one, other) => begin(one) - begin(other));
    return shownRoom(room, ahead[0]?.fields);
  }

  /** A page of a list. Clients ask for one after the other until one is empty. */
  page(all) {
    const number = (name, otherwise, most) => {
      // Some clients write `2.0`.
      const asked = Number(this.query.get(name) ?? otherwise);
      return Number.isInteger(asked) && asked >= 1 ? Math.min(asked, most) : otherwise;
    };
    const [page, perPage] = [number("page", 1, Number.MAX_SAFE_INTEGER), number("per_page", 25, 1_000)];
    const result = all.slice((page - 1) * perPage, page * perPage);
    const info = {
      page,
      per_page: perPage,
      count: result.length,
      total_count: all.length,
      total_pages: Math.ceil(all.length / perPage),
    };
    return { status: 200, body: envelope(result, info) };
  }

  listRooms() {
    const isGone = this.query.get("deleted") === "true";
    const rooms = isGone
      ? this.book.rooms.filter((room) => !isThere(room))
      : [...this.deployed.rooms, ...liveRooms(this.book)];
    return this.page(rooms.map((room) => this.shown(room)));
  }

  /** The body, which must be an object, or a list. */
  body(isList = false) {
    let body;
    try {
      body = JSON.parse(this.ask.body);
    } catch (error) {
      refuse(400, CODE.body, `The body must be JSON: ${error.message}`);
    }
    if (typeof body !== "object" || body === null || Array.isArray(body) !== isList)
      refuse(400, CODE.body, `The body must be a JSON ${isList ? "array" : "object"}`);
    return body;
  }

  /**
   * Begins the next state of the book. What was deleted long ago goes.
   * @param {boolean} [isLearned] it is a version of its own, which Workers have to learn
   */
  begin(isLearned = true) {
    if (this.draft) return this.draft;
    const { now } = this.ask;
    const book = structuredClone(this.book);
    const rows = {};
    if (isLearned) {
      book.version += 1;
      rows.meta = { v: 1, version: book.version };
    }
    const isOver = ({ deleted }) => deleted + KEPT < now;
    const isRoomOver = (id) => book.rooms.some((room) => room.id === id && isOver(room));
    for (const event of book.events.filter((event) => isOver(event) || isRoomOver(event.room)))
      rows[`event/${event.id}`] = undefined;
    for (const { id } of book.rooms.filter(isOver)) {
      rows[`room/${id}`] = undefined;
      rows[`rules/${id}`] = undefined;
      delete book.rules[id];
      for (const plan of book.plans.filter(({ room }) => room === id)) rows[`plan/${plan.id}`] = undefined;
    }
    book.events = book.events.filter(({ id }) => !(`event/${id}` in rows));
    book.rooms = book.rooms.filter(({ id }) => !(`room/${id}` in rows));
    for (const { id } of book.tokens.filter(({ revoked, ends }) => (revoked ?? ends ?? now) + KEPT < now))
      rows[`token/${id}`] = undefined;
    book.tokens = book.tokens.filter(({ id }) => !(`token/${id}` in rows));
    book.plans = book.plans.filter(({ id }) => !(`plan/${id}` in rows));
    for (const id of Object.keys(book.previews).filter((id) => book.previews[id] < now)) {
      rows[`preview/${id}`] = undefined;
      delete book.previews[id];
    }
    return { book, rows };
  }

  /** Puts a room or an event into a book, in the place of what has its id. */
  set({ book, rows }, entry) {
    const { now, by } = this.ask;
    const set = { ...entry, revision: book.version, modified: now, by };
    const [entries, kind] = entry.room ? [book.events, "event"] : [book.rooms, "room"];
    const at = entries.findIndex(({ id }) => id === entry.id);
    entries.splice(at < 0 ? entries.length : at, 1, set);
    this.lay(rows, `${kind}/${entry.id}`, set);
  }

  /** Puts a row into a draft, and keeps which change did. */
  lay(rows, key, row, inList = false) {
    rows[key] = row;
    this.draft?.places.set(key, { place: this.draft.place, inList });
  }

  /**
   * Ends a change: checks all there is then by the table of fields.
   * @param {(api: Api) => any} result what is answered, by the new book
   * @param {any} before what there was
   * @param {(error: object) => object} tell what an error of the table of fields is for whoever has sent it
   */
  write({ book, rows }, result, before, tell = (error) => problemOf(error, false)) {
    if (this.draft) {
      this.draft.before.push(before);
      return answered(result(new Api(book, this.deployed, this.check, this.ask)));
    }
    const known = this.check(documentOf(this.book)).map((error) => JSON.stringify(error));
    const found = this.check(documentOf(book)).filter((error) => !known.includes(JSON.stringify(error)));
    const named = (text) =>
      [...book.rooms, ...book.events].reduce((text, { id, name }) => text.replaceAll(id, name), text);
    refuseAll(found.map((error) => tell({ ...error, message: named(error.message) })));
    const keyOf = (entry) => `${entry.room ? "event" : "room"}/${entry.id}`;
    const pages = [...book.rooms, ...book.events]
      .map((entry) => ({ key: keyOf(entry), ...pageOf(entry) }))
      .filter(({ html }) => html);
    const pointer = pointerTo("custom_page_html");
    if (pages.reduce((sum, { html }) => sum + html.length, 0) > MOST_PAGES)
      refuse(400, CODE.bound, `All pages together may have ${MOST_PAGES} characters`, pointer);
    if (Object.values(rows).some((row) => row && JSON.stringify(row).length > LONGEST_ROW))
      refuse(400, CODE.bound, `It may have ${LONGEST_ROW} characters in all`);
    const old = [...this.book.rooms, ...this.book.events].map((entry) => pageOf(entry)?.name);
    const after = result(new Api(book, this.deployed, this.check, this.ask));
    const isNew = ({ name }) => !old.includes(name);
    const outcome = {
      ...answered(after),
      pages: pages.filter(isNew).map(({ key, html }) => ({ key, html, pointer })),
    };
    return this.isTried() ? outcome : { ...outcome, written: { book, rows, before, after } };
  }

  /** Whether nothing is to be changed. */
  isTried() {
    return this.query.get("dry_run") === "true";
  }

  /** Where a change is only tried: what it does to those who wait and are in is to be said. @param {Entry} room */
  weighed(outcome, room, before, after, isEvent = false) {
    // Nobody is in a room that is made only now.
    if (!this.isTried() || (this.draft && room.created === this.ask.now)) return outcome;
    // A page may be long, and nothing goes by it.
    const light = (shown) => shown && { ...shown, custom_page_html: null };
    const change = {
      before: light(before),
      after: light(after),
      isEvent,
      room: light(this.shown(room)),
      events: this.eventsOf(room).map((event) => light(shownEvent(event))),
      now: this.ask.now,
    };
    return matters(change) ? { ...outcome, weighs: { room: objectsOf(room), change } } : outcome;
  }

  /** Puts a room or an event into the book, and answers with it. */
  put(entry, room, before = null) {
    const others = room ? this.eventsOf(room) : [...liveRooms(this.book), ...this.deployed.rooms];
    const isTaken = others.some(
      ({ id, name }) => id !== entry.id && name.toLowerCase() === entry.name.toLowerCase(),
    );
    const taken = `name "${entry.name}" is that of another ${room ? "event of this room" : "room"}`;
    refuseAll([...judge(entry, room), ...(isTaken ? [problem(CODE.taken, taken, pointerTo("name"))] : [])]);
    const draft = this.begin();
    this.set(draft, entry);
    const shown = (api) => (room ? shownEvent(api.event(room, entry.id)) : api.shown(api.room(entry.id)));
    return this.write(draft, shown, before);
  }

  /** A room or an event of a body. */
  created(theirs, room) {
    const { name, ...fields } = this.body();
    refuseAll([...takeKnown(fields, theirs, [OWN]), ...judgeName(name), ...missing(fields, theirs)]);
    const { now, newId } = this.ask;
    return {
      v: 1,
      id: newId(),
      ...(room && { room }),
      name,
      fields,
      order: this.draft ? this.book.version + this.draft.place / MOST_CHANGES : this.book.version + 1,
      created: now,
    };
  }

  /** What was made of the same body a moment ago: its maker has not heard of it. */
  madeLately({ name, fields }, all) {
    return all.find(
      (entry) =>
        entry.name === name &&
        entry.created === entry.modified &&
        this.ask.now < entry.created + REPEATED &&
        isSame(entry.fields, fields),
    );
  }

  /** What an entry is after a PUT or a PATCH. */
  changed(entry, theirs, isPart) {
    const { name, modified_on: seen, ...sent } = this.body();
    const problems = takeKnown(sent, theirs, [OWN]);
    const steers = this.ask.role === "steer" && isPart && name === undefined && isSteered(sent, entry);
    if (!steers) this.may("configure");
    // Who sends back what was read says what was seen.
    const shown = entry.room ? shownEvent(entry) : this.shown(entry);
    if (seen !== undefined && seen !== shown.modified_on) {
      const others = Object.keys(sent).filter((field) => !isSame(sent[field], shown[field]));
      const now = others.map((field) => `${field} = ${JSON.stringify(shown[field])}`).join(", ");
      const message = `${entry.by} has changed it at ${shown.modified_on}; what differs is now ${now || "as you want it"}`;
      refuse(400, CODE.taken, message, pointerTo("modified_on"));
    }
    if (name !== undefined || !isPart) problems.push(...judgeName(name));
    let fields = sent;
    if (isPart) fields = laidOver(entry.fields, sent);
    // Cloudflare's clients cannot send it, and do not mean to take it away.
    else if (!(OWN in sent) && entry.fields[OWN]) fields = { ...sent, [OWN]: entry.fields[OWN] };
    refuseAll([...problems, ...missing(fields, theirs)]);
    return { ...entry, name: name ?? entry.name, fields };
  }

  createRoom() {
    this.may("configure");
    const room = this.created(ROOM);
    const made = this.madeLately(room, liveRooms(this.book));
    return made ? answered(this.shown(made)) : this.put(room);
  }

  changeRoom(id, isPart) {
    const room = this.ownRoom(id);
    const changed = this.changed(room, ROOM, isPart);
    const strategy = ({ fields }) => fields[OWN]?.[FIXED] ?? "leases";
    if (strategy(room) !== strategy(changed))
      refuse(400, CODE.value, `${FIXED} stays as it is: make another room`, pointerTo(OWN, FIXED));
    // Those who are in line there follow.
    const place = ({ fields: { host, path } }) => ({ host, path: path ?? ROOM.path });
    if (!isSame(place(room), place(changed))) changed.former = place(room);
    const before = this.shown(room);
    const outcome = this.put(changed, undefined, before);
    return this.weighed(outcome, room, before, outcome.body.result);
  }

  /** Deletes a room or an event. */
  remove(entry, before) {
    const draft = this.begin();
    this.set(draft, { ...entry, deleted: this.ask.now });
    return this.write(draft, () => ({ id: entry.id }), before);
  }

  deleteRoom(id) {
    this.may("configure");
    if (this.book.rooms.some((room) => room.id === id && !isThere(room))) return answered({ id });
    const room = this.ownRoom(id);
    const before = this.shown(room);
    return this.weighed(this.remove(room, before), room, before, null);
  }

  /** Brings a deleted room back. */
  restore(id) {
    this.may("configure");
    const room = this.book.rooms.find((room) => room.id === id && !isThere(room));
    if (!room) refuse(404, CODE.unknown, "There is no deleted waiting room of this id");
    const back = { ...room };
    delete back.deleted;
    return this.put(back);
  }

  createEvent(room) {
    this.may("configure");
    const event = this.created(EVENT, room.id);
    const made = this.madeLately(event, this.eventsOf(room));
    if (made) return answered(shownEvent(made));
    if (this.eventsOf(room).length >= MOST_EVENTS)
      refuse(400, CODE.bound, `A room has at most ${MOST_EVENTS} events`);
    const outcome = this.put(event, room);
    return this.weighed(outcome, room, null, outcome.body.result, true);
  }

  changeEvent(room, id, isPart) {
    const event = this.event(room, id);
    const before = shownEvent(event);
    const outcome = this.put(this.changed(event, EVENT, isPart), room, before);
    return this.weighed(outcome, room, before, outcome.body.result, true);
  }

  deleteEvent(room, id) {
    this.may("configure");
    const isGone = (event) => event.id === id && event.room === room.id && !isThere(event);
    if (this.book.events.some(isGone)) return answered({ id });
    const event = this.event(room, id);
    const before = shownEvent(event);
    return this.weighed(this.remove(event, before), room, before, null, true);
  }

  /** Those of a room, the next first. */
  plansOf({ id }) {
    return this.book.plans.filter(({ room }) => room === id).sort((one, other) => one.from - other.from);
  }

  createPlan(room) {
    this.may("steer");
    const { now, newId, by, judged } = this.ask;
    const sent = this.body();
    refuseAll(judgePlan(sent, now));
    if (this.plansOf(room).length >= MOST_PLANS)
      refuse(400, CODE.bound, `A room has at most ${MOST_PLANS} plans. Fix: delete one`);
    const plan = { ...planOf(sent), id: newId(), room: room.id, by, created: now };
    // Without its end, which may be further away than that of an order of now.
    const order = { ...orderOf({ ...plan, until: null }), dry_run: true };
    if (!judged) return { ...answered(null), order: { room: objectsOf(room), by, order } };
    if (judged.status !== 200) {
      const { error, errors = [{ message: error }] } = judged.body;
      refuseAll(
        errors.map(({ field, value, message, fix }) =>
          problem(
            CODE.value,
            field ? `${field} = ${value} ${message}. Fix: ${fix}` : message,
            field === "reason" ? pointerTo(field) : pointerTo("set", ...(field ? [field] : [])),
          ),
        ),
      );
    }
    const draft = this.begin(false);
    draft.book.plans.push(plan);
    draft.rows[`plan/${plan.id}`] = plan;
    return this.write(draft, () => shownPlan(plan), null);
  }

  deletePlan(room, id) {
    this.may("steer");
    const plan = this.plansOf(room).find((plan) => plan.id === id);
    if (!plan) refuse(404, CODE.unknown, "There is no plan of this id");
    const draft = this.begin(false);
    draft.book.plans = draft.book.plans.filter((plan) => plan.id !== id);
    draft.rows[`plan/${id}`] = undefined;
    return this.write(draft, () => ({ id }), shownPlan(plan));
  }

  writeRules(room, rules, gone, inList = false) {
    const before = shownRules(this.rulesOf(room));
    const draft = this.begin();
    draft.book.rules[room.id] = { v: 1, rules, gone };
    this.lay(draft.rows, `rules/${room.id}`, draft.book.rules[room.id], inList);
    const tell = (error) => problemOf(error, inList);
    return this.write(draft, (api) => shownRules(api.rulesOf(room)), before, tell);
  }

  /** A rule with other fields. */
  next(rule, fields) {
    if (rule.version > 0 && isSame(rule.fields, fields)) return rule;
    return { id: rule.id, version: rule.version + 1, fields, modified: this.ask.now };
  }

  createRule(room) {
    this.may("configure");
    const fields = this.body();
    refuseAll(judgeRule(fields));
    const { rules, gone } = this.rulesOf(room);
    const isRepeated = (rule) =>
      rule.version === 1 && this.ask.now < rule.modified + REPEATED && isSame(rule.fields, fields);
    if (rules.some(isRepeated)) return answered(shownRules({ rules }));
    return this.writeRules(room, [...rules, this.next({ id: this.ask.newId(), version: 0 }, fields)], gone);
  }

  putRules(room) {
    this.may("configure");
    const sent = this.body(true);
    const { rules, gone } = this.rulesOf(room);
    const left = [...rules];
    const problems = [];
    const put = sent.map((fields, place) => {
      if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
        problems.push(problem(CODE.value, "A rule must be an object", pointerTo(place)));
        return undefined;
      }
      const { id } = fields;
      problems.push(...judgeRule(fields, pointerTo(place)));
      // A rule that stays keeps its id.
      const at = left.findIndex((rule) => (id ? rule.id === id : isSame(rule.fields, fields)));
      const [kept] = at < 0 ? [] : left.splice(at, 1);
      return this.next(kept ?? { id: this.ask.newId(), version: 0 }, fields);
    });
    refuseAll(problems);
    return this.writeRules(room, put, gone, true);
  }

  changeRule(room, id) {
    this.may("configure");
    const { rules, gone } = this.rulesOf(room);
    const from = rules.findIndex((rule) => rule.id === id);
    if (from < 0) refuse(404, CODE.unknown, "There is no rule of this id");
    const { position, ...sent } = this.body();
    const fields = laidOver(rules[from].fields, sent);
    refuseAll(judgeRule(fields));
    const others = rules.toSpliced(from, 1);
    const to = position ? placeOf(position, others) : from;
    if (!(to >= 0)) refuse(400, CODE.value, "position must be index, before or after", pointerTo("position"));
    return this.writeRules(room, others.toSpliced(to, 0, this.next(rules[from], fields)), gone);
  }

  deleteRule(room, id) {
    this.may("configure");
    const { rules, gone } = this.rulesOf(room);
    if (gone.includes(id)) return answered(shownRules({ rules }));
    const left = rules.filter((rule) => rule.id !== id);
    if (left.length === rules.length) refuse(404, CODE.unknown, "There is no rule of this id");
    return this.writeRules(room, left, [...gone, id].slice(-MOST_GONE));
  }

  settings() {
    return answered({ [CRAWLERS]: this.book.crawlers ?? this.deployed.crawlers });
  }

  changeSettings(isPart) {
    this.may("configure");
    const bypass = given(this.body(), CRAWLERS) ?? (isPart ? undefined : false);
    if (bypass === undefined) return this.settings();
    if (typeof bypass !== "boolean")
      refuse(400, CODE.value, `${CRAWLERS} must be true or false`, pointerTo(CRAWLERS));
    const draft = this.begin();
    draft.book.crawlers = bypass;
    draft.rows.settings = { v: 1, [CRAWLERS]: bypass };
    return this.write(draft, (api) => api.settings().body.result, this.settings().body.result);
  }

  /** @returns {import("./tokens.js").Token[]} those that were not revoked */
  tokens() {
    return this.book.tokens.filter(({ revoked }) => revoked === undefined);
  }

  listTokens() {
    this.may("configure");
    return this.page(this.tokens().map((token) => shownToken(token, this.ask.now)));
  }

  createToken() {
    this.may("configure");
    const { now, newId, newToken, by } = this.ask;
    const sent = this.body();
    const taken = [...this.deployed.secrets, ...this.tokens().map(({ name }) => name.toLowerCase())];
    refuseAll(judgeToken(sent, taken, now));
    if (this.tokens().length >= MOST_TOKENS)
      refuse(400, CODE.bound, `There may be ${MOST_TOKENS} tokens. Fix: revoke one`);
    const { name, role, expires_on: ends } = sent;
    const draft = this.begin();
    const token = {
      v: 1,
      id: newId(),
      name,
      role,
      hash: newToken.hash,
      last: newToken.text.slice(-4),
      created: now,
      by,
      ends: ends ? Date.parse(ends) : null,
    };
    const shown = shownToken(token, now);
    const outcome = this.write(setToken(draft, token), () => shown, null);
    // Here alone: what is stored and logged does not have it.
    return outcome.written ? { ...outcome, body: envelope({ ...shown, token: newToken.text }) } : outcome;
  }

  revokeToken(id) {
    this.may("configure");
    const token = this.book.tokens.find((token) => token.id === id);
    if (!token) refuse(404, CODE.unknown, "There is no token of this id");
    if (token.revoked) return answered({ id });
    const { now } = this.ask;
    const draft = setToken(this.begin(), { ...token, revoked: now });
    return this.write(draft, () => ({ id }), shownToken(token, now));
  }

  log() {
    const before = this.query.get("before") ?? `${Number.MAX_SAFE_INTEGER}`;
    if (!/^[1-9]\d{0,15}$/.test(before)) refuse(400, CODE.value, "before must be the id of an entry");
    return { ...answered([]), entries: { before: Number(before) } };
  }

  /**
   * Several changes as one: all are made, or none; what they clash with is what there is after the last of them. `$3` in a path
   * stands for the id in the result of the change 3, from 0.
   */
  batch() {
    this.may("configure");
    const changes = this.body(true);
    if (changes.length > MOST_CHANGES)
      refuse(400, CODE.bound, `There may be ${MOST_CHANGES} changes at once`);
    const draft = { ...this.begin(), places: new Map(), before: [], place: 0 };
    const [results, weighs, problems] = [[], [], []];
    const into = (place, { code, message, source: { pointer = "", column } = {} }) =>
      problem(code, message, `${pointerTo(place)}${pointer && `/body${pointer}`}`, column);
    for (const [place, change] of changes.entries()) {
      draft.place = place;
      try {
        const { body, weighs: one } = this.step(draft, change, results);
        results.push(body.result);
        if (one) weighs.push({ ...one, at: `${pointerTo(place)}/body` });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        results.push(null);
        problems.push(...error.problems.map((one) => into(place, one)));
      }
    }
    refuseAll(problems);
    const tell = (error) => {
      const kind = error.field.startsWith("bypass_rules") ? "rules" : error.part;
      const { place, inList } = draft.places.get(`${kind}/${error.name}`) ?? {};
      const told = problemOf(error, inList);
      return place === undefined ? problem(told.code, told.message) : into(place, told);
    };
    const outcome = this.write(draft, () => results, draft.before, tell);
    const pages = outcome.pages.map(({ key, html, pointer }) => {
      const place = draft.places.get(key)?.place;
      return { html, pointer: place === undefined ? pointer : `${pointerTo(place)}/body${pointer}` };
    });
    return { ...outcome, pages, ...(weighs.length > 0 && { weighs }) };
  }

  /** One of several changes. */
  step(draft, change, results) {
    const { method, path, body } = typeof change === "object" && change !== null ? change : {};
    if (typeof method !== "string" || typeof path !== "string")
      refuse(400, CODE.value, "A change must be an object with method, path and body");
    const filled = path.replace(/\$(\d+)/g, (_, place) => results[place]?.id ?? "");
    const ask = {
      ...this.ask,
      method,
      path: `${this.ask.path.slice(0, -"/batch".length)}${filled}`,
      body: JSON.stringify(body ?? null),
    };
    const endpoint = endpointsAt(ask.path).here.find((one) => one.method === method);
    if (!ONE_OF_SEVERAL.includes(endpoint?.does))
      refuse(400, CODE.route, `${method} ${path} is no change of a room, an event or rules`);
    return new Api(draft.book, this.deployed, this.check, ask, draft).route();
  }

  /** Keeps a page for whoever wants to look at it. */
  preview() {
    this.may("configure");
    const { custom_html: html } = this.body();
    const pointer = pointerTo("custom_html");
    if (typeof html !== "string" || html === "")
      refuse(400, CODE.value, "custom_html must be the text of a page", pointer);
    const { now, newId, base } = this.ask;
    const draft = this.begin(false);
    const id = newId();
    const { previews } = draft.book;
    const oldest = Object.keys(previews).sort((one, other) => previews[one] - previews[other]);
    for (const other of oldest.slice(0, Math.max(0, oldest.length + 1 - MOST_PREVIEWS))) {
      delete previews[other];
      draft.rows[`preview/${other}`] = undefined;
    }
    previews[id] = now + PREVIEW_KEPT;
    draft.rows[`preview/${id}`] = { v: 1, until: previews[id], html };
    const told = { preview_url: `${base}/__anteroom/client/v4/preview/${id}` };
    const outcome = this.write(draft, () => told, null);
    outcome.pages.push({ html, pointer });
    return outcome;
  }
}

/** Puts a token into a draft, in the place of what has its id. */
function setToken(draft, token) {
  const { tokens } = draft.book;
  const at = tokens.findIndex(({ id }) => id === token.id);
  tokens.splice(at < 0 ? tokens.length : at, 1, token);
  draft.rows[`token/${token.id}`] = token;
  return draft;
}

function judgeName(name) {
  const message = "name must be 1 to 64 letters, digits, _ or -";
  return typeof name === "string" && NAME.test(name) ? [] : [problem(CODE.value, message, pointerTo("name"))];
}

/** What is wrong with a rule's fields; those that nobody sets go. */
function judgeRule(fields, at = "") {
  delete fields.position;
  const problems = [...takeKnown(fields, RULE, []), ...missing(fields, RULE)];
  const { action, expression } = fields;
  if ((action ?? undefined) !== undefined && `${action}`.toLowerCase() !== ACTION)
    problems.push(problem(CODE.value, `action must be "${ACTION}"`, pointerTo("action")));
  if ((expression ?? undefined) !== undefined && typeof expression !== "string")
    problems.push(problem(CODE.value, "expression must be text", pointerTo("expression")));
  return problems.map((one) => problem(one.code, one.message, `${at}${one.source.pointer}`));
}

/** Lays the fields of a PATCH over those that there are; null takes one away. */
function laidOver(fields, sent) {
  const all = { ...fields };
  for (const [name, value] of Object.entries(sent)) {
    if (value === null) delete all[name];
    else if (name === OWN && typeof value === "object" && all[OWN]) all[OWN] = laidOver(all[OWN], value);
    else all[name] = value;
  }
  return all;
}

/** Whether a change is one that operators may make who only steer. */
function isSteered(sent, entry) {
  const names = Object.keys(sent);
  const may = entry.room ? STEERED_EVENT : STEERED_ROOM;
  const isMessage = (name) =>
    name === OWN && !entry.room && Object.keys(sent[OWN] ?? {}).join() === "message";
  return names.length > 0 && names.every((name) => may.includes(name) || isMessage(name));
}

/** Where a rule is put among the others; below zero: nowhere. */
function placeOf({ index, before, after }, others) {
  if (Number.isInteger(index) && index >= 1) return index - 1;
  const of = (id) => others.findIndex((rule) => rule.id === id);
  if (before !== undefined) return before === "" ? 0 : of(before);
  if (after === "") return others.length;
  return after === undefined || of(after) < 0 ? -1 : of(after) + 1;
}
