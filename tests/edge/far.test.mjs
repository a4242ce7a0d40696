// What the real planet does to rooms: objects that forget while all is calm, a pool that is an ocean away, and the last
// slots of a small room, whose permits may lie in another data center. All by the tests' clock.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Crowd } from "./crowd.mjs";
import { MINUTE, room, roomInMinute, sleep, startWorld } from "./world.mjs";

const COLOS = ["AMS", "SIN", "GRU"];
const REFRESH_SECONDS = 10;

test("Anywhere and Global are made where the owner wants them", async () => {
  const wanted = room("/placed", { location: "apac", slot_strategy: "counters" });
  const world = await startWorld({ rooms: { placed: wanted }, colos: { AMS: 1 }, recorded: true });
  try {
    assert.ok((await world.visitor({ path: "/placed" }).get()).fromOrigin);
    // Until the data center has asked its Counter for its report.
    await sleep(5_000);
    const calls = (await world.recording()).flat().filter(({ called }) => called !== undefined);
    const hints = Object.groupBy(calls, ({ route }) => route);
    const told = Object.fromEntries(
      Object.entries(hints).map(([route, calls]) => [route, [...new Set(calls.map(({ hint }) => hint))]]),
    );
    assert.deepEqual(told["/push"], ["apac"], "a data center's call to Global");
    assert.deepEqual(told["/given"], [undefined], "a data center's call to its Counter");
  } finally {
    await world.close();
  }
});

test("who finds nothing in the data center is let in by its region's Counter, to the last slot and no further", async () => {
  const USERS = 150;
  const limits = { total_active_users: USERS, new_users_per_minute: USERS };
  const world = await startWorld({
    rooms: { regional: room("/regional", limits) },
    colos: { AMS: 1, LHR: 1 },
  });
  try {
    const colos = ["AMS", "LHR"].map((colo) => ({ colo, latitude: "52.3", longitude: "4.8" }));
    const enters = async (number) => {
      const cf = colos[number % colos.length];
      return (await world.visitor({ path: "/regional", colo: cf.colo, cf }).get()).fromOrigin;
    };
    for (let number = 0; number < USERS; number += 1) assert.ok(await enters(number), `visitor ${number}`);
    for (let number = 0; number < 4; number += 1) assert.ok(!(await enters(number)), "the room is full");
    const called = new Set((await world.calls("regional")).map(({ name }) => name));
    assert.ok(called.has("regional/weur"), [...called].join());
  } finally {
    await world.close();
  }
});

/** Until a time of a crowd's, in milliseconds. */
const until = (crowd, ms) => sleep(Math.max(0, crowd.start + ms - Date.now()));

/** What holds of every crowd, wherever the objects are and whatever they forget. */
function assertLimits(crowd, context) {
  const figures = crowd.figures();
  const minutes = figures.newPerMinute.minutes.map(({ users }) => users);
  context.diagnostic(
    `most active ${figures.active.largest} of ${figures.active.limit}, new per minute ${minutes} of ` +
      `${figures.newPerMinute.limit}, ${figures.visitors.queued} of ${figures.visitors.arrived} queued`,
  );
  assert.deepEqual(crowd.unexpected, [], "every answer is the origin's or a waiting page");
  assert.equal(figures.active.broken, false, `${figures.active.largest} were active`);
  assert.equal(figures.newPerMinute.broken, false, `${minutes} entered`);
  assert.deepEqual(crowd.thrownOut(), [], "nobody who was admitted is thrown out");
  return figures;
}

