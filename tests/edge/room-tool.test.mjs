// The command npm run room, against rooms in real workerd: each of its commands, what it says when it cannot, and its exit
// codes.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "smol-toml";

import { readCommand } from "../../tools/room/options.mjs";
import { historyTable, roomText } from "../../tools/room/print.mjs";
import { clock } from "./clock.mjs";
import { ADMIN_TOKEN, letIn, MINUTE, room, startWorld } from "./world.mjs";

// The command is a program of its own.
clock.goReal();

const PROGRAM = fileURLToPath(new URL("../../tools/room.mjs", import.meta.url));
const STEER = "the-token-of-anna-who-steers";
const VIEW = "the-token-of-a-wall-that-views";

/** Runs the command. @returns {Promise<{ code: number, out: string, err: string }>} */
function run(args, { token = STEER, env: more = {} } = {}) {
  return new Promise((resolve) => {
    const env = { ...process.env, ANTEROOM_TOKEN: token, ...more };
    execFile(process.execPath, [PROGRAM, ...args], { env }, (error, out, err) =>
      resolve({ code: error ? error.code : 0, out, err }),
    );
  });
}

test("whoever stands in line by lot is not said to have waited since then", () => {
  const bucket = { since: Date.UTC(2026, 10, 27, 7, 53), users: 12, wait_seconds: 90 };
  const shown = (drawn) =>
    roomText(
      {
        name: "shop",
        limits: { total_active_users: 10, new_users_per_minute: 10 },
        buckets: [{ ...bucket, drawn }],
        colos: [],
        events: [],
      },
      bucket.since,
    );
  assert.match(shown(true), /2026-11-27 07:53:00, by lot .* 12 /);
  assert.doesNotMatch(shown(true), /waiting since/);
  assert.doesNotMatch(shown(false), /by lot/);
});

test("a past has no rows of which nothing is known", () => {
  const table = historyTable({
    fields: ["joins", "slots"],
    rows: [
      [0, null, null],
      [MINUTE, 0, null],
    ],
  });
  assert.doesNotMatch(table, /1970-01-01 00:00:00/);
  assert.match(table, /1970-01-01 00:01:00 .* 0 .* – /);
});

test("help shows the command as it is called", () => {
  let help = "";
  assert.equal(readCommand(["history", "--help"], { out: (text) => (help += text) }), undefined);
  assert.match(help, /^Usage: npm run room -- history /);
});

