// Rehearsals: visitors whose mark is good are told apart in the history, and nobody else is.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { HEADER, sign } from "../../tools/crowd/rehearsal.mjs";
import { ADMIN_TOKEN, eventually, room, startWorld } from "./world.mjs";

const PROGRAM = fileURLToPath(new URL("../../tools/crowd.mjs", import.meta.url));
const STEERS = "anna-may-steer-all-of-it";
const VIEWS = "the-wall-may-only-look";

const fromNow = (seconds) => Date.now() / 1000 + seconds;

/** Runs the crowd's program with a token; `undefined`: with none. */
function crowd(token, ...args) {
  return new Promise((resolve) => {
    const env = { ...process.env, ANTEROOM_TOKEN: token };
    execFile(process.execPath, [PROGRAM, ...args], { env }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

describe("rehearsals", { concurrency: true }, () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: {
        sale: room("/sale", { total_active_users: 20 }),
        open: room("/open"),
        wrong: room("/wrong"),
      },
      vars: { OPERATOR_TOKENS: `anna:steer:${STEERS}, wall:view:${VIEWS}` },
      colos: { AMS: 2 },
    });
  });
  after(() => world.close());

  /** Fails unless the history of a room tells this of the last minutes, summed up, once all reports are in. */
  async function records(name, expected) {
    const fields = Object.keys(expected);
    const path = `/__anteroom/history?room=${name}&resolution=minute&fields=${fields}`;
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const recorded = await eventually(
      `the history of ${name} knows of all`,
      async () => {
        const answer = await world.send({ path, headers });
        assert.equal(answer.status, 200, answer.body);
        const { rows } = JSON.parse(answer.body);
        const sums = fields.map((field, column) => [
          field,
          rows.reduce((sum, row) => sum + row[column + 1], 0),
        ]);
        const sum = Object.fromEntries(sums);
        return fields.every((field) => sum[field] >= expected[field]) && sum;
      },
      { within: 60_000 },
    );
    assert.deepEqual(recorded, expected);
  }

  test("a marked and an unmarked crowd share one room, and the history tells them apart", async () => {
    const url = `${world.address()}/sale`;
    const habits = ["--url", url, "--rate", "2", "--pages", "1", "--patience", "3", "--json", "--quiet"];
    const [marked, unmarked] = await Promise.all([
      crowd(STEERS, ...habits, "--visitors", "30", "--rehearsal", "friday", "--seed", "1"),
      crowd(STEERS, ...habits, "--visitors", "25", "--no-rehearsal", "--seed", "2"),
    ]);
    assert.equal(marked.code, 0, marked.stderr);
    assert.equal(unmarked.code, 0, unmarked.stderr);
    const [first, second] = [marked, unmarked].map(({ stdout }) => JSON.parse(stdout));
    assert.equal(first.rehearsal.name, "friday");
    assert.ok(first.rehearsal.until > Date.now() + 3_600_000, "it holds for as long as the crowd may take");
    assert.equal(second.rehearsal, null);
    // One page each: the origin got the header of those who were marked.
    const entered = world.origin.requests.filter(({ url }) => url.startsWith("/sale"));
    const withMark = entered.filter(({ headers }) => headers[HEADER]?.startsWith("v1.friday."));
    assert.equal(entered.length, 20, "the limit holds for all together");
    assert.ok(withMark.length > 0 && withMark.length < 20);
    await records("sale", {
      new_users: 20,
      joins: first.visitors.queued + second.visitors.queued,
      rehearsal_new_users: withMark.length,
      rehearsal_joins: first.visitors.queued,
    });
  });

  test("a mark that is forged, over, too long, foreign or of a role that may only view is none", async () => {
    const good = sign(STEERS, "friday", fromNow(60));
    const bad = {
      forged: [good.replace("friday", "sunday"), /no token of this deployment whose role is steer/],
      prolonged: [good.replace(/\.(\d+)\./, (_, until) => `.${+until + 60}.`), /no token/],
      foreign: [sign("a-token-of-another-deployment", "friday", fromNow(60)), /no token/],
      view: [sign(VIEWS, "friday", fromNow(60)), /no token/],
      over: [sign(STEERS, "friday", fromNow(-5)), /time is over/],
      long: [sign(STEERS, "friday", fromNow(25 * 3600)), /more than 24 hours/],
      nonsense: ["yes", /no mark/],
      token: [STEERS, /no mark/],
    };
    const ask = (mark) => world.send({ path: "/__anteroom/rehearsal", headers: { [HEADER]: mark } });
    const open = (mark) => world.visitor().get("/open", { headers: { [HEADER]: mark } });
    for (const [name, [mark, why]] of Object.entries(bad)) {
      const answer = await ask(mark);
      assert.deepEqual([answer.status, answer.headers["cache-control"]], [403, "private, no-store"], name);
      assert.match(JSON.parse(answer.body).error, why, name);
      const page = await open(mark);
      assert.ok(page.fromOrigin, "its visitor is one like all others");
    }
    const none = await world.send({ path: "/__anteroom/rehearsal" });
    assert.equal(none.status, 403);
    for (const token of [STEERS, ADMIN_TOKEN]) {
      const until = Math.floor(fromNow(60));
      const answer = await ask(sign(token, "friday", until));
      assert.equal(answer.status, 200);
      const { rehearsal, until: told } = JSON.parse(answer.body);
      assert.deepEqual([rehearsal, told], ["friday", until * 1000]);
    }
    const page = await open(good);
    assert.ok(page.fromOrigin);
    await records("open", {
      new_users: 9,
      joins: 0,
      rehearsal_new_users: 1,
      rehearsal_joins: 0,
    });
  });

  test("a crowd that cannot mark its visitors sends none, unless it is told to", async () => {
    const args = ["--url", `${world.address()}/wrong`, "--visitors", "2", "--rate", "40", "--pages", "1"];
    const refused = await crowd(VIEWS, ...args);
    assert.deepEqual([refused.code, refused.stdout], [2, ""]);
    assert.match(refused.stderr, /cannot be marked: .*role is steer.*--no-rehearsal/);
    const of = () => world.origin.requests.filter(({ url }) => url.startsWith("/wrong"));
    assert.equal(of().length, 0);
    const told = await crowd(VIEWS, ...args, "--no-rehearsal");
    assert.equal(told.code, 0, told.stderr);
    assert.match(told.stdout, /Not marked as a rehearsal, as --no-rehearsal says\./);
    assert.equal(of().length, 2);
    const named = await crowd(STEERS, ...args);
    assert.match(named.stdout, /Marked as the rehearsal \d{4}-\d\d-\d\d-\d{4}, until /);
  });
});
