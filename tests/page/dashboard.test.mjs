// What the dashboard makes of a room's figures, before anything is drawn.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createDashboard } from "../../src/edge/dashboard.js";
import { createWaitingRoom } from "../../src/edge/page/answer.js";
import { createLanguages } from "../../src/edge/page/languages.js";
import { marksOf } from "../../static/dashboard/marks.js";
import { bounds, moved, RANGES, readPlace, writePlace } from "../../static/dashboard/place.js";
import { addMoment, columns, momentOf, observed, recorded, summary } from "../../static/dashboard/series.js";
import { sentence } from "../../static/dashboard/unread.js";
import { change, duration, situation } from "../../static/dashboard/words.js";
import { readDashboard } from "../../tools/dashboard/assets.mjs";
import { makeRooms } from "../../tools/dashboard/rooms.mjs";
import { pages } from "./page.mjs";

const MINUTE = 60_000;
const NOON = Date.UTC(2026, 6, 1, 12);

describe("the dashboard's address", () => {
  test("keeps room and range, and takes anything for an address", () => {
    for (const range of [{ name: "15m" }, { name: "1h" }, { name: "30d" }, { from: NOON, to: NOON + MINUTE }])
      assert.deepEqual(readPlace(writePlace({ room: "shop & co", range })), { room: "shop & co", range });
    for (const hash of [
      "",
      "#",
      "#range=toString",
      "#from=x&to=y",
      "#from=2026-07-01T12:00Z&to=2026-07-01T11:00Z",
    ])
      assert.deepEqual(readPlace(hash), { room: "", range: { name: "1h" } });
  });

  test("zooms around the middle, and never into the future or into nothing", () => {
    const [hour] = RANGES["1h"];
    assert.deepEqual(bounds({ name: "1h" }, NOON), { from: NOON - hour, to: NOON });
    assert.deepEqual(moved({ from: 0, to: hour }, NOON, 0.5, 0), { from: hour / 4, to: (3 * hour) / 4 });
    assert.equal(moved({ name: "1h" }, NOON, 2, 1).to, NOON);
    const small = moved({ from: 0, to: MINUTE }, NOON, 0.5, 0);
    assert.equal(small.to - small.from, MINUTE);
  });
});

