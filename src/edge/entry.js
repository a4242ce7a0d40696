// The Worker's first lines. Every object of the platform that goes into WebAssembly and every promise that comes out of
// it costs more than deciding does, so a request is read here, decided there in one call with plain values, and sent
// to the origin from here. Nothing is decided here. tools/build.mjs puts this and what it imports into one file, with the
// status page's script, which `health.rs` asks for, as text.
import dashboard from "../../build/dashboard.js";
import healthScript from "../../build/health.txt";
import pages from "../../build/pages.js";
import { decide, origin, patience, returned, revoked, tend, unreachable } from "../../build/rust/index.js";
import { takeStep } from "./client/document.js";
import { reach } from "./client/reach.js";
import { createDashboard } from "./dashboard.js";
import { createMadePages } from "./made-pages.js";
import { createWaitingRoom } from "./page/answer.js";
import { createLanguages } from "./page/languages.js";
import { createPush } from "./push.js";

export { Config } from "./client/config.js";
export { Anywhere, Counter, DataCenter, Global, Health } from "./objects.js";

globalThis.anteroomHealthScript = healthScript;

/**
 * Where admitted visitors go, if their room does not say it: a URL, or the name of a service binding; empty: the zone's own
 * origin. The same for all requests of an isolate.
 */
let elsewhere;

/** Answers who waits. */
const wait = createWaitingRoom(pages);

/** Pages that were made at run time. */
const learnPage = createMadePages(wait);

/** Rooms that were made at run time; `configuration.rs` asks for it. */
globalThis.anteroomDocument = takeStep;

/** What operators see; `dashboard.rs` asks for it. */
globalThis.anteroomDashboard = createDashboard(dashboard, wait, createLanguages(pages.languages));

/** Push messages; `push.rs` asks for it. */
globalThis.anteroomPush = createPush(pages);

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
      headers.get("anteroom-status") ?? toldByPage(request) ?? "",
    );
    if (answer instanceof Response) return answer;
    if (typeof answer === "string" && answer[0] === "{") {
      const facts = JSON.parse(answer);
      if (facts.client) return reach(request, env, facts.client, globalThis.anteroomDashboard.previewOf);
      if (wait.lacks(facts)) await learnPage(facts.customPage, request, env);
      return wait(facts, request);
    }
    const { passage, ticket, admitted, session, goal } =
      typeof answer === "string" ? readPassport(answer) : { passage: answer };
    elsewhere ??= origin(env);
    const to = goal ?? elsewhere;
    const sent = to.includes("://") ? moved(request, to) : request;
    const told = (came, took) => returned(passage, came, took, request, env, context);
    // No room has a say in it: nothing is counted.
    const counted = passage === undefined ? undefined : told;
    const failed = (error, isLate) =>
      wait(JSON.parse(unreachable(`${error}`, ticket ?? "", isLate, request, env)), request);
    const asked = marked(sent, admitted);
    const response = await toOrigin(asked, env[to] ?? globalThis, failed, ticket, passage, counted);
    return session ? obeyed(response, session, request, env, context) : response;
  },
  scheduled: (_event, env) => tend(env),
};

/**
 * The type of what the waiting page sends: when it is closed, with the time of its last check-in, and to be told by push
 * messages.
 */
function toldByPage({ method, headers }) {
  if (method !== "POST") return undefined;
  const type = headers.get("content-type");
  return type?.startsWith("application/x-anteroom-") ? type : undefined;
}

/** What `decide` says in lines: the request's number, if it has one, and what else there is to do, by the first letter of each. */
function readPassport(text) {
  const [passage, ...lines] = text.split("\n");
  const value = (letter) => lines.find((line) => line[0] === letter)?.slice(1);
  return {
    passage: passage ? +passage : undefined,
    ticket: value("t"),
    admitted: value("a"),
    session: value("r"),
    goal: value("o"),
  };
}

/** What visitors may not tell the origin: that they were admitted, and that they mean another path than the room saw. */
const OURS = ["anteroom-admitted", "x-original-url", "x-rewrite-url"];

/** The request as it goes to the origin: with the signed word that it was admitted, if there is one, and no other. */
function marked(request, admitted) {
  if (!admitted && !OURS.some((name) => request.headers.has(name))) return request;
  const headers = new Headers(request.headers);
  for (const name of OURS) headers.delete(name);
  if (admitted) headers.set("anteroom-admitted", admitted);
  return new Request(request, { headers });
}

/** The origin's answer; where it commands to end the session, that is done, and its visitor loses the ticket. */
function obeyed(response, session, request, env, context) {
  const commands = ["anteroom-command", "cf-waiting-room-command"];
  const commanded = commands.filter((name) => response.headers.has(name));
  if (!commanded.some((name) => response.headers.get(name).trim().toLowerCase() === "revoke"))
    return response;
  const changed = new Response(response.body, response);
  for (const name of commanded) changed.headers.delete(name);
  give(changed, revoked(session, request, env, context));
  return changed;
}

/** Adds the header that carries the visitor's ticket; a newer one takes the place of an older one. */
function give(response, ticket) {
  const colon = ticket.indexOf(": ");
  const [name, value] = [ticket.slice(0, colon), ticket.slice(colon + 2)];
  if (name === "set-cookie") response.headers.append(name, value);
  else response.headers.set(name, value);
}

/**
 * To the origin and back, untouched: method, headers and body as they are, redirects not followed.
 * @param {Request} request
 * @param {{ fetch: typeof fetch }} origin who is asked: a service binding, or the platform for any address
 * @param {(error: unknown, isLate: boolean) => Response} failed Answers where the origin does not.
 * @param {string} [ticket] The header that carries the visitor's ticket (`name: value`), added to the answer, unless empty.
 * @param {number} [passage] The request's number; below zero: it has a timeout.
 * @param {(came: number, took: number) => void} [told] What came of it, and after how many milliseconds.
 */
async function toOrigin(request, origin, failed, ticket = "", passage = 0, told = undefined) {
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
    // A visitor who goes away takes the request along: the guard must be told now or never.
    request.signal?.addEventListener("abort", () => tell(LEFT));
  }
  let response;
  try {
    response = await origin.fetch(request, impatience && { signal: impatience.signal });
  } catch (error) {
    const came = impatience?.signal.aborted ? TIMED_OUT : UNREACHABLE;
    tell(came);
    return failed(error, came === TIMED_OUT);
  } finally {
    clearTimeout(timer);
  }
  tell(response.status);
  if (!ticket) return response;
  // The headers of a fetched response cannot be changed; one made from it can, and streams the same body. Status text,
  // other headers and WebSocket come along.
  const changed = new Response(response.body, response);
  give(changed, ticket);
  return changed;
}

/** The same request to another host: everything but the URL is taken from it. */
function moved(request, host) {
  const { url } = request;
  const path = url.indexOf("/", url.indexOf("://") + 3);
  return new Request(host + url.slice(path).split("#", 1)[0], request);
}
