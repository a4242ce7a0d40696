// What breaks: objects that throw, hang, lose answers or restart, a colo that is not told, rooms and secrets that are
// wrong. Whatever happens, the limits hold and nobody who was admitted is thrown out.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Crowd } from "./crowd.mjs";
import { eventually, letIn, room, roomInMinute, sealTicket, sleep, startWorld } from "./world.mjs";

const KINDS = ["Counter", "Anywhere", "DataCenter", "Global"];
const COLOS = ["AMS", "SIN", "GRU"];

/**
 * What is done to which objects of a room, in the middle of a minute, while people come and go: each way to fail once, as
 * this runtime has it. `sim/tests/limits.rs` does it to every kind of object.
 */
const ORDEALS = {
  counter_throws: { kind: "Counter", mode: "throw" },
  counter_restarts: { kind: "Counter", restart: COLOS.map((colo) => `/${colo}`) },
  anywhere_loses_answers: { kind: "Anywhere", mode: "lost" },
  anywhere_is_late: { kind: "Anywhere", mode: "late", ms: 1_500 },
  data_center_restarts: { kind: "DataCenter", restart: COLOS.map((colo) => `/${colo}`) },
  global_hangs: { kind: "Global", mode: "hang" },
};
const SLOTS = 6;
const NEW_PER_MINUTE = 60;
const REFRESH_SECONDS = 10;
/** When the faults are made, in seconds: when the first sessions end, and when the next do. By then colos own shares. */
const OUTAGES = [
  [60, 80],
  [118, 138],
];
/** After an outage a minute may have to end before all numbers are given again. */
const RECOVERY = 90_000;

describe("objects that fail in the middle of a minute", { concurrency: true }, () => {
  let world;
  before(async () => {
    const limits = {
      total_active_users: SLOTS,
      new_users_per_minute: NEW_PER_MINUTE,
      refresh_interval_seconds: REFRESH_SECONDS,
      // On a slow machine an outage lasts until no state is left; then the limits hold if the owner wants them to.
      on_error: "queue",
    };
    world = await startWorld({
      rooms: {
        ...Object.fromEntries(Object.keys(ORDEALS).map((name) => [name, room(`/${name}`, limits)])),
        renewals: room("/renewals", { ...limits, total_active_users: 2 }),
        hung_up: room("/hung_up", { ...limits, total_active_users: 100 }),
      },
      vars: { OBJECT_DEADLINE_MS: "1000" },
    });
  });
  after(() => world.close());

  test("who hangs up takes nobody along who asked together with him", async () => {
    const path = "/hung_up";
    assert.ok((await world.visitor({ path }).get()).fromOrigin);
    await world.fault("Counter", "hung_up/AMS", "late", 300);
    // One of those who ask together asks for all. It is one of the many, who leave before the answer is there.
    const left = Array.from({ length: 12 }, () => world.leave(sleep(150), { path }));
    const stays = await world.visitor({ path }).get();
    await Promise.all(left);
    await world.fault("Counter", "hung_up/AMS");
    assert.ok(stays.fromOrigin);
    // By the tests' clock: the answer's 300 ms, not the time after which somebody else would ask again.
    assert.ok(stays.received - stays.sent < 1_000, `${stays.received - stays.sent} ms`);
  });

  for (const [name, { kind, mode, ms, restart }] of Object.entries(ORDEALS)) {
    test(name.replaceAll("_", " "), async (context) => {
      const crowd = new Crowd(world, {
        path: `/${name}`,
        visitors: 30,
        limits: { limitActive: SLOTS, limitNew: NEW_PER_MINUTE },
        seed: 3,
        arrivals: 20_000,
        lasts: 138_000 + RECOVERY,
        refreshSeconds: REFRESH_SECONDS,
        viewMs: 3_000,
      });
      const at = (seconds) => sleep(Math.max(0, crowd.start + seconds * 1000 - Date.now()));
      const ordeal = async () => {
        for (const [begin, end] of OUTAGES) {
          await at(begin);
          if (mode) await world.fault(kind, name, mode, ms);
          for (let second = begin; second < end; second += 5) {
            await at(second);
            for (const object of restart ?? []) await world.restart(kind, `${name}${object}`);
          }
          await at(end);
          await world.fault(kind, name);
        }
        // Only whoever leaves makes room: some are let in again, and all that is free is used.
        const entered = () => crowd.admissions().filter(({ sent }) => sent > crowd.start + 138_000).length;
        await eventually(
          "people are let in again, until the room is full",
          async () => entered() > 0 && (await world.status(name)).state.active >= SLOTS - 1,
          { within: RECOVERY, every: 1_000 },
        ).finally(() => {
          crowd.end = Date.now();
        });
      };
      await Promise.all([crowd.play(), ordeal()]);
      const figures = crowd.figures();
      const minutes = figures.newPerMinute.minutes.map(({ users }) => users);
      const during = crowd
        .admissions()
        .filter(({ sent }) =>
          OUTAGES.some(
            ([begin, end]) => sent > crowd.start + begin * 1000 && sent < crowd.start + end * 1000,
          ),
        );
      context.diagnostic(
        `most active ${figures.active.largest}, new per minute ${minutes}, ${during.length} let in during the ` +
          `outages, idle ${crowd.idleness(SLOTS).percent.toFixed(1)} %, passed over ${figures.order.passedOver}, ` +
          `overtaken ${crowd.overtaken().length}, ` +
          `over after ${((crowd.end - crowd.start) / 1000).toFixed(0)} s`,
      );
      assert.deepEqual(crowd.unexpected, [], "every answer is the origin's or a waiting page");
      assert.ok(figures.active.largest <= SLOTS, `${figures.active.largest} were active`);
      assert.equal(figures.newPerMinute.broken, false);
      assert.deepEqual(crowd.thrownOut(), [], "nobody who was admitted is thrown out");
    });
  }

  test("sessions that are renewed while nobody can be told do not end for it", async () => {
    const path = "/renewals";
    // Across the edge of a minute the second could have to wait until the first is reported.
    await roomInMinute(5_000);
    const inside = await letIn(world, 2, { path, colo: "SIN" });
    const since = Date.now();
    const at = (seconds) => sleep(Math.max(0, since + seconds * 1000 - Date.now()));
    const others = COLOS.map((colo) => world.visitor({ path, colo }));
    for (const visitor of others) assert.ok((await visitor.get()).waiting);
    await at(40);
    await world.fault("DataCenter", "renewals/SIN", "throw");
    await at(45);
    for (const visitor of inside) assert.ok((await visitor.get()).fromOrigin);
    const newcomers = async () => {
      const answers = await Promise.all(others.map((visitor) => visitor.get()));
      assert.ok(
        answers.every(({ waiting }) => waiting),
        "both are still inside",
      );
    };
    for (let seconds = 50; seconds <= 80; seconds += 5) {
      await at(seconds);
      await newcomers();
    }
    await world.fault("DataCenter", "renewals/SIN");
    for (let seconds = 82; seconds <= 100; seconds += 6) {
      await at(seconds);
      await newcomers();
    }
    for (const visitor of inside) assert.ok((await visitor.get()).fromOrigin);
  });
});

