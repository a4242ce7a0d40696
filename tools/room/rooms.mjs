// Rooms that are made at run time, as a file: what `export` writes, and what `apply` makes of it.
import { readFileSync } from "node:fs";
import { parse, stringify } from "smol-toml";
import { request } from "undici";

import { Refused } from "./api.mjs";
import { agree } from "./clear.mjs";
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
const CLOUDFLARE = "https://api.cloudflare.com/client/v4";

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

/** Every room with its events and rules. */
async function readAll(api, path = ROOMS) {
  const rooms = await listAll(api, path);
  // Cloudflare answers some plans without events and rules.
  const orNone = (error) => {
    if (path === ROOMS) throw error;
    process.stderr.write(`${error.message} They are left out.\n`);
    return [];
  };
  return Promise.all(
    rooms.map(async (room) => ({
      ...room,
      events: await listAll(api, `${path}/${room.id}/events`).catch(orNone),
      rules: await api.json(`${path}/${room.id}/rules`, {}).then(({ result }) => result, orNone),
    })),
  );
}

/** Cloudflare's own API, for its waiting rooms. @param {NodeJS.ProcessEnv} env as Cloudflare's clients read it */
export function openCloudflare({ CLOUDFLARE_API_TOKEN: token, CLOUDFLARE_BASE_URL: base = CLOUDFLARE }) {
  if (!token)
    throw new UsageError(
      "error: set CLOUDFLARE_API_TOKEN to a token that may read the zone's waiting rooms.",
    );
  return {
    json: async (path, query) => {
      const address = `${base.replace(/\/+$/, "")}/${path}?${new URLSearchParams(query)}`;
      const headers = { authorization: `Bearer ${token}`, accept: "application/json" };
      const { statusCode, body } = await request(address, { headers }).catch((error) => {
        throw new Refused(`${base} cannot be reached (${error.code ?? error.message}).`, 2);
      });
      const answer = await body.json().catch(() => undefined);
      if (answer?.success) return answer;
      const says = answer?.errors?.map(({ message }) => message).join("; ") ?? "something else";
      throw new Refused(`${path}: Cloudflare answers ${statusCode}: ${says}.`);
    },
  };
}

/**
 * What there is, as TOML. What is as by default is left out.
 * @param {Pick<ReturnType<typeof import("./api.mjs").openApi>, "json">} api
 * @param {boolean} deployed also the rooms of vars, to move them over
 * @param {string} [zone] of Cloudflare's API
 */
export async function exportRooms(api, deployed, zone) {
  const path = zone && `zones/${encodeURIComponent(zone)}/waiting_rooms`;
  const rooms = (await readAll(api, path)).filter((room) => deployed || !room.deployed_as);
  const written = (answer) =>
    Object.fromEntries(Object.entries(settable(answer)).filter(([, value]) => !isEmpty(value)));
  return stringify(
    Object.fromEntries(
      rooms.map(({ events, rules, ...room }) => [
        room.name,
        {
          ...written(room),
          ...(events.length > 0 && {
            events: events.map((event) => ({ name: event.name, ...written(event) })),
          }),
          ...(rules.length > 0 && {
            rules: rules.map(({ enabled, ...rule }) => ({ ...written(rule), enabled })),
          }),
        },
      ]),
    ),
  );
}

/** A file of rooms. @param {string} path */
function readFile(path) {
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new Refused(`error: ${path} cannot be read: ${error.code}`, 2);
  }
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

/** In which fields two answers differ. */
function differences(before, after) {
  const [one, other] = [settable(before), settable(after)];
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  const isSame = (name) => JSON.stringify(one[name] ?? null) === JSON.stringify(other[name] ?? null);
  return names
    .filter((name) => !isSame(name))
    .map((name) => `${name}: ${shown(one[name])} → ${shown(other[name])}`);
}

/**
 * What is to be done so that all is as in a file: words for each step, and how.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {string} path
 * @param {boolean} prune rooms go that are not in the file
 */
async function plan(api, path, prune) {
  const file = readFile(path);
  const there = await readAll(api);
  const steps = [];
  const step = (words, act) => steps.push({ words, act });
  const called = (name) => (entry) => entry.name.toLowerCase() === name.toLowerCase();
  for (const [name, { events = [], rules = [], ...fields }] of file) {
    const body = { name, ...fields };
    const room = there.find(called(name));
    const at = { id: room?.id };
    if (room) {
      // Fields of Anteroom's own go only where that is said.
      const whole = { ...body, anteroom: body.anteroom ?? null };
      const { result } = await api.json(`${ROOMS}/${room.id}`, { dry_run: true }, whole, "PUT");
      const changes = differences({ ...room, events: null, rules: null }, result);
      if (changes.length > 0)
        step([`room ${name} changes`, ...changes], () => api.json(`${ROOMS}/${at.id}`, {}, whole, "PUT"));
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
        const { result } = await api.json(`${where()}/${known.id}`, { dry_run: true }, event, "PUT");
        const changes = differences(known, result);
        if (changes.length > 0)
          step([`event ${event.name} of ${name} changes`, ...changes], () =>
            api.json(`${where()}/${known.id}`, {}, event, "PUT"),
          );
      }
    }
    for (const gone of room?.events.filter((event) => !events.some((other) => called(event.name)(other))) ??
      [])
      step([`event ${gone.name} of ${name} is deleted`], () =>
        api.json(`${ROOMS}/${at.id}/events/${gone.id}`, {}, undefined, "DELETE"),
      );
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
      step([`room ${room.name} is deleted`], () => api.json(`${ROOMS}/${room.id}`, {}, undefined, "DELETE"));
  return steps;
}

const sorted = (fields) => Object.entries(fields).sort(([one], [other]) => (one < other ? -1 : 1));

/**
 * Makes all as it is in a file: says first what that changes.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {{ file: string, prune: boolean, yes: boolean }} call
 * @param {(text: string) => void} out
 */
export async function applyRooms(api, { file, prune, yes }, out) {
  const steps = await plan(api, file, prune);
  if (steps.length === 0) return out("All is as in the file.");
  out(
    steps
      .map(({ words: [what, ...changes] }) => [`${what}`, ...changes.map((one) => `  ${one}`)].join("\n"))
      .join("\n"),
  );
  if (!yes) await agree();
  for (const { act } of steps) await act();
  out(`Done: ${steps.length} ${steps.length === 1 ? "change" : "changes"}, in force within seconds.`);
}
