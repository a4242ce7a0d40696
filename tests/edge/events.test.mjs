// Queueing methods and events: who enters and who waits, and that everybody can check what was drawn.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { ADMIN_TOKEN, eventually, letIn, MINUTE, openTicket, room, sleep, startWorld } from "./world.mjs";

const time = (ms) => new Date(ms).toISOString();

/** A ticket's number as anybody can recompute it: the first 64 bits of HMAC-SHA-256(seed, id), as a fraction. */
function numberOf(seed, id) {
  const drawn = createHmac("sha256", Buffer.from(seed, "hex")).update(Buffer.from(id, "hex")).digest();
  return Number(drawn.readBigUInt64BE(0)) / 2 ** 64;
}

/** What the program in a page of the docs prints. */
function program(page, ...args) {
  const text = readFileSync(new URL(`../../docs/${page}.md`, import.meta.url), "utf8");
  const file = join(mkdtempSync(join(tmpdir(), "anteroom-")), "program.mjs");
  writeFileSync(file, /```js\n(.*?)```/s.exec(text)[1]);
  return Number(execFileSync(process.execPath, [file, ...args], { encoding: "utf8" }));
}

const idOf = (roomName, visitor) => openTicket(roomName, visitor.ticket()).id.toString(16).padStart(16, "0");

