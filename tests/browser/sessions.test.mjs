// A session from its end, and inside pages of other sites.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { inLine, inShop, look, startBrowser, startRoom, Visitor } from "./room.mjs";

describe("sessions", () => {
  let browser;
  before(async () => {
    // Without third-party cookies, but for partitioned ones: as browsers come to be.
    browser = await startBrowser({ args: ["--disable-gpu", "--test-third-party-cookie-phaseout"] });
  });
  after(() => browser.close());

  async function newRoom(t, room) {
    const started = await startRoom({ room });
    t.after(started.close);
    return started;
  }

  async function newVisitor(t, room) {
    const visitor = await Visitor.of(browser);
    t.after(() => visitor.close());
    await visitor.page.goto(room.url);
    return visitor;
  }

  test("whoever has ordered makes room for the next in line", async (t) => {
    const room = await newRoom(t, {
      enabled_origin_commands: ["revoke"],
      session_duration: 30,
      queueing_status_code: 429,
    });
    const customer = await newVisitor(t, room);
    await inShop(customer.page).waitFor();
    const next = await newVisitor(t, room);
    await inLine(next.page).waitFor();

    await customer.page.goto(`${room.url}/checkout`);
    await customer.page.getByRole("button", { name: "Order now" }).click();
    await customer.page.getByRole("heading", { name: "Thank you" }).waitFor();
    await look(customer.page, "ordered", { keyboard: false, language: "en" });
    const names = (await customer.context.cookies()).map(({ name }) => name);
    assert.ok(!names.includes("__anteroom"), `${names}`);
    // A session lasts half an hour: nothing but the order lets anybody in before.
    await inShop(next.page).waitFor();
    // A script of the page that is still open gets something to act on, not a page.
    const told = await customer.page.evaluate(async () => {
      const answer = await fetch("/api/stock");
      const { headers } = answer;
      return [
        answer.status,
        headers.get("anteroom"),
        Number(headers.get("retry-after")),
        await answer.json(),
      ];
    });
    assert.deepEqual(told.slice(0, 2), [429, "waiting"]);
    assert.ok(told[2] > 0);
    assert.equal(told[3].cfWaitingRoom.inWaitingRoom, true);
    await customer.page.getByRole("link", { name: "Back to all things" }).click();
    await inLine(customer.page).waitFor();
  });

  /** A page of another site that shows the room in a frame. */
  async function startHost(t, url) {
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" });
      response.end(
        `<!doctype html><title>Another site</title><iframe title="Shop" src="${url}" width="900" height="700">`,
      );
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    t.after(() => new Promise((closed) => server.close(closed)));
    return `http://127.0.0.1:${server.address().port}/`;
  }

  test("a script of another site's page can read that and how long to wait", async (t) => {
    const room = await newRoom(t, { total_active_users: 1 });
    await inShop((await newVisitor(t, room)).page).waitFor();
    const visitor = await Visitor.of(browser);
    t.after(() => visitor.close());
    await visitor.page.goto(await startHost(t, "about:blank"));
    const told = await visitor.page.evaluate(async (address) => {
      const answer = await fetch(address, { credentials: "include" });
      return [answer.headers.get("anteroom"), Number(answer.headers.get("retry-after")), await answer.json()];
    }, room.url);
    assert.equal(told[0], "waiting");
    assert.ok(told[1] > 0);
    assert.equal(told[2].cfWaitingRoom.inWaitingRoom, true);
  });

  /** A visitor of such a page: 127.0.0.1 and localhost are two sites. */
  async function inFrame(t, room) {
    const host = await startHost(t, room.url.replace("127.0.0.1", "localhost"));
    const visitor = await Visitor.of(browser);
    t.after(() => visitor.close());
    await visitor.page.goto(host);
    return { visitor, frame: visitor.page.frameLocator("iframe") };
  }

  const ticket = async ({ context }) => (await context.cookies()).find(({ name }) => name === "__anteroom");

  test("in a frame of another site a place is kept by a partitioned cookie", async (t) => {
    const room = await newRoom(t, { cookie_attributes: { samesite: "none" } });
    const first = await newVisitor(t, room);
    await inShop(first.page).waitFor();
    const { visitor, frame } = await inFrame(t, room);
    await inLine(frame).waitFor();
    const cookie = await ticket(visitor);
    assert.ok(cookie?.partitionKey, "the browser has put it into the partition of the other site");
    await visitor.checksIn(2);
    assert.ok(await frame.locator("#cookies").isHidden());
    assert.notEqual((await ticket(visitor)).value, cookie.value, "each check renews it");
    await room.pass(60_000);
    await inShop(frame).waitFor();
  });

  test("without partition the browser refuses it there, and the page says so", async (t) => {
    const room = await newRoom(t, { cookie_attributes: { samesite: "none", partitioned: false } });
    const first = await newVisitor(t, room);
    await inShop(first.page).waitFor();
    const { visitor, frame } = await inFrame(t, room);
    await inLine(frame).waitFor();
    assert.equal(await ticket(visitor), undefined);
    await visitor.checksIn(1);
    await frame.locator("#cookies").waitFor();
  });
});
