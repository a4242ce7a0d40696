// How often a token may ask.

/** So many requests in so many milliseconds. */
export const MOST = 1_200;
const WINDOW = 300_000;

/** What each token has asked. It is kept in memory: who starts anew begins at nothing. */
export class Rates {
  /** @type {Map<string, { since: number, count: number }>} */
  #asked = new Map();

  /** Counts a request. @returns {number} after how many seconds the token is answered again; 0: now */
  count(token, now) {
    for (const [other, { since }] of this.#asked) if (since + WINDOW <= now) this.#asked.delete(other);
    const asked = this.#asked.get(token) ?? { since: now, count: 0 };
    this.#asked.set(token, asked);
    asked.count += 1;
    return asked.count > MOST ? Math.ceil((asked.since + WINDOW - now) / 1_000) : 0;
  }
}
