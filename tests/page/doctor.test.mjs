// What the doctor finds at deployments that something is wrong with: each of its findings, with what mends it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { examine } from "../../tools/doctor.mjs";

const TOKEN = "the-token-of-the-tests";
const ROOMS = [
  { name: "sale", host: null, path: "/sale" },
  { name: "shop", host: null, path: "/" },
];

/**
 * What a doctor finds at a deployment.
 * @param {object} how what is wrong with it
 * @returns {Promise<{ ok: string[], wrong: [text: string, fix: string][] }>}
 */
async function diagnosis({ token = TOKEN, path = "/sale", env = { ANTEROOM_TOKEN: TOKEN }, ...how } = {}) {
  const visits = [];
  const json = (answer, value, status = 200) => {
    answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  };
  const server = createServer((request, answer) => {
    const { url, headers } = request;
    if (how.proxied) answer.setHeader("cf-ray", "8f00");
    if (url.startsWith("/__anteroom/") && how.unrouted) return answer.writeHead(404).end("Not found");
    if (url === "/__anteroom/rehearsal") {
      const now = Date.now() + (how.aheadMs ?? 0);
      if (!headers["anteroom-rehearsal"] || token !== TOKEN)
        return json(answer, { now, error: "no mark" }, 400);
      return json(answer, { now, rehearsal: "doctor", until: now + 60_000 });
    }
    if (url === "/__anteroom/status") {
      if (how.status) return json(answer, {}, how.status);
      if (headers.authorization !== `Bearer ${token}`) return json(answer, { error: "who?" }, 401);
      return json(answer, { problems: how.problems ?? [], rooms: how.rooms ?? ROOMS });
    }
    visits.push({ url, mark: headers["anteroom-rehearsal"] !== undefined });
    const known = headers.cookie !== undefined && !how.forgets;
    if (how.fails) return answer.writeHead(522).end();
    if (how.cached || how.ticketless === url) {
      return answer.writeHead(200, how.cached ? { "cf-cache-status": "HIT", age: "7" } : {}).end("a page");
    }
    if (!known || how.waits) answer.setHeader("set-cookie", "__anteroom=x; Path=/; HttpOnly");
    if (how.waits) answer.setHeader("anteroom", "waiting");
    answer.end("a page");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const findings = await examine(`http://127.0.0.1:${server.address().port}${path}`, env);
    const hosts = (text) => text.replaceAll(/127\.0\.0\.1:\d+/g, "host");
    const wrong = findings.filter(({ ok }) => !ok).map(({ text, fix }) => [hosts(text), hosts(fix)]);
    return { ok: findings.filter(({ ok }) => ok).map(({ text }) => hosts(text)), wrong, visits };
  } finally {
    server.close();
  }
}

test("a deployment that is well: a marked visitor enters, is known again, and reaches the other rooms", async () => {
  const { ok, wrong, visits } = await diagnosis();
  assert.deepEqual(wrong, []);
  assert.deepEqual(ok, [
    "Anteroom answers at /__anteroom/: a route leads to it.",
    "Its clock and this machine's agree.",
    "It has the rooms sale, shop.",
    "A visitor enters, and gets a ticket.",
    "Its cookie comes back: it is known the second time.",
    "http://host/: a visitor gets a ticket there, too.",
  ]);
  assert.ok(visits.every(({ mark }) => mark) && visits.some(({ url }) => url === "/"));
  assert.ok((await diagnosis({ waits: true })).ok.includes("A visitor waits, and gets a ticket."));
});

test("whoever cannot be marked visits one room only", async () => {
  const { visits } = await diagnosis({ env: { ANTEROOM_TOKEN: "another" } });
  assert.deepEqual([...new Set(visits.map(({ url }) => url))], ["/sale"]);
});

for (const [what, how, text, fix] of [
  ["no route", { unrouted: true, proxied: true }, /No Anteroom answers/, /routes = \["host\/\*"\]/],
  ["no proxy", { unrouted: true }, /No Anteroom answers/, /orange cloud/],
  ["a clock", { aheadMs: 60_000 }, /clock differs by 60 s/, /NTP/],
  ["a wrong token", { token: "another" }, /token opens nothing/, /wrangler secret put ADMIN_TOKEN/],
  ["no status", { status: 500 }, /status cannot be read \(500\)/, /wrangler tail/],
  [
    "a missing secret",
    { problems: ["COOKIE_KEYS is missing"] },
    /It says: COOKIE_KEYS/,
    /secrets, and deploy/,
  ],
  ["a room's error", { rooms: [{ ...ROOMS[0], error: "no answer" }] }, /Room sale: no answer/, /log/],
  [
    "a suspended room",
    { rooms: [{ ...ROOMS[0], suspended: true }] },
    /sale is suspended/,
    /clear sale suspended/,
  ],
  ["a held room", { rooms: [{ ...ROOMS[0], held: true }] }, /origin is unhealthy/, /\/__anteroom\/health/],
  ["an origin that fails", { fails: true }, /status 522/, /origin/],
  ["a cache in front", { cached: true }, /no room gives.*cf-cache-status HIT/i, /Workers Cache off/],
  [
    "an uncovered address",
    { ticketless: "/sale" },
    /No room gives a visitor of this address/,
    /npm run check/,
  ],
  [
    "another room that is not reached",
    { ticketless: "/" },
    /^http:\/\/host\/: No room gives/,
    /npm run check/,
  ],
  ["lost cookies", { forgets: true }, /not known the second time/, /transform rules/],
])
  test(`${what} is found, and what mends it is said`, async () => {
    const { wrong } = await diagnosis(how);
    const found = wrong.find(([said]) => text.test(said));
    assert.ok(found, `${wrong}`);
    assert.match(found[1], fix);
    assert.ok(
      wrong.every(([, mends]) => mends.length > 10),
      "each has a fix",
    );
  });

test("without a token it says what it does not see, and nothing that cannot be reached ends it", async () => {
  const { wrong } = await diagnosis({ env: {}, token: "x" });
  assert.ok(
    wrong.some(([, fix]) => /ANTEROOM_TOKEN/.test(fix)),
    `${wrong}`,
  );
  const [{ ok, text }] = await examine("http://127.0.0.1:9/", {});
  assert.ok(!ok && /cannot be reached/.test(text), text);
});
