// What an isolate learns of the rooms made at run time: of its data center's cache, and of the object that keeps them.
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
  const { readDocument, LOOK } = await import(`../../src/edge/client/document.js?${isolates}`);
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
  let known = -1;
  const read = async ({ look = "visitors", host = HOST } = {}) => {
    const text = await readDocument(env, host, LOOK[look], PATIENCE, known);
    if (text !== "") known = JSON.parse(text).version;
    return known;
  };
  return { read, asked, object };
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

test("the object is asked once, and who comes after reads the copy", async () => {
  const [first, second] = [await isolate(), await isolate()];
  assert.deepEqual([await first.read(), await second.read()], [1, 1]);
  assert.deepEqual([first.asked, second.asked], [["known=-1"], []]);
});

test("a copy that is older than a second and a half is asked about, and sent only where it has changed", async () => {
  const one = await isolate();
  await one.read();
  time = 1_400;
  one.object.version = 2;
  assert.equal(await one.read(), 1);
  time = 1_600;
  assert.equal(await one.read(), 2);
  time = 3_200;
  assert.equal(await one.read(), 2);
  assert.deepEqual(one.asked, ["known=-1", "known=1", "known=2"]);
  // It was found to be the newest: the copy is as good as new.
  assert.equal(await (await isolate()).read(), 2);
});

test("while nothing was ever made it is good for 30 seconds", async () => {
  const one = await isolate();
  one.object.version = 0;
  for (time of [0, 29_900, 30_100]) assert.equal(await one.read(), 0);
  assert.equal(one.asked.length, 2);
  // Not for operators: the first token may have been made since.
  for (time of [31_500, 31_700]) assert.equal(await one.read({ look: "operators" }), 0);
  assert.equal(one.asked.length, 3);
});

test("whoever has changed something asks at once", async () => {
  const one = await isolate();
  await one.read();
  one.object.version = 2;
  assert.equal(await one.read({ look: "anew" }), 2);
  assert.equal(await (await isolate()).read(), 2, "and so all of the data center know it");
});

for (const mood of ["gone", "silent"])
  test(`where the object is ${mood}, the copy counts, however old`, async () => {
    await (await isolate()).read();
    time = 20 * 86_400_000;
    const later = await isolate();
    later.object.mood = mood;
    assert.equal(await later.read(), 1);
    await assert.rejects(later.read(), "there is nothing newer to be known");
    cache.clear();
    const alone = await isolate();
    alone.object.mood = mood;
    await assert.rejects(alone.read());
  });

test("without a cache each isolate asks by itself", async () => {
  globalThis.caches.open = async () => ({
    match: async () => undefined,
    put: async () => {
      throw new Error("no cache here");
    },
  });
  const [first, second] = [await isolate(), await isolate()];
  assert.deepEqual([await first.read(), await second.read()], [1, 1]);
  assert.equal(await second.read({ host: "" }), 1);
  assert.deepEqual([first.asked, second.asked], [["known=-1"], ["known=-1", "known=1"]]);
});
