// What `clear --all` would change, and whether that is wanted.
import { createInterface } from "node:readline/promises";

import { Refused } from "./api.mjs";
import { shown } from "./print.mjs";

/**
 * The order that clears all overrides. An event that was called off stays so, unless it is named: else it would go on
 * by its schedule.
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {string} room
 * @param {string[]} resumed the events that may go on
 * @returns {Promise<{ order: object, changes: string[], isEmpty: boolean }>} `changes` in words
 */
export async function clearAll(api, room, resumed) {
  const now = await api.json("steering", { room });
  const phase = (steering, name) => steering.events.find((event) => event.name === name)?.phase;
  const fields = Object.keys(now.fields).filter((field) => now.fields[field].override);
  const steered = now.events.filter((event) => event.steered).map(({ name }) => name);
  // As somebody may change more meanwhile, what was seen is what is cleared.
  const order = (/** @type {string[]} */ events) => ({
    clear: fields,
    events: Object.fromEntries(events.map((name) => [name, "clear"])),
    if_version: now.version,
  });
  const tried = (events) => api.json("steering", { room }, { ...order(events), dry_run: true });
  let then = await tried(steered);
  const goesOn = (name) => phase(now, name) === "over" && !["over", undefined].includes(phase(then, name));
  const calledOff = steered.filter((name) => goesOn(name) && !resumed.includes(name));
  const events = steered.filter((name) => !calledOff.includes(name));
  if (calledOff.length > 0) then = await tried(events);
  const changes = [
    ...Object.entries(now.fields)
      .filter(([field, { value }]) => fields.includes(field) || then.fields[field].value !== value)
      .map(([field, { value }]) => `${field}: ${shown(value)} → ${shown(then.fields[field].value)}`),
    ...events.map((name) => `event ${name}: ${phase(now, name)} → ${phase(then, name) ?? "forgotten"}`),
    ...calledOff.map((name) => `event ${name}: was called off and stays so; --resume ${name} lets it go on`),
  ];
  return { order: order(events), changes, isEmpty: fields.length + events.length === 0 };
}

/** Asks whoever sits at the terminal. @param {string} question */
export async function isAgreed(question) {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const said = await terminal.question(`${question} [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(said.trim());
}

/**
 * Goes on if whoever sits at the terminal wants that.
 * @throws {Refused} where nobody does, or says no
 */
export async function agree() {
  if (!process.stdin.isTTY) throw new Refused("Nothing was changed. Say --yes to put this in force.", 2);
  if (!(await isAgreed("Put this in force?"))) throw new Refused("Nothing was changed.");
}
