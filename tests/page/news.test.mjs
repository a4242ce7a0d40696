// News in words, and the body that each receiver reads. What is news is tested with the core (tests/rust/news.rs).
import assert from "node:assert/strict";
import { test } from "node:test";

import { body, words } from "../../src/edge/news.js";

const FIGURES = {
  room: "shop",
  url: "https://shop.example.com/__anteroom/#room=shop",
  active_users: 20,
  total_active_users: 20,
  new_users_this_minute: 1,
  new_users_per_minute: 10,
  slots: 0,
  waiting_users: 11,
  wait_seconds: 662,
};
const said = (kind, more) => words(kind, JSON.stringify({ ...FIGURES, ...more }));

test("nobody is told that people wait where the room only observes", () => {
  const text = said("queueing_started", { why: "queue_all", observing: true });
  assert.ok(text.startsWith("Room shop (only observes, everybody passes): visitors are waiting."), text);
});

test("every kind of news is a sentence or two", () => {
  const times = {
    event: "sale",
    event_start_time: "2026-11-27T08:00:00Z",
    event_end_time: "2026-11-27T09:00:00Z",
  };
  const change = (kind, field, before, after) => ({ kind, field, before, after });
  for (const [kind, more, text] of [
    [
      "queueing_started",
      { why: "limits" },
      "visitors are waiting. 20 of 20 users are active, 1 of 10 new users entered in this minute.",
    ],
    ["queueing_started", { why: "queue_all" }, "visitors are waiting. Nobody new enters (queue_all)."],
    ["queueing_started", { why: "event" }, "visitors are waiting. The event has not started yet."],
    [
      "queueing_started",
      { why: "origin" },
      "visitors are waiting. Nobody new enters, because the origin is unhealthy.",
    ],
    [
      "queueing_ended",
      { lasted_seconds: 7_505, most_waiting_users: 12 },
      "nobody waits any more. Visitors waited for 2 hours 5 minutes, up to 12 at a time.",
    ],
    [
      "wait_above",
      { threshold_minutes: 10 },
      "the estimated wait is 11 minutes 2 seconds, at least 10 minutes as you asked to be told. 11 visitors wait.",
    ],
    ["wait_below", { threshold_minutes: 1 }, "the estimated wait is well below 1 minute again."],
    [
      "event_prequeue_started",
      times,
      "the prequeue of event sale has begun. The event starts at 2026-11-27T08:00:00Z.",
    ],
    [
      "event_started",
      times,
      "event sale has started. It ends at 2026-11-27T09:00:00Z. The limits are 20 active users and 10 new users per minute.",
    ],
    ["event_ended", { event: "sale", called_off: false }, "event sale is over."],
    ["event_ended", { event: "sale", called_off: true }, "event sale was called off before its start."],
    [
      "origin_unhealthy",
      { check: "a", held: true },
      "check a says that the origin is unhealthy. New users wait until it is healthy.",
    ],
    [
      "origin_unhealthy",
      { check: null, held: false },
      "nearly all requests to the origin fail. New users enter as ever.",
    ],
    [
      "origin_healthy",
      { check: "a", lasted_seconds: 90_000 },
      "check a says that the origin is healthy again, after 1 day 1 hour.",
    ],
    [
      "origin_healthy",
      { check: null, lasted_seconds: 0 },
      "requests to the origin are answered again, after 0 seconds.",
    ],
    [
      "limits_changed",
      { by: "origin", total_active_users_before: 1, new_users_per_minute_before: 2 },
      "the limits in force changed to 20 active users and 10 new users per minute (they follow the origin); before: 1 " +
        "active user and 2 new users per minute.",
    ],
    [
      "steered",
      {
        by: "anna",
        changes: [
          change("set", "queue_all", false, true),
          change("clear", "message", "Soon", ""),
          change("keep", "session_duration", 3, 3),
        ],
      },
      'anna set queue_all to true (before: false), set message back to what is deployed, "" (before: "Soon"), kept ' +
        "session_duration at 3.",
    ],
    [
      "steered",
      {
        by: "anna",
        changes: [
          {
            ...change("set", "queue_all", false, true),
            until: Date.UTC(2026, 10, 27, 18),
            reason: "Payment is down",
          },
        ],
      },
      "anna set queue_all to true until 2026-11-27T18:00:00Z (before: false). Why: Payment is down",
    ],
    [
      "steered",
      { by: "anna", changes: [{ ...change("end", "queue_all", true, false), by: "anna" }] },
      "queue_all = true, set by anna, has ended: it is false again.",
    ],
    [
      "fallback_in_use",
      {},
      "objects do not answer in time. New users enter by what was known last, and the limits are kept approximately.",
    ],
    ["fallback_ended", { lasted_seconds: 3_600 }, "objects answer in time again, after 1 hour."],
    [
      "limit_exceeded",
      { limit: "total_active_users", users: 22, more_than_limit: 2 },
      "22 users are active, 2 more than the limit of 20.",
    ],
    [
      "limit_exceeded",
      { limit: "new_users_per_minute", users: 14, more_than_limit: 4, passthrough: true },
      '14 new users entered in a minute, 4 more than the limit of 10. The room lets everybody in (queueing_method = "passthrough").',
    ],
  ]) {
    assert.equal(said(kind, more), `Room shop: ${text}`);
  }
});

test("each receiver gets the body that it reads", () => {
  const at = Date.UTC(2026, 10, 27, 8);
  const data = JSON.stringify(FIGURES);
  const written = (format, text, dropped = 0) => JSON.parse(body(format, "steered", at, text, data, dropped));
  assert.deepEqual(written("standard", "It is so."), {
    type: "steered",
    timestamp: "2026-11-27T08:00:00.000Z",
    text: "It is so.",
    data: { ...FIGURES, dropped: 0 },
  });
  const { text, data: with3 } = written("standard", "It is so.", 3);
  assert.equal(text, "It is so. (3 older news could not be delivered and were given up.)");
  assert.equal(with3.dropped, 3);

  const loud = `<!channel> & <users/all> ${"@everyone ".repeat(300)}`;
  assert.ok(written("slack", loud).text.startsWith("&lt;!channel&gt; &amp; &lt;users/all&gt; @everyone"));
  assert.ok(!written("google_chat", loud).text.includes("<"));
  const discord = written("discord", loud);
  assert.ok(discord.content.length <= 2_000);
  assert.deepEqual(discord.allowed_mentions, { parse: [] });
  // Google Chat refuses what it does not know.
  for (const format of ["slack", "google_chat"]) {
    assert.deepEqual(written(format, "It is so."), { text: `It is so.\n${FIGURES.url}` });
  }
  const [{ contentType, content }] = written("teams", "It is so.").attachments;
  assert.equal(contentType, "application/vnd.microsoft.card.adaptive");
  assert.equal(content.body[0].text, `It is so.\n${FIGURES.url}`);
});
