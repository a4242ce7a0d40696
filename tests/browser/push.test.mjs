// A visitor who is told by a push message, in a real Chromium: the real service worker, and messages that the browser is
// handed as if its push service had brought them. A browser without a screen has no such service, so the page's
// subscription is made up.
import assert from "node:assert/strict";
import { createECDH, generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { inLine, PATIENCE_MS, startBrowser, startRoom, Visitor } from "./room.mjs";

/** In the page, before its own script: the browser subscribes. */
function subscribes(subscription) {
  PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    globalThis.subscribedWith = { applicationServerKey, userVisibleOnly };
    return { toJSON: () => subscription, unsubscribe: async () => true };
  };
}

test("who closes the page is told by a notification, which opens it", async (t) => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const room = await startRoom({
    room: { queue_all: true },
    vars: {
      VAPID_PRIVATE_KEY: JSON.stringify(privateKey.export({ format: "jwk" })),
      VAPID_SUBJECT: "mailto:owner@shop.test",
      PUSH_SERVICES: "push.test",
    },
  });
  t.after(room.close);
  const browser = await startBrowser();
  t.after(() => browser.close());
  const visitor = await Visitor.of(browser, { permissions: ["notifications"] });
  const { page, context } = visitor;
  const keys = { p256dh: createECDH("prime256v1").generateKeys("base64url"), auth: "A".repeat(22) };
  await context.addInitScript(subscribes, { endpoint: "https://push.test/mine", keys });

  await page.goto(`${room.url}/sale`);
  await inLine(page).waitFor();
  const workers = () => page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length);
  assert.equal(await workers(), 0, "nothing happens unasked");

  const session = await context.newCDPSession(page);
  const registered = new Promise((resolve) => {
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const ours = registrations.find(({ scopeURL }) => scopeURL === `${room.url}/__anteroom/`);
      if (ours) resolve(ours.registrationId);
    });
  });
  await session.send("ServiceWorker.enable");
  await page.getByRole("button", { name: "Tell me when it is my turn" }).click();
  await page.getByText("You may close this page: you will be notified when your turn is near.").waitFor();
  const asked = await page.evaluate(() => globalThis.subscribedWith);
  assert.equal(asked.userVisibleOnly, true);
  assert.equal(Buffer.from(asked.applicationServerKey, "base64url").length, 65);
  const [cookie] = await context.cookies();
  assert.ok(cookie.expires > room.now() / 1000 + 23 * 3600, "the place is kept for a day");
  await page.getByText("If you close it, your place is kept for 24 hours.").waitFor();
  assert.ok(
    await page.evaluate(() => navigator.serviceWorker.controller === null),
    "the page is not its matter",
  );

  const message = { title: "Your turn is near", body: "Open the page.", lang: "en-US", dir: "ltr" };
  const shown = () =>
    page.evaluate(async () => {
      const worker = await navigator.serviceWorker.getRegistration("/__anteroom/");
      return (await worker.getNotifications()).map(({ title, body, lang, data }) => ({
        title,
        body,
        lang,
        data,
      }));
    });
  const deliver = async (url) =>
    session.send("ServiceWorker.deliverPushMessage", {
      origin: room.url,
      registrationId: await registered,
      data: JSON.stringify({ ...message, url }),
    });
  await deliver(`${room.url}/closed`);
  await page.waitForFunction(
    async () => {
      const worker = await navigator.serviceWorker.getRegistration("/__anteroom/");
      return (await worker.getNotifications()).length > 0;
    },
    undefined,
    { timeout: PATIENCE_MS },
  );
  const { title, body, lang } = message;
  assert.deepEqual(await shown(), [{ title, body, lang, data: `${room.url}/closed` }]);
  visitor.expectQuiet(room.url);
});
