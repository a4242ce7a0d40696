// Rooms that Cloudflare's Python client makes, changes and deletes while a crowd visits three data centers.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { environment, PYTHON_PACKAGES } from "../../tools/toolchain.mjs";
import { clock } from "./clock.mjs";
import { ADMIN_TOKEN, HOST, openTicket, room, sleep, startWorld } from "./world.mjs";

const ZONE = "023e105f4ecef8ad9ca31a8372d0c353";
const V4 = "/__anteroom/client/v4";
const COLOS = ["AMS", "SIN", "GRU"];
/** Every worker of the three data centers. */
const WORKERS = COLOS.flatMap((colo) => [0, 1].map((worker) => ({ colo, worker })));
const CROWD = 300;
/** A change is in force everywhere after so many milliseconds. */
const IN_FORCE = 3_000;
const LIMITS = { total_active_users: 10, new_users_per_minute: 10, session_duration: 30 };

/** Cloudflare's Python client, told one call after the other. */
function startClient(address) {
  const program = fileURLToPath(new URL("rooms.py", import.meta.url));
  const args = [program, `${address}${V4}`, ADMIN_TOKEN, ZONE];
  const env = { ...environment(), PYTHONPATH: PYTHON_PACKAGES };
  const python = spawn("python3", args, { env, stdio: ["pipe", "pipe", "inherit"] });
  // It may end on its own, before anybody closes it.
  const ended = once(python, "exit");
  const lines = createInterface({ input: python.stdout })[Symbol.asyncIterator]();
  const call = async (method, ids, given) => {
    python.stdin.write(`${JSON.stringify([method, ids, given])}\n`);
    const { value, done } = await lines.next();
    assert.ok(!done, "the client has ended");
    return JSON.parse(value);
  };
  return {
    /** While it works, time all but stands still. */
    call: (method, ids = [], given = {}) => clock.unhurried(call(method, ids, given)),
    async close() {
      python.stdin.end();
      await ended;
    },
  };
}

/** The same for each of many, not all at once. */
async function each(all, work) {
  const done = [];
  for (let first = 0; first < all.length; first += 50)
    done.push(...(await Promise.all(all.slice(first, first + 50).map(work))));
  return done;
}

/** Visitors come to every worker for three seconds, to a deployed room: after that, what has changed is in force. */
async function untilInForce(world) {
  for (const end = Date.now() + IN_FORCE; Date.now() < end; ) {
    await Promise.all(WORKERS.map((where) => world.send({ ...where, path: "/deployed" })));
    await sleep(Math.max(0, Math.min(250, end - Date.now())));
  }
}

const newCrowd = (world, path, count = CROWD) =>
  Array.from({ length: count }, (_, number) => world.visitor({ ...WORKERS[number % WORKERS.length], path }));

/** Which ticket a visitor would send. */
const ticketOf = (id, visitor, path) => openTicket(id, visitor.ticket(path));

