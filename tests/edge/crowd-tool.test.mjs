// The crowd tool: its figures on hand-made events, its visitors in a room in memory on a clock of its own, and the
// program itself against a small server that keeps its promises, and one that does not.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import {
  kindestBooking,
  Measure,
  minutesOf,
  mostOverlapping,
  percentiles,
} from "../../tools/crowd/measure.mjs";
import { readOptions, UsageError } from "../../tools/crowd/options.mjs";
import { findToken, nameOf, prepare, sign } from "../../tools/crowd/rehearsal.mjs";
import { runCrowd } from "../../tools/crowd/run.mjs";
import { numberOfPages, parseRefresh, Stopped, seeded } from "../../tools/crowd/visitor.mjs";

const MINUTE = 60_000;
/** Some minute's start: noon of a day in 2026. */
const NOON = Date.UTC(2026, 0, 15, 12);

/** Events by the second after noon; an answer arrives 0.1 s after its request unless said otherwise. */
const at = (seconds) => NOON + seconds * 1000;
const admitted = (visitor, seconds, more = {}) => ({
  type: "admitted",
  visitor,
  sent: at(seconds),
  received: at(seconds + 0.1),
  ...more,
});
const waiting = (visitor, seconds, more = {}) => ({
  ...admitted(visitor, seconds, more),
  type: "waiting",
  refresh: 20,
  ...more,
});
const failed = (visitor, seconds, more = {}) => ({
  ...admitted(visitor, seconds),
  type: "failed",
  reason: "x",
  ...more,
});
const left = (visitor, seconds, why) => ({ type: "left", visitor, at: at(seconds), why });

function figures(events, { end = 600, ...options } = {}) {
  const measure = new Measure({ sessionSeconds: 60, ...options });
  for (const event of events) measure.add(event);
  return measure.figures(at(end));
}

test("as many active users as allowed are fine, one more is not", () => {
  const five = [0, 1, 2, 3, 4].map((visitor) => admitted(visitor, visitor));
  const limits = { limitActive: 5 };
  assert.equal(figures(five, limits).active.largest, 5);
  assert.equal(figures(five, limits).active.broken, false);
  const six = figures([...five, admitted(5, 10)], limits).active;
  assert.equal(six.largest, 6);
  assert.equal(six.broken, true);
  assert.equal(six.at, new Date(at(10.1)).toISOString());
  assert.equal(
    figures([...five, admitted(5, 10)]).active.broken,
    false,
    "without a limit nothing is checked",
  );
});

test("a visitor is active from its first answer until a session after its last request", () => {
  const most = (events) => figures(events).active.largest;
  assert.equal(
    most([admitted(0, 0), admitted(1, 59.9)]),
    1,
    "answered at the very end of the other's session",
  );
  assert.equal(most([admitted(0, 0), admitted(1, 59.8)]), 2);
  assert.equal(
    most([admitted(0, 0), admitted(0, 40), admitted(1, 80)]),
    2,
    "a page view prolongs the session",
  );
  assert.equal(most([admitted(0, 0), failed(0, 40), admitted(1, 80)]), 1, "a failed one may not have");
  assert.equal(most([admitted(0, 0), admitted(0, 200), admitted(1, 80)]), 1, "a lapsed session leaves a gap");
  assert.equal(most([admitted(0, 0, { received: at(70) }), admitted(1, 65)]), 1, "too slow to be certain of");
  assert.equal(most([admitted(0, 0), waiting(0, 30), admitted(1, 40)]), 1, "the room no longer counts it");
});

test("a browser that asks several times at once is one user, whatever comes last", () => {
  const [first, last] = [admitted(0, 0), admitted(0, 0, { received: at(0.3) })];
  // Sent just when the first one arrives, by a clock of milliseconds.
  const page = waiting(0, 0.1, { received: at(0.2) });
  for (const after of [[], [last], [waiting(0, 10), admitted(0, 20)], [last, admitted(0, 20)]]) {
    const seen = figures([first, page, ...after, admitted(1, 21)], { limitNew: 2 });
    assert.equal(seen.newPerMinute.largest, 2);
    assert.equal(seen.active.largest, 2, "its session goes on");
  }
  const again = [first, page, last, admitted(0, 20), waiting(0, 30), admitted(0, 40)];
  assert.equal(figures(again).newPerMinute.largest, 2, "one who was sent away when inside is new");
  assert.deepEqual([figures([first, page]).thrownOut, figures(again).thrownOut], [0, 1]);
});

