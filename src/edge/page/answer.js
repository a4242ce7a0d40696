// What a waiting visitor gets: a page, or JSON. WebAssembly decides who waits and says what is known of the wait, as
// facts; this turns them into words and answers. No admitted visitor comes here: nothing is parsed until somebody waits.
import { createContinuation } from "./another-device.js";
import { beyondContract, contract } from "./contract.js";
import { createLanguages } from "./languages.js";
import { createMessages } from "./message.js";
import { prefersJson } from "./prefers.js";
import { parseTemplate, variables } from "./template.js";
import { words } from "./words.js";

/**
 * What is known of a waiting visitor; `src/answer/facts.rs` makes it. Times are in seconds.
 * @typedef {object} Facts
 * @property {number} status status code of the page
 * @property {[name: string, value: string][]} headers that bring the ticket
 * @property {boolean} asksForStatus the page's script asks
 * @property {string} room its name
 * @property {string} host the host that it covers; empty: every host
 * @property {string} language the owner's
 * @property {boolean} visitorLanguages the visitor's come first
 * @property {string} customPage name of the owner's template or branding; empty: the page of our own
 * @property {boolean} exactJson JSON for exactly `Accept: application/json` (`json_response_enabled`)
 * @property {boolean} preferredJson JSON for whoever prefers it (`json_response`)
 * @property {boolean} embedded pages of other sites may show the room in a frame
 * @property {string} message the owner's to everybody who waits
 * @property {boolean} showPosition
 * @property {boolean} showWait
 * @property {boolean} showProgress
 * @property {"fifo" | "random" | "passthrough" | "reject"} queueingMethod
 * @property {boolean} queueAll nobody enters by the owner's wish
 * @property {boolean} held nobody enters because the origin is unhealthy
 * @property {number | null} waitSeconds for random order: half of those who wait enter sooner
 * @property {number | null} waitSecondsLow for random order: a quarter of those who wait enter sooner
 * @property {number | null} waitSecondsHigh for random order: a quarter of those who wait enter later
 * @property {number | null} peopleAhead
 * @property {number | null} progress 0 to 100, never less than before
 * @property {boolean} drawn the place in line was drawn by lot
 * @property {{ name: string, prequeueing: boolean, secondsToStart: number, secondsToEnd: number, shuffle: boolean } | null} event
 * @property {{ id: string, round: number, number: number | null, threshold: number } | null} [draw] the visitor's lot
 * @property {number} keptSeconds how long the place is kept after the last check-in
 * @property {number} confirmSeconds in which the visitor has to go in when it is their turn; 0: they are let in at once
 * @property {number} refreshSeconds until the next check-in; 0: none
 * @property {number} now milliseconds since 1970
 * @property {boolean} cookieless the visitor seems to refuse cookies
 * @property {boolean} infiniteQueue the visitor never enters
 * @property {string} turnstile HTML of the challenge; may be empty
 * @property {string} [continueLink] where the visitor goes on with the place on another device; empty: nowhere
 * @property {string} [push] the owner's public key for push messages
 * @property {boolean} [bringAgain] what the challenge gave could not be judged: it is to be brought again
 */

/**
 * What an owner has made of the page of our own; tools/branding.mjs reads it. Texts are one for all, or one by language.
 * @typedef {object} Brand
 * @property {string} style the whole style
 * @property {string} hash of it, as the policy names it
 * @property {boolean} picture the door is shown
 * @property {string} [logo] a `data:` address
 * @property {string} [logoDark] the same in the dark
 * @property {string | Record<string, string>} [logoText] what it shows
 * @property {string | Record<string, string>} [consent]
 * @property {{ text: string | Record<string, string>, url: string }[]} links
 */

/** So many pages that were made at run time an isolate keeps. */
const MOST_MADE = 64;
/** A longer address is left out of the `Refresh` header. */
const LONGEST_REFRESH_URL = 2_000;
/** In owners' templates: sends what the Turnstile widget gives. Our own page's script does it itself. */
const SENDS_TOKEN =
  "<script>globalThis.anteroomTurnstile ??= (token) => fetch(location.href, " +
  '{ headers: { "anteroom-turnstile": token, "anteroom-status": "1" } });</script>';

