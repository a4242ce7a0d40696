/**
 * Installs what is missing: npm packages, two pinned Rust toolchains, and for the tests an HTTP client and parsers of another
 * language.
 *
 * It looks at files, not at the answers of slow programs, so that a run with nothing to do takes no time;
 * hence every other tool starts with it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import {
  during,
  environment,
  Failure,
  main,
  NIGHTLY,
  NO_NODE,
  node22,
  PYTHON_PACKAGES,
  PYTHON_REQUIRED,
  ROOT,
  run,
  STABLE,
  seconds,
  WASM_TARGET,
  which,
} from "./toolchain.mjs";

/**
 * @param {{ tests?: boolean }} [options] `tests`: also what only the tests need
 * @returns {Promise<void>}
 */
export async function setup({ tests = false } = {}) {
  if (process.platform === "win32") throw new Failure("Windows is not supported: use Linux, macOS or WSL");
  // Nearly all of it is waiting for the network, so all of it waits at once.
  await Promise.all([npmPackages(), rust(tests), tests && pythonPackages()]);
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
  if (!npmPackagesAreThere()) {
    if (!which("npm")) throw new Failure("npm is missing: install Node.js 20 or newer with npm");
    await during("Set-up: npm packages (about 20 seconds)", () =>
      // Packages that want Node 22 warn about an older one in so many words; it comes with them.
      run("npm", ["ci", "--loglevel=error"], { failure: "npm ci failed" }),
    );
  }
  if (!node22()) throw new Failure(NO_NODE);
}

/** @param {boolean} tests */
async function rust(tests) {
  const { PATH } = environment();
  if (!which("rustup", PATH) || !which("cargo", PATH)) {
    throw new Failure("Rust is missing: install it with rustup (https://rustup.rs), then run this again");
  }
  // Rust links by it, and says so less plainly.
  if (!which("cc")) {
    throw new Failure(
      "A C compiler is missing: install one (Debian: build-essential; macOS: xcode-select --install)",
    );
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
  const wanted = [
    ...components.flatMap((component) => ["--component", component]),
    ...targets.flatMap((target) => ["--target", target]),
  ];
  const args = [
    "--quiet",
    "toolchain",
    "install",
    name,
    "--profile",
    "minimal",
    "--no-self-update",
    ...wanted,
  ];
  await during(`Set-up: Rust ${name} (about half a minute)`, () =>
    run("rustup", args, {
      failure: `rustup could not install ${name} with ${[...components, ...targets].join(", ")}`,
    }),
  );
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

/** What the tests use of Python: `PYTHON_REQUIRED` says what each is. */
async function pythonPackages() {
  const required = Object.entries(PYTHON_REQUIRED);
  const isThere = ([name, version]) => existsSync(join(PYTHON_PACKAGES, `${name}-${version}.dist-info`));
  if (required.every(isThere)) return;
  if (!which("python3")) throw new Failure("python3 is missing: install Python 3.10 or newer with pip");
  // All at once: what one of them needs must not take another's place.
  const packages = required.map(([name, version]) => `${name}==${version}`);
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
  await during(`Set-up: ${packages.join(", ")} for Python (half a minute)`, () =>
    run("python3", [...pip, ...packages], {
      failure: "pip could not install them: see above (Debian: apt-get install python3-pip)",
    }),
  );
}

main(import.meta.url, async () => {
  const begin = performance.now();
  await setup({ tests: process.argv.includes("--tests") });
  console.log(`Set-up: everything is there (${seconds(begin)})`);
});
