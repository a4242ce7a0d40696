/**
 * What the browser tests share: the real Worker in workerd with the demo origin behind it, a Chromium, and visitors
 * whose every request, complaint and navigation is on record.
 *
 * ANTEROOM_BUILD names a folder with another build than the one in build/. SCREENSHOTS=1 keeps a screenshot of every
 * state in tests/browser/screenshots/, for human eyes.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { Miniflare } from "miniflare";
import { chromium } from "playwright";
import { findChromium } from "../../tools/chromium.mjs";
import { startDemoOrigin } from "../../tools/demo-origin.mjs";
import { Clock, clock } from "../edge/clock.mjs";
import { OBJECTS_ENTRY } from "../edge/world.mjs";

// Browsers have clocks of their own.
clock.goReal();

const ROOT = resolve(import.meta.dirname, "../..");
const BUILD = resolve(ROOT, process.env.ANTEROOM_BUILD ?? "build");
const SCREENSHOTS = join(import.meta.dirname, "screenshots");

/** When to give up; no promise of how fast anything is. */
export const PATIENCE_MS = 180_000;

const OBJECTS = {
  COUNTER: "Counter",
  ANYWHERE: "Anywhere",
  DATA_CENTER: "DataCenter",
  GLOBAL: "Global",
  HEALTH: "Health",
  CONFIG: "Config",
};

/** Objects that throw, for visitors who come while the room's own are out of order. */
const BROKEN_OBJECTS = `${Object.values(OBJECTS)
  .map((name) => `export class ${name} { fetch() { throw new Error("out of order"); } }`)
  .join("\n")}
export default { fetch: () => new Response("none") };`;

/** The Worker as it is, but that its clock can be put forward. */
const ENTRY = `
import built from "./index.js";
import objects from "./objects.js";
export * from "./objects.js";
export default {
  fetch: (request, ...more) => (request.headers.has("clock-by-the-test") ? objects : built).fetch(request, ...more),
};`;

/** A small room in front of everything, whose place is free after a minute. */
const DEMO = {
  path: "/",
  total_active_users: 1,
  new_users_per_minute: 10,
  session_duration: 1,
  refresh_interval_seconds: 5,
};

/**
 * Starts the Worker in front of an origin, by default a demo shop of its own.
 * @param {object} [options]
 * @param {object} [options.room] what differs from the demo room
 * @param {Record<string, unknown>} [options.vars] more vars
 * @param {string} [options.origin] URL of another origin
 * @param {boolean} [options.broken] the objects are out of order
 */
export async function startRoom({ room = {}, vars = {}, origin, broken = false } = {}) {
  const shop = origin ? undefined : await startDemoOrigin({ activeUsers: room.total_active_users ?? 1 });
  const keys = randomBytes(32).toString("base64");
  const log = [];
  const time = new Clock().goReal();
  const options = (changes, alarms) => {
    const objects = Object.entries(OBJECTS).map(([binding, className]) => [
      binding,
      { className, useSQLite: true, ...(broken && { scriptName: "broken" }) },
    ]);
    const anteroom = {
      name: "anteroom",
      modules: [
        { type: "ESModule", path: "entry.js", contents: ENTRY },
        { type: "ESModule", path: "objects.js", contents: OBJECTS_ENTRY },
        { type: "ESModule", path: "clock.js", contents: time.source(alarms) },
        { type: "ESModule", path: "index.js", contents: readFileSync(join(BUILD, "index.js"), "utf8") },
        { type: "CompiledWasm", path: "index_bg.wasm", contents: readFileSync(join(BUILD, "index_bg.wasm")) },
      ],
      compatibilityDate: "2026-07-01",
      bindings: {
        ORIGIN: origin ?? shop.url,
        COOKIE_KEYS: keys,
        // The machine may be busy with the browser.
        OBJECT_DEADLINE_MS: "5000",
        ROOM_DEMO: { ...DEMO, ...room, ...changes },
        ...vars,
      },
      durableObjects: Object.fromEntries(objects),
    };
    const out = {
      name: "broken",
      modules: true,
      script: BROKEN_OBJECTS,
      compatibilityDate: "2026-07-01",
      durableObjects: Object.fromEntries(
        Object.entries(OBJECTS).map(([binding, className]) => [binding, { className, useSQLite: true }]),
      ),
    };
    return {
      host: "127.0.0.1",
      port: 0,
      cf: false,
      handleStructuredLogs: ({ level, message }) => void log.push(`${level}: ${message}`),
      workers: broken ? [anteroom, out] : [anteroom],
    };
  };
  const worker = new Miniflare(options({}));
  const url = (await worker.ready).origin;
  const drive = () => {
    const isolate = time.drive(url);
    isolate.stay();
    return isolate;
  };
  let isolate = drive();
  return {
    url,
    /** The room's clock: milliseconds since the epoch. */
    now: time.now,
    /** Puts it forward. What pages wait for they wait for by their own. */
    pass: (ms) => time.pass(ms),
    /** Sends an object a message as another object would: bytes on a route. */
    tell: async (binding, name, route, bytes) => {
      const objects = await worker.getDurableObjectNamespace(binding);
      const stub = objects.get(objects.idFromName(name));
      return stub.fetch(`https://object${route}`, { method: "POST", body: Uint8Array.from(bytes) });
    },
    /** Like the platform's, but to any host. */
    fetch: (address, init) => worker.dispatchFetch(address, init),
    /** What the Worker logged. */
    log,
    /** Deploys the room anew with some of it changed, as its owner would. */
    change: async (changes) => {
      const alarms = await time.leave([isolate]);
      await worker.setOptions({ ...options(changes, alarms), port: Number(new URL(url).port) });
      isolate = drive();
    },
    close: async () => {
      await time.leave([isolate]);
      await worker.dispose();
      await shop?.close();
    },
  };
}

