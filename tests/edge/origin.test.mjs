// An origin that is slow, full, in trouble or gone: the room keeps it from having more to do than it can, holds those who
// wait, and keeps the sessions of those who are in.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { eventually, letIn, room, sleep, startWorld } from "./world.mjs";

/** Two requests of a worker at a time, no more. */
const TWO = { strategy: "static", max: 2, timeout: 20 };
/** How long an origin is ill while people come: longer than a session. */
const OUTAGE = 75_000;
const SLOTS = 20;

const SECRET = "the-secret-of-the-webhook";

/** What the origin does to everybody, and for how long if not for OUTAGE. */
const ILLNESSES = {
  overloaded: { status: 503 },
  hangs: { hang: true },
  dies: { breaks: true, lasts: 150_000 },
  flaps: { breaks: true, every: 6_000 },
};

describe("an origin in trouble", { concurrency: true }, () => {
  let world;
  before(async () => {
    const ordeal = {
      total_active_users: SLOTS,
      new_users_per_minute: 120,
      refresh_interval_seconds: 5,
      on_unhealthy: "hold",
      origin_guard: { strategy: "position", min: 3, max: 200, timeout: 3 },
    };
    world = await startWorld({
      vars: { WEBHOOK_SECRET: SECRET, HEALTH_PAGE: "public" },
      rooms: {
        checked: room("/checked", { on_unhealthy: "hold", health_checks: ["Shop origin"] }),
        unheard: room("/unheard", { on_unhealthy: "hold", health_checks: ["Other origin"] }),
        shown: room("/shown", { health_checks: ["Shop origin"] }),
        full: room("/full", { origin_guard: TWO }),
        passed: room("/passed", { origin_guard: { ...TWO, admitted: "pass" } }),
        line: room("/line", { origin_guard: { ...TWO, max: 20, at_once: 1, hold_ms: 10_000 } }),
        impatient: room("/impatient", { origin_guard: { strategy: "static", max: 100, timeout: 1 } }),
        shrinking: room("/shrinking", {
          origin_guard: { strategy: "position", min: 1, max: 50, timeout: 5 },
        }),
        left: room("/left", { origin_guard: { strategy: "position", min: 1, max: 50, timeout: 8 } }),
        held: room("/held", { on_unhealthy: "hold" }),
        unguarded: room("/unguarded"),
        adaptive: room("/adaptive", {
          limits: "adaptive",
          total_active_users: { min: 5, max: 500 },
          new_users_per_minute: { min: 60, max: 600 },
          origin_slow_ms: 1_000,
        }),
        ...Object.fromEntries(Object.keys(ILLNESSES).map((name) => [name, room(`/${name}`, ordeal)])),
      },
    });
  });
  after(() => world.close());

  const isBusy = (answer) => {
    assert.equal(answer.status, 503);
    assert.equal(answer.fromOrigin, false);
    assert.match(answer.body, /The site is busy/);
    assert.match(answer.headers["retry-after"], /^[1-9]$/);
    assert.equal(answer.headers["cache-control"], "private, no-store");
    assert.ok(answer.refresh.seconds >= 1, "the page tries again by itself");
  };

  test("with a full window users who are in are asked to try again, and new ones wait", async () => {
    const [one, two, three] = await letIn(world, 3, { path: "/full" });
    world.origin.behave("/full", { hang: true });
    world.origin.most("/full");
    const hanging = [one.get(), two.get()];
    await eventually("both are at the origin", () => world.origin.most("/full") === 2);
    isBusy(await three.get());
    const sent = world.origin.below("/full").length;
    const posted = await three.get("/full", { method: "POST", body: "order" });
    assert.equal(posted.status, 503);
    assert.equal(posted.refresh, undefined, "an order is not sent again by a page that reloads");
    const newcomer = world.visitor({ path: "/full" });
    assert.equal((await newcomer.get()).waiting, true, "somebody new waits in the room");
    assert.equal(world.origin.below("/full").length, sent, "nothing of it went to the origin");
    world.origin.behave("/full");
    world.origin.release("/full");
    for (const answer of await Promise.all(hanging)) assert.equal(answer.fromOrigin, true);
    assert.equal((await three.get()).fromOrigin, true, "whoever is in stays in");
    assert.equal((await newcomer.get()).fromOrigin, true);
  });

  test('with admitted = "pass" users who are in go on', async () => {
    const visitors = await letIn(world, 3, { path: "/passed" });
    world.origin.behave("/passed", { hang: true });
    const hanging = visitors.map((visitor) => visitor.get());
    await eventually("all are at the origin", () => world.origin.most("/passed") === 3);
    assert.equal(
      (await world.visitor({ path: "/passed" }).get()).waiting,
      true,
      "somebody new waits all the same",
    );
    world.origin.behave("/passed");
    world.origin.release("/passed");
    for (const answer of await Promise.all(hanging)) assert.equal(answer.fromOrigin, true);
  });

  test("with at_once requests stand in line and are all answered", async () => {
    const visitors = await letIn(world, 6, { path: "/line" });
    world.origin.behave("/line", { delay: 200 });
    world.origin.most("/line");
    const answers = await Promise.all(visitors.map((visitor) => visitor.get()));
    for (const answer of answers) assert.equal(answer.fromOrigin, true);
    assert.equal(world.origin.most("/line"), 1, "one at a time");
  });

  test("an origin that does not answer in time is given up, and the session goes on", async () => {
    const [visitor] = await letIn(world, 1, { path: "/impatient" });
    world.origin.behave("/impatient", { hang: true });
    const answer = await visitor.get();
    assert.equal(answer.status, 504);
    assert.match(answer.body, /The site takes too long/);
    world.origin.behave("/impatient");
    world.origin.release("/impatient");
    assert.equal((await visitor.get()).fromOrigin, true);
    // The time is for the first byte: an answer may take as long as it likes.
    const { stream, ...streamed } = await visitor.open("/impatient/stream");
    assert.equal(streamed.status, 200);
    await sleep(1_500);
    world.origin.release("/impatient");
    let text = "";
    for await (const chunk of stream) text += chunk;
    assert.equal(text, "first\nlast\n");
  });

  test("the window shrinks when the origin is overloaded and grows when it is well", async () => {
    const [visitor] = await letIn(world, 1, { path: "/shrinking" });
    const together = async (count) => {
      const answers = await Promise.all(Array.from({ length: count }, () => visitor.get()));
      return answers.filter(({ fromOrigin }) => fromOrigin).length;
    };
    world.origin.behave("/shrinking", { delay: 100 });
    let grown = 0;
    await eventually("the window grows", async () => {
      grown = await together(12);
      return grown >= 6;
    });
    world.origin.behave("/shrinking", { delay: 100, status: 503 });
    for (let index = 0; index < 6; index += 1) await together(12);
    world.origin.behave("/shrinking", { delay: 100 });
    const shrunk = await together(12);
    assert.ok(shrunk < grown, `${grown} at once, then ${shrunk}`);
  });

  test("visitors who leave after a long wait shrink the window, though nobody was told an error", async () => {
    const [visitor] = await letIn(world, 1, { path: "/left" });
    world.origin.behave("/left", { delay: 50 });
    const together = async (count) => {
      const answers = await Promise.all(Array.from({ length: count }, () => visitor.get()));
      return answers.filter(({ fromOrigin }) => fromOrigin).length;
    };
    let grown = 0;
    await eventually("the window grows", async () => {
      grown = await together(12);
      return grown >= 6;
    });
    world.origin.behave("/left", { hang: true });
    for (let round = 0; round < 3; round += 1) {
      const before = world.origin.below("/left").length;
      const waits = eventually(
        "the origin has a request",
        () => world.origin.below("/left").length > before,
      ).then(() => sleep(2_200));
      await Promise.all(Array.from({ length: 4 }, () => visitor.leaves(waits)));
      await eventually("the origin hears that they have left", () => world.origin.most("/left") === 0);
    }
    world.origin.behave("/left", { delay: 50 });
    world.origin.release("/left");
    const shrunk = await together(12);
    assert.ok(shrunk < grown, `${grown} at once, then ${shrunk}`);
    const { origin } = await world.status("left");
    await eventually("they are counted", async () => (await world.status("left")).origin.timed_out > 0);
    assert.equal(origin.failed, 0);
  });

  test("where no guard is set the origin's answers pass as they are", async () => {
    const [visitor] = await letIn(world, 1, { path: "/unguarded" });
    world.origin.behave("/unguarded", { status: 503 });
    const answers = await Promise.all(Array.from({ length: 30 }, () => visitor.get()));
    for (const answer of answers) assert.deepEqual([answer.status, answer.fromOrigin], [503, true]);
    assert.equal((await world.visitor({ path: "/unguarded" }).get()).status, 503, "somebody new as well");
  });

  test("an origin that fails everybody holds the room, and lets go when it is back", async () => {
    const visitors = await letIn(world, 8, { path: "/held" });
    const [visitor] = visitors;
    world.origin.behave("/held", { breaks: true });
    // One visitor does not speak for the origin.
    await Promise.all(Array.from({ length: 30 }, () => visitor.get()));
    await sleep(3_000);
    assert.equal((await world.status("held")).state.held, false);
    const held = await eventually("the room is held", async () => {
      await Promise.all(visitors.map((visitor) => visitor.get()));
      const { state } = await world.status("held");
      return state.held ? state : undefined;
    });
    assert.equal(held.limits.new_users_per_minute, 0);
    const newcomer = world.visitor({ path: "/held", colo: "SIN" });
    await eventually("a newcomer waits, whatever the colo, and is told why", async () => {
      const answer = await newcomer.get();
      assert.equal(answer.waiting, true);
      return /The site is having trouble/.test(answer.body);
    });
    assert.equal((await newcomer.ask()).json.waitText, "nobody is let in right now");
    world.origin.behave("/held");
    assert.equal((await visitor.get()).fromOrigin, true, "whoever is in is still in");
    await eventually("it is let in", async () => (await newcomer.get()).fromOrigin, {
      within: 40_000,
      every: 1_000,
    });
    const { state } = await world.status("held");
    assert.equal(state.held, false);
  });

  /** The platform's health check speaks. */
  async function notify(name, status, seconds = 0) {
    const data = {
      time: new Date(Date.now() + seconds * 1_000).toISOString(),
      status,
      reason: status === "Healthy" ? "No failures" : "TCP connection failed",
      name,
      expected_codes: "200",
      actual_code: 0,
      health_check_id: name.replace(" ", "-"),
    };
    const answer = await world.send({
      path: "/__anteroom/health/webhook",
      method: "POST",
      headers: { "cf-webhook-auth": SECRET, "content-type": "application/json" },
      body: JSON.stringify({ text: `${name} is ${status}`, data }),
    });
    assert.equal(answer.status, 200, answer.body);
  }

  test("a health check holds the rooms that it speaks for, in every colo, and lets go of them", async () => {
    const [visitor] = await letIn(world, 1, { path: "/checked" });
    await notify("Shop origin", "Unhealthy");
    const { origin } = await world.status("checked");
    assert.deepEqual([origin.held, origin.unhealthy_check], [true, "shop origin"]);
    for (const colo of ["AMS", "SIN", "GRU"]) {
      await eventually(`nobody new enters in ${colo}`, async () => {
        const answer = await world.visitor({ path: "/checked", colo }).get();
        return answer.waiting;
      });
    }
    assert.equal((await visitor.get()).fromOrigin, true, "whoever is in goes on");
    assert.equal(
      (await world.visitor({ path: "/shown" }).get()).fromOrigin,
      true,
      "a room that ignores it goes on",
    );
    const newcomer = world.visitor({ path: "/checked", colo: "SIN" });
    assert.equal((await newcomer.get()).waiting, true);
    await notify("Shop origin", "Healthy", 1);
    await notify("Shop origin", "Unhealthy", -60);
    await eventually("it is let in, whatever is told late", async () => (await newcomer.get()).fromOrigin, {
      within: 40_000,
      every: 1_000,
    });
  });

  test("a room that could not be told is told later", async () => {
    await letIn(world, 1, { path: "/unheard" });
    await world.fault("Global", "unheard", "throw");
    await notify("Other origin", "Unhealthy");
    await world.fault("Global", "unheard");
    await eventually("it is held", async () => (await world.status("unheard")).origin?.held);
    // It is still held after a restart.
    await world.restart("Global", "unheard");
    assert.equal((await world.status("unheard")).origin.held, true);
  });

  test("adaptive limits shrink while the origin is slow, and stay within their range", async () => {
    const limits = async () => (await world.status("adaptive")).state.limits;
    const visitors = await letIn(world, 5, { path: "/adaptive" });
    const inLine = Array.from({ length: 8 }, () => world.visitor({ path: "/adaptive", colo: "GRU" }));
    const browse = () => Promise.all(visitors.map((visitor) => visitor.get()));
    await eventually(
      "the limit grows while it is in use",
      async () => {
        await browse();
        for (const visitor of inLine.splice(0)) {
          ((await visitor.get()).waiting ? inLine : visitors).push(visitor);
        }
        return (await limits()).total_active_users >= 7;
      },
      { within: 90_000, every: 1_000 },
    );
    world.origin.behave("/adaptive", { delay: 1_500 });
    const { total_active_users: before } = await limits();
    await eventually(
      "it shrinks",
      async () => {
        await browse();
        return (await limits()).total_active_users < before;
      },
      { within: 60_000 },
    );
    for (const answer of await browse()) assert.equal(answer.fromOrigin, true, "nobody is sent away for it");
    assert.ok((await limits()).total_active_users >= 5);
  });

  for (const [name, { every, lasts = OUTAGE, ...illness }] of Object.entries(ILLNESSES)) {
    test(`people come while the origin ${name.replaceAll("_", " ")}`, async (context) => {
      const path = `/${name}`;
      const inside = await letIn(world, 6, { path });
      const colos = ["AMS", "SIN", "GRU"];
      let over = false;
      const thrownOut = [];
      const tried = { well: 0, ill: 0 };
      // Those who are in go on trying, every few seconds.
      const stays = async (visitor, index) => {
        while (!over) {
          const answer = await visitor.get(path, { colo: colos[index % 3] });
          if (answer.waiting) thrownOut.push(index);
          tried[answer.fromOrigin && answer.status === 200 ? "well" : "ill"] += 1;
          await sleep(3_000 + 300 * index);
        }
      };
      const staying = inside.map(stays);
      await sleep(3_000);
      const ill = () => world.origin.behave(path, illness);
      const well = () => {
        world.origin.behave(path);
        world.origin.release(path);
      };
      ill();
      const begin = Date.now();
      const flaps = async () => {
        for (let times = 1; every && times * every < lasts; times += 1) {
          await sleep(every);
          if (times % 2) well();
          else ill();
        }
      };
      const flapping = flaps();
      // Meanwhile forty people come; whoever waits refreshes as the page says.
      const waiting = [];
      let lost = 0;
      const comes = async (index) => {
        await sleep(index * 1_200);
        const visitor = world.visitor({ path, colo: colos[index % 3], worker: index % 2 });
        let place;
        for (;;) {
          const answer = await visitor.get();
          if (!answer.waiting) {
            inside.push(visitor);
            return stays(visitor, index);
          }
          const ticket = world.bucket(name, visitor.ticket());
          place ??= ticket;
          if (ticket !== place) lost += 1;
          waiting.push(index);
          if (over) return;
          await sleep(answer.refresh.seconds * 1_000);
        }
      };
      const coming = Array.from({ length: 40 }, (_, index) => comes(index));
      await sleep(begin + lasts - Date.now());
      await flapping;
      well();
      world.origin.most(path);
      const back = Date.now();
      const served = () => world.origin.below(path).length;
      const before = served();
      await eventually(
        "all who are in are served again",
        async () => {
          const asks = inside
            .slice(0, 6)
            .map((visitor, index) => visitor.get(path, { colo: colos[index % 3] }));
          const answers = await Promise.all(asks);
          return answers.every(({ fromOrigin, status }) => fromOrigin && status === 200);
        },
        { within: 30_000, every: 1_000 },
      );
      await sleep(Math.max(0, back + 20_000 - Date.now()));
      const { state } = await world.status(name);
      over = true;
      await Promise.all([...staying, ...coming]);
      context.diagnostic(
        `${inside.length} in at the end, ${waiting.length} waiting pages, ${tried.well} requests served and ` +
          `${tried.ill} not, at most ${world.origin.most(path)} at once and ${served() - before} in the 20 s after`,
      );
      assert.deepEqual(thrownOut, [], "nobody who was admitted loses the session");
      assert.equal(lost, 0, "nobody who waits loses the place");
      assert.ok(state.active <= SLOTS, `${state.active} are active`);
      assert.ok(inside.length <= SLOTS, "no more went in than the room takes");
      assert.equal(state.held, false, "it has let go");
    });
  }
});
