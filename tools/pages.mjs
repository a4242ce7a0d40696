/**
 * What the waiting page is made of, read from static/: for the Worker's build, for `npm run preview` and for tests. In the
 * npm package all but the owner's templates is made already.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure, PROJECT, ROOT, SOURCE } from "./toolchain.mjs";

const STATIC = join(ROOT, "static");
/** Owners' templates, seen from the project: `custom_page_html = "name"` is `static/pages/name.html`. */
export const PAGES = SOURCE ? join("static", "pages") : "pages";

const read = (...path) => readFileSync(join(STATIC, ...path), "utf8");

/** Every file of a folder by its name without the ending; none where there is no folder. */
function readAll(folder, ending) {
  if (!existsSync(folder)) return {};
  const names = readdirSync(folder).filter((name) => name.endsWith(ending));
  return Object.fromEntries(
    names.sort().map((name) => [name.slice(0, -ending.length), readFileSync(join(folder, name), "utf8")]),
  );
}

/** Makes it small, and takes the hash that the policy names from exactly the bytes that the page embeds. */
function embed({ transformSync }, file, options) {
  const code = transformSync(read(file), { ...options, minify: true, target: "es2022" }).code.trim();
  if (code.includes("</") || code.includes("<!--"))
    throw new Failure(`static/${file} would end the element that embeds it`);
  return [code, `sha256-${createHash("sha256").update(code).digest("base64")}`];
}

/** `src/edge/page/answer.js` says what each is. @param {string} [pages] folder of the owners' templates */
export async function readPages(pages = join(PROJECT, PAGES)) {
  const templates = readAll(pages, ".html");
  if (!SOURCE) return { ...(await import("../build/pages.js")).default, templates };
  // Here, because the set-up that installs it may be a part of the same run.
  const esbuild = await import("esbuild");
  const [style, styleHash] = embed(esbuild, "waiting.css", { loader: "css" });
  const [script, scriptHash] = embed(esbuild, "waiting.js", { loader: "js", format: "iife" });
  return {
    languages: readAll(join(STATIC, "languages"), ".json"),
    templates,
    template: read("waiting.mustache"),
    parts: { style, script, picture: read("door.svg").trim() },
    hashes: { style: styleHash, script: scriptHash },
  };
}
