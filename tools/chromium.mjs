/** Finds a Chromium for the browser tests, or brings one. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { environment, Failure, main, run, which } from "./toolchain.mjs";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const APPLICATIONS = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/** @returns {boolean} whether it starts: a download may lack libraries, a name may be a stub of another store. */
function starts(path) {
  try {
    execFileSync(path, ["--version"], { stdio: "ignore", timeout: 30_000 });
    return true;
  } catch {
    return false;
  }
}

/** @returns {string | undefined} */
function onSystem() {
  return [...NAMES.map((name) => which(name)), ...APPLICATIONS].find(
    (path) => path && existsSync(path) && starts(path),
  );
}

/** @returns {Promise<string | undefined>} where Playwright keeps its own, if it has one. */
async function ofPlaywright() {
  const { chromium } = await import("playwright");
  const path = chromium.executablePath();
  return existsSync(path) && starts(path) ? path : undefined;
}

/**
 * {@link run}, for what may fail.
 * @returns {Promise<boolean>} whether it worked
 */
async function attempt(command, args, options = {}) {
  try {
    await run(command, args, options);
    return true;
  } catch {
    return false;
  }
}

/**
 * The one named by CHROMIUM_PATH, else the system's, else Playwright's download, else Debian's package. Needs
 * the npm packages.
 * @returns {Promise<string>} its path
 */
export async function findChromium() {
  const named = process.env.CHROMIUM_PATH;
  if (named) {
    if (starts(named)) return named;
    throw new Failure(`CHROMIUM_PATH=${named} does not start: name a Chromium or Chrome, or unset it`);
  }
  const found = onSystem() ?? (await ofPlaywright());
  if (found) return found;

  console.log("No Chromium here: Playwright's download");
  // Without its errors, many lines for each attempt: the next way follows, or the line at the end.
  const stdio = ["ignore", "inherit", "ignore"];
  if (await attempt("playwright", ["install", "chromium", "--no-shell"], { stdio })) {
    const path = await ofPlaywright();
    if (path) return path;
  }
  if (process.getuid?.() === 0 && which("apt-get")) {
    console.log("Playwright's download does not work here: Debian's package");
    const env = environment({ DEBIAN_FRONTEND: "noninteractive" });
    await attempt("apt-get", ["update"], { env });
    await attempt("apt-get", ["install", "-y", "--no-install-recommends", "chromium"], { env });
    const path = onSystem();
    if (path) return path;
  }
  throw new Failure(
    "Chromium is missing: install it (Debian: apt-get install chromium) or set CHROMIUM_PATH to one",
  );
}

main(import.meta.url, async () => console.log(await findChromium()));
