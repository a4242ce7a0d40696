// A panic inside one request: that request fails, and nothing else does. The shipped Worker has no way to make it
// panic, so the platform is made to break its word instead: `waitUntil` throws, for which the platform's crate panics
// in the middle of our code. All else is the real thing.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Miniflare } from "miniflare";

const BUILD = process.env.ANTEROOM_BUILD ?? new URL("../../build", import.meta.url).pathname;

const ENTRY = `
import Anteroom from "./index.js";
export { Counter, Anywhere, DataCenter, Global, Health } from "./index.js";
export default {
  fetch(request, env, context) {
    const broken = { waitUntil() { throw new Error("the platform breaks its word") }, passThroughOnException() {} };
    return Anteroom.fetch(request, env, request.headers.has("break") ? broken : context);
  },
};
`;

let miniflare;
let origin;
let url;
/** Ends the answer that is under way while another request panics. */
let finish;

before(async () => {
  origin = createServer((request, response) => {
    const answer = () => response.end(`the origin's ${request.url}`);
    if (request.url === "/slow") finish = answer;
    else answer();
  });
  await new Promise((listening) => origin.listen(0, "127.0.0.1", listening));
  const objects = {
    COUNTER: "Counter",
    ANYWHERE: "Anywhere",
    DATA_CENTER: "DataCenter",
    GLOBAL: "Global",
    HEALTH: "Health",
    CONFIG: "Config",
  };
  miniflare = new Miniflare({
    cf: false,
    compatibilityDate: "2026-07-01",
    handleRuntimeStdio: () => {},
    modules: [
      { type: "ESModule", path: "entry.js", contents: ENTRY },
      { type: "ESModule", path: "index.js", contents: readFileSync(join(BUILD, "index.js"), "utf8") },
      { type: "CompiledWasm", path: "index_bg.wasm", contents: readFileSync(join(BUILD, "index_bg.wasm")) },
    ],
    durableObjects: Object.fromEntries(
      Object.entries(objects).map(([binding, className]) => [binding, { className, useSQLite: true }]),
    ),
    bindings: {
      ORIGIN: `http://127.0.0.1:${origin.address().port}`,
      COOKIE_KEYS: randomBytes(32).toString("base64"),
      OBJECT_DEADLINE_MS: "2000",
      ROOM_TEST: { path: "/", total_active_users: 100, new_users_per_minute: 100, session_duration: 1 },
      // The first visitor of a room sees to its report, by waitUntil.
      ROOM_BROKEN: {
        path: "/broken",
        total_active_users: 100,
        new_users_per_minute: 100,
        session_duration: 1,
      },
    },
  });
  url = await miniflare.ready;
});

after(async () => {
  await miniflare.dispose();
  origin.close();
});

test("a panic in one request leaves the others and the next ones unharmed", async () => {
  const first = await fetch(new URL("/", url));
  assert.equal(await first.text(), "the origin's /");
  const slow = fetch(new URL("/slow", url));
  while (!finish) await once(origin, "request");
  const panicked = await fetch(new URL("/broken", url), { headers: { break: "yes" } });
  assert.equal(panicked.status, 500);
  assert.doesNotMatch(await panicked.text(), /the origin's/, "a panic opens no way in");
  finish();
  const answer = await slow;
  assert.equal(answer.status, 200);
  assert.equal(await answer.text(), "the origin's /slow");
  const again = await fetch(new URL("/broken", url));
  assert.equal(await again.text(), "the origin's /broken", "the same room goes on");
  const next = await fetch(new URL("/next", url));
  assert.equal(await next.text(), "the origin's /next");
});