test("overlapping spans are counted where most of them meet", () => {
  const span = (start, end) => ({ start, end });
  assert.deepEqual(mostOverlapping([]), { users: 0, at: 0, limit: Infinity });
  const most = (...spans) => [mostOverlapping(spans).users, mostOverlapping(spans).at];
  assert.deepEqual(most(span(0, 5), span(5, 9)), [1, 0]);
  assert.deepEqual(most(span(0, 5), span(4, 9), span(4, 6), span(7, 8)), [3, 4]);
});

test("each moment is judged by the limits that were in force then, and lowering one throws nobody out", () => {
  const judged = (events, told) => {
    const measure = new Measure({ sessionSeconds: 60, limitActive: 2, limitNew: 2 });
    for (const [seconds, active, perMinute] of told)
      measure.limits.add({ asked: at(seconds), answered: at(seconds + 0.1), limits: { active, perMinute } });
    for (const event of events) measure.add(event);
    return measure.figures(at(600));
  };
  const five = [0, 1, 2, 3, 4].map((visitor) => admitted(visitor, visitor));
  // Lowered between 8 and 10 seconds, by whomever.
  const lowered = [0, 2, 4, 6, 8]
    .map((seconds) => [seconds, 5, 5])
    .concat([
      [10, 3, 3],
      [12, 3, 3],
      [60, 3, 3],
      [120, 3, 3],
    ]);
  const kept = judged(five, lowered);
  assert.deepEqual([kept.active.broken, kept.newPerMinute.broken], [false, false]);
  assert.deepEqual(kept.limits, { saidByRoom: true, changed: true, others: true });
  const four = five.slice(0, 4);
  assert.equal(judged([...four, admitted(5, 12)], lowered).active.broken, false, "an order has to spread");
  const late = judged([...four, admitted(5, 14)], lowered).active;
  assert.deepEqual([late.largest, late.limit, late.broken], [5, 3, true]);
  // In the next minute the lower limit is in force from its beginning.
  const next = [70, 71, 72, 73].map((seconds, visitor) => admitted(visitor + 10, seconds));
  const figures = judged([...five, ...next], lowered).newPerMinute;
  assert.deepEqual([figures.largest, figures.limit, figures.broken], [4, 3, true]);
  assert.deepEqual(
    judged(five, []).limits,
    { saidByRoom: false, changed: false, others: false },
    "a room that says nothing is judged by what was given",
  );
  assert.equal(judged(five, []).active.broken, true);
});

test("new users are counted per calendar minute, each visitor once", () => {
  const events = [
    admitted(0, 0),
    admitted(0, 10),
    admitted(1, 58),
    waiting(2, 30),
    admitted(2, 65),
    admitted(3, 70),
  ];
  const { newPerMinute } = figures(events, { limitNew: 2 });
  assert.deepEqual(newPerMinute.minutes, [
    { minute: new Date(NOON).toISOString(), users: 2 },
    { minute: new Date(NOON + MINUTE).toISOString(), users: 2 },
  ]);
  assert.equal(newPerMinute.largest, 2);
  assert.equal(newPerMinute.broken, false);
  const more = figures([...events, admitted(4, 80)], { limitNew: 2 }).newPerMinute;
  assert.equal(more.largest, 3);
  assert.equal(more.broken, true);
});

test("an admission at a minute's edge is booked in the room's favour, as far as that goes", () => {
  const straddler = (visitor) => admitted(visitor, 59.95);
  const limits = { limitNew: 2 };
  assert.equal(figures([admitted(0, 1), admitted(1, 2), straddler(2)], limits).newPerMinute.broken, false);
  assert.equal(figures([straddler(0), admitted(1, 61), admitted(2, 62)], limits).newPerMinute.broken, false);
  const full = [0, 1].map((id) => admitted(id, 1 + id)).concat([2, 3].map((id) => admitted(id, 61 + id)));
  const over = figures([...full, straddler(4)], limits).newPerMinute;
  assert.equal(over.largest, 3, "both minutes are full: whichever it is booked to is broken");
  assert.equal(over.broken, true);
});

test("an attempt that failed may have been the admission", () => {
  const events = [admitted(0, 61), admitted(1, 62), failed(2, 50), admitted(2, 63)];
  assert.equal(figures(events, { limitNew: 2 }).newPerMinute.broken, false);
  assert.equal(figures(events.toSpliced(2, 1), { limitNew: 2 }).newPerMinute.broken, true);
});

test("the answer's Date may name another minute, unless it is absurd", () => {
  const answer = (date) => ({ received: at(58.1), date });
  const noon = NOON / MINUTE;
  assert.deepEqual(minutesOf(answer(undefined), at(58)), { from: noon, to: noon });
  assert.deepEqual(minutesOf(answer(at(58)), at(58)), { from: noon, to: noon });
  assert.deepEqual(minutesOf(answer(at(60)), at(58)), { from: noon, to: noon + 1 });
  assert.deepEqual(minutesOf(answer(at(-3600)), at(58)), { from: noon, to: noon });
});

