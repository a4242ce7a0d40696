/**
 * Makes the picture of the status page, docs/images/health-page.png: the real page, of an hour that is made up. By hand,
 * after `npm run build`: node tests/browser/health-picture.mjs
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { anHour, notification, platformTime, record, WEBHOOK, WEBHOOK_SECRET } from "../edge/health.mjs";
import { fewColours, pixelsOf } from "./png.mjs";
import { startBrowser, startRoom } from "./room.mjs";

const FILE = resolve(import.meta.dirname, "../../docs/images/health-page.png");
const MINUTE = 60_000;
/** Configured, so that they are shown; suspended, so that nobody looks. */
const check = { url: "https://origin.example.com/", regions: ["WEU", "SEAS"], suspended: true };

const room = await startRoom({
  vars: { WEBHOOK_SECRET, HEALTH_PAGE: "public", CHECK_PRODUCTION: check, CHECK_STAGING: check },
});
const browser = await startBrowser();
try {
  const now = Date.now();
  // Oldest first, as observers tell it.
  const results = anHour(now).sort((one, other) => one.at - other.at);
  await room.tell("HEALTH", "health", "/record", record(results));
  const headers = { "cf-webhook-auth": WEBHOOK_SECRET };
  for (const data of [
    { time: platformTime(now - 50 * MINUTE) },
    { time: platformTime(now - 38 * MINUTE), status: "Healthy", reason: "No failures", actual_code: 200 },
  ]) {
    const body = JSON.stringify(notification(data));
    await fetch(`${room.url}${WEBHOOK}`, { method: "POST", headers, body });
  }
  const page = await browser.newPage({ viewport: { width: 1100, height: 980 }, colorScheme: "light" });
  await page.goto(`${room.url}/__anteroom/health?range=1h`);
  await page.locator("#total-chart canvas").waitFor();
  const picture = await page.screenshot();
  const image = fewColours(await page.evaluate(pixelsOf, picture.toString("base64")));
  writeFileSync(FILE, image);
  console.log(`${FILE}: ${image.length} bytes`);
} finally {
  await browser.close();
  await room.close();
}