/**
 * @param {import("playwright").LaunchOptions} [options]
 * @returns {Promise<import("playwright").Browser>}
 */
export async function startBrowser(options = {}) {
  // Nothing here is drawn by a GPU, and to look for one can hang where there is none.
  return chromium.launch({ executablePath: await findChromium(), args: ["--disable-gpu"], ...options });
}

/** Runs in every page before its own script: tells what breaks the policy and what a screen reader would say. */
function observe() {
  addEventListener("securitypolicyviolation", (event) => {
    globalThis.tell("violation", `${event.violatedDirective}: ${event.blockedURI}`);
  });
  addEventListener("DOMContentLoaded", () => {
    for (const region of document.querySelectorAll("[aria-live], [role=status]")) {
      const parts = region.children.length > 0 ? [...region.children] : [region];
      for (const part of parts) {
        let before = part.textContent;
        new MutationObserver(() => {
          const text = part.textContent;
          globalThis.tell("said", { text, again: text === before });
          before = text;
        }).observe(part, { childList: true, characterData: true, subtree: true });
      }
    }
  });
}

/** Somebody with a browser of their own: own cookies, one tab to begin with. */
export class Visitor {
  /** Addresses that were asked for, in order; `status` for the script's own question. */
  requests = [];
  /** Errors and warnings of the console, uncaught errors, broken policies. */
  problems = [];
  /** What live regions came to say; `again` when it was no news. */
  said = [];

  /**
   * @param {import("playwright").Browser} browser
   * @param {import("playwright").BrowserContextOptions} [options]
   */
  static async of(browser, options = {}) {
    const visitor = new Visitor();
    visitor.context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    visitor.context.setDefaultTimeout(PATIENCE_MS);
    await visitor.#record();
    visitor.page = await visitor.newTab();
    return visitor;
  }

  async #record() {
    this.context.on("request", (request) => {
      const status = request.headers()["anteroom-status"] === "1";
      this.requests.push({ url: request.url(), status, document: request.isNavigationRequest() });
    });
    this.context.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.problems.push(message.text());
    });
    this.context.on("weberror", (error) => this.problems.push(`${error.error()}`));
    await this.context.exposeBinding("tell", (_source, kind, content) => {
      if (kind === "said") this.said.push(content);
      else this.problems.push(`${kind}: ${content}`);
    });
    await this.context.addInitScript(observe);
  }

  /** A tab that counts what its main frame loads. */
  async newTab() {
    const page = await this.context.newPage();
    page.navigations = 0;
    page.on("framenavigated", (frame) => {
      if (frame === page.mainFrame()) page.navigations += 1;
    });
    return page;
  }

  /** How often the page's script has asked for the status. */
  get checkIns() {
    return this.requests.filter(({ status }) => status).length;
  }

  /** Waits until the script has asked `count` times more. */
  async checksIn(count = 1) {
    for (let asked = 0; asked < count; asked += 1) {
      const response = await this.context.waitForEvent("response", {
        predicate: (answer) => answer.request().headers()["anteroom-status"] === "1",
      });
      await response.finished();
    }
  }

  /** Everything asked for came from `origin` or was inside the page, and nothing complained. */
  expectQuiet(origin) {
    const outside = this.requests.filter(({ url }) => !url.startsWith(`${origin}/`) && !/^data:/.test(url));
    assert.deepEqual(outside, [], "requests to elsewhere");
    assert.deepEqual(this.problems, []);
    const repeated = this.said.filter(({ again }) => again);
    assert.deepEqual(repeated, [], "a live region was written without news");
  }

  async close() {
    // What a route was to change and is still on its way ends without an error.
    await this.context.unrouteAll({ behavior: "ignoreErrors" });
    await this.context.close();
  }
}

/** The words that tell where a visitor is. */
export const inLine = (page) => page.getByRole("heading", { name: "You are in line" });
/** The wait that is shown. @param {import("playwright").Page} page @param {RegExp} text */
export const wait = (page, text) => page.locator("#wait").filter({ hasText: text });
export const inShop = (page) => page.getByRole("heading", { name: "Good things for the hall" });