test("the kindest booking is the best there is", () => {
  const random = seeded(7);
  const whole = (below) => Math.floor(random() * below);
  for (let round = 0; round < 300; round += 1) {
    const admissions = Array.from({ length: 1 + whole(6) }, () => {
      const from = whole(4);
      return { from, to: from + whole(3) };
    });
    const booked = kindestBooking(admissions);
    assert.equal(booked.largest, bestByTrial(admissions), JSON.stringify(admissions));
    assert.equal(Math.max(...booked.minutes.map(({ users }) => users)), booked.largest);
    const users = booked.minutes.reduce((sum, minute) => sum + minute.users, 0);
    assert.equal(users, admissions.length);
  }
  assert.deepEqual(kindestBooking([]), { largest: 0, limit: Infinity, minutes: [] });
});

/** Tries every booking there is. */
function bestByTrial([first, ...others], booked = {}) {
  if (!first) return Math.max(0, ...Object.values(booked));
  let best = Infinity;
  for (let minute = first.from; minute <= first.to; minute += 1) {
    best = Math.min(best, bestByTrial(others, { ...booked, [minute]: (booked[minute] ?? 0) + 1 }));
  }
  return best;
}

/** Visitor 0 comes at 30 s and refreshes every 20 s until it is admitted at `until`. */
function queue(until) {
  const events = [];
  for (let time = 30; time < until; time += 20.1) events.push(waiting(0, time));
  return [...events, admitted(0, until)];
}

test("an older visitor who waits on while a younger one enters was passed over", () => {
  // Asked at 30, 50.1, 70.2, 90.3, 110.4; a visitor of the next minute entered at 70, the older one at 130.5.
  const { order, visitors } = figures([...queue(130.5), admitted(1, 70)]);
  assert.equal(visitors.queued, 1);
  assert.deepEqual([order.passedOver, order.percent, order.broken], [1, 100, true]);
  assert.equal(
    figures([...queue(130.5), admitted(1, 70)], { maxPassedOverPercent: 100 }).order.broken,
    false,
  );
  const queuedToo = [waiting(1, 61), admitted(1, 81.1)];
  assert.equal(
    figures([...queue(130.5), ...queuedToo]).order.passedOver,
    1,
    "nor may a younger one who waited",
  );
});

test("nobody is said to be passed over who was not", () => {
  const passedOver = (events, options) => figures(events, options).order.passedOver;
  assert.equal(passedOver([...queue(130.5), admitted(1, 45)]), 0, "same bucket");
  assert.equal(passedOver([...queue(90.3), admitted(1, 70.3)]), 0, "let in with the next refresh");
  assert.equal(passedOver([...queue(90.3), admitted(1, 68.9)]), 0, "within 1.1 intervals");
  assert.equal(passedOver([...queue(130.5), admitted(1, 120)]), 0, "let in before it asked again");
  assert.equal(passedOver([...queue(130.5), admitted(1, 130.6)]), 0, "the younger one came later");
  assert.equal(
    passedOver([admitted(1, 70), waiting(0, 80), waiting(0, 100.1), admitted(0, 150)]),
    0,
    "not yet there",
  );
  assert.equal(passedOver([waiting(0, 30), left(0, 40, "abandoned"), admitted(1, 70)]), 0, "had left");
  assert.equal(
    passedOver([waiting(0, 30), admitted(0, 50), admitted(1, 70), admitted(0, 90)]),
    0,
    "was inside",
  );
});

test("who still waits at the end, or left in the end, may have been passed over too", () => {
  const asked = [30, 50.1, 70.2, 90.3].map((time) => waiting(0, time));
  const younger = admitted(1, 70);
  assert.equal(figures([...asked, younger], { end: 95 }).order.passedOver, 1);
  assert.equal(figures([...asked, younger], { end: 92 }).order.passedOver, 0, "too early to tell");
  assert.equal(figures([...asked, younger, left(0, 95, "abandoned")]).order.passedOver, 1);
});

test("a bucket at a minute's edge counts only as far as it is certain", () => {
  const edge = { received: at(60.1) };
  const older = [
    waiting(0, 59.9, edge),
    waiting(0, 80.1),
    waiting(0, 100.2),
    waiting(0, 120.3),
    waiting(0, 140.4),
  ];
  assert.equal(figures([...older, admitted(1, 80)], { end: 150 }).order.passedOver, 0);
  assert.equal(
    figures([...older, admitted(1, 120.2)], { end: 150 }).order.passedOver,
    1,
    "younger in any case",
  );
  const younger = [waiting(1, 59.9, edge), admitted(1, 80.1)];
  assert.equal(figures([...queue(130.5), ...younger]).order.passedOver, 0);
});

