// The page by which somebody who waits goes on with the place on another device. It needs no script.
import { direction } from "./languages.js";
import { parseTemplate } from "./template.js";
import { duration, fill } from "./words.js";

/** Modules that stay free around a code. */
const QUIET = 4;

/**
 * What the page shows; `src/edge/another_device.rs` makes it. Times are in seconds.
 * @typedef {object} Link
 * @property {true} continues
 * @property {number} status status code
 * @property {string} language the owner's
 * @property {boolean} visitorLanguages the visitor's come first
 * @property {string} to the waiting page's address, without the host
 * @property {string} link of this page, for the form
 * @property {string} by who asks for the move
 * @property {string} address for the device at hand; empty: none is shown
 * @property {number} size of the code's side, in modules; 0: there is no code
 * @property {string} code its dark modules, the path of an SVG
 * @property {number} shownSeconds how long the address is good
 * @property {number} keptSeconds how long this page's own address is good
 */

/** @param {Parameters<typeof import("./answer.js").createWaitingRoom>[0]} assets */
export function createContinuation({ continuation, parts: { picture } }, languages) {
  const { template, style, hash } = continuation;
  let page;

  /**
   * @param {Link} link
   * @param {Request} request
   */
  return (link, request) => {
    const language = languages.chooseFor(link, request.headers);
    const texts = languages.texts(language);
    const lasting = (text, seconds) => fill(text, { duration: duration(language, seconds) });
    const values = {
      ...link,
      language,
      direction: direction(language),
      style,
      picture,
      texts,
      box: `${-QUIET} ${-QUIET} ${link.size + 2 * QUIET} ${link.size + 2 * QUIET}`,
      scanText: lasting(texts.continueScan, link.shownSeconds),
      keepText: lasting(texts.continueKeep, link.keptSeconds),
    };
    const headers = {
      "content-type": "text/html; charset=utf-8",
      "content-language": language,
      "cache-control": "private, no-store",
      "content-security-policy": `default-src 'none'; style-src '${hash}'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
      vary: "Accept-Language",
      "x-content-type-options": "nosniff",
      // The address is worth the place.
      "referrer-policy": "no-referrer",
      "x-robots-tag": "noindex",
    };
    page ??= parseTemplate(template);
    return new Response(request.method === "HEAD" ? null : page(values), { status: link.status, headers });
  };
}
