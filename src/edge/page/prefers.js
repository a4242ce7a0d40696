// What an answer is made of: HTML for people, JSON for programs.
import Negotiator from "negotiator";

const HTML = ["text/html", "application/xhtml+xml"];
/** Where browsers show what they get (`Sec-Fetch-Dest`). */
const SHOWN = ["document", "iframe", "frame", "fencedframe", "embed", "object"];

const isJson = (type) => type === "application/json" || type.endsWith("+json");

/**
 * Whether a client would rather have JSON than a page. What it says it accepts comes first; where that says neither,
 * whether it looks like a browser that opens a page.
 * @param {Headers} headers
 */
export function prefersJson(headers) {
  // Preferred ones first, those of quality 0 left out.
  const accepted = new Negotiator({ headers: { accept: headers.get("accept") ?? "*/*" } }).mediaTypes();
  const first = accepted.find((type) => HTML.includes(type) || isJson(type));
  if (first) return isJson(first);
  const shownIn = headers.get("sec-fetch-dest");
  if (shownIn) return !SHOWN.includes(shownIn);
  if (headers.get("x-requested-with")?.toLowerCase() === "xmlhttprequest") return true;
  return headers.get("sec-fetch-mode") !== "navigate" && !headers.has("upgrade-insecure-requests");
}