test("who comes too late for a refresh, or without its cookie, starts anew", () => {
  const late = [waiting(0, 30), waiting(0, 100), waiting(0, 120.1), admitted(0, 140.2)];
  assert.equal(figures([...late, admitted(1, 70)]).order.passedOver, 0);
  const stranger = [30, 50.1, 70.2, 90.3].map((time) =>
    waiting(0, time, { ticket: time === 30 || time === 90.3 }),
  );
  const result = figures([...stranger, waiting(0, 110.4), admitted(0, 130.5), admitted(1, 85)]);
  assert.equal(result.order.passedOver, 0);
  assert.equal(result.withoutTicket, 2);
});

test("only a visitor who was certainly active can be thrown out", () => {
  const thrownOut = (events) => figures(events).thrownOut;
  assert.equal(thrownOut([admitted(0, 0), waiting(0, 30)]), 1);
  assert.equal(thrownOut([admitted(0, 0), waiting(0, 60)]), 0, "the session had lapsed");
  assert.equal(thrownOut([admitted(0, 0), waiting(0, 30, { ticket: false })]), 0, "came without its cookie");
  assert.equal(thrownOut([waiting(0, 0), waiting(0, 20), admitted(0, 40)]), 0);
  const back = figures([admitted(0, 0), waiting(0, 100), admitted(0, 125)]);
  assert.deepEqual(
    back.newPerMinute.minutes.map(({ users }) => users),
    [1, 1],
    "one who was queued again is a new user again",
  );
  assert.deepEqual([back.visitors.admittedAtOnce, back.visitors.queued, back.waitSeconds.max], [1, 1, 25.1]);
});

test("visitors, waits, requests and latencies add up", () => {
  const { visitors, waitSeconds, requests } = figures([
    admitted(0, 0),
    waiting(1, 1),
    waiting(2, 2),
    waiting(3, 3),
    failed(4, 4),
    { type: "arrived", visitor: 5, at: at(5) },
    left(0, 6, "done"),
    admitted(1, 21),
    failed(2, 22, { requests: 3 }),
    left(3, 23, "abandoned"),
    left(4, 24, "gave up"),
  ]);
  assert.deepEqual(visitors, {
    arrived: 6,
    admittedAtOnce: 1,
    queued: 3,
    stillWaiting: 1,
    abandoned: 1,
    gaveUp: 1,
    unanswered: 2,
  });
  assert.deepEqual(waitSeconds, { count: 1, min: 20.1, median: 20.1, p90: 20.1, max: 20.1 });
  assert.deepEqual([requests.sent, requests.failed, requests.failures], [9, 2, { x: 2 }]);
  assert.ok(Math.abs(requests.latencyMs.p50 - 100) <= 1.1, `${requests.latencyMs.p50}`);
});

test("percentiles go by nearest rank", () => {
  assert.deepEqual(percentiles([3, 1, 2, 4], { min: 0, median: 0.5, p90: 0.9, max: 1 }), {
    min: 1,
    median: 2,
    p90: 4,
    max: 4,
  });
  assert.deepEqual(percentiles([], { median: 0.5 }), { median: null });
});

test("a Refresh header is read as it is written", () => {
  assert.deepEqual(parseRefresh("20"), { seconds: 20, url: undefined });
  assert.deepEqual(parseRefresh(" 18.5; url=/sale "), { seconds: 18.5, url: "/sale" });
  assert.deepEqual(parseRefresh("5;URL='/a b'"), { seconds: 5, url: "/a b" });
  assert.equal(parseRefresh("0").seconds, 0.1);
  assert.equal(parseRefresh("soon"), undefined);
  assert.equal(parseRefresh(undefined), undefined);
});

test("a seed repeats its numbers, and pages have the mean that was asked for", () => {
  const some = (random) => Array.from({ length: 5 }, random);
  assert.deepEqual(some(seeded(1, 2)), some(seeded(1, 2)));
  assert.notDeepEqual(some(seeded(1, 2)), some(seeded(1, 3)));
  const random = seeded(1);
  const pages = Array.from({ length: 20_000 }, () => numberOfPages(random, 3));
  assert.ok(Math.abs(pages.reduce((sum, n) => sum + n) / pages.length - 3) < 0.1);
  assert.equal(numberOfPages(random, 1), 1);
});

