/**
 * Rooms in every state that the dashboard shows, made up: what a deployment's operator API would say of them. Numbers are
 * functions of the time, so that charts move and look the same whenever they are asked for again.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../toolchain.mjs";

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const COLOS = readFileSync(join(ROOT, "static", "dashboard", "colos.txt"), "utf8")
  .trim()
  .split("\n")
  .map((line) => line.slice(0, 3));

const DEPLOYED = {
  queue_all: false,
  suspended: false,
  mode: "enforce",
  enforce_share: 0,
  total_active_users: 1000,
  new_users_per_minute: 200,
  session_duration: 5,
  refresh_interval_seconds: 20,
  message: "",
};
/** What each of them may be, by the table of fields in the documents. */
const BOUNDS = Object.fromEntries(Object.keys(DEPLOYED).map((field) => [field, boundsOf(field)]));

/** @param {string} field @returns {{ least?: number, most?: number, longest?: number }} as the Worker says it */
function boundsOf(field) {
  const document = readFileSync(join(ROOT, "docs", "configuration.md"), "utf8");
  const range = document
    .split("\n")
    .find((line) => line.startsWith(`| \`${field}\` |`))
    .split("|")
    .at(-2);
  const numbers = range.match(/\d[\d,]*/g)?.map((digits) => Number(digits.replaceAll(",", ""))) ?? [];
  if (numbers.length === 2) return { least: numbers[0], most: numbers[1] };
  return numbers.length === 1 ? { longest: numbers[0] } : {};
}

const HEALTHY = {
  checks: 1,
  held: false,
  unhealthy_check: null,
  unhealthy_since: null,
  answered: 5_412,
  failed: 3,
  timed_out: 0,
  refused: 0,
  first_byte_p50_ms: 84,
  first_byte_p95_ms: 310,
  in_flight: 12,
};
/** How full, how many wait, who enters: shares of the limits, by the minute of the hour. */
const FULL = {
  active: 0.99,
  entering: 0.98,
  waiting: 1_240,
  colos: ["FRA", "LHR", "CDG", "AMS", "EWR", "SIN", "GRU"],
};
const CALM = { active: 0.31, entering: 0.22, waiting: 0, colos: ["FRA", "LHR", "EWR"] };

/**
 * What is special of each room. `begun` is when the rooms were made.
 * @type {(begun: number) => Record<string, object>}
 */
const SCENARIOS = (begun) => ({
  sale: {
    crowd: FULL,
    rush: begun - 33 * MINUTE,
    path: "/sale",
    overrides: { total_active_users: [1000, 800, begun - 11 * MINUTE] },
    deployed: { total_active_users: 800 },
  },
  quiet: { crowd: CALM, path: "/quiet", checks: 0 },
  observing: { crowd: { ...FULL, waiting: 120 }, path: "/observing", deployed: { mode: "observe" } },
  closed: {
    crowd: { ...FULL, entering: 0, active: 0.64 },
    path: "/closed",
    overrides: {
      queue_all: [true, false, begun - 7 * MINUTE],
      message: ["The payment system is out of order. We expect it back at 15:00.", "", begun - 6 * MINUTE],
    },
  },
  deployed: {
    crowd: CALM,
    path: "/deployed",
    deployed: { total_active_users: 1500 },
    overrides: { total_active_users: [500, 1000, begun - 3 * HOUR] },
  },
  unhealthy: {
    crowd: { ...FULL, entering: 0.05, active: 0.7 },
    path: "/unhealthy",
    held: true,
    origin: {
      ...HEALTHY,
      limits: { total_active_users: 400, new_users_per_minute: 40 },
      held: true,
      unhealthy_check: "shop",
      unhealthy_since: begun - 4 * MINUTE,
      answered: 120,
      failed: 231,
      timed_out: 44,
      refused: 9,
      first_byte_p50_ms: 4_100,
      first_byte_p95_ms: 9_800,
    },
    news: [
      [begun - 4 * MINUTE, "origin_unhealthy", "The origin is unhealthy: the check shop fails"],
      [
        begun - 3 * MINUTE,
        "limits_changed",
        "The limits follow the origin: 400 active users, 40 new ones a minute",
      ],
    ],
  },
  event: {
    crowd: { active: 0.12, entering: 0, waiting: 4_310, colos: FULL.colos },
    path: "/event",
    phase: "prequeueing",
    events: [
      {
        name: "drop",
        phase: "prequeueing",
        start: begun + 12 * MINUTE,
        end: begun + 3 * HOUR,
        prequeue: begun - 18 * MINUTE,
      },
      {
        name: "second_drop",
        phase: "upcoming",
        start: begun + 26 * HOUR,
        end: begun + 28 * HOUR,
        prequeue: null,
      },
      { name: "rehearsal", phase: "over", start: begun - 26 * HOUR, end: begun - 25 * HOUR, prequeue: null },
    ],
    news: [[begun - 18 * MINUTE, "event_prequeue_started", "People may wait for the event drop now"]],
  },
  planet: {
    crowd: { ...FULL, waiting: 48_211, colos: [...COLOS.slice(0, 299), "XQZ"] },
    path: "/planet",
    deployed: { total_active_users: 100_000, new_users_per_minute: 20_000 },
  },
  silent: { crowd: { active: 0, entering: 0, waiting: 0, colos: [] }, path: "/silent", isSilent: true },
  unreachable: {
    crowd: CALM,
    path: "/unreachable",
    error: "the room's Global object did not answer within 5 s",
  },
});

