/**
 * Installs what is missing: npm packages, two pinned Rust toolchains, the tools that build the Worker, and for the tests
 * an HTTP client and parsers of another language.
 *
 * It looks at files, not at the answers of slow programs, so that a run with nothing to do takes no time;
 * hence every other tool starts with it.
 */
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import {
  environment,
  Failure,
  main,
  NIGHTLY,
  node22,
  PYTHON_PACKAGES,
  PYTHON_REQUIRED,
  ROOT,
  run,
  SHIMS,
  STABLE,
  seconds,
  TOOLS,
  WASM_TARGET,
  WORKER_BUILD,
  wasmBindgenVersion,
  which,
} from "./toolchain.mjs";

/**
 * @param {{ tests?: boolean }} [options] `tests`: also what only the tests need
 * @returns {Promise<void>}
 */
export async function setup({ tests = false } = {}) {
  await npmPackages();
  await rust(tests);
  await buildTools();
  shims();
  if (tests) await pythonPackages();
}

/** @param {string} text */
function say(text) {
  console.log(`Set-up: ${text}`);
}

/** @returns {any} a JSON file, or undefined where there is none. */
function json(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/**
 * npm keeps a copy of the lock file in node_modules, of what is really there; it is written last, so an
 * interrupted installation has none.
 */
function npmPackagesAreThere() {
  const wanted = json(join(ROOT, "package-lock.json"))?.packages;
  const installed = json(join(ROOT, "node_modules", ".package-lock.json"))?.packages;
  if (!wanted || !installed) return false;
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    const there = installed[path]?.version;
    return path === "" || there === version || (optional && there === undefined);
  });
}

async function npmPackages() {
  // Packages that want Node 22 warn about an older one in so many words; it comes with them.
  const npm = (args) => run("npm", [...args, "--loglevel=error"], { failure: `npm ${args[0]} failed` });
  if (!npmPackagesAreThere()) {
    say("npm packages (npm ci)");
    if (!which("npm")) throw new Failure("npm is missing: install Node.js 20 or newer with npm");
    await npm(["ci"]);
  }
  if (!node22()) {
    // Its Node is fetched by an install script, which some npm settings skip.
    say("Node 22 (npm rebuild node)");
    await npm(["rebuild", "node", "--ignore-scripts=false"]);
    if (!node22()) throw new Failure("npm brought no Node 22: install Node.js 22.19 or newer yourself");
  }
}

/** @param {boolean} tests */
async function rust(tests) {
  if (process.platform === "win32") throw new Failure("Windows is not supported: use Linux, macOS or WSL");
  const { PATH } = environment();
  if (!which("rustup", PATH) || !which("cargo", PATH)) {
    throw new Failure("Rust is missing: install it with rustup (https://rustup.rs), then run this again");
  }
  // clippy of the nightly is for the code that only exists in wasm.
  await toolchain(NIGHTLY, ["rust-src", ...(tests ? ["clippy"] : [])], [WASM_TARGET]);
  if (tests) await toolchain(STABLE, ["clippy", "rustfmt"], []);
}

/**
 * @param {string} name
 * @param {string[]} components
 * @param {string[]} targets
 */
async function toolchain(name, components, targets) {
  if (hasToolchain(name, [...components, ...targets.map((target) => `rust-std-${target}`)])) return;
  say(`Rust ${name} (rustup)`);
  const wanted = [
    ...components.flatMap((component) => ["--component", component]),
    ...targets.flatMap((target) => ["--target", target]),
  ];
  await run("rustup", ["toolchain", "install", name, "--profile", "minimal", "--no-self-update", ...wanted], {
    failure: `rustup could not install ${name} with ${[...components, ...targets].join(", ")}`,
  });
}

/**
 * Reads rustup's own list of what a toolchain has, since asking rustup takes ten times as long.
 * @param {string} name
 * @param {string[]} components
 */
function hasToolchain(name, components) {
  const toolchains = join(process.env.RUSTUP_HOME ?? join(homedir(), ".rustup"), "toolchains");
  try {
    const directory = readdirSync(toolchains).find((entry) => entry === name || entry.startsWith(`${name}-`));
    const list = readFileSync(join(toolchains, directory, "lib", "rustlib", "components"), "utf8").split(
      "\n",
    );
    const has = (wanted) => list.some((line) => line === wanted || line.startsWith(`${wanted}-`));
    return components.every(has);
  } catch {
    return false;
  }
}

async function buildTools() {
  await buildTool("worker-build", "worker-build", WORKER_BUILD);
  const version = wasmBindgenVersion();
  await buildTool("wasm-bindgen", "wasm-bindgen-cli", version, () => downloadWasmBindgen(version));
}

/**
 * Puts a program into `.tools/bin`, unless it is there in that version.
 * @param {string} program
 * @param {string} crate it is in
 * @param {string} version
 * @param {() => Promise<void>} [download] a faster way than to compile it; may fail
 */
async function buildTool(program, crate, version, download) {
  const file = join(TOOLS, "bin", program);
  const isThere = () => existsSync(file) && `${spawnSync(file, ["--version"]).stdout}`.includes(version);
  if (isThere()) return;
  try {
    await download?.();
    if (isThere()) return;
  } catch (error) {
    say(`no ready-made ${program} can be had (${error.cause?.code ?? error.message})`);
  }
  expectCompiler();
  say(`${crate} ${version} (cargo install: compiles for some minutes, once)`);
  const install = (how) =>
    run("cargo", ["install", "--root", TOOLS, "--force", ...how, `${crate}@${version}`], {
      // Not the user's own default, which may be too old for it.
      env: environment({ RUSTUP_TOOLCHAIN: NIGHTLY }),
      failure: `cargo could not install ${crate} ${version}: see above`,
    });
  try {
    await install(["--locked"]);
  } catch {
    // A registry mirror may lack a version that the tool's own lock file names.
    say(`${crate} once more, without its own lock file`);
    await install([]);
  }
  if (!isThere())
    throw new Failure(`${file} does not answer as ${version}: remove .tools, then run this again`);
}

