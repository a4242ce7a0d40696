// The real world for visitors: a clock, cookie jars and HTTP. The only file of the crowd that does I/O for them.
import { CookieJar } from "tough-cookie";
import { Agent, request } from "undici";

import { Stopped } from "./visitor.mjs";

const TIMEOUT_MS = 30_000;
/** Timers cannot be longer. */
const LONGEST_SLEEP_MS = 2 ** 31 - 1;
/** Longer bodies are cut off. They are read and thrown away, so that the connection can be used again. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** A clock that never goes back, and on which everybody who sleeps can be woken at once. */
export class Clock {
  #stopped = false;
  /** @type {Map<(error?: Error) => void, NodeJS.Timeout>} */
  #sleepers = new Map();

  now = () => performance.timeOrigin + performance.now();

  /** @param {number} seconds @returns {Promise<void>} */
  sleep = (seconds) =>
    new Promise((resolve, reject) => {
      if (this.#stopped) return reject(new Stopped());
      /** @param {Error} [error] */
      const wake = (error) => {
        this.#sleepers.delete(wake);
        if (error) reject(error);
        else resolve();
      };
      this.#sleepers.set(
        wake,
        setTimeout(() => wake(), Math.min(seconds * 1000, LONGEST_SLEEP_MS)),
      );
    });

  stop() {
    this.#stopped = true;
    for (const [wake, timer] of this.#sleepers) {
      clearTimeout(timer);
      wake(new Stopped());
    }
  }
}

/**
 * HTTP over at most `connections` sockets that are kept open; more requests queue for them.
 * @param {{ connections: number, now: () => number }} options
 */
export function openHttp({ connections, now }) {
  const agent = new Agent({
    connections,
    connect: { timeout: TIMEOUT_MS },
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    pipelining: 1,
  });
  let stopped = false;

  /** @param {string} url @param {Record<string, string>} headers @returns {Promise<import("./visitor.mjs").Reply>} */
  async function fetch(url, headers) {
    try {
      const answer = await request(url, { dispatcher: agent, headers });
      const received = now();
      // What goes wrong in the body does not change what the headers said.
      await answer.body
        .dump({ limit: MAX_BODY_BYTES, signal: AbortSignal.timeout(TIMEOUT_MS) })
        .catch(() => {});
      const lines = answer.headers["set-cookie"] ?? [];
      return {
        status: answer.statusCode,
        header: (name) => [answer.headers[name] ?? []].flat()[0],
        setCookie: [lines].flat(),
        received,
      };
    } catch (error) {
      throw stopped ? new Stopped() : error;
    }
  }

  async function close() {
    stopped = true;
    await agent.destroy();
  }

  return { fetch, close };
}

/** A visitor's cookies, kept and sent by a browser's rules. @returns {import("./visitor.mjs").Jar} */
export function newJar() {
  const jar = new CookieJar();
  return {
    get: (url) => jar.getCookieStringSync(url),
    set: (url, line) => void jar.setCookieSync(line, url, { ignoreError: true }),
  };
}
