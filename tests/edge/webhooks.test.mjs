// What is new in a room reaches whoever wants to hear of it: in real workerd, with a real receiver that fails, hangs, is
// away, and comes back. Signatures are verified by the specification's own library.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";

import { Webhook } from "standardwebhooks";

import { notification, platformTime, WEBHOOK, WEBHOOK_SECRET } from "./health.mjs";
import { reserve } from "./reserve.mjs";
import { ADMIN_TOKEN, eventually, letIn, room, sleep, startWorld } from "./world.mjs";

const NEWS = "/__anteroom/news";
const SECRET = newSecret();
/** An attempt that failed is repeated after 5 and 10 seconds. */
const AGAIN = { within: 60_000 };

function newSecret() {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

/** A receiver of webhooks: what it got, by path, and how it answers. */
class Receiver {
  /** @type {{ path: string, id: string, headers: Record<string, string>, body: any, text: string }[]} */
  #got = [];
  /** @type {Map<string, number | "hang" | undefined>} */
  #moods = new Map();
  #sockets = new Set();
  port = 0;

  #serve = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { url: path, headers, method } = request;
    assert.equal(method, "POST");
    const text = Buffer.concat(chunks).toString();
    const mood = this.#moods.get(path);
    this.#got.push({ path, id: headers["webhook-id"], headers, text, body: JSON.parse(text), mood });
    if (mood === "hang") return;
    if (mood === 302) response.setHeader("location", "/elsewhere");
    response.writeHead(mood ?? 204).end();
  });

  async open() {
    this.#serve.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise((resolve) => this.#serve.listen(this.port, "127.0.0.1", resolve));
    this.port = this.#serve.address().port;
    return this;
  }

  async close() {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#serve.close(resolve));
  }

  url(path) {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** How it answers from now on what comes for a path; nothing: 204. */
  behave(path, mood) {
    this.#moods.set(path, mood);
  }

  /** All that came for a path, each attempt. */
  got(path) {
    return this.#got.filter((one) => one.path === path);
  }

  /** What it took, each news once, in the order in which it did. */
  taken(path) {
    const taken = this.got(path).filter(({ mood }) => mood === undefined);
    return taken.filter(({ id }, index) => taken.findIndex((other) => other.id === id) === index);
  }
}

