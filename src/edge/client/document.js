// What an isolate learns of the rooms that were made at run time: of its data center's cache, and where the copy there is too
// old, of the object that keeps them.

const CACHE = "anteroom";
/** Headers of the copy: when it was put there, and its version. */
const KEPT_AT = "anteroom-kept-at";
const VERSION = "anteroom-version";
/** How long the cache has to answer, in milliseconds. */
const CACHE_PATIENCE = 50;
/** Seconds for which a copy stays: it is what is known where the object cannot be reached. */
const KEPT = 2_592_000;

/** The object that keeps them: there is one. */
export const keeper = (env) => env.CONFIG.getByName("config");

/** What comes within so many milliseconds. */
export function within(milliseconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${milliseconds} ms`)), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** What this isolate has read last: it need not be sent again. */
let last = { version: -1, text: "" };

/**
 * A step of learning what there is; `machines/configuration.rs` says which one is next.
 * @type {Record<string, (env: Record<string, any>, cache: Cache | undefined, key: string, patience: number) => Promise<any>>}
 */
const STEPS = {
  /** The copy in the cache: its version, and when it was put there. */
  async read(_env, cache, key) {
    const found = await within(CACHE_PATIENCE, cache?.match(key)).catch(() => undefined);
    if (!found) return undefined;
    const copy = { version: Number(found.headers.get(VERSION)), text: await found.text() };
    if (copy.version > last.version) last = copy;
    return [copy.version, Number(found.headers.get(KEPT_AT))];
  },
  /** When an isolate of this data center has said that it asks. */
  async readClaim(_env, cache, key) {
    const found = await within(CACHE_PATIENCE, cache?.match(`${key}/asked`)).catch(() => undefined);
    return found && Number(found.headers.get(KEPT_AT));
  },
  async claim(_env, cache, key) {
    const headers = { "cache-control": "max-age=1", [KEPT_AT]: `${Date.now()}` };
    await cache?.put(`${key}/asked`, new Response(null, { headers })).catch(() => {});
  },
  /** The object's version; what is new of it is sent along. It fails where the object does not answer. */
  async ask(env, _cache, _key, patience) {
    last = (await within(patience, ask(env, last.version))) ?? last;
    return last.version;
  },
  async keep(_env, cache, key) {
    const headers = {
      "cache-control": `max-age=${KEPT}`,
      [KEPT_AT]: `${Date.now()}`,
      [VERSION]: `${last.version}`,
    };
    // A cache that refuses is no harm: each isolate then asks by itself.
    await cache?.put(key, new Response(last.text, { headers })).catch(() => {});
  },
  text: async () => last.text,
};

/**
 * @param {"read" | "ask" | "keep" | "text"} step
 * @param {Record<string, any>} env
 * @param {string} host under which the cache is asked; empty: it is not
 * @param {number} patience how long the object has, in milliseconds
 */
export async function takeStep(step, env, host, patience) {
  const cache = host ? await caches.open(CACHE).catch(() => undefined) : undefined;
  return STEPS[step](env, cache, `https://${host}/__anteroom/configuration`, patience);
}

/** The object's document, unless it is of this version. */
async function ask(env, version) {
  const answer = await keeper(env).fetch(`https://object/document?known=${version}`);
  if (answer.status === 204) return undefined;
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const text = await answer.text();
  return { version: JSON.parse(text).version, text };
}
