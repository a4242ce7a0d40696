/**
 * What the waiting page is made of, read from static/: for the Worker's build, for `npm run preview` and for tests. In the
 * npm package all but the owner's templates is made already.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure, PROJECT, ROOT, SOURCE } from "./toolchain.mjs";

const STATIC = join(ROOT, "static");
/**
 * Owners' pages, seen from the project: `custom_page_html = "name"` is `static/pages/name.html`, a template, or `name.toml`,
 * a branding of ours.
 */
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

/** As the policy names it. @param {string} code exactly the bytes that the page embeds */
const hashOf = (code) => `sha256-${createHash("sha256").update(code).digest("base64")}`;

/** Makes it small. */
function embed({ transformSync }, file, options) {
  const code = transformSync(read(file), { ...options, minify: true, target: "es2022" }).code.trim();
  if (code.includes("</") || code.includes("<!--"))
    throw new Failure(`static/${file} would end the element that embeds it`);
  return code;
}

/** What is the same for every owner. */
async function readOwn() {
  if (!SOURCE) return (await import("../build/pages.js")).default;
  // Here, because the set-up that installs it may be a part of the same run.
  const esbuild = await import("esbuild");
  const style = embed(esbuild, "waiting.css", { loader: "css" });
  const ofLink = style + embed(esbuild, "continue.css", { loader: "css" });
  const scriptFor = (...may) => {
    const define = Object.fromEntries(
      ["CONFIRM", "PUSH"].map((what) => [`MAY_${what}`, `${may.includes(what)}`]),
    );
    return embed(esbuild, "waiting.js", { loader: "js", format: "iife", treeShaking: true, define });
  };
  const [script, fullScript] = [scriptFor(), scriptFor("CONFIRM", "PUSH")];
  return {
    languages: readAll(join(STATIC, "languages"), ".json"),
    template: read("waiting.mustache"),
    message: read("message.mustache"),
    continuation: { template: read("continue.mustache"), style: ofLink, hash: hashOf(ofLink) },
    parts: { style, script, fullScript, picture: read("door.svg").trim() },
    hashes: { style: hashOf(style), script: hashOf(script), fullScript: hashOf(fullScript) },
    pushWorker: embed(esbuild, "push.js", { loader: "js" }),
  };
}

/** `src/edge/page/answer.js` says what each is. @param {string} [pages] folder of the owner's templates and brandings */
export async function readPages(pages = join(PROJECT, PAGES)) {
  const own = await readOwn();
  const { readBrand } = await import("./branding.mjs");
  const brands = Object.entries(readAll(pages, ".toml")).map(([name, source]) => {
    const { brand, problems } = readBrand(source, pages);
    const style = own.parts.style + (problems.length > 0 ? "" : brand.style);
    return [name, { ...brand, style, hash: hashOf(style), problems }];
  });
  return { ...own, templates: readAll(pages, ".html"), brands: Object.fromEntries(brands) };
}
