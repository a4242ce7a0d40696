// Steering at run time: what an operator says holds for every visitor in every colo three seconds later, outlives the
// objects and the deploy, and is in the log.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { ADMIN_TOKEN, eventually, letIn, MINUTE, room, roomInMinute, sleep, startWorld } from "./world.mjs";

/** What an operator says holds so long after it was answered, in milliseconds. */
const IN_FORCE = 3_000;
const COLOS = ["AMS", "SIN", "GRU"];
const time = (ms) => new Date(ms).toISOString();
/** Every worker of the world: each is an isolate that hears for itself. */
const WORKERS = COLOS.flatMap((colo) => [0, 1].map((worker) => ({ colo, worker })));

/** Asks as an operator does. */
async function operator(world, path, body, token = ADMIN_TOKEN) {
  const answer = await world.send({
    path: `/__anteroom/${path}`,
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
    body: body && JSON.stringify(body),
  });
  return { status: answer.status, json: JSON.parse(answer.body) };
}

async function steer(world, name, order) {
  const { status, json } = await operator(world, `steering?room=${name}`, order);
  assert.equal(status, 200, JSON.stringify(json));
  return json;
}

/** Somebody new at every worker. */
const newcomers = (world, path) =>
  Promise.all(WORKERS.map((where) => world.visitor({ ...where, path }).get()));

/**
 * Visitors at every worker all the time. Those of a room that is switched off wait for nothing, so its workers hear what
 * is new behind their backs.
 */
async function traffic(world, path, ms) {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(300)) await newcomers(world, path);
}

