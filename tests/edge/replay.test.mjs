// The same history, checked twice: a crowd meets a room in the real runtime while every object writes down what it sees
// and says. Then all of it goes through the core again, natively, with the same times: the answers must be the same bytes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { environment, ROOT, STABLE } from "../../tools/toolchain.mjs";
import { clock } from "./clock.mjs";
import { Crowd } from "./crowd.mjs";
import { MINUTE, room, startWorld } from "./world.mjs";

/** The room is full before the minute's edge, so that the minute after it has shares. */
const BEFORE_EDGE = 12_000;
const ARRIVALS = 25_000;
const LASTS = 85_000;
const LIMITS = { total_active_users: 60, new_users_per_minute: 60, refresh_interval_seconds: 10 };

/** How many messages of each kind there must be at least; and that there are no other kinds. Some are there by chance. */
const LEAST = {
  counters: {
    "Anywhere answers /take": 20,
    "Anywhere calls /state": 20,
    "Counter answers /given": 20,
    "Counter answers /take": 5,
    "DataCenter answers /report": 20,
    "DataCenter answers /state": 3,
    "DataCenter calls /given": 20,
    "DataCenter calls /push": 20,
    "DataCenter calls /state": 1,
    "Global answers /push": 20,
    "Global answers /state": 20,
  },
  leases: {
    "Anywhere answers /lease": 20,
    "Anywhere calls /recall": 0,
    "Anywhere calls /state": 20,
    "Counter answers /recall": 0,
    "Counter answers /take": 20,
    "Counter calls /lease": 20,
    "DataCenter answers /report": 20,
    "DataCenter answers /state": 3,
    "DataCenter calls /push": 20,
    "DataCenter calls /state": 1,
    "Global answers /push": 20,
    "Global answers /state": 20,
  },
};

/** The world's timeout of calls. */
const DEADLINE_MS = 2_000;
/** One of so many calls of an object gets no answer. */
const LOSES = 5;

const crowded = (strategy) => room("/crowd", { ...LIMITS, slot_strategy: strategy });

/** A world whose objects write everything down, and do not hear all. */
const recordedWorld = (strategy) =>
  startWorld({
    rooms: { crowd: crowded(strategy) },
    colos: { AMS: 2, SIN: 2, GRU: 2 },
    recorded: true,
    loses: LOSES,
    vars: { OBJECT_DEADLINE_MS: `${DEADLINE_MS}` },
  });

/** Records a crowd, over two minutes' edges: shares change there. */
async function record(world, strategy) {
  const crowd = new Crowd(world, {
    path: "/crowd",
    visitors: 200,
    limits: { limitActive: LIMITS.total_active_users, limitNew: LIMITS.new_users_per_minute },
    seed: 3,
    arrivals: ARRIVALS,
    lasts: LASTS,
    refreshSeconds: LIMITS.refresh_interval_seconds,
  });
  await crowd.play();
  await clock.pass(3_000);
  assert.deepEqual(crowd.unexpected, []);
  const objects = await world.recording();
  const history = { rooms: { ROOM_CROWD: crowded(strategy) }, deadline_ms: DEADLINE_MS, objects };
  return { history, figures: crowd.figures() };
}

/** Replays a history: what was compared and how much of it was the same. */
async function replay(history) {
  const place = await mkdtemp(join(tmpdir(), "anteroom-"));
  const file = join(place, "history.json");
  await writeFile(file, JSON.stringify(history));
  const args = ["run", "--quiet", "--package", "anteroom-sim", "--", "replay", file];
  const child = spawn("cargo", args, { cwd: ROOT, env: environment({ RUSTUP_TOOLCHAIN: STABLE }) });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += chunk));
  const code = await new Promise((resolve) => child.on("close", resolve));
  // One that is not the same again is kept, to be looked at.
  if (code === 0) await rm(place, { recursive: true });
  else said += `${file}\n`;
  const lines = [...said.matchAll(/^(.*): (\d+) of (\d+) the same$/gm)];
  return { code, said, compared: Object.fromEntries(lines.map(([, kind, , all]) => [kind, Number(all)])) };
}

describe("a recorded history through the core again", { concurrency: true }, () => {
  const worlds = {};
  before(async () => {
    for (const strategy of Object.keys(LEAST)) worlds[strategy] = await recordedWorld(strategy);
    // They have one clock, and how long they take to start is the machine's affair.
    await clock.pass((2 * MINUTE - (Date.now() % MINUTE) - BEFORE_EDGE) % MINUTE);
  });
  after(() => Promise.all(Object.values(worlds).map((world) => world.close())));

  for (const [strategy, least] of Object.entries(LEAST)) {
    test(strategy, async (context) => {
      const { history, figures } = await record(worlds[strategy], strategy);
      assert.ok(figures.visitors.queued > 20, "the room was full");
      const { code, said, compared } = await replay(history);
      context.diagnostic(JSON.stringify(compared));
      assert.equal(code, 0, said);
      const times = { ...Object.fromEntries(Object.keys(least).map((kind) => [kind, 0])), ...compared };
      assert.deepEqual(Object.keys(times), Object.keys(least));
      for (const [kind, count] of Object.entries(least))
        assert.ok(times[kind] >= count, `${times[kind]} times ${kind}, not ${count}`);
    });
  }
});