/**
 * @param {object} assets what tools/pages.mjs reads from static/
 * @param {Record<string, string>} assets.languages
 * @param {Record<string, string>} assets.templates those of owners, by name
 * @param {Record<string, Brand>} assets.brands the owners' of the page of our own, by name
 * @param {string} assets.template the page of our own
 * @param {string} assets.message the page that says one thing
 * @param {{ template: string, style: string, hash: string }} assets.continuation the page that takes a place to another device
 * @param {Record<string, string>} assets.parts what stands in it; `fullScript`: where visitors confirm their turn, or get
 *   push messages
 * @param {{ style: string, script: string, fullScript: string }} assets.hashes as the policy names them
 */
export function createWaitingRoom(assets) {
  const { languages: files, templates, brands, template, parts, hashes } = assets;
  const languages = createLanguages(files);
  const say = createMessages(assets, languages);
  const continueElsewhere = createContinuation(assets, languages);
  const parsed = new Map();
  /** @param {string} name of an owner's template; empty: our own */
  const page = (name) => {
    if (!parsed.has(name)) parsed.set(name, parseTemplate(name ? templates[name] : template));
    return parsed.get(name);
  };

  /**
   * @param {Facts | import("./message.js").Message | import("./another-device.js").Link} facts
   * @param {Request} request
   * @returns {Response}
   */
  const answer = (facts, request) => {
    if (facts.say) return say(facts, request);
    if (facts.continues) return continueElsewhere(facts, request);
    const { headers: asked } = request;
    const kind = kindOf(facts, asked);
    const tag = languages.chooseFor(facts, asked);
    const texts = languages.texts(tag);
    const said = words(facts, tag, texts);
    const headers = new Headers({
      "cache-control": "private, no-store",
      vary: "Cookie, Accept, Accept-Language, Anteroom-Status, Origin, Sec-Fetch-Dest, X-Requested-With",
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
      "x-robots-tag": "noindex",
      "content-language": tag,
      anteroom: "waiting",
    });
    for (const [name, value] of facts.headers) headers.append(name, value);
    if (facts.refreshSeconds > 0) headers.set("retry-after", `${facts.refreshSeconds}`);
    if (kind !== "page") {
      headers.set("content-type", "application/json");
      share(headers, asked.get("origin"));
      const body = kind === "status" ? statusOf(facts, said, asked.has("origin")) : jsonOf(facts, said);
      // The question was answered, whatever the room's own status code is.
      return send(request, kind === "status" ? 200 : facts.status, headers, JSON.stringify(body));
    }
    headers.set("content-type", "text/html; charset=utf-8");
    if (facts.refreshSeconds > 0) headers.set("refresh", refresh(facts.refreshSeconds, request.url));
    const isTemplate = Object.hasOwn(templates, facts.customPage) || parsed.has(facts.customPage);
    const name = isTemplate ? facts.customPage : "";
    const brand = Object.hasOwn(brands, facts.customPage) ? brands[facts.customPage] : undefined;
    const script = facts.push || facts.confirmSeconds > 0 ? "fullScript" : "script";
    const ours = () => policy(facts, { script: hashes[script], style: brand?.hash ?? hashes.style });
    headers.set("content-security-policy", name ? ownersPolicy(facts) : ours());
    const more = name
      ? withSender(facts)
      : { ...parts, script: parts[script], ...(brand && branded(brand, parts, tag)) };
    const values = { ...variables(facts, said, tag, texts), ...more };
    return send(request, facts.status, headers, page(name)(values));
  };
  /** Whether somebody is to see a page that was made at run time, and it is not here. */
  answer.lacks = ({ customPage = "" }) => isMade(customPage) && !parsed.has(customPage);
  /** Takes a page that was made at run time. @param {string} name @param {string} source */
  answer.learn = (name, source) => {
    const made = [...parsed.keys()].filter(isMade);
    if (made.length >= MOST_MADE) parsed.delete(made[0]);
    parsed.set(name, parseTemplate(source));
  };
  return answer;
}

const isMade = (name) => name.startsWith("made-");

/** @param {Request} request */
function send({ method }, status, headers, body) {
  return new Response(method === "HEAD" ? null : body, { status, headers });
}

