// The demo shop, through the room: whoever is inside meets the site as if no room were there.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inShop, startBrowser, startRoom, Visitor } from "./room.mjs";

describe("inside", () => {
  let browser;
  let room;
  let visitor;
  let page;
  before(async () => {
    browser = await startBrowser();
    room = await startRoom();
    visitor = await Visitor.of(browser);
    page = visitor.page;
    await page.goto(room.url);
  });
  after(async () => {
    await browser.close();
    await room.close();
  });

  test("the front page with its style", async () => {
    await inShop(page).waitFor();
    const shelf = await page.locator(".shelf").evaluate((list) => getComputedStyle(list).display);
    assert.equal(shelf, "grid");
  });

  test("links, there and back", async () => {
    await page.getByRole("link", { name: "Umbrella stand" }).click();
    await page.getByRole("heading", { name: "Umbrella stand" }).waitFor();
    await page.getByRole("link", { name: "Put it in the basket" }).click();
    await page.getByRole("heading", { name: "Your basket" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Umbrella stand" }).waitFor();
    await page.goBack();
    await inShop(page).waitFor();
  });

  test("cookies of both, the shop's untouched", async () => {
    const names = (await visitor.context.cookies()).map(({ name }) => name).sort();
    assert.deepEqual(names, ["__anteroom", "shop_seen", "shop_session"]);
  });

  test("JSON", async () => {
    const answer = await page.evaluate(async () => (await fetch("/api/stock")).json());
    assert.equal(answer.stock.length, 3);
  });

  test("what is sent to the shop arrives", async () => {
    const answer = await page.evaluate(async () => {
      const response = await fetch("/checkout?sent", {
        method: "POST",
        body: new URLSearchParams({ item: "1" }),
      });
      return { status: response.status, text: await response.text() };
    });
    assert.equal(answer.status, 200);
    assert.match(answer.text, /POST \/checkout\?sent/);
  });

  test("a stream, line by line", async () => {
    const parts = await page.evaluate(async () => {
      const reader = (await fetch("/stream")).body.pipeThrough(new TextDecoderStream()).getReader();
      const read = [];
      for (let part = await reader.read(); !part.done; part = await reader.read()) read.push(part.value);
      return read;
    });
    assert.ok(parts.length > 1, "not held back until it was complete");
    assert.match(parts.join(""), /^line 1 of 5 .*\n(line \d of 5 .*\n){4}$/);
  });

  test("a WebSocket that echoes", async () => {
    const echoed = await page.evaluate(
      () =>
        new Promise((done, fail) => {
          const socket = new WebSocket(`ws://${location.host}/socket`);
          const heard = [];
          socket.onopen = () => socket.send("hello");
          socket.onmessage = ({ data }) => {
            heard.push(data);
            if (heard.length === 1) socket.send("à bientôt");
            else socket.close(1000, "enough");
          };
          socket.onclose = ({ code }) => done({ heard, code });
          socket.onerror = () => fail(new Error("the socket failed"));
        }),
    );
    assert.deepEqual(echoed, { heard: ["hello", "à bientôt"], code: 1000 });
  });

  test("a second tab", async () => {
    const second = await visitor.newTab();
    await second.goto(`${room.url}/product/1`);
    await second.getByRole("heading", { name: "Reading lamp" }).waitFor();
    await second.close();
  });

  test("nothing complained, nothing was asked for elsewhere", () => visitor.expectQuiet(room.url));

  test("the shop's own 404 is the shop's", async () => {
    const answer = await page.goto(`${room.url}/no/such/thing`);
    assert.equal(answer.status(), 404);
    await page.getByRole("heading", { name: "Not here" }).waitFor();
  });
});
