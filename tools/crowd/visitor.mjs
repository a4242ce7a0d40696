// One visitor: arrives, waits as the page says, views pages, goes silent. Everything it needs is handed in, so that
// it plays the same against a server, a test's server and a room in memory on a clock of its own.

/** How many requests in a row may fail before a visitor gives up. */
export const MAX_FAILURES = 5;
/** Seconds until a visitor without a page tries again. */
const RETRY_SECONDS = 5;
/** Seconds between refreshes when a waiting page does not say. */
const REFRESH_SECONDS = 20;
/** A page that says less would have us run in circles. */
const SHORTEST_REFRESH_SECONDS = 0.1;
const MAX_REDIRECTS = 5;
/** The room's cookie, with or without a suffix, in a Cookie header. */
const TICKET = /(?:^|;\s*)__anteroom(?:_[^=;]*)?=/;

/** What a browser sends when somebody opens a page. */
export const BROWSER_HEADERS = {
  "user-agent":
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 anteroom-crowd",
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
  "accept-language": "en-US,en;q=0.9",
  "accept-encoding": "gzip, deflate, br",
  "upgrade-insecure-requests": "1",
  "sec-fetch-dest": "document",
  "sec-fetch-mode": "navigate",
  "sec-fetch-site": "none",
  "sec-fetch-user": "?1",
};

/** Thrown by `sleep` and `fetch` when the crowd is sent home. */
export class Stopped extends Error {}

/**
 * @typedef {object} Reply
 * @property {number} status
 * @property {(name: string) => string | undefined} header
 * @property {string[]} setCookie The Set-Cookie lines.
 * @property {number} received When the headers arrived.
 */
/**
 * @typedef {object} World What a visitor plays with.
 * @property {(url: string, headers: Record<string, string>) => Promise<Reply>} fetch Follows no redirects.
 * @property {(seconds: number) => Promise<void>} sleep
 * @property {() => number} now In ms since the epoch, never going back.
 */
/** @typedef {{ get: (url: string) => string, set: (url: string, line: string) => void }} Jar */
/**
 * @typedef {object} Habits
 * @property {string} url
 * @property {Record<string, string>} headers
 * @property {number} pages Mean number of pages viewed.
 * @property {number} thinkSeconds Mean time between pages.
 * @property {number} patienceSeconds After waiting for this time the visitor leaves.
 */

/**
 * Plays one visitor to its end and reports everything that happens, in order.
 * @param {World & Habits & { id: number, jar: Jar, random: () => number,
 *   report: (event: import("./measure.mjs").CrowdEvent) => void }} visitor
 */
export async function playVisitor(visitor) {
  const { id, sleep, now, random, report } = visitor;
  try {
    report({ type: "arrived", visitor: id, at: now() });
    const why = await visit(visitor);
    report({ type: "left", visitor: id, at: now(), why });
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  }

  /** @param {typeof visitor} visitor @returns {Promise<"done" | "abandoned" | "gave up">} */
  async function visit({ url, pages, thinkSeconds, patienceSeconds }) {
    let toView = numberOfPages(random, pages);
    let waiting = { since: Infinity, refresh: RETRY_SECONDS };
    let failures = 0;
    let target = url;
    for (;;) {
      const answer = await open(visitor, target);
      report(answer.event);
      failures = answer.event.type === "failed" ? failures + 1 : 0;
      if (failures === MAX_FAILURES) return "gave up";
      if (answer.event.type === "admitted") {
        waiting = { since: Infinity, refresh: RETRY_SECONDS };
        target = url;
        toView -= 1;
        if (toView === 0) return "done";
        await sleep(exponential(random, thinkSeconds));
        continue;
      }
      if (answer.event.type === "waiting") {
        waiting = {
          since: Math.min(waiting.since, answer.event.sent),
          refresh: answer.event.refresh ?? REFRESH_SECONDS,
        };
        target = answer.target ?? target;
      }
      const patienceLeft = patienceSeconds - Math.max(0, now() - waiting.since) / 1000;
      if (patienceLeft <= waiting.refresh) {
        await sleep(Math.max(0, patienceLeft));
        return "abandoned";
      }
      await sleep(waiting.refresh);
    }
  }
}

