// Mustache templates: the page of our own and those of owners. Each is read once, when it is first shown.
import Mustache from "mustache";
import { beyondContract, contract } from "./contract.js";
import { pageWords, wordsForScript } from "./words.js";

const writer = new Mustache.Writer();

/**
 * All that a template may name.
 * @param {Facts} facts
 * @param {ReturnType<typeof import("./words.js").words>} said
 * @param {string} tag the language
 * @param {Record<string, any>} texts its texts
 */
export function variables(facts, said, tag, texts) {
  const known = contract(facts);
  const more = beyondContract(facts);
  return {
    ...known,
    waitTimeHours: Math.floor(known.waitTime / 60),
    waitTimeHourMinutes: known.waitTime % 60,
    ...more,
    peopleAheadKnown: more.peopleAhead !== null,
    progressKnown: more.progress !== null,
    progress: more.progress ?? 0,
    // An invisible widget asks for nothing.
    challengeIsSeen: facts.turnstile.includes('data-appearance="always"'),
    cookieless: facts.cookieless,
    continueLink: facts.continueLink ?? "",
    ...said,
    ...pageWords(facts, tag, texts),
    host: facts.host,
    texts,
    scriptWords: JSON.stringify(wordsForScript(facts, said, texts)),
  };
}

/** @param {string} source a template */
export function parseTemplate(source) {
  const tokens = Mustache.parse(source);
  return (values) => writer.renderTokens(tokens, new Mustache.Context(values), undefined, source);
}
