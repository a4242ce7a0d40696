// What Prometheus is told, read by the parser of its own library: the text of real rooms, and the text that the core's tests
// pin. And what docs/ has for it: every query asks for something that is told.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { environment, PYTHON_PACKAGES } from "../../tools/toolchain.mjs";
import { ADMIN_TOKEN, eventually, letIn, MINUTE, room, startWorld } from "./world.mjs";

const OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC = "text/plain; version=0.0.4; charset=utf-8";

const file = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const GOLDEN = file("tests/rust/golden/metrics.openmetrics.txt");
const OLDER = file("tests/rust/golden/metrics.classic.txt");

/** As the dashboard names its variable. */
const DATA_SOURCE = "\u0024{datasource}";

/** Lets a Python program read a text from its standard input, and gives back the JSON that it prints. */
async function python(program, text) {
  const env = { ...environment(), PYTHONPATH: PYTHON_PACKAGES };
  const running = promisify(execFile)("python3", ["-c", program], { env, maxBuffer: 1 << 24 });
  running.child.stdin.end(text);
  return JSON.parse((await running).stdout);
}

const PARSE = (module) => `
import json, sys
from ${module} import text_string_to_metric_families as parse
print(json.dumps([{"name": f.name, "type": f.type, "unit": f.unit, "help": f.documentation,
  "samples": [{"name": s.name, "labels": s.labels, "value": s.value} for s in f.samples]} for f in parse(sys.stdin.read())]))
`;
const parse = (text, type = OPEN) =>
  python(PARSE(type === OPEN ? "prometheus_client.openmetrics.parser" : "prometheus_client.parser"), text);

/** The samples of a name, by the values of their labels. */
function samples(families, name) {
  const all = families.flatMap(({ samples }) => samples).filter((sample) => sample.name === name);
  return Object.fromEntries(all.map(({ labels, value }) => [Object.values(labels).join(" "), value]));
}

const names = (families) => new Set(families.flatMap(({ samples }) => samples.map(({ name }) => name)));
/** The metrics that a query asks for. */
const asked = (query) => query.match(/\banteroom_\w+(?=[{[\s,)]|$)/g) ?? [];

describe("metrics", () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: {
        shop: room("/", { total_active_users: 5, new_users_per_minute: 5 }),
        other: room("/other", { suspended: true }),
      },
      vars: { OPERATOR_TOKENS: "prometheus:view:the-token-of-prometheus" },
      colos: { AMS: 1, SIN: 1 },
    });
  });
  after(() => world.close());

  const scrape = async (accept) => {
    const headers = { authorization: "Bearer the-token-of-prometheus", ...(accept && { accept }) };
    const answer = await world.send({ path: "/__anteroom/metrics", headers });
    assert.equal(answer.status, 200, answer.body);
    return { ...answer, families: await parse(answer.body, answer.headers["content-type"]) };
  };

  test("the pinned text is read as what it says, in both formats", async () => {
    const [open, older] = [await parse(GOLDEN), await parse(OLDER, CLASSIC)];
    assert.deepEqual(
      open.filter(({ help, name, unit }) => !help || (unit && !name.endsWith(`_${unit}`))),
      [],
    );
    assert.deepEqual(names(older), names(open));
    for (const name of names(open)) assert.deepEqual(samples(older, name), samples(open, name), name);
    assert.equal(samples(open, "anteroom_admitted_users_total").shop, 123456789012);
    assert.equal(samples(open, "anteroom_event_phase")['shop late "night"\\\n active'], 1);
    assert.deepEqual(samples(open, "anteroom_up"), { shop: 1, quiet: 1, silent: 0 });
  });

  test("the documentation names every metric, and no other", async () => {
    const documented = new Set(
      [...file("docs/metrics.md").matchAll(/`(anteroom_\w+)` \|/g)].map(([, name]) => name),
    );
    for (const name of ["anteroom_build_info", "anteroom_deployment_problems"]) documented.add(name);
    const families = await parse(GOLDEN);
    const suffix = { counter: "_total", info: "_info" };
    assert.deepEqual(
      [...documented].sort(),
      families.map(({ name, type }) => name + (suffix[type] ?? "")).sort(),
    );
  });

  test("a room's numbers are those of its status, and a room that fails is told to be down", async () => {
    await letIn(world, 3);
    await letIn(world, 2, { colo: "SIN" });
    const outside = world.visitor();
    assert.ok((await outside.get()).waiting);
    const { headers, families } = await eventually("five are in and one waits", async () => {
      const told = await scrape();
      const [active, waiting] = ["active", "waiting"].map(
        (who) => samples(told.families, `anteroom_${who}_users`).shop,
      );
      return active === 5 && waiting === 1 && told;
    });
    assert.equal(headers["content-type"], OPEN);
    const of = (name) => samples(families, `anteroom_${name}`);
    assert.deepEqual(of("up"), { shop: 1, other: 1 });
    assert.deepEqual(of("limit_active_users"), { shop: 5, other: 1000 });
    assert.equal(of("slots").shop, 0);
    assert.equal(of("status")["shop queueing"], 1);
    assert.equal(of("status")["other suspended"], 1);
    assert.equal(of("colo_active_users")["shop AMS"] + of("colo_active_users")["shop SIN"], 5);
    assert.ok(of("state_age_seconds").shop >= 0);
    assert.deepEqual(of("deployment_problems"), { "": 0 });
    const known = names(await parse(GOLDEN));
    assert.deepEqual(
      [...names(families)].filter((name) => !known.has(name)),
      [],
    );

    assert.equal((await scrape("text/plain")).headers["content-type"], CLASSIC);

    await world.fault("Global", "other", "throw");
    const down = await scrape();
    assert.deepEqual(samples(down.families, "anteroom_up"), { shop: 1, other: 0 });
    assert.deepEqual(Object.keys(samples(down.families, "anteroom_active_users")), ["shop"]);
    const status = await world.status();
    const [shop, other] = ["shop", "other"].map((name) => status.rooms.find((room) => room.name === name));
    assert.equal(shop.error, null);
    assert.match(other.error, /GLOBAL other/);
    await world.fault("Global", "other");
  });

  test("a scrape is no look: the room does not hurry for it", async () => {
    const isWatched = async () => {
      const body = await world.tell(
        "Global",
        "other",
        "/look",
        Buffer.from("\u0001\u0000\u0009unwatched\u0000"),
      );
      return /"watched":(true|false)/.exec(body.body)?.[1];
    };
    await world.restart("Global", "other");
    await scrape();
    assert.equal(await isWatched(), "false");
    await world.status();
    assert.equal(await isWatched(), "true");
  });

  test("counters tell of all users, and go on where they were after restarts", async () => {
    const counted = () =>
      eventually(
        "all five users are counted",
        async () => {
          const { families } = await scrape();
          return samples(families, "anteroom_admitted_users_total").shop >= 5 && families;
        },
        { within: 4 * MINUTE, every: 2_000 },
      );
    const before = await counted();
    for (const colo of ["AMS", "SIN"]) await world.restart("DataCenter", `shop/${colo}`);
    await world.restart("Global", "shop");
    const after = (await scrape()).families;
    for (const { type, samples: all } of before.filter(({ type }) =>
      ["counter", "histogram"].includes(type),
    )) {
      for (const { name, labels, value } of all) {
        const now = samples(after, name)[Object.values(labels).join(" ")];
        assert.ok(now >= value, `${type} ${name} ${JSON.stringify(labels)}: ${value}, then ${now}`);
      }
    }
    assert.ok(samples(after, "anteroom_object_calls_total")["shop counter"] > 0);
  });

  test("without a token there is nothing", async () => {
    const answer = await world.send({ path: "/__anteroom/metrics" });
    assert.deepEqual([answer.status, /anteroom_/.test(answer.body)], [401, false]);
    assert.equal(
      (await world.send({ path: "/__anteroom/metrics", headers: { authorization: `Bearer ${ADMIN_TOKEN}` } }))
        .status,
      200,
    );
  });
});

