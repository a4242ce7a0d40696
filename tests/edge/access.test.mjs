// Who gets in below /__anteroom/, in real workerd: every endpoint that the documentation names, in every way to come. The
// core's tests see to it that the documentation names all there are.
import assert from "node:assert/strict";
import { createCipheriv, createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";

import { ADMIN_TOKEN, eventually, HOST, KEY, newKey, room, sealTicket, sleep, startWorld } from "./world.mjs";

const STEER = "the-token-of-anna-who-steers";
const VIEW = "the-token-of-a-wall-that-views";
const OPERATOR_TOKENS = `anna:steer:${STEER}, wall:view:${VIEW}`;
const HOURS = 3_600_000;
const STATUS = "/__anteroom/status";
const OWN = `http://${HOST}`;
const HERE = { "sec-fetch-site": "same-origin", origin: OWN };
const ELSEWHERE = { "sec-fetch-site": "cross-site", origin: "https://evil.test" };

const TABLE = [
  ...readFileSync(new URL("../../docs/api.md", import.meta.url), "utf8").matchAll(
    /^\| `(\/__anteroom\/[^`]*)` \| ([^|]+) \| ([^|]+) \|/gm,
  ),
].map(([, path, method, needs]) => ({ path, method, needs }));
/** Those that a token opens. */
const CLOSED = TABLE.filter(({ needs }) => ["view", "steer"].includes(needs));

/** A session, sealed a second time here, from the description: also those that no deployment would give. */
function seal({
  name = "anna",
  role = "steer",
  token = STEER,
  ends = Date.now() + HOURS,
  key = KEY,
  purpose,
}) {
  const hash = createHash("sha256").update(token).digest();
  const body = Buffer.alloc(8);
  body.writeBigUInt64BE(BigInt(ends));
  const mark = createHash("sha256").update(hash).update(`${role}\0${name}`).digest();
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", Buffer.from(key, "base64"), nonce);
  cipher.setAAD(Buffer.from(purpose ?? "\x81 operator session", "latin1"));
  const sealed = [Buffer.of(0x81), nonce, cipher.update(Buffer.concat([body, mark])), cipher.final()];
  return Buffer.concat([...sealed, cipher.getAuthTag()]).toString("base64url");
}

const bearer = (token) => ({ authorization: `Bearer ${token}` });
const session = (value) => ({ cookie: `seen=1; __anteroom_operator=${value}` });

describe("who gets in below /__anteroom/", () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: { shop: room("/"), other: room("/other") },
      vars: { OPERATOR_TOKENS },
      colos: { AMS: 1 },
    });
  });
  after(() => world.close());

  const ask = (path, method, headers, more = {}) => {
    const to = { path: `${path}?room=shop`, method, headers, ...more };
    if (path.endsWith("/live") && method === "GET") return world.upgrade(to);
    if (method !== "POST") return world.send(to);
    return world.send({ ...to, headers: { "content-type": "application/json", ...headers } });
  };
  const signIn = (token, headers = HERE) =>
    world.send({
      path: "/__anteroom/session",
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: new URLSearchParams({ token }).toString(),
    });
  const given = (answer) => answer.setCookie[0]?.split(";")[0] ?? "";

  // The way to come, and what it may: read, listen on the WebSocket, change.
  const YES = "yes";
  const ways = async () => {
    const [anna, wall] = [given(await signIn(STEER)), given(await signIn(VIEW))];
    const ticket = sealTicket("shop", { acceptedAt: Date.now() });
    const of = (cookie, headers = HERE) => ({ cookie, ...headers });
    return [
      ["no token", {}, [401, 401, 401]],
      ["a wrong token", bearer(`${STEER}x`), [401, 401, 401]],
      ["no scheme", { authorization: STEER }, [401, 401, 401]],
      [
        "a password",
        { authorization: `Basic ${Buffer.from(`anna:${STEER}`).toString("base64")}` },
        [401, 401, 401],
      ],
      ["the name for the token", bearer("anna"), [401, 401, 401]],
      ["the token to view", bearer(VIEW), [YES, YES, 403]],
      ["the token to steer", bearer(STEER), [YES, YES, YES]],
      ["the admin's token", bearer(ADMIN_TOKEN), [YES, YES, YES]],
      ["a session to view", of(wall), [YES, YES, 403]],
      ["a session to steer", of(anna), [YES, YES, YES]],
      ["an older browser's session", of(anna, { origin: OWN }), [YES, YES, YES]],
      ["a session from a foreign page", of(anna, ELSEWHERE), [YES, 403, 403]],
      [
        "an older browser's session from a foreign page",
        of(anna, { origin: "https://evil.test" }),
        [YES, 403, 403],
      ],
      ["a session from the same site", of(anna, { "sec-fetch-site": "same-site" }), [YES, 403, 403]],
      ["a session from a hidden page", of(anna, { origin: "null" }), [YES, 403, 403]],
      ["a session from who knows where", of(anna, {}), [YES, 403, 403]],
      ["a wrong token and a session", { ...of(anna), ...bearer("x") }, [401, 401, 401]],
      ["our own seal", { ...session(seal({})), ...HERE }, [YES, YES, YES]],
      ["a session that is over", { ...session(seal({ ends: Date.now() - 1 })), ...HERE }, [401, 401, 401]],
      ["a session of a foreign key", { ...session(seal({ key: newKey() })), ...HERE }, [401, 401, 401]],
      ["a session of another purpose", { ...session(seal({ purpose: "shop" })), ...HERE }, [401, 401, 401]],
      ["a session of an old token", { ...session(seal({ token: `${STEER}2` })), ...HERE }, [401, 401, 401]],
      [
        "a session with a role of its own making",
        { ...session(seal({ name: "wall", token: VIEW })), ...HERE },
        [401, 401, 401],
      ],
      ["a forged session", { ...session("A".repeat(92)), ...HERE }, [401, 401, 401]],
      ["a visitor's ticket", { ...session(ticket), ...HERE }, [401, 401, 401]],
      ["a visitor", { cookie: `__anteroom=${ticket}`, ...HERE }, [401, 401, 401]],
    ];
  };

  test("each way to come may do exactly what it must, at every endpoint", async () => {
    assert.ok(CLOSED.length >= 8 && CLOSED.some(({ needs }) => needs === "steer"), "the table is there");
    const changed = [];
    for (const [way, headers, [reads, listens, changes]] of await ways()) {
      for (const { path, method, needs } of CLOSED) {
        const expected = needs === "steer" ? changes : path.endsWith("/live") ? listens : reads;
        // A change tells by whom it was made.
        const body = method === "POST" ? JSON.stringify({ set: { message: way } }) : undefined;
        const answer = await ask(path, method, headers, { body });
        const what = `${way}: ${method} ${path}: ${answer.status} ${answer.body}`;
        answer.socket?.close();
        assert.equal(answer.fromOrigin, false, what);
        assert.equal(answer.headers["access-control-allow-origin"], undefined, what);
        if (expected === YES) {
          assert.equal(answer.status, path.endsWith("/live") ? 101 : 200, what);
          if (method === "POST") changed.unshift(way);
        } else {
          assert.equal(answer.status, expected, what);
          if (answer.body) assert.deepEqual(Object.keys(JSON.parse(answer.body)), ["error"], what);
          assert.equal(
            answer.headers["www-authenticate"]?.startsWith("Bearer"),
            expected === 401 || undefined,
            what,
          );
        }
        if (answer.status !== 101) {
          assert.equal(answer.headers["cache-control"], "private, no-store", what);
          assert.equal(answer.headers["x-content-type-options"], "nosniff", what);
        }
      }
    }
    const audit = await ask("/__anteroom/audit", "GET", bearer(VIEW));
    const { entries } = JSON.parse(audit.body);
    assert.deepEqual(
      entries.map(({ after }) => after),
      changed,
    );
    assert.deepEqual([...new Set(entries.map(({ by }) => by))].sort(), ["admin", "anna"]);
    assert.deepEqual(world.origin.below("/__anteroom"), []);
  });

  test("HEAD is GET without a body, and other methods are refused with those that there are", async () => {
    const methods = (path) => TABLE.filter((row) => row.path === path).map(({ method }) => method);
    for (const path of new Set(TABLE.map(({ path }) => path))) {
      const there = methods(path);
      if (there.includes("as there")) continue;
      for (const method of ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]) {
        if (there.includes(method)) continue;
        const answer = await world.send({ path: `${path}?room=shop`, method, headers: bearer(STEER) });
        const what = `${method} ${path}: ${answer.status} ${answer.body}`;
        assert.equal(answer.fromOrigin, false, what);
        if (method === "HEAD" && there.includes("GET")) {
          const full = await world.send({ path: `${path}?room=shop`, headers: bearer(STEER) });
          assert.deepEqual([answer.status, answer.body], [full.status, ""], what);
        } else {
          assert.equal(answer.status, 405, what);
          const allow = [
            ...(there.includes("GET") ? ["GET", "HEAD"] : []),
            ...there.filter((m) => m === "POST"),
          ];
          assert.equal(answer.headers.allow, allow.join(", "), what);
        }
      }
    }
  });

  test("what is told as it happens is told until the session is over, and to a token all the time", async () => {
    const ends = Date.now() + 3_000;
    const listen = async (headers) => {
      const { socket } = await world.upgrade({ path: "/__anteroom/live?room=other", headers });
      const heard = [];
      const hear = async () => {
        for (;;) heard.push(await socket.read());
      };
      hear();
      return { socket, heard };
    };
    const bySession = await listen({ ...session(seal({ ends })), ...HERE });
    const byToken = await listen(bearer(VIEW));
    await eventually("both are told", () => [bySession, byToken].every(({ heard }) => heard.length > 0));
    await sleep(ends - Date.now() + 1_000);
    const steered = await world.send({
      path: "/__anteroom/steering?room=other",
      method: "POST",
      headers: { "content-type": "application/json", ...bearer(STEER) },
      body: JSON.stringify({ set: { message: "not for those who are gone" } }),
    });
    assert.equal(steered.status, 200, steered.body);
    const has = ({ heard }) => heard.some((message) => message.includes("not for those"));
    await eventually("the token is told", () => has(byToken));
    await eventually("the session is closed", () => bySession.socket.closed);
    assert.deepEqual(bySession.socket.closed, [1008, "the session is over"]);
    assert.equal(has(bySession), false);
    byToken.socket.end();
    await eventually("whoever ends it is answered, and does not wait", () => byToken.socket.closed);
  });

  test("what a room's object must say is refused in words while it fails", async () => {
    for (const mode of ["throw", "hang"]) {
      await world.fault("Global", "other", mode);
      for (const path of ["preview", "steering", "audit", "news", "history"]) {
        const answer = await world.send({ path: `/__anteroom/${path}?room=other`, headers: bearer(VIEW) });
        assert.equal(answer.status, 503, `${path}: ${answer.body}`);
        assert.match(JSON.parse(answer.body).error, /cannot be reached|does not answer/, path);
      }
      const { rooms } = JSON.parse((await world.send({ path: STATUS, headers: bearer(VIEW) })).body);
      assert.deepEqual(
        rooms.filter(({ error }) => error).map(({ name }) => name),
        ["other"],
      );
      await world.fault("Global", "other");
    }
    const answer = await world.send({ path: "/__anteroom/preview?room=other", headers: bearer(VIEW) });
    assert.equal(answer.status, 200);
  });

  test("a room is named where there are several, and what is sent has a bound", async () => {
    const get = async (path) => {
      const answer = await world.send({ path: `/__anteroom/${path}`, headers: bearer(VIEW) });
      return [answer.status, answer.status === 200 ? undefined : JSON.parse(answer.body).error];
    };
    for (const path of ["steering", "audit", "history", "news", "live", "preview"]) {
      const [status, error] = await get(path);
      assert.equal(status, 400, path);
      assert.match(error, /room/, path);
      assert.match((await get(`${path}?room=nothing`))[1], /use one of .*shop/, path);
    }
    assert.equal((await get("status?room=nothing"))[0], 404);
    const one = await world.send({ path: "/__anteroom/status?room=SHOP", headers: bearer(VIEW) });
    assert.deepEqual(
      JSON.parse(one.body).rooms.map(({ name }) => name),
      ["shop"],
    );
    const steer = async (body) => {
      const { status, body: said } = await ask("/__anteroom/steering", "POST", bearer(STEER), { body });
      return [status, JSON.parse(said).error !== undefined];
    };
    for (const [body, status] of [
      ["", 400],
      ["{", 400],
      ["[]", 400],
      ['{"colour":"red"}', 400],
      [Buffer.from([0xff, 0x00]), 400],
      [JSON.stringify({ set: { message: "x".repeat(17_000) } }), 413],
    ]) {
      assert.deepEqual(await steer(body), [status, true], `${body}`.slice(0, 40));
    }
  });

  test("a session is given for a token and to nobody else, and ends when it is told to", async () => {
    const answer = await signIn(STEER);
    assert.equal(answer.status, 303);
    assert.equal(answer.headers.location, "/__anteroom/");
    assert.match(
      answer.setCookie.join(),
      /^__anteroom_operator=[\w-]{92}; Path=\/__anteroom\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    assert.ok(!answer.setCookie.join().includes(STEER));
    const cookie = given(answer);
    const status = JSON.parse((await world.send({ path: "/__anteroom/status", headers: { cookie } })).body);
    assert.deepEqual(status.operator, { name: "anna", role: "steer" });
    // As browsers send it: their tickets come along.
    const both = `__anteroom_operator=${sealTicket("shop", {})}; ${cookie}`;
    assert.equal((await world.send({ path: "/__anteroom/status", headers: { cookie: both } })).status, 200);
    assert.equal((await world.send({ path: "/__anteroom/", headers: { cookie } })).status, 200);
    assert.equal((await world.send({ path: "/__anteroom/" })).status, 401);
    assert.equal((await world.send({ path: "/__anteroom" })).headers.location, "/__anteroom/");

    const json = (body, headers = {}) =>
      world.send({
        path: "/__anteroom/session",
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
      });
    assert.equal((await json(JSON.stringify({ token: VIEW }))).status, 303);
    for (const [refused, status] of [
      [await signIn("wrong"), 401],
      [await signIn(""), 401],
      [await signIn(STEER, ELSEWHERE), 403],
      [await signIn(STEER, { origin: "https://evil.test" }), 403],
      [await json('{"token":"wrong"}'), 401],
      [await json('{"token":7}'), 401],
      [await json("{"), 401],
      [await json(JSON.stringify({ token: STEER }), ELSEWHERE), 403],
      [await json(JSON.stringify({ token: STEER, more: "x".repeat(17_000) })), 413],
    ]) {
      assert.deepEqual([refused.status, refused.setCookie], [status, []], refused.body);
    }

    const end = (headers) =>
      world.send({ path: "/__anteroom/session/end", method: "POST", headers: { cookie, ...headers } });
    assert.deepEqual((await end(ELSEWHERE)).setCookie, []);
    const over = await end(HERE);
    assert.equal(over.status, 303);
    assert.match(over.setCookie.join(), /^__anteroom_operator=; Path=\/__anteroom\/; Max-Age=0;/);
  });

  test("a signed-in browser sees the origin's health", async () => {
    const cookie = given(await signIn(VIEW));
    assert.equal((await world.send({ path: "/__anteroom/health" })).status, 401);
    assert.equal((await world.send({ path: "/__anteroom/health", headers: { cookie } })).status, 200);
    assert.equal((await world.send({ path: "/__anteroom/health", headers: bearer(VIEW) })).status, 200);
  });

  test("a token that is changed ends its sessions; wrong entries are told by number, and no secret is shown", async () => {
    const [anna, wall] = [given(await signIn(STEER)), given(await signIn(VIEW))];
    await world.deploy({
      rooms: { shop: room("/") },
      vars: { OPERATOR_TOKENS: `anna:steer:${STEER}-2, wall:view:${VIEW}, secret-of-bob` },
    });
    const status = (cookie) => world.send({ path: "/__anteroom/status", headers: { cookie } });
    assert.equal((await status(anna)).status, 401);
    const { problems } = JSON.parse((await status(wall)).body);
    assert.equal(problems.length, 1);
    assert.match(problems[0], /^OPERATOR_TOKENS: entry 3 /);
    assert.ok(!problems[0].includes("secret"), problems[0]);
    for (const secret of [STEER, VIEW, ADMIN_TOKEN, "secret-of-bob"]) {
      assert.ok(!world.log.join("").includes(secret), "no secret is in the log");
    }
  });
});
