// "The plan is empty", through the Worker in workerd: what Terraform's provider reads after it has written is what it sent.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { PLANS } from "../page/plans.mjs";
import { ADMIN_TOKEN, room, startWorld } from "./world.mjs";

let world;
before(async () => {
  world = await startWorld({ rooms: { deployed: room("/deployed") }, colos: { AMS: 1 } });
});
after(() => world.close());

async function did(method, path, body) {
  const answer = await world.send({
    method,
    path: `/__anteroom/client/v4/zones/main/waiting_rooms${path}`,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  assert.equal(answer.status, 200, answer.body);
  return JSON.parse(answer.body).result;
}

for (const [what, prove] of PLANS) test(`a plan that was applied is empty, ${what}`, () => prove(did));
