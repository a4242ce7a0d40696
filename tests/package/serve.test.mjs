// `anteroom serve`, from the npm package as it is assembled: the room on one machine, by the real time, in front of a real
// origin.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";

import { request } from "undici";
import { DIRECTORY } from "../../tools/package.mjs";
import { ROOT } from "../../tools/toolchain.mjs";
import { clock } from "../edge/clock.mjs";
import { ADMIN_TOKEN, eventually, KEY, openTicket, startOrigin } from "../edge/world.mjs";

clock.goReal();

const LIMIT = 3;
const VISITORS = 7;

const directory = mkdtempSync(join(tmpdir(), "anteroom-serve-"));
/** The servers that run. @type {Set<Server>} */
const servers = new Set();
let origin;
before(async () => {
  origin = await startOrigin();
});
after(async () => {
  for (const server of servers) await server.end("SIGKILL");
  await origin.close();
  rmSync(directory, { recursive: true, force: true });
});

/** A project with one room for the whole site. @returns {string} its directory */
function project(
  name,
  { secrets = `COOKIE_KEYS="${KEY}"\nADMIN_TOKEN="${ADMIN_TOKEN}"\n`, room = "", limit = LIMIT } = {},
) {
  const place = join(directory, name);
  mkdirSync(place);
  const text = readFileSync(join(ROOT, "wrangler.toml"), "utf8").replace(
    "active_users = 5",
    `active_users = ${limit}`,
  );
  writeFileSync(join(place, "wrangler.toml"), text.replace('path = "/"', `path = "/"\n${room}`));
  if (secrets) writeFileSync(join(place, ".dev.vars"), secrets);
  return place;
}

/** Runs the command in a project. */
function anteroomServe(cwd, args) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== "COOKIE_KEYS"));
  return spawn(process.execPath, [join(DIRECTORY, "tools", "anteroom.mjs"), "serve", ...args], { cwd, env });
}

/** What the command says when it fails. @returns {Promise<{ code: number, err: string }>} */
async function failure(cwd, ...args) {
  const child = anteroomServe(cwd, args);
  const exit = new Promise((done) => child.once("exit", done));
  child.stdout.resume();
  const err = (await Array.fromAsync(child.stderr)).join("");
  return { code: await exit, err };
}

class Server {
  /** Starts it, and waits until it says that it listens. @param {string} cwd @param {string[]} args */
  static async start(cwd, ...args) {
    const server = new Server();
    server.child = anteroomServe(cwd, ["--origin", origin.url, "--listen", "127.0.0.1:0", ...args]);
    server.ended = new Promise((done) => server.child.once("exit", (code, signal) => done(signal ?? code)));
    servers.add(server);
    let said = "";
    server.child.stderr.on("data", (chunk) => {
      said += chunk;
    });
    for await (const line of createInterface({ input: server.child.stdout })) {
      said += `${line}\n`;
      const { event, socket, port } = line.startsWith("{") ? JSON.parse(line) : {};
      if (event !== "listen" || socket !== "http") continue;
      server.url = `http://127.0.0.1:${port}`;
      server.child.stdout.resume();
      return server;
    }
    throw new Error(`It ended: ${said}`);
  }

  /** What a browser is answered. */
  async get(path, { cookie, ...headers } = {}) {
    const { headers: got, body } = await request(`${this.url}${path}`, {
      headers: { accept: "text/html,*/*;q=0.8", ...(cookie && { cookie }), ...headers },
    });
    const cookies = [got["set-cookie"] ?? []].flat();
    const ticket = cookies.find((line) => line.startsWith("__anteroom="));
    return {
      ...{ ticket, text: await body.text(), isIn: got["x-origin"] === "yes" },
      cookie: ticket?.split(";")[0] ?? cookie,
    };
  }

  /** What operators are told of the room. */
  async room() {
    const authorization = `Bearer ${ADMIN_TOKEN}`;
    const { text } = await this.get("/__anteroom/status", { authorization });
    return JSON.parse(text).rooms[0];
  }

  /** @param {NodeJS.Signals} signal */
  end(signal) {
    servers.delete(this);
    this.child.kill(signal);
    return this.ended;
  }
}

const bucketOf = ({ cookie }) => openTicket("demo", cookie.split("=")[1]).bucket;
const idOf = ({ cookie }) => openTicket("demo", cookie.split("=")[1]).id;

