// An abort is what no panic unwinds: no memory is left, say. wasm-bindgen then starts the WebAssembly module anew with the
// next call. Nothing makes the shipped Worker abort, so its glue is told here that it has.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { ROOT } from "../../tools/toolchain.mjs";

const GLUE = join(ROOT, "build", "rust", "index.js");

const ENTRY = `
import { abort, __worker_init_state } from ${JSON.stringify(GLUE)};
export * from ${JSON.stringify(join(ROOT, "src", "edge", "objects.js"))};
export default {
  async fetch(request, env) {
    if (request.url.endsWith("/abort")) abort();
    const answer = await env.COUNTER.getByName("test").fetch(request);
    return Response.json({ status: answer.status, starts: __worker_init_state().instanceId });
  },
};
`;

let miniflare;

before(async () => {
  const told = {
    name: "abort",
    setup({ onLoad }) {
      onLoad({ filter: /rust\/index\.js$/ }, ({ path }) => ({
        contents: `${readFileSync(path, "utf8")}\nexport const abort = () => { __wbg_reinit_scheduled = true; };`,
      }));
    },
  };
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: ROOT },
    bundle: true,
    format: "esm",
    external: ["*.wasm", "cloudflare:*"],
    plugins: [told],
    write: false,
  });
  miniflare = new Miniflare({
    cf: false,
    compatibilityDate: "2026-07-01",
    modules: [
      { type: "ESModule", path: "index.js", contents: outputFiles[0].text },
      {
        type: "CompiledWasm",
        path: "index_bg.wasm",
        contents: readFileSync(join(ROOT, "build", "index_bg.wasm")),
      },
    ],
    durableObjects: { COUNTER: { className: "Counter", useSQLite: true } },
    bindings: {
      COOKIE_KEYS: randomBytes(32).toString("base64"),
      ROOM_TEST: { path: "/", total_active_users: 1, new_users_per_minute: 1 },
    },
  });
  await miniflare.ready;
});

after(() => miniflare.dispose());

test("objects answer on after an abort, each made anew", async () => {
  const ask = async (path) => (await miniflare.dispatchFetch(`http://room.test${path}`)).json();
  const unknown = { status: 404 };
  assert.deepEqual(await ask("/"), { ...unknown, starts: 1 });
  assert.deepEqual(await ask("/abort"), { ...unknown, starts: 2 });
  assert.deepEqual(await ask("/"), { ...unknown, starts: 2 });
  assert.deepEqual(await ask("/abort"), { ...unknown, starts: 3 });
});
