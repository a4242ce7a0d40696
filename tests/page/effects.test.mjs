// What `dry_run=true` says of those who wait and those who are in: for each change, from what the room's object counts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { effectsOf, matters } from "../../src/edge/client/effects.js";
import { shownEvent, shownRoom } from "../../src/edge/client/fields.js";

const NOW = Date.parse("2026-11-27T08:00:00Z");
const entry = (name, fields) => ({ id: `id-of-${name}`, name, created: NOW, modified: NOW, fields });
const room = (fields = {}) =>
  shownRoom(
    entry("sale", {
      ...{ host: "shop.example.com", path: "/sale", total_active_users: 300, new_users_per_minute: 20 },
      ...fields,
    }),
  );
const event = (fields = {}) =>
  shownEvent(
    entry("night", {
      ...{ event_start_time: "2026-11-27T07:00:00Z", event_end_time: "2026-11-27T09:00:00Z" },
      ...fields,
    }),
  );
const status = (more = {}) => ({
  ...{ estimated_queued_users: 12, estimated_total_active_users: 40, event_id: "", event_phase: null },
  ...{ events: [], steering: { overrides: [] } },
  ...more,
});
const change = (before, after, more = {}) => ({
  ...{ before, after, isEvent: false, room: before, events: [], now: NOW },
  ...more,
});
const ofEvent = (before, after) => change(before, after, { isEvent: true, room: room() });
const said = (...told) => effectsOf(...told).map(({ message, source }) => [source?.pointer, message]);
const COUNTS = "12 wait and 40 are in: ";

test("who deletes a room reads how many wait, and what they get", () => {
  assert.deepEqual(said(change(room(), null), status()), [
    [undefined, `${COUNTS}those who wait get the origin, like everybody else`],
  ]);
  const page = room({ anteroom: { when_deleted: "page" } });
  assert.match(said(change(page, null), status())[0][1], /told once that the line has ended/);
  const [one, none] = [
    { estimated_queued_users: 1, estimated_total_active_users: 0 },
    { estimated_queued_users: 0, estimated_total_active_users: 1 },
  ].map((counts) => said(change(room(), null), status(counts))[0][1]);
  assert.match(one, /^1 waits and nobody is in: /);
  assert.match(none, /^Nobody waits and 1 is in: /);
  assert.match(said(change(room(), null), undefined)[0][1], /^How many .* not known, .*: those who wait get/);
});

test("each field that does something to somebody says so", () => {
  for (const [was, is, pointer, text] of [
    [{}, { suspended: true }, "/suspended", /all of them get the origin/],
    [{ suspended: true }, {}, "/suspended", /new to it/],
    [{}, { queue_all: true }, "/queue_all", /nobody new enters/],
    [{ queue_all: true }, {}, "/queue_all", /enter as soon as/],
    [{}, { total_active_users: 30 }, "/total_active_users", /until fewer than 30 are in/],
    [
      {},
      { anteroom: { total_active_users: { min: 1, max: 39 }, limits: "adaptive" } },
      "/total_active_users",
      /fewer than 39/,
    ],
    [{}, { new_users_per_minute: 5 }, "/new_users_per_minute", /enters in 3 minutes at the soonest/],
    [{}, { session_duration: 1 }, "/session_duration", /last seen more than a minute ago is new/],
    [
      { disable_session_renewal: true },
      { disable_session_renewal: true, session_duration: 2 },
      "/session_duration",
      /who entered more than 2 minutes ago/,
    ],
    [{}, { disable_session_renewal: true }, "/disable_session_renewal", /entered more than 5 minutes ago/],
    [
      {},
      { anteroom: { max_session_duration: 60 } },
      "/anteroom/max_session_duration",
      /entered more than 60 minutes ago/,
    ],
    [{}, { queueing_method: "REJECT" }, "/queueing_method", /nobody waits; .* kept for 300 s/],
    [{}, { queueing_method: "passthrough" }, "/queueing_method", /all who wait enter/],
    [{}, { queueing_method: "random" }, "/queueing_method", /by lot/],
    [{ queueing_method: "random" }, {}, "/queueing_method", /in which they came/],
    [{}, { anteroom: { mode: "observe" } }, "/anteroom/mode", /all who wait pass/],
    [{ anteroom: { mode: "observe" } }, {}, "/anteroom/mode", /may have to wait/],
    [{}, { cookie_suffix: "sale" }, "/cookie_suffix", /all of them are new/],
    [{}, { anteroom: { bind_ticket: "address" } }, "/anteroom/bind_ticket", /all of them are new/],
  ]) {
    const tried = change(room(was), room(is));
    assert.ok(matters(tried));
    const [[told, message], ...more] = said(tried, status());
    assert.deepEqual([told, more], [pointer, []]);
    assert.ok(message.startsWith(COUNTS), message);
    assert.match(message, text);
  }
});

