// The room's limits while the crowd is there: operators, events and the origin's health may change them. Pure, as the
// figures.

const MINUTE_MS = 60_000;
/** What an operator orders is in force everywhere after so long. */
const IN_FORCE_MS = 3_000;

/**
 * @typedef {{ active: number, perMinute: number }} Both
 * @typedef {{ asked: number, answered: number, limits: Both }} Seen in ms since the epoch
 */

/** What was in force when: as given, until the room has said it. */
export class Limits {
  /** @type {Seen[]} */
  #seen = [];

  /** @param {{ limitActive?: number, limitNew?: number }} given */
  constructor({ limitActive = Infinity, limitNew = Infinity }) {
    this.given = { active: limitActive, perMinute: limitNew };
  }

  /** Whether the room has said them. */
  get areKnown() {
    return this.#seen.length > 0;
  }

  /** Whether the room has changed them meanwhile. */
  get haveChanged() {
    const of = ({ limits }) => JSON.stringify(limits);
    return this.#seen.some((seen) => of(seen) !== of(this.#seen[0]));
  }

  /** Whether the room has said others than those given. */
  get areOthers() {
    const differ = (which) =>
      Number.isFinite(this.given[which]) && this.given[which] !== this.#seen[0].limits[which];
    return this.areKnown && (differ("active") || differ("perMinute"));
  }

  /** What is in force now. */
  get now() {
    return this.#seen.at(-1)?.limits ?? this.given;
  }

  /** @param {Seen} seen in their order */
  add(seen) {
    this.#seen.push(seen);
  }

  /**
   * The most that may have been in force at some moment of a time: nobody knows when a change came between two answers, and
   * a data center may hear of it later.
   * @param {keyof Both} which @param {number} from @param {number} to
   */
  most(which, from, to) {
    if (!this.areKnown) return this.given[which];
    const heard = from - IN_FORCE_MS;
    const first = Math.max(
      0,
      this.#seen.findLastIndex(({ answered }) => answered <= heard),
    );
    const later = this.#seen.findIndex(({ asked }) => asked >= to);
    const last = later < 0 ? this.#seen.length : later + 1;
    return Math.max(...this.#seen.slice(first, last).map(({ limits }) => limits[which]));
  }

  /** @param {number} minute since the epoch */
  inMinute = (minute) => this.most("perMinute", minute * MINUTE_MS, (minute + 1) * MINUTE_MS);
}
