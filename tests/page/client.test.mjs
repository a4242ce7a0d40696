// The API that Cloudflare's clients drive, as a machine: what is answered, what is stored, and that nothing sent comes back
// otherwise. What the table of fields says is tested in workerd (tests/edge/managed.test.mjs).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { handle, newBook, readBook } from "../../src/edge/client/api.js";
import { Rates } from "../../src/edge/client/rates.js";
import { documentOf, readDeployed } from "../../src/edge/client/written.js";
import { EVENT, PLANS, ROOM, RULE } from "./plans.mjs";

const NOW = Date.parse("2026-11-27T08:00:00Z");
const DAY = 86_400_000;
const ZONE = "zones/023e105f4ecef8ad9ca31a8372d0c353/waiting_rooms";
const VARS = {
  DEFAULTS: { session_duration: 7, origin: "https://one.example.com" },
  ROOM_SHOP: {
    path: "/shop",
    origin_service: "SITE",
    total_active_users: { min: 10, max: 50 },
    new_users_per_minute: 20,
    limits: "adaptive",
    bypass_rules: ["ip.src in {192.0.2.0/24}"],
  },
  EVENT_SALE: {
    room: "Shop",
    event_start_time: "2026-11-28T09:00:00Z",
    event_end_time: "2026-11-28T19:00:00Z",
  },
  ROOM_BROKEN: { path: "nowhere" },
};
const deployed = await readDeployed(VARS, ["broken"]);
/** An API with a store: rows are all that outlives a request, as in the object. */
function newApi({ check = () => [], role = "configure" } = {}) {
  const rows = new Map();
  let ids = 0;
  const api = {
    now: NOW,
    rows,
    book: newBook(),
    ask(method, path, body, more = {}) {
      const outcome = handle(api.book, deployed, check, {
        by: "anna",
        role,
        method,
        path: path.split("?")[0],
        query: path.split("?")[1] ?? "",
        body: body === undefined ? "" : JSON.stringify(body),
        base: "https://shop.example.com",
        now: api.now,
        newToken: { text: `anteroom_token-${ids}`, hash: `hash-${ids}` },
        newId: () => {
          ids += 1;
          return ids.toString(16).padStart(32, "0");
        },
        ...more,
      });
      for (const [key, row] of Object.entries(outcome.written?.rows ?? {})) {
        if (row === undefined) rows.delete(key);
        else rows.set(key, JSON.parse(JSON.stringify(row)));
      }
      api.book = readBook([...rows]);
      if (outcome.written)
        assert.deepEqual(api.book, outcome.written.book, "what is stored is what is known");
      return outcome;
    },
    did(method, path, body) {
      const { status, body: answer } = api.ask(method, path, body);
      assert.equal(status, 200, JSON.stringify(answer));
      assert.equal(answer.success, true);
      return answer.result;
    },
    refused(status, method, path, body, more) {
      const outcome = api.ask(method, path, body, more);
      assert.equal(outcome.status, status, JSON.stringify(outcome.body));
      assert.deepEqual(
        [outcome.body.success, outcome.body.result, outcome.written],
        [false, null, undefined],
        "an error is one",
      );
      assert.ok(outcome.body.errors.length > 0 && outcome.body.errors.every(({ code }) => code >= 1000));
      return outcome.body.errors;
    },
  };
  return api;
}

const pointers = (errors) => errors.map(({ source }) => source?.pointer);

describe("a plan that was applied is empty", () => {
  for (const [what, prove] of PLANS)
    test(what, () => {
      const api = newApi();
      return prove((method, path, body) => api.did(method, `${ZONE}${path}`, body));
    });
});

test("every field is there, and nothing is null that has a value", () => {
  const api = newApi();
  const room = api.did("POST", ZONE, ROOM);
  const nulls = Object.keys(room).filter((field) => room[field] === null);
  assert.deepEqual(nulls, ["next_event_start_time", "next_event_prequeue_start_time"]);
  assert.match(room.id, /^[0-9a-f]{32}$/);
  assert.deepEqual(
    [room.created_on, room.modified_on],
    ["2026-11-27T08:00:00.000Z", "2026-11-27T08:00:00.000Z"],
  );
  const [rule] = api.did("POST", `${ZONE}/${room.id}/rules`, RULE);
  assert.deepEqual(
    [rule.version, rule.enabled, rule.description, rule.last_updated],
    ["1", true, "", "2026-11-27T08:00:00.000Z"],
  );
});

