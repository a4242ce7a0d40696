// Owners' pages: templates of the kind that people have render unchanged; what is wrong with one is found before a deploy.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";
import { STATES } from "../../tools/preview/facts.mjs";
import { problemsOf } from "../../tools/templates.mjs";
import { answerTo, pages, rendered } from "./page.mjs";

const FOLDER = new URL("templates/", import.meta.url);
const template = (name) => readFileSync(new URL(`${name}.html`, FOLDER), "utf8");
const problems = (source) =>
  problemsOf(source, pages.languages).map(({ line, message }) => `${line}: ${message}`);

for (const file of readdirSync(FOLDER)) {
  const source = readFileSync(new URL(file, FOLDER), "utf8");
  test(`${file} is sound and renders in every state`, async () => {
    assert.deepEqual(problems(source), []);
    for (const state of Object.keys(STATES)) {
      const page = await rendered(source, state);
      assert.doesNotMatch(page, /\{\{|undefined|NaN|\[object/, state);
    }
  });
}

test("the wait is known, not known, or too long to tell", async () => {
  const page = template("refresh");
  assert.match(await rendered(page, "known"), /Your estimated wait time is 10 minutes\.<\/p>/);
  assert.match(await rendered(page, "hours"), /is 3 hours 10 minutes \(3 h 10 min\)\./);
  assert.match(await rendered(page, "full"), /greater than a day/);
  assert.doesNotMatch(await rendered(page, "full"), /unavailable/);
  assert.match(await rendered(page, "unknown"), /wait time is unavailable/);
  const closed = await rendered(page, "closed");
  assert.match(closed, /wait time is unavailable[\s\S]*not letting anybody in/);
  assert.match(closed, /every 20 seconds\. Last updated: 2026-07-01T14:03:22\.005Z\./);
});

test("an event is counted down, and drawn by lot or not", async () => {
  const page = template("event");
  const lottery = await rendered(page, "lottery");
  assert.match(lottery, /<title>Starting soon<\/title>/);
  assert.match(lottery, /starts in 13 minutes<[\s\S]*data-minutes="13"[\s\S]*random place/);
  assert.match(await rendered(page, "prequeue"), /First come, first served/);
  assert.match(await rendered(page, "event"), /is on, for 1 hour 30 minutes<[\s\S]*About 10 min to go/);
  assert.match(await rendered(page, "known"), /There is no event/);
});

test("a random order is told by its percentiles", async () => {
  const page = template("lottery");
  const random = await rendered(page, "random");
  assert.match(random, /class="random"/);
  assert.match(
    random,
    /within 10 minutes,\na quarter within 5 and three quarters within 15: 5 minutes to 15/,
  );
  assert.match(await rendered(page, "reject"), /We are closed/);
  assert.match(await rendered(page, "passthrough"), /Open soon/);
  assert.match(await rendered(page, "known"), /First in, first out: 10 minutes/);
});

test("a page that is made by its own script gets values that are JavaScript", async () => {
  const [, script] = /<script>(.*)<\/script>/s.exec(await rendered(template("script"), "known"));
  const box = { dataset: {} };
  vm.runInNewContext(script, { document: { getElementById: () => box } });
  assert.equal(box.textContent, "About 10 min");
});

test("an owner's page refreshes without script, and may hold scripts, styles and images", async () => {
  const options = { facts: { customPage: "own", status: 202 }, templates: { own: template("script") } };
  const { headers, status, isPage } = await answerTo("known", options);
  assert.ok(isPage);
  assert.equal(status, 202);
  assert.equal(headers.refresh, "20; url=./x");
  assert.equal(
    headers["content-security-policy"],
    "object-src 'none'; base-uri 'self'; frame-ancestors 'self'",
  );
});

test("a page that is not there is the one of our own", async () => {
  const { body } = await answerTo("known", { facts: { customPage: "nowhere" } });
  assert.match(body, /You are in line for/);
  assert.match(
    (await answerTo("known", { facts: { customPage: "constructor" } })).body,
    /You are in line for/,
  );
});

test("the challenge is HTML, everything else is text", async () => {
  const facts = { turnstile: "<div class='challenge'></div>", message: "<b>Hi</b>" };
  const page = await rendered("{{{turnstile}}}|{{message}}", "known", { facts });
  assert.ok(page.endsWith("<div class='challenge'></div>|&lt;b&gt;Hi&lt;&#x2F;b&gt;"), page);
  assert.match(page, /^<script>.*anteroomTurnstile/, "with what sends its answer");
  assert.equal(await rendered("[{{{turnstile}}}]", "known"), "[]", "nothing where there is none");
});

test("mistakes are found with their line", () => {
  for (const [source, expected] of [
    ["<p>\n{{#waitTimeKnown}}\n</p>", [/^\d: Unclosed section "waitTimeKnown"/]],
    ["a\nb {{waitTime", [/^2: Unclosed tag/]],
    ["\n\n{{/queueAll}}", [/^3: Unopened section "queueAll"/]],
    ["{{#queueAll}}{{/queueFull}}", [/^1: Unclosed section "queueAll"/]],
    [
      "{{waitTimeFormated}}",
      [/^1: \{\{waitTimeFormated\}\} is not known: did you mean waitTimeFormatted\?$/],
    ],
    ["{{#isFifoQueue}}{{/isFifoQueue}}", [/did you mean isFIFOQueue\?/]],
    ["{{colour_of_the_sky}}", [/is not known$/]],
    [
      "{{#queueAll}}\n{{wait_time}}\n{{/queueAll}}",
      [/^2: \{\{wait_time\}\} is not known: did you mean waitTime\?/],
    ],
    ["{{> header}}", [/there are no partials/]],
    ["{{{message}}}", [/is not escaped/]],
    [`${"x".repeat(1_048_577)}`, [/^1: it has 1048577 bytes/]],
    ["{{! a comment }}{{#waitTime}}{{.}}{{/waitTime}}{{{turnstile}}}", []],
  ]) {
    const found = problems(source);
    assert.equal(found.length, expected.length, `${source.slice(0, 50)}: ${found}`);
    for (const [index, pattern] of expected.entries()) assert.match(found[index], pattern);
  }
});