/** @returns {"status" | "json" | "page"} */
function kindOf(facts, headers) {
  if (facts.asksForStatus) return "status";
  if (facts.exactJson && headers.get("accept") === "application/json") return "json";
  return facts.preferredJson && prefersJson(headers) ? "json" : "page";
}

/** Lets the page of another site, whose script asked, read the answer. It holds nothing but the visitor's own wait. */
function share(headers, origin) {
  if (!origin) return;
  headers.set("access-control-allow-origin", origin);
  headers.set("access-control-allow-credentials", "true");
  headers.set("access-control-expose-headers", "Anteroom, Anteroom-Ticket, Retry-After");
}

/**
 * The `Refresh` header. It names the address, because without one browsers only scroll where the address has a fragment.
 * Relative to the page, so that no path (`//elsewhere.example`) can lead to another host.
 */
function refresh(seconds, url) {
  const [address] = url.split("#", 1);
  const mark = address.indexOf("?");
  const path = mark < 0 ? address : address.slice(0, mark);
  const rest = address.slice(path.lastIndexOf("/") + 1);
  const isSound = path.split("/").length > 3 && rest.length <= LONGEST_REFRESH_URL;
  return isSound ? `${seconds}; url=./${rest}` : `${seconds}`;
}

/** The widget for an owner's template, with what sends its token. */
function withSender({ turnstile }) {
  return { turnstile: turnstile && SENDS_TOKEN + turnstile };
}

/** A text of the owner's in a language: in the same one for another country, else the first there is. */
function inLanguage(text, tag) {
  if (typeof text !== "object") return text;
  const [language] = tag.split("-");
  const near = Object.keys(text).find((other) => other.split("-")[0] === language);
  return text[tag] ?? text[near] ?? Object.values(text)[0];
}

/** What stands in the page of our own in an owner's branding. @param {Brand} brand */
function branded({ style, logo, logoDark, logoText, consent, links, picture }, parts, tag) {
  return {
    style,
    picture: picture ? parts.picture : "",
    logo: logo && { light: logo, dark: logoDark, text: inLanguage(logoText, tag) },
    consent: inLanguage(consent, tag),
    hasLinks: links.length > 0,
    links: links.map(({ text, url }) => ({ text: inLanguage(text, tag), url })),
  };
}

/** What a page may do: run the script and style that it carries, show the icon that it carries, and ask its own site. */
function policy({ turnstile, embedded, push }, { style, script }) {
  // The widget's script shows a frame from where it comes from.
  const source = / src="([^"]+)"/.exec(turnstile)?.[1];
  const challenges = source && new URL(source).origin;
  return [
    "default-src 'none'",
    `style-src '${style}'`,
    `script-src '${script}'${challenges ? ` ${challenges}` : ""}`,
    ...(challenges ? [`frame-src ${challenges}`] : []),
    "connect-src 'self'",
    ...(push ? ["worker-src 'self'"] : []),
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    ...(embedded ? [] : ["frame-ancestors 'self'"]),
  ].join("; ");
}

/** Owners' pages load what they like: all that is filled in is escaped, so the scripts in them are the owner's. */
function ownersPolicy({ embedded }) {
  return ["object-src 'none'", "base-uri 'self'", ...(embedded ? [] : ["frame-ancestors 'self'"])].join("; ");
}

/** What the page's script reads. A page of another site must not: `isShared`: it may be one. */
function statusOf(facts, said, isShared) {
  const { waitKnown, waitText, waitLabel, waitNote, title, peopleText } = said;
  return {
    admitted: false,
    waitKnown,
    waitSeconds: waitKnown ? facts.waitSeconds : null,
    waitText,
    waitLabel,
    waitNote,
    title,
    peopleText,
    queueAll: facts.queueAll,
    door: said.door,
    cookieless: facts.cookieless,
    bringAgain: facts.bringAgain,
    continueLink: isShared ? "" : facts.continueLink,
    expectedIn: said.expectedIn,
    startsIn: said.startsIn,
    now: facts.now,
    ...beyondContract(facts),
  };
}

/** What programs read. */
function jsonOf(facts, said) {
  const { waitText, waitNote, peopleText } = said;
  return {
    cfWaitingRoom: contract(facts),
    anteroom: { ...beyondContract(facts), waitText, waitNote, peopleText },
  };
}
