// Turnstile for those who wait. Cloudflare's service cannot be reached from here: an HTTP server on loopback stands in
// for it, with the answers that its documentation lists.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";

import { eventually, HOST, letIn, openTicket, room, startWorld } from "./world.mjs";

/** The service: it judges by what a token is called. */
async function startService() {
  const asked = [];
  let broken = false;
  const server = createServer(async (request, response) => {
    if (broken) return request.socket.destroy();
    if (request.url !== "/v0/siteverify") return response.end("// the widget's script");
    let text = "";
    for await (const chunk of request) text += chunk;
    const form = Object.fromEntries(new URLSearchParams(text));
    asked.push({ ...form, method: request.method, type: request.headers["content-type"] });
    if (form.response === "junk") {
      response.statusCode = 429;
      return response.end("Too Many Requests");
    }
    const error = { robot: "invalid-input-response", old: "timeout-or-duplicate", trouble: "internal-error" };
    const [, action] = form.secret.match(/^secret-of-(.*)$/) ?? [];
    const code = action ? error[form.response] : "invalid-input-secret";
    const hostname = form.response === "elsewhere" ? "elsewhere.test" : HOST;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ success: !code, "error-codes": code ? [code] : [], hostname, action }));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    asked,
    url: `http://127.0.0.1:${server.address().port}/v0`,
    break: (is) => {
      broken = is;
    },
    close: () => new Promise((closed) => server.close(closed)),
  };
}

