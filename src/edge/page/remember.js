/** The most results that are kept of each function; then it begins anew. */
const MOST = 1_000;
/** Longer ones are not worth keeping. */
const LONGEST_KEY = 300;

/**
 * A function that works once for the same arguments. What the platform's Intl makes is slow to make, and a crowd that
 * waits together is told the same.
 * @template {(...values: any[]) => any} Work
 * @param {Work} work
 * @param {(...values: Parameters<Work>) => string} [keyOf]
 * @returns {Work}
 */
export function remember(work, keyOf = (...values) => values.join("\n")) {
  const known = new Map();
  return (...values) => {
    const key = keyOf(...values);
    if (known.has(key)) return known.get(key);
    const result = work(...values);
    if (known.size >= MOST) known.clear();
    if (key.length <= LONGEST_KEY) known.set(key, result);
    return result;
  };
}
