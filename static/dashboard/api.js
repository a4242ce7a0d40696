// The operator API, as docs/api.md describes it.

const ROOT = "/__anteroom/";
/** Where the API of rooms is. One deployment is one zone, whatever it is called. */
export const ROOMS = "client/v4/zones/main/waiting_rooms";
const LONGEST_MS = 15_000;

/** The API said no, or could not be reached (status 0). */
export class Refusal extends Error {
  /** @param {number} status @param {{ error?: string, errors?: object[] }} body */
  constructor(status, body) {
    super(body.error ?? body.errors?.[0]?.message ?? `The answer had status ${status}`);
    this.status = status;
    /** @type {{ field?: string, message: string, fix?: string, source?: { pointer: string, column?: number } }[]} */
    this.errors = body.errors ?? [];
  }
}

/** The address of a route. @param {Record<string, any>} parameters those that are undefined are left out */
export function address(route, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  const query = new URLSearchParams(given);
  return `${ROOT}${route}${given.length > 0 ? `?${query}` : ""}`;
}

/** Where the live connection is. */
export function liveAddress(room) {
  const url = new URL(address("live", { room }), location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

async function send(url, options) {
  let response;
  try {
    response = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(LONGEST_MS), ...options });
  } catch (error) {
    throw new Refusal(0, {
      error: error.name === "TimeoutError" ? "No answer within 15 s" : "The network does not answer",
    });
  }
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) dispatchEvent(new Event("anteroom-signed-out"));
  if (!response.ok) throw new Refusal(response.status, body);
  return body;
}

export const get = (route, parameters) =>
  send(address(route, parameters), { headers: { accept: "application/json" } });

export const remove = (route, parameters) =>
  send(address(route, parameters), { method: "DELETE", headers: { accept: "application/json" } });

export const post = (route, parameters, body) => change("POST", route, parameters, body);

/** @param {"POST" | "PUT" | "PATCH"} method */
export const change = (method, route, parameters, body) =>
  send(address(route, parameters), {
    method,
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
