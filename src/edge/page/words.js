// Everything a waiting visitor is told, in words. Whatever holds a number or a time is made by the platform's Intl.
import { direction } from "./languages.js";
import { remember } from "./remember.js";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Puts values into a text: `{number}` and the like.
 * @param {string} text
 * @param {Record<string, string>} values
 */
export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

// Formatters. Without a script nobody knows the visitor's own time zone, so times are in UTC.
const unit = remember((tag, name) => {
  return new Intl.NumberFormat(tag, {
    style: "unit",
    unit: name,
    unitDisplay: "long",
    maximumFractionDigits: 1,
  });
});
const numbers = remember((tag) => new Intl.NumberFormat(tag));
const plurals = remember((tag) => new Intl.PluralRules(tag));
const TIME = { hour: "numeric", minute: "2-digit", timeZone: "UTC", timeZoneName: "short" };
const clock = remember((tag) => new Intl.DateTimeFormat(tag, { ...TIME, second: "2-digit" }));
const date = remember((tag) => new Intl.DateTimeFormat(tag, { ...TIME, month: "long", day: "numeric" }));
const clockText = remember((tag, seconds) => clock(tag).format(seconds * 1000));

/** A length of time that is known: `50 seconds`, `5 minutes`, `24 hours`. Never longer than it is: a place may depend on it. */
export const duration = remember((tag, seconds) => {
  if (seconds >= 3 * HOUR) return unit(tag, "hour").format(Math.floor(seconds / HOUR));
  return seconds === MINUTE || seconds >= 2 * MINUTE
    ? unit(tag, "minute").format(Math.floor(seconds / MINUTE))
    : unit(tag, "second").format(seconds);
});

/** A length of time in steps that are longer the longer it is. */
function roundedBy(round, seconds, inHours) {
  const whole = inHours ? HOUR : 5 * MINUTE;
  const part = inHours ? HOUR / 2 : MINUTE;
  const step = seconds > (inHours ? 12 * HOUR : 10 * MINUTE) ? whole : part;
  return round(seconds / step) * step;
}

/**
 * A wait, coarser the longer it is: a text that changes with every check would claim a precision that no estimate has.
 * @param {number} low in seconds
 * @param {number} high in seconds
 */
export function waitText(tag, texts, low, high) {
  if (high < MINUTE) return texts.waitUnderMinute;
  if (low > DAY) return texts.waitOverDay;
  const inHours = high > 2 * HOUR || low >= HOUR;
  const [size, name] = inHours ? [HOUR, "hour"] : [MINUTE, "minute"];
  // Outwards: nobody minds being early.
  const from = Math.max(roundedBy(Math.floor, low, inHours), inHours ? HOUR / 2 : MINUTE) / size;
  const to = roundedBy(Math.ceil, Math.min(high, DAY), inHours) / size;
  return rangeText(tag, name, from, to);
}

const rangeText = remember((tag, name, from, to) =>
  from >= to ? unit(tag, name).format(to) : unit(tag, name).formatRange(from, to),
);

/** How long until something begins. */
const untilText = (tag, texts, seconds) => {
  if (seconds < MINUTE) return texts.waitUnderMinute;
  const minutes = Math.ceil(seconds / MINUTE);
  if (minutes <= 60) return unit(tag, "minute").format(minutes);
  const hours = Math.ceil(seconds / HOUR);
  return hours <= 48 ? unit(tag, "hour").format(hours) : unit(tag, "day").format(Math.ceil(seconds / DAY));
};

/** How many people wait in front, as a sentence; nothing when it is not known. */
export function peopleText(tag, texts, people) {
  if (people === null) return "";
  if (people === 0) return texts.peopleNext;
  const kind = plurals(tag).select(people);
  const number = numbers(tag).format(people);
  return fill(texts.peopleAhead[kind] ?? texts.peopleAhead.other, { number });
}

/** What somebody is told who has to go in within a time. Short of a minute by a second or two is a minute. */
export const turnNote = (tag, texts, seconds) =>
  fill(texts.turnWithin, { duration: duration(tag, seconds > 55 ? Math.round(seconds / 10) * 10 : seconds) });

export const capitalised = (tag, text) => {
  const [first = "", ...rest] = text;
  return first.toLocaleUpperCase(tag) + rest.join("");
};

/**
 * What the visitor waits for: names the words, the picture of the door, and what may be said of the wait.
 * @param {Facts} facts
 * @returns {"closed" | "held" | "prequeue" | "rejected" | "unknown" | "full" | "random" | "known"}
 */
export function stateOf(facts) {
  if (facts.queueAll) return "closed";
  if (facts.event?.prequeueing) return "prequeue";
  if (facts.held) return "held";
  if (facts.queueingMethod === "reject") return "rejected";
  if (facts.waitSeconds === null || facts.infiniteQueue) return "unknown";
  if (facts.waitSeconds > DAY) return "full";
  return facts.queueingMethod === "random" ? "random" : "known";
}

