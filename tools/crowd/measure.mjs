// What the crowd saw, as figures. Pure: events go in, figures come out; no clock, no I/O, no randomness.
//
// The rule behind every definition: blame the room only for what is certain. The crowd sees the moment a request
// was sent and the moment its answer arrived; the room decided somewhere between the two. So every figure that is
// held against the room is a lower bound of what really happened there.
//
// Admitted   An answer below status 400 without the header `anteroom: waiting`. Any other answer without that header
//            (404, 429, 502, ...) says nothing about the room: it may come from the origin, from a firewall or from
//            a proxy. It counts as a failed request. Redirects on the same host are followed and are part of the
//            request; one that leads elsewhere is an answer.
//
// Active     A visitor is active from the moment the admitted answer ARRIVED until --session seconds after the
//            request was SENT; several requests make the union of these spans. The room counted the visitor from
//            when it handled the first request (before the answer arrived) until a session after it handled the last
//            (after that was sent). So our span lies within the room's, and when N spans overlap, the room had at
//            least N active users at that moment. Requests that failed may have prolonged a session and are left
//            out, which shortens the span further; so does a waiting page, from when it was asked for. A span ends
//            before another starts at the same instant. All this compares moments of one monotonic clock, so it
//            does not matter whether the room's clock agrees with it. --session must not be longer than the room's:
//            the default is the shortest that a room can have.
//
// New users  An admission's minute is certain only when request and answer lie in the same calendar minute, and the
//            answer's Date header, where there is one, too (clocks differ by seconds; a Date that is a minute or
//            more away is no clock, perhaps a cache's, and ignored). When attempts failed before, they count as part
//            of the request: one of them may have been the admission. Otherwise it may belong to any minute of the
//            range, and it is booked in the room's favour: `largest` is the smallest number for which a booking
//            exists that gives no minute more. It exceeds the limit only if every possible booking does. A visitor
//            whose session lapsed and who is let straight back in is not counted again: seen from outside, that may
//            be a session longer than --session. One who was sent to the queue in between is, unless the waiting page
//            was asked for before the first admitted answer had arrived (several requests of one browser at once): the
//            room may take what comes after it for the same admission.
//
// Order      A visitor's bucket is the minute of the first request of its wait (a range, like the above). X was
//            passed over when for some other visitor Y all of this is certain:
//            - Y's bucket is younger: the earliest it can be is later than the latest X's can be. Visitors at a
//              minute's edge thus only count where the range leaves no doubt;
//            - Y was admitted while X waited: X's first waiting page had arrived before Y's request was sent;
//            - X then asked and was refused: it sent a refresh after Y's answer had arrived and got a waiting page;
//            - X was not admitted until more than 1.1 of its refresh intervals (the longest it was told) after
//              Y's answer had arrived. The end of X's wait is when it sent the request that admitted it, but no later
//              than that request was due; or when it left, or the measurement ended.
//            When X came more than 10 % + 2 s late for a refresh (an overloaded machine, failed requests), the room
//            may have thought it gone: the wait ends when the refresh was due and another begins with the answer.
//
// Thrown out A waiting page for a visitor that was certainly active (as above) when the page arrived, and whose
//            request carried the room's cookie and was sent after the first admitted answer had arrived. Without the
//            cookie, the room takes a visitor for somebody new: such requests are counted apart and not held against it.

// Limits     Of the moment: those that were in force by what the room has said of itself, else those given. Lowering a limit
//            throws nobody out, so active users are held against it only when somebody enters; a minute's new users
//            against the highest limit of that minute.

import { Limits } from "./limits.mjs";

const MINUTE_MS = 60_000;
/** How late a refresh may be before the room may think the visitor gone, beyond a tenth of the interval. */
const LATE_MS = 2_000;
/** How many refresh intervals after a younger one a visitor may be admitted without having been passed over. */
const INTERVALS = 1.1;

/**
 * @typedef {object} Answer
 * @property {"admitted" | "waiting"} type
 * @property {number} visitor
 * @property {number} sent When the request was sent, in ms since the epoch.
 * @property {number} received When the answer's headers arrived.
 * @property {number} [refresh] Seconds until the next refresh, as the waiting page says.
 * @property {boolean} [ticket] Whether the request carried the room's cookie; true unless said otherwise.
 * @property {number} [date] The answer's Date header, in ms since the epoch.
 * @property {number} [requests] Requests it took: 1 and the redirects.
 */
