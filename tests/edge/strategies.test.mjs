// The slot strategies in the real runtime: each fills a room, queues the rest, and lets the next one in.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { eventually, room, sleep, startWorld } from "./world.mjs";

const SLOTS = 6;
const STRATEGIES = ["leases", "counters", "adapted_worker_slots", "worker_slots"];

describe("slot strategies", { concurrency: true }, () => {
  let world;
  before(async () => {
    const limits = { total_active_users: SLOTS, new_users_per_minute: 60, refresh_interval_seconds: 5 };
    world = await startWorld({
      rooms: Object.fromEntries(
        STRATEGIES.map((strategy) => [
          strategy,
          room(`/${strategy}`, { ...limits, slot_strategy: strategy }),
        ]),
      ),
      // One worker in each colo: what is divided among workers is then divided among colos.
      colos: { AMS: 1, SIN: 1 },
    });
  });
  after(() => world.close());

  for (const strategy of STRATEGIES) {
    test(strategy, async () => {
      const path = `/${strategy}`;
      const inside = [];
      const waiting = [];
      const comes = async (colo) => {
        const visitor = world.visitor({ path, colo });
        ((await visitor.get()).waiting ? waiting : inside).push(visitor);
      };
      // One after the other, so that each worker knows of those before: then none of them lets in too many.
      for (let count = 0; count < SLOTS + 3; count += 1) {
        await comes(count % 2 ? "SIN" : "AMS");
        await sleep(3_500);
      }
      assert.ok(inside.length >= 1 && inside.length <= SLOTS, `${inside.length} are in`);
      assert.ok(waiting.length >= 3, `${waiting.length} wait`);
      for (const visitor of inside)
        assert.equal((await visitor.get()).fromOrigin, true, "whoever is in stays in");
      // Those who are in leave; whoever waits is let in when their sessions have ended.
      await eventually(
        "whoever waits is let in",
        async () => {
          for (const visitor of waiting.splice(0)) {
            ((await visitor.get()).waiting ? waiting : inside).push(visitor);
          }
          return waiting.length === 0;
        },
        { within: 150_000, every: 5_000 },
      );
    });
  }
});
