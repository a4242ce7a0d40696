// Rooms, events, rules and templates made, changed and deleted in the dashboard: the real Worker in workerd, a real Chromium.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { eventually } from "../edge/world.mjs";
import { look, startBrowser, startRoom, Visitor } from "./room.mjs";

const TOKENS = {
  configure: "the-token-of-carla-who-configures",
  steer: "the-token-of-anna-who-steers",
  view: "the-token-of-the-wall",
};
/** Chromium says that values were refused, and that the previews run no script. */
const EXPECTED = /responded with a status of 40[01]|Blocked script execution in .* sandboxed/;

describe("rooms in the dashboard", { concurrency: 2 }, () => {
  let browser;
  let worker;
  before(async () => {
    browser = await startBrowser();
    const named = Object.entries(TOKENS).map(([role, token]) => `${role}r:${role}:${token}`);
    worker = await startRoom({
      room: { path: "/shop", description: "the room of the vars" },
      vars: { ADMIN_TOKEN: "the-token-of-the-tests", OPERATOR_TOKENS: named.join() },
    });
  });
  after(async () => {
    await browser.close();
    await worker.close();
  });

  const api = async (method, path, body) => {
    const answer = await worker.fetch(`${worker.url}/__anteroom/client/v4/zones/main/waiting_rooms${path}`, {
      method,
      headers: { authorization: "Bearer the-token-of-the-tests" },
      body: body && JSON.stringify(body),
    });
    const { success, result, errors } = await answer.json();
    assert.ok(success, JSON.stringify(errors));
    return result;
  };
  let made = 0;
  /** A room with a name and a path of its own. */
  const newRoom = (more = {}) => {
    made += 1;
    const fields = { total_active_users: 50, new_users_per_minute: 50 };
    return api("POST", "", {
      name: `room${made}`,
      host: "127.0.0.1",
      path: `/room${made}`,
      ...fields,
      ...more,
    });
  };

  /** An operator who has signed in and looks at a place of the view. */
  async function open(t, place = "", role = "configure") {
    const operator = await Visitor.of(browser, { timezoneId: "Europe/Berlin" });
    t.after(() => operator.close());
    const { page } = operator;
    // The form would lead to a room first, and another test may just be deleting that one.
    const session = await page.request.post(`${worker.url}/__anteroom/session`, {
      form: { token: TOKENS[role] },
    });
    assert.ok(session.ok(), await session.text());
    await page.goto(`${worker.url}/__anteroom/#view=rooms${place}`);
    return { operator, page };
  }
  const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true });
  const check = (page) => page.getByRole("button", { name: "Check and see what changes" }).click();
  const changes = async (page) => {
    const rows = page.getByRole("region", { name: "What changes" }).last().locator("tbody tr");
    await rows.first().waitFor();
    return rows.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  };
  const openGroup = (page, name) => page.locator("summary", { hasText: new RegExp(`^${name}$`) }).click();
  const expectQuiet = ({ problems }) =>
    assert.deepEqual(
      problems.filter((text) => !EXPECTED.test(text)),
      [],
    );
  const see = (page, state) => look(page, state, { keyboard: false, language: "en" });

  test("a room is made: what is wrong is said at its field, what is made is shown first, and it is in force", async (t) => {
    const { operator, page } = await open(t);
    await heading(page, "All rooms").waitFor();
    await page.getByRole("row", { name: /demo/ }).getByText("ROOM_DEMO").waitFor();
    await see(page, "rooms-all");
    await page.getByRole("link", { name: "New room" }).click();
    await heading(page, "New room").waitFor();
    await page.getByLabel("Name needed").fill("spring");
    await page.getByLabel("Host needed").fill("127.0.0.1");
    await page.getByLabel("Path", { exact: true }).fill("spring sale");
    await page.getByLabel("Active users at once needed").fill("many");
    await check(page);
    await page.getByText("Active users at once must be a number.").waitFor();
    await page.getByLabel("Active users at once needed").fill("1,000");
    await page.getByLabel("New users per minute needed").fill("200");
    await page.getByLabel("Queue everybody").check();
    await check(page);
    const path = page.getByLabel("Path", { exact: true });
    await page.locator("[aria-invalid=true]").waitFor();
    assert.equal(await path.getAttribute("aria-invalid"), "true");
    assert.match(
      await path.evaluate((input) => input.closest(".field").querySelector(".error").textContent),
      /^path/,
    );
    await see(page, "rooms-wrong");
    await path.fill("/spring");
    await check(page);
    await page.getByText("This is made").waitFor();
    assert.deepEqual(await changes(page), [
      ["Name", "not set", "spring"],
      ["Host", "not set", "127.0.0.1"],
      ["Path", "/, as usual", "/spring"],
      ["Active users at once", "not set", "1000"],
      ["New users per minute", "not set", "200"],
      ["Queue everybody", "no, as usual", "yes"],
    ]);
    await see(page, "rooms-review");
    await page.getByRole("button", { name: "Make the room" }).click();
    await heading(page, "spring").waitFor();
    const done = page.getByText("spring is made. It is in force within 3 seconds.");
    await done.waitFor();
    const { y } = await done.boundingBox();
    assert.ok(y > 0 && y < page.viewportSize().height, "what was done is in view");
    const visit = await worker.fetch(`${worker.url}/spring`, { headers: { accept: "text/html" } });
    assert.match(await visit.text(), /You are in line/);
    await see(page, "rooms-one");
    await page.getByRole("link", { name: "What goes on in it" }).click();
    await page.getByText("Everybody is queued").first().waitFor();
    expectQuiet(operator);
  });

  test("of two who change one room, the slower one sees what the other has changed, and decides", async (t) => {
    const room = await newRoom();
    const { page } = await open(t, `&id=${room.id}`);
    await heading(page, room.name).waitFor();
    assert.ok(
      await page.getByRole("button", { name: "Check and see what changes" }).isDisabled(),
      "nothing is changed yet",
    );
    await page.getByLabel("New users per minute needed").fill("70");
    await page.getByLabel("Message to those who wait").evaluate((input) => {
      input.closest("details").open = true;
    });
    await page.getByLabel("Message to those who wait").fill("Seats are left.");
    await api("PATCH", `/${room.id}`, { total_active_users: 400 });
    await check(page);
    await page.getByText("Somebody else has changed this in between. Yours was not saved.").waitFor();
    assert.deepEqual(await changes(page), [["Active users at once", "50", "400"]]);
    await see(page, "rooms-conflict");
    assert.equal(await page.getByLabel("Active users at once needed").inputValue(), "400");
    await page.getByRole("button", { name: "Check mine against it" }).click();
    await page.getByText("This changes").waitFor();
    assert.deepEqual(await changes(page), [
      ["New users per minute", "50", "70"],
      ["Message to those who wait", "not set", "Seats are left."],
    ]);
    await page.getByRole("button", { name: "Save the room" }).click();
    const done = page.getByText(`${room.name} is changed. It is in force within 3 seconds.`);
    await done.waitFor();
    const now = await api("GET", `/${room.id}`);
    assert.deepEqual(
      [now.total_active_users, now.new_users_per_minute, now.anteroom.message],
      [400, 70, "Seats are left."],
    );
    // Taken away again, it is as usual; what is said to be in force is what was saved last.
    await page.getByLabel("Message to those who wait").evaluate((input) => {
      input.closest("details").open = true;
    });
    await page.getByLabel("Message to those who wait").fill("");
    assert.equal(await done.count(), 0);
    await check(page);
    await page.getByRole("button", { name: "Save the room" }).click();
    await done.waitFor();
    assert.equal((await api("GET", `/${room.id}`)).anteroom?.message, undefined);
  });

  test("an expression is checked while it is written, with its mistake marked; rules are moved, turned off, deleted", async (t) => {
    const room = await newRoom();
    const { page } = await open(t, `&id=${room.id}`);
    const rules = page.getByRole("region", { name: "Bypass rules" });
    const write = async (expression, note) => {
      await rules.getByRole("button", { name: "New rule" }).click();
      await rules.getByLabel("Expression").fill(expression);
      await rules.getByLabel("What it is for").fill(note);
      await rules.getByText("✓ The expression can be read.").waitFor();
      await rules.getByRole("button", { name: "Save the rule" }).click();
      await rules.getByRole("listitem").filter({ hasText: note }).waitFor();
    };
    await rules.getByRole("button", { name: "New rule" }).click();
    await rules.getByLabel("Expression").fill('ip.src in {192.0.2.0/24} und http.host eq "x"');
    await rules.locator("mark").waitFor();
    assert.equal(await rules.locator("mark").textContent(), "u");
    await rules.getByText(/^Character 26: /).waitFor();
    await see(page, "rooms-expression");
    await rules.getByRole("button", { name: "Cancel" }).click();
    await write("ip.src in {192.0.2.0/24}", "our office");
    await write('starts_with(http.request.uri.path, "/room")', "everybody");
    const isCounted = async () => {
      const visit = await worker.fetch(`${worker.url}${room.path}`, { headers: { accept: "text/html" } });
      return visit.headers.getSetCookie().some((cookie) => cookie.startsWith("__anteroom"));
    };
    assert.ok(!(await isCounted()), "whoever a rule holds for gets no ticket");
    const notes = () => rules.getByRole("listitem").locator(".meta").allTextContents();
    assert.deepEqual(await notes(), ["our office", "everybody"]);
    await rules.getByRole("listitem").nth(1).getByRole("button", { name: "Earlier" }).click();
    await rules.getByText("The rule has moved.").waitFor();
    assert.deepEqual(await notes(), ["everybody", "our office"]);
    const first = rules.getByRole("listitem").first();
    await first.getByRole("button", { name: "Turn off" }).click();
    await first.getByText("off", { exact: true }).waitFor();
    assert.ok(await isCounted());
    await first.getByRole("button", { name: "Edit" }).click();
    await first.getByLabel("What it is for").fill("nobody");
    await first.getByRole("button", { name: "Save the rule" }).click();
    await rules.getByText("The rule is changed. It is in force within 3 seconds.").waitFor();
    await first.getByRole("button", { name: "Delete" }).click();
    await first.getByRole("button", { name: "Yes, delete it" }).click();
    await rules.getByText("The rule is deleted.").waitFor();
    assert.deepEqual(await notes(), ["our office"]);
  });

  test("an event is made in the operator's zone, copied with other times, and deleted", async (t) => {
    const room = await newRoom();
    const { page } = await open(t, `&id=${room.id}`);
    await page.getByRole("link", { name: "New event" }).click();
    await heading(page, `New event of ${room.name}`).waitFor();
    await page.getByLabel("Name needed").fill("night");
    await page.getByLabel("Starts needed").fill("2030-01-31T20:00");
    await page.getByLabel("Ends needed").fill("2030-01-31T19:00");
    await check(page);
    await page.locator("[aria-invalid=true]").first().waitFor();
    await page.getByLabel("Ends needed").fill("2030-01-31T22:00");
    await openGroup(page, "Queue");
    await page.getByLabel("Queueing method").selectOption("random");
    await check(page);
    await page.getByRole("button", { name: "Make the event" }).click();
    await page.getByText("The event night is made.").waitFor();
    const [night] = await api("GET", `/${room.id}/events`);
    assert.equal(night.event_start_time, "2030-01-31T20:00:00+01:00");
    assert.deepEqual([night.queueing_method, night.total_active_users], ["random", null]);
    await page.getByRole("link", { name: "Copy night" }).click();
    await heading(page, `New event of ${room.name}`).waitFor();
    await page.getByLabel("Starts needed").fill("2030-02-28T20:00");
    await page.getByLabel("Ends needed").fill("2030-02-28T22:00");
    await check(page);
    await page.getByRole("button", { name: "Make the event" }).click();
    await page.getByText("The event night_copy is made.").waitFor();
    // What was not touched is not sent, and stays as it was written.
    await page.getByRole("link", { name: "night", exact: true }).click();
    await heading(page, `night, an event of ${room.name}`).waitFor();
    await page.getByLabel("Description").fill("with a band");
    await check(page);
    assert.deepEqual(await changes(page), [["Description", "empty", "with a band"]]);
    await see(page, "rooms-event");
    await page.getByRole("button", { name: "Save the event" }).click();
    await page.getByText("The event night is changed.").waitFor();
    const row = page.getByRole("row", { name: /night_copy/ });
    await row.getByRole("button", { name: "Delete" }).click();
    await row.getByRole("button", { name: "Yes, delete it" }).click();
    await page.getByText("The event night_copy is deleted.").waitFor();
    assert.deepEqual(
      (await api("GET", `/${room.id}/events`)).map(({ name }) => name),
      ["night"],
    );
  });

  test("a room is copied with its rules and events, deleted, and brought back", async (t) => {
    const room = await newRoom({ anteroom: { message: "Hello", show_wait: false } });
    await api("POST", `/${room.id}/rules`, {
      action: "bypass_waiting_room",
      expression: "ip.src eq 192.0.2.7",
    });
    const times = { event_start_time: "2030-01-31T20:00:00Z", event_end_time: "2030-01-31T22:00:00Z" };
    await api("POST", `/${room.id}/events`, { name: "gala", ...times });
    const { page } = await open(t, `&id=${room.id}`);
    await page.getByRole("link", { name: "Copy", exact: true }).click();
    await heading(page, `A copy of ${room.name}`).waitFor();
    await page.getByLabel("Path", { exact: true }).fill(`/copy-of-${room.name}`);
    await check(page);
    await page.getByRole("button", { name: "Make the room" }).click();
    await page.getByText(`${room.name}_copy is made with its rules and events.`).waitFor();
    const copy = (await api("GET", "")).find(({ name }) => name === `${room.name}_copy`);
    assert.deepEqual(copy.anteroom, room.anteroom);
    assert.equal((await api("GET", `/${copy.id}/rules`))[0].expression, "ip.src eq 192.0.2.7");
    assert.equal((await api("GET", `/${copy.id}/events`))[0].name, "gala");
    // What that does to those who are there is said first.
    await api("PATCH", `/${copy.id}`, { queue_all: true });
    await worker.fetch(`${worker.url}${copy.path}`, { headers: { accept: "text/html" } });
    const status = async () => (await api("GET", `/${copy.id}/status`)).estimated_queued_users;
    await eventually("somebody who waits", async () => (await status()) === 1);
    await page.getByRole("button", { name: "Delete", exact: true }).first().click();
    await page
      .getByText(`Delete ${copy.name}? 1 waits and nobody is in: those who wait get the origin`)
      .waitFor();
    await page.getByRole("button", { name: "Yes, delete it" }).click();
    await page.getByText(`${copy.name} is deleted. It can be brought back for 30 days.`).waitFor();
    await heading(page, "All rooms").waitFor();
    await page.getByRole("button", { name: `Bring ${copy.name} back` }).click();
    await page.getByText(`${copy.name} is back.`).waitFor();
    assert.equal((await api("GET", `/${copy.id}/events`))[0].name, "gala");
  });

  test("a template is seen in every state before it is saved, and what is wrong with it is said", async (t) => {
    const room = await newRoom();
    const { operator, page } = await open(t, `&id=${room.id}`);
    await openGroup(page, "Page");
    const previews = page.getByRole("region", { name: "The waiting page" });
    await page.getByLabel("Message to those who wait").fill("The doors open at eight.");
    await previews.getByRole("button", { name: "Show the page in every state" }).click();
    await previews.locator("iframe").nth(8).waitFor();
    const frame = (state) => previews.frameLocator(`iframe[title="${state}"]`);
    await previews.locator("iframe").first().scrollIntoViewIfNeeded();
    await frame("Waiting, and it is known how long").getByText("The doors open at eight.").waitFor();
    const template = page.getByLabel("Waiting page", { exact: true });
    await template.fill(
      "<html><body><h1>Ours: {{#waitTimeKnown}}{{waitTime}} minutes{{/waitTimeKnown}}</h1></body></html>",
    );
    await previews.getByRole("button", { name: "Show it again" }).click();
    // Those of before are replaced.
    await previews.locator("iframe:not([src*=built-in])").first().scrollIntoViewIfNeeded();
    await frame("Waiting, and it is known how long").getByText("Ours: 12 minutes").waitFor();
    await template.fill("<h1>{{#waitTimeKnown}}</h1>");
    await check(page);
    await page.locator("[aria-invalid=true]").waitFor();
    assert.equal(await template.getAttribute("aria-invalid"), "true");
    // Nobody but an operator puts words on a page.
    const path = "/__anteroom/client/v4/preview/built-in?message=Call+this+number";
    assert.doesNotMatch(await (await worker.fetch(`${worker.url}${path}`)).text(), /Call this number/);
    expectQuiet(operator);
  });

  test("a room of vars is shown and copied, not changed", async (t) => {
    const { page } = await open(t);
    await page.getByRole("link", { name: "demo", exact: true }).first().click();
    await heading(page, "demo").waitFor();
    await page.getByText("This room is deployed as ROOM_DEMO").waitFor();
    assert.ok(await page.getByLabel("Path", { exact: true }).isDisabled());
    assert.equal(await page.getByRole("button", { name: "Delete", exact: true }).count(), 0);
    assert.equal(await page.getByRole("button", { name: "New rule" }).count(), 0);
  });

  test("who steers changes limits and switches only, who views changes nothing", async (t) => {
    const room = await newRoom();
    const { page } = await open(t, `&id=${room.id}`, "steer");
    await page.getByText("Your role is steer").waitFor();
    assert.ok(await page.getByLabel("Path", { exact: true }).isDisabled());
    assert.equal(await page.getByRole("button", { name: "Delete", exact: true }).count(), 0);
    await page.getByLabel("Active users at once needed").fill("60");
    await check(page);
    await page.getByRole("button", { name: "Save the room" }).click();
    await page.getByText(`${room.name} is changed.`).waitFor();
    assert.equal((await api("GET", `/${room.id}`)).total_active_users, 60);
    const { page: wall } = await open(t, `&id=${room.id}`, "view");
    await wall.getByText("Your role is view").waitFor();
    assert.ok(await wall.getByLabel("Active users at once needed").isDisabled());
    assert.equal(await wall.getByRole("button", { name: "Check and see what changes" }).count(), 0);
    await see(wall, "rooms-view-only");
  });

  test("what is filled in is not lost by going away, nor by the end of the session", async (t) => {
    const room = await newRoom();
    const { operator, page } = await open(t, `&id=${room.id}`);
    const limit = page.getByLabel("Active users at once needed");
    await limit.fill("77");
    page.once("dialog", (dialog) => dialog.dismiss());
    await page.getByRole("link", { name: "All rooms", exact: true }).click();
    assert.equal(await limit.inputValue(), "77");
    await operator.context.clearCookies();
    await check(page);
    await page.getByText("Your session has ended.").waitFor();
    assert.equal(await limit.inputValue(), "77");
    const tab = await operator.newTab();
    await tab.goto(`${worker.url}/__anteroom/`);
    await tab.getByLabel("Token").fill(TOKENS.configure);
    await tab.keyboard.press("Enter");
    await tab.getByRole("link", { name: "All rooms" }).waitFor();
    await check(page);
    await page.getByRole("button", { name: "Save the room" }).click();
    await page.getByText(`${room.name} is changed.`).waitFor();
    assert.equal((await api("GET", `/${room.id}`)).total_active_users, 77);
  });

  test("crawlers go past all rooms while the switch says so, and every change is in the list", async (t) => {
    const { page } = await open(t);
    const crawlers = page.getByLabel("Search engines' crawlers go past all rooms");
    await crawlers.check();
    await page.getByText("Crawlers go past all rooms within 3 seconds.").waitFor();
    assert.equal((await api("GET", "/settings")).search_engine_crawler_bypass, true);
    await page.reload();
    await page.getByRole("region", { name: "Changes" }).getByText("waiting_rooms/settings").first().waitFor();
    assert.ok(await crawlers.isChecked());
    await crawlers.uncheck();
    await page.getByText("Crawlers wait like everybody within 3 seconds.").waitFor();
  });
});
