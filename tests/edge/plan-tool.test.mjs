// npm run plan: what it takes for itself, and which history it asks for.
import assert from "node:assert/strict";
import { test } from "node:test";

import { historyUrl, split } from "../../tools/plan.mjs";

const DAY = { "history-url": "https://shop.test/sale", room: "shop", day: "2026-11-20" };

test("what is not for the history goes to the simulator as it came", () => {
  const simulator = ["--room", "shop", "--colos", "3", "--html", "plan.html", "--without-rehearsals"];
  const { values, others } = split([
    "--history-url",
    "https://shop.test",
    ...simulator,
    "--day=2026-11-20",
    "--save",
    "day.json",
  ]);
  assert.deepEqual(others, simulator);
  assert.deepEqual([values.room, values.day, values.save], ["shop", "2026-11-20", "day.json"]);
  assert.deepEqual(split(["--arrivals", "day.csv", "--help"]).others, ["--arrivals", "day.csv", "--help"]);
  assert.throws(() => split(["--day", "--save", "day.json"]), /--day needs a value/);
});

test("a day is asked for minute by minute, from midnight to midnight UTC", () => {
  const url = new URL(historyUrl(DAY));
  assert.equal(url.origin + url.pathname, "https://shop.test/__anteroom/history");
  const times = { from: `${Date.UTC(2026, 10, 20)}`, to: `${Date.UTC(2026, 10, 21)}` };
  const asked = { room: "shop", ...times, resolution: "minute", format: "json" };
  assert.deepEqual(Object.fromEntries(url.searchParams), asked);
  const span = { ...DAY, day: undefined, from: "2026-11-20T18:00:00+01:00", to: "2026-11-20T18:30:00Z" };
  const { searchParams } = new URL(historyUrl(span));
  assert.equal(searchParams.get("to") - searchParams.get("from"), 90 * 60_000);
});

test("a history that cannot be asked for is refused with what to write", () => {
  const refused = (more, message) => assert.throws(() => historyUrl({ ...DAY, ...more }), message);
  refused({ "history-url": "shop.test" }, /--history-url shop\.test: .*such as https/);
  refused({ "history-url": "file:///etc/" }, /--history-url file/);
  refused({ room: undefined }, /--room is missing/);
  refused({ day: "20 November" }, /--day 20 November: write it as 2026-11-20/);
  refused({ from: "2026-11-20T18:00:00Z" }, /--day or --from and --to/);
  const span = { day: undefined, from: "2026-11-20T18:00:00Z", to: "2026-11-20T19:00:00Z" };
  refused({ ...span, to: undefined }, /--to is missing/);
  refused({ ...span, from: "18:00" }, /--from 18:00: .*with its zone/);
  refused({ ...span, to: span.from }, /--to .*after --from/);
});
