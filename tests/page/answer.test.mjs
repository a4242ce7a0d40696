// How a waiting visitor is answered: page or JSON, headers, policy, safety.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { answerTo, BROWSER, readable } from "./page.mjs";

const JSON_CLIENT = { accept: "application/json" };

/** What stands between the only `<name>` and its `</name>`. */
function contentOf(page, name) {
  const parts = page.split(`<${name}>`);
  assert.equal(parts.length, 2, `one ${name}`);
  return parts[1].split(`</${name}>`)[0];
}
const hash = (content) => `'sha256-${createHash("sha256").update(content).digest("base64")}'`;

test("the page has the room's status code and reloads itself", async () => {
  for (const status of [200, 202, 429]) {
    const page = await answerTo("known", { facts: { status, refreshSeconds: 19 } });
    assert.ok(page.isPage);
    assert.equal(page.status, status);
    assert.equal(page.headers.refresh, "19; url=./x");
    assert.equal(page.headers["retry-after"], "19");
  }
});

test("the page reloads its own address and no other", async () => {
  for (const [url, refresh] of [
    ["https://shop.example.com/", "20; url=./"],
    ["https://shop.example.com/?x=1#demo", "20; url=./?x=1"],
    ["https://shop.example.com/product/2", "20; url=./2"],
    ["https://shop.example.com/product?back=/cart/", "20; url=./product?back=/cart/"],
    ["https://shop.example.com//evil.example", "20; url=./evil.example"],
    ["https://shop.example.com/a/javascript:alert(1)", "20; url=./javascript:alert(1)"],
    [`https://shop.example.com/${"x".repeat(3_000)}`, "20"],
  ])
    assert.equal((await answerTo("known", { url })).headers.refresh, refresh, url.slice(0, 60));
});

test("a page that nobody will pass does not come back", async () => {
  for (const headers of [BROWSER, JSON_CLIENT]) {
    const answer = await answerTo("reject", { headers });
    assert.deepEqual([answer.headers.refresh, answer.headers["retry-after"]], [undefined, undefined]);
  }
  const { body } = await answerTo("reject");
  assert.match(body, /Entry is closed/);
  assert.doesNotMatch(readable(body), /<noscript>|about every|Leave this page open/);
});

test("no answer is stored, guessed at or listed, and each brings the ticket", async () => {
  const ticket = { headers: [["set-cookie", "__anteroom=x; Path=/sale; HttpOnly"]] };
  for (const options of [
    {},
    { headers: JSON_CLIENT },
    { facts: { asksForStatus: true } },
    { method: "HEAD" },
  ]) {
    const { headers, cookies } = await answerTo("known", {
      ...options,
      facts: { ...ticket, ...options.facts },
    });
    assert.equal(headers["cache-control"], "private, no-store");
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["x-robots-tag"], "noindex");
    assert.equal(headers["referrer-policy"], "same-origin");
    assert.match(headers.vary, /Cookie, Accept, Accept-Language/);
    assert.equal(headers.anteroom, "waiting");
    assert.deepEqual(cookies, ["__anteroom=x; Path=/sale; HttpOnly"]);
  }
});

