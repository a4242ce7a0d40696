// The `cfWaitingRoom` object, as programs and templates know it: names, order and types are a contract.
// docs/pages.md describes it, docs/cf-waiting-room.schema.json checks it.
import { positionOf, stateOf } from "./words.js";

const MINUTE = 60;
const UNAVAILABLE = "unavailable";

const plural = (number, unit) => `${number} ${unit}${number === 1 ? "" : "s"}`;

/** A whole number of minutes in English, as the contract has it in every language. */
function inEnglish(minutes) {
  const hours = Math.floor(minutes / 60);
  const rest = minutes % 60;
  return [hours > 0 && plural(hours, "hour"), (rest > 0 || hours === 0) && plural(rest, "minute")]
    .filter(Boolean)
    .join(" ");
}

const inMinutes = (seconds) => Math.ceil(seconds / MINUTE);

/**
 * @param {Facts} facts
 * @returns {CfWaitingRoom}
 */
export function contract(facts) {
  const { queueingMethod, queueAll, event } = facts;
  const state = stateOf(facts);
  const waitTimeKnown = ["known", "random"].includes(state) && facts.showWait;
  const isRandom = state === "random" && waitTimeKnown;
  const waitTime = waitTimeKnown ? inMinutes(facts.waitSeconds) : 0;
  const soonest = isRandom ? inMinutes(facts.waitSecondsLow) : 0;
  const latest = isRandom ? inMinutes(facts.waitSecondsHigh) : 0;
  const untilStart = event?.prequeueing ? inMinutes(event.secondsToStart) : undefined;
  const untilEnd = event ? inMinutes(event.secondsToEnd) : undefined;
  return {
    inWaitingRoom: true,
    waitTimeKnown,
    waitTime,
    waitTime25Percentile: soonest,
    waitTime50Percentile: isRandom ? waitTime : 0,
    waitTime75Percentile: latest,
    waitTimeFormatted: !waitTimeKnown
      ? UNAVAILABLE
      : isRandom
        ? `${inEnglish(soonest)} to ${inEnglish(latest)}`
        : inEnglish(waitTime),
    queueIsFull: state === "full",
    queueAll,
    lastUpdated: new Date(facts.now).toISOString(),
    refreshIntervalSeconds: facts.refreshSeconds,
    queueingMethod,
    isFIFOQueue: queueingMethod === "fifo",
    isRandomQueue: queueingMethod === "random",
    isPassthroughQueue: queueingMethod === "passthrough",
    isRejectQueue: queueingMethod === "reject",
    isEventActive: event !== null,
    isEventPrequeueing: event?.prequeueing ?? false,
    timeUntilEventStart: untilStart ?? 0,
    timeUntilEventStartFormatted: untilStart === undefined ? UNAVAILABLE : inEnglish(untilStart),
    timeUntilEventEnd: untilEnd ?? 0,
    timeUntilEventEndFormatted: untilEnd === undefined ? UNAVAILABLE : inEnglish(untilEnd),
    shuffleAtEventStart: event?.shuffle ?? false,
    turnstile: facts.turnstile,
    infiniteQueue: facts.infiniteQueue,
  };
}

/** What Anteroom knows beyond the contract, beside it in the JSON and for templates. @param {Facts} facts */
export function beyondContract(facts) {
  const state = stateOf(facts);
  const isKnown = ["known", "random"].includes(state) && facts.showWait;
  const at = (seconds) => new Date(facts.now + seconds * 1000).toISOString();
  return {
    room: facts.room,
    state,
    message: facts.message,
    waitSecondsLow: isKnown ? facts.waitSecondsLow : null,
    waitSecondsHigh: isKnown ? facts.waitSecondsHigh : null,
    expectedFrom: isKnown ? at(facts.waitSecondsLow) : null,
    expectedTo: isKnown ? at(facts.waitSecondsHigh) : null,
    ...positionOf(facts),
    event: facts.event ?? null,
    draw: facts.draw ?? null,
    keptSeconds: facts.keptSeconds,
    refreshSeconds: facts.refreshSeconds,
  };
}
