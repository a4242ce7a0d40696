// The deployment's API, and what went wrong with it in a sentence.
import { request, WebSocket } from "undici";

import { findToken } from "../crowd/rehearsal.mjs";
import { DEV_VARS } from "../toolchain.mjs";
import { UsageError } from "./options.mjs";

const TIMEOUT_MS = 30_000;

/** The deployment does not do what it was asked for. */
export class Refused extends Error {
  /** @param {string} message @param {number} [code] the exit code */
  constructor(message, code = 1) {
    super(message);
    this.code = code;
  }
}

/** @param {string} url The site. */
export function openApi(url) {
  const token = findToken(url, process.env, DEV_VARS)?.token;
  if (!token) throw new UsageError("error: set ANTEROOM_TOKEN to an operator's token.");
  const address = (/** @type {string} */ path, /** @type {Record<string, unknown>} */ query) => {
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(given.map(([name, value]) => [name, `${value}`]));
    return new URL(`/__anteroom/${path}${given.length > 0 ? `?${search}` : ""}`, url);
  };
  const authorization = `Bearer ${token}`;

  /**
   * @param {string} path @param {Record<string, unknown>} [query] @param {unknown} [body] With one it is a POST,
   * @param {string} [method] unless this is another.
   * @returns {Promise<string>} The answer's body.
   */
  async function text(path, query = {}, body = undefined, method = body === undefined ? "GET" : "POST") {
    const where = address(path, query);
    let answer;
    let said;
    try {
      // A redirect is not followed: the token goes nowhere else.
      answer = await request(where, {
        method,
        headers: { authorization, accept: "application/json", "content-type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      said = await answer.body.text();
    } catch (error) {
      throw unreachable(url, error);
    }
    if (answer.statusCode === 200) return said;
    throw refusal(where.href.split("?")[0], answer.statusCode, said);
  }

  return {
    text,
    json: async (
      /** @type {string} */ path,
      /** @type {Record<string, unknown>} */ query,
      /** @type {unknown} */ body = undefined,
      /** @type {string | undefined} */ method = undefined,
    ) => {
      const said = await text(path, query, body, method);
      try {
        return JSON.parse(said);
      } catch {
        throw new Refused(
          `${address(path, query).href} answers something else: is a room of Anteroom there?`,
          2,
        );
      }
    },

    /**
     * Listens to a room until it is told to end.
     * @param {string} room @param {(message: any) => boolean} told Returns whether to go on.
     */
    async listen(room, told) {
      const where = address("live", { room });
      // What is refused is told in words only without an upgrade.
      const problem = await request(where, {
        headers: { authorization },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      }).then(
        async ({ statusCode, body }) => {
          const said = await body.text();
          return statusCode === 426 ? undefined : refusal(where.href.split("?")[0], statusCode, said);
        },
        (error) => unreachable(url, error),
      );
      if (problem) throw problem;
      const socket = new WebSocket(`${where.href.replace(/^http/, "ws")}`, { headers: { authorization } });
      await untilTheEnd(socket, told).catch((error) => {
        throw unreachable(url, error);
      });
    },
  };
}

/** Passes on what a socket says until it is to end, or we are. @param {WebSocket} socket @param {(message: any) => boolean} told */
async function untilTheEnd(socket, told) {
  const stop = () => socket.close();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    await new Promise((resolve, reject) => {
      socket.addEventListener("message", ({ data }) => {
        if (!told(JSON.parse(`${data}`))) resolve(undefined);
      });
      socket.addEventListener("close", ({ code }) =>
        code === 1000 || code === 1005 ? resolve(undefined) : reject(new Error(`code ${code}`)),
      );
      socket.addEventListener("error", () => reject(new Error("the connection broke off")));
    });
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
    socket.close();
  }
}

/** @param {string} url @param {any} error */
function unreachable(url, error) {
  const reason =
    error?.name === "TimeoutError"
      ? `no answer within ${TIMEOUT_MS / 1000} s`
      : (error?.code ?? error?.message);
  return new Refused(
    `${url} cannot be reached (${reason}). Start the room first (npm start), or give --url.`,
    2,
  );
}

/** @param {string} where @param {number} status @param {string} said */
function refusal(where, status, said) {
  /** @type {{ error?: string, success?: boolean, errors?: { field: string, value: string, message: string, fix: string }[] }} */
  let told = {};
  try {
    told = JSON.parse(said);
  } catch {}
  if (told?.success === false) {
    const messages = told.errors.map(({ message }) => `  ${message}`);
    const words = [`The room was refused (status ${status}):`, ...messages].join("\n");
    return Object.assign(new Refused(words, status === 401 ? 2 : 1), { status, errors: told.errors });
  }
  if (typeof told?.error !== "string") {
    const fix = status === 404 ? ": is a room of Anteroom there, and is its version this one's?" : "";
    return new Refused(`${where}: status ${status}${fix}`);
  }
  const fields = (told.errors ?? []).map(
    ({ field, value, message, fix }) => `  ${field} = ${value}: ${message}. Fix: ${fix}`,
  );
  const fix = status === 401 ? "\nSet ANTEROOM_TOKEN to an operator's token." : "";
  return new Refused(
    [`${told.error}${/[.!?]$/.test(told.error) ? "" : "."}${fix}`, ...fields].join("\n"),
    status === 401 ? 2 : 1,
  );
}
