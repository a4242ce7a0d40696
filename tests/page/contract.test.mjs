// The JSON that programs rely on: every field, its type and place, in every state.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import Ajv from "ajv";
import { STATES } from "../../tools/preview/facts.mjs";
import { answerTo } from "./page.mjs";

const schema = JSON.parse(
  readFileSync(new URL("../../docs/cf-waiting-room.schema.json", import.meta.url), "utf8"),
);
const check = new Ajv({ allErrors: true, allowUnionTypes: true }).compile(schema);
const ORDER = schema.properties.cfWaitingRoom.required;

const told = async (state, options) =>
  (await answerTo(state, { headers: { accept: "application/json" }, ...options })).json;

for (const state of Object.keys(STATES)) {
  test(`${state}: as the schema says`, async () => {
    const json = await told(state);
    assert.ok(check(json), JSON.stringify(check.errors));
    assert.deepEqual(Object.keys(json.cfWaitingRoom), ORDER, "in this order");
  });
}

test("the known example, field by field", async () => {
  const facts = { now: Date.UTC(2020, 7, 3, 23, 46) };
  assert.deepEqual((await told("known", { facts })).cfWaitingRoom, {
    inWaitingRoom: true,
    waitTimeKnown: true,
    waitTime: 10,
    waitTime25Percentile: 0,
    waitTime50Percentile: 0,
    waitTime75Percentile: 0,
    waitTimeFormatted: "10 minutes",
    queueIsFull: false,
    queueAll: false,
    lastUpdated: "2020-08-03T23:46:00.000Z",
    refreshIntervalSeconds: 20,
    queueingMethod: "fifo",
    isFIFOQueue: true,
    isRandomQueue: false,
    isPassthroughQueue: false,
    isRejectQueue: false,
    isEventActive: false,
    isEventPrequeueing: false,
    timeUntilEventStart: 0,
    timeUntilEventStartFormatted: "unavailable",
    timeUntilEventEnd: 0,
    timeUntilEventEndFormatted: "unavailable",
    shuffleAtEventStart: false,
    turnstile: "",
    infiniteQueue: false,
  });
});

test("each state says what programs ask for", async () => {
  const some = async (state, ...names) => {
    const { cfWaitingRoom } = await told(state);
    return names.map((name) => cfWaitingRoom[name]);
  };
  assert.deepEqual(await some("unknown", "waitTimeKnown", "waitTime", "waitTimeFormatted", "queueIsFull"), [
    false,
    0,
    "unavailable",
    false,
  ]);
  assert.deepEqual(await some("full", "waitTimeKnown", "queueIsFull"), [false, true]);
  assert.deepEqual(await some("closed", "waitTimeKnown", "queueAll"), [false, true]);
  assert.deepEqual(
    await some(
      "random",
      "waitTime",
      "waitTime25Percentile",
      "waitTime50Percentile",
      "waitTime75Percentile",
      "waitTimeFormatted",
      "isRandomQueue",
      "isFIFOQueue",
    ),
    [10, 5, 10, 15, "5 minutes to 15 minutes", true, false],
  );
  assert.deepEqual(
    await some(
      "lottery",
      "isEventActive",
      "isEventPrequeueing",
      "timeUntilEventStart",
      "timeUntilEventStartFormatted",
      "timeUntilEventEndFormatted",
      "shuffleAtEventStart",
    ),
    [true, true, 13, "13 minutes", "2 hours 14 minutes", true],
  );
  assert.deepEqual(
    await some("event", "isEventActive", "isEventPrequeueing", "timeUntilEventStart", "timeUntilEventEnd"),
    [true, false, 0, 90],
  );
  assert.deepEqual(await some("reject", "isRejectQueue", "refreshIntervalSeconds"), [true, 0]);
  assert.deepEqual(await some("passthrough", "isPassthroughQueue", "queueAll"), [true, true]);
  assert.deepEqual(await some("infinite", "infiniteQueue", "waitTimeKnown"), [true, false]);
});
