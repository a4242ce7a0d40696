// Tokens that are made at run time: what is kept of them is a hash. `src/operator/tokens.rs` knows them by it.
import { CODE, isTime, noFields, pointerTo, problem, wrong } from "./fields.js";

/** What they may do, the least first; `src/operator/tokens.rs` says what that is. */
export const ROLES = ["view", "steer", "configure"];
/** So many may be good at once: each is compared with every token that comes. */
export const MOST_TOKENS = 100;
/** By this programs find one that has got into a text. */
const PREFIX = "anteroom_";
const NAME = /^[A-Za-z0-9_-]{1,32}$/;
const FIELDS = ["name", "role", "expires_on"];

/**
 * @typedef {{ v: 1, id: string, name: string, role: string, hash: string, last: string, created: number, by: string,
 *   ends: number | null, revoked?: number }} Token `hash`: SHA-256 in base64url; `last`: its last four characters; `ends`: null: it
 *   does not. One that was revoked is kept for a while, so that revoking it again is no error.
 */

const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

/** A token of 256 random bits, and its hash. */
export async function drawToken() {
  const text = PREFIX + base64url(crypto.getRandomValues(new Uint8Array(32)));
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return { text, hash: base64url(new Uint8Array(hash)) };
}

/** What is wrong with what was sent for a token. @param {string[]} taken names, in lower case */
export function judgeToken(sent, taken, now) {
  const { name, role, expires_on: ends = null } = sent;
  const problems = noFields(sent, FIELDS);
  if (typeof name !== "string" || !NAME.test(name))
    problems.push(
      wrong("name", "must be 1 to 32 letters, digits, _ or -. Fix: say whose it is, such as terraform"),
    );
  else if (taken.includes(name.toLowerCase())) {
    const message = `name "${name}" is that of another token. Fix: choose another one, or revoke that first`;
    problems.push(problem(CODE.taken, message, pointerTo("name")));
  }
  if (!ROLES.includes(role))
    problems.push(wrong("role", `must be one of ${ROLES.join(", ")}. Fix: view, if it is to read only`));
  if (ends !== null && !(isTime(ends) && Date.parse(ends) > now))
    problems.push(
      wrong(
        "expires_on",
        "must be a time to come. Fix: 2030-01-31T00:00:00Z, or leave it out: it never ends",
      ),
    );
  return problems;
}

/** As it is answered. @param {Token} token */
export const shownToken = ({ id, name, role, last, created, by, ends }, now) => ({
  id,
  name,
  role,
  status: ends !== null && ends <= now ? "expired" : "active",
  last_four: last,
  expires_on: ends === null ? null : new Date(ends).toISOString(),
  created_on: new Date(created).toISOString(),
  created_by: by,
});

/** The names of the tokens that are secrets, in lower case: `src/operator/tokens.rs` reads them. */
export const namesOfSecrets = ({ OPERATOR_TOKENS: named }) =>
  [
    "admin",
    ...(typeof named === "string" ? named.split(",") : []).map((entry) => entry.split(":")[0].trim()),
  ].map((name) => name.toLowerCase());