/** How far the visitor is, as far as it may be shown and means anything. @param {Facts} facts */
export function positionOf(facts) {
  const moves = stateOf(facts) !== "rejected" && !facts.infiniteQueue;
  return {
    peopleAhead: moves && facts.showPosition ? facts.peopleAhead : null,
    progress: moves && facts.showProgress ? facts.progress : null,
  };
}

/**
 * The words for a state.
 * @param {Facts} facts
 * @param {string} tag the language
 * @param {Record<string, any>} texts its texts
 */
export function words(facts, tag, texts) {
  const state = stateOf(facts);
  const { event, showWait } = facts;
  const known = () => waitText(tag, texts, facts.waitSecondsLow, facts.waitSecondsHigh);
  const [waitLabel, wait, waitNote] = {
    closed: () => [texts.closedLabel, texts.nobodyEnters, texts.closedNote],
    held: () => [texts.heldLabel, texts.nobodyEnters, texts.heldNote],
    prequeue: () => [
      texts.prequeueLabel,
      untilText(tag, texts, event.secondsToStart),
      event.shuffle ? texts.prequeueShuffleNote : texts.prequeueNote,
    ],
    rejected: () => [texts.rejectLabel, texts.nobodyEnters, texts.rejectNote],
    unknown: () => [texts.waitLabel, texts.waitUnknown, texts.unknownNote],
    full: () => [texts.waitLabel, texts.waitOverDay, texts.fullNote],
    random: () => [texts.waitLabel, known(), texts.randomNote],
    known: () => [texts.waitLabel, known(), facts.drawn ? texts.drawnNote : texts.waitNote],
  }[state]();
  // The owner may hide how long it takes, but not that nobody enters.
  const isHidden = !showWait && ["unknown", "full", "random", "known"].includes(state);
  const headline = {
    closed: waitLabel,
    held: waitLabel,
    rejected: waitLabel,
    unknown: texts.inLine,
  }[state];
  const waitKnown = ["known", "random"].includes(state) && showWait;
  return {
    state,
    waitKnown,
    waitLabel: isHidden ? "" : waitLabel,
    waitText: isHidden ? "" : wait,
    waitNote,
    title: `${isHidden ? texts.inLine : (headline ?? capitalised(tag, wait))} – ${texts.title}`,
    peopleText: peopleText(tag, texts, positionOf(facts).peopleAhead),
    /** The first and the last second from now in which the visitor may expect to enter. */
    expectedIn: waitKnown ? [facts.waitSecondsLow, facts.waitSecondsHigh] : null,
    startsIn: event?.prequeueing ? event.secondsToStart : null,
    door: ["closed", "held", "prequeue", "rejected"].includes(state) ? "closed" : "ajar",
  };
}

/** What only a page says. */
export function pageWords(facts, tag, texts) {
  const { host, event, now, refreshSeconds, keptSeconds, confirmSeconds } = facts;
  // Nobody is in line where nobody is let in.
  const isInLine = stateOf(facts) !== "rejected";
  const [headingBefore, headingAfter] = !isInLine
    ? [host ? "" : texts.title, ""]
    : host
      ? texts.inLineFor.split("{host}")
      : [texts.inLine, ""];
  const start = event?.prequeueing && date(tag).format(now + event.secondsToStart * 1000);
  const refresh = { duration: duration(tag, refreshSeconds) };
  return {
    headingBefore,
    headingAfter,
    startText: start ? fill(texts.prequeueStart, { time: start }) : "",
    checkedText: fill(texts.lastCheck, { time: clockText(tag, Math.floor(now / 1000)) }),
    checksText: refreshSeconds > 0 ? fill(texts.checksItself, refresh) : "",
    reloadsText: refreshSeconds > 0 ? fill(texts.reloadsItself, refresh) : "",
    turnText: confirmSeconds > 0 ? turnNote(tag, texts, confirmSeconds) : "",
    keptText: fill(texts.keptFor, { duration: duration(tag, keptSeconds) }),
    language: tag,
    direction: direction(tag),
  };
}

/** What the page's script shows before and between its checks, and cannot ask for. */
export function wordsForScript(facts, said, texts) {
  const { title, turnLabel, turn, turnNote, tellsMe, tellsByPush, trouble, stopAnimation, showAnimation } =
    texts;
  const { lastCheck, expected, prequeueStart, checksItself, keptFor } = texts;
  return {
    words: {
      title,
      turnLabel,
      turn,
      turnNote,
      tellsMe,
      trouble,
      stopAnimation,
      showAnimation,
      ...(facts.push && { tellsByPush }),
    },
    ...(facts.push && { push: facts.push }),
    times: { lastCheck, expected, prequeueStart, checksItself, keptFor },
    refreshSeconds: facts.refreshSeconds,
    now: facts.now,
    waitSeconds: said.waitKnown ? facts.waitSeconds : null,
    expectedIn: said.expectedIn,
    startsIn: said.startsIn,
  };
}
