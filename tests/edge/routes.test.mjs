// What a room covers, and which requests to it start a visit.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { letIn, openTicket, room, sleep, startWorld } from "./world.mjs";

const HOST = "shop.example.test";
const OUTLET = "outlet.example.test";
const PAGE = { "sec-fetch-dest": "document", accept: "text/html" };
const SCRIPT = { "sec-fetch-dest": "script", accept: "*/*" };

describe("a room covers", { concurrency: true }, () => {
  let world;
  before(async () => {
    const outlet = {
      host: HOST,
      additional_routes: [{ host: OUTLET, path: "/clearance" }],
      cookie_attributes: { domain: "example.test" },
    };
    world = await startWorld({
      rooms: {
        routes: room("/sale", { ...outlet, cookie_suffix: "sale", total_active_users: 1 }),
        cased: room("/Case/Room", { path_case_insensitive: true, total_active_users: 1 }),
        pages: room("/pages", { count: "navigations", queue_all: true }),
        open: room("/open", { count: "navigations", total_active_users: 1 }),
        styles: room("/styles", { exempt_extensions: ["css"], queue_all: true }),
        full: room("/full", { queue_all: true }),
      },
      vars: { FRONT_CONTROLLERS: ["/shop.php"] },
    });
  });
  after(() => world.close());

  /** Sent with these cookies and headers. */
  const send = (path, headers, more = {}) => world.send({ path, headers, ...more });
  const isWaiting = (answer, what) => {
    assert.ok(answer.waiting, what);
    assert.match(answer.setCookie[0], /^__anteroom=/);
  };
  const isUntouched = (answer, what) => {
    assert.ok(answer.fromOrigin, what);
    assert.deepEqual(answer.setCookie, [], what);
  };

  test("several hosts and paths with one queue and one ticket", async () => {
    const first = await send("/sale", {}, { host: HOST });
    assert.ok(first.fromOrigin);
    assert.match(first.setCookie[0], /^__anteroom_sale=[\w-]+; Path=\/; Domain=example\.test; /);
    const [cookie] = first.setCookie[0].split(";");
    // The same user is in on the other route; somebody else waits on both, for the only place.
    const other = await send("/clearance/x", { cookie }, { host: OUTLET });
    assert.ok(other.fromOrigin);
    const stranger = await send("/clearance", {}, { host: OUTLET });
    assert.ok(stranger.waiting);
    assert.ok((await send("/sale", {}, { host: HOST })).waiting);
    isUntouched(await send("/sale", {}, { host: OUTLET }), "not a route");
    isUntouched(await send("/clearance", {}, { host: HOST }), "not a route");
    assert.ok(openTicket("routes", cookie.split("=")[1]).acceptedAt);
  });

  test("a path in capitals and in small letters, if the owner says so", async () => {
    const [visitor] = await letIn(world, 1, { path: "/CASE/room" });
    for (const path of ["/case/ROOM/x", "/Case/Room", "/%63ase/room"]) {
      assert.ok((await visitor.get(path)).fromOrigin, path);
      assert.ok((await world.send({ path })).waiting, path);
    }
    isUntouched(await world.send({ path: "/PAGES" }), "another room has its case");
  });

  test("only requests for pages, where only these are counted", async () => {
    isWaiting(await send("/pages", PAGE), "a page");
    isWaiting(await send("/pages", { accept: "text/html" }), "an older browser's page");
    isWaiting(await send("/pages", PAGE, { method: "POST" }), "a form");
    isUntouched(await send("/pages/app.js", SCRIPT), "a script");
    isUntouched(await send("/pages", { accept: "*/*" }), "a program");
    isUntouched(await send("/pages", { accept: "text/html" }, { method: "POST" }), "a callback");
    // The waiting page's script is no program like others.
    const status = await world
      .visitor({ path: "/pages" })
      .ask("/pages", { headers: { "sec-fetch-dest": "empty" } });
    assert.equal(status.json.admitted, false);
  });

  test("all requests of users who are in", async () => {
    for (let count = 0; count < 3; count++) isUntouched(await send("/open/app.js", SCRIPT), "a script");
    const visitor = world.visitor({ path: "/open" });
    assert.ok((await visitor.get("/open", { headers: PAGE })).fromOrigin, "scripts have taken no place");
    const before = openTicket("open", visitor.ticket()).lastCheckIn;
    // A slot of a session of a minute is 250 ms.
    for (let tries = 0; tries < 20; tries++) {
      assert.ok((await visitor.get("/open/app.js", { headers: SCRIPT })).fromOrigin);
      if (openTicket("open", visitor.ticket()).lastCheckIn > before) break;
      await sleep(100);
    }
    assert.ok(openTicket("open", visitor.ticket()).lastCheckIn > before, "the session goes on with a script");
    isWaiting(await send("/open", PAGE), "the only place is taken");
  });

  test("no path with an exempt extension, however it is written", async () => {
    for (const path of ["/styles/a.css", "/styles/a.CSS?x=1"]) isUntouched(await send(path, {}), path);
    for (const path of ["/styles/css", "/styles/a.js", "/styles/a;b.css"])
      isWaiting(await send(path, {}), path);
  });

  test("what a browser loads in advance by asking it to come again", async () => {
    for (const headers of [{ ...PAGE, "sec-purpose": "prefetch;prerender" }, { purpose: "prefetch" }]) {
      for (const path of ["/full", "/pages", "/open"]) {
        const answer = await send(path, headers);
        assert.equal(answer.status, 503, path);
        assert.equal(answer.headers["cache-control"], "no-store");
        assert.deepEqual([answer.setCookie, answer.body], [[], ""]);
      }
    }
  });

  test("no part of another site's page, which gets no slot and nothing of the origin", async () => {
    const headers = { "sec-fetch-site": "cross-site", "sec-fetch-dest": "image" };
    const answer = await send("/full", headers);
    assert.deepEqual([answer.status, answer.setCookie, answer.body], [503, [], ""]);
    isUntouched(await send("/pages", headers), "its room counts pages");
    isWaiting(await send("/full", { ...headers, "sec-fetch-site": "same-origin" }), "a part of our own page");
  });

  test("no preflight, but whatever else asks with OPTIONS", async () => {
    const headers = { origin: "https://x.test", "access-control-request-method": "PUT" };
    const ask = (more, body) => send("/full", { ...headers, ...more }, { method: "OPTIONS", body });
    isUntouched(await ask({}), "a preflight");
    isUntouched(await ask({ "content-length": "0" }), "a preflight of an empty body");
    isWaiting(await ask({ "access-control-request-method": [] }), "another question");
    isWaiting(await ask({ cookie: "basket=1" }), "cookies");
    isWaiting(await ask({ authorization: "Basic eDp5" }), "a password");
    isWaiting(await ask({ "content-length": "5" }, "order"), "a body");
    isWaiting(await ask({ "transfer-encoding": "chunked" }, "order"), "a body in pieces");
  });

  test("its path in the spellings that some origins take for it", async () => {
    for (const path of ["/%u0066ull", "/full%0a", "/full.", "/full%20/x", "/full::$DATA", "/shop.php/full"])
      isWaiting(await send(path, PAGE), path);
    const answer = await send("/full.json", PAGE);
    isWaiting(answer, "a format");
    assert.match(answer.setCookie[0], /; Path=\/full\.json;/, "there the ticket comes back");
  });

  test("what visitors say of another path by no way: origins do not hear of it", async () => {
    for (const name of ["x-original-url", "X-Rewrite-URL"]) {
      const path = `/elsewhere/${name}`;
      isUntouched(await send(path, { [name]: "/full", "x-other": "stays" }), name);
      const { headers } = world.origin.requests.findLast(({ url }) => url === path);
      assert.equal(headers[name.toLowerCase()], undefined);
      assert.equal(headers["x-other"], "stays");
    }
  });

  test("HEAD, with the headers of the waiting page and without the page", async () => {
    const answer = await send("/full", PAGE, { method: "HEAD" });
    isWaiting(answer, "HEAD");
    assert.equal(answer.body, "");
    assert.match(answer.headers["content-type"], /^text\/html/);
  });
});
