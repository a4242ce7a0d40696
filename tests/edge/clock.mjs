// The time of the tests. It belongs to them: it all but stands still while anything happens, and when nothing does, it
// goes at once to about the next moment for which anything is due, here or in the runtime. So nobody waits for it, and no
// machine is too slow for a deadline.
import { subscribe } from "node:diagnostics_channel";
import { setImmediate } from "node:timers/promises";
import { Client } from "undici";

const realNow = Date.now;
const realSetTimeout = setTimeout;
/** Time goes on by multiples of these milliseconds, so that what is due at about the same time is done together. */
const STEP_MS = 100;
/** It begins ten minutes past an hour: at no edge of a minute, an hour or a day by chance. */
const HOUR_MS = 3_600_000;
const PAST_MS = 600_000;
/** How fast time goes while something happens: a deadline of half a second is 25 seconds long. */
const SLOW = 0.02;
/** Nothing happens when nothing has happened between so many looks, one after the other. */
const QUIET_LOOKS = 2;
/**
 * The same while something that was asked for has not come: it may wait for the time, or for what the looks do not show.
 * Then time goes on by no more than this, in milliseconds.
 */
const QUIET_LOOKS_UNDERWAY = 4;
const LONGEST_STEP_UNDERWAY_MS = 1_000;
/** What is due and does not happen for so long will not, in real milliseconds. Nobody waits for it on purpose. */
const STUCK_MS = 60_000;

/** Grows with everything that happens in this process. */
let activity = 0;
for (const side of ["client", "server"]) {
  for (const what of [`http.${side}.request.start`, `http.${side}.response.finish`, `net.${side}.socket`])
    subscribe(what, () => (activity += 1));
}

/** One isolate of the runtime, as the clock knows it. */
class Isolate {
  activity = 0;
  /** For when it has something to do: a timer, an object's alarm. */
  due = Infinity;
  #quiet = 0;
  #isBusy = true;
  #stays = false;
  #client;
  #setting;

  /** @param {string} url @param {() => object} setting what its clock is to be set to */
  constructor(url, setting) {
    this.#client = new Client(url, { headersTimeout: STUCK_MS });
    this.#setting = setting;
  }

  /** One that has nothing to do is left alone until a request wakes it. */
  get isAwake() {
    return this.#isBusy || this.#quiet < QUIET_LOOKS_UNDERWAY;
  }

