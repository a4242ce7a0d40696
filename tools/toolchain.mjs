/**
 * What the tools share: pinned versions, where things are, and how a program is run.
 *
 * Only `node:` modules are imported, since these files run before anything is installed, on Node 20.
 */
import { spawn } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { homedir, constants as osConstants } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository, or the npm package. */
export const ROOT = resolve(fileURLToPath(import.meta.url), "../..");
/** Whether it is the repository, where all is compiled. In the package it is there already, and there is no Rust. */
export const SOURCE = existsSync(join(ROOT, "Cargo.toml"));
/** What is run and deployed: its wrangler.toml, its templates, its secrets. The repository is a project too. */
export const PROJECT = SOURCE ? ROOT : process.cwd();
/** Secrets for this machine. */
export const DEV_VARS = join(PROJECT, ".dev.vars");
/** Everything that set-up makes for this clone and npm does not manage. */
export const TOOLS = join(ROOT, ".tools");
/** npm puts what a package needs beside it, or into it. */
const MODULES =
  [join(ROOT, "node_modules"), join(ROOT, "..")].find((path) => existsSync(join(path, "wrangler"))) ??
  join(ROOT, "node_modules");
const NPM_BIN = join(MODULES, ".bin");

/**
 * Builds the Worker. A nightly, because a panic must unwind (with `panic=abort` one request's panic ends all
 * requests of the isolate), and that takes a standard library built for it, `-Z build-std`. Pinned, so that
 * tomorrow's nightly cannot break today's build.
 */
export const NIGHTLY = "nightly-2026-05-20";
/** Tests and lints what runs on the host. Pinned, since a newer clippy denies what this one allows. */
export const STABLE =
  SOURCE && readFileSync(join(ROOT, "rust-toolchain.toml"), "utf8").match(/channel = "(.+)"/)[1];
export const WASM_TARGET = "wasm32-unknown-unknown";
/**
 * Python's packages that the tests use, by the names that they have on disk: an HTTP client, a parser of metrics and one of
 * YAML, Cloudflare's client, and what reads the description of the API and asks for all that it offers.
 */
export const PYTHON_REQUIRED = {
  requests: "2.34.2",
  prometheus_client: "0.26.0",
  pyyaml: "6.0.3",
  cloudflare: "5.9.0",
  openapi_spec_validator: "0.9.0",
  schemathesis: "4.32.5",
};
/** Where they are. */
export const PYTHON_PACKAGES = join(TOOLS, "python");

/** wrangler, Miniflare and undici want this Node; npm brings it: a package for each platform. */
const NODE_AT_LEAST = [22, 19];

/** npm leaves out what is optional where it is told so, and where there is none for the platform. */
export const NO_NODE =
  "npm brought no Node 22 along: install Node.js 22.19 or newer yourself, then run this again";

/** Something the reader can mend: printed as one line, without a stack. */
export class Failure extends Error {
  /**
   * @param {string} message empty when whoever failed has said it all
   * @param {number} code the exit code
   */
  constructor(message, code = 1) {
    super(message);
    this.code = code;
  }
}

/**
 * @param {string} name of a program
 * @param {string} [path] directories to search, as in PATH
 * @returns {string | undefined} where it is
 */
export function which(name, path = process.env.PATH ?? "") {
  for (const directory of path.split(delimiter)) {
    const file = join(directory || ".", name);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // Not here: the next directory.
    }
  }
  return undefined;
}

/**
 * The environment of every program the tools start: Node 22 first on PATH, cargo on it even in the shell that
 * installed Rust a minute ago, a wrangler that neither reports nor asks the internet for anything, and a workerd whose
 * isolates do not wait for each other.
 * @param {Record<string, string>} [more]
 */
export function environment(more = {}) {
  const cargoBin = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "bin");
  const path = [NPM_BIN, ...(process.env.PATH ?? "").split(delimiter).filter((entry) => entry !== NPM_BIN)];
  if (!path.includes(cargoBin) && existsSync(cargoBin)) path.push(cargoBin);
  return {
    ...process.env,
    PATH: path.join(delimiter),
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_SEND_ERROR_REPORTS: "false",
    WRANGLER_HIDE_BANNER: "true", // the banner is what looks for a newer wrangler
    CLOUDFLARE_CF_FETCH_ENABLED: "false", // else Miniflare fetches a sample of request.cf
    // On two cores V8 has one thread for what all isolates do in the background. It can wait for one isolate's garbage
    // collection while workerd waits, in another isolate, for that thread to sweep: then nothing goes on any more.
    MINIFLARE_WORKERD_V8_FLAGS: process.env.MINIFLARE_WORKERD_V8_FLAGS ?? "--single-threaded-gc",
    ...more,
  };
}

/** @returns {boolean} whether a Node of this version can run wrangler and the rest. */
function recent(version) {
  const [major, minor] = version.split(".").map(Number);
  return major > NODE_AT_LEAST[0] || (major === NODE_AT_LEAST[0] && minor >= NODE_AT_LEAST[1]);
}

/** @returns {string | undefined} a Node that can run wrangler: npm's, else the one running this if it can. */
export function node22() {
  const own = join(NPM_BIN, "node");
  if (existsSync(own)) return own;
  return recent(process.versions.node) ? process.execPath : undefined;
}

/** @type {Set<number>} what {@link start} started and has not ended, as `process.kill` names it. */
const running = new Set();
/** Once we are ending, nothing more is started: a step's fall-back, say, because the signal ended the step. */
let ending = false;