describe("events and queueing methods", { concurrency: true }, () => {
  let world;
  // The next whole minute that leaves time for what comes before it.
  const start = Math.ceil((Date.now() + 45_000) / MINUTE) * MINUTE;
  const prequeue = start - 8 * MINUTE;
  before(async () => {
    world = await startWorld({
      rooms: {
        sale: room("/sale", { refresh_interval_seconds: 5 }),
        later: room("/later"),
        pass: room("/pass", { total_active_users: 1, queueing_method: "PassThrough" }),
        reject: room("/reject", { queueing_method: "reject" }),
        random: room("/random", {
          total_active_users: 1,
          queueing_method: "random",
          refresh_interval_seconds: 5,
        }),
      },
      vars: {
        EVENT_DROP: {
          room: "sale",
          prequeue_start_time: time(prequeue),
          event_start_time: time(start),
          event_end_time: time(start + 30 * MINUTE),
          shuffle_at_event_start: true,
          total_active_users: 3,
          new_users_per_minute: 600,
          session_duration: 2,
          description: "three at a time",
        },
        EVENT_NEXT: {
          room: "later",
          prequeue_start_time: time(start + 60 * MINUTE),
          event_start_time: time(start + 70 * MINUTE),
          event_end_time: time(start + 80 * MINUTE),
          queueing_method: "reject",
        },
        EVENT_WRONG: { room: "nowhere", event_start_time: "soon", event_end_time: "later" },
      },
    });
  });
  after(() => world.close());

  const json = async (path, headers = {}) => {
    const answer = await world.send({ path, headers });
    return { ...answer, json: answer.status === 200 ? JSON.parse(answer.body) : undefined };
  };
  const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` };

  test("a prequeue, a lottery whose seed is published, and other limits from the start", async () => {
    const draws = "/__anteroom/draws?event=drop";
    const { json: secret } = await json(draws);
    assert.deepEqual([secret.seed, secret.room, secret.start], [null, "sale", start]);
    assert.match(secret.commitment, /^[0-9a-f]{64}$/);

    const visitors = Array.from({ length: 9 }, (_, index) =>
      world.visitor({ path: "/sale", colo: index % 2 ? "SIN" : "AMS" }),
    );
    for (const visitor of visitors) {
      const page = await visitor.get();
      assert.equal(page.waiting, true, "nobody enters before the start");
      assert.ok(page.refresh.seconds > 0, "and the page asks again");
    }
    const { event, peopleAhead, state } = (await visitors[0].ask()).json;
    assert.deepEqual([event.name, event.prequeueing, event.shuffle, state], ["drop", true, true, "prequeue"]);
    const told = start - Date.now() - event.secondsToStart * 1_000;
    assert.ok(Math.abs(told) < 3_000, `${event.secondsToStart} s until the start`);
    assert.equal(peopleAhead, null, "nobody learns a lot before the start");

    // They check in as their pages do, until three are in.
    const inside = [];
    let waiting = visitors;
    while (inside.length < 3) {
      assert.ok(Date.now() < start + 40_000, `only ${inside.length} are in`);
      for (const visitor of waiting) {
        const page = await visitor.get();
        if (!page.fromOrigin) continue;
        assert.ok(page.received >= start, "not before the start");
        inside.push(visitor);
      }
      waiting = waiting.filter((visitor) => !inside.includes(visitor));
      await sleep(Math.min(3_000, Math.max(500, start - Date.now() - 500)));
    }
    await sleep(5_000);
    for (const visitor of waiting)
      assert.equal((await visitor.get()).waiting, true, "the event has three places");

    const { json: published } = await json(draws);
    assert.equal(
      createHash("sha256").update(Buffer.from(published.seed, "hex")).digest("hex"),
      secret.commitment,
    );
    const minutes = (published.start - published.prequeue) / MINUTE;
    const place = (visitor) => Math.floor(numberOf(published.seed, idOf("sale", visitor)) * minutes);
    for (const visitor of inside) {
      const shown = program("events", published.seed, secret.commitment, `${minutes}`, idOf("sale", visitor));
      assert.equal(shown, place(visitor), "the program in the docs says the same");
    }
    const last = Math.max(...inside.map(place));
    assert.ok(
      waiting.map(place).every((of) => of >= last),
      "whoever drew an earlier place went in first",
    );
    const { event: active, waitNote } = (await waiting[0].ask()).json;
    assert.doesNotMatch(waitNote, /came first/, "the lot was drawn");
    assert.deepEqual([active.prequeueing, active.secondsToStart], [false, 0]);
    assert.ok(active.secondsToEnd > 28 * 60);
  });

  test("a session lasts as long as the event says", async () => {
    await sleep(Math.max(0, start + 500 - Date.now()));
    const inside = await eventually(
      "somebody is in",
      async () => {
        const visitor = world.visitor({ path: "/later" });
        return (await visitor.get()).fromOrigin && visitor;
      },
      { within: 20_000 },
    );
    assert.match((await inside.get("/later/again")).setCookie.join() || "Max-Age=60", /Max-Age=60/);
    const { json: status } = await json("/__anteroom/status", bearer);
    const sale = status.rooms.find(({ name }) => name === "sale");
    assert.equal(
      sale.state.step,
      Math.floor((2 * MINUTE) / 720),
      "slots are as wide as sessions of two minutes need",
    );
  });

  test("operators see what is and what comes", async () => {
    assert.equal((await json("/__anteroom/events")).status, 401);
    const { json: listed } = await json("/__anteroom/events", bearer);
    const [drop, next] = ["drop", "next"].map((name) => listed.events.find((event) => event.name === name));
    assert.ok(["prequeueing", "active"].includes(drop.phase), drop.phase);
    assert.equal(drop.room, "sale");
    assert.equal(Date.parse(drop.event_start_time), start);
    assert.deepEqual(
      [drop.effective.total_active_users, drop.effective.session_duration, drop.effective.queueing_method],
      [3, 2, "fifo"],
    );
    assert.deepEqual([next.phase, next.overrides], ["upcoming", { queueing_method: "reject" }]);
    assert.equal(next.effective.total_active_users, 1000);
    const { json: status } = await json("/__anteroom/status", bearer);
    const of = (name) => status.rooms.find((room) => room.name === name);
    assert.equal(of("sale").event_id, "drop");
    assert.equal(of("sale").event_phase, drop.phase);
    assert.deepEqual(
      [of("later").event_id, Date.parse(of("later").next_event_prequeue_start_time)],
      ["", start + 60 * MINUTE],
    );
    assert.ok(
      status.problems.some((problem) => problem.startsWith("event wrong: event_start_time")),
      "a broken event is left out, loudly",
    );
  });

  test("passthrough lets everybody in and counts", async () => {
    await letIn(world, 5, { path: "/pass" });
    await eventually("five are counted", async () => (await world.status("pass")).state?.active === 5);
    assert.equal(
      (await world.calls("pass")).some(({ kind }) => ["Counter", "Anywhere"].includes(kind)),
      false,
    );
  });

  test("reject turns everybody away: no refresh, no ticket, nobody waits", async () => {
    const visitor = world.visitor({ path: "/reject" });
    for (let time = 0; time < 2; time += 1) {
      const page = await visitor.get();
      assert.deepEqual(
        [page.fromOrigin, page.refresh, page.headers["retry-after"]],
        [false, undefined, undefined],
      );
      assert.deepEqual(page.setCookie, []);
    }
    const { state, refreshSeconds } = (await visitor.ask()).json;
    assert.deepEqual([state, refreshSeconds], ["rejected", 0]);
    assert.deepEqual((await world.status("reject")).state?.waiting ?? [], []);
  });

  test("lots of a random order can be recomputed when their round is over", async () => {
    await letIn(world, 1, { path: "/random" });
    const visitors = Array.from({ length: 12 }, () => world.visitor({ path: "/random" }));
    for (const visitor of visitors) await visitor.get();
    const seen = [];
    const entered = await eventually(
      "one of them enters, and lots were drawn",
      async () => {
        for (const visitor of visitors) {
          const { json } = await visitor.ask();
          if (json.admitted) return seen.length > 12 && visitor;
          if (json.draw?.number != null) seen.push({ visitor, draw: json.draw });
          assert.equal(json.peopleAhead, null, "nobody is ahead of anybody");
        }
      },
      { within: 110_000, every: 2_500 },
    );
    assert.equal((await entered.get()).fromOrigin, true);
    const rounds = new Set(seen.map(({ draw }) => draw.round));
    const current = Math.floor(Date.now() / 5_000);
    assert.equal((await json(`/__anteroom/draws?room=random&round=${current}`)).json.seed, null);
    await sleep(32_000);
    for (const round of rounds) {
      const { json: drawn } = await json(`/__anteroom/draws?room=random&round=${round}`);
      for (const { visitor, draw } of seen.filter(({ draw }) => draw.round === round)) {
        assert.equal(numberOf(drawn.seed, draw.id), draw.number);
        if (draw === seen[0].draw)
          assert.equal(program("queueing-methods", drawn.seed, draw.id), draw.number);
        if (visitor !== entered) assert.equal(draw.id, idOf("random", visitor));
        assert.ok(draw.threshold > 0 && draw.threshold <= 1);
      }
    }
  });
});

describe("another method for a room with visitors", () => {
  test("who waits keeps the place over reject and random", async () => {
    const rooms = (more) => ({
      turn: room("/turn", { total_active_users: 1, refresh_interval_seconds: 5, ...more }),
    });
    const world = await startWorld({ rooms: rooms({}), colos: { AMS: 1 } });
    try {
      const [inside] = await letIn(world, 1, { path: "/turn" });
      const waiting = world.visitor({ path: "/turn" });
      assert.equal((await waiting.get()).waiting, true);
      const { bucket, id } = openTicket("turn", waiting.ticket());

      await world.deploy({ rooms: rooms({ queueing_method: "reject" }) });
      const refused = await waiting.get();
      assert.deepEqual([refused.fromOrigin, refused.refresh, refused.setCookie], [false, undefined, []]);
      assert.equal((await inside.get()).fromOrigin, true, "whoever is in stays in");

      await world.deploy({ rooms: rooms({ queueing_method: "random" }) });
      assert.equal((await waiting.get()).waiting, true);

      await world.deploy({ rooms: rooms({}) });
      assert.equal((await waiting.get()).waiting, true);
      const ticket = openTicket("turn", waiting.ticket());
      assert.deepEqual([ticket.bucket, ticket.id], [bucket, id]);

      await world.deploy({ rooms: rooms({ queueing_method: "passthrough" }) });
      assert.equal((await waiting.get()).fromOrigin, true);
    } finally {
      await world.close();
    }
  });
});
