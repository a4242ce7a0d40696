// A room in which whoever has waited has to go in within a time once it is their turn; else it is the next one's.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { eventually, letIn, MINUTE, openTicket, room, sleep, startWorld } from "./world.mjs";

const HTML = { accept: "text/html" };
const WITHIN = { within: 20_000, every: 1_000 };

describe("confirm_within_minutes", { concurrency: true }, () => {
  let world;
  before(async () => {
    const confirm = {
      total_active_users: 1,
      session_duration: 10,
      confirm_within_minutes: 2,
      enabled_origin_commands: ["revoke"],
    };
    const names = ["script", "plain", "missed", "programs", "copied"];
    const rooms = Object.fromEntries(names.map((name) => [name, room(`/${name}`, confirm)]));
    rooms.observed = room("/observed", { ...confirm, mode: "observe" });
    world = await startWorld({ rooms });
  });
  after(() => world.close());

  /** A full room, somebody who waits for it, and the slot given back by whoever was in. */
  async function turnOf(name, how = {}) {
    const path = `/${name}`;
    const [first] = await letIn(world, 1, { path });
    const visitor = world.visitor({ path, headers: HTML, ...how });
    assert.ok((await visitor.get()).waiting);
    assert.ok((await first.get(`${path}/bought`)).fromOrigin);
    return visitor;
  }

  /** The visitor's turn, as the waiting page's script hears of it. */
  const heard = (visitor) =>
    eventually(
      "it is the visitor's turn",
      async () => {
        const { json } = await visitor.ask();
        return json.admitted === "turn" && json;
      },
      WITHIN,
    );

  test("with script, the turn is told, the slot is taken, and the page that is asked for goes in", async () => {
    const visitor = await turnOf("script");
    const told = await heard(visitor);
    assert.ok(told.seconds > 110 && told.seconds <= 120, `${told.seconds}`);
    assert.match(told.note, /limited: 2 minutes\. /);
    const ticket = openTicket("script", visitor.ticket());
    assert.ok(ticket.acceptedAt && ticket.uncounted, "let in, and not gone in");
    const other = world.visitor({ path: "/script", headers: HTML });
    assert.ok((await other.get()).waiting, "the slot is the first one's");
    const again = (await visitor.ask()).json;
    assert.equal(again.admitted, "turn", "asking is not going in");
    const image = await visitor.get("/script/x.png", { headers: { "sec-fetch-dest": "image" } });
    assert.ok(!image.fromOrigin, "nor is a picture");
    const early = await visitor.get("/script", { headers: { ...HTML, "sec-purpose": "prefetch" } });
    assert.equal(early.status, 503, "nor what a browser loads in advance");
    assert.ok((await visitor.get()).fromOrigin);
    const inside = openTicket("script", visitor.ticket());
    assert.deepEqual([inside.id, inside.uncounted], [ticket.id, false]);
    await sleep(3 * MINUTE);
    assert.ok((await visitor.get()).fromOrigin, "a session as any other");
    assert.equal((await world.status("script")).state.active, 1);
  });

  test("without script, a page says so and has a link", async () => {
    const visitor = await turnOf("plain");
    const page = await eventually(
      "it is the visitor's turn",
      async () => {
        const answer = await visitor.get("/plain", { headers: { ...HTML, "accept-language": "de" } });
        assert.ok(!answer.fromOrigin);
        return answer.body.includes("<h1>Sie sind an der Reihe</h1>") && answer;
      },
      WITHIN,
    );
    assert.match(page.body, /begrenzt: 2 Minuten\. /);
    assert.match(page.body, /<a href="">Jetzt zur Website<\/a>/);
    assert.equal(page.headers.anteroom, "waiting");
    assert.equal(page.headers.refresh, `${page.refresh.seconds}`);
    assert.ok(
      page.refresh.seconds > 110 && page.refresh.seconds <= 121,
      "by itself it comes when it is too late",
    );
    assert.ok((await visitor.get()).fromOrigin);
  });

  test("whoever does not go in is told, and the next one has the turn long before a session is over", async () => {
    const visitor = await turnOf("missed");
    const { seconds } = await heard(visitor);
    const next = world.visitor({ path: "/missed", headers: HTML, colo: "SIN" });
    assert.ok((await next.get()).waiting);
    await sleep((seconds - 2) * 1_000);
    assert.equal((await visitor.ask()).json.admitted, "turn", "until the end");
    assert.equal((await next.ask()).json.admitted, false);
    await sleep(3_000);
    const asked = await visitor.get("/missed", { headers: { ...HTML, "anteroom-status": "1" } });
    assert.equal(asked.status, 410);
    assert.deepEqual(asked.setCookie, [], "the script loads the page, which says why");
    const over = await visitor.get();
    assert.equal(over.status, 410);
    assert.match(over.body, /<h1>Your turn is over<\/h1>/);
    assert.match(over.setCookie[0], /^__anteroom=; .*Max-Age=0/);
    await heard(next);
    assert.ok((await visitor.get()).waiting, "at the end of the line");
    assert.ok((await next.get()).fromOrigin);
    const active = async () => (await world.status("missed")).state.active;
    await eventually("it alone is counted", async () => (await active()) === 1, WITHIN);
    await sleep(10_000);
    assert.equal(await active(), 1);
  });

  test("a copy from before somebody went in gives no second slot, and ends its own session", async () => {
    const visitor = await turnOf("copied");
    await heard(visitor);
    const copy = visitor.ticket();
    assert.ok((await visitor.get()).fromOrigin);
    await sleep(2 * MINUTE + 1_000);
    const [one, two] = ["AMS", "SIN"].map((colo) => world.visitor({ path: "/copied", headers: HTML, colo }));
    for (const waits of [one, two]) assert.ok((await waits.get()).waiting);
    for (const colo of ["AMS", "SIN"]) {
      const late = world.visitor({ path: "/copied", headers: HTML, colo });
      late.setTicket(copy, { path: "/copied" });
      assert.equal((await late.get()).status, 410);
    }
    const turns = async () =>
      (await Promise.all([one.ask(), two.ask()])).filter(({ json }) => json.admitted === "turn").length;
    await eventually("one of the two has the slot", async () => (await turns()) === 1, WITHIN);
    await eventually(
      "the session that has ended is refused",
      async () => !(await visitor.get()).fromOrigin,
      WITHIN,
    );
    await sleep(10_000);
    assert.equal(await turns(), 1, "the other one waits on");
    assert.equal((await world.status("copied")).state.active, 1);
  });

  test("programs, who are there, and those who need not wait go in at once", async () => {
    const program = await turnOf("programs", { headers: { accept: "application/json" } });
    await eventually("it is in", async () => (await program.get()).fromOrigin, WITHIN);
    assert.equal(openTicket("programs", program.ticket()).uncounted, false);
    const [first] = await letIn(world, 1, { path: "/observed", headers: HTML });
    const second = world.visitor({ path: "/observed", headers: HTML });
    assert.ok((await second.get()).fromOrigin);
    await first.get("/observed/bought");
    await sleep(30_000);
    assert.ok((await second.get()).fromOrigin, "nobody sees a page of a room that observes");
  });
});
