// What operators see in a browser: the sign-in page, the dashboard, its script and style, and the page that visitors of a
// room see right now. WebAssembly decides who may see it (`src/edge/dashboard.rs` calls this); nothing here knows a token.
import Mustache from "mustache";
import { direction } from "./page/languages.js";

/**
 * What tools/dashboard/assets.mjs makes of static/dashboard/.
 * @typedef {object} DashboardAssets
 * @property {string} template the page, a Mustache template
 * @property {string} script
 * @property {string} style
 * @property {string} version of script and style, in their addresses
 * @property {string[]} languages those of the waiting page, as tags
 */

const PATH = "/__anteroom/";
const FOR_EVER = "public, max-age=31536000, immutable";
/** Percent of the estimate from and up to which visitors are told that they wait, as `src/answer/facts.rs` has it. */
const SOONEST_PERCENT = 70;
const LATEST_PERCENT = 140;
const STATUS_WORDS = {
  not_queueing: "open, everybody enters",
  queueing: "queueing",
  event_prequeueing: "before an event",
  suspended: "suspended",
};

/**
 * @param {DashboardAssets} assets
 * @param {(facts: object, request: Request) => Response} wait answers who waits, as `page/answer.js` makes it
 * @param {ReturnType<typeof import("./page/languages.js").createLanguages>} languages
 */
export function createDashboard(assets, wait, languages) {
  const { template, script, style, version, languages: tags } = assets;

  /** @param {number} status @param {object} values for the template */
  const html = (status, values) => {
    const nonce = crypto.randomUUID();
    const headers = {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "private, no-store",
      "content-security-policy": policy(nonce),
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
      "x-robots-tag": "noindex",
    };
    return new Response(Mustache.render(template, { ...values, version, nonce }), { status, headers });
  };

  /** A page that runs no script, belongs to no site, and stays as it is. */
  const still = (facts, request) => {
    const asked = new Request(request.url, { headers: { accept: "text/html" } });
    const answer = wait(facts, asked);
    const headers = new Headers(answer.headers);
    // Stricter than what the page itself asks for: both policies hold.
    headers.append("content-security-policy", "sandbox; frame-ancestors 'self'");
    headers.delete("refresh");
    headers.delete("anteroom");
    return new Response(answer.body, { headers });
  };

  /** The facts of a page in one language. @param {string | null} language a tag; empty: as it is */
  const spoken = (language) => {
    const tag = language && tags.find((one) => one === language || one.startsWith(`${language}-`));
    return tag ? { language: tag, visitorLanguages: false } : {};
  };

  return {
    /**
     * The page on which operators sign in.
     * @param {boolean} failed they have just tried a token that nobody has
     * @param {Request} request
     */
    signIn: (failed, request) => {
      const wishes = { language: "en-US", visitorLanguages: true };
      const language = languages.chooseFor(wishes, request.headers);
      const signIn = languages.texts(language);
      return html(401, { failed, signIn, language, direction: direction(language) });
    },

    /**
     * @param {string} name of the operator
     * @param {"view" | "steer" | "configure"} role
     * @param {string} status the answer of `GET /__anteroom/status`, for browsers without JavaScript; empty: these are sent
     *   on to `?figures`, so that nobody else waits for it
     */
    page: (name, role, status) => {
      const { rooms = [], problems = [] } = status ? JSON.parse(status) : {};
      const rows = rooms.map((room) => ({
        ...room,
        words:
          room.error ??
          `${STATUS_WORDS[room.status] ?? room.status}${room.observing ? " (only observes: everybody passes)" : ""}`,
      }));
      const facts = rows.length > 0 && { rooms: rows };
      return html(200, {
        language: "en",
        direction: "ltr",
        operator: { name, role },
        facts,
        figures: status !== "",
        problems,
        languages: tags.join(" "),
      });
    },

    /**
     * Script or style. They are the same for everybody; an address with their version never changes.
     * @param {string} path of the address
     * @param {string} asked the version in the address
     * @returns {Response | undefined} nothing: there is no such file
     */
    asset: (path, asked) => {
      const files = {
        [`${PATH}dashboard.js`]: ["text/javascript; charset=utf-8", script],
        [`${PATH}dashboard.css`]: ["text/css; charset=utf-8", style],
      };
      if (!Object.hasOwn(files, path)) return undefined;
      const [type, body] = files[path];
      const cache = asked === version ? FOR_EVER : "no-cache";
      const headers = { "content-type": type, "cache-control": cache, "x-content-type-options": "nosniff" };
      return new Response(body, { headers });
    },

    /**
     * The page that somebody who comes now and must wait would see. It runs no script and belongs to no site.
     * @param {string} page what the room's owner chose for the page, `dashboard.rs` makes it
     * @param {string} status the room's part of `GET /__anteroom/status`
     * @param {string} language a tag; empty: the room's own
     * @param {Request} request
     */
    preview: (page, status, language, request) => {
      return still({ ...previewFacts(JSON.parse(page), JSON.parse(status)), ...spoken(language) }, request);
    },

    /**
     * A page as somebody sees it who waits, in the state that the address says.
     * @param {string} html a template; empty: a page of the build, as `page` says, or Anteroom's own
     * @param {Request} request
     * @param {boolean} isOperator nobody else puts words of their own on it, or looks at pages of the build
     */
    previewOf: (html, request, isOperator) => {
      const asked = new URL(request.url).searchParams;
      if (!isOperator) for (const own of ["message", "page"]) asked.delete(own);
      const customPage = html ? `made-preview-${crypto.randomUUID()}` : (asked.get("page") ?? "");
      if (html) wait.learn(customPage, html);
      return still({ ...statedFacts(asked), customPage, ...spoken(asked.get("language")) }, request);
    },
  };
}

