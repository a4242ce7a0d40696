/**
 * `npm run doctor`: asks a room that is deployed what it sees, and says what is wrong with it and how to mend that.
 */
import { request } from "undici";
import { findToken, HEADER, prepare } from "./crowd/rehearsal.mjs";
import { DEV_VARS, Failure, main } from "./toolchain.mjs";

const TIMEOUT_MS = 30_000;
/** Signed admission, marks and orders with an end go by clocks; this much they forgive. */
const LARGEST_SKEW_MS = 5_000;

/** @typedef {{ ok: boolean, text: string, fix?: string }} Finding */

const good = (/** @type {string} */ text) => ({ ok: true, text });
const bad = (/** @type {string} */ text, /** @type {string} */ fix) => ({ ok: false, text, fix });

/**
 * @param {string | URL} url
 * @param {Record<string, string>} [headers]
 */
async function ask(url, headers = {}) {
  // A redirect is an answer like others, and a token goes nowhere else.
  const answer = await request(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
  const text = await answer.body.text();
  let json;
  try {
    json = JSON.parse(text);
  } catch {}
  const cookies = [answer.headers["set-cookie"] ?? []].flat();
  const ticket = cookies.find((cookie) => /^__anteroom(_\w+)?=/.test(cookie));
  return { status: answer.statusCode, headers: answer.headers, json, ticket };
}

/** Whether the Worker is there, with its own paths, and what time it is there. */
async function ofRoutes(url) {
  const before = Date.now();
  const { json, headers } = await ask(new URL("/__anteroom/rehearsal", url));
  const now = (before + Date.now()) / 2;
  if (typeof json?.now !== "number") {
    const isProxied = headers["cf-ray"] !== undefined;
    const fix = isProxied
      ? `add routes = ["${new URL(url).host}/*"] to wrangler.toml and deploy; with rooms on some paths, route the whole host all the same`
      : "Cloudflare does not answer there: let its proxy stand in front of the host's DNS record (the orange cloud)";
    return { isThere: false, findings: [bad("No Anteroom answers at /__anteroom/.", fix)] };
  }
  const skew = Math.round(json.now - now);
  const findings = [good("Anteroom answers at /__anteroom/: a route leads to it.")];
  findings.push(
    Math.abs(skew) <= LARGEST_SKEW_MS
      ? good("Its clock and this machine's agree.")
      : bad(
          `This machine's clock differs by ${Math.round(skew / 1000)} s.`,
          "set it by NTP; an origin's, too, if it checks Anteroom-Admitted",
        ),
  );
  return { isThere: true, findings };
}

/** The most rooms that are visited. */
const MOST_VISITS = 20;
const isLocal = ({ hostname }) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);

/** Addresses of the rooms that visitors may enter or wait in, but for the one that covers an address itself. */
function otherRooms(url, rooms) {
  const here = new URL(url);
  const isHere = ({ host }) => host === null || host === here.host;
  const covers = ({ path }) => here.pathname === path || here.pathname.startsWith(path.replace(/\/?$/, "/"));
  const [own] = rooms
    .filter((room) => isHere(room) && covers(room))
    .toSorted((one, other) => other.path.length - one.path.length);
  // What stands in for a site on this machine does not stand in for its other hosts.
  return rooms
    .filter((room) => room !== own && !room.suspended && (isHere(room) || !isLocal(here)))
    .map(({ host, path }) => new URL(path, host === null ? here.origin : `${here.protocol}//${host}`).href);
}

/**
 * What the deployment itself complains about, and which rooms there are.
 * @returns {Promise<{ findings: Finding[], others: string[] }>} `others`: addresses of rooms besides the one that covers `url`
 */
async function ofStatus(url, token) {
  const without = (...findings) => ({ findings, others: [] });
  if (!token)
    return without(
      bad("What the deployment complains about is closed.", "set ANTEROOM_TOKEN to an operator's token"),
    );
  const { status, json } = await ask(new URL("/__anteroom/status", url), {
    authorization: `Bearer ${token}`,
  });
  if (status === 401) {
    const fix =
      "set the secret ADMIN_TOKEN (at least 16 characters): npx wrangler secret put ADMIN_TOKEN; and ANTEROOM_TOKEN here to the same";
    return without(bad("The token opens nothing.", fix));
  }
  if (!Array.isArray(json?.rooms))
    return without(bad(`The status cannot be read (${status}).`, "look at its log: npx wrangler tail"));
  const findings = json.problems.map((problem) =>
    bad(`It says: ${problem}`, "mend that in wrangler.toml or the secrets, and deploy"),
  );
  for (const { name, error, suspended, held } of json.rooms) {
    if (error)
      findings.push(
        bad(`Room ${name}: ${error}`, "try again in a minute; then look at the log: npx wrangler tail"),
      );
    if (suspended)
      findings.push(
        bad(
          `Room ${name} is suspended: nobody waits.`,
          `npm run room -- clear ${name} suspended, or suspended = false`,
        ),
      );
    if (held)
      findings.push(bad(`Room ${name} holds new users: its origin is unhealthy.`, "see /__anteroom/health"));
  }
  const names = json.rooms.map(({ name }) => name).join(", ");
  return { findings: [good(`It has the rooms ${names}.`), ...findings], others: otherRooms(url, json.rooms) };
}