describe("npm run room", () => {
  let world;
  let url;
  before(async () => {
    const start = Math.floor(Date.now() / MINUTE) * MINUTE + 60 * MINUTE;
    world = await startWorld({
      rooms: { shop: room("/", { total_active_users: 10 }), other: room("/other") },
      vars: {
        OPERATOR_TOKENS: `anna:steer:${STEER}, wall:view:${VIEW}`,
        EVENT_SALE: {
          room: "shop",
          event_start_time: new Date(start).toISOString(),
          event_end_time: new Date(start + 60 * MINUTE).toISOString(),
        },
      },
      colos: { AMS: 1 },
    });
    url = world.address();
    await letIn(world, 2);
  });
  after(() => world.close());

  const call = (args, more) => run([...args, "--url", url], more);
  /** What it prints with --json. */
  const json = async (args) => {
    const { code, out, err } = await call([...args, "--json"]);
    assert.equal(code, 0, err);
    return JSON.parse(out);
  };
  const done = async (args) => {
    const { code, out, err } = await call(args);
    assert.deepEqual([code, err], [0, ""], `${args.join(" ")}: ${err}`);
    return out;
  };
  const fields = async () => (await json(["show", "shop"])).steering.fields;

  test("status and show tell what rooms do, to whoever may view", async () => {
    const out = await done(["status"]);
    assert.match(out, /shop .* open .* of 10 /);
    assert.match(out, /other .* open .* of 1000 /);
    const before = await run(["--url", url, "--json", "status"]);
    const { rooms, operator } = JSON.parse(before.out);
    assert.deepEqual([rooms.length, operator.name], [2, "anna"]);
    const shown = await call(["show", "SHOP"], { token: VIEW });
    assert.equal(shown.code, 0, shown.err);
    assert.match(shown.out, /total_active_users/);
    assert.match(shown.out, /sale .* upcoming/);
  });

  test("set, keep and clear change what is in force, and the log tells who did", async () => {
    const out = await done([
      "set",
      "shop",
      "queue_all=true",
      "total_active_users=500",
      "message=Back at 9: = soon",
    ]);
    assert.match(out, /total_active_users.* 500 .* 10 .* anna/);
    const set = await fields();
    assert.deepEqual(
      ["queue_all", "total_active_users", "message"].map((field) => set[field].value),
      [true, 500, "Back at 9: = soon"],
    );
    await done(["set", "shop", "message=", "--until", "30m", "--reason", "Until we know more"]);
    assert.match(await done(["show", "shop"]), /message .* anna.* \d\d:\d\d:\d\d .* Until we know more/);
    assert.equal((await fields()).message.value, "");
    // After a deploy that changes what is overridden.
    await world.deploy({
      rooms: { shop: room("/", { total_active_users: 20 }), other: room("/other") },
      vars: { OPERATOR_TOKENS: `anna:steer:${STEER}, wall:view:${VIEW}` },
    });
    url = world.address();
    assert.match(await done(["show", "shop"]), /was 10: keep or clear it/);
    assert.equal((await fields()).total_active_users.value, 500);
    await done(["keep", "shop", "total_active_users"]);
    assert.doesNotMatch(await done(["show", "shop"]), /keep or clear it/);
    await done(["clear", "shop", "queue_all"]);
    const { queue_all, total_active_users } = await fields();
    assert.deepEqual([queue_all.value, queue_all.override, total_active_users.value], [false, null, 500]);
    const unasked = await call(["clear", "shop", "--all"]);
    assert.deepEqual(
      [unasked.code, unasked.out],
      [2, 'message: "" → ""\ntotal_active_users: 500 → 20\n'],
      unasked.err,
    );
    assert.match(unasked.err, /Nothing was changed. Say --yes/);
    assert.equal((await fields()).total_active_users.value, 500);
    await done(["clear", "shop", "--all", "--yes"]);
    assert.match(await done(["clear", "shop", "--all"]), /Nothing is overridden/);
    assert.deepEqual(
      Object.values(await fields()).filter(({ override }) => override),
      [],
    );

    const { entries } = await json(["audit", "shop"]);
    assert.deepEqual(
      entries
        .map(({ kind, field }) => `${kind} ${field}`)
        .slice(0, 3)
        .sort(),
      ["clear message", "clear queue_all", "clear total_active_users"],
    );
    assert.ok(entries.every(({ by }) => by === "anna"));
    assert.ok(entries.some(({ until, reason }) => until > Date.now() && reason === "Until we know more"));
    assert.match(await done(["audit", "shop", "--limit", "2"]), /clear .*\n.*clear/);
    const older = await json(["audit", "shop", "--before", `${entries[1].id}`, "--limit", "1"]);
    assert.deepEqual(older.entries, [entries[2]]);
  });

  test("an event starts, ends, and is as deployed again", async () => {
    await world.deploy({
      rooms: { shop: room("/") },
      vars: {
        OPERATOR_TOKENS: `anna:steer:${STEER}, wall:view:${VIEW}`,
        EVENT_SALE: {
          room: "shop",
          event_start_time: new Date(Date.now() + 60 * MINUTE).toISOString(),
          event_end_time: new Date(Date.now() + 120 * MINUTE).toISOString(),
        },
        HEALTH_DAYS: "0",
      },
    });
    url = world.address();
    const phase = async () =>
      (await json(["show", "shop"])).steering.events.find(({ name }) => name === "sale").phase;
    for (const [what, is] of [
      ["start", "active"],
      ["end", "over"],
      ["clear", "upcoming"],
    ]) {
      await done(["event", "shop", "sale", what]);
      assert.equal(await phase(), is, what);
    }
    // Called off, though it is planned.
    await done(["event", "shop", "sale", "start"]);
    await done(["event", "shop", "sale", "end"]);
    await done(["set", "shop", "total_active_users=500"]);
    assert.match(
      await done(["clear", "shop", "--all", "--yes"]),
      /total_active_users: 500 → \d+\nevent sale: was called off/,
    );
    assert.equal(await phase(), "over", "clearing all does not let it go on");
    await done(["clear", "shop", "--all", "--resume", "sale", "--yes"]);
    assert.equal(await phase(), "upcoming");
    const status = await call(["status"]);
    assert.equal(status.code, 1, "the deployment has a problem");
    assert.match(status.out, /HEALTH_DAYS must be/);
  });

  test("what is refused is told field by field, and nothing is changed", async () => {
    const before = await json(["show", "shop"]);
    for (const [args, more, code, says] of [
      [
        ["set", "shop", "total_active_users=0", "queue_all=perhaps"],
        {},
        1,
        /total_active_users = 0: .*Fix: /,
      ],
      [["set", "shop", "queue_all=perhaps"], {}, 1, /queue_all = "perhaps"/],
      [["set", "shop", "colour=red"], {}, 1, /colour/],
      [["event", "shop", "nothing", "start"], {}, 1, /events\.nothing/],
      [["set", "shop", "queue_all=true", "--if-version", "999"], {}, 1, /Somebody has changed the room/],
      [["set", "shop", "queue_all=true"], { token: VIEW }, 1, /wall has the role view; this takes steer/],
      [["set", "nothing", "queue_all=true"], {}, 1, /no room of this name/],
      [["status"], { token: "wrong" }, 2, /Set ANTEROOM_TOKEN/],
      [["watch", "shop"], { token: "wrong" }, 2, /Set ANTEROOM_TOKEN/],
      [["watch", "nothing"], {}, 1, /no room of this name/],
      [["set", "shop"], {}, 2, /missing required argument/],
      [["clear", "shop"], {}, 2, /say --all/],
      [["set", "shop", "queue_all=true", "--until", "soon"], {}, 2, /or how long: 30m/],
      [["set", "shop", "queue_all=true", "--until", "2021-11-20T18:00Z"], {}, 1, /until = .* a time to come/],
      [["clear", "shop", "queue_all", "--yes"], {}, 2, /go only with --all/],
    ]) {
      const { code: left, out, err } = await call(args, more);
      assert.deepEqual([left, out], [code, ""], `${args.join(" ")}: ${err}`);
      assert.match(err, says);
    }
    const after = await json(["show", "shop"]);
    assert.deepEqual(after.steering.version, before.steering.version);
    const nobody = await run(["status", "--url", "http://127.0.0.1:9"]);
    assert.equal(nobody.code, 2);
    assert.match(nobody.err, /127\.0\.0\.1:9 cannot be reached \(ECONNREFUSED\)/);
  });

  test("watch tells a room's state at once, and what changes", async () => {
    const watching = call(["watch", "shop", "--count", "2", "--json"]);
    const changing = (async () => {
      for (let limit = 600; limit < 620; limit += 1) {
        await done(["set", "shop", `total_active_users=${limit}`]);
        if (await Promise.race([watching.then(() => true), new Promise((over) => setTimeout(over, 500))]))
          return;
      }
    })();
    const { code, out, err } = await watching;
    await changing;
    assert.equal(code, 0, err);
    const [first, second] = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual([first.type, first.room.name], ["room", "shop"]);
    // A change is news as well.
    assert.ok(second.type === "news" || second.room.name === "shop", out);
    assert.match(await done(["watch", "shop", "--count", "1"]), /open .* active /);
  });

  test("a room's past comes as a table, CSV and JSON", async () => {
    assert.match(await done(["history", "shop"]), /time \(UTC\).*active_users/);
    const before = ["--from", "2020-01-01T00:00:00Z", "--to", "2020-01-01T01:00:00Z"];
    assert.match(await done(["history", "shop", ...before]), /^Nothing is recorded of this time/);
    const csv = await done(["history", "shop", "--format", "csv", "--fields", "active_users,joins"]);
    assert.match(csv, /^time,active_users,joins\r?\n\d{4}-\d\d-\d\dT/);
    const { fields, rows } = await json([
      "history",
      "shop",
      "--fields",
      "joins",
      "--from",
      `${Date.now() - 5 * MINUTE}`,
    ]);
    assert.deepEqual(fields, ["joins"]);
    assert.ok(rows.length >= 4 && rows.length <= 7, `${rows.length} rows`);
    const { code, err } = await call(["history", "shop", "--fields", "colour"]);
    assert.equal(code, 1);
    assert.match(err, /colour/);
  });

  test("what is no deployment of ours is told so", async () => {
    const server = createServer((_, response) => response.end("hello"));
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    const { code, err } = await run(["status", "--url", `http://127.0.0.1:${server.address().port}`]);
    server.close();
    assert.equal(code, 2);
    assert.match(err, /is a room of Anteroom there\?/);
  });
});

