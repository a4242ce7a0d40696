// The rounds: all Workers in turn, a few hundred requests each, again and again. What else a machine does makes a request
// cost twice as much from one second to the next; so the one that all are compared with has a turn beside each of them.
import { setTimeout as sleep } from "node:timers/promises";

import { LANES, Load, Wrong } from "./load.mjs";
import { startOrigin } from "./origin.mjs";
import { Runtime } from "./runtime.mjs";

/** What a request has left to be done is done after so long at the latest, in milliseconds: a calm room's reports. */
const AFTERWARDS_MS = 32_000;
/** So many requests before each turn: they open the connections anew and wake up what has been idle. */
const BEFORE = 2 * LANES;
/** So many requests of each before the first round: by then everything that is hot is compiled. */
const WARM_UP = 5_000;

/**
 * @typedef {object} Turn
 * @property {import("./variants.mjs").Variant} variant
 * @property {number} cpu CPU time of workerd per request, in seconds.
 * @property {number} rate Requests per second.
 * @property {Turn} [beside] The turn that it is compared with.
 */

/** A Worker and its visitors. */
class Runner {
  #runtime;
  #origin;
  #load;
  /** @type {Turn[]} */
  turns = [];
  /** CPU time between the turns, and all the requests whose work that was. */
  #afterwards = 0;
  #requests = 0;
  #cpuAfterTurn;

  static async start(variant, built, origin) {
    const runner = new Runner();
    runner.variant = variant;
    runner.#origin = origin;
    runner.#runtime = await Runtime.start(variant.worker(built), origin.address);
    runner.#load = new Load(runner.#runtime.url);
    return runner;
  }

  /** Does a piece of the work; whatever goes wrong in it is told with the row's name. */
  async #of(work) {
    const { group, title } = this.variant;
    try {
      await work();
      const complaint = /^.*(?:anteroom: |panic|Error).*$/m.exec(this.#runtime.log)?.[0];
      if (complaint) throw new Wrong(`the Worker has logged "${complaint.trim()}"`);
    } catch (error) {
      throw error instanceof Wrong ? new Wrong(`${group}, ${title}: ${error.message}`) : error;
    }
  }

  begin() {
    return this.#of(() => this.variant.begin(this.#load));
  }

  /**
   * Sends so many requests, and measures them.
   * @param {number} requests
   * @returns {Promise<Turn>}
   */
  async turn(requests) {
    const { beginTurn, next, check, reachesOrigin } = this.variant;
    const turn = { variant: this.variant };
    this.#countAfterwards();
    await this.#of(async () => {
      await beginTurn(this.#load);
      await this.#load.run(BEFORE, next, check);

      const answeredBefore = await this.#origin.requests();
      const cpuBefore = this.#runtime.cpuSeconds();
      const begin = performance.now();
      await this.#load.run(requests, next, check);
      turn.rate = requests / ((performance.now() - begin) / 1000);
      this.#cpuAfterTurn = this.#runtime.cpuSeconds();
      turn.cpu = (this.#cpuAfterTurn - cpuBefore) / requests;

      const answered = (await this.#origin.requests()) - answeredBefore;
      const expected = reachesOrigin ? requests : 0;
      if (answered !== expected)
        throw new Wrong(`the origin got ${answered} requests instead of ${expected}`);
    });
    this.turns.push(turn);
    this.#requests += BEFORE + requests;
    return turn;
  }

  #countAfterwards() {
    if (this.#cpuAfterTurn !== undefined) this.#afterwards += this.#runtime.cpuSeconds() - this.#cpuAfterTurn;
  }

  /** Forgets what was measured so far. */
  forget() {
    this.turns = [];
    this.#afterwards = 0;
    this.#requests = 0;
    this.#cpuAfterTurn = this.#runtime.cpuSeconds();
  }

  /** What the requests have left to be done is done: it becomes a part of what they cost. */
  async end() {
    this.#countAfterwards();
    for (const turn of this.turns) turn.cpu += this.#afterwards / this.#requests;
    await this.#of(() => this.variant.end(this.#load));
  }

  async close() {
    await this.#load.close();
    await this.#runtime.close();
  }
}

/**
 * Measures all variants.
 * @param {import("./variants.mjs").Variant[]} variants The others are compared with the first.
 * @param {import("./variants.mjs").Built} built
 * @param {{ rounds: number, requests: number, progress: (text: string) => void }} options
 */
export async function measure([base, ...others], built, { rounds, requests, progress }) {
  const origin = await startOrigin();
  const runners = [];
  /** @type {Turn[]} */
  const turns = [];
  try {
    // Each in a workerd of its own, and none has more turns than another: a busier one is faster.
    const ring = others.flatMap((variant, index) => (index % 2 === 0 ? [base, variant] : [variant]));
    for (const variant of others.length > 0 ? ring : [base]) {
      progress(`starting: ${variant.group}, ${variant.title}`);
      runners.push(await Runner.start(variant, built, origin));
    }
    for (const runner of runners) {
      progress(`warming up: ${runner.variant.group}, ${runner.variant.title}`);
      await runner.begin();
      await runner.turn(WARM_UP);
      runner.forget();
    }
    for (let round = 0; round < rounds; round += 1) {
      progress(`round ${round + 1} of ${rounds}`);
      for (const runner of runners) turns.push(await runner.turn(requests));
    }
    turns.push(await runners[0].turn(requests));
    progress("waiting for what is done afterwards");
    await sleep(AFTERWARDS_MS);
    for (const runner of runners) await runner.end();
  } finally {
    for (const runner of runners) await runner.close();
    await origin.close();
  }
  const isBase = ({ variant }) => variant === base;
  for (const [index, turn] of turns.entries()) {
    const before = turns.findLastIndex((other, place) => place <= index && isBase(other));
    const after = turns.findIndex((other, place) => place >= index && isBase(other));
    turn.beside = turns[index - before <= after - index ? before : after];
  }
  return [base, ...others].map((variant) =>
    row(
      variant,
      turns.filter((turn) => turn.variant === variant),
    ),
  );
}

/** @param {import("./variants.mjs").Variant} variant @param {Turn[]} turns */
function row({ name, group, title, goal }, turns) {
  const ratios = turns.map(({ cpu, beside }) => cpu / beside.cpu);
  return {
    name,
    group,
    title,
    cpuMicroseconds: median(turns.map(({ cpu }) => cpu)) * 1e6,
    ratio: median(ratios),
    quartiles: [quantile(ratios, 1 / 4), quantile(ratios, 3 / 4)],
    goal,
    requestsPerSecond: median(turns.map(({ rate }) => rate)),
    rateRatio: median(turns.map(({ rate, beside }) => rate / beside.rate)),
  };
}

const median = (numbers) => quantile(numbers, 1 / 2);

/** @param {number[]} numbers @param {number} part of them that is smaller */
function quantile(numbers, part) {
  const sorted = numbers.toSorted((one, other) => one - other);
  const at = (sorted.length - 1) * part;
  const [below, above] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return below + (above - below) * (at % 1);
}
