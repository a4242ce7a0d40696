// Rooms that are made at run time, as a file: what `export` writes, and what `apply` makes of it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, stringify } from "smol-toml";

import { Refused } from "./api.mjs";
import { agree, isAgreed } from "./clear.mjs";
import { UsageError } from "./options.mjs";
import { shown } from "./print.mjs";

const ROOMS = "client/v4/zones/main/waiting_rooms";
/** What answers have and nobody sets. */
const READ_ONLY = [
  "id",
  "name",
  "created_on",
  "modified_on",
  "next_event_start_time",
  "next_event_prequeue_start_time",
  "deployed_as",
  "version",
  "last_updated",
];
const PER_PAGE = 100;
/** It is large, and few move over: the npm package does not bring it. So it is no import that the package is made by. */
const CLIENT = "cloudflare";

/** Of an event it is another than the room's, whatever it is. */
const SAYS = "disable_session_renewal";
const isEmpty = (value) => value === null || value === "" || value === false || value?.length === 0;
const settable = (answer) =>
  Object.fromEntries(Object.entries(answer).filter(([name]) => !READ_ONLY.includes(name)));

/** @param {ReturnType<typeof import("./api.mjs").openApi>} api */
async function listAll(api, path) {
  const all = [];
  for (let page = 1; ; page += 1) {
    const { result } = await api.json(path, { page, per_page: PER_PAGE });
    if (result.length === 0) return all;
    all.push(...result);
  }
}

/** Every room with its events and rules. @param {ReturnType<typeof import("./api.mjs").openApi>} api */
async function readAll(api) {
  const rooms = await listAll(api, ROOMS);
  return Promise.all(
    rooms.map(async (room) => ({
      ...room,
      events: await listAll(api, `${ROOMS}/${room.id}/events`),
      rules: (await api.json(`${ROOMS}/${room.id}/rules`, {})).result,
    })),
  );
}

/**
 * The same of a zone at Cloudflare, by its official client, and with what that reads of the environment.
 * @param {string} zone
 * @param {NodeJS.ProcessEnv} env
 */
async function readCloudflare(zone, env) {
  if (!env.CLOUDFLARE_API_TOKEN)
    throw new UsageError(
      "error: set CLOUDFLARE_API_TOKEN to a token that may read the zone's waiting rooms.",
    );
  const { default: Cloudflare } = await import(CLIENT).catch(() => {
    throw new Refused("error: Cloudflare's client is missing: npm install --no-save cloudflare", 2);
  });
  // A token is given to this API alone: other credentials of the environment stay where they are.
  const client = new Cloudflare({ apiToken: env.CLOUDFLARE_API_TOKEN, apiKey: null, apiEmail: null });
  const of = { zone_id: zone };
  const says = (error) => {
    const told = error.errors?.map(({ message }) => message).join("; ") || error.message;
    return error.status
      ? new Refused(`Cloudflare answers ${error.status}: ${told}.`)
      : new Refused(`${client.baseURL} cannot be reached (${error.cause?.code ?? told}).`, 2);
  };
  // It answers some plans without events and rules.
  const orNone = (error) => {
    process.stderr.write(`${says(error).message} They are left out.\n`);
    return [];
  };
  const { waitingRooms } = client;
  try {
    const rooms = await Array.fromAsync(waitingRooms.list(of));
    return await Promise.all(
      rooms.map(async (room) => ({
        ...room,
        events: await Array.fromAsync(waitingRooms.events.list(room.id, of)).catch(orNone),
        rules: await Array.fromAsync(waitingRooms.rules.get(room.id, of)).catch(orNone),
      })),
    );
  } catch (error) {
    throw says(error);
  }
}

