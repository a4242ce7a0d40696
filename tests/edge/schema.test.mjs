// The description of the API, against the Worker in workerd: by a validator of OpenAPI, and by Schemathesis, which asks for all
// that it offers and for much that it does not.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { environment, PYTHON_PACKAGES } from "../../tools/toolchain.mjs";
import { clock } from "./clock.mjs";
import { room, startWorld } from "./world.mjs";

// Schemathesis is a program of its own.
clock.goReal();

/** Requests of each kind for each operation. */
const EXAMPLES = 10;
/** What cannot do here what it is for: no mark, link or key comes along, and nothing upgrades. */
const NEVER = ["get_live", "get_rehearsal", "get_continue", "post_continue", "get_push_js"];

let world;
const token = (name) => `the-token-of-${name}-in-this-test`;
const configure = Array.from({ length: 6 }, (_, place) => `many${place}`);
before(async () => {
  const roles = [...configure.map((name) => [name, "configure"]), ["wall", "view"], ["anna", "steer"]];
  world = await startWorld({
    rooms: { deployed: room("/deployed") },
    vars: {
      OPERATOR_TOKENS: roles.map(([name, role]) => `${name}:${role}:${token(name)}`).join(),
      WEBHOOK_SECRET: token("webhook"),
    },
    colos: { AMS: 1 },
  });
});
after(() => world.close());

test("the description can be had without a token, on every host, and is valid; every answer is as it says", async () => {
  const bare = await world.send({ path: "/__anteroom/openapi.json", host: "other.test" });
  assert.deepEqual([bare.status, bare.headers["content-type"]], [200, "application/json"]);
  assert.equal(JSON.parse(bare.body).openapi, "3.1.0");
  assert.equal((await world.send({ path: "/__anteroom/openapi.json", method: "POST" })).status, 405);

  const program = fileURLToPath(new URL("schema.py", import.meta.url));
  const tokens = {
    configure: configure.map(token),
    view: token("wall"),
    steer: token("anna"),
    webhook: token("webhook"),
  };
  const env = { ...environment(), PYTHONPATH: PYTHON_PACKAGES };
  const args = [program, world.address(), JSON.stringify(tokens), `${EXAMPLES}`];
  const { stdout } = await promisify(execFile)("python3", args, { env, maxBuffer: 1 << 26 });
  const { sent, never } = JSON.parse(stdout);
  assert.ok(sent > 1_000, `${sent} requests`);
  assert.deepEqual(never, NEVER, "each operation did what it is for");
});
