/**
 * What the dashboard is made of, read and bundled from static/dashboard/: for the Worker's build, for `npm run dashboard`
 * and for tests.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../toolchain.mjs";

const STATIC = join(ROOT, "static");
const DASHBOARD = join(STATIC, "dashboard");

/**
 * `src/edge/dashboard.js` says what each is.
 * @returns {Promise<import("../src/edge/dashboard.js").DashboardAssets>}
 */
export async function readDashboard() {
  // Here, because the set-up that installs it may be a part of the same run.
  const esbuild = await import("esbuild");
  const { outputFiles } = await esbuild.build({
    entryPoints: { script: join(DASHBOARD, "main.js"), style: join(DASHBOARD, "style.css") },
    outdir: "out",
    write: false,
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    loader: { ".txt": "text" },
    logLevel: "warning",
  });
  const text = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text;
  const [script, style] = [text(".js"), text(".css")];
  const languages = readdirSync(join(STATIC, "languages"))
    .filter((name) => name.endsWith(".json"))
    .map((name) => name.slice(0, -".json".length));
  return {
    template: readFileSync(join(DASHBOARD, "page.mustache"), "utf8"),
    script,
    style,
    version: createHash("sha256").update(script).update(style).digest("hex").slice(0, 16),
    languages: languages.sort(),
  };
}
