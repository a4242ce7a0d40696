// What is planned begins and ends by itself, in workerd: whoever is let in or kept out by it, in every colo.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ADMIN_TOKEN, room, sleep, startWorld } from "./world.mjs";

const V4 = "/__anteroom/client/v4";
const ROOMS = `${V4}/zones/main/waiting_rooms`;
/** How soon after its time a plan is in force everywhere: the alarm, and what steering takes. */
const IN_FORCE = 3_000;

let world;
let id;
before(async () => {
  const vars = { OPERATOR_TOKENS: "wall:view:the-token-of-the-wall,desk:steer:the-token-of-the-desk" };
  world = await startWorld({
    rooms: { shop: room("/shop", { total_active_users: 10_000, new_users_per_minute: 10_000 }) },
    vars,
    colos: { AMS: 1, SIN: 1 },
  });
  const { result } = await ask("GET", "");
  id = result.find(({ name }) => name === "shop").id;
});
after(() => world.close());

async function ask(method, path, body, token = ADMIN_TOKEN) {
  const answer = await world.send({
    method,
    path: `${ROOMS}${path}`,
    headers: { authorization: `Bearer ${token}` },
    body: body && JSON.stringify(body),
  });
  return { status: answer.status, ...JSON.parse(answer.body) };
}

/** What a browser sends along from a page of this site. */
const HERE = { origin: "https://shop.test", "sec-fetch-site": "same-origin" };
const DESK = "the-token-of-the-desk";
const ahead = (seconds) => new Date(Date.now() + seconds * 1_000).toISOString();

/** Whether somebody new gets in, by colo. */
const entered = () =>
  Promise.all(
    ["AMS", "SIN"].map(async (colo) => {
      const { fromOrigin } = await world.send({ path: "/shop", colo });
      return fromOrigin;
    }),
  );

async function until(wanted, since) {
  for (;;) {
    const now = await entered();
    if (now.every((one) => one === wanted)) return;
    assert.ok(Date.now() < since + IN_FORCE, `${now} instead of ${wanted}`);
    await sleep(200);
  }
}

test("a room is shut from a time to a time that an operator has planned", async () => {
  await until(true, Date.now());
  const [from, end] = [ahead(3), ahead(9)];
  const planned = await ask(
    "POST",
    `/${id}/plans`,
    { set: { queue_all: true }, from, until: end, reason: "backup" },
    DESK,
  );
  assert.equal(planned.status, 200, JSON.stringify(planned.errors));
  const { result } = await ask("GET", `/${id}/plans`, undefined, "the-token-of-the-wall");
  assert.deepEqual(result, [planned.result]);
  assert.deepEqual([result[0].from, result[0].until, result[0].created_by], [from, end, "desk"]);
  assert.deepEqual(await entered(), [true, true], "it has not begun");

  await until(false, Date.parse(from));
  assert.ok(Date.now() >= Date.parse(from));
  const { body } = await world.send({
    path: "/__anteroom/audit?room=shop",
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  const [entry] = JSON.parse(body).entries;
  const { by, kind, field, after, reason } = entry;
  assert.deepEqual(
    { by, kind, field, after, reason, until: entry.until },
    {
      ...{ by: "desk", kind: "set", field: "queue_all", after: true, reason: "backup" },
      until: Date.parse(end),
    },
  );
  assert.deepEqual((await ask("GET", `/${id}/plans`)).result, []);
  const { result: log } = await ask("GET", "/log");
  assert.deepEqual([log[0].method, log[0].after, log[1].method], ["BEGIN", "begun", "POST"]);

  await until(true, Date.parse(end));
  assert.ok(Date.now() >= Date.parse(end));
});

test("what comes back each week is planned for the next one once it has begun", async () => {
  const from = ahead(2);
  const body = { set: { message: "Backup" }, from, until: ahead(4), weekly: true, zone: "Europe/Berlin" };
  const { result: plan } = await ask("POST", `/${id}/plans`, body);
  const began = Date.now();
  for (;;) {
    const { result } = await ask("GET", `/${id}/plans`);
    if (result[0].from !== from) {
      const hours = (Date.parse(result[0].from) - Date.parse(from)) / 3_600_000;
      assert.ok([167, 168, 169].includes(hours), `${hours} hours later`);
      break;
    }
    assert.ok(Date.now() < began + 2_000 + IN_FORCE, "it has not begun");
    await sleep(200);
  }
  assert.equal((await ask("DELETE", `/${id}/plans/${plan.id}`, undefined, DESK)).status, 200);
  assert.deepEqual((await ask("GET", `/${id}/plans`)).result, []);
  assert.equal((await ask("DELETE", `/${id}/plans/${plan.id}`, undefined, DESK)).status, 404);
});

test("what the room would refuse now is refused beforehand, at its field", async () => {
  const from = ahead(60);
  const pointers = async (body, token) => {
    const { status, errors } = await ask("POST", `/${id}/plans`, body, token);
    return [status, ...errors.map(({ source }) => source?.pointer)];
  };
  assert.deepEqual(await pointers({ set: { total_active_users: 0 }, from }), [
    400,
    "/set/total_active_users",
  ]);
  assert.deepEqual(await pointers({ set: { nonsense: 1 }, from }), [400, "/set/nonsense"]);
  assert.deepEqual(await pointers({ set: { queue_all: true }, from: ahead(-1) }), [400, "/from"]);
  assert.deepEqual(await pointers({ set: { queue_all: true }, from, until: from }), [400, "/until"]);
  assert.deepEqual(await pointers({ set: { queue_all: true }, from, weekly: true }), [400, "/until"]);
  assert.deepEqual(await pointers({ set: { queue_all: true }, from, zone: "Mars/Olympus" }), [400, "/zone"]);
  assert.deepEqual(await pointers({ set: { queue_all: true }, from, more: 1 }), [400, "/more"]);
  assert.deepEqual(await pointers({ set: { queue_all: true }, from, reason: "a\nb" }), [400, "/reason"]);
  assert.deepEqual(await pointers({ set: { queue_all: true }, from }, "the-token-of-the-wall"), [
    403,
    undefined,
  ]);
  assert.deepEqual((await ask("GET", `/${id}/plans`)).result, []);
});

test("the dashboard's session may plan, and a page of somebody else may not with it", async () => {
  const signedIn = await world.send({
    ...{ method: "POST", path: "/__anteroom/session", body: `token=${DESK}` },
    headers: { "content-type": "application/x-www-form-urlencoded", ...HERE },
  });
  const cookie = signedIn.setCookie[0].split(";")[0];
  const plan = async (origin) => {
    const { status } = await world.send({
      ...{ method: "POST", path: `${ROOMS}/${id}/plans` },
      headers: { cookie, ...origin },
      body: JSON.stringify({ set: { queue_all: true }, from: ahead(3_600) }),
    });
    return status;
  };
  assert.equal(await plan(HERE), 200);
  assert.equal(await plan({ origin: "https://evil.test", "sec-fetch-site": "cross-site" }), 401);
  assert.equal(await plan({}), 401, "nothing says where it comes from");
  const { result } = await ask("GET", `/${id}/plans`);
  assert.equal(result.length, 1);
});