describe("the dashboard's charts", () => {
  const history = (rows, resolution = "minute") =>
    recorded({
      resolution,
      fields: [
        "active_users",
        "total_active_users",
        "slots",
        "waiting_users",
        "new_users",
        "new_users_per_minute",
      ],
      rows,
    });
  const room = (active, newNow = 0, newBefore = 0) => ({
    estimated_total_active_users: active,
    estimated_queued_users: 0,
    slots: 0,
    limits: { total_active_users: 100, new_users_per_minute: 60 },
    new_users_this_minute: newNow,
    new_users_last_minute: newBefore,
  });

  test("go on after the recorded minutes with the moments that were heard, in order and each once", () => {
    const rows = history([
      [NOON, 10, 100, 90, 0, 5, 60],
      [NOON + MINUTE, 20, 100, 80, 0, 6, 60],
      [NOON + 2 * MINUTE, 25, 100, 75, 0, 1, 60],
    ]);
    const moments = [];
    for (const second of [110, 112, 112, 111, 114])
      addMoment(moments, momentOf(room(second, 3, 7), NOON + second * 1000));
    const { levels, rates } = columns(rows, moments, NOON + MINUTE);
    const seconds = levels[0].map((time) => time - NOON / 1000);
    assert.deepEqual(seconds, [30, 110, 112, 114, 150]);
    assert.deepEqual(levels[1], [10, 110, 112, 114, 25]);
    // The running minute and what is not settled are told by the latest moment.
    assert.deepEqual(rates[1], [5, 3, 1]);
  });

  test("break the line where nothing was heard and nothing is recorded", () => {
    const moments = [];
    for (const second of [0, 2, 60, 62]) addMoment(moments, momentOf(room(second), NOON + second * 1000));
    assert.deepEqual(columns([], moments, 0).levels[1], [0, 2, null, 60, 62]);
  });

  test("show new users per minute also by the hour, and say what they show", () => {
    const rows = history(
      [
        [NOON, 10, 100, 90, 4, 600, 60],
        [NOON + 60 * MINUTE, null, null, null, null, null, null],
      ],
      "hour",
    );
    const data = columns(rows, [], 0);
    assert.deepEqual(data.rates[1], [10, null]);
    assert.equal(
      summary(data, String),
      "Active users: 10, limit 100. Up to 4 waited, at the end 4. New users per minute: up to 10, limit 60.",
    );
    assert.equal(summary(columns([], [], 0), String), "Nothing is recorded of this time.");
  });

  test("say of a room that only observed who would have waited, and with which limits nobody", () => {
    const fields = ["active_users_max", "waiting_users_max", "observed_joins", "newcomers"];
    const minutes = (...rows) =>
      recorded({ fields, resolution: "minute", rows: rows.map((row, at) => [NOON + at * MINUTE, ...row]) });
    assert.equal(
      observed(
        minutes([90, 0, 0, 30], [100, 40, 25, 70], [100, 60, 20, 50], [null, null, null, null]),
        String,
      ),
      "The room only observed: 45 would have waited. With about 160 active users and 70 new users per minute nobody would have.",
    );
    assert.equal(observed(minutes([100, 40, 0, 70]), String), "", "a room that was on");
  });

  test("mark each happening once: the log of changes says what news only hint at", () => {
    const at = NOON + MINUTE;
    const steered = { id: 1, at, by: "anna", kind: "set", field: "queue_all", before: false, after: true };
    const news = [
      { id: "a", at, kind: "steered", text: "steered" },
      { id: "b", at: at + 1, kind: "limit_exceeded", text: "too many" },
      { id: "c", at: NOON - 1, kind: "wait_above", text: "before it" },
    ];
    const rows = [0, 1, 3].map((minute) => ({
      at: NOON + minute * MINUTE,
      step: MINUTE,
      rehearsal_new_users: 1,
    }));
    const range = { from: NOON, to: NOON + 10 * MINUTE };
    const marks = marksOf({ news, audit: [steered], events: [], rows, ...range });
    assert.deepEqual(
      marks.map(({ letter, text }) => `${letter} ${text}`),
      [
        "R A rehearsal's visitors came for 2 min",
        "S anna set Queue everybody to on, it was off",
        "! too many",
        "R A rehearsal's visitors came for 1 min",
      ],
    );
    const alone = marksOf({ news, audit: [], events: [], rows: [], ...range });
    assert.deepEqual(
      alone.map(({ letter }) => letter),
      ["S", "!"],
    );
  });
});

describe("the dashboard's words", () => {
  test("tell each state of a room apart, by word and tone", () => {
    const now = Date.now();
    const found = [...makeRooms(now)].map(([name, room]) => {
      const { tone, word } = situation(room.status(now), now);
      return [name, `${tone}: ${word}`];
    });
    assert.deepEqual(Object.fromEntries(found), {
      sale: "queueing: Queueing",
      quiet: "open: Open",
      observing: "off: Observes",
      closed: "shut: Shut",
      deployed: "open: Open",
      unhealthy: "shut: Held",
      event: "event: Before an event",
      planet: "queueing: Queueing",
      silent: "silent: Silent",
      unreachable: "bad: No answer",
    });
    const room = { ...makeRooms(now).get("closed").status(now), suspended: true };
    assert.equal(situation(room, now).word, "Suspended", "a room that is off queues nobody");
    const closed = makeRooms(now).get("closed").status(now);
    const { sentence, why } = situation({ ...closed, observing: true, enforce_share: 0.05 }, now);
    assert.match(sentence, /would wait$/, "a room that observes holds nobody back, whatever was ordered");
    assert.match(why, /but for 5 % of the visitors/);
  });

  test("tell what cannot be read, what is in force instead, and what to do", () => {
    assert.equal(
      sentence({ names: ["queue_all", "events.sale"], effect: "closed" }),
      "This version cannot read what is stored here: queue_all, events.sale. Nobody new enters. Deploy the version that stored it, or clear it.",
    );
  });

  test("tell how long in few letters", () => {
    const told = [0, 59_400, 59_600, 3_599_000, 3_600_000, 4_800_000, 50 * 3_600_000].map(duration);
    assert.deepEqual(told, ["0 s", "59 s", "1 min", "1 h", "1 h", "1 h 20 min", "2 days"]);
  });

  test("tell what was done to an event", () => {
    const [planned, started, ended] = [
      { start: 10, end: 20 },
      { start: 5, end: 20 },
      { start: 5, end: 15 },
    ];
    const told = (before, after) =>
      change({ by: "anna", kind: "event", field: "events.drop", before, after, deployed: planned });
    assert.equal(told(planned, started), "anna started event drop");
    assert.equal(told(started, ended), "anna ended event drop");
    assert.equal(told(ended, planned), "anna put event drop back on its schedule");
    assert.equal(told(null, null), "anna put event drop back on its schedule");
  });
});