/**
 * @typedef {object} Failure
 * @property {"failed"} type
 * @property {number} visitor
 * @property {number} sent
 * @property {number} received When it was given up or answered.
 * @property {string} reason
 * @property {number} [requests]
 */
/** @typedef {{ type: "arrived", visitor: number, at: number }} Arrival */
/** @typedef {{ type: "left", visitor: number, at: number, why: "done" | "abandoned" | "gave up" }} Leaving */
/** @typedef {Arrival | Answer | Failure | Leaving} CrowdEvent Events of one visitor come in their order. */
/** @typedef {{ from: number, to: number }} Minutes The minutes an event may belong to, both included. */
/** @typedef {{ minutes: Minutes, bucket: Minutes, sent: number, received: number }} Admission */
/**
 * @typedef {object} Stretch A stretch of waiting in which every refresh was on time.
 * @property {Minutes} bucket
 * @property {number} since When its first waiting page arrived.
 * @property {number} refused When the last request was sent that got a waiting page.
 * @property {number} due When the next refresh is to be sent.
 * @property {number} told The last refresh interval, in ms.
 * @property {number} interval The longest refresh interval, in ms.
 * @property {number} until When the visitor had still not been admitted; set when the stretch ends.
 */
/**
 * @typedef {object} Visitor
 * @property {"new" | "waiting" | "inside" | "done" | "abandoned" | "gave up"} state
 * @property {"" | "admitted" | "waiting"} first The first answer.
 * @property {boolean} queued Whether it ever saw a waiting page.
 * @property {number | undefined} trying When the first of the attempts was sent that failed since the last answer.
 * @property {number} waitingFrom When the first request of the current wait was sent.
 * @property {Minutes | undefined} bucket
 * @property {Stretch[]} stretches
 * @property {number} insideSince When the first admitted answer since its wait arrived.
 * @property {boolean} overtaken Whether a waiting page came after that answer to a request sent before, and no admitted
 *   answer to a request sent after.
 * @property {{ start: number, end: number, sent: number }[]} spans When it was active, and when it asked to be.
 */

/** Collects events and says at any time what they amount to. What it holds grows with visitors, not requests. */
export class Measure {
  /** @param {{ sessionSeconds: number, limitActive?: number, limitNew?: number, maxPassedOverPercent?: number }} options */
  constructor({ sessionSeconds, limitActive, limitNew, maxPassedOverPercent = 2 }) {
    this.session = sessionSeconds * 1000;
    this.limits = new Limits({ limitActive, limitNew });
    this.maxPassedOverPercent = maxPassedOverPercent;
    /** @type {Map<number, Visitor>} */
    this.visitors = new Map();
    /** @type {Admission[]} */
    this.admissions = [];
    /** @type {number[]} Waits of those who were let in, in ms. */
    this.waits = [];
    this.latencies = new Histogram();
    /** @type {Map<string, number>} */
    this.failures = new Map();
    this.sent = 0;
    this.failed = 0;
    this.thrownOut = 0;
    this.withoutTicket = 0;
  }

  /** @param {CrowdEvent} event */
  add(event) {
    const visitor = this.#visitor(event.visitor);
    if (event.type === "arrived") return;
    if (event.type === "left") {
      endStretch(visitor, event.at);
      visitor.state = event.why;
      return;
    }
    this.sent += event.requests ?? 1;
    if (event.type === "failed") {
      this.failed += 1;
      this.failures.set(event.reason, (this.failures.get(event.reason) ?? 0) + 1);
      visitor.trying ??= event.sent;
      return;
    }
    this.latencies.add(event.received - event.sent);
    visitor.first ||= event.type;
    if (event.type === "waiting") this.#waiting(visitor, event);
    else this.#admitted(visitor, event);
    visitor.trying = undefined;
  }

