/**
 * `npm run fuzz`: each target of fuzz/ for a minute under libFuzzer, `npm run fuzz -- paths --minutes 60` one for longer.
 * What is found lies in build/fuzz/<target>/; a corpus there is gone on with.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { setup } from "./setup.mjs";
import { environment, Failure, main, NIGHTLY, ROOT, run, start, TOOLS } from "./toolchain.mjs";

const CARGO_FUZZ = "0.13.2";
/** An input may take so many seconds. */
const TIMEOUT_SECONDS = 5;
/** An input may have so many bytes. */
const LONGEST = 4_096;

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

/** @returns {Promise<string>} the program that fuzzes */
async function build() {
  const root = join(TOOLS, "cargo-fuzz");
  const env = environment({
    RUSTUP_TOOLCHAIN: NIGHTLY,
    CARGO_PROFILE_RELEASE_LTO: "off",
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "16",
  });
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

/** @param {string} program @param {string} target @param {number} minutes */
function fuzz(program, target, minutes) {
  const directory = join(ROOT, "build", "fuzz", target);
  const [corpus, seeds] = ["corpus", "seeds"].map((name) => join(directory, name));
  for (const made of [corpus, seeds]) mkdirSync(made, { recursive: true });
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
      { env: environment({ ANTEROOM_FUZZ: target, ANTEROOM_FUZZ_SEEDS: seeds }) },
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
    await setup();
    const program = await build();
    for (const target of chosen) {
      console.log(`\n== ${target}`);
      await fuzz(program, target, minutes);
    }
  },
  {
    help: `Usage: npm run fuzz -- [target…] [--minutes 1]

Runs each target for so long under libFuzzer, all of them if none is named: ${targets().join(", ")}.`,
  },
);
