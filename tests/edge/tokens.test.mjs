// Tokens made at run time, in workerd: good in every colo, for rooms and for operators, until they end or are revoked.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import Cloudflare from "cloudflare";

import { ADMIN_TOKEN, eventually, room, sleep, startWorld } from "./world.mjs";

const V4 = "/__anteroom/client/v4";
const ROOMS = `${V4}/zones/main/waiting_rooms`;
const STATUS = "/__anteroom/status";
/** What is made or revoked is so everywhere after so many milliseconds. */
const IN_FORCE = 3_000;
const EVERYWHERE = [
  { colo: "AMS", worker: 0 },
  { colo: "AMS", worker: 1 },
  { colo: "SIN", worker: 0 },
];

let world;
before(async () => {
  const vars = { OPERATOR_TOKENS: "wall:view:the-token-of-the-wall" };
  world = await startWorld({ rooms: { deployed: room("/deployed") }, vars, colos: { AMS: 2, SIN: 1 } });
});
after(() => world.close());

/** What the API answers. */
async function ask(method, path, body, { token = ADMIN_TOKEN, ...where } = {}) {
  const answer = await world.send({
    method,
    path: `${V4}/${path}`,
    headers: { authorization: `Bearer ${token}` },
    body: body && JSON.stringify(body),
    ...where,
  });
  return { status: answer.status, ...JSON.parse(answer.body) };
}

async function made(body) {
  const { result, errors } = await ask("POST", "tokens", body);
  assert.ok(result?.token, JSON.stringify(errors));
  return result;
}

/** How a token is taken by both APIs, everywhere: a status each. */
const taken = async (headers) => {
  const asked = EVERYWHERE.flatMap((where) => [STATUS, ROOMS].map((path) => ({ ...where, path, headers })));
  return Promise.all(asked.map(async (one) => (await world.send(one)).status));
};

/** Asks everywhere again and again until the token is taken so; fails unless that is in time. */
async function inForce(token, wanted) {
  const began = Date.now();
  for (;;) {
    const statuses = await taken({ authorization: `Bearer ${token}` });
    if (statuses.every((status) => status === wanted)) return;
    assert.ok(Date.now() - began < IN_FORCE, `${statuses} instead of ${wanted} after ${IN_FORCE} ms`);
    await sleep(250);
  }
}

test("the first one that is ever made is shown once, and good everywhere within three seconds", async () => {
  // Every worker knows by now that there is none.
  assert.deepEqual(new Set(await taken({ authorization: `Bearer ${ADMIN_TOKEN}` })), new Set([200]));
  const token = await made({ name: "terraform", role: "configure" });
  assert.match(
    token.token,
    /^anteroom_[A-Za-z0-9_-]{43}$/,
    "as Terraform's provider insists on, 40 to 80 characters",
  );
  assert.deepEqual(
    [token.name, token.role, token.status, token.created_by, token.expires_on, token.last_four],
    ["terraform", "configure", "active", "admin", null, token.token.slice(-4)],
  );
  await inForce(token.token, 200);
  const { token: _, ...kept } = token;
  assert.deepEqual((await ask("GET", "tokens")).result, [kept]);
  const { result: log } = await ask("GET", "zones/main/waiting_rooms/log");
  assert.deepEqual([log[0].path, log[0].by, log[0].before, log[0].after], ["tokens", "admin", null, kept]);

  const client = new Cloudflare({ apiToken: token.token, baseURL: `${world.address()}${V4}`, maxRetries: 0 });
  const sent = { name: "by-client", host: "client.test", total_active_users: 9, new_users_per_minute: 9 };
  const room = await client.waitingRooms.create({ zone_id: "main", ...sent });
  const { result } = await ask("GET", "zones/main/waiting_rooms/log");
  assert.deepEqual([result[0].by, result[0].after.id], ["terraform", room.id]);
});

test("one that is revoked is refused everywhere within three seconds, and its sessions are over", async () => {
  const { id, token } = await made({ name: "anna", role: "steer" });
  await inForce(token, 200);
  const form = { "content-type": "application/json" };
  const body = JSON.stringify({ token });
  const signed = await world.send({ method: "POST", path: "/__anteroom/session", headers: form, body });
  assert.equal(signed.status, 303);
  const cookie = signed.setCookie[0].split(";")[0];
  const here = { path: STATUS, headers: { cookie } };
  assert.equal((await world.send(here)).status, 200);
  // Nobody asks for a long time: who is asked then may not go by what it knew.
  await sleep(600_000);
  assert.deepEqual((await ask("DELETE", `tokens/${id}`)).result, { id });
  await sleep(IN_FORCE);
  for (const where of EVERYWHERE) assert.equal((await world.send({ ...here, ...where })).status, 401);
  assert.deepEqual(new Set(await taken({ authorization: `Bearer ${token}` })), new Set([401]));
  assert.deepEqual((await ask("DELETE", `tokens/${id}`)).result, { id }, "again, as its answer was lost");
  assert.equal(
    (await ask("GET", "tokens")).result.some((one) => one.id === id),
    false,
  );
  assert.equal((await ask("DELETE", `tokens/${"0".repeat(32)}`)).status, 404);
  assert.ok((await made({ name: "anna", role: "view" })).token, "its name is free");
});