test("a part changes that part, and a PUT leaves Anteroom's own fields alone", () => {
  const api = newApi();
  const own = { slot_strategy: "leases", message: "Welcome" };
  const { id } = api.did("POST", ZONE, { ...ROOM, path: "/a", anteroom: own });
  assert.equal(api.did("PATCH", `${ZONE}/${id}`, { queue_all: true }).path, "/a");
  const patched = api.did("PATCH", `${ZONE}/${id}`, { anteroom: { message: null, count: "navigations" } });
  assert.deepEqual(patched.anteroom, { slot_strategy: "leases", count: "navigations" });
  const put = api.did("PUT", `${ZONE}/${id}`, ROOM);
  assert.deepEqual([put.anteroom, put.path, put.queue_all], [patched.anteroom, "/", false]);
  // Who sends back what was read changes nothing.
  assert.deepEqual(api.did("PUT", `${ZONE}/${id}`, put), put);
  assert.deepEqual(
    pointers(api.refused(400, "PATCH", `${ZONE}/${id}`, { anteroom: { slot_strategy: "counters" } })),
    ["/anteroom/slot_strategy"],
  );
});

test("of two people who change a room at once, one is told what the other has done", () => {
  const api = newApi();
  const { id } = api.did("POST", ZONE, ROOM);
  const seen = api.did("GET", `${ZONE}/${id}`);
  api.now += 1_000;
  api.did("PUT", `${ZONE}/${id}`, { ...seen, queue_all: true });
  const [error] = api.refused(400, "PUT", `${ZONE}/${id}`, { ...seen, description: "mine" });
  assert.deepEqual([error.source.pointer, error.code], ["/modified_on", 1003]);
  assert.match(error.message, /^anna has changed it at 2026-11-27T08:00:01.000Z; .*queue_all = true/);
  assert.equal(api.did("GET", `${ZONE}/${id}`).description, "");
  // Who does not say what was seen, as Terraform, is not asked.
  api.did("PUT", `${ZONE}/${id}`, { ...ROOM, description: "mine" });
});

test("lists come page by page until one is empty, in one order", () => {
  const api = newApi();
  for (let number = 0; number < 31; number += 1)
    api.did("POST", ZONE, { ...ROOM, name: `room-${number}`, path: `/${number}` });
  const names = (query) => api.did("GET", `${ZONE}${query}`).map(({ name }) => name);
  assert.equal(names("").length, 25);
  assert.deepEqual(names("").slice(0, 2), ["shop", "room-0"], "the deployed ones first");
  assert.deepEqual([...names(""), ...names("?page=2")].at(-1), "room-30");
  assert.deepEqual(names("?page=3"), []);
  // As the Python client writes numbers.
  assert.deepEqual(names("?page=2.0&per_page=5.0"), ["room-4", "room-5", "room-6", "room-7", "room-8"]);
  const account = api.ask("GET", "accounts/a/waiting_rooms?per_page=5").body;
  assert.deepEqual(account.result_info, { page: 1, per_page: 5, count: 5, total_count: 32, total_pages: 7 });
});

test("what is repeated because an answer was lost is not done twice", () => {
  const api = newApi();
  const room = api.did("POST", ZONE, ROOM);
  assert.deepEqual(api.did("POST", ZONE, ROOM), room);
  const event = api.did("POST", `${ZONE}/${room.id}/events`, EVENT);
  assert.deepEqual(api.did("POST", `${ZONE}/${room.id}/events`, EVENT), event);
  const rules = api.did("POST", `${ZONE}/${room.id}/rules`, RULE);
  assert.deepEqual(api.did("POST", `${ZONE}/${room.id}/rules`, RULE), rules);
  for (const path of [`/${room.id}/rules/${rules[0].id}`, `/${room.id}/events/${event.id}`, `/${room.id}`]) {
    const gone = api.did("DELETE", `${ZONE}${path}`);
    assert.deepEqual(api.did("DELETE", `${ZONE}${path}`), gone);
  }
  // It is another room's name then, and another request later.
  assert.notEqual(api.did("POST", ZONE, ROOM).id, room.id);
  api.now += 11 * 60_000;
  assert.deepEqual(pointers(api.refused(400, "POST", ZONE, ROOM)), ["/name"]);
});

