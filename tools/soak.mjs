/**
 * `npm run soak`: a full room in real workerd for an hour, with a crowd of three times of what it takes. Its limits must hold,
 * its log stay empty and its memory stop growing; in the middle of it objects may restart, or all of it.
 */
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";

import { build } from "./build.mjs";
import { setup } from "./setup.mjs";
import { environment, Failure, main, node22, ROOT, start, underNode22 } from "./toolchain.mjs";

const HELP = `Usage: npm run soak -- [--minutes 60] [--users 300] [--rate 15] [--faults] [--deploy]

Keeps a room of so many active users full on this machine: so many visitors come in a second, and
whoever waits gives up after four minutes, so that the queue ceases to grow. Exit status 1: a limit
did not hold, the log was not empty, or the memory grew to the end (judged from 20 minutes on).

--faults: from the middle on, for a quarter of the time, one object after the other loses its memory and whatever it is
about, each kind every 40 seconds. The limits must hold all the same.
--deploy: in the middle all of it ends at once and is started anew. What was not reported in that moment is lost, and a
minute later a few users may be active beyond the limit.`;

const SAMPLE_MS = 5_000;
const SESSION_SECONDS = 60;
/** After so long somebody who waits gives up: so the queue ceases to grow, and memory has to as well. */
const PATIENCE_SECONDS = 240;
/** Memory of the last quarter may be so many times that of the second one, before it counts as growth. */
const GROWTH = 1.15;
/** The least minutes after which that says something: at first each isolate takes what it needs. */
const LEAST_MINUTES = 20;
const MIB = 2 ** 20;
/** With --faults: the time between two restarts, and the objects in their order, by their bindings. */
const RESTART_MS = 10_000;
const RESTARTED = { COUNTER: "sale/XXX", DATA_CENTER: "sale/XXX", GLOBAL: "sale", ANYWHERE: "sale" };
/** A request for this path restarts an object; nobody of the crowd asks for it. */
const RESTART = "/restart-by-the-soak";
/** What an object that is restarted so says, and the runtime with it. */
const RESTARTS = "restarted by the soak";

/** What the runtime says of itself where an alarm rings some milliseconds late. */
const ALARM_OVERDUE = "NOSENTRY SQLite alarm overdue";

/** The Worker as it is, with objects that can be restarted. */
const ENTRY = `
import * as built from "./index.js";

const restartable = (Real) =>
  class extends Real {
    constructor(state, env) {
      super(state, env);
      this.state = state;
    }
    fetch(request) {
      if (new URL(request.url).pathname === "${RESTART}") this.state.abort("${RESTARTS}");
      return super.fetch(request);
    }
  };

export const Counter = restartable(built.Counter);
export const Anywhere = restartable(built.Anywhere);
export const DataCenter = restartable(built.DataCenter);
export const Global = restartable(built.Global);
export const { Health, Config } = built;

export default {
  ...built.default,
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname !== "${RESTART}") return built.default.fetch(request, env, context);
    const object = env[searchParams.get("binding")].getByName(searchParams.get("name"));
    const ended = await object.fetch(request).then(() => false, () => true);
    return new Response("", { status: ended ? 200 : 500 });
  },
};
`;

function readOptions() {
  const option = (value) => ({ type: "string", default: value });
  let values;
  try {
    const options = {
      minutes: option("60"),
      users: option("300"),
      rate: option("15"),
      deploy: { type: "boolean" },
      faults: { type: "boolean" },
    };
    ({ values } = parseArgs({ options }));
  } catch (error) {
    throw new Failure(error.message, 2);
  }
  const { deploy, faults, ...numbers } = values;
  for (const [name, value] of Object.entries(numbers)) {
    if (!(Number(value) > 0)) throw new Failure(`--${name} takes a number above 0`, 2);
  }
  return {
    deploy,
    faults,
    ...Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, Number(value)])),
  };
}