test("killed in mid-queue and started again: nobody loses a place, and the limit holds", async () => {
  const place = project("killed");
  let server = await Server.start(place);
  const visitors = [];
  for (let number = 0; number < VISITORS; number += 1) visitors.push(await server.get("/"));
  assert.equal(visitors.filter(({ isIn }) => isIn).length, LIMIT);
  await eventually("the room counts them all", async () => {
    const { estimated_total_active_users: active, estimated_queued_users: waiting } = await server.room();
    return active === LIMIT && waiting === VISITORS - LIMIT;
  });

  assert.equal(await server.end("SIGKILL"), "SIGKILL");
  server = await Server.start(place);
  const newcomer = await server.get("/");
  assert.ok(!newcomer.isIn, "the room is full");
  const again = [];
  for (const { cookie } of visitors) again.push(await server.get("/", { cookie }));
  assert.deepEqual(
    again.map(({ isIn }) => isIn),
    visitors.map(({ isIn }) => isIn),
    "who was in is in, who waited waits",
  );
  assert.deepEqual(again.map(bucketOf), visitors.map(bucketOf));
  assert.deepEqual(again.map(idOf), visitors.map(idOf));

  // One leaves: one of those who wait comes in, and no more.
  const leaver = again.find(({ isIn }) => isIn);
  await server.get("/bought", { cookie: leaver.cookie });
  const waiting = again.filter(({ isIn }) => !isIn);
  const entered = new Set();
  await eventually("one of those who wait is let in", async () => {
    for (const [number, { cookie }] of waiting.entries()) {
      const answer = await server.get("/", { cookie });
      waiting[number] = answer;
      if (answer.isIn) entered.add(number);
    }
    return entered.size > 0;
  });
  assert.equal(entered.size, 1);
  await server.end("SIGTERM");
});

test("killed with SIGKILL while crowds come, again and again: the site never sees more visitors than the limit", async () => {
  const MOST = 45;
  const place = project("crowded", { limit: MOST });
  const file = join(place, "wrangler.toml");
  // Nobody's session ends meanwhile, so every visitor whom the site has seen has a slot, though no answer came back.
  const text = readFileSync(file, "utf8").replace("session_duration = 1", "session_duration = 30");
  writeFileSync(file, text.replace("users_per_minute = 10", "users_per_minute = 1000"));
  const seen = () =>
    new Set(origin.requests.map(({ url }) => url).filter((url) => url.startsWith("/crowded/"))).size;
  const told = [];
  let newcomers = 0;
  let server = await Server.start(place);
  const comes = async () => {
    newcomers += 1;
    const path = `/crowded/${newcomers}`;
    told.push({ path, ...(await server.get(path)) });
  };
  // Killed just after so many of ten who came at once have been answered, the others under way.
  for (const answers of [1, 4, 7, 2, 9, 5]) {
    let answered = 0;
    let killed;
    const isAnswered = () => {
      answered += 1;
      if (answered === answers) killed = server.end("SIGKILL");
    };
    await Promise.allSettled(Array.from({ length: 10 }, () => comes().then(isAnswered)));
    assert.ok(answered >= answers && (await killed) === "SIGKILL");
    server = await Server.start(place);
    for (const visitor of told) {
      const again = await server.get(visitor.path, { cookie: visitor.cookie });
      if (visitor.isIn) assert.ok(again.isIn, "who was told to be in is in");
      assert.deepEqual([idOf(again), bucketOf(again)], [idOf(visitor), bucketOf(visitor)]);
      Object.assign(visitor, again);
    }
    assert.ok(seen() <= MOST, `${seen()} visitors`);
  }
  // Whatever the room has forgotten it would give away again, until it takes itself for full. It may take slots for used whose
  // visitors it has not seen, for as long as they could be there: then it gives nothing away, however often somebody asks.
  let looks = 0;
  await eventually(
    "the room is full, or gives nothing away",
    async () => {
      if (told.every(({ isIn }) => isIn)) await comes();
      for (const visitor of told.filter(({ isIn }) => !isIn))
        Object.assign(visitor, await server.get(visitor.path, { cookie: visitor.cookie }));
      if (told.some(({ isIn }) => !isIn)) looks += 1;
      const { estimated_total_active_users: active } = await server.room();
      return active >= MOST || looks >= 100;
    },
    { within: 300_000 },
  );
  assert.ok(seen() <= MOST, `${seen()} visitors`);
  assert.ok(told.some(({ isIn }) => isIn));
  await server.end("SIGTERM");
});