test("rules are put where their sender wants them", () => {
  const api = newApi();
  const { id } = api.did("POST", ZONE, ROOM);
  for (const name of ["a", "b", "c"]) api.did("POST", `${ZONE}/${id}/rules`, { ...RULE, description: name });
  const rule = (name) =>
    api.did("GET", `${ZONE}/${id}/rules`).find(({ description }) => description === name).id;
  const moved = (name, position) =>
    api
      .did("PATCH", `${ZONE}/${id}/rules/${rule(name)}`, { ...RULE, position })
      .map(({ description }) => description)
      .join("");
  assert.equal(moved("c", { index: 1 }), "cab");
  assert.equal(moved("c", { after: "" }), "abc");
  assert.equal(moved("c", { before: rule("b") }), "acb");
  assert.equal(moved("a", { after: rule("c") }), "cab");
  assert.equal(moved("b", { before: "" }), "bca");
  assert.equal(moved("b", undefined), "bca");
  const at = `${ZONE}/${id}/rules/${rule("b")}`;
  assert.deepEqual(pointers(api.refused(400, "PATCH", at, { ...RULE, position: { after: "x" } })), [
    "/position",
  ]);
  const changed = api.did("PATCH", at, { ...RULE, expression: 'http.host eq "a"' });
  assert.deepEqual([changed[0].version, changed[0].description, changed[1].version], ["2", "b", "1"]);
});

test("a deleted room can be brought back for thirty days, with its events and rules", () => {
  const api = newApi();
  const room = api.did("POST", ZONE, ROOM);
  api.did("POST", `${ZONE}/${room.id}/events`, EVENT);
  api.did("POST", `${ZONE}/${room.id}/rules`, RULE);
  assert.deepEqual(api.did("DELETE", `${ZONE}/${room.id}`), { id: room.id });
  api.refused(404, "GET", `${ZONE}/${room.id}`);
  assert.deepEqual(documentOf(api.book).rooms, []);
  assert.deepEqual(documentOf(api.book).events, []);
  const [gone] = api.did("GET", `${ZONE}?deleted=true`);
  assert.deepEqual([gone.id, gone.deleted_on], [room.id, "2026-11-27T08:00:00.000Z"]);
  api.now += 29 * DAY;
  assert.equal(api.did("POST", `${ZONE}/${room.id}/restore`).name, "Sale");
  assert.equal(documentOf(api.book).events.length, 1);
  api.did("DELETE", `${ZONE}/${room.id}`);
  api.now += 31 * DAY;
  api.did("PATCH", `${ZONE}/settings`, { search_engine_crawler_bypass: true });
  api.refused(404, "POST", `${ZONE}/${room.id}/restore`);
  assert.deepEqual([...api.rows.keys()].sort(), ["meta", "settings"]);
});

test("rooms of a deploy are shown, and refuse to be changed", () => {
  const api = newApi();
  const [room, ...others] = api.did("GET", ZONE);
  assert.deepEqual(others, []);
  assert.deepEqual(
    [room.name, room.host, room.path, room.total_active_users, room.session_duration],
    ["shop", "", "/shop", 50, 7],
  );
  assert.deepEqual(room.anteroom, {
    origin_service: "SITE",
    total_active_users: { min: 10, max: 50 },
    limits: "adaptive",
  });
  assert.equal(room.next_event_start_time, "2026-11-28T09:00:00Z");
  const [event] = api.did("GET", `${ZONE}/${room.id}/events`);
  assert.equal(event.name, "sale");
  assert.equal(api.did("GET", `${ZONE}/${room.id}/rules`)[0].expression, "ip.src in {192.0.2.0/24}");
  assert.equal(api.ask("GET", `${ZONE}/${room.id}/status`).look, "shop");
  for (const [method, path, body] of [
    ["PUT", "", ROOM],
    ["PATCH", "", { queue_all: true }],
    ["DELETE", ""],
    ["POST", "/events", EVENT],
    ["DELETE", `/events/${event.id}`],
    ["PUT", "/rules", []],
  ]) {
    const [error] = api.refused(400, method, `${ZONE}/${room.id}${path}`, body);
    assert.match(error.message, /is deployed as ROOM_SHOP/);
  }
  assert.deepEqual(pointers(api.refused(400, "POST", ZONE, { ...ROOM, name: "SHOP" })), ["/name"]);
});

