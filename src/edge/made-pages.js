// Pages that operators have made at run time: an isolate gets one when somebody is to see it for the first time, of the data
// center's cache, or of the object that keeps them.
import { keeper, within } from "./client/document.js";
import { parseTemplate } from "./page/template.js";

const CACHE = "anteroom";
/** A name stands for one text for ever. */
const LASTS = "max-age=2592000";
/** Whoever waits sees our own page rather than none, in milliseconds. */
const PATIENCE = 1_000;
const AGAIN = 5_000;

/**
 * @param {ReturnType<typeof import("./page/answer.js").createWaitingRoom>} wait
 * @returns {(name: string, request: Request, env: any) => Promise<void>} never fails
 */
export function createMadePages(wait) {
  let failedAt = 0;
  return async (name, request, env) => {
    if (Date.now() < failedAt + AGAIN) return;
    try {
      wait.learn(name, await read(name, new URL(request.url).host, env));
    } catch (error) {
      failedAt = Date.now();
      console.error(`anteroom: the page ${name} cannot be read: ${error}`);
    }
  };
}

async function read(name, host, env) {
  const cache = await caches.open(CACHE);
  const key = `https://${host}/__anteroom/page/${name}`;
  const copy = await cache.match(key).catch(() => undefined);
  if (copy) return copy.text();
  const told = await within(PATIENCE, keeper(env).fetch(`https://object/page/${name}`));
  if (!told.ok) throw new Error(`status ${told.status}`);
  const text = await told.text();
  const kept = new Response(text, { headers: { "cache-control": LASTS } });
  await cache.put(key, kept).catch(() => {});
  return text;
}

/** What is wrong with a template, and where; nothing: it can be shown. @param {string} source */
export function mistakeIn(source) {
  try {
    parseTemplate(source);
    return undefined;
  } catch (error) {
    const at = Number(/ at (\d+)$/.exec(error.message)?.[1] ?? 0);
    const line = source.slice(0, at).split("\n").length;
    return `is no template that can be shown: line ${line}: ${error.message}`;
  }
}
