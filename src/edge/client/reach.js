// The edge's part of the API that Cloudflare's own clients drive, `/__anteroom/client/v4/…`: on every host that leads to this
// Worker. WebAssembly says whose token comes along; the object `CONFIG` answers.
import { learned, looked } from "../../../build/rust/index.js";
import { envelope, refusal } from "./api.js";
import { keeper, within } from "./document.js";
import { effectsOf } from "./effects.js";
import { CODE, problem } from "./fields.js";
import { openapi, PATH } from "./openapi.js";
import { derivedId } from "./written.js";

const ROOT = "/__anteroom/client/v4/";
/** The longest body, in bytes. */
const LONGEST_BODY = 1_258_291;
/** An operator waits longer than a visitor, in milliseconds. */
const PATIENCE = 5_000;
/** After how many seconds somebody asks again where the object cannot be reached. */
const AGAIN_SECONDS = 2;
/** What carries a secret; a mail address is none, though some clients send it alone. */
const SECRETS = ["authorization", "x-auth-key", "x-auth-user-service-key", "x-auth-email"];
/** The page that is Anteroom's own, where a page is asked for by its id. */
const BUILT_IN = "built-in";
const ID = /^[0-9a-f]{32}$/;

/**
 * @param {Request} request
 * @param {Record<string, any>} env
 * @param {{ by?: string, role?: string, version: string }} caller nobody: no token of this deployment came along; `version`: of
 *   Anteroom
 * @param {(html: string, request: Request, isOperator: boolean) => Response} showPreview
 */
export async function reach(request, env, caller, showPreview) {
  const { pathname, search, origin, host } = new URL(request.url);
  const path = pathname.slice(ROOT.length);
  const { method } = request;
  if (pathname === PATH) return described(method, caller.version);
  if (path.startsWith("preview/") && env.CONFIG)
    return preview(path.slice(8), env, (html) => showPreview(html, request, Boolean(caller.by)));
  const answer = await answerOf(path, search.slice(1), origin, host).catch((error) => {
    console.error(`anteroom: the object CONFIG does not answer: ${error}`);
    const message = "The configuration cannot be reached now; whether it has heard is not known";
    return { ...refusal(503, [problem(CODE.away, message)]), againSeconds: AGAIN_SECONDS };
  });
  const headers = {
    "content-type": "application/json",
    "cache-control": "private, no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-robots-tag": "noindex",
    ...(answer.status === 401 && { "www-authenticate": 'Bearer realm="anteroom"' }),
    ...(answer.allow && { allow: answer.allow }),
    ...(answer.againSeconds
      ? { "retry-after": `${answer.againSeconds}` }
      : // It will stay: clients would try again for minutes.
        answer.status >= 400 && { "x-should-retry": "false" }),
  };
  const body = method === "HEAD" ? null : JSON.stringify(answer.body);
  return new Response(body, { status: answer.status, headers });

  async function answerOf(path, query, base, host) {
    const refuse = (status, code, message) => refusal(status, [problem(code, message)]);
    if (!caller.by) return refuse(401, CODE.caller, unknownCaller(request.headers));
    if (!env.CONFIG)
      return refuse(
        501,
        CODE.away,
        "This deployment has no binding CONFIG: npm run check says how to add it",
      );
    // Some clients say that a body comes where none does.
    const writes = ["POST", "PUT", "PATCH"].includes(method);
    const body = writes ? await textOf(request) : "";
    if (body === undefined) return refuse(413, CODE.long, `A body may be ${LONGEST_BODY} bytes long`);
    const { by, role } = caller;
    const ask = { by, role, method, path, query, body, base };
    const init = { method: "POST", body: JSON.stringify(ask) };
    const told = await within(PATIENCE, keeper(env).fetch("https://object/client", init));
    if (!told.ok) throw new Error(`status ${told.status}`);
    const outcome = await told.json();
    if (outcome.look) return statusOf(JSON.parse(await looked(outcome.look, env)));
    if (outcome.weighs) outcome.body.messages = await weighed([outcome.weighs].flat(), env);
    // Who has made a room sees it at once, where it was made.
    if (writes || method === "DELETE") await learned(env, host);
    return outcome;
  }
}

/** Made when somebody first asks for it. */
let description;

/** The description of the API. It is the same for everybody, and has no secret in it. */
function described(method, version) {
  const headers = { "content-type": "application/json", "x-content-type-options": "nosniff" };
  if (!["GET", "HEAD"].includes(method)) {
    const body = JSON.stringify({ error: "Only GET, HEAD is answered here" });
    return new Response(body, { status: 405, headers: { ...headers, allow: "GET, HEAD" } });
  }
  description ??= JSON.stringify(openapi(version));
  const kept = { ...headers, "cache-control": "no-cache", "x-robots-tag": "noindex" };
  return new Response(method === "HEAD" ? null : description, { headers: kept });
}

/** The body; undefined: it is too long. */
async function textOf({ headers, body }) {
  if (Number(headers.get("content-length")) > LONGEST_BODY) return undefined;
  const [parts, decoder] = [[], new TextDecoder()];
  let length = 0;
  for await (const part of body ?? []) {
    length += part.byteLength;
    if (length > LONGEST_BODY) return undefined;
    parts.push(decoder.decode(part, { stream: true }));
  }
  return parts.join("") + decoder.decode();
}

function unknownCaller(headers) {
  const came = SECRETS.filter((name) => headers.has(name));
  const brings = came.length > 0 ? came.join(", ") : "none of them";
  return (
    "Send a token of this deployment as Authorization: Bearer, X-Auth-Key or X-Auth-User-Service-Key. " +
    `The request brings ${brings}`
  );
}

/** What changes that are only tried do to those whom their rooms' objects count. */
async function weighed(all, env) {
  const names = [...new Set(all.map(({ room }) => room))];
  const look = (room) => looked(room, env).then(JSON.parse, () => undefined);
  const known = new Map(await Promise.all(names.map(async (room) => [room, await look(room)])));
  return all.flatMap(({ room, change, at = "" }) =>
    effectsOf(change, known.get(room)).map(({ source, ...message }) => {
      const pointer = `${at}${source?.pointer ?? ""}`;
      return { ...message, ...(pointer && { source: { pointer } }) };
    }),
  );
}

/** What a room's object says of it, by the names of Cloudflare's clients. */
async function statusOf(told) {
  const event = told.event_id;
  return {
    status: 200,
    body: envelope({
      status: told.status,
      event_id: event && !ID.test(event) ? await derivedId("event", event) : event,
      estimated_queued_users: told.estimated_queued_users,
      estimated_total_active_users: told.estimated_total_active_users,
      max_estimated_time_minutes: told.max_estimated_time_minutes,
    }),
  };
}

/** A page that somebody wants to look at. It is for everybody who knows its address. */
async function preview(id, env, show) {
  if (id === BUILT_IN) return show("");
  const none = () => new Response("There is no such page", { status: 404 });
  if (!ID.test(id)) return none();
  const told = await within(PATIENCE, keeper(env).fetch(`https://object/preview/${id}`)).catch(
    () => undefined,
  );
  return told?.ok ? show(await told.text()) : none();
}
