// Three real minutes: 300 visitors meet a room of 20, from three colos with two workers each. They browse, fall
// silent, refresh as they are told, send several requests at once with one cookie, and move to other colos. What is
// held against the room is only what is certain from outside: see tools/crowd/measure.mjs. How soon a free slot is taken
// depends on the machine here: crowd-by-clock.test.mjs tells.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { clock } from "./clock.mjs";
import { Crowd } from "./crowd.mjs";
import { MINUTE, room, sleep, startWorld } from "./world.mjs";

clock.goReal();
const SESSION = MINUTE;
const REFRESH_SECONDS = 10;
const TIMES = { lasts: 3 * MINUTE, arrivals: 2 * MINUTE, refreshSeconds: REFRESH_SECONDS };
/** From a request to the state that counts it: report, push, answer. */
const PIPELINE = 4_000;

describe("three real minutes", () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: {
        full: room("/full", {
          total_active_users: 20,
          new_users_per_minute: 120,
          refresh_interval_seconds: REFRESH_SECONDS,
        }),
      },
    });
  });
  after(() => world.close());

  test("300 visitors meet a room of 20", async (context) => {
    const crowd = new Crowd(world, {
      path: "/full",
      visitors: 300,
      limits: { limitActive: 20, limitNew: 120 },
      ...TIMES,
      seed: 1,
    });
    const states = [];
    const watch = async () => {
      while (Date.now() < crowd.end) {
        states.push((await world.status("full")).state);
        await sleep(2_000);
      }
    };
    await Promise.all([crowd.play(), watch()]);
    const figures = crowd.figures();
    const idle = crowd.idleness(20);
    context.diagnostic(
      JSON.stringify({
        visitors: figures.visitors,
        waitSeconds: figures.waitSeconds,
        active: figures.active,
        newPerMinute: figures.newPerMinute.minutes.map(({ users }) => users),
        order: figures.order,
        thrownOut: crowd.thrownOut().length,
        overtaken: crowd.overtaken().length,
        idle,
        moved: crowd.moved,
        parallel: crowd.parallel,
        requests: figures.requests,
      }),
    );

    assert.deepEqual(crowd.unexpected, [], "every answer is the origin's or a waiting page");
    assert.equal(figures.visitors.arrived, 300);
    assert.ok(figures.visitors.queued > 200, "the room was full");
    assert.ok(crowd.moved.waiting > 10 && crowd.moved.active > 1, "visitors moved");
    assert.ok(
      crowd.parallel.waiting > 20 && crowd.parallel.active > 5,
      "visitors sent several requests at once",
    );
    assert.ok(figures.active.largest <= 20, `at most 20 were active, not ${figures.active.largest}`);
    assert.equal(figures.newPerMinute.broken, false);
    assert.deepEqual(crowd.thrownOut(), [], "nobody who was inside was sent to the queue");
    assert.ok(figures.waitSeconds.count > 20, "people who waited were let in");
    assert.ok(
      figures.order.percent <= 2,
      `oldest bucket first: ${figures.order.passedOver} were passed over`,
    );
    const mostCounted = Math.max(...states.map(({ active }) => active));
    assert.ok(mostCounted <= 20, `the room never counted more than 20, not ${mostCounted}`);

    // Everybody is silent now. Once all is reported, the room counts those whom we count, however many requests
    // they sent at once and wherever they moved, until the last of them has gone.
    await clock.pass(PIPELINE);
    const last = crowd.lastRequest();
    for (let isActive = true; isActive; await clock.pass(500)) {
      const asked = Date.now();
      const { state } = await world.status("full");
      const certain = crowd.activeAt(Date.now()).certain;
      const possible = crowd.activeAt(asked).possible;
      assert.ok(
        certain <= state.active && state.active <= possible,
        `${state.active} are counted; ${certain} are active for certain, ${possible} at most`,
      );
      isActive = state.active > 0;
    }
    assert.ok(Date.now() >= last.sent + SESSION, "a session lasts as long as it should");
    const { state } = await world.status("full");
    assert.equal(state.active, 0);
    assert.deepEqual(state.waiting, [], "nobody is counted as waiting");
  });
});
