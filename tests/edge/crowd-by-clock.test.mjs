// Crowds on the tests' own clock, on which it can be told how soon a free slot is taken while people wait.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Crowd } from "./crowd.mjs";
import { MINUTE, room, startWorld } from "./world.mjs";

const REFRESH_SECONDS = 10;
const TIMES = { lasts: 3 * MINUTE, arrivals: 2 * MINUTE, refreshSeconds: REFRESH_SECONDS };
/** What is free while people wait must be taken within a refresh, and what the state takes to come round. */
const TAKEN_WITHIN = 1.1 * REFRESH_SECONDS + 5;
const SLOTS = 20;

describe("a crowd", { concurrency: true }, () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: {
        full: room("/full", {
          total_active_users: SLOTS,
          new_users_per_minute: 120,
          refresh_interval_seconds: REFRESH_SECONDS,
        }),
        rated: room("/rated", { new_users_per_minute: 12, refresh_interval_seconds: REFRESH_SECONDS }),
      },
    });
  });
  after(() => world.close());

  test(`takes all ${SLOTS} places of a room`, async (context) => {
    const crowd = new Crowd(world, {
      path: "/full",
      visitors: 80,
      limits: { limitActive: SLOTS, limitNew: 120 },
      ...TIMES,
      seed: 1,
    });
    await crowd.play();
    const figures = crowd.figures();
    const { longestSeconds, percent } = crowd.idleness(SLOTS);
    context.diagnostic(JSON.stringify({ longestSeconds, percent, active: figures.active }));
    assert.deepEqual(crowd.unexpected, []);
    assert.ok(figures.visitors.queued > 40, "the room was full");
    assert.ok(figures.active.largest <= SLOTS);
    assert.deepEqual(crowd.thrownOut(), []);
    assert.ok(
      longestSeconds <= TAKEN_WITHIN,
      `slots are taken while people wait, not after ${longestSeconds} s`,
    );
  });

  test("60 visitors meet a room that lets in 12 a minute", async (context) => {
    const crowd = new Crowd(world, {
      path: "/rated",
      visitors: 60,
      limits: { limitNew: 12 },
      ...TIMES,
      seed: 2,
    });
    await crowd.play();
    const figures = crowd.figures();
    const minutes = figures.newPerMinute.minutes.map(({ users }) => users);
    context.diagnostic(JSON.stringify({ minutes, order: figures.order, visitors: figures.visitors }));
    assert.deepEqual(crowd.unexpected, []);
    assert.equal(figures.newPerMinute.broken, false, `12 a minute, not ${minutes}`);
    assert.deepEqual(crowd.thrownOut(), []);
    assert.ok(
      figures.order.percent <= 2,
      `oldest bucket first: ${figures.order.passedOver} were passed over`,
    );
    // The minutes between the first and the last are whole, and people waited in them.
    for (const users of minutes.slice(1, -1)) assert.ok(users >= 9, `the limit is used: ${minutes}`);
  });
});
