// Places in line: how long they are kept and for whom, who is told to come back when, and who gives a place back.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { eventually, KEY, letIn, MINUTE, openTicket, room, sealTicket, startWorld } from "./world.mjs";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64)";

/** The `Max-Age` of the ticket's cookie. */
const maxAge = ({ setCookie }) => +/__anteroom=[^;]+;.*Max-Age=(\d+)/.exec(setCookie.join())?.[1];

describe("places", { concurrency: true }, () => {
  let world;
  before(async () => {
    const one = { one_place_per_address: true };
    world = await startWorld({
      rooms: {
        once: room("/once", { disable_session_renewal: true }),
        kept: room("/kept", { queue_all: true, place_kept_seconds: 120 }),
        far: room("/far", { total_active_users: 1, place_kept_seconds: 600 }),
        line: room("/line", { total_active_users: 1 }),
        off: room("/off", { suspended: true }),
        leases: room("/leases", one),
        counters: room("/counters", { ...one, slot_strategy: "counters" }),
        slots: room("/slots", { ...one, slot_strategy: "worker_slots" }),
        address: room("/address", { queue_all: true, bind_ticket: "address" }),
        agent: room("/agent", { queue_all: true, bind_ticket: "user_agent" }),
        both: room("/both", { queue_all: true, bind_ticket: "both" }),
        moves: room("/moves", { queue_all: true, continue_on_another_device: true }),
      },
    });
  });
  after(() => world.close());

  test("a session that is not renewed ends a session duration after the admission", async () => {
    const visitor = world.visitor({ path: "/once" });
    assert.equal(maxAge(await visitor.get()), 60);
    const ticket = visitor.ticket();
    const answer = await visitor.get();
    assert.ok(answer.fromOrigin);
    assert.deepEqual(answer.setCookie, [], "nothing moves on");
    const { id } = openTicket("once", ticket);
    const now = Date.now();
    for (const [acceptedAt, isIn] of [
      [now - MINUTE + 5_000, true],
      [now - MINUTE - 10, false],
    ]) {
      visitor.setTicket(sealTicket("once", { id, acceptedAt, lastCheckIn: now }), { path: "/once" });
      assert.ok((await visitor.get()).fromOrigin);
      const after = openTicket("once", visitor.ticket());
      assert.equal(after.id === id, isIn, "whoever comes later is somebody new");
    }
  });

  test("a place is kept as long as the owner says, and never less than two and a half refreshes", async () => {
    const bucket = Math.floor(Date.now() / MINUTE) - 10;
    const visitor = world.visitor({ path: "/kept" });
    assert.equal(maxAge(await visitor.get()), 120);
    for (const [seconds, refreshSeconds, keeps] of [
      [115, 20, true],
      [121, 20, false],
      [145, 60, true],
      [151, 60, false],
    ]) {
      const lastCheckIn = Date.now() - seconds * 1_000;
      visitor.setTicket(sealTicket("kept", { bucket, lastCheckIn, refreshSeconds }), { path: "/kept" });
      assert.ok((await visitor.get()).waiting);
      assert.equal(openTicket("kept", visitor.ticket()).bucket === bucket, keeps, `after ${seconds} s`);
    }
  });

  test("far from the front a visitor who has come back is told to stay away longer, and keeps the place for longer", async () => {
    await letIn(world, 1, { path: "/far" });
    const bucket = Math.floor(Date.now() / MINUTE) - 5;
    // They have been away for so long that they are not counted any more, and are again now.
    const lastCheckIn = Date.now() - 100_000;
    for (let n = 0; n < 20; n += 1) {
      const ahead = world.visitor({ path: "/far" });
      ahead.setTicket(sealTicket("far", { bucket, lastCheckIn }), { path: "/far" });
      assert.ok((await ahead.get()).waiting);
    }
    const visitor = world.visitor({ path: "/far" });
    const first = await visitor.get();
    assert.ok(first.refresh.seconds <= 22, "who has not come back yet comes as usual");
    const told = await eventually("told to stay away", async () => {
      const answer = await visitor.get();
      return answer.refresh.seconds > 22 && answer;
    });
    assert.ok(told.refresh.seconds <= 66);
    const ticket = openTicket("far", visitor.ticket());
    assert.equal(ticket.refreshSeconds, told.refresh.seconds);
    assert.equal(maxAge(told), 600);
  });

  describe("a link to another device", { concurrency: false }, () => {
    const HTML = { accept: "text/html" };
    /** What a page says, as a browser reads it. */
    const read = (pattern, { body }) =>
      pattern
        .exec(body)[1]
        .replace(/&#x(..);/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
        .replaceAll("&amp;", "&");
    const linkIn = (page) => read(/id="continue" href="([^"]+)"/, page);
    const field = (page, name) => read(new RegExp(`name="${name}" value="([^"]*)"`), page);
    /** Opens a link, and sends the form in its page. */
    async function take(visitor, link, headers = {}) {
      const page = await visitor.get(link, { headers: HTML });
      const names = ["to", "link", "by"];
      const form = new URLSearchParams(names.map((name) => [name, field(page, name)]));
      return visitor.get("/__anteroom/continue", {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
        body: `${form}`,
      });
    }
    let old;
    let link;
    before(async () => {
      old = world.visitor({ path: "/moves", headers: HTML });
      link = linkIn(await old.get("/moves/x?a=1&b=2", { headers: HTML }));
    });

    test("is shown with a code, and moves nothing when it is only looked at", async () => {
      const page = await old.get(link, { headers: { ...HTML, "accept-language": "de" } });
      assert.equal(page.status, 200);
      assert.match(page.body, /<svg class="code" role="img"/);
      assert.match(page.body, /Auf einem anderen Gerät weitermachen/);
      assert.equal(page.headers["referrer-policy"], "no-referrer");
      assert.match(page.headers["content-security-policy"], /^default-src 'none'; .*form-action 'self'/);
      const shown = new URL(read(/class="address"><a href="([^"]+)"/, page));
      assert.equal(shown.host, "shop.test");
      const second = await old.get(shown.pathname + shown.search, { headers: HTML });
      assert.equal(second.status, 200);
      assert.doesNotMatch(second.body, /<svg class="code"/, "the other device shows none");
      assert.ok((await old.get("/moves", { headers: HTML })).waiting);
    });

    test("cannot be sent from a page of another site", async () => {
      const answer = await take(world.visitor({ path: "/moves" }), link, { origin: "https://evil.test" });
      assert.equal(answer.status, 410);
      assert.deepEqual(answer.setCookie, []);
    });

    test("takes the place along once, and the old device stops", async () => {
      const { id, bucket } = openTicket("moves", old.ticket());
      const other = world.visitor({ path: "/moves" });
      const moved = await take(other, link);
      assert.equal(moved.status, 303);
      assert.equal(moved.headers.location, "/moves/x?a=1&b=2");
      const ticket = openTicket("moves", other.ticket());
      assert.deepEqual([ticket.id, ticket.bucket], [id, bucket], "the same place");
      assert.ok((await other.get("/moves")).waiting);

      const third = await take(world.visitor({ path: "/moves" }), link);
      assert.equal(third.status, 410, "a link is good once");
      assert.deepEqual(third.setCookie, []);

      const stopped = await eventually("the old device stops", async () => {
        const answer = await old.get("/moves", { headers: HTML });
        return answer.status === 410 && answer;
      });
      assert.match(stopped.body, /Your place is on another device/);
      assert.match(stopped.setCookie.join(), /Max-Age=0/);
      assert.ok((await other.get("/moves")).waiting, "the new one goes on");
    });

    test("is nothing where it was made up, or the room has none", async () => {
      for (const address of [
        link.replace(/.$/, (last) => (last === "A" ? "B" : "A")),
        link.replace(/link=.*/, "link=x"),
        link.replace(/to=[^&]*/, "to=//evil.test/moves"),
        link.replace(/to=[^&]*/, "to=%2Fkept"),
        "/__anteroom/continue",
      ]) {
        const answer = await old.get(address, { headers: HTML });
        assert.equal(answer.status, 410, address);
      }
      const elsewhere = await world.visitor({ path: "/kept" }).get("/kept", { headers: HTML });
      assert.match(elsewhere.body, /id="elsewhere" hidden/);
    });
  });

  describe("who closes the page", { concurrency: false }, () => {
    const close = (visitor, at, path = "/line") =>
      visitor.get(path, {
        method: "POST",
        headers: { "content-type": `application/x-anteroom-leave;at=${at}` },
      });
    const waiting = async () =>
      (await world.status("line")).state.waiting.reduce((sum, [, users]) => sum + users, 0);
    let visitor;
    before(async () => {
      await letIn(world, 1, { path: "/line" });
      visitor = world.visitor({ path: "/line" });
      await visitor.get();
      await eventually("counted", async () => (await waiting()) === 1);
    });

    test("gives the place back, and keeps it when coming back in time", async () => {
      const { bucket, lastCheckIn } = openTicket("line", visitor.ticket());
      const seen = world.origin.requests.length;
      const answer = await close(visitor, lastCheckIn);
      assert.equal(answer.status, 204);
      assert.deepEqual(answer.setCookie, []);
      assert.equal(world.origin.requests.slice(seen).filter(({ url }) => url === "/line").length, 0);
      await eventually("not counted", async () => (await waiting()) === 0);
      assert.ok((await visitor.get()).waiting);
      assert.equal(openTicket("line", visitor.ticket()).bucket, bucket, "the same place");
      await eventually("counted again", async () => (await waiting()) === 1);
    });

    test("changes nothing when a newer page of the same ticket waits on, nor for anybody else", async () => {
      const { lastCheckIn } = openTicket("line", visitor.ticket());
      const stranger = world.visitor({ path: "/line" });
      for (const [who, at, path] of [
        [visitor, lastCheckIn - 1, "/line"],
        [visitor, "", "/line"],
        [stranger, lastCheckIn, "/line"],
        [stranger, lastCheckIn, "/off"],
        [stranger, lastCheckIn, "/no-room"],
      ]) {
        const answer = await close(who, at, path);
        assert.deepEqual([answer.status, answer.body, answer.fromOrigin], [204, "", false]);
      }
      stranger.setTicket(`${visitor.ticket().slice(0, -3)}AAA`, { path: "/line" });
      assert.equal((await close(stranger, lastCheckIn)).status, 204, "a forged ticket");
      // Check-ins of somebody else show that reports have come meanwhile.
      const other = world.visitor({ path: "/line" });
      await other.get();
      await eventually("both are counted", async () => (await waiting()) === 2);
    });

    test("an active user's session goes on", async () => {
      const [active] = await letIn(world, 1, { path: "/once" });
      const { lastCheckIn } = openTicket("once", active.ticket());
      assert.equal((await close(active, lastCheckIn, "/once")).status, 204);
      assert.ok((await active.get()).fromOrigin);
    });

    test("an ordinary POST goes its way", async () => {
      const [active] = await letIn(world, 1, { path: "/once" });
      const answer = await active.get("/once", { method: "POST", headers: { "content-type": "text/plain" } });
      assert.ok(answer.fromOrigin);
    });
  });

  for (const name of ["leases", "counters", "slots"])
    test(`one newcomer a minute enters from an address at once, the others when they come back (${name})`, async () => {
      const path = `/${name}`;
      const from = (address) => ({ headers: { "cf-connecting-ip": address } });
      const come = async (address, more) => {
        const visitor = world.visitor({ path, ...more });
        return { visitor, answer: await visitor.get(path, from(address)) };
      };
      assert.ok((await come("192.0.2.1")).answer.fromOrigin);
      const second = await come("192.0.2.1");
      assert.ok(second.answer.waiting);
      // A bot that keeps no cookies gets no further.
      for (let n = 0; n < 3; n += 1) assert.ok((await come("192.0.2.1")).answer.waiting);
      if (name !== "slots")
        assert.ok((await come("192.0.2.1", { worker: 1 })).answer.waiting, "by the Counter");
      assert.ok((await come("192.0.2.2")).answer.fromOrigin, "another address");
      assert.ok((await come("2001:db8::1")).answer.fromOrigin);
      assert.ok((await come("2001:db8::2")).answer.waiting, "the same network of IPv6");
      assert.ok(
        (await second.visitor.get(path, from("192.0.2.1"))).fromOrigin,
        "the ticket was brought back",
      );
      assert.equal(
        (await world.status(name)).state.waiting.length,
        0,
        "nobody was counted who has not come back",
      );
    });

  // By what each is bound: the first 16 bits of an IPv4 address or 32 of an IPv6 address, and the user agent.
  const HERE = ["192.0.2.1", BROWSER];
  for (const [name, mine, ...others] of [
    [
      "address",
      [HERE, "4:c000"],
      [["192.1.2.1", BROWSER], "4:c001"],
      [["2001:db8::1", BROWSER], "6:20010db8"],
    ],
    ["agent", [HERE, `\n${BROWSER}`], [["192.0.2.1", "curl/8"], "\ncurl/8"]],
    [
      "both",
      [HERE, `4:c000\n${BROWSER}`],
      [["192.1.2.1", BROWSER], `4:c001\n${BROWSER}`],
      [["192.0.2.1", "curl/8"], "4:c000\ncurl/8"],
    ],
  ])
    test(`a ticket that is bound (${name}) is none for somebody else`, async () => {
      const path = `/${name}`;
      const come = async (ticket, [[address, agent], binding]) => {
        const visitor = world.visitor({ path });
        visitor.setTicket(ticket, { path });
        const headers = { "cf-connecting-ip": address, "user-agent": agent };
        assert.ok((await visitor.get(path, { headers })).waiting);
        return { value: visitor.ticket(), ...openTicket(name, visitor.ticket(), KEY, binding) };
      };
      // From before the owner wanted tickets bound: it holds until it is sealed anew.
      const bucket = Math.floor(Date.now() / MINUTE) - 3;
      const first = await come(sealTicket(name, { id: 7n, bucket }), mine);
      assert.deepEqual([first.id, first.bucket], [7n, bucket]);
      assert.equal((await come(first.value, mine)).id, 7n);
      for (const other of others) assert.notEqual((await come(first.value, other)).id, 7n, other[1]);
    });
});
