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
  assert.deepEqual(schemas.ownOfRoom.properties.slot_strategy.enum.slice(0, 2), ["leases", "counters"]);
  for (const [theirs, schema] of [
    [ROOM, schemas.room],
    [EVENT, schemas.event],
    [RULE, schemas.rules.items],
  ])
    for (const name of Object.keys(theirs))
      assert.ok(schema.required.includes(name), `${name} is always there`);
});