  /** @param {number} id */
  #visitor(id) {
    let visitor = this.visitors.get(id);
    if (!visitor) {
      visitor = {
        state: "new",
        first: "",
        queued: false,
        trying: undefined,
        waitingFrom: 0,
        bucket: undefined,
        stretches: [],
        insideSince: 0,
        overtaken: false,
        spans: [],
      };
      this.visitors.set(id, visitor);
    }
    return visitor;
  }

  /** @param {Visitor} visitor @param {Answer} answer */
  #waiting(visitor, answer) {
    if (visitor.state === "inside" && answer.sent <= visitor.insideSince) {
      visitor.overtaken = true;
      visitor.queued = true;
      return;
    }
    const began = visitor.trying ?? answer.sent;
    const stranger = answer.ticket === false;
    const span = visitor.spans.at(-1);
    const active = span !== undefined && answer.received < span.end;
    if (active && !stranger) this.thrownOut += 1;
    if (stranger && (active || visitor.state === "waiting")) this.withoutTicket += 1;
    // The room no longer counts the visitor, rightly or not.
    if (span) span.end = Math.max(span.start, Math.min(span.end, answer.sent));
    if (visitor.state !== "waiting") visitor.waitingFrom = began;
    // Without its ticket the room takes it for somebody new, with a place at the end.
    if (visitor.state !== "waiting" || stranger || !visitor.bucket) {
      endStretch(visitor, answer.sent);
      const minutes = minutesOf(answer, began);
      visitor.bucket = { from: visitor.bucket?.from ?? minutes.from, to: minutes.to };
    }
    visitor.state = "waiting";
    visitor.queued = true;

    const told = (answer.refresh ?? 0) * 1000;
    const open = openStretch(visitor);
    if (open && answer.sent <= open.due + open.told * 0.1 + LATE_MS) {
      open.refused = answer.sent;
      open.due = answer.received + told;
      open.told = told;
      open.interval = Math.max(open.interval, told);
      return;
    }
    endStretch(visitor, answer.sent);
    visitor.stretches.push({
      bucket: visitor.bucket,
      since: answer.received,
      refused: answer.sent,
      due: answer.received + told,
      told,
      interval: told,
      until: Infinity,
    });
  }

  /** @param {Visitor} visitor @param {Answer} answer */
  #admitted(visitor, answer) {
    const began = visitor.trying ?? answer.sent;
    if (visitor.state === "new" || visitor.state === "waiting") {
      const minutes = minutesOf(answer, began);
      visitor.bucket ??= minutes;
      if (!visitor.overtaken)
        this.admissions.push({ minutes, bucket: visitor.bucket, sent: began, received: answer.received });
      if (visitor.state === "waiting") this.waits.push(answer.received - visitor.waitingFrom);
      endStretch(visitor, answer.sent);
      visitor.insideSince = answer.received;
    }
    if (answer.sent > visitor.insideSince) visitor.overtaken = false;
    visitor.state = "inside";
    const span = { start: answer.received, end: answer.sent + this.session, sent: began };
    const last = visitor.spans.at(-1);
    if (last && span.start <= last.end) last.end = Math.max(last.end, span.end);
    else if (span.start < span.end) visitor.spans.push(span);
  }

  /** How many visitors are where, and the most that were active: what the progress line shows. */
  live() {
    const live = { arrived: this.visitors.size, waiting: 0, inside: 0, done: 0, largestActive: 0 };
    for (const { state } of this.visitors.values()) {
      if (state === "waiting") live.waiting += 1;
      else if (state === "inside") live.inside += 1;
      else if (state !== "new") live.done += 1;
    }
    live.largestActive = this.#largestActive().users;
    return live;
  }

  #largestActive() {
    const spans = [...this.visitors.values()].flatMap((visitor) => visitor.spans);
    return mostOverlapping(spans, ({ sent, start }) => this.limits.most("active", sent, start));
  }

  /** What all events so far amount to. @param {number} now When the measurement ended. */
  figures(now) {
    const all = [...this.visitors.values()];
    const count = (/** @type {(visitor: Visitor) => boolean} */ test) => all.filter(test).length;
    const queued = count((visitor) => visitor.queued);
    const active = this.#largestActive();
    const minutes = this.admissions.map((admission) => admission.minutes);
    const perMinute = kindestBooking(minutes, this.limits.inMinute);
    const limit = (/** @type {number} */ most) => (Number.isFinite(most) ? most : null);
    const passedOver = this.#passedOver(now);
    const share = queued === 0 ? 0 : (passedOver / queued) * 100;
    return {
      visitors: {
        arrived: all.length,
        admittedAtOnce: count((visitor) => visitor.first === "admitted"),
        queued,
        stillWaiting: count((visitor) => visitor.state === "waiting"),
        abandoned: count((visitor) => visitor.state === "abandoned"),
        gaveUp: count((visitor) => visitor.state === "gave up"),
        unanswered: count((visitor) => visitor.first === ""),
      },
      waitSeconds: {
        count: this.waits.length,
        ...percentiles(this.waits, { min: 0, median: 0.5, p90: 0.9, max: 1 }, 1000),
      },
      active: {
        largest: active.users,
        at: active.users ? new Date(active.at).toISOString() : null,
        limit: limit(active.users ? active.limit : this.limits.now.active),
        broken: active.users > active.limit,
      },
      newPerMinute: {
        largest: perMinute.largest,
        limit: limit(minutes.length ? perMinute.limit : this.limits.now.perMinute),
        broken: perMinute.largest > perMinute.limit,
        minutes: perMinute.minutes.map(({ minute, users }) => ({
          minute: new Date(minute * MINUTE_MS).toISOString(),
          users,
        })),
      },
      order: {
        passedOver,
        percent: share,
        maxPercent: this.maxPassedOverPercent,
        broken: share > this.maxPassedOverPercent,
      },
      limits: {
        saidByRoom: this.limits.areKnown,
        changed: this.limits.haveChanged,
        others: this.limits.areOthers,
      },
      thrownOut: this.thrownOut,
      withoutTicket: this.withoutTicket,
      requests: {
        sent: this.sent,
        failed: this.failed,
        failures: Object.fromEntries([...this.failures].sort((a, b) => b[1] - a[1])),
        latencyMs: { p50: this.latencies.percentile(0.5), p95: this.latencies.percentile(0.95) },
      },
    };
  }

  /** @param {number} now */
  #passedOver(now) {
    const admissions = [...this.admissions].sort((a, b) => a.sent - b.sent);
    let passedOver = 0;
    for (const visitor of this.visitors.values()) {
      if (visitor.stretches.some((stretch) => wasPassedOver(visitor, stretch, admissions, now)))
        passedOver += 1;
    }
    return passedOver;
  }
}