describe("a room that Cloudflare's Python client makes while a crowd visits three data centers", () => {
  let world;
  let client;
  let id;
  let crowd;
  let tickets;
  let path = "/sale";

  /** All of the crowd come again: nobody has lost a place, in line or inside. */
  async function keepTheirPlaces(what) {
    const answers = await each(crowd, (visitor) => visitor.get(path));
    for (const [number, answer] of answers.entries()) {
      const ticket = ticketOf(id, crowd[number], path);
      const { id: own, bucket, acceptedAt } = tickets[number];
      assert.deepEqual([ticket.id, ticket.bucket], [own, bucket], `${what}: visitor ${number}`);
      if (acceptedAt) assert.ok(answer.fromOrigin, `${what}: ${number} was inside`);
      else assert.ok(answer.waiting || ticket.acceptedAt, `${what}: ${number} was in line`);
    }
    tickets = crowd.map((visitor) => ticketOf(id, visitor, path));
  }

  before(async () => {
    world = await startWorld({
      rooms: { deployed: room("/deployed") },
      colos: Object.fromEntries(COLOS.map((colo) => [colo, 2])),
    });
    client = startClient(world.address());
    crowd = newCrowd(world, path);
    // Nothing was ever made: everybody knows, and nobody asks again soon.
    assert.ok((await each(crowd, (visitor) => visitor.get())).every((answer) => answer.fromOrigin));
    await untilInForce(world);
  });
  after(async () => {
    await client.close();
    await world.close();
  });

  test("is in force everywhere after three seconds, though it is the first one", async () => {
    const body = { name: "sale", host: HOST, path, ...LIMITS };
    const made = await client.call("create", [], { ...body, anteroom: { place_kept_seconds: 3600 } });
    id = made.id;
    assert.match(`${id}`, /^[0-9a-f]{32}$/, JSON.stringify(made));
    await untilInForce(world);
    const answers = await each(crowd, (visitor) => visitor.get());
    assert.ok(answers.every((answer) => answer.setCookie.length === 1));
    const inside = answers.filter((answer) => answer.fromOrigin).length;
    assert.ok(inside >= 1 && inside <= LIMITS.total_active_users, `${inside} are inside`);
    assert.equal(answers.filter((answer) => answer.waiting).length, CROWD - inside);
    tickets = crowd.map((visitor) => ticketOf(id, visitor, path));
  });

  test("keeps everybody's place when it is called otherwise, and when its limits change", async () => {
    const whole = { name: "night", host: HOST, ...LIMITS, path };
    for (const change of [{}, { total_active_users: 8, new_users_per_minute: 5 }, { queue_all: true }]) {
      const edited = await client.call("edit", [id], { ...whole, ...change });
      assert.equal(edited.name, "night", JSON.stringify(edited));
      await untilInForce(world);
      await keepTheirPlaces(JSON.stringify(change));
    }
  });

  test("takes everybody along when it moves to another path", async () => {
    const moved = await client.call("edit", [id], {
      ...{ name: "night", host: HOST, ...LIMITS, queue_all: true },
      path: "/evening/sale",
    });
    assert.equal(moved.path, "/evening/sale");
    await untilInForce(world);
    // The page's script only asks: it is told to load the page.
    const [asks] = crowd.filter((_, number) => !tickets[number].acceptedAt);
    const asked = await asks.get("/sale/x", { headers: { "anteroom-status": "1" } });
    assert.deepEqual([asked.status, asked.setCookie.length], [302, 0]);
    const led = await each(crowd, (visitor) => visitor.get("/sale/x?y=1"));
    for (const answer of led)
      assert.deepEqual([answer.status, answer.headers.location], [302, "/evening/sale/x?y=1"]);
    path = "/evening/sale";
    await keepTheirPlaces("moved");
    // Each is led once, and who has no ticket is not led at all.
    const again = await each(crowd.slice(0, 30), (visitor) => visitor.get("/sale"));
    assert.ok(again.every((answer) => answer.fromOrigin && answer.setCookie.length === 0));
    assert.ok((await world.send({ path: "/sale" })).fromOrigin);
  });

  test("ends as its owner wants when it is deleted: those who wait are told once, and go in", async () => {
    const edited = await client.call("edit", [id], {
      ...{ name: "night", host: HOST, ...LIMITS, queue_all: true, path },
      anteroom: { when_deleted: "page" },
    });
    assert.equal(edited.anteroom.when_deleted, "page");
    await untilInForce(world);
    await keepTheirPlaces("another field");
    await client.call("delete", [id]);
    await untilInForce(world);
    const answers = await each(crowd, (visitor) => visitor.get(path));
    for (const [number, answer] of answers.entries()) {
      if (tickets[number].acceptedAt) {
        assert.ok(answer.fromOrigin, `${number} was inside`);
        continue;
      }
      assert.deepEqual([answer.status, answer.waiting], [410, false], `${number} was in line`);
      assert.match(answer.body, /The line has ended/);
      assert.equal(crowd[number].ticket(path), undefined);
    }
    const next = await each(crowd, (visitor) => visitor.get(path));
    assert.ok(next.every((answer) => answer.fromOrigin && answer.setCookie.length === 0));
  });

  test("ends at once for all where its owner has not said otherwise", async () => {
    const body = { name: "short", host: HOST, path: "/short", ...LIMITS, queue_all: true };
    const made = await client.call("create", [], body);
    await untilInForce(world);
    const line = newCrowd(world, "/short");
    assert.ok((await each(line, (visitor) => visitor.get())).every((answer) => answer.waiting));
    await client.call("delete", [made.id]);
    await untilInForce(world);
    const answers = await each(line, (visitor) => visitor.get());
    assert.ok(answers.every((answer) => answer.fromOrigin && answer.setCookie.length === 0));
  });
});

