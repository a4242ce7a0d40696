// A room that only observes: everybody passes, nobody can tell, and all is counted as if the room were on.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { ADMIN_TOKEN, eventually, letIn, MINUTE, openTicket, room, sleep, startWorld } from "./world.mjs";

const observing = (path, more = {}) => room(path, { mode: "observe", ...more });

describe("a room that only observes", { concurrency: true }, () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: {
        quiet: observing("/quiet", { total_active_users: 1 }),
        turn: observing("/turn", { total_active_users: 1 }),
        shared: observing("/shared", { total_active_users: 1, enforce_share: 1 }),
        orders: observing("/orders", { queue_all: true }),
        reject: observing("/reject", { queueing_method: "reject" }),
        dark: observing("/dark"),
        revoke: observing("/revoke", { total_active_users: 1, enabled_origin_commands: ["revoke"] }),
        human: observing("/human", {
          total_active_users: 1,
          turnstile_sitekey: "0x4AAAA",
          turnstile_action: "infinite_queue",
        }),
        live: observing("/live", { total_active_users: 1 }),
      },
      vars: { TURNSTILE_SECRET: "secret" },
      colos: { AMS: 1 },
    });
  });
  after(() => world.close());

  /** What a visitor can see of an answer besides what the site says. */
  const seen = ({ status, headers, setCookie }) => ({
    status,
    headers: Object.keys(headers).sort(),
    cookies: setCookie.map((line) => line.replace(/=[^;]+/, "=…")),
  });

  test("nobody can tell whether they would wait", async () => {
    const [inside, waiting] = [world.visitor({ path: "/quiet" }), world.visitor({ path: "/quiet" })];
    const first = await inside.get();
    const second = await waiting.get();
    assert.ok(first.fromOrigin && second.fromOrigin);
    assert.deepEqual(seen(second), seen(first));
    assert.equal(waiting.ticket().length, inside.ticket().length);
    assert.notEqual(openTicket("quiet", inside.ticket()).acceptedAt, undefined);
    assert.equal(openTicket("quiet", waiting.ticket()).acceptedAt, undefined, "would wait");
    // What else the page loads is no check-in, and asks nobody.
    const calls = (await world.calls("quiet")).filter(({ kind }) => kind === "Counter").length;
    for (const path of ["/quiet/style.css", "/quiet/logo.png", "/quiet/next"]) {
      const answer = await waiting.get(path);
      assert.ok(answer.fromOrigin && answer.setCookie.length === 0);
    }
    assert.equal((await world.calls("quiet")).filter(({ kind }) => kind === "Counter").length, calls);
    // A waiting page that is still open somewhere goes on to the site; a page loaded in advance is loaded.
    assert.equal((await waiting.ask()).json.admitted, true);
    const ahead = await world.visitor({ path: "/quiet", headers: { "sec-purpose": "prefetch" } }).get();
    assert.ok(ahead.fromOrigin);
  });

  test("who would wait is counted, and active when the room would have let them in", async () => {
    const [first] = await letIn(world, 1, { path: "/turn" });
    const next = world.visitor({ path: "/turn" });
    await next.get();
    const counted = await eventually("both are counted", async () => {
      const status = await world.status("turn");
      return status.estimated_queued_users === 1 && status;
    });
    assert.deepEqual(
      [counted.estimated_total_active_users, counted.observing, counted.status],
      [1, true, "queueing"],
    );
    assert.equal(openTicket("turn", first.ticket()).bucket, openTicket("turn", next.ticket()).bucket);
    // The first one goes away: after a session the next page of the other one is an admission.
    await eventually(
      "the visitor would be in",
      async () => {
        assert.ok((await next.get()).fromOrigin);
        return openTicket("turn", next.ticket()).acceptedAt !== undefined;
      },
      { within: 3 * MINUTE, every: 5_000 },
    );
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    await eventually("the history says it", async () => {
      const path = "/__anteroom/history?room=turn&fields=joins,observed_joins,newcomers";
      const { rows } = JSON.parse((await world.send({ path, headers })).body);
      const sums = [1, 2, 3].map((column) => rows.reduce((sum, row) => sum + row[column], 0));
      return sums.every((sum, at) => sum === [1, 1, 2][at]);
    });
    const metrics = await world.send({ path: "/__anteroom/metrics", headers });
    assert.match(metrics.body, /anteroom_observing\{room="turn"\} 1/);
  });

  test("for the share that is enforced the room is on", async () => {
    await letIn(world, 1, { path: "/shared" });
    assert.ok((await world.visitor({ path: "/shared" }).get()).waiting);
  });

  test("no order and no method holds anybody back", async () => {
    for (const path of ["/orders", "/reject"]) {
      const visitor = world.visitor({ path });
      for (const _ of [1, 2]) assert.ok((await visitor.get()).fromOrigin, path);
    }
    assert.equal((await world.visitor({ path: "/reject" }).ask()).json.admitted, true);
    // Nobody who is shown no page can be asked to pass a test.
    await letIn(world, 2, { path: "/human" });
    await eventually("who waits is counted", async () => {
      const { estimated_queued_users: waiting } = await world.status("human");
      return waiting === 1;
    });
  });

  test("objects that do not answer hold nobody up", async () => {
    await world.fault("Counter", "dark", "hang");
    await world.fault("DataCenter", "dark", "hang");
    const began = Date.now();
    const visitor = world.visitor({ path: "/dark" });
    assert.ok((await visitor.get()).fromOrigin);
    assert.ok(Date.now() - began < 6_000, "by the clock, two timeouts of a call");
    // Nor is anybody asked with each request: there is a ticket, and it is not time yet.
    assert.ok(openTicket("dark", visitor.ticket()).acceptedAt === undefined);
    const next = await visitor.get("/dark/next");
    assert.ok(next.fromOrigin && next.setCookie.length === 0);
    await world.fault("Counter", "dark");
    await world.fault("DataCenter", "dark");
  });

  test("the origin takes the ticket of somebody who would wait, and the command stays between them", async () => {
    await letIn(world, 1, { path: "/revoke" });
    const waiting = world.visitor({ path: "/revoke" });
    await waiting.get();
    const answer = await waiting.get("/revoke/bought");
    assert.ok(answer.fromOrigin && answer.headers["anteroom-command"] === undefined);
    assert.equal(waiting.ticket(), undefined);
  });

  test("an operator's one order makes it real, and another one takes it back", async () => {
    await letIn(world, 1, { path: "/live" });
    const waiting = world.visitor({ path: "/live" });
    assert.ok((await waiting.get()).fromOrigin);
    const order = (set) =>
      world.send({
        method: "POST",
        path: "/__anteroom/steering?room=live",
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify({ set }),
      });
    assert.equal((await order({ mode: "enforce" })).status, 200);
    await eventually("the room is on", async () => {
      await sleep(1_000);
      return (await waiting.get()).waiting;
    });
    assert.equal((await order({ mode: "observe" })).status, 200);
    await eventually("everybody passes", async () => (await waiting.get()).fromOrigin, { every: 1_000 });
  });
});
