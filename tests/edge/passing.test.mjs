// Who is let in, or never stopped: the way to the origin and back.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";

import { ADMIN_TOKEN, MINUTE, openTicket, room, sealTicket, sleep, startWorld } from "./world.mjs";

const OUR_COOKIE = /^__anteroom=/;
const ours = (answer) => answer.setCookie.filter((line) => OUR_COOKIE.test(line));
const theirs = (answer) => answer.setCookie.filter((line) => !OUR_COOKIE.test(line));

/**
 * Calls that a visitor waits for. Reports leave after the response, and Global is asked by other objects and for the
 * operator's status.
 */
const onTheWay = (calls) =>
  calls.filter(({ kind, route }) => kind !== "Global" && /^.(take|state)$/.test(route));

/** The next slot of a session of so many minutes, unless there is so much time left in this one. */
async function roomInSlot(minutes, ms) {
  const slot = minutes * 250;
  const left = slot - (Date.now() % slot);
  if (left < ms) await sleep(left + 20);
}

describe("passing", { concurrency: true }, () => {
  let world;
  before(async () => {
    const names = ["calls", "status", "cookies", "change", "stream", "socket", "post", "redirect", "query"];
    const more = ["bare", "packed", "both"];
    world = await startWorld({
      rooms: {
        ...Object.fromEntries([...names, ...more].map((name) => [name, room(`/${name}`)])),
        calls: room("/calls", { session_duration: 30 }),
        change: room("/change", { session_duration: 30 }),
        suspended: room("/suspended", { suspended: true, total_active_users: 1 }),
        closed: room("/closed", { queue_all: true }),
        only: room("/only", { total_active_users: 1 }),
      },
    });
  });
  after(() => world.close());

  test("an admitted visitor passes on the cookie alone, without a call", async () => {
    const visitor = world.visitor({ path: "/calls" });
    const first = await visitor.get();
    assert.equal(first.body, "GET /calls");
    const calls = onTheWay(await world.calls("calls"));
    assert.ok(calls.length > 0, "a new visitor takes a number");
    for (const worker of [0, 1]) {
      for (const colo of ["AMS", "SIN"]) {
        const answer = await visitor.get("/calls/more", { colo, worker });
        assert.equal(answer.body, "GET /calls/more");
      }
    }
    assert.deepEqual(onTheWay(await world.calls("calls")), calls);
  });

  test("the status text is the origin's", async () => {
    const visitor = world.visitor({ path: "/status/odd" });
    for (const time of ["new", "again"]) {
      const answer = await visitor.get();
      assert.equal(`${answer.status} ${answer.statusText}`, "299 Odd", time);
      await sleep(300);
    }
    const broken = await visitor.get("/status/broken");
    assert.equal(`${broken.status} ${broken.statusText}`, "503 Out of Order");
    assert.ok(broken.fromOrigin);
  });

  test("the origin's cookies stay as they are, one of ours comes after them", async () => {
    const answer = await world.visitor({ path: "/cookies/cookies" }).get();
    assert.deepEqual(theirs(answer), ["basket=1; Path=/", "seen=yes; Path=/; HttpOnly"]);
    assert.equal(ours(answer).length, 1);
    assert.match(
      ours(answer)[0],
      /^__anteroom=[\w-]{87}; Path=\/cookies; Max-Age=60; HttpOnly; SameSite=Lax$/,
    );
    const { "x-origin": origin, "content-type": type, ...headers } = answer.headers;
    assert.equal(origin, "yes");
    assert.equal(type, undefined);
    assert.deepEqual(
      Object.keys(headers).filter(
        (name) => !["date", "transfer-encoding", "content-length", "connection"].includes(name),
      ),
      [],
      "no other header is added",
    );
  });

  test("our cookie comes when the ticket has to change, not otherwise", async () => {
    const visitor = world.visitor({ path: "/change" });
    await roomInSlot(30, 3_000);
    assert.equal(ours(await visitor.get()).length, 1, "a new visitor gets a ticket");
    const before = openTicket("change", visitor.ticket());
    assert.equal(ours(await visitor.get()).length, 0, "in the same slot nothing changes");
    assert.equal(ours(await visitor.get("/change", { worker: 1 })).length, 0);
    const old = before.lastCheckIn - 7_500;
    // Early in a minute, that was in the minute before, and nobody has a bucket after the last check-in.
    const bucket = Math.floor(old / MINUTE);
    visitor.setTicket(sealTicket("change", { ...before, bucket, acceptedAt: old, lastCheckIn: old }), {
      path: "/change",
    });
    assert.equal(ours(await visitor.get()).length, 1, "in a later slot the ticket moves on");
    const moved = openTicket("change", visitor.ticket());
    assert.equal(moved.id, before.id);
    assert.equal(moved.acceptedAt, old, "admitted when it was");
    assert.ok(moved.lastCheckIn >= before.lastCheckIn);
  });

  test("bodies are streamed", async () => {
    const visitor = world.visitor({ path: "/stream/stream" });
    for (const time of ["with our cookie", "without"]) {
      const { stream, status } = await visitor.open();
      assert.equal(status, 200);
      const chunks = stream[Symbol.asyncIterator]();
      const first = await chunks.next();
      // The origin has not sent the rest yet: it waits for us.
      assert.equal(String(first.value), "first\n", time);
      world.origin.release();
      let rest = "";
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) rest += next.value;
      assert.equal(rest, "last\n");
    }
  });

  test("WebSockets pass, with our cookie and without", async () => {
    const visitor = world.visitor({ path: "/socket/live" });
    for (const time of ["new", "admitted", "in a later slot"]) {
      const answer = await visitor.upgrade();
      assert.equal(answer.status, 101, time);
      assert.ok(answer.fromOrigin);
      assert.deepEqual(theirs(answer), ["socket=1; Path=/"]);
      answer.socket.send("hello");
      assert.equal(await answer.socket.read(), "echo hello");
      answer.socket.send("again");
      assert.equal(await answer.socket.read(), "echo again");
      answer.socket.close();
      if (time === "new") assert.ok(visitor.ticket(), "the upgrade's answer carries the ticket");
      if (time === "admitted") await sleep(300);
    }
  });

  test("a WebSocket counts as the request that opened it", async () => {
    const path = "/only/live";
    const [visitor, other] = [world.visitor({ path }), world.visitor({ path })];
    const { socket } = await visitor.upgrade();
    await sleep(40_000);
    assert.ok((await visitor.get()).fromOrigin, "its page asks for something");
    await sleep(40_000);
    assert.ok((await other.get()).waiting, "so its user is counted on");
    await sleep(30_000);
    assert.ok((await other.get()).fromOrigin, "it asks for nothing more, so the slot is free");
    socket.send("hello");
    assert.equal(await socket.read(), "echo hello", "nobody is cut off");
    socket.close();
  });

  test("requests with a body arrive whole", async () => {
    const visitor = world.visitor({ path: "/post/echo" });
    const body = randomBytes(300_000);
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const answer = await visitor.get("/post/echo", {
        method,
        body,
        headers: { "content-type": "application/x-odd", "content-length": String(body.length) },
      });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["x-method"], method);
      assert.equal(answer.headers["x-type"], "application/x-odd");
      assert.ok(answer.bytes.equals(body), method);
    }
  });

  test("redirects are the visitor's to follow", async () => {
    const answer = await world.visitor({ path: "/redirect/redirect" }).get();
    assert.equal(`${answer.status} ${answer.statusText}`, "302 Found");
    assert.equal(answer.headers.location, "/elsewhere");
    assert.deepEqual(world.origin.below("/elsewhere"), []);
  });

  test("path and query arrive as they were written", async () => {
    const visitor = world.visitor({ path: "/query" });
    const written = ["/query?a=1&b=%20x&&c", "/query/caf%C3%A9/%2Fx?", "/query/a;v=1?q=https://x.test/?y"];
    for (const path of written) await visitor.get(path);
    assert.deepEqual(
      world.origin.below("/query").map(({ url }) => url),
      written,
    );
  });

  test("answers without a body", async () => {
    const bare = [
      ["/bare/unchanged", "GET", "304 Not Modified"],
      ["/bare/empty", "GET", "204 No Content"],
      ["/bare/page", "HEAD", "200 OK"],
    ];
    for (const [path, method, expected] of bare) {
      const visitor = world.visitor({ path });
      for (const time of ["new", "admitted"]) {
        const answer = await visitor.get(path, { method });
        assert.equal(`${answer.status} ${answer.statusText}`, expected, time);
        assert.equal(answer.body, "");
        assert.ok(answer.fromOrigin);
      }
      assert.ok(visitor.ticket());
    }
  });

  test("packed answers stay readable", async () => {
    const visitor = world.visitor({ path: "/packed/packed" });
    for (const time of ["new", "admitted"]) {
      const answer = await visitor.get("/packed/packed", { headers: { "accept-encoding": "gzip" } });
      assert.equal(answer.headers["content-encoding"], "gzip", time);
      assert.equal(String(gunzipSync(answer.bytes)), "GET /packed/packed");
    }
  });

  test("the more telling one of two tickets counts", async () => {
    const visitor = world.visitor({ path: "/both" });
    await visitor.get();
    const cookie = visitor.cookies();
    const waiting = `__anteroom=${sealTicket("both", {})}`;
    const calls = onTheWay(await world.calls("both"));
    for (const both of [`${cookie}; ${waiting}`, `${waiting}; ${cookie}`, `__anteroom=x; ${cookie}`]) {
      const answer = await world.send({ path: "/both", headers: { cookie: both } });
      assert.ok(answer.fromOrigin);
    }
    assert.deepEqual(onTheWay(await world.calls("both")), calls);
  });

  test("a suspended room lets everybody through and knows nobody", async () => {
    for (let i = 0; i < 3; i += 1) {
      const answer = await world.visitor({ path: "/suspended" }).get();
      assert.equal(answer.body, "GET /suspended");
      assert.deepEqual(answer.setCookie, []);
    }
    // What workers ask, behind the visitors' backs, is whether an operator has switched it on. Global calls only because
    // the operator of another test here looks at all rooms.
    const byGlobal = ({ kind, route }) => kind === "DataCenter" && route === "/hear";
    const all = await world.calls("suspended");
    const calls = all.filter((call) => call.kind !== "Global" && !byGlobal(call));
    assert.deepEqual([...new Set(calls.map(({ kind, route }) => `${kind} ${route}`))], ["DataCenter /state"]);
    assert.equal((await world.status("suspended")).estimated_total_active_users, 0);
  });

  test("what no room covers is the origin's alone", async () => {
    for (const path of ["/", "/statuses", "/other/odd", "/Cookies"]) {
      const answer = await world.visitor({ path }).get();
      assert.ok(answer.fromOrigin, path);
      assert.deepEqual(answer.setCookie, []);
    }
  });

  test("queue_all: active users go on, nobody new enters", async () => {
    const inside = world.visitor({ path: "/closed" });
    inside.setTicket(sealTicket("closed", { acceptedAt: Date.now() - 20_000 }), { path: "/closed" });
    assert.equal((await inside.get()).body, "GET /closed");
    const outside = world.visitor({ path: "/closed/x" });
    for (let i = 0; i < 2; i += 1) {
      const answer = await outside.get();
      assert.ok(answer.waiting && !answer.fromOrigin);
    }
    assert.equal((await outside.ask()).json.queueAll, true);
    assert.deepEqual(world.origin.below("/closed/x"), []);
  });

  test("our own paths are never the origin's", async () => {
    const visitor = world.visitor();
    for (const path of ["/__anteroom/x", "/__anteroom//", "/__anteroom/status/x"]) {
      const answer = await visitor.get(path);
      assert.equal(answer.status, 404, path);
      assert.equal(answer.fromOrigin, false);
    }
    assert.deepEqual(world.origin.below("/__anteroom"), []);
  });

  test("the status is closed without the token", async () => {
    const status = (authorization) =>
      world.send({ path: "/__anteroom/status", headers: { ...(authorization && { authorization }) } });
    for (const wrong of [
      undefined,
      "",
      "Bearer",
      "Bearer ",
      "Bearer wrong",
      `Bearer ${ADMIN_TOKEN}x`,
      ADMIN_TOKEN,
    ]) {
      const answer = await status(wrong);
      assert.equal(answer.status, 401, wrong);
      assert.match(answer.headers["www-authenticate"], /^Bearer/);
      assert.doesNotMatch(answer.body, /rooms|cookies/);
    }
    const open = await status(`Bearer ${ADMIN_TOKEN}`);
    assert.equal(open.status, 200);
    assert.equal(open.headers["cache-control"], "private, no-store");
    const { rooms, problems } = JSON.parse(open.body);
    assert.deepEqual(problems, []);
    assert.ok(rooms.some(({ name }) => name === "cookies"));
  });
});

