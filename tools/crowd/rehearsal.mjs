// The mark by which a room tells visitors of a rehearsal from others: only who holds an operator's token can write it.
// src/rehearsal.rs reads it.
import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";

import { request } from "undici";

import { UsageError } from "./options.mjs";

export const HEADER = "anteroom-rehearsal";
const PATH = "/__anteroom/rehearsal";
/** A mark is good for a day at most; clocks differ. */
const LONGEST_SECONDS = 86_400 - 120;
/** The last visitors come back after the crowd was told to end. */
const SPARE_SECONDS = 600;
const TIMEOUT_MS = 30_000;

/**
 * A mark: a name (1 to 32 letters, digits, _ and -) and until when it is good, in seconds since the epoch.
 * @param {string} token An operator's, whose role is steer.
 * @param {string} name
 * @param {number} until
 */
export function sign(token, name, until) {
  const signed = `v1.${name}.${Math.floor(until)}`;
  const key = createHash("sha256").update(token).digest();
  const signature = createHmac("sha256", key).update(`${HEADER}:${signed}`).digest("base64url");
  return `${signed}.${signature}`;
}

/** The name of a rehearsal that has none: its date and time, UTC. @param {number} now In ms since the epoch. */
export function nameOf(now) {
  return new Date(now).toISOString().slice(0, 16).replace("T", "-").replace(":", "");
}

/**
 * The token to sign with: ANTEROOM_TOKEN, else, for a room on this machine, the one that npm start made.
 * @param {string} url
 * @param {NodeJS.ProcessEnv} env
 * @param {string | URL} devVars The file of secrets for this machine.
 * @returns {{ token: string, meant: boolean } | undefined} `meant`: somebody has named it.
 */
export function findToken(url, env, devVars) {
  const named = env.ANTEROOM_TOKEN?.trim();
  if (named) return { token: named, meant: true };
  if (!/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(url).hostname)) return undefined;
  try {
    const token = parseEnv(readFileSync(devVars, "utf8")).ADMIN_TOKEN?.trim();
    return token ? { token, meant: false } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @typedef {{ name: string, until: number, header: string }} Rehearsal `until` in ms since the epoch.
 * @typedef {{ rehearsal?: Rehearsal, note: string }} Marking What the visitors are marked with, and that in a sentence.
 */

/**
 * Makes a mark, and asks the deployment whether it is good there. Whoever asked for one gets one or an error: a crowd
 * that is not marked cannot be taken out of the history any more.
 * @param {{ url: string, headers: Record<string, string>, rehearsal?: string | false, durationSeconds: number }} settings
 * @param {{ env: NodeJS.ProcessEnv, devVars: string | URL, now: number }} here
 * @returns {Promise<Marking>}
 */
export async function prepare({ url, headers, rehearsal, durationSeconds }, { env, devVars, now }) {
  if (rehearsal === false) return { note: "Not marked as a rehearsal, as --no-rehearsal says." };
  const given = headers[HEADER];
  const found = given === undefined ? findToken(url, env, devVars) : { token: "", meant: true };
  const isMeant = found?.meant || rehearsal !== undefined;
  if (!found) {
    if (isMeant) {
      throw new UsageError(
        "error: option '--rehearsal' needs the token of an operator whose role is steer: set ANTEROOM_TOKEN.",
      );
    }
    return {
      note:
        "Not marked as a rehearsal: the room's history takes these visitors for real ones. Set ANTEROOM_TOKEN to the " +
        "token of an operator whose role is steer.",
    };
  }
  const until = now / 1000 + Math.min(durationSeconds + SPARE_SECONDS, LONGEST_SECONDS);
  const header = given ?? sign(found.token, rehearsal ?? nameOf(now), until);
  const answer = await ask(url, { ...headers, [HEADER]: header });
  if (answer.rehearsal !== undefined && answer.until !== undefined) {
    const end = new Date(answer.until).toISOString().slice(0, 16).replace("T", " ");
    return {
      rehearsal: { name: answer.rehearsal, until: answer.until, header },
      note: `Marked as the rehearsal ${answer.rehearsal}, until ${end} UTC.`,
    };
  }
  const why = `${new URL(PATH, url).href}: ${answer.error}`;
  if (!isMeant) {
    return {
      note: `Not marked as a rehearsal: the room's history takes these visitors for real ones. ${why}.`,
    };
  }
  const skew = Math.round((now - (answer.now ?? now)) / 1000);
  const clock = Math.abs(skew) > 60 ? ` This machine's clock differs by ${skew} s.` : "";
  throw new UsageError(
    `error: the visitors cannot be marked: ${why}.${clock} Give ANTEROOM_TOKEN the token of an operator whose role is ` +
      "steer, or send them unmarked with --no-rehearsal.",
  );
}

/**
 * What the deployment says of a mark.
 * @param {string} url
 * @param {Record<string, string>} headers
 * @returns {Promise<{ rehearsal?: string, until?: number, now?: number, error?: string }>}
 */
async function ask(url, headers) {
  let status;
  try {
    const answer = await request(new URL(PATH, url), {
      headers,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    status = answer.statusCode;
    const said = JSON.parse(await answer.body.text());
    if (typeof said?.rehearsal === "string" && Number.isFinite(said.until)) return said;
    if (typeof said?.error === "string") return { error: said.error, now: said.now };
  } catch (error) {
    if (status === undefined) return { error: error instanceof Error ? error.message : `${error}` };
  }
  return { error: `status ${status}, so no room that knows rehearsals is there` };
}
