// Asks the room for the limits that are in force.
import { setTimeout as pause } from "node:timers/promises";

import { request } from "undici";

/** How often the room is asked, and how long it may take to answer. */
const EVERY_MS = 2_000;
const TIMEOUT_MS = 10_000;

/**
 * The room that covers a page, of those in the status.
 * @param {{ host: string | null, path: string }[]} rooms @param {string} url
 */
function roomOf(rooms, url) {
  const { hostname, pathname } = new URL(url);
  const below = (path) => path === "/" || pathname === path || pathname.startsWith(`${path}/`);
  const covering = rooms.filter(({ host, path }) => (host === null || host === hostname) && below(path));
  return covering.sort((one, other) => other.path.length - one.path.length)[0];
}

/** What one answer says. @param {any} room */
function limitsOf({ suspended, limits }) {
  const { total_active_users, new_users_per_minute } = limits;
  return suspended
    ? { active: Infinity, perMinute: Infinity }
    : { active: total_active_users, perMinute: new_users_per_minute };
}

/**
 * Asks the room for its limits again and again. Where it does not say them, those given stay.
 * @param {import("./limits.mjs").Limits} limits
 * @param {{ url: string, token: string | undefined, now: () => number, signal: AbortSignal }} asking
 */
export async function askForLimits(limits, { url, token, now, signal }) {
  if (!token) return;
  const where = new URL("/__anteroom/status?watch=false", url);
  while (!signal.aborted) {
    try {
      const asked = now();
      const answer = await request(where, {
        headers: { authorization: `Bearer ${token}`, accept: "application/json" },
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      const said = await answer.body.text();
      const room = answer.statusCode === 200 && roomOf(JSON.parse(said).rooms, url);
      if (room && !room.error) limits.add({ asked, answered: now(), limits: limitsOf(room) });
      else if (!limits.areKnown) return;
      await pause(EVERY_MS, undefined, { signal });
    } catch {
      // Once it has said them, it may say them again.
      if (signal.aborted || !limits.areKnown) return;
      await pause(EVERY_MS, undefined, { signal }).catch(() => {});
    }
  }
}
