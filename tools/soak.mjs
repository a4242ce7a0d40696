/**
 * `npm run soak`: a full room in real workerd for an hour, with a crowd of three times of what it takes. Its limits must hold,
 * its log stay empty and its memory stop growing.
 */
import { createServer } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { build } from "./build.mjs";
import { setup } from "./setup.mjs";
import { environment, Failure, main, node22, ROOT, start, underNode22 } from "./toolchain.mjs";

const HELP = `Usage: npm run soak -- [--minutes 60] [--users 300] [--rate 15] [--deploy]

Keeps a room of so many active users full on this machine: so many visitors come in a second. Exit status 1: a limit
did not hold, the log was not empty, or the memory grew to the end (judged from 20 minutes on).

--deploy: in the middle all of it ends at once and is started anew. What was not reported in that moment is lost, and a
minute later a few users may be active beyond the limit.`;

const SAMPLE_MS = 5_000;
const SESSION_SECONDS = 60;
/** Memory of the last quarter may be so many times that of the second one, before it counts as growth. */
const GROWTH = 1.15;
/** The least minutes after which that says something: at first each isolate takes what it needs. */
const LEAST_MINUTES = 20;
const MIB = 2 ** 20;

function readOptions() {
  const option = (value) => ({ type: "string", default: value });
  let values;
  try {
    const options = {
      minutes: option("60"),
      users: option("300"),
      rate: option("15"),
      deploy: { type: "boolean" },
    };
    ({ values } = parseArgs({ options }));
  } catch (error) {
    throw new Failure(error.message, 2);
  }
  const { deploy, ...numbers } = values;
  for (const [name, value] of Object.entries(numbers)) {
    if (!(Number(value) > 0)) throw new Failure(`--${name} takes a number above 0`, 2);
  }
  return {
    deploy,
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

/** The middle one of some numbers. */
const median = (numbers) => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)];

main(
  import.meta.url,
  async () => {
    const { minutes, users, rate, deploy } = readOptions();
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
        modules: anteroomWorker(join(ROOT, "build")),
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
    const code = await new Promise((done) => child.on("exit", done));
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
    const broken = [
      code !== 0 && "the crowd says so above",
      runtime.log !== "" && `the log is not empty:\n${runtime.log}`,
      minutes >= LEAST_MINUTES && !(grown < GROWTH) && `memory grew ${grown.toFixed(2)} times`,
    ].filter(Boolean);
    if (broken.length > 0) throw new Failure(`Broken: ${broken.join("; ")}`);
  },
  { help: HELP },
);
