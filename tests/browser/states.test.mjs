// Every state of the waiting page in the browser, as the preview shows it: by the code that answers visitors.
import assert from "node:assert/strict";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { STATES } from "../../tools/preview/facts.mjs";
import { startPreview } from "../../tools/preview/server.mjs";
import { inLine, look, objections, startBrowser, Visitor, wait } from "./room.mjs";

const TEMPLATES = join(import.meta.dirname, "..", "page", "templates");
const BRANDS = join(import.meta.dirname, "..", "page", "brands");

describe("states", { concurrency: 2 }, () => {
  let browser;
  let preview;
  let folder;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "anteroom-pages-"));
    mkdirSync(folder, { recursive: true });
    copyFileSync(join(TEMPLATES, "script.html"), join(folder, "script.html"));
    cpSync(BRANDS, folder, { recursive: true });
    preview = await startPreview({ pages: folder });
    browser = await startBrowser();
  });
  after(async () => {
    await browser.close();
    await preview.close();
    rmSync(folder, { recursive: true });
  });

  const newVisitor = async (t, options) => {
    const visitor = await Visitor.of(browser, { locale: "en-US", ...options });
    t.after(() => visitor.close());
    return visitor;
  };
  const address = (parameters) => `${preview.url}/preview?${new URLSearchParams(parameters)}`;

  for (const state of Object.keys(STATES)) {
    test(`${state}: nothing that axe objects to`, async (t) => {
      const visitor = await newVisitor(t);
      await visitor.page.goto(address({ state }));
      await look(visitor.page, `state-${state}`);
      visitor.expectQuiet(preview.url);
    });
  }

  test("with an owner's branding, in both lights", async (t) => {
    const visitor = await newVisitor(t);
    await visitor.page.goto(address({ state: "known", page: "shop" }));
    await visitor.page.getByRole("img", { name: "The Shop" }).waitFor();
    assert.ok(await visitor.page.locator(".logo").evaluate((logo) => logo.naturalWidth > 0));
    await look(visitor.page, "branded");
    for (const [number, state] of Object.keys(STATES).entries()) {
      await visitor.page.goto(address({ state, page: "shop" }));
      const colorScheme = ["light", "dark"][number % 2];
      await visitor.page.emulateMedia({ colorScheme });
      assert.deepEqual(await objections(visitor.page), [], `${state}, ${colorScheme}`);
    }
  });

  for (const [language, direction] of [
    ["de-DE", "ltr"],
    ["ja-JP", "ltr"],
    ["ar-EG", "rtl"],
  ]) {
    test(`in ${language}, by the browser's own wish`, async (t) => {
      const visitor = await newVisitor(t, { locale: language });
      await visitor.page.goto(address({ state: "lottery" }));
      assert.equal(await visitor.page.locator("html").getAttribute("dir"), direction);
      await look(visitor.page, `language-${language}`, { language });
      await visitor.checksIn();
      visitor.expectQuiet(preview.url);
    });
  }

  test("before an event the seconds are counted down, by the visitor's own clock", async (t) => {
    const visitor = await newVisitor(t, { timezoneId: "Asia/Tokyo" });
    const { page } = visitor;
    // 23:59:50 in Japan: the event starts on the next day.
    const now = Date.parse("2026-07-01T14:59:50Z");
    await page.clock.setFixedTime(now);
    await page.goto(address({ state: "prequeue" }));
    const countdown = page.getByRole("timer");
    assert.equal(await countdown.textContent(), "00:12:34");
    assert.equal(await page.locator("#start").textContent(), "Start: July 2 at 12:12 AM GMT+9");
    await page.clock.setFixedTime(now + 1_000);
    await countdown.filter({ hasText: "00:12:33" }).waitFor();
    visitor.expectQuiet(preview.url);
  });

  test("the time of entry is told by the visitor's own clock", async (t) => {
    const { page } = await newVisitor(t, { timezoneId: "Asia/Kolkata" });
    // 15:30 in India.
    await page.clock.setFixedTime("2026-07-01T10:00:00Z");
    await page.goto(address({ state: "known" }));
    assert.match(await page.locator("#checked").textContent(), /\b3:30:00\sPM GMT\+5:30\b/);
    const text = await page.locator("#expected").textContent();
    assert.match(text, /^Expected time of entry: 3:37\s–\s3:44\sPM GMT\+5:30$/);
  });

  test("a page that rejects does not come back", async (t) => {
    const visitor = await newVisitor(t);
    await visitor.page.clock.install();
    await visitor.page.goto(address({ state: "reject" }));
    await visitor.page.getByText("Entry is closed").first().waitFor();
    await visitor.page.clock.runFor(120_000);
    assert.equal(visitor.checkIns, 0);
    assert.equal(visitor.page.navigations, 1);
    visitor.expectQuiet(preview.url);
  });

  test("what the challenge gave is brought until it is judged, and not again", async (t) => {
    const visitor = await newVisitor(t);
    const { page } = visitor;
    const tokens = [];
    await visitor.context.route("**/preview?*", async (route) => {
      const headers = route.request().headers();
      if (headers["anteroom-status"] !== "1") return route.continue();
      const bringAgain = tokens.push(headers["anteroom-turnstile"] ?? "") < 3;
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), bringAgain } });
    });
    await page.clock.install();
    await page.goto(address({ state: "known" }));
    const first = visitor.checksIn();
    await page.evaluate(() => globalThis.anteroomTurnstile("token"));
    await first;
    for (let count = 2; count <= 4; count += 1) {
      const next = visitor.checksIn();
      while (tokens.length < count) await page.clock.runFor(1_000);
      await next;
    }
    assert.deepEqual(tokens, ["token", "token", "token", ""]);
  });

  test("without script the page says all it can", async (t) => {
    const { page } = await newVisitor(t, { javaScriptEnabled: false, locale: "ar-EG" });
    await page.goto(address({ state: "prequeue" }));
    await page.getByText("UTC").first().waitFor();
    assert.equal(await page.locator("#line").isVisible(), false);
    assert.equal(await page.locator("html").getAttribute("lang"), "ar-EG");
  });

  test("the visitor's turn, and a check that fails", async (t) => {
    const visitor = await newVisitor(t);
    await visitor.page.goto(address({ state: "turn" }));
    // Not by its words: those who wait read some of them too, and the page would turn while it is looked at.
    await visitor.page.getByRole("link", { name: "Go in now" }).waitFor();
    await visitor.page.getByText("it is your turn", { exact: true }).waitFor();
    await look(visitor.page, "state-turn");
    await visitor.page.goto(address({ state: "trouble" }));
    await visitor.page.getByText("The last check did not get through.").waitFor();
    await look(visitor.page, "state-trouble");
  });

  test("who has asked to be told hears and sees that it is the turn; nobody else does", async (t) => {
    for (const asks of [true, false]) {
      const visitor = await newVisitor(t, { permissions: ["notifications"] });
      const { page } = visitor;
      await page.addInitScript(() => {
        globalThis.signals = [];
        // The browser's own, which shows it if it may.
        globalThis.shown = new Promise((resolve) => {
          globalThis.Notification = class extends Notification {
            constructor(...asked) {
              super(...asked);
              globalThis.signals.push(this.title);
              this.onshow = resolve;
            }
          };
        });
        const { start } = OscillatorNode.prototype;
        OscillatorNode.prototype.start = function (...when) {
          globalThis.signals.push("a note");
          start.apply(this, when);
        };
        navigator.vibrate = () => globalThis.signals.push("vibrates");
      });
      // The page's timers wait for the test.
      await page.clock.install();
      await page.clock.pauseAt(Date.now() + 60_000);
      await page.goto(address({ state: "turn" }));
      const button = page.getByRole("button", { name: "Tell me when it is my turn" });
      await button.waitFor();
      if (asks) {
        await button.click();
        await page.getByText("You will be told with a sound").waitFor();
        await button.waitFor({ state: "hidden" });
      }
      await page.clock.runFor(1_000);
      await page.getByRole("link", { name: "Go in now" }).waitFor();
      if (asks) await page.evaluate(async () => void (await globalThis.shown));
      const signals = await page.evaluate(() => globalThis.signals);
      assert.deepEqual(signals, asks ? ["a note", "a note", "vibrates", "It is your turn"] : []);
      visitor.expectQuiet(preview.url);
    }
  });

  test("an owner's page runs its scripts and styles, and shows what was saved", async (t) => {
    const visitor = await newVisitor(t);
    const { page } = visitor;
    await page.goto(address({ state: "known", page: "script" }));
    const box = page.locator("#box");
    await box.filter({ hasText: "About 10 min" }).waitFor();
    assert.equal(
      await box.evaluate((element) => getComputedStyle(element).backgroundColor),
      "rgb(17, 34, 51)",
    );
    assert.equal(await box.evaluate((element) => getComputedStyle(element).paddingTop), "16px");
    await box.click();
    assert.equal(await box.getAttribute("data-clicked"), "yes");
    assert.deepEqual(visitor.problems, []);
    writeFileSync(join(folder, "script.html"), "<!doctype html><title>x</title><p>{{waitTimeFormated}}");
    await page.getByText("did you mean waitTimeFormatted?").waitFor();
  });

  test("the preview leads to every state, in a language", async (t) => {
    const { page } = await newVisitor(t);
    await page.goto(preview.url);
    await page.getByLabel("Language").selectOption("ar-EG");
    await page.getByRole("link", { name: "closed", exact: true }).click();
    assert.equal(await page.locator("html").getAttribute("lang"), "ar-EG");
    for (const [query, text] of [
      ["force_queue=true", /nobody is let in/],
      ["queue_is_full=true", /more than a day/],
      ["waitTime=30", /20–45 minutes/],
      ["queueing_method=random&waitTime=30", /15–45 minutes/],
      ["queueing_method=passthrough&event=prequeueing&shuffle_at_event_start=true", /13 minutes/],
    ]) {
      await page.goto(`${preview.url}/preview?${query}`);
      await inLine(page)
        .or(page.getByRole("heading", { name: /You are in line/ }))
        .first()
        .waitFor();
      await wait(page, text).waitFor();
    }
    await page.goto(`${preview.url}/preview?queueing_method=passthrough`);
    await page.getByRole("heading", { name: "Welcome" }).waitFor();
  });
});
