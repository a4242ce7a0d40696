/**
 * `npm run bench`: what a request costs, compared with a Worker that only passes it on, and how many instructions the
 * core takes. docs/benchmarks.md says how to read it. It judges nothing: figures of time depend on the machine.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "./build.mjs";
import { setup } from "./setup.mjs";
import { Failure, main, ROOT, seconds, underNode22 } from "./toolchain.mjs";

/** In bytes; what tools/build.mjs allows. */
const LARGEST_GZIP = 640_000;

main(import.meta.url, async () => {
  const begin = performance.now();
  await setup({ tests: true });
  await underNode22();
  const options = await readOptions(process.argv.slice(2));
  if (!options) return;
  if (!existsSync("/proc/self/schedstat")) {
    throw new Failure(
      "CPU time is read from /proc/<pid>/schedstat, which this system does not have: use Linux",
    );
  }
  if (!options.build) await build();
  const directory = resolve(options.build ?? join(ROOT, "build"));

  const { measure } = await import("../benches/measure.mjs");
  const { buildWorkers } = await import("../benches/build.mjs");
  const { countInstructions } = await import("../benches/instructions.mjs");
  const { Wrong } = await import("../benches/load.mjs");
  const { WORKERD_VERSION } = await import("../benches/runtime.mjs");
  const { VARIANTS } = await import("../benches/variants.mjs");

  const chosen = (name) => !options.only || options.only.includes(name);
  const unknown = options.only?.find(
    (name) => name !== "core" && !VARIANTS.some((variant) => variant.name === name),
  );
  if (unknown) {
    const names = [...VARIANTS.map(({ name }) => name), "core"].join(", ");
    throw new Failure(`There is no row ${unknown}: choose from ${names}, or none for all`);
  }
  // Whatever is chosen is compared with the first.
  const variants = VARIANTS.filter(({ name }, index) => index === 0 || chosen(name));
  const { rounds, requests } = options;
  let workers = [];
  if (variants.length > 1 || chosen(variants[0].name)) {
    const built = await buildWorkers(directory);
    workers = await measure(variants, built, { rounds, requests, progress }).catch((error) => {
      if (error instanceof Wrong) throw new Failure(`The bench is wrong. ${error.message}`);
      throw error;
    });
  }
  let instructions = [];
  let missing;
  if (chosen("core")) {
    progress("counting the core's instructions");
    instructions = await countInstructions().catch((error) => {
      if (!(error instanceof Failure)) throw error;
      missing = error.message;
      return [];
    });
  }
  const gzip = gzipSync(readFileSync(join(directory, "index_bg.wasm")), { level: 9 }).length;

  const machine = cpus()[0]?.model ?? "unknown";
  const result = { workerd: WORKERD_VERSION, machine, rounds, requests, workers, gzip, instructions };
  progress("");
  console.log(await table(result));
  if (missing) console.error(`No instruction counts. ${missing}`);
  if (options.json) writeFileSync(options.json, `${JSON.stringify(result, null, 2)}\n`);
  console.log(`Measured in ${seconds(begin)}.`);
});

/** @param {string[]} args */
async function readOptions(args) {
  const { Command, CommanderError, InvalidArgumentError } = await import("commander");
  const whole = (text) => {
    if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
    throw new InvalidArgumentError("Give a whole number from 1.");
  };
  const program = new Command("npm run bench --")
    .description("Measures what a request costs, against a Worker that only passes it on.")
    .option("--quick", "a short run, for a first look: the figures vary more", false)
    .option("--rounds <count>", "how often each Worker is measured", whole)
    .option("--requests <count>", "requests per round", whole)
    .option("--only <rows...>", "these rows only (core: the instruction counts)")
    .option("--build <directory>", "an Anteroom that is built already, instead of build/")
    .option("--json <file>", "write all figures there, too")
    .exitOverride();
  try {
    program.parse(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw new Failure("", 2); // it has said it
  }
  const { quick, rounds = quick ? 15 : 60, requests = 400, ...more } = program.opts();
  return { rounds, requests, ...more };
}

/** Says what goes on, on one line of a terminal; nobody reads it in a file. @param {string} text */
function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

async function table({ workerd, machine, rounds, requests, workers, gzip, instructions }) {
  const { default: Table } = await import("cli-table3");
  const style = { head: [], border: [], compact: true };
  const parts = [];
  const times = (ratio) => `${ratio.toFixed(2)} x`;
  if (workers.length > 0) {
    const rows = new Table({
      head: ["CPU time per request", "us", "ratio", "half of the rounds", "goal", "requests/s", "ratio"],
      colAligns: ["left", "right", "right", "right", "right", "right", "right"],
      style,
    });
    let group;
    for (const row of workers) {
      if (row.group !== group) rows.push([row.group, "", "", "", "", "", ""]);
      ({ group } = row);
      rows.push([
        `  ${row.title}`,
        row.cpuMicroseconds.toFixed(0),
        times(row.ratio),
        row.quartiles.map((quartile) => quartile.toFixed(2)).join(" - "),
        row.goal ? `<= ${times(row.goal)}` : "",
        row.requestsPerSecond.toFixed(0),
        times(row.rateRatio),
      ]);
    }
    parts.push(
      `workerd ${workerd}, ${machine}; medians of ${rounds} rounds of ${requests} requests; ` +
        `ratios to ${workers[0].group}, ${workers[0].title}`,
      rows.toString(),
    );
  }
  const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;
  parts.push(`The Worker's wasm, gzip -9: ${kilobytes(gzip)} (goal: <= ${kilobytes(LARGEST_GZIP)})`);
  if (instructions.length > 0) {
    const rows = new Table({
      head: ["core, per call", "", "instructions"],
      colAligns: ["left", "left", "right"],
      style,
    });
    for (const row of instructions)
      rows.push([row.function, row.case, row.instructions.toLocaleString("en")]);
    parts.push(rows.toString());
  }
  return parts.join("\n");
}