/** A clock that jumps to the next sleeper when everybody sleeps. */
class PlayedClock {
  time = NOON;
  sleepers = [];
  now = () => this.time;
  sleep = (seconds) => new Promise((wake) => this.sleepers.push({ due: this.time + seconds * 1000, wake }));

  async playUntilDone(promise) {
    let done = false;
    promise.finally(() => {
      done = true;
    });
    for (;;) {
      await new Promise(setImmediate);
      if (done) return promise;
      this.sleepers.sort((a, b) => a.due - b.due);
      const next = this.sleepers.shift();
      this.time = Math.max(this.time, next.due);
      next.wake();
    }
  }
}

/** A visitor who waits and does not come back for so long is gone. */
const GHOST_MS = 50_000;
const TICKET = /__anteroom=(\d+)/;

/**
 * A room in memory. `order(waiting, id)` says how many visitors who wait go before this one.
 */
class Room {
  constructor({ now, limit, perMinute = Infinity, session, ahead = inOrder }) {
    Object.assign(this, { now, limit, perMinute, session: session * 1000, ahead });
    this.nextId = 1;
    this.active = new Map();
    this.waiting = new Map();
    this.minute = { of: 0, users: 0 };
  }

  /** Answers a request by its Cookie header. */
  visit(cookie = "") {
    const now = this.now();
    const id = Number(TICKET.exec(cookie)?.[1] ?? this.nextId++);
    for (const [other, until] of this.active) if (until <= now) this.active.delete(other);
    for (const [other, until] of this.waiting) if (until <= now) this.waiting.delete(other);
    const minute = Math.floor(now / MINUTE);
    if (this.minute.of !== minute) this.minute = { of: minute, users: 0 };
    if (!this.active.has(id)) {
      const free = Math.min(this.limit - this.active.size, this.perMinute - this.minute.users);
      if (free <= this.ahead(this.waiting, id)) {
        this.waiting.set(id, now + GHOST_MS);
        return { id, waiting: true };
      }
      this.minute.users += 1;
    }
    this.waiting.delete(id);
    this.active.set(id, now + this.session);
    return { id, waiting: false };
  }
}

const inOrder = (waiting, id) => [...waiting.keys()].filter((other) => other < id).length;
const lastComesFirst = (waiting, id) => [...waiting.keys()].filter((other) => other > id).length;

/** Plays a crowd of 60 in a room in memory, in no time at all. */
async function play({ crowd = {}, limits = { limitActive: 8, limitNew: 15 }, ...room }) {
  const clock = new PlayedClock();
  const door = new Room({ now: clock.now, limit: 8, perMinute: 15, session: 60, ...room });
  const measure = new Measure({ sessionSeconds: 60, ...limits });
  const fetch = async (_url, headers) => {
    await clock.sleep(0.02);
    const { id, waiting } = door.visit(headers.cookie);
    const reply = waiting ? { anteroom: "waiting", refresh: "20" } : {};
    const setCookie = [`__anteroom=${id}`];
    await clock.sleep(0.02);
    return { status: 200, header: (name) => reply[name], setCookie, received: clock.now() };
  };
  const newJar = () => {
    let kept = "";
    return {
      get: () => kept,
      set: (_url, line) => {
        kept = line;
      },
    };
  };
  const habits = {
    url: "http://room.test/",
    headers: {},
    pages: 3,
    thinkSeconds: 10,
    patienceSeconds: Infinity,
  };
  const settings = { ...habits, visitors: 60, rate: 0.5, arrivals: "poisson", seed: 1, ...crowd };
  const world = { fetch, newJar, now: clock.now, sleep: clock.sleep };
  await clock.playUntilDone(runCrowd(settings, world, (event) => measure.add(event)));
  return measure.figures(clock.now());
}

test("a room in memory that keeps its promises gets no blame", async () => {
  for (const seed of [1, 2, 3]) {
    const result = await play({ crowd: { seed } });
    assert.equal(result.visitors.arrived, 60);
    assert.ok(result.visitors.queued > 30);
    assert.equal(result.visitors.stillWaiting, 0);
    assert.equal(result.active.largest, 8);
    assert.ok(result.newPerMinute.largest <= 15);
    assert.deepEqual([result.order.passedOver, result.thrownOut, result.withoutTicket], [0, 0, 0]);
    assert.ok(result.waitSeconds.count >= result.visitors.queued);
  }
});

test("each broken promise of a room in memory is seen, and only that one", async () => {
  const seen = async (room) => {
    const { active, newPerMinute, order } = await play(room);
    return [active.broken, newPerMinute.broken, order.broken];
  };
  assert.deepEqual(await seen({ limit: 9 }), [true, false, false]);
  assert.deepEqual(await seen({ limit: 60, perMinute: 16, limits: { limitActive: 60, limitNew: 15 } }), [
    false,
    true,
    false,
  ]);
  assert.deepEqual(await seen({ ahead: lastComesFirst }), [false, false, true]);
  assert.equal((await play({ session: 3 })).thrownOut > 0, true);
});

