// Pages and JSON as the Worker gives them. What they say is tested in tests/page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import Ajv from "ajv";
import { eventually, letIn, openTicket, room, sealTicket, sleep, startWorld } from "./world.mjs";

const MINUTE = 60_000;
const schema = JSON.parse(
  readFileSync(new URL("../../docs/cf-waiting-room.schema.json", import.meta.url), "utf8"),
);
const isAsTheSchemaSays = new Ajv({ allowUnionTypes: true }).compile(schema);

describe("page", { concurrency: true }, () => {
  let world;
  before(async () => {
    const closed = (path, more) => room(path, { queue_all: true, ...more });
    world = await startWorld({
      rooms: {
        plain: closed("/plain", { queueing_status_code: 202 }),
        german: closed("/german", { default_template_language: "de-DE", visitor_languages: false }),
        own: closed("/own", { custom_page_html: "example", message: "Bring a <coat> & a scarf." }),
        none: closed("/none", { custom_page_html: "nowhere" }),
        pages: closed("/pages", { json_response: "off", json_response_enabled: true }),
        line: room("/line", { total_active_users: 1, refresh_interval_seconds: 5 }),
        quiet: room("/quiet", { total_active_users: 1, show_position: false, show_wait: false }),
      },
    });
  });
  after(() => world.close());

  test("the visitor's language, the owner's, or English", async () => {
    const lang = async (path, accepted) => {
      const headers = accepted ? { "accept-language": accepted } : {};
      const { body, headers: got } = await world.send({ path, headers });
      const [, tag] = /<html lang="([^"]+)"/.exec(body);
      assert.equal(got["content-language"], tag);
      return tag;
    };
    assert.equal(await lang("/plain"), "en-US");
    assert.equal(await lang("/plain", "ar;q=0.9, xx"), "ar-EG");
    assert.equal(await lang("/plain", "zh-HK"), "zh-TW");
    assert.equal(await lang("/german", "ar"), "de-DE");
    const { body } = await world.send({ path: "/plain", headers: { "accept-language": "he" } });
    assert.match(body, /dir="rtl"/);
  });

  test("an owner's template, with the owner's message escaped", async () => {
    const { body, headers, refresh, status } = await world.send({ path: "/own/x" });
    assert.equal(status, 200);
    assert.match(body, /<b>Bring a &lt;coat&gt; &amp; a scarf\.<\/b>/);
    assert.match(body, /nobody is let in right now/);
    assert.equal(refresh.url, "./x");
    assert.match(headers["content-security-policy"], /^object-src 'none'/);
    assert.match((await world.send({ path: "/none" })).body, /<main id="room"/, "no such template");
  });

  test("programs get JSON as the schema says, by their own ways of asking", async () => {
    for (const headers of [
      { accept: "application/json" },
      { accept: "*/*", "sec-fetch-dest": "empty" },
      { accept: "*/*", "x-requested-with": "XMLHttpRequest" },
      { accept: "text/html;q=0.1, application/vnd.api+json" },
    ]) {
      const answer = await world.send({ path: "/plain/api", headers });
      assert.equal(answer.status, 202);
      assert.equal(answer.headers["content-type"], "application/json");
      assert.ok(answer.headers["retry-after"] > 0);
      assert.equal(answer.setCookie.length, 1);
      const json = JSON.parse(answer.body);
      assert.ok(isAsTheSchemaSays(json), JSON.stringify(isAsTheSchemaSays.errors));
      assert.equal(json.cfWaitingRoom.queueAll, true);
      assert.equal(json.anteroom.room, "plain");
      assert.ok(Math.abs(Date.parse(json.cfWaitingRoom.lastUpdated) - Date.now()) < 30_000);
    }
  });

  test("the owner may want pages only, but for who asks for nothing but JSON", async () => {
    const type = async (accept) =>
      (await world.send({ path: "/pages", headers: { accept } })).headers["content-type"];
    assert.equal(await type("application/json, */*"), "text/html; charset=utf-8");
    assert.equal(await type("application/json"), "application/json");
  });

  test("the script of another site's page may read the answer, with its cookies", async () => {
    const headers = { accept: "*/*", "sec-fetch-dest": "empty", origin: "https://app.test" };
    const answer = await world.send({ path: "/plain", headers });
    assert.equal(answer.headers["access-control-allow-origin"], "https://app.test");
    assert.equal(answer.headers["access-control-allow-credentials"], "true");
  });

  test("HEAD gets no body", async () => {
    const answer = await world.send({ path: "/plain", method: "HEAD" });
    assert.ok(answer.waiting);
    assert.equal(answer.body, "");
    assert.ok(answer.refresh.seconds > 0);
  });

  test("progress goes forward only, and the ticket remembers it", async () => {
    await letIn(world, 1, { path: "/line" });
    const bucket = Math.floor(Date.now() / MINUTE) - 2;
    const older = Array.from({ length: 4 }, (_, number) => {
      const visitor = world.visitor({ path: `/line/${number}` });
      visitor.setTicket(sealTicket("line", { bucket: bucket - 1, lastCheckIn: Date.now() - 10_000 }), {
        path: "/line",
      });
      return visitor;
    });
    await Promise.all(older.map((visitor) => visitor.get()));
    const visitor = world.visitor({ path: "/line/me" });
    visitor.setTicket(sealTicket("line", { bucket, lastCheckIn: Date.now() - 10_000 }), { path: "/line" });
    await eventually("four are ahead", async () => (await visitor.ask()).json.peopleAhead === 4, {
      every: 1_000,
    });
    const { progress } = (await visitor.ask()).json;
    assert.equal(progress, 0);
    // The others stay away, and are not counted any more.
    let last = progress;
    await eventually(
      "nobody is ahead",
      async () => {
        const { json } = await visitor.ask();
        if (json.admitted) return true;
        assert.ok(json.progress >= last, `from ${last} to ${json.progress}`);
        last = json.progress;
        return json.peopleAhead === 0;
      },
      { within: 60_000, every: 2_000 },
    );
    assert.ok(last >= 75, `${last} %`);
    // They are back, and ahead again.
    await Promise.all(older.map((other) => other.get()));
    await sleep(6_000);
    const again = (await visitor.ask()).json;
    assert.ok(again.admitted || again.progress >= last, "what was shown does not go back");
  });

  test("what the owner hides is not told", async () => {
    await letIn(world, 1, { path: "/quiet" });
    const visitor = world.visitor({ path: "/quiet/x" });
    assert.doesNotMatch((await visitor.get()).body, /Estimated wait|ahead of you\./);
    await sleep(2_000);
    const { json } = await visitor.ask();
    assert.deepEqual([json.peopleAhead, json.waitSeconds, json.waitText], [null, null, ""]);
    assert.ok(openTicket("quiet", visitor.ticket()).id);
  });
});
