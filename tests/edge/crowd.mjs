// A crowd in the edge tests' world, and what can be told of it from outside. What is held against a room is only what
// is certain: see tools/crowd/measure.mjs.
import { Measure } from "../../tools/crowd/measure.mjs";
import { exponential, seeded } from "../../tools/crowd/visitor.mjs";
import { MINUTE, openTicket, sleep } from "./world.mjs";

const COLOS = ["AMS", "SIN", "GRU"];
const SESSION = MINUTE;
/** What a session may seem longer in the room's own state: a slot's width, and the wait for late renewals. */
export const COUNTED_LONGER = 1_250;

/** The crowd of one room. */
export class Crowd {
  /**
   * `arrivals` and `lasts`: for how many milliseconds visitors arrive, and until when all of them are gone; `end` may
   * be brought forward while it runs. `arrives`: when each of them comes, by its number and at random; else one after the
   * other. `reaches`: which worker of the colo, in turn by the same; else any.
   */
  constructor(
    world,
    { path, visitors, limits, seed, arrivals, lasts, refreshSeconds, viewMs = 8_000, arrives, reaches },
  ) {
    this.world = world;
    this.path = path;
    this.visitors = visitors;
    this.limits = limits;
    this.seed = seed;
    this.measure = new Measure({ sessionSeconds: SESSION / 1000, ...limits });
    /** @type {{ id: number, type: string, sent: number, received: number, refresh: number, held?: object }[]} */
    this.events = [];
    this.moved = { waiting: 0, active: 0 };
    this.parallel = { waiting: 0, active: 0 };
    this.unexpected = [];
    this.start = Date.now();
    this.arrives = arrives ?? ((id, random) => ((id + random()) / visitors) * arrivals);
    this.reaches = reaches ?? ((_, random) => (random() < 0.5 ? 0 : 1));
    this.end = this.start + lasts;
    this.refresh = refreshSeconds * 1000;
    this.viewMs = viewMs;
  }

  async play() {
    const all = Array.from({ length: this.visitors }, (_, id) => this.#visit(id));
    await Promise.all(all);
  }

  async #visit(id) {
    const random = seeded(this.seed, id);
    const between = (low, high) => low + random() * (high - low);
    const pause = async (ms) => {
      const until = Date.now() + ms;
      while (Date.now() < Math.min(until, this.end)) {
        await sleep(Math.min(1_000, Math.min(until, this.end) - Date.now()));
      }
      return Date.now() < this.end;
    };
    let colo = COLOS[id % COLOS.length];
    if (!(await pause(this.arrives(id, random)))) return;
    const visitor = this.world.visitor({ path: this.path });
    let pagesLeft = 1 + Math.floor(between(0, 4));
    let state = "new";
    for (;;) {
      // Requests reach whichever worker of the colo has time; several at once reach several.
      let workers = [this.reaches(id, random)];
      if (state !== "new" && random() < 0.25) {
        workers = [0, 1, 0, 1].slice(0, 2 + Math.floor(random() * 3));
        this.parallel[state] += 1;
      }
      if (state !== "new" && random() < 0.1) {
        colo = COLOS[(COLOS.indexOf(colo) + 1 + Math.floor(random() * 2)) % COLOS.length];
        this.moved[state] += 1;
      }
      const answers = await Promise.all(workers.map((worker) => this.#open(id, visitor, colo, worker)));
      // One admitted answer is enough: the visitor is in.
      const admitted = answers.some(({ fromOrigin }) => fromOrigin);
      if (admitted) {
        state = "active";
        pagesLeft -= 1;
        if (pagesLeft === 0) return;
        if (!(await pause(Math.min(20_000, 1_000 + exponential(random, this.viewMs))))) return;
      } else {
        state = "waiting";
        const refresh = answers[0].refresh?.seconds ?? 5;
        if (!(await pause(refresh * 1000))) return;
      }
    }
  }

  async #open(id, visitor, colo, worker) {
    const ticket = visitor.ticket(this.path);
    const held = ticket === undefined ? undefined : openTicket(this.path.slice(1), ticket);
    const answer = await visitor.get(this.path, { colo, worker });
    const { sent, received, fromOrigin, waiting } = answer;
    const refresh = answer.refresh?.seconds;
    const event = { visitor: id, sent, received, ...(waiting && { refresh }) };
    if (fromOrigin) this.measure.add({ type: "admitted", ...event });
    else if (waiting) this.measure.add({ type: "waiting", ...event });
    else this.unexpected.push(`${answer.status} ${answer.body.slice(0, 80)}`);
    this.events.push({ id, type: fromOrigin ? "admitted" : "waiting", sent, received, refresh, held });
    return answer;
  }

  /** The requests that let somebody in who had not been in before. */
  admissions() {
    const inside = new Set();
    return this.events.filter(({ id, type }) => type === "admitted" && !inside.has(id) && inside.add(id));
  }

  /** The waiting pages that came while their visitor was inside. */
  #pagesInside() {
    const admitted = Map.groupBy(
      this.events.filter(({ type }) => type === "admitted"),
      ({ id }) => id,
    );
    const inside =
      (page) =>
      ({ sent, received }) =>
        received <= page.received && page.received < sent + SESSION;
    return this.events.filter((page) => page.type === "waiting" && admitted.get(page.id)?.some(inside(page)));
  }

