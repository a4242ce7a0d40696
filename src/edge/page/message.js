// Pages that say one thing, in the visitor's language. WebAssembly says which, and `answer.js` hands it on.
import { direction } from "./languages.js";
import { parseTemplate } from "./template.js";
import { capitalised, turnNote } from "./words.js";

/**
 * Which page; `src/answer/mod.rs` makes it.
 * @typedef {object} Message
 * @property {string} say the name of its text, whose title is called the same with `Title` behind it
 * @property {number} status status code
 * @property {[name: string, value: string][]} headers that bring the ticket
 * @property {string} language the owner's
 * @property {boolean} visitorLanguages the visitor's come first
 * @property {string} again the name of the text of a link to the same address; empty: there is none
 * @property {number | null} retryAfter in how many seconds to try again
 * @property {boolean} refreshes the page does so by itself
 * @property {number} [turnSeconds] it is the visitor's turn, for so many seconds
 * @property {boolean} [asksForStatus] the waiting page's script asks, which shows that by itself
 */

/** @param {Parameters<typeof import("./answer.js").createWaitingRoom>[0]} assets */
export function createMessages({ message: template, parts: { style, picture }, hashes }, languages) {
  let page;

  /**
   * @param {Message} said
   * @param {Request} request
   */
  return (message, request) => {
    const { say, status, headers: more, again, retryAfter, refreshes, turnSeconds, ...wishes } = message;
    const tag = languages.chooseFor(wishes, request.headers);
    const texts = languages.texts(tag);
    const headers = new Headers({
      "content-type": "text/html; charset=utf-8",
      "content-language": tag,
      "cache-control": "private, no-store",
      "content-security-policy": `default-src 'none'; style-src '${hashes.style}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'`,
      vary: "Cookie, Accept, Accept-Language, Anteroom-Status",
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
      "x-robots-tag": "noindex",
    });
    for (const [name, value] of more) headers.append(name, value);
    if (retryAfter !== null) headers.set("retry-after", `${retryAfter}`);
    if (refreshes) headers.set("refresh", `${retryAfter}`);
    const isTurn = turnSeconds !== undefined;
    if (isTurn) headers.set("anteroom", "waiting");
    if (wishes.asksForStatus) {
      headers.set("content-type", "application/json");
      const body = { admitted: "turn", seconds: turnSeconds, note: turnNote(tag, texts, turnSeconds) };
      return new Response(JSON.stringify(body), { status, headers });
    }
    page ??= parseTemplate(template);
    const [title, text] = isTurn
      ? [capitalised(tag, texts.turn), turnNote(tag, texts, turnSeconds)]
      : [texts[`${say}Title`], texts[say]];
    const values = {
      door: isTurn ? "open" : "closed",
      language: tag,
      direction: direction(tag),
      style,
      picture,
      title,
      text,
      again: texts[again],
    };
    return new Response(request.method === "HEAD" ? null : page(values), { status, headers });
  };
}
