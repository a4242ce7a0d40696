// Plans that come back each week, by the clock on the wall.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nextOf } from "../../src/edge/client/plans.js";
import { offset } from "../../src/edge/zones.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const plan = (from, zone) => ({
  ...{ from: Date.parse(from), until: Date.parse(from) + 2 * HOUR },
  ...{ weekly: true, zone, set: { queue_all: true } },
});
const next = (from, zone, now = Date.parse(from)) => {
  const { from: begin, until } = nextOf(plan(from, zone), now);
  return [begin, until].map((time) => new Date(time).toISOString().slice(0, 16));
};

test("a week later it is the same time of day, whatever the clocks do between", () => {
  const told = [
    next("2026-03-26T10:00:00+01:00", "Europe/Berlin"),
    next("2026-10-22T10:00:00+02:00", "Europe/Berlin"),
    next("2026-03-26T10:00:00Z", "UTC"),
    next("2026-10-29T10:00:00-04:00", "America/New_York"),
  ];
  assert.deepEqual(told, [
    ["2026-04-02T08:00", "2026-04-02T10:00"],
    ["2026-10-29T09:00", "2026-10-29T11:00"],
    ["2026-04-02T10:00", "2026-04-02T12:00"],
    ["2026-11-05T15:00", "2026-11-05T17:00"],
  ]);
});

test("weeks in which nobody was there are left out, and once is once", () => {
  const from = "2026-01-05T09:00:00Z";
  assert.deepEqual(next(from, "UTC", Date.parse(from) + 30 * DAY), ["2026-02-09T09:00", "2026-02-09T11:00"]);
  assert.equal(nextOf({ ...plan(from, "UTC"), weekly: false }, Date.parse(from)), undefined);
});

test("zones with halves of an hour are known, and what is none is not", () => {
  const hours = ["Asia/Kathmandu", "America/St_Johns", "UTC"].map(
    (zone) => offset(zone, Date.parse("2026-07-01T00:00:00Z")) / HOUR,
  );
  assert.deepEqual([...hours, offset("Mars/Olympus", 0)], [5.75, -2.5, 0, undefined]);
});