  /** The waiting pages for requests that carried an admitted visitor's ticket. */
  thrownOut() {
    return this.#pagesInside().filter(({ held }) => held?.acceptedAt !== undefined);
  }

  /**
   * The waiting pages that came after an admitted answer to another request with the same waiting ticket, sent at the
   * same time: the browser keeps the later cookie.
   */
  overtaken() {
    return this.#pagesInside().filter(({ held }) => held?.acceptedAt === undefined);
  }

  figures() {
    return this.measure.figures(this.end);
  }

  /** Whose session certainly runs at a time, and whose may. */
  activeAt(time) {
    const certain = new Set();
    const possible = new Set();
    for (const { id, type, sent, received } of this.events) {
      if (type !== "admitted") continue;
      if (received <= time && time < sent + SESSION) certain.add(id);
      if (sent <= time && time < received + SESSION + COUNTED_LONGER) possible.add(id);
    }
    return { certain: certain.size, possible: possible.size };
  }

  /** When each visitor came in: from the request of the first admitted answer to the end of the last one's session. */
  #stays() {
    const stays = new Map();
    for (const { id, type, sent, received } of this.events.toSorted((a, b) => a.sent - b.sent)) {
      if (type !== "admitted") continue;
      const stay = stays.get(id) ?? { from: sent, until: 0 };
      stay.until = Math.max(stay.until, received + SESSION);
      stays.set(id, stay);
    }
    return [...stays.values()];
  }

  /** When somebody had waited for longer than a refresh, as times at which the number of such people changes. */
  #patience() {
    const changes = [];
    const visitors = Map.groupBy(this.events, ({ id }) => id);
    for (const events of visitors.values()) {
      const firstPage = events.find(({ type }) => type === "waiting");
      if (!firstPage) continue;
      const entered = events.find(({ type, sent }) => type === "admitted" && sent >= firstPage.sent);
      const since = firstPage.received + 1.1 * this.refresh;
      const until = entered ? entered.sent : this.end;
      if (since < until) changes.push({ at: since, by: 1 }, { at: until, by: -1 });
    }
    return changes;
  }

  /**
   * How long slots stayed free while somebody had waited for longer than a refresh, beside one that may. Slots are
   * taken in the order in which they became free.
   */
  idleness(total) {
    const stays = this.#stays();
    const happenings = [
      ...stays.map(({ from }) => ({ at: from, kind: "taken" })),
      ...stays.map(({ until }) => ({ at: until, kind: "freed" })),
      ...this.#patience().map(({ at, by }) => ({ at, kind: "patience", by })),
      { at: this.end, kind: "end" },
    ].sort((a, b) => a.at - b.at);
    const free = Array.from({ length: total }, () => this.start);
    let patient = 0;
    let patientSince = Infinity;
    let last = this.start;
    let idle = 0;
    let time = 0;
    let longest = 0;
    for (const { at, kind, by } of happenings) {
      if (at > this.end) break;
      if (patient > 0) {
        idle += Math.min(free.length, patient) * (at - last);
        time += at - last;
        if (free.length > 1) longest = Math.max(longest, at - Math.max(free[1], patientSince));
      }
      last = at;
      if (kind === "taken") free.shift();
      if (kind === "freed") free.push(at);
      if (kind === "patience") {
        if (patient === 0 && by > 0) patientSince = at;
        patient += by;
      }
    }
    return { longestSeconds: longest / 1000, percent: time === 0 ? 0 : (idle / (time * total)) * 100 };
  }

  /** When the last request of anybody inside was sent, and when it was answered. */
  lastRequest() {
    const admitted = this.events.filter(({ type }) => type === "admitted");
    return {
      sent: Math.max(...admitted.map(({ sent }) => sent)),
      received: Math.max(...admitted.map(({ received }) => received)),
    };
  }
}
