/**
 * Builds the Worker into `build/`, unless nothing it is made of has changed; wrangler's `[build]` command too.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { readDashboard } from "./dashboard/assets.mjs";
import { readPages } from "./pages.mjs";
import { setup } from "./setup.mjs";
import { writeTables } from "./tables.mjs";
import { Failure, main, ROOT, run, seconds, TOOLS } from "./toolchain.mjs";
import { compileWasm, SETTINGS } from "./wasm.mjs";

/**
 * Far below every limit of the platform; it is there so that growth is noticed. In bytes, gzip -9. docs/decisions.md says
 * what it was before, and for what it grew.
 */
const LARGEST_GZIP = 640_000;

/** What the Worker is made of. The lock files stand for the dependencies. */
const SOURCES = [
  "tools/build.mjs",
  "tools/wasm.mjs",
  "tools/bindgen",
  "tools/pages.mjs",
  "tools/tables.mjs",
  "tools/dashboard/assets.mjs",
  "src",
  // It writes the tables down.
  "check/src",
  "check/Cargo.toml",
  "cipher",
  "static",
  "build.rs",
  "askama.toml",
  "Cargo.toml",
  "Cargo.lock",
  ".cargo",
  // The chart library's version.
  "package-lock.json",
];
const ENTRY = join(ROOT, "src", "edge", "entry.js");
const BUILD = join(ROOT, "build");
const SCRIPT = join(BUILD, "index.js");
/** The status page's script, from which the entry takes it as text. */
const HEALTH_ENTRY = join(ROOT, "static", "health.js");
const HEALTH_SCRIPT = join(BUILD, "health.txt");
/** All that the waiting page is made of, from which the entry takes it. */
const PAGES = join(BUILD, "pages.js");
/** All that the dashboard is made of, likewise. */
const DASHBOARD = join(BUILD, "dashboard.js");
const WASM = join(BUILD, "index_bg.wasm");
const PRODUCTS = [SCRIPT, WASM];
const ESBUILD = join(ROOT, "node_modules", "esbuild", "bin", "esbuild");
const BUNDLE = ["--bundle", "--minify", "--log-level=warning", "--allow-overwrite"];
/** What the last build was made of and what it made: two lines of hash. */
const STAMP = join(TOOLS, "built");

/**
 * @param {string[]} paths files and directories, and what is below; one that is absent counts as empty
 * @param {string[]} [more]
 */
function hash(paths, more = []) {
  const sum = createHash("sha256").update(JSON.stringify(more));
  const visit = (path) => {
    if (!existsSync(path)) return;
    if (statSync(path).isDirectory()) {
      for (const entry of readdirSync(path).sort()) visit(join(path, entry));
    } else {
      const content = readFileSync(path);
      sum.update(JSON.stringify([path.slice(ROOT.length), content.length])).update(content);
    }
  };
  for (const path of paths) visit(path);
  return sum.digest("hex");
}

/** Installs what is missing, builds what has changed, and fails when the Worker has grown too large. */
export async function build() {
  await setup();
  const begin = performance.now();
  // Taken before the build: what is edited during it will be built next time.
  const sources = hash(
    SOURCES.map((source) => join(ROOT, source)),
    SETTINGS,
  );
  const isBuilt =
    PRODUCTS.every(existsSync) &&
    existsSync(STAMP) &&
    readFileSync(STAMP, "utf8") === `${sources}\n${hash(PRODUCTS)}\n`;
  if (!isBuilt) {
    await compile();
    writeFileSync(STAMP, `${sources}\n${hash(PRODUCTS)}\n`);
  }
  const wasm = readFileSync(WASM);
  const gzip = gzipSync(wasm, { level: 9 }).length;
  const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;
  const size = `${kilobytes(wasm.length)} of wasm, ${kilobytes(gzip)} gzip -9 (at most ${kilobytes(LARGEST_GZIP)})`;
  console.log(`Worker: ${size}, ${isBuilt ? "unchanged" : `built in ${seconds(begin)}`}`);
  if (gzip > LARGEST_GZIP) throw new Failure(`The Worker is too large: ${size}`);
}

async function compile() {
  // Its last steps leave a processor free.
  await Promise.all([compileWasm(ROOT, "anteroom", BUILD), writeTables()]);
  await run(
    ESBUILD,
    [
      HEALTH_ENTRY,
      ...BUNDLE,
      "--format=iife",
      "--target=es2022",
      "--loader:.css=text",
      `--outfile=${HEALTH_SCRIPT}`,
    ],
    { failure: "The status page's script does not build: see above" },
  );
  // Its version stands in front, for the address that browsers may keep for ever.
  const script = readFileSync(HEALTH_SCRIPT);
  const version = createHash("sha256").update(script).digest("hex").slice(0, 16);
  writeFileSync(HEALTH_SCRIPT, `//${version}\n${script}`);
  writeFileSync(PAGES, `export default ${JSON.stringify(await readPages())};\n`);
  writeFileSync(DASHBOARD, `export default ${JSON.stringify(await readDashboard())};\n`);
  await bundleEntry(SCRIPT);
}

/**
 * Puts the Worker's entry and all that it imports into one file.
 * @param {string} file in `build/`
 * @param {string[]} [more] options of esbuild
 */
export function bundleEntry(file, more = []) {
  const options = ["--format=esm", "--charset=utf8", "--external:*.wasm", "--external:cloudflare:*", ...more];
  return run(ESBUILD, [ENTRY, ...BUNDLE, ...options, `--outfile=${file}`], {
    failure: "The Worker's entry does not build: see above",
  });
}

main(import.meta.url, build, {
  help: `Usage: npm run build

Builds the Worker into build/, unless nothing it is made of has changed.`,
});