/** Rooms as a file has them, by their names. What is as by default is left out. */
function tablesOf(rooms) {
  const written = (answer) =>
    Object.fromEntries(Object.entries(settable(answer)).filter(([, value]) => !isEmpty(value)));
  return Object.fromEntries(
    rooms.map(({ events, rules, ...room }) => [
      room.name,
      {
        ...written(room),
        ...(events.length > 0 && {
          events: events.map((event) => ({
            name: event.name,
            ...written(event),
            ...(event[SAYS] !== null && { [SAYS]: event[SAYS] }),
          })),
        }),
        ...(rules.length > 0 && {
          rules: rules.map(({ enabled, ...rule }) => ({ ...written(rule), enabled })),
        }),
      },
    ]),
  );
}

/**
 * What there is, as TOML.
 * @param {() => ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {boolean} deployed also the rooms of vars, to move them over
 * @param {string} [zone] instead, those of this zone at Cloudflare
 */
export async function exportRooms(api, deployed, zone) {
  const rooms = zone ? await readCloudflare(zone, process.env) : await readAll(api());
  return stringify(tablesOf(rooms.filter((room) => deployed || !room.deployed_as)));
}

/** The rooms of a text. @param {string} text @param {string} path where it stands, for errors */
function readTables(text, path) {
  try {
    // Times may stand there as such: the API takes texts.
    const value = JSON.parse(JSON.stringify(parse(text)));
    const strange = Object.keys(value).find(
      (name) => typeof value[name] !== "object" || Array.isArray(value[name]),
    );
    if (strange) throw new Error(`${strange} is no table: write [${strange}] for a room`);
    return Object.entries(value);
  } catch (error) {
    throw new Refused(`error: ${path}: ${error.message}`, 2);
  }
}

/** A file of rooms. @param {string} path */
function readFile(path) {
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new Refused(`error: ${path} cannot be read: ${error.code}`, 2);
  }
  return readTables(text, path);
}

/** In which fields two answers differ. */
function differences(before, after) {
  const [one, other] = [settable(before), settable(after)];
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  const isSame = (name) => JSON.stringify(one[name] ?? null) === JSON.stringify(other[name] ?? null);
  const told = (value) => (typeof value === "object" && value ? JSON.stringify(value) : shown(value));
  return names
    .filter((name) => !isSame(name))
    .map((name) => `${name}: ${told(one[name])} → ${told(other[name])}`);
}

/**
 * A change, as the API takes several at once. `path`: below the rooms; `of`: the one that makes the room that it is of, whose id
 * stands for `$`; `changes`: in words, of what it has answered.
 * @typedef {{ what: string, method: string, path: string, body?: any, of?: Step, changes?: (result: any) => string[] | undefined,
 *   said?: string[] }} Step `said`: what else is to be read of it
 */

/**
 * What is to be done so that all is as in a file. Nothing is done, but all of it is tried.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {[name: string, table: any][]} file
 * @param {{ prune?: boolean, edited?: any }} [how] `prune`: rooms go that are not in the file; `edited`: the room that the
 *   file's one table is of, as somebody has read it, whatever it is called there
 * @returns {Promise<Step[]>}
 */