describe("while the object that keeps the rooms is in trouble", () => {
  let world;
  let line;
  let id;
  const PATCH = { method: "PATCH", headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
  const rooms = `${V4}/zones/${ZONE}/waiting_rooms`;
  const change = (body) => world.send({ ...PATCH, path: `${rooms}/${id}`, body: JSON.stringify(body) });

  before(async () => {
    world = await startWorld({
      rooms: { deployed: room("/deployed") },
      colos: Object.fromEntries(COLOS.map((colo) => [colo, 2])),
    });
    const body = { name: "kept", host: HOST, path: "/kept", ...LIMITS, queue_all: true };
    const made = await world.send({ ...PATCH, method: "POST", path: rooms, body: JSON.stringify(body) });
    id = JSON.parse(made.body).result.id;
    await untilInForce(world);
    line = newCrowd(world, "/kept", 30);
    assert.ok((await each(line, (visitor) => visitor.get())).every((answer) => answer.waiting));
  });
  after(() => world.close());

  /** No room has opened or vanished, and none has appeared. */
  async function nothingChanges(what) {
    const answers = await each(line, async (visitor) => {
      const before = openTicket(id, visitor.ticket());
      const answer = await visitor.get();
      const ticket = openTicket(id, visitor.ticket());
      return answer.waiting && ticket.id === before.id && ticket.bucket === before.bucket;
    });
    assert.ok(answers.every(Boolean), what);
    const elsewhere = await Promise.all(WORKERS.map((where) => world.send({ ...where, path: "/free" })));
    assert.ok(
      elsewhere.every((answer) => answer.fromOrigin && answer.setCookie.length === 0),
      what,
    );
  }

  for (const [what, begin, end, statuses] of [
    ["fails", () => world.fault("Config", "", "throw"), () => world.fault("Config", ""), [503]],
    ["does not answer", () => world.fault("Config", "", "hang"), () => world.fault("Config", ""), [503]],
    ["is slow", () => world.fault("Config", "", "late", 4_000), () => world.fault("Config", ""), [200]],
    ["loses its answers", () => world.fault("Config", "", "lost"), () => world.fault("Config", ""), [503]],
    [
      "has no storage",
      () => world.fault("Storage", "Config", "throw"),
      () => world.fault("Storage", "Config"),
      [503],
    ],
    [
      "starts anew without its storage",
      async () => {
        await world.fault("Storage", "Config", "throw");
        await world.restart("Config", "config");
      },
      () => world.fault("Storage", "Config"),
      [503],
    ],
    ["starts anew", () => world.restart("Config", "config"), () => {}, [200]],
  ])
    test(`which ${what}, everything goes on by what is known`, async () => {
      await begin();
      for (let turn = 0; turn < 3; turn += 1) {
        await untilInForce(world);
        await nothingChanges(what);
      }
      // What it cannot do it does not say to have done.
      const { status } = await change({ description: what });
      assert.ok(statuses.includes(status), `${status}`);
      await end();
      await sleep(2_000);
      await untilInForce(world);
      await nothingChanges(`after: ${what}`);
      // And then it does all that it did.
      assert.equal((await change({ queue_all: false })).status, 200);
      assert.equal((await change({ queue_all: true })).status, 200);
    });
});
