// A small planet for the tests: one workerd with the built Worker several times (each an isolate of its own, two per
// colo), one script that owns the Durable Object classes, a real origin on loopback, and visitors with cookie
// jars. Everything is the product as it is deployed; only what the tests do to it is made here.

import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { Agent, createServer, request as httpRequest } from "node:http";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { Log, LogLevel, Miniflare } from "miniflare";

import { parseRefresh } from "../../tools/crowd/visitor.mjs";
import { newJar } from "../../tools/crowd/world.mjs";
import { clock } from "./clock.mjs";

export const { sleep } = clock;

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");
/** Another build than the usual one, for trials. */
const BUILD = resolve(ROOT, process.env.ANTEROOM_BUILD ?? "build");
const COMPATIBILITY_DATE = "2026-07-01";
export const CLASSES = {
  COUNTER: "Counter",
  ANYWHERE: "Anywhere",
  DATA_CENTER: "DataCenter",
  GLOBAL: "Global",
  HEALTH: "Health",
  CONFIG: "Config",
};

export const MINUTE = 60_000;
export const HOST = "shop.test";
export const ADMIN_TOKEN = "the-token-of-the-tests";
export const KEY = newKey();

/** A key for COOKIE_KEYS. */
export function newKey() {
  return randomBytes(32).toString("base64");
}

/** A room as its owner writes it, with more than any test needs of everything. */
export function room(path, more = {}) {
  return { path, total_active_users: 1000, new_users_per_minute: 1000, session_duration: 1, ...more };
}

/** How an entry rings the alarm of an object that it owns. */
const RING = `
const BINDINGS = Object.fromEntries(Object.entries(${JSON.stringify(CLASSES)}).map(([name, kind]) => [kind, name]));
const ring = (env) => (object) => {
  const [kind, name] = object.split(" ", 2);
  return env[BINDINGS[kind]].getByName(name).fetch("https://object/ring-by-the-clock");
};
`;

// The entry of the visitors' scripts: the Worker as it is, by the tests' clock.
const VISITORS_ENTRY = `
import { control, counted } from "./clock.js";
import built from "./index.js";

export default {
  fetch: (request, env, context) => control(request) ?? counted(() => built.fetch(request, env, context)),
};
`;

// The entry of the script that owns the objects. The objects in it are the real ones, whole: this only stands before
// each of them, counts the calls, and makes the faults that a platform makes: a call that throws, hangs, arrives
// late or whose answer is lost, and an object that is restarted between two calls.
export const OBJECTS_ENTRY = `
import { alarmByTheClock, control, counted, sleep } from "./clock.js";
import * as built from "./index.js";

const faults = new Map();
let calls = [];

function fault(kind, name) {
  for (const [key, fault] of faults) {
    const [faulty, prefix] = key.split(" ");
    if (faulty === kind && name.startsWith(prefix)) return fault;
  }
}

async function hang(kind, name) {
  // Nothing but the test's word ends it: callers have their own deadlines.
  while (fault(kind, name)) await scheduler.wait(20);
  throw new Error("this call hung until the test ended it");
}

async function suffer(kind, name, work) {
  const { mode, ms } = fault(kind, name) ?? {};
  if (mode === "throw") throw new Error("the test makes this call fail");
  if (mode === "hang") return hang(kind, name);
  if (mode === "late") await sleep(ms);
  const done = await work();
  return mode === "lost" ? hang(kind, name) : done;
}

// Storage that fails while the test says so.
function failing(storage, kind) {
  const { sql } = storage;
  const exec = (...query) => {
    if (fault("Storage", kind)) throw new Error("the test makes storage fail");
    return sql.exec(...query);
  };
  Object.defineProperty(storage, "sql", { value: { exec } });
}

function around(kind) {
  const Real = built[kind];
  return class {
    constructor(ctx, env) {
      this.ctx = ctx;
      if (kind === "Config") failing(ctx.storage, kind);
      this.clock = alarmByTheClock(ctx.storage, kind + " " + ctx.id.name);
      this.real = new Real(ctx, env);
    }
    get name() {
      return this.ctx.id.name ?? "";
    }
    async fetch(request) {
      const route = new URL(request.url).pathname;
      if (route === "/ring-by-the-clock") {
        await this.clock.ring();
        return new Response();
      }
      if (route === "/restart-by-the-test") this.ctx.abort("restarted by the test");
      if (route === "/alarm-by-the-test") {
        await this.real.alarm();
        return new Response();
      }
      if (route === "/rows-by-the-test") {
        const query = await request.text();
        return Response.json([...this.ctx.storage.sql.exec(query)]);
      }
      calls.push({ kind, name: this.name, route, at: Date.now() });
      return counted(() => suffer(kind, this.name, () => this.real.fetch(request)));
    }
    alarm(info) {
      return this.clock.rings(() => suffer(kind, this.name, () => this.real.alarm(info)));
    }
    webSocketMessage(...told) {
      return counted(() => this.real.webSocketMessage(...told));
    }
    webSocketClose(...told) {
      return counted(() => this.real.webSocketClose(...told));
    }
    webSocketError(...told) {
      return counted(() => this.real.webSocketError(...told));
    }
  };
}

export const Counter = around("Counter");
export const Anywhere = around("Anywhere");
export const DataCenter = around("DataCenter");
export const Global = around("Global");
export const Health = around("Health");
export const Config = around("Config");

${RING}

export default {
  scheduled: built.default.scheduled,
  async fetch(request, env, context) {
    return control(request, context, ring(env)) ?? counted(async () => obey(await request.json(), env));
  },
};

async function obey(message, env) {
  const { act, kind, name = "", mode, ms } = message;
  if (act === "fault") mode ? faults.set(kind + " " + name, { mode, ms }) : faults.delete(kind + " " + name);
  if (act === "run") {
    // An alarm at once instead of at its time, or a message as another object would send it.
    const { route = "/alarm-by-the-test", body } = message;
    const bytes = body && Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0));
    const answer = await env[BINDINGS[kind]].getByName(name).fetch("https://object" + route, { method: "POST", body: bytes });
    return Response.json({ status: answer.status, body: await answer.text() });
  }
  if (act === "restart") {
    const stub = env[BINDINGS[kind]].getByName(name);
    await stub.fetch("https://object/restart-by-the-test").catch(() => {});
  }
  return Response.json(act === "calls" ? calls : null);
}
`;