describe("what the documentation has for Prometheus and Grafana", () => {
  test("every panel of the dashboard asks for what is told", async () => {
    const dashboard = JSON.parse(file("docs/grafana-dashboard.json"));
    const known = names(await parse(GOLDEN));
    const { schemaVersion, uid, title, panels, templating, annotations } = dashboard;
    assert.ok(schemaVersion >= 36 && uid && title && panels.length > 10);
    const variables = templating.list.map(({ name }) => name);
    assert.deepEqual(variables, ["datasource", "room"]);
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, "ids");
    const taken = new Set();
    const queries = [...annotations.list.map(({ expr }) => expr), templating.list[1].query.query];
    for (const { title, type, gridPos, datasource, targets } of panels) {
      assert.ok(["stat", "timeseries"].includes(type) && title && targets.length > 0, title);
      assert.deepEqual(datasource, { type: "prometheus", uid: DATA_SOURCE }, title);
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
      const { x, y, w, h } = gridPos;
      assert.ok(x >= 0 && x + w <= 24 && w > 0 && h > 0, title);
      for (let row = y; row < y + h; row += 1)
        for (let column = x; column < x + w; column += 1) {
          assert.ok(!taken.has(`${row} ${column}`), `${title} covers another panel`);
          taken.add(`${row} ${column}`);
        }
      for (const { expr, datasource } of targets) {
        assert.equal(datasource.uid, DATA_SOURCE);
        assert.match(expr, /\{room="\$room"\}/, title);
        queries.push(expr);
      }
    }
    for (const query of queries) {
      assert.ok(asked(query).length > 0, query);
      for (const name of asked(query)) assert.ok(known.has(name), `${name} in ${query}`);
      for (const [, variable] of query.matchAll(/\$(\w+)/g))
        assert.ok([...variables, "__rate_interval"].includes(variable), query);
    }
  });

  test("every alert asks for what is told", async () => {
    const known = names(await parse(GOLDEN));
    const { groups } = await python(
      "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))",
      file("docs/alerts.yml"),
    );
    const rules = groups.flatMap(({ rules }) => rules);
    assert.ok(rules.length >= 8);
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
    for (const { alert, expr, labels, annotations } of rules) {
      assert.match(alert, /^Anteroom[A-Z]/);
      assert.ok(["warning", "critical"].includes(labels.severity), alert);
      assert.ok(annotations.summary && annotations.description, alert);
      assert.ok(asked(expr).length > 0, expr);
      for (const name of asked(expr)) assert.ok(known.has(name), `${name} in ${alert}`);
    }
  });
});
