/**
 * `npm test`: everything, in order, up to the first failure. `npm test -- rust edge` runs those parts only, `npm test --
 * quick` what a minute and a half is enough for. `--repeat 10` runs it so many times, `--busy 2` beside so many loops that
 * do nothing but take the processor's time.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { findChromium } from "./chromium.mjs";
import { assemble } from "./package.mjs";
import { setup } from "./setup.mjs";
import { writeTables } from "./tables.mjs";
import {
  environment,
  Failure,
  main,
  NIGHTLY,
  node22,
  ROOT,
  run,
  STABLE,
  seconds,
  start,
  WASM_TARGET,
} from "./toolchain.mjs";

/** A test, or a file of them, that hangs fails after this long; the longest plays three real minutes. */
const TEST_TIMEOUT_MS = 20 * 60_000;
/** What shows within seconds that a build works in workerd. */
const SMOKE = ["edge/passing.test.mjs", "edge/routes.test.mjs"];
/**
 * They begin first, longest first, so that nothing long is left when all else is done. The first plays three real minutes, the
 * second a bit more than one.
 */
const LONGEST = [
  "edge/crowd.test.mjs",
  "package/serve.test.mjs",
  "edge/far.test.mjs",
  "browser/dashboard.test.mjs",
  "edge/origin.test.mjs",
  "edge/replay.test.mjs",
  "edge/faults.test.mjs",
  "browser/in-line.test.mjs",
];

/**
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 */
function cargo(args, env = {}) {
  return run("cargo", args, { env: environment({ RUSTUP_TOOLCHAIN: STABLE, ...env }) });
}

/** @param {string} directory below tests/ @returns {string[]} its files of tests */
function testsIn(directory) {
  const names = readdirSync(join(ROOT, "tests", directory)).filter((name) => name.endsWith(".test.mjs"));
  if (names.length === 0) throw new Failure(`There is no test in tests/${directory}`);
  return names.map((name) => `${directory}/${name}`);
}

/**
 * @param {string[]} files below tests/, in the order in which they begin
 * @param {{ atOnce: number, env?: Record<string, string> }} options `atOnce`: how many run at the same time
 */
function nodeTests(files, { atOnce, env = {} }) {
  const paths = files.map((name) => join(ROOT, "tests", name));
  const runner = join(ROOT, "tools", "test-files.mjs");
  return run(node22(), [runner, `${TEST_TIMEOUT_MS}`, `${atOnce}`, ...paths], { env: environment(env) });
}

/** @type {{ parts: string[], title: string, work: (wanted: string[]) => Promise<void> }[]} `wanted`: as {@link testOnce} */
const STEPS = [
  {
    parts: ["lint", "quick"],
    title: "biome (JavaScript, CSS, JSON)",
    work: () => run(join(ROOT, "node_modules", ".bin", "biome"), ["check", "--error-on-warnings"]),
  },
  { parts: ["rust", "lint", "quick"], title: "rustfmt", work: () => cargo(["fmt", "--all", "--check"]) },
  // Of which the description of the API is made.
  { parts: ["page", "quick"], title: "tables of fields and endpoints", work: writeTables },
  {
    parts: ["page", "quick"],
    title: "tests of the waiting page",
    work: () => nodeTests(testsIn("page"), { atOnce: 2 }),
  },
  {
    parts: ["rust", "lint", "quick"],
    title: "clippy, host",
    work: () => cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
  },
  {
    parts: ["rust", "lint"],
    title: "clippy, wasm",
    // By the compiler that builds it. One by one: together they would get the same features, and the core is the Worker's then.
    work: async () => {
      for (const name of ["anteroom", "anteroom-command"]) {
        const args = ["--package", name, "--lib", "--target", WASM_TARGET, "--", "-D", "warnings"];
        await cargo(["clippy", ...args], { RUSTUP_TOOLCHAIN: NIGHTLY });
      }
    },
  },
  { parts: ["quick"], title: "tests of the core", work: () => cargo(["test", "--test", "core"]) },
  { parts: ["rust"], title: "Rust tests", work: () => cargo(["test", "--workspace"]) },
  {
    parts: ["rust", "lint"],
    title: "rustdoc",
    work: () => cargo(["doc", "--workspace", "--no-deps"], { RUSTDOCFLAGS: "-D warnings" }),
  },
  { parts: ["edge", "browser", "package", "quick"], title: "build", work: build },
  {
    parts: ["quick"],
    title: "a few tests in workerd",
    work: () => nodeTests(SMOKE, { atOnce: 2 }),
  },
  // Before the tests, one of which takes real time: a compiler beside it would take the processors.
  {
    parts: ["edge", "package"],
    title: "build of the simulator and the check",
    // Of all packages, as the Rust tests are built: for two of them alone cargo would build all they need once more.
    work: () => cargo(["build", "--workspace", "--bins"]),
  },
  { parts: ["package"], title: "build of the npm package", work: assemble },
  {
    parts: ["edge", "browser", "package"],
    title: "tests in workerd and in Chromium, and of the npm package",
    // More at once than there are processors: some play real time, and mostly wait. Most have a clock of their own, and
    // use what they get.
    work: async (wanted) => {
      const parts = ["edge", "browser", "package"].filter(
        (part) => wanted.length === 0 || wanted.includes(part),
      );
      const files = parts.flatMap(testsIn);
      const env = parts.includes("browser") ? { CHROMIUM_PATH: await findChromium() } : {};
      const first = LONGEST.filter((name) => files.includes(name));
      await nodeTests([...new Set([...first, ...files])], { atOnce: 4, env });
    },
  },
];