// The entry of a script that owns one object, and writes down all that the object sees and says: its messages and their
// answers, each reading of the clock, its random numbers, what it loads, its calls and what other objects answered. An
// input is written down in the moment in which it is read: the next reading of the clock is for it. Messages and calls are
// counted from 1 since the object was made. Every so many answers to its calls get lost; none if that is 0.
const recordingEntry = (loses) => `
import { alarmByTheClock, control, counted } from "./clock.js";
import * as built from "./index.js";

const LOSES = ${loses};
const log = [];
/** The call whose timeout is set next. */
let calling;
const base64 = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));

globalThis.Date = class extends Date {
  static now() {
    const now = super.now();
    log.push({ now });
    return now;
  }
};
const start = setTimeout;
globalThis.setTimeout = (work, ms, ...more) => {
  const given_up = calling;
  calling = undefined;
  const over = () => {
    if (given_up) log.push({ given_up });
    work(...more);
  };
  return start(over, ms);
};
const fill = crypto.getRandomValues.bind(crypto);
crypto.getRandomValues = (bytes) => {
  fill(bytes);
  log.push({ random: base64(bytes) });
  return bytes;
};

// A body whose reader goes on in the moment in which its end is told.
function told(body, atEnd) {
  const parts = body.byteLength > 0 ? [new Uint8Array(body)] : [];
  const pull = (controller) => {
    if (parts.length > 0) return controller.enqueue(parts.pop());
    atEnd();
    controller.close();
  };
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

// The platform's crate looks at the class's name.
class DurableObjectNamespace {
  constructor(at, counts) {
    this.at = at;
    this.counts = counts;
  }
  getByName(name, options) {
    const stub = this.at(name.split("/")[1]).getByName(name, options);
    return {
      fetch: async (request) => {
        const called = (calling = this.counts.calls += 1);
        const sent = await request.clone().arrayBuffer();
        const hint = options?.locationHint;
        log.push({ called, route: new URL(request.url).pathname, body: base64(sent), hint });
        const heard = (status, body) => log.push({ heard: called, status, body: base64(body) });
        try {
          const answer = await stub.fetch(request);
          if (called % LOSES === 0) await new Promise(() => {});
          const [status, body] = [answer.status, await answer.arrayBuffer()];
          return new Response(told(body, () => heard(status, body)), { status });
        } catch (error) {
          heard(0, []);
          throw error;
        }
      },
    };
  }
}

// What is read from storage; all else goes straight there.
function watched(storage) {
  const loaded = (key, value) => value && log.push({ loaded: key, body: base64(value) });
  const reads = {
    async get(key) {
      const value = await storage.get(key);
      loaded(key, value);
      return value;
    },
    async list(options) {
      const values = await storage.list(options);
      for (const [key, value] of values) loaded(key, value);
      return values;
    },
  };
  const get = (_, name) => reads[name] ?? storage[name]?.bind?.(storage) ?? storage[name];
  return new Proxy({}, { get });
}

function recorded(kind) {
  const Real = built[kind];
  return class {
    counts = { messages: 0, calls: 0 };
    constructor(ctx, env) {
      const others = Object.entries(env).map(([name, value]) =>
        typeof value?.getByName === "function"
          ? [name, new DurableObjectNamespace((colo) => env[name + "_" + colo] ?? value, this.counts)]
          : [name, value],
      );
      log.push({ start: kind, name: ctx.id.name });
      this.clock = alarmByTheClock(ctx.storage, kind + " " + ctx.id.name);
      const state = {
        id: ctx.id,
        storage: watched(ctx.storage),
        blockConcurrencyWhile: (work) => ctx.blockConcurrencyWhile(work),
        waitUntil: (work) => ctx.waitUntil(work),
        getWebSockets: () => ctx.getWebSockets(),
        setWebSocketAutoResponse: (pair) => ctx.setWebSocketAutoResponse(pair),
      };
      this.real = new Real(state, Object.fromEntries(others));
    }
    async fetch(request) {
      const { url, method } = request;
      if (url.endsWith("/ring-by-the-clock")) {
        await this.clock.ring();
        return new Response();
      }
      const body = await request.arrayBuffer();
      const route = new URL(url).pathname;
      const passed = new Request(url, { method, body });
      let asked;
      passed.arrayBuffer = async () => {
        asked = this.counts.messages += 1;
        log.push({ asked, route, body: base64(body) });
        return body;
      };
      return counted(async () => {
        const answer = await this.real.fetch(passed);
        const said = await answer.arrayBuffer();
        log.push({ answered: asked, route, status: answer.status, body: base64(said) });
        return new Response(said, { status: answer.status });
      });
    }
    alarm(info) {
      return this.clock.rings(() => {
        log.push({ alarm: true });
        return this.real.alarm(info);
      });
    }
  };
}

export const Counter = recorded("Counter");
export const Anywhere = recorded("Anywhere");
export const DataCenter = recorded("DataCenter");
export const Global = recorded("Global");
export const Health = recorded("Health");
export const Config = recorded("Config");

${RING}

export default {
  fetch: (request, env, context) => control(request, context, ring(env)) ?? Response.json(log),
};
`;

