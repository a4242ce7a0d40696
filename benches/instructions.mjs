// The core's instruction counts: benches/core, run under valgrind.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

import { environment, Failure, ROOT, run, STABLE, which } from "../tools/toolchain.mjs";

const CRATE = join(ROOT, "benches", "core");

/** @returns {Promise<{ function: string, case: string, instructions: number }[]>} per call */
export async function countInstructions() {
  if (!which("valgrind")) {
    throw new Failure("valgrind is missing: install it (Debian: apt-get install valgrind)");
  }
  const env = environment({ RUSTUP_TOOLCHAIN: STABLE });
  env.CARGO_TARGET_DIR ??= join(ROOT, "target");
  // wasm has no instructions for AES either: without this, the ciphers would be those of this machine.
  env.RUSTFLAGS = `${env.RUSTFLAGS ?? ""} --cfg aes_backend="soft" --cfg polyval_backend="soft"`.trim();
  const failure = "The bench of the core does not build: see above";
  await run("cargo", ["build", "-q", "--locked", "--features", "runner"], { cwd: CRATE, env, failure });
  await run("cargo", ["bench", "-q", "--locked", "--no-run"], { cwd: CRATE, env, failure });
  env.GUNGRAUN_RUNNER = join(env.CARGO_TARGET_DIR, "debug", "runner");
  const { stdout } = await promisify(execFile)(
    "cargo",
    ["bench", "-q", "--locked", "--", "--output-format=json"],
    { cwd: CRATE, env, maxBuffer: 1 << 26 },
  ).catch(({ stderr }) => {
    throw new Failure(`valgrind does not count: ${stderr.trim().split("\n").at(-1)}`);
  });
  return stdout.split("\n").filter(Boolean).map(countOf);
}

/** @param {string} line a bench's summary */
function countOf(line) {
  const { function_name: name, id, profiles } = JSON.parse(line);
  const { new: counted } = profiles[0].data.total.metrics.Ir.values;
  const [, what, times = "1"] = /^(.*?)(?:_times_(\d+))?$/.exec(id);
  const words = (text) => text.replaceAll("_", " ");
  return { function: words(name), case: words(what), instructions: Math.round(counted / Number(times)) };
}