describe("the dashboard's pages", async () => {
  const dashboard = createDashboard(
    await readDashboard(),
    createWaitingRoom(pages),
    createLanguages(pages.languages),
  );

  test("run and style by nothing but their own files, nobody may frame or store them, and names are only names", async () => {
    const name = `"><script>alert(1)</script>`;
    const status = JSON.stringify({ problems: [name], rooms: [{ name, status: "queueing", limits: {} }] });
    const request = new Request("https://shop.example.com/__anteroom/");
    for (const page of [dashboard.page(name, "view", status), dashboard.signIn(true, request)]) {
      const policy = page.headers.get("content-security-policy");
      assert.doesNotMatch(policy, /unsafe|\*|https?:/);
      for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"])
        assert.ok(policy.includes(part), part);
      assert.equal(page.headers.get("cache-control"), "private, no-store");
      const body = await page.text();
      assert.equal(body.includes("alert(1)"), page.status === 200);
      assert.ok(!body.includes("<script>alert"));
      const [, nonce] = /script-src 'nonce-([^']+)'/.exec(policy);
      assert.ok(nonce.length >= 22);
      for (const [tag] of body.matchAll(/<(?:script|link rel="stylesheet")[^>]*>/g))
        assert.ok(tag.includes(`nonce="${nonce}"`), tag);
    }
  });

  test("speak the language of whoever signs in", async () => {
    const headers = { "accept-language": "he, de;q=0.5" };
    const request = new Request("https://shop.example.com/__anteroom/", { headers });
    const page = await dashboard.signIn(true, request).text();
    const { signIn, tokenUnknown } = JSON.parse(pages.languages["he-IL"]);
    assert.match(page, /<html lang="he-IL" dir="rtl">/);
    for (const text of [signIn, tokenUnknown]) assert.ok(page.includes(text), text);
  });

  test("let browsers keep files of their own version for ever, and of no other", () => {
    const page = (version) =>
      dashboard.asset("/__anteroom/dashboard.js", version).headers.get("cache-control");
    assert.equal(page("0000000000000000"), "no-cache");
    assert.equal(dashboard.asset("/__anteroom/toString", ""), undefined);
  });

  test("show what somebody would see who comes now, and nothing that acts", async () => {
    const room = makeRooms().get("sale").status();
    const page = { language: "en-US", visitorLanguages: true, customPage: "", message: "" };
    const settings = { ...page, showPosition: true, showWait: true, showProgress: true };
    const shown = (language) =>
      dashboard.preview(
        JSON.stringify(settings),
        JSON.stringify(room),
        language,
        new Request("https://shop.example.com/__anteroom/preview?room=sale"),
      );
    const answer = shown("");
    assert.match(answer.headers.get("content-security-policy"), /(^|, )sandbox; frame-ancestors 'self'$/);
    assert.equal(answer.headers.get("refresh"), null);
    assert.ok((await answer.text()).includes(room.estimated_queued_users.toLocaleString("en")));
    assert.equal(shown("de").headers.get("content-language"), "de-DE");
    assert.equal(shown("xx").headers.get("content-language"), "en-US");
  });
});
