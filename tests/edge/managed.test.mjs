// Rooms made at run time, in workerd: by Cloudflare's own client, in force in every colo, and what becomes of those who wait.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import Cloudflare from "cloudflare";

import { environment, PYTHON_PACKAGES } from "../../tools/toolchain.mjs";
import { ADMIN_TOKEN, eventually, HOST, openTicket, room, sleep, startWorld } from "./world.mjs";

const ZONE = "023e105f4ecef8ad9ca31a8372d0c353";
const V4 = "/__anteroom/client/v4";
const ROOMS = `${V4}/zones/${ZONE}/waiting_rooms`;
const WAIT = { total_active_users: 200, new_users_per_minute: 200, queue_all: true };
/** A change is in force everywhere after so many milliseconds. */
const IN_FORCE = 3_000;

/** What the API answers; `token`: none where it is empty. */
async function ask(world, method, path, body, { token = ADMIN_TOKEN, headers = {}, ...more } = {}) {
  const answer = await world.send({
    method,
    path: path.startsWith("/") ? path : `${ROOMS}${path && `/${path}`}`,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    body: typeof body === "string" ? body : body && JSON.stringify(body),
    ...more,
  });
  assert.match(
    answer.headers["content-type"] ?? "",
    /^application\/json/,
    `${method} ${path}: ${answer.body}`,
  );
  return { status: answer.status, headers: answer.headers, ...JSON.parse(answer.body) };
}

async function made(world, body) {
  const { result, errors } = await ask(world, "POST", "", body);
  assert.ok(result?.id, JSON.stringify(errors));
  return result;
}

/** Waits until all these visits are answered so, for as long as that may take. */
async function inForceAt(world, visits, what, is) {
  const began = Date.now();
  for (;;) {
    const answers = await Promise.all(visits.map((visit) => world.send(visit)));
    if (answers.every(is)) return;
    assert.ok(Date.now() - began < IN_FORCE, `${what} is in force after ${IN_FORCE} ms`);
    await sleep(250);
  }
}

const pointers = ({ errors }) => errors.map(({ source }) => source?.pointer);

