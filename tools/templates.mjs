/**
 * What is wrong with owners' templates of the waiting page (`static/pages/`, in a project `pages/`), before anybody sees one.
 */
import Mustache from "mustache";
import { variables } from "../src/edge/page/template.js";
import { words } from "../src/edge/page/words.js";
import { PAGES } from "./pages.mjs";
import { plainFacts } from "./preview/facts.mjs";

/** As users of waiting rooms know it. */
const LARGEST_BYTES = 1_048_576;
/** A name that differs in this many letters may be meant. */
const NEAR = 4;

/** All names that a template may use. @param {Record<string, string>} languages as `readPages` reads them */
function knownNames(languages) {
  const texts = JSON.parse(languages["en-US"]);
  const facts = plainFacts();
  return Object.keys(variables(facts, words(facts, "en-US", texts), "en-US", texts));
}

/** In how many letters two words differ. */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1];
    for (const [place, theirs] of [...other].entries())
      next.push(Math.min(next[place] + 1, row[place + 1] + 1, row[place] + (letter === theirs ? 0 : 1)));
    row = next;
  }
  return row.at(-1);
}

/** The known name that may be meant, in words. @param {string} name @param {string[]} known */
export function meant(name, known) {
  const [nearest] = known
    .map((other) => ({ other, letters: distance(name.toLowerCase(), other.toLowerCase()) }))
    .sort((left, right) => left.letters - right.letters);
  return nearest.letters <= NEAR ? `: did you mean ${nearest.other}?` : "";
}

/**
 * @param {string} source a template
 * @param {Record<string, string>} languages as `readPages` reads them
 * @returns {{ line: number, message: string }[]} in the order of lines
 */
export function problemsOf(source, languages) {
  const lineAt = (offset) => source.slice(0, offset).split("\n").length;
  const bytes = Buffer.byteLength(source);
  if (bytes > LARGEST_BYTES)
    return [{ line: 1, message: `it has ${bytes} bytes, and may have at most ${LARGEST_BYTES}` }];
  let tokens;
  try {
    tokens = Mustache.parse(source);
  } catch (error) {
    const [, what, offset] = /^(.*) at (\d+)$/s.exec(error.message) ?? [undefined, error.message, 0];
    return [{ line: lineAt(Number(offset)), message: what }];
  }
  const known = knownNames(languages);
  const problems = [];
  const visit = ([kind, name, start, , inside]) => {
    if (kind === ">") problems.push({ line: lineAt(start), message: `{{>${name}}}: there are no partials` });
    // What a page shows of a visitor may hold anything; only the challenge is HTML of ours.
    if (kind === "&" && name !== "turnstile" && known.includes(name))
      problems.push({ line: lineAt(start), message: `{{{${name}}}} is not escaped: write {{${name}}}` });
    if (["name", "&", "#", "^"].includes(kind)) {
      const [first] = name.split(".");
      if (name !== "." && !known.includes(first))
        problems.push({ line: lineAt(start), message: `{{${name}}} is not known${meant(first, known)}` });
    }
    if (Array.isArray(inside)) inside.forEach(visit);
  };
  tokens.forEach(visit);
  return problems.sort((left, right) => left.line - right.line);
}

/**
 * @param {Awaited<ReturnType<typeof import("./pages.mjs").readPages>>} pages
 * @returns {string[]} one line for each problem of each template and branding
 */
export function problemsOfAll({ templates, brands, languages }) {
  const said = (file, problems) =>
    problems.map(({ line, message }) => `${PAGES}/${file}:${line}: ${message}`);
  return [
    ...Object.entries(templates).flatMap(([name, source]) =>
      said(`${name}.html`, problemsOf(source, languages)),
    ),
    ...Object.entries(brands).flatMap(([name, { problems }]) => said(`${name}.toml`, problems)),
    ...Object.keys(brands)
      .filter((name) => Object.hasOwn(templates, name))
      .map((name) => `${PAGES}/${name}.toml:1: there is also ${name}.html: a page is one or the other`),
  ];
}
