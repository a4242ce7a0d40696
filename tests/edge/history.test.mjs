// What a room remembers: a crowd comes to three colos, waits, enters, leaves, is sent away and goes past the room, while
// objects restart. The history tells what it did, no more and no less.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { HEADER, sign } from "../../tools/crowd/rehearsal.mjs";
import { ADMIN_TOKEN, eventually, letIn, MINUTE, openTicket, room, sleep, startWorld } from "./world.mjs";

const run = promisify(execFile);
const COLOS = ["AMS", "SIN", "GRU"];
/** Reads CSV from its input and writes the rows as JSON. */
const READ_CSV = "import csv, json, sys; print(json.dumps(list(csv.reader(sys.stdin))))";
/** Reports are late by less than a minute in these rooms; then the minute is looked at within another one. */
const SETTLED = 4 * MINUTE;

describe("the history", { concurrency: true }, () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: {
        shop: room("/shop", {
          total_active_users: 6,
          refresh_interval_seconds: 5,
          enabled_origin_commands: ["revoke"],
          bypass_rules: ['ends_with(http.request.uri.path, ".js")'],
        }),
        silent: room("/silent"),
        aged: room("/aged"),
      },
    });
  });
  after(() => world.close());

  const ask = (query, headers = { authorization: `Bearer ${ADMIN_TOKEN}` }) =>
    world.send({ path: `/__anteroom/history?${new URLSearchParams(query)}`, headers });
  const history = async (query) => {
    const answer = await ask(query);
    assert.equal(answer.status, 200, answer.body);
    return JSON.parse(answer.body);
  };
  /** The sum of a field over all rows. */
  const sum = ({ fields, rows }, field) => rows.reduce((all, row) => all + row[1 + fields.indexOf(field)], 0);
  const column = ({ fields, rows }, field) => rows.map((row) => row[1 + fields.indexOf(field)]);

  test("tells what visitors did, though objects restart", async () => {
    const path = "/shop";
    const from = Date.now() - MINUTE;
    const mark = sign(ADMIN_TOKEN, "trial", Date.now() / 1000 + 3_600);
    const inside = [];
    // One after another, so that all that one of them was given or was not is known when the next one comes.
    for (const colo of [...COLOS, ...COLOS]) {
      inside.push(...(await letIn(world, 1, { path, colo })));
      await sleep(5_000);
    }
    const waiting = [
      world.visitor({ path, colo: "AMS" }),
      world.visitor({ path, colo: "GRU" }),
      world.visitor({ path, colo: "SIN" }),
    ];
    const marked = waiting[1];
    const get = (visitor) => visitor.get(path, visitor === marked ? { headers: { [HEADER]: mark } } : {});
    for (const visitor of waiting) assert.ok((await get(visitor)).waiting);
    for (let times = 0; times < 4; times += 1)
      assert.ok((await world.send({ path: "/shop/app.js", colo: "SIN" })).fromOrigin);

    // One closes the page and does not come back.
    const gone = waiting.pop();
    const at = openTicket("shop", gone.ticket()).lastCheckIn;
    const headers = { "content-type": `application/x-anteroom-leave;at=${at}` };
    assert.equal((await gone.get(path, { method: "POST", headers })).status, 204);

    await world.restart("Global", "shop");
    // The origin ends one session: somebody who waits enters for it, and the other one when another session ends.
    assert.ok((await inside[0].get("/shop/bought")).fromOrigin);
    const entered = async () => {
      for (const visitor of [...waiting]) {
        await sleep(2_000);
        if ((await get(visitor)).fromOrigin) waiting.splice(waiting.indexOf(visitor), 1);
      }
      return waiting.length === 0;
    };
    await eventually("the first enters", async () => (await entered()) || waiting.length === 1, {
      within: SETTLED,
      every: 100,
    });
    await inside[1].get();
    await world.restart("DataCenter", "shop/AMS");
    await eventually("the second enters", entered, { within: SETTLED, every: 100 });
    const query = { room: "shop", from };
    // What is not recorded yet of the most who waited at once goes with the object's memory.
    await eventually("it is recorded that people waited", async () =>
      column(await history(query), "waiting_users_max").some((users) => users >= 1),
    );
    await world.restart("Global", "shop");
    const over = Date.now();

    const told = await eventually(
      "all of it is settled, and everybody has gone",
      async () => {
        const told = await history(query);
        const last = told.rows.at(-1);
        const empty = last[1 + told.fields.indexOf("active_users")] === 0;
        return told.settled_until > over + MINUTE && empty && told;
      },
      { within: 2 * SETTLED, every: 2_000 },
    );
    const figures = Object.fromEntries(
      ["new_users", "joins", "leavers", "revoked", "bypassed", "fallbacks"].map((field) => [
        field,
        sum(told, field),
      ]),
    );
    assert.deepEqual(figures, { new_users: 8, joins: 3, leavers: 1, revoked: 1, bypassed: 4, fallbacks: 0 });
    assert.deepEqual([sum(told, "rehearsal_new_users"), sum(told, "rehearsal_joins")], [1, 1]);
    assert.equal(Math.max(...column(told, "active_users_max")), 6);
    assert.ok(Math.max(...column(told, "waiting_users_max")) >= 1);
    assert.ok(sum(told, "object_calls") > 0);
    const known = (field) => column(told, field).filter((seconds) => seconds !== null);
    assert.ok(
      known("wait_seconds_p90").length > 0 && known("wait_seconds_p90").every((seconds) => seconds < 300),
    );
    assert.ok(known("origin_seconds_p50").length > 0);
    assert.ok(column(told, "total_active_users").every((limit) => limit === 6 || limit === null));
    const minutes = column(told, "new_users").length;
    assert.ok(
      told.rows.every(([time], index) => time === told.rows[0][0] + index * MINUTE),
      `${minutes} minutes`,
    );

    // By colo.
    const expected = { AMS: [3, 1], SIN: [2, 1], GRU: [3, 1] };
    for (const colo of COLOS) {
      const part = await history({ ...query, colo });
      assert.deepEqual([sum(part, "new_users"), sum(part, "joins")], expected[colo], colo);
      assert.equal(sum(part, "bypassed"), colo === "SIN" ? 4 : 0);
    }

    // What is settled does not change any more, whatever restarts.
    await world.restart("Global", "shop");
    const to = told.settled_until;
    const again = await history({ ...query, to });
    assert.deepEqual(
      again.rows,
      told.rows.filter(([time]) => time < to),
    );

    // The same as CSV, and by the hour.
    const csv = await ask({ ...query, to, format: "csv" });
    assert.equal(csv.headers["content-type"], "text/csv; charset=utf-8");
    const child = run("python3", ["-c", READ_CSV]);
    child.child.stdin.end(csv.body);
    const [names, ...lines] = JSON.parse((await child).stdout);
    assert.deepEqual(names, ["time", ...again.fields]);
    const cells = again.rows.map((row) => row.map((cell) => (cell === null ? "" : String(cell))));
    assert.deepEqual(
      lines.map(([time, ...line]) => [String(Date.parse(time)), ...line]),
      cells,
    );
    const hours = await history({ ...query, resolution: "hour" });
    assert.equal(sum(hours, "new_users"), 8);
    assert.equal(Math.max(...column(hours, "active_users_max")), 6);
  });

  test("keeps minutes for 30 days, colos' parts of them for a day, and hours for a year", async () => {
    const rows = (query) => world.rows("Global", "aged", query);
    const numbers = async (table, column = "minute") =>
      (await rows(`SELECT ${column} AS number FROM ${table} ORDER BY 1`)).map(({ number }) => number);
    await letIn(world, 1, { path: "/aged" });
    await eventually(
      "a minute is recorded",
      async () => (await rows("SELECT name FROM sqlite_master WHERE name = 'minutes'")).length > 0,
      { within: SETTLED, every: 1_000 },
    );

    // As if there had been visitors then: two hours too long ago, and two hours less than that.
    const [minute, hour] = [MINUTE, 60 * MINUTE].map((length) => Math.floor(Date.now() / length));
    const day = 24 * 60;
    const [gone, kept] = [-120, 120];
    for (const difference of [gone, kept]) {
      for (const [table, age] of [
        ["minutes", 30 * day],
        ["parts", day],
      ])
        await rows(
          `INSERT INTO ${table} SELECT ${minute - age + difference}, detail FROM ${table} ORDER BY minute DESC LIMIT 1`,
        );
      await rows(
        `INSERT INTO hours SELECT ${hour - 366 * 24 + difference / 60}, detail FROM minutes ORDER BY minute DESC LIMIT 1`,
      );
    }
    await world.restart("Global", "aged");
    await sleep(MINUTE - (Date.now() % MINUTE));
    await letIn(world, 1, { path: "/aged" });
    const minutes = await eventually(
      "the next minute is recorded",
      async () => {
        const minutes = await numbers("minutes");
        return minutes.at(-1) > minute && minutes;
      },
      { within: SETTLED, every: 1_000 },
    );
    const isOld = (age) => (number) => number <= minute - age + kept;
    assert.deepEqual(minutes.filter(isOld(30 * day)), [minute - 30 * day + kept]);
    assert.deepEqual((await numbers("parts")).filter(isOld(day)), [minute - day + kept]);
    // The minutes were summed up first.
    assert.deepEqual((await numbers("hours", "hour")).slice(0, 3), [
      hour - 366 * 24 + kept / 60,
      ...[gone, kept].map((difference) => Math.floor((minute - 30 * day + difference) / 60)),
    ]);
  });

  test("of a room where nothing happens tells nothing, and stores nothing", async () => {
    const { rows, fields } = await history({ room: "silent", fields: "joins,wait_seconds_p50" });
    assert.deepEqual(fields, ["joins", "wait_seconds_p50"]);
    assert.ok(rows.length >= 60 && rows.every((row) => row[1] === null && row[2] === null));
    const tables = await world.rows(
      "Global",
      "silent",
      "SELECT name FROM sqlite_master WHERE name = 'minutes'",
    );
    assert.deepEqual(tables, []);
  });

  test("is for operators, and says what is wrong with a question", async () => {
    const answer = await ask({ room: "shop" }, {});
    assert.equal(answer.status, 401);
    assert.match(answer.headers["cache-control"], /no-store/);
    for (const [query, status, named] of [
      [{ room: "shop", fields: "sales" }, 400, "sales"],
      [{ room: "shop", from: 0 }, 400, "3000"],
      [{ room: "shop", resolution: "day" }, 400, "resolution"],
      [{ room: "nowhere" }, 404, "shop"],
      [{}, 400, "room"],
    ]) {
      const { status: was, body } = await ask(query);
      assert.equal(was, status, body);
      assert.ok(JSON.parse(body).error.includes(named), body);
    }
  });
});