describe("Cloudflare's own client", () => {
  let world;
  let client;
  before(async () => {
    world = await startWorld({
      rooms: { deployed: room("/deployed") },
      vars: { OPERATOR_TOKENS: "wall:view:the-token-of-the-wall,busy:view:the-token-of-the-busy" },
      colos: { AMS: 1 },
    });
    client = new Cloudflare({ apiToken: ADMIN_TOKEN, baseURL: `${world.address()}${V4}`, maxRetries: 1 });
  });
  after(() => world.close());
  const zone = { zone_id: ZONE };

  test("does all that it can do with rooms", async () => {
    const sent = {
      name: "Shop_Room-1",
      host: "shop.example.com",
      path: "/sale",
      new_users_per_minute: 200,
      total_active_users: 300,
      additional_routes: [{ host: "shop2.example.com", path: "/sale" }],
      cookie_attributes: { samesite: "none", secure: "always" },
      cookie_suffix: "sale",
      custom_page_html: "{{#waitTimeKnown}}{{waitTime}} mins{{/waitTimeKnown}}",
      default_template_language: "de-DE",
      description: "Sale",
      enabled_origin_commands: ["revoke"],
      json_response_enabled: true,
      queueing_status_code: 202,
      turnstile_action: "infinite_queue",
      turnstile_mode: "visible_managed",
    };
    const created = await client.waitingRooms.create({ ...zone, ...sent });
    for (const [field, value] of Object.entries(sent)) assert.deepEqual(created[field], value, field);
    const { id } = created;
    assert.deepEqual(await client.waitingRooms.get(id, zone), created);
    const small = {
      name: "renamed",
      host: "shop.example.com",
      new_users_per_minute: 1,
      total_active_users: 1,
    };
    const updated = await client.waitingRooms.update(id, { ...zone, ...small });
    assert.deepEqual(
      [updated.id, updated.name, updated.path, updated.total_active_users],
      [id, "renamed", "/", 1],
    );
    const edited = await client.waitingRooms.edit(id, { ...zone, queue_all: true });
    assert.deepEqual([edited.queue_all, edited.name], [true, "renamed"]);
    for (let number = 0; number < 6; number += 1)
      await client.waitingRooms.create({ ...zone, ...small, name: `more-${number}`, path: `/${number}` });
    for (const scope of [zone, { account_id: "01a7362d577a6c3019a474fd6f485823" }]) {
      const all = await Array.fromAsync(client.waitingRooms.list({ ...scope, per_page: 5 }));
      assert.deepEqual(all.map(({ name }) => name).slice(0, 3), ["deployed", "renamed", "more-0"]);
      assert.equal(all.length, 8);
    }
    const status = await client.waitingRooms.statuses.get(id, zone);
    assert.deepEqual(status, {
      status: "queueing",
      event_id: "",
      estimated_queued_users: 0,
      estimated_total_active_users: 0,
      max_estimated_time_minutes: 0,
    });
    assert.deepEqual(await client.waitingRooms.delete(id, zone), { id });
  });

  test("does all that it can do with events and rules", async () => {
    const of = {
      ...zone,
      name: "of-events",
      host: "events.example.com",
      new_users_per_minute: 9,
      total_active_users: 9,
    };
    const { id: waiting_room_id } = await client.waitingRooms.create(of);
    const at = { ...zone, waiting_room_id };
    const { events, rules } = client.waitingRooms;
    const times = {
      event_start_time: "2030-11-28T09:00:00+01:00",
      event_end_time: "2030-11-28T19:00:00+01:00",
    };
    const event = await events.create(waiting_room_id, { ...zone, name: "night", ...times });
    assert.deepEqual([event.event_start_time, event.total_active_users], [times.event_start_time, null]);
    assert.deepEqual(await events.get(event.id, at), event);
    const more = {
      prequeue_start_time: "2030-11-28T07:00:00Z",
      shuffle_at_event_start: true,
      session_duration: null,
    };
    const updated = await events.update(event.id, { ...at, name: "night", ...times, ...more });
    assert.equal(updated.prequeue_start_time, more.prequeue_start_time);
    const edited = await events.edit(event.id, { ...at, description: "late" });
    assert.deepEqual([edited.description, edited.name], ["late", "night"]);
    const details = await events.details.get(event.id, at);
    assert.deepEqual([details.total_active_users, details.queueing_method], [9, "fifo"]);
    const all = (list) => Array.fromAsync(list);
    assert.deepEqual(
      (await all(events.list(waiting_room_id, zone))).map(({ name }) => name),
      ["night"],
    );
    assert.equal(
      (await client.waitingRooms.get(waiting_room_id, zone)).next_event_start_time,
      times.event_start_time,
    );
    assert.deepEqual(await events.delete(event.id, at), { id: event.id });
    const rule = { action: "bypass_waiting_room", expression: "ip.src in {192.0.2.0/24}" };
    const [first] = await all(rules.create(waiting_room_id, { ...zone, rules: rule }));
    assert.deepEqual([first.version, first.enabled], ["1", true]);
    const put = await all(
      rules.update(waiting_room_id, { ...zone, rules: [rule, { ...rule, description: "b" }] }),
    );
    assert.deepEqual(
      put.map(({ description }) => description),
      ["", "b"],
    );
    const moved = await all(rules.edit(put[1].id, { ...at, ...rule, position: { index: 1 } }));
    assert.deepEqual(
      moved.map(({ id }) => id),
      [put[1].id, put[0].id],
    );
    assert.deepEqual(await all(rules.get(waiting_room_id, zone)), moved);
    assert.equal((await all(rules.delete(moved[0].id, at))).length, 1);
    assert.deepEqual(await all(rules.update(waiting_room_id, { ...zone, rules: [] })), []);
  });

  test("does the same in Python", async () => {
    const program = fileURLToPath(new URL("client.py", import.meta.url));
    const env = { ...environment(), PYTHONPATH: PYTHON_PACKAGES };
    const args = [program, `${world.address()}${V4}`, ADMIN_TOKEN];
    const { stdout } = await promisify(execFile)("python3", args, { env });
    assert.equal(stdout, "done\n");
  });

  test("has settings and previews", async () => {
    const { settings } = client.waitingRooms;
    assert.deepEqual(await settings.get(zone), { search_engine_crawler_bypass: false });
    // One after the other: the client calls at once, and of calls at once any may come first.
    for (const [change, bypass] of [
      [() => settings.update({ ...zone, search_engine_crawler_bypass: true }), true],
      [() => settings.edit(zone), true],
      [() => settings.edit({ ...zone, search_engine_crawler_bypass: false }), false],
    ])
      assert.deepEqual(await change(), { search_engine_crawler_bypass: bypass });
    const html =
      "<p>{{#waitTimeKnown}}{{waitTime}} minutes{{/waitTimeKnown}}{{#queueAll}}closed{{/queueAll}}</p>";
    const { preview_url: url } = await client.waitingRooms.page.preview({ ...zone, custom_html: html });
    assert.equal(await (await fetch(`${url}?waitTime=12`)).text(), "<p>12 minutes</p>");
    assert.equal(await (await fetch(`${url}?force_queue=true`)).text(), "<p>closed</p>");
  });

  test("is told what is wrong, by the class of the error, and tries again only where that may help", async () => {
    const wrong = { ...zone, name: "a b", host: "x", new_users_per_minute: 0, total_active_users: 1 };
    await assert.rejects(client.waitingRooms.create(wrong), (error) => {
      assert.ok(error instanceof Cloudflare.BadRequestError);
      assert.deepEqual(
        error.errors.map(({ source }) => source.pointer),
        ["/name"],
      );
      assert.equal(error.headers.get("x-should-retry"), "false");
      return true;
    });
    await assert.rejects(client.waitingRooms.get("f".repeat(32), zone), Cloudflare.NotFoundError);
    const nobody = new Cloudflare({ apiToken: "a-token-of-somebody-else", baseURL: client.baseURL });
    await assert.rejects(Array.fromAsync(nobody.waitingRooms.list(zone)), Cloudflare.AuthenticationError);
    const as = (apiToken) => new Cloudflare({ apiToken, baseURL: client.baseURL, maxRetries: 0 });
    const wall = as("the-token-of-the-wall");
    await assert.rejects(
      wall.waitingRooms.create({ ...wrong, name: "a" }),
      Cloudflare.PermissionDeniedError,
      "who only views makes nothing",
    );
    const busy = as("the-token-of-the-busy");
    const asks = () => busy.waitingRooms.settings.get(zone);
    for (let asked = 0; asked < 1_200; asked += 100) await Promise.all(Array.from({ length: 100 }, asks));
    await assert.rejects(asks(), (error) => {
      assert.ok(error instanceof Cloudflare.RateLimitError);
      assert.ok(Number(error.headers.get("retry-after")) > 0);
      return true;
    });
    assert.ok(await wall.waitingRooms.settings.get(zone), "others are answered");
    await world.fault("Config", "", "throw");
    await assert.rejects(wall.waitingRooms.settings.get(zone), Cloudflare.InternalServerError);
    // It tries again by itself, and is answered once the object is back.
    const asked = async () => (await world.calls("config")).filter(({ route }) => route === "/client").length;
    const before = await asked();
    // As often as it takes until the fault is over.
    const answer = client.waitingRooms.settings.get(zone, { maxRetries: 1_000 });
    await eventually("it has tried", async () => (await asked()) > before);
    await world.fault("Config", "");
    assert.ok(await answer);
    const byKey = new Cloudflare({
      apiToken: null,
      apiKey: ADMIN_TOKEN,
      apiEmail: "a@example.com",
      baseURL: client.baseURL,
    });
    assert.equal((await byKey.waitingRooms.list(zone)).result[0].name, "deployed");
  });
});

