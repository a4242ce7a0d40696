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
 * What is to be done so that all is as in a file: words for each step, and how.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {[name: string, table: any][]} file
 * @param {{ prune?: boolean, edited?: any }} [how] `prune`: rooms go that are not in the file; `edited`: the room that the
 *   file's one table is of, as somebody has read it, whatever it is called there
 */
async function plan(api, file, { prune = false, edited } = {}) {
  const there = edited ? [edited] : await readAll(api);
  const steps = [];
  const step = (words, act) => steps.push({ words, act });
  const stepOfDelete = async (what, path) => {
    const { messages } = await api.json(path, { dry_run: true }, undefined, "DELETE");
    step([`${what} is deleted`, ...said(messages)], () => api.json(path, {}, undefined, "DELETE"));
  };
  const called = (name) => (entry) => entry.name.toLowerCase() === name.toLowerCase();
  for (const [name, { events = [], rules = [], ...fields }] of file) {
    const body = { name, ...fields };
    const room = edited ?? there.find(called(name));
    const at = { id: room?.id };
    if (room) {
      // Fields of Anteroom's own go only where that is said.
      const whole = {
        ...body,
        anteroom: body.anteroom ?? null,
        // Who has looked at it for long is told if somebody has changed it since.
        ...(edited && { modified_on: edited.modified_on }),
      };
      const { result, messages } = await api.json(`${ROOMS}/${room.id}`, { dry_run: true }, whole, "PUT");
      const changes = differences({ ...room, events: null, rules: null }, result);
      if (room.name !== result.name) changes.unshift(`name: ${room.name} → ${result.name}`);
      if (changes.length > 0)
        step([`room ${name} changes`, ...changes, ...said(messages)], () =>
          api.json(`${ROOMS}/${at.id}`, {}, whole, "PUT"),
        );
    } else {
      await api.json(ROOMS, { dry_run: true }, body);
      step([`room ${name} is made`], async () => {
        at.id = (await api.json(ROOMS, {}, body)).result.id;
      });
    }
    for (const event of events) {
      const known = room?.events.find(called(event.name));
      const where = () => `${ROOMS}/${at.id}/events`;
      if (!known) step([`event ${event.name} of ${name} is made`], () => api.json(where(), {}, event));
      else {
        const { result, messages } = await api.json(
          `${where()}/${known.id}`,
          { dry_run: true },
          event,
          "PUT",
        );
        const changes = differences(known, result);
        if (changes.length > 0)
          step([`event ${event.name} of ${name} changes`, ...changes, ...said(messages)], () =>
            api.json(`${where()}/${known.id}`, {}, event, "PUT"),
          );
      }
    }
    for (const gone of room?.events.filter((event) => !events.some((other) => called(event.name)(other))) ??
      [])
      await stepOfDelete(`event ${gone.name} of ${name}`, `${ROOMS}/${room.id}/events/${gone.id}`);
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
      step([`the rules of ${name} are others`], () => api.json(`${ROOMS}/${at.id}/rules`, {}, wanted, "PUT"));
  }
  for (const room of prune ? there : [])
    if (!room.deployed_as && !file.some(([name]) => called(name)(room)))
      await stepOfDelete(`room ${room.name}`, `${ROOMS}/${room.id}`);
  return steps;
}

/** What a change does to those who wait and are in. */
const said = (messages) => messages.map(({ message }) => message);

const sorted = (fields) => Object.entries(fields).sort(([one], [other]) => (one < other ? -1 : 1));

/** Says what changes, asks, and does it. @param {{ words: string[], act: () => Promise<any> }[]} steps */
async function carryOut(steps, yes, out) {
  out(
    steps
      .map(({ words: [what, ...changes] }) => [`${what}`, ...changes.map((one) => `  ${one}`)].join("\n"))
      .join("\n"),
  );
  if (!yes) await agree();
  for (const { act } of steps) await act();
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
  return carryOut(steps, yes, out);
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
  return carryOut(await plan(api, [[name, fields]]), yes, out);
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
      return await carryOut(steps, yes, out);
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
  return carryOut(steps, yes, out);
}