describe("Turnstile", { concurrency: true }, () => {
  let world;
  let service;
  before(async () => {
    service = await startService();
    const small = { total_active_users: 1, turnstile_sitekey: "1x00000000000000000000AA" };
    const strict = { ...small, turnstile_action: "infinite_queue" };
    world = await startWorld({
      rooms: {
        log: room("/log", small),
        robots: room("/robots", small),
        strict: room("/strict", strict),
        front: room("/front", strict),
        trouble: room("/trouble", strict),
        junk: room("/junk", strict),
        nosecret: room("/nosecret", strict),
      },
      vars: {
        TURNSTILE_URL: `${service.url}/`,
        ...Object.fromEntries(
          ["log", "robots", "strict", "front", "trouble", "junk"].map((name) => [
            `TURNSTILE_SECRET_${name.toUpperCase()}`,
            `secret-of-${name}`,
          ]),
        ),
      },
    });
  });
  after(async () => {
    await world.close();
    await service.close();
  });

  const bring = (visitor, token) => visitor.ask(undefined, { headers: { "anteroom-turnstile": token } });
  const waiting = async (room) => {
    const { state } = await world.status(room);
    return (state?.waiting ?? []).reduce((sum, [, users]) => sum + users, 0);
  };

  test("a token is verified by the service, with the room's secret and the visitor's address", async () => {
    await letIn(world, 1, { path: "/log" });
    const visitor = world.visitor({ path: "/log" });
    await visitor.get();
    await visitor.ask(undefined, {
      headers: { "anteroom-turnstile": "good", "cf-connecting-ip": "203.0.113.7" },
    });
    // Tests beside this one ask about the same token.
    const asked = service.asked.find(({ remoteip }) => remoteip === "203.0.113.7");
    assert.ok(asked, "the service is told the visitor's address");
    assert.equal(asked.response, "good");
    assert.equal(asked.method, "POST");
    assert.match(asked.type, /^application\/x-www-form-urlencoded/);
    assert.equal(asked.secret, "secret-of-log");
    assert.equal(openTicket("log", visitor.ticket()).human, "passed");
  });

  test("with the action log a robot keeps its place, and the log tells", async () => {
    await letIn(world, 1, { path: "/robots" });
    const robot = world.visitor({ path: "/robots" });
    await robot.get();
    await bring(robot, "robot");
    assert.equal(openTicket("robots", robot.ticket()).human, "failed");
    await eventually("it is counted", async () => (await waiting("robots")) >= 1);
  });

  test("with an infinite queue only those who pass are counted and enter", async () => {
    // Nobody is in: whoever comes first finds the room empty, and is not asked for anything.
    await letIn(world, 1, { path: "/strict" });
    const people = ["person", "robot", "silent"].map(() => world.visitor({ path: "/strict" }));
    const [person, robot, silent] = people;
    for (const visitor of people) assert.ok((await visitor.get()).waiting);
    const calls = (await world.calls("strict")).filter(({ route }) => route === "/take").length;
    for (let round = 0; round < 3; round += 1) {
      assert.equal((await bring(robot, "robot")).json.admitted, false);
      assert.equal((await silent.ask()).json.admitted, false);
    }
    const later = (await world.calls("strict")).filter(({ route }) => route === "/take").length;
    assert.equal(later, calls, "nobody takes a number for them");
    assert.equal((await bring(person, "good")).json.admitted, false);
    await eventually("the person is counted", async () => (await waiting("strict")) === 1);
    // A minute after the first one came, the person is in; the robots came earlier and are not.
    await eventually("the person is in", async () => (await person.ask()).json.admitted, {
      within: 100_000,
      every: 2_000,
    });
    assert.equal((await robot.ask()).json.admitted, false);
    assert.equal((await silent.ask()).json.admitted, false);
  });

  test("an old token makes nobody a robot, and a robot may prove to be none", async () => {
    await letIn(world, 1, { path: "/front" });
    const visitor = world.visitor({ path: "/front" });
    await visitor.get();
    const human = () => openTicket("front", visitor.ticket()).human;
    await bring(visitor, "old");
    assert.equal(human(), "unknown");
    await bring(visitor, "robot");
    assert.equal(human(), "failed");
    await bring(visitor, "old");
    assert.equal(human(), "failed");
    await bring(visitor, "x".repeat(3_000));
    assert.equal(human(), "failed");
    await bring(visitor, "good");
    assert.equal(human(), "passed");
    await bring(visitor, "robot");
    assert.equal(human(), "passed", "who has passed is not tested again");
    const other = world.visitor({ path: "/front" });
    await other.get();
    await bring(other, "elsewhere");
    assert.equal(openTicket("front", other.ticket()).human, "failed", "a token from another site's widget");
  });

  test("a service in trouble keeps nobody out, and nobody counts as a person for longer than a request", async () => {
    await letIn(world, 1, { path: "/trouble" });
    const visitor = world.visitor({ path: "/trouble" });
    await visitor.get();
    const ticket = () => openTicket("trouble", visitor.ticket());
    for (let round = 0; round < 3; round += 1) {
      assert.equal((await bring(visitor, "trouble")).json.bringAgain, true);
      assert.deepEqual([ticket().human, ticket().uncounted], ["unknown", false]);
    }
    await eventually("it is counted, once", async () => (await waiting("trouble")) === 1);
    assert.equal((await visitor.ask()).json.bringAgain, false);
    assert.deepEqual([ticket().human, ticket().uncounted], ["unknown", true]);
    assert.equal((await bring(visitor, "good")).json.bringAgain, false);
    assert.equal(ticket().human, "passed");
  });

  test("a flood of worthless tokens is no flood of questions, and makes nobody a person", async () => {
    await letIn(world, 1, { path: "/junk" });
    // In another isolate than the other tests, whose questions it would use up.
    const visitor = world.visitor({ path: "/junk", worker: 1 });
    await visitor.get();
    const begin = Date.now();
    await Promise.all(Array.from({ length: 100 }, () => bring(visitor, "junk")));
    const seconds = 1 + Math.ceil((Date.now() - begin) / 1_000);
    assert.equal(openTicket("junk", visitor.ticket()).human, "unknown");
    const asked = service.asked.filter(({ response }) => response === "junk").length;
    assert.ok(asked > 0 && asked <= 20 * seconds, `${asked} questions in ${seconds} s`);
  });

  test("a room whose secret is missing asks nobody for anything, and says so", async () => {
    await letIn(world, 1, { path: "/nosecret" });
    const visitor = world.visitor({ path: "/nosecret" });
    await visitor.get();
    await bring(visitor, "robot");
    assert.equal(openTicket("nosecret", visitor.ticket()).human, "unknown");
    assert.match((await world.status()).problems.join(), /room nosecret: Turnstile needs the secret/);
    await eventually("it is counted", async () => (await waiting("nosecret")) === 1);
  });
});
