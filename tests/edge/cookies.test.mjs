// Cookies that are not what they should be: never an error, and never worth more than no cookie at all.
import assert from "node:assert/strict";
import { createCipheriv, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { KEY, letIn, MINUTE, newKey, openTicket, room, sealTicket, sleep, startWorld } from "./world.mjs";

const admitted = (more) => ({ acceptedAt: Date.now() - 1_000, lastCheckIn: Date.now() - 1_000, ...more });

describe("cookies in a room where nobody new may enter", { concurrency: true }, () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: {
        closed: room("/closed", { queue_all: true }),
        other: room("/other"),
        suffixed: room("/suffixed", { queue_all: true, cookie_suffix: "x" }),
      },
      colos: { AMS: 2 },
    });
  });
  after(() => world.close());

  const send = (value, path = "/closed", name = "__anteroom") =>
    world.send({ path, headers: { cookie: `basket=1; ${name}=${value}; seen=yes` } });

  /** The visitor is taken for a new one: a waiting page, and a ticket of its own. */
  async function isStranger(value, what, id) {
    const answer = await send(value);
    assert.equal(answer.status, 200, what);
    assert.ok(answer.waiting, what);
    const [, given] = /__anteroom=([^;]*)/.exec(answer.setCookie.join());
    const ticket = openTicket("closed", given);
    assert.equal(ticket.acceptedAt, undefined, what);
    assert.equal(ticket.bucket, Math.floor(ticket.lastCheckIn / MINUTE), what);
    if (id !== undefined) assert.notEqual(ticket.id, id, what);
  }

  test("an admitted visitor's ticket opens the room", async () => {
    assert.ok((await send(sealTicket("closed", admitted()))).fromOrigin);
    assert.ok((await send(`"${sealTicket("closed", admitted())}"`)).fromOrigin, "in quotes too");
    assert.ok((await send(sealTicket("suffixed", admitted()), "/suffixed", "__anteroom_x")).fromOrigin);
    assert.ok(
      (await send(sealTicket("suffixed", admitted()), "/suffixed")).waiting,
      "under its own name only",
    );
    const old = sealTicket("closed", admitted(), KEY, { version: 1 });
    assert.ok((await send(old)).fromOrigin, "sealed before the last change of the format");
  });

  test("tampered with: any bit", async () => {
    const sealed = Buffer.from(sealTicket("closed", admitted()), "base64url");
    for (let byte = 0; byte < sealed.length; byte += 1) {
      const changed = Buffer.from(sealed);
      changed[byte] ^= 1 << (byte % 8);
      await isStranger(changed.toString("base64url"), `byte ${byte}`);
    }
  });

  test("truncated, lengthened, otherwise spelled", async () => {
    const value = sealTicket("closed", admitted());
    for (let length = 0; length < value.length; length += 7)
      await isStranger(value.slice(0, length), `${length} left`);
    await isStranger(value.slice(1), "without its first letter");
    await isStranger(`${value}A`, "a letter more");
    await isStranger(`${value}${value}`, "twice");
    await isStranger(`${value}==`, "padded");
    await isStranger(` ${value.slice(0, 40)} ${value.slice(40)}`, "with a space in it");
    await isStranger(value.toUpperCase(), "in capitals");
    await isStranger(encodeURIComponent(`${value}%`), "percent-encoded");
  });

  test("of another room, by another key, of another version", async () => {
    await isStranger(sealTicket("other", admitted()), "another room's");
    await isStranger(sealTicket("Closed", admitted()), "another spelling of the room");
    await isStranger(sealTicket("closed", admitted(), newKey()), "another key's");
    const nonce = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", Buffer.from(KEY, "base64"), nonce);
    cipher.setAAD(Buffer.from("\u0003closed"));
    const parts = [Buffer.of(3), nonce, cipher.update(Buffer.alloc(36)), cipher.final(), cipher.getAuthTag()];
    await isStranger(Buffer.concat(parts).toString("base64url"), "version 3");
    const visitor = world.visitor({ path: "/other" });
    await visitor.get();
    await isStranger(visitor.ticket(), "really given by another room");
  });

  test("garbage", async () => {
    const garbage = [
      "",
      "=",
      "==",
      "x",
      "null",
      "%00",
      "\u00ff\u00fe",
      "A".repeat(78),
      "A".repeat(87),
      "{}",
      "=;=;",
      ",",
      "'",
      "\\",
    ];
    for (const value of garbage) await isStranger(value, JSON.stringify(value));
    for (let i = 0; i < 50; i += 1) await isStranger(randomBytes(65).toString("base64url"), "random");
    for (const cookie of ["", ";", "=;=", ";;;;__anteroom", "__anteroom", "__anteroom=", "a=b;__anteroom"]) {
      const answer = await world.send({ path: "/closed", headers: { cookie } });
      assert.ok(answer.waiting, cookie);
    }
  });

  test("more cookies than anybody has", async () => {
    const ticket = sealTicket("closed", admitted());
    const much = `filler=${"x".repeat(100_000)}`;
    const few = (cookie) => world.send({ path: "/closed", headers: { cookie } });
    assert.ok((await few(`__anteroom=${"A".repeat(100_000)}`)).waiting);
    assert.ok((await few(`${much}; __anteroom=${ticket}`)).waiting, "nobody looks that far");
    assert.ok((await few(`__anteroom=${ticket}; ${much}`)).fromOrigin);
    const many = Array.from({ length: 1_000 }, () => `__anteroom=${sealTicket("other", admitted())}`).join(
      "; ",
    );
    assert.ok((await few(many)).waiting);
    assert.ok((await few(`${many.slice(0, 60_000)}; __anteroom=${ticket}`)).waiting, "nor through that many");
    assert.ok((await few(`a=${"é".repeat(40_000)}; __anteroom=${ticket}`.replaceAll("é", "\u00e9"))).waiting);
  });

  test("expired: a new visitor, whatever was replayed", async () => {
    const session = MINUTE;
    const past = (ms) => ({ id: 7n, acceptedAt: Date.now() - ms, lastCheckIn: Date.now() - ms });
    assert.ok((await send(sealTicket("closed", past(session - 5_000)))).fromOrigin);
    await isStranger(sealTicket("closed", past(session + 10)), "a moment too old", 7n);
    await isStranger(sealTicket("closed", past(24 * 60 * MINUTE)), "a day too old", 7n);
    await isStranger(
      sealTicket("closed", { id: 7n, lastCheckIn: Date.now() - 301_000 }),
      "a place given up",
      7n,
    );
    const old = { id: 7n, bucket: Math.floor(Date.now() / MINUTE) - 24 * 60 - 2 };
    await isStranger(sealTicket("closed", old), "waited for longer than a day", 7n);
  });

  test("from the future: a few seconds are a clock's error, more is no ticket", async () => {
    const ahead = (ms) => ({ id: 7n, acceptedAt: Date.now() + ms, lastCheckIn: Date.now() + ms });
    assert.ok((await send(sealTicket("closed", ahead(5_000)))).fromOrigin);
    await isStranger(sealTicket("closed", ahead(30_000)), "half a minute ahead", 7n);
    await isStranger(sealTicket("closed", ahead(2 ** 50)), "the far future", 7n);
    const bucket = { id: 7n, bucket: Math.floor(Date.now() / MINUTE) + 5 };
    await isStranger(sealTicket("closed", bucket), "a bucket that has not begun", 7n);
    await isStranger(
      sealTicket("closed", { id: 7n, acceptedAt: Date.now() + 1_000 }),
      "admitted after it came",
      7n,
    );
  });
});