  /** A request will come: its clock is set, and from now on it is asked. */
  async wake() {
    this.#quiet = 0;
    if (!this.#isBusy) await this.look();
  }

  /** Requests come of which we do not know: it is never left alone. */
  stay() {
    this.#stays = true;
  }

  /** Sets its clock and asks how it stands. @returns {Promise<[string, number][]>} For when alarms of objects are set. */
  async look() {
    const ask = () => {
      const headers = { "clock-by-the-test": JSON.stringify(this.#setting()) };
      return this.#client.request({ path: "/", method: "GET", headers });
    };
    // A kept connection may be closed just when it is used again.
    const { statusCode, body } = await ask().catch(ask);
    if (statusCode !== 200) throw new Error(`an isolate does not go by the clock: ${await body.text()}`);
    const { activity, isBusy, due, alarms } = await body.json();
    this.#isBusy = isBusy || this.#stays;
    this.#quiet = activity === this.activity ? this.#quiet + 1 : 0;
    Object.assign(this, { activity, due: due ?? Infinity });
    return alarms;
  }

  close() {
    return this.#client.destroy();
  }
}

/** A clock for isolates, and for whoever asks it. */
export class Clock {
  #rate = SLOW;
  #base = realNow() - (realNow() % HOUR_MS) + PAST_MS;
  #since = realNow();
  /** @type {Set<Isolate>} */
  #isolates = new Set();
  /** @type {Set<{ due: number, wake: () => void, fail: (error: Error) => void }>} */
  #sleepers = new Set();
  /** What the tests have asked for and not heard of yet. */
  #underway = 0;
  /** What must not be hurried. */
  #holds = 0;
  #isDriving = false;

  /** Milliseconds since the epoch. */
  now = () => Math.floor(this.#base + (realNow() - this.#since) * this.#rate);

  /**
   * Makes it the real time, before anything has asked for it: for what a clock of ours cannot drive: browsers, other programs, and the one run
   * of real minutes. {@link pass} still puts it forward.
   */
  goReal() {
    this.#set(realNow());
    this.#rate = 1;
    return this;
  }

  #set(time) {
    [this.#base, this.#since] = [time, realNow()];
  }

  get #setting() {
    return { base: this.#base, since: this.#since, rate: this.#rate };
  }

  /** An isolate that is made of {@link source} and answers at a URL. */
  drive(url) {
    const isolate = new Isolate(url, () => this.#setting);
    this.#isolates.add(isolate);
    return isolate;
  }

  /** Isolates that are no more. @param {Isolate[]} isolates @returns {Promise<[string, number][]>} For when their alarms are set. */
  async leave(isolates) {
    for (const isolate of isolates) this.#isolates.delete(isolate);
    const alarms = await Promise.all(isolates.map((isolate) => isolate.look()));
    await Promise.all(isolates.map((isolate) => isolate.close()));
    return alarms.flat();
  }

  /** Waits for what needs the clock to go on. @template T @param {Promise<T>} promise @returns {Promise<T>} */
  async during(promise) {
    this.#underway += 1;
    activity += 1;
    this.#run();
    try {
      return await promise;
    } finally {
      this.#underway -= 1;
      activity += 1;
    }
  }

  /** Waits for what must not be hurried. @template T @param {Promise<T>} promise @returns {Promise<T>} */
  async unhurried(promise) {
    this.#holds += 1;
    try {
      return await promise;
    } finally {
      this.#holds -= 1;
      activity += 1;
    }
  }

  /** Lets milliseconds pass: as they do, if time is real. */
  sleep = (ms) => (this.#rate === 1 ? new Promise((over) => realSetTimeout(over, ms)) : this.pass(ms));

  /** Puts time forward, but past nothing that is due: alarms ring and timers end on the way. */
  pass(ms) {
    const due = this.now() + ms;
    const passed = new Promise((wake, fail) => this.#sleepers.add({ due, wake, fail }));
    this.#run();
    return passed;
  }

  get #isAwaited() {
    return this.#sleepers.size > 0 || (this.#underway > 0 && this.#rate !== 1);
  }

  async #run() {
    if (this.#isDriving) return;
    this.#isDriving = true;
    try {
      while (this.#isAwaited) {
        const due = await this.#settle();
        if (!this.#isAwaited) break;
        const first = Math.min(due, ...[...this.#sleepers].map((sleeper) => sleeper.due));
        const longest = this.#underway > 0 ? LONGEST_STEP_UNDERWAY_MS : Infinity;
        const next = Math.min(first, this.now() + longest);
        if (first !== Infinity && next > this.now()) {
          this.#set(Math.ceil(next / STEP_MS) * STEP_MS);
          // Those that have nothing to do, too: others may call them, and a request may come before the next look.
          await this.#look([...this.#isolates]);
        }
        for (const sleeper of [...this.#sleepers].sort((one, other) => one.due - other.due)) {
          if (sleeper.due > this.now()) break;
          this.#sleepers.delete(sleeper);
          sleeper.wake();
          activity += 1;
        }
        await setImmediate();
      }
    } catch (error) {
      if (this.#sleepers.size === 0) throw error;
      for (const sleeper of this.#sleepers) sleeper.fail(error);
      this.#sleepers.clear();
    } finally {
      this.#isDriving = false;
    }
  }

  /** Sets the clocks of some isolates, and asks how they stand. @param {Isolate[]} isolates */
  #look(isolates) {
    const look = (isolate) =>
      isolate.look().catch((error) => {
        // One that has been left meanwhile does not answer any more.
        if (this.#isolates.has(isolate)) throw error;
      });
    return Promise.all(isolates.map(look));
  }

  /** Waits until nothing happens any more, and gives back for when something is due. */
  async #settle() {
    let quiet = 0;
    let last = -1;
    let happenedAt = realNow();
    for (;;) {
      await this.#look([...this.#isolates].filter((isolate) => isolate.isAwake));
      const all = [...this.#isolates].reduce((sum, isolate) => sum + isolate.activity, activity);
      const due = Math.min(...[...this.#isolates].map((isolate) => isolate.due));
      const waits = due <= this.now();
      if (all !== last) happenedAt = realNow();
      else if (waits && realNow() > happenedAt + STUCK_MS)
        throw new Error(`due at ${due}, and nothing happens`);
      quiet = all === last && !waits && this.#holds === 0 ? quiet + 1 : 0;
      last = all;
      const enough = this.#underway > 0 ? QUIET_LOOKS_UNDERWAY : QUIET_LOOKS;
      if (quiet >= enough || !this.#isAwaited) return due;
      if (waits || this.#holds > 0) await new Promise((over) => realSetTimeout(over, 4));
    }
  }

  /**
   * The module by which an isolate goes by this clock. `alarms`: for when those of its objects were set before it was
   * made, by kind and name.
   * @param {[string, number][]} alarms
   */
  source(alarms = []) {
    return isolateClock(this.#setting, alarms);
  }
}

const dateBy = (now) =>
  new Proxy(Date, {
    construct: (Real, args, by) => Reflect.construct(Real, args.length === 0 ? [now()] : args, by),
    get: (Real, name) => (name === "now" ? now : Real[name]),
  });

/** The clock of this process: everything goes by it, as do tickets that tests seal and cookies that expire. */
export const clock = new Clock();
globalThis.Date = dateBy(clock.now);

/** See {@link Clock.source}. It is written for an isolate, not for Node. */
const isolateClock = (setting, alarms) => `
let { base, since, rate } = ${JSON.stringify(setting)};
const realNow = Date.now;
const realSetTimeout = setTimeout;
const realClearTimeout = clearTimeout;
/** A timer looks at the clock so often, in real milliseconds; one that has not for so long has ended with its request. */
const SLICE_MS = 8;
const GONE_MS = 1_000;
/** The platform tries an alarm again so long after it has failed. */
const AGAIN_MS = 2_000;
const now = () => Math.floor(base + (realNow() - since) * rate);
const toReal = (time) => since + (time - base) / rate;
const timers = new Map();
const alarms = new Map(${JSON.stringify(alarms)});
/** When those that are late were last rung, in real time. */
const rung = new Map();
/** Objects that handle an alarm: the platform rings the next one after that. */
const ringing = new Set();
let activity = 0;
let underway = 0;
let last = 0;

globalThis.Date = (${dateBy})(now);
globalThis.setTimeout = (work, ms = 0, ...more) => {
  const id = (last += 1);
  const timer = { due: now() + ms, seen: realNow() };
  const look = () => {
    timer.seen = realNow();
    if (now() < timer.due) return wait();
    timers.delete(id);
    activity += 1;
    work(...more);
  };
  const wait = () => {
    timer.handle = realSetTimeout(look, Math.max(0, Math.min(SLICE_MS, toReal(timer.due) - realNow())));
  };
  timers.set(id, timer);
  wait();
  return id;
};
globalThis.clearTimeout = (id) => {
  realClearTimeout(timers.get(id)?.handle);
  timers.delete(id);
};
AbortSignal.timeout = (ms) => {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new DOMException("too late", "TimeoutError")), ms);
  return controller.signal;
};

export const sleep = (ms) => new Promise((over) => setTimeout(over, ms));

/** Does something, and notes that it begins and ends. */
export async function counted(work) {
  activity += 1;
  underway += 1;
  try {
    return await work();
  } finally {
    underway -= 1;
    activity += 1;
  }
}

/** How it stands, if the clock asks; its time is told along. \`ring\` rings the alarm of an object. */
export function control(request, context, ring) {
  const told = request.headers.get("clock-by-the-test");
  if (!told) return undefined;
  ({ base, since, rate } = JSON.parse(told));
  const time = now();
  for (const [id, { due, seen }] of timers) if (due <= time && seen + GONE_MS < realNow()) timers.delete(id);
  const next = [...alarms].filter(([object]) => !ringing.has(object));
  for (const [object, at] of next) {
    if (at > time || rung.get(object) + GONE_MS > realNow()) continue;
    rung.set(object, realNow());
    context.waitUntil(ring(object));
  }
  const due = Math.min(...[...timers.values()].map((timer) => timer.due), ...next.map(([, at]) => at));
  // An object may be called by any other isolate.
  const isBusy = underway + timers.size > 0 || ring !== undefined;
  return Response.json({ activity, isBusy, due, alarms: [...alarms] });
}

/** Lets an object's storage set its alarm by the clock. */
export function alarmByTheClock(storage, object) {
  activity += 1;
  ringing.delete(object);
  const [setAlarm, deleteAlarm, deleteAll] = ["setAlarm", "deleteAlarm", "deleteAll"].map((name) =>
    storage[name].bind(storage),
  );
  const is = (name, value) => Object.defineProperty(storage, name, { value });
  is("setAlarm", (at, options) => {
    alarms.set(object, Number(at));
    return setAlarm(Math.floor(toReal(Number(at))), options);
  });
  is("getAlarm", async () => alarms.get(object) ?? null);
  is("deleteAlarm", (options) => {
    alarms.delete(object);
    return deleteAlarm(options);
  });
  is("deleteAll", async (options) => {
    alarms.delete(object);
    await deleteAlarm();
    return deleteAll(options);
  });
  return {
    /** The platform rings it now. */
    ring: () => setAlarm(Math.floor(realNow())),
    /** It rings: none is set any more. One that fails is tried again, as the platform does. */
    async rings(work) {
      alarms.delete(object);
      rung.delete(object);
      ringing.add(object);
      await counted(work)
        .catch((error) => {
          console.error(error);
          if (!alarms.has(object)) return storage.setAlarm(now() + AGAIN_MS);
        })
        .finally(() => ringing.delete(object));
    },
  };
}
`;