/** A page may load its own script and style, talk to its own site, and show the preview. */
const policy = (nonce) =>
  [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    "frame-src 'self'",
    "img-src data:",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");

/**
 * The facts of a state that is asked for by the names of Cloudflare's previews.
 * @param {URLSearchParams} asked
 */
export function statedFacts(asked) {
  const minutes = Number.parseInt(asked.get("waitTime") ?? "", 10);
  const isSet = (name) => asked.get(name) === "true";
  const [now, event] = [Date.now(), asked.get("event") ?? "none"];
  const page = {
    language: "en-US",
    visitorLanguages: true,
    message: asked.get("message") ?? "",
    showPosition: true,
    showWait: true,
    showProgress: true,
    shuffle: isSet("shuffle_at_event_start"),
  };
  const stated = previewFacts(page, {
    taken_at: now,
    name: "preview",
    queueing_method: isSet("queue_is_full") ? "reject" : (asked.get("queueing_method") ?? "fifo"),
    queue_all: isSet("force_queue"),
    held: isSet("held"),
    estimated_queued_users: 100,
    status: "queueing",
    buckets: minutes > 0 ? [{ wait_seconds: minutes * 60 }] : [],
    events: ["prequeueing", "started"].includes(event)
      ? [
          {
            name: "preview",
            phase: event === "started" ? "active" : event,
            start: now + 600_000,
            end: now + 3_600_000,
          },
        ]
      : [],
  });
  return stated;
}

/**
 * The facts of a visitor who joins the end of the queue now, as `page/answer.js` needs them.
 * @param {object} page of the room, from its configuration
 * @param {object} room its status
 */
export function previewFacts(page, room) {
  const now = room.taken_at || Date.now();
  const waits = (room.buckets ?? [])
    .map((bucket) => bucket.wait_seconds)
    .filter((seconds) => seconds !== null);
  const seconds = room.status === "queueing" && waits.length > 0 ? Math.max(...waits) : null;
  const percent = (part) => (seconds === null ? null : Math.floor((seconds * part) / 100));
  const event = (room.events ?? []).find(({ phase }) => phase === "prequeueing" || phase === "active");
  return {
    status: 200,
    headers: [],
    asksForStatus: false,
    host: room.host ?? "",
    exactJson: false,
    preferredJson: false,
    embedded: false,
    draw: null,
    cookieless: false,
    infiniteQueue: false,
    turnstile: "",
    keptSeconds: 50,
    progress: seconds === null ? null : 0,
    ...page,
    room: room.name,
    message: room.message ?? page.message ?? "",
    queueingMethod: room.queueing_method ?? "fifo",
    queueAll: room.queue_all ?? false,
    held: room.held ?? false,
    waitSeconds: seconds,
    waitSecondsLow: percent(SOONEST_PERCENT),
    waitSecondsHigh: percent(LATEST_PERCENT),
    peopleAhead: room.estimated_queued_users ?? null,
    event: event
      ? {
          name: event.name,
          prequeueing: event.phase === "prequeueing",
          secondsToStart: Math.max(0, Math.round((event.start - now) / 1000)),
          secondsToEnd: Math.max(0, Math.round((event.end - now) / 1000)),
          shuffle: page.shuffle ?? false,
        }
      : null,
    refreshSeconds: room.refresh_interval_seconds ?? 20,
    now,
  };
}