describe("keys that are replaced", () => {
  const [first, second, third] = [newKey(), newKey(), newKey()];
  const rooms = { full: room("/", { total_active_users: 1, session_duration: 30 }) };
  let world;
  before(async () => {
    world = await startWorld({ rooms, vars: { COOKIE_KEYS: first }, colos: { AMS: 1 } });
  });
  after(() => world.close());

  test("whoever is in stays in, whoever waits keeps the place, until the old key is removed", async () => {
    const [inside] = await letIn(world, 1);
    const waiting = world.visitor();
    assert.ok((await waiting.get()).waiting);
    const { id, bucket } = openTicket("full", waiting.ticket(), first);
    const [oldInside, oldWaiting] = [inside.ticket(), waiting.ticket()];
    // Reports reach the objects before the deploy.
    await sleep(4_000);

    await world.deploy({ rooms, vars: { COOKIE_KEYS: `${second},${first}` } });
    assert.ok((await inside.get()).fromOrigin);
    assert.ok((await waiting.get()).waiting);
    const resealed = openTicket("full", waiting.ticket(), second);
    assert.deepEqual([resealed.id, resealed.bucket], [id, bucket], "the place, sealed by the new key");
    assert.ok((await world.visitor().get()).waiting, "the room is still full after the deploy");

    await world.deploy({ rooms, vars: { COOKIE_KEYS: `${third}, ${second} ,` } });
    assert.ok((await inside.get()).fromOrigin, "broken keys let everybody through");
    assert.match((await world.status()).problems.join(), /COOKIE_KEYS: key 3 is empty/);

    await world.deploy({ rooms, vars: { COOKIE_KEYS: `${third},${second}` } });
    assert.ok((await waiting.get()).waiting);
    assert.equal(openTicket("full", waiting.ticket(), third).id, id);
    for (const old of [oldInside, oldWaiting]) {
      const stranger = world.visitor();
      stranger.setTicket(old);
      assert.ok((await stranger.get()).waiting, "sealed by a key that is gone");
      const ticket = openTicket("full", stranger.ticket(), third);
      assert.notEqual(ticket.id, id);
      assert.equal(ticket.acceptedAt, undefined);
    }
  });
});