async function plan(api, file, { prune = false, edited } = {}) {
  const there = edited ? [edited] : await readAll(api);
  /** @type {Step[]} */
  const steps = [];
  const called = (name) => (entry) => entry.name.toLowerCase() === name.toLowerCase();
  const put = (what, path, body, before) => ({
    ...{ what: `${what} changes`, method: "PUT", path, body },
    changes: (result) => {
      const changes = differences({ ...before, events: null, rules: null }, result);
      if (before.name !== result.name) changes.unshift(`name: ${before.name} → ${result.name}`);
      return changes.length > 0 ? changes : undefined;
    },
  });
  for (const [name, { events = [], rules = [], ...fields }] of file) {
    const body = { name, ...fields };
    const room = edited ?? there.find(called(name));
    // Fields of Anteroom's own go only where that is said.
    const whole = {
      ...body,
      anteroom: body.anteroom ?? null,
      // Who has looked at it for long is told if somebody has changed it since.
      ...(edited && { modified_on: edited.modified_on }),
    };
    const made = room ? undefined : { what: `room ${name} is made`, method: "POST", path: "", body };
    steps.push(made ?? put(`room ${name}`, `/${room.id}`, whole, room));
    const at = { of: made, path: `/${room?.id ?? "$"}` };
    for (const event of events) {
      const known = room?.events.find(called(event.name));
      const what = `event ${event.name} of ${name}`;
      if (known) steps.push(put(what, `${at.path}/events/${known.id}`, event, known));
      else
        steps.push({
          ...at,
          what: `${what} is made`,
          method: "POST",
          path: `${at.path}/events`,
          body: event,
        });
    }
    for (const { name: event, id } of room?.events ?? [])
      if (!events.some(called(event)))
        steps.push({
          ...{ what: `event ${event} of ${name} is deleted`, method: "DELETE" },
          path: `${at.path}/events/${id}`,
        });
    const wanted = rules.map((rule) => ({
      action: "bypass_waiting_room",
      description: "",
      enabled: true,
      ...rule,
    }));
    const old = (room?.rules ?? []).map(({ action, description, enabled, expression }) => ({
      ...{ action, description, enabled, expression },
    }));
    if (JSON.stringify(old.map(sorted)) !== JSON.stringify(wanted.map(sorted)))
      steps.push({
        ...{ ...at, what: `the rules of ${name} are others`, method: "PUT" },
        ...{ path: `${at.path}/rules`, body: wanted },
      });
  }
  for (const room of prune ? there : [])
    if (!room.deployed_as && !file.some(([name]) => called(name)(room)))
      steps.push({ what: `room ${room.name} is deleted`, method: "DELETE", path: `/${room.id}` });
  return tried(api, steps);
}

/** Tries steps. @returns {Promise<Step[]>} those that change something, with what is to be read of each */
async function tried(api, steps) {
  const left = [];
  for (const { steps: some, results, messages } of await sendAll(api, steps, true))
    for (const [place, step] of some.entries()) {
      const changes = step.changes ? step.changes(results[place]) : [];
      const isOf = ({ source }) => source?.pointer.split("/")[1] === `${place}`;
      const effects = messages.filter(isOf).map(({ message }) => message);
      if (changes) left.push(Object.assign(step, { said: [...changes, ...effects] }));
    }
  return left;
}

/** So long may what is sent at once be, in characters: the API takes somewhat more. */
const MOST_SENT = 1_000_000;
/** So many changes are made at once. */
const MOST_AT_ONCE = 1_000;

/**
 * Sends steps, as one change unless they are very long: then as few as there can be.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {Step[]} steps
 * @param {boolean} isTried nothing is done
 */
async function sendAll(api, steps, isTried) {
  const parts = [];
  let length = Number.POSITIVE_INFINITY;
  for (const step of steps) {
    const long = JSON.stringify(step.body ?? null).length + 200;
    if (length + long > MOST_SENT || parts.at(-1).length === MOST_AT_ONCE) {
      parts.push([]);
      length = 0;
    }
    parts.at(-1).push(step);
    length += long;
  }
  const ids = new Map();
  const sent = [];
  for (const part of parts) {
    // Of a room that an earlier part makes nothing can be tried yet.
    const some = part.filter(({ of }) => !isTried || !of || part.includes(of));
    const changes = some.map(({ method, path, body, of }) => {
      const id = part.includes(of) ? `$${some.indexOf(of)}` : ids.get(of);
      return { method, path: of ? path.replace("$", id) : path, body };
    });
    const query = isTried ? { dry_run: true } : {};
    const { result, messages } = await api.json(`${ROOMS}/batch`, query, changes).catch((error) => {
      throw named(error, some, isTried || sent.length === 0);
    });
    for (const [place, step] of some.entries()) ids.set(step, result[place]?.id);
    const later = part.filter((step) => !some.includes(step));
    sent.push({ steps: [...some, ...later], results: result, messages });
  }
  return sent;
}

/** An error that says of which steps it is, and whether steps before them were done. */
function named(error, steps, isFirst) {
  if (!error.errors) return error;
  const lines = error.errors.map(({ message, source }) => {
    const step = steps[source?.pointer.split("/")[1]];
    return `  ${step ? `${step.what}: ` : ""}${message}`;
  });
  const done = isFirst ? "Nothing was changed" : "Some of it was done, and the rest was refused";
  return new Refused([`${done} (status ${error.status}):`, ...lines].join("\n"), error.code);
}