/**
 * Visitors without a browser who wait in line, each with its cookie, as long as nobody stops them.
 * @param {string} url
 * @param {number} count
 * @param {typeof fetch} [send]
 */
export async function startCrowd(url, count, send = fetch) {
  const stop = new AbortController();
  const ask = async (visitor) => {
    const headers = { "anteroom-status": "1", ...(visitor.cookie && { cookie: visitor.cookie }) };
    const response = await send(url, { headers, signal: stop.signal });
    visitor.cookie = response.headers.getSetCookie()[0]?.split(";", 1)[0] ?? visitor.cookie;
    await response.arrayBuffer();
  };
  const crowd = Array.from({ length: count }, () => ({}));
  await Promise.all(crowd.map(ask));
  const timer = setInterval(() => {
    // One that fails comes again with the next.
    for (const visitor of crowd) ask(visitor).catch(() => {});
  }, 5_000);
  return () => {
    clearInterval(timer);
    stop.abort();
  };
}

const SIZES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } };
/** The width to which content must reflow without scrolling sideways (WCAG 1.4.10). */
export const NARROWEST = { width: 320, height: 640 };

/** Runs in the page: how the focused element shows its focus. */
function focusRing() {
  const element = document.activeElement;
  const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element);
  return {
    name: element.textContent.trim(),
    body: element === document.body,
    outlineStyle,
    outlineWidth: Number.parseFloat(outlineWidth),
    outlineColor,
    paper: getComputedStyle(document.body).backgroundColor,
  };
}

/** Relative luminance of `rgb(…)` (WCAG 2). */
function luminance(color) {
  const [red, green, blue] = color.match(/[\d.]+/g).map((value) => {
    const part = Number(value) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((left, right) => left - right);
  return (light + 0.05) / (dark + 0.05);
}

/** Walks through the page by the Tab key: it reaches everything, and each stop is plain to see. */
async function expectVisibleFocus(page) {
  const expected = await page.locator("a[href]:visible, button:visible").count();
  const reached = new Set();
  // One more for the moment when the focus leaves the page, from where it comes in again at the top.
  for (let press = 0; press <= expected; press += 1) {
    await page.keyboard.press("Tab");
    const ring = await page.evaluate(focusRing);
    if (ring.body) continue;
    reached.add(ring.name);
    assert.notEqual(ring.outlineStyle, "none", `${ring.name}: no focus ring`);
    assert.ok(ring.outlineWidth >= 2, `${ring.name}: a focus ring of ${ring.outlineWidth}px`);
    const ratio = contrast(ring.outlineColor, ring.paper);
    assert.ok(ratio >= 3, `${ring.name}: a focus ring of contrast ${ratio.toFixed(1)}`);
  }
  assert.equal(reached.size, expected, `Tab reaches only ${[...reached]}`);
  await page.evaluate(() => document.activeElement?.blur?.());
}

/** @param {import("playwright").Page} page @param {string} where which page it is, for the message */
export async function expectNoSidewaysScrolling(page, where) {
  const [content, window] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(content <= window, `${where}: ${content}px of content in ${window}px`);
}

/** What axe objects to in a page as it is. @param {import("playwright").Page} page @returns {Promise<string[]>} */
export async function objections(page) {
  // Without its way to look into frames of other sites, of which there are none, and which takes as long again.
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
  return violations.map(({ id, help, nodes }) => `${id} (${help}): ${nodes.map(({ html }) => html)}`);
}

/**
 * Looks at the page as it is, on a phone and a desk, by day and by night: nothing that axe objects to, nothing to
 * scroll sideways for, focus to be seen; with SCREENSHOTS=1 a screenshot of each. Axe looks at each size and each light
 * once, as that takes seconds.
 * @param {import("playwright").Page} page
 * @param {string} state names the screenshots
 * @param {{ keyboard?: boolean, language?: string }} [options] `keyboard`: try the Tab key
 */
export async function look(page, state, { keyboard = true, language = "en-US" } = {}) {
  assert.equal(await page.locator("html").getAttribute("lang"), language);
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport);
    await expectNoSidewaysScrolling(page, `${state} on a ${size}`);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const isAsked = (size === "phone") === (colorScheme === "light");
      if (isAsked) assert.deepEqual(await objections(page), [], `axe: ${state}, ${size}, ${colorScheme}`);
      if (keyboard) await expectVisibleFocus(page);
      if (process.env.SCREENSHOTS !== "1") continue;
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({
        path: join(SCREENSHOTS, `${state}-${size}-${colorScheme}.png`),
        fullPage: true,
      });
    }
  }
  await page.setViewportSize(NARROWEST);
  await expectNoSidewaysScrolling(page, `${state} on the narrowest screen`);
}