test("who moves a room reads who is led to the new place, and who is not", () => {
  const outlet = { additional_routes: [{ host: "outlet.example.com" }] };
  for (const [was, is, expected] of [
    [{}, { path: "/new" }, [["/path", /who comes to shop.example.com\/sale is led to \/new/]]],
    [
      {},
      { host: "other.example.com" },
      [["/host", /gets the origin, and is new at other.example.com\/sale/]],
    ],
    [{}, { host: "SHOP.example.com" }, []],
    [outlet, {}, [["/additional_routes", /who comes to outlet.example.com\/ gets the origin/]]],
    [{}, outlet, []],
    [
      {},
      {
        host: "outlet.example.com",
        additional_routes: [{ host: "shop.example.com", path: "/sale" }],
      },
      [],
    ],
  ]) {
    const told = said(change(room(was), room(is)), status());
    assert.equal(told.length, expected.length, JSON.stringify(told));
    for (const [place, [pointer, text]] of expected.entries()) {
      assert.equal(told[place][0], pointer);
      assert.match(told[place][1], text);
    }
  }
});

test("nothing is said where nothing happens to anybody", () => {
  for (const is of [
    {},
    { description: "mine", json_response_enabled: true },
    { session_duration: 9, anteroom: { message: "hello" } },
  ]) {
    const tried = change(room(), room(is));
    assert.deepEqual([matters(tried), said(tried, status())], [false, []]);
  }
  // Limits say something only to those who are above them, and nobody knows yet.
  for (const is of [{ total_active_users: 40 }, { total_active_users: 400 }, { new_users_per_minute: 12 }]) {
    const tried = change(room(), room(is));
    assert.deepEqual([matters(tried), said(tried, status())], [true, []]);
  }
});

test("what an operator or an event has set holds", () => {
  const tried = change(room(), room({ queue_all: true, total_active_users: 30 }), {
    events: [event({ total_active_users: 100, new_users_per_minute: 10 })],
  });
  const steered = status({ steering: { overrides: [{ field: "queue_all" }] } });
  assert.deepEqual(
    said(tried, steered).map(([, text]) => text.slice(COUNTS.length)),
    [
      "an operator has set this: the change holds once that is cleared",
      "all who are in stay in, and nobody new enters until fewer than 30 are in",
    ],
  );
  const on = status({ event_id: "id-of-night", event_phase: "active" });
  assert.match(said(tried, on)[1][1], /event night has its own value: the change holds once it is over$/);
});

test("an event that is on and ends, or is on at once, is told", () => {
  const on = status({ event_id: "id-of-night", event_phase: "active" });
  const gathers = status({ event_id: "id-of-night", event_phase: "prequeueing" });
  const limited = { total_active_users: 30, new_users_per_minute: 10 };
  for (const [was, is, how, pointer, text] of [
    [event(), null, on, undefined, /is on and ends: .* 300 users and 20 new ones a minute$/],
    [event(), event({ suspended: true }), on, "/suspended", /is on and ends/],
    [event(), event({ event_end_time: "2026-11-27T07:30:00Z" }), on, "/event_end_time", /is on and ends/],
    [event(), event({ event_start_time: "2026-11-27T08:30:00Z" }), on, "/event_end_time", /is on and ends/],
    [null, event(limited), status(), "/event_start_time", /at once: .* 30 users and 10 new ones a minute$/],
    [
      null,
      event({ prequeue_start_time: "2026-11-27T07:50:00Z", event_start_time: "2026-11-27T08:30:00Z" }),
      status(),
      "/prequeue_start_time",
      /nobody new enters from now on until .* 2026-11-27T08:30:00Z$/,
    ],
    [
      event(),
      event({ ...limited, new_users_per_minute: 20 }),
      on,
      "/total_active_users",
      /until fewer than 30 are in/,
    ],
    [event(), event({ queueing_method: "reject" }), on, "/queueing_method", /nobody waits/],
    [event(), null, gathers, undefined, /is on and ends/],
    [event(), null, undefined, undefined, /^How many .* not known, .* is on and ends/],
    [
      event(),
      null,
      status({ events: [{ name: "id-of-night", steered: true }] }),
      undefined,
      /an operator has said when/,
    ],
  ]) {
    const tried = ofEvent(was, is);
    assert.ok(matters(tried));
    const [[told, message], ...more] = said(tried, how);
    assert.deepEqual([told, more], [pointer, []]);
    assert.match(message, text);
  }
  const later = { event_start_time: "2026-11-28T07:00:00Z", event_end_time: "2026-11-28T09:00:00Z" };
  for (const [was, is] of [
    [null, event(later)],
    [event(later), null],
    [event(), event({ description: "mine" })],
  ])
    assert.deepEqual(said(ofEvent(was, is), was && !is ? status() : on), []);
});
