// The texts of the waiting page in all its languages: nothing is missing, nothing is left over.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { createLanguages, direction } from "../../src/edge/page/languages.js";
import { STATES } from "../../tools/preview/facts.mjs";
import { answerTo, pages, readable } from "./page.mjs";

const languages = Object.fromEntries(
  Object.entries(pages.languages).map(([tag, text]) => [tag, JSON.parse(text)]),
);
const ENGLISH = languages["en-US"];
const RIGHT_TO_LEFT = ["ar-EG", "fa-IR", "he-IL"];
const placeholders = (text) => (text.match(/\{\w*\}?/g) ?? []).sort();
const kinds = (tag) => new Intl.PluralRules(tag).resolvedOptions().pluralCategories.toSorted();

/** Those that rooms may name. */
const KNOWN = [
  ...readFileSync(new URL("../../src/room/page.rs", import.meta.url), "utf8")
    .match(/LANGUAGES: \[&str; 39\] = \[(.*?)\];/s)[1]
    .matchAll(/"([^"]+)"/g),
].map(([, tag]) => tag);

test("there is a file for every language that a room may name, and no other", () => {
  assert.deepEqual(Object.keys(languages).sort(), KNOWN.toSorted());
});

for (const [tag, texts] of Object.entries(languages)) {
  test(`${tag} says everything`, () => {
    assert.deepEqual(Object.keys(texts), Object.keys(ENGLISH), "the same texts in the same order");
    assert.equal(Intl.NumberFormat.supportedLocalesOf(tag).length, 1, "the platform knows its numbers");
    for (const [name, text] of Object.entries(texts)) {
      const variants = typeof text === "string" ? [text] : Object.values(text);
      if (typeof text !== "string")
        assert.deepEqual(Object.keys(text).sort(), kinds(tag), `${name}: plurals`);
      const [expected] = typeof text === "string" ? [ENGLISH[name]] : [ENGLISH[name].other];
      for (const variant of variants) {
        assert.equal(variant, variant.trim(), name);
        assert.notEqual(variant, "", name);
        assert.deepEqual(placeholders(variant), placeholders(expected), `${name}: ${variant}`);
        assert.doesNotMatch(variant, /[<>]|&\w+;/, `${name}: plain text`);
      }
    }
  });

  test(`${tag}: every state has a page in it`, async () => {
    for (const state of Object.keys(STATES)) {
      const { body, headers } = await answerTo(state, { facts: { language: tag, visitorLanguages: false } });
      assert.equal(headers["content-language"], tag);
      const side = RIGHT_TO_LEFT.includes(tag) ? "rtl" : "ltr";
      assert.ok(body.includes(`<html lang="${tag}" dir="${side}">`));
      assert.doesNotMatch(readable(body), /[{}]|undefined|NaN|\[object/, state);
    }
  });
}

test("the table for native readers has the sentences of today, of every language", () => {
  const table = readFileSync(new URL("../../docs/languages.md", import.meta.url), "utf8");
  const [, ...sections] = table.split(/^## .*`([\w-]+)`$/m);
  const byTag = { "en-US": table.split(/^## /m, 1)[0] };
  for (let at = 0; at < sections.length; at += 2) byTag[sections[at]] = sections[at + 1];
  assert.deepEqual(Object.keys(byTag).sort(), KNOWN.toSorted());
  for (const [tag, section] of Object.entries(byTag)) {
    const rows = [...section.matchAll(/^\| `(\w+)` \| (.*?) \|(?: (.*?) \|)?$/gm)];
    assert.equal(rows.length, 6, tag);
    for (const [, name, sentence, back] of rows) {
      assert.equal(sentence, languages[tag][name], `${tag}: ${name} has changed: translate it back anew`);
      if (tag === "en-US") continue;
      assert.deepEqual(placeholders(back), placeholders(ENGLISH[name]), `${tag}: ${name}`);
    }
  }
});

test("the visitor's language comes before the owner's", () => {
  const { choose } = createLanguages(Object.fromEntries(KNOWN.map((tag) => [tag, ""])));
  for (const [accepted, own, expected] of [
    ["", "de-DE", "de-DE"],
    ["fr", "de-DE", "fr-FR"],
    ["fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "en-US", "fr-FR"],
    ["xx, tlh;q=0.9, da;q=0.5", "en-US", "da-DK"],
    ["de;q=0.2, sv;q=0.8", "en-US", "sv-SE"],
    ["de;q=0, it", "en-US", "it-IT"],
    ["*", "ja-JP", "ja-JP"],
    ["xx", "ja-JP", "ja-JP"],
    ["zh", "en-US", "zh-CN"],
    ["zh-HK", "en-US", "zh-TW"],
    ["zh-Hant", "en-US", "zh-TW"],
    ["zh-SG", "en-US", "zh-CN"],
    ["pt-PT", "en-US", "pt-BR"],
    ["no", "en-US", "nb-NO"],
    ["nn-NO", "en-US", "nb-NO"],
    ["fil", "en-US", "tl-PH"],
    ["tl", "en-US", "tl-PH"],
    ["iw", "en-US", "he-IL"],
    ["in", "en-US", "id-ID"],
    ["sr", "en-US", "sr-BA"],
    ["EN-gb", "de-DE", "en-US"],
    ["__proto__, \u0000, ;;;q=x", "de-DE", "de-DE"],
    ["en-US".repeat(2_000), "de-DE", "de-DE"],
    ["", "no language", "en-US"],
  ])
    assert.equal(choose(accepted, own), expected, accepted.slice(0, 50));
});

test("letters that run from right to left are known", () => {
  assert.deepEqual(KNOWN.filter((tag) => direction(tag) === "rtl").sort(), RIGHT_TO_LEFT);
});

test("numbers and lengths of time follow the language", async () => {
  const said = async (tag, state) =>
    (await answerTo(state, { facts: { language: tag, visitorLanguages: false, asksForStatus: true } })).json;
  for (const [tag, minutes, hours] of [
    ["en-US", "7–15 minutes", "2–4.5 hours"],
    ["de-DE", "7–15 Minuten", "2–4,5 Stunden"],
    ["ar-EG", "٧–١٥ دقيقة", undefined],
    ["pl-PL", "7–15 minut", undefined],
  ]) {
    if (!(tag in languages)) continue;
    assert.equal((await said(tag, "known")).waitText, minutes);
    if (hours) assert.equal((await said(tag, "hours")).waitText, hours);
  }
  assert.match((await said("en-US", "hours")).peopleText, /48,211/);
});
