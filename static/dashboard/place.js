// Which room and which time is looked at: in the address, so that a reload and a colleague see the same.

/** Ranges that end now, in milliseconds, by their name in the address. */
export const RANGES = {
  "15m": [15 * 60_000, "15 min"],
  "1h": [3_600_000, "1 hour"],
  "6h": [6 * 3_600_000, "6 hours"],
  "24h": [24 * 3_600_000, "24 hours"],
  "7d": [7 * 86_400_000, "7 days"],
  "30d": [30 * 86_400_000, "30 days"],
};
/** What is shown when the address says nothing. */
const USUAL = "1h";
/** The shortest that a chart is worth. */
const SHORTEST_MS = 60_000;

/** What the address says of the view of all rooms. */
const PARTS = ["id", "event", "copy"];

/**
 * @typedef {{ name: string } | { from: number, to: number }} Range `name`: of `RANGES`
 * @typedef {{ view: "rooms", id?: string, event?: string, copy?: string }} Rooms all rooms, or one of them: to be changed
 * @typedef {{ view?: undefined, room: string, range: Range }} Live what goes on in a room
 * @param {string} hash of the address
 * @returns {Rooms | Live}
 */
export function readPlace(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  if (parameters.get("view") === "rooms")
    return {
      view: "rooms",
      ...Object.fromEntries(PARTS.map((part) => [part, parameters.get(part) ?? undefined])),
    };
  const [from, to] = ["from", "to"].map((name) => Date.parse(parameters.get(name) ?? ""));
  const name = parameters.get("range") ?? USUAL;
  const range =
    to - from >= SHORTEST_MS ? { from, to } : { name: Object.hasOwn(RANGES, name) ? name : USUAL };
  return { room: parameters.get("room") ?? "", range };
}

/** @param {Rooms | Live} place */
export function writePlace(place) {
  if (place.view) return `#${new URLSearchParams(Object.entries(place).filter(([, part]) => part))}`;
  const { room, range } = place;
  const times =
    "name" in range
      ? range.name === USUAL
        ? {}
        : { range: range.name }
      : { from: new Date(range.from).toISOString(), to: new Date(range.to).toISOString() };
  return `#${new URLSearchParams({ room, ...times })}`;
}

/** From when to when, in milliseconds. @param {Range} range @param {number} now */
export function bounds(range, now) {
  return "name" in range ? { from: now - RANGES[range.name][0], to: now } : range;
}

/** The same range as long as `factor` of it, `shift` of it later; it ends now at the latest. */
export function moved(range, now, factor, shift) {
  const { from, to } = bounds(range, now);
  const middle = (from + to) / 2 + shift * (to - from);
  const half = Math.max(SHORTEST_MS, Math.min(366 * 86_400_000, (to - from) * factor)) / 2;
  const end = Math.min(now, Math.round(middle + half));
  return { from: end - Math.round(2 * half), to: end };
}
