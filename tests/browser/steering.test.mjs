// Operators steer a room from the dashboard while a crowd is in it and newcomers arrive in three data centers: real workerd,
// real Chromium. What visitors get is judged by when they asked: more than 3 seconds after a change, everybody
// obeys it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { clock } from "../edge/clock.mjs";
import { ADMIN_TOKEN, eventually, MINUTE, openTicket, room, sleep, startWorld } from "../edge/world.mjs";
import { startBrowser, Visitor } from "./room.mjs";

const COLOS = ["AMS", "SIN", "GRU"];
const LIMIT = 1000;
/** More than half of the limit. */
const CROWD = 510;
const SESSION_MINUTES = 10;
/** How exactly a ticket says when its visitor came last: to a slot, of which a session has 240. */
const SLOT_MS = (SESSION_MINUTES * MINUTE) / 240;
/** So long after a change everybody obeys it. */
const OBEYED_MS = 3_000;
/** A worker asks its data center again after this time at the latest, when somebody new comes. */
const REFRESH_MS = 2_000;
/**
 * Since when everybody obeys a change that the dashboard has just told to be in force. On a slow machine the order itself may
 * have been on its way for longer than on any network.
 */
const obeyed = (changed) => Math.max(changed + OBEYED_MS, Date.now() + REFRESH_MS);
/** A newcomer this often. */
const PAUSE_MS = 200;
/** So many newcomers have come to each worker of each data center, before anything is said of them. */
const ROUNDS = 3;
const TOKEN = "the-token-of-anna-who-steers";

