// Builds what the bench compares, into target/bench/.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { build } from "esbuild";

import { environment, NIGHTLY, ROOT, run, SHIMS, TOOLS } from "../tools/toolchain.mjs";

const TARGET = join(ROOT, "target", "bench");
const HERE = join(ROOT, "benches");

/** A Worker that worker-build has made, as Miniflare takes it. @param {string} directory */
function wasmWorker(directory) {
  return [
    { type: "ESModule", path: "index.js", contents: readFileSync(join(directory, "index.js"), "utf8") },
    { type: "CompiledWasm", path: "index_bg.wasm", contents: readFileSync(join(directory, "index_bg.wasm")) },
  ];
}

/** A Worker in JavaScript, with what it imports, as Miniflare takes it. @param {string} name */
async function javaScriptWorker(name) {
  const { outputFiles } = await build({
    entryPoints: [join(HERE, "workers", name)],
    bundle: true,
    format: "esm",
    external: ["node:*"],
    write: false,
    logLevel: "error",
  });
  return [{ type: "ESModule", path: name, contents: outputFiles[0].text }];
}

/** As tools/build.mjs builds the Worker, so that only what is in it makes a difference. */
async function rustPassThrough() {
  const directory = join(TARGET, "rust-pass-through");
  mkdirSync(directory, { recursive: true });
  const env = environment();
  await run(join(TOOLS, "bin", "worker-build"), ["--release", "--panic-unwind", "--out-dir", directory], {
    cwd: join(HERE, "rust-pass-through"),
    env: {
      ...env,
      CARGO_TARGET_DIR: env.CARGO_TARGET_DIR ?? join(ROOT, "target"),
      WASM_BINDGEN_BIN: join(TOOLS, "bin", "wasm-bindgen"),
      ESBUILD_BIN: join(ROOT, "node_modules", "esbuild", "bin", "esbuild"),
      WASM_OPT_BIN: join(ROOT, "node_modules", "binaryen", "bin", "wasm-opt"),
      RUSTUP_TOOLCHAIN: NIGHTLY,
      RUSTFLAGS: `${env.RUSTFLAGS ?? ""} -Zfmt-debug=none -Zlocation-detail=none`.trim(),
      CARGO_UNSTABLE_BUILD_STD_FEATURES: "optimize_for_size",
      ANTEROOM_PATH: env.PATH,
      PATH: `${SHIMS}:${env.PATH}`,
    },
    failure: "The Rust pass-through Worker does not build: see above",
  });
  return wasmWorker(directory);
}

/**
 * @param {string} directory where Anteroom is built
 * @returns {Promise<import("./variants.mjs").Built>}
 */
export async function buildWorkers(directory) {
  return {
    passThrough: await javaScriptWorker("pass-through.js"),
    rustPassThrough: await rustPassThrough(),
    anteroom: wasmWorker(directory),
    queueIt: await javaScriptWorker("queue-it.js"),
  };
}