test("the impatient leave the queue, and visitors to a dead server give up", async () => {
  const { visitors, order } = await play({ crowd: { patienceSeconds: 30 } });
  assert.ok(visitors.abandoned > 10);
  assert.equal(visitors.stillWaiting, 0);
  assert.equal(order.passedOver, 0);

  const clock = new PlayedClock();
  const measure = new Measure({ sessionSeconds: 60 });
  const fetch = async () => {
    throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  };
  const crowd = {
    url: "http://room.test/",
    headers: {},
    pages: 3,
    thinkSeconds: 10,
    patienceSeconds: Infinity,
  };
  const settings = { ...crowd, visitors: 3, rate: 1, arrivals: "even", seed: 1 };
  const jar = { get: () => "", set: () => {} };
  const world = { fetch, newJar: () => jar, now: clock.now, sleep: clock.sleep };
  await clock.playUntilDone(runCrowd(settings, world, (event) => measure.add(event)));
  const result = measure.figures(clock.now());
  assert.deepEqual([result.visitors.gaveUp, result.visitors.unanswered], [3, 3]);
  assert.deepEqual(result.requests.failures, { ECONNREFUSED: 15 });
});

test("a crowd that is sent home stops where it is", async () => {
  const measure = new Measure({ sessionSeconds: 60 });
  const stopped = async () => {
    throw new Stopped();
  };
  const crowd = {
    url: "http://room.test/",
    headers: {},
    pages: 3,
    thinkSeconds: 10,
    patienceSeconds: Infinity,
  };
  const settings = { ...crowd, visitors: 3, rate: 1, arrivals: "even", seed: 1 };
  const jar = { get: () => "", set: () => {} };
  const world = { fetch: stopped, newJar: () => jar, now: () => NOON, sleep: stopped };
  await runCrowd(settings, world, (event) => measure.add(event));
  assert.deepEqual([measure.figures(NOON).visitors.arrived, measure.figures(NOON).requests.sent], [1, 0]);
});

const PROGRAM = fileURLToPath(new URL("../../tools/crowd.mjs", import.meta.url));
const FOR_PROGRAMS = ["--quiet", "--json"];
const TOKEN = "the-token-of-an-operator";