/**
 * Opens a page, following redirects on its own host.
 * @param {World & { id: number, jar: Jar, headers: Record<string, string> }} visitor
 * @param {string} url
 * @returns {Promise<{ event: import("./measure.mjs").Answer | import("./measure.mjs").Failure, target?: string }>}
 */
async function open({ id, jar, headers, fetch, now }, url) {
  const sent = now();
  let requests = 0;
  let ticket = false;
  /** @param {string} reason @returns {{ event: import("./measure.mjs").Failure }} */
  const failed = (reason) => ({
    event: { type: "failed", visitor: id, sent, received: now(), reason, requests },
  });
  for (;;) {
    requests += 1;
    const cookies = jar.get(url);
    ticket ||= TICKET.test(cookies);
    let reply;
    try {
      reply = await fetch(url, {
        ...BROWSER_HEADERS,
        ...headers,
        ...(cookies === "" ? {} : { cookie: cookies }),
      });
    } catch (error) {
      if (error instanceof Stopped) throw error;
      return failed(reasonOf(error));
    }
    for (const line of reply.setCookie) jar.set(url, line);
    const waiting = reply.header("anteroom")?.trim().toLowerCase() === "waiting";
    const next = waiting || reply.status < 300 || reply.status >= 400 ? undefined : reply.header("location");
    if (next !== undefined && requests > MAX_REDIRECTS) return failed("too many redirects");
    const target = next === undefined ? undefined : onOwnHost(url, next);
    if (target !== undefined) {
      url = target;
      continue;
    }
    if (!waiting && reply.status >= 400) return failed(`status ${reply.status}`);
    const date = Date.parse(reply.header("date") ?? "");
    const told = waiting ? parseRefresh(reply.header("refresh")) : undefined;
    return {
      event: {
        type: waiting ? "waiting" : "admitted",
        visitor: id,
        sent,
        received: reply.received,
        requests,
        ticket,
        ...(Number.isNaN(date) ? {} : { date }),
        ...(waiting && { refresh: told?.seconds ?? REFRESH_SECONDS }),
      },
      target: told?.url === undefined ? undefined : onOwnHost(url, told.url),
    };
  }
}

/**
 * The address, if it leads to the same host, and from https not back to http: a crowd goes nowhere else.
 * @param {string} from @param {string} to
 */
function onOwnHost(from, to) {
  if (!URL.canParse(to, from)) return undefined;
  const [base, target] = [new URL(from), new URL(to, from)];
  const web = target.protocol === base.protocol || target.protocol === "https:";
  return web && target.hostname === base.hostname ? target.href : undefined;
}

/**
 * A Refresh header: seconds, perhaps an address. Unlike browsers it takes fractions of seconds.
 * @param {string | undefined} value
 */
export function parseRefresh(value) {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(?:[;,]\s*(?:url\s*=\s*)?(?:"([^"]*)"|'([^']*)'|(.*?)))?\s*$/i.exec(
    value ?? "",
  );
  if (!match) return undefined;
  const url = match[2] ?? match[3] ?? match[4];
  return { seconds: Math.max(SHORTEST_REFRESH_SECONDS, Number(match[1])), url: url ? url : undefined };
}

/** @param {unknown} error */
function reasonOf(error) {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}

/**
 * Random numbers in [0, 1) that repeat with their seed; streams of one seed are independent of each other.
 * @param {number} seed @param {number} [stream]
 */
export function seeded(seed, stream = 0) {
  let state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(stream + 1, 0x85ebca6b)) >>> 0;
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param {() => number} random @param {number} mean */
export function exponential(random, mean) {
  return -Math.log(1 - random()) * mean;
}

/** The exponential distribution in whole numbers, from 1. @param {() => number} random @param {number} mean */
export function numberOfPages(random, mean) {
  if (mean <= 1) return 1;
  return 1 + Math.floor(exponential(random, -1 / Math.log(1 - 1 / mean)));
}
