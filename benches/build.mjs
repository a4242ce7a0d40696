// Builds what the bench compares, into target/bench/.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { build } from "esbuild";

import { ROOT } from "../tools/toolchain.mjs";
import { compileWasm } from "../tools/wasm.mjs";

const TARGET = join(ROOT, "target", "bench");
const HERE = join(ROOT, "benches");

/** A Worker of Rust, as Miniflare takes it. @param {string} script @param {string} directory where its WebAssembly is */
function wasmWorker(script, directory) {
  return [
    { type: "ESModule", path: "index.js", contents: script },
    { type: "CompiledWasm", path: "index_bg.wasm", contents: readFileSync(join(directory, "index_bg.wasm")) },
  ];
}

/** @param {string} entry a file @returns {Promise<string>} it and what it imports, as one script */
async function bundle(entry) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    external: ["node:*", "*.wasm"],
    write: false,
    logLevel: "error",
  });
  return outputFiles[0].text;
}

/** Anteroom, as Miniflare takes it. @param {string} directory where it is built */
export function anteroomWorker(directory) {
  return wasmWorker(readFileSync(join(directory, "index.js"), "utf8"), directory);
}

/** A Worker in JavaScript, with what it imports, as Miniflare takes it. @param {string} name */
async function javaScriptWorker(name) {
  return [{ type: "ESModule", path: name, contents: await bundle(join(HERE, "workers", name)) }];
}

/** Compiled as the Worker is, so that only what is in it makes a difference. */
async function rustPassThrough() {
  await compileWasm(join(HERE, "rust-pass-through"), "rust_pass_through", TARGET);
  return wasmWorker(await bundle(join(HERE, "workers", "rust-pass-through.js")), TARGET);
}

/**
 * @param {string} directory where Anteroom is built
 * @returns {Promise<import("./variants.mjs").Built>}
 */
export async function buildWorkers(directory) {
  return {
    passThrough: await javaScriptWorker("pass-through.js"),
    rustPassThrough: await rustPassThrough(),
    anteroom: anteroomWorker(directory),
    queueIt: await javaScriptWorker("queue-it.js"),
  };
}
