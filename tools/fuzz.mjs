/**
 * `npm run fuzz`: each target of fuzz/ for a minute under libFuzzer, `npm run fuzz -- paths --minutes 60` one for longer.
 * What is found lies in build/fuzz/<target>/; a corpus there is gone on with. Of the inputs that took longest valgrind then counts
 * the instructions, in a program without what libFuzzer puts into it.
 */
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";

import { setup } from "./setup.mjs";
import { environment, Failure, main, NIGHTLY, ROOT, run, STABLE, start, TOOLS, which } from "./toolchain.mjs";

const CARGO_FUZZ = "0.13.2";
/** An input may take so many seconds. */
const TIMEOUT_SECONDS = 5;
/** An input may have so many bytes. */
const LONGEST = 4_096;
/** An input may take so many instructions for each KiB, and for one at least: what a core does in a millisecond. */
const INSTRUCTIONS_PER_KIB = 3_000_000;
/** Here messages are carried out, too: 30 bytes may ask for the history of a month. That is told and not judged. */
const CARRIED_OUT = "machines";
/** Of how many inputs that took longest they are counted. */
const COUNTED = 3;
/** How often an input is run, so that what else the program does is not counted. */
const TIMES = 10;

/** All targets, as fuzz/src/lib.rs has them. */
function targets() {
  const [, table] = readFileSync(join(ROOT, "fuzz", "src", "lib.rs"), "utf8").match(
    /^targets! \{\n(.*?)^\}/ms,
  );
  return table.split("\n").flatMap((line) => line.match(/: (.*);/)?.[1].split(" ") ?? []);
}

function readOptions() {
  let read;
  try {
    read = parseArgs({ options: { minutes: { type: "string", default: "1" } }, allowPositionals: true });
  } catch (error) {
    throw new Failure(error.message, 2);
  }
  const minutes = Number(read.values.minutes);
  if (!(minutes > 0)) throw new Failure("--minutes takes a number above 0", 2);
  const known = targets();
  const unknown = read.positionals.find((name) => !known.includes(name));
  if (unknown) throw new Failure(`There is no target ${unknown}: choose from ${known.join(", ")}`, 2);
  return { minutes, chosen: read.positionals.length > 0 ? read.positionals : known };
}

/** What both programs are built with. */
const FAST = { CARGO_PROFILE_RELEASE_LTO: "off", CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "16" };

/** @returns {Promise<string>} the program that fuzzes */
async function build() {
  const root = join(TOOLS, "cargo-fuzz");
  const env = environment({ RUSTUP_TOOLCHAIN: NIGHTLY, ...FAST });
  const program = join(root, "bin", "cargo-fuzz");
  if (!existsSync(program)) {
    await run("cargo", ["install", "cargo-fuzz", "--version", CARGO_FUZZ, "--locked", "--root", root], {
      env,
    });
  }
  // There is no unsafe code of ours that a sanitizer would look at.
  const of = ["--fuzz-dir", "fuzz", "--sanitizer", "none", "--features", "libfuzzer", "libfuzzer"];
  await run(program, ["fuzz", "build", ...of], { env });
  const host = /^host: (.*)$/m.exec(spawnSync("rustc", ["-vV"], { env, encoding: "utf8" }).stdout)[1];
  return join(ROOT, "target", host, "release", "libfuzzer");
}

/** @returns {Promise<string>} the program that runs one input */
async function buildOnce() {
  const env = environment({ RUSTUP_TOOLCHAIN: STABLE, ...FAST });
  await run("cargo", ["build", "-q", "--locked", "--release", "-p", "anteroom-fuzz", "--bin", "once"], {
    env,
  });
  return join(ROOT, "target", "release", "once");
}

const directoryOf = (target) => join(ROOT, "build", "fuzz", target);

/** Says how many instructions the slowest inputs take. @param {string} program @param {string} target */
async function count(program, target) {
  const directory = join(directoryOf(target), "slowest");
  const counted = [];
  for (const name of readdirSync(directory).sort().slice(-COUNTED)) {
    const file = join(directory, name);
    const [once, again] = await Promise.all(
      [1, 1 + TIMES].map((times) => instructions(program, target, file, times)),
    );
    counted.push({ file, perKib: (again - once) / TIMES / Math.max(1, statSync(file).size / 1_024) });
  }
  const [most] = counted.sort((one, other) => other.perKib - one.perKib);
  if (!most) throw new Failure(`${target}: there is no slowest input in ${directory}`);
  const told = `${Math.round(most.perKib).toLocaleString("en")} instructions for a KiB at most`;
  if (target !== CARRIED_OUT && most.perKib > INSTRUCTIONS_PER_KIB)
    throw new Failure(`${target}: ${told}, by ${most.file}`);
  console.log(`${target}: ${told}`);
}

/** How many there are while an input is run so many times, and the program began and ended. */
async function instructions(program, target, file, times) {
  const counting = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"];
  const { stderr } = await promisify(execFile)("valgrind", [...counting, program, target, file, `${times}`]);
  return Number(/I\s+refs:\s+([\d,]+)/.exec(stderr)[1].replaceAll(",", ""));
}

/** @param {string} program @param {string} target @param {number} minutes */
function fuzz(program, target, minutes) {
  const directory = directoryOf(target);
  const [corpus, seeds, slowest] = ["corpus", "seeds", "slowest"].map((name) => join(directory, name));
  // How long something took says nothing beside what another run has taken.
  rmSync(slowest, { recursive: true, force: true });
  for (const made of [corpus, seeds, slowest]) mkdirSync(made, { recursive: true });
  return new Promise((done, fail) => {
    const child = start(
      program,
      [
        corpus,
        seeds,
        `-artifact_prefix=${directory}/`,
        `-max_total_time=${Math.round(minutes * 60)}`,
        `-timeout=${TIMEOUT_SECONDS}`,
        `-max_len=${LONGEST}`,
        "-print_final_stats=1",
        "-use_value_profile=1",
      ],
      {
        env: environment({
          ANTEROOM_FUZZ: target,
          ANTEROOM_FUZZ_SEEDS: seeds,
          ANTEROOM_FUZZ_SLOWEST: slowest,
        }),
      },
    );
    child.on("error", fail);
    child.on("exit", (code) => {
      if (code === 0) done();
      else fail(new Failure(`${target}: the input that broke a promise is in ${directory}`));
    });
  });
}

main(
  import.meta.url,
  async () => {
    const { minutes, chosen } = readOptions();
    if (!which("valgrind")) {
      throw new Failure("valgrind is missing: install it (Debian: apt-get install valgrind)");
    }
    await setup();
    const [program, once] = [await build(), await buildOnce()];
    for (const target of chosen) {
      console.log(`\n== ${target}`);
      await fuzz(program, target, minutes);
      await count(once, target);
    }
  },
  {
    help: `Usage: npm run fuzz -- [target…] [--minutes 1]

Runs each target for so long under libFuzzer, all of them if none is named: ${targets().join(", ")}.
Then valgrind counts what the slowest inputs take. Exit status 1: a promise is broken, or an input takes more than
${INSTRUCTIONS_PER_KIB.toLocaleString("en")} instructions for a KiB.`,
  },
);
