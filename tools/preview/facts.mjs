/**
 * Facts of waiting visitors, as the Worker would make them: for `npm run preview` and for tests.
 */

/** What the Worker knows of a visitor in a room with nothing special. @returns {import("../../src/edge/page/answer.js").Facts} */
export function plainFacts() {
  return {
    status: 200,
    headers: [],
    asksForStatus: false,
    room: "shop",
    host: "shop.example.com",
    language: "en-US",
    visitorLanguages: true,
    customPage: "",
    exactJson: false,
    preferredJson: true,
    embedded: false,
    message: "",
    showPosition: true,
    showWait: true,
    showProgress: true,
    queueingMethod: "fifo",
    queueAll: false,
    held: false,
    waitSeconds: 600,
    waitSecondsLow: 420,
    waitSecondsHigh: 840,
    peopleAhead: 1204,
    progress: 42,
    drawn: false,
    event: null,
    draw: null,
    keptSeconds: 300,
    confirmSeconds: 0,
    refreshSeconds: 20,
    now: Date.now(),
    cookieless: false,
    infiniteQueue: false,
    turnstile: "",
  };
}

const UNKNOWN = { waitSeconds: null, waitSecondsLow: null, waitSecondsHigh: null };
const PREQUEUE = {
  name: "drop",
  prequeueing: true,
  secondsToStart: 754,
  secondsToEnd: 8_000,
  shuffle: false,
};
const MINUTES = (minutes) => ({
  waitSeconds: minutes * 60,
  waitSecondsLow: minutes * 42,
  waitSecondsHigh: minutes * 84,
});

/** Every state that a visitor may see: its name, what it is, and what differs from plain facts. */
export const STATES = {
  known: ["The wait is known", {}],
  soon: ["Nearly there", { ...MINUTES(0.5), peopleAhead: 1, progress: 96 }],
  next: ["Among the next", { ...MINUTES(0.1), peopleAhead: 0, progress: 99 }],
  hours: ["A long wait", { ...MINUTES(190), peopleAhead: 48_211, progress: 3 }],
  unknown: ["The wait is not known", { ...UNKNOWN, peopleAhead: null, progress: null }],
  full: ["The wait is longer than a day", { ...MINUTES(3_000), peopleAhead: 1_234_567, progress: 0 }],
  closed: ["The owner queues all", { queueAll: true }],
  held: ["The origin is unhealthy", { ...UNKNOWN, held: true }],
  prequeue: ["Before an event", { event: PREQUEUE, ...UNKNOWN, progress: null }],
  lottery: [
    "Before an event that shuffles",
    { event: { ...PREQUEUE, shuffle: true }, ...UNKNOWN, peopleAhead: null, progress: null },
  ],
  event: [
    "During an event",
    { event: { name: "drop", prequeueing: false, secondsToStart: 0, secondsToEnd: 5_400, shuffle: false } },
  ],
  drawn: [
    "After a lottery",
    {
      drawn: true,
      event: { name: "drop", prequeueing: false, secondsToStart: 0, secondsToEnd: 5_400, shuffle: true },
    },
  ],
  random: [
    "Drawn by lot",
    {
      queueingMethod: "random",
      waitSeconds: 600,
      waitSecondsLow: 300,
      waitSecondsHigh: 900,
      peopleAhead: null,
      progress: null,
      draw: { id: "0123456789abcdef", round: 29_700_123, number: 0.731, threshold: 0.25 },
    },
  ],
  passthrough: ["Passthrough while the owner queues all", { queueingMethod: "passthrough", queueAll: true }],
  reject: [
    "Rejected: nobody enters, the page does not refresh",
    { queueingMethod: "reject", refreshSeconds: 0, ...UNKNOWN, peopleAhead: null, progress: null },
  ],
  infinite: ["The endless queue of bots", { infiniteQueue: true }],
  message: [
    "With a message of the owner",
    { message: 'Seats are left for all three evenings. <Please> bring this "letter" & a coat.' },
  ],
  quiet: ["Nothing shown", { showWait: false, showPosition: false, showProgress: false }],
  cookieless: ["Cookies are refused", { cookieless: true }],
  confirm: ["The turn is to be taken within a time", { confirmSeconds: 120 }],
};

/** Facts of a state. @param {string} name @param {Partial<import("../../src/edge/page/answer.js").Facts>} [more] */
export const factsOf = (name, more = {}) => ({ ...plainFacts(), ...STATES[name][1], ...more });

/**
 * Facts for the parameters that previews of waiting rooms are known to have.
 * @param {URLSearchParams} parameters
 */
export function factsFor(parameters) {
  const flag = (name) => ["true", "1", ""].includes(parameters.get(name));
  const minutes = Number(parameters.get("waitTime") ?? 10);
  const event = parameters.get("event") ?? "none";
  const method = parameters.get("queueing_method")?.toLowerCase() ?? "fifo";
  const prequeueing = event === "prequeueing";
  const queueAll = flag("force_queue");
  const closed = method === "reject" && !queueAll && !prequeueing;
  return {
    ...plainFacts(),
    ...(flag("queue_is_full") ? MINUTES(3_000) : MINUTES(minutes)),
    ...(method === "random" && {
      waitSecondsLow: minutes * 30,
      waitSecondsHigh: minutes * 90,
      peopleAhead: null,
      progress: null,
    }),
    queueAll,
    queueingMethod: method,
    refreshSeconds: closed ? 0 : 20,
    event: ["prequeueing", "started"].includes(event)
      ? {
          name: "drop",
          prequeueing,
          secondsToStart: prequeueing ? 754 : 0,
          secondsToEnd: 8_000,
          shuffle: flag("shuffle_at_event_start"),
        }
      : null,
    customPage: parameters.get("page") ?? "",
    message: parameters.get("message") ?? "",
    turnstile: parameters.get("turnstile") ?? "",
    cookieless: flag("cookieless"),
    held: flag("held"),
    infiniteQueue: flag("infinite_queue"),
    asksForStatus: false,
    language: parameters.get("language") ?? "en-US",
    visitorLanguages: !parameters.has("language"),
  };
}