/** Those of which every data center has one. */
const PER_COLO = ["COUNTER", "DATA_CENTER"];

/** A script per object, for recording: which classes it owns, and in which script those that it calls are. */
function recordingScripts(colos) {
  const home = (binding, colo) =>
    PER_COLO.includes(binding) ? `${binding}-${colo}`.toLowerCase() : binding.toLowerCase();
  const names = Object.keys(colos).flatMap((colo) =>
    Object.keys(CLASSES)
      .filter((binding) => binding !== "CONFIG")
      .map((binding) => [home(binding, colo), colo]),
  );
  return { home, names: [...new Map(names)] };
}

/**
 * Starts a world. `rooms` are the vars' values by what follows `ROOM_`; `vars` are added, or replace what is there
 * (`undefined` takes one away). `sites`: Workers that are sites, one module each, by their service bindings. `recorded`:
 * each object writes down what it sees and says, see `World.recording`; there may be one room then, and of all faults only
 * that each object does not get every so many answers (`loses`). `outbound`: answers what objects ask the world outside.
 * @param {{ rooms: Record<string, unknown>, vars?: Record<string, unknown>, colos?: Record<string, number>,
 *   sites?: Record<string, string>, recorded?: boolean, loses?: number,
 *   outbound?: (request: Request) => Promise<Response> }} options
 */
export async function startWorld({
  rooms,
  vars = {},
  colos = { AMS: 2, SIN: 2, GRU: 2 },
  sites = {},
  recorded = false,
  loses = 0,
  outbound,
}) {
  const origin = await startOrigin();
  const log = [];
  const bindings = (rooms, vars) => {
    const all = {
      ORIGIN: origin.url,
      COOKIE_KEYS: KEY,
      ADMIN_TOKEN,
      // Slow machines are no outage.
      OBJECT_DEADLINE_MS: "2000",
      ...Object.fromEntries(
        Object.entries(rooms).map(([name, value]) => [`ROOM_${name.toUpperCase()}`, value]),
      ),
      ...vars,
    };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  };
  const workers = Object.entries(colos).flatMap(([colo, count]) =>
    Array.from({ length: count }, (_, number) => workerName(colo, number)),
  );
  // What is recorded is put through the core again, which has no part in looking for the configuration.
  const { CONFIG, ...recordable } = CLASSES;
  const classes = recorded ? recordable : { CONFIG, ...recordable };
  const recording = recordingScripts(colos);
  const owners = recorded ? recording.names : [["objects", undefined]];
  const visitors = workers.map((name) => [name, name.split("-")[0].toUpperCase()]);
  const owner = (binding, colo) => (recorded ? recording.home(binding, colo) : "objects");
  const elsewhere = Object.keys(recorded ? colos : {}).flatMap((colo) =>
    PER_COLO.map((binding) => [`${binding}_${colo}`, classes[binding], owner(binding, colo)]),
  );
  /** What is bound to a script of a colo: which class of which script. Objects may call those of other colos. */
  const bound = (colo) => [
    ...Object.entries(classes).map(([binding, className]) => [binding, className, owner(binding, colo)]),
    ...elsewhere,
  ];
  const options = (rooms, vars, alarms = []) => ({
    log: new Log(LogLevel.NONE),
    cf: false,
    handleRuntimeStdio: (out, error) => {
      for (const stream of [out, error]) stream.on("data", (chunk) => log.push(String(chunk)));
    },
    workers: [...owners, ...visitors]
      .map(([name, colo]) => ({
        name,
        compatibilityDate: COMPATIBILITY_DATE,
        compatibilityFlags: ["enable_request_signal"],
        ...(name === "objects" && outbound && { outboundService: outbound }),
        modules: owners.some(([owner]) => owner === name) ? modules(entry, alarms) : modules(VISITORS_ENTRY),
        durableObjects: Object.fromEntries(
          bound(colo).map(([binding, className, scriptName]) => [
            binding,
            { className, useSQLite: true, ...(name === scriptName ? {} : { scriptName }) },
          ]),
        ),
        bindings: bindings(rooms, vars),
        serviceBindings: Object.fromEntries(
          Object.keys(sites).map((binding) => [binding, siteName(binding)]),
        ),
        unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      }))
      .concat(
        Object.entries(sites).map(([binding, contents]) => ({
          name: siteName(binding),
          compatibilityDate: COMPATIBILITY_DATE,
          modules: [{ type: "ESModule", path: "site.js", contents }],
        })),
      ),
  });
  const entry = recorded ? recordingEntry(loses) : OBJECTS_ENTRY;
  const miniflare = new Miniflare(options(rooms, vars));
  const world = new World({ miniflare, origin, log, options });
  await clock.unhurried(world.findWorkers([...owners.map(([name]) => name), ...workers]));
  return world;
}