test("what is wrong is told field by field", () => {
  const api = newApi();
  assert.deepEqual(pointers(api.refused(400, "POST", ZONE, { name: "a b", hosts: [] })), [
    "/hosts",
    "/name",
    "/host",
    "/total_active_users",
    "/new_users_per_minute",
  ]);
  const wrong = { ...ROOM, turnstile_mode: "on", anteroom: { bypass_rules: [], queue_all: true } };
  assert.deepEqual(pointers(api.refused(400, "POST", ZONE, wrong)), [
    "/turnstile_mode",
    "/anteroom/bypass_rules",
    "/anteroom/queue_all",
  ]);
  for (const body of ["", "{", "[]", "7", "null"]) api.refused(400, "POST", ZONE, undefined, { body });
  const { id } = api.did("POST", ZONE, ROOM);
  const rules = [RULE, { action: "block", expression: 1 }, null];
  assert.deepEqual(pointers(api.refused(400, "PUT", `${ZONE}/${id}/rules`, rules)), [
    "/1/action",
    "/1/expression",
    "/2",
  ]);
  assert.deepEqual(
    pointers(api.refused(400, "PUT", `${ZONE}/settings`, { search_engine_crawler_bypass: "yes" })),
    ["/search_engine_crawler_bypass"],
  );
});

test("several changes are made as one, or none of them is", () => {
  let errors = [];
  const api = newApi({ check: ({ version }) => (version > api.book.version ? errors : []) });
  const post = (path, body) => ({ method: "POST", path, body });
  const all = [
    post("", { ...ROOM, name: "one", path: "/one" }),
    post("", { ...ROOM, name: "two", path: "/two" }),
    post("/$1/events", EVENT),
    { method: "PUT", path: "/$0/rules", body: [RULE] },
  ];
  assert.equal(api.did("POST", `${ZONE}/batch?dry_run=true`, all).length, 4);
  assert.equal(api.rows.size, 0, "it was only tried");
  const [one, two, event, rules] = api.did("POST", `${ZONE}/batch`, all);
  assert.deepEqual([one.name, two.name, event.name, rules.length], ["one", "two", EVENT.name, 1]);
  assert.deepEqual(
    api.did("GET", `${ZONE}/${two.id}/events`).map(({ id }) => id),
    [event.id],
  );
  assert.equal(api.book.version, 1, "it is one change");
  const names = () =>
    api
      .did("GET", ZONE)
      .filter(({ deployed_as }) => !deployed_as)
      .map(({ name, path }) => `${name} ${path}`);
  assert.deepEqual(names(), ["one /one", "two /two"], "in their order");
  assert.deepEqual(api.did("POST", `${ZONE}/batch`, all)[0], one, "whoever repeats it does nothing twice");
  // Two rooms swap their paths: what is between the two changes is nowhere.
  const swap = [
    { method: "PATCH", path: `/${one.id}`, body: { path: "/two" } },
    { method: "PATCH", path: `/${two.id}`, body: { path: "/one" } },
  ];
  api.now += 1_000;
  const tried = api.ask("POST", `${ZONE}/batch?dry_run=true`, swap);
  assert.deepEqual(
    tried.weighs.map(({ room, at }) => [room, at]),
    [
      [one.id, "/0/body"],
      [two.id, "/1/body"],
    ],
  );
  api.did("POST", `${ZONE}/batch`, swap);
  assert.deepEqual(names(), ["one /two", "two /one"]);
  assert.deepEqual(
    documentOf(api.book).gone.map(([id, , { path }]) => [id, path]),
    [
      [one.id, "/one"],
      [two.id, "/two"],
    ],
    "who comes to the old place is led to the new one",
  );
  // What is wrong is told at its change, all of it, and nothing is done.
  const wrong = [
    { method: "PATCH", path: `/${one.id}`, body: { queue_all: true } },
    post("", { name: "a b", host: "a.example.com" }),
    { method: "DELETE", path: "/nothing" },
    { method: "GET", path: "" },
    post("/batch", []),
    post("/preview", { custom_html: "x" }),
    7,
  ];
  assert.deepEqual(pointers(api.refused(400, "POST", `${ZONE}/batch`, wrong)), [
    "/1/body/name",
    "/1/body/total_active_users",
    "/1/body/new_users_per_minute",
    "/2",
    "/3",
    "/4",
    "/5",
    "/6",
  ]);
  assert.equal(api.did("GET", `${ZONE}/${one.id}`).queue_all, false);
  const found = { name: one.id, field: "path", message: "is covered by another already", fix: "mend it" };
  errors = [{ ...found, part: "room", excerpt: "" }];
  const [taken] = api.refused(400, "POST", `${ZONE}/batch`, [
    { method: "PATCH", path: `/${two.id}`, body: { queue_all: true } },
    { method: "PATCH", path: `/${one.id}`, body: { queue_all: true } },
  ]);
  assert.deepEqual([taken.source.pointer, taken.code], ["/1/body/path", 1003]);
  errors = [
    { ...found, part: "room", field: "bypass_rules", message: "is rule 1; column 4: must be", excerpt: "" },
  ];
  const [rule] = api.refused(400, "POST", `${ZONE}/batch`, [
    { method: "PUT", path: `/${one.id}/rules`, body: [RULE] },
    { method: "PATCH", path: `/${one.id}`, body: { queue_all: true } },
  ]);
  assert.deepEqual(rule.source, { pointer: "/0/body/0/expression", column: 4 });
  assert.equal(api.ask("POST", `${ZONE}/batch`, swap, { role: "steer" }).status, 403);
  api.refused(400, "POST", `${ZONE}/batch`, Array(1_001).fill(swap[0]));
});

