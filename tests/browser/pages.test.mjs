// Every page of the room in every state: what axe says, reflow, focus, and screenshots for human eyes.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { startDemoOrigin } from "../../tools/demo-origin.mjs";
import { inLine, inShop, look, startBrowser, startCrowd, startRoom, Visitor, wait } from "./room.mjs";

/** An origin with addresses at which a browser stays where it is. */
async function startOddOrigin() {
  const server = createServer((request, response) => {
    if (request.url === "/nothing") return response.writeHead(204).end();
    if (request.url === "/file") response.setHeader("content-disposition", "attachment; filename=list.txt");
    response.setHeader("content-type", "text/plain");
    response.end("a list\n");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const close = () => {
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

/** Changes what a visitor gets. What is under way when a page is left ends with it. */
function change({ context }, pattern, changed) {
  return context.route(pattern, async (route) => {
    const answer = await route.fetch().catch(() => undefined);
    if (!answer) return route.abort().catch(() => {});
    await route.fulfill({ response: answer, ...(await changed(answer)) });
  });
}
const without = (name) => (answer) => {
  const { [name]: _, ...headers } = answer.headers();
  return { headers };
};

/** What reloads itself cannot be looked at for long: for this visitor, pages stay as they are. */
const standStill = (visitor, url) => change(visitor, `${url}/**`, without("refresh"));

describe("pages", { concurrency: 2 }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser.close());

  const newRoom = async (t, options) => {
    const room = await startRoom(options);
    t.after(room.close);
    return room;
  };
  const newVisitor = async (t, options) => {
    const visitor = await Visitor.of(browser, options);
    t.after(() => visitor.close());
    return visitor;
  };

  describe("in line", { concurrency: 2 }, () => {
    test("with a few ahead, and after a check that failed", async (t) => {
      const room = await newRoom(t);
      t.after(await startCrowd(room.url, 1));
      const visitor = await newVisitor(t);
      await visitor.page.goto(room.url);
      await inLine(visitor.page).waitFor();
      await wait(visitor.page, /less than a minute|\b1(–2 minutes| minute)/).waitFor();
      await look(visitor.page, "waiting");
      visitor.expectQuiet(room.url);

      await visitor.context.setOffline(true);
      await visitor.page.getByText("The last check did not get through.").waitFor();
      await look(visitor.page, "trouble");
    });

    test("with a crowd", async (t) => {
      const room = await newRoom(t);
      t.after(await startCrowd(room.url, 60));
      const visitor = await newVisitor(t);
      await visitor.page.goto(room.url);
      await wait(visitor.page, /\d+–\d+ minutes/).waitFor();
      await look(visitor.page, "crowd");
      visitor.expectQuiet(room.url);
    });

    test("when the wait is not known", async (t) => {
      const room = await newRoom(t, { broken: true, room: { on_error: "queue" } });
      const visitor = await newVisitor(t);
      await visitor.page.goto(room.url);
      await visitor.page.getByText("Not known yet").waitFor();
      assert.equal(await visitor.page.title(), "You are in line – Waiting room");
      await look(visitor.page, "unknown");
      visitor.expectQuiet(room.url);
    });

    test("when the room is closed, without cookies, without script", async (t) => {
      const room = await newRoom(t, { room: { queue_all: true } });
      const visitor = await newVisitor(t);
      await visitor.page.goto(room.url);
      await visitor.page.getByText("Entry is closed for the moment").waitFor();
      await look(visitor.page, "closed");
      visitor.expectQuiet(room.url);

      const cookieless = await newVisitor(t);
      await cookieless.context.addInitScript(() => {
        Object.defineProperty(navigator, "cookieEnabled", { value: false });
      });
      await cookieless.page.goto(room.url);
      await cookieless.page.getByText("Your browser seems to refuse cookies.").waitFor();
      await look(cookieless.page, "cookieless");
      cookieless.expectQuiet(room.url);

      // axe is a script itself, so the page is taken apart as a browser without script would read it.
      const scriptless = await newVisitor(t);
      await change(scriptless, `${room.url}/`, async (answer) => ({
        ...without("refresh")(answer),
        body: (await answer.text()).replace(/<script>.*<\/script>/s, "").replace(/<\/?noscript>/g, ""),
      }));
      await scriptless.page.goto(room.url);
      await scriptless.page.getByText("This page reloads itself, about every").waitFor();
      await look(scriptless.page, "scriptless");
      scriptless.expectQuiet(room.url);
    });

    test("who asked for stillness sees nothing move", async (t) => {
      const room = await newRoom(t, { room: { queue_all: true } });
      const visitor = await newVisitor(t, { reducedMotion: "reduce" });
      await visitor.page.goto(room.url);
      await visitor.checksIn();
      await visitor.page.locator("#line").waitFor({ state: "hidden" });
      assert.equal(await visitor.page.getByRole("button", { name: "animation" }).count(), 0);
      visitor.expectQuiet(room.url);
    });

    test("whoever goes back to the page finds it up to date", async (t) => {
      const room = await newRoom(t, { room: { queue_all: true } });
      // Playwright switches the browser's cache of whole pages off.
      const keeping = await startBrowser({ ignoreDefaultArgs: ["--disable-back-forward-cache"] });
      t.after(() => keeping.close());
      for (const kept of [false, true]) {
        const visitor = await Visitor.of(keeping);
        const { page } = visitor;
        // Pages that are not to be stored are not kept either, over plain HTTP at least: then the page is loaded anew.
        if (kept) await change(visitor, `${room.url}/**`, without("cache-control"));
        await page.goto(room.url);
        await page.getByText("Entry is closed for the moment").waitFor();
        await visitor.checksIn();
        await page.evaluate(() => {
          globalThis.seen = document.querySelector("#checked").dateTime;
          location.href = "/__anteroom/nothing";
        });
        await page.getByText("Page not found").waitFor();
        const { checkIns } = visitor;
        await page.evaluate(() => history.back());
        await page.getByText("Entry is closed for the moment").waitFor();
        assert.equal(await page.evaluate(() => "seen" in globalThis), kept);
        if (kept)
          await page.waitForFunction(() => document.querySelector("#checked").dateTime !== globalThis.seen);
        await visitor.checksIn();
        assert.ok(visitor.checkIns > checkIns, "and goes on checking");
        await visitor.close();
      }
    });

    test("the moving line can be stopped", async (t) => {
      const room = await newRoom(t, { room: { queue_all: true } });
      const visitor = await newVisitor(t);
      const { page } = visitor;
      await page.goto(room.url);
      await page.locator("#line").waitFor();
      await page.getByRole("button", { name: "Stop the animation" }).press("Enter");
      await page.locator("#line").waitFor({ state: "hidden" });
      await visitor.checksIn();
      assert.ok(await page.locator("#line").isHidden());
      await page.getByRole("button", { name: "Show the animation" }).click();
      await page.locator("#line").waitFor();
      visitor.expectQuiet(room.url);
    });
  });

  test("an owner's page, from right to left and without script, lets its visitor in", async (t) => {
    const room = await newRoom(t, {
      room: { queue_all: true, custom_page_html: "example", message: "Bring a <coat> & a scarf." },
    });
    const looker = await newVisitor(t, { locale: "he-IL" });
    await standStill(looker, room.url);
    await looker.page.goto(room.url);
    await looker.page.getByText("Bring a <coat> & a scarf.").waitFor();
    assert.equal(await looker.page.locator("html").getAttribute("dir"), "rtl");
    await look(looker.page, "owners-page", { language: "he-IL" });
    assert.deepEqual(looker.problems, []);

    const scriptless = await newVisitor(t, { locale: "fa", javaScriptEnabled: false });
    await scriptless.page.goto(room.url);
    await scriptless.page.getByText("Bring a <coat> & a scarf.").waitFor();
    assert.equal(await scriptless.page.locator("html").getAttribute("lang"), "fa-IR");
    await room.change({ queue_all: false, total_active_users: 5 });
    await inShop(scriptless.page).waitFor();
  });

  test("an address that opens no page leaves a way in", async (t) => {
    const origin = await startOddOrigin();
    t.after(origin.close);
    const room = await newRoom(t, { origin: origin.url, room: { queue_all: true } });
    const nothing = await newVisitor(t);
    await nothing.page.goto(`${room.url}/nothing`);
    await inLine(nothing.page).waitFor();
    const file = await newVisitor(t);
    await file.page.goto(`${room.url}/file`);
    await inLine(file.page).waitFor();

    const download = file.page.waitForEvent("download");
    await room.change({ queue_all: false, total_active_users: 5 });
    assert.equal((await download).suggestedFilename(), "list.txt");
    for (const { page } of [nothing, file]) {
      await page.getByText("It is your turn").waitFor();
      await page.getByRole("link", { name: "Go in now" }).waitFor();
      assert.equal(page.navigations, 1);
    }
    await look(nothing.page, "your-turn");
    const again = file.page.waitForEvent("download");
    await file.page.getByRole("link", { name: "Go in now" }).click();
    await again;
  });

  test("an address of the room's own that does not exist", async (t) => {
    const room = await newRoom(t);
    const { page } = await newVisitor(t);
    const answer = await page.goto(`${room.url}/__anteroom/nothing`);
    assert.equal(answer.status(), 404);
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    await look(page, "404");
  });

  test("an address that leads to one room or another", async (t) => {
    const sale = { path: "/sale", total_active_users: 1, new_users_per_minute: 10, session_duration: 1 };
    const room = await newRoom(t, { vars: { ROOM_SALE: sale } });
    const { page } = await newVisitor(t);
    const answer = await page.goto(`${room.url}/open/..%2fsale`);
    assert.equal(answer.status(), 400);
    await page.getByRole("heading", { name: "Address not understood" }).waitFor();
    await look(page, "400");
  });

  test("a shop that does not answer, until it does", async (t) => {
    // It keeps its port: a closed one could be given to somebody else, who would answer.
    const silent = createTcpServer((socket) => socket.destroy());
    await new Promise((listening) => silent.listen(0, "127.0.0.1", listening));
    const { port } = silent.address();
    const room = await newRoom(t, { origin: `http://127.0.0.1:${port}` });
    const visitor = await newVisitor(t);
    await standStill(visitor, room.url);
    const { page } = visitor;
    const answer = await page.goto(`${room.url}/?from=letter`);
    assert.equal(answer.status(), 502);
    await page.getByRole("heading", { name: "The site does not answer" }).waitFor();
    await look(page, "502");

    await new Promise((closed) => silent.close(closed));
    const shop = await startDemoOrigin({ port });
    t.after(shop.close);
    await page.getByRole("link", { name: "Try again" }).click();
    await inShop(page).waitFor();
    assert.equal(page.url(), `${room.url}/?from=letter`);
  });

  test("the demo shop", async (t) => {
    const room = await newRoom(t);
    const visitor = await newVisitor(t);
    await visitor.page.goto(room.url);
    await inShop(visitor.page).waitFor();
    await look(visitor.page, "shop", { language: "en" });
    visitor.expectQuiet(room.url);
  });
});