const siteName = (binding) => `site-${binding.toLowerCase().replaceAll("_", "-")}`;
const workerName = (colo, number) => `${colo.toLowerCase()}-${number}`;

function modules(entry, alarms) {
  return [
    { type: "ESModule", path: "entry.js", contents: entry },
    { type: "ESModule", path: "clock.js", contents: clock.source(alarms) },
    { type: "ESModule", path: "index.js", contents: readFileSync(join(BUILD, "index.js"), "utf8") },
    { type: "CompiledWasm", path: "index_bg.wasm", contents: readFileSync(join(BUILD, "index_bg.wasm")) },
  ];
}

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {string} statusText
 * @property {Record<string, string>} headers By name in lower case; all but Set-Cookie.
 * @property {string[]} setCookie
 * @property {Buffer} [bytes] The body.
 * @property {string} body The same as text.
 * @property {boolean} fromOrigin Whether the origin's own header is there.
 * @property {boolean} waiting Whether it is a waiting page or status.
 * @property {{ seconds: number, url?: string } | undefined} refresh
 * @property {number} sent
 * @property {number} received When its headers arrived.
 */

class World {
  #miniflare;
  #options;
  #agent = new Agent({ keepAlive: true });
  /** @type {Map<string, URL>} */
  #urls = new Map();
  /** @type {Map<string, ReturnType<typeof clock.drive>>} */
  #isolates = new Map();

  constructor({ miniflare, origin, log, options }) {
    this.#miniflare = miniflare;
    this.#options = options;
    this.origin = origin;
    /** What the Workers wrote to their log. */
    this.log = log;
  }

  async findWorkers(names) {
    await this.#miniflare.ready;
    for (const name of names) {
      const url = await this.#miniflare.unsafeGetDirectURL(name);
      this.#urls.set(name, url);
      this.#isolates.set(name, clock.drive(url.origin));
    }
  }

  /** The clock asks no isolate any more. @returns {Promise<[string, number][]>} For when alarms are set. */
  async #unwatched() {
    const isolates = [...this.#isolates.values()];
    this.#isolates.clear();
    return clock.leave(isolates);
  }