test("the site is streamed, WebSockets go through, and SIGTERM ends it when what is under way is answered", async () => {
  const server = await Server.start(project("streamed"));
  const { cookie } = await server.get("/");
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/socket`, { headers: { cookie } });
  await new Promise((open, failed) => Object.assign(socket, { onopen: open, onerror: failed }));
  const echoed = new Promise((heard) => {
    socket.onmessage = ({ data }) => heard(data);
  });
  socket.send("hello");
  assert.equal(await echoed, "echo hello");
  const closed = new Promise((done) => {
    socket.onclose = done;
  });
  socket.close();
  await closed;

  const { body } = await request(`${server.url}/stream`, { headers: { cookie } });
  const parts = body[Symbol.asyncIterator]();
  const next = async () => String((await parts.next()).value);
  assert.equal(await next(), "first\n", "it comes before the answer is whole");
  const ended = server.end("SIGTERM");
  origin.release();
  assert.equal(await next(), "last\n");
  assert.equal(await ended, 0);
});

describe("who a visitor is", () => {
  const forged = {
    "cf-connecting-ip": "203.0.113.9",
    "cf-ipcountry": "NL",
    "true-client-ip": "203.0.113.9",
    "x-forwarded-for": "203.0.113.9, 198.51.100.7, 127.0.0.9",
    "x-forwarded-proto": "https",
    "x-real-ip": "203.0.113.9",
    host: "shop.test",
  };
  const FROM = ["host", "cf-connecting-ip", "cf-ipcountry", "true-client-ip", "x-real-ip"];
  const told = async (server, path) => {
    const { ticket } = await server.get(path, forged);
    const [{ headers }] = origin.below(path);
    return { ticket, from: FROM.map((name) => headers[name]), headers };
  };

  test("the connection says it, not the visitor", async () => {
    const server = await Server.start(project("direct"));
    const { ticket, from, headers } = await told(server, "/direct");
    assert.deepEqual(from, ["shop.test", "127.0.0.1", undefined, undefined, "127.0.0.1"]);
    assert.deepEqual([headers["x-forwarded-for"], headers["x-forwarded-proto"]], ["127.0.0.1", "http"]);
    assert.doesNotMatch(ticket, /Secure/);
    await server.end("SIGTERM");
  });

  test("trusted proxies say it, from the nearest on as far as they are trusted", async () => {
    // A rule of the room sees the same address.
    const room = 'bypass_rules = ["ip.src eq 192.0.2.1"]';
    const trust = ["--trust-proxy", "127.0.0.0/8", "--trust-proxy", "2001:db8::1"];
    const server = await Server.start(project("behind", { room, limit: 10 }), ...trust);
    const { ticket, from, headers } = await told(server, "/behind");
    assert.deepEqual(from, ["shop.test", "198.51.100.7", undefined, "203.0.113.9", "198.51.100.7"]);
    assert.equal(headers["x-forwarded-for"], `${forged["x-forwarded-for"]}, 127.0.0.1`);
    assert.equal(headers["x-forwarded-proto"], "https");
    assert.match(ticket, /Secure/, "over HTTPS as far as the proxy");
    for (const [chain, address] of [
      ["192.0.2.1:4711", "192.0.2.1"],
      ["[2001:db8::2]:443, 2001:db8::1", "2001:db8::2"],
      ["192.0.2.7, nonsense", "127.0.0.1"],
      ["::ffff:192.0.2.8", "192.0.2.8"],
    ]) {
      const answer = await server.get(`/chain/${address}`, { "x-forwarded-for": chain });
      assert.equal(origin.below(`/chain/${address}`)[0].headers["cf-connecting-ip"], address);
      assert.equal(answer.ticket === undefined, address === "192.0.2.1", address);
    }
    await server.end("SIGTERM");
  });
});

test("what stands in its way is said in a sentence", async () => {
  const at = ["--origin", origin.url];
  const place = project("plain");
  const empty = join(directory, "empty");
  mkdirSync(empty);
  const bound = project("bound");
  cpSync(join(place, "wrangler.toml"), join(bound, "other.toml"));
  writeFileSync(join(bound, "other.toml"), '\n[[services]]\nbinding = "SITE"\nservice = "site"\n', {
    flag: "a",
  });
  const port = new URL(origin.url).port;
  const server = await Server.start(place);
  const cases = [
    [place, ["--sotrage", "x"], 2, /'--sotrage'.*--help lists the options/s],
    [place, ["--origin", "localhost:3000"], 2, /--origin localhost:3000: write scheme, host and port/],
    [place, [...at, "--listen", "8080"], 2, /--listen 8080: write an address and a port/],
    [
      place,
      [...at, "--trust-proxy", "10.0.0.0/33"],
      2,
      /--trust-proxy 10\.0\.0\.0\/33: write an address, or a range/,
    ],
    [place, [...at, "--listen", `127.0.0.1:${port}`], 1, /--listen 127\.0\.0\.1:\d+ is in use/],
    [place, [...at, "--listen", ":0"], 1, /storage is in use by another anteroom serve/],
    [place, [...at, "--storage", "wrangler.toml"], 1, /--storage .*wrangler\.toml cannot be written: /],
    [place, ["--listen", ":0"], 2, /Where is the site\? Give --origin/],
    [empty, at, 1, /wrangler\.toml/],
    [bound, [...at, "--config", "other.toml"], 2, /\[\[services\]\]: there are no other Workers/],
    [project("keyless", { secrets: "" }), at, 2, /COOKIE_KEYS is not set/],
  ];
  for (const [cwd, args, status, words] of cases) {
    const { code, err } = await failure(cwd, ...args);
    assert.match(err, words);
    assert.equal(code, status, err);
  }
  await server.end("SIGTERM");
});