describe("objects that forget while the room is calm", { concurrency: true }, () => {
  /** The platform takes an object's memory after so long without a request. */
  const FORGETS_MS = 10_000;
  const FORGETS_FIRST_MS = 6_000;
  const CALM_MS = 3 * MINUTE;
  /** Few for the room, and enough for workers to be lent permits: what outlives a Counter. */
  const CALM_VISITORS = 120;
  const CROWD_VISITORS = 300;
  /**
   * The crowd comes soon after a minute's edge: what a Counter lost before that may count as used in that minute, and be
   * forgotten after it.
   */
  const AFTER_EDGE_MS = 5_000;
  /** Before the crowd, newcomers come to workers that are new: the others keep what they were lent. */
  const NEW_WORKERS_MS = 25_000;
  const lately = CALM_MS - NEW_WORKERS_MS;
  /** What forgets, from when on, and the limits: the crowd reaches that of the users first, or that of the minute. */
  const FORGETFUL = {
    counters: {
      title: "Counters, again and again",
      kinds: ["Counter"],
      from: 0,
      total: 120,
      newPerMinute: 120,
    },
    everything: {
      title: "all objects, again and again",
      kinds: ["Counter", "Anywhere", "DataCenter", "Global"],
      from: 0,
      total: 120,
      newPerMinute: 120,
    },
    lately: {
      title: "Counters, just before the crowd, in a wide room",
      kinds: ["Counter"],
      from: lately,
      total: 720,
      newPerMinute: 240,
    },
  };
  const arrives = (id, random) =>
    id < CALM_VISITORS ? ((id + random()) / CALM_VISITORS) * CALM_MS : CALM_MS + random() * 1_000;
  const reaches = (id, random) => {
    if (id >= CALM_VISITORS) return Math.floor(random() * 3);
    return arrives(id, () => 0) < lately ? Math.floor(random() * 2) : 2;
  };
  let world;
  before(async () => {
    const rooms = Object.entries(FORGETFUL).map(([name, { total, newPerMinute }]) => {
      const limits = { total_active_users: total, new_users_per_minute: newPerMinute };
      const more = { refresh_interval_seconds: REFRESH_SECONDS, on_error: "queue" };
      return [name, room(`/${name}`, { ...limits, ...more })];
    });
    world = await startWorld({ rooms: Object.fromEntries(rooms), colos: { AMS: 3, SIN: 3, GRU: 3 } });
    await sleep(MINUTE + AFTER_EDGE_MS - (Date.now() % MINUTE));
  });
  after(() => world.close());

  for (const [name, { title, kinds, from, total, newPerMinute }] of Object.entries(FORGETFUL)) {
    test(`the crowd after that keeps to the limits: ${title}`, async (context) => {
      const crowd = new Crowd(world, {
        path: `/${name}`,
        visitors: CALM_VISITORS + CROWD_VISITORS,
        limits: { limitActive: total, limitNew: newPerMinute },
        seed: 4,
        arrives,
        reaches,
        lasts: CALM_MS + MINUTE,
        refreshSeconds: REFRESH_SECONDS,
      });
      const perColo = ["Counter", "DataCenter"];
      const objects = kinds.flatMap((kind) =>
        perColo.includes(kind) ? COLOS.map((colo) => [kind, `${name}/${colo}`]) : [[kind, name]],
      );
      const forgets = async () => {
        for (let at = FORGETS_FIRST_MS; at < CALM_MS; at += FORGETS_MS) {
          if (at < from) continue;
          await until(crowd, at);
          await Promise.all(objects.map(([kind, object]) => world.restart(kind, object)));
        }
      };
      await Promise.all([crowd.play(), forgets()]);
      const { visitors } = assertLimits(crowd, context);
      assert.ok(visitors.queued > CROWD_VISITORS / 10, "the limits were reached");
    });
  }
});