describe("everything down at once", { concurrency: true }, () => {
  const rooms = {
    admit: room("/admit"),
    queue: room("/queue", { on_error: "queue" }),
    silent: room("/silent", { on_error: "queue" }),
    cached: room("/cached", { total_active_users: 12 }),
    pass: room("/pass"),
    nowhere: room("/nowhere", { total_active_users: 2 }),
  };
  let world;
  before(async () => {
    world = await startWorld({ rooms, vars: { OBJECT_DEADLINE_MS: "300" } });
  });
  after(() => world.close());

  const all = (name, mode) => Promise.all(KINDS.map((kind) => world.fault(kind, name, mode)));

  test("without any state, on_error = admit lets people in, and counts them later", async () => {
    await all("admit", "throw");
    const visitors = await letIn(world, 5, { path: "/admit" });
    await all("admit");
    await sleep(300);
    for (const visitor of visitors) assert.ok((await visitor.get()).fromOrigin);
    await eventually("they are counted", async () => (await world.status("admit")).state?.active === 5);
    await sleep(3_000);
    assert.equal((await world.status("admit")).state.active, 5);
  });

  for (const [name, mode] of [
    ["queue", "throw"],
    ["silent", "hang"],
  ]) {
    test(`without any state, on_error = queue lets nobody in: objects that ${mode}`, async () => {
      await all(name, mode);
      const visitors = COLOS.map((colo, number) =>
        world.visitor({ path: `/${name}`, colo, worker: number % 2 }),
      );
      for (let i = 0; i < 2; i += 1) {
        const pages = await Promise.all(visitors.map((visitor) => visitor.get()));
        assert.ok(pages.every(({ waiting }) => waiting));
      }
      assert.deepEqual(world.origin.below(`/${name}`), []);
      await all(name);
      for (const visitor of visitors) {
        await eventually(
          "they are let in when the objects are back",
          async () => (await visitor.get()).fromOrigin,
        );
      }
    });
  }

  test("with a state that is still good, few are let in and never too many", async () => {
    await roomInMinute(25_000);
    const inside = await letIn(world, 4, { path: "/cached" });
    // Two visitors per worker, so that all six of them know the state.
    await eventually("the room is counted", async () => (await world.status("cached")).state.active === 4);
    await sleep(2_500);
    await all("cached", "throw");
    const crowd = Array.from({ length: 60 }, (_, number) =>
      world.visitor({ path: "/cached", colo: COLOS[number % 3], worker: Math.floor(number / 3) % 2 }),
    );
    // Only the worker that let the four in has a state: the others have none, and on_error says admit.
    const known = crowd.filter(({ where }) => where.colo === "AMS" && where.worker === 0);
    const answers = await Promise.all(known.map((visitor) => visitor.get()));
    const entered = answers.filter(({ fromOrigin }) => fromOrigin).length;
    assert.ok(entered <= 8, `${entered} were let in where 8 slots were free`);
    assert.ok(answers.every(({ fromOrigin, waiting }) => fromOrigin || waiting));
    for (const visitor of inside) assert.ok((await visitor.get()).fromOrigin);
    await all("cached");
    await eventually(
      "all are counted",
      async () => (await world.status("cached")).state.active === 4 + entered,
    );
  });

  test("whoever is in does not notice", async () => {
    const [visitor] = await letIn(world, 1, { path: "/pass" });
    await all("pass", "hang");
    for (let i = 0; i < 8; i += 1) {
      await sleep(300);
      assert.ok((await visitor.get("/pass", { colo: COLOS[i % 3], worker: i % 2 })).fromOrigin);
    }
    const stranger = world.visitor({ path: "/pass" });
    stranger.setTicket(sealTicket("pass", { acceptedAt: Date.now() - 30_000 }), { path: "/pass" });
    assert.ok((await stranger.get()).fromOrigin);
    await all("pass");
  });

  test("a colo that is not told is a colo like any other", async () => {
    const strange = [
      {},
      null,
      { colo: "" },
      { colo: 7 },
      { colo: null },
      { colo: "nowhere/at-all" },
      { colo: "A B" },
    ];
    for (const cf of strange) {
      const answer = await world.send({ path: "/pass", cf });
      assert.equal(answer.status, 200, JSON.stringify(cf));
    }
    const visitors = strange.map((cf) => world.visitor({ path: "/nowhere", cf }));
    const answers = [];
    for (const visitor of visitors) answers.push(await visitor.get());
    assert.deepEqual(
      answers.map(({ fromOrigin }) => fromOrigin),
      [true, true, false, false, false, false, false],
    );
    for (const visitor of visitors) await visitor.get();
    const names = new Set((await world.calls("nowhere")).map(({ name }) => name));
    assert.deepEqual([...names].sort(), ["nowhere", "nowhere/XXX"]);
  });
});

