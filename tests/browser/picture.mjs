/**
 * Makes the README's picture of the waiting page, docs/images/waiting-page.png: the real page, in front of the real
 * Worker, as the 61st in line sees it. By hand, after `npm run build`: node tests/browser/picture.mjs
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fewColours, pixelsOf } from "./png.mjs";
import { inLine, startBrowser, startCrowd, startRoom } from "./room.mjs";

const FILE = resolve(import.meta.dirname, "../../docs/images/waiting-page.png");
const HOST = "shop.example.com";
const ADDRESS = `http://${HOST}/`;

/** Pixels of the picture for one of its own; more would not be seen in a README. */
const SCALE = 1.6;
/** How the page is seen, and how large it is in the picture. */
const DESK = { viewport: { width: 1120, height: 700 }, colorScheme: "light", width: 720, height: 450 };
const PHONE = { viewport: { width: 390, height: 844 }, colorScheme: "dark", width: 208, height: 450 };

const FRAME = (desk, phone) => `<!doctype html>
<style>
body { margin: 0; padding: 8px; width: max-content; display: flex; gap: 20px }
img { display: block; border-radius: 10px; outline: 1px solid #9aa7a2 }
.phone { border-radius: 20px; outline: 6px solid #2a3634; margin-right: 6px }
</style>
<img alt="" width="${DESK.width}" height="${DESK.height}" src="data:image/png;base64,${desk.toString("base64")}">
<img class="phone" alt="" width="${PHONE.width}" height="${PHONE.height}" src="data:image/png;base64,${phone.toString("base64")}">`;

/** Opens the page so that its screenshot has the pixels of the picture, one for one. */
async function open(browser, { viewport, colorScheme, width }) {
  const deviceScaleFactor = (SCALE * width) / viewport.width;
  const page = await browser.newPage({ viewport, colorScheme, deviceScaleFactor });
  await page.goto(ADDRESS);
  await inLine(page).waitFor();
  return page;
}

const room = await startRoom({
  room: { host: HOST, total_active_users: 10, new_users_per_minute: 10, refresh_interval_seconds: 20 },
});
const browser = await startBrowser({
  args: [`--host-resolver-rules=MAP ${HOST}:80 ${new URL(room.url).host}`],
});
const stopCrowd = await startCrowd(ADDRESS, 70, room.fetch);
try {
  console.log("A crowd of 70 is in line; whoever comes in the next minute has them ahead …");
  await pause(60_000 - (Date.now() % 60_000) + 1_000);
  const pages = await Promise.all([open(browser, DESK), open(browser, PHONE)]);
  // Both came in the same second; until they have heard the same.
  for (;;) {
    const waits = await Promise.all(pages.map((page) => page.locator("#wait").textContent()));
    const people = await Promise.all(pages.map((page) => page.locator("#people").textContent()));
    if (waits[0] === waits[1] && people[0] === people[1]) break;
    await pause(500);
  }
  await pause(2_500); // for a part of the moving line
  const [desk, phone] = await Promise.all(pages.map((page) => page.screenshot()));
  const frame = await browser.newPage({ viewport: { width: 976, height: 466 }, deviceScaleFactor: SCALE });
  await frame.setContent(FRAME(desk, phone));
  const picture = await frame.locator("body").screenshot({ omitBackground: true });
  const image = fewColours(await frame.evaluate(pixelsOf, picture.toString("base64")));
  mkdirSync(join(FILE, ".."), { recursive: true });
  writeFileSync(FILE, image);
  console.log(`${FILE}: ${image.length} bytes`);
} finally {
  stopCrowd();
  await browser.close();
  await room.close();
}
