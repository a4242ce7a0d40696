// Checks of our own in real workerd: observers that look at a real HTTP origin and a real TLS origin by their alarms,
// the coordinator that they report to, and the page that shows what they agree on.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { createServer as createHttps } from "node:https";
import { createServer as createTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { reserve } from "./reserve.mjs";

const CERTIFICATES = mkdtempSync(join(tmpdir(), "anteroom-checks-"));

/** A key and a certificate for a name, signed by itself. */
function certificate(name) {
  const [key, cert] = [join(CERTIFICATES, `${name}.key`), join(CERTIFICATES, `${name}.pem`)];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...subject, "-keyout", key, "-out", cert], {
    stdio: "ignore",
  });
  return { key: readFileSync(key), cert: readFileSync(cert), path: cert };
}

const trusted = certificate("trusted");
const untrusted = certificate("untrusted");
// Miniflare reads it when it is loaded, and workerd trusts what is in it.
process.env.NODE_EXTRA_CA_CERTS = trusted.path;
const { Miniflare } = await import("miniflare");
const { clock } = await import("./clock.mjs");
const { ADMIN_TOKEN, eventually, room, startWorld } = await import("./world.mjs");

/** In seconds: the shortest interval that there is, and the longest timeout in it. */
const [INTERVAL, TIMEOUT] = [5, 4];

/**
 * A server on loopback that can go away and come back. `answers`: time does not hurry while it has a connection, so the
 * answer comes before any timeout, on every machine. It emits `unanswered` on a connection that gets none after all.
 */
async function serve(make, { answers = true } = {}) {
  const sockets = new Set();
  let server;
  const up = (port = 0) =>
    new Promise((resolve, reject) => {
      server = make();
      server.on("connection", (socket) => {
        sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => sockets.delete(socket));
        if (!answers) return;
        const isOver = new Promise((over) => {
          socket.on("close", over);
          socket.on("unanswered", over);
        });
        clock.unhurried(isOver);
      });
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => resolve(server.address().port));
    });
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      for (const socket of sockets) socket.destroy();
    });
  const port = await up();
  let comesBack;
  const away = async () => {
    await close();
    comesBack = await reserve(port);
  };
  const back = async () => {
    await comesBack();
    await up(port);
  };
  return { port, away, back, close, sockets };
}

/** What a server does with each connection that is no HTTP. */
const RAW = {
  closing: (socket) => socket.destroy(),
  garbage: (socket) => socket.resume().end("SSH-2.0-OpenSSH_9.6\r\n"),
  hanging: (socket) => socket.resume(),
  halfway: (socket) => socket.resume().write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nwel"),
  broken: (socket) => socket.resume().end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nwel"),
  endless_headers: (socket) => pour(socket, "HTTP/1.1 200 OK\r\n", `X-More: ${"x".repeat(4_000)}\r\n`),
  endless_body: (socket) => pour(socket, "HTTP/1.1 200 OK\r\n\r\n", "x".repeat(8_000)),
  staying: (socket) => socket.resume().write("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome"),
};

/** Those whose answer never ends: they wait for the probe's timeout. */
const UNANSWERED = ["hanging", "halfway"];

/** Writes without end, as fast as it is read. */
function pour(socket, start, more) {
  socket.resume().write(start);
  const write = () => {
    while (!socket.destroyed && socket.write(more));
  };
  socket.on("drain", write);
  write();
}