  /** The address of a worker, for clients of their own. Without `request.cf`: its colo is not known. */
  address(colo = "AMS", worker = 0) {
    this.#isolates.get(workerName(colo, worker)).stay();
    return new URL(this.#urls.get(workerName(colo, worker))).origin;
  }

  /** Puts other rooms and vars in place, as a deploy does: all isolates and objects restart, storage stays. */
  deploy({ rooms, vars = {} }) {
    const deployed = async () => {
      const alarms = await this.#unwatched();
      await this.#miniflare.setOptions(this.#options(rooms, vars, alarms));
      this.#agent.destroy();
      this.#agent = new Agent({ keepAlive: true });
      await this.findWorkers([...this.#urls.keys()]);
    };
    return clock.unhurried(deployed());
  }

  /**
   * The ways to a worker: straight to its socket, so that nothing stands between the visitor and the Worker. `colo`
   * is what `request.cf` says; `cf` replaces it as a whole, `null` leaves it out.
   */
  async #request({
    colo = "AMS",
    worker = 0,
    cf = { colo },
    at = colo,
    host = HOST,
    path = "/",
    method = "GET",
    headers = {},
    agent = this.#agent,
  }) {
    const name = workerName(at, worker);
    await this.#isolates.get(name).wake();
    const { hostname, port } = this.#urls.get(name);
    return httpRequest({
      agent,
      host: hostname,
      port,
      path,
      method,
      // As a browser that opens a page: who does not say so is taken for a program.
      headers: {
        host,
        accept: "text/html,*/*;q=0.8",
        ...(cf ? { "mf-cf-blob": JSON.stringify(cf) } : {}),
        ...headers,
      },
    });
  }

  /**
   * Sends a request and opens its answer; the body comes as a stream.
   * @returns {Promise<Answer & { stream: import("node:http").IncomingMessage }>}
   */
  async open(options, attempts = 3) {
    const request = await this.#request(options);
    const opened = new Promise((resolve, reject) => {
      const sent = Date.now();
      request.on("error", (error) => {
        // A kept connection may be closed just when it is used again; as browsers do, the request takes another one.
        if (error.code === "ECONNRESET" && attempts > 1)
          this.open({ ...options, agent: false }, attempts - 1).then(resolve, reject);
        else reject(error);
      });
      request.on("response", (stream) => resolve({ ...answerOf(stream, sent), stream }));
      request.end(options.body);
    });
    return clock.during(opened);
  }

  /** Sends a request, and closes the connection once `moment` has come. @param {Promise<unknown>} moment */
  async leave(moment, options) {
    const request = await this.#request({ ...options, agent: false });
    const left = new Promise((resolve) => {
      request.on("error", () => {});
      request.on("close", resolve);
      request.end();
      // Reset, as the platform's front does: half-closed connections may still wait for their answer.
      moment.then(() => request.socket?.resetAndDestroy());
    });
    return clock.during(left);
  }

  /** Sends a request and reads its answer. @returns {Promise<Answer>} */
  async send(options) {
    const { stream, ...answer } = await this.open(options);
    const chunks = await clock.during(Array.fromAsync(stream));
    const bytes = Buffer.concat(chunks);
    return { ...answer, bytes, body: bytes.toString() };
  }

  /** Asks for a WebSocket and gives back the answer and, when the origin took it, the socket. */
  async upgrade(options) {
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": randomBytes(16).toString("base64"),
      ...options.headers,
    };
    const request = await this.#request({ ...options, headers });
    const upgraded = new Promise((resolve, reject) => {
      const sent = Date.now();
      request.on("error", reject);
      request.on("response", (stream) => {
        stream.resume();
        resolve({ ...answerOf(stream, sent), socket: undefined });
      });
      request.on("upgrade", (stream, socket, head) => {
        resolve({ ...answerOf(stream, sent), socket: new Socket(socket, head) });
      });
      request.end();
    });
    return clock.during(upgraded);
  }

  /** A visitor with a browser's cookie jar. */
  visitor(options = {}) {
    return new Visitor(this, options);
  }

  /** What operators see; `room`: that room alone, so that nobody looks at the others. */
  async status(room) {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const answer = await this.send({ path: `/__anteroom/status${room ? `?room=${room}` : ""}`, headers });
    const status = JSON.parse(answer.body);
    return room ? status.rooms.find(({ name }) => name === room) : status;
  }

  /** The bucket of a ticket: whose place in line is kept keeps it. */
  bucket(room, value) {
    return openTicket(room, value).bucket;
  }

  async #control(message) {
    const asked = fetch(this.#urls.get("objects"), {
      method: "POST",
      headers: { connection: "close" },
      body: JSON.stringify(message),
    });
    const answer = await clock.during(asked);
    return answer.json();
  }

  /**
   * Makes all calls to the objects of a kind whose name begins with `name` fail as `mode` says, or work again; or the storage
   * of the object `Config`, where the kind is `Storage`.
   * @param {"Counter" | "Anywhere" | "DataCenter" | "Global" | "Health" | "Config" | "Storage"} kind @param {string} name
   * @param {"throw" | "hang" | "late" | "lost" | undefined} [mode] `late` arrives after `ms`, `lost` arrives and is
   * never answered.
   * @param {number} [ms]
   */
  fault(kind, name, mode, ms) {
    return this.#control({ act: "fault", kind, name, mode, ms });
  }

  /** Restarts one object: its memory is gone, its storage stays. */
  restart(kind, name) {
    return this.#control({ act: "restart", kind, name });
  }

  /** Calls a worker as the platform's cron does. */
  async cron() {
    const worker = await this.#miniflare.getWorker("objects");
    return worker.scheduled({ cron: "*/5 * * * *" });
  }

  /** Rings an object's alarm now. */
  ring(kind, name) {
    return this.#control({ act: "run", kind, name });
  }

  /** Sends an object a message as another object would: bytes on a route. */
  tell(kind, name, route, bytes) {
    const body = Buffer.from(bytes).toString("base64");
    return this.#control({ act: "run", kind, name, route, body });
  }

  /** What a query finds in an object's SQLite. */
  async rows(kind, name, query) {
    return JSON.parse((await this.tell(kind, name, "/rows-by-the-test", query)).body);
  }

  /** The calls to objects of a room so far: the requests they got, not their alarms. */
  async calls(room) {
    const calls = await this.#control({ act: "calls" });
    return calls.filter(({ name }) => name === room || name.startsWith(`${room}/`));
  }

  /** What each object of a recorded world has seen and said so far. */
  async recording() {
    const isVisitors = (name) => /-\d+$/.test(name);
    const urls = [...this.#urls].filter(([name]) => !isVisitors(name)).map(([, url]) => url);
    return Promise.all(urls.map(async (url) => (await fetch(url)).json()));
  }

  async close() {
    await this.#unwatched();
    this.#agent.destroy();
    await this.#miniflare.dispose();
    await this.origin.close();
  }
}

