/**
 * `npm run plan`: what a day will be like for a room of yours, by the simulator. With --history-url the day is one that
 * a deployed room has recorded. Everything else goes to the simulator: `npm run plan -- --help` lists it.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { runRust, setup } from "./made.mjs";
import { DEV_VARS, Failure, main } from "./toolchain.mjs";

const USAGE = `
A day that a deployed room has recorded:

  --history-url URL    take the day from the history of the room that is deployed there (instead of --arrivals)
  --day 2026-11-20     that day, midnight to midnight UTC
  --from, --to TIME    or from one time to another, such as 2026-11-20T18:00:00Z
  --save FILE          keep the history, so that --arrivals FILE may take it again

The token is that in ANTEROOM_TOKEN; for a room on this machine the one that npm start made.

  ANTEROOM_TOKEN=... npm run plan -- --room shop --history-url https://shop.example.com --day 2026-11-20
`;
const OURS = {
  "history-url": { type: "string" },
  room: { type: "string" },
  day: { type: "string" },
  from: { type: "string" },
  to: { type: "string" },
  save: { type: "string" },
};
const OWN = Object.keys(OURS).filter((name) => name !== "room");
const TIMEOUT_MS = 60_000;

/**
 * What is meant for us, and what the simulator gets.
 * @param {string[]} args
 */
export function split(args) {
  const { values, tokens } = parseArgs({
    args,
    options: OURS,
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const drop = new Set();
  for (const token of tokens) {
    if (token.kind !== "option" || !OWN.includes(token.name)) continue;
    drop.add(token.index);
    if (!token.inlineValue && token.value !== undefined) drop.add(token.index + 1);
  }
  const others = args.filter((_, index) => !drop.has(index));
  for (const name of OWN) {
    if (values[name] === true || `${values[name] ?? ""}`.startsWith("-"))
      throw new Failure(`--${name} needs a value; npm run plan -- --help`, 2);
  }
  return { values, others };
}

/**
 * The address of the history that was asked for.
 * @param {Record<string, string | boolean | undefined>} values
 */
export function historyUrl({ "history-url": base, room, day, from, to }) {
  if (!URL.canParse(`${base}`) || !/^https?:$/.test(new URL(`${base}`).protocol)) {
    throw new Failure(`--history-url ${base}: give the site's address, such as https://shop.example.com`, 2);
  }
  if (typeof room !== "string") throw new Failure("--room is missing: whose history?", 2);
  const bad = (name, text, fix) => new Failure(`--${name} ${text}: ${fix}`, 2);
  if (day !== undefined && (from !== undefined || to !== undefined)) {
    throw new Failure("--day or --from and --to: give one of them", 2);
  }
  let span;
  if (day !== undefined) {
    const start = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN;
    if (Number.isNaN(start)) throw bad("day", day, "write it as 2026-11-20");
    span = [start, start + 86_400_000];
  } else {
    span = Object.entries({ from, to }).map(([name, text]) => {
      if (text === undefined) throw new Failure(`--${name} is missing: give --day, or --from and --to`, 2);
      const time = /T.*(Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
      if (Number.isNaN(time)) throw bad(name, text, "write a time with its zone: 2026-11-20T18:00:00Z");
      return time;
    });
    if (span[1] <= span[0]) throw bad("to", to, "it must be after --from");
  }
  const url = new URL("/__anteroom/history", `${base}`);
  url.search = new URLSearchParams({
    room,
    from: `${span[0]}`,
    to: `${span[1]}`,
    resolution: "minute",
    format: "json",
  }).toString();
  return url.href;
}

/** @param {string} url @param {string} token */
async function fetchHistory(url, token) {
  const where = url.split("?")[0];
  let answer;
  try {
    // The token goes nowhere else.
    answer = await fetch(url, {
      headers: { authorization: `Bearer ${token}` },
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (error) {
    const reason = error.cause?.code ?? error.cause?.message ?? error.message;
    throw new Failure(`${where} cannot be reached: ${reason}`, 2);
  }
  const text = await answer.text();
  if (answer.status === 200) return text;
  let why = "";
  try {
    why = JSON.parse(text).error;
  } catch {}
  const fix = answer.status === 401 ? " Set ANTEROOM_TOKEN to an operator's token." : "";
  throw new Failure(`${where}: status ${answer.status}${why ? `: ${why}` : ""}.${fix}`, 2);
}

/** @param {string[]} args */
export async function plan(args) {
  const { values, others } = split(args);
  const url = values["history-url"] === undefined ? undefined : historyUrl(values);
  if (!url && ["day", "from", "to", "save"].some((name) => values[name] !== undefined)) {
    throw new Failure("--day, --from, --to and --save are for a history: give --history-url too", 2);
  }
  await setup();
  const directory = mkdtempSync(join(tmpdir(), "anteroom-plan-"));
  try {
    if (url) {
      // Installed by the set-up.
      const { findToken } = await import("./crowd/rehearsal.mjs");
      const found = findToken(url, process.env, DEV_VARS);
      if (!found) throw new Failure("Set ANTEROOM_TOKEN to an operator's token: the history is closed", 2);
      const file = `${values.save ?? join(directory, "history.json")}`;
      writeFileSync(file, await fetchHistory(url, found.token));
      others.push("--arrivals", file);
    }
    await runRust("plan", others);
    if (args.includes("--help") || args.includes("-h")) console.log(USAGE);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

main(import.meta.url, () => plan(process.argv.slice(2)));