describe("webhooks", { concurrency: true }, () => {
  const SECOND_SECRET = newSecret();
  /** After all reports of whoever was there before. */
  const eventStart = Math.ceil(Date.now() / 1000) * 1000 + 75_000;
  let world;
  let receiver;
  let away;
  let comesBack;

  before(async () => {
    receiver = await new Receiver().open();
    // Its port is known and nobody listens.
    away = await new Receiver().open();
    await away.close();
    comesBack = await reserve(away.port);
    const checked = (name, more) => room(`/${name}`, { health_checks: [name, `${name}-2`], ...more });
    const hook = (name, more) => ({ url: receiver.url(`/${name}`), rooms: [name], ...more });
    world = await startWorld({
      rooms: {
        crowd: room("/crowd", { host: "shop.test", total_active_users: 2, refresh_interval_seconds: 5 }),
        ...Object.fromEntries(
          ["fails", "away", "hangs", "restarts", "gone", "full", "chats", "moves", "held"].map((name) => [
            name,
            checked(name, name === "held" ? { on_unhealthy: "hold" } : {}),
          ]),
        ),
        steered: room("/steered"),
        event: room("/event"),
        calm: room("/calm"),
      },
      vars: {
        WEBHOOK_SECRET,
        // A webhook for all rooms must not have to be asked for each.
        WEBHOOK_CROWD: hook("crowd"),
        WEBHOOK_FAILS: hook("fails"),
        WEBHOOK_AWAY: { url: away.url("/away"), rooms: ["away"] },
        WEBHOOK_HANGS: hook("hangs"),
        WEBHOOK_RESTARTS: hook("restarts"),
        WEBHOOK_GONE: hook("gone"),
        WEBHOOK_FULL: hook("full"),
        WEBHOOK_MOVES: hook("moves"),
        WEBHOOK_HELD: hook("held", { news: ["origin_unhealthy"] }),
        WEBHOOK_CALM: hook("calm"),
        WEBHOOK_STEERED: hook("steered"),
        WEBHOOK_EVENT: hook("event"),
        EVENT_SALE: {
          room: "event",
          event_start_time: new Date(eventStart).toISOString(),
          event_end_time: new Date(eventStart + 3_600_000).toISOString(),
          total_active_users: 7,
          new_users_per_minute: 5,
        },
        // Its address is a secret.
        WEBHOOK_CHATS: { rooms: ["chats"], format: "discord" },
        WEBHOOK_URL_CHATS: receiver.url("/chats"),
        WEBHOOK_UNSIGNED: hook("unsigned", { rooms: ["chats"] }),
        ...Object.fromEntries(
          [
            "FAILS",
            "AWAY",
            "HANGS",
            "RESTARTS",
            "GONE",
            "FULL",
            "MOVES",
            "HELD",
            "CALM",
            "STEERED",
            "EVENT",
          ].map((name) => [`WEBHOOK_SECRET_${name}`, SECRET]),
        ),
        WEBHOOK_SECRET_CROWD: `${SECRET} ${SECOND_SECRET}`,
      },
      colos: { AMS: 2 },
    });
  });
  after(async () => {
    await world.close();
    await receiver.close();
  });

  /** A check says how the origin is, as the platform does. */
  const says = async (check, status = "Unhealthy") => {
    const time = platformTime(Date.now());
    const body = JSON.stringify(notification({ name: check, health_check_id: check, status, time }));
    const headers = { "cf-webhook-auth": WEBHOOK_SECRET, "content-type": "application/json" };
    const answer = await world.send({ path: WEBHOOK, method: "POST", headers, body });
    assert.equal(answer.status, 200, answer.body);
  };
  const ask = (query, headers = { authorization: `Bearer ${ADMIN_TOKEN}` }) =>
    world.send({ path: `${NEWS}${query}`, headers });
  const news = async (name) => JSON.parse((await ask(`?room=${name}`)).body);
  /** How it stands with a room's first webhook. */
  const standing = async (name) => (await news(name)).webhooks[0];
  const summary = (messages) => messages.map(({ body }) => [body.type, body.data.check]);
  const delivered = (path, count, options = AGAIN) =>
    eventually(`${count} news for ${path}`, () => receiver.taken(path).length >= count, options);

  test("a crowd: the queue's beginning and end arrive, signed, and are in the log", async () => {
    const visitors = await letIn(world, 2, { path: "/crowd" });
    const waiting = world.visitor({ path: "/crowd" });
    await waiting.get();
    let waits = true;
    const refreshing = (async () => {
      while (waits) {
        await sleep(2_000);
        const { waiting: stillWaits } = await waiting.get();
        waits &&= stillWaits;
        // Whoever is in stays, so that the other waits.
        for (const visitor of visitors) await visitor.get();
      }
    })();
    await delivered("/crowd", 1);
    waits = false;
    await refreshing;
    await delivered("/crowd", 2, { within: 180_000, every: 1_000 });

    const messages = receiver.taken("/crowd");
    assert.deepEqual(
      messages.map(({ body }) => body.type),
      ["queueing_started", "queueing_ended"],
    );
    for (const { headers, text, body, id } of messages) {
      for (const secret of [SECRET, SECOND_SECRET])
        assert.deepEqual(new Webhook(secret).verify(text, headers), body);
      assert.throws(() => new Webhook(newSecret()).verify(text, headers));
      assert.throws(() => new Webhook(SECRET).verify(text.replace("crowd", "other"), headers));
      assert.equal(headers["content-type"], "application/json");
      assert.match(id, /^[\w-]+$/);
    }
    const [{ body: began }, { body: ended }] = messages;
    assert.match(began.text, /^Room crowd: visitors are waiting\. 2 of 2 users are active, /);
    assert.equal(began.data.room, "crowd");
    assert.equal(began.data.total_active_users, 2);
    assert.equal(began.data.url, "https://shop.test/__anteroom/#room=crowd");
    assert.match(
      ended.text,
      /^Room crowd: nobody waits any more\. Visitors waited for .*, up to 1 at a time\.$/,
    );

    const { room: name, news: log, webhooks } = await news("crowd");
    assert.equal(name, "crowd");
    assert.deepEqual(
      log.map(({ id, kind, text }) => [id, kind, text]),
      messages.map(({ id, body }) => [id, body.type, body.text]),
    );
    assert.ok(log[0].at < log[1].at);
    assert.equal(new Date(began.timestamp).getTime(), log[0].at);
    const [{ pending, problem, last_success_at, last_failure }] = webhooks;
    assert.deepEqual([pending, problem, last_failure], [0, null, null]);
    assert.ok(last_success_at >= log[1].at);
    const part = async (query) =>
      JSON.parse((await ask(`?room=crowd&${query}`)).body).news.map(({ id }) => id);
    assert.deepEqual(await part(`from=${log[0].at + 1}`), [log[1].id]);
    assert.deepEqual(await part(`to=${log[1].at - 1}`), [log[0].id]);
    assert.deepEqual(await part(`from=${new Date(log[1].at + 1000).toISOString()}`), []);
  });

  test("a receiver that fails gets everything when it works again: in order, with one id each", async () => {
    receiver.behave("/fails", 500);
    await says("fails");
    await says("fails-2");
    await eventually("two attempts", () => receiver.got("/fails").length >= 2, AGAIN);
    // The first holds up the second: order is kept.
    assert.equal(new Set(receiver.got("/fails").map(({ id }) => id)).size, 1);
    const { pending, last_failure, tries } = await standing("fails");
    assert.deepEqual([pending, last_failure], [2, "status 500"]);
    assert.ok(tries >= 2);
    receiver.behave("/fails");
    await delivered("/fails", 2);
    assert.deepEqual(summary(receiver.taken("/fails")), [
      ["origin_unhealthy", "fails"],
      ["origin_unhealthy", "fails-2"],
    ]);
    // Each attempt is signed for its own time.
    for (const { text, headers } of receiver.got("/fails")) new Webhook(SECRET).verify(text, headers);
    await says("fails", "Healthy");
    await delivered("/fails", 3, { within: 90_000 });
    assert.deepEqual(summary(receiver.taken("/fails")).at(-1), ["origin_healthy", "fails"]);
  });

  test("a receiver that is away gets everything when it is there", async () => {
    await says("away");
    await eventually("an attempt that failed", async () => (await standing("away")).last_failure, AGAIN);
    assert.match((await standing("away")).last_failure, /^no answer/);
    await comesBack();
    await away.open();
    try {
      await eventually("the news", () => away.taken("/away").length, AGAIN);
      assert.deepEqual(summary(away.taken("/away")), [["origin_unhealthy", "away"]]);
    } finally {
      await away.close();
    }
  });

  test("a receiver that hangs holds nothing up but its own news", async () => {
    receiver.behave("/hangs", "hang");
    await says("hangs");
    await eventually("an attempt", () => receiver.got("/hangs").length, AGAIN);
    // The object goes on: it takes reports, and finds more news.
    const [visitor] = await letIn(world, 1, { path: "/hangs" });
    assert.ok((await visitor.get()).fromOrigin);
    await says("hangs-2");
    await eventually("both are known", async () => (await news("hangs")).news.length === 2);
    await eventually(
      "the attempt is given up",
      async () => (await standing("hangs")).last_failure === "no answer within 10 seconds",
      AGAIN,
    );
    receiver.behave("/hangs");
    await delivered("/hangs", 2);
    assert.deepEqual(
      summary(receiver.taken("/hangs")).map(([, check]) => check),
      ["hangs", "hangs-2"],
    );
  });

  test("an object that vanishes between storing and sending, or while it sends, loses nothing", async () => {
    receiver.behave("/restarts", "hang");
    // Its alarm comes late, so that it vanishes before anything is sent.
    await world.fault("Global", "restarts", "late", 3_000);
    await says("restarts");
    await world.restart("Global", "restarts");
    await world.fault("Global", "restarts");
    await eventually("an attempt", () => receiver.got("/restarts").length, AGAIN);
    await world.restart("Global", "restarts");
    receiver.behave("/restarts");
    await delivered("/restarts", 1);
    assert.equal(new Set(receiver.got("/restarts").map(({ id }) => id)).size, 1);
    // The memory is there too: the same is no news once more.
    await world.restart("Global", "restarts");
    await says("restarts-2");
    await delivered("/restarts", 2);
    assert.deepEqual(
      (await news("restarts")).news.map(({ data }) => data.check),
      ["restarts", "restarts-2"],
    );
  });

  test("a receiver that is gone for good is left alone for a day", async () => {
    receiver.behave("/gone", 410);
    await says("gone");
    await eventually("an attempt", () => receiver.got("/gone").length, AGAIN);
    const { pending, last_failure, stopped_until, dropped } = await eventually("it is noted", async () => {
      const now = await standing("gone");
      return now.stopped_until && now;
    });
    assert.deepEqual([pending, last_failure, dropped], [0, "status 410", 1]);
    assert.ok(stopped_until > Date.now() + 23 * 3_600_000);
    receiver.behave("/gone");
    await says("gone-2");
    await eventually("it is in the log", async () => (await news("gone")).news.length === 2);
    assert.equal((await standing("gone")).pending, 0);
    // A day later.
    await world.rows("Global", "gone", "UPDATE news_webhooks SET gone = gone - 86400000 RETURNING gone");
    await world.restart("Global", "gone");
    await says("gone-2", "Healthy");
    await delivered("/gone", 1, { within: 90_000 });
    const [{ body }] = receiver.taken("/gone");
    assert.deepEqual([body.type, body.data.dropped], ["origin_healthy", 1]);
  });

  test("a redirect is not followed", async () => {
    receiver.behave("/moves", 302);
    await says("moves");
    await eventually(
      "it is noted",
      async () => (await standing("moves")).last_failure === "status 302",
      AGAIN,
    );
    assert.deepEqual(receiver.got("/elsewhere"), []);
    receiver.behave("/moves");
    await delivered("/moves", 1);
  });

  test("of too many that wait for a receiver the oldest are given up, and the next one says so", async () => {
    receiver.behave("/full", 503);
    await says("full");
    await eventually("an attempt", () => receiver.got("/full").length, AGAIN);
    const many = (table, columns) =>
      world.rows(
        "Global",
        "full",
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) INSERT INTO ${table} ${columns} RETURNING 1`,
      );
    const now = Date.now();
    await many("news", `SELECT ${now} + i, 'old-' || i, 'steered', 'x', '{}' FROM n`);
    await many(
      "news_pending",
      `(webhook, at, id, queued) SELECT 'full', ${now} + i, 'old-' || i, ${now} FROM n`,
    );
    // Its tables are read when it starts.
    await world.restart("Global", "full");
    await says("full-2");
    await eventually("it is in line", async () => (await standing("full")).pending === 200);
    assert.equal((await standing("full")).dropped, 52);
    receiver.behave("/full");
    await delivered("/full", 200, { within: 120_000 });
    const [first, second] = receiver.taken("/full");
    assert.equal(first.body.data.dropped, 52);
    assert.match(first.body.text, /\(52 older news could not be delivered and were given up\.\)$/);
    assert.equal(second.body.data.dropped, 0);
    assert.deepEqual(summary(receiver.taken("/full")).at(-1), ["origin_unhealthy", "full-2"]);
  });

  test("a chat gets its own body at a secret address; without a secret nothing is sent, and that is said", async () => {
    await says("chats");
    await delivered("/chats", 1);
    const [{ body, headers }] = receiver.taken("/chats");
    assert.deepEqual(body.allowed_mentions, { parse: [] });
    assert.equal(
      body.content,
      "Room chats: check chats says that the origin is unhealthy. New users enter as ever.",
    );
    assert.ok(!("webhook-signature" in headers));
    assert.deepEqual(receiver.got("/unsigned"), []);
    const { webhooks } = await news("chats");
    assert.deepEqual(
      webhooks.map(({ name, problem }) => [name, problem]),
      [
        ["chats", null],
        ["unsigned", "no valid secret or url"],
      ],
    );
    const { problems } = await world.status();
    assert.equal(problems.length, 1);
    assert.match(problems[0], /^webhook unsigned: the secret WEBHOOK_SECRET_UNSIGNED must be whsec_/);
  });

  test("only the kinds that are asked for are sent; the log has all", async () => {
    await says("held");
    await delivered("/held", 1);
    const [{ body }] = receiver.taken("/held");
    assert.match(body.text, /New users wait until it is healthy\.$/);
    assert.equal(body.data.held, true);
    await says("held", "Healthy");
    await eventually("it is in the log", async () => (await news("held")).news.length === 2, {
      within: 90_000,
    });
    assert.equal((await standing("held")).pending, 0);
    assert.equal(receiver.taken("/held").length, 1);
  });

  test("what operators change is told with who did", async () => {
    const steer = (set) =>
      world.send({
        path: "/__anteroom/steering?room=steered",
        method: "POST",
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify({ set }),
      });
    assert.equal((await steer({ new_users_per_minute: 500, queue_all: true })).status, 200);
    await delivered("/steered", 1);
    const [{ body }] = receiver.taken("/steered");
    assert.equal(body.type, "steered");
    assert.match(body.text, /^Room steered: admin set .*new_users_per_minute to 500 \(before: 1000\)/);
    assert.equal(body.data.by, "admin");
    assert.equal(body.data.changes.length, 2);
    // Nothing is told twice: that other limits are in force is no news of its own.
    assert.equal((await steer({ queue_all: false })).status, 200);
    await delivered("/steered", 2);
    assert.deepEqual(
      (await news("steered")).news.map(({ kind }) => kind),
      ["steered", "steered"],
    );
  });

  test("an event is told when it starts, though nobody is there any more", async () => {
    // Its only visitor came before.
    await letIn(world, 1, { path: "/event" });
    await delivered("/event", 1, { within: 120_000, every: 1_000 });
    const [{ body }] = receiver.taken("/event");
    assert.deepEqual([body.type, body.data.event], ["event_started", "sale"]);
    assert.equal(new Date(body.timestamp).getTime(), eventStart);
    assert.equal(body.data.total_active_users, 7);
  });

  test("a calm room has no news and nothing is sent", async () => {
    const [visitor] = await letIn(world, 1, { path: "/calm" });
    assert.ok((await visitor.get()).fromOrigin);
    await eventually("it is counted", async () => (await world.status("calm")).state.active === 1, AGAIN);
    assert.deepEqual((await news("calm")).news, []);
    assert.deepEqual(receiver.got("/calm"), []);
  });

  test("news are for operators, in words where the question is wrong", async () => {
    for (const headers of [{}, { authorization: "Bearer x" }])
      assert.equal((await ask("?room=crowd", headers)).status, 401);
    for (const [query, status, error] of [
      ["", 400, /room/],
      ["?room=nowhere", 404, /room/],
      ["?room=calm&from=yesterday", 400, /^from must be/],
      ["?room=calm&to=-1", 400, /^to must be/],
    ]) {
      const answer = await ask(query);
      assert.equal(answer.status, status, query);
      assert.match(JSON.parse(answer.body).error, error);
      assert.equal(answer.headers["cache-control"], "private, no-store");
    }
  });
});