describe("steering from the dashboard", () => {
  let browser;
  let world;
  before(async () => {
    browser = await startBrowser();
    world = await startWorld({
      rooms: {
        shop: room("/", {
          total_active_users: LIMIT,
          new_users_per_minute: 5 * LIMIT,
          // A slow machine, on which the crowd's turn takes longer, ends nobody's session.
          session_duration: SESSION_MINUTES,
          enabled_origin_commands: ["revoke"],
        }),
      },
      vars: { OPERATOR_TOKENS: `anna:steer:${TOKEN}` },
      colos: Object.fromEntries(COLOS.map((colo) => [colo, 2])),
    });
  });
  after(async () => {
    await browser.close();
    await world.close();
  });

  const api = async (path) => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const answer = await world.send({ path: `/__anteroom/${path}`, headers });
    assert.equal(answer.status, 200, answer.body);
    return JSON.parse(answer.body);
  };
  /** When the latest change was made, by the room's own clock. */
  const changedAt = async (field, value) => {
    const { entries } = await api("audit?room=shop&limit=1");
    assert.equal(entries[0].field, field);
    assert.deepEqual(entries[0].after, value);
    assert.equal(entries[0].by, "anna");
    return entries[0].at;
  };

  /**
   * Visitors who come one after another, each once and when the one before has an answer; what became of them. Who enters
   * buys and leaves: on a slow machine, where more of them come, they would fill the room.
   */
  function startNewcomers() {
    const seen = [];
    let isOver = false;
    const coming = (async () => {
      for (let count = 0; !isOver; count += 1) {
        const where = { colo: COLOS[count % COLOS.length], worker: Math.floor(count / COLOS.length) % 2 };
        const { sent, received, fromOrigin, waiting } = await world
          .visitor({ ...where, path: "/bought" })
          .get();
        assert.ok(fromOrigin || waiting);
        seen.push({ sent, received, colo: where.colo, entered: fromOrigin });
        await sleep(PAUSE_MS);
      }
    })();
    const sentSince = (time) => seen.filter(({ sent }) => sent > time);
    return {
      /** Those who have asked since a time, as soon as they are enough to tell. */
      async since(time) {
        const enough = ROUNDS * 2 * COLOS.length;
        await eventually("enough newcomers", () => sentSince(time).length >= enough);
        return sentSince(time);
      },
      /** Those who asked since one time and had their answer before another. */
      between: (from, to) => sentSince(from).filter(({ received }) => received < to),
      end: () => {
        isOver = true;
        return coming;
      },
    };
  }

  const inAllColos = (visits) => assert.deepEqual(new Set(visits.map(({ colo }) => colo)), new Set(COLOS));
  const all = (visits, entered, what) => {
    inAllColos(visits);
    const wrong = visits.filter((visit) => visit.entered !== entered);
    assert.deepEqual(wrong, [], what);
  };

  test("halves the limit and queues everybody, and all obey within 3 seconds, in three data centers", async (t) => {
    const crowd = Array.from({ length: CROWD }, (_, index) =>
      world.visitor({ colo: COLOS[index % COLOS.length], worker: index % 2 }),
    );
    // There is room for all of them; on a slow machine, where an object's answer comes too late, one may have to come twice.
    const enter = (visitor) => eventually("a place", async () => (await visitor.get()).fromOrigin);
    for (let begin = 0; begin < CROWD; begin += 50)
      await Promise.all(crowd.slice(begin, begin + 50).map(enter));
    // Whoever is in stays in, whatever operators do: all come again, one after the other, and their sessions go on from then.
    const outside = [];
    const goesOn = (visitor, { fromOrigin, sent }) =>
      fromOrigin && openTicket("shop", visitor.ticket()).lastCheckIn >= sent - SLOT_MS;
    let areThere = true;
    const staying = (async () => {
      for (let turn = 0; areThere; turn += 1) {
        const visitor = crowd[turn % CROWD];
        if (!goesOn(visitor, await visitor.get())) outside.push(visitor.where);
        await sleep(30_000 / CROWD);
      }
    })();
    t.after(() => {
      areThere = false;
      return staying;
    });
    const newcomers = startNewcomers();
    t.after(newcomers.end);

    const operator = await Visitor.of(browser);
    t.after(() => operator.close());
    const { page } = operator;
    await page.goto(`${world.address()}/__anteroom/`);
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(/● Live/).waitFor();
    await page.getByRole("heading", { name: "Open" }).waitFor();
    await page.waitForFunction(
      (least) => Number(document.querySelector(".figure .big").textContent.replace(",", "")) >= least,
      CROWD,
    );
    const calm = Date.now();
    all(await newcomers.since(calm), true, "before the change everybody enters");

    // Halved: there are more in than that.
    await page.getByRole("button", { name: "Active users at once ½" }).click();
    await page.getByText("Nobody is thrown out").waitFor();
    await page.getByRole("button", { name: "Put in force" }).click();
    await page.getByText("✓ In force in 3 of 3 colos (version 1)").waitFor();
    const halved = await changedAt("total_active_users", LIMIT / 2);
    all(newcomers.between(calm, halved), true, "before the change everybody enters");
    await page.locator("#chart-active .key", { hasText: `limit ${LIMIT / 2}` }).waitFor();
    await page.getByRole("heading", { name: /Queueing/ }).waitFor();
    all(await newcomers.since(obeyed(halved)), false, "nobody enters above half");

    // Back to what was deployed.
    await page.getByRole("button", { name: "Back to the deployed 1,000" }).click();
    await page.getByText("✓ In force in 3 of 3 colos (version 2)").waitFor();
    const back = await changedAt("total_active_users", LIMIT);
    all(await newcomers.since(obeyed(back)), true, "everybody enters again");

    // Shut, and the room's own memory is lost meanwhile.
    await page.getByRole("button", { name: "Queue everybody", exact: true }).click();
    await page.getByRole("button", { name: "Yes, queue everybody" }).click();
    await page.getByRole("heading", { name: /Shut/ }).waitFor();
    await page.getByText("✓ In force in 3 of 3 colos (version 3)").waitFor();
    const shut = await changedAt("queue_all", true);
    all(await newcomers.since(obeyed(shut)), false, "nobody enters while everybody is queued");
    await world.restart("Global", "shop");
    const restarted = Date.now();
    await page.getByText(/● Live/).waitFor();
    all(await newcomers.since(restarted), false, "nobody enters though the room has lost its memory");

    // A reload keeps everything: what is steered, who did it, the marks on the time line.
    await page.reload();
    await page.getByText("■ Everybody is queued").waitFor();
    await page.getByText(/Deployed: off. Steered by anna/).waitFor();
    await page.locator(".marks li", { hasText: "anna set Queue everybody to on, it was off" }).waitFor();
    await page.locator(".marks li", { hasText: "anna set Active users at once to 500" }).waitFor();
    await page.getByRole("button", { name: "Let people in again" }).click();
    await page.getByRole("button", { name: "Yes, let them in" }).click();
    await page.getByText("✓ In force in 3 of 3 colos (version 4)").waitFor();
    const ended = await changedAt("queue_all", false);
    all(await newcomers.since(obeyed(ended)), true, "everybody enters again");
    assert.deepEqual(outside, [], "whoever is in stays in");

    // Each minute since the first visitor is recorded, with the limits of its time, over the restart.
    areThere = false;
    await Promise.all([staying, newcomers.end()]);
    const end = Math.ceil(Date.now() / MINUTE) * MINUTE;
    await clock.pass(end + 15_000 - Date.now());
    const first = Math.floor(calm / MINUTE) * MINUTE;
    const { fields, rows } = await api(
      `history?room=shop&from=${first}&to=${end}&resolution=minute&fields=active_users_max,total_active_users`,
    );
    assert.deepEqual(fields, ["active_users_max", "total_active_users"]);
    assert.deepEqual(
      rows.map(([minute]) => minute),
      Array.from({ length: (end - first) / MINUTE }, (_, index) => first + index * MINUTE),
    );
    for (const [, active] of rows) assert.ok(active >= CROWD, JSON.stringify(rows));
  });
});