describe("a probe of an address that is closed to sockets", () => {
  const words = "proxy request failed, cannot connect to the specified address";
  let miniflare;
  let origin;
  before(async () => {
    const answer = ({ url, headers }, response) => {
      if (url === "/hang") return;
      response.writeHead(url === "/moved" ? 302 : 203, { location: "/there" });
      response.end(`${headers["x-key"]} ${headers.cookie} ${"x".repeat(url === "/long" ? 2_000_000 : 1)}`);
    };
    // The runtime of these tests goes by its own time.
    origin = await serve(() => createHttp(answer), { answers: false });
    // What the platform's connect() does there; no local runtime closes an address.
    const connect = `const connect = () => {
      const failed = Promise.reject(new Error("${words}"));
      return { opened: failed, closed: failed, close: async () => {} };
    };`;
    const source = readFileSync(join(import.meta.dirname, "../../src/edge/probe.js"), "utf8");
    const probe = source.replace(/^import .*"cloudflare:sockets";$/m, connect);
    assert.notEqual(probe, source);
    const entry = `import { probe } from "./probe.js";
      export default {
        async fetch(request) {
          const found = await probe(...(await request.json()));
          found[7] = new TextDecoder().decode(found[7]);
          return Response.json(found);
        },
      };`;
    miniflare = new Miniflare({
      compatibilityDate: "2026-07-01",
      modules: [
        { type: "ESModule", path: "entry.js", contents: entry },
        { type: "ESModule", path: "probe.js", contents: probe },
      ],
    });
  });
  after(async () => {
    await miniflare?.dispose();
    await origin?.close();
  });

  const probe = async (path, timeout = 5_000) => {
    const url = `http://127.0.0.1:${origin.port}${path}`;
    const request = `GET ${path} HTTP/1.1\r\nHost: other\r\nX-Key: secret\r\nConnection: close\r\n\r\n`;
    const body = JSON.stringify(["127.0.0.1", origin.port, false, request, url, "ticket=1", timeout]);
    const answer = await miniflare.dispatchFetch("http://probe/", { method: "POST", body });
    const [ended, byFetch, tcp, tls, first, total, received, text] = await answer.json();
    return {
      ended: ["complete", "timed out", "failed", "cut"][ended],
      byFetch,
      tcp,
      tls,
      first,
      total,
      received,
      text,
    };
  };

  test("is made by fetch(), and what cannot be measured is absent", async () => {
    const found = await probe("/");
    assert.deepEqual([found.ended, found.byFetch, found.tcp, found.tls], ["complete", true, null, null]);
    assert.ok(found.first <= found.total, JSON.stringify(found));
    assert.match(found.text, /^HTTP\/1\.1 203 \r\n(.*\r\n)*\r\nsecret ticket=1 x$/);
  });

  test("does not follow redirects, and is bounded in time and size", async () => {
    assert.match((await probe("/moved")).text, /^HTTP\/1\.1 302 \r\nlocation: \/there\r\n/);
    const hanging = await probe("/hang", 300);
    assert.deepEqual([hanging.ended, hanging.byFetch, hanging.first], ["timed out", true, null]);
    await eventually("its connection is closed", () => origin.sockets.size === 0);
    const long = await probe("/long");
    assert.deepEqual([long.ended, long.text.length], ["cut", 65_536]);
    await origin.away();
    assert.deepEqual([(await probe("/")).ended, (await probe("/")).first], ["failed", null]);
    await origin.back();
  });
});

