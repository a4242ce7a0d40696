// `npm run room -- token`, `plan`, `plans`, `drop`: tokens, and changes for later, against the Worker in workerd.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { clock } from "./clock.mjs";
import { ADMIN_TOKEN, room, startWorld } from "./world.mjs";

// The command is a program of its own.
clock.goReal();

const PROGRAM = fileURLToPath(new URL("../../tools/room.mjs", import.meta.url));
let world;
before(async () => {
  world = await startWorld({ rooms: { shop: room("/shop") }, colos: { AMS: 1 } });
});
after(() => world.close());

/** Runs the command. @returns {Promise<{ code: number, out: string, err: string }>} */
function run(args, token = ADMIN_TOKEN) {
  return new Promise((resolve) => {
    const env = { ...process.env, ANTEROOM_TOKEN: token };
    execFile(process.execPath, [PROGRAM, ...args, "--url", world.address()], { env }, (error, out, err) =>
      resolve({ code: error ? error.code : 0, out, err }),
    );
  });
}

test("a token is made, used, listed and revoked", async () => {
  const made = await run(["token", "create", "ci", "--expires", "2099-01-31T00:00Z"]);
  assert.match(made.out, /^anteroom_\S{43}\n$/, `${made.err} it alone, for a pipe`);
  const token = made.out.trim();
  assert.match((await run(["status"], token)).out, /shop/);
  const refused = await run(["set", "shop", "queue_all=true"], token);
  assert.match(refused.err, /The token of ci has the role view/);
  const { out } = await run(["token", "list"]);
  assert.match(out, /ci\s.*view\s.*2099-01-31T00:00:00.000Z\s.*admin/);
  assert.ok(out.includes(token.slice(-4)) && !out.includes(token));
  assert.equal((await run(["token", "revoke", "CI"])).out, "ci is revoked.\n");
  assert.deepEqual(
    [(await run(["status"], token)).code, (await run(["token", "revoke", "ci"])).code],
    [2, 1],
  );
  const wrong = await run(["token", "create", "a b"]);
  assert.deepEqual([wrong.code, /Fix: /.test(wrong.err)], [1, true]);
  assert.equal((await run(["token", "create"])).code, 2);
});

test("a change is planned, listed and dropped", async () => {
  const ahead = (hours) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const times = ["--from", ahead(24), "--until", ahead(26), "--weekly", "--zone", "Europe/Berlin"];
  const planned = await run([
    "plan",
    "shop",
    "queue_all=true",
    "total_active_users=5",
    ...times,
    "--reason",
    "backup",
  ]);
  assert.match(
    planned.out,
    /queue_all=true total_active_users=5\s.*each week \(Europe\/Berlin\)\s.*admin\s.*backup/,
    planned.err,
  );
  const { out } = await run(["plans", "shop"]);
  assert.equal(out, planned.out);
  const [id] = /[0-9a-f]{32}/.exec(out);
  const wrong = await run(["plan", "shop", "total_active_users=0", ...times]);
  assert.deepEqual([wrong.code, /total_active_users/.test(wrong.err)], [1, true]);
  assert.equal((await run(["drop", "shop", id])).code, 0);
  assert.ok(!(await run(["plans", "shop"])).out.includes(id));
  assert.deepEqual([(await run(["drop", "shop", id])).code, (await run(["plans", "nowhere"])).code], [1, 1]);
});