describe("the API", () => {
  let world;
  before(async () => {
    world = await startWorld({
      rooms: { deployed: room("/deployed") },
      vars: { OPERATOR_TOKENS: "wall:view:the-token-of-the-wall" },
      colos: { AMS: 1 },
    });
  });
  after(() => world.close());

  test("is on hosts without a room, and says which secret it wants", async () => {
    assert.equal((await ask(world, "GET", "", undefined, { host: "other.test" })).status, 200);
    const bare = await ask(world, "GET", "", undefined, {
      token: "",
      headers: { "x-auth-email": "a@b.example" },
    });
    assert.deepEqual([bare.status, bare.success, bare.result], [401, false, null]);
    assert.match(bare.errors[0].message, /brings x-auth-email$/);
    const byService = { token: "", headers: { "x-auth-user-service-key": ADMIN_TOKEN } };
    assert.equal((await ask(world, "GET", "", undefined, byService)).status, 200);
    const viewer = await ask(
      world,
      "POST",
      "",
      { ...WAIT, name: "a", host: HOST },
      { token: "the-token-of-the-wall" },
    );
    assert.deepEqual([viewer.status, viewer.errors[0].code], [403, 10000]);
  });

  test("says by the table of fields what is wrong", async () => {
    const base = { ...WAIT, name: "wrong", host: "wrong.test" };
    for (const [body, pointer] of [
      [{ ...base, total_active_users: 0 }, "/total_active_users"],
      [{ ...base, session_duration: 31 }, "/session_duration"],
      [{ ...base, queueing_method: "lifo" }, "/queueing_method"],
      [{ ...base, path: "sale" }, "/path"],
      [{ ...base, host: "*.test" }, "/host"],
      [{ ...base, cookie_attributes: { samesite: "some" } }, "/cookie_attributes/samesite"],
      [{ ...base, anteroom: { count: "some" } }, "/anteroom/count"],
      [{ ...base, anteroom: { nonsense: 1 } }, "/anteroom/nonsense"],
      [{ ...base, custom_page_html: "{{#open}}" }, "/custom_page_html"],
    ]) {
      const refused = await ask(world, "POST", "", body);
      assert.deepEqual(
        [refused.status, ...pointers(refused)],
        [400, pointer],
        JSON.stringify(refused.errors),
      );
    }
    const { id } = await made(world, base);
    const taken = await ask(world, "POST", "", { ...base, name: "other" });
    assert.deepEqual([taken.status, taken.errors[0].code, ...pointers(taken)], [400, 1003, "/path"]);
    assert.match(taken.errors[0].message, /room wrong/, "by the name that people know");
    const over = await ask(world, "POST", "", { ...WAIT, name: "over", host: HOST, path: "/deployed" });
    assert.equal(over.status, 200, "a room of one host before one of all");
    const rule = { action: "bypass_waiting_room", expression: "http.host eq" };
    const refused = await ask(world, "POST", `${id}/rules?dry_run=true`, rule);
    assert.deepEqual([refused.status, ...pointers(refused)], [400, "/expression"]);
    assert.equal(refused.errors[0].source.column, 13, "a form can mark it");
    const list = [
      { ...rule, expression: 'http.host eq "ä"' },
      { ...rule, expression: '"😀" eq x' },
    ];
    const [second] = (await ask(world, "PUT", `${id}/rules`, list)).errors;
    assert.deepEqual(second.source, { pointer: "/1/expression", column: 1 });
    assert.match(refused.errors[0].message, /column 13: \w+.*Fix: \w+/s, "in words");
    const event = (name, from, to) => ({
      name,
      event_start_time: `2030-11-28T${from}:00Z`,
      event_end_time: `2030-11-28T${to}:00Z`,
    });
    assert.equal((await ask(world, "POST", `${id}/events`, event("one", "10:00", "12:00"))).status, 200);
    const overlap = await ask(world, "POST", `${id}/events`, event("two", "11:00", "13:00"));
    assert.deepEqual([overlap.status, overlap.errors[0].code], [400, 1003]);
    const short = await ask(world, "POST", `${id}/events`, event("three", "14:00", "14:00"));
    assert.deepEqual(pointers(short), ["/event_end_time"]);
    // A change of the room that one of its events could not have.
    const bad = await ask(world, "PATCH", `${id}`, { anteroom: { limits: "adaptive" } });
    assert.equal(bad.status, 400);
  });

  test("takes bodies up to a megabyte and a fifth", async () => {
    const page = (length) => ({
      ...WAIT,
      name: `page-${length}`,
      host: `p${length}.test`,
      custom_page_html: "x".repeat(length),
    });
    assert.equal((await ask(world, "POST", "", page(1 << 20))).status, 200);
    assert.deepEqual(pointers(await ask(world, "POST", "", page((1 << 20) + 1))), ["/custom_page_html"]);
    assert.equal((await ask(world, "POST", "", page(1_300_000))).status, 413);
  });

  test("does not read the body of a DELETE, and remembers who did what", async () => {
    const { id } = await made(world, { ...WAIT, name: "short-lived", host: "short.test" });
    const gone = await ask(world, "DELETE", id, undefined, {
      headers: { "content-type": "application/json" },
    });
    assert.deepEqual(gone.result, { id });
    const { result } = await ask(world, "GET", "log");
    const [last, first] = result.filter(({ path, after }) => path.includes(id) || after?.id === id);
    assert.deepEqual(
      [last.method, last.by, last.before.name, last.after],
      ["DELETE", "admin", "short-lived", { id }],
    );
    assert.deepEqual([first.method, first.before, first.after.name], ["POST", null, "short-lived"]);
  });

  test("outlives its object", async () => {
    const { id } = await made(world, { ...WAIT, name: "lasting", host: "lasting.test" });
    await world.restart("Config", "config");
    assert.equal((await ask(world, "GET", id)).result.name, "lasting");
  });
});