describe("a pool that is 150 ms away", { concurrency: true }, () => {
  const FAR_MS = 150;
  const SLOTS = 60;
  const FLASH = { visitors: 180, arrivals: 2_000, lasts: 50_000 };
  let world;
  before(async () => {
    const limits = {
      total_active_users: SLOTS,
      new_users_per_minute: 600,
      refresh_interval_seconds: REFRESH_SECONDS,
      on_error: "queue",
    };
    world = await startWorld({
      rooms: { flash: room("/flash", limits), known: room("/known", limits) },
      // As it is for owners who set none.
      vars: { OBJECT_DEADLINE_MS: undefined },
    });
    await Promise.all(["flash", "known"].map((name) => world.fault("Anywhere", name, "late", FAR_MS)));
    await roomInMinute(50_000);
  });
  after(() => world.close());

  const flash = async (context, name) => {
    const crowd = new Crowd(world, {
      path: `/${name}`,
      limits: { limitActive: SLOTS, limitNew: 600 },
      seed: 5,
      refreshSeconds: REFRESH_SECONDS,
      ...FLASH,
    });
    await crowd.play();
    const { active } = assertLimits(crowd, context);
    assert.equal(active.largest, SLOTS, "the room gets full");
  };

  test("a flash crowd fills a room that nobody has visited, and no more", (context) =>
    flash(context, "flash"));

  test("a flash crowd fills a room that all data centers know, and no more", async (context) => {
    const first = COLOS.map((colo) => world.visitor({ path: "/known", colo }));
    for (const visitor of first) assert.ok((await visitor.get()).fromOrigin);
    // Their sessions are over when the crowd comes.
    await sleep(MINUTE + 10_000);
    await roomInMinute(50_000);
    await flash(context, "known");
  });
});

describe("a small room that fills within a second from three data centers", { concurrency: true }, () => {
  const SIZES = [5, 6, 12, 20, 40];
  const SECOND = 1_000;
  const inTurn = (id) => id % COLOS.length;
  const inBlocks = (id, size) => Math.floor((id / size) * COLOS.length);
  const evenly = (id, size) => (id / size) * SECOND;
  /**
   * How its visitors come, by their number among how many: from which data center, and when in that second; `undefined`:
   * each when the one before is in.
   */
  const ORDERS = {
    in_turn: { title: "from each in turn", from: inTurn, comes: evenly },
    in_blocks: { title: "from one after the other", from: inBlocks, comes: evenly },
    one_by_one: { title: "one by one, from each in turn", from: inTurn },
    blocks_one_by_one: { title: "one by one, from one after the other", from: inBlocks },
    at_once: { title: "all at once", from: inTurn, comes: () => 0 },
  };
  const name = (order, size) => `${order}_${size}`;
  const all = Object.keys(ORDERS).flatMap((order) => SIZES.map((size) => ({ order, size })));
  let world;
  before(async () => {
    world = await startWorld({
      rooms: Object.fromEntries(
        all.map(({ order, size }) => [
          name(order, size),
          room(`/${name(order, size)}`, { total_active_users: size }),
        ]),
      ),
      vars: { OBJECT_DEADLINE_MS: undefined },
    });
    await roomInMinute(30_000);
  });
  after(() => world.close());

  for (const { order, size } of all) {
    const { title, comes, from } = ORDERS[order];
    test(`${size} slots, ${size} visitors, ${title}: all are in, and the next one waits`, async (context) => {
      const path = `/${name(order, size)}`;
      const visit = async (id) => {
        const colo = COLOS[from(id, size)];
        const { fromOrigin } = await world.visitor({ path, colo, worker: Math.floor(id / 3) % 2 }).get();
        return fromOrigin ? [] : [`visitor ${id} at ${colo}`];
      };
      const begin = Date.now();
      const answers = [];
      for (let id = 0; id < size; id += 1)
        answers.push(comes ? sleep(comes(id, size)).then(() => visit(id)) : await visit(id));
      const waiting = (await Promise.all(answers)).flat();
      context.diagnostic(`filled within ${Date.now() - begin} ms`);
      assert.deepEqual(waiting, [], "nobody waits while a slot is free");
      for (const colo of COLOS) assert.ok((await world.visitor({ path, colo }).get()).waiting, "it is full");
    });
  }
});
