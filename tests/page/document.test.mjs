// The steps by which an isolate learns of rooms made at run time: of its data center's cache, and of the object that keeps them.
// Which one is next is decided in the core.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const HOST = "shop.example.com";
const PATIENCE = 200;
let isolates = 0;
let cache;
let time;
const now = Date.now;

/** An isolate of its own, of a data center whose cache all of them share. */
async function isolate() {
  isolates += 1;
  const { takeStep } = await import(`../../src/edge/client/document.js?${isolates}`);
  const asked = [];
  const object = { version: 1, mood: "well" };
  const env = {
    CONFIG: {
      getByName: () => ({
        fetch: async (url) => {
          asked.push(url.split("?")[1]);
          if (object.mood === "gone") throw new Error("gone");
          if (object.mood === "silent") return new Promise(() => {});
          if (url.endsWith(`?known=${object.version}`)) return new Response(null, { status: 204 });
          return Response.json({ version: object.version });
        },
      }),
    },
  };
  const take = (step, host = HOST) => takeStep(step, env, host, PATIENCE);
  return { take, asked, object };
}

beforeEach(() => {
  cache = new Map();
  time = 0;
  Date.now = () => time;
  globalThis.caches = {
    open: async () => ({
      match: async (key) => cache.get(key)?.clone(),
      put: async (key, response) => void cache.set(key, response),
    }),
  };
});
test.after(() => {
  Date.now = now;
});

test("what one isolate has asked for and kept the others read", async () => {
  const [first, second] = [await isolate(), await isolate()];
  assert.equal(await first.take("read"), undefined);
  assert.equal(await first.take("ask"), 1);
  time = 70;
  await first.take("keep");
  time = 99;
  assert.deepEqual(await second.take("read"), [1, 70]);
  for (const { take } of [first, second]) assert.deepEqual(JSON.parse(await take("text")), { version: 1 });
  assert.deepEqual([first.asked, second.asked], [["known=-1"], []]);
});

test("only what is new is sent, and an older copy takes nothing away", async () => {
  const one = await isolate();
  await one.take("ask");
  await one.take("keep");
  one.object.version = 2;
  assert.equal(await one.take("ask"), 2);
  assert.equal(await one.take("ask"), 2);
  assert.deepEqual(one.asked, ["known=-1", "known=1", "known=2"]);
  assert.deepEqual(await one.take("read"), [1, 0]);
  assert.deepEqual(JSON.parse(await one.take("text")), { version: 2 });
});

test("who asks says so to the others", async () => {
  const [first, second] = [await isolate(), await isolate()];
  assert.equal(await second.take("readClaim"), undefined);
  time = 42;
  await first.take("claim");
  assert.equal(await second.take("readClaim"), 42);
});

for (const mood of ["gone", "silent"])
  test(`where the object is ${mood}, asking fails, and what is there stays`, async () => {
    const one = await isolate();
    await one.take("ask");
    one.object.mood = mood;
    await assert.rejects(one.take("ask"));
    assert.deepEqual(JSON.parse(await one.take("text")), { version: 1 });
  });

test("without a cache nothing is found, and nothing fails", async () => {
  globalThis.caches.open = async () => ({
    match: async () => undefined,
    put: async () => {
      throw new Error("no cache here");
    },
  });
  const one = await isolate();
  for (const host of [HOST, ""])
    for (const step of ["read", "readClaim", "claim", "keep"])
      assert.equal(await one.take(step, host), undefined, step);
  assert.equal(await one.take("ask"), 1);
});
