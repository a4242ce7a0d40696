// Which language a visitor reads, and its texts. Only the file of a language that somebody reads is ever parsed.
import Negotiator from "negotiator";
import { remember } from "./remember.js";

/** Norwegian has two written forms and a tag for both; we have one of them. */
const SAME_LANGUAGE = { no: "nb", nn: "nb" };
const RIGHT_TO_LEFT = ["Arab", "Hebr"];

/** Language and script, which is what people can read or not: `zh-HK` and `zh-TW` are both `zh-Hant`. */
function readable(tag) {
  try {
    const { language, script } = new Intl.Locale(tag).maximize();
    return `${SAME_LANGUAGE[language] ?? language}-${script}`;
  } catch {
    // Not a tag: `*`, or nonsense.
    return undefined;
  }
}

/** @param {string} tag */
export const direction = remember((tag) =>
  RIGHT_TO_LEFT.includes(new Intl.Locale(tag).maximize().script) ? "rtl" : "ltr",
);

/** @param {Record<string, string>} files the texts of each language as JSON, by tag */
export function createLanguages(files) {
  const texts = {};
  let byReadable;

  return {
    /**
     * The tag of the language to answer in: the first that the visitor reads and we have, else the owner's.
     * @param {string} accepted the visitor's `Accept-Language`; empty: does not matter
     * @param {string} chosen the owner's
     */
    choose: remember((accepted, chosen) => {
      const own = Object.hasOwn(files, chosen) ? chosen : "en-US";
      if (!accepted) return own;
      byReadable ??= new Map(Object.keys(files).map((tag) => [readable(tag), tag]));
      for (const tag of new Negotiator({ headers: { "accept-language": accepted } }).languages()) {
        const found = readable(tag);
        // Of two that read alike the owner's is the better one.
        if (found && found === readable(own)) return own;
        if (byReadable.has(found)) return byReadable.get(found);
      }
      return own;
    }),
    /**
     * The tag of the language to answer a request in.
     * @param {{ language: string, visitorLanguages: boolean }} wishes the owner's
     * @param {Headers} headers of the request
     */
    chooseFor({ language, visitorLanguages }, headers) {
      return this.choose(visitorLanguages ? (headers.get("accept-language") ?? "") : "", language);
    },
    /** The texts of a language. */
    texts(tag) {
      texts[tag] ??= JSON.parse(files[tag]);
      return texts[tag];
    },
  };
}
