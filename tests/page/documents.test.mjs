// The documents: links lead to files and headings that are there, and so do the names of sources.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";

const ROOT = resolve(import.meta.dirname, "../..");
const FILES = ["", "docs"].flatMap((directory) =>
  readdirSync(join(ROOT, directory))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(ROOT, directory, name)),
);

/** A document without its code, in which `](` and `#` mean something else. */
const read = (file) =>
  readFileSync(file, "utf8")
    .replace(/^ *```.*?^ *```$/gms, "")
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()#]/g, ""));

/** The anchors of a document's headings, as GitHub makes them. */
function anchors(file) {
  const seen = new Map();
  return [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = text.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "").replaceAll(" ", "-");
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}

for (const file of FILES) {
  test(`${relative(ROOT, file)}: every link leads somewhere`, () => {
    for (const [, target] of read(file).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path, anchor] = target.split("#");
      const to = path === "" ? file : join(dirname(file), path);
      assert.ok(existsSync(to), `${target}: there is no such file`);
      if (anchor) assert.ok(anchors(to).includes(anchor), `${target}: there is no such heading`);
    }
  });
}

test("every source that a document names is there", () => {
  for (const file of FILES)
    for (const [, name] of readFileSync(file, "utf8").matchAll(
      /`([a-z][\w.-]*\/[\w./-]*\.(?:rs|m?js|toml|json))`/g,
    ))
      assert.ok(
        ["", "src", "tests"].some((root) => existsSync(join(ROOT, root, name))),
        `${relative(ROOT, file)} names ${name}`,
      );
});

test("the index names every document", () => {
  const index = read(join(ROOT, "docs/README.md"));
  for (const file of FILES.map((file) => relative(join(ROOT, "docs"), file)))
    if (file !== "README.md") assert.ok(index.includes(`](${file}`), `docs/README.md does not name ${file}`);
});

test("the README stays short", () => {
  assert.ok(readFileSync(join(ROOT, "README.md"), "utf8").split("\n").length <= 131);
});
