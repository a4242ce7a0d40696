// A site that is a Worker, behind a service binding: here one of Hono.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { build } from "esbuild";

import { letIn, room, startWorld } from "./world.mjs";

const SITE = `
import { Hono } from "hono";
import { upgradeWebSocket } from "hono/cloudflare-workers";
import { stream } from "hono/streaming";

const site = new Hono();
let isReleased = false;
site.use(async (context, next) => {
  await next();
  if (!context.res.webSocket) context.header("x-origin", NAME);
});
site.get("/:room/stream", (context) =>
  stream(context, async (body) => {
    await body.write("first ");
    while (!isReleased) await scheduler.wait(5);
    await body.write("last");
  }),
);
site.get("/:room/release", (context) => {
  isReleased = true;
  return context.text("released");
});
site.get(
  "/:room/socket",
  upgradeWebSocket(() => ({ onMessage: ({ data }, socket) => socket.send("echo " + data) })),
);
site.post("/:room/echo", async (context) => context.body(await context.req.arrayBuffer()));
site.get("/:room/moved", (context) => context.redirect("/elsewhere"));
site.get("*", (context) => {
  const { url, cf } = context.req.raw;
  return context.json({ url, colo: cf?.colo, admitted: context.req.header("anteroom-admitted") !== undefined });
});
export default site;
`;

/** The site as one module. */
async function site(name) {
  const { outputFiles } = await build({
    stdin: { contents: SITE, resolveDir: import.meta.dirname },
    define: { NAME: JSON.stringify(name) },
    bundle: true,
    format: "esm",
    write: false,
  });
  return outputFiles[0].text;
}

describe("a site that is a Worker", { concurrency: true }, () => {
  let world;
  before(async () => {
    const [all, own] = await Promise.all([site("all"), site("own")]);
    world = await startWorld({
      rooms: {
        shop: room("/shop"),
        full: room("/full", { total_active_users: 1 }),
        off: room("/off", { suspended: true, origin_service: "OWN_SITE" }),
        own: room("/own", { origin_service: "OWN_SITE" }),
      },
      sites: { ORIGIN_SERVICE: all, OWN_SITE: own },
      colos: { SIN: 1 },
      vars: { ORIGIN: undefined, ADMISSION_KEY: "a key of more than thirty-two characters" },
    });
  });
  after(() => world.close());
  const visitor = (path) => world.visitor({ path, colo: "SIN" });

  test("gets admitted requests as they came, with what the platform says of the visitor", async () => {
    const somebody = visitor("/shop/page?a=1");
    for (const _ of ["with a new ticket", "with a ticket that is as it was"]) {
      const answer = await somebody.get();
      const said = { url: "http://shop.test/shop/page?a=1", colo: "SIN", admitted: true };
      assert.deepEqual(JSON.parse(answer.body), said);
      assert.equal(answer.headers["x-origin"], "all");
    }
    const body = "x".repeat(100_000);
    const echo = await somebody.get("/shop/echo", { method: "POST", body });
    assert.equal(echo.body, body);
    const moved = await somebody.get("/shop/moved");
    assert.deepEqual([moved.status, moved.headers.location], [302, "/elsewhere"]);
    const uncovered = await visitor("/elsewhere").get();
    assert.deepEqual([uncovered.headers["x-origin"], uncovered.setCookie], ["all", []]);
  });

  test("who waits does not get there", async () => {
    await letIn(world, 1, { path: "/full", colo: "SIN" });
    const answer = await visitor("/full").get();
    assert.ok(answer.waiting && !answer.fromOrigin);
  });

  test("streams its answer", async () => {
    const somebody = visitor("/shop");
    const { stream } = await somebody.open("/shop/stream");
    const parts = stream[Symbol.asyncIterator]();
    assert.equal(String((await parts.next()).value), "first ");
    await somebody.get("/shop/release");
    assert.equal(String((await parts.next()).value), "last");
  });

  test("talks over WebSockets, also with a visitor who has entered just now", async () => {
    const { status, setCookie, socket } = await visitor("/shop").upgrade("/shop/socket");
    assert.equal(status, 101);
    assert.match(setCookie[0], /^__anteroom=/);
    socket.send("hello");
    assert.equal(await socket.read(), "echo hello");
    socket.close();
  });

  test("each room may have one of its own, also while it is suspended", async () => {
    for (const path of ["/own", "/own/more", "/off"])
      assert.equal((await visitor(path).get()).headers["x-origin"], "own", path);
  });
});

describe("an origin of a room's own", () => {
  test("is where its visitors go, and nobody else", async () => {
    const world = await startWorld({
      rooms: { here: room("/here"), there: room("/there", { origin_service: "SITE" }) },
      sites: { SITE: await site("there") },
      colos: { AMS: 1 },
    });
    after(() => world.close());
    assert.equal((await world.visitor({ path: "/here" }).get()).headers["x-origin"], "yes");
    assert.equal((await world.visitor({ path: "/there" }).get()).headers["x-origin"], "there");
    const { url } = world.origin;
    await world.deploy({
      rooms: { here: room("/here", { origin: "http://127.0.0.1:9" }), there: room("/there") },
      vars: { ORIGIN: "http://127.0.0.1:9", DEFAULTS: { origin: url } },
    });
    assert.equal((await world.visitor({ path: "/there" }).get()).body, "GET /there");
    assert.equal((await world.visitor({ path: "/here" }).get()).status, 502);
  });
});
