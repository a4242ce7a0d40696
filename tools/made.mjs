/**
 * What the repository compiles and the npm package has: the Worker, and the commands that are Rust. Every tool that both
 * have gets them here.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { PAGES, readPages } from "./pages.mjs";
import { environment, Failure, main, NIGHTLY, PROJECT, ROOT, run, SOURCE } from "./toolchain.mjs";

/** The commands' crate and profile. */
const RUST = {
  check: ["-p", "anteroom-check", "--"],
  plan: ["--release", "-p", "anteroom-sim", "--", "plan"],
};
/** What the package has of the Worker; its page is made with the project's templates. */
const WORKER = ["index.js", "index_bg.wasm"];

/** Installs what is missing. The package's own is installed by npm. */
export async function setup() {
  if (SOURCE) await (await import("./setup.mjs")).setup();
}

/**
 * Brings the Worker to where wrangler.toml says that it is: `build/`, in a project `.anteroom/`.
 * @param {string} [directory] another one
 * @returns {Promise<string[]>} its modules there
 */
export async function build(directory) {
  if (SOURCE) {
    await (await import("./build.mjs")).build();
    if (!directory) return WORKER;
  }
  const to = directory ?? join(PROJECT, ".anteroom");
  mkdirSync(to, { recursive: true });
  for (const name of WORKER) cpSync(join(ROOT, "build", name), join(to, name));
  if (SOURCE) return WORKER;
  writeFileSync(join(to, "pages.js"), `export default ${JSON.stringify(await readPages())};\n`);
  return [...WORKER, "pages.js"];
}

/**
 * Runs a command that is Rust; fails as it fails, once it has said why.
 * @param {"check" | "plan"} name @param {string[]} args
 */
export async function runRust(name, args) {
  if (SOURCE)
    return run("cargo", ["run", "-q", ...RUST[name], ...args], {
      // The toolchain that building the Worker needs anyway.
      env: environment({ RUSTUP_TOOLCHAIN: NIGHTLY }),
      failure: "",
    });
  const code = await runWasm(name, args);
  if (code !== 0) throw new Failure("", code);
}

/** @returns {Promise<{ path: string, activeUsers?: number, sessionMinutes?: number }>} what the demo says of a project's room */
export async function roomToTry() {
  if (SOURCE) return { path: "" }; // its demo room is what the demo is made for
  const { out } = await ended("check", ["--json", "--pages", PAGES]);
  const [room] = JSON.parse(out).rooms;
  if (!room) return { path: "" };
  return { path: room.path, activeUsers: room.total_active_users, sessionMinutes: room.session_duration };
}

/**
 * Runs a command as WebAssembly.
 * @param {"check" | "plan"} name @param {string[]} args
 * @returns {Promise<{ code: number, out: string, err: string, file?: string, text?: string }>}
 */
async function ended(name, args) {
  const commands = await import("../build/commands/index.js");
  const terminal = process.stderr.isTTY;
  let shown = "";
  const show = (/** @type {number} */ part) => {
    const percent = `\r${Math.floor(part * 100)} %`;
    if (terminal && percent !== shown) process.stderr.write(percent);
    shown = percent;
  };
  const end = commands.run(name, args, readText, Date.now(), show);
  if (terminal && shown) process.stderr.write("\r\x1b[K");
  return end;
}

/** The same, and does what it says. @returns {Promise<number>} its exit status */
async function runWasm(name, args) {
  const { code, out, err, file, text } = await ended(name, args);
  process.stdout.write(out);
  process.stderr.write(err);
  if (file !== undefined)
    try {
      writeFileSync(resolve(PROJECT, file), text);
    } catch (error) {
      throw new Failure(`Error: ${file}: cannot be written: ${reason(error)}`, 2);
    }
  return code;
}

/** @param {string} path as Rust wants it; relative ones are seen from the project */
function readText(path) {
  try {
    return readFileSync(resolve(PROJECT, path), "utf8");
  } catch (error) {
    throw new Error(reason(error));
  }
}

/** Why a file cannot be read, as Rust says it: "No such file or directory (os error 2)". */
function reason({ errno, code, message }) {
  const words = message.match(/: (.+?),/)?.[1] ?? code;
  return `${words[0].toUpperCase()}${words.slice(1)} (os error ${-errno})`;
}

main(import.meta.url, () => build());
