// What goes past a room: by its owner's rules, or as a search engine's crawler.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { room, startWorld } from "./world.mjs";

const COLO = "AMS";

describe("past the room", { concurrency: true }, () => {
  let world;
  before(async () => {
    const closed = { queue_all: true };
    world = await startWorld({
      rooms: {
        paths: room("/paths", {
          ...closed,
          bypass_rules: [
            'starts_with(http.request.uri.path, "/paths/bypassme") or ends_with(http.request.uri.path, ".js")',
            { expression: 'http.request.uri.query eq "off"', enabled: false },
          ],
        }),
        asked: room("/asked", {
          ...closed,
          bypass_rules: [
            "ip.src in {192.0.2.0/24 2001:db8::/32}",
            'ip.src.country eq "NL" and ip.src.asnum eq 64500 and ip.src.continent eq "EU"',
            'http.request.headers["X-Team"] eq "blue" and http.request.method eq "POST"',
            'http.request.cookies["staff"] eq "1" and http.host eq "shop.test"',
            'cf.verified_bot_category eq "Page Preview"',
          ],
        }),
        small: room("/small", { total_active_users: 1, bypass_rules: ['http.request.uri.query eq "free"'] }),
        open: room("/open", { ...closed, bypass_rules: ["http.hots eq 1"] }),
      },
      vars: { SEARCH_ENGINE_CRAWLER_BYPASS: "true" },
    });
  });
  after(() => world.close());

  const answers = (options) => world.send(options);
  const isPast = async (options) => {
    const answer = await answers(options);
    assert.ok(answer.fromOrigin, JSON.stringify(options));
    assert.deepEqual(answer.setCookie, []);
  };
  const isHeld = async (options) => {
    const answer = await answers(options);
    assert.ok(answer.waiting, JSON.stringify(options));
    assert.match(answer.setCookie[0], /^__anteroom=/);
  };

  test("go the paths that a rule names, even while all are queued, and no others", async () => {
    for (const path of ["/paths/bypassme/x", "/paths/app.js?v=1"]) await isPast({ path });
    for (const path of ["/paths", "/paths/x;a.js", "/paths/bypassme/..%2fx", "/paths?off"])
      await isHeld({ path });
  });

  test("go requests by what the platform knows of them", async () => {
    const path = "/asked";
    const from = (address) => ({ path, headers: { "cf-connecting-ip": address } });
    for (const address of ["192.0.2.9", "2001:db8::9"]) await isPast(from(address));
    for (const address of ["192.0.3.9", "2001:db9::9", "x"]) await isHeld(from(address));
    const there = { colo: COLO, country: "NL", continent: "EU", asn: 64500 };
    await isPast({ path, cf: there });
    await isHeld({ path, cf: { ...there, asn: 64501 } });
    await isPast({ path, cf: { colo: COLO, verifiedBotCategory: "Page Preview" } });
    await isHeld({ path, cf: null });
  });

  test("go requests by what their client says", async () => {
    const path = "/asked";
    await isPast({ path, method: "POST", headers: { "x-team": "blue" } });
    await isHeld({ path, headers: { "x-team": "blue" } });
    const staff = await world.send({ path, headers: { cookie: "a=b; staff=1" } });
    assert.ok(staff.fromOrigin);
  });

  test("go search engines' crawlers, if they are verified", async () => {
    const bot = (more) => ({ path: "/paths", cf: { colo: COLO, ...more } });
    await isPast(bot({ verifiedBotCategory: "Search Engine Crawler" }));
    await isPast(bot({ botManagement: { verifiedBot: true } }));
    await isHeld(bot({ verifiedBotCategory: "AI Crawler", botManagement: { verifiedBot: true } }));
    await isHeld({ path: "/paths", headers: { "user-agent": "Googlebot/2.1" } });
  });

  test("goes nobody who is counted", async () => {
    for (let count = 0; count < 5; count++) await isPast({ path: "/small?free" });
    const first = await answers({ path: "/small" });
    assert.ok(first.fromOrigin, "the only place is still free");
    assert.match(first.setCookie[0], /^__anteroom=/);
    await isPast({ path: "/small?free" });
    await isHeld({ path: "/small" });
  });

  test("go all requests of a room with a broken rule, which the log tells", async () => {
    await isPast({ path: "/open" });
    assert.match(world.log.join(""), /room open: bypass_rules .*column \d+: .*Fix: /);
  });
});