describe("steering", { concurrency: true }, () => {
  let world;
  const start = Math.ceil(Date.now() / MINUTE) * MINUTE + 20 * MINUTE;
  before(async () => {
    world = await startWorld({
      rooms: {
        gate: room("/gate"),
        half: room("/half", { total_active_users: 20, session_duration: 5 }),
        off: room("/off", { total_active_users: 3, session_duration: 5 }),
        dark: room("/dark", { suspended: true }),
        sparse: room("/sparse"),
        short: room("/short", { session_duration: 3 }),
        words: room("/words", { queue_all: true }),
        sale: room("/sale"),
        kept: room("/kept", { total_active_users: 100 }),
        watched: room("/watched"),
      },
      vars: {
        OPERATOR_TOKENS: "anna:steer:annas-token-of-the-tests, wall:view:walls-token-of-the-tests",
        EVENT_DROP: {
          room: "sale",
          prequeue_start_time: time(start - 30 * MINUTE),
          event_start_time: time(start),
          event_end_time: time(start + 30 * MINUTE),
        },
      },
    });
  });
  after(() => world?.close());

  test("queue_all closes the room in every worker of three colos and opens it again", async () => {
    await newcomers(world, "/gate");
    const [inside] = await letIn(world, 1, { path: "/gate" });
    const closed = await steer(world, "gate", { set: { queue_all: true } });
    assert.equal(closed.fields.queue_all.value, true);
    assert.equal(closed.fields.queue_all.deployed, false);
    assert.equal(closed.fields.queue_all.override.by, "admin");
    assert.deepEqual([closed.colos_in_force, closed.colos], [3, 3]);
    await sleep(IN_FORCE);
    for (let round = 0; round < 3; round += 1)
      for (const answer of await newcomers(world, "/gate")) assert.ok(answer.waiting, "somebody has entered");
    assert.ok((await inside.get()).fromOrigin, "whoever is in stays in");

    await steer(world, "gate", { clear: ["queue_all"] });
    await sleep(IN_FORCE);
    for (const answer of await newcomers(world, "/gate")) assert.ok(answer.fromOrigin, "somebody waits");
  });

  test("a worker that has not had a visitor for long obeys with its next one", async () => {
    await newcomers(world, "/sparse");
    // Longer than any report takes: nothing is under way any more that could bring the news.
    await sleep(20_000);
    await steer(world, "sparse", { set: { queue_all: true } });
    await sleep(IN_FORCE);
    for (const answer of await newcomers(world, "/sparse")) assert.ok(answer.waiting, "somebody has entered");
  });

  test("of a halved limit nobody enters above the half, and all of it is back when it is cleared", async () => {
    await letIn(world, 10, { path: "/half" });
    await steer(world, "half", { set: { total_active_users: 10 } });
    await sleep(IN_FORCE);
    for (const answer of await newcomers(world, "/half"))
      assert.ok(answer.waiting, "an eleventh has entered");
    const status = await world.status("half");
    assert.equal(status.limits.total_active_users, 10);
    assert.equal(status.deployed.total_active_users, 20);
    assert.deepEqual(
      status.steering.overrides.map(({ field, value, deployed }) => [field, value, deployed]),
      [["total_active_users", 10, 20]],
    );
    await steer(world, "half", { clear: ["total_active_users"] });
    await sleep(IN_FORCE);
    await eventually("somebody enters", async () =>
      (await world.visitor({ path: "/half" }).get()).fromOrigin ? true : undefined,
    );
  });

  test("a suspended room lets everybody pass and counts nobody, and comes back", async () => {
    await letIn(world, 3, { path: "/off" });
    await eventually("it is full", async () => (await world.visitor({ path: "/off" }).get()).waiting);
    await steer(world, "off", { set: { suspended: true } });
    await sleep(IN_FORCE);
    for (const answer of await newcomers(world, "/off")) {
      assert.ok(answer.fromOrigin);
      assert.deepEqual(answer.setCookie, []);
    }
    assert.equal((await world.status("off")).status, "suspended");
    await steer(world, "off", { set: { suspended: false } });
    await traffic(world, "/off", IN_FORCE);
    for (const answer of await newcomers(world, "/off")) assert.ok(answer.waiting, "the room is full");
    // For a while, and nobody has to think of the end.
    await steer(world, "off", { set: { suspended: true }, until: "10s", reason: "Payment is down" });
    await sleep(IN_FORCE);
    for (const answer of await newcomers(world, "/off")) assert.ok(answer.fromOrigin);
    await traffic(world, "/off", 10_000);
    for (const answer of await newcomers(world, "/off")) assert.ok(answer.waiting, "it is on again");
    assert.deepEqual((await world.status("off")).steering.overrides, []);
  });

  test("a room that is deployed as suspended can be switched on", async () => {
    for (const answer of await newcomers(world, "/dark")) assert.deepEqual(answer.setCookie, []);
    await steer(world, "dark", { set: { suspended: false, queue_all: true } });
    await traffic(world, "/dark", IN_FORCE);
    for (const answer of await newcomers(world, "/dark")) assert.ok(answer.waiting);
  });

  test("a shorter session ends the visits of those who have been away for longer", async () => {
    const visitors = await letIn(world, 1, { path: "/short" });
    await steer(world, "short", { set: { session_duration: 1 } });
    await sleep(MINUTE + 5_000);
    assert.equal((await world.status("short")).estimated_total_active_users, 0);
    await steer(world, "short", { set: { queue_all: true } });
    await sleep(IN_FORCE);
    assert.ok((await visitors[0].get()).waiting);
  });

  test("those who wait read the message and come back when they are told to", async () => {
    const visitor = world.visitor({ path: "/words" });
    assert.ok((await visitor.get()).waiting);
    await steer(world, "words", { set: { message: "Back at <noon>", refresh_interval_seconds: 5 } });
    await sleep(IN_FORCE);
    const page = await visitor.get();
    assert.match(page.body, /Back at &lt;noon&gt;/);
    assert.ok(page.refresh.seconds <= 6, `${page.refresh.seconds} seconds`);
  });

  test("an event starts when the operator says so", async () => {
    for (const answer of await newcomers(world, "/sale")) assert.ok(answer.waiting, "before the event");
    const before = await world.status("sale");
    assert.deepEqual([before.status, before.events[0].phase], ["event_prequeueing", "prequeueing"]);
    const started = await steer(world, "sale", { events: { drop: "start" } });
    assert.equal(started.events[0].phase, "active");
    assert.equal(started.events[0].deployed_start, start);
    const { events, problems } = (await operator(world, "events")).json;
    const [{ phase, steered, deployed_event_start_time, event_start_time }] = events;
    assert.deepEqual([phase, steered, problems], ["active", true, []]);
    assert.equal(Date.parse(deployed_event_start_time), start);
    assert.ok(Date.parse(event_start_time) <= Date.now());
    await sleep(IN_FORCE);
    for (const answer of await newcomers(world, "/sale")) assert.ok(answer.fromOrigin, "somebody waits");
    await steer(world, "sale", { events: { drop: "clear" } });
    await world.fault("Global", "sale", "throw");
    const deployed = (await operator(world, "events")).json;
    await world.fault("Global", "sale");
    assert.match(deployed.problems.join(), /^room sale: its events are told as deployed/);
    assert.deepEqual([deployed.events[0].phase, deployed.events[0].steered], ["prequeueing", false]);
    await sleep(IN_FORCE);
    for (const answer of await newcomers(world, "/sale")) assert.ok(answer.waiting, "before the event again");
  });

  test("data centers are told that somebody looks, and whoever looks is told what changes", async () => {
    await newcomers(world, "/watched");
    await eventually("all colos are known", async () => {
      const { rooms } = (await operator(world, "status?room=watched&watch=false")).json;
      assert.equal(rooms[0].watched, false, "that was only a look");
      return rooms[0].colos.length === 3;
    });
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const address = world.address("AMS").replace("http", "ws");
    const socket = new WebSocket(`${address}/__anteroom/live?room=watched`, { headers });
    const messages = [];
    socket.addEventListener("message", ({ data }) => messages.push(JSON.parse(data)));
    const [first] = await eventually("the first message", () => messages.length > 0 && messages);
    assert.deepEqual([first.type, first.room.name, first.room.watched], ["room", "watched", true]);
    await eventually("all colos have heard", async () => {
      const calls = await world.calls("watched");
      return new Set(calls.filter(({ route }) => route === "/hear").map(({ name }) => name)).size === 3;
    });
    await steer(world, "watched", { set: { queue_all: true } });
    await eventually("the change", () => messages.some(({ room }) => room?.queue_all));
    socket.close();
  });

  test("bad values change nothing and say what is wrong", async () => {
    const order = { set: { queue_all: true, total_active_users: 0 } };
    const { status, json } = await operator(world, "steering?room=kept", order);
    assert.equal(status, 400);
    assert.deepEqual(
      json.errors.map(({ field, fix }) => [field, fix]),
      [["total_active_users", "set total_active_users to at least 1"]],
    );
    assert.equal((await operator(world, "steering?room=kept")).json.version, 0);
  });
});