/**
 * @param {number} target a process, or minus the leader of a process group
 * @param {NodeJS.Signals | 0} signal
 * @returns {boolean} whether it was there
 */
function kill(target, signal) {
  try {
    return process.kill(target, signal);
  } catch {
    return false;
  }
}

/**
 * Starts a program that ends when we end. Each leads a process group of its own, so that its descendants
 * (cargo's compilers, wrangler's workerd) end too, whoever got the Ctrl-C.
 * @param {string} command
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 */
export function start(command, args, options = {}) {
  if (ending) throw new Failure("");
  const detached = options.detached ?? true;
  const child = spawn(command, args, {
    cwd: PROJECT,
    env: environment(),
    stdio: ["ignore", "inherit", "inherit"],
    ...options,
    detached,
  });
  if (child.pid === undefined) return child; // it emits "error"
  const target = detached ? -child.pid : child.pid;
  running.add(target);
  child.on("exit", () => {
    running.delete(target);
    if (detached) kill(target, "SIGTERM"); // what it has left behind
  });
  return child;
}

/**
 * Runs a program to its end.
 * @param {string} command
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions & { failure?: string }} [options] `failure`: what to say
 *   when it fails; without it, that the command failed
 * @returns {Promise<void>}
 */
export function run(command, args, { failure, ...options } = {}) {
  return new Promise((done, fail) => {
    const child = start(command, args, options);
    child.on("error", (error) => {
      const isMissing = error.code === "ENOENT";
      fail(isMissing ? new Failure(`${command} is missing: install it, then run this again`) : error);
    });
    child.on("exit", (code, signal) => {
      if (code === 0) done();
      else fail(new Failure(failure ?? `${command} ${args[0] ?? ""} failed (${signal ?? code})`, code ?? 1));
    });
  });
}

const WRANGLER = join(MODULES, "wrangler", "bin", "wrangler.js");

/**
 * Starts wrangler, under Node 22.
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 */
export function startWrangler(args, options) {
  return start(node22(), [WRANGLER, ...args], options);
}

/**
 * Runs wrangler to its end, in the foreground, since it may ask something.
 * @param {string[]} args
 */
export function wrangler(args) {
  return run(node22(), [WRANGLER, ...args], { stdio: "inherit", detached: false, failure: "" });
}

/** Ends whatever is still running, gently, then after five seconds not. */
async function endAll() {
  const targets = [...running];
  for (const target of targets) kill(target, "SIGTERM");
  for (let waited = 0; waited < 5000 && targets.some((target) => kill(target, 0)); waited += 50) {
    await new Promise((next) => setTimeout(next, 50));
  }
  for (const target of targets) kill(target, "SIGKILL");
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * The frame of every tool: one line for a failure, and a signal ends all that was started. (package.json runs
 * the tools by `exec`, since npm passes a signal to its shell, and a shell that waits does not pass it on.)
 * @param {string} url the tool's `import.meta.url`: nothing happens when it is only imported
 * @param {() => Promise<void>} work
 * @param {{ stoppable?: boolean, help?: string }} [options] `stoppable`: being stopped is how it should end, hence exit code
 *   0. `help`: what `--help` prints, of a tool that does not read it itself
 */
export async function main(url, work, { stoppable = false, help } = {}) {
  if (!process.argv[1] || realpathSync(process.argv[1]) !== fileURLToPath(url)) return;
  if (help && process.argv.includes("--help")) return console.log(help);
  const end = async (code) => {
    ending = true;
    await endAll();
    process.exit(code);
  };
  for (const name of SIGNALS) {
    process.on(name, () => {
      if (!ending) end(stoppable ? 0 : 128 + osConstants.signals[name]);
    });
  }
  try {
    await work();
    if (!ending) await end(0);
  } catch (error) {
    if (ending) return; // what fails now fails because it was ended
    if (!(error instanceof Failure)) console.error(error);
    else if (error.message) console.error(`\n${error.message}`);
    await end(error.code > 0 ? error.code : 1);
  }
}

/**
 * Goes on under Node 22: on an older one, runs this very command line again under npm's Node and never
 * returns. Call it after set-up, before importing what needs Node 22.
 * @returns {Promise<void>}
 */
export async function underNode22() {
  if (recent(process.versions.node)) return;
  const node = node22();
  if (!node) throw new Failure(NO_NODE);
  for (const name of SIGNALS) process.removeAllListeners(name);
  const child = spawn(node, [...process.execArgv, ...process.argv.slice(1)], { stdio: "inherit" });
  // From a terminal the child gets the signal as we do, and a second one does no harm; from `kill` only we do.
  for (const name of SIGNALS) process.on(name, () => child.kill(name));
  child.on("exit", (code, signal) => process.exit(code ?? 128 + osConstants.signals[signal]));
  await new Promise(() => {});
}

/** How many calls of {@link during} are under way, and what shows since when. */
const telling = { works: 0, timer: undefined };

/**
 * Says what is being done, and on a terminal for how long already.
 * @template T
 * @param {string} text what, and how long it usually takes
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function during(text, work) {
  const clear = process.stdout.isTTY ? "\r\x1b[K" : "";
  console.log(`${clear}${text}`);
  if (telling.works++ === 0 && clear) {
    const since = performance.now();
    telling.timer = setInterval(() => process.stdout.write(`${clear}  ${seconds(since)}`), 1000);
  }
  try {
    return await work();
  } finally {
    if (--telling.works === 0) clearInterval(telling.timer);
    process.stdout.write(clear);
  }
}

/** @param {number} since from `performance.now()` */
export function seconds(since) {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