test("the policy allows exactly the script and the style of the page", async () => {
  const { body, headers } = await answerTo("known");
  assert.deepEqual(headers["content-security-policy"].split("; "), [
    "default-src 'none'",
    `style-src ${hash(contentOf(body, "style"))}`,
    `script-src ${hash(contentOf(body, "script"))}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ]);
  assert.doesNotMatch(body, / style=| on\w+=/, "the policy forbids attributes that hold code");
});

test("a room that lives in frames of other sites waits there too", async () => {
  for (const customPage of ["", "own"]) {
    const options = { templates: { own: "x" }, facts: { embedded: true, customPage } };
    const { headers } = await answerTo("known", options);
    assert.doesNotMatch(headers["content-security-policy"], /frame-ancestors/);
  }
});

test("the page is small and needs nothing else", async () => {
  const { body } = await answerTo("closed", { facts: { peopleAhead: Number.MAX_SAFE_INTEGER } });
  assert.ok(body.length < 20_000, `${body.length} bytes`);
  assert.doesNotMatch(body, /src=|@import|url\(|\{\{/);
});

test("every value from outside is escaped", async () => {
  const evil = `<script>alert('1')</script>&"x"\${y}{{z}}`;
  const { body } = await answerTo("known", { facts: { host: evil, message: evil } });
  assert.doesNotMatch(body, /alert\('1'\)|&"x"/);
  assert.equal(body.split("<script").length, 2);
  const own = await answerTo("known", {
    facts: { host: evil, message: evil, customPage: "own" },
    templates: { own: "<p title='{{message}}'>{{host}}</p>" },
  });
  assert.doesNotMatch(own.body, /<script|title='[^']*'[^>]/);
});

test("what the page says is what its script is told later", async () => {
  for (const state of ["known", "unknown", "closed", "held", "prequeue", "full", "random"]) {
    const { body } = await answerTo(state);
    const { json } = await answerTo(state, { facts: { asksForStatus: true, status: 429 } });
    for (const name of ["waitText", "waitLabel", "waitNote", "title", "peopleText"])
      assert.ok(body.includes(`>${json[name]}<`), `${state}, ${name}: ${json[name]}`);
    assert.ok(body.includes(`data-state="${json.door}"`));
  }
});

test("the script's question is answered, whatever the room's status code", async () => {
  const { status, headers, json } = await answerTo("known", { facts: { asksForStatus: true, status: 429 } });
  assert.equal(status, 200);
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["retry-after"], "20");
  assert.equal(headers.refresh, undefined);
  const { admitted, waitKnown, waitSeconds, peopleAhead, refreshSeconds, queueAll, progress } = json;
  assert.deepEqual(
    { admitted, waitKnown, waitSeconds, peopleAhead, refreshSeconds, queueAll, progress },
    {
      admitted: false,
      waitKnown: true,
      waitSeconds: 600,
      peopleAhead: 1204,
      refreshSeconds: 20,
      queueAll: false,
      progress: 42,
    },
  );
});

const FIREFOX = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8";
for (const [client, headers, isPage] of [
  ["a browser that opens a page", { accept: FIREFOX, "sec-fetch-dest": "document" }, true],
  ["a browser of before Fetch Metadata", { accept: FIREFOX }, true],
  ["a frame", { accept: FIREFOX, "sec-fetch-dest": "iframe" }, true],
  ["fetch in a page", { accept: "*/*", "sec-fetch-dest": "empty", "sec-fetch-mode": "cors" }, false],
  ["fetch for a part of a page", { accept: "text/html", "sec-fetch-dest": "empty" }, true],
  ["axios", { accept: "application/json, text/plain, */*" }, false],
  ["jQuery", { accept: "*/*", "x-requested-with": "XMLHttpRequest" }, false],
  ["jQuery for JSON", { accept: "application/json, text/javascript, */*; q=0.01" }, false],
  ["curl, Python requests, Node fetch", { accept: "*/*" }, false],
  ["who says nothing", {}, false],
  ["a navigation that says little", { accept: "*/*", "sec-fetch-mode": "navigate" }, true],
  ["an old browser's navigation", { accept: "*/*", "upgrade-insecure-requests": "1" }, true],
  ["a problem+json client", { accept: "application/problem+json" }, false],
  ["JSON rather than HTML", { accept: "text/html;q=0.5, application/json" }, false],
  ["HTML rather than JSON", { accept: "application/json;q=0.5, text/html" }, true],
  ["no HTML at all", { accept: "text/html;q=0, application/json;q=0.1" }, false],
  ["an image", { accept: "image/avif,image/webp,*/*;q=0.8", "sec-fetch-dest": "image" }, false],
  ["nonsense", { accept: ";;;q=//,,\u00ff" }, false],
]) {
  test(`${isPage ? "a page" : "JSON"} for ${client}`, async () => {
    const answer = await answerTo("known", { headers });
    assert.equal(answer.isPage, isPage);
    if (!isPage) assert.equal(answer.json.cfWaitingRoom.inWaitingRoom, true);
    // The owner may want pages only.
    assert.ok((await answerTo("known", { headers, facts: { preferredJson: false } })).isPage);
  });
}

test("with json_response_enabled exactly one value of Accept asks for JSON", async () => {
  const facts = { exactJson: true, preferredJson: false };
  assert.ok((await answerTo("known", { facts, headers: JSON_CLIENT })).json);
  for (const accept of ["application/json, text/html", "application/json;q=1", "*/*"])
    assert.ok((await answerTo("known", { facts, headers: { accept } })).isPage, accept);
});

test("a script of another site's page can read how long to wait", async () => {
  const headers = { accept: "*/*", "sec-fetch-dest": "empty", origin: "https://app.example.com" };
  const answer = await answerTo("known", { headers });
  assert.equal(answer.headers["access-control-allow-origin"], "https://app.example.com");
  assert.equal(answer.headers["access-control-allow-credentials"], "true");
  assert.match(answer.headers["access-control-expose-headers"], /Retry-After/);
  assert.match(answer.headers.vary, /Origin/);
  const page = await answerTo("known", { headers: { ...BROWSER, origin: "https://app.example.com" } });
  assert.equal(page.headers["access-control-allow-origin"], undefined, "a page is for people");
});

test("HEAD gets what GET gets, without a body", async () => {
  const [head, get] = await Promise.all(["HEAD", "GET"].map((method) => answerTo("known", { method })));
  assert.equal(head.body, "");
  assert.deepEqual(head.headers, get.headers);
});

test("refused cookies are told", async () => {
  assert.match((await answerTo("known")).body, /id="cookies" class="trouble" hidden>/);
  assert.match((await answerTo("cookieless")).body, /id="cookies" class="trouble">/);
});

test("a room of every host names none", async () => {
  const { body } = await answerTo("known", { facts: { host: "" } });
  assert.equal(contentOf(body, "h1"), "You are in line");
});
