// Times of day in a time zone, by the platform's Intl: for plans that come back each week, here and on the dashboard.

const WEEK = 7 * 86_400_000;

/** The same time of day a week later, in milliseconds since the epoch: not the same number of hours when the clocks were changed. */
export function weekLater(time, zone) {
  const later = time + WEEK;
  return later + offset(zone, time) - offset(zone, later);
}

/**
 * How far a time zone is ahead of UTC, in milliseconds; undefined: there is no such zone.
 * @param {string} timeZone as named in the time zone database
 * @param {number} time milliseconds since the epoch
 */
export function offset(timeZone, time) {
  let parts;
  try {
    parts = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" }).formatToParts(time);
  } catch {
    return undefined;
  }
  const { value } = parts.find(({ type }) => type === "timeZoneName");
  const [, sign, hours, minutes] = /^GMT(?:([+-])(\d\d):(\d\d))?/.exec(value);
  return sign ? Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000 : 0;
}
