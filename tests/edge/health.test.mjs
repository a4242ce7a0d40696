// The origin's health in real workerd: notifications of the platform's health checks, what refuses them, the page and
// its JSON, and that nothing of it is lost, counted twice or kept for ever.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { notification, platformTime, record, unobserved, WEBHOOK, WEBHOOK_SECRET } from "./health.mjs";
import { ADMIN_TOKEN, room, startWorld } from "./world.mjs";

const PAGE = "/__anteroom/health";
const DAY_MS = 86_400_000;

describe("the origin's health", () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: { shop: room("/") },
      vars: { WEBHOOK_SECRET, HEALTH_PAGE: "public", ...unobserved("staging", "gone") },
      colos: { AMS: 2 },
    });
  });
  after(() => world.close());

  const notify = (body, { headers, ...more } = {}) =>
    world.send({
      path: WEBHOOK,
      method: "POST",
      headers: { "cf-webhook-auth": WEBHOOK_SECRET, "content-type": "application/json", ...headers },
      body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      ...more,
    });
  const page = async (query = "", options = {}) => world.send({ path: `${PAGE}${query}`, ...options });
  // Operators see what has happened just now.
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const fresh = async (query = "") => page(query, { headers });
  const view = async (query = "") => JSON.parse((await page(`.json${query}`, { worker: 1, headers })).body);
  const check = async (name) => (await view()).checks.find((check) => check.name === name);
  const rows = (query) => world.rows("Health", "health", query);
  const stored = async () =>
    rows("SELECT (SELECT count(*) FROM checks) AS checks, (SELECT count(*) FROM events) AS events");

  test("nothing is known before the first notification", async () => {
    const { status, headers, body } = await fresh();
    assert.equal(status, 200);
    assert.match(headers["content-type"], /^text\/html/);
    assert.match(body, /Nothing has been reported yet/);
    assert.deepEqual((await view()).checks, []);
    assert.equal((await view()).status, "Unknown");
  });

  test("the test of a new webhook is acknowledged and no check", async () => {
    const text = "Hello World! This is a test message sent from https://cloudflare.com.";
    assert.equal((await notify({ text })).status, 200);
    assert.equal((await notify(notification({ preview: true }))).status, 200);
    assert.deepEqual((await view()).checks, []);
  });

  test("an origin goes down and comes back, as the article walks through it", async () => {
    const down = Date.now() - 60_000;
    assert.equal((await notify(notification({ time: platformTime(down) }))).status, 200);
    const unhealthy = await check("configuration-service");
    assert.equal(unhealthy.status, "Unhealthy");
    assert.equal(unhealthy.reason, "TCP connection failed");
    assert.equal(unhealthy.since, down - (down % 1000));
    let { body } = await fresh();
    assert.match(body, /configuration-service is unhealthy/);
    assert.match(body, /TCP connection failed/);

    const up = notification({ status: "Healthy", reason: "No failures", actual_code: 200 });
    assert.equal((await notify(up)).status, 200);
    const healthy = await check("configuration-service");
    assert.deepEqual([healthy.status, healthy.reason, healthy.actual_code], ["Healthy", "No failures", 200]);
    ({ body } = await fresh());
    assert.match(body, /The check is healthy/);
    assert.match(body, /No failures/);

    // Late and repeated, and in any number: the state stays, and nothing is there twice.
    const before = await stored();
    for (const again of [notification({ time: platformTime(down) }), up]) {
      assert.equal((await notify(again)).status, 200);
    }
    assert.equal((await check("configuration-service")).status, "Healthy");
    assert.deepEqual(await stored(), before);
    // What is told late and has not been told before belongs to the past too.
    assert.equal((await notify(notification({ time: platformTime(down - 3_600_000) }))).status, 200);
    const { status, since } = await check("configuration-service");
    assert.deepEqual([status, since], ["Healthy", healthy.since]);
    const { changes } = await view();
    assert.deepEqual(
      changes.map(({ status }) => status),
      ["Healthy", "Unhealthy", "Unhealthy"],
    );
  });

  test("forged, malformed and huge notifications are refused with a sentence and leave nothing", async () => {
    const before = await stored();
    const good = notification({ name: "forged", health_check_id: "forged" });
    const auth = (secret) => ({ headers: { "cf-webhook-auth": secret } });
    for (const [answer, status, says] of [
      [await notify(good, auth("")), 401, /WEBHOOK_SECRET/],
      [await notify(good, auth(WEBHOOK_SECRET.slice(1))), 401, /WEBHOOK_SECRET/],
      [await notify(good, auth(`${WEBHOOK_SECRET}x`)), 401, /WEBHOOK_SECRET/],
      [await notify(good, auth(ADMIN_TOKEN)), 401, /WEBHOOK_SECRET/],
      [await world.send({ path: WEBHOOK }), 405, /POST/],
      [await notify(good, { method: "PUT" }), 405, /POST/],
      [await notify(""), 400, /JSON/],
      [await notify('{"data":'), 400, /JSON/],
      [await notify(Buffer.from([0xff, 0x00])), 400, /JSON/],
      [await notify({ ...good, colour: "red" }), 400, /"colour"/],
      [await notify(notification({ name: 7 })), 400, /"data.name"/],
      [await notify(notification({ name: "x".repeat(201) })), 400, /"data.name"/],
      [await notify(notification({ time: "soon" })), 400, /"data.time"/],
      [await notify(notification({ time: platformTime(Date.now() + 3_600_000) })), 400, /future/],
      [await notify(JSON.stringify({ ...good, text: "x".repeat(20_000) })), 413, /16384 bytes/],
      // Without a length told before.
      [
        await notify(JSON.stringify({ ...good, text: "x".repeat(20_000) }), {
          headers: { "cf-webhook-auth": WEBHOOK_SECRET, "transfer-encoding": "chunked" },
        }),
        413,
        /16384 bytes/,
      ],
    ]) {
      assert.equal(answer.status, status, answer.body);
      assert.match(answer.body, says);
    }
    assert.deepEqual(await stored(), before);
    assert.ok(!(await fresh()).body.includes("forged"));
  });

  test("what a check is called stays text", async () => {
    const name = "<script>alert(1)</script><img src=x onerror=alert(1)>";
    const evil = notification({ name, reason: name, health_check_id: "evil" });
    assert.equal((await notify(evil)).status, 200);
    const { body, headers } = await fresh();
    assert.ok(body.includes("&#60;script&#62;alert(1)"), body);
    assert.ok(!body.includes("<script>") && !body.includes("<img"), body);
    assert.match(
      headers["content-security-policy"],
      /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'self';/,
    );
    assert.equal((await check(name)).reason, name);
  });

  test("everything that was answered is there after a restart", async () => {
    const before = await view();
    await world.restart("Health", "health");
    const { at: _before, ...kept } = before;
    const { at: _after, ...restarted } = await view();
    assert.deepEqual(
      restarted.checks.map(({ name, status, reason, since }) => ({ name, status, reason, since })),
      kept.checks.map(({ name, status, reason, since }) => ({ name, status, reason, since })),
    );
    assert.deepEqual(restarted.changes, kept.changes);
  });

  test("results of observers make availability, errors and percentiles, each counted once", async () => {
    const now = Date.now();
    const results = Array.from({ length: 50 }, (_, index) => ({
      check: "staging",
      region: index % 2 ? "wnam" : "apac",
      at: now - index * 1_000,
      ...(index % 25 < 6
        ? { reason: "TCP connection failed" }
        : { code: 200, waterfall: index % 2 ? [41, 80, 100, 120] : [10, 20, 30, 40] }),
    }));
    for (const message of [results.slice(0, 30), results.slice(20), results]) {
      assert.equal((await world.tell("Health", "health", "/record", record(message))).status, 200);
      await world.restart("Health", "health");
    }
    const staging = await check("staging");
    assert.equal(staging.source, "check");
    assert.deepEqual(
      staging.availability.map(({ range, percent, tally }) => [range, percent, tally.total]),
      ["1h", "24h", "7d", "30d"].map((range) => [range, "76 %", 50]),
    );
    assert.deepEqual(staging.errors, [{ reason: "TCP connection failed", count: 12 }]);
    const percentiles = ({ moments }) => moments.map((moment) => moment.p50);
    const [apac, wnam] = staging.regions;
    assert.deepEqual([apac.region, percentiles(apac)], ["apac", [10, 20, 30, 40]]);
    assert.deepEqual([wnam.region, percentiles(wnam)], ["wnam", [41, 80, 100, 120]]);
    const { results: log } = await view(`?check=${encodeURIComponent(staging.id)}`);
    assert.deepEqual([log.length, log[0].at], [50, now]);
    const { body } = await fresh("?range=1h");
    assert.match(
      body,
      /<th scope="row">staging<\/th><td>TCP connection failed<\/td><td class="number">12<\/td>/,
    );
    assert.match(body, /10 \/ 10 \/ 10/);
  });

  test("a check keeps its newest results, and what has gone is not counted again", async () => {
    const results = Array.from({ length: 20_100 }, (_, index) => ({
      check: "staging",
      region: "WEU",
      at: Date.now() - 120_000 - index * 1_000,
      code: 200,
    }));
    const send = async (part) => {
      const { status, body } = await world.tell("Health", "health", "/record", record(part));
      assert.equal(status, 200, body);
    };
    for (let from = 0; from < results.length; from += 5_000) await send(results.slice(from, from + 5_000));
    const counted = async () => (await check("staging")).availability.at(-1).tally.total;
    assert.equal(await counted(), 20_150);
    await world.ring("Health", "health");
    assert.deepEqual(await rows("SELECT count(*) AS kept FROM results"), [{ kept: 20_000 }]);
    await send(results.slice(-300));
    assert.equal(await counted(), 20_150);
  });

  test("one check more than there is room for takes the place of the one silent for longest", async () => {
    const [first] = await rows(
      "SELECT id, name FROM checks WHERE id LIKE 'webhook/%' ORDER BY heard LIMIT 1",
    );
    const [{ known }] = await rows("SELECT count(*) AS known FROM checks");
    for (let number = known; number <= 200; number += 1) {
      const answer = await notify(
        notification({ name: `many-${number}`, health_check_id: `many-${number}` }),
      );
      assert.equal(answer.status, 200, answer.body);
    }
    assert.deepEqual(await rows("SELECT count(*) AS known FROM checks"), [{ known: 200 }]);
    assert.ok(!(await view()).checks.some(({ id }) => id === first.id));
    assert.deepEqual(await rows(`SELECT * FROM events WHERE id = '${first.id}'`), []);
    assert.equal((await page("?range=7d")).status, 200);
    await rows("DELETE FROM checks WHERE name LIKE 'many-%'");
    await rows("DELETE FROM events WHERE id LIKE 'webhook/many-%'");
  });

  test("what is older than may be kept goes, and the newest news of a check stays", async () => {
    const old = Date.now() - 40 * DAY_MS;
    for (const [time, status] of [
      [old - 5 * DAY_MS, "Unhealthy"],
      [old, "Healthy"],
    ]) {
      const told = notification({
        time: platformTime(time),
        status,
        name: "quiet",
        health_check_id: "quiet",
      });
      assert.equal((await notify(told)).status, 200);
    }
    await world.tell("Health", "health", "/record", record([{ check: "gone", region: "weu", at: old }]));
    await rows("SELECT 1"); // an empty alarm would ring for ever
    await world.ring("Health", "health");
    const events = await rows("SELECT at FROM events WHERE id = 'webhook/quiet'");
    assert.deepEqual(events, [{ at: old - (old % 1000) }]);
    assert.equal((await check("quiet")).status, "Healthy");
    assert.equal(await check("gone"), undefined);
    // A month later the results are gone too, slot by slot, and the check with them.
    await rows(`UPDATE checks SET heard = heard - ${31 * DAY_MS} WHERE id = 'check/staging'`);
    await world.ring("Health", "health");
    assert.equal(await check("staging"), undefined);
    assert.deepEqual(
      await rows("SELECT (SELECT count(*) FROM results) + (SELECT count(*) FROM sums) AS left"),
      [{ left: 0 }],
    );
  });

  test("the page's script is kept for ever under its version's address, and a wrong query gets a sentence", async () => {
    const [, address] = (await page()).body.match(/<script src="([^"]+)" defer>/);
    const script = await world.send({ path: address });
    assert.deepEqual(
      [script.status, script.headers["cache-control"]],
      [200, "public, max-age=31536000, immutable"],
    );
    assert.match(script.headers["content-type"], /^text\/javascript/);
    assert.ok(script.body.startsWith(`//${address.split("=")[1]}\n`), script.body.slice(0, 40));
    assert.equal(
      (await world.send({ path: "/__anteroom/health.js?v=old" })).headers["cache-control"],
      "no-cache",
    );
    for (const [query, status] of [
      ["?range=1y", 400],
      ["?range=", 400],
      ["?check=nobody", 404],
      [`?check=${"x".repeat(5_000)}`, 404],
      ["?check=%ff%00&range=7d", 404],
      ["?range=7d&check=", 200],
      ["?unknown=1", 200],
    ]) {
      assert.equal((await page(query)).status, status, query);
    }
    const { headers, body } = await page("", { headers: { accept: "application/json" } });
    assert.equal(headers["content-type"], "application/json");
    assert.equal(JSON.parse(body).range, "24h");
    assert.equal((await page("", { method: "DELETE" })).status, 405);
  });

  test("however many look at it, and for whatever check, the object is asked about once a second", async () => {
    assert.equal((await page()).status, 200);
    const views = async () => (await world.calls("health")).filter(({ route }) => route === "/view").length;
    const [before, begin] = [await views(), Date.now()];
    const unknown = ["nobody", "check/nobody", "check/", "webhook/nobody"];
    const asked = Array.from({ length: 60 }, (_, number) =>
      number % 2 ? page() : page(`?check=${unknown[(number / 2) % unknown.length]}`),
    );
    const answers = await Promise.all(asked);
    for (const [number, { status }] of answers.entries()) assert.equal(status, number % 2 ? 200 : 404);
    const seconds = Math.ceil((Date.now() - begin) / 1_000);
    assert.ok((await views()) - before <= 1 + seconds, `${(await views()) - before} calls in ${seconds} s`);
  });

  test("without its secret the webhook is closed, and the page is behind the token unless it is set otherwise", async () => {
    const rooms = { shop: room("/") };
    await world.deploy({ rooms, vars: {} });
    const before = await stored();
    for (const secret of ["", WEBHOOK_SECRET]) {
      assert.equal((await notify(notification(), { headers: { "cf-webhook-auth": secret } })).status, 401);
    }
    assert.deepEqual(await stored(), before);
    const closed = await page();
    assert.equal(closed.status, 401);
    assert.match(closed.headers["www-authenticate"], /^Basic realm=/);
    const basic = (text) => `Basic ${Buffer.from(text).toString("base64")}`;
    for (const [authorization, status] of [
      [`Bearer ${ADMIN_TOKEN}`, 200],
      [basic(`me:${ADMIN_TOKEN}`), 200],
      [basic(`${ADMIN_TOKEN}:`), 401],
      [basic("me"), 401],
      ["Basic %%%", 401],
      [`Bearer ${ADMIN_TOKEN}x`, 401],
      ["Bearer ", 401],
    ]) {
      assert.equal((await page("", { headers: { authorization } })).status, status, authorization);
      assert.equal((await page(".json", { headers: { authorization } })).status, status, authorization);
    }
    await world.deploy({ rooms, vars: { ADMIN_TOKEN: undefined } });
    assert.equal((await page("", { headers: { authorization: "Bearer " } })).status, 401);
    await world.deploy({ rooms, vars: { HEALTH_PAGE: "off" } });
    for (const path of [PAGE, `${PAGE}.json`, `${PAGE}.js`]) {
      const answer = await world.send({ path, headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
      assert.equal(answer.status, 404, path);
    }
  });
});
