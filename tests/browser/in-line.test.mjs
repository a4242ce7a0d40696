// A visitor in line: waits, is let in by the page itself, comes back, comes twice. Each test has a room and a clock of
// its own: a place is free after a minute.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inLine, inShop, startBrowser, startRoom, Visitor } from "./room.mjs";

/** Whoever is inside has left: a session has gone by. */
const sessionEnds = (room) => room.pass(60_000);

describe("in line", { concurrency: 3 }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser.close());

  /** A room whose one place is taken by somebody who looks at one page only. */
  const fullRoom = async (t, options) => {
    const room = await startRoom(options);
    t.after(room.close);
    const first = await Visitor.of(browser);
    t.after(() => first.close());
    await first.page.goto(room.url);
    await inShop(first.page).waitFor();
    return { room, first };
  };
  const newVisitor = async (t, options) => {
    const visitor = await Visitor.of(browser, options);
    t.after(() => visitor.close());
    return visitor;
  };

  for (const [where, address] of [
    ["an address with query and fragment", "/?from=letter&for=%C3%A9t%C3%A9#demo"],
    ["an address with a query", "/?from=letter"],
  ]) {
    test(`with script, the page updates in place and then opens ${where}`, async (t) => {
      const { room } = await fullRoom(t);
      const visitor = await newVisitor(t);
      const { page } = visitor;
      const url = room.url + address;

      const answer = await page.goto(url);
      assert.equal(answer.status(), 200);
      assert.match(answer.headers().refresh, /^\d+; url=\.\/\?/);
      await inLine(page).waitFor();
      const length = await page.evaluate(() => history.length);
      const checkedAt = await page.locator("#checked").getAttribute("datetime");
      await visitor.checksIn(2);
      await page.waitForFunction((was) => document.querySelector("#checked").dateTime !== was, checkedAt);
      await inLine(page).waitFor();
      assert.equal(page.navigations, 1, "the waiting page was loaded once");

      await sessionEnds(room);
      await inShop(page).waitFor();
      assert.equal(page.url(), url);
      assert.equal(page.navigations, 2, "one load of the waiting page, one of the shop");
      const loads = visitor.requests.filter(({ document }) => document);
      assert.equal(loads.length, 2, "nothing was reloaded unseen");
      assert.ok(visitor.checkIns >= 3);
      assert.equal(
        await page.evaluate(() => history.length),
        length,
        "the back button skips the waiting page",
      );
      const said = visitor.said.map(({ text }) => text);
      assert.ok(said.includes("it is your turn"), `a screen reader hears of it: ${said}`);
      visitor.expectQuiet(room.url);
    });
  }

  test("without script, the page reloads itself until it is the shop", async (t) => {
    const { room } = await fullRoom(t);
    const visitor = await newVisitor(t, { javaScriptEnabled: false });
    const { page } = visitor;
    const url = `${room.url}/?from=letter`;
    await page.goto(url);
    await inLine(page).waitFor();
    assert.match(
      await page.locator("noscript p").first().textContent(),
      /reloads itself, about every \d+ seconds/,
    );
    await page.waitForRequest((request) => request.isNavigationRequest());
    await sessionEnds(room);
    await inShop(page).waitFor();
    assert.equal(page.url(), url);
    assert.ok(page.navigations >= 3, `${page.navigations} loads`);
    assert.equal(visitor.checkIns, 0);
    visitor.expectQuiet(room.url);
  });

  test("without script, it reloads an address with a fragment, too", async (t) => {
    const room = await startRoom({ room: { queue_all: true } });
    t.after(room.close);
    const visitor = await newVisitor(t, { javaScriptEnabled: false });
    const { page } = visitor;
    await page.goto(`${room.url}/product/2?from=letter#demo`);
    await inLine(page).waitFor();
    // Not a scroll to the fragment, which is what Chromium makes of a reload without an address.
    await page.waitForRequest((request) => request.isNavigationRequest());
    await room.change({ queue_all: false });
    await page.getByRole("heading", { name: "Oak stool" }).waitFor();
  });

  test("every tab of one visitor is let in for one place", async (t) => {
    const { room } = await fullRoom(t);
    const visitor = await newVisitor(t);
    await visitor.page.goto(room.url);
    await inLine(visitor.page).waitFor();
    const second = await visitor.newTab();
    await second.goto(`${room.url}/product/2`);
    await inLine(second).waitFor();
    const cookies = await visitor.context.cookies();
    assert.deepEqual(
      cookies.map(({ name, httpOnly, sameSite, path }) => ({ name, httpOnly, sameSite, path })),
      [{ name: "__anteroom", httpOnly: true, sameSite: "Lax", path: "/" }],
    );
    await sessionEnds(room);
    await Promise.all([
      inShop(visitor.page).waitFor(),
      second.getByRole("heading", { name: "Oak stool" }).waitFor(),
    ]);
    const next = await newVisitor(t);
    await next.page.goto(room.url);
    await inLine(next.page).waitFor();
    visitor.expectQuiet(room.url);
  });

  test("who closes the page and comes back has kept the place", async (t) => {
    // Nobody waits for somebody whose check-in is one and a half refreshes late: long ones leave a slow machine time.
    const { room, first } = await fullRoom(t, {
      room: { session_duration: 30, refresh_interval_seconds: 10, enabled_origin_commands: ["revoke"] },
    });
    const early = await newVisitor(t);
    await early.page.goto(room.url);
    await inLine(early.page).waitFor();
    // Whoever comes in the same minute has the same place in line.
    await room.pass(60_000);
    await early.checksIn();
    const late = await newVisitor(t);
    await late.page.clock.install();
    /** The page would check in much later by its own clock. */
    const lateChecksIn = () => late.page.clock.fastForward(120_000);
    await late.page.goto(room.url);
    await late.page.getByText(/1 person is ahead of you\./).waitFor();
    await early.page.close();
    // Gone, as far as the room can tell.
    await room.pass(40_000);
    await lateChecksIn();
    await late.page.getByText("You are among the next to go in.").waitFor();
    const again = await early.newTab();
    await again.goto(room.url);
    await inLine(again).waitFor();
    await room.pass(5_000);
    await lateChecksIn();
    await late.page.getByText(/1 person is ahead of you\./).waitFor();

    await first.page.goto(`${room.url}/checkout`);
    await first.page.getByRole("button", { name: "Order now" }).click();
    await inShop(again).waitFor();
    await room.pass(5_000);
    await lateChecksIn();
    await late.page.getByText("You are among the next to go in.").waitFor();
    await inLine(late.page).waitFor();
    early.expectQuiet(room.url);
    late.expectQuiet(room.url);
  });

  test("a closed room tells so, and opens its pages when it is opened", async (t) => {
    const room = await startRoom({ room: { queue_all: true } });
    t.after(room.close);
    const visitor = await newVisitor(t);
    const { page } = visitor;
    await page.goto(`${room.url}/product/1`);
    await page.getByText("Entry is closed for the moment").waitFor();
    assert.equal(await page.title(), "Entry is closed for the moment – Waiting room");
    await visitor.checksIn();
    await room.change({ queue_all: false });
    await page.getByRole("heading", { name: "Reading lamp" }).waitFor();
    assert.equal(page.navigations, 2);
  });

  test("who is inside goes on when the room is closed", async (t) => {
    const { room, first } = await fullRoom(t);
    await room.change({ queue_all: true });
    await first.page.getByRole("link", { name: "Oak stool" }).click();
    await first.page.getByRole("heading", { name: "Oak stool" }).waitFor();
    const visitor = await newVisitor(t);
    await visitor.page.goto(room.url);
    await visitor.page.getByText("Entry is closed for the moment").waitFor();
  });

  test("a lost connection is told, and forgotten when it is back", async (t) => {
    const { room } = await fullRoom(t);
    const visitor = await newVisitor(t);
    const { page } = visitor;
    await page.goto(room.url);
    await inLine(page).waitFor();
    await visitor.context.setOffline(true);
    const trouble = page.getByText("The last check did not get through.");
    await trouble.waitFor();
    await inLine(page).waitFor();
    await visitor.context.setOffline(false);
    await trouble.waitFor({ state: "detached" });
    await sessionEnds(room);
    await inShop(page).waitFor();
    assert.equal(page.navigations, 2);
  });
});