/** A number between 0 and 1 that looks random and is the same for the same seed. */
function chance(seed) {
  const wave = Math.sin(seed * 12.9898) * 43758.5453;
  return wave - Math.floor(wave);
}

/** A room, and what operators do to it. */
class Room {
  #scenario;
  #begun;
  #told = [];
  version;
  audit = [];
  overrides = new Map();
  eventTimes = new Map();
  /** When the last change was made: it is in force in one colo after another. */
  #changed = 0;

  constructor(name, scenario, begun) {
    this.name = name;
    this.#scenario = scenario;
    this.#begun = begun;
    this.deployed = { ...DEPLOYED, ...scenario.deployed };
    this.version = 6;
    for (const [field, [value, then, at]] of Object.entries(scenario.overrides ?? {})) {
      this.overrides.set(field, { value, deployed_then: then, by: "anna", at });
      this.#note({ at, by: "anna", kind: "set", field, before: then, after: value, deployed: then });
    }
  }

  #note(entry) {
    this.audit.push({ id: this.audit.length + 1, ...entry });
  }

  value(field) {
    return this.overrides.get(field)?.value ?? this.deployed[field];
  }

  #override(field) {
    const kept = this.overrides.get(field);
    if (!kept) return null;
    const deployed = this.deployed[field];
    return { field, ...kept, deployed, deploy_changed: kept.deployed_then !== deployed };
  }

  #events(now) {
    return (this.#scenario.events ?? []).map((event) => {
      const steered = this.eventTimes.get(event.name);
      const { start = event.start, end = event.end } = steered ?? {};
      const phase =
        now >= end
          ? "over"
          : now >= start
            ? "active"
            : event.prequeue && now >= event.prequeue
              ? "prequeueing"
              : "upcoming";
      return { ...event, start, end, phase, steered: Boolean(steered) };
    });
  }

  /** @param {object} asked of `POST steering`; `by` whom @returns {{ status: number, body: object }} */
  steer(asked, by, now = Date.now()) {
    if (asked.if_version !== undefined && asked.if_version !== this.version)
      return { status: 409, body: { error: `Version ${this.version} is in force, not ${asked.if_version}` } };
    const errors = Object.entries(asked.set ?? {}).flatMap(([field, value]) => mistakes(field, value));
    if (errors.length > 0) return { status: 400, body: { error: "Nothing was changed", errors } };
    const [, ahead, unit] = /^(\d+)([mh])$/.exec(asked.until ?? "") ?? [];
    const until = ahead && now + ahead * (unit === "h" ? 60 : 1) * MINUTE;
    const more = { until, reason: asked.reason ?? "" };
    const note = (kind, field, before) =>
      this.#note({
        at: now,
        by,
        kind,
        field,
        before,
        after: this.value(field),
        deployed: this.deployed[field],
        ...more,
      });
    for (const [field, value] of Object.entries(asked.set ?? {})) {
      const before = this.value(field);
      this.overrides.set(field, { value, deployed_then: this.deployed[field], by, at: now, ...more });
      note("set", field, before);
    }
    for (const field of asked.clear ?? []) {
      const before = this.value(field);
      if (this.overrides.delete(field)) note("clear", field, before);
    }
    for (const field of asked.keep ?? []) {
      const kept = this.overrides.get(field);
      if (kept) this.overrides.set(field, { ...kept, deployed_then: this.deployed[field], by, at: now });
      note("keep", field, this.value(field));
    }
    for (const [name, act] of Object.entries(asked.events ?? {})) {
      const planned = this.#scenario.events.find((event) => event.name === name);
      const times = ({ start, end }) => ({ start, end });
      const current = () => times({ ...planned, ...this.eventTimes.get(name) });
      const before = current();
      if (act === "clear") this.eventTimes.delete(name);
      else this.eventTimes.set(name, { ...this.eventTimes.get(name), [act]: now, by, at: now });
      const entry = { field: `events.${name}`, before, after: current(), deployed: times(planned) };
      this.#note({ at: now, by, kind: "event", ...entry });
    }
    this.version += 1;
    this.#changed = now;
    return { status: 200, body: this.steering(now) };
  }

  #inForce(now) {
    const colos = this.#scenario.crowd.colos.length;
    return Math.min(colos, Math.floor(((now - this.#changed) / (2.4 * SECOND)) * colos));
  }

  steering(now = Date.now()) {
    const fields = Object.keys(DEPLOYED).map((field) => [
      field,
      {
        deployed: this.deployed[field],
        value: this.value(field),
        override: this.#override(field),
        ...BOUNDS[field],
      },
    ]);
    const events = this.#events(now).map((event) => {
      const planned = this.#scenario.events.find(({ name }) => name === event.name);
      const { by = null, at = null } = this.eventTimes.get(event.name) ?? {};
      const { name, phase, start, end, steered } = event;
      return {
        name,
        phase,
        start,
        end,
        deployed_start: planned.start,
        deployed_end: planned.end,
        steered,
        by,
        at,
      };
    });
    return {
      room: this.name,
      version: this.version,
      fields: Object.fromEntries(fields),
      events,
      colos_in_force: this.#inForce(now),
      colos: this.#scenario.crowd.colos.length,
    };
  }

  /** What was in force at a time. */
  #then(field, time) {
    const kept = this.overrides.get(field);
    return kept && time < kept.at ? kept.deployed_then : this.value(field);
  }

  /** The figures of a moment. */
  #at(time) {
    const { crowd, rush = 0 } = this.#scenario;
    const limit = this.#then("total_active_users", time);
    const rate = this.#then("new_users_per_minute", time);
    const isClosed = this.#then("queue_all", time);
    // A crowd comes, stays and goes again.
    const swell = 0.82 + 0.18 * Math.sin(time / (23 * MINUTE)) * Math.sin(time / (7 * MINUTE));
    const shake = 1 - 0.03 * chance(Math.floor(time / (2 * SECOND)));
    // Before it came, the room was as calm as others; it fills in some minutes, then people wait.
    const came = Math.min(1, Math.max(0, (time - rush) / (6 * MINUTE)));
    const queued = Math.min(1, Math.max(0, (time - rush - 4 * MINUTE) / (12 * MINUTE)));
    const steady = crowd.waiting > 0 ? 1 : swell;
    const active = Math.round(limit * shake * steady * (crowd.active * came + 0.24 * swell * (1 - came)));
    const waiting = Math.round(
      queued * crowd.waiting * swell * (1 + 0.02 * chance(Math.floor(time / (4 * SECOND)))),
    );
    const entering = crowd.entering * came + 0.3 * swell * (1 - came);
    const entered = isClosed ? 0 : Math.round(rate * entering * steady * shake);
    return { active, waiting, entered, limit, rate };
  }

  /** @returns the room's part of `GET status` */
  status(now = Date.now()) {
    const scenario = this.#scenario;
    const { crowd } = scenario;
    const head = { name: this.name, path: scenario.path, host: null };
    if (scenario.error) return { ...head, error: scenario.error };
    const { active, waiting, entered, limit, rate } = this.#at(now);
    const events = this.#events(now);
    const current = events.find(({ phase }) => phase === "prequeueing" || phase === "active");
    const intoMinute = (now % MINUTE) / MINUTE;
    const suspended = this.value("suspended");
    const queueAll = this.value("queue_all");
    const slots = suspended || queueAll || scenario.held ? 0 : Math.max(0, limit - active);
    const isWaiting = waiting > 0 && !suspended;
    const buckets = isWaiting
      ? this.#buckets(now, waiting, entered, queueAll || scenario.held || current?.phase === "prequeueing")
      : [];
    const inForce = this.#inForce(now);
    const weights = crowd.colos.map((_, index) => 0.15 + chance(index + 3) ** 3);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const colos = crowd.colos.map((colo, index) => {
      const share = weights[index] / total;
      const age = Math.round(300 + 1_700 * chance(index + Math.floor(now / 2_000)));
      return {
        colo,
        reported_at: now - age,
        age_ms: age,
        active: Math.round(active * share),
        waiting: Math.round(waiting * share),
        new_users_this_minute: Math.round(entered * share * intoMinute),
        new_users_last_minute: Math.round(entered * share),
        workers: 1 + Math.floor(share * 40),
        cut_off: crowd.colos.length > 5 && index === 5,
        steering: index < inForce ? this.version : this.version - 1,
      };
    });
    const overrides = [...this.overrides.keys()].map((field) => this.#override(field));
    return {
      ...head,
      status: suspended
        ? "suspended"
        : current?.phase === "prequeueing"
          ? "event_prequeueing"
          : isWaiting || queueAll
            ? "queueing"
            : "not_queueing",
      event_id: current?.name ?? "",
      estimated_queued_users: suspended ? 0 : waiting,
      estimated_total_active_users: active,
      max_estimated_time_minutes: Math.ceil(
        Math.max(0, ...buckets.map((bucket) => bucket.wait_seconds ?? 0)) / 60,
      ),
      taken_at: scenario.isSilent ? now - 3 * HOUR : now - 700,
      age_ms: scenario.isSilent ? 0 : 700,
      watched: true,
      limits: scenario.origin?.limits ?? { total_active_users: limit, new_users_per_minute: rate },
      deployed: this.deployed,
      slots,
      new_users_this_minute: Math.round(entered * intoMinute),
      new_users_last_minute: entered,
      entering_per_minute: entered - 0.5 * chance(3),
      queue_all: queueAll,
      suspended,
      observing: this.value("mode") === "observe",
      enforce_share: this.value("enforce_share"),
      held: scenario.held ?? false,
      queueing_method: "fifo",
      session_duration: this.value("session_duration"),
      refresh_interval_seconds: this.value("refresh_interval_seconds"),
      message: this.value("message"),
      level: isWaiting ? "queueing" : "calm",
      workers: colos.reduce((sum, { workers }) => sum + workers, 0),
      event_phase: current?.phase ?? null,
      next_event_start_time: null,
      next_event_prequeue_start_time: null,
      events,
      origin: scenario.isSilent
        ? null
        : (scenario.origin ?? {
            ...HEALTHY,
            checks: scenario.checks ?? HEALTHY.checks,
            limits: { total_active_users: limit, new_users_per_minute: rate },
          }),
      buckets,
      colos,
      steering: {
        version: this.version,
        overrides,
        events: [...this.eventTimes].map(([name, times]) => ({ name, start: null, end: null, ...times })),
        colos_in_force: inForce,
        colos: colos.length,
      },
      error: null,
      state: {},
    };
  }

  /** Who waits, by the minute in which they came. */
  #buckets(now, waiting, entered, isShut) {
    const minute = Math.floor(now / MINUTE);
    const count = 14;
    let ahead = 0;
    return Array.from({ length: count }, (_, index) => {
      const bucket = minute - count + 1 + index;
      const users = Math.round((waiting / count) * (0.7 + 0.6 * chance(bucket)));
      ahead += users;
      const wait = isShut ? null : Math.round((ahead / Math.max(entered, 1)) * 60);
      return { bucket, since: bucket * MINUTE, users, present: Math.round(users * 0.93), wait_seconds: wait };
    });
  }

  history(from, to, resolution, fields) {
    const step = resolution === "hour" ? HOUR : MINUTE;
    const rows = [];
    for (let time = Math.ceil(from / step) * step; time < to; time += step) {
      const isLate = time < this.#begun - 40 * 24 * HOUR || this.#scenario.isSilent;
      const { active, waiting, entered, limit, rate } = isLate
        ? {
            active: 0,
            waiting: 0,
            entered: 0,
            limit: this.value("total_active_users"),
            rate: this.value("new_users_per_minute"),
          }
        : this.#at(time);
      const isRehearsed = time >= this.#begun - 55 * MINUTE && time < this.#begun - 49 * MINUTE;
      const values = {
        active_users: active,
        active_users_max: Math.round(active * 1.01),
        waiting_users: waiting,
        waiting_users_max: Math.round(waiting * 1.02),
        new_users: step === HOUR ? entered * 60 : entered,
        total_active_users: limit,
        new_users_per_minute: rate,
        slots: Math.max(0, limit - active),
        joins: entered,
        leavers: Math.round(entered / 9),
        wait_seconds_p50: waiting > 0 ? 240 : null,
        wait_seconds_p90: waiting > 0 ? 610 : null,
        origin_seconds_p50: 95,
        origin_seconds_p90: 400,
        revoked: 0,
        bypassed: 4,
        fallbacks: 0,
        object_calls: 200,
        rehearsal_new_users: isRehearsed ? Math.round(entered / 2) : 0,
        rehearsal_joins: isRehearsed ? 12 : 0,
        observed_joins: this.value("mode") === "observe" ? Math.round(entered / 3) : 0,
        newcomers: entered,
      };
      rows.push([time, ...fields.map((field) => values[field] ?? null)]);
    }
    return rows;
  }

  /** What is told is in the record from then on, as in a real room: a page that loads it again finds it. */
  tell(news) {
    const known = new Set(this.#told.map(({ id }) => id));
    this.#told.push(...news.filter(({ id }) => !known.has(id)));
  }

  news(from, to) {
    const queueing = this.#scenario.crowd.waiting > 0;
    const known = [
      ...(queueing ? [[this.#begun - 28 * MINUTE, "queueing_started", "The room has begun to queue"]] : []),
      ...(queueing ? [[this.#begun - 21 * MINUTE, "wait_above", "The longest wait is above 5 minutes"]] : []),
      ...(this.#scenario.news ?? []),
    ];
    return known
      .filter(([at]) => at >= from && at < to)
      .sort(([one], [other]) => one - other)
      .map(([at, kind, text], index) => ({ id: `${this.name}-${at}-${index}`, at, kind, text, data: {} }))
      .concat(this.#told.filter(({ at }) => at >= from && at < to));
  }
}

/** What the Worker would find wrong with a value. */
function mistakes(field, value) {
  const wrong = (message, fix) => [{ field, value, message, fix }];
  const { least, most } = BOUNDS[field] ?? {};
  if (most !== undefined) {
    const isRight = (field === "enforce_share" || Number.isInteger(value)) && value >= least && value <= most;
    return isRight
      ? []
      : wrong(`must be a whole number from ${least} to ${most}`, `set it between ${least} and ${most}`);
  }
  if (field === "message")
    return String(value).includes("casino")
      ? wrong("must not advertise a casino", "leave that word out")
      : [];
  return field in DEPLOYED ? [] : wrong("is not a field that can be steered", "leave it out");
}

/** @param {number} [now] @returns {Map<string, Room>} by name */
export function makeRooms(now = Date.now()) {
  return new Map(
    Object.entries(SCENARIOS(now)).map(([name, scenario]) => [name, new Room(name, scenario, now)]),
  );
}
