// Branding of Anteroom's own page: what it changes, and what is wrong with one is found before a deploy.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createWaitingRoom } from "../../src/edge/page/answer.js";
import { readBrand } from "../../tools/branding.mjs";
import { readPages } from "../../tools/pages.mjs";
import { factsOf } from "../../tools/preview/facts.mjs";
import { problemsOfAll } from "../../tools/templates.mjs";
import { BROWSER } from "./page.mjs";

const FOLDER = fileURLToPath(new URL("brands/", import.meta.url));
const pages = await readPages(FOLDER);

async function branded(language, customPage = "shop") {
  const request = new Request("https://shop.example.com/sale", {
    headers: { ...BROWSER, "accept-language": language },
  });
  const response = createWaitingRoom(pages)(factsOf("known", { customPage }), request);
  return { body: await response.text(), policy: response.headers.get("content-security-policy") };
}

test("the owner's logo, colours, font, links and consent are in the page, in the visitor's language", async () => {
  assert.deepEqual(problemsOfAll(pages), []);
  const { body } = await branded("de-AT");
  assert.match(body, /<img class="logo" src="data:image\/svg\+xml;base64,[\w+/=]+" alt="The Shop">/);
  assert.match(body, /--accent:#a3123f/);
  assert.match(body, /prefers-color-scheme: ?dark\) ?\{ ?:root ?\{ ?--paper:#140a0e/);
  assert.match(body, /font-family: Georgia, serif/);
  assert.match(body, /stimmt den Bedingungen/);
  assert.match(
    body,
    /<a href="https:&#x2F;&#x2F;shop\.example\.com&#x2F;imprint" target="_blank" rel="noopener">Impressum/,
  );
  assert.match((await branded("ja")).body, /you accept the terms/, "where there is none, the first");
});

test("its policy allows its own style and no other, and pages without branding are as ever", async () => {
  const { body, policy } = await branded("en");
  const [, style] = /<style>(.*)<\/style>/s.exec(body);
  const hash = createHash("sha256").update(style).digest("base64");
  assert.ok(policy.includes(`style-src 'sha256-${hash}';`), policy);
  const plain = await branded("en", "");
  assert.doesNotMatch(plain.body, /a3123f|class="logo"|class="links"|class="consent"/);
  assert.ok(plain.policy.includes(`style-src '${pages.hashes.style}';`));
});

for (const [mistake, source, said] of [
  [
    "faint text",
    '[light]\npaper = "#fff"\nink = "#999"\naccent = "#00f"',
    /^1: light has a contrast of 2\.8 to 1/,
  ],
  [
    "the same in the dark",
    '[dark]\npaper = "#000"\nink = "#fff"\naccent = "#222"',
    /^1: dark has .* accent and paper/,
  ],
  ["one colour of three", '[light]\npaper = "#fff"\nink = "#000"', /^1: light must have accent = /],
  ["no colour", '[light]\npaper = "whitish"\nink = "#000"\naccent = "#00f"', /^2: paper must have paper = /],
  [
    "a colour to look through",
    '[light]\npaper = "#fff8"\nink = "#000"\naccent = "#00f"',
    /^2: paper must have .* opaque/,
  ],
  [
    "no such logo",
    'logo_text = "x"\n[light]\nlogo = "none.svg"',
    /^3: logo is none\.svg, and there is no such file/,
  ],
  [
    "a logo from elsewhere",
    'logo_text = "x"\n[light]\nlogo = "../shop.svg"',
    /^3: logo must be a file beside/,
  ],
  ["a logo without words", '[light]\nlogo = "shop.svg"', /^2: logo needs logo_text/],
  [
    "a script for a link",
    '[[links]]\ntext = "x"\nurl = "javascript:alert(1)"',
    /^1: links must have a url .* not javascript/,
  ],
  ["a style for a font", 'font = "x; } body { display: none"', /^1: font must be names/],
  ["a misspelt field", 'consnet = "x"', /^1: consnet is not known: did you mean consent\?/],
  ["no TOML", "font = Georgia", /^1: Invalid TOML/],
])
  test(`a mistake is told with its line: ${mistake}`, () => {
    const told = readBrand(source, FOLDER).problems.map(({ line, message }) => `${line}: ${message}`);
    assert.equal(told.length, 1, told.join("\n"));
    assert.match(told[0], said);
  });

test("a logo that would make every page large is refused", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "anteroom-brand-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "large.png"), new Uint8Array(20_481));
  const [{ message }] = readBrand('logo_text = "x"\n[light]\nlogo = "large.png"', folder).problems;
  assert.match(message, /has 20481 bytes, and may have at most 20480/);
});