function answerOf(stream, sent) {
  const headers = {};
  const setCookie = [];
  for (let i = 0; i < stream.rawHeaders.length; i += 2) {
    const [name, value] = [stream.rawHeaders[i].toLowerCase(), stream.rawHeaders[i + 1]];
    if (name === "set-cookie") setCookie.push(value);
    else headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return {
    status: stream.statusCode,
    statusText: stream.statusMessage,
    headers,
    setCookie,
    body: "",
    fromOrigin: "x-origin" in headers,
    waiting: headers.anteroom === "waiting",
    refresh: parseRefresh(headers.refresh),
    sent,
    received: Date.now(),
  };
}

/** A browser, as far as a waiting room can tell: it keeps cookies and sends them by their rules. */
class Visitor {
  constructor(world, { colo = "AMS", worker = 0, host = HOST, path = "/", ...more }) {
    this.world = world;
    this.where = { colo, worker, host, path, ...more };
    this.jar = newJar();
  }

  /** The cookies that it would send there. */
  cookies(path = this.where.path) {
    return this.jar.get(this.#url(path));
  }

  /** The ticket that it would send there. */
  ticket(path) {
    return /(?:^|; )__anteroom[^=]*=([^;]*)/.exec(this.cookies(path))?.[1];
  }

  /** Takes a ticket from elsewhere for its own. */
  setTicket(value, { name = "__anteroom", path = "/" } = {}) {
    this.jar.set(this.#url(path), `${name}=${value}; Path=${path}`);
  }

  #url(path) {
    return `http://${this.where.host}${path}`;
  }

  #with(options) {
    const all = { ...this.where, ...options };
    const cookie = this.cookies(all.path);
    return { ...all, headers: { ...(cookie ? { cookie } : {}), ...options.headers } };
  }

  #keep(path, answer) {
    for (const line of answer.setCookie) this.jar.set(this.#url(path), line);
    return answer;
  }

  /** Opens a page. @returns {Promise<Answer>} */
  async get(path = this.where.path, options = {}) {
    return this.#keep(path, await this.world.send(this.#with({ ...options, path })));
  }

  /** Opens a page whose body comes as a stream. */
  async open(path = this.where.path, options = {}) {
    return this.#keep(path, await this.world.open(this.#with({ ...options, path })));
  }

  /** Opens a page and leaves before it comes. @param {Promise<unknown>} moment when */
  async leaves(moment, path = this.where.path) {
    await this.world.leave(moment, this.#with({ path }));
  }

  /** Opens a WebSocket. */
  async upgrade(path = this.where.path, options = {}) {
    return this.#keep(path, await this.world.upgrade(this.#with({ ...options, path })));
  }

  /** Asks as the waiting page's script does. */
  async ask(path = this.where.path, options = {}) {
    const answer = await this.get(path, {
      ...options,
      headers: { "anteroom-status": "1", ...options.headers },
    });
    return { ...answer, json: JSON.parse(answer.body) };
  }
}

/** Lets in as many new visitors as there are; fails unless every one of them is. */
export async function letIn(world, count, options) {
  const visitors = Array.from({ length: count }, () => world.visitor(options));
  for (const visitor of visitors) {
    const answer = await visitor.get();
    if (!answer.fromOrigin)
      throw new Error(`a visitor who should be let in got ${answer.status} ${answer.body.slice(0, 200)}`);
  }
  return visitors;
}

/**
 * Waits until `check` gives something true, and gives it back. `within` is no promise, but when to give up: so long must
 * have passed by the clock, and really, as what other programs do takes real time.
 */
export async function eventually(what, check, { within = 60_000, every = 200 } = {}) {
  const [end, realEnd] = [Date.now(), performance.now()].map((time) => time + within);
  for (;;) {
    const result = await check();
    if (result) return result;
    if (Date.now() > end && performance.now() > realEnd)
      throw new Error(`not within ${within / 1000} s: ${what}`);
    await sleep(every);
  }
}

/** Waits for the next minute unless there is still so much time in this one: for what must happen in one minute. */
export async function roomInMinute(ms) {
  const left = MINUTE - (Date.now() % MINUTE);
  if (left < ms) await sleep(left + 50);
}

// Tickets, as the Worker seals them: written a second time here, from the description, so that tests can make those
// that no room would give: from the future, long expired.
const TICKET_VERSION = 2;
/** What stands for "not told" where people ahead would be. */
const NOT_TOLD = 2 ** 32 - 1;
/** Whether the visitor is a person, by its flag; 0: not known. */
const HUMAN = { unknown: 0, passed: 2, failed: 4 };

/** What is authenticated with a ticket: version, room and, behind a byte that no text has, what it is bound to. */
function ticketScope(version, room, binding) {
  const bound = binding ? [Buffer.of(0xff), Buffer.from(binding)] : [];
  return Buffer.concat([Buffer.of(version), Buffer.from(room), ...bound]);
}

/**
 * @param {string} room Its name.
 * @param {{ id?: bigint, bucket?: number, acceptedAt?: number, lastCheckIn?: number, refreshSeconds?: number,
 *   aheadAtFirst?: number, progress?: number, human?: "unknown" | "passed" | "failed" }} ticket
 * @param {{ version?: 1 | 2, binding?: string }} [how] Version 1 is the format of older deploys, which ends with the admission.
 */
export function sealTicket(room, ticket, key = KEY, { version = TICKET_VERSION, binding = "" } = {}) {
  const { lastCheckIn = Date.now(), acceptedAt } = ticket;
  const body = Buffer.alloc(version === 1 ? 29 : 36);
  body.writeUInt8((acceptedAt === undefined ? 0 : 1) | HUMAN[ticket.human ?? "unknown"], 0);
  body.writeBigUInt64BE(ticket.id ?? randomBytes(8).readBigUInt64BE(), 1);
  const minute = Math.floor(Math.min(lastCheckIn, acceptedAt ?? lastCheckIn) / MINUTE);
  body.writeUInt32BE(ticket.bucket ?? Math.min(minute, 2 ** 32 - 1), 9);
  body.writeBigUInt64BE(BigInt(lastCheckIn), 13);
  body.writeBigUInt64BE(BigInt(acceptedAt ?? 0), 21);
  if (version !== 1) {
    body.writeUInt16BE(ticket.refreshSeconds ?? 0, 29);
    body.writeUInt32BE(ticket.aheadAtFirst ?? NOT_TOLD, 31);
    body.writeUInt8(ticket.progress ?? 0, 35);
  }
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", Buffer.from(key, "base64"), nonce);
  cipher.setAAD(ticketScope(version, room, binding));
  const sealed = [Buffer.of(version), nonce, cipher.update(body), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString("base64url");
}

/** What a sealed ticket says. */
export function openTicket(room, value, key = KEY, binding = "") {
  const sealed = Buffer.from(value, "base64url");
  const decipher = createDecipheriv("aes-256-gcm", Buffer.from(key, "base64"), sealed.subarray(1, 13));
  decipher.setAAD(ticketScope(sealed[0], room, binding));
  decipher.setAuthTag(sealed.subarray(-16));
  const body = Buffer.concat([decipher.update(sealed.subarray(13, -16)), decipher.final()]);
  const flags = body.readUInt8(0);
  const aheadAtFirst = body.readUInt32BE(31);
  return {
    id: body.readBigUInt64BE(1),
    bucket: body.readUInt32BE(9),
    lastCheckIn: Number(body.readBigUInt64BE(13)),
    acceptedAt: flags & 1 ? Number(body.readBigUInt64BE(21)) : undefined,
    refreshSeconds: body.readUInt16BE(29),
    aheadAtFirst: aheadAtFirst === NOT_TOLD ? undefined : aheadAtFirst,
    progress: body.readUInt8(35),
    human: Object.keys(HUMAN).find((name) => HUMAN[name] === (flags & 6)),
    uncounted: (flags & 8) !== 0,
    subscribed: (flags & 16) !== 0,
    moves: flags >> 5,
  };
}

/** The origin: what it does is told by the last part of the path, so that it does the same below every room. */
export async function startOrigin() {
  /** @type {{ method: string, url: string, headers: import("node:http").IncomingHttpHeaders }[]} */
  const requests = [];
  /** @type {Set<{ part: string, finish: () => void }>} */
  const held = new Set();
  /** @type {Map<string, { status?: number, delay?: number, hang?: boolean, breaks?: boolean }>} */
  const moods = new Map();
  /** @type {Map<string, { now: number, most: number }>} */
  const underway = new Map();
  // Cookie headers may be large: what is too much is not for the origin to say here.
  const server = createServer({ maxHeaderSize: 1 << 20 }, (request, response) => {
    const { method, url, headers } = request;
    requests.push({ method, url, headers });
    const part = `/${url.split(/[/?]/, 2)[1]}`;
    const busy = underway.get(part) ?? { now: 0, most: 0 };
    underway.set(part, busy);
    busy.now += 1;
    busy.most = Math.max(busy.most, busy.now);
    response.on("close", () => {
      busy.now -= 1;
    });
    const { status, delay, hang, breaks } = moods.get(part) ?? {};
    if (breaks) return request.socket.destroy();
    response.setHeader("x-origin", "yes");
    const answer = () => {
      response.writeHead(status ?? 200, { "content-type": "text/plain" });
      response.end(`${method} ${url}`);
    };
    if (hang) return held.add({ part, finish: answer });
    if (delay) return sleep(delay).then(answer);
    if (status) return answer();
    const send = (status, text, more = {}) => {
      response.writeHead(status, text, more);
      response.end(`${method} ${url}`);
    };
    switch (url.split("?", 1)[0].split("/").at(-1)) {
      case "odd":
        return send(299, "Odd");
      case "cookies":
        return send(200, "OK", { "set-cookie": ["basket=1; Path=/", "seen=yes; Path=/; HttpOnly"] });
      case "bought":
        return send(200, "OK", { "anteroom-command": "revoke", "set-cookie": "order=7; Path=/" });
      case "known":
        return send(200, "OK", { "cf-waiting-room-command": "Revoke" });
      case "echo":
        response.writeHead(200, { "x-method": method, "x-type": headers["content-type"] ?? "" });
        return request.pipe(response);
      case "stream":
        response.writeHead(200, { "content-type": "text/plain" });
        response.write("first\n");
        return held.add({ part, finish: () => response.end("last\n") });
      case "redirect":
        return send(302, "Found", { location: "/elsewhere" });
      case "unchanged":
        response.writeHead(304, { etag: '"1"' });
        return response.end();
      case "empty":
        response.writeHead(204);
        return response.end();
      case "packed":
        response.writeHead(200, { "content-type": "text/plain", "content-encoding": "gzip" });
        return response.end(gzipSync(`${method} ${url}`));
      case "broken":
        return send(503, "Out of Order");
      default:
        return send(200, "OK", { "content-type": "text/plain" });
    }
  });
  // A connection that closes just when it is used again would look like an origin that is down.
  server.keepAliveTimeout = 10 * MINUTE;
  const sockets = new Set();
  server.on("upgrade", (request, socket, head) => {
    requests.push({ method: request.method, url: request.url, headers: request.headers });
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    const accept = createHash("sha1")
      .update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest("base64");
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n" +
        `sec-websocket-accept: ${accept}\r\nx-origin: yes\r\nset-cookie: socket=1; Path=/\r\n\r\n`,
    );
    const connection = new Socket(socket, head);
    connection.onText = (text) => connection.send(`echo ${text}`, { masked: false });
  });
  const listen = (port) =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => resolve(server.address().port));
    });
  const port = await listen(0);
  const close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
    });
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    /** The requests that it got for a path and what is below it. */
    below: (path) =>
      requests.filter(({ url }) => url === path || url.startsWith(`${path}/`) || url.startsWith(`${path}?`)),
    /** How it answers from now on what comes for a first part of a path; nothing: as ever. */
    behave: (part, mood = {}) => moods.set(part, mood),
    /** The most requests for a part that it had at once, from now on. */
    most: (part) => {
      const busy = underway.get(part) ?? { now: 0, most: 0 };
      const { most } = busy;
      busy.most = busy.now;
      return most;
    },
    /** Sends the rest of the held answers; `part`: only of those for a first part of a path. */
    release: (part) => {
      for (const one of held) {
        if (part !== undefined && one.part !== part) continue;
        held.delete(one);
        one.finish();
      }
    },
    close,
  };
}