describe("an origin that does not answer, and no token", () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: { shop: room("/", { host: "shop.test" }) },
      // Nothing listens there.
      vars: { ORIGIN: "http://127.0.0.1:9", ADMIN_TOKEN: undefined },
      colos: { AMS: 1 },
    });
  });
  after(() => world.close());

  test("a page says so, and the ticket is kept", async () => {
    const visitor = world.visitor();
    const answer = await visitor.get();
    assert.equal(answer.status, 502);
    assert.match(answer.body, /does not answer/);
    assert.equal(answer.headers["cache-control"], "private, no-store");
    assert.ok(!answer.waiting, "it does not reload by itself");
    assert.ok(openTicket("shop", visitor.ticket()).acceptedAt, "the visitor is in");
    const calls = onTheWay(await world.calls("shop"));
    assert.equal((await visitor.get()).status, 502);
    assert.deepEqual(onTheWay(await world.calls("shop")), calls);
  });

  test("what no room covers gets the page without a ticket", async () => {
    const answer = await world.visitor({ host: "other.test" }).get("/x");
    assert.equal(answer.status, 502);
    assert.deepEqual(answer.setCookie, []);
  });

  test("without an ADMIN_TOKEN the status is closed to every token", async () => {
    for (const authorization of ["Bearer ", "Bearer", "", "Bearer undefined", `Bearer ${ADMIN_TOKEN}`]) {
      const answer = await world.send({ path: "/__anteroom/status", headers: { authorization } });
      assert.equal(answer.status, 401, authorization);
    }
  });
});