test("who listens by one that is revoked is told nothing after three seconds, and others go on", async () => {
  const path = "/__anteroom/live?room=deployed";
  const listener = async (name) => {
    const { id, token } = await made({ name, role: "view" });
    await inForce(token, 200);
    const live = { path, headers: { authorization: `Bearer ${token}` } };
    const { socket } = await world.upgrade(live);
    const heard = [];
    const hear = async () => {
      for (;;) heard.push(await socket.read());
    };
    hear();
    const has = (text) => heard.some((message) => message.includes(text));
    return { id, live, socket, has };
  };
  const steer = async (message) => {
    const steered = await world.send({
      method: "POST",
      path: "/__anteroom/steering?room=deployed",
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      body: JSON.stringify({ set: { message } }),
    });
    assert.equal(steered.status, 200, steered.body);
  };
  const [gone, stays] = [await listener("gone"), await listener("stays")];
  await steer("for both");
  await eventually("both are told", () => gone.has("for both") && stays.has("for both"));
  await ask("DELETE", `tokens/${gone.id}`);
  await sleep(IN_FORCE);
  await steer("not for those who are gone");
  await eventually("the other one is told", async () => {
    await steer(`still going on at ${Date.now()}`);
    return stays.has("still going on");
  });
  await eventually("it is closed", () => gone.socket.closed);
  assert.deepEqual(gone.socket.closed, [1008, "the session is over"]);
  assert.ok(!gone.has("not for those") && !gone.has("still going on"));
  assert.equal(stays.socket.closed, undefined);
  const again = await world.upgrade(gone.live);
  assert.deepEqual([again.status, again.socket], [401, undefined]);
  await ask("DELETE", `tokens/${stays.id}`);
});

test("one ends when it says so", async () => {
  const expires_on = new Date(Date.now() + 120_000).toISOString();
  const { token, ...more } = await made({ name: "for-a-while", role: "view", expires_on });
  assert.equal(more.expires_on, expires_on);
  await inForce(token, 200);
  await sleep(121_000);
  assert.deepEqual(new Set(await taken({ authorization: `Bearer ${token}` })), new Set([401]));
  const { result } = await ask("GET", "tokens");
  assert.equal(result.find(({ name }) => name === "for-a-while").status, "expired");
});

test("it may do what its role may, and only who may configure makes one", async () => {
  const { token } = await made({ name: "reader", role: "view" });
  await inForce(token, 200);
  const room = { name: "a", host: "a.test", total_active_users: 1, new_users_per_minute: 1 };
  for (const reader of [token, "the-token-of-the-wall"]) {
    const as = { token: reader };
    assert.equal((await ask("POST", "zones/main/waiting_rooms", room, as)).status, 403);
    assert.equal((await ask("GET", "tokens", undefined, as)).status, 403);
    assert.equal((await ask("POST", "tokens", { name: "more", role: "view" }, as)).status, 403);
  }
  for (const wrong of [`${token}x`, token.slice(0, -1), token.toUpperCase(), "anteroom_", ""])
    assert.equal(
      (await ask("GET", "zones/main/waiting_rooms", undefined, { token: wrong })).status,
      401,
      wrong,
    );
});

test("bad input names the field and the fix", async () => {
  const past = "2020-01-01T00:00:00Z";
  for (const [body, pointer, code] of [
    [{ role: "view" }, "/name", 1002],
    [{ name: "a b", role: "view" }, "/name", 1002],
    [{ name: "Wall", role: "view" }, "/name", 1003],
    [{ name: "admin", role: "view" }, "/name", 1003],
    [{ name: "Terraform", role: "view" }, "/name", 1003],
    [{ name: "new", role: "owner" }, "/role", 1002],
    [{ name: "new", role: "view", expires_on: past }, "/expires_on", 1002],
    [{ name: "new", role: "view", expires_on: "tomorrow" }, "/expires_on", 1002],
    [{ name: "new", role: "view", token: "mine" }, "/token", 1002],
  ]) {
    const { status, errors } = await ask("POST", "tokens", body);
    assert.deepEqual([status, errors[0].source.pointer, errors[0].code], [400, pointer, code]);
    assert.match(errors[0].message, /Fix: \w/);
  }
  const dry = await ask("POST", "tokens?dry_run=true", { name: "new", role: "view" });
  assert.deepEqual([dry.status, dry.result.token], [200, undefined]);
  assert.equal(
    (await ask("GET", "tokens")).result.some(({ name }) => name === "new"),
    false,
  );
});