/** What stands for the code where none is sent. */
const NO_CODE = 1005;

/** As much of RFC 6455 as text messages need. */
class Socket {
  /** @type {string[]} */
  #texts = [];
  /** @type {((text: string) => void)[]} */
  #readers = [];
  #received = Buffer.alloc(0);
  /** The code and the words with which the other end has closed it. @type {[number, string] | undefined} */
  closed;
  onText = (text) => {
    const reader = this.#readers.shift();
    if (reader) reader(text);
    else this.#texts.push(text);
  };

  constructor(stream, head) {
    this.stream = stream;
    stream.on("error", () => stream.destroy());
    stream.on("data", (chunk) => this.#take(chunk));
    this.#take(head);
  }

  #take(chunk) {
    this.#received = Buffer.concat([this.#received, chunk]);
    for (;;) {
      if (this.#received.length < 2) return;
      const kind = this.#received[0] & 0x0f;
      const masked = this.#received[1] >= 0x80;
      const short = this.#received[1] & 0x7f;
      const after = { 126: 4, 127: 10 }[short] ?? 2;
      if (this.#received.length < after) return;
      const length =
        { 4: () => this.#received.readUInt16BE(2), 10: () => this.#received.readUInt32BE(6) }[after]?.() ??
        short;
      const start = after + (masked ? 4 : 0);
      if (this.#received.length < start + length) return;
      const payload = Buffer.from(this.#received.subarray(start, start + length));
      if (masked) mask(payload, this.#received.subarray(after, start));
      this.#received = this.#received.subarray(start + length);
      if (kind === 1) this.onText(payload.toString());
      if (kind !== 8) continue;
      const code = payload.length < 2 ? NO_CODE : payload.readUInt16BE(0);
      this.closed = [code, payload.subarray(2).toString()];
      this.stream.end();
    }
  }

  /** Sends a text of up to 125 bytes; clients mask theirs. */
  send(text, { masked = true, kind = 1 } = {}) {
    const payload = Buffer.from(text);
    const key = masked ? randomBytes(4) : Buffer.alloc(0);
    if (masked) mask(payload, key);
    const head = Buffer.of(0x80 | kind, payload.length | (masked ? 0x80 : 0));
    this.stream.write(Buffer.concat([head, key, payload]));
  }

  /** Tells the other end that this is over; its answer shows as {@link closed}. */
  end() {
    this.send("", { kind: 8 });
  }

  /** The next text. */
  read() {
    const text = this.#texts.shift();
    return text === undefined ? new Promise((resolve) => this.#readers.push(resolve)) : Promise.resolve(text);
  }

  close() {
    this.stream.destroy();
  }
}

function mask(payload, key) {
  for (let i = 0; i < payload.length; i += 1) payload[i] ^= key[i % 4];
}