const sorted = (fields) => Object.entries(fields).sort(([one], [other]) => (one < other ? -1 : 1));

/**
 * Says what changes, asks, and does it.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {Step[]} steps
 */
async function carryOut(api, steps, yes, out) {
  out(steps.map(({ what, said }) => [what, ...said.map((one) => `  ${one}`)].join("\n")).join("\n"));
  if (!yes) await agree();
  await sendAll(api, steps, false);
  out(`Done: ${steps.length} ${steps.length === 1 ? "change" : "changes"}, in force within seconds.`);
}

/**
 * Makes all as it is in a file: says first what that changes.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {{ file: string, prune: boolean, yes: boolean }} call
 * @param {(text: string) => void} out
 */
export async function applyRooms(api, { file, prune, yes }, out) {
  const steps = await plan(api, readFile(file), { prune });
  if (steps.length === 0) return out("All is as in the file.");
  return carryOut(api, steps, yes, out);
}

/**
 * Makes a room of fields.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {{ room: string, "field=value": Record<string, any>, yes: boolean }} call
 * @param {(text: string) => void} out
 */
export async function createRoom(api, { room: name, "field=value": fields, yes }, out) {
  const there = await listAll(api, ROOMS);
  if (there.some((room) => room.name.toLowerCase() === name.toLowerCase()))
    throw new Refused(`There is a room ${name}: \`edit ${name}\` changes it.`);
  return carryOut(api, await plan(api, [[name, fields]]), yes, out);
}

/**
 * Opens a room in an editor, and makes it as it is then.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {{ room: string, yes: boolean }} call
 * @param {(text: string) => void} out
 */
export async function editRoom(api, { room: name, yes }, out) {
  const there = await readAll(api);
  const edited = there.find((room) => [room.id, room.name.toLowerCase()].includes(name.toLowerCase()));
  if (!edited) throw new Refused(`There is no room ${name}.`);
  if (edited.deployed_as)
    throw new Refused(`The room is deployed as ${edited.deployed_as}: change it there, and deploy.`);
  const folder = mkdtempSync(join(tmpdir(), "room-"));
  const path = join(folder, `${edited.name}.toml`);
  try {
    writeFileSync(path, stringify(tablesOf([edited])), { mode: 0o600 });
    for (;;) {
      openEditor(path);
      let steps;
      try {
        const file = readFile(path);
        if (file.length !== 1)
          throw new Refused(`error: the file must have one room, not ${file.length}.`, 2);
        steps = await plan(api, file, { edited });
      } catch (error) {
        // What was written is not lost for a mistake in it.
        if (!(error instanceof Refused) || !process.stdin.isTTY) throw error;
        process.stderr.write(`${error.message}\n`);
        if (await isAgreed("Edit it again?")) continue;
        throw new Refused("Nothing was changed.");
      }
      if (steps.length === 0) return out("Nothing was changed.");
      return await carryOut(api, steps, yes, out);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param {string} path */
function openEditor(path) {
  const editor = process.env.VISUAL || process.env.EDITOR || "vi";
  // It may have arguments of its own: `code --wait`.
  const { error, status } = spawnSync(`${editor} "${path}"`, { shell: true, stdio: "inherit" });
  if (error || status !== 0)
    throw new Refused(`${editor} ended with ${error?.message ?? `status ${status}`}: nothing was changed.`);
}

/**
 * Makes the rooms of a zone at Cloudflare here.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {{ zone: string, yes: boolean }} call
 * @param {(text: string) => void} out
 */
export async function importRooms(api, { zone, yes }, out) {
  const tables = tablesOf(await readCloudflare(zone, process.env));
  const steps = await plan(api, Object.entries(tables));
  if (steps.length === 0) return out("All is here as it is there.");
  return carryOut(api, steps, yes, out);
}