/** A visitor comes, and comes again. */
async function ofVisitor(url, headers) {
  const first = await ask(url, { accept: "text/html", ...headers });
  const cache = first.headers["cf-cache-status"];
  if (first.status >= 500 && !first.ticket)
    return [
      bad(
        `The address answers with status ${first.status}.`,
        "look at the origin, and at the log: npx wrangler tail",
      ),
    ];
  if (!first.ticket) {
    const isCached = cache === "HIT" || first.headers.age !== undefined;
    const fix = isCached
      ? "a cache in front of the Worker serves this page: keep Workers Cache off, and no other CDN in front"
      : "see with npm run check whether a room covers this address; set the secret COOKIE_KEYS: openssl rand -base64 32 | npx wrangler secret put COOKIE_KEYS";
    return [
      bad(
        `No room gives a visitor of this address a ticket${isCached ? `, cf-cache-status ${cache}` : ""}.`,
        fix,
      ),
    ];
  }
  const waits = first.headers.anteroom === "waiting";
  const findings = [good(`A visitor ${waits ? "waits" : "enters"}, and gets a ticket.`)];
  if (new URL(url).protocol === "https:" && !/; *secure/i.test(first.ticket))
    findings.push(bad("The ticket is not Secure.", 'cookie_attributes.secure = "auto" or "always"'));
  const again = await ask(url, { accept: "text/html", ...headers, cookie: first.ticket.split(";")[0] });
  // Who is in gets no other ticket within seconds; who waits does, with each refresh.
  if (!waits)
    findings.push(
      again.headers.anteroom !== "waiting" && !again.ticket
        ? good("Its cookie comes back: it is known the second time.")
        : bad(
            "It is not known the second time.",
            "something on the way takes cookies out of requests, or COOKIE_KEYS is not the same everywhere: look at transform rules, and deploy again",
          ),
    );
  return findings;
}

/** The same in another room of the deployment: only what is wrong with it, and that it is reached. */
async function ofOther(address, mark) {
  const { isThere, findings } = await ofRoutes(address).catch(() => ({
    isThere: false,
    findings: [bad("It cannot be reached.", "look at the host's DNS record")],
  }));
  if (isThere) findings.push(...(await ofVisitor(address, mark)));
  const wrong = findings.filter(({ ok }) => !ok);
  if (wrong.length === 0) return [good(`${address}: a visitor gets a ticket there, too.`)];
  return wrong.map(({ text, fix }) => bad(`${address}: ${text}`, fix));
}

/**
 * @param {string} url an address that a room covers
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Finding[]>}
 */
export async function examine(url, env) {
  const { isThere, findings } = await ofRoutes(url).catch((error) => {
    const fix = "look at the address, and at the host's DNS record";
    return {
      isThere: false,
      findings: [bad(`${url} cannot be reached (${error.code ?? error.message}).`, fix)],
    };
  });
  if (!isThere) return findings;
  const token = findToken(url, env, DEV_VARS)?.token;
  const { findings: told, others } = await ofStatus(url, token);
  findings.push(...told);
  // So that the history does not take it for a visitor.
  const marking = { url, headers: {}, durationSeconds: 60 };
  const { rehearsal } = await prepare(marking, { env, devVars: DEV_VARS, now: Date.now() }).catch(() => ({}));
  const mark = rehearsal && { [HEADER]: rehearsal.header };
  findings.push(...(await ofVisitor(url, mark ?? {})));
  // The other rooms' histories are left alone by who cannot be marked.
  for (const address of mark ? others.slice(0, MOST_VISITS) : [])
    findings.push(...(await ofOther(address, mark)));
  return findings;
}

main(import.meta.url, async () => {
  const { Command } = await import("commander");
  const { url } = new Command("npm run doctor --")
    .description(
      "Asks a deployed room what it sees: routes, secrets, cookies, caches, clocks. It comes as one visitor, marked as a " +
        "rehearsal if ANTEROOM_TOKEN is the token of an operator who steers. Exit status 1 when something is wrong.",
    )
    .requiredOption("--url <url>", "an address that a room covers, such as https://shop.example.com/sale")
    .parse()
    .opts();
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Failure(`--url ${url}: give an address such as https://shop.example.com/sale`, 2);
  const findings = await examine(url, process.env);
  for (const { ok, text, fix } of findings)
    console.log(ok ? `ok     ${text}` : `WRONG  ${text}\n       Fix: ${fix}.`);
  if (findings.some(({ ok }) => !ok)) throw new Failure("");
});