/** What the tests use of Python: its most used HTTP client, the parser of Prometheus's own library, one of YAML. */
async function pythonPackages() {
  const wanted = Object.entries(PYTHON_REQUIRED).filter(
    ([name, version]) => !existsSync(join(PYTHON_PACKAGES, `${name}-${version}.dist-info`)),
  );
  if (wanted.length === 0) return;
  if (!which("python3")) throw new Failure("python3 is missing: install Python 3.9 or newer with pip");
  const packages = wanted.map(([name, version]) => `${name}==${version}`);
  say(`${packages.join(", ")} for Python (pip)`);
  const pip = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--root-user-action=ignore",
    "--upgrade",
    "--target",
    PYTHON_PACKAGES,
  ];
  await run("python3", [...pip, ...packages], {
    failure: "pip could not install them: see above (Debian: apt-get install python3-pip)",
  });
}

/** Says before the compilation, not in the midst of it, what it will lack. */
function expectCompiler() {
  if (!which("cc")) {
    throw new Failure(
      "A C compiler is missing: install one (Debian: build-essential; macOS: xcode-select --install)",
    );
  }
  // worker-build uses the system's TLS: on Linux, OpenSSL, found by pkg-config unless OPENSSL_DIR and the like say.
  const named = Object.keys(process.env).some((name) => name.startsWith("OPENSSL_"));
  if (process.platform !== "linux" || named) return;
  if (spawnSync("pkg-config", ["--exists", "openssl"]).status !== 0) {
    throw new Failure(
      "OpenSSL's headers or pkg-config are missing: install them (Debian: libssl-dev pkg-config)",
    );
  }
}

/**
 * The project's own release, as worker-build would fetch it while building; here, so that a build needs no
 * network and falls back to cargo within seconds where GitHub is out of reach.
 * @param {string} version
 */
async function downloadWasmBindgen(version) {
  const target = {
    "linux x64": "x86_64-unknown-linux-musl",
    "linux arm64": "aarch64-unknown-linux-musl",
    "darwin x64": "x86_64-apple-darwin",
    "darwin arm64": "aarch64-apple-darwin",
  }[`${process.platform} ${process.arch}`];
  if (!target) throw new Error(`none for ${process.platform} ${process.arch}`);
  const name = `wasm-bindgen-${version}-${target}`;
  const releases = "https://github.com/wasm-bindgen/wasm-bindgen/releases/download";
  const archive = await download(`${releases}/${version}/${name}.tar.gz`);
  say(`wasm-bindgen ${version} (its release on GitHub)`);
  const bin = join(TOOLS, "bin");
  mkdirSync(bin, { recursive: true });
  execFileSync("tar", ["-xzf", "-", "-C", bin, `${name}/wasm-bindgen`], { input: archive });
  renameSync(join(bin, name, "wasm-bindgen"), join(bin, "wasm-bindgen"));
  rmSync(join(bin, name), { recursive: true });
}

/**
 * @param {string} url must answer within five seconds and arrive within two minutes
 * @returns {Promise<Buffer>}
 */
async function download(url) {
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(new Error("no answer")), 5_000);
  try {
    const response = await fetch(url, { signal: abort.signal });
    if (!response.ok) throw new Error(`status ${response.status}`);
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(new Error("too slow")), 120_000);
    return Buffer.from(await response.arrayBuffer());
  } finally {
    clearTimeout(timer);
  }
}

/**
 * `worker-build --panic-unwind` calls for the toolchain by the name "nightly" (`cargo +nightly`, `rustc
 * +nightly`, `rustup ... --toolchain nightly`), whatever nightly that is on this machine, or installs one.
 * During a build these come first on PATH, drop that name, and go on to the real program; the build sets
 * RUSTUP_TOOLCHAIN to the pinned nightly instead. ANTEROOM_PATH is PATH without them, so what the real
 * program starts is real too.
 */
function shims() {
  const head = "#!/bin/sh\n# Written by tools/setup.mjs, which says why.\nPATH=$ANTEROOM_PATH; export PATH\n";
  const dropsName = 'if [ "$1" = +nightly ]; then shift; fi\n';
  // rustup takes the name as a value; goes once round its arguments.
  const putsName = `for argument; do
  shift
  if [ "$argument" = nightly ]; then argument=$RUSTUP_TOOLCHAIN; fi
  set -- "$@" "$argument"
done
`;
  mkdirSync(SHIMS, { recursive: true });
  for (const [program, body] of [
    ["cargo", dropsName],
    ["rustc", dropsName],
    ["rustup", putsName],
  ]) {
    const file = join(SHIMS, program);
    const text = `${head}${body}exec ${program} "$@"\n`;
    if (existsSync(file) && readFileSync(file, "utf8") === text) continue;
    writeFileSync(file, text);
    chmodSync(file, 0o755);
  }
}

main(import.meta.url, async () => {
  const begin = performance.now();
  await setup({ tests: process.argv.includes("--tests") });
  console.log(`Set-up: everything is there (${seconds(begin)})`);
});
