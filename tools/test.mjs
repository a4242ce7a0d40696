/**
 * `npm test`: everything, in order, up to the first failure. `npm test -- rust edge` runs those parts only.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { findChromium } from "./chromium.mjs";
import { setup } from "./setup.mjs";
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
  WASM_TARGET,
} from "./toolchain.mjs";

/** A test, or a file of them, that hangs fails after this long; the longest plays three real minutes. */
const TEST_TIMEOUT_MS = 20 * 60_000;

/**
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 */
function cargo(args, env = {}) {
  return run("cargo", args, { env: environment({ RUSTUP_TOOLCHAIN: STABLE, ...env }) });
}

/**
 * @param {string} directory below tests/
 * @param {{ atOnce: number, env?: Record<string, string> }} options `atOnce`: how many files run at the same time
 */
function nodeTests(directory, { atOnce, env = {} }) {
  const path = join(ROOT, "tests", directory);
  const files = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith(".test.mjs")) : [];
  if (files.length === 0) throw new Failure(`There is no test in tests/${directory}`);
  const args = [
    "--test",
    `--test-concurrency=${atOnce}`,
    `--test-timeout=${TEST_TIMEOUT_MS}`,
    "--test-reporter=spec",
  ];
  return run(node22(), [...args, ...files.sort().map((name) => join(path, name))], { env: environment(env) });
}

/** @type {{ parts: string[], title: string, work: () => Promise<void> }[]} */
const STEPS = [
  { parts: ["rust", "lint"], title: "rustfmt", work: () => cargo(["fmt", "--all", "--check"]) },
  {
    parts: ["rust", "lint"],
    title: "clippy, host",
    work: () => cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
  },
  {
    parts: ["rust", "lint"],
    title: "clippy, wasm",
    // By the compiler that builds it.
    work: () =>
      cargo(["clippy", "--lib", "--target", WASM_TARGET, "--", "-D", "warnings"], {
        RUSTUP_TOOLCHAIN: NIGHTLY,
      }),
  },
  { parts: ["rust"], title: "Rust tests", work: () => cargo(["test", "--workspace"]) },
  {
    parts: ["rust", "lint"],
    title: "rustdoc",
    work: () => cargo(["doc", "--workspace", "--no-deps"], { RUSTDOCFLAGS: "-D warnings" }),
  },
  {
    parts: ["lint"],
    title: "biome (JavaScript, CSS, JSON)",
    work: () => run(join(ROOT, "node_modules", ".bin", "biome"), ["check", "--error-on-warnings"]),
  },
  {
    parts: ["page"],
    title: "tests of the waiting page",
    work: () => nodeTests("page", { atOnce: 2 }),
  },
  { parts: ["edge", "browser"], title: "build", work: build },
  // Before the tests: a compiler beside them would slow down what they time.
  {
    parts: ["edge"],
    title: "build of the simulator",
    work: () => cargo(["build", "--package", "anteroom-sim"]),
  },
  {
    parts: ["edge"],
    title: "tests in workerd",
    // Each file has a runtime of its own and mostly waits for real minutes to pass: they may pass at the same time.
    work: () => nodeTests("edge", { atOnce: 6 }),
  },
  {
    parts: ["browser"],
    title: "tests in Chromium",
    // A browser is many processes: more than two of them starve each other on a small machine.
    work: async () => nodeTests("browser", { atOnce: 2, env: { CHROMIUM_PATH: await findChromium() } }),
  },
];

main(import.meta.url, async () => {
  const known = [...new Set(STEPS.flatMap(({ parts }) => parts))];
  const wanted = process.argv.slice(2);
  const unknown = wanted.find((part) => !known.includes(part));
  if (unknown)
    throw new Failure(`There is no part ${unknown}: choose from ${known.join(", ")}, or none for all`);

  const begin = performance.now();
  await setup({ tests: true });
  for (const { title, work } of STEPS.filter(
    ({ parts }) => wanted.length === 0 || parts.some((part) => wanted.includes(part)),
  )) {
    console.log(`\n== ${title}`);
    const since = performance.now();
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(`FAILED after ${seconds(since)}: ${title}. ${error.message}`, error.code);
    }
    console.log(`== ${title}: passed in ${seconds(since)}`);
  }
  console.log(`\nAll passed in ${seconds(begin)}.`);
});
