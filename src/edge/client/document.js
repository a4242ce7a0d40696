// What an isolate learns of the rooms that were made at run time: of its data center's cache, and where the copy there is too
// old, of the object that keeps them.

const CACHE = "anteroom";
/** Headers of the copy: when it was put there, and its version. */
const KEPT_AT = "anteroom-kept-at";
const VERSION = "anteroom-version";
/** For so long a copy is as good as asking, in milliseconds; and one that says that nothing was ever made. */
const FRESH = 1_500;
const FRESH_IF_EMPTY = 30_000;
/** For whom it is looked; `configuration.rs` says so. */
export const LOOK = { visitors: 0, operators: 1, anew: 2 };
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
 * @param {Record<string, any>} env
 * @param {string} host under which the cache is asked; empty: it is not
 * @param {number} look for whom, of `LOOK`; `anew`: the object is asked in any case
 * @param {number} patience how long the object has, in milliseconds
 * @param {number} known the version that is known; -1: none
 * @returns {Promise<string>} what is newer; empty: nothing is. It fails where the object does not answer and the cache knows
 *   nothing newer either.
 */
export async function readDocument(env, host, look, patience, known) {
  const cache = host ? await caches.open(CACHE).catch(() => undefined) : undefined;
  const key = `https://${host}/__anteroom/configuration`;
  const found =
    look === LOOK.anew ? undefined : await within(CACHE_PATIENCE, cache?.match(key)).catch(() => undefined);
  const copy = found && {
    version: Number(found.headers.get(VERSION)),
    text: await found.text(),
    age: Date.now() - Number(found.headers.get(KEPT_AT)),
  };
  if (copy?.version > last.version) last = copy;
  const isFresh = copy?.age < (copy?.version === 0 && look === LOOK.visitors ? FRESH_IF_EMPTY : FRESH);
  if (!isFresh) {
    try {
      last = (await within(patience, ask(env, last.version))) ?? last;
    } catch (error) {
      if (last.version <= known) throw error;
      console.error(`anteroom: the object CONFIG does not answer: ${error}`);
      return last.text;
    }
    const headers = {
      "cache-control": `max-age=${KEPT}`,
      [KEPT_AT]: `${Date.now()}`,
      [VERSION]: `${last.version}`,
    };
    // A cache that refuses is no harm: each isolate then asks by itself.
    await cache?.put(key, new Response(last.text, { headers })).catch(() => {});
  }
  return last.version === known ? "" : last.text;
}

/** The object's document, unless it is of this version. */
async function ask(env, version) {
  const answer = await keeper(env).fetch(`https://object/document?known=${version}`);
  if (answer.status === 204) return undefined;
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const text = await answer.text();
  return { version: JSON.parse(text).version, text };
}
