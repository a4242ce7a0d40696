/**
 * Makes the README's picture of the dashboard, docs/images/dashboard.png: the real page, of a room that is made up, on a
 * desk and on a phone. By hand: node tests/browser/dashboard-picture.mjs
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { startDashboard, TOKENS } from "../../tools/dashboard/server.mjs";
import { fewColours, pixelsOf } from "./png.mjs";
import { startBrowser } from "./room.mjs";

const FILE = resolve(import.meta.dirname, "../../docs/images/dashboard.png");
/** Pixels of the picture for one of its own. */
const SCALE = 1.5;
/** How the page is seen, and how large it is in the picture. */
const DESK = { viewport: { width: 1240, height: 1010 }, colorScheme: "light", width: 740, height: 603 };
const PHONE = { viewport: { width: 390, height: 1131 }, colorScheme: "dark", width: 208, height: 603 };

const FRAME = (desk, phone) => `<!doctype html>
<style>
body { margin: 0; padding: 8px; width: max-content; display: flex; gap: 20px }
img { display: block; border-radius: 10px; outline: 1px solid #9aa7a2 }
.phone { border-radius: 20px; outline: 6px solid #2a3634; margin-right: 6px }
</style>
<img alt="" width="${DESK.width}" height="${DESK.height}" src="data:image/png;base64,${desk.toString("base64")}">
<img class="phone" alt="" width="${PHONE.width}" height="${PHONE.height}" src="data:image/png;base64,${phone.toString("base64")}">`;

const server = await startDashboard();
const browser = await startBrowser();
try {
  // One room, as most have.
  for (const name of [...server.rooms.keys()]) if (name !== "sale") server.rooms.delete(name);
  const [token] = Object.keys(TOKENS);
  const open = async ({ viewport, colorScheme, width }) => {
    const deviceScaleFactor = (SCALE * width) / viewport.width;
    const context = await browser.newContext({ viewport, colorScheme, deviceScaleFactor });
    await context.addCookies([{ name: "__anteroom_operator", value: token, url: server.url }]);
    const page = await context.newPage();
    await page.goto(`${server.url}#room=sale`);
    await page.locator(".chart canvas").nth(2).waitFor();
    await page.waitForTimeout(3_000);
    return page;
  };
  const pages = await Promise.all([open(DESK), open(PHONE)]);
  const [desk, phone] = await Promise.all(pages.map((page) => page.screenshot()));
  const frame = await browser.newPage({ viewport: { width: 996, height: 620 }, deviceScaleFactor: SCALE });
  await frame.setContent(FRAME(desk, phone));
  const picture = await frame.locator("body").screenshot({ omitBackground: true });
  const image = fewColours(await frame.evaluate(pixelsOf, picture.toString("base64")));
  writeFileSync(FILE, image);
  console.log(`${FILE}: ${image.length} bytes`);
} finally {
  await browser.close();
  await server.close();
}