/** Serves a room on loopback while `use` runs. */
async function serving(options, use) {
  const room = new Room({ now: () => performance.now(), session: 1.1, limit: 4, ...options });
  const seen = { agents: new Set(), headers: new Set() };
  const server = createServer((request, response) => {
    if (request.headers.authorization === `Bearer ${TOKEN}` && options.says)
      return response.end(JSON.stringify({ rooms: options.says }));
    // A room that knows no rehearsals.
    if (request.url.startsWith("/__anteroom/")) return response.writeHead(404).end();
    seen.agents.add(request.headers["user-agent"]);
    seen.headers.add(request.headers["x-test"]);
    if (request.url === "/") {
      response.writeHead(302, { location: "/sale" }).end();
      return;
    }
    const { id, waiting } = room.visit(request.headers.cookie);
    response.setHeader("set-cookie", `__anteroom=${id}; Path=/sale; HttpOnly; Secure; SameSite=Lax`);
    if (waiting) response.writeHead(200, { anteroom: "waiting", refresh: "0.2" });
    response.end("a page");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await use(`http://localhost:${server.address().port}`, seen);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function crowd(...args) {
  return crowdWith(undefined, ...args);
}

function crowdWith(token, ...args) {
  return new Promise((resolve) => {
    const env = { ...process.env, ANTEROOM_TOKEN: token };
    execFile(process.execPath, [PROGRAM, ...args], { env }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

const TWELVE = ["--visitors", "12", "--rate", "40", "--pages", "2", "--think", "0.2", "--session", "1"];

describe("the program against a server", { concurrency: true }, () => {
  test("the program finds nothing wrong with a room that keeps its promises", async () => {
    await serving({}, async (url, seen) => {
      const args = ["--url", `${url}/sale`, ...TWELVE, "--limit-active", "4", "--limit-new", "1000"];
      const { code, stdout, stderr } = await crowd(...args, "--header", "x-test: yes", "--json");
      assert.equal(code, 0, stdout + stderr);
      const result = JSON.parse(stdout);
      assert.equal(result.visitors.arrived, 12);
      assert.equal(result.visitors.admittedAtOnce + result.visitors.queued, 12);
      assert.ok(result.visitors.queued > 0);
      assert.ok(result.active.largest <= 4);
      assert.deepEqual([result.requests.failed, result.thrownOut, result.withoutTicket], [0, 0, 0]);
      assert.deepEqual([result.broken, result.stoppedBy], [[], null]);
      assert.match(stderr, /arrived 12\/12 .* most active \d \(limit 4\)/);
      const lines = stderr.match(/ s {3}arrived /g).length;
      assert.ok(lines <= 1 + result.seconds / 10, `${lines} lines into a file in ${result.seconds} s`);
      assert.match([...seen.agents].join(), /^Mozilla\/5\.0 .*anteroom-crowd$/);
      assert.deepEqual([...seen.headers], ["yes"]);
    });
  });

  test("the program says what a room broke, and exits with 1", async () => {
    await serving({ limit: 1000 }, async (url) => {
      const args = ["--url", url, ...TWELVE, "--session", "60", "--limit-active", "4", "--limit-new", "5"];
      const { code, stdout, stderr } = await crowd(...args, ...FOR_PROGRAMS);
      assert.equal(code, 1, stdout + stderr);
      const result = JSON.parse(stdout);
      assert.deepEqual([result.active.largest, result.active.broken], [12, true]);
      assert.equal(result.newPerMinute.broken, true, "12 in two minutes at most: one of them has 6");
      assert.equal(result.broken.length, 2);
      assert.match(
        stderr,
        /^Limit of active users broken: 12 at .*, allowed are 4\.\nLimit of new users per minute /,
      );
      const table = await crowd(...args, "--quiet");
      assert.equal(table.code, 1);
      assert.match(table.stdout, /most active users +│ +12 │ +4 │ BROKEN/);
      assert.equal(table.stderr, "");
    });
  });

  test("the room's own limits go before those that were given", async () => {
    const limits = (total_active_users) => ({ total_active_users, new_users_per_minute: 1000 });
    const says = [
      { name: "all", host: null, path: "/", limits: limits(1) },
      { name: "sale", host: null, path: "/sale", limits: limits(4) },
      { name: "other", host: "other.test", path: "/sale", limits: limits(1) },
    ];
    await serving({ says }, async (url) => {
      const args = ["--url", `${url}/sale`, ...TWELVE, "--limit-active", "2", "--no-rehearsal", "--quiet"];
      const { code, stdout } = await crowdWith(TOKEN, ...args);
      assert.equal(code, 0, stdout);
      assert.match(stdout, /most active users +│ +4 │ +4 │ kept/);
      assert.match(stdout, /The room's limits are not those you gave/);
      const unasked = await crowd(...args);
      assert.equal(unasked.code, 1);
      assert.match(unasked.stdout, /Whether others were in force meanwhile is not known/);
    });
  });

  test("Ctrl-C and --duration end with what was seen so far", async () => {
    await serving({ limit: 1, session: 600 }, async (url) => {
      const args = ["--url", `${url}/sale`, "--visitors", "5", "--rate", "100", "--progress", "1"];
      const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ["ignore", "pipe", "pipe"] });
      child.stderr.setEncoding("utf8");
      let pressed = false;
      child.stderr.on("data", (text) => {
        if (pressed || !/waiting 4/.test(text)) return;
        pressed = true;
        // npm passes the signal on, so that one press may arrive twice.
        child.kill("SIGINT");
        child.kill("SIGINT");
      });
      const table = await new Response(child.stdout).text();
      if (child.exitCode === null) await once(child, "exit");
      assert.equal(child.exitCode, 0);
      assert.match(table, /interrupted/);
      assert.match(table, /still waiting +│ +4 │/);

      const { code, stdout } = await crowd(...args, "--duration", "5", ...FOR_PROGRAMS);
      assert.equal(code, 0);
      assert.equal(JSON.parse(stdout).stoppedBy, "duration");
      assert.equal(JSON.parse(stdout).visitors.stillWaiting, 5);
    });
  });
});

test("a mark is what the room's own code reads", () => {
  // The same as in tests/rust/rehearsal.rs.
  const mark = "v1.friday.1800000600._Vv9d1HRz0xMu_57zTXBzpA7BSG37bqcMYT2tu92pXY";
  assert.equal(sign("the-token-of-the-tests", "friday", 1_800_000_600.9), mark);
  assert.equal(nameOf(NOON), "2026-01-15-1200");
});

test("the token is the one that was named, or this machine's own for a room on it", () => {
  const directory = mkdtempSync(join(tmpdir(), "anteroom-"));
  try {
    const devVars = join(directory, ".dev.vars");
    const find = (url, env = {}) => findToken(url, env, devVars);
    assert.equal(find("http://localhost:8787/"), undefined, "there is no file");
    writeFileSync(devVars, '# of this machine\nCOOKIE_KEYS="a,b"\nADMIN_TOKEN="made+here="\n');
    const here = { token: "made+here=", meant: false };
    for (const host of ["localhost:8787", "127.0.0.1", "[::1]:80"])
      assert.deepEqual(find(`http://${host}/`), here);
    for (const host of ["shop.test", "localhost.shop.test", "127.0.0.1.shop.test"]) {
      assert.equal(find(`http://${host}/`), undefined, host);
    }
    const named = { token: "named", meant: true };
    assert.deepEqual(find("http://localhost:8787/", { ANTEROOM_TOKEN: "named" }), named);
    assert.deepEqual(find("https://shop.test/", { ANTEROOM_TOKEN: "named" }), named);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("who asks for a rehearsal gets one or an error, who does not is told", async () => {
  await serving({}, async (url) => {
    const here = { env: {}, devVars: "/nowhere", now: NOON };
    const ready = (more, env = {}) =>
      prepare({ url, headers: {}, durationSeconds: 60, ...more }, { ...here, env });
    assert.match(
      (await ready({})).note,
      /^Not marked .*takes these visitors for real ones\. Set ANTEROOM_TOKEN/,
    );
    assert.match(
      (await ready({ rehearsal: false }, { ANTEROOM_TOKEN: "a" })).note,
      /^Not marked .*--no-rehearsal/,
    );
    const refused = async (more, env, message) => {
      await assert.rejects(ready(more, env), { constructor: UsageError, message });
    };
    await refused({ rehearsal: "friday" }, {}, /--rehearsal.*ANTEROOM_TOKEN/);
    await refused({}, { ANTEROOM_TOKEN: "a" }, /cannot be marked: .*status 404.*--no-rehearsal/);
    await refused({ headers: { "anteroom-rehearsal": "v1.a.1.b" } }, {}, /cannot be marked/);
  });
});

test("a wrong call is told in one line, with exit code 2", async () => {
  const calls = [
    [["--rate", "fast"], /--rate .*'fast'.*Give a number .* such as 20/],
    [["--visitors", "0"], /--visitors .*'0'.*Give a whole number from 1/],
    [["--url", "localhost"], /--url .*'localhost'.*whole address, such as http/],
    [["--url", "http://me:secret@localhost/"], /--url .*Leave name and password out/],
    [["--header", "cookie: a=b"], /--header .*'cookie: a=b'.*Leave it out/],
    [["--header", "nonsense"], /--header .*'nonsense'.*Give name and value/],
    [["--rehearsal", "on friday"], /--rehearsal .*'on friday'.*letters, digits/],
    [["--arrivals", "odd"], /--arrivals .*'odd'.*poisson, even/],
    [["--visitor", "3"], /--visitor/],
    [["3"], /too many arguments/],
  ];
  for (const [args, complaint] of calls) {
    assert.throws(() => readOptions(args, { out: assert.fail }), {
      constructor: UsageError,
      message: complaint,
    });
  }
  const badOption = await crowd("--rate", "fast");
  assert.deepEqual([badOption.code, badOption.stdout], [2, ""]);
  assert.match(badOption.stderr, /^error: option '--rate/);
  const nobodyThere = await crowd("--url", "http://localhost:1/");
  assert.deepEqual([nobodyThere.code, nobodyThere.stdout], [2, ""]);
  assert.match(nobodyThere.stderr, /^error: option '--url'.*'http:\/\/localhost:1\/'.*npm start/);
});

test("options are read as they are given", () => {
  let help = "";
  const out = (text) => {
    help += text;
  };
  assert.equal(readOptions(["--help"], { out }), undefined);
  assert.match(help, /--max-passed-over/);
  const args = ["--header", "A: b", "--header", "host: shop.test", "--patience", "5", "--limit-active", "7"];
  const settings = readOptions(args, { out });
  assert.deepEqual(settings.headers, { a: "b", host: "shop.test" });
  assert.deepEqual([settings.patienceSeconds, settings.limitActive, settings.limitNew], [5, 7, undefined]);
  const { visitors, rate, url, patienceSeconds, rehearsal } = readOptions([], { out });
  assert.deepEqual([visitors, rate, url, patienceSeconds], [200, 20, "http://localhost:8787/", Infinity]);
  const rehearsals = [["--rehearsal", "friday-1"], ["--no-rehearsal"]];
  assert.deepEqual(
    [rehearsal, ...rehearsals.map((args) => readOptions(args, { out }).rehearsal)],
    [undefined, "friday-1", false],
  );
});
