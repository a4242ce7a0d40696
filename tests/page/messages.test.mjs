// Pages that say one thing: in the visitor's language, and with nothing but words in them.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { createWaitingRoom } from "../../src/edge/page/answer.js";
import { pages } from "./page.mjs";

const BUSY = {
  say: "busy",
  status: 503,
  headers: [["set-cookie", "__anteroom=x"]],
  language: "de-DE",
  visitorLanguages: true,
  again: "tryAgain",
  retryAfter: 3,
  refreshes: true,
};
const answer = createWaitingRoom(pages);

async function told(message, headers = {}, method = "GET") {
  const response = answer(message, new Request("https://shop.example.com/sale", { method, headers }));
  return { status: response.status, headers: response.headers, body: await response.text() };
}

for (const [tag, file] of Object.entries(pages.languages)) {
  test(`${tag}: every message has a title and a text`, async () => {
    const texts = JSON.parse(file);
    for (const say of [
      "notFound",
      "badPath",
      "unreachable",
      "late",
      "busy",
      "moved",
      "linkOver",
      "turnOver",
      "lineOver",
    ]) {
      const { body, headers } = await told({ ...BUSY, say }, { "accept-language": tag });
      assert.equal(headers.get("content-language"), tag);
      for (const text of [texts[`${say}Title`], texts[say], texts.tryAgain])
        assert.ok(body.includes(`>${text}<`), text);
    }
  });
}

const TURN = { ...BUSY, say: "turn", status: 200, again: "enter", retryAfter: 61, turnSeconds: 60 };

test("whose turn it is has a link to go in, and is told in each language how long that works", async () => {
  for (const [tag, file] of Object.entries(pages.languages)) {
    const texts = JSON.parse(file);
    const { body, headers } = await told(TURN, { "accept-language": tag });
    assert.equal(headers.get("anteroom"), "waiting");
    assert.ok(body.includes(`<a href="">${texts.enter}</a>`), tag);
    const minute = new Intl.NumberFormat(tag, { style: "unit", unit: "minute", unitDisplay: "long" }).format(
      1,
    );
    assert.ok(body.includes(texts.turnWithin.replace("{duration}", minute)), tag);
  }
  const { status, headers, body } = await told({ ...TURN, asksForStatus: true });
  assert.deepEqual([status, headers.get("content-type")], [200, "application/json"]);
  assert.deepEqual(Object.keys(JSON.parse(body)), ["admitted", "seconds", "note"]);
  assert.equal(headers.get("set-cookie"), "__anteroom=x");
});

test("the owner's language is taken where the visitor's is not known, or not wanted", async () => {
  assert.match((await told(BUSY, { "accept-language": "xx" })).body, /<html lang="de-DE" dir="ltr">/);
  assert.match((await told(BUSY, { "accept-language": "ar" })).body, /<html lang="ar-EG" dir="rtl">/);
  const owners = { ...BUSY, visitorLanguages: false };
  assert.match((await told(owners, { "accept-language": "ar" })).body, /<html lang="de-DE" dir="ltr">/);
});

test("a message runs no script, is not stored or listed, and brings the ticket along", async () => {
  const { status, headers, body } = await told(BUSY);
  assert.equal(status, 503);
  const policy = headers.get("content-security-policy");
  const [, style] = /<style>(.*)<\/style>/s.exec(body);
  const hash = createHash("sha256").update(style).digest("base64");
  assert.ok(policy.startsWith("default-src 'none'; ") && policy.includes(`style-src 'sha256-${hash}';`));
  assert.doesNotMatch(policy, /script-src/);
  assert.doesNotMatch(body, /<script/);
  for (const [name, value] of Object.entries({
    "cache-control": "private, no-store",
    "x-content-type-options": "nosniff",
    "x-robots-tag": "noindex",
    "referrer-policy": "same-origin",
    vary: "Cookie, Accept, Accept-Language, Anteroom-Status",
    "set-cookie": "__anteroom=x",
    "retry-after": "3",
    refresh: "3",
  }))
    assert.equal(headers.get(name), value, name);
});

test("what was sent with another method is not sent again, and where it does not help nobody is told to try", async () => {
  const sent = await told({ ...BUSY, refreshes: false }, {}, "POST");
  assert.equal(sent.headers.get("refresh"), null);
  const gone = { ...BUSY, say: "notFound", status: 404, again: "", retryAfter: null, refreshes: false };
  const { headers, body } = await told(gone);
  assert.equal(headers.get("retry-after"), null);
  assert.doesNotMatch(body, /<a /);
  assert.equal((await told(gone, {}, "HEAD")).body, "");
});