describe("checks of our own", () => {
  let world;
  let plain;
  let secure;
  let distrusted;
  const raw = {};
  /** At most so many observers there are. */
  let observers = 0;
  /** Who asked which path. */
  const asked = [];
  /** Observers to which the plain origin shows another face. */
  const deceived = new Set();

  const page = (request, response) => {
    const who = /\((.*)\)/.exec(request.headers["user-agent"])?.[1] ?? "nobody";
    asked.push({ url: request.url, who, headers: request.headers, method: request.method });
    if ([...deceived].some((part) => who.includes(part))) return response.writeHead(503).end("down");
    switch (request.url) {
      case "/moved":
        return response.writeHead(302, { location: "/health?moved" }).end();
      case "/away":
        return response.writeHead(301, { location: `https://localhost:${secure.port}/health` }).end();
      case "/around":
        return response.writeHead(302, { location: "/around" }).end();
      case "/moody":
        // Every second request of an observer is answered.
        if (asked.filter((other) => other.url === "/moody" && other.who === who).length % 2 === 1)
          return request.socket.emit("unanswered");
        return response.end("at last");
      default:
        // In two parts, so that the body is sent in chunks and takes its time.
        response.write("Welcome ");
        return setTimeout(() => response.end("to the shop"), 20);
    }
  };

  before(async () => {
    plain = await serve(() => createHttp(page));
    secure = await serve(() => createHttps(trusted, page));
    distrusted = await serve(() => createHttps(untrusted, page));
    for (const [name, handle] of Object.entries(RAW))
      raw[name] = await serve(() => createTcp(handle), { answers: !UNANSWERED.includes(name) });
    const origin = `http://127.0.0.1:${plain.port}`;
    const check = (more) => ({ interval: INTERVAL, timeout: TIMEOUT, retries: 0, ...more });
    const checks = {
      ORIGIN: check({ url: `${origin}/health`, header: { Host: "shop.test", "X-Key": "secret" } }),
      DECEIVED: check({ url: `${origin}/deceived` }),
      REGIONS: check({ url: `${origin}/regions`, regions: ["WEU", "ENAM"] }),
      SECURE: check({ url: `https://localhost:${secure.port}/health`, expected_body: "WELCOME to" }),
      DISTRUSTED: check({ url: `https://localhost:${distrusted.port}/health` }),
      NAMELESS: check({ url: `https://127.0.0.1:${secure.port}/health` }),
      CODE: check({ url: `${origin}/code`, expected_codes: ["201", "3xx"] }),
      BODY: check({ url: `${origin}/body`, expected_body: "Goodbye" }),
      MOVED: check({ url: `${origin}/moved` }),
      FOLLOWED: check({ url: `${origin}/away`, follow_redirects: true, header: { "X-Key": "secret" } }),
      AROUND: check({ url: `${origin}/around`, follow_redirects: true }),
      HEAD: check({ url: `${origin}/head`, method: "HEAD" }),
      MOODY: check({ url: `${origin}/moody`, timeout: 2, retries: 1 }),
      PORT: check({ tcp: `localhost:${plain.port}` }),
      SUSPENDED: check({ url: `${origin}/suspended`, suspended: true }),
      MISTAKEN: check({ url: `${origin}/mistaken`, interval: 1 }),
    };
    for (const name of Object.keys(RAW)) {
      const url = `http://127.0.0.1:${raw[name].port}/`;
      checks[name.toUpperCase()] = check({ url, timeout: 1 });
    }
    observers = 3 * Object.keys(checks).length;
    const vars = Object.fromEntries(Object.entries(checks).map(([name, value]) => [`CHECK_${name}`, value]));
    world = await startWorld({
      rooms: { shop: room("/") },
      vars: { HEALTH_PAGE: "public", ...vars },
      colos: { AMS: 1 },
    });
    // A visitor is all that it takes.
    assert.equal((await world.send({ path: "/" })).fromOrigin, true);
  });
  after(async () => {
    await world?.close();
    for (const server of [plain, secure, distrusted, ...Object.values(raw)]) await server?.close();
    rmSync(CERTIFICATES, { recursive: true });
  });

  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const view = async (more = "") =>
    JSON.parse((await world.send({ path: `/__anteroom/health.json?range=1h${more}`, headers })).body);
  const named = async (name) => (await view()).checks.find((check) => check.name === name);
  /** Waits until observers agree, and gives back the check. */
  const agreed = (name, status) =>
    eventually(`${name} is ${status}`, async () => {
      const check = await named(name);
      return check?.status === status && check;
    });
  /** The same for an unhealthy one and its reason, which may have been another one while its server was down. */
  const failing = (name, reason) =>
    eventually(`${name} is unhealthy: ${reason}`, async () => {
      const check = await named(name);
      return check?.status === "Unhealthy" && check.reason === reason && check;
    });
  const of = (name) => view(`&check=check/${name}`);
  /** The newest results and all changes of a check, newest first. */
  const results = async (name) => (await of(name)).results;
  const changes = async (name) => (await of(name)).changes;

  /** Within one interval: each observer has looked at most once since then. */
  const nobodyLookedTwice = async (from, until) => {
    assert.ok(until >= from);
    const looked = (await results("origin")).filter(({ at }) => at >= from && at <= until);
    const observers = looked.map(({ observer }) => observer);
    assert.equal(new Set(observers).size, observers.length, JSON.stringify(looked));
  };

  test("an origin goes down and comes back, and the page says so within one interval", async () => {
    const up = await agreed("origin", "Healthy");
    assert.equal(up.reason, "No failures");
    assert.equal(up.expected_codes, "200");
    const askers = () =>
      new Set(asked.map(({ who }) => who).filter((who) => who.startsWith("check origin;")));
    await eventually("three observers have asked", () => askers().size === 3);
    assert.deepEqual(
      [...askers()].sort(),
      [1, 2, 3].map((number) => `check origin; WEU ${number}`),
    );
    const { headers } = asked.find(({ who }) => who === "check origin; WEU 1");
    assert.deepEqual([headers.host, headers["x-key"], headers.connection], ["shop.test", "secret", "close"]);

    await plain.away();
    const gone = Date.now();
    const down = await agreed("origin", "Unhealthy");
    assert.equal(down.reason, "TCP connection failed");
    assert.equal(down.actual_code, null);
    await nobodyLookedTwice(gone, down.since);
    assert.match((await world.send({ path: "/__anteroom/health", headers })).body, /TCP connection failed/);

    await plain.back();
    const back = Date.now();
    const again = await agreed("origin", "Healthy");
    assert.equal(again.reason, "No failures");
    await nobodyLookedTwice(back, again.since);
    assert.deepEqual(
      (await changes("origin")).map(({ status }) => status),
      ["Healthy", "Unhealthy", "Healthy"],
    );
  });

  test("each probe has its waterfall", async () => {
    await agreed("secure", "Healthy");
    await agreed("origin", "Healthy");
    const [tls] = await results("secure");
    const { tcp_ms, tls_ms, first_byte_ms, total_ms } = tls.waterfall;
    assert.ok(tcp_ms <= tls_ms && tls_ms <= first_byte_ms && first_byte_ms <= total_ms, JSON.stringify(tls));
    const [open] = (await results("origin")).filter(({ status }) => status === "Healthy");
    assert.equal(open.waterfall.tls_ms, null, "there is no TLS");
    assert.ok(open.waterfall.tcp_ms <= open.waterfall.first_byte_ms, JSON.stringify(open));
  });

  test("an answer is judged by its code and its body", async () => {
    const code = await failing("code", "Response code mismatch error");
    assert.deepEqual([code.expected_codes, code.actual_code], ["201, 3xx", 200]);
    await failing("body", "Response body mismatch error");
    assert.equal((await agreed("head", "Healthy")).actual_code, 200);
    assert.ok(asked.some(({ url, method }) => url === "/head" && method === "HEAD"));
    assert.equal((await agreed("port", "Healthy")).actual_code, null);
  });

  test("redirects are followed where the owner says so, and headers stay at home", async () => {
    assert.equal((await failing("moved", "Response code mismatch error")).actual_code, 302);
    assert.equal((await agreed("followed", "Healthy")).actual_code, 200);
    const followed = asked.filter(({ who }) => who.startsWith("check followed"));
    assert.ok(followed.some(({ url, headers }) => url === "/away" && headers["x-key"] === "secret"));
    assert.ok(followed.some(({ url, headers }) => url === "/health" && !("x-key" in headers)));
    await failing("around", "Too many redirects");
  });

  test("a certificate must be trusted, and for the host", async () => {
    await failing("distrusted", "TLS handshake failed");
    await failing("nameless", "TLS handshake failed");
  });

  test("whatever a server does, the check ends and says what it was", async () => {
    const reasons = {
      closing: "HTTP Invalid Response",
      garbage: "HTTP Invalid Response",
      broken: "HTTP Invalid Response",
      endless_headers: "HTTP Invalid Response",
      hanging: "HTTP timeout occurred",
      halfway: "HTTP timeout occurred",
    };
    for (const [name, reason] of Object.entries(reasons)) {
      await failing(name, reason);
    }
    assert.equal((await agreed("body", "Unhealthy")).actual_code, 200);
    // None of these is closed by the server; the last two have all that is asked for.
    await agreed("staying", "Healthy");
    await agreed("endless_body", "Healthy");
    for (const name of ["hanging", "halfway", "endless_headers", "endless_body", "staying"]) {
      await eventually(`the connections to ${name} are closed`, () => raw[name].sockets.size === 0, {
        every: 20,
      });
    }
  });

  test("what takes too long is tried again at once", async () => {
    assert.equal((await agreed("moody", "Healthy")).reason, "No failures");
    const { results } = await of("moody");
    assert.ok(results.every(({ reason }) => reason !== "HTTP timeout occurred"));
    const tries = asked.filter(({ url }) => url === "/moody").length;
    const answered = results.filter(({ actual_code }) => actual_code === 200);
    assert.ok(tries >= 2 * answered.length, "each was the second try");
  });

  test("one observer that sees something else, or sees nothing, changes nothing", async () => {
    await agreed("deceived", "Healthy");
    const told = async () => (await changes("deceived")).length;
    const before = await told();
    const lies = (second) =>
      asked.filter(({ url, who }) => url === "/deceived" && who.endsWith(second)).length;
    deceived.add("check deceived; WEU 2");
    const from = lies("WEU 2");
    await eventually("it is deceived three times", () => lies("WEU 2") >= from + 3);
    await eventually(
      "it has told so",
      async () => (await results("deceived")).filter(({ actual_code }) => actual_code === 503).length >= 2,
    );
    assert.equal((await named("deceived")).status, "Healthy");

    // One is gone as well: the two that are left do not agree.
    await world.fault("Health", "observer/deceived/WEU/1", "throw");
    const [second, third] = ["WEU 2", "WEU 3"].map((observer) => [observer, lies(observer)]);
    await eventually("the other two look three times", () =>
      [second, third].every(([observer, times]) => lies(observer) >= times + 3),
    );
    assert.equal((await named("deceived")).status, "Healthy");
    assert.equal(await told(), before);

    // The second one says the same: that is two.
    deceived.add("check deceived; WEU 3");
    const down = await agreed("deceived", "Unhealthy");
    assert.deepEqual([down.reason, down.actual_code], ["Response code mismatch error", 503]);
    deceived.clear();
    await world.fault("Health", "observer/deceived/WEU/1");
    await agreed("deceived", "Healthy");
  });

  test("of two regions one is enough to be unhealthy", async () => {
    await agreed("regions", "Healthy");
    deceived.add("check regions; ENAM");
    await agreed("regions", "Unhealthy");
    deceived.clear();
    await agreed("regions", "Healthy");
  });

  test("results that the coordinator could not be told are told later", async () => {
    await agreed("port", "Healthy");
    await world.fault("Health", "health", "throw");
    const from = Date.now();
    const records = async () =>
      (await world.calls("health")).filter(({ route, at }) => route === "/record" && at > from + 1_000)
        .length;
    // All observers of all checks tell what they saw each interval.
    await eventually("each has tried to tell it", async () => (await records()) >= 3 * observers);
    const until = Date.now();
    await world.fault("Health", "health");
    await eventually("what all three saw meanwhile is there", async () => {
      const seen = (await results("port")).filter(({ at }) => at > from + 1_000 && at < until - 1_000);
      return new Set(seen.map(({ observer }) => observer)).size === 3;
    });
  });

  test("what is suspended, mistaken or gone is not looked at", async () => {
    assert.deepEqual(
      asked.filter(({ url }) => ["/suspended", "/mistaken"].includes(url)),
      [],
    );
    assert.ok(world.log.join("").includes("check mistaken: interval = 1"));
    await world.deploy({ rooms: { shop: room("/") }, vars: { HEALTH_PAGE: "public" } });
    await clock.pass(2 * INTERVAL * 1_000);
    const before = asked.length;
    await clock.pass(2 * INTERVAL * 1_000);
    assert.equal(asked.length, before, "observers have stopped");
    assert.deepEqual((await view()).checks, []);
  });
});

test("a site without visitors is looked at too, where the platform's cron calls", async () => {
  const askers = new Set();
  const origin = await serve(() =>
    createHttp((request, response) => {
      askers.add(request.headers["user-agent"]);
      response.end();
    }),
  );
  const check = { url: `http://127.0.0.1:${origin.port}/` };
  const world = await startWorld({
    rooms: { shop: room("/") },
    vars: { CHECK_ORIGIN: check },
    colos: { AMS: 1 },
  });
  try {
    assert.equal((await world.cron()).outcome, "ok");
    await eventually("three observers look", () => askers.size === 3);
  } finally {
    await world.close();
    await origin.close();
  }
});