describe("npm run room -- apply and export", () => {
  let world;
  let folder;
  let url;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "rooms-"));
    world = await startWorld({
      rooms: { shop: room("/shop", { message: "Welcome", bypass_rules: ["ip.src eq 192.0.2.1"] }) },
      colos: { AMS: 1 },
    });
    url = world.address();
  });
  after(async () => {
    await world.close();
    await rm(folder, { recursive: true });
  });

  const FILE = `
[Sale]
host = "shop.example.com"
path = "/sale/"
total_active_users = 300
new_users_per_minute = 200
[Sale.anteroom]
message = "Hello"
[[Sale.events]]
name = "night"
event_start_time = "2030-11-27T09:00:00+01:00"
event_end_time = "2030-11-27T19:00:00+01:00"
[[Sale.rules]]
action = "bypass_waiting_room"
expression = "ip.src in {192.0.2.0/24}"
enabled = false
[other]
host = "shop.example.com"
path = "/other"
total_active_users = 1
new_users_per_minute = 1
`;
  const call = (args) => run([...args, "--url", url], { token: ADMIN_TOKEN });
  const apply = async (text, ...more) => {
    const file = join(folder, "rooms.toml");
    await writeFile(file, text);
    return call(["apply", "-f", file, ...more]);
  };

  test("say what changes, do it when told to, and know when there is nothing to do", async () => {
    const asked = await apply(FILE);
    assert.deepEqual([asked.code, asked.err], [2, "Nothing was changed. Say --yes to put this in force.\n"]);
    assert.match(
      asked.out,
      /^room Sale is made\nevent night of Sale is made\nthe rules of Sale are others\nroom other is made\n/,
    );
    assert.equal((await call(["export"])).out, "\n");
    assert.match((await apply(FILE, "--yes")).out, /Done: 4 changes/);
    assert.equal((await apply(FILE, "--yes")).out, "All is as in the file.\n");
    const exported = await call(["export"]);
    const { default_template_language: _, ...sale } = parse(exported.out).Sale;
    for (const [field, value] of Object.entries(parse(FILE).Sale))
      assert.deepEqual(sale[field], value, field);
    assert.equal(
      (await apply(exported.out)).out,
      "All is as in the file.\n",
      "what is exported is what there is",
    );
    const changed = FILE.replace('path = "/other"', 'path = "/others"\nqueue_all = true').replace(
      "19:00",
      "20:00",
    );
    const { out } = await apply(changed, "--yes");
    assert.match(out, /event night of Sale changes\n {2}event_end_time: \S+19:00\S+ → \S+20:00/);
    assert.match(
      out,
      /room other changes\n {2}path: "?\/other"? → "?\/others"?\n {2}queue_all: false → true/,
    );
    assert.match(
      out,
      /\n {2}Nobody waits and nobody is in: who comes to shop.example.com\/other is led to \/others/,
    );
    const left = changed.slice(0, changed.indexOf("[other]"));
    assert.equal((await apply(left)).out, "All is as in the file.\n");
    assert.match(
      (await apply(left, "--prune", "--yes")).out,
      /room other is deleted\n {2}Nobody waits and nobody is in: those who wait .*\nDone: 1 change,/,
    );
  });

  test("show what a room has that is deployed, so that it can move over", async () => {
    const { shop } = parse((await call(["export", "--deployed"])).out);
    assert.deepEqual(
      [shop.path, shop.total_active_users, shop.anteroom.message, shop.rules[0].expression],
      ["/shop", 1000, "Welcome", "ip.src eq 192.0.2.1"],
    );
  });

  test("read rooms as Cloudflare's own API answers them", async () => {
    const env = { CLOUDFLARE_API_TOKEN: ADMIN_TOKEN, CLOUDFLARE_BASE_URL: `${url}/__anteroom/client/v4/` };
    const zone = "023e105f4ecef8ad9ca31a8372d0c353";
    const read = await run(["export", "--cloudflare", zone], { env });
    assert.equal(read.out, (await call(["export"])).out);
    assert.match(read.out, /^\[Sale\]/);
    const refused = await run(["export", "--cloudflare", zone], {
      env: { ...env, CLOUDFLARE_API_TOKEN: "wrong" },
    });
    assert.equal(refused.code, 1);
    assert.match(refused.err, /Cloudflare answers 401: Send a token/);
    const none = await run(["export", "--cloudflare", zone], { env: { CLOUDFLARE_API_TOKEN: "" } });
    assert.match(none.err, /^error: set CLOUDFLARE_API_TOKEN/);
  });

  test("makes a room of fields, and knows one that there is", async () => {
    const fields = ["host=made.example.com", "path=/made", "total_active_users=5", "new_users_per_minute=5"];
    const create = (...more) => call(["create", "Made", ...fields, ...more]);
    const own = ["anteroom.message=Hello there", "anteroom.show_wait=false", 'description="of fields"'];
    const asked = await create(...own);
    assert.deepEqual([asked.code, asked.out], [2, "room Made is made\n"]);
    const made = await create(...own, "--yes");
    assert.match(made.out, /^room Made is made\nDone: 1 change,/, made.err);
    const { Made } = JSON.parse(JSON.stringify(parse((await call(["export"])).out)));
    assert.deepEqual(Made.anteroom, { message: "Hello there", show_wait: false });
    assert.deepEqual([Made.total_active_users, Made.description], [5, "of fields"]);
    assert.match((await create("--yes")).err, /^There is a room Made: `edit Made` changes it/);
    const wrong = await call(["create", "Wrong", ...fields.slice(1), "--yes"]);
    assert.match(wrong.err, /host is required/);
    assert.match((await create("path=/twice")).err, /path is there twice/);
  });

  test("opens a room in an editor, says what was changed, and does it", async () => {
    const edit = (editor, ...more) =>
      run(["edit", "made", "--url", url, ...more], {
        token: ADMIN_TOKEN,
        env: { EDITOR: editor, VISUAL: "" },
      });
    const sed = (script) => `sed -i '${script}'`;
    assert.equal((await edit("true")).out, "Nothing was changed.\n");
    const asked = await edit(sed("s/= 5$/= 7/"));
    assert.deepEqual([asked.code, asked.err], [2, "Nothing was changed. Say --yes to put this in force.\n"]);
    const changed = await edit(sed("s/= 5$/= 7/; s/Hello there/Bye/"), "--yes");
    assert.match(changed.out, /^room Made changes\n {2}total_active_users: 5 → 7\n/, changed.err);
    assert.match(changed.out, /anteroom: .*Hello there.* → .*Bye/);
    const called = await edit(sed("s/Made/Other/"), "--yes");
    assert.match(called.out, /^room Other changes\n {2}name: Made → Other\n/, called.err);
    assert.equal((await run(["edit", "shop", "--url", url], { token: ADMIN_TOKEN })).code, 1, "deployed");
    const other = (editor) =>
      run(["edit", "other", "--url", url, "--yes"], {
        token: ADMIN_TOKEN,
        env: { EDITOR: editor, VISUAL: "" },
      });
    assert.match((await other(sed("s/= 7$/= 0/"))).err, /must be a whole number from 1/);
    assert.match((await other("false")).err, /^false ended with status 1: nothing was changed/);
    // Somebody else is faster.
    const meanwhile = `curl -s -o /dev/null -X PATCH -H 'authorization: Bearer ${ADMIN_TOKEN}' -d '{"description":"theirs"}' ${url}/__anteroom/client/v4/zones/main/waiting_rooms/$(curl -s -H 'authorization: Bearer ${ADMIN_TOKEN}' ${url}/__anteroom/client/v4/zones/main/waiting_rooms?per_page=100 | node -pe 'JSON.parse(require("fs").readFileSync(0)).result.find(({name}) => name === "Other").id') ; sed -i 's/= 7$/= 9/'`;
    assert.match((await other(meanwhile)).err, /admin has changed it at .* what differs is now .*theirs/);
    assert.match((await call(["apply", "-f", "/dev/null", "--prune", "--yes"])).out, /room Other is deleted/);
  });

  test("makes here what Cloudflare's own client reads there", async (t) => {
    const recorded = JSON.parse(
      await readFile(new URL("../fixtures/cloudflare.json", import.meta.url), "utf8"),
    );
    const asked = [];
    const server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url, "http://localhost");
      asked.push([request.method, request.headers.authorization, request.headers["user-agent"]]);
      const isIt = ({ path, query }) =>
        path === pathname && JSON.stringify(query) === JSON.stringify(Object.fromEntries(searchParams));
      const found = recorded.find(isIt);
      const no = {
        success: false,
        errors: [{ code: 10_000, message: "Not in your plan" }],
        messages: [],
        result: null,
      };
      response.writeHead(found ? 200 : 403, { "content-type": "application/json" });
      response.end(JSON.stringify(found?.answer ?? no));
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    t.after(() => server.close());
    const zone = "023e105f4ecef8ad9ca31a8372d0c353";
    const env = {
      CLOUDFLARE_API_TOKEN: "their-token",
      CLOUDFLARE_BASE_URL: `http://127.0.0.1:${server.address().port}`,
      CLOUDFLARE_API_KEY: "a-key-for-something-else",
    };
    const imported = (...more) =>
      run(["import", "--from", "cloudflare", "--zone", zone, "--url", url, ...more], {
        token: ADMIN_TOKEN,
        env,
      });
    const first = await imported("--yes");
    assert.equal(
      first.out.replace(/Done.*/s, ""),
      [
        "room Shop_Room-1 is made",
        "event drop of Shop_Room-1 is made",
        "event later of Shop_Room-1 is made",
        "the rules of Shop_Room-1 are others",
        "room minimal is made\n",
      ].join("\n"),
      first.err,
    );
    // The second room's events and rules are not in the record: its plan does not have them.
    assert.match(first.err, /Cloudflare answers 403: Not in your plan\. They are left out\./);
    assert.ok(asked.every(([method, by]) => method === "GET" && by === "Bearer their-token"));
    assert.match(asked[0][2], /^Cloudflare\/JS/);
    const here = JSON.parse(JSON.stringify(parse((await call(["export"])).out)));
    const [theirs] = recorded[0].answer.result;
    for (const [field, value] of Object.entries(here["Shop_Room-1"]))
      if (!["events", "rules"].includes(field)) assert.deepEqual(value, theirs[field], field);
    assert.equal(here["Shop_Room-1"].queue_all, true);
    const [drop] = here["Shop_Room-1"].events;
    assert.deepEqual([drop.event_start_time, drop.suspended], ["2026-11-27T09:00:00+01:00", true]);
    assert.deepEqual(
      here["Shop_Room-1"].rules.map(({ enabled }) => enabled),
      [true, false],
    );
    assert.equal((await imported("--yes")).out, "All is here as it is there.\n");
  });

  test("say what is wrong, and change nothing then", async () => {
    const wrong = await apply(FILE.replace("total_active_users = 1\n", "total_active_users = 0\n"), "--yes");
    assert.equal(wrong.code, 1);
    assert.match(wrong.err, /total_active_users must be a whole number from 1/);
    const broken = await apply("[Sale", "--yes");
    assert.deepEqual([broken.code, broken.out], [2, ""]);
    const viewer = await run(["apply", "-f", join(folder, "rooms.toml"), "--url", url], {
      token: "no-token-of-this-room",
    });
    assert.equal(viewer.code, 2);
  });

  test("let rooms swap their paths, and take what another gives up; all of it is done or nothing", async () => {
    const rooms = (paths) =>
      Object.entries(paths)
        .map(([name, path]) =>
          [`[${name}]`, 'host = "swap.example.com"', `path = "${path}"`, "total_active_users = 1"]
            .concat("new_users_per_minute = 1\n")
            .join("\n"),
        )
        .join("\n");
    const there = async () =>
      Object.fromEntries(
        Object.entries(parse((await call(["export"])).out)).map(([name, { path }]) => [name, path]),
      );
    const first = rooms({ one: "/one", two: "/two", three: "/three" });
    assert.equal((await apply(first, "--prune", "--yes")).code, 0);
    const swapped = { one: "/two", two: "/one", three: "/three" };
    const { out, err } = await apply(rooms(swapped), "--yes");
    assert.match(out, /room one changes\n {2}path: "?\/one"? → "?\/two"?/, err);
    assert.match(out, /who comes to swap.example.com\/one is led to \/two/);
    assert.deepEqual(await there(), swapped);
    // One takes the path of another that goes, which is said after it.
    const taken = { one: "/three", two: "/one" };
    assert.match((await apply(rooms(taken), "--prune", "--yes")).out, /Done: 2 changes/);
    assert.deepEqual(await there(), taken);
    const clash = await apply(rooms({ four: "/four", one: "/four", two: "/five" }), "--yes");
    assert.equal(clash.code, 1);
    assert.match(
      clash.err,
      /^Nothing was changed \(status 400\):\n {2}room (one changes|four is made): path is covered by room/,
    );
    assert.deepEqual(await there(), taken, "nothing was done");
    assert.equal((await apply("", "--prune", "--yes")).code, 0);
  });
});
