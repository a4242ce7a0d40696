// The dashboard in Chromium, in front of a server that speaks the operator API with rooms that are made up: each state on a
// phone and a desk, by day and by night, and what happens when operators steer, connections break and others are faster.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startDashboard, TOKENS } from "../../tools/dashboard/server.mjs";
import { eventually } from "../edge/world.mjs";
import { look, startBrowser, Visitor } from "./room.mjs";

const tokenOf = (role) => Object.keys(TOKENS).find((token) => TOKENS[token].role === role);
/** The preview's frame runs no script, and a wrong value is refused: Chromium says so. */
const EXPECTED = /Blocked script execution in .* sandboxed|responded with a status of 400/;

describe("the dashboard", { concurrency: 2 }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser.close());

  /** A server, and an operator who looks at one of its rooms. */
  async function open(t, room, { role = "steer", hash = "", server: options, ...context } = {}) {
    const server = await startDashboard(options);
    t.after(server.close);
    const operator = await Visitor.of(browser, context);
    t.after(() => operator.close());
    const { page } = operator;
    if (role) {
      const cookie = { name: "__anteroom_operator", value: tokenOf(role), url: server.url };
      await operator.context.addCookies([cookie]);
    }
    await page.goto(`${server.url}${room ? `#room=${room}${hash}` : ""}`);
    return { server, operator, page };
  }

  /** Looks at a state. The preview's frame is taken out: axe waits in vain for a script in it. */
  const see = async (page, state, language = "en") => {
    await page.evaluate(() => document.querySelector("iframe")?.remove());
    await look(page, state, { keyboard: false, language });
  };
  const expectQuiet = ({ problems }) =>
    assert.deepEqual(
      problems.filter((text) => !EXPECTED.test(text)),
      [],
    );
  const figure = (page, name) => page.locator(".figure", { hasText: name }).locator(".big");
  const panel = (page, name) => page.getByRole("region", { name, exact: true });
  const drawn = (page) => page.locator(".chart canvas").nth(2).waitFor();

  const STATES = {
    quiet: "Everybody enters at once",
    observing: "people would wait",
    sale: "people wait, up to",
    closed: "Nobody new enters",
    deployed: "A deploy has changed this from 1,000 to 1,500 beneath",
    unhealthy: "The origin is unhealthy (check shop)",
    event: "people wait for drop",
    planet: "300 data centers",
    silent: "Nobody is here",
    unreachable: "What goes on in this room is not known",
  };
  for (const [room, text] of Object.entries(STATES)) {
    test(`shows a room that is ${room}, in every size and light`, async (t) => {
      const { operator, page } = await open(t, room);
      await page.getByText(text).first().waitFor();
      await drawn(page);
      await see(page, `dashboard-${room}`);
      expectQuiet(operator);
    });
  }

  test("says nothing of a queue that a suspension overrides, nor of health checks that there are not", async (t) => {
    const { page } = await open(t, "closed");
    await page.getByText("■ Everybody is queued", { exact: true }).waitFor();
    await panel(page, "Origin, last minute").getByText("No health check reports trouble.").waitFor();
    await page.getByRole("button", { name: "Suspend the room" }).click();
    await page.getByRole("button", { name: "Yes, suspend it" }).click();
    await page.getByText("■ Everybody is queued when the room is on again").waitFor();
    await page.getByText("everybody goes past").waitFor();
    assert.equal(await page.getByText("nobody new enters").count(), 0);
    await page.getByRole("button", { name: "Let people in again" }).click();
    await page.getByText("closed is suspended and queues nobody.").waitFor();
    const { page: quiet } = await open(t, "quiet");
    await panel(quiet, "Origin, last minute").getByText("No health check speaks for it.").waitFor();
  });

  test("goes live with a room that only observes, and back", async (t) => {
    const { page } = await open(t, "observing");
    await page.getByText("– The room only observes: everybody passes", { exact: true }).waitFor();
    await page.getByText(/With about [\d,]+ active users and [\d,]+ new users per minute nobody/).waitFor();
    const share = page.getByLabel("On for so many of the visitors");
    await share.fill("101");
    await page.getByText("Must be from 0 to 100 %.").waitFor();
    await share.fill("5");
    await page.getByRole("button", { name: "Put in force" }).click();
    await page.getByText("On for so many of the visitors is now 5 %.").waitFor();
    await page.getByText(/Everybody passes, but for 5 % of the visitors, for whom it is on/).waitFor();
    await page.getByRole("button", { name: "Go live" }).click();
    await page.getByText(/would wait, and will see the waiting page with the next request/).waitFor();
    await page.getByRole("button", { name: "Yes, go live" }).click();
    await page.getByText("○ The room is live", { exact: true }).waitFor();
    await page.getByRole("heading", { name: /Queueing/ }).waitFor();
    await page.getByRole("button", { name: "Only observe" }).click();
    await page.getByRole("button", { name: "Yes, only observe" }).click();
    await page.getByRole("heading", { name: /Observes/ }).waitFor();
    const { page: usual } = await open(t, "quiet");
    await usual.getByText("○ The room is on", { exact: true }).waitFor();
    await usual.getByLabel("On for so many of the visitors").waitFor({ state: "hidden" });
    assert.equal(await usual.getByRole("button", { name: "Only observe" }).count(), 0);
  });

  test("asks for a token, says when it was wrong, and lets in", async (t) => {
    const { page } = await open(t, "", { role: "" });
    await see(page, "dashboard-sign-in", "en-US");
    await page.getByLabel("Token").fill("a token of somebody else");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    await see(page, "dashboard-wrong-token", "en-US");
    await page.getByLabel("Token").fill(tokenOf("steer"));
    await page.keyboard.press("Enter");
    // The room with most people in line comes first, when no other is asked for.
    await page.getByText("300 data centers").waitFor();
    assert.equal(new URL(page.url()).hash, "#room=planet");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
  });

  test("queues everybody after one more question, which the keyboard answers too", async (t) => {
    const { server, operator, page } = await open(t, "sale");
    const queue = page.getByRole("button", { name: "Queue everybody", exact: true });
    await queue.focus();
    await page.keyboard.press("Enter");
    await page.getByText(/From now on nobody new enters sale/).waitFor();
    await see(page, "dashboard-confirm");
    await page.keyboard.press("Escape");
    assert.ok(await queue.evaluate((button) => button === document.activeElement));
    assert.equal(server.rooms.get("sale").value("queue_all"), false);

    await page.keyboard.press("Enter");
    await page.getByRole("group", { name: "Are you sure?" }).getByLabel("It holds").selectOption("30m");
    await page.getByRole("group", { name: "Are you sure?" }).getByLabel("Why").fill("Payment is down");
    await page.getByRole("button", { name: "Yes, queue everybody" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /Shut/ }).waitFor();
    await page.getByText(/Steered by anna, .*, until .* \(in \d+ min\)\. Why: Payment is down/).waitFor();
    await page.getByText("✓ In force in 7 of 7 colos (version 7)").waitFor();
    assert.equal(server.rooms.get("sale").value("queue_all"), true);
    await panel(page, "Audit log")
      .getByRole("row", { name: /anna Queue everybody set off on until .* off Payment is down/ })
      .waitFor();
    await page.getByText(/anna set Queue everybody to on until .*, it was off \(Payment is down\)/).waitFor();

    await page.reload();
    await page.getByRole("button", { name: "Let people in again" }).click();
    await page.getByRole("button", { name: "Yes, let them in" }).click();
    await page.getByText("People enter again.").waitFor();
    const kinds = server.rooms.get("sale").audit.map(({ kind }) => kind);
    // As it was deployed: nothing is left that stands above it.
    assert.deepEqual(kinds.slice(-2), ["set", "clear"]);
    expectQuiet(operator);
  });

  test("puts limits and a message in force together, and tells at the field what is wrong with one", async (t) => {
    const { server, operator, page } = await open(t, "quiet");
    const active = page.getByLabel("Active users at once", { exact: true });
    await active.fill("0");
    await page.getByText("Must be from 1 to 2,147,483,647.").waitFor();
    assert.equal(await active.getAttribute("aria-invalid"), "true");
    await active.fill("200");
    await page.getByText(/are active. Nobody is thrown out: new users enter when \d+ have left/).waitFor();
    await page.getByRole("button", { name: "New users per minute −10 %" }).click();
    const message = page.getByLabel("Message to those who wait");
    await message.fill("Come to our casino");
    await page.getByRole("button", { name: "Put in force" }).click();
    await page.locator(".error", { hasText: "Must not advertise a casino: leave that word out." }).waitFor();
    await page.getByText("Nothing was changed. Message to those who wait must not advertise").waitFor();
    await see(page, "dashboard-field-error");
    assert.equal(server.rooms.get("quiet").version, 6, "nothing was changed");

    await message.fill("We sell until\nfour");
    await page.getByRole("button", { name: "Put in force" }).click();
    await page.getByText("Active users at once is now 200.").waitFor();
    const room = server.rooms.get("quiet");
    assert.deepEqual(
      ["total_active_users", "new_users_per_minute", "message"].map((field) => room.value(field)),
      [200, 180, "We sell until four"],
    );
    assert.equal(room.version, 7, "all of it in one step");
    await page.getByRole("button", { name: "Back to the deployed 1,000" }).click();
    await page.getByText("Active users at once is as deployed again.").waitFor();
    assert.equal(await active.inputValue(), "1000");
    expectQuiet(operator);
  });

  test("keeps or clears what a deploy has changed beneath", async (t) => {
    const { server, page } = await open(t, "deployed");
    // From the top of the page by the keyboard alone.
    await page.getByRole("button", { name: "Look at it" }).press("Enter");
    await page.keyboard.press("Enter");
    await page.getByText("Active users at once stays 500.").waitFor();
    await page.getByText("A deploy has changed this").waitFor({ state: "hidden" });
    assert.equal(server.rooms.get("deployed").audit.at(-1).kind, "keep");
    const other = await open(t, "deployed");
    await other.page.getByRole("button", { name: "Use the deployed 1,500" }).click();
    await other.page.getByText("Active users at once is as deployed again.").waitFor();
    assert.equal(other.server.rooms.get("deployed").value("total_active_users"), 1500);
  });

  test("shows who was faster, and changes nothing until the operator says so", async (t) => {
    const { server, page } = await open(t, "quiet");
    await page.getByLabel("New users per minute", { exact: true }).fill("50");
    server.rooms.get("quiet").steer({ set: { total_active_users: 700 } }, "bert");
    await page.getByRole("button", { name: "Put in force" }).click();
    const conflict = page.getByRole("alert").filter({ hasText: "Somebody else changed this room" });
    await conflict.getByText(/Active users at once: 700, it was 1,000 \(bert set it/).waitFor();
    assert.equal(server.rooms.get("quiet").value("new_users_per_minute"), 200);
    await see(page, "dashboard-conflict");
    await page.getByRole("button", { name: "Put mine in force all the same" }).click();
    await page.getByText("New users per minute is now 50.").waitFor();
    assert.equal(server.rooms.get("quiet").value("new_users_per_minute"), 50);
    assert.equal(server.rooms.get("quiet").value("total_active_users"), 700);
  });

  test("starts and ends an event, and puts it back on its schedule", async (t) => {
    const { server, page } = await open(t, "event");
    const drop = panel(page, "Events").getByRole("listitem").filter({ hasText: /^drop/ });
    await drop.getByRole("button", { name: "Start now" }).click();
    await drop.getByRole("button", { name: "Yes, start it" }).click();
    await drop.getByText("active", { exact: true }).waitFor();
    await drop.getByText(/Steered by anna/).waitFor();
    await drop.getByRole("button", { name: "End now" }).click();
    await drop.getByRole("button", { name: "Yes, end it" }).click();
    await drop.getByText("over", { exact: true }).waitFor();
    await drop.getByRole("button", { name: "Back to the schedule" }).click();
    await drop.getByText(/drop was ended. Let it go on as planned, with its own limits, until/).waitFor();
    await drop.getByRole("button", { name: "Yes, back to the schedule" }).click();
    await drop.getByText("prequeueing", { exact: true }).waitFor();
    for (const text of ["anna started event drop", "anna put event drop back on its schedule"])
      await page.locator(".marks li", { hasText: text }).waitFor();
    assert.equal(server.rooms.get("event").eventTimes.size, 0);
  });

  test("plans a change for later, shows it in the visitors' time zone too, and drops it", async (t) => {
    const { page, operator } = await open(t, "event", { timezoneId: "Europe/Berlin" });
    const coming = panel(page, "What is coming");
    await coming.getByRole("row", { name: /Event drop/ }).waitFor();
    await coming.getByText("Plan a change (times in Europe/Berlin)").click();
    await coming.getByLabel("Set").selectOption("Active users at once");
    await coming.getByLabel("to", { exact: true }).fill("50");
    await coming.getByRole("button", { name: "Plan it" }).click();
    await coming.getByText("from must be a time to come", { exact: false }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.type), "datetime-local", "the wrong field");

    const monday = new Date(Date.now() + 7 * 86_400_000);
    const day = monday.toISOString().slice(0, 10);
    await coming.getByLabel("from", { exact: true }).fill(`${day}T02:00`);
    await coming.getByLabel(/^until/).fill(`${day}T04:30`);
    await coming.getByLabel("each week at this time").check();
    await coming.getByLabel("Why").fill("backup");
    await coming.getByRole("button", { name: "Plan it" }).click();
    const rows = coming.getByRole("row", { name: /Active users at once: 50/ });
    await rows.first().waitFor();
    assert.ok((await rows.count()) >= 3, "those of the weeks to come");
    const cells = await rows.first().getByRole("cell").allTextContents();
    assert.match(cells[1], /02:00.+04:30/);
    assert.match(cells[2], /(00|01):00.+0[23]:30/, "in UTC");
    assert.deepEqual(cells.slice(3), ["each week (Europe/Berlin)", "anna: backup"]);
    await coming.getByLabel("Visitors' time zone").selectOption("Asia/Tokyo");
    await coming.getByRole("columnheader", { name: "Asia/Tokyo" }).waitFor();
    assert.match((await rows.first().getByRole("cell").allTextContents())[2], /(09|10):00/);
    await see(page, "what is coming");

    await rows.first().getByRole("button", { name: "Drop" }).click();
    await page.getByRole("button", { name: "Yes, drop it" }).click();
    await coming.getByText("is no longer planned", { exact: false }).waitFor();
    assert.equal(await rows.count(), 0);
    expectQuiet(operator);
  });

  test("lets those who may only view see everything and change nothing", async (t) => {
    const { operator, page } = await open(t, "deployed", { role: "view" });
    await page.getByText("with the role view: you see everything and change nothing").waitFor();
    await page.getByText("A deploy has changed this").waitFor();
    await drawn(page);
    for (const part of [panel(page, "Steering"), panel(page, "Events"), page.locator(".switch")]) {
      for (const control of await part.locator("button:visible, input, textarea").all())
        assert.ok(await control.isDisabled(), await control.evaluate((element) => element.outerHTML));
    }
    await see(page, "dashboard-view-only");
    expectQuiet(operator);
  });

  test("tells that the connection is lost and since when, and comes back by itself", async (t) => {
    const { server, operator, page } = await open(t, "sale");
    await page.getByText(/● Live/).waitFor();
    server.breaks("live", "status");
    await page
      .getByRole("alert")
      .filter({ hasText: /Connection lost since \d\d:\d\d:\d\d/ })
      .waitFor();
    await page.locator("body.stale").waitFor();
    await see(page, "dashboard-lost");
    server.works();
    await page.getByText(/● Live/).waitFor();
    assert.equal(await page.locator("body.stale").count(), 0);
    const repeated = operator.said.filter(({ again }) => again);
    assert.deepEqual(repeated, [], "a live region was written without news");
  });

  test("asks every two seconds where no WebSocket comes through", async (t) => {
    const server = await startDashboard();
    t.after(server.close);
    server.breaks("live");
    const operator = await Visitor.of(browser);
    t.after(() => operator.close());
    const cookie = { name: "__anteroom_operator", value: tokenOf("steer"), url: server.url };
    await operator.context.addCookies([cookie]);
    await operator.page.goto(`${server.url}#room=sale`);
    await operator.page.getByText("By asking every 2 s").waitFor();
    const before = await figure(operator.page, "New this minute").textContent();
    await operator.page.waitForFunction(
      (old) => document.querySelectorAll(".figure .big")[3].textContent !== old,
      before,
    );
  });

  test("grows the charts with the moments that come, and tells news on the time line", async (t) => {
    const { server, operator, page } = await open(t, "sale", { hash: "&range=15m" });
    await drawn(page);
    await eventually("the page listens", () => server.watchers() > 0);
    const at = Date.now();
    server.tells({
      type: "news",
      news: [
        { id: "n1", at, kind: "fallback_in_use", text: "Workers let people in by themselves", data: {} },
      ],
    });
    const item = page.locator(".marks li", { hasText: "Workers let people in by themselves" });
    await item.locator("abbr", { hasText: "F" }).waitFor();
    // The same moment twice is one.
    server.tells({
      type: "news",
      news: [{ id: "n1", at, kind: "fallback_in_use", text: "again", data: {} }],
    });
    assert.equal(await page.locator(".marks li", { hasText: "again" }).count(), 0);
    expectQuiet(operator);
  });

  test("keeps the news that are told while older ones are still on their way", async (t) => {
    const { server, operator, page } = await open(t, "sale", { hash: "&range=15m" });
    await drawn(page);
    await eventually("the page listens", () => server.watchers() > 0);
    let asked;
    const isAsked = new Promise((resolve) => (asked = resolve));
    await operator.context.route("**/news?*", async (route) => {
      const answer = await route.fetch();
      await new Promise((release) => asked(release));
      await route.fulfill({ response: answer });
    });
    await page.getByRole("button", { name: "1 hour" }).click();
    const release = await isAsked;
    const news = [{ id: "n2", at: Date.now(), kind: "fallback_in_use", text: "Told meanwhile", data: {} }];
    server.tells({ type: "news", news });
    const item = page.locator(".marks li", { hasText: "Told meanwhile" });
    await item.waitFor();
    release();
    await page.locator("[aria-busy=true]").waitFor({ state: "detached" });
    assert.equal(await item.count(), 1);
    expectQuiet(operator);
  });

  test("keeps room and range in the address, zooms by mouse and keyboard, and gives the figures as table and file", async (t) => {
    const { operator, page } = await open(t, "sale");
    await drawn(page);
    await page.getByRole("button", { name: "7 days" }).click();
    assert.equal(new URL(page.url()).hash, "#room=sale&range=7d");
    await page.getByText("by the hour").waitFor();
    await page.reload();
    await page.getByRole("button", { name: "7 days", pressed: true }).waitFor();
    await drawn(page);

    const chart = await page.locator(".chart .u-over").first().boundingBox();
    await page.mouse.move(chart.x + 0.25 * chart.width, chart.y + 40);
    await page.mouse.down();
    await page.mouse.move(chart.x + 0.5 * chart.width, chart.y + 60, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/from=/);
    const span = () => {
      const parameters = new URLSearchParams(new URL(page.url()).hash.slice(1));
      return ["from", "to"].map((name) => Date.parse(parameters.get(name)));
    };
    const [from, to] = span();
    const quarter = (7 * 86_400_000) / 4;
    assert.ok(Math.abs(to - from - quarter) < quarter / 5, `${to - from} ms`);

    await page.getByRole("button", { name: "Zoom in" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      (old) => !location.hash.includes(old),
      new Date(from).toISOString().slice(0, 16),
    );
    const [closer, until] = span();
    assert.ok(Math.abs(until - closer - (to - from) / 2) < 2_000);

    await page.getByText("The same as a table").click();
    // The table is filled by the event that the browser sends after it has been opened.
    await page.locator("#timeline tbody tr").nth(10).waitFor();
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download as CSV" }).click();
    const stream = await (await download).createReadStream();
    const lines = [];
    for await (const chunk of stream) lines.push(chunk);
    assert.match(Buffer.concat(lines).toString(), /^time,active_users,.*\n\d{4}-\d\d-\d\dT/);
    expectQuiet(operator);
  });

  test("sorts data centers, shows all of them, and puts those it does not know beside the map", async (t) => {
    const { page } = await open(t, "planet");
    const colos = panel(page, "Data centers");
    await colos.getByText(/Not on the map: XQZ/).waitFor();
    assert.equal(await colos.locator("circle").count(), 299);
    await colos.getByRole("button", { name: "Show all 300" }).click();
    assert.equal(await colos.locator("tbody tr").count(), 300);
    await colos.getByRole("button", { name: "Colo", exact: true }).click();
    await colos.locator("[aria-sort=ascending]", { hasText: "Colo" }).waitFor();
    const names = await colos.locator("tbody th b").allInnerTexts();
    assert.deepEqual(names, names.toSorted());
  });

  test("shows the page that visitors see, in the language that is chosen, without its script", async (t) => {
    const { page } = await open(t, "closed");
    const frame = page.frameLocator("#preview iframe");
    await page.locator("#preview").scrollIntoViewIfNeeded();
    await frame.getByText("The payment system is out of order").waitFor();
    await page.getByLabel("Language").selectOption("de-DE");
    await frame.locator("html[lang=de-DE]").waitFor();
    const answer = await page.request.get(await page.locator("#preview iframe").evaluate(({ src }) => src));
    assert.match(answer.headers()["content-security-policy"], /(^|, )sandbox;/);
    assert.equal(answer.headers().refresh, undefined);
  });

  test("says what is wrong when a configuration is broken, no room is there, or nothing answers", async (t) => {
    const problems = ['ROOM_SALE: path must begin with /: set path = "/sale"'];
    const none = await open(t, "", { server: { rooms: new Map(), problems } });
    await none.page.getByRole("heading", { name: "There is no room" }).waitFor();
    await none.page.getByText("path must begin with /").waitFor();
    await see(none.page, "dashboard-no-room");

    const { server, page } = await open(t, "sale");
    await drawn(page);
    server.breaks("history", "steering", "audit");
    await page.reload();
    for (const text of [
      "The record could not be loaded",
      "What is in force could not be loaded",
      "The audit log could not be loaded",
    ])
      await page.getByText(text).waitFor();
    await see(page, "dashboard-out-of-order");
    server.works();
    await panel(page, "Steering").getByRole("button", { name: "Try again" }).click();
    await page.getByText("What is in force could not be loaded").waitFor({ state: "hidden" });
  });

  test("says that the session has ended, and asks for another sign-in", async (t) => {
    const { operator, server, page } = await open(t, "sale");
    await page.getByText(/● Live/).waitFor();
    await operator.context.clearCookies();
    server.breaks("live");
    await page.getByRole("heading", { name: "Your session has ended" }).waitFor();
    await see(page, "dashboard-signed-out");
    await page.getByRole("link", { name: "Sign in again" }).click();
    await page.getByLabel("Token").waitFor();
  });

  test("stops looking when nobody looks, and goes on when somebody does", async (t) => {
    const server = await startDashboard();
    t.after(server.close);
    const operator = await Visitor.of(browser);
    t.after(() => operator.close());
    const { page } = operator;
    await page.clock.install();
    const cookie = { name: "__anteroom_operator", value: tokenOf("steer"), url: server.url };
    await operator.context.addCookies([cookie]);
    await page.goto(`${server.url}#room=sale`);
    await page.getByText(/● Live/).waitFor();
    const hide = (isHidden) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, isHidden);
    await hide(true);
    await page.clock.runFor(4 * 60_000);
    assert.equal(await page.locator("#connection[data-mode=paused]").count(), 0, "after a short while");
    await page.clock.runFor(2 * 60_000);
    await page.getByText("Paused while nobody looked").waitFor();
    await eventually("nobody listens", () => server.watchers() === 0);
    await hide(false);
    await page.getByText(/● Live/).waitFor();
  });

  test("reaches everything by the Tab key, each stop plain to see", async (t) => {
    const { page } = await open(t, "event");
    await drawn(page);
    await page.evaluate(() => {
      globalThis.reached = new Set();
      document.addEventListener("focusin", ({ target }) => {
        globalThis.isRound = target === globalThis.first;
        if (!globalThis.first?.isConnected) globalThis.first = target;
        const { outlineStyle, outlineWidth } = getComputedStyle(target);
        globalThis.reached.add(target);
        if (outlineStyle === "none" || Number.parseFloat(outlineWidth) < 2)
          console.error(`no focus ring: ${target.outerHTML}`);
      });
    });
    // The page goes on being drawn: how many stops there are is known when the first comes again.
    do await page.keyboard.press("Tab");
    while (!(await page.evaluate(() => globalThis.isRound)));
    const missed = await page.evaluate(() =>
      [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
        .filter(
          (element) => !element.disabled && element.checkVisibility() && !globalThis.reached.has(element),
        )
        .map((element) => element.outerHTML),
    );
    assert.deepEqual(missed, []);
  });

  test("shows the figures of all rooms where no script runs", async (t) => {
    const { page } = await open(t, "", { javaScriptEnabled: false });
    const row = page.getByRole("row", { name: /^sale queueing/ });
    await row.waitFor();
    const cells = await row.locator("td").allTextContents();
    assert.ok(Number(cells[1]) > 900 && cells[2] === "1000", cells.join());
    await page.getByRole("row", { name: /unreachable the room's Global object did not answer/ }).waitFor();
  });
});
