// An event as visitors live it: the countdown of its prequeue, the lottery, and the door that opens at its start.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inShop, look, startBrowser, startRoom, Visitor } from "./room.mjs";

describe("an event", () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser.close());

  test("people gather before the start, and the page lets in whoever the lottery has put first", async (t) => {
    // A whole minute, as a lottery wants it, and time enough for three browsers to come and be looked at.
    const start = Math.ceil(Date.now() / 60_000 + 30) * 60_000;
    const at = (ms) => new Date(ms).toISOString();
    const room = await startRoom({
      // On other days everybody may come.
      room: { queueing_method: "passthrough" },
      vars: {
        EVENT_DROP: {
          room: "demo",
          prequeue_start_time: at(start - 4 * 3_600_000),
          event_start_time: at(start),
          event_end_time: at(start + 3_600_000),
          shuffle_at_event_start: true,
          queueing_method: "fifo",
          session_duration: 30,
        },
      },
    });
    t.after(room.close);
    const visitors = await Promise.all([1, 2, 3].map(() => Visitor.of(browser)));
    for (const visitor of visitors) {
      t.after(() => visitor.close());
      await visitor.page.goto(room.url);
    }
    const [{ page }] = visitors;
    await page.getByText("Time until the start").waitFor();
    await page.getByText("Coming early is no advantage").waitFor();
    assert.match(await page.locator("#countdown").textContent(), /^00:[123]\d:\d\d$/);
    await look(page, "prequeue", { keyboard: false });
    for (const visitor of visitors) assert.equal(await inShop(visitor.page).isVisible(), false);

    // They come back once more before the start, as their pages do, and then one of them enters and no other: the room has
    // one place.
    await room.pass(start - 60_000 - room.now());
    await Promise.all(visitors.map((visitor) => visitor.checksIn()));
    const before = await Promise.all(visitors.map((visitor) => inShop(visitor.page).isVisible()));
    assert.deepEqual([...before, room.now() < start], [false, false, false, true], "not before the start");
    await room.pass(start + 1_000 - room.now());
    await Promise.any(visitors.map((visitor) => inShop(visitor.page).waitFor()));
    await Promise.any(visitors.map((visitor) => visitor.checksIn(2)));
    const inside = await Promise.all(visitors.map((visitor) => inShop(visitor.page).isVisible()));
    assert.equal(inside.filter(Boolean).length, 1);
    const waits = visitors[inside.indexOf(false)].page;
    await waits.getByText("Time until the start").waitFor({ state: "hidden" });
    await waits.getByText("You are in line").waitFor();
  });
});
