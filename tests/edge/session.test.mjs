// What binds a visitor and the site besides the cookie: the origin ends a session, a client carries its ticket in a
// header, and the origin learns that a request was admitted.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { jwtVerify } from "jose";

import { ADMIN_TOKEN, eventually, letIn, openTicket, room, startWorld } from "./world.mjs";

const ADMISSION_KEY = "a key of more than thirty-two characters";

describe("a session", { concurrency: true }, () => {
  let world;
  before(async () => {
    const revoke = { enabled_origin_commands: ["revoke"] };
    world = await startWorld({
      rooms: {
        revoke: room("/revoke", revoke),
        other: room("/other", revoke),
        full: room("/full", { ...revoke, total_active_users: 2 }),
        copied: room("/copied", { ...revoke, total_active_users: 3 }),
        deaf: room("/deaf"),
        header: room("/header"),
        line: room("/line", { total_active_users: 1 }),
        signed: room("/signed"),
        steered: room("/steered"),
        past: room("/past", {
          queue_all: true,
          exempt_extensions: ["css"],
          bypass_rules: ['http.request.uri.query eq "free"'],
        }),
        off: room("/off", { suspended: true }),
        frame: room("/frame", { cookie_attributes: { samesite: "none" } }),
      },
      vars: { ADMISSION_KEY },
    });
  });
  after(() => world.close());

  for (const [name, path] of [
    ["anteroom-command", "/revoke/bought"],
    ["cf-waiting-room-command", "/other/known"],
  ])
    test(`the origin's header ${name} ends it`, async () => {
      const room = path.split("/")[1];
      const visitor = world.visitor({ path });
      await visitor.get(`/${room}`);
      const ticket = visitor.ticket();
      const answer = await visitor.get();
      assert.ok(answer.fromOrigin);
      assert.equal(answer.headers[name], undefined, "the command is between the origin and the room");
      assert.match(answer.setCookie.at(-1), /^__anteroom=; Path=\/\w+; Max-Age=0; HttpOnly/);
      if (path.endsWith("bought")) assert.equal(answer.setCookie[0], "order=7; Path=/");
      assert.equal(visitor.ticket(), undefined);
      // A copy of the ticket, or a request that was under way, opens nothing.
      visitor.setTicket(ticket, { path: `/${room}` });
      const next = await visitor.get(`/${room}/again`);
      assert.ok(next.fromOrigin);
      assert.notEqual(
        openTicket(room, visitor.ticket()).id,
        openTicket(room, ticket).id,
        "whoever comes again is somebody new",
      );
    });

  test("a slot that the origin gives back is somebody else's within a report", async () => {
    const [first] = await letIn(world, 2, { path: "/full" });
    const next = world.visitor({ path: "/full", colo: "SIN" });
    assert.ok((await next.get()).waiting);
    assert.ok((await first.get("/full/bought")).fromOrigin);
    // A session lasts a minute: what is free before that has been given back.
    await eventually("the next one is in", async () => (await next.get()).fromOrigin, {
      within: 20_000,
      every: 1_000,
    });
    const status = await world.status("full");
    assert.ok(status.state.active <= 2);
    assert.ok((await first.get()).waiting, "whoever bought stands in line again");
  });

  test("a session that is ended in two colos by three copies at once gives one slot back, and no copy goes on", async () => {
    const [first] = await letIn(world, 3, { path: "/copied" });
    const ticket = first.ticket();
    const copyIn = (colo, worker = 0) => {
      const visitor = world.visitor({ path: "/copied", colo, worker });
      visitor.setTicket(ticket, { path: "/copied" });
      return visitor;
    };
    const ended = await Promise.all(
      [copyIn("AMS"), copyIn("SIN"), copyIn("SIN", 1)].map((copy) => copy.get("/copied/bought")),
    );
    assert.ok(ended.every(({ fromOrigin }) => fromOrigin));
    const newcomers = ["GRU", "SIN", "AMS"].map((colo) => world.visitor({ path: "/copied", colo }));
    const within = { within: 20_000, every: 1_000 };
    const answers = async () => Promise.all(newcomers.map((visitor) => visitor.get()));
    await eventually(
      "somebody has the slot",
      async () => (await answers()).some(({ fromOrigin }) => fromOrigin),
      within,
    );
    const copy = copyIn("GRU");
    await eventually(
      "a copy is refused where nobody has ended it",
      async () => {
        copy.setTicket(ticket, { path: "/copied" });
        return (await copy.get()).waiting;
      },
      within,
    );
    assert.deepEqual(
      (await answers()).map(({ fromOrigin }) => fromOrigin).sort(),
      [false, false, true],
      "the others wait on",
    );
  });

  test("a room that has not enabled the command passes it on and keeps the session", async () => {
    const visitor = world.visitor({ path: "/deaf/bought" });
    const answer = await visitor.get();
    assert.equal(answer.headers["anteroom-command"], "revoke");
    assert.ok(visitor.ticket());
  });

  test("a client without cookies carries its ticket in a header", async () => {
    const send = (ticket, path = "/header/api") =>
      world.send({ colo: "AMS", worker: 0, path, headers: { "anteroom-ticket": ticket } });
    const first = await send("new");
    assert.ok(first.fromOrigin);
    const ticket = first.headers["anteroom-ticket"];
    assert.ok(openTicket("header", ticket).acceptedAt, "it is in");
    assert.deepEqual(first.setCookie, [], "no cookie for whoever does not want one");
    const calls = (await world.calls("header")).filter(({ route }) => route === "/take").length;
    const second = await send(ticket);
    assert.ok(second.fromOrigin);
    assert.equal((await world.calls("header")).filter(({ route }) => route === "/take").length, calls);
    for (const forged of [ticket.slice(0, -2), "x".repeat(5000), `${ticket}, ${ticket}`, ""]) {
      const answer = await send(forged);
      assert.ok(answer.fromOrigin, "there is room for whoever is new");
      if (forged)
        assert.notEqual(
          openTicket("header", answer.headers["anteroom-ticket"]).id,
          openTicket("header", ticket).id,
        );
    }
  });

  test("a place in line is kept in the header too", async () => {
    await letIn(world, 1, { path: "/line" });
    const send = (ticket) =>
      world.send({ colo: "AMS", worker: 0, path: "/line", headers: { "anteroom-ticket": ticket } });
    const first = await send("new");
    assert.ok(first.waiting);
    const before = openTicket("line", first.headers["anteroom-ticket"]);
    const second = await send(first.headers["anteroom-ticket"]);
    assert.ok(second.waiting);
    const after = openTicket("line", second.headers["anteroom-ticket"]);
    assert.equal(after.id, before.id);
    assert.equal(after.bucket, before.bucket);
    assert.ok(after.lastCheckIn >= before.lastCheckIn);
  });

  test("whoever has a ticket cookie never gets it in a header, where scripts could read it", async () => {
    const visitor = world.visitor({ path: "/header/page" });
    await visitor.get();
    const answer = await visitor.get("/header/page", { headers: { "anteroom-ticket": "new" } });
    assert.ok(answer.fromOrigin);
    assert.equal(answer.headers["anteroom-ticket"], undefined);
  });

  test("the origin can tell admitted requests by their signature", async () => {
    const visitor = world.visitor({ path: "/signed/page" });
    const key = new TextEncoder().encode(ADMISSION_KEY);
    for (const time of ["enters", "passes"]) {
      const path = `/signed/${time}`;
      await visitor.get(path, { headers: { "anteroom-admitted": "forged" } });
      const { headers } = world.origin.requests.findLast(({ url }) => url === path);
      const { payload } = await jwtVerify(headers["anteroom-admitted"], key, {
        issuer: "anteroom",
        audience: "signed",
        algorithms: ["HS256"],
      });
      assert.equal(payload.sub, openTicket("signed", visitor.ticket()).id.toString(16).padStart(16, "0"));
      assert.equal(payload.exp - payload.iat, 120);
    }
  });

  test("no visitor can say so, wherever a request goes past the rooms", async () => {
    const preflight = { origin: "https://x.test", "access-control-request-method": "PUT" };
    for (const [path, more] of [
      ["/nowhere"],
      ["/past?free"],
      ["/past/a.css"],
      ["/past/asked", { method: "OPTIONS", headers: preflight }],
    ]) {
      const headers = { ...more?.headers, "anteroom-admitted": "forged" };
      assert.ok((await world.send({ path, ...more, headers })).fromOrigin, path);
      const came = world.origin.requests.findLast(({ url }) => url === path);
      assert.equal(came.headers["anteroom-admitted"], undefined, path);
    }
  });

  test("a suspended room says so of everybody, for origins that insist, and calls no object for it", async () => {
    const key = new TextEncoder().encode(ADMISSION_KEY);
    const authorization = `Bearer ${ADMIN_TOKEN}`;
    const suspended = await world.send({
      path: "/__anteroom/steering?room=steered",
      method: "POST",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ set: { suspended: true } }),
    });
    assert.equal(suspended.status, 200, suspended.body);
    const comes = async (path) => {
      const answer = await world.send({ path, headers: { "anteroom-admitted": "forged" } });
      assert.ok(answer.fromOrigin);
      const { headers } = world.origin.requests.findLast(({ url }) => url === path);
      const options = { issuer: "anteroom", algorithms: ["HS256"] };
      const { payload } = await jwtVerify(headers["anteroom-admitted"], key, options);
      return { ...payload, isNew: answer.setCookie.length > 0 };
    };
    for (const name of ["off", "steered"])
      await eventually(`everybody passes ${name}`, async () => {
        const { aud, sub, isNew } = await comes(`/${name}/page`);
        assert.equal(aud, name);
        return sub === "0".repeat(16) && !isNew;
      });
    const calls = (await world.calls("off")).filter(({ kind }) => kind !== "Global");
    assert.deepEqual([...new Set(calls.map(({ route }) => route))], ["/state"], "is it switched on?");
  });

  test("a room inside pages of other sites keeps a ticket for each of them", async () => {
    const [line] = (await world.visitor({ path: "/frame" }).get()).setCookie;
    assert.match(line, /; SameSite=None; Secure; Partitioned$/);
  });
});
