/**
 * Compiles Rust to what a Worker imports: cargo, then wasm-bindgen, then wasm-opt. So does Cloudflare's worker-build; but
 * compiling that takes minutes, and it calls for `cargo +nightly`, whichever nightly a machine has.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { during, environment, NIGHTLY, ROOT, run, TOOLS, WASM_TARGET } from "./toolchain.mjs";

const BINDGEN = join(ROOT, "tools", "bindgen", "Cargo.toml");
/** A directory of its own, since cargo locks it, and wasm-bindgen is compiled beside the Worker. */
const BINDGEN_TARGET = join(TOOLS, "bindgen");
const WASM_OPT = join(ROOT, "node_modules", "binaryen", "bin", "wasm-opt");

/** As a cdylib alone: with an rlib, which other crates import, cargo optimises each crate by itself, and it becomes larger. */
const COMPILE = [
  ...["rustc", "--quiet", "--lib", "--crate-type=cdylib", "--release", "--target", WASM_TARGET],
  "-Zbuild-std=std,panic_unwind",
];
/** The Worker's settings; in Cargo.toml are the simulator's, which runs for hours and whose size does not count. */
const PROFILE = {
  CARGO_PROFILE_RELEASE_OPT_LEVEL: "z",
  CARGO_PROFILE_RELEASE_LTO: "true",
  CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "1",
  // wasm-bindgen reads what would be stripped; wasm-opt strips it then.
  CARGO_PROFILE_RELEASE_STRIP: "none",
  CARGO_UNSTABLE_BUILD_STD_FEATURES: "optimize_for_size",
};
/** Panics unwind. A Worker has no use for Debug texts of std, and its size is what every cold start loads. */
const FLAGS = '-Cpanic=unwind -Zfmt-debug=none -Zlocation-detail=none --cfg sha2_backend_soft="compact"';
/** Those of the target and of its exceptions: what wasm-opt knows beyond them, workerd may not know. */
const FEATURES = [
  "mutable-globals",
  "sign-ext",
  "nontrapping-float-to-int",
  "bulk-memory",
  "multivalue",
  "reference-types",
  "exception-handling",
].map((feature) => `--enable-${feature}`);
/** A function put into its only caller makes the Worker smaller, and larger once it is packed: what is alike is then apart. */
const OPTIMIZE = [
  ...["--strip-debug", "--strip-producers", "--strip-target-features"],
  ...["-Oz", "--low-memory-unused", "--one-caller-inline-max-function-size=24"],
  // Leaves out code for values that never occur, by all that the module ever stores.
  "--gufa",
  // What the first pass has left is alike in more places.
  "-Oz",
];

/** What makes a build what it is, beside its sources. */
export const SETTINGS = [NIGHTLY, JSON.stringify(PROFILE), ...COMPILE, FLAGS, ...OPTIMIZE];

/** The commands of the npm package. A simulation should be fast; a panic ends them, as it does on a host. */
const COMMANDS = {
  // Else the paths of whoever has compiled it are in it.
  RUSTFLAGS: "-Zlocation-detail=none",
  CARGO_PROFILE_RELEASE_OPT_LEVEL: "s",
  CARGO_PROFILE_RELEASE_LTO: "fat",
  CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "1",
};
const OPTIMIZE_COMMANDS = ["--strip-debug", "--strip-producers", "--strip-target-features", "-O2"];

/**
 * The commands that are Rust, for Node.
 * @param {string} directory gets `index.js` and the `index_bg.wasm` that it reads
 */
export async function compileCommands(directory) {
  const env = environment({ RUSTUP_TOOLCHAIN: NIGHTLY, ...COMMANDS });
  const target = resolve(ROOT, env.CARGO_TARGET_DIR ?? "target");
  const crate = ["--package=anteroom-command", "--lib", "--crate-type=cdylib", "--release"];
  const cargo = ["rustc", "--quiet", "--locked", ...crate, "--target", WASM_TARGET, "--target-dir", target];
  await during("Compiling the commands to WebAssembly (a minute the first time)", () =>
    run("cargo", cargo, { env, failure: "The commands do not build: see above" }),
  );
  const compiled = join(target, WASM_TARGET, "release", "anteroom_command.wasm");
  // cargo leaves it alone when nothing has changed.
  const stamp = JSON.stringify([statSync(compiled).mtimeMs, OPTIMIZE_COMMANDS]);
  const kept = join(TOOLS, "commands");
  const stampFile = join(kept, "stamp.json");
  if (!existsSync(stampFile) || readFileSync(stampFile, "utf8") !== stamp) {
    rmSync(kept, { recursive: true, force: true });
    const bound = join(kept, "bound");
    await run(join(BINDGEN_TARGET, "debug", "anteroom-bindgen"), ["node", compiled, bound]);
    const raw = join(bound, "index_bg.wasm");
    await run(WASM_OPT, [raw, "-o", join(kept, "index_bg.wasm"), ...OPTIMIZE_COMMANDS, ...FEATURES]);
    renameSync(join(bound, "index.js"), join(kept, "index.js"));
    rmSync(bound, { recursive: true });
    writeFileSync(stampFile, stamp);
  }
  mkdirSync(directory, { recursive: true });
  for (const name of ["index.js", "index_bg.wasm"]) cpSync(join(kept, name), join(directory, name));
}

/**
 * @param {string} crate its directory
 * @param {string} library the file name of its library, without `.wasm`
 * @param {string} directory gets `index_bg.wasm`, and `rust/index.js`, which imports that once both are in one directory
 */
export async function compileWasm(crate, library, directory) {
  const env = environment({ RUSTUP_TOOLCHAIN: NIGHTLY });
  const target = resolve(ROOT, env.CARGO_TARGET_DIR ?? "target");
  const release = join(target, WASM_TARGET, "release");
  const module = join(directory, "rust");
  const raw = join(module, "index_bg.wasm");
  const cargo = (args, more) =>
    run("cargo", args, {
      cwd: crate,
      env: { ...env, ...more },
      failure: "The Rust code does not build: see above",
    });
  await during("Compiling Rust to WebAssembly (half a minute; the first time, two minutes on 2 cores)", () =>
    Promise.all([
      cargo([...COMPILE, "--target-dir", target], {
        ...PROFILE,
        RUSTFLAGS: `${env.RUSTFLAGS ?? ""} ${FLAGS}`.trim(),
        // wasm-bindgen's macros then use the futures of js-sys, as the crate `worker` does.
        WASM_BINDGEN_USE_JS_SYS: "1",
      }),
      cargo(["build", "--quiet", "--locked", "--manifest-path", BINDGEN, "--target-dir", BINDGEN_TARGET]),
    ]),
  );
  await during("Optimizing WebAssembly (about ten seconds)", async () => {
    await run(join(BINDGEN_TARGET, "debug", "anteroom-bindgen"), [
      "worker",
      join(release, `${library}.wasm`),
      module,
    ]);
    await run(WASM_OPT, [raw, "-o", join(directory, "index_bg.wasm"), ...OPTIMIZE, ...FEATURES]);
  });
  // Workers import a module as such, without the keyword that the standard has for it by now.
  const script = join(module, "index.js");
  writeFileSync(script, readFileSync(script, "utf8").replace("import source ", "import "));
}
