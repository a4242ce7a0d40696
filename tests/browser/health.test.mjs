// The status page in Chromium: with and without JavaScript, live without a reload, on a phone and a desk, by day and by
// night.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  anHour,
  notification,
  platformTime,
  record,
  unobserved,
  WEBHOOK,
  WEBHOOK_SECRET,
} from "../edge/health.mjs";
import { expectNoSidewaysScrolling, look, NARROWEST, startBrowser, startRoom, Visitor } from "./room.mjs";

const PAGE = "/__anteroom/health";

describe("the status page", { concurrency: 2 }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser.close());

  const newRoom = async (t, vars) => {
    const ours = unobserved("production", "staging");
    const room = await startRoom({ vars: { WEBHOOK_SECRET, HEALTH_PAGE: "public", ...ours, ...vars } });
    t.after(room.close);
    return room;
  };
  const newVisitor = async (t, options) => {
    const visitor = await Visitor.of(browser, options);
    t.after(() => visitor.close());
    return visitor;
  };
  const notify = async (room, data) => {
    const headers = { "cf-webhook-auth": WEBHOOK_SECRET };
    const body = JSON.stringify(notification(data));
    const answer = await fetch(`${room.url}${WEBHOOK}`, { method: "POST", headers, body });
    assert.equal(answer.status, 200, await answer.text());
  };
  const row = (page, name) => page.locator("#checks tr", { hasText: name });

  const observe = async (room) => {
    const answer = await room.tell("HEALTH", "health", "/record", record(anHour(Date.now())));
    assert.equal(answer.status, 200, await answer.text());
  };

  test("keeps itself up to date without a reload, and says so once", async (t) => {
    const room = await newRoom(t);
    const visitor = await newVisitor(t);
    const { page } = visitor;
    await page.goto(`${room.url}${PAGE}`);
    await page.getByText("Nothing has been reported yet").waitFor();
    const loads = page.navigations;

    await notify(room, { time: platformTime(Date.now() - 30_000) });
    await page.getByText("configuration-service is unhealthy").waitFor();
    await row(page, "configuration-service").getByText("Unhealthy").waitFor();
    await row(page, "configuration-service").getByText("TCP connection failed").waitFor();

    await notify(room, { status: "Healthy", reason: "No failures", actual_code: 200 });
    await page.getByText("The check is healthy").waitFor();
    await row(page, "configuration-service").getByText("No failures").waitFor();
    assert.match(await page.title(), /^Healthy/);
    assert.equal(page.navigations, loads, "the page was loaded again");
    assert.deepEqual(
      visitor.said.map(({ text }) => text),
      ["configuration-service is unhealthy", "The check is healthy"],
    );
    visitor.expectQuiet(room.url);
  });

  test("draws its tables as charts, in every size and light, and axe has nothing to say", async (t) => {
    const room = await newRoom(t);
    await observe(room);
    await notify(room, {
      time: platformTime(Date.now() - 600_000),
      reason: "Response code mismatch error",
      actual_code: 503,
    });
    const visitor = await newVisitor(t);
    const { page } = visitor;
    await page.goto(`${room.url}${PAGE}?range=1h`);
    await page.locator("#availability-chart canvas").waitFor();
    await page.locator("#total-chart canvas").waitFor();
    await page.locator("details summary").click();
    await look(page, "health", { keyboard: false, language: "en" });
    // What is open stays open when the page is brought up to date.
    await notify(room, { status: "Healthy", reason: "No failures", actual_code: 200 });
    await row(page, "configuration-service").getByText("No failures").waitFor();
    assert.ok(await page.locator("details").evaluate((details) => details.open));
    assert.equal(await page.locator("#availability-chart canvas").count(), 1);

    await page.getByRole("link", { name: "staging" }).click();
    await page.getByRole("link", { name: "Show all checks" }).waitFor();
    assert.equal(await page.locator("#checks tbody tr").count(), 1);
    await page.getByRole("link", { name: "7 days" }).click();
    await page.getByRole("heading", { name: "The last 7 days" }).waitFor();
    assert.equal(await page.locator("#checks tbody tr").count(), 1, "the check is still the chosen one");
    visitor.expectQuiet(room.url);
  });

  test("has nothing to scroll sideways for before a busy phone that was turned has drawn its charts anew", async (t) => {
    const room = await newRoom(t);
    await observe(room);
    const { page } = await newVisitor(t);
    await page.addInitScript(() => {
      const { addEventListener } = window;
      window.addEventListener = (type, ...more) => type !== "resize" && addEventListener(type, ...more);
    });
    await page.goto(`${room.url}${PAGE}?range=1h`);
    const chart = page.locator("#availability-chart canvas");
    await chart.waitFor();
    await page.setViewportSize(NARROWEST);
    const width = await chart.evaluate(({ clientWidth }) => clientWidth);
    assert.ok(width > NARROWEST.width, "the chart is as it was");
    await expectNoSidewaysScrolling(page, "with a chart of before");
  });

  test("says the same without JavaScript, and before the first check", async (t) => {
    const room = await newRoom(t);
    const visitor = await newVisitor(t, { javaScriptEnabled: false });
    const { page } = visitor;
    await page.goto(`${room.url}${PAGE}`);
    await page.getByText("Nothing has been reported yet").waitFor();
    await observe(room);
    await notify(room);
    await page.goto(`${room.url}${PAGE}?range=1h`);
    await page.getByText("2 of 3 checks unhealthy: configuration-service, staging").waitFor();
    const cells = (table) => page.locator(`#${table} tbody tr`).allInnerTexts();
    const lines = async (table) => (await cells(table)).map((line) => line.split("\t").slice(0, 3));
    assert.deepEqual(await lines("errors"), [
      ["configuration-service", "TCP connection failed", "1"],
      ["production", "No failures", "0"],
      ["staging", "TCP connection failed", "60"],
    ]);
    assert.deepEqual(
      (await cells("regions")).map((line) => line.split("\t").slice(0, 2).join(" ")),
      ["production SEAS", "production WEU", "staging SEAS", "staging WEU"],
    );
    assert.equal((await cells("results")).length, 50);
    await page.locator("details summary").click();
    assert.ok((await cells("course")).length >= 13);
    assert.equal(await page.locator("canvas").count(), 0);
  });

  test("tells that it cannot be brought up to date, and takes it back", async (t) => {
    const room = await newRoom(t);
    const visitor = await newVisitor(t);
    const { page } = visitor;
    await page.goto(`${room.url}${PAGE}`);
    await visitor.context.setOffline(true);
    await page.getByText("could not be brought up to date").waitFor();
    await visitor.context.setOffline(false);
    await page.locator("#trouble:empty").waitFor({ state: "attached" });
  });

  test("asks a browser for the token as a password", async (t) => {
    const room = await newRoom(t, { HEALTH_PAGE: "token", ADMIN_TOKEN: "a-token-that-is-long" });
    const visitor = await newVisitor(t, {
      httpCredentials: { username: "me", password: "a-token-that-is-long" },
    });
    const { page } = visitor;
    await page.goto(`${room.url}${PAGE}`);
    await page.getByText("Nothing has been reported yet").waitFor();
    await notify(room);
    await page.getByText("configuration-service is unhealthy").waitFor();
    const stranger = await newVisitor(t);
    assert.equal(
      (await stranger.page.goto(`${room.url}${PAGE}`).catch(() => undefined))?.status() ?? 401,
      401,
    );
  });
});