const PARTS = [...new Set(STEPS.flatMap(({ parts }) => parts))];

/** @param {string[]} wanted parts; none: all but the quick one, which is a choice from them */
async function testOnce(wanted) {
  const begin = performance.now();
  const isWanted = ({ parts }) =>
    wanted.length === 0
      ? parts.some((part) => part !== "quick")
      : parts.some((part) => wanted.includes(part));
  for (const { title, work } of STEPS.filter(isWanted)) {
    console.log(`\n== ${title}`);
    const since = performance.now();
    try {
      await work(wanted);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(`FAILED after ${seconds(since)}: ${title}. ${error.message}`, error.code);
    }
    console.log(`== ${title}: passed in ${seconds(since)}`);
  }
  console.log(`\nAll passed in ${seconds(begin)}.`);
  return seconds(begin);
}

/** @returns {{ wanted: string[], repeat: number, busy: number }} */
function readOptions() {
  let read;
  try {
    const options = { repeat: { type: "string", default: "1" }, busy: { type: "string", default: "0" } };
    read = parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new Failure(error.message);
  }
  const { values, positionals: wanted } = read;
  const unknown = wanted.find((part) => !PARTS.includes(part));
  if (unknown)
    throw new Failure(`There is no part ${unknown}: choose from ${PARTS.join(", ")}, or none for all`);
  const [repeat, busy] = [values.repeat, values.busy].map(Number);
  if (!(Number.isInteger(repeat) && repeat >= 1 && Number.isInteger(busy) && busy >= 0))
    throw new Failure("--repeat takes a whole number from 1, --busy one from 0");
  return { wanted, repeat, busy };
}

main(
  import.meta.url,
  async () => {
    const { wanted, repeat, busy } = readOptions();
    await setup({ tests: true });
    for (let loop = 0; loop < busy; loop += 1) start(process.execPath, ["--eval", "for (;;);"]);
    const times = [];
    const list = () => times.map((time, index) => `\n  run ${index + 1}: ${time}`).join("");
    for (let number = 1; number <= repeat; number += 1) {
      try {
        times.push(await testOnce(wanted));
      } catch (error) {
        if (error instanceof Failure && repeat > 1)
          error.message = `Run ${number} of ${repeat}: ${error.message}${list()}`;
        throw error;
      }
    }
    if (repeat > 1) console.log(`\n${repeat} runs, all green:${list()}`);
  },
  {
    help: `Usage: npm test -- [parts] [--repeat <times>] [--busy <loops>]

Runs the tests: ${PARTS.join(", ")}; without a part all but quick, which is a choice from them.
--busy runs them beside so many loops that take the processor's time.`,
  },
);
