// The Worker's first lines. Every object of the platform that goes into WebAssembly and every promise that comes out of
// it costs more than deciding does, so a request is read here, decided there in one call with plain values, and sent
// to the origin from here. Nothing is decided here. tools/build.mjs puts this before what worker-build makes of Rust, and
// puts the status page's script, which `health.rs` asks for, into it as text.
import healthScript from "../../build/health.txt";
import Rust, { Anywhere, Counter, DataCenter, Global, Health } from "../../build/index.js";

export { Anywhere, Counter, DataCenter, Global, Health };

globalThis.anteroomHealthScript = healthScript;

// What `src/edge/mod.rs` exports; worker-build puts it there.
const { decide, origin, patience, returned, tend, unreachable } = Rust.prototype;

/** Where admitted visitors go; empty: the zone's own origin. The same for all requests of an isolate. */
let elsewhere;

/** What came of a request to the origin that has no status code. */
const UNREACHABLE = 0;
const TIMED_OUT = 1;
const LEFT = 2;

export default {
  async fetch(request, env, context) {
    const { url, headers } = request;
    const answer = await decide(
      request,
      env,
      context,
      url,
      headers.get("cookie") ?? "",
      headers.get("anteroom-status") ?? "",
    );
    if (answer instanceof Response) return answer;
    elsewhere ??= origin(env);
    const sent = elsewhere ? moved(request, elsewhere) : request;
    // No room covers it: nothing is counted.
    if (answer === undefined) return toOrigin(sent);
    let passage = answer;
    let cookie = "";
    if (typeof answer === "string") {
      const space = answer.indexOf(" ");
      passage = +answer.slice(0, space);
      cookie = answer.slice(space + 1);
    }
    return toOrigin(sent, cookie, passage, (came, took) =>
      returned(passage, came, took, request, env, context),
    );
  },
  scheduled: (_event, env) => tend(env),
};

/**
 * To the origin and back, untouched: method, headers and body as they came, redirects not followed.
 * @param {Request} request
 * @param {string} [cookie] Added to the answer, unless empty.
 * @param {number} [passage] The request's number; below zero: it has only so much time.
 * @param {(came: number, took: number) => void} [told] What came of it, and after how many milliseconds.
 */
async function toOrigin(request, cookie = "", passage = 0, told = undefined) {
  const began = Date.now();
  let isTold = false;
  // Once: who leaves in the middle of an answer has got it.
  const tell = (came) => {
    if (!isTold) told?.(came, Date.now() - began);
    isTold = true;
  };
  let impatience;
  let timer;
  if (passage < 0) {
    // Only until the first byte: the answer may then take as long as it likes.
    impatience = new AbortController();
    timer = setTimeout(() => impatience.abort(), patience(passage));
    // A visitor who goes away takes the request along: the guard must hear of it now or never.
    request.signal?.addEventListener("abort", () => tell(LEFT));
  }
  let response;
  try {
    response = await (impatience ? fetch(request, { signal: impatience.signal }) : fetch(request));
  } catch (error) {
    const came = impatience?.signal.aborted ? TIMED_OUT : UNREACHABLE;
    tell(came);
    return unreachable(`${error}`, cookie, came === TIMED_OUT, request.method);
  } finally {
    clearTimeout(timer);
  }
  tell(response.status);
  if (!cookie) return response;
  // The headers of a fetched response cannot be changed; one made from it can, and streams the same body. Status text,
  // other headers and WebSocket come along.
  const changed = new Response(response.body, response);
  changed.headers.append("set-cookie", cookie);
  return changed;
}

/** The same request to another host: everything but the URL is taken from it. */
function moved(request, host) {
  const { url } = request;
  const path = url.indexOf("/", url.indexOf("://") + 3);
  return new Request(host + url.slice(path).split("#", 1)[0], request);
}