test("what the table of fields says is told at the field that was sent", () => {
  let errors = [];
  const api = newApi({ check: ({ rooms }) => (rooms.length > 0 ? errors : []) });
  const error = (field, message, part = "room") => ({
    part,
    name: "x",
    field,
    message,
    fix: "mend it",
    excerpt: "",
  });
  for (const [found, pointer, code, column] of [
    [error("queueing_method", 'must be "fifo"'), "/queueing_method", 1002],
    [
      error("additional_routes.path", "is covered by room Shop on every host already"),
      "/additional_routes",
      1003,
    ],
    [error("cookie_attributes.samesite", "must be"), "/cookie_attributes/samesite", 1002],
    [error("cookie_attributes.domain", "is required"), "/anteroom/cookie_attributes/domain", 1002],
    [error("origin_guard.min", "must be"), "/anteroom/origin_guard/min", 1002],
    [error("bypass_rules", "is rule 2; column 4: must be"), "/expression", 1002, 4],
    [error("event_start_time", "is before the end of event x", "event"), "/event_start_time", 1003],
    [error("name", "is one room too many: there are"), "/name", 1005],
  ]) {
    errors = [found];
    const [told] = api.refused(400, "POST", ZONE, ROOM);
    assert.deepEqual([told.source.pointer, told.code, told.source.column], [pointer, code, column]);
    assert.match(told.message, /Fix: mend it/);
  }
});

test("there are no other endpoints, and wrong methods are named", () => {
  const api = newApi();
  for (const path of [
    "zones",
    "zones/z/rooms",
    "zones//waiting_rooms",
    `${ZONE}/a/b`,
    `${ZONE}/a/events/b/c`,
    "x/z/waiting_rooms",
  ])
    api.refused(404, "GET", path);
  for (const path of ["a%2Fb", "shop", `${"0".repeat(32)}`]) api.refused(404, "GET", `${ZONE}/${path}`);
  for (const [method, path] of [
    ["DELETE", ""],
    ["GET", "/preview"],
    ["POST", "/settings"],
    ["PATCH", "/x/rules"],
  ])
    api.refused(405, method, `${ZONE}${path}`);
  api.refused(405, "POST", "accounts/a/waiting_rooms", ROOM);
});

test("roles: reading, steering, all of it", () => {
  const api = newApi();
  const { id } = api.did("POST", ZONE, { ...ROOM, anteroom: { message: "a" } });
  const event = api.did("POST", `${ZONE}/${id}/events`, EVENT);
  const as = (role, method, path, body) => api.ask(method, `${ZONE}${path}`, body, { role }).status;
  for (const role of ["view", "steer"]) {
    assert.equal(as(role, "GET", ""), 200);
    assert.equal(as(role, "POST", "", { ...ROOM, name: "b" }), 403);
    assert.equal(as(role, "PUT", `/${id}`, ROOM), 403);
    assert.equal(as(role, "DELETE", `/${id}`), 403);
    assert.equal(as(role, "POST", `/${id}/events`, { ...EVENT, name: "b" }), 403);
    assert.equal(as(role, "PUT", `/${id}/rules`, []), 403);
    assert.equal(as(role, "PATCH", "/settings", {}), 403);
    assert.equal(as(role, "PATCH", `/${id}`, { path: "/x" }), 403);
    assert.equal(as(role, "PATCH", `/${id}`, { queue_all: true, anteroom: { count: "all" } }), 403);
  }
  const steered = { queue_all: true, total_active_users: 400, anteroom: { message: "b" } };
  assert.equal(as("view", "PATCH", `/${id}`, steered), 403);
  assert.equal(as("steer", "PATCH", `/${id}`, steered), 200);
  assert.equal(
    as("steer", "PATCH", `/${id}/events/${event.id}`, { event_end_time: "2030-11-28T20:00:00Z" }),
    200,
  );
});

