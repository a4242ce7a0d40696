// A visitor closes the waiting page: the place is given back, and kept for whoever comes back in time.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { eventually } from "../edge/world.mjs";
import { inLine, inShop, startBrowser, startRoom, Visitor } from "./room.mjs";

const ADMIN_TOKEN = "the-token-of-the-tests";

describe("closing the page", () => {
  let browser;
  let room;
  let visitor;
  before(async () => {
    browser = await startBrowser();
    const fields = { session_duration: 30, refresh_interval_seconds: 60, place_kept_seconds: 600 };
    room = await startRoom({ room: fields, vars: { ADMIN_TOKEN } });
    const first = await Visitor.of(browser);
    await first.page.goto(room.url);
    await inShop(first.page).waitFor();
    visitor = await Visitor.of(browser);
    await visitor.page.goto(room.url);
    await inLine(visitor.page).waitFor();
    await waiting(1);
  });
  after(async () => {
    await browser?.close();
    await room?.close();
  });

  const status = async () => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const answer = await fetch(`${room.url}/__anteroom/status`, { headers });
    return (await answer.json()).rooms[0].state.waiting;
  };

  /** The buckets with waiting users, as soon as so many users wait in all. */
  const waiting = (users) =>
    eventually(`${users} wait`, async () => {
      const buckets = await status();
      return buckets.reduce((sum, [, count]) => sum + count, 0) === users && buckets;
    });

  test("nobody is given up who loads the page anew, or has it open a second time", async () => {
    await visitor.page.reload();
    await inLine(visitor.page).waitFor();
    const second = await visitor.newTab();
    await second.goto(room.url);
    await inLine(second).waitFor();
    // The first one's last check-in is not the ticket's last one any more.
    await visitor.page.close({ runBeforeUnload: true });
    visitor.page = second;
    // All reports and pushes have come.
    await room.pass(10_000);
    assert.equal((await waiting(1)).length, 1);
    visitor.expectQuiet(room.url);
  });

  test("whoever leaves it is not counted, and keeps the place when coming back", async () => {
    const [[bucket]] = await waiting(1);
    const elsewhere = await visitor.newTab();
    // Not by closing the tab: Chromium gives a page half a second then, in which a busy machine may not come round to it.
    await visitor.page.evaluate(() => location.assign("about:blank"));
    await waiting(0);
    await elsewhere.goto(room.url);
    await inLine(elsewhere).waitFor();
    assert.deepEqual(await waiting(1), [[bucket, 1]], "the same minute, once");
  });
});
