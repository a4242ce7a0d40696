/** What the tests of the waiting page share: the module that makes it, and visitors whose facts are made up. */
import { createWaitingRoom } from "../../src/edge/page/answer.js";
import { readPages } from "../../tools/pages.mjs";
import { factsOf } from "../../tools/preview/facts.mjs";

export const pages = await readPages();
/** 2026-07-01 14:03:22 UTC */
export const NOW = Date.UTC(2026, 6, 1, 14, 3, 22, 5);
export const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

/**
 * What a visitor gets.
 * @param {string} state of those in tools/preview/facts.mjs
 * @param {object} [options]
 * @param {Partial<import("../../src/edge/page/answer.js").Facts>} [options.facts]
 * @param {Record<string, string>} [options.headers] of the request
 * @param {Record<string, string>} [options.templates] of the owner
 */
export async function answerTo(
  state,
  {
    facts = {},
    headers = BROWSER,
    method = "GET",
    url = "https://shop.example.com/sale/x",
    templates = {},
  } = {},
) {
  const answer = createWaitingRoom({ ...pages, templates });
  const response = answer(factsOf(state, { now: NOW, ...facts }), new Request(url, { method, headers }));
  const body = await response.text();
  const type = response.headers.get("content-type");
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    cookies: response.headers.getSetCookie(),
    body,
    isPage: type === "text/html; charset=utf-8",
    json: type === "application/json" && body ? JSON.parse(body) : undefined,
  };
}

/** What a template becomes. */
export async function rendered(template, state, options = {}) {
  const facts = { customPage: "own", ...options.facts };
  return (await answerTo(state, { ...options, templates: { own: template }, facts })).body;
}

/** What people may read of a page: without its style, its script and what is meant for that. */
export const readable = (body) =>
  body.replace(/<style>.*<\/style>|data-words="[^"]*"|<script>.*<\/script>/gs, "");