/** Ends the stretch that is open, if one is. @param {Visitor} visitor @param {number} at */
function endStretch(visitor, at) {
  const open = openStretch(visitor);
  if (open) open.until = stillOutside(visitor, open, at);
}

/** @param {Visitor} visitor */
function openStretch(visitor) {
  const last = visitor.stretches.at(-1);
  return last?.until === Infinity ? last : undefined;
}

/**
 * Until when the visitor had certainly not been admitted, nor lost time by coming late.
 * @param {Visitor} visitor @param {Stretch} stretch @param {number} at When the wait ended.
 */
function stillOutside(visitor, stretch, at) {
  return Math.min(visitor.trying ?? at, stretch.due);
}

/**
 * @param {Visitor} visitor @param {Stretch} stretch @param {Admission[]} admissions By when they were sent.
 * @param {number} now
 */
function wasPassedOver(visitor, stretch, admissions, now) {
  const until = stretch.until === Infinity ? stillOutside(visitor, stretch, now) : stretch.until;
  const tooLate = until - INTERVALS * stretch.interval;
  for (let i = firstSentFrom(admissions, stretch.since); i < admissions.length; i += 1) {
    const { bucket, sent, received } = admissions[i];
    if (sent > stretch.refused || sent >= tooLate) return false;
    if (bucket.from > stretch.bucket.to && received <= stretch.refused && received < tooLate) return true;
  }
  return false;
}

