/**
 * What the waiting page is made of, read from static/: for the Worker's build, for `npm run preview` and for tests.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure, ROOT } from "./toolchain.mjs";

const STATIC = join(ROOT, "static");
/** Owners' pages: `custom_page_html = "name"` is `static/pages/name.html`, a template, or `name.toml`, a branding of ours. */
export const PAGES = join(STATIC, "pages");

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
function embed({ transformSync }, file, options, more = "") {
  const code = transformSync(read(file) + more, { ...options, minify: true, target: "es2022" }).code.trim();
  if (code.includes("</") || code.includes("<!--"))
    throw new Failure(`static/${file} would end the element that embeds it`);
  return [code, `sha256-${createHash("sha256").update(code).digest("base64")}`];
}

/** `src/edge/page/answer.js` says what each is. @param {string} [pages] folder of the owners' templates */
export async function readPages(pages = PAGES) {
  // Here, because the set-up that installs it may be a part of the same run.
  const esbuild = await import("esbuild");
  const { readBrand } = await import("./branding.mjs");
  const brands = Object.entries(readAll(pages, ".toml")).map(([name, source]) => {
    const { brand, problems } = readBrand(source, pages);
    const [style, hash] = embed(
      esbuild,
      "waiting.css",
      { loader: "css" },
      problems.length > 0 ? "" : brand.style,
    );
    return [name, { ...brand, style, hash, problems }];
  });
  const [style, styleHash] = embed(esbuild, "waiting.css", { loader: "css" });
  const [script, scriptHash] = embed(esbuild, "waiting.js", { loader: "js", format: "iife" });
  return {
    languages: readAll(join(STATIC, "languages"), ".json"),
    templates: readAll(pages, ".html"),
    brands: Object.fromEntries(brands),
    template: read("waiting.mustache"),
    parts: { style, script, picture: read("door.svg").trim() },
    hashes: { style: styleHash, script: scriptHash },
  };
}