describe("everything ends at once, as with anteroom serve", () => {
  test("what visitors did a tenth of a second before is known after it", async (t) => {
    const deployed = {
      rooms: { full: room("/", { total_active_users: SLOTS, session_duration: 1 }) },
      vars: { ONE_PROCESS: true },
    };
    const world = await startWorld({ ...deployed, colos: { AMS: 1 } });
    t.after(() => world.close());
    const inside = await letIn(world, SLOTS);
    await sleep(40_000);
    for (const visitor of inside) assert.ok((await visitor.get()).fromOrigin);
    await sleep(100);
    await world.deploy(deployed);

    // By what was known before that, all would be gone 20 seconds later.
    const newcomer = world.visitor();
    for (const began = Date.now(); Date.now() < began + 50_000; await sleep(1_000)) {
      assert.ok((await newcomer.get()).waiting, `${Date.now() - began} ms later`);
    }
    for (const visitor of inside) assert.ok((await visitor.get()).fromOrigin);
  });
});

describe("a deployment that is wrong", () => {
  const rooms = {
    good: room("/good", { total_active_users: 1 }),
    zero: room("/zero", { total_active_users: 0 }),
    typo: room("/typo", { sesion_duration: 1 }),
    text: "path = /text",
    below: room("/good/below", { session_duration: 31 }),
  };
  let world;
  before(async () => {
    world = await startWorld({ rooms, colos: { AMS: 1 } });
  });
  after(() => world.close());

  test("a broken room fails open and loudly, and leaves the others alone", async () => {
    const [inside] = await letIn(world, 1, { path: "/good" });
    assert.ok((await world.visitor().get("/good")).waiting);
    assert.ok((await inside.get()).fromOrigin);
    for (const path of ["/zero", "/typo/x", "/text"]) {
      for (let i = 0; i < 2; i += 1) {
        const answer = await world.visitor().get(path);
        assert.ok(answer.fromOrigin, path);
        assert.deepEqual(answer.setCookie, []);
      }
    }
    assert.ok((await world.visitor().get("/good/below")).waiting, "covered by the room around it");
    const { problems, rooms } = await world.status();
    assert.deepEqual(
      rooms.map(({ name }) => name),
      ["good"],
    );
    const told = [
      /zero.*total_active_users.*0/,
      /typo.*sesion_duration/,
      /text/,
      /below.*session_duration.*31/,
    ];
    for (const problem of told) {
      assert.ok(
        problems.some((text) => problem.test(text)),
        `${problem} in ${problems}`,
      );
      assert.match(world.log.join(""), problem);
    }
  });

  test("without cookie keys every request goes to the origin, and operators are told", async () => {
    for (const keys of [undefined, "", "short", "not base64 at all"]) {
      await world.deploy({ rooms, vars: { COOKIE_KEYS: keys } });
      for (let i = 0; i < 3; i += 1) {
        const answer = await world.visitor().get("/good");
        assert.ok(answer.fromOrigin, `keys ${keys}`);
        assert.deepEqual(answer.setCookie, []);
      }
      const { problems } = await world.status();
      assert.ok(problems.some((problem) => problem.includes("COOKIE_KEYS")));
    }
    assert.match(world.log.join(""), /COOKIE_KEYS/);
  });
});