test("what is steered outlives every object and the deploy, and the log says who did it", async (context) => {
  const rooms = { shop: room("/", { total_active_users: 100 }) };
  const vars = { OPERATOR_TOKENS: "anna:steer:annas-token-of-the-tests, wall:view:walls-token-of-the-tests" };
  const world = await startWorld({ rooms, vars, colos: { AMS: 1, SIN: 1 } });
  context.after(() => world.close());
  const [anna, wall] = ["annas-token-of-the-tests", "walls-token-of-the-tests"];
  const everywhere = () =>
    Promise.all(["AMS", "SIN"].map((colo) => world.visitor({ colo, path: "/" }).get()));

  await roomInMinute(20_000);
  assert.ok((await everywhere()).every(({ fromOrigin }) => fromOrigin));
  const order = { set: { queue_all: true, total_active_users: 50 }, if_version: 0 };
  assert.equal((await operator(world, "steering?room=shop", order, wall)).status, 403);
  assert.equal((await operator(world, "steering?room=shop", order, anna)).status, 200);
  assert.equal((await operator(world, "steering?room=shop", order, anna)).status, 409);

  await world.restart("Global", "shop");
  for (const colo of ["AMS", "SIN"]) {
    await world.restart("DataCenter", `shop/${colo}`);
    await world.restart("Counter", `shop/${colo}`);
  }
  await world.restart("Anywhere", "shop");
  await sleep(IN_FORCE);
  assert.ok(
    (await everywhere()).every(({ waiting }) => waiting),
    "after all objects have been restarted",
  );

  // A deploy with another limit: all isolates are new, and know nothing.
  await world.deploy({ rooms: { shop: room("/", { total_active_users: 200 }) }, vars });
  assert.ok(
    (await everywhere()).every(({ waiting }) => waiting),
    "the first visitors after a deploy",
  );
  const { json } = await operator(world, "steering?room=shop", undefined, wall);
  const override = json.fields.total_active_users.override;
  assert.deepEqual(
    [override.value, override.deployed, override.deployed_then, override.deploy_changed, override.by],
    [50, 200, 100, true, "anna"],
  );
  await operator(world, "steering?room=shop", { keep: ["total_active_users"], clear: ["queue_all"] }, anna);
  const { entries } = (await operator(world, "audit?room=shop&limit=10", undefined, wall)).json;
  assert.deepEqual(
    entries.map(({ by, kind, field, before, after, deployed }) => [by, kind, field, before, after, deployed]),
    [
      ["anna", "keep", "total_active_users", 50, 50, 200],
      ["anna", "clear", "queue_all", true, false, false],
      ["anna", "set", "total_active_users", 100, 50, 100],
      ["anna", "set", "queue_all", false, true, false],
    ],
  );
  const [, second] = entries;
  const older = (await operator(world, `audit?room=shop&before=${second.id}`, undefined, wall)).json.entries;
  assert.deepEqual(older, entries.slice(2));
});
