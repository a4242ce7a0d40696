// It is the visitor's turn, who has to go in within a minute, else it is the next one's.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { eventually } from "../edge/world.mjs";
import { inLine, inShop, look, startBrowser, startRoom, Visitor } from "./room.mjs";

const SESSION_MS = 5 * 60_000;

describe("a turn that has to be taken", { concurrency: 3 }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser.close());

  /** Somebody waits, and the one who was in has left. */
  async function turn(t, options) {
    const room = await startRoom({
      room: { session_duration: 5, place_kept_seconds: 600, confirm_within_minutes: 1 },
    });
    t.after(room.close);
    const visitors = [];
    for (const more of [{}, options]) {
      const visitor = await Visitor.of(browser, more);
      t.after(() => visitor.close());
      await visitor.page.goto(room.url);
      visitors.push(visitor);
    }
    await inShop(visitors[0].page).waitFor();
    await inLine(visitors[1].page).waitFor();
    await room.pass(SESSION_MS);
    return { room, visitor: visitors[1], page: visitors[1].page };
  }

  const goIn = (page) => page.getByRole("link", { name: "Go in now" });

  test("with script, the page says so in place, and its link goes in", async (t) => {
    const { room, visitor, page } = await turn(t);
    await goIn(page).waitFor();
    assert.equal(await page.title(), "It is your turn – Waiting room");
    assert.match(await page.locator("#note").textContent(), /limited: (1 minute|\d+ seconds)\. /);
    assert.match(await page.locator("#countdown").textContent(), /^00:(01:00|00:\d\d)$/);
    assert.equal(page.navigations, 1, "nothing was loaded");
    await look(page, "turn");
    const said = visitor.said.map(({ text }) => text);
    assert.ok(said.includes("it is your turn"), `a screen reader hears of it: ${said}`);
    await goIn(page).click();
    await inShop(page).waitFor();
    visitor.expectQuiet(room.url);
  });

  test("without script, it is a page with that link", async (t) => {
    const { room, visitor, page } = await turn(t, { javaScriptEnabled: false });
    await goIn(page).waitFor();
    await page.getByRole("heading", { name: "It is your turn" }).waitFor();
    await goIn(page).click();
    await inShop(page).waitFor();
    visitor.expectQuiet(room.url);
  });

  test("whoever does not go in is told so by the page, and may join the line anew", async (t) => {
    const { room, page } = await turn(t);
    await goIn(page).waitFor();
    await room.pass(61_000);
    // The page's own minute is not over: a page that is looked at again asks at once.
    await eventually("the page asks", async () => {
      await page.evaluate(() => dispatchEvent(new Event("online"))).catch(() => {});
      return page.getByRole("heading", { name: "Your turn is over" }).isVisible();
    });
    await look(page, "turn-over");
    await page.getByRole("link", { name: "Join the line" }).click();
    await inShop(page).waitFor();
  });
});
