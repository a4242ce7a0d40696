// What a wait is called.
import assert from "node:assert/strict";
import { test } from "node:test";
import { duration, waitText } from "../../src/edge/page/words.js";
import { answerTo, pages, readable } from "./page.mjs";

const texts = JSON.parse(pages.languages["en-US"]);

test("waits are told coarsely, the longer the coarser, and nobody is promised too little", () => {
  for (const [low, high, text] of [
    [0, 0, "less than a minute"],
    [30, 59, "less than a minute"],
    [45, 60, "1 minute"],
    [45, 61, "1–2 minutes"],
    [96, 156, "1–3 minutes"],
    [120, 120, "2 minutes"],
    [480, 780, "8–15 minutes"],
    [600, 600, "10 minutes"],
    [1_000, 2_000, "15–35 minutes"],
    [2_640, 4_290, "40–75 minutes"],
    [3_600, 7_000, "1–2 hours"],
    [5_760, 9_360, "1.5–3 hours"],
    [28_800, 46_800, "8–13 hours"],
    [50_000, 81_000, "13–23 hours"],
    [80_000, 200_000, "22–24 hours"],
    [86_401, 200_000, "more than a day"],
    [1e15, 1e15, "more than a day"],
  ])
    assert.equal(waitText("en-US", texts, low, high), text, `${low} to ${high}`);
});

test("people are counted in words fit to read", async () => {
  for (const [peopleAhead, text] of [
    [null, ""],
    [0, "You are among the next to go in."],
    [1, "1 person is ahead of you."],
    [2, "About 2 people are ahead of you."],
    [1_234_567, "About 1,234,567 people are ahead of you."],
  ]) {
    const { json } = await answerTo("known", { facts: { peopleAhead, asksForStatus: true } });
    assert.equal(json.peopleText, text);
  }
});

test("what the owner hides is not told, in no way", async () => {
  for (const state of ["known", "random", "full", "unknown"]) {
    const hidden = { showWait: false, showPosition: false, showProgress: false, keptSeconds: 50 };
    const { body } = await answerTo(state, { facts: hidden });
    assert.doesNotMatch(readable(body), /minute|hour|day<|ahead of you|not known yet/, state);
    assert.match(body, /<progress [^>]* hidden>/);
    const { json } = await answerTo(state, { facts: hidden, headers: { accept: "application/json" } });
    assert.equal(json.cfWaitingRoom.waitTimeKnown, false);
    assert.equal(json.cfWaitingRoom.waitTimeFormatted, "unavailable");
    const { peopleAhead, progress, waitSecondsLow, expectedTo, waitText: told } = json.anteroom;
    assert.deepEqual([peopleAhead, progress, waitSecondsLow, expectedTo, told], [null, null, null, null, ""]);
    const status = await answerTo(state, { facts: { ...hidden, asksForStatus: true } });
    assert.equal(status.json.waitSeconds, null);
  }
});

test("a bot in the endless queue sees a wait that is not known", async () => {
  const { body } = await answerTo("infinite");
  assert.match(body, /not known yet/);
  assert.match(body, /<progress [^>]* hidden>/);
  assert.doesNotMatch(body, /ahead of you/);
});

test("whoever comes before an event learns when it starts and how the order is made", async () => {
  const fifo = (await answerTo("prequeue")).body;
  assert.match(fifo, /13 minutes/);
  assert.match(fifo, /whoever came first goes in first/);
  assert.match(fifo, /Start: July 1 at 2:15\sPM UTC/, "without script there is only one time zone");
  assert.match((await answerTo("lottery")).body, /drawn by lot at the start/);
  const drawn = readable((await answerTo("drawn")).body);
  assert.match(drawn, /The order was drawn by lot at the start\./);
  assert.doesNotMatch(drawn, /came first/);
});

test("how long a place is kept is never told longer than it is", () => {
  for (const [seconds, text] of [
    [1, "1 second"],
    [50, "50 seconds"],
    [60, "1 minute"],
    [119, "119 seconds"],
    [120, "2 minutes"],
    [359, "5 minutes"],
    [3_600, "60 minutes"],
    [10_799, "179 minutes"],
    [86_399, "23 hours"],
    [86_400, "24 hours"],
  ])
    assert.equal(duration("en-US", seconds), text);
});
