// The description of the API knows every field and every endpoint. That its answers are as it says is tested in workerd
// (tests/edge/schema.test.mjs).
import assert from "node:assert/strict";
import { test } from "node:test";
import tables from "../../build/tables.json" with { type: "json" };
import { ENDPOINTS } from "../../src/edge/client/endpoints.js";
import { EVENT, ROOM, RULE } from "../../src/edge/client/fields.js";
import { openapi } from "../../src/edge/client/openapi.js";
import { OPERATIONS } from "../../src/edge/client/operators.js";

const document = openapi("1.2.3");
const { schemas } = document.components;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation]),
);

test("every endpoint is described, once", () => {
  const described = operations.map(([key]) => key);
  for (const { method, path } of ENDPOINTS)
    assert.ok(described.includes(`${method} /__anteroom/client/v4/${path}`), `${method} ${path}`);
  const of = (path) => Object.keys(OPERATIONS).filter((key) => key.endsWith(` ${path}`));
  for (const { path, method } of tables.endpoints)
    assert.ok(
      of(path).some((key) => !method || key === `${method} ${path}`),
      `${method} ${path}`,
    );
  const own = described.filter((key) => !key.includes("/client/v4/") && !key.endsWith("/openapi.json"));
  assert.equal(own.length, Object.keys(OPERATIONS).length, "and none that is not there");
  const ids = operations.map(([, { operationId }]) => operationId);
  assert.equal(new Set(ids).size, ids.length);
});

test("every field of the table is described, with its range", () => {
  for (const [name, field] of Object.entries(tables.fields)) {
    if (name === "bypass_rules") continue;
    assert.ok(schemas.newRoom.properties[name] ?? schemas.ownOfRoom.properties[name], name);
    if (field["x-in-events"])
      assert.ok(schemas.newEvent.properties[name] ?? schemas.ownOfEvent.properties[name], name);
  }
  const { session_duration, total_active_users, queueing_method } = schemas.newRoom.properties;
  assert.deepEqual(
    [session_duration.minimum, session_duration.maximum, session_duration.default],
    [1, 30, 5],
  );
  assert.deepEqual([total_active_users.minimum, total_active_users.maximum], [1, 2_147_483_647]);
  assert.match("FiFo", new RegExp(queueing_method.pattern));
  assert.deepEqual(queueing_method["x-enum"], ["fifo", "random", "passthrough", "reject"]);
  assert.deepEqual(schemas.ownOfRoom.properties.slot_strategy.enum.slice(0, 2), ["leases", "counters"]);
  for (const [theirs, schema] of [
    [ROOM, schemas.room],
    [EVENT, schemas.event],
    [RULE, schemas.rules.items],
  ])
    for (const name of Object.keys(theirs))
      assert.ok(schema.required.includes(name), `${name} is always there`);
});

test("a form knows of each field what it may be, what holds without it, and how it is written", () => {
  const { newRoom, partOfRoom, newEvent, newRule, ownOfRoom, ownOfEvent } = schemas;
  const { host, path, session_duration, additional_routes } = newRoom.properties;
  assert.deepEqual([host.examples, host.maxLength], [["shop.example.com"], 253]);
  assert.deepEqual([path.default, path.examples, path.pattern], ["/", ["/sale"], "^/"]);
  assert.deepEqual([session_duration["x-steered"], additional_routes.default], [true, []]);
  assert.equal(additional_routes.maxItems, 20);
  assert.deepEqual(newRoom.properties.cookie_attributes.default, ROOM.cookie_attributes);
  // What a part does not name stays as it is.
  assert.equal(partOfRoom.properties.session_duration.default, undefined);
  // What an event does not say, its room does.
  for (const [name, schema] of Object.entries({ ...newEvent.properties, ...ownOfEvent.properties }))
    if ((EVENT[name] ?? null) === null)
      assert.deepEqual([schema.default, schema["x-default"]], [undefined, undefined], name);
  assert.deepEqual(
    Object.keys(newEvent.properties).filter((name) => newEvent.properties[name]["x-steered"]),
    ["event_start_time", "event_end_time"],
  );
  assert.deepEqual(
    [newRule.properties.enabled.default, newRule.properties.expression.examples.length],
    [true, 1],
  );
  const { origin_guard, health_checks, origin, limits, message } = ownOfRoom.properties;
  const { strategy, max } = origin_guard.properties;
  assert.deepEqual([strategy.enum[0], strategy.default], ["position", "position"]);
  assert.deepEqual([max.minimum, max.maximum, max.default], [1, 10_000, 1_000]);
  assert.deepEqual([health_checks.maxItems, health_checks.items.maxLength], [10, 100]);
  assert.deepEqual([origin.examples.length, origin["x-default"]], [1, "the deployment's"]);
  assert.deepEqual(limits.enum, ["fixed", "adaptive", null]);
  assert.deepEqual([message.maxLength, message.examples.length], [500, 1]);
  for (const [name, { type, anyOf, enum: names, items, properties }] of Object.entries(ownOfRoom.properties))
    if ([type].flat().includes("array")) assert.ok(items.type, name);
    else if ([type].flat().includes("object")) assert.ok(properties, name);
    else assert.ok(type ?? anyOf ?? names, name);
});