test("Workers learn rooms as vars would describe them", () => {
  const api = newApi();
  const room = api.did("POST", ZONE, {
    ...ROOM,
    additional_routes: [{ host: "outlet.example.com" }],
    cookie_suffix: "s",
    cookie_attributes: { samesite: "LAX", secure: null },
    custom_page_html: "<p>{{waitTime}}</p>",
    queueing_method: "RANDOM",
    anteroom: { cookie_attributes: { partitioned: false }, message: "b", count: null },
  });
  api.did("POST", `${ZONE}/${room.id}/rules`, { ...RULE, enabled: false });
  api.did("POST", `${ZONE}/${room.id}/events`, { ...EVENT, total_active_users: null });
  const { version, rooms, events } = documentOf(api.book);
  assert.equal(version, 3);
  assert.deepEqual(rooms, [
    [
      room.id,
      "Sale",
      {
        host: "shop.example.com",
        total_active_users: 300,
        new_users_per_minute: 200,
        additional_routes: [{ host: "outlet.example.com" }],
        cookie_suffix: "s",
        cookie_attributes: { domain: "example.com", samesite: "lax", partitioned: false },
        custom_page_html: `made-${room.id}-1`,
        queueing_method: "random",
        message: "b",
        bypass_rules: [{ expression: RULE.expression, enabled: false }],
      },
    ],
  ]);
  assert.deepEqual(
    events.map(([, name, table]) => [name, table]),
    [
      [
        "night",
        { event_start_time: EVENT.event_start_time, event_end_time: EVENT.event_end_time, room: room.id },
      ],
    ],
  );
});

test("of a token there is a hash, and only its maker sees it; one that was revoked is forgotten in the end", () => {
  const api = newApi();
  const { token, id } = api.did("POST", "tokens", {
    name: "ci",
    role: "view",
    expires_on: "2026-11-28T08:00:00+01:00",
  });
  assert.equal(token, "anteroom_token-0");
  const kept = () => JSON.stringify([...api.rows]);
  assert.ok(kept().includes("hash-0") && !kept().includes(token));
  const ends = Date.parse("2026-11-28T07:00:00Z");
  assert.deepEqual(documentOf(api.book).tokens, [["ci", "view", "hash-0", ends]]);
  assert.deepEqual(pointers(api.refused(400, "POST", "tokens", { name: "CI", role: "view" })), ["/name"]);
  api.did("DELETE", `tokens/${id}`);
  assert.deepEqual([documentOf(api.book).tokens, api.did("GET", "tokens")], [[], []]);
  api.now += 31 * DAY;
  for (let number = 0; number < 100; number += 1)
    api.did("POST", "tokens", { name: `t${number}`, role: "steer" });
  assert.equal(kept().includes("hash-0"), false);
  const [error] = api.refused(400, "POST", "tokens", { name: "t100", role: "steer" });
  assert.equal(error.code, 1005);
});

test("a dry run says what would come of it, and nothing comes of it", () => {
  const api = newApi();
  assert.equal(api.did("POST", `${ZONE}?dry_run=true`, ROOM).name, "Sale");
  assert.equal(api.rows.size, 0);
});

test("a token may send 1,200 requests in five minutes, and others go on", () => {
  const rates = new Rates();
  for (let asked = 0; asked < 1_200; asked += 1) assert.equal(rates.count("anna", NOW + asked), 0);
  assert.equal(rates.count("anna", NOW + 240_000), 60);
  assert.equal(rates.count("bob", NOW + 240_000), 0);
  assert.equal(rates.count("anna", NOW + 300_000), 0);
});

test("Workers have nothing new to learn of a page that is kept to be looked at, nor of a plan", () => {
  const api = newApi();
  const { id } = api.did("POST", ZONE, { ...ROOM, name: "room" });
  const before = documentOf(api.book);
  api.did("POST", `${ZONE}/preview`, { custom_html: "x" });
  const plan = { set: { queue_all: true }, from: new Date(NOW + DAY).toISOString() };
  const planned = api.ask("POST", `${ZONE}/${id}/plans`, plan, { judged: { status: 200, body: {} } });
  assert.equal(planned.status, 200);
  api.did("DELETE", `${ZONE}/${id}/plans/${planned.body.result.id}`);
  assert.deepEqual(documentOf(api.book), before);
});
