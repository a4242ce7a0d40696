// What an isolate learns of the rooms made at run time: of its data center's cache, and of the object that keeps them.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const HOST = "shop.example.com";
const PATIENCE = 200;
let isolates = 0;
let cache;

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
  const take = (step) => takeStep(step, env, HOST, PATIENCE);
  const version = async () => JSON.parse(await take("text")).version;
  return { take, version, asked, object };
}

beforeEach(() => {
  cache = new Map();
  globalThis.caches = {
    open: async () => ({
      match: async (key) => cache.get(key)?.clone(),
      put: async (key, response) => void cache.set(key, response),
    }),
  };
});

test("what one isolate has asked for, the others read in the cache", async () => {
  const [first, second] = [await isolate(), await isolate()];
  assert.equal(await second.take("read"), undefined);
  assert.equal(await first.take("ask"), 1);
  await first.take("keep");
  const [version, keptAt] = await second.take("read");
  assert.equal(version, 1);
  assert.ok(Math.abs(Date.now() - keptAt) < 60_000);
  assert.equal(await second.version(), 1);
  assert.deepEqual([first.asked, second.asked], [["known=-1"], []]);
});

test("what an isolate has is not sent again", async () => {
  const one = await isolate();
  assert.equal(await one.take("ask"), 1);
  assert.equal(await one.take("ask"), 1);
  one.object.version = 2;
  assert.equal(await one.take("ask"), 2);
  assert.deepEqual(one.asked, ["known=-1", "known=1", "known=1"]);
  assert.equal(await one.version(), 2);
});

test("an isolate says that it asks, to those of its data center", async () => {
  const [first, second] = [await isolate(), await isolate()];
  assert.equal(await second.take("readClaim"), undefined);
  await first.take("claim");
  assert.ok(Math.abs(Date.now() - (await second.take("readClaim"))) < 60_000);
});

for (const mood of ["gone", "silent"])
  test(`where the object is ${mood}, what is known stays`, async () => {
    const one = await isolate();
    await one.take("ask");
    one.object.mood = mood;
    await assert.rejects(one.take("ask"));
    assert.equal(await one.version(), 1);
  });

test("without a cache an isolate goes by what the object says", async () => {
  globalThis.caches.open = async () => ({
    match: async () => {
      throw new Error("no cache here");
    },
    put: async () => {
      throw new Error("no cache here");
    },
  });
  const one = await isolate();
  assert.equal(await one.take("read"), undefined);
  await one.take("claim");
  assert.equal(await one.take("ask"), 1);
  await one.take("keep");
  assert.equal(await one.version(), 1);
});
