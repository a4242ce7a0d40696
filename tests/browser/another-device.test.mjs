// A visitor who waits goes on with the place on another device: by the link that the QR code holds.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inLine, inShop, look, startBrowser, startRoom, Visitor } from "./room.mjs";

describe("another device", () => {
  let browser;
  let room;
  before(async () => {
    browser = await startBrowser();
    const fields = { session_duration: 30, place_kept_seconds: 600, continue_on_another_device: true };
    room = await startRoom({ room: fields });
    const first = await Visitor.of(browser);
    await first.page.goto(room.url);
    await inShop(first.page).waitFor();
  });
  after(async () => {
    await browser?.close();
    await room?.close();
  });

  /** The page of the link, in a tab of its own, and the link for the other device in it. */
  async function offer(visitor) {
    const opened = visitor.context.waitForEvent("page");
    await visitor.page.getByRole("link", { name: "Continue on another device" }).click();
    const page = await opened;
    await page.getByRole("img", { name: /^Scan this code/ }).waitFor();
    return { page, link: await page.locator(".address a").getAttribute("href") };
  }

  /** The one who waits has a cookie: its place. */
  const hasPlace = async (visitor) =>
    (await visitor.context.cookies()).some(({ name }) => name === "__anteroom");

  for (const javaScriptEnabled of [true, false]) {
    test(`takes the place along, ${javaScriptEnabled ? "with" : "without"} a script`, async () => {
      const old = await Visitor.of(browser, { javaScriptEnabled });
      await old.page.goto(room.url);
      await inLine(old.page).waitFor();
      const { page, link } = await offer(old);
      if (javaScriptEnabled) await look(page, "another-device");

      const phone = await Visitor.of(browser, { javaScriptEnabled });
      await phone.page.goto(link);
      await phone.page.getByRole("button", { name: "Continue here" }).waitFor();
      assert.equal(await phone.page.locator("svg.code").count(), 0);
      assert.equal(await hasPlace(phone), false, "looking takes nothing");
      await phone.page.getByRole("button", { name: "Continue here" }).click();
      await inLine(phone.page).waitFor();
      assert.equal(await hasPlace(phone), true);

      const third = await Visitor.of(browser, { javaScriptEnabled });
      await third.page.goto(link);
      await third.page.getByRole("button", { name: "Continue here" }).click();
      await third.page.getByRole("heading", { name: "This link is over" }).waitFor();

      // By itself: the script asks, or the page reloads.
      await room.pass(30_000);
      await old.page.getByRole("heading", { name: "Your place is on another device" }).waitFor();
      assert.equal(await hasPlace(old), false);
      for (const visitor of [old, phone, third]) await visitor.close();
    });
  }
});