/** @returns {Promise<number>} a port that nobody uses */
function freePort() {
  return new Promise((done, fail) => {
    const server = createServer().once("error", fail);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

/**
 * Restarts one object after the other.
 * @param {string} url @param {number} milliseconds how long
 * @returns {Promise<number>} how many restarts there were
 */
async function restart(url, milliseconds) {
  const end = performance.now() + milliseconds;
  let restarts = 0;
  while (performance.now() < end) {
    for (const [binding, name] of Object.entries(RESTARTED)) {
      const { ok } = await fetch(`${url}${RESTART}?${new URLSearchParams({ binding, name })}`);
      if (!ok) throw new Failure(`${binding} did not restart`);
      restarts += 1;
      await pause(RESTART_MS);
    }
  }
  return restarts;
}

/** The middle one of some numbers. */
const median = (numbers) => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)];

main(
  import.meta.url,
  async () => {
    const { minutes, users, rate, faults, deploy } = readOptions();
    await setup({ tests: true });
    await underNode22();
    await build();
    const { startOrigin } = await import("../benches/origin.mjs");
    const { Runtime } = await import("../benches/runtime.mjs");
    const { anteroomWorker } = await import("../benches/build.mjs");
    const { ADMIN_TOKEN, CLASSES, KEY, room } = await import("../tests/edge/world.mjs");
    const { clock } = await import("../tests/edge/clock.mjs");
    clock.goReal();

    // Each collection is a whole one, so that what grows is in use: else V8 lets garbage lie for tens of minutes.
    process.env.MINIFLARE_WORKERD_V8_FLAGS = `${environment().MINIFLARE_WORKERD_V8_FLAGS} --gc-global`;
    const origin = await startOrigin();
    const limits = { total_active_users: users, new_users_per_minute: users };
    const runtime = await Runtime.start(
      {
        modules: [
          { type: "ESModule", path: "soak.js", contents: ENTRY },
          ...anteroomWorker(join(ROOT, "build")),
        ],
        durableObjects: Object.fromEntries(
          Object.entries(CLASSES).map(([binding, className]) => [binding, { className, useSQLite: true }]),
        ),
        bindings: {
          COOKIE_KEYS: KEY,
          ADMIN_TOKEN,
          ROOM_SALE: room("/", { session_duration: SESSION_SECONDS / 60, ...limits }),
        },
      },
      origin.address,
      await freePort(),
    );
    const seconds = Math.round(minutes * 60);
    const crowd = {
      url: `${runtime.url}/`,
      visitors: Math.ceil(rate * seconds),
      rate,
      duration: seconds,
      session: SESSION_SECONDS,
      patience: PATIENCE_SECONDS,
      progress: 60,
    };
    const args = Object.entries(crowd).flatMap(([name, value]) => [`--${name}`, `${value}`]);
    const child = start(node22(), [join(ROOT, "tools", "crowd.mjs"), ...args], {
      env: environment({ ANTEROOM_TOKEN: ADMIN_TOKEN }),
    });
    const samples = [];
    let runs = true;
    const sampling = setInterval(() => runs && samples.push(runtime.memoryBytes()), SAMPLE_MS);
    const deploys = async () => {
      // Meanwhile there is no workerd to weigh.
      runs = false;
      await runtime.deploy();
      runs = true;
    };
    const deploying = deploy && setTimeout(deploys, (seconds * 1000) / 2);
    let restarts = 0;
    const restarting = faults && pause((seconds * 1000) / 2).then(() => restart(runtime.url, seconds * 250));
    const code = await new Promise((done) => child.on("exit", done));
    if (faults) restarts = await restarting;
    clearInterval(sampling);
    clearTimeout(deploying);
    await runtime.close();
    await origin.close();
    const quarters = [0, 1, 2, 3].map((quarter) =>
      median(samples.slice((quarter * samples.length) / 4, ((quarter + 1) * samples.length) / 4)),
    );
    const grown = quarters[3] / quarters[1];
    const told = quarters.map((bytes) => Math.round(bytes / MIB)).join(", ");
    console.log(`Memory of workerd in each quarter: ${told} MiB`);
    if (faults) console.log(`Restarts of objects in the third quarter: ${restarts}`);
    const said = (line) => line !== "" && ![RESTARTS, ALARM_OVERDUE].some((known) => line.includes(known));
    const log = runtime.log.split("\n").filter(said);
    const broken = [
      code !== 0 && "the crowd says so above",
      log.length > 0 && `the log is not empty:\n${log.join("\n")}`,
      minutes >= LEAST_MINUTES && !(grown < GROWTH) && `memory grew ${grown.toFixed(2)} times`,
    ].filter(Boolean);
    if (broken.length > 0) throw new Failure(`Broken: ${broken.join("; ")}`);
  },
  { help: HELP },
);
