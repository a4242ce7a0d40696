// A push message to a visitor who has closed the page: in real workerd, with a push service of ours in place of the
// browser's. Other code than the Worker's verifies who sends (jose) and decrypts what (http_ece).
import assert from "node:assert/strict";
import { createECDH, generateKeyPairSync, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import ece from "http_ece";
import { importJWK, jwtVerify } from "jose";

import { eventually, HOST, letIn, MINUTE, openTicket, room, sleep, startWorld } from "./world.mjs";

const KEYS = generateKeyPairSync("ec", { namedCurve: "P-256" });
const PUBLIC = KEYS.publicKey.export({ format: "jwk" });
const SUBJECT = "mailto:owner@shop.test";
const SERVICE = "push.test";
const PUSH_TYPE = "application/x-anteroom-push";
const VARS = {
  VAPID_PRIVATE_KEY: JSON.stringify(KEYS.privateKey.export({ format: "jwk" })),
  VAPID_SUBJECT: SUBJECT,
  PUSH_SERVICES: SERVICE,
};

/** A browser: its keys, and what its page sends. */
class Browser {
  ecdh = createECDH("prime256v1");
  auth = randomBytes(16);

  constructor() {
    this.ecdh.generateKeys();
  }

  subscription(endpoint = `https://${SERVICE}/mine`) {
    const keys = { p256dh: this.ecdh.getPublicKey("base64url"), auth: this.auth.toString("base64url") };
    return JSON.stringify({ endpoint, expirationTime: null, keys });
  }

  read(body) {
    return JSON.parse(
      ece.decrypt(body, { version: "aes128gcm", privateKey: this.ecdh, authSecret: this.auth }).toString(),
    );
  }
}

/** The browser's push service: what it was sent, and how it answers, 201 unless told otherwise. */
class PushService {
  got = [];
  moods = [];

  answer = async (request) => {
    const status = this.moods.shift() ?? 201;
    this.got.push({
      url: request.url,
      method: request.method,
      headers: Object.fromEntries(request.headers),
      body: Buffer.from(await request.arrayBuffer()),
      status,
    });
    return new Response(null, { status, headers: status === 302 ? { location: "https://evil.test/" } : {} });
  };
}

const subscribe = (visitor, body, headers = {}) =>
  visitor.get("/", { method: "POST", headers: { "content-type": PUSH_TYPE, ...headers }, body });

describe("push messages", { concurrency: false }, () => {
  const service = new PushService();
  const browser = new Browser();
  let world;
  let visitor;
  before(async () => {
    world = await startWorld({
      rooms: { shop: room("/", { host: HOST, total_active_users: 1 }) },
      vars: VARS,
      outbound: service.answer,
    });
    await letIn(world, 1);
    visitor = world.visitor();
  });
  after(() => world.close());

  test("the page has the owner's public key and may run the service worker, which is there", async () => {
    const page = await visitor.get();
    const { x, y } = PUBLIC;
    const point = Buffer.concat([Buffer.of(4), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
    assert.ok(page.body.includes(`&quot;push&quot;:&quot;${point.toString("base64url")}`));
    assert.match(page.headers["content-security-policy"], /worker-src 'self'/);
    const worker = await world.visitor().get("/__anteroom/push.js");
    assert.equal(worker.status, 200);
    assert.match(worker.headers["content-type"], /^text\/javascript/);
    assert.match(worker.body, /showNotification/);
    assert.doesNotMatch(worker.body, /"fetch"/, "it answers no request");
    const { d } = KEYS.privateKey.export({ format: "jwk" });
    assert.ok(!page.body.includes(d) && !worker.body.includes(d));
  });

  test("an address that is of no push service, or comes from a foreign page, is refused", async () => {
    for (const endpoint of [`http://${SERVICE}/x`, "https://127.0.0.1/x", `https://${SERVICE}.evil.test/x`])
      assert.equal((await subscribe(visitor, browser.subscription(endpoint))).status, 400, endpoint);
    assert.equal((await subscribe(visitor, "{")).status, 400);
    const foreign = await subscribe(visitor, browser.subscription(), { origin: "https://evil.test" });
    assert.equal(foreign.status, 403);
    assert.deepEqual(foreign.setCookie, []);
  });

  test("who does not wait has nothing to be told", async () => {
    const answer = await subscribe(world.visitor(), browser.subscription());
    assert.equal(answer.status, 409);
  });

  test("a visitor with a closed page keeps the place, and is told when the turn is near", async () => {
    const ticket = openTicket("shop", visitor.ticket());
    assert.equal(ticket.subscribed, false);
    const language = { "accept-language": "de-AT, en;q=0.5" };
    const answer = await subscribe(visitor, browser.subscription(), language);
    assert.equal(answer.status, 204);
    assert.match(answer.setCookie.join(), /Max-Age=86[34]\d\d;/);
    const kept = openTicket("shop", visitor.ticket());
    assert.deepEqual(kept, { ...ticket, subscribed: true });

    // Busy at first: it is sent again.
    service.moods = [503, 429];
    await eventually("told", () => service.got.some(({ status }) => status === 201));
    assert.deepEqual(
      service.got.map(({ status }) => status),
      [503, 429, 201],
    );
    for (const { url, method, headers, body } of service.got) {
      assert.deepEqual([url, method], [`https://${SERVICE}/mine`, "POST"]);
      assert.equal(headers["content-encoding"], "aes128gcm");
      assert.equal(headers.ttl, "3600");
      assert.equal(headers.urgency, "high");
      assert.equal(
        headers.topic,
        kept.id.toString(16).padStart(16, "0"),
        "it replaces one not yet delivered",
      );
      const [, token, key] = /^vapid t=([^,]+), k=(.+)$/.exec(headers.authorization);
      const { payload } = await jwtVerify(token, await importJWK(PUBLIC, "ES256"), {
        audience: `https://${SERVICE}`,
        subject: SUBJECT,
        currentDate: new Date(),
      });
      assert.ok(payload.exp * 1000 - Date.now() <= 24 * 60 * MINUTE);
      assert.equal(Buffer.from(key, "base64url").length, 65);
      assert.deepEqual(browser.read(body), {
        title: "Sie sind bald an der Reihe",
        body: "Öffnen Sie die Seite: Sie lässt Sie ein, wenn Sie an der Reihe sind.",
        url: `http://${HOST}/`,
        lang: "de-DE",
        dir: "ltr",
      });
    }
  });

  test("once, and the place is still there long after it would have been lost", async () => {
    await sleep(10 * MINUTE);
    assert.equal(service.got.filter(({ status }) => status === 201).length, 1);
    const { bucket, id } = openTicket("shop", visitor.ticket());
    assert.ok((await visitor.get()).fromOrigin);
    const entered = openTicket("shop", visitor.ticket());
    assert.deepEqual(
      [entered.id, entered.bucket, entered.subscribed],
      [id, bucket, false],
      "the same ticket, with nothing more to be told",
    );
  });

  test("a place that may move to another device is kept for as long as moves are remembered, so nobody is told", async () => {
    const moving = { host: HOST, queue_all: true, continue_on_another_device: true };
    await world.deploy({ rooms: { shop: room("/", moving) }, vars: VARS });
    const other = world.visitor();
    const page = await other.get();
    assert.ok(page.waiting);
    assert.doesNotMatch(page.body, /&quot;push&quot;/);
    assert.equal((await subscribe(other, browser.subscription())).status, 409);
  });

  test("without keys there is nothing of it", async () => {
    await world.deploy({ rooms: { shop: room("/", { host: HOST, queue_all: true }) } });
    const other = world.visitor();
    const page = await other.get();
    assert.ok(page.waiting);
    assert.doesNotMatch(page.body, /&quot;push&quot;/);
    assert.doesNotMatch(page.headers["content-security-policy"], /worker-src/);
    assert.equal((await other.get("/__anteroom/push.js")).status, 404);
    assert.equal((await subscribe(other, browser.subscription())).status, 404);
  });
});
