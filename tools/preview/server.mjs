/** The preview's server: the waiting page in any state, made by the very code that answers visitors. */
import { watch } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createWaitingRoom } from "../../src/edge/page/answer.js";
import { PAGES, readPages } from "../pages.mjs";
import { problemsOf } from "../templates.mjs";
import { PROJECT } from "../toolchain.mjs";
import { factsFor, factsOf, STATES } from "./facts.mjs";
import { indexPage, problemPage, welcomePage } from "./pages.mjs";

/** Sooner than usual, to see what a check brings. */
const REFRESH_SECONDS = 5;
/** For owners' pages and brandings only, and only here: they show what was saved. */
const RELOADER = `<script>new EventSource("/changes").onmessage = () => location.reload();</script>`;

/** States that are not told by facts alone. */
const MOMENTS = {
  turn: "It is the visitor's turn",
  trouble: "A check does not get through",
};

/** Facts that an address asks for. @param {URLSearchParams} parameters */
function factsAsked(parameters) {
  const state = parameters.get("state");
  const page = parameters.get("page") ?? "";
  const language = parameters.get("language");
  const chosen = language ? { language, visitorLanguages: false } : {};
  if (state in STATES) {
    const facts = factsOf(state);
    // Owners' pages are told what is usual; they come anew when they are saved.
    const refreshSeconds = page ? facts.refreshSeconds : facts.refreshSeconds && REFRESH_SECONDS;
    return { ...facts, ...chosen, customPage: page, refreshSeconds };
  }
  if (state in MOMENTS) return { ...factsOf("next"), ...chosen, customPage: page, refreshSeconds: 1 };
  return factsFor(parameters);
}

/** @param {string} pages folder of the owner's templates */
async function answer(request, pages) {
  const { pathname, searchParams: parameters, href } = new URL(request.url);
  const assets = await readPages(pages);
  if (pathname === "/") return html(indexPage(STATES, MOMENTS, assets));
  // Browsers ask for it where a page names no other.
  if (pathname === "/favicon.ico") return new Response(null, { status: 204 });
  if (pathname !== "/preview") return html("Not found", 404);
  const state = parameters.get("state");
  const asksForStatus = request.headers.get("anteroom-status") === "1";
  if (asksForStatus && state === "turn") return Response.json({ admitted: true });
  if (asksForStatus && state === "trouble") return new Response(null, { status: 503 });
  // What the page opens when it is its turn: it stays, as for a download.
  if (state === "turn" && request.headers.get("referer") === href) return new Response(null, { status: 204 });
  const facts = { ...factsAsked(parameters), asksForStatus };
  const isOpen = facts.queueingMethod === "passthrough" && !facts.queueAll && !facts.event?.prequeueing;
  if (isOpen) return html(welcomePage());
  const source = assets.templates[facts.customPage];
  const brand = assets.brands[facts.customPage];
  if (facts.customPage && source === undefined && brand === undefined)
    return html(
      problemPage(`${facts.customPage}.html`, [{ line: 0, message: "there is no such file" }]),
      404,
    );
  const problems = source === undefined ? (brand?.problems ?? []) : problemsOf(source, assets.languages);
  const file = `${facts.customPage}.${source === undefined ? "toml" : "html"}`;
  if (problems.length > 0) return html(problemPage(file, problems));
  const asked = new Request(request.url, {
    headers: {
      ...Object.fromEntries(request.headers),
      accept: parameters.get("format") === "json" ? "application/json" : "text/html",
    },
  });
  const response = createWaitingRoom(assets)(facts, asked);
  if (!(source ?? brand) || asksForStatus) return response;
  // The policy of a branded page would not let the reloader run.
  response.headers.delete("content-security-policy");
  return new Response((await response.text()) + RELOADER, response);
}

const html = (body, status = 200) =>
  new Response(body, { status, headers: { "content-type": "text/html; charset=utf-8" } });

/**
 * @param {{ port?: number, pages?: string }} [options] `pages`: another folder of templates
 * @returns {Promise<{ url: string, close: () => Promise<void> }>}
 */
export async function startPreview({ port = 0, pages = join(PROJECT, PAGES) } = {}) {
  const watching = new Set();
  let watcher;
  try {
    watcher = watch(pages, () => {
      for (const response of watching) response.write("data: changed\n\n");
    });
  } catch {
    // No templates yet: nothing to reload.
  }
  const server = createServer(async (incoming, outgoing) => {
    const url = `http://${incoming.headers.host}${incoming.url}`;
    if (incoming.url === "/changes") {
      outgoing.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      outgoing.flushHeaders();
      watching.add(outgoing);
      outgoing.on("close", () => watching.delete(outgoing));
      return;
    }
    try {
      const response = await answer(new Request(url, { headers: incoming.headers }), pages);
      outgoing.writeHead(response.status, [...response.headers].flat());
      if (response.body) Readable.fromWeb(response.body).pipe(outgoing);
      else outgoing.end();
    } catch (error) {
      outgoing.writeHead(500, { "content-type": "text/plain" }).end(`${error.stack}\n`);
    }
  });
  await new Promise((listening, failed) => {
    server.on("error", failed);
    server.listen(port, "127.0.0.1", listening);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: async () => {
      watcher?.close();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