/** The index of the first admission sent at `time` or later. @param {Admission[]} admissions @param {number} time */
function firstSentFrom(admissions, time) {
  let low = 0;
  let high = admissions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (admissions[middle].sent < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @param {number} time */
function minuteOf(time) {
  return Math.floor(time / MINUTE_MS);
}

/**
 * The calendar minutes in which the room may have handled the request.
 * @param {{ received: number, date?: number }} answer @param {number} began @returns {Minutes}
 */
export function minutesOf({ received, date }, began) {
  const from = minuteOf(began);
  const to = minuteOf(received);
  if (date === undefined || date <= began - MINUTE_MS || date >= received + MINUTE_MS) return { from, to };
  return { from: Math.min(from, minuteOf(date)), to: Math.max(to, minuteOf(date)) };
}

/**
 * The most spans that hold at one moment, and the first such moment; where a limit is exceeded, the moment when it is most.
 * A span does not hold at its end.
 * @template {{ start: number, end: number }} Span
 * @param {Span[]} spans
 * @param {(span: Span) => number} [limitAt] what is allowed when it starts
 */
export function mostOverlapping(spans, limitAt = () => Infinity) {
  const sorted = [...spans].sort((one, other) => one.start - other.start);
  const ends = Float64Array.from(spans, (span) => span.end).sort();
  let ended = 0;
  let most = { users: 0, at: 0, limit: Infinity };
  for (const [index, span] of sorted.entries()) {
    while (ends[ended] <= span.start) ended += 1;
    const here = { users: index + 1 - ended, at: span.start, limit: limitAt(span) };
    if (isWorse(here, most)) most = here;
  }
  return most;
}

/** Whether more is seen above the limit, or more where neither is above it. */
function isWorse(one, other) {
  const above = ({ users, limit }) => Math.max(0, users - limit);
  return above(one) === above(other) ? one.users > other.users : above(one) > above(other);
}

/**
 * Books every admission to one of its minutes so that the fullest minute gets as few as can be; where limits change, so that
 * the limits are exceeded by as few as can be.
 * @param {Minutes[]} admissions
 * @param {(minute: number) => number} [limitOf] what is allowed in a minute
 * @returns {{ largest: number, limit: number, minutes: { minute: number, users: number }[] }} `largest` and `limit` are those
 *   of the minute that is most above its limit, else of the fullest
 */
export function kindestBooking(admissions, limitOf = () => Infinity) {
  const sorted = [...admissions].sort((a, b) => a.from - b.from);
  const least = (/** @type {(users: number) => (minute: number) => number} */ allow) => {
    let tooFew = 0;
    let enough = sorted.length;
    while (enough - tooFew > 1) {
      const middle = (tooFew + enough) >> 1;
      if (book(sorted, allow(middle))) enough = middle;
      else tooFew = middle;
    }
    return book(sorted, allow(enough)) ?? [];
  };
  const minutes = book(sorted, limitOf)
    ? least((users) => (minute) => Math.min(users, limitOf(minute)))
    : least((users) => (minute) => limitOf(minute) + users);
  let worst = { users: 0, limit: Infinity };
  for (const { minute, users } of minutes) {
    const here = { users, limit: limitOf(minute) };
    if (isWorse(here, worst)) worst = here;
  }
  return { largest: worst.users, limit: worst.limit, minutes };
}

/**
 * Minute by minute, those first whose range ends soonest: if this fails, no booking keeps the limit.
 * @param {Minutes[]} sorted By their first minute. @param {(minute: number) => number} limitOf
 */
function book(sorted, limitOf) {
  /** @type {{ minute: number, users: number }[]} */
  const minutes = [];
  /** @type {Map<number, number>} How many still have to be booked, by the last minute they may be booked to. */
  const open = new Map();
  let next = 0;
  let minute = sorted[0]?.from ?? 0;
  while (next < sorted.length || open.size > 0) {
    if (open.size === 0) minute = Math.max(minute, sorted[next].from);
    for (; next < sorted.length && sorted[next].from <= minute; next += 1) {
      open.set(sorted[next].to, (open.get(sorted[next].to) ?? 0) + 1);
    }
    let users = 0;
    for (const last of [...open.keys()].sort((a, b) => a - b)) {
      const waiting = open.get(last) ?? 0;
      const booked = Math.min(waiting, limitOf(minute) - users);
      users += booked;
      if (booked < waiting && last === minute) return null;
      if (booked < waiting) open.set(last, waiting - booked);
      else open.delete(last);
    }
    minutes.push({ minute, users });
    minute += 1;
  }
  return minutes;
}

/**
 * Percentiles by nearest rank, null when there are no values.
 * @template {string} Name
 * @param {number[]} values @param {Record<Name, number>} ranks From 0, the smallest, to 1, the largest.
 * @param {number} [divisor]
 * @returns {Record<Name, number | null>}
 */
export function percentiles(values, ranks, divisor = 1) {
  const sorted = [...values].sort((a, b) => a - b);
  const entries = Object.entries(ranks).map(([name, rank]) => {
    const index = Math.max(0, Math.ceil(/** @type {number} */ (rank) * sorted.length) - 1);
    return [name, sorted.length === 0 ? null : sorted[index] / divisor];
  });
  return Object.fromEntries(entries);
}

/** Counts durations in steps of 1 %, so that millions take no more room than ten. */
class Histogram {
  constructor() {
    /** @type {number[]} */
    this.counts = [];
    this.total = 0;
  }

  /** @param {number} ms */
  add(ms) {
    const step = Math.max(0, Math.ceil(Math.log(Math.max(ms, SHORTEST_MS) / SHORTEST_MS) / STEP));
    this.counts[step] = (this.counts[step] ?? 0) + 1;
    this.total += 1;
  }

  /** The duration that this part of all did not exceed, to 1 %. @param {number} part */
  percentile(part) {
    if (this.total === 0) return null;
    let seen = 0;
    for (const step in this.counts) {
      seen += this.counts[step];
      if (seen >= part * this.total) return Math.round(SHORTEST_MS * Math.exp(Number(step) * STEP) * 10) / 10;
    }
    return null;
  }
}

const SHORTEST_MS = 0.1;
const STEP = Math.log(1.01);