describe("a room made at run time", () => {
  let world;
  const everywhere = [
    { colo: "AMS", worker: 0 },
    { colo: "AMS", worker: 1 },
    { colo: "SIN", worker: 0 },
  ];

  /** Asks every worker as visitors do, again and again, until all say so; fails unless that is in time. */
  const inForce = (path, what, is) =>
    inForceAt(
      world,
      everywhere.map((where) => ({ ...where, path })),
      what,
      is,
    );

  before(async () => {
    world = await startWorld({ rooms: { deployed: room("/deployed") }, colos: { AMS: 2, SIN: 1 } });
    // While none was ever made, nobody looks so often.
    await made(world, { ...WAIT, name: "first", host: HOST, path: "/first" });
    for (let second = 0; second < 60; second += 10) {
      await Promise.all(everywhere.map((where) => world.send({ ...where, path: "/first" })));
      await sleep(10_000);
    }
    await inForce("/first", "the first room", (answer) => answer.waiting);
  });
  after(() => world.close());
  test("is in force in every colo after three seconds, and keeps its queue whatever it is called", async () => {
    await inForce("/new", "nothing", (answer) => answer.fromOrigin);
    const body = {
      ...WAIT,
      name: "new",
      host: HOST,
      path: "/new",
      anteroom: { refresh_interval_seconds: 5 },
    };
    const { id } = await made(world, body);
    await inForce("/new", "a new room", (answer) => answer.waiting);
    const visitor = world.visitor({ colo: "SIN", path: "/new" });
    assert.ok((await visitor.get()).waiting);
    const place = openTicket(id, visitor.ticket());
    await ask(world, "PATCH", id, { name: "other", description: "renamed", total_active_users: 250 });
    await sleep(5_000);
    assert.ok((await visitor.get()).waiting);
    const same = openTicket(id, visitor.ticket());
    assert.deepEqual([same.id, same.bucket], [place.id, place.bucket]);
    const status = await ask(world, "GET", `${id}/status`);
    assert.deepEqual([status.result.status, status.result.estimated_queued_users > 0], ["queueing", true]);
    // The room opens: whoever waits enters, by the object that counts for all colos.
    await ask(world, "PATCH", id, { queue_all: false });
    await eventually("the visitor enters", async () => (await visitor.get()).fromOrigin, { every: 1_000 });
    assert.ok(openTicket(id, visitor.ticket()).acceptedAt);
    // Its page moves: nobody loses the place, and the old path is the origin's.
    await ask(world, "PATCH", id, { path: "/moved", queue_all: true });
    await inForce("/moved", "the other path", (answer) => answer.waiting);
    await inForce("/new", "the old path", (answer) => answer.fromOrigin && answer.setCookie.length === 0);
  });

  test("ends for those who wait when it is deleted, and comes back as it was", async () => {
    const { id } = await made(world, { ...WAIT, name: "ending", host: HOST, path: "/ending" });
    await inForce("/ending", "a new room", (answer) => answer.waiting);
    const visitor = world.visitor({ colo: "SIN", path: "/ending" });
    await visitor.get();
    const place = openTicket(id, visitor.ticket());
    await ask(world, "DELETE", id);
    await inForce("/ending", "its end", (answer) => answer.fromOrigin);
    assert.ok((await visitor.get()).fromOrigin);
    await ask(world, "POST", `${id}/restore`);
    await inForce("/ending", "its return", (answer) => answer.waiting);
    await visitor.get();
    assert.equal(openTicket(id, visitor.ticket()).id, place.id);
  });

  test("says what a change would do to those who wait, as long as it is only tried", async () => {
    const { id } = await made(world, { ...WAIT, name: "tried", host: HOST, path: "/tried" });
    await inForce("/tried", "a new room", (answer) => answer.waiting);
    const tries = async (method, path, body) => {
      const { messages, errors } = await ask(world, method, `${id}${path}?dry_run=true`, body);
      assert.deepEqual(errors, []);
      return messages.map(({ message, source }) => [source?.pointer, message]);
    };
    await eventually("those who wait are counted", async () => {
      const [[pointer, message], ...more] = await tries("DELETE", "");
      assert.deepEqual([pointer, more], [undefined, []]);
      return /^\d+ waits? and nobody is in: those who wait get the origin/.test(message);
    });
    assert.match(
      (await tries("PATCH", "", { path: "/there" }))[0][1],
      / waits? .* is led to \/there and keeps/,
    );
    assert.deepEqual(await tries("PATCH", "", { description: "mine" }), []);
    const at = (ms) => new Date(Date.now() + ms).toISOString();
    const event = { name: "on", event_start_time: at(-1_000), event_end_time: at(2_000_000) };
    assert.match((await tries("POST", "/events", event))[0][1], / waits? .*: the event is on at once/);
    const { result } = await ask(world, "POST", `${id}/events`, event);
    await eventually("it is on", async () => {
      const [told] = await tries("DELETE", `/events/${result.id}`);
      return told && /: the event is on and ends: the room's own limits hold, 200 users/.test(told[1]);
    });
    assert.deepEqual((await ask(world, "PATCH", id, { description: "mine" })).messages, [], "it is done");
    const page = await ask(world, "PATCH", `${id}?dry_run=true`, { custom_page_html: "{{#open}}" });
    assert.deepEqual([page.status, ...pointers(page)], [400, "/custom_page_html"], "pages are tried too");
    await world.fault("Global", id, "throw");
    const [[, unknown]] = await tries("DELETE", "");
    assert.match(unknown, /^How many wait and are in is not known, as the room's object does not answer: /);
    await world.fault("Global", id);
    assert.equal((await ask(world, "GET", id)).status, 200, "nothing was done");
  });

  test("shows the page that came with it", async () => {
    const page = { custom_page_html: "<h1>Ours: {{#queueAll}}closed{{/queueAll}}</h1>" };
    const { id } = await made(world, { ...WAIT, ...page, name: "paged", host: HOST, path: "/paged" });
    await inForce("/paged", "its page", (answer) => answer.body === "<h1>Ours: closed</h1>");
    await ask(world, "PATCH", id, { custom_page_html: "<h1>Another</h1>" });
    await inForce("/paged", "its other page", (answer) => answer.body === "<h1>Another</h1>");
  });

  test("has events and rules", async () => {
    const { id } = await made(world, {
      ...WAIT,
      queue_all: false,
      name: "eventful",
      host: HOST,
      path: "/eventful",
    });
    await inForce("/eventful", "a new room", (answer) => answer.fromOrigin && answer.setCookie.length > 0);
    const at = (ms) => new Date(Date.now() + ms).toISOString();
    const event = {
      name: "soon",
      event_start_time: at(1_000_000),
      event_end_time: at(2_000_000),
      prequeue_start_time: at(1_000),
    };
    assert.equal((await ask(world, "POST", `${id}/events`, event)).status, 200);
    await sleep(1_000);
    await inForce("/eventful", "the prequeue", (answer) => answer.waiting);
    const { result } = await ask(world, "GET", `${id}/status`);
    const [{ id: eventId }] = (await ask(world, "GET", `${id}/events`)).result;
    assert.deepEqual([result.status, result.event_id], ["event_prequeueing", eventId]);
    const rule = {
      action: "bypass_waiting_room",
      expression: 'starts_with(http.request.uri.path, "/eventful")',
    };
    assert.equal((await ask(world, "PUT", `${id}/rules`, [rule])).status, 200);
    await inForce("/eventful", "the rule", (answer) => answer.fromOrigin && answer.setCookie.length === 0);
  });

  test("is steered like any other, by its name or its id", async () => {
    const { id } = await made(world, {
      ...WAIT,
      queue_all: false,
      name: "Steered",
      host: HOST,
      path: "/steered",
    });
    await inForce("/steered", "a new room", (answer) => answer.fromOrigin && answer.setCookie.length > 0);
    for (const [name, queue_all] of [
      ["steered", true],
      [id, false],
    ]) {
      const body = JSON.stringify({ set: { queue_all } });
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const steered = await world.send({
        method: "POST",
        path: `/__anteroom/steering?room=${name}`,
        headers,
        body,
      });
      assert.equal(steered.status, 200, steered.body);
    }
  });

  test("goes on without the object that keeps it, and costs nobody a call", async () => {
    const { id } = await made(world, { ...WAIT, queue_all: false, name: "kept", host: HOST, path: "/kept" });
    await inForce("/kept", "a new room", (answer) => answer.fromOrigin && answer.setCookie.length > 0);
    for (const mode of ["throw", "hang"]) {
      await world.fault("Config", "", mode);
      const refused = await ask(world, "PATCH", id, { queue_all: true });
      assert.deepEqual([refused.status, refused.headers["retry-after"]], [503, "2"]);
      for (let second = 0; second < 4; second += 1) {
        const answers = await Promise.all(everywhere.map((where) => world.send({ ...where, path: "/kept" })));
        assert.ok(
          answers.every((answer) => answer.fromOrigin && answer.setCookie.length > 0),
          mode,
        );
        await sleep(1_000);
      }
      await world.fault("Config", "");
    }
    const visitor = world.visitor({ path: "/kept" });
    await visitor.get();
    await sleep(2_000);
    const calls = async () => (await world.calls("config")).length;
    const [before, began] = [await calls(), Date.now()];
    for (let request = 0; request < 20; request += 1) await visitor.get();
    // One look a second of this isolate, whatever comes.
    assert.ok((await calls()) - before <= 1 + (Date.now() - began) / 1_000);
  });
});

describe("where no room is", { concurrency: true }, () => {
  let world;
  before(async () => {
    world = await startWorld({ rooms: {}, colos: { AMS: 1, SIN: 1 } });
  });
  after(() => world.close());
  const at = { host: "new.test" };

  test("the dashboard is there, and the first room can be made in it, in force everywhere like any other", async () => {
    const visits = ["AMS", "SIN"].map((colo) => ({ host: "first.test", path: "/", colo }));
    await inForceAt(world, visits, "nothing", ({ fromOrigin }) => fromOrigin);
    const page = await world.send({ ...at, path: "/__anteroom/" });
    assert.deepEqual([page.status, page.fromOrigin], [401, false]);
    for (const [name, type] of [
      ["dashboard.js", "text/javascript; charset=utf-8"],
      ["dashboard.css", "text/css; charset=utf-8"],
    ]) {
      const asset = await world.send({ ...at, path: `/__anteroom/${name}` });
      assert.deepEqual([asset.status, asset.headers["content-type"]], [200, type]);
    }
    const signedIn = await world.send({
      ...at,
      path: "/__anteroom/session",
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token: ADMIN_TOKEN }),
    });
    assert.equal(signedIn.status, 303);
    const cookie = signedIn.setCookie[0].split(";")[0];
    for (const path of ["", "?figures"]) {
      const dashboard = await world.send({ ...at, path: `/__anteroom/${path}`, headers: { cookie } });
      assert.equal(dashboard.status, 200);
    }
    const status = () => world.send({ ...at, path: "/__anteroom/status", headers: { cookie } });
    assert.deepEqual(JSON.parse((await status()).body).rooms, []);
    const headers = { cookie, "sec-fetch-site": "same-origin" };
    const first = { name: "first", host: "first.test", ...WAIT };
    const answer = await ask(world, "POST", "", first, { ...at, token: "", headers });
    assert.deepEqual([answer.status, answer.result.name], [200, "first"]);
    await inForceAt(world, visits, "the first room", ({ waiting }) => waiting);
    assert.deepEqual(
      JSON.parse((await status()).body).rooms.map(({ label }) => label),
      ["first"],
    );
  });

  test("all else is the origin's alone", async () => {
    for (const path of ["/", "/__anteroom-like", "/x/__anteroom/"]) {
      const answer = await world.send({ ...at, path });
      assert.deepEqual([answer.fromOrigin, answer.setCookie], [true, []], path);
    }
  });
});

describe("a Worker that starts while nobody can say which rooms were made", { concurrency: true }, () => {
  const here = { path: "/somewhere" };

  test("lets everybody through where no room is known", async (t) => {
    const world = await startWorld({
      rooms: { deployed: room("/deployed", { queue_all: true }) },
      colos: { AMS: 1 },
    });
    t.after(() => world.close());
    await world.fault("Config", "", "throw");
    assert.ok((await world.send(here)).fromOrigin);
    assert.ok((await world.send({ path: "/deployed" })).waiting, "what is deployed is known");
  });

  test("holds everybody up there, if the owner says so, and as long as nobody knows", async (t) => {
    const vars = { CONFIG_ON_ERROR: "hold" };
    const world = await startWorld({ rooms: { deployed: room("/deployed") }, vars, colos: { AMS: 1 } });
    t.after(() => world.close());
    await world.fault("Config", "", "throw");
    assert.equal((await world.send(here)).status, 503);
    assert.ok((await world.send({ path: "/deployed" })).fromOrigin);
    await world.fault("Config", "");
    await eventually("it is known", async () => (await world.send(here)).fromOrigin);
  });
});
