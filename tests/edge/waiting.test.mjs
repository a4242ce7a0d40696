// Who is not let in at once: the waiting page, keeping the place, and whose turn it is.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import {
  eventually,
  letIn,
  MINUTE,
  openTicket,
  room,
  roomInMinute,
  sealTicket,
  sleep,
  startWorld,
} from "./world.mjs";

const COLOS = ["AMS", "SIN", "GRU"];
const small = (path, more) => room(path, { total_active_users: 1, ...more });

describe("waiting", { concurrency: true }, () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: {
        page: small("/page"),
        back: small("/back", { queue_all: true }),
        // Where it is nobody's turn, nobody is told to come sooner.
        code: small("/code", { queueing_status_code: 429, refresh_interval_seconds: 60, queue_all: true }),
        turn: small("/turn", { refresh_interval_seconds: 5 }),
        order: small("/order", { refresh_interval_seconds: 5 }),
        wide: small("/wide"),
        narrow: room("/wide/narrow"),
        out: room("/wide/out", { suspended: true }),
        walk: small("/walk", { queue_all: true }),
        place: small("/place"),
        // Sessions so long that the wait for their end is nearly the same a second later.
        shown: small("/shown", { session_duration: 30 }),
        once: room("/once"),
        // Objects that start slowly on a slow machine must not count as an outage in which all are let in.
        flash: room("/flash", { total_active_users: 5 }),
        rate: room("/rate", { new_users_per_minute: 3 }),
        named: room("/named", {
          cookie_suffix: "shop",
          cookie_attributes: { samesite: "none", secure: "auto" },
        }),
      },
    });
  });
  after(() => world.close());

  test("a full room shows the waiting page", async () => {
    await letIn(world, 1, { path: "/page" });
    const visitor = world.visitor({ path: "/page/x" });
    const page = await visitor.get();
    assert.equal(page.status, 200);
    assert.equal(page.fromOrigin, false);
    const { headers } = page;
    const { seconds } = page.refresh;
    // In a room of one the visitor is first in line: to come when more is known of the session, or as usual.
    assert.ok(seconds >= 4 && seconds <= 22, `20 seconds at most, a tenth more or less, not ${seconds}`);
    assert.equal(headers["retry-after"], String(seconds));
    assert.equal(headers["cache-control"], "private, no-store");
    assert.equal(headers["content-type"], "text/html; charset=utf-8");
    assert.match(headers["content-security-policy"], /default-src 'none'/);
    assert.equal(headers.anteroom, "waiting", "programs know the page by this header");
    assert.match(page.body, /^\s*<!doctype html>/i);
    assert.match(page.body, /<html lang="en-US"/);
    assert.match(page.body, /aria-live/);
    assert.ok(page.bytes.length < 15_000, `${page.bytes.length} bytes`);
    assert.deepEqual(world.origin.below("/page/x"), []);
    const ticket = openTicket("page", visitor.ticket());
    assert.equal(ticket.acceptedAt, undefined);
    assert.match(
      page.setCookie.join(),
      /^__anteroom=[\w-]{87}; Path=\/page; Max-Age=300; HttpOnly; SameSite=Lax$/,
    );

    await sleep(20);
    const status = await visitor.ask();
    assert.equal(status.status, 200);
    assert.equal(status.headers["content-type"], "application/json");
    assert.equal(status.headers["cache-control"], "private, no-store");
    assert.equal(status.json.admitted, false);
    assert.equal(status.json.queueAll, false);
    assert.ok(status.json.refreshSeconds > 0 && status.json.refreshSeconds <= seconds, "the rest of it");
    assert.equal(typeof status.json.waitText, "string");
    // `null` until it is known.
    assert.ok([null, 0].includes(status.json.peopleAhead), "nobody came before");
    const kept = openTicket("page", visitor.ticket());
    assert.equal(kept.id, ticket.id);
    assert.equal(kept.bucket, ticket.bucket);
    assert.ok(kept.lastCheckIn > ticket.lastCheckIn, "checking in keeps the place");
    assert.equal((await visitor.upgrade()).status, 200, "no WebSocket past the queue");
    const post = await visitor.get("/page/x", { method: "POST", body: "x" });
    assert.ok(post.waiting);
    assert.deepEqual(world.origin.below("/page/x"), []);
  });

  test("the page comes back to its own address", async () => {
    const paths = [
      "/back",
      "/back/",
      "/back/x",
      "/back/x?a=1&b=2",
      "/back/?q",
      "/back/a:b",
      "/back/a;b,c",
      "/back/%22'",
    ];
    for (const path of paths) {
      const { refresh } = await world.send({ path });
      const own = `http://shop.test${path}`;
      assert.equal(new URL(refresh.url ?? own, own).href, new URL(own).href, `${path} by ${refresh.url}`);
    }
  });

  test("the owner chooses the page's status code and refresh", async () => {
    const visitor = world.visitor({ path: "/code" });
    const page = await visitor.get();
    assert.equal(page.status, 429);
    assert.ok(page.refresh.seconds >= 54 && page.refresh.seconds <= 66);
    assert.equal((await visitor.ask()).status, 200, "the question itself was answered");
  });

  test("a waiting visitor is let in when a session has ended, by a status request too", async () => {
    const [inside] = await letIn(world, 1, { path: "/turn" });
    const until = openTicket("turn", inside.ticket()).lastCheckIn + MINUTE;
    const waiting = COLOS.map((colo, number) =>
      world.visitor({ path: `/turn/${colo}`, colo, worker: number % 2 }),
    );
    for (const visitor of waiting) assert.ok((await visitor.get()).waiting);
    let entered;
    let answer;
    while (!entered) {
      assert.ok(Date.now() < until + 15_000, "somebody is let in after the session has ended");
      await sleep(1_000);
      for (const visitor of waiting) {
        answer = await visitor.ask();
        if (!answer.json.admitted) continue;
        assert.ok(answer.received >= until, "nobody before the session has ended");
        entered = visitor;
        break;
      }
    }
    assert.deepEqual(answer.json, { admitted: true });
    assert.equal(answer.setCookie.length, 1);
    assert.deepEqual(
      world.origin.below("/turn").slice(1),
      [],
      "the status itself is no request to the origin",
    );
    assert.ok(openTicket("turn", entered.ticket()).acceptedAt >= until);
    assert.equal((await entered.get()).body, `GET ${entered.where.path}`);
    for (const visitor of waiting) {
      if (visitor !== entered) assert.ok((await visitor.get()).waiting, "one slot is for one visitor");
    }
  });

  test("what a page shows still holds while the wait lies within its range", async () => {
    await letIn(world, 1, { path: "/shown" });
    const visitor = world.visitor({ path: "/shown" });
    const told = async (shown) =>
      (await visitor.ask("/shown", { headers: { "anteroom-shown": `${shown}` } })).json.waitSeconds;
    const seconds = await eventually("the wait is known", () => told(""));
    assert.ok(seconds > 60, `${seconds} s`);
    const [within, below] = [Math.ceil(seconds / 1.2), Math.floor(seconds / 2)];
    assert.equal(await told(within), within, "it does not rise");
    assert.ok((await told(below)) > within, "what holds no more is not said");
    assert.ok((await told(seconds * 2)) < seconds * 1.2, "it falls at once");
    for (const nonsense of ["-1", "x", "9".repeat(40)]) assert.ok((await told(nonsense)) > within, nonsense);
  });

  test("the oldest bucket goes first, whoever asks more often and wherever", async () => {
    const [inside] = await letIn(world, 1, { path: "/order" });
    const until = openTicket("order", inside.ticket()).lastCheckIn + MINUTE;
    const older = world.visitor({ path: "/order/older", colo: "SIN" });
    const since = Date.now() - 3 * MINUTE;
    const place = { bucket: Math.floor(since / MINUTE), lastCheckIn: Date.now() - 30_000 };
    older.setTicket(sealTicket("order", place), { path: "/order" });
    assert.ok((await older.get()).waiting);
    const younger = world.visitor({ path: "/order/younger" });
    assert.ok((await younger.get()).waiting);
    // A worker's state is as old as its last report.
    const ahead = async () => (await younger.ask()).json.peopleAhead === 1;
    await eventually("another colo's visitors are ahead too", ahead, { every: 1_000 });
    let next = Date.now();
    for (;;) {
      assert.ok(Date.now() < until + 20_000, "the older one is let in");
      if (Date.now() >= next) {
        next += 4_500;
        if ((await older.ask()).json.admitted) break;
      }
      assert.equal((await younger.ask()).json.admitted, false, "not before the older one");
      await sleep(500);
    }
    assert.equal((await younger.ask()).json.admitted, false);
  });

  test("of several rooms the most specific path counts, and each has its own tickets", async () => {
    const [inside] = await letIn(world, 1, { path: "/wide" });
    const visitor = world.visitor({ path: "/wide" });
    assert.ok((await visitor.get()).waiting);
    const narrow = await visitor.get("/wide/narrow/x");
    assert.ok(narrow.fromOrigin);
    assert.ok((await visitor.get("/wide/narrows")).waiting, "whole segments count");
    const out = await visitor.get("/wide/out");
    assert.ok(out.fromOrigin);
    assert.deepEqual(out.setCookie, []);
    assert.ok((await visitor.get()).waiting, "inside one is not inside another");
    const ticketOfNarrow = openTicket("narrow", visitor.ticket("/wide/narrow"));
    assert.ok(ticketOfNarrow.acceptedAt);
    const thief = world.visitor({ path: "/wide" });
    thief.setTicket(visitor.ticket("/wide/narrow"), { path: "/wide" });
    const answer = await thief.get();
    assert.ok(answer.waiting);
    assert.notEqual(openTicket("wide", thief.ticket()).id, ticketOfNarrow.id, "a stranger there");
    assert.ok((await inside.get()).fromOrigin);
  });

  test("no spelling walks around a room", async () => {
    const spellings = [
      "/walk",
      "/walk/",
      "//walk",
      "/walk//x",
      "/./walk",
      "/x/../walk",
      "/%77alk",
      "/%2577alk",
      "/walk%2fx",
      "/%2fwalk",
      "/%2e/walk",
      "/x/%2e%2e/walk",
      "/x/..%2fwalk",
      "/x/..;/walk",
      "/walk;v=1",
      "/walk;v=1/x",
      "/;/walk",
      "/walk?x",
      "/walk%3fx",
      "/walk%00",
      "/\\walk",
      "/x\\..\\walk",
      "/walk/../walk",
      "/page/..%2f../walk",
    ];
    const before = world.origin.requests.length;
    for (const path of spellings) {
      const answer = await world.send({ path });
      assert.ok(!answer.fromOrigin && (answer.waiting || answer.status === 400), `${path}: ${answer.status}`);
    }
    const through = world.origin.requests.slice(before).filter(({ url }) => /walk|77alk/.test(url));
    assert.deepEqual(through, []);
    assert.ok((await world.send({ path: "/Walk" })).fromOrigin, "paths are case-sensitive");
  });

  test("a waiting visitor who moves to another colo keeps the place and counts once", async () => {
    await letIn(world, 1, { path: "/place" });
    const visitor = world.visitor({ path: "/place" });
    await visitor.get();
    const { id, bucket } = openTicket("place", visitor.ticket());
    for (const colo of ["SIN", "GRU", "AMS", "SIN"]) {
      // Two tabs that refresh at once, on two workers.
      const answers = await Promise.all([0, 1].map((worker) => visitor.get("/place", { colo, worker })));
      assert.ok(answers.every(({ waiting }) => waiting));
      await sleep(1_500);
    }
    const ticket = openTicket("place", visitor.ticket());
    assert.deepEqual([ticket.id, ticket.bucket], [id, bucket]);
    await sleep(5_000);
    const { state } = await world.status("place");
    assert.deepEqual(state.waiting, [[bucket, 1]]);
    assert.equal(state.active, 1);
  });

  test("requests that enter at once with one ticket are one user, who then moves about", async () => {
    await roomInMinute(20_000);
    const visitor = world.visitor({ path: "/once" });
    visitor.setTicket(sealTicket("once", { lastCheckIn: Date.now() - 40_000 }), { path: "/once" });
    const together = (colo) =>
      Promise.all([0, 1, 0, 1, 0, 1].map((worker) => visitor.get("/once", { colo, worker })));
    assert.ok((await together("AMS")).every(({ fromOrigin }) => fromOrigin));
    const counted = () => world.status("once").then(({ state }) => state);
    await eventually("the visitor is counted", async () => (await counted()).active > 0);
    for (const colo of ["AMS", "SIN", "AMS", "GRU"]) {
      await sleep(700);
      assert.ok((await together(colo)).every(({ fromOrigin }) => fromOrigin));
    }
    for (let i = 0; i < 6; i += 1) {
      await sleep(1_000);
      const { active, admitted } = await counted();
      assert.deepEqual({ active, admitted }, { active: 1, admitted: 1 });
    }
  });

  test("of a flash crowd exactly as many enter as there are slots", async () => {
    const crowd = Array.from({ length: 30 }, (_, number) =>
      world.visitor({ path: "/flash", colo: COLOS[number % 3], worker: number % 2 }),
    );
    const inside = new Set();
    const all = async () => {
      for (const [number, { fromOrigin }] of (
        await Promise.all(crowd.map((visitor) => visitor.get()))
      ).entries()) {
        if (fromOrigin) inside.add(number);
        else assert.ok(!inside.has(number), "whoever is in stays in");
      }
      return inside.size >= 5;
    };
    await eventually("five are in", all, { every: 3_000 });
    await all();
    assert.equal(inside.size, 5);
  });

  test("new users per minute hold, whatever is free", async () => {
    await roomInMinute(8_000);
    const crowd = Array.from({ length: 12 }, (_, number) =>
      world.visitor({ path: "/rate", colo: COLOS[number % 3], worker: number % 2 }),
    );
    const answers = await Promise.all(crowd.map((visitor) => visitor.get()));
    const entered = answers.filter(({ fromOrigin }) => fromOrigin).length;
    assert.ok(entered <= 3, `${entered} entered`);
    const waiting = crowd.filter((_, number) => answers[number].waiting);
    const minute = Math.floor(Date.now() / MINUTE);
    // Fewer may have entered if the objects started slowly: the others may then do so in this minute.
    if (entered < 3) return;
    // In the next minute more may come in.
    await eventually(
      "the next ones are let in",
      async () => {
        const again = await Promise.all(waiting.map((visitor) => visitor.ask()));
        return again.some(({ json }) => json.admitted);
      },
      { within: 80_000, every: 2_500 },
    );
    assert.ok(Math.floor(Date.now() / MINUTE) > minute, "not in the same minute");
  });

  test("the ticket's cookie is named and marked as the owner says", async () => {
    const answer = await world.send({ path: "/named" });
    assert.match(
      answer.setCookie.join(),
      /^__anteroom_shop=[\w-]{87}; Path=\/named; Max-Age=60; HttpOnly; SameSite=None; Secure; Partitioned$/,
    );
    const [, value] = /=([^;]*)/.exec(answer.setCookie[0]);
    const cookie = { cookie: `__anteroom_shop=${value}` };
    assert.deepEqual((await world.send({ path: "/named", headers: cookie })).setCookie.length <= 1, true);
    assert.equal(openTicket("named", value).acceptedAt > 0, true);
  });
});
